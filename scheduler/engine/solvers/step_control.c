/* What methods with error control share: norms, the first step, the fit of steps to a limit. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "scheduler/engine/solvers/solver.h"

int bl_evaluate_at(bl_engine *e, double t) {
    bl_count(e, BL_SOLVER_EVALUATIONS);
    const int status = bl_evaluate_stage(e, t);
    return status == BL_OK ? bl_evaluate_derivatives(e, t) : status;
}

void bl_find_nominals(bl_engine *e) {
    for (int32_t k = 0; k < e->scaled_count; k++) {
        const bl_block *b = e->scaled[k];
        const double *nominals = e->kernels[b->index]->nominals(b);
        double *found = e->nominals + (b->x - e->x);
        for (int32_t i = 0; i < b->x_count; i++)
            found[i] = nominals[i] > 0.0 && isfinite(nominals[i]) ? nominals[i] : 1.0;
    }
}

double bl_nominal(bl_engine *e, int64_t slot) {
    const int64_t state = slot - (e->x - e->values);
    bl_find_nominals(e);
    return state >= 0 && state < e->layout.states ? e->nominals[state] : 1.0;
}

double bl_norm(const double *values, const double *scale, int64_t n) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double part = values[i] / scale[i];
        sum += part * part;
    }
    return sqrt(sum / (double)n);
}

bool bl_all_finite(const double *values, int64_t n) {
    double sum = 0.0; /* 0 · x is 0 if x is finite and NaN otherwise */
    for (int64_t i = 0; i < n; i++) sum += 0.0 * values[i];
    return sum == 0.0;
}

bool bl_can_retry(int status) {
    return status < 0 && status != BL_ERROR_INTERRUPT && status != BL_ERROR_MEMORY && status != BL_ERROR_ARGUMENT;
}

bool bl_is_too_short(double t, double h, double limit) {
    return !(h >= limit) && (!(h > 10.0 * DBL_EPSILON * fabs(t)) || h < 1e-290);
}

int32_t bl_owner_of_state(const bl_engine *e, int64_t state) {
    for (int32_t k = 0; k < e->block_count; k++) {
        const bl_block *b = &e->blocks[k];
        if (e->x + state >= b->x && e->x + state < b->x + b->x_count) return k;
    }
    return -1;
}

int bl_fail_too_short(bl_engine *e, double t, double h, int status, const char *remedy) {
    if (status != BL_OK && bl_can_retry(status)) return status; /* the block's own reason says more */
    return bl_fail(
        e, BL_ERROR_SOLVER, -1,
        "a step of %.3g s from t = %.9g s still misses the tolerance; the states may have a singularity or a "
        "jump there. %s",
        h, t, remedy);
}

double bl_fit_step(double proposed, double limit) {
    if (1.01 * proposed >= limit) return limit;
    return 2.0 * proposed > limit ? 0.5 * limit : proposed;
}

/* Hairer, Nørsett, Wanner, Solving Ordinary Differential Equations I, II.4: an explicit Euler step that changes little, and the
   change of the slope in it. */
int bl_first_step(bl_engine *e, double t, double limit, int order, const double *scale, double *work, double *h) {
    const int64_t n = e->layout.states;
    double *x0 = work, *f0 = work + n;
    memcpy(x0, e->x, (size_t)n * sizeof(double));
    memcpy(f0, e->dx, (size_t)n * sizeof(double));
    const double size = bl_norm(x0, scale, n), slope = bl_norm(f0, scale, n);
    double first = size < 1e-5 || slope < 1e-5 ? 1e-6 : 0.01 * size / slope;
    if (!(first <= limit)) first = limit;
    for (int64_t i = 0; i < n; i++) e->x[i] = x0[i] + first * f0[i];
    const int status = bl_evaluate_at(e, t + first);
    double curvature = 0.0;
    if (status == BL_OK) {
        for (int64_t i = 0; i < n; i++) e->dx[i] -= f0[i];
        curvature = bl_norm(e->dx, scale, n) / first;
    }
    memcpy(e->x, x0, (size_t)n * sizeof(double));
    memcpy(e->dx, f0, (size_t)n * sizeof(double));
    if (status != BL_OK && !bl_can_retry(status)) return status;
    const double largest = fmax(slope, curvature);
    if (status != BL_OK || !isfinite(largest)) {
        if (status != BL_OK) bl_forget_failure(e);
        *h = 0.01 * first;
        return BL_OK;
    }
    const double second = largest <= 1e-15 ? fmax(1e-6, 1e-3 * first) : pow(0.01 / largest, 1.0 / (double)(order + 1));
    *h = fmin(limit, fmin(100.0 * first, second));
    return BL_OK;
}
