/* Strings between blocks outside the engine, such as FMUs. A signal is a double, so it holds the number of a text: which writer has
 * written it, and the how many-th of its texts it is. A number is never used for another text; 0 is none.
 *
 * A writer keeps its last BL_STRINGS_KEPT texts, each of up to BL_STRING_SIZE - 1 bytes, so that values which are held, or restored by a
 * coupling, still have theirs. All memory is allocated by bl_string_open, before the first tick. */
#include <stdlib.h>
#include <string.h>

#include "scheduler/engine/engine.h"

typedef struct {
    uint32_t sequence; /* of the last text */
    char texts[BL_STRINGS_KEPT][BL_STRING_SIZE];
} bl_string_writer;

struct bl_strings {
    int32_t count;
    bl_string_writer **writers;
};

static const double WRITER_UNIT = 4294967296.0, NUMBER_LIMIT = 9007199254740992.0; /* 2^32, 2^53 */

int32_t bl_string_open(bl_engine *e) {
    if (!e->strings) e->strings = calloc(1, sizeof *e->strings);
    if (!e->strings || e->strings->count >= 1 << 20) return BL_ERROR_MEMORY;
    bl_string_writer **more = realloc(e->strings->writers, ((size_t)e->strings->count + 1) * sizeof *more);
    if (!more) return BL_ERROR_MEMORY;
    e->strings->writers = more;
    more[e->strings->count] = calloc(1, sizeof **more);
    return more[e->strings->count] ? e->strings->count++ : BL_ERROR_MEMORY;
}

double bl_string_write(bl_engine *e, int32_t writer, const char *text) {
    if (!e->strings || writer < 0 || writer >= e->strings->count) return 0.0;
    bl_string_writer *w = e->strings->writers[writer];
    if (!text) text = "";
    const size_t size = strlen(text) + 1;
    if (size > BL_STRING_SIZE) return 0.0;
    if (strcmp(w->texts[w->sequence % BL_STRINGS_KEPT], text) != 0) {
        w->sequence++;
        memcpy(w->texts[w->sequence % BL_STRINGS_KEPT], text, size);
    }
    return ((double)writer + 1.0) * WRITER_UNIT + (double)w->sequence;
}

const char *bl_string_read(const bl_engine *e, double number) {
    if (!e->strings || !(number >= WRITER_UNIT) || number >= NUMBER_LIMIT) return NULL;
    const int64_t whole = (int64_t)number, writer = whole / (int64_t)WRITER_UNIT - 1;
    if (writer >= e->strings->count) return NULL;
    const bl_string_writer *w = e->strings->writers[writer];
    const uint32_t sequence = (uint32_t)(whole % (int64_t)WRITER_UNIT);
    return w->sequence - sequence < BL_STRINGS_KEPT ? w->texts[sequence % BL_STRINGS_KEPT] : NULL;
}

void bl_close_strings(bl_engine *e) {
    for (int32_t k = 0; e->strings && k < e->strings->count; k++) free(e->strings->writers[k]);
    if (e->strings) free(e->strings->writers);
    free(e->strings);
    e->strings = NULL;
}
