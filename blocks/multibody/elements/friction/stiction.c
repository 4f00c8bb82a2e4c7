/* Coulomb friction with sticking on a joint coordinate, under a given normal load.
 *
 * With the rate v of the coordinate:
 *     slides in direction d = ±1     effort = -viscous v - coulomb d                    until d v < 0
 *     sticks                         v = 0, effort f such that v' = 0                   until |f| > static ≥ coulomb
 * Then it slides in the direction of -f. The direction is memory: it changes at events, at ticks where inputs may have changed, and only
 * at ticks where events are not located.
 *
 * The efforts of all joints that stick follow from the solution without them and from the responses R_n of the mechanism at rest to
 * a unit effort in each, as in joint_friction.c: with F_k the generalized forces of a unit effort, the rate of coordinate k under
 * the speeds v is F_kᵀ v, and Σ_n F_kᵀ R_n f_n = -v'_k. By the same matrix an impulse stops joints whose rates are not 0.
 *
 * Joints whose limit follows from their reaction (joint_stiction.c) have the same modes. In mechanisms with friction from reactions all
 * joints are solved together: sticking.c.
 *
 * P: viscous, coulomb, static. */
#include <string.h>

#include "blocks/multibody/elements/friction/friction.h"

enum { STICTION_VISCOUS, STICTION_COULOMB, STICTION_STATIC, STICTION_NUMBERS };
BL_SHARED enum { STICTION_SHOWN_EFFORT, STICTION_SHOWN_POWER_LOSS, STICTION_SHOWN_STICKS, STICTION_SHOWN_COUNT };

static const double STICTION_STILL = 1e-12;  /* m/s or rad/s, or of the largest speed: no motion */
static const double STICTION_HELD = 1e-9;  /* of the response of the free coordinate: constraints hold it */
static const double STICTION_DEPENDENT = 1e-9;  /* of a diagonal: what elimination leaves of it */
static const double STICTION_STOPS = 100.0; /* of the impulse of the largest effort in a step: what stops a joint */
static const double STICTION_ROUNDING = 1e-9; /* of the largest acceleration, or m/s², rad/s² */

static bool stiction_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    return mb_check_coordinate(b, force) && mb_check_numbers(b, force, STICTION_NUMBERS) &&
           force[MB_FORCE_LAW] == tally->stictions++;
}

static bool stiction_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    const double *p = m->p + force[MB_FORCE_P];
    return mb_allow(fault, "viscous", p[STICTION_VISCOUS], MB_ALLOWED_NOT_NEGATIVE) &&
           mb_allow(fault, "coulomb", p[STICTION_COULOMB], MB_ALLOWED_NOT_NEGATIVE) &&
           mb_allow(fault, "static", p[STICTION_STATIC], MB_ALLOWED_NOT_NEGATIVE) &&
           (p[STICTION_COULOMB] == p[STICTION_STATIC] ||
            mb_allow_below(fault, "coulomb", p[STICTION_COULOMB], "static", p[STICTION_STATIC]));
}

bool mb_has_stick_mode(const int32_t *force) {
    return force[MB_FORCE_TYPE] == MB_STICTION || force[MB_FORCE_TYPE] == MB_JOINT_STICTION;
}

/* The memory may come from a saved state, which may hold anything. */
int mb_stick_mode(const mb_view *m, const int32_t *force) {
    const double slips = fabs(m->stick.slips[force[MB_FORCE_LAW]]);
    if (slips > 1.0 && m->head[MB_JOINT_FRICTIONS] > 0) return MB_YIELDS;
    return slips > 0.0 ? MB_SLIPS : MB_HOLDS;
}

double mb_stick_direction(const mb_view *m, const int32_t *force) {
    const double slips = m->stick.slips[force[MB_FORCE_LAW]];
    return slips > 0.0 ? 1.0 : slips < 0.0 ? -1.0 : 0.0;
}

void mb_set_stick_mode(const mb_view *m, const int32_t *force, int mode, double direction) {
    m->stick.slips[force[MB_FORCE_LAW]] = mode == MB_HOLDS ? 0.0 : direction > 0.0 ? mode : -mode;
}

static double stiction_effort(const mb_view *m, const int32_t *force, double t, double x, double v) {
    (void)t, (void)x;
    const double *p = m->p + force[MB_FORCE_P], direction = mb_stick_direction(m, force);
    const bl_modes modes = mb_element_modes(m, force);
    const bool yields = mb_stick_mode(m, force) == MB_YIELDS;
    if (direction == 0.0) return m->stick.effort[force[MB_FORCE_LAW]];
    if (modes.mode) modes.crossing[0] = yields ? 1.0 : direction * v;
    if (yields) return -p[STICTION_STATIC] * direction;
    return -p[STICTION_VISCOUS] * v - p[STICTION_COULOMB] * direction;
}

static void stiction_load(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                          double *joint_force) {
    mb_push_coordinate(m, force, t, q, v, stiction_effort, joint_force);
}

/* A joint that sticks has no rate. */
static double stiction_loss(mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    (void)q;
    if (mb_stick_mode(m, force) != MB_SLIPS) return 0.0;
    const double rate = mb_joint_rate(m, force, t, v);
    return -(stiction_effort(m, force, t, 0.0, rate) * rate);
}

static int32_t stiction_width(const int32_t *force, int32_t what) {
    (void)force;
    return mb_in_range(what, 0, STICTION_SHOWN_COUNT) ? 1 : -1;
}

static bool stiction_needs_solution(const int32_t *force, int32_t what) {
    (void)force;
    return what == STICTION_SHOWN_EFFORT;
}

static int stiction_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what,
                         double *y) {
    switch (what) {
        case STICTION_SHOWN_EFFORT: *y = stiction_effort(m, force, t, 0.0, mb_joint_rate(m, force, t, v)); break;
        case STICTION_SHOWN_POWER_LOSS: *y = stiction_loss(m, force, t, q, v); break;
        default: *y = mb_stick_mode(m, force) != MB_SLIPS;
    }
    return BL_OK;
}

const mb_element mb_element_stiction = {.on_coordinate = true,
                                        .crossing_count = 1,
                                        .check = stiction_check,
                                        .sound = stiction_sound,
                                        .load = stiction_load,
                                        .loss = stiction_loss,
                                        .width = stiction_width,
                                        .needs_solution = stiction_needs_solution,
                                        .show = stiction_show};

const int32_t *mb_next_holding(const mb_view *m, const int32_t *force) {
    int32_t n = force ? mb_element_number(m, force) + 1 : 0;
    for (; m->stick.count > 0 && n < m->head[MB_FORCES]; n++) {
        const int32_t *record = mb_force_record(m, n);
        if (mb_has_stick_mode(record) && mb_stick_mode(m, record) == MB_HOLDS) return record;
    }
    return NULL;
}

bool mb_sticks(const mb_view *m) { return m->stick.count > 0 && mb_next_holding(m, NULL) != NULL; }

bool mb_stick_push(mb_view *still, const int32_t *force, double t) {
    const int32_t i = force[MB_FORCE_I];
    memset(still->force, 0, (size_t)still->nv * sizeof(double));
    mb_clear_links(still);
    if (i < 0) mb_measure_push(still, -1 - i, t, 1.0);
    else still->force[force[MB_FORCE_J]] = force[MB_FORCE_EXTRA] < 0 ? -1.0 : 1.0;
    return i < 0;
}

/* Generalized forces of a unit effort, and the response to it. */
void mb_stick_respond(mb_view *still, const int32_t *force, double t) {
    const int32_t number = force[MB_FORCE_LAW], nv = still->nv;
    double *unit = still->stick.unit + (int64_t)number * nv, scale = 0.0, moved = 0.0;
    still->acceleration = still->stick.acceleration + (int64_t)number * nv;
    still->lambda = still->stick.lambda + (int64_t)number * still->row_count;
    mb_respond(still, mb_stick_push(still, force, t), 0.0);
    memcpy(unit, still->force, (size_t)nv * sizeof(double));
    for (int32_t k = 0; k < nv; k++) {
        scale += unit[k] * unit[k] / still->mass_diagonal[still->permutation[k]];
        moved += unit[k] * still->acceleration[k];
    }
    still->stick.held[number] = moved <= STICTION_HELD * scale;
}

/* Responses of all joints that stick; needs K factored. */
static void stiction_respond_all(mb_view *m, double t) {
    mb_view still = mb_view_at_rest(m);
    for (const int32_t *force = mb_next_holding(m, NULL); force; force = mb_next_holding(m, force))
        mb_stick_respond(&still, force, t);
}

/* Solves Σ_n F_kᵀ R_n f_n = right_k for the joints that stick and are not held, by Cholesky's method; f is in `right`, 0 for those that
   are held. Returns whether there is one solution. */
static bool stiction_solve(mb_view *m) {
    mb_stiction *s = &m->stick;
    int32_t count = 0;
    if (m->head[MB_JOINT_FRICTIONS] > 0) {
        mb_solve_sticking(m);
        return true;
    }
    for (const int32_t *force = mb_next_holding(m, NULL); force; force = mb_next_holding(m, force)) {
        if (s->held[force[MB_FORCE_LAW]] != 0.0) s->right[force[MB_FORCE_LAW]] = 0.0;
        else s->order[count++] = mb_element_number(m, force);
    }
    for (int32_t a = 0; a < count; a++) {
        const int32_t k = mb_force_record(m, s->order[a])[MB_FORCE_LAW];
        const double *unit = s->unit + (int64_t)k * m->nv;
        double *row = s->matrix + (int64_t)a * s->count, whole = 0.0;
        for (int32_t b = 0; b <= a; b++) {
            const int32_t n = mb_force_record(m, s->order[b])[MB_FORCE_LAW];
            const double *response = s->acceleration + (int64_t)n * m->nv, *other = s->matrix + (int64_t)b * s->count;
            whole = 0.0;
            for (int32_t j = 0; j < m->nv; j++) whole += unit[j] * response[j];
            row[b] = whole;
            for (int32_t c = 0; c < b; c++) row[b] -= row[c] * other[c];
            if (b < a) row[b] /= other[b];
        }
        if (!(row[a] > STICTION_DEPENDENT * whole)) {
            m->ambiguous_friction = s->order[a];
            return false;
        }
        row[a] = sqrt(row[a]);
        for (int32_t c = 0; c < a; c++) s->right[k] -= row[c] * s->right[mb_force_record(m, s->order[c])[MB_FORCE_LAW]];
        s->right[k] /= row[a];
    }
    for (int32_t a = count - 1; a >= 0; a--) {
        double *found = &s->right[mb_force_record(m, s->order[a])[MB_FORCE_LAW]];
        for (int32_t c = a + 1; c < count; c++)
            *found -= s->matrix[(int64_t)c * s->count + a] * s->right[mb_force_record(m, s->order[c])[MB_FORCE_LAW]];
        *found /= s->matrix[(int64_t)a * s->count + a];
    }
    return true;
}

/* Adds the responses times `right` to speeds or accelerations, and to λ if not NULL. */
static void stiction_superpose(const mb_view *m, double *speeds, double *lambda) {
    const mb_stiction *s = &m->stick;
    for (const int32_t *force = mb_next_holding(m, NULL); force; force = mb_next_holding(m, force)) {
        const int32_t n = force[MB_FORCE_LAW];
        if (s->held[n] != 0.0) continue;
        for (int32_t k = 0; k < m->nv; k++) speeds[k] += s->right[n] * s->acceleration[(int64_t)n * m->nv + k];
        for (int32_t k = 0; lambda && k < m->row_count; k++)
            lambda[k] += s->right[n] * s->lambda[(int64_t)n * m->row_count + k];
    }
}

/* Coordinates of the tree that stick are exactly at rest. */
static void stiction_clear(const mb_view *m, double *speeds) {
    for (const int32_t *force = mb_next_holding(m, NULL); force; force = mb_next_holding(m, force))
        if (force[MB_FORCE_I] >= 0 && m->stick.held[force[MB_FORCE_LAW]] == 0.0) speeds[force[MB_FORCE_J]] = 0.0;
}

double mb_stick_second(const mb_view *m, const int32_t *force, double t) {
    const int32_t i = force[MB_FORCE_I];
    double second = m->acceleration[force[MB_FORCE_J]];
    if (i < 0) (void)mb_measure_rate(m, -1 - i, t, &second);
    return i >= 0 && force[MB_FORCE_EXTRA] < 0 ? -second : second;
}

void mb_stick_apply(mb_view *m) {
    mb_stiction *s = &m->stick;
    double *more = m->step;
    memset(more, 0, (size_t)m->nv * sizeof(double));
    stiction_superpose(m, more, m->lambda);
    for (int32_t k = 0; k < m->nv; k++) m->acceleration[k] += more[k];
    stiction_clear(m, m->acceleration);
    mb_set_accelerations(m, more);
    for (const int32_t *force = mb_next_holding(m, NULL); force; force = mb_next_holding(m, force))
        s->effort[force[MB_FORCE_LAW]] = s->right[force[MB_FORCE_LAW]];
}

bool mb_stick(mb_view *m, double t) {
    mb_stiction *s = &m->stick;
    if (m->head[MB_JOINT_FRICTIONS] > 0 || !mb_sticks(m)) return true;
    if (m->row_count == 0) { /* the recursion of a tree has left no factors */
        mb_mass(m);
        mb_build_k(m);
        if (!mb_factor(m)) return false;
    }
    for (const int32_t *force = mb_next_holding(m, NULL); force; force = mb_next_holding(m, force)) {
        const int32_t n = force[MB_FORCE_LAW];
        s->right[n] = -mb_stick_second(m, force, t);
    }
    stiction_respond_all(m, t);
    if (!stiction_solve(m)) return false;
    mb_stick_apply(m);
    return true;
}

double mb_stick_still(const mb_view *m, const double *v) { return STICTION_STILL * fmax(1.0, mb_largest(v, m->nv)); }

double mb_stick_limit(const mb_view *m, const int32_t *force) {
    if (force[MB_FORCE_TYPE] == MB_JOINT_STICTION) return mb_joint_stiction_limit(m, force);
    return m->p[force[MB_FORCE_P] + STICTION_STATIC];
}

/* One that constraints hold slides where these move it; and so does one that others would have to hold, but move. */
double mb_stick_spare(const mb_view *m, const int32_t *force, double t, const double *v) {
    const int32_t n = force[MB_FORCE_LAW];
    if (m->stick.held[n] != 0.0) return mb_stick_still(m, v) - fabs(mb_joint_rate(m, force, t, v));
    if (m->head[MB_JOINT_FRICTIONS] > 0 && m->stick.astray[n] != 0.0) return -1.0 - mb_stick_limit(m, force);
    return mb_stick_limit(m, force) - fabs(m->stick.effort[n]);
}

void mb_note_sticking(const mb_view *m, double t, const double *v) {
    for (const int32_t *force = mb_next_holding(m, NULL); force; force = mb_next_holding(m, force))
        mb_element_modes(m, force).crossing[0] = mb_stick_spare(m, force, t, v);
}

void mb_start_stiction(mb_view *m, double t, const double *q, const double *v) {
    if (m->stick.count == 0) return;
    mb_positions(m, q);
    mb_velocities(m, v);
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = mb_force_record(m, n);
        if (!mb_has_stick_mode(force)) continue;
        const double rate = mb_joint_rate(m, force, t, v);
        m->stick.slips[force[MB_FORCE_LAW]] = fabs(rate) <= mb_stick_still(m, v) ? 0.0 : rate > 0.0 ? 1.0 : -1.0;
    }
    m->stick.slips[m->stick.count] = 0.0;
}

int mb_hold_still(mb_view *m, double t, const double *q, double *v) {
    mb_kinematics(m, t, q, v);
    if (!mb_refactor(m)) return 0;
    stiction_respond_all(m, t);
    for (const int32_t *force = mb_next_holding(m, NULL); force; force = mb_next_holding(m, force))
        m->stick.right[force[MB_FORCE_LAW]] = -mb_joint_rate(m, force, t, v);
    if (!stiction_solve(m)) return 0;
    stiction_superpose(m, v, NULL);
    stiction_clear(m, v);
    return 1;
}

const int32_t *mb_stick_find_sliding(const mb_view *m, double t, const double *v) {
    const int32_t *found = NULL;
    double most = 0.0;
    for (const int32_t *force = mb_next_holding(m, NULL); force; force = mb_next_holding(m, force)) {
        const double spare = mb_stick_spare(m, force, t, v);
        const bool held = m->stick.held[force[MB_FORCE_LAW]] != 0.0;
        const double limit = mb_stick_limit(m, force);
        const double excess = held || limit == 0.0 ? INFINITY : -spare / limit;
        if (spare < 0.0 && excess > most) found = force, most = excess;
    }
    return found;
}

/* At rest but for rounding, and decelerated. */
bool mb_stick_stops(const mb_view *m, const int32_t *force, double t, const double *v) {
    if (mb_stick_mode(m, force) != MB_SLIPS) return false;
    const double direction = mb_stick_direction(m, force), ahead = direction * mb_joint_rate(m, force, t, v);
    return ahead < 0.0 || (ahead <= mb_stick_still(m, v) && direction * mb_stick_second(m, force, t) < 0.0);
}

bool mb_stick_can_stop(mb_view *m, const int32_t *force, double t, const double *v) {
    const int32_t n = force[MB_FORCE_LAW], nv = m->nv;
    const double rate = fabs(mb_joint_rate(m, force, t, v));
    if (rate <= mb_stick_still(m, v)) return true;
    mb_view still = mb_view_at_rest(m);
    mb_stick_respond(&still, force, t);
    const double *unit = m->stick.unit + (int64_t)n * nv, *acceleration = m->stick.acceleration + (int64_t)n * nv;
    double response = 0.0;
    for (int32_t k = 0; k < nv; k++) response += unit[k] * acceleration[k];
    return m->stick.held[n] == 0.0 && rate <= STICTION_STOPS * m->whole * mb_stick_limit(m, force) * response;
}

double mb_stick_rounding(const mb_view *m) { return STICTION_ROUNDING * fmax(1.0, mb_largest(m->acceleration, m->nv)); }

double mb_stick_forced(const mb_view *m, const int32_t *force, double t) {
    if (m->stick.held[force[MB_FORCE_LAW]] == 0.0) return 0.0;
    const double second = mb_stick_second(m, force, t);
    return fabs(second) > mb_stick_rounding(m) ? second : 0.0;
}

/* Ends the sliding of joints that have reversed: they hold, or slide back. Returns 0 if K is singular. */
static int stiction_turn(mb_view *m, double t, const double *q, const double *v, bool *changed, bool *stopped) {
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = mb_force_record(m, n);
        if (!mb_has_stick_mode(force) || !mb_stick_stops(m, force, t, v)) continue;
        if (!*changed) { /* for the responses */
            mb_kinematics(m, t, q, v);
            if (!mb_refactor(m)) return 0;
        }
        const bool stops = mb_stick_can_stop(m, force, t, v);
        mb_set_stick_mode(m, force, stops ? MB_HOLDS : MB_SLIPS, mb_joint_rate(m, force, t, v));
        *stopped = *stopped || stops;
        *changed = true;
    }
    return 1;
}

/* Releases joints that hold and that constraints move. Returns whether there are any. */
static bool stiction_release_forced(const mb_view *m, double t) {
    bool any = false;
    for (const int32_t *force = mb_next_holding(m, NULL); force; force = mb_next_holding(m, force)) {
        const double way = mb_stick_forced(m, force, t);
        if (way == 0.0) continue;
        mb_set_stick_mode(m, force, MB_SLIPS, way);
        any = true;
    }
    return any;
}

int mb_settle_stiction(mb_view *m, double t, const double *q, double *v, bool *changed) {
    *changed = false;
    if (m->head[MB_JOINT_FRICTIONS] > 0) return mb_settle_sticking(m, t, q, v, changed);
    if (!mb_accelerations(m, t, q, v)) return 0;
    bool stopped = false;
    if (!stiction_turn(m, t, q, v, changed, &stopped)) return 0;
    if (stopped && !mb_hold_still(m, t, q, v)) return 0;
    if (*changed && !mb_accelerations(m, t, q, v)) return 0;
    if (stopped && stiction_release_forced(m, t) && !mb_accelerations(m, t, q, v)) return 0;
    /* Each pass releases one joint, which changes the efforts on the others. */
    for (int32_t pass = 0; pass < m->stick.count; pass++) {
        const int32_t *force = mb_stick_find_sliding(m, t, v);
        if (!force) break;
        const int32_t n = force[MB_FORCE_LAW];
        const double way = m->stick.held[n] != 0.0 ? mb_joint_rate(m, force, t, v) : -m->stick.effort[n];
        m->stick.slips[n] = way > 0.0 ? 1.0 : -1.0;
        *changed = true;
        if (!mb_accelerations(m, t, q, v)) return 0;
    }
    return 1;
}
