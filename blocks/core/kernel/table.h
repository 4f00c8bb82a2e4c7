/* Finding a place in a table of rising values. */
#ifndef BIELLA_TABLE_H
#define BIELLA_TABLE_H

#include <stdint.h>

/* The i in [0, n - 2] with x[i] <= v < x[i + 1]; the first or the last where v is outside. Needs
   n >= 2. Looks first where v would be if the values were evenly spaced, so that time does not grow
   with n in that common case. Some i in range also if x does not rise, or if a value is NaN. */
static inline int32_t bl_table_find(const double *x, int32_t n, double v) {
    int32_t low = 0, high = n - 1;
    if (!(v >= x[0])) return 0;
    if (v >= x[high]) return n - 2;
    const double guess = (v - x[0]) / (x[high] - x[0]) * high;
    const int32_t i = guess < high ? (int32_t)guess : high - 1;
    if (v < x[i]) high = i;
    else if (v < x[i + 1]) return i;
    else low = i;
    while (high - low > 1) {
        const int32_t middle = low + (high - low) / 2;
        if (v < x[middle]) high = middle;
        else low = middle;
    }
    return low;
}

#endif
