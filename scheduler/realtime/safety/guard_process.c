#include "scheduler/realtime/safety/guard_page.h"

#if defined(__linux__)

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "scheduler/realtime/loop/clock.h"
#include "scheduler/realtime/safety/guard_messages.h"

static const int64_t GUARD_LOOK = 20000000, /* ns between looks at the page */
    GUARD_REPEAT = 5000000,                 /* between safe values, until all devices are settled */
    GUARD_LATER = 100000000,                /* and from then on, for a run that is overdue */
    GUARD_LAST = 2000000000;                /* for which they are repeated after the death of a run */
enum { GUARD_ROUNDS = 3 };

/* What the guard has of a run. */
typedef struct {
    int channel, process, watch; /* watch: a descriptor that becomes readable when the process ends; -1: none */
    bl_run_guard_page *page;     /* NULL: no run yet */
    /* What does not change, from before the first tick: a process that fails may write anywhere, also to the page. */
    int32_t line_count;
    int64_t margin;
    bl_safe_line lines[BL_GUARDED];
    int held[BL_GUARDED]; /* descriptors; -1: none */
    uint32_t generation[BL_GUARDED];
    bl_device *devices[BL_GUARDED]; /* open while safe values are sent */
    int64_t again; /* when they are sent next, to a run that is overdue */
    bl_run_guard_report_card *card;
} guard_state;

static void drop_line(guard_state *g, int32_t k) {
    bl_device_close(g->devices[k]);
    g->devices[k] = NULL;
    if (g->held[k] >= 0) close(g->held[k]);
    g->held[k] = -1;
}

static void forget_run(guard_state *g) {
    for (int32_t k = 0; k < BL_GUARDED; k++) drop_line(g, k);
    if (g->page) (void)munmap(g->page, sizeof *g->page);
    g->page = NULL;
    g->line_count = 0;
    bl_wipe(g->lines, sizeof g->lines); /* keys of sessions */
}

static void watch_process(guard_state *g, int process) {
    if (g->watch >= 0) close(g->watch);
    g->process = process;
    g->watch = (int)syscall(SYS_pidfd_open, (pid_t)process, 0u);
}

static bool is_plausible(const bl_safe_line *line) {
    return line->in_count >= 0 && line->in_count <= BL_FRAME_VALUES && line->out_count >= 0 &&
           line->out_count <= BL_FRAME_VALUES && memchr(line->name, '\0', sizeof line->name);
}

static bool take_page(guard_state *g, int memory) {
    struct stat about;
    if (fstat(memory, &about) != 0 || about.st_size < (off_t)sizeof *g->page) return false;
    void *page = mmap(NULL, sizeof *g->page, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (page == MAP_FAILED) return false;
    forget_run(g);
    g->page = page;
    g->page->latch[sizeof g->page->latch - 1] = '\0';
    snprintf(g->card->latch, sizeof g->card->latch, "%s", g->page->latch);
    g->card->process = g->page->process;
    g->card->device_count = g->page->line_count;
    watch_process(g, g->page->process);
    const int32_t count = g->page->line_count;
    if (g->page->version != BL_GUARD_VERSION || count < 0 || count > BL_GUARDED) return false;
    memcpy(g->lines, g->page->lines, sizeof g->lines);
    g->margin = g->page->margin;
    g->line_count = count;
    for (int32_t k = 0; k < count; k++)
        if (!is_plausible(&g->lines[k])) return false;
    return true;
}

static void answer(const guard_state *g) {
    const bl_run_guard_message message = {.kind = BL_GUARD_ANSWER};
    (void)bl_run_guard_post(g->channel, &message, -1);
}

/* Takes all messages. 1: the run has ended; -1: its process has closed the channel, or makes no sense. */
static int take_messages(guard_state *g) {
    bl_run_guard_message message;
    int descriptor, got;
    while ((got = bl_run_guard_take(g->channel, &message, &descriptor)) > 0) {
        if (message.kind == BL_GUARD_HELLO) {
            const bool good = descriptor >= 0 && take_page(g, descriptor);
            if (descriptor >= 0) close(descriptor);
            if (!good) return -1;
            answer(g);
        } else if (message.kind == BL_GUARD_LINE && g->page && message.line >= 0 && message.line < BL_GUARDED) {
            drop_line(g, message.line);
            g->held[message.line] = descriptor;
            g->generation[message.line] = message.generation;
        } else if (message.kind == BL_GUARD_END) {
            forget_run(g);
            answer(g);
            return 1;
        } else if (descriptor >= 0) {
            close(descriptor);
        }
    }
    return got;
}

/* The run has opened a device again, or lost it: our copy would keep the old one open. */
static void drop_old_lines(guard_state *g) {
    for (int32_t k = 0; g->page && k < g->line_count; k++)
        if (g->held[k] >= 0 && atomic_load(&g->page->lines[k].generation) != g->generation[k]) drop_line(g, k);
}

/* One round of safe values; whether all devices are settled. */
static bool send_guard_round(guard_state *g) {
    bool settled = true;
    for (int32_t k = 0; k < g->line_count; k++) {
        bl_safe_line *line = &g->page->lines[k];
        bl_line_state state;
        if (g->held[k] < 0) continue; /* not connected: nothing to send to */
        if (!g->devices[k] && bl_safe_line_read(line, &state))
            g->devices[k] = bl_safe_line_open(&g->lines[k], &state, g->held[k]);
        bl_device *d = g->devices[k];
        if (!d) {
            settled = false;
            continue;
        }
        bl_device_listen(d, bl_clock_now());
        bl_device_make_safe(d, (int64_t)d->last_sent);
        atomic_store(&line->guard_sequence, d->last_sent);
        atomic_store(&line->guard_has_sent, 1);
        settled = bl_device_is_settled(d) && settled;
    }
    return settled;
}

static void end_devices(guard_state *g) {
    for (int32_t k = 0; k < BL_GUARDED; k++) {
        bl_device_close(g->devices[k]);
        g->devices[k] = NULL;
    }
}

/* The process has died: safe values, until they are echoed, or for GUARD_LAST. */
static void send_last_values(guard_state *g) {
    const int64_t begin = bl_clock_now();
    bool settled = false;
    for (int round = 0; !settled || round < GUARD_ROUNDS; round++) {
        settled = send_guard_round(g);
        if (round == 0) g->card->reaction = bl_clock_now() - begin;
        if (bl_clock_now() - begin > GUARD_LAST) break;
        bl_clock_sleep_until(bl_clock_now() + GUARD_REPEAT);
    }
    g->card->settled = settled;
}

static bool is_overdue(const guard_state *g) {
    const int64_t due = atomic_load(&g->page->due);
    return due != 0 && bl_clock_now() > due + g->margin;
}

static bool is_dead(const guard_state *g) {
    struct pollfd line = {.fd = g->watch, .events = POLLIN};
    if (g->watch >= 0) return poll(&line, 1, 0) > 0;
    return kill(g->process, 0) != 0 && errno == ESRCH;
}

/* Waits for a message, the end of the process, or until `deadline`. */
static void wait_for_news(const guard_state *g, int64_t deadline) {
    const int64_t left = deadline - bl_clock_now();
    struct pollfd lines[2] = {{.fd = g->channel, .events = POLLIN}, {.fd = g->watch, .events = POLLIN}};
    (void)poll(lines, 2, left > 0 ? (int)((left + 999999) / 1000000) : 0);
}

/* While the run is overdue; it clears `tripped` itself when it is armed again. It may have sent live values since then and be
   overdue once more: the numbers of our frames must follow those. Returns when to look again. */
static int64_t handle_stall(guard_state *g) {
    const int64_t begin = bl_clock_now();
    const bool is_new = !atomic_exchange(&g->page->tripped, 1);
    for (int32_t k = 0; k < g->line_count; k++) atomic_store(&g->page->lines[k].tripped, 1);
    if (is_new) {
        g->card->trips++;
        end_devices(g);
    }
    if (is_new || begin >= g->again) {
        const bool settled = send_guard_round(g);
        g->card->reaction = bl_clock_now() - begin;
        g->again = bl_clock_now() + (settled ? GUARD_LATER : GUARD_REPEAT);
    }
    const int64_t look = bl_clock_now() + GUARD_LOOK;
    return g->again < look ? g->again : look;
}

int bl_run_guard_serve(int32_t channel, int32_t process, bl_run_guard_report_card *card) {
    guard_state state = {.channel = channel, .watch = -1, .card = card}, *g = &state;
    memset(card, 0, sizeof *card);
    for (int32_t k = 0; k < BL_GUARDED; k++) g->held[k] = -1;
    watch_process(g, process);
    int news = 0;
    for (bool dead = false; !dead && news == 0;) {
        int64_t next = bl_clock_now() + GUARD_LOOK;
        news = take_messages(g);
        dead = is_dead(g);
        if (g->page && news == 0 && !dead) {
            drop_old_lines(g);
            if (is_overdue(g)) next = handle_stall(g);
            else end_devices(g);
        }
        if (news == 0 && !dead) wait_for_news(g, next);
    }
    if (news == 0) news = take_messages(g); /* what it has sent before it died */
    drop_old_lines(g);
    const bool armed = g->page && news <= 0 && atomic_load(&g->page->armed);
    card->outcome = news > 0 ? BL_GUARD_ENDED : armed ? BL_GUARD_DIED : BL_GUARD_CLOSED;
    if (armed) send_last_values(g);
    forget_run(g);
    if (g->watch >= 0) close(g->watch);
    return card->outcome;
}

#else

#include <string.h>

int bl_run_guard_serve(int32_t channel, int32_t process, bl_run_guard_report_card *card) {
    (void)channel, (void)process;
    memset(card, 0, sizeof *card);
    return card->outcome = BL_GUARD_FAILED;
}

#endif
