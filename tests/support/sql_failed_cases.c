/* Failures that a database does not see, alike for all databases: each fails the transaction in
 * which it happens; see the header. */
#include "tests/support/sql_cases.h"

#include "tests/support/service.h"
#include "tests/support/sql_desk.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)

/* Statements that the library fails, each by another limit. */
static const struct failing {
    domus_sql_statement statement;
    int error;
} failing[] = {
    {{.text = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 1000) "
              "SELECT n, 'more than two bytes' FROM r"},
     -EFBIG},
    {{.text = "SELECT word FROM domt_t WHERE id = $1 AND word = $2"}, -EINVAL},
    {{.text = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) "
              "SELECT count(*) FROM r",
      .timeout_ns = 50 * MS},
     -ETIMEDOUT},
};

/* Check a transaction that has failed by `error`: further statements are refused, and nothing is
 * committed. */
static void check_failed(domt_desk *desk, domus_sql one, int error)
{
    ck_assert_int_eq(domt_desk_run(desk, one, "INSERT INTO domt_t (id) VALUES (9)", NULL, 0),
                     -EINVAL);
    ck_assert_str_eq(domt_desk_state(desk), "25P02");
    ck_assert_int_eq(domt_desk_end(desk, one, true), error);
    domt_desk_gives(desk, desk->sql, "SELECT count(*) FROM domt_t", "0");
}

static void check_statements(domt_desk *desk)
{
    domus_sql one;

    for (size_t i = 0; i < 2 * sizeof failing / sizeof failing[0]; i++) {
        const struct failing *row = &failing[i / 2];
        ck_assert_int_eq(domt_desk_begin(desk, false, &one), 0);
        domt_desk_must(desk, one, "INSERT INTO domt_t (id) VALUES (1)");
        ck_assert_int_eq(domt_desk_query(desk, one, &row->statement, NULL, 0), row->error);
        if (i % 2 == 0)
            check_failed(desk, one, row->error);
        else
            ck_assert_int_eq(domt_desk_end(desk, one, true), row->error);
        domt_desk_gives(desk, desk->sql, "SELECT count(*) FROM domt_t", "0");
    }
}

static void send_text(domt_desk *desk, domus_sql sql, const char *text, uint64_t timeout_ns)
{
    domus_sql_request request;

    ck_assert_int_eq(domus_sql_request_make(sql, NULL, text, NULL, 0, &request), 0);
    ck_assert_int_eq(domus_outsider_ask_add(desk->outsider, sql.at, &domus_sql_query_type, &request,
                                            timeout_ns, 0),
                     0);
}

/* Receive answers until one has this error. */
static void await_error(domt_desk *desk, int error)
{
    domus_outside_message message;
    int found = 0;

    while (found != error) {
        ck_assert_int_eq(domus_outside_receive(desk->outsider, NULL, 60000 * MS, &message), 0);
        if (message.type == &domus_outsider_failed_type)
            found = *(const int *)message.payload;
        else if (message.type == &domus_sql_error_type)
            found = ((const domus_sql_error *)message.payload)->error;
    }
}

static const char slow[] =
    "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3000000) "
    "SELECT count(*) FROM r";

/* Check statements that wait behind a slow one: one more than the limit is refused, and one waits
 * too long. */
static void check_waiting(domt_desk *desk)
{
    static const int errors[] = {-ENOBUFS, -ETIMEDOUT};
    domus_sql one;

    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(domt_desk_begin(desk, false, &one), 0);
        domt_desk_must(desk, one, "INSERT INTO domt_t (id) VALUES (1)");
        send_text(desk, one, slow, 300000 * MS);
        domt_sleep_ms(100);
        send_text(desk, one, "INSERT INTO domt_t (id) VALUES (2)", i == 0 ? 300000 * MS : 100 * MS);
        if (i == 0)
            send_text(desk, one, "INSERT INTO domt_t (id) VALUES (3)", 0);
        await_error(desk, errors[i]);
        int ended = domt_desk_end(desk, one, true);
        ck_assert_msg(ended == errors[i], "%zu: %d, %s", i, ended,
                      desk->answer.type == &domus_sql_error_type ? desk->payload.error.message
                                                                 : "no words");
        domt_desk_gives(desk, desk->sql, "SELECT count(*) FROM domt_t", "0");
    }
}

void domt_sql_failures(const domus_sql_driver *driver, const char *url)
{
    domus_sql_options options = {.queue_max = 1,
                                 .result_max = 2048,
                                 .wait_ns = 60000 * MS,
                                 .timeout_ns = 300000 * MS,
                                 .connections_max = 2};
    domt_desk desk;

    domt_desk_open(&desk, driver, url, &options);
    (void)domt_desk_script(&desk, desk.sql, "DROP TABLE IF EXISTS domt_t");
    domt_desk_must(&desk, desk.sql, "CREATE TABLE domt_t (id INTEGER PRIMARY KEY, word TEXT)");
    check_statements(&desk);
    /* In a database in memory, a slow statement holds up all later ones. */
    if (strstr(url, ":memory:") == NULL)
        check_waiting(&desk);
    domt_desk_must(&desk, desk.sql, "DROP TABLE domt_t");
    domt_desk_close(&desk);
}
