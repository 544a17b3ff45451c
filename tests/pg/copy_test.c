/* Copies to the server that end in an unusual way: the server hangs or refuses the bytes, or their
 * writer waits, gives up, or ends. */
#include "tests/pg/user.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MS UINT64_C(1000000)

static domt_postgres server;
static domt_pg_user user;

static void set_up(const domus_sql_options *options)
{
    domt_postgres_start(&server, NULL);
    domt_pg_user_start(&user, server.unix_url, options);
    domt_pg_run_script(&user, "CREATE TABLE t (number INT)");
}

static void tear_down(void)
{
    domt_pg_user_stop(&user);
    domt_postgres_stop(&server);
}

static domus_sql_cursor open_copy(domt_pg_user *who, domus_sql sql)
{
    domt_pg_answer answer =
        domt_pg_run(who, sql, &domus_pg_copy_in_type, NULL, "COPY t FROM STDIN", NULL, 0);

    ck_assert_int_eq(answer.error, 0);
    return answer.as.cursor;
}

static int write_bytes(domt_pg_user *who, domus_sql_cursor copy, const char *bytes, size_t size)
{
    domus_pg_write write = {.copy = copy};

    ck_assert_int_eq(domus_slice_copy(bytes, size, &write.bytes), 0);
    domt_pg_answer answer = domt_pg_ask(who, copy.at, &domus_pg_copy_write_type, &write, 0);
    if (answer.error != 0 && answer.type == NULL)
        return answer.error;
    domt_pg_free(&answer);
    return answer.error;
}

static pid_t find_backend(domus_sql sql)
{
    return (pid_t)domt_pg_query_number(&user, sql, "SELECT pg_backend_pid()");
}

/* A server that hangs takes no more bytes, so a write is kept. The write fails at its time-out,
 * also when its writer has ended meanwhile, and the connection ends. */
DOMT_TEST(kept_write_ends_at_its_time)
{
    static const domus_sql_options options = {.timeout_ns = 500 * MS};
    static char bytes[1u << 20];

    memset(bytes, '\n', sizeof bytes);
    for (int round = 0; round < 2; round++) {
        set_up(&options);
        domt_pg_user other = user;
        ck_assert_int_eq(domus_outside_attach(user.system, NULL, &other.outsider), 0);
        domus_sql sql = domt_pg_begin(&other);
        pid_t backend = find_backend(sql);
        domus_sql_cursor copy = open_copy(&other, sql);
        kill(backend, SIGSTOP);
        domus_pg_write write = {.copy = copy};
        if (round == 0) {
            int error = 0;
            while (error == 0)
                error = write_bytes(&other, copy, bytes, sizeof bytes);
            ck_assert_int_eq(error, -ETIMEDOUT);
            ck_assert_int_eq(write_bytes(&other, copy, bytes, 1), -ESTALE);
        } else { /* two writes are sent, and their writer does not wait for them */
            for (uint64_t tag = 0; tag < 2; tag++) {
                ck_assert_int_eq(domus_slice_copy(bytes, sizeof bytes, &write.bytes), 0);
                ck_assert_int_eq(domus_outsider_ask_add(other.outsider, copy.at,
                                                        &domus_pg_copy_write_type, &write, 0, tag),
                                 0);
            }
        }
        ck_assert_int_eq(domus_outside_detach(other.outsider), 0);
        for (int i = 0; i < 4000 && domt_pg_read_status(&user).busy != 0; i++)
            nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
        ck_assert_uint_eq(domt_pg_read_status(&user).busy, 0);
        kill(backend, SIGCONT);
        ck_assert_int_eq(domt_pg_query_number(&user, user.sql, "SELECT count(*) FROM t"), 0);
        tear_down();
    }
}

/* The server has refused the bytes of a copy in a transaction. The copy ends by a rollback, by its
 * close, or by the end of its owner. */
DOMT_TEST(refused_copy_ends_with_its_transaction)
{
    static const domus_sql_options options = {.connections_max = 1, .timeout_ns = 5000 * MS};

    set_up(&options);
    for (int round = 0; round < 3; round++) {
        domt_pg_user other = user;
        ck_assert_int_eq(domus_outside_attach(user.system, NULL, &other.outsider), 0);
        domus_sql sql = domt_pg_begin(&other);
        domus_sql_cursor copy = open_copy(&other, sql);
        ck_assert_int_eq(write_bytes(&other, copy, "no number\n", 10), 0);
        /* the server refuses the bytes in this time */
        nanosleep(&(struct timespec){.tv_nsec = (long)(100 * MS)}, NULL);
        if (round == 1)
            ck_assert_int_eq(
                domus_outsider_notice(other.outsider, copy.at, &domus_sql_close_type, &copy), 0);
        if (round < 2)
            ck_assert_int_eq(domt_pg_end(&other, sql, false).error, 0);
        ck_assert_int_eq(domus_outside_detach(other.outsider), 0);
        domt_pg_await_idle(&user);
    }
    ck_assert_uint_eq(domt_pg_read_status(&user).failures, 0);
    ck_assert_int_eq(domt_pg_query_number(&user, user.sql, "SELECT count(*) FROM t"), 0);
    tear_down();
}

DOMT_SUITE(120)
