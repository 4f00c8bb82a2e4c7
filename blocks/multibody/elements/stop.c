/* End stops on a joint coordinate: beyond a limit by δ the effort is stiffness δ + damping δ̇ back toward it, and never pulls.
 *
 * P: lower and upper limit, stiffness, damping. */
#include "blocks/multibody/kernel/multibody.h"

enum { STOP_LOWER, STOP_UPPER, STOP_STIFFNESS, STOP_DAMPING, STOP_NUMBERS };
BL_SHARED enum { STOP_SHOWN_EFFORT, STOP_SHOWN_DEFLECTION, STOP_SHOWN_COUNT };

static bool stop_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    (void)tally;
    return mb_check_coordinate(b, force) && mb_check_numbers(b, force, STOP_NUMBERS);
}

/* How far a coordinate is beyond its stops: above the upper one positive, below the lower one negative. */
static double stop_beyond(const double *p, double x) {
    return x > p[STOP_UPPER] ? x - p[STOP_UPPER] : x < p[STOP_LOWER] ? x - p[STOP_LOWER] : 0.0;
}

static double stop_effort(const mb_view *m, const int32_t *force, double t, double x, double v) {
    (void)t;
    const double *p = m->p + force[MB_FORCE_P], over = stop_beyond(p, x),
                 push = -p[STOP_STIFFNESS] * over - p[STOP_DAMPING] * v;
    return over > 0.0 ? fmin(push, 0.0) : over < 0.0 ? fmax(push, 0.0) : 0.0;
}

static void stop_load(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                      double *joint_force) {
    mb_push_coordinate(m, force, t, q, v, stop_effort, joint_force);
}

static double stop_energy(const mb_view *m, const int32_t *force, double t, const double *q) {
    const double *p = m->p + force[MB_FORCE_P], over = stop_beyond(p, mb_joint_coordinate(m, force, t, q));
    return 0.5 * p[STOP_STIFFNESS] * over * over;
}

static int32_t stop_width(const int32_t *force, int32_t what) {
    (void)force;
    return mb_in_range(what, 0, STOP_SHOWN_COUNT) ? 1 : -1;
}

static int stop_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what,
                     double *y) {
    const double x = mb_joint_coordinate(m, force, t, q);
    *y = what == STOP_SHOWN_EFFORT ? stop_effort(m, force, t, x, mb_joint_rate(m, force, t, v))
                                   : stop_beyond(m->p + force[MB_FORCE_P], x);
    return BL_OK;
}

const mb_element mb_element_stop = {.on_coordinate = true,
                                    .energy_kind = MB_ENERGY_CONTACT,
                                    .check = stop_check,
                                    .load = stop_load,
                                    .energy = stop_energy,
                                    .width = stop_width,
                                    .show = stop_show};
