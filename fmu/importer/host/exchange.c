/* An FMU for model exchange as a continuous block of our engine: its states are integrated by the solver of the diagram.
 *
 *   init              an instance is made, parameters are set, it enters initialization mode
 *   output            the time, the states and the inputs with direct feedthrough are set, outputs are read
 *   exit_initialization   the end of initialization mode, the first iteration of discrete states; then the states are known
 *   derivative, crossings   the same with all continuous inputs; derivatives of states, event indicators
 *   settle            the inputs before an event are noted, so that those that jump there are recognized
 *   event, tick_event event mode, if there is a reason for it: discrete inputs and tunable parameters are set, discrete states are
 *                     iterated until the FMU needs no more, states that have changed are read back
 *   next_instant      the time of the FMU's next time event
 *   project           CompletedIntegratorStep, of FMUs that need it: once for each accepted step
 *   save, restore     what it notes there is rolled back with a step that a coupling repeats
 *
 * An FMU changes nothing but what it is given, except in event mode. So outputs, derivatives and indicators may be evaluated anywhere in a
 * step, in any order. Time, states and inputs are set only where they differ from those that the FMU has.
 *
 * An event indicator separates the domains z > 0 and z <= 0. The FMU computes with the domains that its last event has left, and z has
 * these domains: a crossing function of the engine is the indicator, or its negative in the domain z <= 0.
 *
 * Several FMUs that are connected to each other have their events one after the other at the same instant: where one has changed its
 * outputs, the inputs of others jump, which is a reason for an event there, until nothing changes (scheduler/engine/events/events.c). */
#include "fmu/importer/host/exchange.h"
#include "fmu/importer/host/clocks.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/engine/engine.h"

enum { LARGEST_ITERATIONS = 1000, LARGEST_REPETITIONS = 100 };
/* An input that is not declared discrete, and comes from a continuous block, jumps where it changes by more at one instant. */
static const double EXCHANGE_JUMP = 1e-10;

/* The memory of a block: the time of the next time event, whether CompletedIntegratorStep has requested an event, the time of the last event,
   how many there were at that time, when the inputs were noted, and the end of the last completed step; then for each indicator whether it was positive after the last event; then
   the inputs that were noted: at the last event, or where there might have been one; then the tunable parameters that the FMU has; then the
   nominal values of the states. */
enum {
    EXCHANGE_NEXT,
    EXCHANGE_REQUESTED,
    EXCHANGE_LAST,
    EXCHANGE_REPEATED,
    EXCHANGE_NOTED,
    EXCHANGE_COMPLETED,
    EXCHANGE_MEMORY
};

typedef enum { NO_CAUSE, CAUSE_STEP, CAUSE_TIME, CAUSE_PARAMETER, CAUSE_INPUT, CAUSE_INDICATOR } bl_exchange_cause;

#define EXCHANGE_CALL(f, name, ...) bl_fmu_leave_call(f, (f)->exchange->call.name((f)->component, __VA_ARGS__))
#define EXCHANGE_ENTER(f, name) bl_fmu_leave_call(f, (f)->exchange->call.name((f)->component))

static int32_t exchange_indicators(const bl_block *b) { return b->i[HOST_INDICATORS]; }

static int32_t count_inputs(const bl_block *b) {
    int32_t count = 0;
    for (int32_t p = 0; p < b->u_count; p++) count += b->u_width[p];
    return count;
}

static double *noted_inputs(const bl_block *b) { return b->z + EXCHANGE_MEMORY + exchange_indicators(b); }
static double *noted_parameters(const bl_block *b) { return noted_inputs(b) + count_inputs(b); }
static double *nominal_states(const bl_block *b) { return noted_parameters(b) + b->i[HOST_TUNABLE]; }
static size_t parameters_size(const bl_block *b) { return (size_t)b->i[HOST_TUNABLE] * sizeof(double); }

static int check_exchange(const bl_block *b, int32_t type_count) {
    const int32_t forbidden = HOST_HAS_EVENTS | HOST_CAN_INTERPOLATE;
    return bl_fmu_check(b, type_count, true) && !(b->i[HOST_FLAGS] & forbidden) && b->i[HOST_SUBSTEPS] == 1 &&
           b->i[HOST_INDICATORS] >= 0;
}
static int exchange_check_fmi2(const bl_block *b) {
    return check_exchange(b, HOST_FMI2_TYPES) && !(b->i[HOST_FLAGS] & HOST_IS_CONFIGURED);
}
static int exchange_check_fmi3(const bl_block *b) { return check_exchange(b, HOST_TYPES); }
static bl_sizes exchange_sizes(const bl_block *b) {
    return (bl_sizes){.memory = (int64_t)EXCHANGE_MEMORY + exchange_indicators(b) + count_inputs(b) +
                                b->i[HOST_TUNABLE] + b->x_count};
}

/* ---- making and starting */

/* Whether the values at a place are computed by a continuous block, so that they may change between ticks. */
static bool is_made_continuously(const bl_engine *e, const double *place) {
    for (int32_t k = 0; k < e->block_count; k++)
        for (int32_t i = 0; i < e->blocks[k].y_count; i++)
            if (place >= e->blocks[k].y[i] && place < e->blocks[k].y[i] + e->blocks[k].y_width[i])
                return e->block_rate[k] == BL_RATE_CONTINUOUS;
    return false;
}

bl_fmu_exchange *bl_exchange_new(const bl_engine *e, const bl_block *b) {
    const int32_t inputs = count_inputs(b), indicators = exchange_indicators(b);
    const size_t numbers = (size_t)b->x_count + (size_t)indicators;
    bl_fmu_exchange *m = calloc(1, sizeof *m + numbers * sizeof(double) + (size_t)inputs * sizeof(bl_exchange_input));
    if (!m) return NULL;
    m->version = strncmp(e->kernels[b->index]->name, "fmu3", 4) == 0 ? 3 : 2;
    m->state_count = b->x_count;
    m->indicator_count = indicators;
    m->input_count = inputs;
    m->x = (double *)(m + 1);
    m->indicators = m->x + b->x_count;
    m->kinds = (bl_exchange_input *)(m->indicators + indicators);
    const int32_t *record = bl_fmu_input_records(b);
    bl_exchange_input *kind = m->kinds;
    for (int32_t p = 0; p < b->u_count; p++) {
        const bool moves = is_made_continuously(e, b->u[p]);
        for (int32_t k = 0; k < b->u_width[p]; k++, record += HOST_INPUT_FIELDS)
            *kind++ = record[1] & HOST_CLOCKED    ? EXCHANGE_CLOCKED
                      : record[1] & HOST_DISCRETE ? EXCHANGE_DISCRETE
                      : moves                     ? EXCHANGE_MOVES
                                                  : EXCHANGE_HELD;
    }
    return m;
}

static int exchange_init(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    const bool is_remote = f && f->remote;
    const int status = is_remote ? BL_OK : bl_fmu_init(b, t);
    if (status != BL_OK) return status;
    if (is_remote) f->mode = HOST_INITIALIZING;
    memset(b->x, 0, (size_t)b->x_count * sizeof *b->x);
    memset(b->z, 0, (size_t)b->z_count * sizeof *b->z);
    b->z[EXCHANGE_NEXT] = INFINITY;
    b->z[EXCHANGE_LAST] = b->z[EXCHANGE_NOTED] = -INFINITY;
    b->z[EXCHANGE_COMPLETED] = t;
    return is_remote ? bl_exchange_remote(b, f, BL_OP_INIT, t, NULL) : BL_OK;
}

/* ---- continuous-time mode */

/* Sets inputs that differ from those that the FMU has: continuous ones, or those that need event mode. */
static int put_inputs(const bl_block *b, bl_fmu_host *f, bl_fmu_values *values, int discrete, double t) {
    int status = BL_OK;
    for (bl_fmu_group *g = values->groups, *end = g + values->group_count; g != end && status == BL_OK; g++)
        if (g->is_discrete == discrete) status = bl_fmu_set_group(b, f, g, t);
    return status;
}

/* A discarded call leaves no values, and the reason; a shorter step may do without it. */
static int note_discard(bl_fmu_host *f, bl_fmi_status status, const char *function, double t) {
    const int outcome = bl_host_status(f, status, function, t);
    if (status == FMI_DISCARD) bl_exchange_forget(f->exchange);
    return outcome;
}

/* Sets the time and the states. */
static int set_point(const bl_block *b, bl_fmu_host *f, double t) {
    bl_fmu_exchange *m = f->exchange;
    const size_t count = (size_t)m->state_count;
    if (!m->has_time || m->time != t) {
        const bl_fmi_status status = EXCHANGE_CALL(f, SetTime, t);
        if (status > FMI_WARNING) return note_discard(f, status, "SetTime", t);
        m->time = f->time = t;
        m->has_time = true;
    }
    if (count > 0 && !(m->has_states && memcmp(m->x, b->x, count * sizeof *m->x) == 0)) {
        const bl_fmi_status status = EXCHANGE_CALL(f, SetContinuousStates, b->x, count);
        if (status > FMI_WARNING) return note_discard(f, status, "SetContinuousStates", t);
        memcpy(m->x, b->x, count * sizeof *m->x);
        m->has_states = true;
    }
    return BL_OK;
}

static int set_everything(const bl_block *b, bl_fmu_host *f, double t) {
    int status = set_point(b, f, t);
    if (status == BL_OK) status = put_inputs(b, f, &f->direct, 0, t);
    if (status == BL_OK) status = put_inputs(b, f, &f->delayed, 0, t);
    return status;
}

/* Whether an operation failed only because the FMU discarded a value: then it may go on with another one, but these are not finite. */
static int replace_discarded(const bl_fmu_host *f, int status, double *values, int32_t count) {
    if (status == BL_OK || f->exchange->has_time || !bl_fmu_is_running(f)) return status;
    for (int32_t k = 0; k < count; k++) values[k] = NAN;
    return BL_OK;
}

static int read_outputs(bl_block *b, bl_fmu_host *f, double t) {
    int status = BL_OK;
    if (f->mode == HOST_INITIALIZING) {
        status = bl_fmu_tune(b, f, t);
        if (status == BL_OK) status = bl_fmu_set_values(b, f, &f->direct, t);
    } else if (!f->ended) { /* after that nothing may be set */
        status = set_point(b, f, t);
        if (status == BL_OK) status = put_inputs(b, f, &f->direct, 0, t);
    }
    return status == BL_OK ? bl_fmu_get_outputs(f, t) : status;
}

static int exchange_output(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    if (!bl_fmu_is_running(f)) return BL_ERROR_BLOCK;
    if (f->remote) return bl_exchange_remote(b, f, BL_OP_OUTPUT, t, NULL);
    bl_host_enter(f);
    int status = bl_host_leave(f, read_outputs(b, f, t));
    if (status != BL_OK && f->mode != HOST_INITIALIZING)
        for (int32_t p = 0; p < b->y_count; p++) status = replace_discarded(f, status, b->y[p], b->y_width[p]);
    return status;
}

static int exchange_directional_derivative(bl_block *b, double t) {
    const bl_fmu_host *f = b->external;
    return f && f->remote ? exchange_output(b, t) : bl_fmu_derive(b, t, exchange_output);
}

static int exchange_derivative(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    if (!bl_fmu_is_running(f)) return BL_ERROR_BLOCK;
    if (f->remote) return bl_exchange_remote(b, f, BL_OP_DERIVATIVE, t, b->dx);
    if (f->ended) return bl_fmu_end_run(f, t);
    bl_host_enter(f);
    int status = set_everything(b, f, t);
    if (status == BL_OK) {
        const bl_fmi_status answer = EXCHANGE_CALL(f, GetDerivatives, b->dx, (size_t)b->x_count);
        if (answer > FMI_WARNING) status = note_discard(f, answer, "GetDerivatives", t);
        else f->reason[0] = '\0';
    }
    return bl_host_leave(f, replace_discarded(f, status, b->dx, b->x_count));
}

static int read_indicators(const bl_block *b, bl_fmu_host *f, double t) {
    bl_fmu_exchange *m = f->exchange;
    int status = set_everything(b, f, t);
    if (status != BL_OK || m->indicator_count == 0) return status;
    const bl_fmi_status answer = EXCHANGE_CALL(f, GetEventIndicators, m->indicators, (size_t)m->indicator_count);
    return answer > FMI_WARNING ? note_discard(f, answer, "GetEventIndicators", t) : BL_OK;
}

static int32_t exchange_crossing_count(const bl_block *b) { return exchange_indicators(b); }

static int exchange_crossings(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    if (!bl_fmu_is_running(f)) return BL_ERROR_BLOCK;
    if (!b->modes.mode) return BL_OK;
    if (f->ended) {
        for (int32_t k = 0; k < b->crossing_count; k++) b->modes.crossing[k] = 1.0;
        return BL_OK;
    }
    if (f->remote) return bl_exchange_remote(b, f, BL_OP_CROSSINGS, t, b->modes.crossing);
    bl_host_enter(f);
    int status = bl_host_leave(f, read_indicators(b, f, t));
    const double *positive = b->z + EXCHANGE_MEMORY;
    if (status == BL_OK)
        for (int32_t k = 0; k < b->crossing_count; k++)
            b->modes.crossing[k] = positive[k] != 0.0 ? f->exchange->indicators[k] : -f->exchange->indicators[k];
    return replace_discarded(f, status, b->modes.crossing, b->crossing_count);
}

/* ---- events */

static void note_inputs(const bl_block *b, double t) {
    double *to = noted_inputs(b);
    for (int32_t p = 0; p < b->u_count; to += b->u_width[p], p++)
        memcpy(to, b->u[p], (size_t)b->u_width[p] * sizeof *to);
    b->z[EXCHANGE_NOTED] = t;
}

static bool inputs_jump(const bl_block *b, const bl_fmu_exchange *m, double t) {
    const double *noted = noted_inputs(b);
    const bl_exchange_input *kind = m->kinds;
    const bool at_once = t == b->z[EXCHANGE_NOTED];
    for (int32_t p = 0; p < b->u_count; p++)
        for (int32_t k = 0; k < b->u_width[p]; k++, noted++, kind++) {
            const double now = b->u[p][k];
            if (now == *noted || *kind == EXCHANGE_CLOCKED || (*kind == EXCHANGE_MOVES && !at_once)) continue;
            if (*kind != EXCHANGE_MOVES ||
                fabs(now - *noted) > EXCHANGE_JUMP * fmax(1.0, fmax(fabs(now), fabs(*noted))))
                return true;
        }
    return false;
}

static int find_cause(const bl_block *b, bl_fmu_host *f, double t, bl_exchange_cause *cause) {
    const bl_fmu_exchange *m = f->exchange;
    *cause = NO_CAUSE;
    if (b->z[EXCHANGE_REQUESTED] != 0.0) *cause = CAUSE_STEP;
    else if (b->z[EXCHANGE_NEXT] <= t + bl_slack(b->engine, t)) *cause = CAUSE_TIME;
    else if (memcmp(noted_parameters(b), b->p, parameters_size(b)) != 0) *cause = CAUSE_PARAMETER;
    else if (inputs_jump(b, m, t)) *cause = CAUSE_INPUT;
    if (*cause != NO_CAUSE || m->indicator_count == 0) return BL_OK;
    const int status = read_indicators(b, f, t);
    for (int32_t k = 0; k < m->indicator_count && status == BL_OK; k++)
        if ((m->indicators[k] > 0.0) != (b->z[EXCHANGE_MEMORY + k] != 0.0)) *cause = CAUSE_INDICATOR;
    return status;
}

/* In FMI 2.0 and 3.0 a nominal value is 1 if the FMU knows none; one without the function, or that discards the call, knows none. */
static int read_nominals(const bl_block *b, bl_fmu_host *f, double t) {
    if (!f->exchange->call.GetNominalsOfContinuousStates || b->x_count == 0) return BL_OK;
    const bl_fmi_status status = EXCHANGE_CALL(f, GetNominalsOfContinuousStates, nominal_states(b), (size_t)b->x_count);
    if (status == FMI_DISCARD)
        for (int32_t k = 0; k < b->x_count; k++) nominal_states(b)[k] = 1.0;
    return status == FMI_DISCARD ? BL_OK : bl_host_status(f, status, "GetNominalsOfContinuousStates", t);
}

/* Iterates the discrete states of an FMU in event mode, and leaves that, unless the FMU ends the run. `starts`: the nominal values of its
   states are not known yet. */
static int iterate_states(bl_block *b, bl_fmu_host *f, double t, bool starts) {
    bl_fmu_exchange *m = f->exchange;
    const char *name = m->version == 3 ? "UpdateDiscreteStates" : "NewDiscreteStates";
    bl_exchange_update update = {.again = true};
    bool states_changed = false, nominals_changed = starts;
    int status = BL_OK;
    for (int k = 0; status == BL_OK && (update.again || bl_clocks_due(f, t)) && !f->ended; k++) {
        if (k == LARGEST_ITERATIONS)
            return bl_fmu_error(f,
                                "its event iteration at t = %.9g does not end: %s%s has requested another one %d times",
                                t, f->fmi->prefix, name, k);
        if (f->clocks) status = bl_clocks_activate(f, t);
        if (status == BL_OK && f->clocks) status = bl_clocks_exchange(b, f, t, !m->at_tick);
        if (m->at_tick) m->ticking |= bl_clocks_ticking(f->clocks);
        if (status == BL_OK) status = bl_host_status(f, bl_exchange_update_states(f, &update), name, t);
        if (status == BL_OK && f->clocks) status = bl_clocks_update(f, t);
        states_changed |= update.states_changed;
        nominals_changed |= update.nominals_changed;
        f->ended = update.ends;
    }
    if (status != BL_OK) return status;
    if (update.has_next && isnan(update.next))
        return bl_fmu_error(f, "%s%s returned nextEventTime = NaN at t = %.9g", f->fmi->prefix, name, t);
    b->z[EXCHANGE_NEXT] = fmin(update.has_next ? update.next : INFINITY, bl_clocks_next(f));
    bl_forget_instants(b);
    if (f->ended) return BL_OK;
    status = bl_host_status(f, EXCHANGE_ENTER(f, EnterContinuousTimeMode), "EnterContinuousTimeMode", t);
    if (status == BL_OK && m->state_count > 0 && (states_changed || !m->has_states)) {
        status = bl_host_status(f, EXCHANGE_CALL(f, GetContinuousStates, b->x, (size_t)b->x_count),
                                "GetContinuousStates", t);
        memcpy(m->x, b->x, (size_t)b->x_count * sizeof *m->x);
        m->has_states = status == BL_OK;
    }
    if (status == BL_OK && nominals_changed) status = read_nominals(b, f, t);
    if (status == BL_OK) f->mode = HOST_STEPPING;
    return status;
}

static void note_domains(const bl_block *b, const bl_fmu_exchange *m) {
    for (int32_t k = 0; k < m->indicator_count; k++) b->z[EXCHANGE_MEMORY + k] = m->indicators[k] > 0.0 ? 1.0 : 0.0;
}

static const char *cause_text(bl_exchange_cause cause) {
    switch (cause) {
        case CAUSE_STEP: return "it requests an event after every step";
        case CAUSE_TIME: return "its next event time is not after this one";
        case CAUSE_INDICATOR: return "an event indicator changes its sign again";
        default: return "its inputs change again: events of connected blocks trigger each other";
    }
}

/* Counts the events at one time. */
static int count_event(bl_block *b, bl_fmu_host *f, double t, bl_exchange_cause cause) {
    double *z = b->z;
    z[EXCHANGE_REPEATED] = z[EXCHANGE_LAST] == t ? z[EXCHANGE_REPEATED] + 1.0 : 1.0;
    z[EXCHANGE_LAST] = t;
    if (z[EXCHANGE_REPEATED] < LARGEST_REPETITIONS) return BL_OK;
    const char *more = cause == CAUSE_TIME ? ", but" : "";
    char next[40] = "";
    if (cause == CAUSE_TIME) snprintf(next, sizeof next, " %.9g", z[EXCHANGE_NEXT]);
    return bl_fmu_error(f, "its events at t = %.9g do not end, after %d of them: %s%s%s", t, LARGEST_REPETITIONS,
                        cause_text(cause), more, next);
}

static int handle_event(bl_block *b, bl_fmu_host *f, double t, bl_exchange_cause cause) {
    bl_fmu_exchange *m = f->exchange;
    /* A time event happens at exactly its time, of which the end of a step is a rounding. */
    const double next = b->z[EXCHANGE_NEXT], now = fabs(next - t) <= bl_slack(b->engine, t) && next > t ? next : t;
    int status = count_event(b, f, t, cause);
    if (status == BL_OK) status = set_everything(b, f, now);
    if (status == BL_OK) status = bl_host_status(f, EXCHANGE_ENTER(f, EnterEventMode), "EnterEventMode", t);
    if (status != BL_OK) return status;
    f->mode = HOST_EVENTS;
    f->event_count++;
    b->z[EXCHANGE_REQUESTED] = 0.0;
    status = put_inputs(b, f, &f->direct, 1, t);
    if (status == BL_OK) status = put_inputs(b, f, &f->delayed, 1, t);
    if (status == BL_OK) status = bl_fmu_tune(b, f, t);
    if (status == BL_OK) status = iterate_states(b, f, t, false);
    note_inputs(b, t);
    memcpy(noted_parameters(b), b->p, parameters_size(b));
    if (status != BL_OK || f->ended) return status;
    status = read_indicators(b, f, t);
    if (status == BL_OK) note_domains(b, m);
    return status;
}

/* An FMU that failed at an event may be in any mode: nothing of it is called any more but what frees it. */
static int end_after_error(bl_fmu_host *f, int status) {
    if (status < BL_OK && f->mode != HOST_DEAD) f->mode = HOST_BROKEN;
    return status;
}

static int pass_event_on(bl_block *b, bl_fmu_host *f, bl_op op, double t) {
    const int status = bl_exchange_remote(b, f, op, t, NULL);
    bl_forget_instants(b);
    return status;
}

static int exchange_event(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    if (!bl_fmu_is_running(f)) return BL_ERROR_BLOCK;
    if (b->z[EXCHANGE_NOTED] == -INFINITY || f->ended) return BL_UNCHANGED;
    if (f->remote) return pass_event_on(b, f, BL_OP_EVENT, t);
    bl_exchange_cause cause = NO_CAUSE;
    bl_host_enter(f);
    int status = find_cause(b, f, t, &cause);
    if (status == BL_OK && cause == NO_CAUSE) {
        note_inputs(b, t);
        status = BL_UNCHANGED;
    } else if (status == BL_OK && f->lender && !(f->flags & HOST_CAN_SAVE)) {
        return bl_host_leave(f, bl_fmu_error(f, "an event cannot be taken back"));
    } else if (status == BL_OK) {
        status = handle_event(b, f, t, cause);
    }
    return bl_host_leave(f, end_after_error(f, status));
}

static int exchange_tick_event(bl_block *b, double t) {
    const bl_fmu_host *f = b->external;
    if (f) f->exchange->at_tick = true;
    const int status = exchange_event(b, t);
    if (f) f->exchange->at_tick = false;
    return status;
}

static int exchange_settle(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    if (!bl_fmu_is_running(f)) return BL_ERROR_BLOCK;
    /* What has changed since the last event is not lost: an input that is held or discrete changes with ticks and events only. */
    if (!inputs_jump(b, f->exchange, NAN)) note_inputs(b, t);
    return BL_OK;
}

static int begin_exchange(bl_block *b, bl_fmu_host *f, double t) {
    bl_fmu_exchange *m = f->exchange;
    int status = bl_fmu_tune(b, f, t);
    if (status == BL_OK) status = bl_fmu_set_values(b, f, &f->direct, t);
    if (status == BL_OK) status = bl_fmu_set_values(b, f, &f->delayed, t);
    if (status == BL_OK) status = f->fmi->exit_initialization(b, f, t);
    if (status == BL_OK) status = bl_exchange_check_counts(f, t);
    if (status != BL_OK) return status;
    f->mode = HOST_EVENTS;
    m->time = t;
    m->has_time = true;
    m->at_tick = true;
    status = iterate_states(b, f, t, true);
    m->at_tick = false;
    note_inputs(b, t);
    memcpy(noted_parameters(b), b->p, parameters_size(b));
    if (status != BL_OK || f->ended) return status;
    status = read_indicators(b, f, t);
    if (status == BL_OK) note_domains(b, m);
    return status;
}

static int exchange_exit_initialization(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    if (!bl_fmu_is_running(f)) return BL_ERROR_BLOCK;
    if (f->remote && b->z[EXCHANGE_NOTED] == -INFINITY) {
        const int status = pass_event_on(b, f, BL_OP_EXIT_INITIALIZATION, t);
        if (status == BL_OK) f->mode = HOST_STEPPING;
        return status;
    }
    if (f->remote || f->mode != HOST_INITIALIZING) return BL_UNCHANGED;
    bl_working_directory directory;
    bl_fmu_enter_setup(f, &directory);
    return bl_fmu_leave_setup(f, &directory, end_after_error(f, begin_exchange(b, f, t)));
}

static const double *exchange_nominals(const bl_block *b) { return nominal_states(b); }

static double exchange_next_instant(const bl_block *b, double t) {
    return b->z[EXCHANGE_NEXT] > t ? b->z[EXCHANGE_NEXT] : INFINITY;
}

/* Whether no state from before t will be restored: a coupling repeats steps, and a state may have been handed out. */
static bool is_final(const bl_block *b, const bl_fmu_host *f, double t) {
    return !(b->engine->states_are_coupled && f->flags & HOST_CAN_SAVE) && t <= f->oldest_saved;
}

static int exchange_project(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    if (!bl_fmu_is_running(f)) return BL_ERROR_BLOCK;
    /* Where a step ends with an event, or with the tick, there may be several projections. */
    if (f->ended || t - b->z[EXCHANGE_COMPLETED] <= 4.0 * DBL_EPSILON * fabs(t)) return BL_OK;
    if (f->remote) {
        const int status = bl_exchange_remote(b, f, BL_OP_PROJECT, t, NULL);
        if (status == BL_OK && b->z[EXCHANGE_REQUESTED] != 0.0) bl_request_event(b, exchange_indicators(b));
        return status;
    }
    b->z[EXCHANGE_COMPLETED] = t;
    bool enters = false, ends = false;
    bl_host_enter(f);
    int status = set_everything(b, f, t);
    if (status == BL_OK)
        status = bl_host_status(f, bl_exchange_complete_step(f, is_final(b, f, t), &enters, &ends),
                                "CompletedIntegratorStep", t);
    f->ended |= ends;
    if (enters) {
        b->z[EXCHANGE_REQUESTED] = 1.0;
        bl_request_event(b, exchange_indicators(b));
    }
    return bl_host_leave(f, status);
}

/* Of an FMU that cannot save its state, steps are not repeated: fmu/importer/_exchange.py. */
static int exchange_save(bl_block *b, int snapshot) {
    bl_fmu_host *f = b->external;
    if (f && f->remote)
        return b->i[HOST_FLAGS] & HOST_CAN_SAVE ? bl_exchange_remote(b, f, BL_OP_SAVE, (double)snapshot, NULL) : BL_OK;
    return b->i[HOST_FLAGS] & HOST_CAN_SAVE ? bl_fmu_save_snapshot(b, snapshot) : BL_OK;
}

static int exchange_restore(bl_block *b, int snapshot) {
    bl_fmu_host *f = b->external;
    return f && f->remote ? bl_exchange_remote(b, f, BL_OP_RESTORE, (double)snapshot, NULL)
                          : bl_fmu_restore_snapshot(b, snapshot);
}

/* After the outputs of the tick at which the FMU has ended the run were recorded. */
static int exchange_update(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    if (f && f->remote && f->ended) return bl_exchange_remote(b, f, BL_OP_UPDATE, t, NULL);
    if (f && f->clocks && f->exchange->ticking) bl_clocks_note(b, f->clocks, f->exchange->ticking, t);
    if (f && f->clocks) f->exchange->ticking = 0;
    return f && f->ended ? bl_fmu_end_run(f, t) : BL_OK;
}

static void exchange_describe_event(const bl_block *b, int32_t crossing, char *text, size_t size) {
    const char *clock = bl_clocks_name(b->external, crossing);
    if (clock) snprintf(text, size, "clock `%s` ticks", clock);
    else if (crossing < 0) snprintf(text, size, "time event");
    else if (crossing < exchange_indicators(b)) snprintf(text, size, "event indicator %d", (int)crossing);
    else snprintf(text, size, "event after a step");
}

#define EXCHANGE_KERNEL(kernel, checks, completes) \
    {.name = kernel, \
     .check = checks, \
     .sizes = exchange_sizes, \
     .init = exchange_init, \
     .output = exchange_output, \
     .derivative = exchange_derivative, \
     .update = exchange_update, \
     .project = completes ? exchange_project : NULL, \
     .project_reads_inputs = completes, \
     .save = completes ? exchange_save : NULL, \
     .restore = completes ? exchange_restore : NULL, \
     .exit_initialization = exchange_exit_initialization, \
     .directional_derivative = exchange_directional_derivative, \
     .crossing_count = exchange_crossing_count, \
     .crossings = exchange_crossings, \
     .settle = exchange_settle, \
     .event = exchange_event, \
     .tick_event = exchange_tick_event, \
     .next_instant = exchange_next_instant, \
     .describe_event = exchange_describe_event, \
     .nominals = exchange_nominals, \
     .lend = bl_fmu_lend, \
     .reclaim = bl_fmu_reclaim, \
     .diagnose = bl_fmu_diagnose, \
     .close = bl_fmu_close, \
     .last_error = bl_fmu_last_error}

/* Of FMUs that need CompletedIntegratorStep, every tick ends a step under error control. */
const bl_kernel bl_kernels_exchange[] = {
    EXCHANGE_KERNEL("fmu2_exchange", exchange_check_fmi2, 0),
    EXCHANGE_KERNEL("fmu2_exchange_steps", exchange_check_fmi2, 1),
    EXCHANGE_KERNEL("fmu3_exchange", exchange_check_fmi3, 0),
    EXCHANGE_KERNEL("fmu3_exchange_steps", exchange_check_fmi3, 1),
    {.name = 0},
};
