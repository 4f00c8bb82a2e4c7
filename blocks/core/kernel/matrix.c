#include "blocks/core/kernel/matrix.h"

#include <math.h>

#include "blocks/core/kernel/kernel.h"

int bl_lu_factor(double *a, double *pivots, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
        pivots[k] = (double)best;
        const double pivot = a[best * n + k];
        if (pivot == 0.0 || !isfinite(pivot)) return BL_ERROR_SOLVER;
        if (best != k)
            for (int64_t j = 0; j < n; j++) {
                const double swapped = a[k * n + j];
                a[k * n + j] = a[best * n + j];
                a[best * n + j] = swapped;
            }
        for (int64_t i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] / pivot;
            a[i * n + k] = factor;
            if (factor != 0.0)
                for (int64_t j = k + 1; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return BL_OK;
}

void bl_lu_solve(const double *a, const double *pivots, int64_t n, double *b) {
    for (int64_t k = 0; k < n; k++) {
        /* A pivot may come from a serialized state: clamp it. */
        int64_t row = pivots[k] > (double)k && pivots[k] < (double)n ? (int64_t)pivots[k] : k;
        const double swapped = b[k];
        b[k] = b[row];
        b[row] = swapped;
    }
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = 0; j < i; j++) b[i] -= a[i * n + j] * b[j];
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t j = i + 1; j < n; j++) b[i] -= a[i * n + j] * b[j];
        b[i] /= a[i * n + i];
    }
}
