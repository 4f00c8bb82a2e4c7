#include "scheduler/realtime/loop/clock.h"

#if defined(_WIN32)

#include <windows.h>

int64_t bl_clock_now(void) {
    LARGE_INTEGER count, frequency;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&count);
    const int64_t whole = count.QuadPart / frequency.QuadPart, rest = count.QuadPart % frequency.QuadPart;
    return whole * 1000000000 + rest * 1000000000 / frequency.QuadPart;
}

#if !defined(CREATE_WAITABLE_TIMER_HIGH_RESOLUTION)
#define CREATE_WAITABLE_TIMER_HIGH_RESOLUTION 2
#endif

/* Sleep() wakes with the system's tick, up to 16 ms late; a timer of high resolution, from Windows 10 on, within 1 ms. What
   is left after either is waited out by yielding. */
void bl_clock_sleep_until(int64_t deadline) {
    int64_t left = deadline - bl_clock_now();
    HANDLE timer =
        left > 0 ? CreateWaitableTimerExW(NULL, NULL, CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, TIMER_ALL_ACCESS) : NULL;
    if (timer) {
        const LARGE_INTEGER relative = {.QuadPart = -(left / 100)}; /* in 100 ns; negative: from now on */
        if (SetWaitableTimer(timer, &relative, 0, NULL, NULL, FALSE)) WaitForSingleObject(timer, INFINITE);
        CloseHandle(timer);
    }
    while ((left = deadline - bl_clock_now()) > 0) Sleep(left > 20000000 ? (DWORD)(left / 1000000 - 16) : 0);
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

int64_t bl_clock_suspended(void) {
#if defined(CLOCK_BOOTTIME)
    struct timespec since;
    const int64_t now = bl_clock_now();
    if (clock_gettime(CLOCK_BOOTTIME, &since) == 0) return (int64_t)since.tv_sec * 1000000000 + since.tv_nsec - now;
#endif
    return 0;
}

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

int64_t bl_clock_wait_until(int64_t deadline, int64_t spin_ns) {
    if (spin_ns <= 0) {
        bl_clock_sleep_until(deadline);
        return bl_clock_now();
    }
    bl_clock_sleep_until(deadline - spin_ns);
    int64_t now;
    while ((now = bl_clock_now()) < deadline) relax();
    return now;
}
