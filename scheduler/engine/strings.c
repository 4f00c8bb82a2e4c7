/* Strings and binaries between blocks outside the engine, such as FMUs. A signal is a double, so it holds the number of a value: which
 * writer has written it, and the how many-th of its values it is. A number is never used for another value; 0 is none.
 *
 * A writer keeps its last BL_STRINGS_KEPT values, so that values which are held, or restored by a coupling, are still available.
 * Strings have less than BL_STRING_SIZE bytes; their memory is allocated by bl_string_open, before the first tick. Binaries have at most
 * BL_BINARY_SIZE bytes; the memory of a value grows when a larger one is written, in powers of 2. */
#include <stdlib.h>
#include <string.h>

#include "scheduler/engine/engine.h"

typedef struct {
    size_t size, capacity;
    unsigned char *bytes;
    bool is_text;
} bl_kept_value;

typedef struct {
    uint32_t sequence; /* of the last value */
    size_t limit; /* in bytes */
    bl_kept_value values[BL_STRINGS_KEPT];
} bl_value_writer;

struct bl_strings {
    int32_t count;
    bl_value_writer **writers;
};

enum { FIRST_BINARY_CAPACITY = 64 };
static const double WRITER_UNIT = 4294967296.0, NUMBER_LIMIT = 9007199254740992.0; /* 2^32, 2^53 */

static void free_writer(bl_value_writer *w) {
    for (int k = 0; w && k < BL_STRINGS_KEPT; k++) free(w->values[k].bytes);
    free(w);
}

static bl_value_writer *make_writer(size_t capacity, size_t limit, bool is_text) {
    bl_value_writer *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->limit = limit;
    for (int k = 0; k < BL_STRINGS_KEPT; k++) {
        w->values[k].bytes = calloc(capacity, 1);
        w->values[k].capacity = capacity;
        w->values[k].is_text = is_text;
        if (!w->values[k].bytes) return free_writer(w), NULL;
    }
    return w;
}

static int32_t open_writer(bl_engine *e, size_t capacity, size_t limit, bool is_text) {
    if (!e->strings) e->strings = calloc(1, sizeof *e->strings);
    if (!e->strings || e->strings->count >= 1 << 20) return BL_ERROR_MEMORY;
    bl_value_writer **more = realloc(e->strings->writers, ((size_t)e->strings->count + 1) * sizeof *more);
    if (!more) return BL_ERROR_MEMORY;
    e->strings->writers = more;
    more[e->strings->count] = make_writer(capacity, limit, is_text);
    return more[e->strings->count] ? e->strings->count++ : BL_ERROR_MEMORY;
}

static int reserve(bl_kept_value *value, size_t size) {
    if (size <= value->capacity) return 1;
    size_t capacity = value->capacity;
    while (capacity < size) capacity *= 2;
    unsigned char *more = realloc(value->bytes, capacity);
    if (!more) return 0;
    value->bytes = more;
    value->capacity = capacity;
    return 1;
}

static double write_value(bl_engine *e, int32_t writer, const void *bytes, size_t size) {
    if (!e->strings || writer < 0 || writer >= e->strings->count) return 0.0;
    bl_value_writer *w = e->strings->writers[writer];
    if (size > w->limit) return 0.0;
    const bl_kept_value *last = &w->values[w->sequence % BL_STRINGS_KEPT];
    if (last->size != size || (size > 0 && memcmp(last->bytes, bytes, size) != 0)) {
        bl_kept_value *next = &w->values[(w->sequence + 1) % BL_STRINGS_KEPT];
        if (!reserve(next, size)) return 0.0;
        if (size > 0) memcpy(next->bytes, bytes, size);
        next->size = size;
        w->sequence++;
    }
    return ((double)writer + 1.0) * WRITER_UNIT + (double)w->sequence;
}

static const bl_kept_value *read_value(const bl_engine *e, double number) {
    if (!e->strings || !(number >= WRITER_UNIT) || number >= NUMBER_LIMIT) return NULL;
    const int64_t whole = (int64_t)number, writer = whole / (int64_t)WRITER_UNIT - 1;
    if (writer >= e->strings->count) return NULL;
    const bl_value_writer *w = e->strings->writers[writer];
    const uint32_t sequence = (uint32_t)(whole % (int64_t)WRITER_UNIT);
    return w->sequence - sequence < BL_STRINGS_KEPT ? &w->values[sequence % BL_STRINGS_KEPT] : NULL;
}

int32_t bl_string_open(bl_engine *e) { return open_writer(e, BL_STRING_SIZE, BL_STRING_SIZE - 1, true); }
int32_t bl_binary_open(bl_engine *e) { return open_writer(e, FIRST_BINARY_CAPACITY, BL_BINARY_SIZE, false); }

/* A string is kept with its terminator: the capacity of its writer is one more than its limit. */
double bl_string_write(bl_engine *e, int32_t writer, const char *text) {
    if (!text) text = "";
    const size_t size = strlen(text);
    const double number = size < BL_STRING_SIZE ? write_value(e, writer, text, size) : 0.0;
    if (number != 0.0) read_value(e, number)->bytes[size] = 0;
    return number;
}

double bl_binary_write(bl_engine *e, int32_t writer, const unsigned char *bytes, int64_t size) {
    if (size < 0 || (size > 0 && !bytes)) return 0.0;
    return write_value(e, writer, bytes, (size_t)size);
}

/* Only strings have a terminator. */
const char *bl_string_read(const bl_engine *e, double number) {
    const bl_kept_value *value = read_value(e, number);
    return value && value->is_text ? (const char *)value->bytes : NULL;
}

const unsigned char *bl_binary_read(const bl_engine *e, double number, int64_t *size) {
    const bl_kept_value *value = read_value(e, number);
    *size = value ? (int64_t)value->size : 0;
    return value ? value->bytes : NULL;
}

void bl_close_strings(bl_engine *e) {
    for (int32_t k = 0; e->strings && k < e->strings->count; k++) free_writer(e->strings->writers[k]);
    if (e->strings) free(e->strings->writers);
    free(e->strings);
    e->strings = NULL;
}
