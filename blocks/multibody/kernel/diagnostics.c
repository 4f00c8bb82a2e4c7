/* Diagnostics of a mechanism: joints that cannot be closed, velocities that violate the joints, steps that are too large.
 *
 * Joints have names only for this: one string for each link (that of the tree joint whose chain ends there, else empty),
 * then one for each closure; elements follow, then bodies, laws that prescribe motion, and prescribed initial values. A tree joint is always closed: only closures can stay open. */
#include <stdio.h>
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

enum {
    MB_NAMED_GAPS = 3, /* longer lists are not useful */
    MB_SEARCH_LIMIT = 2000,
};

/* A step is too coarse if closing the loops moves the mechanism by more than this part of what the step does, or changes
   its speeds by more than this part of the largest so far, both in the measure of the masses. */
static const double STEP_TOO_LARGE = 0.01;
/* Gaps, in m or rad, and their rates that no step is to blame for. */
static const double ROUNDING = 1e-12;
/* Velocities are reported if they violate the joints by more than this fraction of the largest one. */
static const double PRINTED_DIGITS = 1e-4;
/* Positions are reported if they changed by more than this fraction of the size, or by more than this in rad. */
static const double REPORTED_MOTION = 1e-3;
/* A position is next to a singular one if closing a gap takes a motion that is larger than the gap by this factor. */
static const double SINGULAR = 10.0;

typedef struct {
    double length, angle; /* m, rad; or their rates */
} mb_gap;

static double gap_size(mb_gap gap) { return fmax(gap.length, gap.angle); }

/* Cut where it is too long, but not inside a character of UTF-8. */
void mb_text(const mb_view *m, int32_t number, char *out, int size) {
    const int32_t *letter = m->names;
    for (; number > 0; letter++) number -= *letter == 0;
    int n = 0;
    for (; *letter != 0 && n < size - 1; letter++) out[n++] = (char)(unsigned char)*letter;
    if (*letter != 0) {
        while (n > 0 && ((unsigned char)out[n - 1] & 0xC0) == 0x80) n--;
        if (n > 0 && ((unsigned char)out[n - 1] & 0x80)) n--;
    }
    out[n] = '\0';
}

void mb_joint_name(const mb_view *m, int32_t number, char *out) { mb_text(m, number, out, MB_NAME_SIZE); }

bool mb_names_check(const int32_t *names, int64_t count, int64_t wanted) {
    int64_t found = 0;
    for (int64_t k = 0; k < count; k++) {
        if (names[k] < 0 || names[k] > 255) return false;
        found += names[k] == 0;
    }
    return found == wanted && (count == 0 || names[count - 1] == 0);
}

static bool is_driver(const mb_view *m, int32_t cut) {
    return mb_is_driver(m->rows[m->cuts[cut * MB_CUT_FIELDS + MB_CUT_ROW] * MB_ROW_FIELDS + MB_ROW_TYPE]);
}

/* Whether a law of time or an input moves a closure: its jumps are not errors of the step. */
static bool is_moved(const mb_view *m, int32_t cut) {
    if (is_driver(m, cut)) return true;
    if (mb_coordinate_row_of(m, cut)) return false;
    const int32_t *row = m->rows + m->cuts[cut * MB_CUT_FIELDS + MB_CUT_ROW] * MB_ROW_FIELDS;
    for (int side = MB_ROW_I; side <= MB_ROW_J; side++)
        for (int law = MB_MARKER_LAW_X; law <= MB_MARKER_LAW_Z; law++)
            if (m->markers[row[side] * MB_MARKER_FIELDS + law] >= 0) return true;
    return false;
}

/* How far a closure is open: of the rows' Φ, or of their rates. */
static mb_gap closure_gap(const mb_view *m, int32_t number, const double *rows) {
    const int32_t *cut = m->cuts + number * MB_CUT_FIELDS;
    mb_gap gap = {0.0, 0.0};
    for (int32_t k = cut[MB_CUT_ROW]; k < cut[MB_CUT_ROW] + cut[MB_CUT_ROWS]; k++) {
        const int32_t *row = m->rows + k * MB_ROW_FIELDS;
        const double value = rows[k];
        if (row[MB_ROW_TYPE] == MB_ROW_D1) {
            gap.angle = hypot(gap.angle, rows == m->phi ? asin(fmin(1.0, fabs(value))) : value);
        } else if (row[MB_ROW_TYPE] == MB_ROW_DRIVEN_ANGLE) {
            gap.angle = fabs(value);
        } else if (mb_coordinate_rows[row[MB_ROW_TYPE]]) {
            *(mb_coordinate_rows[row[MB_ROW_TYPE]]->turns(m, number) ? &gap.angle : &gap.length) = fabs(value);
        } else {
            gap.length = hypot(gap.length, value);
        }
    }
    return gap;
}

/* The largest few gaps, in descending order; returns their number. Gaps far below the largest are omitted. */
typedef struct {
    int32_t joint; /* number of a name */
    mb_gap gap;
} mb_named_gap;

static void keep_largest(mb_named_gap *gaps, int32_t joint, mb_gap gap) {
    mb_named_gap item = {joint, gap};
    for (int n = 0; n < MB_NAMED_GAPS; n++) {
        if (!(gap_size(item.gap) > gap_size(gaps[n].gap))) continue;
        const mb_named_gap smaller = gaps[n];
        gaps[n] = item;
        item = smaller;
    }
}

static void find_open(const mb_view *m, const double *rows, mb_named_gap *gaps) {
    memset(gaps, 0, MB_NAMED_GAPS * sizeof *gaps);
    for (int32_t c = 0; c < m->cut_count; c++) keep_largest(gaps, m->link_count + c, closure_gap(m, c, rows));
}

static void log_gap(const bl_block *b, mb_gap gap, const char *rate) {
    const double least = 1e-3 * gap_size(gap);
    if (gap.length > least) bl_log(b, "%.3g m%s", gap.length, rate);
    if (gap.length > least && gap.angle > least) bl_log(b, " and ");
    if (gap.angle > least) bl_log(b, "%.3g rad%s", gap.angle, rate);
}

static void log_joints(const bl_block *b, const mb_view *m, const mb_named_gap *gaps, const char *verb,
                       const char *rate) {
    for (int n = 0; n < MB_NAMED_GAPS && gap_size(gaps[n].gap) > 1e-2 * gap_size(gaps[0].gap); n++) {
        char name[MB_NAME_SIZE];
        mb_joint_name(m, gaps[n].joint, name);
        bl_log(b, "%s`%s` %s ", n > 0 ? ", " : "", name, verb);
        log_gap(b, gaps[n].gap, rate);
    }
}

/* The weight of a row is α times the mass that it moves. In a singular position some row moves next to nothing and weighs the
   more; here each counts as the lightest of its joint, lengths and angles apart. */
static void weigh_evenly(const mb_view *m, double *weights) {
    for (int32_t c = 0; c < m->cut_count; c++) {
        const int32_t *cut = m->cuts + c * MB_CUT_FIELDS, first = cut[MB_CUT_ROW], end = first + cut[MB_CUT_ROWS];
        double lightest[2] = {INFINITY, INFINITY};
        for (int32_t k = first; k < end; k++) {
            const int kind = m->rows[k * MB_ROW_FIELDS + MB_ROW_TYPE] == MB_ROW_D1;
            if (mb_row_holds(m, k)) lightest[kind] = fmin(lightest[kind], m->alpha[k]);
        }
        for (int32_t k = first; k < end; k++)
            weights[k] = mb_row_holds(m, k) ? lightest[m->rows[k * MB_ROW_FIELDS + MB_ROW_TYPE] == MB_ROW_D1] : 0.0;
    }
}

static double weighed_error(const mb_view *m, const double *weights, const double *rows) {
    double sum = 0.0;
    for (int32_t k = 0; k < m->row_count; k++) sum += weights[k] * rows[k] * rows[k];
    return sum;
}

/* Σ M_kk v_k²: about twice the kinetic energy. */
static double liveliness(const mb_view *m, const double *v) {
    double sum = 0.0;
    for (int32_t k = 0; k < m->nv; k++) sum += m->mass_diagonal[m->permutation[k]] * v[k] * v[k];
    return sum;
}

/* How much larger a motion is than the errors that it closes. */
static double lever(mb_view *m, double motion, const double *rows) {
    weigh_evenly(m, m->row_work);
    const double direct = weighed_error(m, m->row_work, rows) / m->settings[MB_ALPHA];
    return direct > 0.0 ? sqrt(motion / direct) : 0.0;
}

static void log_singular(const bl_block *b, double size) {
    if (size > SINGULAR)
        bl_log(b, ". It is next to a singular position: the correction there is %.2g times as large as the gap", size);
}

/* Brings q where the closures are least open: downhill along what mb_project would do, each step only as far as it helps. */
void mb_close_best(mb_view *m, double t, double *q, const double *v) {
    double *start = m->saved_state, *full = m->saved_state + m->nq, *part = full + m->nv, *weights = m->lambda,
           fraction = 1.0;
    m->places_only = m->roll_count > 0;
    for (int iteration = 0; iteration < MB_SEARCH_LIMIT; iteration++) {
        mb_kinematics(m, t, q, v);
        if (!mb_refactor(m)) return;
        weigh_evenly(m, weights);
        mb_closing_step(m, weights, full);
        const double error = weighed_error(m, weights, m->phi);
        double left = error;
        memcpy(start, q, (size_t)m->nq * sizeof(double));
        for (fraction = fmin(4.0 * fraction, 64.0); fraction > 1e-6; fraction *= 0.5) {
            memcpy(q, start, (size_t)m->nq * sizeof(double));
            for (int32_t k = 0; k < m->nv; k++) part[k] = fraction * full[k];
            mb_move(m, q, part);
            mb_kinematics(m, t, q, v);
            left = weighed_error(m, weights, m->phi);
            if (left < error) break;
        }
        if (!(left < error)) memcpy(q, start, (size_t)m->nq * sizeof(double));
        if (!(left < (1.0 - 1e-12) * error)) return;
    }
}

int mb_fail_assembly(bl_block *b, mb_view *m, double t, const double *q, const double *v) {
    mb_named_gap gaps[MB_NAMED_GAPS];
    mb_kinematics(m, t, q, v);
    find_open(m, m->phi, gaps);
    bl_log(b, "it cannot be assembled at t = %.9g s: ", t);
    log_joints(b, m, gaps, "stays open by", "");
    return bl_log_error(
        b,
        " with the other joints closed. Change a length or an axis there, or give positions nearer to a closed pose.");
}

/* Elements have their names after those of the closures. */
static void force_name(const mb_view *m, int32_t number, char *out) {
    mb_joint_name(m, m->link_count + m->cut_count + number, out);
}

void mb_describe_event(const bl_block *b, const mb_view *m, int32_t crossing, char *text, size_t size) {
    static const char *const KINDS[] = {"touches",  "leaves", "rebounds", "sticks",  "slips",
                                        "reverses", "law",    "pushes",   "releases"};
    _Static_assert(sizeof KINDS / sizeof *KINDS == MB_EVENT_KINDS, "a name for each kind");
    char name[MB_NAME_SIZE];
    const int32_t kind = crossing % MB_EVENT_KINDS, number = crossing / MB_EVENT_KINDS;
    if (crossing < 0) return;
    if (kind == MB_EVENT_LAW) {
        snprintf(text, size, "%s", KINDS[kind]);
    } else if (number < b->i[MB_FORCES]) {
        force_name(m, number, name);
        snprintf(text, size, "%s: %s", name, KINDS[kind]);
    }
}

static void log_fault(const bl_block *b, const mb_fault *fault) {
    bl_log(b, " is %.6g: %s", fault->value, fault->must_be);
    if (fault->other) bl_log(b, "`%s`, which is %.6g", fault->other, fault->bound);
}

int mb_fail_element(const bl_block *b, const mb_view *m, int32_t number, const mb_fault *fault) {
    char name[MB_NAME_SIZE];
    force_name(m, number, name);
    bl_log(b, "parameter `%s%s` of `%s`", fault->name, fault->part, name);
    log_fault(b, fault);
    return bl_log_error(b, ".");
}

int mb_fail_row(const bl_block *b, const mb_view *m, int32_t cut, const mb_fault *fault) {
    char name[MB_NAME_SIZE];
    mb_joint_name(m, m->link_count + cut, name);
    bl_log(b, "%s of `%s`", fault->name, name);
    log_fault(b, fault);
    return bl_log_error(b, ".");
}

int mb_fail_outside(const bl_block *b, const mb_view *m, int32_t number, double t) {
    char name[MB_NAME_SIZE];
    const int32_t *force = m->forces + number * MB_FORCE_FIELDS;
    mb_contact at;
    force_name(m, number, name);
    if (force[MB_FORCE_TYPE] == MB_TOUCH_RIGID)
        return bl_log_error(
            b,
            "the shapes of `%s` overlap by %.3g m at the start, and its RigidContact has no compliance. Give "
            "positions farther from each other, or other sizes.",
            name, -mb_touch_gap(m, force, t));
    mb_contact_see(m, force, t, &at);
    const double clearance = m->p[force[MB_FORCE_P]];
    return bl_log_error(b,
                        "`%s` does not start in its hole: the center of the pin is %.4g m from that of the hole, %.3g "
                        "m more than the clearance"
                        " allows. Give positions nearer to each other, or more clearance.",
                        name, clearance - at.gap, -at.gap);
}

int mb_fail_events(const bl_block *b, const mb_view *m, double t, double h, int count) {
    char name[MB_NAME_SIZE];
    int32_t busiest = 0;
    for (int32_t n = 1; n < m->rigid_count; n++) {
        const mb_rigid *r = mb_rigid_of(m, mb_rigid_row(m, n)), *most = mb_rigid_of(m, mb_rigid_row(m, busiest));
        if (fabs(r->closing) > fabs(most->closing)) busiest = n;
    }
    force_name(m, m->rows[mb_rigid_row(m, busiest) * MB_ROW_FIELDS + MB_ROW_A], name);
    return bl_log_error(b,
                        "contacts changed more than %d times in the step of %.3g s from t = %.9g s, most of all `%s`: "
                        "%s that often. Take a smaller step or more substeps.",
                        count, h, t, name,
                        mb_rigid_deep(m, mb_rigid_row(m, busiest)) ? "its shapes meet"
                                                                   : "its pin crosses the clearance");
}

int mb_fail_bearing(const bl_block *b, const mb_view *m, int32_t number, double t) {
    char name[MB_NAME_SIZE];
    force_name(m, number, name);
    const bl_film_bearing bearing = mb_bearing_read(m, m->forces + number * MB_FORCE_FIELDS);
    return bl_log_error(b,
                        "the film of `%s` is thinner than its `film_limit`, %.4g m, at t = %.9g s. Give "
                        "contact=Contact(…) to go on with"
                        " a contact law, or more clearance, speed or viscosity.",
                        name, bearing.film_limit, t);
}

/* The first name after those of elements, which is that of a body. */
static int32_t after_forces(const mb_view *m) { return m->link_count + m->cut_count + m->head[MB_FORCES]; }

int mb_fail_body(const bl_block *b, const mb_view *m, int32_t number) {
    char name[MB_NAME_SIZE];
    const mb_body_data *body = &m->body[number];
    mb_joint_name(m, after_forces(m) + number, name);
    if (!(body->mass >= 0.0))
        return bl_log_error(b, "body `%s` has mass %.6g kg: it must not be negative.", name, body->mass);
    return bl_log_error(b, "body `%s` has a negative moment of inertia, about its center of mass: no body has.", name);
}

int mb_fail_motion_law(const bl_block *b, const mb_view *m, int32_t number, const mb_fault *fault) {
    char name[MB_NAME_SIZE];
    mb_joint_name(m, after_forces(m) + m->body_count + number, name);
    bl_log(b, "the %s `%s%s`", fault->name, name, fault->part);
    log_fault(b, fault);
    return bl_log_error(b, ".");
}

int mb_fail_kept(bl_block *b, mb_view *m, int32_t number, double t, const double *q, const double *v) {
    char name[MB_NAME_SIZE];
    const int32_t *keep = mb_keep_record(m, number);
    const int32_t names = after_forces(m) + m->body_count + m->head[MB_MOTION_LAWS];
    const char *unit = keep[MB_KEEP_RATE]               ? mb_keep_turns_about(m, number) ? "rad/s" : "m/s"
                       : mb_keep_turns_about(m, number) ? "rad"
                                                        : "m";
    mb_joint_name(m, names + number, name);
    const double value = m->p[keep[MB_KEEP_P]], is = mb_kept_now(m, number, t, q, v);
    bl_log(b, "its initial `%s` cannot be %.6g %s at t = %.9g s", name, value, unit, t);
    int32_t others = 0;
    for (int32_t n = 0; n < m->keep_count && others < MB_NAMED_GAPS; n++) {
        if (n == number || mb_keep_record(m, n)[MB_KEEP_RATE] != keep[MB_KEEP_RATE]) continue;
        mb_joint_name(m, names + n, name);
        bl_log(b, "%s`%s`", others++ > 0 ? ", " : ", kept with ", name);
    }
    mb_update_positions(m, t, q);
    if (keep[MB_KEEP_RATE] == 0 && !(mb_openness(m) <= 1e-6))
        return bl_log_error(b, ": the joints do not close there. It is out of reach of the given pose; keep another "
                               "value, or give positions"
                               " nearer to it.");
    return bl_log_error(b, ": joints%s make it %.6g %s. Keep fewer values, or another one.",
                        others > 0 ? ", drivers and the other values" : " and drivers", is, unit);
}

/* Whether an element is friction from reactions with this record. */
static bool is_joint_friction(const int32_t *force, int32_t number) {
    return (force[MB_FORCE_TYPE] == MB_JOINT_FRICTION && force[MB_FORCE_LAW] == number) ||
           (force[MB_FORCE_TYPE] == MB_JOINT_STICTION && force[MB_FORCE_P] == number);
}

int mb_fail_joint_friction(const bl_block *b, const mb_view *m, int32_t number, double t) {
    char name[MB_NAME_SIZE], joint[MB_NAME_SIZE];
    const int32_t *joint_friction = m->joint_frictions + number * MB_JOINT_FRICTION_FIELDS;
    int32_t force = 0;
    while (force + 1 < m->head[MB_FORCES] && !is_joint_friction(mb_force_record(m, force), number)) force++;
    force_name(m, force, name);
    mb_joint_name(m, joint_friction[MB_JOINT_FRICTION_REACTION], joint);
    if (m->friction.strength[number] < 0.0)
        return bl_log_error(b,
                            "the coefficient of friction `%s` in joint `%s` is %.4g at t = %.9g s: it must not be "
                            "negative. Give it a law that is not below 0 wherever the mechanism can move.",
                            name, joint, m->friction.strength[number] / m->friction.load[number], t);
    return bl_log_error(
        b,
        "friction `%s` in joint `%s`, coefficient %.4g, and the reactions that it causes have no end at t = %.9g s: "
        "each"
        " makes the other grow. The joint locks itself, or there are several solutions, and the rigid-body model does "
        "not determine which."
        " Take a smaller coefficient, a longer bearing or guide, or a smaller angle between load and motion.",
        name, joint,
        joint_friction[MB_JOINT_FRICTION_LAW] < 0 ? m->p[joint_friction[MB_JOINT_FRICTION_P]]
                                                  : m->friction.strength[number] / m->friction.load[number],
        t);
}

/* With friction from reactions: joints that can neither stick nor slide. */
static int fail_jammed_friction(const bl_block *b, const mb_view *m, int32_t number, double t) {
    char name[MB_NAME_SIZE];
    force_name(m, number, name);
    return bl_log_error(
        b,
        "friction `%s`, with that of the other joints at rest, has no unique solution at t = %.9g s: no combination of "
        "joints that stick and joints that slide is consistent, or reactions grow with friction so that there are "
        "several "
        "(the paradox of Painlevé). Rigid bodies do not determine the motion. Take smaller coefficients, a longer "
        "bearing "
        "or guide, or a smoothing_speed.",
        name, t);
}

int mb_fail_stiction(const bl_block *b, const mb_view *m, int32_t number, double t) {
    char name[MB_NAME_SIZE];
    if (m->head[MB_JOINT_FRICTIONS] > 0) return fail_jammed_friction(b, m, number, t);
    force_name(m, number, name);
    return bl_log_error(b,
                        "friction `%s` sticks at t = %.9g s where other frictions that stick, or another on the same "
                        "coordinate, hold it already: how "
                        "they share the load is not determined. Give one of them a smoothing_speed instead of static "
                        "friction.",
                        name, t);
}

int mb_fail_factor(bl_block *b, const mb_view *m, double t) {
    if (mb_has_formula_fault(m)) return mb_fail_formula(b, m);
    if (m->filmless_bearing >= 0) return mb_fail_bearing(b, m, m->filmless_bearing, t);
    if (m->diverging_friction >= 0) return mb_fail_joint_friction(b, m, m->diverging_friction, t);
    if (m->ambiguous_friction >= 0) return mb_fail_stiction(b, m, m->ambiguous_friction, t);
    char name[MB_NAME_SIZE];
    if (m->jammed_contact >= 0) {
        force_name(m, m->jammed_contact, name);
        return bl_log_error(b,
                            "`%s` is jammed at t = %.9g s: drivers leave its pin no way to go, or its friction is too "
                            "much for rigid bodies."
                            " Take less friction, a driver less, or a compliant contact such as HuntCrossley.",
                            name, t);
    }
    for (int32_t c = 0; c < m->cut_count; c++) {
        const int32_t row = m->cuts[c * MB_CUT_FIELDS + MB_CUT_ROW];
        if (m->rows[row * MB_ROW_FIELDS + MB_ROW_TYPE] != MB_ROW_FORMULA ||
            (isfinite(m->phi[row]) && isfinite(m->bias[row])))
            continue;
        mb_joint_name(m, m->link_count + c, name);
        return bl_log_error(
            b,
            "the formula of `%s` has no finite value or derivative at t = %.9g s: the motion leads out of its range.",
            name, t);
    }
    return bl_log_error(
        b, "its equations have no solution at t = %.9g s: a speed moves no mass, or a value is not finite.", t);
}

/* Of a closure that stays open the most, whether what it asks for may be out of reach. */
static void log_out_of_reach(const bl_block *b, const mb_view *m, const mb_named_gap *worst) {
    const int32_t cut = worst->joint - m->link_count;
    if (!mb_in_range(cut, 0, m->cut_count) || !(gap_size(worst->gap) > 0.0)) return;
    const int32_t type = m->rows[m->cuts[cut * MB_CUT_FIELDS + MB_CUT_ROW] * MB_ROW_FIELDS + MB_ROW_TYPE];
    if (!mb_is_driver(type) && type != MB_ROW_FORMULA) return;
    char name[MB_NAME_SIZE];
    mb_joint_name(m, worst->joint, name);
    bl_log(b, ". What `%s` asks for may be out of reach from here on", name);
}

/* Requires the state before the projection in m->saved_state. */
int mb_fail_step(bl_block *b, mb_view *m, double t, double h, const double *q, const double *v) {
    if (mb_has_formula_fault(m)) return mb_fail_formula(b, m);
    mb_named_gap before[MB_NAMED_GAPS], after[MB_NAMED_GAPS];
    mb_kinematics(m, t, m->saved_state, m->saved_state + m->nq);
    find_open(m, m->phi, before);
    mb_kinematics(m, t, q, v);
    find_open(m, m->phi, after);
    if (!isfinite(gap_size(before[0].gap)) || !isfinite(gap_size(after[0].gap)))
        return bl_log_error(
            b, "the step of %.3g s to t = %.9g s gave coordinates that are not finite: take a smaller step.", h, t);
    bl_log(b, "the step of %.3g s to t = %.9g s cannot be closed: ", h, t);
    log_joints(b, m, before, "was open by", "");
    bl_log(b, " when it began to be; ");
    log_joints(b, m, after, "stays open by", "");
    const double *monitor = m->monitor;
    if (monitor[MB_MONITOR_COUNT] > 0.0) { /* it went wrong there */
        bl_log(b, ". Before, %.0f step%s not resolved, the first to t = %.9g s", monitor[MB_MONITOR_COUNT],
               monitor[MB_MONITOR_COUNT] > 1.0 ? "s were" : " was", monitor[MB_MONITOR_FIRST]);
        log_singular(b, monitor[MB_MONITOR_LEVER]);
    } else {
        double *step = m->saved_state + m->nq + m->nv;
        if (mb_refactor(m)) {
            mb_closing_step(m, m->alpha, step);
            log_singular(b, lever(m, liveliness(m, step), m->phi));
        }
    }
    log_out_of_reach(b, m, after);
    return bl_log_error(b, ". Take a smaller step or more substeps, or dimensions farther from a singular position.");
}

int mb_fail_implicit(bl_block *b, mb_view *m, double t, double h, const double *q, const double *v) {
    const double *flags = m->implicit.flags;
    if (mb_has_formula_fault(m)) return mb_fail_formula(b, m);
    if (m->filmless_bearing >= 0) return mb_fail_bearing(b, m, m->filmless_bearing, t + h);
    if (m->diverging_friction >= 0) return mb_fail_joint_friction(b, m, m->diverging_friction, t + h);
    bl_log(b,
           "the implicit step of %.3g s from t = %.9g s does not converge, nor do parts of it down to %.2g s: after "
           "%.0f iterations"
           " accelerations still change by %.2g",
           h, t, h * MB_SMALLEST_PART, flags[MB_IMPLICIT_ITERATIONS], flags[MB_IMPLICIT_RESIDUAL]);
    mb_named_gap open[MB_NAMED_GAPS];
    mb_kinematics(m, t + h, q, v);
    find_open(m, m->phi, open);
    if (m->row_count > 0 && isfinite(gap_size(open[0].gap)) && gap_size(open[0].gap) > 1e-10) {
        bl_log(b, "; ");
        log_joints(b, m, open, "stays open by", "");
        log_out_of_reach(b, m, open);
    }
    return bl_log_error(
        b, ". Take a smaller step or more substeps, and look for a force that jumps or a singular position.");
}

/* The change from q to q_end, as speeds times time. */
static void coordinate_change(const mb_view *m, const double *q, const double *q_end, double *out) {
    for (int32_t l = 0; l < m->link_count; l++) {
        const int32_t *link = m->links + l * MB_LINK_FIELDS;
        const double *from = q + link[MB_LINK_Q], *to = q_end + link[MB_LINK_Q];
        double *change = out + link[MB_LINK_V];
        if (link[MB_LINK_TYPE] == MB_SPHERICAL) { /* twice the vector of from⁻¹ to */
            for (int k = 0; k < 3; k++) change[k] = 2.0 * (from[0] * to[k + 1] - to[0] * from[k + 1]);
            double across[3];
            mb_cross(from + 1, to + 1, across);
            for (int k = 0; k < 3; k++) change[k] -= 2.0 * across[k];
        } else if (link[MB_LINK_TYPE] != MB_FIXED) {
            *change = *to - *from;
        }
    }
}

/* Accelerations are reported if iterating further would change them by more than this part of the largest one. */
static const double UNCONVERGED = 1e-6;
void mb_watch_iteration(mb_view *m, double t) {
    const double error = m->status[MB_STATUS_ERROR];
    double *monitor = m->monitor;
    if (!(error > UNCONVERGED)) return;
    if (monitor[MB_MONITOR_UNCONVERGED] == 0.0) monitor[MB_MONITOR_UNCONVERGED_FIRST] = t;
    monitor[MB_MONITOR_UNCONVERGED] += 1.0;
    if (!(error > monitor[MB_MONITOR_ERROR])) return;
    monitor[MB_MONITOR_ERROR] = error;
    monitor[MB_MONITOR_ERROR_TIME] = t;
}

static void diagnose_unconverged(const bl_block *b, const mb_view *m) {
    const double *monitor = m->monitor, count = monitor[MB_MONITOR_UNCONVERGED];
    if (!(count > 0.0)) return;
    bl_log(
        b,
        "the accelerations did not converge in %.0f evaluation%s, first at t = %.6g s: near t = %.6g s they may be "
        "wrong by"
        " %.2g of the largest, because constraints are almost dependent there. Avoid this pose, or remove constraints"
        " that almost repeat others. ",
        count, count > 1.0 ? "s" : "", monitor[MB_MONITOR_UNCONVERGED_FIRST], monitor[MB_MONITOR_ERROR_TIME],
        monitor[MB_MONITOR_ERROR]);
}

/* Records a step that was too large; requires the state before the projection in m->saved_state. */
void mb_watch_step(mb_view *m, double t, double h, const double *q, const double *v) {
    double *monitor = m->monitor, *change = m->saved_state + m->nq + m->nv;
    const double *q_before = m->saved_state, *v_before = m->saved_state + m->nq;
    monitor[MB_MONITOR_STEP_TOO_LARGE] = 0.0;
    monitor[MB_MONITOR_FASTEST] = fmax(monitor[MB_MONITOR_FASTEST], fmax(liveliness(m, v), liveliness(m, v_before)));
    const double most = STEP_TOO_LARGE * STEP_TOO_LARGE * monitor[MB_MONITOR_FASTEST];
    for (int32_t k = 0; k < m->nv; k++) change[k] = v[k] - v_before[k];
    const double faster = liveliness(m, change);
    coordinate_change(m, q_before, q, change);
    const double moved = liveliness(m, change) / (h * h);
    if (!(moved > most || faster > most)) return;
    mb_kinematics(m, t, q_before, v_before);
    mb_named_gap open[MB_NAMED_GAPS], parting[MB_NAMED_GAPS];
    find_open(m, m->phi, open);
    find_open(m, m->phi_rate, parting);
    if (!(gap_size(open[0].gap) > ROUNDING || gap_size(parting[0].gap) > ROUNDING)) return;
    /* Where all positions are closed, no joint is the most open one. */
    const int32_t joint = gap_size(open[0].gap) > 0.0 ? open[0].joint : parting[0].joint;
    if (is_moved(m, joint - m->link_count)) return;
    monitor[MB_MONITOR_STEP_TOO_LARGE] = 1.0;
    if (monitor[MB_MONITOR_COUNT] == 0.0) monitor[MB_MONITOR_FIRST] = t;
    monitor[MB_MONITOR_COUNT] += 1.0;
    monitor[MB_MONITOR_LEVER] =
        fmax(monitor[MB_MONITOR_LEVER], fmax(lever(m, h * h * moved, m->phi), lever(m, faster, m->phi_rate)));
    const double part = sqrt(fmax(moved, faster) / monitor[MB_MONITOR_FASTEST]);
    if (!(part > monitor[MB_MONITOR_PART])) return;
    monitor[MB_MONITOR_PART] = part;
    monitor[MB_MONITOR_TIME] = t;
    monitor[MB_MONITOR_JOINT] = joint;
    monitor[MB_MONITOR_LENGTH] = open[0].gap.length;
    monitor[MB_MONITOR_ANGLE] = open[0].gap.angle;
}

/* Isolated steps, at jumps of a load, are not reported. */
static const double UNRESOLVED_LEAST = 3.0, UNRESOLVED_PART = 0.05;
static void diagnose_unresolved(const bl_block *b, const mb_view *m) {
    const double *films = m->thinned, count = films[MB_FILMS_UNRESOLVED], number = films[MB_FILMS_FORCE];
    if (!(count >= UNRESOLVED_LEAST && count > UNRESOLVED_PART * films[MB_FILMS_COMPARED])) return;
    if (!(number >= 0.0 && number < m->head[MB_FORCES])) return; /* from a saved state, which may hold anything */
    if (m->forces[(int32_t)number * MB_FORCE_FIELDS + MB_FORCE_TYPE] != MB_BEARING) return;
    char name[MB_NAME_SIZE];
    force_name(m, (int32_t)number, name);
    bl_log(b,
           "the film of `%s` was too stiff for explicit steps in %.0f of %.0f steps that were checked, first at t = "
           "%.6g s: its"
           " thickness and force are wrong. Take a smaller step, or mode='internal' with integrator='implicit'. ",
           name, count, films[MB_FILMS_COMPARED], films[MB_FILMS_FIRST]);
}

/* The film that was deepest below its limit, as a part of its clearance, and how many others were below theirs. */
void mb_diagnose_films(const bl_block *b, const mb_view *m) {
    if (!mb_has_element(m, MB_BEARING)) return;
    diagnose_unresolved(b, m);
    const double *thinned = m->thinned + MB_FILMS_SIZE, *worst = NULL;
    double least = INFINITY;
    int32_t number = -1, count = 0;
    bl_film_bearing bearing = {.clearance = 0.0};
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = m->forces + n * MB_FORCE_FIELDS;
        if (force[MB_FORCE_TYPE] != MB_BEARING) continue;
        const bl_film_bearing film = mb_bearing_read(m, force);
        const double part = thinned[BL_THINNED_LEAST] / film.clearance;
        if (thinned[BL_THINNED_STEPS] > 0.0) {
            count++;
            if (part < least) least = part, worst = thinned, number = n, bearing = film;
        }
        thinned += MB_FILM_MEMORY;
    }
    if (!worst) return;
    char name[MB_NAME_SIZE];
    force_name(m, number, name);
    bl_log(b, "the film of `%s` ", name);
    bl_film_say_thin(b, &bearing, worst);
    if (count > 1)
        bl_log(b, " So %s %d other film%s, less far.", count > 2 ? "were" : "was", (int)count - 1,
               count > 2 ? "s" : "");
    bl_log(b, " ");
}

/* Contacts whose friction was left out. */
static void diagnose_paradoxes(bl_block *b, const mb_view *m) {
    for (int32_t n = 0; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n), force = m->rows[row * MB_ROW_FIELDS + MB_ROW_A];
        const double count = m->contacts[(mb_rigid_of(m, row) - m->rigid) * MB_CONTACT_MEMORY + MB_CONTACT_PARADOXES];
        if (!(count > 0.0)) continue;
        char name[MB_NAME_SIZE];
        force_name(m, force, name);
        bl_log(b,
               "the friction of `%s` had no solution with rigid bodies in %.0f step%s and was left out there: a "
               "compliant contact has one.",
               name, count, count > 1.0 ? "s" : "");
        return; /* one is enough to look there */
    }
}

/* Compliant contacts in too few steps. */
static void diagnose_brief(bl_block *b, const mb_view *m) {
    if (bl_has_adaptive_steps(b) && !m->head[MB_INTERNAL]) return;
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = mb_force_record(m, n), type = force[MB_FORCE_TYPE];
        if (type != MB_CONTACT && type != MB_TOUCH && type != MB_TOUCHES && type != MB_WORN) continue;
        const double *contact = m->contacts + force[MB_FORCE_EXTRA] * MB_CONTACT_MEMORY;
        if (!mb_is_brief(contact, b->dt)) continue;
        char name[MB_NAME_SIZE];
        force_name(m, n, name);
        bl_log(b,
               "steps are too coarse for `%s`: %.0f of its %.0f contacts lasted for at most 6 steps, the longest of "
               "these for "
               "%.2g s (until t = %.6g s). Their forces and restitution are wrong: take steps of up to %.1g s, "
               "mode='internal' with more substeps, or a softer contact. ",
               name, contact[MB_CONTACT_BRIEF], contact[MB_CONTACT_PARTED], contact[MB_CONTACT_BRIEF_LENGTH],
               contact[MB_CONTACT_BRIEF_TIME], 0.1 * contact[MB_CONTACT_BRIEF_LENGTH]);
        return; /* the others need shorter steps, too */
    }
}

/* Capsules that lie along each other. */
static void diagnose_lying(bl_block *b, const mb_view *m) {
    for (int32_t n = m->rigid_flat; n < m->rigid_count; n++) {
        const int32_t row = mb_rigid_row(m, n), force = m->rows[row * MB_ROW_FIELDS + MB_ROW_A];
        const double count = m->contacts[(mb_rigid_of(m, row) - m->rigid) * MB_CONTACT_MEMORY + MB_CONTACT_JUMPS];
        if (!(count > 0.0)) continue;
        char name[MB_NAME_SIZE];
        force_name(m, force, name);
        bl_log(
            b,
            "the place where the capsules of `%s` touch went by more than their radius in %.0f step%s: they lie along "
            "each other, where one place holds too little, and its normal force and friction are wrong. Take a "
            "compliant contact of a sphere at each end of one of them.",
            name, count, count > 1.0 ? "s" : "");
        return;
    }
}

/* Angles whose turns are in doubt. */
static void diagnose_turned(bl_block *b, const mb_view *m) {
    if (m->head[MB_MEASURES] == 0 || !(m->turned[MB_TURNED_OFF] > 0.0)) return;
    const double which = m->turned[MB_TURNED_WHICH]; /* from a saved state, which may hold anything */
    if (!(which >= 0.0 && which < m->head[MB_MEASURES])) return;
    const int32_t *measure = m->measures + (int32_t)which * MB_MEASURE_FIELDS;
    char name[MB_NAME_SIZE] = "bushing";
    for (int32_t c = 0; c < m->cut_count; c++) {
        const int32_t *row = m->rows + m->cuts[c * MB_CUT_FIELDS + MB_CUT_ROW] * MB_ROW_FIELDS;
        if (mb_coordinate_row_of(m, c) || row[MB_ROW_I] != measure[MB_MEASURE_I] ||
            row[MB_ROW_J] != measure[MB_MEASURE_J])
            continue;
        mb_joint_name(m, m->link_count + c, name);
        break;
    }
    bl_log(b,
           "the angle of `%s` may have lost or gained whole turns: in the step to t = %.9g s it differed by %.3g rad "
           "from what its speeds before"
           " and after predict. Take a smaller step or more substeps. ",
           name, m->turned[MB_TURNED_WHEN], m->turned[MB_TURNED_OFF]);
}

/* Of jumps of one kind, the largest. */
static void diagnose_jump(bl_block *b, const mb_view *m, const double *worst, const char *what, const char *unit,
                          const char *follows) {
    const double which = worst[MB_JUMP_WHICH]; /* from a saved state, which may hold anything */
    if (!(worst[MB_JUMP_COUNT] > 0.0) || !(which >= 0.0 && which < m->head[MB_MOTION_LAWS])) return;
    char name[MB_NAME_SIZE];
    mb_joint_name(m, after_forces(m) + m->body_count + (int32_t)which, name);
    bl_log(b, "%s `%s` jumps by %.4g %s in the step to t = %.9g s", what, name, worst[MB_JUMP_SIZE], unit,
           worst[MB_JUMP_WHEN]);
    if (worst[MB_JUMP_COUNT] > 1.0) bl_log(b, ", the largest of %.0f jumps", worst[MB_JUMP_COUNT]);
    bl_log(b, "%s", follows);
}

/* Prescribed motion that is not smooth. */
static void diagnose_jumps(bl_block *b, const mb_view *m) {
    if (m->head[MB_MOTION_LAWS] == 0) return;
    diagnose_jump(b, m, m->jumps + MB_JUMP_PLACE, "the prescribed motion", "m or rad",
                  ": bodies follow instantaneously, and efforts and reactions do not include it. Use a law without "
                  "jumps, such as a Table with interpolation='cubic', or"
                  " a smaller step; connect rate and acceleration of an input. ");
    if (m->jumps[MB_JUMP_PLACE + MB_JUMP_COUNT] > 0.0) return;
    diagnose_jump(b, m, m->jumps + MB_JUMP_RATE, "the rate of the prescribed motion", "m/s or rad/s",
                  ": that is an impulse, which no effort or reaction shows. Use a law with a continuous rate, such as "
                  "a Table with"
                  " interpolation='cubic'; connect the acceleration of an input. ");
}

/* Outputs that rigid bodies leave open. */
static void diagnose_shared(bl_block *b, const mb_view *m) {
    if (m->head[MB_JOINTS] == 0 || !(m->shared[MB_SHARED_WORST] > 0.0)) return;
    const double output = m->shared[MB_SHARED_OUTPUT]; /* from a saved state, which may hold anything */
    if (!(output >= 0.0 && output < m->head[MB_OUTPUTS])) return;
    const int32_t *out = m->outputs + (int32_t)output * MB_OUT_FIELDS;
    const int32_t row = mb_effort_row(m, out);
    const bool effort = row >= 0, force = out[MB_OUT_TYPE] == MB_OUT_REACTION_FORCE;
    int32_t joint = out[MB_OUT_INDEX];
    for (int32_t c = 0; effort && c < m->cut_count; c++)
        if (m->cuts[c * MB_CUT_FIELDS + MB_CUT_ROW] == row) joint = m->link_count + c;
    if (joint < 0 || joint >= m->link_count + m->cut_count) return;
    char name[MB_NAME_SIZE];
    mb_joint_name(m, joint, name);
    bl_log(b,
           "reactions of redundant joints are not unique, and `%s.%s` is one of them: at t = %.9g s %.4g of its %.4g%s "
           "depend on how joints share"
           " the load, which follows from a rule (minimum norm) and not from rigid-body mechanics. Use joints that "
           "constrain less"
           " (System.report() lists the redundant ones), or give all joints a System.joint_stiffness(). ",
           name,
           out[MB_OUT_TYPE] == MB_OUT_ELEMENT ? "first_effort"
           : effort                           ? "effort"
           : force                            ? "force"
                                              : "torque",
           m->shared[MB_SHARED_TIME], m->shared[MB_SHARED_PART], m->shared[MB_SHARED_WHOLE],
           effort  ? ""
           : force ? " N"
                   : " N m");
}

void mb_diagnose_run(bl_block *b, mb_view *m) {
    diagnose_paradoxes(b, m);
    diagnose_brief(b, m);
    diagnose_lying(b, m);
    diagnose_turned(b, m);
    mb_diagnose_angles(b, m);
    diagnose_jumps(b, m);
    diagnose_shared(b, m);
    diagnose_unconverged(b, m);
    const double *monitor = m->monitor;
    const double joint = monitor[MB_MONITOR_JOINT]; /* from a saved state, which may hold anything */
    if (!(monitor[MB_MONITOR_COUNT] > 0.0) || !(joint >= 0.0 && joint < m->link_count + m->cut_count)) return;
    char name[MB_NAME_SIZE];
    mb_joint_name(m, (int32_t)joint, name);
    bl_log(b, "the motion was not resolved in %.0f step%s. The worst led to t = %.9g s: `%s` was open by ",
           monitor[MB_MONITOR_COUNT], monitor[MB_MONITOR_COUNT] > 1.0 ? "s" : "", monitor[MB_MONITOR_TIME], name);
    log_gap(b, (mb_gap){monitor[MB_MONITOR_LENGTH], monitor[MB_MONITOR_ANGLE]}, "");
    bl_log(b, ", and closing it changed the motion by %.2g %% of the fastest so far (up to %g %% passes)",
           100.0 * monitor[MB_MONITOR_PART], 100.0 * STEP_TOO_LARGE);
    log_singular(b, monitor[MB_MONITOR_LEVER]);
    bl_log(b, ". Energies and derived results are inaccurate: use a smaller step or more substeps.");
}

void mb_velocity_gap(const mb_view *m, int32_t l, double *turn, double *move) {
    const int32_t body = m->links[l * MB_LINK_FIELDS + MB_LINK_BODY];
    const mb_link_state *s = &m->link[l];
    memset(turn, 0, 3 * sizeof(double));
    memset(move, 0, 3 * sizeof(double));
    if (body < 0) return;
    double arm[3];
    mb_rotate(s->R, m->data[l].p_body, arm); /* from the link's origin to the body's */
    mb_sub(m->body[body].w, s->w, turn);
    mb_sub(m->body[body].v, s->v, move);
    double carried[3];
    mb_cross(m->body[body].w, arm, carried);
    mb_sub(move, carried, move);
}

/* The link of the body that the joint of link `l` hangs on; -1 is the ground. */
static int32_t parent_body(const mb_view *m, int32_t l) {
    do l = m->links[l * MB_LINK_FIELDS + MB_LINK_PARENT];
    while (l >= 0 && m->links[l * MB_LINK_FIELDS + MB_LINK_BODY] < 0);
    return l;
}

/* Tree joints: what their coordinates could not take of the velocities of their two bodies. */
static void find_velocity_gaps(const mb_view *m, mb_named_gap *gaps) {
    for (int32_t l = 0; l < m->link_count; l++) {
        if (m->links[l * MB_LINK_FIELDS + MB_LINK_BODY] < 0) continue;
        double turn[3], move[3];
        mb_velocity_gap(m, l, turn, move);
        const int32_t up = parent_body(m, l);
        if (up >= 0) {
            double turn_up[3], move_up[3], arm[3];
            mb_velocity_gap(m, up, turn_up, move_up);
            mb_sub(m->link[l].p, m->link[up].p, arm);
            mb_add_cross(turn_up, arm, move_up);
            mb_sub(turn, turn_up, turn);
            mb_sub(move, move_up, move);
        }
        keep_largest(gaps, l, (mb_gap){sqrt(mb_dot(move, move)), sqrt(mb_dot(turn, turn))});
    }
}

/* Displacement of a body from its given pose: the largest of its center of mass, origin and markers, and the rotation of its axes.
   It is 0 for parts that `open` marks as not free. */
static mb_gap body_moved(const mb_view *m, int32_t l, const double *open) {
    const mb_body_data *body = &m->body[m->links[l * MB_LINK_FIELDS + MB_LINK_BODY]];
    const mb_link_state *s = &m->link[l];
    double R[9], Q[9], com[3], arm[3], before[3], away[3] = {0, 0, 0};
    mb_multiply(s->R, m->data[l].R_body, R);
    mb_multiply_back(R, body->R, Q);
    mb_rotate(s->R, m->data[l].com, com);
    if (open[0] != 0.0) {
        mb_rotate(body->R, body->com, before);
        for (int k = 0; k < 3; k++) away[k] = s->p[k] + com[k] - body->p[k] - before[k];
    }
    mb_gap gap = {sqrt(mb_dot(away, away)), 0.0};
    if (open[1] == 0.0) return gap;
    gap.angle = mb_turn_angle(Q);
    if (gap.angle < ROUNDING) return gap;
    for (int32_t k = -1; k < m->marker_count; k++) {
        if (k >= 0 && m->markers[k * MB_MARKER_FIELDS + MB_MARKER_LINK] != l) continue;
        mb_sub(k < 0 ? m->data[l].p_body : m->marker_data[k].p, m->data[l].com, arm);
        mb_rotate(s->R, arm, arm); /* from the center of mass, in the present pose */
        mb_rotate_back(Q, arm, before);
        double way[3];
        for (int c = 0; c < 3; c++) way[c] = away[c] + arm[c] - before[c];
        gap.length = fmax(gap.length, sqrt(mb_dot(way, way)));
    }
    return gap;
}

static void log_bodies(const bl_block *b, const mb_view *m, const mb_named_gap *gaps, const char *verb,
                       const char *rate) {
    mb_named_gap named[MB_NAMED_GAPS];
    memcpy(named, gaps, sizeof named);
    for (int n = 0; n < MB_NAMED_GAPS; n++) named[n].joint += after_forces(m);
    log_joints(b, m, named, verb, rate);
}

static bool is_moved_far(mb_gap gap, double size) {
    return gap.length > REPORTED_MOTION * size || gap.angle > REPORTED_MOTION;
}

/* Bodies that were moved although joints, drivers and prescribed coordinates leave them free. */
static bool diagnose_positions(bl_block *b, mb_view *m, double t, const double *q, const double *v) {
    static const double all[2] = {1.0, 1.0};
    const double size = mb_given_size(m);
    mb_named_gap gaps[MB_NAMED_GAPS];
    bool any = false;
    mb_kinematics(m, t, q, v);
    for (int32_t l = 0; l < m->link_count && !any; l++)
        any = m->links[l * MB_LINK_FIELDS + MB_LINK_BODY] >= 0 && is_moved_far(body_moved(m, l, all), size);
    if (!any) return false;
    mb_find_freedom(m, t, q, false, m->start.open);
    mb_kinematics(m, t, q, v);
    memset(gaps, 0, sizeof gaps);
    for (int32_t l = 0; l < m->link_count; l++) {
        const int32_t body = m->links[l * MB_LINK_FIELDS + MB_LINK_BODY];
        if (body < 0) continue;
        const mb_gap gap = body_moved(m, l, m->start.open + 2 * body);
        if (is_moved_far(gap, size)) keep_largest(gaps, body, gap);
    }
    if (!(gap_size(gaps[0].gap) > 0.0)) return false;
    bl_log(b, "the positions given do not fit its joints and drivers. The nearest that do are taken: ");
    log_bodies(b, m, gaps, "is moved by", "");
    bl_log(b, ". Correct them, or keep joint coordinates with initial=…; System.report() shows what was open.");
    return true;
}

/* Difference between the velocities of a body, at its center of mass, and those given; 0 for parts that are not free. Requires
   velocities. */
static mb_gap body_changed(const mb_view *m, int32_t l, const double *open) {
    const mb_body_data *body = &m->body[m->links[l * MB_LINK_FIELDS + MB_LINK_BODY]];
    const mb_link_state *s = &m->link[l];
    double arm[3], turn[3], move[3], given[3];
    mb_rotate(s->R, m->data[l].com, arm);
    mb_copy(s->v, move);
    mb_add_cross(s->w, arm, move);
    mb_rotate(body->R, body->com, arm);
    mb_copy(body->v, given);
    mb_add_cross(body->w, arm, given);
    mb_sub(body->w, s->w, turn);
    mb_sub(given, move, move);
    return (mb_gap){open[0] != 0.0 ? sqrt(mb_dot(move, move)) : 0.0, open[1] != 0.0 ? sqrt(mb_dot(turn, turn)) : 0.0};
}

static double body_speed(const mb_body_data *body) {
    return fmax(sqrt(mb_dot(body->v, body->v)), sqrt(mb_dot(body->w, body->w)));
}

/* The bodies whose velocities were changed the most, of those given in motion or of those at rest that are free. */
static void find_changed(mb_view *m, double t, const double *q, const double *v, bool at_rest, double limit,
                         mb_named_gap *gaps) {
    double *open = m->start.open;
    for (int32_t k = 0; k < 2 * m->body_count; k++) open[k] = 1.0;
    if (at_rest) mb_find_freedom(m, t, q, true, open);
    mb_kinematics(m, t, q, v);
    memset(gaps, 0, MB_NAMED_GAPS * sizeof *gaps);
    for (int32_t l = 0; l < m->link_count; l++) {
        const int32_t body = m->links[l * MB_LINK_FIELDS + MB_LINK_BODY];
        if (body < 0 || (body_speed(&m->body[body]) == 0.0) != at_rest) continue;
        const mb_gap gap = body_changed(m, l, open + 2 * body);
        if (gap_size(gap) > limit) keep_largest(gaps, body, gap);
    }
}

/* Whether the velocities given do not fit the joints at the initial pose; with the joints that would open. */
static bool find_opening(mb_view *m, double t, const double *q, double fastest, mb_named_gap *gaps) {
    double *given_q = m->saved_state, *v = m->saved_state + m->nq;
    mb_pose_from_bodies(m, given_q, v);
    mb_kinematics(m, t, q, v);
    for (int32_t k = 0; k < m->row_count; k++) { /* what stands still may be set in motion by its driver */
        const int32_t *row = m->rows + k * MB_ROW_FIELDS;
        if (row[MB_ROW_TYPE] == MB_ROW_DRIVER && v[row[MB_ROW_A]] == 0.0) m->phi_rate[k] = 0.0;
    }
    find_open(m, m->phi_rate, gaps);
    find_velocity_gaps(m, gaps);
    return gap_size(gaps[0].gap) > PRINTED_DIGITS * fastest;
}

static bool keeps_speeds(const mb_view *m) {
    for (int32_t n = 0; n < m->keep_count; n++)
        if (mb_keep_record(m, n)[MB_KEEP_RATE] != 0) return true;
    return false;
}

/* Velocities that violate joints, drivers or prescribed speeds; and bodies given at rest that receive an impulse. */
static void diagnose_velocities(bl_block *b, mb_view *m, double t, const double *q, const double *v,
                                const char *before) {
    static const double all[2] = {1.0, 1.0};
    mb_named_gap gaps[MB_NAMED_GAPS], changed[MB_NAMED_GAPS];
    double fastest = 0.0, found = 0.0;
    mb_kinematics(m, t, q, v);
    for (int32_t l = 0; l < m->link_count; l++) {
        const int32_t body = m->links[l * MB_LINK_FIELDS + MB_LINK_BODY];
        if (body < 0) continue;
        const double speed = body_speed(&m->body[body]);
        fastest = fmax(fastest, speed);
        found = fmax(found, speed > 0.0 ? 0.0 : gap_size(body_changed(m, l, all)));
    }
    if (fastest > 0.0) {
        if (keeps_speeds(m)) {
            find_changed(m, t, q, v, false, PRINTED_DIGITS * fastest, changed);
            if (gap_size(changed[0].gap) > 0.0) {
                bl_log(b, "%sthe velocities given do not fit the prescribed initial speeds: ", before);
                log_bodies(b, m, changed, "is changed by", "/s");
                bl_log(b, ".");
                return;
            }
        } else if (find_opening(m, t, q, fastest, gaps)) {
            bl_log(b, "%sthe velocities given do not fit its joints: ", before);
            log_joints(b, m, gaps, "would open by", "/s");
            bl_log(b, ". The run starts with the nearest that do, those of System.assemble(): ");
            mb_named_gap rest[MB_NAMED_GAPS];
            find_changed(m, t, q, v, false, PRINTED_DIGITS * fastest, changed);
            find_changed(m, t, q, v, true, PRINTED_DIGITS * fastest, rest);
            for (int n = 0; n < MB_NAMED_GAPS; n++) keep_largest(changed, rest[n].joint, rest[n].gap);
            log_bodies(b, m, changed, "is changed by", "/s");
            bl_log(b, ". To keep a speed, give initial={\"joint.speed\": …}.");
            return;
        }
    }
    if (!(found > 0.0)) return;
    find_changed(m, t, q, v, true, PRINTED_DIGITS * fmax(found, fastest), changed);
    if (!(gap_size(changed[0].gap) > 0.0)) return;
    bl_log(b, "%sit starts with an impulse: ", before);
    log_bodies(b, m, changed, "was given at rest and gets", "/s");
    bl_log(b,
           ", because a driver, a moving marker or a prescribed speed is nonzero at t = %.9g s. Give velocities or "
           "initial=…, or let the"
           " motion start from rest.",
           t);
}

/* Reports the differences between the initial state and the given one. */
void mb_diagnose_start(bl_block *b, mb_view *m, double t, const double *q, const double *v) {
    diagnose_velocities(b, m, t, q, v, diagnose_positions(b, m, t, q, v) ? " " : "");
    mb_diagnose_deviations(b, m, t, q);
}
