/* Measures what connections cost that wait (tls_crowd.h): the resident set of the server with and
 * without them, and the latencies of a good client beside them.
 *
 * A single run says nothing: on a busy machine the same run beside the same idle connections
 * differs by a factor of 3. So two servers of a kind live for the whole row, on the same CPU. One
 * holds idle connections and does nothing but for the good client. The other one is attacked again
 * and again, and rests between. The spans of the good client go idle, attacked, idle, attacked,
 * ..., idle, and the ratio is that of the medians of all spans. The idle spans tell how much such a
 * ratio owes to noise: those of even places are held against those of odd ones.
 *
 * The attack opens its handshakes evenly over the time in which they expire, so that its steady
 * state is there from the start. The load keeps the socket alone of an idle connection. */
#include "bench/tls_crowd.h"

#include "bench/support/measure.h"
#include "bench/tls_attack.h"
#include "bench/tls_client.h"
#include "bench/web_servers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS 10000u
#define LOOK_S      0.3 /* seconds after which the library has measured its memory anew */

/* Number of connections before memory is first looked at, and of the requests on each. After them
 * everything that is made only once exists, and each receive buffer of the thread was used. */
#define WARM      100u
#define WARM_ASKS 20u

/* The load of the good client, whose latencies are measured. */
#define GOOD_CONNECTIONS 64u /* so many that no request has to wait during a pause of 12 ms */
#define GOOD_RATE        4000.0
#define GOOD_NS          UINT64_C(800000000)
#define STALL_NS         UINT64_C(5000000000)

/* number of spans of the good client one after the other, while the servers are in the same
 * state */
#define SPANS    3u
#define EXPIRE_S 10.0 /* seconds after which a server gives up an unfinished handshake */
/* seconds of rest after the last handshake was opened, and after the end of an attack */
#define SETTLE_S 1.0
/* the greatest ratio of idle spans to other idle spans, or its inverse, that counts as equal */
#define NOISE_MAX  1.25
#define HELD_LEAST 9900u /* unfinished handshakes that must be open at the end of a span */

#define FILES_LEAST (CONNECTIONS + 2 * WARM + 256)
#define SPANS_MAX   ((VERSUS_ROUNDS_MAX + 1) * SPANS)

static int fds[CONNECTIONS + 2 * WARM];

/* --- connections ------------------------------------------------------------------------------ */

static int open_connection(uint16_t port, int *ret_fd)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    *ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*ret_fd < 0)
        return -errno;
    return connect(*ret_fd, (const struct sockaddr *)&address, sizeof address) == 0 ? 0 : -errno;
}

static int send_request_and_read_answer(SSL *ssl, const struct request_load_kind *kind)
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

/* Open a connection, get answers to `asks` requests on it, and leave it idle. */
static int open_idle_connection(SSL_CTX *context, uint16_t port,
                                const struct request_load_kind *kind, uint32_t asks, int *ret_fd)
{
    int error = open_connection(port, ret_fd);
    SSL *ssl = error == 0 ? tls_client_begin_connection(context, *ret_fd) : NULL;

    if (ssl == NULL)
        return error != 0 ? error : -ENOMEM;
    if (SSL_connect(ssl) != 1)
        error = -EPROTO;
    for (uint32_t i = 0; error == 0 && i < asks; i++)
        error = send_request_and_read_answer(ssl, kind);
    ERR_clear_error();
    SSL_free(ssl); /* SSL_free() leaves the socket open, without a close_notify of TLS */
    return error;
}

/* --- the good client -------------------------------------------------------------------------- */

/* The latencies of the good client in all spans in which the server was in one state. */
struct spans {
    uint32_t count;
    double p90_us[SPANS_MAX], p99_us[SPANS_MAX];
};

struct crowd {
    const struct versus *versus;
    const struct request_load_kind *kind;
    SSL_CTX *context;
    uint32_t which; /* index of the measured server in `versus` */
    bool stands;    /* the attacked server gives up no handshake as long as the row takes */
    struct server calm, attacked;
    struct spans idle[2]; /* the idle spans, those at even places and those at odd places apart */
    struct spans unfinished;
    /* resident bytes for each idle connection, and for each unfinished handshake */
    double idle_bytes, unfinished_bytes;
    double busy;   /* the greatest share of its CPU that the good client's load used in a span */
    uint32_t held; /* the fewest unfinished handshakes that were open at the end of a span */
    uint64_t replaced;
};

static int measure_span_of_good_client(struct crowd *crowd, const struct server *server,
                                       struct spans *spans)
{
    const struct request_load_link link = tls_client_make_link_for_load(crowd->context);
    const struct request_load_options options = {.port = server->port,
                                                 .watched = server->pid,
                                                 .link = &link,
                                                 .kind = crowd->kind,
                                                 .connections = GOOD_CONNECTIONS,
                                                 .depth = 1,
                                                 .rate = GOOD_RATE,
                                                 .counts_waits = true,
                                                 .duration_ns = GOOD_NS,
                                                 .stall_ns = STALL_NS};
    struct request_load_result result;
    int error = request_load_run_to_its_end(&options, &result);

    if (error != 0)
        return error;
    spans->p90_us[spans->count] = result.p90_us;
    spans->p99_us[spans->count++] = result.p99_us;
    crowd->busy = result.busy > crowd->busy ? result.busy : crowd->busy;
    return 0;
}

static int measure_memory_of_idle(struct crowd *crowd, uint32_t place)
{
    int error = 0;

    for (uint32_t i = 0; error == 0 && i < SPANS; i++)
        error = measure_span_of_good_client(crowd, &crowd->calm, &crowd->idle[place % 2]);
    return error;
}

static int measure_memory_under_attack(struct crowd *crowd)
{
    double before = measure_resident_bytes(crowd->attacked.pid);
    struct tls_attack_counts counts = {0, 0, 0};
    struct tls_attack *attack = NULL;
    int error = tls_attack_start(crowd->attacked.port, CONNECTIONS, EXPIRE_S, &attack);

    if (error != 0)
        return error;
    measure_sleep_seconds(EXPIRE_S + SETTLE_S);
    if (crowd->unfinished.count == 0)
        crowd->unfinished_bytes =
            (measure_resident_bytes(crowd->attacked.pid) - before) / CONNECTIONS;
    for (uint32_t i = 0; error == 0 && i < SPANS; i++) {
        error = measure_span_of_good_client(crowd, &crowd->attacked, &crowd->unfinished);
        if (error == 0)
            error = tls_attack_read_counts(attack, &counts);
        crowd->held = counts.held < crowd->held ? counts.held : crowd->held;
    }
    fprintf(stderr, "tls: %u handshakes, %u of them answered, %llu were replaced\n", counts.held,
            counts.answered, (unsigned long long)counts.replaced);
    crowd->replaced += counts.replaced;
    tls_attack_stop(attack);
    measure_sleep_seconds(SETTLE_S);
    return error;
}

static int measure_idle_and_attacked_spans(struct crowd *crowd)
{
    int error = measure_memory_of_idle(crowd, 0);

    for (uint32_t i = 0; error == 0 && i < crowd->versus->rounds; i++) {
        error = measure_memory_under_attack(crowd);
        if (error == 0)
            error = measure_memory_of_idle(crowd, i + 1);
    }
    return error;
}

/* --- the figures ------------------------------------------------------------------------------ */

static double join_idle_figures_and_get_median(double *ret_values, const double *even,
                                               const double *odd, struct crowd *crowd)
{
    uint32_t evens = crowd->idle[0].count, odds = crowd->idle[1].count;

    memcpy(ret_values, even, evens * sizeof *even);
    memcpy(ret_values + evens, odd, odds * sizeof *odd);
    return measure_sort_and_get_median(ret_values, evens + odds);
}

static const char *get_attack_name(const struct crowd *crowd)
{
    return crowd->stands ? "standing" : "unfinished";
}

static void print_percentile_with_ratio(struct crowd *crowd, const char *name, double *even,
                                        double *odd, double *unfinished)
{
    const char *server = crowd->versus->names[crowd->which];
    double all[2 * SPANS_MAX];
    double idle_us = join_idle_figures_and_get_median(all, even, odd, crowd);
    double unfinished_us = measure_sort_and_get_median(unfinished, crowd->unfinished.count);
    double noise = measure_sort_and_get_median(odd, crowd->idle[1].count) /
                   measure_sort_and_get_median(even, crowd->idle[0].count);
    bool is_void = crowd->busy > VERSUS_BUSY_MAX || crowd->held < HELD_LEAST || noise > NOISE_MAX ||
                   noise < 1 / NOISE_MAX;

    printf("tls_idle_%s_%s %.1f us, of a good client beside them\n", server, name, idle_us);
    printf("tls_%s_%s_%s %.1f us, of a good client beside them\n", get_attack_name(crowd), server,
           name, unfinished_us);
    printf("tls_idle_to_idle_%s_%s %.3f ratio\n", server, name, noise);
    printf("tls_%s_to_idle_%s_%s %.3f %s\n", get_attack_name(crowd), server, name,
           unfinished_us / idle_us, is_void ? "void" : "ratio");
}

static void print_figures_of_crowd(struct crowd *crowd)
{
    const char *server = crowd->versus->names[crowd->which];

    printf("tls_idle_%s_resident %.0f bytes/connection\n", server, crowd->idle_bytes);
    printf("tls_%s_%s_resident %.0f bytes/connection\n", get_attack_name(crowd), server,
           crowd->unfinished_bytes);
    printf("tls_%s_%s_replaced %.0f handshakes/s\n", get_attack_name(crowd), server,
           (double)crowd->replaced / crowd->versus->rounds / (SETTLE_S + SPANS * GOOD_NS * 1e-9));
    print_percentile_with_ratio(crowd, "p90", crowd->idle[0].p90_us, crowd->idle[1].p90_us,
                                crowd->unfinished.p90_us);
    print_percentile_with_ratio(crowd, "p99", crowd->idle[0].p99_us, crowd->idle[1].p99_us,
                                crowd->unfinished.p99_us);
    fflush(stdout);
}

/* --- one kind of server ----------------------------------------------------------------------- */

/* Open WARM connections to a server, which warm it up, and then `count` idle ones. */
static int open_all_idle_connections(struct crowd *crowd, const struct server *server,
                                     uint32_t count, int *first_fd)
{
    int error = 0;

    for (uint32_t i = 0; error == 0 && i < WARM; i++)
        error = open_idle_connection(crowd->context, server->port, crowd->kind, WARM_ASKS,
                                     first_fd + i);
    measure_sleep_seconds(LOOK_S);
    double before = measure_resident_bytes(server->pid);
    for (uint32_t i = WARM; error == 0 && i < WARM + count; i++)
        error = open_idle_connection(crowd->context, server->port, crowd->kind, 1, first_fd + i);
    measure_sleep_seconds(LOOK_S);
    if (count != 0)
        crowd->idle_bytes = (measure_resident_bytes(server->pid) - before) / count;
    return error;
}

/* Measure one kind of server while both of its servers run: the idle and the attacked one. */
static int measure_calm_and_attacked_server(struct crowd *crowd)
{
    memset(fds, -1, sizeof fds);
    int error = open_all_idle_connections(crowd, &crowd->calm, CONNECTIONS, fds);
    if (error == 0)
        error = open_all_idle_connections(crowd, &crowd->attacked, 0, fds + CONNECTIONS + WARM);
    if (error == 0)
        error = measure_idle_and_attacked_spans(crowd);
    for (uint32_t i = 0; i < CONNECTIONS + 2 * WARM; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    return error;
}

static int start_measure_and_stop_crowd_servers(struct crowd *crowd)
{
    const char *name = crowd->versus->names[crowd->which];
    struct server_usage usage;
    int error = versus_start_server(crowd->versus, crowd->which, &crowd->calm);

    if (error != 0)
        return error;
    error = versus_start_server(crowd->versus, crowd->which, &crowd->attacked);
    if (error == 0) {
        error = measure_calm_and_attacked_server(crowd);
        int end = server_stop(&crowd->attacked, &usage);
        error = error != 0 ? error : end;
    }
    int end = server_stop(&crowd->calm, &usage);
    error = error != 0 ? error : end;
    if (error != 0)
        fprintf(stderr, "tls: the crowd at %s: %s\n", name, strerror(-error));
    else
        print_figures_of_crowd(crowd);
    return error;
}

/* Returns whether this process and each server may open FILES_LEAST files. */
static bool raise_file_limit_if_enough(void)
{
    struct rlimit files = {0, 0};

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return false;
    files.rlim_cur = files.rlim_max;
    return files.rlim_max >= FILES_LEAST && setrlimit(RLIMIT_NOFILE, &files) == 0;
}

int tls_crowd_run_row(const struct versus *versus, const struct request_load_kind *kind,
                      uint32_t which, bool stands)
{
    static struct crowd crowd;

    if (!raise_file_limit_if_enough()) {
        fprintf(stderr, "tls: the row crowd needs %u open files: left out\n", FILES_LEAST);
        return 0;
    }
    crowd = (struct crowd){.versus = versus,
                           .kind = kind,
                           .context = tls_client_make_context(),
                           .which = which,
                           .stands = stands,
                           .held = CONNECTIONS};
    if (crowd.context == NULL)
        return -ENOMEM;
    web_servers_set_timeout_of_heads(stands ? 0 : EXPIRE_S);
    int error = start_measure_and_stop_crowd_servers(&crowd);
    web_servers_set_timeout_of_heads(0);
    SSL_CTX_free(crowd.context);
    return error;
}
