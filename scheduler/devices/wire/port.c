#if !defined(_WIN32)

#include "scheduler/devices/wire/port.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <unistd.h>

#if defined(__linux__)
#include <asm/termbits.h> /* termios2, for any baud; <termios.h> cannot stand beside it */
#include <linux/serial.h>
#else
#include <termios.h>
#endif

#include "scheduler/realtime/loop/clock.h"
#include "scheduler/devices/wire/outbox.h"

enum { RETRY_MS = 100 };

struct bl_port {
    char path[256];
    int32_t baud;
    uint8_t delimiter;
    int fd;              /* -1: gone */
    bool cut;            /* a message may have gone out in part: the next begins with a delimiter */
    bl_outbox out;

    /* The thread that gets the port back: it is sent the descriptor to close, and leaves a new one. */
    pthread_t opener;
    int orders[2];       /* a pipe */
    atomic_int reopened; /* -1: none */
};

#if defined(__linux__)

static int read_speed(int fd, int32_t *baud) {
    struct termios2 line;
    if (ioctl(fd, TCGETS2, &line) != 0) return -errno;
    *baud = (int32_t)line.c_ospeed;
    return 0;
}

static int make_raw(int fd, int32_t baud) {
    struct termios2 line;
    if (ioctl(fd, TCGETS2, &line) != 0) return -errno;
    line.c_iflag = IGNPAR;
    line.c_oflag = 0;
    line.c_lflag = 0;
    line.c_cflag &= (tcflag_t) ~(CBAUD | CIBAUD | CSIZE | CSTOPB | PARENB | CRTSCTS);
    line.c_cflag |= BOTHER | CS8 | CREAD | CLOCAL;
    line.c_ispeed = line.c_ospeed = (speed_t)baud;
    line.c_cc[VMIN] = 1; /* a read can then distinguish no data from a port that has hung up */
    line.c_cc[VTIME] = 0;
    return ioctl(fd, TCSETS2, &line) == 0 ? 0 : -errno;
}

/* Low latency, where the driver supports it: received bytes are passed on immediately. Optional. */
static void ask_for_low_latency(int fd) {
    struct serial_struct settings;
    if (ioctl(fd, TIOCGSERIAL, &settings) != 0) return;
    settings.flags = (int)((unsigned)settings.flags | (unsigned)ASYNC_LOW_LATENCY);
    (void)ioctl(fd, TIOCSSERIAL, &settings);
}

static void discard(int fd, bool both) { (void)ioctl(fd, TCFLSH, both ? TCIOFLUSH : TCOFLUSH); }

#else

static int read_speed(int fd, int32_t *baud) {
    struct termios line;
    if (tcgetattr(fd, &line) != 0) return -errno;
    *baud = (int32_t)cfgetospeed(&line);
    return 0;
}

static int make_raw(int fd, int32_t baud) {
    struct termios line;
    if (tcgetattr(fd, &line) != 0) return -errno;
    cfmakeraw(&line);
    line.c_cflag |= CREAD | CLOCAL;
    line.c_cc[VMIN] = 1;
    line.c_cc[VTIME] = 0;
    if (cfsetspeed(&line, (speed_t)baud) != 0 || tcsetattr(fd, TCSANOW, &line) != 0) return -errno;
    return 0;
}

static void ask_for_low_latency(int fd) { (void)fd; }

static void discard(int fd, bool both) { (void)tcflush(fd, both ? TCIOFLUSH : TCOFLUSH); }

#endif

static int fail_open(const bl_port *p, int fd, int error, const char *advice, char *message, size_t message_size) {
    if (message) snprintf(message, message_size, "serial port %s: %s%s", p->path, strerror(error), advice);
    if (fd >= 0) close(fd);
    errno = error;
    return -1;
}

/* Returns a configured open port, or -1 with the reason in `message`, if given. */
static int open_line(const bl_port *p, char *message, size_t message_size) {
    const int fd = open(p->path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        const char *advice = errno == EACCES ? "; join the group that owns it (often dialout), then log in again"
                             : errno == ENOENT || errno == ENODEV
                                 ? "; check that it is plugged in: on Linux, ls /dev/serial/by-id lists the devices"
                             : errno == EBUSY ? "; another program uses it exclusively"
                                              : "";
        return fail_open(p, fd, errno, advice, message, message_size);
    }
    /* The lock keeps out root too, which TIOCEXCL does not. */
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || ioctl(fd, TIOCEXCL) != 0) {
        const int error = errno;
        return fail_open(p, fd, error,
                         error == EWOULDBLOCK ? "; another program uses it exclusively" : "; it is not a serial port",
                         message, message_size);
    }
    const int error = make_raw(fd, p->baud);
    if (error) return fail_open(p, fd, -error, "; check that the port supports this baud rate", message, message_size);
    int32_t baud = 0;
    if (read_speed(fd, &baud) == 0 &&
        llabs((long long)baud - p->baud) * 50 > p->baud) { /* 2 %: a byte still arrives whole */
        char advice[80];
        snprintf(advice, sizeof advice, "; it uses %d baud instead of %d", (int)baud, (int)p->baud);
        return fail_open(p, fd, EINVAL, advice, message, message_size);
    }
    ask_for_low_latency(fd);
    discard(fd, true);
    return fd;
}

static void close_line(int fd) {
    if (fd < 0) return;
    (void)ioctl(fd, TIOCNXCL);
    close(fd);
}

/* Waits for the pipe to have an order, or to be closed. */
static bool has_order(const bl_port *p, int timeout_ms) {
    struct pollfd order = {.fd = p->orders[0], .events = POLLIN};
    return poll(&order, 1, timeout_ms) != 0;
}

static void *run_opener(void *argument) {
    bl_port *p = argument;
    for (;;) {
        int fd = -1;
        const ssize_t got = read(p->orders[0], &fd, sizeof fd);
        if (got < 0 && errno == EINTR) continue;
        if (got != (ssize_t)sizeof fd) return NULL;
        close_line(fd);
        do fd = open_line(p, NULL, 0);
        while (fd < 0 && !has_order(p, RETRY_MS));
        if (fd >= 0) atomic_store(&p->reopened, fd);
    }
}

/* Signals are for the threads that expect them. */
static int start_opener(bl_port *p) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&p->opener, NULL, run_opener, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

bl_port *bl_port_open(const char *path, int32_t baud, uint8_t delimiter, char *message, size_t message_size) {
    bl_port *p = calloc(1, sizeof *p);
    if (!p) {
        snprintf(message, message_size, "serial port %s: out of memory", path);
        return NULL;
    }
    const int length = snprintf(p->path, sizeof p->path, "%s", path);
    p->baud = baud;
    p->delimiter = delimiter;
    p->cut = true;
    atomic_init(&p->reopened, -1);
    p->fd = -1;
    if (baud <= 0) snprintf(message, message_size, "serial port %s: %d is not a baud rate", path, (int)baud);
    else if (length < 0 || (size_t)length >= sizeof p->path)
        snprintf(message, message_size, "serial port %s: the name is too long", p->path);
    else p->fd = open_line(p, message, message_size);
    if (p->fd >= 0 && pipe(p->orders) == 0) {
        (void)fcntl(p->orders[0], F_SETFD, FD_CLOEXEC);
        (void)fcntl(p->orders[1], F_SETFD, FD_CLOEXEC);
        if (start_opener(p) == 0) return p;
        close(p->orders[0]);
        close(p->orders[1]);
    }
    if (p->fd >= 0) {
        snprintf(message, message_size, "serial port %s: no more threads or files are available", path);
        close(p->fd);
    }
    free(p);
    return NULL;
}

void bl_port_close(bl_port *p) {
    if (!p) return;
    close(p->orders[1]);
    pthread_join(p->opener, NULL);
    close(p->orders[0]);
    close_line(p->fd);
    close_line(atomic_load(&p->reopened));
    free(p);
}

/* Closing can take long too: the other thread does it. The pipe has room for it, as there is at most one order at a time. */
static int give_up(bl_port *p, int error) {
    (void)!write(p->orders[1], &p->fd, sizeof p->fd);
    p->fd = -1;
    return -error;
}

int bl_port_descriptor(const bl_port *p) { return p->fd; }

int bl_port_reopen(bl_port *p) {
    if (p->fd >= 0) return 0;
    p->fd = atomic_exchange(&p->reopened, -1);
    bl_outbox_clear(&p->out);
    p->cut = true;
    return p->fd >= 0 ? 0 : -ENODEV;
}

int bl_port_read(bl_port *p, uint8_t *bytes, size_t room) {
    if (p->fd < 0) return -ENODEV;
    /* Where nothing waits, Linux lets also a read that must not block wait until a worker of the kernel has brought what the hardware
       has: for a second on a busy machine. So it is asked first. A port that has hung up refuses to tell. */
    int waiting = 0;
    if (ioctl(p->fd, FIONREAD, &waiting) != 0) return give_up(p, errno);
    if (waiting == 0) return 0;
    for (;;) {
        const ssize_t got = read(p->fd, bytes, room);
        if (got > 0) return (int)got;
        if (got == 0) return give_up(p, EIO); /* hung up */
        if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
        if (errno != EINTR) return give_up(p, errno);
    }
}

/* More than two messages are queued: a new one would be stale on arrival. */
static bool is_behind(const bl_port *p, size_t size) {
    int waiting = 0;
    return ioctl(p->fd, TIOCOUTQ, &waiting) == 0 && waiting > 0 && (size_t)waiting > 2 * size;
}

static int begin_message(bl_port *p, const uint8_t *bytes, size_t size) {
    const int status = bl_outbox_begin(&p->out, p->fd, write, p->cut ? p->delimiter : -1, bytes, size);
    if (status == 0) p->cut = false;
    return status;
}

int bl_port_write(bl_port *p, const uint8_t *bytes, size_t size, bool urgent) {
    if (p->fd < 0) return -ENODEV;
    if (size > BL_MESSAGE_ROOM) return -EMSGSIZE;
    int status = bl_outbox_push(&p->out, p->fd, write);
    if (status == 0) status = is_behind(p, size) ? -EAGAIN : begin_message(p, bytes, size);
    if (status == -EAGAIN && urgent) {
        discard(p->fd, false);
        p->cut = true;
        status = begin_message(p, bytes, size);
    }
    return status == 0 || status == -EAGAIN ? status : give_up(p, -status);
}

int bl_port_wait(bl_port *p, int64_t deadline) {
    if (p->fd < 0) {
        bl_clock_sleep_until(deadline);
        return 0;
    }
    struct pollfd line = {.fd = p->fd, .events = POLLIN};
    return bl_poll_until(&line, 1, deadline) > 0;
}

#else

typedef int bl_no_port; /* a file may not be empty */

#endif
