/* A mailbox: one writer posts whole frames, one reader takes the newest, and neither ever waits.
 *
 * Three buffers: the writer fills its own and swaps it with the one in the middle; the reader swaps its own
 * with the middle one if that is fresh. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/engine/biella.h"

enum { MAILBOX_FRESH = 4 };

struct bl_mailbox {
    int64_t count;
    double *buffers[3];
    int64_t sequences[3];
    int64_t posted;
    atomic_int middle; /* number of the buffer, plus MAILBOX_FRESH if it was not taken yet */
    int writers, readers;
};

bl_mailbox *bl_mailbox_open(int64_t count) {
    if (count < 0 || count > 1 << 20) return NULL;
    bl_mailbox *m = calloc(1, sizeof *m);
    double *buffer = calloc((size_t)(3 * count + 1), sizeof(double));
    if (!m || !buffer) {
        free(m);
        free(buffer);
        return NULL;
    }
    m->count = count;
    for (int k = 0; k < 3; k++) m->buffers[k] = buffer + k * count;
    m->writers = 0;
    atomic_init(&m->middle, 1);
    m->readers = 2;
    return m;
}

void bl_mailbox_close(bl_mailbox *m) {
    if (!m) return;
    free(m->buffers[0]);
    free(m);
}

void bl_mailbox_post(bl_mailbox *m, const double *frame) {
    memcpy(m->buffers[m->writers], frame, (size_t)m->count * sizeof(double));
    m->sequences[m->writers] = ++m->posted;
    m->writers = atomic_exchange(&m->middle, m->writers | MAILBOX_FRESH) & ~MAILBOX_FRESH;
}

int64_t bl_mailbox_take(bl_mailbox *m, double *frame) {
    if (atomic_load(&m->middle) & MAILBOX_FRESH) m->readers = atomic_exchange(&m->middle, m->readers) & ~MAILBOX_FRESH;
    memcpy(frame, m->buffers[m->readers], (size_t)m->count * sizeof(double));
    return m->sequences[m->readers];
}
