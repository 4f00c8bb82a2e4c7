#include "blocks/multibody/elements/clearance/sections.h"

static const double SECTION_TURN = 2.0 * 3.14159265358979323846;

/* ln S / sections: ln (I₀(x) exp(-x)) with x = 1 / Δθ², by its series for large x. */
static double section_round(double x) {
    const double s = 1.0 / (8.0 * x);
    return log((1.0 + s * (1.0 + s * (4.5 + s * 37.5))) / sqrt(SECTION_TURN * x));
}

double mb_section_gap(double deepest, double tau, double sum, int32_t sections, double sharper) {
    const double step = SECTION_TURN / sections;
    return -deepest - tau * (log(sum / sections) - section_round(sharper / (step * step)));
}

mb_spline_place mb_spline_find(int32_t count, double angle) {
    const double turns = angle / SECTION_TURN, part = (turns - floor(turns)) * count;
    /* an angle that is not finite is 0, and so is one a little below 0, which is rounded to a whole turn */
    const double at = part > 0.0 && part < count ? part : 0.0;
    const int32_t whole = (int32_t)at;
    const double f = at - whole, g = 1.0 - f, step = SECTION_TURN / count;
    return (mb_spline_place){
        .first = whole,
        .count = count,
        .weight = {g * g * g / 6.0, (4.0 + f * f * (3.0 * f - 6.0)) / 6.0, (4.0 + g * g * (3.0 * g - 6.0)) / 6.0,
                   f * f * f / 6.0},
        .slope = {-0.5 * g * g / step, f * (1.5 * f - 2.0) / step, -g * (1.5 * g - 2.0) / step, 0.5 * f * f / step}};
}

void mb_spline_show(const double *map, int32_t count, double *y) {
    for (int32_t k = 0; k < count; k++)
        y[k] = (map[k > 0 ? k - 1 : count - 1] + 4.0 * map[k] + map[k + 1 < count ? k + 1 : 0]) / 6.0;
}

/* What a section sees: δ, tilt·e and f of a tilted body, and how far the center of a ball is from the edge of the mouth, and across. */
typedef struct {
    double depth, lean, f, away, across;
} ring_view;

static ring_view ring_see(const mb_ring *ring, const mb_section *a, int32_t k) {
    ring_view see = {.f = 1.0};
    const double reach = ring->d[0] * a->c + ring->d[1] * a->s, worn = ring->wall ? ring->wall[k] : 0.0;
    if (ring->beyond != 0.0) {
        see.across = ring->ball + ring->clearance + worn - reach;
        see.away = sqrt(see.across * see.across + ring->beyond * ring->beyond);
        see.depth = ring->ball - see.away;
    } else {
        see.depth = reach - ring->clearance - worn;
    }
    if (ring->inner) see.depth -= mb_spline_sum(&ring->place, ring->place.weight, ring->inner, ring->sign * k);
    if (ring->tilted) { /* 1 - f = lean² / (1 + f), without cancellation */
        see.lean = ring->tilt[0] * a->c + ring->tilt[1] * a->s;
        see.f = sqrt(fmax(0.0, 1.0 - see.lean * see.lean));
        see.depth -= ring->radius * (see.lean * see.lean / (1.0 + see.f));
    }
    return see;
}

/* How much deeper than d·e - clearance no section is: what is worn makes it less deep, and so does the tilt but of a mouth. */
static double ring_margin(const mb_ring *ring) {
    if (ring->beyond != 0.0) return INFINITY;
    if (!ring->tilted || ring->radius >= 0.0) return 0.0;
    const double most = fmin(1.0, ring->tilt[0] * ring->tilt[0] + ring->tilt[1] * ring->tilt[1]);
    return -1.000001 * ring->radius * most / (1.0 + sqrt(1.0 - most));
}

/* Whether a section may be as deep as `least`, before it is looked at in detail. */
static bool ring_reaches(const mb_ring *ring, const mb_section *a, double margin, double least) {
    return !(ring->d[0] * a->c + ring->d[1] * a->s - ring->clearance + margin < least);
}

mb_ring_shares mb_ring_share(const mb_ring *ring) {
    const double step = SECTION_TURN / ring->sections, margin = ring_margin(ring);
    mb_ring_shares shares = {.deepest = -INFINITY, .tau = ring->clearance * step * step};
    mb_section a = mb_section_first(ring->sections);
    const mb_spline_place toward = mb_spline_find(ring->sections, atan2(ring->d[1], ring->d[0]));
    const mb_section at = {.c = cos(toward.first * step), .s = sin(toward.first * step)};
    const double known = ring_see(ring, &at, toward.first).depth - shares.tau; /* some section is deeper */
    for (int32_t k = 0; k < ring->sections; k++, mb_section_next(&a))
        if (ring_reaches(ring, &a, margin, fmax(known, shares.deepest)))
            shares.deepest = fmax(shares.deepest, ring_see(ring, &a, k).depth);
    a = mb_section_first(ring->sections);
    const double least = shares.deepest - MB_SECTION_DEEP * shares.tau;
    for (int32_t k = 0; k < ring->sections; k++, mb_section_next(&a)) {
        if (!ring_reaches(ring, &a, margin, least)) continue;
        const ring_view see = ring_see(ring, &a, k);
        double part = mb_section_part(see.depth, shares.deepest, shares.tau);
        if (part == 0.0) continue;
        shares.sum += part;
        if (ring->inner)
            shares.turn += part * mb_spline_sum(&ring->place, ring->place.slope, ring->inner, ring->sign * k);
        if (ring->beyond != 0.0) {
            shares.beyond -= part * ring->beyond / see.away;
            part *= see.across / see.away;
        }
        shares.x += part * a.c;
        shares.y += part * a.s;
        if (!ring->tilted) continue;
        const double lean = see.f > 0.0 ? part * see.lean / see.f : 0.0;
        shares.tilt[0] += lean * a.c;
        shares.tilt[1] += lean * a.s;
    }
    return shares;
}

void mb_ring_wear(const mb_ring *ring, const mb_ring_shares *shares, double depth, double *wall) {
    mb_section a = mb_section_first(ring->sections);
    for (int32_t k = 0; k < ring->sections; k++, mb_section_next(&a))
        wall[k] += depth * mb_section_part(ring_see(ring, &a, k).depth, shares->deepest, shares->tau);
}

void mb_ring_weigh(const mb_ring *ring, double *share) {
    const mb_ring_shares shares = mb_ring_share(ring);
    const double margin = ring_margin(ring), least = shares.deepest - MB_SECTION_DEEP * shares.tau;
    mb_section a = mb_section_first(ring->sections);
    for (int32_t k = 0; k < ring->sections; k++, mb_section_next(&a))
        share[k] = ring_reaches(ring, &a, margin, least)
                       ? mb_section_part(ring_see(ring, &a, k).depth, shares.deepest, shares.tau) / shares.sum
                       : 0.0;
}

void mb_ring_give(const mb_ring *ring, const double *share, double depth, double *wall, double inner_depth,
                  double *inner) {
    for (int32_t k = 0; k < ring->sections; k++) {
        if (share[k] == 0.0) continue;
        wall[k] += depth * share[k];
        for (int32_t n = 0; n < 4; n++)
            inner[mb_spline_index(&ring->place, ring->sign * k, n)] += inner_depth * share[k] * ring->place.weight[n];
    }
}
