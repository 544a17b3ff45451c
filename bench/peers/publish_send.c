/* The bare side of `bench publish`: a loop of send(2) over the sockets of each of two threads.
 *
 * The main thread runs on CPU and accepts; it has every second connection, and the other thread, on
 * the next CPU, has the other connections. A byte on the first connection starts both loops.
 * Nothing is kept: a connection whose socket is full ends the program. */
#include "bench/peers/peer.h"

#include "bench/publish/publish.h"
#include "bench/support/measure.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS 2
#define FDS_MAX 16384 /* connections of a thread, at most */

struct half {
    int fds[FDS_MAX];
    int count;
    int cpu;
    int wake;
};

static struct half halves[THREADS];
static char bytes[PUBLISH_BYTES]; /* the bytes that are being published */

static void publish_to_half_of_connections(const struct half *half)
{
    for (int i = 0; i < half->count; i++) {
        if (send(half->fds[i], bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof bytes)
            peer_print_error_and_exit("send");
    }
}

static void *publish_to_half_on_second_thread(void *half_)
{
    const struct half *half = half_;
    uint64_t count;

    if (measure_pin_thread_to_cpu(half->cpu) != 0)
        peer_print_error_and_exit("the next CPU");
    while (read(half->wake, &count, sizeof count) == sizeof count)
        publish_to_half_of_connections(half);
    return NULL;
}

static void accept_connection(int listener, int *accepted)
{
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        struct half *half = &halves[*accepted % THREADS];

        if (half->count == FDS_MAX || send(fd, PUBLISH_JOINED, 1, MSG_NOSIGNAL) != 1)
            peer_print_error_and_exit("a connection");
        half->fds[half->count++] = fd;
        ++*accepted;
    }
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
        peer_print_error_and_exit("accept4");
}

/* Publish if a byte has come on the first connection. Returns false when this connection has
 * ended. */
static bool publish_if_bench_sends_byte(struct peer *peer)
{
    unsigned char which;
    const uint64_t one = 1;

    if (recv(halves[0].fds[0], &which, 1, 0) != 1)
        return false;
    peer->received++;
    publish_fill_bytes_of_publication(bytes, which);
    if (write(halves[1].wake, &one, sizeof one) != sizeof one)
        peer_print_error_and_exit("eventfd");
    publish_to_half_of_connections(&halves[0]);
    return true;
}

static void serve_orders_of_bench(struct peer *peer, int listener, int on_term)
{
    struct pollfd fds[] = {
        {.fd = on_term, .events = POLLIN},
        {.fd = listener, .events = POLLIN},
        {.fd = -1, .events = POLLIN},
    };
    int accepted = 0;

    for (;;) {
        if (poll(fds, 3, -1) < 0 && errno != EINTR)
            peer_print_error_and_exit("poll");
        if (fds[0].revents != 0)
            return;
        if (fds[1].revents != 0)
            accept_connection(listener, &accepted);
        if (fds[2].revents != 0 && !publish_if_bench_sends_byte(peer))
            fds[2].fd = -1;
        else if (fds[2].fd < 0 && halves[0].count > 0 && peer->received == 0)
            fds[2].fd = halves[0].fds[0];
    }
}

int main(int argc, char **argv)
{
    struct peer peer;
    pthread_t thread;

    peer_read_arguments_and_pin(&peer, argc, argv);
    int on_term = peer_open_signal_descriptor();
    int listener = peer_open_listening_socket(&peer, SOCK_NONBLOCK);
    halves[1].cpu = peer.cpu + 1;
    halves[1].wake = eventfd(0, EFD_CLOEXEC);
    if (halves[1].wake < 0 ||
        pthread_create(&thread, NULL, publish_to_half_on_second_thread, &halves[1]) != 0)
        peer_print_error_and_exit("the other thread");
    peer_print_listening_port(&peer, listener);
    serve_orders_of_bench(&peer, listener, on_term);
    peer_print_cpu_time(&peer);
    return 0;
}
