/* Counters of a thread that must not wait, read by any other thread: no locked instruction, no lock.
 *
 * Only one thread at a time adds to a counter: the real-time thread, or who has acquired the device. */
#ifndef BIELLA_COUNTER_H
#define BIELLA_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

static inline int64_t bl_counted(const atomic_llong *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Release: who reads the new count with acquire also finds what was written before. */
static inline void bl_add_count(atomic_llong *counter, int64_t number) {
    atomic_store_explicit(counter, bl_counted(counter) + number, memory_order_release);
}

#endif
