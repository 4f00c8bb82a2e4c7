/* A small FMI 2.0 model-exchange FMU: x' = u - x, a time event at 0.25 that adds 1 to x, a state event that adds 2 to
 * `count` and 1 to x where x falls through 0.6. */
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
enum { OK, WARNING, DISCARD, ERROR };
enum { U, X, DX, COUNT };

typedef struct {
    double t, u, x;
    int jumped, count, was_above;
} model;

typedef struct {
    int again, terminate, nominals, values, timed;
    double when;
} event_info;

API const char *fmi2GetTypesPlatform(void) { return "default"; }
API const char *fmi2GetVersion(void) { return "2.0"; }
API void *fmi2Instantiate(const char *n, int type, const char *g, const char *r, const void *c, int v, int l) {
    (void)n, (void)g, (void)r, (void)c, (void)v, (void)l;
    model *m = type == 0 ? calloc(1, sizeof *m) : NULL;
    if (m) m->x = 1.0, m->was_above = 1;
    return m;
}
API void fmi2FreeInstance(void *c) { free(c); }
API int fmi2SetDebugLogging(void *c, int on, size_t n, const char *const *s) {
    return (void)c, (void)on, (void)n, (void)s, OK;
}
API int fmi2SetupExperiment(void *c, int a, double b, double t, int d, double e) {
    return (void)a, (void)b, (void)d, (void)e, ((model *)c)->t = t, OK;
}
#define SIMPLE(name) \
    API int name(void *c) { return (void)c, OK; }
/* clang-format off */
SIMPLE(fmi2EnterInitializationMode) SIMPLE(fmi2ExitInitializationMode) SIMPLE(fmi2Terminate) SIMPLE(fmi2Reset)
SIMPLE(fmi2EnterEventMode) SIMPLE(fmi2EnterContinuousTimeMode)
/* clang-format on */
#define UNUSED(name) \
    API int name(void *c) { return (void)c, ERROR; }
    /* clang-format off */
UNUSED(fmi2GetString) UNUSED(fmi2SetString) UNUSED(fmi2GetBoolean) UNUSED(fmi2SetBoolean) UNUSED(fmi2SetInteger)
UNUSED(fmi2GetFMUstate) UNUSED(fmi2SetFMUstate) UNUSED(fmi2FreeFMUstate) UNUSED(fmi2SerializedFMUstateSize)
UNUSED(fmi2SerializeFMUstate) UNUSED(fmi2DeSerializeFMUstate) UNUSED(fmi2GetDirectionalDerivative)
    /* clang-format on */

    API int fmi2GetReal(void *c, const unsigned *r, size_t n, double *value) {
    const model *m = c;
    for (size_t k = 0; k < n; k++) value[k] = r[k] == U ? m->u : r[k] == X ? m->x : m->u - m->x;
    return OK;
}
API int fmi2SetReal(void *c, const unsigned *r, size_t n, const double *value) {
    for (size_t k = 0; k < n; k++) {
        if (r[k] != U) return ERROR;
        ((model *)c)->u = value[k];
    }
    return OK;
}
API int fmi2GetInteger(void *c, const unsigned *r, size_t n, int *value) {
    for (size_t k = 0; k < n; k++) value[k] = r[k] == COUNT ? ((model *)c)->count : -1;
    return OK;
}
API int fmi2NewDiscreteStates(void *c, event_info *info) {
    model *m = c;
    memset(info, 0, sizeof *info);
    if (!m->jumped && m->t >= 0.25 - 1e-12) m->jumped = 1, m->x += 1.0, info->values = 1;
    if (m->was_above && m->x < 0.6 + 1e-9) m->count += 2, m->x += 1.0, info->values = 1;
    m->was_above = m->x > 0.6;
    info->timed = !m->jumped;
    info->when = 0.25;
    return OK;
}
API int fmi2CompletedIntegratorStep(void *c, int n, int *enter, int *stop) {
    return (void)c, (void)n, *enter = *stop = 0, OK;
}
API int fmi2SetTime(void *c, double t) { return ((model *)c)->t = t, OK; }
API int fmi2SetContinuousStates(void *c, const double *x, size_t n) {
    return n == 1 ? (((model *)c)->x = *x, OK) : ERROR;
}
API int fmi2GetContinuousStates(void *c, double *x, size_t n) { return n == 1 ? (*x = ((model *)c)->x, OK) : ERROR; }
API int fmi2GetDerivatives(void *c, double *dx, size_t n) {
    return n == 1 ? (*dx = ((model *)c)->u - ((model *)c)->x, OK) : ERROR;
}
API int fmi2GetEventIndicators(void *c, double *z, size_t n) {
    return n == 1 ? (*z = ((model *)c)->x - 0.6, OK) : ERROR;
}
API int fmi2GetNominalsOfContinuousStates(void *c, double *x, size_t n) {
    return (void)c, n == 1 ? (*x = 1.0, OK) : ERROR;
}
