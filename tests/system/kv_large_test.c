/* One value of 64 MiB in the example `kv`, and a hundred readers that hardly read: they share its
 * bytes, use hardly any memory, and delay no other client; and a reader that reads gets all of
 * it. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/redis.h"
#include "tests/system/talks.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB     (UINT64_C(1) << 20)
#define VALUE   (64 * MIB)
#define READERS 100

/* Limits of memory and CPU time for all slow readers together. One more copy of the value would be
 * 64 MiB. */
#define READERS_BYTES_MOST ((DOMT_SANITIZED ? 64 : 16) * MIB)
#define PING_CPU_MOST_NS   (UINT64_C(1000000) * (DOMT_SANITIZED ? 300 : 30))

static domt_service kv;
static char head[64];

/* Returns byte `i` of the large value. */
static char byte_of_value_at(uint64_t i)
{
    return (char)('a' + i / 4093 % 26);
}

static void set_large_value(int fd)
{
    char *value = malloc(MIB), reply[5];

    domt_send_all(fd, head,
                  (size_t)snprintf(head, sizeof head, "*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$%llu\r\n",
                                   (unsigned long long)VALUE));
    for (uint64_t at = 0; at < VALUE; at += MIB) {
        for (uint64_t i = 0; i < MIB; i++)
            value[i] = byte_of_value_at(at + i);
        domt_send_all(fd, value, MIB);
    }
    domt_send_all(fd, "\r\n", 2);
    ck_assert_int_eq(recv(fd, reply, 5, MSG_WAITALL), 5);
    ck_assert(memcmp(reply, "+OK\r\n", 5) == 0);
    free(value);
}

/* Connect with a receive buffer of a few KiB, request the large value, and read only its first
 * byte. */
static int connect_slow_reader(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(kv.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size = 4096;
    char byte;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    domt_resp_send_command(fd, "GET big");
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 1);
    ck_assert_int_eq(byte, '$');
    return fd;
}

/* Read the large value from a connection; `read` bytes of its reply were read before. */
static void read_and_check_value(int fd, size_t read)
{
    char *bytes = malloc(MIB);
    size_t head_size = (size_t)snprintf(head, sizeof head, "$%llu\r\n", (unsigned long long)VALUE);
    uint64_t at = 0, wrong = 0;

    ck_assert_int_eq(recv(fd, bytes, head_size - read, MSG_WAITALL), (ssize_t)(head_size - read));
    ck_assert(memcmp(bytes, head + read, head_size - read) == 0);
    while (at < VALUE) {
        ssize_t got = recv(fd, bytes, VALUE - at < MIB ? VALUE - at : MIB, 0);
        ck_assert_int_gt(got, 0);
        for (ssize_t i = 0; i < got; i++, at++)
            wrong += bytes[i] != byte_of_value_at(at);
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_int_eq(recv(fd, bytes, 2, MSG_WAITALL), 2);
    free(bytes);
}

DOMT_TEST(a_large_value_is_shared_by_readers_that_hardly_read)
{
    int slow[READERS];
    uint64_t most_ns = 0;

    domt_kv_start(&kv, (const char *const[]){"system.threads=1", NULL});
    int fd = domt_connect_to_port(kv.port);
    set_large_value(fd);
    uint64_t before = domt_service_rss_bytes(&kv);
    for (int i = 0; i < READERS; i++) {
        slow[i] = connect_slow_reader();
        uint64_t begin_ns = domt_service_cpu_ns(&kv);
        domt_resp_expect_trace(fd, "PING", "+PONG\r\n");
        uint64_t took_ns = domt_service_cpu_ns(&kv) - begin_ns;
        most_ns = took_ns > most_ns ? took_ns : most_ns;
    }
    uint64_t readers_bytes = domt_service_rss_bytes(&kv) - before;
    printf("%d readers take %llu KiB; another client waits for %.1f ms of CPU time at most\n",
           READERS, (unsigned long long)(readers_bytes / 1024), (double)most_ns / 1e6);
    if (!DOMT_SANITIZED) { /* a sanitizer keeps freed memory, so memory is not measured then */
        ck_assert_uint_lt(before, 2 * VALUE);
        ck_assert_int_lt((int64_t)readers_bytes, (int64_t)READERS_BYTES_MOST);
    }
    ck_assert_uint_lt(most_ns, PING_CPU_MOST_NS);
    domt_resp_expect_trace(fd, "GETRANGE big 0 3", "$4\r\naaaa\r\n");
    domt_resp_send_command(fd, "GET big");
    read_and_check_value(fd, 0);
    /* a reply that has begun still has the old value when the key gets a new one */
    int late = domt_connect_to_port(kv.port);
    domt_resp_send_command(late, "GET big");
    char byte;
    ck_assert_int_eq(recv(late, &byte, 1, 0), 1);
    domt_resp_expect_trace(fd, "SET big short", "+OK\r\n");
    domt_resp_expect_trace(fd, "GET big", "$5\r\nshort\r\n");
    read_and_check_value(late, 1);
    close(late);
    for (int i = 0; i < READERS; i++)
        close(slow[i]);
    for (int i = 0; i < 10000 && domt_service_rss_bytes(&kv) > VALUE / 2 && !DOMT_SANITIZED; i++)
        domt_sleep_ms(1);
    ck_assert(DOMT_SANITIZED || domt_service_rss_bytes(&kv) <= VALUE / 2);
    close(fd);
    domt_service_stop(&kv);
}

DOMT_SUITE(240)
