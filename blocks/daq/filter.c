/* Filters around a converter: analog ones as chains of second-order sections, and decimation. */
#include "blocks/core/kernel/kernel.h"

/* AntiAliasFilter: for each element of u a chain of sections dx/dt = A x + b v, out = c x + d v, where v is the
 * output of the previous section. p: for each section A (2 x 2), b (2), c (2), d; in a last section of first order
 * only the entries of its one state count. i: order, 1 with direct feedthrough.
 * x: the states of the first element, of the second, …. */
enum { SECTION_B = 4, SECTION_C = 6, SECTION_D = 8, SECTION_SIZE = 9 };

static int sections_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 1 || b->i_count != 2 || b->u_width[0] != b->y_width[0]) return 0;
    const int64_t order = b->i[0];
    return order >= 1 && b->p_count == (order + 1) / 2 * SECTION_SIZE && b->x_count == order * b->y_width[0];
}
static int sections_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->x_count; k++) b->x[k] = 0.0;
    return BL_OK;
}
/* Output of a section with states x; v is read only if d is not 0, so that u is not used without feedthrough. */
static double section_output(const double *p, const double *x, int32_t states, double v) {
    double out = p[SECTION_C] * x[0];
    if (states > 1) out += p[SECTION_C + 1] * x[1];
    return p[SECTION_D] != 0.0 ? out + p[SECTION_D] * v : out;
}
static int sections_output(bl_block *b, double t) {
    (void)t;
    const int32_t order = b->i[0];
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        double v = b->i[1] ? b->u[0][k] : 0.0;
        const double *p = b->p, *x = b->x + k * order;
        for (int32_t left = order; left > 0; left -= 2, p += SECTION_SIZE, x += 2) v = section_output(p, x, left, v);
        b->y[0][k] = v;
    }
    return BL_OK;
}
static int sections_derivative(bl_block *b, double t) {
    (void)t;
    const int32_t order = b->i[0];
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        double v = b->u[0][k], *dx = b->dx + k * order;
        const double *p = b->p, *x = b->x + k * order;
        for (int32_t left = order; left > 0; left -= 2, p += SECTION_SIZE, x += 2, dx += 2) {
            dx[0] = p[0] * x[0] + p[SECTION_B] * v;
            if (left > 1) {
                dx[0] += p[1] * x[1];
                dx[1] = p[2] * x[0] + p[3] * x[1] + p[SECTION_B + 1] * v;
            }
            v = section_output(p, x, left, v);
        }
    }
    return BL_OK;
}

/* Decimator: y[m] = c_0 u[m R] + c_1 u[m R - 1] + …, held until the next. For each element of u.
 * i: R, number of coefficients. p: coefficients. z: samples until the next output, index of the newest sample, the
 * last output, then as many samples as there are coefficients but one. */
enum { DECIMATOR_WAIT, DECIMATOR_NEWEST, DECIMATOR_HELD };

static int decimator_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 1 || b->i_count != 2 || b->u_width[0] != b->y_width[0]) return 0;
    const int64_t taps = b->i[1];
    return b->i[0] >= 1 && taps >= 1 && b->p_count == taps;
}
static bl_sizes decimator_sizes(const bl_block *b) {
    return (bl_sizes){.memory = DECIMATOR_HELD + (int64_t)b->i[1] * b->y_width[0]};
}
static int decimator_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = 0.0;
    return BL_OK;
}
static int32_t decimator_newest(const bl_block *b) {
    const double kept = b->z[DECIMATOR_NEWEST];
    return kept >= 0.0 && kept < (double)(b->i[1] - 1) ? (int32_t)kept : 0;
}
static void decimator_filter(bl_block *b) {
    const int32_t n = b->y_width[0], kept = b->i[1] - 1, newest = decimator_newest(b);
    const double *ring = b->z + DECIMATOR_HELD + n;
    for (int32_t k = 0; k < n; k++) {
        double sum = b->p[0] * b->u[0][k];
        /* From the newest back to the start of the ring, then from its end. */
        const double *c = b->p + 1;
        for (int32_t place = kept ? newest : -1; place >= 0; place--) sum += *c++ * ring[place * n + k];
        for (int32_t place = kept - 1; place > newest; place--) sum += *c++ * ring[place * n + k];
        b->y[0][k] = sum;
    }
}
static int decimator_output(bl_block *b, double t) {
    (void)t;
    if (b->z[DECIMATOR_WAIT] == 0.0) {
        decimator_filter(b);
        return BL_OK;
    }
    for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = b->z[DECIMATOR_HELD + k];
    return BL_OK;
}
static int decimator_update(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->y_width[0], kept = b->i[1] - 1;
    if (b->z[DECIMATOR_WAIT] == 0.0) {
        /* The output of this sample has already been computed from the same input. */
        for (int32_t k = 0; k < n; k++) b->z[DECIMATOR_HELD + k] = b->y[0][k];
        b->z[DECIMATOR_WAIT] = (double)b->i[0];
    }
    b->z[DECIMATOR_WAIT] = b->z[DECIMATOR_WAIT] >= 1.0 ? b->z[DECIMATOR_WAIT] - 1.0 : 0.0;
    if (kept == 0) return BL_OK;
    const int32_t next = decimator_newest(b) + 1 < kept ? decimator_newest(b) + 1 : 0;
    for (int32_t k = 0; k < n; k++) b->z[DECIMATOR_HELD + n + next * n + k] = b->u[0][k];
    b->z[DECIMATOR_NEWEST] = (double)next;
    return BL_OK;
}

const bl_kernel bl_kernels_filter[] = {
    {.name = "sections",
     .check = sections_check,
     .init = sections_init,
     .output = sections_output,
     .derivative = sections_derivative},
    {.name = "decimator",
     .check = decimator_check,
     .sizes = decimator_sizes,
     .init = decimator_init,
     .output = decimator_output,
     .update = decimator_update},
    {.name = 0},
};
