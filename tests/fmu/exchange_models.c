/* Small FMUs for model exchange, in FMI 2.0 and 3.0: -DFMI=2 or 3, and -DMODEL=BALL or another one below. Every function checks that it is
 * called in a mode in which FMI allows it, so that a wrong order of calls ends a run. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
enum { OK, WARNING, DISCARD, ERROR };
#define BALL 1
#define OSCILLATOR 2
#define STIFF 3
#define SAMPLER 4
#define LAG 5
#define CHAIN 6
#define ODD 7
#define RECORDER 8
#define SCALED 9
enum { INSTANTIATED = 1, INITIALIZING = 2, EVENT = 4, CONTINUOUS = 8, TERMINATED = 16 };
enum { VARIABLES = 16 };

typedef struct {
    double v[VARIABLES]; /* by value reference */
    double t, next, before; /* `before`: an input at the last event */
    int mode;
    bool again, ends, changed, asks, rescaled;
    int updates; /* of the present event */
} model;

/* ---- the models: states and their derivatives, by value reference */

#if MODEL == BALL /* A ball that falls on the ground: h' = v, v' = -g. */
enum { H, V, DV, G, E, BOUNCES };
enum { NX = 2, NZ = 1 };
static const unsigned STATES[] = {H, V};
static bool is_discrete(unsigned r) { return r == BOUNCES; }
static void begin(model *m) { m->v[H] = 1.0, m->v[G] = 9.81, m->v[E] = 0.7; }
static void compute(model *m) { m->v[DV] = -m->v[G]; }
static void slopes(const model *m, double *dx) { dx[0] = m->v[V], dx[1] = -m->v[G]; }
static void indicate(const model *m, double *z) { z[0] = m->v[H]; }
static void update(model *m) {
    if (m->v[H] > 0.0 || m->v[V] >= 0.0) return;
    m->v[H] = 0.0; /* so that the indicator is exactly zero after the event */
    m->v[V] *= -m->v[E];
    m->v[BOUNCES] += 1.0;
    m->changed = true;
}

#elif MODEL == OSCILLATOR /* van der Pol's. */
enum { X0, X1, D1, MU };
enum { NX = 2, NZ = 0 };
static const unsigned STATES[] = {X0, X1};
static bool is_discrete(unsigned r) { return (void)r, false; }
static void begin(model *m) { m->v[X0] = 2.0, m->v[MU] = 1.0; }
static void compute(model *m) {
    const double x = m->v[X0];
    m->v[D1] = m->v[MU] * (1.0 - x * x) * m->v[X1] - x;
}
static void slopes(const model *m, double *dx) { dx[0] = m->v[X1], dx[1] = m->v[D1]; }
static void indicate(const model *m, double *z) { (void)m, (void)z; }
static void update(model *m) { (void)m; }

#elif MODEL == STIFF /* x' = -k (x - cos t) - sin t, of which x = cos t is a solution. */
enum { X, DX, K };
enum { NX = 1, NZ = 0 };
static const unsigned STATES[] = {X};
static bool is_discrete(unsigned r) { return (void)r, false; }
static void begin(model *m) { m->v[X] = 1.0, m->v[K] = 1e4; }
static void compute(model *m) { m->v[DX] = -m->v[K] * (m->v[X] - cos(m->t)) - sin(m->t); }
static void slopes(const model *m, double *dx) { dx[0] = m->v[DX]; }
static void indicate(const model *m, double *z) { (void)m, (void)z; }
static void update(model *m) { (void)m; }

#elif MODEL == SAMPLER /* y = the input at the last time event, which come with a period; no states. */
enum { U, Y, COUNT, PERIOD };
enum { NX = 0, NZ = 0 };
static const unsigned STATES[] = {0};
static bool is_discrete(unsigned r) { return r == Y || r == COUNT; }
static void begin(model *m) { m->v[PERIOD] = 0.07, m->next = -1.0; }
static void compute(model *m) { (void)m; }
static void slopes(const model *m, double *dx) { (void)m, (void)dx; }
static void indicate(const model *m, double *z) { (void)m, (void)z; }
static void update(model *m) {
    if (m->t < m->next) return; /* exactly: the time must not be a rounding of the event's */
    m->v[Y] = m->v[U];
    m->v[COUNT] += 1.0;
    m->next = m->v[COUNT] * m->v[PERIOD];
}

#elif MODEL == LAG /* x' = u - x, y = x + k u, with direct feedthrough. */
enum { U, X, Y, DX, K };
enum { NX = 1, NZ = 0 };
static const unsigned STATES[] = {X};
static bool is_discrete(unsigned r) { return (void)r, false; }
static void begin(model *m) { m->v[X] = 1.0, m->v[K] = 0.5; }
static void compute(model *m) {
    m->v[Y] = m->v[X] + m->v[K] * m->v[U];
    m->v[DX] = m->v[U] - m->v[X];
}
static void slopes(const model *m, double *dx) { dx[0] = m->v[DX]; }
static void indicate(const model *m, double *z) { (void)m, (void)z; }
static void update(model *m) { (void)m; }

#elif MODEL == CHAIN
/* x' = rate; an event where x reaches `level`, or where the boolean `in` changes: then x = 0 and `out` is inverted. With `passes`, an event
   at `in` sets out = !in instead. */
enum { IN, OUT, X, RATE, LEVEL, PASSES, COUNT, D };
enum { NX = 1, NZ = 1 };
static const unsigned STATES[] = {X};
static bool is_discrete(unsigned r) { return r == IN || r == OUT || r == COUNT; }
static void begin(model *m) { m->v[RATE] = 1.0, m->v[LEVEL] = 1.0; }
static void compute(model *m) { m->v[D] = m->v[RATE]; }
static void slopes(const model *m, double *dx) { dx[0] = m->v[RATE]; }
static void indicate(const model *m, double *z) { z[0] = m->v[LEVEL] - m->v[X]; }
static void update(model *m) {
    const bool changed = m->v[IN] != m->before;
    m->before = m->v[IN];
    if (m->v[PASSES] != 0.0 && changed) {
        m->v[OUT] = m->v[IN] == 0.0;
        m->v[COUNT] += 1.0;
        return;
    }
    if (!changed && m->v[X] < m->v[LEVEL]) return;
    m->v[X] = 0.0;
    m->v[OUT] = m->v[OUT] == 0.0;
    m->v[COUNT] += 1.0;
    m->changed = true;
}

#elif MODEL == RECORDER
/* x' = u, and what it was given at the end of each step: how many there were, how many of them at the time of the one before, the last time,
   state and input. A time event follows each `period`; an event resets nothing. */
enum { U, X, STEPS, REPEATS, AT, LAST_X, LAST_U, D, PERIOD, EVENTS };
enum { NX = 1, NZ = 0 };
static const unsigned STATES[] = {X};
static bool is_discrete(unsigned r) { return r == EVENTS; }
static void begin(model *m) { m->v[AT] = -1.0, m->v[PERIOD] = 1e300; }
static void compute(model *m) { m->v[D] = m->v[U]; }
static void slopes(const model *m, double *dx) { dx[0] = m->v[U]; }
static void indicate(const model *m, double *z) { (void)m, (void)z; }
static void update(model *m) {
    if (m->v[PERIOD] >= 1e300) return;
    m->v[EVENTS] = floor(m->t / m->v[PERIOD] + 0.5);
    m->next = (m->v[EVENTS] + 1.0) * m->v[PERIOD];
}

#elif MODEL == SCALED
/* Two oscillators, of amplitude SIZE and 20 rad/s, and of 1e6 and 1 rad/s, and c' = -c^2 / 1e-9. At the time AT the first one and SIZE shrink
   to a millionth. DECLARES: whether nominal values are returned. */
enum { A, DA, B, DB, C, DDA, DDB, DC, DECLARES, AT, SIZE };
enum { NX = 5, NZ = 0 };
static const unsigned STATES[] = {A, DA, B, DB, C};
static bool is_discrete(unsigned r) { return r == SIZE; }
static void begin(model *m) {
    m->v[SIZE] = m->v[A] = m->v[C] = 1e-9, m->v[B] = 1e6, m->v[DECLARES] = 1.0, m->v[AT] = 1e300;
}
static void compute(model *m) {
    m->v[DDA] = -400.0 * m->v[A], m->v[DDB] = -m->v[B], m->v[DC] = -m->v[C] * m->v[C] / 1e-9;
}
static void slopes(const model *m, double *dx) {
    dx[0] = m->v[DA], dx[1] = m->v[DDA], dx[2] = m->v[DB], dx[3] = m->v[DDB], dx[4] = m->v[DC];
}
static void indicate(const model *m, double *z) { (void)m, (void)z; }
static void update(model *m) {
    if (m->t < m->v[AT]) {
        m->next = m->v[AT];
        return;
    }
    m->next = 1e300;
    m->changed = m->rescaled = m->v[SIZE] == 1e-9;
    m->v[SIZE] = 1e-15;
    if (m->changed) m->v[A] *= 1e-6, m->v[DA] *= 1e-6;
}

#elif MODEL == ODD /* x' = 1, and what FMUs do wrong, or seldom, from the time `at` on. */
enum { X, TROUBLE, AT, COUNT, D };
enum { NX = 1, NZ = 1 };
enum {
    NONE,
    PAST,
    ENDLESS,
    ENDS,
    STEP_ENDS,
    STEP_EVENTS,
    ZERO,
    DISCARDS,
    STATES_ERROR,
    UPDATE_ERROR,
    CRASHES,
    NO_NUMBER
};
static const unsigned STATES[] = {X};
static bool is_discrete(unsigned r) { return r == COUNT; }
static void begin(model *m) { m->v[AT] = 1e300, m->v[D] = 1.0; }
static void compute(model *m) { (void)m; }
static int trouble(const model *m) { return m->t >= m->v[AT] ? (int)m->v[TROUBLE] : NONE; }
static void slopes(const model *m, double *dx) {
    if (trouble(m) == CRASHES) abort();
    dx[0] = 1.0;
}
static void indicate(const model *m, double *z) {
    const int what = (int)m->v[TROUBLE];
    z[0] = what == ZERO ? 0.0 : what == STEP_EVENTS || what == STEP_ENDS ? 1.0 : m->v[AT] - m->t;
}
static void update(model *m) {
    m->v[COUNT] += 1.0;
    const int what = trouble(m);
    if (what == PAST) m->next = m->t - 0.5;
    if (what == NO_NUMBER) m->next = NAN;
    if (what == ENDLESS) m->again = true;
    if (what == ENDS) m->ends = true;
}
#endif

#if MODEL == ODD
static int complete(model *m) {
    const int what = trouble(m);
    m->asks = what == STEP_EVENTS && m->v[COUNT] < 10.0;
    m->ends = what == STEP_ENDS;
    return OK;
}
static int judge_states(const model *m, const double *x) {
    const int what = (int)m->v[TROUBLE];
    if (what == DISCARDS && x[0] > m->v[AT]) return DISCARD;
    return what == STATES_ERROR && x[0] > m->v[AT] ? ERROR : OK;
}
#elif MODEL == RECORDER
static int complete(model *m) {
    m->v[STEPS] += 1.0;
    if (m->t <= m->v[AT]) m->v[REPEATS] += 1.0;
    m->v[AT] = m->t;
    m->v[LAST_X] = m->v[X];
    m->v[LAST_U] = m->v[U];
    return OK;
}
static int judge_states(const model *m, const double *x) { return (void)m, (void)x, OK; }
#else
static int complete(model *m) { return (void)m, OK; }
static int judge_states(const model *m, const double *x) { return (void)m, (void)x, OK; }
#endif

/* ---- what both versions of FMI share */

static bool is_allowed(const model *m, int modes) { return (m->mode & modes) != 0; }
#define REQUIRE(modes) \
    if (!is_allowed(c, modes)) return ERROR

static int set_reals(model *m, const unsigned *r, size_t n, const double *value) {
    for (size_t k = 0; k < n; k++) {
        if (r[k] >= VARIABLES) return ERROR;
        if (is_discrete(r[k]) && !is_allowed(m, INSTANTIATED | INITIALIZING | EVENT)) return ERROR;
        m->v[r[k]] = value[k];
    }
    return OK;
}
static int get_reals(model *m, const unsigned *r, size_t n, double *value) {
    compute(m);
    for (size_t k = 0; k < n; k++) {
        if (r[k] >= VARIABLES) return ERROR;
        value[k] = m->v[r[k]];
    }
    return OK;
}
static void *instantiate(void) {
    model *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->next = 1e300;
    m->mode = INSTANTIATED;
    begin(m);
    return m;
}
static int change_mode(model *m, int from, int to) {
    if (!is_allowed(m, from)) return ERROR;
    m->mode = to;
    m->updates = 0;
    return OK;
}
static int run_update(model *m) {
    if (!is_allowed(m, EVENT)) return ERROR;
    m->again = m->ends = m->changed = m->rescaled = false;
    update(m);
#if MODEL == ODD
    if (trouble(m) == UPDATE_ERROR) return ERROR;
#endif
    return OK;
}
static int get_derivatives(model *m, double *dx, size_t n) {
    if (!is_allowed(m, EVENT | CONTINUOUS) || n != NX) return ERROR;
    compute(m);
    slopes(m, dx);
    return OK;
}

#define NAME2(prefix, name) prefix##name
#define NAME1(prefix, name) NAME2(prefix, name)
#if FMI == 2
#define FMI_NAME(name) NAME1(fmi2, name)
#else
#define FMI_NAME(name) NAME1(fmi3, name)
#endif

API int FMI_NAME(EnterEventMode)(void *c) { return change_mode(c, CONTINUOUS, EVENT); }
API int FMI_NAME(EnterContinuousTimeMode)(void *c) { return change_mode(c, EVENT, CONTINUOUS); }
API int FMI_NAME(ExitInitializationMode)(void *c) { return change_mode(c, INITIALIZING, EVENT); }
API int FMI_NAME(Terminate)(void *c) { return change_mode(c, EVENT | CONTINUOUS, TERMINATED); }
API void FMI_NAME(FreeInstance)(void *c) { free(c); }
API int FMI_NAME(Reset)(void *c) { return (void)c, ERROR; }
API int FMI_NAME(SetTime)(void *c, double t) {
    REQUIRE(CONTINUOUS);
    return ((model *)c)->t = t, OK;
}
API int FMI_NAME(SetContinuousStates)(void *c, const double *x, size_t n) {
    REQUIRE(CONTINUOUS);
    if (n != NX) return ERROR;
    const int status = judge_states(c, x);
    for (size_t k = 0; k < n && status == OK; k++) ((model *)c)->v[STATES[k]] = x[k];
    return status;
}
API int FMI_NAME(GetContinuousStates)(void *c, double *x, size_t n) {
    REQUIRE(EVENT | CONTINUOUS);
    for (size_t k = 0; k < n; k++) x[k] = ((model *)c)->v[STATES[k]];
    return n == NX ? OK : ERROR;
}
API int FMI_NAME(GetEventIndicators)(void *c, double *z, size_t n) {
    REQUIRE(EVENT | CONTINUOUS);
    if (n != NZ) return ERROR;
    indicate(c, z);
    return OK;
}
API int FMI_NAME(GetNominalsOfContinuousStates)(void *c, double *x, size_t n) {
    REQUIRE(EVENT | CONTINUOUS);
    for (size_t k = 0; k < n; k++) x[k] = 1.0;
#if MODEL == SCALED
    const model *m = c;
    const double nominals[NX] = {m->v[SIZE], 20.0 * m->v[SIZE], 1e6, 1e6, 1e-9};
    for (size_t k = 0; k < n && m->v[DECLARES] == 1.0; k++) x[k] = nominals[k];
    for (size_t k = 0; k < n && m->v[DECLARES] == 2.0; k++) x[k] = k % 2 ? 0.0 : NAN;
    if (m->v[DECLARES] == 3.0) return DISCARD;
#endif
    return n == NX ? OK : ERROR;
}
API int FMI_NAME(SetDebugLogging)(void *c, int on, size_t n, const char *const *s) {
    return (void)c, (void)on, (void)n, (void)s, OK;
}
API int FMI_NAME(GetFMUstate)(void *c, void **state) {
    if (!*state) *state = malloc(sizeof(model));
    return *state ? (memcpy(*state, c, sizeof(model)), OK) : ERROR;
}
API int FMI_NAME(SetFMUstate)(void *c, void *state) { return memcpy(c, state, sizeof(model)), OK; }
API int FMI_NAME(FreeFMUstate)(void *c, void **state) { return (void)c, free(*state), *state = NULL, OK; }

/* dy = (∂y/∂u) du by differences, which are exact for the linear models. */
static int derive(model *m, const unsigned *y, size_t ny, const unsigned *u, size_t nu, const double *du, double *dy) {
    model there = *m;
    get_reals(m, y, ny, dy);
    for (size_t k = 0; k < nu; k++) there.v[u[k]] += du[k];
    compute(&there);
    for (size_t k = 0; k < ny; k++) dy[k] = there.v[y[k]] - dy[k];
    return OK;
}

#if FMI == 2

typedef struct {
    int again, ends, nominals, changed, has_next;
    double next;
} event_info;

API const char *fmi2GetTypesPlatform(void) { return "default"; }
API const char *fmi2GetVersion(void) { return "2.0"; }
API void *fmi2Instantiate(const char *n, int type, const char *g, const char *r, const void *c, int v, int l) {
    (void)n, (void)g, (void)r, (void)c, (void)v, (void)l;
    return type == 0 ? instantiate() : NULL;
}
API int fmi2SetupExperiment(void *c, int a, double b, double t, int d, double e) {
    return (void)a, (void)b, (void)d, (void)e, ((model *)c)->t = t, OK;
}
API int fmi2EnterInitializationMode(void *c) { return change_mode(c, INSTANTIATED, INITIALIZING); }
API int fmi2GetDerivatives(void *c, double *dx, size_t n) { return get_derivatives(c, dx, n); }
API int fmi2GetReal(void *c, const unsigned *r, size_t n, double *value) { return get_reals(c, r, n, value); }
API int fmi2SetReal(void *c, const unsigned *r, size_t n, const double *value) { return set_reals(c, r, n, value); }
static int get_whole(void *c, const unsigned *r, size_t n, int *value) {
    int status = OK;
    for (size_t k = 0; k < n && status == OK; k++) {
        double real = 0.0;
        status = get_reals(c, r + k, 1, &real);
        value[k] = (int)real;
    }
    return status;
}
static int set_whole(void *c, const unsigned *r, size_t n, const int *value) {
    int status = OK;
    for (size_t k = 0; k < n && status == OK; k++) {
        const double real = value[k];
        status = set_reals(c, r + k, 1, &real);
    }
    return status;
}
API int fmi2GetInteger(void *c, const unsigned *r, size_t n, int *v) { return get_whole(c, r, n, v); }
API int fmi2SetInteger(void *c, const unsigned *r, size_t n, const int *v) { return set_whole(c, r, n, v); }
API int fmi2GetBoolean(void *c, const unsigned *r, size_t n, int *v) { return get_whole(c, r, n, v); }
API int fmi2SetBoolean(void *c, const unsigned *r, size_t n, const int *v) { return set_whole(c, r, n, v); }
API int fmi2GetString(void *c, const unsigned *r, size_t n, const char **v) {
    return (void)c, (void)r, (void)n, (void)v, ERROR;
}
API int fmi2SetString(void *c, const unsigned *r, size_t n, const char *const *v) {
    return (void)c, (void)r, (void)n, (void)v, ERROR;
}
API int fmi2NewDiscreteStates(void *c, event_info *info) {
    model *m = c;
    const int status = run_update(m);
    *info = (event_info){m->again, m->ends, m->rescaled, m->changed, !(m->next >= 1e300), m->next};
    return status;
}
API int fmi2CompletedIntegratorStep(void *c, int no_return, int *asks, int *ends) {
    REQUIRE(CONTINUOUS);
    model *m = c;
    (void)no_return, m->asks = m->ends = false;
    const int status = complete(m);
    *asks = m->asks;
    *ends = m->ends;
    return status;
}
API int fmi2SerializedFMUstateSize(void *c, void *s, size_t *n) { return (void)c, (void)s, *n = sizeof(model), OK; }
API int fmi2SerializeFMUstate(void *c, void *s, char *to, size_t n) {
    return (void)c, n >= sizeof(model) ? (memcpy(to, s, sizeof(model)), OK) : ERROR;
}
API int fmi2DeSerializeFMUstate(void *c, const char *from, size_t n, void **s) {
    (void)c;
    if (n < sizeof(model) || (!*s && !(*s = malloc(sizeof(model))))) return ERROR;
    return memcpy(*s, from, sizeof(model)), OK;
}
API int fmi2GetDirectionalDerivative(void *c, const unsigned *y, size_t ny, const unsigned *u, size_t nu,
                                     const double *du, double *dy) {
    return derive(c, y, ny, u, nu, du, dy);
}

#else

API const char *fmi3GetVersion(void) { return "3.0"; }
API void *fmi3InstantiateModelExchange(const char *n, const char *t, const char *r, bool v, bool l, void *e,
                                       void *log) {
    (void)n, (void)t, (void)r, (void)v, (void)l, (void)e, (void)log;
    return instantiate();
}
API int fmi3EnterInitializationMode(void *c, bool a, double b, double t, bool d, double e) {
    (void)a, (void)b, (void)d, (void)e, ((model *)c)->t = t;
    return change_mode(c, INSTANTIATED, INITIALIZING);
}
API int fmi3GetContinuousStateDerivatives(void *c, double *dx, size_t n) { return get_derivatives(c, dx, n); }
API int fmi3GetFloat64(void *c, const unsigned *r, size_t n, double *value, size_t count) {
    return n == count ? get_reals(c, r, n, value) : ERROR;
}
API int fmi3SetFloat64(void *c, const unsigned *r, size_t n, const double *value, size_t count) {
    return n == count ? set_reals(c, r, n, value) : ERROR;
}
#define WHOLE(name, type) \
    API int fmi3Get##name(void *c, const unsigned *r, size_t n, type *value, size_t count) { \
        int status = n == count ? OK : ERROR; \
        for (size_t k = 0; k < n && status == OK; k++) { \
            double real = 0.0; \
            status = get_reals(c, r + k, 1, &real); \
            value[k] = (type)real; \
        } \
        return status; \
    } \
    API int fmi3Set##name(void *c, const unsigned *r, size_t n, const type *value, size_t count) { \
        int status = n == count ? OK : ERROR; \
        for (size_t k = 0; k < n && status == OK; k++) { \
            const double real = (double)value[k]; \
            status = set_reals(c, r + k, 1, &real); \
        } \
        return status; \
    }
WHOLE(Int32, int32_t)
WHOLE(Boolean, bool)
API int fmi3UpdateDiscreteStates(void *c, bool *again, bool *ends, bool *nominals, bool *changed, bool *has_next,
                                 double *next) {
    model *m = c;
    const int status = run_update(m);
    *again = m->again, *ends = m->ends, *nominals = m->rescaled, *changed = m->changed;
    *has_next = !(m->next >= 1e300), *next = m->next;
    return status;
}
API int fmi3CompletedIntegratorStep(void *c, bool no_return, bool *asks, bool *ends) {
    REQUIRE(CONTINUOUS);
    model *m = c;
    (void)no_return, m->asks = m->ends = false;
    const int status = complete(m);
    *asks = m->asks;
    *ends = m->ends;
    return status;
}
API int fmi3GetNumberOfContinuousStates(void *c, size_t *n) { return (void)c, *n = NX, OK; }
API int fmi3GetNumberOfEventIndicators(void *c, size_t *n) {
    (void)c;
#ifdef MORE_INDICATORS
    return *n = NZ + 1, OK;
#else
    return *n = NZ, OK;
#endif
}
API int fmi3SerializedFMUStateSize(void *c, void *s, size_t *n) { return (void)c, (void)s, *n = sizeof(model), OK; }
API int fmi3GetFMUState(void *c, void **s) { return fmi3GetFMUstate(c, s); }
API int fmi3SetFMUState(void *c, void *s) { return fmi3SetFMUstate(c, s); }
API int fmi3FreeFMUState(void *c, void **s) { return fmi3FreeFMUstate(c, s); }
API int fmi3SerializeFMUState(void *c, void *s, uint8_t *to, size_t n) {
    return (void)c, n >= sizeof(model) ? (memcpy(to, s, sizeof(model)), OK) : ERROR;
}
API int fmi3DeserializeFMUState(void *c, const uint8_t *from, size_t n, void **s) {
    (void)c;
    if (n < sizeof(model) || (!*s && !(*s = malloc(sizeof(model))))) return ERROR;
    return memcpy(*s, from, sizeof(model)), OK;
}
API int fmi3GetDirectionalDerivative(void *c, const unsigned *y, size_t ny, const unsigned *u, size_t nu,
                                     const double *du, size_t n_du, double *dy, size_t n_dy) {
    return n_du == nu && n_dy == ny ? derive(c, y, ny, u, nu, du, dy) : ERROR;
}
API int fmi3EnterConfigurationMode(void *c) { return (void)c, ERROR; }
API int fmi3ExitConfigurationMode(void *c) { return (void)c, ERROR; }
API int fmi3SetString(void *c, const unsigned *r, size_t n, const char *const *v, size_t count) {
    return (void)c, (void)r, (void)n, (void)v, (void)count, ERROR;
}
#endif
