/* FMI 3.0: the functions of an FMU for co-simulation, called by the operations of bl_fmi.
 *
 * A step that returns early is continued to its end. If event mode is used (HOST_HAS_EVENTS), discrete inputs and tunable parameters are
 * set in event mode, which the next step ends; events that the FMU reports, and its time events, are handled where they occur. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmu/fmi3.h"
#include "fmu/importer/host/clocks.h"

enum {
    LARGEST_EVENTS = 1000, /* at one instant */
    LARGEST_PARTS = 1000000 /* of one step */
};

/* Types of values: ours, FMI's name, C's name. Booleans are read and written as bytes: an FMU may return more than 0 and 1. */
#define REAL_TYPES(X) X(HOST_REAL, Float64, double) X(HOST_FLOAT32, Float32, float)
#define INTEGER_TYPES(X) \
    X(HOST_INTEGER, Int32, int32_t) \
    X(HOST_INT8, Int8, int8_t) \
    X(HOST_UINT8, UInt8, uint8_t) \
    X(HOST_INT16, Int16, int16_t) X(HOST_UINT16, UInt16, uint16_t) X(HOST_UINT32, UInt32, uint32_t)
#define WIDE_TYPES(X) X(HOST_INT64, Int64, int64_t) X(HOST_UINT64, UInt64, uint64_t)
#define NUMBER_TYPES(X) REAL_TYPES(X) INTEGER_TYPES(X) WIDE_TYPES(X)
#define ALL_TYPES(X) NUMBER_TYPES(X) X(HOST_BOOLEAN, Boolean, unsigned char)

#define FUNCTION(name) fmi3##name##TYPE *name
typedef struct {
    FUNCTION(GetVersion);
    FUNCTION(InstantiateCoSimulation);
    FUNCTION(InstantiateModelExchange);
    FUNCTION(FreeInstance);
    FUNCTION(EnterInitializationMode);
    FUNCTION(ExitInitializationMode);
    FUNCTION(Terminate);
    FUNCTION(DoStep);
    /* Looked up, and missed only where they are needed. */
    FUNCTION(SetDebugLogging);
#define ACCESS(type, name, c) \
    FUNCTION(Get##name); \
    FUNCTION(Set##name);
    ALL_TYPES(ACCESS)
#undef ACCESS
    FUNCTION(GetString);
    FUNCTION(SetString);
    FUNCTION(GetBinary);
    FUNCTION(SetBinary);
    FUNCTION(EnterEventMode);
    FUNCTION(UpdateDiscreteStates);
    FUNCTION(EnterStepMode);
    FUNCTION(EnterConfigurationMode);
    FUNCTION(ExitConfigurationMode);
    FUNCTION(GetFMUState);
    FUNCTION(SetFMUState);
    FUNCTION(FreeFMUState);
    FUNCTION(SerializedFMUStateSize);
    FUNCTION(SerializeFMUState);
    FUNCTION(DeserializeFMUState);
    FUNCTION(GetDirectionalDerivative);
} bl_fmi3_functions;
#undef FUNCTION

#define SYMBOL(name, flag) {#name, offsetof(bl_fmi3_functions, name), flag}
static const bl_fmu_symbol SYMBOLS[] = {
    SYMBOL(GetVersion, 0),
    SYMBOL(InstantiateCoSimulation, HOST_STEPS),
    SYMBOL(InstantiateModelExchange, HOST_EXCHANGES),
    SYMBOL(FreeInstance, 0),
    SYMBOL(EnterInitializationMode, 0),
    SYMBOL(ExitInitializationMode, 0),
    SYMBOL(Terminate, 0),
    SYMBOL(DoStep, HOST_STEPS),
    SYMBOL(SetDebugLogging, HOST_NO_FLAG),
#define ACCESS(type, name, c) SYMBOL(Get##name, HOST_NO_FLAG), SYMBOL(Set##name, HOST_NO_FLAG),
    ALL_TYPES(ACCESS)
#undef ACCESS
        SYMBOL(GetString, HOST_NO_FLAG),
    SYMBOL(SetString, HOST_NO_FLAG),
    SYMBOL(GetBinary, HOST_NO_FLAG),
    SYMBOL(SetBinary, HOST_NO_FLAG),
    SYMBOL(EnterEventMode, HOST_HAS_EVENTS),
    SYMBOL(UpdateDiscreteStates, HOST_HAS_EVENTS),
    SYMBOL(EnterStepMode, HOST_HAS_EVENTS),
    SYMBOL(EnterConfigurationMode, HOST_IS_CONFIGURED),
    SYMBOL(ExitConfigurationMode, HOST_IS_CONFIGURED),
    SYMBOL(GetFMUState, HOST_CAN_SAVE),
    SYMBOL(SetFMUState, HOST_CAN_SAVE),
    SYMBOL(FreeFMUState, HOST_CAN_SAVE),
    SYMBOL(SerializedFMUStateSize, HOST_CAN_SERIALIZE),
    SYMBOL(SerializeFMUState, HOST_CAN_SERIALIZE),
    SYMBOL(DeserializeFMUState, HOST_CAN_SERIALIZE),
    SYMBOL(GetDirectionalDerivative, HOST_GIVES_DERIVATIVES),
};
#undef SYMBOL

static const bl_fmi3_functions *calls_of(const bl_fmu_host *f) { return f->calls; }

/* CALL(f, DoStep, t, ...): the status of the call, after which the rounding mode is what it was. */
#define CALL(f, name, ...) bl_fmu_leave_call(f, (int)calls_of(f)->name((f)->component, __VA_ARGS__))
#define CALL_PLAIN(f, name) bl_fmu_leave_call(f, (int)calls_of(f)->name((f)->component))

static const char *get_version(const void *calls) { return ((const bl_fmi3_functions *)calls)->GetVersion(); }

/* The name of the function that gets or sets a type, if the FMU does not have it. */
static const char *missing_access(const bl_fmi3_functions *calls, int32_t type, int gets) {
    switch (type) {
#define ACCESS(type, name, c) \
    case type: return gets ? (calls->Get##name ? NULL : "fmi3Get" #name) : (calls->Set##name ? NULL : "fmi3Set" #name);
        ALL_TYPES(ACCESS)
        ACCESS(HOST_STRING, String, fmi3String)
        ACCESS(HOST_BINARY, Binary, fmi3Binary)
#undef ACCESS
        default: return NULL;
    }
}

static const char *find_missing(const bl_fmu_host *f, const bl_block *b) {
    const bl_fmi3_functions *calls = calls_of(f);
    const int32_t *record = bl_fmu_input_records(b), *outputs = bl_fmu_output_records(b),
                  *parameters = bl_fmu_parameter_records(b),
                  *end = parameters + (ptrdiff_t)b->i[HOST_PARAMETERS] * HOST_PARAMETER_FIELDS;
    const char *missing = NULL;
    for (; record < outputs && !missing; record += HOST_INPUT_FIELDS)
        missing = missing_access(calls, record[1] & HOST_TYPE_MASK, 0);
    for (; outputs < parameters && !missing; outputs += HOST_OUTPUT_FIELDS)
        missing = missing_access(calls, outputs[1] & HOST_TYPE_MASK, 1);
    for (; parameters < end && !missing; parameters += HOST_PARAMETER_FIELDS)
        missing = missing_access(calls, parameters[1] & HOST_TYPE_MASK, 0);
    if (!missing && f->string_count > 0 && !calls->SetString) missing = "fmi3SetString";
    if (!missing && f->binary_count > 0 && !calls->SetBinary) missing = "fmi3SetBinary";
    return missing;
}

static void note_message(fmi3InstanceEnvironment environment, fmi3Status status, fmi3String category,
                         fmi3String message) {
    bl_fmu_note_message(environment, (int)status, category, message, NULL);
}

/* An FMU may call this within a step, and some do so without a look at whether it is NULL. Nothing is exchanged there: inputs keep their
   values, and the step goes on. */
static void decline_update(fmi3InstanceEnvironment environment, fmi3Float64 time, fmi3Boolean sets, fmi3Boolean gets,
                           fmi3Boolean is_finished, fmi3Boolean can_return, fmi3Boolean *requested,
                           fmi3Float64 *return_time) {
    (void)environment, (void)sets, (void)gets, (void)is_finished, (void)can_return;
    if (requested) *requested = fmi3False;
    if (return_time) *return_time = time;
}

/* ---- the life of an instance */

static void instantiate(bl_fmu_host *f, int listening) {
    if (f->exchange) {
        f->component = calls_of(f)->InstantiateModelExchange(f->name, f->guid, f->resources, false, listening != 0, f,
                                                             note_message);
        return;
    }
    const int events = (f->flags & HOST_HAS_EVENTS) != 0;
    f->component =
        calls_of(f)->InstantiateCoSimulation(f->name, f->guid, f->resources, false, listening != 0, events != 0,
                                             events != 0, NULL, 0, f, note_message, decline_update);
}

static void free_instance(bl_fmu_host *f) { calls_of(f)->FreeInstance(f->component); }

static bl_fmi_status terminate(bl_fmu_host *f) { return CALL_PLAIN(f, Terminate); }

static bl_fmi_status set_debug_logging(bl_fmu_host *f) {
    if (!calls_of(f)->SetDebugLogging) return FMI_OK;
    return CALL(f, SetDebugLogging, true, (size_t)f->category_count, (const fmi3String *)f->categories);
}

static int setup(const bl_block *b, bl_fmu_host *f, double t) {
    if (!(f->flags & HOST_IS_CONFIGURED)) return BL_OK;
    int status = bl_host_status(f, CALL_PLAIN(f, EnterConfigurationMode), "EnterConfigurationMode", t);
    if (status == BL_OK) status = bl_fmu_set_structural(b, f, t);
    if (status == BL_OK) status = bl_host_status(f, CALL_PLAIN(f, ExitConfigurationMode), "ExitConfigurationMode", t);
    return status;
}

static int enter_initialization(bl_fmu_host *f, double t) {
    const int stops = !isnan(f->stop_time);
    return bl_host_status(
        f,
        CALL(f, EnterInitializationMode, f->tolerance > 0.0, f->tolerance, t, stops != 0, stops ? f->stop_time : 0.0),
        "EnterInitializationMode", t);
}

/* ---- event mode */

static int enter_events(bl_fmu_host *f, double t) {
    if (f->mode == HOST_EVENTS) return BL_OK;
    const int status = bl_host_status(f, CALL_PLAIN(f, EnterEventMode), "EnterEventMode", t);
    if (status == BL_OK) f->mode = HOST_EVENTS;
    return status;
}

static int update_events(bl_fmu_host *f, double t, int *more, int *ended) {
    fmi3Boolean again = false, stops = false, nominals = false, values = false, timed = false;
    double next = INFINITY;
    int status = bl_host_status(f, CALL(f, UpdateDiscreteStates, &again, &stops, &nominals, &values, &timed, &next),
                                "UpdateDiscreteStates", t);
    if (status == BL_OK && f->clocks) status = bl_clocks_update(f, t);
    if (status != BL_OK) return status;
    f->next_event = timed ? next : INFINITY;
    if (isnan(f->next_event)) {
        f->mode = HOST_BROKEN;
        return bl_fmu_error(f, "fmi3UpdateDiscreteStates returned nextEventTime = NaN at t = %.9g", t);
    }
    *more = again;
    *ended = stops;
    return BL_OK;
}

static int enter_steps(bl_fmu_host *f, double t) {
    const int status = bl_host_status(f, CALL_PLAIN(f, EnterStepMode), "EnterStepMode", t);
    if (status == BL_OK) f->mode = HOST_STEPPING;
    return status;
}

/* Iterates in event mode and leaves it. Clocks that are due are activated. An FMU that ends the simulation stays there, where its outputs can
   be read; *ended is then set. */
static int handle_events(const bl_block *b, bl_fmu_host *f, double t, int *ended) {
    for (int k = 0; k < LARGEST_EVENTS; k++) {
        int more = 0;
        int status = f->clocks ? bl_clocks_activate(f, t) : BL_OK;
        if (status == BL_OK && f->clocks) status = bl_clocks_exchange(b, f, t, true);
        if (status == BL_OK) status = update_events(f, t, &more, ended);
        if (status != BL_OK || *ended) return status;
        if (more || bl_clocks_due(f, t)) continue;
        return enter_steps(f, t);
    }
    f->mode = HOST_BROKEN;
    return bl_fmu_error(f, "fmi3UpdateDiscreteStates requested more than %d iterations at t = %.9g", LARGEST_EVENTS, t);
}

static int leave_events(const bl_block *b, bl_fmu_host *f, double t) {
    return f->mode == HOST_EVENTS ? handle_events(b, f, t, &f->ended) : BL_OK;
}

static int exit_initialization(const bl_block *b, bl_fmu_host *f, double t) {
    int status = f->clocks ? bl_clocks_begin(f, t) : BL_OK;
    if (status == BL_OK) status = bl_host_status(f, CALL_PLAIN(f, ExitInitializationMode), "ExitInitializationMode", t);
    if (status != BL_OK) return status;
    f->mode = f->flags & HOST_HAS_EVENTS ? HOST_EVENTS : HOST_STEPPING; /* of co-simulation */
    /* The outputs of clocks that tick at the start are evaluated as at any other instant: the first step ends the event. The event of a
       network begins when all of its FMUs have come here. */
    return f->mode == HOST_EVENTS && !f->network && !bl_clocks_due(f, t) ? handle_events(b, f, t, &f->ended) : BL_OK;
}

/* ---- values */

typedef struct {
    const char *name, *range;
    double low, end; /* low <= value < end */
} bl_integer_type;

static bl_integer_type describe_integer(int32_t type) {
    switch (type) {
        case HOST_INT8: return (bl_integer_type){"Int8", "-128 to 127", -0x1p7, 0x1p7};
        case HOST_UINT8: return (bl_integer_type){"UInt8", "0 to 255", 0.0, 0x1p8};
        case HOST_INT16: return (bl_integer_type){"Int16", "-32768 to 32767", -0x1p15, 0x1p15};
        case HOST_UINT16: return (bl_integer_type){"UInt16", "0 to 65535", 0.0, 0x1p16};
        case HOST_UINT32: return (bl_integer_type){"UInt32", "0 to 4294967295", 0.0, 0x1p32};
        case HOST_INT64:
            return (bl_integer_type){"Int64", "-9223372036854775808 to 9223372036854775807", -0x1p63, 0x1p63};
        case HOST_UINT64: return (bl_integer_type){"UInt64", "0 to 18446744073709551615", 0.0, 0x1p64};
        default: return (bl_integer_type){"Int32", "-2147483648 to 2147483647", -0x1p31, 0x1p31};
    }
}

/* Converts doubles to the type of the FMU. The variables are those of the records in `numbers`, or from `first` on. */
static int convert(bl_fmu_host *f, int32_t type, const double *from, int32_t count, void *to, const int32_t *numbers,
                   int32_t first) {
    if (type == HOST_BOOLEAN) {
        for (int32_t k = 0; k < count; k++) ((unsigned char *)to)[k] = from[k] != 0.0;
        return BL_OK;
    }
    const bl_integer_type integer = describe_integer(type);
    for (int32_t k = 0; k < count; k++) {
        const double value = type == HOST_FLOAT32 ? from[k] : rint(from[k]);
        const char *name = bl_fmu_variable(f, numbers ? numbers[k] : first + k);
        if (type == HOST_FLOAT32) {
            if (isfinite(value) && fabs(value) > FLT_MAX)
                return bl_fmu_error(f, "`%.100s` cannot be %.17g: the range of Float32 is -3.4e38 to 3.4e38", name,
                                    value);
        } else if (!(value >= integer.low && value < integer.end)) {
            return bl_fmu_error(f, "`%.100s` cannot be %.17g: the range of %s is %s", name, from[k], integer.name,
                                integer.range);
        }
        switch (type) {
#define STORE(type, name, c) \
    case type: ((c *)to)[k] = (c)value; break;
            NUMBER_TYPES(STORE)
#undef STORE
            default: break;
        }
    }
    return BL_OK;
}

/* Sets values in the type of the FMU. */
static int set_native(bl_fmu_host *f, int32_t type, const uint32_t *references, size_t reference_count,
                      const void *values, size_t count, double t) {
    bl_fmi_status status = FMI_OK;
    const char *name = "";
    switch (type) {
#define SET(type, fmi, c) \
    case type: \
        status = CALL(f, Set##fmi, references, reference_count, values, count); \
        name = "Set" #fmi; \
        break;
        NUMBER_TYPES(SET)
        SET(HOST_BOOLEAN, Boolean, unsigned char)
#undef SET
        default: break;
    }
    return status <= FMI_WARNING ? BL_OK : bl_host_status(f, status, name, t);
}

static int set(bl_fmu_host *f, bl_fmu_group *g, double t) {
    int status = BL_OK;
    if (g->is_discrete && f->mode == HOST_STEPPING && f->flags & HOST_HAS_EVENTS) status = enter_events(f, t);
    if (status == BL_OK && g->type != HOST_REAL)
        status = convert(f, g->type, g->reals, g->count, g->native, g->numbers, 0);
    if (status != BL_OK) return status;
    return set_native(f, g->type, g->references, (size_t)g->reference_count,
                      g->type == HOST_REAL ? (const void *)g->reals : g->native, (size_t)g->count, t);
}

static int set_array(bl_fmu_host *f, int32_t type, const double *values, int32_t number, int32_t count,
                     uint32_t reference, double t) {
    int status = BL_OK;
    if (f->mode == HOST_STEPPING && f->flags & HOST_HAS_EVENTS) status = enter_events(f, t);
    if (status == BL_OK && type != HOST_REAL) status = convert(f, type, values, count, f->scratch, NULL, number);
    if (status != BL_OK) return status;
    return set_native(f, type, &reference, 1, type == HOST_REAL ? (const void *)values : f->scratch, (size_t)count, t);
}

static int get_reals(bl_fmu_host *f, bl_fmu_group *g, double t) {
    double *into = g->in_a_row ? g->places[0] : g->reals;
    const size_t count = (size_t)g->count;
    const bl_fmi_status status = CALL(f, GetFloat64, g->references, (size_t)g->reference_count, into, count);
    if (status > FMI_WARNING) return bl_host_status(f, status, "GetFloat64", t);
    if (g->in_a_row && f->flags & HOST_GIVES_DERIVATIVES) memcpy(g->reals, into, count * sizeof *into);
    if (!g->in_a_row)
        for (int32_t k = 0; k < g->count; k++) *g->places[k] = g->reals[k];
    return BL_OK;
}

/* Notes what a double cannot hold. */
static void check_wide(bl_fmu_host *f, const bl_fmu_group *g, double t) {
    char text[24];
    for (int32_t k = 0; k < g->count; k++) {
        if (fabs(*g->places[k]) < 0x1p53) continue;
        if (g->type == HOST_INT64) {
            const int64_t value = ((const int64_t *)g->native)[k];
            const double rounded = (double)value;
            if (rounded < 0x1p63 && (int64_t)rounded == value) continue;
            snprintf(text, sizeof text, "%lld", (long long)value);
        } else {
            const uint64_t value = ((const uint64_t *)g->native)[k];
            const double rounded = (double)value;
            if (rounded < 0x1p64 && (uint64_t)rounded == value) continue;
            snprintf(text, sizeof text, "%llu", (unsigned long long)value);
        }
        bl_fmu_note_inexact(f, g->numbers[k], text, t);
    }
}

static int get(bl_fmu_host *f, bl_fmu_group *g, double t) {
    if (g->type == HOST_REAL) return get_reals(f, g, t);
    const size_t references = (size_t)g->reference_count, count = (size_t)g->count;
    bl_fmi_status status = FMI_OK;
    switch (g->type) {
#define GET(type, name, c) \
    case type: \
        status = CALL(f, Get##name, g->references, references, g->native, count); \
        if (status > FMI_WARNING) return bl_host_status(f, status, "Get" #name, t); \
        for (int32_t k = 0; k < g->count; k++) *g->places[k] = (double)((const c *)g->native)[k]; \
        break;
        NUMBER_TYPES(GET)
#undef GET
        default:
            status = CALL(f, GetBoolean, g->references, references, g->native, count);
            if (status > FMI_WARNING) return bl_host_status(f, status, "GetBoolean", t);
            for (int32_t k = 0; k < g->count; k++) *g->places[k] = ((const unsigned char *)g->native)[k] ? 1.0 : 0.0;
    }
    if (g->type == HOST_INT64 || g->type == HOST_UINT64) check_wide(f, g, t);
    return BL_OK;
}

/* Strings and binaries are discrete. */
static bl_fmi_status set_texts(bl_fmu_host *f, const uint32_t *references, const char *const *texts, size_t count) {
    if (f->mode == HOST_STEPPING && f->flags & HOST_HAS_EVENTS && enter_events(f, f->time) != BL_OK) return FMI_ERROR;
    return CALL(f, SetString, references, count, texts, count);
}
static bl_fmi_status get_texts(bl_fmu_host *f, const uint32_t *references, const char **texts, size_t count) {
    return CALL(f, GetString, references, count, texts, count);
}
static bl_fmi_status set_binaries(bl_fmu_host *f, const uint32_t *references, const size_t *sizes,
                                  const unsigned char *const *values, size_t count) {
    if (f->mode == HOST_STEPPING && f->flags & HOST_HAS_EVENTS && enter_events(f, f->time) != BL_OK) return FMI_ERROR;
    return CALL(f, SetBinary, references, count, sizes, values, count);
}
static bl_fmi_status get_binaries(bl_fmu_host *f, const uint32_t *references, size_t *sizes,
                                  const unsigned char **values, size_t count) {
    return CALL(f, GetBinary, references, count, sizes, values, count);
}

static int set_strings(bl_fmu_host *f, double t) {
    int status = BL_OK;
    if (f->string_count > 0)
        status = bl_host_status(f,
                                CALL(f, SetString, f->string_references, (size_t)f->string_reference_count,
                                     (const fmi3String *)f->strings, (size_t)f->string_count),
                                "SetString", t);
    if (status == BL_OK && f->binary_count > 0)
        status = bl_host_status(f,
                                CALL(f, SetBinary, f->binary_references, (size_t)f->binary_reference_count,
                                     f->binary_sizes, (const fmi3Binary *)f->binaries, (size_t)f->binary_count),
                                "SetBinary", t);
    return status;
}

static bl_fmi_status set_input_derivatives(bl_fmu_host *f, bl_fmu_group *g) { /* FMI 3.0 has none */
    return (void)f, (void)g, FMI_DISCARD;
}

static bl_fmi_status get_directional_derivative(bl_fmu_host *f, bl_fmu_group *out, bl_fmu_group *in) {
    return CALL(f, GetDirectionalDerivative, out->references, (size_t)out->reference_count, in->references,
                (size_t)in->reference_count, in->input_derivatives, (size_t)in->count, out->input_derivatives,
                (size_t)out->count);
}

/* ---- steps */

/* The FMU ends the simulation at `reached`. If that is the end of a tick, its outputs there are still a sample. */
static int end_simulation(const bl_block *b, bl_fmu_host *f, double reached, double end, double h, int is_last) {
    bl_note_event(b, reached, 0);
    if (!is_last || reached < end - 1e-6 * h) return bl_fmu_end_run(f, reached);
    f->ended = 1;
    return BL_OK;
}

/* An event of the FMU at t. */
static int take_event(const bl_block *b, bl_fmu_host *f, double t, int *ended) {
    if (!(f->flags & HOST_HAS_EVENTS)) {
        f->mode = HOST_BROKEN;
        return bl_fmu_error(f,
                            "fmi3DoStep requested event mode at t = %.9g, although it is not used: event_mode=True "
                            "uses it",
                            t);
    }
    bl_note_event(b, t, 1);
    const int status = enter_events(f, t);
    return status == BL_OK ? handle_events(b, f, t, ended) : status;
}

/* A part of a step, from *now to at most `end`, h long: changes *now to the time reached. */
static int take_part(bl_fmu_host *f, double *now, double end, double h, int *needs_event, int *ended) {
    fmi3Boolean event = false, stops = false, early = false;
    const double tiny = 1e-9 * h;
    double reached = NAN;
    const bl_fmi_status status =
        CALL(f, DoStep, *now, h, bl_fmu_cannot_return(f, *now, h), &event, &stops, &early, &reached);
    if (status > FMI_WARNING) return bl_host_status(f, status, "DoStep", *now);
    const int is_within = reached >= *now - tiny && reached <= end + tiny;
    if (early && !stops && !is_within) {
        f->mode = HOST_BROKEN;
        return bl_fmu_error(
            f,
            "fmi3DoStep returned early at t = %.9g with lastSuccessfulTime = %.9g, which is outside the "
            "step",
            *now, reached);
    }
    if (stops) *now = is_within && reached > *now ? reached : early ? *now : end;
    else *now = early ? fmin(fmax(reached, *now), end) : end;
    bl_clocks_reach(f, *now);
    *ended = stops;
    *needs_event = event && !stops;
    return BL_OK;
}

static int step_part(bl_fmu_host *f, double *now, double end, int *event, int *ended) {
    return take_part(f, now, end, end - *now, event, ended);
}

static int do_step(const bl_block *b, bl_fmu_host *f, double t, double h, int is_last) {
    const double end = t + h,
                 tiny = fmax(1e-9 * h, 4e-16 * fabs(end)); /* the second is what rounding does to large times */
    double now = t;
    int ended = 0, standing = 0;
    int status = f->mode == HOST_EVENTS ? handle_events(b, f, t, &ended) : BL_OK;
    for (int64_t part = 0; status == BL_OK && !ended; part++) {
        const double before = now, clock = bl_clocks_next(f);
        const int is_end = now >= end - tiny;
        if (is_end && clock <= now + tiny) return BL_OK; /* an event of the next step, with its inputs */
        if (f->next_event <= now + tiny || clock <= now + tiny) { /* a time event here, or a clock that ticks */
            status = take_event(b, f, now, &ended);
        } else {
            if (is_end) return BL_OK;
            const double next = fmin(f->next_event, clock), stop = next < end - tiny ? next : end;
            int event = 0;
            status = take_part(f, &now, stop, stop < end || part > 0 ? stop - now : h, &event, &ended);
            if (status == BL_OK && event) status = take_event(b, f, now, &ended);
        }
        standing = now > before ? 0 : standing + 1;
        if (status != BL_OK || (standing <= LARGEST_EVENTS && part < LARGEST_PARTS)) continue;
        f->mode = HOST_BROKEN;
        return bl_fmu_error(f, "fmi3DoStep returned early %s at t = %.9g",
                            standing > LARGEST_EVENTS ? "more than 1000 times without an advance of time"
                                                      : "more than a million times",
                            now);
    }
    return status == BL_OK ? end_simulation(b, f, now, end, h, is_last) : status;
}

/* ---- states */

static int get_state(bl_fmu_host *f, void **state) {
    return bl_host_status(f, CALL(f, GetFMUState, state), "GetFMUState", f->time);
}
static int set_state(bl_fmu_host *f, void *state) {
    return bl_host_status(f, CALL(f, SetFMUState, state), "SetFMUState", f->time);
}
static void free_state(bl_fmu_host *f, void **state) { CALL(f, FreeFMUState, state); }
static int serialized_size(bl_fmu_host *f, void *state, size_t *size) {
    return bl_host_status(f, CALL(f, SerializedFMUStateSize, state, size), "SerializedFMUStateSize", f->time);
}
static int serialize(bl_fmu_host *f, void *state, void *bytes, size_t size) {
    return bl_host_status(f, CALL(f, SerializeFMUState, state, bytes, size), "SerializeFMUState", f->time);
}
static int deserialize(bl_fmu_host *f, const void *bytes, size_t size, void **state) {
    return bl_host_status(f, CALL(f, DeserializeFMUState, bytes, size, state), "DeserializeFMUState", f->time);
}

const bl_fmi bl_fmi3_calls = {
    .prefix = "fmi3",
    .instantiate_name = "fmi3InstantiateCoSimulation",
    .exchange_name = "fmi3InstantiateModelExchange",
    .version = "3.0",
    .calls_size = sizeof(bl_fmi3_functions),
    .symbols = SYMBOLS,
    .symbol_count = sizeof SYMBOLS / sizeof *SYMBOLS,
    .get_version = get_version,
    .find_missing = find_missing,
    .instantiate = instantiate,
    .free_instance = free_instance,
    .terminate = terminate,
    .set_debug_logging = set_debug_logging,
    .setup = setup,
    .enter_initialization = enter_initialization,
    .exit_initialization = exit_initialization,
    .enter_events = enter_events,
    .leave_events = leave_events,
    .update_events = update_events,
    .enter_steps = enter_steps,
    .step_part = step_part,
    .set = set,
    .get = get,
    .set_array = set_array,
    .set_strings = set_strings,
    .set_texts = set_texts,
    .get_texts = get_texts,
    .set_binaries = set_binaries,
    .get_binaries = get_binaries,
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
