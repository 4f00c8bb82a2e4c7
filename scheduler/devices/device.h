/* A device: channels to and from something real, and the driver that carries them.
 *
 * The real-time thread owns a device: it calls `receive` at the start of a tick and `send` at its end. Neither may wait, allocate or
 * lock; a device that is gone says so and the tick goes on. Drivers move raw numbers; device.c scales them, checks limits, counts ages. */
#ifndef BIELLA_DEVICE_H
#define BIELLA_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/engine/biella.h"

/* One number on the wire and what it means: value = scale · raw + offset. */
typedef struct {
    char name[48];
    int64_t slot;        /* of the engine's values: a parameter that is written, or a signal that is read; -1: neither (a reserved
                            place, which has its safe value on the wire). The caller has checked that it exists */
    double scale, offset;
    double low, high;    /* limits of the value, which may be infinite */
    double safe;         /* to the device: sent when all must be safe. From it: taken while it is lost, with BL_LOSS_SAFE */
    int32_t saturates;   /* beyond the limits: 1 the nearest one is taken, 0 the run ends */
} bl_channel;

enum { BL_LOSS_STOP, BL_LOSS_HOLD, BL_LOSS_SAFE };
enum { BL_SEND_SAFE = 1, BL_SEND_TRIPPED = 2 }; /* these are safe values; since the device was not heard in time */

typedef struct bl_device bl_device;

typedef struct {
    const char *name;
    /* Takes all that has arrived by `now` (ns of bl_clock_now): the newest complete frame is left in d->received, d->sequence, d->echo,
       d->tripped; what it refuses it adds to d->counts (corrupt, stale, missed; all others are device.c's).
       Returns how many were accepted; negative, an errno with its sign changed, if the device is gone. */
    int (*receive)(bl_device *d, int64_t now);
    /* Sends d->sending as frame `sequence`; flags of BL_SEND_. 0, or an errno with its sign changed; -EAGAIN: the line is full, the frame
       is dropped and counted; -ERANGE: a value does not fit the wire. Any other: the device is gone. */
    int (*send)(bl_device *d, uint32_t sequence, int flags);
    /* Waits until something may have arrived (1), or until `deadline` (0). Only for a device that paces a run; may be NULL. */
    int (*wait)(bl_device *d, int64_t deadline);
    /* Called at every tick while the device is gone: 0 if it is there again. May not wait; may be NULL. */
    int (*reopen)(bl_device *d);
    void (*close)(bl_device *d); /* frees d->state */
} bl_driver;

/* What has happened, counted since the device was opened. */
typedef struct {
    int64_t frames, sent;        /* accepted; sent, safe ones included */
    int64_t corrupt, stale, missed; /* refused: CRC, form, value; refused: old, repeated, of another session or sender; gaps in sequence */
    int64_t dropped;             /* not sent, since the line was full or the device gone */
    int64_t losses, returns;     /* times it fell silent or went away, and came back */
    int64_t violations;          /* values beyond limits */
    int64_t trips;               /* times it said that its own watchdog had tripped */
} bl_device_counts;

struct bl_device {
    const bl_driver *driver;
    void *state;                 /* the driver's own */
    char name[64];
    bl_channel *ins, *outs;
    int32_t in_count, out_count;
    double *received, *sending;  /* raw */
    double *safe;                /* raw safe values of outs */
    uint32_t sequence, echo;     /* of the frame received last */
    bool tripped;                /* the device says that its watchdog has tripped */
    bool answers;                /* we are the device, and the other side is the host: nobody is missed before its first frame */
    bool safe_sent;              /* by the host, which has sent safe values: ours are too, until it sends others */
    uint32_t epochs;              /* how often its sequence has begun anew */
    int64_t timeout;             /* ns without a frame until it counts as lost; 0: never */
    int32_t on_loss;
    int64_t age_slot, alive_slot, delay_slot; /* parameters for `age` (ticks), `alive` (0, 1), `delay` (ticks); -1: none */

    bool alive, lost, gone;      /* heard from within the timeout; silent for longer; and its driver has said so */
    int64_t last_tick, last_time; /* when the newest frame came; -1: none yet, then silence is counted from first_time */
    int64_t first_time;          /* of the first take; -1: none yet */
    bool has_sent;
    uint32_t last_sent;          /* sequence; 0: nothing yet */
    uint32_t shift, shift_from;  /* sequence = tick + 1 + shift, from sequence shift_from on: frames without a tick shift all later ones */
    bl_device_counts counts;
    char why[256];               /* why it was lost or ended the run */
    char words[128];             /* a driver leaves here why it is gone, where an errno does not tell, or why nothing can come yet */
    int64_t last_look, excused;  /* see bl_device_excuse; ns since the newest frame that are no silence */
};

/* device.c */
enum { BL_MAX_CHANNELS = 4096 };
/* NULL without memory or with counts that are negative or above BL_MAX_CHANNELS; `state` is then still the caller's. */
BL_API bl_device *bl_device_open(const bl_driver *driver, void *state, const char *name, int32_t in_count, int32_t out_count);
BL_API void bl_device_close(bl_device *d); /* NULL is fine */
/* The channels in the order of the wire, copied. BL_ERROR_ARGUMENT with d->why if one makes no sense; then none is taken. */
BL_API int bl_device_set_channels(bl_device *d, const bl_channel *ins, const bl_channel *outs);
/* `timeout` in ns, 0: never lost by silence; `on_loss`: BL_LOSS_. And where the device's own signals go; -1: nowhere. */
BL_API int bl_device_set_loss(bl_device *d, int64_t timeout, int32_t on_loss);
BL_API void bl_device_set_slots(bl_device *d, int64_t age_slot, int64_t alive_slot, int64_t delay_slot);
/* Takes what has come; calls `enter(context, slot, value)` for every value that the tick gets from this device: always finite. BL_OK,
   or BL_ERROR_BLOCK with d->why if the run must end. */
typedef void (*bl_enter)(void *context, int64_t slot, double value);
/* Before each take of a real-time run. A tick that took longer than the timeout is no silence of the device's, which may speak only when
   spoken to: it counts as half of the timeout. */
BL_API void bl_device_excuse(bl_device *d, int64_t now);
BL_API int bl_device_take(bl_device *d, int64_t tick, int64_t now, bl_enter enter, void *context);
/* Gives the values of the tick, or the safe ones while the device is lost; BL_ERROR_BLOCK with d->why if one is not finite, or is
   beyond its limits, and the run must end: then nothing was sent. */
BL_API int bl_device_give(bl_device *d, int64_t tick, const double *values);
/* Sends the safe values. Called by the real-time thread as the first thing when a run ends, more than once; each is a frame of its own. */
BL_API void bl_device_make_safe(bl_device *d, int64_t tick);
/* For who has only a pointer. */
BL_API void bl_device_get_counts(const bl_device *d, bl_device_counts *counts);
BL_API const char *bl_device_why(const bl_device *d);
BL_API int bl_device_is_alive(const bl_device *d);

#endif
