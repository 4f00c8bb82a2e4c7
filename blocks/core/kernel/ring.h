/* Indices in a ring buffer, stored as doubles and clamped: a deserialized state may contain any value. */
#ifndef BIELLA_RING_H
#define BIELLA_RING_H

#include <stdint.h>

static inline int32_t bl_ring_place(double kept, int32_t count) {
    return kept >= 0.0 && kept < (double)count ? (int32_t)kept : 0;
}
static inline int32_t bl_ring_next(double kept, int32_t count) {
    const int32_t place = bl_ring_place(kept, count);
    return place + 1 < count ? place + 1 : 0;
}
/* The place `back` samples before, which is less than `count`. */
static inline int32_t bl_ring_back(double kept, int32_t count, int32_t back) {
    const int32_t place = bl_ring_place(kept, count) - back;
    return place < 0 ? place + count : place;
}

#endif
