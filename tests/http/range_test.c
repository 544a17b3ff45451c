/* Ranges are read, cut to the body, and refused or passed over where they are none. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <domus/http_range.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Read ranges of a body of `length` bytes, and print them. */
static const char *read_ranges(const char *text, uint64_t length)
{
    static char printed[256];
    domus_http_range ranges[3];
    domus_slice value = domt_http_slice(text);
    int count = domus_http_read_range(value, length, ranges, 3);
    size_t size = (size_t)snprintf(printed, sizeof printed, "%d", count);

    for (int i = 0; i < count; i++)
        size += (size_t)snprintf(printed + size, sizeof printed - size, " %llu-%llu",
                                 (unsigned long long)ranges[i].first,
                                 (unsigned long long)ranges[i].last);
    domus_slice_free(value);
    return printed;
}

DOMT_TEST(ranges_are_read)
{
    ck_assert_str_eq(read_ranges("bytes=0-9", 100), "1 0-9");
    ck_assert_str_eq(read_ranges("Bytes=0-0", 1), "1 0-0");
    ck_assert_str_eq(read_ranges("bytes=90-", 100), "1 90-99");
    ck_assert_str_eq(read_ranges("bytes=-10", 100), "1 90-99");
    ck_assert_str_eq(read_ranges("bytes=-1000", 100), "1 0-99");
    ck_assert_str_eq(read_ranges("bytes=99-1000", 100), "1 99-99");
    ck_assert_str_eq(read_ranges("bytes=0-99999999999999999999999", 100), "1 0-99");
    ck_assert_str_eq(read_ranges("bytes=20-29, 0-9 ,\t-5", 100), "3 20-29 0-9 95-99");
    ck_assert_str_eq(read_ranges("bytes=200-, 5-6", 100), "1 5-6");
    ck_assert_str_eq(read_ranges("bytes=,1-2,, 5-6, ,", 100), "2 1-2 5-6");
    ck_assert_str_eq(read_ranges("bytes=200-,", 100), "-34");
}

DOMT_TEST(ranges_beyond_the_body_are_refused)
{
    ck_assert_int_eq(-ERANGE, -34);
    ck_assert_str_eq(read_ranges("bytes=100-", 100), "-34");
    ck_assert_str_eq(read_ranges("bytes=100-200, 300-", 100), "-34");
    ck_assert_str_eq(read_ranges("bytes=-0", 100), "-34");
    ck_assert_str_eq(read_ranges("bytes=0-", 0), "-34");
    ck_assert_str_eq(read_ranges("bytes=-5", 0), "-34");
    ck_assert_str_eq(read_ranges("bytes=99999999999999999999999-", 100), "-34");
}

DOMT_TEST(other_texts_are_passed_over)
{
    static const char *const texts[] = {"",
                                        "bytes",
                                        "bytes=",
                                        "bytes= ",
                                        "bytes=-",
                                        "bytes=a-b",
                                        "bytes=1",
                                        "bytes=1-2-3",
                                        "bytes=--1",
                                        "bytes=+1-2",
                                        "bytes=0x1-2",
                                        "lines=0-9",
                                        "bytes 0-9",
                                        "bytes=5-4",
                                        "bytes=,, ,",
                                        "bytes=1 -2",
                                        "bytes=1-2;3",
                                        "bytes=0-1,a",
                                        "bytes=0-9,5-6",
                                        "bytes=0-,-1",
                                        "bytes=0-0,2-2,4-4,6-6"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(strcmp(read_ranges(texts[i], 100), "0") == 0, "%s", texts[i]);
}

DOMT_TEST(fields_of_ranges_are_added)
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

DOMT_SUITE(10)
