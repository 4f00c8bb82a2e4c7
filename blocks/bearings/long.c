/* The long bearing: no flow along z (Sommerfeld).
 *
 * With n along the journal's offset, t = z × n, ϑ from the thickest film (at -n) and H = h / c = 1 + ε cos ϑ,
 *
 *     p = 6 μ (r / c)² q        q' = (κ (cos ϑ + 3 ε / (2 + ε²)) + 2 ε̇ sin ϑ) / H³
 *     κ = ε ω - 2 (v · t) / c   ε̇ = (v · n) / c
 *
 * closes around the journal and is zero at the thickest film. Gümbel drops its negative part, which starts or ends
 * there. Integrals are closed in Sommerfeld's angle γ, H (1 - ε cos γ) = 1 - ε². */
#include <math.h>

#include "blocks/bearings/film.h"
#include "blocks/core/kernel/constants.h"

typedef struct {
    double epsilon, kappa, rate;
} long_film;

static double long_pressure(const long_film *f, double angle) {
    const double e = f->epsilon, c = cos(angle), H = 1.0 + e * c;
    const double wedge = sin(angle) * (2.0 + e * c) / (2.0 + e * e);
    const double squeeze = (1.0 - c) * (2.0 + e * (1.0 + c)) / ((1.0 + e) * (1.0 + e));
    return (f->kappa * wedge + f->rate * squeeze) / (H * H);
}

/* cot(ϑ/2) where the pressure is zero, other than at ϑ = 0: the one real root of a cubic whose sign is that of q. */
static double long_end(const long_film *f) {
    const double e = f->epsilon, k = f->kappa / (2.0 + e * e), s = 2.0 * f->rate / ((1.0 + e) * (1.0 + e));
    const double a3 = k * (2.0 + e), a2 = s * (1.0 + e), a1 = k * (2.0 - e);
    /* Cauchy's bound holds all roots. */
    double high = 1.0 + fmax(fabs(a2 / a3), fmax(fabs(a1 / a3), fabs(s / a3))), low = -high, t = 0.0;
    for (int step = 0; step < 200; step++) {
        const double value = ((a3 * t + a2) * t + a1) * t + s, slope = (3.0 * a3 * t + 2.0 * a2) * t + a1;
        if ((value > 0.0) == (a3 > 0.0)) high = t;
        else low = t;
        double next = t - value / slope;
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        const double moved = fabs(next - t);
        t = next;
        if (moved <= 4e-16 * fabs(t)) break;
    }
    return t;
}

/* The larger pressure of the two points of zero slope. */
static double long_peak(const long_film *f) {
    const double size = hypot(f->kappa, 2.0 * f->rate), center = atan2(2.0 * f->rate, f->kappa);
    const double level = -3.0 * f->epsilon / (2.0 + f->epsilon * f->epsilon) * f->kappa / size;
    const double half = acos(fmin(fmax(level, -1.0), 1.0));
    return fmax(0.0, fmax(long_pressure(f, center + half), long_pressure(f, center - half)));
}

void bl_film_long(const bl_film_bearing *b, const bl_film_motion *m, bl_film_load *load) {
    const double c = b->clearance, e = hypot(m->x[0], m->y[0]), omega = m->journal_speed + m->bush_speed;
    const double nx = e > 0.0 ? m->x[0] / e : 1.0, ny = e > 0.0 ? m->y[0] / e : 0.0;
    const long_film f = {.epsilon = e / c,
                         .kappa = (e * omega - 2.0 * (m->vy[0] * nx - m->vx[0] * ny)) / c,
                         .rate = (m->vx[0] * nx + m->vy[0] * ny) / c};
    if (f.kappa == 0.0 && f.rate == 0.0) return;

    const double eps = f.epsilon, s2 = (1.0 - eps) * (1.0 + eps), s = sqrt(s2);
    double from = 0.0, to = 2.0 * BL_PI;
    if (b->cavitation == BL_CAVITATION_GUMBEL) {
        /* κ so small that the cubic is none leaves a squeeze: all around, or nothing. */
        if (fabs(f.kappa) > 1e-12 * fabs(f.rate)) {
            const double end = 2.0 * atan2(1.0, long_end(&f) * sqrt((1.0 + eps) / (1.0 - eps)));
            if (f.kappa > 0.0) to = end;
            else from = end;
        } else if (f.rate < 0.0) {
            return;
        }
    }
    const double turn = to - from, sin_1 = sin(to) - sin(from), cos_1 = cos(to) - cos(from);
    const double sin_2 = 0.5 * (sin(2.0 * to) - sin(2.0 * from));
    const double one_sin = -cos_1, sin_cos = 0.5 * (sin(to) * sin(to) - sin(from) * sin(from));
    const double sin_sin = 0.5 * (turn - sin_2), cos_cos = 0.5 * (turn + sin_2);
    const double mean = 3.0 * eps / (2.0 + eps * eps);
    /* κ (cos γ - ε + mean (1 - ε cos γ)) = κ (p0 + p1 cos γ) */
    const double p0 = mean - eps, p1 = 1.0 - mean * eps, q = 2.0 * f.rate * s;
    const double along_n = -(f.kappa * (p0 * one_sin + p1 * sin_cos) + q * sin_sin) / (s2 * s2);
    const double along_t =
        (f.kappa * (p1 * cos_cos + (p0 - p1 * eps) * sin_1 - p0 * eps * turn) + q * (sin_cos - eps * one_sin)) /
        (s2 * s2 * s);

    const double scale = 6.0 * b->viscosity * (b->radius / c) * (b->radius / c);
    const double area = scale * b->radius * b->length;
    load->force[0] = area * (along_n * nx - along_t * ny);
    load->force[1] = area * (along_n * ny + along_t * nx);
    load->moment[0] = -0.5 * b->length * load->force[1];
    load->moment[1] = 0.5 * b->length * load->force[0];
    load->pressure = scale * long_peak(&f);
}
