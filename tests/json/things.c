/* The tables of a thing, and the comparison of two things; things.h describes them. */
#include "tests/json/things.h"

#include "tests/support/suite.h"

#include <float.h>
#include <string.h>

static const char *const hues[] = {"red", "green", "blue", NULL};
static const char *const modes[] = {"off", "on", NULL};
static const part part_preset = {.number = 7, .name = "preset"};

static const domus_json_field part_fields[] = {
    {DOMUS_JSON_UINT("number", part, number, 0, 1000)},
    {DOMUS_JSON_TEXT("name", part, name)},
    {DOMUS_JSON_STRING("text", part, text, 20)},
    {DOMUS_JSON_LIST("numbers", part, numbers, number_count, REAL(-DBL_MAX, DBL_MAX))},
};
const domus_json_table part_table =
    DOMUS_JSON_TABLE_WITH(part, part_fields, .preset = &part_preset);

static const domus_json_field thing_fields[] = {
    {DOMUS_JSON_BOOL("flag", thing, flag)},
    {DOMUS_JSON_INT("i8", thing, i8, INT8_MIN, INT8_MAX)},
    {DOMUS_JSON_INT("i64", thing, i64, INT64_MIN, INT64_MAX)},
    {DOMUS_JSON_UINT("u8", thing, u8, 0, UINT8_MAX), .required = true},
    {DOMUS_JSON_UINT("u64", thing, u64, 0, UINT64_MAX)},
    {DOMUS_JSON_UINT("ranged", thing, ranged, 10, 20)},
    {DOMUS_JSON_REAL("real", thing, real, -1e300, 1e300)},
    {DOMUS_JSON_TEXT("name", thing, name)},
    {DOMUS_JSON_STRING("text", thing, text, 100)},
    {DOMUS_JSON_WORD("hue", thing, hue, hues)},
    {DOMUS_JSON_WORD("mode", thing, mode, modes)},
    {DOMUS_JSON_RAW("raw", thing, raw, 40)},
    {DOMUS_JSON_OBJECT("one", thing, one, part_table)},
    {DOMUS_JSON_LIST("parts", thing, parts, part_count, OBJECT(part_table))},
    {DOMUS_JSON_ARRAY("many", thing, many, many_count, 20, OBJECT(part_table))},
    {DOMUS_JSON_ARRAY("texts", thing, texts, text_count, 10, STRING(30))},
    {DOMUS_JSON_LIST("names", thing, names, name_count, TEXT)},
    {DOMUS_JSON_ARRAY("raws", thing, raws, raw_count, 5, RAW(20))},
    {DOMUS_JSON_UINT("extra", thing, extra, 0, UINT32_MAX), DOMUS_JSON_HAS(thing, has_extra)},
    {DOMUS_JSON_STRING("maybe", thing, maybe, 10), .nullable = true},
};
static const thing thing_preset = {.ranged = 15, .hue = RED};
const domus_json_table thing_table =
    DOMUS_JSON_TABLE_WITH(thing, thing_fields, .preset = &thing_preset);
const domus_json_table loose_table =
    DOMUS_JSON_TABLE_WITH(thing, thing_fields, .preset = &thing_preset, .skips_unknown = true);

const char thing_text[] =
    "{\"flag\":true,\"i8\":-128,\"i64\":-9223372036854775808,\"u8\":255,"
    "\"u64\":18446744073709551615,\"ranged\":20,\"real\":-1.5e-7,\"name\":\"h\\u00e4lf "
    "\\\"it\\\"\","
    "\"text\":\"line\\nline\",\"hue\":\"blue\",\"mode\":\"on\",\"raw\":{\"a\":[1,\"]\"]},"
    "\"one\":{\"number\":1,\"name\":\"one\",\"text\":\"t\",\"numbers\":[1.0,-0.0]},"
    "\"parts\":[{\"number\":2,\"name\":\"\",\"numbers\":[]},{\"number\":7,\"name\":\"preset\","
    "\"numbers\":[]}],\"many\":[{\"number\":0,\"name\":\"a\",\"numbers\":[]},"
    "{\"number\":1,\"name\":\"b\",\"numbers\":[]},{\"number\":2,\"name\":\"c\",\"numbers\":[]},"
    "{\"number\":3,\"name\":\"d\",\"numbers\":[]},{\"number\":4,\"name\":\"e\",\"text\":\"last\","
    "\"numbers\":[0.1]}],\"texts\":[\"\",\"two\"],\"names\":[\"x\",\"1234567\"],"
    "\"raws\":[1,\"a\\\"\",null,[]],\"extra\":0,\"maybe\":\"yes\"}";

int thing_read_from_json(const char *text, thing *ret_thing, domus_json_error *ret_error)
{
    return domus_json_read(&thing_table, NULL, text, strlen(text), ret_thing, &ret_thing->memory,
                           ret_error);
}

static void check_texts_are_same(const char *left, const char *right)
{
    ck_assert_int_eq(left == NULL, right == NULL);
    if (left != NULL)
        ck_assert_str_eq(left, right);
}

static void check_parts_are_same(const part *left, const part *right)
{
    ck_assert_uint_eq(left->number, right->number);
    ck_assert_str_eq(left->name, right->name);
    check_texts_are_same(left->text, right->text);
    ck_assert_uint_eq(left->number_count, right->number_count);
    ck_assert_mem_eq(left->numbers, right->numbers, left->number_count * sizeof(double));
}

static void check_raw_values_are_same(const domus_json_raw *left, const domus_json_raw *right)
{
    ck_assert_uint_eq(left->size, right->size);
    check_texts_are_same(left->text, right->text);
}

static void check_arrays_are_same(const thing *left, const thing *right)
{
    ck_assert_uint_eq(left->part_count, right->part_count);
    for (uint32_t i = 0; i < left->part_count; i++)
        check_parts_are_same(&left->parts[i], &right->parts[i]);
    ck_assert_uint_eq(left->many_count, right->many_count);
    for (uint32_t i = 0; i < left->many_count; i++)
        check_parts_are_same(&left->many[i], &right->many[i]);
    ck_assert_uint_eq(left->text_count, right->text_count);
    for (size_t i = 0; i < left->text_count; i++)
        check_texts_are_same(left->texts[i], right->texts[i]);
    ck_assert_uint_eq(left->name_count, right->name_count);
    for (uint32_t i = 0; i < left->name_count; i++)
        ck_assert_str_eq(left->names[i], right->names[i]);
    ck_assert_uint_eq(left->raw_count, right->raw_count);
    for (uint32_t i = 0; i < left->raw_count; i++)
        check_raw_values_are_same(&left->raws[i], &right->raws[i]);
}

void thing_check_values_are_same(const thing *left, const thing *right)
{
    ck_assert_int_eq(left->flag, right->flag);
    ck_assert_int_eq(left->i8, right->i8);
    ck_assert_int_eq(left->i64, right->i64);
    ck_assert_uint_eq(left->u8, right->u8);
    ck_assert_uint_eq(left->u64, right->u64);
    ck_assert_uint_eq(left->ranged, right->ranged);
    ck_assert_mem_eq(&left->real, &right->real, sizeof left->real);
    ck_assert_str_eq(left->name, right->name);
    check_texts_are_same(left->text, right->text);
    ck_assert_int_eq(left->hue, right->hue);
    ck_assert_uint_eq(left->mode, right->mode);
    check_raw_values_are_same(&left->raw, &right->raw);
    check_parts_are_same(&left->one, &right->one);
    check_arrays_are_same(left, right);
    ck_assert_int_eq(left->has_extra, right->has_extra);
    ck_assert_uint_eq(left->extra, right->extra);
    check_texts_are_same(left->maybe, right->maybe);
}
