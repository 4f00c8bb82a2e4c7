/* What serial ports and sockets share: messages that go out whole, however little a line takes at once; and waiting for one. */
#ifndef BIELLA_OUTBOX_H
#define BIELLA_OUTBOX_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { BL_MESSAGE_ROOM = 8192 }; /* bytes of one message, at most */

/* What the line has not taken yet: the rest of a message that has begun, and perhaps an urgent one behind it. */
typedef struct {
    uint8_t bytes[2 * BL_MESSAGE_ROOM + 1];
    size_t from, to;
    size_t begun; /* where the message ends of which part is out; 0: of what waits, nothing is */
} bl_outbox;

typedef ssize_t (*bl_put)(int fd, const void *bytes, size_t size); /* write, or what is like it */

/* Forgets all that waits. */
void bl_outbox_clear(bl_outbox *o);
/* Puts what the line takes of all that waits: 0 if nothing is left, -EAGAIN if something is, or an errno with its sign changed. */
int bl_outbox_push(bl_outbox *o, int fd, bl_put put);
/* A message, and before it the byte `before` unless that is negative, where nothing waits. 0 if it is out or has begun; else nothing of it
   stays: -EAGAIN if the line is full, or as above. */
int bl_outbox_begin(bl_outbox *o, int fd, bl_put put, int before, const uint8_t *bytes, size_t size);
/* A message that waits behind the one that has begun, in the place of any other that does. */
void bl_outbox_follow(bl_outbox *o, const uint8_t *bytes, size_t size);

/* Until something happens to one of the lines (how many of them), or until `deadline` (0). */
int bl_poll_until(struct pollfd *lines, nfds_t count, int64_t deadline);

#endif
