/* Saved states of an instance, in memory and as bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fmu/exporter/interface/instance.h"

typedef struct {
    uint32_t magic;
    int32_t fmu_state, needs_init, ended;
    uint64_t active_clocks;
    uint64_t size; /* of the engine's state, which follows */
} bl_fmu_saved;

static const uint32_t SNAPSHOT_MAGIC = 0xb1e11bu;

/* Of the engine's state; in model exchange, more follows. */
static size_t state_size(const bl_fmu *f) {
    return bl_state_size(f->engine) + (f->kind == MODEL_EXCHANGE ? bl_ode_state_size(f->engine) : 0);
}

static size_t snapshot_size(const bl_fmu *f) { return sizeof(bl_fmu_saved) + state_size(f); }

/* Whether a saved state of the life is one that this instance can be in. */
static int is_known(const bl_fmu *f, int32_t state) {
    return state > 0 && (state & (state - 1)) == 0 && state & f->version->states[f->kind];
}

/* NULL if `state` is not a snapshot of this FMU. */
static bl_fmu_saved *snapshot_of(const bl_fmu *f, void *state) {
    bl_fmu_saved *snapshot = state;
    if (snapshot && snapshot->magic == SNAPSHOT_MAGIC && snapshot->size == state_size(f) &&
        is_known(f, snapshot->fmu_state))
        return snapshot;
    bl_fmu_log(f, FMU_ERROR, "this is not a state of this FMU");
    return NULL;
}

bl_fmu_status bl_fmu_get_state(const bl_fmu *f, void **state) {
    if (!state) return FMU_ERROR;
    bl_fmu_saved *snapshot = *state ? snapshot_of(f, *state) : calloc(1, snapshot_size(f));
    if (!snapshot) return FMU_ERROR;
    snapshot->magic = SNAPSHOT_MAGIC;
    snapshot->fmu_state = (int32_t)f->state;
    snapshot->needs_init = f->needs_init;
    snapshot->ended = f->ended;
    snapshot->active_clocks = f->active_clocks;
    snapshot->size = state_size(f);
    bl_save(f->engine, snapshot + 1);
    if (f->kind == MODEL_EXCHANGE) bl_ode_save(f->engine, (char *)(snapshot + 1) + bl_state_size(f->engine));
    *state = snapshot;
    return FMU_OK;
}

bl_fmu_status bl_fmu_set_state(bl_fmu *f, void *state) {
    const bl_fmu_saved *snapshot = snapshot_of(f, state);
    if (!snapshot) return FMU_ERROR;
    const char *more = (const char *)(snapshot + 1) + bl_state_size(f->engine);
    /* All or nothing: bl_restore changes nothing if it fails, and bl_ode_restore does not fail after the check. */
    if ((f->kind == MODEL_EXCHANGE && bl_ode_check_state(f->engine, more) != BL_OK) ||
        bl_restore(f->engine, snapshot + 1, bl_state_size(f->engine)) != BL_OK ||
        (f->kind == MODEL_EXCHANGE && bl_ode_restore(f->engine, more) != BL_OK)) {
        bl_fmu_log(f, FMU_ERROR, "%s", bl_message(f->engine));
        return FMU_ERROR;
    }
    f->state = (bl_fmu_state)snapshot->fmu_state;
    f->needs_init = snapshot->needs_init;
    f->ended = snapshot->ended;
    f->active_clocks = snapshot->active_clocks;
    return FMU_OK;
}

bl_fmu_status bl_fmu_free_state(const bl_fmu *f, void **state) {
    if (!state || !*state) return FMU_OK;
    bl_fmu_saved *snapshot = snapshot_of(f, *state);
    if (!snapshot) return FMU_ERROR;
    snapshot->magic = 0;
    free(snapshot);
    *state = NULL;
    return FMU_OK;
}

bl_fmu_status bl_fmu_state_bytes(const bl_fmu *f, void *state, size_t *size) {
    if (!size || !snapshot_of(f, state)) return FMU_ERROR;
    *size = snapshot_size(f);
    return FMU_OK;
}

bl_fmu_status bl_fmu_serialize(const bl_fmu *f, void *state, void *bytes, size_t size) {
    const bl_fmu_saved *snapshot = snapshot_of(f, state);
    if (!snapshot || !bytes || size < snapshot_size(f)) {
        bl_fmu_log(f, FMU_ERROR, "a serialized state requires %zu bytes", snapshot_size(f));
        return FMU_ERROR;
    }
    memcpy(bytes, snapshot, snapshot_size(f));
    return FMU_OK;
}

bl_fmu_status bl_fmu_deserialize(const bl_fmu *f, const void *bytes, size_t size, void **state) {
    bl_fmu_saved head;
    if (!bytes || !state || size < snapshot_size(f)) {
        bl_fmu_log(f, FMU_ERROR, "a serialized state has %zu bytes, got %zu", snapshot_size(f), size);
        return FMU_ERROR;
    }
    memcpy(&head, bytes, sizeof head);
    if (head.magic != SNAPSHOT_MAGIC || head.size != state_size(f) || !is_known(f, head.fmu_state)) {
        bl_fmu_log(f, FMU_ERROR, "this is not a serialized state of this FMU");
        return FMU_ERROR;
    }
    bl_fmu_saved *snapshot = calloc(1, snapshot_size(f));
    if (!snapshot) return FMU_ERROR;
    memcpy(snapshot, bytes, snapshot_size(f));
    *state = snapshot;
    return FMU_OK;
}
