/* A finite film that keeps its oil: cavitation after Jakobsson, Floberg and Olsson, as Elrod and Adams compute it.
 *
 * A cell is full and has a pressure q ≥ 0, or is partly filled, by ϑ < 1, and has none. In a time τ
 *
 *     A q + ω ∂θ(ϑ H) + 2 (ϑ H⁺ - w) / τ = 0,
 *
 * with w the oil that was in the cell, in clearances, and H⁺ = H + τ ∂t H the gap at the end. What shear carries over
 * an edge is ω ϑ H there, ϑ of the cell upstream: where the film is full this is Reynolds' equation as it stands.
 * With x = q in full cells and x = ϑ - 1 in the others the system is linear once it is known which are which. A column of
 * a full cell is one of A; of the others, one with its store 2 H⁺ / τ and what it carries on the diagonal, and what it
 * carries with a minus sign downstream. However they are mixed this is an M-matrix, dominated by its diagonals column
 * by column, so that elimination needs no pivots, and there is one solution. Cells change sides where x has the wrong
 * sign; if too many passes go by, only the first such cell does, which ends for matrices like these.
 *
 * A steady film is one whose step is very long. */
#include <math.h>
#include <string.h>

#include "blocks/bearings/reynolds/reynolds.h"
#include "blocks/core/kernel/constants.h"
#include "blocks/core/kernel/kernel.h"

static const double JFO_LONG = 1e9;    /* of a steady film: turns of its oil in a step */
static const double JFO_CLOSING = 0.1; /* the least part of a gap that is left after a step */
static const double JFO_MOST = 1e6;    /* clearances of oil in a cell: upper bound for any valid state */
enum { JFO_QUICK_PASSES = 60, JFO_PASSES = 500 };

/* What a cell gives to its neighbors for each unit of its x, in the order of reynolds_neighbors. */
enum { JFO_BEFORE, JFO_AFTER, JFO_BELOW, JFO_ABOVE, JFO_SIDES };

static int32_t jfo_next(const reynolds_system *s, int32_t i, int side) {
    if (side == JFO_BEFORE) return i > 0 ? i - 1 : s->n - 1;
    if (side == JFO_AFTER) return i + 1 < s->n ? i + 1 : 0;
    return i;
}

/* What the bush leaves more in a cell, from what it does at its four edges. */
static double jfo_bush(const reynolds_system *s, const bl_film_grid *grid, int32_t i, int32_t j) {
    if (!grid->bush) return 0.0;
    const double *ends = grid->bush + s->n * s->n_z + i * (s->n_z + 1) + j;
    const double around = grid->bush[i * s->n_z + j] + grid->bush[jfo_next(s, i, JFO_BEFORE) * s->n_z + j];
    return 0.25 * (around + ends[0] + ends[1]);
}

/* Gaps in clearances: the mean of each cell, and that at the edge where shear leaves it, times |ω| / dθ. */
static void jfo_gaps(reynolds_system *s, const bl_film_bearing *b, const bl_film_motion *mo, const bl_film_grid *grid,
                     double omega) {
    const int32_t n = s->n, m = s->m;
    const double dt = 2.0 * BL_PI / n, spread = sin(0.5 * dt) / (0.5 * dt);
    for (int32_t j = 0; j < m; j++) {
        const double z = ((double)j + 0.5) / grid->n_z, c = b->clearance;
        const double X = (mo->x[0] + (mo->x[1] - mo->x[0]) * z) / c, Y = (mo->y[0] + (mo->y[1] - mo->y[0]) * z) / c;
        for (int32_t i = 0; i < n; i++) {
            const int32_t edge = omega >= 0.0 ? i : jfo_next(s, i, JFO_BEFORE);
            const double more = grid->bush ? grid->bush[edge * grid->n_z + j] / c : 0.0;
            s->gap[i * m + j] = 1.0 - spread * (X * s->cosine[i] + Y * s->sine[i]) + jfo_bush(s, grid, i, j) / c;
            s->carried[i * m + j] = fabs(omega) / dt * (1.0 - X * s->cos_face[edge] - Y * s->sin_face[edge] + more);
        }
    }
}

/* How a gap opens, and what it was where its oil was counted. */
static double jfo_rate(const reynolds_system *s, const bl_film_bearing *b, const bl_film_motion *mo, int32_t i,
                       int32_t j, double spread) {
    const double z = ((double)j + 0.5) / s->n_z;
    const double U = mo->vx[0] + (mo->vx[1] - mo->vx[0]) * z, V = mo->vy[0] + (mo->vy[1] - mo->vy[0]) * z;
    return -spread * (U * s->cosine[i] + V * s->sine[i]) / b->clearance;
}
static double jfo_counted_gap(const reynolds_system *s, const bl_film_bearing *b, const bl_film_grid *grid, int32_t i,
                              int32_t j, double spread) {
    const double z = ((double)j + 0.5) / s->n_z, *at = grid->counted_at;
    const double X = at[0] + (at[2] - at[0]) * z, Y = at[1] + (at[3] - at[1]) * z;
    return 1.0 + (jfo_bush(s, grid, i, j) - spread * (X * s->cosine[i] + Y * s->sine[i])) / b->clearance;
}

/* Oil in a cell: its fraction of the gap is the same for the present gap as when it was counted. */
static double jfo_oil(const reynolds_system *s, const bl_film_bearing *b, const bl_film_grid *grid, int32_t i,
                      int32_t j, double spread) {
    const double gap = s->gap[i * s->m + j], oil = grid->content[i * s->n_z + j];
    if (oil < 0.0) return gap;
    if (!(oil < JFO_MOST)) return oil > 0.0 ? JFO_MOST : 0.0;
    if (!grid->counted_at) return oil;
    const double counted = jfo_counted_gap(s, b, grid, i, j, spread), least = JFO_CLOSING * gap;
    return oil * (gap / (counted > least ? counted : least));
}

/* Right-hand sides of full cells, from those of Reynolds' equation, and the storage terms of all cells. Returns the total
   oil, in clearances of a cell. */
static double jfo_store(reynolds_system *s, const bl_film_bearing *b, const bl_film_motion *mo,
                        const bl_film_grid *grid, double step) {
    const double dt = 2.0 * BL_PI / s->n, spread = sin(0.5 * dt) / (0.5 * dt);
    double total = 0.0;
    for (int32_t i = 0; i < s->n; i++)
        for (int32_t j = 0; j < s->m; j++) {
            const int32_t k = i * s->m + j;
            if (!grid->content) { /* steady: squeeze is that of a film that is whole */
                s->stored[k] = 2.0 * s->gap[k] / step;
                s->source[k] -= s->stored[k];
                s->film[k] = s->source[k] > 0.0 || grid->film[i * s->n_z + j] > 0.5;
                continue;
            }
            const double oil = jfo_oil(s, b, grid, i, j, spread), rate = jfo_rate(s, b, mo, i, j, spread);
            const double open = s->gap[k] + step * rate, least = JFO_CLOSING * s->gap[k];
            const double end = open > least ? open : least;
            s->stored[k] = 2.0 * end / step;
            s->source[k] += 2.0 * rate + 2.0 * (oil - end) / step;
            s->film[k] = oil > 0.999 * s->gap[k];
            total += oil;
        }
    return s->mirrored ? 2.0 * total : total;
}

static double jfo_diagonal(const reynolds_system *s, int32_t k) {
    return s->film[k] > 0.0 ? s->diagonal[k] : s->stored[k] + s->carried[k];
}

static void jfo_gives(const reynolds_system *s, int32_t i, int32_t j, double gives[JFO_SIDES]) {
    const int32_t m = s->m, k = i * m + j;
    if (s->film[k] > 0.0) {
        gives[JFO_BEFORE] = s->around[jfo_next(s, i, JFO_BEFORE) * m + j];
        gives[JFO_AFTER] = s->around[k];
        gives[JFO_BELOW] = s->along[i * (m + 1) + j];
        gives[JFO_ABOVE] = s->along[i * (m + 1) + j + 1];
    } else {
        gives[JFO_BEFORE] = s->downstream == JFO_BEFORE ? s->carried[k] : 0.0;
        gives[JFO_AFTER] = s->downstream == JFO_AFTER ? s->carried[k] : 0.0;
        gives[JFO_BELOW] = gives[JFO_ABOVE] = 0.0;
    }
}

/* Neighbors that are unknowns; what they give to a cell, and it to them. */
typedef struct {
    int32_t row[JFO_SIDES];
    double get[JFO_SIDES], give[JFO_SIDES];
    int there[JFO_SIDES];
} jfo_neighbors;

static jfo_neighbors jfo_look_around(const reynolds_system *s, int32_t i, int32_t j) {
    static const int opposite[JFO_SIDES] = {JFO_AFTER, JFO_BEFORE, JFO_ABOVE, JFO_BELOW};
    jfo_neighbors near;
    double gives[JFO_SIDES];
    jfo_gives(s, i, j, near.give);
    for (int side = 0; side < JFO_SIDES; side++) {
        const int32_t other = jfo_next(s, i, side), l = j + (side == JFO_ABOVE) - (side == JFO_BELOW);
        near.there[side] = l >= 0 && l < s->m && !bl_reynolds_is_held(s, other, l);
        if (!near.there[side]) continue;
        jfo_gives(s, other, l, gives);
        near.get[side] = gives[opposite[side]];
        near.row[side] = s->place[other] * s->blacks + l / 2;
    }
    return near;
}

/* Black cells in a band, each red one eliminated on the spot: see elimination.c. Rows have `width` entries to both sides
   of their diagonal. */
static void jfo_assemble(reynolds_system *s) {
    const int32_t m = s->m, stride = 2 * s->width + 1;
    memset(s->band, 0, sizeof(double) * (size_t)s->columns * (size_t)s->blacks * (size_t)stride);
    for (int32_t c = 0; c < s->columns; c++) {
        const int32_t i = s->order[c];
        for (int32_t k = 0; k < s->blacks; k++) {
            const int32_t j = 2 * k + i % 2, row = c * s->blacks + k;
            const int there = j < m && !bl_reynolds_is_held(s, i, j);
            s->band[(int64_t)row * stride + s->width] = there ? jfo_diagonal(s, i * m + j) : 1.0;
            s->right[row] = there ? s->source[i * m + j] : 0.0;
        }
    }
    for (int32_t c = 0; c < s->columns; c++) {
        const int32_t i = s->order[c];
        for (int32_t j = 1 - i % 2; j < m; j += 2) {
            if (bl_reynolds_is_held(s, i, j)) continue;
            const jfo_neighbors near = jfo_look_around(s, i, j);
            const double inverse = 1.0 / jfo_diagonal(s, i * m + j);
            for (int p = 0; p < JFO_SIDES; p++) {
                if (!near.there[p] || !(near.give[p] > 0.0)) continue;
                const double share = near.give[p] * inverse;
                double *middle = s->band + (int64_t)near.row[p] * stride + s->width - near.row[p];
                s->right[near.row[p]] += share * s->source[i * m + j];
                for (int q = 0; q < JFO_SIDES; q++)
                    if (near.there[q]) middle[near.row[q]] -= share * near.get[q];
            }
        }
    }
}

static void jfo_eliminate(reynolds_system *s) {
    const int32_t count = s->columns * s->blacks, width = s->width, stride = 2 * width + 1;
    double *right = s->right;
    for (int32_t r = 0; r < count; r++) {
        const double *pivot = s->band + (int64_t)r * stride + width;
        const int32_t reach = count - 1 - r < width ? count - 1 - r : width;
        for (int32_t i = 1; i <= reach; i++) {
            double *row = s->band + (int64_t)(r + i) * stride + width - i;
            if (row[0] == 0.0) continue;
            const double factor = row[0] / pivot[0];
            for (int32_t j = 1; j <= width; j++) row[j] -= factor * pivot[j];
            right[r + i] -= factor * right[r];
        }
    }
    for (int32_t r = count - 1; r >= 0; r--) {
        const double *pivot = s->band + (int64_t)r * stride + width;
        const int32_t reach = count - 1 - r < width ? count - 1 - r : width;
        double sum = right[r];
        for (int32_t j = 1; j <= reach; j++) sum -= pivot[j] * right[r + j];
        right[r] = sum / pivot[0];
    }
}

/* x of each cell, into q; zero where pressure is held. */
static void jfo_spread(reynolds_system *s) {
    const int32_t m = s->m;
    memset(s->q, 0, sizeof(double) * (size_t)(s->n * m));
    for (int red = 0; red < 2; red++)
        for (int32_t c = 0; c < s->columns; c++) {
            const int32_t i = s->order[c];
            for (int32_t j = (i + red) % 2; j < m; j += 2) {
                if (bl_reynolds_is_held(s, i, j)) continue;
                if (!red) {
                    s->q[i * m + j] = s->right[c * s->blacks + j / 2];
                    continue;
                }
                const jfo_neighbors near = jfo_look_around(s, i, j);
                double sum = s->source[i * m + j];
                for (int p = 0; p < JFO_SIDES; p++)
                    if (near.there[p]) sum += near.get[p] * s->right[near.row[p]];
                s->q[i * m + j] = sum / jfo_diagonal(s, i * m + j);
            }
        }
}

/* Cells with the wrong sign change sides: all of them, or the first. */
static int32_t jfo_exchange(reynolds_system *s, int only_first) {
    double largest = 0.0;
    int32_t changed = 0;
    for (int32_t k = 0; k < s->n * s->m; k++) largest = s->q[k] > largest ? s->q[k] : largest;
    for (int32_t k = 0; k < s->n * s->m; k++) {
        if (bl_reynolds_is_held(s, k / s->m, k % s->m)) continue;
        const int full = s->film[k] > 0.0;
        if (full ? !(s->q[k] < -1e-13 * largest) : !(s->q[k] > 1e-13)) continue;
        s->film[k] = full ? 0.0 : 1.0;
        changed++;
        if (only_first) break;
    }
    return changed;
}

/* Splits x: pressure stays in q, oil contents go to `content`, and cells of given pressure get their inflow. */
static void jfo_finish(reynolds_system *s, const bl_film_grid *grid, double step) {
    const int32_t m = s->m;
    for (int32_t i = 0; i < s->n; i++)
        for (int32_t j = 0; j < m; j++) {
            const int32_t k = i * m + j, held = bl_reynolds_is_held(s, i, j);
            const double lack = held || s->film[k] > 0.0 ? 0.0 : s->q[k];
            const int32_t to = jfo_next(s, i, s->downstream);
            if (held) s->film[k] = 1.0;
            if (bl_reynolds_is_held(s, to, j)) s->source[to * m + j] += s->carried[k] * lack;
            if (!grid->content) continue;
            const double oil = (1.0 + lack) * (0.5 * step * s->stored[k]);
            grid->content[i * s->n_z + j] = oil;
            if (s->mirrored) grid->content[i * s->n_z + s->n_z - 1 - j] = oil;
        }
    for (int32_t k = 0; k < s->n * m; k++)
        if (!(s->film[k] > 0.0) || s->q[k] < 0.0) s->q[k] = 0.0;
}

int bl_reynolds_jfo(reynolds_system *s, const bl_film_bearing *b, const bl_film_motion *motion,
                    const bl_film_grid *grid, bl_film_load *load) {
    const double omega = motion->journal_speed + motion->bush_speed;
    const double step = grid->content ? grid->step : JFO_LONG / (fabs(omega) > 1e-6 ? fabs(omega) : 1e-6);
    s->downstream = omega >= 0.0 ? JFO_AFTER : JFO_BEFORE;
    /* Columns that have any unknown. */
    for (int32_t k = 0; k < s->n * s->m; k++) s->film[k] = bl_reynolds_is_held(s, k / s->m, k % s->m) ? 0.0 : 1.0;
    bl_reynolds_order(s);
    jfo_gaps(s, b, motion, grid, omega);
    const double area = 2.0 * BL_PI / s->n * b->radius * b->length / s->n_z;
    load->oil = jfo_store(s, b, motion, grid, step) * b->clearance * area;
    do {
        if (load->solves == JFO_PASSES) return BL_ERROR_SOLVER;
        jfo_assemble(s);
        jfo_eliminate(s);
        jfo_spread(s);
        load->solves++;
    } while (jfo_exchange(s, load->solves > JFO_QUICK_PASSES) > 0);
    jfo_finish(s, grid, step);
    return BL_OK;
}
