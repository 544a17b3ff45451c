/* The example `kv`: an answer that is too long becomes an error, and removes nothing; a command
 * that waits is counted once in the budget of incomplete commands. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/redis.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

static domt_service kv;

/* An element whose answer would be too long goes back to its list after some time. */
DOMT_TEST(answers_that_are_too_long_are_errors_and_remove_nothing)
{
    static const char too_long[] = "-ERR the command or its answer is too large\r\n";
    static char reply[DOMT_REPLY_MAX];

    domt_kv_start(&kv, (const char *const[]){"kv.shards=8", "kv.answerMax=64KiB", NULL});
    int fd = domt_connect_to_port(kv.port);
    for (char key = 'a'; key <= 'h'; key++) {
        char set[32];
        snprintf(set, sizeof set, "SET %c %%20000", key);
        domt_resp_expect_trace(fd, set, "+OK\r\n");
    }
    domt_resp_expect_trace(fd, "MGET a a a a",
                           too_long); /* all keys of this command are on one shard */
    /* the keys of this command are on several shards */
    domt_resp_expect_trace(fd, "MGET a b c d e f g h x", too_long);
    domt_resp_expect_trace(fd, "HSET hash f %40000 g %40000", ":2\r\n");
    domt_resp_expect_trace(fd, "HMGET hash f g", too_long);
    domt_resp_expect_trace(fd, "RPUSH list %40000 %40000 z", ":3\r\n");
    domt_resp_expect_trace(fd, "LPOP list 2", too_long);
    domt_resp_expect_trace(fd, "RPOP list 3", too_long);
    domt_resp_expect_trace(fd, "LLEN list", ":3\r\n");
    domt_resp_expect_trace(fd, "RPOP list 1", "*1\r\n$1\r\nz\r\n");
    domt_resp_expect_trace(fd, "LLEN list", ":2\r\n");
    /* the answers to these commands contain the key, too */
    domt_resp_expect_trace(fd, "RPUSH %30000 %40000", ":1\r\n");
    domt_resp_expect_trace(fd, "LMPOP 1 %30000 LEFT", too_long);
    domt_resp_expect_trace(fd, "BLPOP %30000 0", too_long);
    for (int i = 0;
         i < 1000 && domt_resp_ask_for_reply(fd, "EXISTS %30000", reply) == 4 && reply[1] == '0';
         i++)
        (void)poll(NULL, 0, 10);
    domt_resp_send_command(fd, "MULTI");
    domt_resp_send_command(fd, "BLPOP %30000 0");
    domt_resp_expect_trace(fd, "EXEC", "+OK\r\n+QUEUED\r\n*1\r\n-ERR internal error\r\n");
    domt_resp_expect_trace(fd, "LLEN %30000", ":1\r\n");
    close(fd);
    domt_service_stop(&kv);
}

/* A command that waits for an element is copied, and the copy is not counted. */
DOMT_TEST(commands_that_wait_are_discharged_once)
{
    domt_kv_start(&kv, (const char *const[]){"kv.shards=2", NULL});
    int fd = domt_connect_to_port(kv.port);
    for (int i = 0; i < 10; i++) {
        domt_resp_expect_trace(fd, "BLPOP %60000 0.01", "*-1\r\n");
        domt_resp_expect_trace(fd, "SET a %60000", "+OK\r\n");
    }
    close(fd);
    domt_service_stop(&kv);
}

DOMT_SUITE(60)
