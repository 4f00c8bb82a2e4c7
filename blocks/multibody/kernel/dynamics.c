/* Accelerations and projections.
 *
 * With closures: K = M + Jᵀ α J is factored once; the multipliers are then iterated (augmented Lagrangian, index 1),
 *     K Δv' = Q - M v' - Jᵀ (λ + α e),   λ ← λ + α e,   e = J v' + c,
 * which for large α converges in two or three steps, also where rows are redundant or a position is singular. It is slow where rows
 * are almost dependent: then it goes on, and what remains is estimated from the last two changes. Written for
 * the increment, each step also takes out what rounding left in the one before.
 * Positions and velocities are put back on the constraints by the mass-orthogonal projections with the same K. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

enum {
    MB_LARGEST_ITERATIONS = 20,
    MB_SLOW_ITERATIONS =
        200, /* where rows are almost dependent, and each iteration still changes less than the one before */
};

void mb_update_positions(mb_view *m, double t, const double *q) {
    mb_positions(m, q);
    if (m->row_count > 0) mb_rows_position(m, t, q);
}

/* Velocities and their rows, at the present poses. */
static void update_velocities(mb_view *m, double t, const double *v) {
    mb_velocities(m, v);
    if (m->row_count > 0) mb_rows_velocity(m, t, v);
}

void mb_kinematics(mb_view *m, double t, const double *q, const double *v) {
    mb_update_positions(m, t, q);
    update_velocities(m, t, v);
}

/* What the next step would change, if each changes as much less as the last did. */
static double next_change(double change, double before) { return before > change ? change * change / before : change; }

/* What all further steps would change, in the same way. */
static double remaining_change(double change, double before) {
    return before > change ? change * change / (before - change) : change;
}

/* step ← K⁻¹ (step - Jᵀ (λ + α e)) with the errors e in row_work, having first taken those of the last step into λ. */
static void push_back(mb_view *m, int iteration, double *step) {
    for (int32_t k = 0; k < m->row_count; k++) {
        const double more = m->alpha[k] * m->row_work[k];
        if (iteration > 0) m->lambda[k] += more;
        m->row_work[k] = m->lambda[k] + more;
    }
    mb_add_jacobian_transposed(m, m->row_work, -1.0, step);
    mb_solve(m, step);
}

mb_iteration mb_solve_rows(mb_view *m, double least) {
    mb_iteration found = {.count = 0};
    memset(m->acceleration, 0, (size_t)m->nv * sizeof(double));
    memset(m->lambda, 0, (size_t)m->row_count * sizeof(double));
    double size = 0.0, before = 0.0;
    for (int iteration = 0; iteration < MB_LARGEST_ITERATIONS || (iteration < MB_SLOW_ITERATIONS && size < before);
         iteration++) {
        if (iteration == 0) { /* from no acceleration */
            memcpy(m->row_work, m->bias, (size_t)m->row_count * sizeof(double));
            memcpy(m->residual, m->force, (size_t)m->nv * sizeof(double));
        } else {
            mb_jacobian_times(m, m->acceleration, m->row_work);
            for (int32_t k = 0; k < m->row_count; k++) m->row_work[k] += m->bias[k];
            mb_mass_times(m, m->acceleration, m->residual);
            for (int32_t k = 0; k < m->nv; k++) m->residual[k] = m->force[k] - m->residual[k];
        }
        push_back(m, iteration, m->residual);
        for (int32_t k = 0; k < m->nv; k++) m->acceleration[k] += m->residual[k];
        before = size;
        size = mb_largest(m->residual, m->nv);
        found.count = iteration + 1;
        if (iteration == 0) continue;
        const double largest = fmax(least, mb_largest(m->acceleration, m->nv));
        const double rest =
            iteration < MB_LARGEST_ITERATIONS ? next_change(size, before) : remaining_change(size, before);
        found.converged = rest <= m->settings[MB_TOLERANCE] * largest;
        if (found.converged) break;
        if (iteration + 1 >= MB_LARGEST_ITERATIONS) found.error = remaining_change(size, before) / largest;
    }
    if (found.converged) found.error = 0.0;
    found.change = size;
    /* The multipliers that belong to the last accelerations. */
    mb_jacobian_times(m, m->acceleration, m->row_work);
    for (int32_t k = 0; k < m->row_count; k++) m->lambda[k] += m->alpha[k] * (m->row_work[k] + m->bias[k]);
    return found;
}

/* Leaves v' in m->acceleration, λ in m->lambda, and whole accelerations in the links. */
int mb_accelerations(mb_view *m, double t, const double *q, const double *v) {
    mb_kinematics(m, t, q, v);
    mb_inertias(m);
    for (int32_t l = 0; l < m->link_count; l++) {
        memset(m->link[l].F, 0, sizeof m->link[l].F);
        memset(m->link[l].N, 0, sizeof m->link[l].N);
    }
    memset(m->force, 0, (size_t)m->nv * sizeof(double));
    memset(m->friction.load, 0, (size_t)m->head[MB_JOINT_FRICTIONS] * sizeof(double));
    memset(m->friction.strength, 0, (size_t)m->head[MB_JOINT_FRICTIONS] * sizeof(double));
    if (m->stick.count > 0) memset(m->stick.effort, 0, (size_t)m->stick.count * sizeof(double));
    mb_add_loads(m, t, q, v, m->force);
    if (m->filmless_bearing >= 0) return 0;
    if (m->row_count == 0) {
        mb_tree_accelerations(m, m->acceleration);
        m->status[MB_STATUS_ITERATIONS] = 0.0;
        m->status[MB_STATUS_RESIDUAL] = 0.0;
        m->status[MB_STATUS_CLOSURE] = 0.0;
        m->status[MB_STATUS_CONVERGED] = 1.0;
        m->status[MB_STATUS_ERROR] = 0.0;
        return mb_solve_joint_friction(m, t, v) && (m->stick.count == 0 || mb_stick(m, t));
    }
    m->status[MB_STATUS_CLOSURE] = mb_largest(m->phi, m->row_count);
    double *bias = m->step;
    mb_bias_forces(m, bias);
    for (int32_t k = 0; k < m->nv; k++) m->force[k] -= bias[k];
    mb_mass(m);
    mb_rows_jacobian(m);
    mb_build_k(m);
    if (!mb_factor(m)) return 0;

    const mb_iteration found = mb_solve_rows(m, 1.0);
    m->status[MB_STATUS_ITERATIONS] = found.count;
    m->status[MB_STATUS_RESIDUAL] = found.change;
    m->status[MB_STATUS_CONVERGED] = found.converged ? 1.0 : 0.0;
    m->status[MB_STATUS_ERROR] = found.error;
    if (m->rigid_count > 0 && !mb_solve_contact_friction(m)) return 0;
    mb_set_accelerations(m, m->acceleration);
    if (!mb_solve_joint_friction(m, t, v) || (m->stick.count > 0 && !mb_stick(m, t))) return 0;
    mb_rigid_note(m);
    return 1;
}

int mb_refactor(mb_view *m) {
    mb_inertias(m);
    mb_mass(m);
    mb_rows_jacobian(m);
    mb_build_k(m);
    return mb_factor(m);
}

void mb_closing_step(mb_view *m, const double *weights, double *step) {
    for (int32_t k = 0; k < m->row_count; k++) m->row_work[k] = weights[k] * m->phi[k];
    memset(step, 0, (size_t)m->nv * sizeof(double));
    mb_add_jacobian_transposed(m, m->row_work, -1.0, step);
    mb_solve(m, step);
}

/* Whether the errors of the rows at x are more than rounding leaves, relative to what each moves: Σ α e² against α₀ 1e-24 xᵀ M x. */
static bool above_rounding(mb_view *m, const double *e, const double *x) {
    double errors = 0.0, motion = 0.0;
    mb_mass_times(m, x, m->residual);
    for (int32_t k = 0; k < m->nv; k++) motion += x[k] * m->residual[k];
    for (int32_t k = 0; k < m->row_count; k++) errors += m->alpha[k] * e[k] * e[k];
    return errors > 1e-24 * m->settings[MB_ALPHA] * motion;
}

/* What the iteration leaves where rows are almost dependent: it converges by a factor of 1 / (1 + α σ), with σ the least eigenvalue of
   J M⁻¹ Jᵀ. Only at closed positions: elsewhere redundant rows are almost dependent, too, and must not be satisfied one by one.
   Conjugate residuals for J x(λ) + c = 0, with the errors e at λ and x(λ) of K x = Q - Jᵀ (λ + α c); in the metric of α, in which errors
   that no multiplier changes, of redundant rows, drop out. Updates e, x and λ: one step for
   each of the few eigenvalues that are small. */
static void search_multipliers(mb_view *m, double *e, double *x) {
    const int32_t rows = m->row_count, nv = m->nv;
    double *P = m->search, *W = P + rows, *w = W + rows, *S = w + rows, *s = m->residual, before = 0.0;
    int small = 0; /* successive steps that change next to nothing */
    for (int32_t step = 0; step < rows + MB_LARGEST_ITERATIONS && small < 2; step++) {
        for (int32_t k = 0; k < rows; k++) m->row_work[k] = m->alpha[k] * e[k];
        memset(s, 0, (size_t)nv * sizeof(double));
        mb_add_jacobian_transposed(m, m->row_work, 1.0, s);
        mb_solve(m, s);
        mb_jacobian_times(m, s, w);
        double product = 0.0, square = 0.0;
        for (int32_t k = 0; k < rows; k++) product += m->row_work[k] * w[k];
        const double beta = step > 0 ? product / before : 0.0;
        for (int32_t k = 0; k < rows; k++) {
            P[k] = m->row_work[k] + (step > 0 ? beta * P[k] : 0.0);
            W[k] = w[k] + (step > 0 ? beta * W[k] : 0.0);
            square += m->alpha[k] * W[k] * W[k];
        }
        for (int32_t k = 0; k < nv; k++) S[k] = s[k] + (step > 0 ? beta * S[k] : 0.0);
        if (!(product > 0.0 && square > 0.0)) return;
        const double gamma = product / square;
        for (int32_t k = 0; k < rows; k++) {
            m->lambda[k] += gamma * P[k];
            e[k] -= gamma * W[k];
        }
        for (int32_t k = 0; k < nv; k++) x[k] -= gamma * S[k];
        before = product;
        small = gamma * mb_largest(S, nv) <= 1e-15 * fmax(1.0, mb_largest(x, nv)) ? small + 1 : 0;
    }
}

/* Takes out of v what violates the constraints, the least in the metric of M; needs Φ̇ of that v, which it keeps up, and K. Iterated
   as the accelerations are, so that rounding in K is taken out too; returns whether that converged. */
static bool project_velocities(mb_view *m, double *v) {
    double *step = m->residual, *moved = m->step, change = 0.0;
    memset(m->lambda, 0, (size_t)m->row_count * sizeof(double));
    memset(moved, 0, (size_t)m->nv * sizeof(double));
    for (int iteration = 0; iteration < MB_LARGEST_ITERATIONS; iteration++) {
        memcpy(m->row_work, m->phi_rate, (size_t)m->row_count * sizeof(double));
        memset(step, 0, (size_t)m->nv * sizeof(double));
        if (iteration > 0) {
            mb_mass_times(m, moved, step);
            for (int32_t k = 0; k < m->nv; k++) step[k] = -step[k];
        }
        push_back(m, iteration, step);
        for (int32_t k = 0; k < m->nv; k++) {
            v[k] += step[k];
            moved[k] += step[k];
        }
        const double before = change;
        change = mb_largest(step, m->nv);
        if ((iteration > 0 ? next_change(change, before) : change) <= 1e-15 * fmax(1.0, mb_largest(v, m->nv)))
            return true;
        mb_jacobian_times(m, step, m->row_work);
        for (int32_t k = 0; k < m->row_count; k++) m->phi_rate[k] += m->row_work[k];
    }
    return false;
}

double mb_openness(const mb_view *m) {
    double most = 0.0;
    for (int32_t k = 0; k < m->row_count; k++) {
        most = mb_larger(most, m->phi[k] == 0.0 ? 0.0 : fabs(m->phi[k]) / m->row_state[k].size);
    }
    return most;
}

static const double CLOSED = 1e-10; /* in m and rad */

/* As closed as a mechanism of 1 m would have to be, for one that is longer. */
static bool closes_for_its_size(const mb_view *m) {
    double reach = 1.0;
    for (int32_t k = 0; k < m->marker_count; k++)
        reach = fmax(reach, sqrt(mb_dot(m->marker_data[k].p, m->marker_data[k].p)));
    for (int32_t k = 0; k < m->row_count; k++) {
        const int32_t type = m->rows[k * MB_ROW_FIELDS + MB_ROW_TYPE];
        const bool is_length = type == MB_ROW_POINT || type == MB_ROW_D2 || type == MB_ROW_DISTANCE ||
                               type == MB_ROW_TOUCH || type == MB_ROW_NORMAL;
        if (!(fabs(m->phi[k]) <= CLOSED * (is_length ? reach : 1.0))) return false;
    }
    return true;
}

/* At most `limit` steps; false if K has no factors. */
static bool close_positions(mb_view *m, double t, double *q, int limit) {
    const double goal = 1e-13, rounding = 1.5e-16;
    mb_update_positions(m, t, q);
    if (!mb_refactor(m)) return false;
    /* One step is taken for any error but rounding: near a singular position the remaining gap grows as 1 / distance, and so does the
       amplification of rounding errors by a step. */
    double open = mb_openness(m);
    for (int iteration = 0; iteration < limit && open > (iteration == 0 ? rounding : goal); iteration++) {
        const double before = open;
        mb_closing_step(m, m->alpha, m->residual);
        mb_move(m, q, m->residual);
        mb_update_positions(m, t, q);
        open = mb_openness(m);
        if (open > goal && open > 1e-3 * before && !mb_refactor(m)) return false;
    }
    return true;
}

/* Puts q and v back on the constraints, at most `limit` position steps. Returns whether the positions close. */
int mb_project(mb_view *m, double t, double *q, double *v, int limit) {
    if (m->row_count == 0) return 1;
    m->places_only = m->roll_count > 0;
    const bool factored = close_positions(m, t, q, limit);
    m->places_only = false; /* for further steps, too, where this one fails */
    if (!factored) return 0;
    const double closure = mb_largest(m->phi, m->row_count);
    m->status[MB_STATUS_CLOSURE] = closure;
    if (m->roll_count > 0 && !mb_refactor(m)) return 0;
    update_velocities(m, t, v);
    if (!project_velocities(m, v) && limit >= MB_INIT_LIMIT && above_rounding(m, m->phi_rate, v))
        search_multipliers(m, m->phi_rate, v);
    return closure <= CLOSED || closes_for_its_size(m);
}
