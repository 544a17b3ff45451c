/* Strangers who send nonsense to examples/kv and examples/lines, announce bytes that never come, or
 * end or reset their connection at any byte. A good client beside them must not notice. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/redis.h"
#include "tests/system/talks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static domt_service service;

/* --- nonsense --------------------------------------------------------------------------------- */

/* Send these bytes, as a whole or byte by byte, and FIN; check that the service answers with this
 * text and closes. */
static void expect_answer_to_bytes(const domt_protocol *with, const char *bytes, size_t size,
                                   const char *answer, bool drips)
{
    char said[1024];
    size_t have = 0;
    ssize_t got = 0;
    int fd = domt_connect_with_small_buffers(&service);

    for (size_t i = 0; drips && i < size; i++)
        domt_send_all(fd, bytes + i, 1);
    if (!drips)
        (void)!send(fd, bytes, size, MSG_NOSIGNAL); /* the service may close before all is sent */
    (void)shutdown(fd, SHUT_WR);
    while ((got = recv(fd, said + have, sizeof said - 1 - have, 0)) > 0)
        have += (size_t)got;
    said[have] = '\0';
    ck_assert_msg(strcmp(said, answer) == 0, "%s: %.40s\n got:    %s\n wanted: %s", with->name,
                  bytes, said, answer);
    ck_assert_msg(got == 0, "%s: reset at %.40s", with->name, bytes);
    close(fd);
}

static void expect_answer_to_whole_and_dripped(const domt_protocol *with, const char *bytes,
                                               size_t size, const char *answer)
{
    expect_answer_to_bytes(with, bytes, size, answer, false);
    expect_answer_to_bytes(with, bytes, size, answer, true);
}

#define GETS(with, bytes, answer)                                                                  \
    expect_answer_to_whole_and_dripped(with, bytes, sizeof(bytes) - 1, answer)
#define REFUSED(text) "-ERR Protocol error: " text "\r\n"

DOMT_TEST(nonsense_is_refused_in_words_and_takes_no_memory)
{
    static char long_line[70000];
    int good = domt_protocol_start_and_connect(&service, &domt_kv, NULL);
    uint64_t before = domt_service_rss_bytes(&service);

    memset(long_line, 'x', sizeof long_line);
    GETS(&domt_kv, "*1000000000\r\n", REFUSED("invalid multibulk length"));
    GETS(&domt_kv, "*2147483648\r\n", REFUSED("invalid multibulk length"));
    GETS(&domt_kv, "*99999999999999999999999\r\n", REFUSED("invalid multibulk length"));
    GETS(&domt_kv, "*-1\r\n*0\r\n*-1000000\r\nPING\r\n", "+PONG\r\n");
    GETS(&domt_kv, "*+1\r\n$4\r\nPING\r\n", REFUSED("invalid multibulk length"));
    GETS(&domt_kv, "*1\n$4\nPING\n", REFUSED("invalid multibulk length"));
    GETS(&domt_kv, "*1\r\n$-5\r\n", REFUSED("invalid bulk length"));
    GETS(&domt_kv, "*1\r\n$4294967296\r\n", REFUSED("invalid bulk length"));
    GETS(&domt_kv, "*1\r\n$99999999999999999999\r\n", REFUSED("invalid bulk length"));
    GETS(&domt_kv, "*1\r\n$4\rPING\r\n", REFUSED("invalid bulk length"));
    GETS(&domt_kv, "*1\r\n$4\r\nPINGPING", REFUSED("invalid bulk length"));
    GETS(&domt_kv, "*1\r\n*1\r\n*1\r\n*1\r\n", REFUSED("expected '$', got '*'"));
    GETS(&domt_kv, "PING\r\n*1\r\n:4\r\nPING\r\n", "+PONG\r\n" REFUSED("expected '$', got ':'"));
    GETS(&domt_kv, "\"PING\r\nPING\r\n", REFUSED("unbalanced quotes in request"));
    GETS(&domt_kv, "\r\r\r\n\r\nPING\r\n", "+PONG\r\n");
    GETS(&domt_kv, "\r", "");
    GETS(&domt_kv, "\0\0\n", "-ERR unknown command '  ', with args beginning with: \r\n");
    GETS(&domt_kv, "*1\r\n$0\r\n\r\n", "-ERR unknown command '', with args beginning with: \r\n");
    GETS(&domt_kv, "\xff\xfe\x80\x81\n",
         "-ERR unknown command '\xff\xfe\x80\x81', with args beginning with: \r\n");
    expect_answer_to_bytes(&domt_kv, long_line, sizeof long_line, REFUSED("too big inline request"),
                           false);
    GETS(&domt_kv, "POST / HTTP/1.1\r\nHost: a\r\n\r\nSET good no\r\n", "");
    GETS(&domt_kv, "GET / HTTP/1.1\r\nHost: a\r\n\r\nSET good no\r\n",
         "-ERR wrong number of arguments for 'get' command\r\n");
    ck_assert(domt_is_good_client_answered(good, &domt_kv));

    /* clients announce bytes that they never send */
    enum { COUNT = 100 };
    static const char heads[] = "*1000000\r\n$3\r\nDEL\r\n$500000000\r\nx";
    static int fds[COUNT];
    for (int i = 0; i < COUNT; i++) {
        fds[i] = domt_connect_with_small_buffers(&service);
        domt_send_all(fds[i], heads, sizeof heads - 1);
    }
    ck_assert(domt_is_good_client_answered(good, &domt_kv));
    uint64_t grown = domt_service_rss_bytes(&service) - before;
    if (!DOMT_SANITIZED)
        ck_assert_msg(grown < 4 * MIB, "%llu KiB more", (unsigned long long)grown / 1024);
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    close(good);
    domt_service_stop(&service);
}

/* Commands of 4 MiB that never end; together they are larger than the service's memory for
 * commands. */
DOMT_TEST(commands_that_never_end_take_bounded_memory)
{
    enum { COUNT = 40 };
    static char piece[4 * MIB];
    static const char head[] = "*2\r\n$3\r\nGET\r\n$400000000\r\n";
    const char *const more[] = {"--set", "kv.incompleteMax=16MiB", NULL};
    static int fds[COUNT];
    int good = domt_protocol_start_and_connect(&service, &domt_kv, more);
    uint64_t before = domt_service_rss_bytes(&service);

    for (int i = 0; i < COUNT; i++) {
        size_t sent = 0;
        fds[i] = domt_connect_to_port(service.port);
        domt_send_all(fds[i], head, sizeof head - 1);
        while (sent < sizeof piece) { /* the service may close the connection before all is sent */
            ssize_t some = send(fds[i], piece + sent, sizeof piece - sent, MSG_NOSIGNAL);
            if (some <= 0)
                break;
            sent += (size_t)some;
        }
        ck_assert(domt_is_good_client_answered(good, &domt_kv));
    }
    uint64_t grown = domt_service_rss_bytes(&service) - before;
    fprintf(stderr, "commands that never end: %llu KiB more\n", (unsigned long long)grown / 1024);
    if (!DOMT_SANITIZED)
        ck_assert_uint_lt(grown, 64 * MIB);
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    close(good);
    domt_service_stop(&service);
    ck_assert_uint_ge(domt_service_count_in_profile(&service, "channels refused"), COUNT - 8);
}

/* Whole commands of 1 MiB, whose shard hangs: beyond a limit commands are refused, and the accepted
 * ones are executed in the end. */
DOMT_TEST(commands_that_wait_for_a_shard_take_bounded_memory)
{
    enum {
        COUNT = 12,
        EACH = 20,
        MOST_MIB = 32,
        KERNEL_MIB = 10 /* MiB that the kernel holds of a connection, at most */
    };
    static char value[MIB + 2];
    static int fds[COUNT];
    struct timeval soon = {.tv_usec = 100000};
    char reply[256];
    uint64_t done = 0, refused = 0;

    memset(value, 'v', MIB);
    memcpy(value + MIB, "\r\n", 2);
    domt_kv_start(&service, (const char *const[]){"kv.incompleteMax=32MiB", "kv.maxMemory=0",
                                                  "kv.debug=local", "kv.shards=2", NULL});
    int fd = domt_connect_to_port(service.port), sleeper = domt_connect_to_port(service.port);
    uint64_t before = domt_service_rss_bytes(&service);
    domt_resp_send_command(sleeper, DOMT_SANITIZED ? "DEBUG SLEEP 8 k" : "DEBUG SLEEP 3 k");
    for (int i = 0; i < COUNT; i++) {
        fds[i] = domt_connect_to_port(service.port);
        ck_assert_int_eq(setsockopt(fds[i], SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon), 0);
        ssize_t sent = 1;
        for (int j = 0; j < EACH && sent > 0; j++) {
            (void)!send(fds[i], "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048576\r\n", 30, MSG_NOSIGNAL);
            for (size_t at = 0; at < sizeof value && sent > 0; at += (size_t)(sent > 0 ? sent : 0))
                sent = send(fds[i], value + at, sizeof value - at, MSG_NOSIGNAL);
        }
    }
    bool sleeps = recv(sleeper, reply, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
    uint64_t grown = domt_service_rss_bytes(&service) - before;
    fprintf(stderr, "commands that wait for a shard: %llu KiB more\n",
            (unsigned long long)grown / 1024);
    if (!DOMT_SANITIZED)
        ck_assert_uint_lt(grown, 2 * MOST_MIB * MIB);
    ck_assert(domt_does_answer_match_pattern(sleeper, "+OK\r\n"));
    for (int i = 0; i < COUNT; i++) {
        (void)shutdown(fds[i], SHUT_WR);
        for (ssize_t got; (got = recv(fds[i], reply, sizeof reply, 0)) > 0;) {
            for (ssize_t j = 0; j < got; j++) {
                done += reply[j] == '+';
                refused += reply[j] == '-';
            }
        }
        close(fds[i]);
    }
    fprintf(stderr, "%llu were done, %llu connections refused\n", (unsigned long long)done,
            (unsigned long long)refused);
    ck_assert_uint_gt(done, 8);
    /* On a slow machine the shard has executed some commands before the last ones were sent; of a
     * connection that was not refused, it also executes the commands that wait in the kernel. */
    if (sleeps)
        ck_assert_uint_le(done, MOST_MIB + (COUNT - refused) * KERNEL_MIB);
    /* the memory of the executed commands is free again */
    domt_send_all(fd, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048576\r\n", 30);
    domt_send_all(fd, value, sizeof value);
    ck_assert(domt_does_answer_match_pattern(fd, "+OK\r\n"));
    close(fd);
    close(sleeper);
    domt_service_stop(&service);
}

#define NOAUTH    "-NOAUTH Authentication required.\r\n"
#define WRONGPASS "-WRONGPASS invalid username-password pair or user is disabled.\r\n"

DOMT_TEST(nobody_gets_in_without_the_password)
{
    domt_kv_start(&service, (const char *const[]){"kv.password=secret", NULL});
    GETS(&domt_kv, "GET a\r\nMGET a b c\r\nFLUSHALL\r\nPING\r\nCONFIG GET save\r\nDBSIZE\r\n",
         NOAUTH NOAUTH NOAUTH NOAUTH NOAUTH NOAUTH);
    GETS(&domt_kv, "AUTH wrong!\r\nAUTH secre\r\nAUTH secrets\r\nAUTH \"\"\r\nGET a\r\n",
         WRONGPASS WRONGPASS WRONGPASS WRONGPASS NOAUTH);
    GETS(&domt_kv, "*2\r\n$4\r\nAUTH\r\n$7\r\nsecret\0\r\nGET a\r\n", WRONGPASS NOAUTH);
    GETS(&domt_kv, "AUTH nobody secret\r\nAUTH default nothing\r\nGET a\r\n",
         WRONGPASS WRONGPASS NOAUTH);
    GETS(&domt_kv, "HELLO 3 AUTH nobody secret\r\nHELLO 3 AUTH default no\r\nGET a\r\n",
         WRONGPASS WRONGPASS NOAUTH);
    GETS(&domt_kv, "HELLO 9 AUTH default secret\r\nGET a\r\n",
         "-NOPROTO unsupported protocol version\r\n" NOAUTH);
    GETS(&domt_kv, "HELLO 3\r\nGET a\r\n",
         "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
         "AUTH <user> <pass> option can be used to authenticate the client and select the RESP "
         "protocol version at the same time\r\n" NOAUTH);
    GETS(&domt_kv, "AUTH secret\r\nGET a\r\nAUTH wrong\r\nGET a\r\n",
         "+OK\r\n$-1\r\n" WRONGPASS "$-1\r\n");
    GETS(&domt_kv, "QUIT\r\nAUTH secret\r\nGET a\r\n", "+OK\r\n");
    domt_service_stop(&service);
}

#define UNKNOWN_COUNT  REFUSED("unauthenticated multibulk length")
#define UNKNOWN_LENGTH REFUSED("unauthenticated bulk length")
#define ELEVEN                                                                                     \
    "*11\r\n$3\r\nDEL\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n$"      \
    "1\r\ng"                                                                                       \
    "\r\n$1\r\nh\r\n$1\r\ni\r\n$1\r\nj\r\n"

/* Without the password a client may send ten words of 16 KiB, as to redis-server. */
DOMT_TEST(clients_without_the_password_take_little_memory)
{
    enum { COUNT = 100, MOST = 300 * 1024 };
    static char word[16384 + 2];
    static int fds[COUNT];

    domt_kv_start(&service, (const char *const[]){"kv.password=secret", NULL});
    uint64_t before = domt_service_rss_bytes(&service);
    GETS(&domt_kv, "*11\r\n", UNKNOWN_COUNT);
    GETS(&domt_kv, ELEVEN, UNKNOWN_COUNT);
    GETS(&domt_kv, "*2\r\n$3\r\nGET\r\n$16385\r\n", UNKNOWN_LENGTH);
    GETS(&domt_kv, "AUTH wrong\r\n" ELEVEN, WRONGPASS UNKNOWN_COUNT);
    GETS(&domt_kv, "AUTH secret\r\n" ELEVEN "AUTH wrong\r\n" ELEVEN,
         "+OK\r\n:0\r\n" WRONGPASS ":0\r\n");
    GETS(&domt_kv, "AUTH secret\r\nRESET\r\n" ELEVEN, "+OK\r\n+RESET\r\n" UNKNOWN_COUNT);
    GETS(&domt_kv, "HELLO 2 AUTH default secret WHAT\r\n" ELEVEN,
         "-ERR Syntax error in HELLO option 'WHAT'\r\n:0\r\n");
    memset(word, 'w', sizeof word - 2);
    memcpy(word + sizeof word - 2, "\r\n", 2);
    for (int i = 0; i < COUNT; i++) { /* each client sends a command without its last byte */
        fds[i] = domt_connect_to_port(service.port);
        domt_send_all(fds[i], "*10\r\n", 5);
        for (int j = 0; j < 10; j++) {
            domt_send_all(fds[i], "$16384\r\n", 8);
            domt_send_all(fds[i], word, sizeof word - (j == 9));
        }
    }
    domt_sleep_ms(100);
    uint64_t grown = domt_service_rss_bytes(&service) - before;
    fprintf(stderr, "strangers: %llu KiB more\n", (unsigned long long)grown / 1024);
    if (!DOMT_SANITIZED)
        ck_assert_uint_lt(grown, (uint64_t)COUNT * MOST);
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    domt_service_stop(&service);
}

/* Check an answer of the service `lines`, to text that is sent as a whole only: the answers count
 * the lines, so a second run would differ. */
#define SAYS(bytes, answer)                                                                        \
    expect_answer_to_bytes(&domt_lines, bytes, sizeof(bytes) - 1, answer, false)

DOMT_TEST(lines_without_end_are_refused)
{
    static char long_line[70000];
    int good = domt_protocol_start_and_connect(&service, &domt_lines, NULL);

    memset(long_line, 'x', sizeof long_line);
    expect_answer_to_bytes(&domt_lines, long_line, sizeof long_line, "error: EMSGSIZE\n", false);
    GETS(&domt_lines, "\r", "error: EPIPE\n");
    SAYS("\0\0\0\n\0\0\0\r\n\0", "1\n2\nerror: EPIPE\n");
    SAYS("a\rb\n", "1\n");
    SAYS("\n\r\n\n", "1\n2\n3\n");
    ck_assert(domt_is_good_client_answered(good, &domt_lines));
    close(good);
    domt_service_stop(&service);
}

/* --- ends at each byte ------------------------------------------------------------------------ */

/* A dialogue; the test ends the connection after each byte, and checks which part of the answers
 * comes. */
typedef struct dialogue {
    const domt_protocol *with;
    const char *said[8]; /* requests that the client sends, up to a NULL */
    const char *heard[8];
    const char *broken; /* answer to a request that is incomplete when the client ends */
} dialogue;

static const dialogue dialogues[] = {
    {&domt_kv,
     {"*3\r\n$3\r\nSET\r\n$2\r\nab\r\n$5\r\nhello\r\n", "*2\r\n$3\r\nGET\r\n$2\r\nab\r\n",
      "PING \"a b\"\r\n", "*3\r\n$4\r\nMGET\r\n$2\r\nab\r\n$4\r\ngood\r\n",
      "*2\r\n$5\r\nHELLO\r\n$1\r\n4\r\n"},
     {"+OK\r\n", "$5\r\nhello\r\n", "$3\r\na b\r\n", "*2\r\n$5\r\nhello\r\n$3\r\nyes\r\n",
      "-NOPROTO unsupported protocol version\r\n"},
     ""},
    {&domt_lines,
     {DOMT_LONG_LINE "\n", DOMT_LONG_LINE "\r\n", DOMT_LONG_LINE DOMT_LONG_LINE "\n"},
     {"error: EMSGSIZE\n", "error: EMSGSIZE\n", "error: EMSGSIZE\n"},
     "error: EPIPE\n"},
};

/* Write into texts the requests, and the answers that come if the client ends its connection after
 * byte `at`. */
static size_t write_requests_and_expected_answers(const dialogue *of, size_t at, char said[1024],
                                                  char heard[1024], bool *ret_is_broken)
{
    bool is_broken = false;
    size_t size = 0;
    size_t heard_size = 0;

    said[0] = heard[0] = '\0';
    for (int i = 0; of->said[i] != NULL; i++) {
        size_t begin = size;
        size += (size_t)snprintf(said + size, 1024 - size, "%s", of->said[i]);
        is_broken |= begin < at && at < size;
        if (size <= at)
            heard_size +=
                (size_t)snprintf(heard + heard_size, 1024 - heard_size, "%s", of->heard[i]);
    }
    if (is_broken)
        (void)snprintf(heard + heard_size, 1024 - heard_size, "%s", of->broken);
    *ret_is_broken = is_broken;
    return size;
}

static void check_ends_at_each_byte(const dialogue *of)
{
    char said[1024], heard[1024], bytes[1024];
    int good = domt_protocol_start_and_connect(&service, of->with, NULL);
    bool is_broken;
    size_t size = write_requests_and_expected_answers(of, 0, said, heard, &is_broken);
    uint64_t made = 1;

    for (size_t at = 0; at <= size; at++) {
        domt_client client = {.fd = domt_connect_to_port(service.port)};
        (void)write_requests_and_expected_answers(of, at, said, heard, &is_broken);
        domt_send_all(client.fd, said, at);
        ck_assert_int_eq(shutdown(client.fd, SHUT_WR), 0);
        size_t have = 0;
        for (ssize_t got; (got = recv(client.fd, bytes + have, sizeof bytes - 1 - have, 0)) > 0;)
            have += (size_t)got;
        bytes[have] = '\0';
        ck_assert_msg(strcmp(bytes, heard) == 0, "FIN behind byte %zu:\n%s\nnot:\n%s", at, bytes,
                      heard);
        domt_client_close(&client, false);

        /* the client resets at once, or after a time in which the answers may have come */
        for (int waits = 0; waits < 2; waits++, made++) {
            client = (domt_client){.fd = domt_connect_to_port(service.port)};
            domt_send_all(client.fd, said, at);
            if (waits != 0 && heard[0] != '\0' && !is_broken)
                (void)!recv(client.fd, bytes, 1, 0);
            domt_client_close(&client, true);
        }
        made++;
        if (at % 16 == 0)
            ck_assert(domt_is_good_client_answered(good, of->with));
    }
    ck_assert(domt_is_good_client_answered(good, of->with));
    close(good);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels closed"),
                      domt_service_count_in_profile(&service, "channels opened"));
    ck_assert_uint_le(domt_service_count_in_profile(&service, "channels opened"), made);
}

DOMT_TEST(an_end_or_a_reset_at_any_byte_hurts_nobody)
{
    check_ends_at_each_byte(&dialogues[0]);
    check_ends_at_each_byte(&dialogues[1]);
}

DOMT_SUITE(120)
