/* Motions made of segments, over time or over the angle of a cam.
 *
 * A segment is a row of numbers: where it begins, its length L, c0 … c7, amplitude, pulsation, phase. At the part s of
 * its length, from 0 to 1, the position is c0 + c1 s + … + c7 s^7 + amplitude sin(pulsation s + phase).
 * Outputs: position, velocity, acceleration and, where it is bounded, jerk; of a triggered motion also whether it moves. */
#include <math.h>

#include "blocks/core/kernel/constants.h"
#include "blocks/core/kernel/kernel.h"

enum {
    SEGMENT_BEGIN,
    SEGMENT_LENGTH,
    SEGMENT_POWERS,
    SEGMENT_AMPLITUDE = 10,
    SEGMENT_PULSATION,
    SEGMENT_PHASE,
    SEGMENT_SIZE
};
enum { TRAJECTORY_POSITION, TRAJECTORY_VELOCITY, TRAJECTORY_ACCELERATION, TRAJECTORY_JERK };

/* The segment of a place; less than `slack` before the next one counts as within that. */
static int32_t segment_find(const double *rows, int32_t count, double place, double slack) {
    int32_t k = 0;
    while (k + 1 < count && place + slack >= rows[(k + 1) * SEGMENT_SIZE + SEGMENT_BEGIN]) k++;
    return k;
}
/* The position and its derivatives by place, on the curve of a segment. */
static void segment_evaluate(const double *row, double place, double found[4]) {
    const double *c = row + SEGMENT_POWERS;
    const double scale = 1.0 / row[SEGMENT_LENGTH], s = (place - row[SEGMENT_BEGIN]) * scale;
    int degree = SEGMENT_AMPLITUDE - SEGMENT_POWERS - 1;
    while (degree > 0 && c[degree] == 0.0) degree--;
    double value = c[degree], first = 0.0, second = 0.0, third = 0.0; /* the last two over 2 and over 6 */
    for (int j = degree - 1; j >= 0; j--) {
        third = third * s + second;
        second = second * s + first;
        first = first * s + value;
        value = value * s + c[j];
    }
    second *= 2.0;
    third *= 6.0;
    if (row[SEGMENT_AMPLITUDE] != 0.0) {
        const double w = row[SEGMENT_PULSATION], angle = w * s + row[SEGMENT_PHASE];
        const double sine = row[SEGMENT_AMPLITUDE] * sin(angle), cosine = row[SEGMENT_AMPLITUDE] * cos(angle);
        value += sine;
        first += w * cosine;
        second -= w * w * sine;
        third -= w * w * w * cosine;
    }
    found[0] = value;
    found[1] = first * scale;
    found[2] = second * scale * scale;
    found[3] = third * scale * scale * scale;
}

static int trajectory_fits(const bl_block *b, int32_t inputs, int32_t extra, int32_t before) {
    const int32_t derivatives = b->y_count - extra;
    if (b->u_count != inputs || (derivatives != 3 && derivatives != 4)) return 0;
    for (int32_t k = 0; k < inputs; k++)
        if (b->u_width[k] != 1) return 0;
    for (int32_t k = 0; k < b->y_count; k++)
        if (b->y_width[k] != 1) return 0;
    return b->p_count >= before + SEGMENT_SIZE && (b->p_count - before) % SEGMENT_SIZE == 0;
}

/* A motion over time. p: when it begins, from where to where, how long it takes, the segments from 0 on. */
enum { MOTION_AT, MOTION_BEFORE, MOTION_TO, MOTION_DURATION, MOTION_SEGMENTS };

/* Tolerance: a time meant to be at a tick may be later by a rounding error. */
static double motion_slack(const bl_block *b) { return 1e-6 * b->dt; }
/* End position of `count` motions. */
static double motion_end(const double *p, double count) {
    if (count == 1.0) return p[MOTION_TO]; /* without a rounding error */
    return p[MOTION_BEFORE] + count * (p[MOTION_TO] - p[MOTION_BEFORE]);
}
static int32_t motion_segments(const bl_block *b) { return (b->p_count - MOTION_SEGMENTS) / SEGMENT_SIZE; }
/* The motion number `count`, from 1. Where events are located, a step is integrated within one segment: the mode is its number, -1
   before the beginning, and the number of segments from the end on. Segments end at known instants: the crossing function stays 0. */
static void motion_show(bl_block *b, double elapsed, double count, int32_t derivatives) {
    const double *p = b->p;
    double found[4] = {0.0, 0.0, 0.0, 0.0};
    const double slack = motion_slack(b);
    const int32_t segments = motion_segments(b);
    int32_t segment = -1;
    /* Before the beginning and from the end on it stands still, exactly where it should. */
    if (elapsed + slack >= p[MOTION_DURATION]) segment = segments;
    else if (elapsed + slack >= 0.0) segment = segment_find(p + MOTION_SEGMENTS, segments, elapsed, slack);
    segment = (int32_t)bl_keep_mode(&b->modes, 0, (double)segment);
    if (segment >= 0 && segment < segments)
        segment_evaluate(p + MOTION_SEGMENTS + segment * SEGMENT_SIZE, elapsed, found);
    found[0] += motion_end(p, segment == segments ? count : count - 1.0);
    for (int32_t k = 0; k < derivatives; k++) b->y[k][0] = found[k];
}
static int motion_check(const bl_block *b) { return trajectory_fits(b, 0, 0, MOTION_SEGMENTS); }
static int motion_output(bl_block *b, double t) {
    motion_show(b, t - b->p[MOTION_AT], 1.0, b->y_count);
    return BL_OK;
}

static int32_t motion_crossings(const bl_block *b) {
    (void)b;
    return 1;
}
static double motion_next(const bl_block *b, double t) {
    const double *p = b->p, *rows = p + MOTION_SEGMENTS;
    for (int32_t k = 0; k < motion_segments(b); k++) {
        const double at = p[MOTION_AT] + rows[k * SEGMENT_SIZE + SEGMENT_BEGIN];
        if (at > t) return at;
    }
    const double end = p[MOTION_AT] + p[MOTION_DURATION];
    return end > t ? end : INFINITY;
}

/* The same, started by a rising signal; each start after the end adds the same distance.
 * z: the signal's last value, when the motion began, how many have begun. */
enum { MOTION_LAST, MOTION_BEGUN, MOTION_COUNT, MOTION_MEMORY };

static int motion_triggered_check(const bl_block *b) { return trajectory_fits(b, 1, 1, MOTION_SEGMENTS); }
static bl_sizes motion_triggered_sizes(const bl_block *b) {
    (void)b;
    return (bl_sizes){.memory = MOTION_MEMORY};
}
static int motion_triggered_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < MOTION_MEMORY; k++) b->z[k] = 0.0;
    return BL_OK;
}
static int motion_is_over(const bl_block *b, double t) {
    return b->z[MOTION_COUNT] == 0.0 || t - b->z[MOTION_BEGUN] + motion_slack(b) >= b->p[MOTION_DURATION];
}
static int motion_begins(const bl_block *b, double t) {
    return b->z[MOTION_LAST] == 0.0 && b->u[0][0] != 0.0 && motion_is_over(b, t);
}
static int motion_triggered_output(bl_block *b, double t) {
    const int begins = motion_begins(b, t);
    const double begun = begins ? t : b->z[MOTION_BEGUN], count = b->z[MOTION_COUNT] + begins;
    const int32_t moving = b->y_count - 1;
    if (count == 0.0) motion_show(b, -1.0, 1.0, moving);
    else motion_show(b, t - begun, count, moving);
    b->y[moving][0] = begins || !motion_is_over(b, t);
    return BL_OK;
}
static int motion_triggered_update(bl_block *b, double t) {
    if (motion_begins(b, t)) {
        b->z[MOTION_BEGUN] = t;
        b->z[MOTION_COUNT] += 1.0;
    }
    b->z[MOTION_LAST] = b->u[0][0];
    return BL_OK;
}

/* A cam: position over the angle, the same at each turn but for the rise of a whole turn. p: that rise, the segments from
 * 0 to 2 pi. Inputs: angle, speed and acceleration of the shaft. */
enum { CAM_ANGLE, CAM_SPEED, CAM_ACCELERATION, CAM_INPUTS };
enum { CAM_RISE, CAM_SEGMENTS };

/* Modes: whole turns, and the segment within the turn. */
enum { CAM_TURNS, CAM_SEGMENT, CAM_MODES };
static int32_t cam_crossings(const bl_block *b) {
    (void)b;
    return CAM_MODES;
}
static int cam_check(const bl_block *b) { return trajectory_fits(b, CAM_INPUTS, 0, CAM_SEGMENTS); }
static int cam_output(bl_block *b, double t) {
    (void)t;
    const double turn = 2.0 * BL_PI, speed = b->u[CAM_SPEED][0], acceleration = b->u[CAM_ACCELERATION][0];
    const double turns = bl_keep_mode(&b->modes, CAM_TURNS, floor(b->u[CAM_ANGLE][0] / turn));
    const double place = b->u[CAM_ANGLE][0] - turns * turn, *rows = b->p + CAM_SEGMENTS;
    const int32_t segments = (b->p_count - CAM_SEGMENTS) / SEGMENT_SIZE;
    const int32_t k = (int32_t)bl_keep_mode(&b->modes, CAM_SEGMENT, (double)segment_find(rows, segments, place, 0.0));
    if (b->modes.mode) {
        const double begin = k == 0 ? 0.0 : rows[k * SEGMENT_SIZE + SEGMENT_BEGIN];
        const double end = k == segments - 1 ? turn : rows[(k + 1) * SEGMENT_SIZE + SEGMENT_BEGIN];
        b->modes.crossing[CAM_TURNS] = 0.0;
        b->modes.crossing[CAM_SEGMENT] = fmin(place - begin, end - place);
    }
    double d[4];
    segment_evaluate(rows + k * SEGMENT_SIZE, place, d);
    b->y[TRAJECTORY_POSITION][0] = d[0] + turns * b->p[CAM_RISE];
    b->y[TRAJECTORY_VELOCITY][0] = d[1] * speed;
    b->y[TRAJECTORY_ACCELERATION][0] = d[2] * speed * speed + d[1] * acceleration;
    if (b->y_count > TRAJECTORY_JERK)
        b->y[TRAJECTORY_JERK][0] = (d[3] * speed * speed + 3.0 * d[2] * acceleration) * speed;
    return BL_OK;
}

const bl_kernel bl_kernels_trajectory[] = {
    {.name = "motion",
     .check = motion_check,
     .output = motion_output,
     .crossing_count = motion_crossings,
     .next_instant = motion_next},
    {.name = "motion_triggered",
     .check = motion_triggered_check,
     .sizes = motion_triggered_sizes,
     .init = motion_triggered_init,
     .output = motion_triggered_output,
     .update = motion_triggered_update},
    {.name = "cam", .check = cam_check, .output = cam_output, .crossing_count = cam_crossings},
    {.name = 0},
};
