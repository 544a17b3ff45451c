/* The requests and answers of attackers and of the good client beside them; tests/system/talks.h
 * describes the functions. */
#include "tests/system/talks.h"

#include "tests/support/crowd.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

/* Settings of the services under test. With small buffers few bytes stay in the kernel, so a flood
 * is over soon. */
#define SMALL                                                                                      \
    "--set", "channel.socket.receiveBuffer=16KiB", "--set", "channel.socket.sendBuffer=16KiB",     \
        "--set", "channel.sendHigh=64KiB", "--set", "channel.sendLow=16KiB", "--set",              \
        "channel.linger=10s"

const domt_protocol domt_kv = {
    "kv",
    (const char *const[]){DOMT_BIN_DIR "/kv", "--config", DOMT_SOURCE_DIR "/examples/kv/kv.yaml",
                          "--set", "listeners.kv.address=127.0.0.1:0", "--set", "system.threads=2",
                          "--set", "kv.shards=3", SMALL, NULL},
    "*2\r\n$3\r\nGET\r\n$4\r\ngood\r\n",
    "$3\r\nyes\r\n",
    "*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n",
    2,
    0,
};

const domt_protocol domt_lines = {
    "lines",
    (const char *const[]){DOMT_BIN_DIR "/lines", "--config", DOMT_SOURCE_DIR "/examples/lines.yaml",
                          "--set", "listeners.lines.address=127.0.0.1:0", "--set",
                          "system.threads=2", SMALL, NULL},
    DOMT_LONG_LINE "\n",
    "error: EMSGSIZE\n",
    "count me\n",
    1,
    0,
};

/* A request for a missing key: the answer is short, and contains the current date. */
#define NO_KEY "GET /kv/none HTTP/1.1\r\nHost: localhost\r\n\r\n"

const domt_protocol domt_web = {
    "web",
    (const char *const[]){
        DOMT_BIN_DIR "/web", "--config", DOMT_SOURCE_DIR "/examples/web/web.yaml", "--set",
        "listeners.web.address=127.0.0.1:0", "--set", "listeners.kv.address=127.0.0.1:0", "--set",
        "listeners.rooms.address=127.0.0.1:0", "--set", "listeners.echo.address=127.0.0.1:0",
        "--set", "web.root=" DOMT_SOURCE_DIR "/examples/web/static", "--set", "system.threads=2",
        "--set", "observe.listen=", SMALL, NULL},
    NO_KEY,
    "HTTP/1.1 404 Not Found\r\nDate: ???, ?? ??? ???? ??:??:?? GMT\r\nContent-Length: 12\r\n"
    "Content-Type: text/plain; charset=utf-8\r\n\r\nno such key\n",
    NO_KEY,
    6,
    1,
};

/* --- dialogues -------------------------------------------------------------------------------- */

void domt_send_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        ck_assert_msg(sent > 0, "send: %s", strerror(errno));
        bytes += sent;
        size -= (size_t)sent;
    }
}

bool domt_do_bytes_match_pattern(const char *bytes, const char *pattern, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (pattern[i] != '?' && bytes[i] != pattern[i])
            return false;
    }
    return true;
}

bool domt_does_answer_match_pattern(int fd, const char *answer)
{
    char bytes[512];
    size_t have = 0;
    size_t size = strlen(answer);

    while (have < size) {
        ssize_t got = recv(fd, bytes + have, size - have, 0);
        if (got <= 0)
            return false;
        have += (size_t)got;
    }
    return domt_do_bytes_match_pattern(bytes, answer, size);
}

bool domt_is_good_client_answered(int fd, const domt_protocol *with)
{
    domt_send_all(fd, with->ask, strlen(with->ask));
    return domt_does_answer_match_pattern(fd, with->answer);
}

/* Start the service, and return the connection of the good client. */
int domt_protocol_start_and_connect(domt_service *service, const domt_protocol *with,
                                    const char *const more[])
{
    const char *arguments[64] = {NULL};
    size_t count = 0;

    for (const char *const *each = with->arguments; *each != NULL; each++)
        arguments[count++] = *each;
    for (const char *const *each = more; each != NULL && *each != NULL; each++)
        arguments[count++] = *each;
    ck_assert_uint_lt(count, 64);
    domt_service_start(service, arguments);
    int fd = domt_connect_to_port(service->port);
    if (with == &domt_kv) {
        static char big[DOMT_BIG_BYTES];
        memset(big, 'b', sizeof big);
        domt_send_all(fd, "SET good yes\r\n", 14);
        ck_assert(domt_does_answer_match_pattern(fd, "+OK\r\n"));
        domt_send_all(fd, "*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$4000\r\n", 29);
        domt_send_all(fd, big, sizeof big);
        domt_send_all(fd, "\r\n", 2);
        ck_assert(domt_does_answer_match_pattern(fd, "+OK\r\n"));
    }
    ck_assert(domt_is_good_client_answered(fd, with));
    return fd;
}

/* Returns the longest of `count` round trips of the good client. */
double domt_measure_worst_trip_ms(int fd, const domt_protocol *with, int count)
{
    uint64_t worst_ns = 0;

    for (int i = 0; i < count; i++) {
        uint64_t start_ns = domt_monotonic_ns();
        ck_assert(domt_is_good_client_answered(fd, with));
        uint64_t took_ns = domt_monotonic_ns() - start_ns;
        if (took_ns > worst_ns)
            worst_ns = took_ns;
    }
    return (double)worst_ns / 1e6;
}

/* Connect with small socket buffers, so that waiting bytes wait in the service. */
int domt_connect_with_small_buffers(const domt_service *service)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(service->port)};
    struct timeval patience = {.tv_sec = 30};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int bytes = 8192, on = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    ck_assert_int_eq(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

uint64_t domt_protocol_bytes_sent_at_start(const domt_protocol *with)
{
    return strlen(with->ask) + (with == &domt_kv ? 14 + 29 + DOMT_BIG_BYTES + 2 : 0);
}
