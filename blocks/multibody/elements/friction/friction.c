/* Friction on a joint coordinate with the rate v: effort = -viscous v - coulomb tanh(v / smoothing speed). P: these three. */
#include "blocks/multibody/kernel/multibody.h"

enum { FRICTION_VISCOUS, FRICTION_COULOMB, FRICTION_SMOOTHING, FRICTION_NUMBERS };
BL_SHARED enum { FRICTION_SHOWN_EFFORT, FRICTION_SHOWN_POWER_LOSS, FRICTION_SHOWN_COUNT };

static bool friction_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    (void)tally;
    return mb_check_coordinate(b, force) && mb_check_numbers(b, force, FRICTION_NUMBERS);
}

static bool friction_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    const double *p = m->p + force[MB_FORCE_P];
    return mb_allow(fault, "viscous", p[FRICTION_VISCOUS], MB_ALLOWED_NOT_NEGATIVE) &&
           mb_allow(fault, "coulomb", p[FRICTION_COULOMB], MB_ALLOWED_NOT_NEGATIVE) &&
           mb_allow(fault, "smoothing_speed", p[FRICTION_SMOOTHING], MB_ALLOWED_NOT_NEGATIVE);
}

static double friction_effort(const mb_view *m, const int32_t *force, double t, double x, double v) {
    (void)t, (void)x;
    const double *p = m->p + force[MB_FORCE_P]; /* the smoothing speed may have been set to none */
    const double side = p[FRICTION_SMOOTHING] > 0.0 ? tanh(v / p[FRICTION_SMOOTHING])
                        : v > 0.0                   ? 1.0
                        : v < 0.0                   ? -1.0
                                                    : 0.0;
    return -p[FRICTION_VISCOUS] * v - p[FRICTION_COULOMB] * side;
}

static void friction_load(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                          double *joint_force) {
    mb_push_coordinate(m, force, t, q, v, friction_effort, joint_force);
}

static double friction_loss(mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    (void)q;
    const double rate = mb_joint_rate(m, force, t, v);
    return -(friction_effort(m, force, t, 0.0, rate) * rate);
}

static int32_t friction_width(const int32_t *force, int32_t what) {
    (void)force;
    return mb_in_range(what, 0, FRICTION_SHOWN_COUNT) ? 1 : -1;
}

static int friction_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what,
                         double *y) {
    *y = what == FRICTION_SHOWN_EFFORT ? friction_effort(m, force, t, 0.0, mb_joint_rate(m, force, t, v))
                                       : friction_loss(m, force, t, q, v);
    return BL_OK;
}

const mb_element mb_element_friction = {.on_coordinate = true,
                                        .check = friction_check,
                                        .sound = friction_sound,
                                        .load = friction_load,
                                        .loss = friction_loss,
                                        .width = friction_width,
                                        .show = friction_show};
