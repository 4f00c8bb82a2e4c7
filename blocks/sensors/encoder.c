/* Incremental encoder: edges on a disc, counted and timed. */
#include <math.h>

#include "blocks/core/kernel/constants.h"
#include "blocks/core/kernel/kernel.h"
#include "blocks/basic/sources/noise.h"
#include "blocks/core/kernel/ring.h"
#include "blocks/core/kernel/rounding.h"

static const double ENCODER_TURN = 2.0 * BL_PI;
static const double ENCODER_NEVER = -1e300; /* time of the last edge before the first one */

BL_SHARED enum { ENCODER_BY_COUNT, ENCODER_BY_PERIOD, ENCODER_BY_BOTH };
/* i */
BL_SHARED enum {
    ENCODER_COUNTS,   /* per revolution */
    ENCODER_DECODING, /* counts of each line: 1, 2 or 4 */
    ENCODER_METHOD,
    ENCODER_WINDOW,   /* samples over which speed is taken */
    ENCODER_LATENCY,  /* in samples */
    ENCODER_BLIND,    /* single channel: the direction is unknown */
    ENCODER_INTEGERS
};
enum { /* p */
       ENCODER_OFFSET,
       ENCODER_ECCENTRICITY,
       ENCODER_ECCENTRIC_AT,
       ENCODER_EDGE_ERROR, /* the largest, in parts of a count: below a half, so that edges stay in order */
       ENCODER_SEED,
       ENCODER_CLOCK,      /* of the timer in Hz; 0 for one that does not round */
       ENCODER_TIMEOUT,
       ENCODER_FASTEST,    /* counts per second that the electronics follow */
       ENCODER_PARAMETERS
};
enum { OUT_COUNTS, OUT_ANGLE, OUT_SPEED, OUT_A, OUT_B, OUT_INDEX, ENCODER_OUTPUTS };

/* State, as doubles in z; then a mark for each sample of the window, then the delayed outputs. */
typedef struct {
    double edge, time; /* number of an edge, and its time by the timer */
} encoder_edge;
typedef struct {
    double started;
    double phase, place; /* of the shaft: in counts, and the last edge below it */
    double counter;
    encoder_edge last, before;
    double speed;
    double newest, oldest; /* places in the two rings */
    double left[ENCODER_OUTPUTS]; /* the last outputs */
} encoder_state;
typedef struct {
    double counter;
    encoder_edge last;
} encoder_mark;
enum { ENCODER_KEPT = sizeof(encoder_state) / sizeof(double), ENCODER_MARK = sizeof(encoder_mark) / sizeof(double) };

static encoder_mark *encoder_marks(const bl_block *b) { return (encoder_mark *)(b->z + ENCODER_KEPT); }
static double *encoder_late(const bl_block *b) { return b->z + ENCODER_KEPT + ENCODER_MARK * b->i[ENCODER_WINDOW]; }

static int encoder_check(const bl_block *b) {
    if (b->u_count != 3 || b->y_count != ENCODER_OUTPUTS || b->i_count != ENCODER_INTEGERS) return 0;
    for (int32_t k = 0; k < 3; k++)
        if (b->u_width[k] != 1) return 0;
    for (int32_t k = 0; k < ENCODER_OUTPUTS; k++)
        if (b->y_width[k] != 1) return 0;
    const int32_t *i = b->i, decoding = i[ENCODER_DECODING];
    return i[ENCODER_COUNTS] >= 1 && (decoding == 1 || decoding == 2 || decoding == 4) &&
           i[ENCODER_METHOD] >= ENCODER_BY_COUNT && i[ENCODER_METHOD] <= ENCODER_BY_BOTH && i[ENCODER_WINDOW] >= 1 &&
           i[ENCODER_LATENCY] >= 0 && (i[ENCODER_BLIND] == 0 || i[ENCODER_BLIND] == 1) &&
           b->p_count == ENCODER_PARAMETERS;
}
static bl_sizes encoder_sizes(const bl_block *b) {
    return (bl_sizes){.memory = ENCODER_KEPT + ENCODER_MARK * (int64_t)b->i[ENCODER_WINDOW] +
                                ENCODER_OUTPUTS * (int64_t)b->i[ENCODER_LATENCY]};
}

static int encoder_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = 0.0;
    encoder_state *s = (encoder_state *)b->z;
    s->last.time = s->before.time = ENCODER_NEVER;
    return BL_OK;
}

/* Where edge number `edge` is, in counts: off by chance, the same in each turn. */
static double encoder_edge_at(const bl_block *b, double edge) {
    const double error = b->p[ENCODER_EDGE_ERROR], around = (double)b->i[ENCODER_COUNTS];
    if (!(error > 0.0)) return edge;
    const uint64_t number = bl_noise_sample(edge - around * bl_floor(edge / around));
    return edge + error * (2.0 * bl_noise_uniform(b->p[ENCODER_SEED], 0, number) - 1.0);
}
/* The last edge at or below a phase. */
static double encoder_place(const bl_block *b, double phase) {
    const double below = bl_floor(phase), part = phase - below, error = b->p[ENCODER_EDGE_ERROR];
    if (part < error && phase < encoder_edge_at(b, below)) return below - 1.0;
    if (part >= 1.0 - error && phase >= encoder_edge_at(b, below + 1.0)) return below + 1.0;
    return below;
}
static double encoder_phase(const bl_block *b) {
    double angle = b->u[0][0] - b->p[ENCODER_OFFSET];
    if (b->p[ENCODER_ECCENTRICITY] != 0.0)
        angle += b->p[ENCODER_ECCENTRICITY] * sin(b->u[0][0] - b->p[ENCODER_ECCENTRIC_AT]);
    return angle * ((double)b->i[ENCODER_COUNTS] / ENCODER_TURN);
}

/* Time, by the timer, of an edge passed in the sample that ends at t. */
static double encoder_time(const bl_block *b, const encoder_state *old, double phase, double edge, double t) {
    const double part = (phase - encoder_edge_at(b, edge)) / (phase - old->phase);
    const double time = t - b->dt * (part > 0.0 ? part < 1.0 ? part : 1.0 : 0.0);
    return b->p[ENCODER_CLOCK] > 0.0 ? bl_floor(time * b->p[ENCODER_CLOCK]) / b->p[ENCODER_CLOCK] : time;
}

/* Counts the edges passed since the last sample, and times the edges that the method needs. */
static void encoder_count(const bl_block *b, const encoder_state *old, encoder_state *s, double t) {
    const double passed = s->place - old->place, way = passed > 0.0 ? 1.0 : -1.0;
    const int blind = b->i[ENCODER_BLIND];
    s->counter += blind ? fabs(passed) : passed;
    if (passed == 0.0 || b->i[ENCODER_METHOD] == ENCODER_BY_COUNT) return;
    /* Upwards the last edge passed is the one below, downwards the one above. */
    const double edge = passed > 0.0 ? s->place : s->place + 1.0;
    s->before = s->last;
    s->last.edge = blind ? s->counter : s->counter + (edge - s->place); /* position as counted by the electronics */
    s->last.time = encoder_time(b, old, s->phase, edge, t);
    if (fabs(passed) < 2.0 || b->i[ENCODER_METHOD] == ENCODER_BY_BOTH) return;
    s->before.edge = s->last.edge - (blind ? 1.0 : way);
    s->before.time = encoder_time(b, old, s->phase, edge - way, t);
}

static double encoder_speed(const bl_block *b, const encoder_state *s, double t) {
    const int32_t window = b->i[ENCODER_WINDOW];
    const double pitch = ENCODER_TURN / (double)b->i[ENCODER_COUNTS];
    const encoder_mark *mark = encoder_marks(b) + bl_ring_next(s->newest, window); /* the oldest */
    if (s->started == 0.0) return 0.0;
    if (b->i[ENCODER_METHOD] == ENCODER_BY_COUNT) return (s->counter - mark->counter) * pitch / (window * b->dt);
    const encoder_edge from = b->i[ENCODER_METHOD] == ENCODER_BY_PERIOD ? s->before : mark->last;
    const double waited = t - s->last.time, time = s->last.time - from.time;
    if (from.time <= 0.5 * ENCODER_NEVER || waited > b->p[ENCODER_TIMEOUT]) return 0.0;
    const double speed = time > 0.0 ? pitch * (s->last.edge - from.edge) / time : s->speed;
    /* Faster than this, another edge would have come. A window with edges in it is long enough to be believed. */
    const int believed = b->i[ENCODER_METHOD] == ENCODER_BY_BOTH && time > 0.0;
    return !believed && fabs(speed) * waited > pitch ? copysign(pitch / waited, speed) : speed;
}

/* The state after this sample, but for what leaves. */
static encoder_state encoder_next(const bl_block *b, double t) {
    const encoder_state *old = (const encoder_state *)b->z;
    encoder_state s = *old;
    s.phase = encoder_phase(b);
    s.place = encoder_place(b, s.phase);
    const int seen = b->u[1][0] == 0.0 && !(fabs(s.phase - old->phase) > b->p[ENCODER_FASTEST] * b->dt);
    if (old->started == 0.0) s.counter = s.place;
    else if (seen) encoder_count(b, old, &s, t);
    s.speed = encoder_speed(b, &s, t);
    return s;
}

/* Computes the outputs from the state. */
static void encoder_report(const bl_block *b, const encoder_state *s, double out[ENCODER_OUTPUTS]) {
    const encoder_state *old = (const encoder_state *)b->z;
    const double counts = (double)b->i[ENCODER_COUNTS], decoding = (double)b->i[ENCODER_DECODING];
    const double quarter = decoding == 4.0 ? s->place : bl_floor(s->phase * (4.0 / decoding));
    const double of_four = quarter - 4.0 * bl_floor(quarter * 0.25), turn = bl_floor(s->place / counts);
    const int plugged = b->u[1][0] == 0.0, moved = old->started != 0.0 && old->place != s->place;
    const int on_index = s->place == turn * counts || (moved && turn != bl_floor(old->place / counts));
    out[OUT_COUNTS] = s->counter;
    out[OUT_ANGLE] = s->counter * (ENCODER_TURN / counts) + b->p[ENCODER_OFFSET];
    out[OUT_SPEED] = s->speed;
    out[OUT_A] = plugged && (of_four == 0.0 || of_four == 1.0);
    out[OUT_B] = plugged && !b->i[ENCODER_BLIND] && (of_four == 1.0 || of_four == 2.0);
    out[OUT_INDEX] = plugged && on_index;
}

static int encoder_output(bl_block *b, double t) {
    const encoder_state *kept = (const encoder_state *)b->z;
    const int32_t latency = b->i[ENCODER_LATENCY];
    double ready[ENCODER_OUTPUTS];
    const double *leaving = ready;
    if (b->u[2][0] != 0.0) {
        leaving = kept->left;
    } else if (latency) {
        leaving = encoder_late(b) + ENCODER_OUTPUTS * bl_ring_place(kept->oldest, latency);
    } else {
        const encoder_state s = encoder_next(b, t);
        encoder_report(b, &s, ready);
    }
    for (int k = 0; k < ENCODER_OUTPUTS; k++) b->y[k][0] = leaving[k];
    return BL_OK;
}

static int encoder_update(bl_block *b, double t) {
    const int32_t window = b->i[ENCODER_WINDOW], latency = b->i[ENCODER_LATENCY];
    encoder_state *kept = (encoder_state *)b->z;
    encoder_state s = encoder_next(b, t);
    const encoder_mark mark = {s.counter, s.last};
    if (kept->started == 0.0) /* it stood still before */
        for (int32_t k = 0; k < window; k++) encoder_marks(b)[k] = mark;
    const int32_t place = bl_ring_next(kept->newest, window);
    encoder_marks(b)[place] = mark;
    s.newest = (double)place;
    if (latency) {
        encoder_report(b, &s, encoder_late(b) + ENCODER_OUTPUTS * bl_ring_place(kept->oldest, latency));
        s.oldest = (double)bl_ring_next(kept->oldest, latency);
    }
    s.started = 1.0;
    for (int k = 0; k < ENCODER_OUTPUTS; k++) s.left[k] = b->y[k][0]; /* outputs come before updates */
    *kept = s;
    return BL_OK;
}

const bl_kernel bl_kernels_encoder[] = {
    {.name = "encoder",
     .check = encoder_check,
     .sizes = encoder_sizes,
     .init = encoder_init,
     .output = encoder_output,
     .update = encoder_update},
    {.name = 0},
};
