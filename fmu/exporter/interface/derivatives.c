/* Derivatives: of outputs with respect to inputs and parameters, of inputs for the next step, of outputs with respect to time. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "fmu/exporter/interface/instance.h"

/* What slots are looked for: outputs and derivatives of states, outputs alone, or what may be varied in the present state. */
typedef enum { UNKNOWNS, OUTPUTS, KNOWNS } bl_fmu_role;

/* The slots of real variables; NULL, with a message, if one does not have the role. */
static int64_t *find_slots(const bl_fmu *f, const uint32_t references[], size_t count, bl_fmu_role role,
                           int *parameters) {
    int64_t *slots = calloc(count + 1, sizeof *slots);
    for (size_t k = 0; k < count && slots; k++) {
        const bl_variable *variable = bl_fmu_find(f, references[k], BL_REAL, BL_REAL);
        const int32_t causality = variable ? variable->causality : -1;
        const int is_output =
            causality == BL_OUTPUT || causality == BL_LOCAL || (causality == FMU_DERIVATIVE && role == UNKNOWNS);
        const int is_parameter = causality == BL_FIXED_PARAMETER || causality == BL_TUNABLE_PARAMETER;
        const int allowed = role != KNOWNS ? is_output
                                           : causality == BL_INPUT || (is_parameter && f->state == INITIALIZING) ||
                                                 (causality == FMU_STATE && f->state != INITIALIZING);
        if (variable && allowed) {
            slots[k] = variable->slot;
            if (is_parameter && parameters) *parameters = 1;
            continue;
        }
        if (variable)
            bl_fmu_log(f, FMU_ERROR,
                       role != KNOWNS ? "value reference %u is not an output: only outputs have derivatives"
                                      : "no derivative with respect to value reference %u: it must be an input, or, in "
                                        "initialization mode, a parameter",
                       references[k]);
        free(slots);
        slots = NULL;
    }
    return slots;
}

static bl_fmu_status check_seed(const bl_fmu *f, const double seed[], size_t count) {
    for (size_t k = 0; k < count; k++)
        if (!isfinite(seed[k])) {
            bl_fmu_log(f, FMU_ERROR, "a seed is not finite");
            return FMU_ERROR;
        }
    return FMU_OK;
}

/* J · seed, where the slots of unknowns and knowns have been found. */
static bl_fmu_status multiply(bl_fmu *f, const int64_t *to, int64_t m, const int64_t *from, int64_t n, int anew,
                              const double *seed, double *product) {
    const int exchanges = f->kind == MODEL_EXCHANGE && f->state != INITIALIZING;
    if ((exchanges ? bl_ode_directional(f->engine, from, seed, n, to, m, product)
                   : bl_directional(f->engine, from, seed, n, to, m, anew, product)) == BL_OK)
        return FMU_OK;
    bl_fmu_log(f, FMU_ERROR, "%s", bl_message(f->engine));
    return FMU_ERROR;
}

bl_fmu_status bl_fmu_directional(bl_fmu *f, const uint32_t unknowns[], size_t unknown_count, const uint32_t knowns[],
                                 size_t known_count, const double seed[], double sensitivity[]) {
    if (bl_fmu_check_arrays(f, unknowns, unknown_count, sensitivity) != FMU_OK ||
        bl_fmu_check_arrays(f, knowns, known_count, seed) != FMU_OK || check_seed(f, seed, known_count) != FMU_OK)
        return FMU_ERROR;
    if (f->state == INITIALIZING && bl_fmu_prepare(f) != FMU_OK) return FMU_ERROR;
    int anew = 0;
    int64_t *from = find_slots(f, knowns, known_count, KNOWNS, &anew),
            *to = find_slots(f, unknowns, unknown_count, UNKNOWNS, NULL);
    bl_fmu_status status = FMU_ERROR;
    if (from && to)
        status = multiply(f, to, (int64_t)unknown_count, from, (int64_t)known_count, anew, seed, sensitivity);
    free(from);
    free(to);
    return status;
}

/* Column by column: each is a directional derivative, so that both functions have the same Jacobian. */
bl_fmu_status bl_fmu_adjoint(bl_fmu *f, const uint32_t unknowns[], size_t unknown_count, const uint32_t knowns[],
                             size_t known_count, const double seed[], double sensitivity[]) {
    if (bl_fmu_check_arrays(f, unknowns, unknown_count, seed) != FMU_OK ||
        bl_fmu_check_arrays(f, knowns, known_count, sensitivity) != FMU_OK ||
        check_seed(f, seed, unknown_count) != FMU_OK)
        return FMU_ERROR;
    if (f->state == INITIALIZING && bl_fmu_prepare(f) != FMU_OK) return FMU_ERROR;
    const double one = 1.0;
    int anew = 0;
    int64_t *from = find_slots(f, knowns, known_count, KNOWNS, &anew),
            *to = find_slots(f, unknowns, unknown_count, UNKNOWNS, NULL);
    double *column = calloc(unknown_count + 1, sizeof *column);
    bl_fmu_status status = from && to && column ? FMU_OK : FMU_ERROR;
    for (size_t i = 0; i < known_count && status == FMU_OK; i++) {
        status = multiply(f, to, (int64_t)unknown_count, from + i, 1, anew, &one, column);
        double sum = 0.0;
        for (size_t k = 0; k < unknown_count; k++) sum += seed[k] * column[k];
        if (status == FMU_OK) sensitivity[i] = sum;
    }
    free(column);
    free(from);
    free(to);
    return status;
}

bl_fmu_status bl_fmu_set_input_derivatives(bl_fmu *f, const uint32_t references[], size_t count, const int32_t orders[],
                                           const double values[]) {
    if (bl_fmu_check_arrays(f, references, count, orders) != FMU_OK ||
        bl_fmu_check_arrays(f, references, count, values) != FMU_OK)
        return FMU_ERROR;
    for (size_t k = 0; k < count; k++) {
        const bl_variable *variable = bl_fmu_find(f, references[k], BL_REAL, BL_REAL);
        if (!variable) return FMU_ERROR;
        if (!isfinite(values[k])) {
            bl_fmu_log(f, FMU_DISCARD, "a derivative is not finite");
            return FMU_DISCARD;
        }
        if (bl_set_input_derivative(f->engine, references[k], orders[k], values[k]) != BL_OK) {
            bl_fmu_log(f, FMU_ERROR,
                       variable->causality == BL_INPUT
                           ? "input derivatives have order 1 or 2, got %d"
                           : "the variable is not an input: no derivative of order %d can be set",
                       orders[k]);
            return FMU_ERROR;
        }
    }
    return FMU_OK;
}

static int has_output_derivatives(const bl_fmu *f) {
    for (const bl_variable *v = f->variables, *end = v + f->variable_count; v != end; v++)
        if (v->causality == BL_OUTPUT && (v->kind != BL_REAL || !bl_is_continuous(f->engine, v->slot))) return 0;
    return 1;
}

bl_fmu_status bl_fmu_output_derivatives(bl_fmu *f, const uint32_t references[], size_t count, const int32_t orders[],
                                        double values[]) {
    if (bl_fmu_check_arrays(f, references, count, orders) != FMU_OK ||
        bl_fmu_check_arrays(f, references, count, values) != FMU_OK)
        return FMU_ERROR;
    if (count == 0) return FMU_OK;
    if (!has_output_derivatives(f)) {
        bl_fmu_log(f, FMU_ERROR, "output derivatives are not available: some outputs are not continuous");
        return FMU_ERROR;
    }
    for (size_t k = 0; k < count; k++)
        if (orders[k] != 1) {
            bl_fmu_log(f, FMU_ERROR, "output derivatives have order 1, got %d", orders[k]);
            return FMU_ERROR;
        }
    int64_t *slots = find_slots(f, references, count, OUTPUTS, NULL);
    bl_fmu_status status = slots ? FMU_OK : FMU_ERROR;
    if (slots && bl_output_derivatives(f->engine, slots, (int64_t)count, values) != BL_OK) {
        bl_fmu_log(f, FMU_ERROR, "%s", bl_message(f->engine));
        status = FMU_ERROR;
    }
    free(slots);
    return status;
}
