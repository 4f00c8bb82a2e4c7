/* A force at a point of a body that laws give: F at P_M + R_B r, with r the last three of its six laws. */
#include "blocks/multibody/kernel/multibody.h"

BL_SHARED enum { POINT_FORCE_SHOWN_FORCE, POINT_FORCE_SHOWN_POINT, POINT_FORCE_SHOWN_COUNT };
enum { POINT_FORCE_PLACE = 3, POINT_FORCE_LAWS = 6 };

static bool point_force_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    (void)tally;
    return mb_check_markers(b, force) && mb_check_numbers(b, force, 0) && mb_check_laws(b, force, POINT_FORCE_LAWS) &&
           mb_in_range(force[MB_FORCE_EXTRA], 0, 8);
}

static bool point_force_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    static const char *const NAMES[POINT_FORCE_LAWS] = {"force.x", "force.y", "force.z",
                                                        "point.x", "point.y", "point.z"};
    for (int k = 0; k < POINT_FORCE_LAWS; k++)
        if (!mb_allow_law(fault, m, force[MB_FORCE_LAW] + k,
                          k < POINT_FORCE_PLACE && force[MB_FORCE_EXTRA] == MB_AXES_MARKER ? "force" : NAMES[k]))
            return false;
    return true;
}

static void point_force_see(const mb_view *m, const int32_t *force, double t, double *value, double *P) {
    const int32_t link = mb_link_of(m, force[MB_FORCE_I]);
    double local[3], R[9];
    mb_see_load(m, force, t, value, P);
    for (int k = 0; k < 3; k++) local[k] = mb_coefficient(m, force[MB_FORCE_LAW] + POINT_FORCE_PLACE + k, t, 0.0, 0.0);
    if (link >= 0) { /* the ground's axes are the world's */
        mb_multiply(m->link[link].R, m->data[link].R_body, R);
        mb_rotate(R, local, local);
    }
    mb_add(local, P);
}

static void point_force_load(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                             double *joint_force) {
    (void)q, (void)v, (void)joint_force;
    double value[3], P[3];
    point_force_see(m, force, t, value, P);
    mb_push(m, force[MB_FORCE_I], P, value, NULL);
}

static double point_force_power(const mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    (void)q, (void)v;
    double value[3], P[3], V[3];
    point_force_see(m, force, t, value, P);
    mb_marker_velocity(m, force[MB_FORCE_I], P, V);
    return mb_dot(value, V);
}

static int32_t point_force_width(const int32_t *force, int32_t what) {
    (void)force;
    return mb_in_range(what, 0, POINT_FORCE_SHOWN_COUNT) ? 3 : -1;
}

static int point_force_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what,
                            double *y) {
    (void)q, (void)v;
    double value[3], P[3];
    point_force_see(m, force, t, value, P);
    mb_copy(what == POINT_FORCE_SHOWN_POINT ? P : value, y);
    return BL_OK;
}

const mb_element mb_element_point_force = {.law_count = POINT_FORCE_LAWS,
                                           .check = point_force_check,
                                           .sound = point_force_sound,
                                           .load = point_force_load,
                                           .source = point_force_power,
                                           .width = point_force_width,
                                           .show = point_force_show};
