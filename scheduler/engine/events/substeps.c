/* Events of the fast part of a multirate step (solvers/multirate.c).
 *
 * A crossing function that depends on fast states may be negative within a step and not at its end. These functions are therefore also
 * evaluated at the ends of substeps, with the states as the step was taken. Where one is negative, the interpolant is completed, which is
 * more accurate within the step, and they are evaluated on it: the first substep at whose end one is negative brackets the event. */
#include <math.h>
#include <string.h>

#include "scheduler/engine/solvers/multirate.h"
#include "scheduler/engine/solvers/solver.h"

/* Evaluates the functions of fast states at x. *beyond: one of them is negative. */
static int judge_substep(bl_engine *e, double t, bool *beyond) {
    const bl_multirate *m = e->multirate;
    *beyond = false;
    bl_follow_inputs(e, t);
    int status = bl_run_program(e, &m->crossing_program, t, true);
    for (int64_t k = 0; k < m->located_count && status == BL_OK; k++) {
        bl_block *b = m->located[k];
        if (!bl_active(e, e->block_guard[b->index])) continue;
        if (e->kernels[b->index]->crossings) status = bl_run_crossings(e, b, t);
        for (int32_t i = 0; i < b->crossing_count; i++) *beyond = *beyond || b->modes.crossing[i] < 0.0;
    }
    return status;
}

int bl_scan_substeps(bl_engine *e, double t, double h, double *part) {
    const bl_multirate *m = e->multirate;
    *part = 1.0;
    if (!m || m->located_count == 0) return BL_OK;
    const size_t size = (size_t)e->layout.states * sizeof(double),
                 crossing_size = (size_t)e->crossing_count * sizeof(double);
    const double *end = bl_substep_states(e, m->taken), share = 1.0 / (double)m->taken;
    bool beyond = false;
    int status = BL_OK;
    memcpy(e->crossing_b, e->crossing, crossing_size); /* those at the end of the step */
    for (int64_t q = 1; q < m->taken && status == BL_OK && !beyond; q++) {
        memcpy(e->x, bl_substep_states(e, q), size);
        status = judge_substep(e, t + h * (double)q * share, &beyond);
    }
    memcpy(e->x, end, size);
    if (status == BL_OK && beyond) {
        status = bl_complete_interpolant(e, t, h);
        beyond = false;
        for (int64_t q = 1; q < m->taken && status == BL_OK && !beyond; q++) {
            bl_interpolate(e, h, (double)q * share, e->x);
            status = judge_substep(e, t + h * (double)q * share, &beyond);
            if (beyond) *part = (double)q * share;
        }
        memcpy(e->x, end, size);
    }
    memcpy(e->crossing, e->crossing_b, crossing_size);
    return status;
}
