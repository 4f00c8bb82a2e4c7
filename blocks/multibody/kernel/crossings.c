/* Events of a mechanism: modes and zero-crossing functions of laws and elements, in steps of the diagram and in internal steps (steps/located.c).
 *
 * Each law and each element with branches has its modes, in the order of the tables. Evaluating it notes how far they are from
 * their borders, so that crossing functions need no code of their own: the loads of the elements concerned are evaluated, and the
 * laws that prescribe motion. A driver whose rate jumps changes the velocities at the event. */
#include "blocks/multibody/kernel/multibody.h"

int32_t mb_number_modes(const mb_view *m, int32_t *law_modes, int32_t *force_modes) {
    const int32_t laws = m->head[MB_LAWS], forces = m->head[MB_FORCES];
    int32_t used = 0;
    for (int32_t n = 0; n < laws; n++) {
        if (law_modes) law_modes[n] = used;
        used += mb_law_crossings(m, n);
    }
    if (law_modes) law_modes[laws] = used;
    for (int32_t n = 0; n < forces; n++) {
        if (force_modes) force_modes[n] = used;
        used += mb_element_of(mb_force_record(m, n))->crossing_count;
    }
    return used;
}

static bool crossings_of_law(const mb_view *m, int32_t law) { return m->law_modes[law + 1] > m->law_modes[law]; }

static bool crossings_of_element(const mb_view *m, const int32_t *force) {
    const mb_element *element = mb_element_of(force);
    bool found = element->crossing_count > 0;
    for (int32_t k = 0; k < element->law_count; k++) found = found || crossings_of_law(m, force[MB_FORCE_LAW] + k);
    return found;
}

int mb_note_crossings(mb_view *m, double t, const double *q, const double *v) {
    double rate, second;
    if (mb_sticks(m)) { /* the efforts that hold a joint need accelerations, and these all loads and laws */
        if (!mb_accelerations(m, t, q, v)) return 0;
        mb_note_sticking(m, t, v);
    }
    for (int32_t n = 0; n < m->head[MB_MOTION_LAWS]; n++)
        if (crossings_of_law(m, m->motion_laws[n])) (void)mb_law(m, m->motion_laws[n], t, &rate, &second);
    mb_positions(m, q);
    mb_velocities(m, v);
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = mb_force_record(m, n);
        if (crossings_of_element(m, force)) mb_element_of(force)->load(m, force, t, q, v, m->force);
    }
    return 1;
}

double mb_next_knot(const mb_view *m, double t) {
    double next = INFINITY;
    for (int32_t n = 0; n < m->head[MB_LAWS]; n++) next = fmin(next, mb_law_next(m, n, t));
    return next;
}

static const double MOTION_LAWS_PARTED =
    1e-9; /* of Φ, and of Φ̇ in parts of the speeds where these exceed 1: a jump, not rounding */

bool mb_motion_laws_part(mb_view *m, double t, const double *q, const double *v) {
    bool any = false;
    for (int32_t n = 0; n < m->head[MB_MOTION_LAWS]; n++) any = any || crossings_of_law(m, m->motion_laws[n]);
    if (!any || m->row_count == 0) return false;
    mb_kinematics(m, t, q, v);
    return mb_openness(m) > MOTION_LAWS_PARTED ||
           mb_largest(m->phi_rate, m->row_count) > MOTION_LAWS_PARTED * fmax(1.0, mb_largest(v, m->nv));
}
