/* Clocks of FMUs of FMI 3.0: when they are activated, and the values of their variables. */
#include "fmu/importer/host/clocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "blocks/core/formula/formula.h"
#include "fmu/fmi3.h"

/* The time that the FMU has reached; of each clock: the time from which its activations are counted, their number since, the interval,
   the next instant, whether it is active, and whether it has been in the present step. The values of clocked outputs follow. */
enum { CLOCK_BASE, CLOCK_COUNT, CLOCK_INTERVAL, CLOCK_NEXT, CLOCK_ACTIVE, CLOCK_SEEN, CLOCK_STATE };
enum { CLOCKS_REACHED, CLOCKS_HEAD };

typedef struct {
    uint32_t reference;
    int32_t kind, number; /* of its name */
    double interval, shift; /* of the description */
    bool is_port, is_connected; /* to a clock of another FMU */
    int32_t port, element;
    double *given; /* the signal of a port that is an output */
} fmu_clock;

/* A clocked variable. */
typedef struct {
    bl_fmu_group group; /* of an output, its places are those where the values are held */
    uint64_t clocks;
    bool is_input;
    double *held;
    double *const *target; /* the port of an output, and where in it */
    int32_t element;
} clocked_variable;

struct bl_fmu_clocks {
    fmi3SetClockTYPE *SetClock;
    fmi3GetClockTYPE *GetClock;
    fmi3GetIntervalDecimalTYPE *GetIntervalDecimal;
    fmi3GetShiftDecimalTYPE *GetShiftDecimal;
    fmi3SetIntervalDecimalTYPE *SetIntervalDecimal;
    int32_t count, variable_count;
    bool are_ports;
    fmu_clock *clocks;
    clocked_variable *variables;
    double *state, *noted; /* `noted`: signals of clocked outputs, then of clocks */
    size_t state_count;
    int32_t first_name;
    int32_t first_event; /* the number of the event of the first clock */
};

static double *state_of(const bl_fmu_clocks *c, int32_t clock) {
    return c->state + CLOCKS_HEAD + (ptrdiff_t)clock * CLOCK_STATE;
}
static bool is_timed(const fmu_clock *clock) { return clock->kind != HOST_CLOCK_OUTPUT; }

int bl_clocks_check(const int32_t *integers, int64_t count, int64_t value_count) {
    if (count == 0) return 1;
    const int64_t clocks = integers[0], rest = count - 1 - clocks * HOST_CLOCK_FIELDS;
    if (clocks < 1 || clocks > HOST_LARGEST_CLOCKS || rest < 0 || rest % HOST_CLOCKED_FIELDS != 0) return 0;
    const int32_t *record = integers + 1;
    for (int64_t k = 0; k < clocks; k++, record += HOST_CLOCK_FIELDS) {
        const double interval = bl_formula_constant(record + 2), shift = bl_formula_constant(record + 4);
        if (record[1] < 0 || record[1] >= HOST_CLOCK_KINDS || !(shift >= 0.0)) return 0;
        if (record[1] <= HOST_CLOCK_SET && !(interval > 0.0 && isfinite(interval) && isfinite(shift))) return 0;
    }
    /* In ascending order: none occurs twice. */
    for (int64_t k = 0, least = 0; k < rest / HOST_CLOCKED_FIELDS; k++, record += HOST_CLOCKED_FIELDS) {
        if (record[0] < least || record[0] >= value_count) return 0;
        least = (int64_t)record[0] + 1;
    }
    return 1;
}

static const int32_t *clock_integers(const bl_block *b) {
    return bl_fmu_parameter_records(b) + (ptrdiff_t)b->i[HOST_PARAMETERS] * HOST_PARAMETER_FIELDS;
}

/* The port and the element of a value; NULL: there is none. */
static const int32_t *find_value(const bl_block *b, int32_t number, bool *is_input, int32_t *port, int32_t *element) {
    const int32_t *record = bl_fmu_input_records(b);
    for (int side = 0; side < 2; side++) {
        const int32_t count = side ? b->y_count : b->u_count, *widths = side ? b->y_width : b->u_width;
        const int32_t fields = side ? HOST_OUTPUT_FIELDS : HOST_INPUT_FIELDS;
        for (*port = 0; *port < count; ++*port)
            for (*element = 0; *element < widths[*port]; ++*element, record += fields)
                if (number-- == 0) {
                    *is_input = side == 0;
                    return record;
                }
    }
    return NULL;
}

/* The number of values of the variable that begins with a record. */
static int32_t count_values(const int32_t *record, int32_t fields, int32_t limit) {
    int32_t count = 1;
    while (count < limit && record[count * fields + 1] & HOST_CONTINUES) count++;
    return count;
}

static int open_variable(const bl_block *b, bl_fmu_clocks *c, clocked_variable *v, const int32_t *entry,
                         double **held) {
    int32_t port = 0, element = 0;
    const int32_t *record = find_value(b, entry[0], &v->is_input, &port, &element);
    if (!record || record[1] & HOST_CONTINUES) return 0; /* values of two variables are not the same ones */
    const int32_t fields = v->is_input ? HOST_INPUT_FIELDS : HOST_OUTPUT_FIELDS,
                  width = v->is_input ? b->u_width[port] : b->y_width[port],
                  count = count_values(record, fields, width - element);
    v->clocks = (uint64_t)(uint32_t)entry[1] | (uint64_t)(uint32_t)entry[2] << 32;
    v->clocks &= c->count == HOST_LARGEST_CLOCKS ? UINT64_MAX : (UINT64_C(1) << c->count) - 1;
    if (!bl_fmu_allocate_group(&v->group, record[1] & HOST_TYPE_MASK, count)) return 0;
    v->group.is_discrete = v->is_input;
    for (int32_t k = 0; k < count; k++) {
        const double *place = v->is_input ? b->u[port] + element + k : *held + k;
        bl_fmu_add_value(&v->group, record + k * fields, port, element + k, entry[0] + k, place);
    }
    v->group.in_a_row = 1;
    if (v->is_input) return 1;
    for (int32_t k = 0; k < count && bl_fmu_is_text(&v->group); k++)
        if ((v->group.orders[k] = bl_fmu_open_text(b->engine, v->group.type)) < 0) return 0;
    v->held = *held;
    *held += count;
    v->target = b->y + port;
    v->element = element;
    return 1;
}

/* Finds the ports of clocks. */
static void find_ports(const bl_block *b, bl_fmu_clocks *c) {
    const int32_t *record = bl_fmu_input_records(b);
    for (int side = 0; side < 2; side++) {
        const int32_t count = side ? b->y_count : b->u_count, *widths = side ? b->y_width : b->u_width;
        for (int32_t p = 0; p < count; p++)
            for (int32_t i = 0; i < widths[p]; i++, record += side ? HOST_OUTPUT_FIELDS : HOST_INPUT_FIELDS)
                for (int32_t k = 0; k < c->count && (record[1] & HOST_TYPE_MASK) == HOST_CLOCK; k++) {
                    fmu_clock *clock = &c->clocks[k];
                    const bool is_taken = clock->kind == HOST_CLOCK_TRIGGERED;
                    if (clock->reference != (uint32_t)record[0] || is_taken != (side == 0)) continue;
                    clock->is_port = c->are_ports = true;
                    clock->port = p;
                    clock->element = i;
                    clock->given = side ? b->y[p] + i : NULL;
                }
    }
}

int bl_clocks_open(const bl_block *b, bl_fmu_clocks **clocks) {
    const int32_t *integers = clock_integers(b);
    const int64_t total = b->i + b->i_count - integers;
    *clocks = NULL;
    if (total == 0) return 1;
    bl_fmu_clocks *c = *clocks = calloc(1, sizeof *c);
    if (!c) return 0;
    c->count = integers[0];
    c->variable_count = (int32_t)((total - 1 - (int64_t)c->count * HOST_CLOCK_FIELDS) / HOST_CLOCKED_FIELDS);
    int64_t outputs = 0;
    c->first_name = b->i[HOST_PARAMETERS];
    c->first_event = FIRST_CLOCK_EVENT + b->i[HOST_INDICATORS];
    for (int32_t p = 0; p < b->u_count; p++) c->first_name += b->u_width[p];
    for (int32_t p = 0; p < b->y_count; p++) outputs += b->y_width[p];
    c->first_name += (int32_t)outputs;
    c->clocks = calloc((size_t)c->count, sizeof *c->clocks);
    c->variables = calloc((size_t)c->variable_count + 1, sizeof *c->variables);
    c->state = calloc(CLOCKS_HEAD + (size_t)c->count * CLOCK_STATE + (size_t)outputs, sizeof *c->state);
    c->noted = calloc((size_t)outputs + (size_t)c->count, sizeof *c->noted);
    if (!c->clocks || !c->variables || !c->state || !c->noted) return 0;
    const int32_t *record = integers + 1;
    for (int32_t k = 0; k < c->count; k++, record += HOST_CLOCK_FIELDS)
        c->clocks[k] = (fmu_clock){.reference = (uint32_t)record[0],
                                   .kind = record[1],
                                   .number = c->first_name + k,
                                   .interval = bl_formula_constant(record + 2),
                                   .shift = bl_formula_constant(record + 4)};
    find_ports(b, c);
    double *held = state_of(c, c->count);
    for (int32_t k = 0; k < c->variable_count; k++, record += HOST_CLOCKED_FIELDS)
        if (!open_variable(b, c, &c->variables[k], record, &held)) return 0;
    c->state_count = (size_t)(held - c->state);
    return 1;
}

void bl_clocks_close(bl_fmu_clocks *c) {
    if (!c) return;
    for (int32_t k = 0; c->variables && k < c->variable_count; k++) free(c->variables[k].group.memory);
    free(c->variables);
    free(c->clocks);
    free(c->state);
    free(c->noted);
    free(c);
}

const char *bl_clocks_find(bl_fmu_clocks *c, void *library) {
    bool sets = false, gets = false, asks = false, shifts = false, tells = false;
    for (int32_t k = 0; k < c->count; k++) {
        const int32_t kind = c->clocks[k].kind;
        sets |= kind != HOST_CLOCK_OUTPUT;
        gets |= kind == HOST_CLOCK_OUTPUT;
        asks |= kind >= HOST_CLOCK_ASKED && kind <= HOST_CLOCK_COUNTDOWN;
        shifts |= kind == HOST_CLOCK_ASKED || kind == HOST_CLOCK_TUNABLE;
        tells |= kind == HOST_CLOCK_SET;
    }
    const struct {
        const char *name;
        void *function;
        bool needed;
    } wanted[] = {
        {"fmi3SetClock", &c->SetClock, sets},
        {"fmi3GetClock", &c->GetClock, gets},
        {"fmi3GetIntervalDecimal", &c->GetIntervalDecimal, asks},
        {"fmi3GetShiftDecimal", &c->GetShiftDecimal, shifts},
        {"fmi3SetIntervalDecimal", &c->SetIntervalDecimal, tells},
    };
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
        void *found = bl_fmu_find_function(library, wanted[k].name);
        if (!found && wanted[k].needed) return wanted[k].name;
        memcpy(wanted[k].function, &found, sizeof found);
    }
    return NULL;
}

#define CLOCK_CALL(f, name, ...) bl_fmu_leave_call(f, (int)(f)->clocks->name((f)->component, __VA_ARGS__))

static int refuse_interval(bl_fmu_host *f, const fmu_clock *clock, const char *what, double value, double t) {
    f->mode = HOST_BROKEN;
    return bl_fmu_error(f, "its clock `%.100s` has the %s %.9g s at t = %.9g", bl_fmu_variable(f, clock->number), what,
                        value, t);
}

/* Asks for the interval of a clock; *qualifier is fmi3IntervalNotYetKnown if there is none. */
static int ask_interval(bl_fmu_host *f, const fmu_clock *clock, double t, double *interval,
                        fmi3IntervalQualifier *qualifier) {
    *qualifier = fmi3IntervalNotYetKnown;
    *interval = 0.0;
    const int status = bl_host_status(f, CLOCK_CALL(f, GetIntervalDecimal, &clock->reference, 1, interval, qualifier),
                                      "GetIntervalDecimal", t);
    if (status != BL_OK || *qualifier == fmi3IntervalNotYetKnown) return status;
    const bool is_periodic = clock->kind <= HOST_CLOCK_TUNABLE;
    if (!(is_periodic ? *interval > 0.0 : *interval >= 0.0) || !isfinite(*interval))
        return refuse_interval(f, clock, "interval", *interval, t);
    return BL_OK;
}

static void count_from(double *state, double base, double interval) {
    state[CLOCK_BASE] = base;
    state[CLOCK_COUNT] = 0.0;
    state[CLOCK_INTERVAL] = interval;
    state[CLOCK_NEXT] = base;
}

static int begin_clock(bl_fmu_host *f, const fmu_clock *clock, double *state, double t) {
    double interval = clock->interval, shift = clock->shift;
    fmi3IntervalQualifier qualifier;
    int status = BL_OK;
    memset(state, 0, CLOCK_STATE * sizeof *state);
    state[CLOCK_NEXT] = INFINITY;
    switch (clock->kind) {
        case HOST_CLOCK_OUTPUT:
        case HOST_CLOCK_TRIGGERED: return BL_OK;
        case HOST_CLOCK_CONSTANT: break;
        case HOST_CLOCK_SET:
            status = bl_host_status(f, CLOCK_CALL(f, SetIntervalDecimal, &clock->reference, 1, &interval),
                                    "SetIntervalDecimal", t);
            break;
        case HOST_CLOCK_ASKED:
        case HOST_CLOCK_TUNABLE:
            status = ask_interval(f, clock, t, &interval, &qualifier);
            if (status == BL_OK && qualifier == fmi3IntervalNotYetKnown)
                return refuse_interval(f, clock, "unknown interval", NAN, t);
            if (status == BL_OK)
                status = bl_host_status(f, CLOCK_CALL(f, GetShiftDecimal, &clock->reference, 1, &shift),
                                        "GetShiftDecimal", t);
            if (status == BL_OK && !(shift >= 0.0 && isfinite(shift)))
                return refuse_interval(f, clock, "shift", shift, t);
            break;
        default:
            status = ask_interval(f, clock, t, &interval, &qualifier);
            if (status == BL_OK && qualifier != fmi3IntervalNotYetKnown) state[CLOCK_NEXT] = t + interval;
            return status;
    }
    if (status == BL_OK) count_from(state, t + shift, interval);
    return status;
}

int bl_clocks_begin(bl_fmu_host *f, double t) {
    bl_fmu_clocks *c = f->clocks;
    int status = BL_OK;
    c->state[CLOCKS_REACHED] = t;
    for (int32_t k = 0; k < c->count && status == BL_OK; k++) status = begin_clock(f, &c->clocks[k], state_of(c, k), t);
    for (int32_t k = 0; k < c->variable_count && status == BL_OK; k++) {
        clocked_variable *v = &c->variables[k];
        if (v->is_input) continue;
        /* What is held until the first activation: FMI allows it here. Some FMUs give out binaries only once. */
        if (bl_fmu_is_text(&v->group)) memset(v->held, 0, (size_t)v->group.count * sizeof *v->held);
        else status = f->fmi->get(f, &v->group, t);
    }
    return status;
}

double bl_clocks_reached(const bl_fmu_host *f) { return f->clocks->state[CLOCKS_REACHED]; }
void bl_clocks_reach(bl_fmu_host *f, double t) {
    if (f->clocks) f->clocks->state[CLOCKS_REACHED] = t;
}

double bl_clocks_next(const bl_fmu_host *f) {
    double next = INFINITY;
    for (int32_t k = 0; f->clocks && k < f->clocks->count; k++) next = fmin(next, state_of(f->clocks, k)[CLOCK_NEXT]);
    return next;
}

bool bl_clocks_due(const bl_fmu_host *f, double t) {
    return f->clocks && bl_clocks_next(f) <= t + bl_slack(f->engine, t);
}

int bl_clocks_activate(bl_fmu_host *f, double t) {
    bl_fmu_clocks *c = f->clocks;
    const double slack = bl_slack(f->engine, t);
    uint32_t references[HOST_LARGEST_CLOCKS];
    fmi3Clock values[HOST_LARGEST_CLOCKS];
    size_t count = 0;
    for (int32_t k = 0; k < c->count; k++) {
        double *state = state_of(c, k);
        if (!is_timed(&c->clocks[k]) || state[CLOCK_ACTIVE] != 0.0 || !(state[CLOCK_NEXT] <= t + slack)) continue;
        references[count] = c->clocks[k].reference;
        values[count++] = fmi3ClockActive;
        state[CLOCK_ACTIVE] = state[CLOCK_SEEN] = 1.0;
    }
    if (count == 0) return BL_OK;
    for (int32_t k = 0; k < c->variable_count; k++) c->variables[k].group.known = 0;
    return bl_host_status(f, CLOCK_CALL(f, SetClock, references, count, values), "SetClock", t);
}

static uint64_t active_clocks(const bl_fmu_clocks *c) {
    uint64_t active = 0;
    for (int32_t k = 0; k < c->count; k++)
        if (state_of(c, k)[CLOCK_ACTIVE] != 0.0) active |= UINT64_C(1) << k;
    return active;
}

static int look_at_outputs(const bl_block *b, bl_fmu_host *f, double t, bool reports, bool keeps) {
    bl_fmu_clocks *c = f->clocks;
    int status = BL_OK;
    for (int32_t k = 0; k < c->count && status == BL_OK; k++) {
        unsigned char value = 0; /* an FMU may return more than 0 and 1 */
        double *state = state_of(c, k);
        const bool was_active = state[CLOCK_ACTIVE] != 0.0;
        if (is_timed(&c->clocks[k]) || (keeps && was_active)) continue;
        status = bl_host_status(f, CLOCK_CALL(f, GetClock, &c->clocks[k].reference, 1, (fmi3Clock *)(void *)&value),
                                "GetClock", t);
        state[CLOCK_ACTIVE] = value ? 1.0 : 0.0;
        if (!value || !reports) continue;
        if (!was_active) state[CLOCK_SEEN] = 1.0; /* else the outputs of this tick have shown it */
        bl_note_event(b, t, c->first_event + k);
    }
    return status;
}

int bl_clocks_look(const bl_block *b, bl_fmu_host *f, double t) { return look_at_outputs(b, f, t, true, true); }

int bl_clocks_set_inputs(const bl_block *b, bl_fmu_host *f, double t) {
    const bl_fmu_clocks *c = f->clocks;
    const uint64_t active = active_clocks(c);
    int status = BL_OK;
    for (int32_t k = 0; k < c->variable_count && status == BL_OK; k++)
        if (c->variables[k].is_input && c->variables[k].clocks & active)
            status = bl_fmu_set_group(b, f, &c->variables[k].group, t);
    return status;
}

int bl_clocks_get_outputs(bl_fmu_host *f, double t) {
    const bl_fmu_clocks *c = f->clocks;
    const uint64_t active = active_clocks(c);
    int status = BL_OK;
    for (int32_t k = 0; k < c->variable_count && status == BL_OK; k++) {
        bl_fmu_group *g = &c->variables[k].group;
        if (c->variables[k].is_input || !(c->variables[k].clocks & active)) continue;
        status = bl_fmu_is_text(g) ? bl_fmu_get_texts(f, g, t) : f->fmi->get(f, g, t);
    }
    return status;
}

int bl_clocks_exchange(const bl_block *b, bl_fmu_host *f, double t, bool reports) {
    int status = bl_clocks_set_inputs(b, f, t);
    if (status == BL_OK) status = look_at_outputs(b, f, t, reports, false);
    return status == BL_OK ? bl_clocks_get_outputs(f, t) : status;
}

/* When a clock is activated again: `was_active` in the update at t. */
static int schedule(bl_fmu_host *f, const fmu_clock *clock, double *state, bool was_active, double t) {
    fmi3IntervalQualifier qualifier;
    double interval = 0.0;
    if (was_active && clock->kind <= HOST_CLOCK_TUNABLE) {
        state[CLOCK_COUNT] += 1.0;
        state[CLOCK_NEXT] = state[CLOCK_BASE] + state[CLOCK_COUNT] * state[CLOCK_INTERVAL];
    } else if (was_active) {
        state[CLOCK_NEXT] = INFINITY;
    }
    const bool asks = clock->kind == HOST_CLOCK_TUNABLE || clock->kind == HOST_CLOCK_COUNTDOWN ||
                      (clock->kind == HOST_CLOCK_CHANGING && was_active);
    const int status = asks ? ask_interval(f, clock, t, &interval, &qualifier) : BL_OK;
    if (!asks || status != BL_OK || qualifier == fmi3IntervalNotYetKnown) return status;
    /* FMUs may return an interval that has not changed as changed. */
    if (clock->kind == HOST_CLOCK_TUNABLE) {
        if (qualifier == fmi3IntervalChanged && interval != state[CLOCK_INTERVAL])
            count_from(state, t + interval, interval);
    } else if (qualifier == fmi3IntervalChanged || clock->kind == HOST_CLOCK_CHANGING) {
        state[CLOCK_NEXT] = t + interval;
    }
    return BL_OK;
}

int bl_clocks_update(bl_fmu_host *f, double t) {
    bl_fmu_clocks *c = f->clocks;
    int status = BL_OK;
    for (int32_t k = 0; k < c->count && status == BL_OK; k++) {
        double *state = state_of(c, k);
        const bool was_active = state[CLOCK_ACTIVE] != 0.0;
        state[CLOCK_ACTIVE] = 0.0;
        if (is_timed(&c->clocks[k])) status = schedule(f, &c->clocks[k], state, was_active, t);
    }
    return status;
}

void bl_clocks_show(const bl_fmu_host *f) {
    const bl_fmu_clocks *c = f->clocks;
    for (int32_t k = 0; k < c->variable_count; k++) {
        const clocked_variable *v = &c->variables[k];
        if (!v->is_input) memcpy(*v->target + v->element, v->held, (size_t)v->group.count * sizeof *v->held);
    }
    for (int32_t k = 0; c->are_ports && k < c->count; k++) {
        const double *state = state_of(c, k);
        if (c->clocks[k].given)
            *c->clocks[k].given = state[CLOCK_SEEN] != 0.0 || state[CLOCK_ACTIVE] != 0.0 ? 1.0 : 0.0;
    }
}

static void copy_signals(const bl_fmu_clocks *c, bool notes) {
    double *noted = c->noted;
    for (int32_t k = 0; k < c->variable_count; k++) {
        const clocked_variable *v = &c->variables[k];
        if (v->is_input) continue;
        double *signal = *v->target + v->element;
        const size_t size = (size_t)v->group.count * sizeof *noted;
        if (notes) memcpy(noted, signal, size);
        else memcpy(signal, noted, size);
        noted += v->group.count;
    }
    for (int32_t k = 0; k < c->count; k++, noted++) {
        if (!c->clocks[k].given) continue;
        if (notes) *noted = *c->clocks[k].given;
        else *c->clocks[k].given = *noted;
    }
}

void bl_clocks_note_shown(const bl_fmu_host *f) { copy_signals(f->clocks, true); }
void bl_clocks_show_noted(const bl_fmu_host *f) { copy_signals(f->clocks, false); }

void bl_clocks_trigger(const bl_block *b, bl_fmu_host *f, double t) {
    bl_fmu_clocks *c = f->clocks;
    for (int32_t k = 0; c && k < c->count; k++) {
        const fmu_clock *clock = &c->clocks[k];
        state_of(c, k)[CLOCK_SEEN] = 0.0;
        if (clock->kind == HOST_CLOCK_TRIGGERED && clock->is_port && !clock->is_connected &&
            b->u[clock->port][clock->element] != 0.0)
            bl_clocks_request(f, k, t);
    }
}

bool bl_clocks_are_ports(const bl_fmu_host *f) { return f->clocks && f->clocks->are_ports; }
int32_t bl_clocks_count(const bl_fmu_host *f) { return f->clocks->count; }

const double *bl_clocks_given(const bl_fmu_host *f, int32_t clock) { return f->clocks->clocks[clock].given; }

const double *bl_clocks_taken(const bl_block *b, const bl_fmu_host *f, int32_t clock) {
    const fmu_clock *c = &f->clocks->clocks[clock];
    return c->is_port && c->kind == HOST_CLOCK_TRIGGERED ? b->u[c->port] + c->element : NULL;
}

void bl_clocks_connect(bl_fmu_host *f, int32_t clock) { f->clocks->clocks[clock].is_connected = true; }

bool bl_clocks_is_active(const bl_fmu_host *f, int32_t clock) {
    return state_of(f->clocks, clock)[CLOCK_ACTIVE] != 0.0;
}

void bl_clocks_request(bl_fmu_host *f, int32_t clock, double t) { state_of(f->clocks, clock)[CLOCK_NEXT] = t; }

size_t bl_clocks_state_count(const bl_fmu_clocks *c) { return c ? c->state_count : 0; }
double *bl_clocks_state(bl_fmu_clocks *c) { return c->state; }

void bl_clocks_forget(bl_fmu_clocks *c) {
    for (int32_t k = 0; c && k < c->variable_count; k++) c->variables[k].group.known = 0;
}

uint64_t bl_clocks_ticking(const bl_fmu_clocks *c) {
    uint64_t ticking = 0;
    for (int32_t k = 0; c && k < c->count; k++)
        if (!is_timed(&c->clocks[k]) && state_of(c, k)[CLOCK_ACTIVE] != 0.0) ticking |= UINT64_C(1) << k;
    return ticking;
}

void bl_clocks_note(const bl_block *b, const bl_fmu_clocks *c, uint64_t ticking, double t) {
    for (int32_t k = 0; c && k < c->count; k++)
        if (ticking >> k & 1) bl_note_event(b, t, c->first_event + k);
}

const char *bl_clocks_name(const bl_fmu_host *f, int32_t event) {
    if (!f || !f->clocks) return NULL;
    const int32_t clock = event - f->clocks->first_event;
    if (clock < 0 || clock >= f->clocks->count) return NULL;
    return bl_fmu_variable(f, f->clocks->clocks[clock].number);
}
