/* An ATmega328P with its serial port on a pseudo-terminal, on libsimavr, which counts every cycle and every bit of the line:
 *
 *   cc -O2 -o emulator emulator.c -lsimavr && ./emulator pid_uno.elf
 *
 * It prints the path of the terminal and, when it is asked to end (SIGTERM), the numbers of bytes and cycles, and the longest time
 * in us from a byte that came in to the next that went out: how long an answer takes. The board's time is held to the wall clock;
 * where this machine is too slow or stalls, the board's time stands still: it never hurries after. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>
#include <simavr/sim_interrupts.h>

enum { RECEIVE_INTERRUPT = 18, CYCLES_PER_US = 16, LOOK_EVERY = 20 * CYCLES_PER_US, LAG_US = 2000 };

static volatile sig_atomic_t is_over;

typedef struct {
    avr_t *avr;
    avr_irq_t *serial;
    int line, is_full;
    uint8_t waiting[256]; /* bytes read from the line that the chip has no room for yet */
    ssize_t count, next;
    long received, sent, dropped;
    avr_cycle_count_t received_at, answer; /* of the byte that has not been answered, 0: none; the longest so far */
    double origin; /* wall clock minus the board's, in us */
} emulator;

static emulator board; /* simavr's callback for sleep has no argument to carry it */

static void end(int number) {
    (void)number;
    is_over = 1;
}

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static int nobody_listens(const emulator *e) {
    struct pollfd state = {.fd = e->line};
    return poll(&state, 1, 0) == 1 && (state.revents & POLLHUP);
}

static void take_byte(avr_irq_t *irq, uint32_t value, void *context) {
    emulator *e = context;
    const uint8_t byte = (uint8_t)value;
    const avr_cycle_count_t passed = e->received_at ? e->avr->cycle - e->received_at : 0;
    (void)irq;
    if (passed > e->answer) e->answer = passed;
    e->received_at = 0;
    if (!nobody_listens(e) && write(e->line, &byte, 1) == 1) e->sent++;
    else e->dropped++; /* as on a cable that leads nowhere */
}

static void note_receipt(avr_irq_t *irq, uint32_t is_running, void *context) {
    emulator *e = context;
    (void)irq;
    if (is_running) e->received_at = e->avr->cycle;
}

static void set_full(avr_irq_t *irq, uint32_t value, void *context) {
    (void)irq, (void)value;
    ((emulator *)context)->is_full = 1;
}

static void set_free(avr_irq_t *irq, uint32_t value, void *context) {
    (void)irq, (void)value;
    ((emulator *)context)->is_full = 0;
}

static avr_cycle_count_t look(avr_t *avr, avr_cycle_count_t when, void *context) {
    emulator *e = context;
    (void)avr;
    if (e->next == e->count) {
        e->next = 0;
        e->count = read(e->line, e->waiting, sizeof e->waiting);
        if (e->count < 0) e->count = 0;
    }
    while (e->next < e->count && !e->is_full) {
        avr_raise_irq(e->serial + UART_IRQ_INPUT, e->waiting[e->next++]);
        e->received++;
    }
    return when + LOOK_EVERY;
}

/* Called wherever the chip sleeps: waits until the wall clock has come as far, or a byte has. */
static void keep_time(avr_t *avr, avr_cycle_count_t cycles) {
    const double ahead = (double)(avr->cycle + cycles) / CYCLES_PER_US + board.origin - now_us();
    if (ahead < -LAG_US) board.origin -= ahead;
    if (ahead < 100.0) return;
    struct pollfd state = {.fd = board.line, .events = POLLIN};
    const struct timespec rest = {0, (long)(ahead * 1e3)};
    ppoll(&state, 1, &rest, NULL);
    if (state.revents & POLLHUP) usleep((useconds_t)ahead);
    else if (state.revents & POLLIN) board.origin = now_us() - (double)(avr->cycle + cycles) / CYCLES_PER_US;
}

static int open_terminal(void) {
    struct termios mode;
    const int line = posix_openpt(O_RDWR | O_NOCTTY);
    if (line < 0 || grantpt(line) || unlockpt(line) || tcgetattr(line, &mode)) return -1;
    cfmakeraw(&mode);
    tcsetattr(line, TCSANOW, &mode);
    /* A side that has never been opened looks open: open and close it, so that nothing is written to nobody. */
    close(open(ptsname(line), O_RDWR | O_NOCTTY));
    fcntl(line, F_SETFL, O_NONBLOCK);
    return line;
}

static avr_t *load(const char *path) {
    elf_firmware_t firmware;
    memset(&firmware, 0, sizeof firmware);
    avr_t *avr = avr_make_mcu_by_name("atmega328p");
    if (!avr || elf_read_firmware(path, &firmware)) return NULL;
    avr_init(avr);
    firmware.frequency = CYCLES_PER_US * 1000000u;
    avr_load_firmware(avr, &firmware);
    avr->log = LOG_ERROR;
    avr->sleep = keep_time;
    return avr;
}

static void connect_serial(emulator *e) {
    uint32_t flags = 0; /* neither echo on stdout nor sleep while the chip polls */
    avr_ioctl(e->avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    e->serial = avr_io_getirq(e->avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_INPUT);
    avr_irq_register_notify(e->serial + UART_IRQ_OUTPUT, take_byte, e);
    avr_irq_register_notify(e->serial + UART_IRQ_OUT_XOFF, set_full, e);
    avr_irq_register_notify(e->serial + UART_IRQ_OUT_XON, set_free, e);
    avr_irq_register_notify(avr_get_interrupt_irq(e->avr, RECEIVE_INTERRUPT) + AVR_INT_IRQ_RUNNING, note_receipt, e);
    avr_cycle_timer_register(e->avr, LOOK_EVERY, look, e);
}

int main(int count, char **arguments) {
    board.avr = count == 2 ? load(arguments[1]) : NULL;
    board.line = open_terminal();
    if (!board.avr || board.line < 0) {
        fprintf(stderr, "usage: emulator firmware.elf\n");
        return 1;
    }
    connect_serial(&board);
    signal(SIGTERM, end);
    signal(SIGINT, end);
    printf("%s\n", ptsname(board.line));
    fflush(stdout);
    board.origin = now_us();
    int state = cpu_Running;
    while (!is_over && state != cpu_Done && state != cpu_Crashed) state = avr_run(board.avr);
    printf("received %ld sent %ld dropped %ld cycles %llu answer %llu\n", board.received, board.sent, board.dropped,
           (unsigned long long)board.avr->cycle, (unsigned long long)board.answer / CYCLES_PER_US);
    return state == cpu_Crashed;
}
