/* CAN operations of FMI-LS-BUS as packed structures, by the tables of the standard: written to a buffer for comparison. */
#include <stdint.h>
#include <string.h>

#pragma pack(1)
typedef struct {
    uint32_t code, length;
} head;
typedef struct {
    head head;
    uint32_t id;
    uint8_t ide, rtr;
    uint16_t size;
    uint8_t data[3];
} can;
typedef struct {
    head head;
    uint32_t id;
    uint8_t ide, brs, esi;
    uint16_t size;
    uint8_t data[12];
} can_fd;
typedef struct {
    head head;
    uint32_t id;
    uint8_t ide, sec, sdt, vcid;
    uint32_t af;
    uint16_t size;
    uint8_t data[1];
} can_xl;
typedef struct {
    head head;
    uint32_t id;
} with_id;
typedef struct {
    head head;
    uint32_t id;
    uint8_t error, flag, is_sender;
} bus_error;
typedef struct {
    head head;
    uint8_t parameter;
    uint32_t baudrate;
} baudrate;
typedef struct {
    head head;
    uint8_t parameter, behavior;
} behavior;
typedef struct {
    head head;
    uint8_t status;
} status;
typedef struct {
    head head;
    uint16_t size;
    uint8_t data[2];
} format_error;
#pragma pack()

#define PUT(value) \
    do { \
        memcpy(out + size, &(value), sizeof(value)); \
        size += sizeof(value); \
    } while (0)
#define HEAD(code, type) {code, (uint32_t)sizeof(type)}

size_t write_operations(uint8_t *out) {
    size_t size = 0;
    const can a = {HEAD(0x10, can), 0x7ff, 0, 0, 3, {1, 0, 255}};
    const can_fd b = {HEAD(0x11, can_fd), 0x1fffffff, 1, 1, 0, 12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};
    const can_xl c = {HEAD(0x12, can_xl), 0x123, 0, 1, 3, 4, 0xdeadbeef, 1, {9}};
    const with_id d = {HEAD(0x20, with_id), 0x7ff}, e = {HEAD(0x30, with_id), 0x100};
    const bus_error f = {HEAD(0x31, bus_error), 0x15, 4, 2, 1};
    const baudrate g = {HEAD(0x40, baudrate), 1, 500000};
    const behavior h = {HEAD(0x40, behavior), 4, 2};
    const status i = {HEAD(0x41, status), 3};
    const head j = {0x42, 8};
    const format_error k = {HEAD(0x01, format_error), 2, {0xab, 0}};
    PUT(a);
    PUT(b);
    PUT(c);
    PUT(d);
    PUT(e);
    PUT(f);
    PUT(g);
    PUT(h);
    PUT(i);
    PUT(j);
    PUT(k);
    return size;
}
