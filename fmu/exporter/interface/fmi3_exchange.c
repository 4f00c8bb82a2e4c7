/* Functions of FMI 3.0 for model exchange: FMI's names for those of exchange.c. */
#include "fmu/exporter/interface/fmi3_calls.h"

/* Early return if there is no instance or the call is not allowed now. */
#define ENTER_FMI3_EXCHANGE(call) \
    bl_fmu *f = bl_fmi3_enter(instance, FMI3_##call); \
    if (!f) return fmi3Error;

fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                          fmi3Boolean logging, fmi3InstanceEnvironment environment,
                                          fmi3LogMessageCallback logger) {
    (void)visible;
    const bl_fmu_request request = {.name = name,
                                    .token = token,
                                    .resources = resources,
                                    .logging = logging,
                                    .environment = environment,
                                    .logger = (void (*)(void))logger};
    return bl_fmi3_create(MODEL_EXCHANGE, &request, NULL);
}

fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance instance) {
    ENTER_FMI3_EXCHANGE(ENTER_CONTINUOUS_TIME_MODE)
    return (fmi3Status)bl_fmu_enter_continuous_time(f);
}

fmi3Status fmi3CompletedIntegratorStep(fmi3Instance instance, fmi3Boolean noSetFMUStatePriorToCurrentPoint,
                                       fmi3Boolean *enterEventMode, fmi3Boolean *terminateSimulation) {
    (void)noSetFMUStatePriorToCurrentPoint;
    ENTER_FMI3_EXCHANGE(COMPLETED_INTEGRATOR_STEP)
    int needs_event = 0;
    if (!enterEventMode || !terminateSimulation) {
        bl_fmu_log(f, FMU_ERROR, "a pointer is NULL");
        return fmi3Error;
    }
    const bl_fmu_status status = bl_fmu_complete_step(f, &needs_event);
    *enterEventMode = needs_event != 0;
    *terminateSimulation = fmi3False;
    return (fmi3Status)status;
}

fmi3Status fmi3SetTime(fmi3Instance instance, fmi3Float64 time) {
    ENTER_FMI3_EXCHANGE(SET_TIME)
    return (fmi3Status)bl_fmu_set_time(f, time);
}

fmi3Status fmi3SetContinuousStates(fmi3Instance instance, const fmi3Float64 x[], size_t count) {
    ENTER_FMI3_EXCHANGE(SET_CONTINUOUS_STATES)
    return (fmi3Status)bl_fmu_set_states(f, x, count);
}

fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance instance, fmi3Float64 dx[], size_t count) {
    ENTER_FMI3_EXCHANGE(GET_CONTINUOUS_STATE_DERIVATIVES)
    return (fmi3Status)bl_fmu_get_state_derivatives(f, dx, count);
}

fmi3Status fmi3GetEventIndicators(fmi3Instance instance, fmi3Float64 indicators[], size_t count) {
    ENTER_FMI3_EXCHANGE(GET_EVENT_INDICATORS)
    return (fmi3Status)bl_fmu_get_indicators(f, indicators, count);
}

fmi3Status fmi3GetContinuousStates(fmi3Instance instance, fmi3Float64 x[], size_t count) {
    ENTER_FMI3_EXCHANGE(GET_CONTINUOUS_STATES)
    return (fmi3Status)bl_fmu_get_states(f, x, count);
}

fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance instance, fmi3Float64 nominals[], size_t count) {
    ENTER_FMI3_EXCHANGE(GET_NOMINALS_OF_CONTINUOUS_STATES)
    return (fmi3Status)bl_fmu_get_nominals(f, nominals, count);
}

fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance instance, size_t *count) {
    ENTER_FMI3_EXCHANGE(GET_NUMBER_OF_EVENT_INDICATORS)
    if (!count) return fmi3Error;
    *count = (size_t)f->indicator_count;
    return fmi3OK;
}

fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance instance, size_t *count) {
    ENTER_FMI3_EXCHANGE(GET_NUMBER_OF_CONTINUOUS_STATES)
    if (!count) return fmi3Error;
    *count = (size_t)f->state_count;
    return fmi3OK;
}
