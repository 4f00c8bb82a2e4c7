/* Probes: wrappers around a block's operations, in place of these wherever the engine calls them.
 *
 * A wrapper reaches the probe through the engine, and the engine through the block's pointer to the engine's host. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/realtime/loop/clock.h"
#include "scheduler/engine/engine.h"
#include "scheduler/realtime/loop/realtime.h"

enum { LARGEST_OVERRIDES = 1024 };

typedef struct {
    int64_t slot;
    double value;
    int32_t block;
} bl_override;

struct bl_probe {
    const bl_kernel **kernels; /* of each block, as the engine had them */
    bl_kernel *wrapped;        /* of each block */
    int32_t *override_counts;  /* likewise */
    bl_override overrides[LARGEST_OVERRIDES];
    int32_t override_count;
    bool profile;
    int64_t *spent;            /* of each block, ns in this tick; -1: it did not run */
    bl_histogram *times;
};

static const bl_engine *engine_of(const bl_block *b) {
    return (const bl_engine *)((uintptr_t)b->host - offsetof(bl_engine, host));
}

static bl_probe *probe_of(const bl_block *b) { return engine_of(b)->probe; }

static int64_t start_watch(const bl_probe *p) { return p->profile ? bl_clock_now() : 0; }

static void stop_watch(bl_probe *p, const bl_block *b, int64_t began) {
    if (!p->profile) return;
    int64_t *spent = &p->spent[b->index];
    *spent = (*spent < 0 ? 0 : *spent) + bl_clock_now() - began;
}

static void write_overrides(const bl_probe *p, const bl_block *b, double *values) {
    for (int32_t k = 0; k < p->override_count; k++)
        if (p->overrides[k].block == b->index) values[p->overrides[k].slot] = p->overrides[k].value;
}

static int run_timed(bl_block *b, double t, bl_operation run) {
    bl_probe *p = probe_of(b);
    const int64_t began = start_watch(p);
    const int status = run(b, t);
    stop_watch(p, b, began);
    return status;
}

static int probed_output(bl_block *b, double t) {
    const bl_engine *e = engine_of(b);
    const bl_probe *p = e->probe;
    const int status = run_timed(b, t, p->kernels[b->index]->output);
    if (p->override_counts[b->index]) write_overrides(p, b, e->values);
    return status;
}

static int probed_derivative(bl_block *b, double t) {
    return run_timed(b, t, probe_of(b)->kernels[b->index]->derivative);
}
static int probed_update(bl_block *b, double t) { return run_timed(b, t, probe_of(b)->kernels[b->index]->update); }
static int probed_project(bl_block *b, double t) { return run_timed(b, t, probe_of(b)->kernels[b->index]->project); }

static int probed_advance(bl_block *b, double t, double dt) {
    bl_probe *p = probe_of(b);
    const int64_t began = start_watch(p);
    const int status = p->kernels[b->index]->advance(b, t, dt);
    stop_watch(p, b, began);
    return status;
}

static void replace_calls(const bl_calls *calls, int32_t block, bl_operation run) {
    for (int64_t c = 0; c < calls->call_count; c++)
        if (calls->calls[c].block->index == block) calls->calls[c].run = run;
}

/* Has the engine call the operations of `kernel` wherever it calls those of a block. */
static void use_kernel(bl_engine *e, int32_t block, const bl_kernel *kernel) {
    e->kernels[block] = kernel;
    replace_calls(&e->major.calls, block, kernel->output);
    replace_calls(&e->minor.calls, block, kernel->output);
    replace_calls(&e->stage_program.calls, block, kernel->output);
    replace_calls(&e->crossing_program.calls, block, kernel->output);
    for (int32_t k = 0; k < e->loop_count; k++) replace_calls(&e->loops[k].body, block, kernel->output);
    for (int32_t k = 0; k < e->coupling_count; k++)
        replace_calls(&e->couplings[k].program.calls, block, kernel->output);
    replace_calls(&e->derivatives, block, kernel->derivative);
    replace_calls(&e->termination_checks, block, kernel->update);
    replace_calls(&e->updates, block, kernel->update);
    replace_calls(&e->projects, block, kernel->project);
}

static void wrap(bl_engine *e, int32_t block) {
    bl_probe *p = e->probe;
    const bl_kernel *kernel = p->kernels[block];
    bl_kernel *wrapped = &p->wrapped[block];
    *wrapped = *kernel;
    if (kernel->output) wrapped->output = probed_output;
    /* To first order an override is the override: it has to be computed as ever. */
    if (p->override_counts[block]) wrapped->directional_derivative = NULL;
    if (p->profile && kernel->derivative) wrapped->derivative = probed_derivative;
    if (p->profile && kernel->update) wrapped->update = probed_update;
    if (p->profile && kernel->project) wrapped->project = probed_project;
    if (p->profile && kernel->advance) wrapped->advance = probed_advance;
    use_kernel(e, block, wrapped);
}

static void free_probe(bl_probe *p) {
    free(p->kernels);
    free(p->wrapped);
    free(p->override_counts);
    free(p->spent);
    free(p->times);
    free(p);
}

int bl_probe_open(bl_engine *e, int32_t profile) {
    if (e->probe) return bl_fail(e, BL_ERROR_ARGUMENT, -1, "this engine already has a probe");
    const size_t n = e->block_count > 0 ? (size_t)e->block_count : 1;
    bl_probe *p = calloc(1, sizeof *p);
    if (!p) return bl_fail(e, BL_ERROR_MEMORY, -1, "out of memory for a probe");
    p->profile = profile != 0;
    p->kernels = calloc(n, sizeof *p->kernels);
    p->wrapped = calloc(n, sizeof *p->wrapped);
    p->override_counts = calloc(n, sizeof *p->override_counts);
    p->spent = profile ? calloc(n, sizeof *p->spent) : NULL;
    p->times = profile ? calloc(n, sizeof *p->times) : NULL;
    if (!p->kernels || !p->wrapped || !p->override_counts || (profile && (!p->spent || !p->times))) {
        free_probe(p);
        return bl_fail(e, BL_ERROR_MEMORY, -1, "out of memory for a probe of %d blocks", (int)e->block_count);
    }
    memcpy(p->kernels, e->kernels, (size_t)e->block_count * sizeof *p->kernels);
    e->probe = p;
    for (int32_t k = 0; p->profile && k < e->block_count; k++) {
        p->spent[k] = -1;
        wrap(e, k);
    }
    return BL_OK;
}

void bl_probe_close(bl_engine *e) {
    bl_probe *p = e->probe;
    if (!p) return;
    for (int32_t k = 0; k < e->block_count; k++)
        if (e->kernels[k] != p->kernels[k]) use_kernel(e, k, p->kernels[k]);
    e->probe = NULL;
    free_probe(p);
}

const bl_histogram *bl_probe_times(const bl_engine *e, int32_t block) {
    if (!e->probe || !e->probe->profile || block < 0 || block >= e->block_count) return NULL;
    return &e->probe->times[block];
}

static int32_t block_that_gives(const bl_engine *e, int64_t slot) {
    const double *value = e->values + slot;
    for (int32_t k = 0; k < e->block_count; k++)
        for (int32_t port = 0; port < e->blocks[k].y_count; port++)
            if (value >= e->blocks[k].y[port] && value < e->blocks[k].y[port] + e->blocks[k].y_width[port]) return k;
    return -1;
}

static int32_t find_override(const bl_probe *p, int64_t slot) {
    for (int32_t k = 0; k < p->override_count; k++)
        if (p->overrides[k].slot == slot) return k;
    return -1;
}

/* Also where the block is not due now, or stands still in a subsystem that is off and holds what it had. */
static void write_at_once(bl_engine *e, int64_t slot, double value) {
    e->values[slot] = value;
    for (int32_t g = 0; g < e->guard_count; g++) {
        const bl_guard *guard = &e->guards[g];
        const double *place = e->values + slot;
        if (place >= guard->signals && place < guard->signals + guard->signal_count)
            guard->memory[BL_GUARD_MEMORY + (place - guard->signals)] = value;
    }
}

int bl_probe_override(bl_engine *e, int64_t slot, double value) {
    bl_probe *p = e->probe;
    if (!p || slot < e->layout.parameters || slot >= e->layout.parameters + e->layout.signals) return BL_ERROR_ARGUMENT;
    int32_t k = find_override(p, slot);
    if (k < 0) {
        const int32_t block = block_that_gives(e, slot);
        if (block < 0 || p->override_count == LARGEST_OVERRIDES) return BL_ERROR_ARGUMENT;
        k = p->override_count++;
        p->overrides[k] = (bl_override){slot, value, block};
        if (p->override_counts[block]++ == 0) wrap(e, block);
    }
    p->overrides[k].value = value;
    write_at_once(e, slot, value);
    bl_touch(e);
    return BL_OK;
}

void bl_probe_release(bl_engine *e, int64_t slot) {
    bl_probe *p = e->probe;
    const int32_t k = p ? find_override(p, slot) : -1;
    if (k < 0) return;
    const int32_t block = p->overrides[k].block;
    p->overrides[k] = p->overrides[--p->override_count];
    if (--p->override_counts[block] == 0) {
        if (p->profile) wrap(e, block);
        else use_kernel(e, block, p->kernels[block]);
    }
    bl_touch(e);
}

void bl_probe_end_tick(bl_engine *e) {
    bl_probe *p = e->probe;
    if (!p || !p->profile) return;
    for (int32_t k = 0; k < e->block_count; k++) {
        if (p->spent[k] >= 0) bl_histogram_add(&p->times[k], p->spent[k]);
        p->spent[k] = -1;
    }
}
