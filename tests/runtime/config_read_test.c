/* runtime/control/config_read.c: which texts are accepted as a value, which are refused, and the
 * messages for a refusal. */
#include "tests/support/suite.h"

#include <domus/config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const words[] = {"false", "true", NULL};

static const domus_config_key count = {.kind = DOMUS_CONFIG_COUNT};
static const domus_config_key count_or_auto = {.kind = DOMUS_CONFIG_COUNT, .special = "auto"};
static const domus_config_key count_or_all = {
    .kind = DOMUS_CONFIG_COUNT, .special = "all", .special_number = UINT32_MAX};
static const domus_config_key percent = {.kind = DOMUS_CONFIG_PERCENT};
static const domus_config_key share = {.kind = DOMUS_CONFIG_SHARE, .special = "auto"};
static const domus_config_key duration = {.kind = DOMUS_CONFIG_DURATION};
static const domus_config_key size = {.kind = DOMUS_CONFIG_SIZE};
static const domus_config_key word = {.kind = DOMUS_CONFIG_WORD, .words = words};
static const domus_config_key cpus = {.kind = DOMUS_CONFIG_CPUS};

static void expect_text_is_read_as(const domus_config_key *key, const char *text, uint64_t wanted)
{
    char error[256] = "";
    uint64_t number = 12345;

    ck_assert_msg(domus_config_key_read(key, text, &number, error, sizeof error) == 0, "%s: %s",
                  text, error);
    ck_assert_msg(number == wanted, "%s", text);
}

static void expect_text_is_refused(const domus_config_key *key, const char *text,
                                   const char *message)
{
    char error[256] = "", whole[256];
    uint64_t number = 12345;

    ck_assert_msg(domus_config_key_read(key, text, &number, error, sizeof error) == -EINVAL,
                  "'%s' was taken", text);
    ck_assert_uint_eq(number, 12345);
    snprintf(whole, sizeof whole, message, text);
    ck_assert_str_eq(error, whole);
}

static void expect_each_text_is_refused(const domus_config_key *key, const char *const *texts,
                                        const char *message)
{
    for (; *texts != NULL; texts++)
        expect_text_is_refused(key, *texts, message);
}

DOMT_TEST(count_is_plain_decimal)
{
    static const char *const wrong[] = {
        "-1",    "+1",  "010",   "00",     "0x10",   "1e3",  "1.5", "1_000", " 1", "1 ",
        "500us", "8KB", "64KiB", "64junk", "٣",      "auto", "~",   "null",  "5%", "1\n",
        "0b1",   "1,0", "inf",   "true",   "1 # no", "'1'",  "\t1", NULL};

    expect_text_is_read_as(&count, "0", 0);
    expect_text_is_read_as(&count, "8", 8);
    expect_text_is_read_as(&count, "18446744073709551615", UINT64_MAX);
    expect_each_text_is_refused(&count, wrong, "expected a count such as 8, found '%s'");
    expect_text_is_refused(&count, "", "expected a count such as 8, found nothing%.0s");
    expect_text_is_refused(&count, "18446744073709551616", "'%s' is too large");
    expect_text_is_refused(&count, "184467440737095516150", "'%s' is too large");
    expect_text_is_refused(&count, "340282366920938463463374607431768211456", "'%s' is too large");
}

DOMT_TEST(zero_is_read_only_from_its_word)
{
    expect_text_is_read_as(&count_or_auto, "auto", 0);
    expect_text_is_read_as(&count_or_auto, "3", 3);
    expect_text_is_read_as(&share, "auto", 0);
    expect_text_is_refused(
        &count_or_all, "4294967295",
        /* `all` is stored as UINT32_MAX, so that number itself must not be accepted */
        "'%s' is too large");
    expect_text_is_read_as(&count_or_all, "all", UINT32_MAX);
    expect_text_is_refused(&count_or_auto, "0", "expected auto or a count such as 8, found '%s'");
    expect_text_is_refused(&count_or_auto, "Auto",
                           "expected auto or a count such as 8, found '%s'");
    expect_text_is_refused(&share, "0%", "expected auto or a percentage such as 50%%, found '%s'");
}

DOMT_TEST(percentage_is_bare_or_signed_a_share_only_signed)
{
    static const char *const wrong[] = {"50 %", "%", "5%%", "0.5", "-5%", "50p", "%5", NULL};

    expect_text_is_read_as(&percent, "50", 50);
    expect_text_is_read_as(&percent, "50%", 50);
    expect_text_is_read_as(&percent, "0", 0);
    expect_text_is_read_as(&share, "50%", 50);
    expect_each_text_is_refused(&percent, wrong, "expected a percentage such as 50, found '%s'");
    expect_text_is_refused(&share, "50", "expected auto or a percentage such as 50%%, found '%s'");
    expect_text_is_refused(&share, "0", "expected auto or a percentage such as 50%%, found '%s'");
}

DOMT_TEST(duration_needs_its_unit)
{
    static const char *const wrong[] = {"500",   "1.5s", "500 us", "500US", "5sec", "1d",
                                        "1h30m", "-1s",  "us",     "01s",   "1KiB", "5μs",
                                        "5s ",   "1e3s", "0x1s",   "00",    NULL};

    expect_text_is_read_as(&duration, "0", 0);
    expect_text_is_read_as(&duration, "0s", 0);
    expect_text_is_read_as(&duration, "7ns", 7);
    expect_text_is_read_as(&duration, "500us", 500000);
    expect_text_is_read_as(&duration, "3ms", 3000000);
    expect_text_is_read_as(&duration, "2s", UINT64_C(2000000000));
    expect_text_is_read_as(&duration, "1m", UINT64_C(60000000000));
    expect_text_is_read_as(&duration, "8760h", UINT64_C(8760) * 3600 * 1000000000);
    expect_each_text_is_refused(
        &duration, wrong, "expected a duration such as 500us (ns, us, ms, s, m, h), found '%s'");
    /* 2^64 ns, the first duration that is too large, are 5124095.6 h */
    expect_text_is_refused(&duration, "5124096h", "'%s' is too large");
}

DOMT_TEST(size_needs_its_unit)
{
    static const char *const wrong[] = {"64",     "64K",    "64KB",   "64kB", "64kib",
                                        "64 KiB", "1.5MiB", "64KiBx", "1TiB", "B",
                                        "-1B",    "010B",   "64us",   NULL};

    expect_text_is_read_as(&size, "0", 0);
    expect_text_is_read_as(&size, "0B", 0);
    expect_text_is_read_as(&size, "100B", 100);
    expect_text_is_read_as(&size, "64KiB", 65536);
    expect_text_is_read_as(&size, "1MiB", 1048576);
    expect_text_is_read_as(&size, "4GiB", UINT64_C(4294967296));
    expect_each_text_is_refused(&size, wrong,
                                "expected a size such as 64KiB (B, KiB, MiB, GiB), found '%s'");
    expect_text_is_refused(&size, "17179869184GiB", "'%s' is too large");
}

DOMT_TEST(word_is_one_of_those_exactly)
{
    static const char *const wrong[] = {"flase", "True", "FALSE", "yes", "no", "on", "off",
                                        "1",     "0",    "true ", "t",   "~",  NULL};

    expect_text_is_read_as(&word, "false", 0);
    expect_text_is_read_as(&word, "true", 1);
    expect_each_text_is_refused(&word, wrong, "expected false or true, found '%s'");
    expect_text_is_refused(&word, "", "expected false or true, found nothing%.0s");
}

DOMT_TEST(value_of_a_text_key_is_read_unchecked)
{
    expect_text_is_read_as(&cpus, "0-3,8", 0);
    expect_text_is_read_as(&cpus, "", 0);
}

DOMT_TEST(long_value_is_shown_in_part_and_in_whole_characters)
{
    char text[128], wanted[256];

    memset(text, 'x', 100);
    text[100] = '\0';
    snprintf(wanted, sizeof wanted, "expected a count such as 8, found '%.48s'%%.0s", text);
    expect_text_is_refused(&count, text, wanted);
    /* the letter has two bytes, of which the second one would be the 49th byte of the text */
    memcpy(text + 47, "ü", 2);
    snprintf(wanted, sizeof wanted, "expected a count such as 8, found '%.47s'%%.0s", text);
    expect_text_is_refused(&count, text, wanted);
}

DOMT_SUITE(10)
