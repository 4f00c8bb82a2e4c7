/* Rounding to whole numbers without a call of the C library, which for baseline processors has to be one. */
#ifndef BIELLA_ROUNDING_H
#define BIELLA_ROUNDING_H

#include <math.h>
#include <stdint.h>

/* Above 2^52 a double has no fractional part; NaN is returned unchanged. */
static inline double bl_floor(double v) {
    if (!(fabs(v) < 0x1p52)) return v;
    const double whole = (double)(int64_t)v;
    return whole > v ? whole - 1.0 : whole;
}
/* To the nearest; halves away from zero. */
static inline double bl_round(double v) {
    if (!(fabs(v) < 0x1p52)) return v;
    const double whole = (double)(int64_t)v, part = v - whole;
    return part >= 0.5 ? whole + 1.0 : part <= -0.5 ? whole - 1.0 : whole;
}

#endif
