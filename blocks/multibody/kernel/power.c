/* What flows into a mechanism, and what its joints turn into heat [V 6.55].
 *
 *     P_in = Σ max(0, P)                  of drivers, of loads and efforts on joints, of the actuators of springs
 *     P_loss = Σ -P                       of friction, given or from reactions, of oil films, and of contacts but for rigid impacts
 *     η = 1 - P_loss / P_in               1 where nothing is lost, 0 where the loss exceeds P_in and is supplied by stored energy
 * Weight, springs and inertia store. Dampers of springs, bushings and stops are loads of the mechanism, not losses of its joints. */
#include "blocks/multibody/kernel/multibody.h"

double mb_driver_power(const mb_view *m, int32_t row, double t) {
    double rate, second;
    if (m->rows[row * MB_ROW_FIELDS + MB_ROW_TYPE] == MB_ROW_FORMULA)
        return m->lambda[row] * mb_formula_row_drive(m, row, t);
    if (m->rows[row * MB_ROW_FIELDS + MB_ROW_TYPE] == MB_ROW_ROLL) return m->lambda[row] * mb_roll_drive(m, row, t);
    (void)mb_law(m, m->rows[row * MB_ROW_FIELDS + MB_ROW_VALUE], t, &rate, &second);
    return -m->lambda[row] * rate;
}

static double power_in(const mb_view *m, double t, const double *q, const double *v) {
    double sum = 0.0;
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = mb_force_record(m, n);
        const mb_element *element = mb_element_of(force);
        if (element->source) sum += fmax(0.0, element->source(m, force, t, q, v));
    }
    for (int32_t k = 0; k < m->row_count; k++)
        if (mb_moves_by_time(m->rows[k * MB_ROW_FIELDS + MB_ROW_TYPE])) sum += fmax(0.0, mb_driver_power(m, k, t));
    return sum;
}

static double power_loss(mb_view *m, double t, const double *q, const double *v) {
    double sum = 0.0;
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = mb_force_record(m, n);
        const mb_element *element = mb_element_of(force);
        if (element->loss) sum += element->loss(m, force, t, q, v);
    }
    return sum;
}

double mb_power(mb_view *m, double t, const double *q, const double *v, int32_t what) {
    if (what == MB_POWER_IN) return power_in(m, t, q, v);
    const double loss = power_loss(m, t, q, v);
    if (what == MB_POWER_LOSS) return loss;
    if (!(loss > 0.0)) return 1.0;
    const double in = power_in(m, t, q, v);
    return in > loss ? 1.0 - loss / in : 0.0;
}

static double add_stored(const mb_view *m, double t, const double *q, int kind, double sum) {
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = mb_force_record(m, n);
        const mb_element *element = mb_element_of(force);
        if (element->energy && (kind == MB_ENERGY_NONE || kind == element->energy_kind))
            sum += element->energy(m, force, t, q);
    }
    return sum;
}

double mb_stored_energy(const mb_view *m, double t, const double *q, int kind) {
    return add_stored(m, t, q, kind, 0.0);
}

double mb_weight_energy(const mb_view *m) {
    double energy = 0.0;
    for (int32_t l = 0; l < m->link_count; l++) {
        if (m->data[l].mass == 0.0) continue;
        double center[3];
        mb_copy(m->link[l].p, center);
        mb_add(m->link[l].c, center);
        energy -= m->data[l].mass * mb_dot(m->gravity, center);
    }
    return energy;
}

/* Of weight, and of springs, stops, bushings and contacts with constant coefficients. Actuators and springs whose stiffness is a law keep none. */
double mb_potential_energy(const mb_view *m, double t, const double *q) {
    return add_stored(m, t, q, MB_ENERGY_NONE, mb_weight_energy(m));
}
