/* The device's side of biella's wire frame, for a microcontroller: C99 or C++, no library but <stdint.h> and <string.h>,
 * no allocation, state in one struct. Drop this file into an Arduino, STM32 or other project:
 *
 *     #define BIELLA_RECEIVES 2                     // values in a frame from the host: speed, reference
 *     #define BIELLA_SENDS 1                        // values in a frame to the host: torque
 *     #include "biella_device.h"
 *     biella_device device;
 *     void setup() { Serial.begin(115200); biella_init(&device, 100); }         // watchdog: 100 ms
 *     void answer() {
 *         biella_real torque = biella_is_safe(&device) ? 0 : 0.8f * (device.values[1] - device.values[0]);
 *         uint8_t bytes[BIELLA_WIRE_SIZE];
 *         Serial.write(bytes, biella_encode(&device, &torque, bytes));
 *     }
 *     void loop() {
 *         static uint8_t last; uint8_t now = (uint8_t)millis();
 *         while (Serial.available()) if (biella_feed(&device, Serial.read())) answer();   // a frame is complete
 *         if (now != last) if (biella_elapsed(&device, (uint8_t)(now - last))) answer();  // the host has gone: safe now
 *         last = now;
 *     }
 *
 * A real firmware also sends every now and then while nobody is there, so that a host that is real-time by it can begin, and
 * moves its actuators to their safe values whenever biella_is_safe(): see pid_uno.c.
 *
 * biella_feed() takes a bounded time for each byte (the CRC is carried along), so that it may be called in the receive
 * interrupt; then whoever reads `values` or encodes does so with interrupts off.
 *
 * Options, before the include:  BIELLA_DOUBLE 1        values are double, where that has 64 bits, and sent as float64
 *                               BIELLA_CRC_TABLE 1     128 bytes of table (in flash on AVR) for a faster CRC
 *                               BIELLA_AUTH 1          frames are authenticated (docs/reference/frame.md): only who has the key
 *                                                      commands this board, and no recorded frame is accepted again
 * With BIELLA_AUTH, call biella_set_key() after biella_init(): before, no frame is accepted. biella_feed() then also gives
 * BIELLA_REPLY, for a message of the handshake: encode and send as if a frame had come, but compute nothing. The end of a
 * frame takes the time of one MAC (milliseconds on AVR): feed bytes from a ring, not in the receive interrupt.
 *
 * Frames from the host may hold float32 or float64 in any case. A number too large for `biella_real` counts as infinite. */
#ifndef BIELLA_WIRE_CLIENT_H
#define BIELLA_WIRE_CLIENT_H

#include <stdint.h>
#include <string.h>

#ifndef BIELLA_RECEIVES
#error "Define BIELLA_RECEIVES, the number of values in a frame from the host, before including biella_device.h"
#endif
#ifndef BIELLA_SENDS
#error "Define BIELLA_SENDS, the number of values in a frame to the host, before including biella_device.h"
#endif
#if BIELLA_RECEIVES < 0 || BIELLA_RECEIVES > 255 || BIELLA_SENDS < 0 || BIELLA_SENDS > 255
#error "A frame has at most 255 values"
#endif
#ifndef BIELLA_DOUBLE
#define BIELLA_DOUBLE 0
#endif
#ifndef BIELLA_CRC_TABLE
#define BIELLA_CRC_TABLE 0
#endif
#ifndef BIELLA_AUTH
#define BIELLA_AUTH 0
#endif
#if BIELLA_DOUBLE && defined(__SIZEOF_DOUBLE__) && __SIZEOF_DOUBLE__ != 8
#error \
    "BIELLA_DOUBLE needs a double of 64 bits; this compiler's is shorter (avr-gcc). Leave it out: values are float then"
#endif

#if BIELLA_DOUBLE
typedef double biella_real;
#else
typedef float biella_real;
#endif

/* Flags of a frame. */
#define BIELLA_FLOAT64 1u
#define BIELLA_SAFE 2u /* these are safe values: stay at yours until a frame without this flag */
#define BIELLA_TRIPPED 4u /* the sender has not heard from its peer for too long */

#define BIELLA_REPLY 2u /* of biella_feed(): nothing is new, but what biella_encode() writes must be sent */

#define BIELLA_HEADER 16u
#if BIELLA_AUTH
#define BIELLA_VERSION 0xB2u
#define BIELLA_END 16u /* bytes behind the values: the tag */
#define BIELLA_HELLO 64u /* bytes of a message of the handshake */
#define BIELLA_AT_LEAST(size) ((size) < BIELLA_HELLO ? BIELLA_HELLO : (size))
#else
#define BIELLA_VERSION 0xB1u
#define BIELLA_END 4u /* the CRC */
#define BIELLA_AT_LEAST(size) (size)
#endif
#define BIELLA_RECEIVED_SIZE BIELLA_AT_LEAST(BIELLA_HEADER + 8u * BIELLA_RECEIVES + BIELLA_END)
#define BIELLA_SENT_SIZE BIELLA_AT_LEAST(BIELLA_HEADER + (BIELLA_DOUBLE ? 8u : 4u) * BIELLA_SENDS + BIELLA_END)
/* Room for what biella_encode() writes: a code for every 254 bytes or part of them, and the 0 at the end. */
#define BIELLA_WIRE_SIZE (BIELLA_SENT_SIZE + BIELLA_SENT_SIZE / 254u + 2u)

#if BIELLA_RECEIVES <= 27 /* 32 + 8 bytes for each are less than 256 */
typedef uint8_t biella_length;
#else
typedef uint16_t biella_length;
#endif

#if BIELLA_AUTH
typedef struct {
    uint32_t state[8];
} biella_key; /* BLAKE2s behind the block of the key */
#endif

typedef struct {
    biella_real values[BIELLA_RECEIVES ? BIELLA_RECEIVES : 1]; /* of the newest frame from the host */
    uint32_t sequence; /* of that frame */
    uint32_t sent; /* sequence of our newest frame */
    uint16_t session; /* of the host; 0: none heard yet */
    uint16_t timeout, silence; /* ms */
    uint16_t refused; /* frames that were damaged, old or not for us */
    uint8_t flags; /* of the host's newest frame */
    uint8_t tripped; /* silence has exceeded timeout */
    /* What has been received of a frame so far. */
    uint8_t bytes[BIELLA_RECEIVED_SIZE];
    biella_length length;
    uint32_t crc;
    uint8_t left, full, spoilt; /* COBS: bytes left of this block; whether a zero follows it; frame of no use */
#if BIELLA_AUTH
    biella_key shared, incoming, outgoing; /* the two of the session */
    uint8_t boot[16]; /* never the same in two boots */
    uint8_t nonce[16]; /* ours, which no session has used */
    uint8_t asked[16]; /* nonce of the hello that our next one answers; zeros: none */
    uint32_t drawn; /* nonces of this boot */
    uint16_t wraps, sent_wraps; /* of sequence and sent, since the session began */
    uint32_t due, next_due; /* frames echo what was sent up to then, or later: see biella_elapsed() */
    uint16_t age; /* ms since next_due was sent */
    uint8_t has_key, must_reply;
#endif
} biella_device;

static inline void biella_restart_frame(biella_device *d) {
    d->length = 0;
    d->crc = 0xFFFFFFFFu;
    d->left = 0;
    d->full = 1; /* no zero stands before the first block */
    d->spoilt = 0;
}

/* Nothing heard, everything safe. The host must be heard every `timeout` milliseconds from its first frame on. */
static inline void biella_init(biella_device *d, uint16_t timeout) {
    memset(d, 0, sizeof *d);
    d->timeout = timeout;
    biella_restart_frame(d);
}

/* Whether actuators must be at their safe values: nobody heard yet, nobody heard in time, or the host says so. */
static inline uint8_t biella_is_safe(const biella_device *d) {
    return d->session == 0 || d->tripped || (d->flags & BIELLA_SAFE);
}

/* Call it with the milliseconds since the last call. Gives 1 when the watchdog trips just now. */
static inline uint8_t biella_elapsed(biella_device *d, uint8_t milliseconds) {
    const uint8_t was_tripped = d->tripped;
    if (d->session == 0 || (was_tripped && !BIELLA_AUTH)) return 0;
    if (d->timeout - d->silence <= milliseconds) {
        d->tripped = 1;
#if BIELLA_AUTH
        d->session = 0; /* over: frames of it that somebody has held back must not be values later */
#endif
    }
#if BIELLA_AUTH
    /* Nor those that come later and later, without a gap: what they echo was sent 1 to 2 s ago at most, or the timeout. */
    const uint32_t age = (uint32_t)d->age + milliseconds;
    d->age = (uint16_t)age;
    if (age >= 1000u && age >= d->timeout) {
        d->due = d->next_due;
        d->next_due = d->sent;
        d->age = 0;
    }
#endif
    d->silence = (uint16_t)(d->silence + milliseconds);
    return d->tripped && !was_tripped;
}

/* CRC-32, reflected, of one more byte. */
#if BIELLA_CRC_TABLE
#ifdef __AVR__
#include <avr/pgmspace.h>
#define BIELLA_IN_FLASH PROGMEM
#define biella_look_up(address) pgm_read_dword(address)
#else
#define BIELLA_IN_FLASH
#define biella_look_up(address) (*(address))
#endif
/* What the two halves of a byte do to the CRC. Shifts by eight are moves of bytes: chips without a shifter like them. */
static const uint32_t biella_crc_table[2][16] BIELLA_IN_FLASH = {
    {0x00000000u, 0x77073096u, 0xEE0E612Cu, 0x990951BAu, 0x076DC419u, 0x706AF48Fu, 0xE963A535u, 0x9E6495A3u,
     0x0EDB8832u, 0x79DCB8A4u, 0xE0D5E91Eu, 0x97D2D988u, 0x09B64C2Bu, 0x7EB17CBDu, 0xE7B82D07u, 0x90BF1D91u},
    {0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
     0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu}};
static inline uint32_t biella_crc(uint32_t crc, uint8_t byte) {
    const uint8_t first = (uint8_t)(crc ^ byte);
    return (crc >> 8) ^ biella_look_up(&biella_crc_table[0][first & 15u]) ^
           biella_look_up(&biella_crc_table[1][first >> 4]);
}
#else
static inline uint32_t biella_crc(uint32_t crc, uint8_t byte) {
    crc ^= byte;
    for (uint8_t bit = 0; bit < 8; bit++) crc = (crc & 1u) ? (crc >> 1) ^ 0xEDB88320u : crc >> 1;
    return crc;
}
#endif

static inline uint16_t biella_get16(const uint8_t *from) { return (uint16_t)((uint16_t)from[1] << 8 | from[0]); }
static inline uint32_t biella_get32(const uint8_t *from) {
    return (uint32_t)biella_get16(from + 2) << 16 | biella_get16(from);
}

#if BIELLA_AUTH
/* --- Keyed BLAKE2s-256, RFC 7693 --- */

#ifdef __AVR__
#include <avr/pgmspace.h>
#define BIELLA_TABLE PROGMEM
#define biella_table8(address) pgm_read_byte(address)
#define biella_table32(address) pgm_read_dword(address)
#else
#define BIELLA_TABLE
#define biella_table8(address) (*(address))
#define biella_table32(address) (*(address))
#endif
static const uint32_t biella_iv[8] BIELLA_TABLE = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                                   0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
/* Two indices of message words a byte, the first in the upper half. */
static const uint8_t biella_sigma[80] BIELLA_TABLE = {
    0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xea, 0x48, 0x9f, 0xd6, 0x1c, 0x02, 0xb7, 0x53,
    0xb8, 0xc0, 0x52, 0xfd, 0xae, 0x36, 0x71, 0x94, 0x79, 0x31, 0xdc, 0xbe, 0x26, 0x5a, 0x40, 0xf8,
    0x90, 0x57, 0x24, 0xaf, 0xe1, 0xbc, 0x68, 0x3d, 0x2c, 0x6a, 0x0b, 0x83, 0x4d, 0x75, 0xfe, 0x19,
    0xc5, 0x1f, 0xed, 0x4a, 0x07, 0x63, 0x92, 0x8b, 0xdb, 0x7e, 0xc1, 0x39, 0x50, 0xf4, 0x86, 0x2a,
    0x6f, 0xe9, 0xb3, 0x08, 0xc2, 0xd7, 0x14, 0xa5, 0xa2, 0x84, 0x76, 0x15, 0xfb, 0x9e, 0x3c, 0xd0};

/* Rotations to the right. By 8 and 16 they are moves of bytes; by 12 and 7 the rest is 4 bits and 1 bit. */
#ifdef __AVR__
static inline uint32_t biella_rotate8(uint32_t x) { return x >> 8 | x << 24; }
static inline uint32_t biella_rotate16(uint32_t x) { return x >> 16 | x << 16; }
static inline uint32_t biella_rotate12(uint32_t x) {
    uint8_t b[4]; /* nibbles change places, by one instruction each */
    memcpy(b, &x, 4);
    x = (uint32_t)(uint8_t)(b[1] >> 4 | b[2] << 4) | (uint32_t)(uint8_t)(b[2] >> 4 | b[3] << 4) << 8 |
        (uint32_t)(uint8_t)(b[3] >> 4 | b[0] << 4) << 16 | (uint32_t)(uint8_t)(b[0] >> 4 | b[1] << 4) << 24;
    return x;
}
static inline uint32_t biella_rotate7(uint32_t x) {
    x = biella_rotate8(x);
    return x << 1 | ((x & 0x80000000u) ? 1u : 0u);
}
#else
static inline uint32_t biella_rotate8(uint32_t x) { return x >> 8 | x << 24; }
static inline uint32_t biella_rotate16(uint32_t x) { return x >> 16 | x << 16; }
static inline uint32_t biella_rotate12(uint32_t x) { return x >> 12 | x << 20; }
static inline uint32_t biella_rotate7(uint32_t x) { return x >> 7 | x << 25; }
#endif

/* G: mixes two words of the message into a column or a diagonal. */
static void biella_mix(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d, uint32_t x, uint32_t y) {
    uint32_t p = *a, q = *b, r = *c, s = *d;
    p += q + x;
    s = biella_rotate16(s ^ p);
    r += s;
    q = biella_rotate12(q ^ r);
    p += q + y;
    s = biella_rotate8(s ^ p);
    r += s;
    q = biella_rotate7(q ^ r);
    *a = p;
    *b = q;
    *c = r;
    *d = s;
}

/* F: a block of 64 bytes into the state. `count`: all bytes so far, with those of the block. */
static void biella_compress(uint32_t *state, const uint8_t *block, uint32_t count, uint8_t last) {
    uint32_t v[16];
    memcpy(v, state, 32);
    for (uint8_t k = 0; k < 8; k++) v[8 + k] = biella_table32(&biella_iv[k]);
    v[12] ^= count;
    if (last) v[14] = ~v[14];
    for (uint8_t at = 0; at < 80; at++) {
        const uint8_t pair = biella_table8(&biella_sigma[at]), k = at & 3u, turn = (at & 4u) ? 1 : 0;
        biella_mix(&v[k], &v[4u + ((k + turn) & 3u)], &v[8u + ((k + 2u * turn) & 3u)], &v[12u + ((k + 3u * turn) & 3u)],
                   biella_get32(block + 4u * (pair >> 4)), biella_get32(block + 4u * (pair & 15u)));
    }
    for (uint8_t k = 0; k < 8; k++) state[k] ^= v[k] ^ v[8u + k];
}

static inline void biella_absorb_key(biella_key *to, const uint8_t *key) {
    uint8_t block[64];
    memset(block, 0, sizeof block);
    memcpy(block, key, 32);
    for (uint8_t k = 0; k < 8; k++) to->state[k] = biella_table32(&biella_iv[k]);
    to->state[0] ^= 0x01012020u; /* code and key of 32 bytes */
    biella_compress(to->state, block, 64, 0);
}

/* The code of `length` > 0 bytes: 32 bytes. */
static inline void biella_mac(const biella_key *key, const uint8_t *bytes, uint16_t length, uint8_t *code) {
    uint32_t state[8], count = 64;
    uint8_t block[64];
    memcpy(state, key->state, sizeof state);
    for (; length > 64u; bytes += 64, length = (uint16_t)(length - 64u)) biella_compress(state, bytes, count += 64u, 0);
    memset(block, 0, sizeof block);
    memcpy(block, bytes, length);
    biella_compress(state, block, count + length, 1);
    for (uint8_t k = 0; k < 32; k++) code[k] = (uint8_t)(state[k >> 2] >> 8u * (k & 3u));
}

/* Whether the 16 bytes behind them are the tag of `length` bytes; its time does not depend on where they differ. */
static inline uint8_t biella_is_signed(const biella_key *key, const uint8_t *bytes, uint16_t length) {
    uint8_t code[32], difference = 0;
    biella_mac(key, bytes, length, code);
    for (uint8_t k = 0; k < 16; k++) difference |= code[k] ^ bytes[length + k];
    return difference == 0;
}

static inline void biella_set16(uint8_t *to, uint16_t value) {
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}
static inline void biella_set32(uint8_t *to, uint32_t value) {
    biella_set16(to, (uint16_t)value);
    biella_set16(to + 2, (uint16_t)(value >> 16));
}

/* --- Handshake --- */

static inline void biella_draw_nonce(biella_device *d) {
    uint8_t message[28], code[32];
    memcpy(message, "biella n", 8);
    memcpy(message + 8, d->boot, 16);
    biella_set32(message + 24, d->drawn++);
    biella_mac(&d->shared, message, sizeof message, code);
    memcpy(d->nonce, code, 16);
}

/* After biella_init(): the key (32 bytes, as in the host's key file), and 16 bytes that are never the same in two boots of this
 * board: from its random number generator, or a counter in EEPROM or flash that is increased, and written, before this call. A
 * counter may be known to everybody, but must never go back, also where the power fails while it is written (boot_counter.h):
 * then recorded frames of an earlier boot could be accepted. Whoever calls biella_init() again in a boot needs other bytes, too. */
static inline void biella_set_key(biella_device *d, const uint8_t *key, const uint8_t *boot) {
    biella_absorb_key(&d->shared, key);
    memcpy(d->boot, boot, 16);
    d->has_key = 1;
    biella_draw_nonce(d);
}

static inline void biella_derive(const biella_device *d, uint8_t direction, const uint8_t *host, biella_key *to) {
    uint8_t message[41], code[32];
    memcpy(message, "biella 2", 8);
    message[8] = direction;
    memcpy(message + 9, host, 16);
    memcpy(message + 25, d->nonce, 16);
    biella_mac(&d->shared, message, sizeof message, code);
    biella_absorb_key(to, code);
}

/* A hello of the host: its nonce at 16, ours at 32, or zeros. It begins a session if it contains our unused nonce and the board
 * has no other host; and it is answered in any case. */
static inline uint8_t biella_accept_hello(biella_device *d) {
    const uint8_t *b = d->bytes;
    const uint16_t session = biella_get16(b + 16), replaces = biella_get16(b + 4);
    if (b[1] != 0x80u || session == 0 || !biella_is_signed(&d->shared, b, 48)) return 0;
    if (memcmp(b + 32, d->nonce, 16) == 0 && (biella_is_safe(d) || replaces == d->session)) {
        biella_derive(d, 0x80, b + 16, &d->incoming);
        biella_derive(d, 0xC0, b + 16, &d->outgoing);
        d->session = session;
        d->sequence = biella_get32(b + 8);
        d->wraps = biella_get16(b + 6);
        d->sent = 0;
        d->sent_wraps = 0;
        d->due = d->next_due = 0;
        d->age = 0;
        d->flags = BIELLA_SAFE; /* until a frame says otherwise */
        d->silence = 0;
        biella_draw_nonce(d);
    }
    memcpy(d->asked, b + 16, 16);
    d->must_reply = 1;
    return BIELLA_REPLY;
}

/* Our hello: to be sent in reply, and while there is no session. */
static inline void biella_write_hello(biella_device *d, uint8_t *b) {
    uint8_t code[32];
    memset(b, 0, BIELLA_HELLO);
    b[0] = BIELLA_VERSION;
    b[1] = 0xC0;
    biella_set16(b + 4, d->session);
    biella_set16(b + 6, d->sent_wraps);
    biella_set32(b + 8, d->sent);
    memcpy(b + 16, d->asked, 16);
    memcpy(b + 32, d->nonce, 16);
    biella_mac(&d->shared, b, 48, code);
    memcpy(b + 48, code, 16);
    memset(d->asked, 0, 16);
    d->must_reply = 0;
}
#endif

/* float64, given as its halves, to the nearest float32 (ties to even): integers only, since many a compiler for
 * microcontrollers has no double of 64 bits. Too large a number becomes infinite. */
static inline uint32_t biella_narrow(uint32_t high, uint32_t low) {
    const uint32_t sign = high & 0x80000000u;
    int16_t exponent = (int16_t)((int16_t)((high >> 20) & 0x7FFu) - (1023 - 127));
    uint32_t kept = (high & 0xFFFFFu) << 3 | low >> 29, rest = low << 3;
    if (exponent >= 255) {
        const uint8_t is_nan = (high & 0x7FF00000u) == 0x7FF00000u && ((high & 0xFFFFFu) | low);
        return sign | 0x7F800000u | (is_nan ? 0x400000u : 0u);
    }
    if (exponent <= 0) { /* subnormal */
        const uint8_t shift = (uint8_t)(exponent < -24 ? 25 : 1 - exponent);
        if (shift > 24) return sign;
        kept |= 0x800000u;
        rest = kept << (32 - shift) | rest >> shift | ((uint32_t)(rest << (32 - shift)) != 0);
        kept >>= shift;
        exponent = 0;
    }
    kept |= (uint32_t)exponent << 23;
    if (rest > 0x80000000u || (rest == 0x80000000u && (kept & 1u))) kept++; /* may carry into the exponent, rightly */
    return sign | kept;
}

/* One value of a frame; 0 if it is not finite. */
static inline uint8_t biella_read(const uint8_t *from, uint8_t is_float64, biella_real *value) {
#if BIELLA_DOUBLE
    if (is_float64) {
        const uint64_t wide = (uint64_t)biella_get32(from + 4) << 32 | biella_get32(from);
        memcpy(value, &wide, 8);
        return (wide >> 52 & 0x7FFu) != 0x7FFu;
    }
#endif
    const uint32_t bits = is_float64 ? biella_narrow(biella_get32(from + 4), biella_get32(from)) : biella_get32(from);
    float number;
    memcpy(&number, &bits, 4);
    *value = number;
    return (bits & 0x7F800000u) != 0x7F800000u;
}

#if BIELLA_AUTH
/* Whether a frame is newer than all before it in this session, not too old, and of the host. */
static inline uint8_t biella_fits(const biella_device *d, uint16_t session, uint32_t sequence) {
    const uint16_t wraps = biella_get16(d->bytes + 6);
    if (d->session == 0 || session != d->session) return 0;
    if (wraps < d->wraps || (wraps == d->wraps && sequence <= d->sequence)) return 0;
    if ((uint32_t)(d->due - biella_get32(d->bytes + 12) - 1u) < 0x7FFFFFFFu) return 0; /* held back */
    return biella_is_signed(&d->incoming, d->bytes, (uint16_t)(d->length - BIELLA_END));
}
#else
/* Whether a frame of this session may be taken. Another host is let in where the last one has gone or has ended safely. */
static inline uint8_t biella_fits(const biella_device *d, uint16_t session, uint32_t sequence) {
    if (session == 0 || d->bytes[6] || d->bytes[7]) return 0;
    if (session != d->session) return biella_is_safe(d);
    return (uint32_t)(sequence - d->sequence - 1u) < 0x7FFFFFFFu; /* 1 ... 2^31 - 1 ahead */
}
#endif

/* A whole frame without COBS, as in d->bytes: checked, then taken as a whole or not at all. */
static inline uint8_t biella_accept(biella_device *d) {
    const uint8_t *b = d->bytes, flags = b[1], size = flags & BIELLA_FLOAT64 ? 8 : 4;
    biella_real values[BIELLA_RECEIVES ? BIELLA_RECEIVES : 1];
#if BIELLA_AUTH
    if (!d->has_key || d->length < BIELLA_HEADER || b[0] != BIELLA_VERSION) return 0;
    if (d->length == BIELLA_HELLO && (flags & 0x80u)) return biella_accept_hello(d);
#else
    /* The CRC over a frame with its CRC is always this number. */
    if (d->crc != 0xDEBB20E3u || b[0] != BIELLA_VERSION) return 0;
#endif
    if (d->length != BIELLA_HEADER + (uint16_t)size * BIELLA_RECEIVES + BIELLA_END) return 0;
    if (b[2] != BIELLA_RECEIVES || b[3]) return 0;
    for (int16_t k = 0; k < BIELLA_RECEIVES; k++)
        if (!biella_read(b + BIELLA_HEADER + k * size, flags & BIELLA_FLOAT64, &values[k])) return 0;
    const uint16_t session = biella_get16(b + 4);
    const uint32_t sequence = biella_get32(b + 8);
    if (!biella_fits(d, session, sequence)) return 0;

    if (BIELLA_RECEIVES) memcpy(d->values, values, sizeof d->values);
    d->session = session;
    d->sequence = sequence;
#if BIELLA_AUTH
    d->wraps = biella_get16(b + 6);
#endif
    d->flags = flags;
    d->silence = 0;
    if (!(flags & BIELLA_SAFE)) d->tripped = 0; /* a host that only asks learns that we had tripped */
    return 1;
}

static inline void biella_push(biella_device *d, uint8_t byte) {
    if (d->length == BIELLA_RECEIVED_SIZE) {
        d->spoilt = 1;
        return;
    }
    d->bytes[d->length++] = byte;
#if !BIELLA_AUTH
    d->crc = biella_crc(d->crc, byte);
#endif
}

static inline uint8_t biella_end_frame(biella_device *d) {
    const uint8_t accepted = !d->spoilt && d->left == 0 ? biella_accept(d) : 0;
    if (!accepted && d->refused != 0xFFFFu) d->refused++;
    biella_restart_frame(d);
    return accepted;
}

/* The next byte of the serial line. Gives 1 if it ends a frame that is good and new: d->values are its values then. With
 * BIELLA_AUTH also BIELLA_REPLY. */
static inline uint8_t biella_feed(biella_device *d, uint8_t byte) {
    if (byte == 0) return d->length == 0 && d->left == 0 && d->full ? 0 : biella_end_frame(d); /* 0 0 is no frame */
    if (d->left) {
        d->left--;
        biella_push(d, byte);
    } else {
        if (!d->full) biella_push(d, 0);
        d->left = (uint8_t)(byte - 1);
        d->full = byte == 0xFF;
    }
    return 0;
}

/* The same for a datagram, which is one frame without COBS. */
static inline uint8_t biella_datagram(biella_device *d, const uint8_t *bytes, uint16_t length) {
    biella_restart_frame(d);
    for (uint16_t k = 0; k < length && !d->spoilt; k++) biella_push(d, bytes[k]);
    return biella_end_frame(d);
}

/* Where a frame is written to: the bytes, and where the code of the present COBS block stands. */
typedef struct {
    uint8_t *bytes;
    uint16_t length, code;
    uint32_t crc;
    uint8_t is_plain;
} biella_writer;

static inline void biella_begin_block(biella_writer *w) {
    w->code = w->length;
    w->bytes[w->length++] = 1;
}

static inline void biella_put(biella_writer *w, uint8_t byte) {
#if !BIELLA_AUTH
    w->crc = biella_crc(w->crc, byte);
#endif
    if (!w->is_plain) {
        if (w->bytes[w->code] == 0xFF) biella_begin_block(w);
        if (byte == 0) {
            biella_begin_block(w);
            return;
        }
        w->bytes[w->code]++;
    }
    w->bytes[w->length++] = byte;
}

static inline void biella_put32(biella_writer *w, uint32_t word) {
    for (uint8_t k = 0; k < 4; k++, word >>= 8) biella_put(w, (uint8_t)word);
}

static inline void biella_put_value(biella_writer *w, biella_real value) {
#if BIELLA_DOUBLE
    uint64_t wide;
    memcpy(&wide, &value, 8);
    biella_put32(w, (uint32_t)wide);
    biella_put32(w, (uint32_t)(wide >> 32));
#else
    uint32_t bits;
    memcpy(&bits, &value, 4);
    biella_put32(w, bits);
#endif
}

#if BIELLA_AUTH
static inline uint8_t *biella_set_value(uint8_t *to, biella_real value) {
    uint32_t half[sizeof value / 4];
#if BIELLA_DOUBLE
    uint64_t wide;
    memcpy(&wide, &value, 8);
    half[0] = (uint32_t)wide;
    half[1] = (uint32_t)(wide >> 32);
    biella_set32(to + 4, half[1]);
#else
    memcpy(half, &value, 4);
#endif
    biella_set32(to, half[0]);
    return to + sizeof value;
}

static inline uint16_t biella_write_frame(biella_device *d, const biella_real *values, uint8_t *bytes, uint8_t plain) {
    biella_writer w = {bytes, 0, 0, 0, plain};
    uint8_t b[BIELLA_SENT_SIZE], code[32];
    uint16_t length = BIELLA_HELLO;
    if (!d->has_key) return 0;
    if (d->session == 0 || d->must_reply) {
        biella_write_hello(d, b);
    } else {
        uint8_t *to = b + BIELLA_HEADER;
        if (++d->sent == 0) d->sent_wraps++;
        b[0] = BIELLA_VERSION;
        b[1] = (uint8_t)((BIELLA_DOUBLE ? BIELLA_FLOAT64 : 0u) | (biella_is_safe(d) ? BIELLA_SAFE : 0u) |
                         (d->tripped ? BIELLA_TRIPPED : 0u));
        b[2] = BIELLA_SENDS;
        b[3] = 0;
        biella_set16(b + 4, d->session);
        biella_set16(b + 6, d->sent_wraps);
        biella_set32(b + 8, d->sent);
        biella_set32(b + 12, d->sequence);
        for (int16_t k = 0; k < BIELLA_SENDS; k++) to = biella_set_value(to, values[k]);
        biella_mac(&d->outgoing, b, (uint16_t)(to - b), code);
        memcpy(to, code, 16);
        length = (uint16_t)(to + 16 - b);
    }
    if (!plain) biella_begin_block(&w);
    for (uint16_t k = 0; k < length; k++) biella_put(&w, b[k]);
    if (!plain) w.bytes[w.length++] = 0;
    return w.length;
}
#else
static inline uint16_t biella_write_frame(biella_device *d, const biella_real *values, uint8_t *bytes, uint8_t plain) {
    biella_writer w = {bytes, 0, 0, 0xFFFFFFFFu, plain};
    if (!plain) biella_begin_block(&w);
    biella_put(&w, BIELLA_VERSION);
    biella_put(&w, (uint8_t)((BIELLA_DOUBLE ? BIELLA_FLOAT64 : 0u) | (biella_is_safe(d) ? BIELLA_SAFE : 0u) |
                             (d->tripped ? BIELLA_TRIPPED : 0u)));
    biella_put(&w, BIELLA_SENDS);
    biella_put(&w, 0);
    biella_put32(&w, d->session);
    biella_put32(&w, ++d->sent);
    biella_put32(&w, d->sequence);
    for (int16_t k = 0; k < BIELLA_SENDS; k++) biella_put_value(&w, values[k]);
    biella_put32(&w, ~w.crc);
    if (!plain) w.bytes[w.length++] = 0;
    return w.length;
}
#endif

/* Our next frame for the serial line, into BIELLA_WIRE_SIZE bytes; gives its length. The flags tell the host whether the
 * values are safe ones: look at biella_is_safe() before you compute them. The host refuses values that are not finite. */
static inline uint16_t biella_encode(biella_device *d, const biella_real *values, uint8_t *bytes) {
    return biella_write_frame(d, values, bytes, 0);
}

/* Our next frame as a datagram, into BIELLA_SENT_SIZE bytes. */
static inline uint16_t biella_pack(biella_device *d, const biella_real *values, uint8_t *bytes) {
    return biella_write_frame(d, values, bytes, 1);
}

#endif
