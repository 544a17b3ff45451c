/* Writes and reads real numbers as text in the locale "C", whatever locale the program has: if the
 * locale had a comma for the point, a database would read another value or none. */
#include "protocols/sql/sql.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* Set the locale "C" on this thread. It is a constant of the C library, so this takes no memory.
 * Returns the locale that was set before. */
static locale_t enter_c_locale(void)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);

    return plain != (locale_t)0 ? uselocale(plain) : (locale_t)0;
}

static void leave_c_locale(locale_t before)
{
    if (before != (locale_t)0)
        (void)uselocale(before);
}

void domus_sql_real_write(double real, char ret_text[DOMUS_SQL_REAL_SIZE])
{
    locale_t before = enter_c_locale();

    /* With 15 digits a real number gets no digit that was not meant, and 17 digits always identify
     * it. */
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(ret_text, DOMUS_SQL_REAL_SIZE, "%.*g", digits, real);
        if (strtod(ret_text, NULL) == real)
            break;
    }
    if (real != real) /* a NaN is written without its sign, which means nothing */
        snprintf(ret_text, DOMUS_SQL_REAL_SIZE, "nan");
    leave_c_locale(before);
}

double domus_sql_real_read(const char *text, char **ret_end)
{
    locale_t before = enter_c_locale();
    double real = strtod(text, ret_end);

    leave_c_locale(before);
    return real;
}
