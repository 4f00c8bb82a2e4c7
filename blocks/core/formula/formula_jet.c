/* Formulas with their derivatives: the stack machine over jets (value, first, second derivative).
 *
 *   f(x)' = f' x'                 f(x)'' = f'' x'² + f' x''
 *
 * blocks/multibody/analysis/_jets.py has the same rules in Python. */
#include <math.h>

#include "blocks/core/formula/formula.h"

typedef struct {
    double value, first, second;
} formula_jet;

static int formula_jet_varies(formula_jet x) { return x.first != 0.0 || x.second != 0.0; }

static formula_jet formula_jet_of(double value) { return (formula_jet){value, 0.0, 0.0}; }

static formula_jet formula_jet_compose(formula_jet x, double value, double slope, double bend) {
    if (!formula_jet_varies(x)) return formula_jet_of(value);
    return (formula_jet){value, slope * x.first, bend * x.first * x.first + slope * x.second};
}

static formula_jet formula_jet_unary(int32_t opcode, formula_jet x) {
    const double v = x.value;
    switch (opcode) {
        case BL_FORMULA_NEGATE: return (formula_jet){-v, -x.first, -x.second};
        case BL_FORMULA_NOT: return formula_jet_of(v == 0.0);
        case BL_FORMULA_TRUTH: return formula_jet_of(v != 0.0);
        case BL_FORMULA_SQUARE: return formula_jet_compose(x, v * v, 2.0 * v, 2.0);
        case BL_FORMULA_SQRT: return formula_jet_compose(x, sqrt(v), 0.5 / sqrt(v), -0.25 / (v * sqrt(v)));
        case BL_FORMULA_EXP: return formula_jet_compose(x, exp(v), exp(v), exp(v));
        case BL_FORMULA_LOG: return formula_jet_compose(x, log(v), 1.0 / v, -1.0 / (v * v));
        case BL_FORMULA_LOG10: {
            const double ten = log(10.0);
            return formula_jet_compose(x, log10(v), 1.0 / (v * ten), -1.0 / (v * v * ten));
        }
        case BL_FORMULA_SIN: return formula_jet_compose(x, sin(v), cos(v), -sin(v));
        case BL_FORMULA_COS: return formula_jet_compose(x, cos(v), -sin(v), -cos(v));
        case BL_FORMULA_TAN: {
            const double tangent = tan(v), slope = 1.0 + tangent * tangent;
            return formula_jet_compose(x, tangent, slope, 2.0 * tangent * slope);
        }
        case BL_FORMULA_ASIN:
        case BL_FORMULA_ACOS: {
            const double rest = 1.0 - v * v, slope = 1.0 / sqrt(rest), bend = v * slope / rest;
            return opcode == BL_FORMULA_ASIN ? formula_jet_compose(x, asin(v), slope, bend)
                                             : formula_jet_compose(x, acos(v), -slope, -bend);
        }
        case BL_FORMULA_ATAN: {
            const double slope = 1.0 / (1.0 + v * v);
            return formula_jet_compose(x, atan(v), slope, -2.0 * v * slope * slope);
        }
        case BL_FORMULA_SINH: return formula_jet_compose(x, sinh(v), cosh(v), sinh(v));
        case BL_FORMULA_COSH: return formula_jet_compose(x, cosh(v), sinh(v), cosh(v));
        default: {
            const double value = tanh(v), slope = 1.0 - value * value;
            return formula_jet_compose(x, value, slope, -2.0 * value * slope);
        }
    }
}

static formula_jet formula_jet_product(formula_jet a, formula_jet b) {
    return (formula_jet){a.value * b.value, a.first * b.value + a.value * b.first,
                         a.second * b.value + 2.0 * a.first * b.first + a.value * b.second};
}

static formula_jet formula_jet_power(formula_jet a, formula_jet b) {
    const double value = pow(a.value, b.value), n = b.value;
    if (!formula_jet_varies(b)) {
        const double slope = n != 0.0 ? n * pow(a.value, n - 1.0) : 0.0;
        const double bend = n != 0.0 && n != 1.0 ? n * (n - 1.0) * pow(a.value, n - 2.0) : 0.0;
        return formula_jet_compose(a, value, slope, bend);
    }
    const formula_jet exponent = formula_jet_product(b, formula_jet_unary(BL_FORMULA_LOG, a));
    return formula_jet_compose(exponent, value, value, value);
}

static formula_jet formula_jet_binary(int32_t opcode, formula_jet a, formula_jet b) {
    const double x = a.value, y = b.value;
    switch (opcode) {
        case BL_FORMULA_ADD: return (formula_jet){x + y, a.first + b.first, a.second + b.second};
        case BL_FORMULA_SUBTRACT: return (formula_jet){x - y, a.first - b.first, a.second - b.second};
        case BL_FORMULA_MULTIPLY: return formula_jet_product(a, b);
        case BL_FORMULA_DIVIDE: {
            const double value = x / y, first = (a.first - value * b.first) / y;
            if (!formula_jet_varies(a) && !formula_jet_varies(b)) return formula_jet_of(value);
            return (formula_jet){value, first, (a.second - 2.0 * first * b.first - value * b.second) / y};
        }
        case BL_FORMULA_POWER: return formula_jet_power(a, b);
        case BL_FORMULA_AND: return formula_jet_of(x != 0.0 && y != 0.0);
        case BL_FORMULA_OR: return formula_jet_of(x != 0.0 || y != 0.0);
        default: {
            const formula_jet aa = formula_jet_product(a, a), bb = formula_jet_product(b, b);
            formula_jet jet = formula_jet_unary(
                BL_FORMULA_SQRT, (formula_jet){aa.value + bb.value, aa.first + bb.first, aa.second + bb.second});
            jet.value = hypot(x, y);
            return jet;
        }
    }
}

/* The branching operations of one and of two operands, by mode k; see bl_formula_run. */
static formula_jet formula_jet_branch(int32_t opcode, const bl_modes *m, int32_t k, formula_jet x) {
    const double v = x.value;
    switch (opcode) {
        case BL_FORMULA_ABS:
            if (!m->mode && v >= 0.0) return (formula_jet){fabs(v), x.first, x.second}; /* of -0 too */
            return bl_decide(m, k, v >= 0.0, v) ? x : (formula_jet){-v, -x.first, -x.second};
        case BL_FORMULA_SIGN: return formula_jet_of(bl_formula_sign(m, k, v));
        case BL_FORMULA_FLOOR: return formula_jet_of(bl_formula_whole(m, k, floor(v), v, 0.0, 1.0));
        case BL_FORMULA_CEIL: return formula_jet_of(bl_formula_whole(m, k, ceil(v), v, -1.0, 0.0));
        default: return formula_jet_of(bl_formula_whole(m, k, nearbyint(v), v, -0.5, 0.5));
    }
}

static formula_jet formula_jet_choice(int32_t opcode, const bl_modes *m, int32_t k, formula_jet a, formula_jet b) {
    const double x = a.value, y = b.value;
    switch (opcode) {
        case BL_FORMULA_FLOOR_DIVIDE:
            return formula_jet_of(bl_formula_whole(m, k, bl_formula_floor_divide(x, y), x / y, 0.0, 1.0));
        case BL_FORMULA_MODULO: {
            const double turns = bl_formula_whole(m, k, bl_formula_floor_divide(x, y), x / y, 0.0, 1.0);
            const double rest = m->mode && *m->decision == BL_KEEP ? x - turns * y : bl_formula_modulo(x, y);
            return (formula_jet){rest, a.first - turns * b.first, a.second - turns * b.second};
        }
        case BL_FORMULA_LESS: return formula_jet_of(bl_decide(m, k, x < y, y - x));
        case BL_FORMULA_LESS_EQUAL: return formula_jet_of(bl_decide(m, k, x <= y, y - x));
        case BL_FORMULA_EQUAL: return formula_jet_of(bl_formula_equal(m, k, x, y));
        case BL_FORMULA_NOT_EQUAL: return formula_jet_of(bl_formula_equal(m, k, x, y) == 0.0);
        case BL_FORMULA_GREATER_EQUAL: return formula_jet_of(bl_decide(m, k, x >= y, x - y));
        case BL_FORMULA_GREATER: return formula_jet_of(bl_decide(m, k, x > y, x - y));
        case BL_FORMULA_MIN: return bl_decide(m, k, y < x, x - y) ? b : a;
        case BL_FORMULA_ATAN2: { /* of x, the ordinate, and y, the abscissa */
            const double value = bl_formula_atan2(m, k, x, y), square = x * x + y * y;
            if (!formula_jet_varies(a) && !formula_jet_varies(b)) return formula_jet_of(value);
            const double first = (y * a.first - x * b.first) / square;
            const double growth = 2.0 * (x * a.first + y * b.first);
            return (formula_jet){value, first, (y * a.second - x * b.second - first * growth) / square};
        }
        default: return bl_decide(m, k, y > x, y - x) ? b : a;
    }
}

/* Inputs are the values u, or else the jets `given`. */
static void formula_jet_run(const int32_t *code, int32_t count, const double time[3], const double *const *u,
                            const double *given, const double *p, const bl_modes *m, double jet[3]) {
    int32_t k = 0; /* mode */
    formula_jet stack[BL_FORMULA_STACK + 1], *s = stack; /* `s` points behind the topmost */
    const int32_t *const end = code + count;
    jet[0] = jet[1] = jet[2] = 0.0;
    while (code != end) {
        const int32_t opcode = *code++;
        switch (opcode) {
            case BL_FORMULA_STORE:
                s--;
                jet[0] = s->value;
                jet[1] = s->first;
                jet[2] = s->second;
                code += 2;
                break;
            case BL_FORMULA_CONSTANT:
                *s++ = formula_jet_of(bl_formula_constant(code));
                code += 2;
                break;
            case BL_FORMULA_INPUT:
                if (u) *s++ = formula_jet_of(u[code[0]][code[1]]);
                else memcpy(s++, given + 3 * (int64_t)code[1], sizeof *s);
                code += 2;
                break;
            case BL_FORMULA_PARAMETER: *s++ = formula_jet_of(p[*code++]); break;
            case BL_FORMULA_TIME: *s++ = (formula_jet){time[0], time[1], time[2]}; break;
            case BL_FORMULA_TUCK:
                s[0] = s[-1];
                s[-1] = s[-2];
                s[-2] = s[0];
                s++;
                break;
            case BL_FORMULA_SWAP:
                s[0] = s[-1];
                s[-1] = s[-2];
                s[-2] = s[0];
                break;
            case BL_FORMULA_SELECT:
                s -= 2;
                s[-1] = s[-1].value != 0.0 ? s[0] : s[1];
                break;
            case BL_FORMULA_CLIP: {
                s -= 2;
                const double side = bl_formula_side(m, k++, s[-1].value, s[0].value, s[1].value);
                if (side != 0.0) s[-1] = side < 0.0 ? s[0] : s[1];
                break;
            }
            default:
                if (opcode <= BL_FORMULA_HYPOT) {
                    s--;
                    s[-1] = bl_formula_branches(opcode) ? formula_jet_choice(opcode, m, k++, s[-1], s[0])
                                                        : formula_jet_binary(opcode, s[-1], s[0]);
                } else {
                    s[-1] = bl_formula_branches(opcode) ? formula_jet_branch(opcode, m, k++, s[-1])
                                                        : formula_jet_unary(opcode, s[-1]);
                }
        }
    }
}

void bl_formula_jet(const int32_t *code, int32_t count, double t, const double *const *u, const double *p,
                    const bl_modes *m, double jet[3]) {
    const double time[3] = {t, 1.0, 0.0};
    formula_jet_run(code, count, time, u, NULL, p, m, jet);
}

void bl_formula_jet_along(const int32_t *code, int32_t count, const double time[3], const double *given,
                          const double *p, const bl_modes *m, double jet[3]) {
    formula_jet_run(code, count, time, NULL, given, p, m, jet);
}
