/* Texts of JSON in pieces, and the texts of JSONTestSuite, which have to be read or refused. */
#include "tests/json/things.h"
#include "tests/support/suite.h"

#include <domus/json.h>
#include <domus/json_feed.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Arrays of JSON that come in pieces have the same elements and errors wherever the bytes are
 * cut. */

#define ELEMENTS_MOST 16u

/* The elements and the error that came of feeding a text. */
typedef struct outcome {
    int error; /* error of the feed; 0: it read the text to the end */
    uint32_t count;
    uint32_t numbers[ELEMENTS_MOST];
    char told[DOMUS_JSON_EXPLAIN_MAX];
} outcome;

/* Feed a text in pieces of `step` bytes, each piece in a block of memory of its own. */
static void feed_text_in_pieces(const domus_json_feed_options *options, const char *text,
                                size_t size, size_t step, outcome *ret_outcome)
{
    domus_json_feed *feed;
    domus_json_error error = {.line = 0};
    domus_json_memory memory;
    part got;
    int result = 0;

    *ret_outcome = (outcome){.error = 0};
    ck_assert_int_eq(domus_json_feed_new(options, &feed), 0);
    for (size_t at = 0; at < size && result == 0; at += step) {
        size_t length = size - at < step ? size - at : step;
        char *piece = malloc(length);
        memcpy(piece, text + at, length);
        ck_assert_int_eq(domus_json_feed_put(feed, piece, length), 0);
        while ((result = domus_json_feed_next(feed, &got, &memory, &error)) == 1) {
            ck_assert_uint_lt(ret_outcome->count, ELEMENTS_MOST);
            ret_outcome->numbers[ret_outcome->count++] = got.number;
            domus_json_release(&memory);
        }
        free(piece);
    }
    if (result == 0)
        result = domus_json_feed_end(feed, &error);
    ret_outcome->error = result;
    if (result != 0) {
        (void)domus_json_explain(&error, ret_outcome->told, sizeof ret_outcome->told);
        ck_assert_int_eq(error.error, result);
        ck_assert_int_eq(domus_json_feed_next(feed, &got, &memory, NULL), result);
        ck_assert_int_eq(domus_json_feed_put(feed, "", 0), result);
    }
    ck_assert_uint_eq(domus_json_feed_count(feed), ret_outcome->count);
    domus_json_feed_free(feed);
}

static const struct text {
    const char *member, *text;
    uint32_t count;
    int error;
    const char *told;
} texts[] = {
    {NULL, "[]", 0, 0, NULL},
    {NULL, " [ ] \n", 0, 0, NULL},
    {NULL, "[{}]", 1, 0, NULL},
    {NULL, "[{\"number\":1},{\"number\":2,\"text\":\"]}\\\"\\\\\"},\n{\"number\":3}]", 3, 0, NULL},
    {"items", "{\"items\":[]}", 0, 0, NULL},
    {"items", "{\"a\":1,\"b\":{\"items\":[7]},\"items\":[{\"number\":5}],\"c\":\"x\",\"d\":[[]]}",
     1, 0, NULL},
    {"items", "{\"it\\u0065ms\" : [ {\"number\":5} , {} ] } ", 2, 0, NULL},
    {NULL, "", 0, -EBADMSG, "the text is cut off (line 1, column 1)"},
    {NULL, "{}", 0, -EPROTO, "not an array (line 1, column 1)"},
    {"items", "[]", 0, -EPROTO, "not an object (line 1, column 1)"},
    {"items", "{}", 0, -EPROTO, "items: is missing (line 1, column 3)"},
    {"items", "{\"items\\u0000\":[]}", 0, -EPROTO, "items: is missing (line 1, column 19)"},
    {"items", "{\"items\":{}}", 0, -EPROTO, "items: not an array (line 1, column 10)"},
    {"items", "{\"items\":[],\"items\":[]}", 0, -EPROTO,
     "items: is there twice (line 1, column 13)"},
    {"items", "{\"items\":[],\"x\":[1,]}", 0, -EBADMSG, "not a value (line 1, column 20)"},
    {"items", "{\"items\":[],\"\xff\":1}", 0, -EBADMSG,
     "the byte 0xff is no UTF-8 (line 1, column 14)"},
    {"items", "{\"items\" []}", 0, -EBADMSG, "':' is missing (line 1, column 10)"},
    {"items", "{\"items\":[] \"x\":1}", 0, -EBADMSG, "',' or '}' is missing (line 1, column 13)"},
    {"items", "{\"items\":[],}", 0, -EBADMSG, "a name in quotes is missing (line 1, column 13)"},
    {"items", "{\"x\":,\"items\":[]}", 0, -EBADMSG, "not a value (line 1, column 6)"},
    {NULL, "[{}", 1, -EBADMSG, "the text is cut off (line 1, column 4)"},
    {NULL, "[{},", 1, -EBADMSG, "[1]: the text is cut off (line 1, column 5)"},
    {NULL, "[{},]", 1, -EBADMSG, "[1]: not a value (line 1, column 5)"},
    {NULL, "[,{}]", 0, -EBADMSG, "[0]: not a value (line 1, column 2)"},
    {NULL, "[{} {}]", 1, -EBADMSG, "',' or ']' is missing (line 1, column 5)"},
    {NULL, "[{}]]", 1, -EBADMSG, "there is more behind the value (line 1, column 5)"},
    {NULL, "[{},7]", 1, -EPROTO, "[1]: not an object (line 1, column 5)"},
    {NULL, "[{},\"\xff\"]", 1, -EBADMSG, "[1]: the byte 0xff is no UTF-8 (line 1, column 6)"},
    {NULL, "[{},{]}]", 1, -EBADMSG, "[1]: a name in quotes is missing (line 1, column 6)"},
    {NULL, "[{},\n{},\n {\"numbers\":[1,\n 2,null]}]", 2, -EMSGSIZE,
     "[2].numbers[2]: more than 2 elements (line 4, column 4)"},
    {"items", "{\"x\":\n1,\"items\":[{},{\"number\":\n\n1001}]}", 1, -ERANGE,
     "items[1].number: 1001 is not in 0..1000 (line 4, column 1)"},
};

DOMT_TEST(elements_are_same_in_pieces_of_each_size)
{
    outcome got;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const struct text *text = &texts[i];
        domus_json_feed_options options = {.table = &part_table, .member = text->member};
        size_t size = strlen(text->text);
        for (size_t step = 1; step <= size + 1; step++) {
            feed_text_in_pieces(&options, text->text, size, step, &got);
            ck_assert_msg(got.error == text->error, "%s by %zu: %d", text->text, step, got.error);
            ck_assert_uint_eq(got.count, text->count);
            if (text->told != NULL)
                ck_assert_str_eq(got.told, text->told);
        }
    }
}

DOMT_TEST(limits_of_feed_hold_at_exact_size)
{
    /* Each element of the array in this text has 12 bytes. */
    static const char text[] = "[{\"number\":1},{\"number\":2}]";
    static const struct {
        domus_json_feed_options options;
        int error;
        const char *told;
    } cases[] = {
        {{.table = &part_table, .element_max = 12}, 0, ""},
        {{.table = &part_table, .element_max = 11},
         -EMSGSIZE,
         "[0]: longer than an element may be (line 1, column 2)"},
        {{.table = &part_table, .elements_max = 2}, 0, ""},
        {{.table = &part_table, .elements_max = 1},
         -EMSGSIZE,
         "[1]: more elements than there may be (line 1, column 15)"},
        {{.table = &part_table, .bytes_max = sizeof text - 1}, 0, ""},
        {{.table = &part_table, .bytes_max = sizeof text - 2},
         -EFBIG,
         "the text is too large (line 1, column 27)"},
    };
    outcome got;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t step = 1; step <= sizeof text; step++) {
            feed_text_in_pieces(&cases[i].options, text, sizeof text - 1, step, &got);
            ck_assert_msg(got.error == cases[i].error, "%zu by %zu: %d", i, step, got.error);
            ck_assert_str_eq(got.told, cases[i].told);
        }
    }
}

DOMT_TEST(memory_of_an_element_is_limited)
{
    static const char text[] = "[{\"text\":\"abc\"},{\"text\":\"0123456789abcdef\"}]";
    domus_json_feed_options options = {
        .table = &part_table, .memory_max = DOMUS_JSON_MEMORY_BLOCK + DOMUS_JSON_MEMORY_STEP};
    outcome got;

    feed_text_in_pieces(&options, text, sizeof text - 1, 5, &got);
    ck_assert_int_eq(got.error, -EMSGSIZE);
    ck_assert_str_eq(got.told, "[1].text: needs too much memory (line 1, column 25)");
}

DOMT_TEST(wrong_feed_options_are_refused)
{
    static const char long_name[DOMUS_JSON_NAME_MAX + 2] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    const domus_json_feed_options wrong[] = {
        {.table = NULL},
        {.table = &part_table, .member = ""},
        {.table = &part_table, .member = long_name},
        {.table = &part_table, .element_max = DOMUS_JSON_BYTES_MAX + 1},
    };
    domus_json_feed *feed = NULL;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domus_json_feed_new(&wrong[i], &feed), -EINVAL);
    domus_json_feed_free(NULL);
}

DOMT_TEST(feed_uses_a_piece_before_taking_the_next)
{
    domus_json_feed_options options = {.table = &part_table};
    domus_json_feed *feed;
    part got;

    ck_assert_int_eq(domus_json_feed_new(&options, &feed), 0);
    ck_assert_int_eq(domus_json_feed_put(feed, "[{}]", 4), 0);
    ck_assert_int_eq(domus_json_feed_put(feed, " ", 1), -EBUSY);
    ck_assert_int_eq(domus_json_feed_end(feed, NULL), -EBUSY);
    ck_assert_int_eq(domus_json_feed_next(feed, &got, NULL, NULL), 1);
    ck_assert_int_eq(domus_json_feed_next(feed, &got, NULL, NULL), 0);
    ck_assert_int_eq(domus_json_feed_put(feed, " ", 1), 0);
    ck_assert_int_eq(domus_json_feed_next(feed, &got, NULL, NULL), 0);
    ck_assert_int_eq(domus_json_feed_end(feed, NULL), 0);
    domus_json_feed_free(feed);
}

/* --- suite ------------------------------------------------------------------------------------ */

/* The cases of JSONTestSuite (by Nicolas Seriot, under the MIT licence), which are in suite.txt:
 * texts that have to be read are read, texts that have to be refused are refused, and of the texts
 * for which a parser may choose, the list below says which are read. */

/* The optional texts that this library reads: numbers that a double can represent, also after
 * rounding. */
static const char *const taken[] = {
    "i_number_double_huge_neg_exp", "i_number_real_underflow",        "i_number_too_big_neg_int",
    "i_number_too_big_pos_int",     "i_number_very_big_negative_int",
};

static char bytes[300000];

static size_t unescape_c_text(const char *text, size_t length, char *to)
{
    size_t size = 0;
    unsigned code;

    for (size_t i = 0; i < length; i++) {
        if (text[i] != '\\') {
            to[size++] = text[i];
            continue;
        }
        i++;
        if (text[i] == 'x') {
            ck_assert_int_eq(sscanf(text + i + 1, "%2x", &code), 1);
            to[size++] = (char)code;
            i += 2;
        } else {
            to[size++] = text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i];
        }
    }
    return size;
}

/* Returns the length of "COUNT*" at the begin of a case's text, or 0 if the text does not begin
 * so. */
static size_t read_count_of_repetition(const char *body, unsigned *ret_count)
{
    int used = 0;

    return sscanf(body, "%u*%n", ret_count, &used) == 1 ? (size_t)used : 0;
}

/* Decode the text of a case: either bytes with the escapes of C, or words of COUNT*BYTES. Returns
 * the size. */
static size_t decode_text_of_case(const char *body)
{
    size_t size = 0;
    unsigned count;

    if (read_count_of_repetition(body, &count) == 0)
        return unescape_c_text(body, strlen(body), bytes);
    while (*body != '\0') {
        body += read_count_of_repetition(body, &count);
        size_t length = strcspn(body, " ");
        for (; count != 0; count--)
            size += unescape_c_text(body, length, bytes + size);
        body += length + strspn(body + length, " ");
    }
    return size;
}

static bool is_case_to_be_read(const char *name)
{
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        if (strcmp(taken[i], name) == 0)
            return true;
    }
    return name[0] == 'y';
}

static void check_case_of_suite(const char *name, size_t size)
{
    domus_json_error error = {.line = 0};
    int result = domus_json_check(NULL, bytes, size, &error);

    ck_assert_msg((result == 0) == is_case_to_be_read(name), "%s: %d %s", name, result,
                  error.words);
    ck_assert_msg(result == 0 || (error.line != 0 && error.offset <= size), "%s has no place",
                  name);
}

DOMT_TEST(cases_of_suite_are_read_or_refused)
{
    static char line[4096];
    uint32_t counts[256] = {0};
    FILE *file = fopen(DOMT_SOURCE_DIR "/tests/json/suite.txt", "r");

    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *body = strchr(line, ' ');
        ck_assert_ptr_nonnull(body);
        *body++ = '\0';
        check_case_of_suite(line, decode_text_of_case(body));
        counts[(unsigned char)line[0]]++;
    }
    fclose(file);
    ck_assert_uint_eq(counts['y'], 95);
    ck_assert_uint_eq(counts['n'], 188);
    ck_assert_uint_eq(counts['i'], 35);
}

DOMT_SUITE(20)
