/* Signal chain from the measured quantity to the output of a sensor; the same for all sensors.
 *
 * For each channel, from the quantity q at its input:
 *
 *   hysteresis    h = q - hysteresis full_scale s / 2, s+ = s + 4 dq / full_scale clipped to [-1, 1]
 *   nonlinearity  c = h + full_scale curve(h / full_scale)
 *   bandwidth     dx/dt = A x + B (gain c + noise), a low-pass of order 1 or 2, or none
 *   latency       f(t) = x(t - latency)
 *   output        v = f + offset + drift (t - start) + walk, rounded to the resolution, cut to the limits
 *   faults        y = v, or the fault value, or the last y
 *
 * The low-pass is exact for an input that is straight between samples and for noise that is white in
 * continuous time, for any ratio of bandwidth to sample rate, including aliasing.
 *
 * A sensor has its own input ports, then `dropout` and `stuck`, of one value or one for each channel, and one output port.
 * i: INSTRUMENT_INTEGERS of them, then the sensor's own. p: see below, then the sensor's own. w: q of each channel. */
#ifndef BIELLA_INSTRUMENT_H
#define BIELLA_INSTRUMENT_H

#include "blocks/core/kernel/kernel.h"

enum { /* i */
       INSTRUMENT_ORDER,         /* of the low-pass: 0 for none */
       INSTRUMENT_TABLE,         /* whether the curve is a table rather than a polynomial */
       INSTRUMENT_CURVE,         /* how many coefficients, from the highest power, or points */
       INSTRUMENT_ROOM,          /* for samples on their way; 0 without latency */
       INSTRUMENT_DROPOUT_HOLDS, /* whether a dropout keeps the last value */
       INSTRUMENT_STUCK_HOLDS,
       INSTRUMENT_INTEGERS
};
enum { /* p: these two, then all channels' values of each of those below, then the curve */
       INSTRUMENT_SEED,
       INSTRUMENT_LATENCY,
       INSTRUMENT_NUMBERS
};
enum {
    CHANNEL_GAIN,
    CHANNEL_OFFSET,
    CHANNEL_FULL_SCALE,
    CHANNEL_HYSTERESIS,
    CHANNEL_BANDWIDTH,
    CHANNEL_DAMPING,
    CHANNEL_NOISE,
    CHANNEL_DRIFT,
    CHANNEL_WALK,
    CHANNEL_RESOLUTION,
    CHANNEL_LOWER,
    CHANNEL_UPPER,
    CHANNEL_DROPOUT,
    CHANNEL_STUCK,
    CHANNEL_NUMBERS
};

/* Non-zero if all sizes fit, given how many integers and parameters the sensor has itself. */
int bl_instrument_fits(const bl_block *b, int32_t integers, int64_t parameters);
bl_sizes bl_instrument_sizes(const bl_block *b);
/* The sensor's own parameters. */
const double *bl_instrument_own(const bl_block *b);

int bl_instrument_init(bl_block *b, double t);
/* Both take q of each channel from w. */
void bl_instrument_output(bl_block *b, double t);
void bl_instrument_update(bl_block *b, double t);

#endif
