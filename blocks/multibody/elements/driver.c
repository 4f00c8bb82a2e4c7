/* The row of a driver of a tree coordinate: Φ = ±q - f(t). One that is measured between markers is a row of blocks/multibody/kernel/constraints/closure.c.
 *
 * I: its index in q, A: in v, B: its sign in the tree, VALUE: its law. The effort on the coordinate is -λ. */
#include "blocks/multibody/kernel/multibody.h"

static const int32_t *driver_record_of(const mb_view *m, int32_t cut, int32_t *row) {
    *row = m->cuts[cut * MB_CUT_FIELDS + MB_CUT_ROW];
    return m->rows + *row * MB_ROW_FIELDS;
}

static bool driver_check(const bl_block *b, const int32_t *row) {
    const int32_t *head = b->i;
    return mb_in_range(row[MB_ROW_I], 0, head[MB_NQ]) && mb_in_range(row[MB_ROW_A], 0, head[MB_NV]) &&
           (row[MB_ROW_B] == 1 || row[MB_ROW_B] == -1) && mb_in_range(row[MB_ROW_VALUE], 0, head[MB_LAWS]);
}

static void driver_place(mb_view *m, int32_t cut, double t, const double *q) {
    int32_t row;
    const int32_t *record = driver_record_of(m, cut, &row);
    double rate, second;
    const double value = record[MB_ROW_B] * q[record[MB_ROW_I]];
    m->phi[row] = value - mb_law(m, record[MB_ROW_VALUE], t, &rate, &second);
    m->row_state[row].size = fmax(1.0, fabs(value));
}

static void driver_rate(mb_view *m, int32_t cut, double t, const double *v) {
    int32_t row;
    const int32_t *record = driver_record_of(m, cut, &row);
    double first = 0.0, second = 0.0;
    mb_law(m, record[MB_ROW_VALUE], t, &first, &second);
    m->phi_rate[row] = record[MB_ROW_B] * v[record[MB_ROW_A]] - first;
    m->bias[row] = -second;
}

static double driver_slope(const mb_view *m, int32_t cut, const int32_t *path) {
    (void)path;
    int32_t row;
    return driver_record_of(m, cut, &row)[MB_ROW_B];
}

static bool driver_turns(const mb_view *m, int32_t cut) {
    const int32_t *record = m->cuts + cut * MB_CUT_FIELDS;
    if (record[MB_CUT_PATHS] < 1) return false;
    const int32_t link = m->paths[record[MB_CUT_PATH] * MB_PATH_FIELDS + MB_PATH_LINK];
    return m->links[link * MB_LINK_FIELDS + MB_LINK_TYPE] != MB_PRISMATIC;
}

const mb_coordinate_row mb_row_driver = {
    .check = driver_check, .place = driver_place, .rate = driver_rate, .slope = driver_slope, .turns = driver_turns};
