/* The engine as an FMI 2.0 co-simulation slave.
 *
 * An instance's life: instantiated → initialization mode → step mode ⇄ … → terminated; each function is allowed in
 * some of these states only. A value reference is the number of a variable in the plan.
 *
 * fmi2Set* only stores; fmi2Get* evaluates outputs, lazily, at the present time; what happens at a tick
 * is committed by fmi2DoStep. */
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmu/exporter/instance.h"

typedef struct {
    uint32_t magic;
    int32_t fmu_state, needs_init, ended;
    uint64_t size; /* of the engine's state, which follows */
} bl_fmu_snapshot;

static const uint32_t FMU_MAGIC = 0xb1e11au, SNAPSHOT_MAGIC = 0xb1e11bu;

/* Which function may be called when: FMI 2.0, 4.2.4. The standard does not let variables be read before initialization; tools
   do it all the same, to show start values. Derivatives need a simulation that could go on. */
static const struct {
    const char *name;
    int allowed;
} CALLS[] = {
    [CALL_SET_DEBUG_LOGGING] = {"fmi2SetDebugLogging", ANY_STATE},
    [CALL_SETUP_EXPERIMENT] = {"fmi2SetupExperiment", INSTANTIATED},
    [CALL_ENTER_INITIALIZATION_MODE] = {"fmi2EnterInitializationMode", INSTANTIATED},
    [CALL_EXIT_INITIALIZATION_MODE] = {"fmi2ExitInitializationMode", INITIALIZING},
    [CALL_TERMINATE] = {"fmi2Terminate", STEPPING | STEP_FAILED},
    [CALL_RESET] = {"fmi2Reset", ANY_STATE},
    [CALL_GET_REAL] = {"fmi2GetReal", ANY_STATE},
    [CALL_GET_INTEGER] = {"fmi2GetInteger", ANY_STATE},
    [CALL_GET_BOOLEAN] = {"fmi2GetBoolean", ANY_STATE},
    [CALL_GET_STRING] = {"fmi2GetString", ANY_STATE},
    [CALL_SET_REAL] = {"fmi2SetReal", BEFORE_STEPS | STEPPING},
    [CALL_SET_INTEGER] = {"fmi2SetInteger", BEFORE_STEPS | STEPPING},
    [CALL_SET_BOOLEAN] = {"fmi2SetBoolean", BEFORE_STEPS | STEPPING},
    [CALL_SET_STRING] = {"fmi2SetString", BEFORE_STEPS | STEPPING},
    [CALL_GET_FMU_STATE] = {"fmi2GetFMUstate", ANY_STATE},
    [CALL_SET_FMU_STATE] = {"fmi2SetFMUstate", ANY_STATE},
    [CALL_FREE_FMU_STATE] = {"fmi2FreeFMUstate", ANY_STATE},
    [CALL_SERIALIZED_FMU_STATE_SIZE] = {"fmi2SerializedFMUstateSize", ANY_STATE},
    [CALL_SERIALIZE_FMU_STATE] = {"fmi2SerializeFMUstate", ANY_STATE},
    [CALL_DESERIALIZE_FMU_STATE] = {"fmi2DeSerializeFMUstate", ANY_STATE},
    [CALL_GET_DIRECTIONAL_DERIVATIVE] = {"fmi2GetDirectionalDerivative",
                                         INITIALIZING | STEPPING | STEP_FAILED | TERMINATED},
    [CALL_SET_REAL_INPUT_DERIVATIVES] = {"fmi2SetRealInputDerivatives", BEFORE_STEPS | STEPPING},
    [CALL_GET_REAL_OUTPUT_DERIVATIVES] = {"fmi2GetRealOutputDerivatives", STEPPING | STEP_FAILED | TERMINATED},
    [CALL_DO_STEP] = {"fmi2DoStep", STEPPING},
    [CALL_GET_REAL_STATUS] = {"fmi2GetRealStatus", STEPPING | STEP_FAILED | TERMINATED},
    [CALL_GET_BOOLEAN_STATUS] = {"fmi2GetBooleanStatus", STEPPING | STEP_FAILED | TERMINATED},
};

/* Log categories; fmu/exporter/_description.py lists them too. */
static const char *const CATEGORIES[] = {"logEvents", "logStatusWarning", "logStatusDiscard", "logStatusError"};
enum { LOG_EVENTS, LOG_WARNING, LOG_DISCARD, LOG_ERROR, LOG_CATEGORIES };
enum { LOG_FAILURES = 1 << LOG_WARNING | 1 << LOG_DISCARD | 1 << LOG_ERROR, LOG_ALL = LOG_FAILURES | 1 << LOG_EVENTS };

void bl_fmu_log(const bl_fmu *f, fmi2Status status, const char *format, ...) {
    const int category = status == fmi2Error     ? LOG_ERROR
                         : status == fmi2Discard ? LOG_DISCARD
                         : status == fmi2Warning ? LOG_WARNING
                                                 : LOG_EVENTS;
    char text[1280];
    va_list arguments;
    if (!f->callbacks.logger || !(f->log >> category & 1)) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    f->callbacks.logger(f->callbacks.componentEnvironment, f->name ? f->name : "biella", status, CATEGORIES[category],
                        "%s", text);
}

static bl_fmu *fmu_of(fmi2Component c) {
    bl_fmu *f = c;
    return f && f->magic == FMU_MAGIC ? f : NULL;
}

static const char *state_name(bl_fmu_state state) {
    switch (state) {
        case INSTANTIATED: return "instantiated";
        case INITIALIZING: return "initialization mode";
        case STEPPING: return "step mode";
        case STEP_FAILED: return "step discarded";
        case TERMINATED: return "terminated";
        default: return "error";
    }
}

bl_fmu *bl_fmu_enter(fmi2Component c, bl_fmu_call call) {
    bl_fmu *f = fmu_of(c);
    if (!f || (int)f->state & CALLS[call].allowed) return f;
    bl_fmu_log(f, fmi2Error, "%s is not allowed in the state '%s'", CALLS[call].name, state_name(f->state));
    return NULL;
}

/* Early return if there is no instance or the call is not allowed now. */
#define ENTER(call) \
    bl_fmu *f = bl_fmu_enter(c, CALL_##call); \
    if (!f) return fmi2Error;

/* Reports an engine's failure; from there only a saved state or a reset leads back. */
static fmi2Status fail(bl_fmu *f) {
    const int32_t block = bl_failed_block(f->engine);
    const char *path = bl_block_path(f->engine, block);
    bl_fmu_log(f, fmi2Error, "t = %.9g: %s%s%s", bl_time(f->engine), path, *path ? ": " : "", bl_message(f->engine));
    f->state = BROKEN;
    return fmi2Error;
}

/* Passes on what blocks found odd, and at the start which algebraic loops have no unique solution. */
static void warn(const bl_fmu *f, int about) {
    for (int32_t k = -1; (k = bl_next_diagnostic(f->engine, about, k)) >= 0;)
        bl_fmu_log(f, fmi2Warning, "%s: %s", bl_block_path(f->engine, k), bl_message(f->engine));
    for (int32_t k = 0; about == BL_DIAGNOSTIC_START && k < bl_loop_count(f->engine); k++) {
        double chosen[BL_LOOP_CHECKED], other[BL_LOOP_CHECKED], condition = 0.0;
        const int verdict = bl_loop_size(f->engine, k) <= BL_LOOP_CHECKED
                                ? bl_check_loop(f->engine, k, chosen, other, &condition)
                                : BL_LOOP_GOOD;
        const char *path = bl_slot_path(f->engine, bl_loop_slots(f->engine, k)[0]);
        if (verdict == BL_LOOP_IS_SINGULAR)
            bl_fmu_log(f, fmi2Warning,
                       "%s: its algebraic loop is singular: %.6g solves it, and so do other values, exactly or nearly",
                       path, chosen[0]);
        else if (verdict == BL_LOOP_HAS_OTHER)
            bl_fmu_log(f, fmi2Warning,
                       "%s: its algebraic loop has more than one solution: %.6g was taken, %.6g is another one", path,
                       chosen[0], other[0]);
    }
}

/* Each fallback of the solver once, where a simulation ends: by fmi2Terminate, or by what comes instead of it. */
static void warn_of_fallbacks(bl_fmu *f) {
    for (int32_t k = -1; (k = bl_next_fallback(f->engine, k)) >= 0;) {
        if (f->warned >> k & 1u) continue;
        f->warned |= 1u << k;
        bl_fmu_log(f, fmi2Warning, "%s", bl_message(f->engine));
    }
}

fmi2Status bl_fmu_prepare(bl_fmu *f) {
    if (f->needs_init) {
        if (bl_init(f->engine) != BL_OK) return fail(f);
        f->needs_init = 0;
    }
    return fmi2OK;
}

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return fmi2Version; }

/* With categories, only these are logged; without, everything if logging is on, and only failures if it is off. */
fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t count, const fmi2String categories[]) {
    ENTER(SET_DEBUG_LOGGING)
    unsigned chosen = 0;
    if (count > 0 && !categories) return fmi2Error;
    for (size_t k = 0; k < count; k++) {
        int n = 0;
        while (n < LOG_CATEGORIES && categories[k] && strcmp(categories[k], CATEGORIES[n]) != 0) n++;
        if (categories[k] && n < LOG_CATEGORIES) chosen |= 1u << n;
        else if (categories[k] && strcmp(categories[k], "logAll") == 0) chosen |= LOG_ALL;
        else {
            bl_fmu_log(f, fmi2Error, "unknown log category '%s'", categories[k] ? categories[k] : "(null)");
            return fmi2Error;
        }
    }
    f->log = !on ? LOG_FAILURES : count == 0 ? LOG_ALL : chosen;
    return fmi2OK;
}

/* The GUID begins with the checksum of the plan, so that a description and a plan that do not belong together are noticed. A digest
   of the description follows, of which only the form is known here: a GUID that was cut short or has more behind it is refused. */
static int has_guid(const bl_engine *e, const char *guid) {
    enum { DIGITS = 16 };
    char own[32];
    snprintf(own, sizeof own, "{biella-%016llx-", (unsigned long long)bl_plan_hash(e));
    const size_t head = strlen(own);
    if (!guid || strncmp(guid, own, head) != 0) return 0;
    return strspn(guid + head, "0123456789abcdef") == DIGITS && strcmp(guid + head + DIGITS, "}") == 0;
}

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean logging) {
    (void)visible;
    bl_fmu *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    if (callbacks) f->callbacks = *callbacks;
    f->log = logging ? LOG_ALL : LOG_FAILURES;
    char message[512] = "";
    size_t size = 0;
    const unsigned char *plan = NULL;
    f->name = name && *name ? malloc(strlen(name) + 1) : NULL;
    if (f->name) strcpy(f->name, name);
    if (!f->name) bl_fmu_log(f, fmi2Error, "the instance name is missing");
    else if (type != fmi2CoSimulation) bl_fmu_log(f, fmi2Error, "this FMU supports co-simulation only");
    else if (!(plan = bl_find_plan(resources, &size, message, sizeof message))) bl_fmu_log(f, fmi2Error, "%s", message);
    else if (bl_open(plan, size, &f->engine, message, sizeof message) != BL_OK)
        bl_fmu_log(f, fmi2Error, "the plan is not valid: %s", message);
    else if (!has_guid(f->engine, guid))
        bl_fmu_log(f, fmi2Error, "the GUID '%s' does not match the plan", guid ? guid : "(null)");
    else {
        bl_release_plan(plan);
        f->magic = FMU_MAGIC;
        f->values = bl_values(f->engine);
        f->variable_count = bl_variables(f->engine, &f->variables);
        f->state = INSTANTIATED;
        f->needs_init = 1;
        return f;
    }
    bl_release_plan(plan);
    bl_close(f->engine);
    free(f->name);
    free(f);
    return NULL;
}

void fmi2FreeInstance(fmi2Component c) {
    bl_fmu *f = fmu_of(c);
    if (!f) return;
    warn_of_fallbacks(f);
    f->magic = 0;
    bl_close(f->engine);
    free(f->name);
    free(f);
}

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean toleranceDefined, fmi2Real tolerance, fmi2Real startTime,
                               fmi2Boolean stopTimeDefined, fmi2Real stopTime) {
    (void)toleranceDefined; /* the step is fixed */
    (void)tolerance;
    ENTER(SETUP_EXPERIMENT)
    if (!isfinite(startTime) || (stopTimeDefined && !(stopTime >= startTime))) {
        bl_fmu_log(f, fmi2Error, "an experiment from %g to %g is not possible", startTime, stopTime);
        return fmi2Error;
    }
    bl_set_start(f->engine, startTime);
    f->has_stop_time = stopTimeDefined != fmi2False;
    f->stop_time = stopTime;
    f->needs_init = 1;
    return fmi2OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c) {
    ENTER(ENTER_INITIALIZATION_MODE)
    f->state = INITIALIZING;
    return fmi2OK;
}

fmi2Status fmi2ExitInitializationMode(fmi2Component c) {
    ENTER(EXIT_INITIALIZATION_MODE)
    if (bl_fmu_prepare(f) != fmi2OK) return fmi2Error;
    if (bl_outputs(f->engine) != BL_OK) return fail(f);
    f->state = STEPPING;
    warn(f, BL_DIAGNOSTIC_START);
    bl_fmu_log(f, fmi2OK, "initialized at t = %.9g, base step %.9g", bl_time(f->engine), bl_step(f->engine));
    return fmi2OK;
}

fmi2Status fmi2Terminate(fmi2Component c) {
    ENTER(TERMINATE)
    f->state = TERMINATED;
    warn(f, BL_DIAGNOSTIC_RUN);
    warn_of_fallbacks(f);
    bl_fmu_log(f, fmi2OK, "terminated at t = %.9g", bl_time(f->engine));
    return fmi2OK;
}

fmi2Status fmi2Reset(fmi2Component c) {
    ENTER(RESET)
    warn_of_fallbacks(f);
    bl_reset(f->engine);
    f->state = INSTANTIATED;
    f->needs_init = 1;
    f->ended = 0;
    f->has_stop_time = 0;
    f->warned = 0;
    return fmi2OK;
}

const bl_variable *bl_fmu_find(const bl_fmu *f, fmi2ValueReference reference, int32_t kind, int32_t or_kind) {
    if ((int64_t)reference < f->variable_count) {
        const bl_variable *variable = &f->variables[reference];
        if (variable->kind == kind || variable->kind == or_kind) return variable;
    }
    bl_fmu_log(f, fmi2Error, "unknown value reference %u", reference);
    return NULL;
}

fmi2Status bl_fmu_check_arrays(const bl_fmu *f, const void *a, size_t count, const void *b) {
    if (count == 0 || (a && b)) return fmi2OK;
    bl_fmu_log(f, fmi2Error, "an array pointer is NULL");
    return fmi2Error;
}

/* Outputs are computed only if one is asked for. After an error the values are as it left them. */
static fmi2Status get(bl_fmu *f, const bl_variable *variable, double *value) {
    if (f->state != BROKEN && (variable->causality == BL_OUTPUT || variable->causality == BL_LOCAL)) {
        if (f->state & BEFORE_STEPS && bl_fmu_prepare(f) != fmi2OK) return fmi2Error;
        if (bl_outputs(f->engine) != BL_OK) return fail(f);
    }
    *value = f->values[variable->slot];
    return fmi2OK;
}

/* Whether this is the start value in the description. A limit that is switched off starts infinite: tools that set every variable to its
   start value must be able to set that one too. */
static int is_start(const bl_fmu *f, const bl_variable *variable, double value) {
    const double start = bl_first_value(f->engine, variable->slot);
    return value == start || (isnan(value) && isnan(start));
}

static fmi2Status set(bl_fmu *f, const bl_variable *variable, double value) {
    const int is_parameter = variable->causality == BL_FIXED_PARAMETER || variable->causality == BL_TUNABLE_PARAMETER;
    const int allowed = variable->causality == BL_INPUT || variable->causality == BL_TUNABLE_PARAMETER ||
                        (variable->causality == BL_FIXED_PARAMETER && f->state & BEFORE_STEPS);
    if (!allowed) {
        bl_fmu_log(f, fmi2Error,
                   is_parameter ? "this parameter is fixed after initialization" : "an output cannot be set");
        return fmi2Error;
    }
    if (!isfinite(value) && !is_start(f, variable, value)) {
        bl_fmu_log(f, fmi2Discard, "a value is not finite, and is not the start value of variable %lld",
                   (long long)(variable - f->variables));
        return fmi2Discard;
    }
    /* Importers set inputs at every step. One that stays as it is must not end a step of the solver that leads past the tick. */
    if (memcmp(&f->values[variable->slot], &value, sizeof value) == 0) return fmi2OK;
    f->values[variable->slot] = value;
    if (is_parameter) bl_touch(f->engine);
    else bl_touch_inputs(f->engine);
    if (is_parameter && f->state & BEFORE_STEPS) f->needs_init = 1;
    return fmi2OK;
}

#define GET(function, call, type, kind, or_kind, convert) \
    fmi2Status function(fmi2Component c, const fmi2ValueReference references[], size_t count, type values[]) { \
        ENTER(call) \
        fmi2Status status = bl_fmu_check_arrays(f, references, count, values); \
        for (size_t k = 0; k < count && status == fmi2OK; k++) { \
            const bl_variable *variable = bl_fmu_find(f, references[k], kind, or_kind); \
            double value = 0.0; \
            status = variable ? get(f, variable, &value) : fmi2Error; \
            if (status == fmi2OK) values[k] = convert; \
        } \
        return status; \
    }

#define SET(function, call, type, kind, or_kind, convert) \
    fmi2Status function(fmi2Component c, const fmi2ValueReference references[], size_t count, const type values[]) { \
        ENTER(call) \
        fmi2Status status = bl_fmu_check_arrays(f, references, count, values); \
        for (size_t k = 0; k < count && status == fmi2OK; k++) { \
            const bl_variable *variable = bl_fmu_find(f, references[k], kind, or_kind); \
            status = variable ? set(f, variable, convert) : fmi2Error; \
        } \
        return status; \
    }

static fmi2Integer to_integer(double value) {
    if (!(value > -2147483648.0)) return INT32_MIN;
    if (!(value < 2147483647.0)) return INT32_MAX;
    return (fmi2Integer)value;
}

GET(fmi2GetReal, GET_REAL, fmi2Real, BL_REAL, BL_REAL, value)
GET(fmi2GetInteger, GET_INTEGER, fmi2Integer, BL_INTEGER, BL_ENUMERATION, to_integer(value))
GET(fmi2GetBoolean, GET_BOOLEAN, fmi2Boolean, BL_BOOLEAN, BL_BOOLEAN, value != 0.0 ? fmi2True : fmi2False)
SET(fmi2SetReal, SET_REAL, fmi2Real, BL_REAL, BL_REAL, values[k])
SET(fmi2SetInteger, SET_INTEGER, fmi2Integer, BL_INTEGER, BL_ENUMERATION, (double)values[k])
SET(fmi2SetBoolean, SET_BOOLEAN, fmi2Boolean, BL_BOOLEAN, BL_BOOLEAN, values[k] != fmi2False ? 1.0 : 0.0)

fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference references[], size_t count, fmi2String values[]) {
    (void)references;
    (void)values;
    ENTER(GET_STRING)
    if (count == 0) return fmi2OK;
    bl_fmu_log(f, fmi2Error, "this FMU has no string variables");
    return fmi2Error;
}

fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference references[], size_t count,
                         const fmi2String values[]) {
    (void)references;
    (void)values;
    ENTER(SET_STRING)
    if (count == 0) return fmi2OK;
    bl_fmu_log(f, fmi2Error, "this FMU has no string variables");
    return fmi2Error;
}

static size_t snapshot_size(const bl_fmu *f) { return sizeof(bl_fmu_snapshot) + bl_state_size(f->engine); }

/* NULL if `state` is not a snapshot of this FMU. */
static bl_fmu_snapshot *snapshot_of(const bl_fmu *f, fmi2FMUstate state) {
    bl_fmu_snapshot *snapshot = state;
    if (snapshot && snapshot->magic == SNAPSHOT_MAGIC && snapshot->size == bl_state_size(f->engine)) return snapshot;
    bl_fmu_log(f, fmi2Error, "this is not a state of this FMU");
    return NULL;
}

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state) {
    ENTER(GET_FMU_STATE)
    if (!state) return fmi2Error;
    bl_fmu_snapshot *snapshot = *state ? snapshot_of(f, *state) : calloc(1, snapshot_size(f));
    if (!snapshot) return fmi2Error;
    snapshot->magic = SNAPSHOT_MAGIC;
    snapshot->fmu_state = (int32_t)f->state;
    snapshot->needs_init = f->needs_init;
    snapshot->ended = f->ended;
    snapshot->size = bl_state_size(f->engine);
    bl_save(f->engine, snapshot + 1);
    *state = snapshot;
    return fmi2OK;
}

fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state) {
    ENTER(SET_FMU_STATE)
    const bl_fmu_snapshot *snapshot = snapshot_of(f, state);
    if (!snapshot) return fmi2Error;
    if (bl_restore(f->engine, snapshot + 1, (size_t)snapshot->size) != BL_OK) {
        bl_fmu_log(f, fmi2Error, "%s", bl_message(f->engine));
        return fmi2Error;
    }
    f->state = (bl_fmu_state)snapshot->fmu_state;
    f->needs_init = snapshot->needs_init;
    f->ended = snapshot->ended;
    return fmi2OK;
}

fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state) {
    ENTER(FREE_FMU_STATE)
    if (!state || !*state) return fmi2OK;
    bl_fmu_snapshot *snapshot = snapshot_of(f, *state);
    if (!snapshot) return fmi2Error;
    snapshot->magic = 0;
    free(snapshot);
    *state = NULL;
    return fmi2OK;
}

fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t *size) {
    ENTER(SERIALIZED_FMU_STATE_SIZE)
    if (!size || !snapshot_of(f, state)) return fmi2Error;
    *size = snapshot_size(f);
    return fmi2OK;
}

fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size) {
    ENTER(SERIALIZE_FMU_STATE)
    const bl_fmu_snapshot *snapshot = snapshot_of(f, state);
    if (!snapshot || !bytes || size < snapshot_size(f)) {
        bl_fmu_log(f, fmi2Error, "a serialized state requires %zu bytes", snapshot_size(f));
        return fmi2Error;
    }
    memcpy(bytes, snapshot, snapshot_size(f));
    return fmi2OK;
}

fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state) {
    ENTER(DESERIALIZE_FMU_STATE)
    bl_fmu_snapshot head;
    if (!bytes || !state || size < snapshot_size(f)) {
        bl_fmu_log(f, fmi2Error, "a serialized state has %zu bytes, got %zu", snapshot_size(f), size);
        return fmi2Error;
    }
    memcpy(&head, bytes, sizeof head);
    const int known = head.fmu_state == INSTANTIATED || head.fmu_state == INITIALIZING || head.fmu_state == STEPPING ||
                      head.fmu_state == STEP_FAILED || head.fmu_state == TERMINATED || head.fmu_state == BROKEN;
    if (head.magic != SNAPSHOT_MAGIC || head.size != bl_state_size(f->engine) || !known) {
        bl_fmu_log(f, fmi2Error, "this is not a serialized state of this FMU");
        return fmi2Error;
    }
    bl_fmu_snapshot *snapshot = calloc(1, snapshot_size(f));
    if (!snapshot) return fmi2Error;
    memcpy(snapshot, bytes, snapshot_size(f));
    *state = snapshot;
    return fmi2OK;
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real now, fmi2Real size, fmi2Boolean noSetFMUStatePriorToCurrentPoint) {
    (void)noSetFMUStatePriorToCurrentPoint;
    ENTER(DO_STEP)
    const double reached = bl_time(f->engine), end = now + size, slack = bl_slack(f->engine, end);
    if (!(size >= 0.0) || !isfinite(end) || !(fabs(now - reached) <= slack)) {
        bl_fmu_log(f, fmi2Error, "a step from %.12g by %.12g does not continue at the current time %.12g", now, size,
                   reached);
        f->state = BROKEN;
        return fmi2Error;
    }
    if (f->has_stop_time && end > f->stop_time + slack) { /* the standard asks for an error here */
        bl_fmu_log(f, fmi2Error, "the step to %.12g exceeds the stop time, %.12g", end, f->stop_time);
        f->state = BROKEN;
        return fmi2Error;
    }
    const int status = bl_run_to(f->engine, end);
    if (status == BL_STOP) {
        bl_fmu_log(f, fmi2Discard, "the model ended the simulation at t = %.9g", bl_time(f->engine));
        f->ended = 1;
        f->state = STEP_FAILED;
        return fmi2Discard;
    }
    return status == BL_OK ? fmi2OK : fail(f);
}

/* After fmi2Discard: whether the FMU requests the end of the simulation, and the time it has reached. */
fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value) {
    ENTER(GET_BOOLEAN_STATUS)
    if (kind != fmi2Terminated || !value) return fmi2Discard;
    *value = f->ended ? fmi2True : fmi2False;
    return fmi2OK;
}

fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value) {
    ENTER(GET_REAL_STATUS)
    if (kind != fmi2LastSuccessfulTime || !value) return fmi2Discard;
    *value = bl_time(f->engine);
    return fmi2OK;
}

/* Functions that this FMU does not support, as declared in its model description. */
fmi2Status fmi2CancelStep(fmi2Component c) {
    const bl_fmu *f = fmu_of(c);
    if (f) bl_fmu_log(f, fmi2Error, "fmi2CancelStep is not supported");
    return fmi2Error;
}

fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Status *value) {
    (void)kind, (void)value;
    return fmu_of(c) ? fmi2Discard : fmi2Error; /* a step is never pending */
}

fmi2Status fmi2GetIntegerStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Integer *value) {
    (void)kind, (void)value;
    return fmu_of(c) ? fmi2Discard : fmi2Error;
}

fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind kind, fmi2String *value) {
    (void)kind, (void)value;
    return fmu_of(c) ? fmi2Discard : fmi2Error;
}
