#if !defined(_WIN32)

#include "scheduler/devices/wire/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct addrinfo *resolve(const char *host, int32_t port, const struct addrinfo *wanted, char *message,
                                size_t message_size) {
    struct addrinfo *found = NULL;
    char service[16];
    snprintf(service, sizeof service, "%d", (int)port);
    const int error = getaddrinfo(host, service, wanted, &found);
    if (error == 0) return found;
    snprintf(message, message_size,
             "address %s: %s; check the spelling, for example with `ping`, or use an IP address such as 192.168.1.20",
             host ? host : "of loopback", gai_strerror(error));
    return NULL;
}

struct addrinfo *bl_find_address(const char *host, int32_t port, int type, char *message, size_t message_size) {
    const struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = type, .ai_flags = AI_NUMERICSERV};
    return resolve(host, port, &wanted, message, message_size);
}

static bool is_loopback(const struct sockaddr *a) {
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

struct addrinfo *bl_find_own_address(const char *bind_to, int32_t bind_port, int type, const char *host,
                                     const struct addrinfo *peer, char *message, size_t message_size) {
    if (peer && !bind_to && !is_loopback(peer->ai_addr)) {
        snprintf(message, message_size,
                 "%s is another machine: set `bind`, the local address by which it reaches this machine (0.0.0.0 or :: "
                 "for all addresses)",
                 host);
        return NULL;
    }
    const struct addrinfo wanted = {.ai_family = peer      ? peer->ai_family
                                                 : bind_to ? AF_UNSPEC
                                                           : AF_INET,
                                    .ai_socktype = type,
                                    .ai_flags = (bind_to ? AI_PASSIVE : 0) | AI_NUMERICSERV};
    return resolve(bind_to, bind_port, &wanted, message, message_size);
}

int bl_set_not_waiting(int fd) {
    return fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? 0 : -errno;
}

int bl_open_socket(int family, int type) {
    const int fd = socket(family, type, 0);
    const int error = fd >= 0 ? bl_set_not_waiting(fd) : 0;
    if (error == 0) return fd;
    close(fd);
    errno = -error;
    return -1;
}

bool bl_bind_socket(int fd, const struct addrinfo *own, char *message, size_t message_size) {
    if (bind(fd, own->ai_addr, own->ai_addrlen) == 0) return true;
    snprintf(message, message_size, "the local address cannot be bound: %s%s", strerror(errno),
             errno == EADDRINUSE      ? "; another program uses it, choose another bind_port"
             : errno == EADDRNOTAVAIL ? "; bind must be an address of this machine"
                                      : "");
    return false;
}

bool bl_is_same_machine(const struct sockaddr *a, const struct sockaddr *b) {
    if (a->sa_family != b->sa_family) return false;
    if (a->sa_family == AF_INET) {
        const struct sockaddr_in *x = (const void *)a, *y = (const void *)b;
        return x->sin_addr.s_addr == y->sin_addr.s_addr;
    }
    const struct sockaddr_in6 *x = (const void *)a, *y = (const void *)b;
    return memcmp(&x->sin6_addr, &y->sin6_addr, sizeof x->sin6_addr) == 0;
}

int32_t bl_port_of(const struct sockaddr *a) {
    return ntohs(a->sa_family == AF_INET ? ((const struct sockaddr_in *)(const void *)a)->sin_port
                                         : ((const struct sockaddr_in6 *)(const void *)a)->sin6_port);
}

#else

typedef int bl_no_sockets; /* a file may not be empty */

#endif
