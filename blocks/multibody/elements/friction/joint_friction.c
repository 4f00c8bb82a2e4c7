/* Coulomb friction in joints, from their reactions [V 6.49-6.54].
 *
 * A bearing presses on its pin with the normal load, in joint axes with z along the axis, about the middle of the bearing,
 *     N = √(F_x² + F_y²) + 2 √(M_x² + M_y²) / L                  couples tilt it: a pair of forces at the distance L
 *         + 2 |M_z| / d                                          in a prismatic joint: what keeps it from turning, across d
 * and has friction against the slip of its surfaces, which have the speeds ṡ and θ̇ d/2 and together w:
 *     F_z = -f N ṡ tanh(w / w_s) / w,   M_z = -f N (d/2)² θ̇ tanh(w / w_s) / w
 * A revolute has no ṡ and a prismatic joint no θ̇: the formulas then reduce to those of [V]. The last term of N and the sharing of f
 * between the two directions of a cylindrical joint are ours.
 *
 * A universal joint has two such pins, the PIVOTS of its cross, each without M_z and with a load of its own. What tilts one of them is
 * the whole moment through the joint about the other axis, which the efforts on the other coordinate are part of: for two revolutes with
 * a cross without mass the same follows. A spherical joint has the radius R = d/2, N = |F|, the relative angular velocity ω, w = R |ω|:
 *     M = -f N R (ω / |ω|) tanh(w / w_s)
 *
 * The coefficient f may be a law of w and of N, such as that of Stribeck or of an oil film.
 *
 * Reactions depend on friction and friction on reactions. All is linear but for the roots: with the mechanism solved without
 * friction, and with what the friction of a load of 1 N in each joint would add to all reactions (the same factors of K, of the
 * mechanism at rest and without weight), the loads are found by passes N ← N(R + A N) over a handful of numbers. Every evaluation
 * starts these from zero, so that the result depends on the state alone.
 *
 * The passes contract, and the loads are unique, as long as the friction of 1 N causes less than 1 N more. Beyond that a joint
 * has no solution or several: it locks, or is the paradox of Painlevé. Then the passes do not end, and the run does. */
#include <string.h>

#include "blocks/multibody/elements/friction/friction.h"

enum { MB_JOINT_FRICTION_PASSES = 1000 };
static const double MB_JOINT_FRICTION_TOLERANCE = 1e-13;

typedef struct {
    double coefficient, smoothing, radius, length,
        width; /* length and width infinite where nothing tilts or turns it */
} mb_bearing_size;

const int32_t *mb_joint_friction_record(const mb_view *m, int32_t number) {
    return m->joint_frictions + number * MB_JOINT_FRICTION_FIELDS;
}

static bool joint_friction_is(const int32_t *joint_friction, int32_t kind) {
    return joint_friction[MB_JOINT_FRICTION_KIND] == kind;
}
static bool joint_friction_slides(const int32_t *joint_friction) {
    return joint_friction_is(joint_friction, MB_JOINT_FRICTION_PRISMATIC) ||
           joint_friction_is(joint_friction, MB_JOINT_FRICTION_CYLINDRICAL);
}
static bool joint_friction_turns(const int32_t *joint_friction) {
    return !joint_friction_is(joint_friction, MB_JOINT_FRICTION_PRISMATIC) &&
           !joint_friction_is(joint_friction, MB_JOINT_FRICTION_SPHERICAL);
}
static bool joint_friction_is_closure(const mb_view *m, const int32_t *joint_friction) {
    return joint_friction[MB_JOINT_FRICTION_REACTION] >= m->link_count;
}
/* The other pivot of the same universal joint. */
static bool joint_friction_is_across(const int32_t *pivot, const int32_t *other) {
    return pivot != other && joint_friction_is(pivot, MB_JOINT_FRICTION_PIVOT) &&
           joint_friction_is(other, MB_JOINT_FRICTION_PIVOT) &&
           pivot[MB_JOINT_FRICTION_REACTION] == other[MB_JOINT_FRICTION_REACTION];
}

static bool joint_friction_coordinate_fits(const int32_t *head, int32_t place, int32_t sign) {
    return mb_in_range(sign, -1, 2) && mb_in_range(place, 0, sign == 0 ? head[MB_MEASURES] : head[MB_NV]);
}

bool mb_joint_friction_check(const bl_block *b, const int32_t *joint_friction) {
    const int32_t *head = b->i, markers = head[MB_MARKERS];
    const bool ball = joint_friction_is(joint_friction, MB_JOINT_FRICTION_SPHERICAL);
    const int32_t numbers = head[MB_PLANAR] || ball ? 3 : 4;
    if (!mb_in_range(joint_friction[MB_JOINT_FRICTION_KIND], 0,
                     head[MB_PLANAR] ? MB_JOINT_FRICTION_CYLINDRICAL : MB_JOINT_FRICTION_KINDS))
        return false;
    if (joint_friction_slides(joint_friction) &&
        !joint_friction_coordinate_fits(head, joint_friction[MB_JOINT_FRICTION_SLIDE],
                                        joint_friction[MB_JOINT_FRICTION_SLIDE_SIGN]))
        return false;
    if (joint_friction_turns(joint_friction) &&
        !joint_friction_coordinate_fits(head, joint_friction[MB_JOINT_FRICTION_TURN],
                                        joint_friction[MB_JOINT_FRICTION_TURN_SIGN]))
        return false;
    if (ball && !(mb_in_range(joint_friction[MB_JOINT_FRICTION_SLIDE], 0, markers) &&
                  mb_in_range(joint_friction[MB_JOINT_FRICTION_TURN], 0, markers)))
        return false;
    return mb_in_range(joint_friction[MB_JOINT_FRICTION_REACTION], 0, (int64_t)head[MB_LINKS] + head[MB_CUTS]) &&
           mb_in_range(joint_friction[MB_JOINT_FRICTION_MARKER], -markers, markers) &&
           mb_in_range(joint_friction[MB_JOINT_FRICTION_MIDDLE], 0, markers) &&
           mb_in_range(joint_friction[MB_JOINT_FRICTION_P], 0, (int64_t)b->p_count - numbers + 1) &&
           mb_in_range(joint_friction[MB_JOINT_FRICTION_LAW], -1, head[MB_LAWS]);
}

/* In a plane a pin has a diameter and a guide a length. */
static mb_bearing_size joint_friction_size(const mb_view *m, const int32_t *joint_friction) {
    const double *p = m->p + joint_friction[MB_JOINT_FRICTION_P];
    const bool prismatic = joint_friction_is(joint_friction, MB_JOINT_FRICTION_PRISMATIC);
    mb_bearing_size size = {
        .coefficient = p[0], .smoothing = p[1], .radius = 0.5 * p[2], .length = INFINITY, .width = INFINITY};
    if (!m->head[MB_PLANAR] && !joint_friction_is(joint_friction, MB_JOINT_FRICTION_SPHERICAL)) size.length = p[3];
    if (!m->head[MB_PLANAR] && prismatic) size.width = p[2];
    if (m->head[MB_PLANAR] && prismatic) size.length = p[2];
    if (joint_friction[MB_JOINT_FRICTION_LAW] >= 0) size.coefficient = 1.0; /* the law is in the strength */
    return size;
}

double mb_joint_friction_lever(const mb_view *m, int32_t number) {
    const int32_t *joint_friction = mb_joint_friction_record(m, number);
    return joint_friction_slides(joint_friction) ? 1.0 : joint_friction_size(m, joint_friction).radius;
}

static double joint_friction_rate(const mb_view *m, int32_t place, int32_t sign, double t, const double *v) {
    double second;
    return sign == 0 ? mb_measure_rate(m, place, t, &second) : sign * v[place];
}

static void joint_friction_rates(const mb_view *m, const int32_t *joint_friction, double t, const double *v,
                                 double *slide, double *turn) {
    *slide = joint_friction_slides(joint_friction)
                 ? joint_friction_rate(m, joint_friction[MB_JOINT_FRICTION_SLIDE],
                                       joint_friction[MB_JOINT_FRICTION_SLIDE_SIGN], t, v)
                 : 0.0;
    *turn = joint_friction_turns(joint_friction)
                ? joint_friction_rate(m, joint_friction[MB_JOINT_FRICTION_TURN],
                                      joint_friction[MB_JOINT_FRICTION_TURN_SIGN], t, v)
                : 0.0;
}

/* Of the second body of a spherical joint relative to the first. */
static void joint_friction_spin(const mb_view *m, const int32_t *joint_friction, double *w) {
    const int32_t i = mb_link_of(m, joint_friction[MB_JOINT_FRICTION_SLIDE]),
                  j = mb_link_of(m, joint_friction[MB_JOINT_FRICTION_TURN]);
    for (int k = 0; k < 3; k++) w[k] = (j < 0 ? 0.0 : m->link[j].w[k]) - (i < 0 ? 0.0 : m->link[i].w[k]);
}

/* An oil film has friction without a load, of which its coefficient is infinite. */
static const double LEAST_LOAD = 1e-9;

/* What the efforts for a load of 1 N are multiplied by. */
static double joint_friction_strength(const mb_view *m, int32_t number, double t, double load) {
    const int32_t law = mb_joint_friction_record(m, number)[MB_JOINT_FRICTION_LAW];
    if (law < 0) return load;
    const double N = fmax(load, LEAST_LOAD);
    return N * mb_unlocated_coefficient(m, law, t, N, m->friction.slip[number]);
}

/* The efforts for a load of 1 N, or for a friction of 1 N if the coefficient is a law. */
static void joint_friction_unit_efforts(const mb_view *m, int32_t number, double t, const double *v) {
    const int32_t *joint_friction = mb_joint_friction_record(m, number);
    const mb_bearing_size size = joint_friction_size(m, joint_friction);
    double slide, turn;
    joint_friction_rates(m, joint_friction, t, v, &slide, &turn);
    if (joint_friction_is(joint_friction,
                          MB_JOINT_FRICTION_SPHERICAL)) { /* the direction is kept beside, the rate is 1 */
        double *w = m->friction.frame[number].w;
        joint_friction_spin(m, joint_friction, w);
        turn = sqrt(mb_dot(w, w));
        for (int k = 0; k < 3 && turn > 0.0; k++) w[k] /= turn;
    }
    const double slip = hypot(slide, turn * size.radius);
    m->friction.slip[number] = slip;
    const double share = slip == 0.0 ? 0.0 : size.coefficient * tanh(slip / size.smoothing) / slip;
    m->friction.slide[number] = -share * slide;
    m->friction.turn[number] = -share * size.radius * size.radius * turn;
}

bool mb_has_joint_friction(const mb_view *m, int32_t number) {
    return m->friction.slide[number] != 0.0 || m->friction.turn[number] != 0.0;
}

static void joint_friction_push(const mb_view *m, int32_t place, int32_t sign, double t, double effort,
                                double *joint_force) {
    if (sign == 0) mb_measure_push(m, place, t, effort);
    else joint_force[place] += sign * effort;
}

static void joint_friction_push_torque(const mb_view *m, const int32_t *joint_friction, const double *torque) {
    static const double anywhere[3] = {0, 0, 0};
    const double opposite[3] = {-torque[0], -torque[1], -torque[2]};
    mb_push(m, joint_friction[MB_JOINT_FRICTION_SLIDE], anywhere, NULL, opposite);
    mb_push(m, joint_friction[MB_JOINT_FRICTION_TURN], anywhere, NULL, torque);
}

static void joint_friction_add(const mb_view *m, int32_t number, double t, double load, double *joint_force) {
    const int32_t *joint_friction = mb_joint_friction_record(m, number);
    if (joint_friction_is(joint_friction, MB_JOINT_FRICTION_SPHERICAL)) {
        const double *w = m->friction.frame[number].w, effort = load * m->friction.turn[number];
        joint_friction_push_torque(m, joint_friction, (const double[3]){effort * w[0], effort * w[1], effort * w[2]});
    }
    if (joint_friction_slides(joint_friction))
        joint_friction_push(m, joint_friction[MB_JOINT_FRICTION_SLIDE], joint_friction[MB_JOINT_FRICTION_SLIDE_SIGN], t,
                            load * m->friction.slide[number], joint_force);
    if (joint_friction_turns(joint_friction))
        joint_friction_push(m, joint_friction[MB_JOINT_FRICTION_TURN], joint_friction[MB_JOINT_FRICTION_TURN_SIGN], t,
                            load * m->friction.turn[number], joint_force);
}

static void joint_friction_push_found(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                                      double *joint_force) {
    (void)q, (void)v;
    const int32_t number = force[MB_FORCE_LAW];
    if (m->friction.strength[number] != 0.0)
        joint_friction_add(m, number, t, m->friction.strength[number], joint_force);
}

/* How the bearing lies, which all passes share. In a plane it slides along x. */
static void joint_friction_point(const mb_view *m, int32_t number, double t) {
    const int32_t *joint_friction = mb_joint_friction_record(m, number),
                  marker = joint_friction[MB_JOINT_FRICTION_MARKER], middle = joint_friction[MB_JOINT_FRICTION_MIDDLE];
    const int z = m->head[MB_PLANAR] && joint_friction_is(joint_friction, MB_JOINT_FRICTION_PRISMATIC) ? 0 : 2;
    const mb_bearing_size size = joint_friction_size(m, joint_friction);
    mb_joint_friction_frame *frame = &m->friction.frame[number];
    double R[9], P[3], P_middle[3];
    mb_marker_motion(m, marker < 0 ? -1 - marker : marker, t, P, NULL, NULL);
    mb_marker_motion(m, middle, t, P_middle, NULL, NULL);
    mb_sub(P, P_middle, frame->arm);
    mb_marker_axes(m, middle, R);
    mb_column(R, (z + 1) % 3, frame->x);
    mb_column(R, (z + 2) % 3, frame->y);
    mb_column(R, z, frame->z);
    frame->tilt = 2.0 / size.length;
    frame->twist = 2.0 / size.width;
}

/* What of a reaction presses: F_x, F_y, M_x, M_y, M_z in joint axes, about the middle of the bearing. */
static void joint_friction_reaction(const mb_view *m, int32_t number, double *parts) {
    const int32_t *joint_friction = mb_joint_friction_record(m, number);
    const mb_joint_friction_frame *frame = &m->friction.frame[number];
    double F[3], N[3];
    const bool whole =
        joint_friction_is(joint_friction, MB_JOINT_FRICTION_PIVOT); /* the moment about the other pivot, too */
    (whole ? mb_joint_wrench : mb_reaction)(m, joint_friction[MB_JOINT_FRICTION_REACTION],
                                            joint_friction[MB_JOINT_FRICTION_MARKER], F, N);
    mb_add_cross(frame->arm, F, N);
    parts[0] = mb_dot(frame->x, F), parts[1] = mb_dot(frame->y, F);
    if (joint_friction_is(joint_friction, MB_JOINT_FRICTION_SPHERICAL)) { /* its force alone */
        parts[2] = mb_dot(frame->z, F), parts[3] = 0.0, parts[4] = 0.0;
        return;
    }
    parts[2] = mb_dot(frame->x, N), parts[3] = mb_dot(frame->y, N), parts[4] = mb_dot(frame->z, N);
}

static double joint_friction_load(const mb_view *m, int32_t number, const double *parts) {
    const mb_joint_friction_frame *frame = &m->friction.frame[number];
    if (joint_friction_is(mb_joint_friction_record(m, number), MB_JOINT_FRICTION_SPHERICAL))
        return sqrt(mb_dot(parts, parts));
    return sqrt(parts[0] * parts[0] + parts[1] * parts[1]) +
           frame->tilt * sqrt(parts[2] * parts[2] + parts[3] * parts[3]) + frame->twist * fabs(parts[4]);
}

mb_view mb_view_at_rest(const mb_view *m) {
    mb_view still = *m;
    still.link = m->friction.still;
    memcpy(still.link, m->link, (size_t)m->link_count * sizeof *still.link);
    for (int32_t l = 0; l < m->link_count; l++) {
        memset(still.link[l].w, 0, sizeof still.link[l].w);
        memset(still.link[l].v, 0, sizeof still.link[l].v);
    }
    memset(still.gravity, 0, sizeof still.gravity);
    still.force = m->friction.force;
    still.bias = m->friction.no_bias;
    memset(still.bias, 0, (size_t)m->row_count * sizeof(double));
    return still;
}

void mb_clear_links(mb_view *still) {
    for (int32_t l = 0; l < still->link_count; l++) {
        mb_link_state *s = &still->link[l];
        memset(s->F, 0, sizeof s->F);
        memset(s->N, 0, sizeof s->N);
        memset(s->wd, 0, sizeof s->wd);
        memset(s->vd, 0, sizeof s->vd);
    }
}

/* The wrenches through the joints, with what acts on the links there already. */
static void joint_friction_wrenches(mb_view *still) {
    mb_set_accelerations(still, still->acceleration);
    mb_push_multipliers(still);
    mb_bias_forces(still, still->step);
}

/* Wrenches without friction. With closures, the links hold the effect of loads and velocities only; without closures they hold
   the complete wrenches. */
static void joint_friction_base(mb_view *m, mb_view *still) {
    if (m->row_count == 0) {
        mb_bias_forces(m, m->step);
        return;
    }
    mb_clear_links(still);
    joint_friction_wrenches(still);
    for (int32_t l = 0; l < m->link_count; l++) {
        mb_add(still->link[l].F, m->link[l].F);
        mb_add(still->link[l].N, m->link[l].N);
    }
}

void mb_respond(mb_view *still, bool on_links, double least) {
    double *bias = still->step;
    if (on_links) {
        mb_bias_forces(still, bias);
        for (int32_t k = 0; k < still->nv; k++) still->force[k] -= bias[k];
    }
    if (still->row_count > 0) {
        (void)mb_solve_rows(still, least);
    } else {
        memcpy(still->acceleration, still->force, (size_t)still->nv * sizeof(double));
        mb_solve(still, still->acceleration);
    }
}

void mb_joint_friction_reactions(mb_view *still, double *parts) {
    joint_friction_wrenches(still);
    mb_share(still);
    for (int32_t k = 0; k < still->head[MB_JOINT_FRICTIONS]; k++)
        joint_friction_reaction(still, k, parts + k * MB_JOINT_FRICTION_PARTS);
}

/* A closure knows no efforts on its coordinates: adds that of a pivot for a load of 1 N to what tilts the other. */
static void joint_friction_add_across(const mb_view *m, int32_t number, double *response) {
    const int32_t *pivot = mb_joint_friction_record(m, number);
    for (int32_t k = 0; k < m->head[MB_JOINT_FRICTIONS] && joint_friction_is_closure(m, pivot); k++) {
        if (!joint_friction_is_across(pivot, mb_joint_friction_record(m, k))) continue;
        double *parts = response + (int64_t)k * MB_JOINT_FRICTION_PARTS;
        parts[2] += m->friction.turn[number] * mb_dot(m->friction.frame[k].x, m->friction.frame[number].z);
        parts[3] += m->friction.turn[number] * mb_dot(m->friction.frame[k].y, m->friction.frame[number].z);
    }
}

/* Response to the friction of a load of 1 N in one joint: v', λ, and the change of the reactions of all joints with friction. */
static void joint_friction_respond(mb_view *still, int32_t number, double t) {
    const int32_t count = still->head[MB_JOINT_FRICTIONS], *joint_friction = mb_joint_friction_record(still, number);
    still->acceleration = still->friction.acceleration + (int64_t)number * still->nv;
    still->lambda = still->friction.lambda + (int64_t)number * still->row_count;
    memset(still->force, 0, (size_t)still->nv * sizeof(double));
    mb_clear_links(still);
    joint_friction_add(still, number, t, 1.0, still->force);
    /* A pair of forces on two links acts on all joints between them. */
    const bool ball = joint_friction_is(joint_friction, MB_JOINT_FRICTION_SPHERICAL);
    double *response = still->friction.response + (int64_t)number * count * MB_JOINT_FRICTION_PARTS;
    mb_respond(still, ball || joint_friction_is_closure(still, joint_friction), 1.0);
    mb_clear_links(still);
    joint_friction_add(still, number, t, 1.0, still->force);
    mb_joint_friction_reactions(still, response);
    joint_friction_add_across(still, number, response);
}

/* One pass over all loads, each with the newest of the others. Returns the largest change, and whose it is. */
static double joint_friction_pass(mb_view *m, double t, int32_t *whose) {
    const int32_t count = m->head[MB_JOINT_FRICTIONS];
    double most = -1.0;
    for (int32_t k = 0; k < count; k++) {
        double parts[MB_JOINT_FRICTION_PARTS];
        memcpy(parts, m->friction.base + k * MB_JOINT_FRICTION_PARTS, sizeof parts);
        for (int32_t n = 0; n < count; n++) {
            if (!mb_has_joint_friction(m, n)) continue;
            const double *response = m->friction.response + ((int64_t)n * count + k) * MB_JOINT_FRICTION_PARTS;
            for (int c = 0; c < MB_JOINT_FRICTION_PARTS; c++) parts[c] += m->friction.strength[n] * response[c];
        }
        const double load = joint_friction_load(m, k, parts), change = fabs(load - m->friction.load[k]);
        m->friction.load[k] = load;
        m->friction.strength[k] = joint_friction_strength(m, k, t, load);
        if (!(change <= most)) most = change, *whose = k;
    }
    return most;
}

/* Whether no coefficient is negative, but for rounding in its law. */
static bool joint_friction_opposes(mb_view *m) {
    for (int32_t k = 0; k < m->head[MB_JOINT_FRICTIONS]; k++) {
        if (!mb_has_joint_friction(m, k) || !(m->friction.strength[k] < -1e-9 * m->friction.load[k])) continue;
        m->diverging_friction = k;
        return false;
    }
    return true;
}

/* Passes until the loads no longer change. Returns whether they come to that. */
static bool joint_friction_find_loads(mb_view *m, double t) {
    int32_t whose = 0;
    for (int pass = 0; pass < MB_JOINT_FRICTION_PASSES; pass++) {
        const double change = joint_friction_pass(m, t, &whose),
                     most = mb_largest(m->friction.load, m->head[MB_JOINT_FRICTIONS]);
        if (!isfinite(most)) break;
        if (change <= MB_JOINT_FRICTION_TOLERANCE * most) return joint_friction_opposes(m);
    }
    m->diverging_friction = whose;
    return false;
}

/* Adds the response to friction under the computed loads to v', λ and the accelerations of the links. */
static void joint_friction_superpose(mb_view *m) {
    double *more = m->step;
    memset(more, 0, (size_t)m->nv * sizeof(double));
    for (int32_t n = 0; n < m->head[MB_JOINT_FRICTIONS]; n++) {
        if (!mb_has_joint_friction(m, n)) continue;
        const double load = m->friction.strength[n], *response = m->friction.acceleration + (int64_t)n * m->nv;
        const double *lambda = m->friction.lambda + (int64_t)n * m->row_count;
        for (int32_t k = 0; k < m->nv; k++) more[k] += load * response[k];
        for (int32_t k = 0; k < m->row_count; k++) m->lambda[k] += load * lambda[k];
    }
    for (int32_t k = 0; k < m->nv; k++) m->acceleration[k] += more[k];
    mb_set_accelerations(m, more);
}

bool mb_solve_joint_friction(mb_view *m, double t, const double *v) {
    const int32_t count = m->head[MB_JOINT_FRICTIONS];
    if (count == 0) return true;
    bool any = false;
    mb_share_prepare(m);
    mb_view still = mb_view_at_rest(m);
    joint_friction_base(m, &still);
    mb_share(m);
    for (int32_t k = 0; k < count; k++) {
        double *base = m->friction.base + k * MB_JOINT_FRICTION_PARTS;
        joint_friction_point(m, k, t);
        joint_friction_reaction(m, k, base);
        m->friction.load[k] = joint_friction_load(m, k, base);
        joint_friction_unit_efforts(m, k, t, v);
        m->friction.strength[k] = joint_friction_strength(m, k, t, m->friction.load[k]);
        any = any || mb_has_joint_friction(m, k);
    }
    if (m->stick.count > 0) {
        mb_set_dry_efforts(m);
        any = true;
    }
    if (!any) return true;
    if (m->row_count == 0) { /* the recursion of a tree has left no factors */
        mb_mass(m);
        mb_build_k(m);
        if (!mb_factor(m)) return false;
    }
    for (int32_t k = 0; k < count; k++)
        if (mb_has_joint_friction(m, k)) joint_friction_respond(&still, k, t);
    if (m->stick.count > 0) mb_eliminate_sticking(m, &still, t);
    if (!joint_friction_find_loads(m, t)) return false;
    joint_friction_superpose(m);
    if (m->stick.count > 0) mb_add_sticking(m);
    return true;
}

static bool joint_friction_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    (void)tally;
    if (!mb_check_markers(b, force) || !mb_check_numbers(b, force, 0) ||
        !mb_in_range(force[MB_FORCE_LAW], 0, b->i[MB_JOINT_FRICTIONS]))
        return false;
    const int32_t *record = b->i + b->i[MB_AT_JOINT_FRICTIONS] + force[MB_FORCE_LAW] * MB_JOINT_FRICTION_FIELDS;
    return force[MB_FORCE_EXTRA] == (joint_friction_is(record, MB_JOINT_FRICTION_SPHERICAL) ? 1 : 0);
}

static bool joint_friction_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    const int32_t *record = mb_joint_friction_record(m, force[MB_FORCE_LAW]);
    const double *p = m->p + record[MB_JOINT_FRICTION_P];
    const bool planar = m->head[MB_PLANAR] != 0,
               guide = planar && record[MB_JOINT_FRICTION_KIND] == MB_JOINT_FRICTION_PRISMATIC;
    const int32_t law = record[MB_JOINT_FRICTION_LAW];
    return (law >= 0 ? mb_allow_law(fault, m, law, "coefficient")
                     : mb_allow(fault, "coefficient", p[0], MB_ALLOWED_NOT_NEGATIVE)) &&
           mb_allow(fault, "smoothing_speed", p[1], MB_ALLOWED_POSITIVE) &&
           mb_allow(fault, guide ? "length" : "diameter", p[2], MB_ALLOWED_POSITIVE) &&
           (planar || joint_friction_is(record, MB_JOINT_FRICTION_SPHERICAL) ||
            mb_allow(fault, "length", p[3], MB_ALLOWED_POSITIVE));
}

static double joint_friction_loss(mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    (void)q;
    const int32_t number = force[MB_FORCE_LAW];
    const double load_found = m->friction.strength[number];
    const int32_t *joint_friction = mb_joint_friction_record(m, number);
    double slide, turn, w[3];
    joint_friction_rates(m, joint_friction, t, v, &slide, &turn);
    if (joint_friction_is(joint_friction, MB_JOINT_FRICTION_SPHERICAL)) {
        joint_friction_spin(m, joint_friction, w);
        turn = mb_dot(w, m->friction.frame[number].w);
    }
    return -(load_found * m->friction.slide[number]) * slide - load_found * m->friction.turn[number] * turn;
}

static int32_t joint_friction_width(const int32_t *force, int32_t what) {
    if (force[MB_FORCE_EXTRA] != 0 && what == MB_JOINT_FRICTION_TORQUE) return 3;
    return mb_in_range(what, 0, MB_JOINT_FRICTION_QUANTITIES) ? 1 : -1;
}

static int joint_friction_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                               int32_t what, double *y) {
    const int32_t number = force[MB_FORCE_LAW];
    const double strength = m->friction.strength[number];
    switch (what) {
        case MB_JOINT_FRICTION_FORCE: *y = strength * m->friction.slide[number]; break;
        case MB_JOINT_FRICTION_TORQUE:
            *y = strength * m->friction.turn[number];
            if (force[MB_FORCE_EXTRA] == 0) break;
            for (int k = 2; k >= 0; k--) y[k] = *y * m->friction.frame[number].w[k];
            break;
        case MB_JOINT_FRICTION_LOAD: *y = m->friction.load[number]; break;
        default: *y = joint_friction_loss(m, force, t, q, v);
    }
    return BL_OK;
}

static bool joint_friction_needs_solution(const int32_t *force, int32_t what) {
    (void)force, (void)what;
    return true;
}

const mb_element mb_element_joint_friction = {.check = joint_friction_check,
                                              .sound = joint_friction_sound,
                                              .load = joint_friction_push_found,
                                              .loss = joint_friction_loss,
                                              .width = joint_friction_width,
                                              .show = joint_friction_show,
                                              .needs_solution = joint_friction_needs_solution};
