/* Rates of change of inputs, for blocks whose crossing functions depend on them (Backlash, RateLimiter).
 *
 * They are differences along the motion, at both ends of a step: several evaluations of what leads to these blocks. As a rule they are
 * not needed. Modes are predicted without them, the step is taken, and the inputs at its start, within it and at its end bound the
 * rates. If the block would surely have decided as predicted, and surely keeps its mode, the step stands: it is the step that would
 * have been taken with the rates. Else it is taken back. */
#include <math.h>
#include <string.h>

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
    const int status = bl_run_program(e, &e->crossing_program, t + offset, true);
    for (int32_t n = 0; n < e->rated_count; n++)
        for (int32_t k = 0; k < e->rated[n]->u_count; k++)
            for (int32_t i = 0; i < e->rated[n]->u_width[k]; i++)
                e->rated_u1[n][k][i] = (weight < 0.0 ? 0.0 : e->rated_u1[n][k][i]) + weight * e->rated[n]->u[k][i];
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
        e->rated[n]->u1 = (const double *const *)e->rated_u1[n];
        status = bl_run_crossings(e, e->rated[n], t);
        e->rated[n]->u1 = NULL;
    }
    return status;
}

bool bl_can_predict(bl_engine *e, double h) {
    double *doubt = &e->open[BL_OPEN_DOUBT]; /* may come from a deserialized state */
    *doubt = *doubt > 0.0 && *doubt <= (double)RATE_PATIENCE ? *doubt - 1.0 : 0.0;
    return *doubt == 0.0 && h >= e->step * (1.0 - BL_GRID_TOLERANCE) && !e->follows && !bl_has_solver_memory(e) &&
           !e->multirate;
}

/* Adds `weight` times the inputs to `values`, or to zeros. */
static void add_inputs(const bl_engine *e, double weight, bool is_first, double *values) {
    for (int64_t i = 0; i < e->rated_width; i++)
        values[i] = (is_first ? 0.0 : values[i]) + weight * *e->rated_inputs[i];
}

int bl_predict_modes(bl_engine *e, double t) {
    int status = BL_OK;
    memcpy(e->rate_work + 2 * e->layout.states, e->signals, (size_t)e->layout.signals * sizeof(double));
    add_inputs(e, 1.0, true, e->rate_start);
    e->rate_part = 0.0;
    e->notes_inputs = true;
    for (int32_t n = 0; n < e->apart_count && status == BL_OK; n++) {
        bl_block *b = e->apart[n];
        const bl_operation predict = e->kernels[b->index]->predict;
        if (!predict) status = bl_run_crossings(e, b, t);
        else if (bl_active(e, e->block_guard[b->index])) status = predict(b, t);
    }
    return status;
}

void bl_note_inputs(bl_engine *e, double part, double weight) {
    add_inputs(e, weight, e->rate_part == 0.0, e->rate_middle);
    e->rate_part = part;
}

/* Bounds of the rate of an input by three of its values: rates change linearly, or by up to twice as much again. */
static void bound_rate(double error, const double u[3], double part, double h, double *low, double *high) {
    const double first = (u[1] - u[0]) / (part * h), second = (u[2] - u[1]) / ((1.0 - part) * h), bend = second - first,
                 start = first - bend * part, end = second + bend * (1.0 - part);
    const double size = fabs(u[0]) > fabs(u[2]) ? fabs(u[0]) : fabs(u[2]),
                 margin = fabs(end - start) + error * size / (0.25 * h);
    const bool is_constant = u[0] == u[1] && u[1] == u[2];
    *low = is_constant ? 0.0 : (start < end ? start : end) - margin;
    *high = is_constant ? 0.0 : (start < end ? end : start) + margin;
}

bool bl_prediction_holds(bl_engine *e, double t, double h) {
    const double error = e->loop_count > 0 ? INPUT_LOOP_ERROR : INPUT_ROUNDING;
    e->notes_inputs = false;
    if (e->rate_part == 0.0) return false;
    for (int64_t i = 0; i < e->rated_width; i++) {
        const double u[3] = {e->rate_start[i], e->rate_middle[i], *e->rated_inputs[i]};
        bound_rate(error, u, e->rate_part, h, &e->rate_low[i], &e->rate_high[i]);
    }
    for (int32_t n = 0; n < e->rated_count; n++) {
        const bl_block *b = e->rated[n];
        if (bl_active(e, e->block_guard[b->index]) &&
            !e->kernels[b->index]->stays(b, t, (const double *const *)e->rated_u1[n],
                                         (const double *const *)e->rated_u1_high[n]))
            return false;
    }
    return true;
}

void bl_take_back_prediction(bl_engine *e) {
    e->notes_inputs = false;
    e->open[BL_OPEN_DOUBT] = (double)RATE_PATIENCE;
    memcpy(e->signals, e->rate_work + 2 * e->layout.states, (size_t)e->layout.signals * sizeof(double));
}
