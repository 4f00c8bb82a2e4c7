/* Gaps between spheres, planes, capsules and cylinders, and of a sphere in a socket or a bore.
 *
 * The axis of a capsule, a cylinder or a bore is z of its marker, which is in its middle; the length of a capsule is that of its straight
 * part. A plane passes through its marker, across z; the shape that it touches is on the side of z. */
#include "blocks/multibody/elements/contact/touch.h"

/* Two balls of radii r at c and s at d. */
static void shape_between_points(const double *c, double r, const double *d, double s, touch_place *at) {
    double off[3];
    mb_sub(c, d, off);
    at->gap = touch_unit(off, at->n) - r - s;
    mb_copy(c, at->P);
    mb_axpy(-r, at->n, at->P);
    at->twin = 0;
}

static void shape_ball_on_plane(const double *c, double r, const touch_shape *b, touch_place *at) {
    double off[3];
    mb_column(b->R, 2, at->n);
    mb_sub(c, b->P, off);
    at->gap = mb_dot(at->n, off) - r;
    mb_copy(c, at->P);
    mb_axpy(-r, at->n, at->P);
    at->twin = 0;
}

/* The point of the axis of a shape at x from its middle. */
static void shape_along_axis(const touch_shape *s, double x, double *P) {
    double axis[3];
    mb_column(s->R, 2, axis);
    mb_copy(s->P, P);
    mb_axpy(x, axis, P);
}

static double shape_clamp(double x, double most) { return fmax(-most, fmin(most, x)); }

void mb_touch_sphere_plane(const touch_shape *a, const touch_shape *b, touch_place *at) {
    shape_ball_on_plane(a->P, a->size[0], b, at);
}

void mb_touch_capsule_plane(const touch_shape *a, const touch_shape *b, touch_place *at) {
    for (int side = 0; side < 2; side++) {
        double end[3];
        shape_along_axis(a, (0.5 - side) * a->size[1], end);
        shape_ball_on_plane(end, a->size[0], b, &at[side]);
    }
}

/* Of each end its lowest point, then two twins at 120° from that: three points hold a cylinder that stands. The height of the twins does
   not depend on the direction of the tilt, so that the sum of their forces has a potential. */
void mb_touch_cylinder_plane(const touch_shape *a, const touch_shape *b, touch_place *at) {
    static const double COSINE[] = {1.0, -0.5, -0.5}, SINE[] = {0.0, 0.86602540378443865, -0.86602540378443865};
    double axis[3], low[3], side[3], normal[3];
    mb_column(a->R, 2, axis);
    mb_column(b->R, 2, normal);
    mb_copy(axis, low);
    for (int k = 0; k < 3; k++) low[k] = axis[k] * mb_dot(normal, axis) - normal[k];
    if (touch_unit(low, low) < 1e-12) mb_column(a->R, 0, low);
    mb_cross(axis, low, side);
    for (int k = 0; k < 6; k++) {
        double P[3];
        shape_along_axis(a, (k < 3 ? 0.5 : -0.5) * a->size[1], P);
        mb_axpy(a->size[0] * COSINE[k % 3], low, P);
        mb_axpy(a->size[0] * SINE[k % 3], side, P);
        shape_ball_on_plane(P, 0.0, b, &at[k]);
        at[k].twin = k % 3 == 1;
    }
}

void mb_touch_spheres(const touch_shape *a, const touch_shape *b, touch_place *at) {
    shape_between_points(a->P, a->size[0], b->P, b->size[0], at);
}

void mb_touch_sphere_capsule(const touch_shape *a, const touch_shape *b, touch_place *at) {
    double axis[3], off[3], nearest[3];
    mb_column(b->R, 2, axis);
    mb_sub(a->P, b->P, off);
    shape_along_axis(b, shape_clamp(mb_dot(axis, off), 0.5 * b->size[1]), nearest);
    shape_between_points(a->P, a->size[0], nearest, b->size[0], at);
}

/* The nearest points of two segments; of parallel ones those in the middle of what they have beside each other. */
void mb_touch_capsules(const touch_shape *a, const touch_shape *b, touch_place *at) {
    double u[3], v[3], off[3], P[3], Q[3];
    const double most_s = 0.5 * a->size[1], most_t = 0.5 * b->size[1];
    mb_column(a->R, 2, u);
    mb_column(b->R, 2, v);
    mb_sub(a->P, b->P, off);
    const double uv = mb_dot(u, v), du = mb_dot(off, u), dv = mb_dot(off, v);
    double across[3], s;
    mb_cross(u, v, across);
    const double sine2 = mb_dot(across, across);
    if (sine2 > 1e-24) s = shape_clamp((uv * dv - du) / sine2, most_s);
    else s = 0.5 * (shape_clamp(-du - most_t, most_s) + shape_clamp(-du + most_t, most_s));
    const double t = shape_clamp(uv * s + dv, most_t);
    s = shape_clamp(uv * t - du, most_s);
    if (sine2 <= 1e-24 && fabs(uv * s + dv) <= most_t)
        s = 0.5 * (shape_clamp(-du - most_t, most_s) + shape_clamp(-du + most_t, most_s));
    shape_along_axis(a, s, P);
    shape_along_axis(b, shape_clamp(uv * s + dv, most_t), Q);
    shape_between_points(P, a->size[0], Q, b->size[0], at);
}

/* The nearest point of a solid cylinder: on its wall, an end, or an edge. */
void mb_touch_sphere_cylinder(const touch_shape *a, const touch_shape *b, touch_place *at) {
    double off[3], c[3], away[3] = {0.0, 0.0, 0.0};
    const double radius = b->size[0], half = 0.5 * b->size[1];
    mb_sub(a->P, b->P, off);
    mb_rotate_back(b->R, off, c);
    const double rho = hypot(c[0], c[1]), wall = rho - radius, end = fabs(c[2]) - half;
    const double out[3] = {rho > 0.0 ? c[0] / rho : 1.0, rho > 0.0 ? c[1] / rho : 0.0, c[2] < 0.0 ? -1.0 : 1.0};
    double distance;
    if (wall > 0.0 && end > 0.0) {
        distance = hypot(wall, end);
        away[0] = out[0] * wall / distance, away[1] = out[1] * wall / distance, away[2] = out[2] * end / distance;
    } else if (wall > end) {
        distance = wall;
        away[0] = out[0], away[1] = out[1];
    } else {
        distance = end;
        away[2] = out[2];
    }
    mb_rotate(b->R, away, at->n);
    at->gap = distance - a->size[0];
    mb_copy(a->P, at->P);
    mb_axpy(-a->size[0], at->n, at->P);
    at->twin = 0;
}

void mb_touch_sphere_socket(const touch_shape *a, const touch_shape *b, touch_place *at) {
    double off[3];
    mb_sub(b->P, a->P, off);
    at->gap = b->size[0] - a->size[0] - touch_unit(off, at->n);
    mb_copy(a->P, at->P);
    mb_axpy(-a->size[0], at->n, at->P);
    at->twin = 0;
}

/* Within the bore its wall, beyond it the edge of its mouth; nothing beside it. */
void mb_touch_sphere_bore(const touch_shape *a, const touch_shape *b, touch_place *at) {
    double off[3], c[3];
    const double radius = b->size[0], z = 0.5 * b->size[1];
    mb_sub(a->P, b->P, off);
    mb_rotate_back(b->R, off, c);
    const double rho = hypot(c[0], c[1]), beyond = c[2] - shape_clamp(c[2], z);
    const double out[2] = {rho > 0.0 ? c[0] / rho : 1.0, rho > 0.0 ? c[1] / rho : 0.0};
    const double edge[3] = {(rho - radius) * out[0], (rho - radius) * out[1], beyond}, away = sqrt(mb_dot(edge, edge));
    double n[3] = {-out[0], -out[1], 0.0};
    at->gap = rho < radius ? radius - rho - a->size[0] : INFINITY;
    if (beyond != 0.0 && away > 0.0) {
        at->gap = away - a->size[0];
        for (int k = 0; k < 3; k++) n[k] = edge[k] / away;
    }
    mb_rotate(b->R, n, at->n);
    mb_copy(a->P, at->P);
    mb_axpy(-a->size[0], at->n, at->P);
    at->twin = 0;
}
