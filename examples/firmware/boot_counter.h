/* The number of this boot, for biella_set_key(): in the first eight bytes of the EEPROM of an AVR, which last for 200,000 boots. */
#ifndef BOOT_COUNTER_H
#define BOOT_COUNTER_H

#include <avr/eeprom.h>
#include <stdint.h>

/* What follows the number of that place. 0: it is erased (all bits are 1), perhaps in part. */
static uint32_t boot_after(const uint32_t *place) {
    const uint32_t number = eeprom_read_dword(place);
    return number < 0xFF000000u ? number + 1u : 0u;
}

/* Greater than in all earlier boots that have got one, also if the power fails in between: of two places, the one with the
 * smaller number is written, so that the other keeps the greater one. */
static uint32_t count_boot(void) {
    uint32_t *const first = (uint32_t *)0, *const second = (uint32_t *)4;
    const uint32_t a = boot_after(first), b = boot_after(second);
    const uint32_t number = a > b ? a : b;
    eeprom_update_dword(a > b ? second : first, number);
    return number;
}

#endif
