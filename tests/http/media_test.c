/* Media types of files, and those that a client accepts. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <domus/http_media.h>

DOMT_TEST(files_have_media_types)
{
    ck_assert_str_eq(domus_http_media_of("/a/b.html"), "text/html; charset=utf-8");
    ck_assert_str_eq(domus_http_media_of("a.tar.GZ"), "application/gzip");
    ck_assert_str_eq(domus_http_media_of("a.svg"), "image/svg+xml");
    ck_assert_str_eq(domus_http_media_of("a"), "application/octet-stream");
    ck_assert_str_eq(domus_http_media_of("a."), "application/octet-stream");
    ck_assert_str_eq(domus_http_media_of(""), "application/octet-stream");
    ck_assert_str_eq(domus_http_media_of("html"), "application/octet-stream");
}

static bool is(const char *value, const char *type)
{
    domus_slice slice = domt_http_slice(value);
    bool result = domus_http_is_media(slice, type);

    domus_slice_free(slice);
    return result;
}

DOMT_TEST(parameters_do_not_change_a_type)
{
    ck_assert(is("application/json", "application/json"));
    ck_assert(is("Application/JSON ; charset=utf-8", "application/json"));
    ck_assert(!is("application/json2", "application/json"));
    ck_assert(!is("", "application/json"));
    ck_assert(!is(";application/json", "application/json"));
}

DOMT_TEST(json_has_a_name_and_an_ending)
{
    static const struct {
        const char *value;
        bool is_json;
    } values[] = {
        {"application/json", true},
        {"Application/JSON; charset=utf-8", true},
        {"application/a+json", true},
        {"application/a+JSON ;q=1", true},
        {"text/plain", false},
        {"application/jsonp", false},
        {"+json", false},
        {"application/a+json2", false},
        {"", false},
        {"text/plain;a=application/json", false},
    };

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        domus_slice slice = domt_http_slice(values[i].value);
        ck_assert_msg(domus_http_is_json(slice) == values[i].is_json, "%s", values[i].value);
        domus_slice_free(slice);
    }
}

static unsigned accepts(const char *value, const char *type)
{
    domus_slice slice = domt_http_slice(value);
    unsigned result = domus_http_accepts(slice, type);

    domus_slice_free(slice);
    return result;
}

DOMT_TEST(most_precise_element_counts)
{
    static const char list[] = "text/*;q=0.3, text/html;q=0.7, text/plain;level=1, */*;q=0.5";

    ck_assert_uint_eq(accepts(list, "text/html"), 700);
    ck_assert_uint_eq(accepts(list, "text/plain"), 1000);
    ck_assert_uint_eq(accepts(list, "text/css"), 300);
    ck_assert_uint_eq(accepts(list, "image/png"), 500);
    ck_assert_uint_eq(accepts("", "image/png"), 1000);
    ck_assert_uint_eq(accepts("text/html", "image/png"), 0);
    ck_assert_uint_eq(accepts("gzip;q=0, *;q=0.001", "gzip"), 0);
    ck_assert_uint_eq(accepts("gzip;q=0, *;q=0.001", "br"), 1);
    ck_assert_uint_eq(accepts("gzip; Q=0.125", "gzip"), 125);
    ck_assert_uint_eq(accepts("gzip;q=2", "gzip"), 1000);
    ck_assert_uint_eq(accepts("gzip;q=-1", "gzip"), 0);
    ck_assert_uint_eq(accepts("gzip;q=x", "gzip"), 0);
}

DOMT_SUITE(10)
