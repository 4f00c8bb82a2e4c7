/* The tree of links: poses, velocities, mass matrix, bias forces, and the articulated-body recursion. */
#include <string.h>

#include "blocks/multibody/kernel/multibody.h"

static const double IDENTITY[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
/* Turn 1: the new z is the old x; turn 2: the new z is the old y. Three of the first make none. */
static const double TURNS[3][9] = {
    {1, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 0, 1, 1, 0, 0, 0, 1, 0}, {0, 1, 0, 0, 0, 1, 1, 0, 0}};

static const int32_t *link_record(const mb_view *m, int32_t l) { return m->links + l * MB_LINK_FIELDS; }

/* A vector among the parameters: two numbers in a plane. */
static void read_vector(const mb_view *m, int32_t at, double *out) {
    out[0] = m->p[at];
    out[1] = m->p[at + 1];
    out[2] = m->head[MB_PLANAR] ? 0.0 : m->p[at + 2];
}

/* A marker's pose in its body, from the parameters. */
static void marker_in_body(const mb_view *m, int32_t marker, double *R, double *p) {
    const int32_t *record = m->markers + marker * MB_MARKER_FIELDS;
    mb_from_quaternion(m->p + record[MB_MARKER_FRAME], R);
    read_vector(m, record[MB_MARKER_PLACE], p);
    const double *added = m->p + record[MB_MARKER_PLACE] + (m->head[MB_PLANAR] ? 2 : 3);
    double tilt[3] = {0.0, 0.0, added[0]}, turn[9], frame[9];
    if (!m->head[MB_PLANAR]) mb_copy(added, tilt);
    const double angle = sqrt(mb_dot(tilt, tilt));
    if (angle == 0.0) return;
    const double part = sin(0.5 * angle) / angle,
                 e[4] = {cos(0.5 * angle), part * tilt[0], part * tilt[1], part * tilt[2]};
    mb_from_quaternion(e, turn);
    memcpy(frame, R, sizeof frame);
    mb_multiply(turn, frame, R);
}

static void read_body(const mb_view *m, int32_t body, mb_body_data *out) {
    const int32_t *at = m->bodies + body * MB_BODY_FIELDS;
    const double *inertia = m->p + at[MB_AT_INERTIA_OF], *turn = m->p + at[MB_AT_ROTATION_OF];
    const int planar = m->head[MB_PLANAR];
    out->mass = m->p[at[MB_AT_MASS_OF]];
    read_vector(m, at[MB_AT_COM_OF], out->com);
    memset(out->inertia, 0, sizeof out->inertia);
    if (planar) { /* as a thin plate */
        out->inertia[0] = out->inertia[4] = 0.5 * inertia[0];
        out->inertia[8] = inertia[0];
        const double half[4] = {cos(0.5 * turn[0]), 0.0, 0.0, sin(0.5 * turn[0])};
        mb_from_quaternion(half, out->R);
    } else {
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 3; c++) out->inertia[3 * r + c] = 0.5 * (inertia[3 * r + c] + inertia[3 * c + r]);
        mb_from_quaternion(turn, out->R);
    }
    read_vector(m, at[MB_AT_POSITION_OF], out->p);
    read_vector(m, at[MB_AT_VELOCITY_OF], out->v);
    memset(out->w, 0, sizeof out->w);
    if (planar) out->w[2] = m->p[at[MB_AT_SPIN_OF]];
    else mb_copy(m->p + at[MB_AT_SPIN_OF], out->w);
}

/* As the description is held to, for numbers that were set later: a mass, and moments of inertia about every axis, that are not
   negative but for rounding: of the tensor, made a little larger, all leading minors are positive. */
bool mb_body_sound(const mb_body_data *body) {
    const double *I = body->inertia;
    double size = 0.0;
    for (int k = 0; k < 9; k++) size = fmax(size, fabs(I[k]));
    if (!(body->mass >= 0.0)) return false;
    if (size == 0.0) return true;
    const double a = I[0] + 1e-8 * size, b = I[4] + 1e-8 * size, c = I[8] + 1e-8 * size;
    const double second = a * b - I[1] * I[1];
    const double third = c * second - I[5] * (a * I[5] - I[1] * I[2]) - I[2] * (b * I[2] - I[1] * I[5]);
    return a > 0.0 && second > 0.0 && third > 0.0;
}

/* Works out from the parameters all that stays constant during a run. */
void mb_prepare(mb_view *m) {
    for (int32_t k = 0; k < m->body_count; k++) read_body(m, k, &m->body[k]);
    for (int32_t l = 0; l < m->link_count; l++) {
        const int32_t *link = link_record(m, l);
        mb_link_data *data = &m->data[l];
        double R_base[9], p_base[3] = {0, 0, 0}, R[9];
        memcpy(R_base, IDENTITY, sizeof R_base);
        if (link[MB_LINK_BASE] >= 0) { /* parent body → marker, seen from the parent link */
            double R_marker[9], p_marker[3];
            marker_in_body(m, link[MB_LINK_BASE], R_marker, p_marker);
            if (link[MB_LINK_PARENT] >= 0) {
                const mb_link_data *parent = &m->data[link[MB_LINK_PARENT]];
                mb_multiply(parent->R_body, R_marker, R_base);
                mb_rotate(parent->R_body, p_marker, p_base);
                mb_add(parent->p_body, p_base);
            } else {
                memcpy(R_base, R_marker, sizeof R_base);
                mb_copy(p_marker, p_base);
            }
        }
        mb_multiply(R_base, TURNS[link[MB_LINK_TURN]], data->R);
        mb_copy(p_base, data->p);
        mb_copy(link[MB_LINK_PARENT] >= 0 ? m->data[link[MB_LINK_PARENT]].base : p_base, data->base);

        memcpy(data->R_body, IDENTITY, sizeof R);
        memset(data->p_body, 0, sizeof data->p_body);
        data->mass = 0.0;
        memset(data->com, 0, sizeof data->com);
        memset(data->inertia, 0, sizeof data->inertia);
        if (link[MB_LINK_BODY] < 0) continue;
        if (link[MB_LINK_TIP] >= 0) { /* link → body is the inverse of body → marker */
            double R_tip[9], p_tip[3];
            marker_in_body(m, link[MB_LINK_TIP], R_tip, p_tip);
            mb_multiply_back(TURNS[link[MB_LINK_END_TURN]], R_tip, data->R_body);
            mb_rotate(data->R_body, p_tip, data->p_body);
            for (int k = 0; k < 3; k++) data->p_body[k] = -data->p_body[k];
        }
        const mb_body_data *body = &m->body[link[MB_LINK_BODY]];
        data->mass = body->mass;
        mb_rotate(data->R_body, body->com, data->com);
        mb_add(data->p_body, data->com);
        mb_rotate_tensor(data->R_body, body->inertia, data->inertia);
    }
    for (int32_t k = 0; k < m->marker_count; k++) {
        const int32_t link = m->markers[k * MB_MARKER_FIELDS + MB_MARKER_LINK];
        mb_marker_data *marker = &m->marker_data[k];
        double R[9], p[3];
        marker_in_body(m, k, R, p);
        if (link < 0) {
            memcpy(marker->R, R, sizeof R);
            mb_copy(p, marker->p);
        } else {
            mb_multiply(m->data[link].R_body, R, marker->R);
            mb_rotate(m->data[link].R_body, p, marker->p);
            mb_add(m->data[link].p_body, marker->p);
        }
    }
}

/* The first link of the chain that ends in link `l`: the one that starts at a marker. */
static int32_t chain_start(const mb_view *m, int32_t l) {
    while (link_record(m, l)[MB_LINK_BASE] < 0 && link_record(m, l)[MB_LINK_PARENT] >= 0)
        l = link_record(m, l)[MB_LINK_PARENT];
    return l;
}

/* The fixed turns of the joints of a chain that follow link `l`; returns whether one of these joints turns too. */
static bool turns_after(const mb_view *m, int32_t l, int32_t end, double *after) {
    bool turning = false;
    memcpy(after, IDENTITY, sizeof IDENTITY);
    for (int32_t n = end; n > l; n--) {
        double product[9];
        const int32_t type = link_record(m, n)[MB_LINK_TYPE];
        turning = turning || type == MB_REVOLUTE || type == MB_SPHERICAL;
        mb_multiply(m->data[n].R, after, product);
        memcpy(after, product, sizeof product);
    }
    return turning;
}

/* The pose of a link from that of its parent. */
static void place_link(mb_view *m, int32_t l, const double *q) {
    const int32_t *link = link_record(m, l);
    const mb_link_data *data = &m->data[l];
    mb_link_state *s = &m->link[l];
    double R_joint[9];
    if (link[MB_LINK_PARENT] >= 0) {
        const mb_link_state *parent = &m->link[link[MB_LINK_PARENT]];
        mb_multiply(parent->R, data->R, R_joint);
        mb_rotate(parent->R, data->p, s->r);
    } else {
        memcpy(R_joint, data->R, sizeof R_joint);
        mb_copy(data->p, s->r);
    }
    mb_column(R_joint, 2, s->axis);
    const double value = q[link[MB_LINK_Q]];
    switch (link[MB_LINK_TYPE]) {
        case MB_REVOLUTE: {
            const double cosine = cos(value), sine = sin(value);
            for (int k = 0; k < 3; k++) {
                s->R[3 * k] = cosine * R_joint[3 * k] + sine * R_joint[3 * k + 1];
                s->R[3 * k + 1] = cosine * R_joint[3 * k + 1] - sine * R_joint[3 * k];
                s->R[3 * k + 2] = R_joint[3 * k + 2];
            }
            break;
        }
        case MB_PRISMATIC:
            mb_axpy(value, s->axis, s->r);
            memcpy(s->R, R_joint, sizeof R_joint);
            break;
        case MB_SPHERICAL: {
            double R_turn[9];
            mb_from_quaternion(q + link[MB_LINK_Q], R_turn);
            mb_multiply(R_joint, R_turn, s->R);
            break;
        }
        default: memcpy(s->R, R_joint, sizeof R_joint);
    }
    if (link[MB_LINK_PARENT] >= 0) {
        mb_copy(s->r, s->local);
        mb_add(m->link[link[MB_LINK_PARENT]].local, s->local);
    } else {
        const double slid = link[MB_LINK_TYPE] == MB_PRISMATIC ? value : 0.0;
        for (int k = 0; k < 3; k++) s->local[k] = slid * s->axis[k];
    }
    mb_copy(data->base, s->p);
    mb_add(s->local, s->p);
}

void mb_positions(mb_view *m, const double *q) {
    for (int32_t l = 0; l < m->link_count; l++) place_link(m, l, q);
    if (m->signals.count > 0) mb_signals_moved(m, q, NULL);
}

static const double ZERO[3] = {0, 0, 0};

/* The velocity of a link from that of its parent, and the acceleration that velocities alone cause. */
static void move_link(mb_view *m, int32_t l, const double *v) {
    const int32_t *link = link_record(m, l);
    mb_link_state *s = &m->link[l];
    const mb_link_state *parent = link[MB_LINK_PARENT] >= 0 ? &m->link[link[MB_LINK_PARENT]] : NULL;
    const double *w = parent ? parent->w : ZERO;
    double turned[3];
    mb_copy(w, s->w);
    mb_copy(parent ? parent->v : ZERO, s->v);
    mb_add_cross(w, s->r, s->v);
    mb_copy(parent ? parent->wd : ZERO, s->wd);
    mb_copy(parent ? parent->vd : ZERO, s->vd);
    mb_add_cross(s->wd, s->r, s->vd);
    mb_cross(w, s->r, turned);
    mb_add_cross(w, turned, s->vd);
    const double *speed = v + link[MB_LINK_V];
    if (link[MB_LINK_TYPE] == MB_REVOLUTE) {
        double own[3] = {s->axis[0] * *speed, s->axis[1] * *speed, s->axis[2] * *speed};
        mb_add(own, s->w);
        mb_add_cross(w, own, s->wd);
    } else if (link[MB_LINK_TYPE] == MB_PRISMATIC) {
        double own[3] = {s->axis[0] * *speed, s->axis[1] * *speed, s->axis[2] * *speed};
        mb_add(own, s->v);
        mb_cross(w, own, turned);
        mb_axpy(2.0, turned, s->vd);
    } else if (link[MB_LINK_TYPE] == MB_SPHERICAL) {
        double own[3];
        mb_rotate(s->R, speed, own);
        mb_add(own, s->w);
        mb_add_cross(w, own, s->wd);
    }
}

void mb_velocities(mb_view *m, const double *v) {
    for (int32_t l = 0; l < m->link_count; l++) move_link(m, l, v);
    if (m->signals.count > 0) mb_signals_moved(m, NULL, v);
}

/* Reads off coordinates and speeds of all joints from the poses and velocities that the bodies were given. What the
   elementary joints of a chain cannot take up is left to the closures. */
void mb_pose_from_bodies(mb_view *m, double *q, double *v) {
    memset(q, 0, (size_t)m->nq * sizeof(double));
    memset(v, 0, (size_t)m->nv * sizeof(double));
    for (int32_t l = 0; l < m->link_count; l++)
        if (link_record(m, l)[MB_LINK_TYPE] == MB_SPHERICAL) q[link_record(m, l)[MB_LINK_Q]] = 1.0;
    for (int32_t end = 0; end < m->link_count; end++) {
        const int32_t *last = link_record(m, end);
        if (last[MB_LINK_BODY] < 0) continue;
        /* Where the end of the chain should be, and how it should move. */
        const mb_body_data *body = &m->body[last[MB_LINK_BODY]];
        double R_goal[9], p_goal[3], w_goal[3], v_goal[3], offset[3];
        mb_multiply_back(body->R, m->data[end].R_body, R_goal);
        mb_rotate(R_goal, m->data[end].p_body, offset);
        mb_sub(body->p, offset, p_goal);
        mb_copy(body->w, w_goal);
        mb_copy(body->v, v_goal);
        mb_sub(p_goal, body->p, offset);
        mb_add_cross(w_goal, offset, v_goal);

        /* Prismatic joints take the displacement along their axes, turning ones the rotation that is left. */
        for (int32_t l = chain_start(m, end); l <= end; l++) {
            const int32_t *link = link_record(m, l);
            place_link(m, l, q);
            move_link(m, l, v);
            const mb_link_state *state = &m->link[l];
            double d[3], dv[3], dw[3];
            mb_sub(p_goal, state->p, d);
            for (int k = 0; k < 3; k++) {
                dw[k] = w_goal[k] - state->w[k];
                dv[k] = v_goal[k] - state->v[k];
            }
            if (link[MB_LINK_TYPE] == MB_PRISMATIC) {
                q[link[MB_LINK_Q]] = mb_dot(state->axis, d);
                double carried[3];
                mb_cross(state->w, d, carried);
                mb_sub(dv, carried, dv);
                v[link[MB_LINK_V]] = mb_dot(state->axis, dv);
            } else if (link[MB_LINK_TYPE] == MB_REVOLUTE) {
                double after[9];
                const bool turns_later = turns_after(m, l, end, after);
                if (!turns_later) {
                    double R_t[9], seen[9], wanted[9];
                    mb_multiply_back(R_goal, after, wanted);
                    for (int r = 0; r < 3; r++)
                        for (int c = 0; c < 3; c++) R_t[3 * r + c] = state->R[3 * c + r];
                    mb_multiply(R_t, wanted, seen);
                    q[link[MB_LINK_Q]] = atan2(seen[3] - seen[1], seen[0] + seen[4]);
                } else { /* a universal joint: bring the next axis to where it should be */
                    double axis_now[3], axis_goal[3], now[3];
                    mb_column(m->data[l + 1].R, 2, axis_now);
                    mb_column(R_goal, 2, axis_goal);
                    mb_rotate_back(state->R, axis_goal, now);
                    q[link[MB_LINK_Q]] =
                        atan2(axis_now[0] * now[1] - axis_now[1] * now[0], axis_now[0] * now[0] + axis_now[1] * now[1]);
                }
                v[link[MB_LINK_V]] = mb_dot(state->axis, dw);
            } else if (link[MB_LINK_TYPE] == MB_SPHERICAL) {
                double seen[9], R_t[9], wanted[9], after[9];
                turns_after(m, l, end, after);
                mb_multiply_back(R_goal, after, wanted);
                for (int r = 0; r < 3; r++)
                    for (int c = 0; c < 3; c++) R_t[3 * r + c] = state->R[3 * c + r];
                mb_multiply(R_t, wanted, seen);
                mb_to_quaternion(seen, q + link[MB_LINK_Q]);
                mb_rotate_back(wanted, dw, v + link[MB_LINK_V]);
            }
            place_link(m, l, q); /* for what it carries */
            move_link(m, l, v);
        }
    }
}

/* Centers of mass and inertias in world axes: required for forces and energies in addition to the poses. */
void mb_inertias(mb_view *m) {
    for (int32_t l = 0; l < m->link_count; l++) {
        if (link_record(m, l)[MB_LINK_BODY] < 0) continue;
        mb_rotate(m->link[l].R, m->data[l].com, m->link[l].c);
        mb_rotate_tensor(m->link[l].R, m->data[l].inertia, m->link[l].inertia);
    }
}

/* The wrench F at the origin, N about it, that the motion (wd, vd) of a link takes, less what acts from outside. */
static void inertia_wrench(const mb_view *m, int32_t l, double *F, double *N) {
    const mb_link_data *data = &m->data[l];
    const mb_link_state *s = &m->link[l];
    if (link_record(m, l)[MB_LINK_BODY] < 0) {
        memset(F, 0, 3 * sizeof(double));
        memset(N, 0, 3 * sizeof(double));
        return;
    }
    double a[3], turned[3], spin[3];
    mb_copy(s->vd, a);
    mb_add_cross(s->wd, s->c, a);
    mb_cross(s->w, s->c, turned);
    mb_add_cross(s->w, turned, a);
    for (int k = 0; k < 3; k++) F[k] = data->mass * (a[k] - m->gravity[k]);
    mb_rotate(s->inertia, s->wd, N);
    mb_rotate(s->inertia, s->w, spin);
    mb_add_cross(s->w, spin, N);
    mb_add_cross(s->c, F, N);
}

static int32_t joint_speeds(int32_t type) { return type == MB_SPHERICAL ? 3 : type == MB_FIXED ? 0 : 1; }

/* The part of a wrench that a joint can move with: Sᵀ (N, F). */
static void project_wrench(const mb_view *m, int32_t l, const double *F, const double *N, double *out) {
    const mb_link_state *s = &m->link[l];
    switch (link_record(m, l)[MB_LINK_TYPE]) {
        case MB_REVOLUTE: *out = mb_dot(s->axis, N); break;
        case MB_PRISMATIC: *out = mb_dot(s->axis, F); break;
        case MB_SPHERICAL: mb_rotate_back(s->R, N, out); break;
        default: break;
    }
}

/* force = joint efforts required for the present accelerations of the links, minus the contribution of the loads in
   link F, N. Leaves in each link's F, N the wrench through its joint. */
void mb_bias_forces(mb_view *m, double *force) {
    for (int32_t l = 0; l < m->link_count; l++) {
        double F[3], N[3];
        inertia_wrench(m, l, F, N);
        for (int k = 0; k < 3; k++) {
            m->link[l].F[k] = F[k] - m->link[l].F[k];
            m->link[l].N[k] = N[k] - m->link[l].N[k];
        }
    }
    for (int32_t l = m->link_count - 1; l >= 0; l--) {
        const int32_t *link = link_record(m, l);
        const mb_link_state *s = &m->link[l];
        project_wrench(m, l, s->F, s->N, force + link[MB_LINK_V]);
        if (link[MB_LINK_PARENT] < 0) continue;
        mb_link_state *parent = &m->link[link[MB_LINK_PARENT]];
        mb_add(s->F, parent->F);
        mb_add(s->N, parent->N);
        mb_add_cross(s->r, s->F, parent->N);
    }
}

/* Adds S v' to the accelerations that velocities alone cause. */
void mb_set_accelerations(mb_view *m, const double *acceleration) {
    for (int32_t l = 0; l < m->link_count; l++) {
        const int32_t *link = link_record(m, l);
        mb_link_state *s = &m->link[l];
        const double *own = acceleration + link[MB_LINK_V];
        const mb_link_state *parent = link[MB_LINK_PARENT] >= 0 ? &m->link[link[MB_LINK_PARENT]] : NULL;
        /* `first` and `second` are free here: they carry what was added to the parent. */
        double *dw = s->first, *dv = s->second;
        mb_copy(parent ? parent->first : ZERO, dw);
        mb_copy(parent ? parent->second : ZERO, dv);
        mb_add_cross(dw, s->r, dv);
        if (link[MB_LINK_TYPE] == MB_REVOLUTE) mb_axpy(*own, s->axis, dw);
        if (link[MB_LINK_TYPE] == MB_PRISMATIC) mb_axpy(*own, s->axis, dv);
        if (link[MB_LINK_TYPE] == MB_SPHERICAL) {
            double turned[3];
            mb_rotate(s->R, own, turned);
            mb_add(turned, dw);
        }
    }
    for (int32_t l = 0; l < m->link_count; l++) {
        mb_add(m->link[l].first, m->link[l].wd);
        mb_add(m->link[l].second, m->link[l].vd);
    }
}

static void store_mass(mb_view *m, int32_t slot, double value) {
    if (slot < 0) m->mass_diagonal[-1 - slot] = value;
    else m->mass_off[slot] = value;
}

/* Axis number `k` of a joint, in world axes. */
static void joint_axis(const mb_view *m, int32_t l, int k, double *axis) {
    if (link_record(m, l)[MB_LINK_TYPE] == MB_SPHERICAL) mb_column(m->link[l].R, k, axis);
    else mb_copy(m->link[l].axis, axis);
}

/* M by composite bodies; its entries go to precomputed slots. */
void mb_mass(mb_view *m) {
    for (int32_t l = 0; l < m->link_count; l++) {
        const mb_link_data *data = &m->data[l];
        mb_link_state *s = &m->link[l];
        s->mass = data->mass;
        memset(s->first, 0, sizeof s->first);
        memset(s->second, 0, sizeof s->second);
        if (link_record(m, l)[MB_LINK_BODY] < 0) continue;
        mb_axpy(data->mass, s->c, s->first);
        const double cc = mb_dot(s->c, s->c);
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 3; c++)
                s->second[3 * r + c] = s->inertia[3 * r + c] + data->mass * ((r == c ? cc : 0.0) - s->c[r] * s->c[c]);
    }
    memset(m->mass_off, 0, (size_t)m->nonzeros * sizeof(double));
    for (int32_t l = m->link_count - 1; l >= 0; l--) {
        const int32_t parent_number = link_record(m, l)[MB_LINK_PARENT];
        if (parent_number < 0) continue;
        const mb_link_state *s = &m->link[l];
        mb_link_state *parent = &m->link[parent_number];
        /* About the parent's origin: I + (2 r·h + m r·r) 1 - (r hᵀ + h rᵀ) - m r rᵀ, h = mass × center. */
        const double *r = s->r, *h = s->first, trace = 2.0 * mb_dot(r, h) + s->mass * mb_dot(r, r);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                parent->second[3 * i + j] +=
                    s->second[3 * i + j] + (i == j ? trace : 0.0) - r[i] * h[j] - h[i] * r[j] - s->mass * r[i] * r[j];
        mb_add(h, parent->first);
        mb_axpy(s->mass, r, parent->first);
        parent->mass += s->mass;
    }
    const int32_t *slot = m->mass_slots;
    for (int32_t l = 0; l < m->link_count; l++) {
        const int32_t type = link_record(m, l)[MB_LINK_TYPE];
        const mb_link_state *s = &m->link[l];
        for (int k = 0; k < joint_speeds(type); k++) {
            double F[3] = {0, 0, 0}, N[3] = {0, 0, 0}, axis[3];
            joint_axis(m, l, k, axis);
            if (type == MB_PRISMATIC) {
                mb_axpy(s->mass, axis, F);
                mb_add_cross(s->first, axis, N);
            } else {
                mb_cross(axis, s->first, F);
                mb_rotate(s->second, axis, N);
            }
            for (int j = 0; j <= k; j++) {
                double other[3];
                joint_axis(m, l, j, other);
                store_mass(m, *slot++, type == MB_PRISMATIC ? mb_dot(other, F) : mb_dot(other, N));
            }
            for (int32_t below = l; link_record(m, below)[MB_LINK_PARENT] >= 0;) {
                mb_add_cross(m->link[below].r, F, N);
                below = link_record(m, below)[MB_LINK_PARENT];
                const int32_t below_type = link_record(m, below)[MB_LINK_TYPE];
                for (int j = 0; j < joint_speeds(below_type); j++) {
                    double other[3];
                    joint_axis(m, below, j, other);
                    store_mass(m, *slot++, below_type == MB_PRISMATIC ? mb_dot(other, F) : mb_dot(other, N));
                }
            }
        }
    }
}

/* dq/dt */
void mb_coordinate_rates(const mb_view *m, const double *q, const double *v, double *rates) {
    for (int32_t l = 0; l < m->link_count; l++) {
        const int32_t *link = link_record(m, l);
        if (link[MB_LINK_TYPE] == MB_SPHERICAL)
            mb_quaternion_rate(q + link[MB_LINK_Q], v + link[MB_LINK_V], rates + link[MB_LINK_Q]);
        else if (link[MB_LINK_TYPE] != MB_FIXED) rates[link[MB_LINK_Q]] = v[link[MB_LINK_V]];
    }
}

/* q ← q moved by `step`, a displacement in the space of speeds. */
void mb_move(const mb_view *m, double *q, const double *step) {
    for (int32_t l = 0; l < m->link_count; l++) {
        const int32_t *link = link_record(m, l);
        if (link[MB_LINK_TYPE] == MB_SPHERICAL) mb_turn_quaternion(q + link[MB_LINK_Q], step + link[MB_LINK_V]);
        else if (link[MB_LINK_TYPE] != MB_FIXED) q[link[MB_LINK_Q]] += step[link[MB_LINK_V]];
    }
}

/* The articulated inertia of a link: N = A wd + B vd + n, F = Bᵀ wd + C vd + f, with A and C symmetric. */
typedef struct {
    double A[9], B[9], C[9], n[3], f[3];
} mb_articulated;

/* Adds `from`, moved by r from its own origin to the parent's. */
static void shift_articulated(const mb_articulated *from, const double *r, mb_articulated *to) {
    const double rx[9] = {0, -r[2], r[1], r[2], 0, -r[0], -r[1], r[0], 0};
    double rC[9], Br[9], rBt[9], rCr[9];
    mb_multiply(rx, from->C, rC);
    mb_multiply(from->B, rx, Br);
    mb_multiply_back(rx, from->B, rBt);
    mb_multiply(rC, rx, rCr);
    for (int k = 0; k < 9; k++) {
        to->A[k] += from->A[k] - Br[k] + rBt[k] - rCr[k];
        to->B[k] += from->B[k] + rC[k];
        to->C[k] += from->C[k];
    }
    mb_add(from->n, to->n);
    mb_add_cross(r, from->f, to->n);
    mb_add(from->f, to->f);
}

/* v' of a mechanism without closures, in a time linear in its links. Joint efforts are in m->force; loads in link
   F, N; the accelerations that velocities cause in wd, vd as mb_velocities left them, relative to the parent's. */
void mb_tree_accelerations(mb_view *m, double *acceleration) {
    mb_articulated *all = (mb_articulated *)(void *)m->articulated;
    for (int32_t l = 0; l < m->link_count; l++) {
        const mb_link_data *data = &m->data[l];
        const mb_link_state *s = &m->link[l];
        mb_articulated *own = &all[l];
        memset(own, 0, sizeof *own);
        /* Bias about the velocity-caused accelerations, so that unknowns are what the joints add to them. */
        double F[3], N[3];
        inertia_wrench(m, l, F, N);
        mb_sub(F, s->F, own->f);
        mb_sub(N, s->N, own->n);
        if (link_record(m, l)[MB_LINK_BODY] < 0) continue;
        const double *c = s->c, mass = data->mass, cc = mb_dot(c, c);
        for (int i = 0; i < 3; i++) {
            own->C[4 * i] = mass;
            for (int j = 0; j < 3; j++)
                own->A[3 * i + j] = s->inertia[3 * i + j] + mass * ((i == j ? cc : 0.0) - c[i] * c[j]);
        }
        own->B[1] = -mass * c[2], own->B[2] = mass * c[1], own->B[3] = mass * c[2];
        own->B[5] = -mass * c[0], own->B[6] = -mass * c[1], own->B[7] = mass * c[0];
    }
    /* Inward: eliminate the free directions of the joint. U and D⁻¹ are stored in the composite fields of the link. */
    for (int32_t l = m->link_count - 1; l >= 0; l--) {
        const int32_t *link = link_record(m, l);
        mb_link_state *s = &m->link[l];
        mb_articulated *own = &all[l];
        const int32_t speeds = joint_speeds(link[MB_LINK_TYPE]);
        if (speeds == 1) {
            const int prismatic = link[MB_LINK_TYPE] == MB_PRISMATIC;
            double U_n[3], U_f[3];
            if (prismatic) {
                mb_rotate(own->B, s->axis, U_n);
                mb_rotate(own->C, s->axis, U_f);
            } else {
                mb_rotate(own->A, s->axis, U_n);
                mb_rotate_back(own->B, s->axis, U_f);
            }
            const double D = mb_dot(s->axis, prismatic ? U_f : U_n), inverse = 1.0 / D;
            const double u = m->force[link[MB_LINK_V]] - mb_dot(s->axis, prismatic ? own->f : own->n);
            mb_copy(U_n, s->second);
            mb_copy(U_f, s->second + 3);
            s->second[6] = inverse;
            s->second[7] = u;
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++) {
                    own->A[3 * i + j] -= U_n[i] * U_n[j] * inverse;
                    own->B[3 * i + j] -= U_n[i] * U_f[j] * inverse;
                    own->C[3 * i + j] -= U_f[i] * U_f[j] * inverse;
                }
            mb_axpy(u * inverse, U_n, own->n);
            mb_axpy(u * inverse, U_f, own->f);
        } else if (speeds == 3) {
            /* In world axes S is [1; 0], so U = [A; Bᵀ], D = A: the remainder is C - Bᵀ A⁻¹ B. */
            double inverse[9], u[3], torque[3], AinvB[9], Au[3];
            const double *A = own->A;
            const double det = A[0] * (A[4] * A[8] - A[5] * A[7]) - A[1] * (A[3] * A[8] - A[5] * A[6]) +
                               A[2] * (A[3] * A[7] - A[4] * A[6]);
            const double i_det = 1.0 / det;
            inverse[0] = (A[4] * A[8] - A[5] * A[7]) * i_det;
            inverse[1] = inverse[3] = (A[2] * A[7] - A[1] * A[8]) * i_det;
            inverse[2] = inverse[6] = (A[1] * A[5] - A[2] * A[4]) * i_det;
            inverse[4] = (A[0] * A[8] - A[2] * A[6]) * i_det;
            inverse[5] = inverse[7] = (A[2] * A[3] - A[0] * A[5]) * i_det;
            inverse[8] = (A[0] * A[4] - A[1] * A[3]) * i_det;
            mb_rotate(s->R, m->force + link[MB_LINK_V], torque);
            mb_sub(torque, own->n, u);
            mb_multiply(inverse, own->B, AinvB);
            mb_rotate(inverse, u, Au);
            mb_copy(Au, s->first); /* D⁻¹ u */
            memcpy(s->second, AinvB, sizeof AinvB);
            double Bt_AinvB[9];
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++)
                    Bt_AinvB[3 * i + j] =
                        own->B[i] * AinvB[j] + own->B[3 + i] * AinvB[3 + j] + own->B[6 + i] * AinvB[6 + j];
            double turned[3];
            mb_rotate_back(own->B, Au, turned);
            for (int k = 0; k < 9; k++) own->C[k] -= Bt_AinvB[k];
            memset(own->A, 0, sizeof own->A);
            memset(own->B, 0, sizeof own->B);
            mb_add(turned, own->f);
            mb_copy(torque, own->n); /* n + A D⁻¹ u = the joint's own effort */
        }
        if (link[MB_LINK_PARENT] >= 0) shift_articulated(own, s->r, &all[link[MB_LINK_PARENT]]);
    }
    /* Outwards: `n`, `f` now carry what the joints added to the accelerations. */
    for (int32_t l = 0; l < m->link_count; l++) {
        const int32_t *link = link_record(m, l);
        mb_link_state *s = &m->link[l];
        double dw[3] = {0, 0, 0}, dv[3] = {0, 0, 0};
        if (link[MB_LINK_PARENT] >= 0) {
            mb_copy(all[link[MB_LINK_PARENT]].n, dw);
            mb_copy(all[link[MB_LINK_PARENT]].f, dv);
            mb_add_cross(dw, s->r, dv);
        }
        if (joint_speeds(link[MB_LINK_TYPE]) == 1) {
            const double *U_n = s->second, *U_f = s->second + 3;
            const double a = s->second[6] * (s->second[7] - mb_dot(U_n, dw) - mb_dot(U_f, dv));
            acceleration[link[MB_LINK_V]] = a;
            mb_axpy(a, s->axis, link[MB_LINK_TYPE] == MB_PRISMATIC ? dv : dw);
        } else if (link[MB_LINK_TYPE] == MB_SPHERICAL) {
            /* A dw' + B dv = u, with dw' the whole added angular acceleration. */
            double whole[3], turned[3], added[3];
            mb_rotate(s->second, dv, turned);
            mb_sub(s->first, turned, whole);
            mb_sub(whole, dw, added);
            mb_rotate_back(s->R, added, acceleration + link[MB_LINK_V]);
            mb_copy(whole, dw);
        }
        mb_copy(dw, all[l].n);
        mb_copy(dv, all[l].f);
    }
    for (int32_t l = 0; l < m->link_count; l++) {
        mb_add(all[l].n, m->link[l].wd);
        mb_add(all[l].f, m->link[l].vd);
    }
}
