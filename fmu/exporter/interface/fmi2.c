/* The engine as an FMI 2.0 co-simulation slave: FMI's names for the functions of instance.h, and when each may be called.
 *
 * An instance's life: instantiated → initialization mode → step mode ⇄ … → terminated; each function is allowed in
 * some of these states only. A value reference is the number of a variable in the plan.
 *
 * fmi2Set* only stores; fmi2Get* evaluates outputs, lazily, at the present time; what happens at a tick
 * is committed by fmi2DoStep. */
#include "fmu/fmi2.h"

#include "fmu/exporter/interface/instance.h"

typedef enum {
    FMI2_SET_DEBUG_LOGGING,
    FMI2_SETUP_EXPERIMENT,
    FMI2_ENTER_INITIALIZATION_MODE,
    FMI2_EXIT_INITIALIZATION_MODE,
    FMI2_TERMINATE,
    FMI2_RESET,
    FMI2_GET_REAL,
    FMI2_GET_INTEGER,
    FMI2_GET_BOOLEAN,
    FMI2_GET_STRING,
    FMI2_SET_REAL,
    FMI2_SET_INTEGER,
    FMI2_SET_BOOLEAN,
    FMI2_SET_STRING,
    FMI2_GET_FMU_STATE,
    FMI2_SET_FMU_STATE,
    FMI2_FREE_FMU_STATE,
    FMI2_SERIALIZED_FMU_STATE_SIZE,
    FMI2_SERIALIZE_FMU_STATE,
    FMI2_DESERIALIZE_FMU_STATE,
    FMI2_GET_DIRECTIONAL_DERIVATIVE,
    FMI2_SET_REAL_INPUT_DERIVATIVES,
    FMI2_GET_REAL_OUTPUT_DERIVATIVES,
    FMI2_DO_STEP,
    FMI2_GET_REAL_STATUS,
    FMI2_GET_BOOLEAN_STATUS
} fmi2_call;

/* Which function may be called when: FMI 2.0, 4.2.4. The standard does not let variables be read before initialization; tools
   do it all the same, to show start values. Derivatives need a simulation that could go on. */
static const bl_fmu_call FMI2_CALLS[] = {
    [FMI2_SET_DEBUG_LOGGING] = {"fmi2SetDebugLogging", {ANY_STATE}},
    [FMI2_SETUP_EXPERIMENT] = {"fmi2SetupExperiment", {INSTANTIATED}},
    [FMI2_ENTER_INITIALIZATION_MODE] = {"fmi2EnterInitializationMode", {INSTANTIATED}},
    [FMI2_EXIT_INITIALIZATION_MODE] = {"fmi2ExitInitializationMode", {INITIALIZING}},
    [FMI2_TERMINATE] = {"fmi2Terminate", {STEPPING | STEP_FAILED}},
    [FMI2_RESET] = {"fmi2Reset", {ANY_STATE}},
    [FMI2_GET_REAL] = {"fmi2GetReal", {ANY_STATE}},
    [FMI2_GET_INTEGER] = {"fmi2GetInteger", {ANY_STATE}},
    [FMI2_GET_BOOLEAN] = {"fmi2GetBoolean", {ANY_STATE}},
    [FMI2_GET_STRING] = {"fmi2GetString", {ANY_STATE}},
    [FMI2_SET_REAL] = {"fmi2SetReal", {BEFORE_STEPS | STEPPING}},
    [FMI2_SET_INTEGER] = {"fmi2SetInteger", {BEFORE_STEPS | STEPPING}},
    [FMI2_SET_BOOLEAN] = {"fmi2SetBoolean", {BEFORE_STEPS | STEPPING}},
    [FMI2_SET_STRING] = {"fmi2SetString", {BEFORE_STEPS | STEPPING}},
    [FMI2_GET_FMU_STATE] = {"fmi2GetFMUstate", {ANY_STATE}},
    [FMI2_SET_FMU_STATE] = {"fmi2SetFMUstate", {ANY_STATE}},
    [FMI2_FREE_FMU_STATE] = {"fmi2FreeFMUstate", {ANY_STATE}},
    [FMI2_SERIALIZED_FMU_STATE_SIZE] = {"fmi2SerializedFMUstateSize", {ANY_STATE}},
    [FMI2_SERIALIZE_FMU_STATE] = {"fmi2SerializeFMUstate", {ANY_STATE}},
    [FMI2_DESERIALIZE_FMU_STATE] = {"fmi2DeSerializeFMUstate", {ANY_STATE}},
    [FMI2_GET_DIRECTIONAL_DERIVATIVE] = {"fmi2GetDirectionalDerivative",
                                         {INITIALIZING | STEPPING | STEP_FAILED | TERMINATED}},
    [FMI2_SET_REAL_INPUT_DERIVATIVES] = {"fmi2SetRealInputDerivatives", {BEFORE_STEPS | STEPPING}},
    [FMI2_GET_REAL_OUTPUT_DERIVATIVES] = {"fmi2GetRealOutputDerivatives", {STEPPING | STEP_FAILED | TERMINATED}},
    [FMI2_DO_STEP] = {"fmi2DoStep", {STEPPING}},
    [FMI2_GET_REAL_STATUS] = {"fmi2GetRealStatus", {STEPPING | STEP_FAILED | TERMINATED}},
    [FMI2_GET_BOOLEAN_STATUS] = {"fmi2GetBooleanStatus", {STEPPING | STEP_FAILED | TERMINATED}},
};

/* The logger is variadic: the text is its only variable argument. */
static void send_fmi2(const bl_fmu *f, bl_fmu_status status, const char *category, const char *text) {
    ((fmi2CallbackLogger)f->logger)(f->environment, f->name ? f->name : "biella", (fmi2Status)status, category, "%s",
                                    text);
}

enum { FMI2_STATES = INSTANTIATED | INITIALIZING | STEPPING | STEP_FAILED | TERMINATED | BROKEN };

static const bl_fmu_version FMI2 = {
    .calls = FMI2_CALLS, .states = {[CO_SIMULATION] = FMI2_STATES}, .logs_discard = 1, .send = send_fmi2};

/* Early return if there is no instance or the call is not allowed now. */
#define ENTER_FMI2(call) \
    bl_fmu *f = bl_fmu_enter(c, &FMI2, FMI2_##call); \
    if (!f) return fmi2Error;

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return fmi2Version; }

fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t count, const fmi2String categories[]) {
    ENTER_FMI2(SET_DEBUG_LOGGING)
    return (fmi2Status)bl_fmu_set_logging(f, on, count, categories);
}

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean logging) {
    (void)visible;
    const bl_fmu_request request = {.name = name,
                                    .token = guid,
                                    .resources = resources,
                                    .logging = logging,
                                    .environment = callbacks ? callbacks->componentEnvironment : NULL,
                                    .logger = callbacks ? (void (*)(void))callbacks->logger : NULL};
    return bl_fmu_create(&FMI2, CO_SIMULATION, &request, "GUID",
                         type == fmi2CoSimulation ? NULL : "this FMU supports co-simulation only");
}

void fmi2FreeInstance(fmi2Component c) {
    bl_fmu *f = bl_fmu_of(c, &FMI2);
    if (f) bl_fmu_free(f);
}

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean toleranceDefined, fmi2Real tolerance, fmi2Real startTime,
                               fmi2Boolean stopTimeDefined, fmi2Real stopTime) {
    (void)toleranceDefined; /* the step is fixed */
    (void)tolerance;
    ENTER_FMI2(SETUP_EXPERIMENT)
    return (fmi2Status)bl_fmu_set_experiment(f, startTime, stopTimeDefined, stopTime);
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c) {
    ENTER_FMI2(ENTER_INITIALIZATION_MODE)
    f->state = INITIALIZING;
    return fmi2OK;
}

fmi2Status fmi2ExitInitializationMode(fmi2Component c) {
    ENTER_FMI2(EXIT_INITIALIZATION_MODE)
    return (fmi2Status)bl_fmu_initialize(f, STEPPING);
}

fmi2Status fmi2Terminate(fmi2Component c) {
    ENTER_FMI2(TERMINATE)
    return (fmi2Status)bl_fmu_terminate(f);
}

fmi2Status fmi2Reset(fmi2Component c) {
    ENTER_FMI2(RESET)
    return (fmi2Status)bl_fmu_reset(f);
}

#define GET_FMI2(function, call, type, kind, or_kind, convert) \
    fmi2Status function(fmi2Component c, const fmi2ValueReference references[], size_t count, type values[]) { \
        ENTER_FMI2(call) \
        bl_fmu_status status = bl_fmu_check_arrays(f, references, count, values); \
        for (size_t k = 0; k < count && status == FMU_OK; k++) { \
            const bl_variable *variable = bl_fmu_find(f, references[k], kind, or_kind); \
            double value = 0.0; \
            status = variable ? bl_fmu_get(f, variable, &value) : FMU_ERROR; \
            if (status == FMU_OK) values[k] = convert; \
        } \
        return (fmi2Status)status; \
    }

#define SET_FMI2(function, call, type, kind, or_kind, convert) \
    fmi2Status function(fmi2Component c, const fmi2ValueReference references[], size_t count, const type values[]) { \
        ENTER_FMI2(call) \
        bl_fmu_status status = bl_fmu_check_arrays(f, references, count, values); \
        for (size_t k = 0; k < count && status == FMU_OK; k++) { \
            const bl_variable *variable = bl_fmu_find(f, references[k], kind, or_kind); \
            status = variable ? bl_fmu_set(f, variable, convert) : FMU_ERROR; \
        } \
        return (fmi2Status)status; \
    }

GET_FMI2(fmi2GetReal, GET_REAL, fmi2Real, BL_REAL, BL_REAL, value)
GET_FMI2(fmi2GetInteger, GET_INTEGER, fmi2Integer, BL_INTEGER, BL_ENUMERATION, bl_fmu_to_int32(value))
GET_FMI2(fmi2GetBoolean, GET_BOOLEAN, fmi2Boolean, BL_BOOLEAN, BL_BOOLEAN, value != 0.0 ? fmi2True : fmi2False)
SET_FMI2(fmi2SetReal, SET_REAL, fmi2Real, BL_REAL, BL_REAL, values[k])
SET_FMI2(fmi2SetInteger, SET_INTEGER, fmi2Integer, BL_INTEGER, BL_ENUMERATION, (double)values[k])
SET_FMI2(fmi2SetBoolean, SET_BOOLEAN, fmi2Boolean, BL_BOOLEAN, BL_BOOLEAN, values[k] != fmi2False ? 1.0 : 0.0)

fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference references[], size_t count, fmi2String values[]) {
    (void)references;
    (void)values;
    ENTER_FMI2(GET_STRING)
    if (count == 0) return fmi2OK;
    bl_fmu_log(f, FMU_ERROR, "this FMU has no string variables");
    return fmi2Error;
}

fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference references[], size_t count,
                         const fmi2String values[]) {
    (void)references;
    (void)values;
    ENTER_FMI2(SET_STRING)
    if (count == 0) return fmi2OK;
    bl_fmu_log(f, FMU_ERROR, "this FMU has no string variables");
    return fmi2Error;
}

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state) {
    ENTER_FMI2(GET_FMU_STATE)
    return (fmi2Status)bl_fmu_get_state(f, state);
}

fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state) {
    ENTER_FMI2(SET_FMU_STATE)
    return (fmi2Status)bl_fmu_set_state(f, state);
}

fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state) {
    ENTER_FMI2(FREE_FMU_STATE)
    return (fmi2Status)bl_fmu_free_state(f, state);
}

fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t *size) {
    ENTER_FMI2(SERIALIZED_FMU_STATE_SIZE)
    return (fmi2Status)bl_fmu_state_bytes(f, state, size);
}

fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size) {
    ENTER_FMI2(SERIALIZE_FMU_STATE)
    return (fmi2Status)bl_fmu_serialize(f, state, bytes, size);
}

fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state) {
    ENTER_FMI2(DESERIALIZE_FMU_STATE)
    return (fmi2Status)bl_fmu_deserialize(f, bytes, size, state);
}

fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference unknowns[], size_t unknown_count,
                                        const fmi2ValueReference knowns[], size_t known_count, const fmi2Real seed[],
                                        fmi2Real sensitivity[]) {
    ENTER_FMI2(GET_DIRECTIONAL_DERIVATIVE)
    return (fmi2Status)bl_fmu_directional(f, unknowns, unknown_count, knowns, known_count, seed, sensitivity);
}

fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference references[], size_t count,
                                       const fmi2Integer orders[], const fmi2Real values[]) {
    ENTER_FMI2(SET_REAL_INPUT_DERIVATIVES)
    return (fmi2Status)bl_fmu_set_input_derivatives(f, references, count, orders, values);
}

fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference references[], size_t count,
                                        const fmi2Integer orders[], fmi2Real values[]) {
    ENTER_FMI2(GET_REAL_OUTPUT_DERIVATIVES)
    return (fmi2Status)bl_fmu_output_derivatives(f, references, count, orders, values);
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real now, fmi2Real size, fmi2Boolean noSetFMUStatePriorToCurrentPoint) {
    (void)noSetFMUStatePriorToCurrentPoint;
    ENTER_FMI2(DO_STEP)
    return (fmi2Status)bl_fmu_step(f, now, size);
}

/* After fmi2Discard: whether the FMU requests the end of the simulation, and the time it has reached. */
fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value) {
    ENTER_FMI2(GET_BOOLEAN_STATUS)
    if (kind != fmi2Terminated || !value) return fmi2Discard;
    *value = f->ended ? fmi2True : fmi2False;
    return fmi2OK;
}

fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value) {
    ENTER_FMI2(GET_REAL_STATUS)
    if (kind != fmi2LastSuccessfulTime || !value) return fmi2Discard;
    *value = bl_time(f->engine);
    return fmi2OK;
}

/* Functions that this FMU does not support, as declared in its model description. */
fmi2Status fmi2CancelStep(fmi2Component c) {
    const bl_fmu *f = bl_fmu_of(c, &FMI2);
    if (f) bl_fmu_log(f, FMU_ERROR, "fmi2CancelStep is not supported");
    return fmi2Error;
}

fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Status *value) {
    (void)kind, (void)value;
    return bl_fmu_of(c, &FMI2) ? fmi2Discard : fmi2Error; /* a step is never pending */
}

fmi2Status fmi2GetIntegerStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Integer *value) {
    (void)kind, (void)value;
    return bl_fmu_of(c, &FMI2) ? fmi2Discard : fmi2Error;
}

fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind kind, fmi2String *value) {
    (void)kind, (void)value;
    return bl_fmu_of(c, &FMI2) ? fmi2Discard : fmi2Error;
}
