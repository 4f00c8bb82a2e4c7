/* A force at a point of a body that is chosen while a run goes on: by seven laws, as a rule inputs.
 *
 *     F at P = p_B + R_B r on body n = 1, 2, …; n = 0, or no number of a body: nothing
 *
 * Without a body nothing is added, so that it changes no bit. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

BL_SHARED enum { PUSH_SHOWN_FORCE, PUSH_SHOWN_POINT, PUSH_SHOWN_COUNT };
enum { PUSH_BODY, PUSH_POINT, PUSH_FORCE = 4, PUSH_LAWS = 7 };

typedef struct {
    int32_t link;
    double P[3], F[3];
} push_load;

static bool push_check(const bl_block *b, const int32_t *force, mb_tally *tally) {
    (void)tally;
    return mb_check_markers(b, force) && mb_check_numbers(b, force, 0) && mb_check_laws(b, force, PUSH_LAWS);
}

static bool push_sound(const mb_view *m, const int32_t *force, mb_fault *fault) {
    static const char *const NAMES[PUSH_LAWS] = {"body", "x", "y", "z", "fx", "fy", "fz"};
    for (int k = 0; k < PUSH_LAWS; k++)
        if (!mb_allow_law(fault, m, force[MB_FORCE_LAW] + k, NAMES[k])) return false;
    return true;
}

static int32_t link_of_body(const mb_view *m, double number) {
    if (!(number >= 1.0 && number <= m->body_count)) return -1;
    const int32_t body = (int32_t)number - 1;
    for (int32_t l = 0; l < m->link_count; l++)
        if (m->links[l * MB_LINK_FIELDS + MB_LINK_BODY] == body) return l;
    return -1;
}

/* Whether a body is pushed: where, and by what force in world axes. */
static bool see_push(const mb_view *m, const int32_t *force, double t, push_load *push) {
    double law[PUSH_LAWS];
    for (int k = 0; k < PUSH_LAWS; k++) law[k] = mb_coefficient(m, force[MB_FORCE_LAW] + k, t, 0.0, 0.0);
    push->link = link_of_body(m, law[PUSH_BODY]);
    if (push->link < 0) return false;
    double in_link[3];
    mb_rotate(m->data[push->link].R_body, law + PUSH_POINT, in_link);
    mb_add(m->data[push->link].p_body, in_link);
    mb_rotate(m->link[push->link].R, in_link, push->P);
    mb_add(m->link[push->link].p, push->P);
    mb_copy(law + PUSH_FORCE, push->F);
    return true;
}

static void push_load_force(mb_view *m, const int32_t *force, double t, const double *q, const double *v,
                            double *joint_force) {
    (void)q, (void)v, (void)joint_force;
    push_load push;
    if (!see_push(m, force, t, &push)) return;
    mb_link_state *s = &m->link[push.link];
    double arm[3];
    mb_sub(push.P, s->p, arm);
    mb_add(push.F, s->F);
    mb_add_cross(arm, push.F, s->N);
}

static double push_power(const mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    (void)q, (void)v;
    push_load push;
    if (!see_push(m, force, t, &push)) return 0.0;
    const mb_link_state *s = &m->link[push.link];
    double arm[3], velocity[3];
    mb_sub(push.P, s->p, arm);
    mb_copy(s->v, velocity);
    mb_add_cross(s->w, arm, velocity);
    return mb_dot(push.F, velocity);
}

static int32_t push_width(const int32_t *force, int32_t what) {
    (void)force;
    return what == PUSH_SHOWN_FORCE || what == PUSH_SHOWN_POINT ? 3 : -1;
}

static int push_show(mb_view *m, const int32_t *force, double t, const double *q, const double *v, int32_t what,
                     double *y) {
    (void)q, (void)v;
    push_load push;
    memset(y, 0, 3 * sizeof(double));
    if (see_push(m, force, t, &push)) mb_copy(what == PUSH_SHOWN_FORCE ? push.F : push.P, y);
    return BL_OK;
}

const mb_element mb_element_push = {.law_count = PUSH_LAWS,
                                    .check = push_check,
                                    .sound = push_sound,
                                    .load = push_load_force,
                                    .source = push_power,
                                    .width = push_width,
                                    .show = push_show};
