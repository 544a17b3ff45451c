/* Checks that transactions end although their conversation can no longer ask, because its deadline
 * has passed or it was cancelled (tests/support/sql_cases.h). */
#include "tests/support/service.h"
#include "tests/support/sql_cases.h"
#include "tests/support/sql_desk.h"
#include "tests/support/suite.h"

#include <domus/await.h>

#include <errno.h>

#define MS UINT64_C(1000000)

static const domus_type work_type = {.name = "work", .size = sizeof(bool)};
static const domus_type stop_type = {.name = "stop"};

struct worker {
    domus_sql sql;
    domus_address silent;
    domus_conversation working;
    bool commits;
};

struct work {
    domus_sql one;
};

/* A conversation that begins a transaction, writes a row, waits for an answer that never comes, and
 * then commits or rolls back. */
DOMUS_SEQUENCE(work, struct work)
{
    struct worker *worker = self;

    DOMUS_BEGIN;
    worker->commits = *(const bool *)message;
    (void)domus_conversation_of(stack, &worker->working);
    DOMUS_AWAIT(domus_sql_begin(stack, worker->sql, NULL, then));
    if (domus_sql_transaction_of(answer, &frame->one) != 0)
        return -EINVAL;
    DOMUS_AWAIT(domus_sql_query_text(stack, frame->one, "INSERT INTO domt_t (id) VALUES (1)", NULL,
                                     0, then));
    DOMUS_ASK(worker->silent, &stop_type, NULL);
    DOMUS_AWAIT(worker->commits ? domus_sql_commit(stack, frame->one, then)
                                : domus_sql_rollback(stack, frame->one, then));
    return answer->error;
    DOMUS_END;
}

static int on_stop_cancel_work(domus_stack *stack, void *self, const void *payload)
{
    struct worker *worker = self;

    int error = domus_cancel(stack, worker->working);
    return error != 0 ? error : domus_reply(stack, &stop_type, NULL);
}

static const domus_behaviour worker = {
    .name = "worker",
    .state_size = sizeof(struct worker),
    .on = (const domus_on[]){DOMUS_ON(&work_type, work),
                             {&stop_type, on_stop_cancel_work, 0},
                             {NULL, NULL, 0}},
};

static int on_stop_never_answer(domus_stack *stack, void *self, const void *payload)
{
    domus_kept kept;

    return domus_keep(stack, &kept);
}

static const domus_behaviour silent = {
    .name = "silent",
    .on = (const domus_on[]){{&stop_type, on_stop_never_answer, 0}, {NULL, NULL, 0}}};

/* Check that the transaction has been rolled back: the only connection is free again long before
 * the transaction's idle time is over. */
static void check_connection_is_free(domt_desk *desk)
{
    domt_desk_must_give(desk, desk->sql, "SELECT count(*) FROM domt_t", "0");
    domt_desk_must_succeed(desk, desk->sql, "INSERT INTO domt_t (id) VALUES (2)");
    domt_desk_must_succeed(desk, desk->sql, "DELETE FROM domt_t");
}

void domt_sql_check_late_ends(const domus_sql_driver *driver, const char *url)
{
    const domus_sql_options options = {
        .connections_max = 1, .wait_ns = 20000 * MS, .transaction_idle_ns = 600000 * MS};
    struct worker state = {.commits = false};
    domus_address who;
    domt_desk desk;

    domt_desk_open(&desk, driver, url, &options);
    (void)domt_desk_run_script(&desk, desk.sql, "DROP TABLE IF EXISTS domt_t");
    domt_desk_must_succeed(&desk, desk.sql,
                           "CREATE TABLE domt_t (id INTEGER PRIMARY KEY, word TEXT)");
    state.sql = desk.sql;
    ck_assert_int_eq(domus_outside_spawn(desk.system, &silent, NULL, &state.silent), 0);
    ck_assert_int_eq(domus_outside_spawn(desk.system, &worker, &state, &who), 0);
    for (int i = 0; i < 4; i++) {
        const bool commits = i % 2 != 0;
        const uint64_t within_ns = i < 2 ? 300 * MS : 0;
        if (within_ns != 0) {
            ck_assert_int_eq(
                domus_outsider_ask(desk.outsider, who, &work_type, &commits, within_ns, NULL),
                -ETIMEDOUT);
        } else {
            ck_assert_int_eq(domus_outsider_notice(desk.outsider, who, &work_type, &commits), 0);
            while (domt_desk_database_status(&desk).busy == 0)
                domt_sleep_ms(1);
            domt_sleep_ms(50);
            ck_assert_int_eq(domt_desk_ask(&desk, who, &stop_type, NULL), 0);
        }
        check_connection_is_free(&desk);
    }
    domt_desk_must_succeed(&desk, desk.sql, "DROP TABLE domt_t");
    domt_desk_close(&desk);
}
