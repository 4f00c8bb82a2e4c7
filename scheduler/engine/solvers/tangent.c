/* The growth of a small deviation v of the continuous states along a run: dv/dt = J(t) v, with J = df/dx.
 *
 * It is integrated with rk4 and steps of 2 · tangent_every ticks, which is far longer than those of the run. J w is a difference of
 * derivatives, which another engine of the same plan evaluates at a tick of the run. v is normalized after each step. Deviations in
 * discrete states are not included, nor are jumps at events.
 *
 * The step may be too long for the motion: then v is not accurate, and such a step is counted. An oscillator is resolved if its
 * frequency ω times the step is less than TANGENT_RESOLVED; ω² is taken from J J v. If most steps are too long, the integration ends. */
#include <math.h>
#include <string.h>

#include "scheduler/engine/engine.h"

static const double TANGENT_RESOLVED = 1.5;
static const double TANGENT_DEVIATION = 1e-7, TANGENT_SMALLEST = 1e-3;
enum { FEWEST_TANGENT_STEPS = 8 };
enum { TANGENT_V, TANGENT_K1, TANGENT_K2, TANGENT_K3, TANGENT_SLOPE, TANGENT_TRIAL };

static double largest_element(const double *x, int64_t n) {
    double largest = 0.0;
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(x[i]));
    return largest;
}

static double norm_of_tangent(const double *x, int64_t n) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

/* out = J w, where w = v + part · k; at the state of the run, whose derivatives are `slope`. */
static bool multiply_tangent(const bl_engine *e, const bl_estimate *s, double part, const double *k, double *out) {
    const int64_t n = e->layout.states;
    double *v = s->tangent_work + TANGENT_V * n, *slope = s->tangent_work + TANGENT_SLOPE * n,
           *trial = s->tangent_work + TANGENT_TRIAL * n;
    for (int64_t i = 0; i < n; i++) trial[i] = k ? v[i] + part * k[i] : v[i];
    const double size = largest_element(trial, n),
                 factor = TANGENT_DEVIATION * fmax(largest_element(e->x, n), TANGENT_SMALLEST) / size;
    if (!(size > 0.0) || !isfinite(factor)) return false;
    for (int64_t i = 0; i < n; i++) s->tangent->x[i] = e->x[i] + factor * trial[i];
    s->tangent->outputs_valid = false;
    if (bl_derivatives(s->tangent, trial) != BL_OK) return false;
    for (int64_t i = 0; i < n; i++) out[i] = (trial[i] - slope[i]) / factor;
    return true;
}

/* Ends a step of length h: v += h (k1 + 2 k2 + 2 k3 + k4) / 6, where k4 is in `last`. */
static bool end_step_of_tangent(const bl_engine *e, bl_estimate *s, double h, const double *last) {
    const int64_t n = e->layout.states;
    double *v = s->tangent_work + TANGENT_V * n;
    const double *k1 = s->tangent_work + TANGENT_K1 * n, *k2 = s->tangent_work + TANGENT_K2 * n,
                 *k3 = s->tangent_work + TANGENT_K3 * n;
    double bend = 0.0;
    for (int64_t i = 0; i < n; i++) bend += (k2[i] - k1[i]) * (k2[i] - k1[i]);
    const double square = 2.0 / h * sqrt(bend) / norm_of_tangent(v, n); /* of the frequency */
    if (!(square * h * h < TANGENT_RESOLVED * TANGENT_RESOLVED)) s->unresolved++;
    for (int64_t i = 0; i < n; i++) v[i] += h / 6.0 * (k1[i] + 2.0 * (k2[i] + k3[i]) + last[i]);
    const double size = norm_of_tangent(v, n);
    if (!(size > 0.0) || !isfinite(size)) return false;
    for (int64_t i = 0; i < n; i++) v[i] /= size;
    s->growths[s->growth_count] = (s->growth_count > 0 ? s->growths[s->growth_count - 1] : 0.0) + log(size);
    s->growth_count++;
    return s->growth_count < s->growth_capacity &&
           (s->growth_count < FEWEST_TANGENT_STEPS || 2 * s->unresolved < s->growth_count);
}

int bl_propagate_tangent(bl_engine *e, bl_estimate *s) {
    const int64_t n = e->layout.states;
    const double h = 2.0 * (double)s->tangent_every * e->step;
    double *v = s->tangent_work + TANGENT_V * n, *k1 = s->tangent_work + TANGENT_K1 * n,
           *k2 = s->tangent_work + TANGENT_K2 * n, *k3 = s->tangent_work + TANGENT_K3 * n;
    bl_take_over(s->tangent, e);
    /* Its signals are those of the tick, which are known. */
    s->tangent->outputs_valid = s->tangent->constants_valid = s->tangent->parameters_valid = true;
    bool good =
        bl_lend_models(e, s->tangent, true) && bl_derivatives(s->tangent, s->tangent_work + TANGENT_SLOPE * n) == BL_OK;
    if (s->tangent_point % 2 == 1) {
        good = good && multiply_tangent(e, s, 0.5 * h, k1, k2) && multiply_tangent(e, s, 0.5 * h, k2, k3);
    } else {
        if (s->tangent_point == 0) { /* any direction */
            for (int64_t i = 0; i < n; i++) v[i] = cos(1.0 + (double)i);
            const double size = norm_of_tangent(v, n);
            for (int64_t i = 0; i < n; i++) v[i] /= size;
        } else {
            double *last = s->tangent_work + TANGENT_TRIAL * n;
            good = good && multiply_tangent(e, s, h, k3, last) && end_step_of_tangent(e, s, h, last);
        }
        good = good && multiply_tangent(e, s, 0.0, NULL, k1);
    }
    s->tangent_point++;
    s->tangent_next = e->tick + s->tangent_every;
    if (!good) s->tangent_every = 0;
    return bl_reclaim_models(e, s->tangent);
}
