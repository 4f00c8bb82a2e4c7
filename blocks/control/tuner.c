/* RelayTuner: makes a loop oscillate by a relay, and takes gains from how it does (Åström and Hägglund 1984).
 *
 * Once `start` is true, y = bias + amplitude · relay, with the bias that `control` had then; else y = control. The relay
 * turns to +1 where the error r - m rises above the hysteresis, to -1 where it falls below minus it. A cycle is from one
 * turn upwards to the next. After as many cycles in a row as are wanted, of periods and amplitudes that agree:
 *
 *   Pu = mean period,  Ku = 4 amplitude / (π √(a² - hysteresis²)), a half the mean swing of m
 *
 * p: see the enum. i: cycles wanted. */
#include <math.h>

#include "blocks/core/kernel/constants.h"
#include "blocks/core/kernel/kernel.h"

enum { TUNER_REFERENCE, TUNER_MEASUREMENT, TUNER_START, TUNER_CONTROL, TUNER_INPUTS };
enum { TUNER_Y, TUNER_RUNNING, TUNER_DONE, TUNER_KU, TUNER_PU, TUNER_KP, TUNER_KI, TUNER_KD, TUNER_OUTPUTS };
enum {
    TUNER_AMPLITUDE,
    TUNER_HYSTERESIS,
    TUNER_TOLERANCE,
    TUNER_RULE_KP,
    TUNER_RULE_TI,
    TUNER_RULE_TD,
    TUNER_PARAMETERS
};
enum { TUNER_IDLE, TUNER_RUNS, TUNER_FINISHED };

/* State, as doubles in z. */
typedef struct {
    double period, amplitude;
} tuner_cycle;
typedef struct {
    double phase, was_started, bias, relay;
    double last_error, last_time;
    double turns, turned; /* turns upwards so far, and when the last was */
    double high, low;     /* of m since then */
    tuner_cycle last, sum;
    double agreed; /* cycles in the sum */
    double ku, pu;
} tuner_state;
enum { TUNER_MEMORY = sizeof(tuner_state) / sizeof(double) };

static int tuner_check(const bl_block *b) {
    if (b->u_count != TUNER_INPUTS || b->y_count != TUNER_OUTPUTS || b->p_count != TUNER_PARAMETERS) return 0;
    for (int32_t k = 0; k < TUNER_INPUTS; k++)
        if (b->u_width[k] != 1) return 0;
    for (int32_t k = 0; k < TUNER_OUTPUTS; k++)
        if (b->y_width[k] != 1) return 0;
    return b->i_count == 1 && b->i[0] >= 1;
}
static bl_sizes tuner_sizes(const bl_block *b) {
    (void)b;
    return (bl_sizes){.memory = TUNER_MEMORY};
}
static int tuner_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < TUNER_MEMORY; k++) b->z[k] = 0.0;
    return BL_OK;
}

static double tuner_error(const bl_block *b) { return b->u[TUNER_REFERENCE][0] - b->u[TUNER_MEASUREMENT][0]; }

/* The state as this sample finds it: begun, ended, or turned. */
static tuner_state tuner_decide(const bl_block *b) {
    tuner_state s = *(const tuner_state *)b->z;
    const double error = tuner_error(b), hysteresis = b->p[TUNER_HYSTERESIS];
    const int started = b->u[TUNER_START][0] != 0.0;
    if (started && s.was_started == 0.0) {
        s = (tuner_state){.phase = TUNER_RUNS, .bias = b->u[TUNER_CONTROL][0], .relay = error >= 0.0 ? 1.0 : -1.0};
    } else if (!started && s.phase == TUNER_RUNS) {
        s.phase = TUNER_IDLE;
    } else if (s.phase == TUNER_RUNS) {
        if (error > hysteresis) s.relay = 1.0;
        else if (error < -hysteresis) s.relay = -1.0;
    }
    return s;
}
static int tuner_output(bl_block *b, double t) {
    (void)t;
    const tuner_state s = tuner_decide(b);
    const double *p = b->p, kp = p[TUNER_RULE_KP] * s.ku, ti = p[TUNER_RULE_TI] * s.pu;
    const int runs = s.phase == TUNER_RUNS;
    b->y[TUNER_Y][0] = runs ? s.bias + p[TUNER_AMPLITUDE] * s.relay : b->u[TUNER_CONTROL][0];
    b->y[TUNER_RUNNING][0] = runs;
    b->y[TUNER_DONE][0] = s.phase == TUNER_FINISHED;
    b->y[TUNER_KU][0] = s.ku;
    b->y[TUNER_PU][0] = s.pu;
    b->y[TUNER_KP][0] = kp;
    b->y[TUNER_KI][0] = ti > 0.0 ? kp / ti : 0.0;
    b->y[TUNER_KD][0] = kp * p[TUNER_RULE_TD] * s.pu;
    return BL_OK;
}

static int tuner_agrees(double a, double b, double tolerance) { return fabs(a - b) <= tolerance * fabs(b); }

/* A cycle has ended. */
static void tuner_judge(const bl_block *b, tuner_state *s, tuner_cycle cycle) {
    const double tolerance = b->p[TUNER_TOLERANCE], hysteresis = b->p[TUNER_HYSTERESIS];
    const int alike = tuner_agrees(cycle.period, s->last.period, tolerance) &&
                      tuner_agrees(cycle.amplitude, s->last.amplitude, tolerance);
    if (!alike) {
        s->sum = (tuner_cycle){0.0, 0.0};
        s->agreed = 0.0;
    }
    s->last = cycle;
    s->sum.period += cycle.period;
    s->sum.amplitude += cycle.amplitude;
    s->agreed += 1.0;
    if (!(s->agreed >= (double)b->i[0])) return;
    const double a = s->sum.amplitude / s->agreed, square = a * a - hysteresis * hysteresis;
    s->pu = s->sum.period / s->agreed;
    s->ku = 4.0 * b->p[TUNER_AMPLITUDE] / (BL_PI * sqrt(square > 0.0 ? square : a * a));
    s->phase = TUNER_FINISHED;
}
/* When the error passed the hysteresis, on the line from the last sample to this one. */
static double tuner_crossing(const bl_block *b, const tuner_state *s, double t, double error) {
    const double part = (error - b->p[TUNER_HYSTERESIS]) / (error - s->last_error);
    return part > 0.0 && part < 1.0 ? t - part * (t - s->last_time) : t;
}
static int tuner_update(bl_block *b, double t) {
    const tuner_state *old = (const tuner_state *)b->z;
    const double m = b->u[TUNER_MEASUREMENT][0], error = tuner_error(b);
    tuner_state s = tuner_decide(b);
    if (s.phase == TUNER_RUNS && old->phase == TUNER_RUNS && s.relay > old->relay) {
        const double turned = tuner_crossing(b, &s, t, error);
        /* The interval before the first switch is not a cycle. */
        if (s.turns > 0.0) tuner_judge(b, &s, (tuner_cycle){turned - s.turned, 0.5 * (s.high - s.low)});
        s.turned = turned;
        s.turns += 1.0;
        s.high = s.low = m;
    }
    if (m > s.high) s.high = m;
    if (m < s.low) s.low = m;
    s.last_error = error;
    s.last_time = t;
    s.was_started = b->u[TUNER_START][0] != 0.0;
    *(tuner_state *)b->z = s;
    return BL_OK;
}

const bl_kernel bl_kernels_tuner[] = {
    {.name = "relay_tuner",
     .check = tuner_check,
     .sizes = tuner_sizes,
     .init = tuner_init,
     .output = tuner_output,
     .update = tuner_update},
    {.name = 0},
};
