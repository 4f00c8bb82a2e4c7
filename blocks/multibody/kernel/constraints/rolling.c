/* Rolling without slip, of a disc, a sphere or a planar wheel on a plane: rows for the point Q of contact.
 *
 *     touch      Φ = n · (C - P) - R s = 0                   Q = C - R e, e = (n - (n · h) h) / s, s = |n - (n · h) h|
 *     roll       Φ̇ = u · (v_C + ω_j × (Q - C) - v_P - ω_i × (Q - P)) = 0, and Φ = 0: it binds velocities alone
 *
 * C is the second marker, h the axis of the disc in it; P is the first one, n the normal of the plane and u a direction in it. A sphere, and
 * a wheel in a plane, have e = n. The rate of `touch` is that of `roll` with u = n, as Q is the lowest point. Of the row, A is the axis u
 * of the first marker, B that of n, plus ROLL_SPHERE where e = n; VALUE is R. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

BL_SHARED enum { ROLL_SPHERE = 4 };

static const int32_t *roll_record(const mb_view *m, int32_t cut) {
    return m->rows + m->cuts[cut * MB_CUT_FIELDS + MB_CUT_ROW] * MB_ROW_FIELDS;
}
static int32_t roll_normal(const int32_t *row) { return row[MB_ROW_B] % ROLL_SPHERE; }

bool mb_binds_rates(const int32_t *row) { return row[MB_ROW_TYPE] == MB_ROW_ROLL && row[MB_ROW_A] != roll_normal(row); }

static bool roll_check(const bl_block *b, const int32_t *row) {
    const int32_t *head = b->i;
    return mb_in_range(row[MB_ROW_I], 0, head[MB_MARKERS]) && mb_in_range(row[MB_ROW_J], 0, head[MB_MARKERS]) &&
           mb_in_range(row[MB_ROW_A], 0, 3) && mb_in_range(row[MB_ROW_B], 0, 3 + ROLL_SPHERE) && row[MB_ROW_B] != 3 &&
           mb_in_range(row[MB_ROW_VALUE], 0, b->p_count);
}

/* u is F of the row's state. */
static void roll_place(mb_view *m, int32_t cut, double t, const double *q) {
    (void)q;
    const int32_t *row = roll_record(m, cut), index = m->cuts[cut * MB_CUT_FIELDS + MB_CUT_ROW];
    mb_cut_state *c = &m->cut_state[cut];
    mb_row_state *s = &m->row_state[index];
    const double radius = m->p[row[MB_ROW_VALUE]];
    double n[3], e[3], length = 1.0;
    memset(s, 0, sizeof *s);
    mb_marker_axes(m, row[MB_ROW_I], c->R_i);
    mb_marker_axes(m, row[MB_ROW_J], c->R_j);
    mb_marker_motion(m, row[MB_ROW_I], t, c->P_i, NULL, NULL);
    mb_marker_motion(m, row[MB_ROW_J], t, c->P_j, NULL, NULL);
    mb_sub(c->P_j, c->P_i, c->d);
    mb_column(c->R_i, roll_normal(row), n);
    mb_column(c->R_i, row[MB_ROW_A], s->F);
    mb_copy(n, e);
    if (row[MB_ROW_B] < ROLL_SPHERE) {
        double h[3];
        mb_column(c->R_j, 2, h);
        mb_axpy(-mb_dot(n, h), h, e);
        length = fmax(sqrt(mb_dot(e, e)), 1e-9); /* flat on the plane: no rolling leads there */
        for (int k = 0; k < 3; k++) e[k] /= length;
    }
    for (int k = 0; k < 3; k++) {
        c->local_j[k] = -radius * e[k];          /* Q - C */
        c->local_i[k] = c->d[k] + c->local_j[k]; /* Q - P */
    }
    s->size = fmax(1.0, fmax(fabs(radius), sqrt(mb_dot(c->d, c->d))));
    m->phi[index] = mb_binds_rates(row) ? 0.0 : mb_dot(n, c->d) - radius * length;
}

static void roll_turning(const mb_view *m, int32_t marker, double *w, double *wd) {
    const int32_t link = mb_link_of(m, marker);
    for (int k = 0; k < 3; k++)
        w[k] = link < 0 ? 0.0 : m->link[link].w[k], wd[k] = link < 0 ? 0.0 : m->link[link].wd[k];
}

/* ė: how the place of contact turns. */
static void roll_direction_rate(const int32_t *row, const mb_cut_state *c, const double *w_i, const double *w_j,
                                double *rate) {
    double n[3], h[3], h_rate[3], e[3];
    mb_column(c->R_i, roll_normal(row), n);
    mb_cross(w_i, n, rate);
    if (row[MB_ROW_B] >= ROLL_SPHERE) return;
    mb_column(c->R_j, 2, h);
    mb_cross(w_j, h, h_rate);
    const double part = mb_dot(n, h), part_rate = mb_dot(rate, h) + mb_dot(n, h_rate);
    mb_copy(n, e);
    mb_axpy(-part, h, e);
    const double length = fmax(sqrt(mb_dot(e, e)), 1e-9);
    mb_axpy(-part_rate, h, rate);
    mb_axpy(-part, h_rate, rate);
    for (int k = 0; k < 3; k++) e[k] /= length;
    mb_axpy(-mb_dot(e, rate), e, rate);
    for (int k = 0; k < 3; k++) rate[k] /= length;
}

static void roll_rate(mb_view *m, int32_t cut, double t, const double *v) {
    (void)v;
    const int32_t *row = roll_record(m, cut), index = m->cuts[cut * MB_CUT_FIELDS + MB_CUT_ROW];
    const mb_cut_state *c = &m->cut_state[cut];
    const double *u = m->row_state[index].F, radius = m->p[row[MB_ROW_VALUE]];
    double P[3], V_i[3], V_j[3], A_i[3], A_j[3], w_i[3], w_j[3], wd_i[3], wd_j[3];
    mb_marker_motion(m, row[MB_ROW_I], t, P, V_i, A_i);
    mb_marker_motion(m, row[MB_ROW_J], t, P, V_j, A_j);
    roll_turning(m, row[MB_ROW_I], w_i, wd_i);
    roll_turning(m, row[MB_ROW_J], w_j, wd_j);
    double slip[3], rho_rate[3], arm_rate[3], u_rate[3], change[3];
    mb_sub(V_j, V_i, slip);
    mb_copy(slip, arm_rate);
    mb_add_cross(w_j, c->local_j, slip);
    mb_cross(w_i, c->local_i, change);
    mb_axpy(-1.0, change, slip);
    roll_direction_rate(row, c, w_i, w_j, rho_rate);
    for (int k = 0; k < 3; k++) rho_rate[k] *= -radius;
    mb_add(rho_rate, arm_rate);
    mb_cross(w_i, u, u_rate);
    mb_sub(A_j, A_i, change);
    mb_add_cross(wd_j, c->local_j, change);
    mb_add_cross(w_j, rho_rate, change);
    mb_add_cross(c->local_i, wd_i, change);
    mb_add_cross(arm_rate, w_i, change);
    m->phi_rate[index] = mb_dot(u, slip);
    m->bias[index] = mb_dot(u, change) + mb_dot(u_rate, slip);
}

double mb_roll_drive(const mb_view *m, int32_t row, double t) {
    const int32_t *record = m->rows + row * MB_ROW_FIELDS;
    double sum = 0.0;
    for (int side = 0; side < 2; side++) {
        double P[3], V[3], fixed[3];
        const int32_t marker = record[side ? MB_ROW_J : MB_ROW_I];
        mb_marker_motion(m, marker, t, P, V, NULL);
        mb_marker_velocity(m, marker, P, fixed);
        mb_axpy(-1.0, fixed, V);
        sum += (side ? 1.0 : -1.0) * mb_dot(m->row_state[row].F, V);
    }
    return sum;
}

/* Whether a link carries another; parents have lower numbers. */
static bool roll_carries(const mb_view *m, int32_t link, int32_t other) {
    while (other > link) other = m->links[other * MB_LINK_FIELDS + MB_LINK_PARENT];
    return other == link;
}

static double roll_slope(const mb_view *m, int32_t cut, const int32_t *path) {
    const int32_t *row = roll_record(m, cut), l = path[MB_PATH_LINK],
                  type = m->links[l * MB_LINK_FIELDS + MB_LINK_TYPE];
    const bool on_i = roll_carries(m, l, mb_link_of(m, row[MB_ROW_I])),
               on_j = roll_carries(m, l, mb_link_of(m, row[MB_ROW_J]));
    if (on_i == on_j) return 0.0;
    const mb_cut_state *c = &m->cut_state[cut];
    const mb_link_state *s = &m->link[l];
    double axis[3], arm[3], moved[3];
    if (type == MB_SPHERICAL) mb_column(s->R, path[MB_PATH_AXIS], axis);
    else mb_copy(s->axis, axis);
    mb_copy(axis, moved);
    if (type != MB_PRISMATIC) {
        mb_sub(c->P_j, s->p, arm);
        mb_add(c->local_j, arm);
        mb_cross(axis, arm, moved);
    }
    const double along = mb_dot(m->row_state[m->cuts[cut * MB_CUT_FIELDS + MB_CUT_ROW]].F, moved);
    return on_j ? along : -along;
}

static int32_t roll_next_pair(const mb_view *m, int32_t cut, int32_t from, mb_pair *pair) {
    const mb_cut_state *c = &m->cut_state[cut];
    if (from > 0) return -1;
    memset(pair, 0, sizeof *pair);
    pair->i = roll_record(m, cut)[MB_ROW_I], pair->j = roll_record(m, cut)[MB_ROW_J];
    mb_copy(c->P_j, pair->P);
    mb_add(c->local_j, pair->P);
    mb_copy(m->row_state[m->cuts[cut * MB_CUT_FIELDS + MB_CUT_ROW]].F, pair->F);
    return 1;
}

static bool roll_turns(const mb_view *m, int32_t cut) {
    (void)m, (void)cut;
    return false;
}

static bool roll_sound(const mb_view *m, int32_t cut, mb_fault *fault) {
    return mb_allow(fault, "the `radius`", m->p[roll_record(m, cut)[MB_ROW_VALUE]], MB_ALLOWED_POSITIVE);
}

const mb_coordinate_row mb_row_roll = {.check = roll_check,
                                       .place = roll_place,
                                       .rate = roll_rate,
                                       .slope = roll_slope,
                                       .next_pair = roll_next_pair,
                                       .turns = roll_turns,
                                       .sound = roll_sound};
