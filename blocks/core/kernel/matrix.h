/* Dense matrices in row-major order: products with vectors, and factorizations. */
#ifndef BIELLA_MATRIX_H
#define BIELLA_MATRIX_H

#include <stdint.h>

/* sum + a[0] b[0] + a[1] b[1] + …, added in this order. */
static inline double bl_dot(double sum, const double *a, const double *b, int32_t n) {
    for (int32_t k = 0; k < n; k++) sum += a[k] * b[k];
    return sum;
}

/* LU with partial pivoting, in place; the n pivots are stored as doubles so that they can be saved. Returns a bl_status. */
int bl_lu_factor(double *a, double *pivots, int64_t n);
/* b ← A⁻¹ b, with those factors. */
void bl_lu_solve(const double *a, const double *pivots, int64_t n, double *b);

/* Whether `total` is the sum of sizes, each a product of two numbers below 2^31: no single product overflows,
   and a sum of them is not formed before each is known to be small. */
static inline int bl_sizes_fit(const int64_t *sizes, int count, int32_t total) {
    int64_t sum = 0;
    for (int k = 0; k < count; k++) {
        if (sizes[k] < 0 || sizes[k] > INT32_MAX) return 0;
        sum += sizes[k];
    }
    return sum == total;
}

#endif
