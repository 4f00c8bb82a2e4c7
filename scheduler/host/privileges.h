/* Privileges that a thread requests from the system to wake on time. Each is requested separately. A denial is not an
 * error: it is stored, and the others are still requested. Call both functions from the thread itself, before and after
 * its work:
 *
 *   bl_privileges p = {.asked = BL_ASK_ALL, .priority = 80, .cpu = 1, .stack = 1 << 18};
 *   bl_privileges_take(&p);     fills in p.granted, p.errors
 *   …
 *   bl_privileges_return(&p);   all as it was before
 */
#ifndef BIELLA_PRIVILEGES_H
#define BIELLA_PRIVILEGES_H

#include <stdint.h>

#include "scheduler/engine/biella.h"

enum {
    BL_TIMERS, /* exact timers: the kernel may not delay this thread's wake-ups to gather them (on Linux by 50 µs) */
    BL_POWER, /* no processor of the machine sleeps so deeply that waking takes long: /dev/cpu_dma_latency held at 0 */
    BL_MEMORY, /* all present and future memory of the process stays in RAM, until the last thread returns this privilege */
    BL_STACK, /* `stack` bytes of the thread's stack are touched in advance; they are not returned */
    BL_CPU, /* the thread runs on processor `cpu` only */
    BL_PRIORITY, /* the thread precedes all ordinary ones: SCHED_FIFO with `priority`, or the highest that the limit permits */
    BL_PRIVILEGE_COUNT
};
enum { BL_ASK_ALL = (1 << BL_PRIVILEGE_COUNT) - 1 };

/* Of processors: as many as the kernel's own sets have. */
enum { BL_CPU_WORDS = 16 };

typedef struct {
    /* Asked for. */
    uint32_t asked; /* 1 << BL_TIMERS | … */
    int32_t priority, cpu;
    int64_t stack;
    /* What came of it. */
    uint32_t granted; /* bits as in `asked`; unchanged after the return */
    int32_t granted_priority;
    int32_t errors[BL_PRIVILEGE_COUNT]; /* errno of each denied request; ENOTSUP: not on this platform */
    /* Privileges held now, and the former state. */
    uint32_t held;
    int32_t former_policy, former_priority, power_file;
    uint64_t former_cpus[BL_CPU_WORDS], former_slack;
} bl_privileges;

BL_API void bl_privileges_take(bl_privileges *p);
BL_API void bl_privileges_return(bl_privileges *p);

#endif
