/* Where there is neither termios nor BSD sockets. */
#include "scheduler/devices/drivers.h"

#if defined(_WIN32)

#include <stdio.h>

static bl_device *fail_driver(const char *name, const char *kind, char *message, size_t message_size) {
    snprintf(message, message_size,
             "device `%s`: %s devices are not supported on this platform; use a driver in Python (entry point "
             "biella.drivers), or Linux or "
             "macOS",
             name, kind);
    return NULL;
}

bl_device *bl_serial_open(const char *name, const char *port, int32_t baud, int32_t in_count, int32_t out_count,
                          int32_t flags, char *message, size_t message_size) {
    (void)port, (void)baud, (void)in_count, (void)out_count, (void)flags;
    return fail_driver(name, "serial", message, message_size);
}

bl_device *bl_text_open(const char *name, const char *port, int32_t baud, int32_t in_count, int32_t out_count,
                        int32_t flags, char *message, size_t message_size) {
    (void)port, (void)baud, (void)in_count, (void)out_count, (void)flags;
    return fail_driver(name, "serial", message, message_size);
}

bl_device *bl_udp_open(const char *name, const char *host, int32_t port, const char *bind, int32_t bind_port,
                       int32_t in_count, int32_t out_count, int32_t flags, char *message, size_t message_size) {
    (void)host, (void)port, (void)bind, (void)bind_port, (void)in_count, (void)out_count, (void)flags;
    return fail_driver(name, "UDP", message, message_size);
}

bl_device *bl_tcp_open(const char *name, const char *host, int32_t port, const char *bind, int32_t bind_port,
                       int32_t in_count, int32_t out_count, int32_t flags, char *message, size_t message_size) {
    (void)host, (void)port, (void)bind, (void)bind_port, (void)in_count, (void)out_count, (void)flags;
    return fail_driver(name, "TCP", message, message_size);
}

int32_t bl_udp_bound_port(const bl_device *d) {
    (void)d;
    return 0;
}

#endif
