/* Closures: rows of constraints between markers on two links.
 *
 *   point     Φ = (P_j - P_i)_k + ε_k            component k in world axes; ε only where a bearing is held, else 0
 *   d1        Φ = u_i · w_j                      axes of the two markers
 *   d2        Φ = u_i · d,   d = P_j - P_i
 *   distance  Φ = |d| - L
 *   driver    Φ = q - f(t)                       a joint coordinate that follows a law, measured between markers
 *   touch, slip                                  of a rigid contact: rigid_contact.c
 *   normal, tangent                              of rigid shapes: elements/contact/shape_rows.c
 *   rows of joint coordinates                    elements/driver.c, elements/coupling.c
 *
 * The first four are the base constraints of Vita's thesis (eqs. 1.12, 1.13, 1.29, 1.32), the distance taken as a length instead of
 * a square so that its row has the scale of the others. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

static const double STILL[3] = {0, 0, 0};

static const int32_t *row_record(const mb_view *m, int32_t k) { return m->rows + k * MB_ROW_FIELDS; }
static int32_t marker_link(const mb_view *m, int32_t marker) {
    return m->markers[marker * MB_MARKER_FIELDS + MB_MARKER_LINK];
}

static double largest_of(const double *v) { return fmax(fabs(v[0]), fmax(fabs(v[1]), fabs(v[2]))); }

/* The largest angle of the joints between the links of a closure, at least 1: angles have the rounding of all their turns. */
static double largest_turn(const mb_view *m, const int32_t *cut, const double *q) {
    double most = 1.0;
    for (int32_t n = 0; n < cut[MB_CUT_PATHS]; n++) {
        const int32_t *link =
            m->links + m->paths[(cut[MB_CUT_PATH] + n) * MB_PATH_FIELDS + MB_PATH_LINK] * MB_LINK_FIELDS;
        if (link[MB_LINK_TYPE] == MB_REVOLUTE) most = fmax(most, fabs(q[link[MB_LINK_Q]]));
    }
    return most;
}

static const double *marker_base(const mb_view *m, int32_t marker) {
    const int32_t link = marker_link(m, marker);
    return link < 0 ? m->marker_data[marker].p : m->data[link].base;
}

/* A marker's position relative to the base of its branch, and in the world. */
static void place_marker(const mb_view *m, int32_t marker, double t, double *local, double *P) {
    const int32_t link = marker_link(m, marker);
    memset(local, 0, 3 * sizeof(double));
    if (link >= 0) {
        mb_rotate(m->link[link].R, m->marker_data[marker].p, local);
        mb_add(m->link[link].local, local);
    }
    mb_marker_laws(m, marker, t, local, NULL, NULL);
    mb_copy(marker_base(m, marker), P);
    mb_add(local, P);
}

/* Whether a row of a closure depends on the axes of its markers. */
static bool sees_axes(const mb_view *m, const int32_t *cut) {
    for (int32_t k = cut[MB_CUT_ROW]; k < cut[MB_CUT_ROW] + cut[MB_CUT_ROWS]; k++) {
        const int32_t type = row_record(m, k)[MB_ROW_TYPE];
        if (type == MB_ROW_D1 || type == MB_ROW_D2) return true;
    }
    return false;
}

/* Difference between a measure and its law. */
static double driven_error(const mb_view *m, const int32_t *row, double t) {
    double rate, second;
    return mb_measure(m, row[MB_ROW_A], t) - mb_law(m, row[MB_ROW_VALUE], t, &rate, &second);
}

/* Values of all rows, and the wrenches of unit multipliers. */
void mb_rows_position(mb_view *m, double t, const double *q) {
    for (int32_t n = 0; n < m->cut_count; n++) {
        const int32_t *cut = m->cuts + n * MB_CUT_FIELDS, *first = row_record(m, cut[MB_CUT_ROW]);
        const mb_coordinate_row *own = mb_coordinate_rows[first[MB_ROW_TYPE]];
        if (own) {
            own->place(m, n, t, q);
            continue;
        }
        mb_cut_state *c = &m->cut_state[n];
        place_marker(m, first[MB_ROW_I], t, c->local_i, c->P_i);
        place_marker(m, first[MB_ROW_J], t, c->local_j, c->P_j);
        double apart[3];
        mb_sub(marker_base(m, first[MB_ROW_J]), marker_base(m, first[MB_ROW_I]), apart);
        mb_sub(c->local_j, c->local_i, c->d);
        mb_add(apart, c->d);
        const double turned = largest_turn(m, cut, q);
        const double length = turned * fmax(largest_of(apart), fmax(largest_of(c->local_i), largest_of(c->local_j)));
        if (sees_axes(m, cut)) {
            mb_marker_axes(m, first[MB_ROW_I], c->R_i);
            mb_marker_axes(m, first[MB_ROW_J], c->R_j);
        }
        const double *d = c->d;
        double u[3], w[3];
        for (int32_t k = cut[MB_CUT_ROW]; k < cut[MB_CUT_ROW] + cut[MB_CUT_ROWS]; k++) {
            const int32_t *row = row_record(m, k);
            mb_row_state *s = &m->row_state[k];
            memset(s, 0, sizeof *s);
            s->size = row[MB_ROW_TYPE] == MB_ROW_D1 ? turned : length;
            switch (row[MB_ROW_TYPE]) {
                case MB_ROW_POINT:
                    m->phi[k] = d[row[MB_ROW_A]] + m->offset[k];
                    s->F[row[MB_ROW_A]] = 1.0;
                    break;
                case MB_ROW_D1:
                    mb_column(c->R_i, row[MB_ROW_A], u);
                    mb_column(c->R_j, row[MB_ROW_B], w);
                    m->phi[k] = mb_dot(u, w);
                    mb_cross(u, w, s->N_i);
                    mb_cross(w, u, s->N_j);
                    break;
                case MB_ROW_D2:
                    mb_column(c->R_i, row[MB_ROW_A], u);
                    m->phi[k] = mb_dot(u, d);
                    mb_copy(u, s->F);
                    mb_cross(u, d, s->N_i);
                    break;
                case MB_ROW_DRIVEN_LENGTH: /* acts on both where the marker is that does not carry the axis */
                    mb_measure_axis(m, row[MB_ROW_A], u);
                    m->phi[k] = driven_error(m, row, t);
                    s->size = fmax(1.0, length);
                    mb_copy(u, s->F);
                    mb_cross(u, d, mb_measure_axis_on_first(m, row[MB_ROW_A]) ? s->N_i : s->N_j);
                    break;
                case MB_ROW_DRIVEN_ANGLE:
                    mb_measure_axis(m, row[MB_ROW_A], u);
                    m->phi[k] = driven_error(m, row, t);
                    s->size = fmax(1.0, fabs(m->turns[row[MB_ROW_A]]));
                    mb_copy(u, s->N_j);
                    mb_axpy(-1.0, u, s->N_i);
                    break;
                case MB_ROW_TOUCH:
                case MB_ROW_SLIP: mb_rigid_place(m, k, d); break;
                case MB_ROW_NORMAL:
                case MB_ROW_TANGENT: mb_shape_row_place(m, k, t, c->P_i, c->P_j); break;
                default: {
                    const double distance = sqrt(mb_dot(d, d)), inverse = distance > 1e-12 ? 1.0 / distance : 0.0;
                    m->phi[k] = distance - m->p[row[MB_ROW_VALUE]];
                    mb_axpy(inverse, d, s->F);
                }
            }
        }
    }
}

static const double *spin_of(const mb_view *m, int32_t link) { return link < 0 ? STILL : m->link[link].w; }
/* Without the contribution of joint accelerations. */
static const double *spin_rate_of(const mb_view *m, int32_t link) { return link < 0 ? STILL : m->link[link].wd; }

/* Φ̇ and c: needs the velocities of the links and the accelerations that they cause, and the positions of the rows. */
void mb_rows_velocity(mb_view *m, double t, const double *v) {
    for (int32_t n = 0; n < m->cut_count; n++) {
        const int32_t *cut = m->cuts + n * MB_CUT_FIELDS, *first = row_record(m, cut[MB_CUT_ROW]);
        const mb_coordinate_row *own = mb_coordinate_rows[first[MB_ROW_TYPE]];
        if (own) {
            own->rate(m, n, t, v);
            continue;
        }
        const mb_cut_state *c = &m->cut_state[n];
        const int32_t link_i = marker_link(m, first[MB_ROW_I]), link_j = marker_link(m, first[MB_ROW_J]);
        const double *spin_i = spin_of(m, link_i), *spin_j = spin_of(m, link_j);
        const double *d = c->d;
        double P[3], V_i[3], V_j[3], A_i[3], A_j[3], dd[3], ddd[3], relative[3], relative_rate[3];
        mb_marker_motion(m, first[MB_ROW_I], t, P, V_i, A_i);
        mb_marker_motion(m, first[MB_ROW_J], t, P, V_j, A_j);
        mb_sub(V_j, V_i, dd);
        mb_sub(A_j, A_i, ddd);
        mb_sub(spin_i, spin_j, relative);
        mb_sub(spin_rate_of(m, link_i), spin_rate_of(m, link_j), relative_rate);
        for (int32_t k = cut[MB_CUT_ROW]; k < cut[MB_CUT_ROW] + cut[MB_CUT_ROWS]; k++) {
            const int32_t *row = row_record(m, k);
            double u[3], w[3], u_rate[3], w_rate[3], u_second[3], turned[3];
            switch (row[MB_ROW_TYPE]) {
                case MB_ROW_POINT:
                    m->phi_rate[k] = dd[row[MB_ROW_A]];
                    m->bias[k] = ddd[row[MB_ROW_A]];
                    break;
                case MB_ROW_D1:
                    mb_column(c->R_i, row[MB_ROW_A], u);
                    mb_column(c->R_j, row[MB_ROW_B], w);
                    /* (u · w)' = (u × w) · (ω_i - ω_j), and that once more. */
                    mb_cross(spin_i, u, u_rate);
                    mb_cross(spin_j, w, w_rate);
                    mb_cross(u_rate, w, turned);
                    mb_add_cross(u, w_rate, turned);
                    m->phi_rate[k] = mb_dot(m->row_state[k].N_i, relative);
                    m->bias[k] = mb_dot(m->row_state[k].N_i, relative_rate) + mb_dot(turned, relative);
                    break;
                case MB_ROW_D2:
                    mb_column(c->R_i, row[MB_ROW_A], u);
                    mb_cross(spin_i, u, u_rate);
                    mb_cross(spin_i, u_rate, u_second);
                    mb_add_cross(spin_rate_of(m, link_i), u, u_second);
                    m->phi_rate[k] = mb_dot(u_rate, d) + mb_dot(u, dd);
                    m->bias[k] = mb_dot(u_second, d) + 2.0 * mb_dot(u_rate, dd) + mb_dot(u, ddd);
                    break;
                case MB_ROW_DRIVEN_LENGTH:
                case MB_ROW_DRIVEN_ANGLE: {
                    double rate, second;
                    (void)mb_law(m, row[MB_ROW_VALUE], t, &rate, &second);
                    m->phi_rate[k] = mb_measure_rate(m, row[MB_ROW_A], t, &m->bias[k]) - rate;
                    m->bias[k] -= second;
                    break;
                }
                case MB_ROW_TOUCH:
                case MB_ROW_SLIP: mb_rigid_rate(m, k, d, dd, ddd); break;
                case MB_ROW_NORMAL:
                case MB_ROW_TANGENT: mb_shape_row_rate(m, k, t); break;
                default: {
                    const double length = sqrt(mb_dot(d, d)), inverse = length > 1e-12 ? 1.0 / length : 0.0;
                    const double along = mb_dot(d, dd) * inverse;
                    m->phi_rate[k] = along;
                    m->bias[k] = mb_dot(d, ddd) * inverse + (mb_dot(dd, dd) - along * along) * inverse;
                }
            }
        }
    }
}

/* J: for each closure a dense block over the joints between its two links. */
void mb_rows_jacobian(mb_view *m) {
    for (int32_t c = 0; c < m->cut_count; c++) {
        const int32_t *cut = m->cuts + c * MB_CUT_FIELDS;
        const mb_coordinate_row *own = mb_coordinate_row_of(m, c);
        double *block = m->jacobian + cut[MB_CUT_J];
        if (own) {
            for (int32_t n = 0; n < cut[MB_CUT_PATHS]; n++)
                block[n] = own->slope(m, c, m->paths + (cut[MB_CUT_PATH] + n) * MB_PATH_FIELDS);
            continue;
        }
        for (int32_t n = 0; n < cut[MB_CUT_PATHS]; n++) {
            const int32_t *path = m->paths + (cut[MB_CUT_PATH] + n) * MB_PATH_FIELDS;
            const mb_link_state *s = &m->link[path[MB_PATH_LINK]];
            const int32_t type = m->links[path[MB_PATH_LINK] * MB_LINK_FIELDS + MB_LINK_TYPE];
            /* Velocity and angular velocity of the marker per joint speed: the row entry is F · velocity + N · turn. */
            double axis[3], velocity[3];
            if (type == MB_SPHERICAL) mb_column(s->R, path[MB_PATH_AXIS], axis);
            else mb_copy(s->axis, axis);
            if (type == MB_PRISMATIC) {
                mb_copy(axis, velocity);
            } else {
                double arm[3];
                mb_sub(path[MB_PATH_SIDE] ? m->cut_state[c].local_j : m->cut_state[c].local_i, s->local, arm);
                mb_cross(axis, arm, velocity);
            }
            for (int32_t r = 0; r < cut[MB_CUT_ROWS]; r++) {
                const mb_row_state *state = &m->row_state[cut[MB_CUT_ROW] + r];
                double value = path[MB_PATH_SIDE] ? mb_dot(velocity, state->F) : -mb_dot(velocity, state->F);
                if (type != MB_PRISMATIC) value += mb_dot(axis, path[MB_PATH_SIDE] ? state->N_j : state->N_i);
                block[r * cut[MB_CUT_PATHS] + n] = value;
            }
        }
    }
}

void mb_jacobian_times(const mb_view *m, const double *x, double *out) {
    for (int32_t c = 0; c < m->cut_count; c++) {
        const int32_t *cut = m->cuts + c * MB_CUT_FIELDS;
        const double *block = m->jacobian + cut[MB_CUT_J];
        for (int32_t r = 0; r < cut[MB_CUT_ROWS]; r++) {
            double sum = 0.0;
            for (int32_t n = 0; n < cut[MB_CUT_PATHS]; n++)
                sum +=
                    block[r * cut[MB_CUT_PATHS] + n] * x[m->paths[(cut[MB_CUT_PATH] + n) * MB_PATH_FIELDS + MB_PATH_V]];
            out[cut[MB_CUT_ROW] + r] = sum;
        }
    }
}

/* out += scale Jᵀ rows */
void mb_add_jacobian_transposed(const mb_view *m, const double *rows, double scale, double *out) {
    for (int32_t c = 0; c < m->cut_count; c++) {
        const int32_t *cut = m->cuts + c * MB_CUT_FIELDS;
        const double *block = m->jacobian + cut[MB_CUT_J];
        for (int32_t r = 0; r < cut[MB_CUT_ROWS]; r++) {
            const double value = scale * rows[cut[MB_CUT_ROW] + r];
            if (value == 0.0) continue;
            for (int32_t n = 0; n < cut[MB_CUT_PATHS]; n++)
                out[m->paths[(cut[MB_CUT_PATH] + n) * MB_PATH_FIELDS + MB_PATH_V]] +=
                    value * block[r * cut[MB_CUT_PATHS] + n];
        }
    }
}
