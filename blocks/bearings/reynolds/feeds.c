/* Oil feeds of a finite film: cells held at a given pressure. */
#include <math.h>

#include "blocks/bearings/reynolds/reynolds.h"
#include "blocks/core/kernel/constants.h"

/* A rectangle reaches `around` rad and `along` m to both sides of its center, a hole by half its diameter. */
typedef struct {
    double angle, z, around, along;
    int round;
} film_feed;

static film_feed feed_read(const double *numbers) {
    return (film_feed){.angle = numbers[0],
                       .z = numbers[1],
                       .around = 0.5 * numbers[2],
                       .along = 0.5 * numbers[3],
                       .round = numbers[4] != 0.0};
}

/* Distance of a column or a row from the center of a feed. */
static double feed_away_around(const film_feed *f, const bl_film_grid *grid, int32_t i) {
    return fabs(remainder(((double)i + 0.5) * 2.0 * BL_PI / grid->n_theta - f->angle, 2.0 * BL_PI));
}
static double feed_away_along(const film_feed *f, const bl_film_grid *grid, int32_t j, double length) {
    return fabs(((double)j + 0.5) * length / grid->n_z - f->z);
}

/* Cells whose middles a feed covers are held, and at least the nearest: a narrow groove is a column wide. */
static void feed_hold(const film_feed *f, double *held, const bl_film_grid *grid, double radius, double length,
                      double q) {
    int32_t near_i = 0, near_j = 0;
    double least = INFINITY;
    for (int32_t i = 0; i < grid->n_theta; i++) {
        const double away = feed_away_around(f, grid, i);
        near_i = away < least ? i : near_i;
        least = away < least ? away : least;
    }
    least = INFINITY;
    for (int32_t j = 0; j < grid->n_z; j++) {
        const double away = feed_away_along(f, grid, j, length);
        near_j = away < least ? j : near_j;
        least = away < least ? away : least;
    }
    for (int32_t i = 0; i < grid->n_theta; i++) {
        const double s = feed_away_around(f, grid, i);
        for (int32_t j = 0; j < grid->n_z; j++) {
            const double z = feed_away_along(f, grid, j, length);
            const int covered = f->round ? hypot(radius * s, z) <= f->along
                                         : (s <= f->around || i == near_i) && (z <= f->along || j == near_j);
            if (covered || (i == near_i && j == near_j)) held[i * grid->n_z + j] = q;
        }
    }
}

void bl_reynolds_hold(double *held, const bl_film_grid *grid, double radius, double length, double scale) {
    for (int32_t k = 0; k < grid->n_theta * grid->n_z; k++) held[k] = NAN;
    for (int32_t k = 0; k < grid->feed_count; k++) {
        const film_feed feed = feed_read(grid->feeds + BL_FILM_FEED_NUMBERS * k);
        feed_hold(&feed, held, grid, radius, length, grid->feed_pressures[k] / scale);
    }
}
