/* Reads that have waited for a connection leave together, in one transaction of the server, and
 * each still has an answer of its own. */
#include "tests/pg/user.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS       UINT64_C(1000000)
#define TOGETHER 4u
#define ANSWERS  16u

/* When the transaction has begun, in microseconds, and a number that cannot be had for 0. */
static const domus_sql_statement divide = {
    .text = "SELECT (extract(epoch FROM now()) * 1000000)::int8, 100 / $1::int8", .reads = true};
static const domus_sql_statement also_divide = {
    .text = "SELECT (extract(epoch FROM now()) * 1000000)::int8, 100 / $1::int8 ",
    .repeatable = true};
static const domus_sql_statement nap = {.text = "SELECT pg_sleep(0.1)", .repeatable = true};
static const domus_sql_statement doze = {
    .text = "SELECT 0::int8, 1 FROM pg_sleep($1::int8)", .reads = true, .timeout_ns = 150 * MS};

static domt_postgres server;
static domt_pg_user user;

/* An answer by its tag. */
static struct answer {
    int error;
    int64_t began;
    int64_t number;
} answers[ANSWERS];

static void send_query(const domus_sql_statement *statement, const domus_sql_value *values,
                       uint32_t count, uint64_t tag)
{
    domus_sql_request request;

    ck_assert_int_eq(domus_sql_request_make(user.sql, statement, NULL, values, count, &request), 0);
    ck_assert_int_eq(
        domus_outsider_ask_add(user.outsider, user.sql.at, &domus_sql_query_type, &request, 0, tag),
        0);
}

static void send_one(const domus_sql_statement *statement, int64_t number, uint64_t tag)
{
    const domus_sql_value value = domus_sql_int(number);

    send_query(statement, &value, 1, tag);
}

/* Receive an answer, and put it to those by tags. */
static void receive(void)
{
    domus_outside_message message;

    ck_assert_int_eq(domus_outside_receive(user.outsider, NULL, 20000 * MS, &message), 0);
    ck_assert_int_eq(message.kind, DOMUS_OUTSIDE_ANSWER);
    ck_assert_uint_lt(message.tag, ANSWERS);
    struct answer *answer = &answers[message.tag];
    ck_assert_int_eq(answer->error, 1); /* it has come once */
    if (message.type == &domus_outsider_failed_type)
        answer->error = *(const int *)message.payload;
    else if (message.type == &domus_sql_error_type)
        answer->error = ((const domus_sql_error *)message.payload)->error;
    else {
        const domus_sql_result *result = message.payload;
        answer->error = 0;
        if (result->columns == 2) {
            answer->began = domus_sql_cell(result, 0, 0).as.integer;
            answer->number = domus_sql_cell(result, 0, 1).as.integer;
        }
    }
}

static void receive_all(uint32_t count)
{
    for (uint32_t i = 0; i < ANSWERS; i++)
        answers[i] = (struct answer){.error = 1};
    for (uint32_t i = 0; i < count; i++)
        receive();
}

/* One connection, which knows the statements and has slept for a moment when all that is sent now
 * waits for it: the answer of the sleep has tag 0. */
static void begin(void)
{
    static const domus_sql_options options = {.connections_max = 1, .together_max = TOGETHER};

    domt_postgres_start(&server, NULL);
    domt_pg_user_start(&user, server.url, &options);
    send_one(&divide, 1, 0);
    send_one(&also_divide, 1, 1);
    send_one(&doze, 0, 2);
    receive_all(3);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(answers[i].error, 0);
    send_query(&nap, NULL, 0, 0);
}

static void end(void)
{
    domus_sql_status status = domt_pg_look(&user);

    ck_assert_uint_eq(status.connects, 1);
    ck_assert_uint_eq(status.failures, 0);
    domt_pg_user_stop(&user);
    domt_postgres_stop(&server);
}

static void check(uint64_t tag, int64_t number)
{
    ck_assert_int_eq(answers[tag].error, 0);
    ck_assert_int_eq(answers[tag].number, number);
}

START_TEST(reads_that_wait_share_a_transaction_up_to_together_max)
{
    begin();
    for (uint64_t tag = 1; tag <= TOGETHER + 2; tag++)
        send_one(&divide, (int64_t)tag, tag);
    receive_all(TOGETHER + 3);
    for (uint64_t tag = 1; tag <= TOGETHER + 2; tag++) {
        check(tag, 100 / (int64_t)tag);
        ck_assert_int_eq(answers[tag].began == answers[1].began, tag <= TOGETHER);
    }
    ck_assert_int_eq(answers[TOGETHER + 1].began, answers[TOGETHER + 2].began);
    end();
}
END_TEST

START_TEST(one_that_fails_lets_the_others_be_answered)
{
    begin();
    send_one(&divide, 1, 1);
    send_one(&divide, 0, 2);
    send_one(&divide, 2, 3);
    send_one(&divide, 0, 4);
    receive_all(5);
    check(1, 100);
    check(3, 50);
    ck_assert_int_eq(answers[2].error, -EINVAL); /* 22012 */
    ck_assert_int_eq(answers[4].error, -EINVAL);
    end();
}
END_TEST

/* The slow one is cancelled when its time is over. */
START_TEST(one_that_is_cancelled_lets_the_others_be_answered)
{
    begin();
    send_one(&divide, 1, 1);
    send_one(&doze, 20, 2);
    send_one(&divide, 2, 3);
    send_one(&divide, 4, 4);
    receive_all(5);
    check(1, 100);
    ck_assert_int_eq(answers[2].error, -ETIMEDOUT);
    check(3, 50);
    check(4, 25);
    end();
}
END_TEST

/* A statement that may write stands alone, and one with too few parameters is refused. */
START_TEST(others_do_not_leave_with_them)
{
    begin();
    send_one(&divide, 1, 1);
    send_query(&divide, NULL, 0, 2);
    send_one(&also_divide, 2, 3);
    send_one(&divide, 4, 4);
    send_query(&divide, NULL, 0, 5); /* the last one, behind which there is a sync */
    receive_all(6);
    check(1, 100);
    check(3, 50);
    check(4, 25);
    ck_assert_int_eq(answers[2].error, -EINVAL);
    ck_assert_int_eq(answers[5].error, -EINVAL);
    ck_assert_int_ne(answers[3].began, answers[1].began);
    ck_assert_int_ne(answers[4].began, answers[3].began);
    end();
}
END_TEST

DOMT_MAIN("pg_together", 60, reads_that_wait_share_a_transaction_up_to_together_max,
          one_that_fails_lets_the_others_be_answered,
          one_that_is_cancelled_lets_the_others_be_answered, others_do_not_leave_with_them)
