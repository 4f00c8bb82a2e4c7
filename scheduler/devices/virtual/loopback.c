/* A device that returns its outputs: output channel i returns as input channel i, `delay` ticks later.
 *
 * Delay, jitter, loss and noise are drawn from the seed and the sequence number: runs are reproducible. The sequence
 * numbers of the frames sent are its time: at the start of the tick after frame s the newest is s. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "blocks/basic/sources/noise.h"
#include "scheduler/devices/drivers.h"

enum {
    LOOPBACK_LOSS,
    LOOPBACK_JITTER,
    LOOPBACK_NOISE
}; /* streams of random numbers; noise of channel i is stream LOOPBACK_NOISE + i */

typedef struct {
    uint32_t sequence, due; /* due: at which newest frame sent it arrives */
    bool full;
} loopback_place;

typedef struct {
    bl_loopback_options options;
    int32_t count;        /* channels */
    uint32_t capacity;    /* frames under way, at the most */
    loopback_place *places;
    double *values;       /* capacity × count */
    uint32_t sent, arrived; /* newest sequence of each; 0: none */
} loopback;

static bool loopback_newer(uint32_t a, uint32_t b) { return a != b && a - b < 0x80000000u; }

static int loopback_send(bl_device *d, uint32_t sequence, int flags) {
    (void)flags;
    loopback *l = d->state;
    const bl_loopback_options *o = &l->options;
    l->sent = sequence;
    if (bl_noise_uniform(o->seed, LOOPBACK_LOSS, sequence) < o->loss) return 0;
    const double later = floor(bl_noise_uniform(o->seed, LOOPBACK_JITTER, sequence) * (o->jitter + 1));
    const uint32_t place = sequence % l->capacity;
    l->places[place] = (loopback_place){
        .sequence = sequence, .due = sequence + (uint32_t)(o->delay - 1) + (uint32_t)later, .full = true};
    double *values = l->values + (size_t)place * (size_t)l->count;
    for (int32_t i = 0; i < l->count; i++) {
        values[i] = d->sending[i];
        if (o->noise > 0.0) values[i] += o->noise * bl_noise_normal(o->seed, LOOPBACK_NOISE + i, sequence);
    }
    return 0;
}

static int loopback_receive(bl_device *d, int64_t now) {
    (void)now;
    loopback *l = d->state;
    int accepted = 0;
    for (uint32_t back = l->capacity; back-- > 0;) {
        const uint32_t sequence = l->sent - back;
        loopback_place *place = &l->places[sequence % l->capacity];
        if (!place->full || place->sequence != sequence || loopback_newer(place->due, l->sent)) continue;
        place->full = false;
        if (l->arrived && !loopback_newer(sequence, l->arrived)) {
            bl_add_count(&d->counts.stale, 1);
            continue;
        }
        bl_add_count(&d->counts.missed, sequence - l->arrived - 1);
        memcpy(d->received, l->values + (size_t)(sequence % l->capacity) * (size_t)l->count,
               (size_t)l->count * sizeof(double));
        d->sequence = d->echo = l->arrived = sequence;
        accepted++;
    }
    return accepted;
}

static void loopback_close(bl_device *d) {
    loopback *l = d->state;
    free(l->places);
    free(l->values);
    free(l);
}

static const bl_driver loopback_driver = {
    .name = "loopback", .receive = loopback_receive, .send = loopback_send, .close = loopback_close};

bl_device *bl_loopback_open(const char *name, int32_t count, const bl_loopback_options *options) {
    const bl_loopback_options *o = options;
    const bool sound = count > 0 && count <= BL_MAX_CHANNELS && o->delay >= 1 && o->delay <= BL_LOOPBACK_LONGEST &&
                       o->jitter >= 0 && o->jitter <= BL_LOOPBACK_LONGEST && o->loss >= 0.0 && o->loss <= 1.0 &&
                       o->noise >= 0.0 && isfinite(o->noise) && isfinite(o->seed);
    loopback *l = sound ? calloc(1, sizeof *l) : NULL;
    if (!l) return NULL;
    l->options = *o;
    l->count = count;
    l->capacity = (uint32_t)o->delay + (uint32_t)o->jitter + 1;
    l->places = calloc(l->capacity, sizeof *l->places);
    l->values = calloc(l->capacity, (size_t)count * sizeof(double));
    bl_device *d = l->places && l->values ? bl_device_open(&loopback_driver, l, name, count, count) : NULL;
    if (!d) {
        free(l->places);
        free(l->values);
        free(l);
    }
    return d;
}
