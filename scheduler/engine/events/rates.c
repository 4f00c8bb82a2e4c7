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
enum { RATE_PATIENCE = 8 }; /* ticks without prediction after one that did not hold */

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

bool bl_can_predict(bl_engine *e, double h) {
    double *doubt = &e->open[BL_OPEN_DOUBT]; /* may come from a deserialized state */
    *doubt = *doubt > 0.0 && *doubt <= (double)RATE_PATIENCE ? *doubt - 1.0 : 0.0;
    return *doubt == 0.0 && h >= e->step * (1.0 - BL_GRID_TOLERANCE) && !e->follows && !bl_has_solver_memory(e);
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

void bl_take_back_prediction(bl_engine *e) {
    e->notes_inputs = false;
    e->open[BL_OPEN_DOUBT] = (double)RATE_PATIENCE;
    memcpy(e->signals, e->rate_work + 2 * e->layout.states, (size_t)e->layout.signals * sizeof(double));
}
