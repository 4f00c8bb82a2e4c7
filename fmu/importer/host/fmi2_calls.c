/* FMI 2.0: the functions of an FMU for co-simulation, called by the operations of bl_fmi. */
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "fmu/fmi2.h"
#include "fmu/importer/host/host.h"

/* By FMI's own names. */
typedef struct {
    const char *(*GetVersion)(void);
    fmi2Status (*SetDebugLogging)(fmi2Component, fmi2Boolean, size_t, const fmi2String[]);
    fmi2Component (*Instantiate)(fmi2String, fmi2Type, fmi2String, fmi2String, const fmi2CallbackFunctions *,
                                 fmi2Boolean, fmi2Boolean);
    void (*FreeInstance)(fmi2Component);
    fmi2Status (*SetupExperiment)(fmi2Component, fmi2Boolean, fmi2Real, fmi2Real, fmi2Boolean, fmi2Real);
    fmi2Status (*EnterInitializationMode)(fmi2Component);
    fmi2Status (*ExitInitializationMode)(fmi2Component);
    fmi2Status (*Terminate)(fmi2Component);
    fmi2Status (*GetReal)(fmi2Component, const fmi2ValueReference[], size_t, fmi2Real[]);
    fmi2Status (*GetInteger)(fmi2Component, const fmi2ValueReference[], size_t, fmi2Integer[]);
    fmi2Status (*GetBoolean)(fmi2Component, const fmi2ValueReference[], size_t, fmi2Boolean[]);
    fmi2Status (*SetReal)(fmi2Component, const fmi2ValueReference[], size_t, const fmi2Real[]);
    fmi2Status (*SetInteger)(fmi2Component, const fmi2ValueReference[], size_t, const fmi2Integer[]);
    fmi2Status (*SetBoolean)(fmi2Component, const fmi2ValueReference[], size_t, const fmi2Boolean[]);
    fmi2Status (*SetString)(fmi2Component, const fmi2ValueReference[], size_t, const fmi2String[]);
    fmi2Status (*GetString)(fmi2Component, const fmi2ValueReference[], size_t, fmi2String[]);
    fmi2Status (*DoStep)(fmi2Component, fmi2Real, fmi2Real, fmi2Boolean);
    fmi2Status (*GetBooleanStatus)(fmi2Component, const fmi2StatusKind, fmi2Boolean *);
    fmi2Status (*GetRealStatus)(fmi2Component, const fmi2StatusKind, fmi2Real *); /* NULL: there is none */
    /* Looked up only if the model description declares the capability. */
    fmi2Status (*GetFMUstate)(fmi2Component, fmi2FMUstate *);
    fmi2Status (*SetFMUstate)(fmi2Component, fmi2FMUstate);
    fmi2Status (*FreeFMUstate)(fmi2Component, fmi2FMUstate *);
    fmi2Status (*SerializedFMUstateSize)(fmi2Component, fmi2FMUstate, size_t *);
    fmi2Status (*SerializeFMUstate)(fmi2Component, fmi2FMUstate, fmi2Byte[], size_t);
    fmi2Status (*DeSerializeFMUstate)(fmi2Component, const fmi2Byte[], size_t, fmi2FMUstate *);
    fmi2Status (*SetRealInputDerivatives)(fmi2Component, const fmi2ValueReference[], size_t, const fmi2Integer[],
                                          const fmi2Real[]);
    fmi2Status (*GetDirectionalDerivative)(fmi2Component, const fmi2ValueReference[], size_t,
                                           const fmi2ValueReference[], size_t, const fmi2Real[], fmi2Real[]);
} bl_fmi2_functions;

#define SYMBOL(name, flag) {#name, offsetof(bl_fmi2_functions, name), flag}
static const bl_fmu_symbol SYMBOLS[] = {
    SYMBOL(GetVersion, 0),
    SYMBOL(SetDebugLogging, 0),
    SYMBOL(Instantiate, 0),
    SYMBOL(FreeInstance, 0),
    SYMBOL(SetupExperiment, 0),
    SYMBOL(EnterInitializationMode, 0),
    SYMBOL(ExitInitializationMode, 0),
    SYMBOL(Terminate, 0),
    SYMBOL(GetReal, 0),
    SYMBOL(GetInteger, 0),
    SYMBOL(GetBoolean, 0),
    SYMBOL(SetReal, 0),
    SYMBOL(SetInteger, 0),
    SYMBOL(SetBoolean, 0),
    SYMBOL(SetString, 0),
    SYMBOL(GetString, HOST_NO_FLAG),
    SYMBOL(DoStep, 0),
    SYMBOL(GetBooleanStatus, 0),
    SYMBOL(GetRealStatus, HOST_NO_FLAG),
    SYMBOL(GetFMUstate, HOST_CAN_SAVE),
    SYMBOL(SetFMUstate, HOST_CAN_SAVE),
    SYMBOL(FreeFMUstate, HOST_CAN_SAVE),
    SYMBOL(SerializedFMUstateSize, HOST_CAN_SERIALIZE),
    SYMBOL(SerializeFMUstate, HOST_CAN_SERIALIZE),
    SYMBOL(DeSerializeFMUstate, HOST_CAN_SERIALIZE),
    SYMBOL(SetRealInputDerivatives, HOST_CAN_INTERPOLATE),
    SYMBOL(GetDirectionalDerivative, HOST_GIVES_DERIVATIVES),
};
#undef SYMBOL

static const bl_fmi2_functions *calls_of(const bl_fmu_host *f) { return f->calls; }

/* CALL(f, DoStep, t, ...): the status of the call, after which the rounding mode is what it was. */
#define CALL(f, name, ...) bl_fmu_leave_call(f, (int)calls_of(f)->name((f)->component, __VA_ARGS__))
#define CALL_PLAIN(f, name) bl_fmu_leave_call(f, (int)calls_of(f)->name((f)->component))

static const char *get_version(const void *calls) { return ((const bl_fmi2_functions *)calls)->GetVersion(); }

static const char *find_missing(const bl_fmu_host *f, const bl_block *b) {
    const int32_t *record = bl_fmu_output_records(b), *end = bl_fmu_parameter_records(b);
    for (; record < end; record += HOST_OUTPUT_FIELDS)
        if (record[1] == HOST_STRING && !calls_of(f)->GetString) return "fmi2GetString";
    return NULL;
}

static void note_message(fmi2ComponentEnvironment environment, fmi2String instance, fmi2Status status,
                         fmi2String category, fmi2String message, ...) {
    va_list arguments;
    (void)instance;
    va_start(arguments, message);
    bl_fmu_note_message(environment, (int)status, category, message, &arguments);
    va_end(arguments);
}

/* ---- the life of an instance */

static void instantiate(bl_fmu_host *f, int listening) {
    if (!f->callbacks) f->callbacks = malloc(sizeof(fmi2CallbackFunctions));
    if (!f->callbacks) return;
    *(fmi2CallbackFunctions *)f->callbacks = (fmi2CallbackFunctions){note_message, calloc, free, NULL, f};
    f->component = calls_of(f)->Instantiate(f->name, fmi2CoSimulation, f->guid, f->resources, f->callbacks, fmi2False,
                                            listening ? fmi2True : fmi2False);
}

static void free_instance(bl_fmu_host *f) { calls_of(f)->FreeInstance(f->component); }

static bl_fmi_status terminate(bl_fmu_host *f) { return CALL_PLAIN(f, Terminate); }

static bl_fmi_status set_debug_logging(bl_fmu_host *f) {
    return CALL(f, SetDebugLogging, fmi2True, (size_t)f->category_count, (const fmi2String *)f->categories);
}

static int setup(const bl_block *b, bl_fmu_host *f, double t) {
    const int stops = !isnan(f->stop_time);
    (void)b;
    return bl_host_status(
        f, CALL(f, SetupExperiment, f->tolerance > 0.0, f->tolerance, t, stops, stops ? f->stop_time : 0.0),
        "SetupExperiment", t);
}

static int enter_initialization(bl_fmu_host *f, double t) {
    return bl_host_status(f, CALL_PLAIN(f, EnterInitializationMode), "EnterInitializationMode", t);
}

static int exit_initialization(const bl_block *b, bl_fmu_host *f, double t) {
    (void)b;
    const int status = bl_host_status(f, CALL_PLAIN(f, ExitInitializationMode), "ExitInitializationMode", t);
    if (status == BL_OK) f->mode = HOST_STEPPING;
    return status;
}

/* ---- values */

/* An integer or boolean; a bl_status. */
static int convert(bl_fmu_host *f, int32_t type, uint32_t reference, double value, fmi2Integer *to) {
    if (type == HOST_BOOLEAN) {
        *to = value != 0.0;
        return BL_OK;
    }
    if (!(value >= (double)INT_MIN && value <= (double)INT_MAX))
        return bl_fmu_error(
            f, "the integer with value reference %u cannot be %.17g: the range of FMI 2.0 is -2147483648 to 2147483647",
            (unsigned)reference, value);
    *to = (fmi2Integer)lrint(value);
    return BL_OK;
}

static int set(bl_fmu_host *f, bl_fmu_group *g, double t) {
    const size_t count = (size_t)g->count;
    if (g->type == HOST_REAL) {
        const bl_fmi_status status = CALL(f, SetReal, g->references, count, g->reals);
        return status <= FMI_WARNING ? BL_OK : bl_host_status(f, status, "SetReal", t);
    }
    fmi2Integer *integers = g->native;
    for (int32_t k = 0; k < g->count; k++) {
        const int status = convert(f, g->type, g->references[k], g->reals[k], &integers[k]);
        if (status != BL_OK) return status;
    }
    return g->type == HOST_INTEGER
               ? bl_host_status(f, CALL(f, SetInteger, g->references, count, integers), "SetInteger", t)
               : bl_host_status(f, CALL(f, SetBoolean, g->references, count, integers), "SetBoolean", t);
}

static int get_reals(bl_fmu_host *f, bl_fmu_group *g, double t) {
    double *into = g->in_a_row ? g->places[0] : g->reals;
    const bl_fmi_status status = CALL(f, GetReal, g->references, (size_t)g->count, into);
    if (status > FMI_WARNING) return bl_host_status(f, status, "GetReal", t);
    if (g->in_a_row && f->flags & HOST_GIVES_DERIVATIVES) memcpy(g->reals, into, (size_t)g->count * sizeof *into);
    if (!g->in_a_row)
        for (int32_t k = 0; k < g->count; k++) *g->places[k] = g->reals[k];
    return BL_OK;
}

static int get(bl_fmu_host *f, bl_fmu_group *g, double t) {
    if (g->type == HOST_REAL) return get_reals(f, g, t);
    const int boolean = g->type == HOST_BOOLEAN;
    fmi2Integer *integers = g->native;
    const bl_fmi_status status = boolean ? CALL(f, GetBoolean, g->references, (size_t)g->count, integers)
                                         : CALL(f, GetInteger, g->references, (size_t)g->count, integers);
    if (status > FMI_WARNING) return bl_host_status(f, status, boolean ? "GetBoolean" : "GetInteger", t);
    for (int32_t k = 0; k < g->count; k++) *g->places[k] = boolean ? (integers[k] ? 1.0 : 0.0) : (double)integers[k];
    return BL_OK;
}

/* FMI 2.0 has no arrays: `count` is 1. */
static int set_array(bl_fmu_host *f, int32_t type, const double *values, int32_t number, int32_t count,
                     uint32_t reference, double t) {
    (void)number, (void)count;
    fmi2Integer whole = 0;
    if (type == HOST_REAL) return bl_host_status(f, CALL(f, SetReal, &reference, 1, values), "SetReal", t);
    const int status = convert(f, type, reference, values[0], &whole);
    if (status != BL_OK) return status;
    return type == HOST_INTEGER ? bl_host_status(f, CALL(f, SetInteger, &reference, 1, &whole), "SetInteger", t)
                                : bl_host_status(f, CALL(f, SetBoolean, &reference, 1, &whole), "SetBoolean", t);
}

static int set_strings(bl_fmu_host *f, double t) {
    if (f->string_count == 0) return BL_OK;
    return bl_host_status(
        f, CALL(f, SetString, f->string_references, (size_t)f->string_count, (const fmi2String *)f->strings),
        "SetString", t);
}

static bl_fmi_status set_texts(bl_fmu_host *f, const uint32_t *references, const char *const *texts, size_t count) {
    return CALL(f, SetString, references, count, texts);
}
static bl_fmi_status get_texts(bl_fmu_host *f, const uint32_t *references, const char **texts, size_t count) {
    return CALL(f, GetString, references, count, texts);
}

static bl_fmi_status set_input_derivatives(bl_fmu_host *f, bl_fmu_group *g) {
    return CALL(f, SetRealInputDerivatives, g->references, (size_t)g->count, g->orders, g->input_derivatives);
}

static bl_fmi_status get_directional_derivative(bl_fmu_host *f, bl_fmu_group *out, bl_fmu_group *in) {
    return CALL(f, GetDirectionalDerivative, out->references, (size_t)out->count, in->references, (size_t)in->count,
                in->input_derivatives, out->input_derivatives);
}

/* ---- steps */

/* Returns the time reached in a step that was discarded with fmi2Terminated; t if the FMU does not report it. */
static double last_successful_time(bl_fmu_host *f, double t, double h) {
    double reached = t;
    if (!calls_of(f)->GetRealStatus || CALL(f, GetRealStatus, fmi2LastSuccessfulTime, &reached) != FMI_OK) return t;
    return reached > t && reached <= t + 1.000001 * h ? reached : t;
}

static int do_step(const bl_block *b, bl_fmu_host *f, double t, double h, int is_last) {
    const bl_fmi_status status = CALL(f, DoStep, t, h, bl_fmu_cannot_return(f, t, h) ? fmi2True : fmi2False);
    if (status <= FMI_WARNING) return BL_OK;
    fmi2Boolean ended = fmi2False;
    if (status == FMI_DISCARD && CALL(f, GetBooleanStatus, fmi2Terminated, &ended) == FMI_OK && ended) {
        const double reached = last_successful_time(f, t, h);
        bl_note_event(b, reached, 0);
        if (!is_last || reached < t + 0.999999 * h) return bl_fmu_end_run(f, reached);
        f->ended = 1; /* after the step was done: its end is still a sample */
        return BL_OK;
    }
    if (status == FMI_PENDING) {
        f->mode = HOST_BROKEN;
        return bl_fmu_error(
            f, "fmi2DoStep returned fmi2Pending at t = %.9g, although asynchronous execution was not requested", t);
    }
    return bl_host_status(f, status, "DoStep", t);
}

/* ---- states */

static int get_state(bl_fmu_host *f, void **state) {
    return bl_host_status(f, CALL(f, GetFMUstate, state), "GetFMUstate", 0.0);
}
static int set_state(bl_fmu_host *f, void *state) {
    return bl_host_status(f, CALL(f, SetFMUstate, state), "SetFMUstate", 0.0);
}
static void free_state(bl_fmu_host *f, void **state) { CALL(f, FreeFMUstate, state); }
static int serialized_size(bl_fmu_host *f, void *state, size_t *size) {
    return bl_host_status(f, CALL(f, SerializedFMUstateSize, state, size), "SerializedFMUstateSize", 0.0);
}
static int serialize(bl_fmu_host *f, void *state, void *bytes, size_t size) {
    return bl_host_status(f, CALL(f, SerializeFMUstate, state, bytes, size), "SerializeFMUstate", 0.0);
}
static int deserialize(bl_fmu_host *f, const void *bytes, size_t size, void **state) {
    return bl_host_status(f, CALL(f, DeSerializeFMUstate, bytes, size, state), "DeSerializeFMUstate", 0.0);
}

const bl_fmi bl_fmi2_calls = {
    .prefix = "fmi2",
    .instantiate_name = "fmi2Instantiate",
    .version = "2.0",
    .calls_size = sizeof(bl_fmi2_functions),
    .symbols = SYMBOLS,
    .symbol_count = sizeof SYMBOLS / sizeof *SYMBOLS,
    .input_derivative_limit = 2,
    .get_version = get_version,
    .find_missing = find_missing,
    .instantiate = instantiate,
    .free_instance = free_instance,
    .terminate = terminate,
    .set_debug_logging = set_debug_logging,
    .setup = setup,
    .enter_initialization = enter_initialization,
    .exit_initialization = exit_initialization,
    .set = set,
    .get = get,
    .set_array = set_array,
    .set_strings = set_strings,
    .set_texts = set_texts,
    .get_texts = get_texts,
    .do_step = do_step,
    .set_input_derivatives = set_input_derivatives,
    .get_directional_derivative = get_directional_derivative,
    .get_state = get_state,
    .set_state = set_state,
    .free_state = free_state,
    .serialized_size = serialized_size,
    .serialize = serialize,
    .deserialize = deserialize,
};
