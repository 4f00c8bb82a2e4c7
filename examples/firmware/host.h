/* The board as a process on a PC: on a pseudo-terminal, whose path it prints, or, with UDP=port in the environment, on that
 * port of this machine (0: any free one; it is printed). UDP answers go to whoever has sent the last good frame. */
#ifndef HOST_H
#define HOST_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static int line = -1;
static uint8_t is_udp;
static struct sockaddr_in peer,
    asking; /* of UDP; port 0: none yet; who is answered: the peer, or who begins a session */
static uint64_t last_ms;

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void open_terminal(void) {
    struct termios mode;
    line = posix_openpt(O_RDWR | O_NOCTTY);
    if (line < 0 || grantpt(line) || unlockpt(line)) fail("pseudo-terminal");
    if (tcgetattr(line, &mode)) fail("pseudo-terminal");
    cfmakeraw(&mode);
    tcsetattr(line, TCSANOW, &mode);
    /* A side that has never been opened looks open: open and close it, so that nothing is written to nobody. */
    close(open(ptsname(line), O_RDWR | O_NOCTTY));
    printf("%s\n", ptsname(line));
}

static void open_port(const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    socklen_t size = sizeof address;
    is_udp = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    line = socket(AF_INET, SOCK_DGRAM, 0);
    if (line < 0 || bind(line, (struct sockaddr *)&address, size)) fail("UDP port");
    getsockname(line, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
}

#if BIELLA_AUTH
static void board_boot(uint8_t *boot) {
    if (getentropy(boot, 16)) fail("random numbers");
}
#endif

static void board_start(void) {
    if (getenv("UDP")) open_port(getenv("UDP"));
    else open_terminal();
    if (fcntl(line, F_SETFL, O_NONBLOCK)) fail("line");
    fflush(stdout);
    last_ms = now_ms();
}

/* One byte at a time, as on a board: a frame may be followed by others, and each is answered. */
static uint8_t board_receive(biella_device *d) {
    uint8_t bytes[2048];
    if (!is_udp) {
        while (read(line, bytes, 1) == 1) {
            const uint8_t result = biella_feed(d, bytes[0]);
            if (result) return result;
        }
        return 0;
    }
    struct sockaddr_in sender;
    socklen_t size = sizeof sender;
    const ssize_t length = recvfrom(line, bytes, sizeof bytes, 0, (struct sockaddr *)&sender, &size);
    if (length < 0) return 0;
    const uint8_t is_other = sender.sin_port != peer.sin_port || sender.sin_addr.s_addr != peer.sin_addr.s_addr;
    if (is_other && !biella_is_safe(d)) return 0;
    const uint8_t result = biella_datagram(d, bytes, (uint16_t)length);
    if (result) asking = sender;
    if (result == 1) peer = sender;
    return result;
}

/* What the line has no room for is lost, as on a board. */
static void board_send(biella_device *d, const float *values) {
    uint8_t bytes[BIELLA_WIRE_SIZE];
    const uint16_t length = is_udp ? biella_pack(d, values, bytes) : biella_encode(d, values, bytes);
    struct pollfd state = {.fd = line, .events = POLLOUT};
    ssize_t written = 0;
    if (is_udp && asking.sin_port) written = sendto(line, bytes, length, 0, (struct sockaddr *)&asking, sizeof asking);
    else if (!is_udp && poll(&state, 1, 0) == 1 && !(state.revents & POLLHUP)) written = write(line, bytes, length);
    (void)written;
    asking = peer.sin_port ? peer : asking;
}

static uint8_t board_elapsed(void) {
    const uint64_t passed = now_ms() - last_ms;
    const uint8_t told = (uint8_t)(passed > 200u ? 200u : passed);
    last_ms += told;
    return told;
}

static void board_wait(void) {
    struct pollfd state = {.fd = line, .events = POLLIN};
    poll(&state, 1, 1);
    if (state.revents & POLLHUP) usleep(1000); /* nobody has the other side open: poll does not wait then */
}

static void board_show(uint8_t running) { (void)running; }

#endif
