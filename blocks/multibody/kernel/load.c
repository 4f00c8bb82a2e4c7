/* Loads: what acts on the links besides inertia and gravity. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

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

void mb_push(const mb_view *m, int32_t marker, const double *P, const double *F, const double *N) {
    const int32_t link = link_of(m, marker);
    if (link < 0) return;
    mb_link_state *s = &m->link[link];
    if (F) {
        double arm[3];
        mb_sub(P, s->p, arm);
        mb_add(F, s->F);
        mb_add_cross(arm, F, s->N);
    }
    if (N) mb_add(N, s->N);
}

/* A force or torque in world axes, and where it acts. */
static void see_load(const mb_view *m, const int32_t *force, double t, double *value, double *P) {
    const int32_t i = force[MB_FORCE_I], link = link_of(m, i), axes = force[MB_FORCE_EXTRA];
    double R[9];
    for (int k = 0; k < 3; k++) value[k] = mb_coefficient(m, force[MB_FORCE_LAW] + k, t, 0.0, 0.0);
    if (axes == MB_AXES_MARKER) {
        mb_marker_axes(m, i, R);
        mb_rotate(R, value, value);
    } else if (axes == MB_AXES_BODY && link >= 0) { /* the ground's axes are the world's */
        mb_multiply(m->link[link].R, m->data[link].R_body, R);
        mb_rotate(R, value, value);
    }
    mb_marker_motion(m, i, t, P, NULL, NULL);
}

static void add_load(const mb_view *m, const int32_t *force, double t) {
    double value[3], P[3];
    see_load(m, force, t, value, P);
    if (force[MB_FORCE_TYPE] == MB_FORCE)
        mb_push(m, force[MB_FORCE_I], P, value, NULL);
    else
        mb_push(m, force[MB_FORCE_I], P, NULL, value);
}

/* Stiffness, damping and actuator of a spring are three laws of t, x and v in a row. */
static double spring_effort(const mb_view *m, const int32_t *force, double t, double x, double v) {
    const int32_t law = force[MB_FORCE_LAW];
    const double stretch = x - m->p[force[MB_FORCE_P]];
    return mb_coefficient(m, law, t, x, v) * stretch + mb_coefficient(m, law + 1, t, x, v) * v + mb_coefficient(m, law + 2, t, x, v);
}

/* Tension pulls i towards j; without a length there is no direction and no force. */
static void add_spring(const mb_view *m, const int32_t *force, double t) {
    const int32_t i = force[MB_FORCE_I], j = force[MB_FORCE_J];
    double P_i[3], P_j[3], V_i[3], V_j[3], d[3], dd[3], F[3], opposite[3];
    mb_marker_motion(m, i, t, P_i, V_i, NULL);
    mb_marker_motion(m, j, t, P_j, V_j, NULL);
    mb_sub(P_j, P_i, d);
    mb_sub(V_j, V_i, dd);
    const double length = sqrt(mb_dot(d, d));
    if (length <= 1e-12) return;
    const double tension = spring_effort(m, force, t, length, mb_dot(d, dd) / length);
    for (int k = 0; k < 3; k++) {
        F[k] = force[MB_FORCE_EXTRA] >> k & 1 ? tension * d[k] / length : 0.0;
        opposite[k] = -F[k];
    }
    mb_push(m, i, P_i, F, NULL);
    mb_push(m, j, P_j, opposite, NULL);
}

/* Where marker j of a bushing is as seen from i: its place x and its rotation R. */
static void see_bushing(const mb_view *m, const int32_t *force, double t, double *R_i, double *P_j, double *x, double *R) {
    double P_i[3], R_j[9], d[3];
    mb_marker_motion(m, force[MB_FORCE_I], t, P_i, NULL, NULL);
    mb_marker_motion(m, force[MB_FORCE_J], t, P_j, NULL, NULL);
    mb_marker_axes(m, force[MB_FORCE_I], R_i);
    mb_marker_axes(m, force[MB_FORCE_J], R_j);
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++) R[3 * r + c] = R_i[r] * R_j[c] + R_i[3 + r] * R_j[3 + c] + R_i[6 + r] * R_j[6 + c];
    mb_sub(P_j, P_i, d);
    mb_rotate_back(R_i, d, x);
}

/* Stiffness and damping along axis k alternate, axis by axis; a plane has x, y and the turn about z only. */
static const double *bushing_along(const mb_view *m, const int32_t *force, int k) {
    return m->head[MB_PLANAR] && k == 2 ? NULL : m->p + force[MB_FORCE_P] + 2 * k;
}
static const double *bushing_about(const mb_view *m, const int32_t *force, int k) {
    if (m->head[MB_PLANAR]) return k == 2 ? m->p + force[MB_FORCE_P] + 4 : NULL;
    return m->p + force[MB_FORCE_P] + 6 + 2 * k;
}

/* The potential of rotations is 2 Σ k_n e_n² with e the Euler parameters of R, the axis times sin ψ/2. As 2 (e·e - e_n²) = 1 - R_nn, it is
   Σ a_n (1 - R_nn) with a_y + a_z = k_x and so on. */
static void bushing_shares(const mb_view *m, const int32_t *force, double *a) {
    double half = 0.0;
    for (int k = 0; k < 3; k++) a[k] = bushing_about(m, force, k)[0], half += 0.5 * a[k];
    for (int k = 0; k < 3; k++) a[k] = half - a[k];
}

/* The gradient of that potential: the torque on i, Σ a_n e_n × R e_n in its axes. */
static void bushing_torque(const mb_view *m, const int32_t *force, const double *R, double *N) {
    double a[3];
    bushing_shares(m, force, a);
    N[0] = a[1] * R[7] - a[2] * R[5];
    N[1] = a[2] * R[2] - a[0] * R[6];
    N[2] = a[0] * R[3] - a[1] * R[1];
}

/* Forces along and torques about the axes of marker i. */
static void add_bushing(const mb_view *m, const int32_t *force, double t) {
    const int32_t i = force[MB_FORCE_I], j = force[MB_FORCE_J], link_i = link_of(m, i), link_j = link_of(m, j);
    double R_i[9], P_i[3], P_j[3], x[3], R[9], V_i[3], V_j[3], rate[3], arm[3], spin[3] = {0, 0, 0};
    see_bushing(m, force, t, R_i, P_j, x, R);
    /* The velocity of j as seen from the turning body of i. */
    mb_marker_motion(m, i, t, P_i, V_i, NULL);
    mb_marker_motion(m, j, t, P_j, V_j, NULL);
    mb_sub(P_j, P_i, arm);
    if (link_i >= 0) mb_add_cross(m->link[link_i].w, arm, V_i);
    mb_sub(V_j, V_i, rate);
    mb_rotate_back(R_i, rate, rate);
    if (link_j >= 0) mb_add(m->link[link_j].w, spin);
    if (link_i >= 0) mb_axpy(-1.0, m->link[link_i].w, spin);
    mb_rotate_back(R_i, spin, spin);
    double F[3], N[3] = {0, 0, 0}, opposite[3], opposite_N[3];
    if (m->head[MB_PLANAR])
        N[2] = bushing_about(m, force, 2)[0] * mb_measure(m, force[MB_FORCE_EXTRA], t);
    else
        bushing_torque(m, force, R, N);
    for (int k = 0; k < 3; k++) {
        const double *along = bushing_along(m, force, k), *about = bushing_about(m, force, k);
        F[k] = along ? along[0] * x[k] + along[1] * rate[k] : 0.0;
        if (about) N[k] += about[1] * spin[k];
    }
    mb_rotate(R_i, F, F);
    mb_rotate(R_i, N, N);
    for (int k = 0; k < 3; k++) {
        opposite[k] = -F[k];
        opposite_N[k] = -N[k];
    }
    mb_push(m, i, P_j, F, N);
    mb_push(m, j, P_j, opposite, opposite_N);
}

double mb_coordinate(int32_t sign, double q) {
    const double value = sign < 0 ? -q : q, quarter = 1.5707963267948966;
    return sign == 2 || sign == -2 ? value - quarter : value;
}

static void start_turn(int32_t sign, double *q) {
    const double half = 3.141592653589793;
    if ((sign == 2 || sign == -2) && mb_coordinate(sign, *q) <= -half) *q += sign < 0 ? -2.0 * half : 2.0 * half;
}

/* Whether a coordinate of the tree is an angle. */
static bool turns(const mb_view *m, int32_t q) {
    for (int32_t l = 0; l < m->link_count; l++)
        if (m->links[l * MB_LINK_FIELDS + MB_LINK_Q] == q && m->links[l * MB_LINK_FIELDS + MB_LINK_TYPE] == MB_REVOLUTE) return true;
    return false;
}

void mb_start_turns(const mb_view *m, double t, double *q) {
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = m->forces + n * MB_FORCE_FIELDS;
        if (force[MB_FORCE_TYPE] >= MB_JOINT_SPRING && force[MB_FORCE_I] >= 0) start_turn(force[MB_FORCE_EXTRA], &q[force[MB_FORCE_I]]);
    }
    for (int32_t n = 0; n < m->head[MB_OUTPUTS]; n++) {
        const int32_t *out = m->outputs + n * MB_OUT_FIELDS;
        if (out[MB_OUT_TYPE] == MB_OUT_COORDINATE) start_turn(out[MB_OUT_AXIS], &q[out[MB_OUT_INDEX]]);
    }
    for (int32_t k = 0; k < m->row_count; k++) {
        const int32_t *row = m->rows + k * MB_ROW_FIELDS;
        double rate, second;
        if (row[MB_ROW_TYPE] == MB_ROW_DRIVEN_ANGLE) m->turns[row[MB_ROW_A]] = mb_law(m, row[MB_ROW_VALUE], t, &rate, &second);
        if (row[MB_ROW_TYPE] != MB_ROW_DRIVER || !turns(m, row[MB_ROW_I])) continue;
        const double full = 6.283185307179586;
        double *angle = &q[row[MB_ROW_I]];
        const double wanted = row[MB_ROW_B] * mb_law(m, row[MB_ROW_VALUE], t, &rate, &second);
        *angle += full * nearbyint((wanted - *angle) / full);
    }
}

/* How far a coordinate is beyond its stops: lower, upper. */
static double beyond(const double *p, double x) { return x > p[1] ? x - p[1] : x < p[0] ? x - p[0] : 0.0; }

/* What acts on a joint's coordinate x with the rate v. */
static double joint_effort(const mb_view *m, const int32_t *force, double t, double x, double v) {
    const double *p = m->p + force[MB_FORCE_P];
    switch (force[MB_FORCE_TYPE]) {
        case MB_JOINT_SPRING: return -spring_effort(m, force, t, x, v);
        case MB_FRICTION: { /* viscous, Coulomb, smoothing speed; it may have been set to none */
            const double side = p[2] > 0.0 ? tanh(v / p[2]) : v > 0.0 ? 1.0 : v < 0.0 ? -1.0 : 0.0;
            return -p[0] * v - p[1] * side;
        }
        case MB_STOP: { /* stiffness and damping follow the limits; it only pushes */
            const double over = beyond(p, x), push = -p[2] * over - p[3] * v;
            return over > 0.0 ? fmin(push, 0.0) : over < 0.0 ? fmax(push, 0.0) : 0.0;
        }
        default: return mb_coefficient(m, force[MB_FORCE_LAW], t, x, v);
    }
}

static double joint_coordinate(const mb_view *m, const int32_t *force, double t, const double *q) {
    const int32_t i = force[MB_FORCE_I];
    return i < 0 ? mb_measure(m, -1 - i, t) : mb_coordinate(force[MB_FORCE_EXTRA], q[i]);
}

/* Adds all loads to the links' F, N and to the joints' efforts. */
void mb_add_loads(mb_view *m, double t, const double *q, const double *v, double *joint_force) {
    const int32_t count = m->head[MB_FORCES];
    for (int32_t n = 0; n < count; n++) {
        const int32_t *force = m->forces + n * MB_FORCE_FIELDS;
        switch (force[MB_FORCE_TYPE]) {
            case MB_FORCE:
            case MB_TORQUE: add_load(m, force, t); break;
            case MB_SPRING: add_spring(m, force, t); break;
            case MB_BUSHING: add_bushing(m, force, t); break;
            case MB_BEARING:
                if (!mb_add_bearing(m, force, t)) m->torn = n;
                break;
            case MB_CONTACT: mb_add_contact(m, force, t); break;
            case MB_RUBBING: mb_add_rubbing(m, force[MB_FORCE_LAW], t, joint_force); break;
            default: {
                const int32_t i = force[MB_FORCE_I], j = force[MB_FORCE_J];
                const double sign = force[MB_FORCE_EXTRA] < 0 ? -1.0 : 1.0, x = joint_coordinate(m, force, t, q);
                double second;
                if (i < 0)
                    mb_measure_push(m, -1 - i, t, joint_effort(m, force, t, x, mb_measure_rate(m, -1 - i, t, &second)));
                else
                    joint_force[j] += sign * joint_effort(m, force, t, x, sign * v[j]);
            }
        }
    }
}

static double joint_rate(const mb_view *m, const int32_t *force, double t, const double *v) {
    const int32_t i = force[MB_FORCE_I];
    double second;
    if (i < 0) return mb_measure_rate(m, -1 - i, t, &second);
    return force[MB_FORCE_EXTRA] < 0 ? -v[force[MB_FORCE_J]] : v[force[MB_FORCE_J]];
}

static double load_power(const mb_view *m, const int32_t *force, double t) {
    const int32_t link = link_of(m, force[MB_FORCE_I]);
    double value[3], P[3], V[3];
    if (link < 0) return 0.0;
    see_load(m, force, t, value, P);
    if (force[MB_FORCE_TYPE] == MB_TORQUE) return mb_dot(value, m->link[link].w);
    mb_marker_velocity(m, force[MB_FORCE_I], P, V);
    return mb_dot(value, V);
}

/* The third law of a spring is its actuator, which pulls. */
static double actuator_power(const mb_view *m, const int32_t *force, double t) {
    double P_i[3], P_j[3], V_i[3], V_j[3], d[3], dd[3], along = 0.0;
    mb_marker_motion(m, force[MB_FORCE_I], t, P_i, V_i, NULL);
    mb_marker_motion(m, force[MB_FORCE_J], t, P_j, V_j, NULL);
    mb_sub(P_j, P_i, d);
    mb_sub(V_j, V_i, dd);
    const double length = sqrt(mb_dot(d, d));
    if (length <= 1e-12) return 0.0;
    for (int k = 0; k < 3; k++)
        if (force[MB_FORCE_EXTRA] >> k & 1) along += d[k] * dd[k] / length;
    return -mb_coefficient(m, force[MB_FORCE_LAW] + 2, t, length, mb_dot(d, dd) / length) * along;
}

double mb_source_power(const mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    switch (force[MB_FORCE_TYPE]) {
        case MB_FORCE:
        case MB_TORQUE: return load_power(m, force, t);
        case MB_SPRING: return actuator_power(m, force, t);
        case MB_JOINT_SPRING: {
            const double rate = joint_rate(m, force, t, v);
            return -mb_coefficient(m, force[MB_FORCE_LAW] + 2, t, joint_coordinate(m, force, t, q), rate) * rate;
        }
        case MB_JOINT_EFFORT: {
            const double rate = joint_rate(m, force, t, v);
            return joint_effort(m, force, t, joint_coordinate(m, force, t, q), rate) * rate;
        }
        default: return 0.0;
    }
}

double mb_friction_power(const mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    const double rate = joint_rate(m, force, t, v);
    return joint_effort(m, force, t, joint_coordinate(m, force, t, q), rate) * rate;
}

/* Of a spring with a constant stiffness. */
static double spring_energy(const mb_view *m, const int32_t *force, double x) {
    const int32_t *law = m->laws + force[MB_FORCE_LAW] * MB_LAW_FIELDS;
    if (law[MB_LAW_TYPE] != MB_LAW_CONSTANT) return 0.0;
    const double stretch = x - m->p[force[MB_FORCE_P]];
    return 0.5 * m->p[law[MB_LAW_P]] * stretch * stretch;
}

/* Along the axes Σ ½ k x², about them Σ a_n (1 - R_nn). */
static double bushing_energy(const mb_view *m, const int32_t *force, double t) {
    double R_i[9], P_j[3], x[3], R[9], a[3], energy = 0.0;
    see_bushing(m, force, t, R_i, P_j, x, R);
    for (int k = 0; k < 3; k++) {
        const double *along = bushing_along(m, force, k);
        if (along) energy += 0.5 * along[0] * x[k] * x[k];
    }
    if (m->head[MB_PLANAR]) {
        const double angle = mb_measure(m, force[MB_FORCE_EXTRA], t);
        return energy + 0.5 * bushing_about(m, force, 2)[0] * angle * angle;
    }
    bushing_shares(m, force, a);
    for (int k = 0; k < 3; k++) energy += a[k] * (1.0 - R[4 * k]);
    return energy;
}

/* Of weight, and of springs, stops, bushings and contacts with constant coefficients. Actuators and springs whose stiffness is a law keep none. */
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
        switch (force[MB_FORCE_TYPE]) {
            case MB_SPRING: {
                double P_i[3], P_j[3], d[3];
                mb_marker_motion(m, force[MB_FORCE_I], t, P_i, NULL, NULL);
                mb_marker_motion(m, force[MB_FORCE_J], t, P_j, NULL, NULL);
                mb_sub(P_j, P_i, d);
                energy += spring_energy(m, force, sqrt(mb_dot(d, d)));
                break;
            }
            case MB_BUSHING: energy += bushing_energy(m, force, t); break;
            case MB_BEARING: energy += mb_bearing_energy(m, force, t); break;
            case MB_CONTACT: energy += mb_contact_energy(m, force, t); break;
            case MB_JOINT_SPRING: energy += spring_energy(m, force, joint_coordinate(m, force, t, q)); break;
            case MB_STOP: {
                const double over = beyond(p, joint_coordinate(m, force, t, q));
                energy += 0.5 * p[2] * over * over;
                break;
            }
            default: break;
        }
    }
    return energy;
}
