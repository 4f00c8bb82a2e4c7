/* A pipe: a ring of records with one writer and one reader. Each side moves a counter that only it writes; what lies between
 * the two is the reader's. */
#include <stdlib.h>
#include <string.h>

#include "scheduler/realtime/loop/realtime.h"

struct bl_pipe {
    int64_t record_size, capacity;
    unsigned char *records;
    _Atomic int64_t pushed;
    char apart[64]; /* so that the two threads do not fight for a cache line */
    _Atomic int64_t pulled;
};

static const int64_t LARGEST_PIPE = 1LL << 32; /* bytes */

bl_pipe *bl_pipe_open(int64_t record_size, int64_t capacity) {
    if (record_size < 1 || capacity < 1 || record_size > LARGEST_PIPE / capacity) return NULL;
    bl_pipe *p = calloc(1, sizeof *p);
    unsigned char *records = malloc((size_t)(record_size * capacity));
    if (!p || !records) {
        free(p);
        free(records);
        return NULL;
    }
    memset(records, 1, (size_t)(record_size * capacity)); /* so that no page is missing when a tick writes to it */
    p->record_size = record_size;
    p->capacity = capacity;
    p->records = records;
    atomic_init(&p->pushed, 0);
    atomic_init(&p->pulled, 0);
    return p;
}

void bl_pipe_close(bl_pipe *p) {
    if (!p) return;
    free(p->records);
    free(p);
}

/* Copies `count` records from place `at` of the ring on, in two parts where it wraps. */
static void copy_records(const bl_pipe *p, int64_t at, void *outside, int64_t count, bool in) {
    unsigned char *bytes = outside;
    while (count > 0) {
        const int64_t place = at % p->capacity, room = p->capacity - place, part = count < room ? count : room;
        const size_t size = (size_t)(part * p->record_size);
        unsigned char *inside = p->records + place * p->record_size;
        memcpy(in ? inside : bytes, in ? bytes : inside, size);
        bytes += size;
        at += part;
        count -= part;
    }
}

int64_t bl_pipe_push(bl_pipe *p, const void *records, int64_t count) {
    const int64_t pushed = atomic_load_explicit(&p->pushed, memory_order_relaxed);
    const int64_t pulled = atomic_load_explicit(&p->pulled, memory_order_acquire);
    if (count < 0 || count > p->capacity - (pushed - pulled)) return 0;
    copy_records(p, pushed, (void *)(uintptr_t)records, count, true);
    atomic_store_explicit(&p->pushed, pushed + count, memory_order_release);
    return count;
}

void *bl_pipe_reserve(bl_pipe *p) {
    const int64_t pushed = atomic_load_explicit(&p->pushed, memory_order_relaxed);
    const int64_t pulled = atomic_load_explicit(&p->pulled, memory_order_acquire);
    return pushed - pulled < p->capacity ? p->records + pushed % p->capacity * p->record_size : NULL;
}

void bl_pipe_push_reserved(bl_pipe *p) {
    const int64_t pushed = atomic_load_explicit(&p->pushed, memory_order_relaxed);
    atomic_store_explicit(&p->pushed, pushed + 1, memory_order_release);
}

int64_t bl_pipe_waiting(const bl_pipe *p) {
    return atomic_load_explicit(&p->pushed, memory_order_acquire) -
           atomic_load_explicit(&p->pulled, memory_order_relaxed);
}

const void *bl_pipe_peek(const bl_pipe *p, int64_t n) {
    const int64_t pulled = atomic_load_explicit(&p->pulled, memory_order_relaxed);
    return p->records + (pulled + n) % p->capacity * p->record_size;
}

void bl_pipe_drop(bl_pipe *p, int64_t count) {
    const int64_t pulled = atomic_load_explicit(&p->pulled, memory_order_relaxed);
    atomic_store_explicit(&p->pulled, pulled + count, memory_order_release);
}

int64_t bl_pipe_pull(bl_pipe *p, void *records, int64_t most) {
    const int64_t waiting = bl_pipe_waiting(p), count = most < waiting ? most : waiting;
    if (count <= 0) return 0;
    copy_records(p, atomic_load_explicit(&p->pulled, memory_order_relaxed), records, count, false);
    bl_pipe_drop(p, count);
    return count;
}
