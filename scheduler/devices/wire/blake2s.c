#include "scheduler/devices/wire/blake2s.h"

#include <string.h>

/* Initial values (those of SHA-256) and message permutations: RFC 7693, sections 2.6 and 2.7. */
static const uint32_t IV[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
static const uint8_t SIGMA[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static uint32_t rotate(uint32_t word, int by) { return word >> by | word << (32 - by); }

static uint32_t load(const uint8_t *from) {
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

/* G of section 3.1: mixes two words of the message into a column or a diagonal of v. */
static void mix(uint32_t *v, int a, int b, int c, int d, uint32_t x, uint32_t y) {
    v[a] += v[b] + x;
    v[d] = rotate(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 12);
    v[a] += v[b] + y;
    v[d] = rotate(v[d] ^ v[a], 8);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 7);
}

/* F of section 3.2: one block into the state. `count`: all bytes so far, with those of the block. */
static void compress(uint32_t *state, const uint8_t *block, uint64_t count, bool last) {
    uint32_t v[16], m[16];
    for (int k = 0; k < 16; k++) m[k] = load(block + 4 * k);
    memcpy(v, state, 8 * sizeof *v);
    memcpy(v + 8, IV, sizeof IV);
    v[12] ^= (uint32_t)count;
    v[13] ^= (uint32_t)(count >> 32);
    if (last) v[14] = ~v[14];
    for (int round = 0; round < 10; round++) {
        const uint8_t *s = SIGMA[round];
        mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
        mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
        mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
        mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
        mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
        mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
        mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
        mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
    }
    for (int k = 0; k < 8; k++) state[k] ^= v[k] ^ v[k + 8];
}

void bl_mac_set_key(bl_mac_key *to, const uint8_t *key) {
    uint8_t block[BL_MAC_BLOCK] = {0};
    memcpy(block, key, BL_MAC_KEY);
    memcpy(to->state, IV, sizeof IV);
    to->state[0] ^= 0x01010000u | (uint32_t)BL_MAC_KEY << 8 | (uint32_t)BL_MAC_SIZE; /* parameters: section 2.5 */
    compress(to->state, block, BL_MAC_BLOCK, false);
    bl_wipe(block, sizeof block);
}

void bl_mac(const bl_mac_key *key, const uint8_t *bytes, size_t size, uint8_t *code) {
    uint32_t state[8];
    uint8_t block[BL_MAC_BLOCK] = {0};
    uint64_t count = BL_MAC_BLOCK; /* that of the key */
    memcpy(state, key->state, sizeof state);
    for (; size > BL_MAC_BLOCK; bytes += BL_MAC_BLOCK, size -= BL_MAC_BLOCK)
        compress(state, bytes, count += BL_MAC_BLOCK, false);
    if (size > 0) memcpy(block, bytes, size);
    compress(state, block, count + size, true);
    for (int k = 0; k < BL_MAC_SIZE; k++) code[k] = (uint8_t)(state[k / 4] >> 8 * (k % 4));
}

bool bl_mac_fits(const bl_mac_key *key, const uint8_t *bytes, size_t size, const uint8_t *tag) {
#ifdef BL_FUZZING /* no fuzzer finds a tag */
    (void)key, (void)bytes, (void)size, (void)tag;
    return true;
#else
    uint8_t code[BL_MAC_SIZE], difference = 0;
    bl_mac(key, bytes, size, code);
    for (int k = 0; k < BL_MAC_TAG; k++) difference |= code[k] ^ tag[k];
    return difference == 0;
#endif
}

void bl_wipe(void *secret, size_t size) {
    volatile uint8_t *byte = secret;
    while (size-- > 0) *byte++ = 0;
}
