/* Clocks: rates of the plan whose ticks an importing tool activates.
 *
 * The engine runs sampled blocks at their ticks in any case. With clocks, the tool states that it has set the inputs of a tick: what
 * is sampled then is what the same run samples without clocks. */
#include <math.h>

#include "scheduler/engine/engine.h"

/* Resolutions of more than this are not of a step that anyone has written down. */
static const double LARGEST_RESOLUTION = 1e15;

int32_t bl_clock_count(const bl_engine *e) { return e->clock_count; }
int64_t bl_clock_period(const bl_engine *e, int32_t clock) { return e->rates[e->clocks[clock]].period; }
int64_t bl_clock_shift(const bl_engine *e, int32_t clock) { return e->rates[e->clocks[clock]].offset; }

/* Convergents of the continued fraction of the step, until one is the step. */
int bl_step_fraction(const bl_engine *e, uint64_t *numerator, uint64_t *denominator) {
    double rest = e->step, p0 = 0.0, q0 = 1.0, p1 = 1.0, q1 = 0.0;
    while (isfinite(rest)) {
        const double whole = floor(rest), p = whole * p1 + p0, q = whole * q1 + q0;
        if (!(p <= LARGEST_RESOLUTION) || !(q <= LARGEST_RESOLUTION)) return 0;
        if (p / q == e->step) {
            *numerator = (uint64_t)p;
            *denominator = (uint64_t)q;
            return 1;
        }
        p0 = p1, q0 = q1, p1 = p, q1 = q;
        rest = 1.0 / (rest - whole);
    }
    return 0;
}

static int hits_clock(const bl_engine *e, int32_t clock) {
    const bl_rate *rate = &e->rates[e->clocks[clock]];
    return e->tick >= rate->offset && (e->tick - rate->offset) % rate->period == 0;
}

int bl_clock_is_due(const bl_engine *e, int32_t clock) {
    const int is_open = e->ode && bl_ode_has_started(e) ? bl_ode_is_at_tick(e) : e->offset == 0.0 && !e->hits_taken;
    return is_open && hits_clock(e, clock);
}

double bl_clock_next(const bl_engine *e, int32_t clock) {
    const bl_rate *rate = &e->rates[e->clocks[clock]];
    const int64_t since = e->tick - rate->offset;
    const int64_t wait = since < 0 ? -since : rate->period - since % rate->period;
    return e->start + (double)(e->tick + wait) * e->step;
}

double bl_next_tick_time(const bl_engine *e) { return e->start + (double)(e->tick + 1) * e->step; }
