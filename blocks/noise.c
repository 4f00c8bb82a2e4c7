/* Noise that is the same on every platform: integer arithmetic, and of floating point only the four
 * operations and sqrt, which IEEE 754 rounds correctly. */
#include <math.h>
#include <string.h>

#include "blocks/kernel.h"
#include "blocks/noise.h"

static const uint64_t NOISE_STRIDE = 0x9e3779b97f4a7c15u; /* 2^64 over the golden ratio, odd */

/* The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection that hides its input. */
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
    static const double centre_above[8] = {
        2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4, 4.5921953931549871457e+4,
        1.3731693765509461125e+4, 1.9715909503065514427e+3, 1.3314166789178437745e+2, 3.3871328727963666080e+0};
    static const double centre_below[8] = {
        5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4, 2.1213794301586595867e+4,
        5.3941960214247511077e+3, 6.8718700749205790830e+2, 4.2313330701600911252e+1, 1.0};
    static const double middle_above[8] = {
        7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e+0,
        3.64784832476320460504e+0, 5.76949722146069140550e+0, 4.63033784615654529590e+0, 1.42343711074968357734e+0};
    static const double middle_below[8] = {
        1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
        6.89767334985100004550e-1, 1.67638483018380384940e+0, 2.05319162663775882187e+0, 1.0};
    static const double far_above[8] = {
        2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
        2.96560571828504891230e-1, 1.78482653991729133580e+0, 5.46378491116411436990e+0, 6.65790464350110377720e+0};
    static const double far_below[8] = {
        2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
        1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0};
    const double q = p - 0.5;
    if (fabs(q) <= 0.425) return q * noise_ratio(centre_above, centre_below, 0.180625 - q * q);
    const double r = sqrt(-noise_log(q < 0.0 ? p : 1.0 - p));
    const double v = r <= 5.0 ? noise_ratio(middle_above, middle_below, r - 1.6)
                              : noise_ratio(far_above, far_below, r - 5.0);
    return q < 0.0 ? -v : v;
}

double bl_noise_uniform(double seed, int32_t stream, uint64_t sample) {
    uint64_t key;
    memcpy(&key, &seed, sizeof key);
    /* Each stream has a place of its own, by chance far from all others, on one cycle of 2^64. */
    const uint64_t first = noise_mix(key + ((uint64_t)stream + 1) * 0xd1342543de82ef95u);
    const uint64_t bits = noise_mix(first + sample * NOISE_STRIDE);
    /* The middles of 2^52 equal parts of (0, 1): exact. */
    return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}
double bl_noise_normal(double seed, int32_t stream, uint64_t sample) {
    return noise_quantile(bl_noise_uniform(seed, stream, sample));
}

/* Noise. p: seed, then std or density, then mean, both for all elements or for each.
   i: whether it is uniform, whether p is a density. z: number of the sample. */
static int noise_check(const bl_block *b) {
    return b->u_count == 0 && b->y_count == 1 && b->i_count == 2 && b->z_count == 1 &&
           (b->p_count == 3 || (int64_t)b->p_count == 1 + 2 * (int64_t)b->y_width[0]);
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
    {.name = "noise", .check = noise_check, .init = noise_init, .output = noise_output,
     .update = noise_update},
    {.name = 0},
};
