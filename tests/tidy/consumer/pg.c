/* A user's program with libdomus-pg: it checks urls of databases, and returns 0 if a wrong one is
 * refused without showing its password. */
#include <domus/pg.h>

#include <string.h>

int main(void)
{
    static const domus_sql_driver *const drivers[] = {&domus_pg_driver, NULL};
    domus_sql_options options;
    char error[200] = "";

    memset(&options, 0, sizeof options);
    options.drivers = drivers;
    if (domus_sql_check("postgresql://shop@db.example/shop", &options, error, sizeof error) != 0)
        return 1;
    if (domus_sql_check("postgresql://shop:secret@db.example/shop?wrong=1", &options, error,
                        sizeof error) == 0)
        return 2;
    return error[0] != '\0' && strstr(error, "secret") == NULL ? 0 : 3;
}
