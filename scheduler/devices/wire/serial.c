/* Binary frames on a serial port: each stuffed (COBS) so that a zero stands only between two of them. */
#include "scheduler/devices/drivers.h"

#if !defined(_WIN32)

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/devices/wire/link.h"
#include "scheduler/devices/wire/port.h"
#include "scheduler/devices/wire/safe_line.h"
#include "scheduler/realtime/loop/clock.h"

enum { SERIAL_READS = 16 }; /* of a tick, at most: a device that never stops talking does not stop the run */

typedef struct {
    bl_port *port;
    bl_link link;
    bl_stream stream;
} serial_state;

static int serial_put(serial_state *s, const uint8_t *frame, size_t size, bool urgent) {
    uint8_t stuffed[BL_FRAME_STUFFED + 1];
    if (size == 0) return -ERANGE;
    return bl_port_write(s->port, stuffed, bl_link_stuff(frame, size, stuffed), urgent);
}

static int serial_send(bl_device *d, uint32_t sequence, int flags) {
    serial_state *s = d->state;
    uint8_t frame[BL_FRAME_SIZE];
    if (!bl_link_is_open(&s->link)) return -EAGAIN;
    return serial_put(s, frame, bl_link_write(&s->link, d, sequence, flags, d->sending, frame), bl_is_urgent(flags));
}

static void serial_greet(bl_device *d, bool waits, int64_t now) {
    serial_state *s = d->state;
    uint8_t frame[BL_FRAME_SIZE];
    if (!bl_link_must_greet(&s->link, d, waits, now)) return;
    (void)serial_put(s, frame, bl_link_write_hello(&s->link, d, now, frame), false);
}

static int serial_receive(bl_device *d, int64_t now) {
    serial_state *s = d->state;
    uint8_t bytes[4096];
    int accepted = 0, got = sizeof bytes;
    for (int k = 0; k < SERIAL_READS && got == (int)sizeof bytes; k++) {
        got = bl_port_read(s->port, bytes, sizeof bytes);
        if (got < 0) return accepted > 0 ? accepted : got;
        accepted += bl_link_feed(&s->link, &s->stream, d, bytes, (size_t)got, now);
    }
    serial_greet(d, false, now);
    return accepted;
}

static int serial_wait(bl_device *d, int64_t deadline) {
    serial_state *s = d->state;
    serial_greet(d, true, bl_clock_now());
    return bl_port_wait(s->port, deadline);
}

static int serial_reopen(bl_device *d) {
    serial_state *s = d->state;
    const int error = bl_port_reopen(s->port);
    if (error) return error;
    s->stream.length = 0;
    s->stream.spoilt = s->stream.begun = false;
    bl_link_renew(&s->link, d);
    return 0;
}

static void serial_close(bl_device *d) {
    serial_state *s = d->state;
    bl_port_close(s->port);
    bl_link_end(&s->link);
    free(s);
}

static int serial_share(const bl_device *d, bl_line_state *state) {
    const serial_state *s = d->state;
    state->kind = BL_LINE_STREAM;
    bl_link_copy(&s->link, &state->link);
    return bl_port_descriptor(s->port);
}

static bl_link *serial_link(bl_device *d) { return &((serial_state *)d->state)->link; }

static const bl_driver SERIAL = {"serial",      serial_receive, serial_send,  serial_wait,
                                 serial_reopen, serial_close,   serial_share, serial_link};

bl_device *bl_serial_open(const char *name, const char *port, int32_t baud, int32_t in_count, int32_t out_count,
                          int32_t flags, char *message, size_t message_size) {
    if (in_count < 0 || in_count > BL_FRAME_VALUES || out_count < 0 || out_count > BL_FRAME_VALUES) {
        snprintf(message, message_size, "device `%s`: a frame has 0 to %d values", name, BL_FRAME_VALUES);
        return NULL;
    }
    serial_state *s = calloc(1, sizeof *s);
    bl_device *d = s ? bl_device_open(&SERIAL, s, name, in_count, out_count) : NULL;
    if (!d) {
        snprintf(message, message_size, "device `%s`: out of memory", name);
        free(s);
        return NULL;
    }
    const int error = bl_link_init(&s->link, d, flags);
    if (error)
        snprintf(message, message_size, "device `%s`: no random session number is available: %s", name,
                 strerror(-error));
    else s->port = bl_port_open(port, baud, 0, message, message_size);
    if (s->port) return d;
    bl_device_close(d);
    return NULL;
}

#endif
