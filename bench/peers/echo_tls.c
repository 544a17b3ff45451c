/* A bare echo over TLS on level-triggered epoll: one thread, OpenSSL on the sockets themselves, one
 * buffer for all connections. The environment variable WEB_KEY names a file with a certificate and
 * its key.
 *
 * A connection that is ready is read until OpenSSL has nothing left, and each piece is written at
 * once. OpenSSL reads ahead, so a record costs one read, and keeps its buffers, so it costs no
 * allocation. It keeps no bytes that a socket does not take, so it serves only clients that read
 * each answer before they send again; another client ends the program. */
#include "bench/peers/peer.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX  512
#define BUFFER_SIZE 16384 /* bytes of the content of a TLS record, at most */

/* The pointer in an epoll event points to a connection, to `is_listener` (the listening socket), or
 * to `is_term` (SIGTERM). */
static char is_listener, is_term;

static void watch_descriptor(int epoll, int fd, void *what)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};

    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        peer_print_error_and_exit("epoll_ctl");
}

static SSL_CTX *make_context(void)
{
    const char *file = getenv("WEB_KEY");
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    if (context == NULL || file == NULL || SSL_CTX_use_certificate_chain_file(context, file) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, file, SSL_FILETYPE_PEM) != 1)
        peer_print_error_and_exit("OpenSSL, or WEB_KEY");
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(context, 1);
    return context;
}

static void accept_connections(int epoll, int listener, SSL_CTX *context)
{
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        SSL *ssl = SSL_new(context);
        if (ssl == NULL || SSL_set_fd(ssl, fd) != 1)
            peer_print_error_and_exit("OpenSSL");
        SSL_set_accept_state(ssl);
        watch_descriptor(epoll, fd, ssl);
    }
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
        peer_print_error_and_exit("accept4");
}

static void end_connection(SSL *ssl)
{
    int fd = SSL_get_fd(ssl);

    ERR_clear_error();
    SSL_free(ssl);
    close(fd);
}

static void echo_bytes(struct peer *peer, SSL *ssl)
{
    static char buffer[BUFFER_SIZE];

    do {
        int got = SSL_read(ssl, buffer, sizeof buffer);
        if (got <= 0) {
            if (SSL_get_error(ssl, got) != SSL_ERROR_WANT_READ)
                end_connection(ssl);
            return;
        }
        peer->received++;
        if (SSL_write(ssl, buffer, got) != got)
            peer_print_error_and_exit("SSL_write");
    } while (SSL_has_pending(ssl) == 1);
}

static void serve_connections(struct peer *peer, int epoll, int listener, SSL_CTX *context)
{
    struct epoll_event events[EVENTS_MAX];

    for (bool stopping = false; !stopping;) {
        int count = epoll_wait(epoll, events, EVENTS_MAX, -1);

        if (count < 0 && errno != EINTR)
            peer_print_error_and_exit("epoll_wait");
        for (int i = 0; i < count; i++) {
            void *what = events[i].data.ptr;

            if (what == &is_listener)
                accept_connections(epoll, listener, context);
            else if (what == &is_term)
                stopping = true;
            else
                echo_bytes(peer, what);
        }
    }
}

int main(int argc, char **argv)
{
    struct peer peer;

    peer_read_arguments_and_pin(&peer, argc, argv);
    if (sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL) != 0)
        peer_print_error_and_exit("sigaction");
    SSL_CTX *context = make_context();
    int on_term = peer_open_signal_descriptor();
    int listener = peer_open_listening_socket(&peer, SOCK_NONBLOCK);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0)
        peer_print_error_and_exit("epoll_create1");
    watch_descriptor(epoll, listener, &is_listener);
    watch_descriptor(epoll, on_term, &is_term);
    peer_print_listening_port(&peer, listener);
    serve_connections(&peer, epoll, listener, context);
    peer_print_cpu_time(&peer);
    SSL_CTX_free(context);
    return 0;
}
