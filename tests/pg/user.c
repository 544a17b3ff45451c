/* A database of PostgreSQL in a system of its own, which the thread of a test uses as an
 * outsider. */
#include "tests/pg/user.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define SECOND UINT64_C(1000000000)

void domt_pg_user_start_system(domt_pg_user *user, const char *url,
                               const domus_sql_options *options)
{
    domt_pg_user_start_with_threads(user, url, options, 1);
}

void domt_pg_user_start_with_threads(domt_pg_user *user, const char *url,
                                     const domus_sql_options *options, uint32_t threads)
{
    static const domus_sql_driver *const drivers[] = {&domus_pg_driver, NULL};
    domus_sql_options filled = options != NULL ? *options : (domus_sql_options){0};
    domus_config config;
    char error[200];

    filled.drivers = drivers;
    domus_config_init(&config);
    config.system.threads = threads;
    config.system.cpus = "none";
    ck_assert_msg(domus_system_new(&config, error, sizeof error, &user->system) == 0, "%s", error);
    ck_assert_int_eq(domus_system_start(user->system), 0);
    ck_assert_int_eq(domus_outside_attach(user->system, NULL, &user->outsider), 0);
    ck_assert_int_eq(domus_outside_sql_open(user->system, url, &filled, &user->sql), 0);
}

void domt_pg_user_stop_system(domt_pg_user *user)
{
    (void)domus_outside_detach(user->outsider);
    ck_assert_int_ge(domus_system_stop(user->system), 0);
    domus_system_free(user->system);
}

domt_pg_answer domt_pg_ask_and_wait(domt_pg_user *user, domus_address to, const domus_type *type,
                                    const void *payload, uint64_t timeout_ns)
{
    domt_pg_answer answer = {.error = 0};
    domus_outside_reply reply = {.buffer = &answer.as, .size = sizeof answer.as};

    answer.error = domus_outsider_ask(user->outsider, to, type, payload,
                                      timeout_ns != 0 ? timeout_ns : 20 * SECOND, &reply);
    answer.type = answer.error == 0 ? reply.type : NULL;
    if (answer.type == &domus_sql_error_type)
        answer.error = answer.as.failure.error;
    return answer;
}

domt_pg_answer domt_pg_run_request(domt_pg_user *user, domus_sql sql, const domus_type *type,
                                   const domus_sql_statement *statement, const char *text,
                                   const domus_sql_value *values, uint32_t count)
{
    domus_sql_request request;

    ck_assert_int_eq(domus_sql_request_make(sql, statement, text, values, count, &request), 0);
    return domt_pg_ask_and_wait(user, sql.at, type, &request, 0);
}

domt_pg_answer domt_pg_run_statement(domt_pg_user *user, domus_sql sql,
                                     const domus_sql_statement *statement,
                                     const domus_sql_value *values, uint32_t count)
{
    return domt_pg_run_request(user, sql, &domus_sql_query_type, statement, NULL, values, count);
}

domt_pg_answer domt_pg_run_text(domt_pg_user *user, domus_sql sql, const char *text)
{
    return domt_pg_run_request(user, sql, &domus_sql_query_type, NULL, text, NULL, 0);
}

void domt_pg_run_script(domt_pg_user *user, const char *text)
{
    domt_pg_answer answer =
        domt_pg_run_request(user, user->sql, &domus_sql_script_type, NULL, text, NULL, 0);

    ck_assert_msg(answer.error == 0, "%s: %s", strerrorname_np(-answer.error),
                  answer.type == &domus_sql_error_type ? answer.as.failure.message : "");
    domt_pg_free_answer(&answer);
}

int64_t domt_pg_run_text_for_number(domt_pg_user *user, domus_sql sql, const char *text)
{
    domt_pg_answer answer = domt_pg_run_text(user, sql, text);
    int64_t number = 0;

    ck_assert_msg(answer.error == 0, "%s: %s", strerrorname_np(-answer.error),
                  answer.type == &domus_sql_error_type ? answer.as.failure.message : "");
    ck_assert_int_eq(domus_sql_get_int(&answer.as.result, 0, 0, &number), 0);
    domt_pg_free_answer(&answer);
    return number;
}

void domt_pg_send_request(domt_pg_user *user, const domus_sql_request *request, uint64_t tag)
{
    ck_assert_int_eq(domus_outsider_ask_add(user->outsider, user->sql.at, &domus_sql_query_type,
                                            request, 0, tag),
                     0);
}

void domt_pg_send_query(domt_pg_user *user, domus_sql sql, const domus_sql_statement *statement,
                        const domus_sql_value *values, uint32_t count, uint64_t tag)
{
    domus_sql_request request;

    ck_assert_int_eq(domus_sql_request_make(sql, statement, NULL, values, count, &request), 0);
    domt_pg_send_request(user, &request, tag);
}

domt_pg_received domt_pg_receive_answer(domt_pg_user *user)
{
    domus_outside_message message;
    domt_pg_received received = {.error = 0};

    ck_assert_int_eq(domus_outside_receive(user->outsider, NULL, 60 * SECOND, &message), 0);
    ck_assert_int_eq(message.kind, DOMUS_OUTSIDE_ANSWER);
    received.tag = message.tag;
    if (message.type == &domus_outsider_failed_type)
        received.error = *(const int *)message.payload;
    else if (message.type == &domus_sql_error_type)
        received.error = ((const domus_sql_error *)message.payload)->error;
    else {
        const domus_sql_result *result = message.payload;
        for (uint32_t i = 0; i < 2; i++)
            (void)domus_sql_get_int(result, 0, i, &received.numbers[i]);
    }
    return received;
}

void domt_pg_receive_answers(domt_pg_user *user, domt_pg_received *answers, uint32_t count)
{
    uint64_t seen = 0;

    for (uint32_t i = 0; i < count; i++) {
        domt_pg_received received = domt_pg_receive_answer(user);
        ck_assert_uint_lt(received.tag, count);
        ck_assert_uint_eq(seen >> received.tag & 1, 0); /* each tag comes only once */
        seen |= UINT64_C(1) << received.tag;
        answers[received.tag] = received;
    }
}

const domus_sql_statement domt_pg_waits = {.text = "SELECT pg_advisory_xact_lock(1) IS NOT NULL",
                                           .repeatable = true};

static void run_statement_successfully(domt_pg_user *user, const domus_sql_statement *statement)
{
    domt_pg_answer answer = domt_pg_run_statement(user, user->sql, statement, NULL, 0);

    ck_assert_int_eq(answer.error, 0);
    domt_pg_free_answer(&answer);
}

void domt_pg_take_server_lock(domt_pg_user *other)
{
    static const domus_sql_statement lock = {.text = "SELECT pg_advisory_lock(1) IS NOT NULL"};

    run_statement_successfully(other, &lock);
}

void domt_pg_release_server_lock(domt_pg_user *other)
{
    static const domus_sql_statement unlock = {.text = "SELECT pg_advisory_unlock(1)"};

    run_statement_successfully(other, &unlock);
}

domus_sql domt_pg_begin_transaction(domt_pg_user *user)
{
    domt_pg_answer answer =
        domt_pg_ask_and_wait(user, user->sql.at, &domus_sql_begin_type,
                             &(domus_sql_begin_options){.reads_only = false}, 0);

    ck_assert_int_eq(answer.error, 0);
    ck_assert_ptr_eq(answer.type, &domus_sql_begun_type);
    return answer.as.sql;
}

domt_pg_answer domt_pg_end_transaction(domt_pg_user *user, domus_sql sql, bool commits)
{
    return domt_pg_ask_and_wait(
        user, sql.at, &domus_sql_end_type,
        &(domus_sql_end){.transaction = sql.transaction, .commits = commits}, 0);
}

domus_sql_status domt_pg_read_database_status(domt_pg_user *user)
{
    domus_sql_status status;
    domus_outside_reply reply = {.buffer = &status, .size = sizeof status};

    ck_assert_int_eq(domus_outsider_ask(user->outsider, user->sql.at, &domus_sql_look_type, NULL,
                                        5 * SECOND, &reply),
                     0);
    return status;
}

static void sleep_a_millisecond(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void domt_pg_await_waiting_queries(domt_pg_user *user, uint32_t count)
{
    for (int i = 0; i < 20000 && domt_pg_read_database_status(user).waiting != count; i++)
        sleep_a_millisecond();
    ck_assert_uint_eq(domt_pg_read_database_status(user).waiting, count);
}

void domt_pg_await_idle_connections(domt_pg_user *user)
{
    for (int i = 0; i < 20000 && domt_pg_read_database_status(user).busy != 0; i++)
        sleep_a_millisecond();
    ck_assert_uint_eq(domt_pg_read_database_status(user).busy, 0);
}

uint64_t domt_pg_monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

void domt_pg_free_answer(domt_pg_answer *answer)
{
    if (answer->type != NULL && answer->type->release != NULL)
        answer->type->release(&answer->as);
    answer->type = NULL;
}
