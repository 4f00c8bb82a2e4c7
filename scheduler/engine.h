/* The engine's insides, shared by the files of scheduler/ and by fmu/host.c, which attaches FMUs to blocks. */
#ifndef BIELLA_ENGINE_H
#define BIELLA_ENGINE_H

#include <stdbool.h>

#include "scheduler/biella.h"

/* Rates 0 and 1 have a meaning of their own; the others are periods. */
enum { BL_RATE_CONTINUOUS = 0, BL_RATE_CONSTANT = 1 };

enum {
    BL_EULER, BL_HEUN, BL_RK3, BL_RK4, BL_DOPRI5, BL_BACKWARD_EULER, BL_TRAPEZOIDAL, BL_SOLVER_COUNT
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
enum { BL_GUARD_ACTIVE, BL_GUARD_FRESH, BL_GUARD_SHADOWED, /* decided with a tick's outputs */
       BL_GUARD_BEFORE, BL_GUARD_SEEN, BL_GUARD_WAS_ACTIVE, BL_GUARD_HAS_RUN, /* committed */
       BL_GUARD_MEMORY };
typedef struct {
    int32_t kind, edge, resets, parent;
    const double *control;
    int32_t block_first, block_count;
    double *signals, *x, *z;
    int64_t signal_count, x_count, z_count; /* of the blocks inside */
    double *memory; /* BL_GUARD_MEMORY values, the committed signals, a shadow of x and z */
} bl_guard;

struct bl_engine {
    /* The plan: constant after bl_open. */
    double step, start;
    int32_t solver;
    uint64_t plan_hash;
    bl_layout layout;
    bl_block *blocks;
    const bl_kernel **kernels; /* of each block */
    int32_t *block_rate, *block_guard;
    int32_t block_count;
    const char **paths, **notes; /* of each block */
    bl_rate *rates;
    int32_t rate_count;
    bl_guard *guards;
    int32_t guard_count;
    bl_loop *loops;
    int32_t loop_count;
    bl_program major, minor;
    bl_calls derivatives, verdicts, updates, advances, projects;
    double *first_parameters, first_start;
    bl_variable *variables;
    int64_t variable_count;

    /* The run: `values` and `tick` are all that the next tick depends on. */
    double *values;
    double *signals, *x, *z, *solver_memory; /* parts of values */
    int64_t tick;

    /* Scratch. */
    double *dx;
    double *stages;       /* solver's work space */
    double *loop_scratch;
    bool *due;
    bool outputs_valid, constants_valid, initialised;
    bl_host_call host;
    int32_t failed_block;
    char message[2048];

    struct bl_chunk *chunks; /* everything allocated in bl_open */
};

/* One allocation, chained so that bl_close frees them all; the bytes follow the head. */
typedef struct bl_chunk {
    struct bl_chunk *next;
    size_t size;
} bl_chunk;

/* engine.c */
/* The part of a tick after its outputs; nothing of it has happened if a Stop or an Assertion ended the run. */
int bl_commit(bl_engine *e);
/* Whether all that a record names is there; NULL is fine. */
int bl_check_record(bl_engine *e, const bl_record *record);
/* bl_record_now for a record that has been checked. */
int bl_record_row(bl_engine *e, bl_record *record);
int bl_evaluate_minor(bl_engine *e, double t);
int bl_evaluate_derivatives(bl_engine *e, double t);
int bl_fail(bl_engine *e, int status, int32_t block, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 4, 5)))
#endif
    ;
/* loop.c: solves a loop among the calls that are due. */
int bl_solve_loop(bl_engine *e, bl_loop *loop, double t, bool minor);
int64_t bl_loop_scratch_size(int32_t tears);
/* guard.c */
void bl_guard_init(bl_guard *g);
int bl_guard_decide(bl_engine *e, bl_guard *g, double t);
void bl_guard_commit(const bl_engine *e, bl_guard *g);
static inline bool bl_active(const bl_engine *e, int32_t guard) {
    return guard < 0 || e->guards[guard].memory[BL_GUARD_ACTIVE] != 0.0;
}
/* Whether outputs are computed at this tick: at a hit, and all of them where a guard's blocks start. */
static inline bool bl_due(const bl_engine *e, int32_t rate, int32_t guard) {
    return e->due[rate] || (guard >= 0 && e->guards[guard].memory[BL_GUARD_FRESH] != 0.0);
}
/* solver.c: integrates x over one step; dx holds the derivatives at t. */
int bl_integrate(bl_engine *e, double t, double h);
int64_t bl_solver_scratch(int32_t solver, int64_t states);
int64_t bl_solver_memory(int32_t solver, int64_t states);
/* linear.c: dense LU with partial pivoting; the pivots are kept as doubles so that they can be saved. */
int bl_lu_factor(double *a, double *pivots, int64_t n);
void bl_lu_solve(const double *a, const double *pivots, int64_t n, double *b);
/* registry.c */
const bl_kernel *bl_find_kernel(const char *name);

#endif
