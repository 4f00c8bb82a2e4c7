/* A point on a curve C(s) through given points: a spline with two continuous derivatives.
 *
 *     e = P - C(s), with C' · e = 0: C(s) is the place of the curve nearest to P
 *     Φ = n(s) · e                      n = z × C' in a plane; C' × a and C' × (C' × a) in space, with a the given axis
 *     Φ̇ = n · Ṗ + (n' · e) ṡ,          ṡ = C' · Ṗ / (C' · C' - C'' · e)
 *     Φ̈ = n · P̈ + 2 (n' · Ṗ) ṡ + (n'' · e - n' · C') ṡ² + (n' · e) s̈
 *
 * Beyond the ends of an open curve its first and last piece go on. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

enum { CURVE_ITERATIONS = 16 };

bool mb_curve_check(const bl_block *b, const int32_t *curve, int32_t dimensions) {
    const int64_t n = curve[MB_CURVE_POINTS], place = curve[MB_CURVE_P];
    return (dimensions == 2 || dimensions == 3) && mb_in_range(curve[MB_CURVE_ROW], 0, dimensions - 1) && n >= 3 &&
           n <= MB_CURVE_MOST && curve[MB_CURVE_CLOSED] >= 0 && curve[MB_CURVE_CLOSED] <= 1 && place >= 0 &&
           place + n + 4 * dimensions * (n - 1) + 3 <= b->p_count;
}

/* C and its first three derivatives, into four vectors. */
static void curve_at(const double *points, int32_t n, int32_t dimensions, int32_t piece, double s, double C[4][3]) {
    const double x = s - points[piece];
    memset(C, 0, 12 * sizeof(double));
    for (int32_t k = 0; k < dimensions; k++) {
        const double *c = points + n + 4 * (int64_t)(k * (n - 1) + piece);
        C[0][k] = ((c[0] * x + c[1]) * x + c[2]) * x + c[3];
        C[1][k] = (3.0 * c[0] * x + 2.0 * c[1]) * x + c[2];
        C[2][k] = 6.0 * c[0] * x + 2.0 * c[1];
        C[3][k] = 6.0 * c[0];
    }
}

static int32_t curve_piece(const double *points, int32_t n, double s) {
    int32_t low = 0, high = n - 2;
    while (low < high) {
        const int32_t middle = (low + high + 1) / 2;
        if (s >= points[middle]) low = middle;
        else high = middle - 1;
    }
    return low;
}

/* The curve at the place nearest to P: from the nearest of its points by Newton's method, at most to the next points. */
static void curve_nearest(const double *points, int32_t n, bool closed, int32_t dimensions, const double *P,
                          double C[4][3]) {
    double least = INFINITY, e[3];
    int32_t nearest = 0;
    for (int32_t i = 0; i < n - closed; i++) {
        double square = 0.0;
        const int32_t piece = i < n - 1 ? i : n - 2;
        const double x = points[i] - points[piece];
        for (int32_t k = 0; k < dimensions; k++) {
            const double *c = points + n + 4 * (int64_t)(k * (n - 1) + piece);
            const double away = P[k] - (((c[0] * x + c[1]) * x + c[2]) * x + c[3]);
            square += away * away;
        }
        if (square < least) least = square, nearest = i;
    }
    const double length = points[n - 1] - points[0];
    const double before = nearest > 0 ? points[nearest - 1]
                          : closed    ? points[n - 2] - length
                                      : -INFINITY,
                 after = nearest < n - 1 ? points[nearest + 1] : INFINITY;
    double s = points[nearest];
    for (int iteration = 0; iteration < CURVE_ITERATIONS; iteration++) {
        const double at = closed && s < points[0] ? s + length : closed && s >= points[n - 1] ? s - length : s;
        curve_at(points, n, dimensions, curve_piece(points, n, at), at, C);
        mb_sub(P, C[0], e);
        const double square = mb_dot(C[1], C[1]), bend = square - mb_dot(C[2], e);
        const double step = mb_dot(C[1], e) / (bend > 0.1 * square ? bend : square);
        const double next = fmin(fmax(s + step, before), after);
        if (!isfinite(next) || fabs(next - s) <= 1e-16 * fmax(1.0, fabs(length))) break;
        s = next;
    }
}

void mb_curve_along(const double *p, const int32_t *curve, int32_t dimensions, const double *point, double jet[3]) {
    const int32_t n = curve[MB_CURVE_POINTS];
    const double *points = p + curve[MB_CURVE_P], *axis = points + n + 4 * (int64_t)dimensions * (n - 1);
    double P[3] = {0, 0, 0}, V[3] = {0, 0, 0}, A[3] = {0, 0, 0}, C[4][3], N[3][3], e[3], e_rate[3];
    for (int32_t k = 0; k < dimensions; k++) P[k] = point[3 * k], V[k] = point[3 * k + 1], A[k] = point[3 * k + 2];
    curve_nearest(points, n, curve[MB_CURVE_CLOSED] != 0, dimensions, P, C);
    if (dimensions == 2) {
        const double z[3] = {0, 0, 1};
        for (int k = 0; k < 3; k++) mb_cross(z, C[1 + k], N[k]);
    } else if (curve[MB_CURVE_ROW] == 0) {
        for (int k = 0; k < 3; k++) mb_cross(C[1 + k], axis, N[k]);
    } else {
        double side[3][3], part[3];
        for (int k = 0; k < 3; k++) mb_cross(C[1 + k], axis, side[k]);
        mb_cross(C[1], side[0], N[0]);
        mb_cross(C[2], side[0], N[1]);
        mb_add_cross(C[1], side[1], N[1]);
        mb_cross(C[3], side[0], N[2]);
        mb_add_cross(C[1], side[2], N[2]);
        mb_cross(C[2], side[1], part);
        mb_axpy(2.0, part, N[2]);
    }
    mb_sub(P, C[0], e);
    const double bend = mb_dot(C[1], C[1]) - mb_dot(C[2], e), rate = mb_dot(C[1], V) / bend;
    mb_copy(V, e_rate);
    mb_axpy(-rate, C[1], e_rate);
    const double second = (mb_dot(C[3], e) * rate * rate + 2.0 * mb_dot(C[2], e_rate) * rate + mb_dot(C[1], A) -
                           mb_dot(C[1], C[2]) * rate * rate) /
                          bend;
    jet[0] = mb_dot(N[0], e);
    jet[1] = mb_dot(N[0], V) + mb_dot(N[1], e) * rate;
    jet[2] = mb_dot(N[0], A) + 2.0 * mb_dot(N[1], V) * rate + (mb_dot(N[2], e) - mb_dot(N[1], C[1])) * rate * rate +
             mb_dot(N[1], e) * second;
}
