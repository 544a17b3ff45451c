/* Differences of the example `kv` that redis-server's own tests have found: the number of arguments
 * of commands, DEBUG and its permission, CONFIG SET of keys that programs set, encodings of values,
 * transactions without memory, and random fields. Both servers get the same commands, and answer
 * the same. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/dialogue.h"
#include "tests/system/redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static domt_service kv;

/* --- numbers of arguments --------------------------------------------------------------------- */

#define ARGUMENTS_MOST 8

/* Send a command with 0 to 7 equal arguments more, each time to an empty server, and return all
 * answers together. */
static size_t answers_to_each_number_of_arguments(int fd, const char *name, const char *argument,
                                                  char reply[DOMT_REPLY_MAX])
{
    char words[160];

    snprintf(words, sizeof words, "%s", name);
    for (int count = 0; count < ARGUMENTS_MOST; count++) {
        /* ends a transaction and all subscriptions of the last command */
        domt_resp_send_command(fd, "RESET");
        domt_resp_send_command(fd, "FLUSHALL");
        domt_resp_send_command(fd, words);
        snprintf(words + strlen(words), sizeof words - strlen(words), " %s", argument);
    }
    return domt_resp_ask_for_reply(fd, "RESET", reply);
}

static void compare_numbers_of_arguments(int fd, int redis, const char *name, const char *argument)
{
    char ours[DOMT_REPLY_MAX], theirs[DOMT_REPLY_MAX];

    answers_to_each_number_of_arguments(fd, name, argument, ours);
    answers_to_each_number_of_arguments(redis, name, argument, theirs);
    ck_assert_msg(strcmp(ours, theirs) == 0, "%s\n kv:    %s\n redis: %s", name, ours, theirs);
}

static bool is_word_in_list(const char *const words[], const char *word)
{
    while (*words != NULL && strcmp(*words, word) != 0)
        words++;
    return *words != NULL;
}

/* Commands whose answers describe the server itself, or that have no answer: these answers are not
 * compared. */
static const char *const own[] = {
    "quit",        "post",         "host:",  "command",  "info",      "save",
    "bgsave",      "bgrewriteaof", "time",   "lastsave", "select",    "memory",
    "client",      "config",       "object", "pubsub",   "subscribe", "psubscribe",
    "unsubscribe", "punsubscribe", "hello",  "debug",    NULL};

static const char *const subcommands[] = {"CLIENT GETNAME",
                                          "CLIENT SETNAME",
                                          "CLIENT KILL",
                                          "CLIENT NO-EVICT",
                                          "CLIENT WHAT",
                                          "CLIENT KILL TYPE",
                                          "CLIENT KILL ID",
                                          "CLIENT KILL ADDR",
                                          "CLIENT KILL LADDR",
                                          "CLIENT KILL USER",
                                          "CLIENT KILL SKIPME",
                                          "CLIENT LIST TYPE",
                                          "CLIENT LIST ID",
                                          "CLIENT UNBLOCK",
                                          "CLIENT UNBLOCK 1",
                                          "CLIENT REPLY",
                                          "CLIENT GETREDIR",

                                          "CONFIG GET",
                                          "CONFIG RESETSTAT",
                                          "CONFIG WHAT",
                                          "OBJECT ENCODING",
                                          "OBJECT REFCOUNT",
                                          "OBJECT FREQ",
                                          "OBJECT WHAT",
                                          "OBJECT IDLETIME",
                                          "PUBSUB NUMPAT",
                                          "PUBSUB NUMSUB",
                                          "MEMORY WHAT",
                                          "COMMAND COUNT X",
                                          "COMMAND GETKEYS",
                                          "CONFIG SET",
                                          "MEMORY USAGE",
                                          "DEBUG",
                                          "DEBUG PROTOCOL",

                                          NULL};

DOMT_TEST(arguments_are_counted_as_by_redis)
{
    int fd =
        domt_kv_start_and_connect(&kv, (const char *const[]){"kv.shards=1", "kv.debug=yes", NULL});
    char names[DOMT_REPLY_MAX];
    uint16_t port;
    pid_t pid;

    if (!domt_redis_start_server(&pid, &port)) {
        domt_kv_close_and_stop(&kv, fd);
        return;
    }
    int redis = domt_connect_to_port(port);
    (void)domt_resp_ask_for_reply(fd, "COMMAND LIST", names);
    char *rest;
    (void)strtok_r(names, "\r\n", &rest); /* skips the line with the length of the array */
    int count = 0;
    for (char *word; (word = strtok_r(NULL, "\r\n", &rest)) != NULL;) {
        if (*word != '$' && !is_word_in_list(own, word)) {
            compare_numbers_of_arguments(fd, redis, word, "x");
            count++;
        }
    }
    ck_assert_int_gt(count, 80);
    for (size_t i = 0; subcommands[i] != NULL; i++)
        compare_numbers_of_arguments(fd, redis, subcommands[i], "x");
    close(redis);
    domt_redis_stop_server(pid);
    domt_kv_close_and_stop(&kv, fd);
}

/* --- DEBUG ------------------------------------------------------------------------------------ */

static const char *const debug_lines[] = {"DEBUG",
                                          "DEBUG WHAT",
                                          "DEBUG SLEEP",
                                          "DEBUG SLEEP 0",
                                          "DEBUG SLEEP x",
                                          "DEBUG SLEEP 0.01",
                                          "DEBUG SET-ACTIVE-EXPIRE",
                                          "DEBUG SET-ACTIVE-EXPIRE 0",
                                          "SET k v PX 1",
                                          "DEBUG SLEEP 0.2",
                                          "DBSIZE",
                                          "GET k",
                                          "DBSIZE",
                                          "DEBUG SET-ACTIVE-EXPIRE 1",
                                          "SET k v PX 1",
                                          "DEBUG SLEEP 0.4",
                                          "DBSIZE",
                                          "DEBUG PROTOCOL string",
                                          "DEBUG PROTOCOL integer",
                                          "DEBUG PROTOCOL double",
                                          "DEBUG PROTOCOL bignum",
                                          "DEBUG PROTOCOL null",
                                          "DEBUG PROTOCOL array",
                                          "DEBUG PROTOCOL set",
                                          "DEBUG PROTOCOL map",
                                          "DEBUG PROTOCOL attrib",
                                          "DEBUG PROTOCOL push",
                                          "DEBUG PROTOCOL verbatim",
                                          "DEBUG PROTOCOL true",
                                          "DEBUG PROTOCOL false",
                                          "DEBUG PROTOCOL what",
                                          "DEBUG PROTOCOL",
                                          "DEBUG QUICKLIST-PACKED-THRESHOLD 1b",
                                          "DEBUG QUICKLIST-PACKED-THRESHOLD x",
                                          NULL};

DOMT_TEST(debug_command_is_that_of_redis_in_resp_2_and_3)
{
    int fd = domt_kv_start_and_connect(&kv, (const char *const[]){"kv.debug=local", NULL});
    char reply[DOMT_REPLY_MAX];
    uint16_t port;
    pid_t pid;

    if (domt_redis_start_server(&pid, &port)) {
        int redis = domt_connect_to_port(port);
        domt_resp_compare_replies(fd, redis, debug_lines);
        (void)domt_resp_ask_for_reply(fd, "HELLO 3", reply);
        (void)domt_resp_ask_for_reply(redis, "HELLO 3", reply);
        domt_resp_compare_replies(fd, redis, debug_lines);
        close(redis);
        domt_redis_stop_server(pid);
    }
    domt_resp_expect_trace(fd, "HELLO 2 what", "-ERR Syntax error in HELLO option 'what'\r\n");
    domt_kv_close_and_stop(&kv, fd);
}

DOMT_TEST(debug_command_is_refused_unless_the_key_allows_it)
{
    int fd = domt_kv_start_and_connect(&kv, (const char *const[]){NULL});
    char reply[DOMT_REPLY_MAX];

    (void)domt_resp_ask_for_reply(fd, "DEBUG SLEEP 0", reply);
    ck_assert_ptr_eq(strstr(reply, "-ERR DEBUG command not allowed."), reply);
    (void)domt_resp_ask_for_reply(fd, "CONFIG GET enable-debug-command", reply);
    ck_assert_ptr_nonnull(strstr(reply, "$2\r\nno\r\n"));
    domt_resp_expect_trace(
        fd, "CONFIG SET enable-debug-command yes",
        "-ERR CONFIG SET failed (possibly related to argument 'enable-debug-command')"
        " - can't set immutable config\r\n");
    domt_kv_close_and_stop(&kv, fd);
}

/* --- CONFIG, and encodings of values ---------------------------------------------------------- */

static const char *const config_lines[] = {
    "CONFIG GET hash-max-listpack-entries", "CONFIG GET hash-max-listpack-value",
    "CONFIG GET *-ziplist-entries-none", "CONFIG GET proto-max-bulk-len",
    "CONFIG SET hash-max-ziplist-entries 3 hash-max-listpack-value 10",
    "CONFIG GET hash-max-listpack-entries", "CONFIG GET hash-max-ziplist-value",
    "CONFIG SET hash-max-listpack-value 1kb", "CONFIG GET hash-max-listpack-value",
    "CONFIG SET hash-max-listpack-value 10", "CONFIG SET hash-max-listpack-entries x",
    "CONFIG SET hash-max-listpack-entries -1", "CONFIG SET hash-max-listpack-entries \"\"",
    "CONFIG SET hash-max-listpack-entries \" 1\"", "CONFIG SET hash-max-listpack-value x",
    "CONFIG SET hash-max-listpack-value 99999999999999999999",
    "CONFIG SET list-max-listpack-size -5 list-compress-depth 2",
    "CONFIG GET list-max-ziplist-size", "CONFIG GET list-compress-depth",
    "CONFIG SET list-compress-depth -1", "CONFIG SET list-max-ziplist-size 99999999999",
    "CONFIG SET set-max-intset-entries 5 zset-max-listpack-entries 6 zset-max-ziplist-value 7",
    "CONFIG GET set-max-intset-entries", "CONFIG GET zset-max-ziplist-entries",
    "CONFIG GET zset-max-listpack-value",
    "CONFIG SET zset-max-listpack-value 1 zset-max-listpack-value 2",
    "CONFIG SET zset-max-listpack-value 3 nonsense 1", "CONFIG GET zset-max-listpack-value",
    "CONFIG SET zset-max-listpack-value", "CONFIG SET zset-max-listpack-value 1 x",
    "CONFIG GET proto-max-bulk-len", "SETRANGE s 1048575 a", "SETRANGE s 1048576 a", "APPEND s a",
    "CONFIG SET maxmemory-policy noeviction", "CONFIG SET save \"\"", "CONFIG SET appendonly no",
    "CONFIG SET databases 3",
    /* a hash keeps its encoding when it becomes smaller */
    "HSET h a 1 b 2 c 3", "OBJECT ENCODING h", "HSET h d 4", "OBJECT ENCODING h", "HDEL h a b c",
    "OBJECT ENCODING h", "COPY h h2", "OBJECT ENCODING h2", "RENAME h2 h3", "OBJECT ENCODING h3",
    "DEL h", "HSET h a 1234567890", "OBJECT ENCODING h", "HSET h a 12345678901",
    "OBJECT ENCODING h", "HSET h a 1", "OBJECT ENCODING h", "DEL h", "HSET h 12345678901 a",
    "OBJECT ENCODING h", "DEL h", "HINCRBY h 12345678901 1", "OBJECT ENCODING h", "DEL h",
    "HSETNX h a 12345678901", "OBJECT ENCODING h",
    "CONFIG SET hash-max-listpack-value 64 hash-max-listpack-entries 512", "OBJECT ENCODING h",
    "HSET h4 a 12345678901", "OBJECT ENCODING h4", "RPUSH l 1 2 3", "OBJECT ENCODING l", NULL};

static const char *const queued_lines[] = {
    "a MULTI;CONFIG SET hash-max-listpack-value 65;CONFIG GET hash-max-listpack-value;EXEC",
    "a MULTI;CONFIG SET maxmemory bla;CONFIG SET maxmemory 100mb;SET s 1;CONFIG RESETSTAT;EXEC",
    "a CONFIG GET maxmemory;CONFIG SET maxmemory 0", NULL};

DOMT_TEST(limits_are_set_and_heeded_as_by_redis)
{
    int fd = domt_kv_start_and_connect(
        &kv, (const char *const[]){"kv.shards=1", "kv.maxMemory=0", NULL});

    domt_resp_compare_with_new_redis(fd, config_lines);
    domt_compare_dialogue_with_redis(queued_lines, kv.port);
    domt_resp_expect_trace(
        fd, "CONFIG SET maxmemory-policy allkeys-lru",
        "-ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - "
        "can't set immutable config\r\n");
    domt_kv_close_and_stop(&kv, fd);
}

/* --- transactions without memory -------------------------------------------------------------- */

static const char *const full_lines[] = {"a CONFIG SET maxmemory 1",
                                         "a MULTI;SET x 1;GET x;EXEC",
                                         "a MULTI;SET x 1;DISCARD;PING",
                                         "a MULTI;GET x;EXEC",
                                         "a CONFIG SET maxmemory 0",
                                         "a MULTI;SET x 1;GET x",
                                         "b CONFIG SET maxmemory 1",
                                         "a EXEC;EXEC;GET x",
                                         "b CONFIG SET maxmemory 0",
                                         "a WATCH x;MULTI;SET x 1",
                                         "b CONFIG SET maxmemory 1",
                                         "a EXEC",
                                         "b CONFIG SET maxmemory 0",
                                         "a MULTI;SET x 2;EXEC;GET x",
                                         "a MULTI;GET x;PING",
                                         "b CONFIG SET maxmemory 1",
                                         "a EXEC",
                                         "b CONFIG SET maxmemory 0",
                                         "a MULTI;SAVE;EXEC",
                                         "a EXEC x",
                                         NULL};

DOMT_TEST(a_transaction_without_memory_is_refused_as_by_redis)
{
    int fd = domt_kv_start_and_connect(
        &kv, (const char *const[]){"kv.shards=1", "kv.maxMemory=0", NULL});

    domt_compare_dialogue_with_redis(full_lines, kv.port);
    domt_kv_close_and_stop(&kv, fd);
}

/* --- randomness ------------------------------------------------------------------------------- */

#define FIELDS 64
#define DRAWS  32000 /* draws of a field: about 500 for each */

/* Fields and keys are drawn with the same probability, also if they share a bucket. The limit is
 * far beyond what chance produces: the sum has 63 degrees of freedom. */
static void expect_draws_are_fair(int fd, const char *command, int draws, int times)
{
    static char reply[DOMT_REPLY_MAX];
    int seen[FIELDS] = {0};
    double sum = 0;

    for (int i = 0; i < times; i++) {
        (void)domt_resp_ask_for_reply(fd, command, reply);
        for (char *at = reply; (at = strstr(at, "\r\nf")) != NULL; at++)
            seen[strtol(at + 3, NULL, 10)]++;
    }
    for (int i = 0; i < FIELDS; i++) {
        double off = seen[i] - (double)draws / FIELDS;
        sum += off * off / ((double)draws / FIELDS);
    }
    ck_assert_msg(sum < 140, "%s: %.1f", command, sum);
}

DOMT_TEST(what_is_drawn_by_chance_is_drawn_evenly)
{
    int fd = domt_kv_start_and_connect(&kv, (const char *const[]){"kv.shards=1", NULL});
    char command[64], reply[DOMT_REPLY_MAX];

    for (int i = 0; i < FIELDS; i++) {
        snprintf(command, sizeof command, "HSET h f%d 1", i);
        (void)domt_resp_ask_for_reply(fd, command, reply);
    }
    expect_draws_are_fair(fd, "HRANDFIELD h -2000", DRAWS, DRAWS / 2000);
    domt_resp_expect_trace(fd, "DEL h", ":1\r\n");
    for (int i = 0; i < FIELDS; i++) {
        snprintf(command, sizeof command, "SET f%d 1", i);
        (void)domt_resp_ask_for_reply(fd, command, reply);
    }
    expect_draws_are_fair(fd, "RANDOMKEY", DRAWS / 10, DRAWS / 10);
    domt_kv_close_and_stop(&kv, fd);
}

DOMT_SUITE(240)
