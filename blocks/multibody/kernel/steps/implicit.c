/* Implicit internal steps, for stiff forces and coarse steps.
 *
 * Generalized-α in the form of Arnold and Brüls (2007), trapezoidal for a spectral radius of 1. At the end of a step
 *     r = M v' + h - Q + Jᵀ λ = 0,   Φ(q, t) = 0                                   (index 3)
 *     (1 - α_m) a⁺ + α_m a = (1 - α_f) v'⁺ + α_f v'                                a: an acceleration, averaged
 *     v⁺ = v + H ((1 - γ) a + γ a⁺),   q⁺ = q ∘ exp(H v + H² ((½ - β) a + β a⁺))   H: the step
 * so that dv = G dv', du = B dv' with G = γ H (1 - α_f) / (1 - α_m), B = β H² (1 - α_f) / (1 - α_m). Multipliers are found
 * as an augmented Lagrangian along with the iterations of Newton,
 *     S Δ = -r - Jᵀ (λ + α Φ / B),   S = M + Jᵀ α J + G ∂r/∂v + B ∂r/∂q,   λ ← λ + α Φ / B,
 * where ∂r/∂q and ∂r/∂v come from differences, by columns, and serve for as many steps as Newton converges well with them.
 * A row that binds velocities alone has α Φ̇ / G instead. S is full and not symmetric, so it is factored as such. Then velocities and accelerations are put on the
 * constraints by mass-orthogonal projections, which take out a little energy and never add any.
 *
 * Multipliers start from zero in each step: near a singular position they are rounding times α / B, which must not last.
 * Inputs may jump: then the accelerations at the start of the step jump with them.
 *
 * The averaged acceleration is that at a time shifted by (α_m - α_f) H from the step's. Between steps the value of a whole step is
 * stored; a shortened step uses its fraction of the difference to v' and restores the rest. Otherwise the order would be one. */
#include <string.h>

#include "blocks/core/kernel/matrix.h"
#include "blocks/multibody/kernel/multibody.h"

enum {
    MB_NEWTON_LIMIT = 24,
    MB_NEWTON_PATIENCE = 8, /* iterations after which the tangents are renewed within the step */
    MB_NEWTON_GOOD = 5,     /* more than that, and they are renewed in the next one */
    MB_PROJECT_LIMIT = 6,
    MB_PROJECT_REPEATS = 10
};

typedef struct {
    double h, G, B;                         /* step; dv / dv', du / dv' */
    double a_new, a_rate, a_old;            /* a⁺ = a_new v'⁺ + a_rate v' + a_old a */
    double v_new, v_old, q_new, q_old;      /* weights of a⁺ and a in v⁺ and q⁺ */
} mb_scheme;

static mb_scheme implicit_scheme(double radius, double h) {
    const double rho = radius >= 0.0 && radius <= 1.0 ? radius : 1.0;
    const double a_m = (2.0 * rho - 1.0) / (rho + 1.0), a_f = rho / (rho + 1.0);
    const double gamma = 0.5 + a_f - a_m, beta = 0.25 * (gamma + 0.5) * (gamma + 0.5);
    mb_scheme s = {
        .h = h, .a_new = (1.0 - a_f) / (1.0 - a_m), .a_rate = a_f / (1.0 - a_m), .a_old = -a_m / (1.0 - a_m)};
    s.v_new = gamma * h, s.v_old = (1.0 - gamma) * h;
    s.q_new = beta * h * h, s.q_old = (0.5 - beta) * h * h;
    s.G = s.v_new * s.a_new, s.B = s.q_new * s.a_new;
    return s;
}

/* Poses, Φ and J at (t, q). */
static void implicit_pose(mb_view *m, double t, const double *q) {
    mb_update_positions(m, t, q);
    mb_inertias(m);
    if (m->row_count > 0) mb_rows_jacobian(m);
}

/* out = M v' + h - Q, at the present poses. Friction from reactions, and the effort that holds a joint which sticks, are those of the
   accelerations which follow from q and v, so that they are forces like any other; m->residual and m->step are lost with them. */
static void implicit_efforts(mb_view *m, double t, const double *q, const double *v, const double *acceleration,
                             double *out) {
    const bool solved = (m->head[MB_JOINT_FRICTIONS] == 0 && !mb_sticks(m)) || mb_accelerations(m, t, q, v);
    mb_velocities(m, v);
    mb_set_accelerations(m, acceleration);
    for (int32_t l = 0; l < m->link_count; l++) {
        memset(m->link[l].F, 0, sizeof m->link[l].F);
        memset(m->link[l].N, 0, sizeof m->link[l].N);
    }
    memset(m->force, 0, (size_t)m->nv * sizeof(double));
    mb_add_loads(m, t, q, v, m->force);
    mb_bias_forces(m, out);
    for (int32_t k = 0; k < m->nv; k++) out[k] -= m->force[k];
    if ((m->filmless_bearing >= 0 || !solved) && m->nv > 0) out[0] = NAN; /* no step leads there */
}

/* ∂r/∂v and ∂r/∂q, with the multipliers held: forward differences, one column at a time. */
static void implicit_tangents(mb_view *m, double t, const double *q, double *v, const double *acceleration) {
    const mb_implicit *s = &m->implicit;
    const int32_t n = m->nv;
    const double size = mb_difference(m);
    double *base = s->change, *moved = m->step, *q_moved = s->q_moved, *direction = s->direction;
    implicit_pose(m, t, q);
    implicit_efforts(m, t, q, v, acceleration, base);
    for (int32_t c = 0; c < n; c++) {
        const double kept = v[c], step = size * fmax(1.0, fabs(kept));
        v[c] = kept + step;
        implicit_efforts(m, t, q, v, acceleration, moved);
        for (int32_t r = 0; r < n; r++) s->damping[r * n + c] = (moved[r] - base[r]) / (v[c] - kept);
        v[c] = kept;
    }
    mb_add_jacobian_transposed(m, s->lambda, 1.0, base);
    memset(direction, 0, (size_t)n * sizeof(double));
    for (int32_t c = 0; c < n; c++) {
        memcpy(q_moved, q, (size_t)m->nq * sizeof(double));
        direction[c] = size;
        mb_move(m, q_moved, direction);
        direction[c] = 0.0;
        implicit_pose(m, t, q_moved);
        implicit_efforts(m, t, q_moved, v, acceleration, moved);
        mb_add_jacobian_transposed(m, s->lambda, 1.0, moved);
        for (int32_t r = 0; r < n; r++) s->stiffness[r * n + c] = (moved[r] - base[r]) / size;
    }
    s->flags[MB_IMPLICIT_FRESH] = 1.0;
}

/* out = T(u)⁻¹ x for a rotation by the vector u in the moved frame: converts a rotation increment x at its end to a change of u. */
static void implicit_unturn(const double *u, const double *x, double *out) {
    const double angle2 = mb_dot(u, u), angle = sqrt(angle2), half = 0.5 * angle;
    /* (1 - (φ/2) cot (φ/2)) / φ²; not defined for whole turns, which no sane step makes */
    const double c = angle < 1e-3 ? 1.0 / 12.0 + angle2 / 720.0 : (1.0 - half * cos(half) / sin(half)) / angle2;
    double once[3], twice[3];
    mb_cross(u, x, once);
    mb_cross(u, once, twice);
    for (int k = 0; k < 3; k++) out[k] = x[k] + 0.5 * once[k] + c * twice[k];
}

/* S at the present poses, and its factors. The unknown is the rotation increment at the end of the step, so that J is exact; this
   choice affects the parts of M and ∂r/∂v in the columns of ball joints only. */
static int implicit_factor(mb_view *m, const mb_scheme *scheme) {
    const mb_implicit *s = &m->implicit;
    const int32_t n = m->nv;
    double *S = s->matrix;
    mb_mass(m);
    mb_weigh_rows(m);
    for (int32_t k = 0; k < n * n; k++) S[k] = scheme->G * s->damping[k] + scheme->B * s->stiffness[k];
    for (int32_t k = 0; k < n; k++) {
        const int32_t r = m->permutation[n + k];
        S[r * n + r] += m->mass_diagonal[k];
        for (int32_t e = m->row_start[k]; e < m->row_start[k + 1]; e++) {
            const int32_t c = m->permutation[n + m->column_of[e]];
            S[r * n + c] += m->mass_off[e];
            S[c * n + r] += m->mass_off[e];
        }
    }
    for (int32_t c = 0; c < m->cut_count; c++) {
        const int32_t *cut = m->cuts + c * MB_CUT_FIELDS, *path = m->paths + cut[MB_CUT_PATH] * MB_PATH_FIELDS;
        const int32_t paths = cut[MB_CUT_PATHS];
        for (int32_t r = 0; r < cut[MB_CUT_ROWS]; r++) {
            const double *j = m->jacobian + cut[MB_CUT_J] + r * paths;
            for (int32_t a = 0; a < paths; a++) {
                const double weighed = m->alpha[cut[MB_CUT_ROW] + r] * j[a];
                double *row = S + path[a * MB_PATH_FIELDS + MB_PATH_V] * n;
                for (int32_t b = 0; b < paths; b++) row[path[b * MB_PATH_FIELDS + MB_PATH_V]] += weighed * j[b];
            }
        }
    }
    double *unit = s->direction, *column = m->step;
    memset(unit, 0, (size_t)n * sizeof(double));
    for (int32_t l = 0; l < m->link_count; l++) {
        const int32_t *link = m->links + l * MB_LINK_FIELDS, first = link[MB_LINK_V];
        if (link[MB_LINK_TYPE] != MB_SPHERICAL) continue;
        double change[9]; /* T⁻¹ - 1, by columns */
        for (int c = 0; c < 3; c++) {
            const double axis[3] = {c == 0, c == 1, c == 2};
            implicit_unturn(s->u + first, axis, change + 3 * c);
            change[4 * c] -= 1.0;
        }
        for (int c = 0; c < 3; c++) {
            unit[first + c] = 1.0;
            mb_mass_times(m, unit, column);
            unit[first + c] = 0.0;
            for (int32_t r = 0; r < n; r++) {
                const double part = column[r] + scheme->G * s->damping[r * n + first + c];
                for (int j = 0; j < 3; j++) S[r * n + first + j] += part * change[3 * j + c];
            }
        }
    }
    return bl_lu_factor(S, s->pivots, n) == BL_OK;
}

/* a⁺, v and q at the end of the step, from its v'. */
static void implicit_place(mb_view *m, const mb_scheme *scheme, double *q, double *v) {
    const mb_implicit *s = &m->implicit;
    for (int32_t k = 0; k < m->nv; k++) {
        s->mean[k] = scheme->a_new * s->rate[k] + scheme->a_rate * s->rate_start[k] + scheme->a_old * s->mean_start[k];
        s->u[k] = scheme->h * s->v_start[k] + scheme->q_old * s->mean_start[k] + scheme->q_new * s->mean[k];
        v[k] = s->v_start[k] + scheme->v_old * s->mean_start[k] + scheme->v_new * s->mean[k];
    }
    memcpy(q, s->q_start, (size_t)m->nq * sizeof(double));
    mb_move(m, q, s->u);
}

/* The film force is unbounded as the film closes, which a tangent does not represent: Newton increments are limited so that none
   closes a film. Fractions of the clearance; films thinner than THIN are not limited. */
static const double IMPLICIT_CLOSES = 0.3, IMPLICIT_THIN = 0.02;

static double implicit_film(mb_view *m, double t, const double *q) {
    mb_positions(m, q);
    return mb_thinnest_film(m, t);
}

static bool implicit_closes(double film, double before) {
    return before > IMPLICIT_THIN && film < IMPLICIT_CLOSES * before;
}

/* The first guess is v' of the last step; if that closes a film, the one with constant v. Returns the thinnest film. */
static double implicit_guess(mb_view *m, const mb_scheme *scheme, double t, double *q, double *v) {
    const mb_implicit *s = &m->implicit;
    const double before = implicit_film(m, t, s->q_start);
    implicit_place(m, scheme, q, v);
    if (isinf(before)) return before;
    const double film = implicit_film(m, t, q);
    if (!implicit_closes(film, before)) return film;
    for (int32_t k = 0; k < m->nv; k++) {
        const double known =
            scheme->a_rate * s->rate_start[k] + (scheme->a_old + scheme->q_old / scheme->q_new) * s->mean_start[k];
        s->rate[k] = -known / scheme->a_new;
    }
    implicit_place(m, scheme, q, v);
    return implicit_film(m, t, q);
}

/* Takes back halves of the last change as long as it closes a film. Returns the thinnest film. */
static double implicit_hold_films(mb_view *m, const mb_scheme *scheme, double t, double before, double *q, double *v) {
    const mb_implicit *s = &m->implicit;
    double film = implicit_film(m, t, q);
    for (int halving = 0; halving < 10 && implicit_closes(film, before); halving++) {
        for (int32_t k = 0; k < m->nv; k++) {
            s->change[k] *= 0.5;
            s->rate[k] += s->change[k];
        }
        implicit_place(m, scheme, q, v);
        film = implicit_film(m, t, q);
    }
    return film;
}

/* Newton iterations from the present v'. Returns their number, or 0 if they do not converge. */
static int implicit_newton(mb_view *m, const mb_scheme *scheme, double t, double *q, double *v) {
    const mb_implicit *s = &m->implicit;
    double *y = s->change, size = 0.0;
    bool factor = true, renew = false;
    double film = implicit_guess(m, scheme, t, q, v);
    const bool films = !isinf(film), sudden = films || m->head[MB_CONTACTS] > 0;
    if (s->flags[MB_IMPLICIT_FRESH] == 0.0)
        implicit_tangents(m, t, q, v, s->rate); /* with the multipliers of the last step */
    memset(s->lambda, 0, (size_t)m->row_count * sizeof(double));
    for (int iteration = 0; iteration < MB_NEWTON_LIMIT; iteration++) {
        if (iteration == MB_NEWTON_PATIENCE || renew) implicit_tangents(m, t, q, v, s->rate);
        implicit_pose(m, t, q);
        implicit_efforts(m, t, q, v, s->rate, y);
        if (m->roll_count > 0) mb_rows_velocity(m, t, v);
        if ((factor || renew) && !implicit_factor(m, scheme)) return 0;
        for (int32_t k = 0; k < m->row_count; k++) {
            const bool rates = m->roll_count > 0 && mb_binds_rates(m->rows + k * MB_ROW_FIELDS);
            const double more = m->alpha[k] * (rates ? m->phi_rate[k] / scheme->G : m->phi[k] / scheme->B);
            if (iteration > 0) s->lambda[k] += more;
            m->row_work[k] = s->lambda[k] + more;
        }
        mb_add_jacobian_transposed(m, m->row_work, 1.0, y);
        bl_lu_solve(s->matrix, s->pivots, m->nv, y);
        const double before = size;
        size = scheme->B * mb_largest(y, m->nv);
        s->flags[MB_IMPLICIT_ITERATIONS] = iteration + 1.0;
        s->flags[MB_IMPLICIT_RESIDUAL] = size / scheme->B;
        if (!isfinite(size)) return 0;
        for (int32_t l = 0; l < m->link_count; l++) {
            const int32_t *link = m->links + l * MB_LINK_FIELDS, first = link[MB_LINK_V];
            if (link[MB_LINK_TYPE] == MB_SPHERICAL) {
                double turned[3];
                implicit_unturn(s->u + first, y + first, turned);
                mb_copy(turned, y + first);
            }
        }
        for (int32_t k = 0; k < m->nv; k++) s->rate[k] -= y[k];
        implicit_place(m, scheme, q, v);
        if (films) film = implicit_hold_films(m, scheme, t, film, q, v);
        renew = sudden && iteration > 0 && size > 0.25 * before;
        /* Done if the next change would be rounding: it is smaller by what this one was, but not by more than 100, because
           the first ratio flatters. Or if rounding is all that is left; near a singular position that is more. */
        const double next = iteration > 0 && before > size ? size * fmax(size / before, 1e-2) : size;
        const double scale = fmax(1.0, mb_largest(q, m->nq));
        /* A film makes much force of little speed, so with one it takes 1e-9 of a clearance to be rounding. */
        const double rounding = fmin(1e-10 * scale, films ? 1e-5 * mb_difference(m) : INFINITY);
        if (next <= fmin(1e-14 * scale, 1e-2 * rounding) || (iteration > 1 && size <= rounding && size > 0.5 * before))
            return iteration + 1;
        factor = size > (iteration > 0 ? 1e-3 * before : 1e-6 * scale) || iteration + 1 == MB_NEWTON_PATIENCE;
    }
    return 0;
}

/* Takes out of v' what violates the constraints; needs K and J at the present poses. */
static void implicit_project_rates(mb_view *m, const mb_scheme *scheme, double t, const double *v) {
    const mb_implicit *s = &m->implicit;
    double *step = m->residual;
    mb_velocities(m, v);
    mb_rows_velocity(m, t, v);
    for (int repeat = 0; repeat < MB_PROJECT_REPEATS; repeat++) {
        mb_jacobian_times(m, s->rate, m->row_work);
        for (int32_t k = 0; k < m->row_count; k++) m->row_work[k] = m->alpha[k] * (m->row_work[k] + m->bias[k]);
        memset(step, 0, (size_t)m->nv * sizeof(double));
        mb_add_jacobian_transposed(m, m->row_work, -1.0, step);
        mb_solve(m, step);
        for (int32_t k = 0; k < m->nv; k++) {
            s->rate[k] += step[k];
            s->mean[k] += scheme->a_new * step[k];
        }
        if (mb_largest(step, m->nv) <= 1e-12 * fmax(1.0, mb_largest(s->rate, m->nv))) return;
    }
}

/* One step, from what `start` holds. */
static int implicit_step(mb_view *m, double t, double h, double *q, double *v) {
    const mb_implicit *s = &m->implicit;
    const mb_scheme scheme = implicit_scheme(m->settings[MB_RADIUS], h);
    m->filmless_bearing = m->diverging_friction = -1;
    mb_forget_formula_fault(m);
    const int iterations = implicit_newton(m, &scheme, t + h, q, v);
    if (iterations == 0) return 0;
    if (iterations > MB_NEWTON_GOOD) s->flags[MB_IMPLICIT_FRESH] = 0.0;
    if (m->row_count == 0) return 1;
    if (!mb_project(m, t + h, q, v, MB_PROJECT_LIMIT)) return 0;
    implicit_project_rates(m, &scheme, t + h, v);
    return 1;
}

static void implicit_keep_start(mb_view *m, const double *q, const double *v) {
    const mb_implicit *s = &m->implicit;
    const size_t bytes = (size_t)m->nv * sizeof(double);
    memcpy(s->q_start, q, (size_t)m->nq * sizeof(double));
    memcpy(s->v_start, v, bytes);
    memcpy(s->rate_start, s->rate, bytes);
    memcpy(s->mean_start, s->mean, bytes);
    memcpy(s->lambda_start, s->lambda, (size_t)m->row_count * sizeof(double));
}

static void implicit_back_to_start(mb_view *m, double *q, double *v) {
    const mb_implicit *s = &m->implicit;
    memcpy(q, s->q_start, (size_t)m->nq * sizeof(double));
    memcpy(v, s->v_start, (size_t)m->nv * sizeof(double));
    memcpy(s->rate, s->rate_start, (size_t)m->nv * sizeof(double));
    memcpy(s->mean, s->mean_start, (size_t)m->nv * sizeof(double));
    memcpy(s->lambda, s->lambda_start, (size_t)m->row_count * sizeof(double));
    s->flags[MB_IMPLICIT_FRESH] = 0.0;
}

/* Accelerations at the start, and after the inputs or a law have jumped. At an instant of a law their rate may change too, so that
   its contribution to the mean is dropped: of order h² once, as at the start. */
static int implicit_start(bl_block *b, mb_view *m, double t, bool jumped, const double *q, const double *v) {
    const mb_implicit *s = &m->implicit;
    const bool first = s->flags[MB_IMPLICIT_STARTED] == 0.0;
    bool jump = first || jumped;
    for (int32_t k = 0; k < b->u_count; k++) {
        jump = jump || s->inputs[k] != b->u[k][0];
        s->inputs[k] = b->u[k][0];
    }
    if (!jump) return 1;
    if (!mb_accelerations(m, t, q, v)) return 0;
    mb_watch_iteration(m, t);
    for (int32_t k = 0; k < m->nv; k++) {
        s->mean[k] = first || jumped ? m->acceleration[k] : s->mean[k] + m->acceleration[k] - s->rate[k];
        s->rate[k] = m->acceleration[k];
    }
    memcpy(s->lambda, m->lambda, (size_t)m->row_count * sizeof(double));
    s->flags[MB_IMPLICIT_STARTED] = 1.0;
    return 1;
}

/* A step, of which h is a part. If it does not converge, all is as before. */
static int implicit_part(mb_view *m, double t, double h, double part, double *q, double *v) {
    const mb_implicit *s = &m->implicit;
    if (part < 1.0)
        for (int32_t k = 0; k < m->nv; k++) s->mean[k] = s->rate[k] + part * (s->mean[k] - s->rate[k]);
    implicit_keep_start(m, q, v);
    const int done = implicit_step(m, t, h, q, v);
    if (!done) implicit_back_to_start(m, q, v);
    const double rest = (1.0 - part) / part;
    if (part < 1.0)
        for (int32_t k = 0; k < m->nv; k++) s->mean[k] += rest * (s->mean_start[k] - s->rate_start[k]);
    return done;
}

/* One internal step; if it does not converge it is halved, recursively. Sizes are binary fractions of the step, and each substep
   starts at a multiple of its size, so that sizes grow again after a difficult part and the last substep ends with the step. */
int mb_implicit_advance(bl_block *b, mb_view *m, double t, double h, double part, bool jumped, double *q, double *v) {
    if (!implicit_start(b, m, t, jumped, q, v)) return 0;
    m->implicit.flags[MB_IMPLICIT_HALVED] = 0.0;
    double done = 0.0, size = 1.0;
    while (done < 1.0) {
        if (implicit_part(m, t + done * h, size * h, size * part, q, v)) {
            done += size;
            while (size < 1.0 && fmod(done, 2.0 * size) == 0.0) size *= 2.0;
        } else {
            m->implicit.flags[MB_IMPLICIT_HALVED] = 1.0;
            size *= 0.5;
            if (size < MB_SMALLEST_PART) return 0;
        }
    }
    return 1;
}
