/* Common part of serial ports and sockets: complete messages over a line that accepts partial writes, and polling. */
#ifndef BIELLA_OUTBOX_H
#define BIELLA_OUTBOX_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { BL_MESSAGE_ROOM = 8192 }; /* bytes of one message, at most */

/* Bytes not yet written: the rest of a partly sent message, and optionally an urgent message behind it. */
typedef struct {
    uint8_t bytes[2 * BL_MESSAGE_ROOM + 1];
    size_t from, to;
    size_t begun; /* end of the partly sent message; 0: no pending message is partly sent */
} bl_outbox;

typedef ssize_t (*bl_put)(int fd, const void *bytes, size_t size); /* write or an equivalent */

/* Forgets all that waits. */
void bl_outbox_clear(bl_outbox *o);
/* Writes as many pending bytes as the line accepts: 0 if none are left, -EAGAIN if some are, or another negative errno. */
int bl_outbox_push(bl_outbox *o, int fd, bl_put put);
/* A message, and before it the byte `before` unless that is negative, where nothing waits. 0 if it is out or has begun; else nothing of it
   stays: -EAGAIN if the line is full, or as above. */
int bl_outbox_begin(bl_outbox *o, int fd, bl_put put, int before, const uint8_t *bytes, size_t size);
/* Queues a message behind the partly sent one; it replaces any other queued message. */
void bl_outbox_follow(bl_outbox *o, const uint8_t *bytes, size_t size);

/* Until something happens to one of the lines (how many of them), or until `deadline` (0). */
int bl_poll_until(struct pollfd *lines, nfds_t count, int64_t deadline);

#endif
