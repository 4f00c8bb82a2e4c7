/* Fixed-step integration of the continuous states.
 *
 * Explicit methods are Butcher tables. Backward Euler and the trapezoidal rule solve
 *     x1 = x0 + h ((1 - theta) f(t0, x0) + theta f(t1, x1))
 * by Newton's method with a numeric Jacobian. Its factors are reused until convergence becomes slow. They are
 * part of the engine's values: a run from a restored state continues bit for bit. */
#include <math.h>
#include <string.h>

#include "blocks/core/kernel/matrix.h"
#include "scheduler/engine/engine.h"

enum { LARGEST_STAGES = 7, SOLVER_ITERATIONS = 12 };

typedef struct {
    int stages;
    double a[LARGEST_STAGES][LARGEST_STAGES], b[LARGEST_STAGES], c[LARGEST_STAGES];
} bl_tableau;

static const bl_tableau TABLEAUS[] = {
    [BL_EULER] = {1, {{0}}, {1.0}, {0}},
    [BL_HEUN] = {2, {{0}, {1.0}}, {0.5, 0.5}, {0, 1.0}},
    [BL_RK3] = {3, {{0}, {0.5}, {-1.0, 2.0}}, {1.0 / 6, 4.0 / 6, 1.0 / 6}, {0, 0.5, 1.0}}, /* Kutta */
    [BL_RK4] = {4, {{0}, {0.5}, {0, 0.5}, {0, 0, 1.0}}, {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6}, {0, 0.5, 0.5, 1.0}},
    [BL_DOPRI5] = {6,
                   {{0},
                    {1.0 / 5},
                    {3.0 / 40, 9.0 / 40},
                    {44.0 / 45, -56.0 / 15, 32.0 / 9},
                    {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
                    {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656}},
                   {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84},
                   {0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1.0}},
};

static bool is_implicit(int32_t solver) { return solver == BL_BACKWARD_EULER || solver == BL_TRAPEZOIDAL; }

static int evaluate_at(bl_engine *e, double t) {
    const int status = bl_evaluate_minor(e, t);
    return status == BL_OK ? bl_evaluate_derivatives(e, t) : status;
}

/* The last 4 are the interpolant's. */
int64_t bl_solver_scratch(int32_t solver, int64_t states) {
    return (is_implicit(solver) ? 4 * states : (LARGEST_STAGES + 1) * states) + 4 * states;
}

static double *interpolant(const bl_engine *e) {
    const int64_t n = e->layout.states;
    return e->stages + bl_solver_scratch(e->solver, n) - 4 * n;
}

int bl_complete_interpolant(bl_engine *e, double t, double h) {
    const int64_t n = e->layout.states;
    double *x1 = interpolant(e) + n, *f1 = x1 + 2 * n;
    memcpy(x1, e->x, (size_t)n * sizeof(double));
    const int status = evaluate_at(e, t + h);
    memcpy(f1, e->dx, (size_t)n * sizeof(double));
    return status;
}

void bl_interpolate(const bl_engine *e, double h, double part, double *x) {
    const int64_t n = e->layout.states;
    const double *x0 = interpolant(e), *x1 = x0 + n, *f0 = x1 + n, *f1 = f0 + n, s = part;
    for (int64_t i = 0; i < n; i++) {
        const double d = x1[i] - x0[i];
        x[i] = x0[i] + s * (d + (s - 1.0) * ((1.0 - 2.0 * s) * d + (s - 1.0) * h * f0[i] + s * h * f1[i]));
    }
}

void bl_restart_solver(bl_engine *e) { (void)e; }

/* Saved: the factored matrix, its pivots, and the step it was made for (0: none). */
int64_t bl_solver_memory(int32_t solver, int64_t states) {
    return is_implicit(solver) ? states * states + states + 1 : 0;
}

static int integrate_explicit(bl_engine *e, double t, double h) {
    const bl_tableau *table = &TABLEAUS[e->solver];
    const int64_t n = e->layout.states;
    double *x = e->x, *x0 = e->stages, *k = e->stages + n;

    memcpy(x0, x, (size_t)n * sizeof(double));
    for (int s = 0;; s++) {
        memcpy(k + s * n, e->dx, (size_t)n * sizeof(double));
        const bool last = s + 1 == table->stages;
        const double *weights = last ? table->b : table->a[s + 1];
        for (int64_t i = 0; i < n; i++) x[i] = weights[0] != 0.0 ? k[i] * weights[0] : 0.0;
        for (int r = 1; r <= s; r++) {
            const double weight = weights[r];
            const double *slope = k + r * n;
            if (weight != 0.0)
                for (int64_t i = 0; i < n; i++) x[i] += weight * slope[i];
        }
        for (int64_t i = 0; i < n; i++) x[i] = x0[i] + h * x[i];
        if (last) return BL_OK;
        const double stage_time = t + table->c[s + 1] * h;
        int status = bl_evaluate_minor(e, stage_time);
        if (status == BL_OK) status = bl_evaluate_derivatives(e, stage_time);
        if (status != BL_OK) return status;
    }
}

/* matrix = LU of I - theta h df/dx at (t, x); dx is unchanged. */
static int factor_jacobian(bl_engine *e, double t, double theta_h, double *slope) {
    const int64_t n = e->layout.states;
    double *matrix = e->solver_memory, *pivots = matrix + n * n, *x = e->x;
    memcpy(slope, e->dx, (size_t)n * sizeof(double));
    for (int64_t j = 0; j < n; j++) {
        const double kept = x[j];
        x[j] = kept + 1e-7 * fmax(1.0, fabs(kept));
        const double perturbed = x[j] - kept;
        const int status = evaluate_at(e, t);
        if (status != BL_OK) return status;
        x[j] = kept;
        for (int64_t i = 0; i < n; i++)
            matrix[i * n + j] = (i == j ? 1.0 : 0.0) - theta_h * (e->dx[i] - slope[i]) / perturbed;
    }
    memcpy(e->dx, slope, (size_t)n * sizeof(double));
    pivots[n] = theta_h;
    if (bl_lu_factor(matrix, pivots, n) == BL_OK) return BL_OK;
    pivots[n] = 0.0;
    return bl_fail(e, BL_ERROR_SOLVER, -1, "the implicit step's matrix is singular at t = %.9g", t);
}

static int32_t owner_of_state(const bl_engine *e, int64_t state) {
    for (int32_t k = 0; k < e->block_count; k++) {
        const bl_block *b = &e->blocks[k];
        if (e->x + state >= b->x && e->x + state < b->x + b->x_count) return k;
    }
    return -1;
}

static int integrate_implicit(bl_engine *e, double t, double h) {
    const double theta = e->solver == BL_TRAPEZOIDAL ? 0.5 : 1.0, theta_h = theta * h, t1 = t + h;
    const int64_t n = e->layout.states;
    double *x = e->x, *known = e->stages, *x0 = known + n, *correction = x0 + n, *slope = correction + n;
    double *matrix = e->solver_memory, *pivots = matrix + n * n;

    memcpy(x0, x, (size_t)n * sizeof(double));
    for (int64_t i = 0; i < n; i++) known[i] = x[i] + (h - theta_h) * e->dx[i];
    /* The first attempt uses the matrix at hand; the second makes a new one at every iterate, so that it also gets
       over a kink, where one made at the start of the step points the wrong way. */
    for (int attempt = 0; attempt < 2; attempt++) {
        double before = 0.0;
        memcpy(x, x0, (size_t)n * sizeof(double));
        for (int iteration = 0; iteration < SOLVER_ITERATIONS; iteration++) {
            int status = evaluate_at(e, t1);
            if (status != BL_OK) return status;
            if (pivots[n] != theta_h || attempt == 1) {
                status = factor_jacobian(e, t1, theta_h, slope);
                if (status != BL_OK) return status;
            }
            for (int64_t i = 0; i < n; i++) correction[i] = known[i] + theta_h * e->dx[i] - x[i];
            bl_lu_solve(matrix, pivots, n, correction);
            double size = 0.0;
            for (int64_t i = 0; i < n; i++) {
                x[i] += correction[i];
                const double relative = fabs(correction[i]) / fmax(1.0, fabs(x[i]));
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
    return bl_fail(e, BL_ERROR_SOLVER, owner_of_state(e, worst), "the implicit step from t = %.9g did not converge", t);
}

int bl_integrate(bl_engine *e, double t, double h) {
    const int64_t n = e->layout.states;
    if (e->crossing_count > 0) {
        memcpy(interpolant(e), e->x, (size_t)n * sizeof(double));
        memcpy(interpolant(e) + 2 * n, e->dx, (size_t)n * sizeof(double));
    }
    return is_implicit(e->solver) ? integrate_implicit(e, t, h) : integrate_explicit(e, t, h);
}
