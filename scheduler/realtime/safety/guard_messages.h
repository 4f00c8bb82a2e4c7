/* Messages between a run and its guard, with at most one descriptor each. */
#ifndef BIELLA_GUARD_MESSAGES_H
#define BIELLA_GUARD_MESSAGES_H

#if !defined(_WIN32)

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BL_GUARD_HELLO, BL_GUARD_LINE, BL_GUARD_END, BL_GUARD_ANSWER };

typedef struct {
    int32_t kind, line;
    uint32_t generation;
} bl_run_guard_message;

/* 0, or a negative errno. `descriptor` of -1: none. */
static inline int bl_run_guard_post(int channel, const bl_run_guard_message *message, int descriptor) {
    bl_run_guard_message copy = *message;
    struct iovec bytes = {.iov_base = &copy, .iov_len = sizeof copy};
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {0};
    struct msghdr head = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (descriptor >= 0) {
        head.msg_control = room;
        head.msg_controllen = sizeof room;
        struct cmsghdr *item = CMSG_FIRSTHDR(&head);
        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(item), &descriptor, sizeof descriptor);
    }
    for (;;) {
        if (sendmsg(channel, &head, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return 0;
        if (errno != EINTR) return -errno;
    }
}

/* 1 if there was one; 0 if there is none; -1 if the other side is gone. */
static inline int bl_run_guard_take(int channel, bl_run_guard_message *message, int *descriptor) {
    struct iovec bytes = {.iov_base = message, .iov_len = sizeof *message};
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {0};
    struct msghdr head = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    *descriptor = -1;
    const ssize_t got = recvmsg(channel, &head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
    if (got == 0) return -1;
    struct cmsghdr *item = CMSG_FIRSTHDR(&head);
    if (item && item->cmsg_type == SCM_RIGHTS) memcpy(descriptor, CMSG_DATA(item), sizeof *descriptor);
    return got == (ssize_t)sizeof *message ? 1 : 0;
}

#endif

#endif
