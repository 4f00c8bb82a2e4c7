/* Bracketing of roots: see root.h. */
#include "blocks/core/kernel/root.h"

#include <math.h>

bl_bracket bl_bracket_open(double a, double b, double tolerance) {
    return (bl_bracket){.a = a, .b = b, .tolerance = tolerance, .weight_a = 1.0, .weight_b = 1.0, .width = b - a};
}

double bl_bracket_root(const bl_bracket *r, double at_a, double at_b) {
    if (!(at_b < 0.0)) return INFINITY;
    const double left = r->weight_a * fmax(at_a, 0.0), right = -r->weight_b * at_b;
    const double part = left / (left + right);
    return part <= 1.0 ? r->a + (r->b - r->a) * part : INFINITY; /* infinite values have no line between them */
}

double bl_bracket_trial(const bl_bracket *r, double guess) {
    const double width = r->b - r->a, middle = 0.5 * (r->a + r->b);
    double s = guess <= r->b ? guess : middle;
    if (r->trials % 4 == 3 && width > 0.5 * r->width) s = middle;
    const double closest = fmin(0.4 * r->tolerance, 0.5 * width);
    return fmin(fmax(s, r->a + closest), r->b - closest);
}

void bl_bracket_narrow(bl_bracket *r, double s, int beyond) {
    if (beyond) {
        r->b = s;
        r->weight_b = 1.0;
        r->weight_a = r->moved > 0 ? 0.5 * r->weight_a : 1.0;
    } else {
        r->a = s;
        r->weight_a = 1.0;
        r->weight_b = r->moved < 0 ? 0.5 * r->weight_b : 1.0;
    }
    r->moved = beyond ? 1 : -1;
    if (++r->trials % 4 == 0) r->width = r->b - r->a;
}
