/* What another process (the guard) needs to send safe values to a device when this one has died, in shared memory.
 *
 * The thread that has acquired the device writes it after each frame. The writer fills the state that is not current and
 * then makes it current, so that a state is whole wherever the writer was killed. */
#ifndef BIELLA_SAFE_LINE_H
#define BIELLA_SAFE_LINE_H

#include <stdatomic.h>

#include "scheduler/devices/device.h"
#include "scheduler/devices/wire/link.h"

enum { BL_LINE_DATAGRAM, BL_LINE_STREAM, BL_LINE_TEXT };
enum { BL_LINE_ADDRESS = 128 };

struct bl_line_state {
    int32_t kind;  /* BL_LINE_ */
    int32_t flags; /* of text: BL_WIRE_ */
    bl_link link;  /* of frames */
    uint32_t last_sent;
    uint32_t peer_length; /* of the address of an unconnected socket; 0: connected */
    uint8_t peer[BL_LINE_ADDRESS];
};

struct bl_safe_line {
    char name[64];
    int32_t in_count, out_count;
    atomic_int tripped;           /* by the guard before it sends; cleared by the run when it is armed again */
    double safe[BL_FRAME_VALUES]; /* raw */
    atomic_int descriptor;        /* in the process of the run; -1: none */
    atomic_uint generation;       /* of the descriptor */
    atomic_uint current;          /* states[current % 2] is valid; 0: none yet */
    bl_line_state states[2];
    atomic_uint guard_sequence; /* of the last frame of the guard; the run continues after it */
    atomic_int guard_has_sent;
};

/* Fills what does not change, and publishes the first state. False: the driver cannot be guarded. */
bool bl_safe_line_share(bl_device *d, bl_safe_line *line);
/* Publishes the state of a device that is shared; does nothing for others. */
void bl_safe_line_publish(bl_device *d);
/* Lets the sequence of a shared device follow frames of the guard. */
void bl_safe_line_follow(bl_device *d);
/* Whether the guard may have sent. To be asked when the sequence of a live frame is chosen: if the guard trips later, even
   while this process is stopped, its frames have later numbers, and the device drops the live one. */
bool bl_safe_line_is_tripped(const bl_device *d);
/* A copy of the valid state; false if there is none. */
bool bl_safe_line_read(const bl_safe_line *line, bl_line_state *state);
/* A device of the guard that sends to that line through `descriptor`, which it does not own; NULL: no memory. Its frames
   follow all that the run may have sent. */
bl_device *bl_safe_line_open(const bl_safe_line *line, const bl_line_state *state, int descriptor);

#endif
