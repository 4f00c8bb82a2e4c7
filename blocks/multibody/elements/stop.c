/* End stops on a joint coordinate: beyond a limit by δ the effort is stiffness δ + damping δ̇ back towards it, and never pulls.
 *
 * P: lower and upper limit, stiffness, damping. */
#include "blocks/multibody/kernel/multibody.h"

enum { LOWER, UPPER, STIFFNESS, DAMPING, NUMBERS };
enum { SHOWN_EFFORT, SHOWN_DEFLECTION, SHOWN_COUNT };

static bool check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    (void)tally;
    return mb_check_coordinate(b, force) && mb_check_numbers(b, force, NUMBERS);
}

/* How far a coordinate is beyond its stops: above the upper one positive, below the lower one negative. */
static double beyond(const double *p, double x) { return x > p[UPPER] ? x - p[UPPER] : x < p[LOWER] ? x - p[LOWER] : 0.0; }

static double effort(const mb_view *m, const int32_t *force, double t, double x, double v) {
    (void)t;
    const double *p = m->p + force[MB_FORCE_P], over = beyond(p, x), push = -p[STIFFNESS] * over - p[DAMPING] * v;
    return over > 0.0 ? fmin(push, 0.0) : over < 0.0 ? fmax(push, 0.0) : 0.0;
}

static void load(mb_view *m, const int32_t *force, double t, const double *q, const double *v, double *joint_force) {
    mb_push_coordinate(m, force, t, q, v, effort, joint_force);
}

static double energy(const mb_view *m, const int32_t *force, double t, const double *q) {
    const double *p = m->p + force[MB_FORCE_P], over = beyond(p, mb_joint_coordinate(m, force, t, q));
    return 0.5 * p[STIFFNESS] * over * over;
}

static int32_t width(const int32_t *force, int32_t what) {
    (void)force;
    return mb_in_range(what, 0, SHOWN_COUNT) ? 1 : -1;
}

static int show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what, double *y) {
    const double x = mb_joint_coordinate(m, force, t, q);
    *y = what == SHOWN_EFFORT ? effort(m, force, t, x, mb_joint_rate(m, force, t, v)) : beyond(m->p + force[MB_FORCE_P], x);
    return BL_OK;
}

const mb_element mb_element_stop = {.name = "stop", .on_coordinate = true, .energy_kind = MB_ENERGY_CONTACT, .check = check, .load = load,
                                    .energy = energy, .width = width, .show = show};
