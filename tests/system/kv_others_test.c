/* Connections of the example `kv` that concern each other: publications and their subscribers, and
 * CLIENT LIST, UNBLOCK and KILL. */
#include "tests/support/crowd.h"
#include "tests/support/sanitizer.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/dialogue.h"
#include "tests/system/redis.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Publications of the example `kv`: they are those of redis-server, come to subscribers on all
 * threads in order, and neither a slow subscriber nor many subscriptions take unbounded memory. */

static domt_service kv;

static void start_kv_with_three_shards(const char *more)
{
    domt_kv_start(&kv, (const char *const[]){"kv.shards=3", more, NULL});
}

/* redis-server lists names in the order of a hash table, so these rows have only one name. */
static const char *const lines[] = {
    "a UNSUBSCRIBE", "a PUNSUBSCRIBE", "a UNSUBSCRIBE x y", "a SUBSCRIBE", "a SUBSCRIBE c1 c2 c1",
    "a GET x", "a nonsense", "a GET", "a PING", "a PING hey", "a PING a b", "a MULTI",
    "a PSUBSCRIBE c*", "b PUBLISH c1 hello", "b PUBLISH c2 %1000", "b PUBLISH c2 \"\"",
    "b PUBLISH none hello", "b PUBLISH", "b PUBLISH c1", "b PUBSUB CHANNELS c[1]",
    "b PUBSUB CHANNELS x*", "b PUBSUB NUMSUB", "b PUBSUB NUMSUB c1 x c2", "b PUBSUB NUMPAT",
    "b PUBSUB NUMPAT x", "b PUBSUB", "b PUBSUB NONE", "b PUBSUB CHANNELS a b",
    "a UNSUBSCRIBE c1 nope", "b PUBLISH c1 hello", "a UNSUBSCRIBE", "b PUBLISH c2 hello",
    "a PUNSUBSCRIBE", "b PUBLISH c2 hello", "a GET x",
    "a SET x 1;SUBSCRIBE q;PING;UNSUBSCRIBE q;GET x",
    /* rows in which a message has several subscribers */
    "c SUBSCRIBE s1", "d SUBSCRIBE s1 s2", "e PSUBSCRIBE s?", "f PSUBSCRIBE s?",
    "b PUBLISH s1 one;PUBLISH s2 two;PUBLISH s3 three", "b PUBSUB NUMPAT;PUBSUB NUMSUB s1 s2",
    "b MULTI;PUBLISH s1 four;PING;SET {k}1 v;PUBLISH s2 five;GET {k}1;EXEC",
    "b MULTI;PUBLISH s1 six;EXEC", "d CLOSE", "e QUIT", "b PUBLISH s1 seven", "f RESET",
    "b PUBLISH s1 eight", "f GET x", NULL};

DOMT_TEST(publish_and_subscribe_are_those_of_redis)
{
    start_kv_with_three_shards("kv.maxMemory=0");
    domt_compare_dialogue_with_redis(lines, kv.port);
    domt_service_stop(&kv);
}

#define MESSAGE(text) ">3\r\n$7\r\nmessage\r\n$2\r\nc1\r\n$3\r\n" text "\r\n"

DOMT_TEST(a_publisher_of_resp_3_hears_itself_before_the_answer)
{
    char reply[DOMT_REPLY_MAX];

    start_kv_with_three_shards("kv.maxMemory=0");
    int fd = domt_connect_to_port(kv.port);
    domt_resp_send_command(fd, "HELLO 3");
    (void)domt_resp_ask_for_reply(fd, "PING", reply);
    domt_resp_expect_trace(fd, "SUBSCRIBE c1", ">3\r\n$9\r\nsubscribe\r\n$2\r\nc1\r\n:1\r\n");
    for (int i = 0; i < 100; i++) {
        domt_resp_send_command(fd, "PUBLISH c1 me1");
        domt_resp_send_command(fd, "SET x 1");
        domt_resp_send_command(fd, "PUBLISH none me");
        (void)domt_resp_ask_for_reply(fd, "PUBLISH c1 me2", reply);
        /* the second message may come while earlier answers are still being sent */
        const char *one = strstr(reply, MESSAGE("me1")), *two = strstr(reply, MESSAGE("me2"));
        ck_assert_msg(one == reply && two > one, "%s", reply);
        ck_assert_uint_eq(strlen(reply),
                          2 * strlen(MESSAGE("me1")) + strlen(":1\r\n+OK\r\n:0\r\n:1\r\n"));
        ck_assert_str_eq(reply + strlen(reply) - 4, ":1\r\n");
        ck_assert_ptr_eq(strstr(reply, ":1\r\n"), one + strlen(MESSAGE("me1")));
    }
    domt_resp_expect_trace(fd, "PING", "+PONG\r\n");
    domt_resp_expect_trace(fd, "RESET", "+RESET\r\n");
    domt_resp_expect_trace(fd, "PUBLISH c1 me1", ":0\r\n");
    close(fd);
    domt_service_stop(&kv);
}

/* --- many messages ---------------------------------------------------------------------------- */

#define LISTENERS 12
#define MESSAGES  2000

/* Publish messages with numbers, each of which all subscribers have to receive. */
static void *publish_numbers(void *argument)
{
    char command[64], reply[64], wanted[16];
    int fd = domt_connect_to_port(kv.port);

    snprintf(wanted, sizeof wanted, ":%d\r\n", LISTENERS);
    for (int i = 0; i < MESSAGES; i++) {
        size_t size = 0;
        snprintf(command, sizeof command, "PUBLISH ch%d %c%06d", i % 2, *(const char *)argument, i);
        domt_resp_send_command(fd, command);
        while (size < strlen(wanted)) {
            ssize_t got = recv(fd, reply + size, sizeof reply - 1 - size, 0);
            ck_assert_int_gt(got, 0);
            size += (size_t)got;
        }
        ck_assert_int_eq(memcmp(reply, wanted, size), 0);
    }
    close(fd);
    return NULL;
}

static size_t bytes_of_subscribe_answer(int fd, const char *words)
{
    char reply[DOMT_REPLY_MAX];

    domt_resp_send_command(fd, words);
    return (size_t)recv(fd, reply, sizeof reply, 0);
}

DOMT_TEST(all_threads_hear_all_messages_in_order)
{
    static char bytes[2 * MESSAGES * 64];
    static const char one[] = "*3\r\n$7\r\nmessage\r\n$3\r\nch0\r\n$7\r\na000000\r\n";
    const size_t all = 2 * MESSAGES * (sizeof one - 1);
    int fds[LISTENERS];
    pthread_t threads[2];

    start_kv_with_three_shards("kv.maxMemory=0");
    for (int i = 0; i < LISTENERS; i++) {
        fds[i] = domt_connect_to_port(kv.port);
        ck_assert_uint_gt(bytes_of_subscribe_answer(fds[i], "SUBSCRIBE ch0"), 0);
        ck_assert_uint_gt(bytes_of_subscribe_answer(fds[i], "SUBSCRIBE ch1"), 0);
    }
    ck_assert_int_eq(pthread_create(&threads[0], NULL, publish_numbers, "a"), 0);
    ck_assert_int_eq(pthread_create(&threads[1], NULL, publish_numbers, "b"), 0);
    for (int i = 0; i < LISTENERS; i++) {
        int next[2] = {0, 0};
        for (size_t size = 0; size < all;) {
            ssize_t got = recv(fds[i], bytes + size, all - size, 0);
            ck_assert_int_gt(got, 0);
            size += (size_t)got;
        }
        for (size_t at = 0; at < all; at += sizeof one - 1) {
            const char *number = bytes + at + sizeof one - 1 - 9;
            int publisher = *number - 'a';
            ck_assert(publisher == 0 || publisher == 1);
            ck_assert_int_eq(strtol(number + 1, NULL, 10), next[publisher]++);
        }
        close(fds[i]);
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    domt_service_stop(&kv);
}

/* --- bounds ----------------------------------------------------------------------------------- */

#define PUBLISHED DOMT_SCALE(4000, 800)

/* One subscriber reads and another one never does, while 200 MB are published (40 under a
 * sanitizer). */
DOMT_TEST(a_subscriber_that_never_reads_costs_a_bounded_amount)
{
    static char bytes[65536];
    char reply[DOMT_REPLY_MAX], wanted[64];

    /* a send time-out so long that the deaf subscriber is not cut, also on a busy machine */
    domt_kv_start(&kv, (const char *const[]){"kv.shards=3", "channel.sendTimeout=10m", NULL});
    int fd = domt_connect_to_port(kv.port), good = domt_connect_to_port(kv.port),
        deaf = domt_connect_to_port(kv.port);
    size_t head =
        (size_t)snprintf(wanted, sizeof wanted, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$50000\r\n");
    ck_assert_uint_gt(bytes_of_subscribe_answer(good, "SUBSCRIBE c"), 0);
    ck_assert_uint_gt(bytes_of_subscribe_answer(deaf, "SUBSCRIBE c"), 0);
    uint64_t before = domt_service_rss_bytes(&kv);
    for (int i = 0; i < PUBLISHED; i++) {
        domt_resp_send_command(fd, "PUBLISH c %50000");
        for (size_t size = 0; size < head + 50002;) {
            ssize_t got =
                recv(good, bytes,
                     head + 50002 - size < sizeof bytes ? head + 50002 - size : sizeof bytes, 0);
            ck_assert_int_gt(got, 0);
            size += (size_t)got;
        }
        ck_assert_int_eq(recv(fd, reply, 4, MSG_WAITALL), 4);
        ck_assert_int_eq(memcmp(reply, ":2\r\n", 4), 0);
    }
    if (!DOMT_SANITIZED) /* a sanitizer keeps freed memory, so memory is not measured then */
        ck_assert_uint_lt(domt_service_rss_bytes(&kv), before + 32 * 1048576);
    domt_resp_expect_trace(fd, "PUBSUB NUMSUB c", "*2\r\n$1\r\nc\r\n:2\r\n");
    close(deaf);
    close(good);
    for (int i = 0; i < 10000 && strcmp(reply, ":0\r\n") != 0; i++) {
        domt_sleep_ms(1);
        (void)domt_resp_ask_for_reply(fd, "PUBLISH c x", reply);
    }
    ck_assert_str_eq(reply, ":0\r\n");
    close(fd);
    domt_service_stop(&kv);
}

#define TOO_MANY "-ERR too many subscriptions\r\n"

DOMT_TEST(subscriptions_of_a_connection_are_bounded)
{
    char reply[DOMT_REPLY_MAX];

    start_kv_with_three_shards("kv.subscriptionsMax=3");
    int fd = domt_connect_to_port(kv.port), other = domt_connect_to_port(kv.port);
    domt_resp_expect_trace(other, "SUBSCRIBE a b c d", TOO_MANY);
    ck_assert_uint_gt(bytes_of_subscribe_answer(fd, "SUBSCRIBE a b"), 0);
    ck_assert_uint_gt(bytes_of_subscribe_answer(fd, "PSUBSCRIBE p"), 0);
    domt_resp_send_command(fd, "SUBSCRIBE d");
    domt_resp_send_command(fd, "UNSUBSCRIBE a");
    domt_resp_send_command(fd, "SUBSCRIBE d");
    domt_resp_send_command(fd, "RESET");
    (void)domt_resp_ask_for_reply(fd, "PING", reply);
    ck_assert_str_eq(reply,
                     TOO_MANY "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:2\r\n"
                              "*3\r\n$9\r\nsubscribe\r\n$1\r\nd\r\n:3\r\n+RESET\r\n+PONG\r\n");
    domt_resp_expect_trace(other, "PUBSUB NUMSUB a b d",
                           "*6\r\n$1\r\na\r\n:0\r\n$1\r\nb\r\n:0\r\n$1\r\nd\r\n:0\r\n");
    domt_resp_expect_trace(other, "PUBSUB NUMPAT", ":0\r\n");
    close(fd);
    close(other);
    domt_service_stop(&kv);
}

DOMT_TEST(all_subscriptions_are_bounded)
{
    char command[64], reply[256] = "";
    int fds[16], count = 0;

    start_kv_with_three_shards("kv.subscriptionMemory=64KiB");
    for (int i = 0; i < 16; i++)
        fds[i] = domt_connect_to_port(kv.port);
    while (count < 10000 && reply[0] != '-') {
        snprintf(command, sizeof command, "SUBSCRIBE name%d", count);
        domt_resp_send_command(fds[count % 16], command);
        ssize_t got = recv(fds[count % 16], reply, sizeof reply - 1, 0);
        ck_assert_int_gt(got, 0);
        reply[got] = '\0';
        count++;
    }
    ck_assert_str_eq(reply, TOO_MANY);
    ck_assert_int_gt(count, 100);
    ck_assert_int_lt(count, 1000);
    for (int i = 0; i < 15; i++) /* connections that have ended free their subscriptions */
        close(fds[i]);
    count = 0;
    for (int i = 0; i < 1000 && count < 100; i++) {
        snprintf(command, sizeof command, "SUBSCRIBE other%d", count);
        domt_resp_send_command(fds[15], command);
        ssize_t got = recv(fds[15], reply, sizeof reply - 1, 0);
        ck_assert_int_gt(got, 0);
        count += reply[0] == '*';
        domt_sleep_ms(reply[0] == '*' ? 0 : 10);
    }
    ck_assert_int_eq(count, 100);
    close(fds[15]);
    domt_service_stop(&kv);
}

/* --- kv connections --------------------------------------------------------------------------- */

/* Connections of the example `kv` as CLIENT shows and changes them: CLIENT LIST, UNBLOCK and KILL,
 * from another connection, over all threads and shards. */

static int connect_with_name(const char *name)
{
    char command[64];
    int fd = domt_connect_to_port(kv.port);

    snprintf(command, sizeof command, "CLIENT SETNAME %s", name);
    domt_resp_expect_trace(fd, command, "+OK\r\n");
    return fd;
}

/* Read the line of a connection in CLIENT LIST; returns the connection's id. */
static unsigned long id_and_line_of_connection(int fd, const char *name, char line[512])
{
    static char reply[DOMT_REPLY_MAX];
    char field[64], *rest, *next = reply;

    snprintf(field, sizeof field, " name=%s ", name);
    (void)domt_resp_ask_for_reply(fd, "CLIENT LIST", reply);
    for (char *each; (each = strtok_r(next, "\r\n", &rest)) != NULL; next = NULL) {
        if (strstr(each, field) != NULL) {
            snprintf(line, 512, "%s", each);
            return strtoul(strstr(each, "id=") + 3, NULL, 10);
        }
    }
    line[0] = '\0';
    return 0;
}

/* Wait until the line of a connection in CLIENT LIST has this field. */
static unsigned long await_field_of_connection(int fd, const char *name, const char *field)
{
    char line[512];

    for (int i = 0; i < 10000; i++) {
        unsigned long id = id_and_line_of_connection(fd, name, line);
        if (strstr(line, field) != NULL)
            return id;
        domt_sleep_ms(1);
    }
    ck_abort_msg("%s is not in: %s", field, line);
    return 0;
}

static void expect_received_bytes(int fd, const char *bytes)
{
    char got[256];
    size_t size = 0, wanted = strlen(bytes);

    while (size < wanted) {
        ssize_t some = recv(fd, got + size, wanted - size, 0);
        ck_assert_int_gt(some, 0);
        size += (size_t)some;
    }
    got[size] = '\0';
    ck_assert_str_eq(got, bytes);
}

DOMT_TEST(client_list_tells_what_connections_do)
{
    int fd = domt_kv_start_and_connect(&kv, (const char *const[]){"kv.shards=3", NULL});
    int waiting = connect_with_name("waiting"), listening = connect_with_name("listening");
    int queueing = connect_with_name("queueing"), third = connect_with_name("third");
    char reply[DOMT_REPLY_MAX];

    domt_resp_send_command(waiting, "BLPOP list 0");
    domt_resp_send_command(listening, "SUBSCRIBE a b");
    domt_resp_send_command(listening, "PSUBSCRIBE c*");
    domt_resp_send_command(queueing, "MULTI");
    domt_resp_send_command(queueing, "SET k 1");
    (void)domt_resp_ask_for_reply(third, "HELLO 3", reply);
    (void)await_field_of_connection(fd, "waiting", " flags=b ");
    (void)await_field_of_connection(fd, "waiting", " cmd=blpop ");
    (void)await_field_of_connection(fd, "waiting", " multi=-1 ");
    (void)await_field_of_connection(fd, "listening", " sub=2 psub=1 ");
    (void)await_field_of_connection(fd, "listening", " flags=P ");
    (void)await_field_of_connection(fd, "listening", " cmd=psubscribe ");
    (void)await_field_of_connection(fd, "queueing", " multi=1 ");
    (void)await_field_of_connection(fd, "queueing", " flags=x ");
    (void)await_field_of_connection(fd, "third", " resp=3");
    (void)await_field_of_connection(fd, "third", " cmd=echo ");
    snprintf(reply, sizeof reply, " laddr=127.0.0.1:%u ", kv.port);
    (void)await_field_of_connection(fd, "third", reply);
    (void)domt_resp_ask_for_reply(fd, "CLIENT INFO", reply);
    ck_assert_ptr_nonnull(strstr(reply, " cmd=client|info "));
    (void)domt_resp_ask_for_reply(fd, "INFO clients", reply);
    ck_assert_ptr_nonnull(strstr(reply, "blocked_clients:1\r\n"));
    domt_resp_expect_trace(fd, "RPUSH list 1", ":1\r\n");
    (void)await_field_of_connection(fd, "waiting", " flags=N ");
    (void)domt_resp_ask_for_reply(fd, "INFO clients", reply);
    ck_assert_ptr_nonnull(strstr(reply, "blocked_clients:0\r\n"));
    close(waiting), close(listening), close(queueing), close(third);
    domt_kv_close_and_stop(&kv, fd);
}

DOMT_TEST(client_unblock_ends_a_wait)
{
    int fd = domt_kv_start_and_connect(&kv, (const char *const[]){"kv.shards=3", NULL});
    int waiting = connect_with_name("waiting");
    char command[64], reply[DOMT_REPLY_MAX];

    for (int by_error = 0; by_error < 2; by_error++) {
        domt_resp_send_command(waiting, "BLPOP list 0");
        unsigned long id = await_field_of_connection(fd, "waiting", " flags=b ");
        snprintf(command, sizeof command, "CLIENT UNBLOCK %lu%s", id, by_error ? " ERROR" : "");
        domt_resp_expect_trace(fd, command, ":1\r\n");
        expect_received_bytes(
            waiting, by_error ? "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n" : "*-1\r\n");
        domt_resp_expect_trace(fd, command, ":0\r\n");
    }
    (void)domt_resp_ask_for_reply(fd, "INFO clients", reply);
    ck_assert_ptr_nonnull(strstr(reply, "blocked_clients:0\r\n"));
    domt_resp_expect_trace(fd, "CLIENT UNBLOCK 999999", ":0\r\n");
    /* the unblocked client does not wait for the element any more */
    domt_resp_expect_trace(fd, "RPUSH list 1", ":1\r\n");
    domt_resp_expect_trace(fd, "LLEN list", ":1\r\n");
    domt_resp_expect_trace(waiting, "PING", "+PONG\r\n");
    close(waiting);
    domt_kv_close_and_stop(&kv, fd);
}

DOMT_TEST(client_kill_has_filters)
{
    int fd = domt_kv_start_and_connect(&kv, (const char *const[]){"kv.shards=3", NULL});
    int listening = connect_with_name("listening"), other = connect_with_name("other");
    char command[64], reply[DOMT_REPLY_MAX], byte;

    domt_resp_send_command(listening, "SUBSCRIBE a");
    (void)await_field_of_connection(fd, "listening", " flags=P ");
    domt_resp_expect_trace(fd, "CLIENT KILL TYPE master", ":0\r\n");
    domt_resp_expect_trace(fd, "CLIENT KILL TYPE pubsub USER default SKIPME yes", ":1\r\n");
    while (recv(listening, &byte, 1, 0) > 0)
        ;
    domt_resp_expect_trace(other, "PING", "+PONG\r\n");
    /* connections that are ending are not counted */
    (void)domt_resp_ask_for_reply(fd, "INFO clients", reply);
    ck_assert_ptr_nonnull(strstr(reply, "connected_clients:2\r\n"));
    domt_resp_expect_trace(fd, "CLIENT KILL LADDR 127.0.0.1:1", ":0\r\n");
    snprintf(command, sizeof command, "CLIENT KILL LADDR 127.0.0.1:%u", kv.port);
    domt_resp_expect_trace(fd, command, ":1\r\n");
    ck_assert_int_eq(recv(other, &byte, 1, 0), 0);
    /* a client that kills its own connection gets the answer first, and then the end */
    domt_resp_send_command(fd, "CLIENT KILL SKIPME no");
    expect_received_bytes(fd, ":1\r\n");
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 0);
    close(listening), close(other);
    domt_kv_close_and_stop(&kv, fd);
}

DOMT_SUITE(120)
