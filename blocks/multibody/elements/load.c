/* Forces at a marker and torques on its body, by laws of time in axes of the world, the body or the marker. */
#include "blocks/multibody/kernel/multibody.h"

enum { APPLIED_SHOWN_EFFORT, APPLIED_SHOWN_COUNT };

static bool applied_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    (void)tally;
    return mb_check_markers(b, force) && mb_check_numbers(b, force, 0) && mb_check_laws(b, force, 3) &&
           mb_in_range(force[MB_FORCE_EXTRA], 0, 8);
}

static bool applied_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    static const char *const NAMES[2][3] = {{"force.x", "force.y", "force.z"}, {"torque.x", "torque.y", "torque.z"}};
    const int turns = force[MB_FORCE_TYPE] == MB_TORQUE;
    for (int k = 0; k < 3; k++) /* with axes of the marker it is a single component */
        if (!mb_allow_law(fault, m, force[MB_FORCE_LAW] + k,
                          force[MB_FORCE_EXTRA] != MB_AXES_MARKER ? NAMES[turns][k]
                          : turns                                 ? "torque"
                                                                  : "force"))
            return false;
    return true;
}

/* A force or torque in world axes, and where it acts. */
void mb_see_load(const mb_view *m, const int32_t *force, double t, double *value, double *P) {
    const int32_t i = force[MB_FORCE_I], link = mb_link_of(m, i), axes = force[MB_FORCE_EXTRA];
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

static void applied_load_force(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                               double *joint_force) {
    (void)q, (void)v, (void)joint_force;
    double value[3], P[3];
    mb_see_load(m, force, t, value, P);
    mb_push(m, force[MB_FORCE_I], P, value, NULL);
}

static void applied_load_torque(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                                double *joint_force) {
    (void)q, (void)v, (void)joint_force;
    double value[3], P[3];
    mb_see_load(m, force, t, value, P);
    mb_push(m, force[MB_FORCE_I], P, NULL, value);
}

static double applied_force_power(const mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    (void)q, (void)v;
    double value[3], P[3], V[3];
    if (mb_link_of(m, force[MB_FORCE_I]) < 0) return 0.0;
    mb_see_load(m, force, t, value, P);
    mb_marker_velocity(m, force[MB_FORCE_I], P, V);
    return mb_dot(value, V);
}

static double applied_torque_power(const mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    (void)q, (void)v;
    const int32_t link = mb_link_of(m, force[MB_FORCE_I]);
    double value[3], P[3];
    if (link < 0) return 0.0;
    mb_see_load(m, force, t, value, P);
    return mb_dot(value, m->link[link].w);
}

static int32_t applied_width(const int32_t *force, int32_t what) {
    (void)force;
    return what == APPLIED_SHOWN_EFFORT ? 3 : -1;
}

static int applied_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what,
                        double *y) {
    (void)q, (void)v, (void)what;
    double P[3];
    mb_see_load(m, force, t, y, P);
    return BL_OK;
}

const mb_element mb_element_force = {.law_count = 3,
                                     .check = applied_check,
                                     .sound = applied_sound,
                                     .load = applied_load_force,
                                     .source = applied_force_power,
                                     .width = applied_width,
                                     .show = applied_show};
const mb_element mb_element_torque = {.law_count = 3,
                                      .check = applied_check,
                                      .sound = applied_sound,
                                      .load = applied_load_torque,
                                      .source = applied_torque_power,
                                      .width = applied_width,
                                      .show = applied_show};
