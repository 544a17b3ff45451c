/* The limits of a reader, each at exactly its size. */
#include "tests/json/things.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Make a text with `count` copies of `middle`, separated by `comma` if it is not empty. */
static char *repeat_text(const char *begin, const char *middle, const char *comma, uint32_t count,
                         const char *end)
{
    size_t each = strlen(middle) + strlen(comma);
    char *text = malloc(strlen(begin) + count * each + strlen(end) + 1);
    char *at = text;

    ck_assert_ptr_nonnull(text);
    at = stpcpy(at, begin);
    for (uint32_t i = 0; i < count; i++)
        at = stpcpy(stpcpy(at, i == 0 ? "" : comma), middle);
    (void)stpcpy(at, end);
    return text;
}

static const struct bound {
    const char *begin, *middle, *comma, *end;
    uint32_t most; /* largest number of copies of `middle` */
    const char *told;
} bounds[] = {
    {"{\"u8\":1,\"name\":\"", "x", "", "\"}", 15, "name: longer than 15 bytes"},
    {"{\"u8\":1,\"text\":\"", "x", "", "\"}", 100, "text: longer than 100 bytes"},
    {"{\"u8\":1,\"text\":\"", "\\u00e4", "", "\"}", 50, "text: longer than 100 bytes"},
    {"{\"u8\":1,\"raw\":\"", "x", "", "\"}", 38, "raw: longer than 40 bytes"},
    {"{\"u8\":1,\"raws\":[[", "1", ",", "]]}", 9, "raws[0]: longer than 20 bytes"},
    {"{\"u8\":1,\"parts\":[", "{}", ",", "]}", 3, "parts[3]: more than 3 elements"},
    {"{\"u8\":1,\"many\":[", "{}", ",", "]}", 20, "many[20]: more than 20 elements"},
    {"{\"u8\":1,\"texts\":[", "\"a\"", ",", "]}", 10, "texts[10]: more than 10 elements"},
    {"{\"u8\":1,\"raws\":[", "1", ",", "]}", 5, "raws[5]: more than 5 elements"},
};

DOMT_TEST(bounds_of_rows_hold_at_exactly_their_size)
{
    domus_json_error error;
    char told[DOMUS_JSON_EXPLAIN_MAX];
    thing got;

    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        const struct bound *bound = &bounds[i];
        for (uint32_t over = 0; over < 2; over++) {
            char *text = repeat_text(bound->begin, bound->middle, bound->comma, bound->most + over,
                                     bound->end);
            int result = thing_read(text, &got, &error);
            ck_assert_msg(result == (over != 0 ? -EMSGSIZE : 0), "%s: %d", text, result);
            if (over == 0) {
                domus_json_release(&got.memory);
            } else {
                error.line = 0;
                ck_assert_str_eq(domus_json_explain(&error, told, sizeof told), bound->told);
            }
            free(text);
        }
    }
}

/* The limit of nesting holds everywhere: in objects of tables, in skipped values, and in values
 * kept as text. */
DOMT_TEST(depth_is_bounded_everywhere)
{
    static const struct {
        const char *begin, *end;
        uint32_t outer; /* number of objects around the nested value */
    } places[] = {{"", "", 0}, {"{\"x\":", ",\"u8\":1}", 1}, {"{\"u8\":1,\"raw\":", "}", 1}};
    domus_json_options options = {.depth_max = 6};
    thing got;

    for (size_t i = 0; i < 3; i++) {
        for (uint32_t depth = 1; depth <= 8; depth++) {
            char *opened = repeat_text(places[i].begin, "[", "", depth, "");
            char *text = repeat_text(opened, "]", "", depth, places[i].end);
            int result = i == 0 ? domus_json_check(&options, text, strlen(text), NULL)
                                : domus_json_read(&loose_table, &options, text, strlen(text), &got,
                                                  &got.memory, NULL);
            ck_assert_int_eq(result, depth + places[i].outer <= 6 ? 0 : -EMSGSIZE);
            if (i != 0 && result == 0)
                domus_json_release(&got.memory);
            free(opened);
            free(text);
        }
    }
    options.depth_max = 2;
    ck_assert_int_eq(
        domus_json_read(&thing_table, &options, "{\"u8\":1,\"parts\":[{}]}", 21, &got, NULL, NULL),
        -EMSGSIZE);
}

DOMT_TEST(depth_of_the_library_is_the_most)
{
    char *text = repeat_text("", "[", "", DOMUS_JSON_DEPTH_MAX, "");
    char *right = repeat_text(text, "]", "", DOMUS_JSON_DEPTH_MAX, "");
    char *wrong = repeat_text("[", right, "", 1, "]");
    domus_json_options options = {.depth_max = DOMUS_JSON_DEPTH_MAX + 1};
    domus_json_error error;

    ck_assert_int_eq(domus_json_check(NULL, right, strlen(right), NULL), 0);
    ck_assert_int_eq(domus_json_check(NULL, wrong, strlen(wrong), &error), -EMSGSIZE);
    ck_assert_str_eq(error.words, "nested deeper than 32");
    ck_assert_uint_eq(error.offset, DOMUS_JSON_DEPTH_MAX);
    ck_assert_int_eq(domus_json_check(&options, "1", 1, NULL), -EINVAL);
    options = (domus_json_options){.bytes_max = DOMUS_JSON_BYTES_MAX + 1};
    ck_assert_int_eq(domus_json_check(&options, "1", 1, NULL), -EINVAL);
    free(text);
    free(right);
    free(wrong);
}

DOMT_TEST(bytes_are_bounded)
{
    domus_json_options options = {.bytes_max = 8};
    char *text = repeat_text("\"", "x", "", DOMUS_JSON_BYTES_PRESET - 2, "\"");
    domus_json_error error;

    ck_assert_int_eq(domus_json_check(&options, "\"123456\"", 8, NULL), 0);
    ck_assert_int_eq(domus_json_check(&options, "\"123456\" ", 9, &error), -EFBIG);
    ck_assert_uint_eq(error.line, 0);
    ck_assert_int_eq(domus_json_check(NULL, text, DOMUS_JSON_BYTES_PRESET, NULL), 0);
    ck_assert_int_eq(domus_json_check(NULL, text, DOMUS_JSON_BYTES_PRESET + 1, NULL), -EFBIG);
    free(text);
}

/* Memory is counted in blocks: the first block has 1,024 bytes, or less if the limit is smaller. */
static const struct memory_case {
    const char *text;
    uint32_t wanted;  /* bytes of memory needed */
    const char *path; /* path of the value that does not fit in one byte less */
} memory_cases[] = {
    /* four texts of 3 bytes and a zero, and the array of four pointers */
    {"{\"u8\":1,\"texts\":[\"abc\",\"abc\",\"abc\",\"abc\"]}",
     DOMUS_JSON_MEMORY_BLOCK + 4 * DOMUS_JSON_MEMORY_STEP + 4 * sizeof(char *), "texts[3]"},
    /* a text takes a step, however short it is */
    {"{\"u8\":1,\"text\":\"\"}", DOMUS_JSON_MEMORY_BLOCK + DOMUS_JSON_MEMORY_STEP, "text"},
    {"{\"u8\":1,\"text\":\"0123456789abcde\"}", DOMUS_JSON_MEMORY_BLOCK + DOMUS_JSON_MEMORY_STEP,
     "text"},
    {"{\"u8\":1,\"text\":\"0123456789abcdef\"}",
     DOMUS_JSON_MEMORY_BLOCK + 2 * DOMUS_JSON_MEMORY_STEP, "text"},
    /* an array that grows to 16 elements has no room in the first block */
    {"{\"u8\":1,\"many\":[{},{},{},{},{},{},{},{},{}]}",
     DOMUS_JSON_MEMORY_BLOCK + 1024 + DOMUS_JSON_MEMORY_BLOCK + 16 * sizeof(part), "many[8]"},
};

DOMT_TEST(memory_is_bounded_and_needs_a_taker)
{
    domus_json_error error;
    thing got;

    for (size_t i = 0; i < sizeof memory_cases / sizeof memory_cases[0]; i++) {
        const struct memory_case *row = &memory_cases[i];
        domus_json_options options = {.memory_max = row->wanted};
        size_t size = strlen(row->text);
        ck_assert_int_eq(
            domus_json_read(&thing_table, &options, row->text, size, &got, &got.memory, NULL), 0);
        domus_json_release(&got.memory);
        options.memory_max--;
        ck_assert_int_eq(
            domus_json_read(&thing_table, &options, row->text, size, &got, &got.memory, &error),
            -EMSGSIZE);
        ck_assert_str_eq(error.path, row->path);
        ck_assert_int_eq(domus_json_read(&thing_table, NULL, row->text, size, &got, NULL, &error),
                         -EINVAL);
    }
}

/* Texts with lengths around the size of the buffer on the stack, and around the steps of 8 and 32
 * bytes in which they are copied. The end of the text is the end of its memory. */
DOMT_TEST(texts_of_each_length_are_read)
{
    thing got;

    for (uint32_t length = 0; length < 90; length++) {
        char *text = repeat_text("{\"u8\":1,\"text\":\"", "y", "", length, "\"}");
        size_t size = strlen(text);
        char *exact = malloc(size);
        memcpy(exact, text, size);
        ck_assert_int_eq(domus_json_read(&thing_table, NULL, exact, size, &got, &got.memory, NULL),
                         0);
        ck_assert_uint_eq(strlen(got.text), length);
        domus_json_release(&got.memory);
        for (size_t cut = 0; cut < size; cut++)
            ck_assert_int_eq(
                domus_json_read(&thing_table, NULL, exact, cut, &got, &got.memory, NULL), -EBADMSG);
        free(exact);
        free(text);
    }
    for (uint32_t spaces = 4050; spaces < 4100; spaces++) {
        char *text = repeat_text("{\"u8\":1", " ", "", spaces, "}");
        ck_assert_int_eq(thing_read(text, &got, NULL), 0);
        domus_json_release(&got.memory);
        free(text);
    }
}

/* A path that is too long keeps its inner end. */
static const domus_json_table deep_table;
struct deep {
    struct deep *deeper;
    uint8_t count;
    uint8_t leaf;
};
static const domus_json_field deep_fields[] = {
    {DOMUS_JSON_ARRAY("a_name_that_is_rather_long", struct deep, deeper, count, 1,
                      OBJECT(deep_table))},
    {DOMUS_JSON_UINT("leaf", struct deep, leaf, 0, 9)},
};
static const domus_json_table deep_table = DOMUS_JSON_TABLE(struct deep, deep_fields);

DOMT_TEST(long_paths_are_cut_at_their_outer_end)
{
    char *opened = repeat_text("", "{\"a_name_that_is_rather_long\":[", "", 10, "{\"leaf\":10");
    char *text = repeat_text(opened, "}]", "", 10, "}");
    domus_json_memory memory;
    domus_json_error error;
    struct deep deep;
    char complaint[100] = "";

    ck_assert_msg(domus_json_check_table(&deep_table, complaint, sizeof complaint) == 0, "%s",
                  complaint);
    ck_assert_int_eq(domus_json_read(&deep_table, NULL, text, strlen(text), &deep, &memory, &error),
                     -ERANGE);
    ck_assert_uint_le(strlen(error.path), DOMUS_JSON_PATH_MAX);
    ck_assert_ptr_nonnull(strstr(error.path, "...a_name_that_is_rather_long[0]."));
    ck_assert_str_eq(error.path + strlen(error.path) - 8, "[0].leaf");
    free(opened);
    free(text);
}

DOMT_SUITE(60)
