/* Sources. */
#include "blocks/kernel.h"

/* Constant: y = value */
static int constant_check(const bl_block *b) {
    return b->u_count == 0 && b->y_count == 1 && b->p_count == b->y_width[0];
}
static int constant_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = b->p[k];
    return BL_OK;
}

const bl_kernel bl_kernels_sources[] = {
    {.name = "constant", .check = constant_check, .output = constant_output},
    {.name = 0},
};
