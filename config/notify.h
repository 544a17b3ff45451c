/* Messages to a supervisor: datagrams of lines NAME=VALUE to the Unix socket that $NOTIFY_SOCKET
 * names, as of sd_notify(3) (docs/decisions/programs.md says why this is not libsystemd).
 *
 * A message is sent as a whole or not at all. Thread-safety: any thread may send while it is open.
 */
#ifndef DOMI_CONFIG_NOTIFY_H
#define DOMI_CONFIG_NOTIFY_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#define DOMI_NOTIFY_WAIT_MS 1000
/* bytes of a message to the supervisor with its NUL; a longer one is cut */
#define DOMI_NOTIFY_MAX 512u

typedef struct domi_notify {
    int fd; /* descriptor of the socket for messages; -1: it is not open */
    struct sockaddr_un to;
    socklen_t size; /* bytes of the address `to` that are used */
} domi_notify;

/* Open a socket for messages to `address`: a path that begins with '/', or '@' and an abstract
 * name. Returns 0; -EINVAL if it is neither; -ENAMETOOLONG; the error of socket(2), and then
 * nothing is open. */
int domi_notify_open_socket(const char *address, domi_notify *ret_notify);

/* Send a message to the supervisor. If that does not read, it is waited for if `waits`, but no
 * longer than DOMI_NOTIFY_WAIT_MS. Returns 0; a negative errno, such as -EAGAIN without room, or
 * -ECONNREFUSED when the supervisor is gone. */
int domi_notify_send_message(const domi_notify *notify, bool waits, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void domi_notify_close(domi_notify *notify);

#endif
