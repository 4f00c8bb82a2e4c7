/* Contacts of a pin in a hole, in a plane: revolutes with clearance.
 *
 * The marker of the pin is I, that of the hole J; LAW says how the surfaces press, EXTRA which piece of memory is theirs. With
 * c = pin centre less hole centre, n = c / |c| and t = z × n, the surfaces overlap by δ = |c| - clearance. The pin feels -N n - T t
 * where its surface touches, the hole the opposite at the same point, so that no momentum is made. Compliant laws:
 *     N = K δⁿ (1 + D δ̇) ≥ 0,   T = μ N tanh(slip / slip_speed)
 * with D a number (Hunt–Crossley) or 3 (1 - e²) / (4 δ̇₀) (Lankarani–Nikravesh). δ̇₀, the speed at which a contact began, is kept
 * between steps: of the last step before it, or the fastest approach since. It changes after whole steps only, so that slopes are
 * functions of the state, and it is part of the memory that is saved and rolled back. */
#include <string.h>

#include "blocks/multibody/multibody.h"

static int32_t contact_numbers(int32_t law) {
    return law == MB_CONTACT_HUNT_CROSSLEY ? MB_PLAY_DAMPING + 1 : law == MB_CONTACT_LANKARANI_NIKRAVESH ? MB_PLAY_SLOWEST + 1 : MB_PLAY_RIGID_TANGENTIAL + 1;
}

bool mb_contact_check(const int32_t *force, int64_t p_count, int64_t number) {
    const int32_t law = force[MB_FORCE_LAW];
    return law >= 0 && law < MB_CONTACT_LAWS && force[MB_FORCE_EXTRA] == number &&
           force[MB_FORCE_P] <= p_count - contact_numbers(law);
}

static bool within(double value, double low, double high) { return value >= low && value <= high; }

bool mb_contact_sound(const mb_view *m, const int32_t *force) {
    const double *p = m->p + force[MB_FORCE_P];
    if (!(p[MB_PLAY_CLEARANCE] > 0.0 && p[MB_PLAY_PIN_RADIUS] > 0.0 && p[MB_PLAY_FRICTION] >= 0.0)) return false;
    if (force[MB_FORCE_LAW] == MB_CONTACT_RIGID)
        return within(p[MB_PLAY_RIGID_RESTITUTION], 0.0, 1.0) && within(p[MB_PLAY_RIGID_TANGENTIAL], -1.0, 1.0);
    if (!(p[MB_PLAY_STIFFNESS] > 0.0 && p[MB_PLAY_EXPONENT] >= 1.0 && p[MB_PLAY_SLIP_SPEED] > 0.0)) return false;
    return force[MB_FORCE_LAW] == MB_CONTACT_HUNT_CROSSLEY ? p[MB_PLAY_DAMPING] >= 0.0
                                                           : within(p[MB_PLAY_RESTITUTION], 0.0, 1.0) && p[MB_PLAY_SLOWEST] > 0.0;
}

static double contact_spin(const mb_view *m, int32_t marker) {
    const int32_t link = m->markers[marker * MB_MARKER_FIELDS + MB_MARKER_LINK];
    return link >= 0 ? m->link[link].w[2] : 0.0;
}

static double contact_angle(const mb_view *m, int32_t marker, const double *direction) {
    double R[9], seen[3];
    mb_marker_axes(m, marker, R);
    mb_rotate_back(R, direction, seen);
    return atan2(seen[1], seen[0]);
}

void mb_contact_see(const mb_view *m, const int32_t *force, double t, mb_contact *at) {
    const int32_t pin = force[MB_FORCE_I], hole = force[MB_FORCE_J];
    const double *p = m->p + force[MB_FORCE_P], radius = p[MB_PLAY_PIN_RADIUS];
    double P_hole[3], V_pin[3], V_hole[3], rate[3], R[9];
    mb_marker_motion(m, pin, t, at->P, V_pin, NULL);
    mb_marker_motion(m, hole, t, P_hole, V_hole, NULL);
    mb_sub(at->P, P_hole, at->offset);
    mb_sub(V_pin, V_hole, rate);
    const double away = sqrt(mb_dot(at->offset, at->offset));
    memset(at->n, 0, sizeof at->n);
    at->n[0] = 1.0; /* in the middle any direction serves: nothing touches */
    for (int k = 0; k < 3 && away > 0.0; k++) at->n[k] = at->offset[k] / away;
    const double across[3] = {-at->n[1], at->n[0], 0.0};
    mb_copy(across, at->t);
    mb_axpy(radius, at->n, at->P);
    at->gap = p[MB_PLAY_CLEARANCE] - away;
    at->approach = mb_dot(at->n, rate);
    /* Both surfaces are taken where the force acts. */
    at->slip = mb_dot(at->t, rate) + radius * contact_spin(m, pin) - (radius + fmax(away, p[MB_PLAY_CLEARANCE])) * contact_spin(m, hole);
    mb_marker_axes(m, hole, R);
    mb_rotate_back(R, at->offset, at->offset);
    at->N = at->T = 0.0;
    at->touches = at->gap <= 0.0;
}

static double *contact_memory(const mb_view *m, const int32_t *force) { return m->contacts + force[MB_FORCE_EXTRA] * MB_CONTACT_MEMORY; }

/* The compliant laws. */
void mb_contact_press(const mb_view *m, const int32_t *force, mb_contact *at) {
    const double *p = m->p + force[MB_FORCE_P];
    if (at->gap >= 0.0 || force[MB_FORCE_LAW] == MB_CONTACT_RIGID) return;
    double damping = p[MB_PLAY_DAMPING];
    if (force[MB_FORCE_LAW] == MB_CONTACT_LANKARANI_NIKRAVESH) {
        const double e = p[MB_PLAY_RESTITUTION], began = fmax(contact_memory(m, force)[MB_CONTACT_BEGAN], p[MB_PLAY_SLOWEST]);
        damping = 0.75 * (1.0 - e * e) / began;
    }
    at->N = fmax(0.0, p[MB_PLAY_STIFFNESS] * pow(-at->gap, p[MB_PLAY_EXPONENT]) * (1.0 + damping * at->approach));
    at->T = p[MB_PLAY_FRICTION] * at->N * tanh(at->slip / p[MB_PLAY_SLIP_SPEED]);
}

static void contact_force(const mb_contact *at, double *F) {
    for (int k = 0; k < 3; k++) F[k] = -at->N * at->n[k] - at->T * at->t[k];
}

void mb_add_contact(const mb_view *m, const int32_t *force, double t) {
    mb_contact at;
    double F[3];
    if (force[MB_FORCE_LAW] == MB_CONTACT_RIGID) return; /* a constraint: rigid.c */
    mb_contact_see(m, force, t, &at);
    mb_contact_press(m, force, &at);
    if (at.N == 0.0) return;
    contact_force(&at, F);
    const double opposite[3] = {-F[0], -F[1], -F[2]};
    mb_push(m, force[MB_FORCE_I], at.P, F, NULL);
    mb_push(m, force[MB_FORCE_J], at.P, opposite, NULL);
}

double mb_contact_energy(const mb_view *m, const int32_t *force, double t) {
    const double *p = m->p + force[MB_FORCE_P];
    mb_contact at;
    if (force[MB_FORCE_LAW] == MB_CONTACT_RIGID) return 0.0;
    mb_contact_see(m, force, t, &at);
    return at.gap < 0.0 ? p[MB_PLAY_STIFFNESS] * pow(-at.gap, p[MB_PLAY_EXPONENT] + 1.0) / (p[MB_PLAY_EXPONENT] + 1.0) : 0.0;
}

double mb_contact_loss(const mb_view *m, const int32_t *force, const mb_contact *at) {
    const double *p = m->p + force[MB_FORCE_P], rubbed = at->T * at->slip;
    if (force[MB_FORCE_LAW] == MB_CONTACT_RIGID || at->gap >= 0.0) return rubbed;
    return rubbed + (at->N - p[MB_PLAY_STIFFNESS] * pow(-at->gap, p[MB_PLAY_EXPONENT])) * at->approach;
}

int32_t mb_contact_width(int32_t what) { return what == MB_CONTACT_OFFSET ? 2 : what == MB_CONTACT_FORCE ? 3 : 1; }

void mb_contact_show(const mb_view *m, const int32_t *force, const mb_contact *at, int32_t what, double *y) {
    switch (what) {
        case MB_CONTACT_OFFSET: memcpy(y, at->offset, 2 * sizeof(double)); break;
        case MB_CONTACT_GAP: *y = at->gap; break;
        case MB_CONTACT_FORCE: contact_force(at, y); break;
        case MB_CONTACT_NORMAL_FORCE: *y = at->N; break;
        case MB_CONTACT_ANGLE: *y = contact_angle(m, force[MB_FORCE_J], at->n); break;
        case MB_CONTACT_ANGLE_ON_PIN: *y = contact_angle(m, force[MB_FORCE_I], at->n); break;
        case MB_CONTACT_SLIP: *y = at->slip; break;
        case MB_CONTACT_TOUCHES: *y = at->touches; break;
        default: *y = contact_memory(m, force)[MB_CONTACT_IMPACTS + what - MB_SHOWN_IMPACTS];
    }
}

/* After each whole step, at the poses of its end. */
void mb_keep_contacts(mb_view *m, double t, const double *q, const double *v) {
    if (m->head[MB_CONTACTS] == 0) return;
    mb_positions(m, q);
    mb_velocities(m, v);
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = m->forces + n * MB_FORCE_FIELDS;
        if (force[MB_FORCE_TYPE] != MB_CONTACT || force[MB_FORCE_LAW] == MB_CONTACT_RIGID) continue;
        mb_contact at;
        mb_contact_see(m, force, t, &at);
        double *began = &contact_memory(m, force)[MB_CONTACT_BEGAN];
        *began = at.gap >= 0.0 ? at.approach : fmax(*began, at.approach);
    }
}
