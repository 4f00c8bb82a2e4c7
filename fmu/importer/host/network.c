/* Networks of FMUs whose clocks are connected. A wire leads from the port of a clock that an FMU triggers, or that is based on time, to
 * the port of a triggered input clock of another FMU.
 *
 * The members of a network advance together: each of their steps ends at the next instant that is known of any member, and at an early
 * return with an active clock that is connected. At such an instant, and at the end of the step of the diagram, one event is
 * handled for all of them. It is an iteration:
 *   1. clocks that are due are activated, output clocks are read, and activations follow the wires until there are no new ones;
 *   2. clocked inputs are set and clocked outputs are read, a member after those that send to it. Where members send to each other, the
 *      one with the fewest connected input clocks is read first, before its inputs are set: a node before the bus;
 *   3. the discrete states of every member with an active clock, or that requested it, are updated;
 * until no member requests an update and no clock is due. A member that answers does so in the next iteration, at the same time.
 *
 * If a member returns early after others have passed that time, these are set back to the start of the step. Therefore their states are saved,
 * and members that trigger clocks come first. */
#include "fmu/importer/host/network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/engine/engine.h"

enum {
    LARGEST_ITERATIONS = 1000, /* at one instant */
    LARGEST_PARTS = 1000000, /* of one step */
    LISTED_LENGTH = 600
};

typedef struct {
    bl_block *b;
    bl_fmu_host *f;
    bool triggers; /* a connected clock: its steps may return early, and the others must follow */
    bool needs_update, was_read, is_late, is_saved;
    int32_t taken_count; /* input clocks that are connected */
    double reached;
} network_member;

typedef struct {
    int32_t from, from_clock, to, to_clock;
    bool was_followed;
} clock_wire;

struct bl_fmu_network {
    int32_t count, wire_count, user_count;
    int32_t leader; /* the block that the engine advances first */
    network_member *members;
    clock_wire *wires;
    char problem[LISTED_LENGTH]; /* why it cannot run */
};

static const char NO_MEMORY[] = "out of memory for the FMUs whose clocks are connected to it";

/* An operation of a member, which may call the FMU. */
#define WITHIN(m, operation) (bl_host_enter((m)->f), bl_host_leave((m)->f, (operation)))

static const char *path_of(const network_member *m) { return bl_block_path(m->b->engine, m->b->index); }

static void list_member(const network_member *m, char *text) {
    const size_t used = strlen(text);
    snprintf(text + used, LISTED_LENGTH - used, "%s`%.100s`", used ? ", " : "", path_of(m));
}

/* ---- finding networks */

static bl_fmu_host *clocked_host(const bl_engine *e, int32_t block) {
    bl_fmu_host *f = bl_fmu_host_of(e, block);
    return f && !f->exchange && bl_clocks_are_ports(f) ? f : NULL;
}

/* The block and the clock whose signal is at a place; -1: none. */
static int32_t find_giver(const bl_engine *e, const double *place, int32_t *clock) {
    for (int32_t k = 0; k < e->block_count; k++) {
        const bl_fmu_host *f = clocked_host(e, k);
        for (*clock = 0; f && *clock < bl_clocks_count(f); ++*clock)
            if (bl_clocks_given(f, *clock) == place) return k;
    }
    return -1;
}

/* Gives every block that a wire joins the smallest number among them. */
static void join_blocks(const bl_engine *e, int32_t *network) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t k = 0; k < e->block_count; k++) {
            const bl_fmu_host *f = clocked_host(e, k);
            for (int32_t c = 0, clock; f && c < bl_clocks_count(f); c++) {
                const double *place = bl_clocks_taken(&e->blocks[k], f, c);
                const int32_t giver = place ? find_giver(e, place, &clock) : -1;
                if (giver < 0 || network[giver] == network[k]) continue;
                network[giver] = network[k] = network[giver] < network[k] ? network[giver] : network[k];
                changed = true;
            }
        }
    }
}

static void add_wires(const bl_engine *e, bl_fmu_network *net) {
    for (int32_t to = 0; to < net->count; to++) {
        network_member *m = &net->members[to];
        for (int32_t c = 0; c < bl_clocks_count(m->f); c++) {
            int32_t clock = 0;
            const double *place = bl_clocks_taken(m->b, m->f, c);
            const int32_t giver = place ? find_giver(e, place, &clock) : -1;
            for (int32_t from = 0; giver >= 0 && from < net->count; from++) {
                if (net->members[from].b->index != giver) continue;
                net->wires[net->wire_count++] = (clock_wire){from, clock, to, c, false};
                net->members[from].triggers = true;
                m->taken_count++;
                bl_clocks_connect(m->f, c);
            }
        }
    }
}

/* Members that trigger clocks come first. */
static int compare_members(const void *one, const void *two) {
    const network_member *a = one, *b = two;
    if (a->triggers != b->triggers) return a->triggers ? -1 : 1;
    return a->b->index - b->b->index;
}

/* Where the engine advances a block: the number of the call, and what the members must have in common. */
static int64_t find_call(const bl_engine *e, const bl_block *b, int32_t *rate, int32_t *guard) {
    for (int64_t s = 0; s < e->advances.segment_count; s++) {
        const bl_segment *segment = &e->advances.segments[s];
        for (int64_t c = segment->first; c < segment->first + segment->count; c++)
            if (e->advances.calls[c].block == b) return *rate = segment->rate, *guard = segment->guard, c;
    }
    return -1;
}

/* Finds the leader, or the reason why the members cannot be advanced together. */
static void check_network(const bl_engine *e, bl_fmu_network *net) {
    int32_t rate = 0, guard = 0;
    int64_t first = INT64_MAX;
    const char *reason = NULL;
    char names[LISTED_LENGTH] = "";
    for (int32_t k = 0; k < net->count; k++) {
        const network_member *m = &net->members[k];
        int32_t own_rate = 0, own_guard = 0;
        const int64_t call = find_call(e, m->b, &own_rate, &own_guard);
        if (call < 0) reason = "and are in a coupling: remove them from Diagram.couple, or set coupling to none";
        else if (k > 0 && (own_rate != rate || own_guard != guard)) reason = "and have different periods: choose one";
        if (m->f->substeps != 1) reason = "and must have substeps=1";
        rate = own_rate;
        guard = own_guard;
        if (call >= 0 && call < first) {
            first = call;
            net->leader = m->b->index;
        }
        list_member(m, names);
    }
    if (reason) snprintf(net->problem, sizeof net->problem, "%.400s exchange clocks, %s", names, reason);
}

static void free_network(bl_fmu_network *net) {
    free(net->members);
    free(net->wires);
    free(net);
}

void bl_network_leave(bl_fmu_host *f) {
    if (f->network && --f->network->user_count == 0) free_network(f->network);
    f->network = NULL;
    f->is_networked = 0;
}

/* Returns whether there was memory. */
static bool make_network(bl_engine *e, const int32_t *network, int32_t number) {
    int32_t count = 0, clock_count = 0;
    for (int32_t k = 0; k < e->block_count; k++)
        if (network[k] == number && clocked_host(e, k)) {
            count++;
            clock_count += bl_clocks_count(clocked_host(e, k));
        }
    if (count < 2) return true;
    bl_fmu_network *net = calloc(1, sizeof *net);
    if (!net) return false;
    net->members = calloc((size_t)count, sizeof *net->members);
    net->wires = calloc((size_t)clock_count, sizeof *net->wires);
    if (!net->members || !net->wires) return free_network(net), false;
    for (int32_t k = 0; k < e->block_count; k++)
        if (network[k] == number && clocked_host(e, k))
            net->members[net->count++] = (network_member){.b = &e->blocks[k], .f = clocked_host(e, k)};
    add_wires(e, net);
    qsort(net->members, (size_t)net->count, sizeof *net->members, compare_members);
    net->wire_count = 0;
    for (int32_t k = 0; k < net->count; k++) net->members[k].taken_count = 0;
    add_wires(e, net); /* with the numbers of members in their order */
    check_network(e, net);
    for (int32_t k = 0; k < net->count; k++) net->members[k].f->network = net;
    net->user_count = net->count;
    return true;
}

int bl_network_find(const bl_block *b, bl_fmu_host *f) {
    if (!f->clocks || f->is_networked) return BL_OK;
    bl_engine *e = b->engine;
    int32_t *network = calloc((size_t)e->block_count, sizeof *network);
    bool has_memory = network != NULL;
    if (!has_memory) return bl_fmu_error(f, "%s", NO_MEMORY);
    for (int32_t k = 0; k < e->block_count; k++) {
        network[k] = k;
        if (clocked_host(e, k)) bl_network_leave(clocked_host(e, k));
    }
    join_blocks(e, network);
    for (int32_t k = 0; k < e->block_count && has_memory; k++)
        if (network[k] == k && clocked_host(e, k)) has_memory = make_network(e, network, k);
    for (int32_t k = 0; k < e->block_count && has_memory; k++)
        if (clocked_host(e, k)) clocked_host(e, k)->is_networked = 1;
    free(network);
    if (!has_memory) return bl_fmu_error(f, "%s", NO_MEMORY);
    f->is_networked = 1;
    return BL_OK;
}

/* ---- events */

static bool is_in_event(const network_member *m) { return m->f->mode == HOST_EVENTS && !m->f->ended; }

static int enter(network_member *m, double t) {
    const int status = WITHIN(m, m->f->fmi->enter_events(m->f, t));
    return status == BL_OK ? WITHIN(m, bl_clocks_activate(m->f, t)) : status;
}

static bool is_due(const network_member *m, double t) {
    return !m->f->ended && (m->f->next_event <= t + bl_slack(m->b->engine, t) || bl_clocks_due(m->f, t));
}

static bool has_active_clock(const network_member *m) {
    for (int32_t c = 0; c < bl_clocks_count(m->f); c++)
        if (bl_clocks_is_active(m->f, c)) return true;
    return false;
}

/* Whether a clock that leads to another member is active. */
static bool calls_others(const bl_fmu_network *net, int32_t member) {
    for (int32_t w = 0; w < net->wire_count; w++)
        if (net->wires[w].from == member && bl_clocks_is_active(net->members[member].f, net->wires[w].from_clock))
            return true;
    return false;
}

/* Activates clocks that are due, and those that active ones lead to. */
static int follow_wires(bl_fmu_network *net, double t, network_member **failed) {
    int status = BL_OK;
    for (int32_t w = 0; w < net->wire_count; w++) net->wires[w].was_followed = false;
    for (int32_t k = 0; k < net->count && status == BL_OK; k++) {
        network_member *m = *failed = &net->members[k];
        if (is_in_event(m) || is_due(m, t)) {
            m->needs_update |= is_due(m, t);
            status = enter(m, t);
        }
    }
    for (bool changed = true; changed && status == BL_OK;) {
        changed = false;
        for (int32_t k = 0; k < net->count && status == BL_OK; k++) {
            network_member *m = *failed = &net->members[k];
            if (is_in_event(m)) status = WITHIN(m, bl_clocks_look(m->b, m->f, t));
        }
        for (int32_t w = 0; w < net->wire_count && status == BL_OK; w++) {
            clock_wire *wire = &net->wires[w];
            network_member *to = &net->members[wire->to];
            if (wire->was_followed || !is_in_event(&net->members[wire->from]) ||
                !bl_clocks_is_active(net->members[wire->from].f, wire->from_clock))
                continue;
            wire->was_followed = changed = true;
            if (to->f->ended || bl_clocks_is_active(to->f, wire->to_clock)) continue;
            *failed = to;
            bl_clocks_request(to->f, wire->to_clock, t);
            status = enter(to, t);
        }
    }
    return status;
}

/* Whether a member that sends to this one now has not been read yet. */
static bool waits(const bl_fmu_network *net, int32_t member) {
    for (int32_t w = 0; w < net->wire_count; w++)
        if (net->wires[w].to == member && net->wires[w].was_followed && !net->members[net->wires[w].from].was_read)
            return true;
    return false;
}

/* The next member to be read; -1: none is left. */
static int32_t choose_member(const bl_fmu_network *net) {
    int32_t found = -1;
    for (int32_t k = 0; k < net->count; k++) {
        if (net->members[k].was_read) continue;
        if (!waits(net, k)) return k;
        if (found < 0 || net->members[k].taken_count < net->members[found].taken_count) found = k;
    }
    return found;
}

/* Sets clocked inputs and reads clocked outputs. */
static int transfer(bl_fmu_network *net, double t, network_member **failed) {
    int status = BL_OK;
    for (int32_t k = 0; k < net->count; k++) {
        net->members[k].was_read = !is_in_event(&net->members[k]);
        net->members[k].is_late = false;
    }
    for (int32_t k; status == BL_OK && (k = choose_member(net)) >= 0;) {
        network_member *m = *failed = &net->members[k];
        m->is_late = waits(net, k);
        if (!m->is_late) status = WITHIN(m, bl_clocks_set_inputs(m->b, m->f, t));
        if (status == BL_OK) status = WITHIN(m, bl_clocks_get_outputs(m->f, t));
        if (status == BL_OK) bl_clocks_show(m->f);
        m->was_read = true;
    }
    for (int32_t k = 0; k < net->count && status == BL_OK; k++) {
        network_member *m = &net->members[k];
        if (!m->is_late) continue;
        *failed = m;
        status = WITHIN(m, bl_clocks_set_inputs(m->b, m->f, t));
    }
    return status;
}

/* The FMU ends the simulation at t. At the end of the step its outputs are still a sample. */
static int end_simulation(network_member *m, double t, bool is_end) {
    bl_note_event(m->b, t, 0);
    if (!is_end) return bl_fmu_end_run(m->f, t);
    m->f->ended = 1;
    return BL_OK;
}

static int update_member(network_member *m, double t, bool is_end) {
    int more = 0, ended = 0;
    const int status = WITHIN(m, m->f->fmi->update_events(m->f, t, &more, &ended));
    if (status == BL_OK && ended) return end_simulation(m, t, is_end);
    /* A time event shortly after t, which the FMU does not count as one at t, is not requested again here: the next part ends there. */
    m->needs_update = more || m->f->next_event <= t || bl_clocks_due(m->f, t);
    return status;
}

/* One event of all members at t. */
static int handle_event(bl_fmu_network *net, double t, bool is_end, network_member **failed) {
    char names[LISTED_LENGTH] = "";
    int status = BL_OK;
    for (int32_t k = 0; k < net->count; k++) net->members[k].needs_update = is_in_event(&net->members[k]);
    for (int iteration = 0; iteration < LARGEST_ITERATIONS; iteration++) {
        bool is_settled = true;
        status = follow_wires(net, t, failed);
        if (status == BL_OK) status = transfer(net, t, failed);
        for (int32_t k = 0; k < net->count && status == BL_OK; k++) {
            network_member *m = *failed = &net->members[k];
            if (!is_in_event(m) || !(m->needs_update || has_active_clock(m))) continue;
            status = update_member(m, t, is_end);
            is_settled &= !m->needs_update;
        }
        for (int32_t k = 0; k < net->count && status == BL_OK && is_settled; k++) {
            network_member *m = *failed = &net->members[k];
            if (is_in_event(m)) status = WITHIN(m, m->f->fmi->enter_steps(m->f, t));
        }
        if (status != BL_OK || is_settled) return status;
    }
    for (int32_t k = 0; k < net->count; k++)
        if (net->members[k].needs_update) list_member(*failed = &net->members[k], names);
    (*failed)->f->mode = HOST_BROKEN;
    return bl_fmu_error((*failed)->f, "the clocks of %s still activate each other after %d iterations at t = %.9g",
                        names, LARGEST_ITERATIONS, t);
}

/* ---- steps */

/* An event of one member within a step of the others: stops where a clock that leads to another member is active. */
static int handle_alone(bl_fmu_network *net, int32_t member, double t, bool *calls) {
    network_member *m = &net->members[member];
    *calls = false;
    for (int iteration = 0; iteration < LARGEST_ITERATIONS; iteration++) {
        int status = enter(m, t);
        if (status == BL_OK) status = WITHIN(m, bl_clocks_look(m->b, m->f, t));
        if (status != BL_OK) return status;
        if ((*calls = calls_others(net, member))) return BL_OK;
        status = WITHIN(m, bl_clocks_set_inputs(m->b, m->f, t));
        if (status == BL_OK) status = WITHIN(m, bl_clocks_get_outputs(m->f, t));
        if (status == BL_OK) bl_clocks_show(m->f);
        if (status == BL_OK) status = update_member(m, t, false);
        if (status != BL_OK) return status;
        if (!m->needs_update) return WITHIN(m, m->f->fmi->enter_steps(m->f, t));
    }
    m->f->mode = HOST_BROKEN;
    return bl_fmu_error(m->f, "it requested more than %d iterations at t = %.9g", LARGEST_ITERATIONS, t);
}

/* Sets members before number `count` back to `start`, where one of them has passed t. Their events since `mark` have not been. */
static int return_to_start(bl_fmu_network *net, int32_t count, double start, double t, const bl_log_mark *mark,
                           network_member **failed) {
    for (int32_t k = 0; k < count; k++) {
        network_member *m = &net->members[k];
        if (m->f->ended) continue;
        if (!m->is_saved) {
            char caller[LISTED_LENGTH] = "";
            list_member(&net->members[count], caller);
            *failed = m;
            m->f->mode = HOST_BROKEN;
            return bl_fmu_error(m->f,
                                "a clock of %s is active at t = %.9g, within the step, where this FMU has passed it "
                                "and cannot return: its description has canGetAndSetFMUState = false. Take smaller "
                                "steps",
                                caller, t);
        }
        const int status = bl_fmu_restore_snapshot(m->b, 0);
        if (status != BL_OK) return *failed = m, status;
        bl_clocks_show(m->f);
        bl_forget_events(m->b, mark);
        m->reached = start;
    }
    return BL_OK;
}

/* Advances a member to *stop; *stop becomes earlier if the others must meet it there. */
static int step_member(bl_fmu_network *net, int32_t member, double *stop, double tiny) {
    network_member *m = &net->members[member];
    int status = BL_OK;
    for (int part = 0; m->reached < *stop - tiny && status == BL_OK && !m->f->ended; part++) {
        const double next = fmin(m->f->next_event, bl_clocks_next(m->f)), end = fmin(*stop, fmax(next, m->reached));
        int event = 0, ended = 0;
        bool calls = false;
        if (part >= LARGEST_PARTS) {
            m->f->mode = HOST_BROKEN;
            return bl_fmu_error(m->f, "its step has more than %d parts at t = %.9g", LARGEST_PARTS, m->reached);
        }
        if (end > m->reached) status = WITHIN(m, m->f->fmi->step_part(m->f, &m->reached, end, &event, &ended));
        if (status != BL_OK) return status;
        if (ended) return end_simulation(m, m->reached, false);
        if (event) bl_note_event(m->b, m->reached, 1);
        if (m->reached >= *stop - tiny) return event ? enter(m, m->reached) : BL_OK;
        if (!event && !is_due(m, m->reached)) continue;
        status = handle_alone(net, member, m->reached, &calls);
        if (calls) *stop = m->reached;
    }
    return status;
}

/* Advances all members from t to *stop, or to an earlier instant at which a clock is active. */
static int step_members(bl_fmu_network *net, double t, double *stop, double tiny, network_member **failed) {
    int status = BL_OK;
    int32_t callers = 0;
    bl_log_mark mark;
    bl_mark_log(net->members->b->engine, &mark);
    for (int32_t k = 0; k < net->count; k++) callers += net->members[k].triggers;
    for (int32_t k = 0; k < net->count && status == BL_OK; k++) {
        network_member *m = *failed = &net->members[k];
        m->reached = t;
        m->f->settled = t;
        m->f->oldest = INFINITY;
        m->is_saved = k + 1 < callers && m->f->flags & HOST_CAN_SAVE && !m->f->ended;
        if (m->is_saved) status = bl_fmu_save_snapshot(m->b, 0);
    }
    for (int32_t k = 0; k < net->count && status == BL_OK; k++) {
        const double before = *stop;
        *failed = &net->members[k];
        if (net->members[k].f->ended) continue;
        status = step_member(net, k, stop, tiny);
        if (status != BL_OK || !(*stop < before - tiny) || k == 0) continue;
        status = return_to_start(net, k, t, *stop, &mark, failed);
        for (int32_t j = 0; j < k && status == BL_OK; j++) {
            double end = *stop;
            *failed = &net->members[j];
            if (net->members[j].f->ended) continue;
            status = step_member(net, j, &end, tiny);
            if (status == BL_OK && end < *stop - tiny) {
                net->members[j].f->mode = HOST_BROKEN;
                status = bl_fmu_error(net->members[j].f,
                                      "repeated from t = %.9g, its step has an event at t = %.9g that it did not have",
                                      t, end);
            }
        }
    }
    return status;
}

/* The reason of a failure is that of the block that the engine advances. */
static int report(bl_fmu_host *f, const network_member *failed, int status) {
    if (status == BL_OK || failed->f == f) return status;
    snprintf(f->reason, sizeof f->reason, "`%.200s`: %.1500s", path_of(failed), failed->f->reason);
    return status;
}

static int refuse(bl_fmu_host *f, const char *problem) { return bl_fmu_error(f, "%s", problem); }

int bl_network_begin(bl_fmu_host *f, double t) {
    bl_fmu_network *net = f->network;
    network_member *failed = net->members;
    if (net->problem[0]) return refuse(f, net->problem);
    for (int32_t k = 0; k < net->count; k++)
        if (net->members[k].f->mode != HOST_EVENTS) return BL_OK;
    const int status = handle_event(net, t, true, &failed);
    return report(f, failed, status);
}

/* Inputs of all members as at the start of the step. */
static int set_inputs(bl_fmu_network *net, double t, network_member **failed) {
    int status = BL_OK;
    for (int32_t k = 0; k < net->count && status == BL_OK; k++) {
        network_member *m = *failed = &net->members[k];
        if (m->f->ended) return bl_fmu_end_run(m->f, t);
        bl_clocks_trigger(m->b, m->f, t);
        status = WITHIN(m, bl_fmu_set_values(m->b, m->f, &m->f->direct, t));
        if (status == BL_OK) status = WITHIN(m, bl_fmu_set_values(m->b, m->f, &m->f->delayed, t));
    }
    return status;
}

int bl_network_advance(const bl_block *b, bl_fmu_host *f, double t, double dt) {
    bl_fmu_network *net = f->network;
    network_member *failed = net->members;
    if (net->problem[0]) return refuse(f, net->problem);
    if (b->index != net->leader) return BL_OK;
    const double end = t + dt, tiny = fmax(1e-9 * dt, 4e-16 * fabs(end));
    double now = t;
    for (int32_t k = 0; k < net->count; k++) bl_clocks_note_shown(net->members[k].f);
    int status = set_inputs(net, t, &failed);
    if (status == BL_OK) status = handle_event(net, t, false, &failed);
    for (int part = 0; status == BL_OK && now < end - tiny; part++) {
        double stop = end;
        if (part >= LARGEST_PARTS) {
            failed->f->mode = HOST_BROKEN;
            status = bl_fmu_error(failed->f,
                                  "the step of the FMUs whose clocks are connected to it has more than %d "
                                  "parts at t = %.9g. Look at the intervals of their clocks, or take smaller steps",
                                  LARGEST_PARTS, now);
            break;
        }
        for (int32_t k = 0; k < net->count; k++) {
            const bl_fmu_host *one = net->members[k].f;
            const double next = fmin(one->next_event, bl_clocks_next(one));
            if (!one->ended && next < stop - tiny) stop = fmax(next, now + tiny);
        }
        status = step_members(net, now, &stop, tiny, &failed);
        now = stop;
        if (status == BL_OK) status = handle_event(net, now, now >= end - tiny, &failed);
    }
    for (int32_t k = 0; k < net->count; k++) {
        net->members[k].f->time = end;
        bl_clocks_show_noted(net->members[k].f); /* the outputs of the next tick show what has happened */
    }
    return report(f, failed, status);
}
