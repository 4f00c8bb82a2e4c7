/* What flows into a mechanism, and what its joints turn into heat [V 6.55].
 *
 *     P_in = Σ max(0, P)                  of drivers, of loads and efforts on joints, of the actuators of springs
 *     P_loss = Σ -P                       of friction, given or from reactions, of oil films, and of contacts but for rigid impacts
 *     η = 1 - P_loss / P_in               1 where nothing is lost, 0 where more is lost than flows in: then what is stored pays
 * Weight, springs and inertia store. Dampers of springs, bushings and stops are loads of the mechanism, no losses of its joints. */
#include "blocks/multibody/kernel/multibody.h"

/* The rate of a driven coordinate is that of its law; the effort on it is -λ. */
static double driver_power(const mb_view *m, int32_t row, double t) {
    double rate, second;
    (void)mb_law(m, m->rows[row * MB_ROW_FIELDS + MB_ROW_VALUE], t, &rate, &second);
    return -m->lambda[row] * rate;
}

static double power_in(const mb_view *m, double t, const double *q, const double *v) {
    double sum = 0.0;
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) sum += fmax(0.0, mb_source_power(m, m->forces + n * MB_FORCE_FIELDS, t, q, v));
    for (int32_t k = 0; k < m->row_count; k++)
        if (mb_is_driver(m->rows[k * MB_ROW_FIELDS + MB_ROW_TYPE])) sum += fmax(0.0, driver_power(m, k, t));
    return sum;
}

static double power_loss(const mb_view *m, double t, const double *q, const double *v) {
    double sum = 0.0;
    mb_film film;
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = m->forces + n * MB_FORCE_FIELDS;
        switch (force[MB_FORCE_TYPE]) {
            case MB_FRICTION: sum -= mb_friction_power(m, force, t, q, v); break;
            case MB_BEARING:
                if (mb_bearing_evaluate(m, force, t, &film) == BL_OK) sum += film.load.power_loss;
                break;
            case MB_CONTACT: {
                mb_contact at;
                mb_contact_see(m, force, t, &at);
                mb_contact_press(m, force, &at);
                mb_rigid_force(m, n, &at);
                sum += mb_contact_loss(m, force, &at);
                break;
            }
            case MB_RUBBING: sum += mb_rubbing_show(m, force[MB_FORCE_LAW], t, v, MB_RUBBING_POWER_LOSS); break;
            default: break;
        }
    }
    return sum;
}

double mb_power(const mb_view *m, double t, const double *q, const double *v, int32_t what) {
    if (what == MB_POWER_IN) return power_in(m, t, q, v);
    const double loss = power_loss(m, t, q, v);
    if (what == MB_POWER_LOSS) return loss;
    if (!(loss > 0.0)) return 1.0;
    const double in = power_in(m, t, q, v);
    return in > loss ? 1.0 - loss / in : 0.0;
}
