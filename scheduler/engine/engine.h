/* Internal interface of the engine, for scheduler/ and for fmu/importer/host/, which attaches FMUs to blocks. */
#ifndef BIELLA_ENGINE_H
#define BIELLA_ENGINE_H

#include <stdbool.h>

#include "scheduler/engine/biella.h"

/* Rates 0 and 1 are reserved; the others are periods. */
enum { BL_RATE_CONTINUOUS = 0, BL_RATE_CONSTANT = 1 };

enum { BL_EULER, BL_HEUN, BL_RK3, BL_RK4, BL_DOPRI5, BL_BACKWARD_EULER, BL_TRAPEZOIDAL, BL_RADAU5, BL_SOLVER_COUNT };

/* Numbers of the section SOLV: how the solver chooses its internal steps, and whether events are located. */
enum {
    BL_CONTROL_RELATIVE,   /* tolerances of the local error; 0: steps of fixed length */
    BL_CONTROL_ABSOLUTE,
    BL_CONTROL_MAX_STEPS,  /* in a tick */
    BL_CONTROL_LOCATES,    /* 1: events are located within the tick; 0: at ticks */
    BL_CONTROL_MAX_EVENTS, /* in a tick */
    BL_CONTROL_FIELDS
};

typedef struct {
    int64_t period, offset; /* in ticks */
} bl_rate;

typedef struct {
    bl_operation run;
    bl_block *block;
} bl_call;

/* A run of calls that share a rate and a guard, so that both are asked once. */
typedef struct {
    int32_t rate, guard;
    int64_t first, count;
} bl_segment;

typedef struct {
    bl_call *calls;
    bl_segment *segments;
    int64_t call_count, segment_count;
} bl_calls;

/* One item of an output program: a segment of calls, a loop to solve, or a guard to decide. */
typedef struct {
    enum { BL_ITEM_CALLS, BL_ITEM_LOOP, BL_ITEM_GUARD } type;
    int64_t index;
} bl_item;

typedef struct {
    bl_calls calls;
    bl_item *items;
    int64_t item_count;
    bool is_plain; /* only calls, none of them guarded */
} bl_program;

/* An algebraic loop: `body` computes, from the values in the `tear` slots, new values in the same slots. */
typedef struct {
    bl_calls body;
    const int32_t *tears; /* slots */
    int32_t tear_count;
    double *start;        /* the last committed solution: makes `output` pure, warm start included */
} bl_loop;

/* A conditional subsystem: decides at each tick whether the blocks inside run, or restart. */
enum { BL_GUARD_ENABLE, BL_GUARD_TRIGGER, BL_GUARD_RESET };
enum { BL_EDGE_RISING, BL_EDGE_FALLING, BL_EDGE_EITHER, BL_EDGE_LEVEL };
enum {
    BL_GUARD_ACTIVE,
    BL_GUARD_FRESH,
    BL_GUARD_SHADOWED, /* decided with a tick's outputs */
    BL_GUARD_BEFORE,
    BL_GUARD_SEEN,
    BL_GUARD_WAS_ACTIVE,
    BL_GUARD_HAS_RUN, /* committed */
    BL_GUARD_MEMORY
};
typedef struct {
    int32_t kind, edge, resets, parent;
    const double *control;
    int32_t block_first, block_count;
    double *signals, *x, *z;
    int64_t signal_count, x_count, z_count; /* of the blocks inside */
    double *memory; /* BL_GUARD_MEMORY values, the committed signals, a shadow of x and z */
} bl_guard;

/* Blocks with an internal solver that exchange signals, advanced together: see coupling.c. */
enum { BL_JACOBI, BL_GAUSS_SEIDEL, BL_FIXED_POINT, BL_NEWTON, BL_COUPLING_METHODS };

/* A signal that members read and that changes within a step, unless it is a count or a switch: then it is held. */
enum { BL_COUPLED_HELD = -2 };
typedef struct {
    const double *now; /* width values among the engine's signals */
    int32_t width;
    int32_t last;      /* position of the last member that it depends on; -1: of none; or BL_COUPLED_HELD */
    int32_t direct;    /* the same, without what reaches it through the inputs of members */
    int32_t at;        /* its first element in arrays over all signals of the coupling */
    int32_t unknown;   /* its first element among the unknowns; -1: it is known when it is first read */
} bl_coupled_signal;

/* An input of a member and its polynomial in the last step: value + first τ + second τ²/2. */
typedef struct {
    int32_t port, signal; /* port -1: an input of the diagram's own states */
    bool
        carried; /* the member integrates it from its rate, another input: it needs the value at the start of the step */
    double *value, *first, *second;
    double *end; /* predicted value at the end of the step, before all members have been advanced */
} bl_coupled_port;

/* How far the log of events was, and the counters, when a step began that may be rolled back. */
typedef struct {
    int64_t events;
    double counters[BL_EVENT_COUNTERS];
} bl_log_mark;

/* Uses of saved member states: iteration, error estimation, halving of a step. */
enum { BL_KEEP_STEP, BL_KEEP_ESTIMATE, BL_KEEP_WHOLE, BL_KEEP_COUNT };

typedef struct {
    bl_block *block; /* NULL: the continuous states of the diagram, which the solver advances */
    bool input_derivatives; /* whether its inputs may vary within a step */
    bl_coupled_port *ports;
    int32_t port_count;
    const double *const *own_u; /* the block's own pointers to its inputs */
    const double **u, **u1, **u2, **u_end; /* for each port of the block: within a step, and predicted at its end */
    double *kept; /* BL_KEEP_COUNT copies of its state */
    int64_t state_count;
} bl_member;

/* Two inputs whose product is a power: an effort that one member gets, a flow that another gets. Or the other gets the place, which is
   right again at the start of every step. */
typedef struct {
    const bl_coupled_port *effort, *flow;
    bool is_place;
    double *memory; /* BL_BOND_MEMORY values */
} bl_bond;
/* Of the last step: the power that the coupling creates, and the power that passes. Of all steps: the energy created, that without regard
   to sign, the energy passed with its extremes, that without regard to sign, and the largest product of effort and flow, or place. */
enum {
    BL_BOND_POWER,
    BL_BOND_PASSING,
    BL_BOND_ENERGY,
    BL_BOND_TOTAL,
    BL_BOND_PASSED,
    BL_BOND_LOWEST,
    BL_BOND_HIGHEST,
    BL_BOND_EXCHANGED,
    BL_BOND_SCALE,
    BL_BOND_MEMORY
};

/* The same between blocks that exchange held signals once a step, without a coupling to advance them: it needs the signals at the
   ends of steps only. */
typedef struct {
    const double *effort, *flow; /* width values each */
    int32_t width;
    bool is_place;
    int64_t period, offset; /* of the steps, in ticks */
    double
        *memory; /* BL_BOND_MEMORY values, 1 + the time, then effort and flow, at the start of the step; 0: not yet */
} bl_exchange;

/* What a coupling remembers: this head, then BL_COUPLED_ARRAYS arrays over its elements, then the inverse Jacobian. */
enum {
    BL_COUPLING_HISTORY,
    BL_COUPLING_SPAN,
    BL_COUPLING_SPAN_BEFORE,
    BL_COUPLING_SPAN_OLDEST,
    BL_COUPLING_ITERATIONS,
    BL_COUPLING_RESIDUAL,
    BL_COUPLING_FAILURES,
    BL_COUPLING_STEPS,
    BL_COUPLING_SWEEPS,
    BL_COUPLING_HAS_JACOBIAN,
    BL_COUPLING_ESTIMATES,
    BL_COUPLING_SHORTENED,
    BL_COUPLING_WANTED, /* adaptive communication: the next step in s, 0: none was chosen yet, */
    BL_COUPLING_ERROR_BEFORE, /* the error of the last step relative to the tolerance, */
    BL_COUPLING_COMMUNICATIONS, /* how many steps were taken and rejected, */
    BL_COUPLING_REJECTED,
    BL_COUPLING_EXCEEDED, /* and in how many ticks the mean error exceeded the tolerance */
    BL_COUPLING_HEAD
};
enum {
    BL_COUPLED_DERIVATIVE,
    BL_COUPLED_DERIVATIVE_BEFORE,
    BL_COUPLED_DERIVATIVE_OLDEST,
    BL_COUPLED_SCALE,
    BL_COUPLED_ERROR,
    BL_COUPLED_ERROR_SUM,
    BL_COUPLED_HALVED,
    BL_COUPLED_QUARTERED,
    BL_COUPLED_RECENT, /* its largest value, of which 2 % are forgotten in a tick, */
    BL_COUPLED_LIMITING, /* and in how many communication steps its error was the largest */
    BL_COUPLED_ARRAYS
};

typedef struct {
    int32_t method, hold, iterations;
    bool strict; /* whether it is an error if the iteration does not converge */
    bool rolls_back;
    double tolerance;
    int32_t
        group; /* of couplings that take the same communication steps: communication.c; 0: a step is a tick, or its period */
    double
        step_tolerance; /* of the inputs in such a step, relative to their largest values; 0: only the others' count */
    double smallest; /* part of a step that is tried if the whole does not converge or is not exact; 1: no part is */
    int32_t rate;
    int64_t period; /* in ticks */
    bl_member *members;
    bl_coupled_signal *signals;
    bl_bond *bonds;
    int32_t member_count, signal_count, element_count, unknown_count, bond_count;
    bl_program program; /* computes the signals from the members' outputs */
    double *memory;
    int64_t memory_count;
    double *kept_memory; /* during an estimate */
    double *whole; /* history and start of a step that is taken in parts */
    double *start, *guess, *scale, *halves, *quarters; /* element_count each */
    double *work; /* of the iteration: bl_coupling_scratch values */
    bl_log_mark marks[BL_KEEP_COUNT]; /* of the log, when the states of the members were saved */
} bl_coupling;

/* An input within a step: value + first τ + second τ²/2. */
typedef struct {
    double value, first, second;
} bl_polynomial;

/* A block whose crossing functions depend on the rates of change of its inputs. */
enum { BL_PROBES = 7 };
typedef struct {
    bl_block *block;
    bl_operation predict;
    int (*stays)(const bl_block *b, double t, const struct bl_course *course);
    int64_t first; /* its first input among those of all such blocks */
    double **u1; /* pointers to the rates of each port */
    int32_t guard;
    bool is_beyond; /* whether a crossing function is beyond its border at the end of a step that is checked */
} bl_rated;

/* A step that ends after the last tick: its start, its length (0: no step is open), the part of it that is taken, and
   what happens there. Also saved: the ticks until modes are predicted again (rates.c). */
enum { BL_OPEN_START, BL_OPEN_LENGTH, BL_OPEN_PART, BL_OPEN_KIND, BL_OPEN_DOUBT, BL_OPEN_FIELDS };

struct bl_engine {
    /* The plan: constant after bl_open. */
    double step, start;
    int32_t solver;
    double relative_tolerance, absolute_tolerance; /* 0: steps of fixed length */
    int64_t max_steps, max_events; /* in a tick */
    bool locates; /* whether events are located within a tick */
    struct bl_jacobian *jacobian; /* of implicit solvers: solvers/jacobian.c */
    struct bl_multirate *multirate; /* how a part of the states takes substeps: solvers/multirate.c; NULL: none does */
    struct bl_strings *strings; /* between FMUs, NULL if there are none: strings.c */
    uint64_t plan_hash;
    int32_t kinds; /* BL_OFFERS_… */
    int32_t *clocks; /* rates whose ticks an importing tool activates: events/clocks.c */
    int32_t clock_count;
    bl_layout layout;
    bl_block *blocks;
    const bl_kernel **kernels; /* of each block */
    int32_t *block_rate, *block_guard;
    int32_t block_count;
    const char **paths, **notes; /* of each block */
    bl_rate *rates;
    int32_t rate_count;
    int32_t
        internal_solver_rate; /* of blocks that have an internal solver at every tick, and of those that pass on what these give */
    bl_guard *guards;
    int32_t guard_count;
    bl_loop *loops;
    int32_t loop_count;
    bl_program major, minor;
    bl_program stage_program; /* the part of `minor` that changes while a step is integrated with kept modes */
    bl_program crossing_program; /* the part of `minor` that crossing functions depend on */
    bl_block **located; /* blocks with crossing functions, in the order of `crossing` */
    bl_block **apart; /* those that evaluate them apart from their outputs */
    bl_block **eventful; /* blocks that change their state at an event */
    bl_block **settling; /* blocks that note what they have reached before it */
    bl_block **timed; /* blocks with instants that are known in advance */
    bl_block **ticking; /* blocks with events at ticks: `tick_event` */
    bl_rated *rated; /* blocks whose crossing functions depend on the rates of change of their inputs: */
    double *input_rates; /* rated_width values, those of all their inputs, at */
    const double **rated_inputs;
    double *rate_start, *rate_middle; /* these inputs at the start of a step, and at rate_part of it */
    int64_t rated_width;
    double rate_part;
    double *rate_probes; /* these inputs at BL_PROBES parts of a step */
    int32_t unresolved_block; /* whose input varies too fast for the shortest internal step; -1: none */
    bool notes_inputs; /* whether stages note them */
    double *rate_work,
        *check_work; /* 2 · states + signals + crossing_count of work space each, to find and to check them */
    bl_block **idle; /* blocks whose events are not located: they have modes only while all are kept */
    bl_modes *idle_modes;
    int32_t located_count, apart_count, eventful_count, settling_count, timed_count, ticking_count, rated_count,
        idle_count;
    int64_t crossing_count, event_capacity;
    bool crosses_ticks; /* whether a step under error control may end after the tick */
    bool *ends_steps; /* of each rate: whether states depend on signals that change at its hits */
    bl_calls derivatives, termination_checks, updates, projects;
    bool projects_read_inputs;
    bl_calls advances; /* of the blocks that are in no coupling */
    bl_coupling *couplings;
    bl_exchange *exchanges;
    int32_t coupling_count, exchange_count;
    int64_t estimate_every; /* ticks between estimates of the coupling error; 0: none */
    bool states_are_coupled; /* whether the continuous states are a member of a coupling */
    double *first_parameters, first_start;
    bl_variable *variables;
    int64_t variable_count;
    int64_t *input_of, *input_slots; /* index of each variable among the real inputs, or -1; slot of each real input */
    int64_t input_count;

    /* State of the run: the next tick depends only on `values`, `input_derivatives` and the time. */
    double *values;
    double *signals, *x, *z, *counters, *solver_memory, *open; /* parts of values */
    int64_t tick;
    double offset; /* seconds since the tick; if not 0, the actions at the tick are complete, */
    bool hits_taken; /* and if this is true, although it is 0: bl_take_hits */
    double *input_derivatives; /* BL_INPUT_DERIVATIVES for each real input */

    /* Scratch. */
    double *dx;
    double *nominals; /* of the states, as bl_find_nominals has found them */
    bl_block **scaled; /* blocks that have nominal values of their states */
    int32_t scaled_count;
    double *stages; /* solver's work space */
    bl_decision decision;
    int32_t parts; /* of an integration step: 1, but in an error estimate */
    unsigned char integrates; /* whether a step is being integrated */
    bool frozen; /* whether modes are kept, in ticks too: bl_freeze_modes */
    double *mode, *crossing, *crossing_a, *crossing_b; /* crossing_count each: see events.c */
    double *step_start; /* states at the start of the step being tried */
    double instant; /* the next instant known in advance; -INFINITY: to be asked for */
    int32_t instant_block;
    int32_t requesting_block, requested_crossing; /* an event that `project` requested; -1: none */
    bl_event *events; /* of the tick that was committed last */
    bool has_events; /* whether there can be any */
    int64_t event_count;
    bl_log_mark unfinished; /* where the tick began that failed or stopped, */
    bool is_unfinished; /* if that was the last one */
    double *loop_scratch;
    double *input_starts, follows_since; /* the values of the real inputs when bl_run_to was called, and the time */
    bool follows, has_input_derivatives; /* whether inputs vary within this run; whether any may have a derivative */
    const double *const *
        *advance_input_derivatives; /* u1 and u2 of the block of each call of `advances`, while inputs vary */
    bool holds; /* whether the outputs being evaluated are those within a tick */
    double *coupling_signals; /* the signals of the tick, while couplings move them */
    const bl_member *followed; /* the member whose inputs minor steps follow, from followed_since on; NULL: none */
    const bl_coupled_signal *followed_signals;
    double followed_since;
    bool *due;
    bool outputs_valid, constants_valid, initialized;
    bool minor_valid; /* whether the signals of `minor` are those of the present values: for a solver outside, ode.c */
    struct bl_ode *ode; /* NULL: there is none */
    bool parameters_valid; /* checked since they may have changed */
    bool begun; /* whether `begin` of all blocks has been called */
    bl_host_call host;
    int32_t failed_block;
    char message[2048];
    char block_message[BL_MESSAGE_SIZE]; /* message of a block during the run: bl_block.message */

    struct bl_chunk *chunks; /* everything allocated in bl_open */
    struct bl_probe *probe; /* overrides and profiling of a real-time run: probe.c; NULL: none */
};
typedef struct bl_probe bl_probe;
typedef struct bl_ode bl_ode;
typedef struct bl_jacobian bl_jacobian;
typedef struct bl_multirate bl_multirate;

/* Derivatives of the real inputs: for the next bl_run_to, and du/dt at the present time. Each has one value per input. */
enum { BL_INPUT_DERIVATIVE_FIRST, BL_INPUT_DERIVATIVE_SECOND, BL_INPUT_DERIVATIVE_NOW, BL_INPUT_DERIVATIVES };

/* One allocation, chained so that bl_close frees them all; the bytes follow the head. */
typedef struct bl_chunk {
    struct bl_chunk *next;
    size_t size;
} bl_chunk;

/* engine.c */
/* Executes the part of a tick after its outputs; it is not executed if a Stop or an Assertion ended the run. */
int bl_commit(bl_engine *e);
/* The same, but only up to `end` seconds after the tick. */
int bl_commit_part(bl_engine *e, double end);
/* What happens at a tick, after its outputs: termination checks, guards, updates. */
int bl_commit_hits(bl_engine *e, double t);
/* Algebraic loops are solved from the present solution from now on. */
void bl_keep_loops(bl_engine *e);
int bl_check_parameters(bl_engine *e, double t);
/* Checks that all slots of a record exist; accepts NULL. */
int bl_check_record(bl_engine *e, const bl_record *record);
/* bl_record_now for a record that has been checked. */
int bl_record_row(bl_engine *e, bl_record *record);
/* Runs a program of outputs; `minor` evaluations do not check whether calls are due. */
int bl_run_program(bl_engine *e, const bl_program *program, double t, bool minor);
/* The same in a minor evaluation. */
int bl_run_minor(bl_engine *e, const bl_program *program, double t);
bool bl_is_hit(const bl_engine *e, int32_t rate);
/* Integrates the continuous states over h, from the signals at t, and projects them at `end`: t + h, counted from the tick. */
int bl_advance_states(bl_engine *e, double t, double h, double end);
/* A time counted from the tick; the next tick is found exactly. */
double bl_after_tick(const bl_engine *e, double time);
/* Sets the inputs that have derivatives to their values at t. */
void bl_follow_inputs(bl_engine *e, double t);
int bl_evaluate_minor(bl_engine *e, double t);
/* The same in a stage of a step: only what may have changed since its start. */
int bl_evaluate_stage(bl_engine *e, double t);
int bl_evaluate_derivatives(bl_engine *e, double t);
/* The same for some of the blocks. */
int bl_run_derivatives(bl_engine *e, const bl_calls *derivatives, double t);
/* Outputs at t as they are within a tick, where discrete ones hold; leaves outputs to be evaluated again. */
int bl_evaluate_held(bl_engine *e, double t);
int bl_fail(bl_engine *e, int status, int32_t block, const char *format, ...) BL_FORMAT(4);
/* Ends the run because of a block; the reason is its note and message, or `what` if it has neither. */
int bl_fail_block(bl_engine *e, int status, const bl_block *b, const char *what);
/* Clears a failure after a successful retry. */
void bl_forget_failure(bl_engine *e);
/* strings.c */
void bl_close_strings(bl_engine *e);
/* loop.c: solves a loop among the calls that are due. */
int bl_solve_loop(bl_engine *e, bl_loop *loop, double t, bool minor);
int64_t bl_loop_scratch_size(int32_t tears);
/* coupling.c */
/* Saves the signals of the tick at t before any member advances. */
int bl_coupling_start(bl_engine *e, double t);
/* Advances the members of all couplings that are due from t on, by h, or by their period if that is longer. */
int bl_coupling_advance(bl_engine *e, double t, double h);
/* Accumulates the energy created by exchanges of held signals in the steps that end at t. */
void bl_measure_exchanges(bl_engine *e, double t);
/* Sets the inputs of the continuous states to their values at t. */
void bl_coupling_follow(const bl_engine *e, double t);
int64_t bl_coupling_scratch(int32_t method, int32_t unknowns);
/* Its method, or that of a step without a past. */
int bl_coupling_method(const bl_coupling *c);
/* Takes the step, or a part of it, from `start` at t; the caller checks the remaining residual. */
int bl_try_coupled_step(bl_engine *e, bl_coupling *c, int method, double t, double dt, double *residual);
/* Whether what failed may succeed with other inputs, of another step. */
bool bl_is_refusal(int status);
/* Counts a step that did not converge; an error if the coupling is strict. */
int bl_count_failure(bl_engine *e, const bl_coupling *c, double t, double residual, bool was_divided);
/* An input from its last `order` derivatives; with fewer if fewer are known. */
bl_polynomial bl_extrapolate(const bl_coupling *c, int64_t k, int order);
/* What remains of a step: what its members did, its signals as the start of the next, its input derivatives, its powers. */
int bl_accept_members(bl_engine *e, const bl_coupling *c, double t);
void bl_take_start(const bl_engine *e, const bl_coupling *c, const double *signals);
void bl_keep_history(bl_coupling *c, double dt);
void bl_measure_bonds(const bl_coupling *c, double dt, double done, double size);
/* Saves the members' states for one of the uses, or restores them. */
int bl_move_members(bl_engine *e, bl_coupling *c, int use, bool back);
/* One of the arrays over the elements that a coupling remembers. */
double *bl_coupled_array(const bl_coupling *c, int which);
/* communication.c: advances `count` couplings together over dt, in communication steps as their tolerances need. */
int bl_communicate(bl_engine *e, bl_coupling *couplings, int32_t count, double t, double dt);
int64_t bl_coupling_history(int32_t elements);
int64_t bl_coupling_memory(int32_t method, int32_t elements, int32_t unknowns);
/* guard.c */
void bl_guard_init(bl_guard *g);
int bl_guard_decide(bl_engine *e, bl_guard *g, double t);
void bl_guard_commit(const bl_engine *e, bl_guard *g);
static inline bool bl_active(const bl_engine *e, int32_t guard) {
    return guard < 0 || e->guards[guard].memory[BL_GUARD_ACTIVE] != 0.0;
}
/* Whether outputs are computed now: at a hit, and all of them where a guard's blocks start. */
static inline bool bl_due(const bl_engine *e, int32_t rate, int32_t guard) {
    return e->due[rate] || (guard >= 0 && !e->holds && e->guards[guard].memory[BL_GUARD_FRESH] != 0.0);
}
/* events.c */
/* Integrates x from t to t + h with internal steps: under error control, where events are located and taken. */
int bl_integrate_within_tick(bl_engine *e, double t, double h);
/* Evaluates the crossing functions of a block, unless its subsystem is inactive. */
int bl_run_crossings(bl_engine *e, bl_block *b, double t);
/* Evaluates the crossing functions that outputs do not evaluate, or decides their modes. */
int bl_run_apart(bl_engine *e, double t);
/* Crossing functions of inactive subsystems are 0. */
void bl_clear_guarded(bl_engine *e);
static inline void bl_clear_inactive(bl_engine *e) {
    if (e->guard_count > 0) bl_clear_guarded(e);
}
/* Lets blocks note what they have reached at t, where a step has ended. */
int bl_settle_blocks(bl_engine *e, double t);
/* Decides all modes at t and changes the states of blocks, until nothing changes; outputs are then those right after the event. */
int bl_decide_modes(bl_engine *e, double t);
/* Finds the first instant after t that a block knows in advance. */
void bl_find_instant(bl_engine *e, double t);
/* Lets blocks change their state at the tick t, where all outputs are known, until nothing changes. */
int bl_take_tick_events(bl_engine *e, double t);
/* Marks the log of events, and takes back what was noted and counted since. */
void bl_mark_log(const bl_engine *e, bl_log_mark *mark);
void bl_rewind_log(bl_engine *e, const bl_log_mark *mark);
/* Takes the events of one block since a mark out of the log: they will be repeated. */
void bl_forget_events(const bl_block *b, const bl_log_mark *mark);
/* Counts a tick whose events are not located from t on, because of the events of a block; -1: for another reason. */
void bl_count_unlocated(bl_engine *e, double t, int32_t block);
/* Whether there is anything to locate. */
static inline bool bl_has_events(const bl_engine *e) { return e->crossing_count > 0 || e->timed_count > 0; }
/* ode.c: back to before the start. */
void bl_ode_forget(bl_engine *e);
/* Whether bl_ode_start has been called, and whether the event is at a tick that has not been taken. */
bool bl_ode_has_started(const bl_engine *e);
bool bl_ode_is_at_tick(const bl_engine *e);
/* sensitivity.c: out[k] = Σ seeds[i] ∂values[unknowns[k]]/∂values[knowns[i]] with `measure`; an unknown from layout.total on is a
   derivative of a state. Values are afterwards as before. */
int bl_differentiate_values(bl_engine *e, int (*measure)(bl_engine *e), const int64_t *knowns, const double *seeds,
                            int64_t known_count, const int64_t *unknowns, int64_t unknown_count, double *out);
/* engine.c: takes over the run of another engine of the same plan, as if it had been saved and restored. */
void bl_take_over(bl_engine *e, const bl_engine *from);
/* Lends the models outside of the engine to another engine of the same plan: `lend` in kernel.h. Then bl_reclaim_models is called, whose
   status is one of the run. */
bool bl_lend_models(bl_engine *e, bl_engine *to, bool anew);
int bl_reclaim_models(bl_engine *e, bl_engine *from);
/* solvers/tangent.c: goes on with the deviation of an estimate, at a tick whose outputs are known. Returns a status of the run. */
int bl_propagate_tangent(bl_engine *e, bl_estimate *s);
/* engine.c: puts states back on their constraints. */
int bl_project(bl_engine *e, double t);
/* rates.c */
/* Finds the rates of change of inputs at t and evaluates the crossing functions that depend on them. `is_ready`: signals are those
   at t. */
int bl_cross_rated(bl_engine *e, double t, bool is_ready);
/* Modes that are predicted without these rates for a step over the tick: whether to, and what the blocks expect at t. Afterwards,
   at t, with the signals at the end of the step: whether they surely hold; or the signals before. */
bool bl_can_predict(bl_engine *e, double h);
/* Once in a tick, before: counts down the ticks without prediction. Whether it shall be checked that the steps of this tick resolve the
   inputs of these blocks. */
bool bl_checks_inputs(bl_engine *e);
/* Whether the step from t over h resolves them, where x and signals are those at its end, as they are afterwards. If not,
   `unresolved_block` is the first such block, and the ticks that follow are checked too. */
int bl_check_inputs(bl_engine *e, double t, double h, bool *resolves);
int bl_predict_modes(bl_engine *e, double t);
bool bl_prediction_holds(bl_engine *e, double t, double h);
void bl_take_back_prediction(bl_engine *e, bool resolves);
/* In between: adds the inputs of these blocks at a stage to their weighted mean at a part of the step. */
void bl_note_inputs(bl_engine *e, double part, double weight);
/* substeps.c: the part of a multirate step from t over h, taken already, at whose end a crossing function of fast states is first negative;
   1: none is within the step. x and crossing functions stay those at its end. */
int bl_scan_substeps(bl_engine *e, double t, double h, double *part);
/* stages.c: marks the blocks that `stage_program` calls; of a loop, all or none. */
int bl_find_stage_blocks(bl_engine *e, bool *needed);
/* plan.c: zeros that bl_close frees; NULL if there is no memory. */
void *bl_allocate(bl_engine *e, int64_t count, size_t element);
/* registry.c */
const bl_kernel *bl_find_kernel(const char *name);

#endif
