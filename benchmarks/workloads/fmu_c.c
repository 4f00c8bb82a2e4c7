/* A ring of FMUs in a bare loop: what it costs to set, step and get with nothing around it.
 *
 * The types are those of FMI 2.0 on every platform that runs it: a value reference is an unsigned int, a status an int
 * of which 0 and 1 are good. */
#include <dlfcn.h>
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
    int (*set)(void *, const unsigned *, size_t, const double *);
    int (*get)(void *, const unsigned *, size_t, double *);
    int (*step)(void *, double, double, int);
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

/* The n-th of `count` instances starts at `starts[n]`. Returns NULL if anything fails. */
ring *ring_open(const char *path, const char *guid, const char *resources, unsigned input, unsigned output,
                unsigned start, int count, const double *starts) {
    ring *r = calloc(1, sizeof *r);
    void *(*instantiate)(const char *, int, const char *, const char *, const callbacks *, int, int);
    int (*setup)(void *, int, double, double, int, double), (*enter)(void *), (*leave)(void *);
    r->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!r->library) return fprintf(stderr, "%s\n", dlerror()), NULL;
    find(r->library, "fmi2Instantiate", &instantiate);
    find(r->library, "fmi2SetupExperiment", &setup);
    find(r->library, "fmi2EnterInitializationMode", &enter);
    find(r->library, "fmi2ExitInitializationMode", &leave);
    find(r->library, "fmi2SetReal", &r->set);
    find(r->library, "fmi2GetReal", &r->get);
    find(r->library, "fmi2DoStep", &r->step);
    find(r->library, "fmi2Terminate", &r->terminate);
    find(r->library, "fmi2FreeInstance", &r->release);
    r->input = input, r->output = output, r->count = count;
    r->outputs = calloc((size_t)count, sizeof *r->outputs);
    r->instances = calloc((size_t)count, sizeof *r->instances);
    r->calls = (callbacks){stay_silent, calloc, free, NULL, NULL};
    int status = 0;
    for (int n = 0; n < count; n++) {
        void *c = r->instances[n] = instantiate("one", 1, guid, resources, &r->calls, 0, 0);
        if (!c) return NULL;
        status |= setup(c, 0, 0.0, 0.0, 0, 0.0) | r->set(c, &start, 1, &starts[n]) | enter(c);
        status |= leave(c) | r->get(c, &output, 1, &r->outputs[n]);
    }
    return status > 1 ? NULL : r;
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
            status |= r->set(c, &r->input, 1, &before);
            before = r->outputs[n];
            status |= r->step(c, (double)k * step, step, 1);
            status |= r->get(c, &r->output, 1, &r->outputs[n]);
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
