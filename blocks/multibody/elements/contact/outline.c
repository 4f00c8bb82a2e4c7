/* A pin in a hole, both of any outline r(φ), round or not, worn or not.
 *
 * The hole is given by points P at equal angles of its marker, the pin by the B-spline of its radii. With ρ, α the distance and the direction of
 * P from the axis of the pin, the surfaces overlap there by δ = r_pin(φ) - ρ, φ = σ (α - ψ), ψ how far the pin is turned. The largest is taken
 * smoothly, as in sections.h, with the mean clearance in τ. Apart from each other, the gap is measured along radii of the pin. All along the hole and the pin extend along z of the hole. */
#include "blocks/multibody/elements/clearance/sections.h"
#include "blocks/multibody/elements/contact/touch.h"

typedef struct {
    const touch_worn *w;
    touch_twist twist;
    double c[2], radius; /* of the pin: its axis, and r where it is round */
    double most; /* no radius of the pin is larger */
    bool worn;
} outline_pair;

/* What a point sees: its distance from the axis, the direction there, how deep the pin is, and dr/dα of the pin. */
typedef struct {
    double away, e[2], depth, slope;
} outline_view;

static outline_pair outline_read(const touch_worn *w, const touch_shape *a, const touch_shape *b) {
    outline_pair o = {.w = w, .twist = mb_worn_twist(a, b), .worn = *mb_worn_is_pin_worn(w) != 0.0};
    double off[3];
    mb_sub(a->P, b->P, off);
    mb_rotate_back(b->R, off, off);
    o.c[0] = off[0], o.c[1] = off[1];
    o.radius = w->pin ? 0.0 : a->size[0];
    o.most = o.radius;
    for (int32_t k = 0; w->pin && k < w->sections; k++) o.most = fmax(o.most, w->pin[k]);
    return o;
}

static mb_spline_place outline_on_pin(const outline_pair *o, const outline_view *see) {
    return mb_spline_find(o->w->sections, o->twist.sign * (atan2(see->e[1], see->e[0]) - o->twist.angle));
}

/* Of points that are less deep than `least` only the distance and the direction. */
static outline_view outline_see(const outline_pair *o, const mb_section *a, int32_t k, double least) {
    const double r = o->w->hole[k] + mb_worn_hole(o->w)[k], x = r * a->c - o->c[0], y = r * a->s - o->c[1];
    outline_view see = {.away = sqrt(x * x + y * y)};
    see.e[0] = see.away > 0.0 ? x / see.away : a->c;
    see.e[1] = see.away > 0.0 ? y / see.away : a->s;
    see.depth = o->radius - see.away;
    if (!o->w->pin && !o->worn) return see;
    if (o->most - see.away < least) {
        see.depth = -INFINITY;
        return see;
    }
    const mb_spline_place at = outline_on_pin(o, &see);
    if (o->w->pin) {
        see.depth += mb_spline_sum(&at, at.weight, o->w->pin, 0);
        see.slope += o->twist.sign * mb_spline_sum(&at, at.slope, o->w->pin, 0);
    }
    if (o->worn) {
        see.depth -= mb_spline_sum(&at, at.weight, mb_worn_pin(o->w), 0);
        see.slope -= o->twist.sign * mb_spline_sum(&at, at.slope, mb_worn_pin(o->w), 0);
    }
    return see;
}

/* τ, and how much sharper than its clearance the contact of round outlines of the mean radii is: R / r. */
static double outline_tau(const outline_pair *o, double *sharper) {
    const double step = 2.0 * 3.14159265358979323846 / o->w->sections;
    double hole = 0.0, pin = 0.0;
    for (int32_t k = 0; k < o->w->sections; k++) {
        hole += o->w->hole[k];
        pin += o->w->pin ? o->w->pin[k] : o->radius;
    }
    *sharper = fmax(1.0, hole / pin);
    return fmax(hole - pin, 1e-4 * hole) / o->w->sections * step * step;
}

/* The nearest point first: next to it few others need a look at the pin's outline. */
static double outline_deepest(const outline_pair *o) {
    const bool round = !o->w->pin && !o->worn;
    mb_section a = mb_section_first(o->w->sections), best = a;
    int32_t which = 0;
    double nearest = INFINITY, deepest = -INFINITY;
    for (int32_t k = 0; !round && k < o->w->sections; k++, mb_section_next(&a)) {
        const double away = outline_see(o, &a, k, INFINITY).away;
        if (away < nearest) nearest = away, which = k, best = a;
    }
    if (!round) deepest = outline_see(o, &best, which, -INFINITY).depth;
    a = mb_section_first(o->w->sections);
    for (int32_t k = 0; k < o->w->sections; k++, mb_section_next(&a))
        deepest = fmax(deepest, outline_see(o, &a, k, deepest).depth);
    return deepest;
}

static void outline_places(const touch_worn *w, const touch_shape *a, const touch_shape *b, touch_place *at,
                           touch_give *give) {
    const outline_pair o = outline_read(w, a, b);
    double sharper;
    const double tau = outline_tau(&o, &sharper), deepest = outline_deepest(&o);
    double sum = 0.0, push[3] = {0.0, 0.0, 0.0}, reach[3] = {0.0, 0.0, 0.0}, away = 0.0, turn = 0.0;
    mb_section angle = mb_section_first(w->sections);
    for (int32_t k = 0; k < w->sections; k++, mb_section_next(&angle)) {
        const outline_view see = outline_see(&o, &angle, k, deepest - MB_SECTION_DEEP * tau);
        const double part = mb_section_part(see.depth, deepest, tau);
        if (part == 0.0) continue;
        const double across = see.away > 0.0 ? see.slope / see.away : 0.0;
        sum += part;
        push[0] -= part * (see.e[0] + across * see.e[1]); /* e - across (z × e) */
        push[1] -= part * (see.e[1] - across * see.e[0]);
        reach[0] += part * see.away * see.e[0];
        reach[1] += part * see.away * see.e[1];
        away += part * see.away;
        turn += part * see.slope;
    }
    double F[3], M[3] = {0.0, 0.0, 0.0}, P[3], direction[3];
    const double length = hypot(reach[0], reach[1]);
    for (int k = 0; k < 2; k++) push[k] /= sum, reach[k] *= length > 0.0 ? away / (sum * length) : 0.0;
    mb_rotate(b->R, push, F);
    mb_rotate(b->R, reach, direction);
    mb_copy(a->P, P);
    mb_add(direction, P);
    mb_axpy(turn / sum, o.twist.about, M);
    mb_worn_place(F, M, a->P, P, at, give);
    at->gap = mb_section_gap(deepest, tau, sum, w->sections, sharper);
}

static void outline_weigh(const touch_worn *w, const touch_shape *a, const touch_shape *b, int32_t place,
                          double *share) {
    (void)place;
    const outline_pair o = outline_read(w, a, b);
    double sharper, sum = 0.0;
    const double tau = outline_tau(&o, &sharper), deepest = outline_deepest(&o);
    mb_section angle = mb_section_first(w->sections);
    for (int32_t k = 0; k < w->sections; k++, mb_section_next(&angle)) {
        share[k] = mb_section_part(outline_see(&o, &angle, k, deepest - MB_SECTION_DEEP * tau).depth, deepest, tau);
        sum += share[k];
    }
    for (int32_t k = 0; k < w->sections; k++) share[k] /= sum;
}

/* A section of the hole loses the depth of its volume at its own radius, and so do those of the pin. */
static void outline_keep(const touch_worn *w, const touch_shape *a, const touch_shape *b, int32_t place,
                         const double *share, double of_hole, double of_pin) {
    (void)place;
    const outline_pair o = outline_read(w, a, b);
    double *hole = mb_worn_hole(w), *pin = mb_worn_pin(w);
    mb_section angle = mb_section_first(w->sections);
    for (int32_t k = 0; k < w->sections; k++, mb_section_next(&angle)) {
        if (share[k] == 0.0) continue;
        const outline_view see = outline_see(&o, &angle, k, INFINITY);
        const mb_spline_place at = outline_on_pin(&o, &see);
        hole[k] += of_hole * share[k] / mb_worn_area(w, w->hole[k]);
        for (int32_t n = 0; n < 4; n++) {
            const int32_t index = mb_spline_index(&at, 0, n);
            pin[index] += of_pin * share[k] * at.weight[n] / mb_worn_area(w, w->pin ? w->pin[index] : o.radius);
        }
    }
}

const touch_wear mb_wear_outline = {outline_places, outline_weigh, outline_keep};
