/* Loads: what acts on the links besides inertia and gravity, and laws of time. */
#include <string.h>

#include "blocks/multibody/multibody.h"

/* The value of a law, and its first two derivatives. An input has none: it is held over a step. */
double mb_law(const mb_view *m, int32_t law, double t, double *rate, double *second) {
    const int32_t *record = m->laws + law * MB_LAW_FIELDS;
    const double *p = m->p + record[MB_LAW_P];
    *rate = *second = 0.0;
    switch (record[MB_LAW_TYPE]) {
        case MB_LAW_LINEAR: /* start, slope */
            *rate = p[1];
            return p[0] + p[1] * t;
        case MB_LAW_SINE: { /* amplitude, omega, phase, offset */
            const double angle = p[1] * t + p[2];
            *rate = p[0] * p[1] * cos(angle);
            *second = -p[0] * p[1] * p[1] * sin(angle);
            return p[0] * sin(angle) + p[3];
        }
        case MB_LAW_INPUT: return m->u[record[MB_LAW_P]][0];
        default: return p[0];
    }
}

static int32_t link_of(const mb_view *m, int32_t marker) { return m->markers[marker * MB_MARKER_FIELDS + MB_MARKER_LINK]; }

void mb_marker_place(const mb_view *m, int32_t marker, double *P) {
    const int32_t link = link_of(m, marker);
    if (link < 0) {
        mb_copy(m->marker_data[marker].p, P);
        return;
    }
    mb_rotate(m->link[link].R, m->marker_data[marker].p, P);
    mb_add(m->link[link].p, P);
}

void mb_marker_velocity(const mb_view *m, int32_t marker, const double *P, double *velocity) {
    const int32_t link = link_of(m, marker);
    memset(velocity, 0, 3 * sizeof(double));
    if (link < 0) return;
    double arm[3];
    mb_sub(P, m->link[link].p, arm);
    mb_copy(m->link[link].v, velocity);
    mb_add_cross(m->link[link].w, arm, velocity);
}

/* Adds to a marker's place and velocity what its own laws do. */
static void add_motion(const mb_view *m, int32_t marker, double t, double *P, double *V) {
    const int32_t *record = m->markers + marker * MB_MARKER_FIELDS;
    double local[3] = {0, 0, 0}, rate[3] = {0, 0, 0}, second = 0.0, turned[3];
    int any = 0;
    for (int k = 0; k < 3; k++)
        if (record[MB_MARKER_LAW_X + k] >= 0) {
            local[k] = mb_law(m, record[MB_MARKER_LAW_X + k], t, &rate[k], &second);
            any = 1;
        }
    if (!any) return;
    const int32_t link = record[MB_MARKER_LINK];
    if (link >= 0) {
        double R[9];
        mb_multiply(m->link[link].R, m->data[link].R_body, R);
        mb_rotate(R, local, turned);
        mb_copy(turned, local);
        mb_rotate(R, rate, turned);
        mb_copy(turned, rate);
        mb_add_cross(m->link[link].w, local, V);
    }
    mb_add(local, P);
    mb_add(rate, V);
}

static void apply(const mb_view *m, int32_t marker, const double *P, const double *F, const double *N) {
    const int32_t link = link_of(m, marker);
    if (link < 0) return;
    mb_link_state *s = &m->link[link];
    double arm[3];
    mb_sub(P, s->p, arm);
    mb_add(F, s->F);
    mb_add_cross(arm, F, s->N);
    if (N) mb_add(N, s->N);
}

static void marker_rotation(const mb_view *m, int32_t marker, double *R) {
    const int32_t link = link_of(m, marker);
    if (link < 0)
        memcpy(R, m->marker_data[marker].R, 9 * sizeof(double));
    else
        mb_multiply(m->link[link].R, m->marker_data[marker].R, R);
}

/* The axes of the body that a marker is on. */
static void body_rotation(const mb_view *m, int32_t marker, double *R) {
    const int32_t link = link_of(m, marker);
    static const double identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    if (link < 0)
        memcpy(R, identity, sizeof identity);
    else
        mb_multiply(m->link[link].R, m->data[link].R_body, R);
}

/* Length, rate and direction between two markers, laws of the markers included. */
static double between(const mb_view *m, int32_t i, int32_t j, double t, double *P_i, double *P_j, double *d, double *rate) {
    double V_i[3], V_j[3], dd[3];
    mb_marker_place(m, i, P_i);
    mb_marker_place(m, j, P_j);
    mb_marker_velocity(m, i, P_i, V_i);
    mb_marker_velocity(m, j, P_j, V_j);
    add_motion(m, i, t, P_i, V_i);
    add_motion(m, j, t, P_j, V_j);
    mb_sub(P_j, P_i, d);
    mb_sub(V_j, V_i, dd);
    const double length = sqrt(mb_dot(d, d));
    const double inverse = length > 1e-12 ? 1.0 / length : 0.0; /* no direction at no length */
    for (int k = 0; k < 3; k++) d[k] *= inverse;
    *rate = mb_dot(d, dd);
    return length;
}

/* Bushing: forces along and torques about the axes of marker i, from the displacement and the small rotation of j. */
static void add_bushing(const mb_view *m, const int32_t *force, const double *p, double t) {
    double P_i[3], P_j[3], d[3], rate, R_i[9], R_j[9], R[9], V_i[3], V_j[3], dv[3], local[3], local_v[3];
    (void)between(m, force[MB_FORCE_I], force[MB_FORCE_J], t, P_i, P_j, d, &rate);
    marker_rotation(m, force[MB_FORCE_I], R_i);
    marker_rotation(m, force[MB_FORCE_J], R_j);
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++) R[3 * r + c] = R_i[r] * R_j[c] + R_i[3 + r] * R_j[3 + c] + R_i[6 + r] * R_j[6 + c];
    mb_sub(P_j, P_i, d);
    mb_rotate_back(R_i, d, local);
    /* The velocity of j as seen from the turning body of i. */
    const int32_t link_i = link_of(m, force[MB_FORCE_I]), link_j = link_of(m, force[MB_FORCE_J]);
    mb_marker_velocity(m, force[MB_FORCE_I], P_j, V_i);
    mb_marker_velocity(m, force[MB_FORCE_J], P_j, V_j);
    mb_sub(V_j, V_i, dv);
    mb_rotate_back(R_i, dv, local_v);
    const double zero[3] = {0, 0, 0};
    double spin[3], local_spin[3];
    mb_sub(link_j < 0 ? zero : m->link[link_j].w, link_i < 0 ? zero : m->link[link_i].w, spin);
    mb_rotate_back(R_i, spin, local_spin);
    const double turn[3] = {0.5 * (R[7] - R[5]), 0.5 * (R[2] - R[6]), 0.5 * (R[3] - R[1])};
    /* Stiffness and damping alternate, axis by axis; a plane has x, y and the turn about z only. */
    const int planar = m->head[MB_PLANAR];
    double F[3], N[3], world_F[3], world_N[3], opposite[3], opposite_N[3];
    for (int k = 0; k < 3; k++) {
        const double *along = planar && k == 2 ? NULL : p + 2 * k, *about = planar ? (k == 2 ? p + 4 : NULL) : p + 6 + 2 * k;
        F[k] = along ? along[0] * local[k] + along[1] * local_v[k] : 0.0;
        N[k] = about ? about[0] * turn[k] + about[1] * local_spin[k] : 0.0;
    }
    mb_rotate(R_i, F, world_F);
    mb_rotate(R_i, N, world_N);
    for (int k = 0; k < 3; k++) {
        opposite[k] = -world_F[k];
        opposite_N[k] = -world_N[k];
    }
    apply(m, force[MB_FORCE_I], P_j, world_F, world_N);
    apply(m, force[MB_FORCE_J], P_j, opposite, opposite_N);
}

/* Efforts of springs, dampers, friction and stops on a joint's coordinate. EXTRA is the sign that turns the coordinate of
   the tree into the joint's own. */
static double joint_effort(const int32_t *force, const double *p, double q, double v) {
    const double sign = force[MB_FORCE_EXTRA] < 0 ? -1.0 : 1.0, x = sign * q, rate = sign * v;
    double effort = 0.0;
    switch (force[MB_FORCE_TYPE]) {
        case MB_JOINT_SPRING: effort = -p[0] * (x - p[2]) - p[1] * rate; break; /* stiffness, damping, free value */
        case MB_FRICTION: effort = -p[0] * rate - p[1] * tanh(rate / p[2]); break; /* viscous, Coulomb, smoothing speed */
        default: { /* stop: lower, upper, stiffness, damping; it only pushes */
            const double over = x > p[1] ? x - p[1] : x < p[0] ? x - p[0] : 0.0;
            if (over != 0.0) {
                const double push = -p[2] * over - p[3] * rate;
                effort = over > 0.0 ? fmin(push, 0.0) : fmax(push, 0.0);
            }
        }
    }
    return sign * effort;
}

/* Adds all loads to the links' F, N and to the joints' efforts. */
void mb_add_loads(mb_view *m, double t, const double *q, const double *v, double *joint_force) {
    const int32_t count = m->head[MB_FORCES];
    for (int32_t n = 0; n < count; n++) {
        const int32_t *force = m->forces + n * MB_FORCE_FIELDS;
        const double *p = m->p + force[MB_FORCE_P];
        const int32_t i = force[MB_FORCE_I], j = force[MB_FORCE_J];
        double P_i[3], P_j[3], d[3], rate = 0.0, second = 0.0;
        switch (force[MB_FORCE_TYPE]) {
            case MB_FORCE:
            case MB_TORQUE: {
                double value[3], R[9], zero[3] = {0, 0, 0};
                for (int k = 0; k < 3; k++) value[k] = mb_law(m, force[MB_FORCE_LAW] + k, t, &rate, &second);
                if (force[MB_FORCE_EXTRA] != MB_AXES_WORLD) {
                    if (force[MB_FORCE_EXTRA] == MB_AXES_BODY)
                        body_rotation(m, i, R);
                    else
                        marker_rotation(m, i, R);
                    mb_rotate(R, value, d);
                    mb_copy(d, value);
                }
                mb_marker_place(m, i, P_i);
                if (force[MB_FORCE_TYPE] == MB_FORCE)
                    apply(m, i, P_i, value, NULL);
                else
                    apply(m, i, P_i, zero, value);
                break;
            }
            case MB_SPRING: { /* stiffness, damping, free length; tension pulls i towards j */
                const double length = between(m, i, j, t, P_i, P_j, d, &rate);
                double ignored, more;
                const double tension = p[0] * (length - p[2]) + p[1] * rate + mb_law(m, force[MB_FORCE_LAW], t, &ignored, &more);
                double F[3], opposite[3];
                for (int k = 0; k < 3; k++) {
                    F[k] = force[MB_FORCE_EXTRA] >> k & 1 ? tension * d[k] : 0.0;
                    opposite[k] = -F[k];
                }
                apply(m, i, P_i, F, NULL);
                apply(m, j, P_j, opposite, NULL);
                break;
            }
            case MB_BUSHING: add_bushing(m, force, p, t); break;
            case MB_JOINT_EFFORT:
                joint_force[j] += force[MB_FORCE_EXTRA] * mb_law(m, force[MB_FORCE_LAW], t, &rate, &second);
                break;
            default: joint_force[j] += joint_effort(force, p, q[i], v[j]);
        }
    }
}

double mb_potential_energy(const mb_view *m, double t, const double *q) {
    double energy = 0.0;
    for (int32_t l = 0; l < m->link_count; l++) {
        if (m->data[l].mass == 0.0) continue;
        double centre[3];
        mb_copy(m->link[l].p, centre);
        mb_add(m->link[l].c, centre);
        energy -= m->data[l].mass * mb_dot(m->gravity, centre);
    }
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = m->forces + n * MB_FORCE_FIELDS;
        const double *p = m->p + force[MB_FORCE_P];
        if (force[MB_FORCE_TYPE] == MB_SPRING) {
            double P_i[3], P_j[3], d[3], rate;
            const double stretch = between(m, force[MB_FORCE_I], force[MB_FORCE_J], t, P_i, P_j, d, &rate) - p[2];
            energy += 0.5 * p[0] * stretch * stretch;
        } else if (force[MB_FORCE_TYPE] == MB_JOINT_SPRING) {
            const double sign = force[MB_FORCE_EXTRA] < 0 ? -1.0 : 1.0, stretch = sign * q[force[MB_FORCE_I]] - p[2];
            energy += 0.5 * p[0] * stretch * stretch;
        }
    }
    return energy;
}
