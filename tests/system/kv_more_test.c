/* Further commands of the example `kv`, each compared with redis-server, byte by byte. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/redis.h"

#include <stdio.h>
#include <unistd.h>

static domt_service kv;

/* Keys with the tag {a} or {r} lie on one shard. */
static const char *const commands[] = {"SET s hello",
                                       "GETRANGE s 0 -1",
                                       "GETRANGE s 1 2",
                                       "GETRANGE s -3 -2",
                                       "GETRANGE s -2 -3",
                                       "GETRANGE s 3 100",
                                       "GETRANGE s 100 200",
                                       "GETRANGE s x 1",
                                       "GETRANGE none 0 -1",
                                       "SUBSTR s 1 -1",
                                       "SET big %10000",
                                       "GETRANGE big 10 9000",
                                       "GETRANGE big -100 -1",
                                       "SETRANGE s 2 XX",
                                       "GET s",
                                       "SETRANGE s 8 end",
                                       "GET s",
                                       "SETRANGE s -1 x",
                                       "SETRANGE s x x",
                                       "SETRANGE none 3 \"\"",
                                       "EXISTS none",
                                       "SETRANGE none 3 abc",
                                       "GET none",
                                       "SETRANGE big 100 !!",
                                       "GETRANGE big 95 110",
                                       "SETRANGE none 536870911 ab",
                                       "SETRANGE none 9223372036854775807 ab",
                                       "APPEND s more",
                                       "APPEND app x",
                                       "APPEND app %100",
                                       "APPEND app %5000",
                                       "STRLEN app",
                                       "GET app",
                                       "DEL none app",
                                       "SET f 10.5",
                                       "INCRBYFLOAT f 0.1",
                                       "INCRBYFLOAT f -5",
                                       "INCRBYFLOAT f 5.0e3",
                                       "INCRBYFLOAT f abc",
                                       "INCRBYFLOAT f \"1 \"",
                                       "INCRBYFLOAT f \" 1\"",
                                       "INCRBYFLOAT f inf",
                                       "INCRBYFLOAT f nan",
                                       "INCRBYFLOAT f 1e400",
                                       "INCRBYFLOAT f -1e400",
                                       "INCRBYFLOAT nf 3.0",
                                       "INCRBYFLOAT nf -3",
                                       "INCRBYFLOAT nf 1e17",
                                       "INCRBYFLOAT nf 0.00000000000000001",
                                       "SET f 3.0e3",
                                       "INCRBYFLOAT f 200",
                                       "INCRBYFLOAT s 1",
                                       "INCRBYFLOAT f 1e-20",
                                       "SET f 1e5000",
                                       "INCRBYFLOAT f 1",
                                       "RPUSH l a b c d e a b c",
                                       "LINDEX l 0",
                                       "LINDEX l -1",
                                       "LINDEX l 8",
                                       "LINDEX l x",
                                       "LINDEX nol 0",
                                       "LINDEX s 0",
                                       "LSET l 1 B",
                                       "LSET l -1 %5000",
                                       "LSET l -1 C",
                                       "LSET l 20 x",
                                       "LSET l x x",
                                       "LSET nol 0 x",
                                       "LSET s 0 x",
                                       "LRANGE l 0 -1",
                                       "LINSERT l BEFORE c zz",
                                       "LINSERT l AFTER C end",
                                       "LINSERT l after a first",
                                       "LINSERT l BEFORE a zero",
                                       "LINSERT l middle a b",
                                       "LINSERT nol BEFORE a b",
                                       "LINSERT l BEFORE nope b",
                                       "LINSERT s BEFORE nope b",
                                       "LRANGE l 0 -1",
                                       "LPOS l a",
                                       "LPOS l a RANK 2",
                                       "LPOS l a RANK -1",
                                       "LPOS l a RANK -1 COUNT 0",
                                       "LPOS l a COUNT 0",
                                       "LPOS l a COUNT 1",
                                       "LPOS l nope",
                                       "LPOS l nope COUNT 2",
                                       "LPOS nol a",
                                       "LPOS nol a COUNT 1",
                                       "LPOS l a RANK 0",
                                       "LPOS l a COUNT -1",
                                       "LPOS l a COUNT x",
                                       "LPOS l a MAXLEN -1",
                                       "LPOS l a RANK x",
                                       "LPOS l a RANK",
                                       "LPOS l a COUNT 0 MAXLEN 3",
                                       "LPOS l a RANK 3 MAXLEN 100",
                                       "LPOS l a WHAT 3",
                                       "LPOS l a RANK 1 COUNT 2 MAXLEN 100",
                                       "LPOS s a",
                                       "LREM l 1 a",
                                       "LREM l -1 e",
                                       "LREM l 0 b",
                                       "LREM l x b",
                                       "LREM nol 0 b",
                                       "LREM s 0 b",
                                       "LRANGE l 0 -1",
                                       "LTRIM l 1 -2",
                                       "LRANGE l 0 -1",
                                       "LTRIM l x 1",
                                       "LTRIM l 5 1",
                                       "EXISTS l",
                                       "LTRIM nol 0 1",
                                       "LTRIM s 0 1",
                                       "RPUSH l 1 2 3 4 5",
                                       "LTRIM l -3 100",
                                       "LRANGE l 0 -1",
                                       "LPOP l 2",
                                       "LPUSHX l q",
                                       "RPUSHX l q",
                                       "LPUSHX nol q",
                                       "LPOP l 0",
                                       "RPOP l 100",
                                       "HSETNX h a 1",
                                       "HSETNX h a 2",
                                       "HGET h a",
                                       "HSETNX s a 1",
                                       "HSTRLEN h a",
                                       "HSTRLEN h b",
                                       "HSTRLEN noh b",
                                       "HSTRLEN s b",
                                       "HINCRBY h a 5",
                                       "HINCRBY h a x",
                                       "HINCRBY h n -5",
                                       "HINCRBY h a 9223372036854775807",
                                       "HSET h t text",
                                       "HINCRBY h t 1",
                                       "HINCRBY s t 1",
                                       "HINCRBYFLOAT h a 1.5",
                                       "HINCRBYFLOAT h a x",
                                       "HINCRBYFLOAT h a nan",
                                       "HINCRBYFLOAT h a inf",
                                       "HINCRBYFLOAT h t 1",
                                       "HINCRBYFLOAT h new 0.1",
                                       "HINCRBYFLOAT s new 0.1",
                                       "DEL h",
                                       "HSET h a 1",
                                       "HKEYS h",
                                       "HVALS h",
                                       "HKEYS noh",
                                       "HVALS noh",
                                       "HKEYS s",
                                       "HGETALL h",
                                       "HRANDFIELD h",
                                       "HRANDFIELD noh",
                                       "HRANDFIELD noh 3",
                                       "HRANDFIELD h 3",
                                       "HRANDFIELD h 0",
                                       "HRANDFIELD h -3",
                                       "HRANDFIELD h 3 WITHVALUES",
                                       "HRANDFIELD h -2 WITHVALUES",
                                       "HRANDFIELD h 3 WITH",
                                       "HRANDFIELD h x",
                                       "HRANDFIELD s 1",
                                       "HRANDFIELD s",
                                       "HMGET h a b",
                                       "HMGET noh a b",
                                       "HLEN h",
                                       "HEXISTS h a",
                                       "HDEL h a",
                                       "EXISTS h",
                                       "SET e 1",
                                       "EXPIRE e 100 NX",
                                       "EXPIRE e 100 NX",
                                       "EXPIRE e 50 XX",
                                       "EXPIRE e 60 GT",
                                       "EXPIRE e 40 GT",
                                       "EXPIRE e 70 LT",
                                       "EXPIRE e 30 LT",
                                       "TTL e",
                                       "EXPIRE e 30 NX XX",
                                       "EXPIRE e 30 NX GT",
                                       "EXPIRE e 30 GT LT",
                                       "EXPIRE e 20 XX GT",
                                       "EXPIRE e 30 what",
                                       "EXPIRE e x what",
                                       "PERSIST e",
                                       "EXPIRE e 30 GT",
                                       "EXPIRE e 30 LT",
                                       "TTL e",
                                       "EXPIREAT e 4102444800",
                                       "EXPIRETIME e",
                                       "PEXPIRETIME e",
                                       "PEXPIREAT e 4102444800123",
                                       "EXPIRETIME e",
                                       "PEXPIRETIME e",
                                       "PEXPIREAT e 4102444800123 GT",
                                       "PEXPIREAT e 4102444800123 LT",
                                       "PEXPIREAT e 4102444800124 GT",
                                       "PEXPIREAT e 4102444800123 LT",
                                       "EXPIRETIME none",
                                       "EXPIRETIME s",
                                       "PEXPIRETIME s",
                                       "EXPIREAT e x",
                                       "EXPIREAT e 9223372036854775807",
                                       "PEXPIREAT e 9223372036854775807",
                                       "EXPIREAT e 9223372036854775",
                                       "EXPIRE e 9223372036854775807",
                                       "EXPIRE e 9223370399119966",
                                       "EXPIRE e -9223372036854775808",
                                       "PEXPIRE e 9223372036854775807",
                                       "PEXPIRE e -9223372036854775808",
                                       "EXISTS e",
                                       "SET e 1",
                                       "EXPIREAT e 1",
                                       "EXISTS e",
                                       "SET e 1",
                                       "EXPIREAT e -1",
                                       "EXISTS e",
                                       "SET e 1",
                                       "EXPIREAT e 0",
                                       "EXISTS e",
                                       "SET g v",
                                       "GETEX g",
                                       "GETEX g EX 100",
                                       "TTL g",
                                       "GETEX g PERSIST",
                                       "TTL g",
                                       "GETEX g PX 100000",
                                       "TTL g",
                                       "GETEX g EXAT 4102444800",
                                       "EXPIRETIME g",
                                       "GETEX g PXAT 4102444800000",
                                       "PEXPIRETIME g",
                                       "GETEX g EX",
                                       "GETEX g EX 0",
                                       "GETEX g EX x",
                                       "GETEX g PERSIST EX 1",
                                       "GETEX g EX 1 PERSIST",
                                       "GETEX g WHAT 1",
                                       "GETEX none EX 0",
                                       "GETEX h2",
                                       "RPUSH l 1",
                                       "GETEX l",
                                       "GETEX l EX 0",
                                       "GETEX g PXAT 1",
                                       "GET g",
                                       "GETDEL s",
                                       "GETDEL s",
                                       "GETDEL l",
                                       "GETSET gs a",
                                       "GETSET gs b",
                                       "GETSET l b",
                                       "SETEX gs 10 a",
                                       "SETEX gs 0 a",
                                       "SETEX gs x a",
                                       "PSETEX gs 100000 b",
                                       "PSETEX gs -1 a",
                                       "SETNX gs 1",
                                       "SETNX newgs 1",
                                       "MSETNX {a}1 x {a}2 y",
                                       "MSETNX {a}2 x {a}3 y",
                                       "MSETNX {a}2 x {a}3",
                                       "EXISTS {a}3",
                                       "MSETNX {a}3 x {a}2 z",
                                       "MGET {a}2 {a}3",
                                       "GET {a}1",
                                       "SET {r}a 1 EX 100",
                                       "RENAME {r}a {r}b",
                                       "GET {r}b",
                                       "TTL {r}b",
                                       "RENAME {r}a {r}b",
                                       "RENAME {r}b {r}b",
                                       "RENAMENX {r}b {r}b",
                                       "RENAMENX {r}none {r}b",
                                       "RPUSH {r}l a b c",
                                       "RENAME {r}l {r}b",
                                       "LRANGE {r}b 0 -1",
                                       "TTL {r}b",
                                       "SET {r}long %1000",
                                       "RENAMENX {r}long {r}b",
                                       "RENAME {r}long {r}long2",
                                       "STRLEN {r}long2",
                                       "EXISTS {r}long",
                                       "RENAMENX {r}b {r}c",
                                       "TYPE {r}c",
                                       "COPY {r}c {r}d",
                                       "LRANGE {r}d 0 -1",
                                       "COPY {r}c {r}d",
                                       "RPUSH {r}c more",
                                       "COPY {r}c {r}d REPLACE",
                                       "LRANGE {r}d 0 -1",
                                       "COPY {r}c {r}c",
                                       "COPY {r}none {r}d",
                                       "COPY {r}none {r}none",
                                       "COPY {r}c {r}d DB x",
                                       "COPY {r}c {r}d DB 0 REPLACE",
                                       "COPY {r}c {r}d DB",
                                       "COPY {r}c {r}d WHAT",
                                       "HSET {r}h a 1",
                                       "COPY {r}h {r}h2",
                                       "HGETALL {r}h2",
                                       "HSET {r}h2 a 2",
                                       "HGETALL {r}h",
                                       "COPY {r}long2 {r}long3",
                                       "STRLEN {r}long3",
                                       "SET {r}s short EX 100",
                                       "COPY {r}s {r}s2",
                                       "GET {r}s2",
                                       "TTL {r}s2",
                                       "OBJECT ENCODING {r}s",
                                       "OBJECT ENCODING {r}h",
                                       "OBJECT ENCODING {r}c",
                                       "OBJECT ENCODING {r}long2",
                                       "SET {r}i 12345",
                                       "OBJECT ENCODING {r}i",
                                       "OBJECT ENCODING none",
                                       "OBJECT REFCOUNT {r}long2",
                                       "OBJECT",
                                       "OBJECT WHAT",
                                       "INCR {r}i",
                                       "DECRBY {r}i 3",
                                       "GETRANGE {r}i 0 1",
                                       "RENAME a",
                                       "COPY a",
                                       "DBSIZE",
                                       "FLUSHALL",
                                       NULL};

static pid_t redis_pid;

/* Start both servers, and connect to them. Returns false if redis-server is not installed. */
static bool start_kv_and_redis(const char *shards, int *ret_fd, int *ret_redis)
{
    uint16_t port;

    if (!domt_redis_start_server(&redis_pid, &port))
        return false;
    domt_kv_start(&kv, (const char *const[]){shards, NULL});
    *ret_redis = domt_connect_to_port(port);
    *ret_fd = domt_connect_to_port(kv.port);
    return true;
}

static void stop_kv_and_redis(int fd, int redis)
{
    close(fd);
    close(redis);
    domt_redis_stop_server(redis_pid);
    domt_service_stop(&kv);
}

static void compare_rows_with_redis(const char *shards)
{
    int fd, redis;

    if (!start_kv_and_redis(shards, &fd, &redis))
        return;
    domt_resp_compare_replies(fd, redis, commands);
    stop_kv_and_redis(fd, redis);
}

DOMT_TEST(more_replies_are_those_of_redis_on_one_shard)
{
    compare_rows_with_redis("kv.shards=1");
}

DOMT_TEST(more_replies_are_those_of_redis_over_several_shards)
{
    compare_rows_with_redis("kv.shards=5");
}

/* --- lists of many nodes ---------------------------------------------------------------------- */

static uint32_t chance;

static uint32_t random_below(uint32_t count)
{
    chance = chance * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)count * (chance >> 8) >> 24);
}

/* Write an element of a list into `text`: one of a few short ones, or one of any length. */
static const char *write_random_element(char text[16])
{
    snprintf(text, 16, random_below(3) == 0 ? "%%%u" : "e%u",
             random_below(3) == 0 ? random_below(600) : random_below(12));
    return text;
}

static void write_random_change_of_list(char *text, size_t size)
{
    char one[16], other[16];
    int index = (int)random_below(200) - 100;

    switch (random_below(8)) {
    case 0:
        snprintf(text, size, "LSET l %d %s", index, write_random_element(one));
        break;
    case 1:
        snprintf(text, size, "LREM l %d %s", (int)random_below(5) - 2, write_random_element(one));
        break;
    case 2:
        snprintf(text, size, "LPOS l %s RANK %d COUNT 3", write_random_element(one),
                 random_below(2) == 0 ? 2 : -2);
        break;
    case 3:
        snprintf(text, size, "%s l %u", random_below(2) == 0 ? "LPOP" : "RPOP", random_below(4));
        break;
    case 4:
        snprintf(text, size, "%s l %s", random_below(2) == 0 ? "LPUSH" : "RPUSH",
                 write_random_element(one));
        break;
    default:
        snprintf(text, size, "LINSERT l %s %s %s", random_below(2) == 0 ? "BEFORE" : "AFTER",
                 write_random_element(one), write_random_element(other));
        break;
    }
}

DOMT_TEST(lists_change_inside_as_those_of_redis)
{
    char change[64];
    int fd, redis;

    if (!start_kv_and_redis("kv.shards=1", &fd, &redis))
        return;
    for (uint32_t seed = 0; seed < 3; seed++) {
        chance = seed;
        domt_resp_compare_replies(fd, redis,
                                  (const char *const[]){"DEL l", "RPUSH l e1 e2 e3 e4 e5", NULL});
        for (uint32_t i = 0; i < 1500; i++) {
            write_random_change_of_list(change, sizeof change);
            domt_resp_compare_replies(fd, redis, (const char *const[]){change, NULL});
        }
        domt_resp_compare_replies(fd, redis,
                                  (const char *const[]){"LLEN l", "LRANGE l 0 60",
                                                        "LRANGE l -60 -1", "LTRIM l 10 -20",
                                                        "LLEN l", "LRANGE l 0 60", NULL});
    }
    stop_kv_and_redis(fd, redis);
}

DOMT_TEST(key_expires_though_nobody_asks_for_anything)
{
    static char reply[DOMT_REPLY_MAX];
    int fd = domt_kv_start_and_connect(&kv, (const char *const[]){"kv.shards=1", NULL});

    domt_resp_expect_trace(fd, "SET a b PX 150", "+OK\r\n");
    domt_sleep_ms(600);
    (void)domt_resp_ask_for_reply(fd, "INFO stats", reply);
    ck_assert_msg(strstr(reply, "expired_keys:1\r\n") != NULL, "%s", reply);
    domt_kv_close_and_stop(&kv, fd);
}

DOMT_SUITE(120)
