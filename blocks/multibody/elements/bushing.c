/* A soft joint: springs and dampers along and about the axes of marker i, which the bodies feel where marker j is.
 *
 * P: stiffness and damping along and about each axis, alternating; in a plane along x and y and about z only. EXTRA: the measured angle of a
 * planar bushing. Rotations have the potential 2 Σ k_n e_n² with e the Euler parameters of R = R_iᵀ R_j, the axis times sin ψ/2. As
 * 2 (e·e - e_n²) = 1 - R_nn, it is Σ a_n (1 - R_nn) with a_y + a_z = k_x and so on. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

BL_SHARED enum {
    BUSHING_SHOWN_FORCE,
    BUSHING_SHOWN_TORQUE,
    BUSHING_SHOWN_DEFLECTION,
    BUSHING_SHOWN_ROTATION,
    BUSHING_SHOWN_DEFLECTION_RATE,
    BUSHING_SHOWN_ROTATION_RATE,
    BUSHING_SHOWN_COUNT
};

/* x, ẋ, R and the relative angular velocity in axes of marker i; force and torque on body i in axes of the world. */
typedef struct {
    double R_i[9], P_j[3], x[3], R[9], rate[3], spin[3], F[3], N[3];
} mb_bushing;

static bool bushing_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    (void)tally;
    const bool planar = b->i[MB_PLANAR] != 0;
    return mb_check_markers(b, force) && mb_check_numbers(b, force, planar ? 6 : 12) &&
           mb_in_range(force[MB_FORCE_EXTRA], 0, planar ? b->i[MB_MEASURES] : 8);
}

static bool bushing_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    static const char *const NAMES[] = {"stiffness.x",  "damping.x",  "stiffness.y",  "damping.y",
                                        "stiffness.z",  "damping.z",  "stiffness.rx", "damping.rx",
                                        "stiffness.ry", "damping.ry", "stiffness.rz", "damping.rz"};
    const bool planar = m->head[MB_PLANAR] != 0;
    for (int k = 0; k < (planar ? 6 : 12); k++)
        if (!mb_allow(fault, NAMES[planar && k > 3 ? k + 6 : k], m->p[force[MB_FORCE_P] + k], MB_ALLOWED_NOT_NEGATIVE))
            return false;
    return true;
}

/* Where marker j is as seen from i: its place x and its rotation R. */
static void bushing_see_place(const mb_view *m, const int32_t *force, double t, mb_bushing *s) {
    double P_i[3], R_j[9], d[3], *R_i = s->R_i;
    mb_marker_motion(m, force[MB_FORCE_I], t, P_i, NULL, NULL);
    mb_marker_motion(m, force[MB_FORCE_J], t, s->P_j, NULL, NULL);
    mb_marker_axes(m, force[MB_FORCE_I], R_i);
    mb_marker_axes(m, force[MB_FORCE_J], R_j);
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            s->R[3 * r + c] = R_i[r] * R_j[c] + R_i[3 + r] * R_j[3 + c] + R_i[6 + r] * R_j[6 + c];
    mb_sub(s->P_j, P_i, d);
    mb_rotate_back(R_i, d, s->x);
}

/* Stiffness and damping along and about axis k, or NULL where a plane has none. */
static const double *bushing_along_axis(const mb_view *m, const int32_t *force, int k) {
    return m->head[MB_PLANAR] && k == 2 ? NULL : m->p + force[MB_FORCE_P] + 2 * k;
}
static const double *bushing_about_axis(const mb_view *m, const int32_t *force, int k) {
    if (m->head[MB_PLANAR]) return k == 2 ? m->p + force[MB_FORCE_P] + 4 : NULL;
    return m->p + force[MB_FORCE_P] + 6 + 2 * k;
}

/* The a_n of the potential. */
static void bushing_find_shares(const mb_view *m, const int32_t *force, double *a) {
    double half = 0.0;
    for (int k = 0; k < 3; k++) a[k] = bushing_about_axis(m, force, k)[0], half += 0.5 * a[k];
    for (int k = 0; k < 3; k++) a[k] = half - a[k];
}

/* The gradient of the potential: the torque on i, Σ a_n e_n × R e_n in its axes. */
static void bushing_elastic_torque(const mb_view *m, const int32_t *force, const double *R, double *N) {
    double a[3];
    bushing_find_shares(m, force, a);
    N[0] = a[1] * R[7] - a[2] * R[5];
    N[1] = a[2] * R[2] - a[0] * R[6];
    N[2] = a[0] * R[3] - a[1] * R[1];
}

static void bushing_see(const mb_view *m, const int32_t *force, double t, mb_bushing *s) {
    const int32_t i = force[MB_FORCE_I], j = force[MB_FORCE_J], link_i = mb_link_of(m, i), link_j = mb_link_of(m, j);
    double P_i[3], V_i[3], V_j[3], arm[3], *rate = s->rate, *spin = s->spin;
    bushing_see_place(m, force, t, s);
    /* The velocity of j as seen from the turning body of i. */
    mb_marker_motion(m, i, t, P_i, V_i, NULL);
    mb_marker_motion(m, j, t, s->P_j, V_j, NULL);
    mb_sub(s->P_j, P_i, arm);
    if (link_i >= 0) mb_add_cross(m->link[link_i].w, arm, V_i);
    mb_sub(V_j, V_i, rate);
    mb_rotate_back(s->R_i, rate, rate);
    memset(spin, 0, sizeof s->spin);
    if (link_j >= 0) mb_add(m->link[link_j].w, spin);
    if (link_i >= 0) mb_axpy(-1.0, m->link[link_i].w, spin);
    mb_rotate_back(s->R_i, spin, spin);
    memset(s->N, 0, sizeof s->N);
    if (m->head[MB_PLANAR]) s->N[2] = bushing_about_axis(m, force, 2)[0] * mb_measure(m, force[MB_FORCE_EXTRA], t);
    else bushing_elastic_torque(m, force, s->R, s->N);
    for (int k = 0; k < 3; k++) {
        const double *along = bushing_along_axis(m, force, k), *about = bushing_about_axis(m, force, k);
        s->F[k] = along ? along[0] * s->x[k] + along[1] * rate[k] : 0.0;
        if (about) s->N[k] += about[1] * spin[k];
    }
    mb_rotate(s->R_i, s->F, s->F);
    mb_rotate(s->R_i, s->N, s->N);
}

static void bushing_load(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                         double *joint_force) {
    (void)q, (void)v, (void)joint_force;
    mb_bushing s;
    bushing_see(m, force, t, &s);
    const double opposite[3] = {-s.F[0], -s.F[1], -s.F[2]}, opposite_N[3] = {-s.N[0], -s.N[1], -s.N[2]};
    mb_push(m, force[MB_FORCE_I], s.P_j, s.F, s.N);
    mb_push(m, force[MB_FORCE_J], s.P_j, opposite, opposite_N);
}

/* Along the axes Σ ½ k x², about them Σ a_n (1 - R_nn). */
static double bushing_energy(const mb_view *m, const int32_t *force, double t, const double *q) {
    (void)q;
    mb_bushing s;
    double a[3], sum = 0.0;
    bushing_see_place(m, force, t, &s);
    for (int k = 0; k < 3; k++) {
        const double *along = bushing_along_axis(m, force, k);
        if (along) sum += 0.5 * along[0] * s.x[k] * s.x[k];
    }
    if (m->head[MB_PLANAR]) {
        const double angle = mb_measure(m, force[MB_FORCE_EXTRA], t);
        return sum + 0.5 * bushing_about_axis(m, force, 2)[0] * angle * angle;
    }
    bushing_find_shares(m, force, a);
    for (int k = 0; k < 3; k++) sum += a[k] * (1.0 - s.R[4 * k]);
    return sum;
}

/* Axis times angle. */
static void bushing_rotation_vector(const double *R, double *out) {
    double e[4];
    mb_to_quaternion(R, e);
    const double side = e[0] < 0.0 ? -1.0 : 1.0, sine = sqrt(mb_dot(e + 1, e + 1));
    const double scale = sine > 0.0 ? side * 2.0 * atan2(sine, fabs(e[0])) / sine : 2.0;
    for (int k = 0; k < 3; k++) out[k] = scale * e[1 + k];
}

static int32_t bushing_width(const int32_t *force, int32_t what) {
    (void)force;
    return mb_in_range(what, 0, BUSHING_SHOWN_COUNT) ? 3 : -1;
}

/* Force and torque are those on the second body, as of a joint. */
static int bushing_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what,
                        double *y) {
    (void)q, (void)v;
    mb_bushing s;
    bushing_see(m, force, t, &s);
    switch (what) {
        case BUSHING_SHOWN_FORCE:
            for (int k = 0; k < 3; k++) y[k] = -s.F[k];
            break;
        case BUSHING_SHOWN_TORQUE:
            for (int k = 0; k < 3; k++) y[k] = -s.N[k];
            break;
        case BUSHING_SHOWN_DEFLECTION: mb_copy(s.x, y); break;
        case BUSHING_SHOWN_DEFLECTION_RATE: mb_copy(s.rate, y); break;
        case BUSHING_SHOWN_ROTATION_RATE: mb_copy(s.spin, y); break;
        default:
            y[0] = y[1] = 0.0;
            if (m->head[MB_PLANAR]) y[2] = mb_measure(m, force[MB_FORCE_EXTRA], t);
            else bushing_rotation_vector(s.R, y);
    }
    return BL_OK;
}

const mb_element mb_element_bushing = {.energy_kind = MB_ENERGY_ELASTIC,
                                       .check = bushing_check,
                                       .sound = bushing_sound,
                                       .load = bushing_load,
                                       .energy = bushing_energy,
                                       .width = bushing_width,
                                       .show = bushing_show};
