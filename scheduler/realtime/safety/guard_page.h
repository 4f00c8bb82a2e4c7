/* What a run and its guard share (guard.h): a page of memory. The guard reads it when the process of the run has died. */
#ifndef BIELLA_GUARD_PAGE_H
#define BIELLA_GUARD_PAGE_H

#include <stdatomic.h>

#include "scheduler/devices/wire/safe_line.h"
#include "scheduler/realtime/safety/guard.h"

enum { BL_GUARD_VERSION = 1, BL_GUARDED = 16 }; /* devices, at most */

typedef struct bl_run_guard_page {
    int32_t version, process, line_count;
    char latch[256]; /* a file that the guard writes when the run has died */
    int64_t margin; /* ns that the run may be overdue */
    atomic_llong due; /* ns of the monotonic clock; 0: any time */
    atomic_int armed; /* live values may have been sent; cleared when safe ones have followed */
    atomic_int tripped; /* set by the guard; cleared by the run, when it is armed again */
    bl_safe_line lines[BL_GUARDED];
} bl_run_guard_page;

/* For the real-time thread; they accept NULL. */
void bl_run_guard_report(bl_run_guard *g, int64_t due);
void bl_run_guard_arm(bl_run_guard *g, bool armed);
bool bl_run_guard_has_tripped(const bl_run_guard *g);
void bl_run_guard_rearm(bl_run_guard *g);
/* For the watchdog: passes descriptors that have changed. */
void bl_run_guard_pass(bl_run_guard *g);

#endif
