/* The Jacobian df/dx of the continuous states: its pattern from the plan, and its entries by differences.
 *
 * Columns that share no row are differentiated together (A. R. Curtis, M. J. D. Powell, J. K. Reid, On the estimation of sparse
 * Jacobian matrices, 1974). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/engine/solvers/solver.h"

int bl_differentiate(bl_engine *e, double t, double factor, const double *increment, const double *slope,
                     double *values) {
    const bl_jacobian *j = e->jacobian;
    double *x = e->x, *kept = j->work, *moved = kept + j->n;
    bl_count(e, BL_SOLVER_JACOBIANS);
    for (int64_t g = 0; g < j->group_count; g++) {
        for (int64_t k = j->group[g]; k < j->group[g + 1]; k++) {
            const int32_t c = j->members[k];
            kept[c] = x[c];
            x[c] = kept[c] + increment[c];
            moved[c] = x[c] - kept[c];
        }
        const int status = bl_evaluate_at(e, t);
        for (int64_t k = j->group[g]; k < j->group[g + 1]; k++) {
            const int32_t c = j->members[k], *rows = NULL;
            int64_t first = 0;
            const int64_t count = bl_column(j, c, &rows, &first);
            for (int64_t r = 0; r < count; r++)
                values[first + r] = factor * (e->dx[rows[r]] - slope[rows[r]]) / moved[c];
            x[c] = kept[c];
        }
        if (status != BL_OK) return status;
    }
    memcpy(e->dx, slope, (size_t)j->n * sizeof(double));
    return BL_OK;
}

/* Colors columns one after the other with the first color that no column with a common row has. */
static int group_columns(bl_engine *e, bl_jacobian *j) {
    const int64_t n = j->n;
    int64_t *firsts = bl_allocate(e, n + 1, sizeof(int64_t)), *row_first = NULL, *used = NULL;
    int32_t *members = bl_allocate(e, n, sizeof(int32_t)), *row_columns = NULL, *color = NULL;
    int status = BL_ERROR_MEMORY;
    if (!firsts || !members) return status;
    j->group = firsts;
    j->members = members;
    if (j->full) {
        for (int64_t k = 0; k <= n; k++) firsts[k] = k;
        for (int64_t k = 0; k < n; k++) members[k] = (int32_t)k;
        j->group_count = n;
        return BL_OK;
    }
    row_first = calloc((size_t)n + 2, sizeof *row_first);
    row_columns = malloc(((size_t)j->entries + 1) * sizeof *row_columns);
    used = calloc((size_t)n + 1, sizeof *used); /* of each color, 1 + the last column that it was forbidden for */
    color = malloc(((size_t)n + 1) * sizeof *color);
    if (row_first && row_columns && used && color) {
        for (int64_t k = 0; k < j->entries; k++) row_first[j->row[k] + 2]++;
        for (int64_t k = 1; k < n; k++) row_first[k + 1] += row_first[k];
        for (int64_t c = 0; c < n; c++)
            for (int64_t k = j->column[c]; k < j->column[c + 1]; k++)
                row_columns[row_first[j->row[k] + 1]++] = (int32_t)c;
        for (int64_t c = 0; c < n; c++) {
            for (int64_t k = j->column[c]; k < j->column[c + 1]; k++) {
                const int64_t r = j->row[k];
                for (int64_t o = row_first[r]; o < row_first[r + 1] && row_columns[o] < c; o++)
                    used[color[row_columns[o]]] = c + 1;
            }
            int32_t free_color = 0;
            while (used[free_color] == c + 1) free_color++;
            color[c] = free_color;
            if (free_color >= j->group_count) j->group_count = free_color + 1;
        }
        for (int64_t c = 0; c < n; c++) firsts[color[c] + 1]++;
        for (int64_t g = 0; g < j->group_count; g++) firsts[g + 1] += firsts[g];
        memcpy(used, firsts, (size_t)n * sizeof *used);
        for (int64_t c = 0; c < n; c++) members[used[color[c]]++] = (int32_t)c;
        status = BL_OK;
    }
    free(row_first);
    free(row_columns);
    free(used);
    free(color);
    return status;
}

/* The section: n + 1 firsts of the columns, then the rows of each in ascending order, the diagonal among them. */
static int read_pattern(bl_engine *e, bl_jacobian *j, const int32_t *pattern, int64_t count, const char **why) {
    const int64_t n = j->n;
    *why = "the pattern of the Jacobian has another size";
    if (count < n + 1 || pattern[0] != 0 || pattern[n] != count - (n + 1)) return BL_ERROR_PLAN;
    *why = "the columns of the Jacobian's pattern are not in order";
    for (int64_t c = 0; c < n; c++)
        if (pattern[c + 1] < pattern[c] || pattern[c + 1] > pattern[n]) return BL_ERROR_PLAN;
    const int32_t *rows = pattern + n + 1;
    for (int64_t c = 0; c < n; c++) {
        bool has_diagonal = false;
        *why = "the rows of the Jacobian's pattern are not in order";
        for (int64_t k = pattern[c]; k < pattern[c + 1]; k++) {
            if (rows[k] < 0 || rows[k] >= n || (k > pattern[c] && rows[k] <= rows[k - 1])) return BL_ERROR_PLAN;
            has_diagonal = has_diagonal || rows[k] == c;
        }
        *why = "the pattern of the Jacobian lacks a diagonal entry";
        if (!has_diagonal) return BL_ERROR_PLAN;
    }
    *why = "no memory";
    int64_t *column = bl_allocate(e, n + 1, sizeof(int64_t));
    int32_t *row = bl_allocate(e, pattern[n], sizeof(int32_t));
    if (!column || !row) return BL_ERROR_MEMORY;
    for (int64_t c = 0; c <= n; c++) column[c] = pattern[c];
    memcpy(row, rows, (size_t)pattern[n] * sizeof(int32_t));
    j->column = column;
    j->row = row;
    j->entries = pattern[n];
    return BL_OK;
}

int bl_load_pattern(bl_engine *e, const int32_t *pattern, int64_t count, const char **why) {
    const int64_t n = e->layout.states;
    bl_jacobian *j = bl_allocate(e, 1, sizeof *j);
    *why = "no memory";
    if (!j) return BL_ERROR_MEMORY;
    e->jacobian = j;
    j->n = n;
    j->full = count == 0;
    if (count > 0) {
        const int status = read_pattern(e, j, pattern, count, why);
        if (status != BL_OK) return status;
    } else {
        int32_t *row = bl_allocate(e, n, sizeof(int32_t));
        if (!row) return BL_ERROR_MEMORY;
        for (int64_t k = 0; k < n; k++) row[k] = (int32_t)k;
        j->row = row;
        j->entries = n * n;
    }
    *why = "no memory";
    j->work = bl_allocate(e, 2 * n, sizeof(double));
    if (!j->work || group_columns(e, j) != BL_OK) return BL_ERROR_MEMORY;
    return j->full ? BL_OK : bl_analyze_factors(e, j);
}
