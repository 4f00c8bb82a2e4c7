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

/* A direction, or z where it has no length. Returns the length. */
static inline double touch_unit(const double *d, double *n) {
    const double length = sqrt(mb_dot(d, d));
    for (int k = 0; k < 3; k++) n[k] = length > 0.0 ? d[k] / length : k == 2;
    return length;
}

#endif
