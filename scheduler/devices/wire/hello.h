/* The handshake of authenticated frames: how two sides that share a key get the keys of a session (docs/reference/frame.md).
 *
 * All of it is bytes in, bytes out, without waiting: a hello is taken where a frame is, and the reply is written when the
 * driver sends next. */
#ifndef BIELLA_HELLO_H
#define BIELLA_HELLO_H

#include "scheduler/devices/wire/link.h"

enum { BL_NONCE = 16, BL_HELLO_INTERVAL = 20000000 }; /* bytes; ns between hellos that are not replies */
enum { BL_SENT_MARKS = 8 };

/* When a frame was sent: a bound on the age of frames that echo it or a later one. */
typedef struct {
    uint64_t number;
    int64_t time;
} bl_sent_mark;

/* What only the process of the run has: the shared key, and nonces. */
struct bl_handshake {
    bl_mac_key key;
    uint8_t seed[BL_NONCE]; /* random, of this run */
    uint32_t drawn; /* nonces made of it */
    uint8_t nonce[BL_NONCE]; /* ours, which no session has used */
    uint8_t host[BL_NONCE], device[BL_NONCE]; /* those of the session; of a host also of the one that begins */
    uint8_t answers[BL_NONCE]; /* of a device: the nonce of the hello that its next one answers; zeros: none */
    uint16_t replaces; /* of a host: the session that the next one replaces; 0: none */
    int64_t due; /* when the next hello may be sent without being asked for */
    int64_t now; /* when the driver last received, or looked whether it must send */
    uint64_t answered; /* number of our frame that the newest accepted one echoes */
    bl_sent_mark marks[BL_SENT_MARKS]; /* of the session, in turn */
    uint32_t newest; /* count of the marks; the newest is marks[newest % BL_SENT_MARKS] */
};

/* Starts over with that key (BL_MAC_KEY bytes) and seed (BL_NONCE bytes). */
void bl_hello_set_key(bl_link *l, bl_handshake *h, const uint8_t *key, const uint8_t *seed);
/* Takes a hello: 1; 0 if its form is wrong, -1 if its tag is. l->stranger: it must be answered. */
int bl_hello_take(bl_link *l, bl_device *d, const uint8_t *bytes, size_t size, int64_t now);
/* Whether a hello must be sent although none has come: there is no session, or the device is silent. */
bool bl_hello_is_due(const bl_link *l, const bl_device *d, int64_t now);
/* Writes the hello that comes next; its size, BL_HELLO_SIZE. */
size_t bl_hello_write(bl_link *l, const bl_device *d, int64_t now, uint8_t *bytes);
/* Notes when frame l->sent is sent. */
void bl_hello_mark_sent(bl_link *l, const bl_device *d);
/* Whether a frame with that echo was made before the peer had received what we sent a while ago: the timeout of the device, or
   1 s if that is longer. It is late itself, or our frames are. */
bool bl_hello_is_held_back(const bl_link *l, const bl_device *d, uint32_t echo, int64_t now);
/* Of an accepted frame. */
void bl_hello_note_echo(bl_link *l, uint32_t echo);
/* The connection is new: a host asks for another session. */
void bl_hello_renew(bl_link *l, const bl_device *d);

#endif
