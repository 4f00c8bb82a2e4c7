#if !defined(_WIN32)

#include "scheduler/devices/wire/outbox.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "scheduler/realtime/loop/clock.h"

void bl_outbox_clear(bl_outbox *o) { o->from = o->to = o->begun = 0; }

int bl_outbox_push(bl_outbox *o, int fd, bl_put put) {
    while (o->from < o->to) {
        const ssize_t taken = put(fd, o->bytes + o->from, o->to - o->from);
        if (taken > 0) {
            o->from += (size_t)taken;
            if (o->from > o->begun) o->begun = o->to;
        } else if (taken == 0 || errno == EAGAIN || errno == EWOULDBLOCK) {
            return -EAGAIN;
        } else if (errno != EINTR) {
            return -errno;
        }
    }
    bl_outbox_clear(o);
    return 0;
}

int bl_outbox_begin(bl_outbox *o, int fd, bl_put put, int before, const uint8_t *bytes, size_t size) {
    bl_outbox_clear(o);
    if (before >= 0) o->bytes[o->to++] = (uint8_t)before;
    memcpy(o->bytes + o->to, bytes, size);
    o->to += size;
    const int status = bl_outbox_push(o, fd, put);
    if (status == -EAGAIN && o->from > 0) return 0; /* the rest goes out before the next */
    if (status != 0) bl_outbox_clear(o);
    return status;
}

void bl_outbox_follow(bl_outbox *o, const uint8_t *bytes, size_t size) {
    o->to = o->begun;
    memcpy(o->bytes + o->to, bytes, size);
    o->to += size;
}

int bl_poll_until(struct pollfd *lines, nfds_t count, int64_t deadline) {
    const int64_t left = deadline - bl_clock_now();
    if (left <= 0) return poll(lines, count, 0);
#if defined(__linux__)
    const struct timespec most = {.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
    return ppoll(lines, count, &most, NULL);
#else
    return poll(lines, count, (int)(left / 1000000 + 1));
#endif
}

#else

typedef int bl_no_outbox; /* a file may not be empty */

#endif
