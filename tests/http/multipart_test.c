/* Forms of multipart/form-data are read as browsers send them, in pieces of every size, and wrong
 * ones are refused. */
#include "tests/http/multipart.h"
#include "tests/support/suite.h"

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

static void hold_all(const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        domt_multipart_holds(TYPE, NULL, rows[i].bytes, strlen(rows[i].bytes), rows[i].expected);
}

#define HOLD_ALL(rows) hold_all(rows, sizeof(rows) / sizeof((rows)[0]))

/* Firefox, Chromium and curl send these. */
DOMT_TEST(forms_of_browsers_are_read)
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

    domt_multipart_holds(
        "multipart/form-data; boundary=---------------------------9051914041544843365972754266",
        NULL, firefox, sizeof firefox - 1,
        "text [text default]\nfile1 \"a\"b.txt\" text/plain [Content of a.txt.\n]\n"
        "file2 \"\" application/octet-stream []\nDONE\n");
    domt_multipart_holds("multipart/form-data; boundary=------------------------d74496d66958873e",
                         NULL, curl, sizeof curl - 1, "EPROTO a part is no form-data");
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
        {"--X\r\n" FORM "name=a\r\n\r\n--X--", "a []\nDONE\n"}, /* without a line end of its own */
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

DOMT_TEST(names_are_decoded)
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

DOMT_TEST(wrong_heads_are_refused)
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

DOMT_TEST(wrong_bodies_are_refused)
{
    static const row rows[] = {
        {"", CUT},
        {"--X", CUT},
        {"--X\r\n", CUT},
        {"--X-", CUT},
        {"--Y--", CUT},
        {"any\n--X--", CUT},
        {PART("a", "v"), "a [v" CUT}, /* the line end is held, as the start of a boundary */
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

DOMT_TEST(types_have_one_boundary)
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
        ck_assert_str_eq(domt_multipart_trace(rows[i].bytes, NULL, bytes, sizeof bytes - 1, 0, 0),
                         rows[i].expected);
    memset(type + head, 'b', DOMUS_HTTP_BOUNDARY_MAX + 1);
    memcpy(type + head + DOMUS_HTTP_BOUNDARY_MAX + 1, "\"", 2);
    ck_assert_str_eq(domt_multipart_trace(type, NULL, "", 0, 0, 0), "EPROTO ");
    memcpy(type + head + DOMUS_HTTP_BOUNDARY_MAX, "\"", 2);
    ck_assert_str_eq(domt_multipart_trace(type, NULL, "", 0, 0, 0), CUT);
}

DOMT_SUITE(30)
