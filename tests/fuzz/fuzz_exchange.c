/* Fuzzes model exchange: sequences of calls on up to four instances of two plans, one of them for co-simulation, with odd arguments.
 *
 * An input is a script, as in fuzz_fmi2.c: each call takes its choices from the next bytes, and at the end everything is freed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmu/fmi2.h"
#include "fuzz.h"

enum { INSTANCES = 4, PLANS = 2, STATES = 3, MOST = 64, CALLS = 22, LARGEST_SCRIPT = 512 };

int fuzz_accepted;

typedef struct {
    const uint8_t *at, *end;
    fmi2Component instances[INSTANCES];
    double times[INSTANCES], next_times[INSTANCES];
    fmi2FMUstate states[STATES];
    int owners[STATES];
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
static void instantiate(script *s, int n) {
    static const char *const NAMES[PLANS] = {"exchange", "exchange_sampled"};
    static const fmi2CallbackFunctions SILENT = {0};
    const char *folder = getenv("FUZZ_PLANS"), *name = NAMES[n % PLANS];
    char path[1100], location[1100], guid[48];
    unsigned char head[32];
    uint64_t hash = 0;
    const uint8_t oddity = next(s);
    if (s->instances[n]) return;
    snprintf(location, sizeof location, "file://%s/%s", folder ? folder : "plans", name);
    snprintf(path, sizeof path, "%s/%s/plan.bin", folder ? folder : "plans", name);
    FILE *file = fopen(path, "rb");
    if (!file || fread(head, 1, sizeof head, file) != sizeof head) {
        fprintf(stderr, "cannot read %s: set FUZZ_PLANS\n", path);
        exit(1);
    }
    fclose(file);
    memcpy(&hash, head + 16, sizeof hash);
    snprintf(guid, sizeof guid, "{biella-%016llx-%016llx}", (unsigned long long)hash, 0ULL);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    script s = {.at = data, .end = data + (size < LARGEST_SCRIPT ? size : LARGEST_SCRIPT)};
    while (s.at < s.end) {
        const uint8_t word = next(&s);
        const int n = word / CALLS % INSTANCES, call = word % CALLS;
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
    return 0;
}
