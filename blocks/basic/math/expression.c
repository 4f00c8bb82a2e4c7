/* Expression: a formula as a block. Its integers are the program. */
#include "blocks/core/formula/formula.h"
#include "blocks/core/kernel/kernel.h"

static int expression_check(const bl_block *b) {
    const bl_formula_reach reach = {.u_width = b->u_width,
                                    .y_width = b->y_width,
                                    .u_count = b->u_count,
                                    .y_count = b->y_count,
                                    .p_count = b->p_count};
    return bl_formula_check(b->i, b->i_count, &reach);
}

static int expression_output(bl_block *b, double t) {
    bl_formula_run(b->i, b->i_count, t, b->u, b->p, b->y, &b->modes);
    return BL_OK;
}

static int32_t expression_crossings(const bl_block *b) { return bl_formula_crossings(b->i, b->i_count); }

const bl_kernel bl_kernels_expression[] = {
    {.name = "expression",
     .check = expression_check,
     .output = expression_output,
     .crossing_count = expression_crossings},
    {.name = 0},
};
