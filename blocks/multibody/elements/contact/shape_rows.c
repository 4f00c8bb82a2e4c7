/* Rows of rigid contacts of shapes: at each place a normal and two tangents.
 *
 *   normal    Φ = -g                        holds while the shapes touch, with N = λ ≥ 0
 *   tangents  Φ̇ = t_k · s,   s = v_a(P) - v_b(P)   hold while they stick, with T_k = λ_k, |T| ≤ μ N
 *
 * N n - T_1 t_1 - T_2 t_2 acts on body a at P, the opposite on body b. If the surfaces slide, T = μ N e is solved for along with N, where e is
 * the direction of the slip. While a step is taken, e is continued beyond the end of the slip as if in a mirror across it,
 * so that the step is smooth there and its end is found as an event.
 *
 * With the curvatures S of both bodies, the contact moves over them by w_a and w_b = w_a + s, and
 *     (S_a - S_b) w_a = S_b s - ω × n,   ω = ω_a - ω_b,   n' = ω_b × n + S_b w_b
 *     g'' = n · [a_a(P) - a_b(P) + ω_a × w_a - ω_b × w_b] + n' · s
 * and along the tangents the same without n'. */
#include <string.h>

#include "blocks/multibody/elements/contact/touch.h"

static const double NO_SPIN[3] = {0, 0, 0};
/* Of the larger curvature: below this bodies fit each other, and where the contact goes is open. */
static const double FITTING = 1e-9;

/* Sine of the angle between capsules that lie along each other. */
static const double ALONG = 1e-2;

static const int32_t *shape_record(const mb_view *m, int32_t row) { return m->rows + row * MB_ROW_FIELDS; }
static const int32_t *shape_force(const mb_view *m, int32_t row) {
    return m->forces + shape_record(m, row)[MB_ROW_A] * MB_FORCE_FIELDS;
}
/* 0 for the first of two tangents. */
static int shape_tangent(const mb_view *m, int32_t row) {
    return shape_record(m, row - 1)[MB_ROW_TYPE] == MB_ROW_NORMAL ? 0 : 1;
}

bool mb_shape_rows_check(const bl_block *b, int32_t first) {
    const int32_t *head = b->i, *rows = b->i + head[MB_AT_ROWS];
    int32_t row = first;
    for (int32_t number = 0; number < head[MB_FORCES]; number++) {
        const int32_t *force = b->i + head[MB_AT_FORCES] + number * MB_FORCE_FIELDS;
        if (!touch_is_rigid(force)) continue;
        const touch_pair *pair = touch_pair_of(force);
        for (int32_t k = 0; k < 3 * touch_places(force); k++, row++) {
            if (row >= head[MB_ROWS]) return false;
            const int32_t *at = rows + row * MB_ROW_FIELDS;
            if (at[MB_ROW_TYPE] != (k % 3 == 0 ? MB_ROW_NORMAL : MB_ROW_TANGENT) || at[MB_ROW_A] != number ||
                at[MB_ROW_B] != k / 3 || at[MB_ROW_I] != touch_second(force) || at[MB_ROW_J] != touch_first(force) ||
                at[MB_ROW_VALUE] != force[MB_FORCE_P] + pair->first + pair->second)
                return false;
        }
    }
    return row == head[MB_ROWS];
}

/* Two directions across n; in a plane the first lies in it. */
static void shape_tangents(const double *n, double t[2][3]) {
    const double axis[3] = {fabs(n[2]) < 0.75 ? 0.0 : 1.0, 0.0, fabs(n[2]) < 0.75 ? 1.0 : 0.0};
    double across[3];
    mb_cross(axis, n, across);
    touch_unit(across, t[0]);
    mb_cross(n, t[0], t[1]);
}

/* What tolerances are parts of: the clearance, or the smaller radius. */
static double shape_scale(const mb_view *m, const int32_t *force, const touch_scene *scene) {
    const touch_pair *pair = touch_pair_of(force);
    const double play = mb_touch_play(m, force);
    if (play > 0.0) return play;
    double least = pair->profiled ? scene->profile.r[0] : INFINITY;
    if (pair->first > 0) least = fmin(least, scene->shape[0].size[0]);
    if (pair->second > 0) least = fmin(least, scene->shape[1].size[0]);
    return least;
}

/* Places and axes of all contacts of an element. */
static void shape_see(const mb_view *m, const int32_t *force, double t) {
    touch_scene scene;
    touch_place places[TOUCH_MOST];
    double off[3];
    mb_touch_scene(m, force, t, &scene);
    mb_touch_places(force, &scene, places);
    mb_sub(scene.shape[0].P, scene.shape[1].P, off);
    const double scale = shape_scale(m, force, &scene), apart = scale + sqrt(mb_dot(off, off));
    for (int32_t k = 0; k < touch_places(force); k++) {
        mb_rigid *r = m->rigid + force[MB_FORCE_EXTRA] + k;
        r->absent = isinf(places[k].gap);
        r->gap = r->absent != 0.0 ? apart : places[k].gap;
        r->scale = scale;
        mb_copy(places[k].P, r->P);
        mb_copy(places[k].n, r->n);
        shape_tangents(r->n, r->tangent);
    }
}

void mb_shape_row_place(mb_view *m, int32_t row, double t, const double *P_i, const double *P_j) {
    const int32_t *record = shape_record(m, row), *force = shape_force(m, row);
    mb_row_state *s = &m->row_state[row];
    mb_rigid *r = mb_rigid_of(m, row);
    m->phi[row] = 0.0;
    if (record[MB_ROW_TYPE] == MB_ROW_NORMAL) {
        if (record[MB_ROW_B] == 0) shape_see(m, force, t);
        for (int k = 0; k < 3; k++) s->size = fmax(s->size, r->scale + fmax(fabs(P_i[k]), fabs(P_j[k])));
        mb_rigid_tolerances(r, s->size);
        if (mb_row_holds(m, row)) m->phi[row] = -r->gap;
        mb_axpy(-1.0, r->n, s->F);
    } else {
        mb_copy(r->tangent[shape_tangent(m, row)], s->F);
    }
    double arm[3];
    if (r->absent != 0.0) {
        memset(s->F, 0, sizeof s->F);
        return;
    }
    mb_sub(r->P, P_j, arm);
    mb_cross(arm, s->F, s->N_j);
    mb_sub(P_i, r->P, arm);
    mb_cross(arm, s->F, s->N_i);
}

/* S w. */
static void bend_times(const touch_bend *S, const double *w, double *out) {
    const double along = S->along * mb_dot(S->t, w);
    for (int k = 0; k < 3; k++) out[k] = S->all * w[k] + along * S->t[k];
}

static double bend_form(const touch_bend *S, const double *a, const double *b) {
    return S->all * mb_dot(a, b) + S->along * mb_dot(S->t, a) * mb_dot(S->t, b);
}

/* x of a x = b where `a` is not next to nothing beside `size`. */
static double unless_fitting(double a, double b, double size) { return fabs(a) > FITTING * size ? b / a : 0.0; }

/* w across n with (S_a - S_b) w = right; along directions in which the bodies fit each other it is left out. */
static void solve_travel(const touch_bend *S_a, const touch_bend *S_b, const double t[2][3], const double *right,
                         double *w) {
    const double xx = bend_form(S_a, t[0], t[0]) - bend_form(S_b, t[0], t[0]),
                 xy = bend_form(S_a, t[0], t[1]) - bend_form(S_b, t[0], t[1]),
                 yy = bend_form(S_a, t[1], t[1]) - bend_form(S_b, t[1], t[1]);
    const double x = mb_dot(t[0], right), y = mb_dot(t[1], right);
    /* In the axes of the matrix. */
    const double turn = 0.5 * atan2(2.0 * xy, xx - yy), c = cos(turn), s = sin(turn);
    const double first = c * c * xx + 2.0 * c * s * xy + s * s * yy, last = xx + yy - first;
    const double size = fabs(S_a->all) + fabs(S_a->along) + fabs(S_b->all) + fabs(S_b->along);
    const double u = unless_fitting(first, c * x + s * y, size), v = unless_fitting(last, c * y - s * x, size);
    for (int k = 0; k < 3; k++) w[k] = (c * u - s * v) * t[0][k] + (s * u + c * v) * t[1][k];
}

/* How the contact moves over both bodies, and the normal with it. */
static void shape_travel(const touch_bend *S_a, const touch_bend *S_b, const mb_rigid *r, const double *slip,
                         const double *w_a, const double *w_b, double *over_a, double *over_b, double *turning) {
    double relative[3], right[3], swept[3];
    const touch_bend *edge = S_a->edge ? S_a : S_b->edge ? S_b : NULL;
    mb_sub(w_a, w_b, relative);
    mb_cross(relative, r->n, swept);
    bend_times(edge == S_b ? S_a : S_b, slip, right);
    mb_axpy(-1.0, swept, right);
    if (!edge) {
        solve_travel(S_a, S_b, r->tangent, right, over_a);
    } else {
        const double less = bend_form(S_a, edge->t, edge->t) - bend_form(S_b, edge->t, edge->t);
        const double w = unless_fitting(less, mb_dot(edge->t, right), fabs(S_a->all) + fabs(S_a->along));
        for (int k = 0; k < 3; k++) over_a[k] = w * edge->t[k] - (edge == S_b ? slip[k] : 0.0);
    }
    for (int k = 0; k < 3; k++) over_b[k] = over_a[k] + slip[k];
    /* By the body that is smooth there. */
    const bool by_a = edge == S_b && edge != NULL;
    bend_times(by_a ? S_a : S_b, by_a ? over_a : over_b, turning);
    mb_add_cross(by_a ? w_a : w_b, r->n, turning);
}

/* Acceleration of the material at P, without the contribution of joint accelerations. */
static void shape_acceleration(const mb_view *m, int32_t marker, const double *at, const double *A, const double *P,
                               double *found) {
    const int32_t link = mb_link_of(m, marker);
    double arm[3], swept[3];
    mb_copy(A, found);
    if (link < 0) return;
    mb_sub(P, at, arm);
    mb_cross(m->link[link].w, arm, swept);
    mb_add_cross(m->link[link].w, swept, found);
    mb_add_cross(m->link[link].wd, arm, found);
}

/* The part of the slip along `aim`, and the direction against which friction acts. */
static void shape_push(mb_rigid *r) {
    double x = mb_dot(r->aim, r->tangent[0]), y = mb_dot(r->aim, r->tangent[1]);
    const double length = hypot(x, y);
    if (length > 0.0) x /= length, y /= length;
    else x = 1.0, y = 0.0;
    const double along = x * r->slips[0] + y * r->slips[1], across = x * r->slips[1] - y * r->slips[0];
    r->slip = along;
    r->push[0] = x, r->push[1] = y;
    if (r->speed <= r->speed_rounding) return;
    r->push[0] = (fabs(along) * x - across * y) / r->speed;
    r->push[1] = (fabs(along) * y + across * x) / r->speed;
}

void mb_shape_aim(mb_rigid *r) {
    if (r->speed > r->speed_rounding)
        for (int k = 0; k < 3; k++)
            r->aim[k] = (r->slips[0] * r->tangent[0][k] + r->slips[1] * r->tangent[1][k]) / r->speed;
    r->aimed = 1.0;
    shape_push(r);
}

bool mb_shape_jumped(const mb_view *m, int32_t row) {
    const mb_rigid *r = mb_rigid_of(m, row);
    const int32_t *force = shape_force(m, row);
    double gone[3], R[9], first[3], second[3], across[3];
    if (touch_pair_number(force) != TOUCH_CAPSULES) return false;
    mb_marker_axes(m, touch_first(force), R);
    mb_column(R, 2, first);
    mb_marker_axes(m, touch_second(force), R);
    mb_column(R, 2, second);
    mb_cross(first, second, across);
    mb_sub(r->P, r->began_at, gone);
    return mb_dot(across, across) < ALONG * ALONG && mb_dot(gone, gone) > r->scale * r->scale;
}

double mb_shape_aim_angle(const mb_rigid *r) {
    return r->aimed == 1.0 ? atan2(mb_dot(r->aim, r->tangent[1]), mb_dot(r->aim, r->tangent[0]))
                           : atan2(r->aim[1], r->aim[0]);
}

/* The rates of all rows of a place, from the velocities of both bodies. */
static void shape_rates(mb_view *m, const int32_t *force, int32_t place, double t, mb_rigid *r) {
    touch_scene scene;
    touch_bend S_a, S_b;
    const int32_t first = touch_first(force), second = touch_second(force), link_a = mb_link_of(m, first),
                  link_b = mb_link_of(m, second);
    const double *w_a = link_a < 0 ? NO_SPIN : m->link[link_a].w, *w_b = link_b < 0 ? NO_SPIN : m->link[link_b].w;
    double v_a[3], v_b[3], slip[3], A_a[3], A_b[3], over_a[3], over_b[3], turning[3];
    mb_touch_scene(m, force, t, &scene);
    mb_touch_velocity(m, first, &scene.shape[0], scene.V[0], r->P, v_a);
    mb_touch_velocity(m, second, &scene.shape[1], scene.V[1], r->P, v_b);
    mb_sub(v_a, v_b, slip);
    r->closing = -mb_dot(r->n, slip);
    mb_axpy(r->closing, r->n, slip);
    for (int k = 0; k < 2; k++) r->slips[k] = mb_dot(r->tangent[k], slip);
    r->speed = hypot(r->slips[0], r->slips[1]);
    const touch_place at = {.P = {r->P[0], r->P[1], r->P[2]}, .n = {r->n[0], r->n[1], r->n[2]}};
    mb_touch_bends(force, &scene, &at, place, &S_a, &S_b);
    shape_travel(&S_a, &S_b, r, slip, w_a, w_b, over_a, over_b, turning);
    shape_acceleration(m, first, scene.shape[0].P, scene.A[0], r->P, A_a);
    shape_acceleration(m, second, scene.shape[1].P, scene.A[1], r->P, A_b);
    mb_add_cross(w_a, over_a, A_a);
    mb_add_cross(w_b, over_b, A_b);
    mb_axpy(-1.0, A_b, A_a);
    r->bias = -mb_dot(r->n, A_a) - mb_dot(turning, slip);
    for (int k = 0; k < 2; k++) r->slip_biases[k] = mb_dot(r->tangent[k], A_a);
    mb_rigid_round_speeds(r, sqrt(mb_dot(v_a, v_a)) + sqrt(mb_dot(v_b, v_b)) + sqrt(mb_dot(scene.V[0], scene.V[0])) +
                                 sqrt(mb_dot(scene.V[1], scene.V[1])));
    if (r->aimed < 0.0) { /* as it was saved */
        const double x = r->aim[0], y = r->aim[1];
        for (int k = 0; k < 3; k++) r->aim[k] = x * r->tangent[0][k] + y * r->tangent[1][k];
    }
    if (r->aimed == 1.0) shape_push(r);
    else mb_shape_aim(r);
}

void mb_shape_row_rate(mb_view *m, int32_t row, double t) {
    const int32_t *record = shape_record(m, row);
    const bool holds = mb_row_holds(m, row);
    mb_rigid *r = mb_rigid_of(m, row);
    m->phi_rate[row] = m->bias[row] = 0.0;
    if (record[MB_ROW_TYPE] == MB_ROW_NORMAL) {
        if (r->absent != 0.0) {
            r->closing = r->bias = r->speed = r->slip = r->slips[0] = r->slips[1] = 0.0;
            return;
        }
        shape_rates(m, shape_force(m, row), record[MB_ROW_B], t, r);
        if (holds) m->phi_rate[row] = r->closing, m->bias[row] = r->bias;
    } else if (holds) {
        const int k = shape_tangent(m, row);
        m->phi_rate[row] = r->slips[k];
        m->bias[row] = r->slip_biases[k];
    }
}
