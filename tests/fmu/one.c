/* A small FMI 1.0 co-simulation FMU: x' = k u - x by explicit Euler steps, y = x; n counts steps if b is true. It rejects steps from
 * `ends` on with fmiError. FMI 1.0 has no initialization mode, and its functions begin with the model identifier. */
#include <stdlib.h>
#include <string.h>

#define API(type, name) __attribute__((visibility("default"))) type one_fmi##name
enum { OK, WARNING, DISCARD, ERROR };
enum { U, Y, K, N, B, NAME, ENDS };

typedef struct {
    double u, x, k, t, ends;
    int n;
    char b, started, name[40];
} model;

API(const char *, GetTypesPlatform)(void) { return "standard32"; }
API(const char *, GetVersion)(void) { return "1.0"; }
typedef struct {
    void *logger, *(*allocate)(size_t, size_t), (*release)(void *), *finished;
} callbacks;
API(void *, InstantiateSlave)(const char *name, const char *guid, const char *location, const char *type,
                              double timeout, char visible, char interactive, callbacks functions, char logging) {
    (void)name, (void)location, (void)type, (void)timeout, (void)visible, (void)interactive, (void)functions;
    (void)logging;
    if (strcmp(guid, "{one}") != 0) return NULL;
    model *m = calloc(1, sizeof *m);
    m->u = m->k = 1.0;
    m->ends = 1e300;
    return m;
}
API(int, InitializeSlave)(void *c, double start, char stops, double stop) {
    (void)stops, (void)stop;
    ((model *)c)->t = start;
    ((model *)c)->started = 1;
    return OK;
}
API(int, TerminateSlave)(void *c) { return ((model *)c)->started ? OK : ERROR; }
API(int, ResetSlave)(void *c) { return (void)c, ERROR; }
API(void, FreeSlaveInstance)(void *c) { free(c); }
API(int, SetDebugLogging)(void *c, char on) { return (void)c, (void)on, OK; }

API(int, GetReal)(void *c, const unsigned *r, size_t count, double *value) {
    const model *m = c;
    for (size_t k = 0; k < count; k++) value[k] = r[k] == U ? m->u : r[k] == Y ? m->x : m->k;
    return OK;
}
API(int, SetReal)(void *c, const unsigned *r, size_t count, const double *value) {
    model *m = c;
    for (size_t k = 0; k < count; k++) {
        if (r[k] == K && m->started) return ERROR; /* parameters are fixed */
        *(r[k] == U ? &m->u : r[k] == K ? &m->k : &m->ends) = value[k];
    }
    return OK;
}
API(int, GetInteger)(void *c, const unsigned *r, size_t count, int *value) {
    for (size_t k = 0; k < count; k++) value[k] = ((model *)c)->n;
    return (void)r, OK;
}
API(int, SetInteger)(void *c, const unsigned *r, size_t count, const int *value) {
    return (void)c, (void)r, (void)value, count ? ERROR : OK;
}
API(int, GetBoolean)(void *c, const unsigned *r, size_t count, char *value) {
    for (size_t k = 0; k < count; k++) value[k] = ((model *)c)->b;
    return (void)r, OK;
}
API(int, SetBoolean)(void *c, const unsigned *r, size_t count, const char *value) {
    for (size_t k = 0; k < count; k++) ((model *)c)->b = value[k];
    return (void)r, OK;
}
API(int, GetString)(void *c, const unsigned *r, size_t count, const char **value) {
    for (size_t k = 0; k < count; k++) value[k] = ((model *)c)->name;
    return (void)r, OK;
}
API(int, SetString)(void *c, const unsigned *r, size_t count, const char *const *value) {
    for (size_t k = 0; k < count; k++) strncpy(((model *)c)->name, value[k], sizeof((model *)c)->name - 1);
    return (void)r, OK;
}
API(int, DoStep)(void *c, double t, double h, char is_new) {
    model *m = c;
    (void)is_new;
    if (!m->started || t < m->t - 1e-9 || t > m->t + 1e-9 || t >= m->ends - 1e-9) return ERROR;
    m->x += h * (m->k * m->u - m->x);
    m->n += m->b;
    m->t = t + h;
    return OK;
}
/* FMPy requires every function to be there; these are never called. */
#define UNUSED(name) \
    API(int, name)(void *c) { return (void)c, ERROR; }
/* clang-format off */
UNUSED(SetRealInputDerivatives) UNUSED(GetRealOutputDerivatives) UNUSED(CancelStep) UNUSED(GetStatus) UNUSED(GetRealStatus)
UNUSED(GetIntegerStatus) UNUSED(GetBooleanStatus) UNUSED(GetStringStatus)
