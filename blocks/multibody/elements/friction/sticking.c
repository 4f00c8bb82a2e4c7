/* Mechanisms with friction from reactions and joints with a stick mode: all are solved together.
 *
 * With f the efforts of the joints that hold, N the loads of all joints with friction from reactions, and u_n the effort of joint n for a
 * load of 1 N (joint_friction.c; 0 for one that holds):
 *     0 = v'_k = a_k + Σ_n b_kn N_n + Σ_j A_kj f_j           of each joint k that holds; A_kj = F_kᵀ R_j
 *     N_k = |R_k + Σ_n B_kn N_n + Σ_j C_kj f_j|              of each joint; the norm of joint_friction.c
 * The first equations give f = g + G N, which is put into the second. What remains is solved by the passes of joint_friction.c.
 *
 * Joints may hold the same motion, such as all joints of a four-bar. A is then singular: accelerations are unique, efforts are not. Those
 * are taken for which Σ (f_k / s_k)² is least, s_k = static r of a joint whose limit follows from its reaction, and its limit where that is given. A joint
 * that reaches its limit while others hold it yields: it keeps its largest effort, and the others take the rest. Only if the last of them
 * reaches its limit they all slide. So the motion begins where no efforts within the limits hold the mechanism.
 * With one degree of freedom this is exact for given loads. With several, the choice of the joint that is furthest beyond its limit is
 * not always that of a solution: the motion may then begin earlier, or no modes are consistent.
 *
 * Modes change at events. A joint that can hold does. If no joint that slides is then accelerated against its direction, the modes are
 * consistent. If one is, all modes of the joints at rest are tried: with reactions that grow with friction there may be no consistent
 * ones, as in the paradox of Painlevé, and the run ends. */
#include <string.h>

#include "blocks/multibody/elements/friction/friction.h"

enum { STICKING_TRIED = 7 }; /* joints at rest whose modes are tried, three each */
static const double STICKING_DEPENDENT = 1e-9; /* of a diagonal: what elimination leaves of it */
static const double STICKING_ASTRAY = 1e-7; /* of the largest acceleration, or m/s², rad/s²: others move a joint */
static const double STICKING_TIED = 1e-9; /* m/s or rad/s, or of the largest speed: that of a joint which others hold */

static const int32_t *sticking_force(const mb_view *m, int32_t a) { return mb_force_record(m, m->stick.order[a]); }

/* s_k */
static double sticking_scale(const mb_view *m, const int32_t *force) {
    const double scale =
        force[MB_FORCE_TYPE] == MB_JOINT_STICTION ? mb_joint_stiction_strength(m, force) : mb_stick_limit(m, force);
    return scale > 0.0 ? scale : 1.0;
}

/* F_kᵀ x */
static double sticking_rate(const mb_view *m, const int32_t *force, const double *x) {
    const double *unit = m->stick.unit + (int64_t)force[MB_FORCE_LAW] * m->nv;
    double sum = 0.0;
    for (int32_t k = 0; k < m->nv; k++) sum += unit[k] * x[k];
    return sum;
}

/* Into m->stick.order: the joints that hold, without those that constraints hold and without `except`, and `one` if not NULL. */
static void sticking_collect(mb_view *m, const int32_t *except, const int32_t *one) {
    mb_stiction *s = &m->stick;
    s->ordered = 0;
    for (const int32_t *force = mb_next_holding(m, NULL); force; force = mb_next_holding(m, force))
        if (s->held[force[MB_FORCE_LAW]] == 0.0 && force != except)
            s->order[s->ordered++] = mb_element_number(m, force);
    if (one) s->order[s->ordered++] = mb_element_number(m, one);
}

/* Scaled A = L Lᵀ by Cholesky's method with pivots, up to its rank; the rows of L have the order of the joints. */
static void sticking_factor(mb_view *m) {
    mb_stiction *s = &m->stick;
    const int32_t count = s->ordered, stride = s->count;
    double *rest = s->rest;
    for (int32_t a = 0; a < count; a++) {
        const int32_t *force = sticking_force(m, a);
        s->scale[a] = sticking_scale(m, force);
        for (int32_t b = 0; b <= a; b++) {
            const double *response = s->acceleration + (int64_t)sticking_force(m, b)[MB_FORCE_LAW] * m->nv;
            const double value = s->scale[a] * s->scale[b] * sticking_rate(m, force, response);
            s->matrix[(int64_t)a * stride + b] = s->matrix[(int64_t)b * stride + a] = value;
        }
        rest[a] = s->matrix[(int64_t)a * stride + a];
    }
    s->rank = 0;
    for (int32_t j = 0; j < count; j++) {
        int32_t pivot = -1;
        double most = STICKING_DEPENDENT;
        for (int32_t a = 0; a < count; a++) {
            const double part = rest[a] / s->matrix[(int64_t)a * stride + a];
            if (rest[a] > 0.0 && part > most) most = part, pivot = a;
        }
        if (pivot < 0) return;
        const double *of = s->lower + (int64_t)pivot * stride, root = sqrt(rest[pivot]);
        for (int32_t a = 0; a < count; a++) {
            double *row = s->lower + (int64_t)a * stride, sum = s->matrix[(int64_t)a * stride + pivot];
            for (int32_t c = 0; c < j; c++) sum -= row[c] * of[c];
            row[j] = a == pivot ? root : rest[a] > 0.0 ? sum / root : 0.0;
        }
        for (int32_t a = 0; a < count; a++)
            rest[a] -= s->lower[(int64_t)a * stride + j] * s->lower[(int64_t)a * stride + j];
        rest[pivot] = 0.0;
        s->pivots[j] = pivot;
        s->rank = j + 1;
    }
}

/* (Lᵀ L) = H Hᵀ, where the rank is less than the number of joints. */
static void sticking_factor_gram(mb_view *m) {
    mb_stiction *s = &m->stick;
    const int32_t rank = s->rank, stride = s->count;
    for (int32_t i = 0; i < rank; i++)
        for (int32_t j = 0; j <= i; j++) {
            double sum = 0.0;
            for (int32_t a = 0; a < s->ordered; a++)
                sum += s->lower[(int64_t)a * stride + i] * s->lower[(int64_t)a * stride + j];
            for (int32_t c = 0; c < j; c++) sum -= s->gram[(int64_t)i * stride + c] * s->gram[(int64_t)j * stride + c];
            s->gram[(int64_t)i * stride + j] = i == j ? sqrt(fmax(sum, 0.0)) : sum / s->gram[(int64_t)j * stride + j];
        }
}

/* x ← (H Hᵀ)⁻¹ x, or with the rows of L in the order of the pivots. */
static void sticking_substitute(const mb_stiction *s, const double *factor, bool pivots, double *x) {
    for (int32_t i = 0; i < s->rank; i++) {
        const double *row = factor + (int64_t)(pivots ? s->pivots[i] : i) * s->count;
        for (int32_t c = 0; c < i; c++) x[i] -= row[c] * x[c];
        x[i] /= row[i];
    }
    for (int32_t i = s->rank - 1; i >= 0; i--) {
        for (int32_t c = i + 1; c < s->rank; c++)
            x[i] -= factor[(int64_t)(pivots ? s->pivots[c] : c) * s->count + i] * x[c];
        x[i] /= factor[(int64_t)(pivots ? s->pivots[i] : i) * s->count + i];
    }
}

/* values ← f, of minimum norm, with A f = values; both by the order of the joints. */
static void sticking_solve(const mb_view *m, double *values) {
    const mb_stiction *s = &m->stick;
    double *x = s->rest;
    for (int32_t a = 0; a < s->ordered; a++) values[a] *= s->scale[a];
    if (s->rank == s->ordered) {
        for (int32_t j = 0; j < s->rank; j++) x[j] = values[s->pivots[j]];
        sticking_substitute(s, s->lower, true, x);
        for (int32_t j = 0; j < s->rank; j++) values[s->pivots[j]] = x[j];
    } else {
        for (int32_t j = 0; j < s->rank; j++) {
            x[j] = 0.0;
            for (int32_t a = 0; a < s->ordered; a++) x[j] += s->lower[(int64_t)a * s->count + j] * values[a];
        }
        sticking_substitute(s, s->gram, false, x);
        sticking_substitute(s, s->gram, false, x);
        for (int32_t a = 0; a < s->ordered; a++) {
            values[a] = 0.0;
            for (int32_t j = 0; j < s->rank; j++) values[a] += s->lower[(int64_t)a * s->count + j] * x[j];
        }
    }
    for (int32_t a = 0; a < s->ordered; a++) values[a] *= s->scale[a];
}

void mb_solve_sticking(mb_view *m) {
    mb_stiction *s = &m->stick;
    sticking_collect(m, NULL, NULL);
    sticking_factor(m);
    if (s->rank < s->ordered) sticking_factor_gram(m);
    for (int32_t a = 0; a < s->ordered; a++) s->found[a] = s->right[sticking_force(m, a)[MB_FORCE_LAW]];
    sticking_solve(m, s->found);
    memset(s->right, 0, (size_t)s->count * sizeof(double));
    for (int32_t a = 0; a < s->ordered; a++) s->right[sticking_force(m, a)[MB_FORCE_LAW]] = s->found[a];
}

/* Columns of m->stick.wanted and m->stick.found: for the solution without friction, and for a load of 1 N in each joint. */
static double *sticking_column(const mb_view *m, double *columns, int32_t n) {
    return columns + (int64_t)n * m->stick.count;
}

void mb_eliminate_sticking(mb_view *m, mb_view *still, double t) {
    mb_stiction *s = &m->stick;
    const int32_t loads = m->head[MB_JOINT_FRICTIONS];
    const int64_t parts = (int64_t)loads * MB_JOINT_FRICTION_PARTS;
    memset(s->astray, 0, (size_t)s->count * sizeof(double));
    for (const int32_t *force = mb_next_holding(m, NULL); force; force = mb_next_holding(m, force)) {
        mb_stick_respond(still, force, t);
        if (s->held[force[MB_FORCE_LAW]] != 0.0) continue;
        (void)mb_stick_push(still, force, t);
        mb_joint_friction_reactions(still, s->response + force[MB_FORCE_LAW] * parts);
    }
    sticking_collect(m, NULL, NULL);
    if (s->ordered == 0) return;
    sticking_factor(m);
    if (s->rank < s->ordered) sticking_factor_gram(m);
    for (int32_t n = 0; n <= loads; n++) {
        double *wanted = sticking_column(m, s->wanted, n), *found = sticking_column(m, s->found, n);
        if (n > 0 && !mb_has_joint_friction(m, n - 1)) continue;
        for (int32_t a = 0; a < s->ordered; a++) {
            const int32_t *force = sticking_force(m, a);
            wanted[a] = n == 0 ? -mb_stick_second(m, force, t)
                               : -sticking_rate(m, force, m->friction.acceleration + (int64_t)(n - 1) * m->nv);
        }
        memcpy(found, wanted, (size_t)s->ordered * sizeof(double));
        sticking_solve(m, found);
        double *reactions = n == 0 ? m->friction.base : m->friction.response + (n - 1) * parts;
        for (int32_t a = 0; a < s->ordered; a++) {
            const double *response = s->response + sticking_force(m, a)[MB_FORCE_LAW] * parts;
            for (int64_t c = 0; c < parts; c++) reactions[c] += found[a] * response[c];
        }
    }
}

/* Which joints others move that hold the same motion, and how: they cannot all hold. */
static void sticking_find_astray(mb_view *m) {
    mb_stiction *s = &m->stick;
    double most = fmax(1.0, mb_largest(m->acceleration, m->nv));
    for (int32_t a = 0; a < s->ordered; a++) {
        const int32_t n = sticking_force(m, a)[MB_FORCE_LAW];
        double moved = 0.0, size = fabs(sticking_column(m, s->wanted, 0)[a]);
        for (int32_t b = 0; b < s->ordered; b++)
            moved += s->matrix[(int64_t)a * s->count + b] / (s->scale[a] * s->scale[b]) *
                     s->right[sticking_force(m, b)[MB_FORCE_LAW]];
        moved -= sticking_column(m, s->wanted, 0)[a];
        for (int32_t k = 0; k < m->head[MB_JOINT_FRICTIONS]; k++) {
            if (!mb_has_joint_friction(m, k)) continue;
            moved -= m->friction.strength[k] * sticking_column(m, s->wanted, k + 1)[a];
            size += fabs(m->friction.strength[k] * sticking_column(m, s->wanted, k + 1)[a]);
        }
        s->astray[n] = fabs(moved) > STICKING_ASTRAY * fmax(most, size) ? moved : 0.0;
    }
}

void mb_add_sticking(mb_view *m) {
    mb_stiction *s = &m->stick;
    if (!mb_sticks(m)) return;
    memset(s->right, 0, (size_t)s->count * sizeof(double));
    for (int32_t a = 0; a < s->ordered; a++) {
        double effort = s->found[a];
        for (int32_t k = 0; k < m->head[MB_JOINT_FRICTIONS]; k++)
            if (mb_has_joint_friction(m, k)) effort += m->friction.strength[k] * sticking_column(m, s->found, k + 1)[a];
        s->right[sticking_force(m, a)[MB_FORCE_LAW]] = effort;
    }
    if (s->rank < s->ordered) sticking_find_astray(m);
    mb_stick_apply(m);
}

/* Whether the joints that hold keep a joint from moving, which may be one of them; needs their responses. */
static bool sticking_is_tied(mb_view *m, const int32_t *force, double t) {
    if (mb_stick_mode(m, force) != MB_HOLDS) {
        mb_view still = mb_view_at_rest(m);
        mb_stick_respond(&still, force, t);
    }
    if (m->stick.held[force[MB_FORCE_LAW]] != 0.0) return false;
    sticking_collect(m, force, NULL);
    sticking_factor(m);
    const int32_t rank = m->stick.rank;
    sticking_collect(m, force, force);
    sticking_factor(m);
    return m->stick.rank == rank;
}

/* Of `mode`: the next record after `force`, or the first; NULL: no other. */
static const int32_t *sticking_next(const mb_view *m, const int32_t *force, int mode) {
    for (int32_t n = force ? mb_element_number(m, force) + 1 : 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *record = mb_force_record(m, n);
        if (mb_has_stick_mode(record) && mb_stick_mode(m, record) == mode) return record;
    }
    return NULL;
}

/* Where a joint that holds no longer does: it slides, or it yields if others hold it. */
static void sticking_release(mb_view *m, const int32_t *force, double t, const double *v) {
    const int32_t n = force[MB_FORCE_LAW];
    const bool held = m->stick.held[n] != 0.0, astray = m->stick.astray[n] != 0.0;
    const double way = held ? mb_joint_rate(m, force, t, v) : astray ? m->stick.astray[n] : -m->stick.effort[n];
    if (!held && !astray && sticking_is_tied(m, force, t)) {
        mb_set_stick_mode(m, force, MB_YIELDS, way);
        return;
    }
    mb_set_stick_mode(m, force, MB_SLIPS, way);
    for (const int32_t *other = sticking_next(m, NULL, MB_YIELDS); other; other = sticking_next(m, other, MB_YIELDS))
        if (!sticking_is_tied(m, other, t)) mb_set_stick_mode(m, other, MB_SLIPS, mb_stick_direction(m, other));
}

/* Releases joints one by one, until all that hold are within their limits. Returns 0 if the equations have no solution. */
static int sticking_release_all(mb_view *m, double t, const double *q, const double *v) {
    bool forced = false;
    for (const int32_t *force = mb_next_holding(m, NULL); force; force = mb_next_holding(m, force)) {
        const double way = mb_stick_forced(m, force, t);
        if (way == 0.0) continue;
        mb_set_stick_mode(m, force, MB_SLIPS, way);
        forced = true;
    }
    if (forced && !mb_accelerations(m, t, q, v)) return 0;
    for (int32_t pass = 0; pass < m->stick.count; pass++) {
        const int32_t *force = mb_stick_find_sliding(m, t, v);
        if (!force) return 1;
        sticking_release(m, force, t, v);
        if (!mb_accelerations(m, t, q, v)) return 0;
    }
    return 1;
}

static bool sticking_rests(const mb_view *m, const int32_t *force, double t, const double *v) {
    return mb_has_stick_mode(force) && fabs(mb_joint_rate(m, force, t, v)) <= mb_stick_still(m, v);
}

/* Whether no joint is accelerated against the direction in which it begins to slide; at a solution. */
static bool sticking_is_consistent(const mb_view *m, double t, const double *v) {
    const double rounding = mb_stick_rounding(m);
    for (const int32_t *force = mb_next_holding(m, NULL); force; force = mb_next_holding(m, force))
        if (mb_stick_forced(m, force, t) != 0.0) return false;
    for (const int32_t *force = sticking_next(m, NULL, MB_SLIPS); force; force = sticking_next(m, force, MB_SLIPS))
        if (sticking_rests(m, force, t, v) && mb_stick_direction(m, force) * mb_stick_second(m, force, t) < -rounding)
            return false;
    return true;
}

/* Whether the present modes of joints at rest are consistent; those that hold may yield. */
static bool sticking_try(mb_view *m, double t, const double *q, const double *v) {
    bool solved = mb_accelerations(m, t, q, v) != 0;
    for (int32_t pass = 0; solved && pass < m->stick.count; pass++) {
        const int32_t *force = mb_stick_find_sliding(m, t, v);
        if (!force) break;
        sticking_release(m, force, t, v);
        if (mb_stick_mode(m, force) != MB_YIELDS) return false;
        solved = mb_accelerations(m, t, q, v) != 0;
    }
    if (!solved) m->diverging_friction = -1;
    return solved && sticking_is_consistent(m, t, v);
}

/* Tries all modes of the joints at rest, and takes those that are consistent and in which the most joints hold. */
static int sticking_search(mb_view *m, double t, const double *q, const double *v) {
    mb_stiction *s = &m->stick;
    int32_t rests[STICKING_TRIED], count = 0, last = -1, best = -1, cases = 1;
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        if (!sticking_rests(m, mb_force_record(m, n), t, v)) continue;
        if (count < STICKING_TRIED) rests[count] = n, cases *= 3;
        last = n;
        count++;
    }
    if (count > STICKING_TRIED) cases = 0;
    for (int32_t number = 0; number < cases; number++) {
        int32_t holds = 0, rest = number;
        for (int32_t k = 0; k < count; k++, rest /= 3) {
            mb_set_stick_mode(m, mb_force_record(m, rests[k]), rest % 3 == 0 ? MB_HOLDS : MB_SLIPS,
                              rest % 3 == 1 ? 1.0 : -1.0);
            holds += rest % 3 == 0;
        }
        if (holds <= best || !sticking_try(m, t, q, v)) continue;
        best = holds;
        memcpy(s->best, s->slips, (size_t)s->count * sizeof(double));
    }
    if (best < 0) {
        for (int32_t n = 0; last < 0; n++)
            if (mb_has_stick_mode(mb_force_record(m, n))) last = n;
        m->ambiguous_friction = last;
        return 0;
    }
    memcpy(s->slips, s->best, (size_t)s->count * sizeof(double));
    return mb_accelerations(m, t, q, v);
}

/* Joints that slide so slowly that those which have stopped hold them, too. */
static void sticking_stop_tied(mb_view *m, double t, const double *v) {
    for (const int32_t *force = sticking_next(m, NULL, MB_SLIPS); force; force = sticking_next(m, force, MB_SLIPS)) {
        const double rate = mb_joint_rate(m, force, t, v), slow = STICKING_TIED * fmax(1.0, mb_largest(v, m->nv));
        if (fabs(rate) > slow || !sticking_is_tied(m, force, t)) continue;
        mb_set_stick_mode(m, force, MB_HOLDS, 0.0);
    }
}

/* Lets the joints that have stopped hold, and releases those that cannot. Returns whether the modes are consistent. */
static bool sticking_change(mb_view *m, double t, const double *q, double *v, bool stopped) {
    for (const int32_t *force = sticking_next(m, NULL, MB_YIELDS); force; force = sticking_next(m, force, MB_YIELDS))
        mb_set_stick_mode(m, force, MB_HOLDS, 0.0);
    if (!mb_accelerations(m, t, q, v)) return false;
    if (stopped) {
        sticking_stop_tied(m, t, v);
        if (!mb_hold_still(m, t, q, v) || !mb_accelerations(m, t, q, v)) return false;
    }
    return sticking_release_all(m, t, q, v) && sticking_is_consistent(m, t, v);
}

int mb_settle_sticking(mb_view *m, double t, const double *q, double *v, bool *changed) {
    mb_stiction *s = &m->stick;
    const size_t bytes = (size_t)s->count * sizeof(double);
    bool stopped = false;
    *changed = false;
    memcpy(s->before, s->slips, bytes);
    if (!mb_accelerations(m, t, q, v)) return 0;
    for (const int32_t *force = sticking_next(m, NULL, MB_SLIPS); force; force = sticking_next(m, force, MB_SLIPS)) {
        if (!mb_stick_stops(m, force, t, v)) continue;
        const bool stops = mb_stick_can_stop(m, force, t, v);
        mb_set_stick_mode(m, force, stops ? MB_HOLDS : MB_SLIPS, mb_joint_rate(m, force, t, v));
        stopped = stopped || stops;
        *changed = true;
    }
    if (!*changed && !mb_stick_find_sliding(m, t, v)) return 1;
    if (!sticking_change(m, t, q, v, stopped)) {
        m->diverging_friction = -1;
        if (!sticking_search(m, t, q, v)) return 0;
    }
    *changed = memcmp(s->before, s->slips, bytes) != 0;
    return 1;
}
