/* Queries of `biella doctor`: the wake-up latency of an idle thread, and the compiler of the engine. */
#include "scheduler/host/doctor.h"

#include "scheduler/realtime/loop/clock.h"

void bl_measure_latency(bl_privileges *privileges, int64_t period_ns, int64_t spin_ns, int64_t count,
                        int64_t *lateness_ns) {
    bl_privileges_take(privileges);
    int64_t deadline = bl_clock_now() + period_ns;
    for (int64_t n = 0; n < count; n++) {
        deadline += period_ns;
        lateness_ns[n] = bl_clock_wait_until(deadline, spin_ns) - deadline;
    }
    bl_privileges_return(privileges);
}

#define WORD_OF(x) #x
#define WORD(x) WORD_OF(x)

const char *bl_compiler(void) {
#if defined(__clang__)
    return "clang " WORD(__clang_major__) "." WORD(__clang_minor__);
#elif defined(__GNUC__)
    return "gcc " WORD(__GNUC__) "." WORD(__GNUC_MINOR__);
#else
    return "an unknown compiler";
#endif
}
