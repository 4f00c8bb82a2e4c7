/* What a tick is.
 *
 * Tick k: outputs of all due blocks in order → record → verdicts (Stop, Assertion) → updates of due blocks
 * and advances → integrate continuous states from t_k to t_{k+1} → project → k + 1.
 *
 * Outputs are pure, so they may be evaluated any number of times at one tick; what happened at a tick
 * is committed only by going on to the next. */
#include "scheduler/engine.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int bl_fail(bl_engine *e, int status, int32_t block, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(e->message, sizeof e->message, format, arguments);
    va_end(arguments);
    e->failed_block = block;
    if (block >= 0 && e->kernels[block]->explain) { /* it knows better */
        const char *why = e->kernels[block]->explain(&e->blocks[block]);
        if (*why) snprintf(e->message, sizeof e->message, "%s", why);
    }
    return status;
}

static double time_of(const bl_engine *e, int64_t tick) { return e->start + (double)tick * e->step; }

/* Before its first hit a block holds what it gave at the first tick, so there everything is due. */
static void find_due(bl_engine *e) {
    e->due[BL_RATE_CONTINUOUS] = true;
    e->due[BL_RATE_CONSTANT] = !e->constants_valid;
    for (int32_t r = 2; r < e->rate_count; r++) {
        const bl_rate *rate = &e->rates[r];
        e->due[r] = e->tick == 0 || rate->period == 1 ||
                    (e->tick >= rate->offset && (e->tick - rate->offset) % rate->period == 0);
    }
}

static bool is_hit(const bl_engine *e, int32_t r) {
    if (r < 2) return r == BL_RATE_CONTINUOUS;
    const bl_rate *rate = &e->rates[r];
    return e->due[r] && (rate->period == 1 ||
                         (e->tick >= rate->offset && (e->tick - rate->offset) % rate->period == 0));
}

static int run_calls(bl_engine *e, const bl_call *call, int64_t count, double t) {
    for (const bl_call *end = call + count; call != end; call++) {
        const int status = call->run(call->block, t);
        if (status != BL_OK) {
            return bl_fail(e, status, call->block->index, status == BL_STOP ? "" : "the block failed");
        }
    }
    return BL_OK;
}

/* Runs the calls whose rate hits at this tick and whose guard lets them. */
static int run_hits(bl_engine *e, const bl_calls *calls, double t) {
    for (int64_t s = 0; s < calls->segment_count; s++) {
        const bl_segment *segment = &calls->segments[s];
        if (!is_hit(e, segment->rate) || !bl_active(e, segment->guard)) continue;
        const int status = run_calls(e, calls->calls + segment->first, segment->count, t);
        if (status != BL_OK) return status;
    }
    return BL_OK;
}

static int run_program(bl_engine *e, const bl_program *program, double t, bool minor) {
    for (int64_t n = 0; n < program->item_count; n++) {
        const bl_item *item = &program->items[n];
        int status = BL_OK;
        if (item->type == BL_ITEM_CALLS) {
            const bl_segment *segment = &program->calls.segments[item->index];
            if ((minor || bl_due(e, segment->rate, segment->guard)) && bl_active(e, segment->guard))
                status = run_calls(e, program->calls.calls + segment->first, segment->count, t);
        } else if (item->type == BL_ITEM_LOOP) {
            status = bl_solve_loop(e, &e->loops[item->index], t, minor);
        } else {
            status = bl_guard_decide(e, &e->guards[item->index], t);
        }
        if (status != BL_OK) return status;
    }
    return BL_OK;
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
    return bl_fail(e, BL_ERROR_NOT_FINITE, culprit, "a value is not finite at t = %.9g", t);
}

int bl_outputs(bl_engine *e) {
    if (!e->initialised) return bl_fail(e, BL_ERROR_ARGUMENT, -1, "bl_init comes first");
    if (e->outputs_valid) return BL_OK;
    const double t = bl_time(e);
    find_due(e);
    const int status = run_program(e, &e->major, t, false);
    if (status != BL_OK) return status;
    if (!all_finite(e->signals, e->layout.signals)) return fail_not_finite(e, t);
    e->constants_valid = true;
    e->outputs_valid = true;
    return BL_OK;
}

int bl_evaluate_minor(bl_engine *e, double t) { return run_program(e, &e->minor, t, true); }

int bl_evaluate_derivatives(bl_engine *e, double t) {
    for (int64_t s = 0; s < e->derivatives.segment_count; s++) {
        const bl_segment *segment = &e->derivatives.segments[s];
        const bl_call *calls = e->derivatives.calls + segment->first;
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

int bl_derivatives(bl_engine *e, double *dx) {
    int status = bl_outputs(e);
    if (status != BL_OK) return status;
    status = bl_evaluate_derivatives(e, bl_time(e));
    if (status == BL_OK) memcpy(dx, e->dx, (size_t)e->layout.states * sizeof(double));
    return status;
}

int bl_commit(bl_engine *e) {
    const double t = bl_time(e), h = e->step;
    int status = run_hits(e, &e->verdicts, t);
    if (status != BL_OK) return status;

    e->outputs_valid = false;
    for (int32_t g = 0; g < e->guard_count; g++) bl_guard_commit(e, &e->guards[g]);
    status = run_hits(e, &e->updates, t);
    if (status != BL_OK) return status;
    for (int32_t k = 0; k < e->loop_count; k++)
        for (int32_t i = 0; i < e->loops[k].tear_count; i++)
            e->loops[k].start[i] = e->values[e->loops[k].tears[i]];
    for (int64_t s = 0; s < e->advances.segment_count; s++) {
        const bl_segment *segment = &e->advances.segments[s];
        if (!is_hit(e, segment->rate) || !bl_active(e, segment->guard)) continue;
        for (int64_t c = segment->first; c < segment->first + segment->count; c++) {
            bl_block *b = e->advances.calls[c].block;
            status = e->kernels[b->index]->advance(b, t, b->dt);
            if (status != BL_OK) return bl_fail(e, status, b->index, "the block failed to advance");
        }
    }
    if (e->layout.states > 0) {
        status = bl_evaluate_derivatives(e, t);
        if (status == BL_OK) status = bl_integrate(e, t, h);
        if (status != BL_OK) return status;
        for (int64_t s = 0; s < e->projects.segment_count; s++) {
            const bl_segment *segment = &e->projects.segments[s];
            if (!bl_active(e, segment->guard)) continue;
            status = run_calls(e, e->projects.calls + segment->first, segment->count,
                               time_of(e, e->tick + 1));
            if (status != BL_OK) return status;
        }
        if (!all_finite(e->x, e->layout.states)) return fail_not_finite(e, t);
    }
    e->tick++;
    return BL_OK;
}

int bl_check_record(bl_engine *e, const bl_record *record) {
    if (!record) return BL_OK;
    if (record->every < 1 || record->count < 0)
        return bl_fail(e, BL_ERROR_ARGUMENT, -1, "a record needs every >= 1");
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
        status = bl_outputs(e);
        if (status == BL_OK && record && e->tick % record->every == 0) {
            if (record->rows == record->capacity) break;
            status = bl_record_row(e, record);
        }
        if (status == BL_OK) status = bl_commit(e);
        if (status == BL_OK) n++;
    }
    if (done) *done = n;
    return status;
}

void bl_touch(bl_engine *e) {
    e->outputs_valid = false;
    e->constants_valid = false;
}

void bl_reset(bl_engine *e) {
    memset(e->values, 0, (size_t)e->layout.total * sizeof(double));
    memcpy(e->values, e->first_parameters, (size_t)e->layout.parameters * sizeof(double));
    e->tick = 0;
    e->start = e->first_start;
    e->initialised = false;
    e->message[0] = '\0';
    e->failed_block = -1;
    bl_touch(e);
}

int bl_init(bl_engine *e) {
    e->tick = 0;
    memset(e->signals, 0, (size_t)(e->layout.total - e->layout.parameters) * sizeof(double));
    bl_touch(e);
    for (int32_t g = 0; g < e->guard_count; g++) bl_guard_init(&e->guards[g]);
    for (int32_t k = 0; k < e->block_count; k++) {
        if (!e->kernels[k]->init) continue;
        const int status = e->kernels[k]->init(&e->blocks[k], e->start);
        if (status != BL_OK) return bl_fail(e, status, k, "the block failed to start");
    }
    e->initialised = true;
    return BL_OK;
}

int bl_call_block(bl_engine *e, int32_t block, int32_t op, double t, double dt) {
    if (block < 0 || block >= e->block_count) return bl_fail(e, BL_ERROR_ARGUMENT, -1, "no block %d", (int)block);
    const bl_kernel *kernel = e->kernels[block];
    bl_block *b = &e->blocks[block];
    const bl_operation run = op == BL_OP_INIT ? kernel->init : op == BL_OP_OUTPUT ? kernel->output : NULL;
    int status = BL_OK;
    if (run) status = run(b, t);
    else if (op == BL_OP_ADVANCE && kernel->advance) status = kernel->advance(b, t, dt);
    else return bl_fail(e, BL_ERROR_ARGUMENT, -1, "block %d has no operation %d to call", (int)block, (int)op);
    return status == BL_OK ? BL_OK : bl_fail(e, status, block, "the block failed");
}

void bl_set_host(bl_engine *e, bl_host_call call) { e->host = call; }
void bl_get_layout(const bl_engine *e, bl_layout *layout) { *layout = e->layout; }
double *bl_values(bl_engine *e) { return e->values; }
double *bl_slopes(bl_engine *e) { return e->dx; }
int64_t bl_tick(const bl_engine *e) { return e->tick; }
double bl_time(const bl_engine *e) { return time_of(e, e->tick); }
double bl_step(const bl_engine *e) { return e->step; }
const char *bl_message(const bl_engine *e) { return e->message; }
int32_t bl_failed_block(const bl_engine *e) { return e->failed_block; }
const char *bl_block_path(const bl_engine *e, int32_t block) {
    return block >= 0 && block < e->block_count ? e->paths[block] : "";
}
const char *bl_block_note(const bl_engine *e, int32_t block) {
    return block >= 0 && block < e->block_count ? e->notes[block] : "";
}
uint64_t bl_plan_hash(const bl_engine *e) { return e->plan_hash; }
void bl_set_start(bl_engine *e, double start) {
    e->start = start;
    bl_touch(e);
}
int64_t bl_variables(const bl_engine *e, const bl_variable **variables) {
    *variables = e->variables;
    return e->variable_count;
}

/* A tick beyond this is no exact double, and leaves room to count on. */
static const int64_t LARGEST_SAVED_TICK = 1LL << 53;

/* A saved state: which plan it belongs to, when it was, whether it was initialised, the values. */
typedef struct {
    uint64_t plan_hash;
    int64_t tick, initialised, count;
    double start;
} bl_state_head;

size_t bl_state_size(const bl_engine *e) {
    return sizeof(bl_state_head) + (size_t)e->layout.total * sizeof(double);
}

void bl_save(const bl_engine *e, void *state) {
    const bl_state_head head = {e->plan_hash, e->tick, e->initialised, e->layout.total, e->start};
    memcpy(state, &head, sizeof head);
    memcpy((char *)state + sizeof head, e->values, (size_t)e->layout.total * sizeof(double));
}

int bl_restore(bl_engine *e, const void *state, size_t size) {
    bl_state_head head;
    if (size != bl_state_size(e))
        return bl_fail(e, BL_ERROR_STATE, -1, "a state of this plan has %zu bytes, this one has %zu",
                       bl_state_size(e), size);
    memcpy(&head, state, sizeof head);
    if (head.plan_hash != e->plan_hash || head.count != e->layout.total || head.tick < 0 ||
        head.tick > LARGEST_SAVED_TICK || !isfinite(head.start))
        return bl_fail(e, BL_ERROR_STATE, -1, "the saved state belongs to another plan");
    memcpy(e->values, (const char *)state + sizeof head, (size_t)e->layout.total * sizeof(double));
    e->tick = head.tick;
    e->start = head.start;
    e->initialised = head.initialised != 0;
    bl_touch(e);
    return BL_OK;
}

void bl_close(bl_engine *e) {
    if (!e) return;
    for (int32_t k = 0; e->kernels && k < e->block_count; k++)
        if (e->kernels[k] && e->kernels[k]->close) e->kernels[k]->close(&e->blocks[k]);
    for (bl_chunk *chunk = e->chunks; chunk;) {
        bl_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    free(e);
}
