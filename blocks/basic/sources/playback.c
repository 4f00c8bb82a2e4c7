/* Playing a recording. */
#include <math.h>
#include <string.h>

#include "blocks/core/kernel/kernel.h"
#include "blocks/core/kernel/table.h"

/* Playback. p: n times, then n rows of values. i: interpolation, behavior after the end. */
BL_SHARED enum { PLAYBACK_HOLD, PLAYBACK_LINEAR };
BL_SHARED enum { PLAYBACK_END_HOLD, PLAYBACK_END_REPEAT, PLAYBACK_END_ZERO, PLAYBACK_END_STOP };
enum { PLAYBACK_DENSEST = 16 }; /* samples per tick, in the mean, up to which they are events */

static int playback_check(const bl_block *b) {
    if (b->u_count != 0 || b->y_count != 1 || b->i_count != 2 || b->x_count != 0 || b->z_count != 0) return 0;
    const int64_t row = 1 + (int64_t)b->y_width[0];
    return b->i[0] >= PLAYBACK_HOLD && b->i[0] <= PLAYBACK_LINEAR && b->i[1] >= PLAYBACK_END_HOLD &&
           b->i[1] <= PLAYBACK_END_STOP && b->p_count % row == 0 && b->p_count / row >= 2;
}
/* A sample that is meant to come at a tick may lie a rounding error after it. */
static double playback_slack(const bl_block *b, double t) { return 1e-6 * b->dt + 8e-16 * fabs(t); }
static void playback_zero(bl_block *b) { memset(b->y[0], 0, (size_t)b->y_width[0] * sizeof(double)); }
/* The value at `part` of the way from sample i to the next one. */
static void playback_show(bl_block *b, int32_t n, int32_t i, double part) {
    const double *row = b->p + n + (int64_t)i * b->y_width[0], *next = row + b->y_width[0];
    for (int32_t k = 0; k < b->y_width[0]; k++)
        b->y[0][k] = part == 0.0 ? row[k] : part == 1.0 ? next[k] : row[k] + part * (next[k] - row[k]);
}

/* Samples that are much denser than ticks are not events: there would be too many. Held ones are then sampled at ticks, lines are
   evaluated within steps. */
static int playback_has_events(const bl_block *b, const double *times, int32_t n) {
    return (times[n - 1] - times[0]) * PLAYBACK_DENSEST >= b->dt * (double)(n - 1);
}

/* Where events are located, a step is integrated within one piece, from a sample to the next. Modes: number of the piece, -1 before
   the first sample and n - 1 after the last; time by which a periodic recording is shifted. Pieces end at known instants: the
   crossing functions stay 0. */
enum { PLAYBACK_PIECE, PLAYBACK_SHIFT, PLAYBACK_MODES };
static int32_t playback_crossings(const bl_block *b) {
    (void)b;
    return PLAYBACK_MODES;
}
static void playback_piece(bl_block *b, double t, const double *times, int32_t n) {
    const double first = times[0], last = times[n - 1];
    double now = t + playback_slack(b, t), piece, shift = 0.0;
    if (b->i[1] == PLAYBACK_END_REPEAT) shift = (last - first) * floor((now - first) / (last - first));
    now -= shift;
    if (now < first) piece = b->i[1] == PLAYBACK_END_REPEAT ? 0.0 : -1.0;
    else if (now >= last) piece = b->i[1] == PLAYBACK_END_REPEAT ? (double)(n - 2) : (double)(n - 1);
    else piece = (double)bl_table_find(times, n, now);
    const int32_t i = (int32_t)bl_keep_mode(&b->modes, PLAYBACK_PIECE, piece);
    shift = bl_keep_mode(&b->modes, PLAYBACK_SHIFT, shift);
    if (i < 0 || i > n - 2) {
        if (b->i[1] == PLAYBACK_END_ZERO) playback_zero(b);
        else playback_show(b, n, i < 0 ? 0 : n - 2, i < 0 ? 0.0 : 1.0);
        return;
    }
    double part = 0.0;
    const double span = times[i + 1] - times[i];
    if (b->i[0] == PLAYBACK_LINEAR && span > 0.0) part = (t - shift - times[i]) / span;
    /* Within a step the line goes on where rounding puts t beyond its end. */
    if (*b->modes.decision != BL_KEEP) part = fmin(fmax(part, 0.0), 1.0);
    playback_show(b, n, i, part);
}
static double playback_next(const bl_block *b, double t) {
    const int32_t n = b->p_count / (1 + b->y_width[0]);
    const double *times = b->p, first = times[0], last = times[n - 1], span = last - first;
    if (!playback_has_events(b, times, n)) return INFINITY;
    const int repeats = b->i[1] == PLAYBACK_END_REPEAT;
    double shift = repeats ? span * floor((t - first) / span) : 0.0;
    for (int32_t tries = 0; tries < 2; tries++, shift += span) {
        const double now = t - shift;
        if (now < first && first + shift > t) return first + shift;
        /* Rounding may leave a time that does not come after t. */
        if (now < last)
            for (int32_t i = bl_table_find(times, n, now) + 1; i < n; i++)
                if (times[i] + shift > t) return times[i] + shift;
        if (!repeats) break;
    }
    return INFINITY;
}

static int playback_output(bl_block *b, double t) {
    const int32_t n = b->p_count / (1 + b->y_width[0]);
    const double *times = b->p, first = times[0], last = times[n - 1];
    const int32_t holds = b->i[0] == PLAYBACK_HOLD, end = b->i[1];
    if (b->modes.mode && (holds || playback_has_events(b, times, n))) {
        playback_piece(b, t, times, n);
        return BL_OK;
    }
    const double slack = playback_slack(b, t);
    double now = holds ? t + slack : t;
    if (end == PLAYBACK_END_REPEAT && (now < first || t + slack >= last)) {
        now -= (last - first) * floor((t + slack - first) / (last - first));
    } else if (end == PLAYBACK_END_ZERO && (t + slack < first || t - slack > last)) {
        playback_zero(b);
        return BL_OK;
    }
    int32_t i = bl_table_find(times, n, now);
    /* Of equal times, a jump, the last one counts, also at a tick a rounding error before them. */
    if (!holds && i + 2 < n && times[i + 2] == times[i + 1] && times[i + 1] <= now + slack)
        i = bl_table_find(times, n, times[i + 1]);
    const double span = times[i + 1] - times[i];
    double part = now >= times[i + 1] ? 1.0 : 0.0;
    if (span > 0.0) part = fmin(fmax((now - times[i]) / span, 0.0), 1.0);
    if (holds) part = part < 1.0 ? 0.0 : 1.0;
    playback_show(b, n, i, part);
    return BL_OK;
}

/* With no state to change this is a verdict: the last time is still recorded, then the run ends. */
static int playback_update(bl_block *b, double t) {
    const int32_t n = b->p_count / (1 + b->y_width[0]);
    return t + 1e-6 * b->dt >= b->p[n - 1] ? BL_STOP : BL_OK;
}

const bl_kernel bl_kernels_playback[] = {
    {.name = "playback",
     .check = playback_check,
     .output = playback_output,
     .crossing_count = playback_crossings,
     .next_instant = playback_next},
    {.name = "playback_stopping",
     .check = playback_check,
     .output = playback_output,
     .update = playback_update,
     .crossing_count = playback_crossings,
     .next_instant = playback_next},
    {.name = 0},
};
