/* Limits, play and steps. Parameters are numbers, one after the other, or each of them a vector with a
 * value for every element: parameter j of element k is p[j * n + k * (n > 1)]. */
#include <math.h>

#include "blocks/core/kernel/kernel.h"

static int nonlinear_fits(const bl_block *b, int32_t parameters) {
    return b->u_count == 1 && b->y_count == 1 && b->u_width[0] == b->y_width[0] &&
           (b->p_count == parameters || (int64_t)b->p_count == (int64_t)parameters * b->u_width[0]);
}
static double nonlinear_clip(double v, double low, double high) { return v > high ? high : v < low ? low : v; }

/* Modes of v against two limits: above, below or between them. */
static double nonlinear_side(const bl_block *b, int32_t k, double v, double low, double high) {
    const double side = bl_keep_mode(&b->modes, k, v > high ? 1.0 : v < low ? -1.0 : 0.0);
    if (b->modes.mode) b->modes.crossing[k] = side > 0.0 ? v - high : side < 0.0 ? low - v : fmin(high - v, v - low);
    return side;
}
static int32_t nonlinear_crossings(const bl_block *b) { return b->y_width[0]; }

/* Saturation: y = u between lower and upper. p: lower, upper. */
static int saturation_check(const bl_block *b) { return nonlinear_fits(b, 2); }
static int saturation_output(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->p_count / 2, s = n > 1;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double v = b->u[0][k], lower = b->p[k * s], upper = b->p[n + k * s];
        const double side = nonlinear_side(b, k, v, lower, upper);
        b->y[0][k] = side > 0.0 ? upper : side < 0.0 ? lower : v;
    }
    return BL_OK;
}

/* DeadZone: y = 0 between lower and upper, and the distance to them outside. p: lower, upper. */
static int dead_zone_check(const bl_block *b) { return nonlinear_fits(b, 2); }
static int dead_zone_output(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->p_count / 2, s = n > 1;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double v = b->u[0][k], lower = b->p[k * s], upper = b->p[n + k * s];
        const double side = nonlinear_side(b, k, v, lower, upper);
        b->y[0][k] = side > 0.0 ? v - upper : side < 0.0 ? v - lower : v == v ? 0.0 : v;
    }
    return BL_OK;
}

/* Quantizer: y = interval * round(u / interval). p: interval. i: 1 if its steps are events. */
static int quantizer_check(const bl_block *b) { return nonlinear_fits(b, 1) && b->i_count == 1; }
static int32_t quantizer_crossings(const bl_block *b) { return b->i[0] ? b->y_width[0] : 0; }
static int quantizer_output(bl_block *b, double t) {
    (void)t;
    const int32_t s = b->p_count > 1;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double interval = b->p[k * s], v = b->u[0][k];
        if (!(interval > 0.0)) {
            b->y[0][k] = v;
            continue;
        }
        const double now = round(v / interval), step = b->i[0] ? bl_keep_mode(&b->modes, k, now) : now;
        if (b->i[0] && b->modes.mode) b->modes.crossing[k] = 0.5 - fabs(v / interval - step);
        b->y[0][k] = interval * step;
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
    for (int32_t k = 0; k < b->z_count; k++) {
        const int on = bl_keep_mode(&b->modes, k, relay_is_on(b, k)) != 0.0;
        if (b->modes.mode) b->modes.crossing[k] = on ? b->u[0][k] - b->p[n + k * s] : b->p[k * s] - b->u[0][k];
        b->y[0][k] = b->p[(on ? 2 : 3) * n + k * s];
    }
    return BL_OK;
}
static int relay_event(bl_block *b, double t) {
    (void)t;
    int status = BL_UNCHANGED;
    for (int32_t k = 0; k < b->z_count; k++) {
        const double on = relay_is_on(b, k);
        if (on != b->z[k]) status = BL_OK;
        b->z[k] = on;
    }
    return status;
}
static int relay_update(bl_block *b, double t) {
    (void)relay_event(b, t);
    return BL_OK;
}

/* RateLimiter: y goes after u, by at most rising * dt up and falling * dt down in a sample. In a continuous one, dt is the time
   since the last tick or event.
   i: whether it starts from `initial` rather than from u. p: rising, falling, initial if so.
   z: whether it has started, the time of the last y, then the last y. */
static int32_t rate_limiter_parameters(const bl_block *b) { return b->i[0] ? 3 : 2; }
static int rate_limiter_check(const bl_block *b) {
    return b->i_count == 1 && nonlinear_fits(b, rate_limiter_parameters(b));
}
static bl_sizes rate_limiter_sizes(const bl_block *b) { return (bl_sizes){.memory = 2 + (int64_t)b->y_width[0]}; }
static int rate_limiter_init(bl_block *b, double t) {
    const int32_t n = b->p_count / rate_limiter_parameters(b), s = n > 1;
    b->z[0] = b->i[0] != 0;
    b->z[1] = t - b->dt;
    for (int32_t k = 2; k < b->z_count; k++) b->z[k] = b->i[0] ? b->p[2 * n + (k - 2) * s] : 0.0;
    return BL_OK;
}
static double rate_limiter_next(const bl_block *b, int32_t k, double t) {
    const int32_t n = b->p_count / rate_limiter_parameters(b), s = n > 1;
    const double v = b->u[0][k], last = b->z[2 + k], span = b->modes.mode ? t - b->z[1] : b->dt;
    if (b->z[0] == 0.0) {
        if (b->modes.mode) b->modes.crossing[k] = bl_keep_mode(&b->modes, k, 0.0);
        return v;
    }
    const double low = last - b->p[n + k * s] * span, high = last + b->p[k * s] * span;
    const double side = nonlinear_side(b, k, v, low, high);
    return side > 0.0 ? high : side < 0.0 ? low : v;
}
static int rate_limiter_output(bl_block *b, double t) {
    for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = rate_limiter_next(b, k, t);
    return BL_OK;
}
static int rate_limiter_update(bl_block *b, double t) {
    for (int32_t k = 0; k < b->y_width[0]; k++) b->z[2 + k] = rate_limiter_next(b, k, t);
    b->z[0] = 1.0;
    b->z[1] = t;
    return BL_OK;
}
static int rate_limiter_event(bl_block *b, double t) {
    if (b->z[0] != 0.0 && b->z[1] == t) return BL_UNCHANGED;
    return rate_limiter_update(b, t);
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
/* While y follows u, its mode ends where u returns to its value at the last tick: the reversal itself is not a crossing. */
static int backlash_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) {
        const double half = 0.5 * b->p[b->p_count > 2 ? k : 0], low = b->u[0][k] - half, high = b->u[0][k] + half;
        const double side = bl_keep_mode(&b->modes, k, b->z[k] > high ? 1.0 : b->z[k] < low ? -1.0 : 0.0);
        if (b->modes.mode)
            b->modes.crossing[k] = side > 0.0   ? b->z[k] - high
                                   : side < 0.0 ? low - b->z[k]
                                                : fmin(high - b->z[k], b->z[k] - low);
        b->y[0][k] = side > 0.0 ? high : side < 0.0 ? low : b->z[k];
    }
    return BL_OK;
}
static int backlash_update(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = backlash_next(b, k);
    return BL_OK;
}

const bl_kernel bl_kernels_nonlinear[] = {
    {.name = "saturation",
     .check = saturation_check,
     .output = saturation_output,
     .crossing_count = nonlinear_crossings},
    {.name = "dead_zone", .check = dead_zone_check, .output = dead_zone_output, .crossing_count = nonlinear_crossings},
    {.name = "quantizer", .check = quantizer_check, .output = quantizer_output, .crossing_count = quantizer_crossings},
    {.name = "relay",
     .check = relay_check,
     .sizes = relay_sizes,
     .init = relay_init,
     .output = relay_output,
     .update = relay_update,
     .crossing_count = nonlinear_crossings,
     .event = relay_event},
    {.name = "rate_limiter",
     .check = rate_limiter_check,
     .sizes = rate_limiter_sizes,
     .init = rate_limiter_init,
     .output = rate_limiter_output,
     .update = rate_limiter_update,
     .crossing_count = nonlinear_crossings,
     .event = rate_limiter_event,
     .remembers = 1},
    {.name = "backlash",
     .check = backlash_check,
     .sizes = backlash_sizes,
     .init = backlash_init,
     .output = backlash_output,
     .update = backlash_update,
     .crossing_count = nonlinear_crossings},
    {.name = 0},
};
