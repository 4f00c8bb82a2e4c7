/* Other tools' FMUs in our engine: what host.c (the block) and binary.c (the library it calls) share. */
#ifndef BIELLA_HOST_H
#define BIELLA_HOST_H

#include "fmu/fmi2.h"

/* The integers of a block of kernel fmu2 or fmu2_rollback: this head, then for every value of every input port
   reference, type, whether it has direct feedthrough; for every value of every output port reference, type;
   for every parameter reference, type, whether it is always set. Parameters that can be tuned come first. The block's
   numbers are the parameters, followed by the FMU's own start values. fmu/importer/_fmu.py writes the same. */
enum { HOST_FLAGS, HOST_SUBSTEPS, HOST_PARAMETERS, HOST_TUNABLE, HOST_DIGEST, HOST_HEAD = HOST_DIGEST + 2 };
enum { HOST_INPUT_FIELDS = 3, HOST_OUTPUT_FIELDS = 2, HOST_PARAMETER_FIELDS = 3 };
enum {
    HOST_CAN_SAVE = 1,
    HOST_CAN_SERIALIZE = 2,
    HOST_CAN_INTERPOLATE = 4,
    HOST_NEEDS_TOOL = 8,
    HOST_GIVES_DERIVATIVES = 16,
    HOST_ALL_FLAGS = 31,
    HOST_NO_FLAG = 32
};
enum { HOST_REAL, HOST_INTEGER, HOST_BOOLEAN, HOST_TYPES };

/* The functions of an FMU that we call, by FMI's own names. */
typedef struct {
    const char *(*GetVersion)(void);
    fmi2Status (*SetDebugLogging)(fmi2Component, fmi2Boolean, size_t, const fmi2String[]);
    fmi2Component (*Instantiate)(fmi2String, fmi2Type, fmi2String, fmi2String, const fmi2CallbackFunctions *,
                                 fmi2Boolean, fmi2Boolean);
    void (*FreeInstance)(fmi2Component);
    fmi2Status (*SetupExperiment)(fmi2Component, fmi2Boolean, fmi2Real, fmi2Real, fmi2Boolean, fmi2Real);
    fmi2Status (*EnterInitializationMode)(fmi2Component);
    fmi2Status (*ExitInitializationMode)(fmi2Component);
    fmi2Status (*Terminate)(fmi2Component);
    fmi2Status (*GetReal)(fmi2Component, const fmi2ValueReference[], size_t, fmi2Real[]);
    fmi2Status (*GetInteger)(fmi2Component, const fmi2ValueReference[], size_t, fmi2Integer[]);
    fmi2Status (*GetBoolean)(fmi2Component, const fmi2ValueReference[], size_t, fmi2Boolean[]);
    fmi2Status (*SetReal)(fmi2Component, const fmi2ValueReference[], size_t, const fmi2Real[]);
    fmi2Status (*SetInteger)(fmi2Component, const fmi2ValueReference[], size_t, const fmi2Integer[]);
    fmi2Status (*SetBoolean)(fmi2Component, const fmi2ValueReference[], size_t, const fmi2Boolean[]);
    fmi2Status (*SetString)(fmi2Component, const fmi2ValueReference[], size_t, const fmi2String[]);
    fmi2Status (*DoStep)(fmi2Component, fmi2Real, fmi2Real, fmi2Boolean);
    fmi2Status (*GetBooleanStatus)(fmi2Component, const fmi2StatusKind, fmi2Boolean *);
    fmi2Status (*GetRealStatus)(fmi2Component, const fmi2StatusKind, fmi2Real *); /* NULL: there is none */
    /* Looked up only if the model description declares the capability. */
    fmi2Status (*GetFMUstate)(fmi2Component, fmi2FMUstate *);
    fmi2Status (*SetFMUstate)(fmi2Component, fmi2FMUstate);
    fmi2Status (*FreeFMUstate)(fmi2Component, fmi2FMUstate *);
    fmi2Status (*SerializedFMUstateSize)(fmi2Component, fmi2FMUstate, size_t *);
    fmi2Status (*SerializeFMUstate)(fmi2Component, fmi2FMUstate, fmi2Byte[], size_t);
    fmi2Status (*DeSerializeFMUstate)(fmi2Component, const fmi2Byte[], size_t, fmi2FMUstate *);
    fmi2Status (*SetRealInputDerivatives)(fmi2Component, const fmi2ValueReference[], size_t, const fmi2Integer[],
                                          const fmi2Real[]);
    fmi2Status (*GetDirectionalDerivative)(fmi2Component, const fmi2ValueReference[], size_t,
                                           const fmi2ValueReference[], size_t, const fmi2Real[], fmi2Real[]);
} bl_fmu_calls;

/* binary.c: loads a library and finds the functions that an FMU with these `flags` must have. Returns a bl_status;
   on failure *library is NULL and `message` is the reason. */
int bl_fmu_load(const char *path, int32_t flags, void **library, bl_fmu_calls *calls, char *message,
                size_t message_size);
void bl_fmu_unload(void *library);

#endif
