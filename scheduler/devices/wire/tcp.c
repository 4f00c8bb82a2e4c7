/* The same frames as on a serial line, over one TCP connection at a time: we connect to the device (`port`), or it to us (`bind_port`).
 *
 * All of it is the real-time thread's, with sockets that never wait: to connect is to look, once in a tick, how far it has come. */
#include "scheduler/devices/drivers.h"

#if !defined(_WIN32)

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/sockios.h>
#endif

#include "scheduler/realtime/loop/clock.h"
#include "scheduler/devices/wire/link.h"
#include "scheduler/devices/wire/outbox.h"
#include "scheduler/devices/wire/safe_line.h"
#include "scheduler/devices/wire/sockets.h"

enum {
    TCP_READS = 16, /* of a tick, at most: a device that never stops talking does not stop the run */
    TCP_COMERS = 8, /* the same for incoming connections */
    TCP_LAG =
        2, /* frames that a peer is behind, until those of ticks are dropped: they would be old when they arrive */
    TCP_SAFE_LAG = 8, /* until safe values are: then it is safe values that wait */
    TCP_PATIENCE = 10, /* s until a peer that takes nothing counts as gone */
    TCP_PAUSE = 100000000, /* ns between two tries to connect */
    TCP_ATTEMPT = 2000000000, /* ns per attempt: short, for a device that is switched on meanwhile */
    TCP_FAREWELL = 500000000, /* ns in which the last values are seen off, after a run */
};

typedef struct {
    int listener; /* -1: we connect */
    int fd; /* -1: no connection */
    bool connecting; /* not there yet */
    bool spoken; /* the peer has sent a valid frame on this connection, or begun a session */
    bool broken; /* the connection has ended; not yet reported to scheduler/devices/device.c */
    int64_t next; /* when to try to connect, or no longer to */
    struct addrinfo *peers; /* the device's; where it connects to us, those that may. NULL: anybody */
    const struct addrinfo *peer; /* the next one to try */
    char place[64]; /* of the peer, for people */
    bl_link link;
    bl_stream stream;
    bl_outbox out;
} tcp_state;

static bool is_up(const tcp_state *s) { return s->fd >= 0 && !s->connecting; }

/* Ends the connection also where the guard has a copy of the descriptor. */
static void hang_up(tcp_state *s) {
    if (s->fd >= 0) {
        (void)shutdown(s->fd, SHUT_RDWR);
        close(s->fd);
    }
    s->fd = -1;
    s->connecting = false;
}

static void name_peer(tcp_state *s, const struct sockaddr *a, socklen_t length) {
    char host[48] = "?";
    (void)getnameinfo(a, length, host, sizeof host, NULL, 0, NI_NUMERICHOST);
    snprintf(s->place, sizeof s->place, a->sa_family == AF_INET6 ? "[%s]:%d" : "%s:%d", host, (int)bl_port_of(a));
}

static void set_options(int fd) {
    const int on = 1, seconds = TCP_PATIENCE, milliseconds = 1000 * TCP_PATIENCE;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
#if defined(TCP_KEEPIDLE)
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
#elif defined(TCP_KEEPALIVE)
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPALIVE, &seconds, sizeof seconds);
#endif
#if defined(TCP_USER_TIMEOUT)
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
#endif
#if defined(SO_NOSIGPIPE)
    (void)setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    (void)seconds, (void)milliseconds;
}

static void begin_connection(bl_device *d, int fd) {
    tcp_state *s = d->state;
    set_options(fd);
    s->fd = fd;
    d->openings++;
    s->connecting = s->spoken = false;
    s->stream = (bl_stream){.begun = true}; /* nothing was on this line before */
    bl_outbox_clear(&s->out);
    bl_link_renew(&s->link, d);
    d->words[0] = '\0';
}

/* The connection has ended: by an error, or (0) as the other side wanted. */
static void break_off(bl_device *d, int error) {
    tcp_state *s = d->state;
    const char *why = error == 0 ? "closed the connection"
                      : error == ECONNRESET || error == EPIPE
                          ? "reset the connection, for example because its program ended"
                      : error == ETIMEDOUT ? "no longer acknowledges data: check its power and cable"
                                           : strerror(error);
    snprintf(d->words, sizeof d->words, "%s %s", s->place, why);
    hang_up(s);
    s->broken = true;
    s->next = bl_clock_now() + TCP_PAUSE;
}

/* Status for scheduler/devices/device.c: 0, or that the device is gone. */
static int own_up(tcp_state *s) {
    if (!s->broken) return 0;
    s->broken = false;
    return -ENOTCONN;
}

/* --- We connect --- */

static void fail_attempt(bl_device *d, int error) {
    tcp_state *s = d->state;
    const char *why = error == ECONNREFUSED ? "refuses the connection: no program listens on this port"
                      : error == ETIMEDOUT  ? "does not respond: check its power and cable"
                                            : strerror(error);
    snprintf(d->words, sizeof d->words, "%s %s", s->place, why);
    hang_up(s);
    s->next = bl_clock_now() + (s->peer == s->peers ? TCP_PAUSE : 0); /* after all of its addresses */
}

static void start_connecting(bl_device *d, int64_t now) {
    tcp_state *s = d->state;
    const struct addrinfo *to = s->peer;
    s->peer = to->ai_next ? to->ai_next : s->peers;
    s->next = now + TCP_ATTEMPT;
    name_peer(s, to->ai_addr, to->ai_addrlen);
    snprintf(d->words, sizeof d->words, "%s has not responded yet", s->place);
    s->fd = bl_open_socket(to->ai_family, SOCK_STREAM);
    s->connecting = s->fd >= 0;
    if (s->fd < 0 || (connect(s->fd, to->ai_addr, to->ai_addrlen) != 0 && errno != EINPROGRESS)) fail_attempt(d, errno);
}

/* On loopback, TCP can connect a socket to itself if the port has no listener and is assigned to the socket. */
static bool is_ourselves(int fd) {
    struct sockaddr_storage own, peer;
    socklen_t own_length = sizeof own, peer_length = sizeof peer;
    return getsockname(fd, (struct sockaddr *)&own, &own_length) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_length) == 0 &&
           bl_is_same_machine((const struct sockaddr *)&own, (const struct sockaddr *)&peer) &&
           bl_port_of((const struct sockaddr *)&own) == bl_port_of((const struct sockaddr *)&peer);
}

static void go_on_connecting(bl_device *d, int64_t now) {
    tcp_state *s = d->state;
    struct pollfd line = {.fd = s->fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;
    if (poll(&line, 1, 0) <= 0) {
        if (now >= s->next) fail_attempt(d, ETIMEDOUT);
        return;
    }
    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error == 0 && is_ourselves(s->fd)) error = ECONNREFUSED;
    if (error) fail_attempt(d, error);
    else begin_connection(d, s->fd);
}

/* --- It connects to us --- */

static bool may_come(const tcp_state *s, const struct sockaddr *from) {
    const struct addrinfo *a = s->peers;
    while (a && !bl_is_same_machine(a->ai_addr, from)) a = a->ai_next;
    return a || !s->peers;
}

/* The present peer is kept, unless it has never sent a valid frame or is lost: a restarted peer reconnects. */
static bool is_taken(const bl_device *d) {
    const tcp_state *s = d->state;
    return s->fd >= 0 && !d->lost && (s->spoken || (d->in_count == 0 && !s->link.keyed));
}

static void answer_the_door(bl_device *d) {
    tcp_state *s = d->state;
    for (int k = 0; k < TCP_COMERS; k++) {
        struct sockaddr_storage from;
        socklen_t length = sizeof from;
        const int fd = accept(s->listener, (struct sockaddr *)&from, &length);
        if (fd < 0) {
            if (errno == EINTR || errno == ECONNABORTED) continue;
            return;
        }
        if (!may_come(s, (const struct sockaddr *)&from) || is_taken(d) || bl_set_not_waiting(fd) != 0) {
            close(fd);
            continue;
        }
        hang_up(s);
        name_peer(s, (const struct sockaddr *)&from, length);
        begin_connection(d, fd);
    }
}

/* --- The conversation --- */

/* Whether there is a connection; does what can be done for one. */
static bool meet(bl_device *d) {
    tcp_state *s = d->state;
    if (s->listener >= 0) {
        answer_the_door(d);
    } else if (!is_up(s)) {
        const int64_t now = bl_clock_now();
        if (s->fd < 0 && now >= s->next) start_connecting(d, now);
        if (s->connecting) go_on_connecting(d, now);
    }
    return is_up(s);
}

static ssize_t put_bytes(int fd, const void *bytes, size_t size) {
#if defined(MSG_NOSIGNAL)
    return send(fd, bytes, size, MSG_NOSIGNAL);
#else
    return send(fd, bytes, size, 0);
#endif
}

/* Bytes that wait in the kernel since the peer has no room for them; with `all`, also those on their way to it. */
static size_t count_waiting(int fd, bool all) {
    int waiting = 0;
#if defined(__linux__)
    (void)ioctl(fd, all ? SIOCOUTQ : SIOCOUTQNSD, &waiting);
#elif defined(SO_NWRITE)
    socklen_t size = sizeof waiting;
    (void)all, (void)getsockopt(fd, SOL_SOCKET, SO_NWRITE, &waiting, &size);
#endif
    return waiting > 0 ? (size_t)waiting : 0;
}

/* An urgent frame waits, if it must, behind the one of which part is out. */
static int tcp_put(bl_device *d, const uint8_t *frame, size_t size, bool urgent) {
    tcp_state *s = d->state;
    uint8_t stuffed[BL_FRAME_STUFFED + 1];
    if (size == 0) return -ERANGE;
    if (!is_up(s)) return -EAGAIN;
    size = bl_link_stuff(frame, size, stuffed);
    int status = bl_outbox_push(&s->out, s->fd, put_bytes);
    if (status == 0) {
        const bool lags = count_waiting(s->fd, false) > size * (urgent ? TCP_SAFE_LAG : TCP_LAG);
        status = lags ? -EAGAIN : bl_outbox_begin(&s->out, s->fd, put_bytes, -1, stuffed, size);
        urgent = urgent && !lags;
    }
    if (status == -EAGAIN && urgent) {
        bl_outbox_follow(&s->out, stuffed, size);
        return 0;
    }
    if (status != 0 && status != -EAGAIN) break_off(d, -status);
    return status;
}

static int tcp_send(bl_device *d, uint32_t sequence, int flags) {
    tcp_state *s = d->state;
    uint8_t frame[BL_FRAME_SIZE];
    if (!bl_link_is_open(&s->link)) {
        const int gone = own_up(s);
        return gone ? gone : -EAGAIN;
    }
    const int status =
        tcp_put(d, frame, bl_link_write(&s->link, d, sequence, flags, d->sending, frame), bl_is_urgent(flags));
    const int gone = own_up(s);
    return gone ? gone : status;
}

static void tcp_greet(bl_device *d, bool waits, int64_t now) {
    tcp_state *s = d->state;
    uint8_t frame[BL_FRAME_SIZE];
    if (!is_up(s) || !bl_link_must_greet(&s->link, d, waits, now)) return;
    (void)tcp_put(d, frame, bl_link_write_hello(&s->link, d, now, frame), false);
}

static int read_frames(bl_device *d, int64_t now) {
    tcp_state *s = d->state;
    uint8_t bytes[4096];
    const uint32_t sessions = d->sessions;
    int accepted = 0;
    ssize_t got = sizeof bytes;
    for (int k = 0; k < TCP_READS && got == (ssize_t)sizeof bytes; k++) {
        do got = recv(s->fd, bytes, sizeof bytes, 0);
        while (got < 0 && errno == EINTR);
        if (got > 0) accepted += bl_link_feed(&s->link, &s->stream, d, bytes, (size_t)got, now);
        else if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) break_off(d, got == 0 ? 0 : errno);
    }
    s->spoken = s->spoken || accepted > 0 || d->sessions != sessions;
    return accepted;
}

static int tcp_receive(bl_device *d, int64_t now) {
    tcp_state *s = d->state;
    const int gone = own_up(s);
    if (gone) return gone;
    if (!meet(d)) return 0;
    const int accepted = read_frames(d, now);
    if (is_up(s)) {
        const int status = bl_outbox_push(&s->out, s->fd, put_bytes);
        if (status != 0 && status != -EAGAIN) break_off(d, -status);
    }
    tcp_greet(d, false, now);
    return accepted > 0 ? accepted : own_up(s);
}

static int tcp_wait(bl_device *d, int64_t deadline) {
    tcp_state *s = d->state;
    if (s->broken) return 1;
    if (meet(d)) tcp_greet(d, true, bl_clock_now());
    const bool waits = s->connecting || s->out.from < s->out.to;
    struct pollfd lines[] = {
        {.fd = s->fd, .events = (short)((s->connecting ? 0 : POLLIN) | (waits ? POLLOUT : 0))},
        {.fd = s->listener, .events = POLLIN},
    };
    if (!is_up(s) && s->listener < 0 && s->next < deadline) deadline = s->next;
    return bl_poll_until(lines, 2, deadline) > 0; /* descriptors of -1 are skipped */
}

static int tcp_reopen(bl_device *d) { return meet(d) ? 0 : -ENOTCONN; }

/* No tick waits any more, but safe values may be on their way. A socket that is closed with something unread takes them back. */
static void see_off(tcp_state *s) {
    const int64_t deadline = bl_clock_now() + TCP_FAREWELL;
    uint8_t bytes[4096];
    while (bl_clock_now() < deadline) {
        const int status = bl_outbox_push(&s->out, s->fd, put_bytes);
        const ssize_t got = recv(s->fd, bytes, sizeof bytes, 0);
        const bool quiet = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        if ((status != 0 && status != -EAGAIN) || got == 0 || (got < 0 && !quiet && errno != EINTR)) return;
        if (!quiet) continue;
        if (status == 0 && count_waiting(s->fd, true) == 0) return;
        struct pollfd line = {.fd = s->fd, .events = POLLIN};
        (void)poll(&line, 1, 1);
    }
}

static void tcp_close(bl_device *d) {
    tcp_state *s = d->state;
    if (is_up(s)) see_off(s);
    hang_up(s);
    if (s->listener >= 0) close(s->listener);
    if (s->peers) freeaddrinfo(s->peers);
    bl_link_end(&s->link);
    free(s);
}

static int tcp_share(const bl_device *d, bl_line_state *state) {
    const tcp_state *s = d->state;
    state->kind = BL_LINE_STREAM;
    bl_link_copy(&s->link, &state->link);
    return is_up(s) ? s->fd : -1;
}

static bl_link *tcp_link(bl_device *d) { return &((tcp_state *)d->state)->link; }

static const bl_driver TCP = {"tcp", tcp_receive, tcp_send, tcp_wait, tcp_reopen, tcp_close, tcp_share, tcp_link};

/* --- Opening --- */

static bool start_listening(bl_device *d, const struct addrinfo *own, char *message, size_t message_size) {
    tcp_state *s = d->state;
    const int on = 1;
    s->listener = bl_open_socket(own->ai_family, SOCK_STREAM);
    /* Without this, a port that has just been used cannot be had for a minute. */
    if (s->listener < 0 || setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) {
        snprintf(message, message_size, "no socket: %s", strerror(errno));
        return false;
    }
    if (!bl_bind_socket(s->listener, own, message, message_size)) return false;
    if (listen(s->listener, TCP_COMERS) != 0) {
        snprintf(message, message_size, "the socket cannot listen: %s", strerror(errno));
        return false;
    }
    name_peer(s, own->ai_addr, own->ai_addrlen);
    snprintf(d->words, sizeof d->words, "no device has connected to %s", s->place);
    return true;
}

static bool open_connection(bl_device *d, const char *host, int32_t port, const char *bind_to, int32_t bind_port,
                            char *message, size_t message_size) {
    tcp_state *s = d->state;
    s->peers = host ? bl_find_address(host, port, SOCK_STREAM, message, message_size) : NULL;
    s->peer = s->peers;
    if (host && !s->peers) return false;
    if (port > 0) {
        (void)meet(d);
        return true;
    }
    struct addrinfo *own = bl_find_own_address(bind_to, bind_port, SOCK_STREAM, host, s->peers, message, message_size);
    const bool done = own && start_listening(d, own, message, message_size);
    if (own) freeaddrinfo(own);
    return done;
}

bl_device *bl_tcp_open(const char *name, const char *host, int32_t port, const char *bind, int32_t bind_port,
                       int32_t in_count, int32_t out_count, int32_t flags, char *message, size_t message_size) {
    char reason[200] = "no memory";
    host = host && *host ? host : NULL;
    bind = bind && *bind ? bind : NULL;
    tcp_state *s = NULL;
    bl_device *d = NULL;
    if (in_count < 0 || in_count > BL_FRAME_VALUES || out_count < 0 || out_count > BL_FRAME_VALUES)
        snprintf(reason, sizeof reason, "a frame has 0 to %d values", BL_FRAME_VALUES);
    else if (port < 0 || port > 65535 || bind_port < 0 || bind_port > 65535)
        snprintf(reason, sizeof reason, "a port must be a number from 1 to 65535");
    else if ((port > 0) == (bind_port > 0))
        snprintf(reason, sizeof reason,
                 "set the port of the device, or bind_port for a device that connects to this program");
    else if (port > 0 && (!host || bind))
        snprintf(reason, sizeof reason,
                 host ? "bind is used only with bind_port, for a device that connects to this program"
                      : "set the host of the device");
    else s = calloc(1, sizeof *s);
    if (s) {
        s->fd = s->listener = -1;
        d = bl_device_open(&TCP, s, name, in_count, out_count);
        if (!d) free(s);
    }
    if (d) {
        if (bl_link_init(&s->link, d, flags) != 0)
            snprintf(reason, sizeof reason, "no random session number is available");
        else if (open_connection(d, host, port, bind, bind_port, reason, sizeof reason)) return d;
        bl_device_close(d);
    }
    snprintf(message, message_size, "device `%s`: %s", name, reason);
    return NULL;
}

#endif
