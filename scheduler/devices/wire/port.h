/* A serial port with nonblocking input and output, and reopening after it was unplugged. */
#ifndef BIELLA_PORT_H
#define BIELLA_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bl_port bl_port;

/* Opens a port in raw, exclusive mode with flushed buffers. Returns NULL with the reason in `message`. Messages are
   separated by the byte `delimiter`. */
bl_port *bl_port_open(const char *path, int32_t baud, uint8_t delimiter, char *message, size_t message_size);
void bl_port_close(bl_port *p); /* NULL is fine */
/* How many bytes were read, 0 if there are none; negative, an errno with its sign changed, if the port is gone. */
int bl_port_read(bl_port *p, uint8_t *bytes, size_t room);
/* Sends a whole message or nothing: 0, -EAGAIN if the line is full, or as above. An urgent one replaces all pending ones. */
int bl_port_write(bl_port *p, const uint8_t *bytes, size_t size, bool urgent);
/* The descriptor of the port, for the guard; -1: gone. */
int bl_port_descriptor(const bl_port *p);
/* Until there is something to read (1), or until `deadline` (0). */
int bl_port_wait(bl_port *p, int64_t deadline);
/* Returns 0 if a lost port is open again. A separate thread reopens it, because opening a port can take seconds. */
int bl_port_reopen(bl_port *p);

#endif
