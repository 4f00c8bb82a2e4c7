/* Curvature of shapes at the places where they touch: what the acceleration of a gap needs besides the motion of the two bodies.
 *
 * With n from body b into body a, S w is the change of n where the contact moves by w over one of the bodies: for a ball of radius r,
 * -w / r on body a and w / r on body b; in a hollow one on body b, -w / R; on a plane 0. Around the axis of a cylinder or a bore alone the same.
 * On an edge, a circle of radius r about an axis with the direction e outwards, n·e w / r along it: for it turns with the normal as far
 * as is asked across it, the contact moves along it only. */
#include "blocks/multibody/elements/contact/touch.h"

/* A contact of a segment at its ends is that of a ball. */
static const double BEND_END = 1e-12;

static touch_bend bend_flat(void) { return (touch_bend){0}; }

static touch_bend bend_ball(double curvature) { return (touch_bend){.all = curvature}; }

/* Around the axis z of a shape alone. */
static touch_bend bend_wall(const touch_shape *s, const double *n, double curvature) {
    touch_bend bend = {.along = curvature};
    double axis[3], around[3];
    mb_column(s->R, 2, axis);
    mb_cross(axis, n, around);
    touch_unit(around, bend.t);
    return bend;
}

/* A circle about z of a shape that passes P. */
static touch_bend bend_edge(const touch_shape *s, const double *P, const double *n) {
    touch_bend bend = {.edge = true};
    double axis[3], off[3], out[3], around[3];
    mb_column(s->R, 2, axis);
    mb_sub(P, s->P, off);
    mb_axpy(-mb_dot(axis, off), axis, off);
    touch_unit(off, out);
    mb_cross(axis, out, around);
    /* Where the edge is that of the other shape's mouth, n is across it but for rounding. */
    mb_axpy(-mb_dot(around, n), n, around);
    touch_unit(around, bend.t);
    bend.along = mb_dot(n, out) / s->size[0];
    return bend;
}

/* The place along z where P is beside the axis of a shape. */
static double bend_along_axis(const touch_shape *s, const double *P) {
    double axis[3], off[3];
    mb_column(s->R, 2, axis);
    mb_sub(P, s->P, off);
    return mb_dot(axis, off);
}

static touch_bend bend_capsule(const touch_shape *s, const double *P, const double *n, double sign) {
    const bool round = fabs(bend_along_axis(s, P)) >= 0.5 * s->size[1] * (1.0 - BEND_END);
    return round ? bend_ball(sign / s->size[0]) : bend_wall(s, n, sign / s->size[0]);
}

/* On a solid cylinder: its end, its wall or the edge between them, told by the direction of n. */
static touch_bend bend_cylinder(const touch_shape *s, const double *P, const double *n) {
    double axis[3];
    mb_column(s->R, 2, axis);
    const double up = fabs(mb_dot(axis, n));
    if (up <= BEND_END) return bend_wall(s, n, 1.0 / s->size[0]);
    return up >= 1.0 - BEND_END ? bend_flat() : bend_edge(s, P, n);
}

static touch_bend bend_in_bore(const touch_shape *ball, const touch_shape *s, const double *P, const double *n) {
    const bool beyond = fabs(bend_along_axis(s, ball->P)) > 0.5 * s->size[1];
    return beyond ? bend_edge(s, P, n) : bend_wall(s, n, -1.0 / s->size[0]);
}

/* On a cam at P. Under a face it is thin: an edge. */
static touch_bend bend_cam(const touch_shape *cam, const touch_profile *profile, const double *P, const double *n,
                           bool thin) {
    touch_bend bend = {.edge = thin};
    double off[3], seen[3], along[3], inwards[3];
    mb_sub(P, cam->P, off);
    mb_rotate_back(cam->R, off, seen);
    const double curvature = mb_touch_profile_curvature(profile, atan2(seen[1], seen[0]), along, inwards);
    mb_rotate(cam->R, along, along);
    mb_rotate(cam->R, inwards, inwards);
    mb_axpy(-mb_dot(along, n), n, along);
    touch_unit(along, bend.t);
    bend.along = -curvature * mb_dot(n, inwards);
    return bend;
}

void mb_touch_bends(const int32_t *force, const touch_scene *scene, const touch_place *at, int32_t place,
                    touch_bend *of_a, touch_bend *of_b) {
    const touch_shape *a = &scene->shape[0], *b = &scene->shape[1];
    const double *P = at->P, *n = at->n;
    *of_a = a->size ? bend_ball(-1.0 / a->size[0]) : bend_flat();
    *of_b = bend_flat();
    switch (touch_pair_number(force)) {
        case TOUCH_SPHERES: *of_b = bend_ball(1.0 / b->size[0]); break;
        case TOUCH_SPHERE_CAPSULE: *of_b = bend_capsule(b, P, n, 1.0); break;
        case TOUCH_SPHERE_CYLINDER: *of_b = bend_cylinder(b, P, n); break;
        case TOUCH_CAPSULES:
            *of_a = bend_capsule(a, P, n, -1.0);
            *of_b = bend_capsule(b, P, n, 1.0);
            break;
        case TOUCH_SPHERE_SOCKET: *of_b = bend_ball(-1.0 / b->size[0]); break;
        case TOUCH_SPHERE_BORE: *of_b = bend_in_bore(a, b, P, n); break;
        case TOUCH_PIN_BORE: /* edges of the pin, then of the bore */
            *of_a = place < 2 ? bend_edge(a, P, n) : bend_wall(a, n, -1.0 / a->size[0]);
            *of_b = place < 2 ? bend_wall(b, n, -1.0 / b->size[0]) : bend_edge(b, P, n);
            break;
        case TOUCH_SPHERE_CAM: *of_b = bend_cam(b, &scene->profile, P, n, false); break;
        case TOUCH_CAM_PLANE: *of_a = bend_cam(a, &scene->profile, P, n, true); break;
        default: break;
    }
}
