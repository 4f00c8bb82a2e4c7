/* Algebraic loops: find v with g(v) = v, where g is one pass over the loop's calls, by Newton's method
 * with step halving, from the last committed solution. The Jacobian is by differences, through blocks that know
 * their derivatives by these. */
#include <math.h>
#include <string.h>

#include "blocks/matrix.h"
#include "scheduler/engine.h"

enum { LOOP_ITERATIONS = 50, LOOP_HALVINGS = 12 };
static const double GOAL = 1e-13;       /* relative; reached in one or two steps if the loop is linear */
static const double ACCEPTABLE = 1e-9;  /* where rounding inside the loop stops progress before the goal */

int64_t bl_loop_scratch_size(int32_t tears) {
    const int64_t n = tears;
    return n * n + 6 * n;
}

static int run_body(bl_engine *e, const bl_loop *loop, double t, bool minor, bool nudged) {
    for (int64_t s = 0; s < loop->body.segment_count; s++) {
        const bl_segment *segment = &loop->body.segments[s];
        const bool due = minor ? segment->rate == BL_RATE_CONTINUOUS
                               : bl_due(e, segment->rate, segment->guard);
        if (!due || !bl_active(e, segment->guard)) continue;
        for (int64_t c = segment->first; c < segment->first + segment->count; c++) {
            const bl_call *call = &loop->body.calls[c];
            const bl_operation nudge = nudged ? e->kernels[call->block->index]->nudge : NULL;
            const int status = nudge ? nudge(call->block, t) : call->run(call->block, t);
            if (status != BL_OK) return bl_fail_block(e, status, call->block, "the block failed");
        }
    }
    return BL_OK;
}

/* residual = g(v) - v, leaving g(v) in the tear slots; *size = its largest entry relative to v. `nudged`: v differs so little from
   what was evaluated last that first order will do. */
static int evaluate(bl_engine *e, const bl_loop *loop, double t, bool minor, bool nudged, const double *v,
                    double *residual, double *size) {
    for (int32_t i = 0; i < loop->tear_count; i++) e->values[loop->tears[i]] = v[i];
    const int status = run_body(e, loop, t, minor, nudged);
    *size = 0.0;
    for (int32_t i = 0; i < loop->tear_count; i++) {
        residual[i] = e->values[loop->tears[i]] - v[i];
        const double relative = fabs(residual[i]) / fmax(1.0, fabs(v[i]));
        if (!(relative <= *size)) *size = relative; /* keeps a NaN */
    }
    return status;
}

int bl_solve_loop(bl_engine *e, bl_loop *loop, double t, bool minor) {
    const int64_t n = loop->tear_count;
    double *jacobian = e->loop_scratch, *pivots = jacobian + n * n, *v = pivots + n;
    double *residual = v + n, *step = residual + n, *trial = step + n, *trial_residual = trial + n;
    double size = 0.0;

    for (int64_t i = 0; i < n; i++) v[i] = minor ? e->values[loop->tears[i]] : loop->start[i];
    int status = evaluate(e, loop, t, minor, false, v, residual, &size);
    if (status != BL_OK) return status;
    for (int iteration = 0; !(size <= GOAL); iteration++) {
        if (iteration == LOOP_ITERATIONS || isnan(size)) break;
        for (int64_t j = 0; j < n; j++) {
            const double kept = v[j], nudge = 1e-7 * fmax(1.0, fabs(kept));
            double ignored = 0.0;
            v[j] = kept + nudge;
            const double nudged = v[j] - kept;
            status = evaluate(e, loop, t, minor, true, v, trial_residual, &ignored);
            if (status != BL_OK) return status;
            v[j] = kept;
            for (int64_t i = 0; i < n; i++)
                jacobian[i * n + j] = (trial_residual[i] - residual[i]) / nudged;
        }
        for (int64_t i = 0; i < n; i++) step[i] = -residual[i];
        if (bl_lu_factor(jacobian, pivots, n) != BL_OK) break;
        bl_lu_solve(jacobian, pivots, n, step);

        double fraction = 1.0, trial_size = 0.0;
        int halving = 0;
        for (; halving < LOOP_HALVINGS; halving++, fraction *= 0.5) {
            for (int64_t i = 0; i < n; i++) trial[i] = v[i] + fraction * step[i];
            status = evaluate(e, loop, t, minor, false, trial, trial_residual, &trial_size);
            if (status != BL_OK) return status;
            if (trial_size < size) break;
        }
        if (halving == LOOP_HALVINGS) break;
        memcpy(v, trial, (size_t)n * sizeof(double));
        memcpy(residual, trial_residual, (size_t)n * sizeof(double));
        size = trial_size;
    }
    if (!(size <= ACCEPTABLE))
        return bl_fail(e, BL_ERROR_LOOP, -2 - (int32_t)(loop - e->loops),
                       "the residual of the algebraic loop stays at %.3g", size);
    /* The signals that consumers see are those computed from v. */
    return evaluate(e, loop, t, minor, false, v, residual, &size);
}
