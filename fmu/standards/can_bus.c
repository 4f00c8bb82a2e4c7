/* A CAN bus between FMUs of FMI-LS-BUS 1.0: an FMU of FMI 3.0 for co-simulation within the engine.
 *
 * Node k has a bus terminal: a triggered input clock, upon which the bus takes the operations that the node has sent, and a
 * countdown clock, by which it sends operations at once. In between the bus is a sequence of frames. A frame begins when the bus is idle; of all
 * that wait then, the one with the smallest rank is sent. It ends after its bits, with exact stuffing: the others
 * receive it then, and its sender a confirmation. The bus is idle again after the three bits of the intermission.
 *
 *   buffering   a node has up to 64 frames here. The one with the smallest rank takes part in the arbitration, or the oldest one. What loses
 *               is kept, or, if the node has configured it, discarded at the end of the arbitration field with a notice
 *   instants    frames that arrive at the very start of another one take part in its arbitration
 *   states      an error passive node that has sent waits 8 bits more before it sends again. Nodes that are off the bus neither send nor receive; without
 *               a receiver there is no confirmation
 *   errors      every error_every-th frame fails at its CRC: an error frame follows, all nodes get a bus error, and the frame is not repeated */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmu/fmi3.h"
#include "fmu/importer/host/builtin.h"
#include "fmu/standards/can_operations.h"

enum {
    TIME,
    BAUD_RATE,
    DATA_BAUD_RATE,
    FIFO,
    ERROR_EVERY,
    NODES,
    FRAMES,
    LOAD,
    WAITING,
    FIRST_NODE = 16,
    NODE_VARIABLES = 4
};
enum { RX_DATA, TX_DATA, RX_CLOCK, TX_CLOCK };
enum { QUEUE = 64, LARGEST_NODES = 32, RECEIVED = 16384, SENT = 8192 };
enum { SET_BAUD_RATE = 1, SET_DATA_BAUD_RATE, SET_XL_BAUD_RATE, SET_ARBITRATION_LOST };
enum { ERROR_ACTIVE = 1, ERROR_PASSIVE, BUS_OFF };
enum { DISCARD_AND_NOTIFY = 2, CRC_ERROR = 4, PRIMARY = 1, SECONDARY = 2 };

typedef struct {
    bl_can_frame frame;
    bool contends; /* in the arbitration of the present frame */
} waiting_frame;

typedef struct {
    int32_t count, status, behavior;
    uint32_t baud_rate, data_baud_rate; /* as configured; 0: not yet */
    double resumes_at; /* end of the suspension */
    bool receives, sends;
    uint32_t received_size, sent_size;
    waiting_frame queue[QUEUE]; /* the oldest one first */
    unsigned char received[RECEIVED], sent[SENT];
} bus_node;

/* Everything that a saved state holds. Nodes follow. */
typedef struct {
    double t, start_time, idle_at, begin, notice_at, end, busy_time;
    int32_t node_count, fifo, error_every, sender;
    uint32_t baud_rate, data_baud_rate, frames;
    bool is_busy, has_notice, fails, is_initialized;
    bl_can_frame frame;
    bus_node nodes[];
} can_bus;

typedef struct {
    can_bus *bus;
    size_t size;
    void *environment;
    fmi3LogMessageCallback log;
} instance;

static fmi3Status fail(const instance *c, const char *text) {
    if (c->log) c->log(c->environment, fmi3Error, "logStatusError", text);
    return fmi3Error;
}

static double slack(double t) { return 1e-12 + 1e-15 * fabs(t); }

/* ---- operations that are sent */

static fmi3Status send_bytes(const instance *c, int32_t node, const unsigned char *bytes, uint32_t size) {
    bus_node *n = &c->bus->nodes[node];
    if (n->sent_size + size > SENT) return fail(c, "a node receives more than 8192 bytes of operations at one instant");
    memcpy(n->sent + n->sent_size, bytes, size);
    n->sent_size += size;
    return fmi3OK;
}

static fmi3Status send(const instance *c, int32_t node, bl_can_operation *o) {
    bl_can_end(o);
    return send_bytes(c, node, o->bytes, o->size);
}

static fmi3Status send_short(const instance *c, int32_t node, uint32_t code, uint32_t identifier) {
    bl_can_operation o = bl_can_begin(code);
    bl_can_add(&o, identifier, 4);
    return send(c, node, &o);
}

static fmi3Status send_frame(const instance *c, int32_t node, const bl_can_frame *f) {
    const bl_can_operation o = bl_can_write_frame(f);
    return send_bytes(c, node, o.bytes, o.size);
}

static fmi3Status send_error(const instance *c, int32_t node, uint32_t identifier, bool detects, bool is_sender) {
    bl_can_operation o = bl_can_begin(CAN_BUS_ERROR);
    bl_can_add(&o, identifier, 4);
    bl_can_add(&o, CRC_ERROR, 1);
    bl_can_add(&o, detects ? PRIMARY : SECONDARY, 1);
    bl_can_add(&o, is_sender, 1);
    return send(c, node, &o);
}

/* ---- operations that are received */

static fmi3Status enqueue(const instance *c, int32_t node, const bl_can_frame *frame) {
    bus_node *n = &c->bus->nodes[node];
    char text[120];
    if (n->status == BUS_OFF) return fmi3OK; /* it is not on the bus */
    if (n->count == QUEUE) {
        snprintf(text, sizeof text, "more than %d frames of node %d wait for the bus", QUEUE, (int)node + 1);
        return fail(c, text);
    }
    n->queue[n->count++] = (waiting_frame){*frame, false};
    return fmi3OK;
}

/* All nodes must agree on a rate. */
static fmi3Status configure_rate(const instance *c, int32_t node, uint32_t *own, uint32_t *shared, uint32_t rate) {
    char text[160];
    *own = rate;
    if (*shared == 0) *shared = rate;
    if (*shared == rate && rate > 0) return fmi3OK;
    snprintf(text, sizeof text, "node %d configures %lu bit/s, and the bus has %lu bit/s", (int)node + 1,
             (unsigned long)rate, (unsigned long)*shared);
    return fail(c, text);
}

static fmi3Status reject(const instance *c, int32_t node, const unsigned char *o, uint32_t length) {
    bl_can_operation answer = bl_can_begin(CAN_FORMAT_ERROR);
    const uint32_t kept = length < CAN_LARGEST_DATA ? length : CAN_LARGEST_DATA;
    bl_can_add(&answer, kept, 2);
    memcpy(answer.bytes + answer.size, o, kept);
    answer.size += kept;
    return send(c, node, &answer);
}

static fmi3Status take_configuration(const instance *c, int32_t node, const unsigned char *o, uint32_t length) {
    can_bus *bus = c->bus;
    bus_node *n = &bus->nodes[node];
    const uint32_t kind = length > CAN_OPERATION_HEAD ? o[CAN_OPERATION_HEAD] : 0;
    if (kind == SET_ARBITRATION_LOST && length == CAN_OPERATION_HEAD + 2) {
        n->behavior = o[CAN_OPERATION_HEAD + 1];
        return fmi3OK;
    }
    if (kind < SET_BAUD_RATE || kind > SET_XL_BAUD_RATE || length != CAN_OPERATION_HEAD + 5)
        return reject(c, node, o, length);
    const uint32_t rate = bl_can_read_number(o + CAN_OPERATION_HEAD + 1, 4);
    if (kind == SET_BAUD_RATE) return configure_rate(c, node, &n->baud_rate, &bus->baud_rate, rate);
    if (kind == SET_DATA_BAUD_RATE) return configure_rate(c, node, &n->data_baud_rate, &bus->data_baud_rate, rate);
    return fmi3OK; /* CAN XL */
}

static fmi3Status take_operation(const instance *c, int32_t node, const unsigned char *o, uint32_t length) {
    can_bus *bus = c->bus;
    const uint32_t code = bl_can_read_number(o, 4);
    fmi3Status status = fmi3OK;
    bl_can_frame frame;
    switch (code) {
        case CAN_TRANSMIT:
        case CAN_FD_TRANSMIT:
            if (!bl_can_read_frame(o, length, &frame)) return reject(c, node, o, length);
            return enqueue(c, node, &frame);
        case CAN_XL_TRANSMIT: return fail(c, "a node sends a frame of CAN XL, which this bus does not have");
        case CAN_CONFIGURATION: return take_configuration(c, node, o, length);
        case CAN_STATUS:
            if (length != CAN_OPERATION_HEAD + 1 || o[CAN_OPERATION_HEAD] < ERROR_ACTIVE ||
                o[CAN_OPERATION_HEAD] > BUS_OFF)
                return reject(c, node, o, length);
            bus->nodes[node].status = o[CAN_OPERATION_HEAD];
            if (o[CAN_OPERATION_HEAD] == BUS_OFF) bus->nodes[node].count = 0;
            return fmi3OK;
        case CAN_WAKEUP:
            for (int32_t k = 0; k < bus->node_count && status == fmi3OK; k++)
                if (k != node) status = send_bytes(c, k, o, length);
            return status;
        case CAN_FORMAT_ERROR:
        case CAN_CONFIRM:
        case CAN_ARBITRATION_LOST:
        case CAN_BUS_ERROR: return fmi3OK; /* for nodes */
        default: return reject(c, node, o, length);
    }
}

static fmi3Status take_operations(const instance *c, int32_t node) {
    bus_node *n = &c->bus->nodes[node];
    fmi3Status status = fmi3OK;
    uint32_t at = 0;
    while (at < n->received_size && status == fmi3OK) {
        const uint32_t rest = n->received_size - at;
        const uint32_t length = bl_can_next_length(n->received + at, rest);
        if (length == 0) {
            status = reject(c, node, n->received + at, rest);
            break;
        }
        status = take_operation(c, node, n->received + at, length);
        at += length;
    }
    n->received_size = 0;
    return status;
}

/* ---- the bus */

/* The frame with which a node takes part in an arbitration; -1: none waits. */
static int32_t choose_frame(const can_bus *bus, const bus_node *n) {
    int32_t best = n->count > 0 ? 0 : -1;
    for (int32_t k = 1; k < n->count && !bus->fifo; k++)
        if (bl_can_rank(&n->queue[k].frame) < bl_can_rank(&n->queue[best].frame)) best = k;
    return best;
}

static void remove_frame(bus_node *n, int32_t number) {
    memmove(&n->queue[number], &n->queue[number + 1], (size_t)(n->count - number - 1) * sizeof *n->queue);
    n->count--;
}

/* When the next frame may begin; infinite if none waits. */
static double find_begin(const can_bus *bus) {
    double first = INFINITY;
    for (int32_t k = 0; k < bus->node_count; k++)
        if (bus->nodes[k].count > 0) first = fmin(first, fmax(bus->idle_at, bus->nodes[k].resumes_at));
    return first;
}

static fmi3Status check_rates(const instance *c, const bl_can_frame *f) {
    if (c->bus->baud_rate == 0)
        return fail(c, "a frame is sent, and neither a node nor baud_rate has set the rate of the bus");
    if (f->is_fd && f->switches_rate && c->bus->data_baud_rate == 0)
        return fail(c, "a CAN FD frame switches the rate, and neither a node nor data_baud_rate has set it");
    return fmi3OK;
}

static bool contends(const bus_node *n) {
    int32_t k = 0;
    while (k < n->count && !n->queue[k].contends) k++;
    return k < n->count;
}

/* The frame that wins at `begin` is on the bus from there on; it stays in the queue of its node until its end. */
static fmi3Status arbitrate(const instance *c, double begin) {
    can_bus *bus = c->bus;
    uint64_t best = UINT64_MAX; /* above all ranks */
    bool is_shared = false;
    int32_t contenders = 0;
    bus->has_notice = false;
    for (int32_t k = 0; k < bus->node_count; k++) {
        bus_node *n = &bus->nodes[k];
        const int32_t number = n->resumes_at > begin + slack(begin) ? -1 : choose_frame(bus, n);
        for (int32_t i = 0; i < n->count; i++) n->queue[i].contends = i == number;
        if (number < 0) continue;
        const uint64_t rank = bl_can_rank(&n->queue[number].frame);
        contenders++;
        is_shared = rank == best || (is_shared && rank > best);
        if (rank >= best) continue;
        best = rank;
        bus->sender = k;
        bus->frame = n->queue[number].frame;
    }
    if (contenders == 0) return fmi3OK;
    if (is_shared) {
        char text[120];
        snprintf(text, sizeof text, "two nodes send the identifier 0x%lX at the same time",
                 (unsigned long)bus->frame.identifier);
        return fail(c, text);
    }
    if (check_rates(c, &bus->frame) != fmi3OK) return fmi3Error;
    const bl_can_bits bits = bl_can_count_bits(&bus->frame);
    const double bit = 1.0 / bus->baud_rate;
    for (int32_t k = 0; k < bus->node_count; k++)
        bus->has_notice |= k != bus->sender && contends(&bus->nodes[k]) && bus->nodes[k].behavior == DISCARD_AND_NOTIFY;
    bus->begin = begin;
    bus->notice_at = begin + bl_can_arbitration_bits(&bus->frame) * bit;
    bus->end = begin + bits.nominal * bit + (bits.fast > 0 ? bits.fast / (double)bus->data_baud_rate : 0.0);
    bus->fails = bus->error_every > 0 && (bus->frames + 1) % (uint32_t)bus->error_every == 0;
    if (bus->fails) bus->end += (CAN_ERROR_FRAME - CAN_END_OF_FRAME) * bit; /* instead of the end of the frame */
    bus->is_busy = true;
    return fmi3OK;
}

/* At the end of the arbitration field: nodes that do not buffer lose their frames. */
static fmi3Status give_notice(const instance *c) {
    can_bus *bus = c->bus;
    fmi3Status status = fmi3OK;
    bus->has_notice = false;
    for (int32_t k = 0; k < bus->node_count; k++) {
        bus_node *n = &bus->nodes[k];
        if (k == bus->sender || n->behavior != DISCARD_AND_NOTIFY) continue;
        for (int32_t i = n->count - 1; i >= 0 && status == fmi3OK; i--) {
            if (!n->queue[i].contends) continue;
            status = send_short(c, k, CAN_ARBITRATION_LOST, n->queue[i].frame.identifier);
            remove_frame(n, i);
        }
    }
    return status;
}

static fmi3Status end_frame(const instance *c) {
    can_bus *bus = c->bus;
    bus_node *sender = &bus->nodes[bus->sender];
    const uint32_t identifier = bus->frame.identifier;
    fmi3Status status = fmi3OK;
    bool is_received = false, is_detected = false;
    for (int32_t i = sender->count - 1; i >= 0; i--)
        if (sender->queue[i].contends) remove_frame(sender, i);
    for (int32_t k = 0; k < bus->node_count && status == fmi3OK; k++) {
        if (bus->nodes[k].status == BUS_OFF) continue;
        const bool is_sender = k == bus->sender;
        if (bus->fails) status = send_error(c, k, identifier, !is_sender && !is_detected, is_sender);
        else if (!is_sender) status = send_frame(c, k, &bus->frame);
        is_detected |= !is_sender;
        is_received |= !is_sender;
    }
    if (status == fmi3OK && is_received && !bus->fails && sender->status != BUS_OFF)
        status = send_short(c, bus->sender, CAN_CONFIRM, identifier);
    bus->frames++;
    bus->idle_at = bus->end + CAN_INTERMISSION / (double)bus->baud_rate;
    if (sender->status == ERROR_PASSIVE) sender->resumes_at = bus->idle_at + CAN_SUSPENSION / (double)bus->baud_rate;
    bus->busy_time += bus->idle_at - bus->begin;
    bus->is_busy = false;
    return status;
}

/* What the bus does at t, after nodes have sent. */
static fmi3Status run_bus(const instance *c, bool has_new) {
    can_bus *bus = c->bus;
    const double t = bus->t, now = t + slack(t);
    fmi3Status status = fmi3OK;
    if (bus->is_busy && has_new && bus->begin >= t - slack(t)) status = arbitrate(c, bus->begin);
    if (status == fmi3OK && bus->is_busy && bus->has_notice && bus->notice_at <= now) status = give_notice(c);
    if (status == fmi3OK && bus->is_busy && bus->end <= now) status = end_frame(c);
    const double first = find_begin(bus);
    if (status == fmi3OK && !bus->is_busy && first <= now) status = arbitrate(c, first >= t - slack(t) ? first : t);
    return status;
}

static double next_time(const can_bus *bus) {
    if (bus->is_busy) return bus->has_notice ? bus->notice_at : bus->end;
    return find_begin(bus);
}

/* ---- functions of FMI */

static const char *get_version(void) { return "3.0"; }

static int resize(instance *c, int32_t count) {
    const size_t size = sizeof(can_bus) + (size_t)count * sizeof(bus_node);
    can_bus *bus = calloc(1, size);
    if (!bus) return 0;
    if (c->bus) memcpy(bus, c->bus, sizeof *bus);
    bus->node_count = count;
    for (int32_t k = 0; k < count; k++) bus->nodes[k].status = ERROR_ACTIVE;
    free(c->bus);
    c->bus = bus;
    c->size = size;
    return 1;
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
    if (resize(c, 2)) return c;
    free(c);
    return NULL;
}

static void free_instance(fmi3Instance i) {
    instance *c = i;
    free(c->bus);
    free(c);
}

static fmi3Status enter_initialization(fmi3Instance i, fmi3Boolean has_tolerance, fmi3Float64 tolerance,
                                       fmi3Float64 start, fmi3Boolean has_stop, fmi3Float64 stop) {
    const instance *c = i;
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    c->bus->t = c->bus->start_time = c->bus->idle_at = start;
    for (int32_t k = 0; k < c->bus->node_count; k++) c->bus->nodes[k].resumes_at = start;
    return fmi3OK;
}

static fmi3Status do_nothing(fmi3Instance i) { return (void)i, fmi3OK; }

static fmi3Status do_step(fmi3Instance i, fmi3Float64 t, fmi3Float64 h, fmi3Boolean final, fmi3Boolean *event,
                          fmi3Boolean *ends, fmi3Boolean *early, fmi3Float64 *last) {
    const instance *c = i;
    (void) final;
    *event = *ends = *early = fmi3False;
    c->bus->t = *last = t + h;
    return fmi3OK;
}

static fmi3Status update_states(fmi3Instance i, fmi3Boolean *more, fmi3Boolean *ends, fmi3Boolean *nominals,
                                fmi3Boolean *values, fmi3Boolean *timed, fmi3Float64 *next) {
    const instance *c = i;
    can_bus *bus = c->bus;
    bool has_new = false;
    fmi3Status status = fmi3OK;
    *more = *ends = *nominals = *values = fmi3False;
    for (int32_t k = 0; k < bus->node_count; k++)
        if (bus->nodes[k].sends) { /* it was read */
            bus->nodes[k].sends = false;
            bus->nodes[k].sent_size = 0;
        }
    for (int32_t k = 0; k < bus->node_count && status == fmi3OK; k++)
        if (bus->nodes[k].receives) {
            bus->nodes[k].receives = false;
            has_new = true;
            status = take_operations(c, k);
        }
    if (status == fmi3OK) status = run_bus(c, has_new);
    *next = next_time(bus);
    *timed = isfinite(*next) != 0;
    return status;
}

/* The variable of a node that a reference is; -1: it is of none. */
static int find_variable(const instance *c, fmi3ValueReference reference, bus_node **node) {
    const int64_t number = ((int64_t)reference - FIRST_NODE) / NODE_VARIABLES;
    if (reference < FIRST_NODE || number >= c->bus->node_count) return -1;
    *node = &c->bus->nodes[number];
    return (int)((reference - FIRST_NODE) % NODE_VARIABLES);
}

static fmi3Status set_clock(fmi3Instance i, const fmi3ValueReference r[], size_t count, const fmi3Clock values[]) {
    const instance *c = i;
    bus_node *node = NULL;
    for (size_t k = 0; k < count; k++) {
        const int what = find_variable(c, r[k], &node);
        if (what == RX_CLOCK) node->receives = values[k];
        else if (what == TX_CLOCK) node->sends = values[k];
        else return fail(c, "not a clock");
    }
    return fmi3OK;
}

static fmi3Status get_interval(fmi3Instance i, const fmi3ValueReference r[], size_t count, fmi3Float64 intervals[],
                               fmi3IntervalQualifier qualifiers[]) {
    const instance *c = i;
    bus_node *node = NULL;
    for (size_t k = 0; k < count; k++) {
        if (find_variable(c, r[k], &node) != TX_CLOCK) return fail(c, "not a clock");
        intervals[k] = 0.0;
        qualifiers[k] = node->sent_size > 0 ? fmi3IntervalChanged : fmi3IntervalNotYetKnown;
    }
    return fmi3OK;
}

static fmi3Status get_binary(fmi3Instance i, const fmi3ValueReference r[], size_t count, size_t sizes[],
                             fmi3Binary values[], size_t value_count) {
    const instance *c = i;
    bus_node *node = NULL;
    for (size_t k = 0; k < count && k < value_count; k++) {
        if (find_variable(c, r[k], &node) != TX_DATA) return fail(c, "not a binary");
        sizes[k] = node->sent_size;
        values[k] = node->sent;
    }
    return fmi3OK;
}

static fmi3Status set_binary(fmi3Instance i, const fmi3ValueReference r[], size_t count, const size_t sizes[],
                             const fmi3Binary values[], size_t value_count) {
    const instance *c = i;
    bus_node *node = NULL;
    for (size_t k = 0; k < count && k < value_count; k++) {
        if (find_variable(c, r[k], &node) != RX_DATA) return fail(c, "not a binary");
        if (sizes[k] > RECEIVED) return fail(c, "a node sends more than 16384 bytes of operations at one instant");
        if (sizes[k] > 0) memcpy(node->received, values[k], sizes[k]);
        node->received_size = (uint32_t)sizes[k];
    }
    return fmi3OK;
}

static fmi3Status get_float64(fmi3Instance i, const fmi3ValueReference r[], size_t count, fmi3Float64 values[],
                              size_t value_count) {
    const can_bus *bus = ((const instance *)i)->bus;
    const double elapsed = bus->t - bus->start_time, now = bus->is_busy ? bus->t - bus->begin : 0.0;
    const double rest = !bus->is_busy && bus->idle_at > bus->t ? bus->idle_at - bus->t : 0.0;
    for (size_t k = 0; k < count && k < value_count; k++) {
        if (r[k] == TIME) values[k] = bus->t;
        else if (r[k] == LOAD) values[k] = elapsed > 0.0 ? (bus->busy_time + now - rest) / elapsed : 0.0;
        else return fail(i, "not a Float64");
    }
    return fmi3OK;
}

static fmi3Status get_int32(fmi3Instance i, const fmi3ValueReference r[], size_t count, fmi3Int32 values[],
                            size_t value_count) {
    const can_bus *bus = ((const instance *)i)->bus;
    for (size_t k = 0; k < count && k < value_count; k++) {
        values[k] = r[k] == FRAMES ? (int32_t)bus->frames : 0;
        for (int32_t n = 0; n < bus->node_count && r[k] == WAITING; n++) values[k] += bus->nodes[n].count;
        const bus_node *sender = &bus->nodes[bus->sender];
        for (int32_t n = 0; n < sender->count && r[k] == WAITING && bus->is_busy; n++)
            values[k] -= sender->queue[n].contends; /* that on the bus, unless its node has cancelled it */
    }
    return fmi3OK;
}

static fmi3Status set_int32(fmi3Instance i, const fmi3ValueReference r[], size_t count, const fmi3Int32 values[],
                            size_t value_count) {
    instance *c = i;
    for (size_t k = 0; k < count && k < value_count; k++) {
        const int32_t value = values[k];
        if (value < 0) return fail(c, "a parameter is negative");
        switch (r[k]) {
            case BAUD_RATE: c->bus->baud_rate = (uint32_t)value; break;
            case DATA_BAUD_RATE: c->bus->data_baud_rate = (uint32_t)value; break;
            case FIFO: c->bus->fifo = value; break;
            case ERROR_EVERY: c->bus->error_every = value; break;
            case NODES:
                if (value < 1 || value > LARGEST_NODES || !resize(c, value)) return fail(c, "no room for the nodes");
                break;
            default: return fail(c, "not a parameter");
        }
    }
    return fmi3OK;
}

/* ---- states */

static fmi3Status get_state(fmi3Instance i, fmi3FMUState *state) {
    const instance *c = i;
    if (!*state) *state = malloc(c->size);
    if (!*state) return fail(c, "no memory");
    memcpy(*state, c->bus, c->size);
    return fmi3OK;
}
static fmi3Status set_state(fmi3Instance i, fmi3FMUState state) {
    const instance *c = i;
    memcpy(c->bus, state, c->size);
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
/* Bytes may come from anywhere: numbers that are places are checked. */
static fmi3Status deserialize(fmi3Instance i, const fmi3Byte bytes[], size_t size, fmi3FMUState *state) {
    const instance *c = i;
    if (size != c->size) return fail(c, "the state is of another bus");
    can_bus *copy = malloc(size);
    if (!copy) return fail(c, "no memory");
    memcpy(copy, bytes, size);
    bool is_sound = copy->node_count == c->bus->node_count && copy->sender >= 0 && copy->sender < copy->node_count &&
                    bl_can_is_valid(&copy->frame);
    for (int32_t k = 0; is_sound && k < copy->node_count; k++) {
        const bus_node *n = &copy->nodes[k];
        is_sound = n->count >= 0 && n->count <= QUEUE && n->sent_size <= SENT && n->received_size <= RECEIVED;
        for (int32_t q = 0; is_sound && q < n->count; q++) is_sound = bl_can_is_valid(&n->queue[q].frame);
    }
    if (!is_sound) {
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

const bl_builtin bl_can_bus = {"builtin:can_bus", SYMBOLS};
