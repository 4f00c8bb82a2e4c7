/* Two FMUs linked into one program, each with its prefix; nothing is loaded and no file is read.
 * INPUT, REFERENCES, STEPS, GUID_ONE and GUID_TWO come from the command line. */
#include <stddef.h>
#include <stdio.h>
#define DECLARE(p) \
    void *p##fmi2Instantiate(const char *, int, const char *, const char *, const void *, int, int); \
    int p##fmi2SetupExperiment(void *, int, double, double, int, double); \
    int p##fmi2EnterInitializationMode(void *); \
    int p##fmi2ExitInitializationMode(void *); \
    int p##fmi2SetReal(void *, const unsigned *, size_t, const double *); \
    int p##fmi2GetReal(void *, const unsigned *, size_t, double *); \
    int p##fmi2DoStep(void *, double, double, int); \
    void p##fmi2FreeInstance(void *);
#define START(p, guid) \
    void *p = p##fmi2Instantiate(#p, 1, guid, NULL, NULL, 0, 0); \
    if (!p || p##fmi2SetupExperiment(p, 0, 0, 0, 0, 0) || p##fmi2EnterInitializationMode(p) || \
        p##fmi2ExitInitializationMode(p)) \
        return 1;
#define ADVANCE(p) \
    if (p##fmi2SetReal(p, &in, 1, &u) || p##fmi2DoStep(p, n * 0.01, 0.01, 1) || p##fmi2GetReal(p, out, 5, y)) \
        return 2; \
    printf("%.17g %.17g %.17g %.17g %.17g\n", y[0], y[1], y[2], y[3], y[4]);
DECLARE(one_) DECLARE(two_) int main(void) {
    const unsigned in = INPUT, out[5] = {REFERENCES};
    double y[5];
    START(one_, GUID_ONE) START(two_, GUID_TWO) for (int n = 0; n < STEPS; n++) {
        const double u = 0.25 * ((7 * n) % 23) - 2.0;
        ADVANCE(one_) ADVANCE(two_)
    }
    one_fmi2FreeInstance(one_);
    two_fmi2FreeInstance(two_);
    return 0;
}
