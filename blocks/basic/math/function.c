/* Functions of one and of two inputs, element by element. */
#include <math.h>

#include "blocks/core/kernel/kernel.h"

BL_SHARED enum {
    FUNCTION_SIN,
    FUNCTION_COS,
    FUNCTION_TAN,
    FUNCTION_ASIN,
    FUNCTION_ACOS,
    FUNCTION_ATAN,
    FUNCTION_SINH,
    FUNCTION_COSH,
    FUNCTION_TANH,
    FUNCTION_ASINH,
    FUNCTION_ACOSH,
    FUNCTION_ATANH,
    FUNCTION_EXP,
    FUNCTION_EXPM1,
    FUNCTION_LOG,
    FUNCTION_LOG1P,
    FUNCTION_LOG2,
    FUNCTION_LOG10,
    FUNCTION_SQRT,
    FUNCTION_CBRT,
    FUNCTION_SQUARE,
    FUNCTION_RECIPROCAL,
    FUNCTION_FLOOR,
    FUNCTION_CEIL,
    FUNCTION_ROUND,
    FUNCTION_TRUNC,
    FUNCTION_COUNT
};
BL_SHARED enum { FUNCTION_ATAN2, FUNCTION_HYPOT, FUNCTION_POW, FUNCTION_MOD, FUNCTION_PAIR_COUNT };

/* Deciding once for each call rather than once for each element. */
#define FUNCTION_EACH(expression) \
    for (int32_t k = 0; k < n; k++) { \
        const double v = u[k]; \
        y[k] = (expression); \
    } \
    break

static int function_check(const bl_block *b) {
    return b->u_count == 1 && b->y_count == 1 && b->u_width[0] == b->y_width[0] && b->i_count == 1 && b->i[0] >= 0 &&
           b->i[0] < FUNCTION_COUNT;
}
static int function_output(bl_block *b, double t) {
    (void)t;
    const double *u = b->u[0];
    double *y = b->y[0];
    const int32_t n = b->y_width[0];
    switch (b->i[0]) {
        case FUNCTION_SIN: FUNCTION_EACH(sin(v));
        case FUNCTION_COS: FUNCTION_EACH(cos(v));
        case FUNCTION_TAN: FUNCTION_EACH(tan(v));
        case FUNCTION_ASIN: FUNCTION_EACH(asin(v));
        case FUNCTION_ACOS: FUNCTION_EACH(acos(v));
        case FUNCTION_ATAN: FUNCTION_EACH(atan(v));
        case FUNCTION_SINH: FUNCTION_EACH(sinh(v));
        case FUNCTION_COSH: FUNCTION_EACH(cosh(v));
        case FUNCTION_TANH: FUNCTION_EACH(tanh(v));
        case FUNCTION_ASINH: FUNCTION_EACH(asinh(v));
        case FUNCTION_ACOSH: FUNCTION_EACH(acosh(v));
        case FUNCTION_ATANH: FUNCTION_EACH(atanh(v));
        case FUNCTION_EXP: FUNCTION_EACH(exp(v));
        case FUNCTION_EXPM1: FUNCTION_EACH(expm1(v));
        case FUNCTION_LOG: FUNCTION_EACH(log(v));
        case FUNCTION_LOG1P: FUNCTION_EACH(log1p(v));
        case FUNCTION_LOG2: FUNCTION_EACH(log2(v));
        case FUNCTION_LOG10: FUNCTION_EACH(log10(v));
        case FUNCTION_SQRT: FUNCTION_EACH(sqrt(v));
        case FUNCTION_CBRT: FUNCTION_EACH(cbrt(v));
        case FUNCTION_SQUARE: FUNCTION_EACH(v * v);
        case FUNCTION_RECIPROCAL: FUNCTION_EACH(1.0 / v);
        case FUNCTION_FLOOR: FUNCTION_EACH(floor(v));
        case FUNCTION_CEIL: FUNCTION_EACH(ceil(v));
        case FUNCTION_ROUND: FUNCTION_EACH(round(v));
        case FUNCTION_TRUNC: FUNCTION_EACH(trunc(v));
        default: return BL_ERROR_ARGUMENT;
    }
    return BL_OK;
}

#undef FUNCTION_EACH

/* The remainder has the sign of the divisor, as in Python: an angle taken modulo a turn is not negative. */
static double function_mod(double a, double b) {
    const double rest = fmod(a, b);
    return rest != 0.0 && (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}

static int function_pair_check(const bl_block *b) {
    return b->u_count == 2 && b->y_count == 1 && b->u_width[0] == b->y_width[0] && b->u_width[1] == b->y_width[0] &&
           b->i_count == 1 && b->i[0] >= 0 && b->i[0] < FUNCTION_PAIR_COUNT;
}
static int function_pair_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double v = b->u[0][k], w = b->u[1][k];
        switch (b->i[0]) {
            case FUNCTION_ATAN2: b->y[0][k] = atan2(v, w); break;
            case FUNCTION_HYPOT: b->y[0][k] = hypot(v, w); break;
            case FUNCTION_POW: b->y[0][k] = pow(v, w); break;
            default: b->y[0][k] = function_mod(v, w);
        }
    }
    return BL_OK;
}

const bl_kernel bl_kernels_function[] = {
    {.name = "function", .check = function_check, .output = function_output},
    {.name = "function_pair", .check = function_pair_check, .output = function_pair_output},
    {.name = 0},
};
