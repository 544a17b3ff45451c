/* Many queries while connections are killed, queries are cancelled and the server restarts: each
 * query gets its own answer or one error, and nothing is left behind. */
#include "tests/pg/user.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MS     UINT64_C(1000000)
#define ASKERS 64u

static domt_postgres server;
static domt_pg_user user;

static const domus_type begin_type = {.name = "begin"};
static const domus_sql_statement statements[] = {
    {.text = "SELECT $1::int8 AS number"},
    {.text = "SELECT $1::int8", .repeatable = true},
    {.text = "SELECT $1::int8 AS one", .reads = true},
    {.text = "SELECT $1::int8 AS two", .reads = true},
    {.text = "SELECT $1::int8, repeat('x', 4000)", .reads = true},
};
static const domus_sql_statement divides = {.text = "SELECT $1::int8, 1 / ($1::int8 % 3)",
                                            .reads = true};
static const domus_sql_statement slow = {.text = "SELECT $1::int8, pg_sleep(0.05)",
                                         .timeout_ns = 20 * MS};
static const domus_sql_statement slow_read = {
    .text = "SELECT $1::int8 AS slow, pg_sleep(0.05)", .reads = true, .timeout_ns = 20 * MS};

static _Atomic uint64_t answers, successes, mixed_up, unknown;
static uint64_t wanted; /* how many queries each asker sends */

struct asker {
    /* first of the numbers that this asker's queries return; askers share no numbers */
    uint64_t first;
    uint64_t number; /* index of this asker's query that is under way, from 0 */
    const domus_sql_statement *statement;
};

static domus_resumed check_answer_and_send_next_query;

static int64_t make_number_of_query(const struct asker *asker)
{
    return (int64_t)(asker->first + asker->number);
}

static int send_next_query_of_asker(domus_stack *stack, struct asker *asker)
{
    uint64_t kind = asker->number % 64;

    asker->statement = kind == 0        ? &slow
                       : kind == 32     ? &slow_read
                       : kind % 16 == 1 ? &divides
                                        : &statements[kind % 5];
    return domus_sql_query(stack, user.sql, asker->statement,
                           DOMUS_SQL_VALUES(domus_sql_int(make_number_of_query(asker))),
                           check_answer_and_send_next_query);
}

/* Returns whether the asker's query divides by zero, as a third of them does; the queries behind it
 * must not be affected. */
static bool must_query_divide_by_zero(const struct asker *asker)
{
    return asker->statement == &divides && make_number_of_query(asker) % 3 == 0;
}

static bool is_error_of_disturbance(int error)
{
    return error == -EPIPE || error == -ENOTCONN || error == -ETIMEDOUT || error == -EBUSY ||
           error == -ECANCELED;
}

static int check_answer_and_send_next_query(domus_stack *stack, void *self,
                                            const domus_answer *answer)
{
    struct asker *asker = self;
    const domus_sql_result *result;
    int64_t number = -1;
    int error = domus_sql_result_of(answer, &result);

    if (error == 0) {
        atomic_fetch_add(&successes, 1);
        if (domus_sql_get_int(result, 0, 0, &number) != 0 ||
            number != make_number_of_query(asker) || must_query_divide_by_zero(asker))
            atomic_fetch_add(&mixed_up, 1);
    } else if (!is_error_of_disturbance(error) &&
               !(error == -EINVAL && must_query_divide_by_zero(asker)))
        atomic_fetch_add(&unknown, 1);
    atomic_fetch_add(&answers, 1);
    asker->number++;
    return asker->number < wanted ? send_next_query_of_asker(stack, asker) : 0;
}

static int handle_begin_of_asker(domus_stack *stack, void *self, const void *payload)
{
    return send_next_query_of_asker(stack, self);
}

static const domus_behaviour asker_behaviour = {
    .name = "asker",
    .state_size = sizeof(struct asker),
    .on = (const domus_on[]){{&begin_type, handle_begin_of_asker, 0}, {NULL, NULL, 0}},
};

/* Disturb the database in the way of this round, and pause. */
static void disturb_database_in_one_way(uint32_t round)
{
    static const char *const commands[] = {
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND "
        "pid % 2 = 0",
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client "
        "backend'",
    };

    if (round % 8 == 7) {
        domt_postgres_signal_and_wait(&server, round % 16 == 7 ? SIGQUIT : SIGINT);
        domt_postgres_start_again(&server);
    } else {
        domt_pg_answer answer = domt_pg_run_text(&user, user.sql, commands[round % 3]);
        domt_pg_free_answer(&answer);
    }
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

static void run_storm_of_queries(uint32_t pipeline_max)
{
    uint64_t all = domt_tests_are_long() ? 1000000 : 4000;
    const domus_sql_options options = {.connections_max = 8,
                                       .pipeline_max = pipeline_max,
                                       .backoff_min_ns = 5 * MS,
                                       .backoff_max_ns = 20 * MS};

    wanted = all / ASKERS;
    domt_postgres_start(&server, NULL);
    domt_pg_user_start_system(&user, server.unix_url, &options);
    for (uint32_t i = 0; i < ASKERS; i++) {
        domus_address address;
        const struct asker asker = {.first = (uint64_t)i << 32};
        ck_assert_int_eq(domus_outside_spawn(user.system, &asker_behaviour, &asker, &address), 0);
        ck_assert_int_eq(domus_outside_notice(user.system, address, &begin_type, NULL), 0);
    }
    for (uint32_t round = 0; atomic_load(&answers) < wanted * ASKERS; round++)
        disturb_database_in_one_way(round);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    /* no query has had a second answer */
    ck_assert_uint_eq(atomic_load(&answers), wanted * ASKERS);
    ck_assert_uint_eq(atomic_load(&mixed_up), 0);
    ck_assert_uint_eq(atomic_load(&unknown), 0);
    ck_assert_uint_gt(atomic_load(&successes), wanted * ASKERS / 2);
    domt_pg_await_idle_connections(&user);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).waiting, 0);
    domt_pg_user_stop_system(&user);
    domt_postgres_stop(&server);
}

DOMT_TEST(each_query_has_one_answer_in_the_storm)
{
    run_storm_of_queries(1);
}

DOMT_TEST(each_query_has_one_answer_in_pipeline_storm)
{
    run_storm_of_queries(4);
}

DOMT_SUITE(600)
