/* An FMU of another tool as a block of our engine.
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
 * An input is set only when its value has changed since it was last set. Its place is known from the start; only a coupling
 * has a member read from elsewhere, and then inputs may also be polynomials in time: see coupling.c. After fmi2Error an instance is only freed;
 * after fmi2Fatal nothing of the FMU is called any more. */
#include "fmu/importer/host.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmu/importer/process_state.h"
#include "scheduler/realtime/loop/clock.h"
#include "scheduler/engine/engine.h"

enum { MESSAGE_COUNT = 16, MESSAGE_LENGTH = 320, SHOWN_MESSAGES = 6, REASON_LENGTH = 1800 };
enum { LOCK_TRIES = 1000, LOCK_PAUSE = 20000 }; /* ns */

typedef enum { HOST_NONE, HOST_INITIALIZING, HOST_STEPPING, HOST_BROKEN, HOST_DEAD } bl_host_mode;

/* Values of one FMI type that are set or read in one call. */
typedef struct {
    int32_t type, count;
    int known;       /* whether the FMU has these values: unchanged values are not set again */
    int in_a_row;    /* whether the places lie side by side */
    double **places; /* in the engine */
    double *reals;
    double *input_derivatives;  /* first or second derivatives, */
    int *orders;     /* and which of them */
    int *integers;   /* or booleans */
    int32_t *ports, *elements; /* where it is among the ports */
    fmi2ValueReference *references;
    void *memory;    /* of the arrays */
} bl_fmu_group;

typedef struct {
    int32_t group_count; /* types that occur */
    bl_fmu_group groups[HOST_TYPES];
} bl_fmu_values;

typedef struct {
    fmi2FMUstate state;
    bl_host_mode mode;
    int32_t input_derivative_order;
    unsigned message_count;
    int ended;
} bl_fmu_snapshot;

typedef struct bl_fmu_host {
    /* Members used in a step come first, close together in memory. */
    fmi2Component component;
    bl_host_mode mode;
    int32_t flags, substeps;
    bl_float_control control;               /* of the thread that started it */
    _Atomic(const int *) caller; /* the thread that is calling the FMU, by the address of its errno; NULL: none */
    double time; /* where it is */
    double settled; /* where the step begins that a coupling takes */
    double oldest; /* the time of the oldest state that a coupling may still restore: see step() */
    double oldest_saved; /* and of the oldest one that was handed out as bytes; infinity: none was */
    int ended; /* whether it has ended the simulation, at the end of its last step */
    int32_t input_derivative_order; /* up to which derivatives of inputs were set last and may still be there */
    int32_t input_derivative_limit; /* up to which the FMU takes them */
    const double *const *gathered; /* the inputs that the places are of */
    bl_fmu_values direct, delayed, outputs; /* direct: inputs with direct feedthrough; delayed: the others */
    bl_fmu_calls call;
    double *tuned; /* what the tunable parameters were last set to, */
    int tuned_known; /* and whether the FMU still has that */
    void *library;
    fmi2CallbackFunctions callbacks;
    char *file, *name, *guid, *resources;
    int64_t string_count, category_count;
    fmi2ValueReference *string_references;
    char **strings, **categories;
    double tolerance, stop_time;
    int logging;
    bl_fmu_snapshot snapshots[BL_SNAPSHOTS + 1]; /* the last one is for serializing */
    uint64_t run; /* no other instance has the same */
    bl_fmu_snapshot *kept; /* states behind tickets */
    int64_t kept_count;
    atomic_uint message_count;
    char messages[MESSAGE_COUNT][MESSAGE_LENGTH];
    char shown[MESSAGE_COUNT * MESSAGE_LENGTH]; /* for bl_fmu_messages */
    char reason[REASON_LENGTH];
    struct bl_fmu_host *next; /* among all hosts of the process */
} bl_fmu_host;

/* ---- calls into the FMU */

/* The logger of an FMU gets back the environment that it was given with, or whatever the FMU passes instead. So a pointer is used only
   if it is that of a host; if it is not, the message is of the FMU that this thread is calling. FMI's logger has no other argument to
   find its host by, which is why these are not part of an engine. */
static bl_fmu_host *hosts;
static atomic_flag hosts_lock = ATOMIC_FLAG_INIT;

static void lock_hosts(void) {
    for (int tries = 0; atomic_flag_test_and_set_explicit(&hosts_lock, memory_order_acquire); tries++)
        if (tries > LOCK_TRIES)
            bl_clock_sleep_until(bl_clock_now() + LOCK_PAUSE); /* the holder may have a lower priority */
}
static void unlock_hosts(void) { atomic_flag_clear_explicit(&hosts_lock, memory_order_release); }

static void list_host(bl_fmu_host *f) {
    lock_hosts();
    f->next = hosts;
    hosts = f;
    unlock_hosts();
}

static void unlist_host(const bl_fmu_host *f) {
    lock_hosts();
    for (bl_fmu_host **link = &hosts; *link; link = &(*link)->next)
        if (*link == f) {
            *link = f->next;
            break;
        }
    unlock_hosts();
}

static bl_fmu_host *find_host(const void *environment) {
    bl_fmu_host *found[2] = {NULL, NULL};
    lock_hosts();
    for (bl_fmu_host *f = hosts; f; f = f->next) {
        if (f == environment) found[0] = f;
        if (atomic_load_explicit(&f->caller, memory_order_relaxed) == &errno) found[1] = f;
    }
    unlock_hosts();
    return found[0] ? found[0] : found[1];
}

static void put_back_control(const bl_fmu_host *f) {
    if (!bl_same_float_control(bl_get_float_control(), f->control)) bl_set_float_control(f->control);
}

static fmi2Status leave_call(const bl_fmu_host *f, fmi2Status status) {
    if (!bl_rounds_to_nearest()) put_back_control(f);
    return status;
}

/* CALL(f, DoStep, f->component, ...): the status of the call, after which the rounding mode is what it was. */
#define CALL(f, name, ...) leave_call(f, (f)->call.name(__VA_ARGS__))

/* An operation of a tick that calls the FMU is between these two. */
static void enter(bl_fmu_host *f) { atomic_store_explicit(&f->caller, &errno, memory_order_relaxed); }
static int leave(bl_fmu_host *f, int status) {
    atomic_store_explicit(&f->caller, NULL, memory_order_relaxed);
    return status;
}

/* And any other operation between these. */
static void enter_setup(bl_fmu_host *f, bl_working_directory *directory) {
    bl_keep_working_directory(directory);
    enter(f);
}
static int leave_setup(bl_fmu_host *f, bl_working_directory *directory, int status) {
    put_back_control(f);
    bl_restore_working_directory(directory);
    return leave(f, status);
}

/* ---- messages */

/* Whether a format may be handed to printf: a text that merely contains a % now and then gives conversions, and %n
   would write to memory. */
static int is_harmless(const char *format) {
    for (const char *c = format; *c; c++) {
        if (*c != '%') continue;
        c++;
        c += strspn(c, "-+ #0'");
        c += strspn(c, "0123456789*.$");
        c += strspn(c, "hlLqjzt");
        if (!*c || !strchr("diouxXeEfFgGaAcspm%", *c)) return 0;
    }
    return 1;
}

static const char *status_name(fmi2Status status) {
    static const char *const NAMES[] = {"fmi2OK",    "fmi2Warning", "fmi2Discard",
                                        "fmi2Error", "fmi2Fatal",   "fmi2Pending"};
    return (unsigned)status < sizeof NAMES / sizeof *NAMES ? NAMES[status] : "an undefined status";
}

/* FMUs call this from any thread: each message has a separate buffer, which is always null-terminated. */
static void note_message(fmi2ComponentEnvironment environment, fmi2String instance, fmi2Status status,
                         fmi2String category, fmi2String message, ...) {
    (void)instance;
    bl_fmu_host *f = message ? find_host(environment) : NULL;
    if (!f) return;
    char *line = f->messages[atomic_fetch_add(&f->message_count, 1u) % MESSAGE_COUNT];
    int length = snprintf(line, MESSAGE_LENGTH, "[%s%s%.40s] ", status_name(status), category ? ", " : "",
                          category ? category : "");
    if (length < 0 || length >= MESSAGE_LENGTH) return;
    if (is_harmless(message)) {
        va_list arguments;
        va_start(arguments, message);
        vsnprintf(line + length, (size_t)(MESSAGE_LENGTH - length), message, arguments);
        va_end(arguments);
    } else {
        snprintf(line + length, (size_t)(MESSAGE_LENGTH - length), "%s", message);
    }
    for (char *c = line; *c; c++)
        if (*c == '\n' || *c == '\r') *c = ' ';
    if (f->logging) fprintf(stderr, "%s (%s) %s\n", f->file, f->name, line);
}

static void list_messages(bl_fmu_host *f, unsigned limit, const char *separator, char *text, size_t size) {
    const unsigned count = atomic_load(&f->message_count);
    const unsigned shown = count < limit ? count : limit;
    size_t length = 0;
    text[0] = '\0';
    for (unsigned k = count - shown; k != count && length < size; k++) {
        const int added =
            snprintf(text + length, size - length, "%s%s", length ? separator : "", f->messages[k % MESSAGE_COUNT]);
        length += added > 0 ? (size_t)added : 0;
    }
}

static int set_error(bl_fmu_host *f, const char *format, ...) {
    char heard[SHOWN_MESSAGES * 200];
    int length = snprintf(f->reason, sizeof f->reason, "FMU `%.200s` (instance `%.100s`): ", f->file, f->name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->reason + length, sizeof f->reason - (size_t)length, format, arguments);
    va_end(arguments);
    list_messages(f, SHOWN_MESSAGES, "; ", heard, sizeof heard);
    const size_t end = strlen(f->reason);
    if (heard[0]) snprintf(f->reason + end, sizeof f->reason - end, "; its last messages: %s", heard);
    return BL_ERROR_BLOCK;
}

static const char *silence(bl_fmu_host *f) {
    return f->logging || atomic_load(&f->message_count) > 0 ? "" : " without a message; logging=True shows more";
}

/* Converts an FMI status; a warning is BL_OK. */
static int handle_status(bl_fmu_host *f, fmi2Status status, const char *function, double t) {
    if (status == fmi2OK || status == fmi2Warning) return BL_OK;
    if (status == fmi2Fatal) f->mode = HOST_DEAD;
    else if (status != fmi2Discard) f->mode = HOST_BROKEN;
    return set_error(f, "%s returned %s at t = %.9g%s", function, status_name(status), t, silence(f));
}

/* ---- loading */

static char *copy_text(const char *text) {
    const size_t size = text ? strlen(text) + 1 : 1;
    char *copy = malloc(size);
    if (copy) memcpy(copy, text ? text : "", size);
    return copy;
}

static int allocate_group(bl_fmu_group *g, int32_t type, int32_t count) {
    const size_t n = (size_t)count;
    g->memory = calloc(n, sizeof *g->places + sizeof *g->reals + sizeof *g->input_derivatives + sizeof *g->orders +
                              sizeof *g->integers + sizeof *g->ports + sizeof *g->elements + sizeof *g->references);
    if (!g->memory) return 0;
    g->type = type;
    g->places = g->memory;
    g->reals = (double *)(g->places + n);
    g->input_derivatives = g->reals + n;
    g->orders = (int *)(g->input_derivatives + n);
    g->integers = g->orders + n;
    g->ports = (int32_t *)(g->integers + n);
    g->elements = g->ports + n;
    g->references = (fmi2ValueReference *)(g->elements + n);
    return 1;
}

static void free_values(bl_fmu_values *values) {
    for (int32_t k = 0; k < values->group_count; k++) free(values->groups[k].memory);
}

typedef enum { HOST_DIRECT, HOST_DELAYED, HOST_ANY } bl_host_part;

static int is_part(const int32_t *record, bl_host_part part) {
    return part == HOST_ANY || (record[2] != 0) == (part == HOST_DIRECT);
}

/* Sorts the values of ports by type; of inputs those that are direct, or those that are not. */
static int gather_ports(bl_fmu_values *values, const int32_t *records, int32_t fields, bl_host_part part,
                        const double *const *ports, const int32_t *widths, int32_t port_count) {
    int32_t total = 0;
    for (int32_t p = 0; p < port_count; p++) total += widths[p];
    for (int32_t type = 0; type < HOST_TYPES; type++) {
        int32_t count = 0;
        for (int32_t k = 0; k < total; k++)
            count += records[k * fields + 1] == type && is_part(records + k * fields, part);
        if (count == 0) continue;
        bl_fmu_group *g = &values->groups[values->group_count];
        if (!allocate_group(g, type, count)) return 0;
        values->group_count++;
        const int32_t *record = records;
        for (int32_t p = 0; p < port_count; p++)
            for (int32_t k = 0; k < widths[p]; k++, record += fields) {
                if (record[1] != type || !is_part(record, part)) continue;
                g->references[g->count] = (fmi2ValueReference)record[0];
                g->ports[g->count] = p;
                g->elements[g->count] = k;
                g->places[g->count++] = (double *)(uintptr_t)(ports[p] + k);
            }
        g->in_a_row = 1;
        for (int32_t k = 1; k < g->count; k++) g->in_a_row &= g->places[k] == g->places[0] + k;
    }
    return 1;
}

static const int32_t *inputs_of(const bl_block *b) { return b->i + HOST_HEAD; }
static const int32_t *outputs_of(const bl_block *b) {
    const int32_t *record = inputs_of(b);
    for (int32_t p = 0; p < b->u_count; p++) record += (ptrdiff_t)HOST_INPUT_FIELDS * b->u_width[p];
    return record;
}
static const int32_t *parameters_of(const bl_block *b) {
    const int32_t *record = outputs_of(b);
    for (int32_t p = 0; p < b->y_count; p++) record += (ptrdiff_t)HOST_OUTPUT_FIELDS * b->y_width[p];
    return record;
}

static int check_records(const int32_t *records, int64_t count, int32_t fields) {
    for (int64_t k = 0; k < count; k++) {
        const int32_t type = records[k * fields + 1];
        if (type < HOST_REAL || type >= HOST_TYPES) return 0;
    }
    return 1;
}

static int host_check(const bl_block *b) {
    if (b->x_count || b->z_count || b->i_count < HOST_HEAD) return 0;
    const int64_t parameters = b->i[HOST_PARAMETERS];
    int64_t in = 0, out = 0;
    for (int32_t p = 0; p < b->u_count; p++) in += b->u_width[p];
    for (int32_t p = 0; p < b->y_count; p++) out += b->y_width[p];
    if (b->i[HOST_FLAGS] < 0 || b->i[HOST_FLAGS] > HOST_ALL_FLAGS) return 0;
    if (b->i[HOST_SUBSTEPS] < 1 || parameters < 0 || b->p_count != 2 * parameters) return 0;
    if (b->i[HOST_TUNABLE] < 0 || b->i[HOST_TUNABLE] > parameters) return 0;
    if (in > INT_MAX / 4 || out > INT_MAX / 4) return 0;
    if (b->i_count !=
        HOST_HEAD + HOST_INPUT_FIELDS * in + HOST_OUTPUT_FIELDS * out + HOST_PARAMETER_FIELDS * parameters)
        return 0;
    return check_records(inputs_of(b), in, HOST_INPUT_FIELDS) &&
           check_records(outputs_of(b), out, HOST_OUTPUT_FIELDS) &&
           check_records(parameters_of(b), parameters, HOST_PARAMETER_FIELDS);
}

static int host_check_rollback(const bl_block *b) { return host_check(b) && (b->i[HOST_FLAGS] & HOST_CAN_SAVE); }

static void end_instance(bl_fmu_host *f);

/* Libraries run their constructors and destructors when they are loaded and unloaded. */
static int load(bl_fmu_host *f, const char *path, char *message, size_t message_size) {
    bl_working_directory directory;
    enter_setup(f, &directory);
    return leave_setup(f, &directory, bl_fmu_load(path, f->flags, &f->library, &f->call, message, message_size));
}

static void unload(bl_fmu_host *f) {
    bl_working_directory directory;
    enter_setup(f, &directory);
    bl_fmu_unload(f->library);
    leave_setup(f, &directory, BL_OK);
}

static void free_host(bl_fmu_host *f) {
    if (!f) return;
    end_instance(f);
    if (f->mode != HOST_DEAD) unload(f);
    unlist_host(f);
    free_values(&f->direct);
    free_values(&f->delayed);
    free_values(&f->outputs);
    for (int64_t k = 0; f->strings && k < f->string_count; k++) free(f->strings[k]);
    for (int64_t k = 0; f->categories && k < f->category_count; k++) free(f->categories[k]);
    free(f->strings);
    free(f->categories);
    free(f->string_references);
    free(f->tuned);
    free(f->file);
    free(f->name);
    free(f->guid);
    free(f->resources);
    free(f);
}

static int copy_texts(char ***copies, const char *const *texts, int64_t count) {
    *copies = calloc(count > 0 ? (size_t)count : 1, sizeof **copies);
    int complete = *copies != NULL;
    for (int64_t k = 0; complete && k < count; k++) complete = ((*copies)[k] = copy_text(texts[k])) != NULL;
    return complete;
}

/* Everything that the block needs, all before the first tick. */
static int allocate_host(const bl_block *b, const bl_fmu_source *source, bl_fmu_host *f) {
    f->flags = b->i[HOST_FLAGS];
    f->substeps = b->i[HOST_SUBSTEPS];
    f->input_derivative_limit = f->flags & HOST_CAN_INTERPOLATE ? 2 : 0;
    f->gathered = b->u;
    f->tolerance = source->tolerance;
    f->stop_time = source->stop_time;
    f->logging = source->logging != 0;
    f->callbacks = (fmi2CallbackFunctions){note_message, calloc, free, NULL, f};
    f->file = copy_text(source->file);
    f->name = copy_text(source->name);
    f->guid = copy_text(source->guid);
    f->resources = copy_text(source->resources);
    f->string_count = source->string_count;
    f->category_count = source->log_category_count;
    const size_t string_count = (size_t)source->string_count, tunable = (size_t)b->i[HOST_TUNABLE];
    f->string_references = calloc(string_count + 1, sizeof *f->string_references);
    f->tuned = calloc(tunable + 1, sizeof *f->tuned);
    if (!f->file || !f->name || !f->guid || !f->resources || !f->string_references || !f->tuned) return 0;
    if (string_count > 0)
        memcpy(f->string_references, source->string_references, string_count * sizeof *f->string_references);
    return copy_texts(&f->strings, source->strings, source->string_count) &&
           copy_texts(&f->categories, source->log_categories, source->log_category_count) &&
           gather_ports(&f->direct, inputs_of(b), HOST_INPUT_FIELDS, HOST_DIRECT, b->u, b->u_width, b->u_count) &&
           gather_ports(&f->delayed, inputs_of(b), HOST_INPUT_FIELDS, HOST_DELAYED, b->u, b->u_width, b->u_count) &&
           gather_ports(&f->outputs, outputs_of(b), HOST_OUTPUT_FIELDS, HOST_ANY, (const double *const *)b->y,
                        b->y_width, b->y_count);
}

static int host_init(bl_block *b, double t);
static int is_host(const bl_engine *e, int32_t block) {
    return block >= 0 && block < e->block_count && e->kernels[block]->init == host_init;
}

int bl_attach_fmu(bl_engine *e, int32_t block, const bl_fmu_source *source) {
    if (!is_host(e, block) || !source || !source->library || source->string_count < 0 || source->log_category_count < 0)
        return bl_fail(e, BL_ERROR_ARGUMENT, -1, "block %d cannot hold an FMU", (int)block);
    bl_block *b = &e->blocks[block];
    free_host(b->external);
    b->external = NULL;
    bl_fmu_host *f = calloc(1, sizeof *f);
    if (f) {
        f->control = bl_get_float_control();
        list_host(f);
    }
    if (!f || !allocate_host(b, source, f)) {
        free_host(f);
        return bl_fail(e, BL_ERROR_MEMORY, block, "out of memory for the FMU");
    }
    char message[640] = "";
    const int status = load(f, source->library, message, sizeof message);
    if (status != BL_OK) {
        bl_fail(e, status, block, "FMU `%.200s`: %s", f->file, message);
        snprintf(e->message, sizeof e->message, "FMU `%.200s`: %s", f->file, message);
        free_host(f);
        return status;
    }
    b->external = f;
    return BL_OK;
}

/* ---- values */

static void forget_values(bl_fmu_values *values) {
    for (int32_t k = 0; k < values->group_count; k++) values->groups[k].known = 0;
}

static int is_integer(double value) { return value >= (double)INT_MIN && value <= (double)INT_MAX; }

static int fail_integer(bl_fmu_host *f, fmi2ValueReference reference, double value) {
    return set_error(
        f, "the integer with value reference %u cannot be %.17g: the range of FMI 2.0 is -2147483648 to 2147483647",
        (unsigned)reference, value);
}

/* Returns an input of the block. A coupling redirects it while it computes outputs before all members have advanced. */
static double input_value(const bl_block *b, const bl_fmu_host *f, const bl_fmu_group *g, int32_t k) {
    return b->u == f->gathered ? *g->places[k] : b->u[g->ports[k]][g->elements[k]];
}

/* Fetches the values of a group from the engine; returns whether the FMU does not have them yet. */
static int fetch_reals(const bl_block *b, const bl_fmu_host *f, bl_fmu_group *g) {
    int changed = !g->known;
    for (int32_t k = 0; k < g->count; k++) {
        const double value = input_value(b, f, g, k);
        changed |= memcmp(&g->reals[k], &value, sizeof value) != 0;
        g->reals[k] = value;
    }
    return changed;
}

/* One value of an integer or boolean input; a bl_status. */
static int fetch_whole(bl_fmu_host *f, bl_fmu_group *g, int32_t k, double value) {
    if (g->type == HOST_BOOLEAN) {
        g->integers[k] = value != 0.0;
        return BL_OK;
    }
    if (!is_integer(value)) return fail_integer(f, g->references[k], value);
    g->integers[k] = (int)lrint(value);
    return BL_OK;
}

static int fetch_integers(const bl_block *b, bl_fmu_host *f, bl_fmu_group *g, int *changed) {
    *changed = !g->known;
    for (int32_t k = 0; k < g->count; k++) {
        const int before = g->integers[k], status = fetch_whole(f, g, k, input_value(b, f, g, k));
        if (status != BL_OK) return status;
        *changed |= g->integers[k] != before;
    }
    return BL_OK;
}

/* Sets what was fetched. */
static int put_values(bl_fmu_host *f, bl_fmu_group *g, double t) {
    static const char *const NAMES[] = {"fmi2SetReal", "fmi2SetInteger", "fmi2SetBoolean"};
    const size_t count = (size_t)g->count;
    const fmi2Status status = g->type == HOST_REAL ? CALL(f, SetReal, f->component, g->references, count, g->reals)
                              : g->type == HOST_INTEGER
                                  ? CALL(f, SetInteger, f->component, g->references, count, g->integers)
                                  : CALL(f, SetBoolean, f->component, g->references, count, g->integers);
    if (status > fmi2Warning) return handle_status(f, status, NAMES[g->type], t);
    g->known = 1;
    return BL_OK;
}

static int set_values(const bl_block *b, bl_fmu_host *f, bl_fmu_values *values, double t) {
    for (bl_fmu_group *g = values->groups, *end = g + values->group_count; g != end; g++) {
        int changed = 0, status = BL_OK;
        if (g->type == HOST_REAL) changed = fetch_reals(b, f, g);
        else status = fetch_integers(b, f, g, &changed);
        if (status == BL_OK && changed) status = put_values(f, g, t);
        if (status != BL_OK) return status;
    }
    return BL_OK;
}

/* ---- inputs that change within a step */

/* A part of a step: h seconds long, `age` seconds after its start, with derivatives of inputs up to `order` to be set. */
typedef struct {
    double age, h;
    int32_t order;
} bl_fmu_part;

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

/* Discrete inputs have no polynomial. */
static int fetch_held(const bl_block *b, bl_fmu_host *f, bl_fmu_group *g) {
    int status = BL_OK;
    for (int32_t k = 0; k < g->count && status == BL_OK; k++)
        status = fetch_whole(f, g, k, b->u[g->ports[k]][g->elements[k]]);
    return status;
}

static fmi2Status set_input_derivatives(const bl_block *b, bl_fmu_host *f, bl_fmu_group *g, bl_fmu_part part,
                                        int order) {
    fetch_polynomial(b, g, part, f->input_derivative_limit, order);
    return CALL(f, SetRealInputDerivatives, f->component, g->references, (size_t)g->count, g->orders,
                g->input_derivatives);
}

/* Of the derivatives that inputs have. */
static int32_t largest_order(const bl_block *b) {
    for (int32_t p = 0; b->u2 && p < b->u_count; p++)
        for (int32_t k = 0; k < b->u_width[p]; k++)
            if (b->u2[p][k] != 0.0) return 2;
    return b->u1 ? 1 : 0;
}

/* Sets a group of inputs for a part of a step. FMI has no flag for how many derivatives an FMU takes: one that discards the second
   gets none any more. */
static int set_group_polynomial(const bl_block *b, bl_fmu_host *f, bl_fmu_group *g, bl_fmu_part part, double t) {
    int status = BL_OK;
    if (g->type == HOST_REAL) fetch_polynomial(b, g, part, f->input_derivative_limit, 0);
    else status = fetch_held(b, f, g);
    if (status == BL_OK) status = put_values(f, g, t);
    if (status != BL_OK || g->type != HOST_REAL || f->input_derivative_limit < 1 || part.order < 1) return status;
    status = handle_status(f, set_input_derivatives(b, f, g, part, 1), "fmi2SetRealInputDerivatives", t);
    if (status != BL_OK || f->input_derivative_limit < 2 || part.order < 2) return status;
    const fmi2Status answer = set_input_derivatives(b, f, g, part, 2);
    if (answer != fmi2Discard)
        return handle_status(f, answer,
                             "fmi2SetRealInputDerivatives of order 2, which extrapolation=1 does not require,", t);
    f->input_derivative_limit = 1;
    return set_group_polynomial(b, f, g, part, t);
}

static int set_polynomial(const bl_block *b, bl_fmu_host *f, bl_fmu_values *values, bl_fmu_part part, double t) {
    int status = BL_OK;
    for (int32_t k = 0; k < values->group_count && status == BL_OK; k++)
        status = set_group_polynomial(b, f, &values->groups[k], part, t);
    return status;
}

static int get_reals(bl_fmu_host *f, bl_fmu_group *g, double t) {
    double *into = g->in_a_row ? g->places[0] : g->reals;
    const fmi2Status status = CALL(f, GetReal, f->component, g->references, (size_t)g->count, into);
    if (status > fmi2Warning) return handle_status(f, status, "fmi2GetReal", t);
    if (g->in_a_row && f->flags & HOST_GIVES_DERIVATIVES) memcpy(g->reals, into, (size_t)g->count * sizeof *into);
    if (!g->in_a_row)
        for (int32_t k = 0; k < g->count; k++) *g->places[k] = g->reals[k];
    return BL_OK;
}

static int get_integers(bl_fmu_host *f, bl_fmu_group *g, double t) {
    const int boolean = g->type == HOST_BOOLEAN;
    const fmi2Status status = boolean ? CALL(f, GetBoolean, f->component, g->references, (size_t)g->count, g->integers)
                                      : CALL(f, GetInteger, f->component, g->references, (size_t)g->count, g->integers);
    if (status > fmi2Warning) return handle_status(f, status, boolean ? "fmi2GetBoolean" : "fmi2GetInteger", t);
    for (int32_t k = 0; k < g->count; k++)
        *g->places[k] = boolean ? (g->integers[k] ? 1.0 : 0.0) : (double)g->integers[k];
    return BL_OK;
}

static int get_outputs(bl_fmu_host *f, double t) {
    for (bl_fmu_group *g = f->outputs.groups, *end = g + f->outputs.group_count; g != end; g++) {
        const int status = g->type == HOST_REAL ? get_reals(f, g, t) : get_integers(f, g, t);
        if (status != BL_OK) return status;
    }
    return BL_OK;
}

static int set_parameter(bl_fmu_host *f, const int32_t *record, double value, double t) {
    const fmi2ValueReference reference = (fmi2ValueReference)record[0];
    if (record[1] == HOST_INTEGER && !is_integer(value)) return fail_integer(f, reference, value);
    const int whole = record[1] == HOST_INTEGER ? (int)lrint(value) : value != 0.0;
    switch (record[1]) {
        case HOST_REAL:
            return handle_status(f, CALL(f, SetReal, f->component, &reference, 1, &value), "fmi2SetReal", t);
        case HOST_INTEGER:
            return handle_status(f, CALL(f, SetInteger, f->component, &reference, 1, &whole), "fmi2SetInteger", t);
        default: return handle_status(f, CALL(f, SetBoolean, f->component, &reference, 1, &whole), "fmi2SetBoolean", t);
    }
}

/* Before a run: what the user gave, and what differs from the FMU's own start; the rest is the FMU's business. */
static int set_parameters(const bl_block *b, bl_fmu_host *f, double t) {
    const int32_t count = b->i[HOST_PARAMETERS], tunable = b->i[HOST_TUNABLE];
    const double *value = b->p, *own = b->p + count;
    const int32_t *record = parameters_of(b);
    int status = BL_OK;
    for (int32_t k = 0; k < count && status == BL_OK; k++, record += HOST_PARAMETER_FIELDS)
        if (record[2] || memcmp(&value[k], &own[k], sizeof own[k]) != 0) status = set_parameter(f, record, value[k], t);
    memcpy(f->tuned, value, (size_t)tunable * sizeof *f->tuned);
    f->tuned_known = 1;
    if (status == BL_OK && f->string_count > 0)
        status = handle_status(f,
                               CALL(f, SetString, f->component, f->string_references, (size_t)f->string_count,
                                    (const fmi2String *)f->strings),
                               "fmi2SetString", t);
    return status;
}

/* During a run: tunable parameters that were changed from outside. */
static int tune(const bl_block *b, bl_fmu_host *f, double t) {
    const int32_t tunable = b->i[HOST_TUNABLE];
    if (tunable == 0 || (f->tuned_known && memcmp(f->tuned, b->p, (size_t)tunable * sizeof *f->tuned) == 0))
        return BL_OK;
    const int32_t *record = parameters_of(b);
    for (int32_t k = 0; k < tunable; k++, record += HOST_PARAMETER_FIELDS) {
        if (f->tuned_known && memcmp(&f->tuned[k], &b->p[k], sizeof *b->p) == 0) continue;
        const int status = set_parameter(f, record, b->p[k], t);
        if (status != BL_OK) return status;
        f->tuned[k] = b->p[k];
    }
    f->tuned_known = 1;
    return BL_OK;
}

/* ---- the block */

static void free_state(bl_fmu_host *f, bl_fmu_snapshot *snapshot) {
    if (snapshot->state && f->mode != HOST_DEAD) CALL(f, FreeFMUstate, f->component, &snapshot->state);
    snapshot->state = NULL;
    snapshot->mode = HOST_NONE;
}

/* Ends the instance, by the calls that its state allows. */
static void end_instance(bl_fmu_host *f) {
    if (f->component && f->mode != HOST_DEAD) {
        bl_working_directory directory;
        enter_setup(f, &directory);
        for (int k = 0; k <= BL_SNAPSHOTS; k++) free_state(f, &f->snapshots[k]);
        for (int64_t k = 0; k < f->kept_count; k++) free_state(f, &f->kept[k]);
        if (f->mode == HOST_STEPPING && CALL(f, Terminate, f->component) == fmi2Fatal) f->mode = HOST_DEAD;
        if (f->mode != HOST_DEAD) f->call.FreeInstance(f->component);
        leave_setup(f, &directory, BL_OK);
    }
    free(f->kept);
    f->kept = NULL;
    f->kept_count = 0;
    f->component = NULL;
    if (f->mode != HOST_DEAD) f->mode = HOST_NONE;
}

static int start_instance(bl_block *b, bl_fmu_host *f, double t) {
    static atomic_uint_fast64_t run_count;
    f->run = atomic_fetch_add(&run_count, 1) + 1;
    f->oldest = f->oldest_saved = INFINITY;
    f->ended = 0;
    f->time = f->settled = t;
    f->reason[0] = '\0';
    atomic_store(&f->message_count, 0u);
    forget_values(&f->direct);
    forget_values(&f->delayed);
    f->input_derivative_order = 0;
    const int listening = f->logging || f->category_count > 0;
    f->component = f->call.Instantiate(f->name, fmi2CoSimulation, f->guid, f->resources, &f->callbacks, fmi2False,
                                       listening ? fmi2True : fmi2False);
    put_back_control(f);
    if (!f->component)
        return set_error(f, "fmi2Instantiate returned no instance%s%s",
                         f->flags & HOST_NEEDS_TOOL ? " (its description requires the tool that exported it)" : "",
                         silence(f));
    int status = BL_OK;
    if (listening) {
        const fmi2Status logged = CALL(f, SetDebugLogging, f->component, fmi2True, (size_t)f->category_count,
                                       (const fmi2String *)f->categories);
        if (f->logging || logged == fmi2Fatal) status = handle_status(f, logged, "fmi2SetDebugLogging", t);
    }
    const int stops = !isnan(f->stop_time);
    if (status == BL_OK)
        status = handle_status(f,
                               CALL(f, SetupExperiment, f->component, f->tolerance > 0.0, f->tolerance, t, stops,
                                    stops ? f->stop_time : 0.0),
                               "fmi2SetupExperiment", t);
    if (status == BL_OK) status = set_parameters(b, f, t);
    if (status == BL_OK)
        status = handle_status(f, CALL(f, EnterInitializationMode, f->component), "fmi2EnterInitializationMode", t);
    if (status == BL_OK) f->mode = HOST_INITIALIZING;
    return status;
}

static int host_init(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    if (!f) return BL_ERROR_BLOCK;
    if (f->mode == HOST_DEAD) return set_error(f, "it had a fatal error and cannot be restarted");
    bl_working_directory directory;
    end_instance(f);
    f->control = bl_get_float_control();
    enter_setup(f, &directory);
    return leave_setup(f, &directory, start_instance(b, f, t));
}

static int is_running(bl_fmu_host *f) { return f && (f->mode == HOST_INITIALIZING || f->mode == HOST_STEPPING); }

static int host_output(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    if (!is_running(f)) return BL_ERROR_BLOCK;
    enter(f);
    f->time = t;
    int status = BL_OK;
    if (!f->ended) { /* after that nothing may be set */
        status = tune(b, f, t);
        if (status == BL_OK) status = set_values(b, f, &f->direct, t);
    }
    return leave(f, status == BL_OK ? get_outputs(f, t) : status);
}

static int has_only_reals(const bl_fmu_values *values) {
    return values->group_count == 1 && values->groups[0].type == HOST_REAL;
}

static int host_directional_derivative(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    if (!is_running(f)) return BL_ERROR_BLOCK;
    bl_fmu_group *in = f->direct.groups, *out = f->outputs.groups;
    if (f->ended || !(f->flags & HOST_GIVES_DERIVATIVES) || !has_only_reals(&f->direct) ||
        !has_only_reals(&f->outputs) || !in->known)
        return host_output(b, t);
    for (int32_t k = 0; k < in->count; k++) in->input_derivatives[k] = input_value(b, f, in, k) - in->reals[k];
    enter(f);
    const fmi2Status status = CALL(f, GetDirectionalDerivative, f->component, out->references, (size_t)out->count,
                                   in->references, (size_t)in->count, in->input_derivatives, out->input_derivatives);
    leave(f, BL_OK);
    if (status == fmi2Discard) { /* differences will do */
        f->flags &= ~HOST_GIVES_DERIVATIVES;
        return host_output(b, t);
    }
    if (status > fmi2Warning) return handle_status(f, status, "fmi2GetDirectionalDerivative", t);
    for (int32_t k = 0; k < out->count; k++) *out->places[k] = out->reals[k] + out->input_derivatives[k];
    return BL_OK;
}

/* Returns the time reached in a step that was discarded with fmi2Terminated; t if the FMU does not report it. */
static double last_successful_time(bl_fmu_host *f, double t, double h) {
    double reached = t;
    if (!f->call.GetRealStatus || CALL(f, GetRealStatus, f->component, fmi2LastSuccessfulTime, &reached) != fmi2OK)
        return t;
    return reached > t && reached <= t + 1.000001 * h ? reached : t;
}

static int end_run(bl_fmu_host *f, double t) {
    set_error(f, "it requested the end of the simulation at t = %.9g", t);
    return BL_STOP;
}

/* The last argument of fmi2DoStep promises that no state from before the start of the step will be restored; some FMUs keep what a step
   has changed only then. A state at its very start may be, so the promise also holds for a step that a coupling repeats as a
   whole; it does not hold for a later part of one, and not after a state from before it was handed out. */
static int step(const bl_block *b, bl_fmu_host *f, double t, double h, int is_last) {
    const fmi2Boolean no_return = t <= f->oldest && t <= f->oldest_saved + 1e-6 * h ? fmi2True : fmi2False;
    const fmi2Status status = CALL(f, DoStep, f->component, t, h, no_return);
    if (status <= fmi2Warning) return BL_OK;
    fmi2Boolean ended = fmi2False;
    if (status == fmi2Discard && CALL(f, GetBooleanStatus, f->component, fmi2Terminated, &ended) == fmi2OK && ended) {
        const double reached = last_successful_time(f, t, h);
        bl_note_event(b, reached, 0);
        if (!is_last || reached < t + 0.999999 * h) return end_run(f, reached);
        f->ended = 1; /* after the step was done: its end is still a sample */
        return BL_OK;
    }
    if (status == fmi2Pending) {
        f->mode = HOST_BROKEN;
        return set_error(
            f, "fmi2DoStep returned fmi2Pending at t = %.9g, although asynchronous execution was not requested", t);
    }
    return handle_status(f, status, "fmi2DoStep", t);
}

static int leave_initialization(bl_block *b, bl_fmu_host *f, double t) {
    int status = tune(b, f, t);
    if (status == BL_OK) status = set_values(b, f, &f->direct, t);
    if (status == BL_OK) status = set_values(b, f, &f->delayed, t);
    if (status == BL_OK)
        status = handle_status(f, CALL(f, ExitInitializationMode, f->component), "fmi2ExitInitializationMode", t);
    if (status == BL_OK) f->mode = HOST_STEPPING;
    return status;
}

static int host_exit_initialization(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    if (!is_running(f)) return BL_ERROR_BLOCK;
    if (f->mode != HOST_INITIALIZING) return BL_UNCHANGED;
    bl_working_directory directory;
    enter_setup(f, &directory);
    return leave_setup(f, &directory, leave_initialization(b, f, t));
}

/* States that a coupling has saved before are invalid now. */
static int host_accept_step(bl_block *b, double t) {
    bl_fmu_host *f = b->external;
    const int status = host_exit_initialization(b, t);
    if (f) {
        f->settled = t;
        f->oldest = INFINITY;
    }
    return status == BL_UNCHANGED ? BL_OK : status;
}

/* A step of a coupling, with redirected inputs that may have derivatives. FMUs differ in the value of such an input at
   the end of the step: values are set again afterwards. */
static int advance_coupled(bl_block *b, bl_fmu_host *f, double t, double dt) {
    const double h = dt / (double)f->substeps;
    const int32_t order = largest_order(b),
                  before = f->input_derivative_order; /* derivatives set before are reset to zero */
    int status = BL_OK;
    for (int32_t k = 0; k < f->substeps && status == BL_OK; k++) {
        const bl_fmu_part part = {(double)k * h, h, order > before ? order : before};
        status = set_polynomial(b, f, &f->direct, part, t + part.age);
        if (status == BL_OK) status = set_polynomial(b, f, &f->delayed, part, t + part.age);
        if (status == BL_OK) status = step(b, f, t + part.age, h, k + 1 == f->substeps);
    }
    f->input_derivative_order = order < f->input_derivative_limit ? order : f->input_derivative_limit;
    f->time = t + dt;
    forget_values(&f->direct);
    forget_values(&f->delayed);
    return status;
}

static int host_advance(bl_block *b, double t, double dt) {
    bl_fmu_host *f = b->external;
    if (!is_running(f)) return BL_ERROR_BLOCK;
    int status = f->mode == HOST_INITIALIZING ? host_exit_initialization(b, t)
                                              : BL_OK; /* parameters were tuned with the outputs of the tick */
    if (f->ended) return end_run(f, t);
    if (status != BL_OK) return status;
    enter(f);
    if (b->u != f->gathered || b->u1 || f->input_derivative_order > 0) return leave(f, advance_coupled(b, f, t, dt));
    status = set_values(b, f, &f->direct, t); /* as a rule known since the outputs */
    if (status == BL_OK) status = set_values(b, f, &f->delayed, t);
    const double h = dt / (double)f->substeps;
    for (int32_t k = 0; k < f->substeps && status == BL_OK; k++)
        status = step(b, f, t + (double)k * h, h, k + 1 == f->substeps);
    f->time = t + dt;
    return leave(f, status);
}

/* An FMU for co-simulation reports no events but one. */
static void host_describe_event(const bl_block *b, int32_t crossing, char *text, size_t size) {
    (void)b;
    if (crossing == 0) snprintf(text, size, "ends the simulation");
}

static const char *host_last_error(const bl_block *b) {
    const bl_fmu_host *f = b->external;
    return f ? f->reason : "no FMU is attached to this block: a saved plan contains no FMU, run the diagram instead";
}

static void host_close(bl_block *b) {
    free_host(b->external);
    b->external = NULL;
}

/* ---- saved states */

static int keep_state(bl_fmu_host *f, bl_fmu_snapshot *snapshot) {
    const int status = handle_status(f, CALL(f, GetFMUstate, f->component, &snapshot->state), "fmi2GetFMUstate", 0.0);
    snapshot->input_derivative_order = f->input_derivative_order;
    snapshot->ended = f->ended;
    if (status == BL_OK) snapshot->mode = f->mode;
    return status;
}

static int put_back_state(bl_fmu_host *f, const bl_fmu_snapshot *snapshot) {
    const int status = handle_status(f, CALL(f, SetFMUstate, f->component, snapshot->state), "fmi2SetFMUstate", 0.0);
    if (status != BL_OK) return status;
    f->mode = snapshot->mode;
    f->input_derivative_order = snapshot->input_derivative_order;
    f->ended = snapshot->ended;
    f->tuned_known = 0;
    forget_values(&f->direct);
    forget_values(&f->delayed);
    return BL_OK;
}

static int host_save(bl_block *b, int snapshot) {
    bl_fmu_host *f = b->external;
    if (!is_running(f) || snapshot < 0 || snapshot >= BL_SNAPSHOTS) return BL_ERROR_BLOCK;
    f->snapshots[snapshot].message_count = atomic_load(&f->message_count);
    f->oldest = f->settled;
    enter(f);
    return leave(f, keep_state(f, &f->snapshots[snapshot]));
}

static int host_restore(bl_block *b, int snapshot) {
    bl_fmu_host *f = b->external;
    if (!f || !f->component || snapshot < 0 || snapshot >= BL_SNAPSHOTS || !f->snapshots[snapshot].state ||
        f->mode == HOST_DEAD)
        return BL_ERROR_BLOCK;
    enter(f);
    const int status = leave(f, put_back_state(f, &f->snapshots[snapshot]));
    if (status == BL_OK && f->reason[0]) { /* a failed step is rolled back, together with its message */
        f->reason[0] = '\0';
        atomic_store(&f->message_count, f->snapshots[snapshot].message_count);
    }
    return status;
}

/* A state as bytes: this header, then the state serialized by the FMU, or nothing if a ticket refers to it. */
typedef struct {
    uint64_t run; /* 0, or which run the ticket is good for */
    int64_t ticket, mode, input_derivative_order, ended;
} bl_fmu_state_head;

static bl_fmu_host *running_host(bl_engine *e, int32_t block) {
    bl_fmu_host *f = is_host(e, block) ? e->blocks[block].external : NULL;
    if (!f || !f->component || f->mode == HOST_DEAD) {
        bl_fail(e, BL_ERROR_STATE, -1, "the FMU of `%s` is not running", bl_block_path(e, block));
        return NULL;
    }
    if (f->flags & HOST_CAN_SAVE) return f;
    set_error(f, "it cannot save its state (canGetAndSetFMUstate is false in its description)");
    bl_fail(e, BL_ERROR_STATE, block, "it cannot save its state");
    return NULL;
}

static int64_t state_size(bl_engine *e, int32_t block, bl_fmu_host *f) {
    size_t size = 0;
    if (f->flags & HOST_CAN_SERIALIZE) {
        bl_fmu_snapshot *snapshot = &f->snapshots[BL_SNAPSHOTS];
        int status = is_running(f) ? keep_state(f, snapshot) : set_error(f, "it has failed and has no state to save");
        if (status == BL_OK)
            status = handle_status(f, CALL(f, SerializedFMUstateSize, f->component, snapshot->state, &size),
                                   "fmi2SerializedFMUstateSize", 0.0);
        if (status == BL_OK && size > INT64_MAX / 2) status = set_error(f, "its state has an invalid size");
        if (status != BL_OK) return bl_fail(e, BL_ERROR_STATE, block, "its state cannot be saved");
    }
    return (int64_t)(sizeof(bl_fmu_state_head) + size);
}

int64_t bl_fmu_state_size(bl_engine *e, int32_t block) {
    bl_fmu_host *f = running_host(e, block);
    bl_working_directory directory;
    if (!f) return BL_ERROR_STATE;
    enter_setup(f, &directory);
    const int64_t size = state_size(e, block, f);
    leave_setup(f, &directory, BL_OK);
    return size;
}

static int save_behind_ticket(bl_fmu_host *f, bl_fmu_state_head *head) {
    bl_fmu_snapshot *more = realloc(f->kept, (size_t)(f->kept_count + 1) * sizeof *more);
    if (!more) return BL_ERROR_MEMORY;
    f->kept = more;
    f->kept[f->kept_count] = (bl_fmu_snapshot){NULL, HOST_NONE, 0, 0, 0};
    head->run = f->run;
    head->ticket = f->kept_count++;
    return keep_state(f, &f->kept[head->ticket]);
}

static int save_state(bl_engine *e, int32_t block, bl_fmu_host *f, void *bytes, int64_t size) {
    bl_fmu_state_head head = {0, 0, (int64_t)f->mode, f->input_derivative_order, f->ended};
    if (size < (int64_t)sizeof head) return bl_fail(e, BL_ERROR_ARGUMENT, -1, "the buffer is too small for a state");
    int status = BL_OK;
    if (f->flags & HOST_CAN_SERIALIZE)
        status = handle_status(f,
                               CALL(f, SerializeFMUstate, f->component, f->snapshots[BL_SNAPSHOTS].state,
                                    (char *)bytes + sizeof head, (size_t)size - sizeof head),
                               "fmi2SerializeFMUstate", 0.0);
    else status = is_running(f) ? save_behind_ticket(f, &head) : set_error(f, "it has failed and has no state to save");
    if (status != BL_OK) return bl_fail(e, BL_ERROR_STATE, block, "its state cannot be saved");
    memcpy(bytes, &head, sizeof head);
    f->oldest_saved = fmin(f->oldest_saved, f->time);
    return BL_OK;
}

int bl_fmu_save(bl_engine *e, int32_t block, void *bytes, int64_t size) {
    bl_fmu_host *f = running_host(e, block);
    bl_working_directory directory;
    if (!f) return BL_ERROR_STATE;
    enter_setup(f, &directory);
    return leave_setup(f, &directory, save_state(e, block, f, bytes, size));
}

static int restore_state(bl_engine *e, int32_t block, bl_fmu_host *f, const void *bytes, int64_t size) {
    bl_fmu_state_head head;
    if (size < (int64_t)sizeof head) return bl_fail(e, BL_ERROR_STATE, -1, "the saved state of an FMU is truncated");
    memcpy(&head, bytes, sizeof head);
    if ((head.mode != HOST_INITIALIZING && head.mode != HOST_STEPPING) || head.input_derivative_order < 0 ||
        head.input_derivative_order > 2)
        return bl_fail(e, BL_ERROR_STATE, -1, "the saved state of an FMU is damaged");
    int status = BL_OK;
    if (head.run != 0) {
        if (head.run != f->run || head.ticket < 0 || head.ticket >= f->kept_count) {
            set_error(f, "it cannot serialize its state (canSerializeFMUstate is false in its description), so a saved "
                         "state is valid only within its run");
            return bl_fail(e, BL_ERROR_STATE, block, "the saved state belongs to another run");
        }
        status = put_back_state(f, &f->kept[head.ticket]);
    } else if (f->flags & HOST_CAN_SERIALIZE) {
        bl_fmu_snapshot *snapshot = &f->snapshots[BL_SNAPSHOTS];
        free_state(f, snapshot);
        status = handle_status(f,
                               CALL(f, DeSerializeFMUstate, f->component, (const char *)bytes + sizeof head,
                                    (size_t)size - sizeof head, &snapshot->state),
                               "fmi2DeSerializeFMUstate", 0.0);
        snapshot->mode = (bl_host_mode)head.mode;
        snapshot->input_derivative_order = (int32_t)head.input_derivative_order;
        snapshot->ended = head.ended != 0;
        if (status == BL_OK) status = put_back_state(f, snapshot);
    } else {
        status = set_error(f, "the saved state belongs to another FMU");
    }
    return status == BL_OK ? BL_OK : bl_fail(e, BL_ERROR_STATE, block, "the saved state does not fit");
}

int bl_fmu_restore(bl_engine *e, int32_t block, const void *bytes, int64_t size) {
    bl_fmu_host *f = running_host(e, block);
    bl_working_directory directory;
    if (!f) return BL_ERROR_STATE;
    enter_setup(f, &directory);
    return leave_setup(f, &directory, restore_state(e, block, f, bytes, size));
}

const char *bl_fmu_messages(bl_engine *e, int32_t block) {
    bl_fmu_host *f = is_host(e, block) ? e->blocks[block].external : NULL;
    if (!f) return "";
    list_messages(f, MESSAGE_COUNT, "\n", f->shown, sizeof f->shown);
    return f->shown;
}

const bl_kernel bl_kernels_fmu[] = {
    {.name = "fmu2",
     .check = host_check,
     .init = host_init,
     .output = host_output,
     .directional_derivative = host_directional_derivative,
     .exit_initialization = host_exit_initialization,
     .accept_step = host_accept_step,
     .advance = host_advance,
     .describe_event = host_describe_event,
     .close = host_close,
     .last_error = host_last_error},
    {.name = "fmu2_rollback",
     .check = host_check_rollback,
     .init = host_init,
     .output = host_output,
     .directional_derivative = host_directional_derivative,
     .exit_initialization = host_exit_initialization,
     .accept_step = host_accept_step,
     .advance = host_advance,
     .describe_event = host_describe_event,
     .save = host_save,
     .restore = host_restore,
     .close = host_close,
     .last_error = host_last_error},
    {.name = 0},
};
