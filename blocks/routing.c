/* Routing. */
#include "blocks/kernel.h"

/* Output of a conditional subsystem: y = u while active, else the value kept in z.
   u: value, active. i: 1 if the output is reset instead of held. p: initial value. */
static int held_output_check(const bl_block *b) {
    return b->u_count == 2 && b->y_count == 1 && b->u_width[0] == b->y_width[0] && b->u_width[1] == 1 &&
           b->z_count == b->y_width[0] && b->p_count == 1 && b->i_count == 1;
}
static int held_output_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = b->p[0];
    return BL_OK;
}
static int held_output_output(bl_block *b, double t) {
    (void)t;
    const double *from = b->u[1][0] != 0.0 ? b->u[0] : b->z;
    for (int32_t k = 0; k < b->z_count; k++) b->y[0][k] = from[k];
    return BL_OK;
}
static int held_output_update(bl_block *b, double t) {
    (void)t;
    if (b->u[1][0] != 0.0 && !b->i[0])
        for (int32_t k = 0; k < b->z_count; k++) b->z[k] = b->u[0][k];
    return BL_OK;
}

const bl_kernel bl_kernels_routing[] = {
    {.name = "held_output", .check = held_output_check, .init = held_output_init,
     .output = held_output_output, .update = held_output_update},
    {.name = 0},
};
