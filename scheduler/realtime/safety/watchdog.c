#include "scheduler/realtime/safety/watchdog.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "scheduler/realtime/loop/clock.h"
#include "scheduler/realtime/safety/guard_page.h"
#include "scheduler/realtime/safety/signals.h"

enum { LATCH_TEXT = sizeof((bl_pace *)0)->latch_why / 2 };

bool bl_latch(bl_pace *pace, int32_t reason, const char *format, ...) {
    int none = BL_LATCH_NONE;
    if (!atomic_compare_exchange_strong(&pace->latched, &none, BL_LATCH_BEGUN)) return false;
    va_list arguments;
    va_start(arguments, format);
    const int number = atomic_load(&pace->latches) + 1;
    vsnprintf(pace->latch_why + number % 2 * LATCH_TEXT, LATCH_TEXT, format, arguments);
    va_end(arguments);
    atomic_store(&pace->latches, number);
    atomic_store(&pace->latched, reason);
    return true;
}

const char *bl_pace_latch(const bl_pace *pace) {
    if (atomic_load(&pace->latched) <= BL_LATCH_BEGUN) return NULL;
    return pace->latch_why + atomic_load(&pace->latches) % 2 * LATCH_TEXT;
}

bool bl_is_latched(const bl_pace *pace) { return atomic_load(&pace->latched) != BL_LATCH_NONE; }

#if !defined(_WIN32)

#include <pthread.h>
#include <sched.h>
#include <signal.h>

enum { WATCHDOG_STACK = 1 << 18 };
static const int64_t LOOK_INTERVAL = 50000000, /* ns between looks at the clock */
    FIRST_REPEATS = 5000000,                   /* between safe values, until all devices are settled */
    LATER_REPEATS = 100000000,                 /* and from then on: a device may restart */
    LAST_RESPECTS = 500000000; /* after a signal whose default action ends the process: for safe values to be echoed */

struct bl_watchdog {
    bl_pace *pace;
    pthread_t thread;
    int watcher; /* of signals.c */
    atomic_llong due, tick;
    atomic_int attended, stopping;
};

/* Where there was no limit before, the watchdog may have gone to sleep for longer: a run has begun, or was armed again. */
void bl_watchdog_report(bl_watchdog *w, int64_t due) {
    if (!w) return;
    const bool begins = due != 0 && atomic_load_explicit(&w->due, memory_order_relaxed) == 0;
    atomic_store_explicit(&w->due, due, memory_order_relaxed);
    if (begins) bl_signals_wake(w->watcher);
}

void bl_watchdog_wake(bl_watchdog *w) {
    if (w) bl_signals_wake(w->watcher);
}

void bl_watchdog_set_tick(bl_watchdog *w, int64_t tick) {
    if (w) atomic_store_explicit(&w->tick, tick, memory_order_relaxed);
}

void bl_watchdog_attend(bl_watchdog *w, bool attends) {
    if (w) atomic_store(&w->attended, attends);
}

/* One round of safe values. Whether all devices are settled: one that the real-time thread has acquired is not. */
static bool send_safe_round(bl_watchdog *w) {
    const bl_pace *p = w->pace;
    bool settled = true;
    for (int32_t k = 0; k < p->device_count; k++) {
        bl_device *d = p->devices[k];
        if (!bl_device_acquire(d)) {
            settled = false;
            continue;
        }
        bl_device_listen(d, bl_clock_now());
        bl_device_make_safe(d, atomic_load_explicit(&w->tick, memory_order_relaxed));
        settled = bl_device_is_settled(d) && settled;
        bl_device_release(d);
    }
    return settled;
}

/* Latches the run if the real-time thread is overdue, or a signal asks the process to end. */
static void look(bl_watchdog *w) {
    bl_pace *p = w->pace;
    const int number = bl_signals_seen(w->watcher);
    if (number != 0) {
        /* Before the latch, so that a run that ends if it is latched ends by the signal. */
        atomic_store(&p->signal, number);
        atomic_store(&p->cancel, 1);
        (void)bl_latch(p, BL_LATCH_SIGNAL, "%s", bl_signals_describe(number));
    }
    const int64_t due = atomic_load_explicit(&w->due, memory_order_relaxed), now = bl_clock_now();
    if (due != 0 && now > due)
        (void)bl_latch(p, BL_LATCH_TICK, "no progress at tick %lld for more than %.3g s",
                       (long long)atomic_load_explicit(&w->tick, memory_order_relaxed), 1e-9 * (double)p->watchdog);
}

static void *run_watchdog(void *argument) {
    bl_watchdog *w = argument;
    int64_t ending = 0; /* when a signal was seen */
    while (!atomic_load(&w->stopping)) {
        int64_t next = bl_clock_now() + LOOK_INTERVAL;
        const int64_t due = atomic_load_explicit(&w->due, memory_order_relaxed);
        if (due != 0 && due < next) next = due + 1;
        look(w);
        bl_run_guard_pass(w->pace->guard);
        if (bl_is_latched(w->pace) && !atomic_load(&w->attended)) {
            const bool settled = send_safe_round(w);
            bl_run_guard_report(w->pace->guard, bl_clock_now() + 10 * LATER_REPEATS); /* in place of the stuck thread */
            bl_signals_safe_sent();
            next = bl_clock_now() + (settled ? LATER_REPEATS : FIRST_REPEATS);
        }
        const int number = atomic_load(&w->pace->signal);
        if (number != 0 && ending == 0) ending = bl_clock_now();
        if (ending != 0 && bl_clock_now() - ending > LAST_RESPECTS) bl_signals_default(number);
        bl_signals_wait(w->watcher, next);
    }
    return NULL;
}

/* The watchdog must run while the real-time thread computes without end: above its priority, on any processor. It cannot
   have more than the process may have; then it is an ordinary thread. */
static void set_privileges(pthread_t thread) {
    int policy;
    struct sched_param priority;
    if (pthread_getschedparam(thread, &policy, &priority) == 0 && (policy == SCHED_FIFO || policy == SCHED_RR) &&
        priority.sched_priority < sched_get_priority_max(policy)) {
        priority.sched_priority++;
        (void)pthread_setschedparam(thread, policy, &priority);
    }
#if defined(__linux__)
    cpu_set_t all;
    CPU_ZERO(&all);
    for (unsigned k = 0; k < CPU_SETSIZE; k++) CPU_SET(k, &all);
    (void)pthread_setaffinity_np(thread, sizeof all, &all);
#endif
}

/* Signals are for other threads: the handler wakes this one. */
static int start_thread(bl_watchdog *w) {
    sigset_t all, before;
    pthread_attr_t attributes;
    sigfillset(&all);
    if (pthread_attr_init(&attributes) != 0) return -1;
    (void)pthread_attr_setstacksize(&attributes, WATCHDOG_STACK);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&w->thread, &attributes, run_watchdog, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

bool bl_watchdog_start(bl_pace *pace, bl_watchdog **started) {
    *started = NULL;
    if (pace->watchdog <= 0 && pace->signals == 0 && !pace->guard) return true;
    bl_watchdog *w = calloc(1, sizeof *w);
    if (!w) return false;
    w->pace = pace;
    w->watcher = bl_signals_watch((uint32_t)pace->signals);
    if (start_thread(w) != 0) {
        bl_signals_forget(w->watcher);
        free(w);
        return false;
    }
    set_privileges(w->thread);
    *started = w;
    return true;
}

void bl_watchdog_stop(bl_watchdog *w) {
    if (!w) return;
    atomic_store(&w->stopping, 1);
    bl_signals_wake(w->watcher);
    pthread_join(w->thread, NULL);
    bl_signals_forget(w->watcher);
    free(w);
}

#else

bool bl_watchdog_start(bl_pace *pace, bl_watchdog **started) {
    (void)pace;
    *started = NULL;
    return true;
}
void bl_watchdog_stop(bl_watchdog *w) { (void)w; }
void bl_watchdog_report(bl_watchdog *w, int64_t due) { (void)w, (void)due; }
void bl_watchdog_attend(bl_watchdog *w, bool attends) { (void)w, (void)attends; }
void bl_watchdog_wake(bl_watchdog *w) { (void)w; }
void bl_watchdog_set_tick(bl_watchdog *w, int64_t tick) { (void)w, (void)tick; }

#endif
