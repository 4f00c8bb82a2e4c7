/* Arithmetic. */
#include "blocks/kernel.h"

/* Gain: y = k u, k a scalar or one factor for each element. */
static int gain_check(const bl_block *b) {
    return b->u_count == 1 && b->y_count == 1 && b->u_width[0] == b->y_width[0] &&
           (b->p_count == 1 || b->p_count == b->u_width[0]);
}
static int gain_output(bl_block *b, double t) {
    (void)t;
    const int32_t stride = b->p_count > 1;
    for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = b->p[k * stride] * b->u[0][k];
    return BL_OK;
}

/* Matrix gain: y = K u, K row by row. */
static int matrix_gain_check(const bl_block *b) {
    return b->u_count == 1 && b->y_count == 1 &&
           (int64_t)b->p_count == (int64_t)b->u_width[0] * b->y_width[0];
}
static int matrix_gain_output(bl_block *b, double t) {
    (void)t;
    const int32_t columns = b->u_width[0];
    for (int32_t r = 0; r < b->y_width[0]; r++) {
        double sum = 0.0;
        for (int32_t c = 0; c < columns; c++) sum += b->p[r * columns + c] * b->u[0][c];
        b->y[0][r] = sum;
    }
    return BL_OK;
}

/* Sum: y = ± u1 ± u2 …; i holds one sign, +1 or -1, for each input. */
static int sum_check(const bl_block *b) {
    if (b->y_count != 1 || b->u_count < 1 || b->i_count != b->u_count) return 0;
    for (int32_t k = 0; k < b->u_count; k++)
        if (b->u_width[k] != b->y_width[0] || (b->i[k] != 1 && b->i[k] != -1)) return 0;
    return 1;
}
static int sum_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        double sum = b->i[0] > 0 ? b->u[0][k] : -b->u[0][k];
        for (int32_t j = 1; j < b->u_count; j++) sum += b->i[j] > 0 ? b->u[j][k] : -b->u[j][k];
        b->y[0][k] = sum;
    }
    return BL_OK;
}

const bl_kernel bl_kernels_math[] = {
    {.name = "gain", .check = gain_check, .output = gain_output},
    {.name = "matrix_gain", .check = matrix_gain_check, .output = matrix_gain_output},
    {.name = "sum", .check = sum_check, .output = sum_output},
    {.name = 0},
};
