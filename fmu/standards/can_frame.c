/* The bits of CAN and CAN FD frames. A classical frame is stuffed from its start to the end of its CRC, which decides on the number of
 * stuffed bits; a frame of CAN FD to the end of its data, after which stuff bits have fixed places. The rate of a frame that switches it
 * is the fast one from the bit after BRS to the last bit of the CRC: the switch within the bits BRS and CRC delimiter is at their
 * borders here. */
#include "fmu/standards/can_frame.h"

enum {
    LARGEST_BITS = 1 + 32 + 9 + 8 * CAN_LARGEST_DATA + 15, /* without stuffed ones */
    CRC_15 = 0x4599, /* x^15 + x^14 + x^10 + x^8 + x^7 + x^4 + x^3 + 1 */
    ENDING = 1 + 2 + CAN_END_OF_FRAME, /* CRC delimiter, acknowledgment and its delimiter, end of frame */
    FD_SHORT_CRC = 4 + 17 + 6, /* stuff count, CRC, fixed stuff bits: one before them and after each 4 */
    FD_LONG_CRC = 4 + 21 + 7,
    FD_SHORT_DATA = 16, /* up to which the CRC is the short one */
};

typedef struct {
    int32_t count;
    unsigned char bits[LARGEST_BITS];
} bit_string;

static void put(bit_string *s, uint32_t value, int32_t count) {
    while (count-- > 0) s->bits[s->count++] = (unsigned char)(value >> count & 1u);
}

/* The length code of CAN FD; of CAN, whose codes above 8 mean 8, the size. */
static uint32_t length_code(uint16_t size) {
    static const uint16_t SIZES[] = {12, 16, 20, 24, 32, 48, 64};
    if (size <= 8) return size;
    uint32_t code = 9;
    while (SIZES[code - 9] < size) code++;
    return code;
}

bool bl_can_is_valid(const bl_can_frame *f) {
    if (f->identifier >= (f->is_extended ? UINT32_C(1) << 29 : UINT32_C(1) << 11)) return false;
    if (!f->is_fd) return f->size <= 8;
    static const uint16_t LARGER[] = {12, 16, 20, 24, 32, 48, 64};
    for (int k = 0; k < 7; k++)
        if (f->size == LARGER[k]) return true;
    return f->size <= 8;
}

static void put_crc(bit_string *s) {
    uint32_t crc = 0;
    for (int32_t k = 0; k < s->count; k++) {
        const uint32_t feedback = s->bits[k] ^ (crc >> 14 & 1u);
        crc = crc << 1 & 0x7FFFu;
        if (feedback) crc ^= CRC_15;
    }
    put(s, crc, 15);
}

/* Bits stuffed after one before number `from` and from there on: a sixth bit of the same value never occurs. */
static void count_stuffed(const bit_string *s, int32_t from, bool at_end, int32_t stuffed[2]) {
    unsigned char last = 2;
    int32_t run = 0;
    stuffed[0] = stuffed[1] = 0;
    for (int32_t k = 0; k < s->count; k++) {
        run = s->bits[k] == last ? run + 1 : 1;
        last = s->bits[k];
        if (run < 5 || (k + 1 == s->count && !at_end)) continue;
        stuffed[k >= from]++;
        last = !last;
        run = 1;
    }
}

/* From the start of the frame to the bit that tells a remote frame. */
static void put_arbitration(bit_string *s, const bl_can_frame *f) {
    put(s, 0, 1); /* start of frame */
    if (f->is_extended) {
        put(s, f->identifier >> 18, 11);
        put(s, 3, 2); /* SRR, IDE */
        put(s, f->identifier & 0x3FFFFu, 18);
    } else {
        put(s, f->identifier, 11);
    }
    put(s, f->is_remote && !f->is_fd, 1);
}

bl_can_bits bl_can_count_bits(const bl_can_frame *f) {
    bit_string s = {0};
    int32_t stuffed[2], fast_from = LARGEST_BITS;
    put_arbitration(&s, f);
    if (!f->is_extended) put(&s, 0, 1); /* IDE */
    if (f->is_fd) {
        put(&s, 2, 2); /* FDF, reserved */
        put(&s, f->switches_rate, 1);
        fast_from = f->switches_rate ? s.count : LARGEST_BITS;
        put(&s, f->is_passive, 1);
    } else {
        put(&s, 0, f->is_extended ? 2 : 1); /* reserved */
    }
    put(&s, length_code(f->size), 4);
    for (uint16_t k = 0; k < f->size && !(f->is_remote && !f->is_fd); k++) put(&s, f->data[k], 8);
    if (!f->is_fd) {
        put_crc(&s);
        count_stuffed(&s, fast_from, true, stuffed);
        return (bl_can_bits){s.count + stuffed[0] + stuffed[1] + ENDING, 0};
    }
    count_stuffed(&s, fast_from, false, stuffed);
    const int32_t crc = f->size <= FD_SHORT_DATA ? FD_SHORT_CRC : FD_LONG_CRC;
    if (!f->switches_rate) return (bl_can_bits){s.count + stuffed[0] + stuffed[1] + crc + ENDING, 0};
    return (bl_can_bits){fast_from + stuffed[0] + ENDING, s.count - fast_from + stuffed[1] + crc};
}

/* The bits that are compared: identifier, RTR (or SRR), IDE, the rest of the identifier, RTR. */
uint32_t bl_can_rank(const bl_can_frame *f) {
    const uint32_t remote = f->is_remote && !f->is_fd;
    if (!f->is_extended) return f->identifier << 21 | remote << 20;
    return (f->identifier >> 18) << 21 | 3u << 19 | (f->identifier & 0x3FFFFu) << 1 | remote;
}

int32_t bl_can_arbitration_bits(const bl_can_frame *f) {
    bit_string s = {0};
    int32_t stuffed[2];
    put_arbitration(&s, f);
    count_stuffed(&s, LARGEST_BITS, false, stuffed);
    return s.count + stuffed[0];
}
