/* Conditional subsystems. A guard is decided with the outputs of a tick and committed with its updates.
 *
 * A restart has to show in the outputs of the same tick, yet outputs must stay repeatable. So a guard
 * that restarts its blocks first keeps a shadow of their states; deciding again at the same tick puts the
 * shadow back before anything else, and committing the tick forgets it. In the same way it keeps the signals
 * of its blocks as they were committed: those that are not computed at a tick must hold these, not what an
 * earlier try at the same tick, or the last minor step, has left. */
#include <string.h>

#include "scheduler/engine/engine.h"

static bool has_edge(const bl_guard *g, double now) {
    if (g->edge == BL_EDGE_LEVEL) return now > 0.0;
    if (g->memory[BL_GUARD_SEEN] == 0.0) return false;
    const double before = g->memory[BL_GUARD_BEFORE];
    const bool rising = before <= 0.0 && now > 0.0, falling = before > 0.0 && now <= 0.0;
    return (g->edge != BL_EDGE_FALLING && rising) || (g->edge != BL_EDGE_RISING && falling);
}

static double *shadow_of(const bl_guard *g) { return g->memory + BL_GUARD_MEMORY + g->signal_count; }

static void keep_shadow(bl_guard *g) {
    double *shadow = shadow_of(g);
    memcpy(shadow, g->x, (size_t)g->x_count * sizeof(double));
    memcpy(shadow + g->x_count, g->z, (size_t)g->z_count * sizeof(double));
    g->memory[BL_GUARD_SHADOWED] = 1.0;
}

static void put_back_shadow(bl_guard *g) {
    const double *shadow = shadow_of(g);
    memcpy(g->x, shadow, (size_t)g->x_count * sizeof(double));
    memcpy(g->z, shadow + g->x_count, (size_t)g->z_count * sizeof(double));
}

/* Cleared too, so that equal states are equal bytes. */
static void forget_shadow(bl_guard *g) {
    memset(shadow_of(g), 0, (size_t)(g->x_count + g->z_count) * sizeof(double));
    g->memory[BL_GUARD_SHADOWED] = 0.0;
}

void bl_guard_init(bl_guard *g) {
    memset(g->memory, 0, BL_GUARD_MEMORY * sizeof(double));
    forget_shadow(g);
}

static int restart_blocks(bl_engine *e, bl_guard *g, double t) {
    for (int32_t i = 0; i < e->guard_count; i++) {
        bl_guard *inner = &e->guards[i];
        if (inner->memory >= g->z && inner->memory < g->z + g->z_count) bl_guard_init(inner);
    }
    for (int32_t k = g->block_first; k < g->block_first + g->block_count; k++) {
        if (!e->kernels[k]->init) continue;
        const int status = e->kernels[k]->init(&e->blocks[k], t);
        if (status != BL_OK) return bl_fail_block(e, status, &e->blocks[k], "the block failed to restart");
    }
    return BL_OK;
}

int bl_guard_decide(bl_engine *e, bl_guard *g, double t) {
    double *m = g->memory;
    if (m[BL_GUARD_SHADOWED] != 0.0) {
        put_back_shadow(g);
        forget_shadow(g);
    }
    memcpy(g->signals, m + BL_GUARD_MEMORY, (size_t)g->signal_count * sizeof(double));
    bool active = bl_active(e, g->parent), restart = false;
    bool fresh = g->parent >= 0 && e->guards[g->parent].memory[BL_GUARD_FRESH] != 0.0;
    if (active && g->kind == BL_GUARD_ENABLE) {
        active = *g->control > 0.0;
        restart = active && g->resets && m[BL_GUARD_SEEN] != 0.0 && m[BL_GUARD_WAS_ACTIVE] == 0.0;
    } else if (active && g->kind == BL_GUARD_TRIGGER) {
        active = has_edge(g, *g->control);
    } else if (active) {
        restart = has_edge(g, *g->control);
    }
    fresh = active && (fresh || restart || m[BL_GUARD_HAS_RUN] == 0.0);
    m[BL_GUARD_ACTIVE] = active ? 1.0 : 0.0;
    m[BL_GUARD_FRESH] = fresh ? 1.0 : 0.0;
    if (!restart) return BL_OK;
    keep_shadow(g);
    return restart_blocks(e, g, t);
}

/* Comes before the updates and the integration, whose minor steps overwrite the signals of the tick. */
void bl_guard_commit(const bl_engine *e, bl_guard *g) {
    double *m = g->memory;
    memcpy(m + BL_GUARD_MEMORY, g->signals, (size_t)g->signal_count * sizeof(double));
    if (m[BL_GUARD_SHADOWED] != 0.0) forget_shadow(g);
    if (!bl_active(e, g->parent)) return; /* it stands still, like all else in there */
    m[BL_GUARD_BEFORE] = *g->control;
    m[BL_GUARD_SEEN] = 1.0;
    m[BL_GUARD_WAS_ACTIVE] = m[BL_GUARD_ACTIVE];
    if (m[BL_GUARD_ACTIVE] != 0.0) m[BL_GUARD_HAS_RUN] = 1.0;
}
