/* /hello?name=NAME: a page that is made for each request, with a text of whoever asks in it. */
#include "web.h"

#include <domus/http_html.h>
#include <domus/http_query.h>

#include <errno.h>

#define NAME_MAX_BYTES 64u

static int serve_hello(domus_stack *stack, void *self, const void *payload)
{
    char name[NAME_MAX_BYTES];
    domus_appender page = {0};
    domus_slice body;
    int64_t size = domus_http_query_value(domus_http_query(payload), "name", name, sizeof name);

    (void)self;
    if (size < 0 && size != -ENOENT)
        return web_answer_with_line(stack, 400, "a name has up to 64 bytes\n");
    (void)domus_append_text(&page, "<!DOCTYPE html>\n<title>Hello</title>\n<p>Hello, ");
    (void)domus_http_append_html(&page, name, size > 0 ? (size_t)size : 0);
    (void)domus_append_text(&page, "!</p>\n");
    int error = domus_append_end(&page, &body);
    return error != 0 ? error
                      : web_answer_200_with_uncached_body(stack, "text/html; charset=utf-8", body);
}

const domus_call web_serve_hello = {serve_hello, 0};
