/* Contacts of a pin in a hole, in a plane: revolutes with clearance.
 *
 * The marker of the pin is I, that of the hole J; LAW is the contact law, EXTRA the index of its memory. With
 * c = pin center less hole center, n = c / |c| and t = z × n, the surfaces overlap by δ = |c| - clearance. The pin feels -N n - T t
 * where its surface touches, the hole the opposite at the same point, so that no momentum is made. Compliant laws:
 *     N = K δⁿ (1 + D δ̇) ≥ 0,   T = μ N tanh(slip / slip_speed)
 * with D a number (Hunt–Crossley) or 3 (1 - e²) / (4 δ̇₀) (Lankarani–Nikravesh). δ̇₀, the approach speed at the start of a contact, is stored
 * between steps: of the last step before it, or the fastest approach since. It changes after whole steps only, so that slopes are
 * functions of the state, and it is part of the memory that is saved and rolled back. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

static int32_t contact_law(const int32_t *force) { return force[MB_FORCE_LAW] & (MB_CONTACT_PIN_WEARS - 1); }

int32_t mb_contact_numbers(const int32_t *force) {
    switch (contact_law(force)) {
        case MB_CONTACT_HUNT_CROSSLEY: return MB_PLAY_DAMPING + 1;
        case MB_CONTACT_LANKARANI_NIKRAVESH: return MB_PLAY_SLOWEST + 1;
        default: return MB_PLAY_RIGID_TANGENTIAL + 1;
    }
}

static bool contact_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    const int64_t number = tally->contacts++, p_count = b->p_count;
    if (b->i[MB_PLANAR] == 0 || !mb_check_markers(b, force) || !mb_check_numbers(b, force, 1)) return false;
    const int32_t sections = mb_wear_sections(force), wear = sections == 0         ? 0
                                                             : mb_wears_pin(force) ? MB_WEAR_PIN_NUMBERS
                                                                                   : MB_WEAR_NUMBERS;
    if (sections != 0 &&
        (!mb_in_range(sections, MB_WEAR_FEWEST, MB_WEAR_MOST + 1) || contact_law(force) == MB_CONTACT_RIGID))
        return false;
    if (sections == 0 && mb_wears_pin(force)) return false;
    return contact_law(force) < MB_CONTACT_LAWS && force[MB_FORCE_EXTRA] == number &&
           force[MB_FORCE_P] <= p_count - mb_contact_numbers(force) - wear;
}

static bool contact_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    const double *p = m->p + force[MB_FORCE_P], *wear = p + mb_contact_numbers(force);
    if (!(mb_allow(fault, "clearance", p[MB_PLAY_CLEARANCE], MB_ALLOWED_POSITIVE) &&
          mb_allow(fault, "pin_radius", p[MB_PLAY_PIN_RADIUS], MB_ALLOWED_POSITIVE) &&
          mb_allow(fault, "friction", p[MB_PLAY_FRICTION], MB_ALLOWED_NOT_NEGATIVE)))
        return false;
    if (contact_law(force) == MB_CONTACT_RIGID)
        return mb_allow(fault, "restitution", p[MB_PLAY_RIGID_RESTITUTION], MB_ALLOWED_FRACTION) &&
               mb_allow(fault, "tangential_restitution", p[MB_PLAY_RIGID_TANGENTIAL], MB_ALLOWED_SIGNED_FRACTION);
    if (!(mb_allow(fault, "slip_speed", p[MB_PLAY_SLIP_SPEED], MB_ALLOWED_POSITIVE) &&
          mb_allow(fault, "stiffness", p[MB_PLAY_STIFFNESS], MB_ALLOWED_POSITIVE) &&
          mb_allow(fault, "exponent", p[MB_PLAY_EXPONENT], MB_ALLOWED_FROM_ONE)))
        return false;
    if (mb_wear_sections(force) > 0 &&
        !(mb_allow(fault, "wear_coefficient", wear[MB_WEAR_COEFFICIENT], MB_ALLOWED_NOT_NEGATIVE) &&
          mb_allow(fault, "hardness", wear[MB_WEAR_HARDNESS], MB_ALLOWED_POSITIVE) &&
          mb_allow(fault, "length", wear[MB_WEAR_LENGTH], MB_ALLOWED_POSITIVE)))
        return false;
    if (mb_wears_pin(force) &&
        !(mb_allow(fault, "pin_wear_coefficient", wear[MB_WEAR_PIN_COEFFICIENT], MB_ALLOWED_NOT_NEGATIVE) &&
          mb_allow(fault, "pin_hardness", wear[MB_WEAR_PIN_HARDNESS], MB_ALLOWED_POSITIVE)))
        return false;
    if (contact_law(force) == MB_CONTACT_HUNT_CROSSLEY)
        return mb_allow(fault, "damping", p[MB_PLAY_DAMPING], MB_ALLOWED_NOT_NEGATIVE);
    return mb_allow(fault, "restitution", p[MB_PLAY_RESTITUTION], MB_ALLOWED_FRACTION) &&
           mb_allow(fault, "slowest_impact", p[MB_PLAY_SLOWEST], MB_ALLOWED_POSITIVE);
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

/* How far the pin is turned in its hole of the axes R. */
static double contact_turned(const mb_view *m, const int32_t *force, const double *R) {
    double axes[9], x[3], seen[3];
    mb_marker_axes(m, force[MB_FORCE_I], axes);
    mb_column(axes, 0, x);
    mb_rotate_back(R, x, seen);
    return atan2(seen[1], seen[0]);
}

/* Gap, its slope and n, from the offset in world axes and the axes R of the hole. */
static void contact_direction(const mb_view *m, const int32_t *force, const double *R, mb_contact *at) {
    if (mb_wear_sections(force) > 0) {
        double seen[3];
        mb_rotate_back(R, at->offset, seen);
        at->turned = mb_wears_pin(force) ? contact_turned(m, force, R) : 0.0;
        mb_wear_see(m, force, seen, at->turned, &at->gap, &at->slope, at->n, &at->arm);
        mb_rotate(R, at->n, at->n);
        return;
    }
    const double away = sqrt(mb_dot(at->offset, at->offset));
    memset(at->n, 0, sizeof at->n);
    at->n[0] = 1.0; /* in the middle any direction serves: nothing touches */
    for (int k = 0; k < 3 && away > 0.0; k++) at->n[k] = at->offset[k] / away;
    at->gap = m->p[force[MB_FORCE_P] + MB_PLAY_CLEARANCE] - away;
    at->slope = 1.0;
    at->arm = 0.0;
}

void mb_contact_see(const mb_view *m, const int32_t *force, double t, mb_contact *at) {
    const int32_t pin = force[MB_FORCE_I], hole = force[MB_FORCE_J];
    const double *p = m->p + force[MB_FORCE_P], radius = p[MB_PLAY_PIN_RADIUS];
    double P_hole[3], V_pin[3], V_hole[3], rate[3], R[9];
    mb_marker_motion(m, pin, t, at->P, V_pin, NULL);
    mb_marker_motion(m, hole, t, P_hole, V_hole, NULL);
    mb_sub(at->P, P_hole, at->offset);
    mb_sub(V_pin, V_hole, rate);
    mb_marker_axes(m, hole, R);
    contact_direction(m, force, R, at);
    const double across[3] = {-at->n[1], at->n[0], 0.0}, spin = contact_spin(m, hole),
                 reach = mb_dot(at->n, at->offset);
    mb_copy(across, at->t);
    mb_axpy(radius, at->n, at->P);
    at->approach = mb_dot(at->n, rate);
    if (mb_wear_sections(force) > 0) /* a worn hole rotates under the pin */
        at->approach = at->slope * (at->approach + spin * (at->n[0] * at->offset[1] - at->n[1] * at->offset[0]));
    if (mb_wears_pin(force)) { /* and the worn pin turns in it: where it is not round, N has an arm */
        at->approach -= at->slope * at->arm * (contact_spin(m, pin) - spin);
        mb_axpy(at->arm, at->t, at->P);
    }
    /* Both surfaces are taken where the force acts. */
    at->slip =
        mb_dot(at->t, rate) + radius * contact_spin(m, pin) - (radius + fmax(reach, p[MB_PLAY_CLEARANCE])) * spin;
    mb_rotate_back(R, at->offset, at->offset);
    at->N = at->T = 0.0;
    at->touches = at->gap <= 0.0;
}

static double *contact_memory(const mb_view *m, const int32_t *force) {
    return m->contacts + force[MB_FORCE_EXTRA] * MB_CONTACT_MEMORY;
}

/* Modes of a compliant contact: whether it touches, and whether it pushes. */
enum { CONTACT_MODE_TOUCHES, CONTACT_MODE_PUSHES, CONTACT_MODES };
_Static_assert((int)CONTACT_MODES <= (int)MB_ELEMENT_MODES, "room for its modes");

/* δⁿ; while the mode is kept, beyond the border as smooth as there. */
static double contact_depth(double gap, double exponent) {
    return exponent == 1.0 ? -gap : pow(fmax(-gap, 0.0), exponent);
}

/* The compliant laws. */
void mb_contact_press(const mb_view *m, const int32_t *force, mb_contact *at) {
    const double *p = m->p + force[MB_FORCE_P];
    if (force[MB_FORCE_LAW] == MB_CONTACT_RIGID) return;
    const bl_modes modes = mb_element_modes(m, force);
    if (!bl_decide(&modes, CONTACT_MODE_TOUCHES, at->gap < 0.0, -at->gap)) {
        if (modes.mode) modes.crossing[CONTACT_MODE_PUSHES] = 0.0;
        return;
    }
    double damping = p[MB_PLAY_DAMPING];
    if (contact_law(force) == MB_CONTACT_LANKARANI_NIKRAVESH) {
        const double e = p[MB_PLAY_RESTITUTION],
                     began = fmax(contact_memory(m, force)[MB_CONTACT_BEGAN], p[MB_PLAY_SLOWEST]);
        damping = 0.75 * (1.0 - e * e) / began;
    }
    const double damped = 1.0 + damping * at->approach;
    if (!bl_decide(&modes, CONTACT_MODE_PUSHES, damped >= 0.0, damped)) return;
    at->N = at->slope * (p[MB_PLAY_STIFFNESS] * contact_depth(at->gap, p[MB_PLAY_EXPONENT]) * damped);
    at->T = p[MB_PLAY_FRICTION] * at->N * tanh(at->slip / p[MB_PLAY_SLIP_SPEED]);
}

static void contact_force(const mb_contact *at, double *F) {
    for (int k = 0; k < 3; k++) F[k] = -at->N * at->n[k] - at->T * at->t[k];
}

static void contact_load(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                         double *joint_force) {
    (void)q, (void)v, (void)joint_force;
    mb_contact at;
    double F[3];
    if (force[MB_FORCE_LAW] == MB_CONTACT_RIGID)
        return; /* a constraint: blocks/multibody/kernel/constraints/rigid_contact.c */
    mb_contact_see(m, force, t, &at);
    mb_contact_press(m, force, &at);
    if (at.N == 0.0) return;
    contact_force(&at, F);
    const double opposite[3] = {-F[0], -F[1], -F[2]};
    mb_push(m, force[MB_FORCE_I], at.P, F, NULL);
    mb_push(m, force[MB_FORCE_J], at.P, opposite, NULL);
}

static double contact_energy(const mb_view *m, const int32_t *force, double t, const double *q) {
    (void)q;
    const double *p = m->p + force[MB_FORCE_P];
    mb_contact at;
    if (force[MB_FORCE_LAW] == MB_CONTACT_RIGID) return 0.0;
    mb_contact_see(m, force, t, &at);
    return at.gap < 0.0 ? p[MB_PLAY_STIFFNESS] * pow(-at.gap, p[MB_PLAY_EXPONENT] + 1.0) / (p[MB_PLAY_EXPONENT] + 1.0)
                        : 0.0;
}

double mb_contact_loss(const mb_view *m, const int32_t *force, const mb_contact *at) {
    const double *p = m->p + force[MB_FORCE_P], friction_loss = at->T * at->slip;
    if (force[MB_FORCE_LAW] == MB_CONTACT_RIGID || at->gap >= 0.0) return friction_loss;
    return friction_loss +
           (at->N / at->slope - p[MB_PLAY_STIFFNESS] * pow(-at->gap, p[MB_PLAY_EXPONENT])) * at->approach;
}

static void contact_keep(mb_view *m, const int32_t *force, double t) {
    if (force[MB_FORCE_LAW] == MB_CONTACT_RIGID) return;
    mb_contact at;
    mb_contact_see(m, force, t, &at);
    const bl_modes modes = mb_element_modes(m, force);
    mb_count_contact(contact_memory(m, force), modes.mode ? modes.mode[CONTACT_MODE_TOUCHES] != 0.0 : at.gap < 0.0, t);
    double *began = &contact_memory(m, force)[MB_CONTACT_BEGAN];
    *began = at.gap >= 0.0 ? at.approach : fmax(*began, at.approach);
    if (mb_wear_sections(force) == 0) return;
    mb_contact_press(m, force, &at);
    mb_wear_keep(m, force, t, &at);
}

/* With the forces of rigid contacts, where accelerations are known. */
static void contact_see_forces(const mb_view *m, const int32_t *force, double t, mb_contact *at) {
    mb_contact_see(m, force, t, at);
    mb_contact_press(m, force, at);
    if (m->solved) mb_rigid_force(m, mb_element_number(m, force), at);
}

static double contact_loss(mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    (void)q, (void)v;
    mb_contact at;
    contact_see_forces(m, force, t, &at);
    return mb_contact_loss(m, force, &at);
}

/* The normal force of a rigid contact does no work. */
static double contact_power(mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    return force[MB_FORCE_LAW] == MB_CONTACT_RIGID ? -contact_loss(m, force, t, q, v)
                                                   : mb_pushed_power(m, force, t, q, v);
}

static int32_t contact_width(const int32_t *force, int32_t what) {
    if (!mb_in_range(what, 0, MB_CONTACT_QUANTITIES)) return -1;
    const bool of_pin = what == MB_SHOWN_PIN_WEAR || what == MB_SHOWN_PIN_WORN_VOLUME;
    if ((what == MB_SHOWN_WEAR || what == MB_SHOWN_WORN_VOLUME || of_pin) && mb_wear_sections(force) == 0)
        return -1; /* there is none */
    if (of_pin && !mb_wears_pin(force)) return -1;
    return what == MB_SHOWN_WEAR || what == MB_SHOWN_PIN_WEAR ? mb_wear_sections(force)
           : what == MB_CONTACT_OFFSET                        ? 2
           : what == MB_CONTACT_FORCE                         ? 3
                                                              : 1;
}

static int contact_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what,
                        double *y) {
    (void)q, (void)v;
    mb_contact at;
    contact_see_forces(m, force, t, &at);
    switch (what) {
        case MB_CONTACT_OFFSET: memcpy(y, at.offset, 2 * sizeof(double)); break;
        case MB_CONTACT_GAP: *y = at.gap; break;
        case MB_CONTACT_FORCE: contact_force(&at, y); break;
        case MB_CONTACT_NORMAL_FORCE: *y = at.N; break;
        case MB_CONTACT_ANGLE: *y = contact_angle(m, force[MB_FORCE_J], at.n); break;
        case MB_CONTACT_ANGLE_ON_PIN: *y = contact_angle(m, force[MB_FORCE_I], at.n); break;
        case MB_CONTACT_SLIP: *y = at.slip; break;
        case MB_CONTACT_TOUCHES: *y = at.touches; break;
        case MB_SHOWN_WEAR:
        case MB_SHOWN_PIN_WEAR: mb_wear_show(m, force, what == MB_SHOWN_PIN_WEAR, y); break;
        case MB_SHOWN_WORN_VOLUME:
        case MB_SHOWN_PIN_WORN_VOLUME: *y = mb_worn_volume(m, force, what == MB_SHOWN_PIN_WORN_VOLUME); break;
        case MB_SHOWN_CONTACT_LOSS: *y = mb_contact_loss(m, force, &at); break;
        default: *y = contact_memory(m, force)[MB_CONTACT_IMPACTS + what - MB_SHOWN_IMPACTS];
    }
    return BL_OK;
}

static bool contact_needs_solution(const int32_t *force, int32_t what) {
    return force[MB_FORCE_LAW] == MB_CONTACT_RIGID &&
           (what == MB_SHOWN_POWER || what == MB_CONTACT_FORCE || what == MB_CONTACT_NORMAL_FORCE ||
            what == MB_CONTACT_TOUCHES || what == MB_SHOWN_CONTACT_LOSS);
}

const mb_element mb_element_clearance_revolute = {.energy_kind = MB_ENERGY_CONTACT,
                                                  .crossing_count = CONTACT_MODES,
                                                  .check = contact_check,
                                                  .sound = contact_sound,
                                                  .start = mb_wear_start,
                                                  .keep = contact_keep,
                                                  .load = contact_load,
                                                  .energy = contact_energy,
                                                  .loss = contact_loss,
                                                  .power = contact_power,
                                                  .width = contact_width,
                                                  .show = contact_show,
                                                  .needs_solution = contact_needs_solution};
