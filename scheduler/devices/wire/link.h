/* Local end of a link: detects new frames by session and sequence, and composes the replies. */
#ifndef BIELLA_LINK_H
#define BIELLA_LINK_H

#include "scheduler/devices/device.h"
#include "scheduler/devices/wire/frame.h"

typedef struct {
    uint16_t
        session; /* ours, for as long as the device is open; of one that answers, the host's, and 0 before it has come */
    uint8_t flags; /* BL_FRAME_DOUBLE, or 0 */
    bool heard; /* it has answered in our session */
    bool stranger; /* the peer has used another session and must receive ours */
    bool restarted; /* and so since its newest frame */
    uint32_t sequence, echo; /* of the newest frame; an echo of 0 means none */
    int64_t time; /* when that came */
} bl_link;

/* Bytes between two zeros, not yet undone. */
typedef struct {
    uint8_t bytes[BL_FRAME_STUFFED];
    size_t length;
    bool spoilt; /* longer than any frame */
    bool begun; /* a zero was received: before it, a partial frame is not an error */
} bl_stream;

/* A link of that device, with flags of BL_WIRE_; draws a session. 0, or an errno with its sign changed. */
int bl_link_init(bl_link *l, bl_device *d, int32_t flags);
/* Of one that answers: whether another host may come, since there is none or it is gone or has ended. */
bool bl_link_is_free(const bl_link *l, const bl_device *d);
/* Accepts one frame into d (received, sequence, echo, tripped) and returns 1; or rejects and counts it and returns 0. */
int bl_link_take(bl_link *l, bl_device *d, const uint8_t *bytes, size_t size, int64_t now);
/* Takes bytes of a serial line or a connection; how many frames were accepted. */
int bl_link_feed(bl_link *l, bl_stream *s, bl_device *d, const uint8_t *bytes, size_t size, int64_t now);
/* Writes frame `sequence` with `values` and flags of BL_SEND_; its size, or 0 if a value does not fit. */
size_t bl_link_write(const bl_link *l, const bl_device *d, uint32_t sequence, int flags, const double *values,
                     uint8_t *bytes);
/* The same frame for a line of bytes: stuffed, and a zero at its end. `stuffed` has room for BL_FRAME_STUFFED + 1; the size. */
size_t bl_link_stuff(const uint8_t *frame, size_t size, uint8_t *stuffed);
/* Sends safe values outside of a tick: announces our session to a device that has restarted or not yet received it, and
   our presence to a host. */
size_t bl_link_write_hello(bl_link *l, bl_device *d, uint8_t *bytes);

#endif
