/* The example `kv` over several nodes: each node answers for any key as redis-server does, clients
 * of different nodes wait for each other's elements and get each other's messages, and keys move
 * with their shards, unless a node dies. */
#include "tests/support/crowd.h"
#include "tests/support/nats_server.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/dialogue.h"
#include "tests/system/redis.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NODES   3
#define SHARDS  16
#define DOWN_MS 1000

static domt_nats_server broker;
static char directory[64];
static domt_service nodes[NODES + 1];
static int fds[NODES + 1];

static void start_broker(void)
{
    char config[128];

    snprintf(directory, sizeof directory, "/tmp/domus-kv-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(config, sizeof config, "jetstream { store_dir: \"%s\" }", directory);
    domt_nats_server_start(&broker, config, 0);
}

static void start_node(int i, const char *more)
{
    char servers[96], name[32], shards[32], down[48];

    snprintf(servers, sizeof servers, "cluster.servers=%s", broker.url);
    snprintf(name, sizeof name, "cluster.node=n%d", i);
    snprintf(shards, sizeof shards, "kv.shards=%d", SHARDS);
    snprintf(down, sizeof down, "cluster.downAfter=%dms", DOWN_MS);
    domt_kv_start(&nodes[i], (const char *const[]){"kv.cluster=true", servers, name, shards, down,
                                                   "cluster.heartbeat=50ms", more, NULL});
    fds[i] = domt_connect_to_port(nodes[i].port);
}

/* Returns the number behind `name` in the answer to INFO. */
static uint64_t figure_in_info(int fd, const char *name)
{
    char reply[DOMT_REPLY_MAX];

    (void)domt_resp_ask_for_reply(fd, strstr(name, "kv_cluster") != NULL ? "INFO cluster" : "INFO",
                                  reply);
    const char *at = strstr(reply, name);
    ck_assert_msg(at != NULL, "%s is not in: %s", name, reply);
    return strtoull(at + strlen(name), NULL, 10);
}

/* Send a command to a node again and again until the reply is this one, for at most `ms`. */
static void repeat_command_until_reply(int fd, const char *words, const char *reply, uint32_t ms)
{
    char got[DOMT_REPLY_MAX] = "";
    uint64_t begin = domt_monotonic_ns();

    do {
        (void)domt_resp_ask_for_reply(fd, words, got);
        if (strcmp(got, reply) == 0)
            return;
        domt_sleep_ms(5);
    } while (domt_monotonic_ns() - begin < ms * UINT64_C(1000000));
    ck_abort_msg("%s: %s", words, got);
}

static void start_nodes(int count)
{
    start_broker();
    for (int i = 0; i < count; i++)
        start_node(i, "kv.debug=no");
    for (int i = 0; i < count; i++) {
        for (int ms = 0;
             ms < 5000 && figure_in_info(fds[i], "kv_cluster_nodes_up:") != (uint64_t)count;
             ms += 5)
            domt_sleep_ms(5);
        ck_assert_uint_eq(figure_in_info(fds[i], "kv_cluster_nodes_up:"), (uint64_t)count);
    }
    /* repeats the command until the nodes have all shards */
    repeat_command_until_reply(fds[0], "DBSIZE", ":0\r\n", 5000);
}

static void stop_nodes(int count)
{
    char command[100];

    for (int i = 0; i < count; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        if (nodes[i].pid != 0)
            domt_service_stop(&nodes[i]);
    }
    domt_nats_server_stop(&broker);
    snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* --- answers ---------------------------------------------------------------------------------- */

/* Each row of commands is sent to another node than the row before. */
static const char *const rows[] = {
    "d SET a 1;GET a;GET none;GET a;INCR a;APPEND a %100;STRLEN a",
    "d GET a;SET b 2 EX 100;TYPE a;TYPE none;SET c 3;SET d 4;MGET a b c d none;"
    "EXISTS a b c d none",
    "d TTL none;PERSIST b;TTL b;DBSIZE;DEL a b none;DBSIZE;LPUSH a x;GET a;INCR d x",
    "d RPUSH l 1 2 3 %3000;LRANGE l 0 -1;TYPE l;LPOP l 2;LLEN l;LRANGE l 0 -1;LPUSH c 1;"
    "OBJECT ENCODING l;LMPOP 1 l LEFT COUNT 5",
    "d HSET h f 1 g 2 h %100;HGET h f;HINCRBY h f 5;HGET h f;HMGET h f g none;HLEN h;"
    "TYPE h;HGET c f",
    "d HKEYS none;HGETALL none;MULTI;GET none;HGET h h;HLEN h;EXEC;MULTI;SET {t}a 1;"
    "INCR {t}a;PING;TYPE {t}a;HGET {t}a f;EXEC",
    "d GET {t}a;MULTI;GET {t}a;SET {t}a 9;DISCARD;GET {t}a;WATCH {t}a;MULTI;PING;"
    "INCR {t}a;PUBLISH none x;EXEC;GET {t}a",
    "d MULTI;GET a b;SET {t}a x;EXEC;MULTI;INCR {t}a;LPUSH {t}a x;EXEC;MSET {t}1 a {t}2 b;"
    "MGET {t}2 {t}1;RENAME {t}1 {t}3;COPY {t}3 {t}4",
    "d GET {t}3;SET {t}3 5 NX;SET {t}3 5 GET;SETEX {t}5 10 v;GETDEL {t}5;SET n x;INCR n;"
    "SET n 10.5;INCRBYFLOAT n 0.1;SET n %40000;STRLEN n;GET n",
    "d GETRANGE n 0 10;SETBIT bits 7 1;GETBIT bits 7",
    "d~BLPOP l1 0.01",
    "d~BLMPOP 0.01 1 l LEFT",
    "d RPUSH {t}l a b;BLMOVE {t}l {t}m LEFT LEFT 0;BLPOP {t}l 0;BRPOP {t}m 0;HSET h2 f 1;"
    "HSCAN h2 0;FLUSHALL;DBSIZE;RANDOMKEY;KEYS *;SET k1 1;KEYS k*;RANDOMKEY",
    "d UNLINK k1;TOUCH k1;CONFIG SET maxmemory 100mb;CONFIG GET maxmemory;"
    "CONFIG RESETSTAT",
};

/* Check that each of the keys can be read on each node. */
static void set_keys_and_get_on_each_node(void)
{
    for (int key = 0; key < 2 * SHARDS; key++) {
        char words[32];
        snprintf(words, sizeof words, "SET key%d value", key);
        domt_resp_expect_trace(fds[key % NODES], words, "+OK\r\n");
        snprintf(words, sizeof words, "GET key%d", key);
        for (int i = 0; i < NODES; i++)
            domt_resp_expect_trace(fds[i], words, "$5\r\nvalue\r\n");
    }
    uint64_t here = 0;
    for (int i = 0; i < NODES; i++) {
        ck_assert_uint_eq(figure_in_info(fds[i], "db0:keys="), 2 * SHARDS);
        here += figure_in_info(fds[i], "kv_cluster_shards_here:");
    }
    ck_assert_uint_eq(here, SHARDS);
    domt_resp_expect_trace(fds[0], "FLUSHALL", "+OK\r\n");
}

static void compare_rows_with_redis(void)
{
    uint16_t port;
    pid_t pid;

    if (domt_redis_start_server(&pid, &port)) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            domt_compare_dialogue_at_two_ports((const char *const[]){rows[i], NULL},
                                               nodes[i % NODES].port, port);
        domt_redis_stop_server(pid);
    }
}

/* --- clients of different nodes --------------------------------------------------------------- */

static void expect_received_text(int fd, const char *text)
{
    char got[256];
    size_t size = 0, all = strlen(text);

    while (size < all) {
        ssize_t more = recv(fd, got + size, all - size, 0);
        ck_assert_msg(more > 0, "%.*s instead of %s", (int)size, got, text);
        size += (size_t)more;
    }
    ck_assert_int_eq(memcmp(got, text, all), 0);
}

/* Several keys are used, so that some of their shards are on this node and some on the other
 * one. */
static void check_element_of_other_node(int key)
{
    char words[64], text[64];
    int waiting = domt_connect_to_port(nodes[0].port);

    snprintf(words, sizeof words, "BLPOP list%d 10", key);
    domt_resp_send_command(waiting, words);
    for (int ms = 0; ms < 2000 && figure_in_info(fds[1], "blocked_clients:") != 1; ms += 5)
        domt_sleep_ms(5);
    snprintf(words, sizeof words, "RPUSH list%d one", key);
    domt_resp_expect_trace(fds[1], words, ":1\r\n");
    snprintf(text, sizeof text, "*2\r\n$5\r\nlist%d\r\n$3\r\none\r\n", key);
    expect_received_text(waiting, text);

    snprintf(words, sizeof words, "WATCH {k%d}a", key);
    domt_resp_expect_trace(waiting, words, "+OK\r\n");
    snprintf(words, sizeof words, "SET {k%d}a other", key);
    domt_resp_expect_trace(fds[1], words, "+OK\r\n");
    domt_resp_send_command(waiting, "MULTI");
    snprintf(words, sizeof words, "SET {k%d}a mine", key);
    domt_resp_send_command(waiting, words);
    domt_resp_send_command(waiting, "EXEC");
    expect_received_text(waiting, "+OK\r\n+QUEUED\r\n*-1\r\n");
    close(waiting);
}

/* A client waits for an element and leaves before it comes. Returns the number of elements in the
 * list afterwards: 0 if the element was sent to the client before its end was noticed. */
static long elements_after_client_has_left(int key)
{
    char words[64], reply[DOMT_REPLY_MAX];
    int waiting = domt_connect_to_port(nodes[0].port);

    snprintf(words, sizeof words, "BLPOP left%d 10", key);
    domt_resp_send_command(waiting, words);
    for (int ms = 0; ms < 2000 && figure_in_info(fds[1], "blocked_clients:") != 1; ms += 5)
        domt_sleep_ms(5);
    close(waiting);
    snprintf(words, sizeof words, "RPUSH left%d one", key);
    domt_resp_expect_trace(fds[1], words, ":1\r\n");
    for (int ms = 0; ms < 2000 && figure_in_info(fds[1], "blocked_clients:") != 0; ms += 5)
        domt_sleep_ms(5);
    snprintf(words, sizeof words, "LLEN left%d", key);
    /* an element that was sent in vain needs 0.1 s to return to the list */
    for (int ms = 0; ms < 300; ms += 10) {
        (void)domt_resp_ask_for_reply(fds[1], words, reply);
        if (reply[1] != '0')
            break;
        domt_sleep_ms(10);
    }
    return strtol(reply + 1, NULL, 10);
}

/* No element is doubled or lost while it moves between nodes. */
static void check_waits_over_nodes(void)
{
    char words[64];
    long there = 0;

    for (int key = 0; key < 4; key++)
        check_element_of_other_node(key);
    for (int key = 0; key < 4; key++) {
        long elements = elements_after_client_has_left(key);
        ck_assert_int_le(elements, 1);
        there += elements;
    }
    ck_assert_int_gt(there, 0);
    for (int key = 0; key < 4; key++) {
        snprintf(words, sizeof words, "LLEN list%d", key);
        domt_resp_expect_trace(fds[1], words, ":0\r\n");
    }
}

static void check_publications_over_nodes(void)
{
    int hearing = domt_connect_to_port(nodes[0].port);
    domt_resp_send_command(hearing, "SUBSCRIBE news");
    expect_received_text(hearing, "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
    domt_resp_expect_trace(fds[0], "PUBLISH news a", ":1\r\n");
    expect_received_text(hearing, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\na\r\n");
    repeat_command_until_reply(fds[1], "PUBLISH news b", ":1\r\n", 2000);
    expect_received_text(hearing, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nb\r\n");
    close(hearing);
}

/* A node refuses commands for which it would have to search keys of other shards. */
static void check_node_with_other_shards_is_refused(void)
{
    char words[64], reply[DOMT_REPLY_MAX];
    bool was_told = false;

    start_node(NODES, "kv.hashKey=other");
    for (int key = 0; key < 8 && !was_told; key++) {
        snprintf(words, sizeof words, "GET key%d", key);
        (void)domt_resp_ask_for_reply(fds[NODES], words, reply);
        was_told = strstr(reply, "-ERR kv.shards and kv.hashKey") == reply;
    }
    ck_assert(was_told);
}

DOMT_TEST(nodes_answer_for_any_key_as_redis_does_and_their_clients_meet)
{
    start_nodes(NODES);
    set_keys_and_get_on_each_node();
    compare_rows_with_redis();
    check_waits_over_nodes();
    check_publications_over_nodes();
    check_node_with_other_shards_is_refused();
    stop_nodes(NODES + 1);
}

/* --- nodes that come and go ------------------------------------------------------------------- */

/* Write values of several kinds, under keys with this number. */
static void write_values_of_all_kinds(int fd, int key)
{
    char words[64];

    snprintf(words, sizeof words, "SET {%d}s value", key);
    repeat_command_until_reply(fd, words, "+OK\r\n", 2000);
    snprintf(words, sizeof words, "SET {%d}e %%%d EX 1000", key, 1000 * (key + 1));
    domt_resp_expect_trace(fd, words, "+OK\r\n");
    snprintf(words, sizeof words, "RPUSH {%d}l a b c %%2000", key);
    domt_resp_expect_trace(fd, words, ":4\r\n");
    snprintf(words, sizeof words, "HSET {%d}h f 1 g 2", key);
    domt_resp_expect_trace(fd, words, ":2\r\n");
}

static void expect_values_of_all_kinds(int fd, int key)
{
    char words[64], text[64];

    snprintf(words, sizeof words, "GET {%d}s", key);
    repeat_command_until_reply(fd, words, "$5\r\nvalue\r\n", 2000);
    snprintf(words, sizeof words, "STRLEN {%d}e", key);
    snprintf(text, sizeof text, ":%d\r\n", 1000 * (key + 1));
    domt_resp_expect_trace(fd, words, text);
    snprintf(words, sizeof words, "TTL {%d}e", key);
    char got[DOMT_REPLY_MAX];
    (void)domt_resp_ask_for_reply(fd, words, got);
    ck_assert_int_gt(strtol(got + 1, NULL, 10), 900);
    snprintf(words, sizeof words, "LRANGE {%d}l 0 2", key);
    domt_resp_expect_trace(fd, words, "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
    snprintf(words, sizeof words, "HMGET {%d}h f g", key);
    domt_resp_expect_trace(fd, words, "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
}

/* Node 1 dies, and node 2 serves its shards. Each answer comes in time, though it may be an
 * error. */
static void check_death_of_node(int keys)
{
    char words[64], reply[DOMT_REPLY_MAX];
    uint64_t longest = 0;
    int there = 0, errors = 0;

    ck_assert_uint_gt(figure_in_info(fds[1], "kv_cluster_shards_here:"), 0);
    ck_assert_uint_gt(figure_in_info(fds[2], "kv_cluster_shards_here:"), 0);
    domt_service_signal(&nodes[1], SIGKILL);
    (void)domt_service_wait(&nodes[1], 1000);
    nodes[1].pid = 0;
    for (int key = 0; key < keys; key++) {
        uint64_t asked = domt_monotonic_ns();
        snprintf(words, sizeof words, "GET {%d}s", key);
        (void)domt_resp_ask_for_reply(fds[2], words, reply);
        uint64_t took = domt_monotonic_ns() - asked;
        longest = took > longest ? took : longest;
        there += strcmp(reply, "$5\r\nvalue\r\n") == 0;
        errors += reply[0] == '-';
    }
    printf("%d of %d keys are there, %d errors, longest answer %.0f ms\n", there, keys, errors,
           (double)longest / 1e6);
    ck_assert_int_gt(there, 0);
    ck_assert_int_lt(there, keys);
    ck_assert_uint_lt(longest, (DOWN_MS + 1000) * UINT64_C(1000000) * DOMT_SCALE(1, 4));
    for (int key = 0; key < keys; key++) {
        snprintf(words, sizeof words, "SET {%d}s again", key);
        repeat_command_until_reply(fds[2], words, "+OK\r\n", 2000);
    }
}

DOMT_TEST(keys_move_with_their_shards_unless_a_node_dies)
{
    start_nodes(2);
    for (int key = 0; key < 2 * SHARDS; key++)
        write_values_of_all_kinds(fds[key % 2], key);
    start_node(2, "kv.debug=no");
    for (int ms = 0; ms < 5000 && figure_in_info(fds[2], "kv_cluster_shards_here:") == 0; ms += 5)
        domt_sleep_ms(5);
    ck_assert_uint_gt(figure_in_info(fds[2], "kv_cluster_shards_here:"), 0);
    char words[32];
    snprintf(words, sizeof words, ":%d\r\n", 4 * 2 * SHARDS);
    repeat_command_until_reply(fds[2], "DBSIZE", words, 5000);
    for (int key = 0; key < 2 * SHARDS; key++)
        expect_values_of_all_kinds(fds[key % NODES], key);
    close(fds[0]);
    fds[0] = -1;
    domt_service_stop(&nodes[0]); /* this node leaves, and its keys move to the other nodes */
    nodes[0].pid = 0;
    repeat_command_until_reply(fds[1], "DBSIZE", words, 5000);
    for (int key = 0; key < 2 * SHARDS; key++)
        expect_values_of_all_kinds(fds[1 + key % 2], key);
    check_death_of_node(2 * SHARDS);
    stop_nodes(NODES);
}

DOMT_SUITE(60)
