/* config/issues.c: errors in a file are reported with their line and column, and files that were
 * made to do harm do none. */
#include "tests/config/reading.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <time.h>

#define MIB (1024 * 1024)

DOMT_TEST(unknown_key_is_reported_with_suggestion)
{
    domt_expect_errors_of_text("scheduler:\n  ioRatoi: 50\n",
                               "2:3: scheduler.ioRatoi: unknown key (did you mean 'ioRatio'?)\n");
    domt_expect_errors_of_text("scheduler:\n  ioratio: 50\n",
                               "2:3: scheduler.ioratio: unknown key (did you mean 'ioRatio'?)\n");
    domt_expect_errors_of_text("scheduler:\n  channelsRunsPerTick: 9\n",
                               "2:3: scheduler.channelsRunsPerTick: unknown key (it is called "
                               "'channelsRunsPerIteration' now)\n");
    domt_expect_errors_of_text("system: {cpu: auto}\n",
                               "1:10: system.cpu: unknown key (did you mean 'cpus'?)\n");
    domt_expect_errors_of_text("nothingOfTheKind: 1\n", "1:1: nothingOfTheKind: unknown key\n");
    domt_expect_errors_of_text("scheduler.ioRatio: 50\n", "1:1: scheduler.ioRatio: unknown key\n");
    domt_expect_errors_of_text(
        "scheduler:\n  steal:\n    floors: 1\n",
        "3:5: scheduler.steal.floors: unknown key (did you mean 'floor'?)\n");
    domt_expect_errors_of_text("listeners:\n- name: a\n  adress: x\n  address: '[::]:0'\n",
                               "3:3: listeners[0].adress: unknown key (did you mean 'address'?)\n");
    domt_expect_errors_of_text("'io\"': 1\n", "1:1: io\": unknown key (did you mean 'io'?)\n");
    domt_expect_errors_of_text("\"a\\nb\": 1\n", "1:1: a\\nb: unknown key\n");
    /* bytes of the key that are not printable are shown escaped */
    domt_expect_errors_of_text("'a\\b~': 1\n", "1:1: a\\b~: unknown key\n");
    domt_expect_errors_of_text("<<: 1\n", "1:1: <<: unknown key\n");
}

DOMT_TEST(duplicate_key_is_reported_with_first_line)
{
    domt_expect_errors_of_text("scheduler:\n  ioRatio: 50\n\n  ioRatio: 51\n",
                               "4:3: scheduler.ioRatio: duplicate key (first in line 2)\n");
    domt_expect_errors_of_text("x: 1\nx: 2\n",
                               "1:1: x: unknown key\n2:1: x: duplicate key (first in line 1)\n");
    domt_expect_errors_of_text("io: {}\nscheduler: {}\nio: {ringEntries: 16}\n",
                               "3:1: io: duplicate key (first in line 1)\n");
    domt_expect_errors_of_text("listeners:\n- {name: a, name: b, address: '[::]:0'}\n",
                               "2:13: listeners[0].name: duplicate key (first in line 2)\n");
}

DOMT_TEST(wrong_value_is_reported_with_its_column)
{
    domt_expect_errors_of_text("scheduler:\n  ioRatio:   0\n",
                               "2:14: scheduler.ioRatio: must be auto or 1..100, is 0\n");
    domt_expect_errors_of_text(
        "scheduler: {mailboxMax: 500us}\n",
        "1:25: scheduler.mailboxMax: expected a count such as 8, found '500us'\n");
    domt_expect_errors_of_text(
        "scheduler: {minBudget: 500}\n",
        "1:24: scheduler.minBudget: expected a duration such as 500us (ns, us, ms, s, m, h), "
        "found '500'\n");
    domt_expect_errors_of_text("scheduler: {minBudget: 2s}\n",
                               "1:24: scheduler.minBudget: must be 1us..1s, is 2s\n");
    domt_expect_errors_of_text("io:\n  ringEntries: 500\n",
                               "2:16: io.ringEntries: must be a power of two, is 500\n");
    /* This number would be 512, a right value, if it were cut to 32 bits. */
    domt_expect_errors_of_text("io:\n  ringEntries: 4294967808\n",
                               "2:16: io.ringEntries: must be 16..32768, is 4294967808\n");
    domt_expect_errors_of_text("channel:\n  sendHigh: 2GiB\n",
                               "2:13: channel.sendHigh: must be 1B..1GiB, is 2GiB\n");
    domt_expect_errors_of_text(
        "scheduler: {steal: {enabled: flase}}\n",
        "1:30: scheduler.steal.enabled: expected false or true, found 'flase'\n");
    domt_expect_errors_of_text(
        "profile: {level: all}\n",
        "1:18: profile.level: expected off or counters or histograms or spans, found 'all'\n");
    domt_expect_errors_of_text("system: {threads: 2000}\n",
                               "1:19: system.threads: must be auto or 1..1024, is 2000\n");
    domt_expect_errors_of_text("system: {threads: 101%}\n",
                               "1:19: system.threads: must be auto or 1%..100%, is 101%\n");
    domt_expect_errors_of_text("system: {cpus: 3-1}\n",
                               "1:16: system.cpus: must be auto, none or a list such as "
                               "0-3,8, is '3-1'\n");
    domt_expect_errors_of_text(
        "scheduler: {ioRatio: \"5\\05\"}\n",
        "1:22: scheduler.ioRatio: expected auto or a percentage such as 50, found '5?5'\n");
    domt_expect_errors_of_text(
        "scheduler: {ioRatio: \"a\\nb\"}\n",
        "1:22: scheduler.ioRatio: expected auto or a percentage such as 50, found 'a\\nb'\n");
    domt_expect_errors_of_text(
        "scheduler:\n  ioRatio:\n",
        "2:11: scheduler.ioRatio: expected auto or a percentage such as 50, found nothing\n");
}

DOMT_TEST(wrong_type_of_value_is_reported)
{
    domt_expect_errors_of_text("scheduler: 5\n",
                               "1:12: scheduler: expected a mapping, found a single value\n");
    domt_expect_errors_of_text("scheduler: [5]\n",
                               "1:12: scheduler: expected a mapping, found a list\n");
    domt_expect_errors_of_text("scheduler:\nio: {}\n",
                               "1:11: scheduler: expected a mapping, found nothing\n");
    domt_expect_errors_of_text(
        "scheduler:\n  ioRatio: {a: 5}\n",
        "2:12: scheduler.ioRatio: expected a single value, found a mapping\n");
    domt_expect_errors_of_text("scheduler:\n  ioRatio:\n  - 5\n",
                               "3:3: scheduler.ioRatio: expected a single value, found a list\n");
    domt_expect_errors_of_text("listeners: {name: a}\n",
                               "1:12: listeners: expected a list, found a mapping\n");
    domt_expect_errors_of_text("listeners: [a, {name: b, address: '[::]:0'}]\n",
                               "1:13: listeners[0]: expected a mapping, found a single value\n");
    domt_expect_errors_of_text("- a\n", "1:1: expected a mapping, found a list\n");
    domt_expect_errors_of_text("just words\n", "1:1: expected a mapping, found a single value\n");
    domt_expect_errors_of_text("---\n", "2:1: expected a mapping, found nothing\n");
    domt_expect_errors_of_text("---\n...\n", "2:1: expected a mapping, found nothing\n");
}

DOMT_TEST(incomplete_listener_is_reported)
{
    domt_expect_errors_of_text(
        "listeners:\n- {}\n",
        "2:3: listeners[0]: name is missing\n2:3: listeners[0]: address is missing\n");
    domt_expect_errors_of_text(
        "listeners:\n- {name: '', address: localhost:80, backlog: 0}\n",
        "2:10: listeners[0].name: is missing or empty\n"
        "2:23: listeners[0].address: must be such as 127.0.0.1:7000 or [::1]:7000 (numbers "
        "only), or unix:PATH, is 'localhost:80'\n"
        "2:46: listeners[0].backlog: must be 1..65535, is 0\n");
    domt_expect_errors_of_text("listeners:\n- wrong\n- {name: b}\n",
                               "2:3: listeners[0]: expected a mapping, found a single value\n"
                               "3:3: listeners[1]: address is missing\n");
}

DOMT_TEST(list_has_maximum_length)
{
    char text[8192] = "listeners:\n";
    domus_yaml *yaml = domt_make_yaml_reader();

    for (int i = 0; i < 64; i++)
        snprintf(text + strlen(text), 64, "- {name: l%d, address: '127.0.0.1:%d'}\n", i, i);
    ck_assert_int_eq(domt_load_text_as_file(yaml, text), 0);
    ck_assert_uint_eq(domus_yaml_config(yaml)->listener_count, 64);
    ck_assert_str_eq(domus_yaml_config(yaml)->listeners[63].name, "l63");
    domus_yaml_free(yaml);
    snprintf(text + strlen(text), 64, "- {name: more, address: '127.0.0.1:64'}\n");
    domt_expect_errors_of_text(text, "2:1: listeners: expected at most 64 elements, found 65\n");
}

DOMT_TEST(malformed_yaml_and_errors_before_it_are_reported)
{
    domt_expect_errors_of_text(
        "scheduler:\n  ioRatio: 0\n bad\n",
        "2:12: scheduler.ioRatio: must be auto or 1..100, is 0\n"
        "3:2: not YAML: did not find expected key while parsing a block mapping\n");
    domt_expect_errors_of_text(
        "scheduler: {ioRatio: 50\n",
        "2:1: not YAML: did not find expected ',' or '}' while parsing a flow mapping\n");
    domt_expect_errors_of_text("system:\n  cpus: none: 1\n",
                               "2:13: not YAML: mapping values are not allowed in this context\n");
    domt_expect_errors_of_text("# ä\nio:\n  size: \xff\n",
                               "3:9: not YAML: invalid leading UTF-8 octet\n");
    domt_expect_errors_of_text("io: \x01\n", "1:5: not YAML: control characters are not allowed\n");
    domt_expect_errors_of_bytes("io: {}\n\0\n", 9,
                                "2:1: not YAML: control characters are not allowed\n");
    domt_expect_errors_of_text(
        "listeners:\n- name: a\n  address: [",
        "3:12: listeners[0].address: expected a single value, found a list\n"
        "4:1: not YAML: did not find expected node content while parsing a flow node\n");
    /* A quote that is not closed is an error of the text alone: the address that is missing may
     * stand in the rest. */
    domt_expect_errors_of_text(
        "listeners:\n- name: a\n  backlog: '",
        "3:13: not YAML: found unexpected end of stream while scanning a quoted scalar\n");
}

DOMT_TEST(second_yaml_document_is_refused)
{
    domt_expect_errors_of_text("io: {}\n---\nio: {}\n",
                               "2:1: a second document; a file holds one\n");
    domt_expect_errors_of_text("scheduler: {ioRatio: 0}\n...\n---\n",
                               "1:22: scheduler.ioRatio: must be auto or 1..100, is 0\n"
                               "3:1: a second document; a file holds one\n");
}

DOMT_TEST(yaml_anchors_aliases_and_tags_are_refused)
{
    domt_expect_errors_of_text(
        "scheduler:\n  minBudget: &b 50us\n  minBudgetBusy: *b\n",
        "2:14: scheduler.minBudget: anchors and aliases are not allowed\n"
        "3:18: scheduler.minBudgetBusy: anchors and aliases are not allowed\n");
    domt_expect_errors_of_text("io: &io {}\n", "1:5: io: anchors and aliases are not allowed\n");
    domt_expect_errors_of_text("*a\n", "1:1: anchors and aliases are not allowed\n");
    domt_expect_errors_of_text("scheduler: {ioRatio: !!str 50}\n",
                               "1:22: scheduler.ioRatio: tags are not allowed\n");
    domt_expect_errors_of_text("io: !x {}\n", "1:5: io: tags are not allowed\n");
    domt_expect_errors_of_text("listeners: !x []\n", "1:12: listeners: tags are not allowed\n");
    domt_expect_errors_of_text("? {a: b}\n: 1\n", "1:3: a key must be a single word\n");
}

DOMT_TEST(errors_of_a_file_come_in_line_order)
{
    domt_expect_errors_of_text(
        "sytem:\n"
        "  threads: 2\n"
        "system: {threads: -1}\n"
        "scheduler:\n"
        "  ioRatio: 0\n"
        "  minBudget: 500\n"
        "  ioRatio: 7\n"
        "  steal: off\n"
        "  deadlineCheckEvery: 010\n"
        "  timersMax: 0x10\n"
        "  conversationsMax: 1e3\n"
        "  mailboxMax: 1.5\n"
        "io:\n"
        "  ringEntries: 64KiB\n"
        "listeners:\n"
        "- {name: a, adress: x}\n"
        "---\n",
        "1:1: sytem: unknown key (did you mean 'system'?)\n"
        "3:19: system.threads: expected auto or a count such as 8, found '-1'\n"
        "5:12: scheduler.ioRatio: must be auto or 1..100, is 0\n"
        "6:14: scheduler.minBudget: expected a duration such as 500us (ns, us, ms, s, m, h), "
        "found '500'\n"
        "7:3: scheduler.ioRatio: duplicate key (first in line 5)\n"
        "8:10: scheduler.steal: expected a mapping, found a single value\n"
        "9:23: scheduler.deadlineCheckEvery: expected a count such as 8, found '010'\n"
        "10:14: scheduler.timersMax: expected a count such as 8, found '0x10'\n"
        "11:21: scheduler.conversationsMax: expected a count such as 8, found '1e3'\n"
        "12:15: scheduler.mailboxMax: expected a count such as 8, found '1.5'\n"
        "14:16: io.ringEntries: expected a count such as 8, found '64KiB'\n"
        "16:13: listeners[0].adress: unknown key (did you mean 'address'?)\n"
        "17:1: a second document; a file holds one\n");
}

DOMT_TEST(errors_beyond_64_are_only_counted)
{
    char text[4096] = "", *errors;
    domus_yaml *yaml = domt_make_yaml_reader();
    char name[32];
    size_t lines = 0;

    for (int i = 0; i < 100; i++)
        snprintf(text + strlen(text), 32, "unknown%d: 1\n", i);
    ck_assert_int_eq(domt_load_bytes_as_file(yaml, text, strlen(text), name), -EINVAL);
    errors = domt_copy_errors_of_reader(yaml, name);
    for (const char *end = errors; (end = strchr(end, '\n')) != NULL; end++)
        lines++;
    ck_assert_uint_eq(lines, 65);
    ck_assert_ptr_nonnull(strstr(errors, "\n and 36 more errors\n"));
    free(errors);
    domus_yaml_free(yaml);
}

DOMT_TEST(nesting_deeper_than_16_is_refused)
{
    char text[4096];

    memset(text, '[', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    domt_expect_errors_of_text(
        text, "1:1: expected a mapping, found a list\n"
              "1:17: [0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]: nested deeper than 16 "
              "levels\n");
    domt_expect_errors_of_text(
        "listeners: [[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]",
        "1:13: listeners[0]: expected a mapping, found a list\n"
        "1:27: listeners[0][0][0][0][0][0][0][0][0][0][0][0][0][0]: nested deeper than 16 "
        "levels\n");
}

DOMT_TEST(length_and_number_of_keys_have_limits)
{
    static char text[MIB];

    snprintf(text, sizeof text, "a: ");
    memset(text + 3, 'v', 4097);
    domt_expect_errors_of_text(text, "1:4: a: a value is longer than 4096 bytes\n");
    memset(text, 'k', 129);
    snprintf(text + 129, sizeof text - 129, ": 1");
    domt_expect_errors_of_text(text, "1:1: a key is longer than 128 bytes\n");
    size_t length = (size_t)snprintf(text, sizeof text, "system:\n  cpus: ");
    for (size_t i = 0; i < 600; i++, length += 2)
        memcpy(text + length, "0,", 2);
    snprintf(text + length, sizeof text - length, "0\n");
    domt_expect_errors_of_text(text,
                               "2:9: system.cpus: must be at most 1023 bytes long, is 1201\n");
    snprintf(text, sizeof text, "a: [");
    for (size_t i = 0; i < 5000; i++)
        memcpy(text + 4 + 2 * i, "1,", 3);
    domt_expect_errors_of_text(
        text, "1:1: a: unknown key\n1:8193: a: the file holds more than 4096 values\n");
}

/* A configuration file that repeats one thing for a mebibyte must be refused or read soon, whatever
 * the thing is. */
DOMT_TEST(file_of_one_mebibyte_is_read_soon)
{
    static const char *const things[] = {
        "[",          "{",    "- ",         "? ",    "a: ",         "&a ",  "*a ",
        "!a ",        "%",    "\"",         "'",     "|",           ">\n ", "#",
        "\n",         " ",    "\t",         ",",     ":",           "{}",   "[],",
        "--- ",       "a\n",  "a: 1\n",     "- a\n", "[a,",         "{a: ", "\xef\xbb\xbf",
        "\xc3",       "\\",   "...\n",      "? a\n", "&a [",        "!!x ", "a: &b\n",
        "\"\\x41\" ", "- - ", "%TAG ! x\n", "\r",    "\xe2\x80\xa8"};
    static char text[MIB];

    for (size_t i = 0; i < sizeof things / sizeof things[0]; i++) {
        size_t length = strlen(things[i]), size = sizeof text / length * length;
        domus_yaml *yaml = domt_make_yaml_reader();
        struct timespec before, after;
        char name[32];

        for (size_t at = 0; at < size; at += length)
            memcpy(text + at, things[i], length);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
        int result = domt_load_bytes_as_file(yaml, text, size, name);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
        ck_assert(result == 0 || result == -EINVAL);
        ck_assert_msg(after.tv_sec - before.tv_sec < 5, "'%s' took too long", things[i]);
        domus_yaml_free(yaml);
    }
}

DOMT_TEST(file_larger_than_one_mebibyte_is_refused)
{
    static char text[MIB + 1];
    domus_yaml *yaml = domt_make_yaml_reader();
    char name[32];

    memset(text, '#', sizeof text);
    memcpy(text, "scheduler: {ioRatio: 7}\n", 24);
    ck_assert_int_eq(domt_load_bytes_as_file(yaml, text, MIB, name), 0);
    ck_assert_uint_eq(domus_yaml_config(yaml)->scheduler.io_ratio, 7);
    domus_yaml_free(yaml);
    domt_expect_errors_of_bytes(text, sizeof text, "1:1: the file is larger than 1 MiB\n");
}

/* Break a right configuration file at random places: the load returns 0 or -EINVAL, and each error
 * is a line of text. */
DOMT_TEST(broken_files_give_errors_as_lines)
{
    static const char marks[] = "{}[]:,&*!|>'\"%@`#-? \n\t\0\x80\xff"
                                "0aZ\\~";
    static char text[16384], broken[16384];
    FILE *file = fopen(DOMT_SOURCE_DIR "/config/domus.yaml", "r");
    size_t size = fread(text, 1, sizeof text, file);
    uint32_t random = 20261120;

    fclose(file);
    for (int round = 0; round < (domt_tests_are_long() ? 1500 : 300); round++) {
        domus_yaml *yaml = domt_make_yaml_reader();
        char name[32];

        memcpy(broken, text, size);
        for (int change = 0; change <= round % 4; change++) {
            random = random * 1664525 + 1013904223;
            size_t place = (random >> 8) % size;
            random = random * 1664525 + 1013904223;
            broken[place] = marks[(random >> 8) % (sizeof marks - 1)];
        }
        int result = domt_load_bytes_as_file(yaml, broken, size, name);
        const char *errors = domus_yaml_errors(yaml);
        ck_assert(result == 0 || result == -EINVAL);
        ck_assert_int_eq(result == 0, errors[0] == '\0');
        domus_yaml_free(yaml);
    }
}

DOMT_SUITE(60)
