/* The engine: loads a plan, runs it.
 *
 *   bl_open → bl_init → { bl_run | bl_outputs | bl_save | bl_restore | … } → bl_close
 *
 * An engine is one instance of one plan. Engines share nothing, so any number of them may run in any
 * number of threads, one thread at a time each. Everything is allocated in bl_open.
 */
#ifndef BIELLA_H
#define BIELLA_H

#include <stddef.h>
#include <stdint.h>

#include "blocks/core/kernel/kernel.h"

#if defined(BL_STATIC)
#define BL_API
#elif defined(_WIN32)
#define BL_API __declspec(dllexport)
#else
#define BL_API __attribute__((visibility("default")))
#endif

#define BL_PLAN_VERSION 2

/* A time that is this part of a base step beside a tick is that tick. */
#define BL_GRID_TOLERANCE 1e-6

typedef struct bl_engine bl_engine;

/* Where an engine's values lie in its one array of doubles: parameters, then signals, continuous
   states, discrete memory, counters of the solver, its own memory. */
typedef struct {
    int64_t parameters, signals, states, memory; /* counts */
    int64_t
        diagnostics; /* the same, after the memory: BL_COUNT_…, then the head of the solver's memory, if it has any */
    int64_t total; /* length of the whole array */
    int64_t events; /* most events that one tick logs */
} bl_layout;

/* An event that was located within a tick: the block and the number of its zero-crossing function, or -1 for an instant known in
   advance. Of a block with an internal solver it is a number of the block's own: bl_describe_event. The events of a tick are in the
   order of the blocks, not of their times; those of a block with a longer period come with the tick at which it advances. */
typedef struct {
    double time;
    int32_t block, crossing;
} bl_event;

/* Rows recorded by bl_run: at every tick k with k % every == 0, the time and then `count` values of
   the engine's array, picked by `pick`. bl_run returns early when `rows` reaches `capacity`. */
typedef struct {
    const int64_t *pick;
    int64_t count;
    int64_t every;
    double *out; /* capacity × (1 + count) */
    int64_t capacity;
    int64_t rows;
    bl_event *events; /* event_capacity of them, or NULL; bl_run returns early if those of another tick might not fit */
    int64_t event_capacity, event_count;
} bl_record;

/* Counters of the solver, which follow the memory in the array, since the start of the run. */
enum {
    BL_COUNT_EVENTS, /* events located */
    BL_COUNT_UNLOCATED, /* ticks with more events than allowed, whose rest was integrated without locating */
    BL_COUNT_UNCONTROLLED, /* ticks with more steps than allowed, whose rest was integrated without error control */
    BL_COUNT_SEARCHED, /* evaluations of the crossing functions while locating */
    BL_COUNT_UNLOCATED_TIME, /* when the first of these ticks was given up, in s */
    BL_COUNT_UNCONTROLLED_TIME,
    BL_COUNT_CHATTERING, /* the block with most events in the first unlocated tick; -1: too many events were not the reason */
    BL_EVENT_COUNTERS
};

/* Which headers the library was compiled from: a digest of all that Python mirrors of them (scheduler/engine/contract.py). */
BL_API const char *bl_contract(void);

/* The hash that a plan's head carries. */
BL_API uint64_t bl_hash(const void *bytes, size_t size);

/* Loads a plan. On failure *engine is NULL and `message` (of `message_size` bytes) is the reason. */
BL_API int bl_open(const void *plan, size_t plan_size, bl_engine **engine, char *message, size_t message_size);
BL_API void bl_close(bl_engine *e);

/* A block without values: what its kernel needs to compute its sizes. */
typedef struct {
    const int32_t *u_width, *y_width, *i; /* u_count, y_count, i_count of them */
    const double *p; /* p_count parameters; only their number matters */
    int32_t u_count, y_count, x_count, p_count, i_count;
} bl_shape;
/* How many values of discrete state and of work space a block needs: see `sizes` in blocks/core/kernel/kernel.h. BL_UNCHANGED if the
   kernel leaves both to the plan, BL_ERROR_PLAN if there is no such kernel or the shape does not fit it. */
BL_API int bl_kernel_sizes(const char *kernel, const bl_shape *shape, int64_t *memory, int64_t *scratch);
/* How many zero-crossing functions it has, and whether it evaluates them apart from its outputs: 0 if there is no such kernel. */
BL_API int32_t bl_kernel_crossings(const char *kernel, const bl_shape *shape, int32_t *apart);
/* Whether its crossing functions depend on rates of change of its inputs. */
BL_API int bl_kernel_needs_rates(const char *kernel);

/* The function that runs blocks which live outside the engine (Python). */
BL_API void bl_set_host(bl_engine *e, bl_host_call call);

/* Back to the plan's parameters and start, tick 0, states undefined until bl_init. */
BL_API void bl_reset(bl_engine *e);
/* Sets all states from the parameters. */
BL_API int bl_init(bl_engine *e);

/* Runs up to `ticks` ticks; *done is their number. With a record, the row of the tick that was reached
   is left to the next call, or to bl_record_now. */
BL_API int bl_run(bl_engine *e, int64_t ticks, bl_record *record, int64_t *done);
/* Energies of a mechanism, in J. */
enum { BL_ENERGY_KINETIC, BL_ENERGY_POTENTIAL, BL_ENERGY_FIELDS };
/* Where a run is compared with another engine of the same plan, the shadow: see solvers/error_estimate.c. Rows have
   bl_layout.signals + bl_layout.states values, then BL_ENERGY_FIELDS of each of energy_count mechanisms. */
typedef struct {
    bl_engine *shadow;
    const int64_t *starts; /* ticks at which windows start: increasing; a window ends before the next one starts */
    int64_t window_count;
    int32_t parts; /* of each integration step in the shadow */
    int64_t burst; /* ticks of a window with divided steps */
    int64_t follow, follow_every; /* ticks with whole steps after them, in every n-th window; 0: windows adjoin */
    double *before, *after,
        *deviations; /* of each window: rows of the run at its start and after the burst; shadow - run */
    double *halfway; /* of every n-th window: shadow - run after half of `follow` */
    double *last, *end,
        *propagated; /* of every n-th window: rows of the run at the last two ticks of `follow`; shadow - run */
    int64_t energy_count;
    int64_t window, phase, next; /* the present window, what is awaited, and the tick at which it is due */
    int64_t failures; /* windows that the shadow did not complete: their last rows are not written */
    /* The growth of a small deviation over the whole run: see solvers/tangent.c. */
    bl_engine *tangent; /* another engine of the same plan, or NULL */
    int64_t tangent_every; /* ticks between two evaluations of its equations; 0: it has ended */
    double *tangent_work; /* BL_TANGENT_VECTORS · states */
    double *growths; /* ln of the growth, after every second evaluation */
    int64_t growth_capacity, growth_count,
        unresolved; /* how many there are; those whose step was too long to be accurate */
    int64_t tangent_next, tangent_point;
} bl_estimate;
enum { BL_TANGENT_VECTORS = 6 };
/* bl_run, comparing the run at the windows of an estimate. What is recorded, and the run, are those of bl_run to the bit. */
BL_API int bl_run_estimated(bl_engine *e, int64_t ticks, bl_record *record, bl_estimate *estimate, int64_t *done);
/* Runs until `time`, which may lie within a tick, or snap to one: see BL_GRID_TOLERANCE. */
BL_API int bl_run_to(bl_engine *e, double time);
/* Whether a run can go to `time`: BL_OK, or BL_ERROR_ARGUMENT if ticks cannot be counted as far. */
BL_API int bl_check_run_end(bl_engine *e, double time);
/* The same, but ends at the first event that is located after the present time and before `time`, if there is one: the part of the tick
   is repeated with that end. *at_event: whether the run ended at an event, there or at `time`. `memory` has room for bl_state_size
   bytes. */
BL_API int bl_run_to_event(bl_engine *e, double time, void *memory, int *at_event);
/* Whether a tick can have events that are located. */
BL_API int bl_locates_events(const bl_engine *e);
/* Sets a derivative (order 1 or 2) of a real input, by its index in bl_variables. The next bl_run_to extrapolates the
   input as u + u' τ + u'' τ² / 2; then it is held again. */
BL_API int bl_set_input_derivative(bl_engine *e, int64_t variable, int32_t order, double value);
/* Evaluates all outputs at the present time, if anything changed since they were last. */
BL_API int bl_outputs(bl_engine *e);
/* dx/dt at the present time, into `dx` (bl_layout.states values). */
BL_API int bl_derivatives(bl_engine *e, double *dx);
/* out[k] = Σ seeds[i] ∂values[unknowns[k]]/∂values[knowns[i]] at the present time; with `anew`, states are set from the
   parameters for each evaluation. And out[k] = d values[slots[k]]/dt, for continuous outputs, as time and states go on and real
   inputs by their derivatives. Neither changes anything. */
BL_API int bl_directional(bl_engine *e, const int64_t *knowns, const double *seeds, int64_t known_count,
                          const int64_t *unknowns, int64_t unknown_count, int anew, double *out);
BL_API int bl_output_derivatives(bl_engine *e, const int64_t *slots, int64_t count, double *out);
/* Decides the modes of all blocks with discontinuities at the present time, and keeps them until bl_release_modes: outputs and
   derivatives are then those of one smooth system, however far values are moved. Also in ticks, which locate no events. Both
   kinds of derivatives above do so. */
BL_API int bl_freeze_modes(bl_engine *e);
BL_API void bl_release_modes(bl_engine *e);
/* Whether a value may change between ticks. */
BL_API int bl_is_continuous(const bl_engine *e, int64_t slot);
BL_API int bl_record_now(bl_engine *e, bl_record *record);
/* What happens at an event of a block, such as "pin: touches"; empty if the block does not describe it. */
BL_API void bl_describe_event(const bl_engine *e, int32_t block, int32_t crossing, char *text, size_t size);
/* Makes outputs stale: call after writing a parameter or a state; after writing inputs only, the second does. */
BL_API void bl_touch(bl_engine *e);
BL_API void bl_touch_inputs(bl_engine *e);

BL_API void bl_get_layout(const bl_engine *e, bl_layout *layout);
BL_API double *bl_values(bl_engine *e);
/* The value that the plan gives a parameter or an input of the diagram, by its index into bl_values; 0 for any other value. */
BL_API double bl_first_value(const bl_engine *e, int64_t slot);
/* Where blocks write their derivatives (bl_layout.states values): for blocks outside the engine. */
BL_API double *bl_state_derivatives(bl_engine *e);
/* The last tick; the present time, which is later if a run has stopped within a tick. */
BL_API int64_t bl_tick(const bl_engine *e);
BL_API double bl_time(const bl_engine *e);
/* How far beside `time` a time may lie and still be the same. */
BL_API double bl_slack(const bl_engine *e, double time);
BL_API double bl_step(const bl_engine *e);
/* What went wrong last, and in which block (-1: none; -2 - n: algebraic loop n). */
BL_API const char *bl_message(const bl_engine *e);
BL_API int32_t bl_failed_block(const bl_engine *e);
/* Path of a block, and of the block whose output is at an index of bl_values; empty if there is no such block. */
BL_API const char *bl_block_path(const bl_engine *e, int32_t block);
BL_API const char *bl_slot_path(const bl_engine *e, int64_t slot);
/* Warnings of blocks, at the start (BL_DIAGNOSTIC_START) or during the run (BL_DIAGNOSTIC_RUN). Returns the next block
   after index `after` (-1: the first) that has a warning, with its text in bl_message; -1 if there is none. Must not be
   called during a run. */
BL_API int32_t bl_next_diagnostic(bl_engine *e, int about, int32_t after);
/* Fallbacks of the solver since the start of the run. Returns the next one after `after` (-1: the first) that occurred, with its
   text in bl_message; -1 if there is none. Must not be called during a run. */
enum { BL_FALLBACK_UNLOCATED, BL_FALLBACK_UNCONTROLLED, BL_FALLBACK_STIFF, BL_FALLBACKS };
BL_API int32_t bl_next_fallback(bl_engine *e, int32_t after);
/* Whether an algebraic loop has one solution, after bl_outputs at a tick: a bl_loop_status, or a bl_status below 0. `chosen` and
   `other` get the values of the signals at which it is cut (bl_loop_size of them, at bl_loop_slots), and `condition` how far
   relative errors in the loop are amplified. Repeats outputs of the blocks in the loop and changes nothing. Loops that are cut
   at more than BL_LOOP_CHECKED signals are not checked; other solutions are looked for in loops of native blocks. */
typedef enum { BL_LOOP_GOOD, BL_LOOP_IS_SINGULAR, BL_LOOP_HAS_OTHER } bl_loop_status;
#define BL_LOOP_SINGULAR 1e6 /* condition from which on a loop counts as singular */
enum { BL_LOOP_CHECKED = 64 };
BL_API int bl_check_loop(bl_engine *e, int32_t loop, double *chosen, double *other, double *condition);
BL_API int32_t bl_loop_count(const bl_engine *e);
BL_API int32_t bl_loop_size(const bl_engine *e, int32_t loop);
BL_API const int32_t *bl_loop_slots(const bl_engine *e, int32_t loop);
BL_API uint64_t bl_plan_hash(const bl_engine *e);
/* Moves the time of tick 0, before bl_init. */
BL_API void bl_set_start(bl_engine *e, double start);

/* Everything the next tick depends on, as bytes. */
BL_API size_t bl_state_size(const bl_engine *e);
BL_API void bl_save(const bl_engine *e, void *state);
BL_API int bl_restore(bl_engine *e, const void *state, size_t size);

/* The engine as a differential equation with events, for a solver outside: model exchange, scheduler/engine/events/ode.c.
 *
 *   bl_open → bl_ode_open → bl_init → bl_outputs → bl_ode_start → { bl_ode_event → bl_ode_continue → { bl_ode_set_time,
 *   bl_ode_set_states, bl_ode_derivatives, bl_ode_indicators, bl_ode_complete_step } → bl_ode_enter_event }
 *
 * While the solver integrates, blocks keep their modes and sampled blocks hold. An event is due where an indicator changes its sign,
 * at the time that bl_ode_event gave, where bl_ode_complete_step requests it, and where an input jumps. */
/* Whether a solver outside can integrate this plan; if not, bl_message says why. */
BL_API int bl_ode_open(bl_engine *e);
BL_API int64_t bl_ode_indicator_count(const bl_engine *e);
/* Whether bl_ode_complete_step has anything to do. */
BL_API int bl_ode_completes_steps(const bl_engine *e);
/* The states (bl_layout.states values), and the present time. */
BL_API const double *bl_ode_states(const bl_engine *e);
BL_API double bl_ode_time(const bl_engine *e);
/* The event at the start. */
BL_API int bl_ode_start(bl_engine *e);
BL_API int bl_ode_set_time(bl_engine *e, double time);
BL_API void bl_ode_set_states(bl_engine *e, const double *x);
/* Outputs, dx/dt, and event indicators at the present time. */
BL_API int bl_ode_outputs(bl_engine *e);
BL_API int bl_ode_derivatives(bl_engine *e, double *dx);
BL_API int bl_ode_indicators(bl_engine *e, double *indicators);
/* Magnitudes of the states, for tolerances. */
BL_API void bl_ode_nominals(const bl_engine *e, double *nominals);
/* A step has ended. *needs_event: states have drifted from their constraints by more than `drift`, relative to their magnitudes. */
BL_API int bl_ode_complete_step(bl_engine *e, double drift, int *needs_event);
/* An event begins at the present time: inputs are still those before it. */
BL_API int bl_ode_enter_event(bl_engine *e);
typedef struct {
    int32_t states_changed;
    int32_t ended; /* a Stop block ends the run */
    double next_time; /* of the next event that is known in advance; INFINITY: none */
} bl_ode_outcome;
BL_API int bl_ode_event(bl_engine *e, bl_ode_outcome *outcome);
/* The event ends. */
BL_API int bl_ode_continue(bl_engine *e);
/* bl_directional at the present time; an unknown from bl_layout.total on is a derivative of a state. */
BL_API int bl_ode_directional(bl_engine *e, const int64_t *knowns, const double *seeds, int64_t known_count,
                              const int64_t *unknowns, int64_t unknown_count, double *out);
/* What bl_save does not hold. */
BL_API size_t bl_ode_state_size(const bl_engine *e);
BL_API void bl_ode_save(const bl_engine *e, void *state);
/* Whether a saved state is not damaged. */
BL_API int bl_ode_check_state(bl_engine *e, const void *state);
/* After bl_restore. */
BL_API int bl_ode_restore(bl_engine *e, const void *state);

/* The kinds of FMU that a plan was exported for. */
enum { BL_OFFERS_STEPS = 1, BL_OFFERS_EXCHANGE = 2 };
BL_API int32_t bl_plan_kinds(const bl_engine *e);

/* Clocks: rates of the plan whose ticks an importing tool activates, at most BL_CLOCKS: scheduler/engine/events/clocks.c. */
enum { BL_CLOCKS = 64 };
BL_API int32_t bl_clock_count(const bl_engine *e);
/* The period of a clock and its first tick after the start, in base steps. */
BL_API int64_t bl_clock_period(const bl_engine *e, int32_t clock);
BL_API int64_t bl_clock_shift(const bl_engine *e, int32_t clock);
/* The base step as a fraction in lowest terms; 0, without writing, if there is none that equals it to the bit. */
BL_API int bl_step_fraction(const bl_engine *e, uint64_t *numerator, uint64_t *denominator);
/* Whether a clock ticks at the present time and its tick has not been taken, and the time of its next tick after the present time. */
BL_API int bl_clock_is_due(const bl_engine *e, int32_t clock);
BL_API double bl_clock_next(const bl_engine *e, int32_t clock);
/* Takes what happens at the present tick, before the run goes on: sampled blocks update with the present inputs, and hold. With
   bl_ode_start, bl_ode_event does so. */
BL_API int bl_take_hits(bl_engine *e);
/* The time of the next tick of the base step. */
BL_API double bl_next_tick_time(const bl_engine *e);

/* Variables of the plan's boundary, for FMI: see fmu/exporter/interface/variables.c. */
enum { BL_REAL, BL_INTEGER, BL_BOOLEAN, BL_ENUMERATION };
enum { BL_INPUT, BL_OUTPUT, BL_FIXED_PARAMETER, BL_TUNABLE_PARAMETER, BL_LOCAL };
/* Types of FMI 3.0. BL_USUAL_TYPE is Float64 of a real variable, Int64 of an integer or enumeration, and Boolean. */
enum { BL_USUAL_TYPE, BL_FLOAT32, BL_INT8, BL_UINT8, BL_INT16, BL_UINT16, BL_INT32, BL_UINT32, BL_UINT64, BL_TYPES };
typedef struct {
    int64_t slot; /* index into bl_values */
    int32_t kind; /* BL_REAL … */
    int32_t causality; /* BL_INPUT … */
    int64_t
        extent; /* elements of the array that begins here, in consecutive variables; 1: a scalar; 0: within an array */
    int32_t type; /* BL_USUAL_TYPE … */
    const char *name; /* NULL: the plan has none */
} bl_variable;
BL_API int64_t bl_variables(const bl_engine *e, const bl_variable **variables);

/* One operation of one block, for a host that runs a block by itself: BL_OP_INIT, BL_OP_OUTPUT, BL_OP_EXIT_INITIALIZATION, BL_OP_ADVANCE,
   BL_OP_ACCEPT_STEP, BL_OP_SAVE or BL_OP_RESTORE. */
BL_API int bl_call_block(bl_engine *e, int32_t block, int32_t op, double t, double dt);
/* The same for BL_OP_ADVANCE with the first and second derivatives of all inputs, port by port, as bl_input_derivatives writes them. */
BL_API int bl_advance_block(bl_engine *e, int32_t block, double t, double dt, const double *derivatives);
/* The present inputs of a block, port by port: in a coupling they differ from those of the tick. */
BL_API int bl_inputs(const bl_engine *e, int32_t block, double *values);
/* The nominal value of the value in a slot: of a continuous state, if its block has one; else 1. */
BL_API double bl_nominal(bl_engine *e, int64_t slot);
/* During an advance of a block: the first derivatives of all its inputs, then the second. Returns 0, without writing, if it has none. */
BL_API int bl_input_derivatives(const bl_engine *e, int32_t block, double *values);

/* Strings and binaries between blocks outside the engine. A writer, opened before a run, writes texts of less than BL_STRING_SIZE bytes, or
   binaries of up to BL_BINARY_SIZE bytes; their numbers are the values of signals. 0: too long, no memory, or no such writer. NULL: the
   value is not kept any more. */
enum { BL_STRING_SIZE = 1024, BL_STRINGS_KEPT = 16, BL_BINARY_SIZE = 16777216 };
BL_API int32_t bl_string_open(bl_engine *e);
BL_API double bl_string_write(bl_engine *e, int32_t writer, const char *text);
BL_API const char *bl_string_read(const bl_engine *e, double number);
BL_API int32_t bl_binary_open(bl_engine *e);
BL_API double bl_binary_write(bl_engine *e, int32_t writer, const unsigned char *bytes, int64_t size);
BL_API const unsigned char *bl_binary_read(const bl_engine *e, double number, int64_t *size);

/* An external FMU for a block of kernel fmu2 or fmu3: all that a plan does not hold. Everything is copied. */
typedef struct {
    const char *file; /* for messages */
    const char *library; /* path of the binary */
    const char *name; /* of the instance */
    const char *guid;
    const char
        *resources; /* the folder resources/: its URI in FMI 2.0, its path with a separator at the end in FMI 3.0 */
    const uint32_t
        *string_references; /* parameters that are strings; in FMI 3.0 there are more strings than references if some */
    int64_t string_reference_count; /* are arrays */
    const char *const *strings;
    int64_t string_count;
    const uint32_t *binary_references; /* FMI 3.0: parameters that are binaries */
    int64_t binary_reference_count;
    const unsigned char *const *binaries;
    const int64_t *binary_sizes; /* in bytes */
    int64_t binary_count;
    const char *const *names; /* FMI 3.0: of the values of inputs, outputs and parameters, in the order of the plan */
    int64_t name_count;
    double tolerance; /* 0: none is given */
    double stop_time; /* NaN: none is given */
    int32_t logging; /* non-zero: the FMU's messages also go to stderr as they come */
    const char *const *log_categories; /* categories to enable, even without `logging`; then the FMU may reject them */
    int64_t log_category_count;
} bl_fmu_source;

/* Loads the binary: after bl_open, before bl_init. bl_close ends the instance and unloads it. */
BL_API int bl_attach_fmu(bl_engine *e, int32_t block, const bl_fmu_source *source);
/* An FMU for model exchange in another process: fmu/importer/host/remote.c. The function of the host passes an operation on. `out`: where
   derivatives and crossing functions belong, else NULL. Called after bl_open, instead of bl_attach_fmu. */
typedef int (*bl_remote_call)(int32_t block, int32_t op, double t, double *out);
BL_API int bl_attach_remote(bl_engine *e, int32_t block, const char *file, bl_remote_call call);
/* How each input may change, and whether steps are repeated, from the engine of the run to the other one. */
BL_API void bl_exchange_inputs(const bl_engine *e, int32_t block, int32_t *kinds);
BL_API int32_t bl_exchange_is_coupled(const bl_engine *e);
BL_API void bl_exchange_mirror(bl_engine *e, int32_t block, const int32_t *kinds, int32_t coupled);
/* From the function of the host: whether the FMU has ended the run; why it failed, or NULL. */
BL_API void bl_remote_note(bl_engine *e, int32_t block, int32_t ended, const char *reason);
/* Executes an operation there. */
BL_API int bl_exchange_call(bl_engine *e, int32_t block, int32_t op, double t, double *out, int32_t *ended);
/* The state of an attached FMU as bytes: how many (or a bl_status below 0), into them, and back. An FMU that cannot
   serialize its state gives a ticket instead, which is good for the same engine until it is closed. */
BL_API int64_t bl_fmu_state_size(bl_engine *e, int32_t block);
BL_API int bl_fmu_save(bl_engine *e, int32_t block, void *bytes, int64_t size);
BL_API int bl_fmu_restore(bl_engine *e, int32_t block, const void *bytes, int64_t size);
/* The last messages of an attached FMU, one on each line; empty if there are none. */
BL_API const char *bl_fmu_messages(bl_engine *e, int32_t block);
/* The warning of an attached FMU about its run, which is also that of its block; empty: none. */
BL_API const char *bl_fmu_warning(bl_engine *e, int32_t block);

/* Confines this process for good, for isolate="strict": system calls outside of a list fail. With `listen`, refused
   calls wait until whoever holds the returned descriptor answers them (seccomp_unotify(2)). Otherwise 0; a negative
   errno is a failure. bl_sandbox_call names a refused call; NULL: it is not one. Only on Linux. */
BL_API int32_t bl_sandbox_filter(int32_t listen);
BL_API const char *bl_sandbox_call(int32_t number);

/* The floating-point control of this thread, two uint32_t: for a host that itself calls what may change it. */
BL_API void bl_keep_float_control(void *kept);
BL_API void bl_restore_float_control(const void *kept);

/* Whole frames from one thread to another, for real-time runs: scheduler/realtime/loop/realtime.h. */
typedef struct bl_mailbox bl_mailbox;
BL_API bl_mailbox *bl_mailbox_open(int64_t count);
BL_API void bl_mailbox_close(bl_mailbox *m);
/* Posts a whole frame; never waits. One writer. */
BL_API void bl_mailbox_post(bl_mailbox *m, const double *frame);
/* Takes the newest complete frame; returns its sequence number (0: none yet). One reader. */
BL_API int64_t bl_mailbox_take(bl_mailbox *m, double *frame);

#endif
