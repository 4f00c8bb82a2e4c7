/* Fuzzes model exchange: sequences of calls on up to four instances of two plans, one of them for co-simulation, with odd arguments,
 * and on an instance of FMI 3.0 with clocks.
 *
 * An input is a script, as in fuzz_fmi2.c: each call takes its choices from the next bytes, and at the end everything is freed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmu/fmi2.h"
#include "fmu/fmi3.h"
#include "fuzz.h"

enum { INSTANCES = 4, PLANS = 2, STATES = 3, MOST = 64, CALLS = 22, LARGEST_SCRIPT = 512 };
enum { CLOCKED_CALLS = CALLS * INSTANCES, CLOCKED_KINDS = 16, REFERENCES = 32 };

int fuzz_accepted;

typedef struct {
    const uint8_t *at, *end;
    fmi2Component instances[INSTANCES];
    double times[INSTANCES], next_times[INSTANCES];
    fmi2FMUstate states[STATES];
    int owners[STATES];
    fmi3Instance clocked;
    double time, next_time;
    fmi3FMUState clocked_state;
} script;

static uint8_t next(script *s) { return s->at < s->end ? *s->at++ : 0; }

static double next_real(script *s) {
    static const double ODD[] = {0.0, 1.0, -1.0, 1e-3, 2e-3, 1e300, -1e300, 1e18, 5e-324, 0.5};
    const uint8_t how = next(s);
    if (how == 250) return NAN;
    if (how == 251) return INFINITY;
    if (how == 252) return -INFINITY;
    return how < 10 ? ODD[how] : (double)(how - 100) / 8.0;
}

/* The GUID of a plan is made from the hash in its head. */
static void identify(const char *name, char location[1100], char guid[48]) {
    const char *folder = getenv("FUZZ_PLANS");
    char path[1200];
    unsigned char head[32];
    uint64_t hash = 0;
    snprintf(location, 1100, "%s/%s", folder ? folder : "plans", name);
    snprintf(path, sizeof path, "%s/plan.bin", location);
    FILE *file = fopen(path, "rb");
    if (!file || fread(head, 1, sizeof head, file) != sizeof head) {
        fprintf(stderr, "cannot read %s: set FUZZ_PLANS\n", path);
        exit(1);
    }
    fclose(file);
    memcpy(&hash, head + 16, sizeof hash);
    snprintf(guid, 48, "{biella-%016llx-%016llx}", (unsigned long long)hash, 0ULL);
}

static void instantiate(script *s, int n) {
    static const char *const NAMES[PLANS] = {"exchange", "exchange_sampled"};
    static const fmi2CallbackFunctions SILENT = {0};
    char path[1100], location[1200], guid[48];
    const uint8_t oddity = next(s);
    if (s->instances[n]) return;
    identify(NAMES[n % PLANS], path, guid);
    snprintf(location, sizeof location, "file://%s", path);
    s->instances[n] = fmi2Instantiate("fuzz", n == 3 ? fmi2CoSimulation : fmi2ModelExchange, oddity == 1 ? NULL : guid,
                                      location, &SILENT, 0, 0);
    s->times[n] = 0.0;
    s->next_times[n] = INFINITY;
    if (s->instances[n]) fuzz_accepted = 1;
}

static void free_instance(script *s, int n) {
    for (int k = 0; k < STATES; k++)
        if (s->states[k] && s->owners[k] == n && fmi2FreeFMUstate(s->instances[n], &s->states[k]) != fmi2OK) abort();
    fmi2FreeInstance(s->instances[n]);
    s->instances[n] = NULL;
}

static size_t count_states(fmi2Component c) {
    fmi2Real x[MOST];
    for (size_t n = 0; n < MOST; n++)
        if (fmi2GetContinuousStates(c, x, n) == fmi2OK) return n;
    return 0;
}

static size_t count_indicators(fmi2Component c) {
    fmi2Real z[MOST];
    for (size_t n = 0; n < MOST; n++) {
        const fmi2Status status = fmi2GetEventIndicators(c, z, n);
        if (status == fmi2OK || status == fmi2Discard) return n;
    }
    return 0;
}

/* An explicit Euler step, then what a tool does after it. */
static void step(script *s, int n) {
    const fmi2Component c = s->instances[n];
    const uint8_t how = next(s);
    fmi2Real x[MOST], dx[MOST];
    const size_t count = count_states(c);
    double end = s->times[n] + (how < 200 ? 1e-4 * how : 1e-9 * how);
    if (end > s->next_times[n]) end = s->next_times[n];
    if (fmi2GetContinuousStates(c, x, count) != fmi2OK || fmi2GetDerivatives(c, dx, count) != fmi2OK) return;
    for (size_t i = 0; i < count; i++) x[i] += (end - s->times[n]) * dx[i];
    if (fmi2SetTime(c, end) != fmi2OK || fmi2SetContinuousStates(c, x, count) != fmi2OK) return;
    s->times[n] = end;
    fmi2Boolean enter = 0, terminate = 0;
    if (fmi2CompletedIntegratorStep(c, how & 1, &enter, &terminate) == fmi2OK && (enter || how & 2))
        fmi2EnterEventMode(c);
}

static void take_event(script *s, int n) {
    fmi2EventInfo info = {0};
    if (fmi2NewDiscreteStates(s->instances[n], next(s) == 255 ? NULL : &info) != fmi2OK) return;
    s->next_times[n] = info.nextEventTimeDefined ? info.nextEventTime : INFINITY;
}

static void set_states(script *s, fmi2Component c) {
    fmi2Real x[MOST];
    const size_t count = count_states(c);
    for (size_t i = 0; i < count; i++) x[i] = next_real(s);
    fmi2SetContinuousStates(c, next(s) == 255 ? NULL : x, count);
}

static void read_arrays(script *s, fmi2Component c) {
    fmi2Real values[MOST];
    const uint8_t how = next(s);
    const size_t count = how & 1 ? count_indicators(c) : count_states(c);
    switch (how % 4) {
        case 0: fmi2GetDerivatives(c, values, count); break;
        case 1: fmi2GetEventIndicators(c, how == 255 ? NULL : values, count); break;
        case 2: fmi2GetNominalsOfContinuousStates(c, values, count); break;
        default: fmi2GetContinuousStates(c, values, count + how / 64); break;
    }
}

static void get_and_set(script *s, fmi2Component c, int sets) {
    const fmi2ValueReference reference = next(s);
    fmi2Real value = sets ? next_real(s) : 0.0;
    if (sets) fmi2SetReal(c, &reference, 1, &value);
    else fmi2GetReal(c, &reference, 1, &value);
}

static void differentiate(script *s, fmi2Component c) {
    fmi2ValueReference unknowns[2], knowns[2];
    fmi2Real seeds[2], results[2];
    for (int k = 0; k < 2; k++) {
        unknowns[k] = next(s) % 64u;
        knowns[k] = next(s) % 64u;
        seeds[k] = next_real(s);
    }
    fmi2GetDirectionalDerivative(c, unknowns, 2, knowns, 2, seeds, results);
}

/* Any state with any instance; bytes of a serialized one may be damaged. */
static void use_state(script *s, int n, int call) {
    const fmi2Component c = s->instances[n];
    const uint8_t shape = next(s);
    const int k = shape % STATES;
    size_t size = 0;
    if (call == 0) {
        if (fmi2GetFMUstate(c, &s->states[k]) == fmi2OK) s->owners[k] = n;
    } else if (call == 1) {
        fmi2SetFMUstate(c, s->states[k]);
    } else if (fmi2SerializedFMUstateSize(c, s->states[k], &size) == fmi2OK) {
        fmi2Byte *bytes = malloc(size);
        fmi2FMUstate copy = NULL;
        if (!bytes || fmi2SerializeFMUstate(c, s->states[k], bytes, size) != fmi2OK) abort();
        for (int times = shape / 64; times > 0; times--)
            bytes[((size_t)next(s) << 8 | next(s)) % size] = (fmi2Byte)next(s);
        if (fmi2DeSerializeFMUstate(c, bytes, size, &copy) == fmi2OK) {
            fmi2SetFMUstate(c, copy);
            if (fmi2FreeFMUstate(c, &copy) != fmi2OK) abort();
        }
        free(bytes);
    }
}

static fmi3Status update_clocked(script *s) {
    fmi3Boolean flags[5] = {false};
    fmi3Float64 time = 0.0;
    const fmi3Status status = fmi3UpdateDiscreteStates(s->clocked, next(s) == 255 ? NULL : &flags[0], &flags[1],
                                                       &flags[2], &flags[3], &flags[4], &time);
    if (status == fmi3OK) s->next_time = flags[4] ? time : INFINITY;
    return status;
}

/* Takes a tick as an importing tool does: every clock that ticks is activated, and none is active afterwards. */
static void take_tick(script *s) {
    static const fmi3Clock ON[1] = {true};
    fmi3Clock active = false;
    fmi3EnterEventMode(s->clocked);
    for (fmi3ValueReference k = 0; k < REFERENCES; k++)
        if (fmi3SetClock(s->clocked, &k, 1, ON) == fmi3OK &&
            (fmi3GetClock(s->clocked, &k, 1, &active) != fmi3OK || !active))
            abort();
    const fmi3Status status = update_clocked(s);
    for (fmi3ValueReference k = 0; k < REFERENCES && status == fmi3OK; k++)
        if (fmi3GetClock(s->clocked, &k, 1, &active) == fmi3OK && active) abort();
}

/* An explicit Euler step, not beyond the next time event. */
static void step_clocked(script *s) {
    const fmi3Instance c = s->clocked;
    const uint8_t how = next(s);
    fmi3Float64 x[MOST], dx[MOST], z[MOST];
    size_t states = 0, indicators = 0;
    fmi3Boolean enters = false, ends = false;
    double end = s->time + (how < 220 ? 1e-5 * how : 1e-9 * how);
    if (end > s->next_time && how % 8 != 7) end = s->next_time;
    if (fmi3GetNumberOfContinuousStates(c, &states) != fmi3OK || states > MOST ||
        fmi3GetNumberOfEventIndicators(c, &indicators) != fmi3OK || indicators > MOST ||
        fmi3GetContinuousStates(c, x, states) != fmi3OK || fmi3GetContinuousStateDerivatives(c, dx, states) != fmi3OK)
        return;
    for (size_t i = 0; i < states; i++) x[i] += (end - s->time) * dx[i];
    if (fmi3SetTime(c, end) != fmi3OK || fmi3SetContinuousStates(c, x, states) != fmi3OK) return;
    s->time = end;
    fmi3GetEventIndicators(c, z, indicators);
    fmi3GetNominalsOfContinuousStates(c, x, states);
    fmi3CompletedIntegratorStep(c, true, &enters, &ends);
}

static void ask_clocked(script *s) {
    const fmi3Instance c = s->clocked;
    const uint8_t what = next(s);
    const fmi3ValueReference reference = next(s) % REFERENCES;
    fmi3Clock active = false;
    fmi3Float64 time = 0.0, value = 0.0;
    fmi3UInt64 counter = 0, resolution = 0;
    fmi3IntervalQualifier qualifier;
    switch (what % 8) {
        case 0: fmi3GetClock(c, &reference, 1, &active); break;
        case 1: fmi3GetIntervalDecimal(c, &reference, 1, &time, &qualifier); break;
        case 2: fmi3GetShiftDecimal(c, &reference, 1, &time); break;
        case 3: fmi3GetIntervalFraction(c, &reference, 1, &counter, &resolution, &qualifier); break;
        case 4: fmi3GetShiftFraction(c, &reference, 1, &counter, &resolution); break;
        case 5:
            if (fmi3SetIntervalDecimal(c, &reference, 1, &time) == fmi3OK) abort();
            break;
        case 6: fmi3GetDirectionalDerivative(c, &reference, 1, &reference, 1, &time, 1, &value, 1); break;
        default: fmi3GetAdjointDerivative(c, &reference, 1, &reference, 1, &time, 1, &value, 1); break;
    }
}

static void instantiate_clocked(script *s) {
    char location[1100], token[48];
    const uint8_t oddity = next(s);
    if (s->clocked) return;
    identify("exchange_clocked", location, token);
    s->clocked =
        fmi3InstantiateModelExchange("fuzz", oddity == 1 ? "{wrong}" : token, location, false, oddity == 2, NULL, NULL);
    s->time = 0.0;
    s->next_time = INFINITY;
    if (s->clocked) fuzz_accepted = 1;
}

static void free_clocked(script *s) {
    if (s->clocked_state && fmi3FreeFMUState(s->clocked, &s->clocked_state) != fmi3OK) abort();
    fmi3FreeInstance(s->clocked);
    s->clocked = NULL;
}

/* A copy of a state by its bytes, some of them damaged, replaces it. */
static void save_clocked(script *s) {
    size_t size = 0;
    const uint8_t shape = next(s);
    if (fmi3GetFMUState(s->clocked, &s->clocked_state) != fmi3OK ||
        fmi3SerializedFMUStateSize(s->clocked, s->clocked_state, &size) != fmi3OK)
        return;
    fmi3Byte *bytes = malloc(size);
    fmi3FMUState copy = NULL;
    if (!bytes || fmi3SerializeFMUState(s->clocked, s->clocked_state, bytes, size) != fmi3OK) abort();
    for (int times = shape % 4; times > 0; times--) bytes[((size_t)next(s) << 8 | next(s)) % size] = next(s);
    if (fmi3DeserializeFMUState(s->clocked, bytes, size, &copy) == fmi3OK) {
        if (fmi3FreeFMUState(s->clocked, &s->clocked_state) != fmi3OK) abort();
        s->clocked_state = copy;
    }
    free(bytes);
}

/* Model exchange of FMI 3.0, with clocks. */
static void use_clocked(script *s, int call) {
    const fmi3Instance c = s->clocked;
    switch (call) {
        case 0: instantiate_clocked(s); break;
        case 1: {
            const uint8_t how = next(s);
            const double start = how & 1 ? next_real(s) : 0.0;
            if (fmi3EnterInitializationMode(c, how & 2, 1e-6, start, false, 0.0) == fmi3OK) s->time = start;
            break;
        }
        case 2: fmi3ExitInitializationMode(c); break;
        case 3: update_clocked(s); break;
        case 4: fmi3EnterContinuousTimeMode(c); break;
        case 5: step_clocked(s); break;
        case 6: fmi3EnterEventMode(c); break;
        case 7: take_tick(s); break;
        case 8: {
            const fmi3ValueReference reference = next(s) % REFERENCES;
            const fmi3Clock value = next(s) & 1;
            fmi3SetClock(c, &reference, 1, &value);
            break;
        }
        case 9: ask_clocked(s); break;
        case 10:
        case 11: {
            const fmi3ValueReference reference = next(s) % REFERENCES;
            fmi3Float64 value = next_real(s);
            if (call == 10) fmi3GetFloat64(c, &reference, 1, &value, 1);
            else fmi3SetFloat64(c, &reference, 1, &value, 1);
            break;
        }
        case 12: save_clocked(s); break;
        case 13: fmi3SetFMUState(c, s->clocked_state); break;
        case 14:
            if (next(s) & 1 ? fmi3Reset(c) == fmi3OK : fmi3Terminate(c) == fmi3OK) s->time = 0.0;
            break;
        default: free_clocked(s); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    script s = {.at = data, .end = data + (size < LARGEST_SCRIPT ? size : LARGEST_SCRIPT)};
    while (s.at < s.end) {
        const uint8_t word = next(&s);
        if (word >= CLOCKED_CALLS) {
            use_clocked(&s, (word - CLOCKED_CALLS) % CLOCKED_KINDS);
            continue;
        }
        const int n = word / CALLS, call = word % CALLS;
        const fmi2Component c = s.instances[n];
        switch (call) {
            case 0: instantiate(&s, n); break;
            case 1: free_instance(&s, n); break;
            case 2: fmi2SetupExperiment(c, 1, next_real(&s), next(&s) == 255 ? next_real(&s) : 0.0, 0, 0.0); break;
            case 3: fmi2EnterInitializationMode(c); break;
            case 4: fmi2ExitInitializationMode(c); break;
            case 5: take_event(&s, n); break;
            case 6: fmi2EnterContinuousTimeMode(c); break;
            case 7:
            case 8:
            case 9: step(&s, n); break;
            case 10: fmi2EnterEventMode(c); break;
            case 11: {
                const double time = next_real(&s);
                if (fmi2SetTime(c, time) == fmi2OK) s.times[n] = time;
                break;
            }
            case 12: set_states(&s, c); break;
            case 13: read_arrays(&s, c); break;
            case 14: get_and_set(&s, c, 0); break;
            case 15: get_and_set(&s, c, 1); break;
            case 16: differentiate(&s, c); break;
            case 17: fmi2Terminate(c); break;
            case 18:
                if (fmi2Reset(c) == fmi2OK) {
                    s.times[n] = 0.0;
                    s.next_times[n] = INFINITY;
                }
                break;
            default: use_state(&s, n, call - 19); break;
        }
    }
    for (int n = 0; n < INSTANCES; n++) free_instance(&s, n);
    free_clocked(&s);
    return 0;
}
