/* The stack machine of formulas. */
#include <math.h>

#include "blocks/core/formula/formula.h"
#include "blocks/core/kernel/constants.h"

/* How many values an opcode takes from the stack and leaves there. */
static void formula_shape(int32_t opcode, int32_t *takes, int32_t *leaves) {
    *leaves = 1;
    if (opcode == BL_FORMULA_STORE) {
        *takes = 1;
        *leaves = 0;
    } else if (opcode <= BL_FORMULA_TIME) {
        *takes = 0;
    } else if (opcode == BL_FORMULA_TUCK || opcode == BL_FORMULA_SWAP) {
        *takes = 2;
        *leaves = opcode == BL_FORMULA_TUCK ? 3 : 2;
    } else {
        *takes = opcode <= BL_FORMULA_CLIP ? 3 : opcode <= BL_FORMULA_HYPOT ? 2 : 1;
    }
}

static int32_t formula_operands(int32_t opcode) {
    return opcode <= BL_FORMULA_INPUT ? 2 : opcode == BL_FORMULA_PARAMETER ? 1 : 0;
}

int bl_formula_check(const int32_t *code, int64_t count, const bl_formula_reach *reach) {
    int64_t k = 0;
    int32_t depth = 0;
    while (k < count) {
        const int32_t opcode = code[k++], *operand = code + k;
        if (opcode < 0 || opcode >= BL_FORMULA_OPCODES) return 0;
        const int32_t operands = formula_operands(opcode);
        if (operands > count - k) return 0;
        k += operands;
        if (opcode == BL_FORMULA_STORE || opcode == BL_FORMULA_INPUT) {
            const int32_t ports = opcode == BL_FORMULA_STORE ? reach->y_count : reach->u_count;
            const int32_t *widths = opcode == BL_FORMULA_STORE ? reach->y_width : reach->u_width;
            if (operand[0] < 0 || operand[0] >= ports) return 0;
            if (operand[1] < 0 || operand[1] >= widths[operand[0]]) return 0;
        } else if (opcode == BL_FORMULA_PARAMETER) {
            if (operand[0] < 0 || operand[0] >= reach->p_count) return 0;
        }
        int32_t takes = 0, leaves = 0;
        formula_shape(opcode, &takes, &leaves);
        if (depth < takes) return 0;
        depth += leaves - takes;
        if (depth > BL_FORMULA_STACK) return 0;
    }
    return depth == 0;
}

int32_t bl_formula_crossings(const int32_t *code, int32_t count) {
    int32_t found = 0;
    for (int32_t k = 0; k < count; k += 1 + formula_operands(code[k])) found += bl_formula_branches(code[k]);
    return found;
}

int32_t bl_formula_timed(const int32_t *code, int32_t count, int32_t *timed, int32_t *all) {
    enum { NOTHING = 0, TIME = 1, INPUTS = 2 };
    int32_t depends[BL_FORMULA_STACK + 1], depth = 0, k = 0, found = 0;
    for (const int32_t *end = code + count; code != end; code += 1 + formula_operands(*code)) {
        int32_t takes = 0, leaves = 0, *top = depends + depth;
        formula_shape(*code, &takes, &leaves);
        depth += leaves - takes;
        if (*code == BL_FORMULA_SWAP || *code == BL_FORMULA_TUCK) {
            const int32_t a = top[-2], b = top[-1];
            top[-2] = b;
            top[-1] = a;
            if (*code == BL_FORMULA_TUCK) top[0] = b;
            continue;
        }
        int32_t on = *code == BL_FORMULA_TIME ? TIME : *code == BL_FORMULA_INPUT ? INPUTS : NOTHING;
        for (int32_t n = 1; n <= takes; n++) on |= top[-n];
        if (leaves == 1) top[-takes] = on;
        if (!bl_formula_branches(*code)) continue;
        timed[k] = on == TIME;
        found += timed[k++];
    }
    *all = k;
    return found;
}

/* As Python does it: the remainder has the sign of the divisor. */
double bl_formula_modulo(double a, double b) {
    const double rest = fmod(a, b);
    if (rest == 0.0) return copysign(0.0, b);
    return (b < 0.0) != (rest < 0.0) ? rest + b : rest;
}

/* floor(a / b), of the exact quotient: a / b itself may round up to the next whole number. */
double bl_formula_floor_divide(double a, double b) {
    const double rest = fmod(a, b);
    double quotient = (a - rest) / b;
    if (rest != 0.0 && (b < 0.0) != (rest < 0.0)) quotient -= 1.0;
    if (quotient == 0.0) return copysign(0.0, a / b);
    const double below = floor(quotient);
    return quotient - below > 0.5 ? below + 1.0 : below;
}

static double formula_clip(const bl_modes *m, int32_t k, double v, double low, double high) {
    const double side = bl_formula_side(m, k, v, low, high);
    return side < 0.0 ? low : side > 0.0 ? high : v;
}

static double formula_modulo(const bl_modes *m, int32_t k, double a, double b) {
    if (!m->mode) return bl_formula_modulo(a, b);
    const double whole = bl_formula_whole(m, k, bl_formula_floor_divide(a, b), a / b, 0.0, 1.0);
    return *m->decision == BL_KEEP ? a - whole * b : bl_formula_modulo(a, b);
}

double bl_formula_atan2(const bl_modes *m, int32_t k, double v, double w) {
    const double angle = atan2(v, w);
    if (!m->mode) return angle;
    const double side = bl_keep_mode(m, k, !(w < 0.0) ? 0.0 : signbit(v) ? -1.0 : 1.0);
    m->crossing[k] = side == 0.0 ? w : fmin(side * v, -w);
    if (side == 0.0 || !(w < 0.0) || (signbit(v) != 0) == (side < 0.0)) return angle;
    return angle + side * (2.0 * BL_PI);
}

/* The top of the stack is in `a`; `s` points past the others. The first push spills an undefined `a`, so the stack
   has one more element than the program may use. */
#define BL_FORMULA_PUSH(value, operands) \
    do { \
        *s++ = a; \
        a = (value); \
        code += (operands); \
    } while (0)

void bl_formula_run(const int32_t *code, int32_t count, double t, const double *const *u, const double *p,
                    double *const *y, const bl_modes *m) {
    int32_t k = 0; /* mode */
    double stack[BL_FORMULA_STACK + 1], *s = stack, a = 0.0;
    const int32_t *const end = code + count;
    while (code != end) {
        switch (*code++) {
            case BL_FORMULA_STORE:
                y[code[0]][code[1]] = a;
                code += 2;
                a = *--s;
                break;
            case BL_FORMULA_CONSTANT: BL_FORMULA_PUSH(bl_formula_constant(code), 2); break;
            case BL_FORMULA_INPUT: BL_FORMULA_PUSH(u[code[0]][code[1]], 2); break;
            case BL_FORMULA_PARAMETER: BL_FORMULA_PUSH(p[code[0]], 1); break;
            case BL_FORMULA_TIME: BL_FORMULA_PUSH(t, 0); break;
            case BL_FORMULA_TUCK: {
                const double below = s[-1];
                s[-1] = a;
                *s++ = below;
                break;
            }
            case BL_FORMULA_SWAP: {
                const double below = s[-1];
                s[-1] = a;
                a = below;
                break;
            }
            case BL_FORMULA_SELECT:
                s -= 2;
                if (s[0] != 0.0) a = s[1];
                break;
            case BL_FORMULA_CLIP:
                s -= 2;
                a = formula_clip(m, k++, s[0], s[1], a);
                break;
            case BL_FORMULA_ADD: a = *--s + a; break;
            case BL_FORMULA_SUBTRACT: a = *--s - a; break;
            case BL_FORMULA_MULTIPLY: a = *--s * a; break;
            case BL_FORMULA_DIVIDE: a = *--s / a; break;
            case BL_FORMULA_POWER: a = pow(*--s, a); break;
            case BL_FORMULA_FLOOR_DIVIDE:
                s--;
                a = bl_formula_whole(m, k++, bl_formula_floor_divide(*s, a), *s / a, 0.0, 1.0);
                break;
            case BL_FORMULA_MODULO:
                s--;
                a = formula_modulo(m, k++, *s, a);
                break;
            case BL_FORMULA_LESS:
                s--;
                a = bl_decide(m, k++, *s < a, a - *s);
                break;
            case BL_FORMULA_LESS_EQUAL:
                s--;
                a = bl_decide(m, k++, *s <= a, a - *s);
                break;
            case BL_FORMULA_EQUAL:
                s--;
                a = bl_formula_equal(m, k++, *s, a);
                break;
            case BL_FORMULA_NOT_EQUAL:
                s--;
                a = bl_formula_equal(m, k++, *s, a) == 0.0;
                break;
            case BL_FORMULA_GREATER_EQUAL:
                s--;
                a = bl_decide(m, k++, *s >= a, *s - a);
                break;
            case BL_FORMULA_GREATER:
                s--;
                a = bl_decide(m, k++, *s > a, *s - a);
                break;
            case BL_FORMULA_AND:
                s--;
                a = *s != 0.0 && a != 0.0;
                break;
            case BL_FORMULA_OR:
                s--;
                a = *s != 0.0 || a != 0.0;
                break;
            case BL_FORMULA_MIN:
                s--;
                a = bl_decide(m, k++, a < *s, *s - a) ? a : *s;
                break;
            case BL_FORMULA_MAX:
                s--;
                a = bl_decide(m, k++, a > *s, a - *s) ? a : *s;
                break;
            case BL_FORMULA_ATAN2:
                s--;
                a = bl_formula_atan2(m, k++, *s, a);
                break;
            case BL_FORMULA_HYPOT: a = hypot(*--s, a); break;
            case BL_FORMULA_NEGATE: a = -a; break;
            case BL_FORMULA_NOT: a = a == 0.0; break;
            case BL_FORMULA_TRUTH: a = a != 0.0; break;
            case BL_FORMULA_SQUARE: a = a * a; break;
            case BL_FORMULA_ABS: a = !m->mode ? fabs(a) : bl_decide(m, k++, a > 0.0, a) ? a : -a; break;
            case BL_FORMULA_SIGN: a = bl_formula_sign(m, k++, a); break;
            case BL_FORMULA_FLOOR: a = bl_formula_whole(m, k++, floor(a), a, 0.0, 1.0); break;
            case BL_FORMULA_CEIL: a = bl_formula_whole(m, k++, ceil(a), a, -1.0, 0.0); break;
            case BL_FORMULA_ROUND: a = bl_formula_whole(m, k++, nearbyint(a), a, -0.5, 0.5); break;
            case BL_FORMULA_SQRT: a = sqrt(a); break;
            case BL_FORMULA_EXP: a = exp(a); break;
            case BL_FORMULA_LOG: a = log(a); break;
            case BL_FORMULA_LOG10: a = log10(a); break;
            case BL_FORMULA_SIN: a = sin(a); break;
            case BL_FORMULA_COS: a = cos(a); break;
            case BL_FORMULA_TAN: a = tan(a); break;
            case BL_FORMULA_ASIN: a = asin(a); break;
            case BL_FORMULA_ACOS: a = acos(a); break;
            case BL_FORMULA_ATAN: a = atan(a); break;
            case BL_FORMULA_SINH: a = sinh(a); break;
            case BL_FORMULA_COSH: a = cosh(a); break;
            case BL_FORMULA_TANH: a = tanh(a); break;
            default: return; /* rejected by bl_formula_check */
        }
    }
}
