/* The drivers that the engine has: each opener gives a device, or NULL with the reason in `message`.
 *
 * After it: bl_device_set_channels, bl_device_set_loss, bl_device_set_slots. No opener waits for the device to answer. */
#ifndef BIELLA_DRIVERS_H
#define BIELLA_DRIVERS_H

#include "scheduler/devices/device.h"

enum {
    BL_WIRE_DOUBLE =
        1, /* values go out as float64, in text with 17 digits; without it float32, and 9 digits. Both are understood */
    BL_WIRE_CHECKSUM =
        2, /* text: lines without a checksum are rejected. Sent lines have a checksum if and only if this is set */
    BL_WIRE_ANSWERS = 4, /* frames: we are the device, and the other side is the host, whose session we take */
};

/* Whether a frame replaces those that wait: safe values, unless those that wait are safe values, too. */
static inline bool bl_is_urgent(int flags) { return (flags & BL_SEND_SAFE) && !(flags & BL_SEND_AGAIN); }

/* scheduler/devices/wire/serial.c: binary frames (docs/reference/frame.md) on a serial port, any `baud`. At most 255 values each way. */
BL_API bl_device *bl_serial_open(const char *name, const char *port, int32_t baud, int32_t in_count, int32_t out_count,
                                 int32_t flags, char *message, size_t message_size);
/* scheduler/devices/wire/text.c: lines of numbers on a serial port. */
BL_API bl_device *bl_text_open(const char *name, const char *port, int32_t baud, int32_t in_count, int32_t out_count,
                               int32_t flags, char *message, size_t message_size);
/* scheduler/devices/wire/udp.c: the same frames as datagrams. `host` and `port`: of the device, to which all else is deaf; without a host (NULL or "") the
   first that sends a valid frame of our session. `bind` and `bind_port`: ours; NULL or "" is loopback, 0 any free port. */
BL_API bl_device *bl_udp_open(const char *name, const char *host, int32_t port, const char *bind, int32_t bind_port,
                              int32_t in_count, int32_t out_count, int32_t flags, char *message, size_t message_size);
/* Only authenticated frames are sent and accepted from now on, with a key of 32 bytes (which is copied). Of serial, UDP and TCP
   devices, before the first tick: BL_OK, or BL_ERROR_ARGUMENT with bl_device_why. */
BL_API int bl_wire_set_key(bl_device *d, const uint8_t *key);
/* The port that a device of scheduler/devices/wire/udp.c is bound to. */
BL_API int32_t bl_udp_bound_port(const bl_device *d);

/* scheduler/devices/wire/tcp.c: the same frames on a connection. With `port` we connect to the device at `host`. With `bind_port` it connects to us: at `bind`,
   NULL or "" is loopback; with a `host`, only from there. */
BL_API bl_device *bl_tcp_open(const char *name, const char *host, int32_t port, const char *bind, int32_t bind_port,
                              int32_t in_count, int32_t out_count, int32_t flags, char *message, size_t message_size);

/* scheduler/devices/virtual/loopback.c: output channel i returns as input channel i. NULL if an option is invalid or memory
   is exhausted. */
enum { BL_LOOPBACK_LONGEST = 10000 }; /* ticks: each receive scans all frames in transit */
typedef struct {
    int32_t delay; /* ticks, at least 1 */
    int32_t jitter; /* maximum additional delay, drawn for each frame: later frames may overtake */
    double loss; /* part of the frames that never come */
    double noise; /* standard deviation of the noise added to each raw value */
    double seed;
} bl_loopback_options;
BL_API bl_device *bl_loopback_open(const char *name, int32_t count, const bl_loopback_options *options);

/* scheduler/devices/virtual/replay_device.c: row n of `values` (rows × in_count, copied) is the input from ticks[n] on;
   ticks increase. After the last row it is held, the device is gone, or the recording restarts with tick 0. */
enum { BL_REPLAY_HOLDS, BL_REPLAY_ENDS, BL_REPLAY_REPEATS };
BL_API bl_device *bl_replay_open(const char *name, int32_t in_count, int32_t out_count, const int64_t *ticks,
                                 const double *values, int64_t rows, int32_t at_end);

/* scheduler/devices/virtual/mailbox_device.c: a device whose driver is another thread of this process; the functions below are for that thread. */
BL_API bl_device *bl_mailbox_device_open(const char *name, int32_t in_count, int32_t out_count);
/* A frame from the device, and the newest sequence sent to it that the frame takes into account (0: not known). BL_ERROR_ARGUMENT if a
   value is not finite. */
BL_API int bl_mailbox_device_post(bl_device *d, const double *values, uint32_t echo);
/* The newest frame for the device, if it is new: 1, else 0 after at most `wait` ns. */
BL_API int bl_mailbox_device_take(bl_device *d, int64_t wait, double *values, uint32_t *sequence, int32_t *flags);
/* Report that the device is gone, with the reason; report that it is available again. */
BL_API void bl_mailbox_device_fail(bl_device *d, const char *why);
BL_API void bl_mailbox_device_return(bl_device *d);

#endif
