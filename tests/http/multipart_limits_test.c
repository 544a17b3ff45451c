/* Each limit of multipart/form-data is reached with exactly its size, and refused with one more. */
#include "tests/http/multipart.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define TYPE  "multipart/form-data; boundary=X"
#define HEAD  "--X\r\nContent-Disposition: form-data; name=a"
#define PART  HEAD "\r\n\r\nv\r\n"
#define FIELD "\r\nContent-Disposition: form-data; name=b\r\n\r\n"
#define END   "--X--"
#define ROOM  8192

/* Write `before`, a byte so many times, and `after`. Returns the size. */
static size_t fill(char *to, const char *before, char byte, size_t times, const char *after)
{
    size_t begin = strlen(before);

    ck_assert_uint_lt(begin + times + strlen(after), ROOM);
    memcpy(to, before, begin);
    memset(to + begin, byte, times);
    memcpy(to + begin + times, after, strlen(after) + 1);
    return begin + times + strlen(after);
}

typedef struct row {
    const char *before;
    char byte;
    size_t most; /* times that the byte may stand there */
    const char *after;
    const char *wrong; /* with one more */
    domus_http_multipart_limits limits;
} row;

static bool is_error(const char *trace, const char *wrong)
{
    const char *error = strstr(trace, "EMSGSIZE ");

    return error != NULL && strcmp(error + strlen("EMSGSIZE "), wrong) == 0;
}

static const row rows[] = {
    {"",
     '\n',
     DOMUS_HTTP_MULTIPART_EDGE_MAX,
     "\r\n" PART END,
     "too much before the first boundary",
     {.parts_max = 0}},
    {PART END,
     '-',
     DOMUS_HTTP_MULTIPART_EDGE_MAX,
     "",
     "too much behind the last boundary",
     {.parts_max = 0}},
    {PART "--X",
     ' ',
     DOMUS_HTTP_MULTIPART_PAD_MAX,
     FIELD END,
     "too many spaces behind a boundary",
     {.parts_max = 0}},
    {HEAD, 'a', 128 - 1, "\r\n\r\nv\r\n" END, "the name of a part is too long", {.parts_max = 0}},
    {HEAD, 'a', 3 - 1, "\r\n\r\nv\r\n" END, "the name of a part is too long", {.name_max = 3}},
    {HEAD "; filename=\"",
     'a',
     255,
     "\"\r\n\r\nv\r\n" END,
     "a file name is too long",
     {.parts_max = 0}},
    {HEAD "; filename*=UTF-8''%41",
     'a',
     5,
     "\r\n\r\nv\r\n" END,
     "a file name is too long",
     {.filename_max = 6}},
    {HEAD "\r\nX: ",
     'a',
     2048 - sizeof HEAD + 6 - 9,
     "\r\n\r\nv\r\n" END,
     "the head of a part is too long",
     {.parts_max = 0}},
    {HEAD "\r\nX: ",
     'a',
     64 - sizeof HEAD + 6 - 9,
     "\r\n\r\nv\r\n" END,
     "the head of a part is too long",
     {.head_max = 64}},
    {HEAD "\r\n\r\n", 'a', 100, "\r\n" END, "a part is too large", {.part_max = 100}},
    {HEAD "\r\n\r\n", '\r', 100, "\r\n" END, "a part is too large", {.part_max = 100}},
    {PART END, '-', 10, "", "the body is too large", {.whole_max = sizeof PART END - 1 + 10}},
    {HEAD "\r\n\r\n",
     'a',
     20,
     "\r\n" END,
     "the body is too large",
     {.whole_max = sizeof HEAD "\r\n\r\n" END + 1 + 20}},
};

DOMT_TEST(limits_are_reached_exactly)
{
    static char bytes[ROOM];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const row *is = &rows[i];
        const domus_http_multipart_limits *limits = &is->limits;
        for (size_t step = 0; step < 3; step++) {
            size_t size = fill(bytes, is->before, is->byte, is->most, is->after);
            const char *trace = domt_multipart_trace(TYPE, limits, bytes, size, 0, step);
            ck_assert_msg(strstr(trace, "EMSGSIZE") == NULL, "row %zu: %s", i, trace);
            size = fill(bytes, is->before, is->byte, is->most + 1, is->after);
            trace = domt_multipart_trace(TYPE, limits, bytes, size, 0, step);
            ck_assert_msg(is_error(trace, is->wrong), "row %zu: %s", i, trace);
        }
    }
}

DOMT_TEST(parts_are_counted)
{
    static char bytes[ROOM];
    const domus_http_multipart_limits three = {.parts_max = 3};
    size_t part = strlen(PART);

    for (size_t count = 1; count <= 65; count++) {
        for (size_t i = 0; i < count; i++)
            memcpy(bytes + i * part, PART, part);
        memcpy(bytes + count * part, END, sizeof END);
        size_t size = count * part + strlen(END);
        const char *trace = domt_multipart_trace(TYPE, &three, bytes, size, 0, 0);
        ck_assert_int_eq(is_error(trace, "too many parts"), count > 3);
        trace = domt_multipart_trace(TYPE, NULL, bytes, size, 0, 7);
        ck_assert_int_eq(is_error(trace, "too many parts"), count > 64);
    }
}

DOMT_TEST(limits_have_ranges)
{
    static const domus_http_multipart_limits wrong[] = {
        {.parts_max = 65537}, {.head_max = 65537},     {.head_max = 63},
        {.name_max = 65537},  {.filename_max = 65537},
    };
    static const domus_http_multipart_limits right[] = {
        {.parts_max = 65536, .head_max = 65536, .name_max = 65536, .filename_max = 65536},
        {.head_max = 64, .part_max = UINT64_MAX, .whole_max = UINT64_MAX},
    };
    domus_http_multipart *form = NULL;
    domus_slice type;

    ck_assert_int_eq(domus_slice_copy(TYPE, strlen(TYPE), &type), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domus_http_multipart_open(type, &wrong[i], &form), -EINVAL);
    ck_assert_ptr_null(form);
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        ck_assert_int_eq(domus_http_multipart_open(type, &right[i], &form), 0);
        ck_assert_ptr_null(domus_http_multipart_close(form));
    }
    domus_slice_free(type);
    ck_assert_ptr_null(domus_http_multipart_close(NULL));
}

DOMT_SUITE(30)
