/* multipart/form-data: the events of a parser, the bodies that it refuses, and its limits. */
#include "tests/http/multipart.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define TYPE           "multipart/form-data; boundary=X"
#define FIELD(head)    "--X\r\n" head "\r\n\r\nv\r\n--X--\r\n"
#define FORM           "Content-Disposition: form-data; "
#define NAMED(rest)    FIELD(FORM rest)
#define PART(name, is) "--X\r\n" FORM "name=" name "\r\n\r\n" is "\r\n"
#define A_V            "a [v]\nDONE\n"

typedef struct row {
    const char *bytes;
    const char *expected;
} row;

static void check_traces_of_rows(const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        domt_multipart_expect_trace(TYPE, NULL, rows[i].bytes, strlen(rows[i].bytes),
                                    rows[i].expected);
}

#define HOLD_ALL(rows) check_traces_of_rows(rows, sizeof(rows) / sizeof((rows)[0]))

/* Bodies of forms as Firefox, Chromium and curl send them. */
DOMT_TEST(multipart_forms_of_browsers_are_read)
{
    static const char firefox[] =
        "-----------------------------9051914041544843365972754266\r\n"
        "Content-Disposition: form-data; name=\"text\"\r\n\r\ntext default\r\n"
        "-----------------------------9051914041544843365972754266\r\n"
        "Content-Disposition: form-data; name=\"file1\"; filename=\"a%22b.txt\"\r\n"
        "Content-Type: text/plain\r\n\r\nContent of a.txt.\n\r\n"
        "-----------------------------9051914041544843365972754266\r\n"
        "Content-Disposition: form-data; name=\"file2\"; filename=\"\"\r\n"
        "Content-Type: application/octet-stream\r\n\r\n\r\n"
        "-----------------------------9051914041544843365972754266--\r\n";
    static const char curl[] = "--------------------------d74496d66958873e\r\n"
                               "Content-Disposition: attachment; name=\"x\"\r\n\r\n";

    domt_multipart_expect_trace(
        "multipart/form-data; boundary=---------------------------9051914041544843365972754266",
        NULL, firefox, sizeof firefox - 1,
        "text [text default]\nfile1 \"a\"b.txt\" text/plain [Content of a.txt.\n]\n"
        "file2 \"\" application/octet-stream []\nDONE\n");
    domt_multipart_expect_trace(
        "multipart/form-data; boundary=------------------------d74496d66958873e", NULL, curl,
        sizeof curl - 1, "EPROTO a part is no form-data");
}

DOMT_TEST(bytes_that_look_like_a_boundary_are_bytes)
{
    static const row rows[] = {
        {PART("a", "\r\n-") "--X--", "a [\r\n-]\nDONE\n"},
        {PART("a", "\r\r\n\r\n--\r\n--Y") "--X--", "a [\r\r\n\r\n--\r\n--Y]\nDONE\n"},
        {PART("a", "--Y") "--X--", "a [--Y]\nDONE\n"},
        {PART("a", "-\r\n") "--X--", "a [-\r\n]\nDONE\n"},
        {PART("a", "\n--X\r\r\n-\r") "--X--", "a [\n--X\r\r\n-\r]\nDONE\n"},
        {PART("a", "") PART("b", "") "--X--", "a []\nb []\nDONE\n"},
        /* the last boundary may come without a line end */
        {"--X\r\n" FORM "name=a\r\n\r\n--X--", "a []\nDONE\n"},
        {PART("a", "v") "--X--\r\n", A_V},
        {PART("a", "v") "--X--any\nthing", A_V},
        {"before\r\n" PART("a", "v") "--X--", A_V},
        {"--Y--X\r\n--\r\r\n" PART("a", "v") "--X--", A_V},
        {"\r\n" PART("a", "v") "--X--", A_V},
        {"--X \t\r\n" FORM "name=a\r\n\r\nv\r\n--X--", A_V},
        {"--X--", "DONE\n"},
    };

    HOLD_ALL(rows);
}

DOMT_TEST(names_of_parts_are_decoded)
{
    static const row rows[] = {
        {NAMED("name=a"), A_V},
        {NAMED("name=\"a\""), A_V},
        {"--X\r\ncontent-disposition:Form-Data;NAME=a;\r\n\r\nv\r\n--X--", A_V},
        {NAMED("name=\"\""), " [v]\nDONE\n"},
        {NAMED("name=\"a; b\"; c=d"), "a; b [v]\nDONE\n"},
        {NAMED("name=\"a\\\"b\\\\c\\d\""), "a\"b\\c\\d [v]\nDONE\n"},
        {NAMED("name=\"%22%0d%0A%41%2\""), "\"%0d%0A%41%2 [v]\nDONE\n"},
        {NAMED("name=\"\xc3\xa4\""), "\xc3\xa4 [v]\nDONE\n"},
        {NAMED("name=a; filename=b"), "a \"b\" [v]\nDONE\n"},
        {NAMED("filename=\"C:\\d\\e.f\"; name=a"), "a \"C:\\d\\e.f\" [v]\nDONE\n"},
        {NAMED("name=a; filename=b; filename*=UTF-8''c%20%C3%A4"), "a \"c \xc3\xa4\" [v]\nDONE\n"},
        {NAMED("name=a; filename*=utf-8'en'c; filename=b"), "a \"c\" [v]\nDONE\n"},
        {NAMED("name=a; name*=b"), A_V},
        {FIELD("X-Other: b\r\nContent-Transfer-Encoding: Binary\r\n" FORM
               "name=a\r\nContent-Type:\t text/html "),
         "a text/html [v]\nDONE\n"},
    };

    HOLD_ALL(rows);
}

#define LINE  "EPROTO a line in the head of a part is no field"
#define TWICE "EPROTO a parameter of Content-Disposition is wrong, or there twice"
#define WRONG "EPROTO Content-Disposition is wrong"

DOMT_TEST(wrong_heads_of_parts_are_refused)
{
    static const row rows[] = {
        {"--X\r\n\r\nv\r\n--X--", "EPROTO a part has no name"},
        {FIELD("Content-Type: a/b"), "EPROTO a part has no name"},
        {NAMED("filename=a"), "EPROTO a part has no name"},
        {NAMED("name=a\r\n" FORM "name=b"), "EPROTO a part has two Content-Disposition"},
        {NAMED("name=a\r\nContent-Type: a/b\r\nContent-Type: a/b"),
         "EPROTO a part has two Content-Type"},
        {NAMED("name=a\r\nContent-Transfer-Encoding: base64"), "EPROTO a part is encoded"},
        {NAMED("name=a; name=b"), TWICE},
        {NAMED("name=a; filename=b; filename=c"), TWICE},
        {NAMED("name=a; filename*=UTF-8''b; filename*=UTF-8''b"), TWICE},
        {NAMED("name=a; filename*=\"UTF-8''b\""), TWICE},
        {NAMED("name=a; filename*=b"), TWICE},
        {NAMED("name=a; filename*=UTF-8'b"), TWICE},
        {NAMED("name=a; filename*=ISO-8859-1''b"), TWICE},
        {NAMED("name=a; filename*=UTF-8''%c3"), TWICE},
        {NAMED("name=a; filename*=UTF-8''%0a"), TWICE},
        {NAMED("name=a; filename*=UTF-8''%00"), TWICE},
        {NAMED("name=a; filename*=UTF-8''%g0"), TWICE},
        {NAMED("name="), WRONG},
        {NAMED("name"), WRONG},
        {NAMED("name =a"), WRONG},
        {NAMED("=a"), WRONG},
        {NAMED("name=\"a"), WRONG},
        {NAMED("name=\"a\\\""), WRONG},
        {NAMED("name=\"a\"b"), WRONG},
        {NAMED("name=a b"), WRONG},
        {NAMED("name=a,b"), WRONG},
        {FIELD("Content-Disposition: form-data name=a"), WRONG},
        {FIELD("Content-Disposition: form-dat; name=a"), "EPROTO a part is no form-data"},
        {NAMED("name=a\r\n b: c"), LINE},
        {NAMED("name=a\r\nb : c"), LINE},
        {NAMED("name=a\r\nb"), LINE},
        {NAMED("name=a\r\n: c"), LINE},
        {NAMED("name=\"a\rb\""), "EPROTO a control character stands in the head of a part"},
        {NAMED("name=\"a\x7f\""), "EPROTO a control character stands in the head of a part"},
        {NAMED("name=a\nb: c"), "EPROTO a line of a head ends without CR"},
        {"--X\r\n\n", "EPROTO a line of a head ends without CR"},
    };

    HOLD_ALL(rows);
}

#define BEHIND "EPROTO something stands behind a boundary"
#define CUT    "EPROTO the body ends before its last boundary"

DOMT_TEST(wrong_multipart_bodies_are_refused)
{
    static const row rows[] = {
        {"", CUT},
        {"--X", CUT},
        {"--X\r\n", CUT},
        {"--X-", CUT},
        {"--Y--", CUT},
        {"any\n--X--", CUT},
        /* without more bytes the line end is held back, as a boundary could begin with it */
        {PART("a", "v"), "a [v" CUT},
        {PART("a", "v") "--X", "a [v]\n" CUT},
        {PART("a", "v\r\n--Xy") "--X--", "a [v]\n" BEHIND},
        {"--Xy\r\n", BEHIND},
        {"--X\n", BEHIND},
        {"--X \n", BEHIND},
        {"--X\rX", BEHIND},
        {"--X-X", BEHIND},
        {"--X --", BEHIND},
    };

    HOLD_ALL(rows);
}

DOMT_TEST(media_types_have_one_boundary)
{
    static const char bytes[] = PART("a", "v") "--X--";
    static const row rows[] = {
        {"multipart/form-data; boundary=X", A_V},
        {"Multipart/Form-Data ; charset=utf-8;; Boundary=\"X\" ;", A_V},
        {"multipart/form-data", "EPROTO "},
        {"multipart/form-data; boundary=", "EPROTO "},
        {"multipart/form-data; boundary=\"\"", "EPROTO "},
        {"multipart/form-data; boundary=\"X \"", "EPROTO "},
        {"multipart/form-data; boundary=\"X", "EPROTO "},
        {"multipart/form-data; boundary=X; boundary=X", "EPROTO "},
        {"multipart/form-data; boundary=X Y", "EPROTO "},
        {"multipart/form-data; boundary=\"X\\\"\"", "EPROTO "},
        {"multipart/form-data; boundary=X&", "EPROTO "},
        {"multipart/form-data, boundary=X", "EMEDIUMTYPE "},
        {"multipart/mixed; boundary=X", "EMEDIUMTYPE "},
        {"application/x-www-form-urlencoded", "EMEDIUMTYPE "},
        {"", "EMEDIUMTYPE "},
    };
    char type[128] = "multipart/form-data; boundary=\"";
    size_t head = strlen(type);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_str_eq(
            domt_multipart_trace_of_bytes(rows[i].bytes, NULL, bytes, sizeof bytes - 1, 0, 0),
            rows[i].expected);
    memset(type + head, 'b', DOMUS_HTTP_BOUNDARY_MAX + 1);
    memcpy(type + head + DOMUS_HTTP_BOUNDARY_MAX + 1, "\"", 2);
    ck_assert_str_eq(domt_multipart_trace_of_bytes(type, NULL, "", 0, 0, 0), "EPROTO ");
    memcpy(type + head + DOMUS_HTTP_BOUNDARY_MAX, "\"", 2);
    ck_assert_str_eq(domt_multipart_trace_of_bytes(type, NULL, "", 0, 0, 0), CUT);
}

#define HEAD   "--X\r\nContent-Disposition: form-data; name=a"
#define A_PART HEAD "\r\n\r\nv\r\n"
#define B_HEAD "\r\nContent-Disposition: form-data; name=b\r\n\r\n"
#define END    "--X--"
#define ROOM   8192

/* Write `before`, then `times` times a byte, and then `after`. Returns the size of the body. */
static size_t write_repeated(char *to, const char *before, char byte, size_t times,
                             const char *after)
{
    size_t begin = strlen(before);

    ck_assert_uint_lt(begin + times + strlen(after), ROOM);
    memcpy(to, before, begin);
    memset(to + begin, byte, times);
    memcpy(to + begin + times, after, strlen(after) + 1);
    return begin + times + strlen(after);
}

typedef struct limit {
    const char *before;
    char byte;
    size_t most; /* number of times that the byte may be repeated */
    const char *after;
    const char
        *wrong; /* text of the error, -EMSGSIZE, if the byte is repeated once more than `most` */
    domus_http_multipart_limits limits;
} limit;

static bool does_trace_end_in_emsgsize(const char *trace, const char *wrong)
{
    const char *error = strstr(trace, "EMSGSIZE ");

    return error != NULL && strcmp(error + strlen("EMSGSIZE "), wrong) == 0;
}

static const limit rows[] = {
    {"",
     '\n',
     DOMUS_HTTP_MULTIPART_EDGE_MAX,
     "\r\n" A_PART END,
     "too much before the first boundary",
     {.parts_max = 0}},
    {A_PART END,
     '-',
     DOMUS_HTTP_MULTIPART_EDGE_MAX,
     "",
     "too much behind the last boundary",
     {.parts_max = 0}},
    {A_PART "--X",
     ' ',
     DOMUS_HTTP_MULTIPART_PAD_MAX,
     B_HEAD END,
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
    {A_PART END, '-', 10, "", "the body is too large", {.whole_max = sizeof A_PART END - 1 + 10}},
    {HEAD "\r\n\r\n",
     'a',
     20,
     "\r\n" END,
     "the body is too large",
     {.whole_max = sizeof HEAD "\r\n\r\n" END + 1 + 20}},
};

DOMT_TEST(limits_of_multipart_are_exact)
{
    static char bytes[ROOM];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const limit *is = &rows[i];
        const domus_http_multipart_limits *limits = &is->limits;
        for (size_t step = 0; step < 3; step++) {
            size_t size = write_repeated(bytes, is->before, is->byte, is->most, is->after);
            const char *trace = domt_multipart_trace_of_bytes(TYPE, limits, bytes, size, 0, step);
            ck_assert_msg(strstr(trace, "EMSGSIZE") == NULL, "row %zu: %s", i, trace);
            size = write_repeated(bytes, is->before, is->byte, is->most + 1, is->after);
            trace = domt_multipart_trace_of_bytes(TYPE, limits, bytes, size, 0, step);
            ck_assert_msg(does_trace_end_in_emsgsize(trace, is->wrong), "row %zu: %s", i, trace);
        }
    }
}

DOMT_TEST(parts_are_counted_against_the_limit)
{
    static char bytes[ROOM];
    const domus_http_multipart_limits three = {.parts_max = 3};
    size_t part = strlen(A_PART);

    for (size_t count = 1; count <= 65; count++) {
        for (size_t i = 0; i < count; i++)
            memcpy(bytes + i * part, A_PART, part);
        memcpy(bytes + count * part, END, sizeof END);
        size_t size = count * part + strlen(END);
        const char *trace = domt_multipart_trace_of_bytes(TYPE, &three, bytes, size, 0, 0);
        ck_assert_int_eq(does_trace_end_in_emsgsize(trace, "too many parts"), count > 3);
        trace = domt_multipart_trace_of_bytes(TYPE, NULL, bytes, size, 0, 7);
        ck_assert_int_eq(does_trace_end_in_emsgsize(trace, "too many parts"), count > 64);
    }
}

DOMT_TEST(limits_of_multipart_have_ranges)
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
