/* Backward Euler and the trapezoidal rule with fixed steps:
 *     x1 = x0 + h ((1 - theta) f(t0, x0) + theta f(t1, x1))
 * by Newton's method with a Jacobian by differences. Its factors are reused until convergence becomes slow. They are part of
 * the engine's values: a run from a restored state continues bit for bit. */
#include <math.h>
#include <string.h>

#include "scheduler/engine/solvers/solver.h"

enum { SOLVER_ITERATIONS = 12 };

/* Factors of I - theta h df/dx at (t, x); dx is unchanged. */
static int factor_jacobian(bl_engine *e, double t, double theta_h, double *slope, double *increment, double *values) {
    const int64_t n = e->layout.states;
    double *head = e->solver_memory;
    memcpy(slope, e->dx, (size_t)n * sizeof(double));
    for (int64_t j = 0; j < n; j++) increment[j] = 1e-7 * fmax(e->nominals[j], fabs(e->x[j]));
    const int status = bl_differentiate(e, t, theta_h, increment, slope, values);
    if (status != BL_OK) return status;
    head[BL_SOLVER_FACTORIZATIONS] += 1.0;
    head[BL_SOLVER_FACTORED] = theta_h;
    if (bl_factor_real(e->jacobian, values, 1.0, head + BL_SOLVER_HEAD) == BL_OK) return BL_OK;
    head[BL_SOLVER_FACTORED] = 0.0;
    return bl_fail(e, BL_ERROR_SOLVER, -1, "the implicit step's matrix is singular at t = %.9g", t);
}

int bl_integrate_implicit(bl_engine *e, double t, double h) {
    const double theta = e->solver == BL_TRAPEZOIDAL ? 0.5 : 1.0, theta_h = theta * h, t1 = t + h;
    const int64_t n = e->layout.states;
    double *x = e->x, *x0 = e->stages, *f0 = x0 + n, *known = f0 + n, *correction = known + n, *slope = correction + n,
           *values = slope + n;
    const double *factors = e->solver_memory + BL_SOLVER_HEAD;

    memcpy(x0, x, (size_t)n * sizeof(double));
    memcpy(f0, e->dx, (size_t)n * sizeof(double));
    for (int64_t i = 0; i < n; i++) known[i] = x[i] + (h - theta_h) * e->dx[i];
    /* The first attempt uses the matrix at hand; the second makes a new one at every iterate, so that it also gets
       over a kink, where one made at the start of the step points the wrong way. */
    for (int attempt = 0; attempt < 2; attempt++) {
        double before = 0.0;
        memcpy(x, x0, (size_t)n * sizeof(double));
        for (int iteration = 0; iteration < SOLVER_ITERATIONS; iteration++) {
            int status = bl_evaluate_at(e, t1);
            if (status != BL_OK) return status;
            if (e->solver_memory[BL_SOLVER_FACTORED] != theta_h || attempt == 1) {
                status = factor_jacobian(e, t1, theta_h, slope, correction, values);
                if (status != BL_OK) return status;
            }
            for (int64_t i = 0; i < n; i++) correction[i] = known[i] + theta_h * e->dx[i] - x[i];
            bl_solve_real(e->jacobian, factors, correction);
            double size = 0.0;
            for (int64_t i = 0; i < n; i++) {
                x[i] += correction[i];
                const double relative = fabs(correction[i]) / fmax(e->nominals[i], fabs(x[i]));
                if (!(relative <= size)) size = relative;
            }
            /* The error left is about size · rate / (1 - rate); give up early on a matrix that serves badly. */
            const double rate = iteration > 0 ? size / before : 1.0;
            if (size == 0.0 || (iteration > 0 && rate < 1.0 && size * rate / (1.0 - rate) < 1e-12)) return BL_OK;
            if (size < 1e-14) return BL_OK;
            if (isnan(size) || (iteration > 1 && rate > 2.0)) break;
            before = size;
        }
    }
    int64_t worst = 0;
    for (int64_t i = 1; i < n; i++)
        if (!(fabs(correction[i]) <= fabs(correction[worst]))) worst = i;
    return bl_fail(e, BL_ERROR_SOLVER, bl_owner_of_state(e, worst), "the implicit step from t = %.9g did not converge",
                   t);
}
