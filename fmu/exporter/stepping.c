/* Steps of co-simulation. */
#include <math.h>

#include "fmu/exporter/instance.h"

bl_fmu_status bl_fmu_check_step(bl_fmu *f, double now, double size) {
    const double reached = bl_time(f->engine), end = now + size, slack = bl_slack(f->engine, end);
    if (!(size >= 0.0) || !isfinite(end) || !(fabs(now - reached) <= slack)) {
        bl_fmu_log(f, FMU_ERROR, "a step from %.12g by %.12g does not continue at the current time %.12g", now, size,
                   reached);
        f->state = BROKEN;
        return FMU_ERROR;
    }
    if (f->has_stop_time && end > f->stop_time + slack) { /* the standards ask for an error here */
        bl_fmu_log(f, FMU_ERROR, "the step to %.12g exceeds the stop time, %.12g", end, f->stop_time);
        f->state = BROKEN;
        return FMU_ERROR;
    }
    return FMU_OK;
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
