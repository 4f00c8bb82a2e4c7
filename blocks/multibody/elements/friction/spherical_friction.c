/* Friction in a spherical joint with given numbers, ω the angular velocity of body j relative to body i:
 *     M = -viscous ω - coulomb (ω / |ω|) tanh(|ω| / smoothing speed)
 *
 * on body j, the opposite on body i. I, J: markers. P: viscous, coulomb, smoothing speed. */
#include "blocks/multibody/kernel/multibody.h"

enum {
    SPHERICAL_FRICTION_VISCOUS,
    SPHERICAL_FRICTION_COULOMB,
    SPHERICAL_FRICTION_SMOOTHING,
    SPHERICAL_FRICTION_NUMBERS
};
BL_SHARED enum { SPHERICAL_FRICTION_SHOWN_TORQUE, SPHERICAL_FRICTION_SHOWN_POWER_LOSS, SPHERICAL_FRICTION_SHOWN_COUNT };

static bool spherical_friction_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    (void)tally;
    return mb_check_markers(b, force) && mb_check_numbers(b, force, SPHERICAL_FRICTION_NUMBERS);
}

static bool spherical_friction_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    const double *p = m->p + force[MB_FORCE_P];
    return mb_allow(fault, "viscous", p[SPHERICAL_FRICTION_VISCOUS], MB_ALLOWED_NOT_NEGATIVE) &&
           mb_allow(fault, "coulomb", p[SPHERICAL_FRICTION_COULOMB], MB_ALLOWED_NOT_NEGATIVE) &&
           mb_allow(fault, "smoothing_speed", p[SPHERICAL_FRICTION_SMOOTHING], MB_ALLOWED_POSITIVE);
}

/* The torque on body j; returns the power that it turns into heat. */
static double spherical_friction_torque(const mb_view *m, const int32_t *force, double *torque) {
    const double *p = m->p + force[MB_FORCE_P];
    const int32_t i = mb_link_of(m, force[MB_FORCE_I]), j = mb_link_of(m, force[MB_FORCE_J]);
    double w[3];
    for (int k = 0; k < 3; k++) w[k] = (j < 0 ? 0.0 : m->link[j].w[k]) - (i < 0 ? 0.0 : m->link[i].w[k]);
    const double rate = sqrt(mb_dot(w, w)), smoothing = p[SPHERICAL_FRICTION_SMOOTHING];
    const double dry = rate > 0.0 ? p[SPHERICAL_FRICTION_COULOMB] * tanh(rate / smoothing) / rate : 0.0;
    for (int k = 0; k < 3; k++) torque[k] = -(p[SPHERICAL_FRICTION_VISCOUS] + dry) * w[k];
    return -mb_dot(torque, w);
}

static void spherical_friction_load(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                                    double *joint_force) {
    (void)t, (void)q, (void)v, (void)joint_force;
    static const double anywhere[3] = {0, 0, 0};
    double torque[3], opposite[3];
    (void)spherical_friction_torque(m, force, torque);
    for (int k = 0; k < 3; k++) opposite[k] = -torque[k];
    mb_push(m, force[MB_FORCE_I], anywhere, NULL, opposite);
    mb_push(m, force[MB_FORCE_J], anywhere, NULL, torque);
}

static double spherical_friction_loss(mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    (void)t, (void)q, (void)v;
    double torque[3];
    return spherical_friction_torque(m, force, torque);
}

static int32_t spherical_friction_width(const int32_t *force, int32_t what) {
    (void)force;
    if (what == SPHERICAL_FRICTION_SHOWN_TORQUE) return 3;
    return mb_in_range(what, 0, SPHERICAL_FRICTION_SHOWN_COUNT) ? 1 : -1;
}

static int spherical_friction_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                                   int32_t what, double *y) {
    (void)t, (void)q, (void)v;
    double torque[3];
    const double loss = spherical_friction_torque(m, force, torque);
    if (what == SPHERICAL_FRICTION_SHOWN_TORQUE) mb_copy(torque, y);
    else *y = loss;
    return BL_OK;
}

const mb_element mb_element_spherical_friction = {.check = spherical_friction_check,
                                                  .sound = spherical_friction_sound,
                                                  .load = spherical_friction_load,
                                                  .loss = spherical_friction_loss,
                                                  .width = spherical_friction_width,
                                                  .show = spherical_friction_show};
