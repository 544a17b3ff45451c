/* The example `kv` for people who watch and configure it: CONFIG, INFO, CLIENT, COMMAND and DEBUG,
 * and its limits. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/dialogue.h"
#include "tests/system/redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static domt_service kv;

static int start_kv_and_connect(const char *setting)
{
    domt_kv_start(&kv, (const char *const[]){setting, NULL});
    return domt_connect_to_port(kv.port);
}

static void close_connection_and_stop_kv(int fd)
{
    close(fd);
    domt_service_stop(&kv);
}

static const char *const commands[] = {"CONFIG GET maxmemory-policy",
                                       "CONFIG GET save",
                                       "CONFIG GET nonsense",
                                       "CONFIG GET append?nly",
                                       "CONFIG SET nonsense 1",
                                       "CONFIG SET maxmemory 0",
                                       "CONFIG SET maxmemory 100mb",
                                       "CONFIG GET maxmemory",
                                       "CONFIG SET maxmemory 100k maxmemory-policy noeviction",
                                       "CONFIG GET maxmemory",
                                       "CONFIG SET maxmemory x",
                                       "CONFIG SET maxmemory 0",
                                       "CONFIG RESETSTAT",
                                       "CONFIG WHAT",
                                       "CONFIG REWRITE",
                                       "CLIENT GETNAME",
                                       "CLIENT SETNAME me",
                                       "CLIENT GETNAME",
                                       "CLIENT SETNAME \"a b\"",
                                       "CLIENT GETNAME",
                                       "CLIENT SETNAME \"\"",
                                       "CLIENT GETNAME",
                                       "CLIENT NO-EVICT on",
                                       "CLIENT NO-EVICT what",
                                       "CLIENT WHAT",
                                       "CLIENT KILL 1.2.3.4:5",
                                       "CLIENT KILL ID 9999",
                                       "CLIENT KILL ID x",
                                       "CLIENT REPLY ON",
                                       "CLIENT ID x",
                                       "CLIENT GETNAME x",
                                       "CLIENT SETNAME",
                                       "CLIENT KILL",
                                       "CLIENT LIST WHAT",
                                       "CLIENT LIST TYPE what",
                                       "CLIENT LIST TYPE replica",
                                       "CLIENT LIST TYPE pubsub",
                                       "CLIENT KILL TYPE what",
                                       "CLIENT KILL TYPE pubsub",
                                       "CLIENT KILL TYPE normal ID 99999",
                                       "CONFIG GET",
                                       "CONFIG set",
                                       "CONFIG RESETSTAT x",
                                       "COMMAND COUNT x",
                                       "COMMAND GETKEYS",
                                       "COMMAND GETKEYS GET a",
                                       "COMMAND GETKEYS MSET a 1 b 2",
                                       "COMMAND GETKEYS nonsense a",
                                       "COMMAND INFO nonsense",
                                       "COMMAND WHAT",
                                       "ECHO a",
                                       "SELECT 0",
                                       "SELECT 1x",
                                       "HELLO 2 SETNAME \"a b\"",
                                       NULL};

DOMT_TEST(replies_about_the_server_are_those_of_redis)
{
    int fd = start_kv_and_connect("kv.shards=3");

    domt_resp_compare_with_new_redis(fd, commands);
    close_connection_and_stop_kv(fd);
}

/* A client that has switched replies off receives publications only. */
static const char *const silences[] = {
    "a CLIENT REPLY ON",
    "a CLIENT REPLY",
    "a CLIENT REPLY WHAT",
    "a CLIENT REPLY ON x",
    "a CLIENT REPLY OFF",
    "a SET k 1;GET k;nonsense;GET",
    "a CLIENT REPLY SKIP;GET k;MGET k l m n",
    "a CLIENT REPLY ON;GET k;MGET k l",
    "a CLIENT REPLY SKIP;GET k;GET k",
    "a CLIENT REPLY SKIP;MGET a b c d e f g h;GET k;MGET a b c d e f",
    "a CLIENT REPLY SKIP;nonsense;PING;CLIENT REPLY SKIP;CLIENT REPLY SKIP;PING;ECHO x",
    "a CLIENT REPLY SKIP;MULTI;SET k 2;EXEC;PING",
    "a CLIENT REPLY OFF;MULTI;SET k 3;EXEC",
    "b GET k",
    "a CLIENT REPLY ON",
    "a CLIENT REPLY OFF;SUBSCRIBE c",
    "b PUBLISH c hello",
    "a UNSUBSCRIBE c;CLIENT REPLY ON;PING",
    "a CLIENT REPLY OFF;RESET;PING",
    "a~CLIENT REPLY SKIP;BLPOP none 0.01;PING",
    "a CLIENT REPLY SKIP;BLPOP l 0;PING",
    "b RPUSH l 1",
    "a CLIENT REPLY OFF;PING",
    NULL};

DOMT_TEST(client_reply_off_and_skip_are_those_of_redis)
{
    int fd = start_kv_and_connect("kv.shards=5");

    domt_compare_dialogue_with_redis(silences, kv.port);
    close_connection_and_stop_kv(fd);
}

/* --- INFO ------------------------------------------------------------------------------------- */

/* Returns the number behind `name` in the answer to INFO. */
static uint64_t figure_in_info(int fd, const char *name)
{
    char reply[DOMT_REPLY_MAX];

    (void)domt_resp_ask_for_reply(fd, "INFO", reply);
    const char *at = strstr(reply, name);
    ck_assert_msg(at != NULL, "%s is not in: %s", name, reply);
    return strtoull(at + strlen(name), NULL, 10);
}

static void expect_figure_in_info(int fd, const char *name, uint64_t value)
{
    ck_assert_msg(figure_in_info(fd, name) == value, "%s%llu", name,
                  (unsigned long long)figure_in_info(fd, name));
}

DOMT_TEST(info_counts_over_all_threads_and_shards)
{
    int fd = start_kv_and_connect("kv.shards=5");
    char command[64], reply[DOMT_REPLY_MAX];
    int others[6];

    for (int i = 0; i < 6; i++) {
        others[i] = domt_connect_to_port(kv.port);
        snprintf(command, sizeof command, "SET k%d 1 EX 1000", i);
        domt_resp_expect_trace(others[i], command, "+OK\r\n");
        domt_resp_expect_trace(others[i], "GET none", "$-1\r\n");
        domt_resp_expect_trace(others[i], "GET k0", "$1\r\n1\r\n");
    }
    expect_figure_in_info(fd, "connected_clients:", 7);
    expect_figure_in_info(fd, "db0:keys=", 6);
    expect_figure_in_info(fd, ",expires=", 6);
    expect_figure_in_info(fd, "keyspace_hits:", 6);
    expect_figure_in_info(fd, "keyspace_misses:", 6);
    ck_assert_uint_ge(figure_in_info(fd, "total_commands_processed:"), 6 * 3 * 2);
    ck_assert_uint_gt(figure_in_info(fd, "used_memory:"), 6 * 48);
    expect_figure_in_info(fd, "maxmemory:", 256 * 1048576);
    domt_resp_expect_trace(fd, "DEL k1", ":1\r\n");
    domt_resp_expect_trace(fd, "PERSIST k2", ":1\r\n");
    expect_figure_in_info(fd, ",expires=", 4);
    domt_resp_expect_trace(fd, "CONFIG RESETSTAT", "+OK\r\n");
    expect_figure_in_info(fd, "keyspace_hits:", 0);
    ck_assert_uint_lt(figure_in_info(fd, "total_commands_processed:"), 10);
    for (int i = 0; i < 6; i++)
        close(others[i]);
    for (int i = 0; i < 5000 && figure_in_info(fd, "connected_clients:") != 1; i++)
        domt_sleep_ms(1);
    expect_figure_in_info(fd, "connected_clients:", 1);
    domt_resp_expect_trace(fd, "FLUSHALL", "+OK\r\n");
    domt_resp_expect_trace(fd, "SET k1 1 EX 1000", "+OK\r\n");
    expect_figure_in_info(fd, ",expires=", 1);
    (void)domt_resp_ask_for_reply(fd, "INFO keyspace", reply);
    ck_assert_ptr_nonnull(strstr(reply, "# Keyspace"));
    ck_assert_ptr_null(strstr(reply, "# Server"));
    close_connection_and_stop_kv(fd);
}

/* --- CLIENT ----------------------------------------------------------------------------------- */

DOMT_TEST(clients_are_listed_and_ended_on_all_threads)
{
    int fd = start_kv_and_connect("kv.shards=2");
    char command[64], reply[DOMT_REPLY_MAX];
    int others[6];

    for (int i = 0; i < 6; i++) {
        others[i] = domt_connect_to_port(kv.port);
        snprintf(command, sizeof command, "CLIENT SETNAME other%d", i);
        domt_resp_expect_trace(others[i], command, "+OK\r\n");
    }
    (void)domt_resp_ask_for_reply(fd, "CLIENT LIST", reply);
    for (int i = 0; i < 6; i++) {
        snprintf(command, sizeof command, " name=other%d ", i);
        ck_assert_msg(strstr(reply, command) != NULL, "%s", reply);
    }
    (void)domt_resp_ask_for_reply(others[3], "CLIENT ID", reply);
    snprintf(command, sizeof command, "CLIENT KILL ID %lu", strtoul(reply + 1, NULL, 10));
    domt_resp_expect_trace(fd, command, ":1\r\n");
    ck_assert_int_eq(recv(others[3], reply, 1, 0), 0);
    domt_resp_expect_trace(fd, command, ":0\r\n");
    (void)domt_resp_ask_for_reply(fd, "CLIENT LIST", reply);
    ck_assert_ptr_null(strstr(reply, "name=other3 "));
    for (int i = 0; i < 6; i++) {
        if (i != 3)
            domt_resp_expect_trace(others[i], "PING", "+PONG\r\n");
        close(others[i]);
    }
    close_connection_and_stop_kv(fd);
}

DOMT_TEST(a_sleep_holds_up_its_own_connection_alone)
{
    int fd = start_kv_and_connect("kv.debug=local"), other = domt_connect_to_port(kv.port);
    char reply[DOMT_REPLY_MAX];
    size_t got = 0;
    uint64_t begin = domt_monotonic_ns();

    domt_resp_send_command(fd, "DEBUG SLEEP 0.4");
    domt_resp_send_command(fd, "SET behind 1");
    domt_sleep_ms(50);
    domt_resp_expect_trace(other, "EXISTS behind", ":0\r\n");
    while (got < 10) {
        ssize_t some = recv(fd, reply + got, 10 - got, 0);
        ck_assert_int_gt(some, 0);
        got += (size_t)some;
    }
    ck_assert_uint_ge(domt_monotonic_ns() - begin, 400000000);
    ck_assert(memcmp(reply, "+OK\r\n+OK\r\n", 10) == 0);
    close(other);
    close_connection_and_stop_kv(fd);
}

/* --- limits ----------------------------------------------------------------------------------- */

#define OUT_OF_MEMORY "-OOM command not allowed when used memory > 'maxmemory'.\r\n"

/* At the limit of memory, reading and deleting still work; the limit is changed while the program
 * runs; and the memory of deleted values, also large ones, is soon free for others. */
DOMT_TEST(a_full_store_serves_and_recovers)
{
    int fd = start_kv_and_connect("kv.shards=2");
    char command[64], reply[DOMT_REPLY_MAX] = "";
    int kept = 0;

    domt_resp_expect_trace(fd, "CONFIG SET maxmemory 4mb", "+OK\r\n");
    for (; kept < 1000 && strcmp(reply, OUT_OF_MEMORY) != 0; kept++) {
        snprintf(command, sizeof command, "SET {x}%d %%10000", kept);
        (void)domt_resp_ask_for_reply(fd, command, reply);
    }
    ck_assert_int_gt(kept, 150); /* the key's shard is one of two, and has half of the memory */
    ck_assert_int_lt(kept, 250);
    *reply = '\0';
    /* fills the memory that is left */
    for (int i = 0; i < 1000 && strcmp(reply, OUT_OF_MEMORY) != 0; i++) {
        snprintf(command, sizeof command, "SET {x}a%d 1", i);
        (void)domt_resp_ask_for_reply(fd, command, reply);
    }
    domt_resp_expect_trace(fd, "LPUSH {x}list abcd", OUT_OF_MEMORY);
    domt_resp_expect_trace(fd, "APPEND {x}1 %10000", OUT_OF_MEMORY);
    domt_resp_expect_trace(fd, "SETRANGE {x}1 100000 a", OUT_OF_MEMORY);
    domt_resp_expect_trace(fd, "HSET {x}h a b", OUT_OF_MEMORY);
    domt_resp_expect_trace(fd, "COPY {x}1 {x}new", OUT_OF_MEMORY);
    domt_resp_expect_trace(fd, "STRLEN {x}1", ":10000\r\n");
    domt_resp_expect_trace(fd, "EXPIRE {x}1 1000", ":1\r\n");
    domt_resp_expect_trace(fd, "DEL {x}1 {x}2", ":2\r\n");
    domt_resp_expect_trace(fd, "SET {x}1 %10000", "+OK\r\n");
    domt_resp_expect_trace(fd, "CONFIG SET maxmemory 8mb", "+OK\r\n");
    domt_resp_expect_trace(fd, "SETRANGE {x}far 5000000 a", OUT_OF_MEMORY);
    domt_resp_expect_trace(fd, "EXISTS {x}far", ":0\r\n");
    for (int i = 0; i < 20; i++)
        (void)domt_resp_ask_for_reply(fd, "RPUSH {x}l %10000 %10000 %10000", reply);
    domt_resp_expect_trace(fd, "CONFIG SET maxmemory 1mb", "+OK\r\n");
    domt_resp_expect_trace(fd, "SET {x}2 1", OUT_OF_MEMORY);
    domt_resp_expect_trace(fd, "FLUSHALL", "+OK\r\n");
    snprintf(reply, sizeof reply, "%s", OUT_OF_MEMORY);
    for (int i = 0; i < 5000 && strcmp(reply, OUT_OF_MEMORY) == 0; i++) {
        domt_sleep_ms(1);
        (void)domt_resp_ask_for_reply(fd, "SET {x}2 1", reply);
    }
    ck_assert_str_eq(reply, "+OK\r\n");
    close_connection_and_stop_kv(fd);
}

static void expect_error_and_close(int fd, const char *error)
{
    char reply[256];
    size_t got = 0;

    for (ssize_t some; (some = recv(fd, reply + got, sizeof reply - 1 - got, 0)) > 0;)
        got += (size_t)some;
    reply[got] = '\0';
    ck_assert_str_eq(reply, error);
    close(fd);
}

DOMT_TEST(values_arguments_and_answers_have_limits)
{
    int fd = start_kv_and_connect("kv.valueMax=100000B");
    char reply[DOMT_REPLY_MAX];

    domt_resp_expect_trace(fd, "SET a %100000", "+OK\r\n");
    domt_resp_expect_trace(fd, "APPEND a b",
                           "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n");
    domt_resp_expect_trace(fd, "SETRANGE a 99999 bb",
                           "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n");
    domt_resp_expect_trace(fd, "SETRANGE a 99998 bb", ":100000\r\n");
    static const char long_value[] = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$100001\r\n";
    ck_assert_int_eq(send(fd, long_value, sizeof long_value - 1, MSG_NOSIGNAL),
                     (int)sizeof long_value - 1);
    expect_error_and_close(fd, "-ERR Protocol error: invalid bulk length\r\n");
    domt_service_stop(&kv);

    fd = start_kv_and_connect("kv.argumentsMax=16");
    domt_resp_expect_trace(fd, "DEL 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", ":0\r\n");
    ck_assert_int_eq(send(fd, "*17\r\n", 5, MSG_NOSIGNAL), 5);
    expect_error_and_close(fd, "-ERR Protocol error: invalid multibulk length\r\n");
    domt_service_stop(&kv);

    fd = start_kv_and_connect("kv.answerMax=64KiB");
    for (int i = 0; i < 20; i++)
        (void)domt_resp_ask_for_reply(fd, "RPUSH l %3000", reply);
    ck_assert_uint_gt(domt_resp_ask_for_reply(fd, "LRANGE l 0 -1", reply), 60000);
    for (int i = 0; i < 10; i++)
        (void)domt_resp_ask_for_reply(fd, "RPUSH l %3000", reply);
    domt_resp_expect_trace(fd, "LRANGE l 0 -1", "-ERR the answer is longer than kv.answerMax\r\n");
    ck_assert_uint_gt(domt_resp_ask_for_reply(fd, "LRANGE l 0 9", reply), 30000);
    close_connection_and_stop_kv(fd);
}

DOMT_SUITE(120)
