/* Keyed BLAKE2s-256 (RFC 7693), as the message authentication code of frames. Pure functions on bytes, whose time depends on
 * sizes only: no branch and no index depends on a key or on what is authenticated. */
#ifndef BIELLA_BLAKE2S_H
#define BIELLA_BLAKE2S_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/engine/biella.h"

enum { BL_MAC_KEY = 32, BL_MAC_SIZE = 32, BL_MAC_TAG = 16, BL_MAC_BLOCK = 64 };

/* A key as it is used: the state of BLAKE2s behind the block that contains the key, which is the same for all messages. */
typedef struct {
    uint32_t state[8];
} bl_mac_key;

/* `key` has BL_MAC_KEY bytes. */
BL_API void bl_mac_set_key(bl_mac_key *to, const uint8_t *key);
/* The code of a message of at least one byte: BL_MAC_SIZE bytes, of which a tag is the first BL_MAC_TAG. */
BL_API void bl_mac(const bl_mac_key *key, const uint8_t *bytes, size_t size, uint8_t *code);
/* Whether `tag` (BL_MAC_TAG bytes) is that of the message. */
bool bl_mac_fits(const bl_mac_key *key, const uint8_t *bytes, size_t size, const uint8_t *tag);
/* Overwrites a secret, also where the compiler knows that nobody reads it again. */
void bl_wipe(void *secret, size_t size);

#endif
