/* This file runs the load of handshakes over epoll (tls_shake.h). */
#include "bench/tls_shake.h"

#include "bench/support/histogram.h"
#include "bench/support/measure.h"
#include "bench/tls_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256u
#define ANSWER_MAX      4096u
#define EVENTS_MAX      64
/* ns between two times at which due handshakes of a paced load are begun, at most */
#define TICK_NS 100000

struct connection {
    int fd; /* socket of the connection; -1: no handshake is under way */
    SSL *ssl;
    bool asked; /* the handshake is done, and the one request was sent */
    uint64_t place;
    uint32_t size; /* number of bytes of the answer that could not be checked yet */
    uint64_t begun_ns;
    char bytes[ANSWER_MAX];
};

struct load {
    const struct request_load_options *options;
    SSL_CTX *context;
    /* the session that each connection resumes; NULL: each handshake is a full one */
    SSL_SESSION *session;
    int epoll;
    uint32_t idle_count;
    struct connection *idle[CONNECTIONS_MAX];
    struct connection connections[CONNECTIONS_MAX];
    uint64_t now_ns, start_ns;
    uint64_t begun, done;
    struct histogram latencies;
};

/* --- one connection --------------------------------------------------------------------------- */

static int begin_connection_of_load(struct load *load, struct connection *connection)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(load->options->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    *connection = (struct connection){.fd = fd, .begun_ns = load->now_ns};
    /* connect() may block here, because on loopback it is done at once */
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) != 0 ||
        epoll_ctl(load->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        return -errno;
    connection->ssl = tls_client_begin_connection(load->context, fd);
    if (connection->ssl == NULL)
        return -ENOMEM;
    if (load->session != NULL && SSL_set_session(connection->ssl, load->session) != 1)
        return -ENOMEM;
    load->begun++;
    return 0;
}

/* End a connection without a close_notify, which a server that has closed first would answer with a
 * reset. OpenSSL is told that a close_notify was sent, because it never resumes the session of a
 * connection that was cut. */
static void end_connection_of_load(struct connection *connection)
{
    if (connection->ssl != NULL)
        SSL_set_shutdown(connection->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(connection->ssl);
    if (connection->fd >= 0)
        close(connection->fd);
    connection->ssl = NULL;
    connection->fd = -1;
}

/* Check the bytes of the answer that have come. Returns 1 at the answer's end; 0 if more bytes have
 * to come; -EBADMSG. */
static int check_answer_to_request(const struct load *load, struct connection *connection)
{
    const struct request_load_kind *kind = load->options->kind;
    uint32_t at = 0;
    bool ends = false;

    while (at < connection->size && !ends) {
        int used = kind->check(kind->context, &connection->place, connection->bytes + at,
                               connection->size - at, &ends);
        if (used < 0)
            return used;
        if (used == 0)
            break;
        at += (uint32_t)used;
    }
    connection->size -= at;
    memmove(connection->bytes, connection->bytes + at, connection->size);
    return ends && connection->size != 0 ? -EBADMSG : ends;
}

/* Returns 0 if OpenSSL, which has returned `result`, only waits for bytes, otherwise a negative
 * errno. */
static int errno_of_openssl_unless_waiting(const struct connection *connection, int result)
{
    switch (SSL_get_error(connection->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        return -ECONNRESET;
    default:
        ERR_clear_error();
        return -EPROTO;
    }
}

/* Take the next steps of a connection: handshake, request, answer. Returns 1 when the answer is
 * whole; 0 if it waits for bytes; or a negative errno. */
static int continue_handshake_and_request(const struct load *load, struct connection *connection)
{
    const struct request_load_kind *kind = load->options->kind;
    int size = (int)kind->request_size;

    if (!connection->asked) {
        int result = SSL_do_handshake(connection->ssl);
        if (result != 1)
            return errno_of_openssl_unless_waiting(connection, result);
        if ((SSL_session_reused(connection->ssl) == 1) != (load->session != NULL) ||
            SSL_write(connection->ssl, kind->request, size) != size)
            return -EPROTO;
        connection->asked = true;
    }
    do {
        int got = SSL_read(connection->ssl, connection->bytes + connection->size,
                           (int)(ANSWER_MAX - connection->size));
        if (got <= 0)
            return errno_of_openssl_unless_waiting(connection, got);
        connection->size += (uint32_t)got;
        int result = check_answer_to_request(load, connection);
        if (result != 0)
            return result;
    } while (SSL_has_pending(connection->ssl) == 1);
    return 0;
}

/* --- the loop --------------------------------------------------------------------------------- */

static int continue_connection_and_end_if_done(struct load *load, struct connection *connection)
{
    int result = continue_handshake_and_request(load, connection);

    if (result <= 0)
        return result;
    histogram_add_value(&load->latencies, load->now_ns - connection->begun_ns);
    end_connection_of_load(connection);
    load->done++;
    load->idle[load->idle_count++] = connection;
    return 0;
}

static int begin_due_handshakes(struct load *load)
{
    double rate = load->options->rate;
    double due = (double)(load->now_ns - load->start_ns) * 1e-9 * rate;

    while (load->idle_count > 0 && (rate == 0 || (double)load->begun < due)) {
        struct connection *connection = load->idle[--load->idle_count];
        int error = begin_connection_of_load(load, connection);
        if (error == 0)
            error = continue_connection_and_end_if_done(load, connection);
        if (error != 0)
            return error;
    }
    return 0;
}

static int wait_and_handle_events(struct load *load)
{
    struct epoll_event events[EVENTS_MAX];
    struct timespec tick = {.tv_nsec = TICK_NS};
    int count = epoll_pwait2(load->epoll, events, EVENTS_MAX, &tick, NULL);
    int error = 0;

    if (count < 0)
        return errno == EINTR ? 0 : -errno;
    load->now_ns = measure_now_ns();
    for (int i = 0; error == 0 && i < count; i++)
        error = continue_connection_and_end_if_done(load, events[i].data.ptr);
    return error;
}

static int run_load_of_handshakes(struct load *load, uint64_t duration_ns)
{
    uint64_t end_ns = load->start_ns + duration_ns;
    int error = 0;

    while (error == 0 && load->now_ns < end_ns) {
        error = begin_due_handshakes(load);
        if (error == 0)
            error = wait_and_handle_events(load);
    }
    uint64_t stall_ns = load->now_ns + load->options->stall_ns;
    while (error == 0 && load->done < load->begun)
        error = load->now_ns < stall_ns ? wait_and_handle_events(load) : -ETIMEDOUT;
    return error;
}

/* --- a session to resume ---------------------------------------------------------------------- */

static int store_session_to_resume(SSL *ssl, SSL_SESSION *session)
{
    struct load *load = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    SSL_SESSION_free(load->session);
    load->session = session; /* 1 tells OpenSSL that this load keeps the session */
    return 1;
}

/* Get the session to resume from a first connection: its ticket comes before the answer to the
 * first request. */
static int get_session_to_resume(struct load *load)
{
    struct connection *connection = load->idle[--load->idle_count];

    SSL_CTX_set_app_data(load->context, load);
    SSL_CTX_set_session_cache_mode(load->context,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(load->context, store_session_to_resume);
    load->start_ns = load->now_ns = measure_now_ns();
    int error = begin_connection_of_load(load, connection);
    if (error == 0)
        error = continue_connection_and_end_if_done(load, connection);
    uint64_t stall_ns = load->now_ns + load->options->stall_ns;
    while (error == 0 && load->done < load->begun)
        error = load->now_ns < stall_ns ? wait_and_handle_events(load) : -ETIMEDOUT;
    SSL_CTX_sess_set_new_cb(load->context, NULL);
    SSL_CTX_set_session_cache_mode(load->context, SSL_SESS_CACHE_OFF);
    load->begun = load->done = 0;
    memset(&load->latencies, 0, sizeof load->latencies);
    return error == 0 && load->session == NULL ? -EPROTO : error;
}

/* --- all -------------------------------------------------------------------------------------- */

static void free_load(struct load *load)
{
    for (uint32_t i = 0; i < load->options->connections; i++)
        end_connection_of_load(&load->connections[i]);
    SSL_SESSION_free(load->session);
    SSL_CTX_free(load->context);
    if (load->epoll >= 0)
        close(load->epoll);
    free(load);
}

static int make_load(const struct request_load_options *options, struct load **ret_load)
{
    if (options->connections < 1 || options->connections > CONNECTIONS_MAX || options->depth != 1)
        return -EINVAL;
    struct load *load = calloc(1, sizeof *load);
    if (load == NULL)
        return -ENOMEM;
    load->options = options;
    for (uint32_t i = 0; i < options->connections; i++) {
        load->connections[i].fd = -1;
        load->idle[load->idle_count++] = &load->connections[i];
    }
    load->context = tls_client_make_context();
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (load->context == NULL || load->epoll < 0) {
        free_load(load);
        return -ENOMEM;
    }
    SSL_CTX_set_session_cache_mode(load->context, SSL_SESS_CACHE_OFF);
    *ret_load = load;
    return 0;
}

static int measure_load(struct load *load, struct request_load_result *ret_result)
{
    const struct request_load_options *options = load->options;
    uint64_t before_ns, after_ns;
    int error = measure_cpu_ns_of_other_process(options->watched, &before_ns);

    if (error != 0)
        return error;
    uint64_t own_ns = measure_thread_cpu_ns();
    load->start_ns = load->now_ns = measure_now_ns();
    error = run_load_of_handshakes(load, options->duration_ns);
    if (error == 0)
        error = measure_cpu_ns_of_other_process(options->watched, &after_ns);
    if (error != 0)
        return error;
    double seconds = (double)(load->now_ns - load->start_ns) * 1e-9;
    *ret_result = (struct request_load_result){
        .requests = load->done,
        .rate = (double)load->done / seconds,
        .p50_us = histogram_value_at_share(&load->latencies, 0.5) * 1e-3,
        .p99_us = histogram_value_at_share(&load->latencies, 0.99) * 1e-3,
        .busy = (double)(measure_thread_cpu_ns() - own_ns) * 1e-9 / seconds,
        .watched_cpu_ns = after_ns - before_ns,
    };
    return 0;
}

static int measure_handshakes(const struct request_load_options *options, bool resumes,
                              struct request_load_result *ret_result)
{
    struct load *load;
    int error = make_load(options, &load);

    if (error != 0)
        return error;
    if (resumes)
        error = get_session_to_resume(load);
    if (error == 0)
        error = measure_load(load, ret_result);
    free_load(load);
    return error;
}

int tls_shake_run_full_ones(const struct request_load_options *options,
                            struct request_load_result *ret_result)
{
    return measure_handshakes(options, false, ret_result);
}

int tls_shake_run_resumed_ones(const struct request_load_options *options,
                               struct request_load_result *ret_result)
{
    return measure_handshakes(options, true, ret_result);
}
