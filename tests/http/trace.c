/* Runs the stage in a kit, and prints what it makes. */
#include "tests/http/trace.h"

#include <check.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_ROOM 262144

void domt_http_start(domt_http *http, const domus_http_options *options)
{
    *http = (domt_http){.stages = {{&domus_http_stage, options}, {NULL, NULL}}};
    http->pipeline.stages = http->stages;
    ck_assert_int_eq(domus_stage_kit_new(&http->pipeline, &http->kit), 0);
}

void domt_http_stop(domt_http *http)
{
    domus_stage_kit_free(http->kit);
}

const char *domt_http_sent(domt_http *http)
{
    static char sent[TEXT_ROOM];
    size_t size;
    const char *output = domus_stage_kit_output(http->kit, &size);

    ck_assert_uint_lt(size, sizeof sent);
    memcpy(sent, output, size);
    sent[size] = '\0';
    domus_stage_kit_clear(http->kit);
    return sent;
}

domus_slice domt_http_slice(const char *text)
{
    domus_slice slice;

    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &slice), 0);
    return slice;
}

uint64_t domt_http_feed(domt_http *http, const char *bytes)
{
    domus_stage_message message;

    ck_assert_int_eq(domus_stage_kit_feed(http->kit, bytes, strlen(bytes)), 0);
    ck_assert_int_eq(domus_stage_kit_next(http->kit, &message), 1);
    return message.id;
}

void domt_http_ask(domt_http *http, const char *asks)
{
    for (; *asks != '\0'; asks++) {
        domus_http_request request = {
            .target = domt_http_slice("/"),
            .fields = domt_http_slice("Host: a\r\n"),
            .method = *asks == 'H' ? DOMUS_HTTP_HEAD : DOMUS_HTTP_GET,
            .upgrade = *asks == 'U',
        };
        ck_assert_int_eq(domus_stage_kit_encode(http->kit, 0, &domus_http_request_type, &request),
                         0);
        domus_http_request_type.release(&request);
    }
    domus_stage_kit_clear(http->kit);
}

/* --- text ------------------------------------------------------------------------------------- */

typedef struct text {
    char *to;
    size_t room;
} text;

static void add(text *at, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(text *at, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    int size = vsnprintf(at->to, at->room, format, list);
    va_end(list);
    ck_assert(size >= 0 && (size_t)size < at->room);
    at->to += size;
    at->room -= (size_t)size;
}

static void add_bytes(text *at, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] < ' ' || bytes[i] > '~')
            add(at, "\\x%02x", (unsigned char)bytes[i]);
        else
            add(at, "%c", bytes[i]);
    }
}

/* Long texts are printed as their size and a sum. */
static void add_slice(text *at, domus_slice slice)
{
    const char *data = domus_slice_data(slice);
    uint32_t sum = 0;

    for (uint32_t i = 0; i < slice.size; i++)
        sum = sum * 31 + (unsigned char)data[i];
    if (slice.size > 64)
        add(at, "%u bytes, %08x", slice.size, sum);
    else
        add_bytes(at, data, slice.size);
}

static void add_fields(text *at, domus_slice fields)
{
    domus_http_line line;
    uint32_t in = 0;
    const char *divider = " (";

    while (domus_http_next(fields, &in, &line)) {
        add(at, "%s", divider);
        add_slice(at, line.name);
        add(at, ": ");
        add_slice(at, line.value);
        divider = "|";
    }
    ck_assert_uint_ge(in, fields.size);
    add(at, "%s", in != 0 ? ")" : " ()");
}

static void add_body(text *at, domus_body stream, uint64_t length, domus_slice body)
{
    if (stream.number != 0) {
        add(at, " %llu in pieces: [", (unsigned long long)length);
        return;
    }
    if (body.size != 0) {
        add(at, " [");
        add_slice(at, body);
        add(at, "]");
    }
    add(at, "\n");
}

static void add_request(text *at, const domus_http_request *request)
{
    add(at, "%s ", domus_http_method_name(request->method));
    add_slice(at, request->target);
    add(at, " 1.%u%s%s", request->minor, request->close ? " close" : "",
        request->upgrade ? " upgrade" : "");
    add_fields(at, request->fields);
    add_body(at, request->stream, request->length, request->body);
}

static void add_response(text *at, const domus_http_response *response)
{
    add(at, "%u 1.%u%s", response->status, response->minor, response->close ? " close" : "");
    add_fields(at, response->fields);
    add_body(at, response->stream, response->length, response->body);
}

/* Bytes of pieces are printed behind each other, because their number depends on the cuts. */
static void add_piece(text *at, const domus_stage_message *message)
{
    if (message->type == &domus_http_trailers_type) {
        add(at, "]");
        add_fields(at, ((const domus_http_trailers *)message->payload)->fields);
        add(at, "\n");
        return;
    }
    const domus_piece *piece = message->payload;
    ck_assert_ptr_eq(message->type, &domus_piece_type);
    ck_assert(piece->bytes.size != 0 || piece->last);
    add_bytes(at, domus_slice_data(piece->bytes), piece->bytes.size);
    if (piece->last)
        add(at, "]\n");
}

/* --- traces ----------------------------------------------------------------------------------- */

static int decode_all(domt_http *http, text *at)
{
    domus_stage_message message;
    int result;

    while ((result = domus_stage_kit_next(http->kit, &message)) == 1) {
        if (message.kind == DOMUS_STAGE_PIECE)
            add_piece(at, &message);
        else if (message.kind == DOMUS_STAGE_REQUEST)
            add_request(at, message.payload);
        else
            add_response(at, message.payload);
    }
    return result;
}

const char *domt_http_trace(const domus_http_options *options, const char *asks, const char *bytes,
                            size_t size, size_t cut, size_t step)
{
    static char rooms[4][TEXT_ROOM];
    static unsigned turn;
    char *room = rooms[turn++ % 4];
    text at = {room, TEXT_ROOM};
    domt_http http;
    int result = 0;

    room[0] = '\0';
    domt_http_start(&http, options);
    domt_http_ask(&http, asks);
    for (size_t done = 0; done < size && result == 0;) {
        size_t piece = done == 0 && cut != 0 ? cut : step != 0 ? step : size;
        if (piece > size - done)
            piece = size - done;
        ck_assert_int_eq(domus_stage_kit_feed(http.kit, bytes + done, piece), 0);
        result = decode_all(&http, &at);
        done += piece;
    }
    if (result == 0) {
        domus_stage_kit_finish(http.kit);
        result = decode_all(&http, &at);
    }
    if (result < 0) {
        (void)domt_http_sent(&http);
        add(&at, "%s", strerrorname_np(-result));
        if (domus_stage_kit_fail(http.kit, DOMUS_NO_ID, NULL, result) == 0) {
            const char *sent = domt_http_sent(&http);
            ck_assert(*sent == '\0' || (strncmp(sent, "HTTP/1.1 ", 9) == 0 &&
                                        strstr(sent, "\r\nConnection: close\r\n") != NULL));
            add(&at, " %.3s", *sent != '\0' ? sent + 9 : "");
        }
    }
    domt_http_stop(&http);
    return room;
}

void domt_http_holds(const domus_http_options *options, const char *asks, const char *bytes,
                     size_t size, const char *expected)
{
    ck_assert_str_eq(domt_http_trace(options, asks, bytes, size, 0, 0), expected);
    for (size_t cut = 1; cut < size; cut++)
        ck_assert_str_eq(domt_http_trace(options, asks, bytes, size, cut, 0), expected);
    ck_assert_str_eq(domt_http_trace(options, asks, bytes, size, 0, 1), expected);
}
