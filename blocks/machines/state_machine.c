/* StateMachine: hierarchical states, parallel regions, history; guards and actions are formulas.
 *
 * States form a tree. An exclusive state has one active child, a parallel one has all of them active (its children, the regions, are
 * exclusive), a leaf has none; state 0 is the root, which is exclusive or parallel. docs/guides/state_machines.md defines the semantics.
 *
 * One step, at a sample hit or at a located event: from the root down, the transitions of an active state are tried in order, outer
 * states first; the first enabled one is taken, else `during` is run and the children follow. Local events that were emitted
 * then enable transitions in further rounds of the same step.
 *
 * i: a head of MACHINE_HEAD counts, the records of states and transitions, the children, the words of programs, the edges of events,
 * the initial values of variables, in two words each. p: parameters of formulas.
 * u: events first, then the signals. y: the variables that are shown, then one number for each region that is shown.
 * z: see machine_view. A program reads u, then port u_count: the variables, and port u_count + 1: the time in the state whose
 * transition or action it is; it stores to port 0, the variables, or to port 1, the verdict of a guard. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "blocks/core/formula/formula.h"
#include "blocks/core/kernel/kernel.h"

BL_SHARED enum { MACHINE_LEAF, MACHINE_EXCLUSIVE, MACHINE_PARALLEL, MACHINE_TYPES };
BL_SHARED enum { MACHINE_NO_HISTORY, MACHINE_SHALLOW, MACHINE_DEEP, MACHINE_HISTORIES };
BL_SHARED enum { MACHINE_RISING, MACHINE_FALLING, MACHINE_EITHER, MACHINE_EDGES };

BL_SHARED enum {
    MACHINE_STATES,
    MACHINE_TRANSITIONS,
    MACHINE_CHILDREN,
    MACHINE_WORDS,
    MACHINE_VARIABLES,
    MACHINE_EVENTS,      /* event inputs */
    MACHINE_PULSES,      /* variables that are 0 at the start of a step: emitted events, the shown ones first */
    MACHINE_LOCAL_FIRST, /* of the pulses, the first local event */
    MACHINE_SHOWN,       /* variables that are outputs */
    MACHINE_REGIONS,     /* regions that are shown */
    MACHINE_FEEDTHROUGH, /* 1: outputs are those after the step at this tick */
    MACHINE_USES_ELAPSED,
    MACHINE_HEAD
};

/* A program is a first word and a count. */
BL_SHARED enum {
    MACHINE_STATE_PARENT,
    MACHINE_STATE_TYPE,
    MACHINE_STATE_INITIAL, /* child that is entered by default */
    MACHINE_STATE_HISTORY,
    MACHINE_STATE_CHILD, /* its children: first place in the list, and count */
    MACHINE_STATE_CHILD_COUNT,
    MACHINE_STATE_OUT, /* its transitions: the first, and count */
    MACHINE_STATE_OUT_COUNT,
    MACHINE_STATE_ENTRY,
    MACHINE_STATE_ENTRY_COUNT,
    MACHINE_STATE_DURING,
    MACHINE_STATE_DURING_COUNT,
    MACHINE_STATE_EXIT,
    MACHINE_STATE_EXIT_COUNT,
    MACHINE_STATE_FLAG,   /* variable that is 1 while it is active; -1: none */
    MACHINE_STATE_REGION, /* shown region that its number belongs to; -1: none */
    MACHINE_STATE_NUMBER,
    MACHINE_STATE_FIELDS
};

BL_SHARED enum {
    MACHINE_OUT_SOURCE,
    MACHINE_OUT_TARGET, /* -1: the state is not left */
    MACHINE_OUT_SCOPE,  /* exclusive state whose active child is left */
    MACHINE_OUT_EVENT,  /* event input, or count of these + local event; -1: none */
    MACHINE_OUT_GUARD,
    MACHINE_OUT_GUARD_COUNT, /* 0: always true */
    MACHINE_OUT_ACTION,
    MACHINE_OUT_ACTION_COUNT,
    MACHINE_OUT_FIELDS
};

BL_SHARED enum { MACHINE_DEEPEST = 32, MACHINE_MOST_INPUTS = 256, MACHINE_MOST_ROUNDS = 32 };

typedef struct {
    const bl_block *b;
    const int32_t *head, *states, *transitions, *children, *words;
    double *started; /* whether the initial states were entered */
    double *before; /* event inputs at the last step */
    double *current, *last; /* of each exclusive state, its active child and the last one that was active; -1: none */
    double *since; /* of each state, when it was entered */
    double *variables;
    const double *ports[MACHINE_MOST_INPUTS + 2];
    double *stores[2], elapsed, verdict, t;
    double events[MACHINE_MOST_INPUTS]; /* event inputs, then local events, that occur in this round */
    bool only_events; /* whether only transitions with an event are tried, and no `during` is run */
    bool is_event; /* whether the step is at a located event: then no `during` is run */
} machine_view;

static int64_t machine_memory(const int32_t *head) {
    return 1 + (int64_t)head[MACHINE_EVENTS] + 3 * (int64_t)head[MACHINE_STATES] + head[MACHINE_VARIABLES];
}

static const int32_t *state_record(const machine_view *m, int32_t s) { return m->states + s * MACHINE_STATE_FIELDS; }

static void machine_open(const bl_block *b, double *memory, double t, machine_view *m) {
    const int32_t *head = b->i;
    m->b = b;
    m->head = head;
    m->states = head + MACHINE_HEAD;
    m->transitions = m->states + head[MACHINE_STATES] * MACHINE_STATE_FIELDS;
    m->children = m->transitions + head[MACHINE_TRANSITIONS] * MACHINE_OUT_FIELDS;
    m->words = m->children + head[MACHINE_CHILDREN];
    m->t = t;
    m->only_events = m->is_event = false;
    if (!memory) return; /* only the tables are read */
    m->started = memory;
    m->before = memory + 1;
    m->current = m->before + head[MACHINE_EVENTS];
    m->last = m->current + head[MACHINE_STATES];
    m->since = m->last + head[MACHINE_STATES];
    m->variables = m->since + head[MACHINE_STATES];
    for (int32_t k = 0; k < b->u_count; k++) m->ports[k] = b->u[k];
    m->ports[b->u_count] = m->variables;
    m->ports[b->u_count + 1] = &m->elapsed;
    m->stores[0] = m->variables;
    m->stores[1] = &m->verdict;
}

/* A child as it is saved: a deserialized state may hold any value. */
static int32_t saved_child(const machine_view *m, const double *saved, int32_t s) {
    const double child = saved[s];
    if (!(child >= 0.0 && child < (double)m->head[MACHINE_STATES])) return -1;
    return state_record(m, (int32_t)child)[MACHINE_STATE_PARENT] == s ? (int32_t)child : -1;
}

static const bl_modes MACHINE_UNLOCATED = {0};

static void run_program(machine_view *m, int32_t s, int32_t first, int32_t count, const bl_modes *modes) {
    if (count == 0) return;
    m->verdict = 0.0;
    if (m->head
            [MACHINE_USES_ELAPSED]) { /* at a sample a whole number of sample times; within a step not rounded, so that waits end on time */
        const double elapsed = m->t - m->since[s], ticks = nearbyint(elapsed / m->b->dt);
        const bool is_whole = fabs(elapsed - ticks * m->b->dt) <= 1e-6 * m->b->dt;
        m->elapsed = is_whole && !m->is_event && !*m->b->integrates ? ticks * m->b->dt : elapsed;
    }
    bl_formula_run(m->words + first, count, m->t, m->ports, m->b->p, m->stores, modes);
}

static void run_actions(machine_view *m, int32_t s, int field) {
    const int32_t *state = state_record(m, s);
    run_program(m, s, state[field], state[field + 1], &MACHINE_UNLOCATED);
}

static void leave(machine_view *m, int32_t s) {
    const int32_t *state = state_record(m, s);
    if (state[MACHINE_STATE_TYPE] == MACHINE_EXCLUSIVE) {
        const int32_t child = saved_child(m, m->current, s);
        if (child >= 0) leave(m, child);
        m->current[s] = -1.0;
    } else if (state[MACHINE_STATE_TYPE] == MACHINE_PARALLEL) {
        for (int32_t k = state[MACHINE_STATE_CHILD_COUNT]; k-- > 0;)
            leave(m, m->children[state[MACHINE_STATE_CHILD] + k]);
    }
    run_actions(m, s, MACHINE_STATE_EXIT);
    if (state[MACHINE_STATE_FLAG] >= 0) m->variables[state[MACHINE_STATE_FLAG]] = 0.0;
}

/* Enters a state and, below it, `path`, if `path` is a descendant; else what is entered by default. */
static void enter(machine_view *m, int32_t s, int32_t path, bool deep);

/* The child of s toward a descendant of s; -1 if it is none. */
static int32_t child_toward(const machine_view *m, int32_t s, int32_t below) {
    while (below > s) {
        const int32_t parent = state_record(m, below)[MACHINE_STATE_PARENT];
        if (parent == s) return below;
        below = parent;
    }
    return -1;
}

static void enter_children(machine_view *m, int32_t s, int32_t path, bool deep) {
    const int32_t *state = state_record(m, s);
    if (state[MACHINE_STATE_TYPE] == MACHINE_PARALLEL) {
        for (int32_t k = 0; k < state[MACHINE_STATE_CHILD_COUNT]; k++)
            enter(m, m->children[state[MACHINE_STATE_CHILD] + k], path, deep);
    } else if (state[MACHINE_STATE_TYPE] == MACHINE_EXCLUSIVE) {
        const int32_t history = state[MACHINE_STATE_HISTORY], toward = child_toward(m, s, path),
                      before = deep || history != MACHINE_NO_HISTORY ? saved_child(m, m->last, s) : -1,
                      child = toward >= 0   ? toward
                              : before >= 0 ? before
                                            : state[MACHINE_STATE_INITIAL];
        m->current[s] = m->last[s] = (double)child;
        enter(m, child, path, toward < 0 && (deep || history == MACHINE_DEEP));
    }
}

static void enter(machine_view *m, int32_t s, int32_t path, bool deep) {
    const int32_t *state = state_record(m, s);
    m->since[s] = m->t;
    if (state[MACHINE_STATE_FLAG] >= 0) m->variables[state[MACHINE_STATE_FLAG]] = 1.0;
    run_actions(m, s, MACHINE_STATE_ENTRY);
    enter_children(m, s, path, deep);
}

/* A guard that compares an element of an input with a number, as most do, is evaluated without the stack machine: 1 or 0; -1 if it
   is not of that form. Its words: INPUT port element, CONSTANT low high, the comparison, STORE port element. */
static int compare_at_once(const machine_view *m, const int32_t *code, int32_t count) {
    if (count != 10 || code[0] != BL_FORMULA_INPUT || code[3] != BL_FORMULA_CONSTANT || code[7] != BL_FORMULA_STORE ||
        code[8] != 1 || code[1] > m->b->u_count) /* the time in a state is computed by run_program */
        return -1;
    const double v = m->ports[code[1]][code[2]], limit = bl_formula_constant(code + 4);
    switch (code[6]) {
        case BL_FORMULA_LESS: return v < limit;
        case BL_FORMULA_LESS_EQUAL: return v <= limit;
        case BL_FORMULA_GREATER_EQUAL: return v >= limit;
        case BL_FORMULA_GREATER: return v > limit;
        default: return -1;
    }
}

static bool is_enabled(machine_view *m, const int32_t *out) {
    const int32_t event = out[MACHINE_OUT_EVENT], first = out[MACHINE_OUT_GUARD], count = out[MACHINE_OUT_GUARD_COUNT];
    if (event >= 0 ? m->events[event] == 0.0 : m->only_events) return false;
    if (count == 0) return true;
    const bl_modes *modes = &m->b->modes;
    if (!modes->mode) {
        const int verdict = compare_at_once(m, m->words + first, count);
        if (verdict >= 0) return verdict;
        run_program(m, out[MACHINE_OUT_SOURCE], first, count, &MACHINE_UNLOCATED);
    } else { /* every transition has as many crossing functions as the one with the most */
        const int64_t place =
            (out - m->transitions) / MACHINE_OUT_FIELDS * (m->b->crossing_count / m->head[MACHINE_TRANSITIONS]);
        bl_modes own = *modes;
        own.mode += place;
        own.crossing += place;
        run_program(m, out[MACHINE_OUT_SOURCE], first, count, &own);
    }
    return m->verdict != 0.0;
}

static void take_transition(machine_view *m, const int32_t *out) {
    const int32_t scope = out[MACHINE_OUT_SCOPE], target = out[MACHINE_OUT_TARGET], source = out[MACHINE_OUT_SOURCE];
    const int32_t child = target >= 0 ? saved_child(m, m->current, scope) : -1;
    if (child >= 0) leave(m, child);
    run_program(m, source, out[MACHINE_OUT_ACTION], out[MACHINE_OUT_ACTION_COUNT], &MACHINE_UNLOCATED);
    if (target < 0) return;
    const int32_t next = child_toward(m, scope, target);
    m->current[scope] = m->last[scope] = (double)next;
    enter(m, next, target, false);
}

/* Tries the transitions of an active state and of what is active below it; returns whether the state was left, or one around it:
   then `scope` is the exclusive state whose child has changed. */
static int32_t process(machine_view *m, int32_t s, bool *changed) {
    const int32_t *state = state_record(m, s);
    for (int32_t k = 0; k < state[MACHINE_STATE_OUT_COUNT]; k++) {
        const int32_t *out = m->transitions + (state[MACHINE_STATE_OUT] + k) * MACHINE_OUT_FIELDS;
        if (!is_enabled(m, out)) continue;
        take_transition(m, out);
        *changed = true;
        return out[MACHINE_OUT_TARGET] >= 0 ? out[MACHINE_OUT_SCOPE] : s;
    }
    if (!m->only_events && !m->is_event) run_actions(m, s, MACHINE_STATE_DURING);
    if (state[MACHINE_STATE_TYPE] == MACHINE_EXCLUSIVE) {
        const int32_t child = saved_child(m, m->current, s);
        if (child >= 0) return process(m, child, changed);
    } else if (state[MACHINE_STATE_TYPE] == MACHINE_PARALLEL) {
        for (int32_t k = 0; k < state[MACHINE_STATE_CHILD_COUNT]; k++) {
            const int32_t scope = process(m, m->children[state[MACHINE_STATE_CHILD] + k], changed);
            if (scope < s) return scope; /* this state was left: the other regions are not active anymore */
        }
    }
    return s;
}

static void find_events(machine_view *m) {
    const bl_block *b = m->b;
    for (int32_t k = 0; k < m->head[MACHINE_EVENTS]; k++) {
        const bool now = b->u[k][0] != 0.0, before = m->before[k] != 0.0;
        const int32_t edge = m->words[m->head[MACHINE_WORDS] + k];
        m->events[k] =
            *m->started != 0.0 && now != before && (edge == MACHINE_EITHER || now == (edge == MACHINE_RISING));
        m->before[k] = now;
    }
}

/* Moves emitted local events to those of the next round; returns whether there are any. */
static bool take_local_events(machine_view *m) {
    const int32_t inputs = m->head[MACHINE_EVENTS], first = m->head[MACHINE_LOCAL_FIRST],
                  count = m->head[MACHINE_PULSES] - first;
    bool any = false;
    for (int32_t k = 0; k < inputs; k++) m->events[k] = 0.0;
    for (int32_t k = 0; k < count; k++) {
        m->events[inputs + k] = m->variables[first + k];
        any = any || m->variables[first + k] != 0.0;
        m->variables[first + k] = 0.0;
    }
    return any;
}

static const double PULSE_PENDING = 2.0; /* emitted at a located event, and not yet shown at a tick */

static int machine_step(machine_view *m, bool *changed) {
    const int32_t events = m->head[MACHINE_EVENTS], pulses = m->head[MACHINE_PULSES],
                  local = m->head[MACHINE_LOCAL_FIRST];
    /* An event that was emitted between two ticks is shown at the next one, too. */
    for (int32_t k = 0; k < pulses; k++)
        m->variables[k] = k < local && m->variables[k] == PULSE_PENDING ? (m->is_event ? PULSE_PENDING : 1.0) : 0.0;
    memset(m->events, 0, (size_t)(events + pulses) * sizeof(double));
    find_events(m);
    *changed = false;
    if (*m->started == 0.0) {
        *m->started = 1.0;
        *changed = true;
        enter(m, 0, 0, false);
    } else {
        (void)process(m, 0, changed);
    }
    m->only_events = true;
    for (int round = 0; take_local_events(m); round++) {
        if (round == MACHINE_MOST_ROUNDS)
            return bl_log_error(m->b, "local events emit each other without end: %d rounds at t = %.9g s",
                                MACHINE_MOST_ROUNDS, m->t);
        (void)process(m, 0, changed);
    }
    for (int32_t k = 0; m->is_event && k < local; k++)
        if (m->variables[k] != 0.0) m->variables[k] = PULSE_PENDING;
    return BL_OK;
}

/* Numbers of the active states. Those of a region are from 2: 1 is that of one that is not active. The root's are from 1. */
static void show_active(const machine_view *m, int32_t s) {
    const int32_t *state = state_record(m, s);
    if (state[MACHINE_STATE_REGION] >= 0)
        m->b->y[m->head[MACHINE_SHOWN] + state[MACHINE_STATE_REGION]][0] = (double)state[MACHINE_STATE_NUMBER];
    if (state[MACHINE_STATE_TYPE] == MACHINE_EXCLUSIVE) {
        const int32_t child = saved_child(m, m->current, s);
        if (child >= 0) show_active(m, child);
    } else if (state[MACHINE_STATE_TYPE] == MACHINE_PARALLEL) {
        for (int32_t k = 0; k < state[MACHINE_STATE_CHILD_COUNT]; k++)
            show_active(m, m->children[state[MACHINE_STATE_CHILD] + k]);
    }
}

static void show(const machine_view *m) {
    const bl_block *b = m->b;
    const int32_t shown = m->head[MACHINE_SHOWN], pulses = m->head[MACHINE_PULSES],
                  local = m->head[MACHINE_LOCAL_FIRST];
    for (int32_t k = 0; k < local; k++) b->y[k][0] = m->variables[k] != 0.0;
    for (int32_t k = local; k < shown; k++) b->y[k][0] = m->variables[pulses + k - local];
    for (int32_t k = 0; k < m->head[MACHINE_REGIONS]; k++) b->y[shown + k][0] = 1.0;
    show_active(m, 0);
}

/* Whether a step would change nothing: no event occurs, no transition of an active state is enabled, no `during` is run. */
static bool is_quiet(machine_view *m, int32_t s) {
    const int32_t *state = state_record(m, s);
    if (state[MACHINE_STATE_DURING_COUNT] > 0 && !m->is_event) return false;
    for (int32_t k = 0; k < state[MACHINE_STATE_OUT_COUNT]; k++)
        if (is_enabled(m, m->transitions + (state[MACHINE_STATE_OUT] + k) * MACHINE_OUT_FIELDS)) return false;
    if (state[MACHINE_STATE_TYPE] == MACHINE_EXCLUSIVE) {
        const int32_t child = saved_child(m, m->current, s);
        return child < 0 || is_quiet(m, child);
    }
    for (int32_t k = 0; k < state[MACHINE_STATE_CHILD_COUNT]; k++)
        if (!is_quiet(m, m->children[state[MACHINE_STATE_CHILD] + k])) return false;
    return true;
}

static bool stays(machine_view *m) {
    const int32_t events = m->head[MACHINE_EVENTS], pulses = m->head[MACHINE_PULSES];
    if (*m->started == 0.0) return false;
    for (int32_t k = 0; k < events; k++)
        if ((m->b->u[k][0] != 0.0) != (m->before[k] != 0.0)) return false;
    for (int32_t k = 0; k < pulses; k++)
        if (m->variables[k] != 0.0) return false;
    memset(m->events, 0, (size_t)(events + pulses) * sizeof(double));
    return is_quiet(m, 0);
}

/* Whether a count of records, or a range of them, lies within `end`. */
static bool is_range(int64_t first, int64_t count, int64_t end) {
    return first >= 0 && count >= 0 && first <= end && count <= end - first;
}

/* What programs reach: guards store their verdict only, actions store variables only. `words` counts those of all programs. */
typedef struct {
    bl_formula_reach guard, action;
    int64_t words;
} machine_reach;

static bool check_program(const machine_view *m, const int32_t *range, const bl_formula_reach *reach, int64_t *words) {
    /* Programs do not overlap: else the time to check them would grow with their number times their length. */
    *words += range[1];
    return *words <= m->head[MACHINE_WORDS] && is_range(range[0], range[1], m->head[MACHINE_WORDS]) &&
           (range[1] == 0 || bl_formula_check(m->words + range[0], range[1], reach));
}

static bool is_within(const machine_view *m, int32_t s, int32_t ancestor) { return child_toward(m, ancestor, s) >= 0; }

static bool check_state(const machine_view *m, int32_t s, machine_reach *reach) {
    const int32_t *head = m->head, *state = state_record(m, s);
    const int32_t type = state[MACHINE_STATE_TYPE], first = state[MACHINE_STATE_CHILD],
                  count = state[MACHINE_STATE_CHILD_COUNT], parent = state[MACHINE_STATE_PARENT];
    int32_t depth = 0;
    for (int32_t up = parent; up >= 0; up = state_record(m, up)[MACHINE_STATE_PARENT])
        if (++depth > MACHINE_DEEPEST) return false;
    if (type < 0 || type >= MACHINE_TYPES || state[MACHINE_STATE_HISTORY] < 0 ||
        state[MACHINE_STATE_HISTORY] >= MACHINE_HISTORIES || !is_range(first, count, head[MACHINE_CHILDREN]) ||
        (type == MACHINE_LEAF) != (count == 0))
        return false;
    for (int32_t k = 0; k < count; k++) { /* in order, each once: the walks over the tree visit a state once */
        const int32_t child = m->children[first + k];
        if (child <= (k > 0 ? m->children[first + k - 1] : s) || child >= head[MACHINE_STATES] ||
            state_record(m, child)[MACHINE_STATE_PARENT] != s)
            return false;
        if (type == MACHINE_PARALLEL && state_record(m, child)[MACHINE_STATE_TYPE] != MACHINE_EXCLUSIVE) return false;
    }
    const int32_t initial = state[MACHINE_STATE_INITIAL];
    if (type == MACHINE_EXCLUSIVE &&
        (initial <= s || initial >= head[MACHINE_STATES] || state_record(m, initial)[MACHINE_STATE_PARENT] != s))
        return false;
    if (!is_range(state[MACHINE_STATE_OUT], state[MACHINE_STATE_OUT_COUNT], head[MACHINE_TRANSITIONS])) return false;
    for (int32_t k = 0; k < state[MACHINE_STATE_OUT_COUNT]; k++)
        if (m->transitions[(state[MACHINE_STATE_OUT] + k) * MACHINE_OUT_FIELDS + MACHINE_OUT_SOURCE] != s) return false;
    if (state[MACHINE_STATE_FLAG] < -1 || state[MACHINE_STATE_FLAG] >= head[MACHINE_VARIABLES]) return false;
    if (state[MACHINE_STATE_REGION] < -1 || state[MACHINE_STATE_REGION] >= head[MACHINE_REGIONS] ||
        (state[MACHINE_STATE_REGION] >= 0 && parent < 0))
        return false;
    return check_program(m, state + MACHINE_STATE_ENTRY, &reach->action, &reach->words) &&
           check_program(m, state + MACHINE_STATE_DURING, &reach->action, &reach->words) &&
           check_program(m, state + MACHINE_STATE_EXIT, &reach->action, &reach->words);
}

static bool check_transition(const machine_view *m, const int32_t *out, machine_reach *reach) {
    const int32_t *head = m->head;
    const int32_t states = head[MACHINE_STATES], source = out[MACHINE_OUT_SOURCE], target = out[MACHINE_OUT_TARGET],
                  scope = out[MACHINE_OUT_SCOPE],
                  events = head[MACHINE_EVENTS] + head[MACHINE_PULSES] - head[MACHINE_LOCAL_FIRST];
    if (source < 0 || source >= states || target < -1 || target >= states || scope < 0 || scope >= states ||
        out[MACHINE_OUT_EVENT] < -1 || out[MACHINE_OUT_EVENT] >= events)
        return false;
    if (target >= 0 && (state_record(m, scope)[MACHINE_STATE_TYPE] != MACHINE_EXCLUSIVE ||
                        !is_within(m, source, scope) || !is_within(m, target, scope)))
        return false;
    return check_program(m, out + MACHINE_OUT_GUARD, &reach->guard, &reach->words) &&
           check_program(m, out + MACHINE_OUT_ACTION, &reach->action, &reach->words);
}

/* Crossing functions of the guard that has the most. */
static int32_t most_crossings(const machine_view *m) {
    int32_t most = 0;
    for (int32_t k = 0; k < m->head[MACHINE_TRANSITIONS]; k++) {
        const int32_t *out = m->transitions + k * MACHINE_OUT_FIELDS,
                      count = bl_formula_crossings(m->words + out[MACHINE_OUT_GUARD], out[MACHINE_OUT_GUARD_COUNT]);
        if (count > most) most = count;
    }
    return most;
}

static int state_machine_check(const bl_block *b) {
    if (b->i_count < MACHINE_HEAD) return 0;
    const int32_t *head = b->i;
    for (int k = 0; k < MACHINE_HEAD; k++)
        if (head[k] < 0 || head[k] > 1 << 20) return 0;
    const int64_t words = MACHINE_HEAD + (int64_t)head[MACHINE_STATES] * MACHINE_STATE_FIELDS +
                          (int64_t)head[MACHINE_TRANSITIONS] * MACHINE_OUT_FIELDS + head[MACHINE_CHILDREN];
    const int32_t local = head[MACHINE_LOCAL_FIRST], pulses = head[MACHINE_PULSES], variables = head[MACHINE_VARIABLES];
    if (words + head[MACHINE_WORDS] + head[MACHINE_EVENTS] + 2 * (int64_t)head[MACHINE_VARIABLES] != b->i_count ||
        head[MACHINE_STATES] < 1 || local > pulses || pulses > variables || head[MACHINE_SHOWN] < local ||
        head[MACHINE_SHOWN] - local > variables - pulses || b->y_count != head[MACHINE_SHOWN] + head[MACHINE_REGIONS] ||
        b->u_count < head[MACHINE_EVENTS] || b->x_count != 0 || b->u_count > MACHINE_MOST_INPUTS ||
        head[MACHINE_EVENTS] + pulses > MACHINE_MOST_INPUTS)
        return 0;
    for (int32_t k = 0; k < b->y_count; k++)
        if (b->y_width[k] != 1) return 0;
    int32_t widths[MACHINE_MOST_INPUTS + 2];
    for (int32_t k = 0; k < b->u_count; k++) {
        if (k < head[MACHINE_EVENTS] && b->u_width[k] != 1) return 0;
        widths[k] = b->u_width[k];
    }
    widths[b->u_count] = variables;
    widths[b->u_count + 1] = 1;
    /* A program that reads the time in a state needs it to be computed. */
    const int32_t variables_only[2] = {variables, 0}, verdict_only[2] = {0, 1},
                  ports = b->u_count + 1 + (head[MACHINE_USES_ELAPSED] != 0);
    machine_reach reach = {.guard = {.u_width = widths, .y_width = verdict_only, .u_count = ports, .y_count = 2},
                           .action = {.u_width = widths, .y_width = variables_only, .u_count = ports, .y_count = 2}};
    reach.guard.p_count = reach.action.p_count = b->p_count;
    machine_view m;
    machine_open(b, NULL, 0.0, &m);
    for (int32_t s = 0; s < head[MACHINE_STATES]; s++) { /* parents come first: nothing below walks in circles */
        const int32_t parent = state_record(&m, s)[MACHINE_STATE_PARENT];
        if (s == 0 ? parent != -1 : parent < 0 || parent >= s) return 0;
    }
    for (int32_t s = 0; s < head[MACHINE_STATES]; s++)
        if (!check_state(&m, s, &reach)) return 0;
    for (int32_t k = 0; k < head[MACHINE_TRANSITIONS]; k++)
        if (!check_transition(&m, m.transitions + k * MACHINE_OUT_FIELDS, &reach)) return 0;
    if ((int64_t)most_crossings(&m) * head[MACHINE_TRANSITIONS] > 1 << 20) return 0;
    for (int32_t k = 0; k < head[MACHINE_EVENTS]; k++)
        if (m.words[head[MACHINE_WORDS] + k] < 0 || m.words[head[MACHINE_WORDS] + k] >= MACHINE_EDGES) return 0;
    return 1;
}

static bl_sizes state_machine_sizes(const bl_block *b) {
    return (bl_sizes){.memory = machine_memory(b->i), .scratch = machine_memory(b->i)};
}

/* The initial states are shown from the start; they are entered, with their actions, by the first step. */
static void set_initial(machine_view *m, int32_t s) {
    const int32_t *state = state_record(m, s);
    if (state[MACHINE_STATE_TYPE] == MACHINE_EXCLUSIVE) {
        m->current[s] = (double)state[MACHINE_STATE_INITIAL];
        set_initial(m, state[MACHINE_STATE_INITIAL]);
    } else if (state[MACHINE_STATE_TYPE] == MACHINE_PARALLEL) {
        for (int32_t k = 0; k < state[MACHINE_STATE_CHILD_COUNT]; k++)
            set_initial(m, m->children[state[MACHINE_STATE_CHILD] + k]);
    }
}

static int state_machine_init(bl_block *b, double t) {
    machine_view m;
    machine_open(b, b->z, t, &m);
    memset(b->z, 0, (size_t)b->z_count * sizeof(double));
    for (int32_t s = 0; s < m.head[MACHINE_STATES]; s++) m.current[s] = m.last[s] = -1.0;
    const int32_t *initial = m.words + m.head[MACHINE_WORDS] + m.head[MACHINE_EVENTS];
    for (int32_t k = 0; k < m.head[MACHINE_VARIABLES]; k++) m.variables[k] = bl_formula_constant(initial + 2 * k);
    set_initial(&m, 0);
    return BL_OK;
}

static int state_machine_output(bl_block *b, double t) {
    machine_view m;
    machine_open(b, b->z, t, &m);
    const bool is_event = m.is_event = *b->offset != 0.0 || *b->integrates;
    /* While a step is integrated, the machine stays in the states of its start. Modes that are kept at a tick, for a linearization, are
       those of guards that have been decided: the step of the tick is taken with them. */
    const bool is_kept = *b->integrates && !(b->modes.mode && *b->modes.decision == BL_DECIDE);
    if (b->i[MACHINE_FEEDTHROUGH] && !is_kept && !stays(&m)) {
        bool changed;
        memcpy(b->w, b->z, (size_t)b->z_count * sizeof(double));
        machine_open(b, b->w, t, &m);
        m.is_event = is_event;
        const int status = machine_step(&m, &changed);
        if (status != BL_OK) return status;
    }
    show(&m);
    return BL_OK;
}

static int state_machine_update(bl_block *b, double t) {
    machine_view m;
    bool changed;
    machine_open(b, b->z, t, &m);
    return stays(&m) ? BL_OK : machine_step(&m, &changed);
}

static int state_machine_event(bl_block *b, double t) {
    machine_view m;
    bool changed;
    machine_open(b, b->z, t, &m);
    m.is_event = true;
    if (stays(&m)) return BL_UNCHANGED;
    const int status = machine_step(&m, &changed);
    return status != BL_OK || changed ? status : BL_UNCHANGED;
}

static int32_t state_machine_crossing_count(const bl_block *b) {
    machine_view m;
    machine_open(b, NULL, 0.0, &m);
    return m.head[MACHINE_TRANSITIONS] * most_crossings(&m);
}

/* Guards of active states, but for those that wait for an event. */
static void evaluate_guards(machine_view *m, int32_t s) {
    const int32_t *state = state_record(m, s);
    for (int32_t k = 0; k < state[MACHINE_STATE_OUT_COUNT]; k++) {
        const int32_t *out = m->transitions + (state[MACHINE_STATE_OUT] + k) * MACHINE_OUT_FIELDS;
        if (out[MACHINE_OUT_EVENT] < 0) (void)is_enabled(m, out);
    }
    if (state[MACHINE_STATE_TYPE] == MACHINE_EXCLUSIVE) {
        const int32_t child = saved_child(m, m->current, s);
        if (child >= 0) evaluate_guards(m, child);
    } else if (state[MACHINE_STATE_TYPE] == MACHINE_PARALLEL) {
        for (int32_t k = 0; k < state[MACHINE_STATE_CHILD_COUNT]; k++)
            evaluate_guards(m, m->children[state[MACHINE_STATE_CHILD] + k]);
    }
}

static int state_machine_crossings(bl_block *b, double t) {
    machine_view m;
    machine_open(b, b->z, t, &m);
    for (int32_t k = 0; k < b->crossing_count; k++) b->modes.crossing[k] = 1.0;
    evaluate_guards(&m, 0);
    return BL_OK;
}

/* Ticks run `during`, and end the pulses of events that are sent. */
static int state_machine_needs_ticks(const bl_block *b) {
    machine_view m;
    machine_open(b, NULL, 0.0, &m);
    if (!b->modes.mode || m.head[MACHINE_PULSES] > 0) return 1;
    for (int32_t s = 0; s < m.head[MACHINE_STATES]; s++)
        if (state_record(&m, s)[MACHINE_STATE_DURING_COUNT] > 0) return 1;
    return 0;
}

/* A transition that is enabled after a tick, or that waits for an edge, is taken at the next tick. */
static int state_machine_needs_next_tick(bl_block *b, double t) {
    machine_view m;
    machine_open(b, b->z, t, &m);
    return !stays(&m);
}

const bl_kernel bl_kernels_state_machine[] = {
    {.name = "state_machine",
     .check = state_machine_check,
     .sizes = state_machine_sizes,
     .init = state_machine_init,
     .output = state_machine_output,
     .update = state_machine_update,
     .crossing_count = state_machine_crossing_count,
     .crossings = state_machine_crossings,
     .event = state_machine_event,
     .needs_ticks = state_machine_needs_ticks,
     .needs_next_tick = state_machine_needs_next_tick,
     .remembers = 1}, /* `during`, emitted events and chains of transitions take effect at ticks */
    {.name = 0},
};
