/* Converters between volts and codes, ADC and DAC, and the scan that puts several channels through one ADC. */
#include <math.h>

#include "blocks/core/kernel/kernel.h"
#include "blocks/basic/sources/noise.h"

/* The characteristic of a converter, first in p:
 *   lower and upper end of its range, gain error, offset error, seed, largest DNL, INL at evenly spread codes.
 * A code c stands for the level lower + (c + deviation(c)) q, with q = (upper - lower) / codes. */
enum {
    CONVERTER_LOWER,
    CONVERTER_UPPER,
    CONVERTER_GAIN,
    CONVERTER_OFFSET,
    CONVERTER_SEED,
    CONVERTER_DNL,
    CONVERTER_INL
};

typedef struct {
    double codes, lower, q;
    const double *p;
    int32_t points;
    int bent; /* whether any code is out of place */
} converter;

static int converter_fits(const bl_block *b, int32_t bits, int32_t points, int32_t others) {
    return bits >= 1 && bits <= 32 && points >= 2 && points < INT32_MAX - CONVERTER_INL - others &&
           b->p_count == CONVERTER_INL + points + others;
}
static converter converter_of(const bl_block *b, int32_t bits, int32_t points) {
    const double codes = (double)((int64_t)1 << bits);
    const double lower = b->p[CONVERTER_LOWER];
    const double *inl = b->p + CONVERTER_INL;
    const int bent = points > 2 || inl[0] != 0.0 || inl[1] != 0.0 || b->p[CONVERTER_DNL] != 0.0;
    return (converter){codes, lower, (b->p[CONVERTER_UPPER] - lower) / codes, b->p, points, bent};
}
static double converter_clip(double v, double low, double high) {
    return v > low ? (v < high ? v : high) : low; /* NaN becomes `low` */
}
/* Deviation of code c, or of the transition into it, in codes: the INL, interpolated linearly, plus a random
   offset per code within half the DNL to either side. */
static double converter_deviation(const converter *a, double c) {
    const double dnl = a->p[CONVERTER_DNL], *inl = a->p + CONVERTER_INL;
    const double place = c / (a->codes - 1.0) * (double)(a->points - 1);
    const double whole = converter_clip(floor(place), 0.0, (double)(a->points - 2));
    const int32_t n = (int32_t)whole;
    double deviation = inl[n] + (place - whole) * (inl[n + 1] - inl[n]);
    if (dnl != 0.0) deviation += dnl * (bl_noise_uniform(a->p[CONVERTER_SEED], INT32_MAX, (uint64_t)c) - 0.5);
    return deviation;
}
/* Whether the last transition, c - 1/2 + deviation, that `place` has passed is that into code c. */
static int converter_is_at(const converter *a, double c, double place) {
    return (c <= 0.0 || place >= c - 0.5 + converter_deviation(a, c)) &&
           (c >= a->codes - 1.0 || place < c + 0.5 + converter_deviation(a, c + 1.0));
}
/* The code at a place; transitions rise, so halving finds it where a guess and its neighbors fail: a steep INL. */
static double converter_search(const converter *a, double guess, double place) {
    const double last = a->codes - 1.0;
    for (double c = fmax(guess - 1.0, 0.0); c <= fmin(guess + 1.0, last); c += 1.0)
        if (converter_is_at(a, c, place)) return c;
    double low = 0.0, above = a->codes; /* the transition into `low` is passed, that into `above` is not */
    while (above - low > 1.0) {
        const double middle = floor(0.5 * (low + above));
        if (place >= middle - 0.5 + converter_deviation(a, middle)) low = middle;
        else above = middle;
    }
    return low;
}
/* The code for v, and whether it is beyond the range. */
static double converter_code(const converter *a, double v, double *over) {
    const double volts = v * (1.0 + a->p[CONVERTER_GAIN]) + a->p[CONVERTER_OFFSET];
    const double place = (volts - a->lower) / a->q, last = a->codes - 1.0;
    *over = !(place >= -0.5 && place < last + 0.5);
    double c = converter_clip(floor(place + 0.5), 0.0, last);
    if (!a->bent) return c;
    c = converter_clip(floor(place + 0.5 - converter_deviation(a, c)), 0.0, last);
    return converter_is_at(a, c, place) ? c : converter_search(a, c, place);
}

/* ADC, ScanList: at the end of each scan, y, code and over of all channels. Channel k was sampled at
 *   start of the scan + k skew + jitter,
 * which lies between ticks: there the input follows the cubic through the four nearest ticks.
 * u: inputs. y: volts, codes, whether out of range. p: characteristic, skew, jitter (standard deviation).
 * i: bits, points of INL, ticks from scan to scan, ticks until the end of the first, ticks from start to end of a
 * scan, rows of the history (0: neither skew nor jitter, and every call is a scan), the channels' places in u.
 * z, if there is a history: ticks until the next end of a scan, number of scans, held values of y, code and over, then of the history:
 * index of the newest row, number of rows filled, the rows. */
BL_SHARED enum { ADC_BITS, ADC_POINTS, ADC_PERIOD, ADC_FIRST, ADC_LATENCY, ADC_ROWS, ADC_CHANNELS };
enum { ADC_WAIT, ADC_SCANS, ADC_HELD };
enum { ADC_LEAST_ROWS = 4 };

static int adc_check(const bl_block *b) {
    if (b->u_count != 1 || b->y_count != 3 || b->i_count <= ADC_CHANNELS) return 0;
    const int32_t n = b->i_count - ADC_CHANNELS, rows = b->i[ADC_ROWS], latency = b->i[ADC_LATENCY];
    if (!converter_fits(b, b->i[ADC_BITS], b->i[ADC_POINTS], 2)) return 0;
    for (int port = 0; port < 3; port++)
        if (b->y_width[port] != n) return 0;
    for (int32_t k = 0; k < n; k++)
        if (b->i[ADC_CHANNELS + k] < 0 || b->i[ADC_CHANNELS + k] >= b->u_width[0]) return 0;
    if (b->i[ADC_PERIOD] < 1 || b->i[ADC_FIRST] < 0 || latency < 0) return 0;
    return rows == 0 || (rows >= ADC_LEAST_ROWS && latency <= rows - ADC_LEAST_ROWS);
}
static bl_sizes adc_sizes(const bl_block *b) {
    return (bl_sizes){.memory = b->i[ADC_ROWS] ? ADC_HELD + 3 * (int64_t)b->y_width[0] + 2 +
                                                     (int64_t)b->i[ADC_ROWS] * b->u_width[0]
                                               : 0};
}
static int adc_init(bl_block *b, double t) {
    (void)t;
    for (int32_t k = 0; k < b->z_count; k++) b->z[k] = 0.0;
    if (b->z_count) b->z[ADC_WAIT] = (double)b->i[ADC_FIRST];
    return BL_OK;
}
typedef struct {
    const bl_block *b;
    const double *ring; /* rows of past inputs */
    int32_t rows, newest, filled;
} adc_history;

static adc_history adc_history_of(const bl_block *b) {
    const double *z = b->z + ADC_HELD + 3 * (b->i_count - ADC_CHANNELS);
    const int32_t rows = b->i[ADC_ROWS];
    adc_history h = {b, z + 2, rows, 0, 0};
    if (z[0] >= 0.0 && z[0] < (double)rows) h.newest = (int32_t)z[0];
    if (z[1] >= 0.0 && z[1] <= (double)rows) h.filled = (int32_t)z[1];
    return h;
}
/* The input of some ticks ago, or at the start if that is less long ago. */
static double adc_input(const adc_history *h, int32_t channel, int32_t ago) {
    if (ago > h->filled) ago = h->filled;
    if (ago == 0) return h->b->u[0][channel];
    int32_t row = h->newest - (ago - 1);
    if (row < 0) row += h->rows;
    return h->ring[(int64_t)row * h->b->u_width[0] + channel];
}
/* The input `age` ticks ago: Lagrange's cubic through the four nearest ticks there are. */
static double adc_input_between(const adc_history *h, int32_t channel, double age) {
    const double most = (double)(h->rows - ADC_LEAST_ROWS + 1);
    const double whole = converter_clip(floor(age) - 1.0, 0.0, most);
    const int32_t first = (int32_t)whole;
    const double s = age - whole;
    const double a = adc_input(h, channel, first), b = adc_input(h, channel, first + 1);
    const double c = adc_input(h, channel, first + 2), d = adc_input(h, channel, first + 3);
    if (s == 0.0) return a;
    return (s - 1.0) * (s - 2.0) * (s - 3.0) / -6.0 * a + s * (s - 2.0) * (s - 3.0) / 2.0 * b +
           s * (s - 1.0) * (s - 3.0) / -2.0 * c + s * (s - 1.0) * (s - 2.0) / 6.0 * d;
}
static double adc_sample(const bl_block *b, const adc_history *h, int32_t k) {
    const int32_t channel = b->i[ADC_CHANNELS + k];
    if (h->rows == 0) return b->u[0][channel];
    const double *timing = b->p + CONVERTER_INL + b->i[ADC_POINTS], skew = timing[0], jitter = timing[1];
    double age = (double)b->i[ADC_LATENCY] - (double)k * skew / b->dt;
    if (fabs(age - round(age)) < 1e-7) age = round(age);
    if (jitter > 0.0) {
        const uint64_t channels = (uint64_t)(b->i_count - ADC_CHANNELS), scan = bl_noise_sample(b->z[ADC_SCANS]);
        const double w = bl_noise_fast_normal(bl_noise_stream(b->p[CONVERTER_SEED]), scan * channels + (uint64_t)k);
        age -= converter_clip(jitter / b->dt * w, -1.0, 1.0);
    }
    return adc_input_between(h, channel, age);
}
static void adc_scan(bl_block *b) {
    double *y = b->y[0], *code = b->y[1], *over = b->y[2];
    const converter a = converter_of(b, b->i[ADC_BITS], b->i[ADC_POINTS]);
    const int32_t n = b->i_count - ADC_CHANNELS;
    adc_history h = {b, 0, 0, 0, 0};
    if (b->i[ADC_ROWS]) h = adc_history_of(b);
    for (int32_t k = 0; k < n; k++) {
        code[k] = converter_code(&a, adc_sample(b, &h, k), over + k);
        y[k] = a.lower + code[k] * a.q;
    }
}
static int adc_output(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->i_count - ADC_CHANNELS;
    if (b->i[ADC_ROWS] == 0 || b->z[ADC_WAIT] == 0.0) {
        adc_scan(b);
        return BL_OK;
    }
    const double *held = b->z + ADC_HELD;
    for (int port = 0; port < 3; port++)
        for (int32_t k = 0; k < n; k++) b->y[port][k] = held[port * n + k];
    return BL_OK;
}
static int adc_update(bl_block *b, double t) {
    (void)t;
    const int32_t n = b->i_count - ADC_CHANNELS, rows = b->i[ADC_ROWS], width = b->u_width[0];
    if (rows == 0) return BL_OK;
    double *held = b->z + ADC_HELD;
    if (b->z[ADC_WAIT] == 0.0) {
        /* The outputs of this tick have already been computed from the same inputs. */
        for (int port = 0; port < 3; port++)
            for (int32_t k = 0; k < n; k++) held[port * n + k] = b->y[port][k];
        b->z[ADC_SCANS] += 1.0;
        b->z[ADC_WAIT] = (double)b->i[ADC_PERIOD];
    }
    b->z[ADC_WAIT] = b->z[ADC_WAIT] >= 1.0 ? b->z[ADC_WAIT] - 1.0 : 0.0;
    const adc_history h = adc_history_of(b);
    const int32_t next = h.newest + 1 < rows ? h.newest + 1 : 0;
    double *z = held + 3 * n;
    for (int32_t k = 0; k < width; k++) z[2 + (int64_t)next * width + k] = b->u[0][k];
    z[0] = (double)next;
    z[1] = (double)(h.filled < rows ? h.filled + 1 : rows);
    return BL_OK;
}

/* DAC: y = (1 + gain error) level(code) + offset error. u: volts, or codes. y: volts, codes.
 * p: characteristic. i: bits, points of INL, whether u is a code. */
static int dac_check(const bl_block *b) {
    return b->u_count == 1 && b->y_count == 2 && b->i_count == 3 && b->u_width[0] == b->y_width[0] &&
           b->u_width[0] == b->y_width[1] && converter_fits(b, b->i[0], b->i[1], 0);
}
static int dac_output(bl_block *b, double t) {
    (void)t;
    const converter a = converter_of(b, b->i[0], b->i[1]);
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double asked = b->i[2] ? b->u[0][k] : (b->u[0][k] - a.lower) / a.q;
        const double code = converter_clip(floor(asked + 0.5), 0.0, a.codes - 1.0);
        const double level = a.lower + (code + (a.bent ? converter_deviation(&a, code) : 0.0)) * a.q;
        b->y[0][k] = level * (1.0 + b->p[CONVERTER_GAIN]) + b->p[CONVERTER_OFFSET];
        b->y[1][k] = code;
    }
    return BL_OK;
}

const bl_kernel bl_kernels_converter[] = {
    {.name = "adc",
     .check = adc_check,
     .sizes = adc_sizes,
     .init = adc_init,
     .output = adc_output,
     .update = adc_update},
    {.name = "dac", .check = dac_check, .output = dac_output},
    {.name = 0},
};
