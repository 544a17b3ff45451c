/* protocols/sqlite: the urls and the files of databases, those that are accepted and those that
 * cannot be opened. */
#include "protocols/sqlite/place.h"
#include "tests/sqlite/place.h"
#include "tests/support/service.h"
#include "tests/support/sql_desk.h"
#include "tests/support/suite.h"

#include <domus/sqlite.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* protocols/sqlite: files that cannot be opened, are no databases, are locked, are read-only, or
 * have no room; and the permissions of a file that was made. */

static void write_text_to_file(const char *path, const char *text, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, size), (ssize_t)size);
    (void)close(fd);
}

DOMT_TEST(queries_fail_if_file_cannot_be_opened)
{
    static char garbage[8192];
    domt_place place;
    domt_desk desk;

    /* the directory of the database's file does not exist */
    domt_desk_open(&desk, &domus_sqlite_driver, "sqlite:/nowhere/at/all.db", NULL);
    ck_assert_int_eq(domt_desk_run_text(&desk, desk.sql, "SELECT 1", NULL, 0), -ENOTCONN);
    ck_assert_str_ne(desk.payload.error.message, "");
    ck_assert_int_eq(domt_desk_run_text(&desk, desk.sql, "CREATE TABLE a (b)", NULL, 0), -ENOTCONN);
    ck_assert_uint_eq(domt_desk_database_status(&desk).connections, 0);
    ck_assert_uint_ge(domt_desk_database_status(&desk).failures, 2);
    domt_desk_close(&desk);

    /* The file does not exist, and the url says that it is not made. */
    domt_place_make_directory_and_url(&place, "?mode=rw");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    ck_assert_int_eq(domt_desk_run_text(&desk, desk.sql, "SELECT 1", NULL, 0), -ENOTCONN);
    ck_assert_int_ne(access(place.path, F_OK), 0);
    /* The file is no database; when a database is put in its place, that is opened. */
    memset(garbage, 'x', sizeof garbage);
    write_text_to_file(place.path, garbage, sizeof garbage);
    ck_assert_int_eq(domt_desk_run_text(&desk, desk.sql, "SELECT 1", NULL, 0), -EIO);
    ck_assert_str_eq(domt_desk_sqlstate(&desk), "XX001");
    write_text_to_file(place.path, "", 0);
    domt_desk_query_must_return(&desk, desk.sql, "SELECT 1", "1");
    domt_desk_close(&desk);
    domt_place_remove_directory(&place);
}

DOMT_TEST(created_file_is_only_for_its_owner)
{
    struct stat status;
    domt_place place;
    domt_desk desk;

    (void)umask(0);
    domt_place_make_directory_and_url(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    domt_desk_must_succeed(&desk, desk.sql, "CREATE TABLE a (b)");
    ck_assert_int_eq(stat(place.path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    domt_desk_close(&desk);
    /* SQLite has copied the WAL into the file and removed it. */
    ck_assert_int_eq(unlink(place.path), 0);
    ck_assert_int_eq(rmdir(place.directory), 0);
}

DOMT_TEST(read_only_file_is_not_written)
{
    domt_place place;
    domt_desk desk;
    domus_sql one;

    domt_place_make_directory_and_url(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    domt_desk_must_succeed(&desk, desk.sql, "CREATE TABLE a (b)");
    domt_desk_close(&desk);
    (void)snprintf(place.url, sizeof place.url, "sqlite:%s?mode=ro", place.path);
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    domt_desk_query_must_return(&desk, desk.sql, "SELECT count(*) FROM a", "0");
    ck_assert_int_eq(domt_desk_run_text(&desk, desk.sql, "INSERT INTO a VALUES (1)", NULL, 0),
                     -EROFS);
    ck_assert_int_eq(domt_desk_run_script(&desk, desk.sql, "INSERT INTO a VALUES (1)"), -EROFS);
    ck_assert_int_eq(domt_desk_begin_transaction(&desk, false, &one), 0);
    ck_assert_int_eq(domt_desk_run_text(&desk, one, "INSERT INTO a VALUES (1)", NULL, 0), -EROFS);
    ck_assert_int_eq(domt_desk_end_transaction(&desk, one, false), 0);
    domt_desk_close(&desk);
    domt_place_remove_directory(&place);
}

DOMT_TEST(lock_of_other_program_is_awaited_up_to_timeout)
{
    domt_place place;
    domt_desk desk;
    sqlite3 *other;

    domt_place_make_directory_and_url(&place, "?busy_timeout=100");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    domt_desk_must_succeed(&desk, desk.sql, "CREATE TABLE a (b)");
    ck_assert_int_eq(sqlite3_open(place.path, &other), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    uint64_t begun = domt_monotonic_ns();
    ck_assert_int_eq(domt_desk_run_text(&desk, desk.sql, "INSERT INTO a VALUES (1)", NULL, 0),
                     -EAGAIN);
    ck_assert_uint_ge(domt_monotonic_ns() - begun, UINT64_C(100000000));
    ck_assert_str_eq(domt_desk_sqlstate(&desk), "55P03");
    /* reading works while another program has the lock for writing */
    domt_desk_query_must_return(&desk, desk.sql, "SELECT count(*) FROM a", "0");
    ck_assert_int_eq(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    domt_desk_must_succeed(&desk, desk.sql, "INSERT INTO a VALUES (1)");
    (void)sqlite3_close(other);
    domt_desk_close(&desk);
    domt_place_remove_directory(&place);
}

/* Mount a file system of 1 MiB for this process alone. Returns whether the process may do that. */
static bool mount_small_file_system(const char *directory)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", directory, "tmpfs", 0, "size=1m") == 0;
}

DOMT_TEST(full_disk_fails_writes_and_loses_no_rows)
{
    domt_place place;
    domt_desk desk;
    int error = 0;
    int64_t kept, found;

    domt_place_make_directory_and_url(&place, "");
    if (!mount_small_file_system(place.directory)) { /* only root may mount a small file system */
        domt_place_remove_directory(&place);
        return;
    }
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    domt_desk_must_succeed(&desk, desk.sql, "CREATE TABLE a (b)");
    for (kept = 0; kept < 1000 && error == 0; kept++)
        error = domt_desk_run_text(&desk, desk.sql, "INSERT INTO a VALUES (randomblob(10000))",
                                   NULL, 0);
    ck_assert_int_eq(error, -ENOSPC);
    ck_assert_str_eq(domt_desk_sqlstate(&desk), "53100");
    domt_desk_must_succeed(&desk, desk.sql, "SELECT count(*) FROM a");
    ck_assert_int_eq(domus_sql_get_int(&desk.payload.result, 0, 0, &found), 0);
    ck_assert_int_eq(found, kept - 1);
    domt_desk_close(&desk);
    ck_assert_int_eq(umount(place.directory), 0);
    ck_assert_int_eq(rmdir(place.directory), 0);
}

DOMT_TEST(unused_connections_are_closed)
{
    domus_sql_options options = {.connections_min = 1, .idle_ns = UINT64_C(50000000)};
    domt_place place;
    domt_desk desk;

    domt_place_make_directory_and_url(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, &options);
    domt_desk_must_succeed(&desk, desk.sql, "CREATE TABLE a (b)");
    domt_desk_query_must_return(&desk, desk.sql, "SELECT count(*) FROM a", "0");
    ck_assert_uint_eq(domt_desk_database_status(&desk).connects, 2);
    while (domt_desk_database_status(&desk).connections != 1)
        domt_sleep_ms(1);
    domt_sleep_ms(150); /* the last connection stays open, although it is not used */
    ck_assert_uint_eq(domt_desk_database_status(&desk).connections, 1);
    domt_desk_must_succeed(&desk, desk.sql, "INSERT INTO a VALUES (1)");
    domt_desk_query_must_return(&desk, desk.sql, "SELECT count(*) FROM a", "1");
    /* One of the two connections was closed, so the write needed a third one. */
    ck_assert_uint_ge(domt_desk_database_status(&desk).connects, 3);
    domt_desk_close(&desk);
    domt_place_remove_directory(&place);
}

/* --- url -------------------------------------------------------------------------------------- */

/* protocols/sqlite/url.c: which urls of databases are accepted, their meaning, and the errors of
 * others. */

static const struct right {
    const char *url;
    domi_sqlite_place place;
} right[] = {
    {"sqlite:todo.db", {.path = "todo.db", .busy_ms = 5000, .makes_file = true}},
    {"sqlite:a/b.db", {.path = "a/b.db", .busy_ms = 5000, .makes_file = true}},
    {"sqlite:/a/b.db", {.path = "/a/b.db", .busy_ms = 5000, .makes_file = true}},
    {"sqlite:///a/b.db", {.path = "/a/b.db", .busy_ms = 5000, .makes_file = true}},
    {"sqlite:a%20b%3f%25.db", {.path = "a b?%.db", .busy_ms = 5000, .makes_file = true}},
    {"sqlite:%41", {.path = "A", .busy_ms = 5000, .makes_file = true}},
    {"sqlite::memory:", {.path = "", .busy_ms = 5000, .is_memory = true}},
    {"sqlite:a?mode=rwc", {.path = "a", .busy_ms = 5000, .makes_file = true}},
    {"sqlite:a?mode=rw", {.path = "a", .busy_ms = 5000}},
    {"sqlite:a?mode=ro", {.path = "a", .busy_ms = 5000, .reads_only = true}},
    {"sqlite:a?synchronous=full", {.path = "a", .busy_ms = 5000, .makes_file = true}},
    {"sqlite:a?synchronous=normal&busy_timeout=0&mode=rw", {.path = "a", .is_normal = true}},
    {"sqlite:a?busy_timeout=3600000", {.path = "a", .busy_ms = 3600000, .makes_file = true}},
};

/* A wrong url of a database, and a part of its error. */
static const struct wrong {
    const char *url;
    const char *words;
} wrong[] = {
    {"sqlite:", "no file"},
    {"sqlite:?mode=ro", "no file"},
    {"sqlite:a/", "directory"},
    {"sqlite://host/a", "no host"},
    {"sqlite://a", "no host"},
    {"sqlite:a b", "%XX"},
    {"sqlite:a%", "two digits"},
    {"sqlite:a%4", "two digits"},
    {"sqlite:a%4?mode=ro", "two digits"},
    {"sqlite:a%zz", "two digits"},
    {"sqlite:a%00b", "%00"},
    {"sqlite:a#b", "fragment"},
    {"sqlite::memory:?mode=ro", "in memory"},
    {"sqlite::memory", "in memory"},
    {"sqlite:a?", "parameters are"},
    {"sqlite:a?mode", "parameters are"},
    {"sqlite:a?cache=shared", "parameters are"},
    {"sqlite:a?mode=rw&", "parameters are"},
    {"sqlite:a?mode=rw&mode=rw", "twice"},
    {"sqlite:a?mode=", "one of"},
    {"sqlite:a?mode=w", "one of"},
    {"sqlite:a?mode=rwcx", "one of"},
    {"sqlite:a?synchronous=off", "one of"},
    {"sqlite:a?busy_timeout=", "number"},
    {"sqlite:a?busy_timeout=-1", "number"},
    {"sqlite:a?busy_timeout=1s", "number"},
    {"sqlite:a?busy_timeout=3600001", "number"},
    {"sqlite:a?busy_timeout=18446744073709551617", "number"},
    {"sqlitex:a", "begins with"},
};

DOMT_TEST(right_urls_are_read_with_their_meaning)
{
    domi_sqlite_place place;
    char error[128];

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        const domi_sqlite_place *want = &right[i].place;
        ck_assert_msg(domi_sqlite_read_url(right[i].url, error, sizeof error, &place) == 0,
                      "%s: %s", right[i].url, error);
        ck_assert_str_eq(place.path, want->path);
        ck_assert_uint_eq(place.busy_ms, want->busy_ms);
        ck_assert_msg(place.is_memory == want->is_memory && place.makes_file == want->makes_file &&
                          place.reads_only == want->reads_only &&
                          place.is_normal == want->is_normal,
                      "%s", right[i].url);
    }
}

DOMT_TEST(wrong_urls_are_refused_with_reason)
{
    domi_sqlite_place place = {.path = "as it was"};
    char error[128];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(domi_sqlite_read_url(wrong[i].url, error, sizeof error, &place) == -EINVAL,
                      "%s", wrong[i].url);
        ck_assert_msg(strstr(error, wrong[i].words) != NULL, "%s: %s", wrong[i].url, error);
    }
    ck_assert_str_eq(place.path, "as it was");
}

DOMT_TEST(path_of_database_has_a_limit)
{
    static char url[PATH_MAX + 16];
    domi_sqlite_place place;
    char error[128];

    memset(url, 'a', sizeof url);
    memcpy(url, "sqlite:", 7);
    url[7 + PATH_MAX - 1] = '\0';
    ck_assert_int_eq(domi_sqlite_read_url(url, error, sizeof error, &place), 0);
    /* The path fits alone, but is too long with the current directory before it. */
    ck_assert_int_eq(domi_sqlite_make_path_absolute(&place), -ENAMETOOLONG);
    url[7 + PATH_MAX - 1] = 'a';
    url[7 + PATH_MAX] = '\0';
    ck_assert_int_eq(domi_sqlite_read_url(url, error, sizeof error, &place), -EINVAL);
}

DOMT_TEST(sqlite_driver_checks_urls)
{
    static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, NULL};
    domus_sql_options options = {.drivers = drivers};
    char error[128];

    ck_assert_int_eq(domus_sql_check("sqlite:a", &options, error, sizeof error), 0);
    ck_assert_int_eq(domus_sql_check("sqlite:a?x=y", &options, error, sizeof error), -EINVAL);
    ck_assert_ptr_nonnull(strstr(error, "parameters are"));
    ck_assert_str_eq(domus_sqlite_driver.name, "sqlite");
}

DOMT_SUITE(60)
