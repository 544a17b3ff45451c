/* The example `kv`: it answers as redis-server does, byte by byte, whether its keys lie on one
 * shard or on several; it refuses values beyond its memory; and it ends properly under load. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/redis.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static domt_service kv;

static int start_kv_and_connect(const char *shards, const char *memory)
{
    domt_kv_start(&kv, (const char *const[]){shards, memory, NULL});
    return domt_connect_to_port(kv.port);
}

/* The commands whose replies have to be those of redis-server. Keys with the tag {t} lie on one
 * shard, others anywhere. */
static const char *const commands[] = {"PING",
                                       "ping hello",
                                       "PING a b",
                                       "ECHO",
                                       "ECHO abc",
                                       "\"\"",
                                       "nonsense",
                                       "nonsense with \"some arguments\"",
                                       "GET",
                                       "GET a b",
                                       "SET a",
                                       "SET a 1",
                                       "GET a",
                                       "get a",
                                       "GET none",
                                       "SET a \"\"",
                                       "GET a",
                                       "SET long %1000",
                                       "GET long",
                                       "SET mid %63",
                                       "GET mid",
                                       "SET mid %64",
                                       "GET mid",
                                       "SET mid %30",
                                       "GET mid",
                                       "MGET a long none mid",
                                       "MGET",
                                       "MGET none",
                                       "DEL a long none",
                                       "DEL",
                                       "DEL a",
                                       "EXISTS mid mid none",
                                       "SET k1 v1",
                                       "SET k2 v2",
                                       "SET k3 v3",
                                       "SET k4 v4",
                                       "SET k5 v5",
                                       "MGET k1 k2 k3 none k4 k5 k1",
                                       "EXISTS k1 k2 k3 k4 k5 none k1",
                                       "DBSIZE",
                                       "DEL k1 k2 k3 k4 none",
                                       "DBSIZE",
                                       "UNLINK k5",
                                       "TOUCH k5 mid",
                                       "MSET {t}1 a {t}2 b",
                                       "MSET {t}1",
                                       "MSET {t}1 a {t}2",
                                       "MGET {t}2 {t}1",
                                       "TYPE {t}1",
                                       "TYPE none",
                                       "SET n 1 NX",
                                       "SET n 2 NX",
                                       "GET n",
                                       "SET n 3 XX",
                                       "GET n",
                                       "SET none 1 XX",
                                       "SET n 4 NX XX",
                                       "SET n 4 what",
                                       "SET n 5 GET",
                                       "SET none2 5 GET",
                                       "SET n 5 EX",
                                       "SET n 5 EX 0",
                                       "SET n 5 EX -1",
                                       "SET n 5 EX x",
                                       "SET n 5 EX 10 PX 10",
                                       "SET n 5 EX 10 KEEPTTL",
                                       "SET n 5 EX 9223372036854775807",
                                       "SET n 5 EX 100",
                                       "TTL n",
                                       "SET n 6 KEEPTTL",
                                       "TTL n",
                                       "SET n 7",
                                       "TTL n",
                                       "TTL none",
                                       "PTTL none",
                                       "EXPIRE n 100",
                                       "TTL n",
                                       "PERSIST n",
                                       "PERSIST n",
                                       "TTL n",
                                       "EXPIRE none 1",
                                       "EXPIRE n x",
                                       "EXPIRE n -1",
                                       "GET n",
                                       "SELECT 0",
                                       "SELECT x",
                                       "SELECT 99",
                                       "FLUSHALL",
                                       "DBSIZE",
                                       NULL};

static void compare_rows_with_redis(const char *shards)
{
    int fd = start_kv_and_connect(shards, "kv.maxMemory=0");

    domt_resp_compare_with_new_redis(fd, commands);
    close(fd);
    domt_service_stop(&kv);
}

DOMT_TEST(replies_are_those_of_redis_on_one_shard)
{
    compare_rows_with_redis("kv.shards=1");
}

DOMT_TEST(replies_are_those_of_redis_over_several_shards)
{
    compare_rows_with_redis("kv.shards=5");
}

DOMT_TEST(keys_on_several_shards_are_refused_where_the_command_needs_one)
{
    int fd = start_kv_and_connect("kv.shards=16", "kv.maxMemory=0");

    /* For one seed of the hash in about a hundred, six keys of one letter would all lie on one
     * shard, so these keys have longer names. */
    domt_resp_expect_trace(fd, "MSET apple 1 banana 2 cherry 3 date 4 elderberries 5 fig 6",
                           "-CROSSSLOT Keys in request don't hash to the same slot\r\n");
    domt_resp_expect_trace(fd, "MSET {x}a 1 {x}b 2 y{x}c 3", "+OK\r\n");
    close(fd);
    domt_service_stop(&kv);
}

DOMT_TEST(keys_expire_unread_and_read)
{
    int fd = start_kv_and_connect("kv.shards=1", "kv.maxMemory=0");

    domt_resp_expect_trace(fd, "SET a 1 PX 1", "+OK\r\n");
    domt_resp_expect_trace(fd, "SET b 1 PX 60000", "+OK\r\n");
    char reply[DOMT_REPLY_MAX] = "";
    /* no command reads the key, but it expires all the same */
    for (int i = 0; i < 10000 && strcmp(reply, ":1\r\n") != 0; i++) {
        domt_sleep_ms(1);
        (void)domt_resp_ask_for_reply(fd, "DBSIZE", reply);
    }
    ck_assert_str_eq(reply, ":1\r\n");
    domt_resp_expect_trace(fd, "SET a 2 PX 5", "+OK\r\n");
    domt_sleep_ms(6);
    domt_resp_expect_trace(fd, "GET a", "$-1\r\n");
    domt_resp_expect_trace(fd, "GET b", "$1\r\n1\r\n");
    close(fd);
    domt_service_stop(&kv);
}

#define OUT_OF_MEMORY "-OOM command not allowed when used memory > 'maxmemory'.\r\n"

DOMT_TEST(a_full_store_refuses_to_grow_and_goes_on)
{
    int fd = start_kv_and_connect("kv.shards=1", "kv.maxMemory=1MiB");
    char command[64], reply[DOMT_REPLY_MAX] = "";
    int kept = 0;

    for (; kept < 200 && strcmp(reply, OUT_OF_MEMORY) != 0; kept++) {
        snprintf(command, sizeof command, "SET key%d %%10000", kept);
        (void)domt_resp_ask_for_reply(fd, command, reply);
    }
    ck_assert_int_gt(kept, 80);
    ck_assert_int_lt(kept, 110);
    ck_assert_uint_eq(domt_resp_ask_for_reply(fd, "GET key1", reply), 10000 + 10);
    domt_resp_expect_trace(fd, "DEL key1 key2", ":2\r\n");
    for (int i = 0; i < 200; i++) /* each SET frees the memory of the string that it replaces */
        domt_resp_expect_trace(fd, "SET again %10000", "+OK\r\n");
    close(fd);
    domt_service_stop(&kv);
}

/* --- the end under load ----------------------------------------------------------------------- */

/* Send until the service accepts no more, and count the replies until it closes. Every complete
 * command that it has accepted is answered, and the replies come without a gap. */
DOMT_TEST(a_stop_under_load_answers_what_was_read)
{
    enum { CLIENTS = 8 };
    int fds[CLIENTS];
    uint64_t received[CLIENTS] = {0};
    char bytes[DOMT_REPLY_MAX];
    static const char set[] = "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$2\r\nab\r\n";

    fds[0] = start_kv_and_connect("kv.shards=2", "kv.maxMemory=0");
    for (int i = 1; i < CLIENTS; i++)
        fds[i] = domt_connect_to_port(kv.port);
    uint64_t begin = domt_monotonic_ns();
    for (uint64_t round = 0; domt_monotonic_ns() - begin < UINT64_C(300000000); round++) {
        int i = (int)(round % CLIENTS);
        for (int j = 0; j < 50; j++)
            ck_assert_int_eq(send(fds[i], set, sizeof set - 1, MSG_NOSIGNAL), sizeof set - 1);
        while (received[i] < round / CLIENTS * 250) { /* each round has 50 replies of 5 bytes */
            ssize_t got = recv(fds[i], bytes, sizeof bytes, 0);
            ck_assert_int_gt(got, 0);
            received[i] += (uint64_t)got;
        }
    }
    domt_service_signal(&kv, SIGTERM);
    for (int i = 0; i < CLIENTS; i++) {
        ssize_t got;
        while ((got = recv(fds[i], bytes, sizeof bytes, 0)) > 0) {
            for (ssize_t j = 0; j < got; j++)
                ck_assert_int_eq(bytes[j], "+OK\r\n"[(received[i] + (uint64_t)j) % 5]);
            received[i] += (uint64_t)got;
        }
        ck_assert_int_eq(got, 0); /* the connection ends by FIN, not by a reset */
        ck_assert_uint_eq(received[i] % 5, 0);
        close(fds[i]);
    }
    ck_assert_int_eq(domt_service_wait(&kv, 10000), 0);
}

/* --- programs of other projects --------------------------------------------------------------- */

static int status_of_shell_command(const char *format)
{
    char command[512];

    snprintf(command, sizeof command, format, kv.port);
    return system(command);
}

DOMT_TEST(redis_cli_is_served)
{
    int fd = start_kv_and_connect("kv.shards=2", "kv.maxMemory=0");

    if (system("command -v redis-cli >/dev/null") == 0) {
        ck_assert_int_eq(
            status_of_shell_command("timeout 20 redis-cli -p %u SET a b | grep -qx OK"), 0);
        ck_assert_int_eq(
            status_of_shell_command("timeout 20 redis-cli -3 -p %u GET a | grep -qx b"), 0);
    }
    close(fd);
    domt_service_stop(&kv);
}

DOMT_SUITE(120)
