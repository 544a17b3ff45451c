/* Programs of other projects use the example `kv`: redis-cli, redis-benchmark, hiredis and
 * python3-redis. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef DOMT_HIREDIS
#include <hiredis.h>
#endif

static domt_service kv;

static void start_kv_with_shards(const char *shards)
{
    domt_kv_start(&kv, (const char *const[]){shards, NULL});
}

/* Run a shell command, in which %u is the port. */
static int status_of_shell_command(const char *format)
{
    char command[1024];

    snprintf(command, sizeof command, format, kv.port);
    return system(command);
}

static bool is_installed(const char *command)
{
    if (system(command) == 0)
        return true;
    printf("not installed, so not tried: %s\n", command);
    return false;
}

DOMT_TEST(redis_cli_is_served_by_kv)
{
    start_kv_with_shards("kv.shards=3");
    if (is_installed("command -v redis-cli >/dev/null")) {
        ck_assert_int_eq(
            status_of_shell_command("timeout 20 redis-cli -p %u SET a b | grep -qx OK"), 0);
        ck_assert_int_eq(
            status_of_shell_command("timeout 20 redis-cli -3 -p %u GET a | grep -qx b"), 0);
        ck_assert_int_eq(status_of_shell_command("printf 'SET b 1\nINCR b\nCLIENT GETNAME\n' | "
                                                 "timeout 20 redis-cli -p %u | grep -qx 2"),
                         0);
        ck_assert_int_eq(
            status_of_shell_command("timeout 20 redis-cli -p %u --scan | sort | tr -d '\n' | "
                                    "grep -qx ab"),
            0);
        ck_assert_int_eq(
            status_of_shell_command("timeout 20 redis-cli -p %u INFO keyspace | grep -q keys=2"),
            0);
        ck_assert_int_eq(status_of_shell_command(
                             "printf '*3\\r\\n$3\\r\\nSET\\r\\n$1\\r\\nc\\r\\n$1\\r\\n1\\r\\n' | "
                             "timeout 20 redis-cli -p %u --pipe | grep -q 'errors: 0'"),
                         0);
        ck_assert_int_eq(status_of_shell_command(
                             "timeout 20 redis-cli -p %u --bigkeys | grep -q 'Sampled 3 keys'"),
                         0);
    }
    domt_service_stop(&kv);
}

/* Uses of redis-cli for a whole server: walks over all keys, and mass insertion. */
/* Number of keys that redis-cli reads, and of those that begin with 77; number of runs of each
 * command of redis-benchmark, and of its few slow ones. */
#if DOMT_SANITIZED
#define KEYS    "10000"
#define KEYS_77 "111"
#define TIMES   "200"
#define LONGER  "2000"
#else
#define KEYS    "100000"
#define KEYS_77 "1111"
#define TIMES   "1000"
#define LONGER  "20000"
#endif

DOMT_TEST(redis_cli_looks_at_all_keys)
{
    start_kv_with_shards("kv.shards=3");
    if (is_installed("command -v redis-cli >/dev/null")) {
        ck_assert_int_eq(status_of_shell_command("seq 1 " KEYS " | sed 's/.*/SET key:& &\\r/' | "
                                                 "timeout 60 redis-cli -p %u --pipe | "
                                                 "grep -q 'errors: 0, replies: " KEYS "$'"),
                         0);
        ck_assert_int_eq(
            status_of_shell_command("timeout 20 redis-cli -p %u DBSIZE | grep -qx " KEYS), 0);
        ck_assert_int_eq(status_of_shell_command(
                             "test $(timeout 60 redis-cli -p %u --scan --pattern 'key:77*' | "
                             "sort -u | wc -l) = " KEYS_77),
                         0);
        ck_assert_int_eq(
            status_of_shell_command("timeout 20 redis-cli -p %u FLUSHALL | grep -qx OK"), 0);
        ck_assert_int_eq(status_of_shell_command("printf 'SET a 1\nRPUSH l 1 2\nHSET h a 1\n' | "
                                                 "timeout 20 redis-cli -p %u >/dev/null"),
                         0);
        ck_assert_int_eq(status_of_shell_command("timeout 20 redis-cli -p %u --memkeys 2>&1 | "
                                                 "grep -q 'Biggest   hash found' "),
                         0);
        ck_assert_int_eq(
            status_of_shell_command("timeout 20 redis-cli -p %u --hotkeys 2>&1 | "
                                    "grep -q 'An LFU maxmemory policy is not selected'"),
            0);
    }
    domt_service_stop(&kv);
}

DOMT_TEST(redis_cli_watches_a_server)
{
    start_kv_with_shards("kv.shards=3");
    if (is_installed("command -v redis-cli >/dev/null")) {
        /* each of these commands of redis-cli runs for ever, so a signal ends it */
        ck_assert_int_eq(
            status_of_shell_command("timeout 2 stdbuf -oL redis-cli -p %u -i 0.1 --stat | "
                                    "grep -q requests"),
            0);
        /* kv has no such command, so redis-cli shows an error that says so */
        ck_assert_int_eq(
            status_of_shell_command("timeout 20 redis-cli -p %u --rdb /dev/null 2>&1 | "
                                    "grep -q \"unknown command 'SYNC'\""),
            0);
        ck_assert_int_eq(status_of_shell_command("timeout 20 redis-cli -p %u MONITOR | "
                                                 "grep -q \"unknown command 'MONITOR'\""),
                         0);
        ck_assert_int_eq(status_of_shell_command("timeout 20 redis-cli -p %u EVAL 'return 1' 0 | "
                                                 "grep -q \"unknown command 'EVAL'\""),
                         0);
    }
    domt_service_stop(&kv);
}

#define TESTS                                                                                      \
    "ping_inline,ping_mbulk,set,get,incr,lpush,rpush,lpop,rpop,hset,lrange_100,lrange_300,"        \
    "lrange_500,lrange_600,mset"

/* All default tests of redis-benchmark, except those of sets and sorted sets, one by one and in
 * pipelines, in RESP 2 and 3. Its MSET has keys of several shards. */
DOMT_TEST(redis_benchmark_is_served_by_kv)
{
    start_kv_with_shards("kv.shards=1");
    if (is_installed("command -v redis-benchmark >/dev/null")) {
        ck_assert_int_eq(
            status_of_shell_command("said=$(timeout 100 redis-benchmark -p %u -q -n " TIMES
                                    " -t " TESTS " 2>&1) && ! echo \"$said\" | grep -i err >&2"),
            0);
        ck_assert_int_eq(status_of_shell_command(
                             "said=$(timeout 100 redis-benchmark -p %u -q -n " TIMES
                             " -P 16 -3 -t " TESTS " 2>&1) && ! echo \"$said\" | grep -i err >&2"),
                         0);
        ck_assert_int_eq(status_of_shell_command("timeout 60 redis-benchmark -p %u -q -n " LONGER
                                                 " -P 16 -r 1000 "
                                                 "--threads 2 -t set,get,incr,hset >/dev/null"),
                         0);
        ck_assert_int_eq(
            status_of_shell_command("timeout 60 redis-benchmark -p %u -q -n 100 -t sadd 2>&1 | "
                                    "grep -q \"Error from server: ERR unknown command 'SADD'\""),
            0);
    }
    domt_service_stop(&kv);
}

DOMT_TEST(python3_redis_is_served_by_kv)
{
    start_kv_with_shards("kv.shards=3");
    if (is_installed("/usr/bin/python3 -c 'import redis' 2>/dev/null"))
        ck_assert_int_eq(status_of_shell_command("timeout 100 /usr/bin/python3 " DOMT_SOURCE_DIR
                                                 "/tests/system/redis_client.py %u"),
                         0);
    domt_service_stop(&kv);
}

#ifdef DOMT_HIREDIS

static redisReply *get_next_reply_of_hiredis(redisContext *context)
{
    void *reply = NULL;

    ck_assert_msg(redisGetReply(context, &reply) == REDIS_OK, "%s", context->errstr);
    return reply;
}

static void check_hiredis(void)
{
    enum { PIPELINED = 10000, LARGE = 3000000 };
    redisContext *context = redisConnect("127.0.0.1", kv.port);
    char *large = malloc(LARGE);

    ck_assert(context != NULL && context->err == 0 && large != NULL);
    for (int i = 0; i < PIPELINED; i++) {
        redisAppendCommand(context, "SET key:%d %d", i, i);
        redisAppendCommand(context, "GET key:%d", i);
    }
    for (int i = 0; i < PIPELINED; i++) {
        freeReplyObject(get_next_reply_of_hiredis(context));
        redisReply *reply = get_next_reply_of_hiredis(context);
        ck_assert(reply->type == REDIS_REPLY_STRING && strtol(reply->str, NULL, 10) == i);
        freeReplyObject(reply);
    }
    memset(large, 'x', LARGE);
    freeReplyObject(redisCommand(context, "SET large %b", large, (size_t)LARGE));
    redisReply *reply = redisCommand(context, "GET large");
    ck_assert(reply != NULL && reply->len == LARGE && memcmp(reply->str, large, LARGE) == 0);
    freeReplyObject(reply);
    reply = redisCommand(context, "DBSIZE");
    ck_assert(reply->type == REDIS_REPLY_INTEGER && reply->integer == PIPELINED + 1);
    freeReplyObject(reply);
    reply = redisCommand(context, "SCAN 0 MATCH %s", "none*");
    ck_assert(reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
              reply->element[1]->elements == 0);
    freeReplyObject(reply);
    reply = redisCommand(context, "HGET large x");
    ck_assert(reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "WRONGTYPE", 9) == 0);
    freeReplyObject(reply);
    free(large);
    redisFree(context);
}

#else

static void check_hiredis(void)
{
    printf("no hiredis (Debian: libhiredis-dev): not tried\n");
}

#endif

DOMT_TEST(hiredis_is_served_by_kv)
{
    start_kv_with_shards("kv.shards=3");
    check_hiredis();
    domt_service_stop(&kv);
}

DOMT_SUITE(240)
