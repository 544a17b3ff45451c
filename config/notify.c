/* Sends messages to a supervisor of the process (notify.h). */
#include "config/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* Read the address of a supervisor's socket from its text. An abstract name begins with a 0 byte in
 * place of the '@', and has no NUL. */
static int read_address_of_supervisor(const char *address, domi_notify *ret_notify)
{
    size_t length = strlen(address);

    if (length < 2 || (address[0] != '/' && address[0] != '@'))
        return -EINVAL;
    if (length >= sizeof ret_notify->to.sun_path)
        return -ENAMETOOLONG;
    ret_notify->to = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret_notify->to.sun_path, address, length + 1);
    if (address[0] == '@')
        ret_notify->to.sun_path[0] = '\0';
    ret_notify->size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (address[0] == '/' ? 1 : 0));
    return 0;
}

int domi_notify_open_socket(const char *address, domi_notify *ret_notify)
{
    const struct timeval wait = {.tv_sec = DOMI_NOTIFY_WAIT_MS / 1000,
                                 .tv_usec = DOMI_NOTIFY_WAIT_MS % 1000 * 1000};
    int result = read_address_of_supervisor(address, ret_notify);

    ret_notify->fd = -1;
    if (result != 0)
        return result;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    ret_notify->fd = fd;
    return 0;
}

int domi_notify_send_message(const domi_notify *notify, bool waits, const char *format, ...)
{
    const int flags = waits ? MSG_NOSIGNAL : MSG_NOSIGNAL | MSG_DONTWAIT;
    char text[DOMI_NOTIFY_MAX];
    va_list values;
    ssize_t sent;

    va_start(values, format);
    int length = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (length < 0)
        return -EINVAL;
    size_t size = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    do {
        sent = sendto(notify->fd, text, size, flags, (const struct sockaddr *)&notify->to,
                      notify->size);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

void domi_notify_close(domi_notify *notify)
{
    if (notify->fd >= 0)
        close(notify->fd);
    notify->fd = -1;
}
