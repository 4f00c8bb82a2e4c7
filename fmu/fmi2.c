/* The engine as an FMI 2.0 co-simulation slave.
 *
 * An instance's life: instantiated → initialization mode → step mode ⇄ … → terminated; each function is allowed in
 * some of these states only. A value reference is the number of a variable in the plan.
 *
 * fmi2Set* only stores; fmi2Get* evaluates outputs, lazily, at the present time; what happens at a tick
 * is committed by fmi2DoStep. */
#include "fmu/fmi2.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    INSTANTIATED = 1 << 0,
    INITIALIZING = 1 << 1,
    STEPPING = 1 << 2,
    STEP_FAILED = 1 << 3, /* after fmi2Discard */
    TERMINATED = 1 << 4,
    BROKEN = 1 << 5, /* after fmi2Error */
} bl_fmu_state;

enum {
    BEFORE_STEPS = INSTANTIATED | INITIALIZING,
    ANY_STATE = INSTANTIATED | INITIALIZING | STEPPING | STEP_FAILED | TERMINATED | BROKEN,
};

/* A communication point may miss the grid by this part of a base step. */
static const double GRID_TOLERANCE = 1e-6;
/* Beyond it, ticks are no longer exact doubles. */
static const double LARGEST_TICK = 9007199254740992.0;

typedef struct {
    uint32_t magic;
    bl_fmu_state state;
    bl_engine *engine;
    char *name;
    fmi2CallbackFunctions callbacks;
    int logging;
    int needs_init; /* a parameter changed since the states were set */
    int ended;      /* a Stop block ended the simulation */
    double stop_time;
    int has_stop_time;
} bl_fmu;

typedef struct {
    uint32_t magic;
    int32_t fmu_state, needs_init, ended;
    uint64_t size; /* of the engine's state, which follows */
} bl_fmu_snapshot;

static const uint32_t FMU_MAGIC = 0xb1e11au, SNAPSHOT_MAGIC = 0xb1e11bu;

/* Failures are always told; what goes well only if logging is on. */
static void say(const bl_fmu *f, fmi2Status status, const char *format, ...) {
    char text[768];
    va_list arguments;
    if (!f->callbacks.logger || (status == fmi2OK && !f->logging)) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *category = status == fmi2Error ? "logStatusError" : status == fmi2Discard ? "logStatusDiscard" : "logAll";
    f->callbacks.logger(f->callbacks.componentEnvironment, f->name ? f->name : "biella", status, category, "%s", text);
}

static bl_fmu *fmu_of(fmi2Component c) {
    bl_fmu *f = c;
    return f && f->magic == FMU_MAGIC ? f : NULL;
}

/* Early return if there is no instance or the call is not allowed now. */
#define ENTER(allowed, function)                                                              \
    bl_fmu *f = fmu_of(c);                                                                    \
    if (!f) return fmi2Error;                                                                 \
    if (!(f->state & (allowed))) {                                                            \
        say(f, fmi2Error, function " is not allowed in the state '%s'", state_name(f->state)); \
        return fmi2Error;                                                                     \
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

/* Reports an engine's failure; from there only a saved state or a reset leads back. */
static fmi2Status fail(bl_fmu *f) {
    const int32_t block = bl_failed_block(f->engine);
    const char *path = bl_block_path(f->engine, block), *note = bl_block_note(f->engine, block);
    say(f, fmi2Error, "t = %.9g: %s%s%s%s%s", bl_time(f->engine), *path ? path : "", *path ? ": " : "",
        bl_message(f->engine), *note ? ": " : "", note);
    f->state = BROKEN;
    return fmi2Error;
}

static fmi2Status prepare(bl_fmu *f) {
    if (f->needs_init) {
        if (bl_init(f->engine) != BL_OK) return fail(f);
        f->needs_init = 0;
    }
    return fmi2OK;
}

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return fmi2Version; }

fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t count, const fmi2String categories[]) {
    ENTER(ANY_STATE, "fmi2SetDebugLogging")
    if (count > 0 && !categories) return fmi2Error;
    for (size_t k = 0; k < count; k++) {
        const char *category = categories[k];
        if (!category || (strcmp(category, "logAll") != 0 && strcmp(category, "logStatusError") != 0 &&
                          strcmp(category, "logStatusDiscard") != 0)) {
            say(f, fmi2Error, "unknown log category '%s'", category ? category : "(null)");
            return fmi2Error;
        }
    }
    f->logging = on != fmi2False;
    return fmi2OK;
}

/* The GUID is the hash of the plan, so that a description and a plan that do not belong together are noticed. */
static int has_guid(const bl_engine *e, const char *guid) {
    char own[40];
    snprintf(own, sizeof own, "{biella-%016llx}", (unsigned long long)bl_plan_hash(e));
    return guid && strcmp(guid, own) == 0;
}

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean logging) {
    (void)visible;
    bl_fmu *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    if (callbacks) f->callbacks = *callbacks;
    f->logging = logging != fmi2False;
    char message[512] = "";
    size_t size = 0;
    const unsigned char *plan = NULL;
    f->name = name && *name ? malloc(strlen(name) + 1) : NULL;
    if (f->name) strcpy(f->name, name);
    if (!f->name)
        say(f, fmi2Error, "an instance needs a name");
    else if (type != fmi2CoSimulation)
        say(f, fmi2Error, "this FMU is for co-simulation");
    else if (!(plan = bl_find_plan(resources, &size, message, sizeof message)))
        say(f, fmi2Error, "%s", message);
    else if (bl_open(plan, size, &f->engine, message, sizeof message) != BL_OK)
        say(f, fmi2Error, "the plan is broken: %s", message);
    else if (!has_guid(f->engine, guid))
        say(f, fmi2Error, "the GUID '%s' is not that of the plan", guid ? guid : "(null)");
    else {
        bl_release_plan(plan);
        f->magic = FMU_MAGIC;
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
    f->magic = 0;
    bl_close(f->engine);
    free(f->name);
    free(f);
}

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean toleranceDefined, fmi2Real tolerance, fmi2Real startTime,
                               fmi2Boolean stopTimeDefined, fmi2Real stopTime) {
    (void)toleranceDefined; /* the step is fixed */
    (void)tolerance;
    ENTER(INSTANTIATED, "fmi2SetupExperiment")
    if (!isfinite(startTime) || (stopTimeDefined && !(stopTime >= startTime))) {
        say(f, fmi2Error, "an experiment from %g to %g is not possible", startTime, stopTime);
        return fmi2Error;
    }
    bl_set_start(f->engine, startTime);
    f->has_stop_time = stopTimeDefined != fmi2False;
    f->stop_time = stopTime;
    f->needs_init = 1;
    return fmi2OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c) {
    ENTER(INSTANTIATED, "fmi2EnterInitializationMode")
    f->state = INITIALIZING;
    return fmi2OK;
}

fmi2Status fmi2ExitInitializationMode(fmi2Component c) {
    ENTER(INITIALIZING, "fmi2ExitInitializationMode")
    if (prepare(f) != fmi2OK) return fmi2Error;
    if (bl_outputs(f->engine) != BL_OK) return fail(f);
    f->state = STEPPING;
    say(f, fmi2OK, "initialized at t = %.9g, base step %.9g", bl_time(f->engine), bl_step(f->engine));
    return fmi2OK;
}

fmi2Status fmi2Terminate(fmi2Component c) {
    ENTER(STEPPING | STEP_FAILED, "fmi2Terminate")
    f->state = TERMINATED;
    say(f, fmi2OK, "terminated at t = %.9g", bl_time(f->engine));
    return fmi2OK;
}

fmi2Status fmi2Reset(fmi2Component c) {
    ENTER(ANY_STATE, "fmi2Reset")
    bl_reset(f->engine);
    f->state = INSTANTIATED;
    f->needs_init = 1;
    f->ended = 0;
    f->has_stop_time = 0;
    return fmi2OK;
}

/* The variable with a value reference if it is of one of two kinds, else NULL. */
static const bl_variable *find_variable(const bl_fmu *f, fmi2ValueReference reference, int32_t kind, int32_t or_kind) {
    const bl_variable *variables = NULL;
    const int64_t count = bl_variables(f->engine, &variables);
    if ((int64_t)reference < count &&
        (variables[reference].kind == kind || variables[reference].kind == or_kind))
        return &variables[reference];
    say(f, fmi2Error, "there is no such variable: value reference %u", reference);
    return NULL;
}

static fmi2Status check_arrays(const bl_fmu *f, const void *references, size_t count, const void *values) {
    if (count == 0 || (references && values)) return fmi2OK;
    say(f, fmi2Error, "an array is NULL");
    return fmi2Error;
}

/* Outputs are computed only if one is asked for. After an error the values are as it left them. */
static fmi2Status get(bl_fmu *f, const bl_variable *variable, double *value) {
    if (f->state != BROKEN && (variable->causality == BL_OUTPUT || variable->causality == BL_LOCAL)) {
        if (f->state & BEFORE_STEPS && prepare(f) != fmi2OK) return fmi2Error;
        if (bl_outputs(f->engine) != BL_OK) return fail(f);
    }
    *value = bl_values(f->engine)[variable->slot];
    return fmi2OK;
}

static fmi2Status set(bl_fmu *f, const bl_variable *variable, double value) {
    const int is_parameter = variable->causality == BL_FIXED_PARAMETER || variable->causality == BL_TUNABLE_PARAMETER;
    const int allowed = variable->causality == BL_INPUT || variable->causality == BL_TUNABLE_PARAMETER ||
                        (variable->causality == BL_FIXED_PARAMETER && f->state & BEFORE_STEPS);
    if (!allowed) {
        say(f, fmi2Error, is_parameter ? "this parameter is fixed after initialization" : "an output cannot be set");
        return fmi2Error;
    }
    if (!isfinite(value)) {
        say(f, fmi2Discard, "a value is not finite");
        return fmi2Discard;
    }
    bl_values(f->engine)[variable->slot] = value;
    bl_touch(f->engine);
    if (is_parameter && f->state & BEFORE_STEPS) f->needs_init = 1;
    return fmi2OK;
}

#define GET(function, type, kind, or_kind, convert)                                                        \
    fmi2Status function(fmi2Component c, const fmi2ValueReference references[], size_t count, type values[]) { \
        ENTER(ANY_STATE, #function)                                                                        \
        fmi2Status status = check_arrays(f, references, count, values);                                    \
        for (size_t k = 0; k < count && status == fmi2OK; k++) {                                           \
            const bl_variable *variable = find_variable(f, references[k], kind, or_kind);                  \
            double value = 0.0;                                                                            \
            status = variable ? get(f, variable, &value) : fmi2Error;                                      \
            if (status == fmi2OK) values[k] = convert;                                                     \
        }                                                                                                  \
        return status;                                                                                     \
    }

#define SET(function, type, kind, or_kind, convert)                                                              \
    fmi2Status function(fmi2Component c, const fmi2ValueReference references[], size_t count, const type values[]) { \
        ENTER(BEFORE_STEPS | STEPPING, #function)                                                                \
        fmi2Status status = check_arrays(f, references, count, values);                                          \
        for (size_t k = 0; k < count && status == fmi2OK; k++) {                                                 \
            const bl_variable *variable = find_variable(f, references[k], kind, or_kind);                        \
            status = variable ? set(f, variable, convert) : fmi2Error;                                           \
        }                                                                                                        \
        return status;                                                                                           \
    }

static fmi2Integer to_integer(double value) {
    if (!(value > -2147483648.0)) return INT32_MIN;
    if (!(value < 2147483647.0)) return INT32_MAX;
    return (fmi2Integer)value;
}

GET(fmi2GetReal, fmi2Real, BL_REAL, BL_REAL, value)
GET(fmi2GetInteger, fmi2Integer, BL_INTEGER, BL_ENUMERATION, to_integer(value))
GET(fmi2GetBoolean, fmi2Boolean, BL_BOOLEAN, BL_BOOLEAN, value != 0.0 ? fmi2True : fmi2False)
SET(fmi2SetReal, fmi2Real, BL_REAL, BL_REAL, values[k])
SET(fmi2SetInteger, fmi2Integer, BL_INTEGER, BL_ENUMERATION, (double)values[k])
SET(fmi2SetBoolean, fmi2Boolean, BL_BOOLEAN, BL_BOOLEAN, values[k] != fmi2False ? 1.0 : 0.0)

fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference references[], size_t count, fmi2String values[]) {
    (void)references;
    (void)values;
    ENTER(ANY_STATE, "fmi2GetString")
    if (count == 0) return fmi2OK;
    say(f, fmi2Error, "this FMU has no string variables");
    return fmi2Error;
}

fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference references[], size_t count,
                         const fmi2String values[]) {
    (void)references;
    (void)values;
    ENTER(BEFORE_STEPS | STEPPING, "fmi2SetString")
    if (count == 0) return fmi2OK;
    say(f, fmi2Error, "this FMU has no string variables");
    return fmi2Error;
}

static size_t snapshot_size(const bl_fmu *f) { return sizeof(bl_fmu_snapshot) + bl_state_size(f->engine); }

/* NULL if `state` is not a snapshot of this FMU. */
static bl_fmu_snapshot *snapshot_of(const bl_fmu *f, fmi2FMUstate state) {
    bl_fmu_snapshot *snapshot = state;
    if (snapshot && snapshot->magic == SNAPSHOT_MAGIC && snapshot->size == bl_state_size(f->engine)) return snapshot;
    say(f, fmi2Error, "this is not a state of this FMU");
    return NULL;
}

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state) {
    ENTER(ANY_STATE, "fmi2GetFMUstate")
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
    ENTER(ANY_STATE, "fmi2SetFMUstate")
    const bl_fmu_snapshot *snapshot = snapshot_of(f, state);
    if (!snapshot) return fmi2Error;
    if (bl_restore(f->engine, snapshot + 1, (size_t)snapshot->size) != BL_OK) {
        say(f, fmi2Error, "%s", bl_message(f->engine));
        return fmi2Error;
    }
    f->state = (bl_fmu_state)snapshot->fmu_state;
    f->needs_init = snapshot->needs_init;
    f->ended = snapshot->ended;
    return fmi2OK;
}

fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state) {
    ENTER(ANY_STATE, "fmi2FreeFMUstate")
    if (!state || !*state) return fmi2OK;
    bl_fmu_snapshot *snapshot = snapshot_of(f, *state);
    if (!snapshot) return fmi2Error;
    snapshot->magic = 0;
    free(snapshot);
    *state = NULL;
    return fmi2OK;
}

fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t *size) {
    ENTER(ANY_STATE, "fmi2SerializedFMUstateSize")
    if (!size || !snapshot_of(f, state)) return fmi2Error;
    *size = snapshot_size(f);
    return fmi2OK;
}

fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size) {
    ENTER(ANY_STATE, "fmi2SerializeFMUstate")
    const bl_fmu_snapshot *snapshot = snapshot_of(f, state);
    if (!snapshot || !bytes || size < snapshot_size(f)) {
        say(f, fmi2Error, "a serialised state needs %zu bytes", snapshot_size(f));
        return fmi2Error;
    }
    memcpy(bytes, snapshot, snapshot_size(f));
    return fmi2OK;
}

fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state) {
    ENTER(ANY_STATE, "fmi2DeSerializeFMUstate")
    bl_fmu_snapshot head;
    if (!bytes || !state || size < snapshot_size(f)) {
        say(f, fmi2Error, "a serialised state has %zu bytes, got %zu", snapshot_size(f), size);
        return fmi2Error;
    }
    memcpy(&head, bytes, sizeof head);
    const int known = head.fmu_state == INSTANTIATED || head.fmu_state == INITIALIZING || head.fmu_state == STEPPING ||
                      head.fmu_state == STEP_FAILED || head.fmu_state == TERMINATED || head.fmu_state == BROKEN;
    if (head.magic != SNAPSHOT_MAGIC || head.size != bl_state_size(f->engine) || !known) {
        say(f, fmi2Error, "this is not a serialised state of this FMU");
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
    ENTER(STEPPING, "fmi2DoStep")
    const double step = bl_step(f->engine), start = bl_time(f->engine) - (double)bl_tick(f->engine) * step;
    const double reached = bl_time(f->engine), end = now + size;
    /* Besides the tolerance, allow what rounding does to large times. */
    const double tolerance = GRID_TOLERANCE * step + 4e-16 * fabs(end);
    const double target = nearbyint((end - start) / step);
    if (!(size >= 0.0) || !(fabs(target) <= LARGEST_TICK) || !(fabs(now - reached) <= tolerance)) {
        say(f, fmi2Error, "a step from %.12g by %.12g does not go on from %.12g", now, size, reached);
        f->state = BROKEN;
        return fmi2Error;
    }
    if (fabs(end - (start + target * step)) > tolerance) {
        say(f, fmi2Error, "%.12g is not a whole number of base steps of %.12g", size, step);
        f->state = BROKEN;
        return fmi2Error;
    }
    if (f->has_stop_time && end > f->stop_time + tolerance) {
        say(f, fmi2Error, "the step to %.12g goes beyond the stop time, %.12g", end, f->stop_time);
        f->state = BROKEN;
        return fmi2Error;
    }
    const int status = bl_run(f->engine, (int64_t)target - bl_tick(f->engine), NULL, NULL);
    if (status == BL_STOP) {
        say(f, fmi2Discard, "the simulation ended itself at t = %.9g", bl_time(f->engine));
        f->ended = 1;
        f->state = STEP_FAILED;
        return fmi2Discard;
    }
    return status == BL_OK ? fmi2OK : fail(f);
}

/* After fmi2Discard: whether the FMU wants the simulation to end, and where it stands. */
fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value) {
    ENTER(STEPPING | STEP_FAILED | TERMINATED, "fmi2GetBooleanStatus")
    if (kind != fmi2Terminated || !value) return fmi2Discard;
    *value = f->ended ? fmi2True : fmi2False;
    return fmi2OK;
}

fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value) {
    ENTER(STEPPING | STEP_FAILED | TERMINATED, "fmi2GetRealStatus")
    if (kind != fmi2LastSuccessfulTime || !value) return fmi2Discard;
    *value = bl_time(f->engine);
    return fmi2OK;
}

/* What this FMU does not offer; the description says so too. */
#define REFUSE(function)                                     \
    do {                                                     \
        bl_fmu *f = fmu_of(c);                               \
        if (f) say(f, fmi2Error, function " is not offered"); \
        return fmi2Error;                                    \
    } while (0)

fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference unknowns[], size_t unknown_count,
                                        const fmi2ValueReference knowns[], size_t known_count, const fmi2Real seed[],
                                        fmi2Real sensitivity[]) {
    (void)unknowns, (void)unknown_count, (void)knowns, (void)known_count, (void)seed, (void)sensitivity;
    REFUSE("fmi2GetDirectionalDerivative");
}

fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference references[], size_t count,
                                       const fmi2Integer orders[], const fmi2Real values[]) {
    (void)references, (void)count, (void)orders, (void)values;
    REFUSE("fmi2SetRealInputDerivatives");
}

fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference references[], size_t count,
                                        const fmi2Integer orders[], fmi2Real values[]) {
    (void)references, (void)count, (void)orders, (void)values;
    REFUSE("fmi2GetRealOutputDerivatives");
}

fmi2Status fmi2CancelStep(fmi2Component c) { REFUSE("fmi2CancelStep"); }

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
