/* FMUs of other tools in our engine: what the files of this folder share.
 *
 *   host.c          the block: its operations, in the order in which the engine calls them
 *   values.c        inputs, outputs and parameters, between the engine and the FMU
 *   text_values.c   inputs and outputs that are strings or binaries
 *   saved_states.c  snapshots of a coupling, and states as bytes
 *   messages.c      the logger, error texts, what a status means
 *   fmi2_calls.c    one version of FMI each: a table of operations (bl_fmi),
 *   fmi3_calls.c    which call the functions of the FMU
 *   binary.c        the shared library of the FMU
 *   exchange.c      FMUs for model exchange: see exchange.h
 *   remote.c        the same in another process
 *   clocks.c        clocks of FMI 3.0: see clocks.h
 *   network.c       FMUs whose clocks are connected, advanced together: see network.h */
#ifndef BIELLA_HOST_H
#define BIELLA_HOST_H

#include <errno.h>
#include <stdatomic.h>

#include "fmu/importer/host/process_state.h"
#include "scheduler/engine/biella.h"

/* The integers of a block of kernel fmu2 or fmu3: this head, then for every value of every input port
   reference, type, whether it has direct feedthrough; for every value of every output port reference, type;
   for every parameter reference, type, when it is set. Parameters that can be tuned come first. The block's
   numbers are the parameters, followed by the FMU's own start values. fmu/importer/_fmu.py writes the same. */
enum {
    HOST_FLAGS,
    HOST_SUBSTEPS,
    HOST_PARAMETERS,
    HOST_TUNABLE,
    HOST_INDICATORS, /* event indicators, of an FMU for model exchange */
    HOST_DIGEST,
    HOST_HEAD = HOST_DIGEST + 2
};
enum { HOST_INPUT_FIELDS = 3, HOST_OUTPUT_FIELDS = 2, HOST_PARAMETER_FIELDS = 3 };
enum {
    HOST_CAN_SAVE = 1,
    HOST_CAN_SERIALIZE = 2,
    HOST_CAN_INTERPOLATE = 4,
    HOST_NEEDS_TOOL = 8,
    HOST_GIVES_DERIVATIVES = 16,
    HOST_HAS_EVENTS = 32, /* FMI 3.0: event mode is used, */
    HOST_IS_CONFIGURED = 64, /* structural parameters are set */
    HOST_ALL_FLAGS = 127,
    HOST_NO_FLAG = 128,
    HOST_STEPS = 256, /* which functions a library must have: for co-simulation, */
    HOST_EXCHANGES = 512 /* for model exchange */
};
/* Types of values. In FMI 3.0 HOST_REAL is Float64, HOST_INTEGER is Int32, and enumerations are HOST_INT64. */
enum {
    HOST_REAL,
    HOST_INTEGER,
    HOST_BOOLEAN,
    HOST_STRING, /* of ports only */
    HOST_FMI2_TYPES,
    HOST_FLOAT32 = HOST_FMI2_TYPES,
    HOST_INT8,
    HOST_UINT8,
    HOST_INT16,
    HOST_UINT16,
    HOST_UINT32,
    HOST_INT64,
    HOST_UINT64,
    HOST_BINARY, /* of ports only */
    HOST_CLOCK, /* of ports only: whether a clock has been active since the last tick, or is activated */
    HOST_TYPES
};
/* Added to the type: the value follows the previous one in the same array; it may only change in event mode; a clock activates it. */
enum { HOST_CONTINUES = 256, HOST_DISCRETE = 512, HOST_CLOCKED = 1024, HOST_TYPE_MASK = 255 };
/* When a parameter is set: if it differs from the FMU's own start value, always, or in configuration mode. */
enum { HOST_IF_CHANGED, HOST_ALWAYS, HOST_STRUCTURAL };

/* A status of an FMU, by the numbers that FMI 2.0 and 3.0 have in common; FMI 3.0 has no pending. */
typedef enum { FMI_OK, FMI_WARNING, FMI_DISCARD, FMI_ERROR, FMI_FATAL, FMI_PENDING } bl_fmi_status;

typedef enum { HOST_NONE, HOST_INITIALIZING, HOST_STEPPING, HOST_BROKEN, HOST_DEAD, HOST_EVENTS } bl_host_mode;

enum { MESSAGE_COUNT = 16, MESSAGE_LENGTH = 320, SHOWN_MESSAGES = 6, REASON_LENGTH = 1800, INEXACT_COUNT = 4 };
/* States of an FMU that cannot serialize them and that can be restored: older ones are freed. */
enum { KEPT_STATES = 100 };

/* Values of one FMI type that are set or read in one call. */
typedef struct {
    int32_t type, count;
    int32_t reference_count; /* smaller than `count` if there are arrays */
    int known;       /* whether the FMU has these values: unchanged values are not set again */
    int in_a_row;    /* whether the places lie side by side */
    int is_discrete; /* whether they may only be set in event mode */
    double **places; /* in the engine */
    double *reals;
    double *input_derivatives;  /* first or second derivatives, */
    void *native;    /* the values in the type of the FMU, where that is not double */
    int *orders;     /* of the derivatives */
    int32_t *ports, *elements; /* where it is among the ports */
    int32_t *numbers; /* of the records, for names */
    uint32_t *references;
    void *memory;    /* of the arrays */
} bl_fmu_group;

typedef struct {
    int32_t group_count; /* types that occur */
    bl_fmu_group groups[2 * HOST_TYPES];
} bl_fmu_values;

typedef struct {
    void *state; /* of the FMU */
    bl_host_mode mode;
    int32_t input_derivative_order;
    unsigned message_count;
    int ended;
    double next_event;
    double
        *held; /* inputs that are set in event mode only, and clocks, as bl_fmu_keep_held() writes them; NULL: none */
} bl_fmu_snapshot;

/* A 64-bit integer of the FMU that a signal cannot hold. */
typedef struct {
    int32_t number; /* of its record */
    char text[24];
    double t;
} bl_fmu_inexact;

typedef struct bl_fmi bl_fmi;

typedef struct bl_fmu_host {
    /* Members used in a step come first, close together in memory. */
    const bl_fmi *fmi;
    bl_engine *engine; /* which has the strings of signals */
    void *calls; /* the functions of the FMU, a table of that version */
    void *component;
    bl_host_mode mode;
    int32_t flags, substeps;
    bl_float_control control; /* of the thread that started it */
    _Atomic(const int *) caller; /* the thread that is calling the FMU, by the address of its errno; NULL: none */
    double time; /* where it is */
    double next_event; /* FMI 3.0, in event mode: the time of its next time event, or infinity */
    double settled; /* where the step begins that a coupling takes */
    double oldest; /* the time of the oldest state that a coupling may still restore: see bl_fmu_cannot_return() */
    double oldest_saved; /* and of the oldest one that was handed out as bytes; infinity: none was */
    int ended; /* whether it has ended the simulation, at the end of its last step */
    int32_t input_derivative_order; /* up to which derivatives of inputs were set last and may still be there */
    int32_t input_derivative_limit; /* up to which the FMU takes them */
    const double *const *gathered; /* the inputs that the places are of */
    bl_fmu_values direct, delayed, outputs; /* direct: inputs with direct feedthrough; delayed: the others */
    void *scratch; /* a parameter in the type of the FMU */
    double *tuned; /* what the tunable parameters were last set to, */
    int tuned_known; /* and whether the FMU still has that */
    void *library, *callbacks;
    char *file, *name, *guid, *resources;
    int64_t string_count, string_reference_count, binary_count, binary_reference_count, category_count, name_count;
    uint32_t *string_references, *binary_references;
    char **strings, **categories, **names;
    unsigned char **binaries;
    size_t *binary_sizes;
    double tolerance, stop_time;
    int logging;
    bl_fmu_snapshot snapshots[BL_SNAPSHOTS + 1]; /* the last one is for serializing */
    uint64_t run; /* no other instance has the same */
    double *held; /* of the snapshots */
    bl_fmu_snapshot *kept; /* the last KEPT_STATES states behind tickets */
    int64_t ticket_count;
    int32_t inexact_count;
    bl_fmu_inexact inexact[INEXACT_COUNT];
    atomic_uint message_count;
    char messages[MESSAGE_COUNT][MESSAGE_LENGTH];
    char shown[MESSAGE_COUNT * MESSAGE_LENGTH]; /* for bl_fmu_messages and bl_fmu_warning */
    char reason[REASON_LENGTH];
    bl_remote_call remote; /* passes its operations on to another process, else NULL */
    bl_fmu_snapshot lent[2]; /* states of the run, and of its error estimate, while either is the other's */
    struct bl_fmu_host *lender; /* whose instance this one uses, for an error estimate, else NULL */
    int64_t event_count; /* how often it was in event mode since initialization */
    int64_t lent_count; /* and as of the last estimate */
    struct bl_fmu_exchange *exchange; /* of an FMU for model exchange, else NULL */
    struct bl_fmu_clocks *clocks; /* of an FMU with clocks, else NULL */
    struct bl_fmu_network *network; /* of FMUs whose clocks are connected; NULL: none */
    int is_networked; /* whether that is known */
    struct bl_fmu_host *next; /* among all hosts of the process */
} bl_fmu_host;

/* A function of an FMU: its name without the prefix, its place in the table of that version. */
typedef struct {
    const char *name;
    size_t offset;
    int32_t flag; /* without it the FMU need not have the function */
} bl_fmu_symbol;

/* A version of FMI. Operations return a bl_status after bl_host_status has handled that of the FMU, unless they return a bl_fmi_status. */
struct bl_fmi {
    const char *prefix; /* of its functions and of its statuses */
    const char *instantiate_name,
        *exchange_name; /* of the functions that make an instance, for co-simulation and model exchange */
    const char *version;
    size_t calls_size;
    const bl_fmu_symbol *symbols;
    size_t symbol_count;
    int32_t input_derivative_limit; /* up to which order it has derivatives of inputs */
    const char *(*get_version)(const void *calls);
    /* After the library was loaded: whether it has the functions for the types of these values; else the name of one it has not. */
    const char *(*find_missing)(const bl_fmu_host *f, const bl_block *b);
    void (*instantiate)(bl_fmu_host *f, int listening); /* sets `component` */
    void (*free_instance)(bl_fmu_host *f);
    bl_fmi_status (*terminate)(bl_fmu_host *f);
    bl_fmi_status (*set_debug_logging)(bl_fmu_host *f);
    int (*setup)(const bl_block *b, bl_fmu_host *f, double t); /* before parameters are set */
    int (*enter_initialization)(bl_fmu_host *f, double t);
    int (*exit_initialization)(const bl_block *b, bl_fmu_host *f, double t); /* sets `mode` */
    int (*enter_events)(bl_fmu_host *f, double t); /* FMI 3.0: event mode, unless it is in it, */
    int (*leave_events)(const bl_block *b, bl_fmu_host *f, double t); /* and out of it; may set `ended` */
    /* The parts of these, for a network: one update, which may have requested another one or the end; the way to step mode; a step
       that may end early, at an event. NULL in other versions. */
    int (*update_events)(bl_fmu_host *f, double t, int *more, int *ended);
    int (*enter_steps)(bl_fmu_host *f, double t);
    int (*step_part)(bl_fmu_host *f, double *now, double end, int *event, int *ended);
    int (*set)(bl_fmu_host *f, bl_fmu_group *g, double t); /* g->reals */
    int (*get)(bl_fmu_host *f, bl_fmu_group *g, double t); /* to g->places */
    int (*set_array)(bl_fmu_host *f, int32_t type, const double *values, int32_t number, int32_t count,
                     uint32_t reference, double t); /* of a parameter */
    int (*set_strings)(bl_fmu_host *f, double t); /* and binaries */
    bl_fmi_status (*set_texts)(bl_fmu_host *f, const uint32_t *references, const char *const *texts, size_t count);
    bl_fmi_status (*get_texts)(bl_fmu_host *f, const uint32_t *references, const char **texts, size_t count);
    /* Binaries, FMI 3.0 only: NULL in other versions. */
    bl_fmi_status (*set_binaries)(bl_fmu_host *f, const uint32_t *references, const size_t *sizes,
                                  const unsigned char *const *values, size_t count);
    bl_fmi_status (*get_binaries)(bl_fmu_host *f, const uint32_t *references, size_t *sizes,
                                  const unsigned char **values, size_t count);
    /* `is_last`: of the steps of a tick. */
    int (*do_step)(const bl_block *b, bl_fmu_host *f, double t, double h, int is_last);
    bl_fmi_status (*set_input_derivatives)(bl_fmu_host *f, bl_fmu_group *g);
    bl_fmi_status (*get_directional_derivative)(bl_fmu_host *f, bl_fmu_group *out, bl_fmu_group *in);
    int (*get_state)(bl_fmu_host *f, void **state);
    int (*set_state)(bl_fmu_host *f, void *state);
    void (*free_state)(bl_fmu_host *f, void **state);
    int (*serialized_size)(bl_fmu_host *f, void *state, size_t *size);
    int (*serialize)(bl_fmu_host *f, void *state, void *bytes, size_t size);
    int (*deserialize)(bl_fmu_host *f, const void *bytes, size_t size, void **state);
};

extern const bl_fmi bl_fmi2_calls, bl_fmi3_calls;

/* binary.c: loads a library and finds the functions that an FMU with these `flags` must have. Returns a bl_status;
   on failure *library is NULL and `message` is the reason. */
int bl_fmu_load(const bl_fmi *fmi, const char *path, int32_t flags, void **library, void *calls, char *message,
                size_t message_size);
void bl_fmu_unload(void *library);
void *bl_fmu_find_function(void *library, const char *name); /* a function; NULL: there is none */

/* messages.c */
void bl_fmu_list_host(bl_fmu_host *f);
void bl_fmu_unlist_host(const bl_fmu_host *f);
/* Keeps a message of the FMU whose environment this is, or else of the FMU that this thread is calling. The arguments are those of a
   format, NULL if `message` is a plain text. */
void bl_fmu_note_message(const void *environment, int status, const char *category, const char *message,
                         va_list *arguments);
void bl_fmu_list_messages(bl_fmu_host *f, unsigned limit, const char *separator, char *text, size_t size);
/* Both set the reason of a failure: the first returns BL_ERROR_BLOCK, the second BL_STOP. */
int bl_fmu_error(bl_fmu_host *f, const char *format, ...) BL_FORMAT(2);
int bl_fmu_end_run(bl_fmu_host *f, double t);
/* Converts an FMI status; a warning is BL_OK. `function` has no prefix. */
int bl_host_status(bl_fmu_host *f, bl_fmi_status status, const char *function, double t);
const char *bl_fmu_silence(bl_fmu_host *f);
/* The name of the variable of a record, or its number if there are no names. */
const char *bl_fmu_variable(const bl_fmu_host *f, int32_t number);
void bl_fmu_note_inexact(bl_fmu_host *f, int32_t number, const char *text, double t);
/* A warning about them, in `shown`; empty: there are none. */
const char *bl_fmu_describe_inexact(bl_fmu_host *f);

/* values.c. A part of a step: h seconds long, `age` seconds after its start, with derivatives of inputs up to `order` to be set. */
typedef struct {
    double age, h;
    int32_t order;
} bl_fmu_part;
int bl_fmu_gather(const bl_block *b, bl_fmu_host *f);
/* Room for the values of one type, or 0; and a value for it. */
int bl_fmu_allocate_group(bl_fmu_group *g, int32_t key, int32_t count);
void bl_fmu_add_value(bl_fmu_group *g, const int32_t *record, int32_t port, int32_t element, int32_t number,
                      const double *place);
void bl_fmu_free_values(bl_fmu_values *values);
void bl_fmu_forget_inputs(bl_fmu_host *f);
/* The same but for those that are set in event mode only, which a step does not change. */
void bl_fmu_forget_continuous(bl_fmu_host *f);
/* How many numbers describe these, and the FMU's present ones, into an array and back: after a state was restored. */
size_t bl_fmu_held_count(const bl_fmu_host *f);
void bl_fmu_keep_held(const bl_fmu_host *f, double *held);
void bl_fmu_put_back_held(bl_fmu_host *f, const double *held);
double bl_fmu_input(const bl_block *b, const bl_fmu_host *f, const bl_fmu_group *g, int32_t k);
int bl_fmu_set_group(const bl_block *b, bl_fmu_host *f, bl_fmu_group *g, double t);
int bl_fmu_set_values(const bl_block *b, bl_fmu_host *f, bl_fmu_values *values, double t);
int bl_fmu_get_outputs(bl_fmu_host *f, double t);
int32_t bl_fmu_largest_order(const bl_block *b);
int bl_fmu_set_polynomial(const bl_block *b, bl_fmu_host *f, bl_fmu_values *values, bl_fmu_part part, double t);
int bl_fmu_set_parameters(const bl_block *b, bl_fmu_host *f, double t);
int bl_fmu_set_structural(const bl_block *b, bl_fmu_host *f, double t);
int bl_fmu_tune(const bl_block *b, bl_fmu_host *f, double t);
const int32_t *bl_fmu_input_records(const bl_block *b);
const int32_t *bl_fmu_output_records(const bl_block *b);
const int32_t *bl_fmu_parameter_records(const bl_block *b);

/* text_values.c: strings and binaries that are inputs and outputs. Returns whether there was memory. */
int bl_fmu_open_texts(const bl_block *b, bl_fmu_host *f);
int32_t bl_fmu_open_text(bl_engine *e, int32_t type); /* a writer, or a negative number */
static inline int bl_fmu_is_text(const bl_fmu_group *g) { return g->type == HOST_STRING || g->type == HOST_BINARY; }
int bl_fmu_set_texts(bl_fmu_host *f, bl_fmu_group *g, double t);
int bl_fmu_get_texts(bl_fmu_host *f, bl_fmu_group *g, double t);

/* saved_states.c */
int bl_fmu_save_snapshot(bl_block *b, int snapshot);
int bl_fmu_restore_snapshot(bl_block *b, int snapshot);
void bl_fmu_free_states(bl_fmu_host *f);
/* For error estimates of FMUs for model exchange, which change nothing between events: those that cannot save a state are lent until the
   next one. */
int bl_fmu_lend(bl_block *b, bl_block *to, int anew);
int bl_fmu_reclaim(bl_block *b, bl_block *to);

/* host.c */
bl_fmu_host *bl_fmu_host_of(const bl_engine *e, int32_t block);
/* Whether the integers and widths of a block are those of an FMU with this number of types, for model exchange or co-simulation. */
int bl_fmu_check(const bl_block *b, int32_t type_count, bool exchanges);
/* Operations that all kernels of FMUs share. The outputs nearby are those of `output`, unless the FMU gives derivatives. */
int bl_fmu_init(bl_block *b, double t);
int bl_fmu_derive(bl_block *b, double t, bl_operation output);
void bl_fmu_diagnose(bl_block *b, int about, double t);
void bl_fmu_close(bl_block *b);
const char *bl_fmu_last_error(const bl_block *b);
static inline int bl_fmu_is_running(const bl_fmu_host *f) {
    return f && (f->mode == HOST_INITIALIZING || f->mode == HOST_STEPPING || f->mode == HOST_EVENTS);
}

/* The argument noSetFMUStatePriorToCurrentPoint of a step promises that no state from before its start will be restored; some FMUs
   keep what a step has changed only then. A state at its very start may be, so the promise also holds for a step that a coupling repeats
   as a whole; it does not hold for a later part of one, and not after a state from before it was handed out. */
static inline int bl_fmu_cannot_return(const bl_fmu_host *f, double t, double h) {
    return t <= f->oldest && t <= f->oldest_saved + 1e-6 * h;
}

/* ---- around calls into the FMU */

static inline void bl_fmu_put_back_control(const bl_fmu_host *f) {
    if (!bl_same_float_control(bl_get_float_control(), f->control)) bl_set_float_control(f->control);
}

/* The status of a call, after which the rounding mode is what it was. */
static inline bl_fmi_status bl_fmu_leave_call(const bl_fmu_host *f, int status) {
    if (!bl_rounds_to_nearest()) bl_fmu_put_back_control(f);
    return (bl_fmi_status)status;
}

/* An operation of a tick that calls the FMU is between these two. */
static inline void bl_host_enter(bl_fmu_host *f) { atomic_store_explicit(&f->caller, &errno, memory_order_relaxed); }
static inline int bl_host_leave(bl_fmu_host *f, int status) {
    atomic_store_explicit(&f->caller, NULL, memory_order_relaxed);
    return status;
}

/* And any other operation between these. */
static inline void bl_fmu_enter_setup(bl_fmu_host *f, bl_working_directory *directory) {
    bl_keep_working_directory(directory);
    bl_host_enter(f);
}
static inline int bl_fmu_leave_setup(bl_fmu_host *f, bl_working_directory *directory, int status) {
    bl_fmu_put_back_control(f);
    bl_restore_working_directory(directory);
    return bl_host_leave(f, status);
}

#endif
