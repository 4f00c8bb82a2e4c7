/* Lines of numbers, as text: "1.5,-2e3,0*4B\n". */
#ifndef BIELLA_TEXT_H
#define BIELLA_TEXT_H

#include "scheduler/devices/device.h"

enum { BL_TEXT_ROOM = 8191 }; /* bytes of a line, at most; 255 values of 17 digits have room */

/* Received part of a line. */
typedef struct {
    char bytes[BL_TEXT_ROOM + 1];
    size_t length;
    bool spoilt; /* longer than any line */
    bool begun;  /* an end of line was received: bytes before it may be a partial line, neither data nor an error */
} bl_lines;

/* Reads a line (without its end) of just `count` numbers, with a checksum if it has one, or must have: 1, else 0 with nothing
   certain in `values`. The byte after the line must be writable. */
BL_API int bl_text_read(char *line, size_t length, int32_t count, int checksum, double *values);
/* Writes a line with its end; its length. `line` has BL_TEXT_ROOM bytes. */
BL_API size_t bl_text_write(const double *values, int32_t count, int wide, int checksum, char *line);
/* Takes bytes of a serial line into d (received, sequence); how many lines were accepted. */
int bl_text_feed(bl_lines *s, bl_device *d, int checksum, const uint8_t *bytes, size_t size);

#endif
