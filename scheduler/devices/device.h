/* A device: channels to and from hardware, and the driver that transports their values.
 *
 * The real-time thread calls `receive` at the start of a tick and `send` at its end. Neither may block, allocate or
 * lock. If a device is gone, they return an error and the tick continues. Drivers transport raw numbers; device.c
 * scales them, checks limits and counts ages.
 *
 * Within a run a device is used by the thread that has acquired it (bl_device_acquire): the real-time thread, or the
 * watchdog while the run is latched (scheduler/realtime/safety/watchdog.h). */
#ifndef BIELLA_DEVICE_H
#define BIELLA_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "scheduler/engine/biella.h"
#include "scheduler/realtime/loop/counter.h"

/* One number on the wire and its scaling: value = scale · raw + offset. */
typedef struct {
    char name[48];
    int64_t slot;        /* index into the engine's values: a parameter to write or a signal to read; -1: neither (a
                            reserved position, sent as its safe value). The caller has checked that it exists */
    double scale, offset;
    double low, high;    /* limits of the value; may be infinite */
    double safe;         /* output: the safe value to send. Input: used while the device is lost, with BL_LOSS_SAFE */
    int32_t saturates;   /* value outside the limits: 1 saturate, 0 end the run */
} bl_channel;

enum { BL_LOSS_STOP, BL_LOSS_HOLD, BL_LOSS_SAFE };
/* Values are safe values; because the device timed out; again, since the last frame had safe values, too. */
enum { BL_SEND_SAFE = 1, BL_SEND_TRIPPED = 2, BL_SEND_AGAIN = 4 };

typedef struct bl_device bl_device;
typedef struct bl_safe_line bl_safe_line;   /* scheduler/devices/wire/safe_line.h */
typedef struct bl_line_state bl_line_state;
struct bl_link; /* scheduler/devices/wire/link.h */

typedef struct {
    const char *name;
    /* Reads all frames that have arrived by `now` (ns of bl_clock_now). Stores the newest complete frame in d->received,
       d->sequence, d->echo and d->tripped. Counts rejected frames in d->counts (corrupt, stale, missed, unauthenticated;
       device.c updates all others). Returns the number of accepted frames, or a negative errno if the device is gone. */
    int (*receive)(bl_device *d, int64_t now);
    /* Sends d->sending as frame `sequence` with flags BL_SEND_. Returns 0 or a negative errno. -EAGAIN: the line is
       full, the frame is dropped and counted. -ERANGE: the wire cannot represent a value. Others: the device is gone. */
    int (*send)(bl_device *d, uint32_t sequence, int flags);
    /* Waits until data may have arrived (returns 1) or until `deadline` (returns 0). Required only for a device that is
       the clock of a run; may be NULL. */
    int (*wait)(bl_device *d, int64_t deadline);
    /* Called at every tick while the device is gone; returns 0 once it is available again. Must not block; may be NULL. */
    int (*reopen)(bl_device *d);
    void (*close)(bl_device *d); /* frees d->state */
    /* Writes what another process needs to send to the device; returns the descriptor, or -1 if there is none. NULL: the
       device cannot be guarded. */
    int (*share)(const bl_device *d, bl_line_state *state);
    /* Its link, whose frames can be authenticated. NULL: it has none. */
    struct bl_link *(*link)(bl_device *d);
} bl_driver;

/* Event counters since the device was opened. Who has acquired the device adds to them by bl_add_count; any thread reads them. */
typedef struct {
    atomic_llong frames, sent; /* accepted frames; sent frames, including safe ones */
    atomic_llong corrupt, stale,
        missed; /* rejected for CRC, format or value; rejected as old, repeated, of another session or
                                       sender; gaps in the sequence */
    atomic_llong dropped; /* not sent because the line was full or the device gone */
    atomic_llong losses, returns; /* timeouts or disconnections, and recoveries */
    atomic_llong violations; /* values outside the limits */
    atomic_llong trips; /* trips of the device's own watchdog that it reported */
    atomic_llong unauthenticated; /* rejected because they have no valid tag, where there is a key */
} bl_device_counts;

enum {
    BL_STANDING_WAITING, /* no frame yet */
    BL_STANDING_CONNECTED,
    BL_STANDING_LOST, /* no frame for longer than its timeout */
    BL_STANDING_DISCONNECTED, /* as its driver reports */
};

struct bl_device {
    const bl_driver *driver;
    void *state; /* private data of the driver */
    char name[64];
    bl_channel *ins, *outs;
    int32_t in_count, out_count;
    double *received, *sending; /* raw */
    double *safe; /* raw safe values of outs */
    uint32_t sequence, echo; /* of the last received frame */
    bool tripped; /* the device reports that its watchdog has tripped */
    bool answers; /* this side is the device, the peer is the host: no timeout before its first frame */
    bool safe_sent; /* the host has sent safe values: answer with safe values until it sends others */
    uint32_t epochs; /* number of restarts of its sequence */
    uint32_t sessions; /* authenticated ones that have begun */
    int64_t timeout; /* ns without a frame until it counts as lost; 0: never */
    int32_t on_loss;
    int64_t age_slot, alive_slot,
        delay_slot; /* parameters for `age` (ticks), `alive` (0, 1), `delay` (ticks); -1: none */

    bool alive, lost, gone; /* frame received within the timeout; none for longer; lost as reported by the driver */
    int64_t last_tick, last_time; /* of the newest frame; -1: none yet, then the timeout counts from first_time */
    int64_t first_time; /* of the first bl_device_take; -1: none yet */
    atomic_llong heard; /* as last_time, and of frames while the run is paused, for other threads; -1: none yet */
    atomic_int standing; /* BL_STANDING_, for other threads */
    bool has_sent;
    uint32_t last_sent; /* sequence; 0: nothing yet */
    uint32_t shift,
        shift_from; /* sequence = tick + 1 + shift, from sequence shift_from on: frames without a tick shift all later ones */
    bl_device_counts counts;
    char why[256]; /* why it was lost or ended the run */
    char words[128]; /* set by the driver: why it is gone, if errno is not specific, or why no data can come */
    int64_t last_look, excused; /* see bl_device_excuse; ns since the newest frame that do not count for the timeout */

    atomic_int acquired; /* by a thread; see bl_device_acquire */
    bool is_safe; /* the last frame had safe values */
    atomic_int confirmed; /* and the device has echoed one of those, or a later one */
    uint32_t safe_from; /* sequence of the first of those */
    bl_safe_line *line; /* shared with the guard; NULL: there is none */
    atomic_int openings; /* of its descriptor; read without acquiring the device */
};

/* device.c */
enum { BL_MAX_CHANNELS = 4096 };
/* Returns NULL if out of memory or if a count is negative or above BL_MAX_CHANNELS; the caller then still owns `state`. */
BL_API bl_device *bl_device_open(const bl_driver *driver, void *state, const char *name, int32_t in_count,
                                 int32_t out_count);
BL_API void bl_device_close(bl_device *d); /* accepts NULL */
/* Copies the channels, in wire order. Returns BL_ERROR_ARGUMENT with d->why if one is invalid; then none is copied. */
BL_API int bl_device_set_channels(bl_device *d, const bl_channel *ins, const bl_channel *outs);
/* `timeout` in ns, 0: no timeout; `on_loss`: BL_LOSS_. bl_device_set_slots sets the slots of the device's status signals;
   -1: none. */
BL_API int bl_device_set_loss(bl_device *d, int64_t timeout, int32_t on_loss);
BL_API void bl_device_set_slots(bl_device *d, int64_t age_slot, int64_t alive_slot, int64_t delay_slot);
/* bl_device_take receives frames and calls `enter(context, slot, value)` for every input value of the tick, which is
   always finite. Returns BL_OK, or BL_ERROR_BLOCK with d->why if the run must end. */
typedef void (*bl_enter)(void *context, int64_t slot, double value);
/* Called before each bl_device_take of a real-time run. A tick longer than the timeout is not a timeout of the device,
   which may send only in response to a frame: such a tick counts as half of the timeout. */
BL_API void bl_device_excuse(bl_device *d, int64_t now);
BL_API int bl_device_take(bl_device *d, int64_t tick, int64_t now, bl_enter enter, void *context);
/* Sends the values of the tick, or the safe values while the device is lost. Returns BL_ERROR_BLOCK with d->why, and
   sends nothing, if the run must end because a value is not finite or is outside its limits. */
BL_API int bl_device_give(bl_device *d, int64_t tick, const double *values);
/* Sends the safe values: the only function that does. The real-time thread calls it first when a run ends, and while it
   is paused or latched; the watchdog calls it while the real-time thread does not. Each call sends a frame. */
BL_API void bl_device_make_safe(bl_device *d, int64_t tick);
/* Receives frames without entering their values, for their echo. */
BL_API void bl_device_listen(bl_device *d, int64_t now);
/* Whether safe values need not be sent again: the device has echoed them, is gone or silent, or has no outputs. */
BL_API int bl_device_is_settled(const bl_device *d);
/* Whether the device has echoed the safe values that it was sent last. */
BL_API int bl_device_is_confirmed(const bl_device *d);
/* 1 if the device was free and now belongs to the calling thread, until bl_device_release. Never waits. */
int bl_device_acquire(bl_device *d);
void bl_device_release(bl_device *d);
/* Accessors for opaque handles. */
BL_API void bl_device_get_counts(const bl_device *d, bl_device_counts *counts);
BL_API const char *bl_device_why(const bl_device *d);
BL_API int bl_device_is_alive(const bl_device *d);
/* How the device is, from any thread: BL_STANDING_; `*age`: ns since the newest accepted frame at `now`, the present if
   negative; -1: there was none. */
BL_API int bl_device_get_standing(const bl_device *d, int64_t now, int64_t *age);

#endif
