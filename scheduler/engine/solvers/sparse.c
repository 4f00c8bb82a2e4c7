/* The order of elimination of a sparse matrix, and the structure of its factors.
 *
 * Approximate minimum degree on a quotient graph (P. R. Amestoy, T. A. Davis, I. S. Duff, An approximate minimum degree ordering
 * algorithm, 1996), without supervariables. Pivots stay on the diagonal, so the structure is known when the plan is loaded: it
 * is that of the factors of A + Aᵀ. */
#include <stdlib.h>
#include <string.h>

#include "scheduler/engine/solvers/solver.h"

/* States; smaller matrices are factored as full ones. radau5 factors a complex matrix too: sparsity pays earlier. */
static const int64_t SMALLEST_SPARSE = 40, SMALLEST_SPARSE_RADAU5 = 16;
static const int64_t LARGEST_FACTOR = 1LL << 26;

/* The graph during elimination. A node is a variable until it is eliminated, then an element: a clique of variables. */
typedef struct {
    int64_t n;
    int64_t *first; /* of each variable's list in `lists`: its elements, then its variables */
    int32_t *element_count, *variable_count;
    int32_t *lists;
    int64_t *clique; /* of each element, its first variable in `cliques`; of eliminated nodes */
    int32_t *clique_size;
    int32_t *cliques;
    int64_t clique_room, clique_used;
    int32_t *degree, *next, *previous, *bucket; /* lists of variables by degree; -1 ends */
    int64_t *mark; /* of a variable, 1 + the last pivot whose clique it is in */
    int64_t *stamp; /* of an element, 1 + the last pivot that it was compared with */
    int32_t *outside; /* of an element, how many of its variables are not in the pivot's clique */
    bool *absorbed;
    int32_t *buffer;
} bl_graph;

static void free_graph(bl_graph *g) {
    free(g->first);
    free(g->element_count);
    free(g->variable_count);
    free(g->lists);
    free(g->clique);
    free(g->clique_size);
    free(g->cliques);
    free(g->degree);
    free(g->next);
    free(g->previous);
    free(g->bucket);
    free(g->mark);
    free(g->stamp);
    free(g->outside);
    free(g->absorbed);
    free(g->buffer);
}

/* The neighbors of each state in A + Aᵀ. */
static bool build_graph(bl_graph *g, const bl_jacobian *j) {
    const size_t n = (size_t)j->n, cell = sizeof(int32_t), wide = sizeof(int64_t);
    g->n = j->n;
    g->first = calloc(n + 2, wide);
    g->lists = malloc((2 * (size_t)j->entries + 1) * cell);
    g->element_count = calloc(n + 1, cell);
    g->variable_count = calloc(n + 1, cell);
    g->clique = calloc(n + 1, wide);
    g->clique_size = calloc(n + 1, cell);
    g->clique_room = 2 * j->entries + 1;
    g->cliques = malloc((size_t)g->clique_room * cell);
    g->degree = calloc(n + 1, cell);
    g->next = malloc((n + 1) * cell);
    g->previous = malloc((n + 1) * cell);
    g->bucket = malloc((n + 1) * cell);
    g->mark = calloc(n + 1, wide);
    g->stamp = calloc(n + 1, wide);
    g->outside = calloc(n + 1, cell);
    g->absorbed = calloc(n + 1, sizeof(bool));
    g->buffer = malloc((n + 1) * cell);
    if (!g->first || !g->lists || !g->element_count || !g->variable_count || !g->clique || !g->clique_size ||
        !g->cliques || !g->degree || !g->next || !g->previous || !g->bucket || !g->mark || !g->stamp || !g->outside ||
        !g->absorbed || !g->buffer)
        return false;
    for (int64_t c = 0; c < j->n; c++)
        for (int64_t k = j->column[c]; k < j->column[c + 1]; k++)
            if (j->row[k] != c) {
                g->first[c + 1]++;
                g->first[j->row[k] + 1]++;
            }
    for (int64_t c = 0; c < j->n; c++) g->first[c + 1] += g->first[c];
    for (int64_t c = 0; c < j->n; c++)
        for (int64_t k = j->column[c]; k < j->column[c + 1]; k++) {
            const int32_t r = j->row[k], own = (int32_t)c;
            if (r == own) continue;
            g->lists[g->first[c] + g->variable_count[c]++] = r;
            g->lists[g->first[r] + g->variable_count[r]++] = own;
        }
    for (int64_t i = 0; i < j->n; i++) { /* an entry on both sides of the diagonal is listed twice */
        int32_t *list = g->lists + g->first[i], kept = 0;
        for (int32_t k = 0; k < g->variable_count[i]; k++)
            if (g->mark[list[k]] != i + 1) {
                g->mark[list[k]] = i + 1;
                list[kept++] = list[k];
            }
        g->variable_count[i] = g->degree[i] = kept;
    }
    memset(g->mark, 0, n * wide);
    return true;
}

static void insert_by_degree(bl_graph *g, int32_t i) {
    const int32_t d = g->degree[i], before = g->bucket[d];
    g->next[i] = before;
    g->previous[i] = -1;
    if (before >= 0) g->previous[before] = i;
    g->bucket[d] = i;
}

static void remove_by_degree(bl_graph *g, int32_t i) {
    if (g->next[i] >= 0) g->previous[g->next[i]] = g->previous[i];
    if (g->previous[i] >= 0) g->next[g->previous[i]] = g->next[i];
    else g->bucket[g->degree[i]] = g->next[i];
}

/* Makes the clique of pivot p: its variables and those of its elements, which it absorbs. */
static bool make_clique(bl_graph *g, int32_t p, int64_t pivot) {
    const int32_t *list = g->lists + g->first[p], elements = g->element_count[p];
    int64_t most = g->variable_count[p];
    for (int32_t k = 0; k < elements; k++) most += g->clique_size[list[k]];
    if (g->clique_used + most > g->clique_room) {
        const int64_t room = 2 * (g->clique_used + most);
        int32_t *grown = realloc(g->cliques, (size_t)room * sizeof *grown);
        if (!grown) return false;
        g->cliques = grown;
        g->clique_room = room;
    }
    g->clique[p] = g->clique_used;
    int32_t *clique = g->cliques + g->clique_used, size = 0;
    g->mark[p] = pivot + 1;
    for (int32_t k = 0; k <= elements; k++) {
        const int32_t *source = k < elements ? g->cliques + g->clique[list[k]] : list + elements;
        const int32_t count = k < elements ? g->clique_size[list[k]] : g->variable_count[p];
        for (int32_t c = 0; c < count; c++)
            if (g->mark[source[c]] != pivot + 1) {
                g->mark[source[c]] = pivot + 1;
                clique[size++] = source[c];
            }
        if (k < elements) g->absorbed[list[k]] = true;
    }
    g->clique_size[p] = size;
    g->clique_used += size;
    return true;
}

/* Updates lists and degrees of the variables in the clique of pivot p. */
static void update_clique(bl_graph *g, int32_t p, int64_t pivot, int64_t left) {
    const int32_t *clique = g->cliques + g->clique[p], size = g->clique_size[p];
    for (int32_t c = 0; c < size; c++) {
        const int32_t *list = g->lists + g->first[clique[c]];
        for (int32_t k = 0; k < g->element_count[clique[c]]; k++) {
            const int32_t element = list[k];
            if (g->stamp[element] != pivot + 1) {
                g->stamp[element] = pivot + 1;
                g->outside[element] = g->clique_size[element];
            }
            g->outside[element]--;
        }
    }
    for (int32_t c = 0; c < size; c++) {
        const int32_t i = clique[c], variables = g->variable_count[i], elements = g->element_count[i];
        int32_t *list = g->lists + g->first[i], kept_elements = 0, kept_variables = 0;
        int64_t degree = size - 1;
        for (int32_t k = 0; k < variables; k++) {
            const int32_t other = list[elements + k];
            if (g->mark[other] != pivot + 1) g->buffer[kept_variables++] = other;
        }
        for (int32_t k = 0; k < elements; k++) {
            const int32_t element = list[k];
            if (g->absorbed[element]) continue;
            if (g->outside[element] == 0) continue; /* its variables are all in the new clique */
            degree += g->outside[element];
            list[kept_elements++] = element;
        }
        list[kept_elements++] = p;
        memcpy(list + kept_elements, g->buffer, (size_t)kept_variables * sizeof *list);
        g->element_count[i] = kept_elements;
        g->variable_count[i] = kept_variables;
        degree += kept_variables;
        remove_by_degree(g, i);
        g->degree[i] = (int32_t)(degree < left ? degree : left);
        insert_by_degree(g, i);
    }
}

/* Eliminates all variables; the cliques are then the columns of L. Returns false if memory ends or the factors are too full. */
static bool eliminate(bl_graph *g, int32_t *order, bool *too_full) {
    const int64_t n = g->n, most = n * n / 4 < LARGEST_FACTOR ? n * n / 4 : LARGEST_FACTOR;
    for (int64_t d = 0; d <= n; d++) g->bucket[d] = -1;
    for (int64_t i = n; i-- > 0;) insert_by_degree(g, (int32_t)i);
    int64_t least = 0;
    for (int64_t pivot = 0; pivot < n; pivot++) {
        while (g->bucket[least] < 0) least++;
        const int32_t p = g->bucket[least];
        remove_by_degree(g, p);
        order[pivot] = p;
        if (!make_clique(g, p, pivot)) return false;
        if (g->clique_used > most) {
            *too_full = true;
            return false;
        }
        update_clique(g, p, pivot, n - pivot - 1);
        for (int32_t c = 0; c < g->clique_size[p]; c++) {
            const int32_t d = g->degree[g->cliques[g->clique[p] + c]];
            if (d < least) least = d;
        }
    }
    return true;
}

int bl_analyze_factors(bl_engine *e, bl_jacobian *j) {
    const int64_t n = j->n;
    if (n < (e->solver == BL_RADAU5 ? SMALLEST_SPARSE_RADAU5 : SMALLEST_SPARSE)) return BL_OK;
    bl_graph g = {0};
    bool too_full = false;
    int status = BL_ERROR_MEMORY;
    int32_t *order = bl_allocate(e, n, sizeof(int32_t)), *position = bl_allocate(e, n, sizeof(int32_t));
    if (order && position && build_graph(&g, j) && eliminate(&g, order, &too_full)) {
        const int64_t count = g.clique_used;
        int64_t *lower = bl_allocate(e, n + 1, sizeof(int64_t)), *upper = bl_allocate(e, n + 1, sizeof(int64_t));
        int32_t *lower_row = bl_allocate(e, count, sizeof(int32_t)),
                *upper_row = bl_allocate(e, count, sizeof(int32_t));
        if (lower && upper && lower_row && upper_row) {
            for (int64_t k = 0; k < n; k++) position[order[k]] = (int32_t)k;
            /* Columns of U, which gather k in ascending order; then those of L from them, so that rows ascend too. */
            for (int64_t k = 0; k < count; k++) upper[position[g.cliques[k]] + 1]++;
            for (int64_t k = 0; k < n; k++) upper[k + 1] += upper[k];
            int64_t *at = g.mark;
            memcpy(at, upper, (size_t)n * sizeof *at);
            for (int64_t k = 0; k < n; k++)
                for (int32_t c = 0; c < g.clique_size[order[k]]; c++)
                    upper_row[at[position[g.cliques[g.clique[order[k]] + c]]]++] = (int32_t)k;
            for (int64_t k = 0; k < n; k++) lower[k + 1] = lower[k] + g.clique_size[order[k]];
            memcpy(at, lower, (size_t)n * sizeof *at);
            for (int64_t r = 0; r < n; r++)
                for (int64_t k = upper[r]; k < upper[r + 1]; k++) lower_row[at[upper_row[k]]++] = (int32_t)r;
            j->order = order;
            j->position = position;
            j->lower = lower;
            j->upper = upper;
            j->lower_row = lower_row;
            j->upper_row = upper_row;
            j->factor_entries = count;
            j->sparse = true;
            status = BL_OK;
        }
    } else if (too_full) {
        status = BL_OK;
    }
    free_graph(&g);
    return status;
}
