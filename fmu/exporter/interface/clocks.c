/* Clocks: the importing tool activates the sampled rates of the diagram, in event mode, at their ticks.
 *
 * The ticks of these periodic clocks are known to the tool, so a tick that it misses, and an activation beside a tick, are errors. All
 * clocks that tick at one instant are activated together: the blocks of a tick run in one order, whatever their rates. */
#include "fmu/exporter/interface/instance.h"

static uint64_t clock_bit(int32_t clock) { return UINT64_C(1) << clock; }

/* Clocks that tick now, and have not been taken. */
static uint64_t due_clocks(const bl_fmu *f) {
    uint64_t due = 0;
    for (int32_t k = 0; k < bl_clock_count(f->engine); k++)
        if (bl_clock_is_due(f->engine, k)) due |= clock_bit(k);
    return due;
}

double bl_fmu_clock_interval(const bl_fmu *f, int32_t clock) {
    return (double)bl_clock_period(f->engine, clock) * bl_step(f->engine);
}

uint32_t bl_fmu_clock_reference(const bl_fmu *f, int32_t clock) { return (uint32_t)(f->variable_count + 1 + clock); }

/* The next tick of a clock that is not the present time. */
static double next_tick(const bl_fmu *f, int32_t clock) {
    const double next = bl_clock_next(f->engine, clock), now = bl_fmu_time(f);
    return next > now + bl_slack(f->engine, now) ? next : next + bl_fmu_clock_interval(f, clock);
}

bl_fmu_status bl_fmu_activate_clock(bl_fmu *f, int32_t clock) {
    if (bl_clock_is_due(f->engine, clock)) {
        f->active_clocks |= clock_bit(clock);
        return FMU_OK;
    }
    bl_fmu_log(f, FMU_ERROR,
               "the clock with value reference %u (every %.9g s) does not tick at t = %.12g, or has been active there: "
               "it ticks next at t = %.12g",
               bl_fmu_clock_reference(f, clock), bl_fmu_clock_interval(f, clock), bl_fmu_time(f), next_tick(f, clock));
    return FMU_ERROR;
}

int bl_fmu_clock_is_active(const bl_fmu *f, int32_t clock) { return (f->active_clocks & clock_bit(clock)) != 0; }

bl_fmu_status bl_fmu_check_active_clocks(const bl_fmu *f) {
    const uint64_t missing = due_clocks(f) & ~f->active_clocks;
    for (int32_t k = 0; k < bl_clock_count(f->engine); k++)
        if (missing & clock_bit(k)) {
            bl_fmu_log(
                f, FMU_ERROR,
                "the clock with value reference %u (every %.9g s) ticks at t = %.12g and is not active: activate "
                "all clocks that tick there with fmi3SetClock before fmi3UpdateDiscreteStates",
                bl_fmu_clock_reference(f, k), bl_fmu_clock_interval(f, k), bl_fmu_time(f));
            return FMU_ERROR;
        }
    return FMU_OK;
}

bl_fmu_status bl_fmu_take_clocks(bl_fmu *f) {
    const int status = f->active_clocks ? bl_take_hits(f->engine) : BL_OK;
    if (status == BL_STOP) {
        bl_fmu_log(f, FMU_OK, "the model ends the simulation at t = %.9g", bl_time(f->engine));
        f->ended = 1;
    } else if (status != BL_OK) {
        return bl_fmu_fail(f);
    }
    f->active_clocks = 0;
    return FMU_OK;
}

bl_fmu_status bl_fmu_check_step_clocks(bl_fmu *f, double end) {
    for (int32_t k = 0; k < bl_clock_count(f->engine); k++) {
        const int is_due = bl_clock_is_due(f->engine, k);
        const double tick = is_due ? bl_time(f->engine) : bl_clock_next(f->engine, k);
        if (!is_due && end <= tick + bl_slack(f->engine, tick)) continue;
        bl_fmu_log(f, FMU_ERROR,
                   "the step to t = %.12g misses the tick of the clock with value reference %u (every %.9g s) at t = "
                   "%.12g: end a step there, and activate the clock in event mode",
                   end, bl_fmu_clock_reference(f, k), bl_fmu_clock_interval(f, k), tick);
        f->state = BROKEN;
        return FMU_ERROR;
    }
    return FMU_OK;
}
