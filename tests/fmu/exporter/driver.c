/* A master in plain C: loads an FMU's library, drives instances and prints their outputs.
 *
 *   driver two  LIBRARY GUID RESOURCES STEPS INPUT OUTPUT…        two instances in turn, with different inputs
 *   driver save LIBRARY GUID RESOURCES STEPS INPUT OUTPUT… FILE   half the steps, serialize the state, the other half
 *   driver load LIBRARY GUID RESOURCES STEPS INPUT OUTPUT… FILE   the other half alone, from that state
 *
 * INPUT and OUTPUT… are value references; RESOURCES may be "-" for none. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

typedef struct {
    void (*logger)(void *, const char *, int, const char *, const char *, ...);
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(void *, int);
    void *environment;
} callbacks_t;

static void *(*instantiate)(const char *, int, const char *, const char *, const callbacks_t *, int, int);
static int (*setup)(void *, int, double, double, int, double);
static int (*enter)(void *), (*leave)(void *), (*terminate)(void *);
static int (*set_real)(void *, const unsigned *, size_t, const double *);
static int (*get_real)(void *, const unsigned *, size_t, double *);
static int (*do_step)(void *, double, double, int);
static int (*get_state)(void *, void **), (*set_state)(void *, void *), (*free_state)(void *, void **);
static int (*state_size)(void *, void *, size_t *), (*serialize)(void *, void *, char *, size_t);
static int (*deserialize)(void *, const char *, size_t, void **);
static void (*free_instance)(void *);

static const double STEP = 0.01;
static unsigned input, outputs[16];
static size_t output_count;

static void check(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "failed: %s\n", what);
    exit(1);
}

static void log_message(void *environment, const char *name, int status, const char *category, const char *format,
                        ...) {
    va_list arguments;
    (void)environment;
    fprintf(stderr, "%s (%d, %s): ", name, status, category);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
}

static void load(const char *path) {
#if defined(_WIN32)
    HMODULE library = LoadLibraryA(path);
#define FIND(name) (void *)GetProcAddress(library, name)
#else
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fprintf(stderr, "%s\n", dlerror());
#define FIND(name) dlsym(library, name)
#endif
    check(library != NULL, path);
    const struct {
        const char *name;
        void *place;
    } functions[] = {
        {"fmi2Instantiate", &instantiate},
        {"fmi2SetupExperiment", &setup},
        {"fmi2EnterInitializationMode", &enter},
        {"fmi2ExitInitializationMode", &leave},
        {"fmi2Terminate", &terminate},
        {"fmi2SetReal", &set_real},
        {"fmi2GetReal", &get_real},
        {"fmi2DoStep", &do_step},
        {"fmi2GetFMUstate", &get_state},
        {"fmi2SetFMUstate", &set_state},
        {"fmi2FreeFMUstate", &free_state},
        {"fmi2SerializedFMUstateSize", &state_size},
        {"fmi2SerializeFMUstate", &serialize},
        {"fmi2DeSerializeFMUstate", &deserialize},
        {"fmi2FreeInstance", &free_instance},
    };
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        void *found = FIND(functions[k].name);
        check(found != NULL, functions[k].name);
        memcpy(functions[k].place, &found, sizeof found);
    }
}

static void *start(const char *name, const char *guid, const char *resources) {
    static const callbacks_t callbacks = {log_message, calloc, free, NULL, NULL};
    void *instance = instantiate(name, 1, guid, strcmp(resources, "-") == 0 ? NULL : resources, &callbacks, 0, 0);
    check(instance != NULL, "fmi2Instantiate");
    check(setup(instance, 0, 0.0, 0.0, 0, 0.0) == 0 && enter(instance) == 0 && leave(instance) == 0, "initialization");
    return instance;
}

static void advance(void *instance, int step, int shift) {
    const double value = 0.25 * ((7 * step + shift) % 23) - 2.0;
    double values[16];
    check(set_real(instance, &input, 1, &value) == 0, "fmi2SetReal");
    check(do_step(instance, step * STEP, STEP, 1) == 0, "fmi2DoStep");
    check(get_real(instance, outputs, output_count, values) == 0, "fmi2GetReal");
    for (size_t k = 0; k < output_count; k++) printf("%.17g%c", values[k], k + 1 < output_count ? ' ' : '\n');
}

int main(int count, char **arguments) {
    check(count >= 8, "arguments");
    const char *mode = arguments[1], *guid = arguments[3], *resources = arguments[4];
    const int steps = atoi(arguments[5]), two = strcmp(mode, "two") == 0, fresh = strcmp(mode, "load") == 0;
    const int last = two ? count : count - 1;
    load(arguments[2]);
    input = (unsigned)atoi(arguments[6]);
    for (int k = 7; k < last && output_count < 16; k++) outputs[output_count++] = (unsigned)atoi(arguments[k]);
    void *first = start("first", guid, resources);
    if (two) {
        void *second = start("second", guid, resources);
        for (int n = 0; n < steps; n++) {
            advance(first, n, 0);
            advance(second, n, 5);
        }
        check(terminate(second) == 0, "fmi2Terminate");
        free_instance(second);
    } else {
        void *state = NULL;
        size_t size = 0;
        for (int n = 0; n < steps / 2 && !fresh; n++) advance(first, n, 0);
        check(get_state(first, &state) == 0 && state_size(first, state, &size) == 0, "fmi2GetFMUstate");
        char *bytes = malloc(size);
        FILE *file = fopen(arguments[last], fresh ? "rb" : "wb");
        check(bytes && file, arguments[last]);
        if (fresh) {
            check(fread(bytes, 1, size, file) == size, "fread");
            check(free_state(first, &state) == 0 && deserialize(first, bytes, size, &state) == 0,
                  "fmi2DeSerializeFMUstate");
            check(set_state(first, state) == 0, "fmi2SetFMUstate");
        } else {
            check(serialize(first, state, bytes, size) == 0, "fmi2SerializeFMUstate");
            check(fwrite(bytes, 1, size, file) == size, "fwrite");
        }
        fclose(file);
        free(bytes);
        check(free_state(first, &state) == 0, "fmi2FreeFMUstate");
        for (int n = steps / 2; n < steps; n++) advance(first, n, 0);
    }
    check(terminate(first) == 0, "fmi2Terminate");
    free_instance(first);
    return 0;
}
