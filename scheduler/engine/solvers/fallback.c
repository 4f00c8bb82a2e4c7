/* What the solver could not do as asked, in words: for warnings at the end of a run. */
#include <stdio.h>

#include "scheduler/engine/solvers/solver.h"

static void describe_unlocated(bl_engine *e) {
    const double count = e->counters[BL_COUNT_UNLOCATED], first = e->counters[BL_COUNT_UNLOCATED_TIME];
    const double noted = e->counters[BL_COUNT_CHATTERING]; /* from a saved state, which may hold anything */
    const int32_t block = noted >= 0.0 && noted < (double)e->block_count ? (int32_t)noted : -1;
    const char *plural = count == 1.0 ? "" : "s";
    const int32_t fast = noted <= -2.0 && noted > -2.0 - (double)e->block_count ? (int32_t)(-2.0 - noted) : -1;
    if (fast >= 0)
        snprintf(e->message, sizeof e->message,
                 "events were not located in %.0f tick%s, first at t = %.9g s: the input of `%s` varies too fast for "
                 "internal steps of 1/64 of a tick. The rest of such a tick was integrated with the resolution of a "
                 "tick. Use a smaller step",
                 count, plural, first, bl_block_path(e, fast));
    else if (block < 0)
        snprintf(
            e->message, sizeof e->message,
            "events were not located in %.0f tick%s, first at t = %.9g s: the states could not be integrated to the "
            "border of a "
            "mode, because values beyond it are not finite or because of max_steps = %lld. The rest of such a tick was "
            "integrated with the resolution of a tick. Check the equations beyond the border, or use a smaller step",
            count, plural, first, (long long)e->max_steps);
    else if (e->kernels[block]->advance)
        snprintf(e->message, sizeof e->message,
                 "events were not located in %.0f tick%s, first at t = %.9g s in the internal solver of `%s`. Use a "
                 "smaller step",
                 count, plural, first, bl_block_path(e, block));
    else
        snprintf(
            e->message, sizeof e->message,
            "%.0f tick%s had more than max_events = %lld events, first at t = %.9g s, most of them of `%s`. The rest "
            "of such a "
            "tick was integrated with the resolution of a tick. If the block chatters, give it hysteresis; else use a "
            "larger max_events or a smaller step",
            count, plural, (long long)e->max_events, first, bl_block_path(e, block));
}

static void describe_uncontrolled(bl_engine *e) {
    const double count = e->counters[BL_COUNT_UNCONTROLLED];
    snprintf(
        e->message, sizeof e->message,
        "%.0f tick%s needed more than max_steps = %lld internal steps, first at t = %.9g s. The rest of such a tick "
        "was "
        "integrated in one step without error control: the tolerance does not hold. Use %sa smaller step, a larger "
        "tolerance, or a larger max_steps",
        count, count == 1.0 ? "" : "s", (long long)e->max_steps, e->counters[BL_COUNT_UNCONTROLLED_TIME],
        e->solver == BL_DOPRI5 ? "the solver radau5 if the diagram is stiff, " : "");
}

static void describe_stiff(bl_engine *e) {
    snprintf(e->message, sizeof e->message,
             "the diagram is stiff, as dopri5 found first at t = %.9g s: its steps are limited by stability, not by "
             "the tolerance. "
             "The solver radau5 needs fewer",
             e->solver_memory[BL_SOLVER_STIFF_TIME]);
}

int32_t bl_next_fallback(bl_engine *e, int32_t after) {
    for (int32_t kind = after < 0 ? 0 : after + 1; kind < BL_FALLBACKS; kind++) {
        if (kind == BL_FALLBACK_UNLOCATED && e->counters[BL_COUNT_UNLOCATED] > 0.0) describe_unlocated(e);
        else if (kind == BL_FALLBACK_UNCONTROLLED && e->counters[BL_COUNT_UNCONTROLLED] > 0.0) describe_uncontrolled(e);
        else if (kind == BL_FALLBACK_STIFF && bl_has_solver_memory(e) && e->solver_memory[BL_SOLVER_STIFF] > 0.0)
            describe_stiff(e);
        else continue;
        return kind;
    }
    return -1;
}
