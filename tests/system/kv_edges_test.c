/* Edge cases of values of the example `kv`, compared with redis-server, byte by byte: numbers at
 * their limits, and lists that end within a node, or have lost a node or all elements. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/redis.h"

#include <unistd.h>

static const char *const commands[] = {"RPUSH {r}c a",
                                       "SET {r}i 9223372036854775806",
                                       "INCR {r}i",
                                       "INCR {r}i",
                                       "INCRBY {r}i 1",
                                       "DECRBY {r}i -1",
                                       "GET {r}i",
                                       "SET {r}i -9223372036854775807",
                                       "DECR {r}i",
                                       "DECR {r}i",
                                       "DECRBY {r}i 1",
                                       "INCRBY {r}i -1",
                                       "DECRBY {r}i -9223372036854775808",
                                       "GET {r}i",
                                       "DECRBY {r}none -9223372036854775808",
                                       "INCRBY {r}i x",
                                       "DECRBY {r}i x",
                                       "INCRBY {r}i 9223372036854775808",
                                       "SET {r}i 01",
                                       "INCR {r}i",
                                       "SET {r}i \" 1\"",
                                       "INCR {r}i",
                                       "INCR {r}c",
                                       "DECRBY {r}new 5",
                                       "RPUSH {q}a x",
                                       "LPOP {q}a",
                                       "EXISTS {q}a",
                                       "RPUSH {q}a x",
                                       "RPOP {q}a",
                                       "TYPE {q}a",
                                       "RPUSH {q}a a b b",
                                       "LREM {q}a 0 b",
                                       "LRANGE {q}a 0 -1",
                                       "LREM {q}a 1 a",
                                       "EXISTS {q}a",
                                       "RPUSH {q}a gone %1500 %1500 %1500 last",
                                       "LPOP {q}a",
                                       "LPOP {q}a",
                                       "LPOP {q}a",
                                       "LREM {q}a -1 gone",
                                       "LPOS {q}a gone RANK -1",
                                       "LLEN {q}a",
                                       "RPUSH {q}b %1500 %1500 %1500 gone",
                                       "RPOP {q}b",
                                       "RPOP {q}b",
                                       "LREM {q}b 1 gone",
                                       "LLEN {q}b",
                                       NULL};

static void compare_edge_cases_with_redis(const char *shards)
{
    domt_service kv;

    domt_kv_start(&kv, (const char *const[]){shards, NULL});
    int fd = domt_connect_to_port(kv.port);
    domt_resp_compare_with_redis(fd, commands);
    close(fd);
    domt_service_stop(&kv);
}

DOMT_TEST(edges_are_those_of_redis_on_one_shard)
{
    compare_edge_cases_with_redis("kv.shards=1");
}

DOMT_TEST(edges_are_those_of_redis_over_several_shards)
{
    compare_edge_cases_with_redis("kv.shards=5");
}

DOMT_SUITE(60)
