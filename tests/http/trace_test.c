/* Requests have names: traceparent is read as W3C Trace Context says, the part of the chain gives
 * each request an id and a span, and these go on with the request. */
#include "tests/http/chained.h"
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define SPAN   "b7ad6b7169203331"
#define PARENT "00-" TRACE "-" SPAN "-01"

static int read(const char *value)
{
    domus_http_trace trace = {.flags = 0};

    return domus_http_traceparent_read(value, strlen(value), &trace);
}

DOMT_TEST(values_of_traceparent_are_read_strictly)
{
    static const char *const right[] = {
        PARENT,
        "00-" TRACE "-" SPAN "-00",
        "00-" TRACE "-" SPAN "-ff", /* flags that have no meaning yet */
        "01-" TRACE "-" SPAN "-01",
        "cc-" TRACE "-" SPAN "-01-what the future will be like",
    };
    static const char *const wrong[] = {
        "",
        "00-" TRACE "-" SPAN "-0",
        "00-" TRACE "-" SPAN "-01 ",
        "00-" TRACE "-" SPAN "-01-more",
        "cc-" TRACE "-" SPAN "-01.more",
        "ff-" TRACE "-" SPAN "-01",
        "0x-" TRACE "-" SPAN "-01",
        "00." TRACE "-" SPAN "-01",
        "00-" TRACE "." SPAN "-01",
        "00-" TRACE "-" SPAN ".01",
        "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
        "00-0af7651916cd43dd8448eb211c80319g-" SPAN "-01",
        "00-" TRACE "-b7ad6b716920333x-01",
        "00-" TRACE "-" SPAN "-0x",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
    };

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        ck_assert_msg(read(right[i]) == 0, "%s", right[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(read(wrong[i]) == -EINVAL, "%s", wrong[i]);
}

DOMT_TEST(names_are_written_as_they_are_read)
{
    domus_http_trace trace;
    domus_http_trace child;
    domus_appender added = {0};
    char text[DOMUS_HTTP_TRACEPARENT_SIZE + 1];
    domus_slice fields = domt_http_slice("traceparent: " PARENT "\r\nX-Request-Id: me\r\n");

    ck_assert_int_eq(domus_http_trace_of(fields, &trace), 0);
    domus_http_traceparent_write(&trace, text);
    ck_assert_str_eq(text, PARENT);
    ck_assert_int_eq(domus_http_trace_begin(&trace, &child), 0);
    ck_assert_mem_eq(child.trace, trace.trace, sizeof trace.trace);
    ck_assert_mem_ne(child.span, trace.span, sizeof trace.span);
    ck_assert_uint_eq(child.flags, 1);
    ck_assert_str_eq(child.id, "me");
    ck_assert_int_eq(domus_http_trace_add(&added, &trace), 0);
    domus_slice_free(fields);
    ck_assert_int_eq(domus_append_end(&added, &fields), 0);
    ck_assert(domus_slice_equals(fields, "traceparent: " PARENT "\r\nX-Request-Id: me\r\n", 88));
    domus_slice_free(fields);
    ck_assert_int_eq(domus_http_trace_add(&added, &(domus_http_trace){.flags = 0}), 0);
    ck_assert_uint_eq(added.size, 0);
    ck_assert_int_eq(domus_http_trace_begin(NULL, &child), 0);
    ck_assert_str_eq(child.id, "");
}

/* The names that a request with these fields gets: "id=ours|theirs trace=new|theirs flags=N". An id
 * is ours if it is the trace, and the span is always a new one. */
static const char *names_of(const domus_http_request_id_options *options, const char *path,
                            const char *fields)
{
    static char text[256];
    const domus_http_step parts[] = {{&domus_http_request_id, options}, {NULL, NULL}};
    domus_testkit *kit = domt_chained_start(&domt_chained, parts);
    const char *got = domt_chained_ask(kit, path, fields);
    const char *body = strstr(got, "\r\n\r\n");
    const char *field = strstr(got, "X-Request-Id: ");
    char id[80], trace[40], span[20], flags[4];

    ck_assert_ptr_nonnull(body);
    ck_assert_int_eq(sscanf(body, " %79s 00-%32[0-9a-f]-%16[0-9a-f]-%2s", id, trace, span, flags),
                     4);
    ck_assert_str_ne(span, SPAN);
    ck_assert_int_eq(field != NULL, options == NULL || !options->silent);
    ck_assert(field == NULL || strncmp(field + 14, id, strlen(id)) == 0);
    (void)snprintf(text, sizeof text, "id=%s trace=%s flags=%s%s",
                   strcmp(id, trace) == 0 ? "ours" : id,
                   strcmp(trace, TRACE) == 0 ? "theirs" : "new", flags,
                   strstr(body, " state") != NULL ? " state" : "");
    domt_served_end(kit);
    return text;
}

DOMT_TEST(requests_get_their_names)
{
    static const domus_http_request_id_options distrusts = {.distrusts = true},
                                               records = {.flags = 1, .silent = true};
    static const struct {
        const domus_http_request_id_options *options;
        const char *fields;
        const char *names;
    } rows[] = {
        {NULL, "", "id=ours trace=new flags=00"},
        {&records, "", "id=ours trace=new flags=01"},
        {NULL, "Traceparent: " PARENT "\r\n", "id=ours trace=theirs flags=01"},
        {NULL, "X-REQUEST-ID: a/b=\r\nTraceparent: " PARENT "\r\nA: b\r\n",
         "id=a/b= trace=theirs flags=01"},
        {NULL, "Traceparent: " PARENT "0\r\n", "id=ours trace=new flags=00"},
        {NULL, "Traceparent: " PARENT "\r\nTraceparent: " PARENT "\r\n",
         "id=ours trace=new flags=00"},
        {NULL, "X-Request-Id: a\r\nX-Request-Id: a\r\n", "id=ours trace=new flags=00"},
        {NULL, "Tracestate: a=b\r\nTraceparent: " PARENT "\r\n",
         "id=ours trace=theirs flags=01 state"},
        {NULL, "Tracestate: a=b\r\n", "id=ours trace=new flags=00"},
        {&distrusts, "Tracestate: a=b\r\nTraceparent: " PARENT "\r\n",
         "id=ours trace=new flags=00"},
        {NULL, "X-Request-Id: a b\r\n", "id=ours trace=new flags=00"},
        {NULL, "X-Request-Id: \"\r\n", "id=ours trace=new flags=00"},
        {NULL, "X-Request-Id:\r\n", "id=ours trace=new flags=00"},
        {&distrusts, "X-Request-Id: a\r\nTraceparent: " PARENT "\r\n",
         "id=ours trace=new flags=00"},
    };
    static const char *const paths[] = {"GET /names", "GET /ask"};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t j = 0; j < 2; j++)
            ck_assert_str_eq(names_of(rows[i].options, paths[j], rows[i].fields), rows[i].names);
    }
}

DOMT_TEST(ids_have_a_bound)
{
    char id[DOMUS_HTTP_REQUEST_ID_MAX + 2];
    char fields[128];
    char names[128];

    memset(id, 'i', sizeof id);
    id[DOMUS_HTTP_REQUEST_ID_MAX] = '\0';
    (void)snprintf(fields, sizeof fields, "X-Request-Id: %s\r\n", id);
    (void)snprintf(names, sizeof names, "id=%s trace=new flags=00", id);
    ck_assert_str_eq(names_of(NULL, "GET /names", fields), names);
    (void)snprintf(fields, sizeof fields, "X-Request-Id: %si\r\n", id);
    ck_assert_str_eq(names_of(NULL, "GET /names", fields), "id=ours trace=new flags=00");
}

DOMT_TEST(wrong_options_are_refused)
{
    static const domus_http_request_id_options wrong = {.flags = 2};

    ck_assert_int_eq(domus_http_request_id.check(&wrong), -EINVAL);
    ck_assert_int_eq(domus_http_request_id.check(NULL), 0);
}

DOMT_SUITE(20)
