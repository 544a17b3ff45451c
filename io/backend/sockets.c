/* Plain system calls on sockets, for the backends whose descriptors are those of the kernel. A
 * thread is woken by an eventfd. The eventfd is read only by a thread whose ring has failed,
 * because every write to it fires the poll of a working ring. */
#include "io/backend/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static int sockets_open_socket(void *ring, int family, int type)
{
    int fd = socket(family, type | SOCK_CLOEXEC, 0);

    (void)ring;
    return fd >= 0 ? fd : -errno;
}

static int sockets_bind(void *ring, int fd, const struct sockaddr *address, socklen_t size)
{
    (void)ring;
    return bind(fd, address, size) == 0 ? 0 : -errno;
}

static int sockets_listen(void *ring, int fd, int backlog)
{
    (void)ring;
    return listen(fd, backlog) == 0 ? 0 : -errno;
}

static int sockets_connect(void *ring, int fd, const struct sockaddr *address, socklen_t size)
{
    (void)ring;
    return connect(fd, address, size) == 0 ? 0 : -errno;
}

static int sockets_accept(void *ring, int listener)
{
    int flags = fcntl(listener, F_GETFL);

    (void)ring;
    if (flags < 0)
        return -EINVAL;
    if ((flags & O_NONBLOCK) == 0 && fcntl(listener, F_SETFL, flags | O_NONBLOCK) != 0)
        return -EINVAL;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    return fd >= 0 ? fd : -errno;
}

static int sockets_shutdown(void *ring, int fd, int how)
{
    (void)ring;
    return shutdown(fd, how) == 0 ? 0 : -errno;
}

static int sockets_close(void *ring, int fd)
{
    (void)ring;
    return close(fd) == 0 ? 0 : -errno;
}

static int sockets_option_get(void *ring, int fd, int level, int name, void *value, socklen_t *size)
{
    (void)ring;
    return getsockopt(fd, level, name, value, size) == 0 ? 0 : -errno;
}

static int sockets_option_set(void *ring, int fd, int level, int name, const void *value,
                              socklen_t size)
{
    (void)ring;
    return setsockopt(fd, level, name, value, size) == 0 ? 0 : -errno;
}

static int sockets_ioctl(void *ring, int fd, unsigned long request, int *ret_value)
{
    int value = 0;

    (void)ring;
    /* musl declares the request of ioctl() as an int */
    if (syscall(SYS_ioctl, fd, request, &value) != 0)
        return -errno;
    *ret_value = value;
    return 0;
}

static int sockets_get_address(void *ring, int fd, bool is_peer, struct sockaddr *address,
                               socklen_t *size)
{
    int result = is_peer ? getpeername(fd, address, size) : getsockname(fd, address, size);

    (void)ring;
    return result == 0 ? 0 : -errno;
}

static int sockets_open_wake_descriptor(void *ring)
{
    int fd = eventfd(0, EFD_CLOEXEC);

    (void)ring;
    return fd >= 0 ? fd : -errno;
}

static void sockets_wake_thread(void *ring, int fd)
{
    (void)ring;
    /* This write cannot fail: EAGAIN would need 2^64 - 2 writes, and EINTR is the only other error
     * of an eventfd. */
    while (eventfd_write(fd, 1) != 0 && errno == EINTR)
        continue;
}

static void sockets_wait_for_wake(void *ring, int fd, uint64_t timeout_ns)
{
    struct pollfd wake = {.fd = fd, .events = POLLIN};
    const struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / 1000000000u),
        .tv_nsec = (long)(timeout_ns % 1000000000u),
    };
    eventfd_t wakes;

    (void)ring;
    if (ppoll(&wake, 1, &timeout, NULL) > 0)
        (void)eventfd_read(fd, &wakes);
}

static void sockets_pause_thread(void *ring, uint64_t ns)
{
    const struct timespec time = {
        .tv_sec = (time_t)(ns / 1000000000u),
        .tv_nsec = (long)(ns % 1000000000u),
    };

    (void)ring;
    (void)ppoll(NULL, 0, &time, NULL);
}

const domi_sockets domi_kernel_sockets = {
    .socket = sockets_open_socket,
    .bind = sockets_bind,
    .listen = sockets_listen,
    .connect = sockets_connect,
    .accept = sockets_accept,
    .shutdown = sockets_shutdown,
    .close = sockets_close,
    .option_get = sockets_option_get,
    .option_set = sockets_option_set,
    .ioctl = sockets_ioctl,
    .address = sockets_get_address,
    .wake_open = sockets_open_wake_descriptor,
    .wake = sockets_wake_thread,
    .wake_wait = sockets_wait_for_wake,
    .pause = sockets_pause_thread,
};
