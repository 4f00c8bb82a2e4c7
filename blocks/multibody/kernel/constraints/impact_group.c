/* Impacts of several places of two bodies that meet at once, such as both ends of a pin that does not tilt.
 *
 * One after the other they would turn the bodies: the first end rebounds before the second is hit. Chatterjee and Ruina's impulses are
 * therefore those of all places together,
 *     I_a: no place approaches, without friction;   I_b: nor does any slip;   I = (1 + e_n) I_a + κ (I_b - I_a)
 * with one κ, at which no place exceeds its cone. I_a and I_b - I_a are orthogonal in the metric of the mobility, so that energy does not grow, as
 * with one. Where I_a would pull at a place, they are not hit together. Of equal impulses, which friction along a line through two places
 * leaves open, the smallest are taken. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

enum { GROUP_ROWS = 3 * MB_GROUP_MOST, GROUP_REFINEMENTS = 6 };
/* Added to the diagonal, as a part of it, so that redundant rows have a solution; taken out again by refinement. */
static const double GROUP_SOFTENED = 1e-6;
/* A normal impulse that is a smaller part of the largest is none. */
static const double GROUP_LEAST = 1e-9;

/* x of A x = b for a positive semidefinite A: Cholesky, softened, and refined. */
static void group_solve(const double *A, const double *b, int32_t n, double *x) {
    double L[GROUP_ROWS * GROUP_ROWS], rest[GROUP_ROWS], size = 0.0;
    for (int32_t k = 0; k < n; k++) size = fmax(size, A[k * n + k]);
    for (int32_t j = 0; j < n; j++)
        for (int32_t i = j; i < n; i++) {
            double sum = A[i * n + j] + (i == j ? GROUP_SOFTENED * size : 0.0);
            for (int32_t k = 0; k < j; k++) sum -= L[i * n + k] * L[j * n + k];
            L[i * n + j] = i == j ? sqrt(fmax(sum, 0.5 * GROUP_SOFTENED * size)) : sum / L[j * n + j];
        }
    memset(x, 0, (size_t)n * sizeof(double));
    for (int pass = 0; pass < GROUP_REFINEMENTS; pass++) {
        for (int32_t i = 0; i < n; i++) {
            rest[i] = b[i];
            for (int32_t k = 0; k < n; k++) rest[i] -= A[i * n + k] * x[k];
        }
        for (int32_t i = 0; i < n; i++) {
            for (int32_t k = 0; k < i; k++) rest[i] -= L[i * n + k] * rest[k];
            rest[i] /= L[i * n + i];
        }
        for (int32_t i = n - 1; i >= 0; i--) {
            for (int32_t k = i + 1; k < n; k++) rest[i] -= L[k * n + i] * rest[k];
            rest[i] /= L[i * n + i];
            x[i] += rest[i];
        }
    }
}

/* Impulses along the rows of all places from their velocities u, of normals away from each other. False if a place would be pulled. */
static bool group_law(const double *A, const double *u, const double *p, int32_t count, double *I) {
    const int32_t n = 3 * count;
    double normal[MB_GROUP_MOST * MB_GROUP_MOST], stop[GROUP_ROWS], plain[MB_GROUP_MOST], stick[GROUP_ROWS], most = 0.0;
    const double friction = p[MB_RIGID_FRICTION], restitution = p[MB_RIGID_RESTITUTION];
    for (int32_t i = 0; i < count; i++) {
        for (int32_t k = 0; k < count; k++) normal[i * count + k] = A[3 * i * n + 3 * k];
        stop[i] = -u[3 * i];
    }
    group_solve(normal, stop, count, plain);
    for (int32_t i = 0; i < count; i++) most = fmax(most, plain[i]);
    for (int32_t i = 0; i < count; i++)
        if (!(plain[i] > GROUP_LEAST * most)) return false;
    for (int32_t i = 0; i < n; i++) stop[i] = -u[i];
    group_solve(A, stop, n, stick);
    double part = 1.0 + p[MB_RIGID_TANGENTIAL];
    const double wanted = part;
    for (int32_t i = 0; i < count; i++) {
        const double length = hypot(stick[3 * i + 1], stick[3 * i + 2]), more = stick[3 * i] - plain[i],
                     pushed = (1.0 + restitution) * plain[i];
        if (wanted * length > friction * (pushed + wanted * more))
            part = fmin(part, friction * pushed / (length - friction * more));
    }
    for (int32_t i = 0; i < n; i++) {
        const double first = i % 3 == 0 ? plain[i / 3] : 0.0;
        I[i] = (1.0 + restitution) * first + part * (stick[i] - first);
    }
    return true;
}

/* The sum of what unit impulses do, times these. */
static double group_sum(const double *I, const double *found, int32_t n, int64_t stride) {
    double sum = 0.0;
    for (int32_t k = 0; k < n; k++) sum += I[k] * found[k * stride];
    return sum;
}

static bool group_give_up(const mb_view *m, double *v, const double *before) {
    memcpy(v, before, (size_t)m->nv * sizeof(double));
    return false;
}

bool mb_impact_group(mb_view *m, double t, const double *q, double *v, const int32_t *rows, int32_t count) {
    const int32_t n = 3 * count;
    const int64_t nv = m->nv, contacts = m->rigid_count;
    double *change = m->impact_work, *through = change + GROUP_ROWS * nv, *before = through + GROUP_ROWS * contacts;
    double A[GROUP_ROWS * GROUP_ROWS], u[GROUP_ROWS], I[GROUP_ROWS];
    memcpy(before, v, (size_t)nv * sizeof(double));
    for (int pass = 0;; pass++) {
        mb_kinematics(m, t, q, before);
        if (!mb_refactor(m)) return group_give_up(m, v, before);
        for (int32_t j = 0; j < n; j++) {
            const double size = j % 3 == 0 ? -1.0 : 1.0;
            mb_rigid_respond(m, rows[j / 3] + j % 3, 1, &size, change + j * nv);
            for (int32_t k = 0; k < contacts; k++) through[j * contacts + k] = m->lambda[mb_rigid_row(m, k)];
        }
        for (int32_t j = 0; j < n; j++) {
            mb_jacobian_times(m, change + j * nv, m->row_work);
            for (int32_t i = 0; i < n; i++) A[i * n + j] = (i % 3 == 0 ? -1.0 : 1.0) * m->row_work[rows[i / 3] + i % 3];
        }
        for (int32_t i = 0; i < count; i++) {
            const mb_rigid *r = mb_rigid_of(m, rows[i]);
            u[3 * i] = -r->closing, u[3 * i + 1] = r->slips[0], u[3 * i + 2] = r->slips[1];
            if (!(A[3 * i * (n + 1)] > 0.0)) return group_give_up(m, v, before);
        }
        if (!group_law(A, u, mb_rigid_law(m, rows[0]), count, I)) return group_give_up(m, v, before);
        for (int64_t k = 0; k < nv; k++) v[k] = before[k] + group_sum(I, change + k, n, nv);
        mb_kinematics(m, t, q, v);
        double most = 0.0;
        for (int32_t i = 0; i < count; i++) most = fmax(most, I[3 * i]);
        for (int32_t k = 0; k < contacts; k++) {
            mb_rigid *o = mb_rigid_of(m, mb_rigid_row(m, k));
            o->passed[0] = o->mode == MB_FLIES ? 0.0 : group_sum(I, through + k, n, contacts);
        }
        for (int32_t i = 0; i < count; i++) mb_rigid_of(m, rows[i])->passed[0] = I[3 * i];
        if (pass >= 8 * contacts || !mb_rigid_release(m, rows, count, most)) return true;
    }
}
