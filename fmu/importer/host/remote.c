/* FMUs for model exchange in another process: the operations of exchange.c are passed on, with the values of the block.
 *
 * Here, the block has its states and its memory, so that they are saved, rolled back and integrated as without; instants, the noting of
 * inputs and descriptions of events need no FMU. A function of the host passes on what does. There, in an engine with this block alone,
 * bl_exchange_call executes it, with the same values. */
#include "fmu/importer/host/exchange.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/engine/engine.h"

int bl_attach_remote(bl_engine *e, int32_t block, const char *file, bl_remote_call call) {
    if (block < 0 || block >= e->block_count || e->kernels[block]->last_error != bl_fmu_last_error ||
        !e->kernels[block]->tick_event)
        return bl_fail(e, BL_ERROR_ARGUMENT, -1, "block %d cannot hold an FMU for model exchange", (int)block);
    bl_block *b = &e->blocks[block];
    bl_fmu_close(b);
    bl_fmu_host *f = calloc(1, sizeof *f);
    if (f) {
        f->fmi = strncmp(e->kernels[block]->name, "fmu3", 4) == 0 ? &bl_fmi3_calls : &bl_fmi2_calls;
        f->control = bl_get_float_control();
        f->remote = call;
        f->flags = b->i[HOST_FLAGS];
        bl_fmu_list_host(f);
        b->external = f;
        f->exchange = bl_exchange_new(e, b);
        const size_t size = strlen(file) + 1;
        f->file = malloc(size);
        if (f->file) memcpy(f->file, file, size);
    }
    if (f && f->exchange && f->file) return BL_OK;
    bl_fmu_close(b);
    return bl_fail(e, BL_ERROR_MEMORY, block, "out of memory for the FMU");
}

static bl_fmu_host *exchange_host(const bl_engine *e, int32_t block) {
    bl_fmu_host *f = bl_fmu_host_of(e, block);
    return f && f->exchange ? f : NULL;
}

void bl_exchange_inputs(const bl_engine *e, int32_t block, int32_t *kinds) {
    const bl_fmu_host *f = exchange_host(e, block);
    for (int32_t k = 0; f && k < f->exchange->input_count; k++) kinds[k] = (int32_t)f->exchange->kinds[k];
}

void bl_exchange_mirror(bl_engine *e, int32_t block, const int32_t *kinds, int32_t coupled) {
    const bl_fmu_host *f = exchange_host(e, block);
    for (int32_t k = 0; f && k < f->exchange->input_count; k++) f->exchange->kinds[k] = (bl_exchange_input)kinds[k];
    e->states_are_coupled = coupled != 0;
}

int32_t bl_exchange_is_coupled(const bl_engine *e) { return e->states_are_coupled; }

void bl_remote_note(bl_engine *e, int32_t block, int32_t ended, const char *reason) {
    bl_fmu_host *f = bl_fmu_host_of(e, block);
    if (!f) return;
    f->ended = ended;
    if (reason) snprintf(f->reason, sizeof f->reason, "%s", reason);
}

int bl_exchange_remote(bl_block *b, bl_fmu_host *f, bl_op op, double t, double *out) {
    f->reason[0] = '\0';
    return f->remote(b->index, (int32_t)op, t, out);
}

/* ---- in the other process */

int bl_exchange_call(bl_engine *e, int32_t block, int32_t op, double t, double *out, int32_t *ended) {
    bl_fmu_host *f = exchange_host(e, block);
    if (!f) return bl_fail(e, BL_ERROR_ARGUMENT, -1, "no FMU for model exchange");
    const bl_kernel *kernel = e->kernels[block];
    bl_block *b = &e->blocks[block];
    const bl_operation run = op == BL_OP_INIT                  ? kernel->init
                             : op == BL_OP_OUTPUT              ? kernel->output
                             : op == BL_OP_DERIVATIVE          ? kernel->derivative
                             : op == BL_OP_UPDATE              ? kernel->update
                             : op == BL_OP_PROJECT             ? kernel->project
                             : op == BL_OP_EXIT_INITIALIZATION ? kernel->exit_initialization
                             : op == BL_OP_CROSSINGS           ? kernel->crossings
                             : op == BL_OP_EVENT               ? kernel->event
                                                               : NULL;
    if (!run) return bl_fail(e, BL_ERROR_ARGUMENT, -1, "no operation %d to call", (int)op);
    double *const dx = b->dx;
    const bl_modes modes = b->modes;
    const int32_t count = b->crossing_count;
    if (op == BL_OP_DERIVATIVE) b->dx = out;
    if (op == BL_OP_CROSSINGS) {
        b->modes = (bl_modes){out, out, &e->decision};
        b->crossing_count = b->i[HOST_INDICATORS];
    }
    const int status = run(b, t);
    b->dx = dx;
    b->modes = modes;
    b->crossing_count = count;
    *ended = f->ended;
    return status >= BL_OK && status != BL_STOP ? status : bl_fail(e, status, block, "the block failed");
}
