/* Durations counted in bins: below 16 one for each, then 16 for each power of two. */
#include <math.h>

#include "scheduler/realtime/loop/realtime.h"

enum { BINS_LOG2 = 4, BINS_EACH = 1 << BINS_LOG2 };

static int bin_of(int64_t duration) {
    if (duration < BINS_EACH) return (int)duration;
    int power = BINS_LOG2;
    for (int64_t rest = duration >> (BINS_LOG2 + 1); rest; rest >>= 1) power++;
    const int bin = (power - BINS_LOG2 + 1) * BINS_EACH + (int)((duration >> (power - BINS_LOG2)) & (BINS_EACH - 1));
    return bin < BL_BINS ? bin : BL_BINS - 1;
}

/* The first duration that is in a bin. */
static double bin_start(int bin) {
    if (bin < BINS_EACH) return bin;
    return ldexp(BINS_EACH + bin % BINS_EACH, bin / BINS_EACH - 1);
}

void bl_histogram_add(bl_histogram *h, int64_t duration) {
    if (duration < 0) duration = 0;
    if (h->count == 0 || duration < h->least) h->least = duration;
    if (h->count == 0 || duration > h->most) h->most = duration;
    h->count++;
    h->sum += duration;
    h->bins[bin_of(duration)]++;
}

double bl_histogram_percentile(const bl_histogram *h, double part) {
    const double wanted = part * (double)h->count;
    int64_t seen = 0;
    for (int bin = 0; bin < BL_BINS; bin++) {
        seen += h->bins[bin];
        if (h->bins[bin] == 0 || (double)seen < wanted) continue;
        const double middle = bin < BINS_EACH ? bin : 0.5 * (bin_start(bin) + bin_start(bin + 1));
        return fmin(fmax(middle, (double)h->least), (double)h->most);
    }
    return 0.0;
}
