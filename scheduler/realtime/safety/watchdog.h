/* Watchdog of a real-time run: a thread in C that makes the devices safe while the real-time thread cannot.
 *
 * The real-time thread states by when it will next report (bl_watchdog_report). If it does not, or if a signal asks the
 * process to end, the watchdog latches the run and sends safe values until the real-time thread attends to it again
 * (bl_watchdog_attend). It calls no function of Python and needs no thread but its own.
 *
 * What is shared, and who writes it:
 *   pace->latched     BL_LATCH_; who wins the exchange from BL_LATCH_NONE writes pace->latch_why, then the reason.
 *                     Only the real-time thread clears it.
 *   device->acquired  the only lock; a thread holds one at a time. The real-time thread never waits for it within a tick:
 *                     that it is taken means that the run is latched. It is held across system calls that do not block,
 *                     and for up to 10 ms by a run that waits for the frame of its device.
 *   due, attended     written by the real-time thread, read by the watchdog.
 * A live value is sent only while its device is acquired and after `latched` was read as BL_LATCH_NONE. The watchdog
 * sets `latched` before it acquires a device. Hence no live value follows a safe one of the watchdog. */
#ifndef BIELLA_WATCHDOG_H
#define BIELLA_WATCHDOG_H

#include "scheduler/realtime/loop/realtime.h"

typedef struct bl_watchdog bl_watchdog;

/* Starts the thread, if the pace has a limit or handles signals; else `w` is NULL, which all other functions accept.
   False: no thread is available. */
bool bl_watchdog_start(bl_pace *pace, bl_watchdog **w);
/* Stops it and waits for its end; frees it. */
void bl_watchdog_stop(bl_watchdog *w);
/* The real-time thread will report again until then (ns of bl_clock_now); 0: any time. */
void bl_watchdog_report(bl_watchdog *w, int64_t due);
/* The real-time thread sends safe values itself (true); or it is about to send live values again. */
void bl_watchdog_attend(bl_watchdog *w, bool attends);
/* Lets the watchdog look now: a device was opened, whose descriptor the guard needs. */
void bl_watchdog_wake(bl_watchdog *w);
/* Tick whose number safe values of the watchdog follow. */
void bl_watchdog_set_tick(bl_watchdog *w, int64_t tick);

/* Latches the run for a reason BL_LATCH_; false if it was latched before. For any thread. */
bool bl_latch(bl_pace *pace, int32_t reason, const char *format, ...) BL_FORMAT(3);
bool bl_is_latched(const bl_pace *pace);

#endif
