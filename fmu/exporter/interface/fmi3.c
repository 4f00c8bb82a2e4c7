/* The engine as an FMI 3.0 co-simulation FMU: FMI's names for the functions of instance.h, and when each may be called.
 *
 * An instance's life: instantiated → initialization mode → (event mode → ) step mode ⇄ event mode → terminated. Without event mode
 * events are handled within fmi3DoStep, as in FMI 2.0. With it, and with early return, a step ends at an event that was located; discrete
 * inputs that are set then act at once, because outputs are evaluated when they are read. Blocks with a sample period are no reason
 * for event mode: what happens at a tick is committed by fmi3DoStep. In an FMU with clocks it is committed in event mode, where the
 * importing tool activates them. */
#include "fmu/exporter/interface/fmi3_calls.h"

#include <math.h>
#include <stdlib.h>

enum {
    FMI3_STATES = INSTANTIATED | INITIALIZING | EVENT_MODE | STEPPING | TERMINATED | BROKEN,
    FMI3_INITIALIZED = EVENT_MODE | STEPPING,
    FMI3_READABLE = FMI3_STATES | INTERMEDIATE,
    FMI3_SETTABLE = BEFORE_STEPS | FMI3_INITIALIZED | INTERMEDIATE,
    FMI3_TIMING = INITIALIZING | EVENT_MODE,
    FMI3_EXCHANGING = EVENT_MODE | CONTINUOUS_TIME,
    FMI3_EXCHANGE_STATES = INSTANTIATED | INITIALIZING | FMI3_EXCHANGING | TERMINATED | BROKEN
};

/* Which function may be called when: FMI 3.0, 2.3 and 4.2. After an error, values may still be read. */
static const bl_fmu_call FMI3_CALLS[] = {
    [FMI3_SET_DEBUG_LOGGING] = {"fmi3SetDebugLogging", {FMI3_STATES, FMI3_EXCHANGE_STATES}},
    [FMI3_ENTER_INITIALIZATION_MODE] = {"fmi3EnterInitializationMode", {INSTANTIATED, INSTANTIATED}},
    [FMI3_EXIT_INITIALIZATION_MODE] = {"fmi3ExitInitializationMode", {INITIALIZING, INITIALIZING}},
    [FMI3_ENTER_EVENT_MODE] = {"fmi3EnterEventMode", {STEPPING, CONTINUOUS_TIME}},
    [FMI3_TERMINATE] = {"fmi3Terminate", {FMI3_INITIALIZED, FMI3_EXCHANGING}},
    [FMI3_RESET] = {"fmi3Reset", {FMI3_STATES, FMI3_EXCHANGE_STATES}},
    [FMI3_GET] = {"fmi3Get{VariableType}", {FMI3_READABLE, FMI3_EXCHANGE_STATES}},
    [FMI3_SET] = {"fmi3Set{VariableType}", {FMI3_SETTABLE, BEFORE_STEPS | FMI3_EXCHANGING}},
    [FMI3_GET_FMU_STATE] = {"fmi3GetFMUState", {FMI3_STATES, FMI3_EXCHANGE_STATES}},
    [FMI3_SET_FMU_STATE] = {"fmi3SetFMUState", {FMI3_STATES, FMI3_EXCHANGE_STATES}},
    [FMI3_FREE_FMU_STATE] = {"fmi3FreeFMUState", {FMI3_STATES, FMI3_EXCHANGE_STATES}},
    [FMI3_SERIALIZED_FMU_STATE_SIZE] = {"fmi3SerializedFMUStateSize", {FMI3_STATES, FMI3_EXCHANGE_STATES}},
    [FMI3_SERIALIZE_FMU_STATE] = {"fmi3SerializeFMUState", {FMI3_STATES, FMI3_EXCHANGE_STATES}},
    [FMI3_DESERIALIZE_FMU_STATE] = {"fmi3DeserializeFMUState", {FMI3_STATES, FMI3_EXCHANGE_STATES}},
    [FMI3_GET_DIRECTIONAL_DERIVATIVE] = {"fmi3GetDirectionalDerivative",
                                         {INITIALIZING | FMI3_INITIALIZED | TERMINATED,
                                          INITIALIZING | FMI3_EXCHANGING | TERMINATED}},
    [FMI3_GET_ADJOINT_DERIVATIVE] = {"fmi3GetAdjointDerivative",
                                     {INITIALIZING | FMI3_INITIALIZED | TERMINATED,
                                      INITIALIZING | FMI3_EXCHANGING | TERMINATED}},
    [FMI3_GET_OUTPUT_DERIVATIVES] = {"fmi3GetOutputDerivatives", {STEPPING | INTERMEDIATE | TERMINATED}},
    [FMI3_SET_CLOCK] = {"fmi3SetClock", {EVENT_MODE, EVENT_MODE}},
    [FMI3_GET_INTERVAL_DECIMAL] = {"fmi3GetIntervalDecimal", {FMI3_TIMING, FMI3_TIMING}},
    [FMI3_GET_INTERVAL_FRACTION] = {"fmi3GetIntervalFraction", {FMI3_TIMING, FMI3_TIMING}},
    [FMI3_GET_SHIFT_DECIMAL] = {"fmi3GetShiftDecimal", {INITIALIZING, INITIALIZING}},
    [FMI3_GET_SHIFT_FRACTION] = {"fmi3GetShiftFraction", {INITIALIZING, INITIALIZING}},
    [FMI3_UPDATE_DISCRETE_STATES] = {"fmi3UpdateDiscreteStates", {EVENT_MODE, EVENT_MODE}},
    [FMI3_ENTER_STEP_MODE] = {"fmi3EnterStepMode", {EVENT_MODE}},
    [FMI3_DO_STEP] = {"fmi3DoStep", {STEPPING}},
    [FMI3_ENTER_CONTINUOUS_TIME_MODE] = {"fmi3EnterContinuousTimeMode", {0, EVENT_MODE}},
    [FMI3_COMPLETED_INTEGRATOR_STEP] = {"fmi3CompletedIntegratorStep", {0, CONTINUOUS_TIME}},
    [FMI3_SET_TIME] = {"fmi3SetTime", {0, FMI3_EXCHANGING}},
    [FMI3_SET_CONTINUOUS_STATES] = {"fmi3SetContinuousStates", {0, CONTINUOUS_TIME}},
    [FMI3_GET_CONTINUOUS_STATE_DERIVATIVES] = {"fmi3GetContinuousStateDerivatives",
                                               {0, INITIALIZING | FMI3_EXCHANGING | TERMINATED}},
    [FMI3_GET_EVENT_INDICATORS] = {"fmi3GetEventIndicators", {0, INITIALIZING | FMI3_EXCHANGING | TERMINATED}},
    [FMI3_GET_CONTINUOUS_STATES] = {"fmi3GetContinuousStates", {0, INITIALIZING | FMI3_EXCHANGING | TERMINATED}},
    [FMI3_GET_NOMINALS_OF_CONTINUOUS_STATES] = {"fmi3GetNominalsOfContinuousStates",
                                                {0, BEFORE_STEPS | FMI3_EXCHANGING | TERMINATED}},
    [FMI3_GET_NUMBER_OF_EVENT_INDICATORS] = {"fmi3GetNumberOfEventIndicators",
                                             {0, BEFORE_STEPS | FMI3_EXCHANGING | TERMINATED}},
    [FMI3_GET_NUMBER_OF_CONTINUOUS_STATES] = {"fmi3GetNumberOfContinuousStates",
                                              {0, BEFORE_STEPS | FMI3_EXCHANGING | TERMINATED}},
};

static void send_fmi3(const bl_fmu *f, bl_fmu_status status, const char *category, const char *text) {
    ((fmi3LogMessageCallback)f->logger)(f->environment, (fmi3Status)status, category, text);
}

static const bl_fmu_version FMI3 = {.calls = FMI3_CALLS,
                                    .states = {[CO_SIMULATION] = FMI3_STATES, [MODEL_EXCHANGE] = FMI3_EXCHANGE_STATES},
                                    .logs_discard = 0,
                                    .send = send_fmi3};

bl_fmu *bl_fmi3_create(bl_fmu_kind kind, const bl_fmu_request *request, const char *unsupported) {
    return bl_fmu_create(&FMI3, kind, request, "instantiation token", unsupported);
}

bl_fmu *bl_fmi3_enter(fmi3Instance instance, fmi3_call call) { return bl_fmu_enter(instance, &FMI3, (int)call); }

fmi3Status bl_fmi3_refuse(fmi3Instance instance, const char *function) {
    const bl_fmu *f = bl_fmu_of(instance, &FMI3);
    if (f) bl_fmu_log(f, FMU_ERROR, "%s is not supported", function);
    return fmi3Error;
}

int bl_fmi3_has_clocks(fmi3Instance instance) {
    const bl_fmu *f = bl_fmu_of(instance, &FMI3);
    return f && bl_clock_count(f->engine) > 0;
}

/* Early return if there is no instance or the call is not allowed now. */
#define ENTER_FMI3(call) \
    bl_fmu *f = bl_fmi3_enter(instance, FMI3_##call); \
    if (!f) return fmi3Error;

const char *fmi3GetVersion(void) { return fmi3Version; }

fmi3Status fmi3SetDebugLogging(fmi3Instance instance, fmi3Boolean on, size_t count, const fmi3String categories[]) {
    ENTER_FMI3(SET_DEBUG_LOGGING)
    return (fmi3Status)bl_fmu_set_logging(f, on, count, categories);
}

/* Intermediate update mode: continuous outputs are those of the tick that was reached, and continuous inputs act from there on. */
static int update_fmi3(bl_fmu *f, double begin, double *end) {
    const double now = bl_time(f->engine);
    const int is_end = now >= *end - bl_slack(f->engine, *end), can_return = f->returns_early && !is_end;
    fmi3Boolean requested = fmi3False;
    fmi3Float64 time = now;
    f->state = INTERMEDIATE;
    f->accepts_inputs = !is_end;
    ((fmi3IntermediateUpdateCallback)f->callback)(f->environment, now, !is_end, fmi3True, fmi3True, can_return,
                                                  &requested, &time);
    if (f->state != INTERMEDIATE) return 0; /* an evaluation has failed */
    f->state = STEPPING;
    if (!requested) return 1;
    if (!can_return) {
        bl_fmu_log(f, FMU_WARNING, "at t = %.9g the importer requests an early return although canReturnEarly is false",
                   now);
        return 1;
    }
    if (!(time >= begin) || !(time <= *end)) {
        bl_fmu_log(f, FMU_WARNING, "earlyReturnTime %.12g is not within the step from %.12g to %.12g: it ends at %.12g",
                   time, begin, *end, now);
        time = now;
    }
    *end = time > now ? time : now;
    return 1;
}

/* Whether the variables that the importer requires in intermediate updates can be accessed there; a message if not. */
static int check_intermediate(const bl_fmu *f, const fmi3ValueReference references[], size_t count) {
    if (bl_fmu_check_arrays(f, references, count, references) != FMU_OK) return 0;
    for (size_t k = 0; k < count; k++) {
        if (references[k] == bl_fmi3_time_reference(f)) continue;
        const int is_known = (int64_t)references[k] < f->variable_count && f->variables[references[k]].extent > 0;
        if (is_known && bl_fmu_is_intermediate(f, &f->variables[references[k]])) continue;
        bl_fmu_log(f, FMU_ERROR,
                   "value reference %u cannot be accessed in intermediate updates: it is no continuous "
                   "input or output",
                   references[k]);
        return 0;
    }
    return 1;
}

fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                         fmi3Boolean logging, fmi3Boolean eventModeUsed, fmi3Boolean earlyReturnAllowed,
                                         const fmi3ValueReference requiredIntermediateVariables[],
                                         size_t nRequiredIntermediateVariables, fmi3InstanceEnvironment environment,
                                         fmi3LogMessageCallback logger,
                                         fmi3IntermediateUpdateCallback intermediateUpdate) {
    (void)visible;
    const bl_fmu_request request = {.name = name,
                                    .token = token,
                                    .resources = resources,
                                    .logging = logging,
                                    .environment = environment,
                                    .logger = (void (*)(void))logger};
    bl_fmu *f = bl_fmi3_create(CO_SIMULATION, &request, NULL);
    if (!f) return NULL;
    if (!check_intermediate(f, requiredIntermediateVariables, nRequiredIntermediateVariables)) {
        bl_fmu_free(f);
        return NULL;
    }
    if (intermediateUpdate) {
        f->update = update_fmi3;
        f->callback = (void (*)(void))intermediateUpdate;
    }
    if (bl_clock_count(f->engine) > 0 && !eventModeUsed) {
        bl_fmu_log(f, FMU_ERROR, "this FMU has clocks: they require event mode, eventModeUsed = true");
        bl_fmu_free(f);
        return NULL;
    }
    f->uses_events = eventModeUsed;
    f->returns_early = earlyReturnAllowed;
    if (eventModeUsed && earlyReturnAllowed && !(f->undo = malloc(bl_state_size(f->engine)))) {
        bl_fmu_free(f);
        return NULL;
    }
    return f;
}

void fmi3FreeInstance(fmi3Instance instance) {
    bl_fmu *f = bl_fmu_of(instance, &FMI3);
    if (f && f->state == INTERMEDIATE)
        bl_fmu_log(f, FMU_ERROR, "fmi3FreeInstance is not allowed in the state 'intermediate update mode'");
    else if (f) bl_fmu_free(f);
}

fmi3Status fmi3EnterInitializationMode(fmi3Instance instance, fmi3Boolean toleranceDefined, fmi3Float64 tolerance,
                                       fmi3Float64 startTime, fmi3Boolean stopTimeDefined, fmi3Float64 stopTime) {
    ENTER_FMI3(ENTER_INITIALIZATION_MODE)
    if (bl_fmu_set_experiment(f, startTime, stopTimeDefined, stopTime) != FMU_OK) return fmi3Error;
    f->tolerance = toleranceDefined ? tolerance : 0.0; /* in co-simulation the plan has its own */
    f->state = INITIALIZING;
    return fmi3OK;
}

fmi3Status fmi3ExitInitializationMode(fmi3Instance instance) {
    ENTER_FMI3(EXIT_INITIALIZATION_MODE)
    return (fmi3Status)bl_fmu_initialize(f, f->uses_events || f->kind == MODEL_EXCHANGE ? EVENT_MODE : STEPPING);
}

fmi3Status fmi3EnterEventMode(fmi3Instance instance) {
    ENTER_FMI3(ENTER_EVENT_MODE)
    if (f->kind == MODEL_EXCHANGE) return (fmi3Status)bl_fmu_enter_event(f);
    if (!f->uses_events) {
        bl_fmu_log(f, FMU_ERROR, "fmi3EnterEventMode is not allowed: the instance was made with eventModeUsed = false");
        return fmi3Error;
    }
    f->state = EVENT_MODE;
    return fmi3OK;
}

/* One pass ends the event. In co-simulation, the engine has changed discrete states in fmi3DoStep. */
fmi3Status fmi3UpdateDiscreteStates(fmi3Instance instance, fmi3Boolean *discreteStatesNeedUpdate,
                                    fmi3Boolean *terminateSimulation, fmi3Boolean *nominalsOfContinuousStatesChanged,
                                    fmi3Boolean *valuesOfContinuousStatesChanged, fmi3Boolean *nextEventTimeDefined,
                                    fmi3Float64 *nextEventTime) {
    ENTER_FMI3(UPDATE_DISCRETE_STATES)
    if (!discreteStatesNeedUpdate || !terminateSimulation || !nominalsOfContinuousStatesChanged ||
        !valuesOfContinuousStatesChanged || !nextEventTimeDefined || !nextEventTime) {
        bl_fmu_log(f, FMU_ERROR, "a pointer is NULL");
        return fmi3Error;
    }
    bl_ode_outcome outcome = {.next_time = INFINITY};
    if (bl_fmu_check_active_clocks(f) != FMU_OK) return fmi3Error;
    bl_fmu_status status = FMU_OK;
    if (f->kind == MODEL_EXCHANGE) status = bl_fmu_take_event(f, &outcome);
    else if (bl_outputs(f->engine) != BL_OK) status = bl_fmu_fail(f);
    else status = bl_fmu_take_clocks(f);
    if (status != FMU_OK) return (fmi3Status)status;
    *discreteStatesNeedUpdate = *nominalsOfContinuousStatesChanged = fmi3False;
    *terminateSimulation = f->ended != 0;
    *valuesOfContinuousStatesChanged = outcome.states_changed != 0;
    *nextEventTimeDefined = isfinite(outcome.next_time) != 0;
    *nextEventTime = outcome.next_time;
    return fmi3OK;
}

fmi3Status fmi3EnterStepMode(fmi3Instance instance) {
    ENTER_FMI3(ENTER_STEP_MODE)
    f->state = STEPPING;
    return fmi3OK;
}

fmi3Status fmi3DoStep(fmi3Instance instance, fmi3Float64 now, fmi3Float64 size,
                      fmi3Boolean noSetFMUStatePriorToCurrentPoint, fmi3Boolean *eventHandlingNeeded,
                      fmi3Boolean *terminateSimulation, fmi3Boolean *earlyReturn, fmi3Float64 *lastSuccessfulTime) {
    (void)noSetFMUStatePriorToCurrentPoint;
    ENTER_FMI3(DO_STEP)
    if (!eventHandlingNeeded || !terminateSimulation || !earlyReturn || !lastSuccessfulTime) {
        bl_fmu_log(f, FMU_ERROR, "a pointer is NULL");
        return fmi3Error;
    }
    if (size == 0.0) size = NAN; /* FMI 3.0 has no steps of length 0 */
    bl_fmu_step_result result;
    const bl_fmu_status status = bl_fmu_step_to_event(f, now, size, &result);
    *eventHandlingNeeded = result.event != 0;
    *terminateSimulation = result.terminate != 0;
    *earlyReturn = result.early != 0;
    *lastSuccessfulTime = result.reached;
    return (fmi3Status)status;
}

fmi3Status fmi3Terminate(fmi3Instance instance) {
    ENTER_FMI3(TERMINATE)
    return (fmi3Status)bl_fmu_terminate(f);
}

fmi3Status fmi3Reset(fmi3Instance instance) {
    ENTER_FMI3(RESET)
    return (fmi3Status)bl_fmu_reset(f);
}

fmi3Status fmi3GetFMUState(fmi3Instance instance, fmi3FMUState *state) {
    ENTER_FMI3(GET_FMU_STATE)
    return (fmi3Status)bl_fmu_get_state(f, state);
}

fmi3Status fmi3SetFMUState(fmi3Instance instance, fmi3FMUState state) {
    ENTER_FMI3(SET_FMU_STATE)
    return (fmi3Status)bl_fmu_set_state(f, state);
}

fmi3Status fmi3FreeFMUState(fmi3Instance instance, fmi3FMUState *state) {
    ENTER_FMI3(FREE_FMU_STATE)
    return (fmi3Status)bl_fmu_free_state(f, state);
}

fmi3Status fmi3SerializedFMUStateSize(fmi3Instance instance, fmi3FMUState state, size_t *size) {
    ENTER_FMI3(SERIALIZED_FMU_STATE_SIZE)
    return (fmi3Status)bl_fmu_state_bytes(f, state, size);
}

fmi3Status fmi3SerializeFMUState(fmi3Instance instance, fmi3FMUState state, fmi3Byte bytes[], size_t size) {
    ENTER_FMI3(SERIALIZE_FMU_STATE)
    return (fmi3Status)bl_fmu_serialize(f, state, bytes, size);
}

fmi3Status fmi3DeserializeFMUState(fmi3Instance instance, const fmi3Byte bytes[], size_t size, fmi3FMUState *state) {
    ENTER_FMI3(DESERIALIZE_FMU_STATE)
    return (fmi3Status)bl_fmu_deserialize(f, bytes, size, state);
}

typedef bl_fmu_status (*fmi3_differentiate)(bl_fmu *f, const uint32_t unknowns[], size_t unknown_count,
                                            const uint32_t knowns[], size_t known_count, const double seed[],
                                            double sensitivity[]);

/* Partial derivatives of the elements of variables: `unknown_size` and `known_size` of them. */
static fmi3Status get_fmi3_derivative(bl_fmu *f, fmi3_differentiate compute, const fmi3ValueReference unknowns[],
                                      size_t unknown_count, size_t unknown_size, const fmi3ValueReference knowns[],
                                      size_t known_count, size_t known_size, const double seed[],
                                      double sensitivity[]) {
    uint32_t *to = bl_fmi3_list_elements(f, unknowns, unknown_count, unknown_size);
    uint32_t *from = to ? bl_fmi3_list_elements(f, knowns, known_count, known_size) : NULL;
    bl_fmu_status status = FMU_ERROR;
    if (from) status = compute(f, to, unknown_size, from, known_size, seed, sensitivity);
    free(from);
    free(to);
    return (fmi3Status)status;
}

fmi3Status fmi3GetDirectionalDerivative(fmi3Instance instance, const fmi3ValueReference unknowns[],
                                        size_t unknown_count, const fmi3ValueReference knowns[], size_t known_count,
                                        const fmi3Float64 seed[], size_t seed_count, fmi3Float64 sensitivity[],
                                        size_t sensitivity_count) {
    ENTER_FMI3(GET_DIRECTIONAL_DERIVATIVE)
    return get_fmi3_derivative(f, bl_fmu_directional, unknowns, unknown_count, sensitivity_count, knowns, known_count,
                               seed_count, seed, sensitivity);
}

fmi3Status fmi3GetAdjointDerivative(fmi3Instance instance, const fmi3ValueReference unknowns[], size_t unknown_count,
                                    const fmi3ValueReference knowns[], size_t known_count, const fmi3Float64 seed[],
                                    size_t seed_count, fmi3Float64 sensitivity[], size_t sensitivity_count) {
    ENTER_FMI3(GET_ADJOINT_DERIVATIVE)
    return get_fmi3_derivative(f, bl_fmu_adjoint, unknowns, unknown_count, seed_count, knowns, known_count,
                               sensitivity_count, seed, sensitivity);
}

fmi3Status fmi3GetOutputDerivatives(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
                                    const fmi3Int32 orders[], fmi3Float64 values[], size_t value_count) {
    ENTER_FMI3(GET_OUTPUT_DERIVATIVES)
    if (bl_fmu_check_arrays(f, references, count, orders) != FMU_OK) return fmi3Error;
    uint32_t *elements = bl_fmi3_list_elements(f, references, count, value_count);
    int32_t *element_orders = calloc(value_count + 1, sizeof *element_orders);
    bl_fmu_status status = FMU_ERROR;
    if (elements && element_orders) {
        for (size_t k = 0, at = 0; k < count; k++)
            for (int64_t i = 0; i < f->variables[references[k]].extent; i++) element_orders[at++] = orders[k];
        status = bl_fmu_output_derivatives(f, elements, value_count, element_orders, values);
    }
    free(element_orders);
    free(elements);
    return (fmi3Status)status;
}
