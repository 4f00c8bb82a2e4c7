/* Functions of FMI 3.0 for what these FMUs do not have, as their model description declares: other kinds, structural parameters,
 * dependencies of elements. Each one fails and says so. */
#include "fmu/exporter/interface/fmi3_calls.h"

static fmi3Instance refuse_kind(const char *kind, fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger) {
    if (logger) logger(environment, fmi3Error, "logStatusError", kind);
    return NULL;
}

fmi3Instance fmi3InstantiateScheduledExecution(fmi3String name, fmi3String token, fmi3String resources,
                                               fmi3Boolean visible, fmi3Boolean logging,
                                               fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger,
                                               fmi3ClockUpdateCallback clockUpdate, fmi3LockPreemptionCallback lock,
                                               fmi3UnlockPreemptionCallback unlock) {
    (void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)clockUpdate, (void)lock, (void)unlock;
    return refuse_kind("this FMU has no scheduled execution", environment, logger);
}

#define REFUSE_ALONE(name) \
    fmi3Status name(fmi3Instance instance) { return bl_fmi3_refuse(instance, #name); }

REFUSE_ALONE(fmi3EnterConfigurationMode)
REFUSE_ALONE(fmi3ExitConfigurationMode)
REFUSE_ALONE(fmi3EvaluateDiscreteStates)

fmi3Status fmi3GetNumberOfVariableDependencies(fmi3Instance instance, fmi3ValueReference reference,
                                               size_t *n_dependencies) {
    (void)reference, (void)n_dependencies;
    return bl_fmi3_refuse(instance, "fmi3GetNumberOfVariableDependencies");
}

fmi3Status fmi3GetVariableDependencies(fmi3Instance instance, fmi3ValueReference dependent,
                                       size_t element_indices_of_dependent[], fmi3ValueReference independents[],
                                       size_t element_indices_of_independents[], fmi3DependencyKind dependency_kinds[],
                                       size_t n_dependencies) {
    (void)dependent, (void)element_indices_of_dependent, (void)independents, (void)element_indices_of_independents,
        (void)dependency_kinds, (void)n_dependencies;
    return bl_fmi3_refuse(instance, "fmi3GetVariableDependencies");
}

fmi3Status fmi3ActivateModelPartition(fmi3Instance instance, fmi3ValueReference clock_reference,
                                      fmi3Float64 activation_time) {
    (void)clock_reference, (void)activation_time;
    return bl_fmi3_refuse(instance, "fmi3ActivateModelPartition");
}
