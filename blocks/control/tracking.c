/* LQTracking: u = K x + p, K and p from tables over time: sampled, row k from t_k until the next; else by cubics.
 *
 * i: number of rows, whether there are slopes. p: the first time, the time between rows, then for each row K and p of each
 * output (K row by row with its p after it); with slopes, after each such row, its rate of change. */
#include <math.h>

#include "blocks/core/kernel/kernel.h"
#include "blocks/core/kernel/matrix.h"

BL_SHARED enum { TRACKING_ROWS, TRACKING_SLOPES, TRACKING_INTEGERS };
enum { TRACKING_BEGIN, TRACKING_STEP, TRACKING_TABLE };

static int lq_tracking_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 1 || b->i_count != TRACKING_INTEGERS) return 0;
    if (b->i[TRACKING_ROWS] < 2 || (b->i[TRACKING_SLOPES] != 0 && b->i[TRACKING_SLOPES] != 1)) return 0;
    const int64_t row = b->y_width[0] * ((int64_t)b->u_width[0] + 1);
    if (row > INT32_MAX) return 0;
    return b->i[TRACKING_ROWS] * row <= INT32_MAX &&
           TRACKING_TABLE + b->i[TRACKING_ROWS] * row * (1 + b->i[TRACKING_SLOPES]) == b->p_count;
}

static int lq_tracking_output(bl_block *b, double t) {
    const int32_t rows = b->i[TRACKING_ROWS], slopes = b->i[TRACKING_SLOPES], n = b->u_width[0], m = b->y_width[0];
    const double *x = b->u[0], h = b->p[TRACKING_STEP];
    /* A row that is meant to come at a tick may lie a rounding error after it. */
    const double place = (t - b->p[TRACKING_BEGIN]) / h + (slopes ? 0.0 : 1e-6);
    const int32_t last = slopes ? rows - 2 : rows - 1; /* the last row that counts as a beginning */
    const int32_t k = !(place > 0.0) ? 0 : place < (double)last ? (int32_t)place : last;
    const double *row = b->p + TRACKING_TABLE + (int64_t)k * m * (n + 1) * (1 + slopes);
    if (!slopes) {
        for (int32_t r = 0; r < m; r++, row += n + 1) b->y[0][r] = bl_dot(row[n], row, x, n);
        return BL_OK;
    }
    /* Hermite's cubic: u is linear in the row, so the four rows are applied to x and then weighted. */
    const double part = place - k, s = !(part > 0.0) ? 0.0 : part < 1.0 ? part : 1.0, d = 1.0 - s;
    const double from = (1.0 + 2.0 * s) * d * d, to = s * s * (3.0 - 2.0 * s);
    const double leaving = s * d * d * h, arriving = -s * s * d * h;
    const int32_t size = m * (n + 1);
    for (int32_t r = 0; r < m; r++, row += n + 1)
        b->y[0][r] = from * bl_dot(row[n], row, x, n) + leaving * bl_dot(row[size + n], row + size, x, n) +
                     to * bl_dot(row[2 * size + n], row + 2 * size, x, n) +
                     arriving * bl_dot(row[3 * size + n], row + 3 * size, x, n);
    return BL_OK;
}

/* Cubics begin and end with a corner. Between rows they are smooth but for the second derivative: no events. */
static double lq_tracking_next(const bl_block *b, double t) {
    const double begin = b->p[TRACKING_BEGIN], end = begin + (b->i[TRACKING_ROWS] - 1) * b->p[TRACKING_STEP];
    return begin > t ? begin : end > t ? end : INFINITY;
}

const bl_kernel bl_kernels_tracking[] = {
    {.name = "lq_tracking", .check = lq_tracking_check, .output = lq_tracking_output, .next_instant = lq_tracking_next},
    {.name = 0},
};
