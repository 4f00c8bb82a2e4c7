/* Rates of change of inputs, for blocks whose crossing functions depend on them (Backlash, RateLimiter).
 *
 * They are differences along the motion, at both ends of a step: several evaluations of what leads to these blocks. As a rule they are
 * not needed. Modes are predicted without them, the step is taken, and the inputs at its start, within it and at its end bound the
 * rates. If the block would surely have decided as predicted, and surely keeps its mode, the step stands: it is the step that would
 * have been taken with the rates. Else it is taken back. */
#include <math.h>
#include <string.h>

#include "blocks/core/kernel/course.h"
#include "scheduler/engine/solvers/solver.h"

static const double RATE_REACH = 0x1p-10; /* of a tick: half the difference that gives the rate of change of an input */
/* Relative errors of inputs: of rounding, and of the solution of a loop. */
static const double INPUT_ROUNDING = 1e-14, INPUT_LOOP_ERROR = 1e-8;
enum {
    RATE_PATIENCE = 8, /* ticks without prediction after one that did not hold */
    RATE_CHECKED = 64, /* in one tick of so many it is checked that steps resolve inputs */
};
static const double INPUT_DEVIATION = 1.0 / 16; /* of its range in a step: that of a resolved input from a parabola */

/* Adds `weight` times the inputs at x = start + offset · slope, at t + offset, to the rates of those blocks that need them. */
static int probe_inputs(bl_engine *e, double t, double offset, double weight, const double *start,
                        const double *slope) {
    for (int64_t i = 0; i < e->layout.states; i++) e->x[i] = start[i] + offset * slope[i];
    bl_follow_inputs(e, t + offset);
    const int status = bl_run_minor(e, &e->crossing_program, t + offset);
    for (int64_t i = 0; i < e->rated_width; i++)
        e->input_rates[i] = (weight < 0.0 ? 0.0 : e->input_rates[i]) + weight * *e->rated_inputs[i];
    return status;
}

/* Finds the rates of change of inputs by a central difference along the motion, with all modes kept. `is_ready`: signals are those at
   t. Afterwards x, dx, signals and crossing functions are those before: where a loop is solved, another evaluation would change their
   last digits, and so decide otherwise than what was decided before. */
static int find_input_rates(bl_engine *e, double t, bool is_ready) {
    const int64_t n = e->layout.states;
    const size_t size = (size_t)n * sizeof(double), signals_size = (size_t)e->layout.signals * sizeof(double),
                 crossing_size = (size_t)e->crossing_count * sizeof(double);
    const bl_decision decision = e->decision;
    double *start = e->rate_work, *slope = start + n, *signals = slope + n, *crossing = signals + e->layout.signals;
    const double reach = RATE_REACH * e->step, weight = 0.5 / reach;
    e->decision = BL_KEEP;
    memcpy(signals, e->signals, signals_size);
    memcpy(crossing, e->crossing, crossing_size);
    memcpy(start, e->dx, size);
    int status = is_ready ? BL_OK : bl_evaluate_minor(e, t);
    if (status == BL_OK) status = bl_evaluate_derivatives(e, t);
    memcpy(slope, e->dx, size);
    memcpy(e->dx, start, size);
    memcpy(start, e->x, size);
    if (status == BL_OK) status = probe_inputs(e, t, -reach, -weight, start, slope);
    if (status == BL_OK) status = probe_inputs(e, t, reach, weight, start, slope);
    memcpy(e->x, start, size);
    bl_follow_inputs(e, t);
    memcpy(e->signals, signals, signals_size);
    memcpy(e->crossing, crossing, crossing_size);
    e->decision = decision;
    return status;
}

int bl_cross_rated(bl_engine *e, double t, bool is_ready) {
    int status = find_input_rates(e, t, is_ready);
    for (int32_t n = 0; n < e->rated_count && status == BL_OK; n++) {
        bl_block *b = e->rated[n].block;
        b->u1 = (const double *const *)e->rated[n].u1;
        status = bl_run_crossings(e, b, t);
        b->u1 = NULL;
    }
    return status;
}

/* Ticks without prediction are 1 … RATE_PATIENCE, or 1 + RATE_PATIENCE … 2 RATE_PATIENCE where inputs were not resolved. */
bool bl_checks_inputs(bl_engine *e) {
    double *doubt = &e->open[BL_OPEN_DOUBT]; /* may come from a deserialized state */
    const bool was_unsure = *doubt != 0.0;
    *doubt = *doubt >= 1.0 && *doubt <= 2.0 * RATE_PATIENCE ? floor(*doubt) - 1.0 : 0.0;
    if (*doubt == RATE_PATIENCE) *doubt = 0.0;
    return e->tick % RATE_CHECKED == 0 || *doubt > RATE_PATIENCE || (was_unsure && *doubt == 0.0);
}

bool bl_can_predict(bl_engine *e, double h) {
    return e->open[BL_OPEN_DOUBT] == 0.0 && h >= e->step * (1.0 - BL_GRID_TOLERANCE) && !e->follows &&
           !bl_has_solver_memory(e) && !e->multirate;
}

int bl_predict_modes(bl_engine *e, double t) {
    int status = BL_OK;
    memcpy(e->rate_work + 2 * e->layout.states, e->signals, (size_t)e->layout.signals * sizeof(double));
    for (int64_t i = 0; i < e->rated_width; i++) e->rate_start[i] = *e->rated_inputs[i];
    e->rate_part = 0.0;
    e->notes_inputs = true;
    for (int32_t n = 0; e->apart_count > e->rated_count && n < e->apart_count && status == BL_OK; n++)
        if (!e->kernels[e->apart[n]->index]->input_rates) status = bl_run_crossings(e, e->apart[n], t);
    for (const bl_rated *r = e->rated, *end = r + e->rated_count; r != end && status == BL_OK; r++)
        if (bl_active(e, r->guard)) status = r->predict(r->block, t);
    return status;
}

void bl_note_inputs(bl_engine *e, double part, double weight) {
    double *middle = e->rate_middle;
    if (e->rate_part == 0.0)
        for (int64_t i = 0; i < e->rated_width; i++) middle[i] = weight * *e->rated_inputs[i];
    else
        for (int64_t i = 0; i < e->rated_width; i++) middle[i] += weight * *e->rated_inputs[i];
    e->rate_part = part;
}

bool bl_prediction_holds(bl_engine *e, double t, double h) {
    const double part = e->rate_part, error = e->loop_count > 0 ? INPUT_LOOP_ERROR : INPUT_ROUNDING;
    e->notes_inputs = false;
    if (part == 0.0) return false;
    bl_course course = {
        .part = part, .first = 1.0 / (part * h), .second = 1.0 / (h - part * h), .noise = 4.0 * error / h};
    for (const bl_rated *r = e->rated, *end = r + e->rated_count; r != end; r++) {
        course.start = e->rate_start + r->first;
        course.middle = e->rate_middle + r->first;
        if (bl_active(e, r->guard) && !r->stays(r->block, t, &course)) return false;
    }
    return true;
}

void bl_take_back_prediction(bl_engine *e, bool resolves) {
    e->notes_inputs = false;
    e->open[BL_OPEN_DOUBT] = resolves ? (double)RATE_PATIENCE : 2.0 * RATE_PATIENCE;
    memcpy(e->signals, e->rate_work + 2 * e->layout.states, (size_t)e->layout.signals * sizeof(double));
}

/* The parts of a step at which inputs are compared, other than its start, middle and end: at other places in every tick, because an input may
   have the same values at all of them. */
static double find_probe(const bl_engine *e, int n) {
    static const double golden = 0.6180339887498949;
    const double turns = golden * (double)(1 + 4 * (e->tick % (1 << 20)) + n);
    return 0.25 * ((double)n + 0.3 + 0.4 * (turns - floor(turns)));
}

/* Whether an input that is resolved by a step has these values: it deviates little from the parabola through three of them. */
static bool resolves_input(const double *u, int64_t stride, const double *parts, double tolerance) {
    const double start = u[0], middle = u[stride], end = u[2 * stride], bend = 2.0 * (start - 2.0 * middle + end),
                 rise = end - start - bend;
    const double range = fmax(fmax(start, middle), end) - fmin(fmin(start, middle), end);
    for (int n = 3; n < BL_PROBES; n++) {
        const double off = fabs(u[n * stride] - (start + parts[n] * (rise + parts[n] * bend)));
        if (off > tolerance && off > INPUT_DEVIATION * range) return false;
    }
    return true;
}

static int32_t find_unresolved(const bl_engine *e, const double *parts) {
    const double error = 4.0 * (e->loop_count > 0 ? INPUT_LOOP_ERROR : INPUT_ROUNDING);
    for (const bl_rated *r = e->rated, *last = r + e->rated_count; r != last; r++) {
        const bl_block *b = r->block;
        if (!bl_active(e, r->guard)) continue;
        for (int32_t k = 0; k < b->u_width[0]; k++) {
            const double *u = e->rate_probes + r->first + k;
            const double size = fmax(fabs(u[0]), fabs(u[2 * e->rated_width]));
            const double tolerance = fmax(e->kernels[b->index]->input_resolution(b, k), error * size);
            if (!resolves_input(u, e->rated_width, parts, tolerance)) return b->index;
        }
    }
    return -1;
}

/* Notes which blocks have a crossing function beyond its border at the end of the step, t. */
static void note_beyond(bl_engine *e, double t) {
    for (bl_rated *r = e->rated, *last = r + e->rated_count; r != last; r++) {
        const bl_block *b = r->block;
        r->is_beyond = !bl_active(e, r->guard) || e->kernels[b->index]->is_beyond(b, t);
        for (int32_t k = 0; k < b->crossing_count; k++)
            if (b->modes.crossing[k] < 0.0) r->is_beyond = true;
    }
}

/* A block with one beyond its border at t, within the step, but not at its end: it was crossed twice. */
static int32_t find_passed(const bl_engine *e, double t) {
    for (const bl_rated *r = e->rated, *last = r + e->rated_count; r != last; r++)
        if (!r->is_beyond && e->kernels[r->block->index]->is_beyond(r->block, t)) return r->block->index;
    return -1;
}

int bl_check_inputs(bl_engine *e, double t, double h, bool *resolves) {
    const int64_t n = e->layout.states;
    const size_t size = (size_t)n * sizeof(double), signals_size = (size_t)e->layout.signals * sizeof(double),
                 crossing_size = (size_t)e->crossing_count * sizeof(double);
    double *x = e->check_work, *slope = x + n, *signals = slope + n, *crossing = signals + e->layout.signals;
    double parts[BL_PROBES] = {0.0, 0.5, 1.0};
    int32_t found = -1;
    note_beyond(e, t + h);
    for (int k = 3; k < BL_PROBES; k++) parts[k] = find_probe(e, k - 3);
    memcpy(x, e->x, size);
    memcpy(slope, e->dx, size);
    memcpy(signals, e->signals, signals_size);
    memcpy(crossing, e->crossing, crossing_size);
    int status = bl_complete_interpolant(e, t, h);
    for (int k = 0; k < BL_PROBES && status == BL_OK; k++) {
        bl_interpolate(e, h, parts[k], e->x);
        bl_follow_inputs(e, t + parts[k] * h);
        status = bl_run_minor(e, &e->crossing_program, t + parts[k] * h);
        for (int64_t i = 0; i < e->rated_width; i++) e->rate_probes[k * e->rated_width + i] = *e->rated_inputs[i];
        if (status == BL_OK && found < 0) found = find_passed(e, t + parts[k] * h);
    }
    if (status == BL_OK && found < 0) found = find_unresolved(e, parts);
    memcpy(e->x, x, size);
    memcpy(e->dx, slope, size);
    bl_follow_inputs(e, t + h);
    memcpy(e->signals, signals, signals_size);
    memcpy(e->crossing, crossing, crossing_size);
    e->unresolved_block = found;
    *resolves = found < 0;
    if (found >= 0) e->open[BL_OPEN_DOUBT] = 2.0 * RATE_PATIENCE;
    return status;
}
