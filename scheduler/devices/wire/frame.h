/* Wire frames of devices: version 1, with a CRC, and version 2, authenticated: docs/reference/frame.md. Pure functions on bytes. */
#ifndef BIELLA_FRAME_H
#define BIELLA_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/devices/wire/blake2s.h"

enum { BL_FRAME_VERSION = 0xB1, BL_FRAME_AUTHENTICATED = 0xB2 }; /* first byte */
enum { BL_FRAME_DOUBLE = 1, BL_FRAME_SAFE = 2, BL_FRAME_TRIPPED = 4 };
enum {
    BL_FRAME_HEAD = 16,
    BL_FRAME_VALUES = 255, /* at most */
    BL_FRAME_SIZE = BL_FRAME_HEAD + BL_FRAME_VALUES * 8 + BL_MAC_TAG, /* at most */
    BL_FRAME_STUFFED = BL_FRAME_SIZE + BL_FRAME_SIZE / 254 + 1,
};

typedef struct {
    uint32_t sequence, echo;
    uint16_t session;
    uint8_t flags;
    uint16_t wraps; /* of the sequence within the session; 0 in version 1 */
} bl_frame_head;

/* Writes a frame; its size, or 0 if a value is not finite, or not within float32 without BL_FRAME_DOUBLE. */
BL_API size_t bl_frame_write(const bl_frame_head *head, const double *values, int32_t count, uint8_t *bytes);
/* Reads a frame of just `count` values: 1 if its form, its CRC and all values are in order, else 0 with nothing written. */
BL_API int bl_frame_read(const uint8_t *bytes, size_t size, int32_t count, bl_frame_head *head, double *values);
/* The same with a tag. Reads: 1; 0 if the form or a value is wrong; -1 if it is of another version or the tag is wrong. */
BL_API size_t bl_frame_write_signed(const bl_frame_head *head, const double *values, int32_t count,
                                    const bl_mac_key *key, uint8_t *bytes);
BL_API int bl_frame_read_signed(const uint8_t *bytes, size_t size, int32_t count, const bl_mac_key *key,
                                bl_frame_head *head, double *values);

/* Little-endian integers of frames. */
void bl_put16(uint8_t *to, uint16_t value);
void bl_put32(uint8_t *to, uint32_t value);
uint16_t bl_get16(const uint8_t *from);
uint32_t bl_get32(const uint8_t *from);

/* COBS: the same bytes without a zero, at most one more for every 254 and one; the size. `out` has room for it. */
BL_API size_t bl_stuff(const uint8_t *bytes, size_t size, uint8_t *out);
/* Decodes: returns the size, or 0 if the encoding is invalid or longer than `room`. `out` may be `bytes`. */
BL_API size_t bl_unstuff(const uint8_t *bytes, size_t size, uint8_t *out, size_t room);

BL_API uint32_t bl_crc32(const uint8_t *bytes, size_t size);

#endif
