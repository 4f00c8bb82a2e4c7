/* Kalman filters: of a sampled plant with a steady or a varying gain, and of a continuous one with a steady gain.
 *
 * Inputs: the measurement y, then the control u if present. Outputs: the estimate x̂, the innovation
 * ν = y - C x̂[n|n-1] - D u, and with a varying gain the covariance P of the estimate's error, row by row.
 * i: whether x̂[n|n] is shown and not x̂[n|n-1], whether there is D.
 * p: A, B, C, D, then L; or with a varying gain W, W C, Q, the first P, where W R Wᵀ = 1; then the first x̂. */
#include <string.h>

#include "blocks/core/kernel/kernel.h"
#include "blocks/core/kernel/matrix.h"

enum { OBSERVER_MEASUREMENT, OBSERVER_CONTROL };
enum { OBSERVER_ESTIMATE, OBSERVER_INNOVATION, OBSERVER_COVARIANCE };
BL_SHARED enum { OBSERVER_UPDATED, OBSERVER_DIRECT, OBSERVER_INTEGERS };

typedef struct {
    int32_t n, m, q;
    const double *a, *b, *c, *d, *rest;
} observer_plant;

static int observer_fits(const bl_block *b, int varying, int64_t states) {
    if (b->u_count < 1 || b->u_count > 2 || b->y_count != (varying ? 3 : 2) || b->i_count != OBSERVER_INTEGERS)
        return 0;
    for (int k = 0; k < OBSERVER_INTEGERS; k++)
        if (b->i[k] != 0 && b->i[k] != 1) return 0;
    if (b->i[OBSERVER_DIRECT] && b->u_count != 2) return 0;
    const int64_t n = b->y_width[OBSERVER_ESTIMATE], q = b->u_width[OBSERVER_MEASUREMENT];
    const int64_t m = b->u_count == 2 ? b->u_width[OBSERVER_CONTROL] : 0;
    if (states != n || b->y_width[OBSERVER_INNOVATION] != q) return 0;
    if (varying && b->y_width[OBSERVER_COVARIANCE] != n * n) return 0;
    const int64_t sizes[] = {n * n,
                             n * m,
                             q * n,
                             b->i[OBSERVER_DIRECT] * (q * m),
                             varying ? 0 : n * q,
                             varying ? q * q : 0,
                             varying ? q * n : 0,
                             varying ? n * n : 0,
                             varying ? n * n : 0,
                             n};
    return bl_sizes_fit(sizes, 10, b->p_count);
}

static observer_plant observer_split(const bl_block *b) {
    observer_plant s;
    s.n = b->y_width[OBSERVER_ESTIMATE];
    s.q = b->u_width[OBSERVER_MEASUREMENT];
    s.m = b->u_count == 2 ? b->u_width[OBSERVER_CONTROL] : 0;
    s.a = b->p;
    s.b = s.a + s.n * s.n;
    s.c = s.b + s.n * s.m;
    s.d = s.c + s.q * s.n;
    s.rest = s.d + b->i[OBSERVER_DIRECT] * (s.q * s.m);
    return s;
}
static const double *observer_first(const bl_block *b, const observer_plant *s) { return b->p + b->p_count - s->n; }

/* Innovation number j of the estimate x. */
static double observer_surprise(const bl_block *b, const observer_plant *s, const double *x, int32_t j) {
    double expected = bl_dot(0.0, s->c + j * s->n, x, s->n);
    if (b->i[OBSERVER_DIRECT]) expected = bl_dot(expected, s->d + j * s->m, b->u[OBSERVER_CONTROL], s->m);
    return b->u[OBSERVER_MEASUREMENT][j] - expected;
}
/* Row k of A x + B u. */
static double observer_ahead(const bl_block *b, const observer_plant *s, const double *x, int32_t k) {
    const double sum = bl_dot(0.0, s->a + k * s->n, x, s->n);
    return s->m > 0 ? bl_dot(sum, s->b + k * s->m, b->u[OBSERVER_CONTROL], s->m) : sum;
}

/* Steady gain, sampled: x̂[n|n] = x̂ + L ν, x̂[n+1|n] = A x̂[n|n] + B u. z: x̂[n|n-1]. w: x̂[n|n]. */
static int kalman_filter_check(const bl_block *b) {
    return b->y_count > OBSERVER_ESTIMATE && observer_fits(b, 0, b->y_width[OBSERVER_ESTIMATE]);
}
static bl_sizes kalman_filter_sizes(const bl_block *b) {
    return (bl_sizes){.memory = b->y_width[OBSERVER_ESTIMATE], .scratch = b->y_width[OBSERVER_ESTIMATE]};
}
static int kalman_filter_init(bl_block *b, double t) {
    (void)t;
    const observer_plant s = observer_split(b);
    memcpy(b->z, observer_first(b, &s), sizeof(double) * (size_t)s.n);
    return BL_OK;
}
static void kalman_filter_correct(const bl_block *b, const observer_plant *s, double *x) {
    for (int32_t k = 0; k < s->n; k++) x[k] = bl_dot(b->z[k], s->rest + k * s->q, b->y[OBSERVER_INNOVATION], s->q);
}
static int kalman_filter_output(bl_block *b, double t) {
    (void)t;
    const observer_plant s = observer_split(b);
    for (int32_t j = 0; j < s.q; j++) b->y[OBSERVER_INNOVATION][j] = observer_surprise(b, &s, b->z, j);
    if (b->i[OBSERVER_UPDATED]) kalman_filter_correct(b, &s, b->y[OBSERVER_ESTIMATE]);
    else memcpy(b->y[OBSERVER_ESTIMATE], b->z, sizeof(double) * (size_t)s.n);
    return BL_OK;
}
/* The outputs of this tick have already been computed. */
static int kalman_filter_update(bl_block *b, double t) {
    (void)t;
    const observer_plant s = observer_split(b);
    if (b->i[OBSERVER_UPDATED]) memcpy(b->w, b->y[OBSERVER_ESTIMATE], sizeof(double) * (size_t)s.n);
    else kalman_filter_correct(b, &s, b->w);
    for (int32_t k = 0; k < s.n; k++) b->z[k] = observer_ahead(b, &s, b->w, k);
    return BL_OK;
}

/* Varying gain. Measurements are made independent and of variance 1 by W, and taken one after the other: no matrix is
 * inverted. z: x̂[n|n-1], P[n|n-1]. w: x̂[n|n], P[n|n], ν, W ν, a row. */
typedef struct {
    const double *white, *seen, *driven, *first;
} kalman_noise;

static kalman_noise kalman_split(const observer_plant *s) {
    kalman_noise v;
    v.white = s->rest;
    v.seen = v.white + s->q * s->q;
    v.driven = v.seen + s->q * s->n;
    v.first = v.driven + s->n * s->n;
    return v;
}
static int kalman_varying_check(const bl_block *b) {
    if (b->y_count < 1) return 0;
    const int64_t n = b->y_width[OBSERVER_ESTIMATE];
    return n < 32768 && observer_fits(b, 1, n);
}
static bl_sizes kalman_varying_sizes(const bl_block *b) {
    const int64_t n = b->y_width[OBSERVER_ESTIMATE], q = b->y_width[OBSERVER_INNOVATION];
    return (bl_sizes){.memory = n + n * n, .scratch = 2 * n + n * n + 2 * q};
}
static int kalman_varying_init(bl_block *b, double t) {
    (void)t;
    const observer_plant s = observer_split(b);
    memcpy(b->z, observer_first(b, &s), sizeof(double) * (size_t)s.n);
    memcpy(b->z + s.n, kalman_split(&s).first, sizeof(double) * (size_t)(s.n * s.n));
    return BL_OK;
}
static void kalman_varying_correct(const bl_block *b, const observer_plant *s) {
    const kalman_noise v = kalman_split(s);
    const int32_t n = s->n, q = s->q;
    double *x = b->w, *p = x + n, *surprise = p + n * n, *clean = surprise + q, *row = clean + q;
    memcpy(x, b->z, sizeof(double) * (size_t)(n + n * n));
    for (int32_t j = 0; j < q; j++) surprise[j] = observer_surprise(b, s, b->z, j);
    for (int32_t j = 0; j < q; j++) clean[j] = bl_dot(0.0, v.white + j * q, surprise, q);
    for (int32_t j = 0; j < q; j++) {
        const double *c = v.seen + j * n;
        for (int32_t k = 0; k < n; k++) row[k] = bl_dot(0.0, p + k * n, c, n);
        const double scale = 1.0 / bl_dot(1.0, c, row, n);
        double left = clean[j]; /* what earlier measurements have not yet explained */
        for (int32_t k = 0; k < n; k++) left -= c[k] * (x[k] - b->z[k]);
        for (int32_t k = 0; k < n; k++) x[k] += row[k] * (left * scale);
        for (int32_t k = 0; k < n; k++)
            for (int32_t l = 0; l < n; l++) p[k * n + l] -= row[k] * row[l] * scale;
    }
}
static int kalman_varying_output(bl_block *b, double t) {
    (void)t;
    const observer_plant s = observer_split(b);
    kalman_varying_correct(b, &s);
    const double *shown = b->i[OBSERVER_UPDATED] ? b->w : b->z;
    memcpy(b->y[OBSERVER_ESTIMATE], shown, sizeof(double) * (size_t)s.n);
    memcpy(b->y[OBSERVER_COVARIANCE], shown + s.n, sizeof(double) * (size_t)(s.n * s.n));
    memcpy(b->y[OBSERVER_INNOVATION], b->w + s.n + s.n * s.n, sizeof(double) * (size_t)s.q);
    return BL_OK;
}
static int kalman_varying_update(bl_block *b, double t) {
    (void)t;
    const observer_plant s = observer_split(b);
    const kalman_noise v = kalman_split(&s);
    const int32_t n = s.n;
    /* The outputs of this tick have already been computed. */
    if (!b->i[OBSERVER_UPDATED]) kalman_varying_correct(b, &s);
    const double *x = b->i[OBSERVER_UPDATED] ? b->y[OBSERVER_ESTIMATE] : b->w;
    const double *p = b->i[OBSERVER_UPDATED] ? b->y[OBSERVER_COVARIANCE] : b->w + n;
    double *row = b->w + n + n * n + 2 * s.q, *next = b->z + n;
    for (int32_t k = 0; k < n; k++) b->z[k] = observer_ahead(b, &s, x, k);
    /* A P Aᵀ + Q; P is symmetric, so its rows are its columns, and one half is enough. */
    for (int32_t k = 0; k < n; k++) {
        for (int32_t l = 0; l < n; l++) row[l] = bl_dot(0.0, p + l * n, s.a + k * n, n);
        for (int32_t l = 0; l <= k; l++)
            next[k * n + l] = next[l * n + k] = bl_dot(v.driven[k * n + l], row, s.a + l * n, n);
    }
    return BL_OK;
}

/* Steady gain, continuous: dx̂/dt = A x̂ + B u + L ν. */
static int kalman_bucy_check(const bl_block *b) { return observer_fits(b, 0, b->x_count); }
static int kalman_bucy_init(bl_block *b, double t) {
    (void)t;
    const observer_plant s = observer_split(b);
    memcpy(b->x, observer_first(b, &s), sizeof(double) * (size_t)s.n);
    return BL_OK;
}
static bl_sizes kalman_bucy_sizes(const bl_block *b) { return (bl_sizes){.scratch = b->u_width[OBSERVER_MEASUREMENT]}; }
static int kalman_bucy_output(bl_block *b, double t) {
    (void)t;
    const observer_plant s = observer_split(b);
    memcpy(b->y[OBSERVER_ESTIMATE], b->x, sizeof(double) * (size_t)s.n);
    for (int32_t j = 0; j < s.q; j++) b->y[OBSERVER_INNOVATION][j] = observer_surprise(b, &s, b->x, j);
    return BL_OK;
}
static int kalman_bucy_derivative(bl_block *b, double t) {
    (void)t;
    const observer_plant s = observer_split(b);
    for (int32_t j = 0; j < s.q; j++) b->w[j] = observer_surprise(b, &s, b->x, j);
    for (int32_t k = 0; k < s.n; k++) b->dx[k] = bl_dot(observer_ahead(b, &s, b->x, k), s.rest + k * s.q, b->w, s.q);
    return BL_OK;
}

const bl_kernel bl_kernels_observer[] = {
    {.name = "kalman_filter",
     .check = kalman_filter_check,
     .sizes = kalman_filter_sizes,
     .init = kalman_filter_init,
     .output = kalman_filter_output,
     .update = kalman_filter_update},
    {.name = "kalman_varying",
     .check = kalman_varying_check,
     .sizes = kalman_varying_sizes,
     .init = kalman_varying_init,
     .output = kalman_varying_output,
     .update = kalman_varying_update},
    {.name = "kalman_bucy",
     .check = kalman_bucy_check,
     .sizes = kalman_bucy_sizes,
     .init = kalman_bucy_init,
     .output = kalman_bucy_output,
     .derivative = kalman_bucy_derivative},
    {.name = 0},
};
