/* Durations counted in bins: below 16 one for each, then 16 for each power of two. */
#include <math.h>

#include "scheduler/realtime/loop/clock.h"
#include "scheduler/realtime/loop/realtime.h"

enum { BINS_LOG2 = 4, BINS_EACH = 1 << BINS_LOG2 };
/* To copy; the interval is in ns. After the last try the fields may be a few counts apart. */
enum { MOST_TRIES = 1000, RETRY_INTERVAL = 20000 };

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

/* A sequence lock: a reader that meets an odd number of changes, or another one at its end, tries again. The fields are
   written with release and read with acquire instead of fences, which is the same code on x86. */
void bl_histogram_add(bl_histogram *h, int64_t duration) {
    if (duration < 0) duration = 0;
    const int64_t count = bl_counted(&h->count);
    atomic_store_explicit(&h->changes, bl_counted(&h->changes) + 1, memory_order_relaxed);
    if (count == 0 || duration < bl_counted(&h->least))
        atomic_store_explicit(&h->least, duration, memory_order_release);
    if (count == 0 || duration > bl_counted(&h->most)) atomic_store_explicit(&h->most, duration, memory_order_release);
    bl_add_count(&h->count, 1);
    bl_add_count(&h->sum, duration);
    bl_add_count(&h->bins[bin_of(duration)], 1);
    bl_add_count(&h->changes, 1);
}

static void copy_field(atomic_llong *to, const atomic_llong *from) {
    atomic_store_explicit(to, atomic_load_explicit(from, memory_order_acquire), memory_order_relaxed);
}

void bl_histogram_copy(const bl_histogram *h, bl_histogram *copy) {
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        const int64_t before = atomic_load_explicit(&h->changes, memory_order_acquire);
        copy_field(&copy->count, &h->count);
        copy_field(&copy->least, &h->least);
        copy_field(&copy->most, &h->most);
        copy_field(&copy->sum, &h->sum);
        for (int bin = 0; bin < BL_BINS; bin++) copy_field(&copy->bins[bin], &h->bins[bin]);
        if (before % 2 == 0 && before == bl_counted(&h->changes)) break;
        bl_clock_sleep_until(bl_clock_now() + RETRY_INTERVAL);
    }
    atomic_store_explicit(&copy->changes, 0, memory_order_relaxed);
}

double bl_histogram_percentile(const bl_histogram *h, double part) {
    const double wanted = part * (double)bl_counted(&h->count);
    int64_t seen = 0;
    for (int bin = 0; bin < BL_BINS; bin++) {
        const int64_t count = bl_counted(&h->bins[bin]);
        seen += count;
        if (count == 0 || (double)seen < wanted) continue;
        const double middle = bin < BINS_EACH ? bin : 0.5 * (bin_start(bin) + bin_start(bin + 1));
        return fmin(fmax(middle, (double)bl_counted(&h->least)), (double)bl_counted(&h->most));
    }
    return (double)bl_counted(&h->most);
}
