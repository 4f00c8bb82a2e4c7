/* Oil films between a journal and its bush: what a force element and a block both call.
 *
 * Axes: z along the bore, from end 1 (z = 0) to end 2 (z = B); θ from x toward y. (x, y) is the journal's center
 * less the bush's, so that the film is
 *
 *     h = c - x cos θ - y sin θ,        x(z) = x1 + (x2 - x1) z / B, and so for y and their rates.
 *
 * All motion is seen from one set of axes, which need not be the bush's: spin speeds of journal and bush are
 * taken about z in the same axes as the rates. Only their sum enters Reynolds' equation,
 *
 *     1/r² ∂θ(h³ ∂θ p) + ∂z(h³ ∂z p) = 6 μ ((ω_j + ω_b) ∂θ h + 2 ∂t h),
 *
 * and only their difference in shear. Loads act on the journal; moments are about the middle of end 1. The bush
 * gets the opposite force and moment there, and the torque that balances both.
 */
#ifndef BIELLA_FILM_H
#define BIELLA_FILM_H

#include <stdint.h>

#include "blocks/core/kernel/kernel.h"

enum { BL_FILM_SHORT, BL_FILM_MISALIGNED, BL_FILM_LONG, BL_FILM_FINITE };

/* What turns the journal back. The correlation is 3 φ / S for S < 1, else 3 φ / √S, with S = p_m φ² / (μ |Δω|)
   and φ either c / r or, as its source prints it, c / (2 r). */
enum {
    BL_FRICTION_NONE,
    BL_FRICTION_SHEAR,
    BL_FRICTION_PETROFF,
    BL_FRICTION_BY_RADIUS,
    BL_FRICTION_BY_DIAMETER,
    BL_FRICTION_COUNT
};
/* Where the film is thinner than its limit: a contact law with a warning; an error; or an expected contact. */
enum { BL_THIN_CONTACT, BL_THIN_STOP, BL_THIN_EXPECTED, BL_THIN_COUNT };
/* Cavitation model: negative pressure is allowed; set to zero in the full solution (half-Sommerfeld); excluded (Reynolds:
   p ≥ 0 and ∂p/∂θ = 0 where the film ends); or mass-conserving (JFO), transient or steady. */
enum {
    BL_CAVITATION_NONE,
    BL_CAVITATION_GUMBEL,
    BL_CAVITATION_REYNOLDS,
    BL_CAVITATION_JFO,
    BL_CAVITATION_JFO_STEADY,
    BL_CAVITATION_COUNT
};

typedef struct {
    double radius, length, clearance, viscosity;
    double film_limit;          /* thinnest film that is still a film */
    double contact_stiffness;   /* of the whole bearing, N/m */
    double contact_damping;     /* a in N = k d (1 + a ḋ), s/m */
    double contact_friction;    /* Coulomb's */
    double slip_speed;          /* below which that friction fades, m/s */
    int32_t friction, thin, cavitation;
} bl_film_bearing;

typedef struct {
    double x[2], y[2], vx[2], vy[2];   /* at ends 1 and 2; the same twice for a film without tilt */
    double journal_speed, bush_speed;
} bl_film_motion;

typedef struct {
    double force[2], moment[2];
    double torque;       /* about z, on the journal */
    double bush_torque;
    double thickness;    /* least: negative is penetration */
    double pressure;     /* largest */
    double power_loss;
    int32_t thin_film;   /* whether the film is thinner than its limit */
    int32_t solves;      /* linear systems solved by a finite film */
    double side_flow[2]; /* volume a second that leaves a finite film at ends 1 and 2 */
    double supply_flow;  /* and that its feeds give */
    double bush_twist;   /* ∫∫ p ∂θ(h + e · n) r dθ dz: what the shape of a bush adds to shear */
    double oil;          /* volume in the film, of BL_CAVITATION_JFO */
} bl_film_load;

enum { BL_FILM_FEED_NUMBERS = 5 };

/* Cells of a finite film: n_theta around, n_z along, which is even. */
typedef struct {
    int32_t n_theta, n_z;
    const double *feeds; /* feed_count times: angle in rad, z in m, width around in rad, length in m, whether it is a
                               round hole of that length across. Later ones lie over earlier ones */
    const double *feed_pressures; /* feed_count, in Pa, not negative */
    int32_t feed_count;
    const double *bush; /* NULL, or what the bush leaves more than the clearance, in m: n_theta × n_z between columns i
                               and i + 1, then n_theta × (n_z + 1) between cells along, both ends included */
    double *film; /* n_theta × n_z: 1 where the film was whole; guessed from on entry, found on return */
    double *content; /* BL_CAVITATION_JFO only. n_theta × n_z: oil in clearances, or negative for a full cell; on
                               return, the content after `step` seconds */
    const double
        *counted_at; /* x1, y1, x2, y2 of the journal for which `content` was counted; NULL to use it unchanged */
    double step;
    double *work; /* bl_film_work(n_theta, n_z, cavitation) values; on return the first n_theta × n_z are p, in Pa */
} bl_film_grid;

#define BL_FILM_MOST_AROUND 1024
#define BL_FILM_MOST_ALONG 64
int64_t bl_film_work(int32_t n_theta, int32_t n_z, int32_t cavitation);

/* Whether cavitation keeps an account of oil. */
static inline int bl_film_keeps_oil(int32_t cavitation) { return cavitation >= BL_CAVITATION_JFO; }

/* Whether all dimensions of a bearing are valid. */
int bl_film_sound(const bl_film_bearing *bearing);
/* Reports the invalid dimensions of a bearing and returns BL_ERROR_BLOCK. */
int bl_film_fail(const bl_block *b, const bl_film_bearing *bearing);

/* What the film does to the journal. Returns a bl_status: BL_ERROR_BLOCK if the bearing is not sound or its film is
   too thin, BL_ERROR_SOLVER if a finite film was not found. Motion that is not finite gives loads that are NaN.
   `grid` is for BL_FILM_FINITE only. */
int bl_film_evaluate(int32_t model, const bl_film_bearing *bearing, const bl_film_motion *motion,
                     const bl_film_grid *grid, bl_film_load *load);

/* Record of a film thinner than a bound: number of steps, seconds, time of the first, least thickness and its time.
   All zero at the start; part of the saved state of the block. */
enum { BL_THINNED_STEPS, BL_THINNED_SECONDS, BL_THINNED_FIRST, BL_THINNED_LEAST, BL_THINNED_WHEN, BL_THINNED_SIZE };
/* Counts a step of `duration` seconds at time t if the film is below the bound there. */
void bl_film_count_thin(double bound, double t, double duration, double thickness, double *thinned);
/* The film's limit; where contact is expected, a clearance beyond the bush. */
double bl_film_bound(const bl_film_bearing *bearing);
/* Appends the record to a message as "was thinner than …"; the caller writes the subject. */
void bl_film_say_thin(const bl_block *b, const bl_film_bearing *bearing, const double *thinned);

/* The pressure alone: force, moment and largest pressure of a film that is thick enough everywhere. */
void bl_film_short(const bl_film_bearing *bearing, const bl_film_motion *motion, bl_film_load *load);
void bl_film_tilted(const bl_film_bearing *bearing, const bl_film_motion *motion, bl_film_load *load);
void bl_film_long(const bl_film_bearing *bearing, const bl_film_motion *motion, bl_film_load *load);
int bl_film_finite(const bl_film_bearing *bearing, const bl_film_motion *motion, const bl_film_grid *grid,
                   bl_film_load *load);

#endif
