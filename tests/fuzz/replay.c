/* Feeds files to a fuzz target, for compilers without libFuzzer: replay FILE …
 * Seeds (seed-*) are inputs that the target must accept; if it refuses most of them, the corpus has rotted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/* Of the sanitizers; absent in a build without them. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

static const char *current = "";
static void name_culprit(void) { fprintf(stderr, "while replaying %s\n", current); }

static uint8_t *read_whole(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;
    if (!file) return NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        const long length = ftell(file);
        rewind(file);
        /* A buffer of just this size, so that reading past its end is noticed. */
        bytes = length >= 0 ? malloc((size_t)length + (length == 0)) : NULL;
        *size = (size_t)length;
        if (bytes && fread(bytes, 1, *size, file) != *size) {
            free(bytes);
            bytes = NULL;
        }
    }
    fclose(file);
    return bytes;
}

int main(int argc, char **argv) {
    int seeds = 0, accepted_seeds = 0, accepted = 0;
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(name_culprit);
    for (int k = 1; k < argc; k++) {
        size_t size = 0;
        uint8_t *bytes = read_whole(argv[k], &size);
        if (!bytes) {
            fprintf(stderr, "cannot read %s\n", argv[k]);
            return 1;
        }
        current = argv[k];
        fuzz_accepted = 0;
        LLVMFuzzerTestOneInput(bytes, size);
        free(bytes);
        const char *name = strrchr(argv[k], '/');
        const int is_seed = strncmp(name ? name + 1 : argv[k], "seed-", 5) == 0;
        seeds += is_seed;
        accepted_seeds += is_seed && fuzz_accepted;
        accepted += fuzz_accepted;
    }
    fprintf(stderr, "%d files, %d accepted; of %d seeds %d accepted\n", argc - 1, accepted, seeds, accepted_seeds);
    if (2 * accepted_seeds <= seeds) {
        fprintf(stderr, "the corpus no longer fits the engine: python tests/fuzz/seeds.py\n");
        return 1;
    }
    return 0;
}
