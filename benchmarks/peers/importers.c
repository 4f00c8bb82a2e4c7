/* An importer in plain C: runs one FMU of FMI 2.0 or 3.0, for co-simulation or model exchange, and prints its outputs.
 *
 *   importer LIBRARY VERSION KIND TOKEN RESOURCES STEP UNTIL STATES INDICATORS VALUES OUTPUT…
 *
 * VERSION is 2 or 3, KIND cs or me, TOKEN the GUID or instantiation token, OUTPUT… are value references of reals, which have VALUES
 * elements. Numbers are
 * printed in hexadecimal, a line for every step. Model exchange is integrated by RK4 with PARTS steps between two lines; a step in
 * which an event indicator changes its sign is bisected. Every call must return OK. */
#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 512, PARTS = 4, BISECTIONS = 60, LARGEST_ITERATION = 100 };

typedef struct {
    void (*logger)(void *, const char *, int, const char *, const char *, ...);
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(void *, int);
    void *environment;
} callbacks2;

typedef struct {
    int needs_iteration, terminates, nominals_changed, states_changed, has_next_time;
    double next_time;
} event_info2;

static void *library, *fmu;
static int version;
static size_t state_count, indicator_count, output_count, value_count;
static unsigned outputs[MOST];
static double next_time = INFINITY;

static void stop(const char *what) {
    fprintf(stderr, "failed: %s\n", what);
    exit(1);
}

static void check(int status, const char *what) {
    if (status != 0) stop(what);
}

/* A function of the FMU, by its name without the prefix fmi2 or fmi3. */
static void *find(const char *name) {
    char full[80];
    snprintf(full, sizeof full, "fmi%d%s", version, name);
    void *found = dlsym(library, full);
    if (!found) stop(full);
    return found;
}

static void log_2(void *environment, const char *name, int status, const char *category, const char *format, ...) {
    (void)environment, (void)category;
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s (%d): ", name, status);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
}

static void log_3(void *environment, int status, const char *category, const char *message) {
    (void)environment;
    fprintf(stderr, "%d %s: %s\n", status, category, message);
}

static void call(const char *name) { check(((int (*)(void *))find(name))(fmu), name); }

static void set_time(double t) { check(((int (*)(void *, double))find("SetTime"))(fmu, t), "SetTime"); }

static void set_states(const double *x) {
    if (state_count == 0) return;
    const char *name = "SetContinuousStates";
    check(((int (*)(void *, const double *, size_t))find(name))(fmu, x, state_count), name);
}

static void get_values(const char *name, double *values, size_t count) {
    if (count > 0) check(((int (*)(void *, double *, size_t))find(name))(fmu, values, count), name);
}

static void get_states(double *x) { get_values("GetContinuousStates", x, state_count); }

static void get_rates(double *dx) {
    get_values(version == 2 ? "GetDerivatives" : "GetContinuousStateDerivatives", dx, state_count);
}

static void get_indicators(double *z) { get_values("GetEventIndicators", z, indicator_count); }

static void print_outputs(void) {
    double y[MOST];
    if (version == 2) {
        int (*get)(void *, const unsigned *, size_t, double *) = find("GetReal");
        check(get(fmu, outputs, output_count, y), "GetReal");
    } else {
        int (*get)(void *, const unsigned *, size_t, double *, size_t) = find("GetFloat64");
        check(get(fmu, outputs, output_count, y, value_count), "GetFloat64");
    }
    for (size_t k = 0; k < value_count; k++) printf("%a%c", y[k], k + 1 < value_count ? ' ' : '\n');
}

static void start(bool is_exchange, const char *token, const char *resources, double until) {
    if (version == 2) {
        static const callbacks2 callbacks = {log_2, calloc, free, NULL, NULL};
        fmu = ((void *(*)(const char *, int, const char *, const char *, const callbacks2 *, int, int))find(
            "Instantiate"))("one", is_exchange ? 0 : 1, token, resources, &callbacks, 0, 0);
        if (!fmu) stop("Instantiate");
        int (*setup)(void *, int, double, double, int, double) = find("SetupExperiment");
        check(setup(fmu, 0, 0.0, 0.0, 1, until), "SetupExperiment");
        call("EnterInitializationMode");
    } else {
        typedef void (*logger)(void *, int, const char *, const char *);
        if (is_exchange)
            fmu = ((void *(*)(const char *, const char *, const char *, bool, bool, void *, logger))find(
                "InstantiateModelExchange"))("one", token, resources, false, false, NULL, log_3);
        else
            fmu = ((void *(*)(const char *, const char *, const char *, bool, bool, bool, bool, const unsigned *,
                              size_t, void *, logger, void *))find("InstantiateCoSimulation"))(
                "one", token, resources, false, false, false, false, NULL, 0, NULL, log_3, NULL);
        if (!fmu) stop("Instantiate");
        int (*enter)(void *, bool, double, double, bool, double) = find("EnterInitializationMode");
        check(enter(fmu, false, 0.0, 0.0, true, until), "EnterInitializationMode");
    }
    call("ExitInitializationMode");
}

static void step_to(double t, double h) {
    if (version == 2) {
        check(((int (*)(void *, double, double, int))find("DoStep"))(fmu, t, h, 1), "DoStep");
        return;
    }
    bool event = false, ends = false, early = false;
    double reached = t;
    int (*step)(void *, double, double, bool, bool *, bool *, bool *, double *) = find("DoStep");
    check(step(fmu, t, h, true, &event, &ends, &early, &reached), "DoStep");
    if (ends || early) stop("the step ended early");
}

/* In event mode: until nothing changes; then in continuous-time mode, with the states as they are now in `x`. */
static void handle_event(double *x) {
    for (int k = 0;; k++) {
        bool again = false, ends = false, has_next = false;
        if (k == LARGEST_ITERATION) stop("event iteration");
        if (version == 2) {
            event_info2 info = {0};
            check(((int (*)(void *, event_info2 *))find("NewDiscreteStates"))(fmu, &info), "NewDiscreteStates");
            again = info.needs_iteration, ends = info.terminates, has_next = info.has_next_time;
            next_time = has_next ? info.next_time : INFINITY;
        } else {
            bool nominals = false, states = false;
            double next = 0.0;
            int (*update)(void *, bool *, bool *, bool *, bool *, bool *, double *) = find("UpdateDiscreteStates");
            check(update(fmu, &again, &ends, &nominals, &states, &has_next, &next), "UpdateDiscreteStates");
            next_time = has_next ? next : INFINITY;
        }
        if (ends) stop("the FMU ended the simulation");
        if (!again) break;
    }
    call("EnterContinuousTimeMode");
    get_states(x);
}

/* One step of RK4 from `x` at t; the FMU is then at its end. */
static void rk4(double t, double h, const double *x, double *end) {
    double k[4][MOST], at[MOST];
    static const double place[] = {0.0, 0.5, 0.5, 1.0};
    for (int stage = 0; stage < 4; stage++) {
        for (size_t i = 0; i < state_count; i++) at[i] = x[i] + (stage > 0 ? place[stage] * h * k[stage - 1][i] : 0.0);
        set_time(t + place[stage] * h);
        set_states(at);
        get_rates(k[stage]);
    }
    for (size_t i = 0; i < state_count; i++)
        end[i] = x[i] + h / 6.0 * (k[0][i] + 2.0 * k[1][i] + 2.0 * k[2][i] + k[3][i]);
    set_time(t + h);
    set_states(end);
}

static bool has_crossed(const double *before, const double *after) {
    for (size_t k = 0; k < indicator_count; k++)
        if ((before[k] > 0.0) != (after[k] > 0.0)) return true;
    return false;
}

/* Integrates from t to `end`; returns nothing but the states there. */
static void integrate(double t, double end, double part, double *x) {
    double before[MOST], after[MOST], next[MOST];
    while (t < end) {
        const bool is_timed = next_time <= end && next_time - t <= part * (1.0 + 1e-9);
        double h = is_timed ? next_time - t : fmin(part, end - t);
        if (end - (t + h) < 1e-9 * part && !is_timed) h = end - t;
        get_indicators(before);
        rk4(t, h, x, next);
        get_indicators(after);
        bool is_event = is_timed;
        if (has_crossed(before, after)) { /* the shortest step that ends beyond the crossing */
            double low = 0.0, high = h;
            for (int n = 0; n < BISECTIONS && high - low > 1e-14 * part; n++) {
                const double middle = 0.5 * (low + high);
                rk4(t, middle, x, next);
                get_indicators(after);
                if (has_crossed(before, after)) high = middle;
                else low = middle;
            }
            rk4(t, high, x, next);
            is_event = true;
            if (high < h) h = high;
        }
        memcpy(x, next, state_count * sizeof *x);
        t = h == end - t ? end : t + h;
        bool wants_event = false, ends = false;
        if (version == 2) {
            int wants = 0, terminates = 0;
            int (*completed)(void *, int, int *, int *) = find("CompletedIntegratorStep");
            check(completed(fmu, 1, &wants, &terminates), "CompletedIntegratorStep");
            wants_event = wants, ends = terminates;
        } else {
            int (*completed)(void *, bool, bool *, bool *) = find("CompletedIntegratorStep");
            check(completed(fmu, true, &wants_event, &ends), "CompletedIntegratorStep");
        }
        if (ends) stop("the FMU ended the simulation");
        if (is_event || wants_event) {
            call("EnterEventMode");
            handle_event(x);
        }
    }
}

int main(int count, char **arguments) {
    if (count < 11) stop("arguments");
    version = atoi(arguments[2]);
    library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) stop(dlerror());
    const bool is_exchange = strcmp(arguments[3], "me") == 0;
    const double step = strtod(arguments[6], NULL), until = strtod(arguments[7], NULL);
    state_count = (size_t)atol(arguments[8]);
    indicator_count = (size_t)atol(arguments[9]);
    value_count = (size_t)atol(arguments[10]);
    output_count = (size_t)(count - 11);
    if (state_count > MOST || indicator_count > MOST || value_count > MOST || output_count > value_count)
        stop("too many values");
    for (size_t k = 0; k < output_count; k++) outputs[k] = (unsigned)atol(arguments[11 + k]);
    const long steps = lround(until / step);
    double x[MOST];
    start(is_exchange, arguments[4], arguments[5], until);
    if (is_exchange) handle_event(x);
    print_outputs();
    for (long n = 0; n < steps; n++) {
        const double t = (double)n * step, end = (double)(n + 1) * step;
        if (is_exchange) integrate(t, end, step / PARTS, x);
        else step_to(t, step);
        print_outputs();
    }
    call("Terminate");
    ((void (*)(void *))find("FreeInstance"))(fmu);
    return 0;
}
