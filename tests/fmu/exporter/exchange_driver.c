/* A tool for model exchange in C: classical Runge–Kutta steps of fixed length, bisection on the sign of the event indicators, time events.
 *
 *     exchange_driver library guid resources states indicators until step reference…
 *
 * prints the time and the variables at every step and after every event, and the number of events. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*call)(void *, ...);
typedef struct {
    void *logger, *allocate, *release, *finished, *environment;
} callbacks;
typedef struct {
    int again, terminate, nominals, values, is_next;
    double next;
} event_info;

enum { MOST = 64 };
static void *library, *instance;
static int states, indicators;
static unsigned references[MOST];
static int reference_count;

static void *find(const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "no function %s\n", name);
        exit(2);
    }
    return found;
}

static void expect(int status, const char *what) {
    if (status == 0) return;
    fprintf(stderr, "%s returned %d\n", what, status);
    exit(3);
}

static void show_message(void *environment, const char *name, int status, const char *category, const char *format,
                         const char *text) {
    (void)environment, (void)name, (void)category, (void)format;
    if (status > 1) fprintf(stderr, "%s\n", text);
}

static void set(double t, const double *x) {
    expect(((int (*)(void *, double))find("fmi2SetTime"))(instance, t), "fmi2SetTime");
    expect(((int (*)(void *, const double *, size_t))find("fmi2SetContinuousStates"))(instance, x, (size_t)states),
           "fmi2SetContinuousStates");
}

static void evaluate(double t, const double *x, double *dx) {
    set(t, x);
    expect(((int (*)(void *, double *, size_t))find("fmi2GetDerivatives"))(instance, dx, (size_t)states),
           "fmi2GetDerivatives");
}

static void read_indicators(double *z) {
    expect(((int (*)(void *, double *, size_t))find("fmi2GetEventIndicators"))(instance, z, (size_t)indicators),
           "fmi2GetEventIndicators");
}

/* x at t + h, from x at t. */
static void integrate(double t, double h, const double *x, double *to) {
    double k[4][MOST], trial[MOST];
    evaluate(t, x, k[0]);
    for (int s = 1; s < 4; s++) {
        const double part = s < 3 ? 0.5 : 1.0;
        for (int i = 0; i < states; i++) trial[i] = x[i] + part * h * k[s - 1][i];
        evaluate(t + part * h, trial, k[s]);
    }
    for (int i = 0; i < states; i++) to[i] = x[i] + h / 6.0 * (k[0][i] + 2.0 * (k[1][i] + k[2][i]) + k[3][i]);
    set(t + h, to);
}

static int changed(const double *before, const double *now) {
    for (int k = 0; k < indicators; k++)
        if ((before[k] > 0.0) != (now[k] > 0.0)) return 1;
    return 0;
}

static void show(double t) {
    double values[MOST];
    expect(((int (*)(void *, const unsigned *, size_t, double *))find("fmi2GetReal"))(instance, references,
                                                                                      (size_t)reference_count, values),
           "fmi2GetReal");
    printf("%.17g", t);
    for (int k = 0; k < reference_count; k++) printf(" %.17g", values[k]);
    printf("\n");
}

static int handle_event(event_info *info, double *x, double *z) {
    call next = (call)find("fmi2NewDiscreteStates");
    do expect(((int (*)(void *, event_info *))(void *)next)(instance, info), "fmi2NewDiscreteStates");
    while (info->again && !info->terminate);
    if (info->terminate) return 0;
    expect(((int (*)(void *))find("fmi2EnterContinuousTimeMode"))(instance), "fmi2EnterContinuousTimeMode");
    expect(((int (*)(void *, double *, size_t))find("fmi2GetContinuousStates"))(instance, x, (size_t)states),
           "fmi2GetContinuousStates");
    read_indicators(z);
    return 1;
}

int main(int count, char **words) {
    if (count < 8 || count - 8 > MOST || !(library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL))) {
        fprintf(stderr, "%s\n", count < 8 ? "usage" : dlerror());
        return 1;
    }
    states = atoi(words[4]);
    indicators = atoi(words[5]);
    const double until = atof(words[6]), step = atof(words[7]);
    if (states > MOST || indicators > MOST) return 1;
    for (int k = 8; k < count; k++) references[reference_count++] = (unsigned)atoi(words[k]);
    const callbacks functions = {.logger = (void *)show_message};
    instance = ((void *(*)(const char *, int, const char *, const char *, const callbacks *, int, int))find(
        "fmi2Instantiate"))("driven", 0, words[2], words[3], &functions, 0, 0);
    if (!instance) return 4;
    expect(((int (*)(void *, int, double, double, int, double))find("fmi2SetupExperiment"))(instance, 0, 0.0, 0.0, 1,
                                                                                            until),
           "fmi2SetupExperiment");
    expect(((int (*)(void *))find("fmi2EnterInitializationMode"))(instance), "fmi2EnterInitializationMode");
    expect(((int (*)(void *))find("fmi2ExitInitializationMode"))(instance), "fmi2ExitInitializationMode");
    double t = 0.0, x[MOST], z[MOST], next_x[MOST], now[MOST];
    event_info info;
    int events = 0;
    long n = 0;
    int goes_on = handle_event(&info, x, z);
    show(t);
    while (goes_on && t < until - 1e-12) {
        double end = (double)(n + 1) * step;
        const int is_time_event = info.is_next && info.next <= end;
        if (is_time_event) end = info.next;
        double h = end - t;
        integrate(t, h, x, next_x);
        read_indicators(now);
        int is_event = changed(z, now);
        if (is_event) { /* between a, where nothing has changed, and h */
            double a = 0.0;
            for (int trial = 0; trial < 60 && h - a > 1e-14; trial++) {
                const double middle = 0.5 * (a + h);
                integrate(t, middle, x, next_x);
                read_indicators(now);
                if (changed(z, now)) h = middle;
                else a = middle;
            }
            integrate(t, h, x, next_x);
        }
        t = is_event ? t + h : end;
        memcpy(x, next_x, sizeof x);
        set(t, x);
        int asks = 0, terminates = 0;
        expect(
            ((int (*)(void *, int, int *, int *))find("fmi2CompletedIntegratorStep"))(instance, 1, &asks, &terminates),
            "fmi2CompletedIntegratorStep");
        if (is_event || asks || (is_time_event && t >= info.next)) {
            events++;
            expect(((int (*)(void *))find("fmi2EnterEventMode"))(instance), "fmi2EnterEventMode");
            goes_on = handle_event(&info, x, z);
        } else {
            read_indicators(z);
        }
        if (t >= (double)(n + 1) * step - 1e-12) n++;
        show(t);
    }
    printf("events %d\n", events);
    expect(((int (*)(void *))find("fmi2Terminate"))(instance), "fmi2Terminate");
    ((void (*)(void *))find("fmi2FreeInstance"))(instance);
    return 0;
}
