/* Solvers: integration of the continuous states.
 *
 *   fixed steps        bl_integrate → bl_complete_interpolant → bl_interpolate
 *   error control      bl_step_adaptive → bl_interpolate
 *
 * These are exported for tests, which step a method by itself.
 *
 * What the next step depends on is in e->solver_memory, which is saved and restored with the state of a run: a head of
 * numbers, then the dense output of the last step, then Jacobian and factors. All zeros is the state before the first step. */
#ifndef BIELLA_SOLVER_H
#define BIELLA_SOLVER_H

#include "scheduler/engine/engine.h"

/* The head of the solver's memory; absent for explicit methods with fixed steps. */
enum {
    BL_SOLVER_STEPS,          /* counts: accepted steps */
    BL_SOLVER_REJECTIONS,     /* steps that were repeated: error too large, or an iteration that did not converge */
    BL_SOLVER_EVALUATIONS,    /* of the right-hand side, those for Jacobians included */
    BL_SOLVER_JACOBIANS,
    BL_SOLVER_FACTORIZATIONS, /* real and complex ones */
    BL_SOLVER_STIFF,          /* 1: an explicit method has found the problem stiff */
    BL_SOLVER_STIFF_TIME,     /* when it did so first */
    BL_SOLVER_PROPOSED,       /* length of the next step; 0: to be estimated */
    BL_SOLVER_LENGTH,         /* of the last accepted step; 0: no step precedes, or a jump followed it */
    BL_SOLVER_ERROR,          /* its error norm */
    BL_SOLVER_JACOBIAN,       /* a bl_jacobian_age */
    BL_SOLVER_FACTORED,       /* step length of the factors; 0: none */
    BL_SOLVER_RATE,           /* convergence of the last Newton iteration */
    BL_SOLVER_STIFF_SIGNS,    /* steps in succession that looked stiff, and that did not */
    BL_SOLVER_SMOOTH_SIGNS,
    BL_SOLVER_JUMPED,         /* 1: the right-hand side may have jumped since the last step */
    BL_SOLVER_HEAD
};

/* Fixed step: integrates x over h from t; dx holds f(t, x). */
BL_API int bl_integrate(bl_engine *e, double t, double h);
/* The same over `limit`, or over a part of it, *taken, where the solver has to take the step in parts: the interpolant is that of
   this part. */
int bl_step_fixed(bl_engine *e, double t, double limit, double *taken);
/* Error control: one accepted step from t, at most `limit` long; dx holds f(t, x). Repeats with shorter steps until the error is
   within the tolerances. *taken is the length, exactly `limit` where the step reaches it. Then x, dx and the signals are those
   at its end. */
BL_API int bl_step_adaptive(bl_engine *e, double t, double limit, double *taken);
/* Completes the interpolant of the last step, from t over h, before x changes. Then x and the signals are those at its end. */
BL_API int bl_complete_interpolant(bl_engine *e, double t, double h);
/* x(t + theta h) on the last step, 0 <= theta <= 1; exactly its start at 0 and its end at 1. */
BL_API void bl_interpolate(const bl_engine *e, double h, double theta, double *x);
/* After a jump of states or right-hand side: forgets the history of steps; Jacobian and step length are renewed. */
BL_API void bl_restart_solver(bl_engine *e);
/* Where signals change that states depend on: the interpolant of the next step does not use the last one. */
void bl_expect_jump(bl_engine *e);

/* Loading: reads the pattern of df/dx, `count` numbers of section JPAT (0: a full matrix). On failure *why is the reason. */
int bl_load_pattern(bl_engine *e, const int32_t *pattern, int64_t count, const char **why);
/* How many values are saved, and how many are work space. */
int64_t bl_solver_memory(const bl_engine *e);
int64_t bl_solver_scratch(const bl_engine *e);

/* Inside solvers/ only from here on. */

static inline bool bl_is_implicit(const bl_engine *e) { return e->solver >= BL_BACKWARD_EULER; }
static inline bool bl_is_adaptive(const bl_engine *e) { return e->relative_tolerance > 0.0; }
static inline bool bl_has_solver_memory(const bl_engine *e) { return bl_is_implicit(e) || bl_is_adaptive(e); }
static inline void bl_count(bl_engine *e, int counter) {
    if (bl_has_solver_memory(e)) e->solver_memory[counter] += 1.0;
}

/* Vectors of the dense output. Explicit methods and trapezoidal rule:
       x = START + θ (RISE + (1-θ) (BEND + θ (TWIST + (1-θ) LAST)))
   radau5, with s = θ - 1 and a weight w that is 0 at both ends:
       x = END + s (RISE + (s + 1 - c2) (BEND + (s + 1 - c1) TWIST)) + w(θ) LAST */
enum { BL_DENSE_START, BL_DENSE_END, BL_DENSE_RISE, BL_DENSE_BEND, BL_DENSE_TWIST, BL_DENSE_LAST, BL_DENSE_COUNT };
/* The dense output: in the memory under error control, else in the work space. */
double *bl_dense(const bl_engine *e);
/* Fills the dense output of an explicit method from slopes at both ends; LAST is 0. */
void bl_fill_hermite(const bl_engine *e, const double *x0, const double *f0, const double *f1, double h);

/* step_control.c */
int bl_evaluate_at(bl_engine *e, double t);
/* Asks blocks for the nominal values of their states, which may have changed at an event. */
void bl_find_nominals(bl_engine *e);
/* Root mean square of values / scale. */
double bl_norm(const double *values, const double *scale, int64_t n);
/* A first step for a method of this order from t, x0 and f0, in `work` (2 n values); leaves x and dx as they were. */
int bl_first_step(bl_engine *e, double t, double limit, int order, const double *scale, double *work, double *h);
/* The length to take of a step that is proposed, so that no short rest remains before the limit. */
double bl_fit_step(double proposed, double limit);
/* Whether a step that failed with this status may be tried again with a shorter one. */
bool bl_can_retry(int status);
/* Whether a step is too short to be taken from t. One to the limit is not: that may lie a rounding error after t. */
bool bl_is_too_short(double t, double h, double limit);
bool bl_all_finite(const double *values, int64_t n);
int32_t bl_owner_of_state(const bl_engine *e, int64_t state);
int bl_fail_too_short(bl_engine *e, double t, double h, int status, const char *remedy);

/* explicit.c, dopri5.c, implicit.c, radau5.c */
int bl_integrate_explicit(bl_engine *e, double t, double h);
void bl_fill_dopri5(const bl_engine *e, const double *x0, const double *k, const double *f1, double h);
int bl_step_dopri5(bl_engine *e, double t, double limit, double *taken);
int bl_integrate_implicit(bl_engine *e, double t, double h);
enum { BL_RADAU5_SCRATCH = 11 }; /* vectors of work space */
int bl_integrate_radau5(bl_engine *e, double t, double h);
int bl_step_fixed_radau5(bl_engine *e, double t, double limit, double *taken);
int bl_step_radau5(bl_engine *e, double t, double limit, double *taken);
void bl_interpolate_radau5(const double *dense, int64_t n, double theta, double *x);

/* explicit.c: stages of a method; the weights of the slopes so far that lead to stage s, or to the end of the step; the time of a stage. */
int bl_stage_count(int32_t solver);
const double *bl_stage_weights(int32_t solver, int s);
double bl_stage_time(int32_t solver, int s);

/* A state at the part `theta` of the last step, by the cubic between its ends. */
double bl_dense_value(const bl_engine *e, int64_t state, double theta);

/* jacobian.c: where df/dx may have entries, how columns are differentiated together, and the structure of its factors. */
typedef enum { BL_NO_JACOBIAN, BL_NEW_JACOBIAN, BL_OLD_JACOBIAN, BL_STALE_JACOBIAN } bl_jacobian_age;
struct bl_jacobian {
    int64_t n, entries;
    bool full; /* every entry: `column` is NULL and `row` is 0 … n-1 */
    const int64_t *column;
    const int32_t *row;
    const int64_t *group; /* group_count + 1 firsts in `members`: no two columns of a group share a row */
    const int32_t *members;
    int64_t group_count;
    bool sparse; /* how it is factored; if not, with pivoting as a full matrix */
    const int32_t *order, *position; /* the state at each place of the factors, and the place of each state */
    const int64_t *lower, *upper; /* firsts of the columns of L below and of U above the diagonal */
    const int32_t *lower_row, *upper_row;
    int64_t factor_entries; /* in L or U */
    double *work; /* 2 n */
};
static inline int64_t bl_column(const bl_jacobian *j, int64_t column, const int32_t **rows, int64_t *first) {
    *rows = j->full ? j->row : j->row + j->column[column];
    *first = j->full ? column * j->n : j->column[column];
    return j->full ? j->n : j->column[column + 1] - j->column[column];
}
/* values[entry] = factor · ∂f_i/∂x_j at t by differences of `increment` in x, from `slope` = f(t, x); leaves dx as `slope`. */
int bl_differentiate(bl_engine *e, double t, double factor, const double *increment, const double *slope,
                     double *values);

/* sparse.c: an order of elimination that keeps the factors sparse, and their structure. */
int bl_analyze_factors(bl_engine *e, bl_jacobian *j);

/* linear.c: LU of re · I - values, and of (re + i im) · I - values. Factors are doubles, pivots included. */
int64_t bl_real_size(const bl_jacobian *j);
int64_t bl_complex_size(const bl_jacobian *j);
int bl_factor_real(const bl_jacobian *j, const double *values, double re, double *factors);
void bl_solve_real(const bl_jacobian *j, const double *factors, double *b);
int bl_factor_complex(const bl_jacobian *j, const double *values, double re, double im, double *factors);
void bl_solve_complex(const bl_jacobian *j, const double *factors, double *b_re, double *b_im);

#endif
