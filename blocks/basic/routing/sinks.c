/* Sinks: blocks without outputs. */
#include "blocks/core/kernel/kernel.h"

/* Scope, Record, Terminator: nothing to do, their inputs are only recorded or displayed. */
static int sink_check(const bl_block *b) { return b->u_count >= 1 && b->y_count == 0; }

/* Without x and z, so that an update runs before anything of the tick is committed. */
static int termination_check(const bl_block *b) {
    return b->u_count == 1 && b->y_count == 0 && b->x_count == 0 && b->z_count == 0;
}

/* Assertion: every element must be true. */
static int assertion_update(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->u_width[0]; k++)
        if (b->u[0][k] == 0.0) {
            if (b->u_width[0] > 1) bl_log(b, "element %d of %d", (int)k + 1, (int)b->u_width[0]);
            return BL_ERROR_BLOCK;
        }
    return BL_OK;
}

/* Stop: any element that is true ends the run. */
static int stop_update(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->u_width[0]; k++)
        if (b->u[0][k] != 0.0) return BL_STOP;
    return BL_OK;
}

const bl_kernel bl_kernels_sinks[] = {
    {.name = "sink", .check = sink_check},
    {.name = "assertion", .check = termination_check, .update = assertion_update},
    {.name = "stop", .check = termination_check, .update = stop_update},
    {.name = 0},
};
