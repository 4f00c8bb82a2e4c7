/* Dormand–Prince 5(4) with error control and dense output of order 4.
 *
 * E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, 2nd ed.: table II.5.2, step size control with
 * a PI controller (II.4), detection of stiffness (IV.2 of the second volume), dense output (II.6). */
#include <math.h>
#include <string.h>

#include "scheduler/engine/solvers/solver.h"

static const double DOPRI5_ERROR[7] = {71.0 / 57600,      0,          -71.0 / 16695, 71.0 / 1920,
                                       -17253.0 / 339200, 22.0 / 525, -1.0 / 40};
static const double DOPRI5_DENSE[7] = {-12715105075.0 / 11282082432,  0,
                                       87487479700.0 / 32700410799,   -10690763975.0 / 1880347072,
                                       701980252875.0 / 199316789632, -1453857185.0 / 822651844,
                                       69997945.0 / 29380423};
static const double DOPRI5_SIXTH_STAGE[5] = {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656};

static const double DOPRI5_SAFETY = 0.9, DOPRI5_LEAST = 0.2, DOPRI5_MOST = 10.0, DOPRI5_BETA = 0.04;
static const double DOPRI5_STABLE = 3.25; /* |h λ| at the edge of the region of stability */
enum { DOPRI5_CHECK_STEPS = 1000, DOPRI5_STIFF_SIGNS = 15, DOPRI5_SMOOTH_SIGNS = 6, DOPRI5_MOST_REJECTIONS = 100 };
static const char DOPRI5_REMEDY[] = "If the diagram is stiff, use solver='radau5'";

void bl_fill_dopri5(const bl_engine *e, const double *x0, const double *k, const double *f1, double h) {
    const int64_t n = e->layout.states;
    bl_fill_hermite(e, x0, k, f1, h);
    double *last = bl_dense(e) + BL_DENSE_LAST * n;
    for (int64_t i = 0; i < n; i++) {
        double sum = DOPRI5_DENSE[0] * k[i];
        for (int s = 2; s < 6; s++) sum += DOPRI5_DENSE[s] * k[s * n + i];
        last[i] = h * (sum + DOPRI5_DENSE[6] * f1[i]);
    }
}

/* The difference between the solutions of order 5 and 4, in units of the tolerance. */
static double error_norm(const bl_engine *e, const double *x0, const double *k, double h) {
    const int64_t n = e->layout.states;
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double error = DOPRI5_ERROR[0] * k[i];
        for (int s = 2; s < 6; s++) error += DOPRI5_ERROR[s] * k[s * n + i];
        error += DOPRI5_ERROR[6] * e->dx[i];
        const double part =
            h * error /
            (e->absolute_tolerance * e->nominals[i] + e->relative_tolerance * fmax(fabs(x0[i]), fabs(e->x[i])));
        sum += part * part;
    }
    return sqrt(sum / (double)n);
}

/* |h λ| of the dominant eigenvalue, from the last two stages, which are both at the end of the step. */
static double stiffness_of(const bl_engine *e, const double *x0, const double *k, double h) {
    const int64_t n = e->layout.states;
    double slopes = 0.0, states = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double sixth = 0.0;
        for (int s = 0; s < 5; s++) sixth += DOPRI5_SIXTH_STAGE[s] * k[s * n + i];
        const double apart = e->x[i] - (x0[i] + h * sixth), change = e->dx[i] - k[5 * n + i];
        slopes += change * change;
        states += apart * apart;
    }
    return states > 0.0 ? h * sqrt(slopes / states) : 0.0;
}

static void watch_stiffness(bl_engine *e, const double *x0, const double *k, double t, double h) {
    double *head = e->solver_memory;
    if (fmod(head[BL_SOLVER_STEPS], DOPRI5_CHECK_STEPS) != 0.0 && head[BL_SOLVER_STIFF_SIGNS] == 0.0) return;
    if (stiffness_of(e, x0, k, h) > DOPRI5_STABLE) {
        head[BL_SOLVER_SMOOTH_SIGNS] = 0.0;
        head[BL_SOLVER_STIFF_SIGNS] += 1.0;
        if (head[BL_SOLVER_STIFF_SIGNS] < DOPRI5_STIFF_SIGNS) return;
        if (head[BL_SOLVER_STIFF] == 0.0) head[BL_SOLVER_STIFF_TIME] = t;
        head[BL_SOLVER_STIFF] = 1.0;
        head[BL_SOLVER_STIFF_SIGNS] = 0.0;
    } else if ((head[BL_SOLVER_SMOOTH_SIGNS] += 1.0) >= DOPRI5_SMOOTH_SIGNS) {
        head[BL_SOLVER_STIFF_SIGNS] = 0.0;
    }
}

int bl_step_dopri5(bl_engine *e, double t, double limit, double *taken) {
    const int64_t n = e->layout.states;
    double *head = e->solver_memory, *x0 = e->stages, *k = x0 + n, *start = k + 7 * n, *scale = start + n;
    const double *f0 = k;
    int status = BL_OK;
    if (!(head[BL_SOLVER_PROPOSED] > 0.0)) {
        for (int64_t i = 0; i < n; i++)
            scale[i] = e->absolute_tolerance * e->nominals[i] + e->relative_tolerance * fabs(e->x[i]);
        status = bl_first_step(e, t, limit, 5, scale, k, &head[BL_SOLVER_PROPOSED]);
        if (status != BL_OK) return status;
    }
    const double proposed = head[BL_SOLVER_PROPOSED];
    double h = bl_fit_step(proposed, limit);
    memcpy(start, e->dx, (size_t)n * sizeof(double));
    memcpy(x0, e->x, (size_t)n * sizeof(double));
    for (int rejections = 0; rejections < DOPRI5_MOST_REJECTIONS && !bl_is_too_short(t, h, limit); rejections++) {
        double error = INFINITY;
        status = bl_integrate_explicit(e, t, h);
        if (status == BL_OK) status = bl_evaluate_at(e, t + h);
        if (status != BL_OK && !bl_can_retry(status)) return status;
        if (status == BL_OK) error = error_norm(e, x0, k, h);
        if (error <= 1.0) {
            const double before = head[BL_SOLVER_ERROR] > 0.0 ? head[BL_SOLVER_ERROR] : 1e-4;
            double factor = DOPRI5_SAFETY * pow(before, DOPRI5_BETA) / pow(error, 0.2 - 0.75 * DOPRI5_BETA);
            factor =
                fmax(DOPRI5_LEAST, fmin(rejections > 0 ? 1.0 : DOPRI5_MOST, factor)); /* an error of 0 gives infinity */
            head[BL_SOLVER_ERROR] = fmax(error, 1e-4);
            head[BL_SOLVER_LENGTH] = h;
            head[BL_SOLVER_STEPS] += 1.0;
            /* A step that was cut at the limit says nothing against the length that was proposed. */
            head[BL_SOLVER_PROPOSED] = rejections == 0 && h < proposed ? fmax(factor * h, proposed) : factor * h;
            watch_stiffness(e, x0, k, t, h);
            bl_fill_dopri5(e, x0, f0, e->dx, h);
            if (rejections > 0) bl_forget_failure(e);
            *taken = h;
            return BL_OK;
        }
        head[BL_SOLVER_REJECTIONS] += 1.0;
        h *= isfinite(error) ? fmax(DOPRI5_LEAST, DOPRI5_SAFETY / pow(error, 0.2 - 0.75 * DOPRI5_BETA)) : DOPRI5_LEAST;
        memcpy(e->x, x0, (size_t)n * sizeof(double));
        memcpy(e->dx, start, (size_t)n * sizeof(double));
    }
    head[BL_SOLVER_PROPOSED] = h;
    return bl_fail_too_short(e, t, h, status, DOPRI5_REMEDY);
}
