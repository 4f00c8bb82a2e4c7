#include "scheduler/devices/wire/frame.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { FRAME_CRC = 4 };

void bl_put16(uint8_t *to, uint16_t value) {
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}

void bl_put32(uint8_t *to, uint32_t value) {
    bl_put16(to, (uint16_t)value);
    bl_put16(to + 2, (uint16_t)(value >> 16));
}

uint16_t bl_get16(const uint8_t *from) { return (uint16_t)(from[0] | from[1] << 8); }
uint32_t bl_get32(const uint8_t *from) { return (uint32_t)bl_get16(from) | (uint32_t)bl_get16(from + 2) << 16; }

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
    bl_put32(to, bits);
}

static void put_double(uint8_t *to, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bl_put32(to, (uint32_t)bits);
    bl_put32(to + 4, (uint32_t)(bits >> 32));
}

static double get_float(const uint8_t *from) {
    const uint32_t bits = bl_get32(from);
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double get_double(const uint8_t *from) {
    const uint64_t bits = (uint64_t)bl_get32(from) | (uint64_t)bl_get32(from + 4) << 32;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Head and values; their size, or 0 as bl_frame_write. */
static size_t write_body(const bl_frame_head *head, uint8_t version, const double *values, int32_t count,
                         uint8_t *bytes) {
    if (count < 0 || count > BL_FRAME_VALUES) return 0;
    const bool wide = head->flags & BL_FRAME_DOUBLE;
    uint8_t *to = bytes + BL_FRAME_HEAD;
    bytes[0] = version;
    bytes[1] = head->flags;
    bytes[2] = (uint8_t)count;
    bytes[3] = 0;
    bl_put16(bytes + 4, head->session);
    bl_put16(bytes + 6, head->wraps);
    bl_put32(bytes + 8, head->sequence);
    bl_put32(bytes + 12, head->echo);
    for (int32_t k = 0; k < count; k++, to += wide ? 8 : 4) {
        if (!(fabs(values[k]) <= (wide ? DBL_MAX : (double)FLT_MAX))) return 0;
        if (wide) put_double(to, values[k]);
        else put_float(to, values[k]);
    }
    return (size_t)(to - bytes);
}

size_t bl_frame_write(const bl_frame_head *head, const double *values, int32_t count, uint8_t *bytes) {
    const size_t size = write_body(head, BL_FRAME_VERSION, values, count, bytes);
    if (size == 0) return 0;
    bl_put32(bytes + size, bl_crc32(bytes, size));
    return size + FRAME_CRC;
}

size_t bl_frame_write_signed(const bl_frame_head *head, const double *values, int32_t count, const bl_mac_key *key,
                             uint8_t *bytes) {
    uint8_t code[BL_MAC_SIZE];
    const size_t size = write_body(head, BL_FRAME_AUTHENTICATED, values, count, bytes);
    if (size == 0) return 0;
    bl_mac(key, bytes, size, code);
    memcpy(bytes + size, code, BL_MAC_TAG);
    return size + BL_MAC_TAG;
}

static bool is_intact(const uint8_t *bytes, size_t size) {
#ifdef BL_FUZZING /* no fuzzer finds a CRC */
    (void)bytes;
    (void)size;
    return true;
#else
    return bl_get32(bytes + size - FRAME_CRC) == bl_crc32(bytes, size - FRAME_CRC);
#endif
}

/* Whether a frame has the form of one with `count` values and `end` bytes behind them. */
static bool is_formed(const uint8_t *bytes, size_t size, int32_t count, size_t end) {
    if (size < BL_FRAME_HEAD + end || bytes[2] != count || bytes[3]) return false;
    return size == BL_FRAME_HEAD + (size_t)count * (bytes[1] & BL_FRAME_DOUBLE ? 8 : 4) + end;
}

/* Head and values of a frame whose form has been checked; false if a value is not finite, with nothing written. */
static bool read_body(const uint8_t *bytes, int32_t count, bl_frame_head *head, double *values) {
    const size_t width = bytes[1] & BL_FRAME_DOUBLE ? 8 : 4;
    const uint8_t *from = bytes + BL_FRAME_HEAD;
    for (int32_t k = 0; k < count; k++)
        if (!isfinite(width == 8 ? get_double(from + 8 * k) : get_float(from + 4 * k))) return false;
    for (int32_t k = 0; k < count; k++) values[k] = width == 8 ? get_double(from + 8 * k) : get_float(from + 4 * k);
    head->flags = bytes[1];
    head->session = bl_get16(bytes + 4);
    head->wraps = bl_get16(bytes + 6);
    head->sequence = bl_get32(bytes + 8);
    head->echo = bl_get32(bytes + 12);
    return true;
}

int bl_frame_read(const uint8_t *bytes, size_t size, int32_t count, bl_frame_head *head, double *values) {
    if (!is_formed(bytes, size, count, FRAME_CRC) || bytes[0] != BL_FRAME_VERSION || bytes[6] || bytes[7]) return 0;
    return is_intact(bytes, size) && read_body(bytes, count, head, values);
}

int bl_frame_read_signed(const uint8_t *bytes, size_t size, int32_t count, const bl_mac_key *key, bl_frame_head *head,
                         double *values) {
    if (size > 0 && bytes[0] != BL_FRAME_AUTHENTICATED) return -1;
    if (!is_formed(bytes, size, count, BL_MAC_TAG)) return 0;
    if (!bl_mac_fits(key, bytes, size - BL_MAC_TAG, bytes + size - BL_MAC_TAG)) return -1;
    return read_body(bytes, count, head, values);
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
