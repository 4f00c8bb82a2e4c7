/* Multirate steps: a part of the states takes several steps within one step of all others. */
#ifndef BIELLA_MULTIRATE_H
#define BIELLA_MULTIRATE_H

#include "scheduler/engine/engine.h"

/* A part of the states, and what leads to its derivatives; in stages with kept modes, without what is constant then. */
typedef struct {
    bl_program program, stage_program;
    bl_calls derivatives;
} bl_part;
/* A slow block with inputs that depend on fast states. */
typedef struct {
    bl_block *block;
    int32_t *readings; /* which of all readings its inputs are */
    int32_t count;
    double *gains; /* d(dx/dt)/du at the start of the step: `count` columns of x_count values */
    int64_t sample; /* its first output among the samples, if these are interpolated; else -1 */
    int64_t width;  /* of all of its outputs */
    double *start, *middle,
        *end; /* then the change of its outputs with the integrals of the readings: `count` columns of `width` */
} bl_driven;
struct bl_multirate {
    int32_t substeps; /* of the fast part in a tick, at least */
    bl_part slow, fast;
    int32_t *slow_states, *fast_states;
    int64_t slow_count, fast_count;
    bl_program sampling; /* slow blocks whose outputs are interpolated within a step, */
    double **samples;    /* and these outputs */
    int64_t sample_width;
    const double **readings; /* signals that lead from the fast part to slow blocks */
    int64_t reading_count;
    bl_driven *driven; /* and these blocks */
    int64_t driven_count;
    bool samples_change; /* whether outputs of driven blocks are interpolated */
    bl_program crossing_program; /* leads to crossing functions that depend on fast states, */
    bl_block **located;          /* and the blocks that have them: events/substeps.c */
    int64_t located_count;
    double *work, *nodes;
    int64_t taken; /* substeps of the last step */
};
/* Whether there is such a method for the solver. */
bool bl_can_multirate(const bl_engine *e);
/* Most substeps in a step: as many in each stage. */
int64_t bl_largest_substeps(const bl_engine *e);
/* Numbers of values of `work` and `nodes`. */
int64_t bl_multirate_scratch(const bl_engine *e);
int64_t bl_multirate_nodes(const bl_engine *e);
int bl_integrate_multirate(bl_engine *e, double t, double h);
int bl_complete_multirate(bl_engine *e, double t, double h);
void bl_interpolate_multirate(const bl_engine *e, double h, double theta, double *x);
/* All states at the end of a substep of the last step; only if there are events of the fast part to locate. */
const double *bl_substep_states(const bl_engine *e, int64_t node);

#endif
