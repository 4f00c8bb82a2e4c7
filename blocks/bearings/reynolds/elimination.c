/* Finds the pressure where the film is whole, by elimination: first every second cell, as on a chess board, each by
 * itself; then the others, column by column around the journal, in a band as wide as a column has cells. Where no column
 * is free of film the ring is folded flat, which doubles the band. */
#include <string.h>

#include "blocks/bearings/reynolds/reynolds.h"

void bl_reynolds_order(reynolds_system *s) {
    const int32_t n = s->n;
    int32_t cut = -1;
    for (int32_t i = 0; i < n; i++) {
        int any = 0;
        for (int32_t j = 0; j < s->m; j++) any |= s->film[i * s->m + j] > 0.0;
        s->place[i] = any ? 0 : -1;
        if (!any) cut = i;
    }
    s->columns = 0;
    for (int32_t k = 1; k <= n; k++) {
        const int32_t folded = k == 1 ? 0 : k % 2 ? n - k / 2 : k / 2;
        const int32_t i = cut < 0 ? folded : (cut + k) % n;
        if (s->place[i] < 0) continue;
        s->place[i] = s->columns;
        s->order[s->columns++] = i;
    }
    /* A black cell meets black ones up to two columns away. */
    s->width = (cut < 0 ? 4 : 2) * s->blacks;
}

/* The row of black cell (i, j). Red and black cells of a column share a number j / 2. */
static int32_t reynolds_row(const reynolds_system *s, int32_t i, int32_t j) { return s->place[i] * s->blacks + j / 2; }

/* Neighbors of a cell that hold film, and what couples it to them: before, after, below, above. */
typedef struct {
    int32_t i[4], j[4];
    double by[4]; /* 0 where there is none */
} reynolds_neighbors;

static reynolds_neighbors reynolds_look_around(const reynolds_system *s, int32_t i, int32_t j) {
    const int32_t m = s->m, before = i > 0 ? i - 1 : s->n - 1, after = i + 1 < s->n ? i + 1 : 0;
    const double *along = s->along + i * (m + 1);
    return (reynolds_neighbors){.i = {before, after, i, i},
                                .j = {j, j, j - 1, j + 1},
                                .by = {s->around[before * m + j] * s->film[before * m + j],
                                       s->around[i * m + j] * s->film[after * m + j],
                                       j > 0 ? along[j] * s->film[i * m + j - 1] : 0.0,
                                       j + 1 < m ? along[j + 1] * s->film[i * m + j + 1] : 0.0}};
}

/* Cells are red and black like those of a board. A red one has black neighbors only: it is eliminated on the spot,
   which couples each two of them and leaves half of the rows in a band of the same width. */
static void reynolds_assemble(reynolds_system *s) {
    const int32_t m = s->m, stride = s->width + REYNOLDS_BLOCK;
    memset(s->band, 0, sizeof(double) * (size_t)s->columns * (size_t)s->blacks * (size_t)stride);
    for (int32_t c = 0; c < s->columns; c++) {
        const int32_t i = s->order[c];
        for (int32_t k = 0; k < s->blacks; k++) {
            const int32_t j = 2 * k + i % 2, cell = i * m + j, row = c * s->blacks + k;
            const int there = j < m && s->film[cell] > 0.0;
            s->band[(int64_t)row * stride] = there ? s->diagonal[cell] : 1.0;
            s->right[row] = there ? s->source[cell] : 0.0;
        }
    }
    for (int32_t c = 0; c < s->columns; c++) {
        const int32_t i = s->order[c];
        for (int32_t j = 1 - i % 2; j < m; j += 2) {
            const int32_t cell = i * m + j;
            if (!(s->film[cell] > 0.0)) continue;
            const reynolds_neighbors near = reynolds_look_around(s, i, j);
            const double inverse = 1.0 / s->diagonal[cell];
            for (int32_t p = 0; p < 4; p++) {
                if (!(near.by[p] > 0.0)) continue;
                const int32_t row = reynolds_row(s, near.i[p], near.j[p]);
                const double share = near.by[p] * inverse;
                s->right[row] += share * s->source[cell];
                s->band[(int64_t)row * stride] -= share * near.by[p];
                for (int32_t q = p + 1; q < 4; q++) {
                    if (!(near.by[q] > 0.0)) continue;
                    const int32_t other = reynolds_row(s, near.i[q], near.j[q]);
                    const int32_t first = row < other ? row : other;
                    s->band[(int64_t)first * stride + (row + other - 2 * first)] -= share * near.by[q];
                }
            }
        }
    }
}

/* Takes four rows out of the two that follow each other at `upper` and `lower`: one pass over six rows instead of four
   over each of two. pivot[k][0] stands over upper[0], pivot[k][1] over lower[0]. The upper one has `count` values left,
   the lower one less, and none if the band ends between them. */
static void reynolds_eliminate(double *restrict upper, double *restrict lower, const double *const pivot[4],
                               const double *restrict inverse, int32_t count) {
    const double *restrict p0 = pivot[0], *restrict p1 = pivot[1], *restrict p2 = pivot[2], *restrict p3 = pivot[3];
    const double u0 = p0[0] * inverse[0], u1 = p1[0] * inverse[1], u2 = p2[0] * inverse[2], u3 = p3[0] * inverse[3];
    upper[0] -= (u0 * p0[0] + u1 * p1[0]) + (u2 * p2[0] + u3 * p3[0]);
    if (count < 2) return;
    const double l0 = p0[1] * inverse[0], l1 = p1[1] * inverse[1], l2 = p2[1] * inverse[2], l3 = p3[1] * inverse[3];
    for (int32_t j = 1; j < count; j++) {
        const double a = p0[j], b = p1[j], c = p2[j], d = p3[j];
        upper[j] -= (u0 * a + u1 * b) + (u2 * c + u3 * d);
        lower[j - 1] -= (l0 * a + l1 * b) + (l2 * c + l3 * d);
    }
}

/* Brings the band to the form D Lᵀ and the right-hand side along, four rows at a time, without pivots, which a matrix
   like this does not need. Rows hold zeros beyond the band, so that a row may be read as if it reached as far as the
   fourth one after it. */
static void reynolds_factor(reynolds_system *s, int32_t count) {
    const int32_t width = s->width, stride = width + REYNOLDS_BLOCK;
    double *right = s->right;
    for (int32_t r = 0; r < count; r += REYNOLDS_BLOCK) {
        double *rows = s->band + (int64_t)r * stride, inverse[REYNOLDS_BLOCK];
        for (int32_t k = 0; k < REYNOLDS_BLOCK; k++) {
            const double *pivot = rows + k * stride;
            inverse[k] = 1.0 / pivot[0];
            for (int32_t i = 1; i < REYNOLDS_BLOCK - k && i <= width; i++) {
                const double factor = pivot[i] * inverse[k];
                double *row = rows + (k + i) * stride;
                for (int32_t j = 0; j <= width - i; j++) row[j] -= factor * pivot[i + j];
                right[r + k + i] -= factor * right[r + k];
            }
        }
        const int32_t last = count - r < width + REYNOLDS_BLOCK ? count - r : width + REYNOLDS_BLOCK;
        for (int32_t i = REYNOLDS_BLOCK; i < last; i++) {
            const double *column = rows + i;
            const double a = column[0] * inverse[0] * right[r], b = column[stride - 1] * inverse[1] * right[r + 1];
            const double c = column[2 * stride - 2] * inverse[2] * right[r + 2];
            right[r + i] -= (a + b) + (c + column[3 * stride - 3] * inverse[3] * right[r + 3]);
        }
        for (int32_t i = REYNOLDS_BLOCK; i < last; i += 2) {
            const double *const pivot[REYNOLDS_BLOCK] = {rows + i, rows + stride + i - 1, rows + 2 * stride + i - 2,
                                                         rows + 3 * stride + i - 3};
            reynolds_eliminate(rows + i * stride, rows + (i + 1) * stride, pivot, inverse, width + REYNOLDS_BLOCK - i);
        }
    }
}

/* Gives each cell its pressure: black ones from their rows, then red ones from the black ones about them. */
static void reynolds_spread(reynolds_system *s) {
    const int32_t m = s->m;
    memset(s->q, 0, sizeof(double) * (size_t)(s->n * m));
    for (int32_t c = 0; c < s->columns; c++) {
        const int32_t i = s->order[c];
        for (int32_t j = i % 2; j < m; j += 2) s->q[i * m + j] = s->right[reynolds_row(s, i, j)];
    }
    for (int32_t c = 0; c < s->columns; c++) {
        const int32_t i = s->order[c];
        const double *before = s->q + (i > 0 ? i - 1 : s->n - 1) * m, *after = s->q + (i + 1 < s->n ? i + 1 : 0) * m;
        const double *a_before = s->around + (i > 0 ? i - 1 : s->n - 1) * m, *a_after = s->around + i * m;
        const double *along = s->along + i * (m + 1);
        double *q = s->q + i * m;
        for (int32_t j = 1 - i % 2; j < m; j += 2) {
            if (!(s->film[i * m + j] > 0.0)) continue;
            double sum = s->source[i * m + j] + (a_before[j] * before[j] + a_after[j] * after[j]);
            if (j > 0) sum += along[j] * q[j - 1];
            if (j + 1 < m) sum += along[j + 1] * q[j + 1];
            q[j] = sum / s->diagonal[i * m + j];
        }
    }
}

void bl_reynolds_solve(reynolds_system *s) {
    reynolds_assemble(s);
    const int32_t width = s->width, stride = width + REYNOLDS_BLOCK;
    int32_t count = s->columns * s->blacks;
    double *right = s->right;
    for (; count % REYNOLDS_BLOCK; count++) { /* padding rows: x = 0 */
        double *row = s->band + (int64_t)count * stride;
        memset(row, 0, sizeof(double) * (size_t)stride);
        row[0] = 1.0;
        right[count] = 0.0;
    }
    reynolds_factor(s, count);
    for (int32_t r = count - 1; r >= 0; r--) {
        const double *row = s->band + (int64_t)r * stride, *known = right + r;
        const int32_t reach = count - 1 - r < width ? count - 1 - r : width;
        double sum[4] = {0.0, 0.0, 0.0, 0.0}; /* apart, so that they need not wait for each other */
        int32_t j = 1;
        for (; j + 3 <= reach; j += 4)
            for (int32_t k = 0; k < 4; k++) sum[k] += row[j + k] * known[j + k];
        for (; j <= reach; j++) sum[0] += row[j] * known[j];
        right[r] = (right[r] - ((sum[0] + sum[1]) + (sum[2] + sum[3]))) / row[0];
    }
    reynolds_spread(s);
}
