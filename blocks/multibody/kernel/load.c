/* Loads on the links other than inertia and gravity. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

void mb_marker_place(const mb_view *m, int32_t marker, double *P) {
    const int32_t link = mb_link_of(m, marker);
    if (link < 0) {
        mb_copy(m->marker_data[marker].p, P);
        return;
    }
    mb_rotate(m->link[link].R, m->marker_data[marker].p, P);
    mb_add(m->link[link].p, P);
}

void mb_marker_velocity(const mb_view *m, int32_t marker, const double *P, double *velocity) {
    const int32_t link = mb_link_of(m, marker);
    memset(velocity, 0, 3 * sizeof(double));
    if (link < 0) return;
    double arm[3];
    mb_sub(P, m->link[link].p, arm);
    mb_copy(m->link[link].v, velocity);
    mb_add_cross(m->link[link].w, arm, velocity);
}

bool mb_check_markers(const bl_block *b, const int32_t *force) {
    const int32_t markers = b->i[MB_MARKERS];
    return mb_in_range(force[MB_FORCE_I], 0, markers) && mb_in_range(force[MB_FORCE_J], 0, markers);
}

bool mb_check_coordinate(const bl_block *b, const int32_t *force) {
    return mb_in_range(force[MB_FORCE_I], -(int64_t)b->i[MB_MEASURES], b->i[MB_NQ]) &&
           mb_in_range(force[MB_FORCE_J], 0, b->i[MB_NV]) && mb_in_range(force[MB_FORCE_EXTRA], -2, 3);
}

bool mb_check_numbers(const bl_block *b, const int32_t *force, int64_t count) {
    return mb_in_range(force[MB_FORCE_P], 0, (int64_t)b->p_count - count + 1);
}

bool mb_check_laws(const bl_block *b, const int32_t *force, int64_t count) {
    return mb_in_range(force[MB_FORCE_LAW], 0, (int64_t)b->i[MB_LAWS] - count + 1);
}

double mb_spring_effort(const mb_view *m, const int32_t *force, double t, double x, double v) {
    const int32_t law = force[MB_FORCE_LAW];
    const double stretch = x - m->p[force[MB_FORCE_P]];
    return mb_coefficient(m, law, t, x, v) * stretch + mb_coefficient(m, law + 1, t, x, v) * v +
           mb_coefficient(m, law + 2, t, x, v);
}

double mb_spring_energy(const mb_view *m, const int32_t *force, double x) {
    const int32_t *law = m->laws + force[MB_FORCE_LAW] * MB_LAW_FIELDS;
    if (law[MB_LAW_TYPE] != MB_LAW_CONSTANT) return 0.0;
    const double stretch = x - m->p[force[MB_FORCE_P]];
    return 0.5 * m->p[law[MB_LAW_P]] * stretch * stretch;
}

double mb_coordinate(int32_t sign, double q) {
    const double value = sign < 0 ? -q : q, quarter = 1.5707963267948966;
    return sign == 2 || sign == -2 ? value - quarter : value;
}

static void start_turn(int32_t sign, double *q) {
    const double half = 3.141592653589793;
    if ((sign == 2 || sign == -2) && mb_coordinate(sign, *q) <= -half) *q += sign < 0 ? -2.0 * half : 2.0 * half;
}

/* Whether a coordinate of the tree is an angle. */
static bool turns(const mb_view *m, int32_t q) {
    for (int32_t l = 0; l < m->link_count; l++)
        if (m->links[l * MB_LINK_FIELDS + MB_LINK_Q] == q && m->links[l * MB_LINK_FIELDS + MB_LINK_TYPE] == MB_REVOLUTE)
            return true;
    return false;
}

void mb_start_turns(const mb_view *m, double t, double *q) {
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = m->forces + n * MB_FORCE_FIELDS;
        if (mb_element_of(force)->on_coordinate && force[MB_FORCE_I] >= 0)
            start_turn(force[MB_FORCE_EXTRA], &q[force[MB_FORCE_I]]);
    }
    for (int32_t n = 0; n < m->head[MB_OUTPUTS]; n++) {
        const int32_t *out = m->outputs + n * MB_OUT_FIELDS;
        if (out[MB_OUT_TYPE] == MB_OUT_COORDINATE) start_turn(out[MB_OUT_AXIS], &q[out[MB_OUT_INDEX]]);
    }
    for (int32_t k = 0; k < m->row_count; k++) {
        const int32_t *row = m->rows + k * MB_ROW_FIELDS;
        for (int side = 0; row[MB_ROW_TYPE] == MB_ROW_COUPLING && side < 2; side++)
            if (row[MB_ROW_A + side] != 0)
                start_turn(row[MB_ROW_A + side], &q[m->links[row[MB_ROW_I + side] * MB_LINK_FIELDS + MB_LINK_Q]]);
        if (row[MB_ROW_TYPE] != MB_ROW_FORMULA) continue;
        const int32_t *law = m->laws + row[MB_ROW_VALUE] * MB_LAW_FIELDS;
        for (int32_t n = 0; n < law[MB_LAW_OF]; n++) {
            const int32_t *term = m->words + law[MB_LAW_P] + n * MB_TERM_FIELDS;
            if (term[MB_TERM_SIGN] != 0)
                start_turn(term[MB_TERM_SIGN], &q[m->links[term[MB_TERM_PLACE] * MB_LINK_FIELDS + MB_LINK_Q]]);
        }
    }
    for (int32_t c = 0; c < m->cut_count; c++) {
        const mb_coordinate_row *own = mb_coordinate_row_of(m, c);
        if (own && own->start_turns) own->start_turns(m, c, t, q);
    }
    for (int32_t k = 0; k < m->row_count; k++) {
        const int32_t *row = m->rows + k * MB_ROW_FIELDS;
        double rate, second;
        if (row[MB_ROW_TYPE] == MB_ROW_DRIVEN_ANGLE)
            m->turns[row[MB_ROW_A]] = mb_law(m, row[MB_ROW_VALUE], t, &rate, &second);
        if (row[MB_ROW_TYPE] != MB_ROW_DRIVER || !turns(m, row[MB_ROW_I])) continue;
        const double full = 6.283185307179586;
        double *angle = &q[row[MB_ROW_I]];
        const double wanted = row[MB_ROW_B] * mb_law(m, row[MB_ROW_VALUE], t, &rate, &second);
        *angle += full * nearbyint((wanted - *angle) / full);
    }
}

double mb_joint_coordinate(const mb_view *m, const int32_t *force, double t, const double *q) {
    const int32_t i = force[MB_FORCE_I];
    return i < 0 ? mb_measure(m, -1 - i, t) : mb_coordinate(force[MB_FORCE_EXTRA], q[i]);
}

double mb_joint_rate(const mb_view *m, const int32_t *force, double t, const double *v) {
    const int32_t i = force[MB_FORCE_I];
    double second;
    if (i < 0) return mb_measure_rate(m, -1 - i, t, &second);
    return force[MB_FORCE_EXTRA] < 0 ? -v[force[MB_FORCE_J]] : v[force[MB_FORCE_J]];
}

void mb_push_coordinate(const mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                        mb_effort effort, double *joint_force) {
    const int32_t i = force[MB_FORCE_I];
    const double found = effort(m, force, t, mb_joint_coordinate(m, force, t, q), mb_joint_rate(m, force, t, v));
    if (i < 0) mb_measure_push(m, -1 - i, t, found);
    else joint_force[force[MB_FORCE_J]] += force[MB_FORCE_EXTRA] < 0 ? -found : found;
}

/* Adds all loads to the links' F, N and to the joints' efforts. */
void mb_add_loads(mb_view *m, double t, const double *q, const double *v, double *joint_force) {
    const int32_t count = m->head[MB_FORCES];
    for (int32_t n = 0; n < count; n++) {
        const int32_t *force = mb_force_record(m, n);
        const mb_element *element = mb_element_of(force);
        if (element->load) element->load(m, force, t, q, v, joint_force);
    }
}

/* The links' F and N are set aside while the load of the element alone is in them. */
double mb_pushed_power(mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    double power = 0.0, *kept = m->power_work, *joint_force = m->power_work + 6 * m->link_count;
    (void)mb_see_signals(m, t); /* which may need this work space for the power of another element */
    for (int32_t l = 0; l < m->link_count; l++) {
        mb_link_state *s = &m->link[l];
        mb_copy(s->F, kept + 6 * l);
        mb_copy(s->N, kept + 6 * l + 3);
        memset(s->F, 0, sizeof s->F);
        memset(s->N, 0, sizeof s->N);
    }
    memset(joint_force, 0, (size_t)m->nv * sizeof(double));
    mb_element_of(force)->load(m, force, t, q, v, joint_force);
    for (int32_t k = 0; k < m->nv; k++) power += joint_force[k] * v[k];
    for (int32_t l = 0; l < m->link_count; l++) {
        mb_link_state *s = &m->link[l];
        power += mb_dot(s->F, s->v) + mb_dot(s->N, s->w);
        mb_copy(kept + 6 * l, s->F);
        mb_copy(kept + 6 * l + 3, s->N);
    }
    return power;
}

static bool any_keeps(const mb_view *m) {
    for (int32_t type = 0; type < MB_FORCE_TYPES; type++)
        if (mb_has_element(m, type) && mb_elements[type]->keep) return true;
    return false;
}

void mb_keep_elements(mb_view *m, double t, const double *q, const double *v) {
    if (!any_keeps(m)) return;
    mb_positions(m, q);
    mb_velocities(m, v);
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = mb_force_record(m, n);
        const mb_element *element = mb_element_of(force);
        if (element->keep) element->keep(m, force, t);
    }
}
