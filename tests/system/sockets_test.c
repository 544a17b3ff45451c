/* The key channel.socket.unsentMax limits the bytes that the kernel holds for peers that do not
 * read. Further bytes wait in the service, where they are counted. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

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
    ck_assert_uint_eq(domt_service_profile_count(&service, "channels reset"), 0);
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
DOMT_TEST(a_send_buffer_of_fixed_size_bounds_it_too)
{
    start_service_and_clients(DOMT_ECHO_ARGUMENTS("--set", "channel.socket.unsentMax=0", "--set",
                                                  "channel.socket.sendBuffer=32KiB", ));
    uint64_t most = most_bytes_after_clients_stop_reading();
    printf("a buffer of 32 KiB: %llu KiB\n", (unsigned long long)(most / KIB));
    ck_assert_uint_le(most, 64 * KIB + 2 * SEGMENT);
    let_clients_read_all_and_stop();
}

DOMT_SUITE(120)
