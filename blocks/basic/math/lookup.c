/* Tables. */
#include "blocks/core/kernel/kernel.h"
#include "blocks/core/kernel/table.h"

BL_SHARED enum { LOOKUP_LINEAR, LOOKUP_NEAREST, LOOKUP_PREVIOUS };
BL_SHARED enum { LOOKUP_HOLD, LOOKUP_EXTEND, LOOKUP_FAIL };

/* Where v lies between x[i] and x[i + 1]: 0 to 1, or beyond if the table is extended. */
static double lookup_part(const double *x, int32_t i, double v, int32_t extrapolation) {
    const double span = x[i + 1] - x[i];
    if (!(span > 0.0)) return 0.0; /* changed parameters may not rise */
    const double part = (v - x[i]) / span;
    if (extrapolation == LOOKUP_EXTEND) return part;
    return part < 0.0 ? 0.0 : part > 1.0 ? 1.0 : part;
}
static double lookup_between(double part, double from, double to) {
    return part == 1.0 ? to : from + part * (to - from);
}

/* Lookup1D. p: n breakpoints, then n rows of c values. i: n, c, interpolation, extrapolation.
   With c = 1 each element of u is looked up; else u is one value and y a whole row. */
static int lookup_1d_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 1 || b->i_count != 4) return 0;
    const int64_t n = b->i[0], c = b->i[1];
    return n >= 2 && c >= 1 && n <= b->p_count && n * (1 + c) == b->p_count && b->i[2] >= LOOKUP_LINEAR &&
           b->i[2] <= LOOKUP_PREVIOUS && b->i[3] >= LOOKUP_HOLD && b->i[3] <= LOOKUP_FAIL &&
           (c == 1 ? b->u_width[0] == b->y_width[0] : b->u_width[0] == 1 && b->y_width[0] == c);
}
static int lookup_1d_output(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->i[0], c = b->i[1], interpolation = b->i[2], extrapolation = b->i[3];
    const double *x = b->p, *values = x + n;
    for (int32_t k = 0; k < b->u_width[0]; k++) {
        const double v = b->u[0][k];
        if (extrapolation == LOOKUP_FAIL && !(v >= x[0] && v <= x[n - 1])) return bl_log_error(b, "u = %.9g", v);
        const int32_t i = bl_table_find(x, n, v);
        double part = lookup_part(x, i, v, extrapolation);
        if (interpolation == LOOKUP_NEAREST) part = part < 0.5 ? 0.0 : 1.0;
        if (interpolation == LOOKUP_PREVIOUS) part = part < 1.0 ? 0.0 : 1.0;
        const double *row = values + (int64_t)i * c;
        for (int32_t j = 0; j < c; j++) b->y[0][k + j] = lookup_between(part, row[j], row[c + j]);
    }
    return BL_OK;
}

/* Lookup2D, bilinear. p: n values of x, m of y, n rows of m. i: n, m, extrapolation. */
static int lookup_2d_check(const bl_block *b) {
    if (b->u_count != 2 || b->y_count != 1 || b->i_count != 3) return 0;
    const int64_t n = b->i[0], m = b->i[1];
    return n >= 2 && m >= 2 && n + m + n * m == b->p_count && b->i[2] >= LOOKUP_HOLD && b->i[2] <= LOOKUP_FAIL &&
           b->u_width[0] == b->y_width[0] && b->u_width[1] == b->y_width[0];
}
static int lookup_2d_output(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->i[0], m = b->i[1], extrapolation = b->i[2];
    const double *x = b->p, *y = x + n, *table = y + m;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double v = b->u[0][k], w = b->u[1][k];
        if (extrapolation == LOOKUP_FAIL && !(v >= x[0] && v <= x[n - 1] && w >= y[0] && w <= y[m - 1]))
            return bl_log_error(b, "u1 = %.9g, u2 = %.9g", v, w);
        const int32_t i = bl_table_find(x, n, v), j = bl_table_find(y, m, w);
        const double across = lookup_part(y, j, w, extrapolation);
        const double *row = table + (int64_t)i * m + j, *next = row + m;
        b->y[0][k] = lookup_between(lookup_part(x, i, v, extrapolation), lookup_between(across, row[0], row[1]),
                                    lookup_between(across, next[0], next[1]));
    }
    return BL_OK;
}

const bl_kernel bl_kernels_lookup[] = {
    {.name = "lookup_1d", .check = lookup_1d_check, .output = lookup_1d_output},
    {.name = "lookup_2d", .check = lookup_2d_check, .output = lookup_2d_output},
    {.name = 0},
};
