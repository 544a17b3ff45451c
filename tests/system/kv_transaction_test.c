/* Transactions of the example `kv`: they answer as those of redis-server, they are atomic, a change
 * of a watched key aborts them, and their queues are bounded. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/dialogue.h"
#include "tests/system/redis.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static domt_service kv;

static void start_kv_with_shards(const char *shards, const char *more)
{
    domt_kv_start(&kv, (const char *const[]){shards, more, NULL});
}

/* All keys of these transactions have the tag {t}. */
static const char *const lines[] = {
    "a EXEC", "a DISCARD", "a MULTI", "a MULTI", "a EXEC", "a MULTI x", "a MULTI", "a nonsense",
    "a SET {t}a 1", "a EXEC", "a MULTI", "a GET", "a SET {t}a 1", "a EXEC",
    "a MULTI;SET {t}k v;LPUSH {t}k x;GET {t}k;PING;ECHO %70;GET {t}none;EXEC",
    "a MULTI;DISCARD;EXEC", "a MULTI;SET {t}n 1;DISCARD;GET {t}n",
    "a MULTI;PING;ECHO x;SELECT 0;EXEC", "a MULTI;PING x y;SELECT 99;EXEC", "a MULTI;EXEC",
    "a MULTI;MSET {t}1 a {t}2 b;MGET {t}1 {t}2 {t}3;DEL {t}1 {t}none;EXISTS {t}1 {t}2;EXEC",
    "a MULTI;INCR {t}i;INCR {t}i;INCRBY {t}i 9223372036854775807;GET {t}i;EXEC",
    "a MULTI;RPUSH {t}l a b c;LRANGE {t}l 0 -1;LPOP {t}l;LPOP {t}none;LPOP {t}none 2;EXEC",
    "a MULTI;HSET {t}h f v;HGETALL {t}h;HGET {t}h none;TYPE {t}h;EXPIRE {t}h 100;TTL {t}h;EXEC",
    "a MULTI;BLPOP {t}none 0;BLPOP {t}l 0;LMOVE {t}l {t}l2 LEFT LEFT;BLMOVE {t}l {t}l2 LEFT LEFT 0;"
    "EXEC",
    "a MULTI;SET {t}x %3000;GET {t}x;STRLEN {t}x;EXEC", "a MULTI;EXEC x;EXEC",
    "a MULTI;DISCARD x;EXEC", "a WATCH", "a UNWATCH x", "a MULTI;WATCH x;EXEC",
    "a MULTI;UNWATCH;EXEC",
    /* rows in which a key is watched */
    "a WATCH {t}q", "b SET {t}q 1", "a MULTI;PING;EXEC", "a MULTI;PING;EXEC",
    "a WATCH {t}q {t}r;SET {t}q 2;MULTI;PING;EXEC", "a WATCH {t}q {t}r;SET {t}s 2;MULTI;PING;EXEC",
    "a WATCH {t}q", "b EXPIRE {t}q 100", "a MULTI;PING;EXEC", "a WATCH {t}none",
    "b DEL {t}none {t}s", "a MULTI;PING;EXEC", "a WATCH {t}s",
    "b SETNX {t}q 5;APPEND {t}q x;HSET {t}h f2 v;RPUSH {t}l x", "a MULTI;PING;EXEC", "a WATCH {t}h",
    "b HDEL {t}h none", "a MULTI;EXEC", "a WATCH {t}h", "b HDEL {t}h f", "a MULTI;EXEC",
    "a WATCH {t}l", "b LPOP {t}l", "a MULTI;EXEC", "a WATCH {t}e", "b SET {t}e 1;DEL {t}e",
    "a MULTI;EXEC", "a WATCH {t}q", "b SET {t}q 9", "a UNWATCH;MULTI;PING;EXEC", "a WATCH {t}q",
    "b SET {t}q 9", "a MULTI;DISCARD;MULTI;PING;EXEC", "a WATCH {t}q", "b SET {t}q 9",
    "a MULTI;nonsense;EXEC;MULTI;PING;EXEC", "a WATCH {t}q;WATCH {t}r", "b MULTI;SET {t}r 9;EXEC",
    "a MULTI;PING;EXEC", "a WATCH {t}q;UNWATCH;WATCH {t}q;MULTI;PING;EXEC", "a WATCH {t}q",
    "b RENAME {t}q {t}q2", "a MULTI;EXEC", "a WATCH {t}q", "b RENAME {t}q2 {t}q", "a MULTI;EXEC",
    "a WATCH {t}none", "b FLUSHALL", "a MULTI;PING;EXEC", "b RPUSH {t}li a b c d", "a WATCH {t}li",
    "b LSET {t}li 1 x", "a MULTI;PING;EXEC", "a WATCH {t}li", "b LREM {t}li 0 x",
    "a MULTI;PING;EXEC", "a WATCH {t}li", "b LTRIM {t}li 0 0", "a MULTI;PING;EXEC", "a WATCH {t}li",
    "b LREM {t}li 0 none;LRANGE {t}li 0 -1", "a MULTI;PING;EXEC", "b SET {t}st %100",
    "a WATCH {t}st", "b SETRANGE {t}st 5 xyz", "a MULTI;PING;EXEC", "a WATCH {t}st",
    "b COPY {t}st {t}st2;PERSIST {t}st;GETEX {t}st", "a MULTI;PING;EXEC", "a WATCH {t}st2",
    "b COPY {t}st {t}st2 REPLACE", "a MULTI;PING;EXEC", "b RPUSH {t}cl 1 2;HSET {t}ch f v",
    "a WATCH {t}cl {t}ch", "b COPY {t}cl {t}cl2;COPY {t}ch {t}ch2", "a MULTI;PING;EXEC",
    "a WATCH {t}cl2", "b COPY {t}cl {t}cl2 REPLACE;LRANGE {t}cl2 0 -1", "a MULTI;PING;EXEC",
    "a WATCH {t}hh", "b HINCRBY {t}hh f 1;HGET {t}hh f", "a MULTI;PING;EXEC",
    "a SET {t}q 1;WATCH {t}q", "b FLUSHALL", "a MULTI;PING;EXEC", "a QUIT", NULL};

static void compare_rows_with_redis(const char *shards)
{
    start_kv_with_shards(shards, "kv.maxMemory=0");
    domt_compare_dialogue_with_redis(lines, kv.port);
    domt_service_stop(&kv);
}

DOMT_TEST(transactions_are_those_of_redis_on_one_shard)
{
    compare_rows_with_redis("kv.shards=1");
}

DOMT_TEST(transactions_are_those_of_redis_on_one_of_several_shards)
{
    compare_rows_with_redis("kv.shards=5");
}

#define CROSS_SLOT "-CROSSSLOT Keys in request don't hash to the same slot\r\n"
#define ABORTED    "-EXECABORT Transaction discarded because of previous errors.\r\n"

DOMT_TEST(a_transaction_lies_on_one_shard)
{
    start_kv_with_shards("kv.shards=64", "kv.maxMemory=0");
    int fd = domt_connect_to_port(kv.port);

    domt_resp_expect_trace(fd, "WATCH a b c d e f g h", CROSS_SLOT);
    domt_resp_expect_trace(fd, "WATCH {x}a {x}b", "+OK\r\n");
    /* not all of these keys are on the shard of {x} */
    domt_resp_expect_trace(fd, "WATCH {b}a {c}a {d}a {e}a {f}a", CROSS_SLOT);
    domt_resp_send_command(fd, "MULTI");
    domt_resp_send_command(fd, "SET {x}a 1");
    domt_resp_send_command(fd, "MSET {b}a 1 {c}a 1 {d}a 1 {e}a 1 {f}a 1");
    domt_resp_send_command(fd, "DBSIZE");
    domt_resp_send_command(fd, "EXEC");
    char reply[DOMT_REPLY_MAX];
    (void)domt_resp_ask_for_reply(fd, "EXISTS {x}a", reply);
    ck_assert_str_eq(reply, "+OK\r\n+QUEUED\r\n" CROSS_SLOT CROSS_SLOT ABORTED ":0\r\n");
    /* each command has one key, and not all of these keys are on the shard of {x} */
    domt_resp_send_command(fd, "MULTI");
    domt_resp_send_command(fd, "SET {x}a 1");
    for (char tag = 'b'; tag <= 'f'; tag++) {
        char set[32];
        snprintf(set, sizeof set, "SET {%c}a 1", tag);
        domt_resp_send_command(fd, set);
    }
    domt_resp_send_command(fd, "EXEC");
    (void)domt_resp_ask_for_reply(fd, "EXISTS {x}a", reply);
    ck_assert_ptr_nonnull(strstr(reply, CROSS_SLOT));
    ck_assert_ptr_nonnull(strstr(reply, ABORTED ":0\r\n"));
    close(fd);
    domt_service_stop(&kv);
}

#define TOO_LARGE "-ERR the transaction is too large\r\n"

/* A transaction has a limit for its commands, and one for their bytes. */
DOMT_TEST(a_transaction_is_bounded)
{
    char reply[DOMT_REPLY_MAX];

    start_kv_with_shards("kv.shards=2", "kv.transactionCommands=3");
    int fd = domt_connect_to_port(kv.port);
    for (int i = 3; i <= 4; i++) {
        domt_resp_send_command(fd, "MULTI");
        for (int j = 0; j < i; j++)
            domt_resp_send_command(fd, "INCR {t}n");
        domt_resp_send_command(fd, "INCR {t}n");
        domt_resp_send_command(fd, i == 3 ? "DISCARD" : "EXEC");
        (void)domt_resp_ask_for_reply(fd, "GET {t}n", reply);
        ck_assert_str_eq(
            reply, i == 3 ? "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n" TOO_LARGE "+OK\r\n$-1\r\n"
                          : "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n" TOO_LARGE TOO_LARGE ABORTED
                            "$-1\r\n");
    }
    domt_resp_send_command(fd, "MULTI");
    for (int j = 0; j < 3; j++)
        domt_resp_send_command(fd, "INCR {t}n");
    (void)domt_resp_ask_for_reply(fd, "EXEC", reply);
    ck_assert_ptr_nonnull(strstr(reply, "*3\r\n:1\r\n:2\r\n:3\r\n"));
    close(fd);
    domt_service_stop(&kv);

    start_kv_with_shards("kv.shards=2", "kv.transactionBytes=10KiB");
    fd = domt_connect_to_port(kv.port);
    domt_resp_send_command(fd, "MULTI");
    domt_resp_send_command(fd, "SET {t}a %9000");
    domt_resp_send_command(fd, "SET {t}b %2000");
    (void)domt_resp_ask_for_reply(fd, "EXEC", reply);
    ck_assert_ptr_nonnull(strstr(reply, "+QUEUED\r\n" TOO_LARGE));
    ck_assert_ptr_nonnull(strstr(reply, ABORTED));
    close(fd);
    domt_service_stop(&kv);
}

/* Begin a transaction on a connection, and queue 9 KB in it. Returns whether that was accepted. */
static bool queue_9_kib_in_transaction(int fd)
{
    char reply[128];
    size_t size = 0;

    domt_resp_send_command(fd, "MULTI");
    domt_resp_send_command(fd, "SET {t}a %9000");
    do {
        ssize_t got = recv(fd, reply + size, sizeof reply - 1 - size, 0);
        ck_assert_int_gt(got, 0);
        size += (size_t)got;
        reply[size] = '\0';
    } while (size < 7 || strchr(reply + 5, '\n') == NULL);
    if (strcmp(reply, "+OK\r\n+QUEUED\r\n") == 0)
        return true;
    ck_assert_str_eq(reply, "+OK\r\n-ERR the transactions of all clients are too large\r\n");
    return false;
}

/* Ten connections queue 9 KiB each, and free the bytes: by DISCARD, by EXEC, or by their end. */
DOMT_TEST(all_transactions_together_are_bounded)
{
    char reply[DOMT_REPLY_MAX];
    int fds[10];

    start_kv_with_shards("kv.shards=2", "kv.transactionMemory=64KiB");
    for (int round = 0; round < 4; round++) {
        int queued = 0;
        for (int i = 0; i < 10; i++) {
            fds[i] = domt_connect_to_port(kv.port);
            queued += queue_9_kib_in_transaction(fds[i]);
        }
        ck_assert_int_eq(queued, 7);
        for (int i = 0; i < 10; i++) {
            if (round != 2)
                (void)domt_resp_ask_for_reply(fds[i], round == 0 ? "DISCARD" : "EXEC", reply);
            close(fds[i]);
        }
        if (round == 2)
            domt_sleep_ms(300);
    }
    domt_service_stop(&kv);
}

DOMT_TEST(watched_keys_are_bounded)
{
    char command[64], reply[DOMT_REPLY_MAX] = "+OK\r\n";
    int watched = 0;

    start_kv_with_shards("kv.shards=1", "kv.observedMemory=64KiB");
    int fd = domt_connect_to_port(kv.port);
    for (; strcmp(reply, "+OK\r\n") == 0 && watched < 10000; watched++) {
        snprintf(command, sizeof command, "WATCH key%d", watched);
        (void)domt_resp_ask_for_reply(fd, command, reply);
    }
    ck_assert_str_eq(reply, "-ERR too many keys are watched and waited for\r\n");
    ck_assert_int_gt(watched, 100);
    ck_assert_int_lt(watched, 2000);
    /* one WATCH was refused, so not all keys are watched, and the transaction must not run */
    domt_resp_send_command(fd, "MULTI");
    (void)domt_resp_ask_for_reply(fd, "EXEC", reply);
    ck_assert_ptr_nonnull(strstr(reply, "*-1\r\n"));
    domt_resp_expect_trace(fd, "WATCH key", "+OK\r\n");
    close(fd);
    /* the watches have ended with their connection, so a new one may watch */
    fd = domt_connect_to_port(kv.port);
    for (int i = 0; i < 100; i++) {
        snprintf(command, sizeof command, "WATCH other%d", i);
        domt_resp_expect_trace(fd, command, "+OK\r\n");
    }
    close(fd);
    domt_service_stop(&kv);
}

DOMT_TEST(a_watched_key_that_expires_has_changed)
{
    char reply[DOMT_REPLY_MAX];

    start_kv_with_shards("kv.shards=1", "kv.maxMemory=0");
    int fd = domt_connect_to_port(kv.port);
    domt_resp_expect_trace(fd, "SET a 1 PX 5", "+OK\r\n");
    domt_sleep_ms(10);
    domt_resp_expect_trace(fd, "WATCH a",
                           "+OK\r\n"); /* the key had expired before it was watched */
    domt_resp_send_command(fd, "MULTI");
    (void)domt_resp_ask_for_reply(fd, "EXEC", reply);
    ck_assert_str_eq(reply, "+OK\r\n*0\r\n");
    /* The rounds are repeated, so that in some of them EXEC comes when the key has expired and the
     * shard has not removed it yet. On a busy machine the key may have expired before it is
     * watched, and then the round shows nothing. */
    int i = 0;
    for (int tries = 0; i < 8 && tries < 100; tries++) {
        uint64_t begun_ns = domt_monotonic_ns();
        domt_resp_expect_trace(fd, "SET a 1 PX 200", "+OK\r\n");
        domt_resp_expect_trace(fd, "WATCH a", "+OK\r\n");
        bool in_time = domt_monotonic_ns() - begun_ns < UINT64_C(150000000);
        domt_sleep_ms(202 + (uint32_t)i);
        domt_resp_send_command(fd, "MULTI");
        (void)domt_resp_ask_for_reply(fd, "EXEC", reply);
        if (!in_time)
            continue;
        ck_assert_str_eq(reply, "+OK\r\n*-1\r\n");
        i++;
    }
    ck_assert_int_eq(i, 8);
    close(fd);
    domt_service_stop(&kv);
}

/* --- races ------------------------------------------------------------------------------------ */

#define RACERS 4
#define ROUNDS 300

/* Read one line of a reply. */
static void read_line_of_reply(int fd, char line[64])
{
    size_t size = 0;

    do
        ck_assert_int_eq(recv(fd, line + size, 1, 0), 1);
    while (line[size++] != '\n' && size < 63);
    line[size] = '\0';
}

/* Increment a key by WATCH, GET and SET, and repeat that until the transaction runs. */
static void *increment_by_transactions(void *argument)
{
    int fd = domt_connect_to_port(kv.port);
    char line[64], command[64];
    uint64_t aborted = 0;

    for (int i = 0; i < ROUNDS; i++) {
        for (bool done = false; !done;) {
            domt_resp_send_command(fd, "WATCH {t}n");
            read_line_of_reply(fd, line);
            domt_resp_send_command(fd, "GET {t}n");
            read_line_of_reply(fd, line);
            read_line_of_reply(fd, line);
            snprintf(command, sizeof command, "SET {t}n %ld", strtol(line, NULL, 10) + 1);
            domt_resp_send_command(fd, "MULTI");
            domt_resp_send_command(fd, command);
            domt_resp_send_command(fd, "INCR {t}m");
            domt_resp_send_command(fd, "EXEC");
            for (int j = 0; j < 4; j++)
                read_line_of_reply(fd, line);
            done = strcmp(line, "*2\r\n") == 0;
            ck_assert(done || strcmp(line, "*-1\r\n") == 0);
            aborted += !done;
            for (int j = 0; done && j < 2; j++)
                read_line_of_reply(fd, line);
        }
    }
    close(fd);
    return (void *)(uintptr_t)aborted;
}

DOMT_TEST(increments_by_watch_and_transaction_are_never_lost)
{
    pthread_t threads[RACERS];
    uint64_t aborted = 0;
    char reply[DOMT_REPLY_MAX];

    start_kv_with_shards("kv.shards=2", "kv.maxMemory=0");
    int fd = domt_connect_to_port(kv.port);
    domt_resp_expect_trace(fd, "SET {t}n 0", "+OK\r\n");
    for (int i = 0; i < RACERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, increment_by_transactions, NULL), 0);
    for (int i = 0; i < RACERS; i++) {
        void *result;
        ck_assert_int_eq(pthread_join(threads[i], &result), 0);
        aborted += (uintptr_t)result;
    }
    ck_assert_uint_gt(aborted, 0); /* if no transaction was aborted, none have raced */
    snprintf(reply, sizeof reply, "$4\r\n%d\r\n", RACERS * ROUNDS);
    domt_resp_expect_trace(fd, "GET {t}n", reply);
    domt_resp_expect_trace(fd, "GET {t}m", reply);
    close(fd);
    domt_service_stop(&kv);
}

DOMT_SUITE(120)
