/* What sensors feel. Each kernel turns its inputs into one quantity for each channel, in w; the rest is the chain
 * of instrument.h. */
#include <math.h>

#include "blocks/core/kernel/constants.h"
#include "blocks/sensors/instrument.h"

typedef void (*sensor_feeling)(const bl_block *b);

static int sensor_run_output(bl_block *b, double t, sensor_feeling feel) {
    if (!b->i[INSTRUMENT_ROOM]) feel(b); /* with a latency the present quantity appears at the output later */
    bl_instrument_output(b, t);
    return BL_OK;
}
static int sensor_run_update(bl_block *b, double t, sensor_feeling feel) {
    feel(b);
    bl_instrument_update(b, t);
    return BL_OK;
}

/* Sensor, LoadCell, TorqueMeter: q = M (all inputs but the faults, one after the other).
   i: whether there is a matrix; else q is u. p: M, row by row. */
static int64_t sensor_input_width(const bl_block *b) {
    int64_t width = 0;
    for (int32_t port = 0; port < b->u_count - 2; port++) width += b->u_width[port];
    return width;
}
static int sensor_check(const bl_block *b) {
    if (b->y_count != 1 || b->i_count <= INSTRUMENT_INTEGERS) return 0;
    const int32_t mixed = b->i[INSTRUMENT_INTEGERS];
    const int64_t m = sensor_input_width(b), n = b->y_width[0];
    if ((mixed != 0 && mixed != 1) || m > INT32_MAX || (!mixed && m != n)) return 0;
    return bl_instrument_fits(b, 1, mixed * (n * m));
}
static void sensor_feel_mixed(const bl_block *b) {
    const int32_t n = b->y_width[0], columns = (int32_t)sensor_input_width(b);
    const double *matrix = bl_instrument_own(b);
    for (int32_t k = 0; k < n; k++) b->w[k] = 0.0;
    int32_t column = 0;
    for (int32_t port = 0; port < b->u_count - 2; port++)
        for (int32_t j = 0; j < b->u_width[port]; j++, column++)
            for (int32_t k = 0; k < n; k++) b->w[k] += matrix[k * columns + column] * b->u[port][j];
}
static void sensor_feel(const bl_block *b) {
    if (b->i[INSTRUMENT_INTEGERS]) {
        sensor_feel_mixed(b);
        return;
    }
    double *w = b->w;
    for (int32_t port = 0; port < b->u_count - 2; port++)
        for (int32_t j = 0; j < b->u_width[port]; j++) *w++ = b->u[port][j];
}
static int sensor_output(bl_block *b, double t) { return sensor_run_output(b, t, sensor_feel); }
static int sensor_update(bl_block *b, double t) { return sensor_run_update(b, t, sensor_feel); }

/* Accelerometer: q = M Rᵀ (a - g), with a in axes of the world and R from the Euler parameters of the body.
   p: g, then the directions M of all axes in the body, row by row. */
static int accelerometer_check(const bl_block *b) {
    return b->u_count == 4 && b->y_count == 1 && b->u_width[0] == 3 && b->u_width[1] == 4 &&
           bl_instrument_fits(b, 0, 3 + 3 * (int64_t)b->y_width[0]);
}
static void accelerometer_feel(const bl_block *b) {
    const double *own = bl_instrument_own(b), *a = b->u[0], *e = b->u[1];
    const double f[3] = {a[0] - own[0], a[1] - own[1], a[2] - own[2]};
    /* Rᵀ f = (2 e0² - 1) f + 2 (v · f) v - 2 e0 v × f, for Euler parameters (e0, v) of length 1 */
    const double along = 2.0 * (e[1] * f[0] + e[2] * f[1] + e[3] * f[2]), own_part = 2.0 * e[0] * e[0] - 1.0;
    const double turned[3] = {
        own_part * f[0] + along * e[1] - 2.0 * e[0] * (e[2] * f[2] - e[3] * f[1]),
        own_part * f[1] + along * e[2] - 2.0 * e[0] * (e[3] * f[0] - e[1] * f[2]),
        own_part * f[2] + along * e[3] - 2.0 * e[0] * (e[1] * f[1] - e[2] * f[0]),
    };
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double *axis = own + 3 + 3 * k;
        b->w[k] = axis[0] * turned[0] + axis[1] * turned[1] + axis[2] * turned[2];
    }
}
static int accelerometer_output(bl_block *b, double t) { return sensor_run_output(b, t, accelerometer_feel); }
static int accelerometer_update(bl_block *b, double t) { return sensor_run_update(b, t, accelerometer_feel); }

/* ProximityPair: q is the gap between a probe and the shaft. i: number of values of the runout map, 0 for none.
   p: gap at rest, radius of the shaft, for each probe the cosine and sine of its place and the place itself, the map. */
enum { PROBE_GAP, PROBE_RADIUS, PROBE_PLACES };

static int proximity_check(const bl_block *b) {
    if (b->u_count != 4 || b->y_count != 1 || b->i_count <= INSTRUMENT_INTEGERS) return 0;
    const int32_t points = b->i[INSTRUMENT_INTEGERS];
    return b->u_width[0] == 2 && b->u_width[1] == 1 && points >= 0 &&
           bl_instrument_fits(b, 1, PROBE_PLACES + 3 * (int64_t)b->y_width[0] + points);
}
/* How far the surface stands out at an angle on the shaft, by straight lines between evenly spaced places. */
static double proximity_runout(const double *map, int32_t points, double angle) {
    const double turns = angle / (2.0 * BL_PI);
    double place = (turns - floor(turns)) * points;
    if (place >= (double)points) place = 0.0; /* a hair before a whole turn is rounded to it */
    const int32_t before = place >= 0.0 ? (int32_t)place : 0;
    const double next = map[before + 1 < points ? before + 1 : 0];
    return map[before] + (place - before) * (next - map[before]);
}
static void proximity_feel(const bl_block *b) {
    const int32_t points = b->i[INSTRUMENT_INTEGERS], n = b->y_width[0];
    const double *own = bl_instrument_own(b), *e = b->u[0], radius = own[PROBE_RADIUS];
    for (int32_t k = 0; k < n; k++) {
        const double *place = own + PROBE_PLACES + 3 * k;
        const double toward = place[0] * e[0] + place[1] * e[1], across = place[0] * e[1] - place[1] * e[0];
        /* A round surface falls away where the shaft is off to the side. */
        const double below = radius * radius - across * across;
        double gap = own[PROBE_GAP] - toward + across * across / (radius + sqrt(below > 0.0 ? below : 0.0));
        if (points) gap -= proximity_runout(own + PROBE_PLACES + 3 * n, points, place[2] - b->u[1][0]);
        b->w[k] = gap;
    }
}
static int proximity_output(bl_block *b, double t) { return sensor_run_output(b, t, proximity_feel); }
static int proximity_update(bl_block *b, double t) { return sensor_run_update(b, t, proximity_feel); }

const bl_kernel bl_kernels_sensors[] = {
    {.name = "sensor",
     .check = sensor_check,
     .sizes = bl_instrument_sizes,
     .init = bl_instrument_init,
     .output = sensor_output,
     .update = sensor_update},
    {.name = "accelerometer",
     .check = accelerometer_check,
     .sizes = bl_instrument_sizes,
     .init = bl_instrument_init,
     .output = accelerometer_output,
     .update = accelerometer_update},
    {.name = "proximity",
     .check = proximity_check,
     .sizes = bl_instrument_sizes,
     .init = bl_instrument_init,
     .output = proximity_output,
     .update = proximity_update},
    {.name = 0},
};
