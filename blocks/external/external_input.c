/* Values from outside the diagram: a device, a clock, a worker.
 *
 * ExternalInput: y = received. p holds the values of all outputs, one port after the other; the host writes them between two
 * ticks, so that saving, restoring and replaying work as for any parameter. */
#include "blocks/core/kernel/kernel.h"

static int external_input_check(const bl_block *b) {
    int64_t values = 0;
    for (int32_t k = 0; k < b->y_count; k++) values += b->y_width[k];
    return b->x_count == 0 && b->z_count == 0 && b->i_count == 0 && values == b->p_count;
}

static int external_input_output(bl_block *b, double t) {
    (void)t;
    const double *from = b->p;
    for (int32_t k = 0; k < b->y_count; k++)
        for (int32_t i = 0; i < b->y_width[k]; i++) b->y[k][i] = *from++;
    return BL_OK;
}

const bl_kernel bl_kernels_external_input[] = {
    {.name = "external_input", .check = external_input_check, .output = external_input_output},
    {.name = 0},
};
