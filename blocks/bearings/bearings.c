/* Journal bearings as blocks.
 *
 * Inputs: position, velocity (x, y of the middle, or x1, y1, x2, y2 of both ends), speeds of journal and bush; and, if
 * it is wired, viscosity.
 * Outputs: force (2), moment (2), torque, film, pressure, power loss, whether the film is thin; a finite bearing also
 * has the number of systems solved, the flow out at its ends (2), the flow from its feeds, and, with mass-conserving
 * cavitation, the amount of oil.
 * p: the dimensions, then the feeds of a finite bearing, their pressures, and the map.
 * i: friction, thin, cavitation, whether the film is squeezed; for a finite bearing also cells around and along, and
 * how many feeds there are, and whether there is a map of the bush.
 * z: BL_THINNED_… of a film that is thinner than its limit. A finite bearing keeps the same of one that its cells do not resolve, and
 * before both the film that cavitates, cell by cell; see finite_bearing_memory. */
#include <math.h>
#include <string.h>

#include "blocks/bearings/film.h"
#include "blocks/core/kernel/constants.h"
#include "blocks/core/kernel/kernel.h"

enum {
    BEARING_POSITION,
    BEARING_VELOCITY,
    BEARING_JOURNAL,
    BEARING_BUSH,
    BEARING_INPUTS,
    BEARING_VISCOSITY = BEARING_INPUTS,
    BEARING_ALL_INPUTS
};
enum {
    BEARING_FORCE,
    BEARING_MOMENT,
    BEARING_TORQUE,
    BEARING_FILM,
    BEARING_PRESSURE,
    BEARING_LOSS,
    BEARING_THIN,
    BEARING_PLAIN_OUTPUTS,
    BEARING_SOLVES = BEARING_PLAIN_OUTPUTS,
    BEARING_SIDE_FLOW,
    BEARING_SUPPLY_FLOW,
    BEARING_FINITE_OUTPUTS,
    BEARING_OIL = BEARING_FINITE_OUTPUTS
};
BL_SHARED enum {
    BEARING_FRICTION,
    BEARING_THIN_RULE,
    BEARING_CAVITATION,
    BEARING_SQUEEZE,
    BEARING_PLAIN_INTEGERS,
    BEARING_AROUND = BEARING_PLAIN_INTEGERS,
    BEARING_ALONG,
    BEARING_FEEDS,
    BEARING_MAP,
    BEARING_FINITE_INTEGERS
};
enum { BEARING_PARAMETERS = 9 };
enum { FINITE_TIME = 4, FINITE_KEPT }; /* after x1, y1, x2, y2 */

static int bearing_fits(const bl_block *b, int32_t ends, int32_t outputs, int32_t integers) {
    if (b->u_count != BEARING_INPUTS && b->u_count != BEARING_ALL_INPUTS) return 0;
    if (b->y_count != outputs || b->i_count != integers) return 0;
    if (b->u_width[BEARING_POSITION] != 2 * ends || b->u_width[BEARING_VELOCITY] != 2 * ends ||
        b->u_width[BEARING_JOURNAL] != 1 || b->u_width[BEARING_BUSH] != 1 || b->y_width[BEARING_FORCE] != 2 ||
        b->y_width[BEARING_MOMENT] != 2)
        return 0;
    if (b->u_count == BEARING_ALL_INPUTS && b->u_width[BEARING_VISCOSITY] != 1) return 0;
    for (int32_t k = BEARING_TORQUE; k < outputs; k++)
        if (b->y_width[k] != (k == BEARING_SIDE_FLOW ? 2 : 1)) return 0;
    return b->i[BEARING_FRICTION] >= 0 && b->i[BEARING_FRICTION] < BL_FRICTION_COUNT && b->i[BEARING_THIN_RULE] >= 0 &&
           b->i[BEARING_THIN_RULE] < BL_THIN_COUNT && b->i[BEARING_CAVITATION] >= 0 &&
           b->i[BEARING_CAVITATION] < BL_CAVITATION_COUNT;
}
static int bearing_middle_check(const bl_block *b) {
    return bearing_fits(b, 1, BEARING_PLAIN_OUTPUTS, BEARING_PLAIN_INTEGERS) && b->p_count == BEARING_PARAMETERS;
}
static int bearing_ends_check(const bl_block *b) {
    return bearing_fits(b, 2, BEARING_PLAIN_OUTPUTS, BEARING_PLAIN_INTEGERS) && b->p_count == BEARING_PARAMETERS;
}
static bl_sizes bearing_sizes(const bl_block *b) {
    (void)b;
    return (bl_sizes){.memory = BL_THINNED_SIZE};
}

static bl_film_bearing bearing_read(const bl_block *b) {
    const double *p = b->p;
    const int wired = b->u_count == BEARING_ALL_INPUTS;
    return (bl_film_bearing){.radius = p[0],
                             .length = p[1],
                             .clearance = p[2],
                             .viscosity = wired ? b->u[BEARING_VISCOSITY][0] : p[3],
                             .film_limit = p[4],
                             .contact_stiffness = p[5],
                             .contact_damping = p[6],
                             .contact_friction = p[7],
                             .slip_speed = p[8],
                             .friction = b->i[BEARING_FRICTION],
                             .thin = b->i[BEARING_THIN_RULE],
                             .cavitation = b->i[BEARING_CAVITATION]};
}

static bl_film_motion bearing_motion(const bl_block *b) {
    const double *at = b->u[BEARING_POSITION], *rate = b->u[BEARING_VELOCITY];
    const int far = b->u_width[BEARING_POSITION] == 4 ? 2 : 0;
    const double squeeze = b->i[BEARING_SQUEEZE] ? 1.0 : 0.0;
    return (bl_film_motion){.x = {at[0], at[far]},
                            .y = {at[1], at[far + 1]},
                            .vx = {squeeze * rate[0], squeeze * rate[far]},
                            .vy = {squeeze * rate[1], squeeze * rate[far + 1]},
                            .journal_speed = b->u[BEARING_JOURNAL][0],
                            .bush_speed = b->u[BEARING_BUSH][0]};
}

static int bearing_fail(const bl_block *b, const bl_film_bearing *bearing, const bl_film_load *load, int status) {
    if (status == BL_ERROR_SOLVER)
        return bl_log_error(b, "the edge of its film was not found in %d passes", (int)load->solves);
    if (!bl_film_sound(bearing)) {
        bl_log(b, "its dimensions ");
        return bl_film_fail(b, bearing);
    }
    if (bearing->thin != BL_THIN_STOP)
        return bl_log_error(
            b,
            "its bush, which is not round, leaves a journal in the middle less than `film_limit`, %.4g m, with a "
            "clearance of %.4g m: set more clearance, or a lower limit",
            bearing->film_limit, bearing->clearance);
    return bl_log_error(b,
                        "its film is %.4g m thick, thinner than `film_limit`, %.4g m. Give contact=Contact(…) to go on "
                        "with a contact law, or more clearance, speed or viscosity",
                        load->thickness, bearing->film_limit);
}

static int bearing_output(bl_block *b, int32_t model, const bl_film_grid *grid) {
    const bl_film_bearing bearing = bearing_read(b);
    const bl_film_motion motion = bearing_motion(b);
    bl_film_load load;
    const int status = bl_film_evaluate(model, &bearing, &motion, grid, &load);
    if (status != BL_OK) return bearing_fail(b, &bearing, &load, status);
    memcpy(b->y[BEARING_FORCE], load.force, sizeof load.force);
    memcpy(b->y[BEARING_MOMENT], load.moment, sizeof load.moment);
    b->y[BEARING_TORQUE][0] = load.torque;
    b->y[BEARING_FILM][0] = load.thickness;
    b->y[BEARING_PRESSURE][0] = load.pressure;
    b->y[BEARING_LOSS][0] = load.power_loss;
    b->y[BEARING_THIN][0] = load.thin_film;
    if (b->y_count == BEARING_PLAIN_OUTPUTS) return BL_OK;
    b->y[BEARING_SOLVES][0] = load.solves;
    memcpy(b->y[BEARING_SIDE_FLOW], load.side_flow, sizeof load.side_flow);
    b->y[BEARING_SUPPLY_FLOW][0] = load.supply_flow;
    if (b->y_count > BEARING_OIL) b->y[BEARING_OIL][0] = load.oil;
    return BL_OK;
}

/* The last numbers in memory, whatever else a bearing keeps. */
static double *bearing_thinned(const bl_block *b) { return b->z + b->z_count - BL_THINNED_SIZE; }
static int bearing_init(bl_block *b, double t) {
    (void)t;
    memset(b->z, 0, sizeof(double) * (size_t)b->z_count);
    return BL_OK;
}
static void bearing_diagnose(bl_block *b, int about, double t) {
    (void)t;
    const double *thinned = bearing_thinned(b);
    if (about != BL_DIAGNOSTIC_RUN || !(thinned[BL_THINNED_STEPS] > 0.0)) return;
    const bl_film_bearing bearing = bearing_read(b);
    bl_log(b, "its film ");
    bl_film_say_thin(b, &bearing, thinned);
}

/* At ticks only: iterations may look anywhere. No film and no contact lets a journal be so far beyond its bush, in clearances. */
static const double BEARING_LOST = 10.0;
static int bearing_watch(bl_block *b, double t) {
    const bl_film_bearing bearing = bearing_read(b);
    bl_film_count_thin(bl_film_bound(&bearing), t, b->dt, b->y[BEARING_FILM][0], bearing_thinned(b));
    const double beyond = -b->y[BEARING_FILM][0] / b->p[2];
    if (!(beyond > BEARING_LOST)) return BL_OK;
    return bl_log_error(
        b,
        "the journal is %.3g clearances beyond its bush at t = %.9g s: its forces are exchanged in steps too long for "
        "so stiff a film, and the exchange is unstable. Say method='newton' in d.couple(…) for a plant with internal "
        "steps, "
        "take smaller steps, or put the film into the mechanism: System.bearing(…), integrator='implicit'",
        beyond, t);
}
static int short_bearing_output(bl_block *b, double t) {
    (void)t;
    return bearing_output(b, BL_FILM_SHORT, NULL);
}
static int misaligned_bearing_output(bl_block *b, double t) {
    (void)t;
    return bearing_output(b, BL_FILM_MISALIGNED, NULL);
}
static int long_bearing_output(bl_block *b, double t) {
    (void)t;
    return bearing_output(b, BL_FILM_LONG, NULL);
}

static int64_t finite_bearing_cells(const bl_block *b) { return (int64_t)b->i[BEARING_AROUND] * b->i[BEARING_ALONG]; }
static int finite_bearing_keeps_time(const bl_block *b) { return b->i[BEARING_CAVITATION] == BL_CAVITATION_JFO; }

/* State: nothing, the cells with film, or the oil in each, the journal position and the time; and twice BL_THINNED_…. */
enum { FINITE_COUNTS = 2 * BL_THINNED_SIZE };
static int64_t finite_bearing_memory(const bl_block *b) {
    const int32_t cavitation = b->i[BEARING_CAVITATION];
    if (cavitation == BL_CAVITATION_NONE || cavitation == BL_CAVITATION_GUMBEL) return FINITE_COUNTS;
    return finite_bearing_cells(b) + (finite_bearing_keeps_time(b) ? FINITE_KEPT : 0) + FINITE_COUNTS;
}
static int finite_bearing_check(const bl_block *b) {
    if (b->u_count < 1 || b->i_count != BEARING_FINITE_INTEGERS) return 0;
    const int32_t outputs = BEARING_FINITE_OUTPUTS + (finite_bearing_keeps_time(b) ? 1 : 0);
    const int32_t ends = b->u_width[0] == 4 ? 2 : 1, around = b->i[BEARING_AROUND], along = b->i[BEARING_ALONG];
    if (!bearing_fits(b, ends, outputs, BEARING_FINITE_INTEGERS)) return 0;
    if (around < 8 || around > BL_FILM_MOST_AROUND || around % 2 || along < 2 || along > BL_FILM_MOST_ALONG ||
        along % 2)
        return 0;
    const int64_t feeds = b->i[BEARING_FEEDS], map = b->i[BEARING_MAP] ? around * (2 * along + 1) : 0;
    return feeds >= 0 && b->p_count == BEARING_PARAMETERS + (BL_FILM_FEED_NUMBERS + 1) * feeds + map;
}
static bl_sizes finite_bearing_sizes(const bl_block *b) {
    const int64_t work = bl_film_work(b->i[BEARING_AROUND], b->i[BEARING_ALONG], b->i[BEARING_CAVITATION]);
    return (bl_sizes){.memory = finite_bearing_memory(b), .scratch = 2 * finite_bearing_cells(b) + work};
}
static int finite_bearing_init(bl_block *b, double t) {
    const double start = finite_bearing_keeps_time(b) ? -1.0 : 0.0; /* full, or no guess */
    const int status = bearing_init(b, t);
    for (int32_t k = 0; k < b->z_count - FINITE_COUNTS; k++) b->z[k] = start;
    return status;
}
/* Works on a copy of the last film: only `update` stores the new one. */
static bl_film_grid finite_bearing_grid(const bl_block *b, double t) {
    const int64_t cells = finite_bearing_cells(b);
    double *film = b->w, *content = b->w + cells;
    const double *feeds = b->p + BEARING_PARAMETERS, *kept = b->z + cells;
    const double *map = feeds + (BL_FILM_FEED_NUMBERS + 1) * b->i[BEARING_FEEDS];
    const int keeps_time = finite_bearing_keeps_time(b);
    memset(film, 0, sizeof(double) * (size_t)cells);
    if (b->z_count > FINITE_COUNTS) memcpy(keeps_time ? content : film, b->z, sizeof(double) * (size_t)cells);
    /* At a tick the oil content is exact; in between, it is the fraction of the gap at the next tick. */
    const int between = keeps_time && fabs(t - kept[FINITE_TIME]) > 1e-6 * b->dt;
    return (bl_film_grid){.n_theta = b->i[BEARING_AROUND],
                          .n_z = b->i[BEARING_ALONG],
                          .feeds = feeds,
                          .feed_pressures = feeds + BL_FILM_FEED_NUMBERS * b->i[BEARING_FEEDS],
                          .feed_count = b->i[BEARING_FEEDS],
                          .bush = b->i[BEARING_MAP] ? map : NULL,
                          .film = film,
                          .content = keeps_time ? content : NULL,
                          .counted_at = between ? kept : NULL,
                          .step = b->dt,
                          .work = b->w + 2 * cells};
}
static int finite_bearing_fed(const bl_block *b, const bl_film_grid *grid) {
    for (int32_t k = 0; k < grid->feed_count; k++)
        if (!(grid->feed_pressures[k] >= 0.0 && grid->feed_pressures[k] < INFINITY))
            return bl_log_error(b,
                                "feed %d is at %.4g Pa. Pressures count from the one at the ends and are not negative: "
                                "set `feed_pressure` to 0 or more",
                                (int)k + 1, grid->feed_pressures[k]);
    return BL_OK;
}
static int finite_bearing_output(bl_block *b, double t) {
    const bl_film_grid grid = finite_bearing_grid(b, t);
    const int status = finite_bearing_fed(b, &grid);
    return status == BL_OK ? bearing_output(b, BL_FILM_FINITE, &grid) : status;
}
/* Cells around in the angle over which a film of least thickness h doubles, √(2 h / e): forces converge with its square, damping in
   proportion to it, for all lengths and eccentricities alike. `_finite.py` has the same. */
static const double FINITE_RESOLVED = 4.0;
static double finite_bearing_resolution(const bl_block *b, double film) {
    const double part = fmin(fmax(film, b->p[4]) / b->p[2], 1.0);
    return part < 1.0 ? sqrt(2.0 * part / (1.0 - part)) * b->i[BEARING_AROUND] / (2.0 * BL_PI) : INFINITY;
}
static double *finite_bearing_unresolved(const bl_block *b) { return b->z + b->z_count - FINITE_COUNTS; }
static void finite_bearing_diagnose(bl_block *b, int about, double t) {
    const double *kept = finite_bearing_unresolved(b);
    bearing_diagnose(b, about, t);
    if (about == BL_DIAGNOSTIC_RUN && kept[BL_THINNED_STEPS] > 0.0) {
        const double cells = finite_bearing_resolution(b, kept[BL_THINNED_LEAST]);
        const double enough = fmin(2.0 * ceil(b->i[BEARING_AROUND] * FINITE_RESOLVED / cells), BL_FILM_MOST_AROUND);
        bl_log(b,
               "%sits film was too thin for its cells for %.3g s, first at t = %.6g s, most at t = %.6g s: with %d "
               "around, forces were up to"
               " about %.2g %% off there and damping %.2g %%. Take cells=(%.0f, %d).",
               *b->message ? " " : "", kept[BL_THINNED_SECONDS], kept[BL_THINNED_FIRST], kept[BL_THINNED_WHEN],
               (int)b->i[BEARING_AROUND], 25.0 / (cells * cells), 60.0 / cells, enough, (int)b->i[BEARING_ALONG]);
    }
}
static int finite_bearing_update(bl_block *b, double t) {
    const double film = b->y[BEARING_FILM][0];
    if (finite_bearing_resolution(b, film) < FINITE_RESOLVED)
        bl_film_count_thin(INFINITY, t, b->dt, film, finite_bearing_unresolved(b));
    const int lost = bearing_watch(b, t);
    if (lost != BL_OK) return lost;
    /* One solution was enough at this tick: the film in z is the film. */
    const int keeps_time = finite_bearing_keeps_time(b);
    if (b->z_count == FINITE_COUNTS || (!keeps_time && b->y[BEARING_SOLVES][0] == 1.0)) return BL_OK;
    const int64_t cells = finite_bearing_cells(b);
    const bl_film_grid grid = finite_bearing_grid(b, t);
    const int status = bearing_output(b, BL_FILM_FINITE, &grid);
    if (status != BL_OK) return status;
    memcpy(b->z, keeps_time ? grid.content : grid.film, sizeof(double) * (size_t)cells);
    if (!keeps_time) return BL_OK;
    const bl_film_motion m = bearing_motion(b);
    double *kept = b->z + cells;
    for (int k = 0; k < 2; k++) {
        kept[2 * k] = m.x[k] + b->dt * m.vx[k];
        kept[2 * k + 1] = m.y[k] + b->dt * m.vy[k];
    }
    kept[FINITE_TIME] = t + b->dt;
    return BL_OK;
}

const bl_kernel bl_kernels_bearings[] = {
    {.name = "short_bearing",
     .check = bearing_middle_check,
     .sizes = bearing_sizes,
     .init = bearing_init,
     .output = short_bearing_output,
     .update = bearing_watch,
     .diagnose = bearing_diagnose},
    {.name = "misaligned_short_bearing",
     .check = bearing_ends_check,
     .sizes = bearing_sizes,
     .init = bearing_init,
     .output = misaligned_bearing_output,
     .update = bearing_watch,
     .diagnose = bearing_diagnose},
    {.name = "long_bearing",
     .check = bearing_middle_check,
     .sizes = bearing_sizes,
     .init = bearing_init,
     .output = long_bearing_output,
     .update = bearing_watch,
     .diagnose = bearing_diagnose},
    {.name = "finite_bearing",
     .check = finite_bearing_check,
     .sizes = finite_bearing_sizes,
     .init = finite_bearing_init,
     .output = finite_bearing_output,
     .update = finite_bearing_update,
     .diagnose = finite_bearing_diagnose},
    {.name = 0},
};
