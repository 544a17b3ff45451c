/* A server that hangs: cancels do not take the helper threads of the process, connections are given
 * up, and what they have begun does not run on when the server is back. */
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

static const domus_sql_statement sleeps = {.text = "SELECT pg_sleep(600)", .timeout_ns = 1000 * MS};
static const domus_sql_statement counts = {
    .text = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = "
            "'active'"};

static int64_t count_sleepers(domt_pg_user *who)
{
    domt_pg_answer answer = domt_pg_query(who, who->sql, &counts, NULL, 0);
    int64_t count = -1;

    if (answer.error == 0)
        ck_assert_int_eq(domus_sql_get_int(&answer.as.result, 0, 0, &count), 0);
    domt_pg_free(&answer);
    return count;
}

/* Connections of cancels that the server has not taken: each holds a helper thread. */
static int count_cancels(void)
{
    char line[256], end[32];
    int count = 0;
    FILE *file = fopen("/proc/net/tcp", "re");

    ck_assert_ptr_nonnull(file);
    snprintf(end, sizeof end, ":%04X 01 ", server.port); /* to its port, and established */
    while (fgets(line, sizeof line, file) != NULL)
        count += strstr(line, end) != NULL;
    fclose(file);
    return count;
}

START_TEST(cancels_at_a_server_that_hangs_are_bounded)
{
    static const domus_sql_options options = {.connections_max = 4, .wait_ns = 20000 * MS};
    domus_outside_message message;
    domus_sql_request request;
    domt_pg_user other;

    domt_postgres_start(&server, NULL);
    domt_pg_user_start(&user, server.url, &options);
    domt_pg_user_start(&other, server.unix_url, NULL);
    for (uint64_t tag = 0; tag < 4; tag++) {
        ck_assert_int_eq(domus_sql_request_make(user.sql, &sleeps, NULL, NULL, 0, &request), 0);
        ck_assert_int_eq(domus_outsider_ask_add(user.outsider, user.sql.at, &domus_sql_query_type,
                                                &request, 60000 * MS, tag),
                         0);
    }
    for (int i = 0; i < 4000 && count_sleepers(&other) != 4; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)MS}, NULL);
    kill(server.pid, SIGSTOP); /* sessions go on, but nothing new is accepted */
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(domus_outside_receive(user.outsider, NULL, 60000 * MS, &message), 0);
        ck_assert_ptr_eq(message.type, &domus_sql_error_type);
        ck_assert_int_eq(((const domus_sql_error *)message.payload)->error, -ETIMEDOUT);
    }
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    ck_assert_int_le(count_cancels(), 4 + 1);
    for (int i = 0; i < 4000 && domt_pg_look(&user).failures < 4; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    ck_assert_uint_eq(domt_pg_look(&user).failures, 4);
    kill(server.pid, SIGCONT);
    for (int i = 0; i < 4000 && count_sleepers(&other) != 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)(10 * MS)}, NULL);
    ck_assert_int_eq(count_sleepers(&other), 0);
    ck_assert_int_eq(domt_pg_number(&user, user.sql, "SELECT 7"), 7);
    domt_pg_user_stop(&other);
    domt_pg_user_stop(&user);
    domt_postgres_stop(&server);
}
END_TEST

DOMT_MAIN("pg_hang", 120, cancels_at_a_server_that_hangs_are_bounded)
