/* Measures what connections cost that wait (tls_crowd.h): the resident set of the server with and
 * without them, and the latencies of a good client beside them.
 *
 * The load keeps the sockets alone: what a client of OpenSSL has to remember of a connection is
 * thrown away when the connection is as it should be. */
#include "bench/tls_crowd.h"

#include "bench/support/measure.h"
#include "bench/tls_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS 10000u
#define LOOK_S      0.3 /* the library has measured its memory after that */

/* Connections before the first look, and the requests on each: what is made once is there then, and
 * each receive buffer of the thread was used. */
#define WARM      100u
#define WARM_ASKS 20u

/* The good client. */
#define GOOD_CONNECTIONS 16u
#define GOOD_RATE        5000.0
#define GOOD_NS          UINT64_C(3000000000) /* one pause of the machine is below the p99 */
#define STALL_NS         UINT64_C(5000000000)

#define HANDSHAKE 22 /* the type of a record of the server's part */

static int fds[CONNECTIONS + WARM];

/* --- connections ------------------------------------------------------------------------------ */

static int connect_one(uint16_t port, int *ret_fd)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    *ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*ret_fd < 0)
        return -errno;
    return connect(*ret_fd, (const struct sockaddr *)&address, sizeof address) == 0 ? 0 : -errno;
}

static int ask(SSL *ssl, const struct request_load_kind *kind)
{
    char answer[4096];
    uint64_t place = 0;
    bool ends = false;
    int size = 0;

    if (SSL_write(ssl, kind->request, (int)kind->request_size) != (int)kind->request_size)
        return -EPROTO;
    while (!ends) {
        int got = SSL_read(ssl, answer + size, (int)sizeof answer - size);
        if (got <= 0)
            return -EPROTO;
        size += got;
        for (int used = 1; used > 0 && size > 0 && !ends;) {
            used = kind->check(kind->context, &place, answer, (size_t)size, &ends);
            if (used < 0)
                return used;
            size -= used;
            memmove(answer, answer + used, (size_t)size);
        }
    }
    return 0;
}

/* Open a connection that has had `asks` answers. */
static int open_idle(SSL_CTX *context, uint16_t port, const struct request_load_kind *kind,
                     uint32_t asks, int *ret_fd)
{
    int error = connect_one(port, ret_fd);
    SSL *ssl = error == 0 ? tls_client_new(context, *ret_fd) : NULL;

    if (ssl == NULL)
        return error != 0 ? error : -ENOMEM;
    if (SSL_connect(ssl) != 1)
        error = -EPROTO;
    for (uint32_t i = 0; error == 0 && i < asks; i++)
        error = ask(ssl, kind);
    ERR_clear_error();
    SSL_free(ssl); /* without close_notify */
    return error;
}

/* Open one that does not finish its handshake: with the whole ClientHello, and then the server has
 * sent its part, or with the half of it. */
static int open_unfinished(SSL_CTX *context, uint16_t port, bool is_whole, int *ret_fd)
{
    unsigned char bytes[4096];
    BIO *bio = BIO_new(BIO_s_mem());
    BIO *nothing = BIO_new(BIO_s_mem()); /* apart, or OpenSSL would read what it has written */
    SSL *ssl = SSL_new(context);
    int error = connect_one(port, ret_fd);

    if (error == 0 && (bio == NULL || nothing == NULL || ssl == NULL))
        error = -ENOMEM;
    if (error == 0) {
        BIO_up_ref(bio);
        BIO_up_ref(nothing);
        SSL_set_bio(ssl, nothing, bio);
        SSL_set_connect_state(ssl);
        (void)SSL_do_handshake(ssl);
        int size = BIO_read(bio, bytes, sizeof bytes);
        size_t part = size < 2 ? 0 : (size_t)(is_whole ? size : size / 2);
        if (send(*ret_fd, bytes, part, MSG_NOSIGNAL) != (ssize_t)part || part == 0)
            error = -EPIPE;
        if (error == 0 && is_whole &&
            (recv(*ret_fd, bytes, sizeof bytes, 0) <= 0 || bytes[0] != HANDSHAKE))
            error = -EPROTO;
    }
    ERR_clear_error();
    SSL_free(ssl);
    BIO_free(nothing);
    BIO_free(bio);
    return error;
}

/* --- one server ------------------------------------------------------------------------------- */

static int open_all(const struct server *server, const struct request_load_kind *kind,
                    bool is_unfinished, SSL_CTX *context, double *ret_resident)
{
    int error = 0;

    for (uint32_t i = 0; error == 0 && i < WARM; i++)
        error = open_idle(context, server->port, kind, WARM_ASKS, &fds[i]);
    measure_nap(LOOK_S);
    double before = measure_resident_bytes(server->pid);
    for (uint32_t i = WARM; error == 0 && i < WARM + CONNECTIONS; i++)
        error = is_unfinished ? open_unfinished(context, server->port, i % 2 == 0, &fds[i])
                              : open_idle(context, server->port, kind, 1, &fds[i]);
    measure_nap(LOOK_S);
    *ret_resident = (measure_resident_bytes(server->pid) - before) / CONNECTIONS;
    return error;
}

/* Open all connections on a fresh server, and measure beside them. */
static int measure(const struct versus *versus, const struct request_load_kind *kind,
                   uint32_t which, bool is_unfinished, SSL_CTX *context, double *ret_resident,
                   struct request_load_result *ret_result)
{
    const struct request_load_link link = tls_client_link(context);
    struct request_load_options options = {.link = &link,
                                           .kind = kind,
                                           .connections = GOOD_CONNECTIONS,
                                           .depth = 1,
                                           .rate = GOOD_RATE,
                                           .duration_ns = GOOD_NS,
                                           .stall_ns = STALL_NS};
    struct server server;
    struct server_usage usage;
    int error = versus->start(which, &server);

    if (error != 0) {
        fprintf(stderr, "tls: %s does not start: %s\n", versus->names[which], server.error);
        return error;
    }
    memset(fds, -1, sizeof fds);
    error = open_all(&server, kind, is_unfinished, context, ret_resident);
    options.port = server.port;
    options.watched = server.pid;
    if (error == 0)
        error = request_load_run(&options, ret_result);
    for (uint32_t i = 0; i < CONNECTIONS + WARM; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    int end = server_stop(&server, &usage);
    if (error != 0)
        fprintf(stderr, "tls: %s connections of %s: %s\n", is_unfinished ? "unfinished" : "idle",
                versus->names[which], strerror(-error));
    return error != 0 ? error : end;
}

static int run(const struct versus *versus, const struct request_load_kind *kind, uint32_t which,
               SSL_CTX *context)
{
    static const char *const states[] = {"idle", "unfinished"};
    double p99_us[2][VERSUS_ROUNDS_MAX];
    double ratios[VERSUS_ROUNDS_MAX];
    double resident[2][VERSUS_ROUNDS_MAX];
    double busy = 0;

    for (uint32_t round = 0; round < versus->rounds; round++) {
        for (uint32_t state = 0; state < 2; state++) {
            struct request_load_result result;
            int error =
                measure(versus, kind, which, state == 1, context, &resident[state][round], &result);
            if (error != 0)
                return error;
            p99_us[state][round] = result.p99_us;
            busy = result.busy > busy ? result.busy : busy;
        }
        ratios[round] = p99_us[1][round] / p99_us[0][round];
    }
    for (uint32_t state = 0; state < 2; state++) {
        printf("tls_%s_%s_resident %.0f bytes/connection\n", states[state], versus->names[which],
               measure_median(resident[state], versus->rounds));
        printf("tls_%s_%s_p99 %.1f us, of a good client beside them\n", states[state],
               versus->names[which], measure_median(p99_us[state], versus->rounds));
    }
    printf("tls_unfinished_to_idle_%s_p99 %.3f %s\n", versus->names[which],
           measure_median(ratios, versus->rounds), busy > VERSUS_BUSY_MAX ? "void" : "ratio");
    fflush(stdout);
    return 0;
}

int tls_crowd_run(const struct versus *versus, const struct request_load_kind *kind)
{
    struct rlimit files = {0, 0};
    SSL_CTX *context = tls_client_context();
    int error = context != NULL ? 0 : -ENOMEM;

    if (error == 0 && getrlimit(RLIMIT_NOFILE, &files) != 0)
        error = -errno;
    files.rlim_cur = files.rlim_max;
    if (error == 0 &&
        (files.rlim_max < CONNECTIONS + WARM + 128 || setrlimit(RLIMIT_NOFILE, &files) != 0)) {
        fprintf(stderr, "tls: the row crowd needs %u open files: left out\n",
                CONNECTIONS + WARM + 128);
        SSL_CTX_free(context);
        return 0;
    }
    for (uint32_t which = 0; error == 0 && which < versus->servers; which++)
        error = run(versus, kind, which, context);
    SSL_CTX_free(context);
    return error;
}
