/* The functions of FMI 2.0 and 3.0 that only FMUs for model exchange have. */
#include <string.h>

#include "fmu/importer/host/exchange.h"

/* fmi2EventInfo. */
typedef struct {
    int again, ends, nominals_changed, states_changed, has_next;
    double next;
} bl_fmi2_event_info;

typedef int (*bl_fmi2_update)(void *, bl_fmi2_event_info *);
typedef int (*bl_fmi3_update)(void *, bool *, bool *, bool *, bool *, bool *, double *);
typedef int (*bl_fmi2_complete)(void *, int, int *, int *);
typedef int (*bl_fmi3_complete)(void *, bool, bool *, bool *);
typedef int (*bl_fmi3_count)(void *, size_t *);

typedef struct {
    const char *names[2]; /* in FMI 2.0 and 3.0; NULL: that version has none */
    size_t offset;
    bool is_optional;
} bl_exchange_symbol;

#define SYMBOL(member, in2, in3) {{in2, in3}, offsetof(bl_exchange_calls, member), false}
#define SAME(member) SYMBOL(member, "fmi2" #member, "fmi3" #member)
static const bl_exchange_symbol EXCHANGE_SYMBOLS[] = {
    SAME(EnterEventMode),
    SAME(EnterContinuousTimeMode),
    SAME(SetTime),
    SAME(SetContinuousStates),
    SAME(GetContinuousStates),
    SYMBOL(GetDerivatives, "fmi2GetDerivatives", "fmi3GetContinuousStateDerivatives"),
    SAME(GetEventIndicators),
    {{"fmi2GetNominalsOfContinuousStates", "fmi3GetNominalsOfContinuousStates"},
     offsetof(bl_exchange_calls, GetNominalsOfContinuousStates),
     true},
    SYMBOL(UpdateDiscreteStates, "fmi2NewDiscreteStates", "fmi3UpdateDiscreteStates"),
    SAME(CompletedIntegratorStep),
    SYMBOL(GetNumberOfContinuousStates, NULL, "fmi3GetNumberOfContinuousStates"),
    SYMBOL(GetNumberOfEventIndicators, NULL, "fmi3GetNumberOfEventIndicators"),
};
#undef SAME
#undef SYMBOL

const char *bl_exchange_find(bl_fmu_exchange *m, void *library) {
    for (size_t s = 0; s < sizeof EXCHANGE_SYMBOLS / sizeof *EXCHANGE_SYMBOLS; s++) {
        const char *name = EXCHANGE_SYMBOLS[s].names[m->version - 2];
        if (!name) continue;
        void *found = bl_fmu_find_function(library, name);
        if (!found && !EXCHANGE_SYMBOLS[s].is_optional) return name;
        memcpy((char *)&m->call + EXCHANGE_SYMBOLS[s].offset, &found, sizeof found);
    }
    return NULL;
}

bl_fmi_status bl_exchange_update_states(bl_fmu_host *f, bl_exchange_update *update) {
    const bl_fmu_exchange *m = f->exchange;
    if (m->version == 3) {
        bl_fmi3_update call;
        memcpy(&call, &m->call.UpdateDiscreteStates, sizeof call);
        *update = (bl_exchange_update){0};
        return bl_fmu_leave_call(f, call(f->component, &update->again, &update->ends, &update->nominals_changed,
                                         &update->states_changed, &update->has_next, &update->next));
    }
    bl_fmi2_update call;
    bl_fmi2_event_info info = {0};
    memcpy(&call, &m->call.UpdateDiscreteStates, sizeof call);
    const bl_fmi_status status = bl_fmu_leave_call(f, call(f->component, &info));
    *update = (bl_exchange_update){info.again != 0,          info.ends != 0,     info.nominals_changed != 0,
                                   info.states_changed != 0, info.has_next != 0, info.next};
    return status;
}

bl_fmi_status bl_exchange_complete_step(bl_fmu_host *f, bool is_final, bool *enters, bool *ends) {
    const bl_fmu_exchange *m = f->exchange;
    if (m->version == 3) {
        bl_fmi3_complete call;
        memcpy(&call, &m->call.CompletedIntegratorStep, sizeof call);
        return bl_fmu_leave_call(f, call(f->component, is_final, enters, ends));
    }
    bl_fmi2_complete call;
    int enters_2 = 0, ends_2 = 0;
    memcpy(&call, &m->call.CompletedIntegratorStep, sizeof call);
    const bl_fmi_status status = bl_fmu_leave_call(f, call(f->component, is_final, &enters_2, &ends_2));
    *enters = enters_2 != 0;
    *ends = ends_2 != 0;
    return status;
}

int bl_exchange_check_counts(bl_fmu_host *f, double t) {
    const bl_fmu_exchange *m = f->exchange;
    if (m->version != 3) return BL_OK;
    static const char *const NAMES[] = {"GetNumberOfContinuousStates", "GetNumberOfEventIndicators"};
    void *const functions[] = {m->call.GetNumberOfContinuousStates, m->call.GetNumberOfEventIndicators};
    const int32_t expected[] = {m->state_count, m->indicator_count};
    for (int k = 0; k < 2; k++) {
        bl_fmi3_count call;
        size_t count = 0;
        memcpy(&call, &functions[k], sizeof call);
        const int status = bl_host_status(f, bl_fmu_leave_call(f, call(f->component, &count)), NAMES[k], t);
        if (status != BL_OK) return status;
        if (count != (size_t)expected[k])
            return bl_fmu_error(f, "fmi3%s returned %zu, but its description has %d", NAMES[k], count,
                                (int)expected[k]);
    }
    return BL_OK;
}
