/* Strings and binaries that are inputs and outputs of an FMU: a signal holds the number of a value (scheduler/engine/strings.c).
 *
 * Arrays of a group that only reals use hold what belongs to these: `orders` the writers of outputs and the references of inputs that
 * are set, `input_derivatives` the sizes of binaries. */
#include "fmu/importer/host/host.h"

#include <string.h>

int32_t bl_fmu_open_text(bl_engine *e, int32_t type) {
    return type == HOST_STRING ? bl_string_open(e) : bl_binary_open(e);
}

int bl_fmu_open_texts(const bl_block *b, bl_fmu_host *f) {
    f->engine = b->engine;
    for (int32_t k = 0; k < f->outputs.group_count; k++) {
        const bl_fmu_group *g = &f->outputs.groups[k];
        for (int32_t n = 0; bl_fmu_is_text(g) && n < g->count; n++) {
            g->orders[n] = bl_fmu_open_text(f->engine, g->type);
            if (g->orders[n] < 0) return 0;
        }
    }
    return 1;
}

static size_t *sizes_of(const bl_fmu_group *g) { return (size_t *)(void *)g->input_derivatives; }

static const void *read_number(const bl_fmu_host *f, const bl_fmu_group *g, double number, size_t *size) {
    int64_t length = 0;
    if (g->type == HOST_STRING) return bl_string_read(f->engine, number);
    const void *value = bl_binary_read(f->engine, number, &length);
    *size = (size_t)length;
    return value;
}

/* An input that nothing was written to keeps its start value. */
int bl_fmu_set_texts(bl_fmu_host *f, bl_fmu_group *g, double t) {
    const int is_string = g->type == HOST_STRING;
    const void **values = g->native;
    uint32_t *references = (uint32_t *)(void *)g->orders;
    size_t count = 0;
    for (int32_t k = 0; k < g->count; k++) {
        if (g->reals[k] == 0.0) continue;
        values[count] = read_number(f, g, g->reals[k], &sizes_of(g)[count]);
        references[count] = g->references[k];
        if (!values[count++])
            return bl_fmu_error(f,
                                "the %s for the value reference %u is not available any more: its writer has "
                                "changed it %d times since, or the state was saved by another run",
                                is_string ? "string" : "binary", (unsigned)g->references[k], BL_STRINGS_KEPT);
    }
    if (count == 0) return BL_OK;
    if (is_string)
        return bl_host_status(f, f->fmi->set_texts(f, references, (const char *const *)values, count), "SetString", t);
    return bl_host_status(f,
                          f->fmi->set_binaries(f, references, sizes_of(g), (const unsigned char *const *)values, count),
                          "SetBinary", t);
}

static int get_strings(bl_fmu_host *f, bl_fmu_group *g, double t) {
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

static int get_binary_values(bl_fmu_host *f, bl_fmu_group *g, double t) {
    const unsigned char **values = g->native;
    size_t *sizes = sizes_of(g);
    memset(values, 0, (size_t)g->count * sizeof *values);
    memset(sizes, 0, (size_t)g->count * sizeof *sizes);
    const bl_fmi_status status = f->fmi->get_binaries(f, g->references, sizes, values, (size_t)g->count);
    if (status > FMI_WARNING) return bl_host_status(f, status, "GetBinary", t);
    for (int32_t k = 0; k < g->count; k++) {
        const char *name = bl_fmu_variable(f, g->numbers[k]);
        if (sizes[k] > BL_BINARY_SIZE)
            return bl_fmu_error(f, "the binary `%.100s` has %zu bytes at t = %.9g; signals can hold up to %d", name,
                                sizes[k], t, BL_BINARY_SIZE);
        if (sizes[k] > 0 && !values[k])
            return bl_fmu_error(f, "fmi3GetBinary returned %zu bytes and no pointer for `%.100s` at t = %.9g", sizes[k],
                                name, t);
        const double number = bl_binary_write(f->engine, g->orders[k], values[k], (int64_t)sizes[k]);
        if (number == 0.0)
            return bl_fmu_error(f, "there is no memory for the %zu bytes of the binary `%.100s`", sizes[k], name);
        *g->places[k] = number;
    }
    return BL_OK;
}

int bl_fmu_get_texts(bl_fmu_host *f, bl_fmu_group *g, double t) {
    return g->type == HOST_STRING ? get_strings(f, g, t) : get_binary_values(f, g, t);
}
