/* protocols/sqlite: jobs on helper threads, and writes that are committed together in one job. */
#include "tests/sqlite/crowd.h"
#include "tests/sqlite/place.h"
#include "tests/support/service.h"
#include "tests/support/sql_desk.h"
#include "tests/support/suite.h"

#include <domus/blocking.h>
#include <domus/sqlite.h>
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>

/* protocols/sqlite: jobs that wait for a helper thread, or get none. The test stops and releases
 * the only helper thread, so no result depends on time. */

#define MS UINT64_C(1000000)

/* --- a helper thread that can be stopped
 * -------------------------------------------------------- */

static sem_t asked, begun, may_end;

static void wait_for_semaphore_uninterrupted(sem_t *event)
{
    while (sem_wait(event) != 0)
        continue;
}

static int block_helper_thread(void *argument)
{
    sem_post(&begun);
    wait_for_semaphore_uninterrupted(&may_end);
    return 0;
}

static int resume_when_helper_is_free(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    return 0;
}

static int occupy_helper_on_mount(domus_stack *stack, void *self)
{
    int result = domus_blocking(stack, block_helper_thread, NULL, resume_when_helper_is_free);

    sem_post(&asked);
    return result;
}

static const domus_behaviour occupant = {
    .name = "occupant", .kind = DOMUS_STATE, .on_mount = occupy_helper_on_mount};

/* Keep the only helper thread busy until let_helper_finish_jobs(), and fill the queue of its jobs,
 * with `jobs` jobs in all. */
static void stop_helper_and_fill_queue(const domt_desk *desk, uint32_t jobs)
{
    domus_address address;

    for (uint32_t i = 0; i < jobs; i++) {
        ck_assert_int_eq(domus_outside_spawn(desk->system, &occupant, NULL, &address), 0);
        wait_for_semaphore_uninterrupted(&asked);
        if (i == 0)
            wait_for_semaphore_uninterrupted(&begun);
    }
}

static void let_helper_finish_jobs(uint32_t jobs)
{
    for (uint32_t i = 0; i < jobs; i++)
        sem_post(&may_end);
    for (uint32_t i = 1; i < jobs; i++)
        wait_for_semaphore_uninterrupted(&begun);
}

/* --- a database with one helper thread -------------------------------------------------------- */

static domus_system *make_system_with_one_helper(void)
{
    domus_system *system;
    domus_config config;
    char error[256] = "";

    ck_assert_int_eq(sem_init(&asked, 0, 0), 0);
    ck_assert_int_eq(sem_init(&begun, 0, 0), 0);
    ck_assert_int_eq(sem_init(&may_end, 0, 0), 0);
    domus_config_init(&config);
    config.system.threads = 2;
    config.system.cpus = "none";
    config.blocking.threads_max = config.blocking.queue_max = 1;
    ck_assert_msg(domus_system_new(&config, error, sizeof error, &system) == 0, "%s", error);
    ck_assert_int_eq(domus_system_start(system), 0);
    return system;
}

/* Open a database with a table whose rows fill several pieces of a cursor. */
static void open_desk_with_table(domt_desk *desk, const char *url, const domus_sql_options *options)
{
    static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, NULL};
    domus_sql_options own = *options;
    domt_desk host = {.system = make_system_with_one_helper()};

    own.drivers = drivers;
    ck_assert_int_eq(domus_outside_sql_open(host.system, url, &own, &host.sql), 0);
    domt_desk_open_guest(desk, &host);
    domt_desk_must_succeed(desk, desk->sql, "CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT)");
    domt_desk_must_succeed(
        desk, desk->sql,
        "INSERT INTO t WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r "
        "WHERE n < 200) SELECT n, 'clean' FROM r");
}

static void close_desk_and_system(domt_desk *desk)
{
    domus_system *system = desk->system;

    domt_desk_close(desk);
    ck_assert_int_eq(domus_system_stop(system), 0);
    domus_system_free(system);
    sem_destroy(&asked);
    sem_destroy(&begun);
    sem_destroy(&may_end);
}

static void send_ask_of_desk(domt_desk *desk, const domus_type *type, const void *payload)
{
    ck_assert_int_eq(domus_outsider_ask_add(desk->outsider, desk->sql.at, type, payload, 0, 1), 0);
}

static domus_outside_message receive_answer_of_desk(const domt_desk *desk)
{
    domus_outside_message message;

    ck_assert_int_eq(domus_outside_receive(desk->outsider, NULL, 10000 * MS, &message), 0);
    return message;
}

/* --- tests ------------------------------------------------------------------------------------ */

/* A commit whose job finds no place in the queue becomes a rollback, so queries that wait are not
 * blocked. */
DOMT_TEST(commit_without_a_job_is_a_rollback)
{
    const domus_sql_options options = {.connections_max = 2};
    domt_place place;
    domt_desk desk;
    domus_sql one;

    domt_place_make_directory_and_url(&place, "");
    open_desk_with_table(&desk, place.url, &options);
    ck_assert_int_eq(domt_desk_begin_transaction(&desk, false, &one), 0);
    domt_desk_must_succeed(&desk, one, "DELETE FROM t");
    stop_helper_and_fill_queue(&desk, 2); /* the queue of jobs has no place for the commit's job */
    ck_assert_int_eq(domt_desk_end_transaction(&desk, one, true), -ENOTCONN);
    let_helper_finish_jobs(2);
    domt_desk_must_succeed(&desk, desk.sql, "UPDATE t SET word = 'x' WHERE id = 1");
    domt_desk_query_must_return(&desk, desk.sql, "SELECT count(*) FROM t", "200");
    ck_assert_int_eq(domt_desk_run_text(&desk, one, "SELECT 1", NULL, 0), -ESTALE);
    close_desk_and_system(&desk);
    domt_place_remove_directory(&place);
}

/* A fetch that was sent before a transaction begins waits for its end, as later fetches do. */
DOMT_TEST(fetch_before_begin_waits_for_end_of_transaction)
{
    static const domus_sql_statement every = {.text = "SELECT word FROM t"};
    const domus_sql_options options = {.connections_max = 1, .piece_size = 1024};
    const domus_sql_begin_options begin = {.reads_only = false};
    domus_outside_message message;
    domus_sql_cursor cursor;
    domt_desk desk, guest;
    domt_place place;
    domus_sql one;
    char word[16];

    domt_place_make_directory_and_url(&place, "");
    open_desk_with_table(&desk, place.url, &options);
    domt_desk_open_guest(&guest, &desk);
    ck_assert_int_eq(domt_desk_open_cursor(&desk, desk.sql, &every, NULL, 0, &cursor), 0);
    ck_assert_int_eq(domt_desk_fetch_rows(&desk, cursor), 0);
    stop_helper_and_fill_queue(&desk, 1);
    send_ask_of_desk(&guest, &domus_sql_begin_type, &begin);
    while (domt_desk_database_status(&desk).waiting != 0 ||
           domt_desk_database_status(&desk).busy != 1)
        domt_sleep_ms(1);
    send_ask_of_desk(&desk, &domus_sql_fetch_type, &cursor);
    while (domt_desk_database_status(&guest).waiting != 1)
        domt_sleep_ms(1);
    let_helper_finish_jobs(1);
    message = receive_answer_of_desk(&guest);
    ck_assert_ptr_eq(message.type, &domus_sql_begun_type);
    one = *(const domus_sql *)message.payload;
    domt_desk_must_succeed(&guest, one, "UPDATE t SET word = 'dirty'");
    ck_assert_uint_eq(domt_desk_database_status(&guest).waiting, 1);
    ck_assert_int_eq(domt_desk_end_transaction(&guest, one, false), 0);
    message = receive_answer_of_desk(&desk);
    ck_assert_ptr_eq(message.type, &domus_sql_result_type);
    ck_assert_int_eq(domus_sql_get_text(message.payload, 1, 0, word, sizeof word), 0);
    ck_assert_str_eq(word, "clean");
    domt_desk_close(&guest);
    close_desk_and_system(&desk);
    domt_place_remove_directory(&place);
}

/* --- group ------------------------------------------------------------------------------------ */

/* protocols/sqlite/group.c: writes that are committed together fail separately, and no write is
 * executed twice or lost when another one ends the transaction. */

#define WRITES 40u
#define BAD    17u /* index of the write in the group that fails */

/* A write that fails within a group of others, and its error. */
static const struct group_case {
    const char *bad;
    int error;
} cases[] = {
    {"INSERT INTO t (id) VALUES (-1)", -EEXIST},
    {"INSERT OR ROLLBACK INTO t (id) VALUES (-1)", -EEXIST},
    {"INSERT INTO t (id) VALUES ('x')", -EINVAL},
    {"INSERT INTO nothing (id) VALUES (1)", -EINVAL},
    /* The constraint is deferred, so the write fails only at the commit. */
    {"INSERT INTO child (id, parent) VALUES (1, 12345)", -EPERM},
};

#define CASES (sizeof cases / sizeof cases[0])

static void prepare_tables_for_group(domt_desk *desk)
{
    domt_desk_must_succeed(desk, desk->sql, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)");
    domt_desk_must_succeed(desk, desk->sql, "INSERT INTO t (id) VALUES (-1)");
    domt_desk_must_succeed(
        desk, desk->sql,
        "CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES t (id) "
        "DEFERRABLE INITIALLY DEFERRED)");
    domt_desk_must_succeed(desk, desk->sql, "CREATE TABLE counted (n INTEGER)");
    domt_desk_must_succeed(desk, desk->sql, "INSERT INTO counted VALUES (0)");
}

/* Send writes while a transaction holds the connection: they wait, and then are committed as one
 * group, of which only the write `bad` fails. */
static void run_group_with_bad_write(domt_desk *desk, const char *bad, int error)
{
    char text[128], expected[32];
    domus_sql holder;
    uint64_t number;

    domt_desk_must_succeed(desk, desk->sql, "UPDATE counted SET n = 0");
    ck_assert_int_eq(domt_desk_begin_transaction(desk, false, &holder), 0);
    for (uint32_t i = 0; i < WRITES; i++) {
        (void)snprintf(text, sizeof text, "%s", i == BAD ? bad : "UPDATE counted SET n = n + 1");
        domt_crowd_send_query_text(desk, desk->sql, text, i);
    }
    ck_assert_int_eq(domt_desk_end_transaction(desk, holder, true), 0);
    for (uint32_t i = 0; i < WRITES; i++) {
        int got = domt_crowd_receive_answer(desk, &number);
        ck_assert_msg(got == (number == BAD ? error : 0), "%s: %d of %u", bad, got,
                      (unsigned)number);
    }
    (void)snprintf(expected, sizeof expected, "%u", WRITES - 1);
    domt_desk_query_must_return(desk, desk->sql, "SELECT n FROM counted", expected);
}

DOMT_TEST(failed_write_of_group_fails_alone)
{
    domt_place place;
    domt_desk desk;

    domt_place_make_directory_and_url(&place, "");
    for (uint32_t k = 0; k < 2; k++) {
        domt_desk_open(&desk, &domus_sqlite_driver, k == 0 ? place.url : "sqlite::memory:", NULL);
        prepare_tables_for_group(&desk);
        for (size_t i = 0; i < CASES; i++)
            run_group_with_bad_write(&desk, cases[i].bad, cases[i].error);
        domt_desk_close(&desk);
    }
    domt_place_remove_directory(&place);
}

/* The time-out of one write of a group rolls back SQLite's whole transaction; the other writes
 * still succeed. */
DOMT_TEST(timed_out_write_of_group_fails_alone)
{
    domus_sql_options options = {.timeout_ns = UINT64_C(200000000)};
    domt_place place;
    domt_desk desk;

    domt_place_make_directory_and_url(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, &options);
    prepare_tables_for_group(&desk);
    run_group_with_bad_write(
        &desk,
        "INSERT INTO t (id) WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r "
        "WHERE n < 1e12) SELECT max(n) + 100 FROM r",
        -ETIMEDOUT);
    domt_desk_query_must_return(&desk, desk.sql, "SELECT count(*) FROM t", "1");
    domt_desk_close(&desk);
    domt_place_remove_directory(&place);
}

/* Reads that wait for the writing connection see complete commits only. */
DOMT_TEST(reads_beside_writes_see_complete_commits)
{
    domt_place place;
    uint64_t number;
    domt_desk desk;

    domt_place_make_directory_and_url(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    domt_desk_must_succeed(&desk, desk.sql, "CREATE TABLE pair (a INTEGER, b INTEGER)");
    domt_desk_must_succeed(&desk, desk.sql, "INSERT INTO pair VALUES (0, 0)");
    for (uint32_t i = 0; i < 400; i++)
        domt_crowd_send_query_text(&desk, desk.sql,
                                   i % 2 == 0 ? "UPDATE pair SET a = a + 1, b = b + 1"
                                              : "SELECT 1 / (a = b) FROM pair",
                                   i);
    for (uint32_t i = 0; i < 400; i++)
        ck_assert_int_eq(domt_crowd_receive_answer(&desk, &number), 0);
    domt_desk_query_must_return(&desk, desk.sql, "SELECT a, b FROM pair", "200|200");
    domt_desk_close(&desk);
    domt_place_remove_directory(&place);
}

DOMT_SUITE(60)
