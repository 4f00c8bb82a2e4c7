/* Laws that drive joints or move markers, watched for jumps.
 *
 * A jump of a prescribed position moves bodies instantaneously, and a jump of its rate applies an impulse: neither is in efforts and reactions,
 * which are those of the smooth motion on both sides. From one step to the next a smooth law satisfies
 *     f₁ - f₀ = h/2 (f'₀ + f'₁) - h²/12 (f''₁ - f''₀)
 * but for terms of h⁵. A jump of f' within the step misses this by less than h |f'₁ - f'₀|, one of f'' by less than h² |f''₁ - f''₀|: a larger
 * residual is a jump of f, or equivalent to one for this step. The same holds for f', which without a third derivative has an error of h³: where the
 * acceleration of a smooth law is at its peak, that is (ω h)² / 12 of the change of f'. */
#include "blocks/multibody/kernel/multibody.h"

static const double JUMP_NOTICED = 1e-3; /* of the change in a step: inputs have errors too */
static const double JUMP_OF_RATE =
    0.1;  /* of its change in a step: smooth laws of six steps a period or more are below */
static const double JUMP_ROUNDING = 1e-12; /* of the place, and in m and rad where that is less than 1 */

/* An input of a block with internal steps is corrected at the start of each: the correction is an extrapolation error, of the order
   of the whole step, and its rate changes there. */
static bool is_exchanged(const mb_view *m, int32_t law) {
    return m->held && m->laws[law * MB_LAW_FIELDS + MB_LAW_TYPE] == MB_LAW_INPUT;
}

void mb_start_motion_laws(mb_view *m, double t) {
    if (m->head[MB_MOTION_LAWS] == 0) return;
    m->jumps[MB_JUMP_LAST] = t;
    for (int32_t n = 0; n < m->head[MB_MOTION_LAWS]; n++) {
        double *previous = m->motion_memory + 3 * (int64_t)n;
        previous[0] = mb_law(m, m->motion_laws[n], t, &previous[1], &previous[2]);
    }
}

static bool jump_is_input(const mb_view *m, int32_t law) {
    return m->laws[law * MB_LAW_FIELDS + MB_LAW_TYPE] == MB_LAW_INPUT;
}

bool mb_begin_motion_laws(mb_view *m, double t) {
    bool changed = false;
    for (int32_t n = 0; n < m->head[MB_MOTION_LAWS]; n++) {
        double rate = 0.0, second = 0.0;
        if (!jump_is_input(m, m->motion_laws[n]) || m->jumps[MB_JUMP_STAGE] != MB_JUMP_FOUND) continue;
        const double *previous = m->motion_memory + 3 * (int64_t)n,
                     place = mb_law(m, m->motion_laws[n], t, &rate, &second);
        changed = changed || place != previous[0] || rate != previous[1];
    }
    return changed;
}

void mb_begun_motion_laws(mb_view *m) {
    for (int32_t n = 0; n < m->head[MB_MOTION_LAWS]; n++)
        if (jump_is_input(m, m->motion_laws[n]) && m->jumps[MB_JUMP_STAGE] == MB_JUMP_FOUND)
            m->jumps[MB_JUMP_STAGE] = MB_JUMP_BEGUN;
}

static void note_jump(double *worst, double size, double t, int32_t number) {
    worst[MB_JUMP_COUNT] += 1.0;
    if (size > worst[MB_JUMP_SIZE]) worst[MB_JUMP_SIZE] = size, worst[MB_JUMP_WHEN] = t, worst[MB_JUMP_WHICH] = number;
}

static double jump_rounding(double a, double b) { return JUMP_ROUNDING * fmax(1.0, fabs(a) + fabs(b)); }

/* An exchanged input may have changed since the initial state was found with it. */
static void watch_first(mb_view *m, int32_t n, double began, double t, double *previous) {
    const double given = previous[0];
    previous[0] = mb_law(m, m->motion_laws[n], began, &previous[1], &previous[2]);
    if (fabs(previous[0] - given) > jump_rounding(previous[0], given))
        note_jump(m->jumps + MB_JUMP_PLACE, fabs(previous[0] - given), t, n);
}

/* At an event, before and after modes have changed: any difference is a jump. An input changes at once where nothing is located. */
static void watch_instant(mb_view *m, int32_t n, double t, const double *before, const double *after) {
    if (jump_is_input(m, m->motion_laws[n])) return;
    const double place = fabs(after[0] - before[0]), rate = fabs(after[1] - before[1]);
    if (place > jump_rounding(after[0], before[0])) note_jump(m->jumps + MB_JUMP_PLACE, place, t, n);
    else if (rate > jump_rounding(after[1], before[1])) note_jump(m->jumps + MB_JUMP_RATE, rate, t, n);
}

void mb_watch_motion_laws(mb_view *m, double t) {
    if (m->head[MB_MOTION_LAWS] == 0) return;
    const double last = m->jumps[MB_JUMP_LAST], h = t - last;
    const bool began = m->jumps[MB_JUMP_STAGE] == MB_JUMP_STEPPED;
    m->jumps[MB_JUMP_LAST] = t;
    m->jumps[MB_JUMP_STAGE] = MB_JUMP_STEPPED;
    for (int32_t n = 0; n < m->head[MB_MOTION_LAWS]; n++) {
        double *previous = m->motion_memory + 3 * (int64_t)n, now[3];
        now[0] = mb_law(m, m->motion_laws[n], t, &now[1], &now[2]);
        const bool exchanged = is_exchanged(m, m->motion_laws[n]);
        if (h == 0.0 && !exchanged) watch_instant(m, n, t, previous, now);
        if (exchanged && !began) watch_first(m, n, last, t, previous);
        const double whole = exchanged ? fmax(h, m->whole * m->head[MB_SUBSTEPS]) : h;
        const double rate = 0.5 * h * (previous[1] + now[1]), bent = whole * whole * (now[2] - previous[2]),
                     change = now[0] - previous[0];
        const double off = fabs(change - rate + h * h * (now[2] - previous[2]) / 12.0),
                     turned = whole * fabs(now[1] - previous[1]);
        const double rate_off = exchanged ? 0.0 : fabs(now[1] - previous[1] - 0.5 * h * (previous[2] + now[2]));
        const double noticed = exchanged ? JUMP_NOTICED * whole * (fabs(previous[1]) + fabs(now[1])) : 0.0;
        const double jitter = jump_rounding(now[0], previous[0]) + noticed;
        if (h > 0.0 && off > turned + fabs(bent) + JUMP_NOTICED * (fabs(change) + fabs(rate)) + jitter)
            note_jump(m->jumps + MB_JUMP_PLACE, fabs(change - rate), t, n);
        else if (h > 0.0 && (began || !jump_is_input(m, m->motion_laws[n])) &&
                 h * rate_off > fabs(bent) + JUMP_OF_RATE * turned + jitter)
            note_jump(m->jumps + MB_JUMP_RATE, rate_off, t, n);
        for (int k = 0; k < 3; k++) previous[k] = now[k];
    }
}
