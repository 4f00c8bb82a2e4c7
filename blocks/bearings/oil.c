/* The temperature of a bearing's oil, taken as one, and the viscosity that it then has.
 *
 *     C dT/dt = P - ρ c Q (T - T_s) - G (T - T_a),     Q the sum of what flows, if positive
 *
 * Vogel: μ = a exp(b / (T - c)). Walther: log10 log10(ν + 0.7) = A - B log10 T with ν = μ / ρ in mm²/s.
 * Inputs P, flows (any number), T_s, T_a; outputs T, μ. p: C, ρ c, G, T at the start, three numbers of the law (Walther:
 * A, B, ρ). i: the law. x: T. */
#include <math.h>

#include "blocks/core/kernel/kernel.h"

enum { OIL_LOSS, OIL_FLOW, OIL_SUPPLY, OIL_AMBIENT, OIL_INPUTS };
enum { OIL_CAPACITY, OIL_VOLUME_HEAT, OIL_CONDUCTANCE, OIL_START, OIL_LAW, OIL_PARAMETERS = OIL_LAW + 3 };
BL_SHARED enum { OIL_VOGEL, OIL_WALTHER, OIL_LAWS };

static int oil_check(const bl_block *b) {
    return b->u_count == OIL_INPUTS && b->u_width[OIL_LOSS] == 1 && b->u_width[OIL_SUPPLY] == 1 &&
           b->u_width[OIL_AMBIENT] == 1 && b->y_count == 2 && b->y_width[0] == 1 && b->y_width[1] == 1 &&
           b->x_count == 1 && b->p_count == OIL_PARAMETERS && b->i_count == 1 && b->i[0] >= 0 && b->i[0] < OIL_LAWS;
}
static int oil_init(bl_block *b, double t) {
    (void)t;
    b->x[0] = b->p[OIL_START];
    return BL_OK;
}
static int oil_output(bl_block *b, double t) {
    (void)t;
    const double T = b->x[0], *law = b->p + OIL_LAW;
    double viscosity = NAN;
    if (b->i[0] == OIL_VOGEL && T > law[2]) viscosity = law[0] * exp(law[1] / (T - law[2]));
    if (b->i[0] == OIL_WALTHER && T > 0.0)
        viscosity = 1e-6 * law[2] * (pow(10.0, pow(10.0, law[0] - law[1] * log10(T))) - 0.7);
    if (!(viscosity > 0.0 && viscosity < INFINITY))
        return bl_log_error(
            b,
            "its oil is at %.5g K, where its law gives no viscosity. Is a temperature in °C, is the flow "
            "too large for the step, or the heat capacity too small?",
            T);
    b->y[0][0] = T;
    b->y[1][0] = viscosity;
    return BL_OK;
}
/* The flow that enters, if positive: the mode says which. */
static double oil_flow(const bl_block *b) {
    double flow = 0.0;
    for (int32_t k = 0; k < b->u_width[OIL_FLOW]; k++) flow += b->u[OIL_FLOW][k];
    return bl_decide(&b->modes, 0, flow > 0.0, flow) ? flow : 0.0;
}
static int32_t oil_crossings(const bl_block *b) {
    (void)b;
    return 1;
}
static int oil_cross(bl_block *b, double t) {
    (void)t;
    (void)oil_flow(b);
    return BL_OK;
}
static int oil_derivative(bl_block *b, double t) {
    (void)t;
    const double T = b->x[0], *p = b->p;
    const double carried = p[OIL_VOLUME_HEAT] * oil_flow(b) * (T - b->u[OIL_SUPPLY][0]);
    const double lost = p[OIL_CONDUCTANCE] * (T - b->u[OIL_AMBIENT][0]);
    b->dx[0] = (b->u[OIL_LOSS][0] - carried - lost) / p[OIL_CAPACITY];
    return BL_OK;
}

const bl_kernel bl_kernels_oil[] = {
    {.name = "oil_temperature",
     .check = oil_check,
     .init = oil_init,
     .output = oil_output,
     .derivative = oil_derivative,
     .crossing_count = oil_crossings,
     .crossings = oil_cross},
    {.name = 0},
};
