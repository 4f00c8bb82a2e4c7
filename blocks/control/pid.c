/* PID controller with a sample time T = dt. With e = r - y, of reference r and measurement y:
 *
 *   P = kp (b r - y)
 *   I+ = I + ki T e               backward;  I + ki T (e + e_last) / 2       Tustin
 *   D+ = (tf D + kd Δd) / (tf + T)           ((2 tf - T) D + 2 kd Δd) / (2 tf + T),  Δd = c Δr - Δy
 *   v = P + I+ + D+ + feedforward, or the manual value;  u = v within the rate limits, then within the limits
 *
 * The state contains the terms I and D, not the integral and the derivative, so that a change of gains is bumpless.
 * P has no memory; when its gains change, the difference is transferred to I.
 * Without integral action nothing is transferred to I: it would stay there forever.
 *
 * With a schedule the three gains come from lines between points of a table, at the place that a sixth input gives.
 *
 * p: see the enum, then the table: places, and the three gains at each. i: form, method, anti-windup, points. */
#include "blocks/core/kernel/kernel.h"
#include "blocks/core/kernel/table.h"

enum { PID_REFERENCE, PID_MEASUREMENT, PID_AUTO, PID_MANUAL, PID_FEEDFORWARD, PID_INPUTS, PID_SCHEDULE = PID_INPUTS };
enum { PID_U, PID_P, PID_I, PID_D, PID_SATURATED, PID_OUTPUTS };
BL_SHARED enum { PID_FORM, PID_METHOD, PID_WINDUP, PID_POINTS, PID_INTEGERS };
BL_SHARED enum { PID_PARALLEL, PID_STANDARD };
BL_SHARED enum { PID_BACKWARD, PID_TUSTIN };
BL_SHARED enum { PID_WINDS_UP, PID_CLAMPING, PID_BACK_CALCULATION };
enum {
    PID_GAIN,
    PID_INTEGRAL,
    PID_DERIVATIVE,
    PID_FILTER_TIME,
    PID_WEIGHT_B,
    PID_WEIGHT_C,
    PID_LOWER,
    PID_UPPER,
    PID_FALLING,
    PID_RISING,
    PID_TRACKING_TIME,
    PID_INITIAL,
    PID_PARAMETERS
};
enum { PID_STARTED, PID_LAST_I, PID_LAST_D, PID_LAST_R, PID_LAST_Y, PID_LAST_U, PID_LAST_KP, PID_LAST_B, PID_MEMORY };

enum { PID_GAINS = 3 };
typedef struct {
    double kp, ki, kd;
} pid_gains;

static int pid_check(const bl_block *b) {
    if (b->y_count != PID_OUTPUTS || b->i_count != PID_INTEGERS) return 0;
    const int64_t points = b->i[PID_POINTS];
    if (points < 0 || points == 1 || (points > 0 && b->i[PID_FORM] != PID_PARALLEL) ||
        b->u_count != PID_INPUTS + (points > 0))
        return 0;
    if (b->p_count != PID_PARAMETERS + (1 + PID_GAINS) * points) return 0;
    for (int32_t k = 0; k < b->u_count; k++)
        if (b->u_width[k] != 1) return 0;
    for (int32_t k = 0; k < PID_OUTPUTS; k++)
        if (b->y_width[k] != 1) return 0;
    return b->i[PID_FORM] >= PID_PARALLEL && b->i[PID_FORM] <= PID_STANDARD && b->i[PID_METHOD] >= PID_BACKWARD &&
           b->i[PID_METHOD] <= PID_TUSTIN && b->i[PID_WINDUP] >= PID_WINDS_UP &&
           b->i[PID_WINDUP] <= PID_BACK_CALCULATION;
}
static bl_sizes pid_sizes(const bl_block *b) {
    (void)b;
    return (bl_sizes){.memory = PID_MEMORY};
}

/* Gains of a schedule: linear interpolation, constant beyond the ends. */
static pid_gains pid_read_schedule(const bl_block *b) {
    const int32_t points = b->i[PID_POINTS];
    const double *places = b->p + PID_PARAMETERS, *kp = places + points, *ki = kp + points, *kd = ki + points;
    const double at = b->u[PID_SCHEDULE][0];
    const int32_t n = bl_table_find(places, points, at);
    const double part = (at - places[n]) / (places[n + 1] - places[n]);
    const double s = !(part > 0.0) ? 0.0 : part < 1.0 ? part : 1.0;
    return (pid_gains){kp[n] + s * (kp[n + 1] - kp[n]), ki[n] + s * (ki[n + 1] - ki[n]),
                       kd[n] + s * (kd[n + 1] - kd[n])};
}
static pid_gains pid_read_gains(const bl_block *b) {
    const double k = b->p[PID_GAIN], integral = b->p[PID_INTEGRAL], derivative = b->p[PID_DERIVATIVE];
    if (b->i[PID_POINTS] > 0) return pid_read_schedule(b);
    if (b->i[PID_FORM] == PID_PARALLEL) return (pid_gains){k, integral, derivative};
    return (pid_gains){k, k / integral, k * derivative};
}

/* Values that were set during a run. */
static int pid_rejects(const bl_block *b, double kd) {
    const double *p = b->p;
    if (b->i[PID_FORM] == PID_STANDARD && !(p[PID_INTEGRAL] > 0.0))
        return bl_log_error(b, "ti = %.9g s; it must be positive, and infinite for no integral action",
                            p[PID_INTEGRAL]);
    if (!(p[PID_LOWER] <= p[PID_UPPER]))
        return bl_log_error(b, "its limits are reversed: lower = %.9g, upper = %.9g", p[PID_LOWER], p[PID_UPPER]);
    if (!(p[PID_FALLING] >= 0.0 && p[PID_RISING] >= 0.0))
        return bl_log_error(b, "falling = %.9g, rising = %.9g; rates are 0 or positive", p[PID_FALLING], p[PID_RISING]);
    const double shortest = b->i[PID_METHOD] == PID_TUSTIN && kd != 0.0 ? 0.5 * b->dt : 0.0;
    if (!(p[PID_FILTER_TIME] >= shortest))
        return bl_log_error(b, "filter_time = %.9g s; with this method it must be at least %.9g s", p[PID_FILTER_TIME],
                            shortest);
    return BL_OK;
}

static double pid_clip(double v, double lower, double upper) { return v > upper ? upper : v < lower ? lower : v; }

static double pid_filter(const bl_block *b, double kd, double change) {
    const double tf = b->p[PID_FILTER_TIME], last = b->z[PID_LAST_D];
    if (b->z[PID_STARTED] == 0.0 || (kd == 0.0 && last == 0.0)) return 0.0;
    if (b->i[PID_METHOD] == PID_BACKWARD) return (tf * last + kd * change) / (tf + b->dt);
    return ((2.0 * tf - b->dt) * last + 2.0 * kd * change) / (2.0 * tf + b->dt);
}

static double pid_limit(const bl_block *b, double v) {
    const double *p = b->p, last = b->z[PID_LAST_U];
    if (b->z[PID_STARTED] != 0.0) v = pid_clip(v, last - p[PID_FALLING] * b->dt, last + p[PID_RISING] * b->dt);
    return pid_clip(v, p[PID_LOWER], p[PID_UPPER]);
}

/* Anti-windup: integral term after a step from `from` to `to` when the output v was limited to u. */
static double pid_wind(const bl_block *b, double from, double to, double v, double u) {
    const double excess = v - u;
    switch (b->i[PID_WINDUP]) {
        case PID_CLAMPING: /* no further than where v meets the limit, and never backwards */
            if (to > from && excess > 0.0) return to - excess > from ? to - excess : from;
            if (to < from && excess < 0.0) return to - excess < from ? to - excess : from;
            return to;
        case PID_BACK_CALCULATION:
            return to - excess * (b->p[PID_TRACKING_TIME] > b->dt ? b->dt / b->p[PID_TRACKING_TIME] : 1.0);
        default: return to;
    }
}

static int pid_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < PID_MEMORY; k++) b->z[k] = 0.0;
    b->z[PID_LAST_I] = b->p[PID_INITIAL];
    return BL_OK;
}
static int pid_output(bl_block *b, double t) {
    (void)t;
    const pid_gains gain = pid_read_gains(b);
    if (pid_rejects(b, gain.kd) != BL_OK) return BL_ERROR_BLOCK;
    const double r = b->u[PID_REFERENCE][0], y = b->u[PID_MEASUREMENT][0], ahead = b->u[PID_FEEDFORWARD][0];
    const double weight = b->p[PID_WEIGHT_B], *z = b->z;
    const double p = gain.kp * (weight * r - y);
    const double d = pid_filter(b, gain.kd, b->p[PID_WEIGHT_C] * (r - z[PID_LAST_R]) - (y - z[PID_LAST_Y]));

    double from = z[PID_LAST_I];
    if (z[PID_STARTED] != 0.0 && gain.ki != 0.0 && (gain.kp != z[PID_LAST_KP] || weight != z[PID_LAST_B]))
        from += z[PID_LAST_KP] * (z[PID_LAST_B] * r - y) - p;
    const double error = r - y, last_error = z[PID_LAST_R] - z[PID_LAST_Y];
    const double mean = b->i[PID_METHOD] == PID_TUSTIN ? 0.5 * (error + last_error) : error;
    const double to = from + gain.ki * b->dt * mean;

    const int automatic = b->u[PID_AUTO][0] != 0.0;
    const double v = automatic ? p + to + d + ahead : b->u[PID_MANUAL][0], u = pid_limit(b, v);
    b->y[PID_U][0] = u;
    b->y[PID_P][0] = p;
    b->y[PID_I][0] = automatic ? pid_wind(b, from, to, v, u) : gain.ki != 0.0 ? u - p - d - ahead : from;
    b->y[PID_D][0] = d;
    b->y[PID_SATURATED][0] = u != v;
    return BL_OK;
}
/* The outputs of this tick have already been computed. */
static int pid_update(bl_block *b, double t) {
    (void)t;
    b->z[PID_STARTED] = 1.0;
    b->z[PID_LAST_I] = b->y[PID_I][0];
    b->z[PID_LAST_D] = b->y[PID_D][0];
    b->z[PID_LAST_R] = b->u[PID_REFERENCE][0];
    b->z[PID_LAST_Y] = b->u[PID_MEASUREMENT][0];
    b->z[PID_LAST_U] = b->y[PID_U][0];
    b->z[PID_LAST_KP] = pid_read_gains(b).kp;
    b->z[PID_LAST_B] = b->p[PID_WEIGHT_B];
    return BL_OK;
}

const bl_kernel bl_kernels_pid[] = {
    {.name = "pid",
     .check = pid_check,
     .sizes = pid_sizes,
     .init = pid_init,
     .output = pid_output,
     .update = pid_update},
    {.name = 0},
};
