/* The initial state: the nearest one to the given state that satisfies joints, drivers and prescribed joint values.
 *
 * Nearest is in the metric of mass, over all bodies, wherever the tree cuts loops:
 *
 *   positions   least ½ ∫ |x - x_given|² dm        the displacement of every mass point, so that rotations count by their inertia
 *   velocities  least ½ ∫ |ẋ - ẋ_given|² dm        at the pose that was found
 *
 * with Φ(q, t) = 0, Φ̇ = 0 and c_k(q) = value_k for the prescribed coordinates and speeds. The gradients are wrenches on the bodies, and
 * the matrix of the equations is that of the dynamics, so that a Gauss–Newton step is what the mechanism does from rest under them:
 *
 *   M δ + Jᵀ λ + Cᵀ μ = Σ wrenches,   J δ = -Φ,   C δ = value - c
 *
 * Redundant rows are dealt with as in the dynamics. Kept values are added by their Schur complement S = C A⁻¹ Cᵀ, which is eliminated with
 * pivots: a value with none left is decided by the rows and the other values, and must agree with them. */
#include <string.h>

#include "blocks/core/kernel/constants.h"
#include "blocks/multibody/kernel/multibody.h"

enum { MB_FIT_LIMIT = 50, MB_SLOW_LIMIT = 12, MB_CLOSE_LIMIT = 30, MB_FOLLOW_LIMIT = 500, MB_NEAREST_LIMIT = 400 };
static const double FULL_TURN = 2.0 * BL_PI;
/* Given poses that are met this well, as a part of the size and in rad, are not improved. */
static const double POSE_MET = 1e-12;
/* Rows that are more open than this, as parts of lengths and in rad, are closed little by little. */
static const double WIDE_OPEN = 1e-6;
/* Kept coordinates are approached in steps of this many rad, or of this part of the size, so that no branch is left. */
static const double KEPT_TURN = 0.2, KEPT_PART = 0.1;
/* A prescribed value is dependent on the others if less than this fraction of its mobility is left. */
static const double KEPT_DECIDED = 1e-8;
/* Motions of a generic push of 1 rad, or of the size, that are more than this are free. */
static const double FREE_MOTION = 1e-6;
/* Kept values are met up to this, in rad and rad/s or as a part of the size. */
static const double KEPT_MET = 1e-9;

const int32_t *mb_keep_record(const mb_view *m, int32_t n) { return m->keeps + n * MB_KEEP_FIELDS; }

static bool keeps_rate(const mb_view *m, int32_t n) { return mb_keep_record(m, n)[MB_KEEP_RATE] != 0; }

static bool keep_turns(const mb_view *m, int32_t n) {
    const int32_t *keep = mb_keep_record(m, n);
    if (keep[MB_KEEP_SIGN] == 0)
        return m->measures[keep[MB_KEEP_INDEX] * MB_MEASURE_FIELDS + MB_MEASURE_TYPE] == MB_ANGLE;
    for (int32_t l = 0; l < m->link_count; l++)
        if (m->links[l * MB_LINK_FIELDS + MB_LINK_Q] == keep[MB_KEEP_INDEX] &&
            m->links[l * MB_LINK_FIELDS + MB_LINK_TYPE] != MB_FIXED)
            return m->links[l * MB_LINK_FIELDS + MB_LINK_TYPE] == MB_REVOLUTE;
    return false;
}

bool mb_keep_turns_about(const mb_view *m, int32_t n) { return keep_turns(m, n); }

static double wanted_value(const mb_view *m, int32_t n) { return m->p[mb_keep_record(m, n)[MB_KEEP_P]]; }

/* A prescribed coordinate at the present poses. */
static double coordinate_now(const mb_view *m, int32_t n, double t, const double *q) {
    const int32_t *keep = mb_keep_record(m, n);
    return keep[MB_KEEP_SIGN] == 0 ? mb_measure(m, keep[MB_KEEP_INDEX], t)
                                   : mb_coordinate(keep[MB_KEEP_SIGN], q[keep[MB_KEEP_INDEX]]);
}

/* A prescribed speed at the present poses and velocities. */
static double speed_now(const mb_view *m, int32_t n, double t, const double *v) {
    const int32_t *keep = mb_keep_record(m, n);
    double second;
    if (keep[MB_KEEP_SIGN] == 0) return mb_measure_rate(m, keep[MB_KEEP_INDEX], t, &second);
    return keep[MB_KEEP_SIGN] < 0 ? -v[keep[MB_KEEP_V]] : v[keep[MB_KEEP_V]];
}

double mb_kept_now(mb_view *m, int32_t n, double t, const double *q, const double *v) {
    mb_positions(m, q);
    mb_velocities(m, v);
    return keeps_rate(m, n) ? speed_now(m, n, t, v) : coordinate_now(m, n, t, q);
}

/* Prescribed angles start in the turn of their value. */
static void choose_turns(const mb_view *m, double *q) {
    for (int32_t n = 0; n < m->keep_count; n++) {
        const int32_t *keep = mb_keep_record(m, n);
        if (keeps_rate(m, n) || !keep_turns(m, n) || !isfinite(wanted_value(m, n))) continue;
        if (keep[MB_KEEP_SIGN] == 0) {
            m->turns[keep[MB_KEEP_INDEX]] = wanted_value(m, n);
            continue;
        }
        double *angle = &q[keep[MB_KEEP_INDEX]];
        const double turns = nearbyint((wanted_value(m, n) - mb_coordinate(keep[MB_KEEP_SIGN], *angle)) / FULL_TURN);
        *angle += (keep[MB_KEEP_SIGN] < 0 ? -FULL_TURN : FULL_TURN) * turns;
    }
}

static void read_given(mb_view *m, double t, double *q, double *v) {
    mb_pose_from_bodies(m, q, v);
    mb_start_turns(m, t, q);
    choose_turns(m, q);
    for (int32_t c = 0; c < m->cut_count; c++) {
        const mb_coordinate_row *own = mb_coordinate_row_of(m, c);
        if (own && own->follow_turns) own->follow_turns(m, c, t, q);
    }
    mb_start_signs(m, q);
}

/* Where the given pose puts the center of mass of the body of link `l`, less where it is; and the rotation from the given axes to the
   present ones, in world axes. */
static void given_center(const mb_view *m, int32_t l, double *way, double *turned) {
    const mb_body_data *body = &m->body[m->links[l * MB_LINK_FIELDS + MB_LINK_BODY]];
    const mb_link_state *s = &m->link[l];
    double R[9], com[3];
    mb_multiply(s->R, m->data[l].R_body, R);
    mb_multiply_back(R, body->R, turned);
    mb_rotate(body->R, body->com, com);
    for (int k = 0; k < 3; k++) way[k] = body->p[k] + com[k] - s->p[k] - s->c[k];
}

double mb_turn_angle(const double *Q) {
    const double x = Q[7] - Q[5], y = Q[2] - Q[6], z = Q[3] - Q[1];
    return atan2(sqrt(x * x + y * y + z * z), Q[0] + Q[4] + Q[8] - 1.0);
}

/* The second moments ∫ x xᵀ dm about the center of mass, of an inertia tensor. */
static void second_moments(const double *inertia, double *E) {
    const double half = 0.5 * (inertia[0] + inertia[4] + inertia[8]);
    for (int k = 0; k < 9; k++) E[k] = (k % 4 == 0 ? half : 0.0) - inertia[k];
}

/* ½ ∫ |x - x_given|² dm of all bodies; needs poses and inertias. */
static double distance_to_given(const mb_view *m) {
    double sum = 0.0;
    for (int32_t l = 0; l < m->link_count; l++) {
        if (m->links[l * MB_LINK_FIELDS + MB_LINK_BODY] < 0) continue;
        double way[3], Q[9], J[3];
        given_center(m, l, way, Q);
        /* (1 - cos θ) n · J n for a turn by θ about n, of s = n sin θ, which keeps its digits where θ is small. */
        const double s[3] = {0.5 * (Q[7] - Q[5]), 0.5 * (Q[2] - Q[6]), 0.5 * (Q[3] - Q[1])};
        const double cosine = 0.5 * (Q[0] + Q[4] + Q[8] - 1.0);
        sum += 0.5 * m->data[l].mass * mb_dot(way, way);
        if (cosine > -0.9) {
            mb_rotate(m->link[l].inertia, s, J);
            sum += mb_dot(s, J) / (1.0 + cosine);
        } else {
            double E[9], B[9];
            second_moments(m->link[l].inertia, E);
            mb_multiply(E, Q, B);
            sum += E[0] + E[4] + E[8] - B[0] - B[4] - B[8];
        }
    }
    return sum;
}

/* How far the bodies are from the given poses at the most: of centers of mass in m, of axes in rad. Needs poses and inertias. */
static void farthest(const mb_view *m, double *length, double *angle) {
    *length = *angle = 0.0;
    for (int32_t l = 0; l < m->link_count; l++) {
        if (m->links[l * MB_LINK_FIELDS + MB_LINK_BODY] < 0) continue;
        double way[3], Q[9];
        given_center(m, l, way, Q);
        *length = mb_larger(*length, sqrt(mb_dot(way, way)));
        *angle = mb_larger(*angle, mb_turn_angle(Q));
    }
}

/* The diagonal of the bounding box of all points in the given pose, in m. */
double mb_given_size(const mb_view *m) {
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY}, across[3];
    for (int32_t k = 0; k < m->marker_count + 2 * m->body_count; k++) {
        double P[3] = {0, 0, 0}, in_body[3], arm[3];
        if (k < m->marker_count) {
            const int32_t link = m->markers[k * MB_MARKER_FIELDS + MB_MARKER_LINK];
            const int32_t number = link < 0 ? -1 : m->links[link * MB_LINK_FIELDS + MB_LINK_BODY];
            if (number < 0) {
                mb_copy(m->marker_data[k].p, P);
            } else {
                const mb_body_data *body = &m->body[number];
                mb_sub(m->marker_data[k].p, m->data[link].p_body, arm);
                mb_rotate_back(m->data[link].R_body, arm, in_body);
                mb_rotate(body->R, in_body, P);
                mb_add(body->p, P);
            }
        } else {
            const mb_body_data *body = &m->body[(k - m->marker_count) / 2];
            if ((k - m->marker_count) % 2) mb_rotate(body->R, body->com, P);
            mb_add(body->p, P);
        }
        for (int c = 0; c < 3; c++) {
            low[c] = fmin(low[c], P[c]);
            high[c] = fmax(high[c], P[c]);
        }
    }
    mb_sub(high, low, across);
    const double size = sqrt(mb_dot(across, across));
    return size > 0.0 && isfinite(size) ? size : 1.0;
}

/* No loads, and everything at rest. */
static void clear_loads(mb_view *m) {
    memset(m->start.still, 0, (size_t)m->nv * sizeof(double));
    memset(m->force, 0, (size_t)m->nv * sizeof(double));
    mb_velocities(m, m->start.still);
    for (int32_t l = 0; l < m->link_count; l++) {
        memset(m->link[l].F, 0, sizeof m->link[l].F);
        memset(m->link[l].N, 0, sizeof m->link[l].N);
    }
}

static void push_center(mb_view *m, int32_t l, const double *F, const double *N) {
    mb_link_state *s = &m->link[l];
    mb_add(F, s->F);
    mb_add(N, s->N);
    mb_add_cross(s->c, F, s->N);
}

/* Pulls every body toward its given pose: minus the gradient of the distance. */
static void pull_to_given(mb_view *m) {
    for (int32_t l = 0; l < m->link_count; l++) {
        if (m->links[l * MB_LINK_FIELDS + MB_LINK_BODY] < 0) continue;
        double F[3], Q[9], E[9], B[9];
        given_center(m, l, F, Q);
        for (int k = 0; k < 3; k++) F[k] *= m->data[l].mass;
        second_moments(m->link[l].inertia, E);
        mb_multiply(E, Q, B);
        const double N[3] = {B[5] - B[7], B[6] - B[2], B[1] - B[3]};
        push_center(m, l, F, N);
    }
}

/* The momentum of a velocity of the center of mass and an angular velocity, as an impulse. */
static void push_momentum(mb_view *m, int32_t l, const double *v, const double *w) {
    double F[3], N[3];
    for (int k = 0; k < 3; k++) F[k] = m->data[l].mass * v[k];
    mb_rotate(m->link[l].inertia, w, N);
    push_center(m, l, F, N);
}

static bool finite_speeds(const double *values, int32_t count) {
    for (int32_t k = 0; k < count; k++)
        if (!isfinite(values[k])) return false;
    return true;
}

/* m->acceleration ← δ of M δ + Jᵀ λ = loads, J δ = -rows, from rest; rows NULL is 0. Needs K where there are rows. */
static bool respond_from_rest(mb_view *m, const double *rows) {
    if (m->row_count == 0) {
        mb_tree_accelerations(m, m->acceleration);
    } else {
        mb_bias_forces(m, m->step);
        for (int32_t k = 0; k < m->nv; k++) m->force[k] -= m->step[k];
        if (rows) memcpy(m->bias, rows, (size_t)m->row_count * sizeof(double));
        else memset(m->bias, 0, (size_t)m->row_count * sizeof(double));
        (void)mb_solve_rows(m, 0.0);
    }
    return finite_speeds(m->acceleration, m->nv);
}

/* C of a prescribed value: its derivative with respect to the speeds. */
static void keep_jacobian(mb_view *m, int32_t n, double t, double *row) {
    const int32_t *keep = mb_keep_record(m, n);
    if (keep[MB_KEEP_SIGN] != 0) {
        memset(row, 0, (size_t)m->nv * sizeof(double));
        row[keep[MB_KEEP_V]] = keep[MB_KEEP_SIGN] < 0 ? -1.0 : 1.0;
        return;
    }
    clear_loads(m);
    mb_measure_push(m, keep[MB_KEEP_INDEX], t, 1.0);
    mb_bias_forces(m, row);
    for (int32_t k = 0; k < m->nv; k++) row[k] = -row[k];
}

static double dot_speeds(const double *a, const double *b, int32_t count) {
    double sum = 0.0;
    for (int32_t k = 0; k < count; k++) sum += a[k] * b[k];
    return sum;
}

/* Upper bound of the mobility of a prescribed value: exact without rows, with rows the estimate from each speed alone. */
static double kept_mobility(const mb_view *m, const double *row, double found) {
    if (m->row_count == 0) return found;
    double sum = 0.0;
    for (int32_t k = 0; k < m->nv; k++) {
        const double mass = m->mass_diagonal[m->permutation[k]];
        if (mass > 0.0) sum += row[k] * row[k] / mass;
    }
    return sum;
}

/* Adds to `step` the correction that makes C step = error for the prescribed coordinates or speeds; `decided` marks those that the
   rows and the others determine. Leaves C in rows. */
static bool add_kept(mb_view *m, double t, bool rate, double *step) {
    mb_start *s = &m->start;
    const int32_t count = m->keep_count, nv = m->nv;
    int32_t used = 0;
    for (int32_t n = 0; n < count; n++) {
        s->decided[n] = 1.0;
        if (keeps_rate(m, n) != rate) continue;
        used++;
        double *row = s->rows + (int64_t)n * nv;
        keep_jacobian(m, n, t, row);
        clear_loads(m);
        memcpy(m->force, row, (size_t)nv * sizeof(double));
        if (!respond_from_rest(m, NULL)) return false;
        memcpy(s->replies + (int64_t)n * nv, m->acceleration, (size_t)nv * sizeof(double));
        s->decided[n] = 0.0;
    }
    if (used == 0) return true;
    for (int32_t n = 0; n < count; n++) {
        if (s->decided[n] != 0.0) continue;
        const double *row = s->rows + (int64_t)n * nv;
        for (int32_t k = 0; k < count; k++) {
            const double *reply = s->replies + (int64_t)k * nv;
            s->matrix[n * count + k] = s->decided[k] != 0.0 ? 0.0 : dot_speeds(row, reply, nv);
        }
        s->scale[n] = kept_mobility(m, row, s->matrix[n * count + n]);
        s->share[n] = s->error[n] - dot_speeds(row, step, nv);
    }
    /* Eliminated by rows, the largest pivot first; `order` is that of the pivots, and those that have none are decided. */
    int32_t rank = 0;
    for (; rank < used; rank++) {
        int32_t best = -1;
        double most = KEPT_DECIDED;
        for (int32_t n = 0; n < count; n++) {
            if (s->decided[n] != 0.0) continue;
            const double part = s->scale[n] > 0.0 ? s->matrix[n * count + n] / s->scale[n] : 0.0;
            if (part > most) most = part, best = n;
        }
        if (best < 0) break;
        s->order[rank] = best;
        s->decided[best] = 2.0; /* a pivot */
        for (int32_t n = 0; n < count; n++) {
            if (s->decided[n] != 0.0) continue;
            const double factor = s->matrix[n * count + best] / s->matrix[best * count + best];
            for (int32_t k = 0; k < count; k++) s->matrix[n * count + k] -= factor * s->matrix[best * count + k];
            s->share[n] -= factor * s->share[best];
        }
    }
    for (int32_t p = rank - 1; p >= 0; p--) {
        const int32_t n = (int32_t)s->order[p];
        double sum = s->share[n];
        for (int32_t later = p + 1; later < rank; later++) {
            const int32_t k = (int32_t)s->order[later];
            sum -= s->matrix[n * count + k] * s->share[k];
        }
        s->share[n] = sum / s->matrix[n * count + n];
    }
    for (int32_t n = 0; n < count; n++) {
        if (s->decided[n] == 2.0) {
            s->decided[n] = 0.0;
            const double *reply = s->replies + (int64_t)n * nv;
            for (int32_t k = 0; k < nv; k++) step[k] += s->share[n] * reply[k];
        } else {
            s->decided[n] = keeps_rate(m, n) == rate;
        }
    }
    return true;
}

/* Stores the errors of the prescribed coordinates in `error`; returns the largest, relative to the step limit. */
static double kept_error(mb_view *m, double t, const double *q) {
    double most = 0.0;
    for (int32_t n = 0; n < m->keep_count; n++) {
        if (keeps_rate(m, n)) continue;
        m->start.error[n] = wanted_value(m, n) - coordinate_now(m, n, t, q);
        most = mb_larger(most, fabs(m->start.error[n]) / (keep_turns(m, n) ? KEPT_TURN : KEPT_PART * m->start.size));
    }
    return most;
}

/* Poses, rows and K at q. */
static bool see_pose(mb_view *m, double t, const double *q) {
    m->start.looks += 1.0;
    mb_update_positions(m, t, q);
    mb_inertias(m);
    return m->row_count == 0 || mb_refactor(m);
}

/* The smallest step that closes all rows and moves prescribed coordinates by the fraction `part` of their error; or, if `pulls`, the
   one that ends nearest to the given pose. Requires see_pose(). */
static bool find_step(mb_view *m, double t, const double *q, bool pulls, double *step) {
    double most = kept_error(m, t, q);
    clear_loads(m);
    if (pulls) pull_to_given(m);
    if (!respond_from_rest(m, m->phi)) return false;
    memcpy(step, m->acceleration, (size_t)m->nv * sizeof(double));
    if (m->keep_count == 0) return true;
    if (!isfinite(most)) return false;
    if (most > 1.0)
        for (int32_t n = 0; n < m->keep_count; n++) m->start.error[n] /= most;
    return add_kept(m, t, false, step);
}

/* Closes rows and brings prescribed coordinates to their values, from a nearly closed pose. Returns whether it succeeded. */
static bool follow_kept(mb_view *m, double t, double *q, int limit) {
    double *step = m->start.step, before = INFINITY;
    for (int iteration = 0; iteration < limit; iteration++) {
        if (!see_pose(m, t, q)) return false;
        const double open = fmax(mb_openness(m), kept_error(m, t, q));
        if (open <= 1e-14 || (open <= 1e-9 && open >= 0.5 * before)) return true;
        before = open;
        if (!find_step(m, t, q, false, step)) return false;
        bool stuck = true; /* the caller reports prescribed values that are dependent */
        for (int32_t n = 0; n < m->keep_count; n++)
            if (!keeps_rate(m, n) && m->start.decided[n] == 0.0) stuck = false;
        mb_move(m, q, step);
        if (stuck && m->keep_count > 0 && mb_largest(step, m->nv) <= 1e-12) return true;
    }
    return false;
}

/* Limit on evaluated poses: enough for any mechanism of tens of bodies, and seconds for one of hundreds, whose matrix is dense. */
static double most_looks(const mb_view *m) {
    double work = 1.0;
    for (int32_t k = 0; m->row_count > 0 && k < m->nv; k++) {
        const double length = m->column_start[k + 1] - m->column_start[k];
        work += length * length;
    }
    return fmin(fmax(1e9 / work, 60.0), 5000.0);
}

/* Descends from a closed pose to the one nearest to the given pose. The Gauss–Newton matrix omits the curvature of the constraints:
   the change from step to step determines the step length. */
static bool approach_given(mb_view *m, double t, double *q) {
    double *step = m->start.pulled, *last = m->start.last, *best = m->start.q, fraction = 1.0, before = INFINITY,
           square = 0.0;
    if (!see_pose(m, t, q)) return false;
    double distance = distance_to_given(m), mass = 0.0;
    for (int32_t k = 0; k < m->body_count; k++) mass += m->body[k].mass;
    const double end = m->start.looks + most_looks(m);
    for (int iteration = 0; iteration < MB_NEAREST_LIMIT && m->start.looks < end; iteration++) {
        if (!find_step(m, t, q, true, step)) return false;
        const double size = mb_largest(step, m->nv);
        if (size <= 1e-14 * fmax(1.0, m->start.size) || (size <= 1e-11 && size >= 0.9 * before)) break;
        if (square > 0.0) {
            const double kept = dot_speeds(step, last, m->nv) / square;
            fraction = fmin(1.0, fmax(kept < 1.0 ? fraction / (1.0 - kept) : 1.0, 0.02));
        }
        before = size;
        square = dot_speeds(step, step, m->nv);
        memcpy(last, step, (size_t)m->nv * sizeof(double));
        memcpy(best, q, (size_t)m->nq * sizeof(double));
        double now = INFINITY;
        /* Up to the rounding of places, which the size of the mechanism has. */
        const double most = distance + 1e-13 * m->start.size * sqrt(2.0 * mass * distance) + 1e-12 * distance;
        for (; fraction > 1e-4 && m->start.looks < end; fraction *= 0.5) {
            memcpy(q, best, (size_t)m->nq * sizeof(double));
            for (int32_t k = 0; k < m->nv; k++) step[k] = fraction * last[k];
            mb_move(m, q, step);
            if ((m->row_count > 0 || m->keep_count > 0) && !follow_kept(m, t, q, MB_CLOSE_LIMIT)) continue;
            if (!see_pose(m, t, q)) continue;
            now = distance_to_given(m);
            if (now <= most) break;
        }
        if (!(now <= most)) {
            memcpy(q, best, (size_t)m->nq * sizeof(double));
            return see_pose(m, t, q);
        }
        distance = now;
    }
    return true;
}

/* Closes the rows little by little, from open to as closed as the weights of K make them, and stays near the given pose: the least of the
   distance and of ½ Σ α Φ², with α rising. A first closing that removes Φ in a single step may end far away. */
static void close_slowly(mb_view *m, double t, double *q) {
    const double *settings = m->settings;
    double *step = m->start.pulled, *best = m->start.q, weights[MB_SETTINGS_COUNT];
    memcpy(weights, settings, sizeof weights);
    m->settings = weights;
    weights[MB_ALPHA] = 1.0;
    for (int stage = 0; stage < 7; stage++, weights[MB_ALPHA] *= 10.0) {
        for (int iteration = 0; iteration < MB_SLOW_LIMIT; iteration++) {
            if (!see_pose(m, t, q)) goto end;
            double before = distance_to_given(m), now = INFINITY;
            for (int32_t k = 0; k < m->row_count; k++) before += 0.5 * m->alpha[k] * m->phi[k] * m->phi[k];
            clear_loads(m);
            pull_to_given(m);
            mb_bias_forces(m, step);
            for (int32_t k = 0; k < m->nv; k++) step[k] = -step[k];
            for (int32_t k = 0; k < m->row_count; k++) m->row_work[k] = m->alpha[k] * m->phi[k];
            mb_add_jacobian_transposed(m, m->row_work, -1.0, step);
            mb_solve(m, step);
            if (!finite_speeds(step, m->nv)) goto end;
            memcpy(best, q, (size_t)m->nq * sizeof(double));
            for (int halving = 0; halving < 10; halving++) {
                memcpy(q, best, (size_t)m->nq * sizeof(double));
                mb_move(m, q, step);
                mb_update_positions(m, t, q);
                mb_inertias(m);
                now = distance_to_given(m);
                for (int32_t k = 0; k < m->row_count; k++) now += 0.5 * m->alpha[k] * m->phi[k] * m->phi[k];
                if (now < before) break;
                for (int32_t k = 0; k < m->nv; k++) step[k] *= 0.5;
            }
            if (!(now < before)) {
                memcpy(q, best, (size_t)m->nq * sizeof(double));
                break;
            }
            if (now > 0.99 * before) break;
        }
    }
end:
    m->settings = settings;
}

/* Brings the tree near the given poses, ignoring all rows: the misfit of tree joints, which accumulates along a chain, is distributed
   over the bodies according to their masses. The result is approximate; q is unchanged if bodies have no mass. */
static void fit_tree(mb_view *m, double *q) {
    double *step = m->start.pulled, *best = m->start.q, distance;
    mb_positions(m, q);
    mb_inertias(m);
    distance = distance_to_given(m);
    for (int iteration = 0; iteration < MB_FIT_LIMIT; iteration++) {
        clear_loads(m);
        pull_to_given(m);
        if (m->row_count == 0) {
            mb_tree_accelerations(m, step);
        } else {
            mb_bias_forces(m, step);
            for (int32_t k = 0; k < m->nv; k++) step[k] = -step[k];
            mb_mass(m);
            memcpy(m->k_diagonal, m->mass_diagonal, (size_t)m->nv * sizeof(double));
            memcpy(m->k_off, m->mass_off, (size_t)m->nonzeros * sizeof(double));
            if (!mb_factor(m)) break;
            mb_solve(m, step);
        }
        if (!finite_speeds(step, m->nv)) break;
        const double before = distance, size = mb_largest(step, m->nv);
        memcpy(best, q, (size_t)m->nq * sizeof(double));
        for (int halving = 0; halving < 8; halving++) {
            memcpy(q, best, (size_t)m->nq * sizeof(double));
            mb_move(m, q, step);
            mb_positions(m, q);
            mb_inertias(m);
            distance = distance_to_given(m);
            if (distance < before) break;
            for (int32_t k = 0; k < m->nv; k++) step[k] *= 0.5;
        }
        if (!(distance < before)) {
            memcpy(q, best, (size_t)m->nq * sizeof(double));
            break;
        }
        if (size <= 1e-9 || distance > 0.999 * before) break;
    }
}

/* The velocities nearest to the given ones that satisfy rows and prescribed speeds at q. */
static bool settle_velocities(mb_view *m, double t, const double *q, double *v) {
    m->places_only = false;
    if (!see_pose(m, t, q)) return false;
    clear_loads(m);
    for (int32_t n = 0; n < m->keep_count; n++)
        if (keeps_rate(m, n)) m->start.error[n] = wanted_value(m, n) - speed_now(m, n, t, m->start.still);
    if (m->row_count > 0) mb_rows_velocity(m, t, m->start.still);
    for (int32_t l = 0; l < m->link_count; l++) {
        const int32_t number = m->links[l * MB_LINK_FIELDS + MB_LINK_BODY];
        if (number < 0) continue;
        const mb_body_data *body = &m->body[number];
        double com[3], velocity[3];
        mb_rotate(body->R, body->com, com);
        mb_copy(body->v, velocity);
        mb_add_cross(body->w, com, velocity);
        push_momentum(m, l, velocity, body->w);
    }
    if (!respond_from_rest(m, m->phi_rate)) return false;
    memcpy(v, m->acceleration, (size_t)m->nv * sizeof(double));
    return add_kept(m, t, true, v);
}

/* Whether the links move as the bodies were given, up to rounding; needs velocities. */
static bool moves_as_given(const mb_view *m) {
    double fastest = 0.0, off = 0.0;
    for (int32_t l = 0; l < m->link_count; l++) {
        const int32_t number = m->links[l * MB_LINK_FIELDS + MB_LINK_BODY];
        if (number < 0) continue;
        const mb_body_data *body = &m->body[number];
        double turn[3], move[3];
        mb_velocity_gap(m, l, turn, move);
        off = mb_larger(off, mb_larger(sqrt(mb_dot(turn, turn)), sqrt(mb_dot(move, move))));
        fastest = fmax(fastest, fmax(sqrt(mb_dot(body->w, body->w)), sqrt(mb_dot(body->v, body->v))));
    }
    return off <= 1e-13 * fastest;
}

/* The first prescribed coordinate or speed that contradicts the rows or the others, or -1. */
static int32_t find_missed(mb_view *m, double t, const double *q, const double *v, bool rate) {
    mb_positions(m, q);
    mb_velocities(m, v);
    for (int32_t n = 0; n < m->keep_count; n++) {
        if (keeps_rate(m, n) != rate) continue;
        const double is = rate ? speed_now(m, n, t, v) : coordinate_now(m, n, t, q), value = wanted_value(m, n);
        const double size = keep_turns(m, n) ? 1.0 : m->start.size;
        if (!(fabs(is - value) <= KEPT_MET * fmax(size, fabs(value)))) return n;
    }
    return -1;
}

int mb_start_state(mb_view *m, double t, double *q, double *v, int32_t *missed) {
    const double gravity[3] = {m->gravity[0], m->gravity[1], m->gravity[2]};
    bool keeps_places = false, keeps_speeds = false;
    *missed = -1;
    m->start.looks = 0.0;
    m->start.size = mb_given_size(m);
    m->places_only = m->roll_count > 0; /* until a projection ends, or velocities are settled */
    for (int32_t n = 0; n < m->keep_count; n++) *(keeps_rate(m, n) ? &keeps_speeds : &keeps_places) = true;
    read_given(m, t, q, v);
    mb_kinematics(m, t, q, v);
    mb_inertias(m);
    const bool moving = moves_as_given(m);
    double length, angle;
    farthest(m, &length, &angle);
    memset(m->gravity, 0, sizeof m->gravity);
    if (length > POSE_MET * m->start.size || angle > POSE_MET) fit_tree(m, q);
    mb_update_positions(m, t, q);
    if (m->row_count > 0 && mb_openness(m) > WIDE_OPEN) close_slowly(m, t, q);
    memcpy(m->gravity, gravity, sizeof gravity);
    if (!mb_project(m, t, q, v, MB_INIT_LIMIT)) {
        read_given(m, t, q, v);
        mb_close_best(m, t, q, v);
        memcpy(m->saved_state, q, (size_t)(m->nq + m->nv) * sizeof(double));
        if (!mb_project(m, t, q, v, MB_INIT_LIMIT)) return MB_START_OPEN;
    }
    memset(m->gravity, 0, sizeof m->gravity);
    int found = MB_START_FOUND;
    m->places_only = m->roll_count > 0;
    mb_positions(m, q);
    mb_inertias(m);
    farthest(m, &length, &angle);
    const bool far = length > POSE_MET * m->start.size || angle > POSE_MET;
    if (keeps_places) {
        const bool closed = follow_kept(m, t, q, MB_FOLLOW_LIMIT);
        *missed = find_missed(m, t, q, v, false);
        for (int32_t n = 0; n < m->keep_count && !closed && *missed < 0; n++)
            if (!keeps_rate(m, n)) *missed = n;
        if (*missed >= 0) found = MB_START_MISSED;
    }
    if (found == MB_START_FOUND && (far || keeps_places)) {
        memcpy(m->saved_state, q, (size_t)m->nq * sizeof(double));
        if (!approach_given(m, t, q)) memcpy(q, m->saved_state, (size_t)m->nq * sizeof(double));
    }
    if (found == MB_START_FOUND && (far || keeps_places || keeps_speeds || !moving)) {
        double *before = m->saved_state + m->nq;
        memcpy(before, v, (size_t)m->nv * sizeof(double));
        if (!settle_velocities(m, t, q, v)) memcpy(v, before, (size_t)m->nv * sizeof(double));
        if (!mb_project(m, t, q, v, MB_INIT_LIMIT)) found = MB_START_OPEN;
        if (keeps_speeds && see_pose(m, t, q)) { /* once more, for what rounding and closing changed */
            (void)add_kept(m, t, true, v);
            (void)mb_project(m, t, q, v, MB_INIT_LIMIT);
        }
        if (keeps_speeds) *missed = find_missed(m, t, q, v, true);
        if (*missed >= 0) found = MB_START_MISSED;
    }
    memcpy(m->gravity, gravity, sizeof gravity);
    m->places_only = false;
    return found;
}

/* Finds the bodies that can still move under the rows and prescribed coordinates (or speeds), by their response to a generic motion.
   Stores for each body whether its center of mass and whether its axes can move, 1 or 0. */
void mb_find_freedom(mb_view *m, double t, const double *q, bool rate, double *open) {
    const double gravity[3] = {m->gravity[0], m->gravity[1], m->gravity[2]}, size = mb_given_size(m);
    double *step = m->start.step;
    for (int32_t k = 0; k < 2 * m->body_count; k++) open[k] = 1.0;
    memset(m->gravity, 0, sizeof m->gravity);
    m->start.size = size;
    m->start.looks = 0.0;
    m->places_only = !rate && m->roll_count > 0;
    bool found = see_pose(m, t, q);
    if (found) {
        clear_loads(m);
        for (int32_t l = 0; l < m->link_count; l++) {
            if (m->links[l * MB_LINK_FIELDS + MB_LINK_BODY] < 0) continue;
            double move[3], turn[3];
            for (int k = 0; k < 3; k++) {
                move[k] = size * (1.0 + 0.5 * sin(1.7 * l + 2.3 * k));
                turn[k] = m->head[MB_PLANAR] && k < 2 ? 0.0 : 1.0 + 0.5 * sin(2.9 * l + 1.1 * k + 0.4);
            }
            if (m->head[MB_PLANAR]) move[2] = 0.0;
            push_momentum(m, l, move, turn);
        }
        found = respond_from_rest(m, NULL);
    }
    if (found) {
        memcpy(step, m->acceleration, (size_t)m->nv * sizeof(double));
        memset(m->start.error, 0, (size_t)m->keep_count * sizeof(double));
        found = m->keep_count == 0 || add_kept(m, t, rate, step);
    }
    if (found) {
        mb_velocities(m, step);
        for (int32_t l = 0; l < m->link_count; l++) {
            const int32_t number = m->links[l * MB_LINK_FIELDS + MB_LINK_BODY];
            if (number < 0) continue;
            double velocity[3];
            mb_copy(m->link[l].v, velocity);
            mb_add_cross(m->link[l].w, m->link[l].c, velocity);
            open[2 * number] = mb_dot(velocity, velocity) > FREE_MOTION * FREE_MOTION * size * size;
            open[2 * number + 1] = mb_dot(m->link[l].w, m->link[l].w) > FREE_MOTION * FREE_MOTION;
        }
    }
    memcpy(m->gravity, gravity, sizeof gravity);
    m->places_only = false;
}
