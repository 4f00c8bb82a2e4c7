/* Reactions of redundant joints: the rule of load distribution.
 *
 * Where constraints are redundant, accelerations are unique but multipliers are not: every δλ with Jᵀ δλ = 0 can be added to them. Of all
 * reactions that balance the motion, those of minimum norm are taken,
 *     Σ |F|² / k_F + |M|² / k_M + Σ τ² / k   → minimum
 * over all joints, of the tree and of closures alike, and over the efforts τ of drivers. F and M are the reaction as defined for the outputs: on the
 * second body, about the second marker. k_F and k_M are the stiffnesses of a joint, if they are given: the norm is then the elastic energy of
 * joints that yield a little. Otherwise k_M = L² k_F, the same for all joints, with L the largest distance between the markers of two joints
 * on one body. The result depends neither on units, nor on the order of joints, nor on which of them close loops.
 *
 * With Z a basis of the null space of Jᵀ and w the scaled reactions, a change λ + Z y makes w + A y of them; y solves AᵀA y = -Aᵀw. Z comes from
 * an elimination of J with complete pivoting. Rows of rigid contacts take no part. The rank can only be smaller than at the start in
 * singular positions, so that a mechanism which starts without redundant rows needs none of this. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

static const double SHARE_RANK_TOLERANCE = 1e-8;  /* of pivots, as a part of the largest */
static const double SHARE_GOOD_PIVOT = 1e-3;      /* of pivots that are taken again */
static const double SHARE_SEEN = 1e-7;            /* least part of a null vector that counts */
static const double SHARE_REPORTED = 1e-6;     /* least part of the largest reaction that is worth a diagnostic */
enum { SHARE_SAMPLE_EVERY = 64 };                 /* steps between samples of the distribution */

static const int32_t *joint_record(const mb_view *m, int32_t n) { return m->joints + n * MB_JOINT_FIELDS; }
static bool in_tree(const mb_view *m, const int32_t *joint) { return joint[MB_JOINT_REACTION] < m->link_count; }
static const int32_t *cut_of(const mb_view *m, const int32_t *joint) {
    return m->cuts + (joint[MB_JOINT_REACTION] - m->link_count) * MB_CUT_FIELDS;
}
static int32_t row_type(const mb_view *m, int32_t row) { return m->rows[row * MB_ROW_FIELDS + MB_ROW_TYPE]; }
/* Those of rigid contacts are the last. */
static int32_t shared_rows(const mb_view *m) { return m->row_count - mb_rigid_rows(m); }

bool mb_joint_check(const bl_block *b, const int32_t *joint) {
    const int32_t *head = b->i;
    return mb_in_range(joint[MB_JOINT_REACTION], 0, (int64_t)head[MB_LINKS] + head[MB_CUTS]) &&
           mb_in_range(joint[MB_JOINT_I], 0, head[MB_MARKERS]) && mb_in_range(joint[MB_JOINT_J], 0, head[MB_MARKERS]) &&
           mb_in_range(joint[MB_JOINT_P], -1, (int64_t)b->p_count - 1);
}

/* Whether the multiplier of a row is a moment. */
static bool is_moment(const mb_view *m, const int32_t *cut, int32_t row) {
    const int32_t type = row_type(m, row);
    const mb_coordinate_row *own = mb_coordinate_rows[type];
    return own ? own->turns(m, (int32_t)((cut - m->cuts) / MB_CUT_FIELDS))
               : type == MB_ROW_D1 || type == MB_ROW_DRIVEN_ANGLE;
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
            if (mb_link_of(m, i) != mb_link_of(m, j)) continue;
            mb_sub(m->marker_data[i].p, m->marker_data[j].p, apart);
            largest = fmax(largest, mb_dot(apart, apart));
        }
    }
    return largest > 0.0 && isfinite(largest) ? sqrt(largest) : 1.0;
}

/* 1 / √k_F and 1 / √k_M of each joint and the scale of the multiplier of each row, which all samples share; and the lengths that bring rows and
   columns of J to one unit. */
static void share_set_scales(const mb_view *m) {
    const double length = m->shared[MB_SHARED_LENGTH];
    double *row_scale = m->share.row_scale, *row_unit = m->share.row_unit, *column_unit = m->share.column_unit;
    for (int32_t n = 0; n < m->head[MB_JOINTS]; n++) {
        const int32_t *joint = joint_record(m, n);
        const double *k = joint[MB_JOINT_P] >= 0 ? m->p + joint[MB_JOINT_P] : NULL;
        double *scale = m->share.joint_scale + 2 * (int64_t)n;
        scale[0] = k ? 1.0 / sqrt(k[0]) : 1.0;
        scale[1] = k ? 1.0 / sqrt(k[1]) : 1.0 / length;
        if (in_tree(m, joint)) continue;
        const int32_t *cut = cut_of(m, joint);
        for (int32_t row = cut[MB_CUT_ROW]; row < cut[MB_CUT_ROW] + cut[MB_CUT_ROWS]; row++)
            row_scale[row] = scale[is_moment(m, cut, row)];
    }
    for (int32_t c = 0; c < m->cut_count; c++) {
        const int32_t *cut = m->cuts + c * MB_CUT_FIELDS;
        for (int32_t row = cut[MB_CUT_ROW]; row < cut[MB_CUT_ROW] + cut[MB_CUT_ROWS]; row++)
            row_unit[row] = is_moment(m, cut, row) ? length : 1.0;
    }
    for (int32_t l = 0; l < m->link_count; l++) {
        const int32_t *link = m->links + l * MB_LINK_FIELDS, type = link[MB_LINK_TYPE];
        for (int32_t k = 0; k < (type == MB_SPHERICAL ? 3 : type == MB_FIXED ? 0 : 1); k++)
            column_unit[link[MB_LINK_V] + k] = type == MB_PRISMATIC ? length : 1.0;
    }
}

/* J, its rows and columns in one unit. */
static void fill_matrix(const mb_view *m) {
    memset(m->share.matrix, 0, (size_t)m->row_count * (size_t)m->nv * sizeof(double));
    for (int32_t c = 0; c < m->cut_count; c++) {
        const int32_t *cut = m->cuts + c * MB_CUT_FIELDS,
                      *path = m->paths + cut[MB_CUT_PATH] * MB_PATH_FIELDS + MB_PATH_V;
        const double *block = m->jacobian + cut[MB_CUT_J];
        for (int32_t r = 0; r < cut[MB_CUT_ROWS]; r++) {
            const int32_t row = cut[MB_CUT_ROW] + r;
            double *out = m->share.matrix + (int64_t)row * m->nv;
            for (int32_t n = 0; n < cut[MB_CUT_PATHS]; n++) {
                const int32_t column = path[n * MB_PATH_FIELDS];
                out[column] = m->share.row_unit[row] * m->share.column_unit[column] * block[r * cut[MB_CUT_PATHS] + n];
            }
        }
    }
}

static void share_swap(int32_t *a, int32_t *b) {
    const int32_t kept = *a;
    *a = *b;
    *b = kept;
}

/* Puts the largest entry that is left at the next pivot's place; returns its size. */
static double choose_pivot(const mb_view *m, int32_t rank, int32_t *row_at, int32_t *column_at) {
    const int32_t rows = shared_rows(m);
    double largest = 0.0;
    int32_t row = rank, column = rank;
    for (int32_t i = rank; i < rows; i++) {
        const double *of = m->share.matrix + (int64_t)row_at[i] * m->nv;
        for (int32_t j = rank; j < m->nv; j++) {
            const double size = fabs(of[column_at[j]]);
            if (size > largest) largest = size, row = i, column = j;
        }
    }
    share_swap(&row_at[rank], &row_at[row]);
    share_swap(&column_at[rank], &column_at[column]);
    return largest;
}

/* Eliminates one column in place, with the factors left below the pivot. */
static void eliminate_column(const mb_view *m, int32_t rank, const int32_t *row_at, const int32_t *column_at) {
    const int32_t rows = shared_rows(m), columns = m->nv, own = column_at[rank];
    const double *pivots = m->share.matrix + (int64_t)row_at[rank] * columns;
    const double inverse = 1.0 / pivots[own];
    for (int32_t i = rank + 1; i < rows; i++) {
        double *of = m->share.matrix + (int64_t)row_at[i] * columns;
        if (of[own] == 0.0) continue;
        const double factor = of[own] * inverse;
        of[own] = factor;
        for (int32_t j = rank + 1; j < columns; j++) of[column_at[j]] -= factor * pivots[column_at[j]];
    }
}

static void number_from_zero(int32_t *at, int32_t count) {
    for (int32_t k = 0; k < count; k++) at[k] = k;
}

/* With complete pivoting; returns the rank. Rows and columns stay where they are. */
static int32_t share_eliminate(const mb_view *m, int32_t *row_at, int32_t *column_at) {
    const int32_t most = shared_rows(m) < m->nv ? shared_rows(m) : m->nv;
    double first = 0.0;
    int32_t rank = 0;
    number_from_zero(row_at, shared_rows(m));
    number_from_zero(column_at, m->nv);
    for (; rank < most; rank++) {
        const double largest = choose_pivot(m, rank, row_at, column_at);
        if (rank == 0) first = largest;
        if (!(largest > SHARE_RANK_TOLERANCE * first)) break;
        eliminate_column(m, rank, row_at, column_at);
    }
    return rank;
}

/* Eliminates with the pivots of the initial state, without a search. Returns the rank, or -1 if these pivots are too small. */
static int32_t eliminate_as_before(const mb_view *m, int32_t *row_at, int32_t *column_at) {
    const int32_t rows = shared_rows(m);
    const double *order = m->share.order, redundant = m->shared[MB_SHARED_REDUNDANT];
    double first = 0.0, largest = 0.0;
    if (!(redundant >= 0.0 && redundant <= rows)) return -1; /* from a saved state, which may hold anything */
    const int32_t rank = rows - (int32_t)redundant;
    if (rank > m->nv) return -1;
    number_from_zero(row_at, rows);
    number_from_zero(column_at, m->nv);
    for (int32_t k = 0; k < rank; k++) {
        const double row = order[2 * k], column = order[2 * k + 1];
        if (!(row >= k && row < rows && column >= k && column < m->nv)) return -1;
        share_swap(&row_at[k], &row_at[(int32_t)row]);
        share_swap(&column_at[k], &column_at[(int32_t)column]);
        const double pivot = fabs(m->share.matrix[(int64_t)row_at[k] * m->nv + column_at[k]]);
        first = fmax(first, pivot);
        if (!(pivot > SHARE_GOOD_PIVOT * first)) return -1;
        eliminate_column(m, k, row_at, column_at);
    }
    for (int32_t i = rank; i < rows; i++)
        for (int32_t j = rank; j < m->nv; j++)
            largest = fmax(largest, fabs(m->share.matrix[(int64_t)row_at[i] * m->nv + column_at[j]]));
    return largest <= SHARE_RANK_TOLERANCE * first ? rank : -1;
}

/* The null vectors of Jᵀ, one for each row beyond the rank. */
static void find_null_vectors(const mb_view *m, int32_t rank, const int32_t *row_at, const int32_t *column_at) {
    const int32_t rows = shared_rows(m), columns = m->nv;
    const double *a = m->share.matrix;
    for (int32_t i = rank; i < rows; i++) {
        double *z = m->share.basis + (int64_t)(i - rank) * m->row_count, *left = m->share.right;
        memset(z, 0, (size_t)m->row_count * sizeof(double));
        z[row_at[i]] = m->share.row_unit[row_at[i]]; /* back to the units of the multipliers */
        for (int32_t k = 0; k < rank; k++) left[k] = a[(int64_t)row_at[i] * columns + column_at[k]];
        for (int32_t k = rank - 1; k >= 0; k--) {
            if (left[k] == 0.0) continue;
            const double *factors = a + (int64_t)row_at[k] * columns;
            z[row_at[k]] = -left[k] * m->share.row_unit[row_at[k]];
            for (int32_t j = 0; j < k; j++) left[j] -= left[k] * factors[column_at[j]];
        }
    }
}

/* Adds a force at a marker and a couple to the wrench through a link, about its origin. */
static void add_wrench(const mb_view *m, int32_t link, const double *place, double sign, const double *F,
                       const double *N) {
    if (link < 0) return;
    double *wrench = m->share.wrench + 6 * (int64_t)link, arm[3], force[3] = {sign * F[0], sign * F[1], sign * F[2]};
    mb_sub(place, m->link[link].local, arm);
    mb_add(force, wrench);
    mb_add(N, wrench + 3);
    mb_add_cross(arm, force, wrench + 3);
}

/* The same for the wrenches of a row of coordinates on two bodies, at points in the world. */
static void send_pairs(const mb_view *m, int32_t cut, const mb_coordinate_row *own, double lambda) {
    mb_pair pair;
    if (lambda == 0.0) return;
    for (int32_t n = 0; own->next_pair && (n = own->next_pair(m, cut, n, &pair)) > 0;)
        for (int side = 0; side < 2; side++) {
            const int32_t link = mb_link_of(m, side ? pair.j : pair.i);
            const double sign = side ? lambda : -lambda, N[3] = {sign * pair.N[0], sign * pair.N[1], sign * pair.N[2]};
            if (link < 0) continue;
            double local[3]; /* from the origin of the link, which add_wrench takes out again */
            mb_sub(pair.P, m->link[link].p, local);
            mb_add(m->link[link].local, local);
            add_wrench(m, link, local, sign, pair.F, N);
        }
}

/* Wrenches through the links due to multipliers alone, about the origin of each link. */
static void send_multipliers(const mb_view *m, const double *lambda) {
    memset(m->share.wrench, 0, 6 * (size_t)m->link_count * sizeof(double));
    for (int32_t c = 0; c < m->cut_count; c++) {
        const int32_t *cut = m->cuts + c * MB_CUT_FIELDS, *first = m->rows + cut[MB_CUT_ROW] * MB_ROW_FIELDS;
        const mb_coordinate_row *own = mb_coordinate_row_of(m, c);
        if (own) {
            send_pairs(m, c, own, lambda[cut[MB_CUT_ROW]]);
            continue;
        }
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
        add_wrench(m, mb_link_of(m, first[MB_ROW_I]), m->cut_state[c].local_i, -1.0, F, N_i);
        add_wrench(m, mb_link_of(m, first[MB_ROW_J]), m->cut_state[c].local_j, 1.0, F, N_j);
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

/* The reaction of a tree joint about its second marker, scaled, from a wrench about a place that is `arm` from that. */
static void scale_reaction(const mb_view *m, int32_t n, const double *F, const double *N, const double *arm,
                           double *out) {
    const double *scale = m->share.joint_scale + 2 * (int64_t)n;
    mb_copy(F, out);
    mb_copy(N, out + 3);
    mb_add_cross(arm, F, out + 3);
    mb_take_out_efforts(m, joint_record(m, n)[MB_JOINT_REACTION], out, out + 3);
    for (int k = 0; k < 3; k++) {
        out[k] *= scale[0];
        out[3 + k] *= scale[1];
    }
}

/* The same from the wrench through its last link. */
static void scale_link_reaction(const mb_view *m, int32_t n, double *out) {
    const mb_link_state *s = &m->link[joint_record(m, n)[MB_JOINT_REACTION]];
    double arm[3];
    mb_sub(s->p, m->share.place + 3 * (int64_t)n, arm);
    scale_reaction(m, n, s->F, s->N, arm, out);
}

static double six_dot(const double *a, const double *b) { return mb_dot(a, b) + mb_dot(a + 3, b + 3); }

/* Effect of a null vector on a joint or, with one component, on a row; the entries of a joint or row form a list. */
static mb_share_entry *new_entry(mb_sharing *share, int32_t vector, int32_t *list) {
    mb_share_entry *entry = &share->entries[share->entry_count];
    memset(entry, 0, sizeof *entry);
    entry->vector = vector;
    entry->next = *list;
    *list = share->entry_count++;
    return entry;
}

/* Adds to AᵀA the products of the newest entry of a list with all its entries. */
static void add_to_gram(const mb_view *m, int32_t list, bool single) {
    const mb_share_entry *entries = m->share.entries, *own = &entries[list];
    double *column = m->share.gram + own->vector;
    for (int32_t k = list; k >= 0; k = entries[k].next)
        column[(int64_t)entries[k].vector * m->row_count] +=
            single ? own->effect[0] * entries[k].effect[0] : six_dot(own->effect, entries[k].effect);
}

/* Adds the effect of the wrench of a closure, about `place`, on the joints of one side, from a link down to `end`. */
static void reach_joints(mb_view *m, int32_t vector, double sign, const double *F, const double *N, const double *place,
                         int32_t link, int32_t end) {
    for (; link != end; link = m->links[link * MB_LINK_FIELDS + MB_LINK_PARENT]) {
        const int32_t n = m->share.joint_of[link];
        if (n < 0) continue;
        int32_t *list = &m->share.lists[n];
        if (*list < 0 || m->share.entries[*list].vector != vector) {
            (void)new_entry(&m->share, vector, list);
            m->share.reached[m->share.reached_count++] = n;
        }
        double arm[3], effect[6];
        mb_sub(place, m->share.place + 3 * (int64_t)n, arm);
        scale_reaction(m, n, F, N, arm, effect);
        for (int k = 0; k < 6; k++) m->share.entries[*list].effect[k] += sign * effect[k];
    }
}

static int32_t common_link(const mb_view *m, int32_t a, int32_t b) {
    while (a != b)
        if (a > b) a = m->links[a * MB_LINK_FIELDS + MB_LINK_PARENT];
        else b = m->links[b * MB_LINK_FIELDS + MB_LINK_PARENT];
    return a;
}

/* Effect of a null vector on all rows and joints. */
static void take_vector(mb_view *m, int32_t vector) {
    const double *z = m->share.basis + (int64_t)vector * m->row_count;
    const int32_t joints = m->head[MB_JOINTS];
    m->share.reached_count = 0;
    for (int32_t c = 0; c < m->cut_count; c++) {
        const int32_t *cut = m->cuts + c * MB_CUT_FIELDS, *first = m->rows + cut[MB_CUT_ROW] * MB_ROW_FIELDS;
        double F[3] = {0, 0, 0}, N[3] = {0, 0, 0};
        bool any = false;
        for (int32_t row = cut[MB_CUT_ROW]; row < cut[MB_CUT_ROW] + cut[MB_CUT_ROWS]; row++) {
            if (z[row] == 0.0) continue;
            any = true;
            mb_axpy(z[row], m->row_state[row].F, F);
            mb_axpy(z[row], m->row_state[row].N_j, N);
            int32_t *list = &m->share.lists[joints + row];
            new_entry(&m->share, vector, list)->effect[0] = z[row] * m->share.row_scale[row];
            add_to_gram(m, *list, true);
        }
        if (!any) continue;
        const mb_coordinate_row *own = mb_coordinate_row_of(m, c);
        if (own) {
            mb_pair pair;
            for (int32_t n = 0; own->next_pair && (n = own->next_pair(m, c, n, &pair)) > 0;) {
                const int32_t i = mb_link_of(m, pair.i), j = mb_link_of(m, pair.j), common = common_link(m, i, j);
                reach_joints(m, vector, z[cut[MB_CUT_ROW]], pair.F, pair.N, pair.P, j, common);
                reach_joints(m, vector, -z[cut[MB_CUT_ROW]], pair.F, pair.N, pair.P, i, common);
            }
            continue;
        }
        const int32_t i = mb_link_of(m, first[MB_ROW_I]), j = mb_link_of(m, first[MB_ROW_J]),
                      common = common_link(m, i, j);
        reach_joints(m, vector, 1.0, F, N, m->cut_state[c].P_j, j, common);
        reach_joints(m, vector, -1.0, F, N, m->cut_state[c].P_j, i, common);
    }
    for (int32_t k = 0; k < m->share.reached_count; k++) add_to_gram(m, m->share.lists[m->share.reached[k]], false);
}

/* AᵀA = Uᵀ U in place, from its upper triangle. Returns whether it is positive. */
static bool factor_gram(const mb_view *m, int32_t count) {
    double *gram = m->share.gram;
    const int64_t width = m->row_count;
    for (int32_t k = 0; k < count; k++) {
        double *u = gram + k * width;
        if (!(u[k] > 0.0)) return false;
        u[k] = sqrt(u[k]);
        const double inverse = 1.0 / u[k];
        for (int32_t j = k + 1; j < count; j++) u[j] *= inverse;
        for (int32_t i = k + 1; i < count; i++) {
            double *row = gram + i * width;
            const double factor = u[i];
            if (factor == 0.0) continue;
            for (int32_t j = i; j < count; j++) row[j] -= factor * u[j];
        }
    }
    return true;
}

void mb_share_prepare(mb_view *m) {
    m->share.count = 0;
    if (m->head[MB_JOINTS] == 0 || m->shared[MB_SHARED_REDUNDANT] == 0.0) return;
    int32_t *row_at = m->share.row_at, *column_at = m->share.column_at;
    fill_matrix(m);
    int32_t rank = eliminate_as_before(m, row_at, column_at);
    if (rank < 0) {
        fill_matrix(m);
        rank = share_eliminate(m, row_at, column_at);
    }
    const int32_t count = shared_rows(m) - rank, joints = m->head[MB_JOINTS];
    if (count <= 0) return;
    find_null_vectors(m, rank, row_at, column_at);
    for (int32_t l = 0; l < m->link_count; l++) m->share.joint_of[l] = -1;
    for (int32_t n = 0; n < joints; n++) {
        const int32_t *joint = joint_record(m, n);
        m->share.lists[n] = -1;
        if (!in_tree(m, joint)) continue;
        m->share.joint_of[joint[MB_JOINT_REACTION]] = n;
        mb_marker_place(m, joint[MB_JOINT_J], m->share.place + 3 * (int64_t)n);
    }
    for (int32_t row = 0; row < m->row_count; row++) m->share.lists[joints + row] = -1;
    m->share.entry_count = 0;
    for (int32_t v = 0; v < count; v++) {
        memset(m->share.gram + (int64_t)v * m->row_count, 0, (size_t)count * sizeof(double));
        take_vector(m, v);
    }
    if (factor_gram(m, count)) m->share.count = count;
}

void mb_share(mb_view *m) {
    const int32_t count = m->share.count, joints = m->head[MB_JOINTS];
    const int64_t width = m->row_count;
    if (count == 0) return;
    const mb_share_entry *entries = m->share.entries;
    double *y = m->share.right, *gram = m->share.gram, *change = m->row_work, w[6];
    memset(y, 0, (size_t)count * sizeof(double));
    for (int32_t n = 0; n < joints; n++) {
        if (m->share.lists[n] < 0) continue;
        scale_link_reaction(m, n, w);
        for (int32_t k = m->share.lists[n]; k >= 0; k = entries[k].next)
            y[entries[k].vector] -= six_dot(entries[k].effect, w);
    }
    for (int32_t row = 0; row < m->row_count; row++)
        for (int32_t k = m->share.lists[joints + row]; k >= 0; k = entries[k].next)
            y[entries[k].vector] -= entries[k].effect[0] * m->share.row_scale[row] * m->lambda[row];
    for (int32_t k = 0; k < count; k++) {
        const double *u = gram + k * width;
        y[k] /= u[k];
        for (int32_t i = k + 1; i < count; i++) y[i] -= u[i] * y[k];
    }
    for (int32_t k = count - 1; k >= 0; k--) {
        const double *u = gram + k * width;
        for (int32_t i = k + 1; i < count; i++) y[k] -= u[i] * y[i];
        y[k] /= u[k];
    }
    for (int32_t row = 0; row < m->row_count; row++) {
        change[row] = 0.0;
        for (int32_t k = m->share.lists[joints + row]; k >= 0; k = entries[k].next)
            change[row] += y[entries[k].vector] * m->share.basis[entries[k].vector * width + row];
        m->lambda[row] += change[row];
    }
    send_multipliers(m, change);
    for (int32_t l = 0; l < m->link_count; l++) {
        mb_add(m->share.wrench + 6 * (int64_t)l, m->link[l].F);
        mb_add(m->share.wrench + 6 * (int64_t)l + 3, m->link[l].N);
    }
}

void mb_share_start(mb_view *m, double t, const double *q) {
    if (m->head[MB_JOINTS] == 0) return;
    int32_t *row_at = m->share.row_at, *column_at = m->share.column_at;
    m->shared[MB_SHARED_LENGTH] = mechanism_size(m);
    share_set_scales(m);
    mb_update_positions(m, t, q);
    mb_rows_jacobian(m);
    fill_matrix(m);
    const int32_t rank = share_eliminate(m, row_at, column_at), rows = shared_rows(m);
    m->shared[MB_SHARED_REDUNDANT] = rows - rank;
    /* The order as a sequence of exchanges: the index exchanged with each position in turn. */
    int32_t *now = m->share.lists;
    for (int side = 0; side < 2; side++) {
        const int32_t *at = side ? column_at : row_at, count = side ? m->nv : rows;
        number_from_zero(now, count);
        for (int32_t k = 0; k < rank; k++) {
            int32_t from = k;
            while (now[from] != at[k]) from++;
            share_swap(&now[k], &now[from]);
            m->share.order[2 * k + side] = from;
        }
    }
}

/* A reaction that a null vector adds: force or torque of a joint, not scaled. */
static void null_reaction(const mb_view *m, int32_t vector, int32_t n, bool torque, double *out) {
    const int32_t *joint = joint_record(m, n);
    memset(out, 0, 3 * sizeof(double));
    if (in_tree(m, joint)) {
        for (int32_t k = m->share.lists[n]; k >= 0; k = m->share.entries[k].next)
            if (m->share.entries[k].vector == vector)
                mb_axpy(1.0 / m->share.joint_scale[2 * n + torque], m->share.entries[k].effect + (torque ? 3 : 0), out);
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
    const double least = SHARE_SEEN * (torque ? m->shared[MB_SHARED_LENGTH] : 1.0);
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
            scale_link_reaction(m, n, w);
            most = fmax(most, sqrt(six_dot(w, w)));
        }
    }
    for (int32_t row = 0; row < shared_rows(m); row++)
        most = fmax(most, fabs(m->share.row_scale[row] * m->lambda[row]));
    return most;
}

/* The record of an output's joint or driver, or -1; the first match, since drivers follow the joints. */
static int32_t record_of(const mb_view *m, int32_t reaction) {
    for (int32_t n = 0; n < m->head[MB_JOINTS]; n++)
        if (joint_record(m, n)[MB_JOINT_REACTION] == reaction) return n;
    return -1;
}

static bool stiffnesses_given(const mb_view *m) {
    return m->head[MB_JOINTS] > 0 && joint_record(m, 0)[MB_JOINT_P] >= 0;
}

int32_t mb_effort_row(const mb_view *m, const int32_t *out) {
    if (out[MB_OUT_TYPE] == MB_OUT_DRIVER_EFFORT) return out[MB_OUT_INDEX];
    if (out[MB_OUT_TYPE] != MB_OUT_ELEMENT) return -1;
    const int32_t *force = mb_force_record(m, out[MB_OUT_INDEX]);
    return force[MB_FORCE_TYPE] == MB_COUPLING ? force[MB_FORCE_LAW] : -1;
}

/* Records the output that depends most on the rule; requires distributed reactions. */
static void note_shared(mb_view *m, double t) {
    const double largest = largest_reaction(m), length = m->shared[MB_SHARED_LENGTH];
    for (int32_t k = 0; k < m->head[MB_OUTPUTS]; k++) {
        const int32_t *out = m->outputs + k * MB_OUT_FIELDS, index = out[MB_OUT_INDEX];
        const bool torque = out[MB_OUT_TYPE] == MB_OUT_REACTION_TORQUE;
        double part = 0.0, whole = 0.0, unit = 1.0;
        const int32_t row = mb_effort_row(m, out);
        if (row >= 0) {
            bool any = false;
            for (int32_t v = 0; v < m->share.count; v++)
                any =
                    any || fabs(m->share.basis[(int64_t)v * m->row_count + row] * m->share.row_scale[row]) > SHARE_SEEN;
            const double factor = out[MB_OUT_TYPE] == MB_OUT_ELEMENT ? mb_coupling_factor(m, row) : 1.0;
            part = whole = any ? fabs(m->lambda[row] * factor) : 0.0;
            unit = factor != 0.0 ? m->share.row_scale[row] / fabs(factor) : 0.0;
        } else if (torque || out[MB_OUT_TYPE] == MB_OUT_REACTION_FORCE) {
            double F[3], N[3];
            const int32_t n = record_of(m, index);
            if (n < 0) continue;
            mb_reaction(m, index, out[MB_OUT_AXIS], F, N);
            part = part_shared(m, n, torque, torque ? N : F);
            whole = torque ? sqrt(mb_dot(N, N)) : sqrt(mb_dot(F, F));
            unit = torque ? 1.0 / length : 1.0;
        }
        if (!(part * unit > SHARE_REPORTED * largest) || !(part * unit > m->shared[MB_SHARED_WORST])) continue;
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
    if (!now && m->shared[MB_SHARED_STEPS] < SHARE_SAMPLE_EVERY) return;
    m->shared[MB_SHARED_STEPS] = now ? SHARE_SAMPLE_EVERY - 1 : 0.0; /* inputs may act from the first step on */
    if (!mb_rigid_balance(m, t, q, v)) return;
    mb_find_wrenches(m, t, q, v);
    note_shared(m, t);
}
