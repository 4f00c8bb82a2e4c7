/* CAN operations of FMI-LS-BUS 1.0 as bytes: a code and a length of 4 bytes each, then their arguments. Numbers are little-endian. */
#ifndef BIELLA_CAN_OPERATIONS_H
#define BIELLA_CAN_OPERATIONS_H

#include "fmu/standards/can_frame.h"

enum { CAN_OPERATION_HEAD = 8 };
enum {
    CAN_FORMAT_ERROR = 0x01,
    CAN_TRANSMIT = 0x10,
    CAN_FD_TRANSMIT = 0x11,
    CAN_XL_TRANSMIT = 0x12,
    CAN_CONFIRM = 0x20,
    CAN_ARBITRATION_LOST = 0x30,
    CAN_BUS_ERROR = 0x31,
    CAN_CONFIGURATION = 0x40,
    CAN_STATUS = 0x41,
    CAN_WAKEUP = 0x42
};

/* An operation that is built: begin, add arguments, end. */
typedef struct {
    unsigned char bytes[32 + CAN_LARGEST_DATA];
    uint32_t size;
} bl_can_operation;

uint32_t bl_can_read_number(const unsigned char *at, int32_t size);
bl_can_operation bl_can_begin(uint32_t code);
void bl_can_add(bl_can_operation *o, uint32_t value, int32_t size);
void bl_can_end(bl_can_operation *o);

/* The operation that sends a frame. */
bl_can_operation bl_can_write_frame(const bl_can_frame *f);
/* Reads the frame of such an operation of `length` bytes; false: it is damaged. */
bool bl_can_read_frame(const unsigned char *operation, uint32_t length, bl_can_frame *f);
/* The length of the next operation in `rest` bytes; 0: they are damaged. */
uint32_t bl_can_next_length(const unsigned char *at, uint32_t rest);

#endif
