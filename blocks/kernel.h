/* What a native block is to the engine.
 *
 * A kernel is a table of up to six operations over memory that the run owns:
 *
 *   init        set states and memory from the parameters
 *   output      y = g(t, x, z, u)          pure: may be repeated at any time
 *   derivative  dx/dt = f(t, x, z, u)      pure
 *   update      z+ = h(t, x, z, u)         once for each sample hit; may also reset x
 *   advance     step an own solver from t to t + dt
 *   project     put x back on its constraints after an accepted step
 *
 * A kernel keeps nothing between calls except through x and z; one that runs what lives outside the engine (an FMU)
 * keeps it in `foreign`, and says how to save, restore and close that. Sizes are checked once, by `check`,
 * when a plan is loaded: after that a kernel may trust every pointer and every width it sees.
 * Values in z may come from a serialised state, so an index kept there is clamped before use.
 */
#ifndef BIELLA_KERNEL_H
#define BIELLA_KERNEL_H

#include <stdint.h>

typedef enum {
    BL_OK = 0,
    BL_STOP = 1,             /* a Stop block ended the run: not an error */
    BL_ERROR_MEMORY = -1,
    BL_ERROR_PLAN = -2,      /* the plan is not one of ours, is truncated, or does not fit its kernels */
    BL_ERROR_VERSION = -3,
    BL_ERROR_STATE = -4,     /* a saved state belongs to another plan */
    BL_ERROR_NOT_FINITE = -5,
    BL_ERROR_LOOP = -6,      /* an algebraic loop did not converge */
    BL_ERROR_SOLVER = -7,    /* an implicit step did not converge */
    BL_ERROR_BLOCK = -8,     /* a block refused to go on: an Assertion, a Python exception */
    BL_ERROR_ARGUMENT = -9
} bl_status;

typedef struct bl_block bl_block;

typedef enum {
    BL_OP_INIT, BL_OP_OUTPUT, BL_OP_DERIVATIVE, BL_OP_UPDATE, BL_OP_ADVANCE, BL_OP_PROJECT
} bl_op;

/* Calls a block that lives outside the engine; returns a bl_status. */
typedef int (*bl_host_call)(int32_t block, int32_t op, double t, double dt);

struct bl_block {
    const double *const *u;  /* one pointer for each input port, to u_width[i] values */
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
    const bl_host_call *host;
    void *foreign;           /* what the host has attached; NULL until then, and in all other blocks */
};

typedef int (*bl_operation)(bl_block *b, double t);

typedef struct {
    const char *name;
    int (*check)(const bl_block *b);  /* non-zero if the sizes and integers are sound */
    bl_operation init, output, derivative, update;
    int (*advance)(bl_block *b, double t, double dt);
    bl_operation project;
    /* Of blocks with state outside the engine only. A state is kept in one of BL_SLOTS slots, which are there from the
       start, so that a step can be taken back without allocating anything. */
    int (*save)(bl_block *b, int slot);
    int (*restore)(bl_block *b, int slot);
    void (*close)(bl_block *b);                /* ends what is attached: the engine is closing */
    const char *(*explain)(const bl_block *b); /* why the last operation failed */
} bl_kernel;

enum { BL_SLOTS = 4 };

/* Each file of kernels ends with such a table, closed by an entry without a name;
   scheduler/registry.c lists the tables. */
extern const bl_kernel bl_kernels_sources[];
extern const bl_kernel bl_kernels_noise[];
extern const bl_kernel bl_kernels_playback[];
extern const bl_kernel bl_kernels_math[];
extern const bl_kernel bl_kernels_function[];
extern const bl_kernel bl_kernels_nonlinear[];
extern const bl_kernel bl_kernels_logic[];
extern const bl_kernel bl_kernels_lookup[];
extern const bl_kernel bl_kernels_expression[];
extern const bl_kernel bl_kernels_continuous[];
extern const bl_kernel bl_kernels_discrete[];
extern const bl_kernel bl_kernels_delay[];
extern const bl_kernel bl_kernels_linear[];
extern const bl_kernel bl_kernels_routing[];
extern const bl_kernel bl_kernels_sinks[];
extern const bl_kernel bl_kernels_pendulum[];
extern const bl_kernel bl_kernels_multibody[];
extern const bl_kernel bl_kernels_python[];
extern const bl_kernel bl_kernels_fmu[];

#endif
