/* Instants at which laws of time are not smooth, where internal steps are divided.
 *
 * Of a table they are its points with a jump of the value or of one of its first two derivatives. Of a formula they are the roots of
 * the zero-crossing functions that depend on time alone: comparisons, min, abs, floor … of expressions of t. They need no states, so
 * that they are located on the formula, to adjacent numbers, before the step is taken. Conditions on states are located in located.c.
 *
 * At an instant a law has the values that follow it. A step that ends there needs those that precede it, and one that begins there,
 * but for rounding, those that follow: laws are evaluated at times limited to m->law_from … m->law_until. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "blocks/core/formula/formula.h"
#include "blocks/core/kernel/root.h"
#include "blocks/core/kernel/table.h"
#include "blocks/multibody/kernel/multibody.h"

enum {
    INSTANT_SEARCH = 200,
    INSTANT_KNOTS = 4 /* of one table in a step: with more, its points are samples of a smooth law */
};
static const double KNOT_ROUNDING = 1e-9; /* of the terms of a polynomial and its derivatives */

/* Value and two derivatives of a polynomial piece at s, and the sizes of their terms. */
static void evaluate_piece(const double *c, double s, double *out, double *sizes) {
    out[0] = ((c[0] * s + c[1]) * s + c[2]) * s + c[3];
    out[1] = (3.0 * c[0] * s + 2.0 * c[1]) * s + c[2];
    out[2] = 6.0 * c[0] * s + 2.0 * c[1];
    sizes[0] = ((fabs(c[0]) * s + fabs(c[1])) * s + fabs(c[2])) * s + fabs(c[3]);
    sizes[1] = (3.0 * fabs(c[0]) * s + 2.0 * fabs(c[1])) * s + fabs(c[2]);
    sizes[2] = 6.0 * fabs(c[0]) * s + 2.0 * fabs(c[1]);
}

static bool knot_bends(const double *points, int32_t n, int32_t k) {
    const double *pieces = points + n, zero[4] = {0.0, 0.0, 0.0, k == 0 ? pieces[3] : pieces[4 * (n - 1)]};
    double left[3], right[3], sizes[3], others[3];
    evaluate_piece(k > 0 ? pieces + 4 * (k - 1) : zero, k > 0 ? points[k] - points[k - 1] : 0.0, left, sizes);
    evaluate_piece(k < n - 1 ? pieces + 4 * k : zero, 0.0, right, others);
    for (int d = 0; d < 3; d++)
        if (fabs(right[d] - left[d]) > KNOT_ROUNDING * (sizes[d] + others[d])) return true;
    return false;
}

/* The first point after `from` at which a table is not smooth, of a step from `since` to `to`. */
static double table_instant(const double *points, int32_t n, double since, double from, double to) {
    const int32_t first = since < points[0] ? 0 : bl_table_find(points, n, since) + 1;
    int32_t end = first;
    while (end < n && points[end] <= to)
        if (++end - first > INSTANT_KNOTS) return INFINITY;
    for (int32_t k = first; k < end; k++)
        if (points[k] > from && knot_bends(points, n, k)) return points[k];
    return INFINITY;
}

static void run_law(const mb_view *m, const int32_t *law, double t, bl_decision decision) {
    const double none[2] = {0.0, 0.0}, *const own[2] = {none,
                                                        m->signals.value}; /* conditions on time do not read them */
    double result = 0.0, *const out[1] = {&result};
    const bl_modes modes = {m->instant_search.mode, m->instant_search.crossing, &decision};
    bl_formula_run(m->words + law[MB_LAW_P], law[MB_LAW_N], t, own, m->p, out, &modes);
}

/* Whether a condition on time alone is not what it was at the start. At the border a crossing function is 0 in either mode, so
   that its sign does not suffice. */
static bool law_has_changed(const mb_view *m, const int32_t *law, int32_t count, double t) {
    const mb_instant_search *at = &m->instant_search;
    run_law(m, law, t, BL_DECIDE);
    for (int32_t k = 0; k < count; k++)
        if (at->timed[k] && at->mode[k] != at->start[k]) return true;
    return false;
}

/* Crossing functions at t with the modes of the start. */
static void evaluate_law(const mb_view *m, const int32_t *law, int32_t count, double t, double *crossing) {
    const mb_instant_search *at = &m->instant_search;
    memcpy(at->mode, at->start, (size_t)count * sizeof(double));
    run_law(m, law, t, BL_KEEP);
    memcpy(crossing, at->crossing, (size_t)count * sizeof(double));
}

static bool formula_instant(const mb_view *m, const int32_t *law, double from, double to, mb_instant *found) {
    const mb_instant_search *at = &m->instant_search;
    int32_t count = 0;
    if (bl_formula_timed(m->words + law[MB_LAW_P], law[MB_LAW_N], at->timed, &count) == 0) return false;
    const size_t size = (size_t)count * sizeof(double);
    run_law(m, law, from, BL_DECIDE);
    memcpy(at->start, at->mode, size);
    memcpy(at->at_a, at->crossing, size);
    if (!law_has_changed(m, law, count, to)) return false;
    evaluate_law(m, law, count, to, at->at_b);
    bl_bracket r = bl_bracket_open(from, to, 4.0 * DBL_EPSILON * fmax(fabs(from), fabs(to)));
    while (r.b - r.a > r.tolerance && r.trials < INSTANT_SEARCH) {
        double first = INFINITY;
        for (int32_t k = 0; k < count; k++)
            if (at->timed[k]) first = fmin(first, bl_bracket_root(&r, at->at_a[k], at->at_b[k]));
        const double s = bl_bracket_trial(&r, first);
        if (!(s > r.a && s < r.b)) break;
        const bool beyond = law_has_changed(m, law, count, s);
        evaluate_law(m, law, count, s, beyond ? at->at_b : at->at_a);
        bl_bracket_narrow(&r, s, beyond);
    }
    found->before = r.a;
    found->after = r.b;
    return true;
}

bool mb_has_instants(const mb_view *m) {
    for (int32_t n = 0; n < m->head[MB_LAWS]; n++) {
        const int32_t *law = m->laws + n * MB_LAW_FIELDS;
        if (law[MB_LAW_TYPE] == MB_LAW_FORMULA) return true;
        if (law[MB_LAW_TYPE] == MB_LAW_TABLE && law[MB_LAW_OF] == MB_OF_TIME) return true;
    }
    return false;
}

bool mb_next_instant(const mb_view *m, double since, double from, double to, mb_instant *found) {
    *found = (mb_instant){INFINITY, INFINITY, -1};
    for (int32_t n = 0; n < m->head[MB_LAWS]; n++) {
        const int32_t *law = m->laws + n * MB_LAW_FIELDS;
        const double last = fmin(to, found->after);
        if (law[MB_LAW_TYPE] == MB_LAW_TABLE && law[MB_LAW_OF] == MB_OF_TIME) {
            const double at = table_instant(m->p + law[MB_LAW_P], law[MB_LAW_N], since, from, to);
            if (at < found->after) *found = (mb_instant){nextafter(at, -INFINITY), at, n};
        } else if (law[MB_LAW_TYPE] == MB_LAW_FORMULA && last > from && formula_instant(m, law, from, last, found)) {
            found->law = n;
        }
    }
    return found->law >= 0;
}
