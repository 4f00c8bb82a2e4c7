/* Coulomb friction with sticking in a joint, whose limit follows from the reaction of the joint.
 *
 * With the normal load N of joint_friction.c, the rate v of the coordinate, and r the radius of a pin, 1 for a slide:
 *     slides in direction d = ±1     effort = -coefficient N r d                          until d v < 0
 *     holds                          v = 0, effort f such that v' = 0                      until |f| > static N r, static ≥ coefficient
 *     yields                         f = -static N r d; others that hold keep v = 0        until these slide
 * Modes are those of stiction.c; all joints are solved together in sticking.c.
 *
 * I, J, EXTRA: its coordinate. LAW: its index among those that stick. P: its record among joint frictions, whose parameters are
 * coefficient, static, diameter, length; a planar joint has one of the last two. */
#include "blocks/multibody/elements/friction/friction.h"

enum { JOINT_STICTION_COEFFICIENT, JOINT_STICTION_STATIC };
BL_SHARED enum {
    JOINT_STICTION_SHOWN_EFFORT,
    JOINT_STICTION_SHOWN_LOAD,
    JOINT_STICTION_SHOWN_POWER_LOSS,
    JOINT_STICTION_SHOWN_STICKS,
    JOINT_STICTION_SHOWN_COUNT
};

static const double *joint_stiction_numbers(const mb_view *m, const int32_t *force) {
    return m->p + mb_joint_friction_record(m, force[MB_FORCE_P])[MB_JOINT_FRICTION_P];
}

static bool joint_stiction_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    if (!mb_check_coordinate(b, force) || !mb_in_range(force[MB_FORCE_P], 0, b->i[MB_JOINT_FRICTIONS]) ||
        force[MB_FORCE_LAW] != tally->stictions++)
        return false;
    const int32_t *record = b->i + b->i[MB_AT_JOINT_FRICTIONS] + force[MB_FORCE_P] * MB_JOINT_FRICTION_FIELDS;
    return record[MB_JOINT_FRICTION_KIND] != MB_JOINT_FRICTION_CYLINDRICAL &&
           record[MB_JOINT_FRICTION_KIND] != MB_JOINT_FRICTION_SPHERICAL;
}

static bool joint_stiction_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    const double *p = joint_stiction_numbers(m, force), least = p[JOINT_STICTION_COEFFICIENT];
    const bool planar = m->head[MB_PLANAR] != 0,
               guide = planar && mb_joint_friction_record(m, force[MB_FORCE_P])[MB_JOINT_FRICTION_KIND] ==
                                     MB_JOINT_FRICTION_PRISMATIC;
    return mb_allow(fault, "coefficient", least, MB_ALLOWED_NOT_NEGATIVE) &&
           mb_allow(fault, "static", p[JOINT_STICTION_STATIC], MB_ALLOWED_NOT_NEGATIVE) &&
           (least == p[JOINT_STICTION_STATIC] ||
            mb_allow_below(fault, "coefficient", least, "static", p[JOINT_STICTION_STATIC])) &&
           mb_allow(fault, guide ? "length" : "diameter", p[2], MB_ALLOWED_POSITIVE) &&
           (planar || mb_allow(fault, "length", p[3], MB_ALLOWED_POSITIVE));
}

double mb_joint_stiction_strength(const mb_view *m, const int32_t *force) {
    return joint_stiction_numbers(m, force)[JOINT_STICTION_STATIC] * mb_joint_friction_lever(m, force[MB_FORCE_P]);
}

double mb_joint_stiction_limit(const mb_view *m, const int32_t *force) {
    return mb_joint_stiction_strength(m, force) * m->friction.load[force[MB_FORCE_P]];
}

/* For a load of 1 N, while it does not hold. */
static double joint_stiction_unit_effort(const mb_view *m, const int32_t *force) {
    const double *p = joint_stiction_numbers(m, force);
    const bool yields = mb_stick_mode(m, force) == MB_YIELDS;
    return -p[yields ? JOINT_STICTION_STATIC : JOINT_STICTION_COEFFICIENT] *
           mb_joint_friction_lever(m, force[MB_FORCE_P]) * mb_stick_direction(m, force);
}

void mb_set_dry_efforts(const mb_view *m) {
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = mb_force_record(m, n), number = force[MB_FORCE_P];
        if (force[MB_FORCE_TYPE] != MB_JOINT_STICTION) continue;
        const bool slides = mb_joint_friction_record(m, number)[MB_JOINT_FRICTION_KIND] == MB_JOINT_FRICTION_PRISMATIC;
        m->friction.slide[number] = slides ? joint_stiction_unit_effort(m, force) : 0.0;
        m->friction.turn[number] = slides ? 0.0 : joint_stiction_unit_effort(m, force);
    }
}

/* Where it holds, its effort is 0 until the solution is known, and so is the load where it does not. */
static double joint_stiction_effort(const mb_view *m, const int32_t *force, double t, double x, double v) {
    (void)t, (void)x;
    const double direction = mb_stick_direction(m, force), load = m->friction.load[force[MB_FORCE_P]];
    const bl_modes modes = mb_element_modes(m, force);
    if (direction == 0.0) return m->stick.effort[force[MB_FORCE_LAW]];
    if (modes.mode) modes.crossing[0] = mb_stick_mode(m, force) == MB_YIELDS ? 1.0 : direction * v;
    return load == 0.0 ? 0.0 : load * joint_stiction_unit_effort(m, force);
}

static void joint_stiction_load(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                                double *joint_force) {
    mb_push_coordinate(m, force, t, q, v, joint_stiction_effort, joint_force);
}

static double joint_stiction_loss(mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    (void)q;
    if (mb_stick_mode(m, force) != MB_SLIPS) return 0.0;
    const double rate = mb_joint_rate(m, force, t, v);
    return -(joint_stiction_effort(m, force, t, 0.0, rate) * rate);
}

static int32_t joint_stiction_width(const int32_t *force, int32_t what) {
    (void)force;
    return mb_in_range(what, 0, JOINT_STICTION_SHOWN_COUNT) ? 1 : -1;
}

static bool joint_stiction_needs_solution(const int32_t *force, int32_t what) {
    (void)force;
    return what != JOINT_STICTION_SHOWN_STICKS;
}

static int joint_stiction_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                               int32_t what, double *y) {
    switch (what) {
        case JOINT_STICTION_SHOWN_EFFORT:
            *y = joint_stiction_effort(m, force, t, 0.0, mb_joint_rate(m, force, t, v));
            break;
        case JOINT_STICTION_SHOWN_LOAD: *y = m->friction.load[force[MB_FORCE_P]]; break;
        case JOINT_STICTION_SHOWN_POWER_LOSS: *y = joint_stiction_loss(m, force, t, q, v); break;
        default: *y = mb_stick_mode(m, force) != MB_SLIPS;
    }
    return BL_OK;
}

const mb_element mb_element_joint_stiction = {.on_coordinate = true,
                                              .crossing_count = 1,
                                              .check = joint_stiction_check,
                                              .sound = joint_stiction_sound,
                                              .load = joint_stiction_load,
                                              .loss = joint_stiction_loss,
                                              .width = joint_stiction_width,
                                              .needs_solution = joint_stiction_needs_solution,
                                              .show = joint_stiction_show};
