/* The engine as a differential equation with events, for a solver outside: model exchange.
 *
 * Between events, the modes of all blocks and the outputs of sampled blocks stand still, so that the right-hand side is smooth.
 * An event does what happens within a tick of the engine's own run: blocks note what they have reached (`settle`), states are
 * projected, modes are decided anew, and blocks change their states (`event`), until nothing changes. Where the event is at a tick with
 * sample hits, the outputs of the tick come first, then its updates; blocks change their states (`event`) there only if a crossing
 * function is then beyond its border, as in the engine's own run. The first tick is the event at the start.
 *
 * An importing tool iterates over the events of several models at one instant, and inputs may change meanwhile. What was sampled at the
 * tick is then sampled again, from the values before the tick: the result of the iteration is that of one tick with the last inputs.
 *
 * Ticks are events only where something hits: those of periodic blocks, the next one if a block waits for it (`needs_next_tick`), and all
 * of them if a block of continuous rate changes at ticks, there are conditional subsystems, or a Stop or an Assertion is checked. Instants that blocks know in advance are events too.
 *
 * Event indicators are the crossing functions plus a small number. These are not negative within a mode and often 0 right after an
 * event, where an importing tool would see neither side: so the indicators are positive, and an event is due a little after the
 * crossing, where modes change for certain. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "scheduler/engine/engine.h"

static const double ODE_HYSTERESIS = 1e-10; /* of the largest value of a crossing function where events ended, */
static const double ODE_LEAST = 1e-15; /* and at least this */
static const double ODE_LARGEST = 1e100; /* a crossing function may be infinite */
static const double ODE_LEAST_NOMINAL = 1e-9; /* a state that starts nearer to 0 has a nominal value of 1 */
static const double ODE_SAME_TIME = 2e-9; /* relative */
static const double ODE_LARGEST_TICK = 0x1p53;

/* The numbers that are saved; what `bl_ode` lists follows. */
enum {
    ODE_TIME,
    ODE_NEXT_TICK, /* the next tick that is an event; INFINITY: none */
    ODE_NEXT_TIME, /* the next event that is known in advance */
    ODE_PENDING,   /* 1: the event is at a tick that has not been committed */
    ODE_IN_EVENT,
    ODE_STARTED,
    ODE_HIT, /* the last tick that was an event; -1: none */
    ODE_HEAD
};

struct bl_ode {
    double *memory; /* ODE_HEAD numbers, modes, then: */
    double *scale; /* of the crossing functions */
    double *nominal;
    double *after; /* states after the last event */
    double *modes_before; /* the last tick that was an event */
    double *
        before; /* parameters and inputs as of the last event; all other values as of before the last tick that was one */
    double *kept; /* states and discrete memory, before a projection */
    bool every_tick;
    bool *hits; /* of each rate, whether its hits are events */
    bool is_varied; /* whether values are varied for derivatives */
};

static int64_t ode_memory_count(const bl_engine *e) {
    return ODE_HEAD + 3 * e->crossing_count + 2 * e->layout.states + e->layout.total;
}

static bool ode_is_eventful(const bl_engine *e, const bl_block *b) {
    for (int32_t n = 0; n < e->eventful_count; n++)
        if (e->eventful[n] == b) return true;
    return false;
}

/* Whether ticks change a block of continuous rate, after the first one. */
static bool ode_changes_at_ticks(const bl_engine *e, const bl_block *b) {
    const bl_kernel *kernel = e->kernels[b->index];
    if (!kernel->update) return false;
    if (kernel->needs_ticks) return kernel->needs_ticks(b) != 0;
    return !ode_is_eventful(e, b) || kernel->remembers;
}

static int ode_check(bl_engine *e) {
    if (e->advances.call_count > 0)
        return bl_fail(e, BL_ERROR_ARGUMENT, e->advances.calls[0].block->index,
                       "the block has an internal solver: no solver outside can integrate it");
    if (e->coupling_count > 0 || e->exchange_count > 0)
        return bl_fail(e, BL_ERROR_ARGUMENT, -1, "there is a coupling: no solver outside can integrate it");
    for (int32_t k = 0; k < e->block_count; k++)
        if (e->block_rate[k] == BL_RATE_CONTINUOUS && e->kernels[k]->remembers && !e->kernels[k]->needs_ticks)
            return bl_fail(e, BL_ERROR_ARGUMENT, k,
                           "the block follows a continuous input with memory: no solver outside can integrate it");
    return BL_OK;
}

int bl_ode_open(bl_engine *e) {
    if (e->ode) return BL_OK;
    const int status = ode_check(e);
    if (status != BL_OK) return status;
    const int64_t n = e->layout.states, m = e->crossing_count;
    bl_ode *ode = bl_allocate(e, 1, sizeof *ode);
    if (!ode) return bl_fail(e, BL_ERROR_MEMORY, -1, "no memory");
    ode->memory = bl_allocate(e, ode_memory_count(e), sizeof(double));
    ode->kept = bl_allocate(e, n + e->layout.memory, sizeof(double));
    ode->hits = bl_allocate(e, e->rate_count, sizeof(bool));
    if (!ode->memory || !ode->kept || !ode->hits) return bl_fail(e, BL_ERROR_MEMORY, -1, "no memory");
    ode->scale = ode->memory + ODE_HEAD + m;
    ode->nominal = ode->scale + m;
    ode->after = ode->nominal + n;
    ode->modes_before = ode->after + n;
    ode->before = ode->modes_before + m;
    ode->memory[ODE_HIT] = -1.0;
    for (int64_t i = 0; i < n; i++) ode->nominal[i] = 1.0;
    ode->every_tick = e->guard_count > 0;
    for (int32_t k = 0; k < e->block_count; k++) {
        const int32_t rate = e->block_rate[k];
        const bl_kernel *kernel = e->kernels[k];
        if (rate >= 2 && (kernel->output || kernel->update)) ode->hits[rate] = true;
        if (rate == BL_RATE_CONTINUOUS && ode_changes_at_ticks(e, &e->blocks[k])) ode->every_tick = true;
    }
    for (int32_t k = 0; k < e->clock_count; k++) ode->hits[e->clocks[k]] = true;
    e->ode = ode;
    return BL_OK;
}

bool bl_ode_has_started(const bl_engine *e) { return e->ode->memory[ODE_STARTED] != 0.0; }
bool bl_ode_is_at_tick(const bl_engine *e) { return e->ode->memory[ODE_PENDING] != 0.0; }
int64_t bl_ode_indicator_count(const bl_engine *e) { return e->crossing_count; }
int bl_ode_completes_steps(const bl_engine *e) { return e->projects.call_count > 0 || e->loop_count > 0; }
const double *bl_ode_states(const bl_engine *e) { return e->x; }
double bl_ode_time(const bl_engine *e) { return e->ode->memory[ODE_TIME]; }
void bl_ode_nominals(const bl_engine *e, double *nominals) {
    memcpy(nominals, e->ode->nominal, (size_t)e->layout.states * sizeof(double));
}

/* How far beside an event that is known in advance a solver may stop: tools take times that agree to nine digits for the same. */
static double ode_slack(const bl_engine *e, double time) {
    return fmin(bl_slack(e, time) + ODE_SAME_TIME * fabs(time), 0.1 * e->step);
}

static double ode_time_of(const bl_engine *e, double tick) { return e->start + tick * e->step; }

/* The first tick after `tick` that is an event. */
static double ode_next_tick(const bl_engine *e, int64_t tick) {
    if (e->ode->every_tick) return (double)(tick + 1);
    double next = INFINITY;
    for (int32_t r = 2; r < e->rate_count; r++) {
        const bl_rate *rate = &e->rates[r];
        if (!e->ode->hits[r] || rate->period < 1) continue;
        const int64_t since = tick - rate->offset, wait = since < 0 ? -since : rate->period - since % rate->period;
        next = fmin(next, (double)(tick + wait));
    }
    return next;
}

/* Puts the engine's clock at the time of the solver: after a tick, even where that is one, because nothing happens there. */
static void ode_set_clock(bl_engine *e) {
    const double time = e->ode->memory[ODE_TIME], ticks = floor((time - e->start) / e->step);
    e->tick = ticks > 0.0 ? (int64_t)fmin(ticks, ODE_LARGEST_TICK) : 0; /* a restored start may be anything */
    e->offset = fmin(fmax(time - ode_time_of(e, (double)e->tick), DBL_MIN), e->step * (1.0 - DBL_EPSILON));
}

/* Between events, and in those that are not at a tick, operations of ticks are complete. */
static void ode_set_pending(bl_engine *e, bool pending) {
    e->ode->memory[ODE_PENDING] = pending ? 1.0 : 0.0;
    e->integrates = e->ode->memory[ODE_STARTED] != 0.0 && !pending;
}

static void ode_set_tick(bl_engine *e) {
    e->tick = (int64_t)e->ode->memory[ODE_NEXT_TICK];
    e->offset = 0.0;
    e->ode->memory[ODE_TIME] = ode_time_of(e, (double)e->tick);
}

static bool ode_has_changed(const bl_engine *e) {
    return memcmp(e->ode->before, e->values, (size_t)e->layout.parameters * sizeof(double)) != 0;
}

static size_t ode_kept_size(const bl_engine *e) {
    return (size_t)(e->layout.total - e->layout.parameters) * sizeof(double);
}

/* Before the updates of a tick. */
static void ode_keep_values(bl_engine *e) {
    bl_ode *ode = e->ode;
    ode->memory[ODE_HIT] = (double)e->tick;
    memcpy(ode->before + e->layout.parameters, e->values + e->layout.parameters, ode_kept_size(e));
    if (e->crossing_count > 0) memcpy(ode->modes_before, e->mode, (size_t)e->crossing_count * sizeof(double));
}

/* Goes back to before the updates of a tick, if parameters or inputs have changed since at the same instant. With clocks, what a tick has
   sampled remains: a periodic clock is active once in an event. */
static void ode_reopen_tick(bl_engine *e) {
    bl_ode *ode = e->ode;
    double *memory = ode->memory;
    if (e->clock_count > 0 || ode->is_varied || memory[ODE_IN_EVENT] == 0.0 || memory[ODE_PENDING] != 0.0 ||
        !(memory[ODE_HIT] >= 0.0))
        return;
    const double t = memory[ODE_TIME];
    if (fabs(t - ode_time_of(e, memory[ODE_HIT])) > ode_slack(e, t) || !ode_has_changed(e) ||
        memcmp(ode->after, e->x, (size_t)e->layout.states * sizeof(double)) != 0)
        return;
    memcpy(e->values + e->layout.parameters, ode->before + e->layout.parameters, ode_kept_size(e));
    if (e->crossing_count > 0) memcpy(e->mode, ode->modes_before, (size_t)e->crossing_count * sizeof(double));
    memory[ODE_NEXT_TICK] = memory[ODE_HIT];
    ode_set_pending(e, true);
    ode_set_tick(e);
    e->minor_valid = e->outputs_valid = e->constants_valid = false;
}

int bl_ode_set_time(bl_engine *e, double time) {
    double *memory = e->ode->memory;
    if (!(fabs(time - e->start) <= ODE_LARGEST_TICK * e->step) || time < e->start - bl_slack(e, e->start))
        return bl_fail(e, BL_ERROR_ARGUMENT, -1, "t = %.12g is not within the simulation, which starts at t = %.12g",
                       time, e->start);
    /* The event of a tick is at the time of the tick. */
    if (memory[ODE_PENDING] != 0.0) {
        if (fabs(time - memory[ODE_TIME]) <= ode_slack(e, time)) return BL_OK;
        return bl_fail(e, BL_ERROR_ARGUMENT, -1, "the event at t = %.12g has not been taken: time cannot be %.12g",
                       memory[ODE_TIME], time);
    }
    if (time == memory[ODE_TIME]) return BL_OK;
    memory[ODE_TIME] = time;
    ode_set_clock(e);
    e->minor_valid = e->outputs_valid = false;
    return BL_OK;
}

void bl_ode_set_states(bl_engine *e, const double *x) {
    memcpy(e->x, x, (size_t)e->layout.states * sizeof(double));
    e->minor_valid = e->outputs_valid = false;
}

/* Signals that derivatives and crossing functions depend on. */
static int ode_evaluate_minor(bl_engine *e) {
    ode_reopen_tick(e);
    if (e->ode->memory[ODE_PENDING] != 0.0 || !e->constants_valid) return bl_ode_outputs(e);
    if (e->minor_valid) return BL_OK;
    const int status = bl_evaluate_minor(e, e->ode->memory[ODE_TIME]);
    e->minor_valid = status == BL_OK;
    return status;
}

int bl_ode_outputs(bl_engine *e) {
    if (e->outputs_valid) return BL_OK;
    ode_reopen_tick(e);
    const double t = e->ode->memory[ODE_TIME];
    int status = e->parameters_valid ? BL_OK : bl_check_parameters(e, t);
    if (status != BL_OK) return status;
    if (e->ode->memory[ODE_PENDING] != 0.0) {
        if (!e->frozen) e->decision = BL_DECIDE;
        status = bl_outputs(e);
        e->decision = BL_KEEP;
    } else {
        status = bl_evaluate_held(e, t);
        e->outputs_valid = status == BL_OK;
    }
    if (status == BL_OK) e->minor_valid = e->constants_valid = true;
    return status;
}

static bool ode_all_finite(const double *values, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i])) return false;
    return true;
}

static int ode_evaluate_derivatives(bl_engine *e) {
    int status = ode_evaluate_minor(e);
    if (status == BL_OK) status = bl_evaluate_derivatives(e, e->ode->memory[ODE_TIME]);
    if (status == BL_OK && !ode_all_finite(e->dx, e->layout.states))
        return bl_fail(e, BL_ERROR_NOT_FINITE, -1, "a derivative is not finite at t = %.9g", e->ode->memory[ODE_TIME]);
    return status;
}

int bl_ode_derivatives(bl_engine *e, double *dx) {
    const int status = ode_evaluate_derivatives(e);
    if (status == BL_OK) memcpy(dx, e->dx, (size_t)e->layout.states * sizeof(double));
    return status;
}

/* Before the start, and where the engine runs by itself, modes are decided by the outputs. */
static int ode_evaluate_crossings(bl_engine *e) {
    const bool started = e->ode->memory[ODE_STARTED] != 0.0;
    const double t = started ? e->ode->memory[ODE_TIME] : bl_time(e);
    int status = started ? ode_evaluate_minor(e) : bl_outputs(e);
    if (status == BL_OK) status = bl_run_apart(e, t);
    bl_clear_inactive(e);
    for (int64_t k = 0; k < e->crossing_count && status == BL_OK; k++)
        if (isnan(e->crossing[k]))
            status = bl_fail(e, BL_ERROR_NOT_FINITE, -1, "a crossing function is not finite at t = %.9g", t);
    return status;
}

int bl_ode_indicators(bl_engine *e, double *indicators) {
    const int status = ode_evaluate_crossings(e);
    for (int64_t k = 0; k < e->crossing_count && status == BL_OK; k++) {
        const double shift = fmax(ODE_HYSTERESIS * e->ode->scale[k], ODE_LEAST);
        indicators[k] = fmax(fmin(e->crossing[k] + shift, ODE_LARGEST), -ODE_LARGEST);
    }
    return status;
}

void bl_ode_forget(bl_engine *e) {
    memset(e->ode->memory, 0, (size_t)(ODE_HEAD + 2 * e->crossing_count) * sizeof(double));
    e->ode->memory[ODE_HIT] = -1.0;
    ode_set_pending(e, false);
    e->decision = BL_DECIDE;
}

int bl_ode_start(bl_engine *e) {
    bl_ode *ode = e->ode;
    bl_ode_forget(e);
    e->decision = BL_KEEP;
    ode->memory[ODE_TIME] = e->start;
    ode->memory[ODE_NEXT_TIME] = INFINITY;
    ode->memory[ODE_IN_EVENT] = ode->memory[ODE_STARTED] = 1.0;
    ode_set_pending(e, true);
    for (int64_t i = 0; i < e->layout.states; i++)
        ode->nominal[i] = fabs(e->x[i]) > ODE_LEAST_NOMINAL && isfinite(e->x[i]) ? fabs(e->x[i]) : 1.0;
    return BL_OK;
}

/* An event that is known in advance must not be passed: what happens there would be missing from then on. */
static int ode_check_passed(bl_engine *e) {
    const double *memory = e->ode->memory;
    if (memory[ODE_TIME] <= memory[ODE_NEXT_TIME] + ode_slack(e, memory[ODE_TIME])) return BL_OK;
    return bl_fail(e, BL_ERROR_ARGUMENT, -1, "the step to t = %.12g passes the event at t = %.12g, where it has to end",
                   memory[ODE_TIME], memory[ODE_NEXT_TIME]);
}

int bl_ode_complete_step(bl_engine *e, double drift, int *needs_event) {
    const bl_ode *ode = e->ode;
    const size_t size = (size_t)(e->layout.states + e->layout.memory) * sizeof(double);
    *needs_event = 0;
    int status = ode_check_passed(e);
    if (status == BL_OK) status = ode_evaluate_minor(e);
    if (status != BL_OK) return status;
    bl_keep_loops(e);
    if (e->projects.call_count == 0) return BL_OK;
    memcpy(ode->kept, e->x, size);
    status = bl_project(e, ode->memory[ODE_TIME]);
    for (int64_t i = 0; i < e->layout.states && status == BL_OK; i++) {
        const double scale = fmax(ode->nominal[i], fabs(ode->kept[i]));
        if (!(fabs(e->x[i] - ode->kept[i]) <= drift * scale)) *needs_event = 1;
    }
    /* States change in an event only: then projection is repeated there, else what it has noted is kept. */
    memcpy(e->x, ode->kept, *needs_event || status != BL_OK ? size : (size_t)e->layout.states * sizeof(double));
    e->minor_valid = e->outputs_valid = false;
    return status;
}

int bl_ode_enter_event(bl_engine *e) {
    double *memory = e->ode->memory;
    if (memory[ODE_IN_EVENT] != 0.0) return BL_OK;
    int status = ode_check_passed(e);
    if (status != BL_OK) return status;
    if (fabs(memory[ODE_TIME] - ode_time_of(e, memory[ODE_NEXT_TICK])) <= ode_slack(e, memory[ODE_TIME])) {
        ode_set_pending(e, true);
        ode_set_tick(e);
        e->minor_valid = e->outputs_valid = false;
    } else {
        status = ode_evaluate_minor(e);
        if (status == BL_OK) status = bl_settle_blocks(e, memory[ODE_TIME]);
    }
    memory[ODE_IN_EVENT] = 1.0;
    return status;
}

static int ode_commit_tick(bl_engine *e) {
    double *memory = e->ode->memory;
    ode_set_tick(e);
    const double t = memory[ODE_TIME];
    ode_keep_values(e);
    int status = e->tick > 0 ? bl_project(e, t) : BL_OK;
    e->outputs_valid = false;
    if (status == BL_OK) status = bl_ode_outputs(e);
    if (status == BL_OK) status = bl_commit_hits(e, t);
    if (status != BL_OK) return status;
    bl_keep_loops(e);
    ode_set_pending(e, false);
    memory[ODE_NEXT_TICK] = ode_next_tick(e, e->tick);
    return BL_OK;
}

/* The next tick is an event if it changes a block. */
static void ode_await_tick(bl_engine *e, double t) {
    for (int32_t k = 0; k < e->block_count; k++) {
        const bl_kernel *kernel = e->kernels[k];
        if (e->block_rate[k] != BL_RATE_CONTINUOUS || !kernel->needs_next_tick || !bl_active(e, e->block_guard[k]))
            continue;
        if (kernel->needs_next_tick(&e->blocks[k], t))
            e->ode->memory[ODE_NEXT_TICK] = fmin(e->ode->memory[ODE_NEXT_TICK], (double)(e->tick + 1));
    }
}

/* After the updates of a tick, as in the engine's own run: the modes are those of its outputs, and there is an event only where a crossing
   function is beyond its border. Its importing tool would not see that one change its sign. */
static int ode_decide_after_tick(bl_engine *e, double t) {
    e->decision = BL_DECIDE;
    int status = bl_run_apart(e, t);
    bl_clear_inactive(e);
    e->decision = BL_KEEP;
    e->minor_valid = e->outputs_valid = false;
    if (status == BL_OK) status = ode_evaluate_crossings(e);
    for (int64_t k = 0; k < e->crossing_count && status == BL_OK; k++)
        if (e->crossing[k] < 0.0) return bl_decide_modes(e, t);
    return status;
}

int bl_ode_event(bl_engine *e, bl_ode_outcome *outcome) {
    double *memory = e->ode->memory;
    memcpy(e->ode->kept, e->x, (size_t)e->layout.states * sizeof(double));
    ode_reopen_tick(e);
    const bool is_tick = memory[ODE_PENDING] != 0.0;
    int status = is_tick ? BL_OK : ode_check_passed(e);
    /* Modes are decided with the constants of parameters that have changed. */
    if (status == BL_OK && !is_tick && !e->constants_valid) status = bl_ode_outputs(e);
    if (status == BL_OK) status = is_tick ? ode_commit_tick(e) : bl_project(e, memory[ODE_TIME]);
    outcome->ended = status == BL_STOP;
    if (status == BL_STOP) status = BL_OK;
    const double t = memory[ODE_TIME], slack = BL_GRID_TOLERANCE * e->step;
    memcpy(e->ode->before, e->values, (size_t)e->layout.parameters * sizeof(double));
    if (status == BL_OK && !outcome->ended) status = is_tick ? ode_decide_after_tick(e, t) : bl_decide_modes(e, t);
    e->decision = BL_KEEP;
    e->minor_valid = e->outputs_valid = false;
    if (!outcome->ended && is_tick) ode_set_clock(e);
    if (status == BL_OK && !outcome->ended && !e->ode->every_tick) ode_await_tick(e, t);
    bl_find_instant(e, t + slack);
    memory[ODE_NEXT_TIME] = fmin(e->instant, ode_time_of(e, memory[ODE_NEXT_TICK]));
    outcome->next_time = memory[ODE_NEXT_TIME];
    outcome->states_changed = memcmp(e->ode->kept, e->x, (size_t)e->layout.states * sizeof(double)) != 0;
    memcpy(e->ode->after, e->x, (size_t)e->layout.states * sizeof(double));
    return status;
}

/* The event with the parameters and inputs that were set after it was taken. The tool is not told of new states and times here. */
static int ode_take_changes(bl_engine *e) {
    const double next_time = e->ode->memory[ODE_NEXT_TIME];
    bl_ode_outcome outcome;
    const int status = bl_ode_event(e, &outcome);
    if (status == BL_OK && (outcome.ended || outcome.states_changed || outcome.next_time < next_time))
        return bl_fail(
            e, BL_ERROR_ARGUMENT, -1,
            "parameters or inputs that were set after the event at t = %.12g was taken change %s: update the "
            "discrete states again",
            e->ode->memory[ODE_TIME],
            outcome.ended            ? "the end of the simulation"
            : outcome.states_changed ? "states"
                                     : "the time of the next event");
    return status;
}

int bl_ode_continue(bl_engine *e) {
    double *memory = e->ode->memory, *scale = e->ode->scale;
    const bool is_pending = memory[ODE_PENDING] != 0.0;
    if (is_pending && memory[ODE_NEXT_TICK] != memory[ODE_HIT])
        return bl_fail(e, BL_ERROR_ARGUMENT, -1, "the event at t = %.12g has not been taken", memory[ODE_TIME]);
    int status = is_pending || ode_has_changed(e) ? ode_take_changes(e) : BL_OK;
    if (status == BL_OK) status = ode_evaluate_crossings(e);
    if (status != BL_OK) return status;
    for (int64_t k = 0; k < e->crossing_count; k++)
        if (isfinite(e->crossing[k])) scale[k] = fmax(scale[k], fabs(e->crossing[k]));
    memory[ODE_IN_EVENT] = 0.0;
    return BL_OK;
}

static int ode_evaluate_all(bl_engine *e) {
    e->minor_valid = e->outputs_valid = false;
    const int status = bl_ode_outputs(e);
    return status == BL_OK ? ode_evaluate_derivatives(e) : status;
}

int bl_ode_directional(bl_engine *e, const int64_t *knowns, const double *seeds, int64_t known_count,
                       const int64_t *unknowns, int64_t unknown_count, double *out) {
    int status = ode_evaluate_all(e);
    const bool pending = e->ode->memory[ODE_PENDING] != 0.0;
    /* Of an event at a tick, the outputs have decided the modes. */
    e->frozen = pending;
    e->ode->is_varied = true;
    if (status == BL_OK)
        status = bl_differentiate_values(e, ode_evaluate_all, knowns, seeds, known_count, unknowns, unknown_count, out);
    e->frozen = false;
    e->ode->is_varied = false;
    e->minor_valid = e->outputs_valid = false;
    return status;
}

static size_t ode_memory_size(const bl_engine *e) { return (size_t)ode_memory_count(e) * sizeof(double); }

/* The modes of blocks are among what is saved, and blocks find places in tables by them: a state that was damaged is rejected. */
size_t bl_ode_state_size(const bl_engine *e) { return sizeof(uint64_t) + ode_memory_size(e); }

void bl_ode_save(const bl_engine *e, void *state) {
    const size_t size = ode_memory_size(e);
    char *to = (char *)state + sizeof(uint64_t);
    memcpy(to, e->ode->memory, size);
    if (e->crossing_count > 0)
        memcpy(to + ODE_HEAD * sizeof(double), e->mode, (size_t)e->crossing_count * sizeof(double));
    const uint64_t hash = bl_hash(to, size);
    memcpy(state, &hash, sizeof hash);
}

int bl_ode_check_state(bl_engine *e, const void *state) {
    uint64_t hash = 0;
    memcpy(&hash, state, sizeof hash);
    if (hash == bl_hash((const char *)state + sizeof hash, ode_memory_size(e))) return BL_OK;
    return bl_fail(e, BL_ERROR_STATE, -1, "the saved state is damaged");
}

int bl_ode_restore(bl_engine *e, const void *state) {
    const int status = bl_ode_check_state(e, state);
    if (status != BL_OK) return status;
    memcpy(e->ode->memory, (const char *)state + sizeof(uint64_t), ode_memory_size(e));
    if (e->crossing_count > 0) memcpy(e->mode, e->ode->memory + ODE_HEAD, (size_t)e->crossing_count * sizeof(double));
    e->decision = BL_DECIDE;
    ode_set_pending(e, e->ode->memory[ODE_PENDING] != 0.0);
    if (e->ode->memory[ODE_STARTED] == 0.0) return BL_OK;
    if (e->ode->memory[ODE_PENDING] != 0.0) ode_set_tick(e);
    else ode_set_clock(e);
    e->decision = BL_KEEP;
    return BL_OK;
}
