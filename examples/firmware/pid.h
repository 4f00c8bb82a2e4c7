/* The PID of biella.blocks in single precision: parallel form, backward differences, clamping. With e = r - y:
 *
 *   P = kp (b r - y)      I = I[n-1] + ki T e      D = (tf D[n-1] + kd (c Δr - Δy)) / (tf + T), 0 at the first sample
 *   v = P + I + D;  u is v within the limits, and I goes no further than where v meets the limit, nor backwards
 *
 * The operations are those of blocks/control/pid.c, in the same order: what differs is rounding. */
#ifndef PID_H
#define PID_H

#include <stdint.h>

typedef struct {
    float kp, ki, kd, filter_time, b, c, lower, upper, period;
} pid_gains;

typedef struct {
    float integral, derivative, reference, measurement;
    uint8_t started;
} pid_state; /* all 0 at the start */

static float pid_clamp(float from, float to, float excess) {
    const float kept = to - excess;
    if (to > from && excess > 0.0f) return kept > from ? kept : from;
    if (to < from && excess < 0.0f) return kept < from ? kept : from;
    return to;
}

static float pid_step(pid_state *s, const pid_gains *g, float r, float y) {
    const float p = g->kp * (g->b * r - y), from = s->integral, to = from + g->ki * g->period * (r - y);
    float d = 0.0f;
    if (s->started && (g->kd != 0.0f || s->derivative != 0.0f)) {
        const float change = g->c * (r - s->reference) - (y - s->measurement);
        d = (g->filter_time * s->derivative + g->kd * change) / (g->filter_time + g->period);
    }
    const float v = p + to + d, u = v > g->upper ? g->upper : v < g->lower ? g->lower : v;
    *s = (pid_state){pid_clamp(from, to, v - u), d, r, y, 1};
    return u;
}

#endif
