/* Friction on a joint coordinate with the rate v: effort = -viscous v - coulomb tanh(v / smoothing speed). P: these three. */
#include "blocks/multibody/kernel/multibody.h"

enum { VISCOUS, COULOMB, SMOOTHING, NUMBERS };
enum { SHOWN_EFFORT, SHOWN_POWER_LOSS, SHOWN_COUNT };

static bool check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    (void)tally;
    return mb_check_coordinate(b, force) && mb_check_numbers(b, force, NUMBERS);
}

static double effort(const mb_view *m, const int32_t *force, double t, double x, double v) {
    (void)t, (void)x;
    const double *p = m->p + force[MB_FORCE_P]; /* the smoothing speed may have been set to none */
    const double side = p[SMOOTHING] > 0.0 ? tanh(v / p[SMOOTHING]) : v > 0.0 ? 1.0 : v < 0.0 ? -1.0 : 0.0;
    return -p[VISCOUS] * v - p[COULOMB] * side;
}

static void load(mb_view *m, const int32_t *force, double t, const double *q, const double *v, double *joint_force) {
    mb_push_coordinate(m, force, t, q, v, effort, joint_force);
}

static double loss(mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    (void)q;
    const double rate = mb_joint_rate(m, force, t, v);
    return -(effort(m, force, t, 0.0, rate) * rate);
}

static int32_t width(const int32_t *force, int32_t what) {
    (void)force;
    return mb_in_range(what, 0, SHOWN_COUNT) ? 1 : -1;
}

static int show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what, double *y) {
    *y = what == SHOWN_EFFORT ? effort(m, force, t, 0.0, mb_joint_rate(m, force, t, v)) : loss(m, force, t, q, v);
    return BL_OK;
}

const mb_element mb_element_friction = {
    .name = "friction", .on_coordinate = true, .check = check, .load = load, .loss = loss, .width = width, .show = show};
