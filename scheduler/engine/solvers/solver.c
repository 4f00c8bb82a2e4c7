/* The interface of the solvers: which method runs, its memory, its dense output. */
#include "scheduler/engine/solvers/multirate.h"
#include "scheduler/engine/solvers/solver.h"

#include <string.h>

/* Work space without the dense output of fixed steps. */
static int64_t method_scratch(const bl_engine *e) {
    const int64_t n = e->layout.states;
    if (e->solver == BL_RADAU5) return BL_RADAU5_SCRATCH * n;
    if (bl_is_implicit(e)) return 5 * n + e->jacobian->entries;
    return 10 * n; /* the start, the slopes of seven stages, one stage, the scale */
}

int64_t bl_solver_scratch(const bl_engine *e) { return method_scratch(e) + BL_DENSE_COUNT * e->layout.states; }

/* radau5 starts its iterations from the last polynomial, with fixed steps as well. */
static bool saves_dense(const bl_engine *e) { return bl_is_adaptive(e) || e->solver == BL_RADAU5; }

int64_t bl_solver_memory(const bl_engine *e) {
    if (!bl_has_solver_memory(e)) return 0;
    int64_t count = BL_SOLVER_HEAD;
    if (saves_dense(e)) count += BL_DENSE_COUNT * e->layout.states;
    if (bl_is_implicit(e)) count += bl_real_size(e->jacobian);
    if (e->solver == BL_RADAU5) count += e->jacobian->entries + bl_complex_size(e->jacobian);
    return count;
}

double *bl_dense(const bl_engine *e) {
    return saves_dense(e) ? e->solver_memory + BL_SOLVER_HEAD : e->stages + method_scratch(e);
}

int bl_integrate(bl_engine *e, double t, double h) {
    int status = BL_OK;
    bl_find_nominals(e);
    if (e->solver == BL_RADAU5) status = bl_integrate_radau5(e, t, h);
    else if (bl_is_implicit(e)) status = bl_integrate_implicit(e, t, h);
    else if (e->multirate) status = bl_integrate_multirate(e, t, h);
    else status = bl_integrate_explicit(e, t, h);
    if (status == BL_OK) bl_count(e, BL_SOLVER_STEPS);
    return status;
}

int bl_step_fixed(bl_engine *e, double t, double limit, double *taken) {
    *taken = limit;
    if (e->solver != BL_RADAU5) return bl_integrate(e, t, limit);
    bl_find_nominals(e);
    const int status = bl_step_fixed_radau5(e, t, limit, taken);
    if (status == BL_OK) bl_count(e, BL_SOLVER_STEPS);
    return status;
}

int bl_step_adaptive(bl_engine *e, double t, double limit, double *taken) {
    bl_find_nominals(e);
    return e->solver == BL_RADAU5 ? bl_step_radau5(e, t, limit, taken) : bl_step_dopri5(e, t, limit, taken);
}

void bl_restart_solver(bl_engine *e) {
    if (!bl_has_solver_memory(e)) return;
    double *head = e->solver_memory;
    head[BL_SOLVER_PROPOSED] = head[BL_SOLVER_LENGTH] = head[BL_SOLVER_ERROR] = 0.0;
    head[BL_SOLVER_STIFF_SIGNS] = head[BL_SOLVER_SMOOTH_SIGNS] = head[BL_SOLVER_JUMPED] = 0.0;
    if (e->solver == BL_RADAU5) {
        head[BL_SOLVER_JACOBIAN] = BL_NO_JACOBIAN;
        head[BL_SOLVER_FACTORED] = 0.0;
    }
}

void bl_expect_jump(bl_engine *e) {
    if (bl_has_solver_memory(e)) e->solver_memory[BL_SOLVER_JUMPED] = 1.0;
}

void bl_fill_hermite(const bl_engine *e, const double *x0, const double *f0, const double *f1, double h) {
    const int64_t n = e->layout.states;
    double *dense = bl_dense(e), *rise = dense + BL_DENSE_RISE * n, *bend = dense + BL_DENSE_BEND * n,
           *twist = dense + BL_DENSE_TWIST * n;
    memcpy(dense + BL_DENSE_START * n, x0, (size_t)n * sizeof(double));
    memcpy(dense + BL_DENSE_END * n, e->x, (size_t)n * sizeof(double));
    memset(dense + BL_DENSE_LAST * n, 0, (size_t)n * sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        rise[i] = e->x[i] - x0[i];
        bend[i] = f0 ? h * f0[i] - rise[i] : 0.0;
        twist[i] = f0 ? rise[i] - h * f1[i] - bend[i] : 0.0;
    }
}

/* Methods of order 1 are interpolated linearly: their slopes are no better, and those of a stiff state overshoot. */
int bl_complete_interpolant(bl_engine *e, double t, double h) {
    const int64_t n = e->layout.states;
    if (n == 0 || saves_dense(e)) return BL_OK;
    const double *start = e->stages;
    const int status = bl_evaluate_at(e, t + h);
    if (status != BL_OK) return status;
    if (e->solver == BL_EULER || e->solver == BL_BACKWARD_EULER) bl_fill_hermite(e, start, NULL, NULL, h);
    else if (e->solver == BL_DOPRI5) bl_fill_dopri5(e, start, start + n, e->dx, h);
    else bl_fill_hermite(e, start, start + n, e->dx, h);
    return e->multirate ? bl_complete_multirate(e, t, h) : BL_OK;
}

double bl_dense_value(const bl_engine *e, int64_t state, double theta) {
    const int64_t n = e->layout.states;
    const double *dense = bl_dense(e) + state, rest = 1.0 - theta;
    return dense[BL_DENSE_START * n] +
           theta * (dense[BL_DENSE_RISE * n] + rest * (dense[BL_DENSE_BEND * n] + theta * dense[BL_DENSE_TWIST * n]));
}

void bl_interpolate(const bl_engine *e, double h, double theta, double *x) {
    const int64_t n = e->layout.states;
    const double *dense = bl_dense(e), *start = dense + BL_DENSE_START * n, *rise = dense + BL_DENSE_RISE * n,
                 *bend = dense + BL_DENSE_BEND * n, *twist = dense + BL_DENSE_TWIST * n,
                 *last = dense + BL_DENSE_LAST * n, rest = 1.0 - theta;
    if (theta <= 0.0) memcpy(x, start, (size_t)n * sizeof(double));
    else if (theta >= 1.0) memcpy(x, dense + BL_DENSE_END * n, (size_t)n * sizeof(double));
    else if (e->solver == BL_RADAU5) bl_interpolate_radau5(dense, n, theta, x);
    else if (e->multirate) bl_interpolate_multirate(e, h, theta, x);
    else
        for (int64_t i = 0; i < n; i++)
            x[i] = start[i] + theta * (rise[i] + rest * (bend[i] + theta * (twist[i] + rest * last[i])));
}
