/* ATmega328P: bytes come in by interrupt into a ring, go out by polling; timer 1 counts milliseconds; the board sleeps
 * in between. The LED of an Uno (PB5) is on while the host is in control. */
#ifndef UNO_H
#define UNO_H

#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

#ifndef BAUD
#define BAUD 1000000UL
#endif
static volatile uint8_t ring[256], ring_head; /* indices wrap by themselves; holds what comes while an answer leaves */
static uint8_t ring_tail;
static volatile uint8_t ticks;
static uint8_t ticks_seen;

ISR(USART_RX_vect) {
    const uint8_t head = ring_head, byte = UDR0;
    ring[head] = byte; /* if it is full, all of it is lost, and frames that lack bytes will be refused by their CRC */
    ring_head = (uint8_t)(head + 1u);
}

ISR(TIMER1_COMPA_vect) { ticks++; }

static void board_start(void) {
    UCSR0A = 1 << U2X0;
    UBRR0 = (uint16_t)((F_CPU / 4 / BAUD - 1) / 2);
    UCSR0B = 1 << RXEN0 | 1 << TXEN0 | 1 << RXCIE0;
    UCSR0C = 1 << UCSZ01 | 1 << UCSZ00; /* 8 bits, no parity, 1 stop bit */
    TCCR1A = 0;
    TCCR1B = 1 << WGM12 | 1 << CS11 | 1 << CS10; /* clear on compare, clock / 64 */
    OCR1A = (uint16_t)(F_CPU / 64 / 1000 - 1);
    TIMSK1 = 1 << OCIE1A;
    DDRB |= 1 << DDB5;
    set_sleep_mode(SLEEP_MODE_IDLE);
    sei();
}

#if BIELLA_AUTH
#include "boot_counter.h"

static void board_boot(uint8_t *boot) {
    const uint32_t number = count_boot();
    memset(boot, 0, 16);
    memcpy(boot, &number, sizeof number);
}
#endif

/* Takes bytes until a frame is complete (what biella_feed gives), or none is left: 0. */
static uint8_t board_receive(biella_device *d) {
    while (ring_tail != ring_head) {
        const uint8_t byte = ring[ring_tail++], result = biella_feed(d, byte);
        if (result) return result;
    }
    return 0;
}

static void board_send(biella_device *d, const float *values) {
    uint8_t bytes[BIELLA_WIRE_SIZE];
    const uint16_t length = biella_encode(d, values, bytes);
    for (uint16_t k = 0; k < length; k++) {
        while (!(UCSR0A & 1 << UDRE0)) continue;
        UDR0 = bytes[k];
    }
}

/* Milliseconds since it was asked last. */
static uint8_t board_elapsed(void) {
    const uint8_t passed = (uint8_t)(ticks - ticks_seen);
    ticks_seen = (uint8_t)(ticks_seen + passed);
    return passed;
}

/* Sleeps until an interrupt, unless one has already brought something: `sei` lets one more instruction pass. */
static void board_wait(void) {
#ifndef NO_SLEEP /* QEMU 7.2 never wakes up */
    cli();
    if (ring_tail == ring_head && ticks == ticks_seen) {
        sleep_enable();
        sei();
        sleep_cpu();
        sleep_disable();
    }
    sei();
#endif
}

static void board_show(uint8_t running) {
    if (running) PORTB |= 1 << PORTB5;
    else PORTB &= (uint8_t)~(1 << PORTB5);
}

#endif
