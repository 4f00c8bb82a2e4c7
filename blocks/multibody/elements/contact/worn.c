/* A pin or a ball in a bore that wear: Archard's law over the angle of each.
 *
 * Each end of the pin is a ring in the wall of the bore, each mouth of the bore a ring about the wall of the pin, as in edges.c; a ball is one ring.
 * What is worn is the same along the axis. sections.h says where a ring touches; the forces of its sections, along their normals at the edge, are
 * together a force and a couple, the slopes of one depth, so that they have a potential. */
#include <string.h>

#include "blocks/multibody/elements/clearance/sections.h"
#include "blocks/multibody/elements/contact/touch.h"

/* Memory: the map of the hole, these, the map of the pin, and the shares of the sections in each place. */
enum { WORN_TIME, WORN_PIN, WORN_RATE, WORN_KEPT = WORN_RATE + TOUCH_WORN_PLACES };

int64_t mb_worn_size(int64_t sections) { return (2 + TOUCH_WORN_PLACES) * sections + WORN_KEPT; }
double *mb_worn_hole(const touch_worn *w) { return w->memory; }
double *mb_worn_pin(const touch_worn *w) { return w->memory + w->sections + WORN_KEPT; }
double *mb_worn_is_pin_worn(const touch_worn *w) { return w->memory + w->sections + WORN_PIN; }

double mb_worn_area(const touch_worn *w, double radius) {
    return radius * 2.0 * 3.14159265358979323846 / w->sections * w->numbers[MB_WEAR_LENGTH];
}

void mb_worn_start(const touch_worn *w, double t) { w->memory[w->sections + WORN_TIME] = t; }

/* All shares are found before anything wears, so that the order of the places does not matter. */
void mb_worn_keep(const touch_worn *w, const touch_wear *wear, const touch_shape *a, const touch_shape *b, double t,
                  const double *rate, int32_t count) {
    double *kept = w->memory + w->sections, *shares = mb_worn_pin(w) + w->sections, done[TOUCH_WORN_PLACES];
    const double of_hole = w->numbers[MB_WEAR_COEFFICIENT] / w->numbers[MB_WEAR_HARDNESS],
                 of_pin = w->numbers[MB_WEAR_PIN_COEFFICIENT] / w->numbers[MB_WEAR_PIN_HARDNESS];
    const double time = t - kept[WORN_TIME];
    kept[WORN_TIME] = t;
    for (int32_t k = 0; k < count; k++) {
        done[k] = 0.5 * (rate[k] + kept[WORN_RATE + k]) * time;
        kept[WORN_RATE + k] = rate[k];
        if (!(of_hole > 0.0 || of_pin > 0.0)) done[k] = 0.0;
        if (done[k] > 0.0) wear->weigh(w, a, b, k, shares + k * w->sections);
    }
    for (int32_t k = 0; k < count; k++) {
        if (!(done[k] > 0.0)) continue;
        wear->keep(w, a, b, k, shares + k * w->sections, of_hole * done[k], of_pin * done[k]);
        if (of_pin > 0.0) kept[WORN_PIN] = 1.0;
    }
}

void mb_worn_show(const touch_worn *w, bool pin, double *y) {
    if (pin) mb_spline_show(mb_worn_pin(w), w->sections, y);
    else memcpy(y, mb_worn_hole(w), (size_t)w->sections * sizeof(double));
}

double mb_worn_sum(const touch_worn *w, bool pin, double radius) {
    const double *map = pin ? mb_worn_pin(w) : mb_worn_hole(w), *outline = pin ? w->pin : w->hole;
    double sum = 0.0;
    for (int32_t k = 0; k < w->sections; k++) sum += outline ? map[k] * outline[k] : map[k];
    return sum * mb_worn_area(w, outline ? 1.0 : radius);
}

touch_twist mb_worn_twist(const touch_shape *a, const touch_shape *b) {
    double x[3], y[3], z[3];
    touch_twist twist = {0};
    for (int k = 0; k < 3; k++) {
        double axis[3];
        mb_column(a->R, k, axis);
        mb_rotate_back(b->R, axis, k == 0 ? x : k == 1 ? y : z);
    }
    twist.sign = z[2] < 0.0 ? -1.0 : 1.0; /* about x, so that both axes point the same way */
    twist.angle = atan2(x[1] - twist.sign * y[0], x[0] + twist.sign * y[1]);
    const double axis[3] = {twist.sign * z[0], twist.sign * z[1], 1.0 + fabs(z[2])};
    mb_rotate(b->R, axis, twist.about);
    for (int k = 0; k < 3; k++) twist.about[k] /= 1.0 + fabs(z[2]);
    return twist;
}

void mb_worn_place(const double *F, const double *M, const double *C, const double *P, touch_place *at,
                   touch_give *give) {
    double arm[3];
    mb_copy(P, at->P);
    at->twin = 0;
    give->slope = touch_unit(F, at->n);
    mb_sub(C, P, arm);
    mb_copy(M, give->couple);
    mb_add_cross(arm, F, give->couple);
    for (int k = 0; k < 3; k++) give->couple[k] = give->slope > 0.0 ? give->couple[k] / give->slope : 0.0;
}

/* A ring in axes of its wall: C and u are the center and the axis of the circle of the other, all but `ring` in world axes. */
typedef struct {
    mb_ring ring;
    const touch_shape *wall;
    bool of_mouth;
    double C[3], u[3], radius;
} worn_ring;

static worn_ring worn_in_wall(const touch_worn *w, const touch_shape *wall, const touch_twist *twist, bool of_mouth) {
    worn_ring r = {.wall = wall, .of_mouth = of_mouth};
    double *pin = *mb_worn_is_pin_worn(w) != 0.0 ? mb_worn_pin(w) : NULL;
    r.ring.sections = w->sections;
    r.ring.sign = twist->sign < 0.0 ? -1 : 1;
    r.ring.wall = of_mouth ? pin : mb_worn_hole(w);
    r.ring.inner = of_mouth ? mb_worn_hole(w) : pin;
    r.ring.place = mb_spline_find(w->sections, of_mouth ? twist->angle : -twist->sign * twist->angle);
    return r;
}

/* The ring of an end of the pin, 0 or 1, or of a mouth, 2 or 3. */
static worn_ring worn_ring_of_pin(const touch_worn *w, const touch_shape *a, const touch_shape *b, int32_t place,
                                  const touch_twist *twist) {
    const bool of_mouth = place >= 2;
    const touch_shape *wall = of_mouth ? a : b, *edge = of_mouth ? b : a;
    worn_ring r = worn_in_wall(w, wall, twist, of_mouth);
    double off[3], tilt[3], sign = of_mouth ? -1.0 : 1.0;
    mb_column(edge->R, 2, r.u);
    mb_copy(edge->P, r.C);
    mb_axpy((0.5 - place % 2) * edge->size[1], r.u, r.C);
    mb_sub(r.C, wall->P, off);
    mb_rotate_back(wall->R, off, off);
    mb_rotate_back(wall->R, r.u, tilt);
    r.radius = edge->size[0];
    r.ring.clearance = b->size[0] - a->size[0];
    for (int k = 0; k < 2; k++) r.ring.d[k] = sign * off[k], r.ring.tilt[k] = tilt[k];
    r.ring.tilted = tilt[0] != 0.0 || tilt[1] != 0.0;
    r.ring.radius = sign * r.radius;
    return r;
}

/* Whether the axis of the wall passes within the circle, and the circle's center within the bore. */
static bool worn_encloses(const worn_ring *r) {
    const double *d = r->ring.d, *tilt = r->ring.tilt, wall = r->wall->size[0];
    if (!r->of_mouth) return d[0] * d[0] + d[1] * d[1] < wall * wall;
    const double sine = hypot(tilt[0], tilt[1]),
                 e[2] = {sine > 0.0 ? tilt[0] / sine : 1.0, sine > 0.0 ? tilt[1] / sine : 0.0};
    const double x = d[0] * e[0] + d[1] * e[1], y = d[1] * e[0] - d[0] * e[1], square = r->radius * r->radius,
                 cosine2 = 1.0 - sine * sine;
    return x * x + y * y * cosine2 < cosine2 * square;
}

/* Of an edge that is level with the mouth, as in edges.c. */
static const double WORN_LEVEL = 1e-10;

static void worn_see_ring(const worn_ring *r, const touch_twist *twist, touch_place *at, touch_give *give) {
    const mb_ring_shares shares = mb_ring_share(&r->ring);
    const double length = hypot(shares.x, shares.y), half = 0.5 * r->wall->size[1];
    const double e[2] = {length > 0.0 ? shares.x / length : 1.0, length > 0.0 ? shares.y / length : 0.0};
    const double lean = r->ring.tilt[0] * e[0] + r->ring.tilt[1] * e[1], f = sqrt(fmax(1e-12, 1.0 - lean * lean));
    const double seen[3] = {e[0], e[1], 0.0}, push[3] = {-shares.x / shares.sum, -shares.y / shares.sum, 0.0},
                 across[3] = {shares.tilt[0] / shares.sum, shares.tilt[1] / shares.sum, 0.0};
    double direction[3], F[3], M[3] = {0.0, 0.0, 0.0}, P[3], lever[3], off[3];
    mb_rotate(r->wall->R, seen, direction);
    mb_rotate(r->wall->R, push, F);
    mb_rotate(r->wall->R, across, lever);
    mb_add_cross(r->u, lever, M);
    for (int k = 0; k < 3; k++) M[k] *= r->radius;
    mb_axpy((r->of_mouth ? 1.0 : -twist->sign) * shares.turn / shares.sum, twist->about, M);
    mb_copy(r->C, P);
    mb_axpy(r->radius / f, direction, P);
    mb_axpy(-r->radius * lean / f, r->u, P);
    mb_worn_place(F, M, r->C, P, at, give);
    at->gap = mb_section_gap(shares.deepest, shares.tau, shares.sum, r->ring.sections, 1.0);
    mb_sub(P, r->wall->P, off);
    mb_rotate_back(r->wall->R, off, off);
    const bool beside =
        r->of_mouth ? fabs(off[2]) >= half * (1.0 - WORN_LEVEL) : fabs(off[2]) > half * (1.0 + WORN_LEVEL);
    if (beside || !worn_encloses(r)) at->gap = INFINITY;
}

static void worn_see_pin(const touch_worn *w, const touch_shape *a, const touch_shape *b, touch_place *at,
                         touch_give *give) {
    const touch_twist twist = mb_worn_twist(a, b);
    for (int32_t k = 0; k < TOUCH_WORN_PLACES; k++) {
        const worn_ring r = worn_ring_of_pin(w, a, b, k, &twist);
        worn_see_ring(&r, &twist, &at[k], &give[k]);
    }
}

static void worn_ring_keep(const touch_worn *w, const worn_ring *r, const touch_shape *a, const touch_shape *b,
                           const double *share, double of_hole, double of_pin) {
    const double hole = of_hole / mb_worn_area(w, b->size[0]), pin = of_pin / mb_worn_area(w, a->size[0]);
    if (r->of_mouth) mb_ring_give(&r->ring, share, pin, mb_worn_pin(w), hole, mb_worn_hole(w));
    else mb_ring_give(&r->ring, share, hole, mb_worn_hole(w), pin, mb_worn_pin(w));
}

static void worn_weigh_pin(const touch_worn *w, const touch_shape *a, const touch_shape *b, int32_t place,
                           double *share) {
    const touch_twist twist = mb_worn_twist(a, b);
    const worn_ring r = worn_ring_of_pin(w, a, b, place, &twist);
    mb_ring_weigh(&r.ring, share);
}

static void worn_keep_pin(const touch_worn *w, const touch_shape *a, const touch_shape *b, int32_t place,
                          const double *share, double of_hole, double of_pin) {
    const touch_twist twist = mb_worn_twist(a, b);
    const worn_ring r = worn_ring_of_pin(w, a, b, place, &twist);
    worn_ring_keep(w, &r, a, b, share, of_hole, of_pin);
}

/* The ring of a ball, which past the end of its bore touches the edge of the mouth; `beyond` is how far, with the sign of z. */
static worn_ring worn_ring_of_ball(const touch_worn *w, const touch_shape *a, const touch_shape *b,
                                   const touch_twist *twist, double *side) {
    worn_ring r = worn_in_wall(w, b, twist, false);
    double off[3];
    mb_copy(a->P, r.C);
    mb_sub(a->P, b->P, off);
    mb_rotate_back(b->R, off, off);
    r.radius = a->size[0];
    r.ring.clearance = b->size[0] - a->size[0];
    r.ring.d[0] = off[0], r.ring.d[1] = off[1];
    r.ring.ball = a->size[0];
    r.ring.beyond = fmax(0.0, fabs(off[2]) - 0.5 * b->size[1]);
    *side = off[2] < 0.0 ? -1.0 : 1.0;
    return r;
}

static void worn_see_ball(const touch_worn *w, const touch_shape *a, const touch_shape *b, touch_place *at,
                          touch_give *give) {
    const touch_twist twist = mb_worn_twist(a, b);
    double side, F[3], M[3] = {0.0, 0.0, 0.0}, P[3], n[3];
    const worn_ring r = worn_ring_of_ball(w, a, b, &twist, &side);
    const mb_ring_shares shares = mb_ring_share(&r.ring);
    const double push[3] = {-shares.x / shares.sum, -shares.y / shares.sum, -side * shares.beyond / shares.sum};
    mb_rotate(b->R, push, F);
    mb_axpy(-twist.sign * shares.turn / shares.sum, twist.about, M);
    touch_unit(F, n);
    mb_copy(a->P, P);
    mb_axpy(-r.radius, n, P);
    mb_worn_place(F, M, a->P, P, at, give);
    at->gap =
        worn_encloses(&r) ? mb_section_gap(shares.deepest, shares.tau, shares.sum, r.ring.sections, 1.0) : INFINITY;
}

static void worn_weigh_ball(const touch_worn *w, const touch_shape *a, const touch_shape *b, int32_t place,
                            double *share) {
    (void)place;
    double side;
    const touch_twist twist = mb_worn_twist(a, b);
    const worn_ring r = worn_ring_of_ball(w, a, b, &twist, &side);
    mb_ring_weigh(&r.ring, share);
}

static void worn_keep_ball(const touch_worn *w, const touch_shape *a, const touch_shape *b, int32_t place,
                           const double *share, double of_hole, double of_pin) {
    (void)place;
    double side;
    const touch_twist twist = mb_worn_twist(a, b);
    const worn_ring r = worn_ring_of_ball(w, a, b, &twist, &side);
    worn_ring_keep(w, &r, a, b, share, of_hole, of_pin);
}

const touch_wear mb_wear_pin_bore = {worn_see_pin, worn_weigh_pin, worn_keep_pin},
                 mb_wear_ball_bore = {worn_see_ball, worn_weigh_ball, worn_keep_ball};
