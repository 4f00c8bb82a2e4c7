/* Reactions of redundant joints: one rule for how they share a load.
 *
 * Where constraints are redundant, accelerations are unique but multipliers are not: every δλ with Jᵀ δλ = 0 can be added to them. Of all
 * reactions that balance the motion, those of minimum norm are taken,
 *     Σ |F|² / k_F + |M|² / k_M + Σ τ² / k   → minimum
 * over all joints, of the tree and of closures alike, and over the efforts τ of drivers. F and M are the reaction as it is an output: on the
 * second body, about the second marker. k_F and k_M are the stiffnesses of a joint, if they are given: the norm is then the elastic energy of
 * joints that yield a little. Otherwise k_M = L² k_F, the same for all joints, with L the largest distance between the markers of two joints
 * on one body. The result depends neither on units, nor on the order of joints, nor on which of them close loops.
 *
 * With Z a basis of the null space of Jᵀ and w the scaled reactions, a change λ + Z y makes w + A y of them; y solves AᵀA y = -Aᵀw. Z comes from
 * an elimination of J with complete pivoting. Rows of rigid contacts take no part. The rank can only be smaller than at the start in
 * singular positions, so that a mechanism which starts without redundant rows needs none of this. */
#include <string.h>

#include "blocks/multibody/multibody.h"

static const double RANK_TOLERANCE = 1e-8;  /* of pivots, as a part of the largest */
static const double SEEN = 1e-7;            /* least part of a null vector that counts */
static const double SHARED_PART = 1e-6;     /* least part of the largest reaction that is worth a remark */
enum { SAMPLE_EVERY = 16 };                 /* steps between looks at what is shared */

static const int32_t *joint_record(const mb_view *m, int32_t n) { return m->joints + n * MB_JOINT_FIELDS; }
static int32_t link_of(const mb_view *m, int32_t marker) { return m->markers[marker * MB_MARKER_FIELDS + MB_MARKER_LINK]; }
static bool in_tree(const mb_view *m, const int32_t *joint) { return joint[MB_JOINT_REACTION] < m->link_count; }
static const int32_t *cut_of(const mb_view *m, const int32_t *joint) {
    return m->cuts + (joint[MB_JOINT_REACTION] - m->link_count) * MB_CUT_FIELDS;
}
static int32_t row_type(const mb_view *m, int32_t row) { return m->rows[row * MB_ROW_FIELDS + MB_ROW_TYPE]; }
/* Those of rigid contacts are the last. */
static int32_t shared_rows(const mb_view *m) { return m->row_count - 2 * m->rigid_count; }

bool mb_joint_check(const bl_block *b, const int32_t *joint) {
    const int32_t *head = b->i;
    return mb_in_range(joint[MB_JOINT_REACTION], 0, (int64_t)head[MB_LINKS] + head[MB_CUTS]) &&
           mb_in_range(joint[MB_JOINT_I], 0, head[MB_MARKERS]) && mb_in_range(joint[MB_JOINT_J], 0, head[MB_MARKERS]) &&
           mb_in_range(joint[MB_JOINT_P], -1, (int64_t)b->p_count - 1);
}

/* Whether the multiplier of a row is a moment. */
static bool is_moment(const mb_view *m, const int32_t *cut, int32_t row) {
    const int32_t type = row_type(m, row);
    if (type != MB_ROW_DRIVER) return type == MB_ROW_D1 || type == MB_ROW_DRIVEN_ANGLE;
    if (cut[MB_CUT_PATHS] < 1) return false;
    const int32_t link = m->paths[cut[MB_CUT_PATH] * MB_PATH_FIELDS + MB_PATH_LINK];
    return m->links[link * MB_LINK_FIELDS + MB_LINK_TYPE] != MB_PRISMATIC;
}

/* 1 / √k_F and 1 / √k_M of a joint. */
static void joint_scales(const mb_view *m, const int32_t *joint, double *of_force, double *of_moment) {
    const double *k = joint[MB_JOINT_P] >= 0 ? m->p + joint[MB_JOINT_P] : NULL;
    *of_force = k ? 1.0 / sqrt(k[0]) : 1.0;
    *of_moment = k ? 1.0 / sqrt(k[1]) : 1.0 / m->shared[MB_SHARED_LENGTH];
}

/* L; 1 m if no two joints are apart: then forces and moments do not mix. */
static double mechanism_size(const mb_view *m) {
    double largest = 0.0;
    const int32_t ends = 2 * m->head[MB_JOINTS];
    for (int32_t a = 0; a < ends; a++) {
        const int32_t i = joint_record(m, a / 2)[MB_JOINT_I + a % 2];
        for (int32_t b = 0; b < a; b++) {
            const int32_t j = joint_record(m, b / 2)[MB_JOINT_I + b % 2];
            double apart[3];
            if (link_of(m, i) != link_of(m, j)) continue;
            mb_sub(m->marker_data[i].p, m->marker_data[j].p, apart);
            largest = fmax(largest, mb_dot(apart, apart));
        }
    }
    return largest > 0.0 && isfinite(largest) ? sqrt(largest) : 1.0;
}

/* J, its rows and columns in the same unit of length. */
static void fill_matrix(const mb_view *m) {
    const double length = m->shared[MB_SHARED_LENGTH];
    memset(m->share.matrix, 0, (size_t)m->row_count * (size_t)m->nv * sizeof(double));
    for (int32_t c = 0; c < m->cut_count; c++) {
        const int32_t *cut = m->cuts + c * MB_CUT_FIELDS;
        const double *block = m->jacobian + cut[MB_CUT_J];
        for (int32_t r = 0; r < cut[MB_CUT_ROWS]; r++) {
            const int32_t row = cut[MB_CUT_ROW] + r;
            const double scale = is_moment(m, cut, row) ? length : 1.0;
            for (int32_t n = 0; n < cut[MB_CUT_PATHS]; n++) {
                const int32_t *path = m->paths + (cut[MB_CUT_PATH] + n) * MB_PATH_FIELDS;
                const bool slides = m->links[path[MB_PATH_LINK] * MB_LINK_FIELDS + MB_LINK_TYPE] == MB_PRISMATIC;
                m->share.matrix[(int64_t)row * m->nv + path[MB_PATH_V]] = scale * (slides ? length : 1.0) * block[r * cut[MB_CUT_PATHS] + n];
            }
        }
    }
}

static void swap(double *a, double *b) {
    const double kept = *a;
    *a = *b;
    *b = kept;
}

/* Eliminates in place, with the multipliers left below the pivots; returns the rank. Rows and columns stay where they are. */
static int32_t eliminate(const mb_view *m) {
    const int32_t rows = shared_rows(m), columns = m->nv;
    double *a = m->share.matrix, *row_at = m->share.row_at, *column_at = m->share.column_at, first = 0.0;
    for (int32_t k = 0; k < rows; k++) row_at[k] = k;
    for (int32_t k = 0; k < columns; k++) column_at[k] = k;
    int32_t rank = 0;
    for (; rank < rows && rank < columns; rank++) {
        double largest = 0.0;
        int32_t row = rank, column = rank;
        for (int32_t i = rank; i < rows; i++) {
            const double *of = a + (int64_t)row_at[i] * columns;
            for (int32_t j = rank; j < columns; j++) {
                const double size = fabs(of[(int32_t)column_at[j]]);
                if (size > largest) largest = size, row = i, column = j;
            }
        }
        if (rank == 0) first = largest;
        if (!(largest > RANK_TOLERANCE * first)) break;
        swap(&row_at[rank], &row_at[row]);
        swap(&column_at[rank], &column_at[column]);
        const double *pivots = a + (int64_t)row_at[rank] * columns, pivot = pivots[(int32_t)column_at[rank]];
        for (int32_t i = rank + 1; i < rows; i++) {
            double *of = a + (int64_t)row_at[i] * columns;
            const double factor = of[(int32_t)column_at[rank]] / pivot;
            of[(int32_t)column_at[rank]] = factor;
            if (factor == 0.0) continue;
            for (int32_t j = rank + 1; j < columns; j++) of[(int32_t)column_at[j]] -= factor * pivots[(int32_t)column_at[j]];
        }
    }
    return rank;
}

/* The null vectors of Jᵀ, one for each row beyond the rank. */
static void find_null_vectors(const mb_view *m, int32_t rank) {
    const int32_t rows = shared_rows(m), columns = m->nv;
    const double *a = m->share.matrix, *row_at = m->share.row_at, *column_at = m->share.column_at;
    for (int32_t i = rank; i < rows; i++) {
        double *z = m->share.basis + (int64_t)(i - rank) * m->row_count;
        memset(z, 0, (size_t)m->row_count * sizeof(double));
        z[(int32_t)row_at[i]] = 1.0;
        for (int32_t k = rank - 1; k >= 0; k--) {
            const int32_t column = (int32_t)column_at[k];
            double sum = a[(int64_t)row_at[i] * columns + column];
            for (int32_t j = k + 1; j < rank; j++) {
                const double part = z[(int32_t)row_at[j]];
                if (part != 0.0) sum += part * a[(int64_t)row_at[j] * columns + column];
            }
            z[(int32_t)row_at[k]] = -sum;
        }
    }
    for (int32_t c = 0; c < m->cut_count; c++) { /* back to the units of the multipliers */
        const int32_t *cut = m->cuts + c * MB_CUT_FIELDS;
        for (int32_t row = cut[MB_CUT_ROW]; row < cut[MB_CUT_ROW] + cut[MB_CUT_ROWS]; row++)
            if (is_moment(m, cut, row))
                for (int32_t n = 0; n < rows - rank; n++) m->share.basis[(int64_t)n * m->row_count + row] *= m->shared[MB_SHARED_LENGTH];
    }
}

/* Adds a force at a marker and a couple to the wrench through a link, about its origin. */
static void add_wrench(const mb_view *m, int32_t link, const double *place, double sign, const double *F, const double *N) {
    if (link < 0) return;
    double *wrench = m->share.wrench + 6 * (int64_t)link, arm[3], force[3] = {sign * F[0], sign * F[1], sign * F[2]};
    mb_sub(place, m->link[link].local, arm);
    mb_add(force, wrench);
    mb_add(N, wrench + 3);
    mb_add_cross(arm, force, wrench + 3);
}

/* What multipliers alone send through the tree: the wrench through each link, about its origin. */
static void send_multipliers(const mb_view *m, const double *lambda) {
    memset(m->share.wrench, 0, 6 * (size_t)m->link_count * sizeof(double));
    for (int32_t c = 0; c < m->cut_count; c++) {
        const int32_t *cut = m->cuts + c * MB_CUT_FIELDS, *first = m->rows + cut[MB_CUT_ROW] * MB_ROW_FIELDS;
        if (first[MB_ROW_TYPE] == MB_ROW_DRIVER) continue;
        double F[3] = {0, 0, 0}, N_i[3] = {0, 0, 0}, N_j[3] = {0, 0, 0};
        bool any = false;
        for (int32_t row = cut[MB_CUT_ROW]; row < cut[MB_CUT_ROW] + cut[MB_CUT_ROWS]; row++) {
            const mb_row_state *state = &m->row_state[row];
            if (lambda[row] == 0.0) continue;
            any = true;
            mb_axpy(lambda[row], state->F, F);
            mb_axpy(lambda[row], state->N_i, N_i);
            mb_axpy(lambda[row], state->N_j, N_j);
        }
        if (!any) continue;
        add_wrench(m, link_of(m, first[MB_ROW_I]), m->cut_state[c].local_i, -1.0, F, N_i);
        add_wrench(m, link_of(m, first[MB_ROW_J]), m->cut_state[c].local_j, 1.0, F, N_j);
    }
    for (int32_t l = m->link_count - 1; l >= 0; l--) {
        const int32_t parent = m->links[l * MB_LINK_FIELDS + MB_LINK_PARENT];
        const double *wrench = m->share.wrench + 6 * (int64_t)l;
        if (parent < 0) continue;
        double *up = m->share.wrench + 6 * (int64_t)parent;
        mb_add(wrench, up);
        mb_add(wrench + 3, up + 3);
        mb_add_cross(m->link[l].r, wrench, up + 3);
    }
}

/* The reaction of a tree joint about its second marker, from the wrench through its last link, scaled. */
static void scale_reaction(const mb_view *m, int32_t n, const double *F, const double *N, double *out) {
    const int32_t *joint = joint_record(m, n), link = joint[MB_JOINT_REACTION];
    double of_force, of_moment;
    joint_scales(m, joint, &of_force, &of_moment);
    mb_copy(F, out);
    mb_copy(N, out + 3);
    mb_add_cross(m->share.arm + 3 * (int64_t)n, F, out + 3);
    mb_take_out_efforts(m, link, out, out + 3);
    for (int k = 0; k < 3; k++) {
        out[k] *= of_force;
        out[3 + k] *= of_moment;
    }
}

static double *effect_of(const mb_view *m, int32_t vector, int32_t joint) {
    return m->share.effect + ((int64_t)vector * m->head[MB_JOINTS] + joint) * 6;
}

static double six_dot(const double *a, const double *b) { return mb_dot(a, b) + mb_dot(a + 3, b + 3); }

/* The scale of the multiplier of each row. */
static void scale_rows(const mb_view *m) {
    for (int32_t k = 0; k < m->row_count; k++) m->share.row_scale[k] = 0.0;
    for (int32_t n = 0; n < m->head[MB_JOINTS]; n++) {
        const int32_t *joint = joint_record(m, n);
        double of_force, of_moment;
        if (in_tree(m, joint)) continue;
        const int32_t *cut = cut_of(m, joint);
        joint_scales(m, joint, &of_force, &of_moment);
        for (int32_t row = cut[MB_CUT_ROW]; row < cut[MB_CUT_ROW] + cut[MB_CUT_ROWS]; row++)
            m->share.row_scale[row] = is_moment(m, cut, row) ? of_moment : of_force;
    }
}

/* AᵀA = L Lᵀ in place. Returns whether it is positive. */
static bool factor_gram(const mb_view *m, int32_t count) {
    double *gram = m->share.gram;
    const int64_t width = m->row_count;
    for (int32_t i = 0; i < count; i++)
        for (int32_t j = 0; j <= i; j++) {
            double sum = gram[i * width + j];
            for (int32_t k = 0; k < j; k++) sum -= gram[i * width + k] * gram[j * width + k];
            if (j < i) {
                gram[i * width + j] = sum / gram[j * width + j];
            } else {
                if (!(sum > 0.0)) return false;
                gram[i * width + i] = sqrt(sum);
            }
        }
    return true;
}

void mb_share_prepare(mb_view *m) {
    m->share.count = 0;
    if (m->head[MB_JOINTS] == 0 || m->shared[MB_SHARED_REDUNDANT] == 0.0) return;
    fill_matrix(m);
    const int32_t rank = eliminate(m), count = shared_rows(m) - rank, joints = m->head[MB_JOINTS];
    if (count <= 0) return;
    find_null_vectors(m, rank);
    scale_rows(m);
    for (int32_t n = 0; n < joints; n++) {
        const int32_t *joint = joint_record(m, n);
        double P[3];
        if (!in_tree(m, joint)) continue;
        mb_marker_place(m, joint[MB_JOINT_J], P);
        mb_sub(m->link[joint[MB_JOINT_REACTION]].p, P, m->share.arm + 3 * (int64_t)n);
    }
    for (int32_t v = 0; v < count; v++) {
        double *z = m->share.basis + (int64_t)v * m->row_count;
        send_multipliers(m, z);
        for (int32_t n = 0; n < joints; n++) {
            const int32_t *joint = joint_record(m, n);
            const double *wrench = in_tree(m, joint) ? m->share.wrench + 6 * (int64_t)joint[MB_JOINT_REACTION] : NULL;
            if (wrench) scale_reaction(m, n, wrench, wrench + 3, effect_of(m, v, n));
        }
        for (int32_t u = 0; u <= v; u++) {
            const double *other = m->share.basis + (int64_t)u * m->row_count;
            double sum = 0.0;
            for (int32_t row = 0; row < m->row_count; row++) {
                const double scale = m->share.row_scale[row];
                sum += scale * scale * z[row] * other[row];
            }
            for (int32_t n = 0; n < joints; n++)
                if (in_tree(m, joint_record(m, n))) sum += six_dot(effect_of(m, v, n), effect_of(m, u, n));
            m->share.gram[(int64_t)v * m->row_count + u] = sum;
        }
    }
    if (factor_gram(m, count)) m->share.count = count;
}

void mb_share(mb_view *m) {
    const int32_t count = m->share.count, joints = m->head[MB_JOINTS];
    const int64_t width = m->row_count;
    if (count == 0) return;
    double *y = m->share.right, *gram = m->share.gram, *change = m->row_work, w[6];
    for (int32_t v = 0; v < count; v++) {
        const double *z = m->share.basis + v * width;
        y[v] = 0.0;
        for (int32_t row = 0; row < m->row_count; row++) y[v] -= m->share.row_scale[row] * m->share.row_scale[row] * z[row] * m->lambda[row];
    }
    for (int32_t n = 0; n < joints; n++) {
        const int32_t *joint = joint_record(m, n);
        if (!in_tree(m, joint)) continue;
        const mb_link_state *s = &m->link[joint[MB_JOINT_REACTION]];
        scale_reaction(m, n, s->F, s->N, w);
        for (int32_t v = 0; v < count; v++) y[v] -= six_dot(effect_of(m, v, n), w);
    }
    for (int32_t i = 0; i < count; i++) {
        for (int32_t k = 0; k < i; k++) y[i] -= gram[i * width + k] * y[k];
        y[i] /= gram[i * width + i];
    }
    for (int32_t i = count - 1; i >= 0; i--) {
        for (int32_t k = i + 1; k < count; k++) y[i] -= gram[k * width + i] * y[k];
        y[i] /= gram[i * width + i];
    }
    memset(change, 0, (size_t)m->row_count * sizeof(double));
    for (int32_t v = 0; v < count; v++)
        for (int32_t row = 0; row < m->row_count; row++) change[row] += y[v] * m->share.basis[v * width + row];
    for (int32_t row = 0; row < m->row_count; row++) m->lambda[row] += change[row];
    send_multipliers(m, change);
    for (int32_t l = 0; l < m->link_count; l++) {
        mb_add(m->share.wrench + 6 * (int64_t)l, m->link[l].F);
        mb_add(m->share.wrench + 6 * (int64_t)l + 3, m->link[l].N);
    }
}

void mb_share_start(mb_view *m, double t, const double *q) {
    if (m->head[MB_JOINTS] == 0) return;
    m->shared[MB_SHARED_LENGTH] = mechanism_size(m);
    mb_update_positions(m, t, q);
    mb_rows_jacobian(m);
    fill_matrix(m);
    m->shared[MB_SHARED_REDUNDANT] = shared_rows(m) - eliminate(m);
}

/* A reaction that a null vector adds: force or torque of a joint, not scaled. */
static void null_reaction(const mb_view *m, int32_t vector, int32_t n, bool torque, double *out) {
    const int32_t *joint = joint_record(m, n);
    memset(out, 0, 3 * sizeof(double));
    if (in_tree(m, joint)) {
        double of_force, of_moment;
        joint_scales(m, joint, &of_force, &of_moment);
        mb_axpy(1.0 / (torque ? of_moment : of_force), effect_of(m, vector, n) + (torque ? 3 : 0), out);
        return;
    }
    const int32_t *cut = cut_of(m, joint);
    for (int32_t row = cut[MB_CUT_ROW]; row < cut[MB_CUT_ROW] + cut[MB_CUT_ROWS]; row++) {
        const mb_row_state *state = &m->row_state[row];
        mb_axpy(m->share.basis[(int64_t)vector * m->row_count + row], torque ? state->N_j : state->F, out);
    }
}

/* How much of a reaction lies in the directions that null vectors change. */
static double part_shared(const mb_view *m, int32_t n, bool torque, const double *value) {
    const double least = SEEN * (torque ? m->shared[MB_SHARED_LENGTH] : 1.0);
    double axes[3][3], square = 0.0;
    int found = 0;
    while (found < 3) {
        double best[3] = {0, 0, 0};
        for (int32_t v = 0; v < m->share.count; v++) {
            double change[3];
            null_reaction(m, v, n, torque, change);
            for (int k = 0; k < found; k++) mb_axpy(-mb_dot(axes[k], change), axes[k], change);
            if (mb_dot(change, change) > mb_dot(best, best)) mb_copy(change, best);
        }
        const double size = sqrt(mb_dot(best, best));
        if (!(size > least)) break;
        for (int k = 0; k < 3; k++) axes[found][k] = best[k] / size;
        const double along = mb_dot(axes[found++], value);
        square += along * along;
    }
    return sqrt(square);
}

/* The largest reaction of all, in N, moments over L. */
static double largest_reaction(const mb_view *m) {
    double most = 0.0, w[6];
    for (int32_t n = 0; n < m->head[MB_JOINTS]; n++) {
        const int32_t *joint = joint_record(m, n);
        if (in_tree(m, joint)) {
            scale_reaction(m, n, m->link[joint[MB_JOINT_REACTION]].F, m->link[joint[MB_JOINT_REACTION]].N, w);
            most = fmax(most, sqrt(six_dot(w, w)));
        }
    }
    for (int32_t row = 0; row < shared_rows(m); row++) most = fmax(most, fabs(m->share.row_scale[row] * m->lambda[row]));
    return most;
}

/* The record of what an output shows, or -1: the first, since drivers have theirs after the joints. */
static int32_t record_of(const mb_view *m, int32_t reaction) {
    for (int32_t n = 0; n < m->head[MB_JOINTS]; n++)
        if (joint_record(m, n)[MB_JOINT_REACTION] == reaction) return n;
    return -1;
}

static bool stiffnesses_given(const mb_view *m) { return m->head[MB_JOINTS] > 0 && joint_record(m, 0)[MB_JOINT_P] >= 0; }

/* Keeps the output that owes the largest part to the rule; needs reactions that are shared. */
static void note_shared(mb_view *m, double t) {
    const double largest = largest_reaction(m), length = m->shared[MB_SHARED_LENGTH];
    for (int32_t k = 0; k < m->head[MB_OUTPUTS]; k++) {
        const int32_t *out = m->outputs + k * MB_OUT_FIELDS, index = out[MB_OUT_INDEX];
        const bool torque = out[MB_OUT_TYPE] == MB_OUT_REACTION_TORQUE;
        double part = 0.0, whole = 0.0, unit = 1.0;
        if (out[MB_OUT_TYPE] == MB_OUT_DRIVER_EFFORT) {
            bool any = false;
            for (int32_t v = 0; v < m->share.count; v++)
                any = any || fabs(m->share.basis[(int64_t)v * m->row_count + index] * m->share.row_scale[index]) > SEEN;
            part = whole = any ? fabs(m->lambda[index]) : 0.0;
            unit = m->share.row_scale[index];
        } else if (torque || out[MB_OUT_TYPE] == MB_OUT_REACTION_FORCE) {
            double F[3], N[3];
            const int32_t n = record_of(m, index);
            if (n < 0) continue;
            mb_reaction(m, index, out[MB_OUT_AXIS], F, N);
            part = part_shared(m, n, torque, torque ? N : F);
            whole = torque ? sqrt(mb_dot(N, N)) : sqrt(mb_dot(F, F));
            unit = torque ? 1.0 / length : 1.0;
        }
        if (!(part * unit > SHARED_PART * largest) || !(part * unit > m->shared[MB_SHARED_WORST])) continue;
        m->shared[MB_SHARED_WORST] = part * unit;
        m->shared[MB_SHARED_PART] = part;
        m->shared[MB_SHARED_WHOLE] = whole;
        m->shared[MB_SHARED_TIME] = t;
        m->shared[MB_SHARED_OUTPUT] = k;
    }
}

void mb_sample_shared(mb_view *m, double t, const double *q, const double *v, bool now) {
    if (m->head[MB_JOINTS] == 0 || m->shared[MB_SHARED_REDUNDANT] == 0.0 || stiffnesses_given(m)) return;
    m->shared[MB_SHARED_STEPS] += 1.0;
    if (!now && m->shared[MB_SHARED_STEPS] < SAMPLE_EVERY) return;
    m->shared[MB_SHARED_STEPS] = now ? SAMPLE_EVERY - 1 : 0.0; /* inputs may act from the first step on */
    if (!mb_rigid_balance(m, t, q, v)) return;
    mb_find_wrenches(m, t, q, v);
    note_shared(m, t);
}
