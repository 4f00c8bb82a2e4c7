/* Internal steps of mechanisms with rigid contacts: Runge–Kutta steps that end where a contact begins, ends, sticks or slips.
 *
 * A whole step is tried with the present contact modes. If one of them is no longer consistent at its end, or within it, the step is
 * repeated from the same start and shortened until it ends where the first of them changes; then impacts are solved, contacts are
 * balanced again, and the rest of the step follows. Event functions, which must not become negative:
 *     flying      the gap
 *     touching    N; in addition, sliding: the slip in the direction of the mode; sticking: μ N - |T|
 * Crossing functions of laws, end stops and compliant contacts of the same mechanism (located.c) are event functions too; beyond their
 * limit in a tick these decide at every evaluation.
 * A gap is found along a cubic through gaps and their rates at both ends, so that one that opens again within the step is detected too; the others
 * at the ends and in the middle. */
#include <string.h>

#include "blocks/core/kernel/root.h"
#include "blocks/multibody/kernel/multibody.h"

enum {
    EVENT_LIMIT = 1000, /* events in one internal step */
    EVENT_SEARCH = 60, /* steps tried for one event */
    EVENT_SAMPLES = 16, /* of a gap's cubic */
    EVENT_HALVINGS = 10,
    EVENT_STALLS = 40, /* steps that are short, without an impact, before friction is left out */
    /* Beside the statuses of blocks: friction has no solution within the step, or its end cannot be closed. */
    EVENT_JAMMED = 100,
    EVENT_OPEN,
};

/* Changes of force and slip are located to this fraction of a step. */
static const double EVENT_WIDTH = 1e-10;
/* A short step, as a part of an internal one. */
static const double EVENT_STALL = 1e-3;
/* A force that falls below zero by this part of what it was has not crossed it, but jumped. */
static const double EVENT_JUMP = 1e-3;
/* Modes of laws and elements are located to this fraction of a step. */
static const double EVENT_MODE_WIDTH = 1e-12;
/* A gap is located by its size, but not to less than this. */
static const double EVENT_GAP_WIDTH = 1e-13;

/* Event functions of a contact at one time. */
static mb_event_functions evaluate_event(const mb_rigid *r, double rounding) {
    mb_event_functions at = {.gap = r->gap, .closing = r->closing, .N = INFINITY, .spare = INFINITY};
    if (r->mode == MB_FLIES) return at;
    if (r->absent != 0.0) { /* there is no place any more, as behind the end of a bore */
        at.N = at.spare = -1.0;
        return at;
    }
    at.N = r->N + rounding;
    if (r->mode == MB_STICKS) at.spare = r->spare + rounding;
    return at;
}

static mb_rigid *contact_number(const mb_view *m, int32_t n) { return mb_rigid_of(m, mb_rigid_row(m, n)); }

/* The crossing functions of modes at one time; in the middle of a step they are not evaluated. */
static double *crossings_at(const mb_view *m, int where) {
    return where == MB_AT_FROM ? m->located.at_a : where == MB_AT_END ? m->located.at_b : m->located.before;
}

static bool modes_fit(const mb_view *m, int where) {
    const double *crossing = crossings_at(m, where);
    for (int32_t k = 0; k < m->located.count; k++)
        if (!(crossing[k] >= 0.0)) return false;
    return true;
}

static void evaluate_events(mb_view *m, int where) {
    const double rounding = mb_rigid_rounding(m);
    for (int32_t n = 0; n < m->rigid_count; n++) {
        mb_rigid *r = contact_number(m, n);
        r->at[where] = evaluate_event(r, rounding);
        if (r->absent == 0.0 && mb_has_sliding_friction(m, mb_rigid_row(m, n)))
            r->at[where].spare = r->mode * r->slip + r->speed_rounding;
    }
}

/* A gap is closed for good only if the pin is well inside the wall or still goes there: it may leave the wall from just inside. A place that
   appeared within the other shape, where an edge passes an edge, may leave it from there. */
static bool contact_fits(const mb_rigid *r, const mb_event_functions *at) {
    const double within = fmin(-r->tolerance, r->at[MB_AT_START].gap);
    if (at->N == INFINITY) return at->gap >= 0.0 || (at->gap >= within && at->closing <= 0.0);
    return at->N >= 0.0 && at->spare >= 0.0;
}

static bool all_fit(const mb_view *m, int where) {
    for (int32_t n = 0; n < m->rigid_count; n++)
        if (!contact_fits(contact_number(m, n), &contact_number(m, n)->at[where])) return false;
    return modes_fit(m, where);
}

static bool any_touches(const mb_view *m) {
    for (int32_t n = 0; n < m->rigid_count; n++)
        if (contact_number(m, n)->mode != MB_FLIES) return true;
    return false;
}

/* Sliding distance and ∫ N |slip| dt of the present step, with the Runge–Kutta weights. */
static void add_sliding(mb_view *m, double weight) {
    for (int32_t n = 0; n < m->rigid_count; n++) {
        mb_rigid *r = contact_number(m, n);
        if (r->mode == MB_FLIES || r->mode == MB_STICKS) continue;
        r->slid += weight * r->speed;
        r->worked += weight * r->N * r->speed;
    }
}

static int fail_or_jam(bl_block *b, const mb_view *m, double t) {
    return m->jammed_contact >= 0 ? EVENT_JAMMED : mb_fail_factor(b, m, t);
}

/* Evaluates the crossing functions of modes, which are kept. */
static int note_modes(mb_view *m, double t, const double *x, int where) {
    if (m->located.count == 0) return 1;
    if (!mb_note_crossings(m, t, x, x + m->nq)) return 0;
    memcpy(crossings_at(m, where), m->located.crossing, (size_t)m->located.count * sizeof(double));
    return 1;
}

/* A step of size h from `start`, whose first stage is known; event functions are evaluated at its end. */
static int try_step(bl_block *b, mb_view *m, double t, double h) {
    const int64_t n = m->nq + m->nv;
    const double nodes[4] = {0.0, 0.5, 0.5, 1.0}, weights[4] = {1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0};
    double *x = m->internal_state, *start = x + n, *k = start + n, *trial = k + 4 * n;
    for (int32_t c = 0; c < m->rigid_count; c++) {
        mb_rigid *r = contact_number(m, c);
        r->slid = weights[0] * h * r->slid_start;
        r->worked = weights[0] * h * r->worked_start;
    }
    for (int s = 1; s < 4; s++) {
        for (int64_t i = 0; i < n; i++) trial[i] = start[i] + nodes[s] * h * k[(s - 1) * n + i];
        if (!mb_accelerations(m, t + nodes[s] * h, trial, trial + m->nq)) return fail_or_jam(b, m, t + nodes[s] * h);
        mb_watch_iteration(m, t + nodes[s] * h);
        mb_coordinate_rates(m, trial, trial + m->nq, k + s * n);
        memcpy(k + s * n + m->nq, m->acceleration, (size_t)m->nv * sizeof(double));
        add_sliding(m, weights[s] * h);
        if (s == 2) evaluate_events(m, MB_AT_MIDDLE);
    }
    for (int64_t i = 0; i < n; i++)
        x[i] = start[i] + h / 6.0 * (k[i] + 2.0 * k[n + i] + 2.0 * k[2 * n + i] + k[3 * n + i]);
    if (!mb_close_step(m, t + h, x)) return EVENT_OPEN;
    if (!any_touches(m)) mb_kinematics(m, t + h, x, x + m->nq);
    else if (!mb_accelerations(m, t + h, x, x + m->nq)) return fail_or_jam(b, m, t + h);
    evaluate_events(m, MB_AT_END);
    return note_modes(m, t + h, x, MB_AT_END) ? BL_OK : fail_or_jam(b, m, t + h);
}

/* The cubic with given values and slopes at 0 and 1. */
static double cubic(double s, double from, double slope, double to, double slope_to) {
    const double rest = 1.0 - s;
    return from * rest * rest * (1.0 + 2.0 * s) + slope * s * rest * rest + to * s * s * (3.0 - 2.0 * s) -
           slope_to * s * s * rest;
}

/* Where a gap over the width of a bracket is lowest inside it, as a part of the width; -1 if it is open all along. */
static double lowest_gap(const mb_rigid *r, double width) {
    const mb_event_functions *from = &r->at[MB_AT_FROM], *to = &r->at[MB_AT_END];
    double least = -r->tolerance, found = -1.0;
    bool opened = from->gap > r->tolerance;
    for (int n = 1; n < EVENT_SAMPLES; n++) {
        const double s = (double)n / EVENT_SAMPLES,
                     gap = cubic(s, from->gap, -from->closing * width, to->gap, -to->closing * width);
        opened = opened || gap > r->tolerance;
        if (opened && gap < least) least = gap, found = s;
    }
    return found;
}

/* Where it first closes: from open to closed, in a bracket that ends closed. */
static double closed_gap(const mb_rigid *r, double width) {
    const mb_event_functions *from = &r->at[MB_AT_FROM], *to = &r->at[MB_AT_END];
    double low = -1.0, high = 1.0;
    for (int n = 0; n <= EVENT_SAMPLES; n++) {
        const double s = (double)n / EVENT_SAMPLES,
                     gap = cubic(s, from->gap, -from->closing * width, to->gap, -to->closing * width);
        if (gap > 0.0) {
            low = s;
        } else if (low >= 0.0) {
            high = s;
            break;
        }
    }
    if (low < 0.0) return 0.5;
    bl_bracket part = bl_bracket_open(low, high, 0x1p-52);
    double at_a = cubic(low, from->gap, -from->closing * width, to->gap, -to->closing * width),
           at_b = cubic(high, from->gap, -from->closing * width, to->gap, -to->closing * width);
    while (part.b - part.a > part.tolerance && part.trials < EVENT_SEARCH) {
        const double s = bl_bracket_trial(&part, bl_bracket_root(&part, at_a, at_b));
        const double gap = cubic(s, from->gap, -from->closing * width, to->gap, -to->closing * width);
        *(gap > 0.0 ? &at_a : &at_b) = gap;
        bl_bracket_narrow(&part, s, !(gap > 0.0));
    }
    return 0.5 * (part.a + part.b);
}

/* Where in the bracket the first of them changes: gaps by their cubic, the others by a straight line. Sets how near to an end of
   the bracket that may be. */
static double guess_event(const mb_view *m, bl_bracket *r) {
    const double width = r->b - r->a;
    double first = INFINITY;
    r->tolerance = EVENT_WIDTH * m->whole;
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const mb_rigid *c = contact_number(m, n);
        const mb_event_functions *from = &c->at[MB_AT_FROM], *to = &c->at[MB_AT_END];
        if (to->N == INFINITY && !contact_fits(c, to)) {
            first = fmin(first, r->a + width * closed_gap(c, width));
            r->tolerance = EVENT_GAP_WIDTH * m->whole;
        }
        first = fmin(first, fmin(bl_bracket_root(r, from->N, to->N), bl_bracket_root(r, from->spare, to->spare)));
    }
    for (int32_t k = 0; k < m->located.count; k++)
        first = fmin(first, bl_bracket_root(r, m->located.at_a[k], m->located.at_b[k]));
    if (!modes_fit(m, MB_AT_END)) r->tolerance = EVENT_MODE_WIDTH * m->whole;
    return first;
}

/* Whether the bracket is as small as it need be: gaps by their size, the others by the width. */
static bool is_located(const mb_view *m, double width) {
    if (width <= EVENT_GAP_WIDTH * m->whole) return true;
    if (width > EVENT_MODE_WIDTH * m->whole && !modes_fit(m, MB_AT_END)) return false;
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const mb_rigid *r = contact_number(m, n);
        const mb_event_functions *to = &r->at[MB_AT_END];
        if (contact_fits(r, to)) continue;
        if (to->N == INFINITY ? to->gap < -r->located : width > EVENT_WIDTH * m->whole) return false;
    }
    return true;
}

/* Whether a contact that flies meets its surface where the bracket begins. */
static bool meets_early(const mb_view *m) {
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const mb_rigid *r = contact_number(m, n);
        const mb_event_functions *from = &r->at[MB_AT_FROM];
        if (from->N == INFINITY && from->gap <= r->located && from->closing > r->speed_rounding) return true;
    }
    return false;
}

static void copy_events(mb_view *m, int from, int to) {
    for (int32_t n = 0; n < m->rigid_count; n++) contact_number(m, n)->at[to] = contact_number(m, n)->at[from];
    memcpy(crossings_at(m, to), crossings_at(m, from), (size_t)m->located.count * sizeof(double));
}

/* Whether the force of a contact jumps there: where its place vanishes, or a wall ends in an edge. */
static bool force_jumps(const mb_view *m) {
    for (int32_t n = m->rigid_flat; n < m->rigid_count; n++) {
        const mb_rigid *r = contact_number(m, n);
        const mb_event_functions *from = &r->at[MB_AT_FROM], *to = &r->at[MB_AT_END];
        if (r->mode != MB_FLIES && (r->absent != 0.0 || to->N < -EVENT_JUMP * fabs(from->N))) return true;
    }
    return false;
}

/* Shortens a step that ended with a contact that does not fit. Leaves the step that ends at the event, and its size in *size. */
static int locate(bl_block *b, mb_view *m, double t, double *size) {
    bl_bracket r = bl_bracket_open(0.0, *size, EVENT_WIDTH * m->whole);
    bool at_end = true;
    while (r.trials < EVENT_SEARCH && !is_located(m, r.b - r.a)) {
        const double trial = bl_bracket_trial(&r, guess_event(m, &r));
        if (!(trial > r.a && trial < r.b)) break;
        copy_events(m, MB_AT_END, MB_AT_TO);
        const int status = try_step(b, m, t, trial);
        if (status != BL_OK) return status;
        at_end = !all_fit(m, MB_AT_END);
        bl_bracket_narrow(&r, trial, at_end);
        if (at_end) continue;
        copy_events(m, MB_AT_END, MB_AT_FROM);
        copy_events(m, MB_AT_TO, MB_AT_END);
        if (meets_early(m)) {
            *size = r.a;
            return BL_OK;
        }
    }
    if (r.a > 0.0 && !at_end) {
        const int status = try_step(b, m, t, r.b);
        if (status != BL_OK) return status;
        at_end = true;
    }
    if (r.a > 0.0 && force_jumps(m)) { /* no part of the step has the force beyond, a very short one follows */
        m->event_rest = r.b - r.a;
        *size = r.a;
        return try_step(b, m, t, r.a);
    }
    *size = r.b;
    return at_end ? BL_OK : try_step(b, m, t, r.b);
}

/* Searches for an event within a step whose end is consistent. Returns its position as a fraction of the step, or -1. */
static double look_within(const mb_view *m, double h) {
    double first = 2.0;
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const mb_rigid *r = contact_number(m, n);
        const double dip = r->mode == MB_FLIES ? lowest_gap(r, h) : -1.0;
        if (dip > 0.0) first = fmin(first, dip);
        if (r->mode != MB_FLIES && !contact_fits(r, &r->at[MB_AT_MIDDLE])) first = fmin(first, 0.5);
    }
    return first < 1.0 ? first : -1.0;
}

/* The longest step from here, up to `rest`, at whose end contacts change or which is all of it. */
static int whole_step(bl_block *b, mb_view *m, double t, double rest, double *size) {
    *size = rest;
    int status = try_step(b, m, t, rest);
    if (status != BL_OK) return status;
    if (!all_fit(m, MB_AT_END)) return locate(b, m, t, size);
    const double within = look_within(m, rest);
    if (within < 0.0) return BL_OK;
    *size = within * rest;
    status = try_step(b, m, t, *size);
    if (status != BL_OK || !all_fit(m, MB_AT_END)) return status != BL_OK ? status : locate(b, m, t, size);
    *size = rest; /* it was the curve that dipped, not the motion */
    return try_step(b, m, t, rest);
}

/* Stores the first stage of a step from `start`, whose accelerations are known, and the event functions there. */
static void keep_slope(mb_view *m) {
    const int64_t n = m->nq + m->nv;
    const double *start = m->internal_state + n;
    double *k = m->internal_state + 2 * n;
    mb_coordinate_rates(m, start, start + m->nq, k);
    memcpy(k + m->nq, m->acceleration, (size_t)m->nv * sizeof(double));
    for (int32_t c = 0; c < m->rigid_count; c++) {
        mb_rigid *r = contact_number(m, c);
        mb_copy(r->P, r->began_at);
        r->slid_start = r->mode == MB_FLIES || r->mode == MB_STICKS ? 0.0 : r->speed;
        r->worked_start = r->slid_start * r->N;
    }
    evaluate_events(m, MB_AT_FROM);
    copy_events(m, MB_AT_FROM, MB_AT_START);
}

/* Contact modes at the start of a step, those of laws and elements, and its first stage. */
static int begin_step(bl_block *b, mb_view *m, double t) {
    const int64_t n = m->nq + m->nv;
    double *x = m->internal_state;
    mb_open_decision(m);
    if (!mb_rigid_settle(m, t, x, x + m->nq)) return mb_fail_factor(b, m, t);
    mb_close_decision(b, m, t);
    memcpy(x + n, x, (size_t)n * sizeof(double));
    keep_slope(m);
    return note_modes(m, t, x, MB_AT_FROM) ? BL_OK : mb_fail_factor(b, m, t);
}

/* The same, with a shorter step if it fails: the failure may lie beyond an event. */
static int longest_step(bl_block *b, mb_view *m, double t, double rest, double *size) {
    int status = whole_step(b, m, t, rest, size);
    for (int halving = 0; (status == EVENT_JAMMED || status == EVENT_OPEN) && halving < EVENT_HALVINGS; halving++) {
        rest *= 0.5;
        m->jammed_contact = -1;
        status = whole_step(b, m, t, rest, size);
    }
    if (status == EVENT_OPEN) return mb_fail_step(b, m, t + *size, *size, m->internal_state, m->internal_state + m->nq);
    if (status != EVENT_JAMMED) return status;
    mb_rigid_leave_friction(m);
    const double *start = m->internal_state + m->nq + m->nv;
    if (!mb_accelerations(m, t, start, start + m->nq)) return mb_fail_factor(b, m, t);
    keep_slope(m);
    status = whole_step(b, m, t, rest, size);
    return status == EVENT_JAMMED || status == EVENT_OPEN
               ? mb_fail_step(b, m, t + *size, *size, m->internal_state, m->internal_state + m->nq)
               : status;
}

/* What has happened to a contact at the start of a step, or -1. */
static int32_t contact_event(const mb_rigid *r, bool rough) {
    if (r->before == MB_FLIES) return r->mode != MB_FLIES ? MB_EVENT_TOUCHES : r->hits > 0.0 ? MB_EVENT_REBOUNDS : -1;
    if (r->mode == MB_FLIES) return MB_EVENT_LEAVES;
    if (!rough || r->mode == r->before) return -1;
    return r->mode == MB_STICKS ? MB_EVENT_STICKS : r->before == MB_STICKS ? MB_EVENT_SLIPS : MB_EVENT_REVERSES;
}

static void note_contacts(const bl_block *b, const mb_view *m, double t) {
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const int32_t *row = m->rows + mb_rigid_row(m, n) * MB_ROW_FIELDS;
        const bool rough = mb_rigid_law(m, mb_rigid_row(m, n))[MB_RIGID_FRICTION] > 0.0;
        const int32_t kind = contact_event(contact_number(m, n), rough);
        if (kind >= 0) bl_note_event(b, t, MB_EVENT_KINDS * row[MB_ROW_A] + kind);
    }
}

/* Whether a contact was hit where the step began. */
static bool any_hit(const mb_view *m) {
    for (int32_t n = 0; n < m->rigid_count; n++)
        if (contact_number(m, n)->hits > 0.0) return true;
    return false;
}

/* Where several places jam a body, slip in space may begin and end again without end, as if it had no direction to go to: after as many such short
   steps friction is left out for the rest of the step, which is counted as one without a solution. */
static void end_stalling(mb_view *m, double size, double h, int *stalls) {
    if (any_hit(m) || size > EVENT_STALL * h) return;
    if (++*stalls >= EVENT_STALLS && m->rigid_count > m->rigid_flat) m->friction_left = true;
}

/* One internal step of size h, which may be a fraction of a whole one. */
int mb_rigid_advance(bl_block *b, mb_view *m, double t, double h) {
    double done = 0.0;
    int stalls = 0;
    m->event_rest = 0.0;
    m->friction_left = false;
    for (int event = 0; event < EVENT_LIMIT; event++) {
        double size;
        int status = begin_step(b, m, t + done);
        if (status == BL_OK) note_contacts(b, m, t + done);
        const double rest = m->event_rest > 0.0 ? fmin(m->event_rest, h - done) : h - done;
        m->event_rest = 0.0;
        if (status == BL_OK) status = longest_step(b, m, t + done, rest, &size);
        if (status != BL_OK) return status;
        end_stalling(m, size, h, &stalls);
        const bool last = size >= h - done;
        done = last ? h : done + size;
        mb_note_step(m, t + done, size, m->internal_state);
        for (int32_t n = 0; n < m->rigid_count; n++) {
            mb_rigid *r = contact_number(m, n);
            r->stopped = !last && mb_has_sliding_friction(m, mb_rigid_row(m, n)) && r->at[MB_AT_END].spare < 0.0;
            mb_rigid_count(m, n);
        }
        if (m->located.count > 0 && !modes_fit(m, MB_AT_END) && --m->located.left == 0) mb_stop_locating(b, m);
        if (last) {
            m->friction_left = false;
            mb_rigid_store(m);
            return BL_OK;
        }
    }
    return mb_fail_events(b, m, t, h, EVENT_LIMIT);
}
