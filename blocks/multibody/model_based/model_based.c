/* Efforts, mass matrix, Jacobian and propagated forces of a tree of joints, at a state that ports give.
 *
 * The integers are a head, n records of coordinates, the markers, and then the tables of the mechanism (multibody.h): a tree without
 * closures, whose joints turn and slide. The first ports are the inputs of its laws, the last ones the vectors that a kernel reads.
 * Nothing is kept but what follows from the parameters.
 *
 * A wrench or twist has 6 numbers: force and torque, or velocity and angular velocity, in world axes; in a plane 3: x, y and about z. */
#include <math.h>
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

BL_SHARED enum { MODEL_COORDINATES, MODEL_MARKERS, MODEL_WEIGHT, MODEL_HEAD };
/* SIGN: as that of a force on a coordinate. */
enum { MODEL_Q, MODEL_V, MODEL_SIGN, MODEL_FIELDS };
enum { MODEL_MOST = 1 << 10 };

typedef struct {
    bl_block mechanism; /* the block as the mechanism's operations see it */
    const int32_t *coordinates, *markers;
    int32_t count, marker_count, axes; /* axes: of a wrench, 6 or 3 */
    const double *const *vectors; /* the ports after those of laws */
} model_parts;

/* Finds the parts of a block with a number of vector ports; false if the integers are too few. */
static bool model_split(const bl_block *b, int32_t ports, model_parts *at) {
    if (b->i_count < MODEL_HEAD || b->u_count < ports) return false;
    at->count = b->i[MODEL_COORDINATES];
    at->marker_count = b->i[MODEL_MARKERS];
    if (!mb_in_range(at->count, 1, MODEL_MOST) || !mb_in_range(at->marker_count, 0, MODEL_MOST)) return false;
    at->coordinates = b->i + MODEL_HEAD;
    at->markers = at->coordinates + (ptrdiff_t)at->count * MODEL_FIELDS;
    const int32_t own = MODEL_HEAD + at->count * MODEL_FIELDS + at->marker_count;
    if (b->i_count - own < MB_HEAD) return false;
    at->mechanism = *b;
    at->mechanism.i = b->i + own;
    at->mechanism.i_count = b->i_count - own;
    at->mechanism.u_count = b->u_count - ports;
    at->mechanism.y_count = 0;
    at->mechanism.modes = (bl_modes){0};
    if (!mb_in_range(at->mechanism.i[MB_NQ], 0, 1 << 22) || !mb_in_range(at->mechanism.i[MB_NV], 0, 1 << 22))
        return false;
    at->mechanism.x_count = at->mechanism.i[MB_NQ] + at->mechanism.i[MB_NV];
    at->axes = at->mechanism.i[MB_PLANAR] ? 3 : 6;
    at->vectors = b->u ? b->u + at->mechanism.u_count : NULL;
    return true;
}

/* Elements without memory, whose load is a function of time, coordinates and speeds. */
static bool model_is_memoryless(int32_t type) {
    return type == MB_FORCE || type == MB_TORQUE || type == MB_POINT_FORCE || type == MB_SPRING || type == MB_BUSHING ||
           type == MB_JOINT_SPRING || type == MB_FRICTION || type == MB_END_STOP || type == MB_JOINT_EFFORT;
}

static bool model_check(const bl_block *b, int32_t ports, model_parts *at) {
    if (!model_split(b, ports, at) || !mb_check(&at->mechanism)) return false;
    const int32_t *head = at->mechanism.i;
    if (head[MB_INTERNAL] || head[MB_ROWS] || head[MB_MEASURES] || head[MB_CONTACTS] || head[MB_JOINT_FRICTIONS] ||
        head[MB_MOTION_LAWS] || head[MB_KEEPS] || head[MB_NQ] != at->count || head[MB_NV] != at->count)
        return false;
    for (int32_t k = 0; k < head[MB_FORCES]; k++)
        if (!model_is_memoryless(head[head[MB_AT_FORCES] + k * MB_FORCE_FIELDS + MB_FORCE_TYPE])) return false;
    for (int32_t k = 0; k < at->count; k++) {
        const int32_t *place = at->coordinates + (ptrdiff_t)k * MODEL_FIELDS;
        if (!mb_in_range(place[MODEL_Q], 0, at->count) || !mb_in_range(place[MODEL_V], 0, at->count) ||
            !mb_in_range(place[MODEL_SIGN], -2, 3) || place[MODEL_SIGN] == 0)
            return false;
    }
    for (int32_t k = 0; k < at->marker_count; k++)
        if (!mb_in_range(at->markers[k], 0, head[MB_MARKERS])) return false;
    return true;
}

static int model_init(bl_block *b, double t, int32_t ports) {
    model_parts at;
    mb_view m;
    memset(b->z, 0, (size_t)b->z_count * sizeof(double));
    (void)model_split(b, ports, &at);
    mb_open_view(&at.mechanism, &m);
    mb_prepare(&m);
    for (int32_t n = 0; n < m.body_count; n++)
        if (!mb_body_sound(&m.body[n])) return mb_fail_body(b, &m, n);
    const int status = mb_check_parameters(&at.mechanism, &m);
    if (status != BL_OK || !mb_has_body_coordinates(&m)) return status;
    double *q = m.saved_state; /* Euler parameters have the signs that they have where the mechanism itself moves */
    mb_pose_from_bodies(&m, q, q + m.nq);
    mb_start_turns(&m, t, q);
    mb_start_signs(&m, q);
    return BL_OK;
}

static int model_check_parameters(bl_block *b, int32_t ports) {
    model_parts at;
    mb_view m;
    (void)model_split(b, ports, &at);
    mb_open_view(&at.mechanism, &m);
    return mb_check_parameters(&at.mechanism, &m);
}

static bl_sizes model_sizes(const bl_block *b, int32_t ports) {
    model_parts at;
    mb_view m;
    bl_sizes sizes;
    (void)model_split(b, ports, &at);
    at.mechanism.z = at.mechanism.w = NULL;
    mb_open(&at.mechanism, &m, &sizes.memory, &sizes.scratch);
    return sizes;
}

/* Coordinates of joints as those of the tree; speeds and accelerations likewise, or zero where there are none. */
static void model_place_coordinates(const model_parts *at, const double *from, double *q) {
    const double quarter = 1.5707963267948966;
    for (int32_t k = 0; k < at->count; k++) {
        const int32_t *place = at->coordinates + (ptrdiff_t)k * MODEL_FIELDS, sign = place[MODEL_SIGN];
        const double value = sign == 2 || sign == -2 ? from[k] + quarter : from[k];
        q[place[MODEL_Q]] = sign < 0 ? -value : value;
    }
}

static void model_place_rates(const model_parts *at, const double *from, double *v) {
    for (int32_t k = 0; k < at->count; k++) {
        const int32_t *place = at->coordinates + (ptrdiff_t)k * MODEL_FIELDS;
        v[place[MODEL_V]] = !from ? 0.0 : place[MODEL_SIGN] < 0 ? -from[k] : from[k];
    }
}

static void model_show_efforts(const model_parts *at, const double *effort, double *y) {
    for (int32_t k = 0; k < at->count; k++) {
        const int32_t *place = at->coordinates + (ptrdiff_t)k * MODEL_FIELDS;
        y[k] = place[MODEL_SIGN] < 0 ? -effort[place[MODEL_V]] : effort[place[MODEL_V]];
    }
}

/* Poses and velocities; then m->saved_state has q and v. Coordinates that no record names, of a damaged plan, are zero. */
static void model_set_state(mb_view *m, const model_parts *at, const double *position, const double *speed) {
    double *q = m->saved_state, *v = q + m->nq;
    memset(q, 0, (size_t)(m->nq + 2 * m->nv) * sizeof(double));
    model_place_coordinates(at, position, q);
    model_place_rates(at, speed, v);
    mb_positions(m, q);
    mb_inertias(m);
    mb_velocities(m, v);
}

static void model_clear_loads(mb_view *m) {
    for (int32_t l = 0; l < m->link_count; l++) {
        memset(m->link[l].F, 0, sizeof m->link[l].F);
        memset(m->link[l].N, 0, sizeof m->link[l].N);
    }
    memset(m->force, 0, (size_t)m->nv * sizeof(double));
}

/* Efforts on the coordinates of the tree that accelerations need, beside the loads on links and coordinates. */
static const double *model_find_efforts(mb_view *m, const double *acceleration) {
    mb_set_accelerations(m, acceleration);
    mb_bias_forces(m, m->step);
    for (int32_t k = 0; k < m->nv; k++) m->step[k] -= m->force[k];
    return m->step;
}

static int efforts_check(const bl_block *b) {
    model_parts at;
    if (!model_check(b, 3, &at) || b->y_count != 1 || b->y_width[0] != at.count || at.marker_count != 0) return 0;
    const int32_t *width = b->u_width + at.mechanism.u_count;
    return width[0] == at.count && width[1] == at.count && width[2] == at.count;
}

static bl_sizes efforts_sizes(const bl_block *b) { return model_sizes(b, 3); }
static int efforts_init(bl_block *b, double t) { return model_init(b, t, 3); }
static int efforts_check_parameters(bl_block *b, double t) { return (void)t, model_check_parameters(b, 3); }

static int efforts_output(bl_block *b, double t) {
    model_parts at;
    mb_view m;
    (void)model_split(b, 3, &at);
    mb_open_view(&at.mechanism, &m);
    model_set_state(&m, &at, at.vectors[0], at.vectors[1]);
    double *acceleration = m.saved_state + m.nq + m.nv;
    model_place_rates(&at, at.vectors[2], acceleration);
    model_clear_loads(&m);
    mb_add_loads(&m, t, m.saved_state, m.saved_state + m.nq, m.force);
    model_show_efforts(&at, model_find_efforts(&m, acceleration), b->y[0]);
    return mb_has_formula_fault(&m) ? mb_fail_formula(b, &m) : BL_OK;
}

static int mass_check(const bl_block *b) {
    model_parts at;
    return model_check(b, 1, &at) && at.mechanism.i[MB_FORCES] == 0 && at.marker_count == 0 && b->y_count == 1 &&
           b->u_width[at.mechanism.u_count] == at.count && b->y_width[0] == at.count * at.count;
}

static bl_sizes mass_sizes(const bl_block *b) { return model_sizes(b, 1); }
static int mass_init(bl_block *b, double t) { return model_init(b, t, 1); }
static int mass_check_parameters(bl_block *b, double t) { return (void)t, model_check_parameters(b, 1); }

/* Column by column: the efforts of a unit acceleration at rest and without weight. The lower triangle is shown twice, so that the
   matrix is symmetric to the bit. */
static int mass_output(bl_block *b, double t) {
    (void)t;
    model_parts at;
    mb_view m;
    (void)model_split(b, 1, &at);
    mb_open_view(&at.mechanism, &m);
    memset(m.gravity, 0, sizeof m.gravity);
    model_set_state(&m, &at, at.vectors[0], NULL);
    double *acceleration = m.saved_state + m.nq + m.nv, *y = b->y[0];
    const int32_t n = at.count;
    for (int32_t column = 0; column < n; column++) {
        const int32_t *place = at.coordinates + (ptrdiff_t)column * MODEL_FIELDS;
        if (column > 0) mb_velocities(&m, m.saved_state + m.nq); /* accelerations begin at zero again */
        memset(acceleration, 0, (size_t)m.nv * sizeof(double));
        acceleration[place[MODEL_V]] = place[MODEL_SIGN] < 0 ? -1.0 : 1.0;
        model_clear_loads(&m);
        const double *effort = model_find_efforts(&m, acceleration);
        for (int32_t row = column; row < n; row++) {
            const int32_t *of = at.coordinates + (ptrdiff_t)row * MODEL_FIELDS;
            const double value = effort[of[MODEL_V]];
            y[row * n + column] = y[column * n + row] = of[MODEL_SIGN] < 0 ? -value : value;
        }
    }
    return BL_OK;
}

static int jacobian_check(const bl_block *b) {
    model_parts at;
    return model_check(b, 2, &at) && at.mechanism.i[MB_FORCES] == 0 && at.marker_count == 1 && b->y_count == 3 &&
           b->u_width[at.mechanism.u_count] == at.count && b->u_width[at.mechanism.u_count + 1] == at.count &&
           b->y_width[0] == at.axes * at.count && b->y_width[1] == at.axes && b->y_width[2] == at.axes;
}

static bl_sizes jacobian_sizes(const bl_block *b) { return model_sizes(b, 2); }
static int jacobian_init(bl_block *b, double t) { return model_init(b, t, 2); }
static int jacobian_check_parameters(bl_block *b, double t) { return (void)t, model_check_parameters(b, 2); }

/* Puts a vector and one about axes into a column of `width` columns. */
static void model_show_twist(const double *linear, const double *angular, int32_t axes, int32_t width, double *y) {
    if (axes == 3) {
        y[0] = linear[0], y[width] = linear[1], y[2 * width] = angular[2];
        return;
    }
    for (int k = 0; k < 3; k++) y[k * width] = linear[k], y[(3 + k) * width] = angular[k];
}

/* The link whose joint has a speed of the tree. */
static int32_t model_link_of_speed(const mb_view *m, int32_t v) {
    int32_t l = 0;
    while (l < m->link_count - 1 &&
           (m->links[l * MB_LINK_FIELDS + MB_LINK_TYPE] == MB_FIXED || m->links[l * MB_LINK_FIELDS + MB_LINK_V] != v))
        l++;
    return l;
}

static bool model_carries(const mb_view *m, int32_t link, int32_t outer) {
    while (outer > link) outer = m->links[outer * MB_LINK_FIELDS + MB_LINK_PARENT];
    return outer == link;
}

static int jacobian_output(bl_block *b, double t) {
    model_parts at;
    mb_view m;
    (void)model_split(b, 2, &at);
    mb_open_view(&at.mechanism, &m);
    model_set_state(&m, &at, at.vectors[0], at.vectors[1]);
    const int32_t n = at.count, marker = at.markers[0], on = mb_link_of(&m, marker);
    double P[3], V[3], A[3];
    mb_marker_motion(&m, marker, t, P, V, A);
    for (int32_t k = 0; k < n; k++) {
        const int32_t *place = at.coordinates + (ptrdiff_t)k * MODEL_FIELDS;
        const int32_t link = model_link_of_speed(&m, place[MODEL_V]);
        double linear[3] = {0, 0, 0}, angular[3] = {0, 0, 0}, axis[3], arm[3];
        if (model_carries(&m, link, on)) {
            for (int c = 0; c < 3; c++) axis[c] = place[MODEL_SIGN] < 0 ? -m.link[link].axis[c] : m.link[link].axis[c];
            if (m.links[link * MB_LINK_FIELDS + MB_LINK_TYPE] == MB_PRISMATIC) {
                mb_copy(axis, linear);
            } else {
                mb_sub(P, m.link[link].p, arm);
                mb_copy(axis, angular);
                mb_cross(axis, arm, linear);
            }
        }
        model_show_twist(linear, angular, at.axes, n, b->y[0] + k);
    }
    const double none[3] = {0, 0, 0};
    model_show_twist(V, on < 0 ? none : m.link[on].w, at.axes, 1, b->y[1]);
    model_show_twist(A, on < 0 ? none : m.link[on].wd, at.axes, 1, b->y[2]);
    return BL_OK;
}

static int propagation_check(const bl_block *b) {
    model_parts at;
    return model_check(b, 2, &at) && at.mechanism.i[MB_FORCES] == 0 && at.marker_count >= 1 && b->y_count == 2 &&
           b->u_width[at.mechanism.u_count] == at.count &&
           b->u_width[at.mechanism.u_count + 1] == at.axes * at.marker_count && b->y_width[0] == at.count &&
           b->y_width[1] == at.axes;
}

/* From the outermost links to the ground: efforts that hold the wrenches at the markers, τ = -Jᵀ F, and what holds the base. */
static int propagation_output(bl_block *b, double t) {
    (void)t;
    model_parts at;
    mb_view m;
    (void)model_split(b, 2, &at);
    mb_open_view(&at.mechanism, &m);
    if (!b->i[MODEL_WEIGHT]) memset(m.gravity, 0, sizeof m.gravity);
    model_set_state(&m, &at, at.vectors[0], NULL);
    model_clear_loads(&m);
    double base_force[3] = {0, 0, 0}, base_torque[3] = {0, 0, 0}, P[3];
    for (int32_t k = 0; k < at.marker_count; k++) {
        const double *wrench = at.vectors[1] + k * at.axes;
        double F[3] = {wrench[0], wrench[1], 0.0}, N[3] = {0.0, 0.0, wrench[2]};
        if (at.axes == 6) mb_copy(wrench, F), mb_copy(wrench + 3, N);
        mb_marker_place(&m, at.markers[k], P);
        mb_push(&m, at.markers[k], P, F, N);
        if (mb_link_of(&m, at.markers[k]) >= 0) continue;
        mb_sub(base_force, F, base_force); /* on the ground itself */
        mb_sub(base_torque, N, base_torque);
        mb_add_cross(F, P, base_torque);
    }
    mb_bias_forces(&m, m.step);
    model_show_efforts(&at, m.step, b->y[0]);
    for (int32_t l = 0; l < m.link_count; l++) {
        if (m.links[l * MB_LINK_FIELDS + MB_LINK_PARENT] >= 0) continue;
        mb_add(m.link[l].F, base_force);
        mb_add(m.link[l].N, base_torque);
        mb_add_cross(m.link[l].p, m.link[l].F, base_torque);
    }
    model_show_twist(base_force, base_torque, at.axes, 1, b->y[1]);
    return BL_OK;
}

const bl_kernel bl_kernels_model_based[] = {
    {.name = "inverse_dynamics",
     .check = efforts_check,
     .sizes = efforts_sizes,
     .init = efforts_init,
     .check_parameters = efforts_check_parameters,
     .output = efforts_output},
    {.name = "mass_matrix",
     .check = mass_check,
     .sizes = mass_sizes,
     .init = mass_init,
     .check_parameters = mass_check_parameters,
     .output = mass_output},
    {.name = "mechanism_jacobian",
     .check = jacobian_check,
     .sizes = jacobian_sizes,
     .init = jacobian_init,
     .check_parameters = jacobian_check_parameters,
     .output = jacobian_output},
    {.name = "force_propagation",
     .check = propagation_check,
     .sizes = jacobian_sizes,
     .init = jacobian_init,
     .check_parameters = jacobian_check_parameters,
     .output = propagation_output},
    {.name = 0},
};
