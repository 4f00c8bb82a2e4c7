/* An FMI 3.0 FMU for co-simulation that sends and receives: `tx` and `y` are clocked by `tx_clock`, `rx` and `x` by the triggered
 * input clock `rx_clock`. It sends `message` and y = value at offset, offset + period, …; with `answers` > 0 it also answers what it
 * receives, that often, by y = x + 1 in the next iteration of the same event; with -1 always. `tx_clock` is an output clock, or with
 * -DCOUNTDOWN an input clock based on time. The output clock is active at the end of a step, or with `early` = 1 where the message
 * is due: the step then returns early. It counts CAN operations of FMI-LS-BUS by their codes, and when it receives them.
 * It rejects every call that FMI does not allow, and reports an active output clock once, as FMI-LS-BUS examples do. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
enum { OK, WARNING, DISCARD, ERROR };
enum {
    TIME,
    RX_CLOCK,
    RX,
    TX_CLOCK,
    TX,
    X,
    Y,
    COUNT,
    LAST,
    PERIOD,
    OFFSET,
    ANSWERS,
    MESSAGE,
    EARLY,
    BYTES,
    FRAMES,
    CONFIRMS
};
enum { LOST = 17, ERRORS, LAST_FRAME, LAST_CONFIRM, VALUE, FIRST_ID, WORST, SENT, LEFT, LARGEST = 5000 };
enum { INITIALIZING = 1, STEP, EVENT };
typedef unsigned char byte;

typedef struct {
    double t, x, y, value, period, offset, last, last_frame, last_confirm, worst, sent_at;
    int mode, count, answers, early, bytes, frames, confirms, lost, errors, first_id, sent, next, left;
    bool receives, sends, is_reported, answering, has_config;
    byte rx[LARGEST], tx[LARGEST], message[LARGEST];
    size_t rx_size, tx_size, message_size;
    void *environment;
    void (*log)(void *, int, const char *, const char *);
} model;

static int fail(const model *m, const char *text) { return m->log(m->environment, ERROR, "error", text), ERROR; }
static double due(const model *m) { return m->period > 0.0 ? m->offset + m->next * m->period : INFINITY; }
static bool is_past(double time, double t) { return time <= t + 1e-10; }

static void queue(model *m) {
    if (m->tx_size + m->message_size <= LARGEST) {
        memcpy(m->tx + m->tx_size, m->message, m->message_size);
        m->tx_size += m->message_size;
    }
    m->sent++;
}

static void read_operations(model *m) {
    for (size_t at = 0; at + 8 <= m->rx_size;) {
        uint32_t code, length, id = 0;
        memcpy(&code, m->rx + at, 4);
        memcpy(&length, m->rx + at + 4, 4);
        if (length < 8) break;
        if (length >= 12) memcpy(&id, m->rx + at + 8, 4);
        if (code == 0x10 || code == 0x11) {
            if (m->frames++ == 0) m->first_id = (int)id;
            m->last_frame = m->t;
        }
        if (code == 0x20) {
            m->confirms++;
            m->last_confirm = m->t;
            if (m->t - m->sent_at > m->worst) m->worst = m->t - m->sent_at;
        }
        m->lost += code == 0x30;
        m->errors += code == 0x31;
        at += length;
    }
    m->bytes += (int)m->rx_size;
}

API const char *fmi3GetVersion(void) { return "3.0"; }
API void *fmi3InstantiateCoSimulation(const char *n, const char *t, const char *p, bool v, bool l, bool events,
                                      bool early, const unsigned *r, size_t count, void *environment,
                                      void (*log)(void *, int, const char *, const char *), void *update) {
    (void)n, (void)t, (void)p, (void)v, (void)l, (void)early, (void)r, (void)count, (void)update;
    model *m = calloc(1, sizeof *m);
    m->environment = environment;
    m->log = log;
    return events ? m : NULL;
}
API void fmi3FreeInstance(void *c) { free(c); }
API int fmi3SetDebugLogging(void *c, bool on, size_t n, const char *const *s) {
    return (void)c, (void)on, (void)n, (void)s, OK;
}
API int fmi3EnterInitializationMode(void *c, bool a, double b, double t, bool d, double e) {
    model *m = c;
    return (void)a, (void)b, (void)d, (void)e, m->t = t, m->left = m->answers, m->mode = INITIALIZING, OK;
}
static void look_at_time(model *m) {
    while (is_past(due(m), m->t)) {
        queue(m);
        m->sent_at = due(m);
        m->y = m->value;
        m->next++;
#ifndef COUNTDOWN
        m->sends = true;
#endif
    }
}
API int fmi3ExitInitializationMode(void *c) {
    model *m = c;
#ifndef COUNTDOWN
    look_at_time(m);
#endif
    return m->mode = EVENT, OK;
}
API int fmi3EnterEventMode(void *c) {
    model *m = c;
    return m->mode == STEP ? (m->mode = EVENT, OK) : fail(m, "event mode from elsewhere");
}
API int fmi3EnterStepMode(void *c) {
    model *m = c;
    return m->mode == EVENT ? (m->mode = STEP, OK) : fail(m, "step mode from elsewhere");
}
API int fmi3Terminate(void *c) { return (void)c, OK; }

API int fmi3SetClock(void *c, const unsigned *r, size_t n, const bool *value) {
    model *m = c;
    if (m->mode != EVENT) return fail(m, "a clock is set in event mode only");
    for (size_t k = 0; k < n; k++) {
        if (!value[k]) return fail(m, "a clock is deactivated");
        if (r[k] == RX_CLOCK) {
            if (m->receives) return fail(m, "rx_clock is active already");
            m->receives = true;
            m->rx_size = 0;
            continue;
        }
#ifdef COUNTDOWN
        if (r[k] != TX_CLOCK || !is_past(due(m), m->t) || due(m) < m->t - 1e-10)
            return fail(m, "tx_clock does not tick now");
        queue(m);
        m->sent_at = due(m);
        m->y = m->value;
        m->next++;
        m->sends = true;
#else
        return fail(m, "not an input clock");
#endif
    }
    return OK;
}
API int fmi3GetClock(void *c, const unsigned *r, size_t n, bool *value) {
    model *m = c;
    if (m->mode != EVENT || n != 1 || r[0] != TX_CLOCK) return fail(m, "not an output clock, or not in event mode");
    *value = m->sends && !m->is_reported;
    m->is_reported |= *value;
    return OK;
}
API int fmi3GetIntervalDecimal(void *c, const unsigned *r, size_t n, double *interval, int *qualifier) {
    const model *m = c;
    if (n != 1 || r[0] != TX_CLOCK || m->mode == STEP) return fail(m, "no interval of this clock now");
    *qualifier = isinf(due(m)) ? 0 : 2;
    *interval = fmax(due(m) - m->t, 0.0);
    return OK;
}
API int fmi3UpdateDiscreteStates(void *c, bool *more, bool *ended, bool *nominals, bool *changed, bool *timed,
                                 double *next) {
    model *m = c;
    *more = *ended = *nominals = *changed = *timed = false;
    *next = 0.0;
    if (m->mode != EVENT) return fail(m, "an update outside event mode");
    if (m->sends) m->tx_size = 0;
    m->sends = m->is_reported = false;
    if (!m->receives) return OK;
    m->receives = false;
    m->count++;
    m->last = m->t;
    read_operations(m);
    if (m->left != 0) {
        m->left -= m->left > 0;
        m->y = m->x + 1.0;
        queue(m);
        m->sends = *more = true;
    }
    return OK;
}

API int fmi3GetFloat64(void *c, const unsigned *r, size_t n, double *value, size_t values) {
    const model *m = c;
    for (size_t k = 0; k < n && k < values; k++) {
        if (r[k] == Y && !m->sends && m->mode != INITIALIZING) return fail(m, "y is read while tx_clock is not active");
        value[k] = r[k] == Y              ? m->y
                   : r[k] == LAST         ? m->last
                   : r[k] == LAST_FRAME   ? m->last_frame
                   : r[k] == LAST_CONFIRM ? m->last_confirm
                                          : m->worst;
    }
    return OK;
}
API int fmi3SetFloat64(void *c, const unsigned *r, size_t n, const double *value, size_t values) {
    model *m = c;
    for (size_t k = 0; k < n && k < values; k++) {
        if (r[k] == X && !m->receives) return fail(m, "x is set while rx_clock is not active");
        *(r[k] == X ? &m->x : r[k] == PERIOD ? &m->period : r[k] == OFFSET ? &m->offset : &m->value) = value[k];
    }
    return OK;
}
API int fmi3GetInt32(void *c, const unsigned *r, size_t n, int *value, size_t values) {
    const model *m = c;
    for (size_t k = 0; k < n && k < values; k++)
        value[k] = r[k] == COUNT      ? m->count
                   : r[k] == BYTES    ? m->bytes
                   : r[k] == FRAMES   ? m->frames
                   : r[k] == CONFIRMS ? m->confirms
                   : r[k] == LOST     ? m->lost
                   : r[k] == ERRORS   ? m->errors
                   : r[k] == FIRST_ID ? m->first_id
                                      : m->sent;
    return OK;
}
API int fmi3SetInt32(void *c, const unsigned *r, size_t n, const int *value, size_t values) {
    model *m = c;
    for (size_t k = 0; k < n && k < values; k++) *(r[k] == ANSWERS ? &m->answers : &m->early) = value[k];
    return OK;
}
API int fmi3GetBinary(void *c, const unsigned *r, size_t n, size_t *sizes, const byte **value, size_t values) {
    const model *m = c;
    if (n != 1 || values != 1 || r[0] != TX || m->mode != EVENT || !m->sends)
        return fail(m, "tx is read while tx_clock is not active");
    *value = m->tx;
    *sizes = m->tx_size;
    return OK;
}
API int fmi3SetBinary(void *c, const unsigned *r, size_t n, const size_t *sizes, const byte *const *value,
                      size_t values) {
    model *m = c;
    for (size_t k = 0; k < n && k < values; k++) {
        if (sizes[k] > LARGEST) return fail(m, "too many bytes");
        if (r[k] == RX && !m->receives) return fail(m, "rx is set while rx_clock is not active");
        if (sizes[k] > 0) memcpy(r[k] == RX ? m->rx : m->message, value[k], sizes[k]);
        *(r[k] == RX ? &m->rx_size : &m->message_size) = sizes[k];
    }
    return OK;
}
API int fmi3DoStep(void *c, double t, double h, bool final, bool *event, bool *ends, bool *early, double *last) {
    model *m = c;
    (void) final;
    *event = *ends = *early = false;
    if (m->mode != STEP || fabs(t - m->t) > 1e-9) return fail(m, "a step from elsewhere");
    m->t = t + h;
#ifdef COUNTDOWN
    if (!is_past(m->t, due(m))) return fail(m, "a step passes the tick of tx_clock");
#else
    if (m->early && is_past(due(m), m->t)) {
        *early = due(m) < m->t - 1e-10;
        m->t = due(m);
    }
    look_at_time(m);
    *event = m->sends;
#endif
    *last = m->t;
    return OK;
}
API int fmi3GetFMUState(void *c, void **state) {
    if (!*state) *state = malloc(sizeof(model));
    return memcpy(*state, c, sizeof(model)), OK;
}
API int fmi3SetFMUState(void *c, void *state) { return memcpy(c, state, sizeof(model)), OK; }
API int fmi3FreeFMUState(void *c, void **state) { return (void)c, free(*state), *state = NULL, OK; }
API int fmi3SerializedFMUStateSize(void *c, void *state, size_t *size) {
    return (void)c, (void)state, *size = sizeof(model), OK;
}
API int fmi3SerializeFMUState(void *c, void *state, byte *bytes, size_t size) {
    return (void)c, memcpy(bytes, state, size), OK;
}
API int fmi3DeserializeFMUState(void *c, const byte *bytes, size_t size, void **state) {
    if (!*state) *state = malloc(sizeof(model));
    return (void)c, memcpy(*state, bytes, size), OK;
}
