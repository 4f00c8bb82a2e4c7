/* Bearings as constraints: the journal's point is held where the steady film force balances the multipliers of the rows.
 *
 *     Φ = P_bush - P_journal + ε = 0,   M v' + Jᵀ λ = Q:   (λ_x, λ_y) is the force on the journal          [V 4.8, 4.18]
 *
 * ε is that offset of the journal at which the film's force is λ: its length by bracketing, because the force grows with it
 * and without bound; its angle from that of the force, which turns with the offset. Beyond the film's limit its contact takes
 * over, so that a journal that hardly turns rests in contact. Rates of ε are neglected in Φ̇ and Φ̈: the motion of the journal
 * in its bush is not part of the dynamics.
 *
 * ε is memory, in world axes. After each step λ → ε → positions → λ is repeated until ε converges; a displacement by a clearance changes λ
 * by about clearance / length, so that two iterations suffice. With a stiff spring at the journal the iterations are relaxed. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

enum { MB_CARRY_LIMIT = 40, MB_CARRY_CLOSING = 20, MB_BISECTIONS = 54 };
static const double CARRY_TOLERANCE = 1e-9, CARRY_LEAST_PART = 1.0 / 64.0; /* of the clearance; of a change */

int32_t mb_bearing_row(const int32_t *force) {
    return force[MB_FORCE_TYPE] == MB_BEARING ? (force[MB_FORCE_EXTRA] >> MB_BEARING_ROW_SHIFT) - 1 : -1;
}

/* Its two rows are components x and y between its markers, in a plane. */
bool mb_bearing_rows_check(const int32_t *force, const int32_t *rows, int64_t row_count, bool planar) {
    const int32_t first = mb_bearing_row(force);
    if (first < 0) return true;
    if (!planar || first + 1 >= row_count || force[MB_FORCE_LAW] != BL_FILM_SHORT) return false;
    for (int32_t k = 0; k < 2; k++) {
        const int32_t *row = rows + (first + k) * MB_ROW_FIELDS;
        if (row[MB_ROW_TYPE] != MB_ROW_POINT || row[MB_ROW_A] != k || row[MB_ROW_I] != force[MB_FORCE_I] ||
            row[MB_ROW_J] != force[MB_FORCE_J])
            return false;
    }
    return true;
}

/* The force of the film on a journal at (e, 0). */
static bool carry_force(mb_film *film, double e, double *F) {
    film->motion.x[0] = film->motion.x[1] = e;
    film->motion.y[0] = film->motion.y[1] = 0.0;
    if (bl_film_evaluate(BL_FILM_SHORT, &film->bearing, &film->motion, NULL, &film->load) != BL_OK) return false;
    memcpy(F, film->load.force, 2 * sizeof(double));
    return true;
}

/* The offset at which the film's force on the journal is `force`. Returns whether there is one. */
static bool carry_offset(mb_film *film, const double *force, double *offset) {
    const bl_film_bearing *b = &film->bearing;
    const double wanted = hypot(force[0], force[1]), reach = (b->clearance - b->film_limit) * (1.0 - 1e-12);
    double low = 0.0, high = reach, F[2];
    offset[0] = offset[1] = 0.0;
    if (wanted == 0.0) return true;
    if (!isfinite(wanted) || !carry_force(film, reach, F)) return false;
    if (!(hypot(F[0], F[1]) >= wanted)) {
        if (b->thin == BL_THIN_STOP) return false;
        low = reach, high = b->clearance - b->film_limit + 1.000001 * wanted / b->contact_stiffness;
        if (!isfinite(high) || !carry_force(film, high, F) || !(hypot(F[0], F[1]) >= wanted)) return false;
    }
    for (int n = 0; n < MB_BISECTIONS; n++) {
        const double middle = 0.5 * (low + high);
        if (!carry_force(film, middle, F)) return false;
        if (hypot(F[0], F[1]) < wanted) low = middle;
        else high = middle;
    }
    if (!carry_force(film, high, F)) return false;
    const double angle = atan2(force[1], force[0]) - atan2(F[1], F[0]);
    offset[0] = high * cos(angle), offset[1] = high * sin(angle);
    return true;
}

static bool carries_any(const mb_view *m) {
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++)
        if (mb_bearing_row(m->forces + n * MB_FORCE_FIELDS) >= 0) return true;
    return false;
}

/* Leaves in m->row_work how far every offset is from where the present multipliers put it; returns the longest way as a part of
   the clearance, below zero if a film carries its load nowhere. */
static double carry_once(mb_view *m, double t) {
    double longest = 0.0;
    memset(m->row_work, 0, (size_t)m->row_count * sizeof(double));
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = m->forces + n * MB_FORCE_FIELDS, row = mb_bearing_row(force);
        if (row < 0) continue;
        mb_film film;
        double offset[2];
        mb_bearing_see(m, force, t, &film);
        if (!carry_offset(&film, m->lambda + row, offset)) {
            m->filmless_bearing = n;
            return -1.0;
        }
        for (int k = 0; k < 2; k++) m->row_work[row + k] = offset[k] - m->offset[row + k];
        longest = fmax(longest, hypot(m->row_work[row], m->row_work[row + 1]) / film.bearing.clearance);
    }
    return longest;
}

/* Aitken relaxation factor, from the changes of the last two iterations. */
static double carry_part(const mb_view *m, double part) {
    double along = 0.0, square = 0.0;
    for (int32_t k = 0; k < m->row_count; k++) {
        const double turned = m->row_work[k] - m->offset_step[k];
        along += m->offset_step[k] * turned;
        square += turned * turned;
    }
    return square > 0.0 ? fmin(fmax(-part * along / square, CARRY_LEAST_PART), 1.0) : part;
}

int mb_carry_bearings(mb_view *m, double t, double *q, double *v) {
    if (!carries_any(m)) return 1;
    double before = INFINITY, change = 0.0, part = 1.0;
    int iteration = 0;
    for (; iteration < MB_CARRY_LIMIT; iteration++) {
        if (!mb_accelerations(m, t, q, v)) return 0;
        if (m->head[MB_JOINTS] > 0 && m->shared[MB_SHARED_REDUNDANT] != 0.0) mb_find_wrenches(m, t, q, v);
        change = carry_once(m, t);
        if (change < 0.0) return 0;
        if (iteration > 0) part = carry_part(m, part);
        memcpy(m->offset_step, m->row_work, (size_t)m->row_count * sizeof(double));
        for (int32_t k = 0; k < m->row_count; k++) m->offset[k] += part * m->offset_step[k];
        if (!mb_project(m, t, q, v, MB_CARRY_CLOSING)) return 0;
        if (change <= CARRY_TOLERANCE ||
            (iteration > 0 && change < 0.1 * before && change * change <= CARRY_TOLERANCE * before))
            break;
        before = change;
    }
    double *carried = m->carried;
    carried[MB_CARRIED_ROUNDS] = fmin(iteration + 1.0, MB_CARRY_LIMIT);
    if (iteration < MB_CARRY_LIMIT) return 1;
    if (carried[MB_CARRIED_FAILURES] == 0.0) carried[MB_CARRIED_FIRST] = t;
    carried[MB_CARRIED_FAILURES] += 1.0;
    carried[MB_CARRIED_WORST] = fmax(carried[MB_CARRIED_WORST], change);
    return 1;
}

void mb_diagnose_carried(const bl_block *b, const mb_view *m) {
    const double *carried = m->carried;
    if (!(carried[MB_CARRIED_FAILURES] > 0.0)) return;
    bl_log(b,
           "offsets of bearings held by constraints did not settle in %.0f step%s, the first to t = %.9g s: after %d "
           "rounds they"
           " still changed by up to %.2g of the clearance. Something stiff pulls at a journal, or its load turns "
           "round: take"
           " coupling='force'. ",
           carried[MB_CARRIED_FAILURES], carried[MB_CARRIED_FAILURES] > 1.0 ? "s" : "", carried[MB_CARRIED_FIRST],
           (int)MB_CARRY_LIMIT, carried[MB_CARRIED_WORST]);
}
