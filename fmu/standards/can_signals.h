/* Signals in the data of CAN frames, as DBC files describe them. */
#ifndef BIELLA_CAN_SIGNALS_H
#define BIELLA_CAN_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

/* Flags of a message. */
enum { CAN_SENDS = 1, CAN_EXTENDED = 2, CAN_FD = 4, CAN_SWITCHES_RATE = 8 };
/* Flags of a signal. */
enum { CAN_BIG_ENDIAN = 1, CAN_SIGNED = 2, CAN_FLOAT = 4 };

/* value = offset + scale · raw. `start` is the place of the least significant bit or, if it is big-endian, of the most significant one:
   8 · byte + bit, where bit 7 is the most significant one of a byte. Values are from `minimum` to `maximum`. */
typedef struct {
    double scale, offset, minimum, maximum;
    uint16_t start;
    uint8_t length, flags;
} bl_can_signal;

/* Whether all bits are within `size` bytes. */
bool bl_can_signal_fits(const bl_can_signal *s, int32_t size);
/* The values that the bits and the limits of the signal can hold. */
void bl_can_signal_range(const bl_can_signal *s, double *lowest, double *highest);
uint64_t bl_can_signal_raw(const bl_can_signal *s, const unsigned char *data);
double bl_can_unpack(const bl_can_signal *s, const unsigned char *data);
/* Writes the bits of a value, rounded to the nearest raw one; false: it is out of range, and nothing was written. */
bool bl_can_pack(const bl_can_signal *s, double value, unsigned char *data);

#endif
