/* The same frames as on a serial port, one per datagram. Only one peer is accepted: the configured one, or the first that
 * sent a valid frame of our session. If this side is the device, another host may connect after the last one is gone. */
#include "scheduler/devices/drivers.h"

#if !defined(_WIN32)

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/realtime/loop/clock.h"
#include "scheduler/devices/wire/link.h"
#include "scheduler/devices/wire/outbox.h"
#include "scheduler/devices/wire/safe_line.h"
#include "scheduler/devices/wire/sockets.h"

enum {
    UDP_DATAGRAMS = 128, /* of a tick, at most: a flood does not stop the run */
    UDP_GREETINGS = 8, /* to senders that are not known yet, likewise */
};

typedef struct {
    int fd;
    bl_link link;
    struct sockaddr_storage peer; /* family AF_UNSPEC: not known yet */
    socklen_t peer_length;
    bool pinned; /* the socket is connected to the peer in the kernel */
} udp_state;

static bool is_same(const struct sockaddr *a, const struct sockaddr *b) {
    return bl_is_same_machine(a, b) && bl_port_of(a) == bl_port_of(b);
}

/* From now on the kernel filters other senders; their datagrams already in the queue are rejected one by one. */
static int pin(udp_state *s, const struct sockaddr *peer, socklen_t length) {
    memcpy(&s->peer, peer, length);
    s->peer_length = length;
    s->pinned = connect(s->fd, peer, length) == 0;
    return s->pinned ? 0 : -errno;
}

static bool is_known(const udp_state *s) { return s->peer.ss_family != AF_UNSPEC; }

static int udp_put(udp_state *s, const uint8_t *frame, size_t size) {
    if (size == 0) return -ERANGE;
    if (!is_known(s)) return -EAGAIN;
    /* An error may belong to an earlier datagram without a receiver; the kernel reports it once. */
    for (int tries = 0; tries < 2; tries++)
        if (s->pinned ? send(s->fd, frame, size, 0) >= 0
                      : sendto(s->fd, frame, size, 0, (const struct sockaddr *)&s->peer, s->peer_length) >= 0)
            return 0;
    return errno == EBADF || errno == ENOTSOCK ? -errno : -EAGAIN;
}

static int udp_send(bl_device *d, uint32_t sequence, int flags) {
    udp_state *s = d->state;
    uint8_t frame[BL_FRAME_SIZE];
    if (!bl_link_is_open(&s->link)) return -EAGAIN;
    return udp_put(s, frame, bl_link_write(&s->link, d, sequence, flags, d->sending, frame));
}

static void udp_greet(bl_device *d, bool waits, int64_t now) {
    udp_state *s = d->state;
    uint8_t frame[BL_FRAME_SIZE];
    if (!is_known(s) || !bl_link_must_greet(&s->link, d, waits, now)) return;
    (void)udp_put(s, frame, bl_link_write_hello(&s->link, d, now, frame));
}

/* A hello to who may become the peer; its frames are accepted when it has answered in our session. */
static void greet_sender(bl_device *d, const struct sockaddr_storage *to, socklen_t length, int64_t now) {
    udp_state *s = d->state;
    uint8_t frame[BL_FRAME_SIZE];
    const size_t size = bl_link_write_hello(&s->link, d, now, frame);
    (void)sendto(s->fd, frame, size, 0, (const struct sockaddr *)to, length);
}

/* `greetings`: to unknown senders that are left in this tick. */
static int take_datagram(bl_device *d, const uint8_t *bytes, size_t size, const struct sockaddr_storage *from,
                         socklen_t length, int64_t now, int *greetings) {
    udp_state *s = d->state;
    const bool comes_and_goes = d->answers && !s->pinned;
    const bool is_peer = is_known(s) && is_same((const struct sockaddr *)&s->peer, (const struct sockaddr *)from);
    if (is_known(s) && !is_peer && !(comes_and_goes && bl_link_is_free(&s->link, d))) {
        bl_add_count(&d->counts.stale, 1);
        return 0;
    }
    const int64_t corrupt = bl_counted(&d->counts.corrupt);
    const uint32_t sessions = d->sessions;
    const int accepted = bl_link_take(&s->link, d, bytes, size, now);
    const bool is_ours = accepted > 0 || d->sessions != sessions;
    if (comes_and_goes && is_ours) {
        s->peer = *from;
        s->peer_length = length;
    } else if (!is_known(s) && is_ours) {
        (void)pin(s, (const struct sockaddr *)from, length);
    }
    /* Who is not the peer, but speaks as one, gets our hello; of a device only if it has asked. */
    const bool speaks = !d->answers && bl_counted(&d->counts.corrupt) == corrupt && !is_known(s) &&
                        (!s->link.keyed || bytes[0] == BL_FRAME_AUTHENTICATED);
    if (!is_peer && *greetings > 0 && (s->link.stranger || speaks)) {
        greet_sender(d, from, length, now);
        --*greetings;
    }
    return accepted;
}

static int udp_receive(bl_device *d, int64_t now) {
    udp_state *s = d->state;
    uint8_t bytes[BL_FRAME_SIZE + 1]; /* a datagram that fills it is too long */
    int accepted = 0, greetings = UDP_GREETINGS;
    for (int k = 0; k < UDP_DATAGRAMS; k++) {
        struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
        socklen_t length = sizeof from;
        const ssize_t got = recvfrom(s->fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &length);
        if (got >= 0) accepted += take_datagram(d, bytes, (size_t)got, &from, length, now, &greetings);
        else if (errno == EAGAIN || errno == EWOULDBLOCK) break;
        else if (errno == EBADF || errno == ENOTSOCK) return -errno;
    }
    udp_greet(d, false, now);
    return accepted;
}

static int udp_wait(bl_device *d, int64_t deadline) {
    udp_state *s = d->state;
    struct pollfd line = {.fd = s->fd, .events = POLLIN};
    udp_greet(d, true, bl_clock_now());
    const int ready = bl_poll_until(&line, 1, deadline);
    /* A missing receiver is reported immediately: do not greet again before the interval has passed. */
    if (ready > 0 && !(line.revents & POLLIN)) bl_clock_sleep_until(deadline);
    return ready > 0;
}

static void udp_close(bl_device *d) {
    udp_state *s = d->state;
    if (s->fd >= 0) close(s->fd);
    bl_link_end(&s->link);
    free(s);
}

static int udp_share(const bl_device *d, bl_line_state *state) {
    const udp_state *s = d->state;
    state->kind = BL_LINE_DATAGRAM;
    bl_link_copy(&s->link, &state->link);
    state->peer_length = s->pinned ? 0 : s->peer_length;
    memcpy(state->peer, &s->peer, sizeof s->peer);
    return s->peer.ss_family == AF_UNSPEC ? -1 : s->fd;
}

static bl_link *udp_link(bl_device *d) { return &((udp_state *)d->state)->link; }

static const bl_driver UDP = {"udp", udp_receive, udp_send, udp_wait, NULL, udp_close, udp_share, udp_link};

static bool open_datagrams(udp_state *s, const struct addrinfo *own, const struct addrinfo *peer, char *message,
                           size_t message_size) {
    s->fd = bl_open_socket(own->ai_family, SOCK_DGRAM);
    if (s->fd < 0) {
        snprintf(message, message_size, "no socket: %s", strerror(errno));
        return false;
    }
    if (!bl_bind_socket(s->fd, own, message, message_size)) return false;
    const int error = peer ? pin(s, peer->ai_addr, peer->ai_addrlen) : 0;
    if (error)
        snprintf(message, message_size, "the device cannot be reached from the local address: %s", strerror(-error));
    return error == 0;
}

/* Finds both addresses and opens. */
static bool set_up(udp_state *s, const char *host, int32_t port, const char *bind_to, int32_t bind_port, char *message,
                   size_t message_size) {
    struct addrinfo *peer = host ? bl_find_address(host, port, SOCK_DGRAM, message, message_size) : NULL;
    if (host && !peer) return false;
    struct addrinfo *own = bl_find_own_address(bind_to, bind_port, SOCK_DGRAM, host, peer, message, message_size);
    const bool done = own && open_datagrams(s, own, peer, message, message_size);
    if (own) freeaddrinfo(own);
    if (peer) freeaddrinfo(peer);
    return done;
}

bl_device *bl_udp_open(const char *name, const char *host, int32_t port, const char *bind, int32_t bind_port,
                       int32_t in_count, int32_t out_count, int32_t flags, char *message, size_t message_size) {
    char reason[200] = "no memory";
    host = host && *host ? host : NULL;
    bind = bind && *bind ? bind : NULL;
    udp_state *s = NULL;
    bl_device *d = NULL;
    if (in_count < 0 || in_count > BL_FRAME_VALUES || out_count < 0 || out_count > BL_FRAME_VALUES)
        snprintf(reason, sizeof reason, "a frame has 0 to %d values", BL_FRAME_VALUES);
    else if ((host && port < 1) || port < 0 || port > 65535 || bind_port < 0 || bind_port > 65535)
        snprintf(reason, sizeof reason, "a port must be a number from 1 to 65535");
    else if (!host && bind_port == 0)
        snprintf(reason, sizeof reason, "set the host of the device, or bind_port for a device that sends first");
    else s = calloc(1, sizeof *s);
    if (s) {
        s->fd = -1;
        s->peer.ss_family = AF_UNSPEC;
        d = bl_device_open(&UDP, s, name, in_count, out_count);
        if (!d) free(s);
    }
    if (d) {
        if (bl_link_init(&s->link, d, flags) != 0)
            snprintf(reason, sizeof reason, "no random session number is available");
        else if (set_up(s, host, port, bind, bind_port, reason, sizeof reason)) return d;
        bl_device_close(d);
    }
    snprintf(message, message_size, "device `%s`: %s", name, reason);
    return NULL;
}

int32_t bl_udp_bound_port(const bl_device *d) {
    const udp_state *s = d->state;
    struct sockaddr_storage own;
    socklen_t length = sizeof own;
    if (d->driver != &UDP || getsockname(s->fd, (struct sockaddr *)&own, &length) != 0) return 0;
    return bl_port_of((const struct sockaddr *)&own);
}

#endif
