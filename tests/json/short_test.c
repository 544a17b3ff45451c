/* The short paths of a reader: bytes that are handled several at a time, and texts and names whose
 * lengths are around the ones at which another path is taken. */
#include "tests/support/suite.h"

#include <domus/json.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LENGTH 100u /* more than three steps of 32 */

/* Put each byte into the middle of a text of plain bytes. */
static const struct {
    const char *bytes;
    int error;
} odd[] = {
    {"\x01", -EBADMSG}, {"\x1f", -EBADMSG},         {"\n", -EBADMSG},
    {"\x80", -EBADMSG}, {"\xff", -EBADMSG},         {"\x7f", 0},
    {"\xc3\xa4", 0},    {"\xf0\x9f\x98\x80", 0},    {"\\n", 0},
    {"\\u00e4", 0},     {"\xed\xa0\x80", -EBADMSG}, {"\\q", -EBADMSG},
};

DOMT_TEST(each_byte_is_looked_at_wherever_it_stands)
{
    char text[LENGTH + 16];

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        size_t size = strlen(odd[i].bytes);
        for (size_t at = 1; at <= LENGTH; at++) {
            memset(text, 'x', sizeof text);
            text[0] = '"';
            memcpy(text + at, odd[i].bytes, size);
            text[LENGTH + size] = '"';
            int error = domus_json_check(NULL, text, LENGTH + size + 1, NULL);
            ck_assert_msg(error == odd[i].error, "row %zu at %zu: %d", i, at, error);
        }
    }
}

struct wide {
    char text[64];
    char guard[8];
};

static const domus_json_field wide_fields[] = {{DOMUS_JSON_TEXT("text", struct wide, text)}};
static const struct wide wide_preset = {.guard = "guarded"};
static const domus_json_table wide_table =
    DOMUS_JSON_TABLE_WITH(struct wide, wide_fields, .preset = &wide_preset);

DOMT_TEST(texts_of_each_length_come_whole)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/";
    char text[128];
    struct wide got;

    for (int size = 0; size < 64; size++) {
        snprintf(text, sizeof text, "{\"text\":\"%.*s\"}", size, letters);
        ck_assert_int_eq(domus_json_read(&wide_table, NULL, text, strlen(text), &got, NULL, NULL),
                         0);
        ck_assert_uint_eq(strlen(got.text), (size_t)size);
        ck_assert_mem_eq(got.text, letters, (size_t)size);
        ck_assert_str_eq(got.guard, "guarded");
    }
}

/* Names of one length that differ in one place; each place lies in another part of the
 * comparison. */
struct alike {
    int32_t numbers[6];
};

#define ROW(name, index)                                                                           \
    {                                                                                              \
        DOMUS_JSON_INT(name, struct alike, numbers[index], 0, 9)                                   \
    }

static const domus_json_field alike_fields[] = {
    ROW("axxxxxx", 0),      ROW("bxxxxxx", 1),      ROW("axxxxxxxxxxx", 2),
    ROW("axxxxxxxxxxy", 3), ROW("bxxxxxxxxxxx", 4), ROW("axxxxxxxxxxxxxxxxxxxx", 5),
};
static const domus_json_table alike_table = DOMUS_JSON_TABLE(struct alike, alike_fields);

DOMT_TEST(names_that_are_alike_are_told_apart)
{
    for (uint32_t i = 0; i < 6; i++) {
        /* the reader expects the fields in the order of the table */
        for (uint32_t k = 0; k < 6; k++) {
            char text[192];
            struct alike got;

            snprintf(text, sizeof text, "{\"%s\":1,\"%s\":2}                ", alike_fields[i].name,
                     alike_fields[k].name);
            int error = domus_json_read(&alike_table, NULL, text, strlen(text), &got, NULL, NULL);
            ck_assert_int_eq(error, i == k ? -EPROTO : 0);
            for (uint32_t row = 0; row < 6 && error == 0; row++)
                ck_assert_int_eq(got.numbers[row], row == i ? 1 : row == k ? 2 : 0);
        }
    }
}

DOMT_SUITE(20)
