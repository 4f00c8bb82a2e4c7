/* Where two shapes are nearest to each other: internal to elements/contact/. */
#ifndef BIELLA_TOUCH_H
#define BIELLA_TOUCH_H

#include "blocks/multibody/kernel/multibody.h"

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

/* A direction, or z where it has no length. Returns the length. */
static inline double touch_unit(const double *d, double *n) {
    const double length = sqrt(mb_dot(d, d));
    for (int k = 0; k < 3; k++) n[k] = length > 0.0 ? d[k] / length : k == 2;
    return length;
}

#endif
