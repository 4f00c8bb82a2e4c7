/* The life of an instance: made, initialized, terminated, reset, freed; and its log. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmu/exporter/interface/instance.h"

static const uint32_t FMU_MAGIC = 0xb1e11au;

/* Log categories; fmu/exporter/_description.py lists them too. */
static const char *const CATEGORIES[] = {"logEvents", "logStatusWarning", "logStatusDiscard", "logStatusError"};
enum { LOG_EVENTS, LOG_WARNING, LOG_DISCARD, LOG_ERROR, LOG_CATEGORIES };
enum { LOG_FAILURES = 1 << LOG_WARNING | 1 << LOG_DISCARD | 1 << LOG_ERROR, LOG_ALL = LOG_FAILURES | 1 << LOG_EVENTS };

static unsigned quiet_log(const bl_fmu *f) { return f->version->logs_discard ? LOG_FAILURES : 1u << LOG_ERROR; }

void bl_fmu_log(const bl_fmu *f, bl_fmu_status status, const char *format, ...) {
    const int category = status == FMU_ERROR     ? LOG_ERROR
                         : status == FMU_DISCARD ? LOG_DISCARD
                         : status == FMU_WARNING ? LOG_WARNING
                                                 : LOG_EVENTS;
    char text[1280];
    va_list arguments;
    if (!f->logger || !(f->log >> category & 1)) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    f->version->send(f, status, CATEGORIES[category], text);
}

bl_fmu *bl_fmu_of(void *c, const bl_fmu_version *version) {
    bl_fmu *f = c;
    return f && f->magic == FMU_MAGIC && f->version == version ? f : NULL;
}

static const char *state_name(bl_fmu_state state) {
    switch (state) {
        case INSTANTIATED: return "instantiated";
        case INITIALIZING: return "initialization mode";
        case STEPPING: return "step mode";
        case STEP_FAILED: return "step discarded";
        case TERMINATED: return "terminated";
        case EVENT_MODE: return "event mode";
        case CONTINUOUS_TIME: return "continuous-time mode";
        case INTERMEDIATE: return "intermediate update mode";
        default: return "error";
    }
}

bl_fmu *bl_fmu_enter(void *c, const bl_fmu_version *version, int call) {
    bl_fmu *f = bl_fmu_of(c, version);
    if (!f || (int)f->state & version->calls[call].allowed[f->kind]) return f;
    if (version->calls[call].allowed[f->kind] == 0) {
        bl_fmu_log(f, FMU_ERROR, "%s is not supported: the instance was made for %s", version->calls[call].name,
                   f->kind == MODEL_EXCHANGE ? "model exchange" : "co-simulation");
        return NULL;
    }
    bl_fmu_log(f, FMU_ERROR, "%s is not allowed in the state '%s'", version->calls[call].name, state_name(f->state));
    return NULL;
}

bl_fmu_status bl_fmu_fail(bl_fmu *f) {
    const int32_t block = bl_failed_block(f->engine);
    const char *path = bl_block_path(f->engine, block);
    bl_fmu_log(f, FMU_ERROR, "t = %.9g: %s%s%s", bl_time(f->engine), path, *path ? ": " : "", bl_message(f->engine));
    f->state = BROKEN;
    return FMU_ERROR;
}

/* Passes on what blocks found odd, and at the start which algebraic loops have no unique solution. */
static void warn(const bl_fmu *f, int about) {
    for (int32_t k = -1; (k = bl_next_diagnostic(f->engine, about, k)) >= 0;)
        bl_fmu_log(f, FMU_WARNING, "%s: %s", bl_block_path(f->engine, k), bl_message(f->engine));
    for (int32_t k = 0; about == BL_DIAGNOSTIC_START && k < bl_loop_count(f->engine); k++) {
        double chosen[BL_LOOP_CHECKED], other[BL_LOOP_CHECKED], condition = 0.0;
        const int verdict = bl_loop_size(f->engine, k) <= BL_LOOP_CHECKED
                                ? bl_check_loop(f->engine, k, chosen, other, &condition)
                                : BL_LOOP_GOOD;
        const char *path = bl_slot_path(f->engine, bl_loop_slots(f->engine, k)[0]);
        if (verdict == BL_LOOP_IS_SINGULAR)
            bl_fmu_log(f, FMU_WARNING,
                       "%s: its algebraic loop is singular: %.6g solves it, and so do other values, exactly or nearly",
                       path, chosen[0]);
        else if (verdict == BL_LOOP_HAS_OTHER)
            bl_fmu_log(f, FMU_WARNING,
                       "%s: its algebraic loop has more than one solution: %.6g was taken, %.6g is another one", path,
                       chosen[0], other[0]);
    }
}

/* Each fallback of the solver once, where a simulation ends: by terminating it, or by what comes instead of that. */
static void warn_of_fallbacks(bl_fmu *f) {
    for (int32_t k = -1; (k = bl_next_fallback(f->engine, k)) >= 0;) {
        if (f->warned >> k & 1u) continue;
        f->warned |= 1u << k;
        bl_fmu_log(f, FMU_WARNING, "%s", bl_message(f->engine));
    }
}

bl_fmu_status bl_fmu_prepare(bl_fmu *f) {
    if (f->needs_init) {
        if (bl_init(f->engine) != BL_OK) return bl_fmu_fail(f);
        f->needs_init = 0;
    }
    return FMU_OK;
}

/* With categories, only these are logged; without, everything if logging is on, and only failures, or in FMI 3.0 errors, if it is off. */
bl_fmu_status bl_fmu_set_logging(bl_fmu *f, int on, size_t count, const char *const categories[]) {
    unsigned chosen = 0;
    if (count > 0 && !categories) return FMU_ERROR;
    for (size_t k = 0; k < count; k++) {
        int n = 0;
        while (n < LOG_CATEGORIES && categories[k] && strcmp(categories[k], CATEGORIES[n]) != 0) n++;
        if (categories[k] && n < LOG_CATEGORIES) chosen |= 1u << n;
        else if (categories[k] && strcmp(categories[k], "logAll") == 0) chosen |= LOG_ALL;
        else {
            bl_fmu_log(f, FMU_ERROR, "unknown log category '%s'", categories[k] ? categories[k] : "(null)");
            return FMU_ERROR;
        }
    }
    f->log = !on ? quiet_log(f) : count == 0 ? LOG_ALL : chosen;
    return FMU_OK;
}

/* The token (in FMI 2.0 the GUID) begins with the checksum of the plan, so that a description and a plan that do not belong together are noticed. A digest
   of the description follows, of which only the form is known here: a token that was cut short or has more behind it is refused. */
static int has_token(const bl_engine *e, const char *token) {
    enum { DIGITS = 16 };
    char own[32];
    snprintf(own, sizeof own, "{biella-%016llx-", (unsigned long long)bl_plan_hash(e));
    const size_t head = strlen(own);
    if (!token || strncmp(token, own, head) != 0) return 0;
    return strspn(token + head, "0123456789abcdef") == DIGITS && strcmp(token + head + DIGITS, "}") == 0;
}

static void release(bl_fmu *f) {
    bl_close(f->engine);
    free(f->all_variables);
    free(f->work);
    free(f->undo);
    free(f->name);
    free(f);
}

bl_fmu *bl_fmu_create(const bl_fmu_version *version, bl_fmu_kind kind, const bl_fmu_request *request,
                      const char *token_name, const char *unsupported) {
    bl_fmu *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    const char *name = request->name, *token = request->token;
    f->version = version;
    f->kind = kind;
    f->environment = request->environment;
    f->logger = request->logger;
    f->log = request->logging ? LOG_ALL : quiet_log(f);
    char message[512] = "";
    size_t size = 0;
    const unsigned char *plan = NULL;
    f->name = name && *name ? malloc(strlen(name) + 1) : NULL;
    if (f->name) strcpy(f->name, name);
    if (!f->name) bl_fmu_log(f, FMU_ERROR, "the instance name is missing");
    else if (unsupported) bl_fmu_log(f, FMU_ERROR, "%s", unsupported);
    else if (!(plan = bl_find_plan(request->resources, &size, message, sizeof message)))
        bl_fmu_log(f, FMU_ERROR, "%s", message);
    else if (bl_open(plan, size, &f->engine, message, sizeof message) != BL_OK)
        bl_fmu_log(f, FMU_ERROR, "the plan is not valid: %s", message);
    else if (!has_token(f->engine, token))
        bl_fmu_log(f, FMU_ERROR, "the %s '%s' does not match the plan", token_name, token ? token : "(null)");
    else if (!(bl_plan_kinds(f->engine) & (kind == MODEL_EXCHANGE ? BL_OFFERS_EXCHANGE : BL_OFFERS_STEPS)))
        bl_fmu_log(f, FMU_ERROR, "this FMU supports %s only",
                   kind == MODEL_EXCHANGE ? "co-simulation" : "model exchange");
    else {
        f->values = bl_values(f->engine);
        f->variable_count = bl_variables(f->engine, &f->variables);
        f->state = INSTANTIATED;
        f->needs_init = 1;
        if (!(bl_plan_kinds(f->engine) & BL_OFFERS_EXCHANGE) || bl_fmu_open_exchange(f) == FMU_OK) f->magic = FMU_MAGIC;
    }
    bl_release_plan(plan);
    if (f->magic == FMU_MAGIC) return f;
    release(f);
    return NULL;
}

void bl_fmu_free(bl_fmu *f) {
    warn_of_fallbacks(f);
    f->magic = 0;
    release(f);
}

bl_fmu_status bl_fmu_set_experiment(bl_fmu *f, double start_time, int stop_time_defined, double stop_time) {
    if (!isfinite(start_time) || (stop_time_defined && !(stop_time >= start_time))) {
        bl_fmu_log(f, FMU_ERROR, "an experiment from %g to %g is not possible", start_time, stop_time);
        return FMU_ERROR;
    }
    bl_set_start(f->engine, start_time);
    f->has_stop_time = stop_time_defined != 0;
    f->stop_time = stop_time;
    f->needs_init = 1;
    return FMU_OK;
}

bl_fmu_status bl_fmu_initialize(bl_fmu *f, bl_fmu_state next) {
    if (bl_fmu_prepare(f) != FMU_OK) return FMU_ERROR;
    if (bl_outputs(f->engine) != BL_OK) return bl_fmu_fail(f);
    if (f->kind == MODEL_EXCHANGE && bl_fmu_start_exchange(f) != FMU_OK) return FMU_ERROR;
    f->state = next;
    warn(f, BL_DIAGNOSTIC_START);
    bl_fmu_log(f, FMU_OK, "initialized at t = %.9g, base step %.9g", bl_time(f->engine), bl_step(f->engine));
    return FMU_OK;
}

bl_fmu_status bl_fmu_terminate(bl_fmu *f) {
    f->state = TERMINATED;
    warn(f, BL_DIAGNOSTIC_RUN);
    warn_of_fallbacks(f);
    bl_fmu_log(f, FMU_OK, "terminated at t = %.9g", bl_time(f->engine));
    return FMU_OK;
}

bl_fmu_status bl_fmu_reset(bl_fmu *f) {
    warn_of_fallbacks(f);
    bl_reset(f->engine);
    f->state = INSTANTIATED;
    f->needs_init = 1;
    f->ended = 0;
    f->active_clocks = 0;
    f->has_stop_time = 0;
    f->tolerance = 0.0;
    f->warned = 0;
    return FMU_OK;
}
