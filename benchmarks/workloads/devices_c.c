/* What a tick pays for a device: bl_device_take + bl_device_give with ten values each way, beside the bare system calls for the same
 * bytes. The other end is in this program too; its time is not counted. Prints "name ours bare", medians in ns. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "scheduler/realtime/loop/clock.h"
#include "scheduler/devices/drivers.h"
#include "scheduler/devices/wire/frame.h"

enum { VALUES = 10, MOST = 100000 };

static int64_t times[MOST];
static double values[VALUES];

static void enter(void *context, int64_t slot, double value) {
    (void)context;
    if (slot < VALUES) values[slot] = value;
}

static int compare(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static long long median(int ticks) {
    qsort(times, (size_t)ticks, sizeof *times, compare);
    return times[ticks / 2];
}

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void set_up(bl_device *d) {
    bl_channel channels[VALUES];
    for (int k = 0; k < VALUES; k++)
        channels[k] = (bl_channel){.name = "value", .slot = k, .scale = 0.5, .low = -1e6, .high = 1e6};
    if (bl_device_set_channels(d, channels, channels) != BL_OK) fail(bl_device_why(d));
    bl_device_set_slots(d, VALUES, VALUES + 1, VALUES + 2);
}

static ssize_t read_all(int fd, uint8_t *bytes, size_t room) {
    struct pollfd line = {.fd = fd, .events = POLLIN};
    if (poll(&line, 1, 10000) != 1) fail("nothing comes");
    return read(fd, bytes, room);
}

/* The session, as the host's first frame tells it. */
static uint16_t learn_session(const uint8_t *bytes, ssize_t size) {
    bl_frame_head head;
    double told[VALUES];
    if (size < 0 || !bl_frame_read(bytes, (size_t)size, VALUES, &head, told)) fail("no frame of the host");
    return head.session;
}

/* Ticks of a device whose other end is `peer`; returns the median. */
static long long time_device(bl_device *d, int peer, int ticks, bool is_serial, bool is_text) {
    uint8_t bytes[4096], stuffed[4096];
    uint16_t session = 0;
    for (int k = -1; k < ticks; k++) {
        /* The text driver drops what comes before the first end of a line: it may be the rest of one. */
        if (k < 0 && is_text && (write(peer, "\n", 1) != 1 || d->driver->wait(d, bl_clock_now() + 1000000000) != 1))
            fail("the other end cannot send");
        if (k >= 0) {
            const bl_frame_head head = {.sequence = (uint32_t)k + 1, .echo = (uint32_t)k + 1, .session = session};
            size_t size = bl_frame_write(&head, values, VALUES, bytes);
            if (is_text)
                size = (size_t)snprintf((char *)bytes, sizeof bytes, "1.5,2.5,3.5,4.5,5.5,6.5,7.5,8.5,9.5,0.5\n");
            else if (is_serial) {
                size = bl_stuff(bytes, size, stuffed);
                stuffed[size++] = 0;
                memcpy(bytes, stuffed, size);
            }
            if (write(peer, bytes, size) != (ssize_t)size) fail("the other end cannot send");
            if (d->driver->wait(d, bl_clock_now() + 1000000000) != 1) fail("nothing arrives");
        }
        const int64_t begin = bl_clock_now();
        const int status = bl_device_take(d, k + 1, begin, enter, NULL);
        const int given = bl_device_give(d, k + 1, values);
        if (k >= 0) times[k] = bl_clock_now() - begin;
        if (status != BL_OK || given != BL_OK) fail(bl_device_why(d));
        ssize_t size = read_all(peer, bytes, sizeof bytes);
        if (k < 0 && !is_text) {
            if (is_serial) size = (ssize_t)bl_unstuff(bytes + 1, (size_t)size - 2, stuffed, sizeof stuffed);
            session = learn_session(is_serial ? stuffed : bytes, size);
        }
    }
    if (d->counts.frames != ticks) fail("not all frames were accepted");
    return median(ticks);
}

static int open_socket(struct sockaddr_in *own) {
    socklen_t length = sizeof *own;
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    *own = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0 || bind(fd, (struct sockaddr *)own, sizeof *own) != 0 ||
        getsockname(fd, (struct sockaddr *)own, &length) != 0)
        fail("no socket");
    return fd;
}

static void meet(int fd, const struct sockaddr_in *other) {
    if (connect(fd, (const struct sockaddr *)other, sizeof *other) != 0) fail("no connection");
}

/* Reading until there is nothing more, and writing `size` bytes: what no driver can do without. */
static long long time_bare(int own, int peer, int ticks, size_t size) {
    uint8_t bytes[4096] = {0};
    (void)fcntl(own, F_SETFL, O_NONBLOCK);
    for (int k = 0; k < ticks; k++) {
        struct pollfd line = {.fd = own, .events = POLLIN};
        if (write(peer, bytes, size) != (ssize_t)size || poll(&line, 1, 10000) != 1) fail("nothing arrives");
        const int64_t begin = bl_clock_now();
        while (read(own, bytes, sizeof bytes) > 0) {
        }
        if (write(own, bytes, size) != (ssize_t)size) fail("cannot send");
        times[k] = bl_clock_now() - begin;
        read_all(peer, bytes, sizeof bytes);
    }
    return median(ticks);
}

static void time_udp(int ticks) {
    struct sockaddr_in own, other;
    char message[200];
    int peer = open_socket(&other);
    bl_device *d =
        bl_udp_open("bench", "127.0.0.1", ntohs(other.sin_port), "", 0, VALUES, VALUES, 0, message, sizeof message);
    if (!d) fail(message);
    set_up(d);
    own = other;
    own.sin_port = htons((uint16_t)bl_udp_bound_port(d));
    meet(peer, &own);
    const long long ours = time_device(d, peer, ticks, false, false);
    bl_device_close(d);
    close(peer);
    peer = open_socket(&other);
    const int bare = open_socket(&own);
    meet(peer, &own);
    meet(bare, &other);
    printf("UDP %lld %lld\n", ours, time_bare(bare, peer, ticks, 60));
}

static int open_pty(char *name, size_t size) {
    const int fd = posix_openpt(O_RDWR | O_NOCTTY);
    if (fd < 0 || grantpt(fd) != 0 || unlockpt(fd) != 0 || ptsname_r(fd, name, size) != 0) fail("no pty");
    struct termios line;
    tcgetattr(fd, &line);
    cfmakeraw(&line);
    tcsetattr(fd, TCSANOW, &line);
    return fd;
}

static void time_serial(int ticks, bool is_text) {
    char name[64], message[200];
    const int peer = open_pty(name, sizeof name);
    bl_device *d = is_text ? bl_text_open("bench", name, 115200, VALUES, VALUES, 0, message, sizeof message)
                           : bl_serial_open("bench", name, 115200, VALUES, VALUES, 0, message, sizeof message);
    if (!d) fail(message);
    set_up(d);
    const long long ours = time_device(d, peer, ticks, true, is_text);
    bl_device_close(d);
    const int bare = open(name, O_RDWR | O_NOCTTY);
    printf("%s %lld %lld\n", is_text ? "text" : "serial", ours, time_bare(bare, peer, ticks, is_text ? 41 : 62));
    close(bare);
    close(peer);
}

int main(int argc, char **argv) {
    const int ticks = argc > 1 ? atoi(argv[1]) : 10000;
    if (ticks < 1 || ticks > MOST) fail("so many ticks cannot be");
    time_udp(ticks);
    time_serial(ticks, false);
    time_serial(ticks, true);
    return 0;
}
