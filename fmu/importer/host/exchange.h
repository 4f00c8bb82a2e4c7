/* FMUs for model exchange: what exchange.c (the block) and exchange_calls.c (the functions of FMI 2.0 and 3.0) share. */
#ifndef BIELLA_EXCHANGE_H
#define BIELLA_EXCHANGE_H

#include <stdbool.h>

#include "fmu/importer/host/host.h"

/* The functions of an FMU for model exchange only. */
typedef struct {
    int (*EnterEventMode)(void *);
    int (*EnterContinuousTimeMode)(void *);
    int (*SetTime)(void *, double);
    int (*SetContinuousStates)(void *, const double[], size_t);
    int (*GetContinuousStates)(void *, double[], size_t);
    int (*GetDerivatives)(void *, double[], size_t);
    int (*GetEventIndicators)(void *, double[], size_t);
    int (*GetNominalsOfContinuousStates)(void *, double[], size_t); /* NULL: the FMU has none */
    void *UpdateDiscreteStates, *CompletedIntegratorStep; /* whose arguments depend on the version */
    void *GetNumberOfContinuousStates, *GetNumberOfEventIndicators; /* FMI 3.0 */
} bl_exchange_calls;

/* What an FMU returns from an iteration of its discrete states. */
typedef struct {
    bool again, ends, nominals_changed, states_changed, has_next;
    double next;
} bl_exchange_update;

/* How an input may change: smoothly, at ticks, or only with an event; or it is read where a clock ticks. */
typedef enum { EXCHANGE_MOVES, EXCHANGE_HELD, EXCHANGE_DISCRETE, EXCHANGE_CLOCKED } bl_exchange_input;

/* The part of a host for model exchange. */
typedef struct bl_fmu_exchange {
    bl_exchange_calls call;
    int version; /* 2 or 3 */
    int32_t state_count, indicator_count, input_count;
    bool has_time, has_states; /* whether the FMU has `time` and `x` */
    double time, *x;
    double *indicators;
    bool at_tick; /* whether the present event is one of a tick: its log begins later, */
    uint64_t ticking; /* and these output clocks are noted then */
    bl_exchange_input *kinds; /* of the inputs */
} bl_fmu_exchange;

/* exchange.c: NULL if there is no memory; free() releases it. */
bl_fmu_exchange *bl_exchange_new(const bl_engine *e, const bl_block *b);
static inline void bl_exchange_forget(bl_fmu_exchange *m) { m->has_time = m->has_states = false; }

/* remote.c: passes an operation on to the process that has the FMU. */
int bl_exchange_remote(bl_block *b, bl_fmu_host *f, bl_op op, double t, double *out);

/* exchange_calls.c: finds the functions. Returns the name of one that is missing, or NULL. */
const char *bl_exchange_find(bl_fmu_exchange *m, void *library);
bl_fmi_status bl_exchange_update_states(bl_fmu_host *f, bl_exchange_update *update);
bl_fmi_status bl_exchange_complete_step(bl_fmu_host *f, bool is_final, bool *enters, bool *ends);
/* FMI 3.0: whether the numbers of states and indicators are those of the description; else a bl_status below 0. */
int bl_exchange_check_counts(bl_fmu_host *f, double t);

#endif
