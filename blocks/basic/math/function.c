/* Functions of one and of two inputs, element by element. */
#include <math.h>

#include "blocks/core/formula/formula.h"
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
static int32_t function_crossings(const bl_block *b) { return b->i[0] >= FUNCTION_FLOOR ? b->y_width[0] : 0; }

/* A whole number that holds while low <= v - whole <= high. */
static double function_whole(const bl_block *b, int32_t k, double now, double v, double low, double high) {
    const double whole = bl_keep_mode(&b->modes, k, now);
    if (b->modes.mode) b->modes.crossing[k] = fmin(v - whole - low, high - (v - whole));
    return whole;
}
/* 0 holds from -1 to 1. */
static double function_trunc(const bl_block *b, int32_t k, double v) {
    const double now = trunc(v), whole = b->modes.mode && *b->modes.decision == BL_KEEP ? b->modes.mode[k] : now;
    return function_whole(b, k, now, v, whole > 0.0 ? 0.0 : -1.0, whole < 0.0 ? 0.0 : 1.0);
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
        case FUNCTION_FLOOR: FUNCTION_EACH(function_whole(b, k, floor(v), v, 0.0, 1.0));
        case FUNCTION_CEIL: FUNCTION_EACH(function_whole(b, k, ceil(v), v, -1.0, 0.0));
        case FUNCTION_ROUND: FUNCTION_EACH(function_whole(b, k, round(v), v, -0.5, 0.5));
        case FUNCTION_TRUNC: FUNCTION_EACH(function_trunc(b, k, v));
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
static int32_t function_pair_crossings(const bl_block *b) {
    return b->i[0] == FUNCTION_MOD || b->i[0] == FUNCTION_ATAN2 ? b->y_width[0] : 0;
}
static double function_modulo(const bl_block *b, int32_t k, double v, double w) {
    if (!b->modes.mode) return function_mod(v, w);
    const double whole = function_whole(b, k, floor(v / w), v / w, 0.0, 1.0);
    return *b->modes.decision == BL_KEEP ? v - whole * w : function_mod(v, w);
}
static int function_pair_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double v = b->u[0][k], w = b->u[1][k];
        switch (b->i[0]) {
            case FUNCTION_ATAN2: b->y[0][k] = bl_formula_atan2(&b->modes, k, v, w); break;
            case FUNCTION_HYPOT: b->y[0][k] = hypot(v, w); break;
            case FUNCTION_POW: b->y[0][k] = pow(v, w); break;
            default: b->y[0][k] = function_modulo(b, k, v, w);
        }
    }
    return BL_OK;
}

const bl_kernel bl_kernels_function[] = {
    {.name = "function", .check = function_check, .output = function_output, .crossing_count = function_crossings},
    {.name = "function_pair",
     .check = function_pair_check,
     .output = function_pair_output,
     .crossing_count = function_pair_crossings},
    {.name = 0},
};
