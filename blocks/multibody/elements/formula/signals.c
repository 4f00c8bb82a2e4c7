/* Signals: outputs of the mechanism that formulas read, at the state of the present evaluation.
 *
 * A formula may read any output that follows from positions and velocities. All signals are evaluated together, when a formula first
 * asks for one, and again after the poses, the velocities, the time or the way in which modes are decided have changed. So no formula reads
 * values of an earlier state. Python orders the signals: an output of an element whose laws are formulas comes after what these read. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

enum { SIGNAL_WIDEST = 16, SIGNAL_NO_PLACE = 0, SIGNAL_PLACED = 1, SIGNAL_MOVING = 2, SIGNAL_EVALUATED = 4 };

static const int32_t *signal_record(const mb_view *m, int32_t n) { return m->signals.records + n * MB_SIGNAL_FIELDS; }

static int32_t signal_of_element_width(const bl_block *b, const int32_t *record) {
    if (!mb_in_range(record[MB_SIGNAL_INDEX], 0, b->i[MB_FORCES])) return -1;
    const int32_t *force = b->i + b->i[MB_AT_FORCES] + record[MB_SIGNAL_INDEX] * MB_FORCE_FIELDS;
    const mb_element *element = mb_element_of(force);
    const int32_t what = record[MB_SIGNAL_TYPE] == MB_OUT_ELEMENT ? record[MB_SIGNAL_AXIS] : MB_SHOWN_POWER;
    if (record[MB_SIGNAL_TYPE] == MB_OUT_ELEMENT_ENERGY) return element->energy ? 1 : -1;
    if (element->needs_solution && element->needs_solution(force, what)) return -1;
    if (record[MB_SIGNAL_TYPE] == MB_OUT_ELEMENT_POWER) return element->load || element->power ? 1 : -1;
    return what >= 0 && element->width ? element->width(force, what) : -1;
}

/* The width of an output that may be a signal, or -1. */
static int32_t signal_width(const bl_block *b, const int32_t *record) {
    const int32_t *head = b->i, index = record[MB_SIGNAL_INDEX], axis = record[MB_SIGNAL_AXIS];
    const bool marker = mb_in_range(index, 0, head[MB_MARKERS]);
    switch (record[MB_SIGNAL_TYPE]) {
        case MB_OUT_POSITION:
        case MB_OUT_VELOCITY:
        case MB_OUT_ANGULAR_VELOCITY: return marker ? 3 : -1;
        case MB_OUT_BODY_COORDINATE:
        case MB_OUT_BODY_RATE: return marker && mb_in_range(axis, 0, MB_BODY_COORDINATES) ? 1 : -1;
        case MB_OUT_COORDINATE:
            return mb_in_range(axis, -2, 3) && mb_in_range(index, 0, axis == 0 ? head[MB_MEASURES] : head[MB_NQ]) ? 1
                                                                                                                  : -1;
        case MB_OUT_SPEED:
            return mb_in_range(axis, -2, 3) && mb_in_range(index, 0, axis == 0 ? head[MB_MEASURES] : head[MB_NV]) ? 1
                                                                                                                  : -1;
        case MB_OUT_KINETIC:
        case MB_OUT_POTENTIAL:
        case MB_OUT_WEIGHT_ENERGY: return 1;
        case MB_OUT_ENERGY: return mb_in_range(axis, 0, MB_ENERGY_KINDS) ? 1 : -1;
        case MB_OUT_ELEMENT:
        case MB_OUT_ELEMENT_POWER:
        case MB_OUT_ELEMENT_ENERGY: return signal_of_element_width(b, record);
        default: return -1;
    }
}

bool mb_signals_check(const bl_block *b) {
    for (int32_t n = 0; n < b->i[MB_SIGNALS]; n++) {
        const int32_t *record = b->i + b->i[MB_AT_SIGNALS] + n * MB_SIGNAL_FIELDS;
        const int32_t width = signal_width(b, record);
        if (width > SIGNAL_WIDEST || !mb_in_range(record[MB_SIGNAL_COMPONENT], 0, width)) return false;
    }
    return true;
}

void mb_open_signals(mb_view *m) {
    memset(m->signals.value, 0, (size_t)m->signals.count * sizeof(double));
    m->signals.state[MB_SEEN_PLACE] = SIGNAL_NO_PLACE;
    m->signals.state[MB_SEEN_FAULT] = 0.0;
}

void mb_signals_moved(const mb_view *m, const double *q, const double *v) {
    const mb_signals *s = &m->signals;
    if (q) memcpy(s->q, q, (size_t)m->nq * sizeof(double));
    if (v) memcpy(s->v, v, (size_t)m->nv * sizeof(double));
    const int32_t known = (int32_t)s->state[MB_SEEN_PLACE] & (SIGNAL_PLACED | SIGNAL_MOVING);
    s->state[MB_SEEN_PLACE] = known | (q ? SIGNAL_PLACED : SIGNAL_MOVING);
}

void mb_forget_formula_fault(const mb_view *m) {
    double *state = m->signals.state;
    state[MB_SEEN_FAULT] = 0.0; /* what is evaluated again may note it again */
    state[MB_SEEN_PLACE] = (int32_t)state[MB_SEEN_PLACE] & (SIGNAL_PLACED | SIGNAL_MOVING);
}

static void signal_evaluate(mb_view *m, const int32_t *record, double t, double *y) {
    const int32_t index = record[MB_SIGNAL_INDEX], axis = record[MB_SIGNAL_AXIS];
    const double *q = m->signals.q, *v = m->signals.v;
    double P[3], second;
    switch (record[MB_SIGNAL_TYPE]) {
        case MB_OUT_POSITION: mb_marker_motion(m, index, t, y, NULL, NULL); break;
        case MB_OUT_VELOCITY: mb_marker_motion(m, index, t, P, y, NULL); break;
        case MB_OUT_ANGULAR_VELOCITY: {
            const int32_t link = mb_link_of(m, index);
            for (int c = 0; c < 3; c++) y[c] = link >= 0 ? m->link[link].w[c] : 0.0;
            break;
        }
        case MB_OUT_BODY_COORDINATE: *y = mb_body_coordinate(m, index, axis, t, q); break;
        case MB_OUT_BODY_RATE: *y = mb_body_rate(m, index, axis, t, q); break;
        case MB_OUT_COORDINATE: *y = axis == 0 ? mb_measure(m, index, t) : mb_coordinate(axis, q[index]); break;
        case MB_OUT_SPEED:
            *y = axis == 0 ? mb_measure_rate(m, index, t, &second) : axis < 0 ? -v[index] : v[index];
            break;
        case MB_OUT_KINETIC: *y = mb_kinetic_energy(m); break;
        case MB_OUT_POTENTIAL: *y = mb_potential_energy(m, t, q); break;
        case MB_OUT_WEIGHT_ENERGY: *y = mb_weight_energy(m); break;
        case MB_OUT_ENERGY: *y = mb_stored_energy(m, t, q, axis); break;
        case MB_OUT_ELEMENT_POWER: *y = mb_element_power(m, mb_force_record(m, index), t, q, v); break;
        case MB_OUT_ELEMENT_ENERGY:
            *y = mb_element_of(mb_force_record(m, index))->energy(m, mb_force_record(m, index), t, q);
            break;
        default: {
            const int32_t *force = mb_force_record(m, index);
            if (mb_element_of(force)->show(m, force, t, q, v, axis, y) != BL_OK) *y = NAN;
        }
    }
}

static bool signal_is_energy(int32_t type) {
    return type == MB_OUT_KINETIC || type == MB_OUT_POTENTIAL || type == MB_OUT_WEIGHT_ENERGY || type == MB_OUT_ENERGY;
}

const double *mb_see_signals(const mb_view *m, double t) {
    const mb_signals *s = &m->signals;
    const int32_t known = (int32_t)s->state[MB_SEEN_PLACE];
    const double decision = m->modes.mode ? (double)*m->modes.decision : -1.0;
    if (s->count == 0 || known < (SIGNAL_PLACED | SIGNAL_MOVING)) return s->value;
    if ((known & SIGNAL_EVALUATED) && s->state[MB_SEEN_TIME] == t && s->state[MB_SEEN_DECISION] == decision)
        return s->value;
    /* Laws that are evaluated meanwhile, those of elements whose outputs are signals, read what has been found so far. */
    s->state[MB_SEEN_PLACE] = SIGNAL_PLACED | SIGNAL_MOVING | SIGNAL_EVALUATED;
    s->state[MB_SEEN_TIME] = t;
    s->state[MB_SEEN_DECISION] = decision;
    mb_view own = *m; /* outputs of films are kept in a view */
    own.shown_force = NULL;
    double y[SIGNAL_WIDEST] = {0.0};
    bool placed = false;
    for (int32_t n = 0; n < s->count; n++) {
        const int32_t *record = signal_record(m, n);
        if (signal_is_energy(record[MB_SIGNAL_TYPE]) && !placed) {
            mb_inertias(&own);
            placed = true;
        }
        const bool same = n > 0 && memcmp(record, record - MB_SIGNAL_FIELDS, MB_SIGNAL_COMPONENT * sizeof *record) == 0;
        if (!same) signal_evaluate(&own, record, t, y);
        s->value[n] = y[record[MB_SIGNAL_COMPONENT]];
    }
    return s->value;
}
