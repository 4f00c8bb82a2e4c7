/* Blocks with continuous states. */
#include "blocks/kernel.h"

/* Integrator: dx/dt = u, y = x, x(0) = p. */
static int integrator_check(const bl_block *b) {
    return b->u_count == 1 && b->y_count == 1 && b->u_width[0] == b->y_width[0] &&
           b->x_count == b->y_width[0] && (b->p_count == 1 || b->p_count == b->x_count);
}
static int integrator_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->x_count; k++) b->x[k] = b->p[b->p_count > 1 ? k : 0];
    return BL_OK;
}
static int integrator_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->x_count; k++) b->y[0][k] = b->x[k];
    return BL_OK;
}
static int integrator_derivative(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->x_count; k++) b->dx[k] = b->u[0][k];
    return BL_OK;
}

const bl_kernel bl_kernels_continuous[] = {
    {.name = "integrator", .check = integrator_check, .init = integrator_init,
     .output = integrator_output, .derivative = integrator_derivative},
    {.name = 0},
};
