/* The guard: a process outside of a run that sends safe values when the process of the run has died or stopped.
 *
 * Run and guard share a page of memory and a socket (SOCK_SEQPACKET), over which the run passes copies of the descriptors
 * of its devices. The real-time thread states in the page by when it will next report. The guard sends safe values
 *   - if the process ends while the page is armed: by a signal, out of memory, os._exit;
 *   - if it is overdue, for example because it was stopped. Then it marks the page as tripped first, and the run, when it
 *     continues, is latched. */
#ifndef BIELLA_GUARD_H
#define BIELLA_GUARD_H

#include "scheduler/devices/device.h"

/* --- guard_client.c: in the process of the run --- */
typedef struct bl_run_guard bl_run_guard;
/* Shares the devices with the guard at the other end of `channel`, which is not closed. NULL with the reason in `message`.
   `margin` in ns; `latch` is the name of a file that the guard writes when the run has died. Devices that cannot be guarded are left out: see bl_run_guard_covers. Waits for the guard's answer. */
BL_API bl_run_guard *bl_run_guard_open(int32_t channel, bl_device **devices, int32_t device_count, int64_t margin,
                                       const char *latch, char *message, size_t message_size);
BL_API int bl_run_guard_covers(const bl_run_guard *g, int32_t device);
/* Tells the guard that the run has ended, and waits until it has given back the devices. Before devices are closed. */
BL_API void bl_run_guard_close(bl_run_guard *g); /* accepts NULL */

/* --- guard_process.c: in the guard --- */
enum { BL_GUARD_ENDED, BL_GUARD_CLOSED, BL_GUARD_DIED, BL_GUARD_FAILED };
typedef struct {
    int32_t outcome; /* ENDED: the run has ended by itself; CLOSED: its process, without a run; DIED: with one */
    int32_t trips; /* how often the run was overdue */
    int32_t settled; /* of a run that has died: all devices have echoed safe values, as far as they can */
    int64_t reaction; /* ns from the discovery of the last trip to the first safe values of all devices */
    int32_t device_count;
    int32_t process; /* of the run */
    char latch[256]; /* as given to bl_run_guard_open */
} bl_run_guard_report_card;
/* Guards one run: from its first message to its end, or to the end of its process; before, of `process`. */
BL_API int bl_run_guard_serve(int32_t channel, int32_t process, bl_run_guard_report_card *card);

#endif
