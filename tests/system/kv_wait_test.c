/* Commands of the example `kv` that wait for elements of lists: they answer as those of
 * redis-server, the client that came first is served first, and no element is lost or doubled,
 * whatever happens to the clients. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/dialogue.h"
#include "tests/system/redis.h"
#include "tests/system/talks.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static domt_service kv;

static void start_kv_with_shards(const char *shards, const char *more)
{
    domt_kv_start(&kv, (const char *const[]){shards, more, NULL});
}

static const char *const lines[] = {
    "d BLPOP {t}a", "d BLPOP {t}a x", "d BLPOP {t}a \" 1\"", "d BLPOP {t}a \"\"",
    "d BLPOP {t}a nan", "d BLPOP {t}a -1", "d BLPOP {t}a 1e400", "d~BLPOP {t}a 0.01",
    "d~BLPOP {t}a 0.0001", "d~BRPOP {t}a 0.01", "d~BLPOP {t}a {t}b {t}c .01",
    "d~BLMOVE {t}a {t}b LEFT RIGHT 0.01", "d BLMOVE {t}a {t}b LEFT X 0",
    "d BLMOVE {t}a {t}b LEFT RIGHT", "d BLMOVE {t}a {t}b LEFT RIGHT x",
    "d~BRPOPLPUSH {t}a {t}b 0.01", "d LMOVE {t}a {t}b LEFT RIGHT", "d RPOPLPUSH {t}a {t}b",
    "d SET {t}s 1", "d BLPOP {t}s 0", "d BLPOP {t}a {t}s 0", "d RPUSH {t}l 1 2 3 4",
    "d BLPOP {t}a {t}l 0", "d BRPOP {t}l 0", "d BLMOVE {t}l {t}m LEFT RIGHT 0",
    "d BLMOVE {t}l {t}s LEFT RIGHT 0", "d LRANGE {t}l 0 -1", "d RPOPLPUSH {t}l {t}l",
    "d RPUSH {t}l 4 5", "d LMOVE {t}l {t}l LEFT RIGHT;LRANGE {t}l 0 -1",
    "d LMOVE {t}l {t}l RIGHT RIGHT;LRANGE {t}l 0 -1", "d BRPOPLPUSH {t}l {t}l 0;LRANGE {t}l 0 -1",
    "d LMOVE {t}l {t}l x left", "d BRPOPLPUSH {t}l {t}s 0", "d LMOVE {t}s {t}l LEFT LEFT",
    "d LMOVE {t}none {t}s LEFT LEFT",
    "d LMPOP 1 {t}none LEFT;LMPOP 0 {t}l LEFT;LMPOP x {t}l LEFT;LMPOP 2 {t}l LEFT",
    "d LMPOP 1 {t}l MIDDLE;LMPOP 1 {t}l LEFT COUNT 0;LMPOP 1 {t}l LEFT COUNT x",
    "d LMPOP 1 {t}l LEFT COUNT;LMPOP 1 {t}l LEFT COUNT 1 COUNT 2;LMPOP 1 {t}s LEFT",
    "d LMPOP 9223372036854775807 {t}l LEFT;LMPOP -1 {t}l LEFT;LMPOP 1 {t}l",
    /* the word behind the keys is no key: its shard, which may be another one, is not asked */
    "d LMPOP 2 {a}l LEFT;LMPOP 2 {b}l LEFT;LMPOP 2 {c}l RIGHT;LMPOP 2 {d}l LEFT;LMPOP 2 {e}l LEFT",
    "d LMPOP 2 {f}l LEFT;LMPOP 2 {g}l RIGHT;LMPOP 2 {h}l LEFT;LMPOP 2 {i}l LEFT;LMPOP 2 {j}l LEFT",
    "d RPUSH {t}n 1 2 3 4 5 6;LMPOP 2 {t}none {t}n LEFT;LMPOP 1 {t}n RIGHT COUNT 2",
    "d LMPOP 2 {t}none {t}s LEFT;LMPOP 2 {t}n {t}s LEFT COUNT 10;EXISTS {t}n",
    "d~BLMPOP 0.01 1 {t}none LEFT;BLMPOP -1 1 {t}n LEFT;BLMPOP x 1 {t}n LEFT",
    "d BLMPOP 0 0 {t}n LEFT;BLMPOP 0 1 {t}n LEFT COUNT -1;BLMPOP 0 3 {t}n {t}m LEFT",
    "d RPUSH {t}n 1 2 3 4;BLMPOP 0 2 {t}none {t}n RIGHT COUNT 3;BLMPOP 0 1 {t}n LEFT",
    "d MULTI;BLMPOP 0 1 {t}n LEFT;LMPOP 1 {t}n LEFT;RPUSH {t}n 1 2;BLMPOP 0 1 {t}n RIGHT;EXEC",
    "e BLMPOP 0 2 {t}n1 {t}n2 LEFT COUNT 3", "f BLMPOP 0 1 {t}n2 RIGHT COUNT 10",
    "d RPUSH {t}n2 1 2 3 4 5", "d EXISTS {t}n1 {t}n2;DEL {t}n",
    /* several clients wait for several keys and are served in order */
    "e BLPOP {t}w1 {t}w2 0", "f BLPOP {t}w1 0", "g BLMOVE {t}w2 {t}w3 LEFT LEFT 0",
    "h BLMOVE {t}w1 {t}s LEFT LEFT 0", "d RPUSH {t}w2 x", "d RPUSH {t}w2 y", "d RPUSH {t}w1 1 2 3",
    "d LRANGE {t}w1 0 -1;LRANGE {t}w3 0 -1;DEL {t}w1 {t}w3",
    /* a chain of moves from list to list */
    "e BLMOVE {t}c1 {t}c2 LEFT LEFT 0", "f BLMOVE {t}c2 {t}c3 LEFT LEFT 0", "g BRPOP {t}c3 0",
    "d LPUSH {t}c1 z", "d EXISTS {t}c1 {t}c2 {t}c3",
    /* elements of a transaction are given out when it has ended */
    "e BLPOP {t}zz 0", "f BLPOP {t}zz 0", "d MULTI;RPUSH {t}zz 1;RPUSH {t}zz 2;LPOP {t}zz;EXEC",
    "d RPUSH {t}zz 3", "e BLPOP {t}zz 0", "d MULTI;RPUSH {t}zz 1;LPOP {t}zz;EXEC",
    "d MULTI;LPUSH {t}zz 1;LPUSH {t}zz 2;EXEC", "d DEL {t}zz",
    /* the awaited key gets another type first, and then a list by RENAME */
    "i BLPOP {t}nl 0", "d SET {t}nl 1", "d DEL {t}nl", "d RPUSH {t}nm v w", "d RENAME {t}nm {t}nl",
    "d LRANGE {t}nl 0 -1",
    /* commands behind a waiting one wait, too */
    "j BLPOP {t}o1 0;PING;GET {t}s", "d RPUSH {t}o1 v", "j~BLPOP {t}o1 0.05;PING",
    /* clients that have left are skipped */
    "k BLPOP {t}p 0", "l BLPOP {t}p 0", "k CLOSE", "d RPUSH {t}p 1", "m BLPOP {t}p 0", "m CLOSE",
    "d RPUSH {t}p 2", "d LRANGE {t}p 0 -1", NULL};

static void compare_rows_with_redis(const char *shards)
{
    start_kv_with_shards(shards, "kv.maxMemory=0");
    domt_compare_dialogue_with_redis(lines, kv.port);
    domt_service_stop(&kv);
}

DOMT_TEST(waiting_is_that_of_redis_on_one_shard)
{
    compare_rows_with_redis("kv.shards=1");
}

DOMT_TEST(waiting_is_that_of_redis_on_one_of_several_shards)
{
    compare_rows_with_redis("kv.shards=5");
}

DOMT_TEST(waiting_at_keys_of_several_shards_is_refused)
{
    char move[64], reply[DOMT_REPLY_MAX];
    uint32_t refused = 0;

    start_kv_with_shards("kv.shards=64", "kv.maxMemory=0");
    int fd = domt_connect_to_port(kv.port);
    domt_resp_expect_trace(fd, "BLPOP a b c d e f g h 0",
                           "-CROSSSLOT Keys in request don't hash to the same slot\r\n");
    for (char tag = 'b'; tag <= 'z'; tag++) { /* some of these keys lie on the shard of {a} */
        snprintf(move, sizeof move, "BLMOVE {a}1 {%c}1 LEFT LEFT 0.01", tag);
        (void)domt_resp_ask_for_reply(fd, move, reply);
        refused += reply[0] == '-';
        ck_assert(reply[0] == '*' || strncmp(reply, "-CROSSSLOT ", 11) == 0);
    }
    ck_assert_uint_gt(refused, 15);
    close(fd);
    domt_service_stop(&kv);
}

static void repeat_command_until_reply(int fd, const char *words, const char *wanted)
{
    char reply[DOMT_REPLY_MAX] = "";

    for (int i = 0; i < 10000 && strcmp(reply, wanted) != 0; i++) {
        domt_sleep_ms(1);
        (void)domt_resp_ask_for_reply(fd, words, reply);
    }
    ck_assert_str_eq(reply, wanted);
}

static void reset_connection(int fd)
{
    const struct linger linger = {.l_onoff = 1};

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    close(fd);
}

/* Each way in which a client leaves: FIN, RST, and FIN of its own direction only. */
DOMT_TEST(a_client_that_left_takes_no_element)
{
    start_kv_with_shards("kv.shards=2", "kv.maxMemory=0");
    int fd = domt_connect_to_port(kv.port);

    for (int way = 0; way < 3; way++) {
        int left[10], next = domt_connect_to_port(kv.port);
        for (int i = 0; i < 10; i++) {
            left[i] = domt_connect_to_port(kv.port);
            domt_resp_send_command(left[i], i % 2 == 0 ? "BLPOP {k}l 0" : "BRPOP {k}m {k}l 0");
        }
        domt_sleep_ms(50);
        for (int i = 0; i < 10; i++) {
            if (way == 0)
                close(left[i]);
            else if (way == 1)
                reset_connection(left[i]);
            else
                ck_assert_int_eq(shutdown(left[i], SHUT_WR), 0);
        }
        for (int i = 0; way == 2 && i < 10; i++) {
            char bytes[16];
            /* the element comes, and then FIN */
            ck_assert_int_eq(recv(left[i], bytes, sizeof bytes, MSG_WAITALL), 5);
            ck_assert_int_eq(memcmp(bytes, "*-1\r\n", 5), 0);
            close(left[i]);
        }
        domt_sleep_ms(50);
        domt_resp_send_command(next, "BLPOP {k}l 0");
        domt_sleep_ms(50);
        domt_resp_expect_trace(fd, "RPUSH {k}l a b", ":2\r\n");
        domt_resp_expect_trace(next, "PING", "*2\r\n$4\r\n{k}l\r\n$1\r\na\r\n+PONG\r\n");
        repeat_command_until_reply(fd, "LRANGE {k}l 0 -1", "*1\r\n$1\r\nb\r\n");
        domt_resp_expect_trace(fd, "DEL {k}l", ":1\r\n");
        close(next);
    }
    close(fd);
    domt_service_stop(&kv);
}

/* --- no element is lost or doubled ------------------------------------------------------------ */

#define ELEMENTS 2000
#define POPPERS  4

/* Clients have sent further commands behind the one that waits, and then FIN: redis-server forgets
 * such a client, too. */
DOMT_TEST(a_client_that_left_with_more_commands_takes_no_element)
{
    enum { LEFT = 10 };
    int left[LEFT];
    char byte;

    start_kv_with_shards("kv.shards=2", "kv.maxMemory=0");
    int fd = domt_connect_to_port(kv.port);
    for (int i = 0; i < LEFT; i++) {
        left[i] = domt_connect_to_port(kv.port);
        domt_resp_send_command(left[i], "BLPOP {k}l 0");
        if (i % 3 == 1)
            domt_sleep_ms(20); /* the BLPOP waits already when the further command comes */
        domt_resp_send_command(left[i], i % 2 == 0 ? "PING" : "SET {k}not %40000");
        ck_assert_int_eq(shutdown(left[i], SHUT_WR), 0);
    }
    /* the service closes the connection without the further commands */
    for (int i = 0; i < LEFT; i++) {
        while (recv(left[i], &byte, 1, 0) > 0)
            ck_assert_int_ne(byte, 'P');
        close(left[i]);
    }
    domt_resp_expect_trace(fd, "RPUSH {k}l a", ":1\r\n");
    domt_resp_expect_trace(fd, "LLEN {k}l", ":1\r\n");
    domt_resp_expect_trace(fd, "EXISTS {k}not", ":0\r\n");
    close(fd);
    domt_service_stop(&kv);
}

/* A client that has sent FIN still gets an element that is there already: a script may have written
 * all its commands at once. */
DOMT_TEST(a_client_that_has_sent_fin_gets_elements_that_are_there)
{
    static const char said[] =
        "RPUSH {k}l a b\r\nBLPOP {k}l 0\r\nPING\r\nBLMOVE {k}l {k}m LEFT LEFT "
        "0\r\nSET {k}s x\r\nBLPOP {k}s 0\r\nBLPOP {k}l 0\r\nSET {k}s y\r\n";
    static const char heard[] = ":2\r\n*2\r\n$4\r\n{k}l\r\n$1\r\na\r\n+PONG\r\n$1\r\nb\r\n+OK\r\n"
                                "-WRONGTYPE Operation against a key holding the wrong kind of "
                                "value\r\n*-1\r\n";
    char reply[512];

    start_kv_with_shards("kv.shards=3", "kv.maxMemory=0");
    for (int i = 0; i < 20; i++) {
        int fd = domt_connect_to_port(kv.port);
        domt_send_all(fd, said, sizeof said - 1);
        ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
        size_t size = 0;
        for (ssize_t got; (got = recv(fd, reply + size, sizeof reply - 1 - size, 0)) > 0;)
            size += (size_t)got;
        reply[size] = '\0';
        ck_assert_str_eq(reply, heard);
        close(fd);
        fd = domt_connect_to_port(kv.port);
        domt_resp_expect_trace(fd, "GET {k}s", "$1\r\nx\r\n");
        domt_resp_expect_trace(fd, "DEL {k}s {k}m", ":2\r\n");
        close(fd);
    }
    domt_service_stop(&kv);
}

static atomic_bool pushed;
static atomic_uint popped[ELEMENTS];

/* Count the element in a reply; it begins with "e" and ends the reply. */
static void count_popped_element(const char *reply)
{
    const char *element = strrchr(reply, 'e');

    ck_assert_ptr_nonnull(element);
    atomic_fetch_add(&popped[strtoul(element + 1, NULL, 10)], 1);
}

static bool with_resets, only_moves;

/* Wait for an element of a list, or for one to be moved, and leave at any moment: finish and read
 * what comes, or reset. Returns whether an element may be lost by a reset. */
static bool wait_for_element_and_leave(unsigned *chance, bool may_reset)
{
    char reply[256];
    size_t size = 0;
    ssize_t got;
    int fd = domt_connect_to_port(kv.port);

    bool moves = only_moves || rand_r(chance) % 2 == 0;
    domt_resp_send_command(fd, moves ? "BLMOVE {q}l {q}m LEFT RIGHT 0" : "BLPOP {q}l 0");
    if (rand_r(chance) % 2 == 0)
        domt_sleep_ms((uint32_t)rand_r(chance) % 3);
    if (may_reset && rand_r(chance) % 2 == 0) {
        reset_connection(fd);
        return !moves; /* a move puts the element into the other list, so nothing is lost */
    }
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    while ((got = recv(fd, reply + size, sizeof reply - 1 - size, 0)) > 0)
        size += (size_t)got;
    ck_assert_int_eq(got, 0);
    reply[size] = '\0';
    if (!moves && strcmp(reply, "*-1\r\n") != 0)
        count_popped_element(reply);
    close(fd);
    return false;
}

/* Pop elements until none is left; meanwhile clients wait and leave. Returns the number of
 * resets. */
static void *pop_until_empty(void *argument)
{
    unsigned chance = (unsigned)(uintptr_t)argument;
    int fd = domt_connect_to_port(kv.port);
    char reply[DOMT_REPLY_MAX];
    uint64_t resets = 0;

    for (;;) {
        bool last = atomic_load(&pushed);
        if (!last)
            resets += wait_for_element_and_leave(&chance, with_resets);
        /* an element that was sent in vain returns to the list within the time of this last wait */
        (void)domt_resp_ask_for_reply(fd, last ? "BLPOP {q}l 0.4" : "BLPOP {q}l 0.02", reply);
        if (strcmp(reply, "*-1\r\n") != 0)
            count_popped_element(reply);
        else if (last)
            break;
    }
    close(fd);
    return (void *)(uintptr_t)resets;
}

/* Push all elements while clients pop them. Returns how many were never popped. */
static uint64_t push_all_and_count_lost(uint64_t *ret_resets)
{
    pthread_t threads[POPPERS];
    char command[64], reply[DOMT_REPLY_MAX];
    uint64_t lost = 0;

    *ret_resets = 0;
    start_kv_with_shards("kv.shards=2", "kv.maxMemory=0");
    int fd = domt_connect_to_port(kv.port);
    for (int i = 0; i < POPPERS; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, pop_until_empty, (void *)(uintptr_t)(i + 1)), 0);
    for (int i = 0; i < ELEMENTS; i += 4) {
        snprintf(command, sizeof command, "RPUSH {q}l e%d e%d e%d e%d", i, i + 1, i + 2, i + 3);
        (void)domt_resp_ask_for_reply(fd, command, reply);
        ck_assert_int_eq(reply[0], ':');
        if (i % 16 == 0)
            domt_sleep_ms(1);
    }
    atomic_store(&pushed, true);
    for (int i = 0; i < POPPERS; i++) {
        void *resets;
        ck_assert_int_eq(pthread_join(threads[i], &resets), 0);
        *ret_resets += (uintptr_t)resets;
    }
    domt_resp_expect_trace(fd, "EXISTS {q}l", ":0\r\n");
    while (domt_resp_ask_for_reply(fd, "LPOP {q}m", reply) !=
           5) /* 5 bytes are "$-1" and its line end */
        count_popped_element(reply);
    for (int i = 0; i < ELEMENTS; i++) {
        ck_assert_msg(atomic_load(&popped[i]) <= 1, "element %d was popped twice", i);
        lost += atomic_load(&popped[i]) == 0;
    }
    close(fd);
    domt_service_stop(&kv);
    return lost;
}

DOMT_TEST(clients_that_send_fin_while_waiting_lose_and_double_nothing)
{
    uint64_t resets;

    ck_assert_uint_eq(push_all_and_count_lost(&resets), 0);
}

/* An element that the kernel has accepted for a client is lost when that client is reset; no other
 * element is. */
DOMT_TEST(clients_that_are_reset_double_nothing)
{
    uint64_t resets;

    with_resets = true;
    uint64_t lost = push_all_and_count_lost(&resets);
    ck_assert_uint_gt(resets, 0);
    ck_assert_uint_le(lost, resets);
}

/* An element is moved, and the answer cannot be sent: the element is in its old list or in the
 * other one. */
DOMT_TEST(elements_moved_for_clients_that_are_reset_are_not_lost)
{
    uint64_t resets;

    with_resets = only_moves = true;
    ck_assert_uint_eq(push_all_and_count_lost(&resets), 0);
}

/* --- bounds and the end ----------------------------------------------------------------------- */

DOMT_TEST(clients_that_wait_are_bounded)
{
    char command[DOMT_REPLY_MAX] = "BLPOP", reply[DOMT_REPLY_MAX];
    int fds[40];
    int waiting = 0;

    start_kv_with_shards("kv.shards=1", "kv.observedMemory=64KiB");
    for (int i = 0; i < 40; i++)
        snprintf(command + strlen(command), sizeof command - strlen(command), " key%d", i);
    snprintf(command + strlen(command), sizeof command - strlen(command), " 0");
    for (int i = 0; i < 40; i++) {
        struct pollfd in = {.fd = fds[i] = domt_connect_to_port(kv.port), .events = POLLIN};
        domt_resp_send_command(fds[i], command);
        waiting += poll(&in, 1, 20) == 0;
    }
    ck_assert_int_gt(waiting, 2);
    ck_assert_int_lt(waiting, 39);
    (void)domt_resp_ask_for_reply(fds[39], "PING", reply);
    ck_assert_str_eq(reply, "-ERR too many keys are watched and waited for\r\n+PONG\r\n");
    domt_resp_expect_trace(fds[39], "RPUSH key3 a", ":1\r\n");
    domt_resp_expect_trace(fds[0], "PING", "*2\r\n$4\r\nkey3\r\n$1\r\na\r\n+PONG\r\n");
    for (int i = 0; i < 40; i++)
        close(fds[i]);
    domt_service_stop(&kv);
}

DOMT_TEST(a_stop_ends_clients_that_wait)
{
    char reply[256];
    int fds[8];

    start_kv_with_shards("kv.shards=2", "kv.maxMemory=0");
    for (int i = 0; i < 8; i++) {
        const char *command = i % 2 == 0 ? "BLPOP a 0" : "BLMOVE {b}a {b}b LEFT LEFT 1000";
        fds[i] = domt_connect_to_port(kv.port);
        domt_resp_send_command(fds[i], command);
        domt_resp_send_command(fds[i],
                               command); /* this command begins when the one before it has ended */
    }
    domt_sleep_ms(100);
    domt_service_signal(&kv, SIGTERM);
    for (int i = 0; i < 8; i++) {
        size_t size = 0;
        for (ssize_t got; (got = recv(fds[i], reply + size, sizeof reply - 1 - size, 0)) != 0;) {
            ck_assert_int_gt(got, 0);
            size += (size_t)got;
        }
        reply[size] = '\0';
        ck_assert_int_eq(strncmp(reply, "-UNBLOCKED ", 11), 0);
        ck_assert_ptr_nonnull(strstr(reply, "\r\n-UNBLOCKED "));
        close(fds[i]);
    }
    ck_assert_int_eq(domt_service_wait(&kv, 2000), 0);
}

DOMT_SUITE(120)
