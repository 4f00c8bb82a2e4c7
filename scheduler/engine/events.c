/* Internal steps: events within a tick, and steps under error control.
 *
 * A block with discontinuities keeps its mode while a step is integrated, so that the right-hand side is smooth, and evaluates
 * crossing functions, which are negative beyond the border of the mode (blocks/core/kernel/kernel.h). If one is negative at the end of
 * a step, the first crossing is located on the interpolant of the step. The step ends there: states are projected, modes are
 * decided anew by the present values, blocks change their states (`event`), and integration goes on to the end of the tick.
 * A step also ends at every instant that a block knows in advance.
 *
 * The number of events in a tick is bounded. Beyond it, the rest of the tick is integrated with blocks that decide at every
 * evaluation, as for a diagram whose events are not located. The same holds where the right-hand side is not finite beyond a border
 * however short the step. Both are counted.
 *
 * Under error control, a step may end after the tick where no signal that the states depend on changes at ticks. It then stays
 * open: the states at a tick are those of its interpolant, which is part of the saved state. An event that was located in it waits
 * until its tick is integrated. Whatever changes values from outside closes it, and integration goes on from the tick.
 *
 * Modes are no state: they are decided at every tick, and wherever a run stops within one, from the values there. */
#include <math.h>
#include <string.h>

#include "scheduler/engine/solvers/solver.h"

static const double EVENT_BRACKET =
    1e-12;  /* of a step, or of a tick if that is shorter: width of the bracket of a crossing */
static const double EVENT_SHORTEST = 1e-9;  /* of a tick: a step that is not finite is halved down to this */
enum { LARGEST_SEARCH = 200, LARGEST_PASSES = 100 };

static void note_event(bl_engine *e, double t, int32_t block, int32_t crossing) {
    e->counters[BL_COUNT_EVENTS] += 1.0;
    if (e->event_count < e->event_capacity) e->events[e->event_count++] = (bl_event){t, block, crossing};
}

/* Notes one event for each block with a function beyond its border. */
static void note_crossings(bl_engine *e, double t) {
    for (int32_t n = 0; n < e->located_count; n++) {
        const bl_block *b = e->located[n];
        for (int32_t k = 0; k < b->crossing_count; k++)
            if (b->modes.crossing[k] < 0.0) {
                note_event(e, t, b->index, k);
                break;
            }
    }
}

static int run_apart(bl_engine *e, double t) {
    for (int32_t n = 0; n < e->apart_count; n++) {
        bl_block *b = e->apart[n];
        if (!bl_active(e, e->block_guard[b->index])) continue;
        const int status = e->kernels[b->index]->crossings(b, t);
        if (status != BL_OK) return bl_fail_block(e, status, b, "the block failed to evaluate its crossing functions");
    }
    return BL_OK;
}

static int evaluate_crossings(bl_engine *e, double t) {
    bl_follow_inputs(e, t);
    const int status = bl_run_program(e, &e->crossing_program, t, true);
    return status == BL_OK ? run_apart(e, t) : status;
}

/* The blocks of an inactive subsystem are not evaluated: their crossing functions are those of the last tick they ran. */
typedef enum { WITHIN, BEYOND, NOT_FINITE } bl_reach;
static bl_reach judge_crossings(const bl_engine *e) {
    bl_reach reach = WITHIN;
    for (int64_t k = 0; k < e->crossing_count; k++) {
        if (isnan(e->crossing[k])) return NOT_FINITE;
        if (e->crossing[k] < 0.0) reach = BEYOND;
    }
    return reach;
}

/* Of the functions that are negative at b, the first root by linear interpolation between a and b. */
static double guess_root(const bl_engine *e, double a, const double *at_a, double weight_a, double b,
                         const double *at_b, double weight_b) {
    double first = b;
    for (int64_t k = 0; k < e->crossing_count; k++) {
        if (!(at_b[k] < 0.0)) continue;
        const double left = weight_a * fmax(at_a[k], 0.0), right = -weight_b * at_b[k];
        const double root = a + (b - a) * (left / (left + right));
        if (root < first) first = root;
    }
    return first;
}

/* The end of a bracket of the first crossing, as a part of the step of length h from t, into *part; x, signals and
   crossing functions are those there. Regula falsi with the Illinois weights, and bisection where that is slow. */
static int locate_crossing(bl_engine *e, double t, double h, double *part) {
    const size_t size = (size_t)e->crossing_count * sizeof(double);
    const double bracket = fmax(EVENT_BRACKET * fmin(1.0, e->step / h), 0x1p-51);
    double a = 0.0, b = 1.0, weight_a = 1.0, weight_b = 1.0, *at_a = e->crossing_a, *at_b = e->crossing_b;
    memcpy(at_b, e->crossing, size);
    int status = bl_complete_interpolant(e, t, h), last = 0;
    if (status == BL_OK) {
        bl_interpolate(e, h, a, e->x);
        status = evaluate_crossings(e, t);
        memcpy(at_a, e->crossing, size);
    }
    double width = 2.0;
    for (int n = 0; status == BL_OK && b - a > bracket && n < LARGEST_SEARCH; n++) {
        double s = guess_root(e, a, at_a, weight_a, b, at_b, weight_b);
        if (n % 3 == 2) { /* three evaluations should have reduced the bracket to an eighth */
            if (b - a > 0.125 * width) s = 0.5 * (a + b);
            width = b - a;
        }
        const double closest = fmin(0.4 * bracket, 0.5 * (b - a));
        s = fmin(fmax(s, a + closest), b - closest);
        bl_interpolate(e, h, s, e->x);
        status = evaluate_crossings(e, t + s * h);
        e->counters[BL_COUNT_SEARCHED] += 1.0;
        const bool beyond = judge_crossings(e) != WITHIN;
        if (beyond) {
            b = s;
            memcpy(at_b, e->crossing, size);
            weight_b = 1.0;
            weight_a = last > 0 ? 0.5 * weight_a : 1.0;
        } else {
            a = s;
            memcpy(at_a, e->crossing, size);
            weight_a = 1.0;
            weight_b = last < 0 ? 0.5 * weight_b : 1.0;
        }
        last = beyond ? 1 : -1;
    }
    if (status != BL_OK) return status;
    memcpy(e->crossing, at_b, size);
    bl_interpolate(e, h, b, e->x);
    *part = b;
    return BL_OK;
}

/* Decides all modes at t and changes the states of blocks, until nothing changes; outputs are then those right after the event. */
static int take_event(bl_engine *e, double t) {
    int status = bl_project(e, t);
    e->decision = BL_DECIDE;
    for (int pass = 0; status == BL_OK && pass < LARGEST_PASSES; pass++) {
        bool changed = false;
        status = bl_evaluate_minor(e, t);
        if (status == BL_OK) status = run_apart(e, t);
        for (int32_t n = 0; n < e->eventful_count && status == BL_OK; n++) {
            bl_block *b = e->eventful[n];
            if (!bl_active(e, e->block_guard[b->index])) continue;
            const int outcome = e->kernels[b->index]->event(b, t);
            if (outcome == BL_OK) changed = true;
            else if (outcome != BL_UNCHANGED) status = bl_fail_block(e, outcome, b, "the block failed at an event");
        }
        if (!changed) break;
    }
    e->decision = BL_KEEP;
    bl_restart_solver(e);
    return status;
}

static void find_instant(bl_engine *e, double t) {
    e->instant = INFINITY;
    for (int32_t n = 0; n < e->timed_count; n++) {
        const bl_block *b = e->timed[n];
        const double next = e->kernels[b->index]->next_instant(b, t);
        if (!(next < e->instant) || !(next > t)) continue;
        e->instant = next;
        e->instant_block = b->index;
    }
}

/* One step from t, at most `limit` long; afterwards crossing functions are those at its end. */
static int try_event_step(bl_engine *e, double t, double limit, double *taken) {
    *taken = limit;
    int status = bl_evaluate_derivatives(e, t);
    if (status != BL_OK) return status;
    if (e->relative_tolerance > 0.0) { /* its last evaluation was at the end, and has noted the crossing functions */
        status = bl_step_adaptive(e, t, limit, taken);
        return status == BL_OK ? run_apart(e, t + *taken) : status;
    }
    if (e->crossing_count > 0) memcpy(e->step_start, e->x, (size_t)e->layout.states * sizeof(double));
    status = bl_integrate(e, t, limit);
    if (status == BL_OK && e->crossing_count > 0 && bl_all_finite(e->x, e->layout.states))
        status = evaluate_crossings(e, t + limit);
    return status;
}

int bl_freeze_modes(bl_engine *e) {
    bl_release_modes(e);
    for (int32_t k = 0; k < e->idle_count; k++) e->idle[k]->modes = e->idle_modes[k];
    e->outputs_valid = false;
    e->constants_valid = false; /* constant blocks may have modes too */
    int status = bl_outputs(e);
    if (status == BL_OK) status = run_apart(e, bl_time(e));
    if (status == BL_OK) {
        e->decision = BL_KEEP;
        e->frozen = true;
    } else {
        bl_release_modes(e);
    }
    return status;
}

void bl_release_modes(bl_engine *e) {
    for (int32_t k = 0; k < e->idle_count; k++) e->idle[k]->modes = (bl_modes){0};
    e->decision = BL_DECIDE;
    e->frozen = false;
    e->outputs_valid = false;
}

/* Seconds from the last tick to the next one at which a signal changes that states depend on. */
static double find_horizon(const bl_engine *e) {
    if (!e->crosses_ticks || e->follows) return e->step;
    double ticks = 1e9;
    for (int32_t r = 2; r < e->rate_count; r++) {
        const bl_rate *rate = &e->rates[r];
        if (!e->ends_steps[r]) continue;
        const int64_t since = e->tick - rate->offset;
        const int64_t next = since < 0 ? -since : rate->period - since % rate->period;
        if ((double)next < ticks) ticks = (double)next;
    }
    return ticks * e->step;
}

/* The rest of the tick without error control and without locating events. */
static int finish_tick(bl_engine *e, double t, double h, int counter) {
    if (!e->frozen) e->decision = BL_DECIDE_ALWAYS;
    e->counters[counter] += 1.0;
    const int status = bl_evaluate_derivatives(e, t);
    return status == BL_OK ? bl_integrate(e, t, h) : status;
}

/* What is known about the end of a step. */
typedef enum { END_PLAIN, END_EVENT, END_INSTANT } bl_end;

/* Takes the event at the end of a step, at `done` after t; x is the state there. */
static int end_step(bl_engine *e, double t, double done, double offset, bl_end end) {
    const double now = t + done;
    int status = BL_OK;
    if (end == END_PLAIN) {
        if (e->projects.call_count > 0) status = bl_project(e, now);
        return status == BL_OK ? bl_evaluate_minor(e, now) : status;
    }
    e->offset = offset + done;
    if (end == END_INSTANT) note_event(e, now, e->instant_block, -1);
    else note_crossings(e, now);
    status = take_event(e, now);
    const double slack = BL_GRID_TOLERANCE * e->step;
    if (e->instant <= now + slack) find_instant(e, now + slack);
    return status;
}

/* Continues the step that is open, if any, up to `h` after t; returns how far it leads, in *done. */
static int continue_step(bl_engine *e, double t, double h, double offset, double *done) {
    double *open = e->open;
    *done = 0.0;
    if (open[BL_OPEN_LENGTH] == 0.0) return BL_OK;
    const double length = open[BL_OPEN_LENGTH], since = t - open[BL_OPEN_START],
                 rest = open[BL_OPEN_PART] * open[BL_OPEN_LENGTH] - since;
    if (rest >= h) {
        bl_interpolate(e, length, (since + h) / length, e->x);
        *done = h;
        return BL_OK;
    }
    bl_interpolate(e, length, open[BL_OPEN_PART], e->x);
    *done = fmax(rest, 0.0);
    open[BL_OPEN_LENGTH] = 0.0;
    int status = BL_OK;
    if (open[BL_OPEN_KIND] == END_EVENT) status = evaluate_crossings(e, t + *done);
    return status == BL_OK ? end_step(e, t, *done, offset, (bl_end)open[BL_OPEN_KIND]) : status;
}

int bl_integrate_within_tick(bl_engine *e, double t, double h) {
    const double offset = e->offset, slack = BL_GRID_TOLERANCE * e->step;
    const double horizon = e->relative_tolerance > 0.0 ? fmax(find_horizon(e) - offset, h) : h;
    double done = 0.0, longest = INFINITY;
    int64_t events = 0, steps = 0;
    /* At the tick, modes were decided with its outputs, but for those that are evaluated apart. */
    int status = run_apart(e, t);
    if (!(e->instant > t + slack)) find_instant(e, t + slack);
    e->decision = BL_KEEP;
    /* Between ticks, inputs may have changed where the run stopped: that is an event. */
    if (status == BL_OK && offset != 0.0 && e->eventful_count > 0 && e->open[BL_OPEN_LENGTH] == 0.0)
        status = take_event(e, t);
    if (status == BL_OK) status = continue_step(e, t, h, offset, &done);
    while (status == BL_OK && done < h) {
        const double now = t + done;
        if (events >= e->max_events || steps >= e->max_steps) {
            status =
                finish_tick(e, now, h - done, events >= e->max_events ? BL_COUNT_UNLOCATED : BL_COUNT_UNCONTROLLED);
            bl_restart_solver(e);
            break;
        }
        const double instant = e->instant - t < horizon - slack && !e->frozen ? e->instant - t : INFINITY;
        const double limit = fmin(fmin(fmin(horizon, instant) - done, longest), fmax(horizon - done, h - done));
        double taken = 0.0, part = 1.0;
        bl_end end = END_PLAIN;
        status = try_event_step(e, now, limit, &taken);
        steps++;
        bl_reach reach = WITHIN;
        if (status == BL_ERROR_SOLVER && e->relative_tolerance > 0.0 && e->crossing_count > 0) {
            /* Steps as short as possible do not lead on to the border of a mode. */
            bl_forget_failure(e);
            events = e->max_events;
            status = bl_evaluate_minor(e, now);
            continue;
        }
        if (status != BL_OK) break;
        if (e->crossing_count > 0 && !e->frozen)
            reach = bl_all_finite(e->x, e->layout.states) ? judge_crossings(e) : NOT_FINITE;
        if (reach == NOT_FINITE) {
            memcpy(e->x, e->step_start, (size_t)e->layout.states * sizeof(double));
            longest = 0.5 * taken;
            if (longest < EVENT_SHORTEST * e->step) events = e->max_events;
            status = bl_evaluate_minor(e, now);
            continue;
        }
        longest = INFINITY;
        if (reach == BEYOND) {
            status = locate_crossing(e, now, taken, &part);
            end = END_EVENT;
        } else if (done + taken >= instant) {
            end = END_INSTANT;
        }
        if (status != BL_OK) break;
        const double reached = end == END_INSTANT                                          ? instant
                               : taken >= h - done && reach == WITHIN && taken <= h - done ? h
                                                                                           : done + part * taken;
        if (reached > h) { /* the step stays open */
            e->open[BL_OPEN_START] = now;
            e->open[BL_OPEN_LENGTH] = taken;
            e->open[BL_OPEN_PART] = part;
            e->open[BL_OPEN_KIND] = end;
            bl_interpolate(e, taken, (h - done) / taken, e->x);
            break;
        }
        if (end != END_PLAIN) events++;
        done = reached;
        if (done >= h && end == END_PLAIN) break;
        status = end_step(e, t, done, offset, end);
    }
    e->offset = offset;
    if (!e->frozen) e->decision = BL_DECIDE;
    return status;
}
