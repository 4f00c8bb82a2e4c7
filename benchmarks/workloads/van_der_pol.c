/* Van der Pol's oscillator as an FMI 2.0 FMU for model exchange, with no code but what a run calls. */
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif
enum { OK, ERROR = 3 };
enum { X0, X1, D1, MU, COUNT };

typedef struct {
    double v[COUNT];
} model;

static double acceleration(const model *m) { return m->v[MU] * (1.0 - m->v[X0] * m->v[X0]) * m->v[X1] - m->v[X0]; }

API const char *fmi2GetTypesPlatform(void) { return "default"; }
API const char *fmi2GetVersion(void) { return "2.0"; }
API void *fmi2Instantiate(const char *n, int type, const char *g, const char *r, const void *c, int v, int l) {
    (void)n, (void)g, (void)r, (void)c, (void)v, (void)l;
    model *m = type == 0 ? calloc(1, sizeof *m) : NULL;
    if (m) m->v[X0] = 2.0, m->v[MU] = 1.0;
    return m;
}
API void fmi2FreeInstance(void *c) { free(c); }
API int fmi2SetDebugLogging(void *c, int on, size_t n, const char *const *s) {
    return (void)c, (void)on, (void)n, (void)s, OK;
}
API int fmi2SetupExperiment(void *c, int a, double b, double t, int d, double e) {
    return (void)c, (void)a, (void)b, (void)t, (void)d, (void)e, OK;
}
#define ACCEPT(name) \
    API int name(void *c) { return (void)c, OK; }
#define REFUSE(name) \
    API int name(void *c) { return (void)c, ERROR; }
ACCEPT(fmi2EnterInitializationMode)
ACCEPT(fmi2ExitInitializationMode)
ACCEPT(fmi2EnterEventMode)
ACCEPT(fmi2EnterContinuousTimeMode)
ACCEPT(fmi2Terminate)
ACCEPT(fmi2Reset)
REFUSE(fmi2GetString)
REFUSE(fmi2SetString)
REFUSE(fmi2GetBoolean)
REFUSE(fmi2SetBoolean)
REFUSE(fmi2GetInteger)
REFUSE(fmi2SetInteger)
REFUSE(fmi2GetFMUstate)
REFUSE(fmi2SetFMUstate)
REFUSE(fmi2FreeFMUstate)
REFUSE(fmi2SerializedFMUstateSize)
REFUSE(fmi2SerializeFMUstate)
REFUSE(fmi2DeSerializeFMUstate)
REFUSE(fmi2GetDirectionalDerivative)

API int fmi2GetReal(void *c, const unsigned *r, size_t n, double *value) {
    const model *m = c;
    for (size_t k = 0; k < n; k++) value[k] = r[k] == D1 ? acceleration(m) : m->v[r[k]];
    return OK;
}
API int fmi2SetReal(void *c, const unsigned *r, size_t n, const double *value) {
    for (size_t k = 0; k < n; k++) ((model *)c)->v[r[k]] = value[k];
    return OK;
}
API int fmi2NewDiscreteStates(void *c, void *info) { return (void)c, memset(info, 0, 5 * sizeof(int)), OK; }
API int fmi2CompletedIntegratorStep(void *c, int n, int *enter, int *stop) {
    return (void)c, (void)n, *enter = *stop = 0, OK;
}
API int fmi2SetTime(void *c, double t) { return (void)c, (void)t, OK; }
API int fmi2SetContinuousStates(void *c, const double *x, size_t n) {
    return n == 2 ? (memcpy(((model *)c)->v, x, 2 * sizeof *x), OK) : ERROR;
}
API int fmi2GetContinuousStates(void *c, double *x, size_t n) {
    return n == 2 ? (memcpy(x, ((model *)c)->v, 2 * sizeof *x), OK) : ERROR;
}
API int fmi2GetDerivatives(void *c, double *dx, size_t n) {
    return n == 2 ? (dx[0] = ((model *)c)->v[X1], dx[1] = acceleration(c), OK) : ERROR;
}
API int fmi2GetEventIndicators(void *c, double *z, size_t n) { return (void)c, (void)z, n == 0 ? OK : ERROR; }
API int fmi2GetNominalsOfContinuousStates(void *c, double *x, size_t n) {
    (void)c;
    for (size_t k = 0; k < n; k++) x[k] = 1.0;
    return OK;
}
