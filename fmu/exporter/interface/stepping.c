/* Steps of co-simulation. */
#include <math.h>

#include "fmu/exporter/interface/instance.h"

bl_fmu_status bl_fmu_check_step(bl_fmu *f, double now, double size) {
    const double reached = bl_time(f->engine), end = now + size;
    if (!(size >= 0.0) || !isfinite(end) || !(fabs(now - reached) <= bl_slack(f->engine, reached))) {
        bl_fmu_log(f, FMU_ERROR, "a step from %.12g by %.12g does not continue at the current time %.12g", now, size,
                   reached);
        f->state = BROKEN;
        return FMU_ERROR;
    }
    if (f->has_stop_time && end > f->stop_time + bl_slack(f->engine, end)) { /* the standards ask for an error here */
        bl_fmu_log(f, FMU_ERROR, "the step to %.12g exceeds the stop time, %.12g", end, f->stop_time);
        f->state = BROKEN;
        return FMU_ERROR;
    }
    /* Before the first tick: with intermediate updates, the engine gets only one tick at a time. */
    return bl_check_run_end(f->engine, end) == BL_OK ? FMU_OK : bl_fmu_fail(f);
}

bl_fmu_status bl_fmu_step(bl_fmu *f, double now, double size) {
    if (bl_fmu_check_step(f, now, size) != FMU_OK) return FMU_ERROR;
    const int status = bl_run_to(f->engine, now + size);
    if (status == BL_STOP) {
        bl_fmu_log(f, FMU_DISCARD, "the model ended the simulation at t = %.9g", bl_time(f->engine));
        f->ended = 1;
        f->state = STEP_FAILED;
        return FMU_DISCARD;
    }
    return status == BL_OK ? FMU_OK : bl_fmu_fail(f);
}

/* Runs to *end, or to an event before it. With intermediate updates, one follows each tick, and it may bring the end forward. The numbers
   are the same: the engine runs tick by tick in any case. */
static int run_with_updates(bl_fmu *f, double begin, double *end, int *at_event) {
    for (;;) {
        const double tick = bl_next_tick_time(f->engine);
        const int is_last = !f->update || tick >= *end - bl_slack(f->engine, *end);
        const double target = is_last ? *end : tick;
        const int status =
            f->undo ? bl_run_to_event(f->engine, target, f->undo, at_event) : bl_run_to(f->engine, target);
        if (status != BL_OK || !f->update) return status;
        if (!f->update(f, begin, end)) return BL_ERROR_INTERRUPT;
        if (*at_event || bl_time(f->engine) >= *end - bl_slack(f->engine, *end)) return BL_OK;
    }
}

bl_fmu_status bl_fmu_step_to_event(bl_fmu *f, double now, double size, bl_fmu_step_result *result) {
    *result = (bl_fmu_step_result){.terminate = f->ended, .reached = bl_time(f->engine)};
    if (bl_fmu_check_step(f, now, size) != FMU_OK) return FMU_ERROR;
    const double end = now + size;
    double last = end;
    int at_event = 0, status = BL_OK;
    if (!f->ended && bl_fmu_check_step_clocks(f, end) != FMU_OK) return FMU_ERROR;
    if (!f->ended) status = run_with_updates(f, now, &last, &at_event);
    if (f->state == BROKEN) return FMU_ERROR; /* by a call in the callback */
    if (status == BL_STOP) {
        bl_fmu_log(f, FMU_OK, "the model ended the simulation at t = %.9g", bl_time(f->engine));
        f->ended = 1;
    } else if (status != BL_OK) {
        return bl_fmu_fail(f);
    }
    result->reached = bl_time(f->engine);
    result->event = at_event;
    result->terminate = f->ended;
    result->early = f->returns_early && result->reached < end - bl_slack(f->engine, end);
    return FMU_OK;
}
