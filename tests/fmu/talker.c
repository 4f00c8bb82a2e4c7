/* A small FMI 2.0 or, with -DFMI3, FMI 3.0 co-simulation FMU with strings: `heard` is an input, and the output `said` is `prefix`
 * followed by what it has heard until the last step; `steps` is how long that is. With the parameter `mode` 1, `said` is a count of the
 * steps; with 2, it is too long for a signal; with 3, getting it fails. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
enum { OK, WARNING, DISCARD, ERROR };
enum { TIME, HEARD, SAID, LENGTH, PREFIX, MODE };

typedef struct {
    char heard[200], said[2000], prefix[50];
    int mode, steps;
} model;

static void *make(void) {
    model *m = calloc(1, sizeof *m);
    strcpy(m->heard, "nothing");
    return m;
}
static void say(model *m) {
    if (m->mode == 1) snprintf(m->said, sizeof m->said, "step %d", m->steps);
    else if (m->mode == 2) memset(m->said, 'x', sizeof m->said - 1);
    else snprintf(m->said, sizeof m->said, "%s%s", m->prefix, m->heard);
}
static int get_string(const model *m, const unsigned *r, size_t count, const char **value) {
    for (size_t k = 0; k < count; k++) value[k] = r[k] == SAID ? m->said : r[k] == HEARD ? m->heard : m->prefix;
    return m->mode == 3 ? ERROR : OK;
}
static int set_string(model *m, const unsigned *r, size_t count, const char *const *value) {
    for (size_t k = 0; k < count; k++) {
        if (r[k] == HEARD) snprintf(m->heard, sizeof m->heard, "%s", value[k]);
        else snprintf(m->prefix, sizeof m->prefix, "%s", value[k]);
    }
    return OK;
}
static int step(model *m) {
    m->steps++;
    say(m);
    return OK;
}
#define UNUSED(name) \
    API int name(void *c) { return (void)c, ERROR; }

#ifdef FMI3
API const char *fmi3GetVersion(void) { return "3.0"; }
API void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *path, bool visible, bool logging,
                                      bool events, bool early, const unsigned *r, size_t count, void *environment,
                                      void *log, void *update) {
    (void)name, (void)token, (void)path, (void)visible, (void)logging, (void)events, (void)early, (void)r, (void)count;
    (void)environment, (void)log, (void)update;
    return make();
}
API void fmi3FreeInstance(void *c) { free(c); }
API int fmi3EnterInitializationMode(void *c, bool a, double b, double t, bool d, double e) {
    return (void)a, (void)b, (void)t, (void)d, (void)e, say(c), OK;
}
API int fmi3ExitInitializationMode(void *c) { return say(c), OK; }
API int fmi3Terminate(void *c) { return (void)c, OK; }
API int fmi3GetInt32(void *c, const unsigned *r, size_t count, int *value, size_t values) {
    for (size_t k = 0; k < count && k < values; k++) value[k] = (int)strlen(((model *)c)->heard);
    return (void)r, OK;
}
API int fmi3SetInt32(void *c, const unsigned *r, size_t count, const int *value, size_t values) {
    for (size_t k = 0; k < count && k < values; k++) ((model *)c)->mode = value[k];
    return (void)r, OK;
}
API int fmi3GetString(void *c, const unsigned *r, size_t count, const char **value, size_t values) {
    return (void)values, get_string(c, r, count, value);
}
API int fmi3SetString(void *c, const unsigned *r, size_t count, const char *const *value, size_t values) {
    return (void)values, set_string(c, r, count, value);
}
API int fmi3DoStep(void *c, double t, double h, bool final, bool *event, bool *ends, bool *early, double *last) {
    (void) final;
    *event = *ends = *early = false;
    *last = t + h;
    return step(c);
}
#else
API const char *fmi2GetVersion(void) { return "2.0"; }
API const char *fmi2GetTypesPlatform(void) { return "default"; }
API void *fmi2Instantiate(const char *name, int type, const char *guid, const char *resources, const void *call,
                          int visible, int logging) {
    (void)name, (void)type, (void)guid, (void)resources, (void)call, (void)visible, (void)logging;
    return make();
}
API void fmi2FreeInstance(void *c) { free(c); }
API int fmi2SetDebugLogging(void *c, int on, size_t count, const char *const *categories) {
    return (void)c, (void)on, (void)count, (void)categories, OK;
}
API int fmi2SetupExperiment(void *c, int a, double b, double t, int d, double e) {
    return (void)c, (void)a, (void)b, (void)t, (void)d, (void)e, OK;
}
API int fmi2EnterInitializationMode(void *c) { return say(c), OK; }
API int fmi2ExitInitializationMode(void *c) { return say(c), OK; }
API int fmi2Terminate(void *c) { return (void)c, OK; }
API int fmi2GetInteger(void *c, const unsigned *r, size_t count, int *value) {
    for (size_t k = 0; k < count; k++) value[k] = (int)strlen(((model *)c)->heard);
    return (void)r, OK;
}
API int fmi2SetInteger(void *c, const unsigned *r, size_t count, const int *value) {
    for (size_t k = 0; k < count; k++) ((model *)c)->mode = value[k];
    return (void)r, OK;
}
API int fmi2GetString(void *c, const unsigned *r, size_t count, const char **value) {
    return get_string(c, r, count, value);
}
API int fmi2SetString(void *c, const unsigned *r, size_t count, const char *const *value) {
    return set_string(c, r, count, value);
}
API int fmi2DoStep(void *c, double t, double h, int final) { return (void)t, (void)h, (void) final, step(c); }
API int fmi2GetFMUstate(void *c, void **state) {
    if (!*state) *state = malloc(sizeof(model));
    return memcpy(*state, c, sizeof(model)), OK;
}
API int fmi2SetFMUstate(void *c, void *state) { return memcpy(c, state, sizeof(model)), OK; }
API int fmi2FreeFMUstate(void *c, void **state) { return (void)c, free(*state), *state = NULL, OK; }
/* clang-format off */
UNUSED(fmi2GetReal) UNUSED(fmi2SetReal) UNUSED(fmi2GetBoolean) UNUSED(fmi2SetBoolean) UNUSED(fmi2GetBooleanStatus)
UNUSED(fmi2GetRealStatus) UNUSED(fmi2GetStatus) UNUSED(fmi2GetIntegerStatus) UNUSED(fmi2GetStringStatus) UNUSED(fmi2CancelStep)
UNUSED(fmi2Reset) UNUSED(fmi2SetRealInputDerivatives) UNUSED(fmi2GetRealOutputDerivatives) UNUSED(fmi2GetDirectionalDerivative)
UNUSED(fmi2SerializedFMUstateSize) UNUSED(fmi2SerializeFMUstate) UNUSED(fmi2DeSerializeFMUstate)
#endif
