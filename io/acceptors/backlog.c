/* Accepts the connections that still wait when a listener will be closed.
 *
 * The close of a listener resets the connections in its backlog, although their peers may have sent
 * bytes that were acknowledged. So these connections are accepted first: in a drain they are
 * answered, otherwise they are turned away and counted. If they cannot be accepted, their number,
 * as the kernel tells it, is counted. A socket that other processes hold, too, keeps its backlog
 * for them. Owner thread, unless the header says any thread. */
#include "io/acceptors/acceptors.h"

#include "io/resources/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* most connections that are taken from one listener in all; this is more than a backlog can hold,
 * because net.core.somaxconn is rarely above 65,535 */
#define TAKES_MAX 131072u

/* Count connections as turned away by the listener that has these settings, if it has a row in the
 * profile. The order is relaxed for the reason in domi_connection_reset_and_count(). */
static void count_turned_away_at_listener(domi_io *io, const domi_channel_settings *settings,
                                          uint64_t count)
{
    if (settings != NULL && settings->row < DOMI_LISTENER_ROWS)
        atomic_fetch_add_explicit(&io->turned_away_of[settings->row], count, memory_order_relaxed);
}

void domi_connection_reset_and_count(domi_io *io, const domi_channel_settings *settings, int fd)
{
    uint64_t bytes = domi_socket_count_bytes_in_kernel(io, fd, FIONREAD);

    count_turned_away_at_listener(io, settings, 1);

    /* Relaxed: the profile only shows these two sums. They are atomic because any thread may drop
     * an event that carries a connection. */
    atomic_fetch_add_explicit(&io->turned_away, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&io->turned_away_bytes, bytes, memory_order_relaxed);
    domi_socket_reset(io, fd);
}

void domi_backlog_set_to_zero(domi_acceptor *acceptor)
{
    domi_io *io = acceptor->io;

    if (!acceptor->is_shared)
        (void)io->backend->sockets->listen(io->ring, acceptor->fd, 0);
}

int domi_backlog_accept_waiting(domi_acceptor *acceptor,
                                void (*take)(domi_acceptor *acceptor, int fd))
{
    domi_io *io = acceptor->io;
    uint32_t limit = io->config->io.completion_entries;

    if (acceptor->is_shared)
        return 0;
    for (uint32_t takes = 0; acceptor->taken < TAKES_MAX; takes++, acceptor->taken++) {
        if (takes == limit)
            return -EAGAIN;
        int fd = io->backend->sockets->accept(io->ring, acceptor->fd);
        if (fd >= 0)
            take(acceptor, fd);
        else if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM)
            return -EMFILE;
        else if (fd == -EAGAIN || fd == -EINVAL)
            /* any other error of an accept, such as ECONNABORTED, concerns one connection only */
            return 0;
    }
    return 0;
}

void domi_backlog_count_as_turned_away(domi_acceptor *acceptor)
{
    domi_io *io = acceptor->io;
    struct tcp_info info = {0};
    socklen_t size = sizeof info;

    if (acceptor->is_shared)
        return;
    /* For a listening socket the field tcpi_unacked is the number of connections that wait to be
     * accepted. */
    if (io->backend->sockets->option_get(io->ring, acceptor->fd, IPPROTO_TCP, TCP_INFO, &info,
                                         &size) != 0)
        return;
    count_turned_away_at_listener(io, acceptor->settings, info.tcpi_unacked);
    atomic_fetch_add_explicit(&io->turned_away, info.tcpi_unacked, memory_order_relaxed);
}
