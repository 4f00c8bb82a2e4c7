/* Formulas: small programs for a stack machine.
 *
 * A program is words of an opcode and its operands. blocks/core/formula/_formula.py writes it. There are no jumps, so a program ends after as many steps as it has words; both
 * sides of a conditional are computed and `select` takes one. */
#ifndef BIELLA_FORMULA_H
#define BIELLA_FORMULA_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "blocks/core/kernel/kernel.h"

enum {
    BL_FORMULA_STORE,     /* output port, element */
    BL_FORMULA_CONSTANT,  /* low word, high word */
    BL_FORMULA_INPUT,     /* input port, element */
    BL_FORMULA_PARAMETER, /* number in p */
    BL_FORMULA_TIME,
    BL_FORMULA_TUCK, /* a b → b a b */
    BL_FORMULA_SWAP, /* a b → b a */
    BL_FORMULA_SELECT,
    BL_FORMULA_CLIP,
    BL_FORMULA_ADD,
    BL_FORMULA_SUBTRACT,
    BL_FORMULA_MULTIPLY,
    BL_FORMULA_DIVIDE,
    BL_FORMULA_POWER,
    BL_FORMULA_FLOOR_DIVIDE,
    BL_FORMULA_MODULO,
    BL_FORMULA_LESS,
    BL_FORMULA_LESS_EQUAL,
    BL_FORMULA_EQUAL,
    BL_FORMULA_NOT_EQUAL,
    BL_FORMULA_GREATER_EQUAL,
    BL_FORMULA_GREATER,
    BL_FORMULA_AND,
    BL_FORMULA_OR,
    BL_FORMULA_MIN,
    BL_FORMULA_MAX,
    BL_FORMULA_ATAN2,
    BL_FORMULA_HYPOT,
    BL_FORMULA_NEGATE,
    BL_FORMULA_NOT,
    BL_FORMULA_TRUTH,
    BL_FORMULA_SQUARE,
    BL_FORMULA_ABS,
    BL_FORMULA_SIGN,
    BL_FORMULA_FLOOR,
    BL_FORMULA_CEIL,
    BL_FORMULA_ROUND,
    BL_FORMULA_SQRT,
    BL_FORMULA_EXP,
    BL_FORMULA_LOG,
    BL_FORMULA_LOG10,
    BL_FORMULA_SIN,
    BL_FORMULA_COS,
    BL_FORMULA_TAN,
    BL_FORMULA_ASIN,
    BL_FORMULA_ACOS,
    BL_FORMULA_ATAN,
    BL_FORMULA_SINH,
    BL_FORMULA_COSH,
    BL_FORMULA_TANH,
    BL_FORMULA_OPCODES,
    BL_FORMULA_STACK = 64
};

/* What a program may reach: ports and their widths, and the number of parameters. */
typedef struct {
    const int32_t *u_width, *y_width;
    int32_t u_count, y_count, p_count;
} bl_formula_reach;

/* Walks a program once: every operand in range, the stack never too short, too tall, or left over. A program that
   passes may be run with ports of these widths. */
int bl_formula_check(const int32_t *code, int64_t count, const bl_formula_reach *reach);

/* Comparisons, min, abs, floor … decide by `modes`, one for each of them in the order of the program: bl_formula_crossings. */
void bl_formula_run(const int32_t *code, int32_t count, double t, const double *const *u, const double *p,
                    double *const *y, const bl_modes *modes);

/* Whether an opcode is not smooth where a function of its operands changes its sign. */
static inline int bl_formula_branches(int32_t opcode) {
    switch (opcode) {
        case BL_FORMULA_CLIP:
        case BL_FORMULA_FLOOR_DIVIDE:
        case BL_FORMULA_MODULO:
        case BL_FORMULA_LESS:
        case BL_FORMULA_LESS_EQUAL:
        case BL_FORMULA_EQUAL:
        case BL_FORMULA_NOT_EQUAL:
        case BL_FORMULA_GREATER_EQUAL:
        case BL_FORMULA_GREATER:
        case BL_FORMULA_MIN:
        case BL_FORMULA_MAX:
        case BL_FORMULA_ABS:
        case BL_FORMULA_SIGN:
        case BL_FORMULA_FLOOR:
        case BL_FORMULA_CEIL:
        case BL_FORMULA_ROUND:
        case BL_FORMULA_ATAN2: return 1;
        default: return 0;
    }
}

/* Number of zero-crossing functions of a program that passes bl_formula_check. */
int32_t bl_formula_crossings(const int32_t *code, int32_t count);

/* Of each crossing function whether it depends on time, and on no input: into `timed`; their number into *all. Returns the number of
   those that do. */
int32_t bl_formula_timed(const int32_t *code, int32_t count, int32_t *timed, int32_t *all);

/* The last value that a program stores, with its first and second derivatives with respect to time, by the same modes; inputs
   and parameters count as constant. At a kink of abs, min, clip … the derivative is that of one side, and of
   floor, comparisons and the like it is 0. Derivatives are computed only of varying terms, so that the value of sqrt(t) at 0 is
   not lost because its derivative is infinite. */
void bl_formula_jet(const int32_t *code, int32_t count, double t, const double *const *u, const double *p,
                    const bl_modes *modes, double jet[3]);

/* The same with time and the elements of a single input port as functions of one variable: `time` and, three numbers each, `given` are
   their jets. */
void bl_formula_jet_along(const int32_t *code, int32_t count, const double time[3], const double *given,
                          const double *p, const bl_modes *modes, double jet[3]);

static inline double bl_formula_constant(const int32_t *words) {
    const uint64_t bits = (uint64_t)(uint32_t)words[1] << 32 | (uint32_t)words[0];
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* As Python does it: the remainder has the sign of the divisor, and floor_divide is floor(a / b) of the exact quotient. */
double bl_formula_modulo(double a, double b);
double bl_formula_floor_divide(double a, double b);
/* atan2(v, w), which jumps by a turn across the half-line v = 0, w < 0. Mode k: above it (1), below it (-1), or w >= 0 (0). */
double bl_formula_atan2(const bl_modes *m, int32_t k, double v, double w);

/* The branching operations, by mode k. Where the mode is kept, each continues smoothly beyond its border. */

/* -1 below `low`, 1 above `high`, else 0. */
static inline double bl_formula_side(const bl_modes *m, int32_t k, double v, double low, double high) {
    const double side = bl_keep_mode(m, k, v < low ? -1.0 : v > high ? 1.0 : 0.0);
    if (m->mode) m->crossing[k] = side < 0.0 ? low - v : side > 0.0 ? v - high : fmin(v - low, high - v);
    return side;
}

/* Equality ends at once; passing through it is not noticed. */
static inline double bl_formula_equal(const bl_modes *m, int32_t k, double a, double b) {
    const double equal = bl_keep_mode(m, k, a == b);
    if (m->mode) m->crossing[k] = equal != 0.0 ? -fabs(a - b) : 0.0;
    return equal;
}

static inline double bl_formula_sign(const bl_modes *m, int32_t k, double v) {
    const double sign = bl_keep_mode(m, k, v > 0.0 ? 1.0 : v < 0.0 ? -1.0 : v);
    if (m->mode) m->crossing[k] = sign > 0.0 ? v : sign < 0.0 ? -v : -fabs(v);
    return sign;
}

/* A whole number that holds while low <= v - whole <= high. */
static inline double bl_formula_whole(const bl_modes *m, int32_t k, double now, double v, double low, double high) {
    const double whole = bl_keep_mode(m, k, now);
    if (m->mode) m->crossing[k] = fmin(v - whole - low, high - (v - whole));
    return whole;
}

#endif
