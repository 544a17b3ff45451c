/* A bare echo on level-triggered epoll: one thread, one buffer for all connections.
 *
 * After one wait it makes one recv and one send per ready connection, which is the least that an
 * epoll server can do. It answers at once and keeps nothing, so it serves only clients that read
 * each answer before they send again. A client that does not read fills its socket; then the
 * program ends. */
#include "bench/peers/peer.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX  512
#define BUFFER_SIZE 65536

static void watch_descriptor(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        peer_print_error_and_exit("epoll_ctl");
}

static void accept_connections(int epoll, int listener)
{
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
        watch_descriptor(epoll, fd);
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
        peer_print_error_and_exit("accept4");
}

static void echo_bytes(struct peer *peer, int fd)
{
    static char buffer[BUFFER_SIZE];
    ssize_t got = recv(fd, buffer, sizeof buffer, 0);

    if (got <= 0) {
        if (got == 0 || errno != EAGAIN)
            close(fd);
        return;
    }
    peer->received++;

    ssize_t sent = send(fd, buffer, (size_t)got, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
        close(fd);
    else if (sent != got)
        peer_print_error_and_exit("send");
}

static void serve_connections(struct peer *peer, int epoll, int listener, int on_term)
{
    struct epoll_event events[EVENTS_MAX];

    for (bool stopping = false; !stopping;) {
        int count = epoll_wait(epoll, events, EVENTS_MAX, -1);

        if (count < 0 && errno != EINTR)
            peer_print_error_and_exit("epoll_wait");
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;

            if (fd == listener)
                accept_connections(epoll, listener);
            else if (fd == on_term)
                stopping = true;
            else
                echo_bytes(peer, fd);
        }
    }
}

int main(int argc, char **argv)
{
    struct peer peer;

    peer_read_arguments_and_pin(&peer, argc, argv);
    int on_term = peer_open_signal_descriptor();
    int listener = peer_open_listening_socket(&peer, SOCK_NONBLOCK);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0)
        peer_print_error_and_exit("epoll_create1");
    watch_descriptor(epoll, listener);
    watch_descriptor(epoll, on_term);
    peer_print_listening_port(&peer, listener);
    serve_connections(&peer, epoll, listener, on_term);
    peer_print_cpu_time(&peer);
    return 0;
}
