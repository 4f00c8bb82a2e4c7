/* One instance of the FMU, shared by the files of fmu/ only. */
#ifndef BIELLA_FMU_INSTANCE_H
#define BIELLA_FMU_INSTANCE_H

#include "fmu/fmi2.h"

/* The states of the standard's machine for co-simulation that a slave without asynchronous steps can be in. */
typedef enum {
    INSTANTIATED = 1 << 0,
    INITIALIZING = 1 << 1,
    STEPPING = 1 << 2,    /* step complete */
    STEP_FAILED = 1 << 3, /* after fmi2Discard */
    TERMINATED = 1 << 4,
    BROKEN = 1 << 5, /* after fmi2Error */
} bl_fmu_state;

enum {
    BEFORE_STEPS = INSTANTIATED | INITIALIZING,
    ANY_STATE = INSTANTIATED | INITIALIZING | STEPPING | STEP_FAILED | TERMINATED | BROKEN,
};

/* The functions that fmi2.c has a table of: in which states each may be called. */
typedef enum {
    CALL_SET_DEBUG_LOGGING,
    CALL_SETUP_EXPERIMENT,
    CALL_ENTER_INITIALIZATION_MODE,
    CALL_EXIT_INITIALIZATION_MODE,
    CALL_TERMINATE,
    CALL_RESET,
    CALL_GET_REAL,
    CALL_GET_INTEGER,
    CALL_GET_BOOLEAN,
    CALL_GET_STRING,
    CALL_SET_REAL,
    CALL_SET_INTEGER,
    CALL_SET_BOOLEAN,
    CALL_SET_STRING,
    CALL_GET_FMU_STATE,
    CALL_SET_FMU_STATE,
    CALL_FREE_FMU_STATE,
    CALL_SERIALIZED_FMU_STATE_SIZE,
    CALL_SERIALIZE_FMU_STATE,
    CALL_DESERIALIZE_FMU_STATE,
    CALL_GET_DIRECTIONAL_DERIVATIVE,
    CALL_SET_REAL_INPUT_DERIVATIVES,
    CALL_GET_REAL_OUTPUT_DERIVATIVES,
    CALL_DO_STEP,
    CALL_GET_REAL_STATUS,
    CALL_GET_BOOLEAN_STATUS
} bl_fmu_call;

typedef struct {
    uint32_t magic;
    bl_fmu_state state;
    bl_engine *engine;
    double *values;               /* of the engine, and which of them are variables */
    const bl_variable *variables;
    int64_t variable_count;
    char *name;
    fmi2CallbackFunctions callbacks;
    unsigned log;   /* enabled log categories */
    int needs_init; /* a parameter changed since the states were set */
    int ended;      /* a Stop block ended the simulation */
    double stop_time;
    int has_stop_time;
    unsigned warned; /* of which fallbacks of the solver, a bit for each */
} bl_fmu;

/* Returns the instance, or NULL, with a log message, if there is none or the call is not allowed in this state. */
bl_fmu *bl_fmu_enter(fmi2Component c, bl_fmu_call call);
/* Sends a message to the importing tool. Failures are logged unless their category is disabled, others only if logging
   is on. */
void bl_fmu_log(const bl_fmu *f, fmi2Status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;
/* Sets the states from the parameters if these have changed. */
fmi2Status bl_fmu_prepare(bl_fmu *f);
/* Says so and fails if one of two arrays of `count` elements is NULL. */
fmi2Status bl_fmu_check_arrays(const bl_fmu *f, const void *a, size_t count, const void *b);
/* The variable with a value reference if it is of one of two kinds, else NULL. */
const bl_variable *bl_fmu_find(const bl_fmu *f, fmi2ValueReference reference, int32_t kind, int32_t or_kind);

#endif
