/* SecondOrderIntegrator: d position / dt = velocity, d velocity / dt = u, within limits of both.
 *
 * A position that reaches a limit rebounds, v+ = -restitution v-. Where the next flight, of 2 v+ / |u| at constant u, would be shorter
 * than the rest time, it comes to rest: position at the limit, v = 0, until u points away from it. A velocity at a limit is held
 * while u points beyond.
 *
 * Where events are located, modes say the same: for each element, first whether it rests at the upper (1) or the lower (-1) limit
 * of position or is free (0), then the same of the velocity; and one for the reset signal. `event` makes the jumps. Elsewhere `update`
 * makes them at ticks, with the resolution of a tick.
 *
 * i: see the enum. p: positions and velocities at the start, restitution, rest time, limits of position, limits of velocity (each
 * all lower ones, then all upper ones). x: positions, then velocities. u: acceleration, then `reset` if there is an edge.
 * y: position, velocity, and with limits of position where it rests.
 * z: whether it has started, the last reset signal, whether the step has begun (cleared by `project`); then for each element at which limit it rests, and
 * at which its velocity is. */
#include <math.h>

#include "blocks/core/kernel/kernel.h"

BL_SHARED enum {
    SECOND_ORDER_EDGE,            /* which one resets */
    SECOND_ORDER_POSITIONS,       /* numbers of initial values: 1, or one for each element */
    SECOND_ORDER_VELOCITIES,
    SECOND_ORDER_POSITION_LIMITS, /* numbers of values of a limit: 0 for none, 1, or one for each element */
    SECOND_ORDER_VELOCITY_LIMITS,
    SECOND_ORDER_INTEGERS
};
BL_SHARED enum {
    SECOND_ORDER_RISING,
    SECOND_ORDER_FALLING,
    SECOND_ORDER_EITHER,
    SECOND_ORDER_LEVEL,
    SECOND_ORDER_NEVER
};
static const double SECOND_ORDER_LOCATED = 1e-9; /* of a tick: an impact that was located is not longer ago */
static const double SECOND_ORDER_TICKS = 8.0;    /* longest flight in ticks that ends in rest if it was not */
enum { SECOND_ORDER_STARTED, SECOND_ORDER_BEFORE, SECOND_ORDER_FROZEN, SECOND_ORDER_SIDES };
enum { SECOND_ORDER_POSITION, SECOND_ORDER_VELOCITY, SECOND_ORDER_AT_LIMIT };

static int32_t second_order_width(const bl_block *b) { return b->y_width[0]; }
static int second_order_resettable(const bl_block *b) { return b->i[SECOND_ORDER_EDGE] != SECOND_ORDER_NEVER; }

static int second_order_check(const bl_block *b) {
    if (b->i_count != SECOND_ORDER_INTEGERS || b->u_count < 1 || b->y_count < 2 || b->y_count > 3) return 0;
    const int32_t *i = b->i, edge = i[SECOND_ORDER_EDGE], n = second_order_width(b);
    const int32_t positions = i[SECOND_ORDER_POSITIONS], velocities = i[SECOND_ORDER_VELOCITIES];
    const int32_t limits = i[SECOND_ORDER_POSITION_LIMITS], speeds = i[SECOND_ORDER_VELOCITY_LIMITS];
    if (edge < SECOND_ORDER_RISING || edge > SECOND_ORDER_NEVER) return 0;
    if (b->u_count != 1 + (edge != SECOND_ORDER_NEVER) || b->u_width[0] != n) return 0;
    if (b->u_count == 2 && b->u_width[1] != 1) return 0;
    if ((positions != 1 && positions != n) || (velocities != 1 && velocities != n)) return 0;
    if ((limits != 0 && limits != 1 && limits != n) || (speeds != 0 && speeds != 1 && speeds != n)) return 0;
    if (b->y_count != (limits ? 3 : 2)) return 0;
    for (int32_t k = 0; k < b->y_count; k++)
        if (b->y_width[k] != n) return 0;
    return (int64_t)b->x_count == 2 * (int64_t)n &&
           (int64_t)b->p_count == (int64_t)positions + velocities + 2 + 2 * (int64_t)limits + 2 * (int64_t)speeds;
}
static bl_sizes second_order_sizes(const bl_block *b) {
    return (bl_sizes){.memory = SECOND_ORDER_SIDES + 2 * (int64_t)second_order_width(b)};
}

/* Parameters of element k, and its state as a pair. */
typedef struct {
    double lower, upper, slowest, fastest, restitution, rest_time;
} second_order_element;
typedef struct {
    double x, v;
} second_order_state;

static second_order_element second_order_parameters(const bl_block *b, int32_t k) {
    const int32_t limits = b->i[SECOND_ORDER_POSITION_LIMITS], speeds = b->i[SECOND_ORDER_VELOCITY_LIMITS];
    const double *p = b->p + b->i[SECOND_ORDER_POSITIONS] + b->i[SECOND_ORDER_VELOCITIES];
    second_order_element e = {-INFINITY, INFINITY, -INFINITY, INFINITY, p[0], p[1]};
    p += 2;
    if (limits) {
        e.lower = p[limits > 1 ? k : 0];
        e.upper = p[limits + (limits > 1 ? k : 0)];
        p += 2 * limits;
    }
    if (speeds) {
        e.slowest = p[speeds > 1 ? k : 0];
        e.fastest = p[speeds + (speeds > 1 ? k : 0)];
    }
    return e;
}
static double second_order_clip(double v, double low, double high) { return v > high ? high : v < low ? low : v; }
/* 1 from the upper limit on, -1 from the lower one on, else 0. */
static double second_order_side(double v, double low, double high) { return v >= high ? 1.0 : v <= low ? -1.0 : 0.0; }

static double *second_order_rest(const bl_block *b, int32_t k) { return b->z + SECOND_ORDER_SIDES + k; }
static double *second_order_held(const bl_block *b, int32_t k) {
    return b->z + SECOND_ORDER_SIDES + second_order_width(b) + k;
}

/* The state right after a rebound, or within the limits if there is none. At rest it is exact, whatever a solver has left. */
static second_order_state second_order_rebound(const bl_block *b, const second_order_element *e, int32_t k) {
    const double rest = *second_order_rest(b, k);
    second_order_state s = {b->x[k], b->x[second_order_width(b) + k]};
    if (rest != 0.0) return (second_order_state){rest > 0.0 ? e->upper : e->lower, 0.0};
    const double side = second_order_side(s.x, e->lower, e->upper);
    if (side * s.v > 0.0) s.v = 0.0 - e->restitution * s.v;
    s.x = second_order_clip(s.x, e->lower, e->upper);
    s.v = second_order_clip(s.v, e->slowest, e->fastest);
    return s;
}
static second_order_state second_order_start(const bl_block *b, const second_order_element *e, int32_t k) {
    const int32_t positions = b->i[SECOND_ORDER_POSITIONS];
    const double *p = b->p, *q = b->p + positions;
    return (second_order_state){
        second_order_clip(p[positions > 1 ? k : 0], e->lower, e->upper),
        second_order_clip(q[b->i[SECOND_ORDER_VELOCITIES] > 1 ? k : 0], e->slowest, e->fastest)};
}

/* Whether modes hold for this evaluation. */
static int second_order_has_modes(const bl_block *b) { return b->modes.mode && *b->modes.decision != BL_DECIDE_ALWAYS; }
/* At which limit an element rests that is now at s: pressed against it by u. */
static double second_order_pressed(const bl_block *b, const second_order_element *e, int32_t k, second_order_state s) {
    const double rest = *second_order_rest(b, k), side = second_order_side(s.x, e->lower, e->upper), u = b->u[0][k];
    if (rest != 0.0) return rest * u >= 0.0 ? rest : 0.0;
    return side != 0.0 && s.v == 0.0 && side * u > 0.0 ? side : 0.0;
}
/* The mode of position. It ends where a limit is reached, or where u points away from it. */
static double second_order_position_mode(const bl_block *b, const second_order_element *e, int32_t k) {
    const double x = b->x[k], now = second_order_pressed(b, e, k, second_order_rebound(b, e, k));
    if (!second_order_has_modes(b)) return now;
    const double mode = bl_keep_mode(&b->modes, k, now);
    b->modes.crossing[k] = mode != 0.0 ? mode * b->u[0][k] : fmin(e->upper - x, x - e->lower);
    return mode;
}
/* The mode of velocity: held at a limit, while u points beyond it. */
static double second_order_velocity_mode(const bl_block *b, const second_order_element *e, int32_t k) {
    const int32_t n = second_order_width(b);
    const double v = b->x[n + k], u = b->u[0][k], side = second_order_side(v, e->slowest, e->fastest);
    const int is_fixed = e->fastest <= e->slowest; /* whatever u is */
    if (!second_order_has_modes(b)) {
        /* By its side at the last tick, so that an implicit solver has a smooth equation to solve. */
        const double held = b->z[SECOND_ORDER_STARTED] != 0.0 ? *second_order_held(b, k) : side;
        return held * u > 0.0 || is_fixed ? held : 0.0;
    }
    const double mode = bl_keep_mode(&b->modes, n + k, side * u > 0.0 || is_fixed ? side : 0.0);
    if (is_fixed) b->modes.crossing[n + k] = 0.0;
    else b->modes.crossing[n + k] = mode != 0.0 ? mode * u : fmin(e->fastest - v, v - e->slowest);
    return mode;
}

/* Whether the reset signal is positive, and whether the state takes its start value now. */
static int second_order_reset_is_on(const bl_block *b) {
    const double now = b->u[1][0];
    return bl_decide(&b->modes, 2 * second_order_width(b), now > 0.0, now);
}
static int second_order_restarts(const bl_block *b) {
    const int32_t edge = b->i[SECOND_ORDER_EDGE];
    if (edge == SECOND_ORDER_NEVER) return 0;
    if (second_order_has_modes(b) ? *b->modes.decision == BL_KEEP : b->z[SECOND_ORDER_FROZEN] != 0.0) return 0;
    const double before = b->z[SECOND_ORDER_BEFORE], now = b->u[1][0];
    if (edge == SECOND_ORDER_LEVEL) return now > 0.0;
    const int rising = before <= 0.0 && now > 0.0, falling = before > 0.0 && now <= 0.0;
    return (edge != SECOND_ORDER_FALLING && rising) || (edge != SECOND_ORDER_RISING && falling);
}
/* Whether a level of the reset signal holds the state. */
static int second_order_stands(const bl_block *b) {
    if (b->i[SECOND_ORDER_EDGE] != SECOND_ORDER_LEVEL) return 0;
    if (second_order_has_modes(b)) return second_order_reset_is_on(b);
    return b->z[SECOND_ORDER_FROZEN] != 0.0 ? b->z[SECOND_ORDER_BEFORE] > 0.0 : b->u[1][0] > 0.0;
}

static int second_order_init(bl_block *b, double t) {
    (void)t;
    const int32_t n = second_order_width(b);
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = 0.0;
    for (int32_t k = 0; k < n; k++) {
        const second_order_element e = second_order_parameters(b, k);
        const second_order_state s = second_order_start(b, &e, k);
        b->x[k] = s.x;
        b->x[n + k] = s.v;
    }
    return BL_OK;
}
static int second_order_output(bl_block *b, double t) {
    (void)t;
    const int32_t n = second_order_width(b);
    const int restarts = second_order_restarts(b), keeps = b->modes.mode && *b->modes.decision == BL_KEEP;
    for (int32_t k = 0; k < n; k++) {
        const second_order_element e = second_order_parameters(b, k);
        second_order_state s = {b->x[k], b->x[n + k]};
        if (restarts) s = second_order_start(b, &e, k);
        else if (!keeps) s = second_order_rebound(b, &e, k);
        b->y[SECOND_ORDER_POSITION][k] = s.x;
        b->y[SECOND_ORDER_VELOCITY][k] = s.v;
        if (b->y_count > SECOND_ORDER_AT_LIMIT) {
            const double rests = restarts ? second_order_pressed(b, &e, k, s) : second_order_position_mode(b, &e, k);
            b->y[SECOND_ORDER_AT_LIMIT][k] = rests;
        }
    }
    return BL_OK;
}
static int second_order_derivative(bl_block *b, double t) {
    (void)t;
    const int32_t n = second_order_width(b);
    const int stands = second_order_stands(b);
    for (int32_t k = 0; k < n; k++) {
        const second_order_element e = second_order_parameters(b, k);
        /* Where events are not located, rest is decided at ticks. */
        const double rests =
            !second_order_has_modes(b) && *second_order_rest(b, k) != 0.0 ? 1.0 : second_order_position_mode(b, &e, k);
        const double held = second_order_velocity_mode(b, &e, k);
        b->dx[k] = stands || rests != 0.0 ? 0.0 : b->x[n + k];
        b->dx[n + k] = stands || rests != 0.0 || held != 0.0 ? 0.0 : b->u[0][k];
    }
    return BL_OK;
}

/* The flight after a rebound that is too short to go on with. Where a tick has ended beyond a limit, the impact was not located, and
   the speed has grown by up to a tick of acceleration since: then flights that this error keeps up, of (1 + e) / (1 - e) ticks,
   end in rest too. */
static double second_order_shortest(const bl_block *b, const second_order_element *e, int32_t k) {
    const double x = b->x[k], v = b->x[second_order_width(b) + k], beyond = fmax(x - e->upper, e->lower - x);
    if (!(beyond > SECOND_ORDER_LOCATED * b->dt * fabs(v))) return e->rest_time;
    const double rest = 1.0 - e->restitution, ticks = rest > 0.0 ? (1.0 + e->restitution) / rest : INFINITY;
    return fmax(e->rest_time, b->dt * fmin(ticks, SECOND_ORDER_TICKS));
}

/* Makes the jumps of element k; returns whether its state has changed. */
static int second_order_jump(bl_block *b, int32_t k, int restarts) {
    const int32_t n = second_order_width(b);
    const second_order_element e = second_order_parameters(b, k);
    const double u = b->u[0][k], old_rest = *second_order_rest(b, k), shortest = second_order_shortest(b, &e, k);
    second_order_state s = restarts ? second_order_start(b, &e, k) : second_order_rebound(b, &e, k);
    double rest = restarts || old_rest * u < 0.0 ? 0.0 : old_rest;
    const double side = second_order_side(s.x, e.lower, e.upper);
    if (rest == 0.0 && side * u > 0.0 && !(side * s.v > 0.0) && 2.0 * fabs(s.v) <= shortest * fabs(u)) {
        rest = side;
        s.v = 0.0;
    }
    const int changed = s.x != b->x[k] || s.v != b->x[n + k] || rest != old_rest;
    b->x[k] = s.x;
    b->x[n + k] = s.v;
    *second_order_rest(b, k) = rest;
    *second_order_held(b, k) = second_order_side(s.v, e.slowest, e.fastest);
    return changed;
}
static int second_order_update(bl_block *b, double t) {
    (void)t;
    const int restarts = second_order_restarts(b);
    for (int32_t k = 0; k < second_order_width(b); k++) (void)second_order_jump(b, k, restarts);
    b->z[SECOND_ORDER_STARTED] = 1.0;
    if (second_order_resettable(b)) {
        b->z[SECOND_ORDER_BEFORE] = b->u[1][0];
        b->z[SECOND_ORDER_FROZEN] = 1.0;
    }
    return BL_OK;
}
static int32_t second_order_crossings(const bl_block *b) {
    return 2 * second_order_width(b) + second_order_resettable(b);
}
static int second_order_cross(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < second_order_width(b); k++) {
        const second_order_element e = second_order_parameters(b, k);
        (void)second_order_position_mode(b, &e, k);
        (void)second_order_velocity_mode(b, &e, k);
    }
    if (second_order_resettable(b)) (void)second_order_reset_is_on(b);
    return BL_OK;
}
static int second_order_event(bl_block *b, double t) {
    const int restarts = second_order_restarts(b);
    int changed = 0;
    for (int32_t k = 0; k < second_order_width(b); k++) changed |= second_order_jump(b, k, restarts);
    if (second_order_resettable(b)) b->z[SECOND_ORDER_BEFORE] = b->u[1][0];
    (void)second_order_cross(b, t);
    return changed ? BL_OK : BL_UNCHANGED;
}
/* A reset signal that changes within a step waits for the tick, where events are not located. */
static int second_order_project(bl_block *b, double t) {
    (void)t;
    if (*b->offset == 0.0) b->z[SECOND_ORDER_FROZEN] = 0.0;
    return BL_OK;
}

#define SECOND_ORDER_KERNEL \
    .check = second_order_check, .sizes = second_order_sizes, .init = second_order_init, \
    .output = second_order_output, .derivative = second_order_derivative, .update = second_order_update, \
    .crossing_count = second_order_crossings, .crossings = second_order_cross, .event = second_order_event
/* Only with a reset is there something to do at the end of each tick: without, a step under error control may span several. */
const bl_kernel bl_kernels_second_order[] = {
    {.name = "second_order_integrator", SECOND_ORDER_KERNEL},
    {.name = "second_order_integrator_reset", SECOND_ORDER_KERNEL, .project = second_order_project},
    {.name = 0},
};
#undef SECOND_ORDER_KERNEL
