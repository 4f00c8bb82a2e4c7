/* The short bearing: pressure falls so fast along z that its flow around the journal does not matter (Ocvirk).
 *
 *     p = 3 μ z (z - B) / h³ · R sin(θ - θ1),    R cos θ1 = a = ω x - 2 ẏ,   R sin θ1 = b = ω y + 2 ẋ
 *
 * is positive exactly on (θ1 - π, θ1), and only there it counts. With A = θ1 + π and X = x / c, Y = y / c the
 * integral around a slice is closed:
 *
 *     D = 1 - X² - Y²     u = Y cos A - X sin A     v = X cos A + Y sin A
 *     G = (2 / √D) (π/2 + atan(u / √D))     V = (2 + u G) / D     S = v / (1 - v²)
 *     k = (3 X V - G sin A - 2 S cos A,  3 Y V + G cos A - 2 S sin A)
 *     force of a slice on the journal = -3 μ r z (B - z) R / (2 c³ D) k dz
 */
#include <math.h>

#include "blocks/bearings/film.h"
#include "blocks/core/kernel/constants.h"

static const double SHORT_HALF_PI = 0.5 * BL_PI;

/* A slice: force and largest pressure, but for the factor z (B - z). */
typedef struct {
    double fx, fy, peak;
} short_slice;

/* The largest sin β / (1 - v cos β - u sin β)³ for 0 < β < π. With t = cot β its slope has the sign of
   t √(1 + t²) - v (3 + t²) + 2 u t; samples find the highest of up to two hills, Newton's method its top. */
enum { SHORT_SAMPLES = 16 };
static const double SHORT_COS[SHORT_SAMPLES + 2] = {1.0,
                                                    0.98297309968390179,
                                                    0.93247222940435581,
                                                    0.85021713572961422,
                                                    0.73900891722065909,
                                                    0.60263463637925640,
                                                    0.44573835577653831,
                                                    0.27366299007208289,
                                                    0.092268359463302016,
                                                    -0.092268359463302016,
                                                    -0.27366299007208289,
                                                    -0.44573835577653831,
                                                    -0.60263463637925640,
                                                    -0.73900891722065909,
                                                    -0.85021713572961422,
                                                    -0.93247222940435581,
                                                    -0.98297309968390179,
                                                    -1.0};
static const double SHORT_SIN[SHORT_SAMPLES + 2] = {0.0,
                                                    0.18374951781657034,
                                                    0.36124166618715295,
                                                    0.52643216287735579,
                                                    0.67369564364655721,
                                                    0.79801722728023949,
                                                    0.89516329135506234,
                                                    0.96182564317281904,
                                                    0.99573417629503447,
                                                    0.99573417629503447,
                                                    0.96182564317281904,
                                                    0.89516329135506234,
                                                    0.79801722728023949,
                                                    0.67369564364655721,
                                                    0.52643216287735579,
                                                    0.36124166618715295,
                                                    0.18374951781657034,
                                                    0.0};

static double short_peak(double u, double v) {
    int best = 1;
    double height = 0.0;
    for (int k = 1; k <= SHORT_SAMPLES; k++) {
        const double h = 1.0 - v * SHORT_COS[k] - u * SHORT_SIN[k], here = SHORT_SIN[k] / (h * h * h);
        if (here > height) {
            height = here;
            best = k;
        }
    }
    double high = best > 1 ? SHORT_COS[best - 1] / SHORT_SIN[best - 1] : INFINITY;
    double low = best < SHORT_SAMPLES ? SHORT_COS[best + 1] / SHORT_SIN[best + 1] : -INFINITY;
    double t = SHORT_COS[best] / SHORT_SIN[best];
    for (int step = 0; step < 40; step++) {
        const double root = sqrt(1.0 + t * t);
        const double slope = t * root - v * (3.0 + t * t) + 2.0 * u * t;
        const double curve = (1.0 + 2.0 * t * t) / root - 2.0 * v * t + 2.0 * u;
        if (slope > 0.0) high = t;
        else low = t;
        double next = t - slope / curve;
        if (!(next > low && next < high)) {
            if (isinf(high)) next = 2.0 * fabs(low) + low;
            else if (isinf(low)) next = high - 2.0 * fabs(high);
            else next = 0.5 * (low + high);
        }
        /* The height is flat here, so that half the digits of t give all of it. */
        const double moved = fabs(next - t);
        t = next;
        if (moved <= 1e-7 * (1.0 + fabs(t))) break;
    }
    const double sine = 1.0 / sqrt(1.0 + t * t), h = 1.0 - (v * t + u) * sine;
    return fmax(sine / (h * h * h), height);
}

static short_slice short_cut(const bl_film_bearing *b, double x, double y, double vx, double vy, double omega,
                             int with_peak) {
    short_slice slice = {0.0, 0.0, 0.0};
    const double a_side = omega * x - 2.0 * vy, b_side = omega * y + 2.0 * vx;
    const double strength = sqrt(a_side * a_side + b_side * b_side);
    if (!(strength > 0.0)) return slice;
    const double cos_a = -a_side / strength, sin_a = -b_side / strength;
    const double c = b->clearance, X = x / c, Y = y / c, e = sqrt(X * X + Y * Y);
    const double D = (1.0 - e) * (1.0 + e), root = sqrt(D);
    const double u = Y * cos_a - X * sin_a, v = X * cos_a + Y * sin_a;
    const double G = 2.0 / root * (SHORT_HALF_PI + atan(u / root)), V = (2.0 + u * G) / D, S = v / (1.0 - v * v);
    const double scale = 3.0 * b->viscosity * strength / (c * c * c);
    const double per = -scale * b->radius / (2.0 * D);
    slice.fx = per * (3.0 * X * V - sin_a * G - 2.0 * cos_a * S);
    slice.fy = per * (3.0 * Y * V + cos_a * G - 2.0 * sin_a * S);
    if (with_peak) slice.peak = scale * short_peak(u, v);
    return slice;
}

void bl_film_short(const bl_film_bearing *b, const bl_film_motion *m, bl_film_load *load) {
    const double B = b->length, omega = m->journal_speed + m->bush_speed;
    const short_slice s = short_cut(b, m->x[0], m->y[0], m->vx[0], m->vy[0], omega, 1);
    const double sum = B * B * B / 6.0; /* of z (B - z) */
    load->force[0] = s.fx * sum;
    load->force[1] = s.fy * sum;
    load->moment[0] = -0.5 * B * load->force[1];
    load->moment[1] = 0.5 * B * load->force[0];
    load->pressure = s.peak * 0.25 * B * B;
}

/* Gauss-Legendre on (0, 1). */
enum { SHORT_POINTS = 12 };
static const double SHORT_NODE[SHORT_POINTS] = {
    0.009219682876640378, 0.0479413718147626,  0.11504866290284765, 0.20634102285669126,
    0.31608425050090994,  0.43738329574426554, 0.5626167042557344,  0.6839157494990901,
    0.7936589771433087,   0.8849513370971523,  0.9520586281852375,  0.9907803171233596,
};
static const double SHORT_WEIGHT[SHORT_POINTS] = {
    0.023587668193255706, 0.05346966299765953, 0.08003916427167321, 0.10158371336153287,
    0.1167462682691773,   0.12457352290670134, 0.12457352290670134, 0.1167462682691773,
    0.10158371336153287,  0.08003916427167321, 0.05346966299765953, 0.023587668193255706,
};

static short_slice short_cut_at(const bl_film_bearing *b, const bl_film_motion *m, double part, int with_peak) {
    return short_cut(b, m->x[0] + (m->x[1] - m->x[0]) * part, m->y[0] + (m->y[1] - m->y[0]) * part,
                     m->vx[0] + (m->vx[1] - m->vx[0]) * part, m->vy[0] + (m->vy[1] - m->vy[0]) * part,
                     m->journal_speed + m->bush_speed, with_peak);
}

static double short_pressure_at(const bl_film_bearing *b, const bl_film_motion *m, int end, double away) {
    const double peak = short_cut_at(b, m, end == 0 ? away : 1.0 - away, 1).peak;
    return away * (1.0 - away) * b->length * b->length * peak;
}

/* How far outside end k, as a part of the length, the film would close if it continued to thin as it does there: the
   nearest singular point of the integrand. */
static double short_distance(const bl_film_bearing *b, const bl_film_motion *m, int k) {
    const double ex = m->x[k] - m->x[1 - k], ey = m->y[k] - m->y[1 - k], e = hypot(m->x[k], m->y[k]);
    const double thinning = e > 0.0 ? (ex * m->x[k] + ey * m->y[k]) / e : 0.0;
    const double film = b->clearance - e;
    return thinning * 100.0 > film ? film / thinning : 100.0;
}

/* Where along the bearing the two halves of the quadrature meet: where the pressure's source is weakest and turns, if
   that is inside. */
static double short_split(const bl_film_motion *m) {
    const double omega = m->journal_speed + m->bush_speed;
    double a[2], s[2];
    for (int k = 0; k < 2; k++) {
        a[k] = omega * m->x[k] - 2.0 * m->vy[k];
        s[k] = omega * m->y[k] + 2.0 * m->vx[k];
    }
    const double da = a[1] - a[0], ds = s[1] - s[0], norm = da * da + ds * ds;
    const double nearest = norm > 0.0 ? -(a[0] * da + s[0] * ds) / norm : 0.5;
    return nearest > 0.02 && nearest < 0.98 ? nearest : 0.5;
}

/* Sums along the bearing: force, and moment about end 1 as a part of the length. */
typedef struct {
    double fx, fy, mx, my;
} short_sum;

static short_sum short_add(short_sum a, short_sum b) {
    return (short_sum){a.fx + b.fx, a.fy + b.fy, a.mx + b.mx, a.my + b.my};
}
static double short_size(short_sum a) { return fabs(a.fx) + fabs(a.fy) + fabs(a.mx) + fabs(a.my); }

/* One of the two halves: from an end to the split. It is stretched by part = d (exp(L s) - 1), 0 < s < 1, which spreads
   the points evenly over the logarithm of the distance from where the film would close. */
typedef struct {
    const bl_film_bearing *bearing;
    const bl_film_motion *motion;
    int end;
    double d, L;
    double best, highest; /* how far from the end pressure was largest, and p / B² there */
} short_half;

static short_sum short_panel(short_half *half, double from, double to, int with_peak) {
    short_sum sum = {0.0, 0.0, 0.0, 0.0};
    for (int n = 0; n < SHORT_POINTS; n++) {
        const double s = from + (to - from) * SHORT_NODE[n];
        const double away = half->d * expm1(half->L * s), part = half->end == 0 ? away : 1.0 - away;
        const double shape = away * (1.0 - away);
        const double weight = (to - from) * SHORT_WEIGHT[n] * half->L * (away + half->d) * shape;
        const short_slice cut = short_cut_at(half->bearing, half->motion, part, with_peak);
        sum = short_add(sum,
                        (short_sum){weight * cut.fx, weight * cut.fy, -weight * part * cut.fy, weight * part * cut.fx});
        if (shape * cut.peak > half->highest) {
            half->highest = shape * cut.peak;
            half->best = away;
        }
    }
    return sum;
}

/* Halves a panel until its sum no longer changes by more than `error`; the limit of depth bounds the time. */
static short_sum short_refine(short_half *half, double from, double to, short_sum whole, double error, int depth) {
    const double middle = 0.5 * (from + to);
    const short_sum first = short_panel(half, from, middle, 0), second = short_panel(half, middle, to, 0);
    const short_sum both = short_add(first, second);
    const short_sum change = {both.fx - whole.fx, both.fy - whole.fy, both.mx - whole.mx, both.my - whole.my};
    if (depth == 0 || !(short_size(change) > error)) return both;
    return short_add(short_refine(half, from, middle, first, error, depth - 1),
                     short_refine(half, middle, to, second, error, depth - 1));
}

/* The largest pressure between two distances from an end, where it has one top: golden section. */
static double short_highest(const short_half *half, double low, double high) {
    const bl_film_bearing *b = half->bearing;
    const bl_film_motion *m = half->motion;
    const int end = half->end;
    const double golden = 0.61803398874989485;
    double inner = high - golden * (high - low), outer = low + golden * (high - low);
    double p_inner = short_pressure_at(b, m, end, inner), p_outer = short_pressure_at(b, m, end, outer);
    for (int step = 0; step < 14; step++) {
        if (p_inner > p_outer) {
            high = outer;
            outer = inner;
            p_outer = p_inner;
            inner = high - golden * (high - low);
            p_inner = short_pressure_at(b, m, end, inner);
        } else {
            low = inner;
            inner = outer;
            p_inner = p_outer;
            outer = low + golden * (high - low);
            p_outer = short_pressure_at(b, m, end, outer);
        }
    }
    return fmax(p_inner, p_outer);
}

void bl_film_tilted(const bl_film_bearing *b, const bl_film_motion *m, bl_film_load *load) {
    const double B = b->length, split = short_split(m);
    short_half half[2];
    short_sum whole[2];
    for (int k = 0; k < 2; k++) {
        const double d = short_distance(b, m, k);
        half[k] = (short_half){b, m, k, d, log1p((k == 0 ? split : 1.0 - split) / d), 0.5, 0.0};
        whole[k] = short_panel(&half[k], 0.0, 1.0, 1);
    }
    const double error = 1e-7 * (short_size(whole[0]) + short_size(whole[1]));
    short_sum sum = {0.0, 0.0, 0.0, 0.0};
    for (int k = 0; k < 2; k++) sum = short_add(sum, short_refine(&half[k], 0.0, 1.0, whole[k], error, 6));
    load->force[0] = B * B * B * sum.fx;
    load->force[1] = B * B * B * sum.fy;
    load->moment[0] = B * B * B * B * sum.mx;
    load->moment[1] = B * B * B * B * sum.my;
    const short_half *top = &half[half[1].highest > half[0].highest];
    /* Neighbors in a half are less than three times as far from its end, or from the middle of the bearing on. */
    const double found = short_highest(top, top->best / 3.0, fmin(3.0 * top->best, 0.5 * (1.0 + top->best)));
    load->pressure = fmax(top->highest * B * B, found);
}
