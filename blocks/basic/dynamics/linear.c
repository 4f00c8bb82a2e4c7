/* Linear systems: state spaces and digital filters. */
#include "blocks/core/kernel/kernel.h"
#include "blocks/core/kernel/matrix.h"

/* StateSpace: dx/dt = A x + B u, y = C x + D u; the same with z+ for dx/dt is DiscreteStateSpace.
 * p: A, B, C, D row by row, then the first state. i: 1 with D, 0 without direct feedthrough; of DiscreteStateSpace,
 * then the number of states. */
BL_SHARED enum {
    STATE_SPACE_DIRECT,
    STATE_SPACE_INTEGERS,
    STATE_SPACE_STATES = STATE_SPACE_INTEGERS,
    DISCRETE_STATE_SPACE_INTEGERS
};
static int state_space_fits(const bl_block *b, int32_t states) {
    if (b->u_count != 1 || b->y_count != 1 || states < 1) return 0;
    if (b->i[STATE_SPACE_DIRECT] != 0 && b->i[STATE_SPACE_DIRECT] != 1) return 0;
    const int64_t n = states, m = b->u_width[0], q = b->y_width[0];
    const int64_t sizes[] = {n * n, n * m, q * n, b->i[0] * (q * m), n};
    return bl_sizes_fit(sizes, 5, b->p_count);
}

typedef struct {
    const double *a, *b, *c, *d, *first;
} state_space_matrices;

static state_space_matrices state_space_split(const bl_block *b, int32_t n) {
    const int32_t m = b->u_width[0], q = b->y_width[0];
    state_space_matrices s;
    s.a = b->p;
    s.b = s.a + n * n;
    s.c = s.b + n * m;
    s.d = s.c + q * n;
    s.first = s.d + b->i[0] * (q * m);
    return s;
}

/* result = P x + Q u; Q may be absent. */
static void state_space_multiply(const bl_block *b, const double *p, const double *q, const double *x, int32_t n,
                                 double *result, int32_t rows) {
    const double *u = b->u[0];
    const int32_t m = b->u_width[0];
    for (int32_t r = 0; r < rows; r++) {
        double sum = bl_dot(0.0, p + r * n, x, n);
        if (q) sum = bl_dot(sum, q + r * m, u, m);
        result[r] = sum;
    }
}

static int state_space_check(const bl_block *b) {
    return b->i_count == STATE_SPACE_INTEGERS && state_space_fits(b, b->x_count);
}
static int state_space_init(bl_block *b, double t) {
    (void)t;
    const double *first = state_space_split(b, b->x_count).first;
    for (int32_t k = 0; k < b->x_count; k++) b->x[k] = first[k];
    return BL_OK;
}
static int state_space_output(bl_block *b, double t) {
    (void)t;
    const state_space_matrices s = state_space_split(b, b->x_count);
    state_space_multiply(b, s.c, b->i[0] ? s.d : 0, b->x, b->x_count, b->y[0], b->y_width[0]);
    return BL_OK;
}
static int state_space_derivative(bl_block *b, double t) {
    (void)t;
    const state_space_matrices s = state_space_split(b, b->x_count);
    state_space_multiply(b, s.a, s.b, b->x, b->x_count, b->dx, b->x_count);
    return BL_OK;
}

/* The second half of z is room for the next state. */
static int discrete_state_space_check(const bl_block *b) {
    return b->i_count == DISCRETE_STATE_SPACE_INTEGERS && state_space_fits(b, b->i[STATE_SPACE_STATES]);
}
static bl_sizes discrete_state_space_sizes(const bl_block *b) {
    return (bl_sizes){.memory = 2 * (int64_t)b->i[STATE_SPACE_STATES]};
}
static int discrete_state_space_init(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->i[STATE_SPACE_STATES];
    const double *first = state_space_split(b, n).first;
    for (int32_t k = 0; k < n; k++) {
        b->z[k] = first[k];
        b->z[n + k] = 0.0;
    }
    return BL_OK;
}
static int discrete_state_space_output(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->i[STATE_SPACE_STATES];
    const state_space_matrices s = state_space_split(b, n);
    state_space_multiply(b, s.c, b->i[0] ? s.d : 0, b->z, n, b->y[0], b->y_width[0]);
    return BL_OK;
}
static int discrete_state_space_update(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->i[STATE_SPACE_STATES];
    const state_space_matrices s = state_space_split(b, n);
    state_space_multiply(b, s.a, s.b, b->z, n, b->z + n, n);
    for (int32_t k = 0; k < n; k++) b->z[k] = b->z[n + k];
    return BL_OK;
}

/* DiscreteTransferFunction, direct form II transposed, for each element of u:
 *   a0 y = b0 u + a0 z1,  z_j+ = z_{j+1} + (b_j u) / a0 - (a_j y) / a0
 * i: number of numerator coefficients. p: numerator, denominator, both from the highest power of z. A
 * numerator that is shorter has leading zeros; then there is no direct feedthrough. */
static int discrete_transfer_function_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 1 || b->i_count != 1 || b->u_width[0] != b->y_width[0]) return 0;
    if (b->i[0] < 1 || b->i[0] >= b->p_count) return 0;
    const int32_t order = b->p_count - b->i[0] - 1;
    return order >= 1 && b->i[0] <= order + 1;
}
static bl_sizes discrete_transfer_function_sizes(const bl_block *b) {
    return (bl_sizes){.memory = (int64_t)(b->p_count - b->i[0] - 1) * b->y_width[0]};
}
static int discrete_transfer_function_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = 0.0;
    return BL_OK;
}
static double discrete_transfer_function_value(const bl_block *b, int32_t k) {
    const int32_t order = b->p_count - b->i[0] - 1;
    const double *a = b->p + b->i[0], first = b->z[k * order];
    return b->i[0] == order + 1 ? first + b->p[0] / a[0] * b->u[0][k] : first;
}
static int discrete_transfer_function_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = discrete_transfer_function_value(b, k);
    return BL_OK;
}
static int discrete_transfer_function_update(bl_block *b, double t) {
    (void)t;
    const int32_t order = b->p_count - b->i[0] - 1, missing = order + 1 - b->i[0];
    const double *a = b->p + b->i[0];
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double u = b->u[0][k], y = discrete_transfer_function_value(b, k);
        double *z = b->z + k * order;
        for (int32_t j = 1; j <= order; j++) {
            const double next = j < order ? z[j] : 0.0;
            const double driven = j >= missing ? next + b->p[j - missing] / a[0] * u : next;
            z[j - 1] = driven - a[j] / a[0] * y;
        }
    }
    return BL_OK;
}

/* FIR: y[n] = c_0 u[n] + c_1 u[n-1] + …, for each element of u.
 * i: number of coefficients, 1 if c_0 counts (else no direct feedthrough), number of initial values.
 * p: coefficients, values before the start. z: index of the newest sample, all samples but u itself. */
BL_SHARED enum { FIR_TAPS, FIR_DIRECT, FIR_INITIAL, FIR_INTEGERS };

static int fir_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 1 || b->i_count != FIR_INTEGERS || b->i[FIR_TAPS] < 1) return 0;
    const int32_t n = b->y_width[0], initial = b->i[FIR_INITIAL];
    return b->u_width[0] == n && (b->i[FIR_DIRECT] == 0 || b->i[FIR_DIRECT] == 1) && (initial == 1 || initial == n) &&
           (int64_t)b->p_count == (int64_t)b->i[FIR_TAPS] + initial;
}
static bl_sizes fir_sizes(const bl_block *b) {
    return (bl_sizes){.memory = 1 + ((int64_t)b->i[FIR_TAPS] - 1) * b->y_width[0]};
}
static int32_t fir_newest(const bl_block *b) {
    return b->z[0] >= 0.0 && b->z[0] < (double)(b->i[FIR_TAPS] - 1) ? (int32_t)b->z[0] : 0;
}
static int fir_init(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->y_width[0];
    const double *initial = b->p + b->i[FIR_TAPS];
    b->z[0] = 0.0;
    for (int32_t s = 0; s < b->i[FIR_TAPS] - 1; s++)
        for (int32_t k = 0; k < n; k++) b->z[1 + s * n + k] = initial[b->i[FIR_INITIAL] > 1 ? k : 0];
    return BL_OK;
}
static int fir_output(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->y_width[0], kept = b->i[FIR_TAPS] - 1, newest = fir_newest(b);
    for (int32_t k = 0; k < n; k++) {
        double sum = b->i[FIR_DIRECT] ? b->p[0] * b->u[0][k] : 0.0;
        int32_t place = newest;
        for (int32_t s = 1; s <= kept; s++) {
            sum += b->p[s] * b->z[1 + place * n + k];
            place = place > 0 ? place - 1 : kept - 1;
        }
        b->y[0][k] = sum;
    }
    return BL_OK;
}
static int fir_update(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->y_width[0], kept = b->i[FIR_TAPS] - 1;
    if (kept == 0) return BL_OK;
    const int32_t place = fir_newest(b) + 1 < kept ? fir_newest(b) + 1 : 0;
    for (int32_t k = 0; k < n; k++) b->z[1 + place * n + k] = b->u[0][k];
    b->z[0] = (double)place;
    return BL_OK;
}

const bl_kernel bl_kernels_linear[] = {
    {.name = "state_space",
     .check = state_space_check,
     .init = state_space_init,
     .output = state_space_output,
     .derivative = state_space_derivative},
    {.name = "discrete_state_space",
     .check = discrete_state_space_check,
     .sizes = discrete_state_space_sizes,
     .init = discrete_state_space_init,
     .output = discrete_state_space_output,
     .update = discrete_state_space_update},
    {.name = "discrete_transfer_function",
     .check = discrete_transfer_function_check,
     .sizes = discrete_transfer_function_sizes,
     .init = discrete_transfer_function_init,
     .output = discrete_transfer_function_output,
     .update = discrete_transfer_function_update},
    {.name = "fir",
     .check = fir_check,
     .sizes = fir_sizes,
     .init = fir_init,
     .output = fir_output,
     .update = fir_update},
    {.name = 0},
};
