/* Multirate steps: the states of some blocks, the fast part, take several steps within one step of all others.
 *
 * The methods are explicit MRI-GARK methods (A. Sandu, A class of multirate infinitesimal GARK methods, SIAM J. Numer. Anal. 57, 2019),
 * of the order of the solver. With slow states x, fast states w, dx/dt = f(t, x, w) and dw/dt = g(t, x, w), a step of length h is divided
 * in as many equal intervals as the method has stages. In interval i, with θ from 0 to 1,
 *
 *     x(θ) = X_i + h Σ_j (γ_ij θ + δ_ij θ²/2) f_j,    f_j = f(T_j, X_j, W_j),  j <= i
 *     dw/dt = g(t, x(θ), w)
 *
 * The second equation is integrated with the solver, in the same number of substeps in each interval. The slow right-hand side is so
 * evaluated once in each interval, whatever the number of substeps.
 *
 * After a jump, the fast part has a transient that is short compared with an interval, and f with it. The inputs r(t, x, w) through which
 * f depends on w are therefore treated as fast: with the derivative G = df/dr at the start of the step, f is split in f - G r, to which the
 * equations above apply, and G r, which is integrated with the substeps, z' = r and x(θ) = … + G z(θ). Any such splitting keeps the order.
 * For a mechanism f is affine in its torques, and the transient is integrated as accurately as the fast part itself.
 *
 * Outputs y(x) of slow blocks that the fast part reads, and that depend on nothing but the states of their block, are evaluated at the start,
 * middle and end of an interval only, and interpolated by a parabola. Its error is of the third order in the length of an interval, but
 * its integral is of the fifth, since the points are symmetric. They are evaluated with a prediction of z, z* = r(T_i) t; dy/dz (z - z*)
 * is added, with a parabola for dy/dz, so that the error is of the second order in z - z*, which is of the second order itself. */
#include <math.h>
#include <string.h>

#include "scheduler/engine/solvers/multirate.h"
#include "scheduler/engine/solvers/solver.h"

enum { MULTIRATE_STAGES = 5 };

typedef struct {
    int stages;
    double first[MULTIRATE_STAGES][MULTIRATE_STAGES], second[MULTIRATE_STAGES][MULTIRATE_STAGES]; /* γ, δ */
} bl_multirate_table;

static const bl_multirate_table MULTIRATE_TABLES[] = {
    [BL_EULER] = {1, {{1.0}}, {{0}}},
    [BL_HEUN] = {2, {{0.5}, {-0.5, 1.0}}, {{0}}}, /* ERK22a */
    [BL_RK3] = {3, /* ERK33a */
                {{1.0 / 3}, {-1.0 / 3, 2.0 / 3}, {0, -2.0 / 3, 1.0}},
                {{0}, {0}, {0.5, 0, -0.5}}},
    [BL_RK4] = {5, /* ERK45a */
                {{1.0 / 5},
                 {-53.0 / 16, 281.0 / 80},
                 {-36562993.0 / 71394880, 34903117.0 / 17848720, -88770499.0 / 71394880},
                 {-7631593.0 / 71394880, -166232021.0 / 35697440, 6068517.0 / 1519040, 8644289.0 / 8924360},
                 {277061.0 / 303808, -209323.0 / 1139280, -1360217.0 / 1139280, -148789.0 / 56964, 147889.0 / 45120}},
                {{0},
                 {503.0 / 80, -503.0 / 80},
                 {-1365537.0 / 35697440, 4963773.0 / 7139488, -1465833.0 / 2231090},
                 {66974357.0 / 35697440, 21445367.0 / 7139488, -3.0, -8388609.0 / 4462180},
                 {-18227.0 / 7520, 2.0, 1.0, 5.0, -41933.0 / 7520}}},
};

static int64_t stages_of(const bl_engine *e) { return MULTIRATE_TABLES[e->solver].stages; }

bool bl_can_multirate(const bl_engine *e) { return e->solver <= BL_RK4 && !bl_is_adaptive(e); }

int64_t bl_largest_substeps(const bl_engine *e) {
    const int64_t stages = stages_of(e);
    return (e->multirate->substeps + stages - 1) / stages * stages;
}

/* Vectors in the work space: those of the slow part are as long as all states, to be indexed alike. */
int64_t bl_multirate_scratch(const bl_engine *e) {
    const bl_multirate *m = e->multirate;
    return (MULTIRATE_STAGES + 3) * e->layout.states + 5 * m->fast_count + 3 * m->sample_width + 9 * m->reading_count;
}

int64_t bl_multirate_nodes(const bl_engine *e) {
    const int64_t nodes = bl_largest_substeps(e) + 1;
    return nodes * (2 * (e->multirate->fast_count + e->multirate->reading_count) +
                    (e->multirate->located_count > 0 ? e->layout.states : 0));
}

/* The slow part of a span of time, of which θ is the part that has passed: an interval of a step, or a substep on the interpolant. */
typedef struct {
    double *slopes;                        /* of slow states, in each stage */
    double *base, *rise, *bend;            /* in an interval, x = base + θ (rise + θ bend) */
    double *k, *w;                         /* slopes of the fast part in a substep, and its states at the start */
    double *at_start, *at_middle, *at_end; /* samples of signals of the slow part */
    double *z, *z_start, *r, *r_start; /* integrals of readings, at the start of a substep; readings in its stages,
                                              and at the start of the interval */
    double *r_first, *z_total; /* readings at the start of the step, and their integrals over it */
    double *node_states, *node_slopes; /* of the fast part, then of the integrals: at the ends of substeps */
    double *trail; /* all states there, as the step was taken */
    bool on_interpolant;
    double origin, share; /* then the part of the step at which the span begins, and that which it is of the step */
} bl_multirate_work;

static bl_multirate_work divide_work(const bl_engine *e) {
    const bl_multirate *m = e->multirate;
    const int64_t n = e->layout.states, nf = m->fast_count, nodes = bl_largest_substeps(e) + 1,
                  width = nf + m->reading_count;
    bl_multirate_work p = {.slopes = m->work, .node_states = m->nodes};
    p.base = p.slopes + MULTIRATE_STAGES * n;
    p.rise = p.base + n;
    p.bend = p.rise + n;
    p.k = p.bend + n;
    p.w = p.k + 4 * nf;
    p.at_start = p.w + nf;
    p.at_middle = p.at_start + m->sample_width;
    p.at_end = p.at_middle + m->sample_width;
    p.z = p.at_end + m->sample_width;
    p.z_start = p.z + m->reading_count;
    p.r = p.z_start + m->reading_count;
    p.r_start = p.r + 4 * m->reading_count;
    p.r_first = p.r_start + m->reading_count;
    p.z_total = p.r_first + m->reading_count;
    p.node_slopes = p.node_states + nodes * width;
    p.trail = p.node_slopes + nodes * width;
    return p;
}

/* Substeps in an interval of a step of length h: as long as those of a tick, or shorter. In an error estimate they are divided, as steps
   are. */
static int64_t count_substeps(const bl_engine *e, double h) {
    const int64_t most = bl_largest_substeps(e) / stages_of(e);
    const double wanted = ceil((double)most * h * e->parts / e->step * (1.0 - BL_GRID_TOLERANCE));
    return !(wanted < (double)most) ? most : wanted < 1.0 ? 1 : (int64_t)wanted;
}

/* Evaluates the derivatives of one part at t, with what leads to them. */
static int evaluate_part(bl_engine *e, const bl_part *part, double t) {
    bl_follow_inputs(e, t);
    if (e->followed) bl_coupling_follow(e, t);
    const int status = bl_run_program(e, e->decision == BL_KEEP ? &part->stage_program : &part->program, t, true);
    return status == BL_OK ? bl_run_derivatives(e, &part->derivatives, t) : status;
}

/* Adds `factor` · G z to x, or to slopes. */
static void add_driven(const bl_engine *e, double factor, const double *z, double *x) {
    const bl_multirate *m = e->multirate;
    for (int64_t n = 0; n < m->driven_count; n++) {
        const bl_driven *driven = &m->driven[n];
        const int64_t first = driven->block->x - e->x, count = driven->block->x_count;
        for (int32_t k = 0; k < driven->count; k++)
            for (int64_t i = 0; i < count; i++)
                x[first + i] += factor * driven->gains[k * count + i] * z[driven->readings[k]];
    }
}

/* The slow states at the part `theta` of the span, with the integrals p->z of readings. */
static void place_slow(const bl_engine *e, const bl_multirate_work *p, double theta) {
    const bl_multirate *m = e->multirate;
    for (int64_t i = 0; i < m->slow_count; i++) {
        const int32_t s = m->slow_states[i];
        e->x[s] = p->on_interpolant ? bl_dense_value(e, s, p->origin + theta * p->share)
                                    : p->base[s] + theta * (p->rise[s] + theta * p->bend[s]);
    }
    if (!p->on_interpolant || e->solver != BL_EULER) add_driven(e, 1.0, p->z, e->x);
}

/* The derivatives of a driven block with one of its readings changed by a little. */
static int find_gain(bl_engine *e, const bl_driven *driven, int32_t k, double t, const double *dx) {
    const bl_block *b = driven->block;
    double *reading = (double *)(uintptr_t)e->multirate->readings[driven->readings[k]],
           *gain = driven->gains + (int64_t)k * b->x_count;
    const double kept = *reading, changed = kept + 1e-3 * fabs(kept) + 1e-6;
    *reading = changed;
    const int status = e->kernels[b->index]->derivative(driven->block, t);
    *reading = kept;
    for (int32_t i = 0; i < b->x_count; i++) gain[i] = (b->dx[i] - dx[i]) / (changed - kept);
    /* Any gain will do. */
    if (status == BL_OK && !bl_all_finite(gain, b->x_count)) memset(gain, 0, (size_t)b->x_count * sizeof(double));
    return status == BL_OK ? BL_OK : bl_fail_block(e, status, b, "the block failed");
}

/* Where dx has the derivatives at t, which it keeps. */
static int find_gains(bl_engine *e, double t, double *dx) {
    const bl_multirate *m = e->multirate;
    int status = BL_OK;
    for (int64_t n = 0; n < m->driven_count && status == BL_OK; n++) {
        const bl_driven *driven = &m->driven[n];
        const bl_block *b = driven->block;
        const size_t size = (size_t)b->x_count * sizeof(double);
        memset(driven->gains, 0, (size_t)driven->count * size);
        if (!bl_active(e, e->block_guard[b->index])) continue;
        memcpy(dx, b->dx, size);
        for (int32_t k = 0; k < driven->count && status == BL_OK; k++) status = find_gain(e, driven, k, t, dx);
        memcpy(b->dx, dx, size);
    }
    return status;
}

/* Notes the outputs of slow blocks that are interpolated; or evaluates them first. */
static void note_samples(const bl_engine *e, double *samples) {
    const bl_multirate *m = e->multirate;
    for (int64_t i = 0; i < m->sample_width; i++) samples[i] = *m->samples[i];
}

static int sample_signals(bl_engine *e, double t, double *samples) {
    const int status = bl_run_program(e, &e->multirate->sampling, t, true);
    note_samples(e, samples);
    return status;
}

/* The change of the outputs of a driven block with z, where x is and `samples` are these outputs; into `columns`. x is afterwards as before. */
static int find_sensitivity(bl_engine *e, const bl_driven *driven, double t, const double *samples, double *columns) {
    const bl_multirate *m = e->multirate;
    bl_block *b = driven->block;
    memset(columns, 0, (size_t)(driven->count * driven->width) * sizeof(double));
    if (!bl_active(e, e->block_guard[b->index])) return BL_OK;
    for (int32_t k = 0; k < driven->count; k++) {
        const double *gain = driven->gains + (int64_t)k * b->x_count;
        double size = 0.0, largest = 1.0;
        for (int32_t i = 0; i < b->x_count; i++) {
            size = fmax(size, fabs(gain[i]));
            largest = fmax(largest, fabs(b->x[i]));
        }
        if (!(size > 0.0)) continue;
        const double change = 1e-6 * largest / size;
        for (int32_t i = 0; i < b->x_count; i++) b->x[i] += change * gain[i];
        const int status = e->kernels[b->index]->output(b, t);
        for (int32_t i = 0; i < b->x_count; i++) b->x[i] -= change * gain[i];
        if (status != BL_OK) return bl_fail_block(e, status, b, "the block failed");
        for (int64_t i = 0; i < driven->width; i++)
            columns[k * driven->width + i] = (*m->samples[driven->sample + i] - samples[driven->sample + i]) / change;
    }
    return BL_OK;
}

enum { SAMPLE_START, SAMPLE_MIDDLE, SAMPLE_END };

/* Samples at one of three parts of a span of length h from t. */
static int sample_at(bl_engine *e, const bl_multirate_work *p, double t, double h, int place) {
    const bl_multirate *m = e->multirate;
    const double theta = 0.5 * place, at = t + theta * h;
    double *samples = place == SAMPLE_START ? p->at_start : place == SAMPLE_MIDDLE ? p->at_middle : p->at_end;
    for (int64_t k = 0; k < m->reading_count; k++) p->z[k] = p->z_start[k] + p->r_start[k] * theta * h;
    place_slow(e, p, theta);
    int status = sample_signals(e, at, samples);
    for (int64_t n = 0; n < m->driven_count && status == BL_OK && !p->on_interpolant; n++) {
        const bl_driven *driven = &m->driven[n];
        if (driven->sample < 0) continue;
        double *columns = place == SAMPLE_START ? driven->start : place == SAMPLE_MIDDLE ? driven->middle : driven->end;
        status = find_sensitivity(e, driven, at, samples, columns);
    }
    return status;
}

/* Samples in a span of length h from t. Those at its start are the last ones of the span before, unless these were predicted. */
static int sample_span(bl_engine *e, const bl_multirate_work *p, double t, double h) {
    const bl_multirate *m = e->multirate;
    int status = BL_OK;
    if (m->sample_width == 0) return BL_OK;
    if (p->on_interpolant || m->samples_change) status = sample_at(e, p, t, h, SAMPLE_START);
    else memcpy(p->at_start, p->at_end, (size_t)m->sample_width * sizeof(double));
    if (status == BL_OK) status = sample_at(e, p, t, h, SAMPLE_MIDDLE);
    return status == BL_OK ? sample_at(e, p, t, h, SAMPLE_END) : status;
}

static double parabola(double start, double middle, double end, double theta) {
    const double half = middle - start, whole = end - start;
    return start + theta * (4.0 * half - whole + theta * (2.0 * whole - 4.0 * half));
}

/* Sets the sampled outputs in a span of length h, with the integrals p->z. */
static void interpolate_samples(const bl_engine *e, const bl_multirate_work *p, double h, double theta) {
    const bl_multirate *m = e->multirate;
    for (int64_t i = 0; i < m->sample_width; i++)
        *m->samples[i] = parabola(p->at_start[i], p->at_middle[i], p->at_end[i], theta);
    for (int64_t n = 0; n < m->driven_count && !p->on_interpolant; n++) {
        const bl_driven *driven = &m->driven[n];
        for (int32_t k = 0; k < driven->count && driven->sample >= 0; k++) {
            const double apart = p->z[driven->readings[k]] - p->r_start[driven->readings[k]] * theta * h;
            for (int64_t i = 0; i < driven->width; i++) {
                const int64_t at = k * driven->width + i;
                *m->samples[driven->sample + i] +=
                    apart * parabola(driven->start[at], driven->middle[at], driven->end[at], theta);
            }
        }
    }
}

/* The slow part in interval i, from the slopes of the stages up to it, the last of which are in dx. */
static void prepare_interval(const bl_engine *e, const bl_multirate_work *p, int i, double h) {
    const bl_multirate *m = e->multirate;
    const bl_multirate_table *table = &MULTIRATE_TABLES[e->solver];
    const int64_t n = e->layout.states;
    double *slopes = p->slopes + i * n;
    memcpy(slopes, e->dx, (size_t)n * sizeof(double));
    for (int64_t k = 0; k < m->reading_count; k++) {
        p->z_start[k] = 0.0;
        p->r_start[k] = *m->readings[k];
        if (i == 0) p->r_first[k] = p->r_start[k];
    }
    add_driven(e, -1.0, p->r_start, slopes);
    for (int64_t k = 0; k < m->slow_count; k++) {
        const int32_t s = m->slow_states[k];
        double first = 0.0, second = 0.0;
        for (int j = 0; j <= i; j++) {
            first += table->first[i][j] * p->slopes[j * n + s];
            second += table->second[i][j] * p->slopes[j * n + s];
        }
        p->base[s] = e->x[s];
        p->rise[s] = h * first;
        p->bend[s] = 0.5 * h * second;
    }
}

/* Substep number q of `count` of the fast part in a span of length h from t. `is_ready`: dx has the derivatives at its start. Afterwards
   p->k begins with these, and the slow part is at the end too. */
static int take_substep(bl_engine *e, const bl_multirate_work *p, double t, double h, int64_t q, int64_t count,
                        bool is_ready) {
    const bl_multirate *m = e->multirate;
    const int stages = bl_stage_count(e->solver);
    const int64_t n = m->fast_count;
    const double d = h / (double)count;
    const int64_t nr = m->reading_count;
    for (int64_t i = 0; i < n; i++) p->w[i] = e->x[m->fast_states[i]];
    memcpy(p->z_start, p->z, (size_t)nr * sizeof(double));
    for (int s = 0; s < stages; s++) {
        if (s > 0 || !is_ready) {
            const double at = ((double)q + bl_stage_time(e->solver, s)) / (double)count;
            place_slow(e, p, at);
            interpolate_samples(e, p, h, at);
            const int status = evaluate_part(e, &m->fast, t + at * h);
            if (status != BL_OK) return status;
        }
        const double *weights = bl_stage_weights(e->solver, s + 1);
        for (int64_t i = 0; i < n; i++) {
            p->k[s * n + i] = e->dx[m->fast_states[i]];
            double slope = 0.0;
            for (int r = 0; r <= s; r++) slope += weights[r] * p->k[r * n + i];
            e->x[m->fast_states[i]] = p->w[i] + d * slope;
        }
        for (int64_t k = 0; k < nr; k++) {
            p->r[s * nr + k] = *m->readings[k];
            double slope = 0.0;
            for (int r = 0; r <= s; r++) slope += weights[r] * p->r[r * nr + k];
            p->z[k] = p->z_start[k] + d * slope;
        }
    }
    place_slow(e, p, (double)(q + 1) / (double)count);
    return BL_OK;
}

static void keep_trail(const bl_engine *e, const bl_multirate_work *p, int64_t node) {
    const int64_t n = e->layout.states;
    if (e->multirate->located_count > 0) memcpy(p->trail + node * n, e->x, (size_t)n * sizeof(double));
}

int bl_integrate_multirate(bl_engine *e, double t, double h) {
    bl_multirate *m = e->multirate;
    const bl_multirate_work p = divide_work(e);
    const int stages = (int)stages_of(e);
    const int64_t n = e->layout.states, substeps = count_substeps(e, h);
    memcpy(e->stages, e->x, (size_t)n * sizeof(double)); /* for the interpolant */
    memcpy(e->stages + n, e->dx, (size_t)n * sizeof(double));
    m->taken = stages * substeps;
    keep_trail(e, &p, 0);
    note_samples(e, p.at_end); /* signals are those at t, with which dx was evaluated */
    int status = find_gains(e, t, p.base);
    for (int i = 0; i < stages && status == BL_OK; i++) {
        const double start = t + h * i / stages, length = h / stages;
        if (i > 0) status = evaluate_part(e, &m->slow, start);
        if (status != BL_OK) break;
        prepare_interval(e, &p, i, h);
        status = sample_span(e, &p, start, length);
        memset(p.z, 0, (size_t)m->reading_count * sizeof(double));
        for (int64_t q = 0; q < substeps && status == BL_OK; q++) {
            status = take_substep(e, &p, start, length, q, substeps, i == 0 && q == 0);
            keep_trail(e, &p, i * substeps + q + 1);
        }
        for (int64_t k = 0; k < m->reading_count; k++) p.z_total[k] = (i == 0 ? 0.0 : p.z_total[k]) + p.z[k];
    }
    return status;
}

/* Makes the dense output of slow states that of x - G z, which is smooth where readings are not. */
static void smooth_dense(const bl_engine *e, const bl_multirate_work *p, double h) {
    const bl_multirate *m = e->multirate;
    const int64_t n = e->layout.states;
    if (e->solver == BL_EULER) return;
    double *dense = bl_dense(e);
    const double *x0 = dense + BL_DENSE_START * n, *x1 = dense + BL_DENSE_END * n, *f0 = e->stages + n, *f1 = e->dx;
    for (int64_t d = 0; d < m->driven_count; d++) {
        const bl_driven *driven = &m->driven[d];
        const int64_t first = driven->block->x - e->x, size = driven->block->x_count;
        for (int64_t i = 0; i < size; i++) {
            double z = 0.0, r0 = 0.0, r1 = 0.0;
            for (int32_t k = 0; k < driven->count; k++) {
                const double gain = driven->gains[k * size + i];
                z += gain * p->z_total[driven->readings[k]];
                r0 += gain * p->r_first[driven->readings[k]];
                r1 += gain * *m->readings[driven->readings[k]];
            }
            const int64_t s = first + i;
            const double rise = x1[s] - z - x0[s], bend = h * (f0[s] - r0) - rise;
            dense[BL_DENSE_RISE * n + s] = rise;
            dense[BL_DENSE_BEND * n + s] = bend;
            dense[BL_DENSE_TWIST * n + s] = rise - h * (f1[s] - r1) - bend;
        }
    }
}

/* The slow states, without G z, are those of a cubic between the ends of the step, which is more accurate than the stages are. With them the
   fast part is integrated again, and its states and slopes are noted at the ends of substeps. What it then misses of the end of the step is
   distributed over the step. Before and afterwards x is the state at the end, and dx has the derivatives there. */
int bl_complete_multirate(bl_engine *e, double t, double h) {
    const bl_multirate *m = e->multirate;
    bl_multirate_work p = divide_work(e);
    const int64_t n = e->layout.states, nf = m->fast_count, nr = m->reading_count, width = nf + nr, count = m->taken;
    const double share = 1.0 / (double)count, *end = bl_dense(e) + BL_DENSE_END * n;
    double *last = p.node_slopes + count * width, *state = p.node_states;
    for (int64_t i = 0; i < nf; i++) last[i] = e->dx[m->fast_states[i]];
    for (int64_t k = 0; k < nr; k++) last[nf + k] = *m->readings[k];
    smooth_dense(e, &p, h);
    p.on_interpolant = true;
    p.share = share;
    memcpy(e->x, e->stages, (size_t)n * sizeof(double));
    memset(p.z, 0, (size_t)nr * sizeof(double));
    memcpy(p.r_start, p.r_first, (size_t)nr * sizeof(double));
    int status = BL_OK;
    for (int64_t q = 0; q < count && status == BL_OK; q++, state += width) {
        const double start = t + h * (double)q * share;
        p.origin = (double)q * share;
        for (int64_t i = 0; i < nf; i++) state[i] = e->x[m->fast_states[i]];
        memcpy(state + nf, p.z, (size_t)nr * sizeof(double));
        memcpy(p.z_start, p.z, (size_t)nr * sizeof(double));
        status = sample_span(e, &p, start, h * share);
        memcpy(p.z, state + nf, (size_t)nr * sizeof(double));
        if (status == BL_OK) status = take_substep(e, &p, start, h * share, 0, 1, false);
        memcpy(p.node_slopes + q * width, p.k, (size_t)nf * sizeof(double));
        memcpy(p.node_slopes + q * width + nf, p.r, (size_t)nr * sizeof(double));
        for (int64_t k = 0; k < nr; k++) p.r_start[k] = *m->readings[k];
    }
    if (status != BL_OK) return status;
    for (int64_t i = 0; i < nf; i++) state[i] = end[m->fast_states[i]];
    memcpy(state + nf, p.z_total, (size_t)nr * sizeof(double));
    for (int64_t i = 0; i < width; i++) {
        const double missed = state[i] - (i < nf ? e->x[m->fast_states[i]] : p.z[i - nf]);
        for (int64_t q = 1; q < count; q++) p.node_states[q * width + i] += (double)q * share * missed;
    }
    memcpy(e->x, end, (size_t)n * sizeof(double));
    return bl_evaluate_at(e, t + h);
}

/* Methods of order 1 are interpolated linearly. */
void bl_interpolate_multirate(const bl_engine *e, double h, double theta, double *x) {
    const bl_multirate *m = e->multirate;
    const bl_multirate_work p = divide_work(e);
    const int64_t nf = m->fast_count, width = nf + m->reading_count, count = m->taken;
    const double position = theta * (double)count, d = h / (double)count;
    const int64_t q = position < (double)(count - 1) ? (int64_t)position : count - 1;
    const double part = position - (double)q, rest = 1.0 - part;
    const bool is_linear = e->solver == BL_EULER;
    for (int64_t i = 0; i < m->slow_count; i++) x[m->slow_states[i]] = bl_dense_value(e, m->slow_states[i], theta);
    for (int64_t i = 0; i < width; i++) {
        const double *w = p.node_states + q * width + i, *f = p.node_slopes + q * width + i, rise = w[width] - w[0],
                     bend = is_linear ? 0.0 : d * f[0] - rise, twist = is_linear ? 0.0 : rise - d * f[width] - bend;
        const double value = w[0] + part * (rise + rest * (bend + part * twist));
        if (i < nf) x[m->fast_states[i]] = value;
        else p.z[i - nf] = value;
    }
    if (!is_linear) add_driven(e, 1.0, p.z, x);
}

const double *bl_substep_states(const bl_engine *e, int64_t node) {
    return divide_work(e).trail + node * e->layout.states;
}
