/* Blocks with a sample time. */
#include "blocks/core/kernel/kernel.h"

/* UnitDelay: y[n] = u[n-1], y[0] = p. */
static int unit_delay_check(const bl_block *b) {
    return b->u_count == 1 && b->y_count == 1 && b->u_width[0] == b->y_width[0] &&
           (b->p_count == 1 || b->p_count == b->y_width[0]);
}
static bl_sizes unit_delay_sizes(const bl_block *b) { return (bl_sizes){.memory = b->y_width[0]}; }
static int unit_delay_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = b->p[b->p_count > 1 ? k : 0];
    return BL_OK;
}
static int unit_delay_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->y[0][k] = b->z[k];
    return BL_OK;
}
static int unit_delay_update(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = b->u[0][k];
    return BL_OK;
}

/* ZeroOrderHold: y = u at its sample hits; the signal itself holds in between. */
static int zero_order_hold_check(const bl_block *b) {
    return b->u_count == 1 && b->y_count == 1 && b->u_width[0] == b->y_width[0];
}
static int zero_order_hold_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = b->u[0][k];
    return BL_OK;
}

/* DiscreteIntegrator, T = dt, K = p[0]:
 *   forward      y = z                z+ = z + K T u
 *   backward     y = z + K T u        z+ = y
 *   trapezoidal  y = z + K T u / 2    z+ = y + K T u / 2
 * with y and z clipped to the limits.
 * i: method, number of initial values, number of values of each limit. p: K, initial, lower, upper. */
BL_SHARED enum {
    DISCRETE_INTEGRATOR_METHOD,
    DISCRETE_INTEGRATOR_INITIAL,
    DISCRETE_INTEGRATOR_LIMIT,
    DISCRETE_INTEGRATOR_INTEGERS
};
BL_SHARED enum { DISCRETE_INTEGRATOR_FORWARD, DISCRETE_INTEGRATOR_BACKWARD, DISCRETE_INTEGRATOR_TRAPEZOIDAL };

static int discrete_integrator_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 1 || b->i_count != DISCRETE_INTEGRATOR_INTEGERS) return 0;
    const int32_t n = b->y_width[0], initial = b->i[DISCRETE_INTEGRATOR_INITIAL];
    const int32_t limit = b->i[DISCRETE_INTEGRATOR_LIMIT];
    return b->i[DISCRETE_INTEGRATOR_METHOD] >= DISCRETE_INTEGRATOR_FORWARD &&
           b->i[DISCRETE_INTEGRATOR_METHOD] <= DISCRETE_INTEGRATOR_TRAPEZOIDAL && (initial == 1 || initial == n) &&
           (limit == 0 || limit == 1 || limit == n) && b->u_width[0] == n &&
           (int64_t)b->p_count == 1 + (int64_t)initial + 2 * (int64_t)limit;
}
static bl_sizes discrete_integrator_sizes(const bl_block *b) { return (bl_sizes){.memory = b->y_width[0]}; }
static double discrete_integrator_limit(const bl_block *b, int32_t k, double x) {
    const int32_t limits = b->i[DISCRETE_INTEGRATOR_LIMIT];
    if (limits == 0) return x;
    const double *lower = b->p + 1 + b->i[DISCRETE_INTEGRATOR_INITIAL] + (limits > 1 ? k : 0);
    if (x > lower[limits]) x = lower[limits];
    return x < *lower ? *lower : x;
}
static double discrete_integrator_value(const bl_block *b, int32_t k) {
    const int32_t method = b->i[DISCRETE_INTEGRATOR_METHOD];
    const double whole = b->p[0] * b->dt * b->u[0][k];
    if (method == DISCRETE_INTEGRATOR_FORWARD) return discrete_integrator_limit(b, k, b->z[k]);
    return discrete_integrator_limit(b, k, b->z[k] + (method == DISCRETE_INTEGRATOR_BACKWARD ? whole : 0.5 * whole));
}
static int discrete_integrator_init(bl_block *b, double t) {
    (void)t;
    const int32_t initial = b->i[DISCRETE_INTEGRATOR_INITIAL];
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = discrete_integrator_limit(b, k, b->p[1 + (initial > 1 ? k : 0)]);
    return BL_OK;
}
static int discrete_integrator_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->y[0][k] = discrete_integrator_value(b, k);
    return BL_OK;
}
static int discrete_integrator_update(bl_block *b, double t) {
    (void)t;
    static const double LEFT[] = {1.0, 0.0, 0.5}; /* fraction of K T u added after the output */
    const double left = LEFT[b->i[DISCRETE_INTEGRATOR_METHOD]];
    for (int32_t k = 0; k < b->z_count; k++) {
        const double whole = b->p[0] * b->dt * b->u[0][k];
        b->z[k] = discrete_integrator_limit(b, k, discrete_integrator_value(b, k) + left * whole);
    }
    return BL_OK;
}

/* MovingAverage: y = mean of u and the samples before it, N in all, or as many as there are.
 * i: N - 1 stored samples. p: one number or one for each element, with which the window is filled; or nothing,
 * and it starts empty. z: index of the next sample, number of stored samples, the samples. */
enum { MOVING_AVERAGE_NEXT, MOVING_AVERAGE_COUNT, MOVING_AVERAGE_SAMPLES };

static int moving_average_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 1 || b->i_count != 1 || b->i[0] < 0) return 0;
    const int32_t n = b->y_width[0];
    return b->u_width[0] == n && (b->p_count <= 1 || b->p_count == n);
}
static bl_sizes moving_average_sizes(const bl_block *b) {
    return (bl_sizes){.memory = MOVING_AVERAGE_SAMPLES + (int64_t)b->i[0] * b->y_width[0]};
}
static int moving_average_init(bl_block *b, double t) {
    (void)t;
    const int32_t kept = b->i[0], n = b->y_width[0];
    b->z[MOVING_AVERAGE_NEXT] = 0.0;
    b->z[MOVING_AVERAGE_COUNT] = b->p_count > 0 ? (double)kept : 0.0;
    for (int32_t s = 0; s < kept; s++)
        for (int32_t k = 0; k < n; k++)
            b->z[MOVING_AVERAGE_SAMPLES + s * n + k] = b->p_count > 0 ? b->p[b->p_count > 1 ? k : 0] : 0.0;
    return BL_OK;
}
static int moving_average_output(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->y_width[0];
    const double known = b->z[MOVING_AVERAGE_COUNT];
    const int32_t count = known >= 0.0 && known <= (double)b->i[0] ? (int32_t)known : b->i[0];
    /* While the window fills, the samples are the first ones; the order of a full one does not matter. */
    for (int32_t k = 0; k < n; k++) {
        double sum = 0.0;
        for (int32_t s = 0; s < count; s++) sum += b->z[MOVING_AVERAGE_SAMPLES + s * n + k];
        b->y[0][k] = (sum + b->u[0][k]) / (double)(count + 1);
    }
    return BL_OK;
}
static int moving_average_update(bl_block *b, double t) {
    (void)t;
    const int32_t kept = b->i[0], n = b->y_width[0];
    if (kept == 0) return BL_OK;
    const double next = b->z[MOVING_AVERAGE_NEXT];
    const int32_t place = next >= 0.0 && next < (double)kept ? (int32_t)next : 0;
    for (int32_t k = 0; k < n; k++) b->z[MOVING_AVERAGE_SAMPLES + place * n + k] = b->u[0][k];
    b->z[MOVING_AVERAGE_NEXT] = place + 1 < kept ? (double)(place + 1) : 0.0;
    if (b->z[MOVING_AVERAGE_COUNT] < (double)kept) b->z[MOVING_AVERAGE_COUNT] += 1.0;
    return BL_OK;
}

const bl_kernel bl_kernels_discrete[] = {
    {.name = "unit_delay",
     .check = unit_delay_check,
     .sizes = unit_delay_sizes,
     .init = unit_delay_init,
     .output = unit_delay_output,
     .update = unit_delay_update},
    {.name = "zero_order_hold", .check = zero_order_hold_check, .output = zero_order_hold_output},
    {.name = "discrete_integrator",
     .check = discrete_integrator_check,
     .sizes = discrete_integrator_sizes,
     .init = discrete_integrator_init,
     .output = discrete_integrator_output,
     .update = discrete_integrator_update},
    {.name = "moving_average",
     .check = moving_average_check,
     .sizes = moving_average_sizes,
     .init = moving_average_init,
     .output = moving_average_output,
     .update = moving_average_update},
    {.name = 0},
};
