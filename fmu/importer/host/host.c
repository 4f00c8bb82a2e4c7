/* An FMU of another tool as a block of our engine. The functions are named as in FMI 2.0 here; those of FMI 3.0 correspond to them.
 *
 *   bl_attach_fmu   the library is loaded, all that a step needs is allocated
 *   init            an instance is made, parameters are set, it enters initialization mode
 *   output          fmi2Set* of the inputs with direct feedthrough, fmi2Get* of the outputs; before the first
 *                   advance in initialization mode: algebraic loops of initial values are solved like all others
 *   directional_derivative  the outputs nearby by fmi2GetDirectionalDerivative, for the Jacobian of a loop at one instant
 *   begin           the end of initialization mode, with the inputs at that instant; the outputs are read again afterwards
 *   accept_step     of a member of a coupling: the step that now begins may be repeated, earlier ones may not
 *   advance         fmi2Set* of all inputs, fmi2SetRealInputDerivatives if they have input derivatives, fmi2DoStep
 *   close           fmi2Terminate and fmi2FreeInstance where they are allowed, the library is unloaded
 *
 * A call may change the thread's floating-point control and the working directory. Both are restored after each operation; in output
 * and advance, where time counts, only the rounding mode is, and whoever runs the engine restores the rest after a run.
 *
 * After fmi2Error an instance is only freed; after fmi2Fatal nothing of the FMU is called any more. */
#include "fmu/importer/host/clocks.h"
#include "fmu/importer/host/exchange.h"
#include "fmu/importer/host/network.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/engine/engine.h"

/* ---- checking a plan */

static int check_records(const int32_t *records, int64_t count, int32_t fields, int32_t type_count) {
    for (int64_t k = 0; k < count; k++) {
        const int32_t type = records[k * fields + 1], marks = type & ~HOST_TYPE_MASK;
        if (type < 0 || (type & HOST_TYPE_MASK) >= type_count ||
            marks & ~(HOST_CONTINUES | HOST_DISCRETE | HOST_CLOCKED))
            return 0;
        if (marks & HOST_CONTINUES && type_count == HOST_FMI2_TYPES) return 0;
        if ((type & HOST_TYPE_MASK) == HOST_CLOCK && marks != HOST_CLOCKED) return 0; /* clocks.c handles it */
        if (!(marks & HOST_CONTINUES)) continue;
        const int32_t *before = records + (k - 1) * fields;
        if (k == 0 || before[0] != records[k * fields] || (before[1] | HOST_CONTINUES) != type) return 0;
        if (fields > 2 && before[2] != records[k * fields + 2]) return 0;
    }
    return 1;
}

/* Ports begin with the first element of an array, and hold all of its elements, as far as that can be seen here. */
static int check_ports(const int32_t *records, int32_t fields, const int32_t *widths, int32_t port_count) {
    for (int32_t p = 0; p < port_count; records += (ptrdiff_t)fields * widths[p++])
        if (widths[p] > 0 && records[1] & HOST_CONTINUES) return 0;
    return 1;
}

int bl_fmu_check(const bl_block *b, int32_t type_count, bool exchanges) {
    if (b->i_count < HOST_HEAD) return 0;
    const int64_t parameters = b->i[HOST_PARAMETERS], tunable = b->i[HOST_TUNABLE];
    int64_t in = 0, out = 0;
    for (int32_t p = 0; p < b->u_count; p++) in += b->u_width[p];
    for (int32_t p = 0; p < b->y_count; p++) out += b->y_width[p];
    if (b->i[HOST_FLAGS] < 0 || b->i[HOST_FLAGS] > HOST_ALL_FLAGS) return 0;
    if (b->i[HOST_SUBSTEPS] < 1 || parameters < 0 || b->p_count != 2 * parameters) return 0;
    if (tunable < 0 || tunable > parameters) return 0;
    if (in > INT_MAX / 4 || out > INT_MAX / 4) return 0;
    const int64_t known =
        HOST_HEAD + HOST_INPUT_FIELDS * in + HOST_OUTPUT_FIELDS * out + HOST_PARAMETER_FIELDS * parameters;
    const bool has_events = exchanges || b->i[HOST_FLAGS] & HOST_HAS_EVENTS;
    if (b->i_count < known || (b->i_count > known && !(type_count == HOST_TYPES && has_events))) return 0;
    if (!bl_clocks_check(b->i + known, b->i_count - known, in + out)) return 0;
    const int32_t *inputs = bl_fmu_input_records(b), *outputs = bl_fmu_output_records(b),
                  *record = bl_fmu_parameter_records(b);
    if (tunable < parameters && record[tunable * HOST_PARAMETER_FIELDS + 1] & HOST_CONTINUES) return 0;
    for (int64_t k = 0; k < parameters; k++) {
        const int32_t type = record[k * HOST_PARAMETER_FIELDS + 1] & HOST_TYPE_MASK;
        if (type == HOST_STRING || type == HOST_BINARY || type == HOST_CLOCK) return 0;
    }
    return check_records(inputs, in, HOST_INPUT_FIELDS, type_count) &&
           check_records(outputs, out, HOST_OUTPUT_FIELDS, type_count) &&
           check_records(record, parameters, HOST_PARAMETER_FIELDS, type_count) &&
           check_ports(inputs, HOST_INPUT_FIELDS, b->u_width, b->u_count) &&
           check_ports(outputs, HOST_OUTPUT_FIELDS, b->y_width, b->y_count);
}

static int check_version(const bl_block *b, int32_t type_count) {
    return !b->x_count && !b->z_count && bl_fmu_check(b, type_count, false) && b->i[HOST_INDICATORS] == 0;
}
static int check_fmi2(const bl_block *b) {
    return check_version(b, HOST_FMI2_TYPES) && !(b->i[HOST_FLAGS] & (HOST_HAS_EVENTS | HOST_IS_CONFIGURED));
}
static int check_fmi2_rollback(const bl_block *b) { return check_fmi2(b) && (b->i[HOST_FLAGS] & HOST_CAN_SAVE); }
static int check_fmi3(const bl_block *b) {
    return check_version(b, HOST_TYPES) && !(b->i[HOST_FLAGS] & HOST_CAN_INTERPOLATE);
}
static int check_fmi3_rollback(const bl_block *b) { return check_fmi3(b) && (b->i[HOST_FLAGS] & HOST_CAN_SAVE); }

/* ---- loading */

static char *copy_text(const char *text) {
    const size_t size = text ? strlen(text) + 1 : 1;
    char *copy = malloc(size);
    if (copy) memcpy(copy, text ? text : "", size);
    return copy;
}

static void end_instance(bl_fmu_host *f);

/* Libraries run their constructors and destructors when they are loaded and unloaded. */
static int load(bl_fmu_host *f, const bl_block *b, const char *path, char *message, size_t message_size) {
    bl_working_directory directory;
    bl_fmu_enter_setup(f, &directory);
    const int32_t flags = f->flags | (f->exchange ? HOST_EXCHANGES : HOST_STEPS);
    int status = bl_fmu_load(f->fmi, path, flags, &f->library, f->calls, message, message_size);
    const char *missing = status == BL_OK ? f->fmi->find_missing(f, b) : NULL;
    if (status == BL_OK && !missing && f->clocks) missing = bl_clocks_find(f->clocks, f->library);
    if (status == BL_OK && !missing && f->exchange) missing = bl_exchange_find(f->exchange, f->library);
    if (missing) {
        snprintf(message, message_size, "its binary has no function %s", missing);
        status = BL_ERROR_BLOCK;
    }
    return bl_fmu_leave_setup(f, &directory, status);
}

static void unload(bl_fmu_host *f) {
    bl_working_directory directory;
    bl_fmu_enter_setup(f, &directory);
    bl_fmu_unload(f->library);
    bl_fmu_leave_setup(f, &directory, BL_OK);
}

static void free_texts(char **texts, int64_t count) {
    for (int64_t k = 0; texts && k < count; k++) free(texts[k]);
    free(texts);
}

static void free_host(bl_fmu_host *f) {
    if (!f) return;
    end_instance(f);
    bl_network_leave(f);
    if (f->mode != HOST_DEAD && f->library) unload(f);
    bl_fmu_unlist_host(f);
    bl_fmu_free_values(&f->direct);
    bl_fmu_free_values(&f->delayed);
    bl_fmu_free_values(&f->outputs);
    free_texts(f->strings, f->string_count);
    free_texts(f->categories, f->category_count);
    free_texts(f->names, f->name_count);
    for (int64_t k = 0; f->binaries && k < f->binary_count; k++) free(f->binaries[k]);
    free(f->binaries);
    free(f->binary_sizes);
    free(f->string_references);
    free(f->binary_references);
    free(f->scratch);
    free(f->tuned);
    free(f->held);
    free(f->callbacks);
    free(f->calls);
    free(f->file);
    free(f->name);
    free(f->guid);
    free(f->resources);
    free(f->exchange);
    bl_clocks_close(f->clocks);
    free(f);
}

static int copy_texts(char ***copies, int64_t *copied, const char *const *texts, int64_t count) {
    *copied = count;
    *copies = calloc(count > 0 ? (size_t)count : 1, sizeof **copies);
    int complete = *copies != NULL;
    for (int64_t k = 0; complete && k < count; k++) complete = ((*copies)[k] = copy_text(texts[k])) != NULL;
    return complete;
}

static int copy_references(uint32_t **copy, int64_t *copied, const uint32_t *references, int64_t count) {
    *copied = count;
    *copy = calloc((size_t)count + 1, sizeof **copy);
    if (*copy && count > 0) memcpy(*copy, references, (size_t)count * sizeof **copy);
    return *copy != NULL;
}

static int copy_binaries(bl_fmu_host *f, const bl_fmu_source *source) {
    const size_t count = (size_t)source->binary_count;
    f->binary_count = source->binary_count;
    f->binaries = calloc(count + 1, sizeof *f->binaries);
    f->binary_sizes = calloc(count + 1, sizeof *f->binary_sizes);
    int complete = f->binaries && f->binary_sizes;
    for (size_t k = 0; complete && k < count; k++) {
        const size_t size = (size_t)source->binary_sizes[k];
        f->binaries[k] = malloc(size + 1);
        complete = f->binaries[k] != NULL;
        if (complete) memcpy(f->binaries[k], source->binaries[k], size);
        f->binary_sizes[k] = size;
    }
    return complete;
}

static int allocate_held(bl_fmu_host *f) {
    const size_t count = bl_fmu_held_count(f);
    if (count == 0) return 1;
    f->held = calloc(BL_SNAPSHOTS * count, sizeof *f->held);
    for (size_t k = 0; f->held && k < BL_SNAPSHOTS; k++) f->snapshots[k].held = f->held + k * count;
    return f->held != NULL;
}

/* Everything that the block needs, all before the first tick. */
static int allocate_host(const bl_block *b, const bl_fmu_source *source, bl_fmu_host *f) {
    f->flags = b->i[HOST_FLAGS];
    f->substeps = b->i[HOST_SUBSTEPS];
    f->input_derivative_limit = f->flags & HOST_CAN_INTERPOLATE ? f->fmi->input_derivative_limit : 0;
    f->tolerance = source->tolerance;
    f->stop_time = source->stop_time;
    f->logging = source->logging != 0;
    f->file = copy_text(source->file);
    f->name = copy_text(source->name);
    f->guid = copy_text(source->guid);
    f->resources = copy_text(source->resources);
    f->calls = calloc(1, f->fmi->calls_size);
    f->tuned = calloc((size_t)b->i[HOST_TUNABLE] + 1, sizeof *f->tuned);
    f->scratch = calloc((size_t)b->i[HOST_PARAMETERS] + 1, sizeof(int64_t));
    return f->scratch && f->file && f->name && f->guid && f->resources && f->calls && f->tuned &&
           copy_references(&f->string_references, &f->string_reference_count, source->string_references,
                           source->string_reference_count) &&
           copy_references(&f->binary_references, &f->binary_reference_count, source->binary_references,
                           source->binary_reference_count) &&
           copy_texts(&f->strings, &f->string_count, source->strings, source->string_count) &&
           copy_texts(&f->categories, &f->category_count, source->log_categories, source->log_category_count) &&
           copy_texts(&f->names, &f->name_count, source->names, source->name_count) && copy_binaries(f, source) &&
           bl_fmu_gather(b, f) && bl_clocks_open(b, &f->clocks) && allocate_held(f);
}

static int is_host(const bl_engine *e, int32_t block) {
    return block >= 0 && block < e->block_count && e->kernels[block]->last_error == bl_fmu_last_error;
}

bl_fmu_host *bl_fmu_host_of(const bl_engine *e, int32_t block) {
    return is_host(e, block) ? e->blocks[block].external : NULL;
}

static int is_source(const bl_fmu_source *source) {
    return source && source->library && source->string_count >= 0 && source->string_reference_count >= 0 &&
           source->binary_count >= 0 && source->binary_reference_count >= 0 && source->log_category_count >= 0 &&
           source->name_count >= 0;
}

int bl_attach_fmu(bl_engine *e, int32_t block, const bl_fmu_source *source) {
    if (!is_host(e, block) || !is_source(source))
        return bl_fail(e, BL_ERROR_ARGUMENT, -1, "block %d cannot hold an FMU", (int)block);
    bl_block *b = &e->blocks[block];
    free_host(b->external);
    b->external = NULL;
    bl_fmu_host *f = calloc(1, sizeof *f);
    if (f) {
        const int is_fmi3 = strncmp(e->kernels[block]->name, "fmu3", 4) == 0;
        f->fmi = is_fmi3 ? &bl_fmi3_calls : &bl_fmi2_calls;
        f->control = bl_get_float_control();
        bl_fmu_list_host(f);
    }
    const int exchanges = e->kernels[block]->tick_event != NULL;
    if (f && exchanges) f->exchange = bl_exchange_new(e, b);
    if (!f || (exchanges && !f->exchange) || !allocate_host(b, source, f)) {
        free_host(f);
        return bl_fail(e, BL_ERROR_MEMORY, block, "out of memory for the FMU");
    }
    char message[640] = "";
    const int status = load(f, b, source->library, message, sizeof message);
    if (status != BL_OK) {
        bl_fail(e, status, block, "FMU `%.200s`: %s", f->file, message);
        snprintf(e->message, sizeof e->message, "FMU `%.200s`: %s", f->file, message);
        free_host(f);
        return status;
    }
    b->external = f;
    return BL_OK;
}

/* ---- the block */

/* Ends the instance, by the calls that its state allows. */
static void end_instance(bl_fmu_host *f) {
    if (f->component && f->mode != HOST_DEAD) {
        bl_working_directory directory;
        bl_fmu_enter_setup(f, &directory);
        bl_fmu_free_states(f);
        if ((f->mode == HOST_STEPPING || f->mode == HOST_EVENTS) && f->fmi->terminate(f) == FMI_FATAL)
            f->mode = HOST_DEAD;
        if (f->mode != HOST_DEAD) f->fmi->free_instance(f);
        bl_fmu_leave_setup(f, &directory, BL_OK);
    }
    free(f->kept);
    f->kept = NULL;
    f->ticket_count = 0;
    f->component = NULL;
    if (f->mode != HOST_DEAD) f->mode = HOST_NONE;
}

static int start_instance(bl_block *b, bl_fmu_host *f, double t) {
    static atomic_uint_fast64_t run_count;
    f->run = atomic_fetch_add(&run_count, 1) + 1;
    bl_network_leave(f);
    f->oldest = f->oldest_saved = f->next_event = INFINITY;
    f->ended = 0;
    f->time = f->settled = t;
    f->reason[0] = '\0';
    f->inexact_count = 0;
    atomic_store(&f->message_count, 0u);
    bl_fmu_forget_inputs(f);
    f->input_derivative_order = 0;
    const int listening = f->logging || f->category_count > 0;
    f->fmi->instantiate(f, listening);
    bl_fmu_put_back_control(f);
    if (!f->component)
        return bl_fmu_error(f, "%s returned no instance%s%s",
                            f->exchange ? f->fmi->exchange_name : f->fmi->instantiate_name,
                            f->flags & HOST_NEEDS_TOOL ? " (its description requires the tool that exported it)" : "",
                            bl_fmu_silence(f));
    int status = BL_OK;
    if (listening) {
        const bl_fmi_status logged = f->fmi->set_debug_logging(f);
        if (f->logging || logged == FMI_FATAL) status = bl_host_status(f, logged, "SetDebugLogging", t);
    }
    if (status == BL_OK) status = f->fmi->setup(b, f, t);
    if (status == BL_OK) status = bl_fmu_set_parameters(b, f, t);
    if (status == BL_OK) status = f->fmi->enter_initialization(f, t);
    if (status == BL_OK) f->mode = HOST_INITIALIZING;
    return status;
}

int bl_fmu_init(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    if (!f) return BL_ERROR_BLOCK;
    if (f->mode == HOST_DEAD) return bl_fmu_error(f, "it had a fatal error and cannot be restarted");
    bl_working_directory directory;
    end_instance(f);
    f->control = bl_get_float_control();
    bl_fmu_enter_setup(f, &directory);
    return bl_fmu_leave_setup(f, &directory, start_instance(b, f, t));
}

/* At the instant of a clock, its variables are evaluated in event mode; the next step ends that. */
static int meet_clocks(const bl_block *b, bl_fmu_host *f, double t) {
    /* A coupling evaluates outputs at the end of its step too, where clocked outputs still hold. */
    const bool is_present = !b->engine->begun || fabs(t - bl_time(b->engine)) <= bl_slack(b->engine, t);
    if (!is_present || fabs(t - bl_clocks_reached(f)) > bl_slack(b->engine, t)) return BL_OK;
    int status = BL_OK;
    if (bl_clocks_due(f, t)) status = f->fmi->enter_events(f, t);
    if (status == BL_OK && f->mode == HOST_EVENTS) status = bl_clocks_activate(f, t);
    if (status == BL_OK && f->mode == HOST_EVENTS) status = bl_clocks_exchange(b, f, t, false);
    return status;
}

static int host_output(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    if (!bl_fmu_is_running(f)) return BL_ERROR_BLOCK;
    bl_host_enter(f);
    f->time = t;
    int status = BL_OK;
    if (!f->ended) { /* after that nothing may be set */
        status = bl_fmu_tune(b, f, t);
        if (status == BL_OK) status = bl_fmu_set_values(b, f, &f->direct, t);
        if (status == BL_OK) status = bl_network_find(b, f);
        if (status == BL_OK && f->clocks && !f->network && f->mode != HOST_INITIALIZING) status = meet_clocks(b, f, t);
    }
    return bl_host_leave(f, status == BL_OK ? bl_fmu_get_outputs(f, t) : status);
}

static int has_only_reals(const bl_fmu_values *values) {
    return values->group_count == 1 && values->groups[0].type == HOST_REAL;
}

int bl_fmu_derive(bl_block *b, double t, bl_operation output) {
    bl_fmu_host *f = b->external;
    if (!bl_fmu_is_running(f)) return BL_ERROR_BLOCK;
    bl_fmu_group *in = f->direct.groups, *out = f->outputs.groups;
    if (f->ended || !(f->flags & HOST_GIVES_DERIVATIVES) || !has_only_reals(&f->direct) ||
        !has_only_reals(&f->outputs) || !in->known)
        return output(b, t);
    for (int32_t k = 0; k < in->count; k++) in->input_derivatives[k] = bl_fmu_input(b, f, in, k) - in->reals[k];
    bl_host_enter(f);
    const bl_fmi_status status = f->fmi->get_directional_derivative(f, out, in);
    bl_host_leave(f, BL_OK);
    if (status == FMI_DISCARD) { /* differences will do */
        f->flags &= ~HOST_GIVES_DERIVATIVES;
        return output(b, t);
    }
    if (status > FMI_WARNING) return bl_host_status(f, status, "GetDirectionalDerivative", t);
    for (int32_t k = 0; k < out->count; k++) *out->places[k] = out->reals[k] + out->input_derivatives[k];
    return BL_OK;
}

static int host_directional_derivative(bl_block *b, double t) { return bl_fmu_derive(b, t, host_output); }

static int leave_initialization(bl_block *b, bl_fmu_host *f, double t) {
    int status = bl_fmu_tune(b, f, t);
    if (status == BL_OK) status = bl_fmu_set_values(b, f, &f->direct, t);
    if (status == BL_OK) status = bl_fmu_set_values(b, f, &f->delayed, t);
    return status == BL_OK ? f->fmi->exit_initialization(b, f, t) : status;
}

static int host_exit_initialization(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    if (!bl_fmu_is_running(f)) return BL_ERROR_BLOCK;
    if (f->mode != HOST_INITIALIZING) return BL_UNCHANGED;
    bl_working_directory directory;
    bl_fmu_enter_setup(f, &directory);
    int status = bl_network_find(b, f);
    if (status == BL_OK) status = leave_initialization(b, f, t);
    if (status == BL_OK && f->network) status = bl_network_begin(f, t);
    return bl_fmu_leave_setup(f, &directory, status);
}

/* States that a coupling has saved before are invalid now. */
static int host_accept_step(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    int status = host_exit_initialization(b, t);
    if (status == BL_UNCHANGED) status = BL_OK;
    if (f) {
        f->settled = t;
        f->oldest = INFINITY;
    }
    /* Clocks sample the inputs at t, not those that the coupling makes of them. */
    if (status != BL_OK || !f->clocks) return status;
    bl_clocks_trigger(b, f, t);
    if (f->mode != HOST_EVENTS && !bl_clocks_due(f, t)) return BL_OK;
    bl_host_enter(f);
    status = f->fmi->enter_events(f, t);
    if (status == BL_OK) status = bl_fmu_set_values(b, f, &f->delayed, t);
    return bl_host_leave(f, status == BL_OK ? f->fmi->leave_events(b, f, t) : status);
}

/* A step of a coupling, with redirected inputs that may have derivatives. FMUs differ in the value of such an input at
   the end of the step: values are set again afterwards. */
static int advance_coupled(bl_block *b, bl_fmu_host *f, double t, double dt) {
    const double h = dt / (double)f->substeps;
    const int32_t order = bl_fmu_largest_order(b),
                  before = f->input_derivative_order; /* derivatives set before are reset to zero */
    int status = BL_OK;
    for (int32_t k = 0; k < f->substeps && status == BL_OK; k++) {
        const bl_fmu_part part = {(double)k * h, h, order > before ? order : before};
        status = bl_fmu_set_polynomial(b, f, &f->direct, part, t + part.age);
        if (status == BL_OK) status = bl_fmu_set_polynomial(b, f, &f->delayed, part, t + part.age);
        if (status == BL_OK) status = f->fmi->do_step(b, f, t + part.age, h, k + 1 == f->substeps);
    }
    f->input_derivative_order = order < f->input_derivative_limit ? order : f->input_derivative_limit;
    f->time = t + dt;
    bl_fmu_forget_continuous(f);
    return status;
}

static int host_advance(bl_block *b, double t, double dt) {
    bl_fmu_host *f = b->external;
    if (!bl_fmu_is_running(f)) return BL_ERROR_BLOCK;
    int status = f->mode == HOST_INITIALIZING ? host_exit_initialization(b, t)
                                              : BL_OK; /* parameters were tuned with the outputs of the tick */
    if (f->ended) return bl_fmu_end_run(f, t);
    if (status != BL_OK) return status;
    status = bl_network_find(b, f);
    if (status != BL_OK) return status;
    if (f->network) return bl_network_advance(b, f, t, dt);
    bl_host_enter(f);
    if (b->u != f->gathered || b->u1 || f->input_derivative_order > 0)
        return bl_host_leave(f, advance_coupled(b, f, t, dt));
    if (f->clocks) bl_clocks_trigger(b, f, t);
    status = bl_fmu_set_values(b, f, &f->direct, t); /* as a rule known since the outputs */
    if (status == BL_OK) status = bl_fmu_set_values(b, f, &f->delayed, t);
    const double h = dt / (double)f->substeps;
    for (int32_t k = 0; k < f->substeps && status == BL_OK; k++)
        status = f->fmi->do_step(b, f, t + (double)k * h, h, k + 1 == f->substeps);
    f->time = t + dt;
    return bl_host_leave(f, status);
}

/* Events of an FMU: it ends the simulation, or, in FMI 3.0, has handled one of its own in event mode. */
static void host_describe_event(const bl_block *b, int32_t crossing, char *text, size_t size) {
    const char *clock = bl_clocks_name(b->external, crossing);
    if (clock) snprintf(text, size, "clock `%s` ticks", clock);
    if (crossing == 0) snprintf(text, size, "ends the simulation");
    if (crossing == 1) snprintf(text, size, "event in event mode");
}

const char *bl_fmu_last_error(const bl_block *b) {
    const bl_fmu_host *f = b->external;
    return f ? f->reason : "no FMU is attached to this block: a saved plan contains no FMU, run the diagram instead";
}

void bl_fmu_close(bl_block *b) {
    free_host(b->external);
    b->external = NULL;
}

const char *bl_fmu_messages(bl_engine *e, int32_t block) {
    bl_fmu_host *f = bl_fmu_host_of(e, block);
    if (!f) return "";
    bl_fmu_list_messages(f, MESSAGE_COUNT, "\n", f->shown, sizeof f->shown);
    return f->shown;
}

/* 64-bit integers that signals have rounded. */
void bl_fmu_diagnose(bl_block *b, int about, double t) {
    const bl_fmu_host *f = b->external;
    (void)t;
    if (about == BL_DIAGNOSTIC_RUN && f && f->inexact_count > 0) bl_log(b, "%s", bl_fmu_describe_inexact(b->external));
}

const char *bl_fmu_warning(bl_engine *e, int32_t block) {
    bl_fmu_host *f = bl_fmu_host_of(e, block);
    return f ? bl_fmu_describe_inexact(f) : "";
}

/* The operations are the same for all versions of FMI; states can be saved in snapshots or not. */
#define OPERATIONS \
    .init = bl_fmu_init, .output = host_output, .directional_derivative = host_directional_derivative, \
    .exit_initialization = host_exit_initialization, .accept_step = host_accept_step, .advance = host_advance, \
    .describe_event = host_describe_event, .diagnose = bl_fmu_diagnose, .close = bl_fmu_close, \
    .last_error = bl_fmu_last_error
#define SNAPSHOTS .save = bl_fmu_save_snapshot, .restore = bl_fmu_restore_snapshot

const bl_kernel bl_kernels_fmu[] = {
    {.name = "fmu2", .check = check_fmi2, OPERATIONS},
    {.name = "fmu2_rollback", .check = check_fmi2_rollback, OPERATIONS, SNAPSHOTS},
    {.name = "fmu3", .check = check_fmi3, OPERATIONS},
    {.name = "fmu3_rollback", .check = check_fmi3_rollback, OPERATIONS, SNAPSHOTS},
    {.name = 0},
};
