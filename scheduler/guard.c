/* Conditional subsystems. A guard is decided with the outputs of a tick and committed with its updates.
 *
 * A restart has to show in the outputs of the same tick, yet outputs must stay repeatable. So a guard
 * that restarts its blocks first keeps a shadow of their states; deciding again at the same tick puts the
 * shadow back before anything else, and committing the tick forgets it. */
#include <string.h>

#include "scheduler/engine.h"

void bl_guard_init(bl_guard *g) {
    memset(g->memory, 0, BL_GUARD_MEMORY * sizeof(double));
}

static bool has_edge(const bl_guard *g, double now) {
    if (g->edge == BL_EDGE_LEVEL) return now > 0.0;
    if (g->memory[BL_GUARD_SEEN] == 0.0) return false;
    const double before = g->memory[BL_GUARD_BEFORE];
    const bool rising = before <= 0.0 && now > 0.0, falling = before > 0.0 && now <= 0.0;
    return (g->edge != BL_EDGE_FALLING && rising) || (g->edge != BL_EDGE_RISING && falling);
}

static void copy_states(const bl_guard *g, double *shadow, bool keep) {
    const size_t x_size = (size_t)g->x_count * sizeof(double);
    const size_t z_size = (size_t)g->z_count * sizeof(double);
    if (keep) {
        memcpy(shadow, g->x, x_size);
        memcpy(shadow + g->x_count, g->z, z_size);
    } else {
        memcpy(g->x, shadow, x_size);
        memcpy(g->z, shadow + g->x_count, z_size);
    }
}

static int restart_blocks(bl_engine *e, bl_guard *g, double t) {
    for (int32_t i = 0; i < e->guard_count; i++) {
        bl_guard *inner = &e->guards[i];
        if (inner->memory >= g->z && inner->memory < g->z + g->z_count)
            bl_guard_init(inner);
    }
    for (int32_t k = g->block_first; k < g->block_first + g->block_count; k++) {
        if (!e->kernels[k]->init) continue;
        const int status = e->kernels[k]->init(&e->blocks[k], t);
        if (status != BL_OK) return bl_fail(e, status, k, "the block failed to restart");
    }
    return BL_OK;
}

int bl_guard_decide(bl_engine *e, bl_guard *g, double t) {
    double *m = g->memory, *shadow = m + BL_GUARD_MEMORY;
    if (m[BL_GUARD_SHADOWED] != 0.0) {
        copy_states(g, shadow, false);
        m[BL_GUARD_SHADOWED] = 0.0;
    }
    bool active = bl_active(e, g->parent), restart = false;
    if (active && g->kind == BL_GUARD_ENABLE) {
        active = *g->control > 0.0;
        restart = active && g->resets && m[BL_GUARD_SEEN] != 0.0 && m[BL_GUARD_WAS_ACTIVE] == 0.0;
    } else if (active && g->kind == BL_GUARD_TRIGGER) {
        active = has_edge(g, *g->control);
    } else if (active) {
        restart = has_edge(g, *g->control);
    }
    m[BL_GUARD_ACTIVE] = active ? 1.0 : 0.0;
    if (!restart) return BL_OK;
    copy_states(g, shadow, true);
    m[BL_GUARD_SHADOWED] = 1.0;
    return restart_blocks(e, g, t);
}

void bl_guard_commit(bl_guard *g) {
    g->memory[BL_GUARD_BEFORE] = *g->control;
    g->memory[BL_GUARD_WAS_ACTIVE] = g->memory[BL_GUARD_ACTIVE];
    g->memory[BL_GUARD_SEEN] = 1.0;
    g->memory[BL_GUARD_SHADOWED] = 0.0;
}
