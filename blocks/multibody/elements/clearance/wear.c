/* A hole that wears: Archard's law, and the contact of a pin in a hole that is no longer round.
 *
 * Material goes by the volume k N |slip| / H a second, k Archard's coefficient and H the hardness of the softer surface. The hole is
 * worn by w at `sections` equal angles θ of its marker; the pin stays round. In a hole of the radius R_pin + e + w(θ) a pin whose center
 * is at c sinks in by δ(θ) = c·n(θ) - e - w(θ) toward θ, and touches where that is largest: so it rests on the edges of a pit that is
 * narrower than itself. The largest one is taken smoothly,
 *
 *     δ = τ ln (Σ exp(δ(θ) / τ) / S),   ∂δ/∂c = Σ s n,   s = exp(δ(θ) / τ) / Σ exp(δ(θ) / τ),   τ = e Δθ²
 *
 * with S such that δ = |c| - e where a hole that is not worn is touched. That is convex in c and has all derivatives, so that its
 * forces have a potential, and a pin that fits its bed all along lies still in it. A contact is as wide as about two sections, its
 * pressure and its wear are distributed by s. The slope, |∂δ/∂c|, is 1 less half of Δθ² in a round hole.
 *
 * Memory: w at each angle, the time up to which wear is counted, and the volume a second there. It changes after whole steps only. */
#include <math.h>

#include "blocks/multibody/kernel/multibody.h"

enum { WEAR_TIME, WEAR_RATE, WEAR_KEPT }; /* after the map */

static const double WEAR_PI = 3.14159265358979323846;

int32_t mb_wear_sections(const int32_t *force) {
    return force[MB_FORCE_TYPE] == MB_CONTACT ? force[MB_FORCE_LAW] >> MB_CONTACT_WEAR_SHIFT : 0;
}

/* From the head of the integers and the table of forces alone, for mb_open. */
int64_t mb_wear_memory(const int32_t *forces, int32_t count) {
    int64_t sum = 0;
    for (int32_t n = 0; n < count; n++) {
        const int32_t sections = mb_wear_sections(forces + n * MB_FORCE_FIELDS);
        sum += sections > 0 ? sections + WEAR_KEPT : 0;
    }
    return sum;
}

static double *wear_map(const mb_view *m, const int32_t *force) {
    return m->wear + mb_wear_memory(m->forces, (int32_t)((force - m->forces) / MB_FORCE_FIELDS));
}

/* ln S / sections: ln (I₀(x) exp(-x)) with x = 1 / Δθ², by its series for large x. */
static double wear_round(double x) {
    const double s = 1.0 / (8.0 * x);
    return log((1.0 + s * (1.0 + s * (4.5 + s * 37.5))) / sqrt(2.0 * WEAR_PI * x));
}

/* The direction of a section, rotated incrementally from one to the next. */
typedef struct {
    double c, s, turn_c, turn_s;
} wear_angle;
static wear_angle wear_first(int32_t sections) {
    const double step = 2.0 * WEAR_PI / sections;
    return (wear_angle){.c = 1.0, .s = 0.0, .turn_c = cos(step), .turn_s = sin(step)};
}
static void wear_next(wear_angle *a) {
    const double c = a->c * a->turn_c - a->s * a->turn_s;
    a->s = a->s * a->turn_c + a->c * a->turn_s;
    a->c = c;
}

/* The deepest section, τ, and the sums of s and s n but for that of s; exponents are less the largest of them. */
typedef struct {
    double deepest, tau, sum, x, y;
} wear_shares;

static double wear_depth(const double *offset, double clearance, const double *map, const wear_angle *a, int32_t k) {
    return offset[0] * a->c + offset[1] * a->s - clearance - map[k];
}

/* s before normalization; values at the rounding level of the deepest section are 0. */
static double wear_part(double depth, const wear_shares *shares) {
    const double less = (depth - shares->deepest) / shares->tau;
    return less > -40.0 ? exp(less) : 0.0;
}

static wear_shares wear_share(const double *offset, double clearance, const double *map, int32_t sections) {
    const double step = 2.0 * WEAR_PI / sections;
    wear_shares shares = {.deepest = -INFINITY, .tau = clearance * step * step};
    wear_angle a = wear_first(sections);
    for (int32_t k = 0; k < sections; k++, wear_next(&a))
        shares.deepest = fmax(shares.deepest, wear_depth(offset, clearance, map, &a, k));
    a = wear_first(sections);
    for (int32_t k = 0; k < sections; k++, wear_next(&a)) {
        const double part = wear_part(wear_depth(offset, clearance, map, &a, k), &shares);
        shares.sum += part;
        shares.x += part * a.c;
        shares.y += part * a.s;
    }
    return shares;
}

void mb_wear_see(const mb_view *m, const int32_t *force, const double *offset, double *gap, double *slope, double *n) {
    const int32_t sections = mb_wear_sections(force);
    const double clearance = m->p[force[MB_FORCE_P] + MB_PLAY_CLEARANCE], step = 2.0 * WEAR_PI / sections;
    const wear_shares shares = wear_share(offset, clearance, wear_map(m, force), sections);
    *gap = -shares.deepest - shares.tau * (log(shares.sum / sections) - wear_round(1.0 / (step * step)));
    *slope = hypot(shares.x, shares.y) / shares.sum;
    n[0] = *slope > 0.0 ? shares.x / (*slope * shares.sum) : 1.0;
    n[1] = *slope > 0.0 ? shares.y / (*slope * shares.sum) : 0.0;
    n[2] = 0.0;
}

/* Area lost by a section of the hole per depth of 1 m. */
static double wear_area(const mb_view *m, const int32_t *force) {
    const double *p = m->p + force[MB_FORCE_P], *wear = p + mb_contact_numbers(force);
    return (p[MB_PLAY_PIN_RADIUS] + p[MB_PLAY_CLEARANCE]) * 2.0 * WEAR_PI / mb_wear_sections(force) *
           wear[MB_WEAR_LENGTH];
}

void mb_wear_start(const mb_view *m, const int32_t *force, double t) {
    if (mb_wear_sections(force) > 0) wear_map(m, force)[mb_wear_sections(force) + WEAR_TIME] = t;
}

void mb_wear_keep(const mb_view *m, const int32_t *force, double t, const mb_contact *at) {
    const int32_t sections = mb_wear_sections(force);
    const double *p = m->p + force[MB_FORCE_P], *wear = p + mb_contact_numbers(force);
    double *map = wear_map(m, force), *kept = map + sections;
    const double rate = wear[MB_WEAR_COEFFICIENT] / wear[MB_WEAR_HARDNESS] * at->N * fabs(at->slip);
    const double volume = 0.5 * (rate + kept[WEAR_RATE]) * (t - kept[WEAR_TIME]);
    kept[WEAR_RATE] = rate;
    kept[WEAR_TIME] = t;
    if (!(volume > 0.0)) return;
    const wear_shares shares = wear_share(at->offset, p[MB_PLAY_CLEARANCE], map, sections);
    const double depth = volume / wear_area(m, force) / shares.sum;
    wear_angle a = wear_first(sections);
    for (int32_t k = 0; k < sections; k++, wear_next(&a))
        map[k] += depth * wear_part(wear_depth(at->offset, p[MB_PLAY_CLEARANCE], map, &a, k), &shares);
}

void mb_wear_show(const mb_view *m, const int32_t *force, double *y) {
    const double *map = wear_map(m, force);
    for (int32_t k = 0; k < mb_wear_sections(force); k++) y[k] = map[k];
}

double mb_worn_volume(const mb_view *m, const int32_t *force) {
    const double *map = wear_map(m, force);
    double sum = 0.0;
    for (int32_t k = 0; k < mb_wear_sections(force); k++) sum += map[k];
    return sum * wear_area(m, force);
}
