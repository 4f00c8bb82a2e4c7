/* Sources that follow time. Parameters are laid out one after the other, each with a value for every
 * element: parameter j of element k is p[j * n + k]. */
#include <math.h>

#include "blocks/core/kernel/constants.h"
#include "blocks/core/kernel/kernel.h"

static int source_fits(const bl_block *b, int32_t parameters, int32_t integers) {
    return b->u_count == 0 && b->y_count == 1 && b->i_count == integers &&
           (int64_t)b->p_count == (int64_t)parameters * b->y_width[0];
}

/* A time that the user means to be a tick may lie a rounding error beside it; the second part is what rounding does to large times. */
static double source_slack(const bl_block *b, double t) { return 1e-6 * b->dt + 8e-16 * fabs(t); }

/* Constant: y = value */
static int constant_check(const bl_block *b) { return source_fits(b, 1, 0); }
static int constant_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = b->p[k];
    return BL_OK;
}

/* Time: y = t */
static int time_check(const bl_block *b) { return source_fits(b, 0, 0) && b->y_width[0] == 1; }
static int time_output(bl_block *b, double t) {
    b->y[0][0] = t;
    return BL_OK;
}

/* Step: y = t < at ? before : to. p: at, to, before. */
static int step_check(const bl_block *b) { return source_fits(b, 3, 0); }
static int step_output(bl_block *b, double t) {
    const int32_t n = b->y_width[0];
    const double *at = b->p, *to = at + n, *before = to + n, now = t + source_slack(b, t);
    for (int32_t k = 0; k < n; k++) b->y[0][k] = bl_keep_mode(&b->modes, k, now < at[k]) != 0.0 ? before[k] : to[k];
    return BL_OK;
}
/* The smallest of `count` instants that comes after t. */
static double source_next(const double *at, int32_t count, double t) {
    double next = INFINITY;
    for (int32_t k = 0; k < count; k++)
        if (at[k] > t && at[k] < next) next = at[k];
    return next;
}
/* The modes of sources end at instants that are known in advance: their crossing functions stay 0. */
static int32_t source_crossings(const bl_block *b) { return b->y_width[0]; }
static double step_next(const bl_block *b, double t) { return source_next(b->p, b->y_width[0], t); }

/* Ramp: y = before + slope * max(t - at, 0). p: slope, at, before. */
static int ramp_check(const bl_block *b) { return source_fits(b, 3, 0); }
static int ramp_output(bl_block *b, double t) {
    const int32_t n = b->y_width[0];
    const double *slope = b->p, *at = slope + n, *before = at + n;
    for (int32_t k = 0; k < n; k++) {
        const double since = t - at[k];
        const int rises = bl_keep_mode(&b->modes, k, since > (b->modes.mode ? -source_slack(b, t) : 0.0)) != 0.0;
        const int keeps = b->modes.mode && *b->modes.decision == BL_KEEP;
        b->y[0][k] = rises && (keeps || since > 0.0) ? before[k] + slope[k] * since : before[k];
    }
    return BL_OK;
}

static double ramp_next(const bl_block *b, double t) { return source_next(b->p + b->y_width[0], b->y_width[0], t); }

static const double SOURCE_TURN = 2.0 * BL_PI;

/* Sine: y = bias + amplitude * sin(2 pi f t + phase). p: amplitude, frequency, phase, bias. */
static int sine_check(const bl_block *b) { return source_fits(b, 4, 0); }
static int sine_output(bl_block *b, double t) {
    const int32_t n = b->y_width[0];
    const double *amplitude = b->p, *frequency = amplitude + n, *phase = frequency + n, *bias = phase + n;
    for (int32_t k = 0; k < n; k++)
        b->y[0][k] = bias[k] + amplitude[k] * sin(SOURCE_TURN * frequency[k] * t + phase[k]);
    return BL_OK;
}

/* Pulse. p: period, duty, amplitude, delay, low. */
static int pulse_check(const bl_block *b) { return source_fits(b, 5, 0); }
static int pulse_output(bl_block *b, double t) {
    const int32_t n = b->y_width[0];
    const double *period = b->p, *duty = period + n, *amplitude = duty + n, *delay = amplitude + n, *low = delay + n;
    for (int32_t k = 0; k < n; k++) {
        const double since = t + source_slack(b, t) - delay[k];
        const double phase = since - period[k] * floor(since / period[k]);
        const int high = since >= 0.0 && phase < duty[k] * period[k];
        b->y[0][k] = bl_keep_mode(&b->modes, k, high) != 0.0 ? low[k] + amplitude[k] : low[k];
    }
    return BL_OK;
}
static double pulse_next(const bl_block *b, double t) {
    const int32_t n = b->y_width[0];
    const double *period = b->p, *duty = period + n, *delay = duty + 2 * n;
    double next = INFINITY;
    for (int32_t k = 0; k < n; k++) {
        const double cycle = fmax(floor((t - delay[k]) / period[k]), 0.0);
        for (int j = 0; j < 4; j++) { /* rounding may put t into the cycle before, or after */
            const double at = delay[k] + (cycle + (double)(j / 2)) * period[k] + (j % 2 ? duty[k] * period[k] : 0.0);
            if (at > t && at < next) next = at;
        }
    }
    return next;
}

/* Chirp. p: f0, f1, duration, amplitude, phase, at. i: 1 if logarithmic. */
static int chirp_check(const bl_block *b) { return source_fits(b, 6, 1); }
static double chirp_cycles(double f0, double f1, double duration, double s, int logarithmic) {
    const double ratio = logarithmic ? log(f1 / f0) : 0.0;
    if (ratio == 0.0) return s * (f0 + 0.5 * (f1 - f0) * (s / duration));
    return f0 * duration / ratio * expm1(ratio * (s / duration));
}
static int chirp_output(bl_block *b, double t) {
    const int32_t n = b->y_width[0];
    const double *f0 = b->p, *f1 = f0 + n, *duration = f1 + n, *amplitude = duration + n, *phase = amplitude + n,
                 *at = phase + n;
    for (int32_t k = 0; k < n; k++) {
        const double since = fmax(t - at[k], 0.0), swept = fmin(since, duration[k]);
        const double cycles = chirp_cycles(f0[k], f1[k], duration[k], swept, b->i[0]) + f1[k] * (since - swept);
        b->y[0][k] = amplitude[k] * sin(phase[k] + SOURCE_TURN * cycles);
    }
    return BL_OK;
}

static double chirp_next(const bl_block *b, double t) {
    const int32_t n = b->y_width[0];
    const double *duration = b->p + 2 * n, *at = duration + 3 * n;
    double next = source_next(at, n, t);
    for (int32_t k = 0; k < n; k++)
        if (at[k] + duration[k] > t) next = fmin(next, at[k] + duration[k]);
    return next;
}

const bl_kernel bl_kernels_sources[] = {
    {.name = "constant", .check = constant_check, .output = constant_output},
    {.name = "time", .check = time_check, .output = time_output},
    {.name = "step",
     .check = step_check,
     .output = step_output,
     .crossing_count = source_crossings,
     .next_instant = step_next,
     .constant_in_mode = 1},
    {.name = "ramp",
     .check = ramp_check,
     .output = ramp_output,
     .crossing_count = source_crossings,
     .next_instant = ramp_next},
    {.name = "sine", .check = sine_check, .output = sine_output},
    {.name = "pulse",
     .check = pulse_check,
     .output = pulse_output,
     .crossing_count = source_crossings,
     .next_instant = pulse_next,
     .constant_in_mode = 1},
    {.name = "chirp", .check = chirp_check, .output = chirp_output, .next_instant = chirp_next},
    {.name = 0},
};
