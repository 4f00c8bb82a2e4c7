/* The drivers that the engine has: each opener gives a device, or NULL with the reason in `message`.
 *
 * After it: bl_device_set_channels, bl_device_set_loss, bl_device_set_slots. No opener waits for the device to answer. */
#ifndef BIELLA_DRIVERS_H
#define BIELLA_DRIVERS_H

#include "scheduler/devices/device.h"

enum {
    BL_WIRE_DOUBLE = 1,   /* values go out as float64, in text with 17 digits; without it float32, and 9 digits. Both are understood */
    BL_WIRE_CHECKSUM = 2, /* text: lines without a checksum are refused. Ours always have one with it, never without */
};

/* serial.c: binary frames (docs/frame.md) on a serial port, any `baud`. At most 255 values each way. */
BL_API bl_device *bl_serial_open(const char *name, const char *port, int32_t baud, int32_t in_count, int32_t out_count, int32_t flags,
                                 char *message, size_t message_size);
/* text.c: lines of numbers on a serial port. */
BL_API bl_device *bl_text_open(const char *name, const char *port, int32_t baud, int32_t in_count, int32_t out_count, int32_t flags,
                               char *message, size_t message_size);
/* udp.c: the same frames as datagrams. `host` and `port`: of the device, to which all else is deaf; without a host (NULL or "") the
   first that sends a valid frame. `bind` and `bind_port`: ours; NULL or "" is loopback, 0 any free port. */
BL_API bl_device *bl_udp_open(const char *name, const char *host, int32_t port, const char *bind, int32_t bind_port, int32_t in_count,
                              int32_t out_count, int32_t flags, char *message, size_t message_size);
/* The port that a device of udp.c is bound to. */
BL_API int32_t bl_udp_bound_port(const bl_device *d);

#endif
