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
 * Without tilt both halves are equal and one is solved. Feeds hold cells at a pressure: such a cell is not an unknown, and
 * enters the right-hand side of its neighbors. Volumes are (c / 2) r B dθ dζ for each unit of A q - f, which is
 * zero where the film is whole, the inflow where pressure is held, and the mass error of cavitation elsewhere. */
#include <math.h>
#include <string.h>

#include "blocks/bearings/reynolds/reynolds.h"
#include "blocks/core/kernel/constants.h"
#include "blocks/core/kernel/kernel.h"

int64_t bl_film_work(int32_t n_theta, int32_t n_z, int32_t cavitation) {
    const int64_t n = n_theta, m = n_z, rows = n * m / 2 + REYNOLDS_BLOCK;
    const int keeps = bl_film_keeps_oil(cavitation);
    return 4 * n + n * (m + 1) + (keeps ? 10 : 7) * n * m + rows * (1 + (keeps ? 4 : 2) * m + REYNOLDS_BLOCK);
}

/* Pa for q = 1. */
static double reynolds_scale(const bl_film_bearing *b) {
    const double slope = b->radius / b->clearance;
    return 6.0 * b->viscosity * slope * slope;
}

static double *reynolds_take(double **from, int64_t count) {
    double *taken = *from;
    *from += count;
    return taken;
}

/* Whether a row of a map of the bush, `width` values along, reads the same from both ends. */
static int reynolds_same_both_ways(const double *map, int32_t width) {
    for (int32_t j = 0; j < width / 2; j++)
        if (map[j] != map[width - 1 - j]) return 0;
    return 1;
}

/* Whether both halves of the film are equal: so they move, and so is all that is given of them. */
static int reynolds_symmetric(const reynolds_system *s, const bl_film_grid *grid, const bl_film_motion *m) {
    if (!(m->x[0] == m->x[1] && m->y[0] == m->y[1] && m->vx[0] == m->vx[1] && m->vy[0] == m->vy[1])) return 0;
    for (int32_t i = 0; grid->bush && i < s->n; i++)
        if (!reynolds_same_both_ways(grid->bush + i * s->n_z, s->n_z) ||
            !reynolds_same_both_ways(grid->bush + s->n * s->n_z + i * (s->n_z + 1), s->n_z + 1))
            return 0;
    if (!s->fed && !grid->content) return 1;
    for (int32_t i = 0; i < s->n; i++)
        for (int32_t j = 0; j < s->n_z / 2; j++) {
            const int32_t near = i * s->n_z + j, far = i * s->n_z + s->n_z - 1 - j;
            if (s->fed && !(s->held[near] == s->held[far] || (isnan(s->held[near]) && isnan(s->held[far])))) return 0;
            if (grid->content && grid->content[near] != grid->content[far]) return 0;
        }
    return 1;
}

static void reynolds_lay_out(reynolds_system *s, const bl_film_bearing *b, const bl_film_grid *grid,
                             const bl_film_motion *m) {
    s->n = grid->n_theta;
    s->n_z = grid->n_z;
    double *work = grid->work + (int64_t)s->n * s->n_z; /* after the pressure that is returned */
    s->held = reynolds_take(&work, (int64_t)s->n * s->n_z);
    s->fed = grid->feed_count > 0;
    if (s->fed) bl_reynolds_hold(s->held, grid, b->radius, b->length, reynolds_scale(b));
    s->mirrored = reynolds_symmetric(s, grid, m);
    s->m = s->mirrored ? s->n_z / 2 : s->n_z;
    s->blacks = (s->m + 1) / 2;
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
    if (bl_film_keeps_oil(b->cavitation)) {
        s->gap = reynolds_take(&work, cells);
        s->stored = reynolds_take(&work, cells);
        s->carried = reynolds_take(&work, cells);
    }
    s->right = reynolds_take(&work, n * s->blacks + REYNOLDS_BLOCK);
    s->band = work;
}

/* Cosines and sines by turning on half a cell at a time. */
static void reynolds_angles(reynolds_system *s) {
    const double step = BL_PI / s->n, turn_c = cos(step), turn_s = sin(step);
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

int bl_reynolds_is_held(const reynolds_system *s, int32_t i, int32_t j) {
    return s->fed && !isnan(s->held[i * s->n_z + j]);
}

static double reynolds_cube(double v) { return v * v * v; }

static void reynolds_coefficients(reynolds_system *s, const bl_film_bearing *b, const bl_film_motion *mo,
                                  const bl_film_grid *grid) {
    const int32_t n = s->n, m = s->m;
    const double c = b->clearance, dt = 2.0 * BL_PI / n, dz = 1.0 / grid->n_z;
    const double ratio = b->radius / b->length, per_t = 1.0 / (dt * dt), per_z = ratio * ratio / (dz * dz);
    const double omega = mo->journal_speed + mo->bush_speed;
    const double spread = sin(0.5 * dt) / (0.5 * dt); /* mean of a cosine over a cell, against its middle */
    for (int32_t j = 0; j < m; j++) {
        const double z = ((double)j + 0.5) * dz, z_face = (double)j * dz;
        const double X = (mo->x[0] + (mo->x[1] - mo->x[0]) * z) / c, Y = (mo->y[0] + (mo->y[1] - mo->y[0]) * z) / c;
        const double U = (mo->vx[0] + (mo->vx[1] - mo->vx[0]) * z) / c,
                     V = (mo->vy[0] + (mo->vy[1] - mo->vy[0]) * z) / c;
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
}

/* The same with what the bush leaves more: its own shape adds to the wedge, and changes all gaps. */
static void reynolds_add_bush(reynolds_system *s, const bl_film_bearing *b, const bl_film_motion *mo,
                              const bl_film_grid *grid) {
    const int32_t n = s->n, m = s->m, n_z = s->n_z;
    const double c = b->clearance, dt = 2.0 * BL_PI / n, dz = 1.0 / n_z;
    const double ratio = b->radius / b->length, per_t = 1.0 / (dt * dt), per_z = ratio * ratio / (dz * dz);
    const double omega = mo->journal_speed + mo->bush_speed;
    const double *edges = grid->bush, *ends = grid->bush + n * n_z;
    for (int32_t j = 0; j <= m; j++) {
        const double z = ((double)j + 0.5) * dz, z_face = (double)j * dz;
        const double X = (mo->x[0] + (mo->x[1] - mo->x[0]) * z) / c, Y = (mo->y[0] + (mo->y[1] - mo->y[0]) * z) / c;
        const double Xf = (mo->x[0] + (mo->x[1] - mo->x[0]) * z_face) / c;
        const double Yf = (mo->y[0] + (mo->y[1] - mo->y[0]) * z_face) / c;
        const double last = j == 0 || j == n_z ? 2.0 * per_z : j == m ? 0.0 : per_z;
        for (int32_t i = 0; i < n; i++) {
            const double gap = 1.0 - Xf * s->cosine[i] - Yf * s->sine[i] + ends[i * (n_z + 1) + j] / c;
            s->along[i * (m + 1) + j] = last * reynolds_cube(gap);
            if (j == m) continue;
            const double after = edges[i * n_z + j] / c, before = edges[(i > 0 ? i - 1 : n - 1) * n_z + j] / c;
            s->around[i * m + j] = per_t * reynolds_cube(1.0 - X * s->cos_face[i] - Y * s->sin_face[i] + after);
            s->source[i * m + j] -= omega * (after - before) / dt;
        }
    }
}

/* A cell that is held is so up to its edges, which are half as far from the middles of its neighbors. */
static void reynolds_hold_edges(reynolds_system *s) {
    const int32_t n = s->n, m = s->m;
    for (int32_t i = 0; i < n; i++) {
        const int32_t after = i + 1 < n ? i + 1 : 0;
        for (int32_t j = 0; j < m; j++) {
            const int held = bl_reynolds_is_held(s, i, j);
            if (held != bl_reynolds_is_held(s, after, j)) s->around[i * m + j] *= 2.0;
            if (j + 1 < m && held != bl_reynolds_is_held(s, i, j + 1)) s->along[i * (m + 1) + j + 1] *= 2.0;
        }
    }
}

static void reynolds_diagonal(reynolds_system *s) {
    const int32_t n = s->n, m = s->m;
    for (int32_t i = 0; i < n; i++) {
        const double *before = s->around + (i > 0 ? i - 1 : n - 1) * m, *after = s->around + i * m;
        const double *along = s->along + i * (m + 1);
        for (int32_t j = 0; j < m; j++) s->diagonal[i * m + j] = before[j] + after[j] + along[j] + along[j + 1];
    }
}

/* Adds the flow from neighbors of given pressure to the right-hand side. */
static void reynolds_feed(reynolds_system *s) {
    const int32_t n = s->n, m = s->m;
    for (int32_t i = 0; i < n; i++) {
        const int32_t before = i > 0 ? i - 1 : n - 1, after = i + 1 < n ? i + 1 : 0;
        for (int32_t j = 0; j < m; j++) {
            if (!bl_reynolds_is_held(s, i, j)) continue;
            const double q = s->held[i * s->n_z + j];
            if (!bl_reynolds_is_held(s, before, j)) s->source[before * m + j] += s->around[before * m + j] * q;
            if (!bl_reynolds_is_held(s, after, j)) s->source[after * m + j] += s->around[i * m + j] * q;
            const double *along = s->along + i * (m + 1);
            if (j > 0 && !bl_reynolds_is_held(s, i, j - 1)) s->source[i * m + j - 1] += along[j] * q;
            if (j + 1 < m && !bl_reynolds_is_held(s, i, j + 1)) s->source[i * m + j + 1] += along[j + 1] * q;
        }
    }
}

/* Where there must be film: the last one, and wherever the gap closes. Without cavitation, everywhere. */
static void reynolds_first_film(reynolds_system *s, const bl_film_grid *grid, int whole) {
    for (int32_t i = 0; i < s->n; i++)
        for (int32_t j = 0; j < s->m; j++) {
            const int32_t k = i * s->m + j;
            const int there = whole || s->source[k] > 0.0 || grid->film[i * grid->n_z + j] > 0.5;
            s->film[k] = there && !bl_reynolds_is_held(s, i, j);
        }
}

/* Lets cells leave and join the film; returns how many did. */
static int32_t reynolds_exchange(reynolds_system *s) {
    const int32_t n = s->n, m = s->m;
    double largest = 0.0;
    for (int32_t k = 0; k < n * m; k++) largest = fabs(s->source[k]) > largest ? fabs(s->source[k]) : largest;
    int32_t changed = 0;
    for (int32_t i = 0; i < n; i++) {
        const int32_t before = (i > 0 ? i - 1 : n - 1) * m, here = i * m, after = (i + 1 < n ? i + 1 : 0) * m;
        for (int32_t j = 0; j < m; j++) {
            const int32_t k = here + j;
            if (bl_reynolds_is_held(s, i, j)) continue;
            if (s->film[k] > 0.0) {
                if (s->q[k] > 0.0) continue;
                s->film[k] = 0.0;
                changed++;
                continue;
            }
            double pull =
                s->around[before + j] * s->q[before + j] + s->around[here + j] * s->q[after + j] + s->source[k];
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

static void reynolds_set_held(reynolds_system *s) {
    for (int32_t i = 0; i < s->n; i++)
        for (int32_t j = 0; j < s->m; j++)
            if (bl_reynolds_is_held(s, i, j)) s->q[i * s->m + j] = s->held[i * s->n_z + j];
}

/* Outflow of a cell of given pressure, minus the inflow from its neighbors and its own wedge. */
static double reynolds_excess(const reynolds_system *s, int32_t i, int32_t j) {
    const int32_t m = s->m, k = i * m + j, before = i > 0 ? i - 1 : s->n - 1, after = i + 1 < s->n ? i + 1 : 0;
    const double *along = s->along + i * (m + 1);
    double excess = s->diagonal[k] * s->q[k] - s->source[k] - s->around[before * m + j] * s->q[before * m + j] -
                    s->around[k] * s->q[after * m + j];
    if (j > 0) excess -= along[j] * s->q[k - 1];
    if (j + 1 < m) excess -= along[j + 1] * s->q[k + 1];
    return excess;
}

/* Volumes that come in where pressure is given, and go out at both ends. */
static void reynolds_flow(const reynolds_system *s, double per_cell, bl_film_load *load) {
    double in = 0.0, out[2] = {0.0, 0.0};
    for (int32_t i = 0; i < s->n; i++) {
        const double *along = s->along + i * (s->m + 1), *q = s->q + i * s->m;
        out[0] += along[0] * q[0];
        out[1] += along[s->m] * q[s->m - 1];
        for (int32_t j = 0; j < s->m && s->fed; j++)
            if (bl_reynolds_is_held(s, i, j)) in += reynolds_excess(s, i, j);
    }
    load->side_flow[0] = per_cell * out[0];
    load->side_flow[1] = per_cell * (s->mirrored ? out[0] : out[1]);
    load->supply_flow = per_cell * (s->mirrored ? 2.0 * in : in);
}

/* ∫ p ∂θ g dθ, summed along, with the pressure of all cells. */
static double reynolds_bush_twist(const bl_film_grid *grid) {
    double sum = 0.0;
    for (int32_t i = 0; i < grid->n_theta; i++) {
        const double *after = grid->bush + i * grid->n_z;
        const double *before = grid->bush + (i > 0 ? i - 1 : grid->n_theta - 1) * grid->n_z;
        for (int32_t j = 0; j < grid->n_z; j++) sum += grid->work[i * grid->n_z + j] * (after[j] - before[j]);
    }
    return sum;
}

static void reynolds_sum(const reynolds_system *s, const bl_film_bearing *b, const bl_film_grid *grid,
                         bl_film_load *load) {
    const int32_t n = s->n, m = s->m, n_z = grid->n_z;
    const double scale = reynolds_scale(b);
    const double area = 2.0 * BL_PI / n * b->radius * b->length / n_z;
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
    if (grid->bush) load->bush_twist = reynolds_bush_twist(grid) * b->radius * b->length / n_z;
    reynolds_flow(s, 0.5 * b->clearance * area, load);
}

/* Finds the film and its pressure, if cavitation keeps no account of oil. */
static int reynolds_find(reynolds_system *s, const bl_film_bearing *b, const bl_film_grid *grid, bl_film_load *load) {
    const int free_boundary = b->cavitation == BL_CAVITATION_REYNOLDS;
    reynolds_first_film(s, grid, !free_boundary);
    /* From any start the film grows by at least a column in a pass. */
    do {
        if (load->solves == s->n) return BL_ERROR_SOLVER;
        bl_reynolds_order(s);
        bl_reynolds_solve(s);
        load->solves++;
    } while (free_boundary && reynolds_exchange(s) > 0);
    if (b->cavitation == BL_CAVITATION_GUMBEL) reynolds_drop_negative(s);
    return BL_OK;
}

int bl_film_finite(const bl_film_bearing *b, const bl_film_motion *motion, const bl_film_grid *grid,
                   bl_film_load *load) {
    reynolds_system s;
    reynolds_lay_out(&s, b, grid, motion);
    reynolds_angles(&s);
    reynolds_coefficients(&s, b, motion, grid);
    if (grid->bush) reynolds_add_bush(&s, b, motion, grid);
    if (s.fed) reynolds_hold_edges(&s);
    reynolds_diagonal(&s);
    if (s.fed) reynolds_feed(&s);
    const int status = bl_film_keeps_oil(b->cavitation) ? bl_reynolds_jfo(&s, b, motion, grid, load)
                                                        : reynolds_find(&s, b, grid, load);
    if (s.fed) reynolds_set_held(&s);
    reynolds_sum(&s, b, grid, load);
    return status;
}
