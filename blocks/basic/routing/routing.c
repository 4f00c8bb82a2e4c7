/* Routing. */
#include "blocks/core/kernel/kernel.h"

/* Output of a conditional subsystem: y = u while active, else the value stored in z.
   u: value, active. i: 1 if the output is reset instead of held. p: initial value. */
static int held_output_check(const bl_block *b) {
    return b->u_count == 2 && b->y_count == 1 && b->u_width[0] == b->y_width[0] && b->u_width[1] == 1 &&
           b->p_count == 1 && b->i_count == 1;
}
static bl_sizes held_output_sizes(const bl_block *b) { return (bl_sizes){.memory = b->y_width[0]}; }
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

/* Mux: y = all inputs, one behind the other. */
static int mux_check(const bl_block *b) {
    if (b->u_count < 1 || b->y_count != 1) return 0;
    int64_t total = 0;
    for (int32_t k = 0; k < b->u_count; k++) total += b->u_width[k];
    return total == b->y_width[0];
}
static int mux_output(bl_block *b, double t) {
    (void)t;
    double *y = b->y[0];
    for (int32_t j = 0; j < b->u_count; j++)
        for (int32_t k = 0; k < b->u_width[j]; k++) *y++ = b->u[j][k];
    return BL_OK;
}

/* Demux: y1, y2, … = the parts of u. */
static int demux_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count < 1) return 0;
    int64_t total = 0;
    for (int32_t k = 0; k < b->y_count; k++) total += b->y_width[k];
    return total == b->u_width[0];
}
static int demux_output(bl_block *b, double t) {
    (void)t;
    const double *u = b->u[0];
    for (int32_t j = 0; j < b->y_count; j++)
        for (int32_t k = 0; k < b->y_width[j]; k++) b->y[j][k] = *u++;
    return BL_OK;
}

/* Selector: y[k] = u[i[k]]. */
static int selector_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 1 || b->i_count != b->y_width[0]) return 0;
    for (int32_t k = 0; k < b->i_count; k++)
        if (b->i[k] < 0 || b->i[k] >= b->u_width[0]) return 0;
    return 1;
}
static int selector_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->i_count; k++) b->y[0][k] = b->u[0][b->i[k]];
    return BL_OK;
}

const bl_kernel bl_kernels_routing[] = {
    {.name = "mux", .check = mux_check, .output = mux_output},
    {.name = "demux", .check = demux_check, .output = demux_output},
    {.name = "selector", .check = selector_check, .output = selector_output},
    {.name = "held_output",
     .check = held_output_check,
     .sizes = held_output_sizes,
     .init = held_output_init,
     .output = held_output_output,
     .update = held_output_update},
    {.name = 0},
};
