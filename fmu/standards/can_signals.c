#include "fmu/standards/can_signals.h"

#include <math.h>
#include <string.h>

/* The place of the next bit: little-endian signals are followed upward, big-endian ones downward, from byte to byte. */
static int32_t next_bit(const bl_can_signal *s, int32_t place) {
    if (!(s->flags & CAN_BIG_ENDIAN)) return place + 1;
    return place % 8 == 0 ? place + 15 : place - 1;
}

bool bl_can_signal_fits(const bl_can_signal *s, int32_t size) {
    int32_t place = s->start, largest = s->start;
    for (int32_t k = 1; k < s->length; k++) {
        place = next_bit(s, place);
        if (place > largest) largest = place;
    }
    const bool has_length =
        s->flags & CAN_FLOAT ? s->length == 32 || s->length == 64 : s->length >= 1 && s->length <= 64;
    return has_length && largest < 8 * size;
}

uint64_t bl_can_signal_raw(const bl_can_signal *s, const unsigned char *data) {
    uint64_t raw = 0;
    int32_t place = s->start;
    for (int32_t k = 0; k < s->length; k++, place = next_bit(s, place)) {
        const uint64_t bit = (uint32_t)data[place / 8] >> place % 8 & 1u;
        raw = s->flags & CAN_BIG_ENDIAN ? raw << 1 | bit : raw | bit << k;
    }
    return raw;
}

static void write_raw(const bl_can_signal *s, uint64_t raw, unsigned char *data) {
    int32_t place = s->start;
    for (int32_t k = 0; k < s->length; k++, place = next_bit(s, place)) {
        const int32_t shift = s->flags & CAN_BIG_ENDIAN ? s->length - 1 - k : k;
        const unsigned mask = 1u << place % 8;
        data[place / 8] = (unsigned char)(raw >> shift & 1u ? data[place / 8] | mask : data[place / 8] & ~mask);
    }
}

double bl_can_unpack(const bl_can_signal *s, const unsigned char *data) {
    uint64_t raw = bl_can_signal_raw(s, data);
    double number;
    if (s->flags & CAN_FLOAT && s->length == 32) {
        const uint32_t bits = (uint32_t)raw;
        float value;
        memcpy(&value, &bits, sizeof value);
        number = (double)value;
    } else if (s->flags & CAN_FLOAT) {
        memcpy(&number, &raw, sizeof number);
    } else if (s->flags & CAN_SIGNED && raw >> (s->length - 1) & 1u) {
        const uint64_t magnitude = (~raw + 1) & (UINT64_MAX >> (64 - s->length));
        number = -(double)magnitude;
    } else {
        number = (double)raw;
    }
    return s->offset + s->scale * number;
}

/* The largest and smallest raw number of an integer; that of 64 bits is not a double, and the next smaller one is taken. */
static void raw_range(const bl_can_signal *s, double *lowest, double *highest) {
    const int32_t bits = s->flags & CAN_SIGNED ? s->length - 1 : s->length;
    const double limit = ldexp(1.0, bits);
    *lowest = s->flags & CAN_SIGNED ? -limit : 0.0;
    *highest = bits <= 53 ? limit - 1.0 : nextafter(limit, 0.0);
}

void bl_can_signal_range(const bl_can_signal *s, double *lowest, double *highest) {
    *lowest = s->minimum;
    *highest = s->maximum;
    if (s->flags & CAN_FLOAT) return;
    double low, high;
    raw_range(s, &low, &high);
    const double a = s->offset + s->scale * low, b = s->offset + s->scale * high;
    *lowest = fmax(*lowest, fmin(a, b));
    *highest = fmin(*highest, fmax(a, b));
}

bool bl_can_pack(const bl_can_signal *s, double value, unsigned char *data) {
    uint64_t raw;
    const double number = (value - s->offset) / s->scale;
    if (!(isfinite(value) && value >= s->minimum && value <= s->maximum)) return false;
    if (s->flags & CAN_FLOAT && s->length == 32) {
        const float single = (float)number;
        uint32_t bits;
        if (!isfinite(single)) return false;
        memcpy(&bits, &single, sizeof bits);
        raw = bits;
    } else if (s->flags & CAN_FLOAT) {
        memcpy(&raw, &number, sizeof raw);
    } else {
        const double whole = nearbyint(number);
        double lowest, highest;
        raw_range(s, &lowest, &highest);
        if (!(whole >= lowest && whole <= highest)) return false;
        raw = whole < 0.0 ? ~(uint64_t)(-whole) + 1 : (uint64_t)whole;
    }
    write_raw(s, raw, data);
    return true;
}
