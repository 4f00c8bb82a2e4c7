/* Blocks written in Python: each operation is a call back to the host. */
#include "blocks/core/kernel/kernel.h"

static int call_host(bl_block *b, bl_op op, double t, double dt) {
    return *b->host ? (*b->host)(b->index, (int32_t)op, t, dt) : BL_ERROR_BLOCK;
}
static int python_check(const bl_block *b) { return b->x_count == 0 || b->z_count == 0; }
static int python_init(bl_block *b, double t) { return call_host(b, BL_OP_INIT, t, 0.0); }
static int python_output(bl_block *b, double t) { return call_host(b, BL_OP_OUTPUT, t, 0.0); }
static int python_derivative(bl_block *b, double t) { return call_host(b, BL_OP_DERIVATIVE, t, 0.0); }
static int python_update(bl_block *b, double t) { return call_host(b, BL_OP_UPDATE, t, 0.0); }
static int python_begin(bl_block *b, double t) { return call_host(b, BL_OP_EXIT_INITIALIZATION, t, 0.0); }
static int python_advance(bl_block *b, double t, double dt) { return call_host(b, BL_OP_ADVANCE, t, dt); }
static int python_accept_step(bl_block *b, double t) { return call_host(b, BL_OP_ACCEPT_STEP, t, 0.0); }
static int python_save(bl_block *b, int snapshot) { return call_host(b, BL_OP_SAVE, 0.0, (double)snapshot); }
static int python_restore(bl_block *b, int snapshot) { return call_host(b, BL_OP_RESTORE, 0.0, (double)snapshot); }

const bl_kernel bl_kernels_python[] = {
    {.name = "python", .check = python_check, .init = python_init, .output = python_output},
    {.name = "python_continuous",
     .check = python_check,
     .init = python_init,
     .output = python_output,
     .derivative = python_derivative},
    {.name = "python_discrete",
     .check = python_check,
     .init = python_init,
     .output = python_output,
     .update = python_update},
    {.name = "python_internal",
     .check = python_check,
     .init = python_init,
     .output = python_output,
     .exit_initialization = python_begin,
     .advance = python_advance},
    {.name = "python_internal_rollback",
     .check = python_check,
     .init = python_init,
     .output = python_output,
     .exit_initialization = python_begin,
     .accept_step = python_accept_step,
     .advance = python_advance,
     .save = python_save,
     .restore = python_restore},
    {.name = 0},
};
