/* Contact between two shapes, see pairs.c for its record. At each place of a compliant one the depth δ = -gap makes
 *     N = K δⁿ (1 + D δ̇) ≥ 0   along n,   T = μ N tanh(s / slip_speed)   against the slip s,
 * at the same point of both bodies, so that no momentum is made. D as in clearance.c. */

#include "blocks/multibody/elements/contact/touch.h"

/* Modes of each place: whether it touches, and whether it pushes. */
enum { TOUCH_PLACE_TOUCHES, TOUCH_PLACE_PUSHES, TOUCH_PLACE_MODES };
_Static_assert((int)TOUCH_PLACE_MODES *(int)TOUCH_MOST <= (int)MB_ELEMENT_MODES, "room for its modes");

/* A place with its forces: N along n and T, both on the first shape; `slip` is the speed of the surfaces along each other. A place that is
   `absent` cannot touch: it pushes nothing even while its mode is kept, and nothing approaches it. */
typedef struct {
    touch_place at;
    bool absent, touches;
    double approach, N, T[3], slip[3], speed;
} touch_contact;
typedef struct {
    touch_contact place[TOUCH_MOST];
    touch_give give[TOUCH_WORN_PLACES]; /* of shapes that wear */
    int32_t count, deepest;
} touch_state;

/* The rate of -gap of a place of shapes that wear, from the approach along n. */
static double touch_yield(const mb_view *m, const int32_t *force, const touch_give *give, double approach) {
    const int32_t first = mb_link_of(m, touch_first(force)), second = mb_link_of(m, touch_second(force));
    if (first >= 0) approach -= mb_dot(give->couple, m->link[first].w);
    if (second >= 0) approach += mb_dot(give->couple, m->link[second].w);
    return give->slope * approach;
}

/* All but forces. */
static void touch_see(const mb_view *m, const int32_t *force, double t, touch_state *s) {
    const double *p = m->p + force[MB_FORCE_P];
    touch_scene scene;
    touch_place places[TOUCH_MOST];
    const touch_shape *a = &scene.shape[0], *b = &scene.shape[1];
    mb_touch_scene(m, force, t, &scene);
    if (touch_wears(force)) {
        const touch_worn worn = mb_touch_worn(m, force);
        touch_pair_of(force)->wear->see(&worn, a, b, places, s->give);
    } else {
        mb_touch_places(force, &scene, places);
    }
    s->count = touch_places(force);
    s->deepest = 0;
    for (int32_t k = 0; k < s->count; k++) {
        touch_contact *c = &s->place[k];
        double of_b[3];
        c->at = places[k];
        mb_touch_velocity(m, touch_first(force), a, scene.V[0], c->at.P, c->slip);
        mb_touch_velocity(m, touch_second(force), b, scene.V[1], c->at.P, of_b);
        mb_axpy(-1.0, of_b, c->slip);
        c->approach = -mb_dot(c->at.n, c->slip);
        mb_axpy(c->approach, c->at.n, c->slip);
        c->speed = sqrt(mb_dot(c->slip, c->slip));
        if (touch_wears(force)) c->approach = touch_yield(m, force, &s->give[k], c->approach);
        c->N = c->T[0] = c->T[1] = c->T[2] = 0.0;
        if (c->at.gap < s->place[s->deepest].at.gap) s->deepest = k;
    }
    double off[3];
    mb_sub(a->P, b->P, off);
    const double size = touch_pair_of(force)->profiled ? scene.profile.r[0] : p[0];
    const double apart = size + sqrt(mb_dot(off, off)); /* shown where nothing can touch */
    for (int32_t k = 0; k < s->count; k++) {
        const int32_t twin = k + s->place[k].at.twin;
        const double mean = 0.5 * (s->place[k].approach + s->place[twin].approach);
        s->place[k].approach = s->place[twin].approach = mean;
        s->place[k].absent = isinf(s->place[k].at.gap);
        s->place[k].touches = !touch_is_rigid(force) && s->place[k].at.gap <= 0.0;
        if (s->place[k].absent) s->place[k].at.gap = apart, s->place[k].approach = 0.0;
    }
}

static double *touch_began(const mb_view *m, const int32_t *force, int32_t place) {
    return m->contacts + (force[MB_FORCE_EXTRA] + place) * MB_CONTACT_MEMORY + MB_CONTACT_BEGAN;
}

/* δⁿ; while the mode is kept, beyond the border as smooth as there. */
static double touch_power_of(double depth, double exponent) {
    if (exponent == 1.0) return depth;
    const double least = fmax(depth, 0.0);
    return exponent == 1.5 ? least * sqrt(least) : pow(least, exponent);
}

/* The forces of rigid contacts, where accelerations are known; shapes touch where their mode says so. */
static void touch_take_rigid(const mb_view *m, const int32_t *force, touch_state *s) {
    for (int32_t k = 0; k < s->count && m->solved; k++) {
        touch_contact *c = &s->place[k];
        const mb_rigid *r = m->rigid + force[MB_FORCE_EXTRA] + k;
        c->touches = r->mode != MB_FLIES && r->absent == 0.0;
        if (!c->touches) continue;
        c->N = r->N;
        for (int t = 0; t < 2; t++) mb_axpy(-r->friction[t], r->tangent[t], c->T);
    }
}

static void touch_press(const mb_view *m, const int32_t *force, touch_state *s) {
    if (touch_is_rigid(force)) {
        touch_take_rigid(m, force, s);
        return;
    }
    const double *p = mb_touch_law(m, force);
    const bl_modes all = mb_element_modes(m, force);
    for (int32_t k = 0; k < s->count; k++) {
        touch_contact *c = &s->place[k];
        const bl_modes modes =
            all.mode ? (bl_modes){all.mode + TOUCH_PLACE_MODES * k, all.crossing + TOUCH_PLACE_MODES * k, all.decision}
                     : all;
        if (!bl_decide(&modes, TOUCH_PLACE_TOUCHES, c->at.gap < 0.0, -c->at.gap) || c->absent) {
            if (modes.mode) modes.crossing[TOUCH_PLACE_PUSHES] = 0.0;
            continue;
        }
        double damping = p[TOUCH_LAW_DAMPING];
        if (touch_law(force) == MB_CONTACT_LANKARANI_NIKRAVESH) {
            const double e = p[TOUCH_LAW_RESTITUTION], began = fmax(*touch_began(m, force, k), p[TOUCH_LAW_SLOWEST]);
            damping = 0.75 * (1.0 - e * e) / began;
        }
        const double damped = 1.0 + damping * c->approach;
        if (!bl_decide(&modes, TOUCH_PLACE_PUSHES, damped >= 0.0, damped)) continue;
        c->N = p[TOUCH_LAW_STIFFNESS] * touch_power_of(-c->at.gap, p[TOUCH_LAW_EXPONENT]) * damped;
        if (touch_wears(force)) c->N *= s->give[k].slope;
        const double most = p[TOUCH_LAW_FRICTION] * c->N, slow = c->speed / p[TOUCH_LAW_SLIP_SPEED];
        const double part = slow > 1e-6 ? tanh(slow) / c->speed : 1.0 / p[TOUCH_LAW_SLIP_SPEED];
        mb_axpy(-most * part, c->slip, c->T);
    }
    for (int32_t k = TOUCH_PLACE_MODES * s->count; all.mode && k < mb_element_of(force)->crossing_count; k++)
        all.crossing[k] = 0.0;
}

static void touch_force(const touch_contact *c, double *F) {
    mb_copy(c->T, F);
    mb_axpy(c->N, c->at.n, F);
}

static void touch_load(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                       double *joint_force) {
    (void)q, (void)v, (void)joint_force;
    touch_state s;
    touch_see(m, force, t, &s);
    touch_press(m, force, &s);
    for (int32_t k = 0; k < s.count; k++) {
        double F[3];
        if (s.place[k].N == 0.0) continue;
        touch_force(&s.place[k], F);
        const double opposite[3] = {-F[0], -F[1], -F[2]};
        mb_push(m, touch_first(force), s.place[k].at.P, F, NULL);
        mb_push(m, touch_second(force), s.place[k].at.P, opposite, NULL);
        if (!touch_wears(force)) continue;
        double N[3] = {0.0, 0.0, 0.0};
        mb_axpy(s.place[k].N, s.give[k].couple, N);
        const double back[3] = {-N[0], -N[1], -N[2]};
        mb_push(m, touch_first(force), NULL, NULL, N);
        mb_push(m, touch_second(force), NULL, NULL, back);
    }
}

static double touch_energy(const mb_view *m, const int32_t *force, double t, const double *q) {
    (void)q;
    const double *p = mb_touch_law(m, force);
    double energy = 0.0;
    touch_state s;
    touch_see(m, force, t, &s);
    for (int32_t k = 0; k < s.count; k++) {
        const double depth = -s.place[k].at.gap;
        if (depth > 0.0)
            energy += p[TOUCH_LAW_STIFFNESS] * pow(depth, p[TOUCH_LAW_EXPONENT] + 1.0) / (p[TOUCH_LAW_EXPONENT] + 1.0);
    }
    return energy;
}

static double touch_state_loss(const mb_view *m, const int32_t *force, const touch_state *s) {
    const double *p = mb_touch_law(m, force);
    double loss = 0.0;
    for (int32_t k = 0; k < s->count && touch_is_rigid(force); k++) loss -= mb_dot(s->place[k].T, s->place[k].slip);
    if (touch_is_rigid(force)) return loss;
    for (int32_t k = 0; k < s->count; k++) {
        const touch_contact *c = &s->place[k];
        if (c->at.gap >= 0.0) continue;
        const double elastic = p[TOUCH_LAW_STIFFNESS] * pow(-c->at.gap, p[TOUCH_LAW_EXPONENT]);
        const double slope = touch_wears(force) ? s->give[k].slope : 1.0;
        if (slope > 0.0) loss += (c->N / slope - elastic) * c->approach - mb_dot(c->T, c->slip);
    }
    return loss;
}

static double touch_loss(mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    (void)q, (void)v;
    touch_state s;
    touch_see(m, force, t, &s);
    touch_press(m, force, &s);
    return touch_state_loss(m, force, &s);
}

/* Whether any place touched in the step that ends. */
static bool touch_any(const bl_modes *modes, const touch_state *s, int32_t count) {
    bool any = false;
    for (int32_t k = 0; k < count; k++)
        any = any || (modes->mode ? modes->mode[TOUCH_PLACE_MODES * k + TOUCH_PLACE_TOUCHES] != 0.0
                                  : s->place[k].at.gap < 0.0);
    return any;
}

static void touch_keep_wear(const mb_view *m, const int32_t *force, double t, touch_state *s) {
    const touch_worn worn = mb_touch_worn(m, force);
    touch_scene scene;
    double rate[TOUCH_WORN_PLACES];
    touch_press(m, force, s);
    mb_touch_scene(m, force, t, &scene);
    for (int32_t k = 0; k < s->count; k++) rate[k] = s->place[k].N * s->place[k].speed;
    mb_worn_keep(&worn, touch_pair_of(force)->wear, &scene.shape[0], &scene.shape[1], t, rate, s->count);
}

static void touch_start(const mb_view *m, const int32_t *force, double t) {
    const touch_worn worn = mb_touch_worn(m, force);
    mb_worn_start(&worn, t);
}

static void touch_keep(mb_view *m, const int32_t *force, double t) {
    touch_state s;
    const bl_modes modes = mb_element_modes(m, force);
    const bool begins = touch_law(force) == MB_CONTACT_LANKARANI_NIKRAVESH, wears = touch_wears(force);
    if (begins || wears || !modes.mode) touch_see(m, force, t, &s);
    mb_count_contact(m->contacts + force[MB_FORCE_EXTRA] * MB_CONTACT_MEMORY,
                     touch_any(&modes, &s, touch_places(force)), t);
    if (!begins && !wears) return;
    for (int32_t k = 0; k < s.count; k++) {
        double *began = touch_began(m, force, k);
        *began = s.place[k].at.gap >= 0.0 ? s.place[k].approach : fmax(*began, s.place[k].approach);
    }
    if (wears) touch_keep_wear(m, force, t, &s);
}

static int32_t touch_width(const int32_t *force, int32_t what) {
    const bool wears = what >= TOUCH_SHOWN_WEAR && what <= TOUCH_SHOWN_PIN_WORN_VOLUME;
    if (!mb_in_range(what, 0, TOUCH_SHOWN_COUNT) || (wears && !touch_wears(force))) return -1;
    switch (what) {
        case TOUCH_SHOWN_FORCE:
        case TOUCH_SHOWN_TORQUE:
        case TOUCH_SHOWN_FRICTION:
        case TOUCH_SHOWN_POINT: return 3;
        case TOUCH_SHOWN_GAPS:
        case TOUCH_SHOWN_NORMALS:
        case TOUCH_SHOWN_ANGLES:
        case TOUCH_SHOWN_ANGLES_ON_PIN:
        case TOUCH_SHOWN_SLIPS: return touch_places(force);
        case TOUCH_SHOWN_WEAR:
        case TOUCH_SHOWN_PIN_WEAR: return touch_points(force);
        case TOUCH_SHOWN_IMPACTS:
        case TOUCH_SHOWN_IMPULSE:
        case TOUCH_SHOWN_SLIDING:
        case TOUCH_SHOWN_SLIDING_WORK: return touch_is_rigid(force) ? 1 : -1;
        default: return 1;
    }
}

/* The angle about z of a marker to a point, or its elevation over the plane of x and y. */
static double touch_angle(const mb_view *m, int32_t marker, double t, const double *P, bool elevation) {
    double R[9], at[3], off[3];
    mb_marker_motion(m, marker, t, at, NULL, NULL);
    mb_marker_axes(m, marker, R);
    mb_sub(P, at, off);
    mb_rotate_back(R, off, off);
    return elevation ? atan2(off[2], hypot(off[0], off[1])) : atan2(off[1], off[0]);
}

/* The marker of the hole or the cam, or of the other shape. The hole is the second shape, but for a cam under a face. */
static int32_t touch_seat(const int32_t *force, bool other) {
    const bool first = other != (touch_pair_number(force) == TOUCH_CAM_PLANE);
    return first ? touch_first(force) : touch_second(force);
}

static double touch_tilt(const mb_view *m, const int32_t *force) {
    double R_a[9], R_b[9], a[3], b[3], across[3];
    mb_marker_axes(m, force[MB_FORCE_I], R_a);
    mb_marker_axes(m, force[MB_FORCE_J], R_b);
    mb_column(R_a, 2, a);
    mb_column(R_b, 2, b);
    mb_cross(a, b, across);
    return atan2(sqrt(mb_dot(across, across)), fabs(mb_dot(a, b)));
}

/* Sums over the places, on the body of marker I, and about that marker. */
static void touch_sums(const mb_view *m, const int32_t *force, double t, const touch_state *s, double *F, double *N,
                       double *T) {
    double at[3];
    const double sign = touch_swapped(force) ? -1.0 : 1.0;
    mb_marker_motion(m, force[MB_FORCE_I], t, at, NULL, NULL);
    for (int k = 0; k < 3; k++) F[k] = N[k] = T[k] = 0.0;
    for (int32_t k = 0; k < s->count; k++) {
        double own[3], arm[3];
        touch_force(&s->place[k], own);
        for (int c = 0; c < 3; c++) own[c] *= sign;
        mb_sub(s->place[k].at.P, at, arm);
        mb_add(own, F);
        mb_add_cross(arm, own, N);
        if (touch_wears(force)) mb_axpy(sign * s->place[k].N, s->give[k].couple, N);
        mb_axpy(sign, s->place[k].T, T);
    }
}

static void touch_show_wear(const mb_view *m, const int32_t *force, int32_t what, double *y) {
    const double *p = m->p + force[MB_FORCE_P];
    const touch_worn worn = mb_touch_worn(m, force);
    const bool pin = what == TOUCH_SHOWN_PIN_WEAR || what == TOUCH_SHOWN_PIN_WORN_VOLUME;
    if (what == TOUCH_SHOWN_WEAR || what == TOUCH_SHOWN_PIN_WEAR) mb_worn_show(&worn, pin, y);
    else *y = mb_worn_sum(&worn, pin, p[pin ? 0 : touch_pair_of(force)->first]);
}

static int touch_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what,
                      double *y) {
    (void)q, (void)v;
    touch_state s;
    double F[3], N[3], T[3], normal = 0.0;
    if (what >= TOUCH_SHOWN_WEAR && what <= TOUCH_SHOWN_PIN_WORN_VOLUME) {
        touch_show_wear(m, force, what, y);
        return BL_OK;
    }
    touch_see(m, force, t, &s);
    touch_press(m, force, &s);
    const touch_contact *deepest = &s.place[s.deepest];
    touch_sums(m, force, t, &s, F, N, T);
    for (int32_t k = 0; k < s.count; k++) normal += s.place[k].N;
    switch (what) {
        case TOUCH_SHOWN_GAP: *y = deepest->at.gap; break;
        case TOUCH_SHOWN_TOUCHES:
            *y = 0.0;
            for (int32_t k = 0; k < s.count; k++)
                if (s.place[k].touches) *y = 1.0;
            break;
        case TOUCH_SHOWN_FORCE: mb_copy(F, y); break;
        case TOUCH_SHOWN_TORQUE: mb_copy(N, y); break;
        case TOUCH_SHOWN_NORMAL: *y = normal; break;
        case TOUCH_SHOWN_FRICTION: mb_copy(T, y); break;
        case TOUCH_SHOWN_SLIP: *y = deepest->speed; break;
        case TOUCH_SHOWN_POINT: mb_copy(deepest->at.P, y); break;
        case TOUCH_SHOWN_LOSS: *y = touch_state_loss(m, force, &s); break;
        case TOUCH_SHOWN_ANGLE:
        case TOUCH_SHOWN_ANGLE_ON_PIN:
            *y = touch_angle(m, touch_seat(force, what == TOUCH_SHOWN_ANGLE_ON_PIN), t, deepest->at.P, false);
            break;
        case TOUCH_SHOWN_ELEVATION:
        case TOUCH_SHOWN_ELEVATION_ON_PIN:
            *y = touch_angle(m, touch_seat(force, what == TOUCH_SHOWN_ELEVATION_ON_PIN), t, deepest->at.P, true);
            break;
        case TOUCH_SHOWN_ANGLES:
        case TOUCH_SHOWN_ANGLES_ON_PIN:
            for (int32_t k = 0; k < s.count; k++)
                y[k] = touch_angle(m, touch_seat(force, what == TOUCH_SHOWN_ANGLES_ON_PIN), t, s.place[k].at.P, false);
            break;
        case TOUCH_SHOWN_SLIPS:
            for (int32_t k = 0; k < s.count; k++) y[k] = s.place[k].absent ? 0.0 : s.place[k].speed;
            break;
        case TOUCH_SHOWN_TILT: *y = touch_tilt(m, force); break;
        case TOUCH_SHOWN_IMPACTS:
        case TOUCH_SHOWN_IMPULSE:
        case TOUCH_SHOWN_SLIDING:
        case TOUCH_SHOWN_SLIDING_WORK:
            *y = 0.0;
            for (int32_t k = 0; k < s.count; k++)
                *y += m->contacts[(force[MB_FORCE_EXTRA] + k) * MB_CONTACT_MEMORY + MB_CONTACT_IMPACTS + what -
                                  TOUCH_SHOWN_IMPACTS];
            break;
        default:
            for (int32_t k = 0; k < s.count; k++) y[k] = what == TOUCH_SHOWN_GAPS ? s.place[k].at.gap : s.place[k].N;
    }
    return BL_OK;
}

double mb_touch_gap(const mb_view *m, const int32_t *force, double t) {
    touch_state s;
    touch_see(m, force, t, &s);
    return s.place[s.deepest].at.gap;
}

/* Rigid contacts: their forces are those of rows. The normal one does no work. */
static void touch_rigid_load(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                             double *joint_force) {
    (void)m, (void)force, (void)t, (void)q, (void)v, (void)joint_force;
}

static double touch_rigid_power(mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    return -touch_loss(m, force, t, q, v);
}

static bool touch_needs_solution(const int32_t *force, int32_t what) {
    (void)force;
    switch (what) {
        case MB_SHOWN_POWER:
        case TOUCH_SHOWN_TOUCHES:
        case TOUCH_SHOWN_FORCE:
        case TOUCH_SHOWN_TORQUE:
        case TOUCH_SHOWN_NORMAL:
        case TOUCH_SHOWN_FRICTION:
        case TOUCH_SHOWN_LOSS:
        case TOUCH_SHOWN_NORMALS: return true;
        default: return false;
    }
}

const mb_element mb_element_touch_rigid = {.check = mb_touch_check,
                                           .sound = mb_touch_sound,
                                           .load = touch_rigid_load,
                                           .loss = touch_loss,
                                           .power = touch_rigid_power,
                                           .width = touch_width,
                                           .show = touch_show,
                                           .needs_solution = touch_needs_solution};
const mb_element mb_element_touch = {.energy_kind = MB_ENERGY_CONTACT,
                                     .crossing_count = TOUCH_PLACE_MODES,
                                     .check = mb_touch_check,
                                     .sound = mb_touch_sound,
                                     .keep = touch_keep,
                                     .load = touch_load,
                                     .energy = touch_energy,
                                     .loss = touch_loss,
                                     .width = touch_width,
                                     .show = touch_show};
const mb_element mb_element_touches = {.energy_kind = MB_ENERGY_CONTACT,
                                       .crossing_count = TOUCH_PLACE_MODES * TOUCH_MOST,
                                       .check = mb_touch_check,
                                       .sound = mb_touch_sound,
                                       .keep = touch_keep,
                                       .load = touch_load,
                                       .energy = touch_energy,
                                       .loss = touch_loss,
                                       .width = touch_width,
                                       .show = touch_show};
const mb_element mb_element_worn = {.energy_kind = MB_ENERGY_CONTACT,
                                    .crossing_count = TOUCH_PLACE_MODES * TOUCH_MOST,
                                    .check = mb_touch_check,
                                    .sound = mb_touch_sound,
                                    .start = touch_start,
                                    .keep = touch_keep,
                                    .load = touch_load,
                                    .energy = touch_energy,
                                    .loss = touch_loss,
                                    .width = touch_width,
                                    .show = touch_show};
