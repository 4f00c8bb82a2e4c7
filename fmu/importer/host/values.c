/* Inputs, outputs and parameters, between the engine, where all are doubles, and an FMU.
 *
 * An input is set only when its value has changed since it was last set. Its place is known from the start; only a coupling
 * has a member read from elsewhere, and then inputs may also be polynomials in time: see coupling.c. */
#include "fmu/importer/host/clocks.h"
#include "fmu/importer/host/exchange.h"

#include <stdlib.h>
#include <string.h>

/* ---- gathering */

const int32_t *bl_fmu_input_records(const bl_block *b) { return b->i + HOST_HEAD; }
const int32_t *bl_fmu_output_records(const bl_block *b) {
    const int32_t *record = bl_fmu_input_records(b);
    for (int32_t p = 0; p < b->u_count; p++) record += (ptrdiff_t)HOST_INPUT_FIELDS * b->u_width[p];
    return record;
}
const int32_t *bl_fmu_parameter_records(const bl_block *b) {
    const int32_t *record = bl_fmu_output_records(b);
    for (int32_t p = 0; p < b->y_count; p++) record += (ptrdiff_t)HOST_OUTPUT_FIELDS * b->y_width[p];
    return record;
}

static int32_t count_values(const int32_t *widths, int32_t port_count) {
    int32_t total = 0;
    for (int32_t p = 0; p < port_count; p++) total += widths[p];
    return total;
}

int bl_fmu_allocate_group(bl_fmu_group *g, int32_t key, int32_t count) {
    const size_t n = (size_t)count;
    g->memory = calloc(n, sizeof *g->places + sizeof *g->reals + sizeof *g->input_derivatives + sizeof(int64_t) +
                              sizeof *g->orders + sizeof *g->ports + sizeof *g->elements + sizeof *g->numbers +
                              sizeof *g->references);
    if (!g->memory) return 0;
    g->type = key % HOST_TYPES;
    g->is_discrete = key >= HOST_TYPES;
    g->places = g->memory;
    g->reals = (double *)(g->places + n);
    g->input_derivatives = g->reals + n;
    g->native = g->input_derivatives + n;
    g->orders = (int *)(void *)((int64_t *)g->native + n);
    g->ports = (int32_t *)(g->orders + n);
    g->elements = g->ports + n;
    g->numbers = g->elements + n;
    g->references = (uint32_t *)(g->numbers + n);
    return 1;
}

void bl_fmu_free_values(bl_fmu_values *values) {
    for (int32_t k = 0; k < values->group_count; k++) free(values->groups[k].memory);
}

typedef enum { HOST_DIRECT, HOST_DELAYED, HOST_ANY } bl_host_part;

/* Clocked values are not among them: clocks.c. */
static int is_part(const int32_t *record, bl_host_part part) {
    if (record[1] & HOST_CLOCKED) return 0;
    return part == HOST_ANY || (record[2] != 0) == (part == HOST_DIRECT);
}

/* Values of one key are set in one call. */
static int32_t key_of(const int32_t *record) {
    return (record[1] & HOST_TYPE_MASK) + (record[1] & HOST_DISCRETE ? HOST_TYPES : 0);
}

void bl_fmu_add_value(bl_fmu_group *g, const int32_t *record, int32_t port, int32_t element, int32_t number,
                      const double *place) {
    if (!(record[1] & HOST_CONTINUES) || g->reference_count == 0)
        g->references[g->reference_count++] = (uint32_t)record[0];
    g->ports[g->count] = port;
    g->elements[g->count] = element;
    g->numbers[g->count] = number;
    g->places[g->count++] = (double *)(uintptr_t)place;
}

/* Sorts the values of ports by type; of inputs those that are direct, or those that are not. */
static int gather_ports(bl_fmu_values *values, const int32_t *records, int32_t fields, int32_t first, bl_host_part part,
                        const double *const *ports, const int32_t *widths, int32_t port_count) {
    const int32_t total = count_values(widths, port_count);
    for (int32_t key = 0; key < 2 * HOST_TYPES; key++) {
        int32_t count = 0;
        for (int32_t k = 0; k < total; k++)
            count += key_of(records + k * fields) == key && is_part(records + k * fields, part);
        if (count == 0) continue;
        bl_fmu_group *g = &values->groups[values->group_count];
        if (!bl_fmu_allocate_group(g, key, count)) return 0;
        values->group_count++;
        const int32_t *record = records;
        for (int32_t p = 0, number = first; p < port_count; p++)
            for (int32_t k = 0; k < widths[p]; k++, number++, record += fields)
                if (key_of(record) == key && is_part(record, part))
                    bl_fmu_add_value(g, record, p, k, number, ports[p] + k);
        g->in_a_row = 1;
        for (int32_t k = 1; k < g->count; k++) g->in_a_row &= g->places[k] == g->places[0] + k;
    }
    return 1;
}

int bl_fmu_gather(const bl_block *b, bl_fmu_host *f) {
    const int32_t *inputs = bl_fmu_input_records(b), *outputs = bl_fmu_output_records(b);
    const int32_t input_count = count_values(b->u_width, b->u_count);
    f->gathered = b->u;
    return gather_ports(&f->direct, inputs, HOST_INPUT_FIELDS, 0, HOST_DIRECT, b->u, b->u_width, b->u_count) &&
           gather_ports(&f->delayed, inputs, HOST_INPUT_FIELDS, 0, HOST_DELAYED, b->u, b->u_width, b->u_count) &&
           gather_ports(&f->outputs, outputs, HOST_OUTPUT_FIELDS, input_count, HOST_ANY, (const double *const *)b->y,
                        b->y_width, b->y_count) &&
           bl_fmu_open_texts(b, f);
}

/* ---- inputs and outputs */

static void forget_values(bl_fmu_values *values, int held_too) {
    for (int32_t k = 0; k < values->group_count; k++)
        if (held_too || !values->groups[k].is_discrete) values->groups[k].known = 0;
}

void bl_fmu_forget_inputs(bl_fmu_host *f) {
    forget_values(&f->direct, 1);
    forget_values(&f->delayed, 1);
    if (f->exchange) bl_exchange_forget(f->exchange);
    bl_clocks_forget(f->clocks);
}

void bl_fmu_forget_continuous(bl_fmu_host *f) {
    forget_values(&f->direct, 0);
    forget_values(&f->delayed, 0);
    if (f->exchange) bl_exchange_forget(f->exchange);
}

static size_t held_count(const bl_fmu_values *values) {
    size_t count = 0;
    for (int32_t k = 0; k < values->group_count; k++)
        if (values->groups[k].is_discrete) count += 1 + (size_t)values->groups[k].count;
    return count;
}

size_t bl_fmu_held_count(const bl_fmu_host *f) {
    return held_count(&f->direct) + held_count(&f->delayed) + bl_clocks_state_count(f->clocks);
}

/* Of each group whether its values are known, then the values. */
static double *keep_held(const bl_fmu_values *values, double *held) {
    for (int32_t k = 0; k < values->group_count; k++) {
        const bl_fmu_group *g = &values->groups[k];
        if (!g->is_discrete) continue;
        *held++ = g->known;
        memcpy(held, g->reals, (size_t)g->count * sizeof *held);
        held += g->count;
    }
    return held;
}

static const double *put_back_held(bl_fmu_values *values, const double *held) {
    for (int32_t k = 0; k < values->group_count; k++) {
        bl_fmu_group *g = &values->groups[k];
        if (!g->is_discrete) continue;
        g->known = *held++ != 0.0;
        memcpy(g->reals, held, (size_t)g->count * sizeof *held);
        held += g->count;
    }
    return held;
}

void bl_fmu_keep_held(const bl_fmu_host *f, double *held) {
    held = keep_held(&f->delayed, keep_held(&f->direct, held));
    if (f->clocks) memcpy(held, bl_clocks_state(f->clocks), bl_clocks_state_count(f->clocks) * sizeof *held);
}
void bl_fmu_put_back_held(bl_fmu_host *f, const double *held) {
    held = put_back_held(&f->delayed, put_back_held(&f->direct, held));
    if (f->clocks) memcpy(bl_clocks_state(f->clocks), held, bl_clocks_state_count(f->clocks) * sizeof *held);
}

/* Returns an input of the block. A coupling redirects it while it computes outputs before all members have advanced. */
double bl_fmu_input(const bl_block *b, const bl_fmu_host *f, const bl_fmu_group *g, int32_t k) {
    return b->u == f->gathered ? *g->places[k] : b->u[g->ports[k]][g->elements[k]];
}

/* Fetches the values of a group from the engine; returns whether the FMU does not have them yet. */
static int fetch_values(const bl_block *b, const bl_fmu_host *f, bl_fmu_group *g) {
    int changed = !g->known;
    for (int32_t k = 0; k < g->count; k++) {
        const double value = bl_fmu_input(b, f, g, k);
        changed |= memcmp(&g->reals[k], &value, sizeof value) != 0;
        g->reals[k] = value;
    }
    return changed;
}

/* Sets what was fetched. */
static int put_values(bl_fmu_host *f, bl_fmu_group *g, double t) {
    g->known = 0;
    const int status = bl_fmu_is_text(g) ? bl_fmu_set_texts(f, g, t) : f->fmi->set(f, g, t);
    g->known = status == BL_OK;
    return status;
}

int bl_fmu_set_group(const bl_block *b, bl_fmu_host *f, bl_fmu_group *g, double t) {
    return fetch_values(b, f, g) ? put_values(f, g, t) : BL_OK;
}

int bl_fmu_set_values(const bl_block *b, bl_fmu_host *f, bl_fmu_values *values, double t) {
    for (bl_fmu_group *g = values->groups, *end = g + values->group_count; g != end; g++) {
        const int status = bl_fmu_set_group(b, f, g, t);
        if (status != BL_OK) return status;
    }
    return BL_OK;
}

int bl_fmu_get_outputs(bl_fmu_host *f, double t) {
    for (bl_fmu_group *g = f->outputs.groups, *end = g + f->outputs.group_count; g != end; g++) {
        const int status = bl_fmu_is_text(g) ? bl_fmu_get_texts(f, g, t) : f->fmi->get(f, g, t);
        if (status != BL_OK) return status;
    }
    if (f->clocks) bl_clocks_show(f);
    return BL_OK;
}

/* ---- inputs that change within a step */

/* The value and derivatives of an input at the start of a part, as far as the FMU takes them. Where a derivative is not taken, the
   rest is the polynomial nearest to the true one over the part, so that its mean is right, and with a slope its mean weighted by
   time too: what such a part does to the FMU is then off by one order of h less than if the derivative were left out. */
static void follow_input(const bl_block *b, int32_t port, int32_t element, bl_fmu_part part, int32_t limit,
                         double polynomial[3]) {
    const double first = b->u1 ? b->u1[port][element] : 0.0, second = b->u2 ? b->u2[port][element] : 0.0;
    const double age = part.age, h = part.h;
    polynomial[0] = b->u[port][element];
    polynomial[1] = polynomial[2] = 0.0;
    if (first == 0.0 && second == 0.0) return;
    if (age > 0.0) polynomial[0] += (first + 0.5 * second * age) * age;
    polynomial[1] = first + second * age;
    polynomial[2] = second;
    if (limit < 2) {
        polynomial[0] -= polynomial[2] * h * h / 12.0;
        polynomial[1] += polynomial[2] * h / 2.0;
        polynomial[2] = 0.0;
    }
    if (limit < 1) {
        polynomial[0] += polynomial[1] * h / 2.0;
        polynomial[1] = 0.0;
    }
}

static void fetch_polynomial(const bl_block *b, bl_fmu_group *g, bl_fmu_part part, int32_t limit, int order) {
    double polynomial[3], *to = order == 0 ? g->reals : g->input_derivatives;
    for (int32_t k = 0; k < g->count; k++) {
        follow_input(b, g->ports[k], g->elements[k], part, limit, polynomial);
        to[k] = polynomial[order];
        g->orders[k] = order;
    }
}

/* Whether values of a group are continuous. Discrete inputs have no polynomial. */
static int is_continuous(const bl_fmu_group *g) {
    return !g->is_discrete && (g->type == HOST_REAL || g->type == HOST_FLOAT32);
}

/* Returns whether the FMU does not have the values yet. */
static int fetch_held(const bl_block *b, bl_fmu_group *g) {
    int changed = !g->known;
    for (int32_t k = 0; k < g->count; k++) {
        const double value = b->u[g->ports[k]][g->elements[k]];
        changed |= memcmp(&g->reals[k], &value, sizeof value) != 0;
        g->reals[k] = value;
    }
    return changed;
}

static bl_fmi_status set_input_derivatives(const bl_block *b, bl_fmu_host *f, bl_fmu_group *g, bl_fmu_part part,
                                           int order) {
    fetch_polynomial(b, g, part, f->input_derivative_limit, order);
    return f->fmi->set_input_derivatives(f, g);
}

/* Of the derivatives that inputs have. */
int32_t bl_fmu_largest_order(const bl_block *b) {
    for (int32_t p = 0; b->u2 && p < b->u_count; p++)
        for (int32_t k = 0; k < b->u_width[p]; k++)
            if (b->u2[p][k] != 0.0) return 2;
    return b->u1 ? 1 : 0;
}

/* Sets a group of inputs for a part of a step. FMI has no flag for how many derivatives an FMU takes: one that discards the second
   gets none any more. */
static int set_group_polynomial(const bl_block *b, bl_fmu_host *f, bl_fmu_group *g, bl_fmu_part part, double t) {
    if (is_continuous(g)) fetch_polynomial(b, g, part, f->input_derivative_limit, 0);
    else if (!fetch_held(b, g) && g->is_discrete) return BL_OK; /* event mode is entered for a change only */
    int status = put_values(f, g, t);
    if (status != BL_OK || g->type != HOST_REAL || f->input_derivative_limit < 1 || part.order < 1) return status;
    status = bl_host_status(f, set_input_derivatives(b, f, g, part, 1), "SetRealInputDerivatives", t);
    if (status != BL_OK || f->input_derivative_limit < 2 || part.order < 2) return status;
    const bl_fmi_status answer = set_input_derivatives(b, f, g, part, 2);
    if (answer != FMI_DISCARD)
        return bl_host_status(f, answer, "SetRealInputDerivatives of order 2, which extrapolation=1 does not require,",
                              t);
    f->input_derivative_limit = 1;
    return set_group_polynomial(b, f, g, part, t);
}

int bl_fmu_set_polynomial(const bl_block *b, bl_fmu_host *f, bl_fmu_values *values, bl_fmu_part part, double t) {
    int status = BL_OK;
    for (int32_t k = 0; k < values->group_count && status == BL_OK; k++)
        status = set_group_polynomial(b, f, &values->groups[k], part, t);
    return status;
}

/* ---- parameters */

/* Sets a parameter, all elements of an array in one call. */
static int set_parameter(const bl_block *b, bl_fmu_host *f, int32_t first, int32_t count, double t) {
    const int32_t *record = bl_fmu_parameter_records(b) + (ptrdiff_t)first * HOST_PARAMETER_FIELDS;
    const int32_t number = count_values(b->u_width, b->u_count) + count_values(b->y_width, b->y_count) + first;
    return f->fmi->set_array(f, record[1] & HOST_TYPE_MASK, b->p + first, number, count, (uint32_t)record[0], t);
}

/* Returns the number of values of the parameter that begins at `first`. */
static int32_t parameter_size(const bl_block *b, int32_t first, int32_t limit) {
    const int32_t *records = bl_fmu_parameter_records(b);
    int32_t end = first + 1;
    while (end < limit && records[end * HOST_PARAMETER_FIELDS + 1] & HOST_CONTINUES) end++;
    return end - first;
}

/* Before a run: what the user gave, and what differs from the FMU's own start; the rest is the FMU's business. */
int bl_fmu_set_parameters(const bl_block *b, bl_fmu_host *f, double t) {
    const int32_t count = b->i[HOST_PARAMETERS], tunable = b->i[HOST_TUNABLE];
    const double *value = b->p, *own = b->p + count;
    const int32_t *records = bl_fmu_parameter_records(b);
    int status = BL_OK;
    for (int32_t k = 0, size = 0; k < count && status == BL_OK; k += size) {
        size = parameter_size(b, k, count);
        const int32_t when = records[k * HOST_PARAMETER_FIELDS + 2];
        if (when == HOST_STRUCTURAL) continue;
        if (when == HOST_ALWAYS || memcmp(&value[k], &own[k], (size_t)size * sizeof *own) != 0)
            status = set_parameter(b, f, k, size, t);
    }
    memcpy(f->tuned, value, (size_t)tunable * sizeof *f->tuned);
    f->tuned_known = 1;
    return status == BL_OK ? f->fmi->set_strings(f, t) : status;
}

/* Structural parameters, in configuration mode. */
int bl_fmu_set_structural(const bl_block *b, bl_fmu_host *f, double t) {
    const int32_t *records = bl_fmu_parameter_records(b);
    int status = BL_OK;
    for (int32_t k = 0; k < b->i[HOST_PARAMETERS] && status == BL_OK; k++)
        if (records[k * HOST_PARAMETER_FIELDS + 2] == HOST_STRUCTURAL) status = set_parameter(b, f, k, 1, t);
    return status;
}

/* During a run: tunable parameters that were changed from outside. */
int bl_fmu_tune(const bl_block *b, bl_fmu_host *f, double t) {
    const int32_t tunable = b->i[HOST_TUNABLE];
    if (tunable == 0 || (f->tuned_known && memcmp(f->tuned, b->p, (size_t)tunable * sizeof *f->tuned) == 0))
        return BL_OK;
    for (int32_t k = 0, size = 0; k < tunable; k += size) {
        size = parameter_size(b, k, tunable);
        if (f->tuned_known && memcmp(&f->tuned[k], &b->p[k], (size_t)size * sizeof *b->p) == 0) continue;
        const int status = set_parameter(b, f, k, size, t);
        if (status != BL_OK) return status;
        memcpy(&f->tuned[k], &b->p[k], (size_t)size * sizeof *b->p);
    }
    f->tuned_known = 1;
    return BL_OK;
}
