/* Paced runs: what a run is held to, and the one gate by which anything from outside reaches it.
 *
 * Whatever enters is a write to a parameter, at the start of a tick: a bl_entry. The journal holds all that changed anything, so
 * that a run is replayed by applying its journal at the same ticks. */
#ifndef BIELLA_REALTIME_H
#define BIELLA_REALTIME_H

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

/* Overruns: a tick that ends after the next deadline. */
enum { BL_OVERRUN_STOP, BL_OVERRUN_SKIP, BL_OVERRUN_CATCH_UP, BL_OVERRUN_SLIP };

enum { BL_CLOCK_WALL, BL_CLOCK_DEVICE, BL_CLOCK_FREE, BL_CLOCK_SCRIPT };

#endif
