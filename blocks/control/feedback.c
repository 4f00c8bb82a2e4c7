/* StateFeedback: v = -K x + N r - Ki ξ, y = v within the limits, ξ+ = ξ + T (r - m) + (T / tracking_time) Ki⁺ (v - y).
 *
 * Inputs: the state x; with a reference r; with integral action also the measurement m.
 * p: K, N if there is r, Ki and its pseudoinverse Ki⁺ if there is m, lower, upper, the tracking time. z: ξ. */
#include <math.h>

#include "blocks/core/kernel/kernel.h"
#include "blocks/core/kernel/matrix.h"

enum { FEEDBACK_STATE, FEEDBACK_REFERENCE, FEEDBACK_MEASUREMENT };

static int32_t feedback_references(const bl_block *b) {
    return b->u_count > FEEDBACK_REFERENCE ? b->u_width[FEEDBACK_REFERENCE] : 0;
}
static int32_t feedback_integrals(const bl_block *b) {
    return b->u_count > FEEDBACK_MEASUREMENT ? b->u_width[FEEDBACK_MEASUREMENT] : 0;
}
static int state_feedback_check(const bl_block *b) {
    if (b->u_count < 1 || b->u_count > 3 || b->y_count != 1) return 0;
    const int64_t n = b->u_width[FEEDBACK_STATE], m = b->y_width[0], q = feedback_references(b),
                  k = feedback_integrals(b);
    if (k > 0 && k != q) return 0;
    const int64_t sizes[] = {m * n, m * q, m * k, m * k, m, m, 1};
    return bl_sizes_fit(sizes, 7, b->p_count);
}
static bl_sizes state_feedback_sizes(const bl_block *b) {
    return (bl_sizes){.memory = feedback_integrals(b), .scratch = b->y_width[0]};
}

typedef struct {
    const double *k, *n, *integral, *inverse, *lower, *upper, *tracking_time;
} feedback_gains;

static feedback_gains feedback_split(const bl_block *b) {
    const int32_t m = b->y_width[0], q = feedback_references(b);
    feedback_gains g;
    g.k = b->p;
    g.n = g.k + m * b->u_width[FEEDBACK_STATE];
    g.integral = g.n + m * q;
    g.inverse = g.integral + m * b->z_count;
    g.lower = g.inverse + m * b->z_count;
    g.upper = g.lower + m;
    g.tracking_time = g.upper + m;
    return g;
}

/* Output number r, before the limits. */
static double feedback_wish(const bl_block *b, const feedback_gains *g, int32_t r) {
    const int32_t n = b->u_width[FEEDBACK_STATE], q = feedback_references(b), count = b->z_count;
    double sum = -bl_dot(0.0, g->k + r * n, b->u[FEEDBACK_STATE], n);
    if (q > 0) sum = bl_dot(sum, g->n + r * q, b->u[FEEDBACK_REFERENCE], q);
    return sum - bl_dot(0.0, g->integral + r * count, b->z, count);
}
/* Without an integral it may run within steps: the mode of each output is at the upper limit, at the lower one, or between. */
static int32_t feedback_crossings(const bl_block *b) { return feedback_integrals(b) > 0 ? 0 : b->y_width[0]; }
static double feedback_limit(const feedback_gains *g, int32_t r, double v) {
    return v > g->upper[r] ? g->upper[r] : v < g->lower[r] ? g->lower[r] : v;
}

static int state_feedback_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = 0.0;
    return BL_OK;
}
static int state_feedback_output(bl_block *b, double t) {
    (void)t;
    const feedback_gains g = feedback_split(b);
    for (int32_t r = 0; r < b->y_width[0]; r++) {
        const double v = feedback_wish(b, &g, r), low = g.lower[r], high = g.upper[r];
        if (!b->modes.mode) {
            b->y[0][r] = feedback_limit(&g, r, v);
            continue;
        }
        const double side = bl_keep_mode(&b->modes, r, v > high ? 1.0 : v < low ? -1.0 : 0.0);
        b->modes.crossing[r] = side > 0.0 ? v - high : side < 0.0 ? low - v : fmin(high - v, v - low);
        b->y[0][r] = side > 0.0 ? high : side < 0.0 ? low : v;
    }
    return BL_OK;
}
static int state_feedback_update(bl_block *b, double t) {
    (void)t;
    const int32_t m = b->y_width[0], count = b->z_count;
    if (count == 0) return BL_OK;
    const feedback_gains g = feedback_split(b);
    const double part = *g.tracking_time > b->dt ? b->dt / *g.tracking_time : 1.0;
    /* All of ξ is used before any of it changes: the excess is stored in the work space. */
    for (int32_t r = 0; r < m; r++) {
        const double v = feedback_wish(b, &g, r);
        b->w[r] = v - feedback_limit(&g, r, v);
    }
    for (int32_t k = 0; k < count; k++) {
        const double error = b->u[FEEDBACK_REFERENCE][k] - b->u[FEEDBACK_MEASUREMENT][k];
        b->z[k] += b->dt * error + part * bl_dot(0.0, g.inverse + k * m, b->w, m);
    }
    return BL_OK;
}

const bl_kernel bl_kernels_feedback[] = {
    {.name = "state_feedback",
     .check = state_feedback_check,
     .sizes = state_feedback_sizes,
     .init = state_feedback_init,
     .output = state_feedback_output,
     .update = state_feedback_update,
     .crossing_count = feedback_crossings},
    {.name = 0},
};
