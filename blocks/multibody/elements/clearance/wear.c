/* A hole that wears, and the pin in it: Archard's law, and the contact of a pin in a hole that is no longer round.
 *
 * Material goes by the volume k N |slip| / H a second, k Archard's coefficient and H the hardness; of the hole, and with numbers of its own of
 * the pin. The hole is worn by w at `sections` equal angles θ of its marker, the pin by as many at angles of its own. sections.h says how they
 * touch.
 *
 * Memory: w at each angle, the time up to which wear is counted, and N |slip| k / H of the hole there; of a pin that wears its depths, and room for
 * a number of each section. It changes after whole steps only. */
#include <math.h>

#include "blocks/multibody/elements/clearance/sections.h"

enum { WEAR_TIME, WEAR_RATE, WEAR_KEPT }; /* after the map */

static const double WEAR_PI = 3.14159265358979323846;

int32_t mb_wear_sections(const int32_t *force) {
    return force[MB_FORCE_TYPE] == MB_CONTACT ? force[MB_FORCE_LAW] >> MB_CONTACT_WEAR_SHIFT : 0;
}

bool mb_wears_pin(const int32_t *force) {
    return force[MB_FORCE_TYPE] == MB_CONTACT && (force[MB_FORCE_LAW] & MB_CONTACT_PIN_WEARS) != 0;
}

/* From the head of the integers and the table of forces alone, for mb_open. */
int64_t mb_wear_memory(const int32_t *forces, int32_t count) {
    int64_t sum = 0;
    for (int32_t n = 0; n < count; n++) {
        const int32_t *force = forces + n * MB_FORCE_FIELDS;
        const int64_t sections = mb_wear_sections(force);
        sum += sections > 0 ? sections + WEAR_KEPT + (mb_wears_pin(force) ? 2 * sections : 0) : mb_worn_memory(force);
    }
    return sum;
}

double *mb_wear_map(const mb_view *m, const int32_t *force) {
    return m->wear + mb_wear_memory(m->forces, (int32_t)((force - m->forces) / MB_FORCE_FIELDS));
}

static double *wear_pin(const mb_view *m, const int32_t *force) {
    return mb_wears_pin(force) ? mb_wear_map(m, force) + mb_wear_sections(force) + WEAR_KEPT : NULL;
}

static mb_ring wear_ring(const mb_view *m, const int32_t *force, const double *offset, double turned) {
    const int32_t sections = mb_wear_sections(force);
    mb_ring ring = {.sections = sections,
                    .sign = 1,
                    .d = {offset[0], offset[1]},
                    .clearance = m->p[force[MB_FORCE_P] + MB_PLAY_CLEARANCE],
                    .wall = mb_wear_map(m, force),
                    .inner = wear_pin(m, force)};
    if (ring.inner) ring.place = mb_spline_find(sections, -turned);
    return ring;
}

void mb_wear_see(const mb_view *m, const int32_t *force, const double *offset, double turned, double *gap,
                 double *slope, double *n, double *arm) {
    const mb_ring ring = wear_ring(m, force, offset, turned);
    const mb_ring_shares shares = mb_ring_share(&ring);
    *gap = mb_section_gap(shares.deepest, shares.tau, shares.sum, ring.sections, 1.0);
    *slope = hypot(shares.x, shares.y) / shares.sum;
    n[0] = *slope > 0.0 ? shares.x / (*slope * shares.sum) : 1.0;
    n[1] = *slope > 0.0 ? shares.y / (*slope * shares.sum) : 0.0;
    n[2] = 0.0;
    *arm = ring.inner && *slope > 0.0 ? -shares.turn / (*slope * shares.sum) : 0.0;
}

/* Area lost by a section of the hole, or of the pin, per depth of 1 m. */
static double wear_area(const mb_view *m, const int32_t *force, bool pin) {
    const double *p = m->p + force[MB_FORCE_P], *wear = p + mb_contact_numbers(force);
    const double radius = pin ? p[MB_PLAY_PIN_RADIUS] : p[MB_PLAY_PIN_RADIUS] + p[MB_PLAY_CLEARANCE];
    return radius * 2.0 * WEAR_PI / mb_wear_sections(force) * wear[MB_WEAR_LENGTH];
}

void mb_wear_start(const mb_view *m, const int32_t *force, double t) {
    if (mb_wear_sections(force) > 0) mb_wear_map(m, force)[mb_wear_sections(force) + WEAR_TIME] = t;
}

void mb_wear_keep(const mb_view *m, const int32_t *force, double t, const mb_contact *at) {
    const int32_t sections = mb_wear_sections(force);
    const double *p = m->p + force[MB_FORCE_P], *wear = p + mb_contact_numbers(force);
    double *map = mb_wear_map(m, force), *kept = map + sections, *pin = wear_pin(m, force);
    const double part = mb_wears_pin(force) ? 1.0 : wear[MB_WEAR_COEFFICIENT] / wear[MB_WEAR_HARDNESS],
                 rate = part * at->N * fabs(at->slip);
    const double done = 0.5 * (rate + kept[WEAR_RATE]) * (t - kept[WEAR_TIME]);
    kept[WEAR_RATE] = rate;
    kept[WEAR_TIME] = t;
    if (!(done > 0.0)) return;
    const mb_ring ring = wear_ring(m, force, at->offset, at->turned);
    if (!pin) {
        const mb_ring_shares shares = mb_ring_share(&ring);
        mb_ring_wear(&ring, &shares, done / wear_area(m, force, false) / shares.sum, map);
        return;
    }
    const double of_hole = done * wear[MB_WEAR_COEFFICIENT] / wear[MB_WEAR_HARDNESS],
                 of_pin = done * wear[MB_WEAR_PIN_COEFFICIENT] / wear[MB_WEAR_PIN_HARDNESS];
    mb_ring_weigh(&ring, pin + sections);
    mb_ring_give(&ring, pin + sections, of_hole / wear_area(m, force, false), map, of_pin / wear_area(m, force, true),
                 pin);
}

void mb_wear_show(const mb_view *m, const int32_t *force, bool pin, double *y) {
    const double *map = pin ? wear_pin(m, force) : mb_wear_map(m, force);
    if (pin) mb_spline_show(map, mb_wear_sections(force), y);
    for (int32_t k = 0; !pin && k < mb_wear_sections(force); k++) y[k] = map[k];
}

double mb_worn_volume(const mb_view *m, const int32_t *force, bool pin) {
    const double *map = pin ? wear_pin(m, force) : mb_wear_map(m, force);
    double sum = 0.0;
    for (int32_t k = 0; k < mb_wear_sections(force); k++) sum += map[k];
    return sum * wear_area(m, force, pin);
}
