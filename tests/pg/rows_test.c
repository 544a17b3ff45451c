/* Rows and copies in pieces: they come whole and in order, slow readers hold up the server, and
 * copies may end in unusual ways. */
#include "tests/pg/user.h"
#include "tests/support/process.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Rows and copies in pieces: they come whole and in order, the server waits for a slow reader, and
 * a cursor that is not read to its end gives its connection back. */

#define MS UINT64_C(1000000)

static domt_postgres server;
static domt_pg_user user;

static void start_server_with_user(const domus_sql_options *options)
{
    domt_postgres_start(&server, NULL);
    domt_pg_user_start_system(&user, server.unix_url, options);
}

static void stop_server_and_user(void)
{
    domt_pg_user_stop_system(&user);
    domt_postgres_stop(&server);
}

static domus_sql_cursor open_cursor_for_rows(domus_sql sql, const domus_sql_statement *statement)
{
    domt_pg_answer answer =
        domt_pg_run_request(&user, sql, &domus_sql_rows_type, statement, NULL, NULL, 0);

    ck_assert_int_eq(answer.error, 0);
    ck_assert_ptr_eq(answer.type, &domus_sql_cursor_type);
    return answer.as.cursor;
}

static domt_pg_answer fetch_piece_of_rows(domus_sql_cursor cursor)
{
    return domt_pg_ask_and_wait(&user, cursor.at, &domus_sql_fetch_type, &cursor, 0);
}

static const domus_sql_statement many = {.text = "SELECT generate_series(1, 30000) AS number"};
static const domus_sql_statement none = {.text = "SELECT 1 AS number WHERE false"};
static const domus_sql_statement breaks = {
    .text = "SELECT 1 / (20000 - number) FROM generate_series(1, 30000) AS number"};
/* This query has 4 GiB of rows. */
static const domus_sql_statement huge = {
    .text = "SELECT repeat('x', 1024) FROM generate_series(1, 4194304)"};

DOMT_TEST(rows_of_cursor_come_in_order_in_pieces)
{
    static const domus_sql_options options = {.piece_size = 4096};

    start_server_with_user(&options);
    /* the first round reads outside of a transaction, the second one in one */
    for (int round = 0; round < 2; round++) {
        domus_sql sql = round == 0 ? user.sql : domt_pg_begin_transaction(&user);
        domus_sql_cursor cursor = open_cursor_for_rows(sql, &many);
        int64_t number = 0, pieces = 0;
        for (bool is_last = false; !is_last; pieces++) {
            domt_pg_answer answer = fetch_piece_of_rows(cursor);
            ck_assert_int_eq(answer.error, 0);
            is_last = answer.as.result.last;
            ck_assert_int_eq(domus_sql_column(&answer.as.result, "number"), 0);
            for (uint32_t row = 0; row < answer.as.result.rows; row++)
                ck_assert_int_eq(domus_sql_cell(&answer.as.result, row, 0).as.integer, ++number);
            domt_pg_free_answer(&answer);
        }
        ck_assert_int_eq(number, 30000);
        ck_assert_int_gt(pieces, 100);
        ck_assert_int_eq(fetch_piece_of_rows(cursor).error, -ESTALE);
        if (round == 1)
            ck_assert_int_eq(domt_pg_end_transaction(&user, sql, true).error, 0);
        cursor = open_cursor_for_rows(user.sql, &none);
        domt_pg_answer answer = fetch_piece_of_rows(cursor);
        ck_assert(answer.error == 0 && answer.as.result.last && answer.as.result.rows == 0);
        ck_assert_uint_eq(answer.as.result.columns, 1);
        domt_pg_free_answer(&answer);
    }
    domt_pg_await_idle_connections(&user);
    stop_server_and_user();
}

DOMT_TEST(failure_after_rows_is_returned_by_fetch)
{
    static const domus_sql_options options = {.piece_size = 4096};
    domt_pg_answer answer;
    uint32_t pieces = 0;

    start_server_with_user(&options);
    domus_sql_cursor cursor = open_cursor_for_rows(user.sql, &breaks);
    while ((answer = fetch_piece_of_rows(cursor)).error == 0) {
        pieces++;
        ck_assert(!answer.as.result.last);
        domt_pg_free_answer(&answer);
    }
    ck_assert_uint_gt(pieces, 50);
    ck_assert_str_eq(answer.as.failure.sqlstate, "22012");
    ck_assert_int_eq(fetch_piece_of_rows(cursor).error, -ESTALE);
    domt_pg_await_idle_connections(&user);
    ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, "SELECT 7"), 7);
    stop_server_and_user();
}

static void wait_until_server_stops_sending(void)
{
    static const char *const waits =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ClientWrite'";

    for (int i = 0; i < 1000 && domt_pg_run_text_for_number(&user, user.sql, waits) != 1; i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)MS}, NULL);
    ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, waits), 1);
}

/* Nobody reads 4 GiB of rows: the server waits, memory stays bounded, and other queries go on.
 * Closed cursors give their connections back, and so do cursors that are left open. */
DOMT_TEST(slow_reader_holds_up_only_its_session)
{
    static const domus_sql_options options = {.transaction_idle_ns = 2000 * MS};

    start_server_with_user(&options);
    ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, "SELECT 7"), 7);
    uint64_t before = domt_resident_bytes(getpid());
    domus_sql_cursor cursor = open_cursor_for_rows(user.sql, &huge);
    domt_pg_answer answer = fetch_piece_of_rows(cursor);
    ck_assert_int_eq(answer.error, 0);
    domt_pg_free_answer(&answer);
    wait_until_server_stops_sending();
    uint64_t most = before + (DOMT_SANITIZED ? 256u << 20 : 8u << 20);
    ck_assert_uint_lt(domt_resident_bytes(getpid()), most);
    ck_assert_int_eq(
        domus_outsider_notice(user.outsider, cursor.at, &domus_sql_close_type, &cursor), 0);
    domt_pg_await_idle_connections(&user);
    cursor = open_cursor_for_rows(
        user.sql, &huge); /* this cursor is never closed, and ends by its time-out */
    domt_pg_await_idle_connections(&user);
    ck_assert_int_eq(fetch_piece_of_rows(cursor).error, -ESTALE);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).failures,
                      0); /* no connection was closed to end the cursors */
    ck_assert_uint_lt(domt_resident_bytes(getpid()), most);
    stop_server_and_user();
}

DOMT_TEST(commit_closes_open_cursors)
{
    start_server_with_user(NULL);
    domus_sql sql = domt_pg_begin_transaction(&user);
    (void)open_cursor_for_rows(sql, &many);
    ck_assert_int_eq(domt_pg_end_transaction(&user, sql, true).error, 0);
    domt_pg_await_idle_connections(&user);
    stop_server_and_user();
}

/* --- copies ----------------------------------------------------------------------------------- */

static domus_sql_cursor open_copy_for_bytes(domus_sql sql, const domus_type *type, const char *text)
{
    domt_pg_answer answer = domt_pg_run_request(&user, sql, type, NULL, text, NULL, 0);

    ck_assert_msg(answer.error == 0, "%s: %d", text, answer.error);
    ck_assert_ptr_eq(answer.type, &domus_sql_cursor_type);
    return answer.as.cursor;
}

static void write_bytes_to_copy(domus_sql_cursor copy, const char *bytes, size_t size)
{
    domus_pg_write write = {.copy = copy};

    ck_assert_int_eq(domus_slice_copy(bytes, size, &write.bytes), 0);
    domt_pg_answer answer =
        domt_pg_ask_and_wait(&user, copy.at, &domus_pg_copy_write_type, &write, 0);
    ck_assert_int_eq(answer.error, 0);
    domt_pg_free_answer(&answer);
}

/* Write one piece of `size` bytes to a copy, and check the error of the write. */
static void write_large_piece_to_copy(domus_sql_cursor copy, size_t size, int error)
{
    domus_pg_write write = {.copy = copy};
    char *bytes = malloc(size);

    ck_assert_ptr_nonnull(bytes);
    memset(bytes, 'y', size);
    ck_assert_int_eq(domus_slice_copy(bytes, size, &write.bytes), 0);
    free(bytes);
    domt_pg_answer answer =
        domt_pg_ask_and_wait(&user, copy.at, &domus_pg_copy_write_type, &write, 0);
    ck_assert_int_eq(answer.error, error);
    domt_pg_free_answer(&answer);
}

DOMT_TEST(copies_carry_bytes_in_and_out)
{
    static const domus_sql_options options = {
        .piece_size = 65536, .connections_max = 2, .result_max = 64u << 20};
    static char line[1025];
    uint64_t bytes = 0;

    start_server_with_user(&options);
    domt_pg_run_script(&user, "CREATE TABLE t (line TEXT)");
    domus_sql_cursor copy =
        open_copy_for_bytes(user.sql, &domus_pg_copy_in_type, "COPY t FROM STDIN");
    memset(line, 'x', sizeof line - 1);
    line[1024] = '\n';
    for (int i = 0; i < 8000; i++)
        write_bytes_to_copy(copy, line, sizeof line);
    write_large_piece_to_copy(copy, DOMUS_PG_WRITE_MAX, 0);
    write_large_piece_to_copy(copy, DOMUS_PG_WRITE_MAX + 1, -EMSGSIZE);
    write_bytes_to_copy(copy, "\n", 1);
    domt_pg_answer answer = domt_pg_ask_and_wait(&user, copy.at, &domus_pg_copy_end_type, &copy, 0);
    ck_assert_int_eq(answer.error, 0);
    ck_assert_uint_eq(answer.as.result.affected, 8001);
    domt_pg_free_answer(&answer);
    copy = open_copy_for_bytes(user.sql, &domus_pg_copy_out_type, "COPY t TO STDOUT");
    for (bool is_last = false; !is_last;) {
        answer = domt_pg_ask_and_wait(&user, copy.at, &domus_pg_copy_read_type, &copy, 0);
        ck_assert_int_eq(answer.error, 0);
        ck_assert_ptr_eq(answer.type, &domus_pg_piece_type);
        is_last = answer.as.piece.last;
        bytes += answer.as.piece.bytes.size;
        domt_pg_free_answer(&answer);
    }
    ck_assert_uint_eq(bytes, 8000 * sizeof line + DOMUS_PG_WRITE_MAX + 1);
    domt_pg_await_idle_connections(&user);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).failures, 0);
    stop_server_and_user();
}

DOMT_TEST(failed_copy_is_undone)
{
    static const domus_sql_options options = {.transaction_idle_ns = 1000 * MS};

    start_server_with_user(&options);
    domt_pg_run_script(&user, "CREATE TABLE t (number INT)");
    domus_sql_cursor copy =
        open_copy_for_bytes(user.sql, &domus_pg_copy_in_type, "COPY t FROM STDIN");
    write_bytes_to_copy(copy, "1\nno number\n", 12);
    domt_pg_answer answer = domt_pg_ask_and_wait(&user, copy.at, &domus_pg_copy_end_type, &copy, 0);
    ck_assert_int_eq(answer.error, -EINVAL);
    ck_assert_str_eq(answer.as.failure.sqlstate, "22P02");
    copy = open_copy_for_bytes(user.sql, &domus_pg_copy_in_type, "COPY t FROM STDIN");
    write_bytes_to_copy(copy, "1\n", 2);
    ck_assert_int_eq(domus_outsider_notice(user.outsider, copy.at, &domus_sql_close_type, &copy),
                     0);
    domt_pg_await_idle_connections(&user);
    copy = open_copy_for_bytes(user.sql, &domus_pg_copy_in_type, "COPY t FROM STDIN");
    write_bytes_to_copy(copy, "1\n", 2);
    domt_pg_await_idle_connections(
        &user); /* the copy ends by its time-out, without further writes */
    ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, "SELECT count(*) FROM t"), 0);
    static const char *const wrong[] = {"SELECT 1", "INSERT INTO t VALUES (1)", "COPY t TO STDOUT"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        answer =
            domt_pg_run_request(&user, user.sql, &domus_pg_copy_in_type, NULL, wrong[i], NULL, 0);
        ck_assert_msg(answer.error == -EINVAL, "%s: %d", wrong[i], answer.error);
    }
    answer = domt_pg_run_request(&user, user.sql, &domus_sql_script_type, NULL,
                                 "SELECT 1; COPY t FROM STDIN", NULL, 0);
    ck_assert_int_eq(answer.error, -EINVAL);
    answer = domt_pg_run_request(&user, user.sql, &domus_sql_script_type, NULL,
                                 "COPY t TO STDOUT; SELECT 1", NULL, 0);
    ck_assert_int_eq(answer.error, -EINVAL);
    domt_pg_await_idle_connections(&user);
    ck_assert_uint_eq(domt_pg_read_database_status(&user).failures, 0);
    stop_server_and_user();
}

/* --- copy ------------------------------------------------------------------------------------- */

/* Copies to the server that end in an unusual way: the server hangs or refuses the bytes, or their
 * writer waits, gives up, or ends. */

static void start_server_with_table(const domus_sql_options *options)
{
    domt_postgres_start(&server, NULL);
    domt_pg_user_start_system(&user, server.unix_url, options);
    domt_pg_run_script(&user, "CREATE TABLE t (number INT)");
}

static domus_sql_cursor open_copy_into_table(domt_pg_user *who, domus_sql sql)
{
    domt_pg_answer answer =
        domt_pg_run_request(who, sql, &domus_pg_copy_in_type, NULL, "COPY t FROM STDIN", NULL, 0);

    ck_assert_int_eq(answer.error, 0);
    return answer.as.cursor;
}

static int write_bytes_as_user(domt_pg_user *who, domus_sql_cursor copy, const char *bytes,
                               size_t size)
{
    domus_pg_write write = {.copy = copy};

    ck_assert_int_eq(domus_slice_copy(bytes, size, &write.bytes), 0);
    domt_pg_answer answer =
        domt_pg_ask_and_wait(who, copy.at, &domus_pg_copy_write_type, &write, 0);
    if (answer.error != 0 && answer.type == NULL)
        return answer.error;
    domt_pg_free_answer(&answer);
    return answer.error;
}

static pid_t find_backend_of_session(domus_sql sql)
{
    return (pid_t)domt_pg_run_text_for_number(&user, sql, "SELECT pg_backend_pid()");
}

/* A server that hangs takes no more bytes, so the write waits in the pool. It fails at its
 * time-out, also when its writer has ended meanwhile, and the connection ends. */
DOMT_TEST(waiting_write_of_copy_times_out)
{
    static const domus_sql_options options = {.timeout_ns = 500 * MS};
    static char bytes[1u << 20];

    memset(bytes, '\n', sizeof bytes);
    for (int round = 0; round < 2; round++) {
        start_server_with_table(&options);
        domt_pg_user other = user;
        ck_assert_int_eq(domus_outside_attach(user.system, NULL, &other.outsider), 0);
        domus_sql sql = domt_pg_begin_transaction(&other);
        pid_t backend = find_backend_of_session(sql);
        domus_sql_cursor copy = open_copy_into_table(&other, sql);
        kill(backend, SIGSTOP);
        domus_pg_write write = {.copy = copy};
        if (round == 0) {
            int error = 0;
            while (error == 0)
                error = write_bytes_as_user(&other, copy, bytes, sizeof bytes);
            ck_assert_int_eq(error, -ETIMEDOUT);
            ck_assert_int_eq(write_bytes_as_user(&other, copy, bytes, 1), -ESTALE);
        } else { /* send two writes without waiting for the first one's answer */
            for (uint64_t tag = 0; tag < 2; tag++) {
                ck_assert_int_eq(domus_slice_copy(bytes, sizeof bytes, &write.bytes), 0);
                ck_assert_int_eq(domus_outsider_ask_add(other.outsider, copy.at,
                                                        &domus_pg_copy_write_type, &write, 0, tag),
                                 0);
            }
        }
        ck_assert_int_eq(domus_outside_detach(other.outsider), 0);
        for (int i = 0; i < 4000 && domt_pg_read_database_status(&user).busy != 0; i++)
            nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
        ck_assert_uint_eq(domt_pg_read_database_status(&user).busy, 0);
        kill(backend, SIGCONT);
        ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, "SELECT count(*) FROM t"), 0);
        stop_server_and_user();
    }
}

/* The server has refused the bytes of a copy in a transaction. The copy ends by a rollback, by its
 * close, or by the end of its owner. */
DOMT_TEST(refused_copy_fails_its_transaction)
{
    static const domus_sql_options options = {.connections_max = 1, .timeout_ns = 5000 * MS};

    start_server_with_table(&options);
    for (int round = 0; round < 3; round++) {
        domt_pg_user other = user;
        ck_assert_int_eq(domus_outside_attach(user.system, NULL, &other.outsider), 0);
        domus_sql sql = domt_pg_begin_transaction(&other);
        domus_sql_cursor copy = open_copy_into_table(&other, sql);
        ck_assert_int_eq(write_bytes_as_user(&other, copy, "no number\n", 10), 0);
        /* The server refuses the bytes during this pause. */
        nanosleep(&(struct timespec){.tv_nsec = (long)(100 * MS)}, NULL);
        if (round == 1)
            ck_assert_int_eq(
                domus_outsider_notice(other.outsider, copy.at, &domus_sql_close_type, &copy), 0);
        if (round < 2)
            ck_assert_int_eq(domt_pg_end_transaction(&other, sql, false).error, 0);
        ck_assert_int_eq(domus_outside_detach(other.outsider), 0);
        domt_pg_await_idle_connections(&user);
    }
    ck_assert_uint_eq(domt_pg_read_database_status(&user).failures, 0);
    ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, "SELECT count(*) FROM t"), 0);
    stop_server_and_user();
}

/* Run queries in a transaction until one is refused. Asks are handled before notices, so the first
 * of them may come before a notice that was sent earlier. */
static void run_queries_until_transaction_fails(domus_sql sql)
{
    domt_pg_answer answer = {0};

    for (int tries = 0; tries < 10000 && answer.error == 0; tries++) {
        answer = domt_pg_run_text(&user, sql, "SELECT 1");
        domt_pg_free_answer(&answer);
    }
    ck_assert_int_eq(answer.error, -EINVAL);
}

/* A statement that comes as a notice cannot be answered, so none is made of it. A user who counts
 * on it must not get a commit without it. */
DOMT_TEST(statement_that_cannot_be_begun_fails_its_transaction)
{
    static const domus_type *const types[] = {&domus_sql_query_type, &domus_pg_copy_in_type};

    start_server_with_table(NULL);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        domus_sql sql = domt_pg_begin_transaction(&user);
        domus_sql_request request;
        ck_assert_int_eq(domus_sql_request_make(sql, NULL, "COPY t FROM STDIN", NULL, 0, &request),
                         0);
        ck_assert_int_eq(domus_outsider_notice(user.outsider, sql.at, types[i], &request), 0);
        run_queries_until_transaction_fails(sql);
        domt_pg_answer answer = domt_pg_end_transaction(&user, sql, true);
        ck_assert_int_eq(answer.error, -EINVAL);
        domt_pg_free_answer(&answer);
    }
    stop_server_and_user();
}

/* A write that comes as a notice is refused before the server gets its bytes. */
DOMT_TEST(write_of_copy_that_is_no_ask_sends_nothing)
{
    start_server_with_table(NULL);
    domus_sql_cursor copy = open_copy_into_table(&user, user.sql);
    domus_pg_write write = {.copy = copy};
    ck_assert_int_eq(domus_slice_copy("1\n", 2, &write.bytes), 0);
    ck_assert_int_eq(
        domus_outsider_notice(user.outsider, copy.at, &domus_pg_copy_write_type, &write), 0);
    /* the pool handles the notice between these asks, at the latest */
    for (int i = 0; i < 10; i++)
        (void)domt_pg_read_database_status(&user);
    ck_assert_int_eq(write_bytes_as_user(&user, copy, "2\n", 2), 0);
    domt_pg_answer answer = domt_pg_ask_and_wait(&user, copy.at, &domus_pg_copy_end_type, &copy, 0);
    ck_assert_int_eq(answer.error, 0);
    ck_assert_uint_eq(answer.as.result.affected, 1);
    domt_pg_free_answer(&answer);
    ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, "SELECT number FROM t"), 2);
    stop_server_and_user();
}

DOMT_SUITE(120)
