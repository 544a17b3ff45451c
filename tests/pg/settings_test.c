/* Urls: every url that libpq accepts is accepted, and the error of a wrong url contains no
 * password. */
#include "tests/pg/user.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

static const struct {
    const char *url;
    int result;
} rows[] = {
    {"postgresql://", 0},
    {"postgres://user@host:5433/db?sslmode=require", 0},
    {"postgresql://a:secret@one:1,two:2/db?target_session_attrs=any", 0},
    {"postgresql:///db?host=/run/postgresql", 0},
    {"postgresql:db", -EINVAL},
    {"postgresql://a:secret@host/db?wrong=1", -EINVAL},
    {"postgresql://a:secret@host/db?password=secret&=", -EINVAL},
    {"postgresql://a:secret@[::1/db", -EINVAL},
    {"postgresql://a:sec%zzret@host/db", -EINVAL},
    {"postgresql://a:secret@host:x@y/db?secret", -EINVAL},
};

DOMT_TEST(urls_are_checked_and_tell_no_secret)
{
    static const domus_sql_driver *const drivers[] = {&domus_pg_driver, NULL};
    static const domus_sql_options options = {.drivers = drivers};
    char error[200];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memset(error, 0, sizeof error);
        int result = domus_sql_check(rows[i].url, &options, error, sizeof error);
        ck_assert_msg(result == rows[i].result, "%s: %d", rows[i].url, result);
        ck_assert_msg((error[0] != '\0') == (result != 0), "%s: %s", rows[i].url, error);
        ck_assert_msg(strstr(error, "sec") == NULL, "%s", error);
    }
}

DOMT_SUITE(20)
