/* Noise that is the same on every platform: integer arithmetic, and of floating point only the four
 * operations and sqrt, which IEEE 754 rounds correctly. */
#include <math.h>
#include <string.h>

#include "blocks/core/kernel/kernel.h"
#include "blocks/basic/sources/noise.h"

static const uint64_t NOISE_STRIDE = 0x9e3779b97f4a7c15u; /* 2^64 over the golden ratio, odd */

/* The finalizer of SplitMix64 (Steele, Lea and Flood 2014): a bijection that hides its input. */
static uint64_t noise_mix(uint64_t v) {
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
    return v ^ (v >> 31);
}

/* ln v for 0 < v < 1, normal: v = m 2^e with m near 1, and ln m = 2 artanh((m - 1) / (m + 1)). */
static double noise_log(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    /* artanh s = s + s^3 / 3 + s^5 / 5 …; |s| < 0.1716, so the first term left out is below 2e-19. */
    const double s = (m - 1.0) / (m + 1.0), s2 = s * s, s4 = s2 * s2;
    const double odd = (((1.0 / 19 * s4 + 1.0 / 15) * s4 + 1.0 / 11) * s4 + 1.0 / 7) * s4 + 1.0 / 3;
    const double even = (((1.0 / 21 * s4 + 1.0 / 17) * s4 + 1.0 / 13) * s4 + 1.0 / 9) * s4 + 1.0 / 5;
    const double sum = s2 * odd + s4 * even;
    return exponent * 0.69314718055994530942 + 2.0 * (s + s * sum);
}

/* A quotient of polynomials of degree 7, the highest power first. Even and odd powers are two chains of
   half the length, which a processor works on side by side. */
static double noise_polynomial(const double c[8], double r, double r2) {
    const double odd = ((c[0] * r2 + c[2]) * r2 + c[4]) * r2 + c[6];
    const double even = ((c[1] * r2 + c[3]) * r2 + c[5]) * r2 + c[7];
    return odd * r + even;
}
static double noise_ratio(const double above[8], const double below[8], double r) {
    return noise_polynomial(above, r, r * r) / noise_polynomial(below, r, r * r);
}

/* The v that a normal variable falls below with probability p: M. J. Wichura, "Algorithm AS 241: The
   percentage points of the normal distribution", Applied Statistics 37 (1988), PPND16. */
static double noise_quantile(double p) {
    static const double center_above[8] = {2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4,
                                           4.5921953931549871457e+4, 1.3731693765509461125e+4, 1.9715909503065514427e+3,
                                           1.3314166789178437745e+2, 3.3871328727963666080e+0};
    static const double center_below[8] = {
        5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4, 2.1213794301586595867e+4,
        5.3941960214247511077e+3, 6.8718700749205790830e+2, 4.2313330701600911252e+1, 1.0};
    static const double middle_above[8] = {
        7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e+0,
        3.64784832476320460504e+0, 5.76949722146069140550e+0, 4.63033784615654529590e+0, 1.42343711074968357734e+0};
    static const double middle_below[8] = {
        1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
        6.89767334985100004550e-1, 1.67638483018380384940e+0, 2.05319162663775882187e+0, 1.0};
    static const double far_above[8] = {2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
                                        2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e+0,
                                        5.46378491116411436990e+0, 6.65790464350110377720e+0};
    static const double far_below[8] = {
        2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
        1.48753612908506148525e-2,  1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0};
    const double q = p - 0.5;
    if (fabs(q) <= 0.425) return q * noise_ratio(center_above, center_below, 0.180625 - q * q);
    const double r = sqrt(-noise_log(q < 0.0 ? p : 1.0 - p));
    const double v =
        r <= 5.0 ? noise_ratio(middle_above, middle_below, r - 1.6) : noise_ratio(far_above, far_below, r - 5.0);
    return q < 0.0 ? -v : v;
}

/* Each stream has its own random start, with high probability far from all others, on one cycle of 2^64. */
static uint64_t noise_start(double seed, uint64_t stream) {
    uint64_t key;
    memcpy(&key, &seed, sizeof key);
    return noise_mix(key + stream * 0xd1342543de82ef95u);
}
/* The middles of 2^52 equal parts of (0, 1): exact. */
static double noise_part(uint64_t bits) { return ((double)(int64_t)(bits >> 12) + 0.5) * 0x1p-52; }

double bl_noise_uniform(double seed, int32_t stream, uint64_t sample) {
    return noise_part(noise_mix(noise_start(seed, (uint64_t)stream + 1) + sample * NOISE_STRIDE));
}
double bl_noise_normal(double seed, int32_t stream, uint64_t sample) {
    return noise_quantile(bl_noise_uniform(seed, stream, sample));
}

/* The half bell exp(-x²/2) under 64 layers of equal area (Marsaglia and Tsang's ziggurat): layer n reaches to edge n, and
   all below edge n + 1 lies under the bell. Layer 0 is the lowest; its edge is that of a box of the same area, since it
   continues as the tail beyond edge 1. */
enum { NOISE_LAYERS = 64, NOISE_TRIES = 64 };
static const double NOISE_EDGES[NOISE_LAYERS + 1] = {
    3.500818427736488,  3.2136576271588955, 2.9755475488121643, 2.821441733766938,   2.7048984408762364,
    2.609896494884204,  2.528938180557692,  2.4578883927994295, 2.394215238455948,   2.336251173784331,
    2.282836995477057,  2.2331325511090476, 2.1865083181739333, 2.1424795678022335,  2.1006644566838553,
    2.060756291274434,  2.02250456055679,   1.9857015973505134, 1.9501729679923048,  1.9157703997057933,
    1.882366476612453,  1.8498505942678827, 1.8181258262770668, 1.7871064626699489,  1.7567160501140566,
    1.7268858116894918, 1.697553356790851,  1.6686616147182944, 1.6401579418516608,  1.6119933640360702,
    1.5841219243153435, 1.5565001123514337, 1.5290863563890633, 1.5018405618916262,  1.4747236832774089,
    1.4476973167176224, 1.420723302840745,  1.393763328484905,  1.3667785163646915,  1.3397289906342562,
    1.31257340474236,   1.2852684155251939, 1.2577680839133578, 1.2300231775504378,  1.2019803434433676,
    1.1735811085966903, 1.1447606520554612, 1.1154462707628698, 1.0855554307417705,  1.054993248831086,
    1.0236491793760774, 0.9913925691509777, 0.9580665645007569, 0.923479555960604,   0.8873928291306683,
    0.8495021583784232, 0.8094093099681398, 0.7665758506149639, 0.720243901405765,   0.6692899939257193,
    0.61192851624031,   0.5450240001130748, 0.4621373410386326, 0.34553857472350036, 0.0};

/* exp v for 0 <= v < 0.74, the most between two edges, to 1e-10: Taylor's series. */
static double noise_exp(double v) {
    static const double inverse[] = {1.0 / 11, 1.0 / 10, 1.0 / 9, 1.0 / 8, 1.0 / 7, 1.0 / 6,
                                     1.0 / 5,  1.0 / 4,  1.0 / 3, 1.0 / 2, 1.0};
    double sum = 1.0;
    for (int k = 0; k < 11; k++) sum = 1.0 + sum * (v * inverse[k]);
    return sum;
}
/* What lies beyond edge 1, by Marsaglia's way: an exponential variable, cut to the bell. */
static double noise_tail(uint64_t bits) {
    const double edge = NOISE_EDGES[1];
    double beyond = 0.0;
    for (int n = 0; n < NOISE_TRIES; n++) {
        bits = noise_mix(bits + NOISE_STRIDE);
        beyond = -noise_log(noise_part(bits)) / edge;
        bits = noise_mix(bits + NOISE_STRIDE);
        if (-2.0 * noise_log(noise_part(bits)) > beyond * beyond) break;
    }
    return edge + beyond;
}
uint64_t bl_noise_stream(double seed) { return noise_start(seed, 0); }
double bl_noise_step(uint64_t stream, uint64_t number) {
    return (noise_part(noise_mix(stream + number * NOISE_STRIDE)) - 0.5) * 3.4641016151377545871;
}
double bl_noise_fast_normal(uint64_t stream, uint64_t number) {
    uint64_t bits = noise_mix(stream + number * NOISE_STRIDE);
    double x = 0.0;
    for (int n = 0; n < NOISE_TRIES; n++, bits = noise_mix(bits + NOISE_STRIDE)) {
        /* Six bits choose the layer, one the sign, 52 others the place in it. */
        const int layer = (int)(bits & (NOISE_LAYERS - 1));
        const double outer = NOISE_EDGES[layer], inner = NOISE_EDGES[layer + 1];
        const double sign = 1.0 - 2.0 * (double)(int)(bits / NOISE_LAYERS % 2);
        x = noise_part(bits) * outer;
        if (x < inner) return sign * x;
        if (layer == 0) return sign * noise_tail(bits);
        /* Under the bell by a height at random between those of both edges, as parts of that of the outer one. */
        bits = noise_mix(bits + NOISE_STRIDE);
        const double top = noise_exp(0.5 * (outer * outer - inner * inner));
        if (1.0 + noise_part(bits) * (top - 1.0) < noise_exp(0.5 * (outer * outer - x * x))) return sign * x;
    }
    return x;
}

/* Noise. p: seed, then std or density, then mean, both for all elements or for each.
   i: whether it is uniform, whether p is a density. z: number of the sample. */
static int noise_check(const bl_block *b) {
    return b->u_count == 0 && b->y_count == 1 && b->i_count == 2 &&
           (b->p_count == 3 || (int64_t)b->p_count == 1 + 2 * (int64_t)b->y_width[0]);
}
static bl_sizes noise_sizes(const bl_block *b) {
    (void)b;
    return (bl_sizes){.memory = 1};
}
static int noise_init(bl_block *b, double t) {
    (void)t;
    b->z[0] = 0.0;
    return BL_OK;
}
static int noise_output(bl_block *b, double t) {
    (void)t;
    const int uniform = b->i[0], is_density = b->i[1];
    const int32_t n = (b->p_count - 1) / 2, stride = n > 1;
    const double *spread = b->p + 1, *mean = spread + n;
    const uint64_t sample = bl_noise_sample(b->z[0]);
    for (int32_t k = 0; k < b->y_width[0]; k++) {
        const double w = uniform ? (bl_noise_uniform(b->p[0], k, sample) - 0.5) * 3.4641016151377545871
                                 : bl_noise_normal(b->p[0], k, sample);
        const double size = spread[k * stride];
        const double std = is_density ? sqrt(size / b->dt) : size;
        b->y[0][k] = mean[k * stride] + std * w;
    }
    return BL_OK;
}
static int noise_update(bl_block *b, double t) {
    (void)t;
    b->z[0] += 1.0;
    return BL_OK;
}

const bl_kernel bl_kernels_noise[] = {
    {.name = "noise",
     .check = noise_check,
     .sizes = noise_sizes,
     .init = noise_init,
     .output = noise_output,
     .update = noise_update},
    {.name = 0},
};
