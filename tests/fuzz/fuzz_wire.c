/* Fuzzes what devices send: datagrams, a serial line's bytes, lines of text, through the same functions that a tick calls.
 *
 * An input is three bytes that say which of them, how many values, and how strict; then pieces, each a byte for the time since the last,
 * two for its length, and what arrives in one read. The library is compiled with BL_FUZZING, which leaves out the check of the CRC and
 * of tags. With a key, nonces are those of a fixed seed, so that inputs can answer them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "scheduler/devices/wire/hello.h"
#include "scheduler/devices/wire/text.h"

enum { DATAGRAMS, STREAM, LINES, MODES };
enum { PIECE_HEAD = 3, SESSION = 0x1234, TIMEOUT = 10000000 };

int fuzz_accepted;

typedef struct {
    int mode, checksum;
    bl_link link;
    bl_handshake handshake;
    bl_stream stream;
    bl_lines lines;
    const uint8_t *bytes; /* of the present read */
    size_t size;
    int64_t now;
} wire;

static void check(int holds) {
    if (!holds) abort();
}

/* A frame is taken if it is of our session and newer, or the device may have restarted. */
static void check_device(const bl_device *d, const bl_link *before, const bl_frame_head *head, int64_t now) {
    check(head->session == SESSION || (head->session == 0 && d->out_count == 0));
    const int newer = head->sequence - before->sequence - 1 < INT32_MAX;
    check(!before->heard || newer || before->restarted || now - before->time > TIMEOUT);
}

/* A host is heard if it is the one that we have, and newer, or we have none; never without a session. */
static void check_host(const wire *w, const bl_link *before, const bl_frame_head *head, int was_free) {
    check(head->session != 0 && w->link.session == head->session);
    check(head->session == before->session ? head->sequence - before->sequence - 1 < INT32_MAX : was_free);
}

/* A session begins only with our own nonce, which is then used up; a device keeps a host that is not silent. */
static void check_session(const wire *w, const bl_device *d, const bl_link *before, const uint8_t *nonce,
                          int was_free) {
    const bl_handshake *h = &w->handshake;
    if (w->link.session == before->session || w->link.session == 0) return;
    check(w->size == BL_HELLO_SIZE && w->link.session == (w->bytes[16] | w->bytes[17] << 8));
    check(memcmp(w->bytes + (d->answers ? 32 : 16), nonce, BL_NONCE) == 0 && memcmp(h->nonce, nonce, BL_NONCE) != 0);
    check(!d->answers || was_free || w->now - before->time > TIMEOUT ||
          (w->bytes[4] | w->bytes[5] << 8) == before->session);
    check(d->answers == w->link.open);
}

static void check_number(const wire *w, const bl_device *d, const bl_link *before, const bl_frame_head *head) {
    const uint64_t number = (uint64_t)head->wraps << 32 | head->sequence;
    check(!d->answers || w->now - before->time <= TIMEOUT);
    check(before->open && head->session == before->session && number > before->taken && w->link.taken == number);
}

static int take_one(wire *w, bl_device *d, int64_t now) {
    const bl_link before = w->link;
    const int was_free = bl_link_is_free(&w->link, d);
    const int is_hello = w->link.keyed && w->size == BL_HELLO_SIZE && w->bytes[0] == 0xB2 && w->bytes[1] >= 0x80;
    const int64_t refused = d->counts.corrupt + d->counts.stale + d->counts.unauthenticated;
    uint8_t nonce[BL_NONCE];
    memcpy(nonce, w->handshake.nonce, BL_NONCE);
    const int accepted = bl_link_take(&w->link, d, w->bytes, w->size, now);
    const int64_t rejected = d->counts.corrupt + d->counts.stale + d->counts.unauthenticated - refused;
    check(is_hello ? !accepted && rejected <= 1 : accepted + rejected == 1);
    if (w->link.keyed) check_session(w, d, &before, nonce, was_free);
    if (!accepted) return 0;
    bl_frame_head head;
    double values[BL_FRAME_VALUES];
    uint8_t again[BL_FRAME_SIZE];
    if (w->link.keyed) {
        check(bl_frame_read_signed(w->bytes, w->size, d->in_count, &w->link.incoming, &head, values) == 1);
        check_number(w, d, &before, &head);
        check(bl_frame_write_signed(&head, values, d->in_count, &w->link.incoming, again) == w->size);
        check(memcmp(again, w->bytes, w->size - BL_MAC_TAG) == 0);
        return 1;
    }
    check(bl_frame_read(w->bytes, w->size, d->in_count, &head, values));
    if (d->answers) check_host(w, &before, &head, was_free);
    else check_device(d, &before, &head, now);
    /* Writing what was read gives the same bytes, but for the CRC, which is not looked at here. */
    check(bl_frame_write(&head, values, d->in_count, again) == w->size && memcmp(again, w->bytes, w->size - 4) == 0);
    return 1;
}

static int wire_receive(bl_device *d, int64_t now) {
    wire *w = d->state;
    w->now = now;
    if (w->mode == DATAGRAMS) return take_one(w, d, now);
    if (w->mode == STREAM) return bl_link_feed(&w->link, &w->stream, d, w->bytes, w->size, now);
    return bl_text_feed(&w->lines, d, w->checksum, w->bytes, w->size);
}

static int wire_send(bl_device *d, uint32_t sequence, int flags) {
    wire *w = d->state;
    uint8_t frame[BL_FRAME_SIZE], stuffed[BL_FRAME_STUFFED], back[BL_FRAME_SIZE];
    char line[BL_TEXT_ROOM];
    if (w->link.stranger || (d->answers && d->lost)) check(bl_link_write_hello(&w->link, d, w->now, frame) > 0);
    if (!bl_link_is_open(&w->link)) return -EAGAIN;
    const size_t size = bl_link_write(&w->link, d, sequence, flags, d->sending, frame);
    const size_t length = bl_stuff(frame, size, stuffed);
    check(memchr(stuffed, 0, length) == NULL);
    check(bl_unstuff(stuffed, length, back, sizeof back) == size && memcmp(back, frame, size) == 0);
    check(bl_text_write(d->sending, d->out_count, 1, 1, line) > 0);
    return 0;
}

static const bl_driver WIRE = {.name = "wire", .receive = wire_receive, .send = wire_send};

static void enter(void *context, int64_t slot, double value) {
    check(isfinite(value));
    if (slot < 10) *(int *)context = 1;
}

static bl_device *open_device(wire *w, const uint8_t *data) {
    bl_channel ins[8], outs[1];
    const int32_t in_count = data[1] % 8, out_count = data[2] & 1;
    for (int32_t k = 0; k < 8; k++)
        ins[k] = (bl_channel){
            .name = "in", .slot = k, .scale = 2.0, .low = -1e300, .high = 1e300, .saturates = data[2] >> 2 & 1};
    outs[0] = (bl_channel){.name = "out", .slot = 0, .scale = 1.0, .low = -INFINITY, .high = INFINITY};
    bl_device *d = bl_device_open(&WIRE, w, "fuzzed", in_count, out_count);
    if (!d) return NULL;
    check(bl_device_set_channels(d, ins, outs) == BL_OK);
    bl_device_set_loss(d, TIMEOUT, data[2] >> 3 & 1 ? BL_LOSS_SAFE : BL_LOSS_HOLD);
    bl_device_set_slots(d, 10, 11, 12);
    return d;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3) return 0;
    wire *w = calloc(1, sizeof *w);
    bl_device *d = w ? open_device(w, data) : NULL;
    if (!d) {
        free(w);
        return 0;
    }
    w->mode = data[0] % MODES;
    w->checksum = data[2] >> 1 & 1;
    w->lines.begun = true; /* as after the first end of a line */
    d->answers = d->safe_sent = data[2] >> 4 & 1;
    w->link.session = d->answers ? 0 : SESSION;
    if (data[2] >> 5 & 1) {
        static const uint8_t key[BL_MAC_KEY], seed[BL_NONCE];
        bl_hello_set_key(&w->link, &w->handshake, key, seed);
    }
    int64_t now = 0, tick = 0;
    for (size_t at = 3; at + PIECE_HEAD <= size; tick++) {
        size_t length = (size_t)data[at + 1] | (size_t)data[at + 2] << 8;
        now += (int64_t)data[at] * 100000;
        at += PIECE_HEAD;
        if (length > size - at) length = size - at;
        /* A buffer of just this size, so that reading past its end is noticed. */
        uint8_t *piece = malloc(length + (length == 0));
        if (!piece) break;
        memcpy(piece, data + at, length);
        w->bytes = piece;
        w->size = length;
        int entered = 0;
        const double value = 1.5;
        (void)bl_device_take(d, tick, now, enter, &entered);
        if (entered && !d->lost) fuzz_accepted = 1;
        (void)bl_device_give(d, tick, &value);
        free(piece);
        at += length;
    }
    bl_device_make_safe(d, tick);
    bl_device_close(d);
    free(w);
    return 0;
}
