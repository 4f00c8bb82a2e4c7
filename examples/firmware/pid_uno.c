/* A speed controller on an Arduino Uno (ATmega328P, 16 MHz) or any board with that chip, and on a PC for tests.
 *
 *   avr-gcc -mmcu=atmega328p -DF_CPU=16000000UL -std=c99 -O2 -Wall -Wextra -Werror -o pid_uno.elf pid_uno.c
 *   qemu-system-avr -M uno -bios pid_uno.elf -nographic -serial pty -monitor null      (with -DNO_SLEEP), or board.py
 *   avr-objcopy -O ihex pid_uno.elf pid_uno.hex && avrdude -p m328p -c arduino -P /dev/ttyACM0 -U flash:w:pid_uno.hex
 *   cc -DHOST -o pid_host pid_uno.c                                                     as a process: see host.h
 *
 * At 1 Mbaud a frame comes in within 0.30 ms, the answer begins 0.25 ms later (0.62 ms with -Os, which saves 1 kB of flash)
 * and takes 0.26 ms: 1 kHz. A USB adapter adds its own latency.
 *
 * A frame from the host holds the measurement and the reference; each is answered at once by one with the torque, so that
 * a run real-time by this device has one tick of delay in the loop, on any line and at any speed of the board.
 * Without a frame for TIMEOUT ms the torque is 0 and the controller is reset, until the host is back. While nobody is
 * there, a frame every BEACON ms says so: with session 0 if nobody has been there yet, else with the flag TRIPPED.
 *
 * With -DBIELLA_AUTH=1 -include rig_key.h (biella key rig.key --header rig_key.h) frames are authenticated. */
#ifdef HOST
#define _GNU_SOURCE /* pseudo-terminals */
#endif
#define BIELLA_RECEIVES 2
#define BIELLA_SENDS 1
#define BIELLA_CRC_TABLE 1
#include "biella_device.h"
#include "pid.h"

#ifdef HOST
#include "host.h"
#else
#include "uno.h"
#endif

#ifndef TIMEOUT
#define TIMEOUT 100
#endif
#define BEACON 50
#ifndef GAINS /* kp, ki, kd, filter_time, b, c, lower, upper, period */
#define GAINS 2.0f, 12.0f, 0.0f, 0.0f, 1.0f, 0.0f, -40.0f, 40.0f, 1e-3f
#endif

static const pid_gains gains = {GAINS};
static const float safe_torque = 0.0f;
static biella_device device;
static pid_state controller;
static uint8_t since_sent; /* ms */

static void reply(float torque) {
    board_send(&device, &torque);
    since_sent = 0;
}

static void rest(void) {
    memset(&controller, 0, sizeof controller);
    board_show(0);
    reply(safe_torque);
}

static void answer(void) {
    if (biella_is_safe(&device)) {
        rest();
        return;
    }
    board_show(1);
    reply(pid_step(&controller, &gains, device.values[1], device.values[0]));
}

static void pass(uint8_t milliseconds) {
    if (biella_elapsed(&device, milliseconds)) rest(); /* the host has gone just now */
    if (device.session != 0 && !device.tripped) return;
    since_sent = (uint8_t)(since_sent + milliseconds);
    if (since_sent >= BEACON) rest();
}

#if BIELLA_AUTH
static void set_key(void) {
    static const uint8_t key[32] = BIELLA_KEY;
    uint8_t boot[16];
    board_boot(boot);
    biella_set_key(&device, key, boot);
}
#else
static void set_key(void) {}
#endif

int main(void) {
    biella_init(&device, TIMEOUT);
    board_start();
    set_key();
    for (;;) {
        const uint8_t received = board_receive(&device);
        if (received == BIELLA_REPLY) board_send(&device, &safe_torque); /* a handshake: no sample of the controller */
        else if (received) answer();
        const uint8_t milliseconds = board_elapsed();
        if (milliseconds) pass(milliseconds);
        board_wait();
    }
}
