/* Wrong tables are refused, and correct tables are accepted. Most rows are written without the
 * macros, because these do not compile for members of another type. */
#include "tests/json/things.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const words[] = {"a", "b", NULL};
static const char *const twice[] = {"a", "b", "a", NULL};
static const char *const none[] = {NULL};

DOMT_TEST(right_tables_are_taken)
{
    char error[128] = "";

    ck_assert_msg(domus_json_check_table(&thing_table, error, sizeof error) == 0, "%s", error);
    ck_assert_msg(domus_json_check_table(&loose_table, error, sizeof error) == 0, "%s", error);
}

#define NUMBER(of, least, most)                                                                    \
    {                                                                                              \
        .name = "x", .name_size = 1, .size = (of), .kind = DOMUS_JSON_KIND_UINT, .low = (least),   \
        .high = (most)                                                                             \
    }
#define SIGNED(of, least, most)                                                                    \
    {                                                                                              \
        .name = "x", .name_size = 1, .size = (of), .kind = DOMUS_JSON_KIND_INT,                    \
        .low = (uint64_t)INT64_C(least), .high = (uint64_t)INT64_C(most)                           \
    }
#define OTHER(of, sort, ...)                                                                       \
    {                                                                                              \
        .name = "x", .name_size = 1, .size = (of), .kind = DOMUS_JSON_KIND_##sort, __VA_ARGS__     \
    }
#define LIST(bytes, at, most)                                                                      \
    {                                                                                              \
        .name = "x", .name_size = 1, .size = 1, .kind = DOMUS_JSON_KIND_UINT,                      \
        .shape = DOMUS_JSON_COUNTED, .count_size = (bytes), .count_offset = (at),                  \
        .count_max = (most), .high = 255                                                           \
    }

/* Rows for a struct of 16 bytes. */
static const struct wrong {
    domus_json_field field;
    const char *told; /* words of the error; NULL: the row is correct */
} wrongs[] = {
    {NUMBER(3, 0, 1), "x: a number of 3 bytes"},
    {NUMBER(1, 0, 255), NULL},
    {NUMBER(1, 0, 256), "x: the range is larger than the member"},
    {NUMBER(1, 2, 1), "x: the range is empty"},
    {SIGNED(1, -128, 127), NULL},
    {SIGNED(1, -129, 0), "x: the range is larger than the member"},
    {SIGNED(1, 0, 128), "x: the range is larger than the member"},
    {SIGNED(8, 1, 0), "x: the range is empty"},
    {OTHER(2, BOOL, .low = 0), "x: not a bool"},
    {OTHER(4, REAL, .real_high = 1), "x: not a double"},
    {OTHER(8, REAL, .real_low = 1), "x: the range is empty"},
    {OTHER(0, TEXT, .low = 0), "x: an array without elements"},
    {OTHER(4, STRING, .bytes_max = 1), "x: not a pointer"},
    {OTHER(8, RAW, .bytes_max = 1), "x: not a domus_json_raw"},
    {OTHER(4, WORD, .words = words), NULL},
    {OTHER(4, WORD, .words = twice), "x: the word \"a\" is there twice"},
    {OTHER(4, WORD, .words = none), "x: no words"},
    {OTHER(3, WORD, .words = words), "x: a number of 3 bytes"},
    {OTHER(8, OBJECT, .table = &part_table), "x: the table is of another struct"},
    {OTHER(8, OBJECT, .table = NULL), "x: the table is of another struct"},
    {OTHER(16, TEXT, .low = 0), NULL},
    {OTHER(17, TEXT, .low = 0), "x: reaches beyond the struct"},
    {OTHER(8, TEXT, .offset = 9), "x: reaches beyond the struct"},
    {OTHER(1, TEXT, .has = true, .has_offset = 16), "x: its bool is beyond the struct"},
    {LIST(1, 15, 15), NULL},
    {LIST(1, 15, 0), "x: a bound of 0 elements"},
    {LIST(1, 16, 15), "x: the count is no integer of the struct"},
    {LIST(3, 8, 15), "x: the count is no integer of the struct"},
    {LIST(1, 15, 17), "x: reaches beyond the struct"},
    {{.name = "x", .name_size = 1, .size = 1}, "x: has no kind"},
    {{.name = "", .name_size = 0, .size = 1, .kind = DOMUS_JSON_KIND_TEXT}, ": a name of 0 bytes"},
    {{.name = "x", .name_size = 2, .size = 1, .kind = DOMUS_JSON_KIND_TEXT},
     "x: a name of 2 bytes"},
    {{.name = "\\", .name_size = 1, .size = 1, .kind = DOMUS_JSON_KIND_TEXT},
     "\\: the name has a character that needs an escape"},
};

DOMT_TEST(wrong_rows_are_refused)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        domus_json_table table = {.fields = &wrongs[i].field, .count = 1, .size = 16};
        char error[128] = "";
        int result = domus_json_check_table(&table, error, sizeof error);
        ck_assert_int_eq(result, wrongs[i].told != NULL ? -EINVAL : 0);
        ck_assert_str_eq(error, wrongs[i].told != NULL ? wrongs[i].told : "");
    }
}

DOMT_TEST(rows_do_not_share_names_or_bytes)
{
    domus_json_field fields[] = {
        {.name = "a", .name_size = 1, .size = 4, .kind = DOMUS_JSON_KIND_TEXT},
        {.name = "b", .name_size = 1, .offset = 3, .size = 4, .kind = DOMUS_JSON_KIND_TEXT},
    };
    domus_json_table table = {.fields = fields, .count = 2, .size = 8};
    char error[128] = "";

    ck_assert_int_eq(domus_json_check_table(&table, error, sizeof error), -EINVAL);
    ck_assert_str_eq(error, "b: shares bytes with a");
    fields[1].offset = 4;
    ck_assert_int_eq(domus_json_check_table(&table, error, sizeof error), 0);
    fields[1].name[0] = 'a';
    ck_assert_int_eq(domus_json_check_table(&table, error, sizeof error), -EINVAL);
    ck_assert_str_eq(error, "a: the name is there twice");
}

DOMT_TEST(tables_have_a_bound_of_rows)
{
    static domus_json_field fields[DOMUS_JSON_FIELDS_MAX + 1];
    domus_json_table table = {.fields = fields, .size = DOMUS_JSON_FIELDS_MAX + 1};
    char text[1000] = "{";
    unsigned char value[DOMUS_JSON_FIELDS_MAX + 1];

    for (uint32_t i = 0; i <= DOMUS_JSON_FIELDS_MAX; i++) {
        fields[i] = (domus_json_field){
            .offset = i, .size = 1, .kind = DOMUS_JSON_KIND_UINT, .high = 255, .required = true};
        fields[i].name_size = (uint32_t)snprintf(fields[i].name, 8, "f%u", i);
        if (i < DOMUS_JSON_FIELDS_MAX)
            snprintf(text + strlen(text), 20, "%s\"f%u\":%u", i == 0 ? "" : ",", i, i);
    }
    (void)snprintf(text + strlen(text), 2, "}");
    for (table.count = 0; table.count <= DOMUS_JSON_FIELDS_MAX + 1; table.count++) {
        bool fits = table.count >= 1 && table.count <= DOMUS_JSON_FIELDS_MAX;
        ck_assert_int_eq(domus_json_check_table(&table, NULL, 0), fits ? 0 : -EINVAL);
    }
    table.count = DOMUS_JSON_FIELDS_MAX;
    ck_assert_int_eq(domus_json_read(&table, NULL, text, strlen(text), value, NULL, NULL), 0);
    ck_assert_uint_eq(value[63], 63);
}

DOMT_SUITE(20)
