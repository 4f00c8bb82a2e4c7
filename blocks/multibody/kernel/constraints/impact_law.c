/* Chatterjee and Ruina's law of impact.
 *
 * I_a is the impulse that stops the approach without friction, I_b the one that also stops the slip. Then
 *     I = (1 + e_n) I_a + κ (I_b - I_a),   κ = 1 + e_t, or less so that |I_t| = μ I_n.
 * The rebound is e_n times the approach for every κ, and energy does not grow for 0 ≤ e_n ≤ 1 and -1 ≤ e_t ≤ 1. */
#include "blocks/multibody/kernel/multibody.h"

/* Where so little is left of the determinant, slip follows from the approach, as with a driver, and cannot be stopped for itself. */
static const double TIED = 1e-8;

void mb_impact_in_plane(const double *A, double vx, double vy, const double *p, double *X, double *Y) {
    const double friction = p[MB_RIGID_FRICTION], restitution = p[MB_RIGID_RESTITUTION],
                 tangential = p[MB_RIGID_TANGENTIAL];
    const double det = A[0] * A[2] - A[1] * A[1];
    const double plain = -vx / A[0];
    double stick_x = plain, stick_y = 0.0, part = 0.0;
    if (det > TIED * A[0] * A[2]) {
        stick_x = -(A[2] * vx - A[1] * vy) / det;
        stick_y = -(A[0] * vy - A[1] * vx) / det;
        const double more = stick_x - plain, trial_x = (1.0 + restitution) * plain + (1.0 + tangential) * more;
        part = 1.0 + tangential;
        if (part * fabs(stick_y) > friction * trial_x)
            part = friction * (1.0 + restitution) * plain / (fabs(stick_y) - friction * more);
    }
    *X = (1.0 + restitution) * plain + part * (stick_x - plain);
    *Y = part * stick_y;
}

/* Once the approach is stopped, impulses along the tangents change the slip by B = A_tt - A_tn A_nt / A_nn; along an axis of B that moves
   next to nothing slip is not stopped. */
void mb_impact_in_space(const double *A, double vx, const double *slip, const double *p, double *X, double *Y) {
    const double friction = p[MB_RIGID_FRICTION], restitution = p[MB_RIGID_RESTITUTION],
                 tangential = p[MB_RIGID_TANGENTIAL];
    const double *coupling = A + 1, plain = -vx / A[0];
    const double xx = A[4] - coupling[0] * coupling[0] / A[0], xy = A[5] - coupling[0] * coupling[1] / A[0],
                 yy = A[8] - coupling[1] * coupling[1] / A[0];
    const double rest[2] = {slip[0] + coupling[0] * plain, slip[1] + coupling[1] * plain};
    const double turn = 0.5 * atan2(2.0 * xy, xx - yy), c = cos(turn), s = sin(turn), size = fmax(A[4], A[8]);
    const double first = c * c * xx + 2.0 * c * s * xy + s * s * yy, last = xx + yy - first;
    const double u = first > TIED * size ? -(c * rest[0] + s * rest[1]) / first : 0.0,
                 v = last > TIED * size ? -(c * rest[1] - s * rest[0]) / last : 0.0;
    const double stick[2] = {c * u - s * v, s * u + c * v}, length = hypot(stick[0], stick[1]);
    const double more = -(coupling[0] * stick[0] + coupling[1] * stick[1]) / A[0];
    double part = 1.0 + tangential;
    if (part * length > friction * ((1.0 + restitution) * plain + part * more))
        part = friction * (1.0 + restitution) * plain / (length - friction * more);
    *X = (1.0 + restitution) * plain + part * more;
    for (int k = 0; k < 2; k++) Y[k] = part * stick[k];
}
