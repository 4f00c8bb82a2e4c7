/* x += h (u - x) as a co-simulation FMU of FMI 2.0 and of FMI 3.0 in one library: what a step costs is what its caller costs. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define API __attribute__((visibility("default")))
enum { OK, WARNING, DISCARD, ERROR };
enum { U, X };
typedef struct {
    double value[2];
} model;

static int get(const model *m, const unsigned *r, size_t count, double *value) {
    for (size_t k = 0; k < count; k++) value[k] = m->value[r[k] & 1];
    return OK;
}
static int set(model *m, const unsigned *r, size_t count, const double *value) {
    for (size_t k = 0; k < count; k++) m->value[r[k] & 1] = value[k];
    return OK;
}
static void step(model *m, double h) { m->value[X] += h * (m->value[U] - m->value[X]); }

/* ---- FMI 2.0 */

API const char *fmi2GetTypesPlatform(void) { return "default"; }
API const char *fmi2GetVersion(void) { return "2.0"; }
API void *fmi2Instantiate(const char *name, int type, const char *guid, const char *resources, const void *call,
                          int visible, int loud) {
    return (void)name, (void)type, (void)guid, (void)resources, (void)call, (void)visible, (void)loud,
           calloc(1, sizeof(model));
}
API void fmi2FreeInstance(void *c) { free(c); }
API int fmi2SetupExperiment(void *c, int a, double b, double t, int d, double e) {
    return (void)c, (void)a, (void)b, (void)t, (void)d, (void)e, OK;
}
API int fmi2GetReal(void *c, const unsigned *r, size_t count, double *value) { return get(c, r, count, value); }
API int fmi2SetReal(void *c, const unsigned *r, size_t count, const double *value) { return set(c, r, count, value); }
API int fmi2DoStep(void *c, double t, double h, int no_return) { return (void)t, (void)no_return, step(c, h), OK; }

/* ---- FMI 3.0 */

API const char *fmi3GetVersion(void) { return "3.0"; }
API void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *path, bool visible, bool loud,
                                      bool events, bool early, const unsigned *r, size_t count, void *environment,
                                      void *log, void *update) {
    return (void)name, (void)token, (void)path, (void)visible, (void)loud, (void)events, (void)early, (void)r,
           (void)count, (void)environment, (void)log, (void)update, calloc(1, sizeof(model));
}
API void fmi3FreeInstance(void *c) { free(c); }
API int fmi3EnterInitializationMode(void *c, bool a, double b, double t, bool d, double e) {
    return (void)c, (void)a, (void)b, (void)t, (void)d, (void)e, OK;
}
API int fmi3GetFloat64(void *c, const unsigned *r, size_t count, double *value, size_t total) {
    return count == total ? get(c, r, count, value) : ERROR;
}
API int fmi3SetFloat64(void *c, const unsigned *r, size_t count, const double *value, size_t total) {
    return count == total ? set(c, r, count, value) : ERROR;
}
API int fmi3DoStep(void *c, double t, double h, bool no_return, bool *event, bool *end, bool *early, double *reached) {
    (void)no_return;
    step(c, h);
    *event = *end = *early = false;
    *reached = t + h;
    return OK;
}

/* Functions that change a mode, which the model has not, and functions that are never called, which importers require. */
#define MODE(name) \
    API int name(void *c) { return (void)c, OK; }
#define UNUSED(name) \
    API int name(void *c) { return (void)c, ERROR; }
/* clang-format off */
MODE(fmi2EnterInitializationMode) MODE(fmi2ExitInitializationMode) MODE(fmi2Terminate) MODE(fmi2Reset)
MODE(fmi3ExitInitializationMode) MODE(fmi3Terminate) MODE(fmi3Reset)
UNUSED(fmi2SetDebugLogging) UNUSED(fmi2GetInteger) UNUSED(fmi2GetBoolean) UNUSED(fmi2GetString) UNUSED(fmi2SetInteger)
UNUSED(fmi2SetBoolean) UNUSED(fmi2SetString) UNUSED(fmi2GetFMUstate) UNUSED(fmi2SetFMUstate) UNUSED(fmi2FreeFMUstate)
UNUSED(fmi2SerializedFMUstateSize) UNUSED(fmi2SerializeFMUstate) UNUSED(fmi2DeSerializeFMUstate)
UNUSED(fmi2GetDirectionalDerivative) UNUSED(fmi2SetRealInputDerivatives) UNUSED(fmi2GetRealOutputDerivatives)
UNUSED(fmi2CancelStep) UNUSED(fmi2GetStatus) UNUSED(fmi2GetRealStatus) UNUSED(fmi2GetIntegerStatus)
UNUSED(fmi2GetBooleanStatus) UNUSED(fmi2GetStringStatus)
UNUSED(fmi3SetDebugLogging) UNUSED(fmi3InstantiateModelExchange) UNUSED(fmi3InstantiateScheduledExecution)
UNUSED(fmi3EnterEventMode) UNUSED(fmi3GetFloat32) UNUSED(fmi3GetInt8) UNUSED(fmi3GetUInt8) UNUSED(fmi3GetInt16) UNUSED(fmi3GetUInt16)
UNUSED(fmi3GetInt32) UNUSED(fmi3GetUInt32) UNUSED(fmi3GetInt64) UNUSED(fmi3GetUInt64) UNUSED(fmi3GetBoolean) UNUSED(fmi3GetString)
UNUSED(fmi3GetBinary) UNUSED(fmi3GetClock) UNUSED(fmi3SetFloat32) UNUSED(fmi3SetInt8) UNUSED(fmi3SetUInt8) UNUSED(fmi3SetInt16)
UNUSED(fmi3SetUInt16) UNUSED(fmi3SetInt32) UNUSED(fmi3SetUInt32) UNUSED(fmi3SetInt64) UNUSED(fmi3SetUInt64) UNUSED(fmi3SetBoolean)
UNUSED(fmi3SetString) UNUSED(fmi3SetBinary) UNUSED(fmi3SetClock) UNUSED(fmi3GetNumberOfVariableDependencies)
UNUSED(fmi3GetVariableDependencies) UNUSED(fmi3GetFMUState) UNUSED(fmi3SetFMUState) UNUSED(fmi3FreeFMUState)
UNUSED(fmi3SerializedFMUStateSize) UNUSED(fmi3SerializeFMUState) UNUSED(fmi3DeserializeFMUState) UNUSED(fmi3GetDirectionalDerivative)
UNUSED(fmi3GetAdjointDerivative) UNUSED(fmi3EnterConfigurationMode) UNUSED(fmi3ExitConfigurationMode) UNUSED(fmi3GetIntervalDecimal)
UNUSED(fmi3GetIntervalFraction) UNUSED(fmi3GetShiftDecimal) UNUSED(fmi3GetShiftFraction) UNUSED(fmi3SetIntervalDecimal)
UNUSED(fmi3SetIntervalFraction) UNUSED(fmi3SetShiftDecimal) UNUSED(fmi3SetShiftFraction) UNUSED(fmi3EvaluateDiscreteStates)
UNUSED(fmi3UpdateDiscreteStates) UNUSED(fmi3EnterContinuousTimeMode) UNUSED(fmi3CompletedIntegratorStep) UNUSED(fmi3SetTime)
UNUSED(fmi3SetContinuousStates) UNUSED(fmi3GetContinuousStateDerivatives) UNUSED(fmi3GetEventIndicators) UNUSED(fmi3GetContinuousStates)
UNUSED(fmi3GetNominalsOfContinuousStates) UNUSED(fmi3GetNumberOfEventIndicators) UNUSED(fmi3GetNumberOfContinuousStates)
UNUSED(fmi3EnterStepMode) UNUSED(fmi3GetOutputDerivatives) UNUSED(fmi3ActivateModelPartition)
    /* clang-format on */
