/* A node of a CAN bus that packs signals of the diagram into frames: an FMU of FMI 3.0 for co-simulation within the engine.
 *
 * Its layout, a binary parameter, describes messages and their signals; `read_layout` has the format. A message with a period is sent at
 * start + offset + n · period with the values of that instant; another one is sent when its data change. Signals of received messages
 * keep their last value. The clock that sends is a countdown clock: its interval leads to the next message. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmu/fmi3.h"
#include "fmu/importer/host/builtin.h"
#include "fmu/standards/can_operations.h"
#include "fmu/standards/can_signals.h"

enum { TIME, LAYOUT, RX_DATA, TX_DATA, RX_CLOCK, TX_CLOCK, SATURATES, SENT, CONFIRMED, RECEIVED, FIRST_SIGNAL = 16 };
enum { LARGEST_MESSAGES = 256, LARGEST_SIGNALS = 4096, LARGEST_RECEIVED = 16384, LARGEST_SENT = 17 + CAN_LARGEST_DATA };

typedef struct {
    bl_can_signal signal;
    double initial;
    const unsigned char *name, *identifiers; /* in the layout */
    int32_t name_size, identifier_count; /* identifiers: values of the multiplexer with which it is in the frame */
} node_signal;

typedef struct {
    bl_can_frame frame; /* without data */
    double period, offset; /* a period of 0: sent when its data change */
    int32_t first, count; /* signals */
    int32_t multiplexer; /* its number among all signals; -1: none */
    bool is_sent;
} node_message;

/* What is saved; of bytes from anywhere every number is valid. Memories of messages and values of signals follow. */
typedef struct {
    double t, start_time;
    uint32_t sent, confirmed, received, rx_size;
    int32_t receives, sends;
    unsigned char rx[LARGEST_RECEIVED];
} node_state;

typedef struct {
    double count; /* how often it was sent by its period */
    int32_t has_changed;
    unsigned char data[CAN_LARGEST_DATA]; /* as sent last */
} message_memory;

typedef struct {
    node_state *state;
    message_memory *memories;
    double *values;
    size_t size; /* of the state */
    node_message *messages;
    node_signal *signals;
    int32_t message_count, signal_count;
    unsigned char *layout, *tx;
    bool saturates;
    void *environment;
    fmi3LogMessageCallback log;
} instance;

static fmi3Status fail(const instance *c, const char *text) {
    if (c->log) c->log(c->environment, fmi3Error, "logStatusError", text);
    return fmi3Error;
}

/* ---- the layout */

typedef struct {
    const unsigned char *at;
    size_t rest;
    bool is_sound;
} reader;

static const unsigned char *take(reader *r, size_t size) {
    const unsigned char *taken = r->at;
    if (!r->is_sound || size > r->rest) {
        r->is_sound = false;
        return NULL;
    }
    r->at += size;
    r->rest -= size;
    return taken;
}

static uint32_t take_number(reader *r, int32_t size) {
    const unsigned char *bytes = take(r, (size_t)size);
    return bytes ? bl_can_read_number(bytes, size) : 0;
}

static double take_double(reader *r) {
    const uint64_t low = take_number(r, 4), bits = low | (uint64_t)take_number(r, 4) << 32;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* start, length and flags; scale, offset, minimum, maximum, initial value; numbers of identifiers and of bytes of the name; both. */
static void read_signal(reader *r, node_signal *s, int32_t size) {
    bl_can_signal *signal = &s->signal;
    signal->start = (uint16_t)take_number(r, 2);
    signal->length = (uint8_t)take_number(r, 1);
    signal->flags = (uint8_t)take_number(r, 1);
    signal->scale = take_double(r);
    signal->offset = take_double(r);
    signal->minimum = take_double(r);
    signal->maximum = take_double(r);
    s->initial = take_double(r);
    s->identifier_count = (int32_t)take_number(r, 2);
    s->name_size = (int32_t)take_number(r, 2);
    s->identifiers = take(r, 4 * (size_t)s->identifier_count);
    s->name = take(r, (size_t)s->name_size);
    r->is_sound = r->is_sound && bl_can_signal_fits(signal, size) && signal->scale != 0.0;
}

/* identifier; flags, size, number of signals and that of the multiplexer or 65535; period, offset; the signals. */
static void read_message(instance *c, reader *r, node_message *m) {
    m->frame.identifier = take_number(r, 4);
    const uint32_t flags = take_number(r, 1);
    m->is_sent = (flags & CAN_SENDS) != 0;
    m->frame.is_extended = (flags & CAN_EXTENDED) != 0;
    m->frame.is_fd = (flags & CAN_FD) != 0;
    m->frame.switches_rate = (flags & CAN_SWITCHES_RATE) != 0;
    m->frame.size = (uint16_t)take_number(r, 1);
    m->first = c->signal_count;
    m->count = (int32_t)take_number(r, 2);
    const int32_t multiplexer = (int32_t)take_number(r, 2);
    m->multiplexer = multiplexer < m->count ? m->first + multiplexer : -1;
    m->period = take_double(r);
    m->offset = take_double(r);
    r->is_sound = r->is_sound && bl_can_is_valid(&m->frame) && m->count <= LARGEST_SIGNALS - c->signal_count &&
                  m->period >= 0.0 && isfinite(m->period) && isfinite(m->offset);
    for (int32_t k = 0; k < m->count && r->is_sound; k++) read_signal(r, &c->signals[c->signal_count++], m->frame.size);
}

static bool resize(instance *c) {
    const size_t messages = (size_t)c->message_count * sizeof *c->memories;
    c->size = sizeof *c->state + messages + (size_t)c->signal_count * sizeof *c->values;
    free(c->state);
    free(c->tx);
    c->tx = malloc(LARGEST_SENT * ((size_t)c->message_count + 1));
    c->state = calloc(1, c->size);
    if (!c->tx || !c->state) return false;
    c->memories = (message_memory *)(void *)(c->state + 1);
    c->values = (double *)(void *)(c->memories + c->message_count);
    for (int32_t k = 0; k < c->signal_count; k++) c->values[k] = c->signals[k].initial;
    return true;
}

static fmi3Status pack(const instance *c, const node_message *m, unsigned char *data);

static fmi3Status read_layout(instance *c, const unsigned char *bytes, size_t size) {
    free(c->layout);
    c->layout = malloc(size > 0 ? size : 1);
    if (!c->messages) c->messages = calloc(LARGEST_MESSAGES, sizeof *c->messages);
    if (!c->signals) c->signals = calloc(LARGEST_SIGNALS, sizeof *c->signals);
    if (!c->layout || !c->messages || !c->signals) return fail(c, "no memory");
    if (size > 0) memcpy(c->layout, bytes, size);
    reader r = {c->layout, size, true};
    c->message_count = c->signal_count = 0;
    while (r.is_sound && r.rest > 0) {
        r.is_sound = c->message_count < LARGEST_MESSAGES;
        if (r.is_sound) read_message(c, &r, &c->messages[c->message_count++]);
    }
    if (!r.is_sound) return fail(c, "the layout of the messages is damaged");
    if (!resize(c)) return fail(c, "no memory");
    fmi3Status status = fmi3OK;
    for (int32_t k = 0; k < c->message_count && status == fmi3OK; k++)
        if (c->messages[k].is_sent) status = pack(c, &c->messages[k], c->memories[k].data);
    return status;
}

/* ---- messages */

/* Whether a signal is in a frame with these data, by the value of its multiplexer. */
static bool is_present(const instance *c, const node_message *m, const node_signal *s, const unsigned char *data) {
    if (s->identifier_count == 0 || m->multiplexer < 0) return true;
    const uint64_t chosen = bl_can_signal_raw(&c->signals[m->multiplexer].signal, data);
    for (int32_t k = 0; k < s->identifier_count; k++)
        if (bl_can_read_number(s->identifiers + 4 * k, 4) == chosen) return true;
    return false;
}

static fmi3Status refuse_value(const instance *c, const node_signal *s, double value) {
    char text[240];
    double lowest, highest;
    bl_can_signal_range(&s->signal, &lowest, &highest);
    snprintf(text, sizeof text,
             "the signal `%.*s` is %.9g, outside its range from %.9g to %.9g; saturate=True limits it",
             (int)(s->name_size < 100 ? s->name_size : 100), (const char *)s->name, value, lowest, highest);
    return fail(c, text);
}

static fmi3Status pack_signal(const instance *c, const node_signal *s, unsigned char *data) {
    double value = c->values[s - c->signals], lowest, highest;
    if (c->saturates && !isnan(value)) {
        bl_can_signal_range(&s->signal, &lowest, &highest);
        value = fmin(fmax(value, lowest), highest);
    }
    return bl_can_pack(&s->signal, value, data) ? fmi3OK : refuse_value(c, s, value);
}

/* The multiplexer comes first: it decides which signals the frame has. */
static fmi3Status pack(const instance *c, const node_message *m, unsigned char *data) {
    fmi3Status status = fmi3OK;
    memset(data, 0, CAN_LARGEST_DATA);
    if (m->multiplexer >= 0) status = pack_signal(c, &c->signals[m->multiplexer], data);
    for (int32_t k = m->first; k < m->first + m->count && status == fmi3OK; k++)
        if (k != m->multiplexer && is_present(c, m, &c->signals[k], data))
            status = pack_signal(c, &c->signals[k], data);
    return status;
}

static double next_time(const instance *c, int32_t message) {
    const node_message *m = &c->messages[message];
    if (!m->is_sent) return INFINITY;
    if (m->period == 0.0) return c->memories[message].has_changed ? c->state->t : INFINITY;
    return c->state->start_time + m->offset + c->memories[message].count * m->period;
}

static double earliest(const instance *c) {
    double found = INFINITY;
    for (int32_t k = 0; k < c->message_count; k++) found = fmin(found, next_time(c, k));
    return found;
}

/* The time up to which messages are sent now. The instants of an importer may be slightly early. */
static double due_until(const instance *c) {
    const double t = c->state->t, next = earliest(c); /* infinite: a clock that ticks although nothing is due */
    const double last = c->state->sends && isfinite(next) ? fmax(t, next) : t;
    return last + 1e-12 + 1e-15 * fabs(t);
}

static fmi3Status write_frames(const instance *c, size_t *size) {
    const double until = due_until(c);
    *size = 0;
    for (int32_t k = 0; k < c->message_count; k++) {
        if (next_time(c, k) > until) continue;
        bl_can_frame frame = c->messages[k].frame;
        if (pack(c, &c->messages[k], frame.data) != fmi3OK) return fmi3Error;
        const bl_can_operation o = bl_can_write_frame(&frame);
        memcpy(c->tx + *size, o.bytes, o.size);
        *size += o.size;
    }
    return fmi3OK;
}

static fmi3Status note_sent(const instance *c) {
    const double until = due_until(c);
    fmi3Status status = fmi3OK;
    for (int32_t k = 0; k < c->message_count && status == fmi3OK; k++) {
        if (next_time(c, k) > until) continue;
        if (c->messages[k].period > 0.0) c->memories[k].count += 1.0;
        c->state->sent++;
        status = pack(c, &c->messages[k], c->memories[k].data);
    }
    return status;
}

static void take_frame(const instance *c, const bl_can_frame *frame) {
    for (int32_t k = 0; k < c->message_count; k++) {
        const node_message *m = &c->messages[k];
        if (m->is_sent || frame->is_remote || m->frame.identifier != frame->identifier) continue;
        if (m->frame.is_extended != frame->is_extended || frame->size < m->frame.size) continue;
        c->state->received++;
        for (int32_t n = m->first; n < m->first + m->count; n++)
            if (is_present(c, m, &c->signals[n], frame->data))
                c->values[n] = bl_can_unpack(&c->signals[n].signal, frame->data);
    }
}

static fmi3Status take_operations(const instance *c) {
    node_state *state = c->state;
    uint32_t at = 0, length = 0;
    for (; at < state->rx_size; at += length) {
        bl_can_frame frame;
        length = bl_can_next_length(state->rx + at, state->rx_size - at);
        if (length == 0) return fail(c, "the node receives damaged CAN operations");
        const uint32_t code = bl_can_read_number(state->rx + at, 4);
        if (code == CAN_CONFIRM) state->confirmed++;
        if (code != CAN_TRANSMIT && code != CAN_FD_TRANSMIT) continue;
        if (!bl_can_read_frame(state->rx + at, length, &frame)) return fail(c, "the node receives a damaged CAN frame");
        take_frame(c, &frame);
    }
    state->rx_size = 0;
    return fmi3OK;
}

static fmi3Status look_for_changes(const instance *c) {
    unsigned char data[CAN_LARGEST_DATA];
    for (int32_t k = 0; k < c->message_count; k++) {
        const node_message *m = &c->messages[k];
        if (!m->is_sent || m->period > 0.0) continue;
        if (pack(c, m, data) != fmi3OK) return fmi3Error;
        c->memories[k].has_changed = memcmp(data, c->memories[k].data, sizeof data) != 0;
    }
    return fmi3OK;
}

/* ---- functions of FMI */

static const char *get_version(void) { return "3.0"; }

static void free_instance(fmi3Instance i) {
    instance *c = i;
    free(c->state);
    free(c->messages);
    free(c->signals);
    free(c->layout);
    free(c->tx);
    free(c);
}

static fmi3Instance instantiate(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                fmi3Boolean logging, fmi3Boolean events, fmi3Boolean early,
                                const fmi3ValueReference references[], size_t count,
                                fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
                                fmi3IntermediateUpdateCallback update) {
    (void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)early, (void)references, (void)count;
    (void)update;
    instance *c = events ? calloc(1, sizeof *c) : NULL;
    if (!c) return NULL;
    c->environment = environment;
    c->log = log;
    if (resize(c)) return c;
    free_instance(c);
    return NULL;
}

static fmi3Status enter_initialization(fmi3Instance i, fmi3Boolean has_tolerance, fmi3Float64 tolerance,
                                       fmi3Float64 start, fmi3Boolean has_stop, fmi3Float64 stop) {
    const instance *c = i;
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    c->state->t = c->state->start_time = start;
    return fmi3OK;
}

static fmi3Status do_nothing(fmi3Instance i) { return (void)i, fmi3OK; }

static fmi3Status do_step(fmi3Instance i, fmi3Float64 t, fmi3Float64 h, fmi3Boolean final, fmi3Boolean *event,
                          fmi3Boolean *ends, fmi3Boolean *early, fmi3Float64 *last) {
    const instance *c = i;
    (void) final;
    *event = *ends = *early = fmi3False;
    c->state->t = *last = t + h;
    return fmi3OK;
}

static fmi3Status update_states(fmi3Instance i, fmi3Boolean *more, fmi3Boolean *ends, fmi3Boolean *nominals,
                                fmi3Boolean *values, fmi3Boolean *timed, fmi3Float64 *next) {
    const instance *c = i;
    node_state *state = c->state;
    fmi3Status status = fmi3OK;
    *more = *ends = *nominals = *values = *timed = fmi3False;
    *next = INFINITY;
    if (state->sends) status = note_sent(c);
    state->sends = false;
    if (status == fmi3OK && state->receives) status = take_operations(c);
    state->receives = false;
    return status == fmi3OK ? look_for_changes(c) : status;
}

static fmi3Status set_clock(fmi3Instance i, const fmi3ValueReference r[], size_t count, const fmi3Clock values[]) {
    const instance *c = i;
    for (size_t k = 0; k < count; k++) {
        if (r[k] == RX_CLOCK) c->state->receives = values[k];
        else if (r[k] == TX_CLOCK) c->state->sends = values[k];
        else return fail(c, "not a clock");
    }
    return fmi3OK;
}

static fmi3Status get_interval(fmi3Instance i, const fmi3ValueReference r[], size_t count, fmi3Float64 intervals[],
                               fmi3IntervalQualifier qualifiers[]) {
    const instance *c = i;
    const double next = earliest(c);
    for (size_t k = 0; k < count; k++) {
        if (r[k] != TX_CLOCK) return fail(c, "not a clock");
        qualifiers[k] = isfinite(next) ? fmi3IntervalChanged : fmi3IntervalNotYetKnown;
        intervals[k] = isfinite(next) ? fmax(next - c->state->t, 0.0) : 0.0;
    }
    return fmi3OK;
}

static fmi3Status get_binary(fmi3Instance i, const fmi3ValueReference r[], size_t count, size_t sizes[],
                             fmi3Binary values[], size_t value_count) {
    const instance *c = i;
    for (size_t k = 0; k < count && k < value_count; k++) {
        if (r[k] != TX_DATA) return fail(c, "not a binary");
        if (write_frames(c, &sizes[k]) != fmi3OK) return fmi3Error;
        values[k] = c->tx;
    }
    return fmi3OK;
}

static fmi3Status set_binary(fmi3Instance i, const fmi3ValueReference r[], size_t count, const size_t sizes[],
                             const fmi3Binary values[], size_t value_count) {
    instance *c = i;
    for (size_t k = 0; k < count && k < value_count; k++) {
        if (r[k] == LAYOUT) {
            if (read_layout(c, values[k], sizes[k]) != fmi3OK) return fmi3Error;
            continue;
        }
        if (r[k] != RX_DATA) return fail(c, "not a binary");
        if (sizes[k] > LARGEST_RECEIVED)
            return fail(c, "the node receives more than 16384 bytes of operations at one instant");
        if (sizes[k] > 0) memcpy(c->state->rx, values[k], sizes[k]);
        c->state->rx_size = (uint32_t)sizes[k];
    }
    return fmi3OK;
}

static fmi3Status get_float64(fmi3Instance i, const fmi3ValueReference r[], size_t count, fmi3Float64 values[],
                              size_t value_count) {
    const instance *c = i;
    for (size_t k = 0; k < count && k < value_count; k++) {
        if (r[k] == TIME) values[k] = c->state->t;
        else if (r[k] >= FIRST_SIGNAL && r[k] - FIRST_SIGNAL < (uint32_t)c->signal_count)
            values[k] = c->values[r[k] - FIRST_SIGNAL];
        else return fail(c, "not a Float64");
    }
    return fmi3OK;
}

static fmi3Status set_float64(fmi3Instance i, const fmi3ValueReference r[], size_t count, const fmi3Float64 values[],
                              size_t value_count) {
    const instance *c = i;
    for (size_t k = 0; k < count && k < value_count; k++) {
        if (r[k] < FIRST_SIGNAL || r[k] - FIRST_SIGNAL >= (uint32_t)c->signal_count) return fail(c, "not an input");
        c->values[r[k] - FIRST_SIGNAL] = values[k];
    }
    return fmi3OK;
}

static fmi3Status get_int32(fmi3Instance i, const fmi3ValueReference r[], size_t count, fmi3Int32 values[],
                            size_t value_count) {
    const instance *c = i;
    for (size_t k = 0; k < count && k < value_count; k++) {
        const uint32_t number = r[k] == SENT        ? c->state->sent
                                : r[k] == CONFIRMED ? c->state->confirmed
                                                    : c->state->received;
        values[k] = (int32_t)(number & INT32_MAX);
    }
    return fmi3OK;
}

static fmi3Status set_int32(fmi3Instance i, const fmi3ValueReference r[], size_t count, const fmi3Int32 values[],
                            size_t value_count) {
    instance *c = i;
    for (size_t k = 0; k < count && k < value_count; k++) {
        if (r[k] != SATURATES) return fail(c, "not a parameter");
        c->saturates = values[k] != 0;
    }
    return fmi3OK;
}

/* ---- states */

static fmi3Status get_state(fmi3Instance i, fmi3FMUState *state) {
    const instance *c = i;
    if (!*state) *state = malloc(c->size);
    if (!*state) return fail(c, "no memory");
    memcpy(*state, c->state, c->size);
    return fmi3OK;
}
static fmi3Status set_state(fmi3Instance i, fmi3FMUState state) {
    const instance *c = i;
    memcpy(c->state, state, c->size);
    return fmi3OK;
}
static fmi3Status free_state(fmi3Instance i, fmi3FMUState *state) {
    (void)i;
    free(*state);
    *state = NULL;
    return fmi3OK;
}
static fmi3Status state_size(fmi3Instance i, fmi3FMUState state, size_t *size) {
    (void)state;
    *size = ((const instance *)i)->size;
    return fmi3OK;
}
static fmi3Status serialize(fmi3Instance i, fmi3FMUState state, fmi3Byte bytes[], size_t size) {
    if (size < ((const instance *)i)->size) return fail(i, "the buffer is too small");
    memcpy(bytes, state, ((const instance *)i)->size);
    return fmi3OK;
}
static fmi3Status deserialize(fmi3Instance i, const fmi3Byte bytes[], size_t size, fmi3FMUState *state) {
    const instance *c = i;
    if (size != c->size) return fail(c, "the state is of another node");
    node_state *copy = malloc(size);
    if (!copy) return fail(c, "no memory");
    memcpy(copy, bytes, size);
    if (copy->rx_size > LARGEST_RECEIVED) {
        free(copy);
        return fail(c, "the state is damaged");
    }
    free(*state);
    *state = copy;
    return fmi3OK;
}

#define SYMBOL(name, function) {"fmi3" name, (bl_builtin_function)(function)}
static const bl_builtin_symbol SYMBOLS[] = {
    SYMBOL("GetVersion", get_version),
    SYMBOL("InstantiateCoSimulation", instantiate),
    SYMBOL("FreeInstance", free_instance),
    SYMBOL("EnterInitializationMode", enter_initialization),
    SYMBOL("ExitInitializationMode", do_nothing),
    SYMBOL("EnterEventMode", do_nothing),
    SYMBOL("EnterStepMode", do_nothing),
    SYMBOL("Terminate", do_nothing),
    SYMBOL("DoStep", do_step),
    SYMBOL("UpdateDiscreteStates", update_states),
    SYMBOL("SetClock", set_clock),
    SYMBOL("GetIntervalDecimal", get_interval),
    SYMBOL("GetBinary", get_binary),
    SYMBOL("SetBinary", set_binary),
    SYMBOL("GetFloat64", get_float64),
    SYMBOL("SetFloat64", set_float64),
    SYMBOL("GetInt32", get_int32),
    SYMBOL("SetInt32", set_int32),
    SYMBOL("GetFMUState", get_state),
    SYMBOL("SetFMUState", set_state),
    SYMBOL("FreeFMUState", free_state),
    SYMBOL("SerializedFMUStateSize", state_size),
    SYMBOL("SerializeFMUState", serialize),
    SYMBOL("DeserializeFMUState", deserialize),
    {NULL, NULL},
};

const bl_builtin bl_can_node = {"builtin:can_node", SYMBOLS};
