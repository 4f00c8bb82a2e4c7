/* Trigger: keeps the samples around an event. */
#include "blocks/core/kernel/kernel.h"
#include "blocks/daq/trigger.h"

/* Trigger. A ring keeps the last pre + post samples of u. Once `pre` of them are available, an event of the source, one
 * element of u, starts the count of the `post` samples; then the ring is frozen until `arm` falls.
 * u: samples, arm. y: triggered, ready, time of the event. p: level, hysteresis, or lower and upper end of a window.
 * i: event, pre, post, number of the source.
 * z: phase, number of stored samples, samples still to come, time of the event, whether the source was on the side from
 * which an event starts, last value of the source and its time, index of the oldest sample, the samples. */
static int trigger_check(const bl_block *b) {
    if (b->u_count != 2 || b->y_count != 3 || b->i_count != 4 || b->p_count != 2 || b->u_width[1] != 1) return 0;
    for (int port = 0; port < 3; port++)
        if (b->y_width[port] != 1) return 0;
    const int64_t pre = b->i[1], post = b->i[2];
    return b->i[0] >= 0 && b->i[0] < TRIGGER_EVENTS && pre >= 0 && post >= 1 && b->i[3] >= 0 &&
           b->i[3] < b->u_width[0] && pre + post <= INT32_MAX;
}
static bl_sizes trigger_sizes(const bl_block *b) {
    return (bl_sizes){.memory = TRIGGER_SAMPLES + ((int64_t)b->i[1] + b->i[2]) * b->u_width[0]};
}
static void trigger_forget(bl_block *b) {
    for (int32_t k = 0; k < TRIGGER_SAMPLES; k++) b->z[k] = 0.0;
}
static int trigger_init(bl_block *b, double t) {
    (void)t;
    trigger_forget(b);
    for (int32_t k = TRIGGER_SAMPLES; k < b->z_count; k++) b->z[k] = 0.0;
    return BL_OK;
}
static int trigger_output(bl_block *b, double t) {
    (void)t;
    b->y[0][0] = b->z[TRIGGER_PHASE] >= TRIGGER_FILLING;
    b->y[1][0] = b->z[TRIGGER_PHASE] >= TRIGGER_READY;
    b->y[2][0] = b->z[TRIGGER_TIME];
    return BL_OK;
}
/* Where the line from the last value to v passes a level, between the two times. */
static double trigger_crossing(const bl_block *b, double t, double v, double level) {
    const double span = v - b->z[TRIGGER_LAST], part = span != 0.0 ? (v - level) / span : 0.0;
    return part > 0.0 && part < 1.0 ? t - part * (t - b->z[TRIGGER_LAST_TIME]) : t;
}
/* Whether the source is on the side from which an event starts, and whether it is on the other. */
static void trigger_sides(const bl_block *b, double v, int *before, int *after) {
    const double first = b->p[0], second = b->p[1];
    switch (b->i[0]) {
        case TRIGGER_ABOVE: *before = 1, *after = v > first; return;
        case TRIGGER_BELOW: *before = 1, *after = v < first; return;
        case TRIGGER_RISING: *before = v < first - second, *after = v >= first; return;
        case TRIGGER_FALLING: *before = v > first + second, *after = v <= first; return;
        default: *before = v >= first && v <= second, *after = v < first || v > second;
    }
    if (b->i[0] == TRIGGER_ENTER) {
        const int inside = *before;
        *before = *after, *after = inside;
    }
}
/* Level that the source must cross for the event. */
static double trigger_level(const bl_block *b, double v) {
    if (b->i[0] == TRIGGER_LEAVE) return v > b->p[1] ? b->p[1] : b->p[0];
    if (b->i[0] == TRIGGER_ENTER) return b->z[TRIGGER_LAST] > b->p[1] ? b->p[1] : b->p[0];
    return b->p[0];
}
static void trigger_keep(bl_block *b) {
    const int32_t n = b->u_width[0], room = b->i[1] + b->i[2];
    const double kept = b->z[TRIGGER_OLDEST];
    const int32_t place = kept >= 0.0 && kept < (double)room ? (int32_t)kept : 0;
    for (int32_t k = 0; k < n; k++) b->z[TRIGGER_SAMPLES + (int64_t)place * n + k] = b->u[0][k];
    b->z[TRIGGER_OLDEST] = place + 1 < room ? (double)(place + 1) : 0.0;
    if (b->z[TRIGGER_KEPT] < (double)room) b->z[TRIGGER_KEPT] += 1.0;
}
static int trigger_update(bl_block *b, double t) {
    const double v = b->u[0][b->i[3]];
    if (b->u[1][0] == 0.0) trigger_forget(b);
    if (b->u[1][0] == 0.0 || b->z[TRIGGER_PHASE] >= TRIGGER_READY) return BL_OK;
    int before, after;
    trigger_sides(b, v, &before, &after);
    const int levels = b->i[0] == TRIGGER_ABOVE || b->i[0] == TRIGGER_BELOW;
    if (b->z[TRIGGER_PHASE] < TRIGGER_FILLING && b->z[TRIGGER_KEPT] >= (double)b->i[1] && after &&
        (levels || b->z[TRIGGER_PRIMED] != 0.0)) {
        b->z[TRIGGER_PHASE] = TRIGGER_FILLING;
        b->z[TRIGGER_LEFT] = (double)b->i[2];
        b->z[TRIGGER_TIME] = levels ? t : trigger_crossing(b, t, v, trigger_level(b, v));
    }
    trigger_keep(b);
    if (b->z[TRIGGER_PHASE] >= TRIGGER_FILLING) {
        b->z[TRIGGER_LEFT] -= 1.0;
        if (!(b->z[TRIGGER_LEFT] >= 1.0)) b->z[TRIGGER_PHASE] = TRIGGER_READY;
    }
    /* Within the hysteresis band the flag does not change. */
    if (before || after) b->z[TRIGGER_PRIMED] = before;
    b->z[TRIGGER_LAST] = v;
    b->z[TRIGGER_LAST_TIME] = t;
    return BL_OK;
}

const bl_kernel bl_kernels_trigger[] = {
    {.name = "trigger",
     .check = trigger_check,
     .sizes = trigger_sizes,
     .init = trigger_init,
     .output = trigger_output,
     .update = trigger_update},
    {.name = 0},
};
