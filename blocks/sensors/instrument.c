/* The chain that all sensors share: see instrument.h. */
#include "blocks/core/kernel/constants.h"
#include "blocks/sensors/instrument.h"

#include <math.h>

#include "blocks/basic/sources/noise.h"
#include "blocks/core/kernel/ring.h"
#include "blocks/core/kernel/rounding.h"
#include "blocks/core/kernel/table.h"

enum { /* z: these, then a channel_state for each channel, then the delayed samples */
       KEPT_STARTED, /* whether there was a previous sample */
       KEPT_SAMPLE,  /* number of the sample */
       KEPT_START,   /* time of the first sample */
       KEPT_NEWEST,  /* index of the newest sample in the ring */
       KEPT_HEAD
};

/* State of a channel, as doubles in z. Two states x, of which the first is the signal; with order 1 or 0 the
   second is idle. A sample gives x = ahead + feed v with v its input, f = x0 + noise spread w with w its normal value, and
   then ahead+ = a x + b v + noise pull w. */
typedef struct {
    double ahead[2]; /* x of this sample without the contribution of v */
    double w;
    double slack, last_q; /* of the hysteresis: s, and the last q */
    double walk, last_y;
    double a[2][2], b[2], feed[2], spread, pull[2]; /* computed at the start */
} channel_state;
enum { CHANNEL_KEPT = sizeof(channel_state) / sizeof(double) };

static channel_state *instrument_channel(const bl_block *b, int32_t k) {
    return (channel_state *)(b->z + KEPT_HEAD) + k;
}
static double *instrument_ring(const bl_block *b) { return b->z + KEPT_HEAD + CHANNEL_KEPT * b->y_width[0]; }
static double instrument_number(const bl_block *b, int what, int32_t k) {
    return b->p[INSTRUMENT_NUMBERS + what * b->y_width[0] + k];
}
static const double *instrument_curve(const bl_block *b) {
    return b->p + INSTRUMENT_NUMBERS + CHANNEL_NUMBERS * b->y_width[0];
}
static int32_t instrument_curve_size(const bl_block *b) {
    return b->i[INSTRUMENT_CURVE] * (b->i[INSTRUMENT_TABLE] ? 2 : 1);
}
const double *bl_instrument_own(const bl_block *b) { return instrument_curve(b) + instrument_curve_size(b); }

int bl_instrument_fits(const bl_block *b, int32_t integers, int64_t parameters) {
    if (b->u_count < 3 || b->y_count != 1 || b->i_count != INSTRUMENT_INTEGERS + integers) return 0;
    const int64_t n = b->y_width[0], curve = b->i[INSTRUMENT_CURVE], room = b->i[INSTRUMENT_ROOM];
    const int is_table = b->i[INSTRUMENT_TABLE];
    if (is_table != 0 && is_table != 1) return 0;
    if (curve < 2 * is_table || curve > INT32_MAX / 2 || room < 0 || room == 1) return 0;
    if (b->i[INSTRUMENT_ORDER] < 0 || b->i[INSTRUMENT_ORDER] > 2) return 0;
    for (int32_t port = b->u_count - 2; port < b->u_count; port++)
        if (b->u_width[port] != 1 && b->u_width[port] != n) return 0;
    return (int64_t)b->p_count == INSTRUMENT_NUMBERS + CHANNEL_NUMBERS * n + curve * (1 + is_table) + parameters;
}
bl_sizes bl_instrument_sizes(const bl_block *b) {
    const int64_t n = b->y_width[0];
    return (bl_sizes){.memory = KEPT_HEAD + CHANNEL_KEPT * n + b->i[INSTRUMENT_ROOM] * n, .scratch = n};
}

/* How a low-pass works, in samples. */

enum { FOH = 4 };
static void instrument_multiply(double c[FOH][FOH], double a[FOH][FOH], double b[FOH][FOH]) {
    double sum[FOH][FOH];
    for (int r = 0; r < FOH; r++)
        for (int s = 0; s < FOH; s++) {
            sum[r][s] = 0.0;
            for (int k = 0; k < FOH; k++) sum[r][s] += a[r][k] * b[k][s];
        }
    for (int r = 0; r < FOH; r++)
        for (int s = 0; s < FOH; s++) c[r][s] = sum[r][s];
}
/* e = exp(m), by Taylor's series of a matrix below 1/2 and squaring. */
static void instrument_exponential(double e[FOH][FOH], double m[FOH][FOH], double norm) {
    int halvings = 0;
    for (; norm > 0.5 && halvings < 200; halvings++) norm *= 0.5;
    double term[FOH][FOH];
    for (int r = 0; r < FOH; r++)
        for (int s = 0; s < FOH; s++) {
            m[r][s] = ldexp(m[r][s], -halvings);
            e[r][s] = term[r][s] = r == s;
        }
    for (int k = 1; k <= 16; k++) { /* 0.5^17 / 17! is 2e-20 */
        instrument_multiply(term, term, m);
        for (int r = 0; r < FOH; r++)
            for (int s = 0; s < FOH; s++) {
                term[r][s] /= k;
                e[r][s] += term[r][s];
            }
    }
    for (; halvings > 0; halvings--) instrument_multiply(e, e, e);
}

/* The natural frequency in rad/s of a second-order low-pass that is 3 dB down at the bandwidth. */
static double instrument_natural_frequency(double bandwidth, double damping) {
    const double c = 1.0 - 2.0 * damping * damping, root = sqrt(c * c + 1.0);
    const double squared = c > 0.0 ? c + root : 1.0 / (root - c); /* equal, but for rounding */
    return (2.0 * BL_PI) * bandwidth / sqrt(squared);
}

/* Covariance matrix of two states: both variances and the covariance. */
typedef struct {
    double first, second, shared;
} covariance;

/* Covariance that white noise of density 1 per √Hz, one-sided and so of intensity 1/2, adds to both states of order 2
   within h. `lasting` is the stationary variance of either. */
static covariance instrument_added(const channel_state *c, double w, double damping, double h, double lasting) {
    if (w * h > 0.1) /* stationary covariance minus its remainder after h */
        return (covariance){
            lasting * (1.0 - c->a[0][0] * c->a[0][0] - c->a[0][1] * c->a[0][1]),
            lasting * (1.0 - c->a[1][0] * c->a[1][0] - c->a[1][1] * c->a[1][1]),
            -lasting * (c->a[0][0] * c->a[1][0] + c->a[0][1] * c->a[1][1]),
        };
    /* That would be a difference of almost equal numbers here. Van Loan 1978: the upper right part of
       exp((-A, B Bᵀ / 2; 0, Aᵀ) h), multiplied by exp(A h), is the covariance. */
    double e[FOH][FOH], m[FOH][FOH] = {
                            {0.0, -w * h, 0.0, 0.0},
                            {w * h, 2.0 * damping * w * h, 0.0, 0.5 * w * w * h},
                            {0.0, 0.0, 0.0, -w * h},
                            {0.0, 0.0, w * h, -2.0 * damping * w * h},
                        };
    instrument_exponential(
        e, m, 4.0 * w * h * (1.0 + damping)); /* linear in the upper right part, which does not enter the norm */
    return (covariance){
        c->a[0][0] * e[0][2] + c->a[0][1] * e[1][2],
        c->a[1][0] * e[0][3] + c->a[1][1] * e[1][3],
        c->a[0][0] * e[0][3] + c->a[0][1] * e[1][3],
    };
}

/* Noise as the output shows it needs one new value a sample, not one for each state (its innovation): spread and pull
   such that the spectrum of all samples is that of the filtered noise. Returns the corresponding covariance
   of the states. The output determines x0; the remaining variance of x1 is p, which converges within a few samples. */
static covariance instrument_innovate(channel_state *c, covariance added, double lasting[2]) {
    double p = 0.0;
    covariance open = added;
    for (int k = 0; k < 100; k++) {
        open.first = added.first + p * c->a[0][1] * c->a[0][1];
        open.second = added.second + p * c->a[1][1] * c->a[1][1];
        open.shared = added.shared + p * c->a[0][1] * c->a[1][1];
        p = open.first > 0.0 ? fmax(open.second - open.shared * open.shared / open.first, 0.0) : 0.0;
    }
    c->spread = sqrt(fmax(open.first, 0.0));
    const double follow = open.first > 0.0 ? open.shared / open.first : 0.0; /* regression of x1 on x0 */
    for (int r = 0; r < 2; r++) c->pull[r] = c->spread * (c->a[r][0] + c->a[r][1] * follow);
    return (covariance){lasting[0] - open.first, lasting[1] - open.second, -open.shared};
}

/* Computes the coefficients at the start; returns the covariance of the states under noise of density 1. */
static covariance instrument_design(const bl_block *b, int32_t k, channel_state *c) {
    const double h = b->dt;
    const int order = b->i[INSTRUMENT_ORDER];
    if (order == 0) { /* noise fills the band up to half the sample rate */
        c->feed[0] = 1.0;
        c->spread = sqrt(0.5 / h);
        return (covariance){0.0, 0.0, 0.0};
    }
    const double bandwidth = instrument_number(b, CHANNEL_BANDWIDTH, k);
    const double damping = instrument_number(b, CHANNEL_DAMPING, k);
    double w = (2.0 * BL_PI) * bandwidth, m[FOH][FOH] = {{0.0}}, e[FOH][FOH], lasting[2] = {0.25 * w, 0.0};
    m[2][3] = 1.0; /* an input that rises from 0 to 1 in h */
    if (order == 1) {
        m[0][0] = m[1][1] = -w * h;
        m[0][2] = w * h;
    } else { /* x1 is the rate of x0 over w, so that both vary alike */
        w = instrument_natural_frequency(bandwidth, damping);
        m[0][1] = m[1][2] = w * h;
        m[1][0] = -w * h;
        m[1][1] = -2.0 * damping * w * h;
        lasting[0] = lasting[1] = w / (8.0 * damping);
    }
    instrument_exponential(e, m, 2.0 * w * h * (1.0 + damping) + 1.0);
    for (int r = 0; r < 2; r++) {
        c->feed[r] = e[r][3];
        c->b[r] = e[r][2] - e[r][3];
        for (int s = 0; s < 2; s++) c->a[r][s] = e[r][s];
    }
    covariance added = {-lasting[0] * expm1(-2.0 * w * h), 0.0, 0.0};
    if (order == 2) added = instrument_added(c, w, damping, h, lasting[0]);
    return instrument_innovate(c, added, lasting);
}

/* Random numbers per sample and channel. */
enum { DRAW_NOISE, DRAW_WALK, DRAWS };
static uint64_t instrument_draw(const bl_block *b, double sample, int32_t k, int what) {
    return (bl_noise_sample(sample) * (uint64_t)b->y_width[0] + (uint64_t)k) * DRAWS + (uint64_t)what;
}

/* One sample. */

static double instrument_clip(double v, double low, double high) { return v > high ? high : v < low ? low : v; }

static double instrument_slack(const bl_block *b, int32_t k, const channel_state *c, double q) {
    if (b->z[KEPT_STARTED] == 0.0 || instrument_number(b, CHANNEL_HYSTERESIS, k) == 0.0) return 0.0;
    return instrument_clip(c->slack + 4.0 * (q - c->last_q) / instrument_number(b, CHANNEL_FULL_SCALE, k), -1.0, 1.0);
}

/* The deviation from a straight line at part s of full scale; of a table that ends before, that of its end. */
static double instrument_tabled(const double *curve, int32_t n, double s) {
    const double *values = curve + n;
    const int32_t j = bl_table_find(curve, n, s);
    const double span = curve[j + 1] - curve[j];
    const double part = span > 0.0 ? instrument_clip((s - curve[j]) / span, 0.0, 1.0) : 0.0;
    return values[j] + part * (values[j + 1] - values[j]);
}
static inline double instrument_deviation(const bl_block *b, double s) {
    const double *curve = instrument_curve(b);
    const int32_t n = b->i[INSTRUMENT_CURVE];
    if (b->i[INSTRUMENT_TABLE]) return instrument_tabled(curve, n, s);
    double sum = 0.0;
    for (int32_t j = 0; j < n; j++) sum = sum * s + curve[j];
    return sum;
}

/* Input of the low-pass. */
static inline double instrument_feel(const bl_block *b, int32_t k, double q, double slack) {
    const double full_scale = instrument_number(b, CHANNEL_FULL_SCALE, k);
    double v = q - 0.5 * instrument_number(b, CHANNEL_HYSTERESIS, k) * full_scale * slack;
    if (b->i[INSTRUMENT_CURVE] > 0) v += full_scale * instrument_deviation(b, v / full_scale);
    return instrument_number(b, CHANNEL_GAIN, k) * v;
}

/* What leaves the low-pass; x is its state. An instrument that starts has felt the same for long. */
static double instrument_filter(const bl_block *b, int32_t k, const channel_state *c, double v, double x[2]) {
    const int started = b->z[KEPT_STARTED] != 0.0;
    x[0] = c->ahead[0] + (started ? c->feed[0] * v : v);
    x[1] = c->ahead[1] + (started ? c->feed[1] * v : 0.0);
    return x[0] + instrument_number(b, CHANNEL_NOISE, k) * c->spread * c->w;
}

/* Where in the ring the samples of one latency ago are: a part of the way from `later` to `sooner`. */
typedef struct {
    const double *later, *sooner;
    double part;
} instrument_past;

static instrument_past instrument_look_back(const bl_block *b) {
    const int32_t n = b->y_width[0], room = b->i[INSTRUMENT_ROOM];
    double back = b->p[INSTRUMENT_LATENCY] / b->dt - 1.0; /* from the newest stored sample */
    const double nearest = bl_round(back);
    if (fabs(back - nearest) < 1e-7) back = nearest;
    back = back > 0.0 ? back : 0.0;
    if (!(back <= (double)(room - 1))) back = (double)(room - 1);
    const int32_t whole = (int32_t)back;
    const int32_t later = bl_ring_back(b->z[KEPT_NEWEST], room, whole), sooner = later > 0 ? later - 1 : room - 1;
    return (instrument_past){instrument_ring(b) + later * n, instrument_ring(b) + sooner * n, back - (double)whole};
}
/* x of channel k one latency ago, by a straight line between two samples. */
static double instrument_recall(const instrument_past *past, int32_t k) {
    return (1.0 - past->part) * past->later[k] + (past->part > 0.0 ? past->part * past->sooner[k] : 0.0);
}

static inline double instrument_read(const bl_block *b, int32_t k, const channel_state *c, double f, double t) {
    const double resolution = instrument_number(b, CHANNEL_RESOLUTION, k);
    double v = f + instrument_number(b, CHANNEL_OFFSET, k) + c->walk;
    v += instrument_number(b, CHANNEL_DRIFT, k) * (t - b->z[KEPT_START]);
    if (resolution > 0.0) v = resolution * bl_round(v / resolution);
    return instrument_clip(v, instrument_number(b, CHANNEL_LOWER, k), instrument_number(b, CHANNEL_UPPER, k));
}

static int instrument_fault(const bl_block *b, int32_t port, int32_t k) {
    return b->u[port][b->u_width[port] > 1 ? k : 0] != 0.0;
}
static double instrument_value(const bl_block *b, int32_t k, const instrument_past *past, double t) {
    const channel_state *c = instrument_channel(b, k);
    if (instrument_fault(b, b->u_count - 1, k))
        return b->i[INSTRUMENT_STUCK_HOLDS] ? c->last_y : instrument_number(b, CHANNEL_STUCK, k);
    if (instrument_fault(b, b->u_count - 2, k))
        return b->i[INSTRUMENT_DROPOUT_HOLDS] ? c->last_y : instrument_number(b, CHANNEL_DROPOUT, k);
    if (b->i[INSTRUMENT_ROOM]) return instrument_read(b, k, c, instrument_recall(past, k), t);
    const double q = b->w[k], v = instrument_feel(b, k, q, instrument_slack(b, k, c, q));
    double x[2];
    return instrument_read(b, k, c, instrument_filter(b, k, c, v, x), t);
}

/* Both states have been noisy for long. */
static void instrument_stir(const bl_block *b, int32_t k, channel_state *c, covariance states) {
    const double noise = instrument_number(b, CHANNEL_NOISE, k);
    if (noise == 0.0) return;
    const double first = sqrt(fmax(states.first, 0.0)), with_first = first > 0.0 ? states.shared / first : 0.0;
    /* A separate stream, independent of the samples. */
    const uint64_t before = ~bl_noise_stream(b->p[INSTRUMENT_SEED]);
    const double w0 = bl_noise_fast_normal(before, instrument_draw(b, 0.0, k, 0));
    const double w1 = bl_noise_fast_normal(before, instrument_draw(b, 0.0, k, 1));
    c->ahead[0] = noise * first * w0;
    c->ahead[1] = noise * (with_first * w0 + sqrt(fmax(states.second - with_first * with_first, 0.0)) * w1);
    c->w = bl_noise_fast_normal(~before, instrument_draw(b, 0.0, k, DRAW_NOISE));
}

int bl_instrument_init(bl_block *b, double t) {
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = 0.0;
    b->z[KEPT_START] = t;
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        channel_state *c = instrument_channel(b, k);
        instrument_stir(b, k, c, instrument_design(b, k, c));
        c->last_y = instrument_read(b, k, c, 0.0, t);
    }
    return BL_OK;
}

void bl_instrument_output(bl_block *b, double t) {
    instrument_past past = {0, 0, 0.0};
    if (b->i[INSTRUMENT_ROOM]) past = instrument_look_back(b);
    for (int32_t k = 0; k < b->y_width[0]; k++) b->y[0][k] = instrument_value(b, k, &past, t);
}

void bl_instrument_update(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->y_width[0], room = b->i[INSTRUMENT_ROOM];
    const double next = b->z[KEPT_SAMPLE] + 1.0, root = sqrt(b->dt);
    const int32_t place = room ? bl_ring_next(b->z[KEPT_NEWEST], room) : 0;
    const uint64_t stream = bl_noise_stream(b->p[INSTRUMENT_SEED]);
    for (int32_t k = 0; k < n; k++) {
        channel_state *c = instrument_channel(b, k);
        const double noise = instrument_number(b, CHANNEL_NOISE, k), walk = instrument_number(b, CHANNEL_WALK, k);
        const double q = b->w[k], slack = instrument_slack(b, k, c, q), v = instrument_feel(b, k, q, slack);
        double x[2];
        const double f = instrument_filter(b, k, c, v, x);
        c->last_y = b->y[0][k]; /* of this sample: outputs come before updates */
        c->slack = slack;
        c->last_q = q;
        for (int r = 0; r < 2; r++)
            c->ahead[r] = c->a[r][0] * x[0] + c->a[r][1] * x[1] + c->b[r] * v + noise * c->pull[r] * c->w;
        if (noise != 0.0) c->w = bl_noise_fast_normal(stream, instrument_draw(b, next, k, DRAW_NOISE));
        if (walk != 0.0) c->walk += walk * root * bl_noise_step(stream, instrument_draw(b, next, k, DRAW_WALK));
        if (room) instrument_ring(b)[place * n + k] = f;
    }
    if (room) b->z[KEPT_NEWEST] = (double)place;
    b->z[KEPT_SAMPLE] = next;
    b->z[KEPT_STARTED] = 1.0;
}
