/* Adaptive communication steps: how often coupled members exchange their signals within a tick.
 *
 * During a communication step a member follows polynomials instead of its true inputs. When the step is done, the inputs at its end are
 * known, and with them polynomials q of one order more than those that were used, p. The largest |q - p| within the step, relative to the
 * largest value of the signal in the last ticks, is the error of the step: the connection defect of Glumac and Kovačić (Mathematics 11, 1342, 2023), the
 * cheap estimate of Schierz, Arnold and Clauß (Modelica Conference 2012). It costs no step of any member. The defect is an error of inputs,
 * not of states: what it adds to these is proportional to the length of the step, so that the errors of a run are proportional to the
 * tolerance.
 *
 * A step whose error exceeds the tolerance, that does not converge, or that a block refuses, is repeated from its start with a half or
 * less of its length, if all members can be rolled back. If one cannot, or if the step is the smallest, it is accepted, and the next step is
 * shorter. Ticks over which the mean error exceeds the tolerance are counted. Lengths follow a PI controller (Gustafsson 1991) with the order of the defect, rounded down to binary fractions of
 * the tick, or period, each at a multiple of its own: steps end with the tick, an FMU with such steps of its own is not asked for others,
 * and at most 2 n - 1 steps are tried in a tick if n are allowed.
 *
 * Couplings that depend on each other in one direction only take the same steps, so that the inputs of the later ones are known within the
 * tick. What the next tick depends on is in the memory of the first. */
#include <math.h>

#include "scheduler/engine/engine.h"

static const double COMMUNICATION_SAFETY = 0.9, COMMUNICATION_SLOWEST = 0.05, COMMUNICATION_FASTEST = 8.0;
static const double COMMUNICATION_INTEGRAL = 0.7, COMMUNICATION_PROPORTIONAL = 0.4;
static const double COMMUNICATION_KEPT = 0.98; /* of the largest value of a signal after a tick */
static const double COMMUNICATION_LEAST_ERROR = 1e-6;
static const double COMMUNICATION_SMALLEST_SCALE =
    1e-6; /* of a signal, in its unit: below it, the tolerance is absolute */

typedef struct {
    double value; /* relative to the tolerance */
    int order;    /* with which it falls with the length of the step */
    double *limits; /* counts how often it was this input's; NULL: no input has an error */
} bl_step_error;

typedef struct {
    bl_coupling *couplings;
    int32_t count;
    bool rolls_back;
    double smallest; /* part of the whole */
} bl_coupling_group;

/* Where the input goes through its value at the end: the largest defect within the step, as a part of what an extrapolation of this order
   is off by at the end. Their difference vanishes at both ends and, of order 2, one step before. */
static double interpolated_part(const bl_coupling *c, int order, double dt) {
    const double *m = c->memory, known = m[BL_COUPLING_HISTORY], first = m[BL_COUPLING_SPAN],
                 second = first + m[BL_COUPLING_SPAN_BEFORE];
    if (known < 1.0) return 0.125;
    if (order < 2 || known < 2.0) return 0.25 * dt / (dt + first);
    return 0.25 * dt * (0.5 * dt + first) / ((dt + first) * (dt + second));
}

/* The largest value of a signal in the last ticks. If it grows beyond all earlier ones: what it would reach by the end of the tick, so that
   a start from rest is not resolved relative to almost nothing. */
static double scale_of(const bl_coupling *c, int64_t k, double now, double dt, double remaining) {
    const double start = c->start[k], ever = fmax(bl_coupled_array(c, BL_COUPLED_SCALE)[k], fabs(start));
    const double recent = fmax(bl_coupled_array(c, BL_COUPLED_RECENT)[k], fmax(fabs(start), fabs(now)));
    const double reached = fabs(now) > ever ? fabs(now) + fabs(now - start) / dt * remaining : recent;
    return fmax(reached, COMMUNICATION_SMALLEST_SCALE);
}

/* Keeps the largest values of the signals, of which `kept` remains. */
static void keep_scales(const bl_coupling *c, double kept) {
    double *recent = bl_coupled_array(c, BL_COUPLED_RECENT);
    for (int64_t k = 0; k < c->element_count; k++) recent[k] = fmax(kept * recent[k], fabs(c->start[k]));
}

/* Compares the inputs of the member at `position` during the step with what they have turned out to be. */
static void measure_member(const bl_coupling *c, int32_t position, int method, double size, double dt, double remaining,
                           bl_step_error *worst) {
    const bl_member *m = &c->members[position];
    const bool iterated = method >= BL_FIXED_POINT;
    const double known = c->memory[BL_COUPLING_HISTORY];
    /* The mean of both ends, and of what a member without input derivatives gets, is off by what its mean is off by. */
    const int order = (iterated && c->hold == 0) || (!m->input_derivatives && c->hold > 1) ? 1 : c->hold;
    const bool has_past = known >= order;
    for (int32_t n = 0; n < m->port_count; n++) {
        const bl_coupled_port *port = &m->ports[n];
        const bl_coupled_signal *signal = &c->signals[port->signal];
        if (signal->last == BL_COUPLED_HELD || port->carried) continue;
        const bool is_there = method != BL_JACOBI && (iterated ? signal->last : signal->direct) < position;
        const double part = (is_there && order > 0) || iterated ? interpolated_part(c, order, dt) : 1.0;
        for (int32_t i = 0; i < signal->width; i++) {
            const int64_t k = signal->at + i;
            const bl_polynomial p = bl_extrapolate(c, k, order);
            const double off = signal->now[i] - (p.value + (p.first + 0.5 * p.second * dt) * dt);
            double value = part * fabs(off) / (c->step_tolerance * scale_of(c, k, signal->now[i], dt, remaining));
            /* Steps without a past are few: one may spend the errors of a tick. */
            if (!has_past) value *= size;
            if (isnan(worst->value) || value <= worst->value) continue;
            worst->value = value;
            worst->order = has_past ? order + 1 : known >= 1.0 ? 3 : 2;
            worst->limits = &bl_coupled_array(c, BL_COUPLED_LIMITING)[k];
        }
    }
}

/* The error of a step of the whole group that is a part `size` of the tick, `remaining` seconds before its end. */
static bl_step_error measure_step(const bl_coupling_group *g, double size, double dt, double remaining) {
    bl_step_error worst = {0.0, 1, NULL};
    for (int32_t n = 0; n < g->count; n++) {
        const bl_coupling *c = &g->couplings[n];
        if (c->step_tolerance == 0.0) continue;
        for (int32_t j = 0; j < c->member_count; j++)
            measure_member(c, j, bl_coupling_method(c), size, dt, remaining, &worst);
    }
    return worst;
}

/* The largest part of the whole that is not longer than wanted and ends at a multiple of itself. */
static double fit_size(const bl_coupling_group *g, double wanted, double done) {
    double size = 1.0;
    while (size > g->smallest && (size > wanted || fmod(done, size) != 0.0)) size *= 0.5;
    return size;
}

static double next_length(double size, bl_step_error error, double before, bool was_rejected) {
    const double value = fmax(error.value, COMMUNICATION_LEAST_ERROR), order = error.order;
    double factor = COMMUNICATION_SAFETY;
    if (value > 1.0) factor *= pow(value, -1.0 / order);
    else factor *= pow(value, -COMMUNICATION_INTEGRAL / order) * pow(before, COMMUNICATION_PROPORTIONAL / order);
    if (isnan(error.value) || !isfinite(factor)) factor = COMMUNICATION_SLOWEST;
    factor = fmin(fmax(factor, COMMUNICATION_SLOWEST), was_rejected ? 1.0 : COMMUNICATION_FASTEST);
    return size * factor;
}

/* What couplings remember changes only when a step is accepted. */
static int move_group(bl_engine *e, const bl_coupling_group *g, bool back) {
    int status = BL_OK;
    for (int32_t n = 0; n < g->count && status == BL_OK; n++)
        status = bl_move_members(e, &g->couplings[n], BL_KEEP_WHOLE, back);
    return status;
}

/* Steps all couplings from t to t + dt; says whether all iterations converged. */
static int try_exchange(bl_engine *e, const bl_coupling_group *g, double t, double dt, bool *converged) {
    *converged = true;
    for (int32_t n = 0; n < g->count; n++) {
        bl_coupling *c = &g->couplings[n];
        double residual = 0.0;
        const int status = bl_try_coupled_step(e, c, bl_coupling_method(c), t, dt, &residual);
        if (status != BL_OK) return status;
        c->memory[BL_COUPLING_RESIDUAL] = residual;
        *converged = *converged && residual <= c->tolerance;
    }
    return BL_OK;
}

/* One communication step from `done`, a part of the whole that begins at t, of at most `size`; shorter ones if it is rejected. */
static int step_group(bl_engine *e, const bl_coupling_group *g, double t, double dt, double done, double *size,
                      bl_step_error *error, int *rejected) {
    const double at = t + done * dt;
    *rejected = 0;
    for (;;) {
        bool converged = false;
        int status = try_exchange(e, g, at, *size * dt, &converged);
        if (status != BL_OK && !bl_is_refusal(status)) return status;
        if (status == BL_OK) *error = measure_step(g, *size, *size * dt, (1.0 - done - *size) * dt);
        const bool good = status == BL_OK && converged && error->value <= 1.0;
        if (good || !g->rolls_back || *size <= g->smallest) return status;
        const double wanted = status == BL_OK && converged ? next_length(*size, *error, 1.0, true) : *size;
        status = move_group(e, g, true);
        if (status != BL_OK) return status;
        bl_forget_failure(e);
        if (!converged)
            for (int32_t n = 0; n < g->count; n++) g->couplings[n].memory[BL_COUPLING_HAS_JACOBIAN] = 0.0;
        do *size *= 0.5;
        while (*size > wanted && *size > g->smallest);
        ++*rejected;
    }
}

/* What is left of a step when it has been accepted. */
static int finish_step(bl_engine *e, const bl_coupling_group *g, double t, double dt, double done, double size,
                       bl_step_error error, int rejected) {
    for (int32_t n = 0; n < g->count; n++) {
        bl_coupling *c = &g->couplings[n];
        double *m = c->memory;
        bl_measure_bonds(c, size * dt, done, size);
        bl_keep_history(c, size * dt);
        bl_take_start(e, c, e->signals);
        keep_scales(c, 1.0);
        m[BL_COUPLING_COMMUNICATIONS] += 1.0;
        m[BL_COUPLING_REJECTED] += rejected;
        if (m[BL_COUPLING_RESIDUAL] <= c->tolerance) continue;
        const int status =
            bl_count_failure(e, c, t + done * dt, m[BL_COUPLING_RESIDUAL], g->rolls_back && g->smallest < 1.0);
        if (status != BL_OK) return status;
    }
    if (error.limits) *error.limits += 1.0;
    return BL_OK;
}

int bl_communicate(bl_engine *e, bl_coupling *couplings, int32_t count, double t, double dt) {
    bl_coupling_group group = {couplings, count, true, 0.0};
    double *first = couplings[0].memory, done = 0.0, mean = 0.0;
    for (int32_t n = 0; n < count; n++) {
        group.rolls_back = group.rolls_back && couplings[n].rolls_back;
        if (couplings[n].step_tolerance > 0.0) group.smallest = fmax(group.smallest, couplings[n].smallest);
        couplings[n].memory[BL_COUPLING_ITERATIONS] = 0.0;
        keep_scales(&couplings[n], pow(COMMUNICATION_KEPT, dt / ((double)couplings[n].period * e->step)));
    }
    if (group.smallest == 0.0) group.smallest = 1.0;
    double wanted = first[BL_COUPLING_WANTED] > 0.0 ? first[BL_COUPLING_WANTED] / dt : group.rolls_back ? 1.0 : 0.0;
    double before = first[BL_COUPLING_ERROR_BEFORE] > 0.0 ? first[BL_COUPLING_ERROR_BEFORE] : 1.0;
    int status = BL_OK, rejected = 0;
    while (done < 1.0) {
        double size = fit_size(&group, wanted, done);
        bl_step_error error = {0.0, 1, NULL};
        for (int32_t n = 0; n < count && done > 0.0 && status == BL_OK; n++)
            status = bl_accept_members(e, &couplings[n], t + done * dt);
        if (status == BL_OK && group.rolls_back) status = move_group(e, &group, false);
        if (status == BL_OK) status = step_group(e, &group, t, dt, done, &size, &error, &rejected);
        if (status == BL_OK) status = finish_step(e, &group, t, dt, done, size, error, rejected);
        if (status != BL_OK) return status;
        wanted = next_length(size, error, before, rejected > 0);
        before = fmin(fmax(error.value, COMMUNICATION_LEAST_ERROR), 1.0);
        mean += size * error.value;
        done += size;
    }
    first[BL_COUPLING_WANTED] = wanted * dt;
    first[BL_COUPLING_ERROR_BEFORE] = before;
    for (int32_t n = 0; n < count; n++) {
        couplings[n].memory[BL_COUPLING_STEPS] += 1.0;
        if (!(mean <= 1.0)) couplings[n].memory[BL_COUPLING_EXCEEDED] += 1.0;
        couplings[n].memory[BL_COUPLING_SWEEPS] += couplings[n].memory[BL_COUPLING_ITERATIONS];
    }
    return BL_OK;
}
