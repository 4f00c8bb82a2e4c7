/* Runs an ATmega328P at 16 MHz on libsimavr and copies its serial output to ours until it says whether all was good. */
#include <stdio.h>
#include <string.h>

#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>

static void print_byte(avr_irq_t *irq, uint32_t value, void *context) {
    static const char *const last = "good ";
    size_t *found = context;
    (void)irq;
    putchar((int)value);
    if (last[*found]) *found = (int)value == last[*found] ? *found + 1 : 0;
    else if (value == '\n') *found = strlen(last) + 1;
}

int main(int count, char **arguments) {
    elf_firmware_t firmware;
    size_t found = 0;
    uint32_t flags = 0;
    memset(&firmware, 0, sizeof firmware);
    if (count != 2 || elf_read_firmware(arguments[1], &firmware) != 0) return 1;
    avr_t *avr = avr_make_mcu_by_name("atmega328p");
    if (!avr || avr_init(avr) != 0) return 1;
    avr->frequency = 16000000;
    avr_load_firmware(avr, &firmware);
    avr_ioctl(avr, AVR_IOCTL_UART_GET_FLAGS('0'), &flags);
    flags &= ~(uint32_t)AVR_UART_FLAG_STDIO;
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT), print_byte, &found);
    while (found <= strlen("good ")) {
        const int state = avr_run(avr);
        if (state == cpu_Done || state == cpu_Crashed || avr->cycle > 100000000) return 1;
    }
    return 0;
}
