/* Values of variables in FMI 3.0: real variables are Float64, integers and enumerations Int64, unless the plan has another type for
 * them, and there is Boolean. The elements of an array lie one after another, as in the plan. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fmu/exporter/interface/fmi3_calls.h"

uint32_t bl_fmi3_time_reference(const bl_fmu *f) { return (uint32_t)f->variable_count; }

/* The variable with a value reference; NULL, with a message, if there is none, or within an array, whose elements have none. */
static const bl_variable *find_array(const bl_fmu *f, fmi3ValueReference reference) {
    if ((int64_t)reference < f->variable_count && f->variables[reference].extent > 0) return &f->variables[reference];
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
        const bl_variable *array = find_array(f, references[k]);
        if (array) array = bl_fmu_find(f, references[k], BL_REAL, BL_REAL);
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

/* A type of FMI: which variables have it. */
typedef struct {
    const char *name;
    int32_t kind, or_kind, type; /* BL_REAL …, BL_USUAL_TYPE … */
} fmi3_type;

static const char *name_type(const bl_variable *variable) {
    static const char *const NAMES[BL_TYPES] = {
        [BL_FLOAT32] = "Float32", [BL_INT8] = "Int8",   [BL_UINT8] = "UInt8",   [BL_INT16] = "Int16",
        [BL_UINT16] = "UInt16",   [BL_INT32] = "Int32", [BL_UINT32] = "UInt32", [BL_UINT64] = "UInt64",
    };
    if (variable->type != BL_USUAL_TYPE) return NAMES[variable->type];
    return variable->kind == BL_REAL ? "Float64" : variable->kind == BL_BOOLEAN ? "Boolean" : "Int64";
}

/* The same, if it is of a type. */
static const bl_variable *find_typed(const bl_fmu *f, fmi3ValueReference reference, const fmi3_type *type) {
    const bl_variable *array = find_array(f, reference);
    if (!array) return NULL;
    if ((array->kind == type->kind || array->kind == type->or_kind) && array->type == type->type) return array;
    bl_fmu_log(f, FMU_ERROR, "value reference %u is of type %s, not %s", reference, name_type(array), type->name);
    return NULL;
}

static bl_fmu_status log_unfit(const bl_fmu *f, const bl_variable *variable, double value) {
    const bl_variable *array = variable;
    char place[32] = "", number[32];
    while (array->extent == 0) array--;
    if (array->extent > 1) snprintf(place, sizeof place, ", element %lld,", (long long)(variable - array));
    snprintf(number, sizeof number, "%lld", (long long)(array - f->variables)); /* its value reference */
    bl_fmu_log(f, FMU_ERROR, "variable '%s'%s is %.17g, which does not fit its type %s",
               array->name ? array->name : number, place, value, name_type(variable));
    return FMU_ERROR;
}

/* The value of an integer, which must be at least `low` and below `end`: both are exact as a double, which the largest value of 64 bits
   is not. */
static bl_fmu_status get_whole(bl_fmu *f, const bl_variable *variable, double low, double end, double *whole) {
    double value = 0.0;
    const bl_fmu_status status = bl_fmu_get(f, variable, &value);
    if (status != FMU_OK) return status;
    *whole = trunc(value);
    return *whole >= low && *whole < end ? FMU_OK : log_unfit(f, variable, value);
}

/* Gets or sets one value: the element `at` of an array of FMI's type. */
typedef bl_fmu_status (*transfer_one)(bl_fmu *f, const bl_variable *variable, void *values, size_t at);

static bl_fmu_status get_Float64(bl_fmu *f, const bl_variable *variable, void *values, size_t at) {
    return bl_fmu_get(f, variable, (fmi3Float64 *)values + at);
}

/* Rounded to the nearest. A finite value that would become infinite does not fit. */
static bl_fmu_status get_Float32(bl_fmu *f, const bl_variable *variable, void *values, size_t at) {
    const double end = 0x1.ffffffp127; /* halfway from FLT_MAX to 2^128 */
    double value = 0.0;
    const bl_fmu_status status = bl_fmu_get(f, variable, &value);
    if (status != FMU_OK) return status;
    const double size = fabs(value);
    if (isfinite(value) && size >= end) return log_unfit(f, variable, value);
    fmi3Float32 *place = (fmi3Float32 *)values + at;
    if (isfinite(value) && size > (double)FLT_MAX) *place = value < 0.0 ? -FLT_MAX : FLT_MAX;
    else *place = (fmi3Float32)value;
    return FMU_OK;
}

static bl_fmu_status get_Boolean(bl_fmu *f, const bl_variable *variable, void *values, size_t at) {
    double value = 0.0;
    const bl_fmu_status status = bl_fmu_get(f, variable, &value);
    if (status == FMU_OK) ((fmi3Boolean *)values)[at] = value != 0.0;
    return status;
}

#define GET_WHOLE(name, low, end) \
    static bl_fmu_status get_##name(bl_fmu *f, const bl_variable *variable, void *values, size_t at) { \
        double whole = 0.0; \
        const bl_fmu_status status = get_whole(f, variable, low, end, &whole); \
        if (status == FMU_OK) ((fmi3##name *)values)[at] = (fmi3##name)whole; \
        return status; \
    }

GET_WHOLE(Int8, -0x1p7, 0x1p7)
GET_WHOLE(UInt8, 0.0, 0x1p8)
GET_WHOLE(Int16, -0x1p15, 0x1p15)
GET_WHOLE(UInt16, 0.0, 0x1p16)
GET_WHOLE(Int32, -0x1p31, 0x1p31)
GET_WHOLE(UInt32, 0.0, 0x1p32)
GET_WHOLE(Int64, -0x1p63, 0x1p63)
GET_WHOLE(UInt64, 0.0, 0x1p64)

/* Of types whose values are all exact as a double. */
#define SET_EXACT(name) \
    static bl_fmu_status set_##name(bl_fmu *f, const bl_variable *variable, void *values, size_t at) { \
        return bl_fmu_set(f, variable, (double)((const fmi3##name *)values)[at]); \
    }

SET_EXACT(Float64)
SET_EXACT(Float32)
SET_EXACT(Int8)
SET_EXACT(UInt8)
SET_EXACT(Int16)
SET_EXACT(UInt16)
SET_EXACT(Int32)
SET_EXACT(UInt32)

static bl_fmu_status set_Int64(bl_fmu *f, const bl_variable *variable, void *values, size_t at) {
    const fmi3Int64 value = ((const fmi3Int64 *)values)[at];
    const bl_fmu_status status = bl_fmu_check_int64(f, value);
    return status == FMU_OK ? bl_fmu_set(f, variable, (double)value) : status;
}

static bl_fmu_status set_UInt64(bl_fmu *f, const bl_variable *variable, void *values, size_t at) {
    const fmi3UInt64 value = ((const fmi3UInt64 *)values)[at];
    if (value <= UINT64_C(1) << 53) return bl_fmu_set(f, variable, (double)value);
    bl_fmu_log(f, FMU_DISCARD, "the integer %llu is not exact as a signal: its magnitude exceeds 2^53",
               (unsigned long long)value);
    return FMU_DISCARD;
}

/* As a byte: a caller in another language may pass something else than 0 and 1. */
static bl_fmu_status set_Boolean(bl_fmu *f, const bl_variable *variable, void *values, size_t at) {
    return bl_fmu_set(f, variable, ((const unsigned char *)values)[at] ? 1.0 : 0.0);
}

/* Gets or sets the values of variables of a type. */
static fmi3Status transfer(fmi3Instance instance, fmi3_call call, const fmi3ValueReference references[],
                           size_t reference_count, const void *values, size_t value_count, const fmi3_type *type,
                           transfer_one one) {
    bl_fmu *f = bl_fmi3_enter(instance, call);
    if (!f || bl_fmu_check_arrays(f, references, reference_count, references) != FMU_OK ||
        bl_fmu_check_arrays(f, values, value_count, values) != FMU_OK)
        return fmi3Error;
    void *place = (void *)(uintptr_t)values; /* written to only by getters, which were given a place */
    bl_fmu_status status = FMU_OK;
    size_t at = 0;
    for (size_t k = 0; k < reference_count && status == FMU_OK; k++) {
        if (call == FMI3_GET && one == get_Float64 && references[k] == bl_fmi3_time_reference(f) && at < value_count) {
            ((fmi3Float64 *)place)[at++] = bl_fmu_time(f);
            continue;
        }
        const bl_variable *array = find_typed(f, references[k], type);
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

#define TRANSFER(name, kind, or_kind, type) \
    static const fmi3_type TYPE_##name = {#name, kind, or_kind, type}; \
    fmi3Status fmi3Get##name(fmi3Instance instance, const fmi3ValueReference references[], size_t reference_count, \
                             fmi3##name values[], size_t value_count) { \
        return transfer(instance, FMI3_GET, references, reference_count, values, value_count, &TYPE_##name, \
                        get_##name); \
    } \
    fmi3Status fmi3Set##name(fmi3Instance instance, const fmi3ValueReference references[], size_t reference_count, \
                             const fmi3##name values[], size_t value_count) { \
        return transfer(instance, FMI3_SET, references, reference_count, values, value_count, &TYPE_##name, \
                        set_##name); \
    }

TRANSFER(Float64, BL_REAL, BL_REAL, BL_USUAL_TYPE)
TRANSFER(Float32, BL_REAL, BL_REAL, BL_FLOAT32)
TRANSFER(Int8, BL_INTEGER, BL_INTEGER, BL_INT8)
TRANSFER(UInt8, BL_INTEGER, BL_INTEGER, BL_UINT8)
TRANSFER(Int16, BL_INTEGER, BL_INTEGER, BL_INT16)
TRANSFER(UInt16, BL_INTEGER, BL_INTEGER, BL_UINT16)
TRANSFER(Int32, BL_INTEGER, BL_INTEGER, BL_INT32)
TRANSFER(UInt32, BL_INTEGER, BL_INTEGER, BL_UINT32)
TRANSFER(Int64, BL_INTEGER, BL_ENUMERATION, BL_USUAL_TYPE)
TRANSFER(UInt64, BL_INTEGER, BL_INTEGER, BL_UINT64)
TRANSFER(Boolean, BL_BOOLEAN, BL_BOOLEAN, BL_USUAL_TYPE)

fmi3Status bl_fmi3_refuse_type(fmi3Instance instance, fmi3_call call, size_t reference_count, const char *type) {
    bl_fmu *f = bl_fmi3_enter(instance, call);
    if (!f) return fmi3Error;
    if (reference_count == 0) return fmi3OK;
    bl_fmu_log(f, FMU_ERROR, "this FMU has no variables of type %s", type);
    return fmi3Error;
}

fmi3Status fmi3GetString(fmi3Instance instance, const fmi3ValueReference references[], size_t reference_count,
                         fmi3String values[], size_t value_count) {
    (void)references, (void)values, (void)value_count;
    return bl_fmi3_refuse_type(instance, FMI3_GET, reference_count, "String");
}

fmi3Status fmi3SetString(fmi3Instance instance, const fmi3ValueReference references[], size_t reference_count,
                         const fmi3String values[], size_t value_count) {
    (void)references, (void)values, (void)value_count;
    return bl_fmi3_refuse_type(instance, FMI3_SET, reference_count, "String");
}

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
