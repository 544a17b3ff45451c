/* Makes listening sockets, and sets their options. */
#include "io/acceptors/acceptors.h"

#include "io/resources/endpoint.h"
#include "io/resources/options.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Set those options of a listening socket that its connections inherit: buffers and TCP. `resets`
 * says for domi_socket_set_tcp_options() whether options that are off have to be reset, as on a
 * socket that was taken over. */
static int set_inherited_socket_options(const domi_io *io, int fd, int family,
                                        const domi_listen_plan *plan, bool resets)
{
    domi_channel_settings usual;
    const domi_channel_settings *settings = plan->settings;

    if (settings == NULL) {
        domi_settings_compute_all(io->config, NULL, &usual);
        settings = &usual;
    }
    int result = domi_socket_set_buffer_sizes(io, fd, settings);
    if (result == 0 && family != AF_UNIX)
        result = domi_socket_set_tcp_options(io, fd, settings, resets);
    return result;
}

/* Set all options of a listener: those that its connections inherit, and its own. */
static int set_listener_options(const domi_io *io, int fd, int family, const domi_listen_plan *plan)
{
    const domi_socket_option options[] = {
        {SOL_SOCKET, SO_REUSEADDR, family != AF_UNIX, false},
        {SOL_SOCKET, SO_REUSEPORT, plan->shares_port, false},
    };
    int result = domi_socket_set_int_options(io, fd, options, sizeof options / sizeof options[0]);

    return result == 0 ? set_inherited_socket_options(io, fd, family, plan, false) : result;
}

int domi_acceptor_open_listener(const domi_io *io, const domus_endpoint *at,
                                const domi_listen_plan *plan, domus_endpoint *ret_at)
{
    const domi_sockets *sockets = io->backend->sockets;
    struct sockaddr_storage storage;
    struct sockaddr *address = (struct sockaddr *)&storage;
    int length = domi_endpoint_to_socket_address(at, &storage);

    if (length < 0)
        return -EINVAL;
    int fd = sockets->socket(io->ring, storage.ss_family, SOCK_STREAM);
    if (fd < 0)
        return fd;
    socklen_t size = (socklen_t)length;
    int result = set_listener_options(io, fd, storage.ss_family, plan);
    if (result == 0)
        result = sockets->bind(io->ring, fd, address, size);
    if (result == 0)
        result = sockets->listen(io->ring, fd, (int)plan->backlog);
    if (result == 0)
        result = domi_endpoint_of_socket(io, fd, false, ret_at);
    if (result != 0) {
        (void)sockets->close(io->ring, fd);
        return result;
    }
    return fd;
}

/* Read an option of a socket whose value is a number. Returns 0; a negative errno. */
static int read_socket_option(const domi_io *io, int fd, int name, int *ret_number)
{
    socklen_t size = sizeof *ret_number;

    return io->backend->sockets->option_get(io->ring, fd, SOL_SOCKET, name, ret_number, &size);
}

static int check_socket_is_listening(const domi_io *io, int fd)
{
    int type = 0, listens = 0;
    int result = read_socket_option(io, fd, SO_TYPE, &type);

    if (result == 0 && type != SOCK_STREAM)
        return -EPROTOTYPE;
    if (result == 0)
        result = read_socket_option(io, fd, SO_ACCEPTCONN, &listens);
    return result == 0 && listens == 0 ? -ENOTCONN : result;
}

int domi_acceptor_adopt_listener(const domi_io *io, int fd, const domi_listen_plan *plan,
                                 domus_endpoint *ret_at)
{
    domus_endpoint at;
    int zero = 0; /* Value that clears the flag O_NONBLOCK (FIONBIO). */
    int result = check_socket_is_listening(io, fd);

    if (result == 0)
        result = domi_endpoint_of_socket(io, fd, false, &at);
    if (result == 0 && at.family == 0)
        result = -EAFNOSUPPORT;
    if (result == 0)
        result = set_inherited_socket_options(io, fd, at.family, plan, true);
    if (result != 0)
        return result;
    /* The listening socket is made blocking, because io_uring does not wait on a non-blocking
     * socket: each accept would end at once. The simulated network has no such flag. */
    (void)io->backend->sockets->ioctl(io->ring, fd, FIONBIO, &zero);
    *ret_at = at;
    return 0;
}

/* True if no process listens at the path of a Unix socket any more, so that the kernel refuses a
 * connection to it. */
static bool is_unix_socket_left_over(const domi_io *io, const domus_endpoint *at)
{
    const domi_sockets *sockets = io->backend->sockets;
    struct sockaddr_storage storage;
    int length = domi_endpoint_to_socket_address(at, &storage);

    if (length < 0 || at->family != AF_UNIX || at->size == 0 || at->bytes[0] == '\0')
        return false;
    int fd = sockets->socket(io->ring, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK);
    if (fd < 0)
        return false;
    int result = sockets->connect(io->ring, fd, (struct sockaddr *)&storage, (socklen_t)length);
    (void)sockets->close(io->ring, fd);
    return result == -ECONNREFUSED;
}

/* True if the file at a path is a socket. A connect(2) to any other file is refused in the same way
 * as one to a socket at which nobody listens, but such a file must not be removed. */
static bool is_file_a_socket(const char *path)
{
    struct stat found;

    return lstat(path, &found) == 0 && S_ISSOCK(found.st_mode);
}

int domi_acceptor_listen_at_address(const domi_io *io, const char *address,
                                    const domi_listen_plan *plan, uint16_t *ret_port)
{
    char path[sizeof((domus_endpoint *)NULL)->bytes + 1] = "";
    domus_endpoint at;
    int result = domus_endpoint_parse(address, &at);

    if (result != 0)
        return -EINVAL;
    int fd = domi_acceptor_open_listener(io, &at, plan, &at);
    if (fd == -EADDRINUSE && is_unix_socket_left_over(io, &at)) {
        memcpy(path, at.bytes, at.size);
        if (is_file_a_socket(path) && unlink(path) == 0)
            fd = domi_acceptor_open_listener(io, &at, plan, &at);
    }
    if (fd >= 0 && ret_port != NULL)
        *ret_port = at.port;
    return fd;
}
