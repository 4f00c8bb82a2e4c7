/* Fuzzes the plan loader and short runs, hostile saved states included.
 *
 * An input is a plan. Its section FUZZ, which the engine does not know and so ignores, is a script for this
 * file: how many ticks to run, and which values of a saved state to replace before it is restored. The
 * library is compiled with BL_FUZZING, which leaves out the check of the hash.
 *
 * The mutator keeps head and directory consistent and changes cells of sections, because a plan with a wrong
 * offset is refused early and teaches nothing. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "scheduler/engine/engine.h"

enum { HEAD = 32, HEAD_COUNT = 12, HEAD_SIZE = 24 };
enum { ENTRY = 24, ENTRY_ELEMENT = 4, ENTRY_OFFSET = 8, ENTRY_LENGTH = 16 };
enum { LARGEST_TOTAL = 20000, LARGEST_WORK = 200000 };

int fuzz_accepted;

static uint32_t read_u32(const uint8_t *from) {
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static uint64_t read_u64(const uint8_t *from) {
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static void write_u64(uint8_t *to, uint64_t value) { memcpy(to, &value, sizeof value); }

/* The number of sections if the directory lies within the data, else 0. */
static uint32_t count_sections(const uint8_t *data, size_t size) {
    if (size < HEAD) return 0;
    const uint32_t count = read_u32(data + HEAD_COUNT);
    return count <= (size - HEAD) / ENTRY ? count : 0;
}

/* The bytes of section `n` as far as they lie within the data; NULL if they do not. */
static const uint8_t *section_bytes(const uint8_t *data, size_t size, uint32_t n, size_t *length, uint32_t *element) {
    const uint8_t *entry = data + HEAD + (size_t)n * ENTRY;
    const uint64_t offset = read_u64(entry + ENTRY_OFFSET), count = read_u64(entry + ENTRY_LENGTH);
    *element = read_u32(entry + ENTRY_ELEMENT);
    if (*element == 0 || *element > 8 || offset > size || count > (size - offset) / *element) return NULL;
    *length = (size_t)count * *element;
    return data + offset;
}

static const uint8_t *find_script(const uint8_t *data, size_t size, size_t *length) {
    const uint32_t sections = count_sections(data, size);
    for (uint32_t n = 0; n < sections; n++) {
        uint32_t element = 0;
        if (memcmp(data + HEAD + (size_t)n * ENTRY, "FUZZ", 4) == 0)
            return section_bytes(data, size, n, length, &element);
    }
    return NULL;
}

/* About how many values one pass over the calls touches. */
static int64_t estimate_calls(const bl_calls *calls) {
    int64_t work = 0;
    for (int64_t c = 0; c < calls->call_count; c++) {
        const bl_block *b = calls->calls[c].block;
        work += 1 + b->i_count + b->x_count + b->z_count;
        for (int32_t k = 0; k < b->u_count; k++) work += b->u_width[k];
        for (int32_t k = 0; k < b->y_count; k++) work += b->y_width[k];
        if (b->y_count > 0) work += b->p_count;
    }
    return work;
}

/* Large sizes are legal, and slow: they would be found again and again as a hang. */
static int is_quick(const bl_engine *e) {
    if (e->layout.total > LARGEST_TOTAL) return 0;
    int64_t loops = 0;
    for (int32_t k = 0; k < e->loop_count; k++)
        loops += estimate_calls(&e->loops[k].body) * 20 * (1 + e->loops[k].tear_count) +
                 (int64_t)e->loops[k].tear_count * e->loops[k].tear_count * e->loops[k].tear_count;
    int64_t minor = estimate_calls(&e->minor.calls) + estimate_calls(&e->derivatives);
    int64_t major =
        estimate_calls(&e->major.calls) + estimate_calls(&e->updates) + estimate_calls(&e->termination_checks);
    for (int64_t n = 0; n < e->minor.item_count; n++)
        if (e->minor.items[n].type == BL_ITEM_LOOP) minor += loops;
    for (int64_t n = 0; n < e->major.item_count; n++) {
        if (e->major.items[n].type == BL_ITEM_LOOP) major += loops;
        if (e->major.items[n].type == BL_ITEM_GUARD)
            major += e->layout.total + e->guard_count + (int64_t)e->block_count * 10;
    }
    const int implicit = e->solver == BL_BACKWARD_EULER || e->solver == BL_TRAPEZOIDAL;
    const int64_t n = e->layout.states;
    return major + minor * (implicit ? 12 * (2 + n) : 6) + (implicit ? 12 * n * n * n : 0) <= LARGEST_WORK;
}

/* Only where a tick is more than rounding, or a short way takes long. */
static void run_within_a_tick(bl_engine *e) {
    const bl_variable *variables = NULL;
    const int64_t count = bl_variables(e, &variables), last = e->layout.total - 1;
    if (!(bl_slack(e, bl_time(e)) < 0.1 * bl_step(e)) || last < 0) return;
    for (int64_t k = 0; k < count && k < 4; k++) (void)bl_set_input_derivative(e, k, 1 + (int32_t)(k % 2), 10.0);
    if (bl_run_to(e, bl_time(e) + 0.4 * bl_step(e)) != BL_OK) return;
    bl_outputs(e);
    const int64_t knowns[2] = {count > 0 ? variables[0].slot : 0, last / 2}, unknowns[2] = {0, last};
    const double seeds[2] = {1.0, -2.0};
    double results[2];
    (void)bl_directional(e, knowns, seeds, 2, unknowns, 2, 0, results);
    (void)bl_output_derivatives(e, unknowns, 2, results);
    (void)bl_is_continuous(e, last);
    bl_run_to(e, bl_time(e) + 1.3 * bl_step(e));
}

static void run(bl_engine *e, int64_t ticks, double *dx) {
    int64_t done = 0;
    double row[2][4];
    const int64_t pick[3] = {0, e->layout.total - 1, e->layout.total / 2};
    bl_record record = {pick, e->layout.total > 0 ? 3 : 0, 2, row[0], 2, 0, NULL, 0, 0};
    bl_run(e, ticks, &record, &done);
    bl_outputs(e);
    bl_derivatives(e, dx);
    bl_run(e, ticks, NULL, &done);
    run_within_a_tick(e);
    (void)bl_block_path(e, bl_failed_block(e));
    for (int about = BL_DIAGNOSTIC_START; about <= BL_DIAGNOSTIC_RUN; about++)
        for (int32_t k = -1; (k = bl_next_diagnostic(e, about, k)) >= 0;) (void)bl_message(e);
    for (int32_t k = -1; (k = bl_next_fallback(e, k)) >= 0;) (void)bl_message(e);
    for (int32_t k = -1; k <= e->block_count; k++) {
        char text[40];
        bl_describe_event(e, k, 7 * k + 2, text, sizeof text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const double ODD[] = {-1.0, 0.0, 0.5, 1.0, 2.0, 1e9, 4294967296.0, 1e19, 1e300, -1e19, -1e300, 5e-324};
    bl_engine *e = NULL;
    char message[200];
    if (bl_open(data, size, &e, message, sizeof message) != BL_OK) return 0;
    fuzz_accepted = 1;
    if (!is_quick(e)) {
        bl_close(e);
        return 0;
    }
    size_t length = 0;
    const uint8_t *script = find_script(data, size, &length);
    if (!script) length = 0;
    const int64_t ticks = length > 0 ? script[0] % 9 : 4;

    bl_outputs(e); /* before bl_init: refused */
    double *dx = malloc(((size_t)e->layout.states + 1) * sizeof(double));
    const size_t state_size = bl_state_size(e);
    uint8_t *state = malloc(state_size), *again = malloc(state_size);
    if (dx && state && again) {
        bl_init(e);
        run(e, ticks, dx);
        bl_save(e, state);
        /* Each nine bytes of the script replace eight bytes of the state, most often by an odd number. */
        for (size_t k = 1; k + 9 <= length; k += 9) {
            const size_t cells = state_size / 8, cell = ((size_t)script[k + 1] << 8 | script[k]) % cells;
            uint8_t *to = state + cell * 8;
            const unsigned how = script[k + 2] % 20;
            if (how < sizeof ODD / sizeof *ODD) memcpy(to, &ODD[how], 8);
            else if (how == 12) memset(to, 0xff, 8); /* a NaN; as an integer, -1 */
            else if (how == 13) write_u64(to, UINT64_C(0x7ff0000000000000));
            else if (how == 14) write_u64(to, UINT64_MAX >> 1);
            else memcpy(to, script + k + 1, 8);
        }
        if (bl_restore(e, state, state_size) == BL_OK) {
            bl_save(e, again);
            if (memcmp(state, again, state_size) != 0 && read_u64(state + 24) <= 1) abort(); /* phase: 0 or 1 */
            run(e, ticks, dx);
        }
        bl_restore(e, state, state_size - 1);
        bl_reset(e);
        bl_init(e);
        run(e, 2, dx);
    }
    free(dx);
    free(state);
    free(again);
    bl_close(e);
    return 0;
}

#ifdef FUZZ_MUTATOR
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2, size_t size2, uint8_t *out,
                                 size_t max_out, unsigned int seed);

static uint32_t draw(uint32_t *seed) { /* xorshift32 */
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

static int is_real(const uint8_t *entry) {
    return memcmp(entry, "PARA", 4) == 0 || memcmp(entry, "TIME", 4) == 0 || memcmp(entry, "SOLV", 4) == 0;
}

static void mutate_integer(uint8_t *cell, uint32_t element, const uint8_t *section, size_t length, uint32_t *seed) {
    static const int64_t ODD[] = {0,   1,     2,         3,         -1,        4,         8,
                                  255, 65535, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1 << 27};
    int64_t value = 0;
    memcpy(&value, cell, element);
    switch (draw(seed) % 5) {
        case 0: value = (int64_t)((uint64_t)value + 1); break;
        case 1: value = (int64_t)((uint64_t)value - 1); break;
        case 2: value = ODD[draw(seed) % (sizeof ODD / sizeof *ODD)]; break;
        case 3: memcpy(&value, section + draw(seed) % (length / element) * element, element); break;
        default: value ^= (int64_t)(UINT64_C(1) << draw(seed) % (draw(seed) % 2 ? 6 : 8 * element)); break;
    }
    memcpy(cell, &value, element);
}

static void mutate_real(uint8_t *cell, uint32_t *seed) {
    static const double ODD[] = {0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-3, 1e9, 3e9, 1e19, -1e19, 1e300, -1e300, 5e-324};
    const uint32_t how = draw(seed) % 20;
    if (how < 14) memcpy(cell, &ODD[how], 8);
    else if (how == 14) write_u64(cell, UINT64_C(0x7ff8000000000000));
    else if (how == 15) write_u64(cell, UINT64_C(0x7ff0000000000000));
    else cell[draw(seed) % 8] ^= (uint8_t)(1u << draw(seed) % 8);
}

/* Replaces section `n` by `length` bytes and moves what follows it; returns the new size, 0 if there is no room. */
static size_t replace_section(uint8_t *data, size_t size, size_t max_size, uint32_t n, const uint8_t *bytes,
                              size_t length) {
    uint8_t *entry = data + HEAD + (size_t)n * ENTRY;
    const uint32_t sections = count_sections(data, size), element = read_u32(entry + ENTRY_ELEMENT);
    const size_t offset = (size_t)read_u64(entry + ENTRY_OFFSET);
    const size_t before = (size_t)read_u64(entry + ENTRY_LENGTH) * element;
    const size_t room = (before + 7) / 8 * 8, wanted = (length + 7) / 8 * 8;
    size_t end = offset + room;
    if (end > size) end = size;
    const size_t grown = offset + wanted + (size - end);
    if (grown > max_size || element == 0 || length % element != 0) return 0;
    memmove(data + offset + wanted, data + end, size - end);
    memset(data + offset, 0, wanted);
    memcpy(data + offset, bytes, length);
    write_u64(entry + ENTRY_LENGTH, length / element);
    for (uint32_t k = 0; k < sections; k++) {
        uint8_t *other = data + HEAD + (size_t)k * ENTRY;
        const uint64_t at = read_u64(other + ENTRY_OFFSET);
        if (k != n && at >= end) write_u64(other + ENTRY_OFFSET, at - end + offset + wanted);
    }
    write_u64(data + HEAD_SIZE, grown);
    return grown;
}

/* Doubles a row of a table, or drops one. */
static size_t resize_section(uint8_t *data, size_t size, size_t max_size, uint32_t n, const uint8_t *section,
                             size_t length, uint32_t element, uint32_t *seed) {
    static const uint32_t ROWS[] = {1, 1, 2, 3, 5, 12, 15};
    const size_t row = ROWS[draw(seed) % (sizeof ROWS / sizeof *ROWS)] * element;
    if (length < row) return 0;
    const size_t at = draw(seed) % (length / row) * row;
    uint8_t *bytes = malloc(length + row);
    if (!bytes) return 0;
    size_t grown = 0;
    if (draw(seed) % 2) {
        memcpy(bytes, section, at + row);
        memcpy(bytes + at + row, section + at, length - at);
        grown = replace_section(data, size, max_size, n, bytes, length + row);
    } else {
        memcpy(bytes, section, at);
        memcpy(bytes + at, section + at + row, length - at - row);
        grown = replace_section(data, size, max_size, n, bytes, length - row);
    }
    free(bytes);
    return grown;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed_) {
    uint32_t seed = seed_ | 1u;
    const uint32_t sections = count_sections(data, size);
    if (sections == 0 || draw(&seed) % 32 == 0) return LLVMFuzzerMutate(data, size, max_size);
    for (uint32_t times = 1 + draw(&seed) % 3; times > 0; times--) {
        const uint32_t n = draw(&seed) % sections;
        const uint8_t *entry = data + HEAD + (size_t)n * ENTRY;
        size_t length = 0;
        uint32_t element = 0;
        const uint8_t *section = section_bytes(data, size, n, &length, &element);
        if (!section || length == 0) continue;
        if (draw(&seed) % 8 == 0) {
            const size_t grown = resize_section(data, size, max_size, n, section, length, element, &seed);
            if (grown > 0) size = grown;
            continue;
        }
        uint8_t *cell = data + (section - data) + draw(&seed) % (length / element) * element;
        if (memcmp(entry, "KERN", 4) == 0 && draw(&seed) % 4 != 0) continue; /* most names lead nowhere */
        if (element == 8 && is_real(entry)) mutate_real(cell, &seed);
        else if (element == 1) *cell = (uint8_t)draw(&seed);
        else mutate_integer(cell, element, section, length, &seed);
    }
    return size;
}

/* Takes one section of the second plan into the first. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2, size_t size2, uint8_t *out,
                                 size_t max_out, unsigned int seed_) {
    uint32_t seed = seed_ | 1u;
    if (size1 > max_out) return 0;
    memcpy(out, data1, size1);
    const uint32_t sections = count_sections(data1, size1), others = count_sections(data2, size2);
    if (sections == 0 || others == 0) return size1;
    const uint32_t n = draw(&seed) % (sections < others ? sections : others);
    size_t length = 0, old_length = 0;
    uint32_t element = 0, old_element = 0;
    const uint8_t *section = section_bytes(data2, size2, n, &length, &element);
    if (!section || !section_bytes(data1, size1, n, &old_length, &old_element) || element != old_element) return size1;
    const size_t grown = replace_section(out, size1, max_out, n, section, length);
    return grown > 0 ? grown : size1;
}
#endif
