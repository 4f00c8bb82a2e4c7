/* Bracket of the first root of several functions.
 *
 * At `a` no function is negative; at `b` one is, or is not a number. The caller evaluates its functions at the point that
 * bl_bracket_trial returns and moves one end of the bracket there with bl_bracket_narrow, until the bracket is as narrow as it needs.
 * The trial is the first of the roots by linear interpolation (bl_bracket_root), or any better guess of the caller:
 *
 *     bl_bracket r = bl_bracket_open(0.0, 1.0, 1e-12);
 *     while (r.b - r.a > r.tolerance && r.trials < limit) {
 *         double first = INFINITY;
 *         for (k = 0; k < n; k++) first = fmin(first, bl_bracket_root(&r, at_a[k], at_b[k]));
 *         const double s = bl_bracket_trial(&r, first);
 *         ... f[k] at s ...
 *         bl_bracket_narrow(&r, s, any negative or NaN);
 *     }
 *
 * Regula falsi with the Illinois weights; bisection where there is no guess, and where four trials would not halve the bracket. So four
 * trials halve it at least, whatever the functions are: they may jump, or be flat. */
#ifndef BIELLA_ROOT_H
#define BIELLA_ROOT_H

#include <stdint.h>

typedef struct {
    double a, b;
    double tolerance; /* no trial is closer to an end than 0.4 of this, so that the last one ends the search */
    double weight_a, weight_b; /* of the values at both ends */
    double width; /* of the bracket at the last trial whose number is a multiple of four */
    int32_t trials;
    int32_t moved; /* the end that moved last: -1 a, 1 b, 0 none */
} bl_bracket;

bl_bracket bl_bracket_open(double a, double b, double tolerance);
/* The root of one function by weighted linear interpolation; INFINITY if it is not negative at b, or has no such root. */
double bl_bracket_root(const bl_bracket *r, double at_a, double at_b);
/* The next point to evaluate, strictly within the bracket if that is wider than rounding; `guess` may be INFINITY. */
double bl_bracket_trial(const bl_bracket *r, double guess);
/* Moves b to the trial s if a function is negative or not a number there, else a. */
void bl_bracket_narrow(bl_bracket *r, double s, int beyond);

#endif
