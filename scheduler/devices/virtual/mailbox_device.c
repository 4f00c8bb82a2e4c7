/* A device whose driver is a separate Python thread: two mailboxes connect it to the real-time thread, which never blocks.
 *
 * The driver's thread calls bl_mailbox_device_…; the real-time thread calls the functions of the driver below. If the
 * driver's thread dies or hangs, its mailbox stays empty, and scheduler/devices/device.c detects the timeout. */
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/realtime/loop/clock.h"
#include "scheduler/devices/drivers.h"

enum { MAILBOX_DEVICE_TEXT = sizeof(((bl_device *)0)->words) / sizeof(double) }; /* doubles */
enum { MAILBOX_DEVICE_SLICE = 100000 }; /* ns between two looks of a thread that waits */
enum {
    MAILBOX_DEVICE_SEQUENCE,
    MAILBOX_DEVICE_FLAGS,
    MAILBOX_DEVICE_EXTRA
}; /* in a frame to the device, after its values */

typedef struct {
    bl_mailbox *in, *out; /* values and echo; values, sequence and flags */
    bl_mailbox *why; /* why it is gone: a text in the bytes of doubles */
    double *taken, *given; /* frames of the real-time thread */
    double *posted, *seen; /* and of the driver's */
    int64_t taken_number, seen_number;
    atomic_llong posts, gives; /* frames put into each */
    atomic_int gone; /* the reason is posted before */
} mailbox_device;

/* Whether it is gone. Values from before a loss are stale at the recovery and are discarded. */
static bool mailbox_device_look(bl_device *d) {
    mailbox_device *m = d->state;
    if (!atomic_load(&m->gone)) return false;
    const int64_t number = bl_mailbox_take(m->in, m->taken);
    bl_add_count(&d->counts.stale, number - m->taken_number);
    m->taken_number = number;
    return true;
}

static int mailbox_device_receive(bl_device *d, int64_t now) {
    (void)now;
    mailbox_device *m = d->state;
    if (mailbox_device_look(d)) {
        double text[MAILBOX_DEVICE_TEXT];
        (void)bl_mailbox_take(m->why, text);
        memcpy(d->words, text, sizeof text);
        return -EIO;
    }
    const int64_t number = bl_mailbox_take(m->in, m->taken), fresh = number - m->taken_number;
    if (fresh == 0) return 0;
    m->taken_number = number;
    memcpy(d->received, m->taken, (size_t)d->in_count * sizeof(double));
    d->echo = (uint32_t)m->taken[d->in_count];
    d->sequence = (uint32_t)number;
    return fresh < 1 << 30 ? (int)fresh : 1 << 30;
}

static int mailbox_device_send(bl_device *d, uint32_t sequence, int flags) {
    mailbox_device *m = d->state;
    memcpy(m->given, d->sending, (size_t)d->out_count * sizeof(double));
    m->given[d->out_count + MAILBOX_DEVICE_SEQUENCE] = sequence;
    m->given[d->out_count + MAILBOX_DEVICE_FLAGS] = flags;
    bl_mailbox_post(m->out, m->given);
    atomic_fetch_add(&m->gives, 1);
    return 0;
}

/* Sleeps until the count is no longer what it was. */
static void mailbox_device_await(atomic_llong *count, int64_t before, int64_t deadline) {
    for (int64_t now; atomic_load(count) == before && (now = bl_clock_now()) < deadline;)
        bl_clock_sleep_until(deadline - now < MAILBOX_DEVICE_SLICE ? deadline : now + MAILBOX_DEVICE_SLICE);
}

static int mailbox_device_wait(bl_device *d, int64_t deadline) {
    mailbox_device *m = d->state;
    mailbox_device_await(&m->posts, m->taken_number, deadline);
    return 0;
}

static int mailbox_device_reopen(bl_device *d) { return mailbox_device_look(d) ? -EIO : 0; }

static void mailbox_device_free(mailbox_device *m) {
    bl_mailbox_close(m->in);
    bl_mailbox_close(m->out);
    bl_mailbox_close(m->why);
    free(m->taken);
    free(m);
}

static void mailbox_device_close(bl_device *d) { mailbox_device_free(d->state); }

static const bl_driver mailbox_device_driver = {.name = "mailbox",
                                                .receive = mailbox_device_receive,
                                                .send = mailbox_device_send,
                                                .wait = mailbox_device_wait,
                                                .reopen = mailbox_device_reopen,
                                                .close = mailbox_device_close};

bl_device *bl_mailbox_device_open(const char *name, int32_t in_count, int32_t out_count) {
    if (in_count < 0 || out_count < 0 || in_count > BL_MAX_CHANNELS || out_count > BL_MAX_CHANNELS) return NULL;
    mailbox_device *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    const size_t in_size = (size_t)in_count + 1, out_size = (size_t)out_count + MAILBOX_DEVICE_EXTRA;
    m->in = bl_mailbox_open((int64_t)in_size);
    m->out = bl_mailbox_open((int64_t)out_size);
    m->why = bl_mailbox_open(MAILBOX_DEVICE_TEXT);
    m->taken = calloc(2 * (in_size + out_size), sizeof(double));
    bl_device *d = m->in && m->out && m->why && m->taken
                       ? bl_device_open(&mailbox_device_driver, m, name, in_count, out_count)
                       : NULL;
    if (!d) {
        mailbox_device_free(m);
        return NULL;
    }
    m->posted = m->taken + in_size;
    m->given = m->posted + in_size;
    m->seen = m->given + out_size;
    return d;
}

int bl_mailbox_device_post(bl_device *d, const double *values, uint32_t echo) {
    mailbox_device *m = d->state;
    for (int32_t i = 0; i < d->in_count; i++)
        if (!isfinite(values[i])) return BL_ERROR_ARGUMENT;
    memcpy(m->posted, values, (size_t)d->in_count * sizeof(double));
    m->posted[d->in_count] = echo;
    bl_mailbox_post(m->in, m->posted);
    atomic_fetch_add(&m->posts, 1);
    return BL_OK;
}

int bl_mailbox_device_take(bl_device *d, int64_t wait, double *values, uint32_t *sequence, int32_t *flags) {
    mailbox_device *m = d->state;
    mailbox_device_await(&m->gives, m->seen_number, bl_clock_now() + wait);
    const int64_t number = bl_mailbox_take(m->out, m->seen);
    if (number == m->seen_number) return 0;
    m->seen_number = number;
    memcpy(values, m->seen, (size_t)d->out_count * sizeof(double));
    *sequence = (uint32_t)m->seen[d->out_count + MAILBOX_DEVICE_SEQUENCE];
    *flags = (int32_t)m->seen[d->out_count + MAILBOX_DEVICE_FLAGS];
    return 1;
}

void bl_mailbox_device_fail(bl_device *d, const char *why) {
    mailbox_device *m = d->state;
    char text[sizeof(double[MAILBOX_DEVICE_TEXT])];
    double frame[MAILBOX_DEVICE_TEXT];
    memset(text, 0, sizeof text);
    snprintf(text, sizeof text, "%s", why);
    memcpy(frame, text, sizeof text);
    bl_mailbox_post(m->why, frame);
    atomic_store(&m->gone, 1);
}

void bl_mailbox_device_return(bl_device *d) {
    mailbox_device *m = d->state;
    atomic_store(&m->gone, 0);
}
