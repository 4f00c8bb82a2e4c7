/* Frames of CAN (ISO 11898-1:2015): their bits on the wire, and their place in the arbitration. */
#ifndef BIELLA_CAN_FRAME_H
#define BIELLA_CAN_FRAME_H

#include <stdbool.h>
#include <stdint.h>

enum { CAN_LARGEST_DATA = 64, CAN_INTERMISSION = 3, CAN_SUSPENSION = 8, CAN_END_OF_FRAME = 7, CAN_ERROR_FRAME = 6 + 8 };

/* `is_fd`: a CAN FD frame, which has `switches_rate` and `is_passive` (ESI); else it may be remote. */
typedef struct {
    uint32_t identifier;
    uint16_t size;
    bool is_extended, is_remote, is_fd, switches_rate, is_passive;
    unsigned char data[CAN_LARGEST_DATA];
} bl_can_frame;

/* Bits from the start of the frame to the last bit of its end, with those that are stuffed, at the two rates. */
typedef struct {
    int32_t nominal, fast;
} bl_can_bits;

bool bl_can_is_valid(const bl_can_frame *frame);
bl_can_bits bl_can_count_bits(const bl_can_frame *frame);
/* Of two frames that begin at the same time, the one with the smaller rank wins. */
uint32_t bl_can_rank(const bl_can_frame *frame);
/* Bits up to the end of the arbitration field, with those that are stuffed before its last one. */
int32_t bl_can_arbitration_bits(const bl_can_frame *frame);

#endif
