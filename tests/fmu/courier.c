/* A small FMI 3.0 co-simulation FMU with binaries: `received` is an input, and the output `sent` is `prefix` followed by what it has
 * received until the last step; `size` is how long that is, `sum` the sum of its bytes. With the parameter `mode` 1, `sent` has as many
 * bytes as steps were taken, each the number of the step modulo 256; with 2, it is too long for a signal; with 3, getting it fails; with
 * 4, it has a size and no pointer; with 5, it has no bytes and no pointer. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
enum { OK, WARNING, DISCARD, ERROR };
enum { TIME, RECEIVED, SENT, SIZE, PREFIX, MODE, SUM, LIMIT = 16777216 };
typedef unsigned char byte;

typedef struct {
    byte received[5000], sent[6000], prefix[50];
    size_t received_size, sent_size, prefix_size;
    int mode, steps;
} model;

static byte huge[LIMIT + 1];

static void pack(model *m) {
    if (m->mode == 1) {
        m->sent_size = (size_t)m->steps;
        memset(m->sent, m->steps % 256, m->sent_size);
        return;
    }
    memcpy(m->sent, m->prefix, m->prefix_size);
    memcpy(m->sent + m->prefix_size, m->received, m->received_size);
    m->sent_size = m->prefix_size + m->received_size;
}

API const char *fmi3GetVersion(void) { return "3.0"; }
API void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *path, bool visible, bool logging,
                                      bool events, bool early, const unsigned *r, size_t count, void *environment,
                                      void *log, void *update) {
    (void)name, (void)token, (void)path, (void)visible, (void)logging, (void)events, (void)early, (void)r, (void)count;
    (void)environment, (void)log, (void)update;
    model *m = calloc(1, sizeof *m);
    m->received[0] = 0xff; /* the start value; there is a 0 within */
    m->received[2] = 0x01;
    m->received_size = 3;
    return m;
}
API void fmi3FreeInstance(void *c) { free(c); }
API int fmi3EnterInitializationMode(void *c, bool a, double b, double t, bool d, double e) {
    return (void)a, (void)b, (void)t, (void)d, (void)e, pack(c), OK;
}
API int fmi3ExitInitializationMode(void *c) { return pack(c), OK; }
API int fmi3Terminate(void *c) { return (void)c, OK; }
API int fmi3GetInt32(void *c, const unsigned *r, size_t count, int *value, size_t values) {
    const model *m = c;
    for (size_t k = 0; k < count && k < values; k++) {
        value[k] = r[k] == SIZE ? (int)m->received_size : m->mode;
        if (r[k] != SUM) continue;
        value[k] = 0;
        for (size_t n = 0; n < m->received_size; n++) value[k] += m->received[n];
    }
    return OK;
}
API int fmi3SetInt32(void *c, const unsigned *r, size_t count, const int *value, size_t values) {
    for (size_t k = 0; k < count && k < values; k++) ((model *)c)->mode = value[k];
    return (void)r, OK;
}
API int fmi3GetBinary(void *c, const unsigned *r, size_t count, size_t *sizes, const byte **value, size_t values) {
    const model *m = c;
    (void)r;
    for (size_t k = 0; k < count && k < values; k++) {
        value[k] = m->mode == 2 ? huge : m->mode == 4 || m->mode == 5 ? NULL : m->sent;
        sizes[k] = m->mode == 2 ? LIMIT + 1 : m->mode == 5 ? 0 : m->sent_size;
    }
    return m->mode == 3 ? ERROR : OK;
}
API int fmi3SetBinary(void *c, const unsigned *r, size_t count, const size_t *sizes, const byte *const *value,
                      size_t values) {
    model *m = c;
    for (size_t k = 0; k < count && k < values; k++) {
        const int receives = r[k] == RECEIVED;
        if (sizes[k] > (receives ? sizeof m->received : sizeof m->prefix)) return ERROR;
        if (sizes[k] > 0) memcpy(receives ? m->received : m->prefix, value[k], sizes[k]);
        *(receives ? &m->received_size : &m->prefix_size) = sizes[k];
    }
    return OK;
}
API int fmi3DoStep(void *c, double t, double h, bool final, bool *event, bool *ends, bool *early, double *last) {
    (void) final;
    *event = *ends = *early = false;
    *last = t + h;
    ((model *)c)->steps++;
    pack(c);
    return OK;
}
API int fmi3GetFMUState(void *c, void **state) {
    if (!*state) *state = malloc(sizeof(model));
    return memcpy(*state, c, sizeof(model)), OK;
}
API int fmi3SetFMUState(void *c, void *state) { return memcpy(c, state, sizeof(model)), OK; }
API int fmi3FreeFMUState(void *c, void **state) { return (void)c, free(*state), *state = NULL, OK; }
API int fmi3SerializedFMUStateSize(void *c, void *state, size_t *size) {
    return (void)c, (void)state, *size = sizeof(model), OK;
}
API int fmi3SerializeFMUState(void *c, void *state, byte *bytes, size_t size) {
    return (void)c, memcpy(bytes, state, size), OK;
}
API int fmi3DeserializeFMUState(void *c, const byte *bytes, size_t size, void **state) {
    if (!*state) *state = malloc(sizeof(model));
    return (void)c, memcpy(*state, bytes, size), OK;
}
#define UNUSED(name) \
    API int name(void *c) { return (void)c, ERROR; }
/* clang-format off */
UNUSED(fmi3InstantiateModelExchange) UNUSED(fmi3InstantiateScheduledExecution) UNUSED(fmi3GetString) UNUSED(fmi3SetString)
UNUSED(fmi3GetClock) UNUSED(fmi3SetClock) UNUSED(fmi3GetNumberOfVariableDependencies) UNUSED(fmi3GetVariableDependencies)
UNUSED(fmi3GetAdjointDerivative) UNUSED(fmi3GetDirectionalDerivative) UNUSED(fmi3GetIntervalDecimal)
UNUSED(fmi3GetIntervalFraction) UNUSED(fmi3GetShiftDecimal) UNUSED(fmi3GetShiftFraction) UNUSED(fmi3SetIntervalDecimal)
UNUSED(fmi3SetIntervalFraction) UNUSED(fmi3SetShiftDecimal) UNUSED(fmi3SetShiftFraction) UNUSED(fmi3EvaluateDiscreteStates)
UNUSED(fmi3EnterContinuousTimeMode) UNUSED(fmi3CompletedIntegratorStep) UNUSED(fmi3SetTime) UNUSED(fmi3SetContinuousStates)
UNUSED(fmi3GetContinuousStateDerivatives) UNUSED(fmi3GetEventIndicators) UNUSED(fmi3GetContinuousStates)
UNUSED(fmi3GetNominalsOfContinuousStates) UNUSED(fmi3GetNumberOfEventIndicators) UNUSED(fmi3GetNumberOfContinuousStates)
UNUSED(fmi3GetOutputDerivatives) UNUSED(fmi3ActivateModelPartition) UNUSED(fmi3EnterConfigurationMode)
UNUSED(fmi3ExitConfigurationMode) UNUSED(fmi3EnterEventMode) UNUSED(fmi3EnterStepMode) UNUSED(fmi3UpdateDiscreteStates)
UNUSED(fmi3Reset) UNUSED(fmi3SetDebugLogging) UNUSED(fmi3GetBoolean) UNUSED(fmi3SetBoolean) UNUSED(fmi3GetFloat32)
UNUSED(fmi3SetFloat32) UNUSED(fmi3GetFloat64) UNUSED(fmi3SetFloat64) UNUSED(fmi3GetInt8) UNUSED(fmi3SetInt8) UNUSED(fmi3GetUInt8)
UNUSED(fmi3SetUInt8) UNUSED(fmi3GetInt16) UNUSED(fmi3SetInt16) UNUSED(fmi3GetUInt16) UNUSED(fmi3SetUInt16) UNUSED(fmi3GetUInt32)
UNUSED(fmi3SetUInt32) UNUSED(fmi3GetInt64) UNUSED(fmi3SetInt64) UNUSED(fmi3GetUInt64) UNUSED(fmi3SetUInt64)
    /* clang-format on */
