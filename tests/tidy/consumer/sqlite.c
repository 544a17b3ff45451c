/* A user's program with libdomus-sqlite: it checks urls by the driver, and returns 0 if the right
 * one is accepted and the wrong one refused. */
#include <domus/sqlite.h>

#include <errno.h>

int main(void)
{
    static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, NULL};
    domus_sql_options options = {.drivers = drivers};
    char error[256];

    if (domus_sqlite_version()[0] != '3')
        return 1;
    if (domus_sql_check("sqlite:a.db?mode=rw", &options, error, sizeof error) != 0)
        return 2;
    return domus_sql_check("sqlite:a.db?mode=w", &options, error, sizeof error) == -EINVAL ? 0 : 3;
}
