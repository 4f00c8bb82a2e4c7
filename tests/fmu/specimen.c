/* A small FMI 2.0 co-simulation FMU that can be told to misbehave. It writes its life to the file that its parameter
 * `diary` names, one call on each line, so that a test can see what was called after what. Compiled with
 *
 *   -DCOMMITS               a step moves the states only if it is told that it will not be taken back
 *   -DOUTPUTS_AFTER_EXIT    outputs are 0 in initialization mode
 *   -DENVIRONMENT=...       that pointer is passed to the logger instead of the environment
 *   -DFAULTY_STATES         fmi2GetFMUstate crashes
 *   -DFAULTY_RESTORE        fmi2SetFMUstate crashes
 *   -DOWN_MEMORY            the memory functions of the environment are not used
 *   -DSINGLE                a second instance at a time is refused
 *   -DREJECTS_STEPS         steps of another length than 10 ms are discarded
 *   -DROUNDS, -DFLUSHES     calls change the rounding mode, or have subnormal numbers flushed
 *   -DWANDERS               calls change the working directory */
#include <fenv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

enum { OK, WARNING, DISCARD, ERROR, FATAL, PENDING };
enum { U, Y, N, M, B, C, X, K, TROUBLE, AT, DIARY, W0, W1, S, Q, VARIABLES };
enum {
    NONE,
    GIVE_ERROR,
    GIVE_DISCARD,
    TERMINATED,
    GIVE_FATAL,
    SEGFAULT,
    HANG,
    EXIT,
    ABORT,
    CHATTER,
    GET_ERROR,
    GIVE_PENDING,
    TOO_LONG,
    ENDS_AFTER,
    ENDS_WITHIN,
    ORPHAN
};

typedef void (*logger)(void *, const char *, int, const char *, const char *, ...);
typedef struct {
    logger log;
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void *finished, *environment;
} callbacks;

typedef struct {
    double u, x, k, at, w[2], w1[2], w2[2], s, q, t;
    int n, b, trouble, ended, mode; /* mode: 1 in initialization mode, 2 in step mode */
} values;

typedef struct {
    values v;
    char name[64], diary[1024], pending[512];
    const callbacks *call;
    int loud;
} instance;

#ifndef ENVIRONMENT
#define ENVIRONMENT(i) ((i)->call->environment)
#endif
#ifdef FLUSHES
#include <xmmintrin.h>
#endif

static void spoil_process(void) {
#ifdef ROUNDS
    fesetround(FE_UPWARD);
#endif
#ifdef FLUSHES
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
#ifdef WANDERS
    if (chdir("/") != 0) abort();
#endif
}
__attribute__((constructor)) static void load(void) { spoil_process(); }

static void note(instance *i, const char *what) {
    spoil_process();
    FILE *file = i->diary[0] ? fopen(i->diary, "a") : NULL;
    if (!file) { /* the name of the diary comes later */
        strncat(i->pending, what, sizeof i->pending - strlen(i->pending) - 2);
        strcat(i->pending, "\n");
        return;
    }
    fprintf(file, "%s%s\n", i->pending, what);
    i->pending[0] = '\0';
    fclose(file);
}

API const char *fmi2GetTypesPlatform(void) { return "default"; }
API const char *fmi2GetVersion(void) {
#ifdef VERSION
    return VERSION;
#else
    return "2.0";
#endif
}

#ifdef SINGLE
static int instances;
#endif

API void *fmi2Instantiate(const char *name, int type, const char *guid, const char *resources, const callbacks *call,
                          int visible, int loud) {
    (void)visible;
    if (type != 1 || strcmp(guid, "{specimen}") != 0 || strncmp(resources, "file:///", 8) != 0) {
        call->log(call->environment, name, ERROR, "error", "type %d, guid %s, resources %s", type, guid, resources);
        return NULL;
    }
#ifdef SINGLE
    if (instances++ > 0) return call->log(call->environment, name, ERROR, "error", "there is one already"), NULL;
#endif
#ifdef OWN_MEMORY
    instance *i = calloc(1, sizeof *i);
#else
    instance *i = call->allocate(1, sizeof *i);
#endif
    i->call = call;
    i->loud = loud;
    i->v.u = 0.5;
    i->v.n = 3;
    i->v.b = 1;
    i->v.k = 2.0;
    i->v.at = 1e300;
    strncpy(i->name, name, sizeof i->name - 1);
    note(i, "instantiate");
    return i;
}
API void fmi2FreeInstance(void *c) {
    instance *i = c;
    note(i, "free");
#ifdef SINGLE
    instances--;
#endif
#ifdef OWN_MEMORY
    free(i);
#else
    i->call->release(i);
#endif
}
API int fmi2SetDebugLogging(void *c, int on, size_t count, const char *const *categories) {
    instance *i = c;
    for (size_t k = 0; k < count; k++) note(i, categories[k]);
    i->loud = on;
    return OK;
}
API int fmi2SetupExperiment(void *c, int tolerant, double tolerance, double start, int stops, double stop) {
    char text[100];
    (void)stop;
    snprintf(text, sizeof text, "setup %d %g %g %d", tolerant, tolerance, start, stops);
    note(c, text);
    ((instance *)c)->v.t = start;
    return OK;
}
static int change_mode(instance *i, int from, int to) {
    if (i->v.mode != from)
        i->call->log(i->call->environment, i->name, ERROR, "error", "mode %d, not %d", i->v.mode, from);
    const int right = i->v.mode == from;
    i->v.mode = to;
    return right ? OK : ERROR;
}
API int fmi2EnterInitializationMode(void *c) { return note(c, "enter"), change_mode(c, 0, 1); }
API int fmi2ExitInitializationMode(void *c) { return note(c, "exit"), change_mode(c, 1, 2); }
API int fmi2Terminate(void *c) { return note(c, "terminate"), OK; }
API int fmi2Reset(void *c) { return note(c, "reset"), OK; }

API int fmi2GetReal(void *c, const unsigned *r, size_t count, double *value) {
    const values *v = &((instance *)c)->v;
    spoil_process();
#ifdef OUTPUTS_AFTER_EXIT
    if (v->mode == 1) return memset(value, 0, count * sizeof *value), OK;
#endif
    if (v->trouble == GET_ERROR && v->t >= v->at) return ERROR;
    for (size_t k = 0; k < count; k++) switch (r[k]) {
            case U: value[k] = v->u; break;
            case Y: value[k] = v->k * v->u + v->x; break;
            case X: value[k] = v->x; break;
            case K: value[k] = v->k; break;
            case AT: value[k] = v->at; break;
            case W0:
            case W1: value[k] = v->w[r[k] - W0]; break;
            case S: value[k] = v->s; break;
            case Q: value[k] = v->q; break;
            default: return ERROR;
        }
    return OK;
}
API int fmi2SetReal(void *c, const unsigned *r, size_t count, const double *value) {
    values *v = &((instance *)c)->v;
    spoil_process();
    for (size_t k = 0; k < count; k++) switch (r[k]) {
            case U: v->u = value[k]; break;
            case X: v->x = value[k]; break;
            case K: v->k = value[k]; break;
            case AT: v->at = value[k]; break;
            case W0:
            case W1: v->w[r[k] - W0] = value[k]; break;
            default: return ERROR;
        }
    return OK;
}
API int fmi2GetInteger(void *c, const unsigned *r, size_t count, int *value) {
    for (size_t k = 0; k < count; k++) {
        if (r[k] != M) return ERROR;
        value[k] = ((instance *)c)->v.n + 1;
    }
    return OK;
}
API int fmi2SetInteger(void *c, const unsigned *r, size_t count, const int *value) {
    for (size_t k = 0; k < count; k++) switch (r[k]) {
            case N: ((instance *)c)->v.n = value[k]; break;
            case TROUBLE: ((instance *)c)->v.trouble = value[k]; break;
            default: return ERROR;
        }
    return OK;
}
API int fmi2GetBoolean(void *c, const unsigned *r, size_t count, int *value) {
    for (size_t k = 0; k < count; k++) {
        if (r[k] != C) return ERROR;
        value[k] = !((instance *)c)->v.b;
    }
    return OK;
}
API int fmi2SetBoolean(void *c, const unsigned *r, size_t count, const int *value) {
    for (size_t k = 0; k < count; k++) {
        if (r[k] != B || (value[k] != 0 && value[k] != 1)) return ERROR;
        ((instance *)c)->v.b = value[k];
    }
    return OK;
}
API int fmi2GetString(void *c, const unsigned *r, size_t count, const char **value) {
    return (void)c, (void)r, (void)value, count ? ERROR : OK;
}
API int fmi2SetString(void *c, const unsigned *r, size_t count, const char *const *value) {
    for (size_t k = 0; k < count; k++) {
        if (r[k] != DIARY) return ERROR;
        strncpy(((instance *)c)->diary, value[k], sizeof((instance *)c)->diary - 1);
    }
    return OK;
}

/* Messages as careless FMUs write them: a text that contains percent signs, formats with too much in them. */
static void chatter(instance *i) {
    const callbacks *call = i->call;
    void *e = ENVIRONMENT(i);
    call->log(e, i->name, WARNING, "warning", "load is 100%");
    call->log(e, i->name, WARNING, "warning", "100%n of 5%hhn");
    call->log(e, i->name, WARNING, NULL, "valve %d at %5.2f %%, state %s", 7, 12.5, "open");
    call->log(e, NULL, OK, "info", NULL);
    call->log(e, i->name, WARNING, "warning", "two\nlines");
}

static int misbehave(instance *i) {
    switch (i->v.trouble) {
        case GIVE_ERROR:
            i->call->log(ENVIRONMENT(i), i->name, ERROR, "error", "x = %g is too large", i->v.x);
            return ERROR;
        case GIVE_DISCARD: return DISCARD;
        case TERMINATED: i->v.ended = 1; return DISCARD;
        case GIVE_FATAL: return FATAL;
        case SEGFAULT:
            signal(SIGSEGV, SIG_DFL);
            raise(SIGSEGV);
            return FATAL; /* past any handler of a sanitizer */
        case HANG:
            for (;;) sleep(1);
        case EXIT: exit(3);
        case ABORT: abort();
        case ORPHAN: /* a child holds the pipes until the diary is gone; after 30 s it gives up, and notes that */
            if (fork() != 0) abort();
            for (int k = 0; k < 300 && access(i->diary, F_OK) == 0; k++) usleep(100000);
            if (access(i->diary, F_OK) == 0) note(i, "gave up");
            _exit(0);
        case CHATTER: chatter(i); return ERROR;
        case GIVE_PENDING: return PENDING;
        default: return OK;
    }
}

API int fmi2DoStep(void *c, double t, double h, int no_return) {
    instance *i = c;
    const values before = i->v;
    char text[40];
    snprintf(text, sizeof text, "step %.9g %d", t, no_return);
#ifdef COMMITS
    if (i->diary[0]) note(i, text);
#endif
    spoil_process();
    if (change_mode(i, 2, 2) != OK) return ERROR;
    if (t > i->v.t + 1e-9 || t < i->v.t - 1e-9) {
        i->call->log(i->call->environment, i->name, ERROR, "error", "step from %g, but it is %g", t, i->v.t);
        return ERROR;
    }
#ifdef REJECTS_STEPS
    if (h < 0.01 - 1e-9 || h > 0.01 + 1e-9) return DISCARD;
#endif
    if (i->v.trouble == TOO_LONG) {
        if (h > i->v.at)
            return i->call->log(i->call->environment, i->name, DISCARD, "step", "%g s are too long", h), DISCARD;
    } else if (i->v.trouble && t >= i->v.at - 1e-9) {
        const int status = misbehave(i);
        if (status != OK) return status;
    }
    i->v.x += h * (i->v.u - i->v.x);
    /* s' = w0 + 10 w1, q' = s + n - 3, exactly, for inputs that are polynomials */
    const double w = i->v.w[0] + 10.0 * i->v.w[1], w1 = i->v.w1[0] + 10.0 * i->v.w1[1],
                 w2 = i->v.w2[0] + 10.0 * i->v.w2[1];
    i->v.q += h * (i->v.s + i->v.n - 3 + h / 2.0 * (w + h / 3.0 * (w1 + h / 4.0 * w2)));
    i->v.s += h * (w + h / 2.0 * (w1 + h / 3.0 * w2));
#ifdef COMMITS
    if (!no_return) i->v = before;
#else
    (void)before;
#endif
    i->v.t = t + h;
    if (i->v.trouble == ENDS_WITHIN && t >= i->v.at - 1e-9) i->v.t = t + 0.5 * h;
    if (i->v.trouble >= ENDS_AFTER && t >= i->v.at - 1e-9) return i->v.ended = 1, DISCARD;
    return OK;
}
API int fmi2GetRealStatus(void *c, int kind, double *value) {
    *value = ((instance *)c)->v.t;
    return kind == 2 ? OK : DISCARD;
}
API int fmi2GetBooleanStatus(void *c, int kind, int *value) {
    *value = ((instance *)c)->v.ended;
    return kind == 3 ? OK : DISCARD;
}

/* How many derivatives it takes, and what it says to more. */
#ifndef LARGEST_ORDER
#define LARGEST_ORDER 2
#endif
#ifndef REFUSAL
#define REFUSAL DISCARD
#endif
API int fmi2SetRealInputDerivatives(void *c, const unsigned *r, size_t count, const int *order, const double *value) {
    values *v = &((instance *)c)->v;
    for (size_t k = 0; k < count; k++) {
        if (order[k] < 1 || order[k] > LARGEST_ORDER) return REFUSAL;
        if (r[k] == W0 || r[k] == W1) (order[k] == 1 ? v->w1 : v->w2)[r[k] - W0] = value[k];
    }
    return OK;
}

/* Of y = k u + x and of s. */
API int fmi2GetDirectionalDerivative(void *c, const unsigned *r, size_t count, const unsigned *known,
                                     size_t known_count, const double *seed, double *value) {
    const values *v = &((instance *)c)->v;
    note(c, "derivative");
#ifdef WITHOUT_DERIVATIVES
    return DISCARD;
#endif
    for (size_t k = 0; k < count; k++) {
        value[k] = 0.0;
        for (size_t i = 0; i < known_count; i++)
            if (r[k] == Y && known[i] == U) value[k] += v->k * seed[i];
    }
    return OK;
}

/* FMPy requires every function to be there; these are never called. */
#define UNUSED(name) \
    API int name(void *c) { return (void)c, ERROR; }
/* clang-format off */
UNUSED(fmi2CancelStep) UNUSED(fmi2GetStatus) UNUSED(fmi2GetIntegerStatus)
UNUSED(fmi2GetStringStatus) UNUSED(fmi2GetRealOutputDerivatives)
/* clang-format on */

#ifndef WITHOUT_STATES
    API int fmi2GetFMUstate(void *c, void **state) {
#ifdef FAULTY_STATES
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
#endif
    if (!*state) *state = malloc(sizeof(values));
    memcpy(*state, &((instance *)c)->v, sizeof(values));
    return OK;
}
API int fmi2SetFMUstate(void *c, void *state) {
#ifdef FAULTY_RESTORE
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
#endif
    return memcpy(&((instance *)c)->v, state, sizeof(values)), OK;
}
API int fmi2FreeFMUstate(void *c, void **state) { return (void)c, free(*state), *state = NULL, OK; }
API int fmi2SerializedFMUstateSize(void *c, void *state, size_t *size) {
    return (void)c, (void)state, *size = sizeof(values), OK;
}
API int fmi2SerializeFMUstate(void *c, void *state, char *bytes, size_t size) {
    return (void)c, size == sizeof(values) ? (memcpy(bytes, state, size), OK) : ERROR;
}
API int fmi2DeSerializeFMUstate(void *c, const char *bytes, size_t size, void **state) {
    if (size != sizeof(values)) return ERROR;
    if (!*state) *state = malloc(size);
    return (void)c, memcpy(*state, bytes, size), OK;
}
#endif
