/* What all oil films share: the guard for thin films, contact, friction, loss. */
#include "blocks/bearings/film.h"
#include "blocks/core/kernel/constants.h"

#include <math.h>

int bl_film_sound(const bl_film_bearing *b) {
    return b->radius > 0.0 && b->length > 0.0 && b->clearance > 0.0 && b->viscosity > 0.0 && b->film_limit >= 0.0 &&
           (b->film_limit > 0.0 || b->thin == BL_THIN_STOP) && b->film_limit < b->clearance &&
           b->contact_stiffness >= 0.0 && b->contact_damping >= 0.0 && b->contact_friction >= 0.0 &&
           b->slip_speed > 0.0 && isfinite(b->radius) && isfinite(b->length) && isfinite(b->clearance) &&
           isfinite(b->viscosity) && isfinite(b->contact_stiffness) && isfinite(b->contact_damping) &&
           isfinite(b->contact_friction) && isfinite(b->slip_speed);
}

int bl_film_fail(const bl_block *b, const bl_film_bearing *f) {
    return bl_log_error(
        b,
        "make no bearing: radius %.4g m, length %.4g m, clearance %.4g m, viscosity %.4g Pa s, film_limit %.4g m, "
        "contact_stiffness %.4g N/m, contact_damping %.4g s/m, contact_friction %.4g, slip_speed %.4g m/s. All are "
        "finite; "
        "radius, length, clearance, viscosity and slip_speed are positive, the others not negative, and the limit is "
        "below "
        "the clearance",
        f->radius, f->length, f->clearance, f->viscosity, f->film_limit, f->contact_stiffness, f->contact_damping,
        f->contact_friction, f->slip_speed);
}

double bl_film_bound(const bl_film_bearing *b) { return b->thin == BL_THIN_EXPECTED ? -b->clearance : b->film_limit; }

void bl_film_count_thin(double bound, double t, double duration, double thickness, double *thinned) {
    if (!(thickness < bound)) return;
    if (!(thinned[BL_THINNED_STEPS] > 0.0)) {
        thinned[BL_THINNED_FIRST] = t;
        thinned[BL_THINNED_LEAST] = INFINITY;
    }
    thinned[BL_THINNED_STEPS] += 1.0;
    thinned[BL_THINNED_SECONDS] += duration;
    if (!(thickness < thinned[BL_THINNED_LEAST])) return;
    thinned[BL_THINNED_LEAST] = thickness;
    thinned[BL_THINNED_WHEN] = t;
}

void bl_film_say_thin(const bl_block *b, const bl_film_bearing *f, const double *thinned) {
    const double least = thinned[BL_THINNED_LEAST];
    const int expected = f->thin == BL_THIN_EXPECTED;
    bl_log(b, "was thinner than %s, %.3g m, for %.3g s, first at t = %.6g s, and thinnest at t = %.6g s: %.3g m",
           expected ? "minus its clearance" : "its `film_limit`", bl_film_bound(f), thinned[BL_THINNED_SECONDS],
           thinned[BL_THINNED_FIRST], thinned[BL_THINNED_WHEN], least);
    if (least < 0.0) bl_log(b, ", %.3g clearances beyond the bush", -least / f->clearance);
    bl_log(b, expected ? ". Its contact is too soft for the load, or the step too long."
                       : ". There a contact law carries the load, not the film. Check load, speed, viscosity and step; "
                         "contact=None stops a"
                         " run there, Contact(expected=True) allows it.");
}

static int film_motion_finite(const bl_film_motion *m) {
    double sum = 0.0 * m->journal_speed + 0.0 * m->bush_speed;
    for (int k = 0; k < 2; k++) sum += 0.0 * m->x[k] + 0.0 * m->y[k] + 0.0 * m->vx[k] + 0.0 * m->vy[k];
    return sum == 0.0;
}

/* A bush that is not round, at edge j of its n_z + 1 along: what it leaves to a journal in the middle. */
static double film_bush_gap(const bl_film_bearing *b, const bl_film_grid *grid, int32_t i, int32_t j) {
    return b->clearance + grid->bush[grid->n_theta * grid->n_z + i * (grid->n_z + 1) + j];
}
/* How far the journal reaches toward an angle, at a part z of the length. */
static double film_bush_reach(const bl_film_motion *m, double z, double cosine, double sine) {
    return (m->x[0] + (m->x[1] - m->x[0]) * z) * cosine + (m->y[0] + (m->y[1] - m->y[0]) * z) * sine;
}

/* What guards a film: its least thickness, and the part of the offset at each end that leaves it as thin as its limit. */
typedef struct {
    double thickness, part[2];
    int clear; /* whether a journal in the middle has a film */
} film_guard;

static film_guard film_guard_round(const bl_film_bearing *b, const bl_film_motion *m) {
    film_guard guard = {.thickness = INFINITY, .clear = 1};
    for (int k = 0; k < 2; k++) {
        const double e = hypot(m->x[k], m->y[k]), reach = b->clearance - b->film_limit;
        guard.thickness = fmin(guard.thickness, b->clearance - e);
        guard.part[k] = e > reach ? reach / e : 1.0;
    }
    return guard;
}

/* One point of a noncircular bush: its gap, and the reach of the journal there. */
static void film_guard_place(const bl_film_bearing *b, double room, double reach, film_guard *guard) {
    guard->thickness = fmin(guard->thickness, room - reach);
    if (!(room > b->film_limit)) guard->clear = 0;
    if (reach * guard->part[0] > room - b->film_limit) guard->part[0] = (room - b->film_limit) / reach;
}

/* Looks wherever the equations have a gap: between cells along, and between columns. */
static film_guard film_guard_bush(const bl_film_bearing *b, const bl_film_motion *m, const bl_film_grid *grid) {
    film_guard guard = {.thickness = INFINITY, .part = {1.0, 1.0}, .clear = 1};
    const double half = BL_PI / grid->n_theta;
    for (int32_t i = 0; i < grid->n_theta; i++) {
        const double cosine = cos((2 * i + 1) * half), sine = sin((2 * i + 1) * half);
        const double cos_face = cos((2 * i + 2) * half), sin_face = sin((2 * i + 2) * half);
        for (int32_t j = 0; j <= grid->n_z; j++)
            film_guard_place(b, film_bush_gap(b, grid, i, j), film_bush_reach(m, (double)j / grid->n_z, cosine, sine),
                             &guard);
        for (int32_t j = 0; j < grid->n_z; j++)
            film_guard_place(b, b->clearance + grid->bush[i * grid->n_z + j],
                             film_bush_reach(m, ((double)j + 0.5) / grid->n_z, cos_face, sin_face), &guard);
    }
    guard.part[1] = guard.part[0];
    return guard;
}

/* ∫∫ dθ dz / h over a film in a bush that is not round: a sum. */
static double film_couette_bush(const bl_film_bearing *b, const bl_film_motion *m, const bl_film_grid *grid) {
    double sum = 0.0;
    for (int32_t i = 0; i < grid->n_theta; i++) {
        const double angle = ((double)i + 0.5) * 2.0 * BL_PI / grid->n_theta, cosine = cos(angle), sine = sin(angle);
        for (int32_t j = 0; j <= grid->n_z; j++) {
            const double h = film_bush_gap(b, grid, i, j) - film_bush_reach(m, (double)j / grid->n_z, cosine, sine);
            sum += (j == 0 || j == grid->n_z ? 0.5 : 1.0) / h;
        }
    }
    return sum * 2.0 * BL_PI * b->length / ((double)grid->n_theta * grid->n_z);
}

/* ∫∫ dθ dz / h over the whole film: 2π ∫ dz / √(c² - e²), where e² is a quadratic in z. */
static double film_couette(const bl_film_bearing *b, const bl_film_motion *m, const bl_film_grid *grid) {
    if (grid && grid->bush) return film_couette_bush(b, m, grid);
    double roots = 0.0;
    for (int k = 0; k < 2; k++) {
        const double e = hypot(m->x[k], m->y[k]);
        roots += sqrt((b->clearance - e) * (b->clearance + e));
    }
    const double tilt = hypot(m->x[1] - m->x[0], m->y[1] - m->y[0]);
    const double mean = tilt > 1e-9 * roots ? 2.0 / tilt * atan(tilt / roots) : 2.0 / roots;
    return 2.0 * BL_PI * b->length * mean;
}

static double film_friction(const bl_film_bearing *b, const bl_film_motion *m, const bl_film_grid *grid,
                            const double force[2], double twist) {
    const double slip = m->journal_speed - m->bush_speed, r = b->radius;
    const double shear = b->viscosity * slip * r * r * r;
    if (b->friction == BL_FRICTION_SHEAR) return -shear * film_couette(b, m, grid) - 0.5 * twist;
    if (b->friction == BL_FRICTION_PETROFF) return -shear * 2.0 * BL_PI * b->length / b->clearance;
    if (b->friction == BL_FRICTION_NONE || slip == 0.0) return 0.0;
    const double phi = b->clearance / (b->friction == BL_FRICTION_BY_RADIUS ? r : 2.0 * r);
    const double load = hypot(force[0], force[1]);
    const double s = load / (2.0 * r * b->length) * phi * phi / (b->viscosity * fabs(slip));
    /* f = 3 φ / S is a torque that does not depend on the load, so that it holds without one too. */
    if (s < 1.0) return -6.0 * r * r * b->length * b->viscosity * slip / phi;
    return -copysign(3.0 * phi / sqrt(s) * r * load, slip);
}

/* Journal and bush touch where a film would be thinner than the limit: at end k, or in the middle of a bearing
   without tilt. Adds a normal force, Coulomb friction, and what they lose. */
static void film_touch(const bl_film_bearing *b, const bl_film_motion *m, const film_guard *guard, int k, double share,
                       double z, bl_film_load *load) {
    const double e = hypot(m->x[k], m->y[k]), depth = e * (1.0 - guard->part[k]);
    if (!(depth > 0.0)) return;
    const double nx = m->x[k] / e, ny = m->y[k] / e;
    const double rate = m->vx[k] * nx + m->vy[k] * ny;
    const double slip = m->vy[k] * nx - m->vx[k] * ny + b->radius * m->journal_speed - (b->radius + e) * m->bush_speed;
    const double spring = share * b->contact_stiffness * depth;
    const double normal = fmax(spring * (1.0 + b->contact_damping * rate), 0.0);
    const double friction = -b->contact_friction * normal * tanh(slip / b->slip_speed);
    const double fx = -normal * nx - friction * ny, fy = -normal * ny + friction * nx;
    load->force[0] += fx;
    load->force[1] += fy;
    load->moment[0] -= z * fy;
    load->moment[1] += z * fx;
    load->torque += friction * b->radius;
    load->bush_torque -= friction * (b->radius + e);
    load->power_loss += (normal - spring) * rate - friction * slip;
}

/* The same motion with the ends drawn back to where the film is as thin as its limit, as seen from axes that turn with the bush: so
   all axes see the same film. */
static bl_film_motion film_drawn_back(const film_guard *guard, const bl_film_motion *m) {
    bl_film_motion inside = *m;
    for (int k = 0; k < 2; k++) {
        inside.x[k] *= guard->part[k];
        inside.y[k] *= guard->part[k];
        inside.vx[k] += m->bush_speed * (m->y[k] - inside.y[k]);
        inside.vy[k] -= m->bush_speed * (m->x[k] - inside.x[k]);
    }
    return inside;
}

/* Sums along z of e × w and of w · v, w the force on a slice of the journal, from the wrench. */
static double film_twist(const bl_film_motion *m, double length, const bl_film_load *load) {
    const double tilt_x = (m->x[1] - m->x[0]) / length, tilt_y = (m->y[1] - m->y[0]) / length;
    return m->x[0] * load->force[1] - m->y[0] * load->force[0] - tilt_x * load->moment[0] - tilt_y * load->moment[1];
}
static double film_work(const bl_film_motion *m, double length, const bl_film_load *load) {
    const double turn_x = (m->vx[1] - m->vx[0]) / length, turn_y = (m->vy[1] - m->vy[0]) / length;
    return m->vx[0] * load->force[0] + m->vy[0] * load->force[1] + turn_x * load->moment[1] - turn_y * load->moment[0];
}

static void film_spoil(bl_film_load *load) {
    load->force[0] = load->force[1] = load->moment[0] = load->moment[1] = NAN;
    load->side_flow[0] = load->side_flow[1] = load->supply_flow = load->oil = NAN;
    load->torque = load->bush_torque = load->thickness = load->pressure = load->power_loss = NAN;
}

int bl_film_evaluate(int32_t model, const bl_film_bearing *b, const bl_film_motion *motion, const bl_film_grid *grid,
                     bl_film_load *load) {
    *load = (bl_film_load){.solves = 0};
    if (!bl_film_sound(b)) return BL_ERROR_BLOCK;
    if (!film_motion_finite(motion)) {
        film_spoil(load);
        return BL_OK;
    }
    const film_guard guard = grid && grid->bush ? film_guard_bush(b, motion, grid) : film_guard_round(b, motion);
    load->thickness = guard.thickness;
    load->thin_film = load->thickness < b->film_limit;
    if (!guard.clear) return BL_ERROR_BLOCK;
    if (b->thin == BL_THIN_STOP && !(load->thickness > b->film_limit)) return BL_ERROR_BLOCK;

    const bl_film_motion m = film_drawn_back(&guard, motion);
    int status = BL_OK;
    if (model == BL_FILM_SHORT) bl_film_short(b, &m, load);
    else if (model == BL_FILM_MISALIGNED) bl_film_tilted(b, &m, load);
    else if (model == BL_FILM_LONG) bl_film_long(b, &m, load);
    else status = bl_film_finite(b, &m, grid, load);
    if (status != BL_OK) return status;

    /* Shear is that of the film with its thickness bounded below, but it acts at the actual position of the journal. */
    load->torque = film_friction(b, &m, grid, load->force, film_twist(&m, b->length, load) - load->bush_twist);
    load->bush_torque = -load->torque - film_twist(motion, b->length, load);
    load->power_loss =
        -film_work(motion, b->length, load) - load->torque * m.journal_speed - load->bush_torque * m.bush_speed;

    if (model == BL_FILM_SHORT || model == BL_FILM_LONG) {
        film_touch(b, motion, &guard, 0, 1.0, 0.5 * b->length, load);
    } else {
        film_touch(b, motion, &guard, 0, 0.5, 0.0, load);
        film_touch(b, motion, &guard, 1, 0.5, b->length, load);
    }
    return BL_OK;
}
