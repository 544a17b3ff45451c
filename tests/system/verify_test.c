/* The randomised echo verifier: connections that behave as clients may, at random, with a drain in
 * their middle; every byte is compared with the one that was sent.
 *
 * They send byte by byte or in bursts; read at once, slowly, or not at all; finish first, or wait
 * for the other side; or reset. When a round ends, no byte may be wrong; and of the bytes that the
 * service's kernel had acknowledged before it was told to stop, only as many may be missing as the
 * service counts as cut. All random numbers come from one seed, which is printed:
 *
 *   DOMT_SEED=123 build/dev/bin/tests/system_verify
 *
 * The test takes a few seconds; with DOMT_LONG 10 minutes, or DOMT_LONG seconds if that is more
 * than 1. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS DOMT_SCALE(120u, 40u)
#define BURST_MAX   16384u
#define MS_NS       UINT64_C(1000000)

typedef enum reading { READS_AT_ONCE, READS_SLOWLY, READS_NOTHING, READINGS } reading;
typedef enum ending {
    ENDS_FIRST,  /* the client sends FIN when all is sent, then reads the rest */
    ENDS_LAST,   /* the client sends FIN when all bytes have come back */
    ENDS_NEVER,  /* the client sends until the service has sent FIN, and answers it by FIN */
    ENDS_BY_RST, /* the client resets in the middle */
    ENDINGS,
} ending;

typedef struct connection {
    int fd; /* descriptor; -1: the connection is over */
    uint32_t number;
    reading reading;
    ending ending;
    uint32_t piece_max;
    uint64_t bytes; /* number of bytes that the client sends in all */
    uint64_t sent;
    uint64_t received;
    /* bytes that the service's kernel had acknowledged when the service was told to stop */
    uint64_t acknowledged;
    uint64_t next_ns; /* time at which a slow connection reads or sends again */
    bool finished;    /* the client has sent FIN */
    bool was_broken;  /* a send of the client has failed, so a FIN from the service means nothing */
    bool was_told;    /* the connection was open when the service was told to stop */
} connection;

static domt_service service;
static unsigned short chance[3];
static connection connections[CONNECTIONS];
static uint32_t made;
static uint64_t wrong, echoed, missing, cut, rounds;
/* acknowledged bytes that had not come back at the FIN of their connection */
static uint64_t unkept;

static uint32_t random_below(uint32_t bound)
{
    return (uint32_t)nrand48(chance) % bound;
}

static char byte_of_stream_at(uint32_t number, uint64_t place)
{
    return (char)(number * 29 + place * 131 + (place >> 8) * 7 + (place >> 16) * 3);
}

static void set_size_of_socket_buffer(int fd, int which, int bytes)
{
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, which, &bytes, sizeof bytes), 0);
}

static void begin_random_connection(connection *one)
{
    static const uint32_t pieces[] = {1, 7, 100, 1500, BURST_MAX};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(service.port)};

    *one = (connection){
        .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
        .number = ++made,
        .reading = (reading)random_below(READINGS),
        .ending = (ending)random_below(ENDINGS),
        .piece_max = pieces[random_below(sizeof pieces / sizeof pieces[0])],
    };
    ck_assert_int_ge(one->fd, 0);
    one->bytes = 1 + random_below(one->piece_max < 100 ? 3000 : 2000000);
    if (one->reading != READS_AT_ONCE)
        set_size_of_socket_buffer(one->fd, SO_RCVBUF, 4096);
    if (random_below(2) == 0)
        set_size_of_socket_buffer(one->fd, SO_SNDBUF, 8192);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(one->fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(fcntl(one->fd, F_SETFL, O_NONBLOCK), 0);
}

static uint64_t bytes_owed_to_connection(const connection *one)
{
    return one->was_told ? one->acknowledged : one->sent;
}

/* End a connection. If the service has ended it, its missing bytes are added to the sums: the
 * service must have counted as many as cut. */
static void end_connection_and_count(connection *one, bool by_reset)
{
    const struct linger at_once = {.l_onoff = 1};

    if (by_reset)
        (void)setsockopt(one->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(one->fd);
    one->fd = -1;
    if (by_reset)
        return;
    if (one->received < bytes_owed_to_connection(one))
        missing += bytes_owed_to_connection(one) - one->received;
}

/* Read from a connection. Returns whether it is over. */
static bool read_bytes_that_have_come(connection *one)
{
    char bytes[BURST_MAX];
    ssize_t size = recv(one->fd, bytes, one->reading == READS_AT_ONCE ? sizeof bytes : 2048, 0);

    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (size <= 0) {
        if (size == 0 && !one->was_broken && one->received < bytes_owed_to_connection(one))
            unkept += bytes_owed_to_connection(one) - one->received;
        end_connection_and_count(one, false);
        return true;
    }
    for (ssize_t i = 0; i < size; i++)
        wrong += bytes[i] != byte_of_stream_at(one->number, one->received++);
    wrong += one->received > one->sent;
    echoed += (uint64_t)size;
    return false;
}

static void send_random_piece(connection *one)
{
    char bytes[BURST_MAX];
    uint64_t left = one->bytes - one->sent;
    uint32_t size = 1 + random_below(one->piece_max);

    if (size > left)
        size = (uint32_t)left;
    for (uint32_t i = 0; i < size; i++)
        bytes[i] = byte_of_stream_at(one->number, one->sent + i);
    ssize_t result = send(one->fd, bytes, size, MSG_NOSIGNAL);
    if (result > 0)
        one->sent += (uint64_t)result;
    else if (errno != EAGAIN && errno != EINTR)
        one->was_broken = true;
    if (one->ending == ENDS_BY_RST && one->sent > one->bytes / 2 && !one->was_told)
        end_connection_and_count(one, true);
}

static void send_fin_of_client(connection *one)
{
    one->finished = shutdown(one->fd, SHUT_WR) == 0;
}

/* Do one action of a connection; `reads` lets connections read that otherwise read nothing. */
static void do_one_action_of_connection(connection *one, uint64_t now_ns, bool reads)
{
    if (now_ns < one->next_ns)
        return;
    if (one->reading == READS_SLOWLY)
        one->next_ns = now_ns + random_below(3) * MS_NS;
    if ((one->reading != READS_NOTHING || reads) && read_bytes_that_have_come(one))
        return;
    if (one->finished)
        return;
    if (one->sent < one->bytes) {
        send_random_piece(one);
        return;
    }
    if (one->ending == ENDS_FIRST || (one->ending == ENDS_LAST && one->received == one->bytes))
        send_fin_of_client(one);
    else if (one->ending == ENDS_NEVER && !one->was_told)
        one->bytes += 1 + random_below(100000);
}

/* Let all connections act until the time is over. A connection that has ended is replaced by a new
 * one, unless `ends`. */
static void let_all_act_until(uint64_t until_ns, bool ends)
{
    bool any = true;

    for (uint64_t now_ns = domt_monotonic_ns(); any && now_ns < until_ns;
         now_ns = domt_monotonic_ns()) {
        any = !ends;
        for (uint32_t i = 0; i < CONNECTIONS; i++) {
            connection *one = &connections[i];
            if (one->fd < 0 && !ends)
                begin_random_connection(one);
            if (one->fd < 0)
                continue;
            do_one_action_of_connection(one, now_ns, false);
            any = any || (one->fd >= 0 && one->reading != READS_NOTHING);
        }
        const struct timespec moment = {.tv_nsec = 100000};
        (void)nanosleep(&moment, NULL);
    }
}

/* The service has to return all bytes that were acknowledged up to this moment. Bytes that are
 * acknowledged later may come back, too. */
static void record_acknowledged_and_stop(void)
{
    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        int unacknowledged = 0;
        connection *one = &connections[i];
        if (one->fd < 0)
            continue;
        ck_assert_int_eq(ioctl(one->fd, SIOCOUTQ, &unacknowledged), 0);
        one->acknowledged = one->sent - (uint64_t)unacknowledged + (one->finished ? 1 : 0);
        if (one->acknowledged > one->sent)
            one->acknowledged = one->sent;
        one->was_told = true;
    }
    domt_service_signal(&service, SIGTERM);
}

static void read_rest_of_all(void)
{
    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        connection *one = &connections[i];
        while (one->fd >= 0 && !read_bytes_that_have_come(one))
            continue;
    }
}

static void run_round_with_drain(void)
{
    uint64_t start_ns;

    domt_service_start(&service,
                       DOMT_ECHO_ARGUMENTS("--set", "shutdown.drainTimeout=1500ms", "--set",
                                           "channel.linger=200ms", "--set", "system.threads=2", ));
    for (uint32_t i = 0; i < CONNECTIONS; i++)
        connections[i].fd = -1;
    missing = 0;
    start_ns = domt_monotonic_ns();
    let_all_act_until(start_ns + (200 + random_below(600)) * MS_NS, false);
    record_acknowledged_and_stop();
    let_all_act_until(domt_monotonic_ns() + 2500 * MS_NS, true);
    ck_assert_int_eq(domt_service_wait(&service, 15000), 0);
    read_rest_of_all();
    cut = domt_service_count_in_profile(&service, "cut bytes");
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(unkept, 0);
    ck_assert_msg(missing <= cut, "%llu acknowledged bytes are missing, %llu were counted as cut",
                  (unsigned long long)missing, (unsigned long long)cut);
}

static uint64_t seconds_to_run(void)
{
    const char *text = getenv("DOMT_LONG");
    uint64_t seconds = text != NULL ? strtoull(text, NULL, 10) : 4;

    return text != NULL && seconds <= 1 ? 600 : seconds;
}

DOMT_TEST(every_byte_comes_back_or_was_counted_as_cut)
{
    const char *text = getenv("DOMT_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : domt_monotonic_ns();
    uint64_t until_ns = domt_monotonic_ns() + seconds_to_run() * 1000 * MS_NS;
    uint64_t all_missing = 0;
    uint64_t all_cut = 0;

    printf("DOMT_SEED=%llu %s/tests/system_verify\n", (unsigned long long)seed, DOMT_BIN_DIR);
    fflush(stdout);
    for (unsigned i = 0; i < 3; i++)
        chance[i] = (unsigned short)(seed >> (16 * i));
    do {
        run_round_with_drain();
        all_missing += missing;
        all_cut += cut;
        rounds++;
    } while (domt_monotonic_ns() < until_ns);
    printf("%llu rounds, %u connections, %llu bytes echoed, %llu wrong; %llu acknowledged bytes "
           "missing, %llu counted as cut\n",
           (unsigned long long)rounds, made, (unsigned long long)echoed, (unsigned long long)wrong,
           (unsigned long long)all_missing, (unsigned long long)all_cut);
}

DOMT_SUITE(660)
