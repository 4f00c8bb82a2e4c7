/* Addresses and sockets, for network drivers. `message` receives the reason of a failure. */
#ifndef BIELLA_SOCKETS_H
#define BIELLA_SOCKETS_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The addresses of a device, for freeaddrinfo; `type` as for socket(). NULL with the reason. */
struct addrinfo *bl_find_address(const char *host, int32_t port, int type, char *message, size_t message_size);
/* The same for the local address, to which `peer` (NULL: any) sends. Without a bind address it is the loopback address;
   a peer on another machine requires one. `host` is the name of the peer. */
struct addrinfo *bl_find_own_address(const char *bind_to, int32_t bind_port, int type, const char *host,
                                     const struct addrinfo *peer, char *message, size_t message_size);
/* A socket that never waits, or -1 with errno. */
int bl_open_socket(int family, int type);
/* Likewise for one that was accepted: 0, or an errno with its sign changed. */
int bl_set_not_waiting(int fd);
/* Binds it to the first of the addresses; false with the reason. */
bool bl_bind_socket(int fd, const struct addrinfo *own, char *message, size_t message_size);

bool bl_is_same_machine(const struct sockaddr *a, const struct sockaddr *b);
int32_t bl_port_of(const struct sockaddr *a);

#endif
