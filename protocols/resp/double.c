/* Reads and writes doubles (double.h). printf(3) and strtod(3) use the locale of the thread, which
 * is set to "C" for them. In the C library this locale is a constant, so it is neither made nor
 * freed, and setting it costs a store. */
#include "protocols/resp/double.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_LEAST 15
#define DIGITS_MOST  17

/* The locale of the thread before it was set to "C". If "C" could not be made, `made` is
 * (locale_t)0, and nothing was set. */
typedef struct locale_before {
    locale_t made;
    locale_t before;
} locale_before;

static locale_before use_c_locale_for_points(void)
{
    locale_before locale = {.made = newlocale(LC_ALL_MASK, "C", (locale_t)0)};

    if (locale.made != (locale_t)0)
        locale.before = uselocale(locale.made);
    return locale;
}

static void end_use_of_c_locale(locale_before locale)
{
    if (locale.made == (locale_t)0)
        return;
    (void)uselocale(locale.before);
    freelocale(locale.made);
}

double domi_resp_read_double(const char *text, size_t size)
{
    char copy[64];

    memcpy(copy, text, size);
    copy[size] = '\0';
    locale_before locale = use_c_locale_for_points();
    double value = strtod(copy, NULL);
    end_use_of_c_locale(locale);
    return value;
}

static size_t write_double_with_digits(char text[DOMI_RESP_DOUBLE_MAX], double value)
{
    int size = 0;

    for (int digits = DIGITS_LEAST; digits <= DIGITS_MOST; digits++) {
        size = snprintf(text, DOMI_RESP_DOUBLE_MAX, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return (size_t)size;
}

size_t domi_resp_write_double(char text[DOMI_RESP_DOUBLE_MAX], double value)
{
    if (isnan(value)) {
        memcpy(text, "nan", 4);
        return 3;
    }
    locale_before locale = use_c_locale_for_points();
    size_t size = write_double_with_digits(text, value);
    end_use_of_c_locale(locale);
    return size;
}
