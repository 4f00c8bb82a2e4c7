/* The peer of `bearings.py`: Reynolds' equation on the same cells by plain projected over-relaxation, as it is usually
 * written. Pressure is kept from one position to the next. */
#include <math.h>

enum { AROUND = 64, ALONG = 16 };

static const double PI = 3.14159265358979323846;

/* Walks along `count` positions (x, y as parts of the clearance) with `sweeps` sweeps at each; forces are in
   6 μ ω (r / c)² r B. */
void film_sor(long count, const double *positions, double ratio, double relaxation, long sweeps, double *forces) {
    static double q[AROUND][ALONG + 2];
    double around[AROUND], along[AROUND], source[AROUND], cosine[AROUND], sine[AROUND];
    const double dt = 2.0 * PI / AROUND, dz = 1.0 / ALONG;
    for (int i = 0; i < AROUND; i++) {
        cosine[i] = cos((i + 0.5) * dt);
        sine[i] = sin((i + 0.5) * dt);
    }
    for (long k = 0; k < count; k++) {
        const double x = positions[2 * k], y = positions[2 * k + 1];
        for (int i = 0; i < AROUND; i++) {
            const double middle = 1.0 - x * cosine[i] - y * sine[i];
            const double face = 1.0 - x * cos((i + 1) * dt) - y * sin((i + 1) * dt);
            around[i] = face * face * face / (dt * dt);
            along[i] = ratio * ratio * middle * middle * middle / (dz * dz);
            source[i] = (y * cosine[i] - x * sine[i]) * sin(0.5 * dt) / (0.5 * dt);
        }
        for (long sweep = 0; sweep < sweeps; sweep++)
            for (int i = 0; i < AROUND; i++) {
                const int before = i > 0 ? i - 1 : AROUND - 1, after = i + 1 < AROUND ? i + 1 : 0;
                for (int j = 1; j <= ALONG; j++) {
                    const double below = j == 1 ? 2.0 : 1.0, above = j == ALONG ? 2.0 : 1.0;
                    const double diagonal = around[before] + around[i] + (below + above) * along[i];
                    const double sum = around[before] * q[before][j] + around[i] * q[after][j] +
                                       along[i] * (q[i][j - 1] + q[i][j + 1]) + source[i];
                    const double next = q[i][j] + relaxation * (sum / diagonal - q[i][j]);
                    q[i][j] = next > 0.0 ? next : 0.0;
                }
            }
        double fx = 0.0, fy = 0.0;
        for (int i = 0; i < AROUND; i++)
            for (int j = 1; j <= ALONG; j++) {
                fx -= q[i][j] * cosine[i];
                fy -= q[i][j] * sine[i];
            }
        forces[2 * k] = fx * dt * dz;
        forces[2 * k + 1] = fy * dt * dz;
    }
}
