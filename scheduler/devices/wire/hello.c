#include "scheduler/devices/wire/hello.h"

#include <string.h>

/* Where things are in a hello. */
enum {
    AT_KIND = 1,
    AT_SESSION = 4,
    AT_WRAPS = 6,
    AT_SEQUENCE = 8,
    AT_HOST = 16,
    AT_DEVICE = AT_HOST + BL_NONCE,
    AT_TAG = AT_DEVICE + BL_NONCE,
};
enum { FROM_HOST = 0x80, FROM_DEVICE = 0xC0 };
enum { LABEL = 8 };
enum { HELLO_SILENCE = 1000000000 }; /* ns without a frame, for devices without a timeout */
static const uint8_t NO_NONCE[BL_NONCE];

static bool is_same(const uint8_t *a, const uint8_t *b) { return memcmp(a, b, BL_NONCE) == 0; }

/* A nonce is the code of the seed and a count: none comes twice in a run, and nobody without the key foresees one. The first
   two bytes are the number of a session: not 0, and not that of the present one. */
static void draw_nonce(bl_link *l) {
    bl_handshake *h = l->handshake;
    uint8_t message[LABEL + BL_NONCE + 4] = "biella n", code[BL_MAC_SIZE];
    uint16_t session;
    memcpy(message + LABEL, h->seed, BL_NONCE);
    do {
        bl_put32(message + LABEL + BL_NONCE, h->drawn++);
        bl_mac(&h->key, message, sizeof message, code);
        session = bl_get16(code);
    } while (session == 0 || session == l->session || session == h->replaces);
    memcpy(h->nonce, code, BL_NONCE);
}

/* The key of one direction of the session. */
static void derive(const bl_handshake *h, uint8_t direction, bl_mac_key *to) {
    uint8_t message[LABEL + 1 + 2 * BL_NONCE] = "biella 2", key[BL_MAC_SIZE];
    message[LABEL] = direction;
    memcpy(message + LABEL + 1, h->host, BL_NONCE);
    memcpy(message + LABEL + 1 + BL_NONCE, h->device, BL_NONCE);
    bl_mac(&h->key, message, sizeof message, key);
    bl_mac_set_key(to, key);
    bl_wipe(key, sizeof key);
}

/* A session of both nonces begins: other keys, and numbers that follow those of the frames before it. */
static void begin_session(bl_link *l, const bl_device *d, const uint8_t *host, const uint8_t *device) {
    bl_handshake *h = l->handshake;
    memcpy(h->host, host, BL_NONCE);
    memcpy(h->device, device, BL_NONCE);
    derive(h, FROM_HOST, d->answers ? &l->incoming : &l->outgoing);
    derive(h, FROM_DEVICE, d->answers ? &l->outgoing : &l->incoming);
    l->session = bl_get16(host);
    l->sent = d->last_sent;
    draw_nonce(l);
}

/* From now on frames of the session go both ways; those of the peer have greater numbers. */
static void open_session(bl_link *l, bl_device *d, uint64_t number, int64_t now) {
    l->open = true;
    l->heard = l->restarted = false;
    l->taken = number;
    l->sequence = (uint32_t)number;
    l->echo = 0;
    l->time = now;
    d->sessions++;
    l->handshake->answered = l->sent;
    for (int k = 0; k < BL_SENT_MARKS; k++) l->handshake->marks[k] = (bl_sent_mark){l->sent, now};
}

void bl_hello_set_key(bl_link *l, bl_handshake *h, const uint8_t *key, const uint8_t *seed) {
    memset(h, 0, sizeof *h);
    bl_mac_set_key(&h->key, key);
    memcpy(h->seed, seed, BL_NONCE);
    l->handshake = h;
    l->keyed = true;
    l->open = l->heard = l->stranger = false;
    l->session = 0;
    draw_nonce(l);
}

/* --- Age of frames --- */

static int64_t longest_age(const bl_device *d) { return d->timeout > HELLO_SILENCE ? d->timeout : HELLO_SILENCE; }

/* The marks reach back further than the longest age. */
void bl_hello_mark_sent(bl_link *l, const bl_device *d) {
    bl_handshake *h = l->handshake;
    if (!h || h->now - h->marks[h->newest % BL_SENT_MARKS].time < longest_age(d) / (BL_SENT_MARKS - 2)) return;
    h->marks[++h->newest % BL_SENT_MARKS] = (bl_sent_mark){l->sent, h->now};
}

bool bl_hello_is_held_back(const bl_link *l, const bl_device *d, uint32_t echo, int64_t now) {
    const bl_handshake *h = l->handshake;
    if (!h) return false;
    if (l->sent - h->answered >= INT32_MAX) return true; /* which frame it echoes is ambiguous */
    for (uint32_t k = 0; k < BL_SENT_MARKS; k++) { /* the newest first */
        const bl_sent_mark *mark = &h->marks[(h->newest - k) % BL_SENT_MARKS];
        if (now - mark->time >= longest_age(d)) return (uint32_t)mark->number - echo - 1 < INT32_MAX;
    }
    return false;
}

/* The guard may have sent frames that this side does not know yet. */
void bl_hello_note_echo(bl_link *l, uint32_t echo) {
    const uint32_t behind = (uint32_t)l->sent - echo;
    l->handshake->answered = l->sent - (behind <= INT32_MAX ? behind : 0);
}

/* --- Of a device --- */

static void take_of_host(bl_link *l, bl_device *d, const uint8_t *bytes, uint64_t number, int64_t now) {
    bl_handshake *h = l->handshake;
    const uint16_t replaced = bl_get16(bytes + AT_SESSION);
    if (bl_get16(bytes + AT_HOST) == 0) return;
    const bool may_begin = bl_link_is_free(l, d) || (replaced != 0 && replaced == l->session);
    if (may_begin && is_same(bytes + AT_DEVICE, h->nonce)) { /* who has answered our nonce is there now */
        begin_session(l, d, bytes + AT_HOST, bytes + AT_DEVICE);
        open_session(l, d, number, now);
        d->safe_sent = true;
    }
    memcpy(h->answers, bytes + AT_HOST, BL_NONCE);
    l->stranger = true;
}

/* --- Of a host --- */

static bool is_silent(const bl_link *l, const bl_device *d, int64_t now) {
    return now - l->time > (d->timeout > 0 ? d->timeout : HELLO_SILENCE);
}

static void take_of_device(bl_link *l, bl_device *d, const uint8_t *bytes, uint64_t number, int64_t now) {
    bl_handshake *h = l->handshake;
    const bool has_ours = l->session != 0 && bl_get16(bytes + AT_SESSION) == l->session;
    if (is_same(bytes + AT_HOST, h->nonce)) { /* the answer to a call, the first: the nonce is used up */
        if (l->open && has_ours && (d->in_count == 0 || !is_silent(l, d, now))) {
            l->time = now;
            draw_nonce(l);
            return;
        }
        if (l->open) h->replaces = l->session;
        l->open = false;
        begin_session(l, d, bytes + AT_HOST, bytes + AT_DEVICE);
        l->stranger = true;
    } else if (!l->open && l->session != 0 && is_same(bytes + AT_HOST, h->host)) {
        if (is_same(bytes + AT_DEVICE, h->device)) return; /* its nonce is unused: it has not begun the session */
        if (has_ours) open_session(l, d, number, now);
        else l->session = 0; /* it has restarted meanwhile: call again */
    } else if (!has_ours && now >= h->due) {
        l->stranger = true; /* it may have restarted; whether it is an old answer, a call will show */
    }
}

/* --- Of both --- */

int bl_hello_take(bl_link *l, bl_device *d, const uint8_t *bytes, size_t size, int64_t now) {
    if (size != BL_HELLO_SIZE || bytes[AT_KIND] != (d->answers ? FROM_HOST : FROM_DEVICE)) return 0;
    if (!l->handshake) return 1; /* the guard begins no session */
    if (!bl_mac_fits(&l->handshake->key, bytes, AT_TAG, bytes + AT_TAG)) return -1;
    const uint64_t number = (uint64_t)bl_get16(bytes + AT_WRAPS) << 32 | bl_get32(bytes + AT_SEQUENCE);
    if (d->answers) take_of_host(l, d, bytes, number, now);
    else take_of_device(l, d, bytes, number, now);
    return 1;
}

bool bl_hello_is_due(const bl_link *l, const bl_device *d, int64_t now) {
    const bool needed = d->answers ? l->session == 0 : !l->open || is_silent(l, d, now);
    return needed && now >= l->handshake->due;
}

size_t bl_hello_write(bl_link *l, const bl_device *d, int64_t now, uint8_t *bytes) {
    bl_handshake *h = l->handshake;
    const bool begins = !d->answers && !l->open && l->session != 0; /* of a host; else it calls */
    const uint64_t number = d->answers || begins ? l->sent : 0;
    uint8_t code[BL_MAC_SIZE];
    memset(bytes, 0, BL_HELLO_SIZE);
    bytes[0] = BL_FRAME_AUTHENTICATED;
    bytes[AT_KIND] = d->answers ? FROM_DEVICE : FROM_HOST;
    bl_put16(bytes + AT_SESSION, d->answers ? l->session : h->replaces);
    bl_put16(bytes + AT_WRAPS, (uint16_t)(number >> 32));
    bl_put32(bytes + AT_SEQUENCE, (uint32_t)number);
    memcpy(bytes + AT_HOST, d->answers ? h->answers : begins ? h->host : h->nonce, BL_NONCE);
    memcpy(bytes + AT_DEVICE, d->answers ? h->nonce : begins ? h->device : NO_NONCE, BL_NONCE);
    bl_mac(&h->key, bytes, AT_TAG, code);
    memcpy(bytes + AT_TAG, code, BL_MAC_TAG);
    memset(h->answers, 0, BL_NONCE);
    l->stranger = false;
    h->due = now + BL_HELLO_INTERVAL;
    return BL_HELLO_SIZE;
}

void bl_hello_renew(bl_link *l, const bl_device *d) {
    if (!l->handshake || d->answers) return;
    if (l->open) l->handshake->replaces = l->session;
    l->open = false;
    l->session = 0;
    l->handshake->due = 0;
}
