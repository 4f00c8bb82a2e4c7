/* Every kernel that the engine has, by name. The build writes the list: scheduler/engine/contract.py. */
#include <string.h>

#include "scheduler/engine/engine.h"
#include "generated/kernels.h"

const char *bl_contract(void) { return BL_CONTRACT; }

const bl_kernel *bl_find_kernel(const char *name) {
    for (size_t t = 0; t < sizeof KERNEL_TABLES / sizeof *KERNEL_TABLES; t++)
        for (const bl_kernel *k = KERNEL_TABLES[t]; k->name; k++)
            if (strcmp(k->name, name) == 0) return k;
    return NULL;
}

static bl_block make_block(const bl_shape *shape) {
    static const double at_tick = 0.0;
    static const int32_t whole = 1;
    static const unsigned char no_step = 0;
    return (bl_block){
        .u_width = shape->u_width,
        .u_count = shape->u_count,
        .y_width = shape->y_width,
        .y_count = shape->y_count,
        .i = shape->i,
        .i_count = shape->i_count,
        .p = shape->p,
        .p_count = shape->p_count,
        .x_count = shape->x_count,
        .index = -1,
        .dt = 1.0,
        .offset = &at_tick,
        .integrates = &no_step,
        .parts = &whole,
    };
}

int bl_kernel_sizes(const char *kernel, const bl_shape *shape, int64_t *memory, int64_t *scratch) {
    const bl_kernel *found = bl_find_kernel(kernel);
    *memory = *scratch = 0;
    if (!found) return BL_ERROR_PLAN;
    if (!found->sizes) return BL_UNCHANGED;
    const bl_block block = make_block(shape);
    if (!found->check(&block)) return BL_ERROR_PLAN;
    const bl_sizes sizes = found->sizes(&block);
    *memory = sizes.memory;
    *scratch = sizes.scratch;
    return BL_OK;
}

int32_t bl_kernel_crossings(const char *kernel, const bl_shape *shape, int32_t *apart) {
    const bl_kernel *found = bl_find_kernel(kernel);
    *apart = 0;
    if (!found || !found->crossing_count) return 0;
    const bl_block block = make_block(shape);
    if (!found->check(&block)) return 0;
    *apart = found->crossings != NULL;
    return found->crossing_count(&block);
}

int bl_kernel_needs_rates(const char *kernel) {
    const bl_kernel *found = bl_find_kernel(kernel);
    return found && found->input_rates;
}
