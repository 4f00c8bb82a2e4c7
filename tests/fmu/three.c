/* A small FMI 3.0 co-simulation FMU: `y` counts steps of `n` from `start`, in 64-bit integers; with the parameter `ends` it ends the
 * simulation with the step that reaches that time. `row` is the first column of `matrix`, then their sum. It also has variables that
 * no signal can hold. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
enum { OK, WARNING, DISCARD, ERROR };
enum { TIME, N, Y, SMALL, ENDS, TEXT, BYTES, MATRIX, EARLY, ROW };

typedef struct {
    int64_t n, y;
    int8_t small;
    double ends, matrix[4];
    bool early;
} model;

API const char *fmi3GetVersion(void) { return "3.0"; }
API void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *path, bool visible, bool logging,
                                      bool events, bool early, const unsigned *r, size_t count, void *environment,
                                      void *log, void *update) {
    (void)name, (void)token, (void)path, (void)visible, (void)logging, (void)events, (void)early, (void)r, (void)count;
    (void)environment, (void)log, (void)update;
    model *m = calloc(1, sizeof *m);
    m->n = 1;
    for (int k = 0; k < 4; k++) m->matrix[k] = k + 1.0;
    m->ends = 1e300;
    return m;
}
API void fmi3FreeInstance(void *c) { free(c); }
API int fmi3EnterInitializationMode(void *c, bool a, double b, double t, bool d, double e) {
    return (void)c, (void)a, (void)b, (void)t, (void)d, (void)e, OK;
}
#define SIMPLE(name) \
    API int name(void *c) { return (void)c, OK; }
/* clang-format off */
SIMPLE(fmi3ExitInitializationMode) SIMPLE(fmi3Terminate)
    /* clang-format on */

    API int fmi3GetInt64(void *c, const unsigned *r, size_t count, int64_t *value, size_t values) {
    for (size_t k = 0; k < count && k < values; k++) value[k] = r[k] == Y ? ((model *)c)->y : ((model *)c)->n;
    return OK;
}
API int fmi3SetInt64(void *c, const unsigned *r, size_t count, const int64_t *value, size_t values) {
    for (size_t k = 0; k < count && k < values; k++) {
        if (r[k] != N) return ERROR;
        ((model *)c)->n = value[k];
    }
    return OK;
}
API int fmi3SetInt8(void *c, const unsigned *r, size_t count, const int8_t *value, size_t values) {
    return (void)r, ((model *)c)->small = value[0], count == 1 && values == 1 ? OK : ERROR;
}
API int fmi3SetFloat64(void *c, const unsigned *r, size_t count, const double *value, size_t values) {
    if (r[0] == MATRIX && count == 1 && values == 4) return memcpy(((model *)c)->matrix, value, 4 * sizeof *value), OK;
    return r[0] == ENDS && count == 1 && values == 1 ? (((model *)c)->ends = value[0], OK) : ERROR;
}
API int fmi3GetFloat64(void *c, const unsigned *r, size_t count, double *value, size_t values) {
    if (r[0] != ROW || count != 1 || values != 3) return ERROR;
    value[0] = ((model *)c)->matrix[0];
    value[1] = ((model *)c)->matrix[2];
    value[2] = value[0] + value[1];
    return OK;
}
API int fmi3SetBoolean(void *c, const unsigned *r, size_t count, const bool *value, size_t values) {
    return r[0] == EARLY && count == 1 && values == 1 ? (((model *)c)->early = value[0], OK) : ERROR;
}
API int fmi3DoStep(void *c, double t, double h, bool no_return, bool *event, bool *end, bool *early, double *reached) {
    model *m = c;
    (void)no_return;
    *event = false;
    *early = m->early && h > 0.006;
    *reached = t + (*early ? 0.5 * h : h);
    m->y += m->n;
    *end = t + h >= m->ends - 1e-9;
    if (*end && t + h > m->ends + 1e-9) *reached = m->ends, *early = true;
    return OK;
}

/* FMPy requires every function to be there; these are never called. */
#define UNUSED(name) \
    API int name(void *c) { return (void)c, ERROR; }
/* clang-format off */
UNUSED(fmi3SetDebugLogging) UNUSED(fmi3InstantiateModelExchange) UNUSED(fmi3InstantiateScheduledExecution)
UNUSED(fmi3EnterEventMode) UNUSED(fmi3Reset) UNUSED(fmi3GetFloat32) UNUSED(fmi3GetInt8) UNUSED(fmi3GetUInt8)
UNUSED(fmi3GetInt16) UNUSED(fmi3GetUInt16) UNUSED(fmi3GetInt32) UNUSED(fmi3GetUInt32) UNUSED(fmi3GetUInt64) UNUSED(fmi3GetBoolean)
UNUSED(fmi3GetString) UNUSED(fmi3GetBinary) UNUSED(fmi3GetClock) UNUSED(fmi3SetFloat32) UNUSED(fmi3SetUInt8) UNUSED(fmi3SetInt16)
UNUSED(fmi3SetUInt16) UNUSED(fmi3SetInt32) UNUSED(fmi3SetUInt32) UNUSED(fmi3SetUInt64) UNUSED(fmi3SetString) UNUSED(fmi3SetBinary)
UNUSED(fmi3SetClock) UNUSED(fmi3GetNumberOfVariableDependencies) UNUSED(fmi3GetVariableDependencies) UNUSED(fmi3GetFMUState)
UNUSED(fmi3SetFMUState) UNUSED(fmi3FreeFMUState) UNUSED(fmi3SerializedFMUStateSize) UNUSED(fmi3SerializeFMUState)
UNUSED(fmi3DeserializeFMUState) UNUSED(fmi3GetDirectionalDerivative) UNUSED(fmi3GetAdjointDerivative)
UNUSED(fmi3EnterConfigurationMode) UNUSED(fmi3ExitConfigurationMode) UNUSED(fmi3GetIntervalDecimal) UNUSED(fmi3GetIntervalFraction)
UNUSED(fmi3GetShiftDecimal) UNUSED(fmi3GetShiftFraction) UNUSED(fmi3SetIntervalDecimal) UNUSED(fmi3SetIntervalFraction)
UNUSED(fmi3SetShiftDecimal) UNUSED(fmi3SetShiftFraction) UNUSED(fmi3EvaluateDiscreteStates) UNUSED(fmi3UpdateDiscreteStates)
UNUSED(fmi3EnterContinuousTimeMode) UNUSED(fmi3CompletedIntegratorStep) UNUSED(fmi3SetTime) UNUSED(fmi3SetContinuousStates)
UNUSED(fmi3GetContinuousStateDerivatives) UNUSED(fmi3GetEventIndicators) UNUSED(fmi3GetContinuousStates)
UNUSED(fmi3GetNominalsOfContinuousStates) UNUSED(fmi3GetNumberOfEventIndicators) UNUSED(fmi3GetNumberOfContinuousStates)
UNUSED(fmi3EnterStepMode) UNUSED(fmi3GetOutputDerivatives) UNUSED(fmi3ActivateModelPartition)
    /* clang-format on */
