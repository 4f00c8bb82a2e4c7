/* Three-vectors, rotation matrices (row by row) and unit quaternions (e0, e1, e2, e3). */
#ifndef BIELLA_VECTOR_H
#define BIELLA_VECTOR_H

#include <math.h>
#include <stdint.h>

static inline double mb_dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
static inline void mb_cross(const double *a, const double *b, double *out) {
    const double x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
    out[0] = x;
    out[1] = y;
}
/* out += a × b */
static inline void mb_add_cross(const double *a, const double *b, double *out) {
    out[0] += a[1] * b[2] - a[2] * b[1];
    out[1] += a[2] * b[0] - a[0] * b[2];
    out[2] += a[0] * b[1] - a[1] * b[0];
}
static inline void mb_copy(const double *a, double *out) { out[0] = a[0], out[1] = a[1], out[2] = a[2]; }
static inline void mb_add(const double *a, double *out) { out[0] += a[0], out[1] += a[1], out[2] += a[2]; }
/* out += s a */
static inline void mb_axpy(double s, const double *a, double *out) {
    out[0] += s * a[0], out[1] += s * a[1], out[2] += s * a[2];
}
static inline void mb_sub(const double *a, const double *b, double *out) {
    out[0] = a[0] - b[0], out[1] = a[1] - b[1], out[2] = a[2] - b[2];
}
/* out = R a */
static inline void mb_rotate(const double *R, const double *a, double *out) {
    const double x = mb_dot(R, a), y = mb_dot(R + 3, a), z = mb_dot(R + 6, a);
    out[0] = x, out[1] = y, out[2] = z;
}
/* out = Rᵀ a */
static inline void mb_rotate_back(const double *R, const double *a, double *out) {
    const double x = R[0] * a[0] + R[3] * a[1] + R[6] * a[2];
    const double y = R[1] * a[0] + R[4] * a[1] + R[7] * a[2];
    const double z = R[2] * a[0] + R[5] * a[1] + R[8] * a[2];
    out[0] = x, out[1] = y, out[2] = z;
}
static inline void mb_column(const double *R, int k, double *out) {
    out[0] = R[k], out[1] = R[3 + k], out[2] = R[6 + k];
}
/* out = A B; out must not be A or B */
static inline void mb_multiply(const double *A, const double *B, double *out) {
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            out[3 * r + c] = A[3 * r] * B[c] + A[3 * r + 1] * B[3 + c] + A[3 * r + 2] * B[6 + c];
}
/* out = A Bᵀ; out must not be A or B */
static inline void mb_multiply_back(const double *A, const double *B, double *out) {
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++) out[3 * r + c] = mb_dot(A + 3 * r, B + 3 * c);
}
/* out = R S Rᵀ for a symmetric S; out must not be S */
static inline void mb_rotate_tensor(const double *R, const double *S, double *out) {
    double half[9];
    mb_multiply(R, S, half);
    out[0] = mb_dot(half, R);
    out[1] = out[3] = mb_dot(half, R + 3);
    out[2] = out[6] = mb_dot(half, R + 6);
    out[4] = mb_dot(half + 3, R + 3);
    out[5] = out[7] = mb_dot(half + 3, R + 6);
    out[8] = mb_dot(half + 6, R + 6);
}
static inline void mb_from_quaternion(const double *e, double *R) {
    const double s = 1.0 / (e[0] * e[0] + e[1] * e[1] + e[2] * e[2] + e[3] * e[3]);
    R[0] = 1.0 - 2.0 * s * (e[2] * e[2] + e[3] * e[3]);
    R[1] = 2.0 * s * (e[1] * e[2] - e[0] * e[3]);
    R[2] = 2.0 * s * (e[1] * e[3] + e[0] * e[2]);
    R[3] = 2.0 * s * (e[1] * e[2] + e[0] * e[3]);
    R[4] = 1.0 - 2.0 * s * (e[1] * e[1] + e[3] * e[3]);
    R[5] = 2.0 * s * (e[2] * e[3] - e[0] * e[1]);
    R[6] = 2.0 * s * (e[1] * e[3] - e[0] * e[2]);
    R[7] = 2.0 * s * (e[2] * e[3] + e[0] * e[1]);
    R[8] = 1.0 - 2.0 * s * (e[1] * e[1] + e[2] * e[2]);
}
static inline void mb_to_quaternion(const double *R, double *e) {
    const double trace = R[0] + R[4] + R[8];
    if (trace > 0.0) {
        const double s = sqrt(1.0 + trace);
        e[0] = 0.5 * s;
        e[1] = 0.5 * (R[7] - R[5]) / s, e[2] = 0.5 * (R[2] - R[6]) / s, e[3] = 0.5 * (R[3] - R[1]) / s;
        return;
    }
    const int i = R[0] >= R[4] ? (R[0] >= R[8] ? 0 : 2) : (R[4] >= R[8] ? 1 : 2), j = (i + 1) % 3, k = (i + 2) % 3;
    const double s = sqrt(fmax(1.0 + R[4 * i] - R[4 * j] - R[4 * k], 1e-300));
    e[0] = 0.5 * (R[3 * k + j] - R[3 * j + k]) / s;
    e[1 + i] = 0.5 * s;
    e[1 + j] = 0.5 * (R[3 * j + i] + R[3 * i + j]) / s;
    e[1 + k] = 0.5 * (R[3 * k + i] + R[3 * i + k]) / s;
}
static inline void mb_normalize_quaternion(double *e) {
    const double s = e[0] * e[0] + e[1] * e[1] + e[2] * e[2] + e[3] * e[3];
    const double scale = s > 0.0 ? 1.0 / sqrt(s) : 0.0;
    if (scale == 0.0) e[0] = 1.0;
    for (int k = 0; k < 4; k++) e[k] = scale == 0.0 ? (k == 0) : e[k] * scale;
}
/* de/dt = ½ e ⊗ (0, w), with w in the moved frame */
static inline void mb_quaternion_rate(const double *e, const double *w, double *out) {
    out[0] = 0.5 * (-e[1] * w[0] - e[2] * w[1] - e[3] * w[2]);
    out[1] = 0.5 * (e[0] * w[0] + e[2] * w[2] - e[3] * w[1]);
    out[2] = 0.5 * (e[0] * w[1] + e[3] * w[0] - e[1] * w[2]);
    out[3] = 0.5 * (e[0] * w[2] + e[1] * w[1] - e[2] * w[0]);
}
/* e ← e ⊗ exp(w / 2): a rotation by the vector w in the moved frame */
static inline void mb_turn_quaternion(double *e, const double *w) {
    const double angle = sqrt(mb_dot(w, w)), half = 0.5 * angle;
    const double s = angle > 1e-8 ? sin(half) / angle : 0.5, c = cos(half);
    const double d[4] = {c, s * w[0], s * w[1], s * w[2]};
    const double r[4] = {
        e[0] * d[0] - e[1] * d[1] - e[2] * d[2] - e[3] * d[3],
        e[0] * d[1] + e[1] * d[0] + e[2] * d[3] - e[3] * d[2],
        e[0] * d[2] - e[1] * d[3] + e[2] * d[0] + e[3] * d[1],
        e[0] * d[3] + e[1] * d[2] - e[2] * d[1] + e[3] * d[0],
    };
    for (int k = 0; k < 4; k++) e[k] = r[k];
    mb_normalize_quaternion(e);
}

/* The larger of two sizes; NaN if either is: once it is, it stays so. */
static inline double mb_larger(double most, double size) { return size <= most || isnan(most) ? most : size; }
/* The largest size of some values; NaN if any is. */
static inline double mb_largest(const double *values, int32_t count) {
    double most = 0.0;
    for (int32_t k = 0; k < count; k++) most = mb_larger(most, fabs(values[k]));
    return most;
}

#endif
