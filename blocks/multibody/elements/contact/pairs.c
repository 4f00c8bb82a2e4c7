/* Pairs of shapes that can touch: their records, numbers and places.
 *
 * LAW of a record is the law, and above TOUCH_PAIR_SHIFT the pair of shapes, above TOUCH_SWAP_SHIFT whether marker J carries the first shape
 * of the pair, above TOUCH_COUNT_SHIFT the points of a profile, or the sections of shapes that wear. EXTRA: its first index among the contacts, of which each place has one. P: the
 * numbers of the first shape, of the second, of the law, then the profile and MB_WEAR_…. */

#include <string.h>

#include "blocks/multibody/elements/contact/touch.h"

const touch_pair mb_touch_table[TOUCH_PAIRS] = {
    [TOUCH_SPHERE_PLANE] = {1, 1, 0, 1, 1, .touch = mb_touch_sphere_plane},
    [TOUCH_CAPSULE_PLANE] = {2, 2, 0, 2, 1, .capsule = {true, false}, .touch = mb_touch_capsule_plane},
    [TOUCH_CYLINDER_PLANE] = {6, 2, 0, 0, 1, .touch = mb_touch_cylinder_plane},
    [TOUCH_SPHERES] = {1, 1, 1, 1, 1, .touch = mb_touch_spheres},
    [TOUCH_SPHERE_CAPSULE] = {1, 1, 2, 1, 1, .capsule = {false, true}, .touch = mb_touch_sphere_capsule},
    [TOUCH_SPHERE_CYLINDER] = {1, 1, 2, 1, 1, .touch = mb_touch_sphere_cylinder},
    [TOUCH_CAPSULES] = {1, 2, 2, 1, 1, .capsule = {true, true}, .touch = mb_touch_capsules},
    [TOUCH_SPHERE_SOCKET] = {1, 1, 1, 1, 1, .nested = true, .touch = mb_touch_sphere_socket},
    [TOUCH_SPHERE_BORE] = {1, 1, 2, 1, 1, .nested = true, .touch = mb_touch_sphere_bore, .worn_places = 1,
                           .wear = &mb_wear_ball_bore},
    [TOUCH_PIN_BORE] = {TOUCH_BORE_PLACES, 2, 2, 4, 2, .nested = true, .touch = mb_touch_pin_bore,
                        .worn_places = TOUCH_WORN_PLACES, .wear = &mb_wear_pin_bore},
    [TOUCH_SPHERE_HOLE] = {TOUCH_PROFILE_PLACES, 1, 0, 0, 1, .profiled = true, .follow = mb_touch_sphere_hole,
                           .worn_places = 1, .wear = &mb_wear_outline},
    [TOUCH_SPHERE_CAM] = {TOUCH_PROFILE_PLACES, 1, 0, 1, 1, .profiled = true, .follow = mb_touch_sphere_cam},
    [TOUCH_CAM_PLANE] = {TOUCH_PROFILE_PLACES, 0, 0, 1, 1, .profiled = true, .follow = mb_touch_cam_plane},
    [TOUCH_PIN_HOLE] = {1, 0, 0, 0, 1, .profiled = true, .worn_places = 1, .wear = &mb_wear_outline},
};

int32_t mb_touch_law_numbers(const int32_t *force) {
    if (touch_is_rigid(force)) return MB_RIGID_NUMBERS;
    return touch_law(force) == MB_CONTACT_LANKARANI_NIKRAVESH ? TOUCH_LAW_SLOWEST + 1 : TOUCH_LAW_DAMPING + 1;
}
const double *mb_touch_law(const mb_view *m, const int32_t *force) {
    const touch_pair *pair = touch_pair_of(force);
    return m->p + force[MB_FORCE_P] + pair->first + pair->second;
}

int64_t mb_worn_memory(const int32_t *force) { return touch_wears(force) ? mb_worn_size(touch_points(force)) : 0; }

touch_worn mb_touch_worn(const mb_view *m, const int32_t *force) {
    const touch_pair *pair = touch_pair_of(force);
    const int32_t sections = touch_points(force);
    const double *data = mb_touch_law(m, force) + mb_touch_law_numbers(force);
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
    const double *r = mb_touch_law(m, force) + mb_touch_law_numbers(force);
    double least = r[0];
    for (int32_t k = 1; k < touch_points(force); k++) least = fmin(least, r[k]);
    double most = outlines ? 0.0 : p[0];
    for (int32_t k = 0; outlines && k < touch_points(force); k++) most = fmax(most, r[touch_points(force) + k]);
    return least - most;
}

bool mb_touch_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    if (force[MB_FORCE_LAW] < 0 || touch_pair_number(force) >= TOUCH_PAIRS || !mb_check_markers(b, force)) return false;
    const touch_pair *pair = touch_pair_of(force);
    const int32_t points = touch_points(force);
    const int64_t number = tally->contacts, profile = pair->profiled ? 2 * (int64_t)points : 0;
    tally->contacts += touch_places(force);
    if (touch_wears(force)) {
        if (!pair->wear || !mb_in_range(points, MB_WEAR_FEWEST, MB_WEAR_MOST + 1)) return false;
    } else {
        if (!pair->touch && !pair->follow) return false;
        if (touch_is_rigid(force) ? pair->rigid == 0 || touch_law(force) != 0
                                  : force[MB_FORCE_TYPE] != (pair->places > 1 ? MB_TOUCHES : MB_TOUCH))
            return false;
        if (pair->profiled ? !mb_in_range(points, TOUCH_PROFILE_FEWEST, TOUCH_PROFILE_MOST + 1) : points != 0)
            return false;
    }
    const int64_t numbers = pair->first + pair->second + mb_touch_law_numbers(force) + profile;
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

static bool touch_sound_profile(const mb_view *m, const int32_t *force, mb_fault *fault) {
    const touch_pair *pair = touch_pair_of(force);
    const double *profile = mb_touch_law(m, force) + mb_touch_law_numbers(force);
    for (int32_t k = 0; pair->profiled && k < 2 * touch_points(force); k++)
        if (!mb_allow(fault, "profile", profile[k],
                      k < touch_points(force) || !pair->follow ? MB_ALLOWED_POSITIVE : MB_ALLOWED_FINITE))
            return false;
    return true;
}

static bool touch_sound_wear(const double *wear, mb_fault *fault) {
    return mb_allow(fault, "wear_coefficient", wear[MB_WEAR_COEFFICIENT], MB_ALLOWED_NOT_NEGATIVE) &&
           mb_allow(fault, "hardness", wear[MB_WEAR_HARDNESS], MB_ALLOWED_POSITIVE) &&
           mb_allow(fault, "length", wear[MB_WEAR_LENGTH], MB_ALLOWED_POSITIVE) &&
           mb_allow(fault, "pin_wear_coefficient", wear[MB_WEAR_PIN_COEFFICIENT], MB_ALLOWED_NOT_NEGATIVE) &&
           mb_allow(fault, "pin_hardness", wear[MB_WEAR_PIN_HARDNESS], MB_ALLOWED_POSITIVE);
}

bool mb_touch_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    const double *p = mb_touch_law(m, force);
    if (!touch_sound_sizes(m, force, fault) || !touch_sound_profile(m, force, fault)) return false;
    if (touch_is_rigid(force))
        return mb_allow(fault, "friction", p[MB_RIGID_FRICTION], MB_ALLOWED_NOT_NEGATIVE) &&
               mb_allow(fault, "restitution", p[MB_RIGID_RESTITUTION], MB_ALLOWED_FRACTION) &&
               mb_allow(fault, "tangential_restitution", p[MB_RIGID_TANGENTIAL], MB_ALLOWED_SIGNED_FRACTION);
    if (!(mb_allow(fault, "friction", p[TOUCH_LAW_FRICTION], MB_ALLOWED_NOT_NEGATIVE) &&
          mb_allow(fault, "slip_speed", p[TOUCH_LAW_SLIP_SPEED], MB_ALLOWED_POSITIVE) &&
          mb_allow(fault, "stiffness", p[TOUCH_LAW_STIFFNESS], MB_ALLOWED_POSITIVE) &&
          mb_allow(fault, "exponent", p[TOUCH_LAW_EXPONENT], MB_ALLOWED_FROM_ONE)))
        return false;
    if (touch_wears(force) && !touch_sound_wear(mb_touch_worn(m, force).numbers, fault)) return false;
    if (touch_law(force) == MB_CONTACT_HUNT_CROSSLEY)
        return mb_allow(fault, "damping", p[TOUCH_LAW_DAMPING], MB_ALLOWED_NOT_NEGATIVE);
    return mb_allow(fault, "restitution", p[TOUCH_LAW_RESTITUTION], MB_ALLOWED_FRACTION) &&
           mb_allow(fault, "slowest_impact", p[TOUCH_LAW_SLOWEST], MB_ALLOWED_POSITIVE);
}

static void scene_shape(const mb_view *m, int32_t marker, double t, const double *size, bool rigid, touch_scene *scene,
                        int side) {
    touch_shape *shape = &scene->shape[side];
    mb_marker_motion(m, marker, t, shape->P, scene->V[side], rigid ? scene->A[side] : NULL);
    mb_marker_axes(m, marker, shape->R);
    shape->size = size;
}

void mb_touch_scene(const mb_view *m, const int32_t *force, double t, touch_scene *scene) {
    const touch_pair *pair = touch_pair_of(force);
    const double *p = m->p + force[MB_FORCE_P], *data = mb_touch_law(m, force) + mb_touch_law_numbers(force);
    scene_shape(m, touch_first(force), t, p, touch_is_rigid(force), scene, 0);
    scene_shape(m, touch_second(force), t, p + pair->first, touch_is_rigid(force), scene, 1);
    scene->profile = (touch_profile){data, data + touch_points(force), touch_points(force)};
}

void mb_touch_places(const int32_t *force, const touch_scene *scene, touch_place *places) {
    const touch_pair *pair = touch_pair_of(force);
    if (pair->profiled) pair->follow(&scene->shape[0], &scene->shape[1], &scene->profile, places);
    else pair->touch(&scene->shape[0], &scene->shape[1], places);
    if (!touch_is_rigid(force)) return;
    for (int32_t k = 1; k < pair->rigid; k++) places[k] = places[k * pair->stride];
}

void mb_touch_velocity(const mb_view *m, int32_t marker, const touch_shape *shape, const double *V, const double *P,
                       double *found) {
    const int32_t link = mb_link_of(m, marker);
    double arm[3];
    mb_copy(V, found);
    if (link < 0) return;
    mb_sub(P, shape->P, arm);
    mb_add_cross(m->link[link].w, arm, found);
}
