/* What the files with functions of FMI 3.0 share. */
#ifndef BIELLA_FMI3_CALLS_H
#define BIELLA_FMI3_CALLS_H

#include "fmu/exporter/interface/instance.h"
#include "fmu/fmi3.h"

/* The functions with a row in the table of allowed calls, which is in fmi3.c. */
typedef enum {
    FMI3_SET_DEBUG_LOGGING,
    FMI3_ENTER_INITIALIZATION_MODE,
    FMI3_EXIT_INITIALIZATION_MODE,
    FMI3_ENTER_EVENT_MODE,
    FMI3_TERMINATE,
    FMI3_RESET,
    FMI3_GET,
    FMI3_SET,
    FMI3_GET_FMU_STATE,
    FMI3_SET_FMU_STATE,
    FMI3_FREE_FMU_STATE,
    FMI3_SERIALIZED_FMU_STATE_SIZE,
    FMI3_SERIALIZE_FMU_STATE,
    FMI3_DESERIALIZE_FMU_STATE,
    FMI3_GET_DIRECTIONAL_DERIVATIVE,
    FMI3_GET_ADJOINT_DERIVATIVE,
    FMI3_GET_OUTPUT_DERIVATIVES,
    FMI3_SET_CLOCK,
    FMI3_GET_INTERVAL_DECIMAL,
    FMI3_GET_INTERVAL_FRACTION,
    FMI3_GET_SHIFT_DECIMAL,
    FMI3_GET_SHIFT_FRACTION,
    FMI3_UPDATE_DISCRETE_STATES,
    FMI3_ENTER_STEP_MODE,
    FMI3_DO_STEP,
    FMI3_ENTER_CONTINUOUS_TIME_MODE,
    FMI3_COMPLETED_INTEGRATOR_STEP,
    FMI3_SET_TIME,
    FMI3_SET_CONTINUOUS_STATES,
    FMI3_GET_CONTINUOUS_STATE_DERIVATIVES,
    FMI3_GET_EVENT_INDICATORS,
    FMI3_GET_CONTINUOUS_STATES,
    FMI3_GET_NOMINALS_OF_CONTINUOUS_STATES,
    FMI3_GET_NUMBER_OF_EVENT_INDICATORS,
    FMI3_GET_NUMBER_OF_CONTINUOUS_STATES
} fmi3_call;

/* bl_fmu_enter for FMI 3.0; bl_fmu_of, with a message that `function` is not supported. */
bl_fmu *bl_fmi3_enter(fmi3Instance instance, fmi3_call call);
fmi3Status bl_fmi3_refuse(fmi3Instance instance, const char *function);

/* Whether this is an instance of an FMU with clocks. */
int bl_fmi3_has_clocks(fmi3Instance instance);
/* Fails, unless no variables are given: no variable of this FMU has the type. */
fmi3Status bl_fmi3_refuse_type(fmi3Instance instance, fmi3_call call, size_t reference_count, const char *type);

/* Makes an instance: bl_fmu_create for FMI 3.0. */
bl_fmu *bl_fmi3_create(bl_fmu_kind kind, const bl_fmu_request *request, const char *unsupported);

/* The value reference of time, which is no variable of the plan. */
uint32_t bl_fmi3_time_reference(const bl_fmu *f);

/* The references of all elements of variables, of which there must be `count`; NULL, with a message, if one is unknown or the number is
   another. To be freed. */
uint32_t *bl_fmi3_list_elements(const bl_fmu *f, const fmi3ValueReference references[], size_t reference_count,
                                size_t count);

#endif
