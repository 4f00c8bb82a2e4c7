/* Arithmetic. */
#include <math.h>

#include "blocks/core/kernel/kernel.h"

/* One input, one output, of the same width. */
static int math_elementwise(const bl_block *b) {
    return b->u_count == 1 && b->y_count == 1 && b->u_width[0] == b->y_width[0];
}

/* One output and at least one input, all of the same width; i holds one integer for each input. */
static int math_combining(const bl_block *b) {
    if (b->y_count != 1 || b->u_count < 1 || b->i_count != b->u_count) return 0;
    for (int32_t k = 0; k < b->u_count; k++)
        if (b->u_width[k] != b->y_width[0]) return 0;
    return 1;
}

/* Gain: y = k u, k a scalar or one factor for each element. */
static int gain_check(const bl_block *b) {
    return math_elementwise(b) && (b->p_count == 1 || b->p_count == b->u_width[0]);
}
static int gain_output(bl_block *b, double t) {
    (void)t;
    const int32_t stride = b->p_count > 1;
    if (b->y_width[0] == 1) { /* as a rule */
        b->y[0][0] = b->p[0] * b->u[0][0];
        return BL_OK;
    }
    for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = b->p[k * stride] * b->u[0][k];
    return BL_OK;
}

/* Matrix gain: y = K u, K row by row. */
static int matrix_gain_check(const bl_block *b) {
    return b->u_count == 1 && b->y_count == 1 && (int64_t)b->p_count == (int64_t)b->u_width[0] * b->y_width[0];
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

/* Sum: y = ± u1 ± u2 …; i holds one sign, positive or not, for each input. */
static int sum_check(const bl_block *b) { return math_combining(b); }
static int sum_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        double sum = b->i[0] > 0 ? b->u[0][k] : -b->u[0][k];
        for (int32_t j = 1; j < b->u_count; j++) sum += b->i[j] > 0 ? b->u[j][k] : -b->u[j][k];
        b->y[0][k] = sum;
    }
    return BL_OK;
}

/* Product: y = u1 * u2 / u3 …; i is positive for each factor, else it divides. */
static int product_check(const bl_block *b) { return math_combining(b); }
static int product_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        double product = b->i[0] > 0 ? b->u[0][k] : 1.0 / b->u[0][k];
        for (int32_t j = 1; j < b->u_count; j++) {
            if (b->i[j] > 0) product *= b->u[j][k];
            else product /= b->u[j][k];
        }
        b->y[0][k] = product;
    }
    return BL_OK;
}

/* MinMax over several inputs, or over the elements of one. i: 1 for the largest, 0 for the smallest. */
static int minmax_check(const bl_block *b) {
    if (b->y_count != 1 || b->u_count < 1 || b->i_count != 1) return 0;
    if (b->u_count == 1) return b->y_width[0] == 1;
    for (int32_t k = 0; k < b->u_count; k++)
        if (b->u_width[k] != b->y_width[0]) return 0;
    return 1;
}
/* The larger or smaller of a and c: crossing function k says which. */
static double minmax_of(const bl_block *b, int32_t k, double a, double c) {
    const double ahead = b->i[0] ? c - a : a - c;
    return bl_decide(&b->modes, k, b->i[0] ? c > a : c < a, ahead) ? c : a;
}
static int32_t minmax_crossings(const bl_block *b) {
    const int64_t count = b->u_count == 1 ? b->u_width[0] - 1 : (b->u_count - 1) * (int64_t)b->y_width[0];
    return count <= INT32_MAX ? (int32_t)count : -1; /* too many */
}
static int minmax_output(bl_block *b, double t) {
    (void)t;
    int32_t crossing = 0;
    if (b->u_count == 1) {
        double found = b->u[0][0];
        for (int32_t k = 1; k < b->u_width[0]; k++) found = minmax_of(b, crossing++, found, b->u[0][k]);
        b->y[0][0] = found;
        return BL_OK;
    }
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        double found = b->u[0][k];
        for (int32_t j = 1; j < b->u_count; j++) found = minmax_of(b, crossing++, found, b->u[j][k]);
        b->y[0][k] = found;
    }
    return BL_OK;
}

static int32_t math_crossings(const bl_block *b) { return b->y_width[0]; }

/* Abs: y = |u|. */
static int abs_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double v = b->u[0][k];
        b->y[0][k] = !b->modes.mode ? fabs(v) : bl_decide(&b->modes, k, v > 0.0, v) ? v : -v;
    }
    return BL_OK;
}

/* Sign: y = -1, 0 or 1. */
static int sign_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double v = b->u[0][k], sign = bl_keep_mode(&b->modes, k, (double)((v > 0.0) - (v < 0.0)));
        if (b->modes.mode) b->modes.crossing[k] = sign > 0.0 ? v : sign < 0.0 ? -v : -fabs(v);
        b->y[0][k] = sign;
    }
    return BL_OK;
}

/* Polynomial: y = c0 u^(n-1) + … + c(n-1), by Horner's rule. p: the coefficients. */
static int polynomial_check(const bl_block *b) { return math_elementwise(b) && b->p_count >= 1; }
static int polynomial_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        double sum = b->p[0];
        for (int32_t j = 1; j < b->p_count; j++) sum = sum * b->u[0][k] + b->p[j];
        b->y[0][k] = sum;
    }
    return BL_OK;
}

/* Convert: i is the kind that comes out. */
BL_SHARED enum { CONVERT_REAL, CONVERT_INTEGER, CONVERT_BOOLEAN };
static int convert_check(const bl_block *b) {
    return math_elementwise(b) && b->i_count == 1 && b->i[0] >= CONVERT_REAL && b->i[0] <= CONVERT_BOOLEAN;
}
static int convert_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double v = b->u[0][k];
        if (b->i[0] != CONVERT_INTEGER) {
            b->y[0][k] = b->i[0] == CONVERT_REAL ? v : v != 0.0;
            continue;
        }
        const double whole = bl_keep_mode(&b->modes, k, round(v));
        if (b->modes.mode) b->modes.crossing[k] = 0.5 - fabs(v - whole);
        b->y[0][k] = whole;
    }
    return BL_OK;
}
static int32_t convert_crossings(const bl_block *b) { return b->i[0] == CONVERT_INTEGER ? b->y_width[0] : 0; }

const bl_kernel bl_kernels_math[] = {
    {.name = "gain", .check = gain_check, .output = gain_output},
    {.name = "matrix_gain", .check = matrix_gain_check, .output = matrix_gain_output},
    {.name = "sum", .check = sum_check, .output = sum_output},
    {.name = "product", .check = product_check, .output = product_output},
    {.name = "minmax", .check = minmax_check, .output = minmax_output, .crossing_count = minmax_crossings},
    {.name = "abs", .check = math_elementwise, .output = abs_output, .crossing_count = math_crossings},
    {.name = "sign",
     .check = math_elementwise,
     .output = sign_output,
     .crossing_count = math_crossings,
     .constant_in_mode = 1},
    {.name = "polynomial", .check = polynomial_check, .output = polynomial_output},
    {.name = "convert",
     .check = convert_check,
     .output = convert_output,
     .crossing_count = convert_crossings,
     .constant_in_mode = 1},
    {.name = 0},
};
