/* A wrong table of fields or list of types is refused before it is used, and a type of a correct
 * list is found by its pointer and by its name. */
#include "tests/cluster/pickles.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct domt_some {
    uint8_t small;
    int32_t number;
    uint64_t large;
    bool flag;
    bool other;
    double real;
    char text[4];
    char one[1];
    char *owned;
    domus_slice slice;
    domus_address address;
    domus_endpoint endpoint;
    domt_part part;
    uint16_t list[3];
    uint8_t count;
    uint32_t *pointed;
    uint32_t pointed_count;
    domt_color color;
} domt_some;

static void expect_wrong_table(const domus_pickle_field *fields, uint32_t count, const char *text)
{
    const domus_pickle_table table = {fields, count, sizeof(domt_some)};
    char error[DOMUS_PICKLE_ERROR_MAX] = "";

    int result = domus_pickle_check(&table, error, sizeof error);
    ck_assert_msg(result == -EINVAL && strcmp(error, text) == 0, "%d: %s\nnot %s", result, error,
                  text);
    ck_assert_int_eq(domus_pickle_check(&table, NULL, 0), -EINVAL);
}

#define WRONG(text, ...)                                                                           \
    do {                                                                                           \
        const domus_pickle_field fields[] = {{__VA_ARGS__}};                                       \
        expect_wrong_table(fields, 1, text);                                                       \
    } while (0)

#define WRONG_2(text, one, ...)                                                                    \
    do {                                                                                           \
        const domus_pickle_field fields[] = {{one}, {__VA_ARGS__}};                                \
        expect_wrong_table(fields, 2, text);                                                       \
    } while (0)

static const domus_pickle_word twice_a_word[] = {{"a", 1}, {"b", 2}, {"a", 3}, {NULL, 0}};
static const domus_pickle_word twice_a_value[] = {{"a", 1}, {"b", 257}, {NULL, 0}};
static const domus_pickle_word same_in_8_bits[] = {{"a", -1}, {"b", 255}, {NULL, 0}};
static const domus_pickle_word negative[] = {{"a", -1}, {NULL, 0}};
static const domus_pickle_word large[] = {{"a", INT64_C(1) << 31}, {NULL, 0}};
static const domus_pickle_word empty_word[] = {{"", 1}, {NULL, 0}};
static const domus_pickle_word long_word[] = {
    {"1234567890123456789012345678901234567890123456789012345678901234", 1}, {NULL, 0}};
static const domus_pickle_word no_words[] = {{NULL, 0}};

DOMT_TEST(row_of_another_type_than_its_member_is_refused)
{
    const char *other = "the member is of another type than the row says";
    char text[200];

#define OTHER(member, sort)                                                                        \
    do {                                                                                           \
        (void)snprintf(text, sizeof text, "%s: %s", #member, other);                               \
        WRONG(text, DOMUS_PICKLE(1, domt_some, member, sort));                                     \
    } while (0)
    OTHER(small, INT(0));
    OTHER(number, UINT(0));
    OTHER(large, REAL(0));
    OTHER(real, UINT(0));
    OTHER(small, BOOL(false));
    OTHER(flag, UINT(0));
    OTHER(owned, UINT(0));
    OTHER(large, OWNED_TEXT(9, NULL));
    OTHER(number, TEXT(NULL));
    OTHER(slice, TEXT(NULL));
    OTHER(slice, ADDRESS);
    OTHER(address, SLICE(9));
    OTHER(slice, TEXT(NULL));
    OTHER(flag, ENUM(twice_a_word + 2, 3));
    WRONG("slice: the member has 16 bytes, not 120", DOMUS_PICKLE(1, domt_some, slice, ENDPOINT));
    WRONG("text: a number of 3 bytes", .name = "text", .size = 3, .number = 1,
          .kind = DOMUS_PICKLE_KIND_UINT);
    WRONG("number: the member has 4 bytes, not 1", DOMUS_PICKLE(1, domt_some, number, BOOL(false)));
    WRONG("small: the member has 1 bytes, not 8", DOMUS_PICKLE(1, domt_some, small, REAL(0)));
    WRONG("number: the member has 4 bytes, not 8",
          DOMUS_PICKLE(1, domt_some, number, OWNED_TEXT(1, NULL)));
    WRONG("part: the table is one of 1200 bytes, and the struct has 48", .name = "part", .size = 48,
          .number = 1, .kind = DOMUS_PICKLE_KIND_STRUCT,
          .table = &(domus_pickle_table){.size = 1200});
    WRONG("part: a struct without a table", .name = "part", .size = 48, .number = 1,
          .kind = DOMUS_PICKLE_KIND_STRUCT);
    WRONG("part: a row without a sort", .name = "part", .size = 48, .number = 1);
}

DOMT_TEST(wrong_range_or_default_of_a_member_is_refused)
{
    const char *range = "small: the range is empty, or larger than the member";
    const char *preset = "small: the default is out of range";

    WRONG(range, DOMUS_PICKLE(1, domt_some, small, UINT_RANGE(3, 2, 3)));
    WRONG(range, DOMUS_PICKLE(1, domt_some, small, UINT_RANGE(0, 256, 3)));
    WRONG(preset, DOMUS_PICKLE(1, domt_some, small, UINT_RANGE(2, 3, 1)));
    WRONG(preset, DOMUS_PICKLE(1, domt_some, small, UINT_RANGE(2, 3, 4)));
    WRONG(preset, DOMUS_PICKLE(1, domt_some, small, UINT(256)));
    range = "number: the range is empty, or larger than the member";
    preset = "number: the default is out of range";
    WRONG(range, DOMUS_PICKLE(1, domt_some, number, INT_RANGE(3, 2, 3)));
    WRONG(range, DOMUS_PICKLE(1, domt_some, number, INT_RANGE(-2147483649, 2, 2)));
    WRONG(range, DOMUS_PICKLE(1, domt_some, number, INT_RANGE(-2, 2147483648, 2)));
    WRONG(preset, DOMUS_PICKLE(1, domt_some, number, INT_RANGE(-2, 2, 3)));
    WRONG(preset, DOMUS_PICKLE(1, domt_some, number, INT_RANGE(-2, 2, -3)));
    WRONG(preset, DOMUS_PICKLE(1, domt_some, number, INT(2147483648)));
    WRONG("text: the default is too long", DOMUS_PICKLE(1, domt_some, text, TEXT("1234")));
    WRONG("one: a text needs room for a byte and a zero",
          DOMUS_PICKLE(1, domt_some, one, TEXT(NULL)));
    WRONG("owned: the default is too long",
          DOMUS_PICKLE(1, domt_some, owned, OWNED_TEXT(3, "1234")));
    WRONG("owned: the bound is 0, or above 1073741824",
          DOMUS_PICKLE(1, domt_some, owned, OWNED_TEXT(0, NULL)));
    WRONG("slice: the bound is 0, or above 1073741824",
          DOMUS_PICKLE(1, domt_some, slice, SLICE(DOMUS_SLICE_MAX + 1)));
}

DOMT_TEST(wrong_list_of_enum_values_is_refused)
{
    static domus_pickle_word many[DOMUS_PICKLE_WORDS_MAX + 2];
    static char words[DOMUS_PICKLE_WORDS_MAX + 1][8];

    WRONG("number: \"a\" is there twice, or its value",
          DOMUS_PICKLE(1, domt_some, number, ENUM(twice_a_word, 1)));
    WRONG("small: the value of \"b\" does not fit into the member",
          DOMUS_PICKLE(1, domt_some, small, ENUM(twice_a_value, 1)));
    WRONG("one[0]: \"b\" is there twice, or its value",
          DOMUS_PICKLE(1, domt_some, one[0], ENUM(same_in_8_bits, -1)));
    WRONG("small: the value of \"a\" does not fit into the member",
          DOMUS_PICKLE(1, domt_some, small, ENUM(negative, -1)));
    WRONG("number: the value of \"a\" does not fit into the member",
          DOMUS_PICKLE(1, domt_some, number, ENUM(large, 1)));
    WRONG("number: a word has 1 to 63 bytes",
          DOMUS_PICKLE(1, domt_some, number, WORD(empty_word, 1)));
    WRONG("number: a word has 1 to 63 bytes",
          DOMUS_PICKLE(1, domt_some, number, WORD(long_word, 1)));
    WRONG("number: the default is none of the values",
          DOMUS_PICKLE(1, domt_some, number, WORD(no_words, 1)));
    WRONG("number: an enum without a list of values",
          DOMUS_PICKLE(1, domt_some, number, WORD(NULL, 1)));
    for (uint32_t i = 0; i < DOMUS_PICKLE_WORDS_MAX + 1; i++) {
        (void)snprintf(words[i], sizeof words[i], "w%u", i);
        many[i] = (domus_pickle_word){words[i], (int64_t)i};
    }
    WRONG("number: more than 256 values", DOMUS_PICKLE(1, domt_some, number, ENUM(many, 1)));
}

DOMT_TEST(wrong_place_or_shape_of_a_member_is_refused)
{
    const char *beyond = "part: the row reaches beyond the struct";

    WRONG("small: the numbers of a table go up, from 1 to 127",
          DOMUS_PICKLE(0, domt_some, small, UINT(0)));
    WRONG("small: the numbers of a table go up, from 1 to 127",
          DOMUS_PICKLE(128, domt_some, small, UINT(0)));
    WRONG_2("number: the numbers of a table go up, from 1 to 127",
            DOMUS_PICKLE(2, domt_some, small, UINT(0)), DOMUS_PICKLE(2, domt_some, number, INT(0)));
    WRONG_2("small: the row has bytes of \"small\"", DOMUS_PICKLE(1, domt_some, small, UINT(0)),
            DOMUS_PICKLE(2, domt_some, small, UINT(0)));
    WRONG_2("list: the row has bytes of \"count\"", DOMUS_PICKLE(1, domt_some, count, UINT(0)),
            DOMUS_PICKLE_LIST(2, domt_some, list, count, UINT(0)));
    WRONG_2("pointed: the row has bytes of \"list\"",
            DOMUS_PICKLE_LIST(1, domt_some, list, pointed_count, UINT(0)),
            DOMUS_PICKLE_OWNED(2, domt_some, pointed, pointed_count, 3, UINT(0)));
    WRONG_2("number: the row has bytes of \"flag\"", DOMUS_PICKLE(1, domt_some, flag, BOOL(true)),
            DOMUS_PICKLE(2, domt_some, number, INT(0)), DOMUS_PICKLE_HAS(domt_some, flag));
    WRONG("list: its members have the same bytes",
          DOMUS_PICKLE_LIST(1, domt_some, list, list[2], UINT(0)));
    WRONG(beyond, .name = "part", .offset = sizeof(domt_some) - 1, .size = 2, .number = 1,
          .kind = DOMUS_PICKLE_KIND_UINT);
    WRONG(beyond, .name = "part", .size = 1, .number = 1, .shape = DOMUS_PICKLE_FIXED,
          .count_max = sizeof(domt_some) + 1, .kind = DOMUS_PICKLE_KIND_UINT);
    WRONG(beyond, .name = "part", .size = 1, .number = 1, .shape = DOMUS_PICKLE_POINTED,
          .offset = sizeof(domt_some) - 4, .count_size = 1, .count_max = 9,
          .kind = DOMUS_PICKLE_KIND_UINT);
    WRONG(beyond, .name = "part", .size = 1, .number = 1, .shape = DOMUS_PICKLE_POINTED,
          .count_offset = sizeof(domt_some), .count_size = 1, .count_max = 9,
          .kind = DOMUS_PICKLE_KIND_UINT);
    WRONG(beyond, .name = "part", .size = 1, .number = 1, .kind = DOMUS_PICKLE_KIND_UINT, .has = 1,
          .has_offset = sizeof(domt_some));
    WRONG("pointed: the elements are not where the row says", .name = "pointed", .size = 4,
          /* gcc warns of this row within the macro, so it is written out */
          .number = 1, .shape = DOMUS_PICKLE_FIXED, .elements = 'p');
    WRONG("pointed: the elements are not where the row says", .name = "pointed", .size = 4,
          .number = 1, .shape = DOMUS_PICKLE_COUNTED, .elements = 'p');
    WRONG("list: the elements are not where the row says",
          DOMUS_PICKLE_OWNED(1, domt_some, list, count, 3, UINT(0)));
    WRONG("flag: the member that says whether it is there is no bool",
          DOMUS_PICKLE(1, domt_some, flag, BOOL(true)), DOMUS_PICKLE_HAS(domt_some, number));
    WRONG("part: a row without a shape", .name = "part", .size = 1, .number = 1, .shape = 4);
    WRONG("a row without a name", .size = 1, .number = 1);
    WRONG("flag: a required field cannot be absent", DOMUS_PICKLE(1, domt_some, flag, BOOL(true)),
          DOMUS_PICKLE_HAS(domt_some, other), .required = true);
    WRONG("pointed: the bound of elements is 0, or above 16777216",
          DOMUS_PICKLE_OWNED(1, domt_some, pointed, pointed_count, 0, UINT(0)));
    WRONG("pointed: the bound of elements is 0, or above 16777216",
          DOMUS_PICKLE_OWNED(1, domt_some, pointed, pointed_count, (1u << 24) + 1, UINT(0)));
    WRONG("pointed: the count cannot be 256",
          DOMUS_PICKLE_OWNED(1, domt_some, pointed, count, 256, UINT(0)));
    WRONG("pointed: the count cannot be 25",
          DOMUS_PICKLE_OWNED(1, domt_some, pointed, slice, 25, UINT(0)));
}

DOMT_TEST(table_that_is_too_large_or_in_itself_is_refused)
{
    static domus_pickle_field fields[DOMUS_PICKLE_FIELDS_MAX + 1];
    static domus_pickle_table itself;
    static const domus_pickle_field child = {
        DOMUS_PICKLE_OWNED(1, domt_some, pointed, pointed_count, 9, STRUCT(itself))};

    for (uint32_t i = 0; i < DOMUS_PICKLE_FIELDS_MAX + 1; i++)
        fields[i] = (domus_pickle_field){.name = "byte",
                                         .offset = i,
                                         .size = 1,
                                         .number = (uint8_t)(i + 1),
                                         .kind = DOMUS_PICKLE_KIND_UINT};
    expect_wrong_table(fields, DOMUS_PICKLE_FIELDS_MAX + 1, "a table of more than 64 rows");
    const domus_pickle_table most = {fields, DOMUS_PICKLE_FIELDS_MAX, 64};
    ck_assert_int_eq(domus_pickle_check(&most, NULL, 0), 0);
    itself = (domus_pickle_table){&child, 1, sizeof(domt_some)};
    domus_pickle_field row = child;
    row.size = sizeof(domt_some);
    row.member = 0;
    itself.fields = &row;
    expect_wrong_table(&row, 1, "pointed: tables in tables deeper than 16, or in themselves");
}

/* --- lists of picklers ---------------------------------------------------------------------------
 */

static const domus_type one_type = {"one", 0, NULL};
static const domus_type two_type = {"two", 0, NULL};
static const domus_type part_type = {"part", sizeof(domt_part), NULL};
static const domus_type nameless_type = {NULL, 0, NULL};

static int write_nil(domus_pickle_writer *writer, const void *payload)
{
    return domus_pickle_put_nil(writer);
}

static int skip_value(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    return domus_pickle_skip(reader);
}

#define LIST(text, ...)                                                                            \
    do {                                                                                           \
        const domus_pickler list[] = {__VA_ARGS__, {.type = NULL}};                                \
        domus_picklers *picklers = NULL;                                                           \
        char error[DOMUS_PICKLE_ERROR_MAX] = "";                                                   \
        int result = domus_picklers_new(list, error, sizeof error, &picklers);                     \
        ck_assert_msg(result == -EINVAL && strcmp(error, text) == 0, "%d: %s\nnot %s", result,     \
                      error, text);                                                                \
        ck_assert_int_eq(domus_picklers_new(list, NULL, 0, &picklers), -EINVAL);                   \
        ck_assert_ptr_null(picklers);                                                              \
    } while (0)

DOMT_TEST(wrong_list_of_picklers_is_refused)
{
    const char *versions = "one: the version is 0, or older than the oldest one";

    LIST(versions, {.type = &one_type});
    LIST(versions, {.type = &one_type, .version = 1, .oldest = 2});
    LIST("one: it has one of two functions", {.type = &one_type, .version = 1, .write = write_nil});
    LIST("one: it has one of two functions", {.type = &one_type, .version = 1, .read = skip_value});
    LIST("part: it has a table and functions", {.type = &part_type,
                                                .version = 1,
                                                .table = &domt_part_table,
                                                .write = write_nil,
                                                .read = skip_value});
    LIST("part: it has neither a table nor functions", {.type = &part_type, .version = 1});
    LIST("part: it owns memory, and its type has no release",
         {.type = &part_type, .version = 1, .table = &domt_part_table});
    LIST("one: the table is one of 40 bytes, and the payload has 0",
         {.type = &one_type, .version = 1, .table = &domt_part_table});
    LIST("type 0 has no name", {.type = &nameless_type, .version = 1});
    LIST(": a name has 1 to 63 bytes", {.type = &one_type, .name = "", .version = 1});
    LIST("1234567890123456789012345678901234567890123456789012345678901234: "
         "a name has 1 to 63 bytes",
         {.type = &one_type,
          .name = "1234567890123456789012345678901234567890123456789012345678901234",
          .version = 1});
    LIST("one: the type is there twice", {.type = &one_type, .version = 1},
         {.type = &two_type, .version = 1}, {.type = &one_type, .version = 2});
    LIST("one: its name has the same hash as \"one\"", {.type = &one_type, .version = 1},
         {.type = &two_type, .name = "one", .version = 1});
    /* these two names have the same hash of FNV-1a */
    LIST("8yn0iYCKYHlIj4-BwPqk: its name has the same hash as \"GReLUrM4wMqfg9yzV3KQ\"",
         {.type = &one_type, .name = "GReLUrM4wMqfg9yzV3KQ", .version = 1},
         {.type = &two_type, .name = "8yn0iYCKYHlIj4-BwPqk", .version = 1});
}

DOMT_TEST(pickler_of_each_of_many_types_is_found)
{
    static domus_type types[DOMUS_PICKLERS_MAX + 1];
    static char names[DOMUS_PICKLERS_MAX + 1][12];
    static domus_pickler list[DOMUS_PICKLERS_MAX + 2];
    domus_picklers *picklers = NULL;
    char error[DOMUS_PICKLE_ERROR_MAX] = "";

    for (uint32_t i = 0; i < DOMUS_PICKLERS_MAX + 1; i++) {
        (void)snprintf(names[i], sizeof names[i], "type %u", i);
        types[i].name = names[i];
        list[i] = (domus_pickler){.type = &types[i], .version = 1};
    }
    ck_assert_int_eq(domus_picklers_new(list, error, sizeof error, &picklers), -E2BIG);
    ck_assert_str_eq(error, "more than 4096 types");
    ck_assert_int_eq(domus_picklers_new(list, NULL, 0, &picklers), -E2BIG);
    list[DOMUS_PICKLERS_MAX].type = NULL;
    picklers = domt_make_picklers(list);
    for (uint32_t i = 0; i < DOMUS_PICKLERS_MAX; i++) {
        ck_assert_ptr_eq(domus_pickler_of_type(picklers, &types[i]), &list[i]);
        ck_assert_ptr_eq(domus_pickler_of_hash(picklers, domus_pickle_hash(names[i])), &list[i]);
    }
    ck_assert_ptr_null(domus_pickler_of_type(picklers, &types[DOMUS_PICKLERS_MAX]));
    ck_assert_ptr_null(domus_pickler_of_type(picklers, &one_type));
    for (uint64_t i = 0; i < 20000; i++)
        ck_assert_ptr_null(domus_pickler_of_hash(picklers, i * UINT64_C(0x100000001)));
    domus_picklers_free(picklers);
    domus_picklers_free(NULL);
    list[0].type = NULL; /* the list ends before its first type now */
    picklers = domt_make_picklers(list);
    ck_assert_ptr_null(domus_pickler_of_type(picklers, &types[0]));
    ck_assert_ptr_null(domus_pickler_of_hash(picklers, 0));
    domus_picklers_free(picklers);
}

DOMT_TEST(type_without_a_pickler_is_refused)
{
    const domus_pickler list[] = {{.type = &one_type, .version = 1}, {.type = NULL}};
    domus_picklers *picklers = domt_make_picklers(list);
    domus_appender appender = {.error = -EIO};
    char error[DOMUS_PICKLE_ERROR_MAX] = "";
    char buffer[64];
    size_t size = 0;

    ck_assert_int_eq(domus_pickle_into(picklers, NULL, &two_type, NULL, buffer, sizeof buffer,
                                       &size, error, sizeof error),
                     -ENOENT);
    ck_assert_str_eq(error, "two: the type has no pickler");
    ck_assert_int_eq(domus_pickle(picklers, NULL, &one_type, NULL, &appender, error, sizeof error),
                     -EIO);
    ck_assert_str_eq(error, "one: the appender has an error");
    appender.error = 0;
    ck_assert_int_eq(domus_pickle(picklers, NULL, &two_type, NULL, &appender, error, sizeof error),
                     -ENOENT);
    domus_picklers_free(picklers);
}

/* A later version of the type may have a payload; this version, which has none, skips it. */
DOMT_TEST(type_without_a_payload_is_an_empty_map)
{
    const domus_pickler list[] = {{.type = &one_type, .version = 1}, {.type = NULL}};
    domus_picklers *picklers = domt_make_picklers(list);
    char error[DOMUS_PICKLE_ERROR_MAX] = "";

    domt_expect_payload_is_read_back(list, "\x80", 1);
    domt_expect_payload_is_refused(list, "\xc0", 1, -EBADMSG, "one: is nil, not a map");
    domus_slice bytes = domt_make_pickled_message("one", 2, "\x81\x01\x92\x01\x02", 5);
    ck_assert_int_eq(domt_unpickle_message(picklers, NULL, bytes, NULL, error, sizeof error), 0);
    domus_slice_free(bytes);
    domus_picklers_free(picklers);
}

/* --- check ---------------------------------------------------------------------------------------
 */

static int check_id_of_part(const void *payload, uint32_t version, char *error, size_t error_size)
{
    const domt_part *part = payload;

    if (part->id == 5)
        return -EDOM; /* refuses the payload with an error that has no text */
    if (part->id <= version)
        return 0;
    (void)snprintf(error, error_size, "the id is above %u", version);
    return -EXDEV;
}

static void release_part(void *payload)
{
    domus_pickle_release(&domt_part_table, payload);
}

DOMT_TEST(check_of_the_program_refuses_what_is_read)
{
    static const domus_type checked = {"checked", sizeof(domt_part), release_part};
    const domus_pickler list[] = {
        {.type = &checked, .version = 3, .table = &domt_part_table, .check = check_id_of_part},
        {.type = NULL}};

    domt_expect_payload_is_read_back(
        list, "\x85\x01\x03\x02\xc0\x03\x93\0\0\0\x04\xca\0\0\0\0\x05\xc4\0", 19);
    domt_expect_payload_is_refused(list, "\x82\x01\x04\x02\xa1x", 6, -EXDEV,
                                   "checked: the id is above 3");
    domt_expect_payload_is_refused(list, "\x81\x01\x05", 3, -EDOM, "checked: is refused");
}

DOMT_SUITE(20)
