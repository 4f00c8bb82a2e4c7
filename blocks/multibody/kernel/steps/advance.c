/* Internal steps of a mechanism: classical Runge–Kutta or implicit, divided at instants of laws and at events of modes.
 *
 * `advance` takes `substeps` steps of equal size. Each is divided at the instants of laws of time that lie in it (instants.c); each of
 * these parts is one step, or ends at events where modes change (located.c). */
#include <float.h>
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

int mb_pass_instant(bl_block *b, mb_view *m, const mb_instant *end, double t, double h) {
    double *x = m->internal_state;
    if (!end) return BL_OK;
    m->law_from = end->after;
    m->law_until = INFINITY;
    if (m->head[MB_MOTION_LAWS] == 0 || mb_close_step(m, t, x)) return BL_OK;
    return mb_fail_step(b, m, t, h, x, x + m->nq);
}

/* A classical Runge–Kutta step, up to its closed end. */
static mb_trial explicit_step(mb_view *m, double t, double h) {
    const int64_t n = m->nq + m->nv;
    const double nodes[4] = {0.0, 0.5, 0.5, 1.0};
    double *x = m->internal_state, *start = x + n, *k = start + n, *trial = k + 4 * n;
    memcpy(start, x, (size_t)n * sizeof(double));
    for (int s = 0; s < 4; s++) {
        double *slope = k + s * n;
        for (int64_t i = 0; i < n; i++) trial[i] = start[i] + (s > 0 ? nodes[s] * h * k[(s - 1) * n + i] : 0.0);
        if (!mb_accelerations(m, t + nodes[s] * h, trial, trial + m->nq))
            return (mb_trial){MB_TRIAL_UNSOLVED, t + nodes[s] * h};
        m->located.decision = BL_KEEP; /* the first stage, at the start, may decide modes */
        mb_watch_iteration(m, t + nodes[s] * h);
        mb_coordinate_rates(m, trial, trial + m->nq, slope);
        memcpy(slope + m->nq, m->acceleration, (size_t)m->nv * sizeof(double));
    }
    for (int64_t i = 0; i < n; i++)
        x[i] = start[i] + h / 6.0 * (k[i] + 2.0 * k[n + i] + 2.0 * k[2 * n + i] + k[3 * n + i]);
    return (mb_trial){mb_close_step(m, t + h, x) ? MB_TRIAL_TAKEN : MB_TRIAL_OPEN, t + h};
}

mb_trial mb_try_step(bl_block *b, mb_view *m, double t, double h, double part, bool jumped) {
    mb_forget_formula_fault(m);
    if (m->head[MB_INTEGRATOR] != MB_IMPLICIT) return explicit_step(m, t, h);
    double *x = m->internal_state;
    const int done = mb_implicit_advance(b, m, t, h, part, jumped, x, x + m->nq);
    return (mb_trial){done ? MB_TRIAL_TAKEN : MB_TRIAL_DIVERGED, t + h};
}

static int fail_trial(bl_block *b, mb_view *m, mb_trial trial, double t, double h) {
    double *x = m->internal_state, *v = x + m->nq;
    switch (trial.outcome) {
        case MB_TRIAL_TAKEN: return BL_OK;
        case MB_TRIAL_UNSOLVED: return mb_fail_factor(b, m, trial.time);
        case MB_TRIAL_OPEN: return mb_fail_step(b, m, t + h, h, x, v);
        default: return mb_fail_implicit(b, m, t, h, x, v);
    }
}

int mb_end_step(bl_block *b, mb_view *m, double t, double h) {
    double *x = m->internal_state;
    if (m->head[MB_INTEGRATOR] != MB_IMPLICIT) return mb_finish_step(b, m, t, h, x);
    if (m->stick.count > 0 && mb_sticks(m) && !mb_hold_still(m, t, x, x + m->nq)) return mb_fail_factor(b, m, t);
    if (!mb_carry_bearings(m, t, x, x + m->nq)) return mb_fail_factor(b, m, t);
    mb_keep_turns(m, t, x, x + m->nq);
    mb_keep_angles(m, t, x, x + m->nq);
    mb_keep_elements(m, t, x, x + m->nq);
    mb_watch_motion_laws(m, t);
    mb_count_thinned(m, t, x, x + m->nq);
    return BL_OK;
}

int mb_internal_step(bl_block *b, mb_view *m, double t, double h, double part, bool jumped, const mb_instant *end) {
    double *x = m->internal_state;
    bool changed = false;
    if (m->rigid_count > 0 && m->head[MB_INTEGRATOR] != MB_IMPLICIT) {
        if (jumped) m->located.decided = false;
        int status = mb_rigid_advance(b, m, t, h);
        if (status == BL_OK) status = mb_pass_instant(b, m, end, t + h, h);
        if (status != BL_OK) return status;
        mb_watch_motion_laws(m, t + h);
        mb_count_thinned(m, t + h, x, x + m->nq);
        return BL_OK;
    }
    if (m->located.count > 0) return mb_located_step(b, m, t, h, part, jumped, end);
    /* Where events are not located, joints begin to stick and to slide between internal steps. */
    if (m->stick.count > 0 && !mb_settle_stiction(m, t, x, x + m->nq, &changed)) return mb_fail_factor(b, m, t);
    int status = fail_trial(b, m, mb_try_step(b, m, t, h, part, jumped || changed), t, h);
    if (status == BL_OK) status = mb_pass_instant(b, m, end, t + h, h);
    return status == BL_OK ? mb_end_step(b, m, t + h, h) : status;
}

enum { INSTANT_LIMIT = 64 }; /* in one internal step */
static const double INSTANT_SLACK = 1e-9; /* of an internal step: an instant so near to one of its ends is there */

/* The same, divided at the instants of laws. */
static int divided_step(bl_block *b, mb_view *m, double t, double h, double part) {
    const double slack = INSTANT_SLACK * h + 8.0 * DBL_EPSILON * fabs(t + h), since = t - slack, to = t + h + slack;
    double done = 0.0, from = since;
    bool jumped = false;
    for (int count = 0; done < h;) {
        mb_instant next;
        m->law_until = INFINITY;
        bool any = count < INSTANT_LIMIT && mb_next_instant(m, since, from, to, &next);
        if (any && next.after <= t + done + slack) {
            from = m->law_from = next.after;
            jumped = true;
            count++;
            continue;
        }
        if (count == INSTANT_LIMIT) mb_count_unlocated(b, m);
        const bool within = any && next.after < t + h - slack;
        const double reached = within ? next.after - t : h;
        if (any) m->law_until = next.before;
        const int status =
            mb_internal_step(b, m, t + done, reached - done, part * (reached - done) / h, jumped, any ? &next : NULL);
        if (status != BL_OK) return status;
        if (within) bl_note_event(b, next.after, MB_EVENT_KINDS * next.law + MB_EVENT_LAW);
        done = reached;
        from = m->law_from;
        jumped = any;
        count++;
    }
    m->law_from = -INFINITY;
    m->law_until = INFINITY;
    return BL_OK;
}

int mb_advance(bl_block *b, mb_view *m, double t, double dt) {
    const int32_t substeps = m->head[MB_SUBSTEPS] * *b->parts;
    const double h = dt / substeps;
    const bool divides = mb_has_instants(m);
    m->since = t;
    mb_start_locating(b, m);
    for (int32_t step = 0; step < substeps; step++) {
        const double now = t + step * h;
        const int status =
            divides ? divided_step(b, m, now, h, dt / b->dt) : mb_internal_step(b, m, now, h, dt / b->dt, false, NULL);
        if (status != BL_OK) return status;
    }
    if (m->stick.count > 0) m->stick.slips[m->stick.count] = 1.0; /* of a subsystem that was reset, too */
    mb_sample_shared(m, t + dt, m->internal_state, m->internal_state + m->nq, false);
    return BL_OK;
}
