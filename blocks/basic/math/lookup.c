/* Tables.
 *
 * With events, a step is integrated within one cell of the table. The mode is the number of the cell, from breakpoint i to i + 1: -1 and
 * n - 1 are below and above the table. Where a table is extended, its first and last cell have no end; where leaving it is
 * an error, that is raised where a mode is decided, not by a step that is tried beyond the end. */
#include <math.h>

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

/* The cell of v, mode k, and in *part where v lies in it. */
static int32_t lookup_cell(const bl_block *b, int32_t k, const double *x, int32_t n, double v, int32_t extrapolation,
                           double *part) {
    if (!b->modes.mode) {
        const int32_t i = bl_table_find(x, n, v);
        *part = lookup_part(x, i, v, extrapolation);
        return i;
    }
    const int32_t now = extrapolation == LOOKUP_HOLD && v < x[0]        ? -1
                        : extrapolation == LOOKUP_HOLD && v >= x[n - 1] ? n - 1
                                                                        : bl_table_find(x, n, v);
    const int32_t i = (int32_t)bl_keep_mode(&b->modes, k, (double)now);
    const double below = i < 0 || (i == 0 && extrapolation == LOOKUP_EXTEND) ? INFINITY : v - x[i];
    const double above = i > n - 2 || (i == n - 2 && extrapolation == LOOKUP_EXTEND) ? INFINITY : x[i + 1] - v;
    b->modes.crossing[k] = fmin(below, above);
    if (i < 0 || i > n - 2) {
        *part = i < 0 ? 0.0 : 1.0;
        return i < 0 ? 0 : n - 2;
    }
    /* Within a step the line goes on beyond the end of its cell. */
    *part = lookup_part(x, i, v, *b->modes.decision == BL_KEEP ? LOOKUP_EXTEND : extrapolation);
    return i;
}
/* The breakpoint whose value holds, mode k: the nearest one, or the last one not above v. */
static int32_t lookup_point(const bl_block *b, int32_t k, const double *x, int32_t n, double v, int32_t interpolation) {
    const int32_t i = bl_table_find(x, n, v);
    const double border = interpolation == LOOKUP_NEAREST ? 0.5 : 1.0;
    const double now = lookup_part(x, i, v, LOOKUP_HOLD) < border ? (double)i : (double)(i + 1);
    const int32_t j = (int32_t)bl_keep_mode(&b->modes, k, now);
    if (b->modes.mode) {
        const double below = j > 0 ? lookup_part(x, j - 1, v, LOOKUP_EXTEND) - border : INFINITY;
        const double above = j < n - 1 ? border - lookup_part(x, j, v, LOOKUP_EXTEND) : INFINITY;
        b->modes.crossing[k] = fmin(below, above);
    }
    return j;
}
/* Whether a value beyond a table that must not be left is an error now. */
static int lookup_fails(const bl_block *b, int32_t extrapolation) {
    return extrapolation == LOOKUP_FAIL && !(b->modes.mode && *b->modes.decision == BL_KEEP);
}

/* Lookup1D. p: n breakpoints, then n rows of c values. i: n, c, interpolation, extrapolation, 1 with events.
   With c = 1 each element of u is looked up; else u is one value and y a whole row. */
static int lookup_1d_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 1 || b->i_count != 5) return 0;
    const int64_t n = b->i[0], c = b->i[1];
    return n >= 2 && c >= 1 && n <= b->p_count && n * (1 + c) == b->p_count && b->i[2] >= LOOKUP_LINEAR &&
           b->i[2] <= LOOKUP_PREVIOUS && b->i[3] >= LOOKUP_HOLD && b->i[3] <= LOOKUP_FAIL &&
           (c == 1 ? b->u_width[0] == b->y_width[0] : b->u_width[0] == 1 && b->y_width[0] == c);
}
static int32_t lookup_1d_crossings(const bl_block *b) { return b->i[4] ? b->u_width[0] : 0; }
static int lookup_1d_output(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->i[0], c = b->i[1], interpolation = b->i[2], extrapolation = b->i[3];
    const double *x = b->p, *values = x + n;
    for (int32_t k = 0; k < b->u_width[0]; k++) {
        const double v = b->u[0][k];
        if (lookup_fails(b, extrapolation) && !(v >= x[0] && v <= x[n - 1])) return bl_log_error(b, "u = %.9g", v);
        double part = 0.0;
        int32_t i = 0;
        if (interpolation == LOOKUP_LINEAR) {
            i = lookup_cell(b, k, x, n, v, extrapolation, &part);
        } else {
            i = lookup_point(b, k, x, n, v, interpolation);
            if (i == n - 1) i = n - 2, part = 1.0;
        }
        const double *row = values + (int64_t)i * c;
        for (int32_t j = 0; j < c; j++) b->y[0][k + j] = lookup_between(part, row[j], row[c + j]);
    }
    return BL_OK;
}

/* Lookup2D, bilinear. p: n values of x, m of y, n rows of m. i: n, m, extrapolation, 1 with events. */
static int lookup_2d_check(const bl_block *b) {
    if (b->u_count != 2 || b->y_count != 1 || b->i_count != 4) return 0;
    const int64_t n = b->i[0], m = b->i[1];
    return n >= 2 && m >= 2 && n + m + n * m == b->p_count && b->i[2] >= LOOKUP_HOLD && b->i[2] <= LOOKUP_FAIL &&
           b->u_width[0] == b->y_width[0] && b->u_width[1] == b->y_width[0];
}
static int32_t lookup_2d_crossings(const bl_block *b) { return b->i[3] ? 2 * b->y_width[0] : 0; }
static int lookup_2d_output(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->i[0], m = b->i[1], extrapolation = b->i[2];
    const double *x = b->p, *y = x + n, *table = y + m;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double v = b->u[0][k], w = b->u[1][k];
        if (lookup_fails(b, extrapolation) && !(v >= x[0] && v <= x[n - 1] && w >= y[0] && w <= y[m - 1]))
            return bl_log_error(b, "u1 = %.9g, u2 = %.9g", v, w);
        double along = 0.0, across = 0.0;
        const int32_t i = lookup_cell(b, 2 * k, x, n, v, extrapolation, &along);
        const int32_t j = lookup_cell(b, 2 * k + 1, y, m, w, extrapolation, &across);
        const double *row = table + (int64_t)i * m + j, *next = row + m;
        b->y[0][k] =
            lookup_between(along, lookup_between(across, row[0], row[1]), lookup_between(across, next[0], next[1]));
    }
    return BL_OK;
}

const bl_kernel bl_kernels_lookup[] = {
    {.name = "lookup_1d", .check = lookup_1d_check, .output = lookup_1d_output, .crossing_count = lookup_1d_crossings},
    {.name = "lookup_2d", .check = lookup_2d_check, .output = lookup_2d_output, .crossing_count = lookup_2d_crossings},
    {.name = 0},
};
