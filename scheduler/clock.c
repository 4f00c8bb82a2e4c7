#include "scheduler/clock.h"

#if defined(_WIN32)

#include <windows.h>

int64_t bl_clock_now(void) {
    LARGE_INTEGER count, frequency;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&count);
    const int64_t whole = count.QuadPart / frequency.QuadPart, rest = count.QuadPart % frequency.QuadPart;
    return whole * 1000000000 + rest * 1000000000 / frequency.QuadPart;
}

/* Sleep() is coarse: it takes the bulk, and yielding the rest. */
void bl_clock_sleep_until(int64_t deadline) {
    for (int64_t left; (left = deadline - bl_clock_now()) > 0;) Sleep(left > 2000000 ? (DWORD)(left / 1000000 - 1) : 0);
}

#else

#include <errno.h>
#include <time.h>

int64_t bl_clock_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void bl_clock_sleep_until(int64_t deadline) {
#if defined(__linux__)
    const struct timespec at = {.tv_sec = (time_t)(deadline / 1000000000), .tv_nsec = (long)(deadline % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
#else
    for (int64_t left; (left = deadline - bl_clock_now()) > 0;) {
        const struct timespec nap = {.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
        nanosleep(&nap, NULL);
    }
#endif
}

#endif
