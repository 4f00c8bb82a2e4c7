#include "scheduler/devices/wire/frame.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { FRAME_VERSION = 0xB1 };

static void put16(uint8_t *to, uint16_t value) {
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *to, uint32_t value) {
    put16(to, (uint16_t)value);
    put16(to + 2, (uint16_t)(value >> 16));
}

static uint32_t get16(const uint8_t *from) { return (uint32_t)from[0] | (uint32_t)from[1] << 8; }
static uint32_t get32(const uint8_t *from) { return get16(from) | get16(from + 2) << 16; }

/* Four bits at a time: a table of 64 bytes stays in the cache beside a diagram. */
uint32_t bl_crc32(const uint8_t *bytes, size_t size) {
    static const uint32_t NIBBLES[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                         0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                         0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t crc = UINT32_MAX;
    for (size_t k = 0; k < size; k++) {
        crc ^= bytes[k];
        crc = crc >> 4 ^ NIBBLES[crc & 15];
        crc = crc >> 4 ^ NIBBLES[crc & 15];
    }
    return ~crc;
}

static void put_float(uint8_t *to, double value) {
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    put32(to, bits);
}

static void put_double(uint8_t *to, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put32(to, (uint32_t)bits);
    put32(to + 4, (uint32_t)(bits >> 32));
}

static double get_float(const uint8_t *from) {
    const uint32_t bits = get32(from);
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double get_double(const uint8_t *from) {
    const uint64_t bits = (uint64_t)get32(from) | (uint64_t)get32(from + 4) << 32;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

size_t bl_frame_write(const bl_frame_head *head, const double *values, int32_t count, uint8_t *bytes) {
    if (count < 0 || count > BL_FRAME_VALUES) return 0;
    const bool wide = head->flags & BL_FRAME_DOUBLE;
    uint8_t *to = bytes + BL_FRAME_HEAD;
    bytes[0] = FRAME_VERSION;
    bytes[1] = head->flags;
    bytes[2] = (uint8_t)count;
    bytes[3] = 0;
    put16(bytes + 4, head->session);
    put16(bytes + 6, 0);
    put32(bytes + 8, head->sequence);
    put32(bytes + 12, head->echo);
    for (int32_t k = 0; k < count; k++, to += wide ? 8 : 4) {
        if (!(fabs(values[k]) <= (wide ? DBL_MAX : (double)FLT_MAX))) return 0;
        if (wide) put_double(to, values[k]);
        else put_float(to, values[k]);
    }
    put32(to, bl_crc32(bytes, (size_t)(to - bytes)));
    return (size_t)(to + 4 - bytes);
}

static bool is_intact(const uint8_t *bytes, size_t size) {
#ifdef BL_FUZZING /* no fuzzer finds a CRC */
    (void)bytes;
    (void)size;
    return true;
#else
    return get32(bytes + size - 4) == bl_crc32(bytes, size - 4);
#endif
}

int bl_frame_read(const uint8_t *bytes, size_t size, int32_t count, bl_frame_head *head, double *values) {
    if (size < BL_FRAME_HEAD + 4 || bytes[0] != FRAME_VERSION || bytes[2] != count || bytes[3] || bytes[6] || bytes[7])
        return 0;
    const size_t width = bytes[1] & BL_FRAME_DOUBLE ? 8 : 4;
    if (size != BL_FRAME_HEAD + (size_t)count * width + 4 || !is_intact(bytes, size)) return 0;
    const uint8_t *from = bytes + BL_FRAME_HEAD;
    for (int32_t k = 0; k < count; k++)
        if (!isfinite(width == 8 ? get_double(from + 8 * k) : get_float(from + 4 * k))) return 0;
    for (int32_t k = 0; k < count; k++) values[k] = width == 8 ? get_double(from + 8 * k) : get_float(from + 4 * k);
    head->flags = bytes[1];
    head->session = (uint16_t)get16(bytes + 4);
    head->sequence = get32(bytes + 8);
    head->echo = get32(bytes + 12);
    return 1;
}

size_t bl_stuff(const uint8_t *bytes, size_t size, uint8_t *out) {
    size_t code = 0, length = 1; /* where the length of the present block stands; bytes written */
    for (size_t k = 0; k < size; k++) {
        if (length - code == 255) { /* full: no zero follows it */
            out[code] = 255;
            code = length++;
        }
        if (bytes[k]) {
            out[length++] = bytes[k];
        } else {
            out[code] = (uint8_t)(length - code);
            code = length++;
        }
    }
    out[code] = (uint8_t)(length - code);
    return length;
}

size_t bl_unstuff(const uint8_t *bytes, size_t size, uint8_t *out, size_t room) {
    size_t length = 0;
    for (size_t k = 0; k < size;) {
        const size_t code = bytes[k++], block = code - 1;
        if (code == 0 || block > size - k || block > room - length) return 0;
        for (size_t i = 0; i < block; i++) {
            if (bytes[k + i] == 0) return 0;
            out[length++] = bytes[k + i];
        }
        k += block;
        if (code < 255 && k < size) {
            if (length == room) return 0;
            out[length++] = 0;
        }
    }
    return length;
}
