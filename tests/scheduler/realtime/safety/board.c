/* A board on UDP, made of examples/firmware/biella_device.h: prints its port, and then the time and the state of its
 * actuator whenever that changes. Its watchdog trips after 100 ms. */
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <time.h>

#define BIELLA_RECEIVES 1
#define BIELLA_SENDS 1
#include "biella_device.h"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(void) {
    biella_device device;
    struct sockaddr_in own = {.sin_family = AF_INET}, peer;
    socklen_t length = sizeof own;
    const int s = socket(AF_INET, SOCK_DGRAM, 0);
    double last = now();
    int was_safe = -1;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(s, (struct sockaddr *)&own, sizeof own) || getsockname(s, (struct sockaddr *)&own, &length)) return 1;
    printf("%d\n", ntohs(own.sin_port));
    fflush(stdout);
    biella_init(&device, 100);
    for (;;) {
        struct pollfd line = {.fd = s, .events = POLLIN};
        uint8_t bytes[256];
        poll(&line, 1, 1);
        length = sizeof peer;
        const ssize_t got = recvfrom(s, bytes, sizeof bytes, MSG_DONTWAIT, (struct sockaddr *)&peer, &length);
        if (got == 0) return 0;
        if (got > 0 && biella_datagram(&device, bytes, (uint16_t)got)) {
            biella_real answer = 0;
            sendto(s, bytes, biella_pack(&device, &answer, bytes), 0, (struct sockaddr *)&peer, length);
        }
        const double present = now();
        const int elapsed = (int)(1000 * (present - last));
        if (elapsed > 0) {
            biella_elapsed(&device, (uint8_t)(elapsed > 255 ? 255 : elapsed));
            last = present;
        }
        const int is_safe = biella_is_safe(&device);
        if (is_safe != was_safe) {
            printf("%.6f %d\n", present, is_safe);
            fflush(stdout);
        }
        was_safe = is_safe;
    }
}
