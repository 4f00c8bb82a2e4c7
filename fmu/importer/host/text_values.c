/* Strings that are inputs and outputs of an FMU: a signal holds the number of a text (scheduler/engine/strings.c). */
#include "fmu/importer/host/host.h"

#include <string.h>

/* The numbers of the writers of outputs are kept where reals have the orders of their derivatives. */
int bl_fmu_open_texts(const bl_block *b, bl_fmu_host *f) {
    f->engine = b->engine;
    for (int32_t k = 0; k < f->outputs.group_count; k++) {
        const bl_fmu_group *g = &f->outputs.groups[k];
        for (int32_t n = 0; g->type == HOST_STRING && n < g->count; n++)
            if ((g->orders[n] = bl_string_open(f->engine)) < 0) return 0;
    }
    return 1;
}

/* An input that nothing was written to keeps its start value. */
int bl_fmu_set_texts(bl_fmu_host *f, bl_fmu_group *g, double t) {
    const char **texts = g->native;
    uint32_t *references = (uint32_t *)(void *)g->orders;
    size_t count = 0;
    for (int32_t k = 0; k < g->count; k++) {
        if (g->reals[k] == 0.0) continue;
        texts[count] = bl_string_read(f->engine, g->reals[k]);
        references[count] = g->references[k];
        if (!texts[count++])
            return bl_fmu_error(f,
                                "the string for the value reference %u is not available any more: its writer has "
                                "changed it %d times since, or the state was saved by another run",
                                (unsigned)g->references[k], BL_STRINGS_KEPT);
    }
    return count == 0 ? BL_OK : bl_host_status(f, f->fmi->set_texts(f, references, texts, count), "SetString", t);
}

int bl_fmu_get_texts(bl_fmu_host *f, bl_fmu_group *g, double t) {
    const char **texts = g->native;
    memset(texts, 0, (size_t)g->count * sizeof *texts);
    const bl_fmi_status status = f->fmi->get_texts(f, g->references, texts, (size_t)g->count);
    if (status > FMI_WARNING) return bl_host_status(f, status, "GetString", t);
    for (int32_t k = 0; k < g->count; k++) {
        const double number = bl_string_write(f->engine, g->orders[k], texts[k]);
        if (number == 0.0)
            return bl_fmu_error(f, "the string with value reference %u has more than %d bytes, which signals can hold",
                                (unsigned)g->references[k], BL_STRING_SIZE - 1);
        *g->places[k] = number;
    }
    return BL_OK;
}
