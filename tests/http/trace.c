/* Runs the stage of HTTP in a kit, and prints what it makes of the bytes (tests/http/trace.h). */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <string.h>

void domt_http_start_codec(domt_codec *http, const domus_http_options *options)
{
    domt_codec_start(http, &domus_http_stage, options);
}

domus_slice domt_slice_of_text(const char *text)
{
    domus_slice slice;

    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &slice), 0);
    return slice;
}

uint64_t domt_http_feed_request_text(domt_codec *http, const char *bytes)
{
    domus_stage_message message;

    ck_assert_int_eq(domus_stage_kit_feed(http->kit, bytes, strlen(bytes)), 0);
    ck_assert_int_eq(domus_stage_kit_next(http->kit, &message), 1);
    return message.id;
}

void domt_http_encode_requests(domt_codec *http, const char *asks)
{
    for (; *asks != '\0'; asks++) {
        domus_http_request request = {
            .target = domt_slice_of_text("/"),
            .fields = domt_slice_of_text("Host: a\r\n"),
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

static void print_fields(domt_text *at, domus_slice fields)
{
    domus_http_line line;
    uint32_t in = 0;
    const char *divider = " (";

    while (domus_http_next(fields, &in, &line)) {
        domt_text_append_format(at, "%s", divider);
        domt_text_append_slice(at, line.name);
        domt_text_append_format(at, ": ");
        domt_text_append_slice(at, line.value);
        divider = "|";
    }
    ck_assert_uint_ge(in, fields.size);
    domt_text_append_format(at, "%s", in != 0 ? ")" : " ()");
}

static void print_body(domt_text *at, domus_body stream, uint64_t length, domus_slice body)
{
    if (stream.number != 0) {
        domt_text_append_format(at, " %llu in pieces: [", (unsigned long long)length);
        return;
    }
    if (body.size != 0) {
        domt_text_append_format(at, " [");
        domt_text_append_slice(at, body);
        domt_text_append_format(at, "]");
    }
    domt_text_append_format(at, "\n");
}

static void print_request(domt_text *at, const domus_http_request *request)
{
    domt_text_append_format(at, "%s ", domus_http_method_name(request->method));
    domt_text_append_slice(at, request->target);
    domt_text_append_format(at, " 1.%u%s%s", request->minor, request->close ? " close" : "",
                            request->upgrade ? " upgrade" : "");
    print_fields(at, request->fields);
    print_body(at, request->stream, request->length, request->body);
}

static void print_response(domt_text *at, const domus_http_response *response)
{
    domt_text_append_format(at, "%u 1.%u%s", response->status, response->minor,
                            response->close ? " close" : "");
    print_fields(at, response->fields);
    print_body(at, response->stream, response->length, response->body);
}

/* Print a piece of a body directly behind the one before, because the number of pieces depends on
 * the cuts. */
static void print_piece(domt_text *at, const domus_stage_message *message)
{
    if (message->type == &domus_http_trailers_type) {
        domt_text_append_format(at, "]");
        print_fields(at, ((const domus_http_trailers *)message->payload)->fields);
        domt_text_append_format(at, "\n");
        return;
    }
    const domus_piece *piece = message->payload;
    ck_assert_ptr_eq(message->type, &domus_piece_type);
    ck_assert(piece->bytes.size != 0 || piece->last);
    domt_text_append_bytes(at, domus_slice_data(piece->bytes), piece->bytes.size);
    if (piece->last)
        domt_text_append_format(at, "]\n");
}

static void print_message(domt_text *at, const domus_stage_message *message)
{
    if (message->kind == DOMUS_STAGE_PIECE)
        print_piece(at, message);
    else if (message->kind == DOMUS_STAGE_REQUEST)
        print_request(at, message->payload);
    else
        print_response(at, message->payload);
}

/* Print only the status of the answer that the peer got. */
static void print_status_of_sent(domt_text *at, const char *sent)
{
    if (sent == NULL)
        return;
    ck_assert(*sent == '\0' || (strncmp(sent, "HTTP/1.1 ", 9) == 0 &&
                                strstr(sent, "\r\nConnection: close\r\n") != NULL));
    domt_text_append_format(at, " %.3s", *sent != '\0' ? sent + 9 : "");
}

/* --- traces ----------------------------------------------------------------------------------- */

static void encode_asks_of_trace(domt_codec *http, const void *asks)
{
    domt_http_encode_requests(http, asks);
}

static domt_codec_trace make_trace_of_stage(const domus_http_options *options, const char *asks)
{
    return (domt_codec_trace){.stage = &domus_http_stage,
                              .options = options,
                              .begin = encode_asks_of_trace,
                              .context = asks,
                              .print = print_message,
                              .print_sent = print_status_of_sent};
}

const char *domt_http_trace_of_bytes(const domus_http_options *options, const char *asks,
                                     const char *bytes, size_t size, size_t cut, size_t step)
{
    domt_codec_trace trace = make_trace_of_stage(options, asks);

    return domt_codec_decode_to_text(&trace, bytes, size, cut, step);
}

void domt_http_expect_trace(const domus_http_options *options, const char *asks, const char *bytes,
                            size_t size, const char *expected)
{
    domt_codec_trace trace = make_trace_of_stage(options, asks);

    domt_codec_check_text(&trace, bytes, size, expected);
}
