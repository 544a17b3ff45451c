/* Fuzzes JSON. The first byte of an input chooses a case: the rest is a text that is read by a
 * table, or without a table, or fed in pieces, or the rest is the steps of a writer. A struct that
 * was read is written, and reading it again gives the same bytes; pieces of any size lead to the
 * same elements and the same error as the whole text; and a writer that reports no error has
 * written JSON. */
#include "tests/fuzz/support/fuzz.h"

#include <domus/json_feed.h>
#include <domus/json_writer.h>

#include <errno.h>
#include <float.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --- a table of each kind and shape ----------------------------------------------------------- */

typedef struct part {
    uint32_t number;
    char name[5];
    const char *text;
    double numbers[2];
    uint8_t number_count;
    struct part *parts;
    uint16_t part_count;
    domus_json_raw raw;
} part;

typedef struct all {
    bool flag;
    int8_t i8;
    int64_t i64;
    uint64_t u64;
    double real;
    uint8_t word;
    part one;
    part parts[2];
    uint32_t part_count;
    const char **texts;
    uint64_t text_count;
    bool has_extra;
    uint16_t extra;
    const char *maybe;
    domus_json_raw raw;
} all;

static const char *const words[] = {"a", "bc", "", NULL};
static const part part_preset = {.number = 7, .name = "pre"};
static const domus_json_table part_table;
static const domus_json_field part_fields[] = {
    {DOMUS_JSON_UINT("n", part, number, 0, 300)},
    {DOMUS_JSON_TEXT("name", part, name)},
    {DOMUS_JSON_STRING("text", part, text, 10)},
    {DOMUS_JSON_LIST("numbers", part, numbers, number_count, REAL(-DBL_MAX, DBL_MAX))},
    {DOMUS_JSON_ARRAY("parts", part, parts, part_count, 9, OBJECT(part_table))},
    {DOMUS_JSON_RAW("a raw value", part, raw, 30), .nullable = true},
};
static const domus_json_table part_table =
    DOMUS_JSON_TABLE_WITH(part, part_fields, .preset = &part_preset);
static const domus_json_field all_fields[] = {
    {DOMUS_JSON_BOOL("b", all, flag)},
    {DOMUS_JSON_INT("i8", all, i8, INT8_MIN, INT8_MAX)},
    {DOMUS_JSON_INT("i64", all, i64, INT64_MIN, INT64_MAX)},
    {DOMUS_JSON_UINT("u64", all, u64, 0, UINT64_MAX)},
    {DOMUS_JSON_REAL("real", all, real, -DBL_MAX, DBL_MAX)},
    {DOMUS_JSON_WORD("word", all, word, words)},
    {DOMUS_JSON_OBJECT("one", all, one, part_table)},
    {DOMUS_JSON_LIST("parts", all, parts, part_count, OBJECT(part_table))},
    {DOMUS_JSON_ARRAY("texts", all, texts, text_count, 20, STRING(8))},
    {DOMUS_JSON_UINT("extra_long_name", all, extra, 0, 500), DOMUS_JSON_HAS(all, has_extra)},
    {DOMUS_JSON_STRING("maybe", all, maybe, 4), .nullable = true},
    {DOMUS_JSON_RAW("raw", all, raw, 100)},
};
static const domus_json_table strict_table = DOMUS_JSON_TABLE(all, all_fields);
static const domus_json_table loose_table =
    DOMUS_JSON_TABLE_WITH(all, all_fields, .skips_unknown = true);

static void check_error_of_json(const domus_json_error *error, int result, size_t size)
{
    char text[DOMUS_JSON_EXPLAIN_MAX];

    domt_fuzz_abort_unless(error->error == result && error->words[0] != '\0');
    domt_fuzz_abort_unless(error->line == 0 || (error->column != 0 && error->offset <= size));
    domt_fuzz_abort_unless(strlen(domus_json_explain(error, text, sizeof text)) < sizeof text - 1);
    domt_fuzz_abort_unless(domus_json_status(error) >= 400);
}

static domus_slice write_value_as_json(const all *value)
{
    domus_appender appender = {0};
    domus_slice bytes;

    domt_fuzz_abort_unless(domus_json_write(&strict_table, value, &appender, NULL) == 0);
    domt_fuzz_abort_unless(domus_append_end(&appender, &bytes) == 0);
    return bytes;
}

static void read_text_by_table(const domus_json_table *table, const domus_json_options *options,
                               const char *text, size_t size)
{
    domus_json_error error;
    domus_json_memory memory;
    domus_json_memory other;
    all first;
    all second;

    int result = domus_json_read(table, options, text, size, &first, &memory, &error);
    if (result != 0) {
        check_error_of_json(&error, result, size);
        return;
    }
    domt_fuzz_abort_unless(domus_json_check(options, text, size, NULL) == 0);
    domus_slice bytes = write_value_as_json(&first);
    domt_fuzz_abort_unless(
        domus_json_read_slice(&strict_table, NULL, bytes, &second, &other, NULL) == 0);
    domus_slice again = write_value_as_json(&second);
    domt_fuzz_abort_unless(domus_slice_equals(again, domus_slice_data(bytes), bytes.size));
    domus_slice_free(bytes);
    domus_slice_free(again);
    domus_json_release(&memory);
    domus_json_release(&other);
}

static void check_text_without_table(const char *text, size_t size)
{
    domus_json_error error;
    int result = domus_json_check(NULL, text, size, &error);

    if (result != 0)
        check_error_of_json(&error, result, size);
}

/* --- pieces ------------------------------------------------------------------------------------
 */

typedef struct fed {
    int error;
    uint64_t count;
    uint64_t sum; /* checksum of all elements that the feed has given back */
    domus_json_error told;
} fed;

static fed feed_text_in_pieces_of_size(const domus_json_feed_options *options, const char *text,
                                       size_t size, size_t step)
{
    domus_json_feed *feed;
    domus_json_memory memory;
    fed got = {.error = 0};
    part element;

    domt_fuzz_abort_unless(domus_json_feed_new(options, &feed) == 0);
    for (size_t at = 0; at < size && got.error == 0; at += step) {
        size_t length = size - at < step ? size - at : step;
        char *piece = malloc(length);
        domt_fuzz_abort_unless(piece != NULL);
        memcpy(piece, text + at, length);
        domt_fuzz_abort_unless(domus_json_feed_put(feed, piece, length) == 0);
        while ((got.error = domus_json_feed_next(feed, &element, &memory, &got.told)) == 1) {
            got.sum = 31 * got.sum + element.number + element.part_count;
            domus_json_release(&memory);
        }
        free(piece);
    }
    if (got.error == 0)
        got.error = domus_json_feed_end(feed, &got.told);
    got.count = domus_json_feed_count(feed);
    domus_json_feed_free(feed);
    return got;
}

static void compare_feeds_in_pieces(uint8_t how, const char *text, size_t size)
{
    domus_json_feed_options options = {
        .table = &part_table, .member = (how & 1) != 0 ? "parts" : NULL, .element_max = 64};

    if ((how & 2) != 0)
        options.bytes_max = 100;
    fed whole = feed_text_in_pieces_of_size(&options, text, size, size + 1);
    fed cut = feed_text_in_pieces_of_size(&options, text, size, 1 + (how >> 2));
    domt_fuzz_abort_unless(whole.error == cut.error && whole.count == cut.count &&
                           whole.sum == cut.sum);
    if (whole.error == 0)
        return;
    check_error_of_json(&whole.told, whole.error, size);
    domt_fuzz_abort_unless(strcmp(whole.told.path, cut.told.path) == 0);
    domt_fuzz_abort_unless(strcmp(whole.told.words, cut.told.words) == 0);
    domt_fuzz_abort_unless(whole.told.offset == cut.told.offset &&
                           whole.told.line == cut.told.line);
}

/* --- the writer --------------------------------------------------------------------------------
 */

/* Take one step of a writer: the first byte chooses it, and some steps use the next bytes as a
 * value. Returns how many bytes were used. */
static size_t take_step_of_writer(domus_json_writer *writer, const char *steps, size_t left)
{
    uint64_t bits = 0;
    double real;
    char name[4] = {0};

    memcpy(&bits, steps + 1, left - 1 < sizeof bits ? left - 1 : sizeof bits);
    memcpy(&real, &bits, sizeof real);
    memcpy(name, &bits, 3);
    switch (steps[0] & 15) {
    case 0:
        (void)domus_json_put_object(writer);
        return 1;
    case 1:
        (void)domus_json_put_array(writer);
        return 1;
    case 2:
        (void)domus_json_put_end(writer);
        return 1;
    case 3:
        (void)domus_json_put_key(writer, name);
        return 4;
    case 4:
        (void)domus_json_put_real(writer, real);
        return 9;
    case 5:
        (void)domus_json_put_int(writer, (int64_t)bits);
        return 9;
    case 6:
        (void)domus_json_put_uint(writer, bits);
        return 9;
    case 7:
        (void)domus_json_put_bytes(writer, &bits, sizeof bits);
        return 9;
    case 8:
        (void)domus_json_put_raw(writer, &bits, sizeof bits);
        return 9;
    case 9:
        (void)domus_json_put_text(writer, (steps[0] & 16) != 0 ? name : NULL);
        return 4;
    default:
        (void)domus_json_put_bool(writer, (steps[0] & 16) != 0);
        return 1;
    }
}

static void write_by_steps_of_input(const char *steps, size_t size)
{
    domus_json_options options = {.bytes_max = DOMUS_JSON_BYTES_MAX};
    domus_appender appender = {0};
    domus_json_writer writer = {.to = &appender, .replaces = (size & 1) != 0};
    domus_slice bytes;

    for (size_t at = 0; at < size && writer.error == 0;)
        at += take_step_of_writer(&writer, steps + at, size - at);
    int result = domus_json_finish(&writer);
    if (result != 0) {
        domus_append_drop(&appender);
        return;
    }
    domt_fuzz_abort_unless(domus_append_end(&appender, &bytes) == 0);
    result = domus_json_check(&options, domus_slice_data(bytes), bytes.size, NULL);
    /* -EMSGSIZE: a raw value nests deeper than the limit */
    domt_fuzz_abort_unless(result == 0 || result == -EMSGSIZE);
    domus_slice_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const domus_json_options small = {.bytes_max = 200, .memory_max = 100, .depth_max = 4};

    if (size < 2)
        return 0;
    const char *text = (const char *)data + 2;
    switch (data[0] % 6) {
    case 0:
        read_text_by_table(&strict_table, NULL, text, size - 2);
        break;
    case 1:
        read_text_by_table(&loose_table, NULL, text, size - 2);
        break;
    case 2:
        read_text_by_table(&loose_table, &small, text, size - 2);
        break;
    case 3:
        check_text_without_table(text, size - 2);
        break;
    case 4:
        compare_feeds_in_pieces(data[1], text, size - 2);
        break;
    default:
        write_by_steps_of_input(text, size - 2);
        break;
    }
    return 0;
}
