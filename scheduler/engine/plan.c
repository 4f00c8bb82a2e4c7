/* Loading a plan. A plan is bytes from anywhere, so nothing in it is believed before it was checked here.
 *
 *   head      magic, version, number of sections, hash of all that follows the head
 *   directory of sections: tag, size of an element, offset, number of elements
 *   sections  8-byte aligned, little-endian
 *
 * scheduler/compile/plan/_plan.py writes the same layout; the two files change together. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/engine/solvers/multirate.h"
#include "scheduler/engine/solvers/solver.h"

typedef struct {
    char magic[8];
    uint32_t version, section_count;
    uint64_t hash, size;
} bl_plan_head;

typedef struct {
    char tag[4];
    uint32_t element;
    uint64_t offset, count;
} bl_plan_section;

static const char MAGIC[8] = {'b', 'i', 'e', 'l', 'l', 'a', 'P', '\n'};
static const int64_t LARGEST_VALUES = 1LL << 27; /* doubles in one engine: 1 GiB */
static const int64_t LARGEST_LOG = 1 << 14;      /* events noted in one tick */
static const int32_t LARGEST_TEARS = 2048;
static const int32_t LARGEST_HALVINGS = 10;      /* of a coupled step */
static const int32_t LARGEST_UNKNOWNS = 512;     /* of one coupling, for a dense Jacobian */

/* Integers of one record in each table. BLOCK_UNUSED was the size of the work space, which the kernel computes. */
BL_SHARED enum {
    BLOCK_KERNEL,
    BLOCK_RATE,
    BLOCK_GUARD,
    BLOCK_U,
    BLOCK_U_COUNT,
    BLOCK_Y,
    BLOCK_Y_COUNT,
    BLOCK_X,
    BLOCK_X_COUNT,
    BLOCK_Z,
    BLOCK_Z_COUNT,
    BLOCK_UNUSED,
    BLOCK_P,
    BLOCK_P_COUNT,
    BLOCK_I,
    BLOCK_I_COUNT,
    BLOCK_FIELDS
};
BL_SHARED enum {
    GUARD_KIND,
    GUARD_EDGE,
    GUARD_RESETS,
    GUARD_PARENT,
    GUARD_CONTROL,
    GUARD_BLOCK,
    GUARD_BLOCK_COUNT,
    GUARD_X,
    GUARD_X_COUNT,
    GUARD_Z,
    GUARD_Z_COUNT,
    GUARD_MEMORY,
    GUARD_FIELDS
};
BL_SHARED enum { LOOP_BODY, LOOP_BODY_COUNT, LOOP_TEAR, LOOP_TEAR_COUNT, LOOP_START, LOOP_FIELDS };
BL_SHARED enum {
    COUPLING_METHOD,
    COUPLING_EXTRAPOLATION,
    COUPLING_ITERATIONS,
    COUPLING_STRICT,
    COUPLING_ROLLS_BACK,
    COUPLING_HALVINGS,
    COUPLING_GROUP,
    COUPLING_MEMBER,
    COUPLING_MEMBER_COUNT,
    COUPLING_SIGNAL,
    COUPLING_SIGNAL_COUNT,
    COUPLING_ENTRY,
    COUPLING_ENTRY_COUNT,
    COUPLING_BOND,
    COUPLING_BOND_COUNT,
    COUPLING_MEMORY,
    COUPLING_FIELDS
};
BL_SHARED enum { MEMBER_BLOCK, MEMBER_INPUT_DERIVATIVES, MEMBER_INPUT, MEMBER_INPUT_COUNT, MEMBER_FIELDS };
BL_SHARED enum { COUPLED_SLOT, COUPLED_WIDTH, COUPLED_LAST, COUPLED_DIRECT, COUPLED_FIELDS };
BL_SHARED enum { INPUT_PORT, INPUT_SIGNAL, INPUT_CARRIED, INPUT_FIELDS };
BL_SHARED enum { BOND_EFFORT_MEMBER, BOND_EFFORT, BOND_FLOW_MEMBER, BOND_FLOW, BOND_PLACE, BOND_MEMORY, BOND_FIELDS };
BL_SHARED enum {
    EXCHANGE_EFFORT,
    EXCHANGE_FLOW,
    EXCHANGE_WIDTH,
    EXCHANGE_PLACE,
    EXCHANGE_PERIOD,
    EXCHANGE_OFFSET,
    EXCHANGE_MEMORY,
    EXCHANGE_FIELDS
};
BL_SHARED enum { ENTRY_CALL, ENTRY_LOOP, ENTRY_GUARD };
BL_SHARED enum { SIZE_SIGNALS, SIZE_STATES, SIZE_MEMORY, SIZE_SOLVER, SIZE_FIELDS };

typedef struct {
    bl_engine *e;
    const unsigned char *bytes;
    size_t size;
    const bl_plan_section *sections;
    uint32_t section_count;
    char *message;
    size_t message_size;
} bl_loader;

static int refuse(const bl_loader *l, const char *why) {
    snprintf(l->message, l->message_size, "not a sound plan: %s", why);
    return BL_ERROR_PLAN;
}

#define REQUIRE(condition, why) \
    do { \
        if (!(condition)) return refuse(l, why); \
    } while (0)

#define TRY(call) \
    do { \
        const int try_status = (call); \
        if (try_status != BL_OK) return try_status; \
    } while (0)

void *bl_allocate(bl_engine *e, int64_t count, size_t element) {
    const size_t size = (count > 0 ? (size_t)count : 1) * element;
    bl_chunk *chunk = calloc(1, sizeof(bl_chunk) + size);
    if (!chunk) return NULL;
    chunk->size = size;
    chunk->next = e->chunks;
    e->chunks = chunk;
    return chunk + 1;
}

static int allocate(bl_loader *l, int64_t count, size_t element, void *out) {
    void *data = bl_allocate(l->e, count, element);
    if (!data) {
        snprintf(l->message, l->message_size, "no memory for %lld values of %zu bytes", (long long)count, element);
        return BL_ERROR_MEMORY;
    }
    memcpy(out, &data, sizeof data);
    return BL_OK;
}

uint64_t bl_hash(const void *bytes, size_t size) { /* FNV-1a */
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

static bool fits(int64_t first, int64_t count, int64_t total) {
    return first >= 0 && count >= 0 && first <= total && count <= total - first;
}

/* A section's elements and their number; an absent section is empty. */
static int find_section(const bl_loader *l, const char *tag, size_t element, const void *out, int64_t *count) {
    const void *data = NULL;
    *count = 0;
    for (uint32_t s = 0; s < l->section_count; s++) {
        const bl_plan_section *section = &l->sections[s];
        if (memcmp(section->tag, tag, 4) != 0) continue;
        REQUIRE(section->element == element, "a section has elements of another size");
        REQUIRE(section->offset % 8 == 0 && section->offset <= l->size, "a section starts outside the file");
        REQUIRE(section->count <= (l->size - section->offset) / element, "a section ends outside the file");
        data = l->bytes + section->offset;
        *count = (int64_t)section->count;
        break;
    }
    memcpy((void *)(uintptr_t)out, &data, sizeof data);
    return BL_OK;
}

/* Splits a section of NUL-terminated strings. */
static int load_strings(bl_loader *l, const char *tag, int64_t wanted, const char ***strings, int64_t *found) {
    const char *text = NULL;
    int64_t length = 0, n = 0;
    TRY(find_section(l, tag, 1, &text, &length));
    REQUIRE(length == 0 || text[length - 1] == '\0', "a string table does not end");
    for (int64_t i = 0; i < length; i++) n += text[i] == '\0';
    REQUIRE(wanted < 0 || n == wanted, "a string table has the wrong number of strings");
    char *copy = NULL;
    TRY(allocate(l, length, 1, &copy));
    TRY(allocate(l, n, sizeof(char *), strings));
    if (length > 0) memcpy(copy, text, (size_t)length);
    int64_t k = 0;
    for (int64_t i = 0; i < length; i++)
        if (i == 0 || copy[i - 1] == '\0') (*strings)[k++] = copy + i;
    *found = n;
    return BL_OK;
}

static int load_head(bl_loader *l) {
    bl_plan_head head;
    REQUIRE(l->size >= sizeof head, "shorter than a plan's head");
    memcpy(&head, l->bytes, sizeof head);
    REQUIRE(memcmp(head.magic, MAGIC, sizeof MAGIC) == 0, "it does not start as a plan does");
    if (head.version != BL_PLAN_VERSION) {
        snprintf(l->message, l->message_size, "plan format %u, but this engine reads format %d", (unsigned)head.version,
                 BL_PLAN_VERSION);
        return BL_ERROR_VERSION;
    }
    REQUIRE(head.size == l->size, "truncated, or longer than it says");
    REQUIRE(head.section_count <= (l->size - sizeof head) / sizeof(bl_plan_section),
            "its directory is outside the file");
#ifndef BL_FUZZING /* a fuzzer cannot guess a hash */
    REQUIRE(head.hash == bl_hash(l->bytes + sizeof head, l->size - sizeof head), "its hash does not match");
#endif
    l->sections = (const bl_plan_section *)(const void *)(l->bytes + sizeof head);
    l->section_count = head.section_count;
    /* The hash does not cover the head, so a wrong number of sections shows only here. */
    REQUIRE(head.section_count > 0 &&
                l->sections[0].offset == sizeof head + head.section_count * sizeof(bl_plan_section),
            "its directory does not end where the first section starts");
    l->e->plan_hash = head.hash;
    return BL_OK;
}

/* Without the section, steps have fixed lengths and events take effect at ticks. */
static int load_control(bl_loader *l) {
    bl_engine *e = l->e;
    const double *control = NULL;
    int64_t n = 0;
    TRY(find_section(l, "SOLV", 8, &control, &n));
    if (n == 0) return BL_OK;
    REQUIRE(n == BL_CONTROL_FIELDS, "the step control has another number of fields");
    const double relative = control[BL_CONTROL_RELATIVE], absolute = control[BL_CONTROL_ABSOLUTE];
    const double steps = control[BL_CONTROL_MAX_STEPS], events = control[BL_CONTROL_MAX_EVENTS];
    REQUIRE(relative >= 0.0 && relative < 1.0 && absolute >= 0.0 && absolute < 1.0, "a tolerance is out of range");
    REQUIRE((relative == 0.0) == (absolute == 0.0), "only one tolerance is given");
    REQUIRE(steps >= 1.0 && steps <= 1e6 && events >= 1.0 && events <= 1e6, "a limit of a tick is out of range");
    e->relative_tolerance = relative;
    e->absolute_tolerance = absolute;
    e->max_steps = (int64_t)steps;
    e->max_events = (int64_t)events;
    e->locates = control[BL_CONTROL_LOCATES] != 0.0;
    return BL_OK;
}

/* What an implicit solver knows of df/dx, and whether its matrices fit. */
static int load_jacobian(bl_loader *l) {
    bl_engine *e = l->e;
    const int32_t *pattern = NULL;
    const char *why = NULL;
    int64_t n = 0;
    if (!bl_is_implicit(e)) return BL_OK;
    TRY(find_section(l, "JPAT", 4, &pattern, &n));
    const int64_t states = e->layout.states;
    int status = BL_OK;
    const bool fits_full = states * states <= LARGEST_VALUES;
    if (n > 0 || fits_full) status = bl_load_pattern(e, pattern, n, &why);
    if (status != BL_OK) {
        refuse(l, why);
        return status;
    }
    if (e->jacobian && bl_solver_memory(e) <= LARGEST_VALUES && bl_solver_scratch(e) <= LARGEST_VALUES) return BL_OK;
    snprintf(l->message, l->message_size,
             "the Jacobian of %lld continuous states takes more memory than an engine has: use an explicit solver",
             (long long)states);
    return BL_ERROR_PLAN;
}

static int load_sizes(bl_loader *l) {
    bl_engine *e = l->e;
    const int64_t *sizes = NULL;
    const double *times = NULL, *parameters = NULL;
    int64_t n = 0;
    TRY(find_section(l, "SIZE", 8, &sizes, &n));
    REQUIRE(n == SIZE_FIELDS, "no sizes");
    TRY(find_section(l, "TIME", 8, &times, &n));
    REQUIRE(n == 2 && times[0] > 0.0 && times[0] < 1e12 && times[1] > -1e15 && times[1] < 1e15,
            "the step must be positive");
    e->step = times[0];
    e->first_start = times[1];
    TRY(find_section(l, "PARA", 8, &parameters, &e->layout.parameters));
    e->layout.signals = sizes[SIZE_SIGNALS];
    e->layout.states = sizes[SIZE_STATES];
    e->layout.memory = sizes[SIZE_MEMORY];
    for (int k = SIZE_SIGNALS; k <= SIZE_MEMORY; k++)
        REQUIRE(sizes[k] >= 0 && sizes[k] <= LARGEST_VALUES, "a size is out of range");
    REQUIRE(sizes[SIZE_SOLVER] >= 0 && sizes[SIZE_SOLVER] < BL_SOLVER_COUNT, "unknown solver");
    e->solver = (int32_t)sizes[SIZE_SOLVER];
    REQUIRE(e->relative_tolerance == 0.0 || e->solver == BL_DOPRI5 || e->solver == BL_RADAU5,
            "its solver has no error control");
    TRY(load_jacobian(l));
    const int64_t plain = e->layout.parameters + e->layout.signals + e->layout.states + e->layout.memory;
    const int64_t solver_memory = bl_solver_memory(e);
    e->layout.diagnostics = BL_EVENT_COUNTERS + (solver_memory > 0 ? BL_SOLVER_HEAD : 0);
    e->layout.total = plain + BL_EVENT_COUNTERS + solver_memory + BL_OPEN_FIELDS;
    REQUIRE(e->layout.total <= LARGEST_VALUES, "it asks for too much memory");

    TRY(allocate(l, e->layout.total, sizeof(double), &e->values));
    TRY(allocate(l, e->layout.parameters, sizeof(double), &e->first_parameters));
    if (e->layout.parameters > 0)
        memcpy(e->first_parameters, parameters, (size_t)e->layout.parameters * sizeof(double));
    e->signals = e->values + e->layout.parameters;
    e->x = e->signals + e->layout.signals;
    e->z = e->x + e->layout.states;
    e->counters = e->z + e->layout.memory;
    e->solver_memory = e->counters + BL_EVENT_COUNTERS;
    e->open = e->solver_memory + solver_memory;
    e->decision = BL_DECIDE;
    e->parts = 1;
    TRY(allocate(l, e->layout.states, sizeof(double), &e->dx));
    TRY(allocate(l, e->layout.states, sizeof(double), &e->nominals));
    for (int64_t i = 0; i < e->layout.states; i++) e->nominals[i] = 1.0;
    return allocate(l, bl_solver_scratch(e), sizeof(double), &e->stages);
}

static int load_rates(bl_loader *l) {
    bl_engine *e = l->e;
    const int64_t *pairs = NULL;
    int64_t n = 0;
    TRY(find_section(l, "RATE", 8, &pairs, &n));
    REQUIRE(n % 2 == 0 && n >= 4 && n < 1 << 24, "it has no rates");
    e->internal_solver_rate = (int32_t)(n / 2);
    e->rate_count = e->internal_solver_rate + 1;
    TRY(allocate(l, e->rate_count, sizeof(bl_rate), &e->rates));
    TRY(allocate(l, e->rate_count, sizeof(bool), &e->due));
    e->rates[e->internal_solver_rate].period = 1;
    for (int32_t r = 0; r < e->internal_solver_rate; r++) {
        e->rates[r].period = pairs[2 * r];
        e->rates[r].offset = pairs[2 * r + 1];
        REQUIRE(r < 2 ||
                    (e->rates[r].period >= 1 && e->rates[r].offset >= 0 && e->rates[r].offset < e->rates[r].period),
                "a rate has no sound period");
    }
    return BL_OK;
}

/* Fills pointers and widths for `count` ports, which must lie in slots [lowest, end). */
static int load_ports(const bl_loader *l, const int32_t *ports, int64_t port_count, int64_t first, int64_t count,
                      int64_t lowest, int64_t end, double **pointers, int32_t *widths) {
    const bl_engine *e = l->e;
    REQUIRE(fits(first, count, port_count), "a block's ports are outside the table");
    for (int64_t k = 0; k < count; k++) {
        const int64_t slot = ports[2 * (first + k)], width = ports[2 * (first + k) + 1];
        REQUIRE(slot >= lowest && width >= 1 && fits(slot, width, end), "a port is outside the signals");
        pointers[k] = e->values + slot;
        widths[k] = (int32_t)width;
    }
    return BL_OK;
}

/* Sets the work space that the kernel needs, and returns whether the plan gives it the memory that it needs. */
static bool fit_sizes(const bl_kernel *kernel, bl_block *block) {
    if (!kernel->sizes) return true;
    const bl_sizes sizes = kernel->sizes(block);
    if (sizes.memory != block->z_count || sizes.scratch < 0 || sizes.scratch > LARGEST_VALUES) return false;
    block->w_count = (int32_t)sizes.scratch;
    return true;
}

static int load_blocks(bl_loader *l) {
    bl_engine *e = l->e;
    const int32_t *records = NULL, *ports = NULL, *integers = NULL;
    const char **kernel_names = NULL;
    int64_t record_count = 0, port_count = 0, integer_count = 0, name_count = 0, n = 0;
    TRY(find_section(l, "BLKS", 4, &records, &record_count));
    TRY(find_section(l, "PORT", 4, &ports, &port_count));
    TRY(find_section(l, "INTS", 4, &integers, &integer_count));
    TRY(load_strings(l, "KERN", -1, &kernel_names, &name_count));
    REQUIRE(record_count % BLOCK_FIELDS == 0 && record_count < INT32_MAX, "the block table is ragged");
    REQUIRE(port_count % 2 == 0, "the port table is ragged");
    port_count /= 2;
    e->block_count = (int32_t)(record_count / BLOCK_FIELDS);
    TRY(load_strings(l, "PATH", e->block_count, &e->paths, &n));
    TRY(load_strings(l, "NOTE", e->block_count, &e->notes, &n));

    const bl_kernel **kernels = NULL;
    TRY(allocate(l, name_count, sizeof *kernels, &kernels));
    for (int64_t k = 0; k < name_count; k++) {
        kernels[k] = bl_find_kernel(kernel_names[k]);
        if (!kernels[k]) {
            snprintf(l->message, l->message_size,
                     "this engine has no kernel '%.40s': the plan was made by a newer biella", kernel_names[k]);
            return BL_ERROR_PLAN;
        }
    }
    int32_t *own_integers = NULL, *widths = NULL;
    double **pointers = NULL;
    int64_t used = 0;
    for (int32_t b = 0; b < e->block_count; b++) {
        const int32_t *record = records + (int64_t)b * BLOCK_FIELDS;
        REQUIRE(record[BLOCK_U_COUNT] >= 0 && record[BLOCK_Y_COUNT] >= 0, "a block's ports are outside the table");
        used += (int64_t)record[BLOCK_U_COUNT] + record[BLOCK_Y_COUNT];
        REQUIRE(used <= 4 * port_count, "the blocks share more ports than there are");
    }
    int64_t scratch_count = 0;
    TRY(allocate(l, integer_count, sizeof(int32_t), &own_integers));
    if (integer_count > 0) memcpy(own_integers, integers, (size_t)integer_count * sizeof(int32_t));
    TRY(allocate(l, used, sizeof(double *), &pointers));
    TRY(allocate(l, used, sizeof(int32_t), &widths));
    TRY(allocate(l, e->block_count, sizeof(bl_block), &e->blocks));
    TRY(allocate(l, e->block_count, sizeof(bl_block *), &e->scaled));
    TRY(allocate(l, e->block_count, sizeof(bl_kernel *), &e->kernels));
    TRY(allocate(l, e->block_count, sizeof(int32_t), &e->block_rate));
    TRY(allocate(l, e->block_count, sizeof(int32_t), &e->block_guard));

    used = 0;
    const int64_t readable = e->z + e->layout.memory - e->values;
    for (int32_t b = 0; b < e->block_count; b++) {
        const int32_t *record = records + (int64_t)b * BLOCK_FIELDS;
        bl_block *block = &e->blocks[b];
        REQUIRE(record[BLOCK_KERNEL] >= 0 && record[BLOCK_KERNEL] < name_count, "a block has no kernel");
        REQUIRE(record[BLOCK_RATE] >= 0 && record[BLOCK_RATE] <= e->internal_solver_rate, "a block has no rate");
        REQUIRE(fits(record[BLOCK_X], record[BLOCK_X_COUNT], e->layout.states), "states out of range");
        REQUIRE(fits(record[BLOCK_Z], record[BLOCK_Z_COUNT], e->layout.memory), "memory out of range");
        REQUIRE(fits(record[BLOCK_P], record[BLOCK_P_COUNT], e->layout.parameters), "parameters out of range");
        REQUIRE(fits(record[BLOCK_I], record[BLOCK_I_COUNT], integer_count), "integers out of range");
        e->kernels[b] = kernels[record[BLOCK_KERNEL]];
        const bool is_internal =
            record[BLOCK_RATE] >= 2 && e->rates[record[BLOCK_RATE]].period == 1 && e->kernels[b]->advance;
        e->block_rate[b] = is_internal ? e->internal_solver_rate : record[BLOCK_RATE];
        e->block_guard[b] = record[BLOCK_GUARD];
        block->u_count = record[BLOCK_U_COUNT];
        block->y_count = record[BLOCK_Y_COUNT];
        block->x_count = record[BLOCK_X_COUNT];
        block->z_count = record[BLOCK_Z_COUNT];
        block->p_count = record[BLOCK_P_COUNT];
        block->i_count = record[BLOCK_I_COUNT];
        block->u = (const double *const *)(pointers + used);
        block->u_width = widths + used;
        TRY(load_ports(l, ports, port_count, record[BLOCK_U], block->u_count, 0, readable, pointers + used,
                       widths + used));
        used += block->u_count;
        block->y = pointers + used;
        block->y_width = widths + used;
        TRY(load_ports(l, ports, port_count, record[BLOCK_Y], block->y_count, e->layout.parameters,
                       e->layout.parameters + e->layout.signals, pointers + used, widths + used));
        used += block->y_count;
        block->x = e->x + record[BLOCK_X];
        block->dx = e->dx + record[BLOCK_X];
        block->z = e->z + record[BLOCK_Z];
        block->p = e->values + record[BLOCK_P];
        block->i = own_integers + record[BLOCK_I];
        block->index = b;
        block->host = &e->host;
        block->message = e->block_message;
        block->offset = &e->offset;
        block->engine = e;
        block->integrates = &e->integrates;
        block->parts = &e->parts;
        const int64_t period = record[BLOCK_RATE] < 2 ? 1 : e->rates[record[BLOCK_RATE]].period;
        block->dt = (double)period * e->step;
        if (!e->kernels[b]->check(block) || !fit_sizes(e->kernels[b], block)) {
            snprintf(l->message, l->message_size, "not a sound plan: block '%.80s' does not fit its kernel '%s'",
                     e->paths[b], e->kernels[b]->name);
            return BL_ERROR_PLAN;
        }
        if (e->kernels[b]->nominals && block->x_count > 0) e->scaled[e->scaled_count++] = block;
        if (block->w_count > scratch_count) scratch_count = block->w_count;
    }
    /* Blocks run one after the other and share one work space. */
    double *scratch = NULL;
    TRY(allocate(l, scratch_count, sizeof(double), &scratch));
    for (int32_t b = 0; b < e->block_count; b++) e->blocks[b].w = scratch;
    return BL_OK;
}

/* The outputs of blocks that stand next to each other do so too. */
static void find_signals(const bl_engine *e, int32_t first, int32_t count, bl_guard *guard) {
    double *low = e->signals + e->layout.signals, *high = e->signals;
    for (int32_t b = first; b < first + count; b++) {
        const bl_block *block = &e->blocks[b];
        for (int32_t k = 0; k < block->y_count; k++) {
            if (block->y[k] < low) low = block->y[k];
            if (block->y[k] + block->y_width[k] > high) high = block->y[k] + block->y_width[k];
        }
    }
    guard->signals = low;
    guard->signal_count = high > low ? high - low : 0;
}

static int load_guards(bl_loader *l) {
    bl_engine *e = l->e;
    const int32_t *records = NULL;
    int64_t n = 0;
    TRY(find_section(l, "GARD", 4, &records, &n));
    REQUIRE(n % GUARD_FIELDS == 0 && n < INT32_MAX, "the guard table is ragged");
    e->guard_count = (int32_t)(n / GUARD_FIELDS);
    TRY(allocate(l, e->guard_count, sizeof(bl_guard), &e->guards));
    for (int32_t g = 0; g < e->guard_count; g++) {
        const int32_t *record = records + (int64_t)g * GUARD_FIELDS;
        bl_guard *guard = &e->guards[g];
        REQUIRE(record[GUARD_KIND] >= 0 && record[GUARD_KIND] <= BL_GUARD_RESET, "unknown kind of guard");
        REQUIRE(record[GUARD_EDGE] >= 0 && record[GUARD_EDGE] <= BL_EDGE_LEVEL, "unknown kind of edge");
        REQUIRE(record[GUARD_PARENT] >= -1 && record[GUARD_PARENT] < g, "a guard's parent comes after it");
        REQUIRE(fits(record[GUARD_CONTROL], 1, e->layout.parameters + e->layout.signals), "a guard has no signal");
        REQUIRE(fits(record[GUARD_BLOCK], record[GUARD_BLOCK_COUNT], e->block_count), "a guard's blocks do not exist");
        REQUIRE(fits(record[GUARD_X], record[GUARD_X_COUNT], e->layout.states), "a guard's states do not exist");
        REQUIRE(fits(record[GUARD_Z], record[GUARD_Z_COUNT], e->layout.memory), "a guard's memory does not exist");
        find_signals(e, record[GUARD_BLOCK], record[GUARD_BLOCK_COUNT], guard);
        const int64_t size =
            BL_GUARD_MEMORY + guard->signal_count + (int64_t)record[GUARD_X_COUNT] + record[GUARD_Z_COUNT];
        REQUIRE(fits(record[GUARD_MEMORY], size, e->layout.memory), "a guard's memory does not exist");
        REQUIRE(record[GUARD_MEMORY] + size <= record[GUARD_Z] ||
                    record[GUARD_Z] + record[GUARD_Z_COUNT] <= record[GUARD_MEMORY],
                "a guard shadows itself");
        guard->kind = record[GUARD_KIND];
        guard->edge = record[GUARD_EDGE];
        guard->resets = record[GUARD_RESETS];
        guard->parent = record[GUARD_PARENT];
        guard->control = e->values + record[GUARD_CONTROL];
        guard->block_first = record[GUARD_BLOCK];
        guard->block_count = record[GUARD_BLOCK_COUNT];
        guard->x = e->x + record[GUARD_X];
        guard->x_count = record[GUARD_X_COUNT];
        guard->z = e->z + record[GUARD_Z];
        guard->z_count = record[GUARD_Z_COUNT];
        guard->memory = e->z + record[GUARD_MEMORY];
    }
    for (int32_t b = 0; b < e->block_count; b++)
        REQUIRE(e->block_guard[b] >= -1 && e->block_guard[b] < e->guard_count, "a block's guard does not exist");
    return BL_OK;
}

/* Appends a call, opening a segment where rate or guard change. */
static void add_call(const bl_engine *e, bl_calls *calls, int32_t block, bl_operation run, bool fresh) {
    const int32_t rate = e->block_rate[block], guard = e->block_guard[block];
    bl_segment *last = calls->segment_count > 0 ? &calls->segments[calls->segment_count - 1] : NULL;
    if (fresh || !last || last->rate != rate || last->guard != guard) {
        last = &calls->segments[calls->segment_count++];
        last->rate = rate;
        last->guard = guard;
        last->first = calls->call_count;
        last->count = 0;
    }
    last->count++;
    calls->calls[calls->call_count].run = run;
    calls->calls[calls->call_count++].block = &e->blocks[block];
}

static int allocate_calls(bl_loader *l, bl_calls *calls, int64_t count) {
    TRY(allocate(l, count, sizeof(bl_call), &calls->calls));
    return allocate(l, count, sizeof(bl_segment), &calls->segments);
}

static int load_loops(bl_loader *l) {
    bl_engine *e = l->e;
    const int32_t *records = NULL, *body = NULL, *tears = NULL;
    int64_t n = 0, body_count = 0, tear_count = 0, scratch = 0;
    int32_t *own_tears = NULL;
    TRY(find_section(l, "LOOP", 4, &records, &n));
    TRY(find_section(l, "BODY", 4, &body, &body_count));
    TRY(find_section(l, "TEAR", 4, &tears, &tear_count));
    REQUIRE(n % LOOP_FIELDS == 0 && n < INT32_MAX, "the loop table is ragged");
    e->loop_count = (int32_t)(n / LOOP_FIELDS);
    REQUIRE(e->loop_count <= body_count || e->loop_count == 0, "a loop is empty");
    TRY(allocate(l, e->loop_count, sizeof(bl_loop), &e->loops));
    TRY(allocate(l, tear_count, sizeof(int32_t), &own_tears));
    if (tear_count > 0) memcpy(own_tears, tears, (size_t)tear_count * sizeof(int32_t));
    for (int64_t k = 0; k < tear_count; k++)
        REQUIRE(own_tears[k] >= e->layout.parameters && own_tears[k] < e->layout.parameters + e->layout.signals,
                "a loop is cut outside the signals");
    int64_t used = 0;
    for (int32_t k = 0; k < e->loop_count; k++) {
        const int32_t *record = records + (int64_t)k * LOOP_FIELDS;
        bl_loop *loop = &e->loops[k];
        REQUIRE(record[LOOP_BODY_COUNT] >= 1 && fits(record[LOOP_BODY], record[LOOP_BODY_COUNT], body_count),
                "a loop's blocks do not exist");
        used += record[LOOP_BODY_COUNT];
        REQUIRE(used <= 4 * body_count, "the loops share more blocks than there are");
        REQUIRE(record[LOOP_TEAR_COUNT] >= 1 && record[LOOP_TEAR_COUNT] <= LARGEST_TEARS &&
                    fits(record[LOOP_TEAR], record[LOOP_TEAR_COUNT], tear_count),
                "a loop is not cut");
        REQUIRE(fits(record[LOOP_START], record[LOOP_TEAR_COUNT], e->layout.memory), "a loop has no memory");
        loop->tears = own_tears + record[LOOP_TEAR];
        loop->tear_count = record[LOOP_TEAR_COUNT];
        loop->start = e->z + record[LOOP_START];
        TRY(allocate_calls(l, &loop->body, record[LOOP_BODY_COUNT]));
        for (int32_t c = 0; c < record[LOOP_BODY_COUNT]; c++) {
            const int32_t block = body[record[LOOP_BODY] + c];
            REQUIRE(block >= 0 && block < e->block_count && e->kernels[block]->output, "a loop's blocks do not exist");
            add_call(e, &loop->body, block, e->kernels[block]->output, false);
        }
        const int64_t needed = bl_loop_scratch_size(loop->tear_count);
        if (needed > scratch) scratch = needed;
    }
    return allocate(l, scratch, sizeof(double), &e->loop_scratch);
}

enum { PROGRAM_MAJOR, PROGRAM_MINOR, PROGRAM_COUPLING };

static int load_entries(bl_loader *l, const int32_t *entries, int64_t n, int kind, bl_program *program) {
    bl_engine *e = l->e;
    TRY(allocate_calls(l, &program->calls, n));
    TRY(allocate(l, n, sizeof(bl_item), &program->items));
    bool fresh = true;
    for (int64_t k = 0; k < n; k++) {
        const int32_t type = entries[2 * k], index = entries[2 * k + 1];
        bl_item item = {BL_ITEM_CALLS, index};
        if (type == ENTRY_CALL) {
            REQUIRE(index >= 0 && index < e->block_count && e->kernels[index]->output, "a program calls no block");
            REQUIRE(kind != PROGRAM_MINOR || e->block_rate[index] == BL_RATE_CONTINUOUS,
                    "a minor step calls a discrete block");
            const int64_t before = program->calls.segment_count;
            add_call(e, &program->calls, index, e->kernels[index]->output, fresh);
            fresh = false;
            if (program->calls.segment_count == before) continue;
            item.index = before;
        } else if (type == ENTRY_LOOP) {
            REQUIRE(index >= 0 && index < e->loop_count, "a program solves no loop");
            item.type = BL_ITEM_LOOP;
            fresh = true;
        } else {
            REQUIRE(type == ENTRY_GUARD && kind == PROGRAM_MAJOR && index >= 0 && index < e->guard_count,
                    "a program decides no guard");
            item.type = BL_ITEM_GUARD;
            fresh = true;
        }
        program->items[program->item_count++] = item;
    }
    program->is_plain = true;
    for (int64_t k = 0; k < program->item_count; k++)
        if (program->items[k].type != BL_ITEM_CALLS) program->is_plain = false;
    for (int64_t k = 0; k < program->calls.segment_count; k++)
        if (program->calls.segments[k].guard >= 0) program->is_plain = false;
    return BL_OK;
}

static int load_program(bl_loader *l, const char *tag, int kind, bl_program *program) {
    const int32_t *entries = NULL;
    int64_t n = 0;
    TRY(find_section(l, tag, 4, &entries, &n));
    REQUIRE(n % 2 == 0, "a program is ragged");
    return load_entries(l, entries, n / 2, kind, program);
}

/* The tables of couplings, whose records point into each other. */
typedef struct {
    const int32_t *records, *members, *signals, *inputs, *entries, *bonds;
    int64_t record_count, member_count, signal_count, input_count, entry_count, bond_count;
    int64_t room; /* taken for all couplings together */
} bl_coupling_tables;

static int find_table(const bl_loader *l, const char *tag, int64_t fields, const void *out, int64_t *count) {
    TRY(find_section(l, tag, 4, out, count));
    REQUIRE(*count % fields == 0 && *count < INT32_MAX, "a table of couplings is ragged");
    *count /= fields;
    if (*count == 0) { /* so that a place in it can be computed */
        static const int32_t nothing = 0;
        const void *data = &nothing;
        memcpy((void *)(uintptr_t)out, &data, sizeof data);
    }
    return BL_OK;
}

static int take_room(bl_loader *l, bl_coupling_tables *tables, int64_t count, double **out) {
    REQUIRE(count >= 0 && count <= LARGEST_VALUES, "the couplings ask for too much memory");
    tables->room += count;
    REQUIRE(tables->room <= LARGEST_VALUES, "the couplings ask for too much memory");
    return allocate(l, count, sizeof(double), out);
}

static int load_coupled_signals(bl_loader *l, bl_coupling *c, const int32_t *records) {
    bl_engine *e = l->e;
    TRY(allocate(l, c->signal_count, sizeof(bl_coupled_signal), &c->signals));
    int64_t at = 0;
    for (int32_t s = 0; s < c->signal_count; s++) {
        const int32_t *record = records + (int64_t)s * COUPLED_FIELDS;
        bl_coupled_signal *signal = &c->signals[s];
        REQUIRE(record[COUPLED_WIDTH] >= 1 && record[COUPLED_SLOT] >= e->layout.parameters &&
                    fits(record[COUPLED_SLOT], record[COUPLED_WIDTH], e->layout.parameters + e->layout.signals),
                "a coupled signal is outside the signals");
        REQUIRE(record[COUPLED_LAST] >= BL_COUPLED_HELD && record[COUPLED_LAST] < c->member_count,
                "a coupled signal depends on no member");
        REQUIRE(record[COUPLED_DIRECT] >= BL_COUPLED_HELD && record[COUPLED_DIRECT] <= record[COUPLED_LAST],
                "a coupled signal comes from no member");
        signal->now = e->values + record[COUPLED_SLOT];
        signal->width = record[COUPLED_WIDTH];
        signal->last = record[COUPLED_LAST];
        signal->direct = record[COUPLED_DIRECT];
        signal->at = (int32_t)at;
        signal->unknown = -1;
        at += signal->width;
        REQUIRE(at <= LARGEST_VALUES, "a coupling has too many signals");
    }
    c->element_count = (int32_t)at;
    return BL_OK;
}

/* The inputs of a member that change within a step; the others keep their own pointers, and get input derivatives in link_input_derivatives. */
static int load_member_inputs(bl_loader *l, bl_coupling_tables *tables, bl_coupling *c, int32_t position,
                              const int32_t *records) {
    bl_member *m = &c->members[position];
    const bl_block *b = m->block;
    int64_t elements = 0;
    double *polynomial = NULL;
    TRY(allocate(l, m->port_count, sizeof(bl_coupled_port), &m->ports));
    for (int32_t n = 0; n < m->port_count; n++) {
        const int32_t port = records[n * INPUT_FIELDS + INPUT_PORT], signal = records[n * INPUT_FIELDS + INPUT_SIGNAL];
        REQUIRE(signal >= 0 && signal < c->signal_count, "a member reads no signal");
        bl_coupled_signal *source = &c->signals[signal];
        if (b)
            REQUIRE(port >= 0 && port < b->u_count && b->u[port] == source->now && b->u_width[port] == source->width,
                    "a member reads another signal");
        if (source->last >= position && source->unknown < 0) {
            source->unknown = c->unknown_count;
            c->unknown_count += source->width;
            REQUIRE(c->unknown_count <= LARGEST_UNKNOWNS || c->method != BL_NEWTON, "a coupling has too many unknowns");
        }
        m->ports[n].port = b ? port : -1;
        m->ports[n].signal = signal;
        m->ports[n].carried = b && records[n * INPUT_FIELDS + INPUT_CARRIED] != 0;
        elements += source->width;
    }
    TRY(take_room(l, tables, 4 * elements, &polynomial));
    for (int32_t n = 0; n < m->port_count; n++) {
        const int32_t width = c->signals[m->ports[n].signal].width;
        m->ports[n].value = polynomial;
        m->ports[n].first = polynomial + width;
        m->ports[n].second = polynomial + 2 * (int64_t)width;
        m->ports[n].end = polynomial + 3 * (int64_t)width;
        polynomial += 4 * (int64_t)width;
    }
    if (!b) return BL_OK;
    TRY(allocate(l, b->u_count, sizeof(double *), &m->u_end));
    TRY(allocate(l, b->u_count, sizeof(double *), &m->u));
    TRY(allocate(l, b->u_count, sizeof(double *), &m->u1));
    TRY(allocate(l, b->u_count, sizeof(double *), &m->u2));
    m->own_u = b->u;
    for (int32_t k = 0; k < b->u_count; k++) m->u[k] = m->u_end[k] = b->u[k];
    for (int32_t n = 0; n < m->port_count; n++) {
        m->u[m->ports[n].port] = m->ports[n].value;
        m->u_end[m->ports[n].port] = m->ports[n].end;
    }
    return BL_OK;
}

/* A member's block, which is in no other coupling; all members of one are due together. */
static int load_member(bl_loader *l, bl_coupling_tables *tables, bl_coupling *c, int32_t position,
                       const int32_t *record, bool *taken) {
    bl_engine *e = l->e;
    bl_member *m = &c->members[position];
    const int32_t number = record[MEMBER_BLOCK];
    int32_t rate = BL_RATE_CONTINUOUS;
    if (number == -1) {
        REQUIRE(!e->states_are_coupled, "the states are coupled twice");
        e->states_are_coupled = true;
        m->state_count = e->layout.states;
        for (int32_t b = 0; b < e->block_count; b++)
            if (e->blocks[b].x_count > 0) m->state_count += e->blocks[b].z_count;
        REQUIRE(m->state_count <= LARGEST_VALUES, "it asks for too much memory");
    } else {
        REQUIRE(number >= 0 && number < e->block_count && e->kernels[number]->advance && e->block_guard[number] < 0 &&
                    e->block_rate[number] != BL_RATE_CONSTANT && !taken[number],
                "a coupling's member takes no internal steps");
        taken[number] = true;
        m->block = &e->blocks[number];
        m->state_count = m->block->z_count;
        rate = e->block_rate[number];
    }
    const int64_t period = rate == BL_RATE_CONTINUOUS ? 1 : e->rates[rate].period;
    if (position == 0) {
        c->rate = rate;
        c->period = period;
    }
    REQUIRE(c->period == period && (period == 1 || c->rate == rate), "members of a coupling have different periods");
    m->input_derivatives = number == -1 || record[MEMBER_INPUT_DERIVATIVES] != 0;
    return take_room(l, tables, BL_KEEP_COUNT * m->state_count, &m->kept);
}

static int load_bonds(bl_loader *l, bl_coupling *c, const int32_t *records) {
    bl_engine *e = l->e;
    TRY(allocate(l, c->bond_count, sizeof(bl_bond), &c->bonds));
    for (int32_t n = 0; n < c->bond_count; n++) {
        const int32_t *record = records + (int64_t)n * BOND_FIELDS;
        for (int side = BOND_EFFORT_MEMBER; side <= BOND_FLOW_MEMBER; side += 2) {
            REQUIRE(record[side] >= 0 && record[side] < c->member_count, "a bond joins no members");
            REQUIRE(record[side + 1] >= 0 && record[side + 1] < c->members[record[side]].port_count,
                    "a bond joins no inputs");
        }
        REQUIRE(fits(record[BOND_MEMORY], BL_BOND_MEMORY, e->layout.memory), "a bond has no memory");
        c->bonds[n].effort = &c->members[record[BOND_EFFORT_MEMBER]].ports[record[BOND_EFFORT]];
        c->bonds[n].flow = &c->members[record[BOND_FLOW_MEMBER]].ports[record[BOND_FLOW]];
        c->bonds[n].is_place = record[BOND_PLACE] != 0;
        c->bonds[n].memory = e->z + record[BOND_MEMORY];
        REQUIRE(c->signals[c->bonds[n].effort->signal].width == c->signals[c->bonds[n].flow->signal].width,
                "a bond joins inputs of different widths");
    }
    return BL_OK;
}

static int load_coupling(bl_loader *l, bl_coupling_tables *tables, const int32_t *record, bl_coupling *c, bool *taken) {
    bl_engine *e = l->e;
    c->method = record[COUPLING_METHOD];
    c->hold = record[COUPLING_EXTRAPOLATION];
    c->iterations = record[COUPLING_ITERATIONS];
    c->strict = record[COUPLING_STRICT] != 0;
    c->rolls_back = record[COUPLING_ROLLS_BACK] != 0;
    c->member_count = record[COUPLING_MEMBER_COUNT];
    c->signal_count = record[COUPLING_SIGNAL_COUNT];
    c->bond_count = record[COUPLING_BOND_COUNT];
    REQUIRE(c->method >= 0 && c->method < BL_COUPLING_METHODS && c->hold >= 0 && c->hold <= 2 && c->iterations >= 1 &&
                c->iterations <= 1000,
            "a coupling has no method");
    REQUIRE(record[COUPLING_HALVINGS] >= 0 && record[COUPLING_HALVINGS] <= LARGEST_HALVINGS,
            "a coupling halves too often");
    c->smallest = ldexp(1.0, -record[COUPLING_HALVINGS]);
    c->group = record[COUPLING_GROUP];
    REQUIRE(c->group >= 0 && c->group <= tables->record_count, "a coupling is in no group");
    REQUIRE(c->member_count >= 1 && fits(record[COUPLING_MEMBER], c->member_count, tables->member_count),
            "a coupling has no members");
    REQUIRE(fits(record[COUPLING_SIGNAL], c->signal_count, tables->signal_count), "a coupling's signals do not exist");
    REQUIRE(fits(record[COUPLING_ENTRY], record[COUPLING_ENTRY_COUNT], tables->entry_count),
            "a coupling's program does not exist");
    REQUIRE(fits(record[COUPLING_BOND], c->bond_count, tables->bond_count), "a coupling's bonds do not exist");
    TRY(load_coupled_signals(l, c, tables->signals + (int64_t)record[COUPLING_SIGNAL] * COUPLED_FIELDS));
    TRY(allocate(l, c->member_count, sizeof(bl_member), &c->members));
    for (int32_t j = 0; j < c->member_count; j++) {
        const int32_t *member = tables->members + (int64_t)(record[COUPLING_MEMBER] + j) * MEMBER_FIELDS;
        REQUIRE(fits(member[MEMBER_INPUT], member[MEMBER_INPUT_COUNT], tables->input_count),
                "a member's inputs do not exist");
        TRY(load_member(l, tables, c, j, member, taken));
        c->members[j].port_count = member[MEMBER_INPUT_COUNT];
        TRY(load_member_inputs(l, tables, c, j, tables->inputs + (int64_t)member[MEMBER_INPUT] * INPUT_FIELDS));
    }
    TRY(load_entries(l, tables->entries + (int64_t)record[COUPLING_ENTRY] * 2, record[COUPLING_ENTRY_COUNT],
                     PROGRAM_COUPLING, &c->program));
    TRY(load_bonds(l, c, tables->bonds + (int64_t)record[COUPLING_BOND] * BOND_FIELDS));
    c->memory_count = bl_coupling_memory(c->method, c->element_count, c->unknown_count);
    REQUIRE(fits(record[COUPLING_MEMORY], c->memory_count, e->layout.memory), "a coupling has no memory");
    c->memory = e->z + record[COUPLING_MEMORY];
    const int64_t n = c->element_count;
    double *room = NULL;
    TRY(take_room(l, tables, c->memory_count + 5 * n, &room));
    c->kept_memory = room;
    c->start = room + c->memory_count;
    c->guess = c->start + n;
    c->scale = c->guess + n;
    c->halves = c->scale + n;
    c->quarters = c->halves + n;
    TRY(take_room(l, tables, bl_coupling_history(c->element_count) + n, &c->whole));
    return take_room(l, tables, bl_coupling_scratch(c->method, c->unknown_count), &c->work);
}

static int load_couplings(bl_loader *l) {
    bl_engine *e = l->e;
    bl_coupling_tables tables = {0};
    const double *numbers = NULL;
    int64_t n = 0, used = 0;
    bool *taken = NULL;
    TRY(find_table(l, "COUP", COUPLING_FIELDS, &tables.records, &tables.record_count));
    TRY(find_table(l, "CMEM", MEMBER_FIELDS, &tables.members, &tables.member_count));
    TRY(find_table(l, "CSIG", COUPLED_FIELDS, &tables.signals, &tables.signal_count));
    TRY(find_table(l, "CINP", INPUT_FIELDS, &tables.inputs, &tables.input_count));
    TRY(find_table(l, "CPRG", 2, &tables.entries, &tables.entry_count));
    TRY(find_table(l, "BOND", BOND_FIELDS, &tables.bonds, &tables.bond_count));
    TRY(find_section(l, "CTOL", 8, &numbers, &n));
    if (tables.record_count == 0) return BL_OK;
    REQUIRE(n == 2 * tables.record_count + 1 && numbers[n - 1] >= 0.0 && numbers[n - 1] < 1e15,
            "the couplings' numbers are missing");
    e->estimate_every = (int64_t)numbers[n - 1];
    TRY(allocate(l, e->block_count, sizeof(bool), &taken));
    TRY(allocate(l, tables.record_count, sizeof(bl_coupling), &e->couplings));
    for (int64_t k = 0; k < tables.record_count; k++) {
        const int32_t *record = tables.records + k * COUPLING_FIELDS;
        /* A plan cannot make much of little: no record of a table is used by many couplings. */
        used += (int64_t)record[COUPLING_MEMBER_COUNT] + record[COUPLING_SIGNAL_COUNT] + record[COUPLING_ENTRY_COUNT];
        REQUIRE(used <= 4 * (tables.member_count + tables.signal_count + tables.entry_count),
                "the couplings share their tables");
        const double *tolerances = numbers + 2 * k;
        REQUIRE(tolerances[0] > 0.0 && tolerances[0] < 1.0 && tolerances[1] >= 0.0 && tolerances[1] < 1.0,
                "a coupling has no tolerance");
        e->couplings[k].tolerance = tolerances[0];
        e->couplings[k].step_tolerance = tolerances[1];
        TRY(load_coupling(l, &tables, record, &e->couplings[k], taken));
        e->coupling_count++;
    }
    return allocate(l, e->layout.signals, sizeof(double), &e->coupling_signals);
}

/* Powers between blocks that are in no coupling. */
static int load_exchanges(bl_loader *l) {
    bl_engine *e = l->e;
    const int32_t *records = NULL;
    int64_t count = 0;
    TRY(find_table(l, "EXCH", EXCHANGE_FIELDS, &records, &count));
    TRY(allocate(l, count, sizeof(bl_exchange), &e->exchanges));
    for (int64_t n = 0; n < count; n++) {
        const int32_t *record = records + n * EXCHANGE_FIELDS, width = record[EXCHANGE_WIDTH];
        bl_exchange *x = &e->exchanges[n];
        const int64_t end = e->layout.parameters + e->layout.signals;
        REQUIRE(width >= 1 && fits(record[EXCHANGE_EFFORT], width, end) && fits(record[EXCHANGE_FLOW], width, end),
                "an exchange is outside the signals");
        REQUIRE(record[EXCHANGE_PERIOD] >= 1 && record[EXCHANGE_OFFSET] >= 0 &&
                    record[EXCHANGE_OFFSET] < record[EXCHANGE_PERIOD],
                "an exchange has no sound period");
        REQUIRE(fits(record[EXCHANGE_MEMORY], BL_BOND_MEMORY + 1 + 2 * (int64_t)width, e->layout.memory),
                "an exchange has no memory");
        x->effort = e->values + record[EXCHANGE_EFFORT];
        x->flow = e->values + record[EXCHANGE_FLOW];
        x->width = width;
        x->is_place = record[EXCHANGE_PLACE] != 0;
        x->period = record[EXCHANGE_PERIOD];
        x->offset = record[EXCHANGE_OFFSET];
        x->memory = e->z + record[EXCHANGE_MEMORY];
    }
    e->exchange_count = (int32_t)count;
    return BL_OK;
}

static bool is_coupled(const bl_engine *e, int32_t block) {
    for (int32_t n = 0; n < e->coupling_count; n++)
        for (int32_t j = 0; j < e->couplings[n].member_count; j++)
            if (e->couplings[n].members[j].block == &e->blocks[block]) return true;
    return false;
}

/* The lists that need no order: every block with such an operation, as numbered. */
static int collect_operations(bl_loader *l) {
    bl_engine *e = l->e;
    const int64_t n = e->block_count;
    TRY(allocate_calls(l, &e->derivatives, n));
    TRY(allocate_calls(l, &e->termination_checks, n));
    TRY(allocate_calls(l, &e->updates, n));
    TRY(allocate_calls(l, &e->advances, n));
    TRY(allocate_calls(l, &e->projects, n));
    TRY(allocate(l, n, sizeof(bl_block *), &e->ticking));
    for (int32_t b = 0; b < e->block_count; b++) {
        const bl_kernel *kernel = e->kernels[b];
        const bl_block *block = &e->blocks[b];
        if (kernel->derivative && block->x_count > 0) add_call(e, &e->derivatives, b, kernel->derivative, false);
        if (kernel->project && block->x_count > 0) {
            add_call(e, &e->projects, b, kernel->project, false);
            e->projects_read_inputs |= kernel->project_reads_inputs != 0;
        }
        if (kernel->tick_event) e->ticking[e->ticking_count++] = &e->blocks[b];
        if (kernel->advance && !is_coupled(e, b)) add_call(e, &e->advances, b, NULL, false);
        /* An update with no state to change can only judge: it goes first, so that a Stop or a failed
           Assertion finds the tick uncommitted. */
        if (kernel->update)
            add_call(e, block->x_count + block->z_count > 0 ? &e->updates : &e->termination_checks, b, kernel->update,
                     false);
    }
    return BL_OK;
}

/* Makes room for the rates of change of inputs. */
static int load_input_rates(bl_loader *l) {
    bl_engine *e = l->e;
    int64_t at = 0;
    for (int32_t n = 0; n < e->rated_count; n++)
        for (int32_t k = 0; k < e->rated[n].block->u_count; k++) e->rated_width += e->rated[n].block->u_width[k];
    if (e->rated_count == 0) return BL_OK;
    REQUIRE(e->rated_width <= LARGEST_VALUES, "it has too many crossing functions");
    TRY(allocate(l, e->rated_width, sizeof(double), &e->input_rates));
    TRY(allocate(l, e->rated_width, sizeof(double), &e->rate_start));
    TRY(allocate(l, e->rated_width, sizeof(double), &e->rate_middle));
    TRY(allocate(l, BL_PROBES * e->rated_width, sizeof(double), &e->rate_probes));
    TRY(allocate(l, e->rated_width, sizeof(double *), &e->rated_inputs));
    const int64_t work = 2 * e->layout.states + e->layout.signals + e->crossing_count;
    TRY(allocate(l, work, sizeof(double), &e->rate_work));
    TRY(allocate(l, work, sizeof(double), &e->check_work));
    for (int32_t n = 0; n < e->rated_count; n++) {
        bl_rated *r = &e->rated[n];
        const bl_block *b = r->block;
        TRY(allocate(l, b->u_count, sizeof(double *), &r->u1));
        r->first = at;
        r->predict = e->kernels[b->index]->predict;
        r->stays = e->kernels[b->index]->stays;
        r->guard = e->block_guard[b->index];
        for (int32_t k = 0; k < b->u_count; k++) {
            r->u1[k] = e->input_rates + at;
            for (int32_t i = 0; i < b->u_width[k]; i++) e->rated_inputs[at++] = b->u[k] + i;
        }
    }
    return BL_OK;
}

/* Gives a block modes, if it has crossing functions; `count` is their number so far. */
static int locate_block(bl_loader *l, int32_t block, bool *seen) {
    bl_engine *e = l->e;
    const bl_kernel *kernel = e->kernels[block];
    bl_block *b = &e->blocks[block];
    if (seen[block]) return BL_OK;
    seen[block] = true;
    REQUIRE(e->block_rate[block] == BL_RATE_CONTINUOUS, "events of a discrete block are located");
    const int32_t count = kernel->crossing_count ? kernel->crossing_count(b) : 0;
    REQUIRE(count >= 0 && e->crossing_count + count <= LARGEST_VALUES, "it has too many crossing functions");
    if (kernel->crossing_count && count == 0 && !kernel->tick_event) return BL_OK; /* this one is smooth */
    if (kernel->next_instant) e->timed[e->timed_count++] = b;
    if (kernel->event) e->eventful[e->eventful_count++] = b;
    if (kernel->settle) e->settling[e->settling_count++] = b;
    if (count == 0) return BL_OK;
    b->crossing_count = count;
    e->crossing_count += count;
    e->located[e->located_count++] = b;
    if (kernel->crossings) e->apart[e->apart_count++] = b;
    if (kernel->crossings && kernel->input_rates) e->rated[e->rated_count++].block = b;
    return BL_OK;
}

/* Section CROS is a program that leads to all crossing functions; section EVNT has all blocks with crossing functions, instants
   known in advance, or states that change at events. */
static int load_events(bl_loader *l) {
    bl_engine *e = l->e;
    const int32_t *blocks = NULL;
    int64_t n = 0;
    bool *seen = NULL;
    TRY(find_section(l, "EVNT", 4, &blocks, &n));
    if (n == 0 || !e->locates || e->states_are_coupled) return BL_OK;
    TRY(load_program(l, "CROS", PROGRAM_MINOR, &e->crossing_program));
    TRY(allocate(l, e->block_count, sizeof(bool), &seen));
    TRY(allocate(l, e->block_count, sizeof(bl_block *), &e->located));
    TRY(allocate(l, e->block_count, sizeof(bl_block *), &e->apart));
    TRY(allocate(l, e->block_count, sizeof(bl_block *), &e->eventful));
    TRY(allocate(l, e->block_count, sizeof(bl_block *), &e->settling));
    TRY(allocate(l, e->block_count, sizeof(bl_block *), &e->timed));
    TRY(allocate(l, e->block_count, sizeof(bl_rated), &e->rated));
    for (int64_t k = 0; k < n; k++) {
        REQUIRE(blocks[k] >= 0 && blocks[k] < e->block_count, "events are located of no block");
        TRY(locate_block(l, blocks[k], seen));
    }
    TRY(allocate(l, e->crossing_count, sizeof(double), &e->mode));
    TRY(allocate(l, e->crossing_count, sizeof(double), &e->crossing));
    TRY(allocate(l, e->crossing_count, sizeof(double), &e->crossing_a));
    TRY(allocate(l, e->crossing_count, sizeof(double), &e->crossing_b));
    TRY(allocate(l, e->layout.states, sizeof(double), &e->step_start));
    TRY(load_input_rates(l));
    int64_t used = 0;
    for (int32_t k = 0; k < e->located_count; k++) {
        bl_block *b = e->located[k];
        b->modes = (bl_modes){e->mode + used, e->crossing + used, &e->decision};
        used += b->crossing_count;
    }
    /* An event may concern several blocks, and be an instant too. */
    e->event_capacity = e->max_events * (1 + (int64_t)e->located_count);
    return BL_OK;
}

/* The entries of a section whose blocks change while a step is integrated, those that are `needed`. */
static int load_stage_entries(bl_loader *l, const char *tag, const bool *needed, bl_program *program) {
    const bl_engine *e = l->e;
    const int32_t *entries = NULL;
    int32_t *kept = NULL;
    int64_t n = 0, count = 0;
    TRY(find_section(l, tag, 4, &entries, &n));
    TRY(allocate(l, n, sizeof(int32_t), &kept));
    for (int64_t k = 0; k < n / 2; k++) {
        const int32_t type = entries[2 * k], index = entries[2 * k + 1];
        const bl_calls *body = type == ENTRY_LOOP ? &e->loops[index].body : NULL;
        if (body ? body->call_count > 0 && !needed[body->calls[0].block->index] : !needed[index]) continue;
        kept[2 * count] = type;
        kept[2 * count++ + 1] = index;
    }
    return load_entries(l, kept, count, PROGRAM_MINOR, program);
}

/* Which states are fast: sections FAST, the number of substeps and the fast blocks, and FPRG and SPRG, the programs that lead to the
   derivatives of both parts. */
static int load_parts(bl_loader *l, const int32_t *fast, int64_t count, const bool *needed) {
    bl_engine *e = l->e;
    bl_multirate *m = e->multirate;
    bool *is_fast = NULL, *moves = NULL; /* of each block, of each state */
    TRY(allocate(l, e->block_count, sizeof(bool), &is_fast));
    TRY(allocate(l, e->layout.states, sizeof(bool), &moves));
    TRY(allocate(l, e->layout.states, sizeof(int32_t), &m->slow_states));
    TRY(allocate(l, e->layout.states, sizeof(int32_t), &m->fast_states));
    TRY(allocate_calls(l, &m->slow.derivatives, e->block_count));
    TRY(allocate_calls(l, &m->fast.derivatives, e->block_count));
    for (int64_t k = 0; k < count; k++) {
        REQUIRE(fast[k] >= 0 && fast[k] < e->block_count && !is_fast[fast[k]], "substeps are taken by no block");
        const bl_block *b = &e->blocks[fast[k]];
        REQUIRE(b->x_count > 0 && e->kernels[fast[k]]->derivative, "substeps are taken by a block without states");
        is_fast[fast[k]] = true;
        for (int32_t i = 0; i < b->x_count; i++) moves[b->x - e->x + i] = true;
    }
    for (int64_t c = 0; c < e->derivatives.call_count; c++) {
        const bl_call *call = &e->derivatives.calls[c];
        bl_part *part = is_fast[call->block->index] ? &m->fast : &m->slow;
        add_call(e, &part->derivatives, call->block->index, call->run, false);
    }
    for (int64_t i = 0; i < e->layout.states; i++) {
        if (moves[i]) m->fast_states[m->fast_count++] = (int32_t)i;
        else m->slow_states[m->slow_count++] = (int32_t)i;
    }
    TRY(load_program(l, "FPRG", PROGRAM_MINOR, &m->fast.program));
    TRY(load_program(l, "SPRG", PROGRAM_MINOR, &m->slow.program));
    TRY(load_stage_entries(l, "FPRG", needed, &m->fast.stage_program));
    return load_stage_entries(l, "SPRG", needed, &m->slow.stage_program);
}

/* Section SAMP: calls of the slow blocks whose outputs are interpolated. Sections FCRO and FEVT: the program that leads to crossing functions
   of fast states, and the blocks that have them. */
static int load_border(bl_loader *l) {
    bl_engine *e = l->e;
    bl_multirate *m = e->multirate;
    const int32_t *blocks = NULL;
    int64_t n = 0;
    TRY(load_program(l, "SAMP", PROGRAM_MINOR, &m->sampling));
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) TRY(allocate(l, m->sample_width, sizeof(double *), &m->samples));
        m->sample_width = 0;
        for (int64_t c = 0; c < m->sampling.calls.call_count; c++) {
            const bl_block *b = m->sampling.calls.calls[c].block;
            for (int32_t k = 0; k < b->y_count; k++) {
                for (int32_t i = 0; i < b->y_width[k] && pass == 1; i++) m->samples[m->sample_width + i] = b->y[k] + i;
                m->sample_width += b->y_width[k];
                REQUIRE(m->sample_width <= LARGEST_VALUES, "it asks for too much memory");
            }
        }
    }
    if (e->crossing_count == 0) return BL_OK;
    TRY(load_program(l, "FCRO", PROGRAM_MINOR, &m->crossing_program));
    TRY(find_section(l, "FEVT", 4, &blocks, &n));
    TRY(allocate(l, n, sizeof(bl_block *), &m->located));
    for (int64_t k = 0; k < n; k++) {
        REQUIRE(blocks[k] >= 0 && blocks[k] < e->block_count, "events are located of no block");
        const bl_kernel *kernel = e->kernels[blocks[k]];
        REQUIRE(!kernel->input_rates, "events of the fast part depend on rates of change");
        if (e->blocks[blocks[k]].modes.mode) m->located[m->located_count++] = &e->blocks[blocks[k]];
    }
    return BL_OK;
}

/* Section DRIV: pairs of a slow block and one of its inputs, which depends on fast states; those of a block follow one another. */
static int load_driven(bl_loader *l) {
    bl_engine *e = l->e;
    bl_multirate *m = e->multirate;
    const int32_t *pairs = NULL;
    int64_t n = 0, width = 0, room = 0;
    int32_t *readings = NULL;
    TRY(find_section(l, "DRIV", 4, &pairs, &n));
    REQUIRE(n % 2 == 0, "the table of driven blocks is ragged");
    for (int64_t k = 0; k < n / 2; k++) {
        const int32_t block = pairs[2 * k], port = pairs[2 * k + 1];
        REQUIRE(block >= 0 && block < e->block_count && e->kernels[block]->derivative && e->kernels[block]->output &&
                    e->blocks[block].x_count > 0 && port >= 0 && port < e->blocks[block].u_count,
                "no input is driven");
        REQUIRE(e->blocks[block].u[port] >= e->signals &&
                    e->blocks[block].u[port] + e->blocks[block].u_width[port] <= e->signals + e->layout.signals,
                "a driven input is no signal");
        width += e->blocks[block].u_width[port];
        REQUIRE(width <= LARGEST_VALUES, "it asks for too much memory");
    }
    TRY(allocate(l, width, sizeof(double *), &m->readings));
    TRY(allocate(l, width, sizeof(int32_t), &readings));
    TRY(allocate(l, n / 2, sizeof(bl_driven), &m->driven));
    for (int64_t k = 0; k < n / 2; k++) {
        const bl_block *b = &e->blocks[pairs[2 * k]];
        bl_driven *driven = m->driven_count > 0 ? &m->driven[m->driven_count - 1] : NULL;
        if (!driven || driven->block != b) {
            driven = &m->driven[m->driven_count++];
            *driven =
                (bl_driven){.block = &e->blocks[pairs[2 * k]], .readings = readings + m->reading_count, .sample = -1};
        }
        for (int32_t i = 0; i < b->u_width[pairs[2 * k + 1]]; i++) {
            readings[m->reading_count] = (int32_t)m->reading_count;
            m->readings[m->reading_count++] = b->u[pairs[2 * k + 1]] + i;
            driven->count++;
        }
    }
    for (int64_t d = 0; d < m->driven_count; d++) {
        bl_driven *driven = &m->driven[d];
        int64_t at = 0;
        for (int64_t c = 0; c < m->sampling.calls.call_count; c++) {
            const bl_block *b = m->sampling.calls.calls[c].block;
            if (b == driven->block) driven->sample = at;
            for (int32_t k = 0; k < b->y_count; k++) at += b->y_width[k];
        }
        for (int32_t k = 0; k < driven->block->y_count; k++) driven->width += driven->block->y_width[k];
        if (driven->sample >= 0) m->samples_change = true;
        else driven->width = 0;
        const int64_t size = driven->count * (driven->block->x_count + 3 * driven->width);
        room += size;
        REQUIRE(size <= LARGEST_VALUES && room <= LARGEST_VALUES, "it asks for too much memory");
        TRY(allocate(l, size, sizeof(double), &driven->gains));
        driven->start = driven->gains + driven->count * (int64_t)driven->block->x_count;
        driven->middle = driven->start + driven->count * driven->width;
        driven->end = driven->middle + driven->count * driven->width;
    }
    return BL_OK;
}

static int load_multirate(bl_loader *l, const bool *needed) {
    enum { LARGEST_SUBSTEPS = 100000 };
    bl_engine *e = l->e;
    const int32_t *fast = NULL;
    int64_t n = 0;
    TRY(find_section(l, "FAST", 4, &fast, &n));
    if (n == 0) return BL_OK;
    REQUIRE(bl_can_multirate(e), "its solver takes no substeps");
    REQUIRE(n >= 2 && fast[0] >= 1 && fast[0] <= LARGEST_SUBSTEPS, "it has no number of substeps");
    TRY(allocate(l, 1, sizeof(bl_multirate), &e->multirate));
    e->multirate->substeps = fast[0];
    TRY(load_parts(l, fast + 1, n - 1, needed));
    TRY(load_border(l));
    TRY(load_driven(l));
    const int64_t nodes = bl_multirate_nodes(e);
    REQUIRE(bl_multirate_scratch(e) <= LARGEST_VALUES && nodes <= LARGEST_VALUES, "it asks for too much memory");
    TRY(allocate(l, bl_multirate_scratch(e), sizeof(double), &e->multirate->work));
    return allocate(l, nodes, sizeof(double), &e->multirate->nodes);
}

static int load_stages(bl_loader *l) {
    bl_engine *e = l->e;
    bool *needed = NULL;
    TRY(allocate(l, e->block_count, sizeof(bool), &needed));
    if (bl_find_stage_blocks(e, needed) != BL_OK) return BL_ERROR_MEMORY;
    TRY(load_stage_entries(l, "MINR", needed, &e->stage_program));
    return load_multirate(l, needed);
}

/* Room for the events of a tick: those that are located, and those that blocks with an internal solver note. */
static int make_log(bl_loader *l) {
    bl_engine *e = l->e;
    e->has_events = e->located_count > 0 || e->timed_count > 0;
    for (int32_t k = 0; k < e->block_count; k++)
        if (e->kernels[k]->advance && e->kernels[k]->describe_event) {
            e->event_capacity += BL_NOTED_EVENTS;
            e->has_events = true;
        }
    if (e->event_capacity > LARGEST_LOG) e->event_capacity = LARGEST_LOG;
    return allocate(l, e->event_capacity, sizeof(bl_event), &e->events);
}

/* Gives modes to the blocks without memory whose events are not located, for evaluations in which all modes are kept. */
static int load_idle_modes(bl_loader *l) {
    bl_engine *e = l->e;
    int64_t used = 0;
    TRY(allocate(l, e->block_count, sizeof(bl_block *), &e->idle));
    TRY(allocate(l, e->block_count, sizeof(bl_modes), &e->idle_modes));
    for (int pass = 0; pass < 2; pass++) {
        double *values = NULL;
        if (pass == 1) TRY(allocate(l, 2 * used, sizeof(double), &values));
        used = 0;
        for (int32_t k = 0; k < e->block_count; k++) {
            bl_block *b = &e->blocks[k];
            const bl_kernel *kernel = e->kernels[k];
            if (b->modes.mode || !kernel->crossing_count || kernel->crossings || kernel->event || b->z_count > 0)
                continue;
            const int32_t count = kernel->crossing_count(b);
            REQUIRE(count >= 0 && used + count <= LARGEST_VALUES, "it has too many crossing functions");
            if (count == 0) continue;
            if (pass == 1) {
                e->idle[e->idle_count] = b;
                e->idle_modes[e->idle_count++] = (bl_modes){values + 2 * used, values + 2 * used + count, &e->decision};
            }
            used += count;
        }
    }
    return BL_OK;
}

/* Notes the rates of discrete blocks that the inputs of a block come from. */
static void note_rates(bl_engine *e, const int32_t *maker, const bl_block *b) {
    for (int32_t k = 0; k < b->u_count; k++) {
        const int32_t from = maker[b->u[k] - e->values];
        if (from > 0 && e->block_rate[from - 1] >= 2) e->ends_steps[e->block_rate[from - 1]] = true;
    }
}

/* Whether ticks change what a block computes, other than through its inputs and its events. */
static bool changes_at_ticks(const bl_engine *e, const bl_block *b) {
    const bl_kernel *kernel = e->kernels[b->index];
    return kernel->update && (!kernel->event || kernel->remembers);
}

/* Finds where steps under error control must end. Blocks that states depend on may change at ticks in other ways than by their inputs: by
   guards, by memory that each tick updates, by a projection. Then every tick ends a step. */
static int find_step_ends(bl_loader *l) {
    bl_engine *e = l->e;
    TRY(allocate(l, e->rate_count, sizeof(bool), &e->ends_steps));
    if (!(e->relative_tolerance > 0.0)) return BL_OK;
    int32_t *maker = NULL; /* of each value, 1 + the block that makes it */
    TRY(allocate(l, e->layout.total, sizeof(int32_t), &maker));
    for (int32_t b = 0; b < e->block_count; b++)
        for (int32_t k = 0; k < e->blocks[b].y_count; k++) maker[e->blocks[b].y[k] - e->values] = b + 1;
    e->crosses_ticks = e->guard_count == 0 && e->coupling_count == 0 && e->projects.call_count == 0;
    for (int64_t c = 0; c < e->derivatives.call_count + e->minor.calls.call_count; c++) {
        const bl_call *call = c < e->derivatives.call_count ? &e->derivatives.calls[c]
                                                            : &e->minor.calls.calls[c - e->derivatives.call_count];
        if (changes_at_ticks(e, call->block)) e->crosses_ticks = false;
        note_rates(e, maker, call->block);
    }
    for (int32_t n = 0; n < e->loop_count; n++)
        for (int64_t c = 0; c < e->loops[n].body.call_count; c++) {
            const bl_block *b = e->loops[n].body.calls[c].block;
            if (changes_at_ticks(e, b)) e->crosses_ticks = false;
            note_rates(e, maker, b);
        }
    return BL_OK;
}

/* Which variables are the elements of one array: pairs of its first variable and their number. */
static int load_arrays(bl_loader *l) {
    bl_engine *e = l->e;
    const int32_t *pairs = NULL;
    int64_t n = 0, next = 0;
    TRY(find_section(l, "ARRS", 4, &pairs, &n));
    REQUIRE(n % 2 == 0, "the table of arrays is ragged");
    for (int64_t k = 0; k < n / 2; k++) {
        const int64_t first = pairs[2 * k], count = pairs[2 * k + 1];
        REQUIRE(first >= next && count >= 1 && fits(first, count, e->variable_count),
                "an array is outside the variables");
        bl_variable *array = &e->variables[first];
        for (int64_t i = 1; i < count; i++) {
            REQUIRE(array[i].kind == array->kind && array[i].causality == array->causality,
                    "the elements of an array differ");
            array[i].extent = 0;
        }
        array->extent = count;
        next = first + count;
    }
    return BL_OK;
}

/* Types and names of variables: pairs of the first variable and the type; those of the others are usual and unknown. */
static int load_types(bl_loader *l) {
    bl_engine *e = l->e;
    const int32_t *pairs = NULL;
    const char **names = NULL;
    int64_t n = 0, found = 0, next = 0;
    TRY(find_section(l, "TYPE", 4, &pairs, &n));
    REQUIRE(n % 2 == 0, "the table of types is ragged");
    TRY(load_strings(l, "TYPN", n / 2, &names, &found));
    for (int64_t k = 0; k < n / 2; k++) {
        const int64_t first = pairs[2 * k];
        const int32_t type = pairs[2 * k + 1];
        REQUIRE(first >= next && first < e->variable_count && e->variables[first].extent > 0,
                "a type is of no variable");
        REQUIRE(type >= BL_USUAL_TYPE && type < BL_TYPES, "a variable has an unknown type");
        bl_variable *array = &e->variables[first];
        REQUIRE(type == BL_USUAL_TYPE || array->kind == (type == BL_FLOAT32 ? BL_REAL : BL_INTEGER),
                "the type of a variable does not fit its kind");
        for (int64_t i = 0; i < array->extent; i++) {
            array[i].type = type;
            array[i].name = names[k];
        }
        next = first + array->extent;
    }
    return BL_OK;
}

static int load_variables(bl_loader *l) {
    bl_engine *e = l->e;
    const int32_t *triples = NULL;
    int64_t n = 0;
    TRY(find_section(l, "VARS", 4, &triples, &n));
    REQUIRE(n % 3 == 0, "the variable table is ragged");
    e->variable_count = n / 3;
    TRY(allocate(l, e->variable_count, sizeof(bl_variable), &e->variables));
    TRY(allocate(l, e->variable_count, sizeof(int64_t), &e->input_of));
    TRY(allocate(l, e->variable_count, sizeof(int64_t), &e->input_slots));
    for (int64_t k = 0; k < e->variable_count; k++) {
        bl_variable *variable = &e->variables[k];
        variable->slot = triples[3 * k];
        variable->kind = triples[3 * k + 1];
        variable->causality = triples[3 * k + 2];
        variable->extent = 1;
        REQUIRE(variable->slot >= 0 && variable->slot < e->layout.total, "a variable is outside the values");
        REQUIRE(variable->kind >= BL_REAL && variable->kind <= BL_ENUMERATION, "a variable has no kind");
        REQUIRE(variable->causality >= BL_INPUT && variable->causality <= BL_LOCAL, "a variable has no causality");
        const bool is_input = variable->causality == BL_INPUT && variable->kind == BL_REAL;
        e->input_of[k] = is_input ? e->input_count : -1;
        if (is_input) e->input_slots[e->input_count++] = variable->slot;
    }
    TRY(load_arrays(l));
    TRY(load_types(l));
    TRY(allocate(l, e->input_count, sizeof(double), &e->input_starts));
    return allocate(l, BL_INPUT_DERIVATIVES * e->input_count, sizeof(double), &e->input_derivatives);
}

/* What blocks with an internal solver see of their inputs: derivatives, which are zero unless a real input feeds the port directly, and
   whether a discrete block does, so that its value is that of the last tick, or nothing. */
typedef struct {
    int64_t *input_at; /* of each value, 1 + the number of the real input that it is; -1 if a discrete block makes it */
    const double *zeros;
    unsigned char *held;
} bl_input_derivative_tables;

static void link_block(const bl_engine *e, bl_input_derivative_tables *tables, bl_block *b, const double **u1,
                       const double **u2) {
    b->u_held = tables->held;
    for (int32_t k = 0; k < b->u_count; k++) {
        const int64_t slot = b->u[k] - e->values, first = tables->input_at[slot];
        bool is_input = first > 0;
        const bool is_default = first == 0 && slot < e->layout.parameters;
        *tables->held++ = first < 0 ? BL_INPUT_HELD : is_default ? BL_INPUT_UNCONNECTED : BL_INPUT_MOVES;
        for (int32_t i = 1; i < b->u_width[k] && is_input; i++) is_input = tables->input_at[slot + i] == first + i;
        u1[k] = is_input ? e->input_derivatives + BL_INPUT_DERIVATIVE_NOW * e->input_count + first - 1 : tables->zeros;
        u2[k] =
            is_input ? e->input_derivatives + BL_INPUT_DERIVATIVE_SECOND * e->input_count + first - 1 : tables->zeros;
    }
}

/* Inputs from other members have their own input derivatives. */
static void link_member(const bl_engine *e, bl_input_derivative_tables *tables, bl_member *m) {
    if (!m->block) return;
    link_block(e, tables, m->block, m->u1, m->u2);
    for (int32_t n = 0; n < m->port_count; n++) {
        m->u1[m->ports[n].port] = m->ports[n].first;
        m->u2[m->ports[n].port] = m->ports[n].second;
    }
}

static int link_input_derivatives(bl_loader *l) {
    bl_engine *e = l->e;
    const int64_t calls = e->advances.call_count;
    int64_t ports = 0, own_ports = 0, widest = 0;
    for (int32_t b = 0; b < e->block_count; b++) {
        if (!e->kernels[b]->advance) continue;
        ports += e->blocks[b].u_count;
        for (int32_t k = 0; k < e->blocks[b].u_count; k++)
            widest = e->blocks[b].u_width[k] > widest ? e->blocks[b].u_width[k] : widest;
    }
    for (int64_t c = 0; c < calls; c++) own_ports += e->advances.calls[c].block->u_count;
    if (calls == 0 && e->coupling_count == 0) return BL_OK;
    const double **pointers = NULL;
    bl_input_derivative_tables tables = {NULL, NULL, NULL};
    TRY(allocate(l, 2 * calls, sizeof(double **), &e->advance_input_derivatives));
    TRY(allocate(l, 2 * own_ports, sizeof(double *), &pointers));
    TRY(allocate(l, widest, sizeof(double), &tables.zeros));
    TRY(allocate(l, ports, 1, &tables.held));
    TRY(allocate(l, e->layout.total, sizeof(int64_t), &tables.input_at));
    for (int64_t i = 0; i < e->input_count; i++) tables.input_at[e->input_slots[i]] = i + 1;
    for (int32_t b = 0; b < e->block_count; b++)
        for (int32_t k = 0; k < e->blocks[b].y_count; k++)
            if (e->block_rate[b] >= 2 && e->block_rate[b] != e->internal_solver_rate)
                tables.input_at[e->blocks[b].y[k] - e->values] = -1;
    for (int64_t c = 0; c < calls; c++) {
        bl_block *b = e->advances.calls[c].block;
        const double **u1 = pointers, **u2 = u1 + b->u_count;
        pointers += 2 * (int64_t)b->u_count;
        link_block(e, &tables, b, u1, u2);
        e->advance_input_derivatives[2 * c] = u1;
        e->advance_input_derivatives[2 * c + 1] = u2;
    }
    for (int32_t n = 0; n < e->coupling_count; n++)
        for (int32_t j = 0; j < e->couplings[n].member_count; j++) link_member(e, &tables, &e->couplings[n].members[j]);
    return BL_OK;
}

/* Section KIND, of plans in FMUs for more than co-simulation. */
static int load_kinds(bl_loader *l) {
    const int32_t *kinds = NULL;
    int64_t n = 0;
    TRY(find_section(l, "KIND", 4, &kinds, &n));
    l->e->kinds = n > 0 ? kinds[0] : BL_OFFERS_STEPS;
    REQUIRE(n <= 1 && l->e->kinds > 0 && l->e->kinds <= (BL_OFFERS_STEPS | BL_OFFERS_EXCHANGE),
            "it is for no kind of FMU");
    return BL_OK;
}

/* Section CLKS, of plans in FMUs with clocks: their rates. */
static int load_clocks(bl_loader *l) {
    bl_engine *e = l->e;
    const int32_t *clocks = NULL;
    int64_t n = 0;
    TRY(find_section(l, "CLKS", 4, &clocks, &n));
    REQUIRE(n <= BL_CLOCKS, "it has too many clocks");
    TRY(allocate(l, n, sizeof(int32_t), &e->clocks));
    for (int64_t k = 0; k < n; k++) {
        REQUIRE(clocks[k] > BL_RATE_CONSTANT && clocks[k] < e->internal_solver_rate, "a clock has no rate");
        e->clocks[k] = clocks[k];
    }
    e->clock_count = (int32_t)n;
    return BL_OK;
}

static int load(bl_loader *l) {
    TRY(load_head(l));
    TRY(load_kinds(l));
    TRY(load_control(l));
    TRY(load_sizes(l));
    TRY(load_rates(l));
    TRY(load_clocks(l));
    TRY(load_blocks(l));
    TRY(load_guards(l));
    TRY(load_loops(l));
    TRY(load_program(l, "MAJR", PROGRAM_MAJOR, &l->e->major));
    TRY(load_program(l, "MINR", PROGRAM_MINOR, &l->e->minor));
    TRY(load_couplings(l));
    TRY(load_exchanges(l));
    TRY(collect_operations(l));
    TRY(load_events(l));
    TRY(load_stages(l));
    TRY(make_log(l));
    TRY(load_idle_modes(l));
    TRY(find_step_ends(l));
    TRY(load_variables(l));
    return link_input_derivatives(l);
}

int bl_open(const void *plan, size_t plan_size, bl_engine **engine, char *message, size_t message_size) {
    *engine = NULL;
    if (message_size > 0) message[0] = '\0';
    bl_engine *e = calloc(1, sizeof *e);
    unsigned char *aligned = plan_size > 0 ? malloc(plan_size) : NULL;
    int status = BL_ERROR_MEMORY;
    if (e && (aligned || plan_size == 0)) {
        if (plan_size > 0) memcpy(aligned, plan, plan_size); /* the caller's bytes may lie anywhere */
        bl_loader loader = {e, aligned, plan_size, NULL, 0, message, message_size};
        status = load(&loader);
    }
    free(aligned);
    if (status != BL_OK) {
        bl_close(e);
        return status;
    }
    bl_reset(e);
    *engine = e;
    return BL_OK;
}
