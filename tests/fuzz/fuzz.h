/* What a fuzz target has: the entry point that libFuzzer calls, and replay.c too. */
#ifndef BIELLA_FUZZ_H
#define BIELLA_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Set by a target when an input got past the door: replay.c notices a corpus that no longer fits. */
extern int fuzz_accepted;

#endif
