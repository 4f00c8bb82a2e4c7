#include "scheduler/devices/wire/safe_line.h"

#if !defined(_WIN32)

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scheduler/devices/drivers.h"
#include "scheduler/devices/wire/outbox.h"
#include "scheduler/devices/wire/text.h"

enum {
    LINE_MARGIN = 1000, /* frames that the run may have sent after its last state was published */
    LINE_READS = 64,    /* of a round, at most */
};

bool bl_safe_line_share(bl_device *d, bl_safe_line *line) {
    if (!d->driver->share || d->in_count > BL_FRAME_VALUES || d->out_count > BL_FRAME_VALUES) return false;
    memset(line, 0, sizeof *line);
    snprintf(line->name, sizeof line->name, "%s", d->name);
    line->in_count = d->in_count;
    line->out_count = d->out_count;
    if (d->out_count) memcpy(line->safe, d->safe, (size_t)d->out_count * sizeof *d->safe);
    atomic_store(&line->descriptor, -1);
    d->line = line;
    d->openings++;
    bl_safe_line_publish(d);
    return true;
}

void bl_safe_line_publish(bl_device *d) {
    bl_safe_line *line = d->line;
    if (!line) return;
    const uint32_t next = atomic_load_explicit(&line->current, memory_order_relaxed) + 1;
    bl_line_state *state = &line->states[next % 2];
    atomic_thread_fence(memory_order_release); /* who reads any of it finds that the other state is current */
    const int descriptor = d->driver->share(d, state);
    state->last_sent = d->last_sent;
    atomic_store_explicit(&line->current, next, memory_order_release);
    if (d->gone || descriptor != atomic_load_explicit(&line->descriptor, memory_order_relaxed)) d->openings++;
    atomic_store_explicit(&line->descriptor, d->gone ? -1 : descriptor, memory_order_relaxed);
    atomic_store_explicit(&line->generation, (unsigned)d->openings, memory_order_release);
}

void bl_safe_line_follow(bl_device *d) {
    if (!d->line || !atomic_exchange_explicit(&d->line->guard_has_sent, 0, memory_order_acquire)) return;
    const uint32_t sequence = atomic_load_explicit(&d->line->guard_sequence, memory_order_relaxed);
    if (sequence - d->last_sent <= INT32_MAX) d->last_sent = sequence;
}

bool bl_safe_line_is_tripped(const bl_device *d) { return d->line && atomic_load(&d->line->tripped); }

bool bl_safe_line_read(const bl_safe_line *line, bl_line_state *state) {
    for (int tries = 0; tries < 100; tries++) {
        const uint32_t current = atomic_load_explicit(&line->current, memory_order_acquire);
        if (current == 0) return false;
        *state = line->states[current % 2];
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&line->current, memory_order_relaxed) == current)
            return state->kind >= BL_LINE_DATAGRAM && state->kind <= BL_LINE_TEXT &&
                   state->peer_length <= sizeof state->peer;
    }
    return false;
}

/* --- The device of the guard --- */

typedef struct {
    int descriptor;
    bl_line_state line;
    bl_stream stream;
    bl_outbox out;
    bool begun; /* the delimiter before the first message is out: the run may have left a partial one */
} line_device;

static int put_message(line_device *s, int delimiter, const uint8_t *bytes, size_t size) {
    int status = bl_outbox_push(&s->out, s->descriptor, write);
    if (status == 0) status = bl_outbox_begin(&s->out, s->descriptor, write, s->begun ? -1 : delimiter, bytes, size);
    s->begun = s->begun || status == 0;
    return status;
}

static int put_datagram(const line_device *s, const uint8_t *frame, size_t size) {
    const struct sockaddr *peer = s->line.peer_length ? (const struct sockaddr *)(const void *)s->line.peer : NULL;
    for (int tries = 0; tries < 2; tries++) /* an error may belong to an earlier datagram */
        if (sendto(s->descriptor, frame, size, 0, peer, s->line.peer_length) >= 0) return 0;
    return -EAGAIN;
}

static int line_send(bl_device *d, uint32_t sequence, int flags) {
    line_device *s = d->state;
    uint8_t frame[BL_FRAME_SIZE], stuffed[BL_FRAME_STUFFED + 1];
    if (s->line.kind == BL_LINE_TEXT) {
        char text[BL_TEXT_ROOM];
        if (d->out_count == 0) return 0;
        const size_t size = bl_text_write(d->sending, d->out_count, s->line.flags & BL_WIRE_DOUBLE,
                                          s->line.flags & BL_WIRE_CHECKSUM, text);
        return put_message(s, '\n', (const uint8_t *)text, size);
    }
    if (!bl_link_is_open(&s->line.link)) return -EAGAIN; /* no session is open: nothing that the device would accept */
    const size_t size = bl_link_write(&s->line.link, d, sequence, flags, d->sending, frame);
    if (size == 0) return -ERANGE;
    if (s->line.kind == BL_LINE_DATAGRAM) return put_datagram(s, frame, size);
    return put_message(s, 0, stuffed, bl_link_stuff(frame, size, stuffed));
}

/* Of a stream, whether something waits: see bl_port_read. Safe values of all lines would be late while a read waits for the kernel,
   and the descriptor may have become one that blocks, since a run that has failed shares it. */
static bool has_bytes(int descriptor) {
    int waiting = 0;
    return ioctl(descriptor, FIONREAD, &waiting) == 0 && waiting > 0;
}

/* Whatever the run has not read, too: it no longer does. */
static int line_receive(bl_device *d, int64_t now) {
    line_device *s = d->state;
    uint8_t bytes[4096];
    int accepted = 0;
    for (int k = 0; k < LINE_READS && s->line.kind != BL_LINE_TEXT; k++) {
        if (s->line.kind == BL_LINE_STREAM && !has_bytes(s->descriptor)) break;
        const ssize_t got = s->line.kind == BL_LINE_DATAGRAM ? recv(s->descriptor, bytes, sizeof bytes, MSG_DONTWAIT)
                                                             : read(s->descriptor, bytes, sizeof bytes);
        if (got <= 0) break;
        accepted += s->line.kind == BL_LINE_DATAGRAM
                        ? bl_link_take(&s->line.link, d, bytes, (size_t)got, now)
                        : bl_link_feed(&s->line.link, &s->stream, d, bytes, (size_t)got, now);
    }
    return accepted;
}

static void line_close(bl_device *d) {
    line_device *s = d->state;
    bl_link_end(&s->line.link);
    free(s);
}

static const bl_driver LINE = {"line", line_receive, line_send, NULL, NULL, line_close, NULL, NULL};

bl_device *bl_safe_line_open(const bl_safe_line *line, const bl_line_state *state, int descriptor) {
    line_device *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->descriptor = descriptor;
    s->line = *state;
    s->line.link.handshake = NULL; /* of the memory of a process that has failed, no pointer is one */
    bl_device *d = bl_device_open(&LINE, s, line->name, line->in_count, line->out_count);
    if (!d) {
        free(s);
        return NULL;
    }
    if (d->out_count) memcpy(d->safe, line->safe, (size_t)d->out_count * sizeof *d->safe);
    d->last_sent = state->last_sent + LINE_MARGIN;
    d->has_sent = true;
    d->echo = state->link.echo; /* whether it echoes at all */
    return d;
}

#else

bool bl_safe_line_share(bl_device *d, bl_safe_line *line) {
    (void)d, (void)line;
    return false;
}
void bl_safe_line_publish(bl_device *d) { (void)d; }
void bl_safe_line_follow(bl_device *d) { (void)d; }
bool bl_safe_line_is_tripped(const bl_device *d) {
    (void)d;
    return false;
}
bool bl_safe_line_read(const bl_safe_line *line, bl_line_state *state) {
    (void)line, (void)state;
    return false;
}
bl_device *bl_safe_line_open(const bl_safe_line *line, const bl_line_state *state, int descriptor) {
    (void)line, (void)state, (void)descriptor;
    return NULL;
}

#endif
