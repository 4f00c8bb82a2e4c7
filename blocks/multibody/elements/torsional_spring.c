/* A spring, damper and actuator on an angle q of a joint: the torque on the angle is -(k (q - q₀) + c q̇ + τ).
 *
 * P is q₀; k, c and τ are three laws of t, q and q̇ in a row. */
#include "blocks/multibody/kernel/multibody.h"

BL_SHARED enum {
    TORSION_SHOWN_ANGLE,
    TORSION_SHOWN_RATE,
    TORSION_SHOWN_TORQUE,
    TORSION_SHOWN_DEFLECTION,
    TORSION_SHOWN_COUNT
};

static bool torsion_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    (void)tally;
    return mb_check_coordinate(b, force) && mb_check_numbers(b, force, 1) && mb_check_laws(b, force, 3);
}

static bool torsion_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    const int32_t law = force[MB_FORCE_LAW];
    return mb_allow_law(fault, m, law, "stiffness") && mb_allow_law(fault, m, law + 1, "damping") &&
           mb_allow_law(fault, m, law + 2, "torque") &&
           mb_allow(fault, "free_angle", m->p[force[MB_FORCE_P]], MB_ALLOWED_FINITE);
}

static double torsion_effort(const mb_view *m, const int32_t *force, double t, double x, double v) {
    return -mb_spring_effort(m, force, t, x, v);
}

static void torsion_load(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                         double *joint_force) {
    mb_push_coordinate(m, force, t, q, v, torsion_effort, joint_force);
}

static double torsion_energy(const mb_view *m, const int32_t *force, double t, const double *q) {
    return mb_spring_energy(m, force, mb_joint_coordinate(m, force, t, q));
}

static double torsion_actuator_power(const mb_view *m, const int32_t *force, double t, const double *q,
                                     const double *v) {
    const double rate = mb_joint_rate(m, force, t, v);
    return -mb_coefficient(m, force[MB_FORCE_LAW] + 2, t, mb_joint_coordinate(m, force, t, q), rate) * rate;
}

static int32_t torsion_width(const int32_t *force, int32_t what) {
    (void)force;
    return mb_in_range(what, 0, TORSION_SHOWN_COUNT) ? 1 : -1;
}

static int torsion_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what,
                        double *y) {
    const double x = mb_joint_coordinate(m, force, t, q), rate = mb_joint_rate(m, force, t, v);
    switch (what) {
        case TORSION_SHOWN_ANGLE: *y = x; break;
        case TORSION_SHOWN_RATE: *y = rate; break;
        case TORSION_SHOWN_TORQUE: *y = torsion_effort(m, force, t, x, rate); break;
        default: *y = x - m->p[force[MB_FORCE_P]];
    }
    return BL_OK;
}

const mb_element mb_element_torsional_spring = {.law_count = 3,
                                                .on_coordinate = true,
                                                .energy_kind = MB_ENERGY_ELASTIC,
                                                .check = torsion_check,
                                                .sound = torsion_sound,
                                                .load = torsion_load,
                                                .energy = torsion_energy,
                                                .source = torsion_actuator_power,
                                                .width = torsion_width,
                                                .show = torsion_show};
