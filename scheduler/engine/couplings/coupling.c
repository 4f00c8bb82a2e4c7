/* Couplings: blocks with an internal solver that exchange signals, advanced together.
 *
 * Such a block, a member, advances from t to t + dt alone: its inputs during the step must be approximated. Each input is
 * a polynomial of order `hold`, starting at its value at t: extrapolated from its past, or interpolated to its value at
 * t + dt where that is known. The methods differ in when the value at t + dt is known:
 *
 *   Jacobi        never
 *   Gauss-Seidel  if all members that determine the signal have been advanced before; if such an output has direct
 *                 feedthrough from inputs that come from later members, it is computed with these extrapolated
 *   fixed point   always: the others are unknowns w, guessed; the step is repeated until they agree with the outputs
 *   Newton        as fixed point, with an inverse Jacobian that is stored and updated from step to step
 *
 * One sweep advances each member over the step once and computes the signals at t + dt with the coupling's program. It is
 * a map w → g(w), and the iteration solves g(w) = w. With extrapolation 0 an input has its value at t if extrapolated, its
 * value at t + dt in Gauss-Seidel, and the mean of both if iterated, which is of second order. An input that a member
 * integrates from its rate, another input, has its value at t. A member without input derivatives receives the mean of
 * each input over the step.
 *
 * The continuous states of the diagram can be a member too: the solver advances them, and minor steps evaluate the inputs.
 *
 * If an iteration does not converge, or a block rejects its inputs, the step is repeated in two halves, recursively, each
 * an internal step. The next step treats the result as one whole step. With a coupling tolerance, communication.c chooses the steps.
 *
 * Events that members locate and note belong to a step as their states do: what is noted in a sweep that is repeated is taken back,
 * so that the log has the events of the accepted sweep. */
#include <math.h>
#include <string.h>

#include "blocks/core/kernel/matrix.h"
#include "scheduler/engine/engine.h"

_Static_assert((int)BL_KEEP_COUNT <= (int)BL_SNAPSHOTS, "a member outside the engine has a snapshot for each use");

static const double PERTURBATION = 1e-5;          /* of an unknown, relative to its value */
static const double SMALLEST_SCALE = 1e-4; /* of a signal, in its unit: below it, convergence is absolute */
static const double SLOW =
    0.09;           /* Newton: recompute the Jacobian if the residual shrinks less over its cost in sweeps */

int64_t bl_coupling_scratch(int32_t method, int32_t unknowns) {
    const int64_t n = unknowns;
    return method == BL_NEWTON ? n * n + 7 * n : 3 * n;
}

/* What it remembers but for the inverse Jacobian. */
int64_t bl_coupling_history(int32_t elements) { return BL_COUPLING_HEAD + BL_COUPLED_ARRAYS * (int64_t)elements; }

int64_t bl_coupling_memory(int32_t method, int32_t elements, int32_t unknowns) {
    const int64_t n = method == BL_NEWTON ? unknowns : 0;
    return bl_coupling_history(elements) + n * n;
}

double *bl_coupled_array(const bl_coupling *c, int which) {
    return c->memory + BL_COUPLING_HEAD + (int64_t)which * c->element_count;
}

/* Members' states. */

static double *copy_part(double *kept, double *state, int64_t count, bool back) {
    memcpy(back ? state : kept, back ? kept : state, (size_t)count * sizeof(double));
    return kept + count;
}

static int move_outside(bl_engine *e, bl_block *b, int use, bool back) {
    int (*const outside)(bl_block *, int) = back ? e->kernels[b->index]->restore : e->kernels[b->index]->save;
    const int status = outside ? outside(b, use) : BL_OK;
    if (status == BL_OK) return BL_OK;
    return bl_fail(e, BL_ERROR_STATE, b->index, "the block cannot %s its state", back ? "restore" : "save");
}

static int move_member(bl_engine *e, bl_member *m, int use, bool back) {
    double *kept = m->kept + use * m->state_count;
    bl_block *b = m->block;
    if (!b) { /* x, and the memory of all blocks that have continuous states */
        kept = copy_part(kept, e->x, e->layout.states, back);
        for (int32_t k = 0; k < e->block_count; k++) {
            if (e->blocks[k].x_count == 0) continue;
            kept = copy_part(kept, e->blocks[k].z, e->blocks[k].z_count, back);
            const int status = move_outside(e, &e->blocks[k], use, back);
            if (status != BL_OK) return status;
        }
        return BL_OK;
    }
    copy_part(kept, b->z, b->z_count, back);
    return move_outside(e, b, use, back);
}

/* What members note in the log of events is part of what a step does: it is taken back with their states. */
static void move_log(bl_engine *e, bl_coupling *c, int use, bool back) {
    if (back) bl_rewind_log(e, &c->marks[use]);
    else bl_mark_log(e, &c->marks[use]);
}

int bl_move_members(bl_engine *e, bl_coupling *c, int use, bool back) {
    move_log(e, c, use, back);
    for (int32_t j = 0; j < c->member_count; j++) {
        const int status = move_member(e, &c->members[j], use, back);
        if (status != BL_OK) return status;
    }
    return BL_OK;
}

/* Members' inputs. */

/* From the last `order` input derivatives; the quadratic goes through the last three values, whatever their distances. */
bl_polynomial bl_extrapolate(const bl_coupling *c, int64_t k, int order) {
    const double *m = c->memory, slope = bl_coupled_array(c, BL_COUPLED_DERIVATIVE)[k];
    bl_polynomial polynomial = {c->start[k], 0.0, 0.0};
    const double known = m[BL_COUPLING_HISTORY];
    if (order >= 1 && known >= 1.0) polynomial.first = slope;
    if (order >= 2 && known >= 2.0) {
        const double before = bl_coupled_array(c, BL_COUPLED_DERIVATIVE_BEFORE)[k];
        const double bend = (slope - before) / (m[BL_COUPLING_SPAN] + m[BL_COUPLING_SPAN_BEFORE]);
        polynomial.first = slope + bend * m[BL_COUPLING_SPAN];
        polynomial.second = 2.0 * bend;
    }
    return polynomial;
}

static bl_polynomial interpolate(const bl_coupling *c, int64_t k, int order, double end, double dt, bool iterated) {
    const double *m = c->memory, start = c->start[k], slope = (end - start) / dt;
    bl_polynomial polynomial = {start, slope, 0.0};
    if (order == 0) {
        polynomial.value = iterated ? 0.5 * (start + end) : end;
        polynomial.first = 0.0;
    } else if (order == 2 && m[BL_COUPLING_HISTORY] >= 1.0) {
        const double bend = (slope - bl_coupled_array(c, BL_COUPLED_DERIVATIVE)[k]) / (dt + m[BL_COUPLING_SPAN]);
        polynomial.first = slope - bend * dt;
        polynomial.second = 2.0 * bend;
    }
    return polynomial;
}

/* Sets the inputs of the member at `position` from now to now + dt. */
static void set_inputs(const bl_coupling *c, int32_t position, int method, int order, double dt) {
    const bl_member *m = &c->members[position];
    const bool iterated = method >= BL_FIXED_POINT;
    for (int32_t n = 0; n < m->port_count; n++) {
        const bl_coupled_port *port = &m->ports[n];
        const bl_coupled_signal *signal = &c->signals[port->signal];
        const bool is_there = method != BL_JACOBI && (iterated ? signal->last : signal->direct) < position;
        for (int32_t i = 0; i < signal->width; i++) {
            const int64_t k = signal->at + i;
            bl_polynomial polynomial;
            if (signal->last == BL_COUPLED_HELD || (order == 0 && port->carried))
                polynomial = (bl_polynomial){c->start[k], 0.0, 0.0};
            else if (is_there || iterated)
                polynomial = interpolate(c, k, order, is_there ? signal->now[i] : c->guess[k], dt, iterated);
            else polynomial = bl_extrapolate(c, k, order);
            if (!m->input_derivatives) {
                polynomial.value += (polynomial.first / 2.0 + polynomial.second * dt / 6.0) * dt;
                polynomial.first = polynomial.second = 0.0;
            }
            port->value[i] = polynomial.value;
            port->first[i] = polynomial.first;
            port->second[i] = polynomial.second;
        }
    }
}

void bl_coupling_follow(const bl_engine *e, double t) {
    const bl_member *m = e->followed;
    const double age = t - e->followed_since;
    for (int32_t n = 0; n < m->port_count; n++) {
        const bl_coupled_port *port = &m->ports[n];
        const bl_coupled_signal *signal = &e->followed_signals[port->signal];
        double *now = e->values + (signal->now - e->values);
        for (int32_t i = 0; i < signal->width; i++)
            now[i] = port->value[i] + (port->first[i] + 0.5 * port->second[i] * age) * age;
    }
}

static int advance_states(bl_engine *e, const bl_coupling *c, const bl_member *m, double t, double dt) {
    e->followed = m;
    e->followed_signals = c->signals;
    e->followed_since = t;
    int status = bl_evaluate_minor(e, t);
    if (status == BL_OK) status = bl_advance_states(e, t, dt, bl_after_tick(e, t + dt));
    e->followed = NULL;
    return status;
}

static int advance_member(bl_engine *e, const bl_coupling *c, bl_member *m, int order, double t, double dt) {
    bl_block *b = m->block;
    if (!b) return advance_states(e, c, m, t, dt);
    const double *const *own = b->u;
    b->u = m->u;
    if (m->input_derivatives && (order > 0 || e->follows)) {
        b->u1 = m->u1;
        b->u2 = m->u2;
    }
    bl_follow_inputs(e, t);
    const int status = e->kernels[b->index]->advance(b, t, dt);
    b->u = own;
    b->u1 = b->u2 = NULL;
    return status == BL_OK ? BL_OK : bl_fail_block(e, status, b, "the block failed to advance");
}

static int compute_signals(bl_engine *e, const bl_coupling *c, double t) {
    bl_follow_inputs(e, t);
    return bl_run_program(e, &c->program, t, false);
}

/* The same while members after number `done` have not been advanced. The outputs of those that have been may depend on inputs that
   come from the others: these are extrapolated to t + dt. */
static int compute_partly(bl_engine *e, const bl_coupling *c, int32_t done, int order, double t, double dt) {
    for (int32_t j = 0; j <= done; j++) {
        const bl_member *m = &c->members[j];
        for (int32_t n = 0; n < m->port_count && m->block; n++) {
            const bl_coupled_port *port = &m->ports[n];
            const bl_coupled_signal *signal = &c->signals[port->signal];
            for (int32_t i = 0; i < signal->width; i++) {
                const int64_t k = signal->at + i;
                const bl_polynomial polynomial = bl_extrapolate(c, k, order);
                const double foreseen = polynomial.value + (polynomial.first + 0.5 * polynomial.second * dt) * dt;
                port->end[i] = signal->last == BL_COUPLED_HELD ? c->start[k]
                               : signal->direct < done         ? signal->now[i]
                                                               : foreseen;
            }
        }
        if (m->block) m->block->u = m->u_end;
    }
    const int status = compute_signals(e, c, t + dt);
    for (int32_t j = 0; j <= done; j++)
        if (c->members[j].block) c->members[j].block->u = c->members[j].own_u;
    return status;
}

/* Steps. */

/* Each member once over the step; `again` from where it started. Leaves the signals as they are at t + dt. */
static int sweep(bl_engine *e, bl_coupling *c, int method, int order, double t, double dt, bool again) {
    if (method != BL_JACOBI && !again) { /* what depends on no member, or on members of earlier couplings */
        const int status = compute_signals(e, c, t + dt);
        if (status != BL_OK) return status;
    }
    if (again) move_log(e, c, BL_KEEP_STEP, true);
    for (int32_t j = 0; j < c->member_count; j++) {
        int status = again ? move_member(e, &c->members[j], BL_KEEP_STEP, true) : BL_OK;
        if (status != BL_OK) return status;
        set_inputs(c, j, method, order, dt);
        status = advance_member(e, c, &c->members[j], order, t, dt);
        if (status != BL_OK) return status;
        if (method == BL_GAUSS_SEIDEL && j + 1 < c->member_count) status = compute_partly(e, c, j, order, t, dt);
        else if (method != BL_JACOBI || j + 1 == c->member_count) status = compute_signals(e, c, t + dt);
        if (status != BL_OK) return status;
    }
    c->memory[BL_COUPLING_ITERATIONS] += 1.0;
    return BL_OK;
}

/* How large the signals are: the largest value that they ever had, counting the present guess's. Returns whether one is far smaller
   than before. */
static bool set_scales(const bl_coupling *c) {
    bool shrunk = false;
    for (int32_t s = 0; s < c->signal_count; s++) {
        const bl_coupled_signal *signal = &c->signals[s];
        for (int32_t i = 0; i < signal->width; i++) {
            const int64_t k = signal->at + i;
            const double known = fmax(bl_coupled_array(c, BL_COUPLED_SCALE)[k], fabs(c->start[k]));
            const double scale = fmax(fmax(known, fabs(signal->now[i])), SMALLEST_SCALE);
            shrunk = shrunk || scale < 0.1 * c->scale[k];
            c->scale[k] = scale;
        }
    }
    return shrunk;
}

/* r = (g(w) - w) / scale, of the unknowns; returns the largest. */
static double measure_residual(const bl_coupling *c, double *r) {
    double largest = 0.0;
    for (int32_t s = 0; s < c->signal_count; s++) {
        const bl_coupled_signal *signal = &c->signals[s];
        for (int32_t i = 0; signal->unknown >= 0 && i < signal->width; i++) {
            const int64_t k = signal->at + i;
            const double relative = (signal->now[i] - c->guess[k]) / c->scale[k];
            r[signal->unknown + i] = relative;
            if (!(fabs(relative) <= largest)) largest = fabs(relative); /* keeps a NaN */
        }
    }
    return largest;
}

/* w += factor · scale · step, over the unknowns. */
static void move_guess(const bl_coupling *c, const double *step, double factor) {
    for (int32_t s = 0; s < c->signal_count; s++) {
        const bl_coupled_signal *signal = &c->signals[s];
        for (int32_t i = 0; signal->unknown >= 0 && i < signal->width; i++)
            c->guess[signal->at + i] += factor * c->scale[signal->at + i] * step[signal->unknown + i];
    }
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* Relaxed fixed point: w += ω r, with ω by Aitken from the last two residuals. */
static int iterate_fixed_point(bl_engine *e, bl_coupling *c, int order, double t, double dt, double *size) {
    const int64_t n = c->unknown_count;
    double *r = c->work, *before = r + n, *change = before + n, relaxation = 1.0;
    for (int iteration = 0;; iteration++) {
        const int status = sweep(e, c, BL_FIXED_POINT, order, t, dt, iteration > 0);
        if (status != BL_OK) return status;
        if (iteration == 0) (void)set_scales(c);
        *size = measure_residual(c, r);
        if (*size <= c->tolerance || isnan(*size) || iteration + 1 >= c->iterations) return BL_OK;
        if (iteration > 0) {
            for (int64_t i = 0; i < n; i++) change[i] = r[i] - before[i];
            const double square = dot(change, change, n);
            if (square > 0.0) relaxation *= -dot(before, change, n) / square;
        }
        memcpy(before, r, (size_t)n * sizeof(double));
        move_guess(c, r, relaxation);
    }
}

/* The inverse of dr/dw by differences, column by column from rolled-back sweeps; r is the residual at w. */
static int make_jacobian(bl_engine *e, bl_coupling *c, int order, double t, double dt, const double *r,
                         double *inverse) {
    const int64_t n = c->unknown_count;
    double *matrix = c->work + 5 * n, *column = matrix + n * n, *pivots = column + n;
    for (int32_t s = 0; s < c->signal_count; s++) {
        const bl_coupled_signal *signal = &c->signals[s];
        for (int32_t i = 0; signal->unknown >= 0 && i < signal->width; i++) {
            double *w = &c->guess[signal->at + i];
            const double kept = *w, scale = c->scale[signal->at + i];
            *w = kept + PERTURBATION * fmax(fmax(fabs(kept), fabs(c->start[signal->at + i])), SMALLEST_SCALE);
            const double perturbed = (*w - kept) / scale;
            const int status = sweep(e, c, BL_NEWTON, order, t, dt, true);
            if (status != BL_OK) return status;
            measure_residual(c, column);
            *w = kept;
            for (int64_t row = 0; row < n; row++)
                matrix[row * n + signal->unknown + i] = (column[row] - r[row]) / perturbed;
        }
    }
    const bool regular = bl_lu_factor(matrix, pivots, n) == BL_OK; /* else start from that of a fixed point, -1 */
    for (int64_t k = 0; k < n; k++) {
        for (int64_t row = 0; row < n; row++) column[row] = row != k ? 0.0 : regular ? 1.0 : -1.0;
        if (regular) bl_lu_solve(matrix, pivots, n, column);
        for (int64_t row = 0; row < n; row++) inverse[row * n + k] = column[row];
    }
    c->memory[BL_COUPLING_HAS_JACOBIAN] = 1.0;
    return BL_OK;
}

/* Broyden: the smallest correction with which the inverse takes this change of the residual to this step. */
static void correct_inverse(double *inverse, int64_t n, const double *step, const double *change, double *mapped,
                            double *left) {
    for (int64_t i = 0; i < n; i++) {
        mapped[i] = dot(inverse + i * n, change, n);
        left[i] = 0.0;
        for (int64_t row = 0; row < n; row++) left[i] += step[row] * inverse[row * n + i];
    }
    const double denominator = dot(step, mapped, n);
    if (!(fabs(denominator) > 0.0)) return;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++) inverse[i * n + k] += (step[i] - mapped[i]) * left[k] / denominator;
}

static int iterate_newton(bl_engine *e, bl_coupling *c, int order, double t, double dt, double *size) {
    const int64_t n = c->unknown_count;
    double *r = c->work, *before = r + n, *step = before + n, *mapped = step + n, *left = mapped + n;
    double *inverse = bl_coupled_array(c, BL_COUPLED_ARRAYS), *has = &c->memory[BL_COUPLING_HAS_JACOBIAN];
    const double slow = pow(SLOW, 1.0 / (double)n); /* in one sweep; n > 0 */
    int status = sweep(e, c, BL_NEWTON, order, t, dt, false);
    if (status != BL_OK) return status;
    (void)set_scales(c);
    *size = measure_residual(c, r);
    for (int iteration = 1; iteration < c->iterations; iteration++) {
        /* A first guess may have been so far off that compared to it anything is exact. */
        if (*size <= c->tolerance && set_scales(c)) {
            *has = 0.0;
            *size = measure_residual(c, r);
        }
        if (!(*size > c->tolerance)) break;
        if (*has == 0.0) {
            status = make_jacobian(e, c, order, t, dt, r, inverse);
            if (status != BL_OK) return status;
        }
        for (int64_t i = 0; i < n; i++) step[i] = -dot(inverse + i * n, r, n);
        move_guess(c, step, 1.0);
        memcpy(before, r, (size_t)n * sizeof(double));
        const double size_before = *size;
        status = sweep(e, c, BL_NEWTON, order, t, dt, true);
        if (status != BL_OK) return status;
        *size = measure_residual(c, r);
        for (int64_t i = 0; i < n; i++) before[i] = r[i] - before[i];
        correct_inverse(inverse, n, step, before, mapped, left);
        if (*size > slow * size_before) *has = 0.0;
    }
    if (isnan(*size)) *has = 0.0;
    return BL_OK;
}

void bl_keep_history(bl_coupling *c, double dt) {
    double *m = c->memory, *slope = bl_coupled_array(c, BL_COUPLED_DERIVATIVE),
           *before = bl_coupled_array(c, BL_COUPLED_DERIVATIVE_BEFORE);
    double *oldest = bl_coupled_array(c, BL_COUPLED_DERIVATIVE_OLDEST), *scale = bl_coupled_array(c, BL_COUPLED_SCALE);
    for (int32_t s = 0; s < c->signal_count; s++) {
        const bl_coupled_signal *signal = &c->signals[s];
        for (int32_t i = 0; i < signal->width; i++) {
            const int64_t k = signal->at + i;
            oldest[k] = before[k];
            before[k] = slope[k];
            slope[k] = (signal->now[i] - c->start[k]) / dt;
            scale[k] = fmax(scale[k], fabs(signal->now[i]));
        }
    }
    m[BL_COUPLING_SPAN_OLDEST] = m[BL_COUPLING_SPAN_BEFORE];
    m[BL_COUPLING_SPAN_BEFORE] = m[BL_COUPLING_SPAN];
    m[BL_COUPLING_SPAN] = dt;
    if (m[BL_COUPLING_HISTORY] < 3.0) m[BL_COUPLING_HISTORY] += 1.0;
}

/* The past as if it had been made of steps dt: its input derivatives from the polynomial through the last four values. */
static void refine_history(bl_coupling *c, double dt) {
    double *m = c->memory, *slope = bl_coupled_array(c, BL_COUPLED_DERIVATIVE),
           *before = bl_coupled_array(c, BL_COUPLED_DERIVATIVE_BEFORE);
    const double *oldest = bl_coupled_array(c, BL_COUPLED_DERIVATIVE_OLDEST), known = m[BL_COUPLING_HISTORY];
    const double first = m[BL_COUPLING_SPAN], second = first + m[BL_COUPLING_SPAN_BEFORE];
    if (known < 1.0) return;
    for (int64_t k = 0; k < c->element_count; k++) {
        const double bend = known < 2.0 ? 0.0 : (slope[k] - before[k]) / second;
        const double bend_before =
            known < 3.0 ? bend : (before[k] - oldest[k]) / (m[BL_COUPLING_SPAN_BEFORE] + m[BL_COUPLING_SPAN_OLDEST]);
        const double twist = known < 3.0 ? 0.0 : (bend - bend_before) / (second + m[BL_COUPLING_SPAN_OLDEST]);
        double past[3]; /* values at 0, -dt, -2 dt, less the present one */
        for (int n = 0; n < 3; n++) {
            const double at = -n * dt;
            past[n] = (slope[k] + (bend + twist * (at + second)) * (at + first)) * at;
        }
        slope[k] = (past[0] - past[1]) / dt;
        before[k] = (past[1] - past[2]) / dt;
    }
    m[BL_COUPLING_SPAN] = m[BL_COUPLING_SPAN_BEFORE] = dt;
    m[BL_COUPLING_HISTORY] = fmin(known + 1.0, 2.0);
}

void bl_take_start(const bl_engine *e, const bl_coupling *c, const double *signals) {
    for (int32_t s = 0; s < c->signal_count; s++) {
        const bl_coupled_signal *signal = &c->signals[s];
        memcpy(c->start + signal->at, signals + (signal->now - e->signals), (size_t)signal->width * sizeof(double));
    }
}

/* All couplings start from the same signals, before the first of them moves any. */
static void take_starts(const bl_engine *e, const double *signals) {
    for (int32_t n = 0; n < e->coupling_count; n++) bl_take_start(e, &e->couplings[n], signals);
}

/* The power that passes between two members, and the difference of what each of them sees at its end: what the coupling creates. Both are
   means over a step, of which this part has a size, after others have been done. Where the other member gets a place, it does its work
   along the true way: what it sees within the step is put right at the end. */
void bl_measure_bonds(const bl_coupling *c, double dt, double done, double size) {
    static const double weights[3] = {1.0 / 6.0, 4.0 / 6.0, 1.0 / 6.0};
    for (int32_t n = 0; n < c->bond_count; n++) {
        const bl_bond *bond = &c->bonds[n];
        const bl_coupled_signal *effort = &c->signals[bond->effort->signal], *flow = &c->signals[bond->flow->signal];
        const bl_coupled_port *a = bond->effort, *b = bond->flow;
        double created = 0.0, passing = 0.0, *scale = &bond->memory[BL_BOND_SCALE];
        for (int32_t i = 0; i < effort->width; i++) {
            *scale = fmax(*scale, fabs(effort->now[i] * flow->now[i]));
            for (int at = 0; at < 3; at++) {
                const double part = 0.5 * at, age = part * dt, way = flow->now[i] - c->start[flow->at + i];
                const double given_effort = a->value[i] + (a->first[i] + 0.5 * a->second[i] * age) * age;
                const double true_effort = (1.0 - part) * c->start[effort->at + i] + part * effort->now[i];
                const double true_flow = bond->is_place ? way / dt : c->start[flow->at + i] + part * way;
                const double given_flow =
                    bond->is_place ? true_flow : b->value[i] + (b->first[i] + 0.5 * b->second[i] * age) * age;
                created += weights[at] * (given_effort * true_flow - true_effort * given_flow);
                passing += weights[at] * true_effort * true_flow;
            }
        }
        bond->memory[BL_BOND_POWER] = done > 0.0 ? bond->memory[BL_BOND_POWER] + size * created : size * created;
        bond->memory[BL_BOND_PASSING] = done > 0.0 ? bond->memory[BL_BOND_PASSING] + size * passing : size * passing;
    }
}

static void add_up_bond(double *memory, double dt) {
    memory[BL_BOND_ENERGY] += memory[BL_BOND_POWER] * dt;
    memory[BL_BOND_TOTAL] += fabs(memory[BL_BOND_POWER]) * dt;
    memory[BL_BOND_PASSED] += memory[BL_BOND_PASSING] * dt;
    memory[BL_BOND_LOWEST] = fmin(memory[BL_BOND_LOWEST], memory[BL_BOND_PASSED]);
    memory[BL_BOND_HIGHEST] = fmax(memory[BL_BOND_HIGHEST], memory[BL_BOND_PASSED]);
    memory[BL_BOND_EXCHANGED] += fabs(memory[BL_BOND_PASSING]) * dt;
}

/* As measure_bonds, with both signals held at their initial values e and f: they end at e + de and f + df. */
void bl_measure_exchanges(bl_engine *e, double t) {
    for (int32_t n = 0; n < e->exchange_count; n++) {
        const bl_exchange *x = &e->exchanges[n];
        const bool is_hit =
            x->period == 1 || (e->offset == 0.0 && e->tick >= x->offset && (e->tick - x->offset) % x->period == 0);
        if (!is_hit) continue;
        double *since = x->memory + BL_BOND_MEMORY, *efforts = since + 1, *flows = efforts + x->width;
        const double now = 1.0 + (t - e->start), dt = now - *since;
        if (*since > 0.0 && dt > 0.0) {
            double created = 0.0, passing = 0.0;
            for (int32_t i = 0; i < x->width; i++) {
                const double effort = efforts[i], de = x->effort[i] - effort, flow = flows[i], df = x->flow[i] - flow;
                created += x->is_place ? -0.5 * de * df / dt : 0.5 * (effort * df - de * flow);
                passing += (effort + 0.5 * de) * (x->is_place ? df / dt : flow + 0.5 * df);
                x->memory[BL_BOND_SCALE] = fmax(x->memory[BL_BOND_SCALE], fabs(x->effort[i] * x->flow[i]));
            }
            x->memory[BL_BOND_POWER] = created;
            x->memory[BL_BOND_PASSING] = passing;
            add_up_bond(x->memory, dt);
        }
        *since = now;
        memcpy(efforts, x->effort, (size_t)x->width * sizeof(double));
        memcpy(flows, x->flow, (size_t)x->width * sizeof(double));
    }
}

/* Takes the step, or a part of it, from `start` at t; the caller checks the remaining residual. */
int bl_try_coupled_step(bl_engine *e, bl_coupling *c, int method, double t, double dt, double *residual) {
    *residual = 0.0;
    if (method < BL_FIXED_POINT || c->unknown_count == 0) return sweep(e, c, method, c->hold, t, dt, false);
    for (int64_t k = 0; k < c->element_count; k++) {
        const bl_polynomial polynomial = bl_extrapolate(c, k, 2);
        c->guess[k] = polynomial.value + (polynomial.first + 0.5 * polynomial.second * dt) * dt;
    }
    const int status = bl_move_members(e, c, BL_KEEP_STEP, false);
    if (status != BL_OK) return status;
    return method == BL_NEWTON ? iterate_newton(e, c, c->hold, t, dt, residual)
                               : iterate_fixed_point(e, c, c->hold, t, dt, residual);
}

/* Whether what failed may be happy with other inputs, of another step. */
bool bl_is_refusal(int status) {
    return status == BL_ERROR_BLOCK || status == BL_ERROR_SOLVER || status == BL_ERROR_LOOP ||
           status == BL_ERROR_NOT_FINITE;
}

/* History and start of the whole step: the next step continues as if this one had not been divided. */
static void copy_whole(const bl_coupling *c, bool back) {
    double *m = c->memory;
    const double iterations = m[BL_COUPLING_ITERATIONS], has_jacobian = m[BL_COUPLING_HAS_JACOBIAN];
    double *kept = copy_part(c->whole, m, bl_coupling_history(c->element_count), back);
    (void)copy_part(kept, c->start, c->element_count, back);
    m[BL_COUPLING_ITERATIONS] = iterations;
    m[BL_COUPLING_HAS_JACOBIAN] = has_jacobian;
}

/* Sizes are binary fractions of the step, each part at a multiple of its own, so that they grow again after what was hard and end with
   the step. A Jacobian is good for one size. Says how many parts it took; 0 if the smallest was not small enough. */
static int take_parts(bl_engine *e, bl_coupling *c, int method, double size, double t, double dt, double *residual,
                      int *parts) {
    double done = 0.0, largest = 0.0;
    int count = 0;
    while (done < 1.0) {
        int status = bl_try_coupled_step(e, c, method, t + done * dt, size * dt, residual);
        if (status != BL_OK && !bl_is_refusal(status)) return status;
        if (status == BL_OK && *residual <= c->tolerance) {
            bl_measure_bonds(c, size * dt, done, size);
            bl_keep_history(c, size * dt);
            bl_take_start(e, c, e->signals);
            largest = fmax(largest, *residual);
            count++;
            done += size;
            if (done == 1.0 || fmod(done, 2.0 * size) != 0.0) continue;
            size *= 2.0;
        } else {
            if (size <= c->smallest) return BL_OK;
            status = bl_move_members(e, c, BL_KEEP_STEP, true);
            if (status != BL_OK) return status;
            size *= 0.5;
        }
        c->memory[BL_COUPLING_HAS_JACOBIAN] = 0.0;
    }
    *residual = largest;
    *parts = count;
    return BL_OK;
}

/* After a step has failed: with a new Jacobian if its own was old, else in parts. If these fail too, as a whole after all. */
static int repeat_step(bl_engine *e, bl_coupling *c, int method, bool had_jacobian, double t, double dt,
                       double *residual) {
    double *m = c->memory;
    int parts = 0, status = bl_move_members(e, c, BL_KEEP_STEP, true);
    if (status == BL_OK) status = bl_move_members(e, c, BL_KEEP_WHOLE, false);
    if (status != BL_OK) return status;
    copy_whole(c, false);
    m[BL_COUPLING_HAS_JACOBIAN] = 0.0;
    status = take_parts(e, c, method, had_jacobian ? 1.0 : 0.5, t, dt, residual, &parts);
    if (status != BL_OK) return status;
    copy_whole(c, true);
    if (parts != 1) m[BL_COUPLING_HAS_JACOBIAN] = 0.0;
    if (parts > 1) m[BL_COUPLING_SHORTENED] += 1.0;
    if (parts == 0) status = bl_move_members(e, c, BL_KEEP_WHOLE, true);
    return parts == 0 && status == BL_OK ? bl_try_coupled_step(e, c, method, t, dt, residual) : status;
}

int bl_coupling_method(const bl_coupling *c) {
    /* A quadratic has no past yet: a first step held constant would cost an order, so it is iterated. */
    const bool is_first = c->hold == 2 && c->memory[BL_COUPLING_HISTORY] == 0.0 && c->rolls_back;
    return is_first && c->method < BL_FIXED_POINT ? BL_FIXED_POINT : c->method;
}

int bl_count_failure(bl_engine *e, const bl_coupling *c, double t, double residual, bool was_divided) {
    double *m = c->memory;
    m[BL_COUPLING_FAILURES] += 1.0;
    if (!c->strict) return BL_OK;
    const bl_block *first = c->members[0].block ? c->members[0].block : c->members[c->member_count > 1].block;
    return bl_fail(e, BL_ERROR_SOLVER, first ? first->index : -1,
                   "the coupled step from t = %.9g did not converge%s: after %d iterations its residual is %.3g", t,
                   was_divided ? ", nor did parts of it" : "", (int)m[BL_COUPLING_ITERATIONS], residual);
}

/* One step of a coupling; `start` holds the signals at t. */
static int step_coupling(bl_engine *e, bl_coupling *c, double t, double dt) {
    double *m = c->memory, residual = 0.0;
    const int method = bl_coupling_method(c);
    const bool had_jacobian = method == BL_NEWTON && m[BL_COUPLING_HAS_JACOBIAN] != 0.0;
    const bool may_repeat = method >= BL_FIXED_POINT && c->unknown_count > 0 && c->smallest < 1.0;
    const double shortened = m[BL_COUPLING_SHORTENED];
    m[BL_COUPLING_ITERATIONS] = 0.0;
    int status = bl_try_coupled_step(e, c, method, t, dt, &residual);
    if (may_repeat && (status == BL_OK ? !(residual <= c->tolerance) : bl_is_refusal(status))) {
        status = repeat_step(e, c, method, had_jacobian, t, dt, &residual);
        if (status == BL_OK) bl_forget_failure(e);
    }
    if (status != BL_OK) return status;
    if (m[BL_COUPLING_SHORTENED] == shortened) bl_measure_bonds(c, dt, 0.0, 1.0);
    bl_keep_history(c, dt);
    m[BL_COUPLING_RESIDUAL] = residual;
    m[BL_COUPLING_STEPS] += 1.0;
    m[BL_COUPLING_SWEEPS] += m[BL_COUPLING_ITERATIONS];
    return residual <= c->tolerance ? BL_OK : bl_count_failure(e, c, t, residual, may_repeat);
}

/* Members with a longer period advance to its end in one step; the others advance by the requested part h of a tick. */
static double length_of(const bl_engine *e, const bl_coupling *c, double h) {
    return c->period == 1 ? h : (double)c->period * e->step;
}

/* The step in two or four parts, of all couplings that are due, then back to where it started. */
static int try_parts(bl_engine *e, double t, double h, int parts) {
    int status = BL_OK;
    for (int part = 0; part < parts; part++) {
        take_starts(e, part > 0 ? e->signals : e->coupling_signals);
        for (int32_t n = 0; n < e->coupling_count; n++) {
            bl_coupling *c = &e->couplings[n];
            if (!bl_is_hit(e, c->rate)) continue;
            const double dt = length_of(e, c, h) / parts;
            if (part == 0) refine_history(c, dt);
            status = step_coupling(e, c, t + part * dt, dt);
            if (status != BL_OK) return status;
        }
    }
    take_starts(e, e->signals);
    for (int32_t n = 0; n < e->coupling_count; n++) {
        bl_coupling *c = &e->couplings[n];
        if (!bl_is_hit(e, c->rate)) continue;
        memcpy(parts == 2 ? c->halves : c->quarters, c->start, (size_t)c->element_count * sizeof(double));
        memcpy(c->memory, c->kept_memory, (size_t)c->memory_count * sizeof(double));
        status = bl_move_members(e, c, BL_KEEP_ESTIMATE, true);
        if (status != BL_OK) return status;
    }
    memcpy(e->signals, e->coupling_signals, (size_t)e->layout.signals * sizeof(double));
    return BL_OK;
}

/* Step doubling, twice, so that the order shows too. */
static int prepare_estimate(bl_engine *e, double t, double h) {
    for (int32_t n = 0; n < e->coupling_count; n++) {
        bl_coupling *c = &e->couplings[n];
        if (!bl_is_hit(e, c->rate)) continue;
        memcpy(c->kept_memory, c->memory, (size_t)c->memory_count * sizeof(double));
        const int status = bl_move_members(e, c, BL_KEEP_ESTIMATE, false);
        if (status != BL_OK) return status;
    }
    const int status = try_parts(e, t, h, 4);
    return status == BL_OK ? try_parts(e, t, h, 2) : status;
}

/* With an error C dt^(p+1) of each step, halving it changes the end by (1 - 2^-p) of that. */
static void finish_estimate(bl_coupling *c) {
    const int order = c->method >= BL_FIXED_POINT && c->hold == 0 ? 2 : c->hold + 1;
    const double share = 1.0 - ldexp(1.0, -order);
    for (int32_t s = 0; s < c->signal_count; s++) {
        const bl_coupled_signal *signal = &c->signals[s];
        for (int32_t i = 0; i < signal->width; i++) {
            const int64_t k = signal->at + i;
            const double halved = signal->now[i] - c->halves[k], quartered = c->halves[k] - c->quarters[k];
            bl_coupled_array(c, BL_COUPLED_ERROR)[k] = halved / share;
            bl_coupled_array(c, BL_COUPLED_ERROR_SUM)[k] += fabs(halved / share);
            bl_coupled_array(c, BL_COUPLED_HALVED)[k] += halved * halved;
            bl_coupled_array(c, BL_COUPLED_QUARTERED)[k] += quartered * quartered;
        }
    }
    c->memory[BL_COUPLING_ESTIMATES] += 1.0;
}

int bl_accept_members(bl_engine *e, const bl_coupling *c, double t) {
    for (int32_t j = 0; j < c->member_count; j++) {
        bl_block *b = c->members[j].block;
        const bl_operation accept = b ? e->kernels[b->index]->accept_step : NULL;
        const int status = accept ? accept(b, t) : BL_OK;
        if (status != BL_OK) return bl_fail_block(e, status, b, "the block failed to start");
    }
    return BL_OK;
}

int bl_coupling_start(bl_engine *e, double t) {
    if (e->coupling_count == 0) return BL_OK;
    memcpy(e->coupling_signals, e->signals, (size_t)e->layout.signals * sizeof(double));
    for (int32_t n = 0; n < e->coupling_count; n++) {
        const int status = bl_is_hit(e, e->couplings[n].rate) ? bl_accept_members(e, &e->couplings[n], t) : BL_OK;
        if (status != BL_OK) return status;
    }
    return BL_OK;
}

/* Couplings of one communication group follow each other and are advanced together. */
static int32_t count_group(const bl_engine *e, int32_t first) {
    int32_t last = first + 1;
    while (last < e->coupling_count && e->couplings[last].group == e->couplings[first].group &&
           e->couplings[last].period == e->couplings[first].period && bl_is_hit(e, e->couplings[last].rate))
        last++;
    return last - first;
}

int bl_coupling_advance(bl_engine *e, double t, double h) {
    if (e->coupling_count == 0) return BL_OK;
    const bool estimate = e->estimate_every > 0 && e->tick % e->estimate_every == 0;
    int status = estimate ? prepare_estimate(e, t, h) : BL_OK;
    take_starts(e, e->coupling_signals);
    for (int32_t n = 0, count = 1; n < e->coupling_count && status == BL_OK; n += count) {
        bl_coupling *c = &e->couplings[n];
        count = 1;
        if (!bl_is_hit(e, c->rate)) continue;
        const double dt = length_of(e, c, h);
        if (c->group > 0) {
            count = count_group(e, n);
            status = bl_communicate(e, c, count, t, dt);
        } else {
            status = step_coupling(e, c, t, dt);
        }
        if (status != BL_OK) break;
        for (int32_t j = 0; j < count; j++) {
            if (estimate) finish_estimate(&c[j]);
            for (int32_t k = 0; k < c[j].bond_count; k++) add_up_bond(c[j].bonds[k].memory, dt);
        }
    }
    /* Outputs that are not due at the next tick hold their values of this one. */
    memcpy(e->signals, e->coupling_signals, (size_t)e->layout.signals * sizeof(double));
    return status;
}
