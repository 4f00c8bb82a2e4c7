#include "scheduler/devices/wire/link.h"

#include "scheduler/devices/drivers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LINK_SILENCE = 1000000000 }; /* ns, for devices without a timeout */

int bl_link_init(bl_link *l, bl_device *d, int32_t flags) {
    memset(l, 0, sizeof *l);
    l->flags = flags & BL_WIRE_DOUBLE ? BL_FRAME_DOUBLE : 0;
    d->answers = d->safe_sent = flags & BL_WIRE_ANSWERS;
    if (d->answers) return 0;
    FILE *random = fopen("/dev/urandom", "rb");
    if (!random) return -errno;
    for (int tries = 0; l->session == 0 && tries < 100; tries++)
        if (fread(&l->session, sizeof l->session, 1, random) != 1) break;
    fclose(random);
    return l->session ? 0 : -EIO;
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

int bl_link_take(bl_link *l, bl_device *d, const uint8_t *bytes, size_t size, int64_t now) {
    bl_frame_head head;
    double values[BL_FRAME_VALUES];
    if (!bl_frame_read(bytes, size, d->in_count, &head, values)) {
        bl_count(&d->counts.corrupt, 1);
        return 0;
    }
    if (d->answers ? !is_from_host(l, d, &head) : !is_from_device(l, d, &head, now)) {
        bl_count(&d->counts.stale, 1);
        return 0;
    }
    const bool same_host = !d->answers || head.session == l->session;
    const bool continues = l->heard && same_host && is_newer(head.sequence, l->sequence);
    if (!continues) d->epochs++;
    else if (!l->restarted) bl_count(&d->counts.missed, head.sequence - l->sequence - 1);
    l->heard = true;
    l->restarted = l->stranger = false; /* the peer has received our session by now */
    if (d->answers) {
        l->session = head.session;
        d->safe_sent = head.flags & BL_FRAME_SAFE;
    }
    l->sequence = head.sequence;
    l->echo = head.echo;
    l->time = now;
    memcpy(d->received, values, (size_t)d->in_count * sizeof *values);
    d->sequence = head.sequence;
    d->echo = head.echo;
    d->tripped = head.flags & BL_FRAME_TRIPPED;
    return 1;
}

static int end_of_frame(bl_link *l, bl_stream *s, bl_device *d, int64_t now) {
    const int64_t corrupt = bl_counted(&d->counts.corrupt);
    const size_t size = s->spoilt ? 0 : bl_unstuff(s->bytes, s->length, s->bytes, sizeof s->bytes);
    const int accepted = bl_link_take(l, d, s->bytes, size, now);
    if (!s->begun) bl_count(&d->counts.corrupt, corrupt - bl_counted(&d->counts.corrupt));
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

size_t bl_link_write(const bl_link *l, const bl_device *d, uint32_t sequence, int flags, const double *values,
                     uint8_t *bytes) {
    const bl_frame_head head = {
        .sequence = sequence,
        .echo = l->sequence,
        .session = l->session,
        .flags = (uint8_t)(l->flags | (flags & BL_SEND_SAFE ? BL_FRAME_SAFE : 0) |
                           (flags & BL_SEND_TRIPPED ? BL_FRAME_TRIPPED : 0)),
    };
    return bl_frame_write(&head, values, d->out_count, bytes);
}

size_t bl_link_stuff(const uint8_t *frame, size_t size, uint8_t *stuffed) {
    size = bl_stuff(frame, size, stuffed);
    stuffed[size] = 0;
    return size + 1;
}

size_t bl_link_write_hello(bl_link *l, bl_device *d, uint8_t *bytes) {
    l->stranger = false;
    if (l->heard ||
        d->answers) { /* an echo that was not there before: see has_restarted; and no other frame may have this number */
        d->last_sent++;
        d->has_sent = true;
    }
    return bl_link_write(l, d, d->last_sent, BL_SEND_SAFE | (d->answers && d->lost ? BL_SEND_TRIPPED : 0), d->safe,
                         bytes);
}
