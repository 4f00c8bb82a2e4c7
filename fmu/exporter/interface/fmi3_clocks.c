/* Clocks in FMI 3.0: FMI's names for the functions of clocks.c. The clocks are periodic input clocks with a constant interval. */
#include "fmu/exporter/interface/fmi3_calls.h"

/* The number of the clock with a value reference; -1, with a message, if there is none. */
static int32_t find_clock(const bl_fmu *f, fmi3ValueReference reference) {
    const int64_t clock = (int64_t)reference - (int64_t)bl_fmu_clock_reference(f, 0);
    if (clock >= 0 && clock < bl_clock_count(f->engine)) return (int32_t)clock;
    bl_fmu_log(f, FMU_ERROR, "value reference %u is not a clock", reference);
    return -1;
}

/* The instance, if a function of clocks may be called with arrays of `count` elements; else NULL, with a message. */
static bl_fmu *enter_clocks(fmi3Instance instance, fmi3_call call, const char *function,
                            const fmi3ValueReference references[], size_t count, const void *a, const void *b) {
    if (!bl_fmi3_has_clocks(instance)) {
        (void)bl_fmi3_refuse(instance, function);
        return NULL;
    }
    bl_fmu *f = bl_fmi3_enter(instance, call);
    if (!f || bl_fmu_check_arrays(f, references, count, a) != FMU_OK || bl_fmu_check_arrays(f, a, count, b) != FMU_OK)
        return NULL;
    for (size_t k = 0; k < count; k++)
        if (find_clock(f, references[k]) < 0) return NULL;
    return f;
}

fmi3Status fmi3GetClock(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
                        fmi3Clock values[]) {
    if (!bl_fmi3_has_clocks(instance)) return bl_fmi3_refuse_type(instance, FMI3_GET, count, "Clock");
    bl_fmu *f = enter_clocks(instance, FMI3_GET, "fmi3GetClock", references, count, values, values);
    if (!f) return fmi3Error;
    for (size_t k = 0; k < count; k++) values[k] = bl_fmu_clock_is_active(f, find_clock(f, references[k])) != 0;
    return fmi3OK;
}

fmi3Status fmi3SetClock(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
                        const fmi3Clock values[]) {
    if (!bl_fmi3_has_clocks(instance)) return bl_fmi3_refuse_type(instance, FMI3_SET, count, "Clock");
    bl_fmu *f = enter_clocks(instance, FMI3_SET_CLOCK, "fmi3SetClock", references, count, values, values);
    if (!f) return fmi3Error;
    for (size_t k = 0; k < count; k++) {
        const int32_t clock = find_clock(f, references[k]);
        if (((const unsigned char *)values)[k]) {
            if (bl_fmu_activate_clock(f, clock) != FMU_OK) return fmi3Error;
        } else if (bl_fmu_clock_is_active(f, clock)) {
            bl_fmu_log(f, FMU_ERROR, "the clock with value reference %u cannot be deactivated", references[k]);
            return fmi3Error;
        }
    }
    return fmi3OK;
}

fmi3Status fmi3GetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
                                  fmi3Float64 intervals[], fmi3IntervalQualifier qualifiers[]) {
    const bl_fmu *f = enter_clocks(instance, FMI3_GET_INTERVAL_DECIMAL, "fmi3GetIntervalDecimal", references, count,
                                   intervals, qualifiers);
    if (!f) return fmi3Error;
    for (size_t k = 0; k < count; k++) {
        intervals[k] = bl_fmu_clock_interval(f, find_clock(f, references[k]));
        qualifiers[k] = fmi3IntervalUnchanged;
    }
    return fmi3OK;
}

fmi3Status fmi3GetShiftDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
                               fmi3Float64 shifts[]) {
    const bl_fmu *f =
        enter_clocks(instance, FMI3_GET_SHIFT_DECIMAL, "fmi3GetShiftDecimal", references, count, shifts, shifts);
    if (!f) return fmi3Error;
    for (size_t k = 0; k < count; k++)
        shifts[k] = (double)bl_clock_shift(f->engine, find_clock(f, references[k])) * bl_step(f->engine);
    return fmi3OK;
}

/* A time in base steps as a fraction; fails, with a message, where the base step is none. */
static fmi3Status get_fraction(const bl_fmu *f, int64_t steps, fmi3UInt64 *counter, fmi3UInt64 *resolution) {
    uint64_t numerator = 0;
    if (!bl_step_fraction(f->engine, &numerator, resolution)) {
        bl_fmu_log(f, FMU_ERROR, "the base step %.17g s is not a fraction: supportsFraction is false",
                   bl_step(f->engine));
        return fmi3Error;
    }
    *counter = (uint64_t)steps * numerator;
    return fmi3OK;
}

fmi3Status fmi3GetIntervalFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
                                   fmi3UInt64 counters[], fmi3UInt64 resolutions[],
                                   fmi3IntervalQualifier qualifiers[]) {
    const bl_fmu *f = enter_clocks(instance, FMI3_GET_INTERVAL_FRACTION, "fmi3GetIntervalFraction", references, count,
                                   counters, resolutions);
    if (!f || bl_fmu_check_arrays(f, qualifiers, count, qualifiers) != FMU_OK) return fmi3Error;
    for (size_t k = 0; k < count; k++) {
        const int64_t period = bl_clock_period(f->engine, find_clock(f, references[k]));
        if (get_fraction(f, period, &counters[k], &resolutions[k]) != fmi3OK) return fmi3Error;
        qualifiers[k] = fmi3IntervalUnchanged;
    }
    return fmi3OK;
}

fmi3Status fmi3GetShiftFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
                                fmi3UInt64 counters[], fmi3UInt64 resolutions[]) {
    const bl_fmu *f = enter_clocks(instance, FMI3_GET_SHIFT_FRACTION, "fmi3GetShiftFraction", references, count,
                                   counters, resolutions);
    if (!f) return fmi3Error;
    for (size_t k = 0; k < count; k++) {
        const int64_t shift = bl_clock_shift(f->engine, find_clock(f, references[k]));
        if (get_fraction(f, shift, &counters[k], &resolutions[k]) != fmi3OK) return fmi3Error;
    }
    return fmi3OK;
}

/* Intervals and shifts are set for fixed and tunable clocks only. */
fmi3Status fmi3SetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
                                  const fmi3Float64 intervals[]) {
    (void)references, (void)count, (void)intervals;
    return bl_fmi3_refuse(instance, "fmi3SetIntervalDecimal");
}

fmi3Status fmi3SetIntervalFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
                                   const fmi3UInt64 counters[], const fmi3UInt64 resolutions[]) {
    (void)references, (void)count, (void)counters, (void)resolutions;
    return bl_fmi3_refuse(instance, "fmi3SetIntervalFraction");
}

fmi3Status fmi3SetShiftDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
                               const fmi3Float64 shifts[]) {
    (void)references, (void)count, (void)shifts;
    return bl_fmi3_refuse(instance, "fmi3SetShiftDecimal");
}

fmi3Status fmi3SetShiftFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
                                const fmi3UInt64 counters[], const fmi3UInt64 resolutions[]) {
    (void)references, (void)count, (void)counters, (void)resolutions;
    return bl_fmi3_refuse(instance, "fmi3SetShiftFraction");
}
