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

#define BIELLA_VERSION 0xB1u
#define BIELLA_HEADER 16u
#define BIELLA_RECEIVED_SIZE (BIELLA_HEADER + 8u * BIELLA_RECEIVES + 4u)
#define BIELLA_SENT_SIZE (BIELLA_HEADER + (BIELLA_DOUBLE ? 8u : 4u) * BIELLA_SENDS + 4u)
/* Room for what biella_encode() writes: a code for every 254 bytes or part of them, and the 0 at the end. */
#define BIELLA_WIRE_SIZE (BIELLA_SENT_SIZE + BIELLA_SENT_SIZE / 254u + 2u)

#if BIELLA_RECEIVES <= 29 /* 20 + 8 bytes for each are less than 256 */
typedef uint8_t biella_length;
#else
typedef uint16_t biella_length;
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
    if (d->session == 0 || d->tripped) return 0;
    d->tripped = d->timeout - d->silence <= milliseconds;
    d->silence = (uint16_t)(d->silence + milliseconds);
    return d->tripped;
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

/* Whether a frame of this session may be taken. Another host is let in where the last one has gone or has ended safely. */
static inline uint8_t biella_fits(const biella_device *d, uint16_t session, uint32_t sequence) {
    if (session == 0) return 0;
    if (session != d->session) return biella_is_safe(d);
    return (uint32_t)(sequence - d->sequence - 1u) < 0x7FFFFFFFu; /* 1 ... 2^31 - 1 ahead */
}

/* A whole frame without COBS, as in d->bytes: checked, then taken as a whole or not at all. */
static inline uint8_t biella_accept(biella_device *d) {
    const uint8_t *b = d->bytes, flags = b[1], size = flags & BIELLA_FLOAT64 ? 8 : 4;
    biella_real values[BIELLA_RECEIVES ? BIELLA_RECEIVES : 1];
    /* The CRC over a frame with its CRC is always this number. */
    if (d->length != BIELLA_HEADER + (uint16_t)size * BIELLA_RECEIVES + 4u || d->crc != 0xDEBB20E3u) return 0;
    if (b[0] != BIELLA_VERSION || b[2] != BIELLA_RECEIVES || b[3] || b[6] || b[7]) return 0;
    for (int16_t k = 0; k < BIELLA_RECEIVES; k++)
        if (!biella_read(b + BIELLA_HEADER + k * size, flags & BIELLA_FLOAT64, &values[k])) return 0;
    const uint16_t session = biella_get16(b + 4);
    const uint32_t sequence = biella_get32(b + 8);
    if (!biella_fits(d, session, sequence)) return 0;

    if (BIELLA_RECEIVES) memcpy(d->values, values, sizeof d->values);
    d->session = session;
    d->sequence = sequence;
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
    d->crc = biella_crc(d->crc, byte);
}

static inline uint8_t biella_end_frame(biella_device *d) {
    const uint8_t accepted = !d->spoilt && d->left == 0 && biella_accept(d);
    if (!accepted && d->refused != 0xFFFFu) d->refused++;
    biella_restart_frame(d);
    return accepted;
}

/* The next byte of the serial line. Gives 1 if it ends a frame that is good and new: d->values are its values then. */
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
    w->crc = biella_crc(w->crc, byte);
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
