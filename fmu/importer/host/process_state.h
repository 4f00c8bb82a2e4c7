/* What an FMU shares with everything else in the process and may change in a call: the floating-point control of the thread
 * and the working directory. The host restores both, because our own arithmetic and file names depend on them. */
#ifndef BIELLA_PROCESS_STATE_H
#define BIELLA_PROCESS_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* Rounding, flushing of subnormal numbers, trapped exceptions; not the flags of exceptions that have occurred. Code compiled with
   -ffast-math changes it as soon as its library is loaded, and fegetround() does not show that, so the registers are read. */
typedef struct {
    uint32_t control, extended; /* scheduler/engine/_engine.py has the same */
} bl_float_control;

#if (defined(__x86_64__) || defined(__SSE2__)) && defined(__GNUC__)
#include <xmmintrin.h>
enum { BL_FLOAT_FLAGS = 0x3f };
static inline bl_float_control bl_get_float_control(void) {
    uint16_t extended;
    __asm__ volatile("fnstcw %0" : "=m"(extended));
    return (bl_float_control){_mm_getcsr() & ~(uint32_t)BL_FLOAT_FLAGS, extended};
}
static inline void bl_set_float_control(bl_float_control wanted) {
    const uint16_t extended = (uint16_t)wanted.extended;
    _mm_setcsr(wanted.control | (_mm_getcsr() & BL_FLOAT_FLAGS));
    __asm__ volatile("fldcw %0" : : "m"(extended));
}
#elif defined(__aarch64__) && defined(__GNUC__)
static inline bl_float_control bl_get_float_control(void) {
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return (bl_float_control){(uint32_t)control, 0};
}
static inline void bl_set_float_control(bl_float_control wanted) {
    const uint64_t control = wanted.control;
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
}
#else
#include <fenv.h>
static inline bl_float_control bl_get_float_control(void) { return (bl_float_control){(uint32_t)fegetround(), 0}; }
static inline void bl_set_float_control(bl_float_control wanted) { (void)fesetround((int)wanted.control); }
#endif

/* The same question for the rounding mode alone, in a nanosecond; reading the registers can take ten. */
static inline bool bl_rounds_to_nearest(void) {
    const volatile double tiny = 0x1p-80;
    return 1.5 + tiny == 1.5 - tiny;
}

static inline bool bl_same_float_control(bl_float_control a, bl_float_control b) {
    return a.control == b.control && a.extended == b.extended;
}

/* process_state.c. A working directory that cannot be opened, such as a removed one, is not restored. */
typedef struct {
#if defined(_WIN32)
    wchar_t path[1024];
    bool known;
#else
    int folder;
#endif
} bl_working_directory;
void bl_keep_working_directory(bl_working_directory *kept);
void bl_restore_working_directory(bl_working_directory *kept);

#endif
