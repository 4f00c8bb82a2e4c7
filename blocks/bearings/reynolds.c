/* The finite bearing: Reynolds' equation by finite volumes.
 *
 * With H = h / c, ζ = z / B and p = 6 μ (r / c)² q,
 *
 *     -∂θ(H³ ∂θ q) - (r / B)² ∂ζ(H³ ∂ζ q) = f = -ω ∂θ H - 2 ∂t H,     q = 0 at both ends,
 *
 * on n_theta × n_z equal cells, q in their middles: a symmetric matrix A with no positive entry off its diagonal.
 * Cavitation after Reynolds asks for q ≥ 0, A q ≥ f and q · (A q - f) = 0. Given which cells hold a film, that is a
 * linear system; cells with q ≤ 0 then leave the film, and cells with A q < f join it, until none does either. For
 * such matrices this ends at the one solution, whatever it starts from: the film of the last tick saves time, and
 * changes nothing but rounding.
 *
 * Systems are solved by elimination: first every second cell, as on a chess board, each by itself; then the others,
 * column by column around the journal, in a band as wide as a column has cells. Without tilt both halves are equal and
 * one is solved. Where no column is free of film the ring is folded flat, which doubles the band. */
#include <math.h>
#include <string.h>

#include "blocks/bearings/film.h"
#include "blocks/kernel.h"

static const double REYNOLDS_PI = 3.14159265358979323846;

enum { REYNOLDS_BLOCK = 4 };

/* Cells are numbered i * m + j: i around, j along. */
typedef struct {
    int32_t n, m;        /* columns, and cells in a column that are solved for */
    int32_t blacks;      /* in a column, at most */
    int32_t mirrored;    /* whether the other half is like this one */
    double *cosine, *sine;   /* n: at the middles */
    double *cos_face, *sin_face; /* n: between columns i and i + 1 */
    double *around;      /* n × m: H³ / dθ² between columns i and i + 1 */
    double *along;       /* n × (m + 1): (r / B)² H³ / dζ² below cell j, and above the last */
    double *diagonal, *source, *q, *film; /* n × m */
    double *right;       /* n × blacks, and up to a block more */
    double *band;        /* as many rows of width + REYNOLDS_BLOCK: black cells only */
    uint8_t groove[BL_FILM_MOST_AROUND];
    int32_t order[BL_FILM_MOST_AROUND]; /* columns with film, as they are eliminated */
    int32_t place[BL_FILM_MOST_AROUND]; /* of a column in `order`, or -1 */
    int32_t columns, width;
} reynolds_system;

int64_t bl_film_work(int32_t n_theta, int32_t n_z) {
    const int64_t n = n_theta, m = n_z, rows = n * m / 2 + REYNOLDS_BLOCK;
    return 4 * n + n * (m + 1) + 6 * n * m + rows * (1 + 2 * m + REYNOLDS_BLOCK);
}

static double *reynolds_take(double **from, int64_t count) {
    double *taken = *from;
    *from += count;
    return taken;
}

static void reynolds_lay_out(reynolds_system *s, const bl_film_grid *grid, const bl_film_motion *m) {
    s->n = grid->n_theta;
    s->mirrored = m->x[0] == m->x[1] && m->y[0] == m->y[1] && m->vx[0] == m->vx[1] && m->vy[0] == m->vy[1];
    s->m = s->mirrored ? grid->n_z / 2 : grid->n_z;
    s->blacks = (s->m + 1) / 2;
    double *work = grid->work + (int64_t)grid->n_theta * grid->n_z; /* after the pressure that is returned */
    const int64_t n = s->n, cells = n * s->m;
    s->cosine = reynolds_take(&work, n);
    s->sine = reynolds_take(&work, n);
    s->cos_face = reynolds_take(&work, n);
    s->sin_face = reynolds_take(&work, n);
    s->around = reynolds_take(&work, cells);
    s->along = reynolds_take(&work, n * (s->m + 1));
    s->diagonal = reynolds_take(&work, cells);
    s->source = reynolds_take(&work, cells);
    s->q = reynolds_take(&work, cells);
    s->film = reynolds_take(&work, cells);
    s->right = reynolds_take(&work, n * s->blacks + REYNOLDS_BLOCK);
    s->band = work;
}

/* Cosines and sines by turning on half a cell at a time. */
static void reynolds_angles(reynolds_system *s) {
    const double step = REYNOLDS_PI / s->n, turn_c = cos(step), turn_s = sin(step);
    double c = 1.0, d = 0.0;
    for (int32_t i = 0; i < s->n; i++) {
        s->cosine[i] = c * turn_c - d * turn_s;
        s->sine[i] = d * turn_c + c * turn_s;
        c = s->cosine[i] * turn_c - s->sine[i] * turn_s;
        d = s->sine[i] * turn_c + s->cosine[i] * turn_s;
        s->cos_face[i] = c;
        s->sin_face[i] = d;
    }
}

static double reynolds_cube(double v) { return v * v * v; }

static void reynolds_coefficients(reynolds_system *s, const bl_film_bearing *b, const bl_film_motion *mo,
                                  const bl_film_grid *grid) {
    const int32_t n = s->n, m = s->m;
    const double c = b->clearance, dt = 2.0 * REYNOLDS_PI / n, dz = 1.0 / grid->n_z;
    const double ratio = b->radius / b->length, per_t = 1.0 / (dt * dt), per_z = ratio * ratio / (dz * dz);
    const double omega = mo->journal_speed + mo->bush_speed;
    const double spread = sin(0.5 * dt) / (0.5 * dt); /* mean of a cosine over a cell, against its middle */
    for (int32_t j = 0; j < m; j++) {
        const double z = ((double)j + 0.5) * dz, z_face = (double)j * dz;
        const double X = (mo->x[0] + (mo->x[1] - mo->x[0]) * z) / c, Y = (mo->y[0] + (mo->y[1] - mo->y[0]) * z) / c;
        const double U = (mo->vx[0] + (mo->vx[1] - mo->vx[0]) * z) / c, V = (mo->vy[0] + (mo->vy[1] - mo->vy[0]) * z) / c;
        const double Xf = (mo->x[0] + (mo->x[1] - mo->x[0]) * z_face) / c;
        const double Yf = (mo->y[0] + (mo->y[1] - mo->y[0]) * z_face) / c;
        const double by_cos = spread * (omega * Y + 2.0 * U), by_sin = spread * (2.0 * V - omega * X);
        const double end = j == 0 ? 2.0 * per_z : per_z;
        for (int32_t i = 0; i < n; i++) {
            s->source[i * m + j] = by_cos * s->cosine[i] + by_sin * s->sine[i];
            s->around[i * m + j] = per_t * reynolds_cube(1.0 - X * s->cos_face[i] - Y * s->sin_face[i]);
            s->along[i * (m + 1) + j] = end * reynolds_cube(1.0 - Xf * s->cosine[i] - Yf * s->sine[i]);
        }
    }
    for (int32_t i = 0; i < n; i++) {
        const double H = 1.0 - mo->x[1] / c * s->cosine[i] - mo->y[1] / c * s->sine[i];
        s->along[i * (m + 1) + m] = s->mirrored ? 0.0 : 2.0 * per_z * reynolds_cube(H);
    }
    for (int32_t i = 0; i < n; i++) {
        const double *before = s->around + (i > 0 ? i - 1 : n - 1) * m, *after = s->around + i * m;
        const double *along = s->along + i * (m + 1);
        for (int32_t j = 0; j < m; j++)
            s->diagonal[i * m + j] = before[j] + after[j] + along[j] + along[j + 1];
    }
}

/* A groove takes the columns whose middles it covers, and at least the nearest one. */
static void reynolds_grooves(reynolds_system *s, const bl_film_grid *grid) {
    memset(s->groove, 0, sizeof s->groove);
    const double step = 2.0 * REYNOLDS_PI / s->n;
    for (int32_t g = 0; g < grid->groove_count; g++) {
        const double middle = grid->grooves[2 * g], half = 0.5 * grid->grooves[2 * g + 1];
        int32_t nearest = 0;
        double least = INFINITY;
        for (int32_t i = 0; i < s->n; i++) {
            const double away = fabs(remainder(((double)i + 0.5) * step - middle, 2.0 * REYNOLDS_PI));
            if (away <= half) s->groove[i] = 1;
            if (away < least) {
                least = away;
                nearest = i;
            }
        }
        s->groove[nearest] = 1;
    }
}

/* Where there must be film: the last one, and wherever the gap closes. Without cavitation, everywhere. */
static void reynolds_first_film(reynolds_system *s, const bl_film_grid *grid, int whole) {
    for (int32_t i = 0; i < s->n; i++)
        for (int32_t j = 0; j < s->m; j++) {
            const int32_t k = i * s->m + j;
            const int there = whole || s->source[k] > 0.0 || grid->film[i * grid->n_z + j] > 0.5;
            s->film[k] = there && !s->groove[i];
        }
}

/* Lists the columns with film. From a free one on, neighbours in the list are neighbours around the journal; if there
   is none, the list alternates between both sides of the ring and neighbours are at most two places apart. */
static void reynolds_order(reynolds_system *s) {
    const int32_t n = s->n;
    int32_t cut = -1;
    for (int32_t i = 0; i < n; i++) {
        int any = 0;
        for (int32_t j = 0; j < s->m; j++) any |= s->film[i * s->m + j] > 0.0;
        s->place[i] = any ? 0 : -1;
        if (!any) cut = i;
    }
    s->columns = 0;
    for (int32_t k = 1; k <= n; k++) {
        const int32_t folded = k == 1 ? 0 : k % 2 ? n - k / 2 : k / 2;
        const int32_t i = cut < 0 ? folded : (cut + k) % n;
        if (s->place[i] < 0) continue;
        s->place[i] = s->columns;
        s->order[s->columns++] = i;
    }
    /* A black cell meets black ones up to two columns away. */
    s->width = (cut < 0 ? 4 : 2) * s->blacks;
}

/* The row of black cell (i, j). Red and black cells of a column share a number j / 2. */
static int32_t reynolds_row(const reynolds_system *s, int32_t i, int32_t j) { return s->place[i] * s->blacks + j / 2; }

/* Neighbours of a cell that hold film, and what couples it to them: before, after, below, above. */
typedef struct {
    int32_t i[4], j[4];
    double by[4]; /* 0 where there is none */
} reynolds_neighbours;

static reynolds_neighbours reynolds_look_around(const reynolds_system *s, int32_t i, int32_t j) {
    const int32_t m = s->m, before = i > 0 ? i - 1 : s->n - 1, after = i + 1 < s->n ? i + 1 : 0;
    const double *along = s->along + i * (m + 1);
    return (reynolds_neighbours){
        .i = {before, after, i, i},
        .j = {j, j, j - 1, j + 1},
        .by = {s->around[before * m + j] * s->film[before * m + j], s->around[i * m + j] * s->film[after * m + j],
               j > 0 ? along[j] * s->film[i * m + j - 1] : 0.0,
               j + 1 < m ? along[j + 1] * s->film[i * m + j + 1] : 0.0}};
}

/* Cells are red and black like those of a board. A red one has black neighbours only: it is eliminated on the spot,
   which couples each two of them and leaves half of the rows in a band that is no wider. */
static void reynolds_assemble(reynolds_system *s) {
    const int32_t m = s->m, stride = s->width + REYNOLDS_BLOCK;
    memset(s->band, 0, sizeof(double) * (size_t)s->columns * (size_t)s->blacks * (size_t)stride);
    for (int32_t c = 0; c < s->columns; c++) {
        const int32_t i = s->order[c];
        for (int32_t k = 0; k < s->blacks; k++) {
            const int32_t j = 2 * k + i % 2, cell = i * m + j, row = c * s->blacks + k;
            const int there = j < m && s->film[cell] > 0.0;
            s->band[(int64_t)row * stride] = there ? s->diagonal[cell] : 1.0;
            s->right[row] = there ? s->source[cell] : 0.0;
        }
    }
    for (int32_t c = 0; c < s->columns; c++) {
        const int32_t i = s->order[c];
        for (int32_t j = 1 - i % 2; j < m; j += 2) {
            const int32_t cell = i * m + j;
            if (!(s->film[cell] > 0.0)) continue;
            const reynolds_neighbours near = reynolds_look_around(s, i, j);
            const double inverse = 1.0 / s->diagonal[cell];
            for (int32_t p = 0; p < 4; p++) {
                if (!(near.by[p] > 0.0)) continue;
                const int32_t row = reynolds_row(s, near.i[p], near.j[p]);
                const double share = near.by[p] * inverse;
                s->right[row] += share * s->source[cell];
                s->band[(int64_t)row * stride] -= share * near.by[p];
                for (int32_t q = p + 1; q < 4; q++) {
                    if (!(near.by[q] > 0.0)) continue;
                    const int32_t other = reynolds_row(s, near.i[q], near.j[q]);
                    const int32_t first = row < other ? row : other;
                    s->band[(int64_t)first * stride + (row + other - 2 * first)] -= share * near.by[q];
                }
            }
        }
    }
}

/* Takes four rows out of the two that follow each other at `upper` and `lower`: one pass over six rows instead of four
   over each of two. pivot[k][0] stands over upper[0], pivot[k][1] over lower[0]. The upper one has `count` values left,
   the lower one less, and none if the band ends between them. */
static void reynolds_eliminate(double *restrict upper, double *restrict lower, const double *const pivot[4],
                               const double *restrict inverse, int32_t count) {
    const double *restrict p0 = pivot[0], *restrict p1 = pivot[1], *restrict p2 = pivot[2], *restrict p3 = pivot[3];
    const double u0 = p0[0] * inverse[0], u1 = p1[0] * inverse[1], u2 = p2[0] * inverse[2], u3 = p3[0] * inverse[3];
    upper[0] -= (u0 * p0[0] + u1 * p1[0]) + (u2 * p2[0] + u3 * p3[0]);
    if (count < 2) return;
    const double l0 = p0[1] * inverse[0], l1 = p1[1] * inverse[1], l2 = p2[1] * inverse[2], l3 = p3[1] * inverse[3];
    for (int32_t j = 1; j < count; j++) {
        const double a = p0[j], b = p1[j], c = p2[j], d = p3[j];
        upper[j] -= (u0 * a + u1 * b) + (u2 * c + u3 * d);
        lower[j - 1] -= (l0 * a + l1 * b) + (l2 * c + l3 * d);
    }
}

/* Brings the band to the form D Lᵀ and the right-hand side along, four rows at a time, without pivots, which a matrix
   like this does not need. Rows hold zeros beyond the band, so that a row may be read as if it reached as far as the
   fourth one after it. */
static void reynolds_factor(reynolds_system *s, int32_t count) {
    const int32_t width = s->width, stride = width + REYNOLDS_BLOCK;
    double *right = s->right;
    for (int32_t r = 0; r < count; r += REYNOLDS_BLOCK) {
        double *rows = s->band + (int64_t)r * stride, inverse[REYNOLDS_BLOCK];
        for (int32_t k = 0; k < REYNOLDS_BLOCK; k++) {
            const double *pivot = rows + k * stride;
            inverse[k] = 1.0 / pivot[0];
            for (int32_t i = 1; i < REYNOLDS_BLOCK - k && i <= width; i++) {
                const double factor = pivot[i] * inverse[k];
                double *row = rows + (k + i) * stride;
                for (int32_t j = 0; j <= width - i; j++) row[j] -= factor * pivot[i + j];
                right[r + k + i] -= factor * right[r + k];
            }
        }
        const int32_t last = count - r < width + REYNOLDS_BLOCK ? count - r : width + REYNOLDS_BLOCK;
        for (int32_t i = REYNOLDS_BLOCK; i < last; i++) {
            const double *column = rows + i;
            const double a = column[0] * inverse[0] * right[r], b = column[stride - 1] * inverse[1] * right[r + 1];
            const double c = column[2 * stride - 2] * inverse[2] * right[r + 2];
            right[r + i] -= (a + b) + (c + column[3 * stride - 3] * inverse[3] * right[r + 3]);
        }
        for (int32_t i = REYNOLDS_BLOCK; i < last; i += 2) {
            const double *const pivot[REYNOLDS_BLOCK] = {rows + i, rows + stride + i - 1, rows + 2 * stride + i - 2,
                                                         rows + 3 * stride + i - 3};
            reynolds_eliminate(rows + i * stride, rows + (i + 1) * stride, pivot, inverse,
                               width + REYNOLDS_BLOCK - i);
        }
    }
}

/* Gives each cell its pressure: black ones from their rows, then red ones from the black ones about them. */
static void reynolds_spread(reynolds_system *s) {
    const int32_t m = s->m;
    memset(s->q, 0, sizeof(double) * (size_t)(s->n * m));
    for (int32_t c = 0; c < s->columns; c++) {
        const int32_t i = s->order[c];
        for (int32_t j = i % 2; j < m; j += 2) s->q[i * m + j] = s->right[reynolds_row(s, i, j)];
    }
    for (int32_t c = 0; c < s->columns; c++) {
        const int32_t i = s->order[c];
        const double *before = s->q + (i > 0 ? i - 1 : s->n - 1) * m, *after = s->q + (i + 1 < s->n ? i + 1 : 0) * m;
        const double *a_before = s->around + (i > 0 ? i - 1 : s->n - 1) * m, *a_after = s->around + i * m;
        const double *along = s->along + i * (m + 1);
        double *q = s->q + i * m;
        for (int32_t j = 1 - i % 2; j < m; j += 2) {
            if (!(s->film[i * m + j] > 0.0)) continue;
            double sum = s->source[i * m + j] + (a_before[j] * before[j] + a_after[j] * after[j]);
            if (j > 0) sum += along[j] * q[j - 1];
            if (j + 1 < m) sum += along[j + 1] * q[j + 1];
            q[j] = sum / s->diagonal[i * m + j];
        }
    }
}

static void reynolds_solve(reynolds_system *s) {
    const int32_t width = s->width, stride = width + REYNOLDS_BLOCK;
    int32_t count = s->columns * s->blacks;
    double *right = s->right;
    for (; count % REYNOLDS_BLOCK; count++) { /* more rows, that say x = 0 */
        double *row = s->band + (int64_t)count * stride;
        memset(row, 0, sizeof(double) * (size_t)stride);
        row[0] = 1.0;
        right[count] = 0.0;
    }
    reynolds_factor(s, count);
    for (int32_t r = count - 1; r >= 0; r--) {
        const double *row = s->band + (int64_t)r * stride, *known = right + r;
        const int32_t reach = count - 1 - r < width ? count - 1 - r : width;
        double sum[4] = {0.0, 0.0, 0.0, 0.0}; /* apart, so that they need not wait for each other */
        int32_t j = 1;
        for (; j + 3 <= reach; j += 4)
            for (int32_t k = 0; k < 4; k++) sum[k] += row[j + k] * known[j + k];
        for (; j <= reach; j++) sum[0] += row[j] * known[j];
        right[r] = (right[r] - ((sum[0] + sum[1]) + (sum[2] + sum[3]))) / row[0];
    }
    reynolds_spread(s);
}

/* Lets cells leave and join the film; returns how many did. */
static int32_t reynolds_exchange(reynolds_system *s) {
    const int32_t n = s->n, m = s->m;
    double largest = 0.0;
    for (int32_t k = 0; k < n * m; k++) largest = fabs(s->source[k]) > largest ? fabs(s->source[k]) : largest;
    int32_t changed = 0;
    for (int32_t i = 0; i < n; i++) {
        const int32_t before = (i > 0 ? i - 1 : n - 1) * m, here = i * m, after = (i + 1 < n ? i + 1 : 0) * m;
        if (s->groove[i]) continue;
        for (int32_t j = 0; j < m; j++) {
            const int32_t k = here + j;
            if (s->film[k] > 0.0) {
                if (s->q[k] > 0.0) continue;
                s->film[k] = 0.0;
                changed++;
                continue;
            }
            double pull = s->around[before + j] * s->q[before + j] + s->around[here + j] * s->q[after + j] + s->source[k];
            if (j > 0) pull += s->along[i * (m + 1) + j] * s->q[k - 1];
            if (j + 1 < m) pull += s->along[i * (m + 1) + j + 1] * s->q[k + 1];
            if (!(pull > 1e-12 * largest)) continue;
            s->film[k] = 1.0;
            changed++;
        }
    }
    return changed;
}

/* Gümbel's condition. */
static void reynolds_drop_negative(reynolds_system *s) {
    for (int32_t k = 0; k < s->n * s->m; k++) s->q[k] = s->q[k] > 0.0 ? s->q[k] : 0.0;
}

static void reynolds_sum(const reynolds_system *s, const bl_film_bearing *b, const bl_film_grid *grid,
                         bl_film_load *load) {
    const int32_t n = s->n, m = s->m, n_z = grid->n_z;
    const double scale = 6.0 * b->viscosity * (b->radius / b->clearance) * (b->radius / b->clearance);
    const double area = 2.0 * REYNOLDS_PI / n * b->radius * b->length / n_z;
    double peak = 0.0, fx = 0.0, fy = 0.0, mx = 0.0, my = 0.0;
    for (int32_t i = 0; i < n; i++) {
        double sum = 0.0, lever = 0.0;
        for (int32_t j = 0; j < m; j++) {
            const double p = scale * s->q[i * m + j];
            grid->work[i * n_z + j] = p;
            grid->film[i * n_z + j] = s->film[i * m + j];
            peak = p > peak ? p : peak;
            sum += p;
            lever += p * ((double)j + 0.5);
            if (!s->mirrored) continue;
            grid->work[i * n_z + n_z - 1 - j] = p;
            grid->film[i * n_z + n_z - 1 - j] = s->film[i * m + j];
        }
        if (s->mirrored) {
            sum *= 2.0;
            lever = 0.5 * n_z * sum;
        }
        fx -= sum * s->cosine[i];
        fy -= sum * s->sine[i];
        mx += lever * s->sine[i];
        my -= lever * s->cosine[i];
    }
    load->force[0] = fx * area;
    load->force[1] = fy * area;
    load->moment[0] = mx * area * b->length / n_z;
    load->moment[1] = my * area * b->length / n_z;
    load->pressure = peak;
}

int bl_film_finite(const bl_film_bearing *b, const bl_film_motion *motion, const bl_film_grid *grid,
                   bl_film_load *load) {
    reynolds_system s;
    reynolds_lay_out(&s, grid, motion);
    reynolds_angles(&s);
    reynolds_coefficients(&s, b, motion, grid);
    reynolds_grooves(&s, grid);
    const int free_boundary = b->cavitation == BL_CAVITATION_REYNOLDS;
    reynolds_first_film(&s, grid, !free_boundary);
    /* From any start the film grows by at least a column in a pass. */
    int status = BL_OK;
    do {
        if (load->solves == s.n) {
            status = BL_ERROR_SOLVER;
            break;
        }
        reynolds_order(&s);
        reynolds_assemble(&s);
        reynolds_solve(&s);
        load->solves++;
    } while (free_boundary && reynolds_exchange(&s) > 0);
    if (b->cavitation == BL_CAVITATION_GUMBEL) reynolds_drop_negative(&s);
    reynolds_sum(&s, b, grid, load);
    return status;
}
