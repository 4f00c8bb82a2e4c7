/* Compliant contact between two shapes.
 *
 * LAW is the law, and above TOUCH_PAIR_SHIFT the pair of shapes, above TOUCH_SWAP_SHIFT whether marker J carries the first shape of the
 * pair, above TOUCH_COUNT_SHIFT the points of a profile, or the sections of shapes that wear. EXTRA: its first index among the contacts, of which each place has one. P: the
 * numbers of the first shape, of the second, of the law, then the profile and MB_WEAR_…. At each place the depth δ = -gap makes
 *     N = K δⁿ (1 + D δ̇) ≥ 0   along n,   T = μ N tanh(s / slip_speed)   against the slip s,
 * at the same point of both bodies, so that no momentum is made. D as in clearance.c. */

#include "blocks/multibody/elements/contact/touch.h"

BL_SHARED enum {
    TOUCH_SPHERE_PLANE,
    TOUCH_CAPSULE_PLANE,
    TOUCH_CYLINDER_PLANE,
    TOUCH_SPHERES,
    TOUCH_SPHERE_CAPSULE,
    TOUCH_SPHERE_CYLINDER,
    TOUCH_CAPSULES,
    TOUCH_SPHERE_SOCKET,
    TOUCH_SPHERE_BORE,
    TOUCH_PIN_BORE,
    TOUCH_SPHERE_HOLE,
    TOUCH_SPHERE_CAM,
    TOUCH_CAM_PLANE,
    TOUCH_PIN_HOLE, /* outlines: of the hole radii, of the pin a B-spline */
    TOUCH_PAIRS
};
BL_SHARED enum { TOUCH_PAIR_SHIFT = 1, TOUCH_SWAP_SHIFT = 5, TOUCH_COUNT_SHIFT = 6 };
BL_SHARED enum {
    TOUCH_SHOWN_GAP,
    TOUCH_SHOWN_TOUCHES,
    TOUCH_SHOWN_FORCE,
    TOUCH_SHOWN_TORQUE,
    TOUCH_SHOWN_NORMAL,
    TOUCH_SHOWN_FRICTION,
    TOUCH_SHOWN_SLIP,
    TOUCH_SHOWN_POINT,
    TOUCH_SHOWN_LOSS,
    TOUCH_SHOWN_ANGLE,
    TOUCH_SHOWN_ANGLE_ON_PIN,
    TOUCH_SHOWN_TILT,
    TOUCH_SHOWN_GAPS,
    TOUCH_SHOWN_NORMALS,
    TOUCH_SHOWN_ANGLES,
    TOUCH_SHOWN_ANGLES_ON_PIN,
    TOUCH_SHOWN_SLIPS,
    TOUCH_SHOWN_ELEVATION,
    TOUCH_SHOWN_ELEVATION_ON_PIN,
    TOUCH_SHOWN_WEAR,
    TOUCH_SHOWN_WORN_VOLUME,
    TOUCH_SHOWN_PIN_WEAR,
    TOUCH_SHOWN_PIN_WORN_VOLUME,
    TOUCH_SHOWN_COUNT
};
/* Numbers of the law. */
enum {
    TOUCH_LAW_FRICTION,
    TOUCH_LAW_SLIP_SPEED,
    TOUCH_LAW_STIFFNESS,
    TOUCH_LAW_EXPONENT,
    TOUCH_LAW_DAMPING,
    TOUCH_LAW_RESTITUTION = TOUCH_LAW_DAMPING,
    TOUCH_LAW_SLOWEST
};
/* Modes of each place: whether it touches, and whether it pushes. */
enum { TOUCH_PLACE_TOUCHES, TOUCH_PLACE_PUSHES, TOUCH_PLACE_MODES };
_Static_assert((int)TOUCH_PLACE_MODES *(int)TOUCH_MOST <= (int)MB_ELEMENT_MODES, "room for its modes");

/* Places, how many numbers each shape has, whether a radius of the first is below that of the second, and what the pair does. A cylinder or
   a capsule has a length, which may be 0 in a capsule. Shapes that wear touch in `worn_places`; a pair without `touch` and `follow` is always
   treated as those are. */
typedef struct {
    int32_t places, first, second;
    bool capsule[2], nested, profiled;
    void (*touch)(const touch_shape *a, const touch_shape *b, touch_place *at);
    void (*follow)(const touch_shape *a, const touch_shape *b, const touch_profile *profile, touch_place *at);
    int32_t worn_places;
    const touch_wear *wear;
} touch_pair;
static const touch_pair TOUCH_TABLE[TOUCH_PAIRS] = {
    [TOUCH_SPHERE_PLANE] = {1, 1, 0, .touch = mb_touch_sphere_plane},
    [TOUCH_CAPSULE_PLANE] = {2, 2, 0, {true, false}, .touch = mb_touch_capsule_plane},
    [TOUCH_CYLINDER_PLANE] = {6, 2, 0, .touch = mb_touch_cylinder_plane},
    [TOUCH_SPHERES] = {1, 1, 1, .touch = mb_touch_spheres},
    [TOUCH_SPHERE_CAPSULE] = {1, 1, 2, {false, true}, .touch = mb_touch_sphere_capsule},
    [TOUCH_SPHERE_CYLINDER] = {1, 1, 2, .touch = mb_touch_sphere_cylinder},
    [TOUCH_CAPSULES] = {1, 2, 2, {true, true}, .touch = mb_touch_capsules},
    [TOUCH_SPHERE_SOCKET] = {1, 1, 1, .nested = true, .touch = mb_touch_sphere_socket},
    [TOUCH_SPHERE_BORE] = {1, 1, 2, .nested = true, .touch = mb_touch_sphere_bore, .worn_places = 1,
                           .wear = &mb_wear_ball_bore},
    [TOUCH_PIN_BORE] = {TOUCH_BORE_PLACES, 2, 2, .nested = true, .touch = mb_touch_pin_bore,
                        .worn_places = TOUCH_WORN_PLACES, .wear = &mb_wear_pin_bore},
    [TOUCH_SPHERE_HOLE] = {TOUCH_PROFILE_PLACES, 1, 0, .profiled = true, .follow = mb_touch_sphere_hole,
                           .worn_places = 1, .wear = &mb_wear_outline},
    [TOUCH_SPHERE_CAM] = {TOUCH_PROFILE_PLACES, 1, 0, .profiled = true, .follow = mb_touch_sphere_cam},
    [TOUCH_CAM_PLANE] = {TOUCH_PROFILE_PLACES, 0, 0, .profiled = true, .follow = mb_touch_cam_plane},
    [TOUCH_PIN_HOLE] = {1, 0, 0, .profiled = true, .worn_places = 1, .wear = &mb_wear_outline},
};

static int32_t touch_pair_number(const int32_t *force) { return force[MB_FORCE_LAW] >> TOUCH_PAIR_SHIFT & 15; }
static const touch_pair *touch_pair_of(const int32_t *force) { return &TOUCH_TABLE[touch_pair_number(force)]; }
static int32_t touch_law(const int32_t *force) { return force[MB_FORCE_LAW] & ((1 << TOUCH_PAIR_SHIFT) - 1); }
static bool touch_swapped(const int32_t *force) { return (force[MB_FORCE_LAW] >> TOUCH_SWAP_SHIFT & 1) != 0; }
static int32_t touch_points(const int32_t *force) { return force[MB_FORCE_LAW] >> TOUCH_COUNT_SHIFT; }
static int32_t touch_law_numbers(const int32_t *force) {
    return touch_law(force) == MB_CONTACT_LANKARANI_NIKRAVESH ? TOUCH_LAW_SLOWEST + 1 : TOUCH_LAW_DAMPING + 1;
}
static bool touch_wears(const int32_t *force) { return force[MB_FORCE_TYPE] == MB_WORN; }
static int32_t touch_places(const int32_t *force) {
    return touch_wears(force) ? touch_pair_of(force)->worn_places : touch_pair_of(force)->places;
}
static const double *touch_law_of(const mb_view *m, const int32_t *force) {
    const touch_pair *pair = touch_pair_of(force);
    return m->p + force[MB_FORCE_P] + pair->first + pair->second;
}

int64_t mb_worn_memory(const int32_t *force) { return touch_wears(force) ? mb_worn_size(touch_points(force)) : 0; }

static touch_worn touch_worn_of(const mb_view *m, const int32_t *force) {
    const touch_pair *pair = touch_pair_of(force);
    const int32_t sections = touch_points(force);
    const double *data = touch_law_of(m, force) + touch_law_numbers(force);
    return (touch_worn){.sections = sections,
                        .hole = pair->profiled ? data : NULL,
                        .pin = touch_pair_number(force) == TOUCH_PIN_HOLE ? data + sections : NULL,
                        .numbers = data + (pair->profiled ? 2 * sections : 0),
                        .memory = mb_wear_map(m, force)};
}

double mb_touch_play(const mb_view *m, const int32_t *force) {
    const touch_pair *pair = touch_pair_of(force);
    const double *p = m->p + force[MB_FORCE_P];
    if (pair->nested) return p[pair->first] - p[0];
    const bool outlines = touch_pair_number(force) == TOUCH_PIN_HOLE;
    if (touch_pair_number(force) != TOUCH_SPHERE_HOLE && !outlines) return 0.0;
    const double *r = touch_law_of(m, force) + touch_law_numbers(force);
    double least = r[0];
    for (int32_t k = 1; k < touch_points(force); k++) least = fmin(least, r[k]);
    double most = outlines ? 0.0 : p[0];
    for (int32_t k = 0; outlines && k < touch_points(force); k++) most = fmax(most, r[touch_points(force) + k]);
    return least - most;
}

static bool touch_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    if (force[MB_FORCE_LAW] < 0 || touch_pair_number(force) >= TOUCH_PAIRS || !mb_check_markers(b, force)) return false;
    const touch_pair *pair = touch_pair_of(force);
    const int32_t points = touch_points(force);
    const int64_t number = tally->contacts, profile = pair->profiled ? 2 * (int64_t)points : 0;
    tally->contacts += touch_places(force);
    if (touch_wears(force)) {
        if (!pair->wear || !mb_in_range(points, MB_WEAR_FEWEST, MB_WEAR_MOST + 1)) return false;
    } else if ((!pair->touch && !pair->follow) || force[MB_FORCE_TYPE] != (pair->places > 1 ? MB_TOUCHES : MB_TOUCH)) {
        return false;
    } else if (pair->profiled ? !mb_in_range(points, TOUCH_PROFILE_FEWEST, TOUCH_PROFILE_MOST + 1) : points != 0) {
        return false;
    }
    const int64_t numbers = pair->first + pair->second + touch_law_numbers(force) + profile;
    return force[MB_FORCE_EXTRA] == number &&
           mb_check_numbers(b, force, numbers + (touch_wears(force) ? MB_WEAR_PIN_NUMBERS : 0));
}

/* Its shapes: numbers and names as the user gave them. */
static bool touch_sound_sizes(const mb_view *m, const int32_t *force, mb_fault *fault) {
    static const char *const NAMES[2][2] = {{"first.radius", "first.length"}, {"second.radius", "second.length"}};
    const touch_pair *pair = touch_pair_of(force);
    const double *p = m->p + force[MB_FORCE_P];
    const int swapped = touch_swapped(force);
    for (int side = 0; side < 2; side++)
        for (int32_t k = 0; k < (side ? pair->second : pair->first); k++) {
            const double value = p[(side ? pair->first : 0) + k];
            const int least = k == 0 || !pair->capsule[side] ? MB_ALLOWED_POSITIVE : MB_ALLOWED_NOT_NEGATIVE;
            if (!mb_allow(fault, NAMES[side ^ swapped][k], value, least)) return false;
        }
    return !pair->nested || mb_allow_below(fault, NAMES[swapped][0], p[0], NAMES[1 ^ swapped][0], p[pair->first]);
}

static bool touch_sound_wear(const double *wear, mb_fault *fault) {
    return mb_allow(fault, "wear_coefficient", wear[MB_WEAR_COEFFICIENT], MB_ALLOWED_NOT_NEGATIVE) &&
           mb_allow(fault, "hardness", wear[MB_WEAR_HARDNESS], MB_ALLOWED_POSITIVE) &&
           mb_allow(fault, "length", wear[MB_WEAR_LENGTH], MB_ALLOWED_POSITIVE) &&
           mb_allow(fault, "pin_wear_coefficient", wear[MB_WEAR_PIN_COEFFICIENT], MB_ALLOWED_NOT_NEGATIVE) &&
           mb_allow(fault, "pin_hardness", wear[MB_WEAR_PIN_HARDNESS], MB_ALLOWED_POSITIVE);
}

static bool touch_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    const touch_pair *pair = touch_pair_of(force);
    const double *p = touch_law_of(m, force);
    if (!touch_sound_sizes(m, force, fault)) return false;
    if (!(mb_allow(fault, "friction", p[TOUCH_LAW_FRICTION], MB_ALLOWED_NOT_NEGATIVE) &&
          mb_allow(fault, "slip_speed", p[TOUCH_LAW_SLIP_SPEED], MB_ALLOWED_POSITIVE) &&
          mb_allow(fault, "stiffness", p[TOUCH_LAW_STIFFNESS], MB_ALLOWED_POSITIVE) &&
          mb_allow(fault, "exponent", p[TOUCH_LAW_EXPONENT], MB_ALLOWED_FROM_ONE)))
        return false;
    for (int32_t k = 0; pair->profiled && k < 2 * touch_points(force); k++)
        if (!mb_allow(fault, "profile", p[touch_law_numbers(force) + k],
                      k < touch_points(force) || !pair->follow ? MB_ALLOWED_POSITIVE : MB_ALLOWED_FINITE))
            return false;
    if (touch_wears(force) && !touch_sound_wear(touch_worn_of(m, force).numbers, fault)) return false;
    if (touch_law(force) == MB_CONTACT_HUNT_CROSSLEY)
        return mb_allow(fault, "damping", p[TOUCH_LAW_DAMPING], MB_ALLOWED_NOT_NEGATIVE);
    return mb_allow(fault, "restitution", p[TOUCH_LAW_RESTITUTION], MB_ALLOWED_FRACTION) &&
           mb_allow(fault, "slowest_impact", p[TOUCH_LAW_SLOWEST], MB_ALLOWED_POSITIVE);
}

/* The markers of the first and the second shape of the pair. */
static int32_t touch_first(const int32_t *force) { return force[touch_swapped(force) ? MB_FORCE_J : MB_FORCE_I]; }
static int32_t touch_second(const int32_t *force) { return force[touch_swapped(force) ? MB_FORCE_I : MB_FORCE_J]; }

/* A place with its forces: N along n and T, both on the first shape; `slip` is the speed of the surfaces along each other. A place that is
   `absent` cannot touch: it pushes nothing even while its mode is kept, and nothing approaches it. */
typedef struct {
    touch_place at;
    bool absent;
    double approach, N, T[3], slip[3], speed;
} touch_contact;
typedef struct {
    touch_contact place[TOUCH_MOST];
    touch_give give[TOUCH_WORN_PLACES]; /* of shapes that wear */
    int32_t count, deepest;
} touch_state;

static void touch_see_shape(const mb_view *m, int32_t marker, double t, const double *size, touch_shape *shape,
                            double *V) {
    mb_marker_motion(m, marker, t, shape->P, V, NULL);
    mb_marker_axes(m, marker, shape->R);
    shape->size = size;
}

/* The velocity at P of a shape whose marker moves by V. */
static void touch_velocity(const mb_view *m, int32_t marker, const touch_shape *shape, const double *V, const double *P,
                           double *found) {
    const int32_t link = mb_link_of(m, marker);
    double arm[3];
    mb_copy(V, found);
    if (link < 0) return;
    mb_sub(P, shape->P, arm);
    mb_add_cross(m->link[link].w, arm, found);
}

/* The rate of -gap of a place of shapes that wear, from the approach along n. */
static double touch_yield(const mb_view *m, const int32_t *force, const touch_give *give, double approach) {
    const int32_t first = mb_link_of(m, touch_first(force)), second = mb_link_of(m, touch_second(force));
    if (first >= 0) approach -= mb_dot(give->couple, m->link[first].w);
    if (second >= 0) approach += mb_dot(give->couple, m->link[second].w);
    return give->slope * approach;
}

/* All but forces. */
static void touch_see(const mb_view *m, const int32_t *force, double t, touch_state *s) {
    const touch_pair *pair = touch_pair_of(force);
    const double *p = m->p + force[MB_FORCE_P];
    touch_shape a, b;
    touch_place places[TOUCH_MOST];
    double V_a[3], V_b[3];
    touch_see_shape(m, touch_first(force), t, p, &a, V_a);
    touch_see_shape(m, touch_second(force), t, p + pair->first, &b, V_b);
    if (touch_wears(force)) {
        const touch_worn worn = touch_worn_of(m, force);
        pair->wear->see(&worn, &a, &b, places, s->give);
    } else if (pair->profiled) {
        const double *data = touch_law_of(m, force) + touch_law_numbers(force);
        const touch_profile profile = {data, data + touch_points(force), touch_points(force)};
        pair->follow(&a, &b, &profile, places);
    } else {
        pair->touch(&a, &b, places);
    }
    s->count = touch_places(force);
    s->deepest = 0;
    for (int32_t k = 0; k < s->count; k++) {
        touch_contact *c = &s->place[k];
        double of_b[3];
        c->at = places[k];
        touch_velocity(m, touch_first(force), &a, V_a, c->at.P, c->slip);
        touch_velocity(m, touch_second(force), &b, V_b, c->at.P, of_b);
        mb_axpy(-1.0, of_b, c->slip);
        c->approach = -mb_dot(c->at.n, c->slip);
        mb_axpy(c->approach, c->at.n, c->slip);
        c->speed = sqrt(mb_dot(c->slip, c->slip));
        if (touch_wears(force)) c->approach = touch_yield(m, force, &s->give[k], c->approach);
        c->N = c->T[0] = c->T[1] = c->T[2] = 0.0;
        if (c->at.gap < s->place[s->deepest].at.gap) s->deepest = k;
    }
    double off[3];
    mb_sub(a.P, b.P, off);
    const double size = pair->profiled ? touch_law_of(m, force)[touch_law_numbers(force)] : p[0];
    const double apart = size + sqrt(mb_dot(off, off)); /* shown where nothing can touch */
    for (int32_t k = 0; k < s->count; k++) {
        const int32_t twin = k + s->place[k].at.twin;
        const double mean = 0.5 * (s->place[k].approach + s->place[twin].approach);
        s->place[k].approach = s->place[twin].approach = mean;
        s->place[k].absent = isinf(s->place[k].at.gap);
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

static void touch_press(const mb_view *m, const int32_t *force, touch_state *s) {
    const double *p = touch_law_of(m, force);
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
    const double *p = touch_law_of(m, force);
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
    const double *p = touch_law_of(m, force);
    double loss = 0.0;
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
    const touch_pair *pair = touch_pair_of(force);
    const double *p = m->p + force[MB_FORCE_P];
    const touch_worn worn = touch_worn_of(m, force);
    touch_shape a, b;
    double rate[TOUCH_WORN_PLACES], V[3];
    touch_press(m, force, s);
    touch_see_shape(m, touch_first(force), t, p, &a, V);
    touch_see_shape(m, touch_second(force), t, p + pair->first, &b, V);
    for (int32_t k = 0; k < s->count; k++) rate[k] = s->place[k].N * s->place[k].speed;
    mb_worn_keep(&worn, pair->wear, &a, &b, t, rate, s->count);
}

static void touch_start(const mb_view *m, const int32_t *force, double t) {
    const touch_worn worn = touch_worn_of(m, force);
    mb_worn_start(&worn, t);
}

static void touch_keep(mb_view *m, const int32_t *force, double t) {
    touch_state s;
    const bl_modes modes = mb_element_modes(m, force);
    const bool begins = touch_law(force) == MB_CONTACT_LANKARANI_NIKRAVESH, wears = touch_wears(force);
    if (begins || wears || !modes.mode) touch_see(m, force, t, &s);
    mb_count_contact(m->contacts + force[MB_FORCE_EXTRA] * MB_CONTACT_MEMORY,
                     touch_any(&modes, &s, touch_pair_of(force)->places), t);
    if (!begins && !wears) return;
    for (int32_t k = 0; k < s.count; k++) {
        double *began = touch_began(m, force, k);
        *began = s.place[k].at.gap >= 0.0 ? s.place[k].approach : fmax(*began, s.place[k].approach);
    }
    if (wears) touch_keep_wear(m, force, t, &s);
}

static int32_t touch_width(const int32_t *force, int32_t what) {
    if (!mb_in_range(what, 0, TOUCH_SHOWN_COUNT) || (what >= TOUCH_SHOWN_WEAR && !touch_wears(force))) return -1;
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
    const touch_worn worn = touch_worn_of(m, force);
    const bool pin = what == TOUCH_SHOWN_PIN_WEAR || what == TOUCH_SHOWN_PIN_WORN_VOLUME;
    if (what == TOUCH_SHOWN_WEAR || what == TOUCH_SHOWN_PIN_WEAR) mb_worn_show(&worn, pin, y);
    else *y = mb_worn_sum(&worn, pin, p[pin ? 0 : touch_pair_of(force)->first]);
}

static int touch_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what,
                      double *y) {
    (void)q, (void)v;
    touch_state s;
    double F[3], N[3], T[3], normal = 0.0;
    if (what >= TOUCH_SHOWN_WEAR) {
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
        case TOUCH_SHOWN_TOUCHES: *y = deepest->at.gap <= 0.0; break;
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
        default:
            for (int32_t k = 0; k < s.count; k++) y[k] = what == TOUCH_SHOWN_GAPS ? s.place[k].at.gap : s.place[k].N;
    }
    return BL_OK;
}

const mb_element mb_element_touch = {.energy_kind = MB_ENERGY_CONTACT,
                                     .crossing_count = TOUCH_PLACE_MODES,
                                     .check = touch_check,
                                     .sound = touch_sound,
                                     .keep = touch_keep,
                                     .load = touch_load,
                                     .energy = touch_energy,
                                     .loss = touch_loss,
                                     .width = touch_width,
                                     .show = touch_show};
const mb_element mb_element_touches = {.energy_kind = MB_ENERGY_CONTACT,
                                       .crossing_count = TOUCH_PLACE_MODES * TOUCH_MOST,
                                       .check = touch_check,
                                       .sound = touch_sound,
                                       .keep = touch_keep,
                                       .load = touch_load,
                                       .energy = touch_energy,
                                       .loss = touch_loss,
                                       .width = touch_width,
                                       .show = touch_show};
const mb_element mb_element_worn = {.energy_kind = MB_ENERGY_CONTACT,
                                    .crossing_count = TOUCH_PLACE_MODES * TOUCH_MOST,
                                    .check = touch_check,
                                    .sound = touch_sound,
                                    .start = touch_start,
                                    .keep = touch_keep,
                                    .load = touch_load,
                                    .energy = touch_energy,
                                    .loss = touch_loss,
                                    .width = touch_width,
                                    .show = touch_show};
