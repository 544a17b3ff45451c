/* io/connectors/name.c: which texts are names, and the order of addresses. */
#include "io/connectors/name.h"

#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

DOMT_TEST(names_are_letters_digits_and_dots)
{
    static const struct {
        const char *text;
        int result;
        const char *name;
        uint16_t port;
    } cases[] = {
        {"a:1", 0, "a", 1},
        {"Example.ORG.:65535", 0, "example.org.", 65535}, /* the C library completes no such name */
        {"a..:1", -EINVAL, "", 0},
        {".:1", -EINVAL, "", 0},
        {"127.1.:1", -EINVAL, "", 0},
        {"1.2.3.4a:0", 0, "1.2.3.4a", 0},
        {"_x-y.z9:80", 0, "_x-y.z9", 80},
        {"a", -EINVAL, "", 0},
        {":1", -EINVAL, "", 0},
        {"a:", -EINVAL, "", 0},
        {"a:65536", -EINVAL, "", 0},
        {"a:1x", -EINVAL, "", 0},
        {"a:-1", -EINVAL, "", 0},
        {"a..b:1", -EINVAL, "", 0},
        {".a:1", -EINVAL, "", 0},
        {"-a:1", -EINVAL, "", 0},
        {"a-.b:1", -EINVAL, "", 0},
        {"a b:1", -EINVAL, "", 0},
        {"a\n:1", -EINVAL, "", 0},
        {"\xc3\xa4:1", -EINVAL, "", 0},
        {"127.1:1", -EINVAL, "", 0},
        {"1:1", -EINVAL, "", 0},
        {"0x7f000001:1", -EINVAL, "", 0},
        {"[::1]x:1", -EINVAL, "", 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[DOMI_HOST_MAX + 1];
        uint16_t port = 7;
        int result = domi_name_parse(cases[i].text, name, &port);
        ck_assert_msg(result == cases[i].result, "%s: %d", cases[i].text, result);
        if (result != 0)
            continue;
        ck_assert_str_eq(name, cases[i].name);
        ck_assert_uint_eq(port, cases[i].port);
    }
}

DOMT_TEST(names_and_labels_have_a_length)
{
    char text[400];
    char name[DOMI_HOST_MAX + 1];
    uint16_t port;

    for (int length = 1; length < 300; length++) {
        for (int i = 0; i < length; i++)
            text[i] = (char)(i % 60 == 59 && i + 1 < length ? '.' : 'a');
        (void)snprintf(text + length, sizeof text - (size_t)length, ":9");
        ck_assert_int_eq(domi_name_parse(text, name, &port), length <= 253 ? 0 : -ENAMETOOLONG);
        (void)snprintf(text + length, sizeof text - (size_t)length, ".:9");
        ck_assert_int_eq(domi_name_parse(text, name, &port), length <= 253 ? 0 : -ENAMETOOLONG);
    }
    for (int length = 60; length < 70; length++) {
        memset(text, 'a', (size_t)length);
        (void)snprintf(text + length, sizeof text - (size_t)length, ".b:9");
        ck_assert_int_eq(domi_name_parse(text, name, &port), length <= 63 ? 0 : -EINVAL);
    }
}

DOMT_TEST(families_take_turns_and_keep_their_order)
{
    static const struct {
        const char *before, *after; /* a letter for each: upper case is IPv6 */
    } cases[] = {
        {"", ""},         {"a", "a"},           {"abc", "abc"},
        {"ABCd", "AdBC"}, {"ABCdef", "AdBeCf"}, {"aBCD", "aBCD"},
        {"abCD", "aCbD"}, {"AbcDEF", "AbDcEF"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domus_endpoint found[8] = {0};
        char after[9] = "";
        uint32_t count = (uint32_t)strlen(cases[i].before);
        for (uint32_t k = 0; k < count; k++) {
            char letter = cases[i].before[k];
            found[k].family = letter < 'a' ? AF_INET6 : AF_INET;
            found[k].bytes[0] = (unsigned char)letter;
        }
        domi_name_interleave(found, count);
        for (uint32_t k = 0; k < count; k++)
            after[k] = (char)found[k].bytes[0];
        ck_assert_str_eq(after, cases[i].after);
    }
}

DOMT_SUITE(10)
