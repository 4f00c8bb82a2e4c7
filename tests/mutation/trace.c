/* Which basic blocks of the engine a test executes. Compiled into the library of a mutation run only; every
 * other file has -fsanitize-coverage=trace-pc, which calls `__sanitizer_cov_trace_pc` at the start of each block.
 *
 * A process writes what it has executed at its end, with the test that started it: FMUs and subprocesses count, too. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNTRACED __attribute__((no_sanitize_coverage))
#define EXPORTED __attribute__((visibility("default")))

extern const char __ehdr_start __attribute__((visibility("hidden")));
extern const char __etext __attribute__((visibility("hidden")));

static uint8_t hit[1 << 24];

UNTRACED EXPORTED void __sanitizer_cov_trace_pc(void);
UNTRACED EXPORTED int64_t bl_trace_take(uint32_t *addresses, int64_t capacity);

UNTRACED void __sanitizer_cov_trace_pc(void) {
    const uintptr_t at = (uintptr_t)__builtin_return_address(0) - (uintptr_t)&__ehdr_start;
    if (at < sizeof hit) hit[at] = 1;
}

/* Write the addresses executed since the last call, and forget them; returns their number. */
UNTRACED int64_t bl_trace_take(uint32_t *addresses, int64_t capacity) {
    int64_t count = 0;
    for (size_t at = 0; at < sizeof hit; at += 8) {
        uint64_t eight;
        memcpy(&eight, hit + at, 8);
        if (eight == 0) continue;
        for (size_t k = 0; k < 8; k++)
            if (hit[at + k] != 0 && count < capacity) addresses[count++] = (uint32_t)(at + k);
        memset(hit + at, 0, 8);
    }
    return count;
}

UNTRACED __attribute__((destructor)) static void write_at_end(void) {
    const char *folder = getenv("BIELLA_TRACE"), *test = getenv("PYTEST_CURRENT_TEST");
    if (!folder || !test) return;
    static uint32_t addresses[1 << 20];
    const int64_t count = bl_trace_take(addresses, 1 << 20);
    if (count == 0) return;
    char path[4096];
    snprintf(path, sizeof path, "%s/%d-%p.trace", folder, (int)getpid(), (const void *)&__ehdr_start);
    FILE *file = fopen(path, "ab");
    if (!file) return;
    fprintf(file, "%s\n%lld\n", test, (long long)count);
    fwrite(addresses, sizeof *addresses, (size_t)count, file);
    fclose(file);
}
