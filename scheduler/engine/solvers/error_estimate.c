/* Samples of the error of a run with fixed steps.
 *
 * Another engine of the same plan, the shadow, takes over the state of the run at the start of a window. For `burst` ticks it
 * divides each integration step in `parts`, two as a rule, in the diagram and in the internal solvers of mechanisms; samples stay at their ticks. The
 * deviation at the end of the burst is the error that the run has made in it, but for the error of the shadow, which is 2^p times
 * smaller for a method of order p. In every `follow_every`-th window the shadow then takes whole steps for `follow` ticks: the diagram
 * propagates the same deviation, which is compared again after half of them and at their end.
 *
 * If `follow_every` is 0, windows adjoin and the shadow takes over once: it repeats the whole run.
 *
 * Models outside the engine are lent to the shadow while it runs.
 *
 * Nothing of the run is written but its outputs at the tick, which are pure and would be evaluated next in any case. */
#include <math.h>
#include <string.h>

#include "scheduler/engine/engine.h"

enum { AWAIT_START, AWAIT_BURST, AWAIT_HALF, AWAIT_LAST, AWAIT_END };

static void await(bl_estimate *s, int64_t phase, int64_t next) {
    s->phase = phase;
    s->next = next;
}

static void next_window(bl_estimate *s) {
    s->window++;
    if (s->window < s->window_count) await(s, AWAIT_START, s->starts[s->window]);
}

bool bl_lend_models(bl_engine *e, bl_engine *to, bool anew) {
    bool lent = true;
    for (int32_t k = 0; k < e->block_count; k++)
        if (e->kernels[k]->lend && lent) lent = e->kernels[k]->lend(&e->blocks[k], &to->blocks[k], anew) == BL_OK;
    return lent;
}

int bl_reclaim_models(bl_engine *e, bl_engine *from) {
    int status = BL_OK;
    for (int32_t k = 0; k < e->block_count; k++) {
        if (!e->kernels[k]->lend || e->kernels[k]->reclaim(&e->blocks[k], &from->blocks[k]) == BL_OK) continue;
        status = bl_fail_block(e, BL_ERROR_BLOCK, &e->blocks[k], "its state cannot be put back");
    }
    return status;
}

/* Runs the shadow ahead; whatever ends it, an error or a Stop, ends the window only. Returns a status of the run. */
static int run_shadow(bl_engine *e, bl_estimate *s, int64_t ticks, int32_t parts, bool anew, bool *good) {
    int64_t done = 0;
    s->shadow->parts = parts;
    *good = bl_lend_models(e, s->shadow, anew) && bl_run(s->shadow, ticks, NULL, &done) == BL_OK;
    s->shadow->parts = 1;
    *good = *good && bl_outputs(s->shadow) == BL_OK;
    return bl_reclaim_models(e, s->shadow);
}

static int64_t width_of(const bl_engine *e, const bl_estimate *s) {
    return e->layout.signals + e->layout.states + BL_ENERGY_FIELDS * s->energy_count;
}

static void keep(bl_engine *e, const bl_estimate *s, double *row) {
    const int64_t count = e->layout.signals + e->layout.states;
    double *energies = row + count, *end = energies + BL_ENERGY_FIELDS * s->energy_count;
    memcpy(row, e->values + e->layout.parameters, (size_t)count * sizeof(double));
    for (int32_t k = 0; k < e->block_count && energies < end; k++) {
        if (!e->kernels[k]->energy) continue;
        e->kernels[k]->energy(&e->blocks[k], bl_time(e), &energies[BL_ENERGY_KINETIC], &energies[BL_ENERGY_POTENTIAL]);
        energies += BL_ENERGY_FIELDS;
    }
}

/* shadow - run, where `run` is the row of the run at this tick. */
static void compare(const bl_engine *e, const bl_estimate *s, const double *run, double *row) {
    keep(s->shadow, s, row);
    for (int64_t i = 0; i < width_of(e, s); i++) row[i] -= run[i];
}

/* At the tick that is awaited, when its outputs are known. */
static int visit(bl_engine *e, bl_estimate *s) {
    const int64_t width = width_of(e, s), row = s->window * width, half = s->follow / 2,
                  followed = s->follow_every > 0 ? s->window / s->follow_every * width : 0;
    const bool anew = s->window == 0 || s->follow_every > 0;
    bool good = true;
    int status = BL_OK;
    switch (s->phase) {
        case AWAIT_START:
            keep(e, s, s->before + row);
            if (anew) bl_take_over(s->shadow, e);
            status = run_shadow(e, s, s->burst, s->parts, anew, &good);
            await(s, AWAIT_BURST, e->tick + s->burst);
            break;
        case AWAIT_BURST:
            keep(e, s, s->after + row);
            compare(e, s, s->after + row, s->deviations + row);
            if (s->follow_every == 0 || s->window % s->follow_every != 0) {
                next_window(s);
                break;
            }
            /* The run's own factors, for whole steps: an implicit solver would have to compute them. */
            memcpy(s->shadow->solver_memory, e->solver_memory, (size_t)(e->open - e->solver_memory) * sizeof(double));
            status = run_shadow(e, s, half, 1, false, &good);
            await(s, AWAIT_HALF, e->tick + half);
            break;
        case AWAIT_HALF:
            keep(e, s, s->end + followed);
            compare(e, s, s->end + followed, s->halfway + followed);
            status = run_shadow(e, s, s->follow - half, 1, false, &good);
            await(s, AWAIT_LAST, e->tick + s->follow - half - 1);
            break;
        case AWAIT_LAST:
            keep(e, s, s->last + followed);
            await(s, AWAIT_END, e->tick + 1);
            break;
        default:
            keep(e, s, s->end + followed);
            compare(e, s, s->end + followed, s->propagated + followed);
            next_window(s);
    }
    if (good) return status;
    s->failures++;
    if (s->follow_every == 0) s->window = s->window_count;
    else next_window(s);
    return status;
}

int bl_run_estimated(bl_engine *e, int64_t ticks, bl_record *record, bl_estimate *s, int64_t *done) {
    int status = BL_OK;
    *done = 0;
    if (s->shadow->plan_hash != e->plan_hash || s->parts < 1 || s->burst < 1 || s->follow < 2 || s->follow_every < 0)
        return bl_fail(e, BL_ERROR_ARGUMENT, -1, "an error estimate needs a shadow of the same plan");
    if (s->tangent && s->tangent->plan_hash != e->plan_hash)
        return bl_fail(e, BL_ERROR_ARGUMENT, -1, "an error estimate needs a tangent of the same plan");
    if (s->phase == AWAIT_START && s->window < s->window_count) s->next = s->starts[s->window];
    while (status == BL_OK) {
        const bool visits = s->window < s->window_count;
        if (visits && e->tick >= s->next) {
            status = bl_outputs(e);
            if (status != BL_OK) break;
            if (e->tick == s->next) status = visit(e, s);
            else s->window = s->window_count; /* the run was moved from outside */
            continue;
        }
        const bool propagates = s->tangent && s->tangent_every > 0;
        if (propagates && e->tick >= s->tangent_next) {
            status = bl_outputs(e);
            if (status != BL_OK) break;
            if (e->tick == s->tangent_next) status = bl_propagate_tangent(e, s);
            else s->tangent_every = 0;
            continue;
        }
        const int64_t left = ticks - *done;
        int64_t wanted = left;
        if (visits && s->next - e->tick < wanted) wanted = s->next - e->tick;
        if (propagates && s->tangent_next - e->tick < wanted) wanted = s->tangent_next - e->tick;
        int64_t ran = 0;
        if (wanted <= 0) break;
        status = bl_run(e, wanted, record, &ran);
        *done += ran;
        if (ran < wanted) break; /* the record is full */
    }
    return status;
}
