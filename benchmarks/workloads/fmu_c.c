/* A ring of FMUs in a bare loop: what it costs to set, step and get with nothing around it.
 *
 * The types are those of FMI on every platform that runs it: a value reference is an unsigned int, a status an int
 * of which 0 and 1 are good. With -DFMI3 the calls are those of FMI 3.0. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    void (*log)(void *, const char *, int, const char *, const char *, ...);
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(void *, int);
    void *environment;
} callbacks;

typedef struct {
    void *library;
#if defined(FMI3)
    int (*set)(void *, const unsigned *, size_t, const double *, size_t);
    int (*get)(void *, const unsigned *, size_t, double *, size_t);
    int (*step)(void *, double, double, bool, bool *, bool *, bool *, double *);
#else
    int (*set)(void *, const unsigned *, size_t, const double *);
    int (*get)(void *, const unsigned *, size_t, double *);
    int (*step)(void *, double, double, int);
#endif
    int (*terminate)(void *);
    void (*release)(void *);
    unsigned input, output;
    int count;
    double *outputs;
    void **instances;
    callbacks calls;
} ring;

static void stay_silent(void *environment, const char *name, int status, const char *category, const char *text, ...) {
    (void)environment, (void)name, (void)status, (void)category, (void)text;
}

/* ISO C has no conversion from an object pointer to a function pointer, POSIX requires one. */
static void find(void *library, const char *name, void *function) { *(void **)function = dlsym(library, name); }

/* Makes an instance that starts at `value`, and gives its first output. Returns NULL if anything fails. */
#if defined(FMI3)
#define FMI(name2, name3) "fmi3" name3
static int set_one(ring *r, void *c, unsigned at, double value) { return r->set(c, &at, 1, &value, 1); }
static int get_one(ring *r, void *c, unsigned at, double *value) { return r->get(c, &at, 1, value, 1); }
static int take_step(ring *r, void *c, double at, double step) {
    bool event, ends, early;
    double reached;
    return r->step(c, at, step, true, &event, &ends, &early, &reached);
}

static void *open_one(ring *r, const char *token, const char *resources, unsigned start, double value) {
    void *(*instantiate)(const char *, const char *, const char *, bool, bool, bool, bool, const unsigned *, size_t,
                         void *, void *, void *);
    int (*enter)(void *, bool, double, double, bool, double), (*leave)(void *);
    find(r->library, "fmi3InstantiateCoSimulation", &instantiate);
    find(r->library, "fmi3EnterInitializationMode", &enter);
    find(r->library, "fmi3ExitInitializationMode", &leave);
    void *c = instantiate("one", token, resources, false, false, false, false, NULL, 0, NULL, NULL, NULL);
    if (!c || set_one(r, c, start, value) > 1 || enter(c, false, 0.0, 0.0, false, 0.0) > 1 || leave(c) > 1) return NULL;
    return c;
}
#else
#define FMI(name2, name3) "fmi2" name2
static int set_one(ring *r, void *c, unsigned at, double value) { return r->set(c, &at, 1, &value); }
static int get_one(ring *r, void *c, unsigned at, double *value) { return r->get(c, &at, 1, value); }
static int take_step(ring *r, void *c, double at, double step) { return r->step(c, at, step, 1); }

static void *open_one(ring *r, const char *guid, const char *resources, unsigned start, double value) {
    void *(*instantiate)(const char *, int, const char *, const char *, const callbacks *, int, int);
    int (*setup)(void *, int, double, double, int, double), (*enter)(void *), (*leave)(void *);
    find(r->library, "fmi2Instantiate", &instantiate);
    find(r->library, "fmi2SetupExperiment", &setup);
    find(r->library, "fmi2EnterInitializationMode", &enter);
    find(r->library, "fmi2ExitInitializationMode", &leave);
    void *c = instantiate("one", 1, guid, resources, &r->calls, 0, 0);
    if (!c || setup(c, 0, 0.0, 0.0, 0, 0.0) > 1 || set_one(r, c, start, value) > 1 || enter(c) > 1 || leave(c) > 1)
        return NULL;
    return c;
}
#endif

/* The n-th of `count` instances starts at `starts[n]`. Returns NULL if anything fails. */
ring *ring_open(const char *path, const char *guid, const char *resources, unsigned input, unsigned output,
                unsigned start, int count, const double *starts) {
    ring *r = calloc(1, sizeof *r);
    r->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!r->library) return fprintf(stderr, "%s\n", dlerror()), NULL;
    find(r->library, FMI("SetReal", "SetFloat64"), &r->set);
    find(r->library, FMI("GetReal", "GetFloat64"), &r->get);
    find(r->library, FMI("DoStep", "DoStep"), &r->step);
    find(r->library, FMI("Terminate", "Terminate"), &r->terminate);
    find(r->library, FMI("FreeInstance", "FreeInstance"), &r->release);
    r->input = input, r->output = output, r->count = count;
    r->outputs = calloc((size_t)count, sizeof *r->outputs);
    r->instances = calloc((size_t)count, sizeof *r->instances);
    r->calls = (callbacks){stay_silent, calloc, free, NULL, NULL};
    for (int n = 0; n < count; n++) {
        r->instances[n] = open_one(r, guid, resources, start, starts[n]);
        if (!r->instances[n] || get_one(r, r->instances[n], output, &r->outputs[n]) > 1) return NULL;
    }
    return r;
}

/* Each FMU gets what the one before it gave at the beginning of the step. Returns the last output of the last
   FMU, or what is not a number if a call failed. */
double ring_run(ring *r, long steps, double step) {
    const int last = r->count - 1;
    int status = 0;
    for (long k = 0; k < steps; k++) {
        double before = r->outputs[last];
        for (int n = 0; n <= last; n++) {
            void *c = r->instances[n];
            status |= set_one(r, c, r->input, before);
            before = r->outputs[n];
            status |= take_step(r, c, (double)k * step, step);
            status |= get_one(r, c, r->output, &r->outputs[n]);
        }
    }
    return status > 1 ? 0.0 / 0.0 : r->outputs[last];
}

void ring_close(ring *r) {
    for (int n = 0; n < r->count; n++) {
        r->terminate(r->instances[n]);
        r->release(r->instances[n]);
    }
    dlclose(r->library);
    free(r->instances);
    free(r->outputs);
    free(r);
}
