/* What authentication costs on a board: the time of a frame in and of one out, printed once. Compiled by authentication.py, for AVR
 * (cycles of timer 1, printed on the serial line) and for Cortex-M3 in QEMU (instructions, by -icount and SysTick; semihosting).
 * Two float32 come in and one goes out, as in pid_uno.c. */
#define BIELLA_RECEIVES 2
#define BIELLA_SENDS 1
#define BIELLA_CRC_TABLE 1
#include "biella_device.h"

#ifndef REPEATS
#define REPEATS 1
#endif

static biella_device device;

#ifdef __AVR__
#include <avr/interrupt.h>
#include <avr/io.h>
static volatile uint16_t wraps;
ISR(TIMER1_OVF_vect) { wraps++; }
static void start_clock(void) {
    TCCR1A = 0;
    TCCR1B = 1 << CS10;
    TIMSK1 = 1 << TOIE1;
    UCSR0A = 1 << U2X0;
    UBRR0 = 16;
    UCSR0B = 1 << TXEN0;
    sei();
}
static uint32_t get_time(void) {
    cli();
    const uint16_t low = TCNT1;
    const uint32_t high = wraps + (low < 0x8000 && (TIFR1 & 1 << TOV1) ? 1u : 0u);
    sei();
    return high << 16 | low;
}
static void put(char c) {
    while (!(UCSR0A & 1 << UDRE0)) continue;
    UDR0 = (uint8_t)c;
}
static void end(void) {
    for (;;) continue;
}
static const uint32_t unit = 1;
#else
/* SysTick of mps2-an385: 25 MHz, so 40 instructions of -icount shift=0 each. It counts down from 2^24. */
#define SYSTICK ((volatile uint32_t *)0xE000E010u)
static void start_clock(void) {
    SYSTICK[1] = 0xFFFFFF;
    SYSTICK[2] = 0;
    SYSTICK[0] = 5;
}
static uint32_t get_time(void) { return 0xFFFFFFu - SYSTICK[2]; }
static void call_host(uint32_t operation, const void *argument) {
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}
static void put(char c) { call_host(3, &c); }
static void end(void) { call_host(0x18, (const void *)0x20026); }
static const uint32_t unit = 40;
int main(void);
extern uint32_t top_of_stack;
__attribute__((section(".vectors"), used)) static void *const vectors[] = {(void *)0x20010000, (void *)main};
#endif

static void print(const char *name, uint32_t number) {
    char digits[11];
    uint8_t k = 0;
    while (*name) put(*name++);
    put(' ');
    do digits[k++] = (char)('0' + number % 10);
    while (number /= 10);
    while (k) put(digits[--k]);
    put('\n');
}

/* Frames that the board itself has written, with the directions exchanged. */
static uint8_t frame[BIELLA_SENT_SIZE + BIELLA_RECEIVED_SIZE], out[BIELLA_WIRE_SIZE];
static uint16_t make_frame(uint32_t sequence) {
    const uint16_t length = BIELLA_HEADER + 8u;
    memset(frame, 0, sizeof frame);
    frame[0] = BIELLA_VERSION;
    frame[2] = 2;
    frame[4] = 0x34;
    frame[8] = (uint8_t)sequence;
    frame[9] = (uint8_t)(sequence >> 8);
#if BIELLA_AUTH
    uint8_t code[32];
    biella_mac(&device.incoming, frame, length, code);
    memcpy(frame + length, code, 16);
#else
    uint32_t crc = 0xFFFFFFFFu;
    for (uint16_t k = 0; k < length; k++) crc = biella_crc(crc, frame[k]);
    crc = ~crc;
    for (uint16_t k = 0; k < 4; k++) frame[length + k] = (uint8_t)(crc >> 8 * k);
#endif
    return length + BIELLA_END;
}

int main(void) {
    const biella_real values[1] = {1.5f};
    uint32_t in = 0, reply = 0;
    uint8_t good = 1;
    start_clock();
    biella_init(&device, 100);
#if BIELLA_AUTH
    static uint8_t key[32] = {1, 2, 3}, boot[16] = {1};
    biella_set_key(&device, key, boot);
    biella_absorb_key(&device.incoming, key);
    biella_absorb_key(&device.outgoing, key);
    device.session = 0x34;
#endif
    for (uint16_t k = 1; k <= REPEATS; k++) {
        const uint16_t length = make_frame(k);
        uint32_t begin = get_time();
        good &= biella_datagram(&device, frame, length);
        in += (get_time() - begin) & 0xFFFFFFu;
        begin = get_time();
        biella_encode(&device, values, out);
        reply += (get_time() - begin) & 0xFFFFFFu;
    }
#if BIELLA_AUTH
    uint32_t hello = get_time();
    memset(frame, 0, BIELLA_HELLO);
    frame[0] = BIELLA_VERSION;
    frame[1] = 0x80;
    frame[16] = 9;
    memcpy(frame + 32, device.nonce, 16);
    uint8_t code[32];
    biella_mac(&device.shared, frame, 48, code);
    memcpy(frame + 48, code, 16);
    device.flags = BIELLA_SAFE;
    hello = get_time();
    good &= biella_datagram(&device, frame, BIELLA_HELLO) == BIELLA_REPLY && device.session == 9;
    biella_encode(&device, values, out);
    hello = (get_time() - hello) & 0xFFFFFFu;
    print("handshake", hello * unit);
#endif
    print("in", in * unit / REPEATS);
    print("out", reply * unit / REPEATS);
    print("good", good);
    end();
    return 0;
}
