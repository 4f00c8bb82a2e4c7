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

static bool stop_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    const double *p = m->p + force[MB_FORCE_P];
    return mb_allow(fault, "lower", p[STOP_LOWER], MB_ALLOWED_NOT_NAN) &&
           mb_allow(fault, "upper", p[STOP_UPPER], MB_ALLOWED_NOT_NAN) &&
           mb_allow_below(fault, "lower", p[STOP_LOWER], "upper", p[STOP_UPPER]) &&
           mb_allow(fault, "stiffness", p[STOP_STIFFNESS], MB_ALLOWED_NOT_NEGATIVE) &&
           mb_allow(fault, "damping", p[STOP_DAMPING], MB_ALLOWED_NOT_NEGATIVE);
}

/* How far a coordinate is beyond its stops: above the upper one positive, below the lower one negative. */
static double stop_beyond(const double *p, double x) {
    return x > p[STOP_UPPER] ? x - p[STOP_UPPER] : x < p[STOP_LOWER] ? x - p[STOP_LOWER] : 0.0;
}

/* Modes: which stop it touches, 1 the upper and -1 the lower one, and whether that pushes. */
enum { STOP_MODE_SIDE, STOP_MODE_PUSHES, STOP_MODES };
_Static_assert((int)STOP_MODES <= (int)MB_ELEMENT_MODES, "room for its modes");

static double stop_side(const bl_modes *modes, const double *p, double x) {
    const double lower = p[STOP_LOWER], upper = p[STOP_UPPER];
    const double side = bl_keep_mode(modes, STOP_MODE_SIDE, x > upper ? 1.0 : x < lower ? -1.0 : 0.0);
    if (modes->mode)
        modes->crossing[STOP_MODE_SIDE] = side > 0.0 ? x - upper : side < 0.0 ? lower - x : fmin(x - lower, upper - x);
    return side;
}

static double stop_effort(const mb_view *m, const int32_t *force, double t, double x, double v) {
    (void)t;
    const bl_modes modes = mb_element_modes(m, force);
    const double *p = m->p + force[MB_FORCE_P], side = stop_side(&modes, p, x);
    if (side == 0.0) {
        if (modes.mode) modes.crossing[STOP_MODE_PUSHES] = 0.0;
        return 0.0;
    }
    const double effort = -p[STOP_STIFFNESS] * (x - (side > 0.0 ? p[STOP_UPPER] : p[STOP_LOWER])) - p[STOP_DAMPING] * v;
    return bl_decide(&modes, STOP_MODE_PUSHES, side * effort <= 0.0, -side * effort) ? effort : 0.0;
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
                                    .crossing_count = STOP_MODES,
                                    .check = stop_check,
                                    .sound = stop_sound,
                                    .load = stop_load,
                                    .energy = stop_energy,
                                    .width = stop_width,
                                    .show = stop_show};
