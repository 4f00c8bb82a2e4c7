/* Oil films between a journal and its bush, as forces of a mechanism.
 *
 * The marker of the journal is I, that of the bush J, both in the middle of the bearing and with z along its axis. The film is
 * seen from the axes of the bush's marker, in rates that do not turn about z with it: so the spin speeds of both count, as
 * blocks/bearings/film.h has it, and a load that stands still does so in the world.
 *
 * The center line of the journal is cut by the planes of the bush: by that in the middle, or for a film that tilts by those of
 * both ends. What the film does to the journal there, it does to the bush by the opposite in the same line. */
#include <string.h>

#include "blocks/bearings/film.h"
#include "blocks/multibody/kernel/multibody.h"

/* The options of a film, packed: friction, 8 × the low bit of thin, 16 × cavitation, 64 × whether it is squeezed, 128 × whether its
   load, if not squeezed, stands still in axes of the bush instead of the world's, 256 × the high bit of thin; above them the row that
   holds it, see MB_BEARING_ROW_SHIFT. */
static int32_t film_friction_of(int32_t options) { return options & 7; }
static int32_t film_thin_of(int32_t options) { return (options >> 3 & 1) + 2 * (options >> 8 & 1); }
static int32_t film_cavitation_of(int32_t options) { return options >> 4 & 3; }
static int32_t film_squeezed(int32_t options) { return options >> 6 & 1; }
static int32_t film_follows_bush(int32_t options) { return options >> 7 & 1; }

static bool film_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    (void)tally;
    if (!mb_check_markers(b, force) || !mb_check_numbers(b, force, MB_BEARING_NUMBERS)) return false;
    if (!mb_bearing_rows_check(force, b->i + b->i[MB_AT_ROWS], b->i[MB_ROWS], b->i[MB_PLANAR] != 0)) return false;
    const int32_t model = force[MB_FORCE_LAW], options = force[MB_FORCE_EXTRA];
    return (model == BL_FILM_SHORT || model == BL_FILM_MISALIGNED || model == BL_FILM_LONG) && options >= 0 &&
           film_friction_of(options) < BL_FRICTION_COUNT && film_thin_of(options) < BL_THIN_COUNT &&
           film_cavitation_of(options) < BL_CAVITATION_COUNT;
}

bl_film_bearing mb_bearing_read(const mb_view *m, const int32_t *force) {
    const double *p = m->p + force[MB_FORCE_P];
    const int32_t options = force[MB_FORCE_EXTRA];
    return (bl_film_bearing){.radius = p[0],
                             .length = p[1],
                             .clearance = p[2],
                             .viscosity = p[3],
                             .film_limit = p[4],
                             .contact_stiffness = p[5],
                             .contact_damping = p[6],
                             .contact_friction = p[7],
                             .slip_speed = p[8],
                             .friction = film_friction_of(options),
                             .thin = film_thin_of(options),
                             .cavitation = film_cavitation_of(options)};
}

static void film_turning(const mb_view *m, int32_t marker, double *w) {
    const int32_t link = m->markers[marker * MB_MARKER_FIELDS + MB_MARKER_LINK];
    memset(w, 0, 3 * sizeof(double));
    if (link >= 0) mb_copy(m->link[link].w, w);
}

/* Motion of the journal in the film, and the axes and position of the bush. */
static bl_film_motion film_see(const mb_view *m, const int32_t *force, double t, double length, double *R,
                               double *P_bush) {
    const int32_t journal = force[MB_FORCE_I], bush = force[MB_FORCE_J];
    const double squeeze = film_squeezed(force[MB_FORCE_EXTRA]) ? 1.0 : 0.0;
    const bool tilts = force[MB_FORCE_LAW] == BL_FILM_MISALIGNED;
    double P[3], V[3], V_bush[3], w[3], w_bush[3], axes[9], line[3], z[3], d[3];
    mb_marker_motion(m, journal, t, P, V, NULL);
    mb_marker_motion(m, bush, t, P_bush, V_bush, NULL);
    mb_marker_axes(m, journal, axes);
    mb_marker_axes(m, bush, R);
    film_turning(m, journal, w);
    film_turning(m, bush, w_bush);
    mb_column(axes, 2, line);
    mb_column(R, 2, z);
    mb_sub(P, P_bush, d);
    bl_film_motion motion = {.journal_speed = mb_dot(w, z), .bush_speed = mb_dot(w_bush, z)};
    mb_axpy(-motion.bush_speed, z, w_bush);
    for (int k = 0; k < 2; k++) {
        const double along = tilts ? (k == 0 ? -0.5 : 0.5) * length : 0.0,
                     away = (along - mb_dot(d, z)) / mb_dot(line, z);
        double from_journal[3] = {away * line[0], away * line[1], away * line[2]}, from_bush[3], rate[3], carried[3];
        mb_copy(d, from_bush);
        mb_add(from_journal, from_bush);
        mb_sub(V, V_bush, rate);
        mb_add_cross(w, from_journal, rate);
        mb_cross(w_bush, from_bush, carried);
        mb_axpy(-1.0, carried, rate);
        mb_rotate_back(R, from_bush, from_bush);
        mb_rotate_back(R, rate, rate);
        motion.x[k] = from_bush[0], motion.y[k] = from_bush[1];
        motion.vx[k] = squeeze * rate[0], motion.vy[k] = squeeze * rate[1];
    }
    return motion;
}

void mb_bearing_see(const mb_view *m, const int32_t *force, double t, mb_film *film) {
    const int32_t row = mb_bearing_row(force);
    bl_film_motion *motion = &film->motion;
    film->bearing = mb_bearing_read(m, force);
    *motion = film_see(m, force, t, film->bearing.length, film->R, film->P);
    if (film_follows_bush(force[MB_FORCE_EXTRA]) && !film_squeezed(force[MB_FORCE_EXTRA])) {
        motion->journal_speed -= motion->bush_speed;
        motion->bush_speed = 0.0;
    }
    if (row < 0) return;
    double offset[3] = {m->offset[row], m->offset[row + 1], 0.0};
    mb_rotate_back(film->R, offset, offset);
    motion->x[0] = motion->x[1] = offset[0], motion->y[0] = motion->y[1] = offset[1];
    memset(motion->vx, 0, sizeof motion->vx), memset(motion->vy, 0, sizeof motion->vy);
}

int mb_bearing_evaluate(const mb_view *m, const int32_t *force, double t, mb_film *film) {
    mb_bearing_see(m, force, t, film);
    return bl_film_evaluate(force[MB_FORCE_LAW], &film->bearing, &film->motion, NULL, &film->load);
}

static void film_load(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                      double *joint_force) {
    (void)q, (void)v, (void)joint_force;
    mb_film film;
    if (mb_bearing_evaluate(m, force, t, &film) != BL_OK) {
        m->filmless_bearing = mb_element_number(m, force);
        return;
    }
    const bl_film_load *load = &film.load;
    if (mb_bearing_row(force) >= 0) { /* its rows do the rest: on the bush they act in its own middle */
        const double N[3] = {0.0, 0.0, load->torque}, N_bush[3] = {0.0, 0.0, load->bush_torque};
        mb_push(m, force[MB_FORCE_I], NULL, NULL, N);
        mb_push(m, force[MB_FORCE_J], NULL, NULL, N_bush);
        return;
    }
    const bl_film_motion *at = &film.motion;
    const double B = film.bearing.length, tilt[2] = {(at->x[1] - at->x[0]) / B, (at->y[1] - at->y[0]) / B};
    /* About the journal's center at end 1. Along a tilted line, forces have a moment about z too. */
    double F[3] = {load->force[0], load->force[1], 0.0}, P[3] = {at->x[0], at->y[0], -0.5 * B};
    double N[3] = {load->moment[0], load->moment[1],
                   load->torque - tilt[0] * load->moment[0] - tilt[1] * load->moment[1]};
    mb_rotate(film.R, F, F);
    mb_rotate(film.R, N, N);
    mb_rotate(film.R, P, P);
    mb_add(film.P, P);
    const double opposite[3] = {-F[0], -F[1], -F[2]}, opposite_N[3] = {-N[0], -N[1], -N[2]};
    mb_push(m, force[MB_FORCE_I], P, F, N);
    mb_push(m, force[MB_FORCE_J], P, opposite, opposite_N);
}

/* Of the contact: each end of a film that tilts has half of it. */
static double film_energy(const mb_view *m, const int32_t *force, double t, const double *q) {
    (void)q;
    mb_film film;
    double sum = 0.0;
    mb_bearing_see(m, force, t, &film);
    const bl_film_bearing b = film.bearing;
    const bl_film_motion at = film.motion;
    for (int k = 0; k < 2; k++) {
        const double depth = hypot(at.x[k], at.y[k]) - (b.clearance - b.film_limit);
        if (b.thin != BL_THIN_STOP && depth > 0.0) sum += 0.25 * b.contact_stiffness * depth * depth;
    }
    return sum;
}

static double film_loss(mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    (void)q, (void)v;
    mb_film film;
    return mb_bearing_evaluate(m, force, t, &film) == BL_OK ? film.load.power_loss : 0.0;
}

static bool film_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    const bl_film_bearing b = mb_bearing_read(m, force);
    const int limit = b.thin == BL_THIN_STOP ? MB_ALLOWED_NOT_NEGATIVE : MB_ALLOWED_POSITIVE;
    return mb_allow(fault, "radius", b.radius, MB_ALLOWED_POSITIVE) &&
           mb_allow(fault, "length", b.length, MB_ALLOWED_POSITIVE) &&
           mb_allow(fault, "clearance", b.clearance, MB_ALLOWED_POSITIVE) &&
           mb_allow(fault, "viscosity", b.viscosity, MB_ALLOWED_POSITIVE) &&
           mb_allow(fault, "film_limit", b.film_limit, limit) &&
           mb_allow_below(fault, "film_limit", b.film_limit, "clearance", b.clearance) &&
           mb_allow(fault, "contact_stiffness", b.contact_stiffness, MB_ALLOWED_NOT_NEGATIVE) &&
           mb_allow(fault, "contact_damping", b.contact_damping, MB_ALLOWED_NOT_NEGATIVE) &&
           mb_allow(fault, "contact_friction", b.contact_friction, MB_ALLOWED_NOT_NEGATIVE) &&
           mb_allow(fault, "slip_speed", b.slip_speed, MB_ALLOWED_POSITIVE);
}

static int32_t film_width(const int32_t *force, int32_t what) {
    (void)force;
    if (!mb_in_range(what, 0, MB_FILM_QUANTITIES)) return -1;
    return what == MB_FILM_OFFSET ? 2 : what == MB_FILM_FORCE ? 3 : 1;
}

static int film_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what,
                     double *y) {
    (void)q, (void)v;
    if (m->shown_force != force) { /* outputs are shown at one state */
        if (mb_bearing_evaluate(m, force, t, &m->shown_film) != BL_OK) {
            m->filmless_bearing = mb_element_number(m, force);
            return BL_ERROR_BLOCK;
        }
        m->shown_force = force;
    }
    const mb_film *film = &m->shown_film;
    const bl_film_load *does = &film->load;
    const bl_film_motion *at = &film->motion;
    const double offset[2] = {0.5 * (at->x[0] + at->x[1]), 0.5 * (at->y[0] + at->y[1])};
    const double F[3] = {does->force[0], does->force[1], 0.0};
    switch (what) {
        case MB_FILM_OFFSET: memcpy(y, offset, sizeof offset); break;
        case MB_FILM_FORCE: mb_rotate(film->R, F, y); break;
        case MB_FILM_ECCENTRICITY: *y = 1.0 - does->thickness / film->bearing.clearance; break;
        case MB_FILM_TORQUE: *y = does->torque; break;
        case MB_FILM_THICKNESS: *y = does->thickness; break;
        case MB_FILM_PRESSURE: *y = does->pressure; break;
        case MB_FILM_POWER_LOSS: *y = does->power_loss; break;
        case MB_FILM_ROUNDS: *y = m->carried[MB_CARRIED_ROUNDS]; break;
        default: *y = does->thin_film;
    }
    return BL_OK;
}

double mb_thinnest_film(const mb_view *m, double t) {
    double least = INFINITY, R[9], P[3];
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = m->forces + n * MB_FORCE_FIELDS;
        if (force[MB_FORCE_TYPE] != MB_BEARING || mb_bearing_row(force) >= 0) continue;
        const bl_film_bearing b = mb_bearing_read(m, force);
        const bl_film_motion at = film_see(m, force, t, b.length, R, P);
        for (int k = 0; k < 2; k++) least = fmin(least, 1.0 - hypot(at.x[k], at.y[k]) / b.clearance);
    }
    return least;
}

int64_t mb_thinned_memory(const int32_t *forces, int32_t count) {
    int64_t films = 0;
    for (int32_t n = 0; n < count; n++) films += forces[n * MB_FORCE_FIELDS + MB_FORCE_TYPE] == MB_BEARING;
    return films > 0 ? MB_FILMS_SIZE + films * MB_FILM_MEMORY : 0;
}

void mb_start_thinned(const mb_view *m, double t) {
    if (mb_has_element(m, MB_BEARING)) m->thinned[MB_FILMS_TIME] = t;
}

/* Velocity and acceleration of the journal's marker relative to the bush's: six numbers. */
static void film_relative(const mb_view *m, const int32_t *force, double t, double *motion) {
    double P[3], bush[6];
    mb_marker_motion(m, force[MB_FORCE_I], t, P, motion, motion + 3);
    mb_marker_motion(m, force[MB_FORCE_J], t, P, bush, bush + 3);
    for (int k = 0; k < 6; k++) motion[k] -= bush[k];
}

/* A step is resolved if the mean of the accelerations at both its ends is about its change of velocity. Explicit steps that are too long
   for a film may settle where it is not: at a wrong thickness, with forces that are not in balance. Small accelerations, of which a
   step makes less than this part of the thickness, are left out. */
static const double FILM_MOVED = 1e-5, FILM_UNRESOLVED = 0.5;
static bool film_unresolved(const double *before, const double *after, double h, double thickness) {
    double off[3];
    for (int k = 0; k < 3; k++) off[k] = (after[k] - before[k]) / h - 0.5 * (before[3 + k] + after[3 + k]);
    const double size = sqrt(fmax(mb_dot(before + 3, before + 3), mb_dot(after + 3, after + 3)));
    return 0.5 * size * h * h > FILM_MOVED * thickness && sqrt(mb_dot(off, off)) > FILM_UNRESOLVED * size;
}

/* Not at every step, because it needs accelerations; an odd interval, because an unstable solution alternates. */
enum { FILM_COMPARED_EVERY = 31 };

void mb_count_thinned(mb_view *m, double t, const double *q, const double *v) {
    if (!mb_has_element(m, MB_BEARING)) return;
    double *films = m->thinned, *film_memory = films + MB_FILMS_SIZE;
    const double h = fmax(t - films[MB_FILMS_TIME], 0.0), steps = fmod(films[MB_FILMS_STEPS], FILM_COMPARED_EVERY);
    bool moves = steps >= FILM_COMPARED_EVERY - 2.0 && m->head[MB_INTEGRATOR] != MB_IMPLICIT;
    films[MB_FILMS_TIME] = t;
    films[MB_FILMS_STEPS] += 1.0;
    moves = moves && mb_accelerations(m, t, q, v);
    if (!moves) mb_positions(m, q);
    const bool compares = moves && steps == FILM_COMPARED_EVERY - 1.0 && h > 0.0;
    films[MB_FILMS_COMPARED] += compares ? 1.0 : 0.0;
    bool resolved = true;
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = m->forces + n * MB_FORCE_FIELDS;
        if (force[MB_FORCE_TYPE] != MB_BEARING) continue;
        mb_film film;
        mb_bearing_see(m, force, t, &film); /* thickness does not depend on speeds, which may be anything here */
        const bl_film_motion *at = &film.motion;
        const double thickness = film.bearing.clearance - fmax(hypot(at->x[0], at->y[0]), hypot(at->x[1], at->y[1]));
        bl_film_count_thin(bl_film_bound(&film.bearing), t, h, thickness, film_memory);
        double *before = film_memory + BL_THINNED_SIZE, after[6];
        if (moves) film_relative(m, force, t, after);
        if (compares && mb_bearing_row(force) < 0 &&
            film_unresolved(before, after, h, fmax(thickness, film.bearing.film_limit))) {
            resolved = false;
            films[MB_FILMS_FORCE] = n;
        }
        if (moves) memcpy(before, after, sizeof after);
        film_memory += MB_FILM_MEMORY;
    }
    if (resolved) return;
    if (films[MB_FILMS_UNRESOLVED] == 0.0) films[MB_FILMS_FIRST] = t;
    films[MB_FILMS_UNRESOLVED] += 1.0;
}

double mb_difference(const mb_view *m) {
    double size = 1e-7;
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = m->forces + n * MB_FORCE_FIELDS;
        const bool film = force[MB_FORCE_TYPE] == MB_BEARING && mb_bearing_row(force) < 0,
                   contact = force[MB_FORCE_TYPE] == MB_CONTACT;
        const bool touches =
            force[MB_FORCE_TYPE] == MB_TOUCH || force[MB_FORCE_TYPE] == MB_TOUCHES || force[MB_FORCE_TYPE] == MB_WORN;
        const double part = touches           ? 1e-4 * mb_touch_play(m, force)
                            : film || contact ? 1e-4 * m->p[force[MB_FORCE_P] + (film ? 2 : 0)] /* of the clearance */
                                              : size;
        if (part > 0.0 && part < size) size = part;
    }
    return size;
}

const mb_element mb_element_bearing = {.energy_kind = MB_ENERGY_CONTACT,
                                       .check = film_check,
                                       .sound = film_sound,
                                       .refuse = mb_fail_bearing,
                                       .load = film_load,
                                       .energy = film_energy,
                                       .loss = film_loss,
                                       .width = film_width,
                                       .show = film_show};
