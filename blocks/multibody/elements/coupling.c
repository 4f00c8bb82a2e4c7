/* Couplings of two joint coordinates: gears, belts, racks and screws.
 *
 *     Φ = x₂ - r x₁ - s = 0        P: the ratio r, the offset s
 *
 * The effort on the second coordinate is -λ, that on the first r λ: together they do no work. Of the row, I and J are the link of each
 * coordinate, which alone moves by it, or -1 - its measure; A and B are its sign in the tree, ±2 where the tree is a quarter turn ahead, or
 * 0 where it is measured; VALUE is P. The wrenches of a multiplier on the bodies of a measured coordinate are stored in the marker data
 * of the closure. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

enum { COUPLING_RATIO, COUPLING_OFFSET, COUPLING_NUMBERS };
BL_SHARED enum { COUPLING_SHOWN_REACTION, COUPLING_SHOWN_COUNT };

/* One of the two coordinates, as a row has it. */
typedef struct {
    int32_t place, sign;
    double factor; /* ∂Φ/∂x */
} mb_side;

static int32_t coupling_row_of(const mb_view *m, int32_t cut) { return m->cuts[cut * MB_CUT_FIELDS + MB_CUT_ROW]; }

static mb_side coupling_side_of(const mb_view *m, int32_t row, int side) {
    const int32_t *record = m->rows + row * MB_ROW_FIELDS;
    const double factor = side == 0 ? -m->p[record[MB_ROW_VALUE] + COUPLING_RATIO] : 1.0;
    return (mb_side){record[MB_ROW_I + side], record[MB_ROW_A + side], factor};
}

double mb_coupling_factor(const mb_view *m, int32_t row) { return coupling_side_of(m, row, 0).factor; }

static const int32_t *coupling_link_record(const mb_view *m, int32_t link) { return m->links + link * MB_LINK_FIELDS; }
static const int32_t *coupling_measure_record(const mb_view *m, mb_side x) {
    return m->measures + (-1 - x.place) * MB_MEASURE_FIELDS;
}
static int32_t coupling_marker_link(const mb_view *m, int32_t marker) {
    return m->markers[marker * MB_MARKER_FIELDS + MB_MARKER_LINK];
}

static bool coupling_is_angle(const mb_view *m, mb_side x) {
    return x.sign == 0 ? coupling_measure_record(m, x)[MB_MEASURE_TYPE] == MB_ANGLE
                       : coupling_link_record(m, x.place)[MB_LINK_TYPE] == MB_REVOLUTE;
}

static double coupling_value_of(const mb_view *m, mb_side x, double t, const double *q) {
    return x.sign == 0 ? mb_measure(m, -1 - x.place, t)
                       : mb_coordinate(x.sign, q[coupling_link_record(m, x.place)[MB_LINK_Q]]);
}

static double coupling_rate_of(const mb_view *m, mb_side x, double t, const double *v, double *second) {
    *second = 0.0;
    if (x.sign == 0) return mb_measure_rate(m, -1 - x.place, t, second);
    const double speed = v[coupling_link_record(m, x.place)[MB_LINK_V]];
    return x.sign < 0 ? -speed : speed;
}

static bool coupling_check_row(const bl_block *b, const int32_t *row) {
    const int32_t *head = b->i;
    for (int side = 0; side < 2; side++) {
        const int32_t place = row[MB_ROW_I + side], sign = row[MB_ROW_A + side];
        if (!mb_in_range(sign, -2, 3) ||
            !mb_in_range(place, sign == 0 ? -(int64_t)head[MB_MEASURES] : 0, sign == 0 ? 0 : head[MB_LINKS]))
            return false;
        if (sign == 0) continue;
        const int32_t type = b->i[head[MB_AT_LINKS] + place * MB_LINK_FIELDS + MB_LINK_TYPE];
        if (type != MB_REVOLUTE && type != MB_PRISMATIC) return false;
    }
    return mb_in_range(row[MB_ROW_VALUE], 0, (int64_t)b->p_count - COUPLING_NUMBERS + 1);
}

/* For a measured coordinate, ∂Φ/∂x times its axis, and the point of application of forces along it. */
static void coupling_place_side(const mb_view *m, mb_side x, double t, double *axis, double *P) {
    const int32_t measure = -1 - x.place, *record = coupling_measure_record(m, x);
    mb_measure_axis(m, measure, axis);
    for (int k = 0; k < 3; k++) axis[k] *= x.factor;
    mb_marker_motion(m, record[mb_measure_axis_on_first(m, measure) ? MB_MEASURE_J : MB_MEASURE_I], t, P, NULL, NULL);
}

static void coupling_place(mb_view *m, int32_t cut, double t, const double *q) {
    const int32_t row = coupling_row_of(m, cut);
    const mb_side first = coupling_side_of(m, row, 0), second = coupling_side_of(m, row, 1);
    mb_cut_state *state = &m->cut_state[cut];
    const double x = coupling_value_of(m, second, t, q), moved = first.factor * coupling_value_of(m, first, t, q);
    const double offset = m->p[m->rows[row * MB_ROW_FIELDS + MB_ROW_VALUE] + COUPLING_OFFSET];
    m->phi[row] = x + moved - offset;
    m->row_state[row].size = fmax(1.0, fmax(fabs(x), fmax(fabs(moved), fabs(offset))));
    if (first.sign == 0) coupling_place_side(m, first, t, state->local_i, state->P_i);
    if (second.sign == 0) coupling_place_side(m, second, t, state->local_j, state->P_j);
}

static void coupling_rate(mb_view *m, int32_t cut, double t, const double *v) {
    const int32_t row = coupling_row_of(m, cut);
    m->phi_rate[row] = m->bias[row] = 0.0;
    for (int side = 0; side < 2; side++) {
        const mb_side x = coupling_side_of(m, row, side);
        double second;
        m->phi_rate[row] += x.factor * coupling_rate_of(m, x, t, v, &second);
        m->bias[row] += x.factor * second;
    }
}

/* Whether a link carries another; parents have lower numbers. */
static bool coupling_carries(const mb_view *m, int32_t link, int32_t other) {
    while (other > link) other = coupling_link_record(m, other)[MB_LINK_PARENT];
    return other == link;
}

/* What a unit speed of a path does to a measured coordinate, times ∂Φ/∂x. */
static double coupling_measured_slope(const mb_view *m, const int32_t *measure, const double *factor_axis,
                                      const double *P, const int32_t *path) {
    const int32_t l = path[MB_PATH_LINK], type = coupling_link_record(m, l)[MB_LINK_TYPE];
    const bool on_i = coupling_carries(m, l, coupling_marker_link(m, measure[MB_MEASURE_I])),
               on_j = coupling_carries(m, l, coupling_marker_link(m, measure[MB_MEASURE_J]));
    if (on_i == on_j) return 0.0;
    const mb_link_state *s = &m->link[l];
    double axis[3], moved[3], arm[3];
    if (type == MB_SPHERICAL) mb_column(s->R, path[MB_PATH_AXIS], axis);
    else mb_copy(s->axis, axis);
    mb_copy(axis, moved);
    if (measure[MB_MEASURE_TYPE] == MB_ANGLE) {
        if (type == MB_PRISMATIC) return 0.0;
    } else if (type != MB_PRISMATIC) {
        mb_sub(P, s->p, arm);
        mb_cross(axis, arm, moved);
    }
    return on_j ? mb_dot(factor_axis, moved) : -mb_dot(factor_axis, moved);
}

static double coupling_slope(const mb_view *m, int32_t cut, const int32_t *path) {
    const mb_cut_state *state = &m->cut_state[cut];
    double sum = 0.0;
    for (int side = 0; side < 2; side++) {
        const mb_side x = coupling_side_of(m, coupling_row_of(m, cut), side);
        if (x.sign == 0)
            sum += coupling_measured_slope(m, coupling_measure_record(m, x), side ? state->local_j : state->local_i,
                                           side ? state->P_j : state->P_i, path);
        else if (path[MB_PATH_LINK] == x.place) sum += x.sign < 0 ? -x.factor : x.factor;
    }
    return sum;
}

static int32_t coupling_next_pair(const mb_view *m, int32_t cut, int32_t from, mb_pair *pair) {
    const mb_cut_state *state = &m->cut_state[cut];
    for (int32_t side = from; side < 2; side++) {
        const mb_side x = coupling_side_of(m, coupling_row_of(m, cut), side);
        if (x.sign != 0) continue; /* efforts along tree coordinates do not load a joint */
        memset(pair, 0, sizeof *pair);
        pair->i = coupling_measure_record(m, x)[MB_MEASURE_I], pair->j = coupling_measure_record(m, x)[MB_MEASURE_J];
        mb_copy(side ? state->P_j : state->P_i, pair->P);
        mb_copy(side ? state->local_j : state->local_i, coupling_is_angle(m, x) ? pair->N : pair->F);
        return side + 1;
    }
    return -1;
}

static bool coupling_turns(const mb_view *m, int32_t cut) {
    return coupling_is_angle(m, coupling_side_of(m, coupling_row_of(m, cut), 1));
}

static void coupling_shift(const mb_view *m, mb_side x, double by, double *q) {
    if (x.sign == 0) m->turns[-1 - x.place] += by;
    else q[coupling_link_record(m, x.place)[MB_LINK_Q]] += x.sign < 0 ? -by : by;
}

static double coupling_open_by(const mb_view *m, int32_t row, double t, const double *q) {
    const mb_side first = coupling_side_of(m, row, 0), second = coupling_side_of(m, row, 1);
    return coupling_value_of(m, second, t, q) + first.factor * coupling_value_of(m, first, t, q) -
           m->p[m->rows[row * MB_ROW_FIELDS + MB_ROW_VALUE] + COUPLING_OFFSET];
}

/* Angles may start at π or at -π: those are taken with which Φ is least. */
static void coupling_start_turns(const mb_view *m, int32_t cut, double t, double *q) {
    const double full = 6.283185307179586;
    const int32_t row = coupling_row_of(m, cut);
    const mb_side first = coupling_side_of(m, row, 0), second = coupling_side_of(m, row, 1);
    const double phi = coupling_open_by(m, row, t, q);
    double least = (1.0 - 1e-9) * fabs(phi), turns_of[2] = {0.0, 0.0};
    for (int a = -1; a <= 1; a++)
        for (int b = -1; b <= 1; b++) {
            if ((a != 0 && !coupling_is_angle(m, first)) || (b != 0 && !coupling_is_angle(m, second))) continue;
            const double left = fabs(phi + full * (b + first.factor * a));
            if (left < least) least = left, turns_of[0] = full * a, turns_of[1] = full * b;
        }
    coupling_shift(m, first, turns_of[0], q);
    coupling_shift(m, second, turns_of[1], q);
}

/* Whether a driver or a prescribed value determines the turn of a measured coordinate. */
static bool coupling_turn_is_given(const mb_view *m, int32_t measure) {
    for (int32_t k = 0; k < m->row_count; k++) {
        const int32_t *row = m->rows + k * MB_ROW_FIELDS;
        if (row[MB_ROW_TYPE] == MB_ROW_DRIVEN_ANGLE && row[MB_ROW_A] == measure) return true;
    }
    for (int32_t n = 0; n < m->keep_count; n++) {
        const int32_t *keep = mb_keep_record(m, n);
        if (keep[MB_KEEP_RATE] == 0 && keep[MB_KEEP_SIGN] == 0 && keep[MB_KEEP_INDEX] == measure) return true;
    }
    return false;
}

/* Closing cannot turn a measured angle by whole turns, as it does one of the tree: it starts in that in which Φ is least. */
static void coupling_follow_turns(const mb_view *m, int32_t cut, double t, double *q) {
    const double full = 6.283185307179586;
    const int32_t row = coupling_row_of(m, cut);
    for (int side = 1; side >= 0; side--) {
        const mb_side x = coupling_side_of(m, row, side);
        if (x.sign != 0 || x.factor == 0.0 || !coupling_is_angle(m, x) || coupling_turn_is_given(m, -1 - x.place))
            continue;
        const double turns = nearbyint(coupling_open_by(m, row, t, q) / (x.factor * full));
        if (isfinite(turns)) coupling_shift(m, x, -full * turns, q);
    }
}

const mb_coordinate_row mb_row_coupling = {.check = coupling_check_row,
                                           .place = coupling_place,
                                           .rate = coupling_rate,
                                           .slope = coupling_slope,
                                           .next_pair = coupling_next_pair,
                                           .turns = coupling_turns,
                                           .start_turns = coupling_start_turns,
                                           .follow_turns = coupling_follow_turns};

/* As an element it has no load: LAW is its row. */
static bool coupling_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    (void)tally;
    const int32_t row = force[MB_FORCE_LAW];
    if (!mb_in_range(row, 0, b->i[MB_ROWS])) return false;
    const int32_t *record = b->i + b->i[MB_AT_ROWS] + row * MB_ROW_FIELDS;
    return record[MB_ROW_TYPE] == MB_ROW_COUPLING && record[MB_ROW_VALUE] == force[MB_FORCE_P];
}

static bool coupling_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    const double *p = m->p + force[MB_FORCE_P];
    return mb_allow(fault, "ratio", p[COUPLING_RATIO], MB_ALLOWED_NOT_ZERO) &&
           mb_allow(fault, "offset", p[COUPLING_OFFSET], MB_ALLOWED_FINITE);
}

/* What passes from the first coordinate to the second. */
static double coupling_power(mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    (void)q;
    double second;
    return -m->lambda[force[MB_FORCE_LAW]] *
           coupling_rate_of(m, coupling_side_of(m, force[MB_FORCE_LAW], 1), t, v, &second);
}

static int32_t coupling_width(const int32_t *force, int32_t what) {
    (void)force;
    return mb_in_range(what, 0, COUPLING_SHOWN_COUNT) ? 1 : -1;
}

static int coupling_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what,
                         double *y) {
    (void)t, (void)q, (void)v, (void)what;
    *y = -m->lambda[force[MB_FORCE_LAW]] * coupling_side_of(m, force[MB_FORCE_LAW], 0).factor;
    return BL_OK;
}

static bool coupling_needs_solution(const int32_t *force, int32_t what) {
    (void)force, (void)what;
    return true;
}

const mb_element mb_element_coupling = {.check = coupling_check,
                                        .sound = coupling_sound,
                                        .power = coupling_power,
                                        .width = coupling_width,
                                        .show = coupling_show,
                                        .needs_solution = coupling_needs_solution};
