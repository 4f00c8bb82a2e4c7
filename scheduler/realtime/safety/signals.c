#include "scheduler/realtime/safety/signals.h"

#include <stddef.h>

#include "scheduler/realtime/loop/clock.h"
#include "scheduler/realtime/loop/realtime.h"

#if !defined(_WIN32)

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

enum { HANDLED_SIGNALS = 5, SIGNALS_PATIENCE_MS = 1000, REGISTRATION_PAUSE = 20000 /* ns */ };

static const struct {
    int number;
    uint32_t bit;
    const char *words;
} HANDLED[HANDLED_SIGNALS] = {{SIGTERM, BL_SIGNAL_TERM, "ended by SIGTERM"},
                              {SIGINT, BL_SIGNAL_INT, "interrupted by Ctrl-C"},
                              {SIGHUP, BL_SIGNAL_HUP, "ended by SIGHUP"},
                              {SIGQUIT, BL_SIGNAL_QUIT, "ended by SIGQUIT"},
                              {SIGXCPU, BL_SIGNAL_XCPU, "ended by SIGXCPU"}};

/* Static, since a handler may run at any time: nothing here is ever freed or closed. */
static struct {
    atomic_int owner; /* process that has registered it; 0: free */
    atomic_int seen;  /* first signal */
    atomic_int into;  /* write end of its pipe */
    int from;         /* read end */
    int opener;       /* process that has opened the pipe: a forked child opens its own */
} watchers[BL_WATCHERS];

static struct {
    struct sigaction before; /* written only while the handler is not installed */
    atomic_int count;        /* signals since the first watcher */
} handled[HANDLED_SIGNALS];

static atomic_int safe_sent;
/* Lock of watchers and handlers, which no handler takes: the process that holds it; 0: free. Not a mutex, since a child may be
   forked while another thread holds it: that thread does not exist in the child, which takes the lock from its parent. */
static atomic_int registration;

static void lock_registration(void) {
    const int process = (int)getpid();
    for (int holder = 0; !atomic_compare_exchange_weak(&registration, &holder, process);)
        if (holder == process) {
            bl_clock_sleep_until(bl_clock_now() + REGISTRATION_PAUSE);
            holder = 0;
        }
}

static void unlock_registration(void) { atomic_store(&registration, 0); }

static int find_signal(int number) {
    int k = 0;
    while (k < HANDLED_SIGNALS && HANDLED[k].number != number) k++;
    return k;
}

const char *bl_signals_describe(int number) {
    const int k = find_signal(number);
    return k < HANDLED_SIGNALS ? HANDLED[k].words : "ended by a signal";
}

static bool is_default_action(const struct sigaction *action) {
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

static void set_default(int number) {
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
}

static void write_byte(int watcher) {
    const char byte = 0;
    (void)!write(atomic_load(&watchers[watcher].into), &byte, 1); /* a full pipe wakes its reader just as well */
}

/* --- In the handler: only functions that are async-signal-safe --- */

/* Whether a watcher of this process has noted it. A forked child inherits the handler, but not the threads. */
static bool note_signal(int number) {
    const int process = (int)getpid();
    bool noted = false;
    for (int k = 0; k < BL_WATCHERS; k++) {
        if (atomic_load(&watchers[k].owner) != process) continue;
        int none = 0;
        (void)atomic_compare_exchange_strong(&watchers[k].seen, &none, number);
        write_byte(k);
        noted = true;
    }
    return noted;
}

static void on_signal(int number, siginfo_t *info, void *context) {
    const int error = errno;
    const int k = find_signal(number);
    const struct sigaction *before = &handled[k].before;
    const bool noted = note_signal(number), again = atomic_fetch_add(&handled[k].count, 1) > 0;
    /* Python's own handler raises KeyboardInterrupt as often as Ctrl-C is pressed. */
    const bool once = is_default_action(before) || number != SIGINT;
    if (noted ? again && once && atomic_load(&safe_sent) : is_default_action(before)) {
        set_default(number);
        (void)raise(number); /* delivered when this handler returns */
    } else if (before->sa_flags & SA_SIGINFO) {
        before->sa_sigaction(number, info, context);
    } else if (!is_default_action(before)) {
        before->sa_handler(number);
    }
    errno = error;
}

/* --- Outside of it --- */

static bool is_our_handler(const struct sigaction *action) {
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_signal;
}

static void install(int k) {
    struct sigaction now;
    if (sigaction(HANDLED[k].number, NULL, &now) != 0 || is_our_handler(&now)) return;
    if (!(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_IGN) return;
    handled[k].before = now;
    struct sigaction ours = {.sa_sigaction = on_signal,
                             .sa_flags =
                                 SA_SIGINFO | SA_ONSTACK | (is_default_action(&now) ? SA_RESTART : now.sa_flags)};
    ours.sa_mask = now.sa_mask;
    (void)sigaction(HANDLED[k].number, &ours, NULL);
}

static void uninstall(int k) {
    struct sigaction now;
    if (sigaction(HANDLED[k].number, NULL, &now) == 0 && is_our_handler(&now))
        (void)sigaction(HANDLED[k].number, &handled[k].before, NULL);
}

static int count_watchers(void) {
    int count = 0;
    for (int k = 0; k < BL_WATCHERS; k++) count += atomic_load(&watchers[k].owner) == (int)getpid();
    return count;
}

static bool open_pipe(int watcher) {
    int ends[2];
    if (watchers[watcher].opener == (int)getpid()) return true;
    if (pipe(ends) != 0) return false;
    for (int k = 0; k < 2; k++) {
        (void)fcntl(ends[k], F_SETFD, FD_CLOEXEC);
        (void)fcntl(ends[k], F_SETFL, O_NONBLOCK);
    }
    if (watchers[watcher].opener != 0) { /* the parent's */
        close(watchers[watcher].from);
        close(atomic_load(&watchers[watcher].into));
    }
    watchers[watcher].from = ends[0];
    atomic_store(&watchers[watcher].into, ends[1]);
    watchers[watcher].opener = (int)getpid();
    return true;
}

int bl_signals_watch(uint32_t signals) {
    const int process = (int)getpid();
    lock_registration();
    int watcher = 0;
    while (watcher < BL_WATCHERS && atomic_load(&watchers[watcher].owner) == process) watcher++;
    if (watcher == BL_WATCHERS || !open_pipe(watcher)) {
        unlock_registration();
        return -1;
    }
    if (count_watchers() == 0) {
        atomic_store(&safe_sent, 0);
        for (int k = 0; k < HANDLED_SIGNALS; k++) atomic_store(&handled[k].count, 0);
    }
    atomic_store(&watchers[watcher].seen, 0);
    atomic_store(&watchers[watcher].owner, process);
    for (int k = 0; k < HANDLED_SIGNALS; k++)
        if (signals & HANDLED[k].bit) install(k);
    unlock_registration();
    return watcher;
}

void bl_signals_forget(int watcher) {
    if (watcher < 0) return;
    lock_registration();
    atomic_store(&watchers[watcher].owner, 0);
    if (count_watchers() == 0)
        for (int k = 0; k < HANDLED_SIGNALS; k++) uninstall(k);
    unlock_registration();
}

void bl_signals_wait(int watcher, int64_t deadline) {
    const int64_t left = deadline - bl_clock_now();
    const int milliseconds = left <= 0                                ? 0
                             : left > SIGNALS_PATIENCE_MS * 1000000LL ? SIGNALS_PATIENCE_MS
                                                                      : (int)((left + 999999) / 1000000);
    if (watcher < 0) {
        bl_clock_sleep_until(bl_clock_now() + milliseconds * 1000000LL);
        return;
    }
    struct pollfd line = {.fd = watchers[watcher].from, .events = POLLIN};
    char bytes[64];
    if (poll(&line, 1, milliseconds) > 0)
        while (read(line.fd, bytes, sizeof bytes) > 0) {
        }
}

void bl_signals_wake(int watcher) {
    if (watcher >= 0) write_byte(watcher);
}

int bl_signals_seen(int watcher) { return watcher < 0 ? 0 : atomic_load(&watchers[watcher].seen); }

void bl_signals_safe_sent(void) { atomic_store(&safe_sent, 1); }

void bl_signals_default(int number) {
    const int k = find_signal(number);
    if (k == HANDLED_SIGNALS || !is_default_action(&handled[k].before)) return;
    set_default(number);
    (void)kill(getpid(), number);
}

#else

int bl_signals_watch(uint32_t signals) {
    (void)signals;
    return -1;
}
void bl_signals_forget(int watcher) { (void)watcher; }
void bl_signals_wait(int watcher, int64_t deadline) {
    (void)watcher;
    bl_clock_sleep_until(deadline);
}
void bl_signals_wake(int watcher) { (void)watcher; }
int bl_signals_seen(int watcher) {
    (void)watcher;
    return 0;
}
void bl_signals_safe_sent(void) {}
void bl_signals_default(int number) { (void)number; }
const char *bl_signals_describe(int number) {
    (void)number;
    return "ended by a signal";
}

#endif
