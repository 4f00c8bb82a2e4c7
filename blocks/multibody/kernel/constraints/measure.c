/* Markers that move by laws, and measures: coordinates computed from the poses of two markers instead of from a tree joint.
 *
 *   length  q = a · d                                    d = P_j - P_i
 *   angle   q = atan2(o · (a × s), o · s), unwrapped     of o about a, counted from s
 *   Euler   q = e_k of marker j, of which the rows by formula take care: formula_row.c
 *
 * Coordinates of a joint that closes a loop are measures, and so is the angle of a planar bushing. An angle is unwrapped against the
 * prediction from its value and rate at the end of the last step, which are stored in memory; at the end of a step with the mean of
 * both rates. A prediction error of more than a quarter turn makes the turn count uncertain, and a diagnostic reports it. */
#include <string.h>

#include "blocks/core/kernel/constants.h"
#include "blocks/multibody/kernel/multibody.h"

void mb_marker_axes(const mb_view *m, int32_t marker, double *R) {
    const int32_t link = m->markers[marker * MB_MARKER_FIELDS + MB_MARKER_LINK];
    if (link < 0) memcpy(R, m->marker_data[marker].R, 9 * sizeof(double));
    else mb_multiply(m->link[link].R, m->marker_data[marker].R, R);
}

void mb_marker_laws(const mb_view *m, int32_t marker, double t, double *P, double *V, double *A) {
    const int32_t *record = m->markers + marker * MB_MARKER_FIELDS;
    double local[3] = {0, 0, 0}, rate[3] = {0, 0, 0}, second[3] = {0, 0, 0}, turned[3], R[9];
    bool any = false;
    for (int k = 0; k < 3; k++)
        if (record[MB_MARKER_LAW_X + k] >= 0) {
            local[k] = mb_law(m, record[MB_MARKER_LAW_X + k], t, &rate[k], &second[k]);
            any = true;
        }
    if (!any) return;
    const int32_t link = record[MB_MARKER_LINK];
    if (link >= 0) {
        const double *w = m->link[link].w;
        mb_multiply(m->link[link].R, m->data[link].R_body, R);
        mb_rotate(R, local, local);
        mb_rotate(R, rate, rate);
        mb_rotate(R, second, second);
        if (V) mb_add_cross(w, local, V);
        if (A) {
            mb_add_cross(m->link[link].wd, local, A);
            mb_cross(w, local, turned);
            mb_axpy(2.0, rate, turned);
            mb_add_cross(w, turned, A);
        }
    }
    mb_add(local, P);
    if (V) mb_add(rate, V);
    if (A) mb_add(second, A);
}

void mb_marker_motion(const mb_view *m, int32_t marker, double t, double *P, double *V, double *A) {
    const int32_t link = m->markers[marker * MB_MARKER_FIELDS + MB_MARKER_LINK];
    mb_marker_place(m, marker, P);
    if (V) mb_marker_velocity(m, marker, P, V);
    if (A) {
        memset(A, 0, 3 * sizeof(double));
        if (link >= 0) {
            const mb_link_state *s = &m->link[link];
            double arm[3], turned[3];
            mb_sub(P, s->p, arm);
            mb_copy(s->vd, A);
            mb_add_cross(s->wd, arm, A);
            mb_cross(s->w, arm, turned);
            mb_add_cross(s->w, turned, A);
        }
    }
    mb_marker_laws(m, marker, t, P, V, A);
}

/* An axis of one of the two markers: 0 to 2 of the first, 3 to 5 of the second. */
static void measure_axis(const mb_view *m, const int32_t *record, int field, double *axis) {
    const int32_t k = record[field];
    double R[9];
    mb_marker_axes(m, record[k < 3 ? MB_MEASURE_I : MB_MEASURE_J], R);
    mb_column(R, k % 3, axis);
}

static const double *turning_of(const mb_view *m, int32_t marker, bool acceleration) {
    static const double none[3] = {0, 0, 0};
    const int32_t link = m->markers[marker * MB_MARKER_FIELDS + MB_MARKER_LINK];
    return link < 0 ? none : acceleration ? m->link[link].wd : m->link[link].w;
}

bool mb_measure_axis_on_first(const mb_view *m, int32_t measure) {
    return m->measures[measure * MB_MEASURE_FIELDS + MB_MEASURE_ALONG] < 3;
}

void mb_measure_axis(const mb_view *m, int32_t measure, double *axis) {
    measure_axis(m, m->measures + measure * MB_MEASURE_FIELDS, MB_MEASURE_ALONG, axis);
}

double mb_measure(const mb_view *m, int32_t measure, double t) {
    const int32_t *record = m->measures + measure * MB_MEASURE_FIELDS;
    double axis[3];
    if (record[MB_MEASURE_TYPE] == MB_EULER) return 0.0;
    measure_axis(m, record, MB_MEASURE_ALONG, axis);
    if (record[MB_MEASURE_TYPE] == MB_LENGTH) {
        double P_i[3], P_j[3], d[3];
        mb_marker_motion(m, record[MB_MEASURE_I], t, P_i, NULL, NULL);
        mb_marker_motion(m, record[MB_MEASURE_J], t, P_j, NULL, NULL);
        mb_sub(P_j, P_i, d);
        return mb_dot(axis, d);
    }
    double of[3], start[3], side[3];
    measure_axis(m, record, MB_MEASURE_OF, of);
    measure_axis(m, record, MB_MEASURE_START, start);
    mb_cross(axis, start, side);
    const double full = 2.0 * BL_PI, angle = atan2(mb_dot(of, side), mb_dot(of, start));
    const double expected = m->turns[measure] + m->turn_rates[measure] * (t - m->turned[MB_TURNED_AT]);
    return angle + full * nearbyint((expected - angle) / full);
}

double mb_measure_rate(const mb_view *m, int32_t measure, double t, double *second) {
    const int32_t *record = m->measures + measure * MB_MEASURE_FIELDS, i = record[MB_MEASURE_I],
                  j = record[MB_MEASURE_J];
    const double *w_i = turning_of(m, i, false), *w_j = turning_of(m, j, false);
    const double *wd_i = turning_of(m, i, true), *wd_j = turning_of(m, j, true);
    double axis[3], axis_rate[3], axis_second[3];
    *second = 0.0;
    if (record[MB_MEASURE_TYPE] == MB_EULER) return 0.0;
    measure_axis(m, record, MB_MEASURE_ALONG, axis);
    const bool on_i = mb_measure_axis_on_first(m, measure);
    mb_cross(on_i ? w_i : w_j, axis, axis_rate);
    if (record[MB_MEASURE_TYPE] == MB_ANGLE) {
        double w[3], wd[3];
        mb_sub(w_j, w_i, w);
        mb_sub(wd_j, wd_i, wd);
        *second = mb_dot(wd, axis) + mb_dot(w, axis_rate);
        return mb_dot(w, axis);
    }
    double P_i[3], P_j[3], V_i[3], V_j[3], A_i[3], A_j[3], d[3], dd[3], ddd[3];
    mb_marker_motion(m, i, t, P_i, V_i, A_i);
    mb_marker_motion(m, j, t, P_j, V_j, A_j);
    mb_sub(P_j, P_i, d);
    mb_sub(V_j, V_i, dd);
    mb_sub(A_j, A_i, ddd);
    mb_cross(on_i ? w_i : w_j, axis_rate, axis_second);
    mb_add_cross(on_i ? wd_i : wd_j, axis, axis_second);
    *second = mb_dot(axis, ddd) + 2.0 * mb_dot(axis_rate, dd) + mb_dot(axis_second, d);
    return mb_dot(axis, dd) + mb_dot(axis_rate, d);
}

/* A force along a length acts where the marker that does not carry the axis is: there it does work on the length alone. */
void mb_measure_push(const mb_view *m, int32_t measure, double t, double effort) {
    const int32_t *record = m->measures + measure * MB_MEASURE_FIELDS, i = record[MB_MEASURE_I],
                  j = record[MB_MEASURE_J];
    double axis[3], P[3], opposite[3];
    if (record[MB_MEASURE_TYPE] == MB_EULER) return;
    measure_axis(m, record, MB_MEASURE_ALONG, axis);
    for (int k = 0; k < 3; k++) {
        axis[k] *= effort;
        opposite[k] = -axis[k];
    }
    mb_marker_motion(m, mb_measure_axis_on_first(m, measure) ? j : i, t, P, NULL, NULL);
    if (record[MB_MEASURE_TYPE] == MB_LENGTH) {
        mb_push(m, i, P, opposite, NULL);
        mb_push(m, j, P, axis, NULL);
    } else {
        mb_push(m, i, P, NULL, opposite);
        mb_push(m, j, P, NULL, axis);
    }
}

void mb_start_measures(mb_view *m, double t, const double *q, const double *v) {
    double second;
    if (m->head[MB_MEASURES] == 0) return;
    m->turned[MB_TURNED_AT] = t;
    mb_positions(m, q);
    mb_velocities(m, v);
    for (int32_t k = 0; k < m->head[MB_MEASURES]; k++) {
        m->turn_rates[k] = 0.0;
        m->turns[k] = mb_measure(m, k, t);
        m->turn_rates[k] = mb_measure_rate(m, k, t, &second);
    }
}

void mb_keep_turns(mb_view *m, double t, const double *q, const double *v) {
    const double certain = 0.5 * BL_PI;
    double second, *turned = m->turned;
    if (m->head[MB_MEASURES] == 0) return;
    mb_positions(m, q);
    mb_velocities(m, v);
    for (int32_t k = 0; k < m->head[MB_MEASURES]; k++) {
        const double rate = mb_measure_rate(m, k, t, &second);
        m->turn_rates[k] = 0.5 * (m->turn_rates[k] + rate);
        const double expected = m->turns[k] + m->turn_rates[k] * (t - turned[MB_TURNED_AT]);
        m->turns[k] = mb_measure(m, k, t);
        m->turn_rates[k] = rate;
        if (m->measures[k * MB_MEASURE_FIELDS + MB_MEASURE_TYPE] != MB_ANGLE) continue;
        const double off = fabs(m->turns[k] - expected);
        if (off > certain && off > turned[MB_TURNED_OFF])
            turned[MB_TURNED_OFF] = off, turned[MB_TURNED_WHEN] = t, turned[MB_TURNED_WHICH] = k;
    }
    turned[MB_TURNED_AT] = t;
}
