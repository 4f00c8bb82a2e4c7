/* Laws: numbers that change with time, or with the length and speed of what they act on. */
#include "blocks/core/kernel/constants.h"
#include "blocks/core/formula/formula.h"
#include "blocks/multibody/kernel/multibody.h"
#include "blocks/core/kernel/table.h"

/* Programs follow each other, so that none is walked twice. */
bool mb_law_check(const bl_block *b, const int32_t *law, int64_t *words_used) {
    const int64_t p = law[MB_LAW_P], n = law[MB_LAW_N], words = b->i[MB_WORDS];
    if (law[MB_LAW_SHIFT] < 0 || law[MB_LAW_SHIFT] > 1 || p < 0) return false;
    switch (law[MB_LAW_TYPE]) {
        case MB_LAW_CONSTANT: return p + 1 <= b->p_count;
        case MB_LAW_LINEAR: return p + 2 <= b->p_count;
        case MB_LAW_SINE: return p + 4 <= b->p_count;
        case MB_LAW_INPUT:
            return p < b->u_count && n >= -1 && n < b->u_count && law[MB_LAW_OF] >= -1 && law[MB_LAW_OF] < b->u_count;
        case MB_LAW_TABLE: /* n points, four coefficients for each piece, the last value */
            return n >= 2 && p + 5 * n - 3 <= b->p_count && law[MB_LAW_OF] >= MB_OF_TIME &&
                   law[MB_LAW_OF] <= MB_OF_RATE;
        case MB_LAW_FORMULA: {
            static const int32_t result[1] = {1};
            const int32_t own[2] = {2, b->i[MB_SIGNALS]};
            const bl_formula_reach reach = {
                .u_width = own, .y_width = result, .u_count = 2, .y_count = 1, .p_count = b->p_count};
            if (p != *words_used || n < 1 || p + n > words) return false;
            *words_used += n;
            return bl_formula_check(b->i + b->i[MB_AT_WORDS] + p, n, &reach) != 0;
        }
        case MB_LAW_FUNCTION:
        case MB_LAW_CURVE:
            if (p != *words_used || n < 1 || p + n > words) return false;
            *words_used += n;
            return mb_function_check(b, law);
        default: return false;
    }
}

int32_t mb_law_crossings(const mb_view *m, int32_t law) {
    const int32_t *record = m->laws + law * MB_LAW_FIELDS;
    if (record[MB_LAW_TYPE] == MB_LAW_FORMULA)
        return bl_formula_crossings(m->words + record[MB_LAW_P], record[MB_LAW_N]);
    return record[MB_LAW_TYPE] == MB_LAW_TABLE ? 1 : 0;
}

static bl_modes law_modes(const mb_view *m, int32_t law) {
    return m->modes.mode ? mb_modes_from(m, m->law_modes[law]) : (bl_modes){0};
}

/* Instants of a table with more points in a tick than this are not located: events in a tick are bounded. */
static const double TABLE_DENSEST = 4.0;
/* A point that the user means to be at a tick may lie a rounding error beside it; as in sources.c. */
static const double TABLE_SLACK = 1e-6;

/* Whether the slope jumps at every point; a spline is smooth but for its ends. */
static bool table_is_linear(const double *points, int32_t n) {
    const double *first = points + n, *last = first + 4 * (int64_t)(n - 2);
    return first[0] == 0.0 && first[1] == 0.0 && last[0] == 0.0 && last[1] == 0.0;
}

static bool table_is_dense(const double *points, int32_t n, double tick) {
    return table_is_linear(points, n) && (points[n - 1] - points[0]) * TABLE_DENSEST < (n - 1) * tick;
}

/* The piece of a table at x, -1 before its points and n - 1 beyond them. */
static int32_t table_piece(const double *points, int32_t n, double x) {
    return x < points[0] ? -1 : x >= points[n - 1] ? n - 1 : bl_table_find(points, n, x);
}

/* The same by mode: a piece, or all pieces of a spline, hold until a point is passed. Points in time are instants that are known in
   advance, so that their crossing function stays 0. */
static int32_t table_piece_by_mode(const bl_modes *modes, const double *points, int32_t n, double x, double slack,
                                   bool of_time) {
    const bool linear = table_is_linear(points, n);
    const int32_t now = table_piece(points, n, x + slack);
    const double mode = bl_keep_mode(modes, 0, linear || now < 0 || now == n - 1 ? now : 0);
    const int32_t low = mode > 0.0 ? (int32_t)mode : mode < 0.0 ? -1 : 0;
    const int32_t high = linear || low < 0 || low == n - 1 ? low : n - 2;
    if (!of_time) {
        const double below = low < 0 ? INFINITY : x - points[low],
                     above = high == n - 1 ? INFINITY : points[high + 1] - x;
        modes->crossing[0] = fmin(below, above);
    }
    if (low == high) return low;
    const int32_t k = table_piece(points, n, x);
    return k < low ? low : k > high ? high : k;
}

/* Beyond the points the end values hold; of a point the derivatives are those of the piece that follows it. */
static double table_law(const mb_view *m, int32_t law, double x, double *rate, double *second) {
    const int32_t *record = m->laws + law * MB_LAW_FIELDS, n = record[MB_LAW_N];
    const bool of_time = record[MB_LAW_OF] == MB_OF_TIME;
    const double *points = m->p + record[MB_LAW_P], *pieces = points + n;
    const bl_modes modes = law_modes(m, law);
    const bool divided = of_time && m->head[MB_INTERNAL]; /* at points in time: steps/instants.c */
    const int32_t k = !modes.mode || divided || (of_time && table_is_dense(points, n, m->whole))
                          ? table_piece(points, n, x)
                          : table_piece_by_mode(&modes, points, n, x, of_time ? TABLE_SLACK * m->whole : 0.0, of_time);
    *rate = *second = 0.0;
    if (k < 0) return pieces[3];
    if (k == n - 1) return pieces[4 * (n - 1)];
    const double *c = pieces + 4 * k, s = x - points[k];
    *rate = (3.0 * c[0] * s + 2.0 * c[1]) * s + c[2];
    *second = 6.0 * c[0] * s + 2.0 * c[1];
    return ((c[0] * s + c[1]) * s + c[2]) * s + c[3];
}

static bool is_connected(const mb_view *m, int32_t port) {
    return port >= 0 && !(m->held && m->held[port] == BL_INPUT_UNCONNECTED);
}

static double input_age(const mb_view *m, int32_t port, double t) {
    return (t > m->since ? t - m->since : 0.0) + (m->held && m->held[port] == BL_INPUT_HELD ? m->tick_age : 0.0);
}

/* An input that moves something has ports for its rate and acceleration too. Within a step of the block's own it is the integral of the
   highest derivative that is connected; that one, or the input itself if neither is, follows the slopes that the engine gives. So
   place, rate and acceleration fit each other at every time. */
static double moving_input(const mb_view *m, const int32_t *law, double t, double *rate, double *second) {
    const int32_t of[3] = {law[MB_LAW_P], law[MB_LAW_N], law[MB_LAW_OF]};
    const int top = is_connected(m, of[2]) ? 2 : is_connected(m, of[1]) ? 1 : 0;
    const double age = input_age(m, of[0], t);
    double taylor[5] = {0.0}; /* value and derivatives at the start */
    for (int k = 0; k <= top; k++)
        if (of[k] >= 0) taylor[k] = m->u[of[k]][0];
    if (m->u1) {
        taylor[top + 1] = m->u1[of[top]][0];
        taylor[top + 2] = m->u2[of[top]][0];
    }
    const double third = taylor[3], fourth = taylor[4];
    *second = taylor[2] + (third + fourth * age / 2.0) * age;
    *rate = taylor[1] + (taylor[2] + (third / 2.0 + fourth * age / 6.0) * age) * age;
    return taylor[0] + (taylor[1] + (taylor[2] / 2.0 + (third / 6.0 + fourth * age / 24.0) * age) * age) * age;
}

static double input_law(const mb_view *m, const int32_t *law, double t, double *rate, double *second) {
    const int32_t port = law[MB_LAW_P];
    if (law[MB_LAW_N] >= 0 || law[MB_LAW_OF] >= 0) return moving_input(m, law, t, rate, second);
    if (!m->u1) return m->u[port][0]; /* rate and second are 0 */
    const double age = input_age(m, port, t), start = m->u1[port][0];
    *second = m->u2[port][0];
    *rate = start + *second * age;
    return m->u[port][0] + (start + 0.5 * *second * age) * age;
}

double mb_law(const mb_view *m, int32_t law, double t, double *rate, double *second) {
    const int32_t *record = m->laws + law * MB_LAW_FIELDS;
    const double *p = m->p + record[MB_LAW_P], quarter = 0.5 * BL_PI;
    double value;
    *rate = *second = 0.0;
    t = mb_law_time(m, t);
    switch (record[MB_LAW_TYPE]) {
        case MB_LAW_LINEAR: /* start, slope */
            *rate = p[1];
            value = p[0] + p[1] * t;
            break;
        case MB_LAW_SINE: { /* amplitude, omega, phase, offset */
            const double angle = p[1] * t + p[2], swing = p[0] * sin(angle);
            *rate = p[0] * p[1] * cos(angle);
            *second = -p[1] * p[1] * swing;
            value = swing + p[3];
            break;
        }
        case MB_LAW_INPUT: value = input_law(m, record, t, rate, second); break;
        case MB_LAW_TABLE: value = table_law(m, law, t, rate, second); break;
        case MB_LAW_FORMULA: {
            const double none[2] = {0.0, 0.0}, *const own[2] = {none, mb_see_signals(m, t)};
            const bl_modes modes = law_modes(m, law);
            double jet[3];
            bl_formula_jet(m->words + record[MB_LAW_P], record[MB_LAW_N], t, own, m->p, &modes, jet);
            mb_note_formula(m, law, t, jet[0]);
            *rate = jet[1];
            *second = jet[2];
            value = jet[0];
            break;
        }
        case MB_LAW_FUNCTION:
        case MB_LAW_CURVE: value = 0.0; break;
        default: value = p[0];
    }
    return record[MB_LAW_SHIFT] ? value + quarter : value;
}

double mb_coefficient(const mb_view *m, int32_t law, double t, double x, double v) {
    const int32_t *record = m->laws + law * MB_LAW_FIELDS;
    const double *p = m->p + record[MB_LAW_P];
    double rate, second;
    t = mb_law_time(m, t);
    switch (record[MB_LAW_TYPE]) {
        case MB_LAW_CONSTANT: return p[0];
        case MB_LAW_TABLE: {
            const double at = record[MB_LAW_OF] == MB_OF_TIME ? t : record[MB_LAW_OF] == MB_OF_RATE ? v : x;
            return table_law(m, law, at, &rate, &second);
        }
        case MB_LAW_FORMULA: {
            const double values[2] = {x, v}, *const own[2] = {values, mb_see_signals(m, t)};
            double result = 0.0, *const out[1] = {&result};
            const bl_modes modes = law_modes(m, law);
            bl_formula_run(m->words + record[MB_LAW_P], record[MB_LAW_N], t, own, m->p, out, &modes);
            mb_note_formula(m, law, t, result);
            return result;
        }
        default: return mb_law(m, law, t, &rate, &second);
    }
}

double mb_unlocated_coefficient(const mb_view *m, int32_t law, double t, double x, double v) {
    mb_view own = *m;
    own.modes = (bl_modes){0};
    return mb_coefficient(&own, law, t, x, v);
}

double mb_law_next(const mb_view *m, int32_t law, double t) {
    const int32_t *record = m->laws + law * MB_LAW_FIELDS, n = record[MB_LAW_N];
    if (record[MB_LAW_TYPE] != MB_LAW_TABLE || record[MB_LAW_OF] != MB_OF_TIME) return INFINITY;
    const double *points = m->p + record[MB_LAW_P];
    if (table_is_dense(points, n, m->whole) || t >= points[n - 1]) return INFINITY;
    if (t < points[0]) return points[0];
    return table_is_linear(points, n) ? points[bl_table_find(points, n, t) + 1] : points[n - 1];
}
