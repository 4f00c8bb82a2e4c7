#include "fmu/standards/can_operations.h"

#include <string.h>

uint32_t bl_can_read_number(const unsigned char *at, int32_t size) {
    uint32_t value = 0;
    for (int32_t k = size; k-- > 0;) value = value << 8 | at[k];
    return value;
}

void bl_can_add(bl_can_operation *o, uint32_t value, int32_t size) {
    for (int32_t k = 0; k < size; k++) o->bytes[o->size++] = (unsigned char)(value >> 8 * k & 0xFFu);
}

bl_can_operation bl_can_begin(uint32_t code) {
    bl_can_operation o = {.size = 0};
    bl_can_add(&o, code, 4);
    bl_can_add(&o, 0, 4);
    return o;
}

void bl_can_end(bl_can_operation *o) {
    const uint32_t size = o->size;
    o->size = 4;
    bl_can_add(o, size, 4);
    o->size = size;
}

bl_can_operation bl_can_write_frame(const bl_can_frame *f) {
    bl_can_operation o = bl_can_begin(f->is_fd ? CAN_FD_TRANSMIT : CAN_TRANSMIT);
    bl_can_add(&o, f->identifier, 4);
    bl_can_add(&o, f->is_extended, 1);
    if (f->is_fd) {
        bl_can_add(&o, f->switches_rate, 1);
        bl_can_add(&o, f->is_passive, 1);
    } else {
        bl_can_add(&o, f->is_remote, 1);
    }
    bl_can_add(&o, f->size, 2);
    memcpy(o.bytes + o.size, f->data, f->size);
    o.size += f->size;
    bl_can_end(&o);
    return o;
}

bool bl_can_read_frame(const unsigned char *o, uint32_t length, bl_can_frame *f) {
    const bool is_fd = bl_can_read_number(o, 4) == CAN_FD_TRANSMIT;
    const uint32_t head = is_fd ? 17 : 16;
    if (length < head) return false;
    *f = (bl_can_frame){
        .identifier = bl_can_read_number(o + CAN_OPERATION_HEAD, 4), .is_extended = o[12] != 0, .is_fd = is_fd};
    if (is_fd) {
        f->switches_rate = o[13] != 0;
        f->is_passive = o[14] != 0;
    } else {
        f->is_remote = o[13] != 0;
    }
    f->size = (uint16_t)bl_can_read_number(o + head - 2, 2);
    if (length != head + f->size || !bl_can_is_valid(f)) return false;
    memcpy(f->data, o + head, f->size);
    return true;
}

uint32_t bl_can_next_length(const unsigned char *at, uint32_t rest) {
    const uint32_t length = rest < CAN_OPERATION_HEAD ? 0 : bl_can_read_number(at + 4, 4);
    return length < CAN_OPERATION_HEAD || length > rest ? 0 : length;
}
