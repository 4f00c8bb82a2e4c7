/* Pendulum: a rigid body on a fixed horizontal axis.
 *
 *     J dω/dt = τ - m g l sin θ - d ω
 *
 * p: J, m g l, d, θ0, ω0. x: θ, ω. Input τ; outputs θ, ω. */
#include <math.h>

#include "blocks/core/kernel/kernel.h"

enum { INERTIA, WEIGHT_MOMENT, DAMPING, ANGLE_0, SPEED_0, PARAMETERS };

static int pendulum_check(const bl_block *b) {
    return b->u_count == 1 && b->u_width[0] == 1 && b->y_count == 2 && b->y_width[0] == 1 && b->y_width[1] == 1 &&
           b->x_count == 2 && b->p_count == PARAMETERS;
}
static int pendulum_init(bl_block *b, double t) {
    (void)t;
    b->x[0] = b->p[ANGLE_0];
    b->x[1] = b->p[SPEED_0];
    return BL_OK;
}
static int pendulum_output(bl_block *b, double t) {
    (void)t;
    b->y[0][0] = b->x[0];
    b->y[1][0] = b->x[1];
    return BL_OK;
}
static int pendulum_derivative(bl_block *b, double t) {
    (void)t;
    b->dx[0] = b->x[1];
    b->dx[1] = (b->u[0][0] - b->p[WEIGHT_MOMENT] * sin(b->x[0]) - b->p[DAMPING] * b->x[1]) / b->p[INERTIA];
    return BL_OK;
}

const bl_kernel bl_kernels_pendulum[] = {
    {.name = "pendulum",
     .check = pendulum_check,
     .init = pendulum_init,
     .output = pendulum_output,
     .derivative = pendulum_derivative},
    {.name = 0},
};
