/* Contact with a closed curve r(φ) in a plane: a ball in a hole of any shape or on a cam, and a cam under a flat face.
 *
 * P(φ) = r (cos φ, sin φ), with r a cubic spline. Nearest points are where (c - P)·P′ = 0 changes its sign downwards: the table is scanned
 * for these intervals, and each is solved by Newton's method with bisection. The hole and the cam extend along z for a ball; under a face
 * the cam is thin. */
#include "blocks/multibody/elements/contact/touch.h"

enum { PROFILE_STEPS = 60 };

typedef struct {
    double P[2], first[2], second[2]; /* P, P′, P″ */
} profile_point;

/* What is sought: the point nearest to c, or the lowest one against the direction c. */
typedef struct {
    double c[2];
    bool face;
} profile_goal;

static profile_point profile_at(const touch_profile *of, int32_t k, double part) {
    const int32_t next = k + 1 < of->count ? k + 1 : 0;
    const double step = 6.283185307179586 / of->count, phi = (k + part) * step, s = part, c = cos(phi), d = sin(phi);
    const double r0 = of->r[k], r1 = of->r[next], v0 = step * of->slope[k], v1 = step * of->slope[next];
    const double up = 3.0 * (r1 - r0) - 2.0 * v0 - v1, over = 2.0 * (r0 - r1) + v0 + v1;
    const double r = r0 + s * (v0 + s * (up + s * over)), r1st = (v0 + s * (2.0 * up + 3.0 * s * over)) / step,
                 r2nd = (2.0 * up + 6.0 * s * over) / (step * step);
    return (profile_point){{r * c, r * d},
                           {r1st * c - r * d, r1st * d + r * c},
                           {(r2nd - r) * c - 2.0 * r1st * d, (r2nd - r) * d + 2.0 * r1st * c}};
}

double mb_touch_profile_curvature(const touch_profile *profile, double angle, double *along, double *inwards) {
    const double turn = angle / 6.283185307179586, places = (turn - floor(turn)) * profile->count;
    const int32_t k = (int32_t)fmin(floor(places), profile->count - 1.0);
    const profile_point p = profile_at(profile, k, places - k);
    const double length = hypot(p.first[0], p.first[1]);
    along[0] = p.first[0] / length, along[1] = p.first[1] / length, along[2] = 0.0;
    inwards[0] = -along[1], inwards[1] = along[0], inwards[2] = 0.0;
    return (p.first[0] * p.second[1] - p.first[1] * p.second[0]) / (length * length * length);
}

/* Positive before a nearest point, and its slope. */
static double profile_value(const profile_goal *goal, const profile_point *p, double *slope) {
    if (goal->face) {
        *slope = -(goal->c[0] * p->second[0] + goal->c[1] * p->second[1]);
        return -(goal->c[0] * p->first[0] + goal->c[1] * p->first[1]);
    }
    const double x = goal->c[0] - p->P[0], y = goal->c[1] - p->P[1];
    *slope = x * p->second[0] + y * p->second[1] - p->first[0] * p->first[0] - p->first[1] * p->first[1];
    return x * p->first[0] + y * p->first[1];
}

static profile_point profile_solve(const touch_profile *of, const profile_goal *goal, int32_t k) {
    const double step = 6.283185307179586 / of->count;
    double low = 0.0, high = 1.0, part = 0.5;
    for (int n = 0; n < PROFILE_STEPS; n++) {
        double slope;
        const profile_point p = profile_at(of, k, part);
        const double value = profile_value(goal, &p, &slope);
        if (value > 0.0) low = part;
        else high = part;
        double next = slope != 0.0 ? part - value / (slope * step) : low;
        if (!(next >= low && next <= high)) next = 0.5 * (low + high);
        if (fabs(next - part) <= 1e-14) break;
        part = next;
    }
    return profile_at(of, k, part);
}

/* Nodes of the table, one after the other: their direction is rotated from each to the next. */
typedef struct {
    double c, s, turn_c, turn_s;
} profile_angle;

static double profile_node(const touch_profile *of, const profile_goal *goal, int32_t k, const profile_angle *a) {
    const double r = of->r[k], v = of->slope[k], first[2] = {v * a->c - r * a->s, v * a->s + r * a->c};
    if (goal->face) return -(goal->c[0] * first[0] + goal->c[1] * first[1]);
    return (goal->c[0] - r * a->c) * first[0] + (goal->c[1] - r * a->s) * first[1];
}

/* The distance of the goal from a point of the curve: inwards, times `side`; or the height of the point over a face. */
static double profile_distance(const profile_goal *goal, const profile_point *p, double side) {
    if (goal->face) return goal->c[0] * p->P[0] + goal->c[1] * p->P[1];
    const double x = goal->c[0] - p->P[0], y = goal->c[1] - p->P[1];
    return side * (y * p->first[0] - x * p->first[1]) / hypot(p->first[0], p->first[1]);
}

/* Keeps the lowest of what is found, in order. Returns how many are kept. */
static int profile_insert(profile_point *found, double *distance, int count, const profile_point *point, double away) {
    int at = count < TOUCH_PROFILE_PLACES ? count++ : TOUCH_PROFILE_PLACES;
    for (; at > 0 && distance[at - 1] > away; at--)
        if (at < TOUCH_PROFILE_PLACES) distance[at] = distance[at - 1], found[at] = found[at - 1];
    if (at < TOUCH_PROFILE_PLACES) distance[at] = away, found[at] = *point;
    return count;
}

/* The nearest points of the whole curve, the nearest first; of a center on the wrong side of it only the very nearest, and else none
   through the material. Returns how many of them are kept, at least one. */
static int profile_nearest(const touch_profile *of, const profile_goal *goal, double side, profile_point *found,
                           double *distance) {
    const double step = 6.283185307179586 / of->count;
    profile_angle a = {.c = 1.0, .s = 0.0, .turn_c = cos(step), .turn_s = sin(step)};
    const double first = profile_node(of, goal, 0, &a);
    double before = first, behind = -INFINITY;
    profile_point through = {0};
    int count = 0;
    for (int32_t k = 0; k < of->count; k++) {
        const double c = a.c * a.turn_c - a.s * a.turn_s;
        a.s = a.s * a.turn_c + a.c * a.turn_s;
        a.c = c;
        const double after = k + 1 < of->count ? profile_node(of, goal, k + 1, &a) : first;
        const bool passes = before > 0.0 && after <= 0.0;
        before = after;
        if (!passes) continue;
        const profile_point best = profile_solve(of, goal, k);
        const double away = profile_distance(goal, &best, side);
        if (goal->face || away >= 0.0) count = profile_insert(found, distance, count, &best, away);
        else if (away > behind) behind = away, through = best;
    }
    if (count > 0 && (isinf(behind) || distance[0] <= -behind)) return count;
    if (isinf(
            behind)) { /* all points are alike: in the middle of a circle, or under a cam that lies flat on its face */
        through = profile_at(of, 0, 0.0);
        behind = profile_distance(goal, &through, side);
    }
    found[0] = through, distance[0] = behind;
    return 1;
}

/* Places of a ball on a curve of shape b: in a hole `side` is 1, on a cam -1. */
static void profile_touch(const touch_shape *a, const touch_shape *b, const touch_profile *profile, double side,
                          touch_place *at) {
    profile_point found[TOUCH_PROFILE_PLACES];
    double distance[TOUCH_PROFILE_PLACES], off[3], c[3];
    mb_sub(a->P, b->P, off);
    mb_rotate_back(b->R, off, c);
    const profile_goal goal = {{c[0], c[1]}, false};
    const int count = profile_nearest(profile, &goal, side, found, distance);
    for (int k = 0; k < TOUCH_PROFILE_PLACES; k++) {
        at[k] = (touch_place){.gap = INFINITY, .n = {1.0, 0.0, 0.0}};
        mb_copy(a->P, at[k].P);
        if (k >= count) continue;
        const double length = hypot(found[k].first[0], found[k].first[1]);
        const double n[3] = {-side * found[k].first[1] / length, side * found[k].first[0] / length, 0.0};
        mb_rotate(b->R, n, at[k].n);
        at[k].gap = distance[k] - a->size[0];
        mb_axpy(-a->size[0], at[k].n, at[k].P);
    }
}

void mb_touch_sphere_hole(const touch_shape *a, const touch_shape *b, const touch_profile *profile, touch_place *at) {
    profile_touch(a, b, profile, 1.0, at);
}

void mb_touch_sphere_cam(const touch_shape *a, const touch_shape *b, const touch_profile *profile, touch_place *at) {
    profile_touch(a, b, profile, -1.0, at);
}

void mb_touch_cam_plane(const touch_shape *a, const touch_shape *b, const touch_profile *profile, touch_place *at) {
    profile_point found[TOUCH_PROFILE_PLACES];
    double distance[TOUCH_PROFILE_PLACES], normal[3], m[3], off[3];
    mb_column(b->R, 2, normal);
    mb_rotate_back(a->R, normal, m);
    mb_sub(a->P, b->P, off);
    const profile_goal goal = {{m[0], m[1]}, true};
    const int count = profile_nearest(profile, &goal, 1.0, found, distance);
    for (int k = 0; k < TOUCH_PROFILE_PLACES; k++) {
        at[k] = (touch_place){.gap = INFINITY};
        mb_copy(normal, at[k].n);
        mb_copy(a->P, at[k].P);
        if (k >= count) continue;
        const double P[3] = {found[k].P[0], found[k].P[1], 0.0};
        double place[3];
        mb_rotate(a->R, P, place);
        mb_add(place, at[k].P);
        at[k].gap = mb_dot(normal, off) + distance[k];
    }
}
