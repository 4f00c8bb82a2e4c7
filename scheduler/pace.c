/* Pacing: the same ticks as bl_run, each begun at its deadline on the wall clock. Deadlines are counted from one
 * start instant, so that lateness never accumulates. */
#include <math.h>

#include "scheduler/clock.h"
#include "scheduler/engine.h"

static int check_slots(bl_engine *e, const int64_t *slots, int64_t count, int64_t end) {
    for (int64_t i = 0; i < count; i++)
        if (slots[i] < 0 || slots[i] >= end)
            return bl_fail(e, BL_ERROR_ARGUMENT, -1, "a mailbox is tied to no value");
    return BL_OK;
}

static void take_inputs(bl_engine *e, bl_pace *pace) {
    if (!pace->inbox || bl_mailbox_take(pace->inbox, pace->frame) == 0) return;
    for (int64_t i = 0; i < pace->inbox_count; i++) e->values[pace->inbox_slots[i]] = pace->frame[i];
    e->outputs_valid = false;
}

static void post_outputs(const bl_engine *e, bl_pace *pace) {
    if (!pace->outbox) return;
    for (int64_t i = 0; i < pace->outbox_count; i++) pace->frame[i] = e->values[pace->outbox_slots[i]];
    bl_mailbox_post(pace->outbox, pace->frame);
}

/* Never, rather than an overflow, where steps of years add up. */
static int64_t deadline_of(int64_t start, int64_t tick, double period) {
    return start + (int64_t)llround(fmin((double)tick * period, 4e18));
}

int bl_run_paced(bl_engine *e, int64_t ticks, bl_pace *pace, bl_record *record, int64_t *done) {
    int64_t n = 0;
    int status = bl_check_record(e, record);
    pace->overruns = 0;
    if (status == BL_OK && !(pace->factor > 0.0))
        status = bl_fail(e, BL_ERROR_ARGUMENT, -1, "a pace needs a positive factor");
    if (status == BL_OK && pace->inbox)
        status = check_slots(e, pace->inbox_slots, pace->inbox_count, e->layout.parameters);
    if (status == BL_OK && pace->outbox)
        status = check_slots(e, pace->outbox_slots, pace->outbox_count, e->layout.total);
    const double period = e->step / pace->factor * 1e9;
    const int64_t start = bl_clock_now();
    while (status == BL_OK && n < ticks && !(pace->cancel && *pace->cancel)) {
        const int64_t deadline = deadline_of(start, n, period);
        bl_clock_sleep_until(deadline);
        const int64_t awake = bl_clock_now();
        take_inputs(e, pace);
        status = bl_outputs(e);
        if (status == BL_OK && record && e->tick % record->every == 0) {
            if (record->rows == record->capacity) break;
            status = bl_record_row(e, record);
        }
        if (status == BL_OK) {
            post_outputs(e, pace);
            status = bl_commit(e);
        }
        if (status != BL_OK) break;
        const int64_t finished = bl_clock_now();
        if (pace->lateness_ns) pace->lateness_ns[n] = awake - deadline;
        if (pace->execution_ns) pace->execution_ns[n] = finished - awake;
        n++;
        if (finished > deadline_of(start, n, period)) pace->overruns++;
    }
    if (done) *done = n;
    return status;
}
