/* Algebraic loops: find v with g(v) = v, where g is one pass over the loop's calls, by Newton's method
 * with step halving, from the last committed solution. The Jacobian is by differences, through blocks that know
 * their derivatives by these. */
#include <math.h>
#include <string.h>

#include "blocks/core/kernel/matrix.h"
#include "scheduler/engine/engine.h"

enum { LOOP_ITERATIONS = 50, LOOP_HALVINGS = 12 };
enum { CHECK_ITERATIONS = 20, CHECK_POWERS = 30 };
static const double GOAL = 1e-13;       /* relative; reached in one or two steps if the loop is linear */
static const double ACCEPTABLE = 1e-9;  /* where rounding inside the loop stops progress before the goal */

/* What Newton's method works on, for n tears. */
typedef struct {
    double *jacobian; /* n × n, then its factors */
    double *pivots, *v, *residual, *step, *trial, *trial_residual;
} bl_newton;

/* Newton's arrays; for loops that are checked also two matrices and two vectors. */
int64_t bl_loop_scratch_size(int32_t tears) {
    const int64_t n = tears;
    return n <= BL_LOOP_CHECKED ? 3 * n * n + 8 * n : n * n + 6 * n;
}

static bl_newton newton_arrays(const bl_engine *e, int64_t n) {
    double *at = e->loop_scratch;
    return (bl_newton){.jacobian = at,
                       .pivots = at + n * n,
                       .v = at + n * n + n,
                       .residual = at + n * n + 2 * n,
                       .step = at + n * n + 3 * n,
                       .trial = at + n * n + 4 * n,
                       .trial_residual = at + n * n + 5 * n};
}

static int run_body(bl_engine *e, const bl_loop *loop, double t, bool minor, bool perturbed) {
    for (int64_t s = 0; s < loop->body.segment_count; s++) {
        const bl_segment *segment = &loop->body.segments[s];
        const bool due = minor ? segment->rate == BL_RATE_CONTINUOUS : bl_due(e, segment->rate, segment->guard);
        if (!due || !bl_active(e, segment->guard)) continue;
        for (int64_t c = segment->first; c < segment->first + segment->count; c++) {
            const bl_call *call = &loop->body.calls[c];
            const bl_operation derive = perturbed ? e->kernels[call->block->index]->directional_derivative : NULL;
            const int status = derive ? derive(call->block, t) : call->run(call->block, t);
            if (status != BL_OK) return bl_fail_block(e, status, call->block, "the block failed");
        }
    }
    return BL_OK;
}

/* residual = g(v) - v, leaving g(v) in the tear slots; *size = its largest entry relative to v. `perturbed`: v differs so little from
   what was evaluated last that first order will do. */
static int evaluate(bl_engine *e, const bl_loop *loop, double t, bool minor, bool perturbed, const double *v,
                    double *residual, double *size) {
    for (int32_t i = 0; i < loop->tear_count; i++) e->values[loop->tears[i]] = v[i];
    const int status = run_body(e, loop, t, minor, perturbed);
    *size = 0.0;
    for (int32_t i = 0; i < loop->tear_count; i++) {
        residual[i] = e->values[loop->tears[i]] - v[i];
        const double relative = fabs(residual[i]) / fmax(1.0, fabs(v[i]));
        if (!(relative <= *size)) *size = relative; /* keeps a NaN */
    }
    return status;
}

/* The Jacobian of the residual at v, by differences. */
static int find_jacobian(bl_engine *e, const bl_loop *loop, double t, bool minor, const bl_newton *a) {
    const int64_t n = loop->tear_count;
    for (int64_t j = 0; j < n; j++) {
        const double kept = a->v[j], perturbation = 1e-7 * fmax(1.0, fabs(kept));
        double ignored = 0.0;
        a->v[j] = kept + perturbation;
        const double perturbed = a->v[j] - kept;
        const int status = evaluate(e, loop, t, minor, true, a->v, a->trial_residual, &ignored);
        if (status != BL_OK) return status;
        a->v[j] = kept;
        for (int64_t i = 0; i < n; i++) a->jacobian[i * n + j] = (a->trial_residual[i] - a->residual[i]) / perturbed;
    }
    return BL_OK;
}

/* Newton's method from a->v on. *size is the residual that is left; *singular, whether a singular Jacobian ended it. */
static int iterate_loop(bl_engine *e, const bl_loop *loop, double t, bool minor, int iterations, const bl_newton *a,
                        double *size, bool *singular) {
    const int64_t n = loop->tear_count;
    *singular = false;
    int status = evaluate(e, loop, t, minor, false, a->v, a->residual, size);
    if (status != BL_OK) return status;
    for (int iteration = 0; !(*size <= GOAL); iteration++) {
        if (iteration == iterations || isnan(*size)) break;
        status = find_jacobian(e, loop, t, minor, a);
        if (status != BL_OK) return status;
        for (int64_t i = 0; i < n; i++) a->step[i] = -a->residual[i];
        if (bl_lu_factor(a->jacobian, a->pivots, n) != BL_OK) {
            *singular = true;
            break;
        }
        bl_lu_solve(a->jacobian, a->pivots, n, a->step);

        double fraction = 1.0, trial_size = 0.0;
        int halving = 0;
        for (; halving < LOOP_HALVINGS; halving++, fraction *= 0.5) {
            for (int64_t i = 0; i < n; i++) a->trial[i] = a->v[i] + fraction * a->step[i];
            status = evaluate(e, loop, t, minor, false, a->trial, a->trial_residual, &trial_size);
            if (status != BL_OK) return status;
            if (trial_size < *size) break;
        }
        if (halving == LOOP_HALVINGS) break;
        memcpy(a->v, a->trial, (size_t)n * sizeof(double));
        memcpy(a->residual, a->trial_residual, (size_t)n * sizeof(double));
        *size = trial_size;
    }
    return BL_OK;
}

int bl_solve_loop(bl_engine *e, bl_loop *loop, double t, bool minor) {
    const int64_t n = loop->tear_count;
    const bl_newton a = newton_arrays(e, n);
    double size = 0.0;
    bool singular = false;
    for (int64_t i = 0; i < n; i++) a.v[i] = minor ? e->values[loop->tears[i]] : loop->start[i];
    const int status = iterate_loop(e, loop, t, minor, LOOP_ITERATIONS, &a, &size, &singular);
    if (status != BL_OK) return status;
    if (!(size <= ACCEPTABLE))
        return bl_fail(
            e, BL_ERROR_LOOP, -2 - (int32_t)(loop - e->loops), "the residual of the algebraic loop stays at %.3g%s",
            size, singular ? ", and its Jacobian is singular there: a change of the signal comes back unchanged" : "");
    /* The signals that consumers see are those computed from v. */
    return evaluate(e, loop, t, minor, false, a.v, a.residual, &size);
}

/* How far relative changes of the gains in the loop are amplified at v, at least: with G the derivative of g, and J = G - I, the
   spectral radius of |J⁻¹| (|G| + I), which does not depend on the units of the signals (for one tear, (|g'| + 1) / |g' - 1|).
   INFINITY if J is singular. Leaves J factored. */
static int find_condition(bl_engine *e, const bl_loop *loop, double t, const bl_newton *a, double *condition) {
    const int64_t n = loop->tear_count;
    double *inverse = a->trial_residual + n, *gains = inverse + n * n;
    *condition = INFINITY;
    const int status = find_jacobian(e, loop, t, false, a);
    if (status != BL_OK) return status;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const double unit = i == j ? 1.0 : 0.0;
            gains[i * n + j] = fabs(a->jacobian[i * n + j] + unit) + unit;
        }
    if (bl_lu_factor(a->jacobian, a->pivots, n) != BL_OK) return BL_OK;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < n; i++) a->trial[i] = i == j ? 1.0 : 0.0;
        bl_lu_solve(a->jacobian, a->pivots, n, a->trial);
        for (int64_t i = 0; i < n; i++) inverse[i * n + j] = fabs(a->trial[i]);
    }
    /* Both matrices are non-negative, so that powers tend to the spectral radius from a positive vector. */
    double *w = a->trial, *gw = a->trial_residual, largest = 1.0;
    for (int64_t i = 0; i < n; i++) w[i] = 1.0;
    for (int k = 0; k < CHECK_POWERS; k++) {
        for (int64_t i = 0; i < n; i++) gw[i] = bl_dot(0.0, gains + i * n, w, (int32_t)n);
        largest = 0.0;
        for (int64_t i = 0; i < n; i++) {
            w[i] = bl_dot(0.0, inverse + i * n, gw, (int32_t)n);
            largest = fmax(largest, w[i]);
        }
        if (!isfinite(largest) || largest == 0.0) return BL_OK;
        for (int64_t i = 0; i < n; i++) w[i] /= largest;
    }
    *condition = largest;
    return BL_OK;
}

/* Whether no block of the loop is called back or has state outside the engine: such may be evaluated where no run goes. */
static bool may_restart(const bl_engine *e, const bl_loop *loop) {
    for (int64_t c = 0; c < loop->body.call_count; c++) {
        const bl_kernel *kernel = e->kernels[loop->body.calls[c].block->index];
        if (kernel->close || strncmp(kernel->name, "python", 6) == 0) return false;
    }
    return true;
}

/* Whether the loop runs as a whole now: none of its blocks is held. */
static bool is_whole(const bl_engine *e, const bl_loop *loop) {
    for (int64_t s = 0; s < loop->body.segment_count; s++) {
        const bl_segment *segment = &loop->body.segments[s];
        if (!bl_due(e, segment->rate, segment->guard) || !bl_active(e, segment->guard)) return false;
    }
    return true;
}

/* Looks for a solution away from `chosen`, by Newton's method from around it; true if there is one, in a->v. */
static bool find_other(bl_engine *e, const bl_loop *loop, double t, const bl_newton *a, const double *chosen,
                       double apart) {
    static const double distances[] = {1.0, -1.0, 10.0, -10.0, 1000.0, -1000.0};
    const int64_t n = loop->tear_count;
    const int patterns = n > 1 ? 2 : 1, starts = 2 + patterns * (int)(sizeof distances / sizeof *distances);
    for (int s = 0; s < starts; s++) {
        for (int64_t i = 0; i < n; i++) {
            const double scale = fmax(1.0, fabs(chosen[i])), sign = (s - 2) % patterns == 1 && i % 2 == 1 ? -1.0 : 1.0;
            a->v[i] = s == 0 ? 0.0 : s == 1 ? -chosen[i] : chosen[i] + sign * distances[(s - 2) / patterns] * scale;
        }
        double size = 0.0, condition = INFINITY, difference = 0.0, step = 0.0;
        bool singular = false;
        /* A residual may also be small because a solution lies at infinity: there, the next step would be large. */
        if (iterate_loop(e, loop, t, false, CHECK_ITERATIONS, a, &size, &singular) != BL_OK || !(size <= ACCEPTABLE))
            continue;
        if (find_condition(e, loop, t, a, &condition) != BL_OK || !(condition < BL_LOOP_SINGULAR)) continue;
        for (int64_t i = 0; i < n; i++) a->step[i] = -a->residual[i];
        bl_lu_solve(a->jacobian, a->pivots, n, a->step);
        for (int64_t i = 0; i < n; i++) {
            const double scale = fmax(1.0, fmax(fabs(chosen[i]), fabs(a->v[i])));
            difference = fmax(difference, fabs(a->v[i] - chosen[i]) / scale);
            step = fmax(step, fabs(a->step[i]) / scale);
        }
        if (difference > apart && step < 0.1 * apart) return true;
    }
    return false;
}

int bl_check_loop(bl_engine *e, int32_t number, double *chosen, double *other, double *condition) {
    if (number < 0 || number >= e->loop_count)
        return bl_fail(e, BL_ERROR_ARGUMENT, -1, "no algebraic loop %d", (int)number);
    bl_loop *loop = &e->loops[number];
    const int64_t n = loop->tear_count;
    *condition = 1.0;
    if (!e->outputs_valid || e->offset != 0.0 || n > BL_LOOP_CHECKED || !is_whole(e, loop)) return BL_LOOP_GOOD;
    const double t = bl_time(e);
    const bl_newton a = newton_arrays(e, n);
    double size = 0.0;
    bool singular = false;
    int found = BL_LOOP_GOOD;
    memcpy(a.v, loop->start, (size_t)n * sizeof(double));
    int status = iterate_loop(e, loop, t, false, LOOP_ITERATIONS, &a, &size, &singular);
    if (status == BL_OK) status = find_condition(e, loop, t, &a, condition);
    if (status == BL_OK) {
        memcpy(chosen, a.v, (size_t)n * sizeof(double));
        if (!(*condition < BL_LOOP_SINGULAR)) {
            found = BL_LOOP_IS_SINGULAR;
        } else if (may_restart(e, loop) &&
                   find_other(e, loop, t, &a, chosen, fmax(1e-6, 10.0 * ACCEPTABLE * *condition))) {
            found = BL_LOOP_HAS_OTHER;
            memcpy(other, a.v, (size_t)n * sizeof(double));
        }
    }
    bl_forget_failure(e);
    /* The signals as they were: the same start gives the same bits. */
    status = bl_solve_loop(e, loop, t, false);
    return status == BL_OK ? found : status;
}

static const bl_loop *loop_at(const bl_engine *e, int32_t loop) {
    return loop >= 0 && loop < e->loop_count ? &e->loops[loop] : NULL;
}
int32_t bl_loop_count(const bl_engine *e) { return e->loop_count; }
int32_t bl_loop_size(const bl_engine *e, int32_t loop) { return loop_at(e, loop) ? loop_at(e, loop)->tear_count : 0; }
const int32_t *bl_loop_slots(const bl_engine *e, int32_t loop) {
    return loop_at(e, loop) ? loop_at(e, loop)->tears : NULL;
}
