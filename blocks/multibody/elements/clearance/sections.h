/* Surfaces that wear, divided into sections at equal angles: where they touch, and what each section loses. Internal to elements/clearance/
   and elements/contact/.
 *
 * A ring is a wall with a body in it, both nearly round, seen along their axis. Toward the angle θ of the wall the body sinks in by
 *     δ(θ) = d·e(θ) - clearance - wall(θ) - inner(φ) - radius (1 - f),   φ = σ (θ - ψ),   f = √(1 - (tilt·e)²)
 * with d its offset, e = (cos θ, sin θ), wall and inner the depths to which the two are worn, ψ how far the body is turned, σ = -1 if its axis
 * points the other way, and the last term for a body whose axis is tilted. It touches where δ is largest, so that it rests on the edges of
 * a pit that is narrower than itself. The largest one is taken smoothly,
 *
 *     δ = τ ln (Σ exp(δ(θ) / τ) / S),   ∂δ = Σ s ∂δ(θ),   s = exp(δ(θ) / τ) / Σ exp(δ(θ) / τ),   τ = clearance Δθ²
 *
 * with S such that δ = |d| - clearance where a wall that is not worn is touched. That has all derivatives, so that its forces have a
 * potential, and a body that fits its bed all along lies still in it. A contact is as wide as about two sections, its pressure and its wear
 * are distributed by s. Without tilt and turn it is convex in d; its slope, |∂δ/∂d|, is 1 less half of Δθ² in a round hole.
 *
 * The depths of the inner body are the coefficients of a cubic B-spline of its angle, which has two derivatives however it turns; what a place
 * loses is given to the coefficients around it by the same weights, which are positive and add up to 1. */
#ifndef BIELLA_SECTIONS_H
#define BIELLA_SECTIONS_H

#include "blocks/multibody/kernel/multibody.h"

/* The direction of a section, rotated incrementally from one to the next. */
typedef struct {
    double c, s, turn_c, turn_s;
} mb_section;
static inline mb_section mb_section_first(int32_t sections) {
    const double step = 2.0 * 3.14159265358979323846 / sections;
    return (mb_section){.c = 1.0, .s = 0.0, .turn_c = cos(step), .turn_s = sin(step)};
}
static inline void mb_section_next(mb_section *a) {
    const double c = a->c * a->turn_c - a->s * a->turn_s;
    a->s = a->s * a->turn_c + a->c * a->turn_s;
    a->c = c;
}

/* exp of a depth below the deepest one; values at the rounding level of that are 0. */
#define MB_SECTION_DEEP 40.0
static inline double mb_section_part(double depth, double deepest, double tau) {
    const double less = (depth - deepest) / tau;
    return less > -MB_SECTION_DEEP ? exp(less) : 0.0;
}
/* The gap of what touches most: `sum` is that of all parts. τ is `clearance` Δθ²; -∂²δ/∂θ² where surfaces that are not worn touch is `sharper`
   times the clearance. */
double mb_section_gap(double deepest, double tau, double sum, int32_t sections, double sharper);

/* A place on a periodic B-spline of `count` coefficients: four of them from `first` - 1 on, with their weights and those of the slope. */
typedef struct {
    int32_t first, count;
    double weight[4], slope[4];
} mb_spline_place;
mb_spline_place mb_spline_find(int32_t count, double angle);
/* The coefficient `ahead` of 0 … 3 of a place `shift` sections from it; |shift| ≤ count. */
static inline int32_t mb_spline_index(const mb_spline_place *at, int32_t shift, int32_t ahead) {
    int32_t index = at->first + shift + ahead - 1;
    if (index < 0) index += at->count;
    if (index >= at->count) index -= at->count;
    return index >= at->count ? index - at->count : index;
}
static inline double mb_spline_sum(const mb_spline_place *at, const double *weight, const double *map, int32_t shift) {
    double sum = 0.0;
    for (int32_t n = 0; n < 4; n++) sum += weight[n] * map[mb_spline_index(at, shift, n)];
    return sum;
}
/* Its values at the angles of its coefficients. */
void mb_spline_show(const double *map, int32_t count, double *y);

/* `wall` and `inner` may be NULL, which is round. A ball of the radius `ball`, a distance `beyond` past the mouth of its bore, touches the
   edge of that: δ(θ) = ball - √((ball + clearance + wall - d·e)² + beyond²). */
typedef struct {
    int32_t sections, sign; /* σ */
    double d[2], clearance;
    const double *wall, *inner;
    mb_spline_place place; /* of the inner body at θ = 0 */
    bool tilted;
    double tilt[2], radius;
    double ball, beyond;
} mb_ring;

/* The deepest section, τ, and sums over s, but for that of s: ∂δ/∂d, the same times tilt·e / f, the slope of the inner spline, and ∂δ by
   `beyond`; exponents are less the largest of them. */
typedef struct {
    double deepest, tau, sum, x, y, tilt[2], turn, beyond;
} mb_ring_shares;
mb_ring_shares mb_ring_share(const mb_ring *ring);
/* Adds a depth to the wall, which may be `ring->wall`, times the shares before they are divided by their sum. */
void mb_ring_wear(const mb_ring *ring, const mb_ring_shares *shares, double depth, double *wall);
/* The same for both: first the shares of all sections, then their depths of the wall and of the inner body. All shares are read before any
   depth changes. */
void mb_ring_weigh(const mb_ring *ring, double *share);
void mb_ring_give(const mb_ring *ring, const double *share, double depth, double *wall, double inner_depth,
                  double *inner);

#endif
