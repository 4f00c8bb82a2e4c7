/* Real-time runs: what a run is held to, and the one input latch by which anything from outside reaches it.
 *
 * Whatever enters is a write to a parameter, at the start of a tick: a bl_entry. The journal holds all that changed anything, so
 * that a run is replayed by applying its input log at the same ticks.
 *
 *   bl_pipe_open …, bl_probe_open → bl_run_realtime, in a thread of its own → bl_probe_close, bl_pipe_close …
 */
#ifndef BIELLA_REALTIME_H
#define BIELLA_REALTIME_H

#include <stdatomic.h>

#include "scheduler/devices/device.h"

enum { BL_ENTER_SET, BL_ENTER_OVERRIDE, BL_ENTER_RELEASE };
/* Who has sent an entry, for people; 0 and above are devices by number. */
enum { BL_FROM_LIVE = -1, BL_FROM_TIMING = -2, BL_FROM_WORKER = -3 };

typedef struct {
    int64_t tick;  /* at whose start it entered; of a command, the first at which it may: 0 is at once */
    int64_t slot;  /* of the engine's values: a parameter or an input; of an override, a signal */
    double value;
    int32_t kind, from;
} bl_entry;

/* pipe.c: records of one size from one thread to another; neither ever waits. */
typedef struct bl_pipe bl_pipe;
BL_API bl_pipe *bl_pipe_open(int64_t record_size, int64_t capacity);
BL_API void bl_pipe_close(bl_pipe *p);
BL_API int64_t bl_pipe_push(bl_pipe *p, const void *records, int64_t count); /* all or nothing: count, or 0 if there is no room */
BL_API int64_t bl_pipe_pull(bl_pipe *p, void *records, int64_t most);
/* For the reader: how many there are; the n-th of these without taking it, so that what was pushed together is seen together. */
int64_t bl_pipe_waiting(const bl_pipe *p);
const void *bl_pipe_peek(const bl_pipe *p, int64_t n);
void bl_pipe_drop(bl_pipe *p, int64_t count);

/* histogram.c: durations in ns, in 16 bins for each power of two, so that a percentile is right within 3 %. */
enum { BL_BINS = 640 };
typedef struct {
    int64_t count, least, most, sum;
    int64_t bins[BL_BINS];
} bl_histogram;
BL_API void bl_histogram_add(bl_histogram *h, int64_t duration);
/* The duration that `part` (0 … 1) of all do not exceed; 0 if there are none. */
BL_API double bl_histogram_percentile(const bl_histogram *h, double part);

/* probe.c: what is put between the engine and its blocks, at no cost for blocks that have none: values in place of what a block
   gives, and the time that each block takes. */
BL_API int bl_probe_open(bl_engine *e, int32_t profile);
BL_API void bl_probe_close(bl_engine *e);
/* The time of a block in each tick in which it ran; NULL without a profile. */
BL_API const bl_histogram *bl_probe_times(const bl_engine *e, int32_t block);
int bl_probe_override(bl_engine *e, int64_t slot, double value); /* BL_ERROR_ARGUMENT: no block gives this value, or there are too many */
void bl_probe_release(bl_engine *e, int64_t slot);
void bl_probe_end_tick(bl_engine *e);

/* Overruns: a tick that ends after the next deadline. Missed deadlines are the run's end; dropped, and the grid kept; caught up
   with; or all later ones move. */
enum { BL_OVERRUN_STOP, BL_OVERRUN_SKIP, BL_OVERRUN_CATCH_UP, BL_OVERRUN_SLIP };

/* Ticks begin: at deadlines counted from one instant; with each frame of a device; at once; as a script of durations says. */
enum { BL_CLOCK_WALL, BL_CLOCK_DEVICE, BL_CLOCK_FREE, BL_CLOCK_SCRIPT };

enum { BL_TIMING_LATENESS, BL_TIMING_EXECUTION, BL_TIMING_OVERRUNS, BL_TIMING_AGE, BL_TIMING_LOST, BL_TIMINGS };

/* Why a run ended. */
enum { BL_END_NONE, BL_END_TIME, BL_END_CANCEL, BL_END_STOP, BL_END_OVERRUN, BL_END_DEVICE, BL_END_ERROR };

/* Ticks of which something is missing: frames of the device that paces; rows, because their pipe was full; or entries. */
enum { BL_GAP_FRAMES, BL_GAP_ROWS, BL_GAP_INPUT_LOG };
typedef struct {
    int64_t first, last; /* ticks */
    int64_t kind;
} bl_gap;

typedef struct {
    int64_t tick, late; /* ns after the next deadline */
} bl_overrun;

enum { BL_NOTED = 1000 }; /* overruns and gaps that are listed; all are counted */

typedef struct {
    /* What it is held to. */
    int32_t clock;
    int32_t pacer;              /* number of the device, with BL_CLOCK_DEVICE */
    double factor;              /* simulated seconds for each second of the wall clock */
    int64_t spin;               /* ns before a deadline that are waited out awake */
    const int64_t *script_wake, *script_execution; /* ns from a deadline to the tick's start, and to its end: BL_CLOCK_SCRIPT */
    int64_t script_count;
    int32_t overrun;            /* BL_OVERRUN_… */
    int32_t device_count;
    int64_t warmup_ticks;              /* ticks at the start whose overruns do not count */
    int64_t max_overruns, max_consecutive_overruns; /* overruns; negative: any number */

    /* What enters, what leaves. Any pointer may be NULL. */
    bl_device **devices;
    bl_pipe *commands;          /* bl_entry, from outside */
    bl_pipe *input_log;           /* bl_entry, to outside */
    bl_pipe *rows;              /* the tick and then pick_count values, as doubles */
    const int64_t *pick;
    int64_t pick_count, every;
    double *row;                /* room for 1 + pick_count values */
    const bl_entry *replay;     /* in the order of ticks */
    int64_t replay_count;
    bl_mailbox *latest;         /* the tick, then all values from slot `latest_first` on, up to the last signal */
    int64_t latest_first;       /* of a parameter, or the first signal */
    double *frame;              /* room for them */
    int64_t timing[BL_TIMINGS]; /* parameters; -1: none */
    const int64_t *ages;        /* of each worker's result: the parameter that tells its age, and the one with the time of its inputs, s */
    int64_t age_count;
    atomic_int cancel, pause;   /* flags, set from outside: end, stand still */

    /* What has happened. */
    int32_t end;                /* BL_END_… */
    int32_t lost_device;        /* that ended the run, or -1 */
    int64_t done;               /* ticks */
    int64_t overruns, overruns_in_warmup, skipped; /* skipped: deadlines */
    int64_t rows_lost, entries_lost, entries_rejected, gap_count;
    bl_histogram lateness, execution;
    bl_overrun overrun_list[BL_NOTED];
    bl_gap gaps[BL_NOTED];
    char why[256];
} bl_pace;

/* Runs up to `ticks` ticks (negative: without end). Whatever ends it, safe values are sent before anything else is done. Gives what
   the engine gave: BL_OK also where `end` says that the clock or a device has ended it. */
BL_API int bl_run_realtime(bl_engine *e, int64_t ticks, bl_pace *pace);

#endif
