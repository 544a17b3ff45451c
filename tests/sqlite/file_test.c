/* protocols/sqlite: files that cannot be opened, are no databases, are locked, are read-only, or
 * have no room; and the permissions of a file that was made. */
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

static void write_file(const char *path, const char *text, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, size), (ssize_t)size);
    (void)close(fd);
}

DOMT_TEST(file_that_cannot_be_opened_is_the_error_of_queries)
{
    static char garbage[8192];
    domt_place place;
    domt_desk desk;

    /* the directory does not exist */
    domt_desk_open(&desk, &domus_sqlite_driver, "sqlite:/nowhere/at/all.db", NULL);
    ck_assert_int_eq(domt_desk_run(&desk, desk.sql, "SELECT 1", NULL, 0), -ENOTCONN);
    ck_assert_str_ne(desk.payload.error.message, "");
    ck_assert_int_eq(domt_desk_run(&desk, desk.sql, "CREATE TABLE a (b)", NULL, 0), -ENOTCONN);
    ck_assert_uint_eq(domt_desk_look(&desk).connections, 0);
    ck_assert_uint_ge(domt_desk_look(&desk).failures, 2);
    domt_desk_close(&desk);

    /* the file does not exist, and the url says that none is made */
    domt_place_make(&place, "?mode=rw");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    ck_assert_int_eq(domt_desk_run(&desk, desk.sql, "SELECT 1", NULL, 0), -ENOTCONN);
    ck_assert_int_ne(access(place.path, F_OK), 0);
    /* the file is no database; a database that is put in its place is opened */
    memset(garbage, 'x', sizeof garbage);
    write_file(place.path, garbage, sizeof garbage);
    ck_assert_int_eq(domt_desk_run(&desk, desk.sql, "SELECT 1", NULL, 0), -EIO);
    ck_assert_str_eq(domt_desk_state(&desk), "XX001");
    write_file(place.path, "", 0);
    domt_desk_gives(&desk, desk.sql, "SELECT 1", "1");
    domt_desk_close(&desk);
    domt_place_remove(&place);
}

DOMT_TEST(file_that_is_made_is_for_its_owner)
{
    struct stat status;
    domt_place place;
    domt_desk desk;

    (void)umask(0);
    domt_place_make(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    domt_desk_must(&desk, desk.sql, "CREATE TABLE a (b)");
    ck_assert_int_eq(stat(place.path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    domt_desk_close(&desk);
    /* the WAL was copied into the file and removed */
    ck_assert_int_eq(unlink(place.path), 0);
    ck_assert_int_eq(rmdir(place.directory), 0);
}

DOMT_TEST(file_that_may_be_read_alone_is_not_written)
{
    domt_place place;
    domt_desk desk;
    domus_sql one;

    domt_place_make(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    domt_desk_must(&desk, desk.sql, "CREATE TABLE a (b)");
    domt_desk_close(&desk);
    (void)snprintf(place.url, sizeof place.url, "sqlite:%s?mode=ro", place.path);
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    domt_desk_gives(&desk, desk.sql, "SELECT count(*) FROM a", "0");
    ck_assert_int_eq(domt_desk_run(&desk, desk.sql, "INSERT INTO a VALUES (1)", NULL, 0), -EROFS);
    ck_assert_int_eq(domt_desk_script(&desk, desk.sql, "INSERT INTO a VALUES (1)"), -EROFS);
    ck_assert_int_eq(domt_desk_begin(&desk, false, &one), 0);
    ck_assert_int_eq(domt_desk_run(&desk, one, "INSERT INTO a VALUES (1)", NULL, 0), -EROFS);
    ck_assert_int_eq(domt_desk_end(&desk, one, false), 0);
    domt_desk_close(&desk);
    domt_place_remove(&place);
}

DOMT_TEST(lock_of_another_program_is_waited_for_and_then_told)
{
    domt_place place;
    domt_desk desk;
    sqlite3 *other;

    domt_place_make(&place, "?busy_timeout=100");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    domt_desk_must(&desk, desk.sql, "CREATE TABLE a (b)");
    ck_assert_int_eq(sqlite3_open(place.path, &other), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    uint64_t begun = domt_monotonic_ns();
    ck_assert_int_eq(domt_desk_run(&desk, desk.sql, "INSERT INTO a VALUES (1)", NULL, 0), -EAGAIN);
    ck_assert_uint_ge(domt_monotonic_ns() - begun, UINT64_C(100000000));
    ck_assert_str_eq(domt_desk_state(&desk), "55P03");
    domt_desk_gives(&desk, desk.sql, "SELECT count(*) FROM a", "0"); /* reading still works */
    ck_assert_int_eq(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    domt_desk_must(&desk, desk.sql, "INSERT INTO a VALUES (1)");
    (void)sqlite3_close(other);
    domt_desk_close(&desk);
    domt_place_remove(&place);
}

/* Mount a file system of 1 MiB. Returns whether this process may do that. */
static bool mount_small(const char *directory)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", directory, "tmpfs", 0, "size=1m") == 0;
}

DOMT_TEST(full_disk_is_told_and_loses_nothing)
{
    domt_place place;
    domt_desk desk;
    int error = 0;
    int64_t kept, found;

    domt_place_make(&place, "");
    if (!mount_small(place.directory)) { /* only root may mount */
        domt_place_remove(&place);
        return;
    }
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, NULL);
    domt_desk_must(&desk, desk.sql, "CREATE TABLE a (b)");
    for (kept = 0; kept < 1000 && error == 0; kept++)
        error = domt_desk_run(&desk, desk.sql, "INSERT INTO a VALUES (randomblob(10000))", NULL, 0);
    ck_assert_int_eq(error, -ENOSPC);
    ck_assert_str_eq(domt_desk_state(&desk), "53100");
    domt_desk_must(&desk, desk.sql, "SELECT count(*) FROM a");
    ck_assert_int_eq(domus_sql_get_int(&desk.payload.result, 0, 0, &found), 0);
    ck_assert_int_eq(found, kept - 1);
    domt_desk_close(&desk);
    ck_assert_int_eq(umount(place.directory), 0);
    ck_assert_int_eq(rmdir(place.directory), 0);
}

DOMT_TEST(connections_that_are_not_used_are_closed)
{
    domus_sql_options options = {.connections_min = 1, .idle_ns = UINT64_C(50000000)};
    domt_place place;
    domt_desk desk;

    domt_place_make(&place, "");
    domt_desk_open(&desk, &domus_sqlite_driver, place.url, &options);
    domt_desk_must(&desk, desk.sql, "CREATE TABLE a (b)");
    domt_desk_gives(&desk, desk.sql, "SELECT count(*) FROM a", "0");
    ck_assert_uint_eq(domt_desk_look(&desk).connects, 2);
    while (domt_desk_look(&desk).connections != 1)
        domt_sleep_ms(1);
    domt_sleep_ms(150); /* the last connection stays open */
    ck_assert_uint_eq(domt_desk_look(&desk).connections, 1);
    domt_desk_must(&desk, desk.sql, "INSERT INTO a VALUES (1)");
    domt_desk_gives(&desk, desk.sql, "SELECT count(*) FROM a", "1");
    /* one of the two connections was closed */
    ck_assert_uint_ge(domt_desk_look(&desk).connects, 3);
    domt_desk_close(&desk);
    domt_place_remove(&place);
}

DOMT_SUITE(60)
