/* Limits, play and steps. Parameters are numbers, one after the other, or each of them a vector with a
 * value for every element: parameter j of element k is p[j * n + k * (n > 1)]. */
#include <math.h>

#include "blocks/core/kernel/kernel.h"

static int nonlinear_fits(const bl_block *b, int32_t parameters) {
    return b->u_count == 1 && b->y_count == 1 && b->u_width[0] == b->y_width[0] &&
           (b->p_count == parameters || (int64_t)b->p_count == (int64_t)parameters * b->u_width[0]);
}
static double nonlinear_clip(double v, double low, double high) { return v > high ? high : v < low ? low : v; }

/* Saturation: y = u between lower and upper. p: lower, upper. */
static int saturation_check(const bl_block *b) { return nonlinear_fits(b, 2); }
static int saturation_output(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->p_count / 2, s = n > 1;
    for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = nonlinear_clip(b->u[0][k], b->p[k * s], b->p[n + k * s]);
    return BL_OK;
}

/* DeadZone: y = 0 between lower and upper, and the distance to them outside. p: lower, upper. */
static int dead_zone_check(const bl_block *b) { return nonlinear_fits(b, 2); }
static int dead_zone_output(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->p_count / 2, s = n > 1;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double v = b->u[0][k], lower = b->p[k * s], upper = b->p[n + k * s];
        b->y[0][k] = v > upper ? v - upper : v < lower ? v - lower : v == v ? 0.0 : v;
    }
    return BL_OK;
}

/* Quantizer: y = interval * round(u / interval). p: interval. */
static int quantizer_check(const bl_block *b) { return nonlinear_fits(b, 1); }
static int quantizer_output(bl_block *b, double t) {
    (void)t;
    const int32_t s = b->p_count > 1;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double interval = b->p[k * s], v = b->u[0][k];
        b->y[0][k] = interval > 0.0 ? interval * round(v / interval) : v;
    }
    return BL_OK;
}

/* Relay: on from u >= on, off from u <= off, else unchanged. p: on, off, high, low, initial.
   z: whether each element is on. */
static int relay_check(const bl_block *b) { return nonlinear_fits(b, 5); }
static int relay_init(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->p_count / 5, s = n > 1;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = b->p[4 * n + k * s] != 0.0;
    return BL_OK;
}
static bl_sizes relay_sizes(const bl_block *b) { return (bl_sizes){.memory = b->y_width[0]}; }
static int relay_is_on(const bl_block *b, int32_t k) {
    const int32_t n = b->p_count / 5, s = n > 1;
    return b->u[0][k] >= b->p[k * s] ? 1 : b->u[0][k] <= b->p[n + k * s] ? 0 : b->z[k] != 0.0;
}
static int relay_output(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->p_count / 5, s = n > 1;
    for (int32_t k = 0; k < b->z_count; k++) b->y[0][k] = b->p[(relay_is_on(b, k) ? 2 : 3) * n + k * s];
    return BL_OK;
}
static int relay_update(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = relay_is_on(b, k);
    return BL_OK;
}

/* RateLimiter: y goes after u, by at most rising * dt up and falling * dt down in a sample.
   i: whether it starts from `initial` rather than from u. p: rising, falling, initial if so.
   z: whether it has started, then the last y. */
static int32_t rate_limiter_parameters(const bl_block *b) { return b->i[0] ? 3 : 2; }
static int rate_limiter_check(const bl_block *b) {
    return b->i_count == 1 && nonlinear_fits(b, rate_limiter_parameters(b));
}
static bl_sizes rate_limiter_sizes(const bl_block *b) { return (bl_sizes){.memory = 1 + (int64_t)b->y_width[0]}; }
static int rate_limiter_init(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->p_count / rate_limiter_parameters(b), s = n > 1;
    b->z[0] = b->i[0] != 0;
    for (int32_t k = 1; k < b->z_count; k++) b->z[k] = b->i[0] ? b->p[2 * n + (k - 1) * s] : 0.0;
    return BL_OK;
}
static double rate_limiter_next(const bl_block *b, int32_t k) {
    const int32_t n = b->p_count / rate_limiter_parameters(b), s = n > 1;
    const double v = b->u[0][k], last = b->z[1 + k];
    if (b->z[0] == 0.0) return v;
    return nonlinear_clip(v, last - b->p[n + k * s] * b->dt, last + b->p[k * s] * b->dt);
}
static int rate_limiter_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = rate_limiter_next(b, k);
    return BL_OK;
}
static int rate_limiter_update(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) b->z[1 + k] = rate_limiter_next(b, k);
    b->z[0] = 1.0;
    return BL_OK;
}

/* Backlash: y stands still until u has crossed the play, then follows half its width behind.
   p: width, initial. z: the last y. */
static int backlash_check(const bl_block *b) { return nonlinear_fits(b, 2); }
static int backlash_init(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->p_count / 2, s = n > 1;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = b->p[n + k * s];
    return BL_OK;
}
static bl_sizes backlash_sizes(const bl_block *b) { return (bl_sizes){.memory = b->y_width[0]}; }
static double backlash_next(const bl_block *b, int32_t k) {
    const double half = 0.5 * b->p[b->p_count > 2 ? k : 0];
    return nonlinear_clip(b->z[k], b->u[0][k] - half, b->u[0][k] + half);
}
static int backlash_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->y[0][k] = backlash_next(b, k);
    return BL_OK;
}
static int backlash_update(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = backlash_next(b, k);
    return BL_OK;
}

const bl_kernel bl_kernels_nonlinear[] = {
    {.name = "saturation", .check = saturation_check, .output = saturation_output},
    {.name = "dead_zone", .check = dead_zone_check, .output = dead_zone_output},
    {.name = "quantizer", .check = quantizer_check, .output = quantizer_output},
    {.name = "relay",
     .check = relay_check,
     .sizes = relay_sizes,
     .init = relay_init,
     .output = relay_output,
     .update = relay_update},
    {.name = "rate_limiter",
     .check = rate_limiter_check,
     .sizes = rate_limiter_sizes,
     .init = rate_limiter_init,
     .output = rate_limiter_output,
     .update = rate_limiter_update},
    {.name = "backlash",
     .check = backlash_check,
     .sizes = backlash_sizes,
     .init = backlash_init,
     .output = backlash_output,
     .update = backlash_update},
    {.name = 0},
};
