/* Model exchange: the importing tool integrates the states.
 *
 * An evaluation that fails while the tool integrates, such as one far beyond where the solution leads, is discarded: the tool may try
 * a shorter step. Any other failure is an error. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmu/exporter/interface/instance.h"

static const double DEFAULT_TOLERANCE = 1e-6;
/* States may drift from their constraints by this many relative tolerances, and by LARGEST_DRIFT, before an event projects them: it
   restarts the tool's solver, which costs accuracy too. */
static const double DRIFT_TOLERANCES = 100.0, LARGEST_DRIFT = 1e-3;

bl_fmu_status bl_fmu_fail_evaluation(bl_fmu *f) {
    if (f->state != CONTINUOUS_TIME) return bl_fmu_fail(f);
    const char *path = bl_block_path(f->engine, bl_failed_block(f->engine));
    bl_fmu_log(f, FMU_DISCARD, "t = %.9g: %s%s%s", bl_ode_time(f->engine), path, *path ? ": " : "",
               bl_message(f->engine));
    return FMU_DISCARD;
}

/* States, derivatives and event indicators are variables too, after those of the plan. */
bl_fmu_status bl_fmu_open_exchange(bl_fmu *f) {
    bl_layout layout;
    bl_get_layout(f->engine, &layout);
    const int64_t n = layout.states, m = bl_ode_indicator_count(f->engine), first = f->variable_count;
    if (bl_ode_open(f->engine) != BL_OK) {
        const char *path = bl_block_path(f->engine, bl_failed_block(f->engine));
        bl_fmu_log(f, FMU_ERROR, "%s%s%s", path, *path ? ": " : "", bl_message(f->engine));
        return FMU_ERROR;
    }
    bl_variable *all = calloc((size_t)(first + 2 * n + m) + 1, sizeof *all);
    f->work = calloc((size_t)(n + m) + 1, sizeof *f->work);
    f->all_variables = all;
    if (!all || !f->work) {
        bl_fmu_log(f, FMU_ERROR, "no memory");
        return FMU_ERROR;
    }
    if (first > 0) memcpy(all, f->variables, (size_t)first * sizeof *all);
    for (int64_t i = 0; i < n; i++) {
        all[first + i] = (bl_variable){
            .slot = layout.parameters + layout.signals + i, .kind = BL_REAL, .causality = FMU_STATE, .extent = 1};
        all[first + n + i] =
            (bl_variable){.slot = layout.total + i, .kind = BL_REAL, .causality = FMU_DERIVATIVE, .extent = 1};
    }
    for (int64_t k = 0; k < m; k++)
        all[first + 2 * n + k] = (bl_variable){.slot = k, .kind = BL_REAL, .causality = FMU_INDICATOR, .extent = 1};
    f->variables = all;
    f->variable_count = first + 2 * n + m;
    f->state_count = n;
    f->indicator_count = m;
    return FMU_OK;
}

bl_fmu_status bl_fmu_start_exchange(bl_fmu *f) { return bl_ode_start(f->engine) == BL_OK ? FMU_OK : bl_fmu_fail(f); }

/* Reads a state, a derivative or an event indicator. */
bl_fmu_status bl_fmu_get_exchanged(bl_fmu *f, const bl_variable *variable, double *value) {
    const int before = (f->state & BEFORE_STEPS) != 0, exchanges = f->kind == MODEL_EXCHANGE && !before;
    int status = BL_OK;
    if (before && bl_fmu_prepare(f) != FMU_OK) return FMU_ERROR;
    if (variable->causality == FMU_STATE) {
        *value = f->values[variable->slot];
        return FMU_OK;
    }
    if (variable->causality == FMU_INDICATOR) {
        status = f->state == BROKEN ? BL_OK : bl_ode_indicators(f->engine, f->work + f->state_count);
        *value = f->work[f->state_count + variable->slot];
    } else {
        if (f->state != BROKEN)
            status = exchanges ? bl_ode_derivatives(f->engine, f->work) : bl_derivatives(f->engine, f->work);
        bl_layout layout;
        bl_get_layout(f->engine, &layout);
        *value = f->work[variable->slot - layout.total];
    }
    return status == BL_OK ? FMU_OK : bl_fmu_fail_evaluation(f);
}

double bl_fmu_time(const bl_fmu *f) {
    return f->kind == MODEL_EXCHANGE && !(f->state & BEFORE_STEPS) ? bl_ode_time(f->engine) : bl_time(f->engine);
}

/* Whether an array of `wanted` elements was passed. */
static bl_fmu_status check_count(const bl_fmu *f, const void *array, size_t count, int64_t wanted, const char *what) {
    if ((int64_t)count == wanted && (array || count == 0)) return FMU_OK;
    bl_fmu_log(f, FMU_ERROR, "this FMU has %lld %s, got an array of %zu", (long long)wanted, what, array ? count : 0);
    return FMU_ERROR;
}

bl_fmu_status bl_fmu_set_time(bl_fmu *f, double time) {
    if (bl_ode_set_time(f->engine, time) == BL_OK) return FMU_OK;
    bl_fmu_log(f, FMU_ERROR, "%s", bl_message(f->engine));
    return FMU_ERROR;
}

bl_fmu_status bl_fmu_set_states(bl_fmu *f, const double x[], size_t count) {
    if (check_count(f, x, count, f->state_count, "continuous states") != FMU_OK) return FMU_ERROR;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i])) {
            bl_fmu_log(f, FMU_DISCARD, "state %zu is not finite", i);
            return FMU_DISCARD;
        }
    bl_ode_set_states(f->engine, x);
    return FMU_OK;
}

/* The standard sets all states together; some tools set one after another. */
bl_fmu_status bl_fmu_set_one_state(bl_fmu *f, const bl_variable *variable, double value) {
    double *x = f->work;
    memcpy(x, bl_ode_states(f->engine), (size_t)f->state_count * sizeof(double));
    x[&f->values[variable->slot] - bl_ode_states(f->engine)] = value;
    return bl_fmu_set_states(f, x, (size_t)f->state_count);
}

bl_fmu_status bl_fmu_get_states(bl_fmu *f, double x[], size_t count) {
    if (check_count(f, x, count, f->state_count, "continuous states") != FMU_OK) return FMU_ERROR;
    if (f->state & BEFORE_STEPS && bl_fmu_prepare(f) != FMU_OK) return FMU_ERROR;
    if (count > 0) memcpy(x, bl_ode_states(f->engine), count * sizeof(double));
    return FMU_OK;
}

bl_fmu_status bl_fmu_get_nominals(bl_fmu *f, double nominals[], size_t count) {
    if (check_count(f, nominals, count, f->state_count, "continuous states") != FMU_OK) return FMU_ERROR;
    if (count > 0) bl_ode_nominals(f->engine, nominals);
    return FMU_OK;
}

bl_fmu_status bl_fmu_get_state_derivatives(bl_fmu *f, double dx[], size_t count) {
    if (check_count(f, dx, count, f->state_count, "continuous states") != FMU_OK) return FMU_ERROR;
    if (f->state & BEFORE_STEPS && bl_fmu_prepare(f) != FMU_OK) return FMU_ERROR;
    const int status =
        f->state & BEFORE_STEPS ? bl_derivatives(f->engine, f->work) : bl_ode_derivatives(f->engine, f->work);
    if (status != BL_OK) return bl_fmu_fail_evaluation(f);
    if (count > 0) memcpy(dx, f->work, count * sizeof(double));
    return FMU_OK;
}

bl_fmu_status bl_fmu_get_indicators(bl_fmu *f, double indicators[], size_t count) {
    double *work = f->work + f->state_count;
    if (check_count(f, indicators, count, f->indicator_count, "event indicators") != FMU_OK) return FMU_ERROR;
    if (f->state & BEFORE_STEPS && bl_fmu_prepare(f) != FMU_OK) return FMU_ERROR;
    if (bl_ode_indicators(f->engine, work) != BL_OK) return bl_fmu_fail_evaluation(f);
    if (count > 0) memcpy(indicators, work, count * sizeof(double));
    return FMU_OK;
}

bl_fmu_status bl_fmu_complete_step(bl_fmu *f, int *needs_event) {
    const double tolerance = f->tolerance > 0.0 ? f->tolerance : DEFAULT_TOLERANCE;
    const double drift = fmin(DRIFT_TOLERANCES * tolerance, LARGEST_DRIFT);
    return bl_ode_complete_step(f->engine, drift, needs_event) == BL_OK ? FMU_OK : bl_fmu_fail(f);
}

bl_fmu_status bl_fmu_enter_event(bl_fmu *f) {
    if (bl_ode_enter_event(f->engine) != BL_OK) return bl_fmu_fail(f);
    f->state = EVENT_MODE;
    return FMU_OK;
}

bl_fmu_status bl_fmu_take_event(bl_fmu *f, bl_ode_outcome *outcome) {
    if (bl_ode_event(f->engine, outcome) != BL_OK) return bl_fmu_fail(f);
    if (outcome->ended && !f->ended)
        bl_fmu_log(f, FMU_OK, "the model ends the simulation at t = %.9g", bl_time(f->engine));
    f->ended = outcome->ended;
    f->active_clocks = 0;
    return FMU_OK;
}

bl_fmu_status bl_fmu_enter_continuous_time(bl_fmu *f) {
    if (bl_ode_continue(f->engine) != BL_OK) return bl_fmu_fail(f);
    f->state = CONTINUOUS_TIME;
    return FMU_OK;
}
