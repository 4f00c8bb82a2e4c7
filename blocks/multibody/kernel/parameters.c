/* Parameters that were set after the mechanism was described: in `parameters=`, in an FMU, or during a run.
 *
 * Python checks the numbers of a description when it is made. Those that are set later pass here, by the same rules: at `init`,
 * and before the next outputs after a parameter has changed. A tick does not pass here. */
#include "blocks/multibody/kernel/multibody.h"

static const char *const MUST_BE[MB_ALLOWED_KINDS] = {
    [MB_ALLOWED_FINITE] = "it must be finite",
    [MB_ALLOWED_NOT_NAN] = "it must be a number; infinite for no limit",
    [MB_ALLOWED_NOT_ZERO] = "it must be finite and not 0",
    [MB_ALLOWED_NOT_NEGATIVE] = "it must be finite and not negative",
    [MB_ALLOWED_POSITIVE] = "it must be finite and positive",
    [MB_ALLOWED_FRACTION] = "it must be between 0 and 1",
    [MB_ALLOWED_SIGNED_FRACTION] = "it must be between -1 and 1",
    [MB_ALLOWED_FROM_ONE] = "it must be finite and at least 1",
};

static bool is_allowed(double value, int allowed) {
    switch (allowed) {
        case MB_ALLOWED_NOT_NAN: return !isnan(value);
        case MB_ALLOWED_NOT_ZERO: return isfinite(value) && value != 0.0;
        case MB_ALLOWED_NOT_NEGATIVE: return isfinite(value) && value >= 0.0;
        case MB_ALLOWED_POSITIVE: return isfinite(value) && value > 0.0;
        case MB_ALLOWED_FRACTION: return value >= 0.0 && value <= 1.0;
        case MB_ALLOWED_SIGNED_FRACTION: return value >= -1.0 && value <= 1.0;
        case MB_ALLOWED_FROM_ONE: return isfinite(value) && value >= 1.0;
        default: return isfinite(value);
    }
}

bool mb_allow(mb_fault *fault, const char *name, double value, int allowed) {
    if (is_allowed(value, allowed)) return true;
    *fault = (mb_fault){.name = name, .part = "", .value = value, .must_be = MUST_BE[allowed]};
    return false;
}

bool mb_allow_below(mb_fault *fault, const char *name, double value, const char *other, double bound) {
    if (value < bound) return true;
    *fault = (mb_fault){
        .name = name, .part = "", .value = value, .must_be = "it must be below ", .other = other, .bound = bound};
    return false;
}

bool mb_allow_law(mb_fault *fault, const mb_view *m, int32_t law, const char *name) {
    static const char *const LINEAR[] = {".start", ".slope"}, *const SINE[] = {".amplitude", ".omega", ".phase",
                                                                               ".offset"};
    const int32_t *record = m->laws + law * MB_LAW_FIELDS, type = record[MB_LAW_TYPE];
    const int count = type == MB_LAW_CONSTANT ? 1 : type == MB_LAW_LINEAR ? 2 : type == MB_LAW_SINE ? 4 : 0;
    for (int k = 0; k < count; k++) {
        if (mb_allow(fault, name, m->p[record[MB_LAW_P] + k], MB_ALLOWED_FINITE)) continue;
        fault->part = count == 1 ? "" : count == 2 ? LINEAR[k] : SINE[k];
        return false;
    }
    return true;
}

static int check_elements(const bl_block *b, const mb_view *m) {
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = mb_force_record(m, n);
        const mb_element *element = mb_element_of(force);
        mb_fault fault;
        if (element->sound && !element->sound(m, force, &fault)) return mb_fail_element(b, m, n, &fault);
    }
    return BL_OK;
}

static int check_motion_laws(const bl_block *b, const mb_view *m) {
    for (int32_t n = 0; n < m->head[MB_MOTION_LAWS]; n++) {
        mb_fault fault;
        if (!mb_allow_law(&fault, m, m->motion_laws[n], "motion")) return mb_fail_motion_law(b, m, n, &fault);
    }
    return BL_OK;
}

static int check_gravity(const bl_block *b, const mb_view *m) {
    for (int k = 0; k < 3; k++)
        if (!isfinite(m->gravity[k]))
            return bl_log_error(b, "component %c of `gravity` is %.6g: it must be finite.", "xyz"[k], m->gravity[k]);
    return BL_OK;
}

static int check_rows(const bl_block *b, const mb_view *m) {
    for (int32_t c = 0; c < m->cut_count; c++) {
        const mb_coordinate_row *own = mb_coordinate_row_of(m, c);
        mb_fault fault;
        if (own && own->sound && !own->sound(m, c, &fault)) return mb_fail_row(b, m, c, &fault);
    }
    return BL_OK;
}

static int check_tilts(const bl_block *b, const mb_view *m) {
    const int first = m->head[MB_PLANAR] ? 2 : 3, count = m->head[MB_PLANAR] ? 1 : 3;
    for (int32_t n = 0; n < m->marker_count; n++) {
        const int32_t *record = m->markers + n * MB_MARKER_FIELDS, link = record[MB_MARKER_LINK];
        const int32_t body = link < 0 ? -1 : m->links[link * MB_LINK_FIELDS + MB_LINK_BODY];
        for (int k = 0; k < count; k++) {
            const double tilt = m->p[record[MB_MARKER_PLACE] + first + k];
            char name[MB_NAME_SIZE] = "ground";
            if (isfinite(tilt)) continue;
            if (body >= 0) mb_joint_name(m, m->link_count + m->cut_count + m->head[MB_FORCES] + body, name);
            return bl_log_error(b, "the `tilt` of a marker on `%s` is %.6g: it must be finite.", name, tilt);
        }
    }
    return BL_OK;
}

int mb_check_parameters(const bl_block *b, const mb_view *m) {
    const int status = check_gravity(b, m);
    if (status != BL_OK) return status;
    const int elements = check_elements(b, m);
    if (elements != BL_OK) return elements;
    const int rows = check_rows(b, m);
    if (rows != BL_OK) return rows;
    const int tilts = check_tilts(b, m);
    return tilts != BL_OK ? tilts : check_motion_laws(b, m);
}
