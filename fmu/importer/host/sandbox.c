/* Filter of system calls for isolate="strict": see fmu/importer/backends/_sandbox.py.
 *
 * What is not listed does not exist (ENOSYS). What is refused by name fails with EPERM, by the kernel or by the process
 * that started this one, which so learns of it. Landlock decides about files: calls that change files are allowed here
 * as far as it covers them. */
#include "scheduler/engine/biella.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <linux/seccomp.h>
#include <sys/syscall.h>
#endif

#if defined(__NR_seccomp) && defined(SECCOMP_FILTER_FLAG_NEW_LISTENER) /* in Linux headers since 5.0 */

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 1024 };

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

static const int ALLOWED[] = {
    /* files: Landlock decides which */
    __NR_read, __NR_write, __NR_readv, __NR_writev, __NR_pread64, __NR_pwrite64, __NR_preadv, __NR_pwritev, __NR_close,
    __NR_openat, __NR_lseek, __NR_fstat, __NR_newfstatat, __NR_statfs, __NR_fstatfs, __NR_faccessat, __NR_readlinkat,
    __NR_getdents64, __NR_getcwd, __NR_chdir, __NR_fchdir, __NR_mkdirat, __NR_unlinkat, __NR_renameat, __NR_linkat,
    __NR_symlinkat, __NR_truncate, __NR_ftruncate, __NR_fallocate, __NR_fsync, __NR_fdatasync, __NR_sendfile,
    __NR_fadvise64, __NR_readahead, __NR_flock, __NR_dup, __NR_dup3, __NR_pipe2, __NR_ppoll, __NR_pselect6,
    __NR_epoll_create1, __NR_epoll_ctl, __NR_epoll_pwait, __NR_eventfd2, __NR_timerfd_create, __NR_timerfd_settime,
    __NR_timerfd_gettime, __NR_umask,
#ifdef __NR_open
    __NR_open, __NR_creat, __NR_stat, __NR_lstat, __NR_access, __NR_readlink, __NR_getdents, __NR_mkdir, __NR_rmdir,
    __NR_unlink, __NR_rename, __NR_link, __NR_symlink, __NR_dup2, __NR_pipe, __NR_poll, __NR_select, __NR_epoll_create,
    __NR_epoll_wait, __NR_eventfd,
#endif
#ifdef __NR_renameat2
    __NR_renameat2,
#endif
#ifdef __NR_copy_file_range
    __NR_copy_file_range,
#endif
#ifdef __NR_preadv2
    __NR_preadv2, __NR_pwritev2,
#endif
#ifdef __NR_statx
    __NR_statx,
#endif
#ifdef __NR_faccessat2
    __NR_faccessat2,
#endif
#ifdef __NR_close_range
    __NR_close_range,
#endif
    /* memory */
    __NR_mmap, __NR_munmap, __NR_mremap, __NR_mprotect, __NR_madvise, __NR_brk, __NR_msync, __NR_mincore, __NR_mbind,
    __NR_get_mempolicy, __NR_set_mempolicy,
#ifdef __NR_membarrier
    __NR_membarrier,
#endif
    /* threads of this process; clone is checked below */
    __NR_futex, __NR_set_robust_list, __NR_get_robust_list, __NR_set_tid_address, __NR_gettid, __NR_sched_yield,
    __NR_sched_getaffinity, __NR_sched_getparam, __NR_sched_getscheduler, __NR_sched_get_priority_max,
    __NR_sched_get_priority_min, __NR_sched_rr_get_interval, __NR_exit, __NR_exit_group, __NR_wait4, __NR_waitid,
#ifdef __NR_futex_waitv
    __NR_futex_waitv,
#endif
#ifdef __NR_rseq
    __NR_rseq,
#endif
#ifdef __NR_arch_prctl
    __NR_arch_prctl,
#endif
    /* what it is and how much it has used */
    __NR_getpid, __NR_getppid, __NR_getpgid, __NR_getsid, __NR_getuid, __NR_geteuid, __NR_getgid, __NR_getegid,
    __NR_getresuid, __NR_getresgid, __NR_getgroups, __NR_capget, __NR_uname, __NR_sysinfo, __NR_getrusage, __NR_times,
    __NR_getrlimit, __NR_setrlimit, __NR_getpriority, __NR_getcpu,
#ifdef __NR_getpgrp
    __NR_getpgrp,
#endif
#ifdef __NR_getrandom
    __NR_getrandom,
#endif
    /* time */
    __NR_clock_gettime, __NR_clock_getres, __NR_clock_nanosleep, __NR_nanosleep, __NR_gettimeofday, __NR_setitimer,
    __NR_getitimer, __NR_timer_create, __NR_timer_settime, __NR_timer_gettime, __NR_timer_getoverrun, __NR_timer_delete,
#ifdef __NR_time
    __NR_time, __NR_alarm, __NR_pause,
#endif
    /* its own signals */
    __NR_rt_sigaction, __NR_rt_sigprocmask, __NR_rt_sigreturn, __NR_rt_sigpending, __NR_rt_sigsuspend,
    __NR_rt_sigtimedwait, __NR_sigaltstack, __NR_restart_syscall,
    /* the descriptor of the filter is sent with it; there are no sockets of addresses */
    __NR_sendmsg};

typedef struct {
    int number;
    const char *name;
} refusal;

#define CALL(name) {__NR_##name, #name}

/* Refused, and reported. */
static const refusal REFUSED[] = {
    CALL(execve),
    CALL(execveat),
    CALL(ptrace),
    CALL(process_vm_readv),
    CALL(process_vm_writev),
    CALL(rt_sigqueueinfo),
    CALL(rt_tgsigqueueinfo),
    CALL(tkill),
    CALL(mount),
    CALL(umount2),
    CALL(pivot_root),
    CALL(chroot),
    CALL(unshare),
    CALL(setns),
    CALL(fchmod),
    CALL(fchmodat),
    CALL(fchown),
    CALL(fchownat),
    CALL(utimensat),
    CALL(setxattr),
    CALL(lsetxattr),
    CALL(fsetxattr),
    CALL(removexattr),
    CALL(lremovexattr),
    CALL(fremovexattr),
    CALL(mknodat),
    CALL(shmget),
    CALL(semget),
    CALL(msgget),
    CALL(mq_open),
    CALL(bpf),
    CALL(perf_event_open),
    CALL(keyctl),
    CALL(add_key),
    CALL(request_key),
    CALL(setpriority),
    CALL(ioprio_set),
    CALL(sched_setaffinity),
    CALL(sched_setscheduler),
    CALL(sched_setparam),
    CALL(setuid),
    CALL(setgid),
    CALL(setreuid),
    CALL(setregid),
    CALL(setresuid),
    CALL(setresgid),
    CALL(setgroups),
    CALL(capset),
    CALL(settimeofday),
    CALL(clock_settime),
    CALL(sethostname),
    CALL(reboot),
    CALL(init_module),
    CALL(finit_module),
    CALL(delete_module),
    CALL(kexec_load),
    CALL(swapon),
    CALL(swapoff),
    CALL(acct),
    CALL(quotactl),
    CALL(syslog),
    CALL(fanotify_init),
    CALL(name_to_handle_at),
    CALL(open_by_handle_at),
    CALL(personality),
#ifdef __NR_fork
    CALL(fork),
    CALL(vfork),
    CALL(chmod),
    CALL(chown),
    CALL(lchown),
    CALL(utime),
    CALL(utimes),
    CALL(futimesat),
    CALL(mknod),
#endif
#ifdef __NR_userfaultfd
    CALL(userfaultfd),
#endif
#ifdef __NR_io_uring_setup
    CALL(io_uring_setup),
#endif
#ifdef __NR_pidfd_open
    CALL(pidfd_open),
#endif
#ifdef __NR_pidfd_send_signal
    CALL(pidfd_send_signal),
#endif
#ifdef __NR_pidfd_getfd
    CALL(pidfd_getfd),
#endif
#ifdef __NR_process_madvise
    CALL(process_madvise),
#endif
};

/* Refused for some of their arguments. */
static const refusal CHECKED[] = {CALL(socket),    CALL(socketpair), CALL(clone), CALL(kill), CALL(tgkill),
                                  CALL(prlimit64), CALL(fcntl),      CALL(ioctl), CALL(prctl)};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define ARGUMENT(n) ((uint32_t)(offsetof(struct seccomp_data, args) + 8 * (n))) /* the lower half: little endian */

typedef struct {
    struct sock_filter code[MOST];
    unsigned short length;
} program;

static void add(program *p, int code, uint8_t yes, uint8_t no, uint32_t value) {
    if (p->length < MOST) {
        p->code[p->length++] = (struct sock_filter){(uint16_t)code, yes, no, value};
    }
}

static void load(program *p, uint32_t offset) { add(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offset); }

static void give(program *p, uint32_t verdict) { add(p, BPF_RET | BPF_K, 0, 0, verdict); }

/* The next instruction runs only if the loaded value is `value`. */
static void when(program *p, uint32_t value) { add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value); }

static void load_call(program *p) { load(p, offsetof(struct seccomp_data, nr)); }

/* Give `verdict` for one of `values` of an argument of the call, otherwise `other`. */
static void choose(program *p, int call, uint32_t argument, const uint32_t *values, size_t count, uint32_t verdict,
                   uint32_t other) {
    load_call(p);
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, (uint8_t)(2 * count + 2), (uint32_t)call);
    load(p, ARGUMENT(argument));
    for (size_t k = 0; k < count; k++) {
        when(p, values[k]);
        give(p, verdict);
    }
    give(p, other);
}

/* Terminal input must not be pushed (TIOCSTI), nor owners of signals be set: only what reads a state. */
static const uint32_t CONTROLS[] = {0x5401 /* TCGETS */,  0x541b /* FIONREAD */, 0x5413 /* TIOCGWINSZ */,
                                    0x5451 /* FIOCLEX */, 0x5450 /* FIONCLEX */, 0x5421 /* FIONBIO */};
/* SIGIO may be sent to any process of the user. */
static const uint32_t OWNERS[] = {8 /* F_SETOWN */, 10 /* F_SETSIG */, 15 /* F_SETOWN_EX */, 1024 /* F_SETLEASE */,
                                  1026 /* F_NOTIFY */};
static const uint32_t OPTIONS[] = {PR_SET_NAME,    PR_GET_NAME,         PR_GET_DUMPABLE, PR_CAPBSET_READ,
                                   PR_GET_SECCOMP, PR_SET_NO_NEW_PRIVS, 0x53564d41 /* PR_SET_VMA */};
static const uint32_t OWN[] = {0};
static const uint32_t QUIET[] = {AF_UNIX, AF_NETLINK}; /* name services ask, and continue without */
/* Pairs of datagram sockets are refused: each message may have the address of another socket, also one outside. */
static const uint32_t PAIRS[] = {SOCK_STREAM, SOCK_SEQPACKET};

static void write_program(program *p, uint32_t refuse) {
    const uint32_t allow = SECCOMP_RET_ALLOW, quiet = SECCOMP_RET_ERRNO | EPERM, self = (uint32_t)getpid();
    p->length = 0;
    load(p, offsetof(struct seccomp_data, arch));
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCHITECTURE);
    give(p, SECCOMP_RET_KILL_PROCESS);
    load_call(p);
#if defined(__x86_64__)
    add(p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000); /* the x32 interface has other numbers */
    give(p, SECCOMP_RET_KILL_PROCESS);
#endif
    for (size_t k = 0; k < COUNT(ALLOWED); k++) {
        when(p, (uint32_t)ALLOWED[k]);
        give(p, allow);
    }
    for (size_t k = 0; k < COUNT(REFUSED); k++) {
        when(p, (uint32_t)REFUSED[k].number);
        give(p, refuse);
    }
    choose(p, __NR_socket, 0, QUIET, COUNT(QUIET), quiet, refuse);
    load_call(p);
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 10, __NR_socketpair);
    load(p, ARGUMENT(0));
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AF_UNIX);
    give(p, refuse);
    load(p, ARGUMENT(1));
    add(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, (uint32_t)~(SOCK_NONBLOCK | SOCK_CLOEXEC));
    for (size_t k = 0; k < COUNT(PAIRS); k++) {
        when(p, PAIRS[k]);
        give(p, allow);
    }
    give(p, refuse);
    choose(p, __NR_kill, 0, &self, 1, allow, refuse);
    choose(p, __NR_tgkill, 0, &self, 1, allow, refuse);
    load_call(p);
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 6, __NR_prlimit64);
    load(p, ARGUMENT(0));
    when(p, OWN[0]);
    give(p, allow);
    when(p, self);
    give(p, allow);
    give(p, refuse);
    choose(p, __NR_fcntl, 1, OWNERS, COUNT(OWNERS), refuse, allow);
    choose(p, __NR_ioctl, 1, CONTROLS, COUNT(CONTROLS), allow, quiet);
    choose(p, __NR_prctl, 0, OPTIONS, COUNT(OPTIONS), allow, quiet);
    load_call(p); /* threads, without new name spaces */
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, __NR_clone);
    load(p, ARGUMENT(0));
    add(p, BPF_JMP | BPF_JSET | BPF_K, 0, 1, CLONE_THREAD);
    give(p, allow);
    give(p, refuse);
    give(p, SECCOMP_RET_ERRNO | ENOSYS); /* clone3 is among them: its flags cannot be read, clone is used then */
}

int32_t bl_sandbox_filter(int32_t listen) {
    program p;
    write_program(&p, listen ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | EPERM);
    if (p.length >= MOST) {
        return -E2BIG;
    }
    struct sock_fprog filter = {p.length, p.code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -errno;
    }
    unsigned int flags = listen ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
    long status = syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
    return status < 0 ? -errno : (int32_t)status;
}

const char *bl_sandbox_call(int32_t number) {
    for (size_t k = 0; k < COUNT(REFUSED); k++) {
        if (REFUSED[k].number == number) {
            return REFUSED[k].name;
        }
    }
    for (size_t k = 0; k < COUNT(CHECKED); k++) {
        if (CHECKED[k].number == number) {
            return CHECKED[k].name;
        }
    }
    return NULL;
}

#else

int32_t bl_sandbox_filter(int32_t listen) {
    (void)listen;
    return -38; /* ENOSYS */
}

const char *bl_sandbox_call(int32_t number) {
    (void)number;
    return NULL;
}

#endif
