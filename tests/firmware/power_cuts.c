/* boot_counter.h on an EEPROM in memory, whose power fails now and then while it is written. Prints how many boots have got a
 * number; ends with 1 where a number is not greater than all before it. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "boot_counter.h"

enum { BOOTS = 600, WHOLE = 8 }; /* of these, the power does not fail after it has failed */

static uint8_t memory[8];
static jmp_buf power_fails;
static int left; /* bytes until the power fails; negative: it does not */
static int is_downward; /* the upper byte is written first */
static uint32_t noise;

static uint32_t draw(uint32_t below) {
    noise = noise * 1664525u + 1013904223u;
    return (noise >> 16) % below;
}

uint32_t eeprom_read_dword(const uint32_t *address) {
    uint32_t word = 0;
    for (int k = 3; k >= 0; k--) word = word << 8 | memory[(size_t)address + (size_t)k];
    return word;
}

static void write_bytes(size_t at, uint32_t word, int all) {
    for (int k = 0; k < 4; k++) {
        const int byte = is_downward ? 3 - k : k;
        const uint8_t wanted = (uint8_t)(word >> 8 * byte);
        if (!all && memory[at + (size_t)byte] == wanted) continue;
        if (left == 0) {
            if (draw(2)) memory[at + (size_t)byte] = 0xFF; /* erased, and not yet written */
            longjmp(power_fails, 1);
        }
        left--;
        memory[at + (size_t)byte] = wanted;
    }
}

void eeprom_update_dword(uint32_t *address, uint32_t word) { write_bytes((size_t)address, word, 0); }
void eeprom_write_dword(uint32_t *address, uint32_t word) { write_bytes((size_t)address, word, 1); }

static void begin(uint32_t number) {
    memset(memory, 0xFF, sizeof memory);
    left = -1;
    if (number == 0) return;
    write_bytes(0, number, 1);
    write_bytes(4, number - 1u, 1);
}

int main(void) {
    static const uint32_t starts[] = {0, 200, 65400};
    static int64_t newest;
    static int counted, whole;
    for (uint32_t trial = 0; trial < 600; trial++) {
        noise = trial;
        begin(starts[trial % 3]);
        newest = (int64_t)starts[trial % 3] - 1 + (trial % 3 != 0);
        is_downward = trial % 2;
        for (volatile int boot = 0; boot < BOOTS; boot++) {
            left = ++whole > WHOLE && draw(4) == 0 ? (int)draw(3) : -1;
            if (setjmp(power_fails)) {
                whole = 0;
                continue;
            }
            const int64_t number = count_boot();
            if (number <= newest) return 1;
            newest = number;
            counted++;
        }
    }
    printf("%d\n", counted);
    return 0;
}
