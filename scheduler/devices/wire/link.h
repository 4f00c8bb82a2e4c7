/* Local end of a link: detects new frames by session and sequence, and composes the replies. */
#ifndef BIELLA_LINK_H
#define BIELLA_LINK_H

#include "scheduler/devices/device.h"
#include "scheduler/devices/wire/frame.h"

enum { BL_HELLO_SIZE = 64, BL_HELLO_KIND = 0x80 }; /* KIND: set in the second byte of hellos only */
typedef struct bl_handshake bl_handshake; /* hello.h */

typedef struct bl_link {
    uint16_t
        session; /* ours, for as long as the device is open; of one that answers, the host's, and 0 before it has come */
    uint8_t flags; /* BL_FRAME_DOUBLE, or 0 */
    bool heard; /* it has answered in our session */
    bool stranger; /* the peer has used another session and must receive ours */
    bool restarted; /* and so since its newest frame */
    uint32_t sequence, echo; /* of the newest frame; an echo of 0 means none */
    int64_t time; /* when that came */

    bool keyed; /* frames are authenticated; the following is used only then */
    bool open; /* there is a session, and the peer has answered in it */
    bl_mac_key outgoing, incoming; /* keys of the session */
    uint64_t sent,
        taken; /* numbers of the newest frames: sequences, and how often they have wrapped since the session began */
    bl_handshake *handshake; /* NULL: that of a guard */
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
/* Frames are authenticated from now on, with a key of BL_MAC_KEY bytes: 0, or an errno with its sign changed. */
int bl_link_set_key(bl_link *l, const uint8_t *key);
/* Wipes the keys. */
void bl_link_end(bl_link *l);
/* A copy for the guard: without the shared key. */
void bl_link_copy(const bl_link *l, bl_link *to);
/* The connection is new. */
void bl_link_renew(bl_link *l, const bl_device *d);
/* Whether frames can be sent: they are not authenticated, or there is a session. */
bool bl_link_is_open(const bl_link *l);
/* Whether a hello must be sent now; `waits`: the run is real-time by the device, which may send only in response. */
bool bl_link_must_greet(bl_link *l, const bl_device *d, bool waits, int64_t now);
/* Of one that answers: whether another host may come, since there is none or it is gone or has ended. */
bool bl_link_is_free(const bl_link *l, const bl_device *d);
/* Accepts one frame into d (received, sequence, echo, tripped) and returns 1; or rejects and counts it and returns 0. */
int bl_link_take(bl_link *l, bl_device *d, const uint8_t *bytes, size_t size, int64_t now);
/* Takes bytes of a serial line or a connection; how many frames were accepted. */
int bl_link_feed(bl_link *l, bl_stream *s, bl_device *d, const uint8_t *bytes, size_t size, int64_t now);
/* Writes frame `sequence` with `values` and flags of BL_SEND_; its size, or 0 if a value does not fit. The link is open. */
size_t bl_link_write(bl_link *l, const bl_device *d, uint32_t sequence, int flags, const double *values,
                     uint8_t *bytes);
/* The same frame for a line of bytes: stuffed, and a zero at its end. `stuffed` has room for BL_FRAME_STUFFED + 1; the size. */
size_t bl_link_stuff(const uint8_t *frame, size_t size, uint8_t *stuffed);
/* Writes safe values outside of a tick: announces our session to a device that has restarted or not yet received it, and
   our presence to a host. With a key, a message of the handshake. */
size_t bl_link_write_hello(bl_link *l, bl_device *d, int64_t now, uint8_t *bytes);

#endif
