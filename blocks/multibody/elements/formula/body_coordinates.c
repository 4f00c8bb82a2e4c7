/* Absolute coordinates of a body: x, y, z of its frame and the Euler parameters e0 … e3 of its rotation against the world.
 *
 * The Euler parameters are the product, along the tree, of constant rotations and those of the joints,
 *     e = ± Π e_base ⊗ e_joint(q)          e_joint = (cos q/2, 0, 0, sin q/2) of an angle q over all turns
 * each of which is continuous in q: so is the product, over any number of turns. Its sign, in memory, is the one that is nearest to the given
 * rotation of the body at the start. Rates: ė = ½ e ⊗ (0, ω), with ω in axes of the body. */
#include "blocks/multibody/kernel/multibody.h"

/* a ← a ⊗ b */
static void euler_append(double *a, const double *b) {
    const double r[4] = {
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]};
    for (int k = 0; k < 4; k++) a[k] = r[k];
}

/* a ← b ⊗ a */
static void euler_prepend(const double *b, double *a) {
    double product[4] = {b[0], b[1], b[2], b[3]};
    euler_append(product, a);
    for (int k = 0; k < 4; k++) a[k] = product[k];
}

bool mb_has_body_coordinates(const mb_view *m) {
    for (int32_t n = 0; n < m->head[MB_OUTPUTS]; n++) {
        const int32_t type = m->outputs[n * MB_OUT_FIELDS + MB_OUT_TYPE];
        if (type == MB_OUT_BODY_COORDINATE || type == MB_OUT_BODY_RATE) return true;
    }
    for (int32_t n = 0; n < m->signals.count; n++) {
        const int32_t type = m->signals.records[n * MB_SIGNAL_FIELDS + MB_SIGNAL_TYPE];
        if (type == MB_OUT_BODY_COORDINATE || type == MB_OUT_BODY_RATE) return true;
    }
    for (int32_t n = 0; n < m->head[MB_MEASURES]; n++)
        if (m->measures[n * MB_MEASURE_FIELDS + MB_MEASURE_TYPE] == MB_EULER) return true;
    return false;
}

/* Of a link, up to a sign that does not change during a run. */
static void euler_of_link(const mb_view *m, int32_t link, const double *q, double *e) {
    e[0] = 1.0, e[1] = e[2] = e[3] = 0.0;
    for (int32_t l = link; l >= 0; l = m->links[l * MB_LINK_FIELDS + MB_LINK_PARENT]) {
        const int32_t *record = m->links + l * MB_LINK_FIELDS;
        const double *own = q + record[MB_LINK_Q];
        double turn[4];
        if (record[MB_LINK_TYPE] == MB_REVOLUTE) {
            const double about_z[4] = {cos(0.5 * *own), 0.0, 0.0, sin(0.5 * *own)};
            euler_prepend(about_z, e);
        } else if (record[MB_LINK_TYPE] == MB_SPHERICAL) {
            euler_prepend(own, e);
        }
        mb_to_quaternion(m->data[l].R, turn);
        euler_prepend(turn, e);
    }
    mb_normalize_quaternion(e);
}

static void euler_of_frame(const mb_view *m, int32_t marker, const double *q, double *e) {
    const int32_t link = mb_link_of(m, marker);
    double own[4];
    euler_of_link(m, link, q, e);
    mb_to_quaternion(m->marker_data[marker].R, own);
    euler_append(e, own);
    const int32_t body = link < 0 ? -1 : m->links[link * MB_LINK_FIELDS + MB_LINK_BODY];
    if (body < 0 || !(m->signals.signs[body] < 0.0)) return;
    for (int k = 0; k < 4; k++) e[k] = -e[k];
}

void mb_start_signs(mb_view *m, const double *q) {
    if (!mb_has_body_coordinates(m)) return;
    for (int32_t l = 0; l < m->link_count; l++) {
        const int32_t body = m->links[l * MB_LINK_FIELDS + MB_LINK_BODY];
        if (body < 0) continue;
        const double *given = m->p + m->bodies[body * MB_BODY_FIELDS + MB_AT_ROTATION_OF];
        double e[4], own[4], product = 0.0;
        const double planar[4] = {cos(0.5 * given[0]), 0.0, 0.0, sin(0.5 * given[0])};
        euler_of_link(m, l, q, e);
        mb_to_quaternion(m->data[l].R_body, own);
        euler_append(e, own);
        for (int k = 0; k < 4; k++) product += e[k] * (m->head[MB_PLANAR] ? planar[k] : given[k]);
        m->signals.signs[body] = product < 0.0 ? -1.0 : 1.0;
    }
}

double mb_euler_measure(const mb_view *m, const int32_t *measure, const double *q, double *effort) {
    const int32_t k = measure[MB_MEASURE_ALONG];
    double e[4];
    euler_of_frame(m, measure[MB_MEASURE_J], q, e);
    /* 2 ė0 = -ω · e,  2 ė_k = ω · (e0 k + e × k), all in axes of the world */
    const double rows[4][3] = {{-e[1], -e[2], -e[3]}, {e[0], e[3], -e[2]}, {-e[3], e[0], e[1]}, {e[2], -e[1], e[0]}};
    for (int c = 0; c < 3; c++) effort[c] = 0.5 * rows[k][c];
    return e[k];
}

double mb_euler_measure_rate(const mb_view *m, const int32_t *measure, const double *effort, double value,
                             double *second) {
    const int32_t link = mb_link_of(m, measure[MB_MEASURE_J]);
    *second = 0.0;
    if (link < 0) return 0.0;
    const mb_link_state *s = &m->link[link];
    *second = mb_dot(effort, s->wd) - 0.25 * mb_dot(s->w, s->w) * value;
    return mb_dot(effort, s->w);
}

double mb_body_coordinate(const mb_view *m, int32_t marker, int32_t axis, double t, const double *q) {
    double P[3], e[4];
    if (axis < 3) {
        mb_marker_motion(m, marker, t, P, NULL, NULL);
        return P[axis];
    }
    euler_of_frame(m, marker, q, e);
    return e[axis - 3];
}

double mb_body_rate(const mb_view *m, int32_t marker, int32_t axis, double t, const double *q) {
    double P[3], V[3], R[9], e[4], w[3], rate[4];
    if (axis < 3) {
        mb_marker_motion(m, marker, t, P, V, NULL);
        return V[axis];
    }
    const int32_t link = mb_link_of(m, marker);
    if (link < 0) return 0.0;
    euler_of_frame(m, marker, q, e);
    mb_marker_axes(m, marker, R);
    mb_rotate_back(R, m->link[link].w, w);
    mb_quaternion_rate(e, w, rate);
    return rate[axis - 3];
}
