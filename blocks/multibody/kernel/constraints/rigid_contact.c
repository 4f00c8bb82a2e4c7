/* Rigid contacts: unilateral constraint rows. Of a pin in a hole two:
 *
 *   touch   Φ = |c| - e                                     holds while the surfaces touch, with N = λ ≥ 0
 *   slip    Φ̇ = t·ċ + R_pin ω_pin - R_hole ω_hole           holds while they stick, with T = λ, |T| ≤ μ N
 *
 * c is the pin's center less the hole's, n = c / |c|, t = z × n; -N n - T t acts on the pin. If the surfaces slide, T = ±μ N
 * is solved for along with N. Sticking is a separate constraint: the stiffness of friction
 * regularized over slow slip grows with μ N, and N is unbounded in a rigid contact. Contacts of shapes, in space, have three rows for each place:
 * elements/contact/shape_rows.c. They slide in any direction, so that their mode has no sign.
 *
 * The pattern of K is fixed, so a row that does not hold stays in it with the weight 0, and with Φ = Φ̇ = c = 0 it enters nothing that
 * loops over rows. Which rows hold is the mode of a contact. Modes lie in the memory of the block; each operation works on a copy. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

/* Tolerance of closed gaps, relative to the clearance and to the positions whose difference they are. */
static const double TOUCHING = 1e-10, TOUCHING_ROUNDING = 1e-14;
/* Tolerance for locating an impact. */
static const double LOCATED = 1e-13, LOCATED_ROUNDING = 1e-15;
/* An initial penetration below this fraction of the clearance is moved to the surface. */
static const double START_TOLERANCE = 1e-6;
/* Rounding errors of speeds, accelerations and forces, relative to the terms that they are sums of. */
static const double SPEED_ROUNDING = 1e-11, RATE_ROUNDING = 1e-10, FORCE_ROUNDING = 1e-10;
/* A rebound shorter than this fraction of a step is suppressed, which ends chattering. */
static const double SHORTEST_FLIGHT = 0.1;
/* Slip in space that turned around is over where it would take less than this part of a step. */
static const double SHORTEST_SLIDE = 1e-3;
/* Places of the same shapes of which one is hit, and the others would be within this part of a step, are hit together. */
static const double AT_ONCE = 1e-6;
/* In space, slip begins along its acceleration, which friction changes: to this accuracy, with so many corrections. */
static const double AIMED = 1e-9;
enum { AIM_LIMIT = 40 };
/* In space, friction is shared anew so often among places that stick, and none has a smaller part of the largest weight. */
enum { SHARE_LIMIT = 12 };
static const double LEAST_SHARE = 1e-3;
/* In space, a contact that closes and opens so often in one balance must be pressed by so many times the rounding errors to close again. */
static const double CLOSING_TRIES = 4.0, UNDECIDED = 1e4;

static const int32_t *rigid_record(const mb_view *m, int32_t row) { return m->rows + row * MB_ROW_FIELDS; }
static const int32_t *rigid_force(const mb_view *m, int32_t row) {
    return m->forces + rigid_record(m, row)[MB_ROW_A] * MB_FORCE_FIELDS;
}

bool mb_rigid_deep(const mb_view *m, int32_t row) { return rigid_record(m, row)[MB_ROW_TYPE] >= MB_ROW_NORMAL; }

static int32_t rigid_number(const mb_view *m, int32_t row) {
    return rigid_force(m, row)[MB_FORCE_EXTRA] + (mb_rigid_deep(m, row) ? rigid_record(m, row)[MB_ROW_B] : 0);
}

mb_rigid *mb_rigid_of(const mb_view *m, int32_t row) { return m->rigid + rigid_number(m, row); }

static double *rigid_memory(const mb_view *m, int32_t row) {
    return m->contacts + rigid_number(m, row) * MB_CONTACT_MEMORY;
}

int32_t mb_rigid_rows(const mb_view *m) { return 3 * m->rigid_count - m->rigid_flat; }

int32_t mb_rigid_row(const mb_view *m, int32_t number) {
    const int32_t first = m->row_count - mb_rigid_rows(m);
    return first + 2 * number + (number > m->rigid_flat ? number - m->rigid_flat : 0);
}

void mb_rigid_open(mb_view *m) {
    int32_t rows = m->row_count, deep = 0, flat = 0;
    for (; rows >= 3 && m->rows[(rows - 1) * MB_ROW_FIELDS + MB_ROW_TYPE] == MB_ROW_TANGENT; rows -= 3) deep++;
    for (; rows >= 2 && m->rows[(rows - 1) * MB_ROW_FIELDS + MB_ROW_TYPE] == MB_ROW_SLIP; rows -= 2) flat++;
    m->rigid_count = deep + flat;
    m->rigid_flat = flat;
}

const double *mb_rigid_law(const mb_view *m, int32_t row) {
    return m->p + rigid_record(m, row)[MB_ROW_VALUE] + (mb_rigid_deep(m, row) ? 0 : MB_PLAY_FRICTION);
}

static double rigid_friction(const mb_view *m, int32_t row) {
    return mb_rigid_of(m, row)->slippery != 0.0 ? 0.0 : mb_rigid_law(m, row)[MB_RIGID_FRICTION];
}

bool mb_rigid_check(const bl_block *b) {
    const int32_t *head = b->i, *rows = b->i + head[MB_AT_ROWS], *forces = b->i + head[MB_AT_FORCES];
    int32_t first = 0, last_force = -1, rigid = 0, held = 0, shapes = 0;
    for (int32_t k = 0; k < head[MB_FORCES]; k++) {
        const int32_t *force = forces + k * MB_FORCE_FIELDS;
        rigid += force[MB_FORCE_TYPE] == MB_CONTACT && force[MB_FORCE_LAW] == MB_CONTACT_RIGID;
        shapes += force[MB_FORCE_TYPE] == MB_TOUCH_RIGID;
        held += force[MB_FORCE_TYPE] == MB_BEARING && mb_bearing_row(force) >= 0;
    }
    while (first < head[MB_ROWS] && rows[first * MB_ROW_FIELDS + MB_ROW_TYPE] < MB_ROW_TOUCH) first++;
    const int32_t end = first + 2 * rigid;
    if (end > head[MB_ROWS] || !mb_shape_rows_check(b, end)) return false;
    if ((rigid > 0 && !head[MB_PLANAR]) ||
        (rigid + shapes > 0 &&
         (!head[MB_INTERNAL] || head[MB_INTEGRATOR] != MB_RK4 || head[MB_JOINT_FRICTIONS] > 0 || held > 0)))
        return false;
    for (int32_t k = first; k < end; k++) { /* pairs, in the order of the forces */
        const int32_t *row = rows + k * MB_ROW_FIELDS, number = row[MB_ROW_A];
        const bool slip = (k - first) % 2 == 1;
        if (row[MB_ROW_TYPE] != (slip ? MB_ROW_SLIP : MB_ROW_TOUCH) || number < 0 || number >= head[MB_FORCES])
            return false;
        if (slip ? number != last_force : number <= last_force) return false;
        last_force = number;
        const int32_t *force = forces + number * MB_FORCE_FIELDS;
        if (force[MB_FORCE_TYPE] != MB_CONTACT || force[MB_FORCE_LAW] != MB_CONTACT_RIGID ||
            row[MB_ROW_I] != force[MB_FORCE_J] || row[MB_ROW_J] != force[MB_FORCE_I] ||
            row[MB_ROW_VALUE] != force[MB_FORCE_P])
            return false;
    }
    for (int32_t c = 0; c < head[MB_CUTS]; c++) {
        const int32_t *cut = b->i + head[MB_AT_CUTS] + c * MB_CUT_FIELDS;
        const int32_t wanted = cut[MB_CUT_ROW] >= end ? 3 : 2;
        if (cut[MB_CUT_ROW] >= first ? cut[MB_CUT_ROWS] != wanted : cut[MB_CUT_ROW] + cut[MB_CUT_ROWS] > first)
            return false;
    }
    return true;
}

/* A saved state may contain invalid values. */
void mb_rigid_load(mb_view *m) {
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n);
        const double mode = rigid_memory(m, row)[MB_CONTACT_MODE], aim = rigid_memory(m, row)[MB_CONTACT_AIM];
        const bool deep = mb_rigid_deep(m, row);
        mb_rigid *r = mb_rigid_of(m, row);
        memset(r, 0, sizeof *r);
        r->weight = 1.0;
        r->mode = mode == MB_SLIDES || (mode == MB_SLIDES_BACK && !deep) || mode == MB_STICKS ? mode : MB_FLIES;
        if (!deep) continue;
        r->aim[0] = isfinite(aim) ? cos(aim) : 1.0;
        r->aim[1] = isfinite(aim) ? sin(aim) : 0.0;
        r->aimed = -1.0;
    }
}

void mb_rigid_store(mb_view *m) {
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n);
        rigid_memory(m, row)[MB_CONTACT_MODE] = mb_rigid_of(m, row)->mode;
        if (mb_rigid_deep(m, row)) rigid_memory(m, row)[MB_CONTACT_AIM] = mb_shape_aim_angle(mb_rigid_of(m, row));
    }
}

bool mb_row_holds(const mb_view *m, int32_t row) {
    switch (rigid_record(m, row)[MB_ROW_TYPE]) {
        case MB_ROW_TOUCH: return mb_rigid_of(m, row)->mode != MB_FLIES;
        case MB_ROW_SLIP: return mb_rigid_of(m, row)->mode == MB_STICKS;
        case MB_ROW_NORMAL: return mb_rigid_of(m, row)->mode != MB_FLIES && mb_rigid_of(m, row)->absent == 0.0;
        case MB_ROW_TANGENT: return mb_rigid_of(m, row)->mode == MB_STICKS && mb_rigid_of(m, row)->absent == 0.0;
        case MB_ROW_ROLL: return !(m->places_only && mb_binds_rates(rigid_record(m, row)));
        default: return true;
    }
}

/* -- the rows */

void mb_rigid_tolerances(mb_rigid *r, double size) {
    r->tolerance = fmax(TOUCHING * r->scale, TOUCHING_ROUNDING * size);
    r->located = fmax(LOCATED * r->scale, LOCATED_ROUNDING * size);
}

void mb_rigid_round_speeds(mb_rigid *r, double fastest) {
    r->speed_rounding = SPEED_ROUNDING * fastest + r->speed_floor;
}

void mb_rigid_place(mb_view *m, int32_t row, const double *d) {
    const double *p = m->p + rigid_record(m, row)[MB_ROW_VALUE], distance = sqrt(mb_dot(d, d));
    const double inverse = distance > 0.0 ? 1.0 / distance : 0.0;
    mb_row_state *s = &m->row_state[row];
    mb_rigid *r = mb_rigid_of(m, row);
    if (rigid_record(m, row)[MB_ROW_TYPE] == MB_ROW_TOUCH) {
        r->gap = p[MB_PLAY_CLEARANCE] - distance;
        r->scale = p[MB_PLAY_CLEARANCE];
        mb_rigid_tolerances(r, s->size);
        m->phi[row] = mb_row_holds(m, row) ? -r->gap : 0.0;
        mb_axpy(inverse, d, s->F);
    } else {
        m->phi[row] = 0.0;
        s->F[0] = -d[1] * inverse;
        s->F[1] = d[0] * inverse;
        s->N_j[2] = p[MB_PLAY_PIN_RADIUS];
        s->N_i[2] = -(p[MB_PLAY_PIN_RADIUS] + p[MB_PLAY_CLEARANCE]);
    }
}

/* From the velocity dd of the pin less that of the hole, and their accelerations ddd without the contribution of joint accelerations. */
void mb_rigid_rate(mb_view *m, int32_t row, const double *d, const double *dd, const double *ddd) {
    const int32_t *record = rigid_record(m, row);
    const bool holds = mb_row_holds(m, row);
    const mb_row_state *s = &m->row_state[row];
    const double length = sqrt(mb_dot(d, d)), inverse = length > 0.0 ? 1.0 / length : 0.0;
    mb_rigid *r = mb_rigid_of(m, row);
    if (record[MB_ROW_TYPE] == MB_ROW_TOUCH) {
        r->closing = mb_dot(s->F, dd);
        r->bias = mb_dot(s->F, ddd) + (mb_dot(dd, dd) - r->closing * r->closing) * inverse;
        m->phi_rate[row] = holds ? r->closing : 0.0;
        m->bias[row] = holds ? r->bias : 0.0;
        return;
    }
    const int32_t hole = mb_link_of(m, record[MB_ROW_I]), pin = mb_link_of(m, record[MB_ROW_J]);
    const double across = mb_dot(s->F, dd), along = mb_dot(m->row_state[row - 1].F, dd);
    double bias = mb_dot(s->F, ddd) - across * along * inverse, fastest = sqrt(mb_dot(dd, dd));
    r->slip = across;
    if (pin >= 0) {
        r->slip += s->N_j[2] * m->link[pin].w[2];
        bias += s->N_j[2] * m->link[pin].wd[2];
        fastest += fabs(s->N_j[2] * m->link[pin].w[2]) + sqrt(mb_dot(m->link[pin].v, m->link[pin].v));
    }
    if (hole >= 0) {
        r->slip += s->N_i[2] * m->link[hole].w[2];
        bias += s->N_i[2] * m->link[hole].wd[2];
        fastest += fabs(s->N_i[2] * m->link[hole].w[2]) + sqrt(mb_dot(m->link[hole].v, m->link[hole].v));
    }
    mb_rigid_round_speeds(r, fastest);
    r->speed = fabs(r->slip);
    m->phi_rate[row] = holds ? r->slip : 0.0;
    r->slip_bias = bias;
    m->bias[row] = holds ? bias : 0.0;
}

/* The change of velocities by impulses along `count` rows, or of accelerations by forces; m->lambda holds the response of the other rows. */
void mb_rigid_respond(mb_view *m, int32_t row, int32_t count, const double *sizes, double *change) {
    memset(m->force, 0, (size_t)m->nv * sizeof(double));
    memset(m->row_work, 0, (size_t)m->row_count * sizeof(double));
    memcpy(m->row_work + row, sizes, (size_t)count * sizeof(double));
    mb_add_jacobian_transposed(m, m->row_work, 1.0, m->force);
    memset(m->bias, 0, (size_t)m->row_count * sizeof(double));
    (void)mb_solve_rows(m, 0.0);
    memcpy(change, m->acceleration, (size_t)m->nv * sizeof(double));
}

bool mb_has_sliding_friction(const mb_view *m, int32_t row) {
    const double mode = mb_rigid_of(m, row)->mode;
    return (mode == MB_SLIDES || mode == MB_SLIDES_BACK) && rigid_friction(m, row) > 0.0;
}

/* Upper bound of the mobility along the row, without constraints. */
static double rigid_mobility(const mb_view *m, int32_t row) {
    for (int32_t c = m->cut_count - 1; c >= 0; c--) {
        const int32_t *cut = m->cuts + c * MB_CUT_FIELDS;
        if (row < cut[MB_CUT_ROW]) continue;
        const double *block = m->jacobian + cut[MB_CUT_J] + (row - cut[MB_CUT_ROW]) * cut[MB_CUT_PATHS];
        double sum = 0.0;
        for (int32_t n = 0; n < cut[MB_CUT_PATHS]; n++) {
            const double mass =
                m->mass_diagonal[m->permutation[m->paths[(cut[MB_CUT_PATH] + n) * MB_PATH_FIELDS + MB_PATH_V]]];
            if (mass > 0.0) sum += block[n] * block[n] / mass;
        }
        return sum;
    }
    return 0.0;
}

/* Stores forces and accelerations of the contacts. */
void mb_rigid_note(mb_view *m) {
    if (m->rigid_count == 0) return;
    const double *rows = m->row_work;
    mb_jacobian_times(m, m->acceleration, m->row_work);
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n);
        mb_rigid *r = mb_rigid_of(m, row);
        r->outwards = rows[row] + r->bias;
        r->N = m->lambda[row];
        r->rate_rounding = RATE_ROUNDING * (fabs(rows[row]) + fabs(r->bias) + fabs(r->N) * rigid_mobility(m, row));
        r->speed_floor = m->whole * r->rate_rounding; /* its effect over a step, for surfaces at rest */
        if (!mb_rigid_deep(m, row)) {
            r->slipping = rows[row + 1] + r->slip_bias;
            r->T = m->lambda[row + 1];
        } else {
            for (int k = 0; k < 2; k++) {
                r->slippings[k] = rows[row + 1 + k] + r->slip_biases[k];
                r->friction[k] = m->lambda[row + 1 + k];
            }
            r->slipping = r->push[0] * r->slippings[0] + r->push[1] * r->slippings[1];
            r->T = hypot(r->friction[0], r->friction[1]);
        }
        r->spare = rigid_friction(m, row) * r->N - fabs(r->T);
    }
}

/* Solves (1 - G) x = x for the normal forces of `count` contacts. Returns 0 where friction makes them grow without bound. */
static int solve_joint_friction(double *G, double *x, int32_t count) {
    for (int32_t k = 0; k < count; k++)
        for (int32_t j = 0; j < count; j++) G[k * count + j] = (k == j) - G[k * count + j];
    for (int32_t k = 0; k < count; k++) {
        if (!(G[k * count + k] > 1e-6)) return 0;
        for (int32_t r = k + 1; r < count; r++) {
            const double part = G[r * count + k] / G[k * count + k];
            for (int32_t j = k; j < count; j++) G[r * count + j] -= part * G[k * count + j];
            x[r] -= part * x[k];
        }
    }
    for (int32_t k = count - 1; k >= 0; k--) {
        for (int32_t j = k + 1; j < count; j++) x[k] -= G[k * count + j] * x[j];
        x[k] /= G[k * count + k];
    }
    return 1;
}

/* Adds the friction of what slides to accelerations and multipliers without it: all answer linearly to T = ±μ N, with the same factors, so
   the normal forces follow from as many equations as contacts slide. Returns 0 if these have no solution (Painlevé). */
int mb_solve_contact_friction(mb_view *m) {
    const int32_t nv = m->nv, rows = m->row_count, size = nv + rows;
    double *base = m->contact_friction, *G = base + (1 + m->rigid_count) * size,
           *N = G + m->rigid_count * m->rigid_count;
    int32_t count = 0;
    memcpy(base, m->acceleration, (size_t)nv * sizeof(double));
    memcpy(base + nv, m->lambda, (size_t)rows * sizeof(double));
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n);
        if (!mb_has_sliding_friction(m, row)) continue;
        double *answer = base + ++count * size;
        const mb_rigid *r = mb_rigid_of(m, row);
        const double most = rigid_friction(m, row), flat = -r->mode * most,
                     deep[2] = {-most * r->push[0], -most * r->push[1]};
        if (mb_rigid_deep(m, row)) mb_rigid_respond(m, row + 1, 2, deep, answer);
        else mb_rigid_respond(m, row + 1, 1, &flat, answer);
        memcpy(answer + nv, m->lambda, (size_t)rows * sizeof(double));
    }
    for (int32_t n = 0, k = 0; n < m->rigid_count && count > 0; n++) {
        const int32_t row = mb_rigid_row(m, n);
        if (!mb_has_sliding_friction(m, row)) continue;
        N[k] = base[nv + row];
        for (int32_t j = 0; j < count; j++) G[k * count + j] = base[(1 + j) * size + nv + row];
        if (k == 0) m->jammed_contact = rigid_record(m, row)[MB_ROW_A];
        k++;
    }
    if (!solve_joint_friction(G, N, count)) return 0;
    m->jammed_contact = -1;
    for (int32_t j = 0; j < count; j++)
        for (int32_t k = 0; k < size; k++) base[k] += N[j] * base[(1 + j) * size + k];
    memcpy(m->acceleration, base, (size_t)nv * sizeof(double));
    memcpy(m->lambda, base + nv, (size_t)rows * sizeof(double));
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n);
        const mb_rigid *r = mb_rigid_of(m, row);
        if (!mb_has_sliding_friction(m, row)) continue;
        if (!mb_rigid_deep(m, row)) m->lambda[row + 1] = r->mode * rigid_friction(m, row) * m->lambda[row];
        else
            for (int k = 0; k < 2; k++) m->lambda[row + 1 + k] = rigid_friction(m, row) * m->lambda[row] * r->push[k];
    }
    return 1;
}

/* -- which contacts hold */

double mb_rigid_rounding(const mb_view *m) {
    double most = 0.0;
    for (int32_t k = 0; k < m->row_count; k++) most = fmax(most, fabs(m->lambda[k]));
    return FORCE_ROUNDING * most;
}

/* Slip mode of surfaces that have come into contact. */
static double rigid_slide(const mb_view *m, int32_t row) {
    mb_rigid *r = mb_rigid_of(m, row);
    if (rigid_friction(m, row) > 0.0 && r->speed <= r->speed_rounding) return MB_STICKS; /* at first */
    if (mb_rigid_deep(m, row)) {
        mb_shape_aim(r);
        return MB_SLIDES;
    }
    return r->slip < 0.0 ? MB_SLIDES_BACK : MB_SLIDES;
}

static bool rigid_rests(const mb_rigid *r) { return r->gap <= r->tolerance && fabs(r->closing) <= r->speed_rounding; }

static bool rigid_still(const mb_rigid *r) { return r->speed <= r->speed_rounding; }

/* Turns the direction of slip that begins, given along the tangents. Returns by how much. */
static double rigid_turn(mb_rigid *r, double x, double y) {
    const double length = hypot(x, y), before[2] = {r->push[0], r->push[1]};
    if (!(length > 0.0)) return 0.0;
    for (int k = 0; k < 3; k++) r->aim[k] = (x * r->tangent[0][k] + y * r->tangent[1][k]) / length;
    mb_shape_aim(r);
    return hypot(r->push[0] - before[0], r->push[1] - before[1]);
}

/* Slip that begins goes where its acceleration goes, and friction against it: a step towards that, which converges for any inertia because the
   friction that is added is not less than what it does. Returns whether the direction has changed. */
static bool rigid_aim_begun(const mb_view *m, int32_t row) {
    mb_rigid *r = mb_rigid_of(m, row);
    const double most = rigid_friction(m, row) * r->N * fmax(rigid_mobility(m, row + 1), rigid_mobility(m, row + 2));
    if (r->turned >= AIM_LIMIT) return false;
    r->turned += 1.0;
    return rigid_turn(r, r->slippings[0] + most * r->push[0], r->slippings[1] + most * r->push[1]) > AIMED;
}

/* Returns the mode that fits the forces and accelerations of the present modes; the present mode if they are consistent. A contact
   that opens and would be pressed again tries the other contact modes, of which surfaces at rest with friction have three; in space slip
   tries two opposite directions. `turned`: a direction has changed. */
static double rigid_better(const mb_view *m, int32_t row, double rounding, bool *turned) {
    mb_rigid *r = mb_rigid_of(m, row);
    const bool choice = rigid_friction(m, row) > 0.0 && rigid_still(r), deep = mb_rigid_deep(m, row);
    if (deep && r->absent != 0.0) return MB_FLIES;
    if (deep && r->mode == MB_FLIES) {
        /* Where nothing else presses, N is zero but for what the iteration of accelerations leaves: then it parts. */
        const double least = r->rate_rounding * (r->tries < CLOSING_TRIES ? 1.0 : UNDECIDED);
        if (!rigid_rests(r) || !(r->outwards > least)) return MB_FLIES;
        r->tries += 1.0;
        if (choice && (r->tries == 2.0 || r->tries == 3.0)) {
            const double sign = r->tries == 2.0 ? 1.0 : -1.0;
            (void)rigid_turn(r, sign * r->slippings[0], sign * r->slippings[1]);
            return MB_SLIDES;
        }
        return rigid_slide(m, row);
    }
    if (r->mode == MB_FLIES) {
        if (!rigid_rests(r) || !(r->outwards > r->rate_rounding)) return MB_FLIES;
        r->tries += 1.0;
        return r->tries == 2.0 && choice ? MB_SLIDES : r->tries == 3.0 && choice ? MB_SLIDES_BACK : rigid_slide(m, row);
    }
    if (rigid_friction(m, row) > 0.0 && !rigid_still(r) && (r->mode == MB_STICKS || r->mode * r->slip < 0.0))
        return rigid_slide(m, row);
    if (r->mode == MB_STICKS && deep) {
        if (r->N >= -rounding && r->spare >= -rounding) return MB_STICKS;
        (void)rigid_turn(r, r->friction[0], r->friction[1]);
        return MB_SLIDES;
    }
    if (r->mode == MB_STICKS)
        return r->N < -rounding || r->spare < -rounding ? (r->T < 0.0 ? MB_SLIDES_BACK : MB_SLIDES) : MB_STICKS;
    if (r->N < -rounding) return MB_FLIES;
    if (choice && deep && r->held == 0.0 && hypot(r->slippings[0], r->slippings[1]) <= r->rate_rounding) {
        r->held = 1.0; /* others hold it: it shares what they hold, once in a balance */
        return MB_STICKS;
    }
    if (choice && deep && !(r->tries < 2.0 && r->slipping < -r->rate_rounding)) {
        *turned = rigid_aim_begun(m, row);
        return MB_SLIDES;
    }
    return choice && r->tries < 2.0 && r->mode * r->slipping < -r->rate_rounding ? MB_STICKS : r->mode;
}

static bool rigid_sticks(const mb_view *m, int32_t row) {
    const mb_rigid *r = mb_rigid_of(m, row);
    return mb_rigid_deep(m, row) && r->mode == MB_STICKS && r->absent == 0.0;
}

/* Where bodies stick in several places, rigid bodies leave open how these share the friction, and equal parts may be too much for one
   that is hardly pressed. Weights their rows by what each can take. Returns whether that is needed, and still tried. */
static bool rigid_share(mb_view *m, double rounding, int *shares) {
    double most = 0.0;
    int32_t sticking = 0;
    bool beyond = false;
    for (int32_t n = m->rigid_flat; n < m->rigid_count && *shares < SHARE_LIMIT; n++) {
        const int32_t row = mb_rigid_row(m, n);
        const mb_rigid *r = mb_rigid_of(m, row);
        if (!rigid_sticks(m, row)) continue;
        if (r->N < -rounding) return false;
        sticking++;
        most = fmax(most, rigid_friction(m, row) * r->N);
        beyond = beyond || r->spare < -rounding;
    }
    if (!beyond || sticking < 2 || !(most > 0.0)) return false;
    for (int32_t n = m->rigid_flat; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n);
        mb_rigid *r = mb_rigid_of(m, row);
        if (rigid_sticks(m, row)) r->weight = fmax(rigid_friction(m, row) * r->N / most, LEAST_SHARE);
    }
    ++*shares;
    return true;
}

/* Changes the contact to the mode that fits, and returns whether that is another one. */
static bool rigid_improve(mb_view *m, int32_t row, double rounding) {
    bool turned = false;
    const double better = rigid_better(m, row, rounding, &turned);
    if (better == mb_rigid_of(m, row)->mode && !turned) return false;
    mb_rigid_of(m, row)->mode = better;
    return true;
}

/* Changes the first contact whose mode does not fit, and returns whether there was one. In space several may hold a body: what closes
   comes first, then what opens, then friction. */
static bool rigid_change(mb_view *m, int *shares) {
    const double rounding = mb_rigid_rounding(m);
    for (int32_t n = m->rigid_flat; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n);
        if (mb_rigid_of(m, row)->mode == MB_FLIES && rigid_improve(m, row, rounding)) return true;
    }
    for (int32_t n = m->rigid_flat; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n);
        if (mb_rigid_of(m, row)->N < -rounding && rigid_improve(m, row, rounding)) return true;
    }
    if (rigid_share(m, rounding, shares)) return true;
    for (int32_t n = 0; n < m->rigid_count; n++)
        if (rigid_improve(m, mb_rigid_row(m, n), rounding)) return true;
    return false;
}

void mb_rigid_leave_friction(mb_view *m) {
    for (int32_t n = 0; n < m->rigid_count; n++) {
        mb_rigid *r = mb_rigid_of(m, mb_rigid_row(m, n));
        r->slippery = 1.0;
        if (r->mode != MB_FLIES) r->mode = MB_SLIDES;
    }
    m->jammed_contact = -1;
}

/* Accelerations with contacts that only push, and stick within their cones. One contact is changed at a time, the first that does not fit:
   without friction that ends where rows are independent (Murty's least index). Coulomb's law may have no solution with bodies that are
   rigid: then, and where none is found soon, contacts are without friction at this time, which is counted. */
int mb_rigid_balance(mb_view *m, double t, const double *q, const double *v) {
    const int32_t enough = 8 * m->rigid_count + 8 + AIM_LIMIT * (m->rigid_count - m->rigid_flat);
    for (int32_t n = 0; n < m->rigid_count; n++) {
        mb_rigid *r = mb_rigid_of(m, mb_rigid_row(m, n));
        r->tries = r->turned = r->held = 0.0;
        r->weight = 1.0;
    }
    int shares = 0;
    for (int change = 0; change < 2 * enough; change++) {
        m->jammed_contact = -1;
        const bool solved = mb_accelerations(m, t, q, v);
        if (!solved && m->jammed_contact < 0) return 0;
        if (solved && (m->rigid_count == 0 || !rigid_change(m, &shares))) return 1;
        if (solved && change != enough) continue;
        mb_rigid_leave_friction(m);
        change = enough;
    }
    return mb_accelerations(m, t, q, v);
}

/* -- impacts */

/* As rigid_respond; stores the impulses through other contacts at index `which`. */
static void impulse_respond(mb_view *m, int32_t row, int which, double size, double *change) {
    mb_rigid_respond(m, row, 1, &size, change);
    for (int32_t n = 0; n < m->rigid_count; n++)
        mb_rigid_of(m, mb_rigid_row(m, n))->passed[which] = m->lambda[mb_rigid_row(m, n)];
}

static double row_times(mb_view *m, int32_t row, const double *x) {
    mb_jacobian_times(m, x, m->row_work);
    return m->row_work[row];
}

/* What goes through a contact by an impact of another. */
static double rigid_passed(const mb_rigid *r, double X, const double *Y) {
    return X * r->passed[0] + Y[0] * r->passed[1] + Y[1] * r->passed[2];
}

bool mb_rigid_release(mb_view *m, const int32_t *rows, int32_t count, double most) {
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n);
        mb_rigid *r = mb_rigid_of(m, row);
        bool hit = false;
        for (int32_t k = 0; k < count; k++) hit = hit || rows[k] == row;
        if (hit || r->touched == 0.0) continue;
        if (r->passed[0] < -FORCE_ROUNDING * most) r->mode = MB_FLIES;
        else if (r->mode == MB_FLIES && r->closing > r->speed_rounding) r->mode = MB_SLIDES;
        else continue;
        return true;
    }
    return false;
}

/* Impact at one contact: velocities after it in v. Other closed contacts act without friction and without rebound; those with a tensile
   impulse are released, and released ones that would penetrate are closed again. Returns the impulse of the contact, or a negative
   number if nothing can move. */
static double impact_with(mb_view *m, double t, const double *q, double *v, int32_t row) {
    const int64_t size = m->nq + m->nv;
    double *along = m->internal_state + size * 3, *across = along + size, *before = across + size,
           *aside = before + size, X = 0.0, Y[2] = {0.0, 0.0};
    const double *p = mb_rigid_law(m, row);
    const bool deep = mb_rigid_deep(m, row);
    memcpy(before, v, (size_t)m->nv * sizeof(double));
    for (int change = 0;; change++) {
        mb_kinematics(m, t, q, before);
        if (!mb_refactor(m)) return -1.0;
        const mb_rigid *r = mb_rigid_of(m, row);
        const double mobility = rigid_mobility(m, row);
        impulse_respond(m, row, 0, -1.0, along);
        impulse_respond(m, row + 1, 1, 1.0, across);
        if (deep) impulse_respond(m, row + 2, 2, 1.0, aside);
        const double plain = -row_times(m, row, along);
        if (!(plain > 1e-12 * mobility)) return -1.0;
        if (!deep) {
            const double A[3] = {plain, row_times(m, row + 1, along), row_times(m, row + 1, across)};
            mb_impact_in_plane(A, -r->closing, r->slip, p, &X, Y);
        } else {
            const double first = row_times(m, row + 1, along), last = row_times(m, row + 2, along),
                         both = row_times(m, row + 2, across);
            const double A[9] = {plain,
                                 first,
                                 last,
                                 first,
                                 row_times(m, row + 1, across),
                                 both,
                                 last,
                                 both,
                                 row_times(m, row + 2, aside)};
            mb_impact_in_space(A, -r->closing, r->slips, p, &X, Y);
        }
        for (int32_t k = 0; k < m->nv; k++) v[k] = before[k] + X * along[k] + Y[0] * across[k];
        for (int32_t k = 0; k < m->nv && deep; k++) v[k] += Y[1] * aside[k];
        mb_kinematics(m, t, q, v);
        const double rounding = FORCE_ROUNDING * X;
        bool fits = true;
        for (int32_t n = 0; n < m->rigid_count && fits && change < 8 * m->rigid_count; n++) {
            const int32_t other = mb_rigid_row(m, n);
            mb_rigid *o = mb_rigid_of(m, other);
            if (other == row || o->touched == 0.0) continue;
            const double passed = o->mode == MB_FLIES ? 0.0 : rigid_passed(o, X, Y);
            if (passed < -rounding) o->mode = MB_FLIES;
            else if (o->mode == MB_FLIES && o->closing > o->speed_rounding) o->mode = MB_SLIDES;
            else continue;
            fits = false;
        }
        if (fits) break;
    }
    for (int32_t n = 0; n < m->rigid_count; n++) {
        mb_rigid *o = mb_rigid_of(m, mb_rigid_row(m, n));
        o->passed[0] = mb_rigid_row(m, n) == row ? X : o->mode == MB_FLIES ? 0.0 : rigid_passed(o, X, Y);
    }
    return X;
}

/* During impacts contacts are either closed or open. */
static void rigid_before_impact(mb_view *m, double approach) {
    for (int32_t n = 0; n < m->rigid_count; n++) {
        mb_rigid *r = mb_rigid_of(m, mb_rigid_row(m, n));
        r->touched = r->mode != MB_FLIES;
        r->speed_floor = fmax(r->speed_floor, SPEED_ROUNDING * approach);
        if (r->touched != 0.0) r->mode = MB_SLIDES;
    }
}

static void rigid_after_impact(mb_view *m) {
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n);
        if (mb_rigid_of(m, row)->mode != MB_FLIES) mb_rigid_of(m, row)->mode = rigid_slide(m, row);
    }
}

/* Whether it meets its surface now. */
static bool rigid_meets(const mb_rigid *r) {
    return r->mode == MB_FLIES && r->gap <= r->tolerance && r->closing > r->speed_rounding;
}

/* The contacts of the same two shapes that are hit together with one of them, which is among them, or next to at once. Returns how many
   they are. */
static int32_t rigid_group(const mb_view *m, int32_t row, int32_t *rows) {
    int32_t count = 1;
    if (!mb_rigid_deep(m, row)) return 1;
    for (int32_t n = m->rigid_flat; n < m->rigid_count; n++) {
        const int32_t other = mb_rigid_row(m, n);
        if (rigid_record(m, other)[MB_ROW_A] != rigid_record(m, row)[MB_ROW_A]) continue;
        const mb_rigid *r = mb_rigid_of(m, other);
        if (other == row || r->mode != MB_FLIES || r->closing <= r->speed_rounding || count == MB_GROUP_MOST) continue;
        if (r->gap <= r->tolerance + AT_ONCE * m->whole * r->closing) rows[count++] = other;
    }
    return count;
}

/* Solves an impact and updates its statistics. */
static int rigid_impact(mb_view *m, double t, const double *q, double *v, int32_t row) {
    mb_rigid *hit = mb_rigid_of(m, row);
    const double approach = hit->closing;
    int32_t rows[MB_GROUP_MOST] = {row}, count = rigid_group(m, row, rows);
    rigid_before_impact(m, approach);
    m->jammed_contact = rigid_record(m, row)[MB_ROW_A];
    if (count > 1 && !mb_impact_group(m, t, q, v, rows, count)) {
        mb_kinematics(m, t, q, v);
        for (int32_t n = 0; n < m->rigid_count; n++) {
            mb_rigid *r = mb_rigid_of(m, mb_rigid_row(m, n));
            if (r->touched != 0.0) r->mode = MB_SLIDES;
        }
        count = 1;
    }
    if (count == 1 && impact_with(m, t, q, v, row) < 0.0) return 0;
    m->jammed_contact = -1;
    for (int32_t k = 0; k < count; k++) {
        mb_rigid *r = mb_rigid_of(m, rows[k]);
        if (fabs(r->closing) <= RATE_ROUNDING * approach) r->mode = MB_SLIDES; /* without rebound */
    }
    rigid_after_impact(m);
    for (int32_t k = 0; k < count; k++) {
        mb_rigid_of(m, rows[k])->hits += 1.0;
        rigid_memory(m, rows[k])[MB_CONTACT_IMPACTS] += 1.0;
    }
    for (int32_t n = 0; n < m->rigid_count; n++)
        rigid_memory(m, mb_rigid_row(m, n))[MB_CONTACT_IMPULSE] += mb_rigid_of(m, mb_rigid_row(m, n))->passed[0];
    return 1;
}

/* The contact that meets its surface next, or -1. */
static int32_t rigid_next_hit(const mb_view *m) {
    int32_t found = -1;
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n);
        const mb_rigid *r = mb_rigid_of(m, row);
        if (!rigid_meets(r)) continue;
        if (found < 0 || r->gap < mb_rigid_of(m, found)->gap) found = row;
    }
    return found;
}

/* Solves all impacts one at a time. A long sequence of rebounds is ended by one simultaneous plastic impact. */
static int rigid_impacts(mb_view *m, double t, double *q, double *v) {
    for (int32_t hits = 0; hits < 20 * m->rigid_count; hits++) {
        mb_kinematics(m, t, q, v);
        const int32_t row = rigid_next_hit(m);
        if (row < 0) return 1;
        if (!rigid_impact(m, t, q, v, row)) return 0;
    }
    /* Stopping one may push another into its wall: each round holds one more at least. */
    for (int32_t round = 0; round < m->rigid_count; round++) {
        mb_kinematics(m, t, q, v);
        if (rigid_next_hit(m) < 0) return 1;
        for (int32_t row = rigid_next_hit(m); row >= 0; row = rigid_next_hit(m))
            mb_rigid_of(m, row)->mode = rigid_slide(m, row);
        if (!mb_project(m, t, q, v, MB_STEP_LIMIT)) return 0;
    }
    return 1;
}

/* How much slip its acceleration takes away in a small part of a step. */
static double shortest_slide(const mb_view *m, const mb_rigid *r) {
    return SHORTEST_SLIDE * m->whole * hypot(r->slippings[0], r->slippings[1]);
}

/* Slip that came to an end may stick; impacts may have turned it around. */
static bool rigid_end_slip(mb_view *m) {
    bool any = false;
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n);
        mb_rigid *r = mb_rigid_of(m, row);
        const bool stopped = r->stopped != 0.0;
        r->stopped = 0.0;
        if (stopped && mb_rigid_deep(m, row) && r->speed > fmax(r->speed_rounding, shortest_slide(m, r))) {
            r->mode = rigid_slide(m, row); /* it has turned, and goes on */
            continue;
        }
        if (!mb_has_sliding_friction(m, row) || (!stopped && r->mode * r->slip >= -r->speed_rounding)) continue;
        r->mode = stopped ? MB_STICKS : rigid_slide(m, row);
        any = any || stopped;
    }
    return any;
}

/* Closes contacts that separate so slowly that they would close again immediately. Returns whether there are any; each is closed
   only once. */
static bool rigid_end_chatter(mb_view *m) {
    bool any = false;
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n);
        mb_rigid *r = mb_rigid_of(m, row);
        if (r->mode != MB_FLIES || r->touched != 0.0 || r->gap > r->tolerance || !(r->outwards > r->rate_rounding))
            continue;
        if (-2.0 * r->closing > SHORTEST_FLIGHT * m->whole * r->outwards) continue;
        r->mode = rigid_slide(m, row);
        r->touched = 1.0;
        any = true;
    }
    return any;
}

int mb_rigid_settle(mb_view *m, double t, double *q, double *v) {
    for (int32_t n = m->rigid_flat; n < m->rigid_count; n++) {
        mb_rigid *r = mb_rigid_of(m, mb_rigid_row(m, n));
        r->aimed = fmin(r->aimed, 0.0);
        r->weight = 1.0;
        r->speed_floor = 0.0; /* as after a state that is restored */
    }
    mb_kinematics(m, t, q, v);
    for (int32_t n = 0; n < m->rigid_count; n++) {
        mb_rigid *r = mb_rigid_of(m, mb_rigid_row(m, n));
        r->before = r->mode;
        r->hits = 0.0;
        r->slippery = m->friction_left;
    }
    const bool hit = rigid_next_hit(m) >= 0;
    for (int32_t round = 0; round <= m->rigid_count; round++) {
        if (!rigid_impacts(m, t, q, v)) return 0;
        if (rigid_end_slip(m) && !mb_project(m, t, q, v, MB_STEP_LIMIT)) return 0;
        if (!mb_rigid_balance(m, t, q, v)) return 0;
        for (int32_t n = 0; n < m->rigid_count && round == 0; n++) mb_rigid_of(m, mb_rigid_row(m, n))->touched = 0.0;
        if (!rigid_end_chatter(m)) break;
        if (!mb_project(m, t, q, v, MB_STEP_LIMIT)) return 0;
    }
    bool held = hit;
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const mb_rigid *r = mb_rigid_of(m, mb_rigid_row(m, n));
        held = held || (r->mode != r->before && r->mode != MB_FLIES);
    }
    if (!held) return 1;
    return mb_project(m, t, q, v, MB_STEP_LIMIT) && mb_rigid_balance(m, t, q, v);
}

void mb_rigid_count(mb_view *m, int32_t number) {
    const int32_t row = mb_rigid_row(m, number);
    const mb_rigid *r = mb_rigid_of(m, row);
    double *memory = rigid_memory(m, row);
    memory[MB_CONTACT_SLIDING] += r->slid;
    memory[MB_CONTACT_SLIDING_WORK] += r->worked;
    if (mb_rigid_deep(m, row) && r->mode != MB_FLIES && mb_shape_jumped(m, row)) memory[MB_CONTACT_JUMPS] += 1.0;
    const bool rough = mb_rigid_law(m, row)[MB_RIGID_FRICTION] > 0.0;
    if (r->slippery != 0.0 && r->mode != MB_FLIES && rough) memory[MB_CONTACT_PARADOXES] += 1.0;
}

/* Force on the pin. */
void mb_rigid_force(const mb_view *m, int32_t force_number, mb_contact *at) {
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n);
        const mb_rigid *r = mb_rigid_of(m, row);
        if (rigid_record(m, row)[MB_ROW_A] != force_number) continue;
        at->touches = r->mode != MB_FLIES;
        at->N = at->touches ? r->N : 0.0;
        at->T = at->touches ? r->T : 0.0;
    }
}

/* -- the start */

/* Returns the force that is a contact outside its hole, or -1. Contacts at their surfaces and at rest are balanced; others fly. */
int32_t mb_rigid_start(mb_view *m, double t, double *q, double *v) {
    if (m->rigid_count == 0) return -1;
    double *given = m->internal_state + 2 * (m->nq + m->nv);
    bool any = false;
    mb_kinematics(m, t, q, v);
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n);
        mb_rigid *r = mb_rigid_of(m, row);
        const double near = fmax(r->tolerance, START_TOLERANCE * r->scale);
        if (!(r->gap >= -near)) return rigid_record(m, row)[MB_ROW_A];
        r->touched = r->gap <= near;
        if (r->touched != 0.0) r->mode = MB_SLIDES;
        any = any || r->touched != 0.0;
    }
    if (!any) return -1;
    /* On the surface, with the velocities that were given. */
    memcpy(given, v, (size_t)m->nv * sizeof(double));
    (void)mb_project(m, t, q, given, MB_INIT_LIMIT);
    for (int32_t n = 0; n < m->rigid_count; n++) mb_rigid_of(m, mb_rigid_row(m, n))->mode = MB_FLIES;
    if (mb_rigid_balance(m, t, q, v)) mb_rigid_store(m);
    return -1;
}
