/* How the inputs of a block varied in a step, and what that says about their rates of change. */
#ifndef BIELLA_COURSE_H
#define BIELLA_COURSE_H

#include <math.h>
#include <stdint.h>

/* Inputs at the start of a step and at a part of it: the values of all ports, one after the other. */
typedef struct bl_course {
    const double *start, *middle;
    double part;          /* of the step */
    double first, second; /* 1 / the time from the start to the part, and from there to the end */
    double noise;         /* errors of rates relative to inputs */
} bl_course;

/* Bounds of the rate of input i, which is u at the end of the step: rates change linearly, or by up to twice as much again. */
static inline void bl_bound_rate(const bl_course *c, int64_t i, double u, double *low, double *high) {
    const double start = c->start[i], middle = c->middle[i];
    if (start == middle && middle == u) {
        *low = *high = 0.0;
        return;
    }
    const double first = (middle - start) * c->first, second = (u - middle) * c->second, bend = second - first;
    const double from = first - bend * c->part, to = from + bend + bend;
    const double size = fabs(start) > fabs(u) ? fabs(start) : fabs(u);
    const double margin = 2.0 * fabs(bend) + c->noise * size;
    *low = (bend > 0.0 ? from : to) - margin;
    *high = (bend > 0.0 ? to : from) + margin;
}

#endif
