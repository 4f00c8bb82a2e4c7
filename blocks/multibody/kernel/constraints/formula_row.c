/* Rows that a formula gives: Φ(x₁ … xₙ, t) = 0 of coordinates of joints, or of coordinates and angles that are measured between markers.
 *
 *     Φ̇ = Σ g_k ẋ_k + Φ_t,   c = Σ g_k ẍ_k + Σ Σ ẋ_k (∂²Φ/∂x_k∂x_l) ẋ_l + 2 Σ (∂g_k/∂t) ẋ_k + Φ_tt       g = ∂Φ/∂x, ẍ for v' = 0
 *
 * An Euler parameter of a body, x = e_k, is a measure of its own kind: ẋ = n · ω, ẍ = n · ω' - ω² x / 4, and the effort on it is the
 * torque n; see elements/formula/body_coordinates.c.
 *
 * A pass of the formula over the jets of all x and of t is Φ, Φ̇ and c; a pass in which x_k alone changes, at the rate 1, is g_k. The
 * effort on x_k is -λ g_k. Of the row, VALUE is its law, of type MB_LAW_FUNCTION or
 * MB_LAW_CURVE. */
#include <string.h>

#include "blocks/core/formula/formula.h"
#include "blocks/multibody/kernel/multibody.h"

/* The formula of a row. */
typedef struct {
    const int32_t *terms, *code;
    int32_t count, length; /* of terms, of words */
    mb_term_state *state;
    double *jets;
    bool curve; /* whether the words are those of a curve */
} mb_function;

static const int32_t *function_law(const bl_block *b, const int32_t *row) {
    return b->i + b->i[MB_AT_LAWS] + row[MB_ROW_VALUE] * MB_LAW_FIELDS;
}

static mb_function function_of(const mb_view *m, int32_t row) {
    const int32_t *law = m->laws + m->rows[row * MB_ROW_FIELDS + MB_ROW_VALUE] * MB_LAW_FIELDS;
    const int32_t *words = m->words + law[MB_LAW_P], own = law[MB_LAW_OF] * MB_TERM_FIELDS;
    const int32_t first = law[MB_LAW_P] / MB_TERM_LEAST;
    return (mb_function){.terms = words,
                         .code = words + own,
                         .count = law[MB_LAW_OF],
                         .length = law[MB_LAW_N] - own,
                         .state = m->term_state + first,
                         .jets = m->term_jets + 3 * (int64_t)first,
                         .curve = law[MB_LAW_TYPE] == MB_LAW_CURVE};
}

static const int32_t *function_term(const mb_function *f, int32_t n) { return f->terms + n * MB_TERM_FIELDS; }
static int32_t function_row_of(const mb_view *m, int32_t cut) { return m->cuts[cut * MB_CUT_FIELDS + MB_CUT_ROW]; }
static const int32_t *function_link(const mb_view *m, const int32_t *term) {
    return m->links + term[MB_TERM_PLACE] * MB_LINK_FIELDS;
}
static const int32_t *function_measure(const mb_view *m, const int32_t *term) {
    return m->measures + (-1 - term[MB_TERM_PLACE]) * MB_MEASURE_FIELDS;
}

bool mb_function_check(const bl_block *b, const int32_t *law) {
    static const int32_t result[1] = {1};
    const int32_t *head = b->i, count = law[MB_LAW_OF];
    if (!mb_in_range(count, 1, MB_TERM_MOST + 1) || law[MB_LAW_N] < count * MB_TERM_LEAST) return false;
    const int32_t own = count * MB_TERM_FIELDS;
    const int32_t *terms = b->i + head[MB_AT_WORDS] + law[MB_LAW_P];
    for (int32_t n = 0; n < count; n++) {
        const int32_t place = terms[n * MB_TERM_FIELDS + MB_TERM_PLACE],
                      sign = terms[n * MB_TERM_FIELDS + MB_TERM_SIGN];
        if (!mb_in_range(sign, -2, 3) ||
            !mb_in_range(place, sign == 0 ? -(int64_t)head[MB_MEASURES] : 0, sign == 0 ? 0 : head[MB_LINKS]))
            return false;
        if (sign == 0) continue;
        const int32_t type = b->i[head[MB_AT_LINKS] + place * MB_LINK_FIELDS + MB_LINK_TYPE];
        if (type != MB_REVOLUTE && type != MB_PRISMATIC) return false;
    }
    if (law[MB_LAW_TYPE] == MB_LAW_CURVE)
        return law[MB_LAW_N] - own >= MB_CURVE_FIELDS && mb_curve_check(b, terms + own, count);
    const bl_formula_reach reach = {
        .u_width = &count, .y_width = result, .u_count = 1, .y_count = 1, .p_count = b->p_count};
    return bl_formula_check(terms + own, law[MB_LAW_N] - own, &reach) != 0;
}

static bool formula_row_check(const bl_block *b, const int32_t *row) {
    return mb_in_range(row[MB_ROW_VALUE], 0, b->i[MB_LAWS]) &&
           (function_law(b, row)[MB_LAW_TYPE] == MB_LAW_FUNCTION || function_law(b, row)[MB_LAW_TYPE] == MB_LAW_CURVE);
}

/* Without modes: the formula is smooth. */
static void function_along(const mb_view *m, const mb_function *f, const double time[3], double jet[3]) {
    if (f->curve) {
        mb_curve_along(m->p, f->code, f->count, f->jets, jet);
        return;
    }
    const bl_modes none = {0};
    bl_formula_jet_along(f->code, f->length, time, f->jets, m->p, &none, jet);
}

static bool term_is_euler(const mb_view *m, const int32_t *term) {
    return term[MB_TERM_SIGN] == 0 && function_measure(m, term)[MB_MEASURE_TYPE] == MB_EULER;
}

/* Whether it is an angle, or a number that changes as much in a radian. */
static bool term_turns(const mb_view *m, const int32_t *term) {
    if (term[MB_TERM_SIGN] == 0) return function_measure(m, term)[MB_MEASURE_TYPE] != MB_LENGTH;
    return function_link(m, term)[MB_LINK_TYPE] == MB_REVOLUTE;
}

static double term_value(const mb_view *m, const int32_t *term, double t, const double *q) {
    double effort[3];
    if (term_is_euler(m, term)) return mb_euler_measure(m, function_measure(m, term), q, effort);
    return term[MB_TERM_SIGN] == 0 ? mb_measure(m, -1 - term[MB_TERM_PLACE], t)
                                   : mb_coordinate(term[MB_TERM_SIGN], q[function_link(m, term)[MB_LINK_Q]]);
}

static double function_value(const mb_view *m, const mb_function *f, double t, const double *q) {
    double jet[3];
    memset(f->jets, 0, 3 * (size_t)f->count * sizeof(double));
    for (int32_t n = 0; n < f->count; n++) f->jets[3 * n] = term_value(m, function_term(f, n), t, q);
    function_along(m, f, (const double[3]){t, 0.0, 0.0}, jet);
    return jet[0];
}

/* What a unit of the effort on a measured coordinate does. */
static void place_term(const mb_view *m, const int32_t *term, double t, const double *q, mb_term_state *state) {
    const int32_t measure = -1 - term[MB_TERM_PLACE], *record = function_measure(m, term);
    memset(state->F, 0, sizeof state->F);
    memset(state->N, 0, sizeof state->N);
    if (record[MB_MEASURE_TYPE] == MB_EULER) {
        memset(state->P, 0, sizeof state->P);
        (void)mb_euler_measure(m, record, q, state->N);
        return;
    }
    mb_measure_axis(m, measure, record[MB_MEASURE_TYPE] == MB_ANGLE ? state->N : state->F);
    mb_marker_motion(m, record[mb_measure_axis_on_first(m, measure) ? MB_MEASURE_J : MB_MEASURE_I], t, state->P, NULL,
                     NULL);
}

static void formula_row_place(mb_view *m, int32_t cut, double t, const double *q) {
    const int32_t row = function_row_of(m, cut);
    const mb_function f = function_of(m, row);
    double size = 1.0, jet[3];
    m->phi[row] = function_value(m, &f, t, q);
    for (int32_t n = 0; n < f.count; n++) {
        f.jets[3 * n + 1] = 1.0;
        function_along(m, &f, (const double[3]){t, 0.0, 0.0}, jet);
        f.jets[3 * n + 1] = 0.0;
        f.state[n].slope = jet[1];
        /* A slope that vanishes here, as that of sin x, may not a radian away. */
        f.state[n].reach = term_turns(m, function_term(&f, n)) ? fmax(fabs(jet[1]), fabs(jet[2])) : fabs(jet[1]);
        size = fmax(size, fabs(jet[1] * f.jets[3 * n]));
        if (function_term(&f, n)[MB_TERM_SIGN] == 0) place_term(m, function_term(&f, n), t, q, &f.state[n]);
    }
    m->row_state[row].size = size;
}

static void formula_row_rate(mb_view *m, int32_t cut, double t, const double *v) {
    const int32_t row = function_row_of(m, cut);
    const mb_function f = function_of(m, row);
    double jet[3];
    for (int32_t n = 0; n < f.count; n++) {
        const int32_t *term = function_term(&f, n), sign = term[MB_TERM_SIGN];
        double *x = f.jets + 3 * n;
        x[2] = 0.0;
        if (term_is_euler(m, term))
            x[1] = mb_euler_measure_rate(m, function_measure(m, term), f.state[n].N, x[0], &x[2]);
        else if (sign == 0) x[1] = mb_measure_rate(m, -1 - term[MB_TERM_PLACE], t, &x[2]);
        else x[1] = sign < 0 ? -v[function_link(m, term)[MB_LINK_V]] : v[function_link(m, term)[MB_LINK_V]];
    }
    function_along(m, &f, (const double[3]){t, 1.0, 0.0}, jet);
    m->phi_rate[row] = jet[1];
    m->bias[row] = jet[2];
    for (int32_t n = 0; n < f.count; n++) f.jets[3 * n + 1] = f.jets[3 * n + 2] = 0.0;
}

/* The rate of a measured coordinate because laws move its markers, which are points. */
static double term_drive(const mb_view *m, const int32_t *measure, const mb_term_state *state, double t) {
    double sum = 0.0;
    for (int side = 0; side < 2; side++) {
        const int32_t marker = measure[side ? MB_MEASURE_J : MB_MEASURE_I];
        double P[3], V[3], fixed[3];
        mb_marker_motion(m, marker, t, P, V, NULL);
        mb_marker_velocity(m, marker, P, fixed);
        mb_axpy(-1.0, fixed, V);
        sum += (side ? 1.0 : -1.0) * mb_dot(state->F, V);
    }
    return sum;
}

double mb_formula_row_drive(const mb_view *m, int32_t row, double t) {
    const mb_function f = function_of(m, row);
    double jet[3];
    function_along(m, &f, (const double[3]){t, 1.0, 0.0}, jet);
    for (int32_t n = 0; n < f.count; n++)
        if (function_term(&f, n)[MB_TERM_SIGN] == 0)
            jet[1] += f.state[n].slope * term_drive(m, function_measure(m, function_term(&f, n)), &f.state[n], t);
    return jet[1];
}

/* Whether a link carries another; parents have lower numbers. */
static bool function_carries(const mb_view *m, int32_t link, int32_t other) {
    while (other > link) other = m->links[other * MB_LINK_FIELDS + MB_LINK_PARENT];
    return other == link;
}

/* What a unit speed of a path does to a measured coordinate. */
static double term_slope(const mb_view *m, const int32_t *measure, const mb_term_state *state, const int32_t *path) {
    const int32_t l = path[MB_PATH_LINK], type = m->links[l * MB_LINK_FIELDS + MB_LINK_TYPE];
    const bool on_i = function_carries(m, l, mb_link_of(m, measure[MB_MEASURE_I])),
               on_j = function_carries(m, l, mb_link_of(m, measure[MB_MEASURE_J]));
    if (on_i == on_j) return 0.0;
    const mb_link_state *s = &m->link[l];
    double axis[3], moved[3], arm[3], sum;
    if (type == MB_SPHERICAL) mb_column(s->R, path[MB_PATH_AXIS], axis);
    else mb_copy(s->axis, axis);
    if (type == MB_PRISMATIC) {
        sum = mb_dot(state->F, axis);
    } else {
        mb_sub(state->P, s->p, arm);
        mb_cross(axis, arm, moved);
        sum = mb_dot(state->F, moved) + mb_dot(state->N, axis);
    }
    return on_j ? sum : -sum;
}

static double formula_row_slope(const mb_view *m, int32_t cut, const int32_t *path) {
    const mb_function f = function_of(m, function_row_of(m, cut));
    double sum = 0.0;
    for (int32_t n = 0; n < f.count; n++) {
        const int32_t *term = function_term(&f, n);
        const mb_term_state *state = &f.state[n];
        if (term[MB_TERM_SIGN] == 0) sum += state->slope * term_slope(m, function_measure(m, term), state, path);
        else if (path[MB_PATH_LINK] == term[MB_TERM_PLACE])
            sum += term[MB_TERM_SIGN] < 0 ? -state->slope : state->slope;
    }
    return sum;
}

/* What a unit speed of a path could do to a measured coordinate at the most, in other poses of what is between. */
static double term_reach(const mb_view *m, const int32_t *measure, const mb_term_state *state, const int32_t *path) {
    const int32_t l = path[MB_PATH_LINK], kind = measure[MB_MEASURE_TYPE];
    const bool slides = m->links[l * MB_LINK_FIELDS + MB_LINK_TYPE] == MB_PRISMATIC;
    if (function_carries(m, l, mb_link_of(m, measure[MB_MEASURE_I])) ==
        function_carries(m, l, mb_link_of(m, measure[MB_MEASURE_J])))
        return 0.0;
    if (kind != MB_LENGTH) return slides ? 0.0 : kind == MB_EULER ? 0.5 : 1.0;
    if (slides) return 1.0;
    double arm[3];
    mb_sub(state->P, m->link[l].p, arm);
    return sqrt(mb_dot(arm, arm));
}

static double formula_row_reach(const mb_view *m, int32_t cut, const int32_t *path) {
    const mb_function f = function_of(m, function_row_of(m, cut));
    double sum = 0.0;
    for (int32_t n = 0; n < f.count; n++) {
        const int32_t *term = function_term(&f, n);
        if (term[MB_TERM_SIGN] == 0)
            sum += f.state[n].reach * term_reach(m, function_measure(m, term), &f.state[n], path);
        else if (path[MB_PATH_LINK] == term[MB_TERM_PLACE]) sum += f.state[n].reach;
    }
    return sum;
}

static int32_t formula_row_next_pair(const mb_view *m, int32_t cut, int32_t from, mb_pair *pair) {
    const mb_function f = function_of(m, function_row_of(m, cut));
    for (int32_t n = from; n < f.count; n++) {
        const int32_t *term = function_term(&f, n);
        const mb_term_state *state = &f.state[n];
        if (term[MB_TERM_SIGN] != 0) continue; /* efforts along tree coordinates do not load a joint */
        memset(pair, 0, sizeof *pair);
        pair->i = function_measure(m, term)[MB_MEASURE_I], pair->j = function_measure(m, term)[MB_MEASURE_J];
        mb_copy(state->P, pair->P);
        mb_axpy(state->slope, state->F, pair->F);
        mb_axpy(state->slope, state->N, pair->N);
        return n + 1;
    }
    return -1;
}

static bool formula_row_turns(const mb_view *m, int32_t cut) {
    (void)m, (void)cut;
    return false;
}

/* Angles start in the turn in which Φ is least, one after the other; drivers choose theirs after that. */
static void formula_row_start_turns(const mb_view *m, int32_t cut, double t, double *q) {
    const double full = 6.283185307179586;
    const mb_function f = function_of(m, function_row_of(m, cut));
    for (int32_t n = f.count - 1; n >= 0; n--) {
        const int32_t *term = function_term(&f, n), sign = term[MB_TERM_SIGN];
        const bool angle = sign == 0 ? function_measure(m, term)[MB_MEASURE_TYPE] == MB_ANGLE
                                     : function_link(m, term)[MB_LINK_TYPE] == MB_REVOLUTE;
        if (!angle) continue;
        double jet[3];
        const double phi = function_value(m, &f, t, q);
        f.jets[3 * n + 1] = 1.0;
        function_along(m, &f, (const double[3]){t, 0.0, 0.0}, jet);
        const double turns = -nearbyint(phi / (jet[1] * full));
        if (!isfinite(turns) || turns == 0.0 || fabs(turns) > 1e9) continue;
        double *value = sign == 0 ? &m->turns[-1 - term[MB_TERM_PLACE]] : &q[function_link(m, term)[MB_LINK_Q]];
        const double before = *value;
        *value += (sign < 0 ? -full : full) * turns;
        if (!(fabs(function_value(m, &f, t, q)) < 0.5 * fabs(phi))) *value = before;
    }
}

static bool formula_row_sound(const mb_view *m, int32_t cut, mb_fault *fault) {
    const mb_function f = function_of(m, function_row_of(m, cut));
    for (int32_t at = 0; !f.curve && at < f.length;) {
        const int32_t opcode = f.code[at++];
        if (opcode == BL_FORMULA_PARAMETER && !mb_allow(fault, "a parameter", m->p[f.code[at]], MB_ALLOWED_FINITE))
            return false;
        if (opcode == BL_FORMULA_PARAMETER) at++;
        else if (opcode == BL_FORMULA_CONSTANT || opcode == BL_FORMULA_INPUT || opcode == BL_FORMULA_STORE) at += 2;
    }
    return true;
}

const mb_coordinate_row mb_row_formula = {.check = formula_row_check,
                                          .place = formula_row_place,
                                          .rate = formula_row_rate,
                                          .slope = formula_row_slope,
                                          .reach = formula_row_reach,
                                          .next_pair = formula_row_next_pair,
                                          .turns = formula_row_turns,
                                          .start_turns = formula_row_start_turns,
                                          .sound = formula_row_sound};
