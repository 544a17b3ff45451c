/* Dates are written and read, whatever the time zone is. */
#include "tests/support/suite.h"

#include <domus/http_date.h>

#include <string.h>
#include <time.h>

static void hold(int64_t seconds, const char *expected)
{
    char text[DOMUS_HTTP_DATE_SIZE + 1];
    int64_t read;

    domus_http_date(seconds, text);
    ck_assert_str_eq(text, expected);
    ck_assert(domus_http_read_date(text, DOMUS_HTTP_DATE_SIZE, &read));
    ck_assert_int_eq(read, seconds);
}

DOMT_TEST(dates_are_written)
{
    char text[DOMUS_HTTP_DATE_SIZE + 1];

    hold(0, "Thu, 01 Jan 1970 00:00:00 GMT");
    hold(784111777, "Sun, 06 Nov 1994 08:49:37 GMT");
    hold(951782399, "Mon, 28 Feb 2000 23:59:59 GMT");
    hold(951782400, "Tue, 29 Feb 2000 00:00:00 GMT");
    hold(951868800, "Wed, 01 Mar 2000 00:00:00 GMT");
    hold(4107542400, "Mon, 01 Mar 2100 00:00:00 GMT");
    hold(253402300799, "Fri, 31 Dec 9999 23:59:59 GMT");
    domus_http_date(-1, text);
    ck_assert_str_eq(text, "Thu, 01 Jan 1970 00:00:00 GMT");
    domus_http_date(INT64_MAX, text);
    ck_assert_str_eq(text, "Fri, 31 Dec 9999 23:59:59 GMT");
}

DOMT_TEST(dates_are_those_of_the_c_library)
{
    char expected[64];
    char text[DOMUS_HTTP_DATE_SIZE + 1];

    for (int64_t seconds = 0; seconds < 253402300799; seconds += 86400 * 13 + 12345) {
        time_t at = (time_t)seconds;
        struct tm parts;
        (void)gmtime_r(&at, &parts);
        (void)strftime(expected, sizeof expected, "%a, %d %b %Y %H:%M:%S GMT", &parts);
        domus_http_date(seconds, text);
        ck_assert_str_eq(text, expected);
    }
}

DOMT_TEST(older_forms_are_read)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } rows[] = {
        {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
        {"Sun Nov  6 08:49:37 1994", 784111777},
        {"Sun Nov 16 08:49:37 1994", 784975777},
        {"Friday, 01-Jan-69 00:00:00 GMT", 3124224000},
        {"Thursday, 01-Jan-70 00:00:00 GMT", 0},
    };
    int64_t read;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert(domus_http_read_date(rows[i].text, strlen(rows[i].text), &read));
        ck_assert_int_eq(read, rows[i].seconds);
    }
}

DOMT_TEST(other_texts_are_no_dates)
{
    static const char *const texts[] = {"",
                                        "Sun",
                                        "0",
                                        "Sun, 06 Nov 1994 08:49:37",
                                        "Sun, 06 Nov 1994 08:49:37 GMT ",
                                        "Sun, 06 Nov 1994 08:49:37 UTC",
                                        "Sun, 6 Nov 1994 08:49:37 GMT",
                                        "Sun,  6 Nov 1994 08:49:37 GMT",
                                        "Sun, 06 nov 1994 08:49:37 GMT",
                                        "Sun, 31 Nov 1994 08:49:37 GMT",
                                        "Sun, 00 Nov 1994 08:49:37 GMT",
                                        "Sun, 29 Feb 1999 08:49:37 GMT",
                                        "Sun, 06 Nov 1969 08:49:37 GMT",
                                        "Sun, 06 Nov 1994 24:00:00 GMT",
                                        "Sun, 06 Nov 1994 08:60:00 GMT",
                                        "Sun, 06 Nov 1994 08:00:61 GMT",
                                        "Son, 06 Nov 1994 08:49:37 GMT",
                                        "Sun, -6 Nov 1994 08:49:37 GMT",
                                        "Sunday, 06 Nov 1994 08:49:37 GMT"};
    int64_t read = 7;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(!domus_http_read_date(texts[i], strlen(texts[i]), &read), "%s", texts[i]);
    ck_assert_int_eq(read, 7);
}

DOMT_SUITE(20)
