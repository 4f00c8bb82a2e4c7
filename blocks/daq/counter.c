/* Tachometer: counts the rising edges of a signal, and times them for the speed of a shaft.
 *
 * An edge is where u passes the level upwards, after having been below level - hysteresis; its time lies on the line
 * between the samples around it, in whole periods of the timer's clock. With the last edge and that of up to `average`
 * pulses before, speed = 2π / pulses · edges between / time between. While none comes the speed is at most that of one
 * that would come now, and 0 after the timeout.
 * u: signal. y: speed, frequency, count. p: see the enum. i: average.
 * z: see the enum, then times of the last average + 1 edges. */
#include "blocks/core/kernel/constants.h"
#include "blocks/core/kernel/kernel.h"
#include "blocks/core/kernel/ring.h"
#include "blocks/core/kernel/rounding.h"

enum { COUNTER_LEVEL, COUNTER_HYSTERESIS, COUNTER_PULSES, COUNTER_CLOCK, COUNTER_TIMEOUT, COUNTER_PARAMETERS };
enum { COUNTER_PRIMED, COUNTER_LAST, COUNTER_LAST_TIME, COUNTER_COUNT, COUNTER_RUN, COUNTER_NEWEST, COUNTER_EDGES };

static int tachometer_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 3 || b->u_width[0] != 1 || b->p_count != COUNTER_PARAMETERS) return 0;
    for (int port = 0; port < 3; port++)
        if (b->y_width[port] != 1) return 0;
    return b->i_count == 1 && b->i[0] >= 1;
}
static bl_sizes tachometer_sizes(const bl_block *b) {
    return (bl_sizes){.memory = COUNTER_EDGES + 1 + (int64_t)b->i[0]};
}
static int tachometer_init(bl_block *b, double t) {
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = 0.0;
    b->z[COUNTER_LAST_TIME] = t;
    return BL_OK;
}
/* Edges per second. */
static double tachometer_frequency(const bl_block *b) {
    const int32_t room = b->i[0] + 1, newest = bl_ring_place(b->z[COUNTER_NEWEST], room);
    const double run = b->z[COUNTER_RUN]; /* edges since the timeout */
    if (!(run >= 2.0)) return 0.0;
    const int32_t between = run < (double)room ? (int32_t)run - 1 : room - 1;
    const double *edges = b->z + COUNTER_EDGES, last = edges[newest];
    const double time = last - edges[bl_ring_back(b->z[COUNTER_NEWEST], room, between)];
    const double waited = b->z[COUNTER_LAST_TIME] - last; /* until the last evaluated sample */
    if (!(time > 0.0) || waited > b->p[COUNTER_TIMEOUT]) return 0.0;
    /* Upper bound of the frequency: an edge at the present time would end the same number of pulses. */
    const double at_least = last - edges[bl_ring_back(b->z[COUNTER_NEWEST], room, between - 1)] + waited;
    return between / (at_least > time ? at_least : time);
}
static int tachometer_output(bl_block *b, double t) {
    (void)t;
    const double frequency = tachometer_frequency(b);
    b->y[0][0] = frequency * ((2.0 * BL_PI) / b->p[COUNTER_PULSES]);
    b->y[1][0] = frequency;
    b->y[2][0] = b->z[COUNTER_COUNT];
    return BL_OK;
}
static void tachometer_keep(bl_block *b, double t, double u) {
    const int32_t room = b->i[0] + 1, place = bl_ring_next(b->z[COUNTER_NEWEST], room);
    const double clock = b->p[COUNTER_CLOCK], part = (u - b->p[COUNTER_LEVEL]) / (u - b->z[COUNTER_LAST]);
    double edge = part > 0.0 && part < 1.0 ? t - part * (t - b->z[COUNTER_LAST_TIME]) : t;
    if (clock > 0.0) edge = bl_floor(edge * clock + 1e-6) / clock;
    const double before = b->z[COUNTER_EDGES + bl_ring_place(b->z[COUNTER_NEWEST], room)];
    if (edge - before > b->p[COUNTER_TIMEOUT]) b->z[COUNTER_RUN] = 0.0; /* it has stood in between */
    b->z[COUNTER_EDGES + place] = edge;
    b->z[COUNTER_NEWEST] = (double)place;
    b->z[COUNTER_COUNT] += 1.0;
    if (b->z[COUNTER_RUN] < (double)room) b->z[COUNTER_RUN] += 1.0;
}
static int tachometer_update(bl_block *b, double t) {
    const double u = b->u[0][0], level = b->p[COUNTER_LEVEL];
    if (u >= level && b->z[COUNTER_PRIMED] != 0.0) {
        tachometer_keep(b, t, u);
        b->z[COUNTER_PRIMED] = 0.0;
    } else if (u < level - b->p[COUNTER_HYSTERESIS]) {
        b->z[COUNTER_PRIMED] = 1.0;
    }
    b->z[COUNTER_LAST] = u;
    b->z[COUNTER_LAST_TIME] = t;
    return BL_OK;
}

const bl_kernel bl_kernels_counter[] = {
    {.name = "tachometer",
     .check = tachometer_check,
     .sizes = tachometer_sizes,
     .init = tachometer_init,
     .output = tachometer_output,
     .update = tachometer_update},
    {.name = 0},
};
