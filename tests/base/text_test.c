/* base/text.c: bytes that come from strangers are escaped before they are shown. */
#include "tests/support/suite.h"

#include <domus/text.h>

#include <errno.h>
#include <limits.h>
#include <string.h>

static void expect_escaped_text(const char *bytes, size_t length, const char *expected)
{
    char text[64];

    ck_assert_uint_eq(domus_text_escape(bytes, length, text, sizeof text), strlen(expected));
    ck_assert_str_eq(text, expected);
}

DOMT_TEST(all_but_printable_ascii_is_escaped)
{
    expect_escaped_text("", 0, "");
    expect_escaped_text(" az~", 4, " az~");
    expect_escaped_text("a\nb\rc\td\\e", 9, "a\\nb\\rc\\td\\\\e");
    expect_escaped_text("\0\x1f\x7f\x80\xff", 5, "\\x00\\x1f\\x7f\\x80\\xff");
    expect_escaped_text("\x1b[2J", 4, "\\x1b[2J");
    /* U+009B begins a control sequence of a terminal */
    expect_escaped_text("\xc2\x9b", 2, "\\xc2\\x9b");
    /* U+202E reverses the direction of the text behind it */
    expect_escaped_text("\xe2\x80\xae", 3, "\\xe2\\x80\\xae");
}

DOMT_TEST(every_byte_is_escaped_to_printable_ascii)
{
    for (int byte = 0; byte < 256; byte++) {
        const char one = (char)byte;
        char text[8];

        size_t length = domus_text_escape(&one, 1, text, sizeof text);
        ck_assert_uint_eq(length, strlen(text));
        ck_assert(length == 1 || (length == 2 && text[0] == '\\') ||
                  (length == 4 && text[0] == '\\' && text[1] == 'x'));
        ck_assert(length != 1 || (text[0] == one && one != '\\'));
        for (size_t i = 0; i < length; i++)
            ck_assert(text[i] >= ' ' && text[i] <= '~');
    }
}

DOMT_TEST(escaped_text_is_cut_between_escapes)
{
    char text[16] = "untouched";

    ck_assert_uint_eq(domus_text_escape("\n\n", 2, text, 0), 4);
    ck_assert_str_eq(text, "untouched");
    ck_assert_uint_eq(domus_text_escape("ab", 2, text, 1), 2);
    ck_assert_str_eq(text, "");
    ck_assert_uint_eq(domus_text_escape("ab\x01z", 4, text, 6), 7);
    /* A text that is cut holds no half of an escape, and nothing behind its end. */
    ck_assert_str_eq(text, "ab");
    ck_assert_uint_eq(domus_text_escape("ab\x01z", 4, text, 7), 7);
    ck_assert_str_eq(text, "ab\\x01");
    ck_assert_uint_eq(domus_text_escape("ab\x01z", 4, text, 8), 7);
    ck_assert_str_eq(text, "ab\\x01z");
}

DOMT_TEST(errno_values_have_names)
{
    static const struct {
        int error;
        const char *name;
    } rows[] = {
        {ECONNRESET, "ECONNRESET"},
        {-ECONNRESET, "ECONNRESET"},
        {-EPERM, "EPERM"},
        {0, "0"},
        {100000, "?"},
        {INT_MAX, "?"},
        {INT_MIN, "?"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_str_eq(domus_error_name(rows[i].error), rows[i].name);
}

DOMT_SUITE(10)
