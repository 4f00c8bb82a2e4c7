/* Execution of a tick.
 *
 * Tick k: outputs of all due blocks in order → record → termination checks (Stop, Assertion) → updates of due blocks
 * and advances → integrate continuous states from t_k to t_{k+1} → project → k + 1.
 *
 * Outputs are pure, so they may be evaluated any number of times at one tick; what happened at a tick
 * is committed only by going on to the next.
 *
 * A run may also stop within a tick, at (k, offset): bl_commit_part. Termination checks, updates and guards belong to the tick, and happen
 * before the first part. Each part advances the blocks with an internal solver of one tick, integrates and projects. In between,
 * outputs of these and of continuous blocks are evaluated; all else holds what it had at the tick. A whole tick
 * is one part, so that stops at ticks do not change a bit. */
#include "scheduler/engine/solvers/solver.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ticks beyond this limit are not exact in a double; the limit leaves a margin for counting. */
static const int64_t LARGEST_TICK = 1LL << 53;

int bl_fail(bl_engine *e, int status, int32_t block, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(e->message, sizeof e->message, format, arguments);
    va_end(arguments);
    e->block_message[0] = '\0';
    e->failed_block = block;
    if (block >= 0 && e->kernels[block]->last_error) { /* the kernel's own message is more specific */
        const char *why = e->kernels[block]->last_error(&e->blocks[block]);
        if (*why) snprintf(e->message, sizeof e->message, "%s", why);
    }
    return status;
}

int bl_fail_block(bl_engine *e, int status, const bl_block *b, const char *what) {
    const char *note = e->notes[b->index], *said = b->message;
    if (*note && *said) return bl_fail(e, status, b->index, "%s (%s)", note, said);
    return bl_fail(e, status, b->index, "%s", *said ? said : *note ? note : status == BL_STOP ? "" : what);
}

void bl_forget_failure(bl_engine *e) {
    e->message[0] = '\0';
    e->failed_block = -1;
}

static double time_of(const bl_engine *e, int64_t tick) { return e->start + (double)tick * e->step; }

/* Before its first hit a block holds its output of the first tick: all blocks are due there. */
static void find_due(bl_engine *e, bool holds) {
    e->holds = holds;
    e->due[BL_RATE_CONTINUOUS] = true;
    e->due[BL_RATE_CONSTANT] = !e->constants_valid;
    for (int32_t r = 2; r < e->rate_count; r++) {
        const bl_rate *rate = &e->rates[r];
        e->due[r] = !holds && (e->tick == 0 || rate->period == 1 ||
                               (e->tick >= rate->offset && (e->tick - rate->offset) % rate->period == 0));
    }
    e->due[e->internal_solver_rate] = true;
}

bool bl_is_hit(const bl_engine *e, int32_t r) {
    if (r < 2) return r == BL_RATE_CONTINUOUS;
    const bl_rate *rate = &e->rates[r];
    return e->due[r] &&
           (rate->period == 1 || (e->tick >= rate->offset && (e->tick - rate->offset) % rate->period == 0));
}

static int run_calls(bl_engine *e, const bl_call *call, int64_t count, double t) {
    for (const bl_call *end = call + count; call != end; call++) {
        const int status = call->run(call->block, t);
        if (status != BL_OK) return bl_fail_block(e, status, call->block, "the block failed");
    }
    return BL_OK;
}

/* Runs the calls whose rate hits at this tick and whose guard lets them. */
static int run_hits(bl_engine *e, const bl_calls *calls, double t) {
    for (int64_t s = 0; s < calls->segment_count; s++) {
        const bl_segment *segment = &calls->segments[s];
        if (!bl_is_hit(e, segment->rate) || !bl_active(e, segment->guard)) continue;
        const int status = run_calls(e, calls->calls + segment->first, segment->count, t);
        if (status != BL_OK) return status;
    }
    return BL_OK;
}

int bl_run_program(bl_engine *e, const bl_program *program, double t, bool minor) {
    for (int64_t n = 0; n < program->item_count; n++) {
        const bl_item *item = &program->items[n];
        int status = BL_OK;
        if (item->type == BL_ITEM_CALLS) {
            const bl_segment *segment = &program->calls.segments[item->index];
            if ((minor || bl_due(e, segment->rate, segment->guard)) && bl_active(e, segment->guard))
                status = run_calls(e, program->calls.calls + segment->first, segment->count, t);
        } else if (item->type == BL_ITEM_LOOP) {
            status = bl_solve_loop(e, &e->loops[item->index], t, minor);
        } else if (!e->holds) {
            status = bl_guard_decide(e, &e->guards[item->index], t);
        }
        if (status != BL_OK) return status;
    }
    return BL_OK;
}

int bl_run_minor(bl_engine *e, const bl_program *program, double t) {
    if (!program->is_plain) return bl_run_program(e, program, t, true);
    if (program->calls.call_count == 0) return BL_OK;
    return run_calls(e, program->calls.calls, program->calls.call_count, t);
}

static bool all_finite(const double *values, int64_t count) {
    double sum = 0.0; /* 0 · x is 0 if x is finite and NaN otherwise */
    for (int64_t i = 0; i < count; i++) sum += 0.0 * values[i];
    return sum == 0.0;
}

static bool inputs_finite(const bl_block *b) {
    for (int32_t i = 0; i < b->u_count; i++)
        if (!all_finite(b->u[i], b->u_width[i])) return false;
    return true;
}

static bool outputs_finite(const bl_block *b) {
    for (int32_t i = 0; i < b->y_count; i++)
        if (!all_finite(b->y[i], b->y_width[i])) return false;
    return true;
}

/* Names the first block in execution order that made a value which is not finite. */
static int fail_not_finite(bl_engine *e, double t) {
    int32_t culprit = -1;
    for (int pass = 0; pass < 2 && culprit < 0; pass++) {
        for (int64_t c = 0; c < e->major.calls.call_count && culprit < 0; c++) {
            const bl_block *b = e->major.calls.calls[c].block;
            if (!outputs_finite(b) && (pass == 1 || inputs_finite(b))) culprit = b->index;
        }
        for (int32_t k = 0; k < e->block_count && culprit < 0; k++) {
            const bl_block *b = &e->blocks[k];
            if (!all_finite(b->x, b->x_count) && (pass == 1 || inputs_finite(b))) culprit = k;
        }
    }
    for (int32_t k = 0; k < e->block_count && culprit < 0; k++)
        if (!outputs_finite(&e->blocks[k])) culprit = k; /* members of a solved loop */
    if (e->counters[BL_COUNT_UNCONTROLLED] > 0.0)
        return bl_fail(
            e, BL_ERROR_NOT_FINITE, culprit,
            "a value is not finite at t = %.9g; error control was given up at t = %.9g, after max_steps = %lld "
            "steps in a tick",
            t, e->counters[BL_COUNT_UNCONTROLLED_TIME], (long long)e->max_steps);
    return bl_fail(e, BL_ERROR_NOT_FINITE, culprit, "a value is not finite at t = %.9g", t);
}

/* Ends the initialization of all blocks; returns whether an output may have changed. */
static int begin_blocks(bl_engine *e, double t, bool *changed) {
    for (int32_t k = 0; k < e->block_count; k++) {
        const bl_operation begin = e->kernels[k]->exit_initialization;
        const int status = begin ? begin(&e->blocks[k], t) : BL_UNCHANGED;
        if (status == BL_UNCHANGED) continue;
        if (status != BL_OK) return bl_fail_block(e, status, &e->blocks[k], "the block failed to start");
        *changed = true;
    }
    e->begun = true;
    return BL_OK;
}

int bl_check_parameters(bl_engine *e, double t) {
    for (int32_t k = 0; k < e->block_count; k++) {
        const bl_operation check = e->kernels[k]->check_parameters;
        const int status = check ? check(&e->blocks[k], t) : BL_OK;
        if (status != BL_OK) return bl_fail_block(e, status, &e->blocks[k], "a parameter is not allowed");
    }
    e->parameters_valid = true;
    return BL_OK;
}

int bl_outputs(bl_engine *e) {
    if (!e->initialized) return bl_fail(e, BL_ERROR_ARGUMENT, -1, "bl_init comes first");
    if (e->outputs_valid) return BL_OK;
    const double t = bl_time(e);
    if (!e->parameters_valid && bl_check_parameters(e, t) != BL_OK) return BL_ERROR_BLOCK;
    find_due(e, e->offset != 0.0 || e->hits_taken);
    const unsigned char integrates = e->integrates;
    if (e->hits_taken) e->integrates = 1;
    int status = bl_run_program(e, &e->major, t, false);
    e->integrates = integrates;
    if (status == BL_OK && !e->begun) {
        bool changed = false;
        if (all_finite(e->signals, e->layout.signals)) status = begin_blocks(e, t, &changed);
        if (status == BL_OK && changed) status = bl_run_program(e, &e->major, t, false);
    }
    if (status == BL_OK && e->ticking_count > 0 && !e->frozen && all_finite(e->signals, e->layout.signals))
        status = bl_take_tick_events(e, t);
    if (status != BL_OK) return status;
    if (!all_finite(e->signals, e->layout.signals)) return fail_not_finite(e, t);
    e->constants_valid = true;
    e->outputs_valid = true;
    return BL_OK;
}

int bl_evaluate_held(bl_engine *e, double t) {
    find_due(e, true);
    e->outputs_valid = false;
    const int status = bl_run_program(e, &e->major, t, false);
    if (status != BL_OK) return status;
    return all_finite(e->signals, e->layout.signals) ? BL_OK : fail_not_finite(e, t);
}

void bl_follow_inputs(bl_engine *e, double t) {
    if (!e->follows) return;
    const int64_t n = e->input_count;
    const double *first = e->input_derivatives + BL_INPUT_DERIVATIVE_FIRST * n,
                 *second = e->input_derivatives + BL_INPUT_DERIVATIVE_SECOND * n, age = t - e->follows_since;
    for (int64_t i = 0; i < n; i++) {
        if (first[i] == 0.0 && second[i] == 0.0) continue;
        e->values[e->input_slots[i]] = e->input_starts[i] + (first[i] + 0.5 * second[i] * age) * age;
        e->input_derivatives[BL_INPUT_DERIVATIVE_NOW * n + i] = first[i] + second[i] * age;
    }
    e->outputs_valid = false;
}

int bl_evaluate_minor(bl_engine *e, double t) {
    bl_follow_inputs(e, t);
    if (e->followed) bl_coupling_follow(e, t);
    return bl_run_minor(e, &e->minor, t);
}

/* Under error control crossing functions are those of the last stage: blocks whose outputs are constant are evaluated too. */
int bl_evaluate_stage(bl_engine *e, double t) {
    if (e->decision != BL_KEEP || e->relative_tolerance > 0.0) return bl_evaluate_minor(e, t);
    bl_follow_inputs(e, t);
    if (e->followed) bl_coupling_follow(e, t);
    return bl_run_minor(e, &e->stage_program, t);
}

int bl_run_derivatives(bl_engine *e, const bl_calls *derivatives, double t) {
    for (int64_t s = 0; s < derivatives->segment_count; s++) {
        const bl_segment *segment = &derivatives->segments[s];
        const bl_call *calls = derivatives->calls + segment->first;
        if (bl_active(e, segment->guard)) {
            const int status = run_calls(e, calls, segment->count, t);
            if (status != BL_OK) return status;
        } else { /* a disabled subsystem's states stand still */
            for (int64_t c = 0; c < segment->count; c++)
                memset(calls[c].block->dx, 0, (size_t)calls[c].block->x_count * sizeof(double));
        }
    }
    return BL_OK;
}

int bl_evaluate_derivatives(bl_engine *e, double t) { return bl_run_derivatives(e, &e->derivatives, t); }

int bl_derivatives(bl_engine *e, double *dx) {
    int status = bl_outputs(e);
    if (status != BL_OK) return status;
    status = bl_evaluate_derivatives(e, bl_time(e));
    if (status == BL_OK) memcpy(dx, e->dx, (size_t)e->layout.states * sizeof(double));
    return status;
}

/* Blocks with longer periods have gone to the end of theirs at their hit. */
static int advance_blocks(bl_engine *e, double t, double h) {
    for (int64_t s = 0; s < e->advances.segment_count; s++) {
        const bl_segment *segment = &e->advances.segments[s];
        if (!bl_is_hit(e, segment->rate) || !bl_active(e, segment->guard)) continue;
        for (int64_t c = segment->first; c < segment->first + segment->count; c++) {
            bl_block *b = e->advances.calls[c].block;
            b->u1 = e->follows ? e->advance_input_derivatives[2 * c] : NULL;
            b->u2 = e->follows ? e->advance_input_derivatives[2 * c + 1] : NULL;
            const int status =
                e->kernels[b->index]->advance(b, t, segment->rate == e->internal_solver_rate ? h : b->dt);
            b->u1 = b->u2 = NULL;
            if (status != BL_OK) return bl_fail_block(e, status, b, "the block failed to advance");
        }
    }
    return BL_OK;
}

/* With the modes of the step that ends, as in its stages. */
static int evaluate_end(bl_engine *e, double t) {
    const bl_decision decision = e->decision;
    const unsigned char integrates = e->integrates;
    if (decision == BL_DECIDE && bl_has_events(e)) e->decision = BL_KEEP;
    e->integrates = 1;
    const int status = bl_evaluate_minor(e, t);
    e->decision = decision;
    e->integrates = integrates;
    return status;
}

int bl_project(bl_engine *e, double t) {
    if (e->projects_read_inputs) {
        const int status = evaluate_end(e, t);
        if (status != BL_OK) return status;
    }
    for (int64_t s = 0; s < e->projects.segment_count; s++) {
        const bl_segment *segment = &e->projects.segments[s];
        if (!bl_active(e, segment->guard)) continue;
        const int status = run_calls(e, e->projects.calls + segment->first, segment->count, t);
        if (status != BL_OK) return status;
    }
    return BL_OK;
}

/* Puts the clock at `end` after tick `tick`. */
static void set_clock(bl_engine *e, int64_t tick, double end) {
    const bool whole = end >= e->step;
    e->tick = whole ? tick + 1 : tick;
    e->offset = whole ? 0.0 : end;
}

double bl_after_tick(const bl_engine *e, double time) {
    const double after = time - time_of(e, e->tick);
    return fabs(after - e->step) <= 1e-9 * e->step ? e->step : after;
}

int bl_advance_states(bl_engine *e, double t, double h, double end) {
    if (e->layout.states == 0) return BL_OK;
    int status = BL_OK;
    e->integrates = 1;
    if ((bl_has_events(e) && !e->frozen) || e->relative_tolerance > 0.0 || e->parts > 1) {
        status = bl_integrate_within_tick(e, t, h);
    } else {
        status = bl_evaluate_derivatives(e, t);
        if (status == BL_OK) status = bl_integrate(e, t, h);
    }
    e->integrates = 0;
    if (status != BL_OK) return status;
    const int64_t tick = e->tick;
    const double offset = e->offset;
    set_clock(e, tick, end);
    bl_follow_inputs(e, bl_time(e));
    status = bl_project(e, bl_time(e));
    if (status == BL_OK && !all_finite(e->x, e->layout.states)) status = fail_not_finite(e, t);
    e->tick = tick;
    e->offset = offset;
    return status;
}

void bl_keep_loops(bl_engine *e) {
    for (int32_t k = 0; k < e->loop_count; k++)
        for (int32_t i = 0; i < e->loops[k].tear_count; i++) e->loops[k].start[i] = e->values[e->loops[k].tears[i]];
}

int bl_commit_hits(bl_engine *e, double t) {
    const int status = run_hits(e, &e->termination_checks, t);
    if (status != BL_OK) return status;
    e->outputs_valid = false;
    if (e->exchange_count > 0) bl_measure_exchanges(e, t);
    for (int32_t g = 0; g < e->guard_count; g++) bl_guard_commit(e, &e->guards[g]);
    return run_hits(e, &e->updates, t);
}

int bl_take_hits(bl_engine *e) {
    int status = bl_outputs(e);
    if (status != BL_OK || e->hits_taken) return status;
    if (e->offset != 0.0) return bl_fail(e, BL_ERROR_ARGUMENT, -1, "t = %.9g is not a tick", bl_time(e));
    status = bl_commit_hits(e, bl_time(e));
    if (status != BL_OK) return status;
    e->hits_taken = true;
    e->outputs_valid = true; /* outputs of the tick, which were evaluated before the updates */
    return BL_OK;
}

static int commit_part(bl_engine *e, double end) {
    const double offset = e->offset, t = bl_time(e), h = end - offset;
    int status = BL_OK;
    if (e->hits_taken) {
        e->outputs_valid = false;
        find_due(e, false); /* blocks with an internal solver advance from their hits */
    } else if (offset == 0.0) {
        status = bl_commit_hits(e, t);
    } else {
        e->outputs_valid = false;
        if (e->exchange_count > 0) bl_measure_exchanges(e, t);
    }
    if (status != BL_OK) return status;
    bl_keep_loops(e);
    status = bl_coupling_start(e, t);
    if (status == BL_OK) status = advance_blocks(e, t, h);
    if (status == BL_OK && !e->states_are_coupled) status = bl_advance_states(e, t, h, end);
    if (status == BL_OK) status = bl_coupling_advance(e, t, h);
    if (status != BL_OK) return status;
    set_clock(e, e->tick, end);
    e->hits_taken = false;
    bl_follow_inputs(e, bl_time(e));
    return BL_OK;
}

int bl_commit_part(bl_engine *e, double end) {
    /* What the same part counted when it failed: it may have been repeated. */
    if (e->is_unfinished) bl_rewind_log(e, &e->unfinished);
    e->event_count = 0;
    bl_mark_log(e, &e->unfinished);
    const int status = commit_part(e, end);
    e->is_unfinished = status != BL_OK;
    return status;
}

int bl_commit(bl_engine *e) { return bl_commit_part(e, e->step); }

int bl_check_record(bl_engine *e, const bl_record *record) {
    if (!record) return BL_OK;
    if (record->every < 1 || record->count < 0) return bl_fail(e, BL_ERROR_ARGUMENT, -1, "a record needs every >= 1");
    for (int64_t i = 0; i < record->count; i++)
        if (record->pick[i] < 0 || record->pick[i] >= e->layout.total)
            return bl_fail(e, BL_ERROR_ARGUMENT, -1, "no value %lld to record", (long long)record->pick[i]);
    return BL_OK;
}

int bl_record_now(bl_engine *e, bl_record *record) {
    const int status = bl_check_record(e, record);
    return status == BL_OK ? bl_record_row(e, record) : status;
}

int bl_record_row(bl_engine *e, bl_record *record) {
    if (record->rows >= record->capacity) return bl_fail(e, BL_ERROR_ARGUMENT, -1, "the record is full");
    const int status = bl_outputs(e);
    if (status != BL_OK) return status;
    double *row = record->out + record->rows * (1 + record->count);
    row[0] = bl_time(e);
    for (int64_t i = 0; i < record->count; i++) row[1 + i] = e->values[record->pick[i]];
    record->rows++;
    return BL_OK;
}

int bl_run(bl_engine *e, int64_t ticks, bl_record *record, int64_t *done) {
    int status = bl_check_record(e, record);
    int64_t n = 0;
    while (status == BL_OK && n < ticks) {
        /* Before the row of the tick, which the next call would otherwise record again. */
        if (record && record->events && record->event_capacity - record->event_count < e->event_capacity) break;
        status = bl_outputs(e);
        if (status == BL_OK && record && e->offset == 0.0 && e->tick % record->every == 0) {
            if (record->rows == record->capacity) break;
            status = bl_record_row(e, record);
        }
        if (status != BL_OK) break;
        status = bl_commit(e);
        if (record && record->events && status >= BL_OK) {
            memcpy(record->events + record->event_count, e->events, (size_t)e->event_count * sizeof(bl_event));
            record->event_count += e->event_count;
        }
        if (status == BL_OK) n++;
    }
    if (done) *done = n;
    return status;
}

double bl_slack(const bl_engine *e, double time) {
    return BL_GRID_TOLERANCE * e->step + 4e-16 * fabs(time); /* the second part is what rounding does to large times */
}

int bl_set_input_derivative(bl_engine *e, int64_t variable, int32_t order, double value) {
    if (variable < 0 || variable >= e->variable_count || e->input_of[variable] < 0 || order < 1 || order > 2)
        return bl_fail(e, BL_ERROR_ARGUMENT, -1, "no derivative of order %d for variable %lld", order,
                       (long long)variable);
    const int64_t input = e->input_of[variable], n = e->input_count;
    e->input_derivatives[(order == 1 ? BL_INPUT_DERIVATIVE_FIRST : BL_INPUT_DERIVATIVE_SECOND) * n + input] = value;
    if (order == 1) e->input_derivatives[BL_INPUT_DERIVATIVE_NOW * n + input] = value;
    e->has_input_derivatives = true;
    return BL_OK;
}

static void begin_following(bl_engine *e) {
    if (!e->has_input_derivatives) return;
    const int64_t n = e->input_count;
    e->follows_since = bl_time(e);
    for (int64_t i = 0; i < n; i++) {
        const double first = e->input_derivatives[BL_INPUT_DERIVATIVE_FIRST * n + i],
                     second = e->input_derivatives[BL_INPUT_DERIVATIVE_SECOND * n + i];
        e->input_derivatives[BL_INPUT_DERIVATIVE_NOW * n + i] = first;
        e->input_starts[i] = e->values[e->input_slots[i]];
        if (first != 0.0 || second != 0.0) e->follows = true;
    }
}

/* Where inputs have got to stays known, for the output derivatives. */
static void end_following(bl_engine *e) {
    if (!e->has_input_derivatives) return;
    e->has_input_derivatives = e->follows;
    e->follows = false;
    memset(e->input_derivatives, 0, (size_t)(BL_INPUT_DERIVATIVE_NOW * e->input_count) * sizeof(double));
}

/* Where a run to `time` ends: the tick, and the time after it. */
static int find_run_end(bl_engine *e, double time, int64_t *at_tick, double *at_offset) {
    int64_t tick = e->tick + 1; /* as a rule */
    double offset = time - time_of(e, tick);
    if (!(fabs(offset) <= BL_GRID_TOLERANCE * e->step && time > bl_time(e))) {
        const double nearest = nearbyint((time - e->start) / e->step);
        if (!(fabs(nearest) <= (double)LARGEST_TICK))
            return bl_fail(e, BL_ERROR_ARGUMENT, -1, "no run goes to t = %.9g", time);
        tick = (int64_t)nearest;
        offset = time - time_of(e, tick);
    }
    if (fabs(offset) <= bl_slack(e, time)) offset = 0.0;
    if (offset < 0.0) offset = time - time_of(e, --tick);
    *at_tick = tick;
    *at_offset = offset;
    return BL_OK;
}

int bl_check_run_end(bl_engine *e, double time) {
    int64_t tick = 0;
    double offset = 0.0;
    return find_run_end(e, time, &tick, &offset);
}

static bool is_before(const bl_engine *e, int64_t tick, double offset) {
    return e->tick < tick || (e->tick == tick && e->offset < offset);
}

int bl_run_to(bl_engine *e, double time) {
    int64_t tick = 0;
    double offset = 0.0;
    int status = find_run_end(e, time, &tick, &offset);
    if (status != BL_OK) return status;
    begin_following(e);
    while (status == BL_OK && is_before(e, tick, offset)) {
        status = bl_outputs(e);
        if (status == BL_OK) status = bl_commit_part(e, e->tick < tick ? e->step : offset);
    }
    end_following(e);
    return status;
}

/* The time of the first event of the last part that is later than `time`; infinite if there is none. */
static double first_event_after(const bl_engine *e, double time) {
    double first = INFINITY;
    for (int64_t n = 0; n < e->event_count; n++)
        if (e->events[n].time > time && e->events[n].time < first) first = e->events[n].time;
    return first;
}

int bl_locates_events(const bl_engine *e) { return e->has_events; }

int bl_run_to_event(bl_engine *e, double time, void *memory, int *at_event) {
    int64_t tick = 0;
    double offset = 0.0;
    int status = find_run_end(e, time, &tick, &offset);
    *at_event = 0;
    if (status != BL_OK) return status;
    if (!e->has_events) return bl_run_to(e, time);
    begin_following(e);
    while (status == BL_OK && !*at_event && is_before(e, tick, offset)) {
        const double begin = bl_time(e);
        status = bl_outputs(e);
        if (status != BL_OK) break;
        bl_save(e, memory);
        status = bl_commit_part(e, e->tick < tick ? e->step : offset);
        if (status != BL_OK) break;
        /* An event at the beginning has ended the run before. */
        const double end = bl_time(e), event = first_event_after(e, begin + bl_slack(e, begin));
        *at_event = event < INFINITY;
        if (!*at_event || event >= end - bl_slack(e, end)) continue;
        int64_t event_tick = 0;
        status = bl_restore(e, memory, bl_state_size(e));
        if (status == BL_OK) status = find_run_end(e, event, &event_tick, &offset);
        if (status == BL_OK) status = bl_outputs(e);
        if (status == BL_OK) status = bl_commit_part(e, e->tick < event_tick ? e->step : offset);
    }
    end_following(e);
    return status;
}

void bl_touch_inputs(bl_engine *e) {
    e->minor_valid = false;
    if (e->open[BL_OPEN_LENGTH] != 0.0) bl_restart_solver(e);
    e->open[BL_OPEN_LENGTH] = 0.0;
    e->outputs_valid = false;
}

/* Outputs, and what follows from parameters, are to be evaluated again. */
static void make_stale(bl_engine *e) {
    e->instant = -INFINITY;
    e->minor_valid = false;
    e->outputs_valid = false;
    e->constants_valid = false;
    e->parameters_valid = false;
}

void bl_touch(bl_engine *e) {
    if (e->open[BL_OPEN_LENGTH] != 0.0) bl_restart_solver(e);
    e->open[BL_OPEN_LENGTH] = 0.0;
    make_stale(e);
}

void bl_reset(bl_engine *e) {
    memset(e->values, 0, (size_t)e->layout.total * sizeof(double));
    memcpy(e->values, e->first_parameters, (size_t)e->layout.parameters * sizeof(double));
    memset(e->input_derivatives, 0, (size_t)(BL_INPUT_DERIVATIVES * e->input_count) * sizeof(double));
    e->tick = 0;
    e->offset = 0.0;
    e->hits_taken = false;
    e->start = e->first_start;
    e->initialized = e->begun = false;
    e->is_unfinished = false;
    e->message[0] = e->block_message[0] = '\0';
    e->failed_block = -1;
    if (e->ode) bl_ode_forget(e);
    bl_touch(e);
}

int bl_init(bl_engine *e) {
    e->tick = 0;
    e->offset = 0.0;
    e->hits_taken = false;
    memset(e->signals, 0, (size_t)(e->layout.total - e->layout.parameters) * sizeof(double));
    e->begun = false;
    e->is_unfinished = false;
    bl_touch(e);
    for (int32_t g = 0; g < e->guard_count; g++) bl_guard_init(&e->guards[g]);
    for (int32_t k = 0; k < e->block_count; k++) {
        if (!e->kernels[k]->init) continue;
        const int status = e->kernels[k]->init(&e->blocks[k], e->start);
        if (status != BL_OK) return bl_fail_block(e, status, &e->blocks[k], "the block failed to start");
    }
    e->initialized = true;
    return BL_OK;
}

int bl_call_block(bl_engine *e, int32_t block, int32_t op, double t, double dt) {
    if (block < 0 || block >= e->block_count) return bl_fail(e, BL_ERROR_ARGUMENT, -1, "no block %d", (int)block);
    const bl_kernel *kernel = e->kernels[block];
    bl_block *b = &e->blocks[block];
    const bl_operation run = op == BL_OP_INIT                  ? kernel->init
                             : op == BL_OP_OUTPUT              ? kernel->output
                             : op == BL_OP_EXIT_INITIALIZATION ? kernel->exit_initialization
                             : op == BL_OP_ACCEPT_STEP         ? kernel->accept_step
                                                               : NULL;
    int (*const move)(bl_block *, int) = op == BL_OP_SAVE ? kernel->save : op == BL_OP_RESTORE ? kernel->restore : NULL;
    int status = BL_OK;
    if (run) status = run(b, t);
    else if (move && dt >= 0.0 && dt < (double)BL_SNAPSHOTS) status = move(b, (int)dt);
    else if (op == BL_OP_ADVANCE && kernel->advance) status = kernel->advance(b, t, dt);
    else return bl_fail(e, BL_ERROR_ARGUMENT, -1, "block %d has no operation %d to call", (int)block, (int)op);
    return status == BL_OK || status == BL_UNCHANGED ? status : bl_fail(e, status, block, "the block failed");
}

int bl_advance_block(bl_engine *e, int32_t block, double t, double dt, const double *derivatives) {
    if (block < 0 || block >= e->block_count) return bl_fail(e, BL_ERROR_ARGUMENT, -1, "no block %d", (int)block);
    bl_block *b = &e->blocks[block];
    const double **ports = calloc(2 * (size_t)b->u_count + 1, sizeof *ports);
    if (!ports) return bl_fail(e, BL_ERROR_MEMORY, -1, "out of memory");
    for (int32_t k = 0; k < 2 * b->u_count; k++) {
        ports[k] = derivatives;
        derivatives += b->u_width[k % b->u_count];
    }
    b->u1 = ports;
    b->u2 = ports + b->u_count;
    const int status = bl_call_block(e, block, BL_OP_ADVANCE, t, dt);
    b->u1 = b->u2 = NULL;
    free((void *)ports);
    return status;
}

int bl_input_derivatives(const bl_engine *e, int32_t block, double *values) {
    if (block < 0 || block >= e->block_count || !e->blocks[block].u1) return 0;
    const bl_block *b = &e->blocks[block];
    for (int order = 1; order <= 2; order++)
        for (int32_t k = 0; k < b->u_count; values += b->u_width[k], k++) {
            const double *const *from = order == 1 ? b->u1 : b->u2;
            if (from) memcpy(values, from[k], (size_t)b->u_width[k] * sizeof(double));
            else memset(values, 0, (size_t)b->u_width[k] * sizeof(double));
        }
    return 1;
}

int bl_inputs(const bl_engine *e, int32_t block, double *values) {
    if (block < 0 || block >= e->block_count) return BL_ERROR_ARGUMENT;
    const bl_block *b = &e->blocks[block];
    for (int32_t k = 0; k < b->u_count; values += b->u_width[k], k++)
        memcpy(values, b->u[k], (size_t)b->u_width[k] * sizeof(double));
    return BL_OK;
}

void bl_set_host(bl_engine *e, bl_host_call call) { e->host = call; }
void bl_get_layout(const bl_engine *e, bl_layout *layout) {
    *layout = e->layout;
    layout->events = e->event_capacity;
}
double *bl_values(bl_engine *e) { return e->values; }
double bl_first_value(const bl_engine *e, int64_t slot) {
    return slot >= 0 && slot < e->layout.parameters ? e->first_parameters[slot] : 0.0;
}
double *bl_state_derivatives(bl_engine *e) { return e->dx; }
int64_t bl_tick(const bl_engine *e) { return e->tick; }
double bl_time(const bl_engine *e) { return time_of(e, e->tick) + e->offset; }
double bl_step(const bl_engine *e) { return e->step; }
const char *bl_message(const bl_engine *e) { return e->message; }
int32_t bl_failed_block(const bl_engine *e) { return e->failed_block; }
const char *bl_block_path(const bl_engine *e, int32_t block) {
    return block >= 0 && block < e->block_count ? e->paths[block] : "";
}
const char *bl_slot_path(const bl_engine *e, int64_t slot) {
    for (int32_t k = 0; k < e->block_count; k++)
        for (int32_t i = 0; i < e->blocks[k].y_count; i++) {
            const int64_t first = e->blocks[k].y[i] - e->values;
            if (slot >= first && slot < first + e->blocks[k].y_width[i]) return e->paths[k];
        }
    return "";
}
int32_t bl_next_diagnostic(bl_engine *e, int about, int32_t after) {
    for (int32_t k = after < 0 ? 0 : after + 1; e->initialized && k < e->block_count; k++) {
        if (!e->kernels[k]->diagnose) continue;
        e->kernels[k]->diagnose(&e->blocks[k], about, bl_time(e));
        if (!e->block_message[0]) continue;
        snprintf(e->message, sizeof e->message, "%s", e->block_message);
        e->block_message[0] = '\0';
        return k;
    }
    return -1;
}
int32_t bl_plan_kinds(const bl_engine *e) { return e->kinds; }
uint64_t bl_plan_hash(const bl_engine *e) { return e->plan_hash; }
void bl_set_start(bl_engine *e, double start) {
    e->start = start;
    bl_touch(e);
}
int64_t bl_variables(const bl_engine *e, const bl_variable **variables) {
    *variables = e->variables;
    return e->variable_count;
}

/* A saved state: its format, which plan, of which format, it belongs to, when it was, and in which phase; the values and input
   derivatives follow. Those of biella 0.1 have no format. */
enum { STATE_MARK = 0x62537461, STATE_FORMAT = 2 };
typedef struct {
    uint32_t mark, format;
    uint64_t plan_hash;
    int64_t tick, phase, count;
    double start, offset;
} bl_state_head;

/* Phases of a run; the second one: the hits of the tick were taken. */
enum { PHASE_INITIALIZED = 1, PHASE_HITS_TAKEN = 2 };

/* With the plan's format, because what follows for the same plan may differ between formats. */
static uint64_t state_hash(const bl_engine *e) { return e->plan_hash ^ (uint64_t)BL_PLAN_VERSION; }

static int64_t input_derivative_count(const bl_engine *e) { return BL_INPUT_DERIVATIVES * e->input_count; }

size_t bl_state_size(const bl_engine *e) {
    return sizeof(bl_state_head) + (size_t)(e->layout.total + input_derivative_count(e)) * sizeof(double);
}

/* Puts what the events had counted before the tick that failed or stopped in place of what they count now. */
static void drop_partial_counts(const bl_engine *e, char *values) {
    if (!e->is_unfinished) return;
    memcpy(values + (size_t)(e->counters - e->values) * sizeof(double), e->unfinished.counters,
           sizeof e->unfinished.counters);
}

void bl_save(const bl_engine *e, void *state) {
    const int64_t phase = (e->initialized ? PHASE_INITIALIZED : 0) | (e->hits_taken ? PHASE_HITS_TAKEN : 0);
    const bl_state_head head = {STATE_MARK, STATE_FORMAT,    state_hash(e), e->tick,
                                phase,      e->layout.total, e->start,      e->offset};
    const size_t values = (size_t)e->layout.total * sizeof(double),
                 input_derivatives = (size_t)input_derivative_count(e) * sizeof(double);
    char *to = state;
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, e->values, values);
    drop_partial_counts(e, to + sizeof head);
    memcpy(to + sizeof head + values, e->input_derivatives, input_derivatives);
}

int bl_restore(bl_engine *e, const void *state, size_t size) {
    bl_state_head head;
    uint32_t format[2] = {0};
    if (size >= sizeof format) memcpy(format, state, sizeof format);
    if (format[0] == STATE_MARK && format[1] != STATE_FORMAT)
        return bl_fail(e, BL_ERROR_STATE, -1,
                       "the saved state has format %u, of another version of biella; this version reads format %d",
                       (unsigned)format[1], STATE_FORMAT);
    if (size != bl_state_size(e))
        return bl_fail(
            e, BL_ERROR_STATE, -1,
            "a state of this plan has %zu bytes, this one has %zu: it belongs to another plan, or was saved by "
            "another version of biella",
            bl_state_size(e), size);
    memcpy(&head, state, sizeof head);
    if (head.mark != STATE_MARK || head.plan_hash != state_hash(e) || head.count != e->layout.total || head.tick < 0 ||
        head.tick > LARGEST_TICK || !isfinite(head.start) || !(head.offset >= 0.0 && head.offset < e->step))
        return bl_fail(e, BL_ERROR_STATE, -1,
                       "the saved state belongs to another plan, or was saved by another version of biella");
    const size_t values = (size_t)e->layout.total * sizeof(double),
                 input_derivatives = (size_t)input_derivative_count(e) * sizeof(double);
    const char *from = state;
    memcpy(e->values, from + sizeof head, values);
    memcpy(e->input_derivatives, from + sizeof head + values, input_derivatives);
    e->tick = head.tick;
    e->offset = head.offset;
    e->start = head.start;
    e->initialized = (head.phase & PHASE_INITIALIZED) != 0;
    e->hits_taken = (head.phase & PHASE_HITS_TAKEN) != 0 && e->initialized && e->offset == 0.0;
    e->begun = false; /* perhaps */
    e->is_unfinished = false;
    e->has_input_derivatives = true; /* perhaps */
    make_stale(e);
    return BL_OK;
}

void bl_take_over(bl_engine *e, const bl_engine *from) {
    memcpy(e->values, from->values, (size_t)e->layout.total * sizeof(double));
    drop_partial_counts(from, (char *)e->values);
    memcpy(e->input_derivatives, from->input_derivatives, (size_t)input_derivative_count(e) * sizeof(double));
    e->tick = from->tick;
    e->offset = from->offset;
    e->hits_taken = from->hits_taken;
    e->start = from->start;
    e->initialized = from->initialized;
    e->begun = from->begun;
    e->is_unfinished = false;
    e->has_input_derivatives = from->has_input_derivatives;
    make_stale(e);
}

void bl_close(bl_engine *e) {
    if (!e) return;
    for (int32_t k = 0; e->kernels && k < e->block_count; k++)
        if (e->kernels[k] && e->kernels[k]->close) e->kernels[k]->close(&e->blocks[k]);
    bl_close_strings(e);
    for (bl_chunk *chunk = e->chunks; chunk;) {
        bl_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    free(e);
}
