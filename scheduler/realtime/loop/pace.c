/* Real-time runs. A tick:
 *
 *   wait for its deadline, or for the frame of the device that is the clock → input latch: write values from devices,
 *   commands and timing to parameters and to the input log → outputs → row → values to the devices → commit → overrun check
 *
 * Deadlines are counted from one instant: lateness does not accumulate. Safe values are sent first when the run ends.
 * The watchdog (scheduler/realtime/safety/watchdog.h) sends them while this thread cannot. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/realtime/loop/clock.h"
#include "scheduler/engine/engine.h"
#include "scheduler/realtime/loop/realtime.h"
#include "scheduler/realtime/safety/guard_page.h"
#include "scheduler/realtime/safety/signals.h"
#include "scheduler/realtime/safety/watchdog.h"

enum { SAFE_ROUNDS = 3 };      /* at least: a frame may be lost, and not every device echoes */
enum { KEPT_ENTRIES = BL_MAX_CHANNELS + 3 }; /* entries of a frame that belongs to a later tick */
enum { LARGEST_JUMP = 65536 }; /* of a device's sequence numbers; a larger jump is a restart of the device */
static const int64_t SAFE_PAUSE = 1000000, LATER_SAFE_PAUSE = 5000000, /* ns between safe values at the end */
    SAFE_LIMIT = 250000000, /* ns that they are repeated for devices that do not echo them */
    PATIENCE = 20000000;    /* ns between checks of the flags */
static const int64_t LAST_PATIENCE = 500000000; /* ns that a canceled run without deadlines waits for the recorder */

/* State of a run in progress. */
typedef struct {
    bl_engine *e;
    bl_pace *p;
    bl_watchdog *watchdog;   /* may be NULL */
    bool armed;              /* live values were sent: from then on stalls count */
    int openings; /* of all devices, when the watchdog was last woken to pass their descriptors to the guard */
    int64_t suspended; /* see bl_clock_suspended; when the run began or was armed again */
    double factor; /* see bl_pace; that of the present deadlines */
    double period; /* ns between deadlines; 0: there are none */
    bool single; /* the next tick is one that a paused run was asked for */
    int stepped; /* of the ticks that it was asked for, those made or void */
    int64_t origin, number; /* deadline `number` is that of the next tick: origin + number · period */
    int64_t time; /* when the tick began */
    int64_t scripted; /* time according to the script */
    int64_t started; /* ticks */
    int64_t lateness, execution, in_a_row;
    int64_t replayed;
    int64_t next_state; /* first tick after which a state is saved again */
    int64_t row_tick; /* of the last row */
    bl_device *pacer; /* NULL, unless a device is the clock */
    bool in_step; /* whether the sequence of its last frame is known */
    uint32_t sequence, life;
    int64_t held; /* ticks to run before the one that its newest frame belongs to */
    bl_entry kept[KEPT_ENTRIES]; /* entries of that frame */
    int64_t kept_count, kept_for; /* how many, and the tick; -1: none */
    int32_t from; /* origin of the present entries */
    int64_t last_gap[3]; /* for each kind, the list index of the gap that may be extended; -1: none */
    int64_t give_up; /* when a canceled run no longer waits for the recorder; 0: not canceled yet */
} bl_run_context;

static BL_FORMAT(3) void finish(bl_run_context *c, int32_t end, const char *format, ...) {
    if (c->p->end != BL_END_NONE) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->p->why, sizeof c->p->why, format, arguments);
    va_end(arguments);
    c->p->end = end;
}

/* Gaps that follow each other tick by tick are one. */
static void note_gap(bl_run_context *c, int32_t kind, int64_t first, int64_t last) {
    bl_pace *p = c->p;
    const int64_t before = c->last_gap[kind];
    if (before >= 0 && first <= bl_counted(&p->gaps[before].last) + (kind == BL_GAP_ROWS ? p->every : 1)) {
        atomic_store_explicit(&p->gaps[before].last, last, memory_order_relaxed);
        return;
    }
    const int64_t number = bl_counted(&p->gap_count);
    if (number < BL_NOTED) {
        p->gaps[number] = (bl_gap){first, last, kind};
        c->last_gap[kind] = number;
    }
    bl_add_count(&p->gap_count, 1);
}

/* Whether the next tick is one that is repeated from the log, before the run is live. */
static bool is_repeating(const bl_run_context *c) { return c->e->tick < c->p->replay_end; }

static bool has_deadlines(const bl_run_context *c) {
    return (c->p->clock == BL_CLOCK_WALL || c->p->clock == BL_CLOCK_SCRIPT) && c->period > 0.0;
}

/* Without deadlines there is time to wait for the recorder; a canceled run waits once more for a while, so that its end is recorded. */
static bool push(bl_run_context *c, bl_pipe *pipe, const void *record) {
    while (!bl_pipe_push(pipe, record, 1)) {
        if (has_deadlines(c) || c->pacer) return false;
        const int64_t now = bl_clock_now();
        if (c->give_up == 0 && atomic_load_explicit(&c->p->cancel, memory_order_relaxed))
            c->give_up = now + LAST_PATIENCE;
        if (c->give_up != 0 && now >= c->give_up) return false;
        bl_clock_sleep_until(now + 100000);
    }
    return true;
}

/* --- The input latch --- */

static void write_input_log(bl_run_context *c, int64_t slot, double value, int32_t kind, int32_t from) {
    if (!c->p->input_log) return;
    const bl_entry entry = {c->e->tick, slot, value, kind, from};
    if (push(c, c->p->input_log, &entry)) return;
    bl_add_count(&c->p->entries_lost, 1);
    note_gap(c, BL_GAP_INPUT_LOG, c->e->tick, c->e->tick);
}

static void set_value(bl_run_context *c, int64_t slot, double value, int32_t from) {
    bl_engine *e = c->e;
    if (slot < 0 || slot >= e->layout.parameters) {
        bl_add_count(&c->p->entries_rejected, 1);
        return;
    }
    if (memcmp(&e->values[slot], &value, sizeof value) == 0) return;
    e->values[slot] = value;
    /* Blocks computed once may depend on any parameter except those of blocks that represent external inputs. */
    if (from == BL_FROM_LIVE) bl_touch(e);
    else bl_touch_inputs(e);
    write_input_log(c, slot, value, BL_ENTER_SET, from);
}

static void enter_entry(bl_run_context *c, const bl_entry *entry) {
    if (entry->kind == BL_ENTER_SET) {
        set_value(c, entry->slot, entry->value, entry->from);
        return;
    }
    if (entry->kind == BL_ENTER_OVERRIDE && bl_probe_override(c->e, entry->slot, entry->value) != BL_OK) {
        bl_add_count(&c->p->entries_rejected, 1);
        return;
    }
    if (entry->kind == BL_ENTER_RELEASE) bl_probe_release(c->e, entry->slot);
    write_input_log(c, entry->slot, entry->value, entry->kind, entry->from);
}

static void enter_from_device(void *context, int64_t slot, double value) {
    bl_run_context *c = context;
    set_value(c, slot, value, c->from);
}

static void keep_from_device(void *context, int64_t slot, double value) {
    bl_run_context *c = context;
    if (c->kept_count < KEPT_ENTRIES) c->kept[c->kept_count++] = (bl_entry){0, slot, value, BL_ENTER_SET, c->from};
    else bl_add_count(&c->p->entries_rejected, 1);
}

static void enter_kept(bl_run_context *c) {
    for (int64_t i = 0; i < c->kept_count; i++) set_value(c, c->kept[i].slot, c->kept[i].value, c->kept[i].from);
    c->kept_count = 0;
}

/* Of a device that this thread has acquired. */
static void take_acquired(bl_run_context *c, int32_t number, bl_enter enter) {
    bl_device *d = c->p->devices[number];
    c->from = number;
    bl_device_excuse(d, c->time);
    if (bl_device_take(d, c->e->tick, c->time, enter, c) == BL_OK) return;
    c->p->lost_device = number;
    finish(c, BL_END_DEVICE, "%s", d->why);
}

static void take_device(bl_run_context *c, int32_t number, bl_enter enter) {
    if (!bl_device_acquire(c->p->devices[number])) return; /* the watchdog has: the run is latched */
    take_acquired(c, number, enter);
    bl_device_release(c->p->devices[number]);
}

/* What was pushed by now: all of it, so that changes that belong together are made together. */
static void take_commands(bl_run_context *c) {
    if (!c->p->commands) return;
    const int64_t waiting = bl_pipe_waiting(c->p->commands);
    int64_t taken = 0;
    for (; taken < waiting; taken++) {
        bl_entry entry;
        memcpy(&entry, bl_pipe_peek(c->p->commands, taken), sizeof entry);
        if (entry.tick > c->e->tick) break;
        enter_entry(c, &entry);
    }
    bl_pipe_drop(c->p->commands, taken);
}

static void take_replay(bl_run_context *c) {
    const bl_pace *p = c->p;
    while (p->replay && c->replayed < p->replay_count && p->replay[c->replayed].tick <= c->e->tick) {
        enter_entry(c, &p->replay[c->replayed++]);
    }
}

static void set_timing(bl_run_context *c, int signal, double value) {
    if (c->p->timing[signal] >= 0) set_value(c, c->p->timing[signal], value, BL_FROM_TIMING);
}

static void write_timing(bl_run_context *c) {
    const bl_pace *p = c->p;
    int64_t age = 0, lost = 0;
    for (int32_t k = 0; k < p->device_count; k++) {
        bl_device *d = p->devices[k];
        if (!bl_device_acquire(d)) continue;
        const int64_t own = c->e->tick - d->last_tick; /* -1 stands for none yet: older than the run */
        if (own > age) age = own;
        lost += !d->alive;
        bl_device_release(d);
    }
    for (int64_t k = 0; k < p->age_count; k++)
        set_value(c, p->ages[2 * k], bl_time(c->e) - c->e->values[p->ages[2 * k + 1]], BL_FROM_WORKER);
    const bool keeps_time = has_deadlines(c) || c->pacer; /* otherwise a run that is repeated is the same */
    set_timing(c, BL_TIMING_LATENESS, keeps_time ? 1e-9 * (double)c->lateness : 0.0);
    set_timing(c, BL_TIMING_EXECUTION, keeps_time ? 1e-9 * (double)c->execution : 0.0);
    set_timing(c, BL_TIMING_OVERRUNS, (double)p->overruns);
    set_timing(c, BL_TIMING_AGE, (double)age);
    set_timing(c, BL_TIMING_LOST, (double)lost);
}

/* --- The clock --- */

static int64_t read_clock(const bl_run_context *c) {
    return c->p->clock == BL_CLOCK_SCRIPT ? c->scripted : bl_clock_now();
}

/* Never, rather than an overflow, where steps of years add up. */
static int64_t deadline_of(const bl_run_context *c, int64_t number) {
    return c->origin + (int64_t)llround(fmin((double)number * c->period, 4e18));
}

/* Counts deadlines from now on where the factor was changed. */
static void follow_factor(bl_run_context *c) {
    const double factor = atomic_load_explicit(&c->p->factor, memory_order_relaxed);
    if (factor == c->factor) return;
    c->factor = factor;
    const double period = factor > 0.0 ? c->e->step / factor * 1e9 : 0.0;
    c->period = period >= 1.0 ? period : 0.0; /* the clock counts ns: shorter ones are as fast as possible */
    c->origin = read_clock(c);
    c->number = 0;
    c->in_a_row = 0;
}

static bool is_interrupted(const bl_run_context *c) {
    return atomic_load_explicit(&c->p->cancel, memory_order_relaxed) ||
           atomic_load_explicit(&c->p->pause, memory_order_relaxed) || bl_is_latched(c->p) ||
           atomic_load_explicit(&c->p->factor, memory_order_relaxed) != c->factor;
}

/* Paused, and not asked for a tick; `single` if it was. Ticks that were asked for are void when the run goes on. */
static bool is_paused(bl_run_context *c) {
    const bool paused = atomic_load(&c->p->pause) && !is_repeating(c);
    const int asked = atomic_load(&c->p->steps);
    if (!paused) c->stepped = asked;
    c->single = paused && c->stepped != asked;
    return paused && !c->single;
}

/* --- Stalls --- */

/* The watchdog expects the next report within its limit from `now` on. Before the first live values there is none. */
static void report(bl_run_context *c, int64_t now) {
    const int64_t due = c->armed && c->p->watchdog > 0 ? now + c->p->watchdog : 0;
    bl_watchdog_report(c->watchdog, due);
    bl_run_guard_report(c->p->guard, due);
}

/* Latches the run if `late` ns, of which the text says what they are, exceed max_stall. */
static void judge_stall(bl_run_context *c, int64_t late, const char *what) {
    if (!c->armed || c->p->max_stall <= 0 || late <= c->p->max_stall) return;
    (void)bl_latch(c->p, BL_LATCH_STALL, "tick %lld %s %.3g s (max_stall %.3g s)", (long long)c->e->tick, what,
                   1e-9 * (double)late, 1e-9 * (double)c->p->max_stall);
}

/* Right before values leave: they may have been computed before the process was stopped or the computer suspended. */
static void judge_values(bl_run_context *c) {
    if (bl_run_guard_has_tripped(c->p->guard))
        (void)bl_latch(c->p, BL_LATCH_GUARD, "the guard has sent safe values before tick %lld", (long long)c->e->tick);
    if (!c->armed || c->p->max_stall <= 0 || c->p->clock == BL_CLOCK_SCRIPT) return;
    judge_stall(c, bl_clock_now() - c->time, "has values that are older than");
    judge_stall(c, bl_clock_suspended() - c->suspended, "follows a suspension of the computer of");
}

/* False if something else came first. */
static bool wait_for_deadline(bl_run_context *c) {
    const bl_pace *p = c->p;
    const int64_t deadline = deadline_of(c, c->number);
    if (p->clock == BL_CLOCK_SCRIPT) {
        const int64_t wake = p->script_wake && c->started < p->script_count ? p->script_wake[c->started] : 0;
        if (c->scripted < deadline) c->scripted = deadline + wake;
        c->time = c->scripted;
    } else {
        for (int64_t now; (now = bl_clock_now()) + PATIENCE < deadline;) {
            if (is_interrupted(c)) return false;
            report(c, now + PATIENCE);
            bl_clock_sleep_until(now + PATIENCE / 2);
        }
        report(c, deadline);
        c->time = bl_clock_wait_until(deadline, p->spin);
    }
    c->lateness = c->time - deadline;
    judge_stall(c, c->lateness, "began late by");
    return !bl_is_latched(p);
}

/* The frame that is the tick. One with a later number belongs to a later tick: those before it are run with what there was. */
static bool take_frame(bl_run_context *c) {
    bl_device *d = c->pacer;
    const int64_t frames = bl_counted(&d->counts.frames), last = d->last_tick;
    take_acquired(c, c->p->pacer, keep_from_device);
    if (bl_counted(&d->counts.frames) == frames) {
        enter_kept(c); /* that it is lost, perhaps */
        return false;
    }
    const uint32_t jump = d->sequence - c->sequence;
    c->held = c->in_step && c->life == d->epochs && jump >= 1 && jump <= LARGEST_JUMP ? (int64_t)jump - 1 : 0;
    c->sequence = d->sequence;
    c->life = d->epochs;
    c->in_step = true;
    c->kept_for = c->e->tick + c->held;
    if (c->held > 0) {
        note_gap(c, BL_GAP_FRAMES, c->e->tick, c->kept_for - 1);
        for (int64_t i = 0; i < c->kept_count; i++)
            if (c->kept[i].slot == d->delay_slot && d->delay_slot >= 0) c->kept[i].value += (double)c->held;
        d->last_tick = last;
    }
    return true;
}

static bool wait_for_frame(bl_run_context *c) {
    bl_device *d = c->pacer;
    bool taken = false;
    while (!taken && !is_interrupted(c) && c->p->end == BL_END_NONE) {
        const int64_t now = bl_clock_now();
        report(c, now + PATIENCE);
        if (!bl_device_acquire(d)) continue; /* the watchdog has: the run is latched */
        if (d->driver->wait) d->driver->wait(d, now + PATIENCE / 2);
        else bl_clock_sleep_until(now + 100000);
        c->time = bl_clock_now();
        taken = take_frame(c);
        bl_device_release(d);
        judge_stall(c, c->time - now - PATIENCE, "waited longer for its frame than it should by");
    }
    return taken && !bl_is_latched(c->p);
}

/* A tick that has to be run before the newest frame's, with what there was. */
static void hold_frame(bl_run_context *c) {
    c->held--;
    c->from = c->p->pacer;
    if (!bl_device_acquire(c->pacer)) return;
    if (c->pacer->age_slot >= 0) set_value(c, c->pacer->age_slot, (double)(c->e->tick - c->pacer->last_tick), c->from);
    bl_device_release(c->pacer);
}

static void release_frame(bl_run_context *c) {
    if (bl_device_acquire(c->pacer)) {
        c->pacer->last_tick = c->e->tick;
        bl_device_release(c->pacer);
    }
    c->kept_for = -1;
    enter_kept(c);
}

static bool wait_for_tick(bl_run_context *c) {
    if (!is_repeating(c)) follow_factor(c);
    if (is_repeating(c)) c->single = false;
    else if (c->single) c->stepped = (int)((unsigned)c->stepped + 1u);
    else if (c->pacer) return c->held > 0 || c->kept_for >= 0 || wait_for_frame(c);
    else if (has_deadlines(c)) return wait_for_deadline(c);
    c->time = read_clock(c);
    c->lateness = 0;
    return true;
}

static void note_overrun(bl_run_context *c, int64_t late) {
    bl_pace *p = c->p;
    const int64_t tick = c->e->tick - 1, noted = p->overruns + p->overruns_in_warmup;
    if (noted < BL_NOTED) p->overrun_list[noted] = (bl_overrun){tick, late};
    if (c->started <= p->warmup_ticks) {
        bl_add_count(&p->overruns_in_warmup, 1);
        return;
    }
    bl_add_count(&p->overruns, 1);
    /* Every deadline that has passed counts: one long stall is many. Those that are not dropped count again when they come. */
    const int64_t missed = 1 + (int64_t)((double)(late - 1) / c->period), in_a_row = c->in_a_row + missed;
    c->in_a_row += p->overrun == BL_OVERRUN_SKIP ? missed : 1;
    const bool too_many = p->max_overruns >= 0 && p->overruns > p->max_overruns;
    const bool too_many_in_a_row = p->max_consecutive_overruns >= 0 && in_a_row > p->max_consecutive_overruns;
    if (too_many || too_many_in_a_row)
        finish(c, BL_END_OVERRUN, "tick %lld ended %.3g ms after the deadline: %s %lld%s, limit %lld", (long long)tick,
               1e-6 * (double)late, too_many ? "overrun" : "missed deadline",
               (long long)(too_many ? p->overruns : in_a_row), too_many ? "" : " in a row",
               (long long)(too_many ? p->max_overruns : p->max_consecutive_overruns));
}

/* Which deadline is next, after a tick that ended at c->time + c->execution. */
static void choose_deadline(bl_run_context *c) {
    bl_pace *p = c->p;
    const int64_t finished = c->time + c->execution, next = deadline_of(c, ++c->number), late = finished - next;
    if (late <= 0) {
        c->in_a_row = 0;
        return;
    }
    note_overrun(c, late);
    if (p->overrun == BL_OVERRUN_SLIP) c->origin += late;
    if (p->overrun != BL_OVERRUN_SKIP || p->end != BL_END_NONE) return;
    const int64_t first = c->number;
    c->number += (int64_t)((double)late / c->period); /* rounding may be one off, either way */
    while (c->number > first && deadline_of(c, c->number - 1) >= finished) c->number--;
    while (deadline_of(c, c->number) < finished) c->number++;
    bl_add_count(&p->skipped, c->number - first);
}

/* --- What leaves --- */

/* Safe values to all devices, by this thread: the watchdog no longer sends any, but may still be sending one. */
static void make_safe(bl_run_context *c) {
    bl_watchdog_attend(c->watchdog, true);
    for (int32_t k = 0; k < c->p->device_count; k++) {
        bl_device *d = c->p->devices[k];
        while (!bl_device_acquire(d)) bl_clock_sleep_until(bl_clock_now() + SAFE_PAUSE / 10);
        bl_device_make_safe(d, c->e->tick);
        bl_device_release(d);
    }
}

/* Whether all devices have confirmed safe values, as far as they can. */
static bool hear_devices(bl_run_context *c) {
    bool settled = true;
    for (int32_t k = 0; k < c->p->device_count; k++) {
        bl_device *d = c->p->devices[k];
        if (!bl_device_acquire(d)) return false;
        bl_device_listen(d, bl_clock_now());
        settled = bl_device_is_settled(d) && settled;
        bl_device_release(d);
    }
    return settled;
}

static void end_safely(bl_run_context *c) {
    if (c->p->device_count == 0) return;
    const int64_t limit = bl_clock_now() + SAFE_LIMIT;
    for (int round = 0; round < SAFE_ROUNDS || (!hear_devices(c) && bl_clock_now() < limit); round++) {
        if (round > 0) bl_clock_sleep_until(bl_clock_now() + (round < SAFE_ROUNDS ? SAFE_PAUSE : LATER_SAFE_PAUSE));
        make_safe(c);
    }
}

static void push_row(bl_run_context *c) {
    bl_pace *p = c->p;
    const bl_engine *e = c->e;
    if (!p->rows || e->tick % p->every != 0 || c->row_tick == e->tick) return;
    c->row_tick = e->tick;
    p->row[0] = (double)e->tick;
    for (int64_t i = 0; i < p->pick_count; i++) p->row[1 + i] = e->values[p->pick[i]];
    if (push(c, p->rows, p->row)) return;
    bl_add_count(&p->rows_lost, 1);
    note_gap(c, BL_GAP_ROWS, e->tick, e->tick);
}

static void push_events(bl_run_context *c) {
    const bl_engine *e = c->e;
    for (int64_t k = 0; c->p->events && k < e->event_count; k++)
        if (!push(c, c->p->events, &e->events[k])) bl_add_count(&c->p->events_lost, 1);
}

static void post_latest(const bl_run_context *c) {
    if (!c->p->latest) return;
    const int64_t first = c->p->latest_first, end = c->e->layout.parameters + c->e->layout.signals;
    c->p->frame[0] = (double)c->e->tick;
    memcpy(c->p->frame + 1, c->e->values + first, (size_t)(end - first) * sizeof(double));
    memcpy(c->p->frame + 1 + end - first, c->e->counters, (size_t)c->e->layout.diagnostics * sizeof(double));
    bl_mailbox_post(c->p->latest, c->p->frame);
}

/* Before the first live value leaves: the process may stop or hang between that value and the next report. */
static void arm(bl_run_context *c) {
    bl_run_guard_arm(c->p->guard, true);
    c->armed = true;
    report(c, read_clock(c));
}

/* The guard should have the descriptors before live values leave through them. */
static void note_openings(bl_run_context *c) {
    int openings = 0;
    for (int32_t k = 0; c->p->guard && k < c->p->device_count; k++)
        openings += atomic_load_explicit(&c->p->devices[k]->openings, memory_order_relaxed);
    if (openings != c->openings) bl_watchdog_wake(c->watchdog);
    c->openings = openings;
}

/* Live values leave only here, and not from a latched run: see watchdog.h. */
static void give_to_devices(bl_run_context *c) {
    judge_values(c);
    note_openings(c);
    if (!c->armed && c->p->device_count > 0) arm(c);
    for (int32_t k = 0; k < c->p->device_count && c->p->end == BL_END_NONE; k++) {
        bl_device *d = c->p->devices[k];
        if (!bl_device_acquire(d)) continue; /* by the watchdog */
        if (bl_is_latched(c->p)) {
            bl_device_make_safe(d, c->e->tick);
        } else if (bl_device_give(d, c->e->tick, c->e->values) != BL_OK) {
            c->p->lost_device = k;
            finish(c, BL_END_DEVICE, "%s", d->why);
        }
        bl_device_release(d);
    }
}

/* --- The run --- */

static void take_inputs(bl_run_context *c) {
    for (int32_t k = 0; k < c->p->device_count; k++)
        if (c->p->devices[k] != c->pacer) take_device(c, k, enter_from_device);
    if (c->held > 0) hold_frame(c);
    else if (c->pacer) release_frame(c);
    take_replay(c); /* at the tick where a branch leaves its log, commands are newer than that */
    take_commands(c);
    write_timing(c);
}

/* If the reader is behind, the next tick saves instead. */
static void save_state(bl_run_context *c) {
    const bl_pace *p = c->p;
    if (!p->states || c->e->tick < c->next_state) return;
    char *place = bl_pipe_reserve(p->states);
    if (!place) return;
    memcpy(place, &c->e->tick, sizeof c->e->tick);
    bl_save(c->e, place + sizeof c->e->tick);
    bl_pipe_push_reserved(p->states);
    c->next_state = c->e->tick + p->state_every;
}

static int run_tick(bl_run_context *c) {
    const bool repeats = is_repeating(c), held = !repeats && c->held > 0;
    c->started++;
    bl_watchdog_set_tick(c->watchdog, c->e->tick);
    report(c, c->time);
    if (repeats) take_replay(c);
    else take_inputs(c);
    if (c->p->end != BL_END_NONE) return BL_OK;
    int status = bl_outputs(c->e);
    if (status != BL_OK) return status;
    push_row(c);
    post_latest(c);
    if (!held && !repeats) give_to_devices(c); /* a catch-up tick has no new values for the devices */
    if (c->p->end != BL_END_NONE) return BL_OK;
    status = bl_commit(c->e);
    push_events(c);
    bl_probe_end_tick(c->e);
    if (status != BL_OK) return status;
    save_state(c);
    bl_add_count(&c->p->done, 1);
    return BL_OK;
}

static void end_tick(bl_run_context *c) {
    bl_pace *p = c->p;
    if (p->clock == BL_CLOCK_SCRIPT) {
        const int64_t n = c->started - 1;
        c->scripted += p->script_execution && n < p->script_count ? p->script_execution[n] : 0;
    }
    c->execution = read_clock(c) - c->time;
    if (c->factor < 0.0) return; /* the tick was repeated */
    bl_histogram_add(&p->execution, c->execution);
    judge_stall(c, c->execution, "took");
    if (!has_deadlines(c) || c->single) return;
    bl_histogram_add(&p->lateness, c->lateness);
    choose_deadline(c);
}

/* Whether a run stands still: paused, or latched and not armed again. Who arms it again has seen the reason: a request
   for an earlier latch, which came too late, does not count. */
static bool stands_still(bl_run_context *c) {
    bl_pace *p = c->p;
    if (bl_pace_latch(p) && atomic_exchange(&p->rearm, 0) == atomic_load(&p->latches)) {
        report(c, 0); /* the guard is not to find it overdue once more */
        bl_run_guard_rearm(p->guard);
        atomic_store(&p->latched, BL_LATCH_NONE);
    }
    return bl_is_latched(p) || is_paused(c);
}

/* Pause or latch: the diagram's time stops; devices are still received from, and are sent safe values. */
static void stand_still(bl_run_context *c) {
    while (stands_still(c) && !atomic_load_explicit(&c->p->cancel, memory_order_relaxed) && c->p->end == BL_END_NONE) {
        make_safe(c);
        c->armed = false; /* not if it is armed again before that: then live values may be the last */
        report(c, 0); /* the watchdog may just have reported to the guard in place of this thread */
        c->time = read_clock(c);
        for (int32_t k = 0; k < c->p->device_count; k++) take_device(c, k, enter_from_device);
        take_replay(c);
        take_commands(c);
        bl_clock_sleep_until(bl_clock_now() + PATIENCE / 2);
    }
    bl_watchdog_attend(c->watchdog, false);
    c->suspended = bl_clock_suspended();
    const int64_t late = read_clock(c) - deadline_of(c, c->number);
    if (late > 0) c->origin += late;
    c->in_a_row = 0;
    c->in_step = false;
    c->held = 0;
    c->kept_for = -1;
    c->kept_count = 0;
}

static int check_pace(bl_engine *e, const bl_pace *p) {
    const bl_record record = {.pick = p->pick, .count = p->pick_count, .every = p->every};
    if (p->rows) {
        const int status = bl_check_record(e, &record);
        if (status != BL_OK) return status;
    }
    for (int64_t k = 0; k < 2 * p->age_count; k++)
        if (p->ages[k] < 0 || p->ages[k] >= e->layout.parameters)
            return bl_fail(e, BL_ERROR_ARGUMENT, -1, "the age of a result has no slot");
    if (p->latest_first < 0 || p->latest_first > e->layout.parameters)
        return bl_fail(e, BL_ERROR_ARGUMENT, -1, "the newest values have no first slot");
    if (!(atomic_load(&p->factor) >= 0.0)) return bl_fail(e, BL_ERROR_ARGUMENT, -1, "the time factor is negative");
    if (p->clock < BL_CLOCK_WALL || p->clock > BL_CLOCK_SCRIPT)
        return bl_fail(e, BL_ERROR_ARGUMENT, -1, "there is no clock %d", p->clock);
    if (p->clock == BL_CLOCK_DEVICE && (p->pacer < 0 || p->pacer >= p->device_count))
        return bl_fail(e, BL_ERROR_ARGUMENT, -1, "there is no device %d to pace the run", p->pacer);
    return BL_OK;
}

static void begin_run(bl_run_context *c) {
    bl_pace *p = c->p;
    p->end = BL_END_NONE;
    p->lost_device = -1;
    p->why[0] = '\0';
    c->factor = -1.0; /* none yet */
    c->suspended = bl_clock_suspended();
    atomic_store(&p->latched, BL_LATCH_NONE);
    atomic_store(&p->rearm, 0);
    c->kept_for = c->row_tick = -1;
    c->next_state = c->e->tick + p->state_every;
    for (int k = 0; k < 3; k++) c->last_gap[k] = -1;
    if (!is_repeating(c)) follow_factor(c);
}

static void handle_status(bl_run_context *c, int status) {
    if (status == BL_STOP) finish(c, BL_END_STOP, "%s", c->e->message);
    else if (status != BL_OK) finish(c, BL_END_ERROR, "%s", c->e->message);
}

/* Record the row of the last tick, unless it is recorded, with the entries since the last row. */
static void record_end(bl_run_context *c) {
    take_replay(c);
    if (bl_outputs(c->e) != BL_OK) return;
    push_row(c);
    post_latest(c);
}

/* The reason is complete: another thread may have been about to write it. */
static void end_latched(bl_run_context *c) {
    const char *why;
    while (!(why = bl_pace_latch(c->p))) bl_clock_sleep_until(bl_clock_now() + SAFE_PAUSE / 10);
    finish(c, BL_END_OVERRUN, "%s", why);
}

int bl_run_realtime(bl_engine *e, int64_t ticks, bl_pace *pace) {
    bl_run_context course = {.e = e, .p = pace}, *c = &course;
    int status = check_pace(e, pace);
    begin_run(c);
    handle_status(c, status);
    if (status == BL_OK && !bl_watchdog_start(pace, &c->watchdog)) {
        status = bl_fail(e, BL_ERROR_BLOCK, -1, "no thread is available for the watchdog");
        handle_status(c, status);
    }
    if (status == BL_OK && pace->clock == BL_CLOCK_DEVICE) c->pacer = pace->devices[pace->pacer];
    while (pace->end == BL_END_NONE) {
        if (ticks >= 0 && pace->done >= ticks) finish(c, BL_END_TIME, "the end time was reached");
        else if (atomic_load_explicit(&pace->cancel, memory_order_relaxed))
            finish(c, BL_END_CANCEL, "%s",
                   atomic_load(&pace->signal) ? bl_signals_describe(atomic_load(&pace->signal)) : "it was stopped");
        else if (bl_is_latched(pace) && pace->ends_if_latched) end_latched(c);
        else if (bl_is_latched(pace) || is_paused(c)) stand_still(c);
        else if (wait_for_tick(c)) {
            status = run_tick(c);
            handle_status(c, status);
            if (pace->end == BL_END_NONE) end_tick(c);
        }
    }
    end_safely(c);
    bl_watchdog_stop(c->watchdog);
    c->watchdog = NULL;
    c->armed = false;
    report(c, 0);
    bl_run_guard_arm(c->p->guard, false);
    if (pace->end != BL_END_ERROR) record_end(c);
    return status;
}
