/* A serial port: bytes in and out at once or not at all, and its return after it was unplugged. */
#ifndef BIELLA_PORT_H
#define BIELLA_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bl_port bl_port;

/* Raw, exclusive, empty, and what was in its buffers before is gone. NULL with the reason in `message`. Messages are separated by the
   byte `delimiter`. */
bl_port *bl_port_open(const char *path, int32_t baud, uint8_t delimiter, char *message, size_t message_size);
void bl_port_close(bl_port *p); /* NULL is fine */
/* How many bytes were read, 0 if there are none; negative, an errno with its sign changed, if the port is gone. */
int bl_port_read(bl_port *p, uint8_t *bytes, size_t room);
/* A whole message, or nothing of it: 0, -EAGAIN if the line is full, or as above. An urgent one takes the place of all that still waits. */
int bl_port_write(bl_port *p, const uint8_t *bytes, size_t size, bool urgent);
/* Until there is something to read (1), or until `deadline` (0). */
int bl_port_wait(bl_port *p, int64_t deadline);
/* 0 if a port that was gone is there again. A thread of its own tries, since opening a port can take a device seconds. */
int bl_port_reopen(bl_port *p);

#endif
