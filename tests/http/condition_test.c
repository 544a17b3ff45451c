/* Fields of a request that decide which answer it gets: dates, conditions, ranges, and media
 * types. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <domus/http_condition.h>
#include <domus/http_date.h>
#include <domus/http_media.h>
#include <domus/http_range.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NOV_5 "Sat, 05 Nov 1994 08:49:37 GMT"
#define NOV_6 "Sun, 06 Nov 1994 08:49:37 GMT"
#define NOV_7 "Mon, 07 Nov 1994 08:49:37 GMT"

static const domus_http_version version = {
    .etag = "\"a\"", .modified = 784111777, .is_there = true};
static const domus_http_version weak = {.etag = "W/\"a\"", .is_there = true};
static const domus_http_version none = {.is_there = false};

static unsigned status_of_condition(domus_http_method method, const char *fields,
                                    const domus_http_version *of)
{
    domus_http_request request = {.method = (uint8_t)method, .fields = domt_slice_of_text(fields)};
    unsigned status = domus_http_check_conditions(&request, of);

    domus_slice_free(request.fields);
    return status;
}

DOMT_TEST(condition_tells_that_the_client_has_this_version)
{
    static const char *const has[] = {"If-None-Match: \"a\"\r\n",
                                      "If-None-Match: W/\"a\"\r\n",
                                      "If-None-Match: \"b\", W/\"c\" ,\"a\"\r\n",
                                      "If-None-Match: *\r\n",
                                      "If-None-Match: \"b\"\r\nIf-None-Match: \"a\"\r\n",
                                      "If-Modified-Since: " NOV_6 "\r\n",
                                      "If-Modified-Since: " NOV_7 "\r\n"};
    static const char *const has_not[] = {
        "",
        "If-None-Match: \"b\"\r\n",
        "If-None-Match: a\r\n",
        "If-None-Match: \"a\r\n",
        "If-None-Match: \"aa\"\r\n",
        "If-None-Match:\r\n",
        "If-Modified-Since: " NOV_5 "\r\n",
        "If-Modified-Since: yesterday\r\n",
        /* If-None-Match decides by the tag, and the date does not count */
        "If-Modified-Since: " NOV_7 "\r\nIf-None-Match: \"b\"\r\n",
    };

    for (size_t i = 0; i < sizeof has / sizeof has[0]; i++) {
        ck_assert_uint_eq(status_of_condition(DOMUS_HTTP_GET, has[i], &version), 304);
        ck_assert_uint_eq(status_of_condition(DOMUS_HTTP_HEAD, has[i], &version), 304);
        ck_assert_uint_eq(status_of_condition(DOMUS_HTTP_GET, has[i], &none), 0);
        ck_assert_uint_eq(status_of_condition(DOMUS_HTTP_PUT, has[i], &version), i < 5 ? 412 : 0);
    }
    for (size_t i = 0; i < sizeof has_not / sizeof has_not[0]; i++)
        ck_assert_uint_eq(status_of_condition(DOMUS_HTTP_GET, has_not[i], &version), 0);
    ck_assert_uint_eq(status_of_condition(DOMUS_HTTP_GET, "If-None-Match: \"a\"\r\n", &weak), 304);
    ck_assert_uint_eq(
        status_of_condition(DOMUS_HTTP_GET, "If-Modified-Since: " NOV_7 "\r\n", &weak), 0);
}

DOMT_TEST(condition_for_another_version_gets_412)
{
    ck_assert_uint_eq(status_of_condition(DOMUS_HTTP_PUT, "If-Match: \"a\"\r\n", &version), 0);
    ck_assert_uint_eq(status_of_condition(DOMUS_HTTP_PUT, "If-Match: *\r\n", &version), 0);
    ck_assert_uint_eq(status_of_condition(DOMUS_HTTP_PUT, "If-Match: *\r\n", &none), 412);
    ck_assert_uint_eq(status_of_condition(DOMUS_HTTP_PUT, "If-Match: \"b\"\r\n", &version), 412);
    ck_assert_uint_eq(status_of_condition(DOMUS_HTTP_PUT, "If-Match: W/\"a\"\r\n", &version), 412);
    ck_assert_uint_eq(status_of_condition(DOMUS_HTTP_PUT, "If-Match: W/\"a\"\r\n", &weak), 412);
    ck_assert_uint_eq(
        status_of_condition(DOMUS_HTTP_PUT, "If-Unmodified-Since: " NOV_5 "\r\n", &version), 412);
    ck_assert_uint_eq(
        status_of_condition(DOMUS_HTTP_PUT, "If-Unmodified-Since: " NOV_6 "\r\n", &version), 0);
    ck_assert_uint_eq(status_of_condition(DOMUS_HTTP_PUT, "If-None-Match: *\r\n", &none), 0);
    ck_assert_uint_eq(status_of_condition(DOMUS_HTTP_PUT,
                                          "If-Unmodified-Since: " NOV_5 "\r\nIf-Match: \"a\"\r\n",
                                          &version),
                      0);
}

static bool may_use_range(domus_http_method method, const char *fields,
                          const domus_http_version *of)
{
    domus_http_request request = {.method = (uint8_t)method, .fields = domt_slice_of_text(fields)};
    bool result = domus_http_may_range(&request, of);

    domus_slice_free(request.fields);
    return result;
}

DOMT_TEST(range_is_used_only_for_the_same_version)
{
    ck_assert(may_use_range(DOMUS_HTTP_GET, "", &version));
    ck_assert(!may_use_range(DOMUS_HTTP_HEAD, "", &version));
    ck_assert(may_use_range(DOMUS_HTTP_GET, "If-Range: \"a\"\r\n", &version));
    ck_assert(!may_use_range(DOMUS_HTTP_GET, "If-Range: \"b\"\r\n", &version));
    ck_assert(!may_use_range(DOMUS_HTTP_GET, "If-Range: W/\"a\"\r\n", &weak));
    ck_assert(!may_use_range(DOMUS_HTTP_GET, "If-Range: *\r\n", &version));
    ck_assert(may_use_range(DOMUS_HTTP_GET, "If-Range: " NOV_6 "\r\n", &version));
    ck_assert(!may_use_range(DOMUS_HTTP_GET, "If-Range: " NOV_7 "\r\n", &version));
    ck_assert(!may_use_range(DOMUS_HTTP_GET, "If-Range: " NOV_6 "\r\n", &weak));
}

static void check_date_is_written_and_read_back(int64_t seconds, const char *expected)
{
    char text[DOMUS_HTTP_DATE_SIZE + 1];
    int64_t read;

    domus_http_date(seconds, text);
    ck_assert_str_eq(text, expected);
    ck_assert(domus_http_read_date(text, DOMUS_HTTP_DATE_SIZE, &read));
    ck_assert_int_eq(read, seconds);
}

DOMT_TEST(dates_are_written_in_the_form_of_http)
{
    char text[DOMUS_HTTP_DATE_SIZE + 1];

    check_date_is_written_and_read_back(0, "Thu, 01 Jan 1970 00:00:00 GMT");
    check_date_is_written_and_read_back(784111777, "Sun, 06 Nov 1994 08:49:37 GMT");
    check_date_is_written_and_read_back(951782399, "Mon, 28 Feb 2000 23:59:59 GMT");
    check_date_is_written_and_read_back(951782400, "Tue, 29 Feb 2000 00:00:00 GMT");
    check_date_is_written_and_read_back(951868800, "Wed, 01 Mar 2000 00:00:00 GMT");
    check_date_is_written_and_read_back(4107542400, "Mon, 01 Mar 2100 00:00:00 GMT");
    check_date_is_written_and_read_back(253402300799, "Fri, 31 Dec 9999 23:59:59 GMT");
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

DOMT_TEST(older_forms_of_dates_are_read)
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
    static const char *const texts[] = {
        "Sun, 06 Nov 1994 08:49:37",     "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",  "Sun, 06 Nov 1994 08:00:61 GMT",
        "Sun, 06 Nov 1994 08:49:37 UTC", "Son, 06 Nov 1994 08:49:37 GMT",
        "Sun,  6 Nov 1994 08:49:37 GMT", "Sun, -6 Nov 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 31 Nov 1994 08:49:37 GMT", "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT", "",
        "Sun, 29 Feb 1999 08:49:37 GMT", "0",
        "Sun, 06 Nov 1969 08:49:37 GMT", "Sun",
        "Sun, 06 Nov 1994 24:00:00 GMT"};
    int64_t read = 7;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(!domus_http_read_date(texts[i], strlen(texts[i]), &read), "%s", texts[i]);
    ck_assert_int_eq(read, 7);
}

/* Read the ranges that a request asks for of a body of `length` bytes, and print them. */
static const char *ranges_as_text(const char *text, uint64_t length)
{
    static char printed[256];
    domus_http_range ranges[3];
    domus_slice value = domt_slice_of_text(text);
    int count = domus_http_read_range(value, length, ranges, 3);
    size_t size = (size_t)snprintf(printed, sizeof printed, "%d", count);

    for (int i = 0; i < count; i++)
        size += (size_t)snprintf(printed + size, sizeof printed - size, " %llu-%llu",
                                 (unsigned long long)ranges[i].first,
                                 (unsigned long long)ranges[i].last);
    domus_slice_free(value);
    return printed;
}

DOMT_TEST(ranges_of_bytes_are_read)
{
    ck_assert_str_eq(ranges_as_text("bytes=0-9", 100), "1 0-9");
    ck_assert_str_eq(ranges_as_text("Bytes=0-0", 1), "1 0-0");
    ck_assert_str_eq(ranges_as_text("bytes=90-", 100), "1 90-99");
    ck_assert_str_eq(ranges_as_text("bytes=-10", 100), "1 90-99");
    ck_assert_str_eq(ranges_as_text("bytes=-1000", 100), "1 0-99");
    ck_assert_str_eq(ranges_as_text("bytes=99-1000", 100), "1 99-99");
    ck_assert_str_eq(ranges_as_text("bytes=0-99999999999999999999999", 100), "1 0-99");
    ck_assert_str_eq(ranges_as_text("bytes=20-29, 0-9 ,\t-5", 100), "3 20-29 0-9 95-99");
    ck_assert_str_eq(ranges_as_text("bytes=200-, 5-6", 100), "1 5-6");
    ck_assert_str_eq(ranges_as_text("bytes=,1-2,, 5-6, ,", 100), "2 1-2 5-6");
    ck_assert_str_eq(ranges_as_text("bytes=200-,", 100), "-34");
}

DOMT_TEST(ranges_beyond_the_body_are_refused)
{
    ck_assert_int_eq(-ERANGE, -34);
    ck_assert_str_eq(ranges_as_text("bytes=100-", 100), "-34");
    ck_assert_str_eq(ranges_as_text("bytes=100-200, 300-", 100), "-34");
    ck_assert_str_eq(ranges_as_text("bytes=-0", 100), "-34");
    ck_assert_str_eq(ranges_as_text("bytes=0-", 0), "-34");
    ck_assert_str_eq(ranges_as_text("bytes=-5", 0), "-34");
    ck_assert_str_eq(ranges_as_text("bytes=99999999999999999999999-", 100), "-34");
}

DOMT_TEST(texts_that_are_no_ranges_are_ignored)
{
    static const char *const texts[] = {
        "",          "bytes=--1",  "bytes=1-2-3",          "bytes",   "lines=0-9",  "bytes=0x1-2",
        "bytes=",    "bytes 0-9",  "bytes=1-2;3",          "bytes= ", "bytes=5-4",  "bytes=0-1,a",
        "bytes=-",   "bytes=+1-2", "bytes=0-,-1",          "bytes=1", "bytes=,, ,", "bytes=0-9,5-6",
        "bytes=a-b", "bytes=1 -2", "bytes=0-0,2-2,4-4,6-6"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(strcmp(ranges_as_text(texts[i], 100), "0") == 0, "%s", texts[i]);
}

DOMT_TEST(content_range_fields_are_added)
{
    domus_appender fields = {0};
    domus_slice made;

    ck_assert_int_eq(domus_http_add_content_range(&fields, (domus_http_range){5, 9}, 100), 0);
    ck_assert_int_eq(domus_http_add_unsatisfied(&fields, 100), 0);
    ck_assert_int_eq(domus_append_end(&fields, &made), 0);
    ck_assert(domus_slice_equals(
        made, "Content-Range: bytes 5-9/100\r\nContent-Range: bytes */100\r\n", 58));
    domus_slice_free(made);
}

DOMT_TEST(files_have_media_types)
{
    ck_assert_str_eq(domus_http_media_of("/a/b.html"), "text/html; charset=utf-8");
    ck_assert_str_eq(domus_http_media_of("a.tar.GZ"), "application/gzip");
    ck_assert_str_eq(domus_http_media_of("a.svg"), "image/svg+xml");
    ck_assert_str_eq(domus_http_media_of("a"), "application/octet-stream");
    ck_assert_str_eq(domus_http_media_of("a."), "application/octet-stream");
    ck_assert_str_eq(domus_http_media_of(""), "application/octet-stream");
    ck_assert_str_eq(domus_http_media_of("html"), "application/octet-stream");
}

static bool has_media_type(const char *value, const char *type)
{
    domus_slice slice = domt_slice_of_text(value);
    bool result = domus_http_is_media(slice, type);

    domus_slice_free(slice);
    return result;
}

DOMT_TEST(parameters_do_not_change_a_type)
{
    ck_assert(has_media_type("application/json", "application/json"));
    ck_assert(has_media_type("Application/JSON ; charset=utf-8", "application/json"));
    ck_assert(!has_media_type("application/json2", "application/json"));
    ck_assert(!has_media_type("", "application/json"));
    ck_assert(!has_media_type(";application/json", "application/json"));
}

DOMT_TEST(json_media_types_are_known_by_name_and_by_ending)
{
    static const struct {
        const char *value;
        bool is_json;
    } values[] = {{"text/plain", false},          {"application/a+JSON ;q=1", true},
                  {"application/json", true},     {"text/plain;a=application/json", false},
                  {"application/a+json", true},   {"Application/JSON; charset=utf-8", true},
                  {"application/jsonp", false},   {"", false},
                  {"application/a+json2", false}, {"+json", false}};

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        domus_slice slice = domt_slice_of_text(values[i].value);
        ck_assert_msg(domus_http_is_json(slice) == values[i].is_json, "%s", values[i].value);
        domus_slice_free(slice);
    }
}

static unsigned quality_of_accepted_type(const char *value, const char *type)
{
    domus_slice slice = domt_slice_of_text(value);
    unsigned result = domus_http_accepts(slice, type);

    domus_slice_free(slice);
    return result;
}

DOMT_TEST(most_precise_media_range_of_accept_counts)
{
    static const char list[] = "text/*;q=0.3, text/html;q=0.7, text/plain;level=1, */*;q=0.5";

    ck_assert_uint_eq(quality_of_accepted_type(list, "text/html"), 700);
    ck_assert_uint_eq(quality_of_accepted_type(list, "text/plain"), 1000);
    ck_assert_uint_eq(quality_of_accepted_type(list, "text/css"), 300);
    ck_assert_uint_eq(quality_of_accepted_type(list, "image/png"), 500);
    ck_assert_uint_eq(quality_of_accepted_type("", "image/png"), 1000);
    ck_assert_uint_eq(quality_of_accepted_type("text/html", "image/png"), 0);
    ck_assert_uint_eq(quality_of_accepted_type("gzip;q=0, *;q=0.001", "gzip"), 0);
    ck_assert_uint_eq(quality_of_accepted_type("gzip;q=0, *;q=0.001", "br"), 1);
    ck_assert_uint_eq(quality_of_accepted_type("gzip; Q=0.125", "gzip"), 125);
    ck_assert_uint_eq(quality_of_accepted_type("gzip;q=2", "gzip"), 1000);
    ck_assert_uint_eq(quality_of_accepted_type("gzip;q=-1", "gzip"), 0);
    ck_assert_uint_eq(quality_of_accepted_type("gzip;q=x", "gzip"), 0);
}

DOMT_SUITE(20)
