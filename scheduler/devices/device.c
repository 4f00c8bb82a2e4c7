/* What all devices have in common: scaling, limits, ages, loss and return, safe values. */
#include "scheduler/devices/device.h"

#include "scheduler/devices/wire/safe_line.h"
#include "scheduler/realtime/loop/clock.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_DELAY = 1 << 30 }; /* in ticks; the order of sequence numbers further apart is ambiguous */

static const char *name_errno(int error) {
    switch (error) {
        case EIO: return "it was unplugged, or its other end closed (EIO)";
        case ENXIO: return "it was unplugged (ENXIO)";
        case ENODEV: return "it was unplugged (ENODEV)";
        case EPIPE: return "its other end closed (EPIPE)";
        default: return NULL;
    }
}

bl_device *bl_device_open(const bl_driver *driver, void *state, const char *name, int32_t in_count, int32_t out_count) {
    if (in_count < 0 || out_count < 0 || in_count > BL_MAX_CHANNELS || out_count > BL_MAX_CHANNELS) return NULL;
    bl_device *d = calloc(1, sizeof *d);
    double *raw = calloc((size_t)(in_count + 2 * out_count) + 1, sizeof *raw);
    bl_channel *channels = calloc((size_t)(in_count + out_count) + 1, sizeof *channels);
    if (!d || !raw || !channels) {
        free(d);
        free(raw);
        free(channels);
        return NULL;
    }
    for (int32_t k = 0; k < in_count + out_count; k++)
        channels[k] = (bl_channel){.slot = -1, .scale = 1.0, .low = -INFINITY, .high = INFINITY};
    d->driver = driver;
    d->state = state;
    snprintf(d->name, sizeof d->name, "%s", name ? name : "");
    d->ins = channels;
    d->outs = channels + in_count;
    d->in_count = in_count;
    d->out_count = out_count;
    d->received = raw;
    d->sending = raw + in_count;
    d->safe = d->sending + out_count;
    d->age_slot = d->alive_slot = d->delay_slot = -1;
    d->last_tick = d->last_time = d->first_time = -1;
    atomic_init(&d->heard, -1);
    return d;
}

void bl_device_close(bl_device *d) {
    if (!d) return;
    if (d->driver->close) d->driver->close(d);
    free(d->received);
    free(d->ins);
    free(d);
}

static double to_raw(const bl_channel *c, double value) { return (value - c->offset) / c->scale; }
static double to_value(const bl_channel *c, double raw) { return c->scale * raw + c->offset; }

static int fail_channel(bl_device *d, const bl_channel *c, const char *reason) {
    snprintf(d->why, sizeof d->why, "device `%s`, channel `%.*s`: %s", d->name, (int)sizeof c->name, c->name, reason);
    return BL_ERROR_ARGUMENT;
}

static int check_channel(bl_device *d, const bl_channel *c) {
    if (c->scale == 0.0 || !isfinite(c->scale)) return fail_channel(d, c, "the scale must be a number other than 0");
    if (!isfinite(c->offset)) return fail_channel(d, c, "the offset must be finite");
    if (!(c->low <= c->high)) return fail_channel(d, c, "the lower limit must not be above the upper one");
    if (!(c->safe >= c->low && c->safe <= c->high) || !isfinite(c->safe))
        return fail_channel(d, c, "the safe value must be finite and lie within the limits");
    if (!(fabs(to_raw(c, c->safe)) <= (double)FLT_MAX))
        return fail_channel(d, c, "the scaled safe value exceeds the range of the wire format");
    if (c->slot < -1) return fail_channel(d, c, "it is not connected to a value");
    return BL_OK;
}

int bl_device_set_channels(bl_device *d, const bl_channel *ins, const bl_channel *outs) {
    for (int32_t k = 0; k < d->in_count; k++)
        if (check_channel(d, &ins[k]) != BL_OK) return BL_ERROR_ARGUMENT;
    for (int32_t k = 0; k < d->out_count; k++)
        if (check_channel(d, &outs[k]) != BL_OK) return BL_ERROR_ARGUMENT;
    if (d->in_count) memcpy(d->ins, ins, (size_t)d->in_count * sizeof *ins);
    if (d->out_count) memcpy(d->outs, outs, (size_t)d->out_count * sizeof *outs);
    for (int32_t k = 0; k < d->in_count + d->out_count; k++) d->ins[k].name[sizeof d->ins[k].name - 1] = '\0';
    for (int32_t k = 0; k < d->out_count; k++) d->sending[k] = d->safe[k] = to_raw(&outs[k], outs[k].safe);
    return BL_OK;
}

int bl_device_set_loss(bl_device *d, int64_t timeout, int32_t on_loss) {
    if (timeout < 0 || on_loss < BL_LOSS_STOP || on_loss > BL_LOSS_SAFE) return BL_ERROR_ARGUMENT;
    d->timeout = timeout;
    d->on_loss = on_loss;
    return BL_OK;
}

void bl_device_set_slots(bl_device *d, int64_t age_slot, int64_t alive_slot, int64_t delay_slot) {
    d->age_slot = age_slot;
    d->alive_slot = alive_slot;
    d->delay_slot = delay_slot;
}

static int end_run(bl_device *d, const bl_channel *c, double value, double limit, const char *direction) {
    snprintf(d->why, sizeof d->why, "device `%s`, channel `%s` (%s): %.9g exceeds its limit %.9g", d->name, c->name,
             direction, value, limit);
    return BL_ERROR_BLOCK;
}

/* A value within float32 rounding of a limit is at the limit: a board that saturates at 0.3 sends 0.30000001. */
static bool is_at(const bl_channel *c, double value, double limit) {
    return fabs(to_raw(c, value) - to_raw(c, limit)) <= (double)FLT_EPSILON * fabs(to_raw(c, limit));
}

/* Holds a finite value to the limits of its channel. */
static int hold_to_limits(bl_device *d, const bl_channel *c, double *value, const char *direction) {
    if (*value >= c->low && *value <= c->high) return BL_OK;
    const double limit = *value < c->low ? c->low : c->high;
    if (!is_at(c, *value, limit)) {
        bl_add_count(&d->counts.violations, 1);
        if (!c->saturates) return end_run(d, c, *value, limit, direction);
    }
    *value = limit;
    return BL_OK;
}

/* A driver rejects non-finite values, but scaling can overflow. */
static bool all_finite(const bl_device *d) {
    for (int32_t k = 0; k < d->in_count; k++)
        if (!isfinite(to_value(&d->ins[k], d->received[k]))) return false;
    return true;
}

/* All values of a frame enter, or none. */
static int enter_frame(bl_device *d, bl_enter enter, void *context) {
    for (int32_t k = 0; k < d->in_count; k++) {
        double value = to_value(&d->ins[k], d->received[k]);
        const int status = hold_to_limits(d, &d->ins[k], &value, "from it");
        if (status != BL_OK) return status;
    }
    for (int32_t k = 0; k < d->in_count; k++) {
        const bl_channel *c = &d->ins[k];
        if (c->slot >= 0) enter(context, c->slot, fmin(fmax(to_value(c, d->received[k]), c->low), c->high));
    }
    return BL_OK;
}

static void enter_safe_values(const bl_device *d, bl_enter enter, void *context) {
    for (int32_t k = 0; k < d->in_count; k++)
        if (d->ins[k].slot >= 0) enter(context, d->ins[k].slot, d->ins[k].safe);
}

static void note_standing(bl_device *d) {
    const int standing = d->gone    ? BL_STANDING_DISCONNECTED
                         : d->lost  ? BL_STANDING_LOST
                         : d->alive ? BL_STANDING_CONNECTED
                                    : BL_STANDING_WAITING;
    atomic_store_explicit(&d->standing, standing, memory_order_relaxed);
}

static void lose(bl_device *d) {
    if (!d->lost) bl_add_count(&d->counts.losses, 1);
    d->lost = true;
    d->alive = false;
}

static void lose_for_good(bl_device *d, int error) {
    const char *words = d->words[0] ? d->words : name_errno(error);
    d->gone = true;
    bl_safe_line_publish(d);
    lose(d);
    snprintf(d->why, sizeof d->why, "device `%s` is disconnected: %s", d->name, words ? words : strerror(error));
    d->words[0] = '\0';
    note_standing(d);
}

static void find_again(bl_device *d) {
    if (d->lost) bl_add_count(&d->counts.returns, 1);
    d->lost = false;
}

/* A device without inputs sends no frames: its reopening counts as its recovery. */
static void reopen(bl_device *d) {
    if (!d->driver->reopen || d->driver->reopen(d) != 0) return;
    d->gone = d->is_safe = false;
    atomic_store_explicit(&d->confirmed, 0, memory_order_relaxed);
    d->openings++;
    bl_safe_line_publish(d);
    if (d->in_count == 0 && d->timeout == 0) find_again(d);
}

/* Safe values are confirmed by the echo of the first frame of them or of a later one. */
static void note_echo(bl_device *d) {
    if (d->is_safe && d->echo != 0 && d->echo - d->safe_from <= d->last_sent - d->safe_from)
        atomic_store_explicit(&d->confirmed, 1, memory_order_relaxed);
}

static int receive(bl_device *d, int64_t now) {
    if (d->gone) reopen(d);
    if (d->gone) return 0;
    const bool was_tripped = d->tripped;
    const uint32_t sessions = d->sessions;
    const int accepted = d->driver->receive(d, now);
    if (d->sessions != sessions) bl_safe_line_publish(d); /* the guard has the keys before the first frame needs them */
    if (accepted < 0) {
        lose_for_good(d, -accepted);
        return 0;
    }
    if (accepted > 0 && !all_finite(d)) {
        bl_add_count(&d->counts.corrupt, accepted);
        return 0;
    }
    bl_add_count(&d->counts.frames, accepted);
    if (accepted > 0) atomic_store_explicit(&d->heard, now, memory_order_relaxed);
    note_echo(d);
    if (d->tripped && !was_tripped) bl_add_count(&d->counts.trips, 1);
    return accepted;
}

static void note_frame(bl_device *d, int64_t tick, int64_t now) {
    find_again(d);
    d->alive = true;
    d->last_tick = tick;
    d->last_time = now;
    d->excused = 0;
}

/* With BL_LOSS_STOP a loss ends the run, also at every further try. */
static int judge_loss(const bl_device *d) { return d->lost && d->on_loss == BL_LOSS_STOP ? BL_ERROR_BLOCK : BL_OK; }

static void judge_silence(bl_device *d, int64_t now) {
    const int64_t silence = now - (d->last_time >= 0 ? d->last_time : d->first_time);
    if (d->lost || d->timeout == 0 || silence - d->excused <= d->timeout || (d->answers && d->last_time < 0)) return;
    lose(d);
    const int length = snprintf(
        d->why, sizeof d->why,
        "device `%s` is lost: no frame %s %.3g s (timeout %.3g s; rejected so far: %lld corrupt, %lld stale)", d->name,
        d->last_time >= 0 ? "for" : "since the start,", (double)silence * 1e-9, (double)d->timeout * 1e-9,
        (long long)bl_counted(&d->counts.corrupt), (long long)bl_counted(&d->counts.stale));
    const char *words = d->words[0] ? d->words
                        : bl_counted(&d->counts.unauthenticated) > 0
                            ? "frames have come without a valid tag; is its key the same?"
                            : "";
    if (words[0] && length >= 0 && (size_t)length < sizeof d->why)
        snprintf(d->why + length, sizeof d->why - (size_t)length, ": %s", words);
}

/* The echo identifies the tick that the device has answered, unless frames without a tick came after it. */
static void enter_delay(const bl_device *d, int64_t tick, bl_enter enter, void *context) {
    const uint32_t ticks = (uint32_t)tick + 1 + d->shift - d->echo;
    if (d->echo == 0 || !d->has_sent || d->last_sent - d->echo > INT32_MAX || d->echo - d->shift_from > INT32_MAX)
        return;
    enter(context, d->delay_slot, (double)ticks);
}

void bl_device_excuse(bl_device *d, int64_t now) {
    const int64_t away = now - d->last_look;
    if (d->first_time >= 0 && away > d->timeout) d->excused += away - d->timeout / 2;
    d->last_look = now;
}

int bl_device_take(bl_device *d, int64_t tick, int64_t now, bl_enter enter, void *context) {
    int status = BL_OK;
    if (d->first_time < 0) d->first_time = now;
    if (receive(d, now) > 0) {
        status = enter_frame(d, enter, context);
        note_frame(d, tick, now);
        if (d->delay_slot >= 0) enter_delay(d, tick, enter, context);
    } else {
        judge_silence(d, now);
        status = judge_loss(d);
        if (d->lost && d->on_loss == BL_LOSS_SAFE) enter_safe_values(d, enter, context);
    }
    note_standing(d);
    if (d->age_slot >= 0) enter(context, d->age_slot, (double)(tick - d->last_tick));
    if (d->alive_slot >= 0) enter(context, d->alive_slot, d->alive ? 1.0 : 0.0);
    return status;
}

/* Larger than all sequence numbers sent before: the peer drops older frames. */
static uint32_t next_sequence(bl_device *d, int64_t tick) {
    const uint32_t wanted = (uint32_t)tick + 1 + d->shift, next = d->last_sent + 1;
    if (!d->has_sent || wanted - next <= INT32_MAX) {
        if (wanted - d->shift_from > LONGEST_DELAY) d->shift_from = wanted - LONGEST_DELAY;
        return wanted;
    }
    d->shift += next - wanted;
    d->shift_from = next;
    return next;
}

static void note_sent(bl_device *d, int flags) {
    if (!(flags & BL_SEND_SAFE)) {
        d->is_safe = false;
        atomic_store_explicit(&d->confirmed, 0, memory_order_relaxed);
    } else if (!d->is_safe) {
        d->is_safe = true;
        d->safe_from = d->last_sent;
    }
}

static int send_frame(bl_device *d, int64_t tick, int flags) {
    if (d->gone) {
        bl_add_count(&d->counts.dropped, 1);
        return -EAGAIN;
    }
    bl_safe_line_follow(d);
    const uint32_t sequence = next_sequence(d, tick);
    if (!(flags & BL_SEND_SAFE) && bl_safe_line_is_tripped(d)) {
        bl_add_count(&d->counts.dropped, 1);
        return -EAGAIN;
    }
    const int error = d->driver->send(d, sequence, flags);
    if (error == 0) {
        bl_add_count(&d->counts.sent, 1);
        d->has_sent = true;
        d->last_sent = sequence;
        note_sent(d, flags);
        bl_safe_line_publish(d);
    } else {
        bl_add_count(&d->counts.dropped, 1);
        if (error != -EAGAIN && error != -ERANGE) lose_for_good(d, -error);
    }
    return error;
}

/* Which value makes a frame impossible; of those that are finite, it is the one that float32 cannot hold. */
static int fail_value(bl_device *d, const bl_channel *c, double value) {
    snprintf(d->why, sizeof d->why, "device `%s`, channel `%s` (to it): %.9g %s", d->name, c->name, value,
             isfinite(value) ? "exceeds the range of the wire format" : "is not a finite number");
    return BL_ERROR_BLOCK;
}

static int fail_largest(bl_device *d) {
    int32_t largest = 0;
    for (int32_t k = 1; k < d->out_count; k++)
        if (fabs(d->sending[k]) > fabs(d->sending[largest])) largest = k;
    const bl_channel *c = &d->outs[largest];
    return fail_value(d, c, to_value(c, d->sending[largest]));
}

static void send_safe_values(bl_device *d, int64_t tick, int flags) {
    if (d->out_count) memcpy(d->sending, d->safe, (size_t)d->out_count * sizeof *d->safe);
    if (d->driver->send) send_frame(d, tick, flags);
}

int bl_device_give(bl_device *d, int64_t tick, const double *values) {
    for (int32_t k = 0; k < d->out_count; k++) {
        const bl_channel *c = &d->outs[k];
        double value = c->slot >= 0 ? values[c->slot] : c->safe;
        if (!isfinite(value)) return fail_value(d, c, value);
        const int status = hold_to_limits(d, c, &value, "to it");
        if (status != BL_OK) return status;
        d->sending[k] = to_raw(c, value);
        if (!isfinite(d->sending[k])) return fail_value(d, c, value);
    }
    if (d->lost || d->safe_sent) {
        bl_device_make_safe(d, tick);
        return BL_OK;
    }
    if (d->driver->send && send_frame(d, tick, 0) == -ERANGE) return fail_largest(d);
    return d->gone ? judge_loss(d) : BL_OK;
}

void bl_device_make_safe(bl_device *d, int64_t tick) {
    send_safe_values(d, tick, BL_SEND_SAFE | (d->lost ? BL_SEND_TRIPPED : 0) | (d->is_safe ? BL_SEND_AGAIN : 0));
}

void bl_device_listen(bl_device *d, int64_t now) { (void)receive(d, now); }

int bl_device_is_settled(const bl_device *d) {
    return d->out_count == 0 || d->gone || d->lost || bl_device_is_confirmed(d) || (d->is_safe && d->echo == 0);
}

int bl_device_is_confirmed(const bl_device *d) { return atomic_load_explicit(&d->confirmed, memory_order_relaxed); }

int bl_device_acquire(bl_device *d) { return atomic_exchange_explicit(&d->acquired, 1, memory_order_acquire) == 0; }
void bl_device_release(bl_device *d) { atomic_store_explicit(&d->acquired, 0, memory_order_release); }

void bl_device_get_counts(const bl_device *d, bl_device_counts *counts) {
    const atomic_llong *from = (const atomic_llong *)&d->counts; /* the structure has nothing but counters */
    atomic_llong *to = (atomic_llong *)counts;
    _Static_assert(sizeof *counts % sizeof *to == 0, "counters only");
    for (size_t k = 0; k < sizeof *counts / sizeof *to; k++)
        atomic_store_explicit(&to[k], bl_counted(&from[k]), memory_order_relaxed);
}
const char *bl_device_why(const bl_device *d) { return d->why; }
int bl_device_is_alive(const bl_device *d) { return d->alive; }

int bl_device_get_standing(const bl_device *d, int64_t now, int64_t *age) {
    const int64_t heard = bl_counted(&d->heard);
    if (now < 0) now = bl_clock_now();
    *age = heard < 0 ? -1 : now > heard ? now - heard : 0;
    return atomic_load_explicit(&d->standing, memory_order_relaxed);
}
