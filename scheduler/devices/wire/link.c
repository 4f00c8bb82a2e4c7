#include "scheduler/devices/wire/link.h"

#include "scheduler/devices/drivers.h"
#include "scheduler/devices/wire/hello.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
#include <sys/random.h>
#endif

enum { LINK_SILENCE = 1000000000, LINK_BEHIND = 1 << 16 }; /* ns, for devices without a timeout; frames */

/* Random bytes of the operating system: 0, or an errno with its sign changed. */
static int draw_random(void *to, size_t size) {
#if defined(__linux__)
    return getrandom(to, size, 0) == (ssize_t)size ? 0 : -EIO;
#else
    FILE *random = fopen("/dev/urandom", "rb");
    if (!random) return -errno;
    const bool done = fread(to, size, 1, random) == 1;
    fclose(random);
    return done ? 0 : -EIO;
#endif
}

int bl_link_init(bl_link *l, bl_device *d, int32_t flags) {
    memset(l, 0, sizeof *l);
    l->flags = flags & BL_WIRE_DOUBLE ? BL_FRAME_DOUBLE : 0;
    d->answers = d->safe_sent = flags & BL_WIRE_ANSWERS;
    if (d->answers) return 0;
    for (int tries = 0; l->session == 0 && tries < 100; tries++) {
        const int error = draw_random(&l->session, sizeof l->session);
        if (error) return error;
    }
    return l->session ? 0 : -EIO;
}

int bl_link_set_key(bl_link *l, const uint8_t *key) {
    uint8_t seed[BL_NONCE];
    const int error = draw_random(seed, sizeof seed);
    if (error) return error;
    bl_handshake *h = l->handshake ? l->handshake : malloc(sizeof *h);
    if (!h) return -ENOMEM;
    bl_hello_set_key(l, h, key, seed);
    return 0;
}

int bl_wire_set_key(bl_device *d, const uint8_t *key) {
    const int error = d->driver->link ? bl_link_set_key(d->driver->link(d), key) : -ENOTSUP;
    if (error == 0) return BL_OK;
    snprintf(d->why, sizeof d->why, "device `%s` cannot have a key: %s", d->name, strerror(-error));
    return BL_ERROR_ARGUMENT;
}

void bl_link_end(bl_link *l) {
    if (l->handshake) bl_wipe(l->handshake, sizeof *l->handshake);
    free(l->handshake);
    bl_wipe(l, sizeof *l);
}

void bl_link_copy(const bl_link *l, bl_link *to) {
    *to = *l;
    to->handshake = NULL;
}

void bl_link_renew(bl_link *l, const bl_device *d) {
    if (l->keyed) bl_hello_renew(l, d);
}

bool bl_link_is_open(const bl_link *l) { return !l->keyed || l->open; }

/* A device whose host has been silent for its timeout ends the session. Otherwise frames that somebody has held back would be
   its values at any later time. */
static void end_if_silent(bl_link *l, const bl_device *d, int64_t now) {
    if (!d->answers || !l->open || !l->handshake) return;
    if (d->timeout == 0 || now - l->time - d->excused <= d->timeout) return;
    l->open = false;
    l->session = 0;
}

bool bl_link_must_greet(bl_link *l, const bl_device *d, bool waits, int64_t now) {
    if (l->keyed && l->handshake) l->handshake->now = now;
    if (l->keyed) end_if_silent(l, d, now);
    if (l->stranger || (l->keyed && bl_hello_is_due(l, d, now))) return true;
    const bool paused = l->keyed && (!l->open || now < l->handshake->due); /* a board may need milliseconds for a tag */
    return waits && !paused && (!l->heard || d->lost);
}

static bool is_newer(uint32_t a, uint32_t b) { return a - b - 1 < INT32_MAX; }

/* A device without outputs never receives a session and sends 0. */
static bool is_ours(const bl_link *l, const bl_device *d, uint16_t session) {
    return session == l->session || (session == 0 && d->out_count == 0);
}

/* Whether a device that counts from the beginning has really restarted, and this is not one of its old frames: it must have been
   silent, or have said that it knew no session. And if it echoes what we send, it must know something newer than before. */
static bool has_restarted(const bl_link *l, const bl_device *d, const bl_frame_head *head, int64_t now) {
    const bool silent = now - l->time > (d->timeout > 0 ? d->timeout : LINK_SILENCE);
    if (l->echo == 0) return silent;
    return (silent || l->restarted) && is_newer(head->echo, l->echo) && !is_newer(head->echo, d->last_sent);
}

/* Echo numbers never decrease: a smaller one marks a stale frame, even if the sequence has restarted since. */
static bool is_late(const bl_link *l, const bl_frame_head *head) {
    return l->echo != 0 && head->echo != 0 && is_newer(l->echo, head->echo);
}

bool bl_link_is_free(const bl_link *l, const bl_device *d) { return l->session == 0 || d->lost || d->safe_sent; }

/* A frame of a host: the next one of ours, or any of another that may come. */
static bool is_from_host(const bl_link *l, const bl_device *d, const bl_frame_head *head) {
    if (head->session == l->session) return l->heard && is_newer(head->sequence, l->sequence);
    return head->session != 0 && bl_link_is_free(l, d);
}

static bool is_from_device(bl_link *l, const bl_device *d, const bl_frame_head *head, int64_t now) {
    if (!is_ours(l, d, head->session)) {
        l->stranger = l->restarted = true;
        return false;
    }
    if (!l->heard) return true;
    return !is_late(l, head) && (is_newer(head->sequence, l->sequence) || has_restarted(l, d, head, now));
}

/* An accepted frame becomes the newest. */
static int note_frame(bl_link *l, bl_device *d, const bl_frame_head *head, const double *values, int64_t now) {
    const bool same_host = !d->answers || head->session == l->session;
    const bool continues = l->heard && same_host && is_newer(head->sequence, l->sequence);
    if (!continues) d->epochs++;
    else if (!l->restarted) bl_add_count(&d->counts.missed, head->sequence - l->sequence - 1);
    l->heard = true;
    l->restarted = false;
    if (d->answers) {
        l->session = head->session;
        d->safe_sent = head->flags & BL_FRAME_SAFE;
    }
    l->sequence = head->sequence;
    l->echo = head->echo;
    l->time = now;
    memcpy(d->received, values, (size_t)d->in_count * sizeof *values);
    d->sequence = head->sequence;
    d->echo = head->echo;
    d->tripped = head->flags & BL_FRAME_TRIPPED;
    return 1;
}

/* A number is used once, and only by who has the key of the session. */
static int take_signed(bl_link *l, bl_device *d, const uint8_t *bytes, size_t size, int64_t now) {
    bl_frame_head head;
    double values[BL_FRAME_VALUES];
    const int status = bl_frame_read_signed(bytes, size, d->in_count, &l->incoming, &head, values);
    if (status == 0) {
        bl_add_count(&d->counts.corrupt, 1);
        return 0;
    }
    if (!l->open || status < 0) {
        bl_add_count(&d->counts.unauthenticated, 1);
        return 0;
    }
    const uint64_t number = (uint64_t)head.wraps << 32 | head.sequence;
    if (head.session != l->session || number <= l->taken || bl_hello_is_held_back(l, d, head.echo, now)) {
        bl_add_count(&d->counts.stale, 1);
        return 0;
    }
    l->taken = number;
    if (l->handshake) bl_hello_note_echo(l, head.echo);
    return note_frame(l, d, &head, values, now);
}

static int take_keyed(bl_link *l, bl_device *d, const uint8_t *bytes, size_t size, int64_t now) {
    end_if_silent(l, d, now);
    if (size != BL_HELLO_SIZE || bytes[0] != BL_FRAME_AUTHENTICATED || !(bytes[1] & BL_HELLO_KIND))
        return take_signed(l, d, bytes, size, now);
    const int status = bl_hello_take(l, d, bytes, size, now);
    if (status == 0) bl_add_count(&d->counts.corrupt, 1);
    else if (status < 0) bl_add_count(&d->counts.unauthenticated, 1);
    return 0;
}

int bl_link_take(bl_link *l, bl_device *d, const uint8_t *bytes, size_t size, int64_t now) {
    if (l->keyed) return take_keyed(l, d, bytes, size, now);
    bl_frame_head head;
    double values[BL_FRAME_VALUES];
    if (!bl_frame_read(bytes, size, d->in_count, &head, values)) {
        bl_add_count(&d->counts.corrupt, 1);
        if (size > 0 && bytes[0] == BL_FRAME_AUTHENTICATED && d->words[0] == '\0')
            snprintf(d->words, sizeof d->words, "authenticated frames have come, but this side has no `key`");
        return 0;
    }
    if (d->answers ? !is_from_host(l, d, &head) : !is_from_device(l, d, &head, now)) {
        bl_add_count(&d->counts.stale, 1);
        return 0;
    }
    l->stranger = false; /* the peer has received our session by now */
    return note_frame(l, d, &head, values, now);
}

static int end_of_frame(bl_link *l, bl_stream *s, bl_device *d, int64_t now) {
    const int64_t corrupt = bl_counted(&d->counts.corrupt);
    const size_t size = s->spoilt ? 0 : bl_unstuff(s->bytes, s->length, s->bytes, sizeof s->bytes);
    const int accepted = bl_link_take(l, d, s->bytes, size, now);
    if (!s->begun) bl_add_count(&d->counts.corrupt, corrupt - bl_counted(&d->counts.corrupt));
    s->begun = true;
    s->spoilt = false;
    s->length = 0;
    return accepted;
}

int bl_link_feed(bl_link *l, bl_stream *s, bl_device *d, const uint8_t *bytes, size_t size, int64_t now) {
    int accepted = 0;
    while (size > 0) {
        const uint8_t *zero = memchr(bytes, 0, size);
        const size_t length = zero ? (size_t)(zero - bytes) : size;
        if (length > sizeof s->bytes - s->length) {
            s->spoilt = true;
        } else {
            memcpy(s->bytes + s->length, bytes, length);
            s->length += length;
        }
        if (!zero) break;
        if (s->length > 0 || s->spoilt) accepted += end_of_frame(l, s, d, now);
        s->begun = true;
        bytes = zero + 1;
        size -= length + 1;
    }
    return accepted;
}

size_t bl_link_write(bl_link *l, const bl_device *d, uint32_t sequence, int flags, const double *values,
                     uint8_t *bytes) {
    /* In a session, numbers go on where the sequence wraps. A sequence may be a little behind that of a frame that was not sent. */
    const uint64_t turn = (uint64_t)1 << 32;
    const uint32_t ahead = sequence - (uint32_t)l->sent;
    const bool is_behind = ahead > UINT32_MAX - LINK_BEHIND && l->sent + ahead >= turn;
    const uint64_t number = l->sent + ahead - (is_behind ? turn : 0);
    const bl_frame_head head = {
        .sequence = sequence,
        .echo = l->sequence,
        .session = l->session,
        .wraps = l->keyed ? (uint16_t)(number >> 32) : 0,
        .flags = (uint8_t)(l->flags | (flags & BL_SEND_SAFE ? BL_FRAME_SAFE : 0) |
                           (flags & BL_SEND_TRIPPED ? BL_FRAME_TRIPPED : 0)),
    };
    l->sent = number;
    if (l->keyed) bl_hello_mark_sent(l, d);
    if (l->keyed) return bl_frame_write_signed(&head, values, d->out_count, &l->outgoing, bytes);
    return bl_frame_write(&head, values, d->out_count, bytes);
}

size_t bl_link_stuff(const uint8_t *frame, size_t size, uint8_t *stuffed) {
    size = bl_stuff(frame, size, stuffed);
    stuffed[size] = 0;
    return size + 1;
}

size_t bl_link_write_hello(bl_link *l, bl_device *d, int64_t now, uint8_t *bytes) {
    if (l->keyed && (l->stranger || !l->open || bl_hello_is_due(l, d, now))) return bl_hello_write(l, d, now, bytes);
    l->stranger = false;
    if (l->heard || d->answers ||
        l->keyed) { /* an echo that was not there before: see has_restarted; and no other frame may have this number */
        d->last_sent++;
        d->has_sent = true;
    }
    if (l->keyed) l->handshake->due = now + BL_HELLO_INTERVAL;
    return bl_link_write(l, d, d->last_sent, BL_SEND_SAFE | (d->answers && d->lost ? BL_SEND_TRIPPED : 0), d->safe,
                         bytes);
}
