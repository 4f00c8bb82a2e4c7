/* An FMI 3.0 co-simulation FMU with variables of every type, arrays, a structural parameter and event mode, that can be told to
 * misbehave. It writes its life to the file that its parameter `diary` names, one call on each line. Compiled with
 *
 *   -DFAULTY_STATES         fmi3GetFMUState crashes
 *   -DUPDATES               each step calls the importer's callback for intermediate updates
 *   -DENVIRONMENT=...       that pointer is passed to the logger instead of the environment
 *   -DWITHOUT_INT8          it has no function for Int8
 *   -DVERSION=...           it reports that version of FMI */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
enum { OK, WARNING, DISCARD, ERROR, FATAL };
enum { LARGEST = 8 };
enum {
    TIME,
    U,
    Y,
    X,
    K,
    N,
    W,
    S,
    A,
    R,
    TEXT,
    TEXTS,
    BLOB,
    LENGTH,
    TROUBLE,
    AT,
    DIARY,
    TICK,
    HITS,
    D,
    LATCHED,
    ENTRIES
};
enum { INPUTS = 30, OUTPUTS = 50 }; /* echoes: f32, i8, …, u64, boolean, enumeration */
enum { F32, I8, U8, I16, U16, I32, U32, I64, U64, BOOL, ENUM };
enum {
    NONE,
    GIVE_ERROR,
    GIVE_DISCARD,
    GIVE_FATAL,
    ENDS_AFTER,
    ENDS_WITHIN,
    EARLY,
    STUCK,
    OUTSIDE,
    STATE_EVENT,
    ENDLESS,
    NOT_A_TIME,
    ENDS_IN_EVENT,
    ALWAYS_DUE,
    TOO_LONG
};

typedef struct {
    double u, x, k, w[LARGEST], a[4], at, tick, d, latched, t, next;
    uint64_t n;
    float f32;
    int8_t i8;
    uint8_t u8;
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    uint32_t u32;
    int64_t i64, kind;
    uint64_t u64;
    unsigned char b;
    int32_t trouble, hits, entries, mode; /* mode: 1 initialization, 2 step, 3 event, 4 configuration */
} values;

typedef struct {
    values v;
    char text[64], texts[2][64], diary[1024], pending[512];
    uint8_t blob[64];
    size_t blob_size;
    bool events, early;
    void *environment;
    void (*update)(void *, double, bool, bool, bool, bool, bool *, double *);
    void (*log)(void *, int, const char *, const char *);
} instance;

#ifndef ENVIRONMENT
#define ENVIRONMENT(i) ((i)->environment)
#endif

static void note(instance *i, const char *what) {
    FILE *file = i->diary[0] ? fopen(i->diary, "a") : NULL;
    if (!file) { /* the name of the diary comes later, if at all */
        if (strlen(i->pending) + strlen(what) + 2 > sizeof i->pending) return;
        strcat(i->pending, what);
        strcat(i->pending, "\n");
        return;
    }
    fprintf(file, "%s%s\n", i->pending, what);
    i->pending[0] = '\0';
    fclose(file);
}

#ifndef VERSION
#define VERSION "3.0"
#endif
API const char *fmi3GetVersion(void) { return VERSION; }

API void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *path, bool visible, bool logging,
                                      bool events, bool early, const unsigned *r, size_t count, void *environment,
                                      void (*log)(void *, int, const char *, const char *),
                                      void (*update)(void *, double, bool, bool, bool, bool, bool *, double *)) {
    (void)name, (void)visible, (void)logging, (void)r, (void)count;
    if (strcmp(token, "{typed}") != 0 || path[0] != '/' || path[strlen(path) - 1] != '/') {
        log(environment, ERROR, "error", path);
        return NULL;
    }
    instance *i = calloc(1, sizeof *i);
    i->events = events;
    i->early = early;
    i->environment = environment;
    i->update = update;
    i->log = log;
    i->v.u = 0.5;
    i->v.k = 2.0;
    i->v.n = 2;
    for (int j = 0; j < 4; j++) i->v.a[j] = j + 1.0;
    i->v.at = i->v.next = 1e300;
    i->v.kind = 1;
    note(i, events ? "instantiate with events" : "instantiate");
    return i;
}
API void fmi3FreeInstance(void *c) { note(c, "free"), free(c); }
API int fmi3SetDebugLogging(void *c, bool on, size_t count, const char *const *categories) {
    for (size_t k = 0; k < count; k++) note(c, categories[k]);
    return (void)on, OK;
}

static int change_mode(instance *i, const char *what, int from, int to) {
    note(i, what);
    const int right = i->v.mode == from;
    if (!right) i->log(ENVIRONMENT(i), ERROR, "error", "this mode does not allow the call, 100%n sure");
    i->v.mode = to;
    return right ? OK : ERROR;
}
API int fmi3EnterConfigurationMode(void *c) { return change_mode(c, "configure", 0, 4); }
API int fmi3ExitConfigurationMode(void *c) { return change_mode(c, "configured", 4, 0); }
API int fmi3EnterInitializationMode(void *c, bool tolerant, double tolerance, double t, bool stops, double stop) {
    char text[100];
    (void)stop;
    snprintf(text, sizeof text, "enter %d %g %g %d", tolerant, tolerance, t, stops);
    ((instance *)c)->v.t = t;
    return change_mode(c, text, 0, 1);
}
API int fmi3ExitInitializationMode(void *c) { return change_mode(c, "exit", 1, ((instance *)c)->events ? 3 : 2); }
API int fmi3EnterEventMode(void *c) {
    ((instance *)c)->v.entries++;
    return change_mode(c, "event", 2, 3);
}
API int fmi3EnterStepMode(void *c) { return change_mode(c, "step mode", 3, 2); }
API int fmi3Terminate(void *c) { return note(c, "terminate"), OK; }
API int fmi3Reset(void *c) { return note(c, "reset"), OK; }

API int fmi3UpdateDiscreteStates(void *c, bool *more, bool *ended, bool *nominals, bool *changed, bool *timed,
                                 double *next) {
    instance *i = c;
    if (i->v.mode != 3) return ERROR;
    *nominals = *changed = false;
    *more = i->v.trouble == ENDLESS && i->v.t >= i->v.at - 1e-9;
    *ended = i->v.trouble == ENDS_IN_EVENT && i->v.t >= i->v.at - 1e-9;
    if (i->v.t >= i->v.next - 1e-9) i->v.hits++;
    i->v.latched = i->v.d;
    i->v.next = i->v.tick > 0.0 ? i->v.tick * (i->v.hits + 1) : 1e300;
    if (i->v.trouble == ALWAYS_DUE) i->v.next = i->v.t;
    *timed = i->v.tick > 0.0 || i->v.trouble == ALWAYS_DUE;
    *next = i->v.trouble == NOT_A_TIME ? 0.0 / 0.0 : i->v.next;
    if (i->v.trouble == NOT_A_TIME) *timed = true;
    return OK;
}

/* ---- values */

/* Where the value of a reference of one C type lies. */
#define ECHO(name, type, kind, member) \
    API int fmi3Get##name(void *c, const unsigned *r, size_t count, type *value, size_t values) { \
        for (size_t k = 0; k < count && k < values; k++) { \
            if (r[k] != OUTPUTS + kind) return ERROR; \
            value[k] = ((instance *)c)->v.member; \
        } \
        return count == values ? OK : ERROR; \
    } \
    API int fmi3Set##name(void *c, const unsigned *r, size_t count, const type *value, size_t values) { \
        instance *i = c; \
        for (size_t k = 0; k < count && k < values; k++) { \
            if (r[k] != INPUTS + kind || (i->events && i->v.mode == 2)) return ERROR; /* discrete: in event mode */ \
            i->v.member = value[k]; \
        } \
        return count == values ? OK : ERROR; \
    }
ECHO(Float32, float, F32, f32)
#ifndef WITHOUT_INT8
ECHO(Int8, int8_t, I8, i8)
#endif
ECHO(UInt8, uint8_t, U8, u8)
ECHO(Int16, int16_t, I16, i16)
ECHO(UInt16, uint16_t, U16, u16)
ECHO(UInt32, uint32_t, U32, u32)
ECHO(Boolean, unsigned char, BOOL, b)

API int fmi3GetInt32(void *c, const unsigned *r, size_t count, int32_t *value, size_t values) {
    const instance *i = c;
    for (size_t k = 0; k < count && k < values; k++) switch (r[k]) {
            case OUTPUTS + I32: value[k] = i->v.i32; break;
            case HITS: value[k] = i->v.hits; break;
            case ENTRIES: value[k] = i->v.entries; break;
            case LENGTH:
                value[k] = (int32_t)(strlen(i->text) + 10 * strlen(i->texts[0]) + 100 * strlen(i->texts[1]));
                for (size_t j = 0; j < i->blob_size; j++) value[k] += 1000 * i->blob[j];
                break;
            default: return ERROR;
        }
    return OK;
}
API int fmi3SetInt32(void *c, const unsigned *r, size_t count, const int32_t *value, size_t values) {
    for (size_t k = 0; k < count && k < values; k++) switch (r[k]) {
            case INPUTS + I32: ((instance *)c)->v.i32 = value[k]; break;
            case TROUBLE: ((instance *)c)->v.trouble = value[k]; break;
            default: return ERROR;
        }
    return OK;
}
API int fmi3GetInt64(void *c, const unsigned *r, size_t count, int64_t *value, size_t values) {
    for (size_t k = 0; k < count && k < values; k++)
        value[k] = r[k] == OUTPUTS + ENUM ? ((instance *)c)->v.kind : ((instance *)c)->v.i64;
    return OK;
}
API int fmi3SetInt64(void *c, const unsigned *r, size_t count, const int64_t *value, size_t values) {
    for (size_t k = 0; k < count && k < values; k++)
        *(r[k] == INPUTS + ENUM ? &((instance *)c)->v.kind : &((instance *)c)->v.i64) = value[k];
    return OK;
}
API int fmi3GetUInt64(void *c, const unsigned *r, size_t count, uint64_t *value, size_t values) {
    for (size_t k = 0; k < count && k < values; k++)
        value[k] =
            r[k] == N ? ((instance *)c)->v.n : ((instance *)c)->v.u64 * 3; /* so that 2^53 - 1 gets out of range */
    return OK;
}
API int fmi3SetUInt64(void *c, const unsigned *r, size_t count, const uint64_t *value, size_t values) {
    instance *i = c;
    for (size_t k = 0; k < count && k < values; k++) {
        if (r[k] == N && (i->v.mode != 4 || value[k] > LARGEST)) return ERROR;
        *(r[k] == N ? &i->v.n : &i->v.u64) = value[k];
    }
    return OK;
}

/* The place of a Float64 and its size; NULL: unknown. */
static double *place_of(values *v, unsigned reference, size_t *size) {
    *size = reference == W ? (size_t)v->n : reference == A ? 4 : 1;
    switch (reference) {
        case TIME: return &v->t;
        case U: return &v->u;
        case X: return &v->x;
        case K: return &v->k;
        case W: return v->w;
        case A: return v->a;
        case AT: return &v->at;
        case TICK: return &v->tick;
        case D: return &v->d;
        case LATCHED: return &v->latched;
        default: return NULL;
    }
}
API int fmi3GetFloat64(void *c, const unsigned *r, size_t count, double *value, size_t total) {
    values *v = &((instance *)c)->v;
    size_t size, used = 0;
    for (size_t k = 0; k < count; k++, used += size) {
        const double *place = place_of(v, r[k], &size);
        double made[LARGEST];
        if (r[k] == Y) made[0] = v->k * v->u + v->x;
        else if (r[k] == S) {
            size = (size_t)v->n;
            for (size_t j = 0; j < size; j++) made[j] = 2.0 * v->w[j];
        } else if (r[k] == R) {
            size = 4;
            for (size_t j = 0; j < size; j++) made[j] = v->a[j % 2 * 2 + j / 2];
        } else if (!place) {
            return ERROR;
        }
        if (used + size > total) return ERROR;
        memcpy(value + used, place ? place : made, size * sizeof *value);
    }
    return used == total ? OK : ERROR;
}
API int fmi3SetFloat64(void *c, const unsigned *r, size_t count, const double *value, size_t total) {
    instance *i = c;
    size_t size, used = 0;
    for (size_t k = 0; k < count; k++, used += size) {
        double *place = place_of(&i->v, r[k], &size);
        if (!place || used + size > total || (r[k] == D && i->events && i->v.mode == 2)) return ERROR;
        memcpy(place, value + used, size * sizeof *value);
    }
    return used == total ? OK : ERROR;
}
API int fmi3SetString(void *c, const unsigned *r, size_t count, const char *const *value, size_t total) {
    instance *i = c;
    for (size_t k = 0; k < count; k++) {
        if (r[k] == TEXTS) {
            for (int j = 0; j < 2; j++) strncpy(i->texts[j], *value++, 63);
            total -= 2;
            continue;
        }
        if (r[k] == TEXT) strncpy(i->text, *value++, 63);
        else if (r[k] == DIARY) strncpy(i->diary, *value++, sizeof i->diary - 1);
        else return ERROR;
        total--;
    }
    return total == 0 ? OK : ERROR;
}
API int fmi3SetBinary(void *c, const unsigned *r, size_t count, const size_t *sizes, const uint8_t *const *value,
                      size_t total) {
    instance *i = c;
    if (count != 1 || total != 1 || r[0] != BLOB || sizes[0] > sizeof i->blob) return ERROR;
    memcpy(i->blob, value[0], i->blob_size = sizes[0]);
    return OK;
}

/* ---- steps */

static void integrate(values *v, double h, double to) {
    v->x += h * (v->u - v->x);
    v->t = to;
}

API int fmi3DoStep(void *c, double t, double h, bool no_return, bool *event, bool *end, bool *early, double *reached) {
    instance *i = c;
    char text[80];
    snprintf(text, sizeof text, "step %.9g %.9g %d", t, h, no_return);
    if (i->diary[0]) note(i, text);
    if (i->v.mode != 2 || t > i->v.t + 1e-9 || t < i->v.t - 1e-9) {
        i->log(ENVIRONMENT(i), ERROR, "error", "a wrong step");
        return ERROR;
    }
    if (i->v.next < t + h - 1e-9 && i->events) return i->log(ENVIRONMENT(i), ERROR, "error", "past its event"), ERROR;
#ifdef UPDATES /* whether there is a callback or not */
    bool requested = true;
    double until = -1.0;
    i->update(i->environment, t + 0.5 * h, true, true, false, i->early, &requested, &until);
    note(i, requested ? "update requests an early return" : "update");
#endif
    const bool due = t + h > i->v.at - 1e-9;
    *event = *end = *early = false;
    if (i->v.trouble == TOO_LONG && h > i->v.at) return DISCARD;
    if (due && i->v.trouble) switch (i->v.trouble) {
            case GIVE_ERROR: i->log(ENVIRONMENT(i), ERROR, "error", "x is too large: 100%n"); return ERROR;
            case GIVE_DISCARD: return DISCARD;
            case GIVE_FATAL: return FATAL;
            case ENDS_AFTER: *end = true; break;
            case ENDS_WITHIN:
                *end = *early = true;
                integrate(&i->v, i->v.at - t, *reached = i->v.at);
                return OK;
            case EARLY: /* at half of a long step */
                if (h < 0.006) break;
                *early = true;
                integrate(&i->v, 0.5 * h, *reached = t + 0.5 * h);
                return OK;
            case STUCK:
                *early = true;
                *reached = t;
                return OK;
            case OUTSIDE:
                *early = true;
                *reached = t - 1.0;
                return OK;
            case STATE_EVENT: /* once, at `at` */
                *event = *early = true;
                integrate(&i->v, i->v.at - t, *reached = i->v.at);
                i->v.at = 1e300;
                i->v.x += 1.0;
                return OK;
            default: break;
        }
    integrate(&i->v, h, t + h);
    *reached = t + h;
    return OK;
}

/* ---- states and derivatives */

API int fmi3GetFMUState(void *c, void **state) {
#ifdef FAULTY_STATES
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
#endif
    if (!*state) *state = malloc(sizeof(values));
    memcpy(*state, &((instance *)c)->v, sizeof(values));
    return OK;
}
API int fmi3SetFMUState(void *c, void *state) { return memcpy(&((instance *)c)->v, state, sizeof(values)), OK; }
API int fmi3FreeFMUState(void *c, void **state) { return (void)c, free(*state), *state = NULL, OK; }
API int fmi3SerializedFMUStateSize(void *c, void *state, size_t *size) {
    return (void)c, (void)state, *size = sizeof(values), OK;
}
API int fmi3SerializeFMUState(void *c, void *state, uint8_t *bytes, size_t size) {
    return (void)c, size == sizeof(values) ? (memcpy(bytes, state, size), OK) : ERROR;
}
API int fmi3DeserializeFMUState(void *c, const uint8_t *bytes, size_t size, void **state) {
    if (size != sizeof(values)) return ERROR;
    if (!*state) *state = malloc(size);
    return (void)c, memcpy(*state, bytes, size), OK;
}

/* Of y = k u + x and s = 2 w. */
API int fmi3GetDirectionalDerivative(void *c, const unsigned *r, size_t count, const unsigned *known,
                                     size_t known_count, const double *seed, size_t seeds, double *value,
                                     size_t total) {
    const values *v = &((instance *)c)->v;
    double du = 0.0, dw[LARGEST] = {0.0};
    size_t used = 0;
    note(c, "derivative");
    for (size_t k = 0; k < known_count; k++) {
        if (known[k] == U) du = seed[used++];
        else if (known[k] == W)
            for (size_t j = 0; j < v->n; j++) dw[j] = seed[used++];
        else return ERROR;
    }
    if (used != seeds) return ERROR;
    used = 0;
    for (size_t k = 0; k < count; k++) {
        if (r[k] == Y) value[used++] = v->k * du;
        else if (r[k] == S)
            for (size_t j = 0; j < v->n; j++) value[used++] = 2.0 * dw[j];
        else return ERROR;
    }
    return used == total ? OK : ERROR;
}

/* FMPy requires every function to be there; these are never called. */
#define UNUSED(name) \
    API int name(void *c) { return (void)c, ERROR; }
/* clang-format off */
UNUSED(fmi3InstantiateModelExchange) UNUSED(fmi3InstantiateScheduledExecution) UNUSED(fmi3GetString) UNUSED(fmi3GetBinary)
UNUSED(fmi3GetClock) UNUSED(fmi3SetClock) UNUSED(fmi3GetNumberOfVariableDependencies) UNUSED(fmi3GetVariableDependencies)
UNUSED(fmi3GetAdjointDerivative) UNUSED(fmi3GetIntervalDecimal) UNUSED(fmi3GetIntervalFraction) UNUSED(fmi3GetShiftDecimal)
UNUSED(fmi3GetShiftFraction) UNUSED(fmi3SetIntervalDecimal) UNUSED(fmi3SetIntervalFraction) UNUSED(fmi3SetShiftDecimal)
UNUSED(fmi3SetShiftFraction) UNUSED(fmi3EvaluateDiscreteStates) UNUSED(fmi3EnterContinuousTimeMode)
UNUSED(fmi3CompletedIntegratorStep) UNUSED(fmi3SetTime) UNUSED(fmi3SetContinuousStates) UNUSED(fmi3GetContinuousStateDerivatives)
UNUSED(fmi3GetEventIndicators) UNUSED(fmi3GetContinuousStates) UNUSED(fmi3GetNominalsOfContinuousStates)
UNUSED(fmi3GetNumberOfEventIndicators) UNUSED(fmi3GetNumberOfContinuousStates) UNUSED(fmi3GetOutputDerivatives)
UNUSED(fmi3ActivateModelPartition)
    /* clang-format on */
