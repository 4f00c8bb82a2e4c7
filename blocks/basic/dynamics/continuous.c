/* Blocks with continuous states. */
#include "blocks/core/kernel/kernel.h"

/* Integrator: dx/dt = u, y = x, x(0) = p. */
static int integrator_check(const bl_block *b) {
    return b->u_count == 1 && b->y_count == 1 && b->u_width[0] == b->y_width[0] && b->x_count == b->y_width[0] &&
           (b->p_count == 1 || b->p_count == b->x_count);
}
static int integrator_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->x_count; k++) b->x[k] = b->p[b->p_count > 1 ? k : 0];
    return BL_OK;
}
static int integrator_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->x_count; k++) b->y[0][k] = b->x[k];
    return BL_OK;
}
static int integrator_derivative(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->x_count; k++) b->dx[k] = b->u[0][k];
    return BL_OK;
}

/* The integrator with everything: limits, a reset, x(0) from a port, the state as a second output.
 *
 * Jumps belong to ticks and to events. `update` makes them at a tick and freezes, for the minor steps that follow, what it
 * decided: whether x is held, and which elements lie at a limit. `project` ends that at the next tick. Between the two the
 * output shows x alone, so a reset signal that changes within a step waits for the tick; and because no
 * minor step asks where x is, an implicit solver has a smooth equation to solve.
 * Where events are located, modes say the same: one for each element, at the upper limit (1), at the lower (-1) or free (0), and one for
 * the reset signal. `event` makes the jumps.
 *
 * i: which edge resets, 1 if x starts from a port, number of initial values, number of values of each limit.
 * p: initial values, lower limits, upper limits. Inputs: u, then `reset`, then `initial`, where present. */
BL_SHARED enum {
    FULL_INTEGRATOR_EDGE,
    FULL_INTEGRATOR_PORT,
    FULL_INTEGRATOR_INITIAL,
    FULL_INTEGRATOR_LIMIT,
    FULL_INTEGRATOR_INTEGERS
};
BL_SHARED enum {
    FULL_INTEGRATOR_RISING,
    FULL_INTEGRATOR_FALLING,
    FULL_INTEGRATOR_EITHER,
    FULL_INTEGRATOR_LEVEL,
    FULL_INTEGRATOR_NEVER
};
enum {
    FULL_INTEGRATOR_STARTED,
    FULL_INTEGRATOR_BEFORE,
    FULL_INTEGRATOR_FROZEN,
    FULL_INTEGRATOR_HELD,
    FULL_INTEGRATOR_SIDES
};

static int full_integrator_check(const bl_block *b) {
    if (b->i_count != FULL_INTEGRATOR_INTEGERS || b->u_count < 1 || b->y_count < 1 || b->y_count > 2) return 0;
    const int32_t n = b->x_count, edge = b->i[FULL_INTEGRATOR_EDGE], port = b->i[FULL_INTEGRATOR_PORT];
    const int32_t initial = b->i[FULL_INTEGRATOR_INITIAL], limit = b->i[FULL_INTEGRATOR_LIMIT];
    if (edge < FULL_INTEGRATOR_RISING || edge > FULL_INTEGRATOR_NEVER || port < 0 || port > 1) return 0;
    if (b->u_count != 1 + (edge != FULL_INTEGRATOR_NEVER) + port) return 0;
    if (edge != FULL_INTEGRATOR_NEVER && b->u_width[1] != 1) return 0;
    if (port && b->u_width[b->u_count - 1] != n) return 0;
    if (port ? initial != 0 : initial != 1 && initial != n) return 0;
    if (limit != 0 && limit != 1 && limit != n) return 0;
    for (int32_t k = 0; k < b->y_count; k++)
        if (b->y_width[k] != n) return 0;
    return b->u_width[0] == n && (int64_t)b->p_count == initial + 2 * (int64_t)limit;
}
static bl_sizes full_integrator_sizes(const bl_block *b) {
    return (bl_sizes){.memory = FULL_INTEGRATOR_SIDES + (int64_t)b->x_count};
}

static double full_integrator_limit(const bl_block *b, int32_t k, double x) {
    const int32_t limits = b->i[FULL_INTEGRATOR_LIMIT];
    if (limits == 0) return x;
    const double *lower = b->p + b->i[FULL_INTEGRATOR_INITIAL] + (limits > 1 ? k : 0);
    const double *upper = lower + limits;
    if (x > *upper) x = *upper;
    return x < *lower ? *lower : x;
}

/* +1 at the upper limit, -1 at the lower, else 0. */
static double full_integrator_side(const bl_block *b, int32_t k, double x) {
    const int32_t limits = b->i[FULL_INTEGRATOR_LIMIT];
    if (limits == 0) return 0.0;
    const double *lower = b->p + b->i[FULL_INTEGRATOR_INITIAL] + (limits > 1 ? k : 0);
    return x >= lower[limits] ? 1.0 : x <= *lower ? -1.0 : 0.0;
}

/* Whether x cannot move: its limits are equal. */
static int full_integrator_is_fixed(const bl_block *b, int32_t k) {
    const int32_t limits = b->i[FULL_INTEGRATOR_LIMIT];
    const double *lower = b->p + b->i[FULL_INTEGRATOR_INITIAL] + (limits > 1 ? k : 0);
    return limits > 0 && lower[limits] <= *lower;
}

/* Modes that end when x reaches a limit, or when u leads away from it. */
static double full_integrator_mode(const bl_block *b, int32_t k) {
    const int32_t limits = b->i[FULL_INTEGRATOR_LIMIT];
    if (limits == 0) return 0.0;
    const double x = b->x[k], u = b->u[0][k], side = full_integrator_side(b, k, x);
    const double mode = bl_keep_mode(&b->modes, k, side * u > 0.0 || full_integrator_is_fixed(b, k) ? side : 0.0);
    const double *lower = b->p + b->i[FULL_INTEGRATOR_INITIAL] + (limits > 1 ? k : 0), *upper = lower + limits;
    if (full_integrator_is_fixed(b, k)) b->modes.crossing[k] = 0.0;
    else b->modes.crossing[k] = mode != 0.0 ? mode * u : (*upper - x < x - *lower ? *upper - x : x - *lower);
    return mode;
}

/* Whether modes hold for this evaluation. */
static int full_integrator_has_modes(const bl_block *b) {
    return b->modes.mode && *b->modes.decision != BL_DECIDE_ALWAYS;
}

/* Whether the reset signal is positive. */
static int full_integrator_resets(const bl_block *b) {
    const double now = b->u[1][0];
    return bl_decide(&b->modes, b->x_count, now > 0.0, now);
}

static double full_integrator_start(const bl_block *b, int32_t k) {
    const double *from = b->i[FULL_INTEGRATOR_PORT] ? b->u[b->u_count - 1] : b->p;
    return full_integrator_limit(b, k, from[b->i[FULL_INTEGRATOR_INITIAL] == 1 ? 0 : k]);
}

static int full_integrator_holds(const bl_block *b) {
    if (full_integrator_has_modes(b))
        return b->i[FULL_INTEGRATOR_EDGE] == FULL_INTEGRATOR_LEVEL && full_integrator_resets(b);
    if (b->z[FULL_INTEGRATOR_FROZEN] != 0.0) return b->z[FULL_INTEGRATOR_HELD] != 0.0;
    return b->i[FULL_INTEGRATOR_EDGE] == FULL_INTEGRATOR_LEVEL && b->u[1][0] > 0.0;
}

/* Whether x takes its start value at this tick. */
static int full_integrator_restarts(const bl_block *b) {
    const int32_t edge = b->i[FULL_INTEGRATOR_EDGE];
    if (full_integrator_has_modes(b) ? *b->modes.decision == BL_KEEP : b->z[FULL_INTEGRATOR_FROZEN] != 0.0) return 0;
    if (b->z[FULL_INTEGRATOR_STARTED] == 0.0 && b->i[FULL_INTEGRATOR_PORT]) return 1;
    if (edge == FULL_INTEGRATOR_NEVER) return 0;
    const double before = b->z[FULL_INTEGRATOR_BEFORE], now = b->u[1][0];
    if (edge == FULL_INTEGRATOR_LEVEL) return now > 0.0;
    const int rising = before <= 0.0 && now > 0.0, falling = before > 0.0 && now <= 0.0;
    return (edge != FULL_INTEGRATOR_FALLING && rising) || (edge != FULL_INTEGRATOR_RISING && falling);
}

static int full_integrator_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = 0.0;
    for (int32_t k = 0; k < b->x_count; k++) b->x[k] = b->i[FULL_INTEGRATOR_PORT] ? 0.0 : full_integrator_start(b, k);
    return BL_OK;
}
static int full_integrator_output(bl_block *b, double t) {
    (void)t;
    const int restarts = full_integrator_restarts(b), free = b->modes.mode && *b->modes.decision == BL_KEEP;
    for (int32_t k = 0; k < b->x_count; k++) {
        const double x = free ? b->x[k] : full_integrator_limit(b, k, b->x[k]);
        b->y[0][k] = restarts ? full_integrator_start(b, k) : x;
        if (b->y_count > 1) b->y[1][k] = x;
    }
    return BL_OK;
}
static int full_integrator_derivative(bl_block *b, double t) {
    (void)t;
    const int frozen = b->z[FULL_INTEGRATOR_FROZEN] != 0.0, holds = full_integrator_holds(b);
    if (full_integrator_has_modes(b)) {
        for (int32_t k = 0; k < b->x_count; k++)
            b->dx[k] = holds || full_integrator_mode(b, k) != 0.0 ? 0.0 : b->u[0][k];
        return BL_OK;
    }
    for (int32_t k = 0; k < b->x_count; k++) {
        const double u = b->u[0][k];
        const double side = frozen ? b->z[FULL_INTEGRATOR_SIDES + k] : full_integrator_side(b, k, b->x[k]);
        b->dx[k] = holds || side * u > 0.0 || full_integrator_is_fixed(b, k) ? 0.0 : u;
    }
    return BL_OK;
}
static int full_integrator_update(bl_block *b, double t) {
    (void)t;
    const int restarts = full_integrator_restarts(b), holds = full_integrator_holds(b);
    for (int32_t k = 0; k < b->x_count; k++) {
        b->x[k] = restarts ? full_integrator_start(b, k) : full_integrator_limit(b, k, b->x[k]);
        b->z[FULL_INTEGRATOR_SIDES + k] = full_integrator_side(b, k, b->x[k]);
    }
    if (b->i[FULL_INTEGRATOR_EDGE] != FULL_INTEGRATOR_NEVER) b->z[FULL_INTEGRATOR_BEFORE] = b->u[1][0];
    b->z[FULL_INTEGRATOR_HELD] = holds ? 1.0 : 0.0;
    b->z[FULL_INTEGRATOR_STARTED] = 1.0;
    b->z[FULL_INTEGRATOR_FROZEN] = 1.0;
    return BL_OK;
}
static int32_t full_integrator_crossings(const bl_block *b) {
    return b->i[FULL_INTEGRATOR_LIMIT] == 0 && b->i[FULL_INTEGRATOR_EDGE] == FULL_INTEGRATOR_NEVER ? 0 : b->x_count + 1;
}
static int full_integrator_cross(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->x_count; k++) (void)full_integrator_mode(b, k);
    if (b->i[FULL_INTEGRATOR_EDGE] != FULL_INTEGRATOR_NEVER) (void)full_integrator_resets(b);
    return BL_OK;
}
static int full_integrator_needs_ticks(const bl_block *b) { return !b->modes.mode && full_integrator_crossings(b) > 0; }
static int full_integrator_event(bl_block *b, double t) {
    const int restarts = full_integrator_restarts(b);
    int changed = 0;
    for (int32_t k = 0; k < b->x_count; k++) {
        const double x = restarts ? full_integrator_start(b, k) : full_integrator_limit(b, k, b->x[k]);
        changed |= x != b->x[k];
        b->x[k] = x;
        b->z[FULL_INTEGRATOR_SIDES + k] = full_integrator_side(b, k, x);
    }
    if (b->i[FULL_INTEGRATOR_EDGE] != FULL_INTEGRATOR_NEVER) b->z[FULL_INTEGRATOR_BEFORE] = b->u[1][0];
    (void)full_integrator_cross(b, t);
    b->z[FULL_INTEGRATOR_HELD] = full_integrator_holds(b) ? 1.0 : 0.0;
    return changed ? BL_OK : BL_UNCHANGED;
}
static int full_integrator_project(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->x_count; k++) b->x[k] = full_integrator_limit(b, k, b->x[k]);
    if (*b->offset == 0.0) b->z[FULL_INTEGRATOR_FROZEN] = 0.0;
    return BL_OK;
}

/* Derivative: dx/dt = (u - x) / tau, y = (u - x) / tau. p: tau, then x(0); without x(0), z is 0 until the
   first update, and x starts from u. */
static int derivative_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 1 || b->u_width[0] != b->x_count || b->y_width[0] != b->x_count) return 0;
    return b->p_count == 1 || b->p_count == 2 || (int64_t)b->p_count == 1 + (int64_t)b->x_count;
}
static bl_sizes derivative_sizes(const bl_block *b) { return (bl_sizes){.memory = b->p_count == 1}; }
static double derivative_of(const bl_block *b, int32_t k) {
    if (b->z_count == 1 && b->z[0] == 0.0) return 0.0;
    return (b->u[0][k] - b->x[k]) / b->p[0];
}
static int derivative_init(bl_block *b, double t) {
    (void)t;
    if (b->z_count == 1) b->z[0] = 0.0;
    for (int32_t k = 0; k < b->x_count; k++) b->x[k] = b->z_count == 1 ? 0.0 : b->p[b->p_count > 2 ? 1 + k : 1];
    return BL_OK;
}
static int derivative_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->x_count; k++) b->y[0][k] = derivative_of(b, k);
    return BL_OK;
}
static int derivative_derivative(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->x_count; k++) b->dx[k] = derivative_of(b, k);
    return BL_OK;
}
static int derivative_update(bl_block *b, double t) {
    (void)t;
    if (b->z_count == 0 || b->z[0] != 0.0) return BL_OK;
    for (int32_t k = 0; k < b->x_count; k++) b->x[k] = b->u[0][k];
    b->z[0] = 1.0;
    return BL_OK;
}

/* Only the first tick starts it. */
static int derivative_needs_ticks(const bl_block *b) {
    (void)b;
    return 0;
}

const bl_kernel bl_kernels_continuous[] = {
    {.name = "integrator",
     .check = integrator_check,
     .init = integrator_init,
     .output = integrator_output,
     .derivative = integrator_derivative},
    {.name = "full_integrator",
     .check = full_integrator_check,
     .sizes = full_integrator_sizes,
     .init = full_integrator_init,
     .output = full_integrator_output,
     .derivative = full_integrator_derivative,
     .update = full_integrator_update,
     .project = full_integrator_project,
     .crossing_count = full_integrator_crossings,
     .crossings = full_integrator_cross,
     .event = full_integrator_event,
     .needs_ticks = full_integrator_needs_ticks},
    {.name = "derivative",
     .check = derivative_check,
     .sizes = derivative_sizes,
     .init = derivative_init,
     .output = derivative_output,
     .derivative = derivative_derivative,
     .update = derivative_update,
     .needs_ticks = derivative_needs_ticks},
    {.name = 0},
};
