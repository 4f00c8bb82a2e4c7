/* Linear systems of implicit steps: LU of (a multiple of the identity) - (Jacobian), real and complex.
 *
 * Small and full matrices are factored with partial pivoting; sparse ones by columns with pivots on the diagonal. There a pivot
 * that is too small in its column is a failure, which ends the attempt: a shorter step makes the diagonal dominant. */
#include "scheduler/engine/solvers/solver.h"

#include <math.h>
#include <string.h>

#include "blocks/core/kernel/matrix.h"

static const double LARGEST_MULTIPLIER = 1e8;

int64_t bl_real_size(const bl_jacobian *j) { return j->sparse ? 2 * j->factor_entries + j->n : j->n * j->n + j->n; }

int64_t bl_complex_size(const bl_jacobian *j) {
    return j->sparse ? 2 * (2 * j->factor_entries + j->n) : 2 * j->n * j->n + j->n;
}

/* matrix = re · I - values, by rows. */
static void fill_full(const bl_jacobian *j, const double *values, double re, double *matrix) {
    const int64_t n = j->n;
    if (!j->full) memset(matrix, 0, (size_t)(n * n) * sizeof(double));
    for (int64_t c = 0; c < n; c++) {
        const int32_t *rows = NULL;
        int64_t first = 0;
        const int64_t count = bl_column(j, c, &rows, &first);
        for (int64_t k = 0; k < count; k++) matrix[rows[k] * n + c] = (rows[k] == c ? re : 0.0) - values[first + k];
    }
}

static int factor_sparse(const bl_jacobian *j, const double *values, double re, double *factors) {
    double *lower = factors, *upper = lower + j->factor_entries, *diagonal = upper + j->factor_entries, *w = j->work;
    for (int64_t c = 0; c < j->n; c++) {
        const int32_t state = j->order[c];
        for (int64_t k = j->upper[c]; k < j->upper[c + 1]; k++) w[j->upper_row[k]] = 0.0;
        for (int64_t k = j->lower[c]; k < j->lower[c + 1]; k++) w[j->lower_row[k]] = 0.0;
        w[c] = 0.0;
        for (int64_t k = j->column[state]; k < j->column[state + 1]; k++) w[j->position[j->row[k]]] = -values[k];
        w[c] += re;
        for (int64_t k = j->upper[c]; k < j->upper[c + 1]; k++) {
            const int32_t r = j->upper_row[k];
            const double above = w[r];
            upper[k] = above;
            if (above != 0.0)
                for (int64_t l = j->lower[r]; l < j->lower[r + 1]; l++) w[j->lower_row[l]] -= lower[l] * above;
        }
        const double pivot = w[c], smallest = fabs(pivot) * LARGEST_MULTIPLIER;
        if (pivot == 0.0 || !isfinite(pivot)) return BL_ERROR_SOLVER;
        diagonal[c] = pivot;
        for (int64_t k = j->lower[c]; k < j->lower[c + 1]; k++) {
            const double below = w[j->lower_row[k]];
            if (!(fabs(below) <= smallest)) return BL_ERROR_SOLVER;
            lower[k] = below / pivot;
        }
    }
    return BL_OK;
}

static void solve_sparse(const bl_jacobian *j, const double *factors, double *b) {
    const double *lower = factors, *upper = lower + j->factor_entries, *diagonal = upper + j->factor_entries;
    double *w = j->work;
    for (int64_t c = 0; c < j->n; c++) w[c] = b[j->order[c]];
    for (int64_t c = 0; c < j->n; c++) {
        const double value = w[c];
        for (int64_t k = j->lower[c]; k < j->lower[c + 1]; k++) w[j->lower_row[k]] -= lower[k] * value;
    }
    for (int64_t c = j->n; c-- > 0;) {
        const double value = w[c] / diagonal[c];
        w[c] = value;
        for (int64_t k = j->upper[c]; k < j->upper[c + 1]; k++) w[j->upper_row[k]] -= upper[k] * value;
    }
    for (int64_t c = 0; c < j->n; c++) b[j->order[c]] = w[c];
}

int bl_factor_real(const bl_jacobian *j, const double *values, double re, double *factors) {
    if (j->sparse) return factor_sparse(j, values, re, factors);
    fill_full(j, values, re, factors);
    return bl_lu_factor(factors, factors + j->n * j->n, j->n);
}

void bl_solve_real(const bl_jacobian *j, const double *factors, double *b) {
    if (j->sparse) solve_sparse(j, factors, b);
    else bl_lu_solve(factors, factors + j->n * j->n, j->n, b);
}

/* Complex numbers are pairs of real and imaginary part. */
typedef struct {
    double re, im;
} bl_complex;

static inline bl_complex divide(bl_complex a, bl_complex b) {
    const double size = b.re * b.re + b.im * b.im;
    return (bl_complex){(a.re * b.re + a.im * b.im) / size, (a.im * b.re - a.re * b.im) / size};
}

/* a -= b · c */
static inline void subtract_product(bl_complex *a, bl_complex b, bl_complex c) {
    a->re -= b.re * c.re - b.im * c.im;
    a->im -= b.re * c.im + b.im * c.re;
}

static inline double size_of(bl_complex a) { return fabs(a.re) + fabs(a.im); }

static int factor_full_complex(bl_complex *a, double *pivots, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++)
            if (size_of(a[i * n + k]) > size_of(a[best * n + k])) best = i;
        pivots[k] = (double)best;
        const bl_complex pivot = a[best * n + k];
        if (size_of(pivot) == 0.0 || !isfinite(size_of(pivot))) return BL_ERROR_SOLVER;
        if (best != k)
            for (int64_t c = 0; c < n; c++) {
                const bl_complex swapped = a[k * n + c];
                a[k * n + c] = a[best * n + c];
                a[best * n + c] = swapped;
            }
        for (int64_t i = k + 1; i < n; i++) {
            if (size_of(a[i * n + k]) == 0.0) continue;
            const bl_complex factor = divide(a[i * n + k], pivot);
            a[i * n + k] = factor;
            for (int64_t c = k + 1; c < n; c++) subtract_product(&a[i * n + c], factor, a[k * n + c]);
        }
    }
    return BL_OK;
}

static void solve_full_complex(const bl_complex *a, const double *pivots, int64_t n, bl_complex *b) {
    for (int64_t k = 0; k < n; k++) {
        /* A pivot may come from a serialized state: clamp it. */
        const int64_t row = pivots[k] > (double)k && pivots[k] < (double)n ? (int64_t)pivots[k] : k;
        const bl_complex swapped = b[k];
        b[k] = b[row];
        b[row] = swapped;
    }
    for (int64_t i = 1; i < n; i++)
        for (int64_t c = 0; c < i; c++) subtract_product(&b[i], a[i * n + c], b[c]);
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t c = i + 1; c < n; c++) subtract_product(&b[i], a[i * n + c], b[c]);
        b[i] = divide(b[i], a[i * n + i]);
    }
}

static int factor_sparse_complex(const bl_jacobian *j, const double *values, double re, double im,
                                 bl_complex *factors) {
    bl_complex *lower = factors, *upper = lower + j->factor_entries, *diagonal = upper + j->factor_entries,
               *w = (bl_complex *)j->work;
    const bl_complex zero = {0.0, 0.0};
    for (int64_t c = 0; c < j->n; c++) {
        const int32_t state = j->order[c];
        for (int64_t k = j->upper[c]; k < j->upper[c + 1]; k++) w[j->upper_row[k]] = zero;
        for (int64_t k = j->lower[c]; k < j->lower[c + 1]; k++) w[j->lower_row[k]] = zero;
        w[c] = zero;
        for (int64_t k = j->column[state]; k < j->column[state + 1]; k++) w[j->position[j->row[k]]].re = -values[k];
        w[c].re += re;
        w[c].im = im;
        for (int64_t k = j->upper[c]; k < j->upper[c + 1]; k++) {
            const int32_t r = j->upper_row[k];
            const bl_complex above = w[r];
            upper[k] = above;
            if (size_of(above) != 0.0)
                for (int64_t l = j->lower[r]; l < j->lower[r + 1]; l++)
                    subtract_product(&w[j->lower_row[l]], lower[l], above);
        }
        const bl_complex pivot = w[c];
        const double size = size_of(pivot);
        if (size == 0.0 || !isfinite(size)) return BL_ERROR_SOLVER;
        diagonal[c] = pivot;
        for (int64_t k = j->lower[c]; k < j->lower[c + 1]; k++) {
            const bl_complex below = w[j->lower_row[k]];
            if (!(size_of(below) <= size * LARGEST_MULTIPLIER)) return BL_ERROR_SOLVER;
            lower[k] = divide(below, pivot);
        }
    }
    return BL_OK;
}

static void solve_sparse_complex(const bl_jacobian *j, const bl_complex *factors, bl_complex *w) {
    const bl_complex *lower = factors, *upper = lower + j->factor_entries, *diagonal = upper + j->factor_entries;
    for (int64_t c = 0; c < j->n; c++)
        for (int64_t k = j->lower[c]; k < j->lower[c + 1]; k++) subtract_product(&w[j->lower_row[k]], lower[k], w[c]);
    for (int64_t c = j->n; c-- > 0;) {
        w[c] = divide(w[c], diagonal[c]);
        for (int64_t k = j->upper[c]; k < j->upper[c + 1]; k++) subtract_product(&w[j->upper_row[k]], upper[k], w[c]);
    }
}

int bl_factor_complex(const bl_jacobian *j, const double *values, double re, double im, double *factors) {
    const int64_t n = j->n;
    if (j->sparse) return factor_sparse_complex(j, values, re, im, (bl_complex *)factors);
    bl_complex *matrix = (bl_complex *)factors;
    if (!j->full) memset(factors, 0, (size_t)(2 * n * n) * sizeof(double));
    for (int64_t c = 0; c < n; c++) {
        const int32_t *rows = NULL;
        int64_t first = 0;
        const int64_t count = bl_column(j, c, &rows, &first);
        for (int64_t k = 0; k < count; k++)
            matrix[rows[k] * n + c] =
                (bl_complex){(rows[k] == c ? re : 0.0) - values[first + k], rows[k] == c ? im : 0.0};
    }
    return factor_full_complex(matrix, factors + 2 * n * n, n);
}

void bl_solve_complex(const bl_jacobian *j, const double *factors, double *b_re, double *b_im) {
    const int64_t n = j->n;
    bl_complex *w = (bl_complex *)j->work;
    for (int64_t k = 0; k < n; k++) {
        const int64_t from = j->sparse ? j->order[k] : k;
        w[k] = (bl_complex){b_re[from], b_im[from]};
    }
    if (j->sparse) solve_sparse_complex(j, (const bl_complex *)factors, w);
    else solve_full_complex((const bl_complex *)factors, factors + 2 * n * n, n, w);
    for (int64_t k = 0; k < n; k++) {
        const int64_t to = j->sparse ? j->order[k] : k;
        b_re[to] = w[k].re;
        b_im[to] = w[k].im;
    }
}
