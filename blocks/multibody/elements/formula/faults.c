/* Formulas without a finite value: a division by zero, a root of a negative number. The first is noted with its time, and named where the
 * evaluation fails. A step that is tried may leave the range of a formula and be divided, which is no failure. */
#include <stdio.h>
#include <string.h>

#include "blocks/core/formula/formula.h"
#include "blocks/multibody/kernel/multibody.h"

int32_t mb_count_formulas(const bl_block *b) {
    int32_t count = 0;
    for (int32_t n = 0; n < b->i[MB_LAWS]; n++)
        count += b->i[b->i[MB_AT_LAWS] + n * MB_LAW_FIELDS + MB_LAW_TYPE] == MB_LAW_FORMULA;
    return count;
}

void mb_note_formula(const mb_view *m, int32_t law, double t, double value) {
    double *seen = m->signals.state;
    if (isfinite(value) || seen[MB_SEEN_FAULT] != 0.0) return;
    seen[MB_SEEN_FAULT] = law + 1;
    seen[MB_SEEN_FAULT_TIME] = t;
    seen[MB_SEEN_FAULT_VALUE] = value;
}

bool mb_has_formula_fault(const mb_view *m) { return m->signals.state[MB_SEEN_FAULT] != 0.0; }

static void formula_message(const mb_view *m, int32_t law, double t, double value, char *out, size_t size) {
    int32_t name =
        m->link_count + m->cut_count + m->head[MB_FORCES] + m->body_count + m->head[MB_MOTION_LAWS] + m->head[MB_KEEPS];
    for (int32_t n = 0; n < law; n++) name += m->laws[n * MB_LAW_FIELDS + MB_LAW_TYPE] == MB_LAW_FORMULA;
    char text[MB_TEXT_SIZE];
    mb_text(m, name, text, MB_TEXT_SIZE);
    snprintf(
        out, size,
        "%s has no finite value at t = %.9g s: it is %s. Keep it defined wherever the mechanism can move, such as by "
        "max(…, 1e-9) or where(…).",
        text, t,
        isnan(value)  ? "not a number"
        : value > 0.0 ? "infinite"
                      : "negative and infinite");
}

int mb_fail_formula(const bl_block *b, const mb_view *m) {
    const double *seen = m->signals.state;
    char message[MB_MESSAGE_SIZE];
    formula_message(m, (int32_t)seen[MB_SEEN_FAULT] - 1, seen[MB_SEEN_FAULT_TIME], seen[MB_SEEN_FAULT_VALUE], message,
                    sizeof message);
    return bl_log_error(b, "%s", message);
}

void mb_keep_formula_fault(const mb_view *m, bool accepted) {
    double *fault = m->signals.fault;
    if (accepted) fault[0] = 0.0;
    if (accepted || fault[0] != 0.0 || !mb_has_formula_fault(m)) return;
    memcpy(fault, m->signals.state + MB_SEEN_FAULT, 3 * sizeof(double));
}

const char *mb_formula_message(const mb_view *m) {
    const double *fault = m->signals.fault;
    if (!(fault[0] >= 1.0 && fault[0] <= m->head[MB_LAWS])) return "";
    if (m->laws[((int32_t)fault[0] - 1) * MB_LAW_FIELDS + MB_LAW_TYPE] != MB_LAW_FORMULA)
        return ""; /* a damaged state */
    formula_message(m, (int32_t)fault[0] - 1, fault[1], fault[2], m->signals.text, MB_MESSAGE_SIZE);
    return m->signals.text;
}

bool mb_formulas_are_finite(mb_view *m, double t, const double *q, const double *v) {
    const bool kept = m->modes.mode && *m->modes.decision == BL_KEEP; /* beyond a border, as a step may be */
    if (kept || m->head[MB_WORDS] == 0) return true;
    for (int32_t n = 0; n < m->head[MB_FORCES]; n++) {
        const int32_t *force = mb_force_record(m, n);
        const mb_element *element = mb_element_of(force);
        bool formula = false;
        for (int32_t k = 0; k < element->law_count; k++)
            formula = formula || m->laws[(force[MB_FORCE_LAW] + k) * MB_LAW_FIELDS + MB_LAW_TYPE] == MB_LAW_FORMULA;
        if (formula && element->load) (void)mb_pushed_power(m, force, t, q, v);
    }
    return !mb_has_formula_fault(m);
}
