/* Real-time runs: timing options, and the input latch, the only path for external data.
 *
 * Each external input is a write to a parameter at the start of a tick: a bl_entry. The input log holds all entries that
 * changed a value. A replay applies the input log at the same ticks.
 *
 *   bl_pipe_open …, bl_probe_open → bl_run_realtime, in a separate thread → bl_probe_close, bl_pipe_close …
 */
#ifndef BIELLA_REALTIME_H
#define BIELLA_REALTIME_H

#include <stdatomic.h>

#include "scheduler/devices/device.h"

enum { BL_ENTER_SET, BL_ENTER_OVERRIDE, BL_ENTER_RELEASE };
/* Origin of an entry, for reports; 0 and above are device indices. */
enum { BL_FROM_LIVE = -1, BL_FROM_TIMING = -2, BL_FROM_WORKER = -3 };

typedef struct {
    int64_t tick;  /* tick at whose start it took effect; for a command, the earliest tick: 0 is immediately */
    int64_t slot;  /* index into the engine's values: a parameter or an input; for an override, a signal */
    double value;
    int32_t kind, from;
} bl_entry;

/* pipe.c: queue of fixed-size records from one thread to another; neither thread ever blocks. */
typedef struct bl_pipe bl_pipe;
BL_API bl_pipe *bl_pipe_open(int64_t record_size, int64_t capacity);
BL_API void bl_pipe_close(bl_pipe *p);
BL_API int64_t bl_pipe_push(bl_pipe *p, const void *records,
                            int64_t count); /* all or nothing: count, or 0 if there is no room */
BL_API int64_t bl_pipe_pull(bl_pipe *p, void *records, int64_t most);
/* For the reader: number of pending records; the n-th of them without removal, so that records pushed together can be
   processed together. */
int64_t bl_pipe_waiting(const bl_pipe *p);
const void *bl_pipe_peek(const bl_pipe *p, int64_t n);
void bl_pipe_drop(bl_pipe *p, int64_t count);
/* For the writer: room for one record, to be filled in place and then pushed by bl_pipe_push_reserved; NULL if there is none. */
void *bl_pipe_reserve(bl_pipe *p);
void bl_pipe_push_reserved(bl_pipe *p);

/* histogram.c: durations in ns, in 16 bins per power of two; percentiles are accurate to 3 %. */
enum { BL_BINS = 640 };
typedef struct {
    atomic_llong count, least, most, sum;
    atomic_llong bins[BL_BINS];
    atomic_llong changes; /* odd while a duration is added */
} bl_histogram;
/* By one thread. It never waits for readers. */
BL_API void bl_histogram_add(bl_histogram *h, int64_t duration);
/* Copies a histogram that another thread adds to: all fields are of one instant. */
BL_API void bl_histogram_copy(const bl_histogram *h, bl_histogram *copy);
/* The duration that the fraction `part` (0 … 1) of all durations does not exceed; 0 if there are none. */
BL_API double bl_histogram_percentile(const bl_histogram *h, double part);

/* probe.c: hooks between the engine and its blocks: overrides of block outputs, and the execution time of each block.
   Blocks without a hook have no overhead. */
BL_API int bl_probe_open(bl_engine *e, int32_t profile);
BL_API void bl_probe_close(bl_engine *e);
/* The time of a block in each tick in which it ran; NULL without a profile. */
BL_API const bl_histogram *bl_probe_times(const bl_engine *e, int32_t block);
/* BL_ERROR_ARGUMENT: the slot is not a block output, or there are too many overrides. */
BL_API int bl_probe_override(bl_engine *e, int64_t slot, double value);
void bl_probe_release(bl_engine *e, int64_t slot);
void bl_probe_end_tick(bl_engine *e);

/* Reaction to an overrun, a tick that ends after the next deadline: end the run; drop the missed deadlines and keep the
   grid; run ticks back to back until the deadlines are met; or shift all later deadlines. */
enum { BL_OVERRUN_STOP, BL_OVERRUN_SKIP, BL_OVERRUN_CATCH_UP, BL_OVERRUN_SLIP };

/* Start of a tick: at deadlines counted from one instant; with each frame of a device; immediately; or according to a
   script of durations. */
enum { BL_CLOCK_WALL, BL_CLOCK_DEVICE, BL_CLOCK_FREE, BL_CLOCK_SCRIPT };

enum { BL_TIMING_LATENESS, BL_TIMING_EXECUTION, BL_TIMING_OVERRUNS, BL_TIMING_AGE, BL_TIMING_LOST, BL_TIMINGS };

/* Why a run ended. */
enum { BL_END_NONE, BL_END_TIME, BL_END_CANCEL, BL_END_STOP, BL_END_OVERRUN, BL_END_DEVICE, BL_END_ERROR };

/* Ticks with missing data: frames of the device that is the clock; rows, because their pipe was full; or entries. */
enum { BL_GAP_FRAMES, BL_GAP_ROWS, BL_GAP_INPUT_LOG };
typedef struct {
    int64_t first; /* ticks */
    atomic_llong last;
    int64_t kind;
} bl_gap;

typedef struct {
    int64_t tick, late; /* ns after the next deadline */
} bl_overrun;

enum { BL_NOTED = 1000 }; /* overruns and gaps that are listed; all are counted */

/* Why a run is latched: it sends safe values and does not continue until it is armed again. BEGUN: another thread is
   about to state the reason. TICK: the watchdog; STALL: max_stall; GUARD: the process outside; SIGNAL: the run ends. */
enum { BL_LATCH_NONE, BL_LATCH_BEGUN, BL_LATCH_TICK, BL_LATCH_STALL, BL_LATCH_GUARD, BL_LATCH_SIGNAL };
/* Signals that the watchdog handles. */
enum { BL_SIGNAL_TERM = 1, BL_SIGNAL_INT = 2, BL_SIGNAL_HUP = 4, BL_SIGNAL_QUIT = 8, BL_SIGNAL_XCPU = 16 };

typedef struct {
    /* Timing options. */
    int32_t clock;
    int32_t pacer;              /* number of the device, with BL_CLOCK_DEVICE */
    _Atomic double factor; /* simulated seconds for each second of the wall clock; 0: as fast as possible. Where another
                              thread changes it, deadlines are counted anew from that moment */
    int64_t spin; /* ns of busy waiting before a deadline */
    const int64_t *script_wake,
        *script_execution; /* ns from a deadline to the tick's start, and to its end: BL_CLOCK_SCRIPT */
    int64_t script_count;
    int32_t overrun; /* BL_OVERRUN_… */
    int32_t device_count;
    int64_t warmup_ticks; /* ticks at the start whose overruns do not count */
    int64_t max_overruns, max_consecutive_overruns; /* overruns; negative: any number */
    int64_t watchdog; /* ns that a tick may take until the watchdog latches the run; 0: any */
    int64_t
        max_stall; /* ns that a tick may be late, and its values old, until they are not sent and the run is latched; 0: any */
    int32_t ends_if_latched; /* the run ends instead */
    int32_t signals; /* a set of BL_SIGNAL_ */
    void *guard; /* a bl_run_guard; NULL: none */

    /* Inputs and outputs. Any pointer may be NULL. */
    bl_device **devices;
    bl_pipe *commands; /* bl_entry, from outside */
    bl_pipe *input_log; /* bl_entry, to outside */
    bl_pipe *events; /* bl_event, to outside */
    bl_pipe *rows; /* the tick and then pick_count values, as doubles */
    const int64_t *pick;
    int64_t pick_count, every;
    double *row; /* room for 1 + pick_count values */
    const bl_entry *replay; /* in the order of ticks */
    int64_t replay_count;
    int64_t
        replay_end; /* before this tick a run only repeats `replay`: without deadlines, devices, commands, timing and pauses */
    bl_pipe *states; /* the number of the next tick, 64 bits, and the saved state before it, see bl_save */
    int64_t state_every; /* ticks between them */
    bl_mailbox *
        latest; /* the tick, then all values from slot `latest_first` on, up to the last signal, then the diagnostics */
    int64_t latest_first; /* of a parameter, or the first signal */
    double *frame; /* room for them */
    int64_t timing[BL_TIMINGS]; /* parameters; -1: none */
    const int64_t
        *ages; /* for each worker's result: the parameter with its age, and the one with the time of its inputs, s */
    int64_t age_count;
    atomic_int cancel, pause; /* flags set by other threads: end, pause */
    atomic_int steps; /* by one other thread: how many ticks a paused run was asked for, since it began */
    atomic_int rearm; /* by other threads: continue after the latch of that number, see `latches`; 0: none */
    atomic_int latched; /* BL_LATCH_ */
    atomic_int latches; /* how often */
    atomic_int signal; /* that has ended the run */
    char
        latch_why[384]; /* two texts: that of latch number n is in half n % 2, so that readers do not meet the writer */

    /* Statistics; other threads may read all of it while the run goes on, except `why` and `lost_device`. A listed
       overrun or gap is complete before it is counted. */
    atomic_int end; /* BL_END_… */
    int32_t lost_device; /* device that ended the run, or -1 */
    atomic_llong done; /* ticks */
    atomic_llong overruns, overruns_in_warmup, skipped; /* skipped: deadlines */
    atomic_llong rows_lost, entries_lost, entries_rejected, gap_count, events_lost;
    bl_histogram lateness, execution;
    bl_overrun overrun_list[BL_NOTED];
    bl_gap gaps[BL_NOTED];
    char why[256];
} bl_pace;

/* Why a run is latched, for any thread: NULL if it is not. */
BL_API const char *bl_pace_latch(const bl_pace *pace);
/* Runs up to `ticks` ticks (negative: without end). Safe values are sent first, for any reason of the end, until the
   devices have echoed them, are gone, or a quarter of a second has passed. Returns the status of the engine, which is BL_OK also if the clock or a device ended the run; see `end`. */
BL_API int bl_run_realtime(bl_engine *e, int64_t ticks, bl_pace *pace);

#endif
