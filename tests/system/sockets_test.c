/* Sockets of a service: bytes that the kernel holds for peers which do not read, and 20,000
 * connects a second, which leave nothing behind. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/attack.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* The key channel.socket.unsentMax limits the bytes that the kernel holds for peers that do not
 * read. Further bytes wait in the service, where they are counted. */

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
/* The kernel checks the limit once for each segment, so it may hold one segment more. */
#define SEGMENT (64 * KIB)
#define DEAF    10

static domt_service service;
static domt_crowd crowd;
static int stranger;
static uint64_t until_ns;

static bool is_flood_time_over(const domt_crowd *unused)
{
    return domt_monotonic_ns() >= until_ns;
}

/* Let all clients send as much as they can for so many ms. */
static void let_clients_send_for(uint32_t ms)
{
    until_ns = domt_monotonic_ns() + ms * UINT64_C(1000000);
    (void)domt_crowd_run_until(&crowd, is_flood_time_over, ms + 10000);
}

/* Returns the client whose connection has these addresses on the service's side; -1: there is none.
 * Other sockets of the machine may have the same port, at another address. */
static int find_client_of_connection(unsigned address, unsigned port, unsigned peer_port)
{
    if (address != htonl(INADDR_LOOPBACK) || port != service.port)
        return -1;
    for (uint32_t i = 0; i < DEAF; i++) {
        struct sockaddr_in own;
        socklen_t size = sizeof own;
        if (getsockname(crowd.clients[i].fd, (struct sockaddr *)&own, &size) == 0 &&
            ntohs(own.sin_port) == peer_port)
            return (int)i;
    }
    return -1;
}

/* Returns the largest number of bytes that the kernel holds for one of the service's connections:
 * sent and not acknowledged, or not sent yet. SIOCOUTQ would tell that, but only to the process
 * that owns the socket. The file may list a socket twice when others come and go while it is
 * read. */
static uint64_t most_bytes_in_kernel(uint32_t *ret_count)
{
    FILE *file = fopen("/proc/net/tcp", "re");
    char line[512];
    bool seen[DEAF] = {false};
    uint64_t most = 0;

    ck_assert_ptr_nonnull(file);
    *ret_count = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned address, port, peer_port, state;
        unsigned long long bytes;
        if (sscanf(line, " %*d: %8x:%4x %*8x:%4x %2x %llx:", &address, &port, &peer_port, &state,
                   &bytes) != 5 ||
            state != 1) /* the state TCP_ESTABLISHED */
            continue;
        int client = find_client_of_connection(address, port, peer_port);
        if (client < 0)
            continue;
        *ret_count += !seen[client];
        seen[client] = true;
        most = bytes > most ? bytes : most;
    }
    fclose(file);
    return most;
}

/* Make another connection, on whose server side the service's port is used at another address. */
static void add_connection_at_other_address(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(service.port)};

    stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(stranger, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    ck_assert_int_eq(bind(stranger, (struct sockaddr *)&at, sizeof at), 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(stranger, (struct sockaddr *)&at, sizeof at), 0);
}

static void start_service_and_clients(const char *const arguments[])
{
    domt_service_start(&service, arguments);
    domt_crowd_init(&crowd, service.port, DEAF);
    for (uint32_t i = 0; i < DEAF; i++)
        crowd.clients[i].bytes = UINT64_MAX;
    domt_crowd_connect_clients(&crowd, 0, DEAF);
    add_connection_at_other_address();
}

/* Let the clients read for a while, so that the kernel raises the size of their sockets'
 * buffers, and then stop reading. Returns the largest number of bytes that the kernel holds for
 * one of them. */
static uint64_t most_bytes_after_clients_stop_reading(void)
{
    uint32_t count;

    let_clients_send_for(300);
    for (uint32_t i = 0; i < DEAF; i++)
        crowd.clients[i].deaf = true;
    let_clients_send_for(1500);
    uint64_t most = most_bytes_in_kernel(&count);
    ck_assert_uint_eq(count, DEAF);
    return most;
}

/* Let all clients read to the end, and check that every byte has come. */
static void let_clients_read_all_and_stop(void)
{
    for (uint32_t i = 0; i < DEAF; i++) {
        crowd.clients[i].bytes = crowd.clients[i].sent;
        crowd.clients[i].deaf = false;
    }
    ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 30000));
    domt_crowd_check_echoes(&crowd);
    (void)close(stranger);
    domt_crowd_fini(&crowd);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels reset"), 0);
}

DOMT_TEST(the_kernel_holds_no_more_for_a_deaf_reader_than_its_key_says)
{
    /* the default of channel.socket.unsentMax is 128 KiB */
    start_service_and_clients(DOMT_ECHO_ARGUMENTS());
    uint64_t most = most_bytes_after_clients_stop_reading();
    printf("128 KiB: %llu KiB\n", (unsigned long long)(most / KIB));
    ck_assert_uint_le(most, 128 * KIB + 2 * SEGMENT);
    ck_assert_uint_ge(most, 64 * KIB);
    let_clients_read_all_and_stop();
    start_service_and_clients(DOMT_ECHO_ARGUMENTS("--set", "channel.socket.unsentMax=16KiB", ));
    most = most_bytes_after_clients_stop_reading();
    printf("16 KiB: %llu KiB\n", (unsigned long long)(most / KIB));
    ck_assert_uint_le(most, 16 * KIB + 2 * SEGMENT);
    let_clients_read_all_and_stop();
}

/* Without the limit the kernel lets a send buffer grow up to the last number of net.ipv4.tcp_wmem,
 * which is several MiB. A configured size of the buffer limits it, too. */
DOMT_TEST(a_fixed_send_buffer_bounds_what_the_kernel_holds_too)
{
    start_service_and_clients(DOMT_ECHO_ARGUMENTS("--set", "channel.socket.unsentMax=0", "--set",
                                                  "channel.socket.sendBuffer=32KiB", ));
    uint64_t most = most_bytes_after_clients_stop_reading();
    printf("a buffer of 32 KiB: %llu KiB\n", (unsigned long long)(most / KIB));
    ck_assert_uint_le(most, 64 * KIB + 2 * SEGMENT);
    let_clients_read_all_and_stop();
}

/* --- connects --------------------------------------------------------------------------------- */

/* 20,000 connects and closes a second leave nothing behind: no descriptor, no connection, and
 * after a first wave no memory. The rate that was reached is printed. In the long form (DOMT_LONG)
 * a wave lasts five seconds. */

#define RATE      20000u /* connects in a second of all clients together */
#define CLIENTS   2u
#define GROWN_MAX (UINT64_C(1) << 20) /* bytes by which memory may grow in the second wave */

static uint32_t connects_of_a_wave(void)
{
    const char *text = getenv("DOMT_LONG");

    return text != NULL && text[0] != '\0' ? 5 * RATE : DOMT_SCALE(4000, 400);
}

/* Connections are reset as soon as they are there; then other ones get a message echoed and
 * close. */
static void make_wave_of_short_connections(domt_attack_kind kind, const char *what)
{
    domt_attack attacks[CLIENTS] = {0};
    uint32_t count = connects_of_a_wave();
    uint64_t begin_ns = domt_monotonic_ns();

    for (uint32_t i = 0; i < CLIENTS; i++) {
        attacks[i] = (domt_attack){
            .kind = kind,
            .port = service.port,
            .count = count / CLIENTS,
            .rate = RATE / CLIENTS,
        };
        domt_attack_begin(&attacks[i]);
    }
    for (uint32_t i = 0; i < CLIENTS; i++) {
        while (!domt_attack_is_done(&attacks[i]))
            domt_sleep_ms(1);
    }
    double seconds = (double)(domt_monotonic_ns() - begin_ns) / 1e9;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        domt_attack_end(&attacks[i], false);
        ck_assert_uint_eq(atomic_load(&attacks[i].refused), 0);
        ck_assert_uint_eq(atomic_load(&attacks[i].made), count / CLIENTS);
    }
    printf("%s: %u connects, %.0f a second\n", what, count, count / seconds);
}

static void check_waves_leave_nothing(domt_attack_kind kind, const char *what)
{
    ck_assert(domt_raise_descriptor_limit(4000));
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "system.threads=2", ));
    int good = domt_connect_to_port(service.port);
    ck_assert(domt_send_and_get_echo(good, "hello"));
    uint32_t descriptors = domt_service_count_descriptors(&service);

    make_wave_of_short_connections(kind, what);
    domt_service_wait_until_counts_fall_to(&service, 1, descriptors, 20000);
    uint64_t rss = domt_service_rss_bytes(&service);
    make_wave_of_short_connections(kind, what);
    domt_service_wait_until_counts_fall_to(&service, 1, descriptors, 20000);
    if (!DOMT_SANITIZED)
        ck_assert_uint_le(domt_service_rss_bytes(&service), rss + GROWN_MAX);

    ck_assert(domt_send_and_get_echo(good, "still here"));
    close(good);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels opened"),
                      domt_service_count_in_profile(&service, "channels closed"));
}

DOMT_TEST(connects_that_are_reset_at_once_leave_nothing)
{
    check_waves_leave_nothing(DOMT_ATTACK_DROP, "drop");
}

DOMT_TEST(connects_for_one_message_leave_nothing)
{
    check_waves_leave_nothing(DOMT_ATTACK_VISIT, "visit");
}

DOMT_SUITE(120)
