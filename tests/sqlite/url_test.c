/* protocols/sqlite/url.c: which urls are accepted, their meaning, and the errors of others. */
#include "protocols/sqlite/place.h"
#include "tests/support/suite.h"

#include <domus/sqlite.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

/* A wrong url, and a part of its error. */
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

DOMT_TEST(right_urls_have_their_meaning)
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

DOMT_TEST(wrong_urls_are_refused_with_words)
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

DOMT_TEST(path_at_its_limit)
{
    static char url[PATH_MAX + 16];
    domi_sqlite_place place;
    char error[128];

    memset(url, 'a', sizeof url);
    memcpy(url, "sqlite:", 7);
    url[7 + PATH_MAX - 1] = '\0';
    ck_assert_int_eq(domi_sqlite_read_url(url, error, sizeof error, &place), 0);
    /* the path is too long with its directory */
    ck_assert_int_eq(domi_sqlite_make_path_absolute(&place), -ENAMETOOLONG);
    url[7 + PATH_MAX - 1] = 'a';
    url[7 + PATH_MAX] = '\0';
    ck_assert_int_eq(domi_sqlite_read_url(url, error, sizeof error, &place), -EINVAL);
}

DOMT_TEST(driver_checks_urls)
{
    static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, NULL};
    domus_sql_options options = {.drivers = drivers};
    char error[128];

    ck_assert_int_eq(domus_sql_check("sqlite:a", &options, error, sizeof error), 0);
    ck_assert_int_eq(domus_sql_check("sqlite:a?x=y", &options, error, sizeof error), -EINVAL);
    ck_assert_ptr_nonnull(strstr(error, "parameters are"));
    ck_assert_str_eq(domus_sqlite_driver.name, "sqlite");
}

DOMT_SUITE(20)
