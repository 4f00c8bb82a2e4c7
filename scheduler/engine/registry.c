/* Every kernel that the engine has, by name. */
#include <string.h>

#include "scheduler/engine/engine.h"

static const bl_kernel *const TABLES[] = {
    bl_kernels_noise, bl_kernels_playback, bl_kernels_function, bl_kernels_nonlinear,
    bl_kernels_sources, bl_kernels_math,       bl_kernels_logic,    bl_kernels_lookup,
    bl_kernels_expression, bl_kernels_continuous, bl_kernels_discrete, bl_kernels_delay,
    bl_kernels_linear, bl_kernels_routing,
    bl_kernels_sinks,   bl_kernels_pendulum, bl_kernels_multibody,   bl_kernels_bearings,
    bl_kernels_oil,     bl_kernels_converter, bl_kernels_filter, bl_kernels_trigger, bl_kernels_pwm,
    bl_kernels_counter,
    bl_kernels_pid, bl_kernels_feedback, bl_kernels_observer, bl_kernels_tracking, bl_kernels_trajectory, bl_kernels_tuner,
    bl_kernels_sensors, bl_kernels_encoder,
    bl_kernels_outside, bl_kernels_python, bl_kernels_fmu,
};

const bl_kernel *bl_find_kernel(const char *name) {
    for (size_t t = 0; t < sizeof TABLES / sizeof *TABLES; t++)
        for (const bl_kernel *k = TABLES[t]; k->name; k++)
            if (strcmp(k->name, name) == 0) return k;
    return NULL;
}

int bl_kernel_sizes(const char *kernel, const bl_shape *shape, int64_t *memory, int64_t *scratch) {
    const bl_kernel *found = bl_find_kernel(kernel);
    *memory = *scratch = 0;
    if (!found) return BL_ERROR_PLAN;
    if (!found->sizes) return BL_UNCHANGED;
    const double at_tick = 0.0;
    const bl_block block = {
        .u_width = shape->u_width, .u_count = shape->u_count,
        .y_width = shape->y_width, .y_count = shape->y_count,
        .i = shape->i, .i_count = shape->i_count,
        .p = shape->p, .p_count = shape->p_count,
        .x_count = shape->x_count, .index = -1, .dt = 1.0, .offset = &at_tick,
    };
    if (!found->check(&block)) return BL_ERROR_PLAN;
    found->sizes(&block, memory, scratch);
    return BL_OK;
}
