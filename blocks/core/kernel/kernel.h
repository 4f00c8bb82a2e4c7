/* Interface between native blocks and the engine.
 *
 * A kernel is a table of up to six operations over memory that the run owns:
 *
 *   init        set states and memory from the parameters
 *   output      y = g(t, x, z, u)          pure: may be repeated at any time
 *   derivative  dx/dt = f(t, x, z, u)      pure
 *   update      z+ = h(t, x, z, u)         once for each sample hit; may also reset x
 *   advance     step the internal solver from t to t + dt; inputs follow u + u1 τ + u2 τ²/2 with τ from t on
 *   project     put x back on its constraints after an accepted step, which may end within a tick
 *
 * and `diagnose`, called outside of any tick, which reports anomalies at the start or during the run with bl_log.
 *
 * Optional operations:
 *
 *   exit_initialization     called when all outputs at the start are known, so that initialization ends with consistent
 *                           inputs; the outputs are then evaluated again, unless it returns BL_UNCHANGED
 *   save, restore           for a kernel with state outside the engine that `advance` or `project` changes: save the complete state to
 *                           one of BL_SNAPSHOTS snapshots and restore it, which rolls back a step
 *   accept_step             for a member of a coupling: called before any member advances, while u still has its values at t
 *   energy                  for a mechanism: kinetic and potential energy in J at its present state, with no effect on the block
 *   directional_derivative  for a kernel with known derivatives: the outputs to first order in the change of u since the
 *                           last output, without side effects on the external state
 *
 * Operations of a kernel with discontinuities, whose events are located within a tick (scheduler/engine/events/events.c):
 *
 *   crossing_count          number of its zero-crossing functions
 *   crossings               evaluates them, if `output` does not
 *   settle                  notes in z what the block has reached where a step ends at an event, or a run stops within a tick: before the
 *                           event, with the modes and inputs of the step
 *   event                   changes z or x at an event, as `update` does at a tick; returns BL_UNCHANGED if nothing changes
 *   tick_event              the same with the outputs of a tick, which are evaluated again if anything changed: for a kernel whose
 *                           events change state outside the engine, so that `output` cannot show what is after them. Also called
 *                           where events are not located
 *   next_instant            the next time after t, known in advance, at which it is not smooth; INFINITY: none
 *   describe_event          describes an event by the number of its crossing function
 *
 * Such a kernel does not decide by comparing values, but by bl_decide or bl_keep_mode: while a step is integrated they return the mode
 * in which it began, so that the right-hand side stays smooth, and note how far the mode is from its border.
 *
 * A kernel with `advance` locates its events itself. It notes each with bl_note_event, and has `describe_event`, which also makes the
 * engine provide for them.
 *
 * A kernel has no state between calls except x and z. A kernel that runs a model outside the engine (an FMU) has its handle
 * in `external`, and operations to save, restore and close it.
 *
 * `check` validates integers and widths once, when a plan is loaded. `sizes` then computes the number of values of z and w
 * from the same integers and widths. The engine compares z_count with that and allocates w. After that a kernel may rely on
 * every pointer and every width.
 * z may come from a deserialized state: clamp indices stored there before use.
 */
#ifndef BIELLA_KERNEL_H
#define BIELLA_KERNEL_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Marks an enum of a .c file whose values Python writes: the build puts them into biella/_contract.py. */
#define BL_SHARED

typedef enum {
    BL_OK = 0,
    BL_STOP = 1,             /* a Stop block ended the run: not an error */
    BL_UNCHANGED = 2,        /* `exit_initialization`, `event` and `tick_event` only: there was nothing to do */
    BL_ERROR_MEMORY = -1,
    BL_ERROR_PLAN = -2,      /* not a plan, truncated, or inconsistent with its kernels */
    BL_ERROR_VERSION = -3,
    BL_ERROR_STATE = -4,     /* a saved state belongs to another plan */
    BL_ERROR_NOT_FINITE = -5,
    BL_ERROR_LOOP = -6,      /* an algebraic loop did not converge */
    BL_ERROR_SOLVER = -7,    /* an implicit step did not converge */
    BL_ERROR_BLOCK = -8,     /* a block failed: an Assertion, a Python exception */
    BL_ERROR_ARGUMENT = -9,
    BL_ERROR_INTERRUPT = -10 /* the host requested the end of the run: no retries */
} bl_status;

typedef struct bl_block bl_block;
struct bl_course;

typedef enum {
    BL_OP_INIT,
    BL_OP_OUTPUT,
    BL_OP_DERIVATIVE,
    BL_OP_UPDATE,
    BL_OP_ADVANCE,
    BL_OP_PROJECT,
    BL_OP_EXIT_INITIALIZATION,
    BL_OP_ACCEPT_STEP,
    BL_OP_SAVE,   /* to the snapshot whose number is dt, */
    BL_OP_RESTORE, /* and from it */
    BL_OP_CROSSINGS,
    BL_OP_EVENT
} bl_op;

/* Calls a block that is implemented outside the engine; returns a bl_status. */
typedef int (*bl_host_call)(int32_t block, int32_t op, double t, double dt);

/* Whether an input of a block with `advance` moves between ticks, changes at ticks only, or is not connected. */
typedef enum { BL_INPUT_MOVES, BL_INPUT_HELD, BL_INPUT_UNCONNECTED } bl_held;

/* When a block decides: never, while a step is integrated; at a tick or an event; or, where events are not located, at every
   evaluation, also within a step. */
typedef enum { BL_KEEP, BL_DECIDE, BL_DECIDE_ALWAYS } bl_decision;

/* The modes of a block, or of a part of it. */
typedef struct {
    double *mode;     /* one value for each crossing function; NULL: events of this block are not located */
    double *crossing; /* crossing functions at the last evaluation: negative beyond the border of the mode */
    const bl_decision *decision;
} bl_modes;

struct bl_block {
    const double *const *u;  /* one pointer for each input port, to u_width[i] values */
    const double *const *u1; /* in advance: the first and second time derivative of each input at its start; */
    const double *const
        *u2; /* NULL when the inputs are held, and in all other operations. In `crossings` of a kernel with
                                `input_rates`, u1 is the first time derivative, or NULL where it is not yet known */
    double *const *y;        /* one pointer for each output port, to y_width[i] values */
    double *x;               /* x_count continuous states */
    double *dx;              /* x_count derivatives */
    double *z;               /* z_count values of discrete state */
    double *w;               /* w_count values of work space: undefined at the start of every call, and never saved */
    const double *p;         /* p_count parameters */
    const int32_t *i;        /* i_count integers: modes, sizes, programs */
    const int32_t *u_width;
    const int32_t *y_width;
    int32_t u_count, y_count, x_count, z_count, w_count, p_count, i_count;
    int32_t index;           /* position in the plan */
    double dt;               /* this block's sample time, or the base step if it is continuous */
    const double *offset;    /* seconds since the last tick: 0 at a tick, else a run has stopped within one */
    const unsigned char *integrates; /* 1 while a step is integrated: operations of a tick are complete */
    const int32_t *parts;    /* an internal solver divides each of its steps by this: 1, but in an error estimate */
    const unsigned char *u_held; /* for a block with `advance`: of each input port, a bl_held */
    const bl_host_call *host;
    char *message;           /* BL_MESSAGE_SIZE bytes: message of the block; the engine clears it after reading */
    bl_modes modes;
    int32_t crossing_count;
    void *external;           /* handle attached by the host; NULL before that and in all other blocks */
    struct bl_engine *engine; /* for bl_note_event */
};

/* Returns the mode k that holds: `now`, the one by the present values, if the block decides; else that in which the step began. Its
   crossing function must then be noted in modes->crossing[k], if modes->mode is not NULL. */
static inline double bl_keep_mode(const bl_modes *modes, int32_t k, double now) {
    if (!modes->mode) return now;
    if (*modes->decision != BL_KEEP) modes->mode[k] = now;
    return modes->mode[k];
}

/* Returns whether a condition holds: `now` by the present values, where v >= 0 if it holds and v <= 0 if it does not. */
static inline int bl_decide(const bl_modes *modes, int32_t k, int now, double v) {
    if (!modes->mode) return now;
    const int holds = bl_keep_mode(modes, k, now) != 0.0;
    modes->crossing[k] = holds ? v : -v;
    return holds;
}

/* Notes an event at t in the log of the tick: only from `advance`, for what has happened in the step that it takes. If a coupling
   rolls that step back, the engine takes the event back too. `crossing`, which is not negative, distinguishes the events of a block.
   Of a block that notes more than BL_NOTED_EVENTS in a tick the others may only be counted. */
void bl_note_event(const bl_block *b, double t, int32_t crossing);
/* Most events that a block with `advance` should locate in a tick, of those that it can also integrate across; 0: none, because events
   take effect at ticks. */
int64_t bl_event_limit(const bl_block *b);
/* Requests an event where the step ends that `project` concludes, as one of the given crossing function. */
void bl_request_event(const bl_block *b, int32_t crossing);
/* The instants of blocks are asked for again: one that was known before has changed. */
void bl_forget_instants(const bl_block *b);
/* Whether the solver of the diagram chooses its steps by a tolerance. */
int bl_has_adaptive_steps(const bl_block *b);
/* Counts a tick of the block in which a discontinuity was not located. */
void bl_note_unlocated(const bl_block *b);
enum { BL_NOTED_EVENTS = 256 };

enum { BL_MESSAGE_SIZE = 1024 };

#if defined(__GNUC__)
#define BL_FORMAT(n) __attribute__((format(printf, n, n + 1)))
#else
#define BL_FORMAT(n)
#endif
/* Adds to the message of a block. Only from an operation that then fails, and from a diagnostic. */
void bl_log(const bl_block *b, const char *format, ...) BL_FORMAT(2);
/* The same, and returns BL_ERROR_BLOCK. */
int bl_log_error(const bl_block *b, const char *format, ...) BL_FORMAT(2);

/* Subject of a diagnostic. */
enum { BL_DIAGNOSTIC_START, BL_DIAGNOSTIC_RUN };

typedef int (*bl_operation)(bl_block *b, double t);

/* Number of values that a block needs: of discrete state, z, and of work space, w. */
typedef struct {
    int64_t memory, scratch;
} bl_sizes;

typedef struct {
    const char *name;
    int (*check)(const bl_block *b);  /* non-zero if the widths and integers are sound */
    /* Called after `check`, before x, z, w and p have values: number of values of z and w that the block needs. Without it,
       z_count is that of the plan, validated by `check`, and the block has no work space. */
    bl_sizes (*sizes)(const bl_block *b);
    bl_operation init, output, derivative, update;
    /* After `init`, where parameters may have changed, before the next outputs: whether they are allowed, or an error that names one. */
    bl_operation check_parameters;
    int (*advance)(bl_block *b, double t, double dt);
    bl_operation project;
    int project_reads_inputs; /* 1: `project` reads inputs, which are then evaluated at the end of the step */
    int32_t (*crossing_count)(const bl_block *b); /* after `check`; negative: too many to be counted */
    bl_operation crossings, settle, event, tick_event;
    double (*next_instant)(const bl_block *b, double t);
    void (*describe_event)(const bl_block *b, int32_t crossing, char *text, size_t size);
    int constant_in_mode; /* 1: where its events are located, its outputs do not change while its modes are kept */
    /* Whether ticks change what a block of continuous rate computes, after the first one, other than through its inputs and its events. If
       not given, `update` does, unless `event` stands for it. */
    int (*needs_ticks)(const bl_block *b);
    /* After an event, for a block that does not need all ticks: whether the next one changes it. */
    int (*needs_next_tick)(bl_block *b, double t);
    int remembers; /* 1: its crossing functions depend on what `update` notes at every tick */
    /* 1: its crossing functions depend on the rates of change of its inputs. `predict` then decides modes without, as they are if inputs
       go on as the block expects. `stays` is called at t, the end of a step of length b->dt: whether, for inputs that varied so in it
       (course.h), the block would surely have decided so at its start, and its mode surely still holds. */
    int input_rates;
    bl_operation predict;
    int (*stays)(const bl_block *b, double t, const struct bl_course *course);
    /* Of element k of its inputs: what is too small to matter. Whether crossing functions that do not depend on rates are beyond their
       borders by more than that at t. */
    double (*input_resolution)(const bl_block *b, int32_t k);
    int (*is_beyond)(const bl_block *b, double t);
    void (*diagnose)(bl_block *b, int about, double t);
    /* Only for blocks with state outside the engine. A state is saved to one of BL_SNAPSHOTS snapshots, which are allocated
       at the start, so that a step can be rolled back without allocation. */
    int (*save)(bl_block *b, int snapshot);
    /* For an error estimate. Another engine of the same plan has the block `to`, without a model outside. `lend` lets it use the model of
       `b`: in the state that it has, or, if `anew` is 0, in that in which it was last reclaimed. `reclaim` puts back the state that the
       model had before. Nothing else is done with `b` in between. */
    int (*lend)(bl_block *b, bl_block *to, int anew);
    int (*reclaim)(bl_block *b, bl_block *to);
    int (*restore)(bl_block *b, int snapshot);
    bl_operation exit_initialization;
    bl_operation accept_step;
    bl_operation directional_derivative;
    void (*energy)(bl_block *b, double t, double *kinetic, double *potential);
    /* Nominal values of its x_count states: absolute tolerances and differences of solvers refer to them. Where one is not positive and
       finite, as everywhere without this operation, it is 1. They may change at events. */
    const double *(*nominals)(const bl_block *b);
    void (*close)(bl_block *b); /* releases the attached handle when the engine closes */
    const char *(*last_error)(const bl_block *b); /* reason of the last failure, if it may exceed BL_MESSAGE_SIZE */
} bl_kernel;

enum { BL_SNAPSHOTS = 4 };

/* Each file of kernels ends with a table of them, terminated by an entry without a name. It begins on a separate line with

       const bl_kernel bl_kernels_name[] = {

   by which the build finds it: there is no other list. */

#endif
