/* Finite-volume solution of a film: declarations shared by its source files. See reynolds.c for the equation. */
#ifndef BIELLA_REYNOLDS_H
#define BIELLA_REYNOLDS_H

#include <stdint.h>

#include "blocks/bearings/film.h"

enum { REYNOLDS_BLOCK = 4 };

/* Cells are numbered i * m + j: i around, j along. */
typedef struct {
    int32_t n, m;        /* columns, and cells in a column that are solved for */
    int32_t n_z;         /* cells in a column */
    int32_t blacks;      /* in a column, at most */
    int32_t mirrored;    /* whether the other half is like this one */
    int32_t fed;         /* whether pressure is given anywhere */
    double *held;        /* n × n_z: q where it is given, else NaN; not set if it is nowhere */
    double *cosine, *sine;   /* n: at the middles */
    double *cos_face, *sin_face; /* n: between columns i and i + 1 */
    double *around;      /* n × m: H³ / dθ² between columns i and i + 1 */
    double *along;       /* n × (m + 1): (r / B)² H³ / dζ² below cell j, and above the last */
    double *diagonal, *source, *q, *film; /* n × m */
    double *gap, *stored, *carried; /* n × m, of a film that keeps its oil only: see jfo.c */
    int32_t downstream;
    double *right;       /* n × blacks, and up to a block more */
    double *band;        /* as many rows of width + REYNOLDS_BLOCK, or of 2 width + 1 with mass conservation */
    int32_t order[BL_FILM_MOST_AROUND]; /* columns with film, as they are eliminated */
    int32_t place[BL_FILM_MOST_AROUND]; /* of a column in `order`, or -1 */
    int32_t columns, width;
} reynolds_system;

/* Lists the columns with film. From a free one on, neighbors in the list are neighbors around the journal; if there
   is none, the list alternates between both sides of the ring and neighbors are at most two places apart. */
void bl_reynolds_order(reynolds_system *s);
/* Solves for q in the cells with `film`; q is zero elsewhere. */
void bl_reynolds_solve(reynolds_system *s);

/* The same for a film that keeps its oil; gives back a bl_status. */
int bl_reynolds_jfo(reynolds_system *s, const bl_film_bearing *b, const bl_film_motion *motion,
                    const bl_film_grid *grid, bl_film_load *load);

int bl_reynolds_is_held(const reynolds_system *s, int32_t i, int32_t j);
/* Sets the cells where q is prescribed, and its values there; `radius` and `length` in m, `scale` in Pa for q = 1. */
void bl_reynolds_hold(double *held, const bl_film_grid *grid, double radius, double length, double scale);

#endif
