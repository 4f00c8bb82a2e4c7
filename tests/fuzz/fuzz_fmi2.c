/* Fuzzes sequences of FMI calls on up to five instances of four plans, with odd arguments.
 *
 * An input is a script: each call takes its choices from the next bytes; at the end everything is freed, so
 * that a leak is the library's. Pointers to components and states are NULL or alive, as the standard demands;
 * a state may be that of another instance, or of an instance of another plan. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmu/fmi2.h"
#include "fuzz.h"

enum { INSTANCES = 5, PLANS = 4, STATES = 4, LARGEST_COUNT = 6, CALLS = 28, LARGEST_SCRIPT = 256 };

int fuzz_accepted;

typedef struct {
    char guid[48], location[1100];
} plan_info;

typedef struct {
    const uint8_t *at, *end;
    fmi2Component instances[INSTANCES];
    double steps[INSTANCES]; /* where each one stands, as far as this script knows */
    fmi2FMUstate states[STATES];
    int owners[STATES]; /* the instance whose plan a state belongs to */
    fmi2Byte *bytes;    /* a serialized state */
    size_t byte_count;
} script;

static uint8_t next(script *s) { return s->at < s->end ? *s->at++ : 0; }

static double next_real(script *s) {
    static const double ODD[] = {0.0, 1.0, -1.0, 1e-3, 2e-3, 1e300, -1e300, 1e18, 5e-324, 2147483648.0};
    const uint8_t how = next(s);
    if (how == 250) return NAN;
    if (how == 251) return INFINITY;
    if (how == 252) return -INFINITY;
    return how < 10 ? ODD[how] : (double)(how - 100) / 8.0;
}

static int next_integer(script *s) {
    const uint8_t how = next(s);
    return how == 250 ? 2147483647 : how == 251 ? -2147483647 - 1 : how - 100;
}

static void hear(fmi2ComponentEnvironment environment, fmi2String instance, fmi2Status status, fmi2String category,
                 fmi2String message, ...) {
    char text[1000];
    va_list arguments;
    (void)environment;
    va_start(arguments, message);
    vsnprintf(text, sizeof text, message, arguments);
    va_end(arguments);
    if (!instance || !category || strlen(text) == 0) abort();
    if ((status == fmi2OK) != (strcmp(category, "logEvents") == 0)) abort();
}

static void *give(size_t count, size_t size) { return calloc(count, size); }

/* The GUID of a plan is made from the hash in its head. */
static const plan_info *load_plans(void) {
    static plan_info plans[PLANS];
    static const char *const NAMES[PLANS] = {"boundary", "guards", "moving", "switching"};
    if (plans[0].guid[0]) return plans;
    const char *folder = getenv("FUZZ_PLANS");
    for (int k = 0; k < PLANS; k++) {
        char path[1100];
        unsigned char head[32];
        uint64_t hash = 0;
        snprintf(plans[k].location, sizeof plans[k].location, "file://%s/%s", folder ? folder : "plans", NAMES[k]);
        snprintf(path, sizeof path, "%s/%s/plan.bin", folder ? folder : "plans", NAMES[k]);
        FILE *file = fopen(path, "rb");
        if (!file || fread(head, 1, sizeof head, file) != sizeof head) {
            fprintf(stderr, "cannot read %s: set FUZZ_PLANS\n", path);
            exit(1);
        }
        fclose(file);
        memcpy(&hash, head + 16, sizeof hash);
        snprintf(plans[k].guid, sizeof plans[k].guid, "{biella-%016llx-%016llx}", (unsigned long long)hash, 0ULL);
    }
    return plans;
}

static int plan_of(int instance) { return instance == 0 ? 0 : instance - 1; } /* the first two share one */

static void instantiate(script *s, int n) {
    static const fmi2CallbackFunctions CALLBACKS = {hear, give, free, NULL, NULL},
                                       SILENT = {NULL, NULL, NULL, NULL, NULL};
    const plan_info *plan = &load_plans()[plan_of(n)];
    const uint8_t oddity = next(s);
    if (s->instances[n]) return;
    const char *guid = oddity == 1 ? NULL : oddity == 2 ? "{wrong}" : plan->guid;
    const char *location = oddity == 3    ? NULL
                           : oddity == 4  ? ""
                           : oddity == 5  ? "http://x/y"
                           : oddity == 6  ? "file:///no%zz"
                           : oddity == 7  ? "file:"
                           : oddity == 14 ? "file:///%00"
                                          : plan->location;
    const char *name = oddity == 8 ? NULL : oddity == 9 ? "" : "fuzz";
    const fmi2CallbackFunctions *callbacks = oddity == 10 ? NULL : oddity == 11 ? &SILENT : &CALLBACKS;
    s->instances[n] = fmi2Instantiate(name, oddity == 12 ? fmi2ModelExchange : fmi2CoSimulation, guid, location,
                                      callbacks, oddity & 1, oddity != 13);
    s->steps[n] = 0.0;
    if (s->instances[n]) fuzz_accepted = 1;
}

/* Frees the states of an instance through it, before it goes. */
static void free_instance(script *s, int n) {
    for (int k = 0; k < STATES; k++)
        if (s->states[k] && s->owners[k] == n) {
            if (fmi2FreeFMUstate(s->instances[n], &s->states[k]) != fmi2OK || s->states[k]) abort();
        }
    fmi2FreeInstance(s->instances[n]);
    s->instances[n] = NULL;
}

static void get_and_set(script *s, fmi2Component c, int call) {
    fmi2ValueReference references[LARGEST_COUNT];
    fmi2Real reals[LARGEST_COUNT] = {0};
    fmi2Integer integers[LARGEST_COUNT] = {0};
    fmi2String strings[LARGEST_COUNT] = {0};
    const uint8_t shape = next(s);
    const size_t count = shape % (LARGEST_COUNT + 1);
    for (size_t k = 0; k < count; k++) {
        references[k] = next(s) % 40u;
        if (references[k] == 39) references[k] = 4294967295u;
        if (call == 4) reals[k] = next_real(s);
        if (call > 4) integers[k] = next_integer(s);
    }
    const fmi2ValueReference *r = shape == 255 ? NULL : references;
    const int is_null = shape == 254;
    switch (call) {
        case 0: fmi2GetReal(c, r, count, is_null ? NULL : reals); break;
        case 1: fmi2GetInteger(c, r, count, is_null ? NULL : integers); break;
        case 2: fmi2GetBoolean(c, r, count, is_null ? NULL : integers); break;
        case 3: fmi2GetString(c, r, count, is_null ? NULL : strings); break;
        case 4: fmi2SetReal(c, r, count, is_null ? NULL : reals); break;
        case 5: fmi2SetInteger(c, r, count, is_null ? NULL : integers); break;
        case 6: fmi2SetBoolean(c, r, count, is_null ? NULL : integers); break;
        default: fmi2SetString(c, r, count, is_null ? NULL : strings); break;
    }
}

/* Steps of whole ticks, of parts of one, and of next to nothing. */
static void do_step(script *s, int n) {
    const uint8_t how = next(s);
    double now = s->steps[n], size = how < 128   ? 1e-3 * (how % 8)
                                     : how < 240 ? 1e-3 * (how - 128) / 37.0
                                                 : 1e-9 * (how - 240);
    if (how == 255) now = next_real(s);
    if (how >= 253) size = next_real(s);
    if (size > 0.02 && size < 1e12) size = 0.02; /* a long step is legal, and slow */
    if (fmi2DoStep(s->instances[n], now, size, how & 1) == fmi2OK) s->steps[n] = now + size;
    else {
        fmi2Real reached = 0.0;
        fmi2Boolean ended = 0;
        fmi2GetRealStatus(s->instances[n], fmi2LastSuccessfulTime, &reached);
        fmi2GetBooleanStatus(s->instances[n], fmi2Terminated, &ended);
    }
}

/* Any state with any instance. */
static void use_state(script *s, int n, int call) {
    const fmi2Component c = s->instances[n];
    const uint8_t shape = next(s);
    const int k = shape % STATES;
    size_t size = 0;
    switch (call) {
        case 0:
            if (shape == 255) fmi2GetFMUstate(c, NULL);
            else if (fmi2GetFMUstate(c, &s->states[k]) == fmi2OK) s->owners[k] = n;
            break;
        case 1:
            if (fmi2SetFMUstate(c, shape == 255 ? NULL : s->states[k]) == fmi2OK) {
                if (!s->states[k] || plan_of(s->owners[k]) != plan_of(n)) abort(); /* it took an external state */
                double reached = 0.0;
                if (fmi2GetRealStatus(c, fmi2LastSuccessfulTime, &reached) == fmi2OK) s->steps[n] = reached;
            }
            break;
        case 2: fmi2FreeFMUstate(c, shape == 255 ? NULL : &s->states[k]); break;
        case 3:
            if (fmi2SerializedFMUstateSize(c, s->states[k], shape == 255 ? NULL : &size) != fmi2OK) break;
            free(s->bytes);
            s->bytes = malloc(size);
            s->byte_count = size;
            if (!s->bytes || fmi2SerializeFMUstate(c, s->states[k], s->bytes, size) != fmi2OK) abort();
            if (fmi2SerializeFMUstate(c, s->states[k], s->bytes, size - 1) == fmi2OK) abort();
            if (fmi2SerializeFMUstate(c, s->states[k], NULL, size) == fmi2OK) abort();
            break;
        case 4: /* hostile bytes */
            for (uint8_t times = shape % 4; s->bytes && times > 0; times--) {
                const size_t at = ((size_t)next(s) << 8 | next(s)) % s->byte_count;
                s->bytes[at] = (fmi2Byte)next(s);
            }
            break;
        default:
            if (s->states[k]) break;
            if (!s->bytes) size = next(s);
            else size = shape >= 250 ? next(s) % (s->byte_count + 1) : s->byte_count;
            if (fmi2DeSerializeFMUstate(c, s->bytes, size, shape == 249 ? NULL : &s->states[k]) == fmi2OK)
                s->owners[k] = n;
            break;
    }
}

static void set_up(script *s, int n) {
    const uint8_t how = next(s);
    const double start = how < 128 ? 0.0 : next_real(s), stop = next_real(s);
    if (fmi2SetupExperiment(s->instances[n], how & 1, next_real(s), start, how >> 1 & 1, stop) == fmi2OK)
        s->steps[n] = start;
}

/* What is asked for does not change the state, to the last byte. */
static void ask_for_derivatives(script *s, int n) {
    const fmi2Component c = s->instances[n];
    const uint8_t shape = next(s);
    const size_t unknown_count = shape % 4, known_count = shape / 4 % 4;
    fmi2ValueReference unknowns[4], knowns[4];
    fmi2Integer orders[4];
    fmi2Real seeds[4], results[4];
    fmi2FMUstate state = NULL;
    fmi2Byte *before = NULL, *after = NULL;
    size_t size = 0;
    for (int k = 0; k < 4; k++) {
        unknowns[k] = next(s) % 40u;
        knowns[k] = next(s) % 40u;
        orders[k] = shape & 64 ? 1 : next_integer(s);
        seeds[k] = next_real(s);
    }
    fmi2GetReal(c, NULL, 0, NULL);
    if (fmi2GetFMUstate(c, &state) == fmi2OK && fmi2SerializedFMUstateSize(c, state, &size) == fmi2OK) {
        before = malloc(size);
        after = malloc(size);
        if (!before || !after || fmi2SerializeFMUstate(c, state, before, size) != fmi2OK) abort();
    }
    fmi2Status status = fmi2Error;
    if (shape & 128)
        status = fmi2GetRealOutputDerivatives(c, unknowns, unknown_count, shape == 255 ? NULL : orders, results);
    else
        status = fmi2GetDirectionalDerivative(c, shape == 127 ? NULL : unknowns, unknown_count, knowns, known_count,
                                              seeds, results);
    /* In initialization mode the states are set first if they have not been. */
    if (before && status == fmi2OK && fmi2GetFMUstate(c, &state) == fmi2OK &&
        fmi2SerializeFMUstate(c, state, after, size) == fmi2OK && before[4] == 4 && memcmp(before, after, size) != 0)
        abort();
    if (state && fmi2FreeFMUstate(c, &state) != fmi2OK) abort();
    free(before);
    free(after);
}

static void set_input_derivatives(script *s, fmi2Component c) {
    const uint8_t shape = next(s);
    fmi2ValueReference references[4];
    fmi2Integer orders[4];
    fmi2Real values[4];
    for (int k = 0; k < 4; k++) {
        references[k] = next(s) % 40u;
        orders[k] = shape & 64 ? next_integer(s) : 1 + (shape >> k & 1);
        values[k] = next_real(s);
    }
    fmi2SetRealInputDerivatives(c, shape == 255 ? NULL : references, shape % 5, shape == 254 ? NULL : orders,
                                shape == 253 ? NULL : values);
}

static void ask_what_is_not_offered(script *s, fmi2Component c) {
    fmi2Real real = next_real(s);
    fmi2Status status = fmi2OK;
    fmi2Integer integer = 0;
    fmi2Boolean boolean = 0;
    fmi2String text = NULL;
    const fmi2StatusKind kind = (fmi2StatusKind)(next(s) % 4);
    if (fmi2CancelStep(c) == fmi2OK || fmi2GetStatus(c, kind, &status) == fmi2OK ||
        fmi2GetIntegerStatus(c, kind, &integer) == fmi2OK || fmi2GetStringStatus(c, kind, &text) == fmi2OK)
        abort(); /* never OK from something not done */
    fmi2GetRealStatus(c, kind, next(s) % 2 ? NULL : &real);
    fmi2GetBooleanStatus(c, kind, next(s) % 2 ? NULL : &boolean);
}

static void set_logging(script *s, fmi2Component c) {
    static const fmi2String CATEGORIES[] = {"logEvents", "logStatusError", "logAll", "unknown", NULL};
    const uint8_t how = next(s);
    fmi2SetDebugLogging(c, how & 1, how >> 1 & 3, how >> 3 & 1 ? NULL : CATEGORIES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    script s = {.at = data, .end = data + (size < LARGEST_SCRIPT ? size : LARGEST_SCRIPT)};
    while (s.at < s.end) {
        const uint8_t word = next(&s);
        const int n = word / CALLS % INSTANCES, call = word % CALLS;
        const fmi2Component c = s.instances[n]; /* may be NULL: every function takes that */
        switch (call) {
            case 0:
            case 1: instantiate(&s, n); break;
            case 2: free_instance(&s, n); break;
            case 3: set_up(&s, n); break;
            case 4: fmi2EnterInitializationMode(c); break;
            case 5: fmi2ExitInitializationMode(c); break;
            case 6: fmi2Terminate(c); break;
            case 7:
                if (fmi2Reset(c) == fmi2OK) s.steps[n] = 0.0;
                break;
            case 8: ask_what_is_not_offered(&s, c); break;
            case 9: set_logging(&s, c); break;
            case 10:
            case 11: do_step(&s, n); break;
            case 12:
            case 13:
            case 14:
            case 15:
            case 16:
            case 17: get_and_set(&s, c, call % 6); break;
            case 18: get_and_set(&s, c, 6); break;
            case 19: get_and_set(&s, c, 7); break;
            case 20: ask_for_derivatives(&s, n); break;
            case 21: set_input_derivatives(&s, c); break;
            default: use_state(&s, n, call - 22); break;
        }
    }
    for (int n = 0; n < INSTANCES; n++) free_instance(&s, n);
    free(s.bytes);
    return 0;
}
