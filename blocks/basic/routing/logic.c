/* Comparing, deciding, remembering decisions. Booleans are 0.0 and 1.0; anything but 0.0 is true. */
#include <math.h>

#include "blocks/core/kernel/kernel.h"

BL_SHARED enum { LOGIC_RISING, LOGIC_FALLING, LOGIC_EITHER, LOGIC_LEVEL };

/* Whether something happens now. Before the first sample (`seen` is 0) there is no edge. */
static int logic_happens(int32_t edge, double before, double now, double seen) {
    if (edge == LOGIC_LEVEL) return now != 0.0;
    if (seen == 0.0 || (before != 0.0) == (now != 0.0)) return 0;
    return edge == LOGIC_EITHER || (now != 0.0) == (edge == LOGIC_RISING);
}

/* Compare: y = u1 op u2, or y = u op p; i: the operator. */
BL_SHARED enum {
    COMPARE_LESS,
    COMPARE_LESS_EQUAL,
    COMPARE_EQUAL,
    COMPARE_NOT_EQUAL,
    COMPARE_GREATER_EQUAL,
    COMPARE_GREATER,
    COMPARE_COUNT
};
static int compare_check(const bl_block *b) {
    if (b->u_count < 1 || b->u_count > 2 || b->y_count != 1 || b->i_count != 1) return 0;
    for (int32_t k = 0; k < b->u_count; k++)
        if (b->u_width[k] != b->y_width[0]) return 0;
    return b->i[0] >= 0 && b->i[0] < COMPARE_COUNT &&
           (b->u_count == 2 ? b->p_count == 0 : b->p_count == 1 || b->p_count == b->y_width[0]);
}
/* Equality ends at once; passing through it is not noticed. */
static int compare_equal(const bl_modes *modes, int32_t k, double l, double r) {
    const int equal = bl_keep_mode(modes, k, l == r) != 0.0;
    if (modes->mode) modes->crossing[k] = equal ? -fabs(l - r) : 0.0;
    return equal;
}
static int compare_output(bl_block *b, double t) {
    (void)t;
    const double *right = b->u_count == 2 ? b->u[1] : b->p;
    const int32_t stride = b->u_count == 2 || b->p_count > 1;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double l = b->u[0][k], r = right[k * stride];
        const bl_modes *modes = &b->modes;
        int holds = 0;
        switch (b->i[0]) {
            case COMPARE_LESS: holds = bl_decide(modes, k, l < r, r - l); break;
            case COMPARE_LESS_EQUAL: holds = bl_decide(modes, k, l <= r, r - l); break;
            case COMPARE_EQUAL: holds = compare_equal(modes, k, l, r); break;
            case COMPARE_NOT_EQUAL: holds = !compare_equal(modes, k, l, r); break;
            case COMPARE_GREATER_EQUAL: holds = bl_decide(modes, k, l >= r, l - r); break;
            default: holds = bl_decide(modes, k, l > r, l - r); break;
        }
        b->y[0][k] = holds;
    }
    return BL_OK;
}
static int32_t compare_crossings(const bl_block *b) { return b->y_width[0]; }

/* Logic: i: whether all, any or an odd number of the inputs are true; 1 if that is negated. */
BL_SHARED enum { LOGIC_ALL, LOGIC_ANY, LOGIC_ODD };
static int logic_check(const bl_block *b) {
    if (b->u_count < 1 || b->y_count != 1 || b->i_count != 2) return 0;
    for (int32_t k = 0; k < b->u_count; k++)
        if (b->u_width[k] != b->y_width[0]) return 0;
    return b->i[0] >= LOGIC_ALL && b->i[0] <= LOGIC_ODD && b->i[1] >= 0 && b->i[1] <= 1;
}
static int logic_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        int32_t count = 0;
        for (int32_t j = 0; j < b->u_count; j++) count += b->u[j][k] != 0.0;
        const int32_t how = b->i[0];
        const int32_t found = how == LOGIC_ALL ? count == b->u_count : how == LOGIC_ANY ? count > 0 : count & 1;
        b->y[0][k] = found != b->i[1];
    }
    return BL_OK;
}

/* Switch: y = on_true if the condition holds, else on_false. */
static int switch_check(const bl_block *b) {
    return b->u_count == 3 && b->y_count == 1 && b->u_width[0] == b->y_width[0] && b->u_width[1] == 1 &&
           b->u_width[2] == b->y_width[0];
}
static int switch_output(bl_block *b, double t) {
    (void)t;
    const double *from = b->u[1][0] != 0.0 ? b->u[0] : b->u[2];
    for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = from[k];
    return BL_OK;
}

/* MultiportSwitch: y = u[selector], the selector limited to 1 … number of data inputs. */
static int multiport_switch_check(const bl_block *b) {
    if (b->u_count < 2 || b->y_count != 1 || b->u_width[0] != 1) return 0;
    for (int32_t k = 1; k < b->u_count; k++)
        if (b->u_width[k] != b->y_width[0]) return 0;
    return 1;
}
static int multiport_switch_output(bl_block *b, double t) {
    (void)t;
    const double selector = b->u[0][0], last = (double)(b->u_count - 1), wanted = nearbyint(selector);
    const double kept = bl_keep_mode(&b->modes, 0, wanted > 1.0 ? fmin(wanted, last) : 1.0);
    const int32_t chosen = (int32_t)kept;
    if (b->modes.mode)
        b->modes.crossing[0] =
            fmin(kept > 1.0 ? selector - kept + 0.5 : 1.0, kept < last ? kept + 0.5 - selector : 1.0);
    for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = b->u[chosen][k];
    return BL_OK;
}

static int32_t multiport_switch_crossings(const bl_block *b) {
    (void)b;
    return 1;
}

/* Edge: z: the values before, and whether there were any; i: which edge. */
static int edge_check(const bl_block *b) {
    return b->u_count == 1 && b->y_count == 1 && b->u_width[0] == b->y_width[0] && b->i_count == 1 &&
           b->i[0] >= LOGIC_RISING && b->i[0] <= LOGIC_EITHER;
}
static bl_sizes edge_sizes(const bl_block *b) { return (bl_sizes){.memory = (int64_t)b->y_width[0] + 1}; }
static int edge_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = 0.0;
    return BL_OK;
}
static int edge_output(bl_block *b, double t) {
    (void)t;
    const double seen = b->z[b->z_count - 1];
    for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = logic_happens(b->i[0], b->z[k], b->u[0][k], seen);
    return BL_OK;
}
static int edge_update(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->y_width[0]; k++) b->z[k] = b->u[0][k];
    b->z[b->z_count - 1] = 1.0;
    return BL_OK;
}

/* Counter: u: signal, reset; p: initial, step, lower, upper; i: edge, wrap;
   z: count, signal before, whether there was one. */
static int counter_check(const bl_block *b) {
    return b->u_count == 2 && b->y_count == 1 && b->u_width[0] == 1 && b->u_width[1] == 1 && b->y_width[0] == 1 &&
           b->p_count == 4 && b->i_count == 2 && b->i[0] >= LOGIC_RISING && b->i[0] <= LOGIC_LEVEL;
}
static bl_sizes counter_sizes(const bl_block *b) {
    (void)b;
    return (bl_sizes){.memory = 3};
}
static int counter_init(bl_block *b, double t) {
    (void)t;
    b->z[0] = nearbyint(b->p[0]);
    b->z[1] = b->z[2] = 0.0;
    return BL_OK;
}
static double counter_count(const bl_block *b) {
    const double initial = nearbyint(b->p[0]), step = nearbyint(b->p[1]);
    const double lower = nearbyint(b->p[2]), upper = nearbyint(b->p[3]);
    double count = b->z[0];
    if (b->u[1][0] != 0.0) return initial;
    if (!logic_happens(b->i[0], b->z[1], b->u[0][0], b->z[2])) return count;
    count += step;
    if (count >= lower && count <= upper) return count;
    if (!b->i[1] || !(lower <= upper)) return count < lower ? lower : upper;
    /* Around: after upper comes lower again. */
    const double range = upper - lower + 1.0;
    return count - range * floor((count - lower) / range);
}
static int counter_output(bl_block *b, double t) {
    (void)t;
    b->y[0][0] = counter_count(b);
    return BL_OK;
}
static int counter_update(bl_block *b, double t) {
    (void)t;
    b->z[0] = counter_count(b);
    b->z[1] = b->u[0][0];
    b->z[2] = 1.0;
    return BL_OK;
}

/* SampleHold: u: value, sample; p: initial; i: edge; z: held values, sample before, whether there was one. */
static int sample_hold_check(const bl_block *b) {
    return b->u_count == 2 && b->y_count == 1 && b->u_width[0] == b->y_width[0] && b->u_width[1] == 1 &&
           (b->p_count == 1 || b->p_count == b->y_width[0]) && b->i_count == 1 && b->i[0] >= LOGIC_RISING &&
           b->i[0] <= LOGIC_LEVEL;
}
static bl_sizes sample_hold_sizes(const bl_block *b) { return (bl_sizes){.memory = (int64_t)b->y_width[0] + 2}; }
static int sample_hold_init(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->y_width[0];
    for (int32_t k = 0; k < n; k++) b->z[k] = b->p[b->p_count > 1 ? k : 0];
    b->z[n] = b->z[n + 1] = 0.0;
    return BL_OK;
}
static const double *sample_hold_value(const bl_block *b) {
    const int32_t n = b->y_width[0];
    return logic_happens(b->i[0], b->z[n], b->u[1][0], b->z[n + 1]) ? b->u[0] : b->z;
}
static int sample_hold_output(bl_block *b, double t) {
    (void)t;
    const double *value = sample_hold_value(b);
    for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = value[k];
    return BL_OK;
}
/* What it has followed u to, while the level is true. */
static int sample_hold_settle(bl_block *b, double t) {
    (void)t;
    if (b->i[0] == LOGIC_LEVEL && b->u[1][0] != 0.0)
        for (int32_t k = 0; k < b->y_width[0]; k++) b->z[k] = b->u[0][k];
    return BL_OK;
}
static int sample_hold_event(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->y_width[0];
    const double *value = sample_hold_value(b);
    int changed = b->z[n] != b->u[1][0] || b->z[n + 1] == 0.0;
    for (int32_t k = 0; k < n; k++) {
        changed |= b->z[k] != value[k];
        b->z[k] = value[k];
    }
    b->z[n] = b->u[1][0];
    b->z[n + 1] = 1.0;
    return changed ? BL_OK : BL_UNCHANGED;
}
static int sample_hold_update(bl_block *b, double t) {
    (void)sample_hold_event(b, t);
    return BL_OK;
}

/* Latch: u: set, reset; p: initial; i: 1 if set wins when both are true; z: the last outputs. */
static int latch_check(const bl_block *b) {
    return b->u_count == 2 && b->y_count == 1 && b->u_width[0] == b->y_width[0] && b->u_width[1] == b->y_width[0] &&
           b->p_count == 1 && b->i_count == 1;
}
static bl_sizes latch_sizes(const bl_block *b) { return (bl_sizes){.memory = b->y_width[0]}; }
static int latch_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = b->p[0] != 0.0;
    return BL_OK;
}
static double latch_value(const bl_block *b, int32_t k) {
    const int set = b->u[0][k] != 0.0, reset = b->u[1][k] != 0.0;
    if (set && reset) return b->i[0] != 0;
    return set || (!reset && b->z[k] != 0.0);
}
static int latch_output(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->y[0][k] = latch_value(b, k);
    return BL_OK;
}
static int latch_event(bl_block *b, double t) {
    (void)t;
    int status = BL_UNCHANGED;
    for (int32_t k = 0; k < b->z_count; k++) {
        const double value = latch_value(b, k);
        if (value != b->z[k]) status = BL_OK;
        b->z[k] = value;
    }
    return status;
}
static int latch_update(bl_block *b, double t) {
    (void)latch_event(b, t);
    return BL_OK;
}

const bl_kernel bl_kernels_logic[] = {
    {.name = "compare",
     .check = compare_check,
     .output = compare_output,
     .crossing_count = compare_crossings,
     .constant_in_mode = 1},
    {.name = "logic", .check = logic_check, .output = logic_output},
    {.name = "switch", .check = switch_check, .output = switch_output},
    {.name = "multiport_switch",
     .check = multiport_switch_check,
     .output = multiport_switch_output,
     .crossing_count = multiport_switch_crossings},
    {.name = "edge",
     .check = edge_check,
     .sizes = edge_sizes,
     .init = edge_init,
     .output = edge_output,
     .update = edge_update},
    {.name = "counter",
     .check = counter_check,
     .sizes = counter_sizes,
     .init = counter_init,
     .output = counter_output,
     .update = counter_update},
    {.name = "sample_hold",
     .check = sample_hold_check,
     .sizes = sample_hold_sizes,
     .init = sample_hold_init,
     .output = sample_hold_output,
     .update = sample_hold_update,
     .settle = sample_hold_settle,
     .event = sample_hold_event},
    {.name = "latch",
     .check = latch_check,
     .sizes = latch_sizes,
     .init = latch_init,
     .output = latch_output,
     .update = latch_update,
     .event = latch_event},
    {.name = 0},
};
