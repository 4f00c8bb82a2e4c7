/* A force or torque on a joint coordinate, by a law of t; it may also be a law of the coordinate and of its rate. */
#include "blocks/multibody/kernel/multibody.h"

static bool check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    (void)tally;
    return mb_check_coordinate(b, force) && mb_check_numbers(b, force, 0) && mb_check_laws(b, force, 1);
}

static double effort(const mb_view *m, const int32_t *force, double t, double x, double v) {
    return mb_coefficient(m, force[MB_FORCE_LAW], t, x, v);
}

static void load(mb_view *m, const int32_t *force, double t, const double *q, const double *v, double *joint_force) {
    mb_push_coordinate(m, force, t, q, v, effort, joint_force);
}

static double source(const mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    const double rate = mb_joint_rate(m, force, t, v);
    return effort(m, force, t, mb_joint_coordinate(m, force, t, q), rate) * rate;
}

static int32_t width(const int32_t *force, int32_t what) {
    (void)force;
    return what == 0 ? 1 : -1;
}

static int show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what, double *y) {
    (void)what;
    *y = effort(m, force, t, mb_joint_coordinate(m, force, t, q), mb_joint_rate(m, force, t, v));
    return BL_OK;
}

const mb_element mb_element_joint_load = {
    .name = "joint_load", .on_coordinate = true, .check = check, .load = load, .source = source, .width = width, .show = show};
