/* Playing a recording. */
#include <math.h>
#include <string.h>

#include "blocks/core/kernel/kernel.h"
#include "blocks/core/kernel/table.h"

/* Playback. p: n times, then n rows of values. i: interpolation, behavior after the end. */
BL_SHARED enum { PLAYBACK_HOLD, PLAYBACK_LINEAR };
BL_SHARED enum { PLAYBACK_END_HOLD, PLAYBACK_END_REPEAT, PLAYBACK_END_ZERO, PLAYBACK_END_STOP };

static int playback_check(const bl_block *b) {
    if (b->u_count != 0 || b->y_count != 1 || b->i_count != 2 || b->x_count != 0 || b->z_count != 0) return 0;
    const int64_t row = 1 + (int64_t)b->y_width[0];
    return b->i[0] >= PLAYBACK_HOLD && b->i[0] <= PLAYBACK_LINEAR && b->i[1] >= PLAYBACK_END_HOLD &&
           b->i[1] <= PLAYBACK_END_STOP && b->p_count % row == 0 && b->p_count / row >= 2;
}
static int playback_output(bl_block *b, double t) {
    const int32_t width = b->y_width[0], n = b->p_count / (1 + width);
    const double *times = b->p, *values = times + n, first = times[0], last = times[n - 1];
    double *y = b->y[0];
    const int32_t holds = b->i[0] == PLAYBACK_HOLD, end = b->i[1];

    /* A sample that is meant to come at a tick may lie a rounding error after it. */
    const double slack = 1e-6 * b->dt;
    double now = holds ? t + slack : t;
    if (end == PLAYBACK_END_REPEAT && (now < first || t + slack >= last)) {
        now -= (last - first) * floor((t + slack - first) / (last - first));
    } else if (end == PLAYBACK_END_ZERO && (t + slack < first || t - slack > last)) {
        memset(y, 0, (size_t)width * sizeof(double));
        return BL_OK;
    }
    int32_t i = bl_table_find(times, n, now);
    /* Of equal times, a jump, the last one counts, also at a tick a rounding error before them. */
    if (!holds && i + 2 < n && times[i + 2] == times[i + 1] && times[i + 1] <= now + slack)
        i = bl_table_find(times, n, times[i + 1]);
    const double *row = values + (int64_t)i * width, *next = row + width;
    const double span = times[i + 1] - times[i];
    double part = now >= times[i + 1] ? 1.0 : 0.0;
    if (span > 0.0) part = fmin(fmax((now - times[i]) / span, 0.0), 1.0);
    if (holds) part = part < 1.0 ? 0.0 : 1.0;
    for (int32_t k = 0; k < width; k++) {
        const double from = row[k], to = next[k];
        y[k] = part == 1.0 ? to : from + part * (to - from);
    }
    return BL_OK;
}

/* With no state to change this is a verdict: the last time is still recorded, then the run ends. */
static int playback_update(bl_block *b, double t) {
    const int32_t n = b->p_count / (1 + b->y_width[0]);
    return t + 1e-6 * b->dt >= b->p[n - 1] ? BL_STOP : BL_OK;
}

const bl_kernel bl_kernels_playback[] = {
    {.name = "playback", .check = playback_check, .output = playback_output},
    {.name = "playback_stopping", .check = playback_check, .output = playback_output, .update = playback_update},
    {.name = 0},
};
