/* The multibody plant as a block.
 *
 * In the diagram's internal steps (continuous) the states are q and v, and the solver of the diagram integrates them; in its own
 * step they lie in the block's memory, and `advance` takes classical Runge–Kutta or implicit steps. All put q and v back on the
 * constraints after each step. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

/* Takes the next `count` doubles of an array, or only counts them if there is none. */
static double *take(double *from, int64_t *used, int64_t count) {
    double *here = from ? from + *used : NULL;
    *used += count;
    return here;
}

static int32_t count_stictions(const int32_t *forces, int32_t count) {
    int32_t found = 0;
    for (int32_t n = 0; n < count; n++) {
        const int32_t type = forces[n * MB_FORCE_FIELDS + MB_FORCE_TYPE];
        found += type == MB_STICTION || type == MB_JOINT_STICTION;
    }
    return found;
}

void mb_open(const bl_block *b, mb_view *m, int64_t *memory, int64_t *scratch) {
    const int32_t *head = b->i;
    m->head = head;
    m->link_count = head[MB_LINKS];
    m->nq = head[MB_NQ];
    m->nv = head[MB_NV];
    m->body_count = head[MB_BODIES];
    m->marker_count = head[MB_MARKERS];
    m->row_count = head[MB_ROWS];
    m->cut_count = head[MB_CUTS];
    m->nonzeros = head[MB_NONZEROS];
    m->links = b->i + head[MB_AT_LINKS];
    m->bodies = b->i + head[MB_AT_BODIES];
    m->markers = b->i + head[MB_AT_MARKERS];
    m->rows = b->i + head[MB_AT_ROWS];
    m->cuts = b->i + head[MB_AT_CUTS];
    m->paths = b->i + head[MB_AT_PATHS];
    m->pairs = b->i + head[MB_AT_PAIRS];
    m->laws = b->i + head[MB_AT_LAWS];
    m->forces = b->i + head[MB_AT_FORCES];
    m->outputs = b->i + head[MB_AT_OUTPUTS];
    m->measures = b->i + head[MB_AT_MEASURES];
    m->words = b->i + head[MB_AT_WORDS];
    m->mass_slots = b->i + head[MB_AT_MASS];
    m->permutation = b->i + head[MB_AT_PERMUTATION];
    m->row_start = b->i + head[MB_AT_ROW_START];
    m->column_of = b->i + head[MB_AT_COLUMN_OF];
    m->slot_of = b->i + head[MB_AT_SLOT_OF];
    m->column_start = b->i + head[MB_AT_COLUMN_START];
    m->row_of = b->i + head[MB_AT_ROW_OF];
    m->names = b->i + head[MB_AT_NAMES];
    m->joint_frictions = b->i + head[MB_AT_JOINT_FRICTIONS];
    m->joints = b->i + head[MB_AT_JOINTS];
    m->motion_laws = b->i + head[MB_AT_MOTION_LAWS];
    m->keeps = b->i + head[MB_AT_KEEPS];
    m->keep_count = head[MB_KEEPS];
    m->signals.records = b->i + head[MB_AT_SIGNALS];
    m->signals.count = head[MB_SIGNALS];
    m->p = b->p;
    m->u = b->u;
    m->u1 = b->u1;
    m->u2 = b->u2;
    m->settings = b->p + head[MB_SETTINGS];
    m->since = INFINITY;
    m->held = head[MB_INTERNAL] ? b->u_held : NULL;
    m->tick_age = *b->offset;
    m->law_from = -INFINITY;
    m->law_until = INFINITY;
    m->whole = b->dt / (head[MB_SUBSTEPS] > 0 ? head[MB_SUBSTEPS] : 1);
    m->modes = b->modes;
    m->friction_left = false;
    m->event_rest = 0.0;
    m->filmless_bearing = m->jammed_contact = m->diverging_friction = m->ambiguous_friction = -1;
    m->solved = false;
    m->shown_force = NULL;
    mb_rigid_open(m);
    m->roll_count = 0;
    for (int32_t k = 0; k < m->row_count; k++) m->roll_count += mb_binds_rates(m->rows + k * MB_ROW_FIELDS);
    m->places_only = false;
    m->element_types = 0;
    for (int32_t n = 0; n < head[MB_FORCES]; n++)
        m->element_types |= mb_type_bit(m->forces[n * MB_FORCE_FIELDS + MB_FORCE_TYPE]);
    const uint32_t sticks = mb_type_bit(MB_STICTION) | mb_type_bit(MB_JOINT_STICTION);
    m->stick.count = m->element_types & sticks ? count_stictions(m->forces, head[MB_FORCES]) : 0;

    double *z = b->z, *w = b->w;
    *memory = *scratch = 0;
    const int64_t links = m->link_count, nv = m->nv, nq = m->nq, rows = m->row_count;
    /* Precomputed data, and the states of a block with internal steps, are memory; the rest is work space. */
    m->status = take(w, scratch, MB_STATUS_COUNT);
    const int64_t implicit = head[MB_INTEGRATOR] == MB_IMPLICIT;
    m->internal_state = take(z, memory, (nq + nv) * (!head[MB_INTERNAL] ? 0 : implicit ? 1 : 7));
    mb_instant_search *modes = &m->instant_search;
    const int64_t words = head[MB_INTERNAL] ? head[MB_WORDS] : 0; /* more than there are crossing functions */
    modes->mode = take(w, scratch, words);
    modes->start = take(w, scratch, words);
    modes->crossing = take(w, scratch, words);
    modes->at_a = take(w, scratch, words);
    modes->at_b = take(w, scratch, words);
    modes->timed = (int32_t *)(void *)take(w, scratch, words);
    mb_located *located = &m->located;
    const int64_t own = head[MB_INTERNAL] != 0,
                  most = own * (head[MB_WORDS] + head[MB_LAWS] + MB_ELEMENT_MODES * (int64_t)head[MB_FORCES]);
    located->count = 0;
    located->mode = take(w, scratch, most);
    located->crossing = take(w, scratch, most);
    located->before = take(w, scratch, most);
    located->at_a = take(w, scratch, most);
    located->at_b = take(w, scratch, most);
    located->start = take(w, scratch, own * (nq + nv) + implicit * (MB_IMPLICIT_FLAGS + 2 * nv + rows + b->u_count));
    mb_implicit *s = &m->implicit;
    s->flags = take(z, memory, implicit * MB_IMPLICIT_FLAGS);
    s->rate = take(z, memory, implicit * nv);
    s->mean = take(z, memory, implicit * nv);
    s->lambda = take(z, memory, implicit * rows);
    s->inputs = take(z, memory, implicit * b->u_count);
    s->stiffness = take(z, memory, implicit * nv * nv);
    s->damping = take(z, memory, implicit * nv * nv);
    s->matrix = take(w, scratch, implicit * nv * nv);
    s->pivots = take(w, scratch, implicit * nv);
    s->u = take(w, scratch, implicit * nv);
    s->change = take(w, scratch, implicit * nv);
    s->direction = take(w, scratch, implicit * nv);
    s->q_start = take(w, scratch, implicit * nq);
    s->q_moved = take(w, scratch, implicit * nq);
    s->v_start = take(w, scratch, implicit * nv);
    s->rate_start = take(w, scratch, implicit * nv);
    s->mean_start = take(w, scratch, implicit * nv);
    s->lambda_start = take(w, scratch, implicit * rows);
    m->data = (mb_link_data *)(void *)take(z, memory, links * (int64_t)(sizeof(mb_link_data) / sizeof(double)));
    m->marker_data =
        (mb_marker_data *)(void *)take(z, memory, m->marker_count * (int64_t)(sizeof(mb_marker_data) / sizeof(double)));
    m->body = (mb_body_data *)(void *)take(z, memory, m->body_count * (int64_t)(sizeof(mb_body_data) / sizeof(double)));
    m->turns = take(z, memory, head[MB_MEASURES]);
    m->turn_rates = take(z, memory, head[MB_MEASURES]);
    m->turned = take(z, memory, head[MB_MEASURES] > 0 ? MB_TURNED_SIZE : 0);
    m->monitor = take(z, memory, MB_MONITOR_SIZE);
    m->contacts = take(z, memory, (int64_t)head[MB_CONTACTS] * MB_CONTACT_MEMORY);
    const bool wears = mb_has_element(m, MB_CONTACT) || mb_has_element(m, MB_WORN);
    m->wear = take(z, memory, wears ? mb_wear_memory(m->forces, head[MB_FORCES]) : 0);
    m->rigid = (mb_rigid *)(void *)take(w, scratch, head[MB_CONTACTS] * (int64_t)(sizeof(mb_rigid) / sizeof(double)));
    const int64_t rigid = m->rigid_count;
    m->contact_friction = take(w, scratch, rigid > 0 ? (1 + rigid) * (nv + rows + rigid) : 0);
    const bool deep = m->rigid_count > m->rigid_flat;
    m->impact_work = take(w, scratch, deep ? 3 * MB_GROUP_MOST * (nv + rigid) + nv : 0);
    m->thinned = take(z, memory, mb_has_element(m, MB_BEARING) ? mb_thinned_memory(m->forces, head[MB_FORCES]) : 0);
    m->offset = take(z, memory, rows);
    m->carried = take(z, memory, MB_CARRIED_SIZE);
    m->offset_step = take(w, scratch, rows);
    m->saved_state = take(w, scratch, nq + 2 * nv);
    m->power_work = take(w, scratch, 6 * links + nv);
    m->link = (mb_link_state *)(void *)take(w, scratch, links * (int64_t)(sizeof(mb_link_state) / sizeof(double)));
    m->row_state = (mb_row_state *)(void *)take(w, scratch, rows * (int64_t)(sizeof(mb_row_state) / sizeof(double)));
    m->cut_state =
        (mb_cut_state *)(void *)take(w, scratch, m->cut_count * (int64_t)(sizeof(mb_cut_state) / sizeof(double)));
    const int64_t terms = rows > 0 && head[MB_WORDS] > 0 ? head[MB_WORDS] / MB_TERM_LEAST + 1 : 0;
    m->term_state =
        (mb_term_state *)(void *)take(w, scratch, terms * (int64_t)(sizeof(mb_term_state) / sizeof(double)));
    m->term_jets = take(w, scratch, 3 * terms);
    m->phi = take(w, scratch, rows);
    m->phi_rate = take(w, scratch, rows);
    m->bias = take(w, scratch, rows);
    m->lambda = take(w, scratch, rows);
    m->alpha = take(w, scratch, rows);
    m->row_work = take(w, scratch, rows);
    m->search = take(w, scratch, rows > 0 ? 3 * rows + nv : 0);
    m->jacobian = take(w, scratch, head[MB_JACOBIAN]);
    m->force = take(w, scratch, nv);
    m->acceleration = take(w, scratch, nv);
    m->step = take(w, scratch, nv);
    m->residual = take(w, scratch, nv);
    m->work = take(w, scratch, nv);
    m->mass_diagonal = take(w, scratch, nv);
    m->mass_off = take(w, scratch, m->nonzeros);
    m->k_diagonal = take(w, scratch, nv);
    m->k_off = take(w, scratch, m->nonzeros);
    m->pivot = take(w, scratch, nv);
    m->factor = take(w, scratch, m->nonzeros);
    m->articulated = take(w, scratch, rows == 0 ? 33 * links : 0);
    const int64_t joint_frictions = head[MB_JOINT_FRICTIONS];
    mb_joint_friction *r = &m->friction;
    r->load = take(w, scratch, joint_frictions);
    r->strength = take(w, scratch, joint_frictions);
    r->slip = take(w, scratch, joint_frictions);
    r->slide = take(w, scratch, joint_frictions);
    r->turn = take(w, scratch, joint_frictions);
    r->base = take(w, scratch, MB_JOINT_FRICTION_PARTS * joint_frictions);
    r->response = take(w, scratch, MB_JOINT_FRICTION_PARTS * joint_frictions * joint_frictions);
    r->acceleration = take(w, scratch, joint_frictions * nv);
    r->lambda = take(w, scratch, joint_frictions * rows);
    mb_stiction *stick = &m->stick;
    const int64_t stictions = stick->count, at_rest = joint_frictions > 0 || stictions > 0;
    r->force = take(w, scratch, at_rest * nv);
    r->no_bias = take(w, scratch, at_rest * rows);
    r->frame = (mb_joint_friction_frame *)(void *)take(
        w, scratch, joint_frictions * (int64_t)(sizeof(mb_joint_friction_frame) / sizeof(double)));
    r->still =
        (mb_link_state *)(void *)take(w, scratch, at_rest * links * (int64_t)(sizeof(mb_link_state) / sizeof(double)));
    if (stictions > 0) {
        stick->slips = take(z, memory, stictions + 1);
        stick->effort = take(w, scratch, stictions);
        stick->held = take(w, scratch, stictions);
        stick->unit = take(w, scratch, stictions * nv);
        stick->acceleration = take(w, scratch, stictions * nv);
        stick->lambda = take(w, scratch, stictions * rows);
        stick->matrix = take(w, scratch, stictions * stictions);
        stick->right = take(w, scratch, stictions);
        stick->order = (int32_t *)(void *)take(w, scratch, stictions);
        if (joint_frictions > 0) {
            stick->response = take(w, scratch, MB_JOINT_FRICTION_PARTS * stictions * joint_frictions);
            stick->wanted = take(w, scratch, stictions * (1 + joint_frictions));
            stick->found = take(w, scratch, stictions * (1 + joint_frictions));
            stick->lower = take(w, scratch, stictions * stictions);
            stick->gram = take(w, scratch, stictions * stictions);
            stick->rest = take(w, scratch, stictions);
            stick->scale = take(w, scratch, stictions);
            stick->before = take(w, scratch, stictions);
            stick->best = take(w, scratch, stictions);
            stick->astray = take(w, scratch, stictions);
            stick->pivots = (int32_t *)(void *)take(w, scratch, stictions);
        }
    }
    m->angles_count = 0;
    for (int32_t k = 0; k < head[MB_OUTPUTS]; k++)
        m->angles_count += m->outputs[k * MB_OUT_FIELDS + MB_OUT_TYPE] == MB_OUT_ANGLES;
    m->angles = take(z, memory, (int64_t)m->angles_count * MB_ANGLES_MEMORY);
    const int64_t joints = head[MB_JOINTS], shares = joints > 0;
    m->shared = take(z, memory, shares * MB_SHARED_SIZE);
    m->motion_memory = take(z, memory, 3 * (int64_t)head[MB_MOTION_LAWS]);
    m->jumps = take(z, memory, head[MB_MOTION_LAWS] > 0 ? MB_JUMPS_SIZE : 0);
    mb_sharing *share = &m->share;
    share->count = 0;
    share->order = take(z, memory, shares * 2 * rows);
    share->row_scale = take(z, memory, shares * rows);
    share->row_unit = take(z, memory, shares * rows);
    share->column_unit = take(z, memory, shares * nv);
    share->joint_scale = take(z, memory, 2 * joints);
    share->matrix = take(w, scratch, shares * rows * nv);
    share->basis = take(w, scratch, shares * rows * rows);
    share->gram = take(w, scratch, shares * rows * rows);
    share->right = take(w, scratch, shares * rows);
    share->place = take(w, scratch, 3 * joints);
    share->wrench = take(w, scratch, shares * 6 * links);
    share->entries = (mb_share_entry *)(void *)take(
        w, scratch, shares * rows * (joints + rows) * (int64_t)(sizeof(mb_share_entry) / sizeof(double)));
    share->row_at = (int32_t *)(void *)take(w, scratch, shares * rows);
    share->column_at = (int32_t *)(void *)take(w, scratch, shares * nv);
    share->lists = (int32_t *)(void *)take(w, scratch, shares * (joints + rows + nv));
    share->joint_of = (int32_t *)(void *)take(w, scratch, shares * links);
    share->reached = (int32_t *)(void *)take(w, scratch, joints);
    m->law_modes = (int32_t *)(void *)take(w, scratch, (int64_t)head[MB_LAWS] + 1 + head[MB_FORCES]);
    const int64_t keeps = m->keep_count;
    mb_start *first = &m->start;
    first->q = take(w, scratch, nq);
    first->step = take(w, scratch, nv);
    first->pulled = take(w, scratch, nv);
    first->last = take(w, scratch, nv);
    first->still = take(w, scratch, nv);
    first->open = take(w, scratch, 2 * (int64_t)m->body_count);
    first->rows = take(w, scratch, keeps * nv);
    first->replies = take(w, scratch, keeps * nv);
    first->matrix = take(w, scratch, keeps * keeps);
    first->error = take(w, scratch, keeps);
    first->share = take(w, scratch, keeps);
    first->scale = take(w, scratch, keeps);
    first->order = take(w, scratch, keeps);
    first->decided = take(w, scratch, keeps);
    mb_signals *signals = &m->signals;
    signals->value = take(w, scratch, signals->count);
    signals->state = take(w, scratch, MB_SEEN_SIZE);
    signals->q = take(w, scratch, signals->count > 0 ? nq : 0);
    signals->v = take(w, scratch, signals->count > 0 ? nv : 0);
    const bool keeps_faults = head[MB_WORDS] > 0 && !head[MB_INTERNAL];
    signals->fault = take(z, memory, keeps_faults ? 3 : 0);
    signals->text = (char *)(void *)take(w, scratch, MB_MESSAGE_SIZE / (int64_t)sizeof(double));
    signals->signs = take(z, memory, mb_has_body_coordinates(m) ? m->body_count : 0);
    if (z) {
        m->gravity[0] = b->p[head[MB_GRAVITY]];
        m->gravity[1] = b->p[head[MB_GRAVITY] + 1];
        m->gravity[2] = head[MB_PLANAR] ? 0.0 : b->p[head[MB_GRAVITY] + 2];
    }
}

void mb_open_view(const bl_block *b, mb_view *m) {
    int64_t memory, scratch;
    mb_open(b, m, &memory, &scratch);
    mb_rigid_load(m);
    mb_open_signals(m);
    if (m->modes.mode) {
        m->force_modes = m->law_modes + m->head[MB_LAWS] + 1;
        (void)mb_number_modes(m, m->law_modes, m->force_modes);
    }
}

static bool fits_table(const bl_block *b, int32_t at, int64_t count, int64_t fields) {
    return at >= MB_HEAD && count >= 0 && count < 1 << 24 && (int64_t)at + count * fields <= b->i_count;
}

int mb_check(const bl_block *b) {
    if (b->i_count < MB_HEAD) return 0;
    const int32_t *head = b->i;
    for (int k = MB_LINKS; k <= MB_SIGNALS; k++)
        if (head[k] < 0 || head[k] > 1 << 22) return 0;
    const int64_t links = head[MB_LINKS], nq = head[MB_NQ], nv = head[MB_NV], bodies = head[MB_BODIES],
                  markers = head[MB_MARKERS], rows = head[MB_ROWS], cuts = head[MB_CUTS], paths = head[MB_PATHS],
                  pairs = head[MB_PAIRS], laws = head[MB_LAWS], forces = head[MB_FORCES], outputs = head[MB_OUTPUTS],
                  nonzeros = head[MB_NONZEROS], measures = head[MB_MEASURES], masses = head[MB_MASS_ENTRIES],
                  joint_frictions = head[MB_JOINT_FRICTIONS], keeps = head[MB_KEEPS];
    if (!mb_in_range(head[MB_INTEGRATOR], MB_RK4, MB_INTEGRATORS)) return 0;
    if (head[MB_INTEGRATOR] == MB_IMPLICIT && (!head[MB_INTERNAL] || nv > MB_IMPLICIT_LARGEST)) return 0;
    if (links < 1 || nv < 1 || nq < nv || head[MB_SUBSTEPS] < 1 || head[MB_SUBSTEPS] > 1000000) return 0;
    const int planar = head[MB_PLANAR] != 0, own = head[MB_INTERNAL] != 0, size = planar ? 2 : 3;
    if (!mb_in_range(head[MB_GRAVITY], 0, b->p_count - size + 1) ||
        !mb_in_range(head[MB_SETTINGS], 0, b->p_count - MB_SETTINGS_COUNT + 1))
        return 0;
    if (!fits_table(b, head[MB_AT_LINKS], links, MB_LINK_FIELDS) ||
        !fits_table(b, head[MB_AT_BODIES], bodies, MB_BODY_FIELDS) ||
        !fits_table(b, head[MB_AT_MARKERS], markers, MB_MARKER_FIELDS) ||
        !fits_table(b, head[MB_AT_ROWS], rows, MB_ROW_FIELDS) ||
        !fits_table(b, head[MB_AT_CUTS], cuts, MB_CUT_FIELDS) ||
        !fits_table(b, head[MB_AT_PATHS], paths, MB_PATH_FIELDS) || !fits_table(b, head[MB_AT_PAIRS], pairs, 1) ||
        !fits_table(b, head[MB_AT_LAWS], laws, MB_LAW_FIELDS) ||
        !fits_table(b, head[MB_AT_FORCES], forces, MB_FORCE_FIELDS) ||
        !fits_table(b, head[MB_AT_OUTPUTS], outputs, MB_OUT_FIELDS) ||
        !fits_table(b, head[MB_AT_MEASURES], measures, MB_MEASURE_FIELDS) ||
        !fits_table(b, head[MB_AT_WORDS], head[MB_WORDS], 1) || !fits_table(b, head[MB_AT_MASS], masses, 1) ||
        !fits_table(b, head[MB_AT_PERMUTATION], 2 * nv, 1) || !fits_table(b, head[MB_AT_ROW_START], nv + 1, 1) ||
        !fits_table(b, head[MB_AT_COLUMN_OF], nonzeros, 1) || !fits_table(b, head[MB_AT_SLOT_OF], nonzeros, 1) ||
        !fits_table(b, head[MB_AT_COLUMN_START], nv + 1, 1) || !fits_table(b, head[MB_AT_ROW_OF], nonzeros, 1) ||
        !fits_table(b, head[MB_AT_NAMES], head[MB_NAMES], 1) ||
        !fits_table(b, head[MB_AT_JOINT_FRICTIONS], joint_frictions, MB_JOINT_FRICTION_FIELDS) ||
        !fits_table(b, head[MB_AT_JOINTS], head[MB_JOINTS], MB_JOINT_FIELDS) ||
        !fits_table(b, head[MB_AT_MOTION_LAWS], head[MB_MOTION_LAWS], 1) ||
        !fits_table(b, head[MB_AT_KEEPS], keeps, MB_KEEP_FIELDS) ||
        !fits_table(b, head[MB_AT_SIGNALS], head[MB_SIGNALS], MB_SIGNAL_FIELDS))
        return 0;
    mb_tally tally = {0};
    for (int64_t k = 0; k < forces; k++) {
        const int32_t type = b->i[head[MB_AT_FORCES] + k * MB_FORCE_FIELDS + MB_FORCE_TYPE];
        if (!mb_in_range(type, 0, MB_FORCE_TYPES)) return 0;
    }
    if (!mb_names_check(b->i + head[MB_AT_NAMES], head[MB_NAMES],
                        links + cuts + forces + bodies + head[MB_MOTION_LAWS] + keeps + mb_count_formulas(b) +
                            head[MB_SIGNALS]))
        return 0;

    const bool sticks = count_stictions(b->i + head[MB_AT_FORCES], (int32_t)forces) > 0;
    const bool massive =
        rows > 0 || joint_frictions > 0 || sticks || head[MB_INTEGRATOR] == MB_IMPLICIT; /* whether M is made */
    int64_t q_used = 0, v_used = 0, entries = 0;
    for (int64_t l = 0; l < links; l++) {
        const int32_t *link = b->i + head[MB_AT_LINKS] + l * MB_LINK_FIELDS;
        const int32_t type = link[MB_LINK_TYPE];
        if (!mb_in_range(type, MB_FIXED, MB_SPHERICAL + 1) || !mb_in_range(link[MB_LINK_PARENT], -1, l) ||
            link[MB_LINK_Q] != q_used || link[MB_LINK_V] != v_used || !mb_in_range(link[MB_LINK_BODY], -1, bodies) ||
            !mb_in_range(link[MB_LINK_BASE], -1, markers) || !mb_in_range(link[MB_LINK_TIP], -1, markers) ||
            !mb_in_range(link[MB_LINK_TURN], 0, 3) || !mb_in_range(link[MB_LINK_END_TURN], 0, 3))
            return 0;
        const int64_t speeds = type == MB_SPHERICAL ? 3 : type == MB_FIXED ? 0 : 1;
        q_used += type == MB_SPHERICAL ? 4 : speeds;
        v_used += speeds;
        if (!massive) continue;
        entries += speeds * (speeds + 1) / 2;
        for (int32_t up = link[MB_LINK_PARENT]; up >= 0;
             up = b->i[head[MB_AT_LINKS] + up * MB_LINK_FIELDS + MB_LINK_PARENT]) {
            const int32_t up_type = b->i[head[MB_AT_LINKS] + up * MB_LINK_FIELDS + MB_LINK_TYPE];
            entries += speeds * (up_type == MB_SPHERICAL ? 3 : up_type == MB_FIXED ? 0 : 1);
            if (entries > masses) return 0;
        }
        if (entries > masses) return 0;
    }
    if (q_used != nq || v_used != nv || (massive && entries != masses)) return 0;
    for (int64_t k = 0; k < bodies; k++) {
        const int32_t *at = b->i + head[MB_AT_BODIES] + k * MB_BODY_FIELDS;
        const int sizes[MB_BODY_FIELDS] = {1, planar ? 1 : 9, size, size, planar ? 1 : 4, size, planar ? 1 : 3};
        for (int f = 0; f < MB_BODY_FIELDS; f++)
            if (!mb_in_range(at[f], 0, (int64_t)b->p_count - sizes[f] + 1)) return 0;
    }
    for (int64_t k = 0; k < markers; k++) {
        const int32_t *marker = b->i + head[MB_AT_MARKERS] + k * MB_MARKER_FIELDS;
        if (!mb_in_range(marker[MB_MARKER_LINK], -1, links) ||
            !mb_in_range(marker[MB_MARKER_PLACE], 0, (int64_t)b->p_count - (planar ? 3 : 6) + 1) ||
            !mb_in_range(marker[MB_MARKER_FRAME], 0, (int64_t)b->p_count - 3))
            return 0;
        for (int f = MB_MARKER_LAW_X; f <= MB_MARKER_LAW_Z; f++)
            if (!mb_in_range(marker[f], -1, laws)) return 0;
    }
    int64_t words_used = 0;
    for (int64_t k = 0; k < laws; k++) {
        const int32_t *law = b->i + head[MB_AT_LAWS] + k * MB_LAW_FIELDS;
        if (!mb_law_check(b, law, &words_used)) return 0;
    }
    for (int64_t k = 0; k < head[MB_MOTION_LAWS]; k++)
        if (!mb_in_range(b->i[head[MB_AT_MOTION_LAWS] + k], 0, laws)) return 0;
    for (int64_t k = 0; k < measures; k++) {
        const int32_t *measure = b->i + head[MB_AT_MEASURES] + k * MB_MEASURE_FIELDS;
        if (!mb_in_range(measure[MB_MEASURE_TYPE], MB_LENGTH, MB_EULER + 1) ||
            (measure[MB_MEASURE_TYPE] == MB_EULER && measure[MB_MEASURE_ALONG] > 3) ||
            !mb_in_range(measure[MB_MEASURE_I], 0, markers) || !mb_in_range(measure[MB_MEASURE_J], 0, markers) ||
            !mb_in_range(measure[MB_MEASURE_ALONG], 0, 6) || !mb_in_range(measure[MB_MEASURE_OF], 0, 6) ||
            !mb_in_range(measure[MB_MEASURE_START], 0, 6))
            return 0;
    }
    for (int64_t k = 0; k < rows; k++) {
        const int32_t *row = b->i + head[MB_AT_ROWS] + k * MB_ROW_FIELDS;
        const int32_t type = row[MB_ROW_TYPE];
        if (!mb_in_range(type, 0, MB_ROW_KINDS)) return 0;
        if (mb_coordinate_rows[type]) {
            if (!mb_coordinate_rows[type]->check(b, row)) return 0;
        } else if (type >= MB_ROW_TOUCH) { /* of rigid contacts: the rest is mb_rigid_check's */
            if (!mb_in_range(row[MB_ROW_I], 0, markers) || !mb_in_range(row[MB_ROW_J], 0, markers)) return 0;
        } else if (!mb_in_range(row[MB_ROW_I], 0, markers) || !mb_in_range(row[MB_ROW_J], 0, markers) ||
                   !mb_in_range(row[MB_ROW_A], 0, mb_is_driver(type) ? measures : 3) ||
                   !mb_in_range(row[MB_ROW_B], 0, 3) ||
                   !mb_in_range(row[MB_ROW_VALUE], 0, mb_is_driver(type) ? laws : b->p_count)) {
            return 0;
        }
    }
    int64_t row_used = 0;
    for (int64_t c = 0; c < cuts; c++) {
        const int32_t *cut = b->i + head[MB_AT_CUTS] + c * MB_CUT_FIELDS;
        const int64_t n = cut[MB_CUT_PATHS];
        if (cut[MB_CUT_ROW] != row_used || !mb_in_range(cut[MB_CUT_ROWS], 1, rows - row_used + 1) ||
            !mb_in_range(cut[MB_CUT_PATH], 0, paths + 1) || n < 0 || cut[MB_CUT_PATH] + n > paths ||
            cut[MB_CUT_PAIR] < 0 || cut[MB_CUT_PAIR] + n * (n + 1) / 2 > pairs || cut[MB_CUT_J] < 0 ||
            cut[MB_CUT_J] + n * cut[MB_CUT_ROWS] > head[MB_JACOBIAN])
            return 0;
        for (int32_t r = 0; r < cut[MB_CUT_ROWS]; r++) { /* a row of coordinates has a separate closure */
            const int32_t type = b->i[head[MB_AT_ROWS] + (row_used + r) * MB_ROW_FIELDS + MB_ROW_TYPE];
            if ((mb_is_driver(type) || mb_coordinate_rows[type]) && cut[MB_CUT_ROWS] != 1) return 0;
        }
        row_used += cut[MB_CUT_ROWS];
    }
    if (row_used != rows) return 0;
    for (int64_t k = 0; k < paths; k++) {
        const int32_t *path = b->i + head[MB_AT_PATHS] + k * MB_PATH_FIELDS;
        if (!mb_in_range(path[MB_PATH_V], 0, nv) || !mb_in_range(path[MB_PATH_LINK], 0, links) ||
            !mb_in_range(path[MB_PATH_AXIS], 0, 3) || !mb_in_range(path[MB_PATH_SIDE], 0, 2))
            return 0;
    }
    for (int64_t k = 0; k < pairs; k++)
        if (!mb_in_range(b->i[head[MB_AT_PAIRS] + k], -nv, nonzeros)) return 0;
    for (int64_t k = 0; k < masses; k++)
        if (!mb_in_range(b->i[head[MB_AT_MASS] + k], -nv, nonzeros)) return 0;
    for (int64_t k = 0; k < 2 * nv; k++)
        if (!mb_in_range(b->i[head[MB_AT_PERMUTATION] + k], 0, nv)) return 0;
    const int32_t *row_start = b->i + head[MB_AT_ROW_START], *column_start = b->i + head[MB_AT_COLUMN_START];
    if (row_start[0] != 0 || column_start[0] != 0 || row_start[nv] != nonzeros || column_start[nv] != nonzeros)
        return 0;
    for (int64_t k = 0; k < nv; k++)
        if (row_start[k] > row_start[k + 1] || column_start[k] > column_start[k + 1] || row_start[k + 1] > nonzeros ||
            column_start[k + 1] > nonzeros)
            return 0;
    for (int64_t k = 0; k < nonzeros; k++)
        if (!mb_in_range(b->i[head[MB_AT_COLUMN_OF] + k], 0, nv) || !mb_in_range(b->i[head[MB_AT_ROW_OF] + k], 0, nv) ||
            !mb_in_range(b->i[head[MB_AT_SLOT_OF] + k], 0, nonzeros))
            return 0;
    for (int64_t k = 0; k < forces; k++) {
        const int32_t *force = b->i + head[MB_AT_FORCES] + k * MB_FORCE_FIELDS;
        if (!mb_element_of(force)->check(b, force, &tally)) return 0;
    }
    for (int64_t k = 0; k < joint_frictions; k++)
        if (!mb_joint_friction_check(b, b->i + head[MB_AT_JOINT_FRICTIONS] + k * MB_JOINT_FRICTION_FIELDS)) return 0;
    for (int64_t k = 0; k < head[MB_JOINTS]; k++)
        if (!mb_joint_check(b, b->i + head[MB_AT_JOINTS] + k * MB_JOINT_FIELDS)) return 0;
    for (int64_t k = 0; k < keeps; k++) {
        const int32_t *keep = b->i + head[MB_AT_KEEPS] + k * MB_KEEP_FIELDS;
        if (!mb_in_range(keep[MB_KEEP_SIGN], -2, 3) ||
            !mb_in_range(keep[MB_KEEP_INDEX], 0, keep[MB_KEEP_SIGN] == 0 ? measures : nq) ||
            !mb_in_range(keep[MB_KEEP_V], 0, nv) || !mb_in_range(keep[MB_KEEP_P], 0, b->p_count))
            return 0;
    }
    if (!mb_signals_check(b)) return 0;
    if (b->y_count != outputs || tally.contacts != head[MB_CONTACTS] || !mb_rigid_check(b)) return 0;
    for (int64_t k = 0; k < outputs; k++) {
        const int32_t *out = b->i + head[MB_AT_OUTPUTS] + k * MB_OUT_FIELDS;
        const int32_t type = out[MB_OUT_TYPE];
        if (!mb_in_range(type, 0, MB_OUT_TYPES)) return 0;
        const int vector =
            type <= MB_OUT_ANGULAR_ACCELERATION || type == MB_OUT_REACTION_FORCE || type == MB_OUT_REACTION_TORQUE;
        if (type == MB_OUT_ANGLES) {
            if (!mb_in_range(out[MB_OUT_INDEX], 0, markers) || !mb_sequence_check(out[MB_OUT_AXIS]) ||
                b->y_width[k] != 3)
                return 0;
            continue;
        }
        if (type >= MB_OUT_ELEMENT && type <= MB_OUT_ELEMENT_ENERGY) {
            if (!mb_in_range(out[MB_OUT_INDEX], 0, forces)) return 0;
            const int32_t *force = b->i + head[MB_AT_FORCES] + out[MB_OUT_INDEX] * MB_FORCE_FIELDS;
            const mb_element *element = mb_element_of(force);
            const int32_t width =
                type == MB_OUT_ELEMENT ? (out[MB_OUT_AXIS] >= 0 ? element->width(force, out[MB_OUT_AXIS]) : -1) : 1;
            if (width < 0 || b->y_width[k] != width) return 0;
            if (type == MB_OUT_ELEMENT_POWER && !element->power && !element->load) return 0;
            if (type == MB_OUT_ELEMENT_ENERGY && !element->energy) return 0;
            continue;
        }
        if (type == MB_OUT_POWER || type == MB_OUT_ENERGY) {
            if (!mb_in_range(out[MB_OUT_INDEX], 0, 1) || b->y_width[k] != 1 ||
                !mb_in_range(out[MB_OUT_AXIS], 0, type == MB_OUT_POWER ? MB_POWER_QUANTITIES : MB_ENERGY_KINDS))
                return 0;
            continue;
        }
        if (b->y_width[k] != (type == MB_OUT_QUATERNION ? 4 : vector ? 3 : 1)) return 0;
        const bool coordinate = type >= MB_OUT_COORDINATE && type <= MB_OUT_JOINT_ACCELERATION;
        const bool of_body = type == MB_OUT_BODY_COORDINATE || type == MB_OUT_BODY_RATE;
        if (of_body && !mb_in_range(out[MB_OUT_AXIS], 0, MB_BODY_COORDINATES)) return 0;
        const int64_t end = type <= MB_OUT_ANGULAR_ACCELERATION || of_body                      ? markers
                            : coordinate && out[MB_OUT_AXIS] == 0                               ? measures
                            : type == MB_OUT_COORDINATE                                         ? nq
                            : type == MB_OUT_SPEED || type == MB_OUT_JOINT_ACCELERATION         ? nv
                            : type == MB_OUT_DRIVER_EFFORT || type == MB_OUT_DRIVER_POWER       ? rows
                            : type == MB_OUT_JOINT_CLOSURE || type == MB_OUT_JOINT_CLOSURE_RATE ? links + cuts
                            : type == MB_OUT_REACTION_FORCE || type == MB_OUT_REACTION_TORQUE   ? links + cuts
                                                                                                : 1;
        if (!mb_in_range(out[MB_OUT_INDEX], 0, end)) return 0;
        if (type == MB_OUT_DRIVER_POWER &&
            !mb_moves_by_time(b->i[head[MB_AT_ROWS] + out[MB_OUT_INDEX] * MB_ROW_FIELDS + MB_ROW_TYPE]))
            return 0;
        if (vector && type >= MB_OUT_REACTION_FORCE && !mb_in_range(out[MB_OUT_AXIS], -markers, markers)) return 0;
    }
    for (int32_t k = 0; k < b->u_count; k++)
        if (b->u_width[k] != 1) return 0;
    return b->x_count == (own ? 0 : nq + nv);
}

static int continuous_check(const bl_block *b) { return mb_check(b) && !b->i[MB_INTERNAL]; }
static int internal_check(const bl_block *b) { return mb_check(b) && b->i[MB_INTERNAL]; }

static bl_sizes multibody_sizes(const bl_block *b) {
    bl_block unplaced = *b;
    unplaced.z = unplaced.w = NULL;
    mb_view m;
    bl_sizes sizes;
    mb_open(&unplaced, &m, &sizes.memory, &sizes.scratch);
    return sizes;
}

static int32_t multibody_crossing_count(const bl_block *b) {
    bl_block unplaced = *b;
    unplaced.z = unplaced.w = NULL;
    mb_view m;
    bl_sizes sizes;
    mb_open(&unplaced, &m, &sizes.memory, &sizes.scratch);
    return mb_number_modes(&m, NULL, NULL);
}

static double *states(const bl_block *b, const mb_view *m) { return m->head[MB_INTERNAL] ? m->internal_state : b->x; }

/* Reads the mechanism from the parameters, closes its loops and makes its velocities consistent. */
static int multibody_init(bl_block *b, double t) {
    mb_view m;
    memset(b->z, 0, (size_t)b->z_count * sizeof(double));
    mb_open_view(b, &m);
    mb_prepare(&m);
    for (int32_t n = 0; n < m.body_count; n++)
        if (!mb_body_sound(&m.body[n])) return mb_fail_body(b, &m, n);
    const int status = mb_check_parameters(b, &m);
    if (status != BL_OK) return status;
    double *q = states(b, &m), *v = q + m.nq;
    int32_t missed;
    const int found = mb_start_state(&m, t, q, v, &missed);
    if (found == MB_START_OPEN) return mb_fail_assembly(b, &m, t, m.saved_state, m.saved_state + m.nq);
    if (found == MB_START_MISSED) return mb_fail_kept(b, &m, missed, t, q, v);
    mb_share_start(&m, t, q);
    if (!mb_carry_bearings(&m, t, q, v)) return mb_fail_factor(b, &m, t);
    mb_start_measures(&m, t, q, v);
    mb_start_signs(&m, q);
    mb_start_angles(&m, t, q, v);
    mb_start_motion_laws(&m, t);
    for (int32_t n = 0; n < m.head[MB_FORCES]; n++) {
        const int32_t *force = mb_force_record(&m, n);
        const mb_element *element = mb_element_of(force);
        if (element->start) element->start(&m, force, t);
    }
    mb_keep_elements(&m, t, q, v);
    for (int32_t n = 0; n < m.head[MB_CONTACTS]; n++) mb_start_brief(m.contacts + n * MB_CONTACT_MEMORY);
    mb_start_thinned(&m, t);
    const int32_t outside = mb_rigid_start(&m, t, q, v);
    if (outside >= 0) return mb_fail_outside(b, &m, outside, t);
    mb_start_stiction(&m, t, q, v);
    mb_sample_shared(&m, t, q, v, true);
    return BL_OK;
}

static int multibody_check_parameters(bl_block *b, double t) {
    (void)t;
    mb_view m;
    mb_open_view(b, &m);
    return mb_check_parameters(b, &m);
}

/* Stiction at the present state and inputs: BL_OK if a joint began to stick or to slide. */
static int settle_stiction(bl_block *b, mb_view *m, double t) {
    bool changed = false;
    double *q = states(b, m);
    if (m->stick.count == 0) return BL_UNCHANGED;
    if (!mb_settle_stiction(m, t, q, q + m->nq, &changed)) return mb_fail_factor(b, m, t);
    return changed ? BL_OK : BL_UNCHANGED;
}

/* Inputs are known only now: with those that prescribe motion the initial state is found again, and joints may stick or slide. */
static int multibody_exit_initialization(bl_block *b, double t) {
    mb_view m;
    mb_open_view(b, &m);
    int status = BL_UNCHANGED;
    if (m.head[MB_MOTION_LAWS] > 0) {
        if (mb_begin_motion_laws(&m, t)) status = multibody_init(b, t);
        mb_begun_motion_laws(&m);
    }
    if ((status != BL_OK && status != BL_UNCHANGED) || m.stick.count == 0) return status;
    double *settled = &m.stick.slips[m.stick.count]; /* a state that is restored has been */
    if (*settled != 0.0) return status;
    const int outcome = settle_stiction(b, &m, t);
    *settled = 1.0;
    return outcome == BL_UNCHANGED ? status : outcome;
}

/* Takes out of the wrench through a tree joint, about its second marker, what acts along the coordinates of the joint: efforts
   of drivers and loads. The chain of the joint ends at the link `last`; those before it carry no body. */
void mb_take_out_efforts(const mb_view *m, int32_t last, double *F, double *N) {
    for (int32_t l = last; l >= 0; l = m->links[l * MB_LINK_FIELDS + MB_LINK_PARENT]) {
        const double *axis = m->link[l].axis;
        if (l != last && m->links[l * MB_LINK_FIELDS + MB_LINK_BODY] >= 0) return;
        switch (m->links[l * MB_LINK_FIELDS + MB_LINK_TYPE]) {
            case MB_REVOLUTE: mb_axpy(-mb_dot(axis, N), axis, N); break;
            case MB_PRISMATIC: mb_axpy(-mb_dot(axis, F), axis, F); break;
            case MB_SPHERICAL: memset(N, 0, 3 * sizeof(double)); break;
            default: break;
        }
    }
}

/* The constraint wrench of a joint on the body of its second marker, without the efforts on its coordinates: for a tree joint from
   the recursion, for a closure from its multipliers. The torque is about that marker. A negative `marker` is -1 - its index and
   means that the tree runs from the second body to the first. */
static void reaction(const mb_view *m, int32_t index, int32_t marker, bool ideal, double *F, double *N) {
    memset(F, 0, 3 * sizeof(double));
    memset(N, 0, 3 * sizeof(double));
    if (index < m->link_count) {
        const mb_link_state *s = &m->link[index];
        double P[3], arm[3];
        mb_marker_place(m, marker < 0 ? -1 - marker : marker, P);
        mb_copy(s->F, F);
        mb_copy(s->N, N);
        mb_sub(s->p, P, arm);
        mb_add_cross(arm, F, N);
        if (ideal) mb_take_out_efforts(m, index, F, N);
    } else {
        const int32_t *cut = m->cuts + (index - m->link_count) * MB_CUT_FIELDS;
        for (int32_t k = cut[MB_CUT_ROW]; k < cut[MB_CUT_ROW] + cut[MB_CUT_ROWS]; k++) {
            const mb_row_state *row = &m->row_state[k];
            mb_axpy(-m->lambda[k], row->F, F);
            mb_axpy(-m->lambda[k], row->N_j, N);
        }
    }
    if (marker >= 0) return;
    for (int k = 0; k < 3; k++) {
        F[k] = -F[k];
        N[k] = -N[k];
    }
}

void mb_reaction(const mb_view *m, int32_t index, int32_t marker, double *F, double *N) {
    reaction(m, index, marker, true, F, N);
}

void mb_joint_wrench(const mb_view *m, int32_t index, int32_t marker, double *F, double *N) {
    reaction(m, index, marker, false, F, N);
}

static void push_pairs(const mb_view *m, int32_t cut, const mb_coordinate_row *own) {
    const double lambda = m->lambda[m->cuts[cut * MB_CUT_FIELDS + MB_CUT_ROW]];
    mb_pair pair;
    for (int32_t n = 0; own->next_pair && (n = own->next_pair(m, cut, n, &pair)) > 0;) {
        double F[3], N[3], opposite[3], opposite_N[3];
        for (int k = 0; k < 3; k++) {
            F[k] = -lambda * pair.F[k], opposite[k] = -F[k];
            N[k] = -lambda * pair.N[k], opposite_N[k] = -N[k];
        }
        mb_push(m, pair.i, pair.P, opposite, opposite_N);
        mb_push(m, pair.j, pair.P, F, N);
    }
}

void mb_push_multipliers(const mb_view *m) {
    for (int32_t c = 0; c < m->cut_count; c++) {
        const int32_t *cut = m->cuts + c * MB_CUT_FIELDS, *first = m->rows + cut[MB_CUT_ROW] * MB_ROW_FIELDS;
        const mb_coordinate_row *own = mb_coordinate_row_of(m, c);
        if (own) {
            push_pairs(m, c, own);
            continue;
        }
        const mb_cut_state *at = &m->cut_state[c];
        double F[3] = {0, 0, 0}, opposite[3] = {0, 0, 0}, N_i[3] = {0, 0, 0}, N_j[3] = {0, 0, 0};
        for (int32_t k = cut[MB_CUT_ROW]; k < cut[MB_CUT_ROW] + cut[MB_CUT_ROWS]; k++) {
            const mb_row_state *row = &m->row_state[k];
            mb_axpy(-m->lambda[k], row->F, F);
            mb_axpy(m->lambda[k], row->F, opposite);
            mb_axpy(-m->lambda[k], row->N_i, N_i);
            mb_axpy(-m->lambda[k], row->N_j, N_j);
        }
        mb_push(m, first[MB_ROW_I], at->P_i, opposite, N_i);
        mb_push(m, first[MB_ROW_J], at->P_j, F, N_j);
    }
}

/* Runs the recursion again with the multipliers. Friction has shared loads already. */
void mb_find_wrenches(mb_view *m, double t, const double *q, const double *v) {
    for (int32_t l = 0; l < m->link_count; l++) {
        memset(m->link[l].F, 0, sizeof m->link[l].F);
        memset(m->link[l].N, 0, sizeof m->link[l].N);
    }
    memset(m->step, 0, (size_t)m->nv * sizeof(double));
    mb_add_loads(m, t, q, v, m->step);
    mb_push_multipliers(m);
    mb_bias_forces(m, m->step);
    if (m->head[MB_JOINT_FRICTIONS] > 0) return;
    mb_share_prepare(m);
    mb_share(m);
}

static bool needs_accelerations(int32_t type, bool implicit) {
    return type == MB_OUT_ACCELERATION || type == MB_OUT_ANGULAR_ACCELERATION || type == MB_OUT_JOINT_ACCELERATION ||
           type == MB_OUT_REACTION_FORCE || type == MB_OUT_REACTION_TORQUE || type == MB_OUT_DRIVER_EFFORT ||
           type == MB_OUT_DRIVER_POWER || type == MB_OUT_POWER ||
           (!implicit && (type == MB_OUT_ITERATIONS || type == MB_OUT_RESIDUAL || type == MB_OUT_CONVERGED));
}

/* Whether an output of an element needs accelerations. */
static bool element_needs(const mb_view *m, const int32_t *out) {
    const int32_t type = out[MB_OUT_TYPE];
    if (type != MB_OUT_ELEMENT && type != MB_OUT_ELEMENT_POWER) return false;
    const int32_t *force = mb_force_record(m, out[MB_OUT_INDEX]);
    const mb_element *element = mb_element_of(force);
    return element->needs_solution &&
           element->needs_solution(force, type == MB_OUT_ELEMENT ? out[MB_OUT_AXIS] : MB_SHOWN_POWER);
}

double mb_element_power(mb_view *m, const int32_t *force, double t, const double *q, const double *v) {
    const mb_element *element = mb_element_of(force);
    return element->power ? element->power(m, force, t, q, v) : mb_pushed_power(m, force, t, q, v);
}

/* The largest of the rows of a joint, of Φ or of Φ̇; a joint of the tree is closed by construction. */
static double joint_closure(const mb_view *m, int32_t index, const double *rows) {
    if (index < m->link_count) return 0.0;
    const int32_t *cut = m->cuts + (index - m->link_count) * MB_CUT_FIELDS;
    return mb_largest(rows + cut[MB_CUT_ROW], cut[MB_CUT_ROWS]);
}

/* Of all rows but those of drivers. */
static double largest_closure(const mb_view *m, const double *rows) {
    double most = 0.0;
    for (int32_t r = 0; r < m->row_count; r++)
        if (!mb_is_driver(m->rows[r * MB_ROW_FIELDS + MB_ROW_TYPE])) most = fmax(most, fabs(rows[r]));
    return most;
}

double mb_kinetic_energy(const mb_view *m) {
    double energy = 0.0;
    for (int32_t l = 0; l < m->link_count; l++) {
        double velocity[3], spin[3];
        if (m->links[l * MB_LINK_FIELDS + MB_LINK_BODY] < 0) continue;
        mb_copy(m->link[l].v, velocity);
        mb_add_cross(m->link[l].w, m->link[l].c, velocity);
        mb_rotate(m->link[l].inertia, m->link[l].w, spin);
        energy += 0.5 * (m->data[l].mass * mb_dot(velocity, velocity) + mb_dot(m->link[l].w, spin));
    }
    return energy;
}

static void multibody_energy(bl_block *b, double t, double *kinetic, double *potential) {
    mb_view m;
    mb_open_view(b, &m);
    const double *q = states(b, &m);
    mb_positions(&m, q);
    mb_inertias(&m);
    mb_velocities(&m, q + m.nq);
    if (m.row_count > 0) mb_rows_position(&m, t, q);
    *kinetic = mb_kinetic_energy(&m);
    *potential = mb_potential_energy(&m, t, q);
}

static int multibody_output(bl_block *b, double t) {
    mb_view m;
    mb_open_view(b, &m);
    const double *q = states(b, &m), *v = q + m.nq;
    const bool implicit = m.head[MB_INTEGRATOR] == MB_IMPLICIT;
    bool accelerations = false, reactions = false, rates = false;
    for (int32_t k = 0; k < b->y_count; k++) {
        const int32_t *out = m.outputs + k * MB_OUT_FIELDS, type = out[MB_OUT_TYPE];
        const bool needs = element_needs(&m, out);
        accelerations = accelerations || needs_accelerations(type, implicit) || needs;
        reactions = reactions || type == MB_OUT_REACTION_FORCE || type == MB_OUT_REACTION_TORQUE ||
                    (m.head[MB_JOINTS] > 0 && m.shared[MB_SHARED_REDUNDANT] != 0.0 &&
                     (type == MB_OUT_DRIVER_EFFORT || type == MB_OUT_DRIVER_POWER || type == MB_OUT_POWER || needs));
        rates = rates || type == MB_OUT_CLOSURE_RATE || type == MB_OUT_JOINT_CLOSURE_RATE;
    }
    m.solved = accelerations;
    if (accelerations) {
        if (!mb_rigid_balance(&m, t, q, v)) return mb_fail_factor(b, &m, t);
        if (reactions) mb_find_wrenches(&m, t, q, v);
    } else {
        mb_positions(&m, q);
        mb_inertias(&m);
        mb_velocities(&m, v);
        if (m.row_count > 0) mb_rows_position(&m, t, q);
        if (m.row_count > 0 && rates) mb_rows_velocity(&m, t, v);
    }
    if (!mb_formulas_are_finite(&m, t, q, v)) return mb_fail_formula(b, &m);
    for (int32_t k = 0; k < b->y_count; k++) {
        const int32_t *out = m.outputs + k * MB_OUT_FIELDS;
        const int32_t index = out[MB_OUT_INDEX];
        double *y = b->y[k];
        const int32_t link =
            out[MB_OUT_TYPE] <= MB_OUT_ANGULAR_ACCELERATION ? m.markers[index * MB_MARKER_FIELDS + MB_MARKER_LINK] : -1;
        const mb_link_state *s = link >= 0 ? &m.link[link] : NULL;
        const bool measured = out[MB_OUT_AXIS] == 0; /* not a coordinate of the tree */
        const double sign = out[MB_OUT_AXIS] < 0 ? -1.0 : 1.0;
        double P[3], V[3], R[9], second = 0.0;
        switch (out[MB_OUT_TYPE]) {
            case MB_OUT_POSITION: mb_marker_motion(&m, index, t, y, NULL, NULL); break;
            case MB_OUT_QUATERNION:
                if (s) mb_multiply(s->R, m.marker_data[index].R, R);
                else memcpy(R, m.marker_data[index].R, sizeof R);
                mb_to_quaternion(R, y);
                break;
            case MB_OUT_ANGLES: mb_show_angles(&m, k, t, y); break;
            case MB_OUT_VELOCITY: mb_marker_motion(&m, index, t, P, y, NULL); break;
            case MB_OUT_ANGULAR_VELOCITY:
                for (int c = 0; c < 3; c++) y[c] = s ? s->w[c] : 0.0;
                break;
            case MB_OUT_ACCELERATION: mb_marker_motion(&m, index, t, P, V, y); break;
            case MB_OUT_ANGULAR_ACCELERATION:
                for (int c = 0; c < 3; c++) y[c] = s ? s->wd[c] : 0.0;
                break;
            case MB_OUT_COORDINATE:
                *y = measured ? mb_measure(&m, index, t) : mb_coordinate(out[MB_OUT_AXIS], q[index]);
                break;
            case MB_OUT_SPEED: *y = measured ? mb_measure_rate(&m, index, t, &second) : sign * v[index]; break;
            case MB_OUT_JOINT_ACCELERATION:
                if (measured) (void)mb_measure_rate(&m, index, t, &second);
                *y = measured ? second : sign * m.acceleration[index];
                break;
            case MB_OUT_REACTION_FORCE: mb_reaction(&m, index, out[MB_OUT_AXIS], y, V); break;
            case MB_OUT_REACTION_TORQUE: mb_reaction(&m, index, out[MB_OUT_AXIS], V, y); break;
            case MB_OUT_DRIVER_EFFORT: *y = -m.lambda[index]; break;
            case MB_OUT_KINETIC: *y = mb_kinetic_energy(&m); break;
            case MB_OUT_POTENTIAL: *y = mb_potential_energy(&m, t, q); break;
            case MB_OUT_WEIGHT_ENERGY: *y = mb_weight_energy(&m); break;
            case MB_OUT_ENERGY: *y = mb_stored_energy(&m, t, q, out[MB_OUT_AXIS]); break;
            case MB_OUT_CLOSURE: *y = largest_closure(&m, m.phi); break;
            case MB_OUT_CLOSURE_RATE: *y = largest_closure(&m, m.phi_rate); break;
            case MB_OUT_JOINT_CLOSURE: *y = joint_closure(&m, index, m.phi); break;
            case MB_OUT_JOINT_CLOSURE_RATE: *y = joint_closure(&m, index, m.phi_rate); break;
            case MB_OUT_DRIVER_POWER: *y = mb_driver_power(&m, index, t); break;
            case MB_OUT_BODY_COORDINATE: *y = mb_body_coordinate(&m, index, out[MB_OUT_AXIS], t, q); break;
            case MB_OUT_BODY_RATE: *y = mb_body_rate(&m, index, out[MB_OUT_AXIS], t, q); break;
            case MB_OUT_ITERATIONS:
                *y = implicit ? m.implicit.flags[MB_IMPLICIT_ITERATIONS] : m.status[MB_STATUS_ITERATIONS];
                break;
            case MB_OUT_ELEMENT: {
                const int32_t *force = mb_force_record(&m, index);
                const mb_element *element = mb_element_of(force);
                if (element->show(&m, force, t, q, v, out[MB_OUT_AXIS], y) != BL_OK)
                    return element->refuse(b, &m, index, t);
                break;
            }
            case MB_OUT_ELEMENT_POWER: *y = mb_element_power(&m, mb_force_record(&m, index), t, q, v); break;
            case MB_OUT_ELEMENT_ENERGY:
                *y = mb_element_of(mb_force_record(&m, index))->energy(&m, mb_force_record(&m, index), t, q);
                break;
            case MB_OUT_POWER: *y = mb_power(&m, t, q, v, out[MB_OUT_AXIS]); break;
            case MB_OUT_RESIDUAL:
                *y = implicit ? m.implicit.flags[MB_IMPLICIT_RESIDUAL] : m.status[MB_STATUS_RESIDUAL];
                break;
            default:
                *y = implicit ? m.implicit.flags[MB_IMPLICIT_HALVED] == 0.0
                              : m.status[MB_STATUS_CONVERGED] != 0.0 && m.monitor[MB_MONITOR_STEP_TOO_LARGE] == 0.0;
        }
    }
    return BL_OK;
}

/* Whether a formula without a finite value, or an earlier stage that had one, is beyond the border of a mode that is kept: the engine
   then takes shorter steps. */
static bool is_beyond_border(const bl_block *b, const mb_view *m) {
    const bool kept = b->modes.mode && *b->modes.decision == BL_KEEP;
    return kept && m->head[MB_WORDS] > 0 && (mb_has_formula_fault(m) || !isfinite(mb_largest(b->x, b->x_count)));
}

static int multibody_derivative(bl_block *b, double t) {
    mb_view m;
    mb_open_view(b, &m);
    const bool found = mb_accelerations(&m, t, b->x, b->x + m.nq);
    if (m.head[MB_WORDS] > 0) mb_keep_formula_fault(&m, false);
    if (!found && !is_beyond_border(b, &m)) return mb_fail_factor(b, &m, t);
    if (!found) {
        for (int32_t k = 0; k < b->x_count; k++) b->dx[k] = NAN;
        return BL_OK;
    }
    mb_watch_iteration(&m, t);
    mb_coordinate_rates(&m, b->x, b->x + m.nq, b->dx);
    memcpy(b->dx + m.nq, m.acceleration, (size_t)m.nv * sizeof(double));
    return BL_OK;
}

static void normalize(const mb_view *m, double *q) {
    for (int32_t l = 0; l < m->link_count; l++)
        if (m->links[l * MB_LINK_FIELDS + MB_LINK_TYPE] == MB_SPHERICAL)
            mb_normalize_quaternion(q + m->links[l * MB_LINK_FIELDS + MB_LINK_Q]);
}

int mb_close_step(mb_view *m, double t, double *x) {
    normalize(m, x);
    if (m->row_count == 0) return 1;
    memcpy(m->saved_state, x, (size_t)(m->nq + m->nv) * sizeof(double));
    return mb_project(m, t, x, x + m->nq, MB_STEP_LIMIT);
}

void mb_note_step(mb_view *m, double t, double h, const double *x) {
    if (m->row_count > 0) mb_watch_step(m, t, h, x, x + m->nq);
    mb_keep_turns(m, t, x, x + m->nq);
    mb_keep_angles(m, t, x, x + m->nq);
    mb_keep_elements(m, t, x, x + m->nq);
}

int mb_finish_step(bl_block *b, mb_view *m, double t, double h, double *x) {
    if (m->stick.count > 0 && mb_sticks(m) && !mb_hold_still(m, t, x, x + m->nq)) return mb_fail_factor(b, m, t);
    mb_note_step(m, t, h, x);
    mb_watch_motion_laws(m, t);
    if (m->row_count > 0 && !mb_carry_bearings(m, t, x, x + m->nq)) return mb_fail_factor(b, m, t);
    mb_count_thinned(m, t, x, x + m->nq);
    return BL_OK;
}

/* A step that ends within a tick is judged by the motion in a whole tick: of a very short one corrections are rounding. */
static int multibody_project(bl_block *b, double t) {
    mb_view m;
    mb_open_view(b, &m);
    if (!mb_close_step(&m, t, b->x)) return mb_fail_step(b, &m, t, b->dt, b->x, b->x + m.nq);
    if (m.head[MB_WORDS] > 0 && isfinite(mb_largest(b->x, b->x_count))) mb_keep_formula_fault(&m, true);
    const int status = mb_finish_step(b, &m, t, b->dt, b->x);
    if (status == BL_OK) mb_sample_shared(&m, t, b->x, b->x + m.nq, false);
    return status;
}

/* What made a step of the diagram not finite, if it was a formula. */
static const char *multibody_last_error(const bl_block *b) {
    mb_view m;
    int64_t memory, scratch;
    mb_open(b, &m, &memory, &scratch);
    return m.head[MB_WORDS] > 0 ? mb_formula_message(&m) : "";
}

static int multibody_crossings(bl_block *b, double t) {
    mb_view m;
    mb_open_view(b, &m);
    return mb_note_crossings(&m, t, b->x, b->x + m.nq) ? BL_OK : mb_fail_factor(b, &m, t);
}

/* Modes have been decided anew: velocities follow drivers whose rate jumps there, and joints may stick or slide. */
static int multibody_event(bl_block *b, double t) {
    mb_view m;
    mb_open_view(b, &m);
    mb_watch_motion_laws(&m, t);
    const bool parted = mb_motion_laws_part(&m, t, b->x, b->x + m.nq);
    if (parted && !mb_close_step(&m, t, b->x)) return mb_fail_step(b, &m, t, b->dt, b->x, b->x + m.nq);
    const int status = settle_stiction(b, &m, t);
    return parted && status == BL_UNCHANGED ? BL_OK : status;
}

/* At a tick inputs may have changed; where events are not located, joints begin to stick and to slide at ticks only. */
static int multibody_update(bl_block *b, double t) {
    mb_view m;
    if (count_stictions(b->i + b->i[MB_AT_FORCES], b->i[MB_FORCES]) == 0) return BL_OK;
    if (b->modes.mode && *b->modes.decision == BL_KEEP) return BL_OK; /* modes are frozen */
    mb_open_view(b, &m);
    const int status = settle_stiction(b, &m, t);
    m.stick.slips[m.stick.count] = 1.0; /* of a subsystem that was reset too, where initialization is not repeated */
    return status == BL_UNCHANGED ? BL_OK : status;
}

static int multibody_needs_ticks(const bl_block *b) {
    return !b->modes.mode && count_stictions(b->i + b->i[MB_AT_FORCES], b->i[MB_FORCES]) > 0;
}

static double multibody_next_instant(const bl_block *b, double t) {
    mb_view m;
    mb_open_view(b, &m);
    return mb_next_knot(&m, t);
}

/* The block's internal steps: implicit, or classical Runge–Kutta. */
static int multibody_advance(bl_block *b, double t, double dt) {
    mb_view m;
    mb_open_view(b, &m);
    return mb_advance(b, &m, t, dt);
}

static void multibody_diagnose(bl_block *b, int about, double t) {
    mb_view m;
    mb_open_view(b, &m);
    if (about == BL_DIAGNOSTIC_START) mb_diagnose_start(b, &m, t, states(b, &m), states(b, &m) + m.nq);
    else mb_diagnose_films(b, &m), mb_diagnose_carried(b, &m), mb_diagnose_run(b, &m);
    for (size_t end = strlen(b->message); end > 0 && b->message[end - 1] == ' '; end--) b->message[end - 1] = '\0';
}

static void multibody_describe_event(const bl_block *b, int32_t crossing, char *text, size_t size) {
    mb_view m;
    mb_open_view(b, &m);
    mb_describe_event(b, &m, crossing, text, size);
}

const bl_kernel bl_kernels_multibody[] = {
    {.name = "multibody",
     .check = continuous_check,
     .sizes = multibody_sizes,
     .init = multibody_init,
     .check_parameters = multibody_check_parameters,
     .exit_initialization = multibody_exit_initialization,
     .output = multibody_output,
     .energy = multibody_energy,
     .derivative = multibody_derivative,
     .last_error = multibody_last_error,
     .update = multibody_update,
     .project = multibody_project,
     .crossing_count = multibody_crossing_count,
     .crossings = multibody_crossings,
     .event = multibody_event,
     .next_instant = multibody_next_instant,
     .needs_ticks = multibody_needs_ticks,
     .diagnose = multibody_diagnose},
    {.name = "multibody_internal",
     .check = internal_check,
     .sizes = multibody_sizes,
     .init = multibody_init,
     .check_parameters = multibody_check_parameters,
     .exit_initialization = multibody_exit_initialization,
     .output = multibody_output,
     .energy = multibody_energy,
     .advance = multibody_advance,
     .describe_event = multibody_describe_event,
     .diagnose = multibody_diagnose},
    {.name = 0},
};
