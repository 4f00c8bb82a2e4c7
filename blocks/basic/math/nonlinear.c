/* Limits, play and steps. Parameters are numbers, one after the other, or each of them a vector with a
 * value for every element: parameter j of element k is p[j * n + k * (n > 1)]. */
#include <math.h>

#include "blocks/core/kernel/course.h"
#include "blocks/core/kernel/kernel.h"

static int nonlinear_fits(const bl_block *b, int32_t parameters) {
    return b->u_count == 1 && b->y_count == 1 && b->u_width[0] == b->y_width[0] &&
           (b->p_count == parameters || (int64_t)b->p_count == (int64_t)parameters * b->u_width[0]);
}
static double nonlinear_clip(double v, double low, double high) { return v > high ? high : v < low ? low : v; }

/* Modes of v against two limits: above, below or between them. */
static double nonlinear_side(const bl_block *b, int32_t k, double v, double low, double high) {
    const double now = v > high ? 1.0 : v < low ? -1.0 : 0.0;
    if (!b->modes.mode) return now;
    const double side = bl_keep_mode(&b->modes, k, now), to_high = high - v, to_low = v - low;
    const double nearest = to_high < to_low || to_low != to_low ? to_high : to_low; /* fmin is a call */
    b->modes.crossing[k] = side == 0.0 ? nearest : side > 0.0 ? -to_high : -to_low;
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
    const int32_t n = b->p_count / 5, s = n > 1, count = b->z_count;
    const bl_modes *modes = &b->modes;
    const double *u = b->u[0];
    double *y = b->y[0];
    for (int32_t k = 0; k < count; k++) {
        const double *p = b->p + k * s, now = u[k] >= p[0] ? 1.0 : u[k] <= p[n] ? 0.0 : b->z[k];
        const int on = bl_keep_mode(modes, k, now) != 0.0;
        if (modes->mode) modes->crossing[k] = on ? u[k] - p[n] : p[0] - u[k];
        y[k] = p[on ? 2 * n : 3 * n];
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

static const double NONLINEAR_CONTACT = 1e-9; /* of a tick: what meets within this has met */
static const double NONLINEAR_RESOLUTION = 1e-6; /* of a play, or of the way in a tick: what is too small to matter */

/* RateLimiter: y goes after u, by at most rising * dt up and falling * dt down in a sample. In a continuous one, dt is the time
   since the last tick or event, at most dt: not the time that a subsystem was disabled.
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
/* How far y may be from the last one. */
static double rate_limiter_reach(double rate, double span) { return isinf(rate) ? INFINITY : rate * span; }
typedef struct {
    double v, low, high, rising, falling;
} rate_limiter_window;
static rate_limiter_window rate_limiter_at(const bl_block *b, int32_t k, double t) {
    const int32_t n = b->p_count / rate_limiter_parameters(b), s = n > 1;
    const double last = b->z[2 + k], since = t - b->z[1];
    const double span = b->modes.mode && since < 1.5 * b->dt ? since : b->dt;
    const double rising = b->p[k * s], falling = b->p[n + k * s];
    if (b->z[0] == 0.0) return (rate_limiter_window){b->u[0][k], -INFINITY, INFINITY, rising, falling};
    return (rate_limiter_window){b->u[0][k], last - rate_limiter_reach(falling, span),
                                 last + rate_limiter_reach(rising, span), rising, falling};
}
static double rate_limiter_next(const bl_block *b, int32_t k, double t) {
    const rate_limiter_window w = rate_limiter_at(b, k, t);
    if (!b->modes.mode || *b->modes.decision != BL_KEEP) return nonlinear_clip(w.v, w.low, w.high);
    return b->modes.mode[k] > 0.0 ? w.high : b->modes.mode[k] < 0.0 ? w.low : w.v;
}
/* Modes: limited on the way up (1) or down (-1), until y meets u; following u (0), until that changes faster than allowed. */
static int rate_limiter_cross(bl_block *b, double t) {
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const rate_limiter_window w = rate_limiter_at(b, k, t);
        const double rate = b->u1 ? b->u1[0][k] : 0.0;
        double now = w.v > w.high ? 1.0 : w.v < w.low ? -1.0 : 0.0;
        /* In an algebraic loop u has an error, and with it where y has met it. */
        const double near = NONLINEAR_CONTACT * b->dt;
        if (b->u1 && now > 0.0 && w.v - w.high <= near * (w.rising - rate)) now = 0.0;
        if (b->u1 && now < 0.0 && w.low - w.v <= near * (w.falling + rate)) now = 0.0;
        if (now == 0.0) now = rate > w.rising ? 1.0 : rate < -w.falling ? -1.0 : 0.0;
        const double mode = bl_keep_mode(&b->modes, k, now);
        b->modes.crossing[k] = mode > 0.0   ? w.v - w.high
                               : mode < 0.0 ? w.low - w.v
                                            : fmin(w.rising - rate, w.falling + rate);
    }
    return BL_OK;
}
/* Where y is at u, it follows. */
static int rate_limiter_predict(bl_block *b, double t) {
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const rate_limiter_window w = rate_limiter_at(b, k, t);
        (void)bl_keep_mode(&b->modes, k, w.v > w.high ? 1.0 : w.v < w.low ? -1.0 : 0.0);
        b->modes.crossing[k] = 0.0;
    }
    return BL_OK;
}
static int rate_limiter_stays(const bl_block *b, double t, const bl_course *course) {
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const rate_limiter_window w = rate_limiter_at(b, k, t);
        const double mode = b->modes.mode[k], near = NONLINEAR_CONTACT * b->dt;
        double slowest = 0.0, fastest = 0.0;
        bl_bound_rate(course, k, w.v, &slowest, &fastest);
        if (mode == 0.0 && !(fastest < w.rising && slowest > -w.falling)) return 0;
        if (mode == 0.0) continue;
        /* The way to u now, and at least at the start of the step. */
        const double rest = mode > 0.0 ? w.v - w.high : w.low - w.v;
        const double at_start = rest + b->dt * (mode > 0.0 ? w.rising - fastest : w.falling + slowest);
        const int is_farther = mode > 0.0 ? slowest >= w.rising : fastest <= -w.falling;
        if (!(rest > 0.0) || !(is_farther || at_start > near * (mode > 0.0 ? w.rising - slowest : w.falling + fastest)))
            return 0;
    }
    return 1;
}
static double rate_limiter_resolution(const bl_block *b, int32_t k) {
    const rate_limiter_window w = rate_limiter_at(b, k, b->z[1]);
    return NONLINEAR_RESOLUTION * rate_limiter_reach(w.rising < w.falling ? w.rising : w.falling, b->dt);
}
static int rate_limiter_is_beyond(const bl_block *b, double t) {
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const rate_limiter_window w = rate_limiter_at(b, k, t);
        const double mode = b->modes.mode[k], rest = mode > 0.0 ? w.v - w.high : w.low - w.v;
        if (mode != 0.0 && rest < -rate_limiter_resolution(b, k)) return 1;
    }
    return 0;
}
static int rate_limiter_output(bl_block *b, double t) {
    const double *mode = b->modes.mode;
    if (b->y_width[0] == 1 && mode && *b->modes.decision == BL_KEEP && b->z[0] != 0.0) { /* as a rule, in every stage */
        const double since = t - b->z[1], span = since < 1.5 * b->dt ? since : b->dt;
        b->y[0][0] = mode[0] == 0.0  ? b->u[0][0]
                     : mode[0] > 0.0 ? b->z[2] + rate_limiter_reach(b->p[0], span)
                                     : b->z[2] - rate_limiter_reach(b->p[1], span);
        return BL_OK;
    }
    for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = rate_limiter_next(b, k, t);
    return BL_OK;
}
static int rate_limiter_update(bl_block *b, double t) {
    for (int32_t k = 0; k < b->y_width[0]; k++) b->z[2 + k] = rate_limiter_next(b, k, t);
    b->z[0] = 1.0;
    b->z[1] = t;
    return BL_OK;
}
/* Where y has met u, it is u. */
static int rate_limiter_settle(bl_block *b, double t) {
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double mode = b->modes.mode ? b->modes.mode[k] : 0.0, u = b->u[0][k], y = rate_limiter_next(b, k, t);
        b->z[2 + k] = mode > 0.0 ? fmin(u, y) : mode < 0.0 ? fmax(u, y) : y;
    }
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
/* Modes: y follows u on its way down (1) or up (-1), until u turns; or stands still (0), until u has crossed the play. */
static int backlash_cross(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) {
        const double half = 0.5 * b->p[b->p_count > 2 ? k : 0], low = b->u[0][k] - half, high = b->u[0][k] + half;
        double now = b->z[k] > high ? 1.0 : b->z[k] < low ? -1.0 : 0.0, rate = -now;
        if (b->u1) {
            rate = b->u1[0][k];
            /* In an algebraic loop u has an error, and with it the contact that the last y was at. */
            const double near = NONLINEAR_CONTACT * b->dt * fabs(rate);
            now = b->z[k] >= high - near && rate < 0.0 ? 1.0 : b->z[k] <= low + near && rate > 0.0 ? -1.0 : 0.0;
        }
        const double mode = bl_keep_mode(&b->modes, k, now);
        b->modes.crossing[k] = mode != 0.0 ? -mode * rate : fmin(high - b->z[k], b->z[k] - low);
    }
    return BL_OK;
}
/* At a contact, u goes on in the direction that led there. */
static int backlash_predict(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) {
        const double half = 0.5 * b->p[b->p_count > 2 ? k : 0], low = b->u[0][k] - half, high = b->u[0][k] + half;
        (void)bl_keep_mode(&b->modes, k, b->z[k] >= high ? 1.0 : b->z[k] <= low ? -1.0 : 0.0);
        b->modes.crossing[k] = 0.0;
    }
    return BL_OK;
}
static int backlash_stays(const bl_block *b, double t, const bl_course *course) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) {
        const double u = b->u[0][k], mode = b->modes.mode[k];
        double down = 0.0, up = 0.0;
        bl_bound_rate(course, k, u, &down, &up);
        if (mode > 0.0 ? up < 0.0 : mode < 0.0 && down > 0.0) continue;
        const double half = 0.5 * b->p[b->p_count > 2 ? k : 0];
        const double to_high = u + half - b->z[k], to_low = b->z[k] - (u - half);
        const double way = b->dt * (up > -down ? up : -down) * (1.0 + NONLINEAR_CONTACT);
        if (mode == 0.0 && to_high > way && to_low > way) continue;
        if (!(way >= 0.0)) return 0; /* an input within the step is not a number */
        const int stands = down == 0.0 && up == 0.0; /* then y is the same in contact and free */
        if (mode != 0.0 && stands && (mode > 0.0 ? to_high : to_low) == 0.0) continue;
        if (mode != 0.0) return 0;
        /* Free now, and surely at the start of the step. */
        const double near = NONLINEAR_CONTACT * b->dt * (up > -down ? up : -down);
        if (!(to_high > 0.0 && to_low > 0.0)) return 0;
        if (down < 0.0 && !(to_high - b->dt * (up > 0.0 ? up : 0.0) > near)) return 0;
        if (up > 0.0 && !(to_low + b->dt * (down < 0.0 ? down : 0.0) > near)) return 0;
    }
    return 1;
}
static double backlash_resolution(const bl_block *b, int32_t k) {
    return NONLINEAR_RESOLUTION * b->p[b->p_count > 2 ? k : 0];
}
static int backlash_is_beyond(const bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) {
        const double way = fabs(b->u[0][k] - b->z[k]) - 0.5 * b->p[b->p_count > 2 ? k : 0];
        if (b->modes.mode[k] == 0.0 && way > backlash_resolution(b, k)) return 1;
    }
    return 0;
}
static int backlash_output(bl_block *b, double t) {
    (void)t;
    const double *mode = b->modes.mode, *u = b->u[0], *z = b->z, *p = b->p;
    const int32_t s = b->p_count > 2;
    double *y = b->y[0];
    if (!mode || *b->modes.decision != BL_KEEP) {
        for (int32_t k = 0; k < b->z_count; k++) y[k] = backlash_next(b, k);
    } else if (b->z_count == 1) { /* as a rule, in every stage */
        y[0] = mode[0] == 0.0 ? z[0] : u[0] + (mode[0] > 0.0 ? 0.5 : -0.5) * p[0];
    } else {
        for (int32_t k = 0; k < b->z_count; k++)
            y[k] = mode[k] == 0.0 ? z[k] : u[k] + (mode[k] > 0.0 ? 0.5 : -0.5) * p[k * s];
    }
    return BL_OK;
}
static int backlash_settle(bl_block *b, double t) {
    (void)backlash_output(b, t);
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = b->y[0][k];
    return BL_OK;
}
static int backlash_event(bl_block *b, double t) {
    (void)t;
    int status = BL_UNCHANGED;
    for (int32_t k = 0; k < b->z_count; k++) {
        const double y = backlash_next(b, k);
        if (y != b->z[k]) status = BL_OK;
        b->z[k] = y;
    }
    return status;
}
static int backlash_update(bl_block *b, double t) {
    (void)backlash_event(b, t);
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
     .event = relay_event,
     .constant_in_mode = 1},
    {.name = "rate_limiter",
     .check = rate_limiter_check,
     .sizes = rate_limiter_sizes,
     .init = rate_limiter_init,
     .output = rate_limiter_output,
     .update = rate_limiter_update,
     .crossing_count = nonlinear_crossings,
     .crossings = rate_limiter_cross,
     .settle = rate_limiter_settle,
     .event = rate_limiter_event,
     .remembers = 1,
     .input_rates = 1,
     .predict = rate_limiter_predict,
     .stays = rate_limiter_stays,
     .input_resolution = rate_limiter_resolution,
     .is_beyond = rate_limiter_is_beyond},
    {.name = "backlash",
     .check = backlash_check,
     .sizes = backlash_sizes,
     .init = backlash_init,
     .output = backlash_output,
     .update = backlash_update,
     .crossing_count = nonlinear_crossings,
     .crossings = backlash_cross,
     .settle = backlash_settle,
     .event = backlash_event,
     .remembers = 1,
     .input_rates = 1,
     .predict = backlash_predict,
     .stays = backlash_stays,
     .input_resolution = backlash_resolution,
     .is_beyond = backlash_is_beyond},
    {.name = 0},
};
