/* Expression: a formula as a small program for a stack machine.
 *
 * i holds the program: words of an opcode and its operands. blocks/formula.py writes it; the opcodes here
 * and there stand in the same order. There are no jumps, so a program ends after as many steps as it has
 * words; both sides of a conditional are computed and `select` takes one. */
#include <math.h>
#include <string.h>

#include "blocks/kernel.h"

enum {
    EXPRESSION_STORE,     /* output port, element */
    EXPRESSION_CONSTANT,  /* low word, high word */
    EXPRESSION_INPUT,     /* input port, element */
    EXPRESSION_PARAMETER, /* number in p */
    EXPRESSION_TIME,
    EXPRESSION_TUCK, /* a b → b a b */
    EXPRESSION_SWAP, /* a b → b a */
    EXPRESSION_SELECT, EXPRESSION_CLIP,
    EXPRESSION_ADD, EXPRESSION_SUBTRACT, EXPRESSION_MULTIPLY, EXPRESSION_DIVIDE, EXPRESSION_POWER,
    EXPRESSION_FLOOR_DIVIDE, EXPRESSION_MODULO,
    EXPRESSION_LESS, EXPRESSION_LESS_EQUAL, EXPRESSION_EQUAL, EXPRESSION_NOT_EQUAL,
    EXPRESSION_GREATER_EQUAL, EXPRESSION_GREATER, EXPRESSION_AND, EXPRESSION_OR,
    EXPRESSION_MIN, EXPRESSION_MAX, EXPRESSION_ATAN2, EXPRESSION_HYPOT,
    EXPRESSION_NEGATE, EXPRESSION_NOT, EXPRESSION_TRUTH, EXPRESSION_SQUARE,
    EXPRESSION_ABS, EXPRESSION_SIGN, EXPRESSION_FLOOR, EXPRESSION_CEIL, EXPRESSION_ROUND, EXPRESSION_SQRT,
    EXPRESSION_EXP, EXPRESSION_LOG, EXPRESSION_LOG10,
    EXPRESSION_SIN, EXPRESSION_COS, EXPRESSION_TAN, EXPRESSION_ASIN, EXPRESSION_ACOS, EXPRESSION_ATAN,
    EXPRESSION_SINH, EXPRESSION_COSH, EXPRESSION_TANH,
    EXPRESSION_OPCODES,
    EXPRESSION_STACK = 64
};

/* How many values an opcode takes from the stack and leaves there. */
static void expression_shape(int32_t opcode, int32_t *takes, int32_t *leaves) {
    *leaves = 1;
    if (opcode == EXPRESSION_STORE) {
        *takes = 1;
        *leaves = 0;
    } else if (opcode <= EXPRESSION_TIME) {
        *takes = 0;
    } else if (opcode == EXPRESSION_TUCK || opcode == EXPRESSION_SWAP) {
        *takes = 2;
        *leaves = opcode == EXPRESSION_TUCK ? 3 : 2;
    } else {
        *takes = opcode <= EXPRESSION_CLIP ? 3 : opcode <= EXPRESSION_HYPOT ? 2 : 1;
    }
}

/* Walks the program once: every operand in range, the stack never too short, too tall, or left over. */
static int expression_check(const bl_block *b) {
    int64_t k = 0;
    int32_t depth = 0;
    while (k < b->i_count) {
        const int32_t opcode = b->i[k++], *operand = b->i + k;
        if (opcode < 0 || opcode >= EXPRESSION_OPCODES) return 0;
        const int32_t operands = opcode <= EXPRESSION_INPUT ? 2 : opcode == EXPRESSION_PARAMETER ? 1 : 0;
        if (operands > b->i_count - k) return 0;
        k += operands;
        if (opcode == EXPRESSION_STORE || opcode == EXPRESSION_INPUT) {
            const int32_t ports = opcode == EXPRESSION_STORE ? b->y_count : b->u_count;
            const int32_t *widths = opcode == EXPRESSION_STORE ? b->y_width : b->u_width;
            if (operand[0] < 0 || operand[0] >= ports) return 0;
            if (operand[1] < 0 || operand[1] >= widths[operand[0]]) return 0;
        } else if (opcode == EXPRESSION_PARAMETER) {
            if (operand[0] < 0 || operand[0] >= b->p_count) return 0;
        }
        int32_t takes = 0, leaves = 0;
        expression_shape(opcode, &takes, &leaves);
        if (depth < takes) return 0;
        depth += leaves - takes;
        if (depth > EXPRESSION_STACK) return 0;
    }
    return depth == 0;
}

static double expression_constant(const int32_t *words) {
    const uint64_t bits = (uint64_t)(uint32_t)words[1] << 32 | (uint32_t)words[0];
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* As Python does it: the remainder has the sign of the divisor. */
static double expression_modulo(double a, double b) {
    const double rest = fmod(a, b);
    if (rest == 0.0) return copysign(0.0, b);
    return (b < 0.0) != (rest < 0.0) ? rest + b : rest;
}

/* floor(a / b), of the exact quotient: a / b itself may round up to the next whole number. */
static double expression_floor_divide(double a, double b) {
    const double rest = fmod(a, b);
    double quotient = (a - rest) / b;
    if (rest != 0.0 && (b < 0.0) != (rest < 0.0)) quotient -= 1.0;
    if (quotient == 0.0) return copysign(0.0, a / b);
    const double below = floor(quotient);
    return quotient - below > 0.5 ? below + 1.0 : below;
}

/* The topmost value is kept in `a`; `s` points behind the others. The first push spills an `a` that means
   nothing, hence one more place than the program may use. */
#define EXPRESSION_PUSH(value, operands) \
    do {                                 \
        *s++ = a;                        \
        a = (value);                     \
        code += (operands);              \
    } while (0)

static int expression_output(bl_block *b, double t) {
    double stack[EXPRESSION_STACK + 1], *s = stack, a = 0.0;
    const int32_t *code = b->i, *const end = code + b->i_count;
    while (code != end) {
        switch (*code++) {
        case EXPRESSION_STORE:
            b->y[code[0]][code[1]] = a;
            code += 2;
            a = *--s;
            break;
        case EXPRESSION_CONSTANT: EXPRESSION_PUSH(expression_constant(code), 2); break;
        case EXPRESSION_INPUT: EXPRESSION_PUSH(b->u[code[0]][code[1]], 2); break;
        case EXPRESSION_PARAMETER: EXPRESSION_PUSH(b->p[code[0]], 1); break;
        case EXPRESSION_TIME: EXPRESSION_PUSH(t, 0); break;
        case EXPRESSION_TUCK: {
            const double below = s[-1];
            s[-1] = a;
            *s++ = below;
            break;
        }
        case EXPRESSION_SWAP: {
            const double below = s[-1];
            s[-1] = a;
            a = below;
            break;
        }
        case EXPRESSION_SELECT:
            s -= 2;
            if (s[0] != 0.0) a = s[1];
            break;
        case EXPRESSION_CLIP:
            s -= 2;
            a = s[0] < s[1] ? s[1] : s[0] > a ? a : s[0];
            break;
        case EXPRESSION_ADD: a = *--s + a; break;
        case EXPRESSION_SUBTRACT: a = *--s - a; break;
        case EXPRESSION_MULTIPLY: a = *--s * a; break;
        case EXPRESSION_DIVIDE: a = *--s / a; break;
        case EXPRESSION_POWER: a = pow(*--s, a); break;
        case EXPRESSION_FLOOR_DIVIDE: a = expression_floor_divide(*--s, a); break;
        case EXPRESSION_MODULO: a = expression_modulo(*--s, a); break;
        case EXPRESSION_LESS: a = *--s < a; break;
        case EXPRESSION_LESS_EQUAL: a = *--s <= a; break;
        case EXPRESSION_EQUAL: a = *--s == a; break;
        case EXPRESSION_NOT_EQUAL: a = *--s != a; break;
        case EXPRESSION_GREATER_EQUAL: a = *--s >= a; break;
        case EXPRESSION_GREATER: a = *--s > a; break;
        case EXPRESSION_AND: s--; a = *s != 0.0 && a != 0.0; break;
        case EXPRESSION_OR: s--; a = *s != 0.0 || a != 0.0; break;
        case EXPRESSION_MIN: s--; a = a < *s ? a : *s; break;
        case EXPRESSION_MAX: s--; a = a > *s ? a : *s; break;
        case EXPRESSION_ATAN2: a = atan2(*--s, a); break;
        case EXPRESSION_HYPOT: a = hypot(*--s, a); break;
        case EXPRESSION_NEGATE: a = -a; break;
        case EXPRESSION_NOT: a = a == 0.0; break;
        case EXPRESSION_TRUTH: a = a != 0.0; break;
        case EXPRESSION_SQUARE: a = a * a; break;
        case EXPRESSION_ABS: a = fabs(a); break;
        case EXPRESSION_SIGN: a = a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a; break;
        case EXPRESSION_FLOOR: a = floor(a); break;
        case EXPRESSION_CEIL: a = ceil(a); break;
        case EXPRESSION_ROUND: a = nearbyint(a); break;
        case EXPRESSION_SQRT: a = sqrt(a); break;
        case EXPRESSION_EXP: a = exp(a); break;
        case EXPRESSION_LOG: a = log(a); break;
        case EXPRESSION_LOG10: a = log10(a); break;
        case EXPRESSION_SIN: a = sin(a); break;
        case EXPRESSION_COS: a = cos(a); break;
        case EXPRESSION_TAN: a = tan(a); break;
        case EXPRESSION_ASIN: a = asin(a); break;
        case EXPRESSION_ACOS: a = acos(a); break;
        case EXPRESSION_ATAN: a = atan(a); break;
        case EXPRESSION_SINH: a = sinh(a); break;
        case EXPRESSION_COSH: a = cosh(a); break;
        case EXPRESSION_TANH: a = tanh(a); break;
        default: return BL_ERROR_PLAN; /* `check` has refused it */
        }
    }
    return BL_OK;
}

const bl_kernel bl_kernels_expression[] = {
    {.name = "expression", .check = expression_check, .output = expression_output},
    {.name = 0},
};
