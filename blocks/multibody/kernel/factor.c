/* K = M + Jᵀ α J and its factors L D Lᵀ, on a precomputed sparsity pattern.
 *
 * K is stored by rows of its lower triangle, in the order of elimination, on the pattern of L (zeros where L fills in); L is
 * stored by columns. `slot_of` maps each entry of the rows to its index in the columns. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

/* What a row would move at the most, of lengths and of angles: as if every joint between its two links could do all it can.
   `mobility` has 1 / mass of each coordinate. */
static void most_mobile(const mb_view *m, int32_t c, const double *mobility, double *lengths, double *angles) {
    const int32_t *cut = m->cuts + c * MB_CUT_FIELDS;
    const mb_cut_state *at = &m->cut_state[c];
    *lengths = *angles = 0.0;
    for (int32_t n = 0; n < cut[MB_CUT_PATHS]; n++) {
        const int32_t *path = m->paths + (cut[MB_CUT_PATH] + n) * MB_PATH_FIELDS;
        const double share = mobility[path[MB_PATH_V]];
        if (m->links[path[MB_PATH_LINK] * MB_LINK_FIELDS + MB_LINK_TYPE] == MB_PRISMATIC) {
            *lengths += share;
        } else {
            double arm[3];
            mb_sub(path[MB_PATH_SIDE] ? at->local_j : at->local_i, m->link[path[MB_PATH_LINK]].local, arm);
            *lengths += mb_dot(arm, arm) * share;
            *angles += share;
        }
    }
}

/* The same of a row that ties coordinates, alone in its closure. */
static double own_mobile(const mb_view *m, int32_t c, const mb_coordinate_row *own, const double *inverse) {
    const int32_t *cut = m->cuts + c * MB_CUT_FIELDS;
    double most = 0.0;
    for (int32_t n = 0; n < cut[MB_CUT_PATHS]; n++) {
        const int32_t *path = m->paths + (cut[MB_CUT_PATH] + n) * MB_PATH_FIELDS;
        const double reach = own->reach(m, c, path);
        most += reach * reach * inverse[path[MB_PATH_V]];
    }
    return most;
}

/* The row weights α: large against the mass that a row moves, the same for every unit of length and mass. A row that moves
   next to nothing (redundant, or in a singular position) is weighed as if it moved a small part of what it could at the most:
   weighed by its own, it would turn rounding into a constraint. */
void mb_weigh_rows(mb_view *m) {
    const double smallest_part = 1e-8;
    double *inverse = m->work;
    for (int32_t v = 0; v < m->nv; v++) { /* skip speeds without inertia: they do not scale a row */
        const double mass = m->mass_diagonal[m->permutation[v]];
        inverse[v] = mass > 0.0 ? 1.0 / mass : 0.0;
    }
    for (int32_t c = 0; c < m->cut_count; c++) {
        const int32_t *cut = m->cuts + c * MB_CUT_FIELDS;
        const double *block = m->jacobian + cut[MB_CUT_J];
        const mb_coordinate_row *own = mb_coordinate_row_of(m, c);
        double lengths = 0.0, angles = 0.0;
        if (!own) most_mobile(m, c, inverse, &lengths, &angles);
        for (int32_t r = 0; r < cut[MB_CUT_ROWS]; r++) {
            const int32_t row = cut[MB_CUT_ROW] + r, type = m->rows[row * MB_ROW_FIELDS + MB_ROW_TYPE];
            double mobility = 0.0;
            for (int32_t n = 0; n < cut[MB_CUT_PATHS]; n++) {
                const double j = block[r * cut[MB_CUT_PATHS] + n];
                mobility += j * j * inverse[m->paths[(cut[MB_CUT_PATH] + n) * MB_PATH_FIELDS + MB_PATH_V]];
            }
            const bool angular = type == MB_ROW_D1 || type == MB_ROW_DRIVEN_ANGLE;
            if (!own) mobility = fmax(mobility, smallest_part * (angular ? angles : lengths));
            else if (own->reach) mobility = fmax(mobility, smallest_part * own_mobile(m, c, own, inverse));
            m->alpha[row] = mobility > 0.0 && isfinite(mobility) ? m->settings[MB_ALPHA] / mobility : 1.0;
            if (type == MB_ROW_TANGENT) m->alpha[row] *= mb_rigid_of(m, row)->weight;
            if (!mb_row_holds(m, row)) m->alpha[row] = 0.0;
        }
    }
}

void mb_build_k(mb_view *m) {
    mb_weigh_rows(m);
    memcpy(m->k_diagonal, m->mass_diagonal, (size_t)m->nv * sizeof(double));
    memcpy(m->k_off, m->mass_off, (size_t)m->nonzeros * sizeof(double));
    for (int32_t c = 0; c < m->cut_count; c++) {
        const int32_t *cut = m->cuts + c * MB_CUT_FIELDS;
        const double *block = m->jacobian + cut[MB_CUT_J];
        const int32_t *slot = m->pairs + cut[MB_CUT_PAIR], paths = cut[MB_CUT_PATHS];
        for (int32_t a = 0; a < paths; a++)
            for (int32_t b = 0; b <= a; b++) {
                double sum = 0.0;
                for (int32_t r = 0; r < cut[MB_CUT_ROWS]; r++)
                    sum += m->alpha[cut[MB_CUT_ROW] + r] * block[r * paths + a] * block[r * paths + b];
                if (*slot < 0) m->k_diagonal[-1 - *slot] += sum;
                else m->k_off[*slot] += sum;
                slot++;
            }
    }
}

/* Row by row: each row of L is a triangular solve with the rows above. */
int mb_factor(mb_view *m) {
    double *y = m->work;
    memset(y, 0, (size_t)m->nv * sizeof(double));
    for (int32_t k = 0; k < m->nv; k++) {
        const int32_t first = m->row_start[k], end = m->row_start[k + 1];
        double d = m->k_diagonal[k];
        for (int32_t e = first; e < end; e++) y[m->column_of[e]] = m->k_off[e];
        for (int32_t e = first; e < end; e++) {
            const int32_t j = m->column_of[e], slot = m->slot_of[e];
            const double value = y[j], l = value * m->pivot[j];
            y[j] = 0.0;
            /* Entries of column j above row k: those that were computed so far. */
            for (int32_t s = m->column_start[j]; s < slot; s++) y[m->row_of[s]] -= m->factor[s] * value;
            m->factor[slot] = l;
            d -= l * value;
        }
        if (!(d > 0.0)) return 0;
        m->pivot[k] = 1.0 / d;
    }
    return 1;
}

/* x ← K⁻¹ x */
void mb_solve(const mb_view *m, double *x) {
    double *y = m->work;
    const int32_t n = m->nv;
    for (int32_t v = 0; v < n; v++) y[m->permutation[v]] = x[v];
    for (int32_t j = 0; j < n; j++)
        for (int32_t s = m->column_start[j]; s < m->column_start[j + 1]; s++) y[m->row_of[s]] -= m->factor[s] * y[j];
    for (int32_t j = n - 1; j >= 0; j--) {
        double sum = y[j] * m->pivot[j];
        for (int32_t s = m->column_start[j]; s < m->column_start[j + 1]; s++) sum -= m->factor[s] * y[m->row_of[s]];
        y[j] = sum;
    }
    for (int32_t v = 0; v < n; v++) x[v] = y[m->permutation[v]];
}

/* out = M x */
void mb_mass_times(const mb_view *m, const double *x, double *out) {
    double *y = m->work;
    const int32_t n = m->nv;
    for (int32_t v = 0; v < n; v++) y[m->permutation[v]] = x[v];
    for (int32_t v = 0; v < n; v++) {
        const int32_t k = m->permutation[v];
        out[v] = m->mass_diagonal[k] * y[k];
    }
    for (int32_t k = 0; k < n; k++)
        for (int32_t e = m->row_start[k]; e < m->row_start[k + 1]; e++) {
            const int32_t j = m->column_of[e];
            out[m->permutation[n + k]] += m->mass_off[e] * y[j];
            out[m->permutation[n + j]] += m->mass_off[e] * y[k];
        }
}
