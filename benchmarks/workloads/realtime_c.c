/* A real-time loop with nothing in it: sleep until an absolute deadline, read the clock, write down how late it is. */
#include <errno.h>
#include <stdint.h>
#include <time.h>

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void bare_loop(int64_t period_ns, int64_t count, int64_t *lateness_ns) {
    int64_t deadline = now();
    for (int64_t n = 0; n < count; n++) {
        deadline += period_ns;
        const struct timespec at = {.tv_sec = (time_t)(deadline / 1000000000),
                                    .tv_nsec = (long)(deadline % 1000000000)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
        }
        lateness_ns[n] = now() - deadline;
    }
}
