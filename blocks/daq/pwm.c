/* Pulse width modulation, out of a timer and into one. */
#include <math.h>

#include "blocks/core/kernel/kernel.h"

static double pwm_clip(double v, double low, double high) {
    return v > low ? (v < high ? v : high) : low; /* NaN becomes `low` */
}

/* PWMOutput. At the tick in which a period of the carrier begins the duty is taken over, in whole counts of the timer.
 * u: duty. y: level of the pin, between low and high. p: frequency, low, high, counts of a period (0: any duty).
 * i: whether y is the mean over the tick that begins, rather than the level at the tick; whether pulses are centered.
 * z: duty of the period. */
enum { PWM_FREQUENCY, PWM_LOW, PWM_HIGH, PWM_COUNTS };

static int pwm_output_check(const bl_block *b) {
    return b->u_count == 1 && b->y_count == 1 && b->u_width[0] == b->y_width[0] && b->p_count == 4 && b->i_count == 2;
}
static bl_sizes pwm_output_sizes(const bl_block *b) { return (bl_sizes){.memory = b->y_width[0]}; }
static int pwm_output_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = 0.0;
    return BL_OK;
}
/* The part of a period at t, from 0 to 1; rounding does not make it almost 1 where a period begins. */
static double pwm_phase(const bl_block *b, double t) {
    const double turns = t * b->p[PWM_FREQUENCY], phase = turns - floor(turns);
    return phase < 1.0 - 1e-9 && phase > 1e-9 ? phase : 0.0;
}
static double pwm_duty(const bl_block *b, double asked) {
    const double counts = b->p[PWM_COUNTS], duty = pwm_clip(asked, 0.0, 1.0);
    return counts >= 1.0 ? floor(duty * counts + 0.5) / counts : duty;
}
/* How much of the phases from a to b a pulse covers. */
static double pwm_overlap(double duty, int centered, double a, double b) {
    const double start = centered ? 0.5 - 0.5 * duty : 0.0, end = start + duty;
    return fmax(fmin(b, end) - fmax(a, start), 0.0);
}
static int pwm_output_output(bl_block *b, double t) {
    const int centered = b->i[1];
    const double phase = pwm_phase(b, t), span = b->dt * b->p[PWM_FREQUENCY], end = phase + span;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double next = pwm_duty(b, b->u[0][k]), duty = phase == 0.0 ? next : pwm_clip(b->z[k], 0.0, 1.0);
        double on;
        if (b->i[0]) {
            on = pwm_overlap(duty, centered, phase, fmin(end, 1.0));
            if (end > 1.0 + 1e-9) on += pwm_overlap(next, centered, 0.0, end - 1.0);
            on = pwm_clip(on / span, 0.0, 1.0);
        } else {
            const double start = centered ? 0.5 - 0.5 * duty : 0.0;
            on = phase >= start - 1e-9 && phase < start + duty - 1e-9;
        }
        b->y[0][k] = on == 1.0 ? b->p[PWM_HIGH] : b->p[PWM_LOW] + on * (b->p[PWM_HIGH] - b->p[PWM_LOW]);
    }
    return BL_OK;
}
static int pwm_output_update(bl_block *b, double t) {
    const double phase = pwm_phase(b, t);
    if (phase == 0.0 || phase + b->dt * b->p[PWM_FREQUENCY] > 1.0 + 1e-9)
        for (int32_t k = 0; k < b->z_count; k++) b->z[k] = pwm_duty(b, b->u[0][k]);
    return BL_OK;
}

/* PWMInput: duty and frequency of one signal, from rising edge to rising edge.
 * y: duty, frequency, whether they were measured. p: low, high, clock of the timer (0: none), timeout.
 * i: whether u is the mean over the tick that begins, so that edges have a place within it.
 * z: duty, frequency, valid, whether u was high, whether there was an edge, time of the last rising edge, time high
 * since then. */
enum { PWM_IN_LOW, PWM_IN_HIGH, PWM_IN_CLOCK, PWM_IN_TIMEOUT };
enum {
    PWM_IN_DUTY,
    PWM_IN_FREQUENCY,
    PWM_IN_VALID,
    PWM_IN_WAS_HIGH,
    PWM_IN_STARTED,
    PWM_IN_RISE,
    PWM_IN_ON,
    PWM_IN_MEMORY
};

static int pwm_input_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 3 || b->u_width[0] != 1 || b->p_count != 4 || b->i_count != 1) return 0;
    for (int port = 0; port < 3; port++)
        if (b->y_width[port] != 1) return 0;
    return 1;
}
static bl_sizes pwm_input_sizes(const bl_block *b) {
    (void)b;
    return (bl_sizes){.memory = PWM_IN_MEMORY};
}
static int pwm_input_init(bl_block *b, double t) {
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = 0.0;
    b->z[PWM_IN_WAS_HIGH] = 1.0; /* a high level at the start is not an edge */
    b->z[PWM_IN_RISE] = t;
    return BL_OK;
}
static int pwm_input_output(bl_block *b, double t) {
    (void)t;
    b->y[0][0] = b->z[PWM_IN_DUTY];
    b->y[1][0] = b->z[PWM_IN_FREQUENCY];
    b->y[2][0] = b->z[PWM_IN_VALID] != 0.0;
    return BL_OK;
}
/* A time as the timer has it. */
static double pwm_input_stamp(const bl_block *b, double time) {
    const double clock = b->p[PWM_IN_CLOCK];
    return clock > 0.0 ? floor(time * clock + 1e-6) / clock : time;
}
static void pwm_input_rise(bl_block *b, double edge) {
    const double period = pwm_input_stamp(b, edge) - pwm_input_stamp(b, b->z[PWM_IN_RISE]);
    if (b->z[PWM_IN_STARTED] != 0.0 && period > 0.0) {
        const double fall = b->z[PWM_IN_RISE] + b->z[PWM_IN_ON];
        const double on = pwm_input_stamp(b, fall) - pwm_input_stamp(b, b->z[PWM_IN_RISE]);
        b->z[PWM_IN_DUTY] = pwm_clip(on / period, 0.0, 1.0);
        b->z[PWM_IN_FREQUENCY] = 1.0 / period;
        b->z[PWM_IN_VALID] = 1.0;
    }
    b->z[PWM_IN_STARTED] = 1.0;
    b->z[PWM_IN_RISE] = edge;
    b->z[PWM_IN_ON] = 0.0;
}
static int pwm_input_update(bl_block *b, double t) {
    const double span = b->p[PWM_IN_HIGH] - b->p[PWM_IN_LOW];
    const double level = pwm_clip((b->u[0][0] - b->p[PWM_IN_LOW]) / span, 0.0, 1.0);
    /* A mean gives the fraction of the tick that was high; any nonzero fraction counts as high. A level is 0 or 1. */
    const double on = b->i[0] ? (level < 1e-9 ? 0.0 : level) : level >= 0.5;
    const int was_high = b->z[PWM_IN_WAS_HIGH] != 0.0;
    if (!was_high && on > 0.0) pwm_input_rise(b, t + (1.0 - on) * b->dt);
    b->z[PWM_IN_ON] += on * b->dt;
    if (t - b->z[PWM_IN_RISE] > b->p[PWM_IN_TIMEOUT]) {
        b->z[PWM_IN_DUTY] = on >= 0.5;
        b->z[PWM_IN_FREQUENCY] = b->z[PWM_IN_VALID] = b->z[PWM_IN_STARTED] = 0.0;
    }
    /* A mean between the two in a tick that follows a high one is a falling edge: low from then on. */
    b->z[PWM_IN_WAS_HIGH] = was_high ? on >= 1.0 - 1e-9 : on > 0.0;
    return BL_OK;
}

const bl_kernel bl_kernels_pwm[] = {
    {.name = "pwm_output",
     .check = pwm_output_check,
     .sizes = pwm_output_sizes,
     .init = pwm_output_init,
     .output = pwm_output_output,
     .update = pwm_output_update},
    {.name = "pwm_input",
     .check = pwm_input_check,
     .sizes = pwm_input_sizes,
     .init = pwm_input_init,
     .output = pwm_input_output,
     .update = pwm_input_update},
    {.name = 0},
};
