/* How outputs change: derivatives with respect to values, and with respect to time.
 *
 * Outputs can only be evaluated, so these are differences, over steps that shrink by 4 and extrapolated to a step of zero (Ridders
 * 1982). For each output that entry of the scheme is taken which agrees best with its neighbors: an output that is curved, or has
 * a kink nearby, is served by small steps, one that is nearly straight by large ones, and neither has to say how large its
 * numbers are. No entry counts as better than the rounding of what it was made from. A step at which outputs cannot be evaluated, such as one to the root of a negative number, is left out.
 *
 * Blocks with discontinuities keep the mode of the present values, so that no difference is taken across a kink or a jump.
 *
 * The engine's state is restored at the end: a run continues bit for bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/engine/engine.h"

enum { LARGEST_LEVELS = 14, LARGEST_COLUMNS = 6, SETTLED_LEVELS = 3 };
static const double FIRST_STEP = 0x1p-5, SETTLED = 1e-12;

/* The scheme of one output: the last row, and the best entry so far. */
typedef struct {
    double row[LARGEST_COLUMNS];
    double best, error;
    double ends[2];
} bl_scheme;

/* Evaluates outputs at *s of a curve through the present values, which are at 0; sets *s to what rounding made of it. */
typedef int (*bl_curve)(bl_engine *e, double *s, const void *context);

/* Adds the difference over `span`. `ratio` is what the error of a difference is divided by from one row to the next. Returns whether
   smaller steps could not make the best entry better. */
static bool extend_scheme(bl_scheme *scheme, int columns, double span, double ratio) {
    const double *ends = scheme->ends, rounding = 0x1p-52 * fmax(fabs(ends[0]), fabs(ends[1])) / span;
    double left = (ends[1] - ends[0]) / span, weight = ratio;
    /* The best entry was an accident if smaller steps lead away from it. */
    if (columns > 0 &&
        fabs(left - scheme->best) > 2.0 * fabs(scheme->row[0] - scheme->best) + 1e-6 * fabs(left) + 16.0 * rounding)
        scheme->error = INFINITY;
    for (int c = 0; c < columns; c++, weight *= ratio) {
        const double above = scheme->row[c], next = left + (left - above) / (weight - 1.0);
        const double error = fmax(fmax(fabs(next - left), fabs(next - above)), rounding);
        if (error <= scheme->error) {
            scheme->error = error;
            scheme->best = next;
        }
        scheme->row[c] = left;
        left = next;
    }
    if (columns < LARGEST_COLUMNS) scheme->row[columns] = left;
    if (scheme->error == INFINITY) scheme->best = left;
    return scheme->error <= fmax(SETTLED * fabs(scheme->best), rounding);
}

/* A value, or, from layout.total on, a derivative of a state. */
static double read_slot(const bl_engine *e, int64_t slot) {
    return slot < e->layout.total ? e->values[slot] : e->dx[slot - e->layout.total];
}

/* The best entry of each scheme becomes d(values[slots])/ds along a curve, at s = 0, from both sides or from below. */
static int differentiate(bl_engine *e, bl_curve move, const void *context, double scale, bool from_below,
                         const int64_t *slots, int64_t count, bl_scheme *schemes) {
    int columns = 0, settled = 0, evaluated = 0;
    double step = FIRST_STEP * scale;
    for (int64_t k = 0; k < count; k++) schemes[k].error = INFINITY;
    for (int level = 0; level < LARGEST_LEVELS && settled < SETTLED_LEVELS; level++, step *= 0.25) {
        double s[2] = {-step, from_below ? 0.0 : step};
        int status = BL_OK;
        for (int side = 0; side < 2 && status == BL_OK; side++) {
            status = move(e, &s[side], context);
            for (int64_t k = 0; k < count && status == BL_OK; k++) schemes[k].ends[side] = read_slot(e, slots[k]);
        }
        if (status != BL_OK || !(s[1] > s[0])) {
            columns = settled = 0;
            continue;
        }
        bool is_settled = columns > 0;
        for (int64_t k = 0; k < count; k++)
            is_settled = extend_scheme(&schemes[k], columns, s[1] - s[0], from_below ? 4.0 : 16.0) && is_settled;
        settled = is_settled ? settled + 1 : 0;
        columns = columns < LARGEST_COLUMNS ? columns + 1 : columns;
        evaluated++;
    }
    return evaluated ? BL_OK
                     : bl_fail(e, BL_ERROR_ARGUMENT, -1, "outputs cannot be evaluated beside the present values");
}

typedef struct {
    int64_t slot;
    double value;
    bool anew, derivatives; /* whether states are set anew, whether derivatives of states are asked for */
} bl_perturbation;

static int perturb_value(bl_engine *e, double *s, const void *context) {
    const bl_perturbation *perturbation = context;
    e->values[perturbation->slot] = perturbation->value + *s;
    *s = e->values[perturbation->slot] - perturbation->value;
    bl_touch(e);
    int status = perturbation->anew ? bl_init(e) : BL_OK;
    if (status == BL_OK) status = bl_outputs(e);
    return status == BL_OK && perturbation->derivatives ? bl_evaluate_derivatives(e, bl_time(e)) : status;
}

/* x0, dx/dt, and the inputs; t and s are separate, so that a large t does not spoil a small s. */
typedef struct {
    double t;
    const double *x, *dx, *u;
} bl_tangent;

static int move_in_time(bl_engine *e, double *s, const void *context) {
    const bl_tangent *tangent = context;
    for (int64_t i = 0; i < e->layout.states; i++) e->x[i] = tangent->x[i] + *s * tangent->dx[i];
    for (int64_t i = 0; i < e->input_count; i++)
        e->values[e->input_slots[i]] =
            tangent->u[i] + *s * e->input_derivatives[BL_INPUT_DERIVATIVE_NOW * e->input_count + i];
    return bl_evaluate_held(e, tangent->t + *s);
}

static void *copy_state(const bl_engine *e) {
    void *saved = malloc(bl_state_size(e));
    if (saved) bl_save(e, saved);
    return saved;
}

int bl_directional(bl_engine *e, const int64_t *knowns, const double *seeds, int64_t known_count,
                   const int64_t *unknowns, int64_t unknown_count, int anew, double *out) {
    void *saved = copy_state(e);
    bl_scheme *schemes = calloc((size_t)unknown_count + 1, sizeof(bl_scheme));
    int status = saved && schemes ? BL_OK : bl_fail(e, BL_ERROR_MEMORY, -1, "no memory for derivatives");
    if (status == BL_OK) status = bl_freeze_modes(e);
    bool derivatives = false;
    for (int64_t k = 0; k < unknown_count; k++) {
        out[k] = 0.0;
        derivatives = derivatives || unknowns[k] >= e->layout.total;
    }
    for (int64_t i = 0; i < known_count && status == BL_OK; i++) {
        if (seeds[i] == 0.0) continue;
        const bl_perturbation perturbation = {knowns[i], e->values[knowns[i]], anew != 0, derivatives};
        status = differentiate(e, perturb_value, &perturbation, fmax(1.0, fabs(perturbation.value)), false, unknowns,
                               unknown_count, schemes);
        for (int64_t k = 0; k < unknown_count && status == BL_OK; k++) out[k] += seeds[i] * schemes[k].best;
        (void)bl_restore(e, saved, bl_state_size(e));
    }
    bl_release_modes(e);
    if (saved) (void)bl_restore(e, saved, bl_state_size(e)); /* freezing has evaluated outputs */
    free(schemes);
    free(saved);
    return status;
}

typedef struct {
    int64_t slot;
    double value;
    int (*measure)(bl_engine *e);
} bl_variation;

static int vary_value(bl_engine *e, double *s, const void *context) {
    const bl_variation *variation = context;
    e->values[variation->slot] = variation->value + *s;
    *s = e->values[variation->slot] - variation->value;
    return variation->measure(e);
}

int bl_differentiate_values(bl_engine *e, int (*measure)(bl_engine *e), const int64_t *knowns, const double *seeds,
                            int64_t known_count, const int64_t *unknowns, int64_t unknown_count, double *out) {
    const size_t size = (size_t)e->layout.total * sizeof(double);
    double *kept = malloc(size + sizeof(double));
    bl_scheme *schemes = calloc((size_t)unknown_count + 1, sizeof(bl_scheme));
    int status = kept && schemes ? BL_OK : bl_fail(e, BL_ERROR_MEMORY, -1, "no memory for derivatives");
    if (kept) memcpy(kept, e->values, size);
    for (int64_t k = 0; k < unknown_count; k++) out[k] = 0.0;
    for (int64_t i = 0; i < known_count && status == BL_OK; i++) {
        if (seeds[i] == 0.0) continue;
        const bl_variation variation = {knowns[i], e->values[knowns[i]], measure};
        status = differentiate(e, vary_value, &variation, fmax(1.0, fabs(variation.value)), false, unknowns,
                               unknown_count, schemes);
        for (int64_t k = 0; k < unknown_count && status == BL_OK; k++) out[k] += seeds[i] * schemes[k].best;
        memcpy(e->values, kept, size);
    }
    free(schemes);
    free(kept);
    return status;
}

int bl_output_derivatives(bl_engine *e, const int64_t *slots, int64_t count, double *out) {
    const int64_t states = e->layout.states, inputs = e->input_count;
    void *saved = copy_state(e);
    bl_scheme *schemes = calloc((size_t)count + 1, sizeof(bl_scheme));
    double *start = calloc((size_t)(2 * states + inputs) + 1, sizeof(double));
    int status = saved && schemes && start ? BL_OK : bl_fail(e, BL_ERROR_MEMORY, -1, "no memory for derivatives");
    if (status == BL_OK) {
        double *dx = start + states, *u = dx + states;
        status = bl_freeze_modes(e);
        if (status == BL_OK) status = bl_derivatives(e, dx);
        memcpy(start, e->x, (size_t)states * sizeof(double));
        for (int64_t i = 0; i < inputs; i++) u[i] = e->values[e->input_slots[i]];
        const bl_tangent tangent = {bl_time(e), start, dx, u};
        /* One-sided, from below: a delay block has only past values. */
        if (status == BL_OK)
            status = differentiate(e, move_in_time, &tangent, e->step / FIRST_STEP, true, slots, count, schemes);
        for (int64_t k = 0; k < count && status == BL_OK; k++) out[k] = schemes[k].best;
        bl_release_modes(e);
        (void)bl_restore(e, saved, bl_state_size(e));
    }
    free(start);
    free(schemes);
    free(saved);
    return status;
}

int bl_is_continuous(const bl_engine *e, int64_t slot) {
    if (slot < e->layout.parameters) return 1;
    const double *value = e->values + slot;
    for (int32_t b = 0; b < e->block_count; b++)
        for (int32_t k = 0; k < e->blocks[b].y_count; k++)
            if (value >= e->blocks[b].y[k] && value < e->blocks[b].y[k] + e->blocks[b].y_width[k])
                return e->block_rate[b] < 2;
    return 0;
}
