/* Delays that keep a ring of samples. */
#include <math.h>

#include "blocks/core/kernel/kernel.h"
#include "blocks/core/kernel/ring.h"

/* Delay: y[n] = u[n - N]. i: N. p: values before the start. z: index of the oldest sample, N samples. */
static int delay_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 1 || b->i_count != 1 || b->i[0] < 1) return 0;
    const int32_t n = b->y_width[0];
    return b->u_width[0] == n && (b->p_count == 1 || b->p_count == n);
}
static bl_sizes delay_sizes(const bl_block *b) { return (bl_sizes){.memory = 1 + (int64_t)b->i[0] * b->y_width[0]}; }
static int delay_init(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->y_width[0];
    b->z[0] = 0.0;
    for (int32_t s = 0; s < b->i[0]; s++)
        for (int32_t k = 0; k < n; k++) b->z[1 + s * n + k] = b->p[b->p_count > 1 ? k : 0];
    return BL_OK;
}
static int delay_output(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->y_width[0];
    const double *oldest = b->z + 1 + bl_ring_place(b->z[0], b->i[0]) * n;
    for (int32_t k = 0; k < n; k++) b->y[0][k] = oldest[k];
    return BL_OK;
}
static int delay_update(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->y_width[0], place = bl_ring_place(b->z[0], b->i[0]);
    for (int32_t k = 0; k < n; k++) b->z[1 + place * n + k] = b->u[0][k];
    b->z[0] = place + 1 < b->i[0] ? (double)(place + 1) : 0.0;
    return BL_OK;
}

/* TransportDelay: y(t) = u(t - p[0]), with interpolation between samples: linear, or a cubic through four of them.
 * i: room for samples, whether it is cubic. p: delay, values before the start. z: index of the newest sample, number of
 * samples in the ring and in all, time of the newest, the samples.
 *
 * In a loop, corners come back after each delay, smoother every time: the first sample, then every delay / dt samples. A cubic does
 * not reach across one, so that a delay differential equation is solved with the order of the solver, up to 4. */
enum { TRANSPORT_NEWEST, TRANSPORT_COUNT, TRANSPORT_TOTAL, TRANSPORT_TIME, TRANSPORT_SAMPLES };
enum { TRANSPORT_SMOOTH = 6 }; /* corners after which they are too smooth to matter */

static int transport_delay_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 1 || b->i_count != 2 || b->i[0] < (b->i[1] ? 4 : 3)) return 0;
    const int32_t n = b->y_width[0];
    return b->u_width[0] == n && (b->p_count == 2 || (int64_t)b->p_count == 1 + (int64_t)n);
}
static bl_sizes transport_delay_sizes(const bl_block *b) {
    return (bl_sizes){.memory = TRANSPORT_SAMPLES + (int64_t)b->i[0] * b->y_width[0]};
}
static int transport_delay_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = 0.0;
    return BL_OK;
}
/* The longest delay that the ring can serve. */
static double transport_delay_of(const bl_block *b) {
    return fmin(b->p[0], (double)(b->i[0] - (b->i[1] ? 3 : 2)) * b->dt);
}
static const double *transport_delay_sample(const bl_block *b, int32_t back) {
    int32_t place = bl_ring_place(b->z[TRANSPORT_NEWEST], b->i[0]) - back;
    if (place < 0) place += b->i[0];
    return b->z + TRANSPORT_SAMPLES + place * b->y_width[0];
}
/* The first sample may come with a jump, at a known instant: the mode is whether it has. */
static int32_t transport_delay_crossings(const bl_block *b) {
    (void)b;
    return 1;
}
static double transport_delay_next(const bl_block *b, double t) {
    const int32_t room = b->i[0], count = bl_ring_place(b->z[TRANSPORT_COUNT], room + 1);
    if (count == 0) return INFINITY;
    const double delay = transport_delay_of(b);
    const double first = b->z[TRANSPORT_TIME] - (double)(count - 1) * b->dt + delay;
    return first > t ? first : INFINITY;
}
/* Weights of up to four samples around the place `back` from the newest; returns how many, and the first, the oldest, in *oldest. */
static int32_t transport_delay_cubic(const bl_block *b, int32_t count, double delay, double back, double *weights,
                                     int32_t *oldest) {
    const double kept = b->z[TRANSPORT_TOTAL], total = kept >= (double)count && kept < 0x1p53 ? kept : (double)count;
    const double newest = total - 1.0, place = newest - back, before = floor(place); /* in samples from the start */
    const double steps = round(delay / b->dt);
    double first = total - (double)count, last = newest;
    if (steps >= 1.0 && fabs(delay - steps * b->dt) <= 1e-7 * b->dt) {
        const double corner = floor(before / steps);
        if (corner < (double)TRANSPORT_SMOOTH) {
            first = fmax(first, corner * steps);
            last = fmin(last, (corner + 1.0) * steps);
        }
    }
    const double high = fmin(fmax(before - 1.0, first) + 3.0, last), low = fmax(first, high - 3.0);
    const int32_t points = high >= low ? (int32_t)(high - low) + 1 : 0;
    for (int32_t k = 0; k < points; k++) {
        weights[k] = 1.0;
        for (int32_t m = 0; m < points; m++)
            if (m != k) weights[k] *= (place - low - (double)m) / (double)(k - m);
    }
    *oldest = (int32_t)(newest - low);
    return points;
}
static int transport_delay_output(bl_block *b, double t) {
    const int32_t room = b->i[0], count = bl_ring_place(b->z[TRANSPORT_COUNT], room + 1);
    /* The newest sample is one step old at a tick and younger within a step. In a subsystem that was
       disabled it may be older, but there no time has passed. */
    const double age = fmin(fmax(t - b->z[TRANSPORT_TIME], 0.0), b->dt);
    const double delay = transport_delay_of(b);
    double back = fmax((delay - age) / b->dt, 0.0);
    /* A delay of whole steps gives the samples themselves, whatever rounding there is in t. */
    if (fabs(back - round(back)) < 1e-7) back = round(back);
    if (bl_keep_mode(&b->modes, 0, back <= (double)(count - 1)) == 0.0) {
        for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = b->p[b->p_count > 2 ? 1 + k : 1];
        return BL_OK;
    }
    const int32_t oldest = count > 0 ? count - 1 : 0;
    if (back > (double)oldest) back = (double)oldest; /* a rounding error before it, within a step */
    const int32_t whole = (int32_t)back;
    const double part = back - (double)whole;
    if (b->i[1] && part > 0.0) {
        double weights[4];
        int32_t oldest_used = 0;
        const int32_t points = transport_delay_cubic(b, count, delay, back, weights, &oldest_used);
        for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = 0.0;
        for (int32_t m = 0; m < points; m++) {
            const double *sample = transport_delay_sample(b, oldest_used - m);
            for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] += weights[m] * sample[k];
        }
        return BL_OK;
    }
    const double *later = transport_delay_sample(b, whole);
    const double *sooner = part > 0.0 ? transport_delay_sample(b, whole + 1) : later;
    for (int32_t k = 0; k < b->y_width[0]; k++)
        b->y[0][k] = part > 0.0 ? later[k] + part * (sooner[k] - later[k]) : later[k];
    return BL_OK;
}
static int transport_delay_update(bl_block *b, double t) {
    const int32_t room = b->i[0], n = b->y_width[0];
    const int32_t count = bl_ring_place(b->z[TRANSPORT_COUNT], room + 1);
    int32_t place = bl_ring_place(b->z[TRANSPORT_NEWEST], room) + 1;
    if (place == room) place = 0;
    for (int32_t k = 0; k < n; k++) b->z[TRANSPORT_SAMPLES + place * n + k] = b->u[0][k];
    b->z[TRANSPORT_NEWEST] = (double)place;
    b->z[TRANSPORT_COUNT] = (double)(count < room ? count + 1 : room);
    b->z[TRANSPORT_TOTAL] += 1.0;
    b->z[TRANSPORT_TIME] = t;
    return BL_OK;
}

const bl_kernel bl_kernels_delay[] = {
    {.name = "delay",
     .check = delay_check,
     .sizes = delay_sizes,
     .init = delay_init,
     .output = delay_output,
     .update = delay_update},
    {.name = "transport_delay",
     .check = transport_delay_check,
     .sizes = transport_delay_sizes,
     .init = transport_delay_init,
     .output = transport_delay_output,
     .update = transport_delay_update,
     .crossing_count = transport_delay_crossings,
     .next_instant = transport_delay_next},
    {.name = 0},
};
