/* The wall clock: a monotonic time in nanoseconds, and sleeping until such a time. */
#ifndef BIELLA_CLOCK_H
#define BIELLA_CLOCK_H

#include <stdint.h>

int64_t bl_clock_now(void);
void bl_clock_sleep_until(int64_t deadline);

#endif
