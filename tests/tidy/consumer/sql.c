/* A user's program with libdomus-sql: it builds the result of a query as a driver does, and returns
 * 0 if it reads the same values. */
#include <domus/sql_driver.h>

int main(void)
{
    domus_sql_builder builder = {0};
    domus_sql_result result;
    domus_sql_value seven = domus_sql_int(7);
    int64_t number = 0;

    domus_sql_build_columns(&builder, 1);
    domus_sql_build_name(&builder, "number");
    domus_sql_build_cell(&builder, &seven);
    if (domus_sql_build_end(&builder, &result) != 0)
        return 1;
    int column = domus_sql_column(&result, "number");
    if (column != 0 || domus_sql_get_int(&result, 0, 0, &number) != 0 || number != 7)
        return 2;
    domus_sql_result_type.release(&result);
    return 0;
}
