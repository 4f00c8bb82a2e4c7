/* Radau IIA with three stages, order 5, for stiff diagrams.
 *
 * E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, 2nd ed., IV.8: simplified Newton iteration on the
 * collocation equations, transformed so that one real and one complex matrix of the size of the states are factored;
 * starting values from the last collocation polynomial; an embedded error estimate of order 3, filtered by the real matrix;
 * predictive step size control (K. Gustafsson).
 *
 *     Z = h (A ⊗ I) F(x0 + Z),  A⁻¹ = T Λ T⁻¹,  W = T⁻¹ Z,  Λ = diag(γ, [α -β; β α]) */
#include <float.h>
#include <math.h>
#include <string.h>

#include "scheduler/engine/solvers/solver.h"

/* With S = √6: c1 = (4 - S)/10, c2 = (4 + S)/10. */
static const double RADAU5_C1 = 0.15505102572168219018, RADAU5_C2 = 0.64494897427831780982;
static const double RADAU5_GAMMA = 3.6378342527444957322, RADAU5_ALPHA = 2.6810828736277521339,
                    RADAU5_BETA = 3.0504301992474105694;
static const double RADAU5_T[3][3] = {{9.1232394870892942792e-2, -0.14125529502095420843, -3.0029194105147424492e-2},
                                      {0.24171793270710701896, 0.20412935229379993199, 0.38294211275726193779},
                                      {0.96604818261509293619, 1.0, 0.0}};
static const double RADAU5_T_INVERSE[3][3] = {
    {4.3255798900631553510, 0.33919925181580986954, 0.54177053993587487119},
    {-4.1787185915519047273, -0.32768282076106238708, 0.47662355450055045196},
    {-0.50287263494578687595, 2.5719269498556054292, -0.59603920482822492497}};
/* Of the error estimate: -(13 + 7 S)/3, (-13 + 7 S)/3, -1/3. */
static const double RADAU5_ERROR[3] = {-10.048809399827415562, 1.3821427331607488958, -1.0 / 3};

static const double RADAU5_SAFETY = 0.9, RADAU5_SLOWEST = 0.2, RADAU5_FASTEST = 8.0;
static const double RADAU5_SMALL_RATE =
    1e-3; /* of convergence, up to which a Jacobian is kept; and after two iterations */
static const double RADAU5_LEAST_KEPT = 0.8,
                    RADAU5_MOST_KEPT = 1.2; /* change of the step within which factors are kept instead */
static const double RADAU5_TRUST = 0.03; /* in the rate of the last step: it alone rarely ends an iteration */
static const double RADAU5_SAME_STEP = 1e-9;
/* Least difference for the Jacobian, in units of the scale: where f is almost 0, but made of larger terms, its noise gives no lower bound. */
static const double RADAU5_LEAST_DIFFERENCE = 1e-3, RADAU5_FIXED_LEAST_DIFFERENCE = 1e-7;
static const double RADAU5_LARGEST_RATIO = 10.0; /* of a step to the one before, up to which its polynomial is of use */
enum { RADAU5_ITERATIONS = 7, RADAU5_FIXED_ITERATIONS = 12, RADAU5_MOST_HALVINGS = 12, RADAU5_MOST_REJECTIONS = 100 };
static const char RADAU5_REMEDY[] = "Check the diagram for a value that grows without bound, or a looser tolerance";

/* Parts of memory and work space. */
typedef struct {
    int64_t n;
    double *head, *dense, *jacobian, *real, *complex;
    double *x0, *f0, *scale, *z[3], *w[3], *error, *spare;
} bl_radau5;

static bl_radau5 parts_of(const bl_engine *e) {
    bl_radau5 r = {.n = e->layout.states, .head = e->solver_memory, .dense = bl_dense(e)};
    r.jacobian = r.dense + BL_DENSE_COUNT * r.n;
    r.real = r.jacobian + e->jacobian->entries;
    r.complex = r.real + bl_real_size(e->jacobian);
    double *next = e->stages;
    double **const parts[] = {&r.x0,   &r.f0,   &r.scale, &r.z[0],  &r.z[1], &r.z[2],
                              &r.w[0], &r.w[1], &r.w[2],  &r.error, &r.spare};
    for (int k = 0; k < BL_RADAU5_SCRATCH; k++, next += r.n) *parts[k] = next;
    return r;
}

static void copy(double *to, const double *from, int64_t n) { memcpy(to, from, (size_t)n * sizeof(double)); }

/* The collocation polynomial of the last step without its end, at s = θ - 1; θ may be beyond 1. */
static double polynomial(const double *dense, int64_t n, int64_t i, double s) {
    return s * (dense[BL_DENSE_RISE * n + i] +
                (s + 1.0 - RADAU5_C2) * (dense[BL_DENSE_BEND * n + i] +
                                         (s + 1.0 - RADAU5_C1) * (dense[BL_DENSE_TWIST * n + i] +
                                                                  (s + 1.0) * dense[BL_DENSE_LAST * n + i])));
}

void bl_interpolate_radau5(const double *dense, int64_t n, double theta, double *x) {
    for (int64_t i = 0; i < n; i++) x[i] = dense[BL_DENSE_END * n + i] + polynomial(dense, n, i, theta - 1.0);
}

/* With P(θ) = ∫ (s - c1) (s - c2) (s - 1) ds, the collocation polynomial is short by P(θ)/6 h⁴ d⁴x/dt⁴, and the error
   estimate is -h⁴ d⁴x/dt⁴ / (60 γ): with this weight it corrects the stages to one order more. In stiff components the
   estimate is damped, as the error of their stages is. */
static double correction_weight(double theta) {
    return -10.0 * RADAU5_GAMMA * theta * (((0.25 * theta - 0.6) * theta + 0.45) * theta - 0.1);
}

/* The polynomial of degree 4 through the start of the step before, and start, corrected stages and end of this one: divided
   differences over the nodes 1, c2, c1, 0 and -ρ. After a jump, and after a step that was cut very short, the last is from the
   error estimate alone. */
static void fill_dense(const bl_radau5 *r, const double *end, double h) {
    const int64_t n = r->n;
    const double first = correction_weight(RADAU5_C1), second = correction_weight(RADAU5_C2);
    const bool follows = r->head[BL_SOLVER_JUMPED] == 0.0 && RADAU5_LARGEST_RATIO * r->head[BL_SOLVER_LENGTH] >= h;
    const double ratio = follows ? r->head[BL_SOLVER_LENGTH] / h : 0.0;
    const double product = ratio * (ratio + 1.0) * (ratio + RADAU5_C1) * (ratio + RADAU5_C2);
    double *start = r->dense + BL_DENSE_START * n, *rise = r->dense + BL_DENSE_RISE * n,
           *bend = r->dense + BL_DENSE_BEND * n, *twist = r->dense + BL_DENSE_TWIST * n,
           *last = r->dense + BL_DENSE_LAST * n;
    for (int64_t i = 0; i < n; i++) {
        const double z1 = r->z[0][i] + first * r->error[i], z2 = r->z[1][i] + second * r->error[i], z3 = r->z[2][i];
        rise[i] = (z2 - z3) / (RADAU5_C2 - 1.0);
        const double inner = (z1 - z2) / (RADAU5_C1 - RADAU5_C2), outer = (inner - z1 / RADAU5_C1) / RADAU5_C2;
        bend[i] = (inner - rise[i]) / (RADAU5_C1 - 1.0);
        twist[i] = bend[i] - outer;
        last[i] = 0.0;
        if (ratio > 0.0) {
            const double s = -ratio - 1.0,
                         cubic =
                             z3 + s * (rise[i] + (s + 1.0 - RADAU5_C2) * (bend[i] + (s + 1.0 - RADAU5_C1) * twist[i]));
            last[i] = (start[i] - r->x0[i] - cubic) / product;
        } else {
            last[i] = -2.5 * RADAU5_GAMMA * r->error[i];
        }
    }
    copy(start, r->x0, n);
    copy(r->dense + BL_DENSE_END * n, end, n);
}

/* Starting values of Z and W: the last polynomial, continued; or zeros. */
static void predict(const bl_radau5 *r, double h) {
    const double length = r->head[BL_SOLVER_LENGTH], before = RADAU5_LARGEST_RATIO * length >= h ? length : 0.0;
    const double nodes[3] = {RADAU5_C1, RADAU5_C2, 1.0};
    for (int k = 0; k < 3; k++) {
        const double s = before > 0.0 ? nodes[k] * h / before : 0.0;
        for (int64_t i = 0; i < r->n; i++) r->z[k][i] = polynomial(r->dense, r->n, i, s);
        if (!bl_all_finite(r->z[k], r->n)) memset(r->z[k], 0, (size_t)r->n * sizeof(double));
    }
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < r->n; i++)
            r->w[k][i] = RADAU5_T_INVERSE[k][0] * r->z[0][i] + RADAU5_T_INVERSE[k][1] * r->z[1][i] +
                         RADAU5_T_INVERSE[k][2] * r->z[2][i];
}

/* Evaluates f at the stages into `error`, `spare` and dx, and transforms it: z = T⁻¹ F. */
static int evaluate_stages(bl_engine *e, const bl_radau5 *r, double t, double h) {
    const double nodes[3] = {RADAU5_C1, RADAU5_C2, 1.0};
    double *const slopes[3] = {r->error, r->spare, e->dx};
    for (int k = 0; k < 3; k++) {
        for (int64_t i = 0; i < r->n; i++) e->x[i] = r->x0[i] + r->z[k][i];
        const int status = bl_evaluate_at(e, t + nodes[k] * h);
        if (status != BL_OK) return status;
        if (k < 2) copy(slopes[k], e->dx, r->n);
    }
    for (int64_t i = 0; i < r->n; i++) {
        const double f1 = slopes[0][i], f2 = slopes[1][i], f3 = slopes[2][i];
        for (int k = 0; k < 3; k++)
            r->z[k][i] = RADAU5_T_INVERSE[k][0] * f1 + RADAU5_T_INVERSE[k][1] * f2 + RADAU5_T_INVERSE[k][2] * f3;
    }
    return BL_OK;
}

/* One Newton correction: z becomes the change of W, then Z = T W of the corrected W. Returns the size of the change. */
static double correct(bl_engine *e, const bl_radau5 *r, double h) {
    const double gamma = RADAU5_GAMMA / h, alpha = RADAU5_ALPHA / h, beta = RADAU5_BETA / h;
    for (int64_t i = 0; i < r->n; i++) {
        r->z[0][i] -= gamma * r->w[0][i];
        r->z[1][i] -= alpha * r->w[1][i] - beta * r->w[2][i];
        r->z[2][i] -= alpha * r->w[2][i] + beta * r->w[1][i];
    }
    bl_solve_real(e->jacobian, r->real, r->z[0]);
    bl_solve_complex(e->jacobian, r->complex, r->z[1], r->z[2]);
    double sum = 0.0;
    for (int64_t i = 0; i < r->n; i++)
        for (int k = 0; k < 3; k++) {
            const double part = r->z[k][i] / r->scale[i];
            sum += part * part;
        }
    for (int64_t i = 0; i < r->n; i++) {
        for (int k = 0; k < 3; k++) r->w[k][i] += r->z[k][i];
        for (int k = 0; k < 3; k++)
            r->z[k][i] = RADAU5_T[k][0] * r->w[0][i] + RADAU5_T[k][1] * r->w[1][i] + RADAU5_T[k][2] * r->w[2][i];
    }
    return sqrt(sum / (double)(3 * r->n));
}

typedef enum { CONVERGED, RADAU5_SLOW, DIVERGED, FAILED } radau5_newton;

/* Solves the collocation equations to `tolerance`, in units of the scale. *shrink: factor for the step after RADAU5_SLOW. */
static radau5_newton iterate(bl_engine *e, const bl_radau5 *r, double t, double h, double tolerance, int most,
                             int *used, double *shrink, int *status) {
    double before = 0.0, rate_before = 0.0, rate = RADAU5_SMALL_RATE;
    double last = r->head[BL_SOLVER_RATE]; /* of the last step: an estimate until there are two corrections */
    last = last > 0.0 && last < 1.0 ? last : RADAU5_SMALL_RATE;
    double left = pow(fmax(last / (1.0 - last), DBL_EPSILON), 0.8);
    for (int n = 1; n <= most; n++) {
        *used = n;
        *status = evaluate_stages(e, r, t, h);
        if (*status != BL_OK) return FAILED;
        const double size = correct(e, r, h);
        if (!isfinite(size)) return DIVERGED;
        if (n > 1) {
            const double now = size / before;
            rate = n == 2 ? now : sqrt(now * rate_before);
            rate_before = now;
            if (rate >= 0.99 && size > tolerance) return DIVERGED;
            left = rate < 0.99 ? rate / (1.0 - rate) : 1.0;
            const double expected = left * size * pow(rate, most - 1 - n) / tolerance;
            if (n < most && expected >= 1.0) {
                *shrink = 0.8 * pow(fmax(1e-4, fmin(20.0, expected)), -1.0 / (4.0 + most - 1 - n));
                return RADAU5_SLOW;
            }
        }
        before = fmax(size, DBL_EPSILON * tolerance);
        if (left * size <= (n > 1 ? 1.0 : RADAU5_TRUST) * tolerance) {
            r->head[BL_SOLVER_RATE] = rate;
            return CONVERGED;
        }
    }
    *shrink = 0.5;
    return RADAU5_SLOW;
}

/* Makes Jacobian and factors for a step of h from t, as far as they are missing. Returns BL_OK, a status of a block, or
   BL_UNCHANGED if a matrix is singular. */
static int prepare(bl_engine *e, const bl_radau5 *r, double t, double h, double least_difference) {
    double *head = r->head;
    const double age = head[BL_SOLVER_JACOBIAN];
    if (age != BL_NEW_JACOBIAN && age != BL_OLD_JACOBIAN) {
        copy(e->x, r->x0, r->n);
        /* Differences as large as the noise of f allows, in units of the tolerances: as in SUNDIALS CVODE. */
        const double slope = bl_norm(r->f0, r->scale, r->n);
        const double noise = slope > 0.0 && isfinite(slope) ? 1000.0 * h * DBL_EPSILON * (double)r->n * slope : 1.0;
        const double least = fmax(noise, least_difference);
        for (int64_t i = 0; i < r->n; i++) r->spare[i] = fmax(sqrt(DBL_EPSILON) * fabs(r->x0[i]), least * r->scale[i]);
        const int status = bl_differentiate(e, t, 1.0, r->spare, r->f0, r->jacobian);
        if (status != BL_OK) return status;
        head[BL_SOLVER_JACOBIAN] = BL_NEW_JACOBIAN;
        head[BL_SOLVER_FACTORED] = 0.0;
    }
    if (fabs(head[BL_SOLVER_FACTORED] - h) <= RADAU5_SAME_STEP * h) return BL_OK;
    head[BL_SOLVER_FACTORIZATIONS] += 2.0; /* a real and a complex one */
    head[BL_SOLVER_FACTORED] = 0.0;
    if (bl_factor_real(e->jacobian, r->jacobian, RADAU5_GAMMA / h, r->real) != BL_OK) return BL_UNCHANGED;
    if (bl_factor_complex(e->jacobian, r->jacobian, RADAU5_ALPHA / h, RADAU5_BETA / h, r->complex) != BL_OK)
        return BL_UNCHANGED;
    head[BL_SOLVER_FACTORED] = h;
    return BL_OK;
}

/* The embedded error estimate in units of the scale; a second, sharper filter where the first alone may reject too often. */
static int estimate_error(bl_engine *e, const bl_radau5 *r, double t, double h, bool again, double *error) {
    for (int64_t i = 0; i < r->n; i++) {
        r->spare[i] = (RADAU5_ERROR[0] * r->z[0][i] + RADAU5_ERROR[1] * r->z[1][i] + RADAU5_ERROR[2] * r->z[2][i]) / h;
        r->error[i] = r->spare[i] + r->f0[i];
    }
    bl_solve_real(e->jacobian, r->real, r->error);
    *error = fmax(bl_norm(r->error, r->scale, r->n), 1e-10);
    if (*error < 1.0 || !again) return BL_OK;
    for (int64_t i = 0; i < r->n; i++) e->x[i] = r->x0[i] + r->error[i];
    const int status = bl_evaluate_at(e, t);
    if (status != BL_OK) return status;
    for (int64_t i = 0; i < r->n; i++) r->error[i] = r->spare[i] + e->dx[i];
    bl_solve_real(e->jacobian, r->real, r->error);
    *error = fmax(bl_norm(r->error, r->scale, r->n), 1e-10);
    return BL_OK;
}

/* The next step after an accepted one, from its error and from that of the step before. */
static double propose(const bl_radau5 *r, double h, double error, int iterations, bool rejected) {
    const double safety = fmin(RADAU5_SAFETY, RADAU5_SAFETY * (1.0 + 2.0 * RADAU5_ITERATIONS) /
                                                  ((double)iterations + 2.0 * RADAU5_ITERATIONS));
    double divisor = fmax(1.0 / RADAU5_FASTEST, fmin(1.0 / RADAU5_SLOWEST, pow(error, 0.25) / safety));
    if (r->head[BL_SOLVER_LENGTH] > 0.0 && r->head[BL_SOLVER_ERROR] > 0.0) {
        const double predicted =
            r->head[BL_SOLVER_LENGTH] / h * pow(error * error / r->head[BL_SOLVER_ERROR], 0.25) / RADAU5_SAFETY;
        divisor = fmax(divisor, fmax(1.0 / RADAU5_FASTEST, fmin(1.0 / RADAU5_SLOWEST, predicted)));
    }
    return rejected ? fmin(h, h / divisor) : h / divisor;
}

/* Ends an accepted step: x, dx and signals at its end, the interpolant, what the next step starts from. */
static int accept(bl_engine *e, const bl_radau5 *r, double t, double h, int iterations) {
    for (int64_t i = 0; i < r->n; i++) e->x[i] = r->x0[i] + r->z[2][i];
    const int status = bl_evaluate_at(e, t + h);
    if (status != BL_OK) return status;
    if (!bl_all_finite(e->dx, r->n))
        return bl_fail(e, BL_ERROR_NOT_FINITE, -1, "a derivative is not finite at t = %.9g", t + h);
    fill_dense(r, e->x, h);
    r->head[BL_SOLVER_LENGTH] = h;
    r->head[BL_SOLVER_JUMPED] = 0.0;
    const bool converges = iterations <= 2 || r->head[BL_SOLVER_RATE] <= RADAU5_SMALL_RATE;
    r->head[BL_SOLVER_JACOBIAN] = converges ? BL_OLD_JACOBIAN : BL_STALE_JACOBIAN;
    return BL_OK;
}

int bl_step_radau5(bl_engine *e, double t, double limit, double *taken) {
    const bl_radau5 r = parts_of(e);
    double *head = r.head;
    /* The estimate has order 3, the method 5: the tolerance is reached with a looser one for the estimate. */
    const double relative = 0.1 * pow(e->relative_tolerance, 2.0 / 3.0),
                 absolute = relative * (e->absolute_tolerance / e->relative_tolerance),
                 tolerance = fmax(10.0 * DBL_EPSILON / relative, fmin(0.03, sqrt(relative)));
    int status = BL_OK;
    for (int64_t i = 0; i < r.n; i++) r.scale[i] = absolute * e->nominals[i] + relative * fabs(e->x[i]);
    if (!(head[BL_SOLVER_PROPOSED] > 0.0)) {
        status = bl_first_step(e, t, limit, 3, r.scale, r.x0, &head[BL_SOLVER_PROPOSED]);
        if (status != BL_OK) return status;
    }
    const double proposed = head[BL_SOLVER_PROPOSED];
    double h = bl_fit_step(proposed, limit);
    copy(r.x0, e->x, r.n);
    copy(r.f0, e->dx, r.n);
    for (int rejections = 0; rejections < RADAU5_MOST_REJECTIONS && !bl_is_too_short(t, h, limit); rejections++) {
        const bool first = !(head[BL_SOLVER_LENGTH] > 0.0);
        int iterations = 0;
        double shrink = 0.5, error = INFINITY;
        status = prepare(e, &r, t, h, RADAU5_LEAST_DIFFERENCE);
        if (status == BL_OK) {
            predict(&r, h);
            const radau5_newton end = iterate(e, &r, t, h, tolerance, RADAU5_ITERATIONS, &iterations, &shrink, &status);
            if (end == CONVERGED) status = estimate_error(e, &r, t, h, first || rejections > 0, &error);
            if (status == BL_OK && error < 1.0) {
                const double next = propose(&r, h, error, iterations, rejections > 0);
                status = accept(e, &r, t, h, iterations);
                if (status == BL_OK) {
                    const bool keeps = head[BL_SOLVER_JACOBIAN] == BL_OLD_JACOBIAN && next >= RADAU5_LEAST_KEPT * h &&
                                       next <= RADAU5_MOST_KEPT * h;
                    head[BL_SOLVER_STEPS] += 1.0;
                    head[BL_SOLVER_ERROR] = fmax(error, 1e-2);
                    head[BL_SOLVER_PROPOSED] = rejections == 0 && h < proposed ? fmax(next, proposed)
                                               : keeps                         ? h
                                                                               : next;
                    if (rejections > 0) bl_forget_failure(e);
                    *taken = h;
                    return BL_OK;
                }
            } else if (end == CONVERGED && isfinite(error)) {
                shrink = first ? 0.1 : h > 0.0 ? propose(&r, h, error, iterations, true) / h : 0.5;
            }
            /* A failed iteration with an old Jacobian is repeated with a new one, without a shorter step if it was only slow. */
            if (head[BL_SOLVER_JACOBIAN] != BL_NEW_JACOBIAN) {
                head[BL_SOLVER_JACOBIAN] = BL_STALE_JACOBIAN;
                if (end == RADAU5_SLOW || end == DIVERGED) shrink = 1.0;
            }
        }
        if (status != BL_OK && status != BL_UNCHANGED && !bl_can_retry(status)) return status;
        head[BL_SOLVER_REJECTIONS] += 1.0;
        h *= shrink;
    }
    copy(e->x, r.x0, r.n);
    head[BL_SOLVER_PROPOSED] = h;
    return bl_fail_too_short(e, t, h, status, RADAU5_REMEDY);
}

/* One step of fixed length h, or a part of one. Returns BL_UNCHANGED if Newton's iteration does not converge. */
static int step_fixed(bl_engine *e, const bl_radau5 *r, double t, double h) {
    double *head = r->head;
    copy(r->x0, e->x, r->n);
    copy(r->f0, e->dx, r->n);
    for (int64_t i = 0; i < r->n; i++) r->scale[i] = fmax(e->nominals[i], fabs(r->x0[i]));
    for (int attempt = 0; attempt < 2; attempt++) {
        int iterations = 0;
        double shrink = 0.0;
        int status = prepare(e, r, t, h, RADAU5_FIXED_LEAST_DIFFERENCE);
        if (status != BL_OK) return status;
        predict(r, h);
        const radau5_newton end = iterate(e, r, t, h, 1e-13, RADAU5_FIXED_ITERATIONS, &iterations, &shrink, &status);
        double error = 0.0;
        if (end == CONVERGED) status = estimate_error(e, r, t, h, false, &error);
        if (end == CONVERGED && status == BL_OK) return accept(e, r, t, h, iterations);
        if (end == FAILED) return status;
        if (head[BL_SOLVER_JACOBIAN] == BL_NEW_JACOBIAN) break;
        head[BL_SOLVER_JACOBIAN] = BL_STALE_JACOBIAN;
    }
    return BL_UNCHANGED;
}

int bl_step_fixed_radau5(bl_engine *e, double t, double limit, double *taken) {
    const bl_radau5 r = parts_of(e);
    int status = BL_OK;
    *taken = limit;
    for (int halving = 0; halving <= RADAU5_MOST_HALVINGS; halving++, *taken *= 0.5) {
        status = step_fixed(e, &r, t, *taken);
        if (status == BL_OK && halving > 0) bl_forget_failure(e);
        if (status == BL_OK || (status != BL_UNCHANGED && !bl_can_retry(status))) return status;
        r.head[BL_SOLVER_REJECTIONS] += 1.0;
        r.head[BL_SOLVER_LENGTH] = 0.0;
        copy(e->x, r.x0, r.n);
        copy(e->dx, r.f0, r.n);
    }
    if (status != BL_UNCHANGED) return status;
    return bl_fail(e, BL_ERROR_SOLVER, -1, "the implicit step from t = %.9g did not converge", t);
}

/* Where Newton's iteration fails, at a kink for instance, the step is taken in parts. */
int bl_integrate_radau5(bl_engine *e, double t, double h) {
    const bl_radau5 r = parts_of(e);
    int64_t part = 1LL << RADAU5_MOST_HALVINGS, done = 0;
    const int64_t whole = part;
    while (done < whole) {
        const double from = t + h * ((double)done / (double)whole), length = h * ((double)part / (double)whole);
        int status = done > 0 ? bl_evaluate_at(e, from) : BL_OK;
        if (status == BL_OK) status = step_fixed(e, &r, from, length);
        if (status == BL_OK) {
            done += part;
            continue;
        }
        if (status != BL_UNCHANGED && !bl_can_retry(status)) return status;
        r.head[BL_SOLVER_REJECTIONS] += 1.0;
        if (part == 1)
            return status != BL_UNCHANGED
                       ? status
                       : bl_fail(e, BL_ERROR_SOLVER, -1, "the implicit step from t = %.9g did not converge", from);
        if (status != BL_UNCHANGED) bl_forget_failure(e);
        copy(e->x, r.x0, r.n);
        copy(e->dx, r.f0, r.n);
        part /= 2;
        r.head[BL_SOLVER_LENGTH] = 0.0;
    }
    return BL_OK;
}
