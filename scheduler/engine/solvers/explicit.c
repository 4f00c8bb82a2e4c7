/* Explicit Runge–Kutta methods as Butcher tables. */
#include <string.h>

#include "scheduler/engine/solvers/solver.h"

enum { LARGEST_STAGES = 7 };

typedef struct {
    int stages;
    double a[LARGEST_STAGES][LARGEST_STAGES], b[LARGEST_STAGES], c[LARGEST_STAGES];
    /* Weights of stages whose mean is accurate to second order at one part of the step: there inputs are noted. */
    double middle[LARGEST_STAGES];
} bl_tableau;

static const bl_tableau TABLEAUS[] = {
    [BL_EULER] = {1, {{0}}, {1.0}, {0}, {0}},
    [BL_HEUN] = {2, {{0}, {1.0}}, {0.5, 0.5}, {0, 1.0}, {0}},
    [BL_RK3] = {3, {{0}, {0.5}, {-1.0, 2.0}}, {1.0 / 6, 4.0 / 6, 1.0 / 6}, {0, 0.5, 1.0}, {0}}, /* Kutta */
    [BL_RK4] = {4,
                {{0}, {0.5}, {0, 0.5}, {0, 0, 1.0}},
                {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6},
                {0, 0.5, 0.5, 1.0},
                {0, 0.5, 0.5, 0}},
    [BL_DOPRI5] = {6,
                   {{0},
                    {1.0 / 5},
                    {3.0 / 40, 9.0 / 40},
                    {44.0 / 45, -56.0 / 15, 32.0 / 9},
                    {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
                    {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656}},
                   {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84},
                   {0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1.0},
                   {0, 0, 1.0, 0, 0, 0}},
};

int bl_stage_count(int32_t solver) { return TABLEAUS[solver].stages; }
const double *bl_stage_weights(int32_t solver, int s) {
    return s < TABLEAUS[solver].stages ? TABLEAUS[solver].a[s] : TABLEAUS[solver].b;
}
double bl_stage_time(int32_t solver, int s) { return TABLEAUS[solver].c[s]; }

int bl_integrate_explicit(bl_engine *e, double t, double h) {
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
        const int status = bl_evaluate_at(e, stage_time);
        if (status != BL_OK) return status;
        if (e->notes_inputs && table->middle[s + 1] != 0.0) bl_note_inputs(e, table->c[s + 1], table->middle[s + 1]);
    }
}
