/* A device whose inputs are played from a recording, row by row, each from its tick on. Outputs are discarded.
 *
 * `receive` is called once per tick, which counts the ticks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/devices/drivers.h"

typedef struct {
    int64_t rows;
    int32_t count, at_end;
    int64_t *ticks; /* of the rows, rising */
    double *values; /* rows × count */
    int64_t tick;   /* of the next call, since the start of this round */
    int64_t next;   /* row */
    uint32_t played;
} replay_device;

static int replay_device_receive(bl_device *d, int64_t now) {
    (void)now;
    replay_device *r = d->state;
    const int64_t tick = r->tick++, before = r->next;
    while (r->next < r->rows && r->ticks[r->next] <= tick) r->next++;
    if (r->next > 0) memcpy(d->received, r->values + (r->next - 1) * r->count, (size_t)r->count * sizeof(double));
    int fresh = (int)(r->next - before);
    if (r->next == r->rows && tick > r->ticks[r->rows - 1]) {
        if (r->at_end == BL_REPLAY_ENDS) {
            snprintf(d->words, sizeof d->words, "the recording has ended");
            return -ENODATA;
        }
        fresh = 1; /* the last row is held */
    }
    if (r->next == r->rows && r->at_end == BL_REPLAY_REPEATS) {
        r->next = 0;
        r->tick = 0;
    }
    r->played += (uint32_t)fresh;
    d->sequence = r->played;
    d->echo = 0;
    return fresh;
}

static int replay_device_send(bl_device *d, uint32_t sequence, int flags) {
    (void)d;
    (void)sequence;
    (void)flags;
    return 0;
}

static void replay_device_close(bl_device *d) {
    replay_device *r = d->state;
    free(r->ticks);
    free(r->values);
    free(r);
}

static const bl_driver replay_device_driver = {
    .name = "replay", .receive = replay_device_receive, .send = replay_device_send, .close = replay_device_close};

bl_device *bl_replay_open(const char *name, int32_t in_count, int32_t out_count, const int64_t *ticks,
                          const double *values, int64_t rows, int32_t at_end) {
    if (in_count < 1 || in_count > BL_MAX_CHANNELS || rows < 1 ||
        rows > INT64_MAX / BL_MAX_CHANNELS / (int64_t)sizeof(double))
        return NULL;
    for (int64_t n = 1; n < rows; n++)
        if (ticks[n] <= ticks[n - 1]) return NULL;
    replay_device *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    *r = (replay_device){.rows = rows, .count = in_count, .at_end = at_end};
    const size_t size = (size_t)rows * (size_t)in_count;
    r->ticks = malloc((size_t)rows * sizeof *r->ticks);
    r->values = malloc(size * sizeof *r->values);
    bl_device *d = r->ticks && r->values ? bl_device_open(&replay_device_driver, r, name, in_count, out_count) : NULL;
    if (!d) {
        free(r->ticks);
        free(r->values);
        free(r);
        return NULL;
    }
    memcpy(r->ticks, ticks, (size_t)rows * sizeof *ticks);
    memcpy(r->values, values, size * sizeof *values);
    return d;
}
