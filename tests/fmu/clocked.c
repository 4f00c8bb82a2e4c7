/* An FMI 3.0 FMU for co-simulation with an input clock `c` based on time and an output clock `o` that it triggers at every third activation
 * of `c`. While `c` is active, y = x + u; its update then sets x = y and counts. While `o` is active, `alarm` is the time. It rejects every
 * call that FMI does not allow: clocked variables of clocks that are not active, activations beside the instants of the clock, steps
 * past them. Compiled with -DKIND=CONSTANT or another kind of clock; with -DEXCHANGE for model exchange, where z is a state. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#define CONSTANT 0
#define FIXED 1 /* the importer sets the interval */
#define ASKED 2 /* the FMU has it */
#define CHANGING 3 /* the n-th interval is n + 1 times the first one */
#define COUNTDOWN 4 /* the same, and not before the time of the last activation */
#ifndef KIND
#define KIND CONSTANT
#endif
enum { OK, WARNING, DISCARD, ERROR };
enum { TIME, C, O, U, Y, COUNT, ALARM, Z, K };
enum { INITIALIZING = 1, STEP, EVENT };
static const double INTERVAL = 0.03, SHIFT = 0.01;

typedef struct {
    double t, u, x, z, k, interval, next;
    int mode, count, updates;
    bool active, told;
    void *environment;
    void (*log)(void *, int, const char *, const char *);
} model;

static int fail(const model *m, const char *text) { return m->log(m->environment, ERROR, "error", text), ERROR; }
static bool triggers(const model *m) { return m->active && (m->count + 1) % 3 == 0; }

API const char *fmi3GetVersion(void) { return "3.0"; }
API void *fmi3InstantiateCoSimulation(const char *n, const char *t, const char *p, bool v, bool l, bool events,
                                      bool early, const unsigned *r, size_t count, void *environment,
                                      void (*log)(void *, int, const char *, const char *), void *update) {
    (void)n, (void)t, (void)p, (void)v, (void)l, (void)early, (void)r, (void)count, (void)update;
    model *m = calloc(1, sizeof *m);
    m->environment = environment;
    m->log = log;
    m->k = 1.0;
    if (!events) log(environment, ERROR, "error", "clocks need event mode");
    return events ? m : NULL;
}
API void *fmi3InstantiateModelExchange(const char *n, const char *t, const char *p, bool v, bool l, void *environment,
                                       void (*log)(void *, int, const char *, const char *)) {
    return fmi3InstantiateCoSimulation(n, t, p, v, l, true, true, NULL, 0, environment, log, NULL);
}
API void fmi3FreeInstance(void *c) { free(c); }
API int fmi3SetDebugLogging(void *c, bool on, size_t n, const char *const *s) {
    return (void)c, (void)on, (void)n, (void)s, OK;
}
API int fmi3EnterInitializationMode(void *c, bool a, double b, double t, bool d, double e) {
    model *m = c;
    (void)a, (void)b, (void)d, (void)e, m->t = t, m->mode = INITIALIZING;
    m->interval = KIND == FIXED ? 0.0 : INTERVAL;
    m->next = t + SHIFT;
    return OK;
}
API int fmi3ExitInitializationMode(void *c) {
    model *m = c;
    if (KIND != CONSTANT && !m->told) return fail(m, "the interval was not set or read in initialization mode");
    return m->mode = EVENT, OK;
}
API int fmi3EnterEventMode(void *c) {
    model *m = c;
    if (m->mode != STEP) return ERROR;
    return m->mode = EVENT, m->updates = 0, OK;
}
API int fmi3EnterStepMode(void *c) {
    model *m = c;
    return m->mode == EVENT ? (m->mode = STEP, OK) : ERROR;
}
API int fmi3EnterContinuousTimeMode(void *c) { return fmi3EnterStepMode(c); }
API int fmi3SetTime(void *c, double t) {
    model *m = c;
    if (m->mode != STEP || t > m->next + 1e-9) return fail(m, "a time past a tick");
    return m->t = t, OK;
}
API int fmi3SetContinuousStates(void *c, const double *x, size_t n) {
    model *m = c;
    return n == 1 && m->mode == STEP ? (m->z = x[0], OK) : ERROR;
}
API int fmi3GetContinuousStates(void *c, double *x, size_t n) { return n == 1 ? (x[0] = ((model *)c)->z, OK) : ERROR; }
API int fmi3GetContinuousStateDerivatives(void *c, double *dx, size_t n) {
    return (void)c, n == 1 ? (dx[0] = 1.0, OK) : ERROR;
}
API int fmi3GetEventIndicators(void *c, double *z, size_t n) { return (void)c, (void)z, n == 0 ? OK : ERROR; }
API int fmi3CompletedIntegratorStep(void *c, bool final, bool *enters, bool *ends) {
    return (void)c, (void) final, *enters = *ends = false, OK;
}
API int fmi3GetNumberOfContinuousStates(void *c, size_t *n) { return (void)c, *n = 1, OK; }
API int fmi3GetNumberOfEventIndicators(void *c, size_t *n) { return (void)c, *n = 0, OK; }
API int fmi3Terminate(void *c) { return (void)c, OK; }

API int fmi3SetClock(void *c, const unsigned *r, size_t n, const bool *value) {
    model *m = c;
    if (m->mode != EVENT) return fail(m, "a clock is set in event mode only");
    if (n != 1 || r[0] != C || !value[0]) return fail(m, "not the clock");
    if (fabs(m->t - m->next) > 1e-9) return fail(m, "the clock does not tick now");
    if (m->active) return fail(m, "the clock is active already");
    m->active = true;
    return OK;
}
API int fmi3GetClock(void *c, const unsigned *r, size_t n, bool *value) {
    model *m = c;
    if (m->mode != EVENT || n != 1 || r[0] != O) return fail(m, "not an output clock, or not in event mode");
    *value = triggers(m);
    return OK;
}
API int fmi3GetIntervalDecimal(void *c, const unsigned *r, size_t n, double *interval, int *qualifier) {
    model *m = c;
    if (n != 1 || r[0] != C || m->mode == STEP) return fail(m, "no interval of this clock now");
    m->told = true;
    *interval = KIND >= CHANGING && m->mode == INITIALIZING ? SHIFT : m->interval;
    *qualifier = 2;
    if (KIND == COUNTDOWN && m->mode == EVENT) {
        *qualifier = m->updates > 0 ? 2 : 1; /* only where it was activated */
        m->updates = 0;
    }
    return OK;
}
API int fmi3GetShiftDecimal(void *c, const unsigned *r, size_t n, double *shift) {
    return n == 1 && r[0] == C && KIND <= ASKED ? (*shift = SHIFT, OK) : fail(c, "no shift of this clock");
}
API int fmi3SetIntervalDecimal(void *c, const unsigned *r, size_t n, const double *interval) {
    model *m = c;
    if (n != 1 || r[0] != C || KIND != FIXED || m->mode != INITIALIZING) return fail(m, "no interval to be set");
    return m->interval = *interval, m->told = true, OK;
}
API int fmi3UpdateDiscreteStates(void *c, bool *more, bool *ended, bool *nominals, bool *changed, bool *timed,
                                 double *next) {
    model *m = c;
    *more = *ended = *nominals = *changed = *timed = false;
    *next = 0.0;
    if (m->mode != EVENT) return ERROR;
    if (fabs(m->t - m->next) <= 1e-9 && !m->active) return fail(m, "the clock was not activated");
    if (!m->active) return OK;
    m->x += m->k * m->u;
    m->count++;
    m->updates++;
    if (KIND >= CHANGING) m->interval = INTERVAL * m->count;
    m->next = KIND >= CHANGING ? m->next + m->interval : SHIFT + INTERVAL * m->count;
    m->active = false;
    return OK;
}
API int fmi3GetFloat64(void *c, const unsigned *r, size_t n, double *value, size_t count) {
    model *m = c;
    for (size_t k = 0; k < n; k++) switch (r[k]) {
            case TIME: value[k] = m->t; break;
            case Y:
                if (!m->active && m->mode != INITIALIZING) return fail(m, "y is read while its clock is not active");
                value[k] = m->active ? m->x + m->k * m->u : m->x;
                break;
            case ALARM:
                if (!triggers(m) && m->mode != INITIALIZING)
                    return fail(m, "alarm is read while its clock is not active");
                value[k] = m->t;
                break;
            case Z: value[k] = m->z; break;
            default: return ERROR;
        }
    return n == count ? OK : ERROR;
}
API int fmi3SetFloat64(void *c, const unsigned *r, size_t n, const double *value, size_t count) {
    model *m = c;
    for (size_t k = 0; k < n; k++)
        if (r[k] == U) {
            if (!m->active) return fail(m, "u is set while its clock is not active");
            m->u = value[k];
        } else if (r[k] == K) m->k = value[k];
        else return ERROR;
    return n == count ? OK : ERROR;
}
API int fmi3GetInt32(void *c, const unsigned *r, size_t n, int32_t *value, size_t count) {
    model *m = c;
    if (n != 1 || count != 1 || r[0] != COUNT) return ERROR;
    if (!m->active && m->mode != INITIALIZING) return fail(m, "count is read while its clock is not active");
    return value[0] = m->active ? m->count + 1 : 0, OK;
}
API int fmi3DoStep(void *c, double t, double h, bool final, bool *event, bool *end, bool *early, double *reached) {
    model *m = c;
    (void) final, *event = *end = *early = false;
    if (m->mode != STEP || fabs(t - m->t) > 1e-9) return fail(m, "a wrong step");
    if (m->next < t + 1e-9) return fail(m, "a step from a tick that was not activated");
    if (m->next < t + h - 1e-9) return fail(m, "a step past a tick");
    m->z += h;
    m->t = *reached = t + h;
    return OK;
}
API int fmi3GetFMUState(void *c, void **state) {
    if (!*state) *state = malloc(sizeof(model));
    return memcpy(*state, c, sizeof(model)), OK;
}
API int fmi3SetFMUState(void *c, void *state) {
    model *m = c, kept = *m;
    memcpy(m, state, sizeof *m);
    m->environment = kept.environment, m->log = kept.log;
    return OK;
}
API int fmi3FreeFMUState(void *c, void **state) { return (void)c, free(*state), *state = NULL, OK; }
API int fmi3SerializedFMUStateSize(void *c, void *s, size_t *n) { return (void)c, (void)s, *n = sizeof(model), OK; }
API int fmi3SerializeFMUState(void *c, void *s, uint8_t *to, size_t n) {
    return (void)c, n == sizeof(model) ? (memcpy(to, s, n), OK) : ERROR;
}
API int fmi3DeserializeFMUState(void *c, const uint8_t *from, size_t n, void **s) {
    (void)c;
    if (n != sizeof(model) || (!*s && !(*s = malloc(n)))) return ERROR;
    return memcpy(*s, from, n), OK;
}
