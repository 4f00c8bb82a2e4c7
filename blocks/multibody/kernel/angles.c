/* Orientations as angles: sequences of three rotations, and rotation vectors, on a branch that is continuous in time.
 *
 *     R = R_i(a) R_j(b) R_k(c)          about axes i, j, k of the moving frame: 6 with k ≠ i, 6 with k = i
 *
 *     k ≠ i     s R_ik = sin b,  -s R_jk / R_kk = tan a,  -s R_ij / R_ii = tan c       s = ±1 for (i, j, k) even or odd
 *     k = i     R_ii = cos b,    R_ji / (-s R_mi) = tan a,  R_ij / (s R_im) = tan c    m the third axis, s of (i, j, m)
 *
 * (a + π, π - b, c + π), or (a + π, -b, c + π) if k = i, is the same rotation. Of both, and of whole turns, the angles are taken that are
 * nearest to what those after the last step and their rates predict. Where b makes the first axis and the third parallel, a is as
 * predicted and c follows. */
#include <string.h>

#include "blocks/core/kernel/constants.h"
#include "blocks/multibody/kernel/multibody.h"

static const double ANGLES_PARALLEL = 1e-9; /* sine of the angle between the first axis and the third */
static const double ANGLES_WARN = 0.0175;   /* rad */

bool mb_sequence_check(int32_t sequence) {
    if (sequence == MB_SEQUENCE_VECTOR) return true;
    if (!mb_in_range(sequence, 0, MB_SEQUENCE_VECTOR)) return false;
    const int32_t code = sequence % MB_SEQUENCE_REVERSED, i = code % 3, j = code / 3 % 3, k = code / 9;
    return i != j && j != k;
}

static double near_turn(double angle, double expected) {
    const double full = 2.0 * BL_PI;
    return angle + full * nearbyint((expected - angle) / full);
}

static void turn_about(int32_t axis, double angle, double *R) {
    const int32_t j = (axis + 1) % 3, k = (axis + 2) % 3;
    memset(R, 0, 9 * sizeof(double));
    R[4 * axis] = 1.0;
    R[4 * j] = R[4 * k] = cos(angle);
    R[3 * k + j] = sin(angle);
    R[3 * j + k] = -sin(angle);
}

/* The angles nearest to `expected`, the principal ones if that is NULL. Returns the angle in rad to where they are not unique. */
static double find_sequence(int32_t code, const double *R, const double *expected, double *out) {
    const int32_t i = code % 3, j = code / 3 % 3, k = code / 9, third = 3 - i - j;
    const bool proper = i == k;
    const double s = (j - i + 3) % 3 == 1 ? 1.0 : -1.0;
    const double side = proper ? hypot(R[3 * i + j], R[3 * i + third]) : hypot(R[3 * i + i], R[3 * i + j]);
    double a, b, c;
    b = proper ? atan2(side, R[3 * i + i]) : atan2(s * R[3 * i + k], side);
    if (side > ANGLES_PARALLEL) {
        a = proper ? atan2(R[3 * j + i], -s * R[3 * third + i]) : atan2(-s * R[3 * j + k], R[3 * k + k]);
        c = proper ? atan2(R[3 * i + j], s * R[3 * i + third]) : atan2(-s * R[3 * i + j], R[3 * i + i]);
    } else {
        double first[9], second[9], both[9], rest[9];
        a = expected ? expected[0] : 0.0;
        turn_about(i, a, first);
        turn_about(j, b, second);
        mb_multiply(first, second, both);
        for (int r = 0; r < 3; r++) /* bothᵀ R = R_k(c) */
            for (int n = 0; n < 3; n++)
                rest[3 * r + n] = both[r] * R[n] + both[3 + r] * R[3 + n] + both[6 + r] * R[6 + n];
        const int32_t p = (k + 1) % 3, q = (k + 2) % 3;
        c = atan2(rest[3 * q + p], rest[3 * p + p]);
    }
    out[0] = a, out[1] = b, out[2] = c;
    if (!expected) return asin(fmin(1.0, side));
    const double other[3] = {a + BL_PI, proper ? -b : BL_PI - b, c + BL_PI};
    double best = INFINITY;
    for (int branch = 0; branch < (side > ANGLES_PARALLEL ? 2 : 1); branch++) {
        const double *from = branch ? other : (const double[3]){a, b, c};
        double near[3], away = 0.0;
        for (int n = 0; n < 3; n++) {
            near[n] = near_turn(from[n], expected[n]);
            away += (near[n] - expected[n]) * (near[n] - expected[n]);
        }
        if (away < best) {
            best = away;
            mb_copy(near, out);
        }
    }
    return asin(fmin(1.0, side));
}

/* The same of the rotation vector, which is not unique at whole turns other than none. */
static double find_vector(const double *R, const double *expected, double *out) {
    double e[4];
    mb_to_quaternion(R, e);
    const double sine = sqrt(e[1] * e[1] + e[2] * e[2] + e[3] * e[3]), full = 2.0 * BL_PI;
    double angle = 2.0 * atan2(sine, fabs(e[0])), axis[3];
    const double sign = e[0] < 0.0 ? -1.0 : 1.0, length = expected ? sqrt(mb_dot(expected, expected)) : 0.0;
    for (int k = 0; k < 3; k++)
        axis[k] = sine > 1e-12 ? sign * e[1 + k] / sine : length > 1.0 ? expected[k] / length : 0.0;
    if (!(sine > 1e-12)) angle = 0.0;
    const double turns = expected ? nearbyint((mb_dot(expected, axis) - angle) / full) : 0.0;
    for (int k = 0; k < 3; k++)
        out[k] = sine > 1e-12 || turns != 0.0 ? (angle + full * turns) * axis[k] : 2.0 * e[1 + k];
    return turns == 0.0 ? full - angle : angle;
}

static double find_angles(int32_t sequence, const double *R, const double *expected, double *out) {
    if (sequence == MB_SEQUENCE_VECTOR) return find_vector(R, expected, out);
    return find_sequence(sequence % MB_SEQUENCE_REVERSED, R, expected, out);
}

/* Rates of the angles for an angular velocity in world axes; 0 where they are not defined. */
static void find_rates(int32_t sequence, const double *at, const double *w, double *rates) {
    memset(rates, 0, 3 * sizeof(double));
    if (sequence == MB_SEQUENCE_VECTOR) {
        const double square = mb_dot(at, at), angle = sqrt(square), half = 0.5 * angle;
        const double c = angle < 1e-3 ? 1.0 / 12.0 : (1.0 - half * cos(half) / sin(half)) / square;
        double once[3], twice[3];
        mb_cross(at, w, once);
        mb_cross(at, once, twice);
        for (int k = 0; k < 3; k++) rates[k] = w[k] - 0.5 * once[k] + c * twice[k];
        for (int k = 0; k < 3; k++)
            if (!isfinite(rates[k])) memset(rates, 0, 3 * sizeof(double));
        return;
    }
    const int32_t code = sequence % MB_SEQUENCE_REVERSED, i = code % 3, j = code / 3 % 3, k = code / 9;
    double first[9], second[9], both[9], x[3] = {i == 0, i == 1, i == 2}, y[3], z[3], xy[3], yz[3], zx[3];
    turn_about(i, at[0], first);
    turn_about(j, at[1], second);
    mb_multiply(first, second, both);
    mb_column(first, j, y);
    mb_column(both, k, z);
    mb_cross(x, y, xy);
    mb_cross(y, z, yz);
    mb_cross(z, x, zx);
    const double volume = mb_dot(xy, z);
    if (fabs(volume) < 1e-6) return;
    rates[0] = mb_dot(yz, w) / volume;
    rates[1] = mb_dot(zx, w) / volume;
    rates[2] = mb_dot(xy, w) / volume;
}

static double *angles_memory(const mb_view *m, int32_t output) {
    int32_t slot = 0;
    for (int32_t k = 0; k < output; k++) slot += m->outputs[k * MB_OUT_FIELDS + MB_OUT_TYPE] == MB_OUT_ANGLES;
    return m->angles + (int64_t)slot * MB_ANGLES_MEMORY;
}

static double continue_angles(const mb_view *m, int32_t output, double t, double *out) {
    const int32_t *record = m->outputs + output * MB_OUT_FIELDS;
    const double *memory = angles_memory(m, output);
    double R[9], expected[3];
    mb_marker_axes(m, record[MB_OUT_INDEX], R);
    for (int k = 0; k < 3; k++)
        expected[k] = memory[MB_ANGLES_VALUE + k] + memory[MB_ANGLES_RATE + k] * (t - memory[MB_ANGLES_AT]);
    return find_angles(record[MB_OUT_AXIS], R, expected, out);
}

void mb_show_angles(const mb_view *m, int32_t output, double t, double *y) {
    const int32_t sequence = m->outputs[output * MB_OUT_FIELDS + MB_OUT_AXIS];
    double found[3];
    (void)continue_angles(m, output, t, found);
    const bool reversed = sequence != MB_SEQUENCE_VECTOR && sequence >= MB_SEQUENCE_REVERSED;
    for (int k = 0; k < 3; k++) y[k] = found[reversed ? 2 - k : k];
}

static void note_angles(const mb_view *m, int32_t output, double t, const double *found, double nearest) {
    const int32_t *record = m->outputs + output * MB_OUT_FIELDS;
    const int32_t link = mb_link_of(m, record[MB_OUT_INDEX]);
    double *memory = angles_memory(m, output);
    mb_copy(found, memory + MB_ANGLES_VALUE);
    memset(memory + MB_ANGLES_RATE, 0, 3 * sizeof(double));
    if (link >= 0) find_rates(record[MB_OUT_AXIS], found, m->link[link].w, memory + MB_ANGLES_RATE);
    memory[MB_ANGLES_AT] = t;
    if (nearest < memory[MB_ANGLES_NEAREST]) memory[MB_ANGLES_NEAREST] = nearest, memory[MB_ANGLES_WHEN] = t;
}

void mb_start_angles(const mb_view *m, double t, const double *q, const double *v) {
    if (m->angles_count == 0) return;
    mb_view view = *m;
    mb_positions(&view, q);
    mb_velocities(&view, v);
    for (int32_t k = 0; k < m->head[MB_OUTPUTS]; k++) {
        const int32_t *record = m->outputs + k * MB_OUT_FIELDS;
        if (record[MB_OUT_TYPE] != MB_OUT_ANGLES) continue;
        double R[9], found[3];
        mb_marker_axes(m, record[MB_OUT_INDEX], R);
        angles_memory(m, k)[MB_ANGLES_NEAREST] = INFINITY;
        const double nearest = find_angles(record[MB_OUT_AXIS], R, NULL, found);
        note_angles(m, k, t, found, nearest);
    }
}

void mb_keep_angles(mb_view *m, double t, const double *q, const double *v) {
    if (m->angles_count == 0) return;
    mb_positions(m, q);
    mb_velocities(m, v);
    for (int32_t k = 0; k < m->head[MB_OUTPUTS]; k++) {
        if (m->outputs[k * MB_OUT_FIELDS + MB_OUT_TYPE] != MB_OUT_ANGLES) continue;
        double found[3];
        const double nearest = continue_angles(m, k, t, found);
        note_angles(m, k, t, found, nearest);
    }
}

void mb_diagnose_angles(const bl_block *b, const mb_view *m) {
    static const char axes[2][4] = {"XYZ", "xyz"};
    if (m->angles_count == 0) return;
    for (int32_t k = 0; k < m->head[MB_OUTPUTS]; k++) {
        const int32_t *record = m->outputs + k * MB_OUT_FIELDS, sequence = record[MB_OUT_AXIS];
        if (record[MB_OUT_TYPE] != MB_OUT_ANGLES) continue;
        const double *memory = angles_memory(m, k);
        if (!(memory[MB_ANGLES_NEAREST] < ANGLES_WARN)) continue;
        const int32_t link = mb_link_of(m, record[MB_OUT_INDEX]);
        const int32_t body = link < 0 ? -1 : m->links[link * MB_LINK_FIELDS + MB_LINK_BODY];
        char name[MB_NAME_SIZE] = "ground";
        if (body >= 0) mb_joint_name(m, m->link_count + m->cut_count + m->head[MB_FORCES] + body, name);
        if (sequence == MB_SEQUENCE_VECTOR) {
            bl_log(b, "the rotation vector of `%s` is not unique near t = %.9g s, where it is a whole turn. ", name,
                   memory[MB_ANGLES_WHEN]);
            continue;
        }
        const int32_t code = sequence % MB_SEQUENCE_REVERSED, i = code % 3, j = code / 3 % 3, n = code / 9;
        const bool reversed = sequence >= MB_SEQUENCE_REVERSED;
        const char *letters = axes[reversed];
        bl_log(b,
               "the angles %c%c%c of `%s` are not unique near t = %.9g s: their first and third axis come within %.2g "
               "rad of each other. Take another sequence, or `rotation`. ",
               letters[reversed ? n : i], letters[j], letters[reversed ? i : n], name, memory[MB_ANGLES_WHEN],
               memory[MB_ANGLES_NEAREST]);
    }
}
