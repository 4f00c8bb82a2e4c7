/* Values of variables in FMI 3.0: real variables are Float64, integers and enumerations Int64, and there is Boolean. The elements of an
 * array lie one after another, as in the plan. */
#include <stdlib.h>

#include "fmu/exporter/interface/fmi3_calls.h"

uint32_t bl_fmi3_time_reference(const bl_fmu *f) { return (uint32_t)f->variable_count; }

/* The variable with a value reference, as bl_fmu_find; NULL within an array, whose elements have no references. */
static const bl_variable *find_array(const bl_fmu *f, fmi3ValueReference reference, int32_t kind, int32_t or_kind) {
    if ((int64_t)reference < f->variable_count && f->variables[reference].extent > 0)
        return bl_fmu_find(f, reference, kind, or_kind);
    bl_fmu_log(f, FMU_ERROR,
               reference == bl_fmi3_time_reference(f) ? "time (value reference %u) can only be read"
                                                      : "unknown value reference %u",
               reference);
    return NULL;
}

static void log_value_count(const bl_fmu *f, size_t count) {
    bl_fmu_log(f, FMU_ERROR, "the variables have another number of values than the %zu given", count);
}

uint32_t *bl_fmi3_list_elements(const bl_fmu *f, const fmi3ValueReference references[], size_t reference_count,
                                size_t count) {
    if (bl_fmu_check_arrays(f, references, reference_count, references) != FMU_OK) return NULL;
    uint32_t *elements = count < SIZE_MAX / sizeof *elements ? malloc((count + 1) * sizeof *elements) : NULL;
    size_t found = 0;
    for (size_t k = 0; k < reference_count && elements; k++) {
        const bl_variable *array = find_array(f, references[k], BL_REAL, BL_REAL);
        const size_t extent = array ? (size_t)array->extent : 0;
        if (array && extent <= count - found) {
            for (size_t i = 0; i < extent; i++) elements[found++] = references[k] + (uint32_t)i;
            continue;
        }
        if (array) log_value_count(f, count);
        free(elements);
        elements = NULL;
    }
    if (elements && found != count) {
        log_value_count(f, count);
        free(elements);
        elements = NULL;
    }
    return elements;
}

/* Gets or sets one value: the element `at` of an array of FMI's type. */
typedef bl_fmu_status (*transfer_one)(bl_fmu *f, const bl_variable *variable, void *values, size_t at);

static bl_fmu_status get_float64(bl_fmu *f, const bl_variable *variable, void *values, size_t at) {
    return bl_fmu_get(f, variable, (fmi3Float64 *)values + at);
}

static bl_fmu_status get_int64(bl_fmu *f, const bl_variable *variable, void *values, size_t at) {
    double value = 0.0;
    const bl_fmu_status status = bl_fmu_get(f, variable, &value);
    if (status == FMU_OK) ((fmi3Int64 *)values)[at] = bl_fmu_to_int64(value);
    return status;
}

static bl_fmu_status get_boolean(bl_fmu *f, const bl_variable *variable, void *values, size_t at) {
    double value = 0.0;
    const bl_fmu_status status = bl_fmu_get(f, variable, &value);
    if (status == FMU_OK) ((fmi3Boolean *)values)[at] = value != 0.0;
    return status;
}

static bl_fmu_status set_float64(bl_fmu *f, const bl_variable *variable, void *values, size_t at) {
    return bl_fmu_set(f, variable, ((const fmi3Float64 *)values)[at]);
}

static bl_fmu_status set_int64(bl_fmu *f, const bl_variable *variable, void *values, size_t at) {
    const fmi3Int64 value = ((const fmi3Int64 *)values)[at];
    const bl_fmu_status status = bl_fmu_check_int64(f, value);
    return status == FMU_OK ? bl_fmu_set(f, variable, (double)value) : status;
}

/* As a byte: a caller in another language may pass something else than 0 and 1. */
static bl_fmu_status set_boolean(bl_fmu *f, const bl_variable *variable, void *values, size_t at) {
    return bl_fmu_set(f, variable, ((const unsigned char *)values)[at] ? 1.0 : 0.0);
}

/* Gets or sets the values of variables, of one of two kinds. */
static fmi3Status transfer(fmi3Instance instance, fmi3_call call, const fmi3ValueReference references[],
                           size_t reference_count, const void *values, size_t value_count, int32_t kind,
                           int32_t or_kind, transfer_one one) {
    bl_fmu *f = bl_fmi3_enter(instance, call);
    if (!f || bl_fmu_check_arrays(f, references, reference_count, references) != FMU_OK ||
        bl_fmu_check_arrays(f, values, value_count, values) != FMU_OK)
        return fmi3Error;
    void *place = (void *)(uintptr_t)values; /* written to only by getters, which were given a place */
    bl_fmu_status status = FMU_OK;
    size_t at = 0;
    for (size_t k = 0; k < reference_count && status == FMU_OK; k++) {
        if (call == FMI3_GET && kind == BL_REAL && references[k] == bl_fmi3_time_reference(f) && at < value_count) {
            ((fmi3Float64 *)place)[at++] = bl_fmu_time(f);
            continue;
        }
        const bl_variable *array = find_array(f, references[k], kind, or_kind);
        if (!array) return fmi3Error;
        if ((size_t)array->extent > value_count - at) {
            log_value_count(f, value_count);
            return fmi3Error;
        }
        for (int64_t i = 0; i < array->extent && status == FMU_OK; i++) status = one(f, &array[i], place, at++);
    }
    if (status == FMU_OK && at != value_count) {
        log_value_count(f, value_count);
        return fmi3Error;
    }
    return (fmi3Status)status;
}

#define TRANSFER(name, call, type, kind, or_kind, one) \
    fmi3Status name(fmi3Instance instance, const fmi3ValueReference references[], size_t reference_count, \
                    type values[], size_t value_count) { \
        return transfer(instance, call, references, reference_count, values, value_count, kind, or_kind, one); \
    }

TRANSFER(fmi3GetFloat64, FMI3_GET, fmi3Float64, BL_REAL, BL_REAL, get_float64)
TRANSFER(fmi3GetInt64, FMI3_GET, fmi3Int64, BL_INTEGER, BL_ENUMERATION, get_int64)
TRANSFER(fmi3GetBoolean, FMI3_GET, fmi3Boolean, BL_BOOLEAN, BL_BOOLEAN, get_boolean)
TRANSFER(fmi3SetFloat64, FMI3_SET, const fmi3Float64, BL_REAL, BL_REAL, set_float64)
TRANSFER(fmi3SetInt64, FMI3_SET, const fmi3Int64, BL_INTEGER, BL_ENUMERATION, set_int64)
TRANSFER(fmi3SetBoolean, FMI3_SET, const fmi3Boolean, BL_BOOLEAN, BL_BOOLEAN, set_boolean)

fmi3Status bl_fmi3_refuse_type(fmi3Instance instance, fmi3_call call, size_t reference_count, const char *type) {
    bl_fmu *f = bl_fmi3_enter(instance, call);
    if (!f) return fmi3Error;
    if (reference_count == 0) return fmi3OK;
    bl_fmu_log(f, FMU_ERROR, "this FMU has no variables of type %s: real variables are Float64, integers Int64", type);
    return fmi3Error;
}

#define REFUSE_TYPE(name) \
    fmi3Status fmi3Get##name(fmi3Instance instance, const fmi3ValueReference references[], size_t reference_count, \
                             fmi3##name values[], size_t value_count) { \
        (void)references, (void)values, (void)value_count; \
        return bl_fmi3_refuse_type(instance, FMI3_GET, reference_count, #name); \
    } \
    fmi3Status fmi3Set##name(fmi3Instance instance, const fmi3ValueReference references[], size_t reference_count, \
                             const fmi3##name values[], size_t value_count) { \
        (void)references, (void)values, (void)value_count; \
        return bl_fmi3_refuse_type(instance, FMI3_SET, reference_count, #name); \
    }

REFUSE_TYPE(Float32)
REFUSE_TYPE(Int8)
REFUSE_TYPE(UInt8)
REFUSE_TYPE(Int16)
REFUSE_TYPE(UInt16)
REFUSE_TYPE(Int32)
REFUSE_TYPE(UInt32)
REFUSE_TYPE(UInt64)
REFUSE_TYPE(String)

fmi3Status fmi3GetBinary(fmi3Instance instance, const fmi3ValueReference references[], size_t reference_count,
                         size_t sizes[], fmi3Binary values[], size_t value_count) {
    (void)references, (void)sizes, (void)values, (void)value_count;
    return bl_fmi3_refuse_type(instance, FMI3_GET, reference_count, "Binary");
}

fmi3Status fmi3SetBinary(fmi3Instance instance, const fmi3ValueReference references[], size_t reference_count,
                         const size_t sizes[], const fmi3Binary values[], size_t value_count) {
    (void)references, (void)sizes, (void)values, (void)value_count;
    return bl_fmi3_refuse_type(instance, FMI3_SET, reference_count, "Binary");
}
