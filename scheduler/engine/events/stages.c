/* Which blocks the stages of a step evaluate.
 *
 * While a step is integrated with kept modes, the outputs of some blocks with discontinuities are constant: those of a Relay, a Compare, a
 * Step. They are not evaluated in stages, nor is what only they depend on: their crossing functions are evaluated at the end of the step,
 * with all others. The rest is what derivatives depend on. Feedthrough is not known here: a block depends on all of its inputs. */
#include "scheduler/engine/engine.h"

typedef struct {
    const bl_engine *e;
    const int32_t *maker;   /* of each value, 1 + the block that makes it; 0: none */
    const int32_t *loop_of; /* of each block, 1 + the loop that it is in */
    bool *needed;
    int32_t *open; /* needed blocks whose sources are still to be found */
    int64_t open_count;
} bl_stage_search;

static void need_block(bl_stage_search *s, int32_t block) {
    if (s->needed[block]) return;
    s->needed[block] = true;
    s->open[s->open_count++] = block;
}

static bool is_constant_in_step(const bl_stage_search *s, int32_t block) {
    return s->e->kernels[block]->constant_in_mode && s->e->blocks[block].modes.mode && s->loop_of[block] == 0;
}

static void need_sources(bl_stage_search *s, const bl_block *b) {
    for (int32_t k = 0; k < b->u_count; k++)
        for (int32_t i = 0; i < b->u_width[k]; i++) {
            const int32_t from = s->maker[b->u[k] - s->e->values + i] - 1;
            if (from >= 0 && !is_constant_in_step(s, from)) need_block(s, from);
        }
}

/* Whether there is anything to leave out, and the search is short: ports of a damaged plan may overlap. */
static bool can_leave_out(const bl_engine *e) {
    enum { LARGEST_WIDTH = 1 << 24 };
    int64_t width = 0;
    bool any = false;
    for (int32_t n = 0; n < e->block_count; n++) {
        const bl_block *b = &e->blocks[n];
        any = any || (e->kernels[n]->constant_in_mode && b->modes.mode);
        for (int32_t k = 0; k < b->u_count; k++) width += b->u_width[k];
        for (int32_t k = 0; k < b->y_count; k++) width += b->y_width[k];
    }
    return any && width <= LARGEST_WIDTH;
}

int bl_find_stage_blocks(bl_engine *e, bool *needed) {
    if (!can_leave_out(e)) {
        for (int32_t n = 0; n < e->block_count; n++) needed[n] = true;
        return BL_OK;
    }
    int32_t *maker = bl_allocate(e, e->layout.total, sizeof(int32_t)),
            *loop_of = bl_allocate(e, e->block_count, sizeof(int32_t)),
            *open = bl_allocate(e, e->block_count, sizeof(int32_t));
    bool *opened = bl_allocate(e, e->loop_count, sizeof(bool)); /* loops whose blocks are all needed */
    if (!maker || !loop_of || !open || !opened) return BL_ERROR_MEMORY;
    for (int32_t n = 0; n < e->block_count; n++)
        for (int32_t k = 0; k < e->blocks[n].y_count; k++)
            for (int32_t i = 0; i < e->blocks[n].y_width[k]; i++) maker[e->blocks[n].y[k] - e->values + i] = n + 1;
    for (int32_t n = 0; n < e->loop_count; n++)
        for (int64_t c = 0; c < e->loops[n].body.call_count; c++)
            loop_of[e->loops[n].body.calls[c].block->index] = n + 1;
    bl_stage_search s = {e, maker, loop_of, needed, open, 0};
    for (int64_t c = 0; c < e->derivatives.call_count; c++) need_sources(&s, e->derivatives.calls[c].block);
    while (s.open_count > 0) {
        const int32_t block = open[--s.open_count], loop = loop_of[block] - 1;
        need_sources(&s, &e->blocks[block]);
        if (loop < 0 || opened[loop]) continue;
        opened[loop] = true;
        for (int64_t c = 0; c < e->loops[loop].body.call_count; c++)
            need_block(&s, e->loops[loop].body.calls[c].block->index);
    }
    return BL_OK;
}
