/* Joints that are redundant but for a small deviation, at the start of a run.
 *
 * Redundant rows, J = [J₁; A J₁], allow the motion that the others allow. If they deviate by a part ε of their terms, such as two slides whose axes
 * are not quite parallel, they prevent it. The multipliers of the accelerations are iterated with a finite weight (dynamics.c): below some ε,
 * which depends on masses and the kind of row, the deviation changes less than their tolerance in an iteration, and the rows act as
 * redundant.
 *
 * This is looked for with motions r that excite every coordinate: x, the part of r that the rows allow, is solved for as accelerations
 * are, and J x, which should be 0, is ε of its terms where rows deviate. Rounding leaves less. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

enum { DEVIATION_PROBES = 2, DEVIATION_NAMED = 3 };
static const double DEVIATION_LEAST =
    1e-12; /* of the terms of a row; less is what redundant joints are given with, or rounding */
static const double DEVIATION_SHARED = 0.1; /* of the largest: rows that deviate together */

/* Speeds of different sizes and signs, in proportion to the size of the mechanism. */
static void set_probe(const mb_view *m, int probe, double length, double *r) {
    for (int32_t l = 0; l < m->link_count; l++) {
        const int32_t *link = m->links + l * MB_LINK_FIELDS, type = link[MB_LINK_TYPE];
        for (int32_t k = 0; k < (type == MB_SPHERICAL ? 3 : type == MB_FIXED ? 0 : 1); k++) {
            const int32_t n = link[MB_LINK_V] + k;
            const double part = 0.6180339887498949 * (n + 1), size = 0.5 + (part - floor(part));
            r[n] = (type == MB_PRISMATIC ? length : 1.0) * (probe == 0 || n % 2 == 0 ? size : -size);
        }
    }
}

/* What a row would change at the most under the speeds x: as if every joint between its bodies moved it fully. */
static double row_terms(const mb_view *m, int32_t c, int32_t r, const double *x) {
    const int32_t *cut = m->cuts + c * MB_CUT_FIELDS,
                  type = m->rows[(cut[MB_CUT_ROW] + r) * MB_ROW_FIELDS + MB_ROW_TYPE];
    const double *j = m->jacobian + cut[MB_CUT_J] + r * cut[MB_CUT_PATHS];
    const mb_cut_state *at = &m->cut_state[c];
    const bool own = mb_coordinate_row_of(m, c) != NULL, angular = type == MB_ROW_D1 || type == MB_ROW_DRIVEN_ANGLE;
    double sum = 0.0;
    for (int32_t n = 0; n < cut[MB_CUT_PATHS]; n++) {
        const int32_t *path = m->paths + (cut[MB_CUT_PATH] + n) * MB_PATH_FIELDS;
        const bool slides = m->links[path[MB_PATH_LINK] * MB_LINK_FIELDS + MB_LINK_TYPE] == MB_PRISMATIC;
        double most = own ? fabs(j[n]) : slides ? !angular : 1.0;
        if (!own && !slides && !angular) {
            double arm[3];
            mb_sub(path[MB_PATH_SIDE] ? at->local_j : at->local_i, m->link[path[MB_PATH_LINK]].local, arm);
            most = sqrt(mb_dot(arm, arm));
        }
        sum += most * fabs(x[path[MB_PATH_V]]);
    }
    return sum;
}

/* The deviation of a closure in a motion x of the probe r: 0 if it is rounding. Needs J x in m->row_work. */
static double cut_deviation(const mb_view *m, int32_t c, const double *r, const double *x) {
    const int32_t *cut = m->cuts + c * MB_CUT_FIELDS;
    double most = 0.0;
    for (int32_t n = 0; n < cut[MB_CUT_ROWS]; n++) {
        const double left = fabs(m->row_work[cut[MB_CUT_ROW] + n]);
        if (m->alpha[cut[MB_CUT_ROW] + n] == 0.0 || !(left > DEVIATION_LEAST * row_terms(m, c, n, r))) continue;
        most = fmax(most, left / row_terms(m, c, n, x));
    }
    return most;
}

/* The deviations of all closures, into `found`, one for each. Returns the largest. */
static double find_deviations(mb_view *m, double t, const double *q, double *found) {
    const double length = mb_given_size(m), *settings = m->settings;
    double exact[MB_SETTINGS_COUNT]; /* as far as the iterations lead: what their tolerance leaves is no deviation */
    double *r = m->saved_state + m->nq, most = 0.0;
    memset(found, 0, (size_t)m->cut_count * sizeof(double));
    mb_update_positions(m, t, q);
    if (!mb_refactor(m)) return 0.0;
    memset(m->bias, 0, (size_t)m->row_count * sizeof(double));
    memcpy(exact, settings, sizeof exact);
    exact[MB_TOLERANCE] = 0.0;
    m->settings = exact;
    for (int probe = 0; probe < DEVIATION_PROBES; probe++) {
        set_probe(m, probe, length > 0.0 ? length : 1.0, r);
        mb_mass_times(m, r, m->force);
        (void)mb_solve_rows(m, 0.0);
        mb_jacobian_times(m, m->acceleration, m->row_work);
        for (int32_t c = 0; c < m->cut_count; c++) {
            found[c] = fmax(found[c], cut_deviation(m, c, r, m->acceleration));
            most = fmax(most, found[c]);
        }
    }
    m->settings = settings;
    return most;
}

void mb_diagnose_deviations(const bl_block *b, mb_view *m, double t, const double *q) {
    if (m->row_count == 0) return;
    double *found = m->search, most = find_deviations(m, t, q, found);
    int named = 0;
    if (!(most > 0.0)) return;
    bl_log(b, "%s", b->message[0] != '\0' ? " " : "");
    for (int32_t c = 0; c < m->cut_count && named < DEVIATION_NAMED; c++) {
        char name[MB_NAME_SIZE];
        if (!(found[c] >= DEVIATION_SHARED * most)) continue;
        mb_joint_name(m, m->link_count + c, name);
        bl_log(b, "%s`%s`", named++ > 0 ? ", " : "", name);
    }
    const bool several = named > 1;
    bl_log(b,
           " %s redundant but for %.1g of what %s: at t = %.9g s %s a motion that the other joints allow, by so "
           "little that accelerations do not follow, and the motion is not, or not fully, prevented. If %s meant to be "
           "redundant, give positions, axes or ratios that agree exactly; else leave %s out, or change %s by more.",
           several ? "are" : "is", most, several ? "they move" : "it moves", t, several ? "they oppose" : "it opposes",
           several ? "they are" : "it is", several ? "one" : "it", several ? "one" : "it");
}
