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
 * Modes are not states: they are decided at every tick, and wherever a run stops within one, from the values there. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "blocks/core/kernel/root.h"
#include "scheduler/engine/solvers/solver.h"

static const double EVENT_BRACKET =
    1e-12;  /* of a step, or of a tick if that is shorter: width of the bracket of a crossing */
static const double EVENT_SHORTEST = 1e-9;  /* of a tick: a step that is not finite is halved down to this */
static const double RESOLVED_SHORTEST = 1.0 / 64; /* of a tick: one that does not resolve an input, down to this */
enum { LARGEST_SEARCH = 200, LARGEST_PASSES = 100 };

static void note_event(bl_engine *e, double t, int32_t block, int32_t crossing) {
    e->counters[BL_COUNT_EVENTS] += 1.0;
    if (e->event_count < e->event_capacity) e->events[e->event_count++] = (bl_event){t, block, crossing};
}

void bl_note_event(const bl_block *b, double t, int32_t crossing) { note_event(b->engine, t, b->index, crossing); }

int64_t bl_event_limit(const bl_block *b) {
    return b->engine->locates && !b->engine->frozen ? b->engine->max_events : 0;
}

int bl_has_adaptive_steps(const bl_block *b) { return b->engine->relative_tolerance > 0.0; }

void bl_note_unlocated(const bl_block *b) { bl_count_unlocated(b->engine, bl_time(b->engine), b->index); }

void bl_request_event(const bl_block *b, int32_t crossing) {
    b->engine->requesting_block = b->index;
    b->engine->requested_crossing = crossing;
}

void bl_forget_instants(const bl_block *b) { b->engine->instant = -INFINITY; }

void bl_mark_log(const bl_engine *e, bl_log_mark *mark) {
    mark->events = e->event_count;
    memcpy(mark->counters, e->counters, sizeof mark->counters);
}

void bl_rewind_log(bl_engine *e, const bl_log_mark *mark) {
    e->event_count = mark->events;
    memcpy(e->counters, mark->counters, sizeof mark->counters);
}

void bl_forget_events(const bl_block *b, const bl_log_mark *mark) {
    bl_engine *e = b->engine;
    int64_t kept = mark->events;
    for (int64_t k = mark->events; k < e->event_count; k++)
        if (e->events[k].block != b->index) e->events[kept++] = e->events[k];
    e->counters[BL_COUNT_EVENTS] -= (double)(e->event_count - kept);
    e->event_count = kept;
}

void bl_describe_event(const bl_engine *e, int32_t block, int32_t crossing, char *text, size_t size) {
    if (size > 0) text[0] = '\0';
    if (size == 0 || block < 0 || block >= e->block_count || !e->kernels[block]->describe_event) return;
    e->kernels[block]->describe_event(&e->blocks[block], crossing, text, size);
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

int bl_run_crossings(bl_engine *e, bl_block *b, double t) {
    if (!bl_active(e, e->block_guard[b->index])) return BL_OK;
    const int status = e->kernels[b->index]->crossings(b, t);
    return status == BL_OK ? BL_OK : bl_fail_block(e, status, b, "the block failed to evaluate its crossing functions");
}

/* Evaluates the crossing functions that outputs do not evaluate. Where modes are decided, those that depend on rates are first decided
   without. What they then are may change the rates of others: until none changes. */
int bl_run_apart(bl_engine *e, double t) {
    const bool decides = e->decision != BL_KEEP;
    const size_t size = (size_t)e->crossing_count * sizeof(double);
    int status = BL_OK;
    for (int32_t n = 0; n < e->apart_count && status == BL_OK; n++)
        if (decides || !e->kernels[e->apart[n]->index]->input_rates) status = bl_run_crossings(e, e->apart[n], t);
    if (e->rated_count == 0) return status;
    for (int32_t pass = 0; status == BL_OK && pass < 1 + 2 * e->rated_count; pass++) {
        if (decides) memcpy(e->crossing_a, e->mode, size);
        status = bl_cross_rated(e, t, decides && pass == 0);
        if (!decides || memcmp(e->crossing_a, e->mode, size) == 0) break;
    }
    return status;
}

static int evaluate_crossings(bl_engine *e, double t) {
    bl_follow_inputs(e, t);
    const int status = bl_run_minor(e, &e->crossing_program, t);
    return status == BL_OK && e->apart_count > 0 ? bl_run_apart(e, t) : status;
}

/* The blocks of an inactive subsystem are not evaluated. What their crossing functions were last, perhaps in a step that failed or
   with frozen modes, must not be taken for a crossing. */
void bl_clear_guarded(bl_engine *e) {
    for (int32_t n = 0; n < e->located_count; n++) {
        const bl_block *b = e->located[n];
        if (!bl_active(e, e->block_guard[b->index]))
            memset(b->modes.crossing, 0, (size_t)b->crossing_count * sizeof(double));
    }
}

typedef enum { WITHIN, BEYOND, NOT_FINITE } bl_reach;
static bl_reach judge_crossings(const bl_engine *e) {
    const double *crossing = e->crossing, *end = crossing + e->crossing_count;
    while (crossing != end && *crossing >= 0.0) crossing++; /* as a rule all */
    bl_reach reach = WITHIN;
    for (; crossing != end; crossing++) {
        if (isnan(*crossing)) return NOT_FINITE;
        if (*crossing < 0.0) reach = BEYOND;
    }
    return reach;
}

/* The end of a bracket of the first crossing between the parts `a` and `b` of the step of length h from t, into *part; x and
   crossing functions are those there, and before, crossing functions are those at b; of a multirate step, those at its end. */
static int locate_crossing(bl_engine *e, double t, double h, double a, double b, double *part) {
    const size_t size = (size_t)e->crossing_count * sizeof(double);
    double *at_a = e->crossing_a, *at_b = e->crossing_b;
    bl_bracket r = bl_bracket_open(a, b, fmax(EVENT_BRACKET * fmin(1.0, e->step / h), 0x1p-51));
    memcpy(at_b, e->crossing, size);
    int status = bl_complete_interpolant(e, t, h);
    if (status == BL_OK && e->multirate && b < 1.0) {
        bl_interpolate(e, h, b, e->x);
        status = evaluate_crossings(e, t + b * h);
        memcpy(at_b, e->crossing, size);
    }
    if (status == BL_OK) {
        bl_interpolate(e, h, r.a, e->x);
        status = evaluate_crossings(e, t + r.a * h);
        memcpy(at_a, e->crossing, size);
    }
    while (status == BL_OK && r.b - r.a > r.tolerance && r.trials < LARGEST_SEARCH) {
        double first = INFINITY;
        for (int64_t k = 0; k < e->crossing_count; k++) first = fmin(first, bl_bracket_root(&r, at_a[k], at_b[k]));
        const double s = bl_bracket_trial(&r, first);
        bl_interpolate(e, h, s, e->x);
        status = evaluate_crossings(e, t + s * h);
        e->counters[BL_COUNT_SEARCHED] += 1.0;
        const bool beyond = judge_crossings(e) != WITHIN;
        memcpy(beyond ? at_b : at_a, e->crossing, size);
        bl_bracket_narrow(&r, s, beyond);
    }
    if (status != BL_OK) return status;
    memcpy(e->crossing, at_b, size);
    bl_interpolate(e, h, r.b, e->x);
    *part = r.b;
    return BL_OK;
}

int bl_settle_blocks(bl_engine *e, double t) {
    int status = e->settling_count > 0 ? bl_evaluate_minor(e, t) : BL_OK;
    for (int32_t n = 0; n < e->settling_count && status == BL_OK; n++) {
        bl_block *b = e->settling[n];
        if (!bl_active(e, e->block_guard[b->index])) continue;
        status = e->kernels[b->index]->settle(b, t);
        if (status != BL_OK) status = bl_fail_block(e, status, b, "the block failed at the end of a step");
    }
    return status;
}

/* Events of native blocks that do not end are left as they are: the next tick decides again. A block with state outside the engine would go
   on with a state that is not consistent with its inputs. */
static int fail_endless(bl_engine *e, double t) {
    for (int32_t n = 0; n < e->ticking_count; n++) {
        const bl_block *b = e->ticking[n];
        if (bl_active(e, e->block_guard[b->index]))
            return bl_fail(
                e, BL_ERROR_BLOCK, b->index,
                "the events at t = %.9g do not end: after %d iterations, those of connected blocks still trigger "
                "each other",
                t, LARGEST_PASSES);
    }
    return BL_OK;
}

int bl_decide_modes(bl_engine *e, double t) {
    int status = BL_OK;
    e->decision = BL_DECIDE;
    for (int pass = 0; status == BL_OK && pass < LARGEST_PASSES; pass++) {
        bool changed = false;
        status = bl_evaluate_minor(e, t);
        if (status == BL_OK) status = bl_run_apart(e, t);
        for (int32_t n = 0; n < e->eventful_count && status == BL_OK; n++) {
            bl_block *b = e->eventful[n];
            if (!bl_active(e, e->block_guard[b->index])) continue;
            const int outcome = e->kernels[b->index]->event(b, t);
            if (outcome == BL_OK) changed = true;
            else if (outcome != BL_UNCHANGED) status = bl_fail_block(e, outcome, b, "the block failed at an event");
        }
        if (!changed) break;
        if (pass + 1 == LARGEST_PASSES) status = fail_endless(e, t);
    }
    e->decision = BL_KEEP;
    e->requesting_block = -1;
    bl_restart_solver(e);
    return status;
}

static int take_event(bl_engine *e, double t) {
    const int status = bl_project(e, t);
    if (status == BL_OK) return bl_decide_modes(e, t);
    e->decision = BL_KEEP;
    e->requesting_block = -1;
    bl_restart_solver(e);
    return status;
}

int bl_take_tick_events(bl_engine *e, double t) {
    int status = BL_OK;
    for (int pass = 0; status == BL_OK && pass < LARGEST_PASSES; pass++) {
        bool changed = false;
        for (int32_t n = 0; n < e->ticking_count && status == BL_OK; n++) {
            bl_block *b = e->ticking[n];
            if (!bl_active(e, e->block_guard[b->index])) continue;
            const int outcome = e->kernels[b->index]->tick_event(b, t);
            if (outcome == BL_OK) changed = true;
            else if (outcome != BL_UNCHANGED) status = bl_fail_block(e, outcome, b, "the block failed at an event");
        }
        if (status != BL_OK || !changed) break;
        bl_restart_solver(e);
        e->open[BL_OPEN_LENGTH] = 0.0;
        status = pass + 1 < LARGEST_PASSES ? bl_run_program(e, &e->major, t, false) : fail_endless(e, t);
    }
    return status;
}

void bl_find_instant(bl_engine *e, double t) {
    e->instant = INFINITY;
    for (int32_t n = 0; n < e->timed_count; n++) {
        const bl_block *b = e->timed[n];
        const double next = e->kernels[b->index]->next_instant(b, t);
        if (!(next < e->instant) || !(next > t)) continue;
        e->instant = next;
        e->instant_block = b->index;
    }
}

/* As fmin without its care for NaN, which makes it a call. */
static inline double smaller(double a, double b) { return a < b ? a : b; }

/* One step from t, at most `limit` long; afterwards crossing functions are those at its end. `is_ready`: dx holds f(t, x). */
static int try_event_step(bl_engine *e, double t, double limit, bool is_ready, double *taken) {
    *taken = limit;
    int status = is_ready ? BL_OK : bl_evaluate_derivatives(e, t);
    if (status != BL_OK) return status;
    if (e->crossing_count > 0) memcpy(e->step_start, e->x, (size_t)e->layout.states * sizeof(double));
    if (e->relative_tolerance > 0.0) { /* its last evaluation was at the end, and has noted the crossing functions */
        status = bl_step_adaptive(e, t, limit, taken);
        return status == BL_OK ? bl_run_apart(e, t + *taken) : status;
    }
    status = bl_step_fixed(e, t, limit, taken);
    if (status != BL_OK || e->crossing_count == 0) return status;
    /* Where a state is not finite, neither are the crossing functions. */
    if (bl_all_finite(e->x, e->layout.states)) return evaluate_crossings(e, t + *taken);
    e->crossing[0] = NAN;
    return BL_OK;
}

int bl_freeze_modes(bl_engine *e) {
    bl_release_modes(e);
    for (int32_t k = 0; k < e->idle_count; k++) {
        e->idle[k]->modes = e->idle_modes[k];
        e->idle_modes[k].mode[0] = NAN;
    }
    e->outputs_valid = false;
    e->constants_valid = false; /* constant blocks may have modes too */
    int status = bl_outputs(e);
    /* Blocks that are not due now have no mode to keep: they decide where they run. */
    for (int32_t k = 0; k < e->idle_count; k++)
        if (isnan(e->idle_modes[k].mode[0])) e->idle[k]->modes = (bl_modes){0};
    if (status == BL_OK) status = bl_run_apart(e, bl_time(e));
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

/* Whether a span from t on is what the rounding of times leaves: too short for a step. */
static bool is_rounding(const bl_engine *e, double t, double span) {
    return span <= 4.0 * DBL_EPSILON * (fabs(t) + fabs(e->start) + e->step);
}

/* The time at h after t. That of a tick is exactly the one at which its outputs decide: else a mode might change in the step, and back at
   the tick. */
static double find_end(const bl_engine *e, double t, double h) {
    const double end = t + h, tick = e->start + (double)(e->tick + 1) * e->step;
    return is_rounding(e, t, fabs(end - tick)) ? tick : end;
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

/* The block with most events at the end of the tick's log; -1 if the log is not that of too many events. */
static int32_t find_chattering(const bl_engine *e) {
    enum { JUDGED = 64 };
    const int64_t full = e->max_events < e->event_capacity ? e->max_events : e->event_capacity;
    if (e->event_count < full || full == 0) return -1;
    const bl_event *last = e->events + (e->event_count > JUDGED ? e->event_count - JUDGED : 0),
                   *end = e->events + e->event_count;
    int32_t found = -1;
    int most = 0;
    for (const bl_event *one = last; one != end; one++) {
        int count = 0;
        for (const bl_event *other = last; other != end; other++) count += other->block == one->block;
        if (count <= most) continue;
        most = count;
        found = one->block;
    }
    return found;
}

void bl_count_unlocated(bl_engine *e, double t, int32_t block) {
    if (e->counters[BL_COUNT_UNLOCATED] == 0.0) {
        e->counters[BL_COUNT_UNLOCATED_TIME] = t;
        e->counters[BL_COUNT_CHATTERING] = (double)block;
    }
    e->counters[BL_COUNT_UNLOCATED] += 1.0;
}

/* The rest of the tick without error control and without locating events. */
static int finish_tick(bl_engine *e, double t, double h, int counter) {
    if (!e->frozen) e->decision = BL_DECIDE_ALWAYS;
    if (counter == BL_COUNT_UNLOCATED) {
        bl_count_unlocated(e, t, e->unresolved_block >= 0 ? -2 - e->unresolved_block : find_chattering(e));
    } else {
        if (e->counters[counter] == 0.0) e->counters[BL_COUNT_UNCONTROLLED_TIME] = t;
        e->counters[counter] += 1.0;
    }
    if (e->crossing_count > 0) memcpy(e->step_start, e->x, (size_t)e->layout.states * sizeof(double));
    int status = bl_evaluate_derivatives(e, t);
    if (status == BL_OK) status = bl_integrate(e, t, h);
    if (status != BL_ERROR_SOLVER || e->crossing_count == 0 || e->frozen) return status;
    /* An implicit step does not converge on a right-hand side that jumps: with the modes that hold now. */
    bl_forget_failure(e);
    memcpy(e->x, e->step_start, (size_t)e->layout.states * sizeof(double));
    bl_restart_solver(e);
    e->decision = BL_DECIDE;
    status = bl_evaluate_minor(e, t);
    if (status == BL_OK) status = bl_run_apart(e, t);
    e->decision = BL_KEEP;
    if (status == BL_OK) status = bl_evaluate_derivatives(e, t);
    return status == BL_OK ? bl_integrate(e, t, h) : status;
}

/* What is known about the end of a step. */
typedef enum { END_PLAIN, END_EVENT, END_INSTANT } bl_end;

/* Whether a time is that of a tick. What is known to happen there is no event: steps of fixed length end there anyway. */
static bool is_at_tick(const bl_engine *e, double t) {
    const double ticks = (t - e->start) / e->step;
    return fabs(ticks - nearbyint(ticks)) * e->step <= bl_slack(e, t);
}

/* Takes the event at the end of a step: `now`, at `done` after the start of the integration; x is the state there. An event must be taken
   at exactly the time where its crossing function is negative: else its mode would not change, and it would be found again. */
static int end_step(bl_engine *e, double now, double done, double offset, bl_end end) {
    int status = BL_OK;
    e->offset = offset + done;
    if (end == END_PLAIN) {
        if (e->projects.call_count > 0) status = bl_project(e, now);
        if (status == BL_OK) status = bl_evaluate_minor(e, now);
        if (status != BL_OK || e->requesting_block < 0) return status;
        note_event(e, now, e->requesting_block, e->requested_crossing);
    } else if (end == END_EVENT) note_crossings(e, now);
    else if (!is_at_tick(e, now)) note_event(e, now, e->instant_block, -1);
    status = bl_settle_blocks(e, now);
    if (status == BL_OK) status = take_event(e, now);
    const double slack = BL_GRID_TOLERANCE * e->step;
    if (e->instant <= now + slack) bl_find_instant(e, now + slack);
    return status;
}

/* Whether a function is beyond its border at the end of the integration, `now`, where x is the state. If none is, an event that was
   located there belongs to what follows. */
static int judge_end(bl_engine *e, double now, bl_end *end) {
    const int status = evaluate_crossings(e, now);
    if (status == BL_OK && judge_crossings(e) == WITHIN) *end = END_PLAIN;
    return status;
}

/* Sets x to the part `to` of a step of length h from t that goes on; the time there is `now`. A function that is negative there, but not
   at the end of the step, has two crossings in the step: then the first one after `from` is located, and *part is less than 1. */
static int pass_tick(bl_engine *e, double t, double h, double from, double to, double now, double *part) {
    *part = 1.0;
    bl_interpolate(e, h, to, e->x);
    if (e->crossing_count == 0 || e->frozen) return BL_OK;
    const int status = evaluate_crossings(e, now);
    if (status != BL_OK || judge_crossings(e) != BEYOND) return status;
    return locate_crossing(e, t, h, from, to, part);
}

/* Continues the step that is open, if any, up to `h` after t; returns how far it leads, in *done. */
static int continue_step(bl_engine *e, double t, double h, double offset, double *done) {
    double *open = e->open;
    *done = 0.0;
    if (open[BL_OPEN_LENGTH] == 0.0) return BL_OK;
    const double length = open[BL_OPEN_LENGTH], since = t - open[BL_OPEN_START],
                 rest = open[BL_OPEN_PART] * open[BL_OPEN_LENGTH] - since;
    const double end_time = find_end(e, t, h);
    double now = open[BL_OPEN_START] + open[BL_OPEN_PART] * length;
    bl_end end = END_PLAIN; /* the kind may come from a deserialized state */
    if (open[BL_OPEN_KIND] == END_EVENT) end = END_EVENT;
    if (open[BL_OPEN_KIND] == END_INSTANT) end = END_INSTANT;
    int status = BL_OK;
    if (rest > h && !is_rounding(e, t, rest - h)) {
        double part = 1.0;
        status = pass_tick(e, open[BL_OPEN_START], length, since / length, (since + h) / length, end_time, &part);
        *done = h;
        if (status != BL_OK || part >= 1.0) return status;
        now = open[BL_OPEN_START] + part * length;
        *done = fmin(fmax(now - t, 0.0), h);
        end = END_EVENT;
        if (*done >= h) now = end_time;
    } else {
        bl_interpolate(e, length, open[BL_OPEN_PART], e->x);
        *done = is_rounding(e, t, h - rest) ? h : fmax(now - t, 0.0);
        if (*done >= h) now = end_time;
        if (end == END_EVENT) status = *done < h ? evaluate_crossings(e, now) : judge_end(e, now, &end);
    }
    open[BL_OPEN_LENGTH] = 0.0;
    return status == BL_OK ? end_step(e, now, *done, offset, end) : status;
}

/* Where a run stops within a tick, at t, inputs may change. */
static int settle_at_stop(bl_engine *e, double t) {
    return t < e->start + (double)(e->tick + 1) * e->step ? bl_settle_blocks(e, t) : BL_OK;
}

/* `tried`: length of a step from t that was taken, but not judged; 0: none. */
static int integrate_in_steps(bl_engine *e, double t, double h, double tried, bool checks) {
    const double offset = e->offset, slack = BL_GRID_TOLERANCE * e->step;
    /* A coupled step is repeated, or taken in parts: nothing of it stays open. */
    const bool stays_open = e->relative_tolerance > 0.0 && !e->states_are_coupled;
    const double horizon = stays_open ? fmax(find_horizon(e) - offset, h) : h;
    const double end_time = find_end(e, t, h);
    const double ceiling = e->parts > 1 ? h / e->parts : INFINITY;
    double done = 0.0, longest = ceiling;
    int64_t events = 0, steps = 0;
    bool is_ready = false; /* whether signals and dx are those at the start of the next step */
    bool is_shortened = false; /* whether steps are shorter than asked for, to resolve inputs */
    e->requesting_block = e->unresolved_block = -1;
    /* At the tick, modes were decided with its outputs, but for those that are evaluated apart. */
    int status = tried > 0.0 || e->apart_count == 0 ? BL_OK : bl_run_apart(e, t);
    bl_clear_inactive(e);
    e->decision = BL_KEEP;
    /* Between ticks, inputs may have changed where the run stopped: that is an event. */
    if (status == BL_OK && offset != 0.0 && e->eventful_count > 0 && e->open[BL_OPEN_LENGTH] == 0.0)
        status = take_event(e, t);
    if (!(e->instant > t + slack)) bl_find_instant(e, t + slack); /* the event may have changed it */
    if (status == BL_OK) status = continue_step(e, t, h, offset, &done);
    while (status == BL_OK && done < h) {
        const double now = t + done;
        if (events >= e->max_events || steps >= e->max_steps) {
            const bool unlocated =
                events >= e->max_events || e->unresolved_block >= 0 || !(e->relative_tolerance > 0.0);
            status = finish_tick(e, now, h - done, unlocated ? BL_COUNT_UNLOCATED : BL_COUNT_UNCONTROLLED);
            bl_restart_solver(e);
            break;
        }
        const double instant = e->instant - t < horizon - slack && !e->frozen ? e->instant - t : INFINITY;
        const double limit = smaller(smaller(horizon, instant) - done, longest);
        double taken = 0.0, part = 1.0, searched = 1.0;
        bl_end end = END_PLAIN;
        if (tried > 0.0) taken = tried;
        else status = try_event_step(e, now, limit, is_ready, &taken);
        is_ready = false;
        tried = 0.0;
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
        if (e->crossing_count > 0 && !e->frozen) reach = judge_crossings(e);
        if (reach == NOT_FINITE) {
            memcpy(e->x, e->step_start, (size_t)e->layout.states * sizeof(double));
            bl_restart_solver(e); /* which has accepted the step */
            longest = 0.5 * taken;
            if (longest < EVENT_SHORTEST * e->step) events = e->max_events;
            status = bl_evaluate_minor(e, now);
            continue;
        }
        if (checks && !e->frozen) {
            bool resolves = true;
            status = bl_check_inputs(e, now, taken, &resolves);
            if (status != BL_OK) break;
            is_shortened = is_shortened || !resolves;
            if (!resolves) {
                memcpy(e->x, e->step_start, (size_t)e->layout.states * sizeof(double));
                bl_restart_solver(e);
                longest = 0.5 * taken;
                if (longest < RESOLVED_SHORTEST * e->step) steps = e->max_steps;
                status = bl_evaluate_minor(e, now);
                continue;
            }
        }
        if (e->multirate && !e->frozen) { /* after the check, which needs the signals at the end of the step */
            status = bl_scan_substeps(e, now, taken, &searched);
            if (status != BL_OK) break;
            if (searched < 1.0) reach = BEYOND;
        }
        longest = is_shortened ? smaller(2.0 * taken, ceiling) : ceiling;
        if (reach == BEYOND) {
            status = locate_crossing(e, now, taken, 0.0, searched, &part);
            end = END_EVENT;
        } else if (taken >= instant - done) {
            end = END_INSTANT;
        }
        if (status != BL_OK) break;
        double at = now + part * taken, reached = done + part * taken;
        if (end == END_EVENT) reached = at - t;
        if (end == END_INSTANT) reached = instant;
        if (e->relative_tolerance > 0.0 ? is_rounding(e, t, fabs(reached - h)) : taken >= h - done && part >= 1.0)
            reached = h;
        else if (taken <= h - done) reached = fmin(reached, h);
        double passed = 1.0;
        if (reached > h) status = pass_tick(e, now, taken, 0.0, (h - done) / taken, end_time, &passed);
        if (status != BL_OK) break;
        if (passed < 1.0) {
            end = END_EVENT;
            at = now + passed * taken;
            reached = fmin(at - t, h);
        } else if (reached > h) { /* the step stays open */
            e->open[BL_OPEN_START] = now;
            e->open[BL_OPEN_LENGTH] = taken;
            e->open[BL_OPEN_PART] = part;
            e->open[BL_OPEN_KIND] = end;
            break;
        }
        done = reached;
        if (end == END_INSTANT) at = t + done;
        if (done >= h) at = end_time;
        if (end == END_EVENT && done >= h) status = judge_end(e, at, &end);
        if (status != BL_OK) break;
        if (end != END_PLAIN) events++;
        if (done >= h && end == END_PLAIN) break;
        /* The last evaluation of a step under error control was at its end. */
        is_ready = e->relative_tolerance > 0.0 && end == END_PLAIN && e->projects.call_count == 0;
        if (is_ready) continue;
        status = end_step(e, end == END_PLAIN ? t + done : at, done, offset, end);
    }
    if (e->open[BL_OPEN_LENGTH] == 0.0) bl_expect_jump(e); /* what the tick changes */
    if (status == BL_OK) status = settle_at_stop(e, end_time);
    e->offset = offset;
    if (!e->frozen) e->decision = BL_DECIDE;
    return status;
}

/* The same with modes that are predicted without the rates of change of inputs; if these do not surely hold, the step is taken back, and
   modes are decided by the rates. */
static int integrate_predicted(bl_engine *e, double t, double h, bool checks) {
    const size_t size = (size_t)e->layout.states * sizeof(double);
    int status = bl_predict_modes(e, t);
    bl_clear_inactive(e);
    e->decision = BL_KEEP;
    if (status == BL_OK) status = bl_evaluate_derivatives(e, t);
    memcpy(e->step_start, e->x, size);
    if (status == BL_OK) status = bl_integrate_explicit(e, t, h);
    const bool is_finite = status == BL_OK && bl_all_finite(e->x, e->layout.states);
    if (is_finite) status = bl_run_minor(e, &e->crossing_program, t + h);
    const int32_t others = e->apart_count - e->rated_count; /* apart, but without rates */
    for (int32_t n = 0; others > 0 && n < e->apart_count && status == BL_OK && is_finite; n++)
        if (!e->kernels[e->apart[n]->index]->input_rates) status = bl_run_crossings(e, e->apart[n], t + h);
    const bool holds = status == BL_OK && is_finite && judge_crossings(e) == WITHIN && bl_prediction_holds(e, t + h, h);
    bool resolves = true;
    if (status == BL_OK && is_finite && (checks || !holds)) status = bl_check_inputs(e, t, h, &resolves);
    if (holds && status == BL_OK && resolves) {
        e->decision = BL_DECIDE;
        return BL_OK;
    }
    memcpy(e->x, e->step_start, size);
    bl_take_back_prediction(e, resolves);
    e->decision = BL_DECIDE;
    if (status != BL_OK && !bl_can_retry(status)) return status;
    if (status != BL_OK) bl_forget_failure(e);
    return integrate_in_steps(e, t, h, 0.0, !resolves);
}

/* As a rule one step of fixed length leads over the whole tick, and no mode changes. */
int bl_integrate_within_tick(bl_engine *e, double t, double h) {
    const double slack = BL_GRID_TOLERANCE * e->step;
    /* Else the first tick after a state was restored would be integrated in another way than in the run that saved it. */
    if (!(e->instant > t + slack)) bl_find_instant(e, t + slack);
    const bool checks = e->rated_count > 0 && bl_checks_inputs(e);
    if (e->relative_tolerance > 0.0 || e->offset != 0.0 || e->frozen || e->parts > 1 || e->instant - t < h - slack)
        return integrate_in_steps(e, t, h, 0.0, checks);
    if (e->rated_count > 0)
        return bl_can_predict(e, h) ? integrate_predicted(e, t, h, checks) : integrate_in_steps(e, t, h, 0.0, checks);
    double taken = 0.0;
    int status = e->apart_count > 0 ? bl_run_apart(e, t) : BL_OK;
    if (e->apart_count > 0) bl_clear_inactive(e);
    e->decision = BL_KEEP;
    if (status == BL_OK) status = try_event_step(e, t, h, false, &taken);
    double searched = 1.0;
    if (status == BL_OK && e->multirate && judge_crossings(e) != NOT_FINITE)
        status = bl_scan_substeps(e, t, taken, &searched);
    if (status == BL_OK && (taken < h || searched < 1.0 || judge_crossings(e) != WITHIN))
        return integrate_in_steps(e, t, h, taken, false);
    bl_expect_jump(e);
    const int settled = status == BL_OK && e->settling_count > 0 ? settle_at_stop(e, find_end(e, t, h)) : status;
    e->decision = BL_DECIDE;
    return settled;
}
