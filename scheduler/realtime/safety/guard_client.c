#include "scheduler/realtime/safety/guard_page.h"

#if defined(__linux__)

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "scheduler/realtime/loop/clock.h"
#include "scheduler/realtime/safety/guard_messages.h"

enum { GUARD_ANSWER_MS = 10000 }; /* that a guard may take to answer, on a busy machine */

struct bl_run_guard {
    int channel;
    bl_run_guard_page *page;
    bl_device *devices[BL_GUARDED]; /* of the lines */
    int32_t numbers[BL_GUARDED];    /* of these devices in the run */
    uint32_t passed[BL_GUARDED];    /* generations */
};

void bl_run_guard_report(bl_run_guard *g, int64_t due) {
    if (g) atomic_store_explicit(&g->page->due, due, memory_order_relaxed);
}

void bl_run_guard_arm(bl_run_guard *g, bool armed) {
    if (g) atomic_store_explicit(&g->page->armed, armed, memory_order_release);
}

bool bl_run_guard_has_tripped(const bl_run_guard *g) {
    return g && atomic_load_explicit(&g->page->tripped, memory_order_acquire);
}

void bl_run_guard_rearm(bl_run_guard *g) {
    if (!g) return;
    atomic_store(&g->page->tripped, 0);
    for (int32_t k = 0; k < g->page->line_count; k++) atomic_store(&g->page->lines[k].tripped, 0);
}

/* The descriptor may be closed and its number be used again before it is passed. Then the generation has changed, and the
   guard uses no descriptor of another generation than the page's. */
void bl_run_guard_pass(bl_run_guard *g) {
    for (int32_t k = 0; g && k < g->page->line_count; k++) {
        bl_safe_line *line = &g->page->lines[k];
        const uint32_t generation = atomic_load_explicit(&line->generation, memory_order_acquire);
        const int descriptor = atomic_load_explicit(&line->descriptor, memory_order_relaxed);
        if (generation == g->passed[k]) continue;
        const bl_run_guard_message message = {.kind = BL_GUARD_LINE, .line = k, .generation = generation};
        if (descriptor < 0 || bl_run_guard_post(g->channel, &message, descriptor) == 0) g->passed[k] = generation;
    }
}

/* Whether the guard has answered. Messages of an earlier run are skipped. */
static bool await_answer(const bl_run_guard *g) {
    const int64_t limit = bl_clock_now() + GUARD_ANSWER_MS * 1000000LL;
    bl_run_guard_message message;
    int descriptor;
    for (int64_t now; (now = bl_clock_now()) < limit;) {
        struct pollfd line = {.fd = g->channel, .events = POLLIN};
        (void)poll(&line, 1, (int)((limit - now) / 1000000 + 1));
        const int got = bl_run_guard_take(g->channel, &message, &descriptor);
        if (got < 0) return false;
        if (got > 0 && message.kind == BL_GUARD_ANSWER) return true;
    }
    return false;
}

static void free_guard(bl_run_guard *g) {
    for (int32_t k = 0; g->page && k < g->page->line_count; k++) g->devices[k]->line = NULL;
    if (g->page) (void)munmap(g->page, sizeof *g->page);
    free(g);
}

static bool share_devices(bl_run_guard *g, bl_device **devices, int32_t device_count) {
    for (int32_t k = 0; k < device_count; k++) {
        const int32_t n = g->page->line_count;
        if (devices[k]->out_count == 0) continue;
        if (n == BL_GUARDED) return false;
        if (!bl_safe_line_share(devices[k], &g->page->lines[n])) continue;
        g->devices[n] = devices[k];
        g->numbers[n] = k;
        g->page->line_count++;
    }
    return true;
}

bl_run_guard *bl_run_guard_open(int32_t channel, bl_device **devices, int32_t device_count, int64_t margin,
                                const char *latch, char *message, size_t message_size) {
    bl_run_guard *g = calloc(1, sizeof *g);
    const int memory = memfd_create("biella guard", MFD_CLOEXEC);
    void *page = MAP_FAILED;
    if (g && memory >= 0 && ftruncate(memory, sizeof *g->page) == 0)
        page = mmap(NULL, sizeof *g->page, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (page == MAP_FAILED) {
        snprintf(message, message_size, "no shared memory: %s", strerror(errno));
        if (memory >= 0) close(memory);
        free(g);
        return NULL;
    }
    g->channel = channel;
    g->page = page;
    g->page->version = BL_GUARD_VERSION;
    g->page->process = (int32_t)getpid();
    g->page->margin = margin;
    snprintf(g->page->latch, sizeof g->page->latch, "%s", latch);
    const bool fits = strlen(latch) < sizeof g->page->latch;
    const bool shared = share_devices(g, devices, device_count);
    const bl_run_guard_message hello = {.kind = BL_GUARD_HELLO};
    const int error = bl_run_guard_post(channel, &hello, memory);
    close(memory);
    bl_run_guard_pass(g);
    if (shared && fits && error == 0 && await_answer(g)) return g;
    if (!shared) snprintf(message, message_size, "at most %d devices with outputs can be guarded", BL_GUARDED);
    else if (!fits) snprintf(message, message_size, "the name of its latch file is too long: %s", latch);
    else snprintf(message, message_size, "the guard does not answer");
    free_guard(g);
    return NULL;
}

int bl_run_guard_covers(const bl_run_guard *g, int32_t device) {
    int32_t k = 0;
    while (k < g->page->line_count && g->numbers[k] != device) k++;
    return k < g->page->line_count;
}

void bl_run_guard_close(bl_run_guard *g) {
    if (!g) return;
    const bl_run_guard_message end = {.kind = BL_GUARD_END};
    bl_run_guard_arm(g, false);
    if (bl_run_guard_post(g->channel, &end, -1) == 0) (void)await_answer(g);
    free_guard(g);
}

#else

#include <stdio.h>

bl_run_guard *bl_run_guard_open(int32_t channel, bl_device **devices, int32_t device_count, int64_t margin,
                                const char *latch, char *message, size_t message_size) {
    (void)channel, (void)devices, (void)device_count, (void)margin, (void)latch;
    snprintf(message, message_size, "the guard needs Linux");
    return NULL;
}
int bl_run_guard_covers(const bl_run_guard *g, int32_t device) {
    (void)g, (void)device;
    return 0;
}
void bl_run_guard_close(bl_run_guard *g) { (void)g; }
void bl_run_guard_report(bl_run_guard *g, int64_t due) { (void)g, (void)due; }
void bl_run_guard_arm(bl_run_guard *g, bool armed) { (void)g, (void)armed; }
bool bl_run_guard_has_tripped(const bl_run_guard *g) {
    (void)g;
    return false;
}
void bl_run_guard_rearm(bl_run_guard *g) { (void)g; }
void bl_run_guard_pass(bl_run_guard *g) { (void)g; }

#endif
