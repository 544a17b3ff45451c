/* config/section.c: a program's own section of the configuration is read as strictly as the keys of
 * domus. */
#include "tests/config/reading.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stddef.h>

struct settings {
    uint64_t timeout_ns;
    uint64_t buffer_bytes;
    uint32_t retries, mode, room_count;
    bool verbose;
    char upstream[32], rooms[3][8], motd[16];
};

static const char *const modes[] = {"fast", "safe", "slow", NULL};

static const domus_config_key keys[] = {
    {DOMUS_KEY("timeout", DURATION, struct settings, timeout_ns, 1000000, 60000000000, 5000000)},
    {DOMUS_KEY("buffer.size", SIZE, struct settings, buffer_bytes, 1, 1048576, 4096),
     .power_of_two = true},
    {DOMUS_KEY("retry.max", COUNT, struct settings, retries, 1, 10, 3), .or_zero = true},
    {DOMUS_KEY_WORD("mode", struct settings, mode, modes, 1)},
    {DOMUS_KEY_SWITCH("verbose", struct settings, verbose, false)},
    {DOMUS_KEY_TEXT("upstream", ADDRESS, struct settings, upstream, 1, NULL)},
    {DOMUS_KEY_TEXTS("rooms", NAME, struct settings, rooms, room_count, "lobby,garden")},
    {DOMUS_KEY_TEXT("motd", TEXT, struct settings, motd, 0, "hello")},
    {.path = NULL},
};

static int refuse_more_retries_than_rooms(const void *values, char *error, size_t error_size)
{
    const struct settings *settings = values;

    if (settings->retries <= settings->room_count)
        return 0;
    snprintf(error, error_size, "more retries than rooms");
    return -EINVAL;
}

static const domus_section section = {
    .name = "chat", .keys = keys, .size = sizeof(struct settings)};
static const domus_section checked = {.name = "chat",
                                      .keys = keys,
                                      .size = sizeof(struct settings),
                                      .check = refuse_more_retries_than_rooms};

static domus_yaml *make_reader_of_section(const domus_section *own)
{
    domus_yaml *yaml = NULL;
    char error[256] = "";

    ck_assert_msg(domus_yaml_new_with(own, error, sizeof error, &yaml) == 0, "%s", error);
    return yaml;
}

static const struct settings *settings_of_reader(const domus_yaml *yaml)
{
    return domus_yaml_section(yaml);
}

/* Load `text` with a section, finish the reader, and compare the errors with the expected ones. */
static void expect_errors_of_text(const domus_section *own, const char *text, const char *wanted)
{
    domus_yaml *yaml = make_reader_of_section(own);
    char name[32];
    int result = domt_load_bytes_as_file(yaml, text, strlen(text), name);

    if (result == 0)
        result = domus_yaml_finish(yaml);
    char *errors = domt_copy_errors_of_reader(yaml, name);
    ck_assert_str_eq(errors, wanted);
    ck_assert_int_eq(result, wanted[0] == '\0' ? 0 : -EINVAL);
    free(errors);
    domus_yaml_free(yaml);
}

DOMT_TEST(section_has_defaults_before_reading)
{
    domus_yaml *yaml = make_reader_of_section(&section);
    const struct settings *settings = settings_of_reader(yaml);

    ck_assert_uint_eq(settings->timeout_ns, 5000000);
    ck_assert_uint_eq(settings->buffer_bytes, 4096);
    ck_assert_uint_eq(settings->retries, 3);
    ck_assert_uint_eq(settings->mode, 1);
    ck_assert(!settings->verbose);
    ck_assert_str_eq(settings->upstream, "");
    ck_assert_str_eq(settings->motd, "hello");
    ck_assert_uint_eq(settings->room_count, 2);
    ck_assert_str_eq(settings->rooms[0], "lobby");
    ck_assert_str_eq(settings->rooms[1], "garden");
    domus_yaml_free(yaml);
}

DOMT_TEST(section_reads_every_kind_of_key)
{
    domus_yaml *yaml = make_reader_of_section(&section);
    const struct settings *settings = settings_of_reader(yaml);

    ck_assert_int_eq(domt_load_text_as_file(yaml, "scheduler: {ioRatio: 30}\n"
                                                  "chat:\n"
                                                  "  timeout: 2s\n"
                                                  "  buffer: {size: 64KiB}\n"
                                                  "  retry: {max: 0}\n"
                                                  "  mode: slow\n"
                                                  "  verbose: true\n"
                                                  "  upstream: 127.0.0.1:80\n"
                                                  "  rooms: [a, b, c]\n"
                                                  "  motd: 'a, b'\n"),
                     0);
    ck_assert_int_eq(domus_yaml_finish(yaml), 0);
    ck_assert_uint_eq(domus_yaml_config(yaml)->scheduler.io_ratio, 30);
    ck_assert_uint_eq(settings->timeout_ns, 2000000000);
    ck_assert_uint_eq(settings->buffer_bytes, 65536);
    ck_assert_uint_eq(settings->retries, 0);
    ck_assert_uint_eq(settings->mode, 2);
    ck_assert(settings->verbose);
    ck_assert_str_eq(settings->upstream, "127.0.0.1:80");
    ck_assert_uint_eq(settings->room_count, 3);
    ck_assert_str_eq(settings->rooms[2], "c");
    ck_assert_str_eq(settings->motd, "a, b");
    /* A list of a later file replaces the first one as a whole. */
    ck_assert_int_eq(domt_load_text_as_file(yaml, "chat: {rooms: []}\n"), 0);
    ck_assert_uint_eq(settings->room_count, 0);
    ck_assert_str_eq(settings->motd, "a, b");
    ck_assert_int_eq(domt_load_text_as_file(yaml, "chat: {motd: b}\n"), 0);
    /* no byte of the longer text is left behind the shorter one */
    ck_assert_mem_eq(settings->motd, "b\0\0\0", 4);
    domus_yaml_free(yaml);
}

DOMT_TEST(wrong_values_are_reported_with_their_place)
{
    expect_errors_of_text(
        &section,
        "chat:\n"
        "  timeout: 5\n"
        "  buffer: {size: 3KiB}\n"
        "  retry:\n"
        "    max: 11\n"
        "  mode: quick\n"
        "  verbose: yes\n"
        "  upstream: localhost:1\n"
        "  rooms: [a, b c, ninebytes]\n"
        "  motd: seventeen_letters\n",
        "2:12: chat.timeout: expected a duration such as 500us (ns, us, ms, s, m, h), found '5'\n"
        "3:18: chat.buffer.size: must be a power of two, is 3KiB\n"
        "5:10: chat.retry.max: must be 0 or 1..10, is 11\n"
        "6:9: chat.mode: expected fast or safe or slow, found 'quick'\n"
        "7:12: chat.verbose: expected false or true, found 'yes'\n"
        "8:13: chat.upstream: must be such as 127.0.0.1:7000 or [::1]:7000 (numbers only), or "
        "unix:PATH, is "
        "'localhost:1'\n"
        "9:14: chat.rooms[1]: must be letters, digits, '-' and '_', is 'b c'\n"
        "9:19: chat.rooms[2]: must be at most 7 bytes long, is 9\n"
        "10:9: chat.motd: must be at most 15 bytes long, is 17\n");
}

DOMT_TEST(wrong_keys_and_types_are_reported_with_place)
{
    expect_errors_of_text(&section,
                          "caht: {}\n"
                          "chat:\n"
                          "  timeuot: 5s\n"
                          "  verbose: [true]\n"
                          "  rooms: lobby\n"
                          "  buffer: 5\n",
                          "1:1: caht: unknown key (did you mean 'chat'?)\n"
                          "3:3: chat.timeuot: unknown key (did you mean 'timeout'?)\n"
                          "4:12: chat.verbose: expected a single value, found a list\n"
                          "5:10: chat.rooms: expected a list, found a single value\n"
                          "6:11: chat.buffer: expected a mapping, found a single value\n");
    expect_errors_of_text(&section, "chat:\n  rooms: [a, b, c, d]\n",
                          "2:10: chat.rooms: expected at most 3 elements, found 4\n");
    expect_errors_of_text(&section, "chat:\n  rooms: [a, [b]]\n",
                          "2:14: chat.rooms[1]: expected a single value, found a list\n");
    expect_errors_of_text(&section, "chat: 1\n",
                          "1:7: chat: expected a mapping, found a single value\n");
    /* This reader was made without the section, so its name is an unknown key. */
    domt_expect_errors_of_text("chat: {}\n", "1:1: chat: unknown key\n");
}

DOMT_TEST(text_without_a_default_must_be_given)
{
    expect_errors_of_text(&section, "io: {}\nchat: {verbose: true}\n",
                          "2:1: chat.upstream: is missing\n");
    expect_errors_of_text(&section, "io: {}\n", "default: chat.upstream: is missing\n");
    expect_errors_of_text(&section, "chat: {upstream: ''}\n",
                          "1:18: chat.upstream: is missing or empty\n");
    expect_errors_of_text(&section, "chat: {upstream: '[::1]:1'}\n", "");

    /* The place shown for a missing key is that of the section in the file, also after an
     * assignment to another key of the section. */
    domus_yaml *yaml = make_reader_of_section(&section);
    ck_assert_int_eq(domt_load_text_as_file(yaml, "io: {}\nchat: {}\n"), 0);
    ck_assert_int_eq(domus_yaml_set(yaml, "chat.verbose=true"), 0);
    ck_assert_int_eq(domus_yaml_finish(yaml), -EINVAL);
    ck_assert_msg(strstr(domus_yaml_errors(yaml), ":2:1: chat.upstream: is missing\n") != NULL,
                  "%s", domus_yaml_errors(yaml));
    domus_yaml_free(yaml);
}

DOMT_TEST(text_has_minimum_and_maximum_length)
{
    static const domus_config_key own[] = {
        {DOMUS_KEY_TEXT("motd", TEXT, struct settings, motd, 4, NULL)}, {.path = NULL}};
    static const domus_section least = {
        .name = "chat", .keys = own, .size = sizeof(struct settings)};

    expect_errors_of_text(&least, "chat: {motd: abcd}\n", "");
    expect_errors_of_text(&least, "chat: {motd: abcdefghijklmno}\n", "");
    expect_errors_of_text(&least, "chat: {motd: abc}\n",
                          "1:14: chat.motd: must be at least 4 bytes long, is 3\n");
    expect_errors_of_text(&least, "chat: {motd: ''}\n", "1:14: chat.motd: is missing or empty\n");
    expect_errors_of_text(&least, "chat: {motd: abcdefghijklmnop}\n",
                          "1:14: chat.motd: must be at most 15 bytes long, is 16\n");
}

DOMT_TEST(check_function_of_section_sees_final_values)
{
    expect_errors_of_text(&checked, "io: {}\nchat: {upstream: '[::1]:1'}\n",
                          "2:1: chat: more retries than rooms\n");
    expect_errors_of_text(&checked, "chat: {upstream: '[::1]:1', retry: {max: 2}}\n", "");
    expect_errors_of_text(&checked, "chat: {}\n", "1:1: chat.upstream: is missing\n");
}

DOMT_TEST(assignments_set_keys_of_the_section)
{
    domus_yaml *yaml = make_reader_of_section(&section);
    const struct settings *settings = settings_of_reader(yaml);

    ck_assert_int_eq(domus_yaml_set(yaml, "chat.buffer.size=1KiB"), 0);
    ck_assert_uint_eq(settings->buffer_bytes, 1024);
    ck_assert_int_eq(domus_yaml_set(yaml, "chat.upstream=127.0.0.1:9"), 0);
    ck_assert_int_eq(domus_yaml_set(yaml, "chat.rooms=x,y,z"), 0);
    ck_assert_uint_eq(settings->room_count, 3);
    ck_assert_str_eq(settings->rooms[1], "y");
    ck_assert_int_eq(domus_yaml_set(yaml, "chat.rooms="), 0);
    ck_assert_uint_eq(settings->room_count, 0);
    /* The key chat.motd takes a text and not a list, so the comma is a part of the text. */
    ck_assert_int_eq(domus_yaml_set(yaml, "chat.motd=a,b"), 0);
    ck_assert_str_eq(settings->motd, "a,b");
    ck_assert_int_eq(domus_yaml_finish(yaml), 0);
    ck_assert_str_eq(domus_yaml_errors(yaml), "");
    ck_assert_int_eq(domus_yaml_set(yaml, "chat.rooms=a,b,c,d"), -EINVAL);
    ck_assert_int_eq(domus_yaml_set(yaml, "chat.rooms=a,,b"), -EINVAL);
    ck_assert_int_eq(domus_yaml_set(yaml, "chat.retry.max=99"), -EINVAL);
    ck_assert_int_eq(domus_yaml_set(yaml, "chat.nope=1"), -EINVAL);
    ck_assert_str_eq(domus_yaml_errors(yaml),
                     "--set: chat.rooms: expected at most 3 elements, found 4\n"
                     "--set: chat.rooms: is missing or empty\n"
                     "--set: chat.retry.max: must be 0 or 1..10, is 99\n"
                     "--set: chat.nope: unknown key (did you mean 'mode'?)\n");
    ck_assert_uint_eq(settings->room_count, 0); /* an assignment with an error changes no setting */
    domus_yaml_free(yaml);
}

DOMT_TEST(wrong_source_leaves_section_unchanged)
{
    domus_yaml *yaml = make_reader_of_section(&section);

    ck_assert_int_eq(domt_load_text_as_file(yaml, "chat: {motd: kept, retry: {max: 4}}\n"), 0);
    ck_assert_int_eq(domt_load_text_as_file(yaml, "chat: {motd: lost, retry: {max: 40}}\n"),
                     -EINVAL);
    ck_assert_int_eq(domt_load_text_as_file(yaml, "chat: {motd: lost}\nio: {ringEntries: 7}\n"),
                     -EINVAL);
    ck_assert_str_eq(settings_of_reader(yaml)->motd, "kept");
    ck_assert_uint_eq(settings_of_reader(yaml)->retries, 4);
    domus_yaml_free(yaml);
}

/* --- tables that are wrong -------------------------------------------------------------------- */

static void expect_section_is_refused(const char *name, const domus_config_key *rows, size_t size,
                                      const char *wanted)
{
    const domus_section own = {.name = name, .keys = rows, .size = size};
    domus_yaml *yaml = NULL;
    char error[256] = "";

    ck_assert_int_eq(domus_yaml_new_with(&own, error, sizeof error, &yaml), -EINVAL);
    ck_assert_msg(strstr(error, wanted) != NULL, "'%s' is not in '%s'", wanted, error);
    ck_assert_ptr_null(yaml);
}

static void expect_row_is_refused(domus_config_key row, const char *wanted)
{
    const domus_config_key rows[] = {row, {.path = NULL}};

    expect_section_is_refused("chat", rows, sizeof(struct settings), wanted);
}

DOMT_TEST(wrong_table_of_keys_is_refused)
{
    const domus_config_key good = keys[2], text = keys[7], list = keys[6];
    domus_config_key row = good;

    expect_section_is_refused("system", keys, sizeof(struct settings), "domus has it");
    expect_section_is_refused("listeners", keys, sizeof(struct settings), "domus has it");
    expect_section_is_refused("a.b", keys, sizeof(struct settings), "the name is none");
    expect_section_is_refused("", keys, sizeof(struct settings), "the name is none");
    expect_section_is_refused("chat", keys, DOMUS_SECTION_BYTES_MAX + 1, "too large");
    expect_section_is_refused("chat", keys, 8,
                              "row 1, 'buffer.size': the field is not in the struct");
    row.path = "a..b";
    expect_row_is_refused(row, "row 0, 'a..b': the path is no name");
    row = good;
    row.minimum = 11;
    expect_row_is_refused(row, "the range is empty");
    row = good;
    row.preset = 11;
    expect_row_is_refused(row, "must be 0 or 1..10, is 11");
    row = good;
    row.size = 2;
    expect_row_is_refused(row, "1, 4 or 8");
    row = good;
    row.maximum = UINT64_C(1) << 32;
    expect_row_is_refused(row, "too small for the greatest value");
    row = good;
    row.list_max = 2;
    expect_row_is_refused(row, "only texts");
    row = text;
    row.maximum = 16;
    expect_row_is_refused(row, "too small for the longest text");
    row = text;
    row.preset_text = "seventeen_letters";
    expect_row_is_refused(row, "at most 15 bytes");
    row = list;
    row.count_offset = sizeof(struct settings) - 3;
    expect_row_is_refused(row, "the count is not in the struct");
    row = list;
    row.preset_text = "a,b,c,d";
    expect_row_is_refused(row, "the default is too long");
    row = keys[3];
    row.words = NULL;
    expect_row_is_refused(row, "no words");
}

DOMT_TEST(two_rows_with_same_path_are_refused)
{
    const domus_config_key twice[] = {keys[0], keys[0], {.path = NULL}};
    domus_config_key below = keys[0];

    below.path = "timeout.more";
    const domus_config_key within[] = {keys[0], below, {.path = NULL}};
    expect_section_is_refused("chat", twice, sizeof(struct settings),
                              "an earlier row has this path");
    expect_section_is_refused("chat", within, sizeof(struct settings),
                              "an earlier row has this path");
}

DOMT_TEST(table_of_keys_has_maximum_length)
{
    static domus_config_key rows[DOMUS_SECTION_KEYS_MAX + 2];
    static char paths[DOMUS_SECTION_KEYS_MAX + 1][8];
    domus_section own = {.name = "chat", .keys = rows, .size = sizeof(struct settings)};

    for (size_t i = 0; i < DOMUS_SECTION_KEYS_MAX; i++) {
        snprintf(paths[i], sizeof paths[i], "k%zu", i);
        rows[i] = keys[2];
        rows[i].path = paths[i];
    }
    domus_yaml *yaml = make_reader_of_section(&own);
    ck_assert_int_eq(domus_yaml_set(yaml, "chat.k63=7"), 0);
    ck_assert_uint_eq(settings_of_reader(yaml)->retries, 7);
    domus_yaml_free(yaml);
    rows[DOMUS_SECTION_KEYS_MAX] = keys[3];
    expect_section_is_refused("chat", rows, sizeof(struct settings), "too many rows");
    /* Each row stands in a section of its own, so the schema gets too many sections. */
    for (size_t i = 0; i < DOMUS_SECTION_KEYS_MAX; i++)
        snprintf(paths[i], sizeof paths[i], "k%zu.a", i);
    rows[DOMUS_SECTION_KEYS_MAX].path = NULL;
    expect_section_is_refused("chat", rows, sizeof(struct settings), "the schema is too large");
}

DOMT_SUITE(10)
