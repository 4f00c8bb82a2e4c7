/* Events of internal steps: where a law with a condition on states, an end stop, a compliant contact or friction that sticks changes its mode.
 *
 * Modes and crossing functions are those of mode `continuous` (crossings.c). They are decided where `advance` begins and kept while a
 * step is taken. If a crossing function is negative at the end of a step, the first crossing is located to 1e-12 of the step, and the
 * step ends there: the state is put on the constraints, modes are decided anew, joints begin to stick or to slide, and another step
 * leads on.
 *     Runge–Kutta   on the cubic through the states and their rates at both ends of the step: its error is of order h⁴, so
 *                   that the order is kept
 *     implicit      by repeating the step with other lengths: a cubic would follow the accelerations of stiff forces
 * A step that leads to values that are not finite, which may be those of a law beyond its border, is halved.
 *
 * The number of events in a tick is bounded. Beyond it, the rest of the tick is integrated with laws and elements that decide at every
 * evaluation, as with events="tick", and the tick is counted. Modes are not part of the state: at a tick they follow from it. */
#include <float.h>
#include <string.h>

#include "blocks/core/formula/formula.h"
#include "blocks/core/kernel/root.h"
#include "blocks/multibody/kernel/multibody.h"

enum { LOCATED_SEARCH = 200, LOCATED_PASSES = 100, LOCATED_TRIES = 1000 };
static const double LOCATED_BRACKET = 1e-12; /* of a step: width of the bracket of a crossing */
static const double LOCATED_SHORTEST = 1e-9; /* of a step: one that is not finite is halved down to this */

/* Conditions on time alone are instants, at which steps are divided anyway. */
static bool has_state_events(const mb_view *m) {
    if (m->stick.count > 0 || mb_has_element(m, MB_END_STOP)) return true;
    if (m->rigid_count < m->head[MB_CONTACTS]) return true;
    for (int32_t n = 0; n < m->head[MB_LAWS]; n++) {
        const int32_t *law = m->laws + n * MB_LAW_FIELDS;
        int32_t all = 0;
        if (law[MB_LAW_TYPE] == MB_LAW_TABLE && law[MB_LAW_OF] != MB_OF_TIME) return true;
        if (law[MB_LAW_TYPE] != MB_LAW_FORMULA) continue;
        const int32_t timed = bl_formula_timed(m->words + law[MB_LAW_P], law[MB_LAW_N], m->instant_search.timed, &all);
        if (timed < all) return true;
    }
    return false;
}

void mb_start_locating(const bl_block *b, mb_view *m) {
    mb_located *l = &m->located;
    l->count = 0;
    l->counted = l->decided = false;
    if (!has_state_events(m)) return;
    l->left = bl_event_limit(b);
    if (l->left == 0) return;
    m->force_modes = m->law_modes + m->head[MB_LAWS] + 1;
    l->count = mb_number_modes(m, m->law_modes, m->force_modes);
    l->decision = BL_DECIDE;
    m->modes = (bl_modes){l->mode, l->crossing, &l->decision};
    memset(l->mode, 0, (size_t)l->count * sizeof(double));
    memset(l->crossing, 0, (size_t)l->count * sizeof(double));
}

void mb_count_unlocated(const bl_block *b, mb_view *m) {
    if (!m->located.counted) bl_note_unlocated(b);
    m->located.counted = true;
}

void mb_stop_locating(const bl_block *b, mb_view *m) {
    mb_count_unlocated(b, m);
    m->located.count = 0;
    m->modes = (bl_modes){0};
}

/* The direction of friction that sticks is memory: as a mode it is only compared. */
static void note_directions(const mb_view *m) {
    for (int32_t n = 0; m->stick.count > 0 && n < m->head[MB_FORCES]; n++) {
        const int32_t *force = mb_force_record(m, n);
        if (force[MB_FORCE_TYPE] == MB_STICTION || force[MB_FORCE_TYPE] == MB_JOINT_STICTION)
            m->located.mode[m->force_modes[n]] = m->stick.slips[force[MB_FORCE_LAW]];
    }
}

/* What an element does at an event, or -1. */
static int32_t element_event(const mb_view *m, int32_t number) {
    const int32_t type = mb_force_record(m, number)[MB_FORCE_TYPE], count = mb_elements[type]->crossing_count;
    const double *before = m->located.before + m->force_modes[number], *now = m->located.mode + m->force_modes[number];
    if (count == 0) return -1;
    if (before[0] != now[0] && (type == MB_STICTION || type == MB_JOINT_STICTION)) {
        const bool slips = fabs(now[0]) == 1.0, slipped = fabs(before[0]) == 1.0; /* else it holds or yields */
        if (!slips && !slipped) return -1;
        return !slips ? MB_EVENT_STICKS : !slipped ? MB_EVENT_SLIPS : MB_EVENT_REVERSES;
    }
    for (int32_t k = 0; k < count; k += 2) /* of each place where it touches */
        if (before[k] != now[k]) return now[k] != 0.0 ? MB_EVENT_TOUCHES : MB_EVENT_LEAVES;
    for (int32_t k = 1; k < count; k += 2)
        if (before[k] != now[k]) return now[k] != 0.0 ? MB_EVENT_PUSHES : MB_EVENT_RELEASES;
    return -1;
}

static void note_changes(const bl_block *b, const mb_view *m, double t) {
    const mb_located *l = &m->located;
    for (int32_t n = 0; n < m->head[MB_LAWS]; n++) {
        const int32_t first = m->law_modes[n], count = m->law_modes[n + 1] - first;
        if (memcmp(l->before + first, l->mode + first, (size_t)count * sizeof(double)) != 0)
            bl_note_event(b, t, MB_EVENT_KINDS * n + MB_EVENT_LAW);
    }
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t kind = element_event(m, n);
        if (kind >= 0) bl_note_event(b, t, MB_EVENT_KINDS * n + kind);
    }
}

void mb_open_decision(mb_view *m) {
    mb_located *l = &m->located;
    memcpy(l->before, l->mode, (size_t)l->count * sizeof(double));
    l->decision = BL_DECIDE;
}

void mb_close_decision(const bl_block *b, mb_view *m, double t) {
    mb_located *l = &m->located;
    l->decision = BL_KEEP;
    if (l->count == 0) return;
    note_directions(m);
    if (l->decided) note_changes(b, m, t);
    l->decided = true;
}

/* The next implicit step begins with the accelerations of its start. */
static void restart_implicit(mb_view *m) {
    if (m->head[MB_INTEGRATOR] == MB_IMPLICIT)
        m->implicit.flags[MB_IMPLICIT_STARTED] = m->implicit.flags[MB_IMPLICIT_FRESH] = 0.0;
}

/* Decides all modes by the present state; joints that begin to stick or to slide may change velocities, and so other modes. */
static bool decide_modes(const bl_block *b, mb_view *m, double t) {
    double *q = m->internal_state, *v = q + m->nq;
    bool changed = true, solved = true;
    mb_open_decision(m);
    for (int pass = 0; solved && changed && pass < LOCATED_PASSES; pass++) {
        changed = false;
        solved = mb_note_crossings(m, t, q, v) && (m->stick.count == 0 || mb_settle_stiction(m, t, q, v, &changed));
        if (changed) restart_implicit(m);
    }
    mb_close_decision(b, m, t);
    return solved;
}

typedef enum { LOCATED_WITHIN, LOCATED_BEYOND, LOCATED_NOT_FINITE } located_reach;

/* Evaluates the crossing functions at the present state, with all modes kept. */
static located_reach judge_modes(mb_view *m, double t) {
    const mb_located *l = &m->located;
    const double *x = m->internal_state;
    located_reach reach = LOCATED_WITHIN;
    for (int32_t i = 0; i < m->nq + m->nv; i++)
        if (!isfinite(x[i])) return LOCATED_NOT_FINITE;
    if (!mb_note_crossings(m, t, x, x + m->nq)) return LOCATED_NOT_FINITE;
    for (int32_t k = 0; k < l->count; k++) {
        if (isnan(l->crossing[k])) return LOCATED_NOT_FINITE;
        if (l->crossing[k] < 0.0) reach = LOCATED_BEYOND;
    }
    return reach;
}

/* What a step changes and another trial needs again: the state, and the memory of the implicit integrator. */
static void copy_start(const bl_block *b, mb_view *m, bool back) {
    const mb_implicit *s = &m->implicit;
    const int64_t nv = m->nv;
    const struct {
        double *values;
        int64_t count;
    } parts[] = {{m->internal_state, m->nq + nv}, {s->flags, MB_IMPLICIT_FLAGS}, {s->rate, nv}, {s->mean, nv},
                 {s->lambda, m->row_count},       {s->inputs, b->u_count}};
    double *kept = m->located.start;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        memcpy(back ? parts[k].values : kept, back ? kept : parts[k].values, (size_t)parts[k].count * sizeof(double));
        kept += parts[k].count;
        if (m->head[MB_INTEGRATOR] != MB_IMPLICIT) return; /* the others are its memory */
    }
}

/* The state at the part s of a step of size h, with its start, first stage, end and rate at the end. */
typedef struct {
    const double *start, *rate, *end, *end_rate;
    double h;
} located_cubic;

static void follow_cubic(const mb_view *m, const located_cubic *c, double s, double *x) {
    const double rest = 1.0 - s, at_end = s * s * (3.0 - 2.0 * s), from = c->h * s * rest * rest,
                 to = c->h * s * s * rest;
    for (int32_t i = 0; i < m->nq + m->nv; i++)
        x[i] = c->start[i] + at_end * (c->end[i] - c->start[i]) + from * c->rate[i] - to * c->end_rate[i];
}

/* The interpolant of an explicit step that has been taken. Its end and the rate there replace the second and third stage. */
static bool open_cubic(mb_view *m, double t, double h, located_cubic *c) {
    const int64_t n = m->nq + m->nv;
    double *x = m->internal_state, *start = x + n, *k = start + n, *end = k + n, *end_rate = end + n;
    if (!mb_accelerations(m, t + h, x, x + m->nq)) return false;
    memcpy(end, x, (size_t)n * sizeof(double));
    mb_coordinate_rates(m, x, x + m->nq, end_rate);
    memcpy(end_rate + m->nq, m->acceleration, (size_t)m->nv * sizeof(double));
    *c = (located_cubic){start, k, end, end_rate, h};
    return true;
}

/* Finds the first crossing in a step of size *h from t that has been taken; crossing functions are those at its end. Leaves the state
   there, which is not yet on the constraints if it is that of a cubic, and in *h the size of the step that leads to it. Returns false if
   it is not found. */
static bool locate_mode(bl_block *b, mb_view *m, double t, double *h, double part, bool jumped) {
    mb_located *l = &m->located;
    const bool repeats = m->head[MB_INTEGRATOR] == MB_IMPLICIT;
    const size_t size = (size_t)l->count * sizeof(double);
    const double whole = *h;
    located_cubic cubic = {0};
    bl_bracket r = bl_bracket_open(0.0, 1.0, fmax(LOCATED_BRACKET, 4.0 * DBL_EPSILON * fabs(t) / whole));
    memcpy(l->at_b, l->crossing, size);
    if (!repeats && !open_cubic(m, t, whole, &cubic)) return false;
    copy_start(b, m, true);
    if (judge_modes(m, t) == LOCATED_NOT_FINITE) return false;
    memcpy(l->at_a, l->crossing, size);
    double reached = 0.0;
    while (r.trials < LOCATED_SEARCH) {
        double s = r.b, first = INFINITY;
        const bool ends = r.b - r.a <= r.tolerance;
        if (ends && reached == r.b) break;
        for (int32_t k = 0; k < l->count; k++) first = fmin(first, bl_bracket_root(&r, l->at_a[k], l->at_b[k]));
        if (!ends) s = bl_bracket_trial(&r, first);
        if (repeats) {
            copy_start(b, m, true);
            if (mb_try_step(b, m, t, s * whole, part * s, jumped).outcome != MB_TRIAL_TAKEN) return false;
        } else {
            follow_cubic(m, &cubic, s, m->internal_state);
        }
        reached = s;
        if (ends) break;
        const bool beyond = judge_modes(m, t + s * whole) != LOCATED_WITHIN;
        memcpy(beyond ? l->at_b : l->at_a, l->crossing, size);
        bl_bracket_narrow(&r, s, beyond);
    }
    *h = reached * whole;
    return true;
}

/* The rest of a step, with events that are not located. */
static int finish_unlocated(bl_block *b, mb_view *m, double t, double h, double part, bool jumped,
                            const mb_instant *end) {
    mb_stop_locating(b, m);
    m->filmless_bearing = m->diverging_friction = m->ambiguous_friction = -1;
    return mb_internal_step(b, m, t, h, part, jumped, end);
}

/* The end of a step at an event: on the constraints, with modes that are decided anew. */
static int end_at_event(bl_block *b, mb_view *m, double t, double h) {
    double *x = m->internal_state;
    if (m->head[MB_INTEGRATOR] != MB_IMPLICIT && !mb_close_step(m, t, x)) return mb_fail_step(b, m, t, h, x, x + m->nq);
    const int status = mb_end_step(b, m, t, h);
    if (status != BL_OK) return status;
    if (!decide_modes(b, m, t)) return mb_fail_factor(b, m, t);
    restart_implicit(m);
    m->located.left--;
    return BL_OK;
}

int mb_located_step(bl_block *b, mb_view *m, double t, double h, double part, bool jumped, const mb_instant *end) {
    mb_located *l = &m->located;
    double done = 0.0, longest = h;
    int tries = 0;
    if (jumped) l->decided = false; /* what changes there is no event of its own */
    if (!l->decided && m->head[MB_INTEGRATOR] != MB_IMPLICIT && m->stick.count == 0) {
        l->decision = BL_DECIDE; /* until the first stage has decided */
        l->decided = true;
    }
    if (!l->decided && !decide_modes(b, m, t)) return mb_fail_factor(b, m, t);
    while (done < h) {
        const double now = t + done, rest = h - done;
        double size = fmin(rest, longest);
        if (l->left == 0 || longest < LOCATED_SHORTEST * h || ++tries > LOCATED_TRIES)
            return finish_unlocated(b, m, now, rest, part * rest / h, jumped, end);
        copy_start(b, m, false);
        const mb_trial trial = mb_try_step(b, m, now, size, part * size / h, jumped);
        const located_reach reach = trial.outcome == MB_TRIAL_TAKEN ? judge_modes(m, now + size) : LOCATED_NOT_FINITE;
        const bool located = reach == LOCATED_BEYOND && locate_mode(b, m, now, &size, part * size / h, jumped);
        if (reach == LOCATED_NOT_FINITE || (reach == LOCATED_BEYOND && !located)) {
            copy_start(b, m, true);
            m->filmless_bearing = m->diverging_friction = m->ambiguous_friction = -1;
            longest = 0.5 * size;
            continue;
        }
        longest = h;
        done = size >= rest || rest - size <= 4.0 * DBL_EPSILON * fabs(now) ? h : done + size;
        int status = located ? end_at_event(b, m, now + size, h) : BL_OK;
        if (status == BL_OK && done >= h) status = mb_pass_instant(b, m, end, t + h, h);
        if (status == BL_OK && !located) status = mb_end_step(b, m, t + done, h);
        if (status != BL_OK) return status;
        jumped = false;
    }
    if (end) l->decided = false;
    return BL_OK;
}
