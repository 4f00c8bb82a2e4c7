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

/* TransportDelay: y(t) = u(t - p[0]), linear interpolation between samples.
 * i: room for samples. p: delay, values before the start. z: index of the newest sample, number of
 * samples, time of the newest, the samples. */
enum { TRANSPORT_NEWEST, TRANSPORT_COUNT, TRANSPORT_TIME, TRANSPORT_SAMPLES };

static int transport_delay_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 1 || b->i_count != 1 || b->i[0] < 3) return 0;
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
static const double *transport_delay_sample(const bl_block *b, int32_t back) {
    int32_t place = bl_ring_place(b->z[TRANSPORT_NEWEST], b->i[0]) - back;
    if (place < 0) place += b->i[0];
    return b->z + TRANSPORT_SAMPLES + place * b->y_width[0];
}
static int transport_delay_output(bl_block *b, double t) {
    const int32_t room = b->i[0], count = bl_ring_place(b->z[TRANSPORT_COUNT], room + 1);
    /* The newest sample is one step old at a tick and younger within a step. In a subsystem that was
       disabled it may be older, but there no time has passed. */
    const double age = fmin(fmax(t - b->z[TRANSPORT_TIME], 0.0), b->dt);
    const double delay = fmin(b->p[0], (double)(room - 2) * b->dt);
    double back = fmax((delay - age) / b->dt, 0.0);
    /* A delay of whole steps gives the samples themselves, whatever rounding there is in t. */
    if (fabs(back - round(back)) < 1e-7) back = round(back);
    if (!(back <= (double)(count - 1))) {
        for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = b->p[b->p_count > 2 ? 1 + k : 1];
        return BL_OK;
    }
    const int32_t whole = (int32_t)back;
    const double part = back - (double)whole;
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
     .update = transport_delay_update},
    {.name = 0},
};
