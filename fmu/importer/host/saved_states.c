/* States of an FMU: snapshots, to which a coupling rolls back, and states as bytes, which a user saves and restores. */
#include "fmu/importer/host/clocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/engine/engine.h"

static void free_state(bl_fmu_host *f, bl_fmu_snapshot *snapshot) {
    if (snapshot->state && f->mode != HOST_DEAD) f->fmi->free_state(f, &snapshot->state);
    snapshot->state = NULL;
    snapshot->mode = HOST_NONE;
}

void bl_fmu_free_states(bl_fmu_host *f) {
    for (int k = 0; k <= BL_SNAPSHOTS; k++) free_state(f, &f->snapshots[k]);
    for (int k = 0; k < 2; k++) free_state(f, &f->lent[k]);
    for (int64_t k = 0; f->kept && k < KEPT_STATES; k++) free_state(f, &f->kept[k]);
}

static int keep_state(bl_fmu_host *f, bl_fmu_snapshot *snapshot) {
    const int status = f->fmi->get_state(f, &snapshot->state);
    snapshot->input_derivative_order = f->input_derivative_order;
    snapshot->ended = f->ended;
    snapshot->next_event = f->next_event;
    if (snapshot->held) bl_fmu_keep_held(f, snapshot->held);
    if (status == BL_OK) snapshot->mode = f->mode;
    return status;
}

static int put_back_state(bl_fmu_host *f, const bl_fmu_snapshot *snapshot) {
    const int status = f->fmi->set_state(f, snapshot->state);
    if (status != BL_OK) return status;
    f->mode = snapshot->mode;
    f->input_derivative_order = snapshot->input_derivative_order;
    f->ended = snapshot->ended;
    f->next_event = snapshot->next_event;
    bl_fmu_forget_inputs(f);
    return BL_OK;
}

int bl_fmu_save_snapshot(bl_block *b, int snapshot) {
    bl_fmu_host *f = b->external;
    if (!bl_fmu_is_running(f) || snapshot < 0 || snapshot >= BL_SNAPSHOTS) return BL_ERROR_BLOCK;
    f->snapshots[snapshot].message_count = atomic_load(&f->message_count);
    f->oldest = f->settled;
    bl_host_enter(f);
    return bl_host_leave(f, keep_state(f, &f->snapshots[snapshot]));
}

int bl_fmu_restore_snapshot(bl_block *b, int snapshot) {
    bl_fmu_host *f = b->external;
    if (!f || !f->component || snapshot < 0 || snapshot >= BL_SNAPSHOTS || !f->snapshots[snapshot].state ||
        f->mode == HOST_DEAD)
        return BL_ERROR_BLOCK;
    bl_host_enter(f);
    const int status = bl_host_leave(f, put_back_state(f, &f->snapshots[snapshot]));
    /* A coupling changes no parameters. */
    if (status == BL_OK && f->snapshots[snapshot].held) bl_fmu_put_back_held(f, f->snapshots[snapshot].held);
    if (status == BL_OK && f->reason[0]) { /* a failed step is rolled back, together with its message */
        f->reason[0] = '\0';
        atomic_store(&f->message_count, f->snapshots[snapshot].message_count);
    }
    return status;
}

/* ---- for an error estimate */

int bl_fmu_lend(bl_block *b, bl_block *to, int anew) {
    bl_fmu_host *f = b->external, *guest = to->external;
    const bool saves = f && f->flags & HOST_CAN_SAVE;
    if (!guest || !bl_fmu_is_running(f) || f->remote || f->mode == HOST_INITIALIZING || f->ended) return BL_ERROR_BLOCK;
    if (!anew && !(saves ? f->lent[1].state != NULL : f->event_count == f->lent_count)) return BL_ERROR_BLOCK;
    bl_host_enter(f);
    int status = saves ? keep_state(f, &f->lent[0]) : BL_OK;
    if (saves && status == BL_OK && !anew) status = f->fmi->set_state(f, f->lent[1].state);
    bl_host_leave(f, status);
    if (status != BL_OK) return status;
    f->lent[0].message_count = atomic_load(&f->message_count);
    f->lent_count = f->event_count;
    guest->lender = f;
    guest->component = f->component;
    guest->control = f->control;
    guest->mode = saves && !anew ? f->lent[1].mode : f->mode;
    guest->ended = 0;
    guest->oldest = guest->oldest_saved = -INFINITY; /* a state from before its steps will be restored */
    guest->tuned_known = 0;
    guest->reason[0] = '\0';
    bl_fmu_forget_inputs(guest);
    if (guest->clocks)
        memcpy(bl_clocks_state(guest->clocks), bl_clocks_state((anew ? f : guest)->clocks),
               bl_clocks_state_count(f->clocks) * sizeof(double));
    return BL_OK;
}

int bl_fmu_reclaim(bl_block *b, bl_block *to) {
    bl_fmu_host *f = b->external, *guest = to->external;
    if (!guest || guest->lender != f) return BL_OK;
    guest->lender = NULL;
    guest->component = NULL;
    int status = BL_OK;
    bl_host_enter(f);
    if (guest->mode == HOST_DEAD) {
        f->mode = HOST_DEAD;
        status = bl_fmu_error(f, "while the error was estimated: %.1000s", guest->reason);
    } else if (f->flags & HOST_CAN_SAVE) { /* FMI allows it also after an error */
        const bool failed = !bl_fmu_is_running(guest) || guest->ended;
        if (failed) free_state(f, &f->lent[1]);
        else status = f->fmi->get_state(f, &f->lent[1].state);
        f->lent[1].mode = guest->mode;
        if (status == BL_OK) status = f->fmi->set_state(f, f->lent[0].state);
    } else if (!bl_fmu_is_running(guest)) {
        f->mode = HOST_BROKEN;
        status = bl_fmu_error(f, "while the error was estimated: %.1000s", guest->reason);
    }
    bl_host_leave(f, status);
    guest->mode = HOST_NONE;
    atomic_store(&f->message_count, f->lent[0].message_count);
    bl_fmu_forget_inputs(f);
    return status;
}

/* ---- as bytes */

/* This header, then the state serialized by the FMU, or nothing if a ticket refers to it. */
typedef struct {
    uint64_t run; /* 0, or which run the ticket is good for */
    int64_t ticket, mode, input_derivative_order, ended;
    double next_event; /* not of FMI 2.0 */
} bl_fmu_state_head;

/* The state of clocks follows the header. */
static size_t clocks_size(const bl_fmu_host *f) { return bl_clocks_state_count(f->clocks) * sizeof(double); }

static size_t plain_head_size(const bl_fmu_host *f) {
    return f->fmi == &bl_fmi2_calls ? offsetof(bl_fmu_state_head, next_event) : sizeof(bl_fmu_state_head);
}

static size_t head_size(const bl_fmu_host *f) { return plain_head_size(f) + clocks_size(f); }

static bl_fmu_host *running_host(bl_engine *e, int32_t block) {
    bl_fmu_host *f = bl_fmu_host_of(e, block);
    if (!f || !f->component || f->mode == HOST_DEAD) {
        bl_fail(e, BL_ERROR_STATE, -1, "the FMU of `%s` is not running", bl_block_path(e, block));
        return NULL;
    }
    if (f->flags & HOST_CAN_SAVE) return f;
    bl_fmu_error(f, "it cannot save its state (canGetAndSetFMU%ctate is false in its description)",
                 f->fmi == &bl_fmi2_calls ? 's' : 'S');
    bl_fail(e, BL_ERROR_STATE, block, "it cannot save its state");
    return NULL;
}

static int64_t state_size(bl_engine *e, int32_t block, bl_fmu_host *f) {
    size_t size = 0;
    if (f->flags & HOST_CAN_SERIALIZE) {
        bl_fmu_snapshot *snapshot = &f->snapshots[BL_SNAPSHOTS];
        int status =
            bl_fmu_is_running(f) ? keep_state(f, snapshot) : bl_fmu_error(f, "it has failed and has no state to save");
        if (status == BL_OK) status = f->fmi->serialized_size(f, snapshot->state, &size);
        if (status == BL_OK && size > INT64_MAX / 2) status = bl_fmu_error(f, "its state has an invalid size");
        if (status != BL_OK) return bl_fail(e, BL_ERROR_STATE, block, "its state cannot be saved");
    }
    return (int64_t)(head_size(f) + size);
}

int64_t bl_fmu_state_size(bl_engine *e, int32_t block) {
    bl_fmu_host *f = running_host(e, block);
    bl_working_directory directory;
    if (!f) return BL_ERROR_STATE;
    bl_fmu_enter_setup(f, &directory);
    const int64_t size = state_size(e, block, f);
    bl_fmu_leave_setup(f, &directory, BL_OK);
    return size;
}

static int save_behind_ticket(bl_fmu_host *f, bl_fmu_state_head *head) {
    if (!f->kept) f->kept = calloc(KEPT_STATES, sizeof *f->kept);
    if (!f->kept) return BL_ERROR_MEMORY;
    head->run = f->run;
    head->ticket = f->ticket_count++;
    bl_fmu_snapshot *snapshot = &f->kept[head->ticket % KEPT_STATES];
    free_state(f, snapshot);
    return keep_state(f, snapshot);
}

static int save_state(bl_engine *e, int32_t block, bl_fmu_host *f, void *bytes, int64_t size) {
    bl_fmu_state_head head = {0, 0, (int64_t)f->mode, f->input_derivative_order, f->ended, f->next_event};
    const size_t start = head_size(f);
    if (size < (int64_t)start) return bl_fail(e, BL_ERROR_ARGUMENT, -1, "the buffer is too small for a state");
    int status = BL_OK;
    if (f->flags & HOST_CAN_SERIALIZE)
        status = f->fmi->serialize(f, f->snapshots[BL_SNAPSHOTS].state, (char *)bytes + start, (size_t)size - start);
    else
        status = bl_fmu_is_running(f) ? save_behind_ticket(f, &head)
                                      : bl_fmu_error(f, "it has failed and has no state to save");
    if (status != BL_OK) return bl_fail(e, BL_ERROR_STATE, block, "its state cannot be saved");
    memcpy(bytes, &head, plain_head_size(f));
    if (f->clocks) memcpy((char *)bytes + plain_head_size(f), bl_clocks_state(f->clocks), clocks_size(f));
    f->oldest_saved = fmin(f->oldest_saved, f->time);
    return BL_OK;
}

int bl_fmu_save(bl_engine *e, int32_t block, void *bytes, int64_t size) {
    bl_fmu_host *f = running_host(e, block);
    bl_working_directory directory;
    if (!f) return BL_ERROR_STATE;
    bl_fmu_enter_setup(f, &directory);
    return bl_fmu_leave_setup(f, &directory, save_state(e, block, f, bytes, size));
}

static int is_sound(const bl_fmu_state_head *head, const bl_fmu_host *f) {
    return (head->mode == HOST_INITIALIZING || head->mode == HOST_STEPPING ||
            (head->mode == HOST_EVENTS && f->flags & HOST_HAS_EVENTS)) &&
           head->input_derivative_order >= 0 && head->input_derivative_order <= 2 && !isnan(head->next_event);
}

static int restore_state(bl_engine *e, int32_t block, bl_fmu_host *f, const void *bytes, int64_t size) {
    bl_fmu_state_head head = {0};
    const size_t start = head_size(f);
    if (size < (int64_t)start) return bl_fail(e, BL_ERROR_STATE, -1, "the saved state of an FMU is truncated");
    head.next_event = INFINITY;
    memcpy(&head, bytes, plain_head_size(f));
    if (!is_sound(&head, f)) return bl_fail(e, BL_ERROR_STATE, -1, "the saved state of an FMU is damaged");
    int status = BL_OK;
    if (head.run != 0) {
        if (head.run != f->run || head.ticket < 0 || head.ticket >= f->ticket_count) {
            bl_fmu_error(
                f,
                "it cannot serialize its state (canSerializeFMU%ctate is false in its description), so a saved "
                "state is valid only within its run",
                f->fmi == &bl_fmi2_calls ? 's' : 'S');
            return bl_fail(e, BL_ERROR_STATE, block, "the saved state belongs to another run");
        }
        if (head.ticket < f->ticket_count - KEPT_STATES) {
            bl_fmu_error(f,
                         "it cannot serialize its state (canSerializeFMU%ctate is false in its description), so only "
                         "its last %d saved states are kept, and %lld were saved after this one",
                         f->fmi == &bl_fmi2_calls ? 's' : 'S', (int)KEPT_STATES,
                         (long long)(f->ticket_count - head.ticket - 1));
            return bl_fail(e, BL_ERROR_STATE, block, "the saved state is not kept any more");
        }
        status = put_back_state(f, &f->kept[head.ticket % KEPT_STATES]);
    } else if (f->flags & HOST_CAN_SERIALIZE) {
        bl_fmu_snapshot *snapshot = &f->snapshots[BL_SNAPSHOTS];
        free_state(f, snapshot);
        status = f->fmi->deserialize(f, (const char *)bytes + start, (size_t)size - start, &snapshot->state);
        snapshot->mode = (bl_host_mode)head.mode;
        snapshot->input_derivative_order = (int32_t)head.input_derivative_order;
        snapshot->ended = head.ended != 0;
        snapshot->next_event = head.next_event;
        if (status == BL_OK) status = put_back_state(f, snapshot);
    } else {
        status = bl_fmu_error(f, "the saved state belongs to another FMU");
    }
    if (status == BL_OK && f->clocks)
        memcpy(bl_clocks_state(f->clocks), (const char *)bytes + plain_head_size(f), clocks_size(f));
    f->tuned_known = 0;
    return status == BL_OK ? BL_OK : bl_fail(e, BL_ERROR_STATE, block, "the saved state does not fit");
}

int bl_fmu_restore(bl_engine *e, int32_t block, const void *bytes, int64_t size) {
    bl_fmu_host *f = running_host(e, block);
    bl_working_directory directory;
    if (!f) return BL_ERROR_STATE;
    bl_fmu_enter_setup(f, &directory);
    return bl_fmu_leave_setup(f, &directory, restore_state(e, block, f, bytes, size));
}
