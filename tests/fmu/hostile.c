/* An FMI 2.0 co-simulation FMU that attacks the machine that it runs on. Its first step tries each attack once: integer
 * k is then 1 if attack k worked, otherwise -errno. With a `mode` other than 0 its second step does what ends or blocks a
 * process instead. `secret`, `target` and `made` are files, `victim` is a process, `port` and `socket` are servers. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
enum { OK, WARNING, DISCARD, ERROR };
enum { ATTACKS = 32, PORT = 100, VICTIM, MODE, SECRET, TARGET, MADE, SOCKET };
enum { NONE, ALLOCATE, LOOP, CLOSED, ORPHAN, GARBAGE, FAIL, SPIN, HUGE_ANSWER, CHAT };

typedef void (*logger)(void *, const char *, int, const char *, const char *, ...);
typedef struct {
    logger log;
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void *finished, *environment;
} callbacks;
typedef struct {
    const callbacks *call;
    int port, victim, mode, outcome[ATTACKS];
    char secret[512], target[512], made[512], unix_name[100], resources[1024];
    double t;
} model;

static int outcome(long status) { return status >= 0 ? 1 : -errno; }

static int read_file(const char *path) {
    char text[16];
    const int file = open(path, O_RDONLY);
    if (file < 0) return -errno;
    const ssize_t count = read(file, text, sizeof text);
    close(file);
    return count > 0 ? 1 : -EIO;
}
static int write_file(const char *path, const char *suffix, size_t size) {
    char name[1200];
    snprintf(name, sizeof name, "%s%s", path, suffix);
    const int file = open(name, O_WRONLY | O_CREAT, 0600);
    if (file < 0) return -errno;
    char part[4096] = "written";
    int status = 1;
    for (size_t done = 0; done < size && status == 1; done += sizeof part)
        if (write(file, part, sizeof part) < 0) status = -errno;
    close(file);
    return status;
}
static int contact(int type, int port) {
    const int s = socket(AF_INET, type, 0);
    if (s < 0) return -errno;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int status = outcome(connect(s, (struct sockaddr *)&to, sizeof to));
    if (status == 1 && send(s, "stolen", 6, 0) < 0) return -errno;
    return close(s), status;
}
static int contact_unix(const char *name) {
    const int s = socket(AF_UNIX, SOCK_STREAM, 0);
    if (s < 0) return -errno;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    strncpy(to.sun_path, name, sizeof to.sun_path - 1);
    const int status = outcome(connect(s, (struct sockaddr *)&to, sizeof to));
    return close(s), status;
}
/* A pair of sockets needs no address, but a datagram from one may have any. */
static int contact_from_pair(const char *name) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0) return -errno;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s.datagrams", name);
    struct iovec text = {"sent", 4};
    const struct msghdr message = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &text, .msg_iovlen = 1};
    const int status = outcome(sendmsg(pair[0], &message, 0));
    close(pair[0]);
    return close(pair[1]), status;
}
static int fork_child(void) {
    const pid_t child = fork();
    if (child < 0) return -errno;
    if (child == 0) _exit(0);
    return outcome(waitpid(child, NULL, 0));
}
static int run_shell(const char *made) {
    char command[600];
    snprintf(command, sizeof command, "echo shell > '%s.shell'", made);
    const int status = system(command);
    return status == 0 ? 1 : status < 0 ? -errno : -EPERM;
}
static int read_environment(void) { return getenv("BIELLA_TEST_SECRET") ? 1 : -ENOENT; }
static int read_parent(const char *what) {
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/%s", getppid(), what);
    return read_file(name);
}
static int through_proc(const char *secret) {
    char name[600];
    snprintf(name, sizeof name, "/proc/self/root%s", secret);
    return read_file(name);
}
static int through_link(const model *m) {
    const char *folder = getenv("TMPDIR");
    char name[1200];
    snprintf(name, sizeof name, "%s/link-%d", folder ? folder : m->resources, getpid());
    if (symlink(m->secret, name) < 0) return -errno;
    const int status = read_file(name);
    unlink(name);
    return status;
}
static int signal_by_descriptor(int victim) { /* SIGIO goes to whoever is named the owner */
    int ends[2];
    if (pipe(ends) < 0) return -errno;
    return outcome(fcntl(ends[0], F_SETOWN, victim));
}
static int ask(long call, long a, long b, long c) { return outcome(syscall(call, a, b, c)); }
static int trace(int victim) {
    const int status = outcome(ptrace(PTRACE_SEIZE, victim, NULL, NULL));
    return status;
}
static int change_times(const char *path) {
    const struct timespec times[2] = {{0, 0}, {0, 0}};
    return outcome(utimensat(AT_FDCWD, path, times, 0));
}
static int in_memory_shared(void) {
    const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    if (id < 0) return -errno;
    return shmctl(id, IPC_RMID, NULL), 1;
}
static int as_thread_of_other_kind(void) { /* a child that is not a thread, by the system call itself */
    const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child < 0) return -errno;
    if (child == 0) _exit(0);
    return outcome(waitpid((pid_t)child, NULL, 0));
}

static void attack(model *m) {
    int n = 0;
#define TRY(what) m->outcome[n++] = (what)
    TRY(contact(SOCK_STREAM, m->port));
    TRY(contact(SOCK_DGRAM, m->port));
    TRY(contact_unix(m->unix_name));
    TRY(read_file("/etc/passwd"));
    TRY(read_file(m->secret));
    TRY(through_proc(m->secret));
    TRY(through_link(m));
    TRY(write_file(m->made, "", 1));
    TRY(write_file(m->resources, "/planted", 1));
    TRY(outcome(truncate(m->target, 0)));
    TRY(outcome(chmod(m->secret, 0644)));
    TRY(change_times(m->secret));
    TRY(fork_child());
    TRY(as_thread_of_other_kind());
    TRY(run_shell(m->made));
    TRY(read_environment());
    TRY(read_parent("environ"));
    TRY(read_parent("maps"));
    TRY(trace(m->victim));
    TRY(signal_by_descriptor(m->victim));
    TRY(outcome(kill(getppid(), 0)));
    TRY(in_memory_shared());
    TRY(ask(SYS_unshare, CLONE_NEWUSER, 0, 0));
    TRY(outcome(rename(m->target, m->made)));
    TRY(outcome(unlink(m->target)));
    TRY(outcome(kill(m->victim, SIGKILL)));
    TRY(contact_from_pair(m->unix_name));
}

static int end(model *m) {
    static volatile double x = 1.0;
    switch (m->mode) {
        case ALLOCATE: { /* what is not touched costs nothing where it is granted */
            void *p = mmap(NULL, (size_t)6 << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (p != MAP_FAILED) return OK;
            m->call->log(m->call->environment, "hostile", ERROR, "error", "no memory");
            return ERROR;
        }
        case LOOP:
            for (;;) x += 1e-9;
        case CLOSED:
            for (int k = 0; k < 256; k++) close(k);
            return OK;
        case ORPHAN: /* a child that holds the pipe, for the time that a test takes at most */
            if (fork() == 0) {
                sleep(60);
                _exit(0);
            }
            abort();
        case GARBAGE:
            for (int k = 1; k < 16; k++)
                if (write(k, "no answer of the protocol, at all", 33) < 0) continue;
            return OK;
        case HUGE_ANSWER:
            for (int k = 3; k < 16; k++) {
                const char head[9] = {0, -1, -1, -1, -1, -1, -1, -1, 0x7f};
                if (write(k, head, 9) < 0) continue;
            }
            return OK;
        case FAIL: return ERROR;
        case SPIN: { /* one byte of an answer now and then */
            for (int n = 0; n < 100; n++) {
                for (int k = 3; k < 16; k++)
                    if (write(k, "", 1) < 0) continue;
                usleep(200000);
            }
            return OK;
        }
        case CHAT:
            for (int k = 0; k < 2000; k++) fprintf(stderr, "\033]0;title\a\033[2Jchat %d\n", k);
            return OK;
        default: return OK;
    }
}

API const char *fmi2GetTypesPlatform(void) { return "default"; }
API const char *fmi2GetVersion(void) { return "2.0"; }
API void *fmi2Instantiate(const char *name, int type, const char *guid, const char *resources, const callbacks *call,
                          int visible, int loud) {
    (void)name, (void)type, (void)guid, (void)visible, (void)loud;
    model *m = calloc(1, sizeof *m);
    m->call = call;
    strncpy(m->resources, resources + (strncmp(resources, "file:///", 8) == 0 ? 7 : 0), sizeof m->resources - 1);
    return m;
}
API void fmi2FreeInstance(void *c) { free(c); }
API int fmi2SetDebugLogging(void *c, int on, size_t count, const char *const *categories) {
    return (void)c, (void)on, (void)count, (void)categories, OK;
}
API int fmi2SetupExperiment(void *c, int a, double b, double start, int d, double e) {
    return (void)a, (void)b, (void)d, (void)e, ((model *)c)->t = start, OK;
}
API int fmi2EnterInitializationMode(void *c) { return (void)c, OK; }
API int fmi2ExitInitializationMode(void *c) { return (void)c, OK; }
API int fmi2Terminate(void *c) { return (void)c, OK; }
API int fmi2Reset(void *c) { return (void)c, OK; }
API int fmi2GetReal(void *c, const unsigned *r, size_t count, double *value) {
    for (size_t k = 0; k < count; k++) { /* what an FMU may do: its resources, and a scratch folder */
        char name[1200];
        const model *m = c;
        snprintf(name, sizeof name, "%s/table.txt", m->resources);
        const char *folder = getenv("TMPDIR");
        value[k] = r[k] == 200   ? read_file(name)
                   : r[k] == 201 ? write_file(folder ? folder : m->resources, "/scratch", 1)
                                 : write_file(folder ? folder : m->resources, "/large", (size_t)4 << 20);
    }
    return OK;
}
API int fmi2SetReal(void *c, const unsigned *r, size_t count, const double *value) {
    return (void)c, (void)r, (void)value, count ? ERROR : OK;
}
API int fmi2GetInteger(void *c, const unsigned *r, size_t count, int *value) {
    for (size_t k = 0; k < count; k++) value[k] = r[k] < ATTACKS ? ((model *)c)->outcome[r[k]] : 0;
    return OK;
}
API int fmi2SetInteger(void *c, const unsigned *r, size_t count, const int *value) {
    model *m = c;
    for (size_t k = 0; k < count; k++) *(r[k] == PORT ? &m->port : r[k] == VICTIM ? &m->victim : &m->mode) = value[k];
    return OK;
}
API int fmi2GetBoolean(void *c, const unsigned *r, size_t count, int *value) {
    return (void)c, (void)r, (void)value, count ? ERROR : OK;
}
API int fmi2SetBoolean(void *c, const unsigned *r, size_t count, const int *value) {
    return (void)c, (void)r, (void)value, count ? ERROR : OK;
}
API int fmi2GetString(void *c, const unsigned *r, size_t count, const char **value) {
    return (void)c, (void)r, (void)value, count ? ERROR : OK;
}
API int fmi2SetString(void *c, const unsigned *r, size_t count, const char *const *value) {
    model *m = c;
    for (size_t k = 0; k < count; k++) {
        char *to = r[k] == SECRET ? m->secret : r[k] == TARGET ? m->target : r[k] == MADE ? m->made : m->unix_name;
        strncpy(to, value[k], r[k] == SOCKET ? 99 : 511);
    }
    return OK;
}
API int fmi2DoStep(void *c, double t, double h, int no_return) {
    (void)no_return;
    model *m = c;
    const int first = m->t == t && t == 0.0;
    m->t = t + h;
    if (m->mode == NONE) return first ? attack(m), OK : OK;
    return first ? OK : end(m);
}
API int fmi2GetRealStatus(void *c, int kind, double *value) { return (void)kind, *value = ((model *)c)->t, OK; }
API int fmi2GetBooleanStatus(void *c, int kind, int *value) { return (void)c, (void)kind, *value = 0, OK; }
