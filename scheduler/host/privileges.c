#include "scheduler/host/privileges.h"

#include <errno.h>
#include <string.h>

#if defined(__linux__)

#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int take_timers(bl_privileges *p) {
    const int slack = prctl(PR_GET_TIMERSLACK);
    if (slack < 0 || prctl(PR_SET_TIMERSLACK, 1UL)) return errno;
    p->former_slack = (uint64_t)slack;
    return 0;
}

static void return_timers(const bl_privileges *p) { prctl(PR_SET_TIMERSLACK, (unsigned long)p->former_slack); }

/* The kernel keeps to the number for as long as the file is open. */
static int take_power(bl_privileges *p) {
    const int32_t microseconds = 0;
    const int file = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
    if (file < 0) return errno;
    if (write(file, &microseconds, sizeof microseconds) != sizeof microseconds) {
        const int error = errno;
        close(file);
        return error;
    }
    p->power_file = file;
    return 0;
}

static void return_power(const bl_privileges *p) { close(p->power_file); }

static int may_exceed_limit_of_locked_memory(void) {
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    return syscall(SYS_capget, &head, data) == 0 && (data[0].effective & (1u << CAP_IPC_LOCK));
}

/* Memory is the process's: threads share its lock. */
static pthread_mutex_t memory_mutex = PTHREAD_MUTEX_INITIALIZER;
static int memory_holders;

/* Under a limit mlockall may succeed, but then any later malloc fails that would exceed it: rather not. */
static int take_memory(bl_privileges *p) {
    (void)p;
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit)) return errno;
    if (limit.rlim_cur != RLIM_INFINITY && !may_exceed_limit_of_locked_memory()) return ENOMEM;
    pthread_mutex_lock(&memory_mutex);
    const int error = memory_holders == 0 && mlockall(MCL_CURRENT | MCL_FUTURE) ? errno : 0;
    if (!error) memory_holders++;
    pthread_mutex_unlock(&memory_mutex);
    return error;
}

static void return_memory(const bl_privileges *p) {
    (void)p;
    pthread_mutex_lock(&memory_mutex);
    if (--memory_holders == 0) munlockall();
    pthread_mutex_unlock(&memory_mutex);
}

/* How much stack is left below here; half of that may be touched. */
static int64_t room_on_stack(void) {
    pthread_attr_t attributes;
    void *lowest;
    size_t size, guard;
    if (pthread_getattr_np(pthread_self(), &attributes)) return 0;
    const int failed =
        pthread_attr_getstack(&attributes, &lowest, &size) || pthread_attr_getguardsize(&attributes, &guard);
    pthread_attr_destroy(&attributes);
    return failed ? 0 : (char *)__builtin_frame_address(0) - (char *)lowest - (int64_t)guard;
}

static void touch_stack(int64_t bytes) {
    volatile char room[bytes];
    for (int64_t i = bytes - 1; i >= 0; i -= 1024) room[i] = 0; /* downwards, as a stack grows */
    (void)room;
}

static int take_stack(bl_privileges *p) {
    if (p->stack <= 0) return EINVAL;
    if (p->stack > room_on_stack() / 2) return ENOMEM;
    touch_stack(p->stack);
    return 0;
}

static int take_cpu(bl_privileges *p) {
    cpu_set_t set;
    _Static_assert(sizeof set == sizeof p->former_cpus, "a set of processors is kept as it is");
    if (p->cpu < 0 || p->cpu >= CPU_SETSIZE) return EINVAL;
    if (sched_getaffinity(0, sizeof set, &set)) return errno;
    memcpy(p->former_cpus, &set, sizeof set);
    CPU_ZERO(&set);
    CPU_SET((size_t)p->cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) ? errno : 0;
}

static void return_cpu(const bl_privileges *p) {
    sched_setaffinity(0, sizeof p->former_cpus, (const cpu_set_t *)(const void *)p->former_cpus);
}

static int set_policy(int policy, int priority) {
    const struct sched_param parameters = {.sched_priority = priority};
    return pthread_setschedparam(pthread_self(), policy, &parameters);
}

static int take_priority(bl_privileges *p) {
    struct sched_param former;
    int policy;
    const int failed = pthread_getschedparam(pthread_self(), &policy, &former);
    if (failed) return failed;
    p->former_policy = policy, p->former_priority = former.sched_priority;
    p->granted_priority = p->priority;
    int error = set_policy(SCHED_FIFO, p->priority);
    struct rlimit limit;
    if (error == EPERM && getrlimit(RLIMIT_RTPRIO, &limit) == 0 && limit.rlim_cur > 0 &&
        limit.rlim_cur < (rlim_t)p->priority) {
        p->granted_priority = (int32_t)limit.rlim_cur;
        error = set_policy(SCHED_FIFO, p->granted_priority);
    }
    return error;
}

static void return_priority(const bl_privileges *p) { set_policy(p->former_policy, p->former_priority); }

#else

static int refuse(bl_privileges *p) {
    (void)p;
    return ENOTSUP;
}

static void return_nothing(const bl_privileges *p) { (void)p; }

#define take_timers refuse
#define return_timers return_nothing
#define take_power refuse
#define return_power return_nothing
#define take_memory refuse
#define return_memory return_nothing
#define take_stack refuse

#if defined(_WIN32)

#include <windows.h>

static int error_of_windows(void) { return GetLastError() == ERROR_ACCESS_DENIED ? EPERM : EINVAL; }

static int take_cpu(bl_privileges *p) {
    if (p->cpu < 0 || p->cpu >= (int)(8 * sizeof(DWORD_PTR))) return EINVAL;
    p->former_cpus[0] = SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)1 << p->cpu);
    return p->former_cpus[0] ? 0 : error_of_windows();
}

static void return_cpu(const bl_privileges *p) {
    SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)p->former_cpus[0]);
}

/* Windows has no numeric priorities among time-critical threads. */
static int take_priority(bl_privileges *p) {
    p->former_priority = GetThreadPriority(GetCurrentThread());
    if (!SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_TIME_CRITICAL)) return error_of_windows();
    p->granted_priority = THREAD_PRIORITY_TIME_CRITICAL;
    return 0;
}

static void return_priority(const bl_privileges *p) { SetThreadPriority(GetCurrentThread(), p->former_priority); }

#elif defined(__APPLE__)

#include <mach/mach.h>
#include <mach/mach_time.h>
#include <mach/thread_policy.h>
#include <pthread.h>

#define take_cpu refuse
#define return_cpu return_nothing

/* The system requires the computation time per period: 0.5 ms of every millisecond. */
static int take_priority(bl_privileges *p) {
    mach_timebase_info_data_t base;
    if (mach_timebase_info(&base) != KERN_SUCCESS) return ENOTSUP;
    const uint32_t millisecond = (uint32_t)(1000000ull * base.denom / base.numer);
    thread_time_constraint_policy_data_t policy = {
        .period = millisecond, .computation = millisecond / 2, .constraint = millisecond, .preemptible = 1};
    if (thread_policy_set(pthread_mach_thread_np(pthread_self()), THREAD_TIME_CONSTRAINT_POLICY,
                          (thread_policy_t)&policy, THREAD_TIME_CONSTRAINT_POLICY_COUNT) != KERN_SUCCESS)
        return EPERM;
    p->granted_priority = p->priority;
    return 0;
}

static void return_priority(const bl_privileges *p) {
    (void)p;
    thread_standard_policy_data_t policy = {0};
    thread_policy_set(pthread_mach_thread_np(pthread_self()), THREAD_STANDARD_POLICY, (thread_policy_t)&policy,
                      THREAD_STANDARD_POLICY_COUNT);
}

#else

#define take_cpu refuse
#define return_cpu return_nothing
#define take_priority refuse
#define return_priority return_nothing

#endif
#endif

static void return_stack(const bl_privileges *p) { (void)p; }

typedef struct {
    int (*take)(bl_privileges *p); /* 0, or why not, as in errno */
    void (*give_back)(const bl_privileges *p);
} privilege;

/* In the order in which they are taken: the priority last, so that no slow step precedes ordinary threads. */
static const privilege privileges[BL_PRIVILEGE_COUNT] = {
    [BL_TIMERS] = {take_timers, return_timers}, [BL_POWER] = {take_power, return_power},
    [BL_MEMORY] = {take_memory, return_memory}, [BL_STACK] = {take_stack, return_stack},
    [BL_CPU] = {take_cpu, return_cpu},          [BL_PRIORITY] = {take_priority, return_priority},
};

void bl_privileges_take(bl_privileges *p) {
    p->granted = 0;
    p->granted_priority = 0;
    for (int k = 0; k < BL_PRIVILEGE_COUNT; k++) {
        const uint32_t bit = 1u << k;
        p->errors[k] = p->asked & bit ? privileges[k].take(p) : 0;
        if (p->asked & bit && !p->errors[k]) p->granted |= bit;
    }
    if (!(p->granted & 1u << BL_PRIORITY)) p->granted_priority = 0;
    p->held = p->granted;
}

void bl_privileges_return(bl_privileges *p) {
    for (int k = BL_PRIVILEGE_COUNT - 1; k >= 0; k--)
        if (p->held & 1u << k) privileges[k].give_back(p);
    p->held = 0;
}
