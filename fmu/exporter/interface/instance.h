/* One instance of an exported FMU, and what the functions of every version and kind of FMI do with it.
 *
 * Files beside this header: instance.c (life, log), variables.c (values), snapshots.c (saved states), stepping.c (steps of
 * co-simulation), clocks.c, exchange.c (model exchange), derivatives.c. fmi2.c and fmi3.c have FMI's own names, the tables of allowed calls, and nothing else. */
#ifndef BIELLA_FMU_INSTANCE_H
#define BIELLA_FMU_INSTANCE_H

#include <stddef.h>
#include <stdint.h>

#include "scheduler/engine/biella.h"

/* The states of the standards' machines that an FMU without asynchronous steps can be in. Saved states carry them. */
typedef enum {
    INSTANTIATED = 1 << 0,
    INITIALIZING = 1 << 1,
    STEPPING = 1 << 2,    /* step complete, or step mode */
    STEP_FAILED = 1 << 3, /* after fmi2Discard */
    TERMINATED = 1 << 4,
    BROKEN = 1 << 5,     /* after an error */
    EVENT_MODE = 1 << 6,
    CONTINUOUS_TIME = 1 << 7, /* of model exchange */
    INTERMEDIATE = 1 << 8,    /* within a step, in the importing tool's callback; never saved */
} bl_fmu_state;

enum {
    BEFORE_STEPS = INSTANTIATED | INITIALIZING,
    ANY_STATE = INSTANTIATED | INITIALIZING | STEPPING | STEP_FAILED | TERMINATED | BROKEN | EVENT_MODE |
        CONTINUOUS_TIME,
};

/* What an instance was made for. */
typedef enum { CO_SIMULATION, MODEL_EXCHANGE, FMU_KINDS } bl_fmu_kind;

/* Numbered as fmi2Status and fmi3Status are. */
typedef enum { FMU_OK, FMU_WARNING, FMU_DISCARD, FMU_ERROR } bl_fmu_status;

/* A function of a version of FMI, and for each kind the states in which it may be called. */
typedef struct {
    const char *name;
    int allowed[FMU_KINDS];
} bl_fmu_call;

typedef struct bl_fmu bl_fmu;

/* A version of FMI: its calls, its states, and how a message gets to the importing tool. */
typedef struct {
    const bl_fmu_call *calls;
    int states[FMU_KINDS]; /* that an instance of each kind can be in; none if there is no such kind */
    int logs_discard; /* whether warnings and discarded calls are logged where logging is off, as errors always are */
    void (*send)(const bl_fmu *f, bl_fmu_status status, const char *category, const char *text);
} bl_fmu_version;

struct bl_fmu {
    uint32_t magic;
    bl_fmu_state state;
    bl_fmu_kind kind;
    const bl_fmu_version *version;
    bl_engine *engine;
    double *values;               /* of the engine, and which of them are variables */
    const bl_variable *variables;
    int64_t variable_count;
    char *name;
    void *environment;    /* of the importing tool, for its logger */
    void (*logger)(void); /* of the type that the version of FMI gives it; NULL: none */
    unsigned log;   /* enabled log categories */
    int needs_init; /* a parameter changed since the states were set */
    int ended;      /* a Stop block ended the simulation */
    double stop_time;
    int has_stop_time;
    int uses_events;   /* of FMI 3.0: the importing tool handles event mode, */
    int returns_early; /* and steps that end early */
    /* Of FMI 3.0, where the tool has a callback for intermediate updates: calls it, between two ticks of a step to *end, which it may
       bring forward. 0: an error occurred in it. */
    int (*update)(bl_fmu *f, double begin, double *end);
    void (*callback)(void); /* of the tool */
    int accepts_inputs; /* in the callback */
    void *undo; /* room for a saved state of the engine, if both */
    uint64_t active_clocks; /* a bit for each */
    unsigned warned; /* of which fallbacks of the solver, a bit for each */
    /* Of an FMU that offers model exchange: `variables` are then those of the plan, states, derivatives, event indicators. */
    bl_variable *all_variables;
    int64_t state_count, indicator_count;
    double *work; /* state_count + indicator_count of work space */
    double tolerance; /* relative, of the tool's solver; not above 0: none was given */
};

/* Causalities of variables that are not in the plan. */
enum { FMU_STATE = BL_LOCAL + 1, FMU_DERIVATIVE, FMU_INDICATOR };

/* What a tool passes when it makes an instance. */
typedef struct {
    const char *name, *token, *resources;
    int logging;
    void *environment;
    void (*logger)(void);
} bl_fmu_request;

/* Makes an instance; NULL, with a log message, if that fails. `token_name` is what the version calls the token. If `unsupported` is
   not NULL, it is the reason why no instance of this kind can be made. */
bl_fmu *bl_fmu_create(const bl_fmu_version *version, bl_fmu_kind kind, const bl_fmu_request *request,
                      const char *token_name, const char *unsupported);
void bl_fmu_free(bl_fmu *f);
/* The instance, or NULL if `c` is not an instance of this version. */
bl_fmu *bl_fmu_of(void *c, const bl_fmu_version *version);
/* The same, and NULL, with a log message, if the call is not allowed in the present state. */
bl_fmu *bl_fmu_enter(void *c, const bl_fmu_version *version, int call);
/* Sends a message to the importing tool. Failures are logged unless their category is disabled, others only if logging
   is on. */
void bl_fmu_log(const bl_fmu *f, bl_fmu_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;
bl_fmu_status bl_fmu_set_logging(bl_fmu *f, int on, size_t count, const char *const categories[]);
/* Reports an engine's failure; from there only a saved state or a reset leads back. */
bl_fmu_status bl_fmu_fail(bl_fmu *f);
/* Fails an evaluation of the equations: FMU_DISCARD while the tool integrates, else as bl_fmu_fail. */
bl_fmu_status bl_fmu_fail_evaluation(bl_fmu *f);
bl_fmu_status bl_fmu_set_experiment(bl_fmu *f, double start_time, int stop_time_defined, double stop_time);
/* Sets the states from the parameters if these have changed. */
bl_fmu_status bl_fmu_prepare(bl_fmu *f);
/* Ends initialization; the next state is `next`. */
bl_fmu_status bl_fmu_initialize(bl_fmu *f, bl_fmu_state next);
bl_fmu_status bl_fmu_terminate(bl_fmu *f);
bl_fmu_status bl_fmu_reset(bl_fmu *f);

/* Says so and fails if one of two arrays of `count` elements is NULL. */
bl_fmu_status bl_fmu_check_arrays(const bl_fmu *f, const void *a, size_t count, const void *b);
/* The variable with a value reference if it is of one of two kinds, else NULL. */
const bl_variable *bl_fmu_find(const bl_fmu *f, uint32_t reference, int32_t kind, int32_t or_kind);
/* Outputs are computed only if one is asked for. After an error the values are as it left them. */
bl_fmu_status bl_fmu_get(bl_fmu *f, const bl_variable *variable, double *value);
bl_fmu_status bl_fmu_set(bl_fmu *f, const bl_variable *variable, double value);
/* Whether a variable can be accessed in intermediate updates: it is continuous. */
int bl_fmu_is_intermediate(const bl_fmu *f, const bl_variable *variable);
/* A value as an integer; the nearest one that there is if it is out of range. */
int32_t bl_fmu_to_int32(double value);
/* Whether an integer is exact as a value; if not, says so. */
bl_fmu_status bl_fmu_check_int64(const bl_fmu *f, int64_t value);

/* Saved states: see the functions of FMI with these names. */
bl_fmu_status bl_fmu_get_state(const bl_fmu *f, void **state);
bl_fmu_status bl_fmu_set_state(bl_fmu *f, void *state);
bl_fmu_status bl_fmu_free_state(const bl_fmu *f, void **state);
bl_fmu_status bl_fmu_state_bytes(const bl_fmu *f, void *state, size_t *size);
bl_fmu_status bl_fmu_serialize(const bl_fmu *f, void *state, void *bytes, size_t size);
bl_fmu_status bl_fmu_deserialize(const bl_fmu *f, const void *bytes, size_t size, void **state);

/* Whether a step may begin: it continues at the present time and does not pass the stop time. If not, the instance is broken. */
bl_fmu_status bl_fmu_check_step(bl_fmu *f, double now, double size);
/* A step of co-simulation. FMU_DISCARD, and state STEP_FAILED, if the model ended the simulation. */
bl_fmu_status bl_fmu_step(bl_fmu *f, double now, double size);

/* What a step of FMI 3.0 returns. */
typedef struct {
    int event, terminate, early;
    double reached;
} bl_fmu_step_result;
/* The same, except that it ends at events, where the importing tool handles events and early returns, and that a model which ends the
   simulation is no failure. */
bl_fmu_status bl_fmu_step_to_event(bl_fmu *f, double now, double size, bl_fmu_step_result *result);

/* Clocks: clocks.c. Their value references follow that of time, which follows those of variables. */
uint32_t bl_fmu_clock_reference(const bl_fmu *f, int32_t clock);
double bl_fmu_clock_interval(const bl_fmu *f, int32_t clock);
int bl_fmu_clock_is_active(const bl_fmu *f, int32_t clock);
/* Fails, with a message, if the clock does not tick now. */
bl_fmu_status bl_fmu_activate_clock(bl_fmu *f, int32_t clock);
/* Whether all clocks that tick now are active; a message about one that is not. */
bl_fmu_status bl_fmu_check_active_clocks(const bl_fmu *f);
/* Takes the tick of active clocks, and deactivates them: in co-simulation. */
bl_fmu_status bl_fmu_take_clocks(bl_fmu *f);
/* Whether a step misses no tick; if it does, the instance is broken. */
bl_fmu_status bl_fmu_check_step_clocks(bl_fmu *f, double end);

/* Model exchange: exchange.c. Functions with the names of FMI's, but for the first two: when an instance is made, and at the end of
   initialization. */
bl_fmu_status bl_fmu_open_exchange(bl_fmu *f);
bl_fmu_status bl_fmu_start_exchange(bl_fmu *f);
bl_fmu_status bl_fmu_get_exchanged(bl_fmu *f, const bl_variable *variable, double *value);
double bl_fmu_time(const bl_fmu *f);
bl_fmu_status bl_fmu_set_time(bl_fmu *f, double time);
bl_fmu_status bl_fmu_set_states(bl_fmu *f, const double x[], size_t count);
bl_fmu_status bl_fmu_set_one_state(bl_fmu *f, const bl_variable *variable, double value);
bl_fmu_status bl_fmu_get_states(bl_fmu *f, double x[], size_t count);
bl_fmu_status bl_fmu_get_nominals(bl_fmu *f, double nominals[], size_t count);
bl_fmu_status bl_fmu_get_state_derivatives(bl_fmu *f, double dx[], size_t count);
bl_fmu_status bl_fmu_get_indicators(bl_fmu *f, double indicators[], size_t count);
bl_fmu_status bl_fmu_complete_step(bl_fmu *f, int *needs_event);
bl_fmu_status bl_fmu_enter_event(bl_fmu *f);
bl_fmu_status bl_fmu_take_event(bl_fmu *f, bl_ode_outcome *outcome);
bl_fmu_status bl_fmu_enter_continuous_time(bl_fmu *f);

/* Sensitivities of outputs to inputs and, in initialization mode, parameters. */
bl_fmu_status bl_fmu_directional(bl_fmu *f, const uint32_t unknowns[], size_t unknown_count, const uint32_t knowns[],
                                 size_t known_count, const double seed[], double sensitivity[]);
/* The transposed product: sensitivity = seedᵀ · J, with a seed for each unknown and a result for each known. */
bl_fmu_status bl_fmu_adjoint(bl_fmu *f, const uint32_t unknowns[], size_t unknown_count, const uint32_t knowns[],
                             size_t known_count, const double seed[], double sensitivity[]);
/* Derivatives of inputs; they hold for the next step only. */
bl_fmu_status bl_fmu_set_input_derivatives(bl_fmu *f, const uint32_t references[], size_t count, const int32_t orders[],
                                           const double values[]);
bl_fmu_status bl_fmu_output_derivatives(bl_fmu *f, const uint32_t references[], size_t count, const int32_t orders[],
                                        double values[]);

/* resources.c: the plan of this FMU: the one compiled in, if it was built from its sources; else the file plan.bin in the folder
   that a tool names as resource location, or, if it names none, in resources/ beside binaries/, where this library lies. NULL on
   failure, with the reason in `message`. bl_release_plan releases it. */
const unsigned char *bl_find_plan(const char *location, size_t *size, char *message, size_t message_size);
void bl_release_plan(const unsigned char *plan);

#endif
