/* A force or torque on a joint coordinate, by a law of t; it may also be a law of the coordinate and of its rate. */
#include "blocks/multibody/kernel/multibody.h"

static bool joint_load_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    (void)tally;
    return mb_check_coordinate(b, force) && mb_check_numbers(b, force, 0) && mb_check_laws(b, force, 1);
}

static bool joint_load_turns(const mb_view *m, const int32_t *force) {
    if (force[MB_FORCE_I] < 0)
        return m->measures[(-1 - force[MB_FORCE_I]) * MB_MEASURE_FIELDS + MB_MEASURE_TYPE] == MB_ANGLE;
    int32_t link = m->link_count - 1; /* the last that starts at this speed or before it has it */
    while (link > 0 && m->links[link * MB_LINK_FIELDS + MB_LINK_V] > force[MB_FORCE_J]) link--;
    return m->links[link * MB_LINK_FIELDS + MB_LINK_TYPE] != MB_PRISMATIC;
}

static bool joint_load_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    return mb_allow_law(fault, m, force[MB_FORCE_LAW], joint_load_turns(m, force) ? "torque" : "force");
}

static double joint_load_effort(const mb_view *m, const int32_t *force, double t, double x, double v) {
    return mb_coefficient(m, force[MB_FORCE_LAW], t, x, v);
}

static void joint_load_load(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                            double *joint_force) {
    mb_push_coordinate(m, force, t, q, v, joint_load_effort, joint_force);
}

static double joint_load_source(const mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    const double rate = mb_joint_rate(m, force, t, v);
    return joint_load_effort(m, force, t, mb_joint_coordinate(m, force, t, q), rate) * rate;
}

static int32_t joint_load_width(const int32_t *force, int32_t what) {
    (void)force;
    return what == 0 ? 1 : -1;
}

static int joint_load_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what,
                           double *y) {
    (void)what;
    *y = joint_load_effort(m, force, t, mb_joint_coordinate(m, force, t, q), mb_joint_rate(m, force, t, v));
    return BL_OK;
}

const mb_element mb_element_joint_load = {.law_count = 1,
                                          .on_coordinate = true,
                                          .check = joint_load_check,
                                          .sound = joint_load_sound,
                                          .load = joint_load_load,
                                          .source = joint_load_source,
                                          .width = joint_load_width,
                                          .show = joint_load_show};
