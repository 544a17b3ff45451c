/* Records of requests: the access log, and request ids with the trace context that a client
 * sends. */
#include "protocols/http/access.h"
#include "tests/http/chained.h"
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <domus/http_auth.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Take the lines of the access log, and replace their times by "T". */
static const char *take_lines_of_access_log(domus_http_access *access)
{
    static char text[32768];
    char lines[16384];
    size_t size = domus_http_access_take(access, lines, sizeof lines - 1);
    char *to = text;

    lines[size] = '\0';
    for (char *line = lines, *end; *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        ck_assert_ptr_nonnull(end);
        *end = '\0';
        char *time = strchr(line, access->format == DOMUS_HTTP_ACCESS_JSON ? ':' : '[');
        ck_assert_ptr_nonnull(time);
        time += access->format == DOMUS_HTTP_ACCESS_JSON ? 2 : 1;
        int length = access->format == DOMUS_HTTP_ACCESS_JSON ? 20 : 26;
        to += snprintf(to, sizeof text - (size_t)(to - text), "%.*sT%s\n", (int)(time - line), line,
                       time + length);
    }
    *to = '\0';
    return text;
}

static domus_testkit *start_service_with_access_log(domus_http_access *access)
{
    static const domus_http_user users[] = {{"ann lee", "a", NULL}, {NULL, NULL, NULL}};
    static const domus_http_auth auth = {.realm = "r", .schemes = DOMUS_HTTP_BASIC, .users = users};
    const domus_http_step parts[] = {
        {&domus_http_request_id, NULL}, {&domus_http_access_log, access}, {NULL, NULL}};

    domt_chained_guards[0] = (domus_http_step){&domus_http_authenticate, &auth};
    domt_chained_guards[1] = (domus_http_step){NULL, NULL};
    return domt_chained_start_kit(&domt_chained, parts);
}

static void stop_service_and_close_log(domus_testkit *kit, domus_http_access *access)
{
    domt_served_end_kit(kit);
    ck_assert_uint_eq(domus_http_access_dropped(access), 0);
    domus_http_access_close(access);
}

/* Let a peer at 10.0.0.1 send a request, and return the lines that it adds to the log. */
static const char *send_request_and_take_log_lines(domus_testkit *kit, domus_http_access *access,
                                                   const char *line, const char *fields)
{
    char request[8192];

    (void)snprintf(request, sizeof request,
                   "%s HTTP/1.1\r\nHost: a\r\nX-Request-Id: me\r\n"
                   "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n%s\r\n",
                   line, fields);
    (void)domt_chained_answer_to_bytes(kit, "10.0.0.1:0", request);
    return take_lines_of_access_log(access);
}

#define ANN "Authorization: Basic YW5uIGxlZTph\r\n"

DOMT_TEST(combined_log_lines_have_their_usual_form)
{
    static const char *const rows[][3] = {
        {"GET /now", "", "10.0.0.1 - - [T] \"GET /now HTTP/1.1\" 200 4 \"-\" \"-\"\n"},
        {"HEAD /now?a=b", "Referer: http://a/?b\r\nUser-Agent: me 1.0\r\n",
         "10.0.0.1 - - [T] \"HEAD /now?a=b HTTP/1.1\" 200 0 \"http://a/?b\" \"me 1.0\"\n"},
        {"GET /guarded", ANN,
         "10.0.0.1 - ann\\x20lee [T] \"GET /guarded HTTP/1.1\" 200 4 \"-\" \"-\"\n"},
        {"GET /guarded", "", "10.0.0.1 - - [T] \"GET /guarded HTTP/1.1\" 401 0 \"-\" \"-\"\n"},
        {"GET /pieces", "", "10.0.0.1 - - [T] \"GET /pieces HTTP/1.1\" 200 6 \"-\" \"-\"\n"},
        {"GET /hang", "", "10.0.0.1 - - [T] \"GET /hang HTTP/1.1\" 499 0 \"-\" \"-\"\n"},
        {"GET /none\"\\", "User-Agent: \"\\\t\xc3\xa4\r\n",
         "10.0.0.1 - - [T] \"GET /none\\\"\\\\ HTTP/1.1\" 404 0 \"-\" "
         "\"\\\"\\\\\\x09\\xc3\\xa4\"\n"},
        {"GET  /", "", "10.0.0.1 - - [T] \"-\" 400 12 \"-\" \"-\"\n"},
    };
    domus_http_access access = {.format = DOMUS_HTTP_ACCESS_COMBINED};
    domus_testkit *kit = start_service_with_access_log(&access);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_str_eq(send_request_and_take_log_lines(kit, &access, rows[i][0], rows[i][1]),
                         rows[i][2]);
    stop_service_and_close_log(kit, &access);
}

DOMT_TEST(extended_log_lines_have_time_and_id)
{
    domus_http_access access = {.format = DOMUS_HTTP_ACCESS_EXTENDED, .hides_query = true};
    domus_testkit *kit = start_service_with_access_log(&access);

    ck_assert_str_eq(send_request_and_take_log_lines(kit, &access, "GET /later?secret=1",
                                                     "Referer: /a?token=2\r\n"),
                     "10.0.0.1 - - [T] \"GET /later HTTP/1.1\" 200 6 \"/a\" \"-\" 0.010000 me\n");
    stop_service_and_close_log(kit, &access);
}

#define TRACE "\"id\":\"me\",\"trace\":\"0af7651916cd43dd8448eb211c80319c\""

DOMT_TEST(json_log_lines_are_json)
{
    static const char *const rows[][3] = {
        {"GET /now", "",
         "{\"time\":\"T\",\"client\":\"10.0.0.1\",\"method\":\"GET\",\"target\":\"/now\","
         "\"protocol\":\"HTTP/1.1\",\"status\":200,\"bytes\":4,\"duration\":0.000000," TRACE "}\n"},
        {"GET /guarded", ANN "User-Agent: a\"b\\c\xff\r\nReferer: /\r\nCookie: secret\r\n",
         "{\"time\":\"T\",\"client\":\"10.0.0.1\",\"user\":\"ann lee\",\"method\":\"GET\","
         "\"target\":\"/guarded\",\"protocol\":\"HTTP/1.1\",\"status\":200,\"bytes\":4,"
         "\"duration\":0.000000,\"referer\":\"/\",\"agent\":\"a\\\"b\\\\c\\ufffd\"," TRACE "}\n"},
        {"GET /cut", "",
         "{\"time\":\"T\",\"client\":\"10.0.0.1\",\"method\":\"GET\",\"target\":\"/cut\","
         "\"protocol\":\"HTTP/1.1\",\"status\":200,\"bytes\":3,\"duration\":0.000000," TRACE
         ",\"cut\":true}\n"},
        {"GET /fail", "",
         "{\"time\":\"T\",\"client\":\"10.0.0.1\",\"method\":\"GET\",\"target\":\"/fail\","
         "\"protocol\":\"HTTP/1.1\",\"status\":404,\"error\":\"ENOENT\",\"bytes\":10,"
         "\"duration\":0.000000," TRACE "}\n"},
        {"GET  /", "",
         "{\"time\":\"T\",\"client\":\"10.0.0.1\",\"status\":400,\"bytes\":12,"
         "\"duration\":0.000000}\n"},
    };
    domus_http_access access = {.format = DOMUS_HTTP_ACCESS_JSON};
    domus_testkit *kit = start_service_with_access_log(&access);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_str_eq(send_request_and_take_log_lines(kit, &access, rows[i][0], rows[i][1]),
                         rows[i][2]);
    stop_service_and_close_log(kit, &access);
}

/* Long texts of strangers are cut in the log, and their line is still complete. */
DOMT_TEST(long_texts_are_cut_in_log_lines)
{
    static domi_http_access_note *note;
    char line[DOMI_HTTP_ACCESS_LINE_MAX + 1];
    domus_endpoint peer = {.family = 0};
    domus_http_exchange exchange = {.peer = &peer, .via = "HTTP/1.1"};
    domus_http_access access = {.target_max = DOMUS_HTTP_ACCESS_TARGET_MAX};

    note = calloc(1, sizeof *note + 8192);
    memset(note->texts, 0xff, 8192);
    memset(exchange.user, 0xff, DOMUS_HTTP_USER_MAX);
    memset(exchange.trace.id, 'i', DOMUS_HTTP_REQUEST_ID_MAX);
    note->target_size = DOMUS_HTTP_ACCESS_TARGET_MAX;
    note->referer_size = note->agent_size = DOMUS_HTTP_ACCESS_TEXT_MAX;
    for (unsigned format = 0; format < 3; format++) {
        access.format = (domus_http_access_format)format;
        size_t size = domi_http_access_write_line(&access, &exchange, note, 1, line);
        line[size] = '\0';
        ck_assert_uint_gt(size, DOMUS_HTTP_ACCESS_TARGET_MAX);
        ck_assert_ptr_eq(strchr(line, '\n'), line + size - 1);
        ck_assert(line[size - 2] == '"' || line[size - 2] == 'i' || line[size - 2] == '}');
    }
    access.format = DOMUS_HTTP_ACCESS_COMBINED;
    access.target_max = 16;
    note->referer_size = note->agent_size = 0;
    exchange.user[0] = '\0';
    line[domi_http_access_write_line(&access, &exchange, note, 1, line)] = '\0';
    ck_assert_str_eq(line, "- - - [01/Jan/1970:00:00:01 +0000] "
                           "\"GET \\xff\\xff\\xff\\xff HTTP/1.1\" 499 0 \"-\" \"-\"\n");
    free(note);
}

DOMT_TEST(a_full_queue_drops_log_lines)
{
    domus_http_access access = {.queue_bytes = 16384};
    domi_http_access_queue *queue = domi_http_access_get_queue(&access);
    char line[1024];
    char lines[16384];

    memset(line, 'a', sizeof line);
    line[sizeof line - 1] = '\n';
    /* in some of the rounds a line crosses the end of the queue's ring */
    for (int round = 0; round < 3; round++) {
        size_t less = 100 + (size_t)round;
        domi_http_access_put_line(queue, line + sizeof line - less, less);
        for (int i = 0; i < 16; i++)
            domi_http_access_put_line(queue, line, sizeof line);
        ck_assert_uint_eq(domus_http_access_dropped(&access), (uint64_t)round + 1);
        size_t size = domus_http_access_take(&access, lines, 1023);
        /* the room ends within a later line, so only whole lines before it are taken */
        ck_assert_uint_eq(size, less);
        size = domus_http_access_take(&access, lines, sizeof lines);
        ck_assert_uint_eq(size, 15 * sizeof line);
        ck_assert_uint_eq(domus_http_access_take(&access, lines, sizeof lines), 0);
    }
    domus_http_access_close(&access);
    ck_assert_ptr_null(access.queue);
}

static const char *text_of_file(const char *path)
{
    static char text[1024];
    FILE *file = fopen(path, "r");

    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    return text;
}

static int fail_to_write_log_lines(void *context, const char *lines, size_t size)
{
    return -EIO;
}

DOMT_TEST(log_lines_left_in_the_queue_are_written_at_the_end)
{
    char path[] = "/tmp/domus-access-XXXXXX";
    int file = mkstemp(path);
    domus_http_access access = {.path = path};
    domus_http_access refuses = {.write = fail_to_write_log_lines};

    ck_assert_int_ge(file, 0);
    (void)close(file);
    for (int i = 0; i < 2; i++) {
        domi_http_access_put_line(domi_http_access_get_queue(&access), "line\n", 5);
        domus_http_access_close(&access);
    }
    ck_assert_str_eq(text_of_file(path), "line\nline\n");
    (void)unlink(path);
    domi_http_access_put_line(domi_http_access_get_queue(&refuses), "a\nb\n", 4);
    domus_http_access_close(&refuses);
}

DOMT_TEST(wrong_options_of_access_logs_are_refused)
{
    const domus_http_access wrong[] = {
        {.proxies = 9},         {.flush_ns = 60000000001},
        {.target_max = 15},     {.queue_bytes = (16u << 20) + 1},
        {.flush_ns = 9999999},  {.format = (domus_http_access_format)3},
        {.queue_bytes = 16383}, {.target_max = DOMUS_HTTP_ACCESS_TARGET_MAX + 1}};
    const domus_http_access right = {
        .queue_bytes = 16u << 20, .target_max = 16, .proxies = 8, .flush_ns = 10000000};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domus_http_access_log.check(&wrong[i]), -EINVAL);
    ck_assert_int_eq(domus_http_access_log.check(&right), 0);
    ck_assert_int_eq(domus_http_access_log.check(NULL), -EINVAL);
}

#define TRACE_ID "0af7651916cd43dd8448eb211c80319c"
#define SPAN     "b7ad6b7169203331"
#define PARENT   "00-" TRACE_ID "-" SPAN "-01"

static int read_traceparent(const char *value)
{
    domus_http_trace trace = {.flags = 0};

    return domus_http_traceparent_read(value, strlen(value), &trace);
}

DOMT_TEST(values_of_traceparent_are_read_strictly)
{
    static const char *const right[] = {
        PARENT,
        "00-" TRACE_ID "-" SPAN "-00",
        "00-" TRACE_ID "-" SPAN "-ff", /* flags of traceparent that W3C has not defined yet */
        "01-" TRACE_ID "-" SPAN "-01",
        "cc-" TRACE_ID "-" SPAN "-01-what the future will be like",
    };
    static const char *const wrong[] = {
        "00-" TRACE_ID "-" SPAN "-0",   "00-" TRACE_ID "-" SPAN "-01-more",
        "ff-" TRACE_ID "-" SPAN "-01",  "cc-" TRACE_ID "-" SPAN "-01.more",
        "0x-" TRACE_ID "-" SPAN "-01",  "00-" TRACE_ID "-b7ad6b716920333x-01",
        "00." TRACE_ID "-" SPAN "-01",  "00-" TRACE_ID "-0000000000000000-01",
        "00-" TRACE_ID "." SPAN "-01",  "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
        "00-" TRACE_ID "-" SPAN ".01",  "00-0af7651916cd43dd8448eb211c80319g-" SPAN "-01",
        "00-" TRACE_ID "-" SPAN "-0x",  "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE_ID "-" SPAN "-01 ", ""};

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        ck_assert_msg(read_traceparent(right[i]) == 0, "%s", right[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(read_traceparent(wrong[i]) == -EINVAL, "%s", wrong[i]);
}

DOMT_TEST(trace_fields_are_written_as_they_are_read)
{
    domus_http_trace trace;
    domus_http_trace child;
    domus_appender added = {0};
    char text[DOMUS_HTTP_TRACEPARENT_SIZE + 1];
    domus_slice fields = domt_slice_of_text("traceparent: " PARENT "\r\nX-Request-Id: me\r\n");

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

/* Returns the names that a request with these fields gets: "id=ours|theirs trace=new|theirs
 * flags=N". "ours" means that the request's id is its trace id. The span is always new. */
static const char *ids_given_to_request(const domus_http_request_id_options *options,
                                        const char *path, const char *fields)
{
    static char text[256];
    const domus_http_step parts[] = {{&domus_http_request_id, options}, {NULL, NULL}};
    domus_testkit *kit = domt_chained_start_kit(&domt_chained, parts);
    const char *got = domt_chained_answer_to_request(kit, path, fields);
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
                   strcmp(trace, TRACE_ID) == 0 ? "theirs" : "new", flags,
                   strstr(body, " state") != NULL ? " state" : "");
    domt_served_end_kit(kit);
    return text;
}

DOMT_TEST(requests_get_ids_and_traces)
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
            ck_assert_str_eq(ids_given_to_request(rows[i].options, paths[j], rows[i].fields),
                             rows[i].names);
    }
}

DOMT_TEST(request_ids_are_bounded_in_length)
{
    char id[DOMUS_HTTP_REQUEST_ID_MAX + 2];
    char fields[128];
    char names[128];

    memset(id, 'i', sizeof id);
    id[DOMUS_HTTP_REQUEST_ID_MAX] = '\0';
    (void)snprintf(fields, sizeof fields, "X-Request-Id: %s\r\n", id);
    (void)snprintf(names, sizeof names, "id=%s trace=new flags=00", id);
    ck_assert_str_eq(ids_given_to_request(NULL, "GET /names", fields), names);
    (void)snprintf(fields, sizeof fields, "X-Request-Id: %si\r\n", id);
    ck_assert_str_eq(ids_given_to_request(NULL, "GET /names", fields),
                     "id=ours trace=new flags=00");
}

DOMT_TEST(wrong_options_of_request_ids_are_refused)
{
    static const domus_http_request_id_options wrong = {.flags = 2};

    ck_assert_int_eq(domus_http_request_id.check(&wrong), -EINVAL);
    ck_assert_int_eq(domus_http_request_id.check(NULL), 0);
}

DOMT_SUITE(20)
