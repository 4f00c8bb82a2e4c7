/* The wall clock: a monotonic time in nanoseconds, and waiting until such a time. */
#ifndef BIELLA_CLOCK_H
#define BIELLA_CLOCK_H

#include <stdint.h>

int64_t bl_clock_now(void);
void bl_clock_sleep_until(int64_t deadline);
/* Time that the computer has been suspended since it was started, which bl_clock_now does not count; 0 if not known. */
int64_t bl_clock_suspended(void);
/* Sleeps until `spin_ns` before the deadline, then watches the clock: a processor is busy that long, and the deadline is met
   as exactly as the clock can be read. Returns the time when the wait ended, which saves another reading. */
int64_t bl_clock_wait_until(int64_t deadline, int64_t spin_ns);

#endif
