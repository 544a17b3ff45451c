/* Connections of the example `kv` as CLIENT shows and changes them: CLIENT LIST, UNBLOCK and KILL,
 * from another connection, over all threads and shards. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static domt_service kv;

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
