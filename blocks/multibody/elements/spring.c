/* A spring, damper and actuator between two markers.
 *
 *     F = k (l - l₀) + c l̇ + f        tension: marker i is pulled toward j, and j toward i
 *
 * Of the force along the line only the components in EXTRA act, in world axes. P is l₀; k, c and f are three laws of t, l and l̇ in a row. */
#include "blocks/multibody/kernel/multibody.h"

BL_SHARED enum {
    SPRING_SHOWN_LENGTH,
    SPRING_SHOWN_RATE,
    SPRING_SHOWN_FORCE,
    SPRING_SHOWN_DEFLECTION,
    SPRING_SHOWN_COUNT
};

typedef struct {
    double P_i[3], P_j[3], d[3], length, rate, along; /* `along`: Σ over the components that act of d · ḋ / length */
} mb_spring;

static bool spring_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    (void)tally;
    return mb_check_markers(b, force) && mb_check_numbers(b, force, 1) && mb_check_laws(b, force, 3) &&
           mb_in_range(force[MB_FORCE_EXTRA], 0, 8);
}

static bool spring_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    const int32_t law = force[MB_FORCE_LAW];
    return mb_allow_law(fault, m, law, "stiffness") && mb_allow_law(fault, m, law + 1, "damping") &&
           mb_allow_law(fault, m, law + 2, "force") &&
           mb_allow(fault, "free_length", m->p[force[MB_FORCE_P]], MB_ALLOWED_NOT_NEGATIVE);
}

/* Returns whether its length is nonzero; otherwise the direction is undefined and the force is 0. */
static bool spring_see(const mb_view *m, const int32_t *force, double t, mb_spring *s) {
    double V_i[3], V_j[3], dd[3];
    mb_marker_motion(m, force[MB_FORCE_I], t, s->P_i, V_i, NULL);
    mb_marker_motion(m, force[MB_FORCE_J], t, s->P_j, V_j, NULL);
    mb_sub(s->P_j, s->P_i, s->d);
    mb_sub(V_j, V_i, dd);
    s->length = sqrt(mb_dot(s->d, s->d));
    s->rate = s->along = 0.0;
    if (s->length <= 1e-12) return false;
    s->rate = mb_dot(s->d, dd) / s->length;
    for (int k = 0; k < 3; k++)
        if (force[MB_FORCE_EXTRA] >> k & 1) s->along += s->d[k] * dd[k] / s->length;
    return true;
}

static void spring_load(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                        double *joint_force) {
    (void)q, (void)v, (void)joint_force;
    mb_spring s;
    double F[3], opposite[3];
    if (!spring_see(m, force, t, &s)) return;
    const double tension = mb_spring_effort(m, force, t, s.length, s.rate);
    for (int k = 0; k < 3; k++) {
        F[k] = force[MB_FORCE_EXTRA] >> k & 1 ? tension * s.d[k] / s.length : 0.0;
        opposite[k] = -F[k];
    }
    mb_push(m, force[MB_FORCE_I], s.P_i, F, NULL);
    mb_push(m, force[MB_FORCE_J], s.P_j, opposite, NULL);
}

static double spring_energy(const mb_view *m, const int32_t *force, double t, const double *q) {
    (void)q;
    double P_i[3], P_j[3], d[3];
    mb_marker_motion(m, force[MB_FORCE_I], t, P_i, NULL, NULL);
    mb_marker_motion(m, force[MB_FORCE_J], t, P_j, NULL, NULL);
    mb_sub(P_j, P_i, d);
    return mb_spring_energy(m, force, sqrt(mb_dot(d, d)));
}

/* The third law is the actuator, which pulls. */
static double spring_actuator_power(const mb_view *m, const int32_t *force, double t, const double *q,
                                    const double *v) {
    (void)q, (void)v;
    mb_spring s;
    if (!spring_see(m, force, t, &s)) return 0.0;
    return -mb_coefficient(m, force[MB_FORCE_LAW] + 2, t, s.length, s.rate) * s.along;
}

static int32_t spring_width(const int32_t *force, int32_t what) {
    (void)force;
    return mb_in_range(what, 0, SPRING_SHOWN_COUNT) ? 1 : -1;
}

static int spring_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what,
                       double *y) {
    (void)q, (void)v;
    mb_spring s;
    const bool acts = spring_see(m, force, t, &s);
    switch (what) {
        case SPRING_SHOWN_LENGTH: *y = s.length; break;
        case SPRING_SHOWN_RATE: *y = s.rate; break;
        case SPRING_SHOWN_FORCE: *y = acts ? mb_spring_effort(m, force, t, s.length, s.rate) : 0.0; break;
        default: *y = s.length - m->p[force[MB_FORCE_P]];
    }
    return BL_OK;
}

const mb_element mb_element_spring = {.law_count = 3,
                                      .energy_kind = MB_ENERGY_ELASTIC,
                                      .check = spring_check,
                                      .sound = spring_sound,
                                      .load = spring_load,
                                      .energy = spring_energy,
                                      .source = spring_actuator_power,
                                      .width = spring_width,
                                      .show = spring_show};
