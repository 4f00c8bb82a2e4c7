/* Values of variables: which may be read and set, and when. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "fmu/exporter/interface/instance.h"

const bl_variable *bl_fmu_find(const bl_fmu *f, uint32_t reference, int32_t kind, int32_t or_kind) {
    if ((int64_t)reference < f->variable_count) {
        const bl_variable *variable = &f->variables[reference];
        if (variable->kind == kind || variable->kind == or_kind) return variable;
    }
    bl_fmu_log(f, FMU_ERROR, "unknown value reference %u", reference);
    return NULL;
}

bl_fmu_status bl_fmu_check_arrays(const bl_fmu *f, const void *a, size_t count, const void *b) {
    if (count == 0 || (a && b)) return FMU_OK;
    bl_fmu_log(f, FMU_ERROR, "an array pointer is NULL");
    return FMU_ERROR;
}

int bl_fmu_is_intermediate(const bl_fmu *f, const bl_variable *variable) {
    if (variable->kind != BL_REAL) return 0;
    if (variable->causality == BL_INPUT) return 1;
    return (variable->causality == BL_OUTPUT || variable->causality == BL_LOCAL) &&
           bl_is_continuous(f->engine, variable->slot);
}

/* Whether a variable may be accessed now; in intermediate update mode not all may. */
static bl_fmu_status check_access(const bl_fmu *f, const bl_variable *variable, int sets) {
    if (f->state != INTERMEDIATE || (bl_fmu_is_intermediate(f, variable) && !(sets && !f->accepts_inputs)))
        return FMU_OK;
    bl_fmu_log(f, FMU_ERROR,
               bl_fmu_is_intermediate(f, variable)
                   ? "variable %lld cannot be set at the end of the step: no intermediate values are requested there"
                   : "variable %lld cannot be accessed in intermediate update mode: it is not continuous",
               (long long)(variable - f->variables));
    return FMU_ERROR;
}

bl_fmu_status bl_fmu_get(bl_fmu *f, const bl_variable *variable, double *value) {
    if (check_access(f, variable, 0) != FMU_OK) return FMU_ERROR;
    if (variable->causality > BL_LOCAL) return bl_fmu_get_exchanged(f, variable, value);
    if (f->state != BROKEN && (variable->causality == BL_OUTPUT || variable->causality == BL_LOCAL)) {
        if (f->state & BEFORE_STEPS && bl_fmu_prepare(f) != FMU_OK) return FMU_ERROR;
        const int exchanges = f->kind == MODEL_EXCHANGE && !(f->state & BEFORE_STEPS);
        if ((exchanges ? bl_ode_outputs(f->engine) : bl_outputs(f->engine)) != BL_OK) return bl_fmu_fail_evaluation(f);
    }
    *value = f->values[variable->slot];
    return FMU_OK;
}

/* Whether this is the start value in the description. A limit that is switched off starts infinite: tools that set every variable to its
   start value must be able to set that one too. */
static int is_start(const bl_fmu *f, const bl_variable *variable, double value) {
    const double start = bl_first_value(f->engine, variable->slot);
    return value == start || (isnan(value) && isnan(start));
}

bl_fmu_status bl_fmu_set(bl_fmu *f, const bl_variable *variable, double value) {
    const int is_parameter = variable->causality == BL_FIXED_PARAMETER || variable->causality == BL_TUNABLE_PARAMETER;
    if (check_access(f, variable, 1) != FMU_OK) return FMU_ERROR;
    if (variable->causality == FMU_STATE && f->state == CONTINUOUS_TIME)
        return bl_fmu_set_one_state(f, variable, value);
    const int allowed = variable->causality == BL_INPUT || variable->causality == BL_TUNABLE_PARAMETER ||
                        (variable->causality == BL_FIXED_PARAMETER && f->state & BEFORE_STEPS);
    if (!allowed) {
        bl_fmu_log(f, FMU_ERROR,
                   is_parameter ? "this parameter is fixed after initialization"
                   : variable->causality > BL_LOCAL
                       ? "states are computed by initialization, and set in continuous-time mode only"
                       : "an output cannot be set");
        return FMU_ERROR;
    }
    if (!isfinite(value) && !is_start(f, variable, value)) {
        bl_fmu_log(f, FMU_DISCARD, "a value is not finite, and is not the start value of variable %lld",
                   (long long)(variable - f->variables));
        return FMU_DISCARD;
    }
    /* Importers set inputs at every step. One that stays as it is must not end a step of the solver that leads past the tick or
       fail. */
    if (memcmp(&f->values[variable->slot], &value, sizeof value) == 0) return FMU_OK;
    if (f->state == CONTINUOUS_TIME && is_parameter) {
        bl_fmu_log(f, FMU_ERROR, "variable %lld is a parameter: it changes in event mode only",
                   (long long)(variable - f->variables));
        return FMU_ERROR;
    }
    f->values[variable->slot] = value;
    if (is_parameter) bl_touch(f->engine);
    else bl_touch_inputs(f->engine);
    if (is_parameter && f->state & BEFORE_STEPS) f->needs_init = 1;
    return FMU_OK;
}

int32_t bl_fmu_to_int32(double value) {
    if (!(value > -2147483648.0)) return INT32_MIN;
    if (!(value < 2147483647.0)) return INT32_MAX;
    return (int32_t)value;
}

bl_fmu_status bl_fmu_check_int64(const bl_fmu *f, int64_t value) {
    const int64_t limit = INT64_C(1) << 53;
    if (value >= -limit && value <= limit) return FMU_OK;
    bl_fmu_log(f, FMU_DISCARD, "the integer %lld is not exact as a signal: its magnitude exceeds 2^53",
               (long long)value);
    return FMU_DISCARD;
}
