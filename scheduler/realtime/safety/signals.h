/* Signals that ask the process to end, for the watchdogs of its runs.
 *
 * The handler runs in any thread and does only what POSIX allows there: it stores the signal in a table of fixed size,
 * writes to pipes that are never closed, and calls the handler that was there before, such as Python's, which notes the
 * signal for its main thread. */
#ifndef BIELLA_SIGNALS_H
#define BIELLA_SIGNALS_H

#include <stdint.h>

enum { BL_WATCHERS = 16 }; /* runs of a process that signals reach */

/* Registers a watcher and installs the handlers for pace->signals, a set of BL_SIGNAL_. The number of the watcher; -1 if
   there are too many or there is no pipe. */
int bl_signals_watch(uint32_t signals);
/* Removes it; the last one restores the handlers from before, unless others have been installed since. */
void bl_signals_forget(int watcher);
/* Sleeps until `deadline`, a signal, or bl_signals_wake. */
void bl_signals_wait(int watcher, int64_t deadline);
void bl_signals_wake(int watcher);
/* The first signal since the registration; 0: none. */
int bl_signals_seen(int watcher);
/* Tells the handlers that safe values were sent: the same signal, once more, has its default action. */
void bl_signals_safe_sent(void);
/* If the default action of that signal was replaced, and not by a handler of the program: takes the action. */
void bl_signals_default(int number);
/* What one of these signals has done to a run, in words. */
const char *bl_signals_describe(int number);

#endif
