/* Fuzzes sequences of FMI 3.0 calls on up to six instances of five plans, with odd arguments.
 *
 * An input is a script, as in fuzz_fmi2.c. Instances 1, 4 and 5 use event mode and early return; instance 4 has located events,
 * instance 2 arrays and all types, instance 5 clocks. Intermediate updates take their choices from the script, too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmu/fmi3.h"
#include "fuzz.h"

enum { INSTANCES = 6, PLANS = 5, STATES = 4, LARGEST_COUNT = 6, LARGEST_VALUES = 24, CALLS = 24, LARGEST_SCRIPT = 256 };
enum { TYPED = 2, CLOCKED = 5, LARGEST_CLOCKS = 3, REFERENCES = 48 };
/* Words from here on are calls of clocks: of the instance with clocks, or, from REFUSED_CLOCK_CALLS on, of any one. */
enum { CLOCK_CALLS = CALLS * INSTANCES, REFUSED_CLOCK_CALLS = 232 };

int fuzz_accepted;

typedef struct {
    char token[48], location[1100];
} plan_info;

typedef struct {
    const uint8_t *at, *end;
    fmi3Instance instances[INSTANCES];
    double steps[INSTANCES]; /* where each one stands, as far as this script knows */
    fmi3FMUState states[STATES];
    int owners[STATES]; /* the instance whose plan a state belongs to */
    fmi3Byte *bytes;    /* a serialized state */
    size_t byte_count;
    int stepping; /* the instance in whose fmi3DoStep an intermediate update is */
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

static int64_t next_integer(script *s) {
    const uint8_t how = next(s);
    return how == 250 ? INT64_MAX : how == 251 ? INT64_MIN : how == 252 ? (INT64_C(1) << 53) + 1 : how - 100;
}

static void hear(fmi3InstanceEnvironment environment, fmi3Status status, fmi3String category, fmi3String message) {
    (void)environment;
    if (!category || strlen(message) == 0) abort();
    if ((status == fmi3OK) != (strcmp(category, "logEvents") == 0)) abort();
}

static const plan_info *load_plans(void) {
    static plan_info plans[PLANS];
    static const char *const NAMES[PLANS] = {"boundary", "arrays", "moving", "switching", "clocked"};
    if (plans[0].token[0]) return plans;
    const char *folder = getenv("FUZZ_PLANS");
    for (int k = 0; k < PLANS; k++) {
        char path[1200];
        unsigned char head[32];
        uint64_t hash = 0;
        snprintf(plans[k].location, sizeof plans[k].location, "%s/%s/", folder ? folder : "plans", NAMES[k]);
        snprintf(path, sizeof path, "%splan.bin", plans[k].location);
        FILE *file = fopen(path, "rb");
        if (!file || fread(head, 1, sizeof head, file) != sizeof head) {
            fprintf(stderr, "cannot read %s: set FUZZ_PLANS\n", path);
            exit(1);
        }
        fclose(file);
        memcpy(&hash, head + 16, sizeof hash);
        snprintf(plans[k].token, sizeof plans[k].token, "{biella-%016llx-%016llx}", (unsigned long long)hash, 0ULL);
    }
    return plans;
}

static int plan_of(int instance) { return instance == 0 ? 0 : instance - 1; } /* the first two share one */

static void intermediate_update(fmi3InstanceEnvironment environment, fmi3Float64 time, fmi3Boolean can_set,
                                fmi3Boolean can_get, fmi3Boolean finished, fmi3Boolean can_return,
                                fmi3Boolean *requested, fmi3Float64 *return_time);

static void instantiate(script *s, int n) {
    const plan_info *plan = &load_plans()[plan_of(n)];
    const uint8_t oddity = next(s);
    if (s->instances[n]) return;
    const char *token = oddity == 1 ? NULL : oddity == 2 ? "{wrong}" : plan->token;
    const char *location = oddity == 3 ? NULL : oddity == 4 ? "" : oddity == 5 ? "/no/such/" : plan->location;
    const char *name = oddity == 6 ? NULL : oddity == 7 ? "" : "fuzz";
    const fmi3ValueReference required[1] = {0};
    const fmi3LogMessageCallback logger = oddity == 8 ? NULL : hear;
    if (oddity == 9 && fmi3InstantiateModelExchange(name, token, location, false, true, NULL, logger)) abort();
    if (oddity == 10 &&
        fmi3InstantiateScheduledExecution(name, token, location, false, true, NULL, logger, NULL, NULL, NULL))
        abort();
    const int uses_events = (n == 1 || n == 4 || n == CLOCKED) != (oddity == 11);
    s->instances[n] = fmi3InstantiateCoSimulation(name, token, location, oddity & 1, oddity != 12, uses_events,
                                                  uses_events != (oddity == 13), required, oddity == 14, s, logger,
                                                  oddity & 16 ? intermediate_update : NULL);
    if (s->instances[n] && n == CLOCKED && !uses_events) abort();
    s->steps[n] = 0.0;
    if (s->instances[n]) fuzz_accepted = 1;
}

/* Frees the states of an instance through it, before it goes. */
static void free_instance(script *s, int n) {
    for (int k = 0; k < STATES; k++)
        if (s->states[k] && s->owners[k] == n) {
            if (fmi3FreeFMUState(s->instances[n], &s->states[k]) != fmi3OK || s->states[k]) abort();
        }
    fmi3FreeInstance(s->instances[n]);
    s->instances[n] = NULL;
}

/* Calls the function of a type with values that lie at the very end of their memory, so that a sanitizer notices one too many. */
#define CALL_TYPE(name, next_value) \
    static void call_##name(script *s, fmi3Instance c, int sets, const fmi3ValueReference *r, size_t count, \
                            int is_null, size_t value_count) { \
        fmi3##name *values = malloc((value_count + 1) * sizeof *values); \
        if (!values) abort(); \
        for (size_t k = 0; k < value_count; k++) values[k] = sets ? (fmi3##name)(next_value) : (fmi3##name)0; \
        if (sets) fmi3Set##name(c, r, count, is_null ? NULL : values, value_count); \
        else fmi3Get##name(c, r, count, is_null ? NULL : values, value_count); \
        free(values); \
    }

static float next_single(script *s) {
    const double value = next_real(s);
    return isfinite(value) && fabs(value) > 1e38 ? 0.0f : (float)value;
}

CALL_TYPE(Float32, next_single(s))
CALL_TYPE(Int8, next_integer(s))
CALL_TYPE(UInt8, next_integer(s))
CALL_TYPE(Int16, next_integer(s))
CALL_TYPE(UInt16, next_integer(s))
CALL_TYPE(Int32, next_integer(s))
CALL_TYPE(UInt32, next_integer(s))
CALL_TYPE(UInt64, next_integer(s))

typedef void (*call_type)(script *s, fmi3Instance c, int sets, const fmi3ValueReference *r, size_t count, int is_null,
                          size_t value_count);

/* The same for Float64, Int64 and Boolean; for another type if the first byte of the references is too large for one. */
static void get_and_set(script *s, fmi3Instance c, int call) {
    fmi3ValueReference references[LARGEST_COUNT];
    const uint8_t shape = next(s);
    static const call_type TYPES[] = {NULL,      call_Float32, call_UInt8, call_Int16,   call_UInt32, call_UInt64,
                                      call_Int8, call_UInt16,  call_Int32, call_Float32, call_UInt8,  call_Int16};
    const size_t count = shape % (LARGEST_COUNT + 1), value_count = shape & 128 ? next(s) % LARGEST_VALUES : count;
    size_t type = 0;
    for (size_t k = 0; k < count; k++) {
        const uint8_t reference = next(s);
        if (k == 0) type = reference < REFERENCES ? 0 : (size_t)(reference / REFERENCES + 3 * (call % 3));
        references[k] = reference % REFERENCES;
        if (references[k] == REFERENCES - 1) references[k] = 4294967295u;
    }
    if (type > 0) {
        TYPES[type](s, c, call >= 3, shape == 255 ? NULL : references, count, shape == 254, value_count);
        return;
    }
    double *reals = malloc((value_count + 1) * sizeof *reals);
    int64_t *integers = malloc((value_count + 1) * sizeof *integers);
    unsigned char *booleans = malloc(value_count + 1);
    if (!reals || !integers || !booleans) abort();
    for (size_t k = 0; k < value_count; k++) {
        reals[k] = call == 3 ? next_real(s) : 0.0;
        integers[k] = call == 4 ? next_integer(s) : 0;
        booleans[k] = call == 5 ? next(s) : 0;
    }
    const fmi3ValueReference *r = shape == 255 ? NULL : references;
    const int is_null = shape == 254;
    switch (call) {
        case 0: fmi3GetFloat64(c, r, count, is_null ? NULL : reals, value_count); break;
        case 1: fmi3GetInt64(c, r, count, is_null ? NULL : integers, value_count); break;
        case 2: fmi3GetBoolean(c, r, count, is_null ? NULL : (fmi3Boolean *)booleans, value_count); break;
        case 3: fmi3SetFloat64(c, r, count, is_null ? NULL : reals, value_count); break;
        case 4: fmi3SetInt64(c, r, count, is_null ? NULL : integers, value_count); break;
        default: fmi3SetBoolean(c, r, count, is_null ? NULL : (const fmi3Boolean *)booleans, value_count); break;
    }
    free(reals);
    free(integers);
    free(booleans);
}

/* Values are read and set; calls that are not allowed there must be refused; the step may end early. */
static void intermediate_update(fmi3InstanceEnvironment environment, fmi3Float64 time, fmi3Boolean can_set,
                                fmi3Boolean can_get, fmi3Boolean finished, fmi3Boolean can_return,
                                fmi3Boolean *requested, fmi3Float64 *return_time) {
    script *s = environment;
    const int n = s->stepping;
    const fmi3Instance c = s->instances[n];
    const uint8_t how = next(s);
    if (!can_get || !finished || !isfinite(time) || *requested || (!can_set && can_return)) abort();
    if (how & 1) get_and_set(s, c, next(s) % 3);
    if (how & 2) get_and_set(s, c, 3 + next(s) % 3);
    if (how & 4) {
        const fmi3ValueReference reference = next(s) % REFERENCES;
        const fmi3Int32 order = 1;
        fmi3Float64 value = 0.0;
        fmi3GetOutputDerivatives(c, &reference, 1, &order, &value, 1);
    }
    if (how & 8) {
        fmi3Boolean flag = false, ends = false, early = false;
        fmi3Float64 reached = 0.0;
        fmi3FMUState state = NULL;
        fmi3FreeInstance(c); /* refused: the instance is used below */
        if (fmi3DoStep(c, time, 1e-3, true, &flag, &ends, &early, &reached) == fmi3OK ||
            fmi3GetFMUState(c, &state) == fmi3OK || fmi3Reset(c) == fmi3OK || fmi3Terminate(c) == fmi3OK ||
            fmi3EnterEventMode(c) == fmi3OK)
            abort();
    }
    *requested = (how & 16) != 0;
    if (how & 32) *return_time = how & 64 ? next_real(s) : time + 1e-3 * (next(s) % 4);
}

static void ask_for_time(script *s, int n) {
    for (fmi3ValueReference reference = 0; reference < REFERENCES; reference++) {
        double now = 0.0;
        if (fmi3SetFloat64(s->instances[n], &reference, 1, &now, 1) == fmi3OK) return; /* of an input: not time */
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
    fmi3Boolean event = false, ends = false, early = false;
    fmi3Float64 reached = NAN;
    const int is_null = how == 252;
    s->stepping = n;
    if (fmi3DoStep(s->instances[n], now, size, how & 1, is_null ? NULL : &event, &ends, &early, &reached) != fmi3OK)
        return;
    const double slack = 1e-8 + 1e-15 * fabs(now + size);
    if (is_null || !(reached <= now + size + slack) || !(reached >= now - slack)) abort();
    if (early && reached > now + size) abort();
    if (!early && !ends && reached < now + size - slack) abort(); /* it stopped without saying so */
    s->steps[n] = reached;
}

/* Any state with any instance. */
static void use_state(script *s, int n, int call) {
    const fmi3Instance c = s->instances[n];
    const uint8_t shape = next(s);
    const int k = shape % STATES;
    size_t size = 0;
    switch (call) {
        case 0:
            if (shape == 255) fmi3GetFMUState(c, NULL);
            else if (fmi3GetFMUState(c, &s->states[k]) == fmi3OK) s->owners[k] = n;
            break;
        case 1:
            if (fmi3SetFMUState(c, shape == 255 ? NULL : s->states[k]) == fmi3OK &&
                (!s->states[k] || plan_of(s->owners[k]) != plan_of(n)))
                abort(); /* it took an external state */
            break;
        case 2: fmi3FreeFMUState(c, shape == 255 ? NULL : &s->states[k]); break;
        case 3:
            if (fmi3SerializedFMUStateSize(c, s->states[k], shape == 255 ? NULL : &size) != fmi3OK) break;
            free(s->bytes);
            s->bytes = malloc(size);
            s->byte_count = size;
            if (!s->bytes || fmi3SerializeFMUState(c, s->states[k], s->bytes, size) != fmi3OK) abort();
            if (fmi3SerializeFMUState(c, s->states[k], s->bytes, size - 1) == fmi3OK) abort();
            break;
        case 4: /* hostile bytes */
            for (uint8_t times = shape % 4; s->bytes && times > 0; times--) {
                const size_t at = ((size_t)next(s) << 8 | next(s)) % s->byte_count;
                s->bytes[at] = next(s);
            }
            break;
        default:
            if (s->states[k]) break;
            if (!s->bytes) size = next(s);
            else size = shape >= 250 ? next(s) % (s->byte_count + 1) : s->byte_count;
            if (fmi3DeserializeFMUState(c, s->bytes, size, shape == 249 ? NULL : &s->states[k]) == fmi3OK)
                s->owners[k] = n;
            break;
    }
}

static void initialize(script *s, int n) {
    const uint8_t how = next(s);
    const double start = how < 128 ? 0.0 : next_real(s), stop = next_real(s), tolerance = next_real(s);
    if (fmi3EnterInitializationMode(s->instances[n], how & 1, tolerance, start, how >> 1 & 1, stop) == fmi3OK)
        s->steps[n] = start;
}

static void ask_for_derivatives(script *s, fmi3Instance c) {
    const uint8_t shape = next(s);
    const size_t unknown_count = shape % 4, known_count = shape / 4 % 4;
    fmi3ValueReference unknowns[4], knowns[4];
    fmi3Int32 orders[4];
    fmi3Float64 seeds[LARGEST_VALUES], results[LARGEST_VALUES];
    for (int k = 0; k < 4; k++) {
        unknowns[k] = next(s) % REFERENCES;
        knowns[k] = next(s) % REFERENCES;
        orders[k] = shape & 64 ? 1 : next(s);
    }
    const size_t result_count = next(s) % LARGEST_VALUES, seed_count = next(s) % LARGEST_VALUES;
    for (int k = 0; k < LARGEST_VALUES; k++) seeds[k] = (double)k - 2.0;
    seeds[0] = next_real(s);
    if (shape & 128)
        fmi3GetOutputDerivatives(c, unknowns, unknown_count, shape == 255 ? NULL : orders, results, result_count);
    else {
        fmi3GetDirectionalDerivative(c, shape == 127 ? NULL : unknowns, unknown_count, knowns, known_count, seeds,
                                     seed_count, results, result_count);
        fmi3GetAdjointDerivative(c, shape == 127 ? NULL : unknowns, unknown_count, knowns, known_count, seeds,
                                 result_count, results, seed_count);
    }
}

static fmi3Status update(script *s, fmi3Instance c) {
    fmi3Boolean flags[5] = {false};
    fmi3Float64 time = 0.0;
    const fmi3Status status = fmi3UpdateDiscreteStates(c, next(s) == 255 ? NULL : &flags[0], &flags[1], &flags[2],
                                                       &flags[3], &flags[4], &time);
    if (status == fmi3OK && flags[0]) abort(); /* one update is enough */
    return status;
}

/* Never OK from something not done. */
static void ask_what_is_not_offered(script *s, int n) {
    const fmi3Instance c = s->instances[n];
    const int has_clocks = n == CLOCKED;
    size_t count = 0;
    const fmi3ValueReference reference = next(s);
    fmi3Boolean flag = false;
    double value = 0.0;
    uint64_t whole = 0;
    float single = 0.0f;
    fmi3String text = NULL;
    fmi3Clock clock = false;
    if (fmi3EnterConfigurationMode(c) == fmi3OK || fmi3ExitConfigurationMode(c) == fmi3OK ||
        fmi3EvaluateDiscreteStates(c) == fmi3OK ||
        fmi3GetNumberOfVariableDependencies(c, reference, &count) == fmi3OK ||
        fmi3EnterContinuousTimeMode(c) == fmi3OK || fmi3SetTime(c, value) == fmi3OK ||
        fmi3CompletedIntegratorStep(c, true, &flag, &flag) == fmi3OK ||
        fmi3GetNumberOfContinuousStates(c, &count) == fmi3OK ||
        (!has_clocks && fmi3GetShiftFraction(c, &reference, 1, &whole, &whole) == fmi3OK) ||
        fmi3ActivateModelPartition(c, reference, value) == fmi3OK)
        abort();
    const int has_types = n == TYPED;
    if ((!has_types && fmi3GetFloat32(c, &reference, 1, &single, 1) == fmi3OK) ||
        (!has_types && fmi3GetUInt64(c, &reference, 1, &whole, 1) == fmi3OK) ||
        fmi3GetString(c, &reference, 1, &text, 1) == fmi3OK ||
        (!has_clocks && fmi3GetClock(c, &reference, 1, &clock) == fmi3OK) ||
        (!has_clocks && fmi3SetClock(c, &reference, 1, &clock) == fmi3OK) ||
        fmi3SetString(c, &reference, 1, &text, 1) == fmi3OK)
        abort();
}

static void set_logging(script *s, fmi3Instance c) {
    static const fmi3String CATEGORIES[] = {"logEvents", "logStatusError", "logAll", "unknown", NULL};
    const uint8_t how = next(s);
    fmi3SetDebugLogging(c, how & 1, how >> 1 & 3, how >> 3 & 1 ? NULL : CATEGORIES);
}

/* Takes a tick as an importing tool does: every clock that ticks is activated. */
static void take_tick(script *s, fmi3Instance c) {
    static const fmi3Clock ON[1] = {true};
    fmi3Clock active = false;
    fmi3EnterEventMode(c);
    for (fmi3ValueReference k = 0; k < REFERENCES; k++)
        if (fmi3SetClock(c, &k, 1, ON) == fmi3OK && (fmi3GetClock(c, &k, 1, &active) != fmi3OK || !active)) abort();
    const fmi3Status status = update(s, c);
    for (fmi3ValueReference k = 0; k < REFERENCES && status == fmi3OK; k++)
        if (fmi3GetClock(c, &k, 1, &active) == fmi3OK && active) abort();
    fmi3EnterStepMode(c);
}

/* Clocks, intervals and shifts. Values lie at the very end of their memory. */
static void use_clocks(script *s, fmi3Instance c, int call, int has_clocks) {
    const uint8_t shape = next(s);
    const size_t count = shape % (LARGEST_CLOCKS + 1);
    fmi3ValueReference references[LARGEST_CLOCKS];
    for (size_t k = 0; k < count; k++) references[k] = next(s) % REFERENCES;
    const fmi3ValueReference *r = shape == 255 ? NULL : references;
    unsigned char *flags = malloc(count + 1);
    double *times = malloc((count + 1) * sizeof *times);
    fmi3UInt64 *counters = malloc((count + 1) * sizeof *counters), resolutions[LARGEST_CLOCKS];
    fmi3IntervalQualifier *qualifiers = malloc((count + 1) * sizeof *qualifiers);
    if (!flags || !times || !counters || !qualifiers) abort();
    for (size_t k = 0; k < count; k++) {
        flags[k] = call == 0 ? next(s) : 0;
        times[k] = 1e-3;
        counters[k] = resolutions[k] = 1;
    }
    double *t = shape == 254 ? NULL : times;
    fmi3UInt64 *n = shape == 254 ? NULL : counters;
    fmi3Status status = fmi3Error;
    switch (call) {
        case 0: status = fmi3SetClock(c, r, count, shape == 254 ? NULL : (const fmi3Clock *)flags); break;
        case 1: status = fmi3GetClock(c, r, count, shape == 254 ? NULL : (fmi3Clock *)flags); break;
        case 2: status = fmi3GetIntervalDecimal(c, r, count, t, qualifiers); break;
        case 3: status = fmi3GetShiftDecimal(c, r, count, t); break;
        case 4: status = fmi3GetIntervalFraction(c, r, count, n, resolutions, qualifiers); break;
        case 5: status = fmi3GetShiftFraction(c, r, count, n, resolutions); break;
        default:
            if (fmi3SetIntervalDecimal(c, r, count, t) == fmi3OK || fmi3SetShiftDecimal(c, r, count, t) == fmi3OK ||
                fmi3SetIntervalFraction(c, r, count, n, resolutions) == fmi3OK ||
                fmi3SetShiftFraction(c, r, count, n, resolutions) == fmi3OK)
                abort();
            break;
    }
    if (status == fmi3OK && !has_clocks && (call > 1 || count > 0)) abort();
    for (size_t k = 0; k < count && status == fmi3OK; k++) {
        if (call > 1 && (!(times[k] >= 0.0) || resolutions[k] == 0)) abort();
        if ((call == 2 || call == 4) && (!(times[k] > 0.0) || counters[k] == 0)) abort();
    }
    free(flags);
    free(times);
    free(counters);
    free(qualifiers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    script s = {.at = data, .end = data + (size < LARGEST_SCRIPT ? size : LARGEST_SCRIPT)};
    while (s.at < s.end) {
        const uint8_t word = next(&s);
        if (word >= CLOCK_CALLS) {
            const int is_any = word >= REFUSED_CLOCK_CALLS, owner = is_any ? word % INSTANCES : CLOCKED;
            const int kind = (word - CLOCK_CALLS) % 8;
            if (kind == 7) take_tick(&s, s.instances[owner]);
            else use_clocks(&s, s.instances[owner], kind, owner == CLOCKED);
            continue;
        }
        const int n = word / CALLS, call = word % CALLS;
        const fmi3Instance c = s.instances[n]; /* may be NULL: every function takes that */
        switch (call) {
            case 0: instantiate(&s, n); break;
            case 1: free_instance(&s, n); break;
            case 2: initialize(&s, n); break;
            case 3: fmi3ExitInitializationMode(c); break;
            case 4: fmi3EnterEventMode(c); break;
            case 5: fmi3EnterStepMode(c); break;
            case 6: update(&s, c); break;
            case 7: fmi3Terminate(c); break;
            case 8:
                if (fmi3Reset(c) == fmi3OK) s.steps[n] = 0.0;
                break;
            case 9: ask_what_is_not_offered(&s, n); break;
            case 10: set_logging(&s, c); break;
            case 11: do_step(&s, n); break;
            case 18: use_state(&s, n, 0); break;
            case 19: use_state(&s, n, 1); break;
            case 20: use_state(&s, n, next(&s) % 2 ? 2 : 3); break;
            case 21: use_state(&s, n, next(&s) % 2 ? 4 : 5); break;
            case 22: ask_for_derivatives(&s, c); break;
            case 23: ask_for_time(&s, n); break;
            default: get_and_set(&s, c, call - 12); break;
        }
    }
    for (int n = 0; n < INSTANCES; n++) free_instance(&s, n);
    free(s.bytes);
    return 0;
}
