/* domus/http_files.h in a channel: which file a path names, and which files no path can reach;
 * conditions, ranges, and compressed files. */
#include "tests/runtime/sites.h"
#include "tests/support/suite.h"

#include <sys/stat.h>
#include <unistd.h>

#define SECOND DOMT_PIPE_SECOND

/* --- which file ------------------------------------------------------------------------------- */

DOMT_TEST(file_answer_has_type_time_and_tag)
{
    domt_site_make_and_open(NULL, &domt_site_service);
    domt_site.files.cache_control = "max-age=60";
    domt_site_check_get("/a.txt", "", 200, "0123456789");
    ck_assert(domt_site_answer_has_line("Content-Length: 10"));
    ck_assert(domt_site_answer_has_line("Content-Type: text/plain; charset=utf-8"));
    ck_assert(domt_site_answer_has_line("Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT"));
    ck_assert(domt_site_answer_has_line("Accept-Ranges: bytes"));
    ck_assert(domt_site_answer_has_line("Cache-Control: max-age=60"));
    ck_assert_ptr_null(strstr(domt_site.answer, "Vary"));
    struct stat status;
    char expected[64];
    ck_assert_int_eq(stat(domt_site_whole_path("a.txt"), &status), 0);
    snprintf(expected, sizeof expected, "\"%llx-a-%llx\"", 1700000000123456789ull,
             (unsigned long long)status.st_ino);
    ck_assert_str_eq(domt_site_tag_of_answer(), expected);
    ck_assert_uint_eq(domt_site_ask("HEAD", "/a.txt", ""), 200);
    ck_assert(domt_site_answer_has_line("Content-Length: 10"));
    ck_assert_str_eq(domt_site_tag_of_answer(), expected);
    ck_assert_str_eq(domt_site_body_of_answer(), "");
    ck_assert_uint_eq(domt_site_get("/empty", ""), 200);
    ck_assert(domt_site_answer_has_line("Content-Length: 0"));
    domt_site_check_get("/sub/a%20b.css?x=1", "", 200, "style");
    ck_assert(domt_site_answer_has_line("Content-Type: text/css; charset=utf-8"));
    domt_site_close_and_remove();
}

DOMT_TEST(folder_is_answered_with_its_index)
{
    domt_site_make_and_open(NULL, &domt_site_service);
    domt_site_check_get("/", "", 200, "home");
    domt_site_check_get("/sub/", "", 200, "sub home");
    ck_assert_uint_eq(domt_site_get("/sub", ""), 301);
    ck_assert(domt_site_answer_has_line("Location: /sub/"));
    ck_assert_uint_eq(domt_site_get("/sub?a=b", ""), 301);
    ck_assert(domt_site_answer_has_line("Location: /sub/?a=b"));
    ck_assert_uint_eq(domt_site_get("///sub", ""), 301);
    ck_assert(domt_site_answer_has_line("Location: /sub/"));
    ck_assert_uint_eq(domt_site_get("//example.com/..//sub", ""), 301);
    ck_assert(domt_site_answer_has_line("Location: /example.com/..//sub/"));
    ck_assert_uint_eq(domt_site_get("http://a/sub", ""), 301);
    ck_assert(domt_site_answer_has_line("Location: /sub/"));
    ck_assert_uint_eq(domt_site_get("/bare/", ""), 404);
    ck_assert_uint_eq(domt_site_get("/odd/", ""), 404);
    domt_site.files.index = "a b.css";
    domt_site_check_get("/sub/", "", 200, "style");
    domt_site.files.index = "";
    ck_assert_uint_eq(domt_site_get("/sub/", ""), 404);
    ck_assert_uint_eq(domt_site_get("/", ""), 404);
    domt_site_close_and_remove();
}

static const struct {
    const char *target;
    unsigned status;
} targets[] = {
    {"/in", 200},
    {"/sub/in", 200},
    {"/sub/../a.txt", 200},
    {"/./a.txt", 200},
    {"//a.txt", 200},
    {"/%61.txt", 200},
    {"/none", 404},
    {"/a.txt/", 404},
    {"/a.txt/b", 404},
    {"/..", 404},
    {"/../", 404},
    {"/../../../../../../etc/passwd", 404},
    {"/sub/../../a.txt", 404},
    {"/%2e%2e/%2e%2e/etc/passwd", 404},
    {"/..%2f..%2fetc/passwd", 404},
    {"/sub%2fin", 404},
    {"/%2fetc/passwd", 404},
    {"//etc/passwd", 404},
    {"/..\\..\\etc\\passwd", 404},
    {"/%5c..%5cetc", 404},
    {"/a.txt%00", 404},
    {"/a.txt%00.html", 404},
    {"/a%", 404},
    {"/a%2", 404},
    {"/a%zz", 404},
    {"/..%c0%af..%c0%afetc/passwd", 404},
    {"/%252e%252e/etc/passwd", 404},
    {"/out", 404},
    {"/up", 404},
    {"/zero", 404},
    {"/root/etc/passwd", 404},
    {"/circle", 404},
    {"/fifo", 404},
    {"/socket", 404},
    {"/.secret", 404},
    {"/%2esecret", 404},
    {"/.git/config", 404},
    {"/sub/../.git/config", 404},
    {"/.", 200},
    {"/sub/.", 200},
    {"/...", 404},
};

DOMT_TEST(no_path_leads_out_of_the_root)
{
    char target[5000] = "/";

    domt_site_make_and_open(NULL, &domt_site_service);
    for (int way = 0; way < 2; way++) {
        domt_site.reads_wait = way != 0;
        for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
            unsigned status = domt_site_get(targets[i].target, "");
            ck_assert_msg(status == targets[i].status, "%s: %u", targets[i].target, status);
            ck_assert_msg(strstr(domt_site.answer, "root:") == NULL &&
                              strstr(domt_site.answer, "secret") == NULL,
                          "%s", targets[i].target);
        }
    }
    domt_site.reads_wait = false;
    memset(target + 1, 'a', 300);
    ck_assert_uint_eq(domt_site_get(target, ""), 404);
    memset(target + 1, 'a', sizeof target - 2);
    ck_assert_uint_eq(domt_site_get(target, ""), 404);
    for (size_t i = 1; i + 1 < sizeof target; i += 2)
        memcpy(target + i, "a/", 2);
    target[3800] = '\0';
    ck_assert_uint_eq(domt_site_get(target, ""), 404);
    target[3799] = '\0';
    ck_assert_uint_eq(domt_site_get(target, ""), 404);
    domt_site.files.hidden = true;
    ck_assert_uint_eq(domt_site_get("/.secret", ""), 200);
    ck_assert_uint_eq(domt_site_get("/.git/config", ""), 200);
    ck_assert_uint_eq(domt_site_get("/.git/../../a.txt", ""), 404);
    domt_site_close_and_remove();
}

DOMT_TEST(files_allow_only_get_and_head)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"};

    domt_site_make_and_open(NULL, &domt_site_service);
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        ck_assert_uint_eq(domt_site_ask(methods[i], "/a.txt", ""), 405);
        ck_assert(domt_site_answer_has_line("Allow: GET, HEAD"));
    }
    domt_site_close_and_remove();
}

DOMT_TEST(file_that_may_not_be_read_is_forbidden)
{
    if (geteuid() == 0)
        return; /* left out, because root can read every file */
    domt_site_make_and_open(NULL, &domt_site_service);
    ck_assert_int_eq(chmod(domt_site_whole_path("a.txt"), 0), 0);
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 403);
    domt_site_close_and_remove();
}

/* --- conditions and ranges -------------------------------------------------------------------- */

/* In each field, `%s` stands for the tag of the file. */
static const struct {
    const char *field;
    unsigned status;
} conditions[] = {
    {"If-None-Match: %s", 304},
    {"If-None-Match: \"x\", W/%s", 304},
    {"If-None-Match: *", 304},
    {"If-None-Match: \"x\"", 200},
    {"If-Match: %s", 200},
    {"If-Match: W/%s", 412},
    {"If-Match: \"x\"", 412},
    {"If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT", 304},
    {"If-Modified-Since: Tue, 14 Nov 2023 22:13:19 GMT", 200},
    {"If-Modified-Since: yesterday", 200},
    {"If-Unmodified-Since: Tue, 14 Nov 2023 22:13:20 GMT", 200},
    {"If-Unmodified-Since: Tue, 14 Nov 2023 22:13:19 GMT", 412},
    {"If-None-Match: \"x\"\r\nIf-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT", 200},
};

DOMT_TEST(conditional_headers_are_heeded)
{
    char field[256], known[128];

    domt_site_make_and_open(NULL, &domt_site_service);
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 200);
    snprintf(known, sizeof known, "%s", domt_site_tag_of_answer());
    for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++) {
        const char *mark = strstr(conditions[i].field, "%s");
        size_t size = mark != NULL ? (size_t)(mark - conditions[i].field) : 0;
        snprintf(field, sizeof field, "%.*s%s%s\r\n", (int)size, conditions[i].field,
                 mark != NULL ? known : conditions[i].field, mark != NULL ? mark + 2 : "");
        unsigned status = domt_site_get("/a.txt", field);
        ck_assert_msg(status == conditions[i].status, "%s: %u", field, status);
        ck_assert_str_eq(domt_site_tag_of_answer(), known);
        ck_assert_str_eq(domt_site_body_of_answer(), status == 200 ? "0123456789" : "");
    }
    domt_site_close_and_remove();
}

/* The stage that compresses turns the file's tag into a weak one, and a 304 has the same tag as the
 * 200 before it. */
DOMT_TEST(answer_304_has_the_tag_that_the_200_had)
{
    static const struct {
        const char *fields; /* header fields of the request, with the tag in place of `%s` */
        const char *accepts;
        bool is_weak;
    } cases[] = {
        {"If-None-Match: W/", "Accept-Encoding: gzip\r\n", true},
        {"If-None-Match: \"x\" , W/", "Accept-Encoding: br, gzip\r\n", true},
        {"If-None-Match: \"x\"\r\nIf-None-Match: W/", "Accept-Encoding: gzip\r\n", true},
        {"If-None-Match: ", "Accept-Encoding: gzip\r\n", false},
        {"If-None-Match: W/", "Accept-Encoding: gzip;q=0\r\n", false},
        {"If-None-Match: W/", "", false},
        {"If-None-Match: W/\"x\", ", "Accept-Encoding: gzip\r\n", false},
    };
    char field[256], known[128];

    domt_site_make_and_open(NULL, &domt_site_service);
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 200);
    snprintf(known, sizeof known, "%s", domt_site_tag_of_answer());
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(field, sizeof field, "%s%s\r\n%s", cases[i].fields, known, cases[i].accepts);
        ck_assert_uint_eq(domt_site_get("/a.txt", field), 304);
        const char *tag = domt_site_tag_of_answer();
        ck_assert_int_eq(strncmp(tag, "W/", 2) == 0, cases[i].is_weak);
        ck_assert_str_eq(tag + (cases[i].is_weak ? 2 : 0), known);
    }
    domt_site_close_and_remove();
}

static const struct {
    const char *range;
    unsigned status;
    const char *body;
    const char *line;
} ranges[] = {
    {"bytes=0-", 206, "0123456789", "Content-Range: bytes 0-9/10"},
    {"bytes=2-4", 206, "234", "Content-Range: bytes 2-4/10"},
    {"bytes=9-100", 206, "9", "Content-Range: bytes 9-9/10"},
    {"bytes=-3", 206, "789", "Content-Range: bytes 7-9/10"},
    {"bytes=-100", 206, "0123456789", "Content-Range: bytes 0-9/10"},
    {"bytes=10-", 416, "", "Content-Range: bytes */10"},
    {"bytes=-0", 416, "", "Content-Range: bytes */10"},
    {"bytes=99999999999999999999-", 416, "", "Content-Range: bytes */10"},
    {"bytes=0-4,4-5", 200, "0123456789", "Content-Length: 10"},
    {"bytes=4-2", 200, "0123456789", "Content-Length: 10"},
    {"bytes=a", 200, "0123456789", "Content-Length: 10"},
    {"lines=0-1", 200, "0123456789", "Content-Length: 10"},
};

DOMT_TEST(single_byte_range_is_answered)
{
    char field[256];

    domt_site_make_and_open(NULL, &domt_site_service);
    for (uint32_t way = 0; way < 4; way++) {
        domt_site.reads_wait = way % 2 == 1;
        /* in way 1 the file counts as large, so its bytes are sent in pieces */
        domt_site.files.whole_max = way >= 2;
        for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
            snprintf(field, sizeof field, "Range: %s\r\n", ranges[i].range);
            unsigned status = domt_site_get("/a.txt", field);
            ck_assert_msg(status == ranges[i].status, "%s: %u", field, status);
            ck_assert_msg(domt_site_answer_has_line(ranges[i].line), "%s: %s", field,
                          domt_site.answer);
            ck_assert_str_eq(domt_site_body_of_answer(), ranges[i].body);
        }
    }
    domt_site.reads_wait = false;
    ck_assert_uint_eq(domt_site_get("/empty", "Range: bytes=0-\r\n"), 416);
    ck_assert_uint_eq(domt_site_ask("HEAD", "/a.txt", "Range: bytes=0-1\r\n"), 200);
    snprintf(field, sizeof field, "Range: bytes=0-1\r\nIf-Range: %s\r\n",
             domt_site_tag_of_answer());
    ck_assert_uint_eq(domt_site_get("/a.txt", field), 206);
    ck_assert_uint_eq(domt_site_get("/a.txt", "Range: bytes=0-1\r\nIf-Range: \"x\"\r\n"), 200);
    domt_site_close_and_remove();
}

/* --- compressed files ------------------------------------------------------------------------- */

DOMT_TEST(compressed_file_is_sent_to_clients_that_accept_it)
{
    char plain[128];

    domt_site_make_and_open(NULL, &domt_site_service);
    domt_site_check_get("/a.txt", "Accept-Encoding: gzip\r\n", 200, "0123456789");
    domt_site.files.compressed = true;
    domt_site_check_get("/a.txt", "", 200, "0123456789");
    ck_assert(domt_site_answer_has_line("Vary: Accept-Encoding") &&
              !domt_site_answer_has_line("Content-Encoding: gzip"));
    snprintf(plain, sizeof plain, "%s", domt_site_tag_of_answer());
    domt_site_check_get("/a.txt", "Accept-Encoding: br, gzip;q=0.5\r\n", 200, "packed");
    ck_assert(domt_site_answer_has_line("Vary: Accept-Encoding") &&
              domt_site_answer_has_line("Content-Encoding: gzip"));
    ck_assert(domt_site_answer_has_line("Content-Type: text/plain; charset=utf-8"));
    ck_assert_str_ne(domt_site_tag_of_answer(), plain);
    static const char *const refusals[] = {"", "gzip;q=0", "br", "gzip;q=0.5, identity", "*;q=0"};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        char field[128];
        snprintf(field, sizeof field, "Accept-Encoding: %s\r\n", refusals[i]);
        domt_site_check_get("/a.txt", field, 200, "0123456789");
    }
    domt_site_check_get("/sub/index.html", "Accept-Encoding: gzip\r\n", 200, "sub home");
    ck_assert_uint_eq(domt_site_get("/sub", "Accept-Encoding: gzip\r\n"), 301);
    ck_assert_uint_eq(domt_site_get("/a.txt.gz", ""), 200);
    ck_assert(domt_site_answer_has_line("Content-Type: application/gzip") &&
              !domt_site_answer_has_line("Content-Encoding: gzip"));
    ck_assert_int_eq(unlink(domt_site_whole_path("a.txt.gz")), 0);
    ck_assert_int_eq(mkdir(domt_site_whole_path("a.txt.gz"), 0700), 0);
    domt_site_check_get("/a.txt", "Accept-Encoding: gzip\r\n", 200, "0123456789");
    domt_site_close_and_remove();
}

DOMT_SUITE(60)
