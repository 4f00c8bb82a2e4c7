/* A cylindrical pin in a cylindrical bore with play: a shape of eight places.
 *
 * The edge circle of each pin end touches the wall of the bore, and the edge circle of each mouth of the bore touches the wall of the pin:
 * two places of each circle, as far as they are within the length of the wall. Seen along the wall a circle is an ellipse, whose farthest
 * points from the axis of the bore, or nearest ones to the axis of the pin, are sought:
 *     (a cos ψ + x)² + (b sin ψ + y)² → max or min,   a = r cos τ ≤ b = r
 * with (x, y) its center seen from the axis, x in the plane of the tilt τ. With k = b² - a² the extremes are where
 *     k sin ψ cos ψ - a x sin ψ + b y cos ψ = 0.
 * In the quadrant of the center is always one maximum; beyond the major axis is another if k² is beyond the evolute,
 * k^(2/3) > (a |x|)^(2/3) + (b |y|)^(2/3). Minima are in the opposite quadrant, and beyond the minor axis. */
#include "blocks/multibody/elements/contact/touch.h"

/* k sin cos - p sin + q cos at an angle, and its slope. */
static double edge_value(double k, double p, double q, double psi, double *slope) {
    const double s = sin(psi), c = cos(psi);
    *slope = k * (c * c - s * s) - p * c - q * s;
    return k * s * c - p * s + q * c;
}

enum { EDGE_STEPS = 60 };
/* Of the length of a wall: an edge of the pin that is level with the mouth touches, and that of the mouth does not touch too. */
static const double EDGE_LEVEL = 1e-10;

/* The zero of edge_value between `low` and `high`, between which it changes its sign once: Newton, with bisection. */
static double edge_angle(double k, double p, double q, double low, double high) {
    double slope, psi = 0.5 * (low + high);
    const double sign = edge_value(k, p, q, low, &slope) >= edge_value(k, p, q, high, &slope) ? 1.0 : -1.0;
    for (int step = 0; step < EDGE_STEPS; step++) {
        const double value = sign * edge_value(k, p, q, psi, &slope);
        if (value > 0.0) low = psi;
        else high = psi;
        double next = slope != 0.0 ? psi - sign * value / slope : low;
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        if (fabs(next - psi) <= 1e-15) return next;
        psi = next;
    }
    return psi;
}

/* Writes cos ψ and sin ψ of up to two extremes; returns their number. p = a |x|, q = b |y|. */
static int edge_extremes(double a, double b, double x, double y, bool farthest, double (*found)[2]) {
    const double half = 1.5707963267948966, k = fmax(0.0, b * b - a * a), p = a * fabs(x), q = b * fabs(y);
    const double along = (x < 0.0 ? -1.0 : 1.0) * (farthest ? 1.0 : -1.0),
                 across = (y < 0.0 ? -1.0 : 1.0) * (farthest ? 1.0 : -1.0);
    const double psi = farthest ? edge_angle(k, p, q, 0.0, half) : edge_angle(k, -p, -q, 0.0, half);
    found[0][0] = along * cos(psi), found[0][1] = across * sin(psi);
    const double u = cbrt(p), v = cbrt(q), evolute = u * u + v * v;
    if (!(k > evolute * sqrt(evolute)) || k == 0.0) return 1;
    /* ψ = -χ, or π - χ: -k sin χ cos χ + p sin χ + q cos χ = 0, whose slope changes sign at tan³ χ = q / p. */
    const double middle = u > 0.0 || v > 0.0 ? atan2(v, u) : 0.5 * half;
    const double chi = farthest ? edge_angle(k, p, -q, middle, half) : edge_angle(k, p, -q, 0.0, middle);
    found[1][0] = (farthest ? along : -along) * cos(chi), found[1][1] = (farthest ? -across : across) * sin(chi);
    return 2;
}

/* The edge circle of radius r about C, across the axis u, in the wall of radius `wall` about z from -half to half; all in axes of the wall.
   `inside`: the circle is in the wall, else the wall in the circle. Writes points of the circle and directions from the wall's material
   into that of the circle. */
static void edge_places(const double *C, const double *u, double r, double wall, double half, bool inside,
                        touch_place *at) {
    const double sine = hypot(u[0], u[1]), e[2] = {sine > 0.0 ? u[0] / sine : 1.0, sine > 0.0 ? u[1] / sine : 0.0};
    const double x = C[0] * e[0] + C[1] * e[1], y = C[1] * e[0] - C[0] * e[1], a = r * fabs(u[2]);
    double found[2][2];
    const int count = edge_extremes(a, r, x, y, inside, found);
    for (int k = 0; k < 2; k++) {
        at[k] = (touch_place){.gap = INFINITY};
        at[k].n[0] = 1.0;
        if (k >= count) continue;
        const double along = x + a * found[k][0], across = y + r * found[k][1];
        double *P = at[k].P;
        P[0] = along * e[0] - across * e[1];
        P[1] = along * e[1] + across * e[0];
        P[2] = C[2] - (u[2] < 0.0 ? -1.0 : 1.0) * r * sine * found[k][0];
        if (inside ? fabs(P[2]) > half * (1.0 + EDGE_LEVEL) : fabs(P[2]) >= half * (1.0 - EDGE_LEVEL)) continue;
        /* A pin whose axis passes outside the mouth is not in it, nor one that passes beside the bore. */
        if (inside ? x * x + y * y >= wall * wall : x * x * r * r + y * y * a * a >= a * a * r * r) continue;
        const double rho = hypot(along, across), sign = inside ? -1.0 : 1.0;
        at[k].gap = inside ? wall - rho : rho - wall;
        at[k].n[0] = rho > 0.0 ? sign * P[0] / rho : sign;
        at[k].n[1] = rho > 0.0 ? sign * P[1] / rho : 0.0;
    }
}

/* Circles of the shape `edge` against the wall of `wall`; `inside`: the pin's circles in the bore. */
static void edge_circles(const touch_shape *edge, const touch_shape *wall, bool inside, touch_place *at) {
    double axis[3], off[3], u[3];
    mb_column(edge->R, 2, axis);
    mb_rotate_back(wall->R, axis, u);
    for (int side = 0; side < 2; side++) {
        double C[3];
        mb_sub(edge->P, wall->P, off);
        mb_axpy((0.5 - side) * edge->size[1], axis, off);
        mb_rotate_back(wall->R, off, C);
        edge_places(C, u, edge->size[0], wall->size[0], 0.5 * wall->size[1], inside, at + 2 * side);
        for (int k = 0; k < 2; k++) {
            touch_place *place = &at[2 * side + k];
            mb_rotate(wall->R, place->n, place->n);
            mb_rotate(wall->R, place->P, place->P);
            mb_add(wall->P, place->P);
            for (int c = 0; c < 3 && !inside; c++) place->n[c] = -place->n[c];
        }
    }
}

void mb_touch_pin_bore(const touch_shape *a, const touch_shape *b, touch_place *at) {
    edge_circles(a, b, true, at);
    edge_circles(b, a, false, at + 4);
}
