/* Where two shapes are nearest to each other: internal to elements/contact/. */
#ifndef BIELLA_TOUCH_H
#define BIELLA_TOUCH_H

#include "blocks/multibody/kernel/multibody.h"

/* The first is the shape that comes first; which of its markers carries it is in LAW. */
enum {
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
enum { TOUCH_PAIR_SHIFT = 1, TOUCH_SWAP_SHIFT = 5, TOUCH_COUNT_SHIFT = 6 };
enum {
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
    TOUCH_SHOWN_IMPACTS,
    TOUCH_SHOWN_IMPULSE,
    TOUCH_SHOWN_SLIDING,
    TOUCH_SHOWN_SLIDING_WORK, /* of rigid contacts, in the order of their memory */
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

/* Most places at which one pair of shapes can touch. */
enum { TOUCH_MOST = 8 };

/* A shape: the place and the axes of its marker, and its numbers. A radius comes first, then a length along z. */
typedef struct {
    double P[3], R[9];
    const double *size;
} touch_shape;

/* A place of contact: P on the first shape, the unit normal n from the second shape into the first, and the gap along n, negative if the
   shapes overlap. `twin` is 0, or the distance to the next place, which has the same gap at all times. */
typedef struct {
    double P[3], n[3], gap;
    int32_t twin;
} touch_place;

/* Each writes all places that its pair has; a place that cannot touch has an infinite gap. */
void mb_touch_sphere_plane(const touch_shape *a, const touch_shape *b, touch_place *at);
void mb_touch_capsule_plane(const touch_shape *a, const touch_shape *b, touch_place *at);
void mb_touch_cylinder_plane(const touch_shape *a, const touch_shape *b, touch_place *at);
void mb_touch_spheres(const touch_shape *a, const touch_shape *b, touch_place *at);
void mb_touch_sphere_capsule(const touch_shape *a, const touch_shape *b, touch_place *at);
void mb_touch_sphere_cylinder(const touch_shape *a, const touch_shape *b, touch_place *at);
void mb_touch_capsules(const touch_shape *a, const touch_shape *b, touch_place *at);
void mb_touch_sphere_socket(const touch_shape *a, const touch_shape *b, touch_place *at);
void mb_touch_sphere_bore(const touch_shape *a, const touch_shape *b, touch_place *at);
/* edges.c */
enum { TOUCH_BORE_PLACES = 8 };
void mb_touch_pin_bore(const touch_shape *a, const touch_shape *b, touch_place *at);

/* profile.c */
/* A closed curve r(φ) in the plane z = 0 of a marker: r at `count` equal angles from 0, then dr/dφ there, as a periodic cubic spline has
   it. */
enum { TOUCH_PROFILE_PLACES = 4, TOUCH_PROFILE_FEWEST = 8, TOUCH_PROFILE_MOST = 3600 };
typedef struct {
    const double *r, *slope;
    int32_t count;
} touch_profile;
void mb_touch_sphere_hole(const touch_shape *a, const touch_shape *b, const touch_profile *profile, touch_place *at);
void mb_touch_sphere_cam(const touch_shape *a, const touch_shape *b, const touch_profile *profile, touch_place *at);
void mb_touch_cam_plane(const touch_shape *a, const touch_shape *b, const touch_profile *profile, touch_place *at);
/* Its curvature at an angle, positive where it is convex, and the directions along it and inwards. */
double mb_touch_profile_curvature(const touch_profile *profile, double angle, double *along, double *inwards);

/* worn.c, outline.c */
/* A pin or a ball `a` in a hole `b` that wear, each divided into `sections` about its z. `hole` are radii of the hole and `pin` the B-spline of
   the radii of the pin, or NULL where it is round; `numbers` are MB_WEAR_…, `memory` what mb_worn_memory counts. */
typedef struct {
    int32_t sections;
    const double *hole, *pin, *numbers;
    double *memory;
} touch_worn;
/* Of a place: |∂gap| for a motion along n; the couple on the first shape per N. */
typedef struct {
    double slope, couple[3];
} touch_give;
/* Writes the places of its pair, whose first is at 0; the shares of the sections in the contact of a place; or, from those, wears it: of the
   hole the volume `of_hole`, of the pin `of_pin`. */
typedef struct {
    void (*see)(const touch_worn *w, const touch_shape *a, const touch_shape *b, touch_place *at, touch_give *give);
    void (*weigh)(const touch_worn *w, const touch_shape *a, const touch_shape *b, int32_t place, double *share);
    void (*keep)(const touch_worn *w, const touch_shape *a, const touch_shape *b, int32_t place, const double *share,
                 double of_hole, double of_pin);
} touch_wear;
extern const touch_wear mb_wear_ball_bore, mb_wear_pin_bore, mb_wear_outline;
enum { TOUCH_WORN_PLACES = 4 };
int64_t mb_worn_size(int64_t sections);
void mb_worn_start(const touch_worn *w, double t);
/* Wears all places by their rates N |slip|, of which there are `count`. */
void mb_worn_keep(const touch_worn *w, const touch_wear *wear, const touch_shape *a, const touch_shape *b, double t,
                  const double *rate, int32_t count);
/* Depths of the sections, and their volume, of the hole or of the pin. The radii are those of round ones. */
void mb_worn_show(const touch_worn *w, bool pin, double *y);
double mb_worn_sum(const touch_worn *w, bool pin, double radius);
/* Maps of the hole and of the pin, and whether the pin has lost anything. */
double *mb_worn_hole(const touch_worn *w);
double *mb_worn_pin(const touch_worn *w);
double *mb_worn_is_pin_worn(const touch_worn *w);
/* Area of a section of a round surface. */
double mb_worn_area(const touch_worn *w, double radius);
/* How far the pin is turned about z in its hole, without what it is tilted; σ, -1 if the two z point opposite ways; and the direction about which
   a couple does the work of the turn. */
typedef struct {
    double angle, sign, about[3];
} touch_twist;
touch_twist mb_worn_twist(const touch_shape *a, const touch_shape *b);
/* From the force and the couple about C, on the first shape for a pressure of 1, and a point P of contact. */
void mb_worn_place(const double *F, const double *M, const double *C, const double *P, touch_place *at,
                   touch_give *give);

/* Places, how many numbers each shape has, whether a radius of the first is below that of the second, and what the pair does. A cylinder or
   a capsule has a length, which may be 0 in a capsule. A rigid contact uses
   `rigid` of the places, each `stride`-th: those that follow the motion smoothly. Shapes that wear touch in `worn_places`; a pair without `touch`
   and `follow` is always treated as those are. */
typedef struct {
    int32_t places, first, second, rigid, stride;
    bool capsule[2], nested, profiled;
    void (*touch)(const touch_shape *a, const touch_shape *b, touch_place *at);
    void (*follow)(const touch_shape *a, const touch_shape *b, const touch_profile *profile, touch_place *at);
    int32_t worn_places;
    const touch_wear *wear;
} touch_pair;
extern const touch_pair mb_touch_table[TOUCH_PAIRS];

static inline bool touch_is_rigid(const int32_t *force) { return force[MB_FORCE_TYPE] == MB_TOUCH_RIGID; }
static inline bool touch_wears(const int32_t *force) { return force[MB_FORCE_TYPE] == MB_WORN; }
static inline int32_t touch_pair_number(const int32_t *force) { return force[MB_FORCE_LAW] >> TOUCH_PAIR_SHIFT & 15; }
static inline const touch_pair *touch_pair_of(const int32_t *force) {
    return &mb_touch_table[touch_pair_number(force)];
}
static inline int32_t touch_law(const int32_t *force) { return force[MB_FORCE_LAW] & ((1 << TOUCH_PAIR_SHIFT) - 1); }
static inline bool touch_swapped(const int32_t *force) { return (force[MB_FORCE_LAW] >> TOUCH_SWAP_SHIFT & 1) != 0; }
static inline int32_t touch_points(const int32_t *force) { return force[MB_FORCE_LAW] >> TOUCH_COUNT_SHIFT; }
static inline int32_t touch_places(const int32_t *force) {
    const touch_pair *pair = touch_pair_of(force);
    return touch_is_rigid(force) ? pair->rigid : touch_wears(force) ? pair->worn_places : pair->places;
}
/* The markers of the first and the second shape of the pair. */
static inline int32_t touch_first(const int32_t *force) {
    return force[touch_swapped(force) ? MB_FORCE_J : MB_FORCE_I];
}
static inline int32_t touch_second(const int32_t *force) {
    return force[touch_swapped(force) ? MB_FORCE_I : MB_FORCE_J];
}

/* pairs.c */
int32_t mb_touch_law_numbers(const int32_t *force);
const double *mb_touch_law(const mb_view *m, const int32_t *force);
/* Of shapes that wear. */
touch_worn mb_touch_worn(const mb_view *m, const int32_t *force);
bool mb_touch_check(const bl_block *b, const int32_t *force, mb_tally *tally);
bool mb_touch_sound(const mb_view *m, const int32_t *force, mb_fault *fault);
/* The two shapes, with the velocities of their markers, and of rigid ones the accelerations. */
typedef struct {
    touch_shape shape[2];
    double V[2][3], A[2][3];
    touch_profile profile;
} touch_scene;
void mb_touch_scene(const mb_view *m, const int32_t *force, double t, touch_scene *scene);
/* The places of a contact whose shapes do not wear; of a rigid one those that it uses. */
void mb_touch_places(const int32_t *force, const touch_scene *scene, touch_place *places);
/* The velocity at P of the material of a shape. */
void mb_touch_velocity(const mb_view *m, int32_t marker, const touch_shape *shape, const double *V, const double *P,
                       double *found);

/* bends.c */
/* How the normal n turns where a contact moves by w over one of its bodies: S w = all w + along t (t·w), w and t across n. On an `edge` the
   contact moves along t only. */
typedef struct {
    double all, along, t[3];
    bool edge;
} touch_bend;
/* Of both shapes at a place of a rigid contact, `place` of all that it uses. */
void mb_touch_bends(const int32_t *force, const touch_scene *scene, const touch_place *at, int32_t place,
                    touch_bend *of_a, touch_bend *of_b);

/* A direction, or z where it has no length. Returns the length. */
static inline double touch_unit(const double *d, double *n) {
    const double length = sqrt(mb_dot(d, d));
    for (int k = 0; k < 3; k++) n[k] = length > 0.0 ? d[k] / length : k == 2;
    return length;
}

#endif
