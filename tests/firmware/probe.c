/* biella_device.h under a test: one command a line on stdin, one answer a line on stdout.
 *
 *   new TIMEOUT      feed HEX      datagram HEX      elapsed MS      encode VALUE...      pack VALUE...
 *
 * feed, datagram and elapsed answer with how often the call gave 1 and the state; encode and pack with the bytes in hex.
 *   narrow HIGH LOW  (hex)         crc HEX         key KEY BOOT  (hex, with BIELLA_AUTH: after new) */
#include <stdio.h>
#include <stdlib.h>

#include "biella_device.h"

static char text[1 << 16];
static uint8_t bytes[1 << 15];

static uint16_t read_hex(const char *from) {
    uint16_t count = 0;
    unsigned byte;
    while (sscanf(from + 2 * count, "%2x", &byte) == 1) bytes[count++] = (uint8_t)byte;
    return count;
}

static void print_state(const biella_device *d, int ones) {
    printf("%d %u %lu %u %u %u %u", ones, d->session, (unsigned long)d->sequence, d->flags, d->tripped,
           biella_is_safe(d), d->refused);
    for (int k = 0; k < BIELLA_RECEIVES; k++) printf(" %.17g", (double)d->values[k]);
    printf("\n");
}

/* A heap block of just the size, so that a byte too many is seen by the sanitizer. */
static void print_frame(biella_device *d, const char *from, int plain) {
    biella_real values[BIELLA_SENDS ? BIELLA_SENDS : 1];
    char *rest = (char *)(uintptr_t)from;
    for (int k = 0; k < BIELLA_SENDS; k++) values[k] = (biella_real)strtod(rest, &rest);
    uint8_t *room = malloc(plain ? BIELLA_SENT_SIZE : BIELLA_WIRE_SIZE);
    const uint16_t length = plain ? biella_pack(d, values, room) : biella_encode(d, values, room);
    for (uint16_t k = 0; k < length; k++) printf("%02x", room[k]);
    printf("\n");
    free(room);
}

int main(void) {
    biella_device *d = malloc(sizeof *d);
    setvbuf(stdout, NULL, _IOLBF, 0);
    biella_init(d, 100);
    while (fgets(text, sizeof text, stdin)) {
        const char *argument = strchr(text, ' ') ? strchr(text, ' ') + 1 : "";
        int ones = 0;
        if (!strncmp(text, "encode", 6) || !strncmp(text, "pack", 4)) {
            print_frame(d, argument, *text == 'p');
            continue;
        }
        if (!strncmp(text, "narrow", 6)) {
            char *rest;
            const uint32_t high = (uint32_t)strtoul(argument, &rest, 16);
            printf("%08lx\n", (unsigned long)biella_narrow(high, (uint32_t)strtoul(rest, NULL, 16)));
            continue;
        }
        if (!strncmp(text, "crc", 3)) {
            uint32_t crc = 0xFFFFFFFFu;
            for (uint16_t k = 0, count = read_hex(argument); k < count; k++) crc = biella_crc(crc, bytes[k]);
            printf("%08lx\n", (unsigned long)~crc & 0xFFFFFFFFul);
            continue;
        }
#if BIELLA_AUTH
        if (!strncmp(text, "key", 3)) {
            uint8_t key[32];
            read_hex(argument);
            memcpy(key, bytes, 32);
            read_hex(strchr(argument, ' ') + 1);
            biella_set_key(d, key, bytes);
            print_state(d, 0);
            continue;
        }
#endif
        if (!strncmp(text, "new", 3)) biella_init(d, (uint16_t)atoi(argument));
        else if (!strncmp(text, "feed", 4))
            for (uint16_t k = 0, count = read_hex(argument); k < count; k++) ones += biella_feed(d, bytes[k]);
        else if (!strncmp(text, "datagram", 8)) ones = biella_datagram(d, bytes, read_hex(argument));
        else if (!strncmp(text, "elapsed", 7)) ones = biella_elapsed(d, (uint8_t)atoi(argument));
        else return 1;
        print_state(d, ones);
    }
    free(d);
    return 0;
}
