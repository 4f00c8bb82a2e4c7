/* Blocks with a sample time. */
#include "blocks/kernel.h"

/* UnitDelay: y[n] = u[n-1], y[0] = p. */
static int unit_delay_check(const bl_block *b) {
    return b->u_count == 1 && b->y_count == 1 && b->u_width[0] == b->y_width[0] &&
           b->z_count == b->y_width[0] && (b->p_count == 1 || b->p_count == b->z_count);
}
static int unit_delay_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = b->p[b->p_count > 1 ? k : 0];
    return BL_OK;
}
static int unit_delay_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->y[0][k] = b->z[k];
    return BL_OK;
}
static int unit_delay_update(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = b->u[0][k];
    return BL_OK;
}

const bl_kernel bl_kernels_discrete[] = {
    {.name = "unit_delay", .check = unit_delay_check, .init = unit_delay_init,
     .output = unit_delay_output, .update = unit_delay_update},
    {.name = 0},
};
