/* Reads messages of HTTP by the stage and by llhttp, and compares the results. */
#include "tests/fuzz/support/judge.h"
#include "tests/fuzz/support/fuzz.h"

#include "protocols/http/texts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_bytes(domt_http_read *read, const void *bytes, size_t size)
{
    if (read->size + size > read->room) {
        read->room = 2 * (read->size + size);
        read->text = realloc(read->text, read->room);
        domt_fuzz_abort_unless(read->text != NULL);
    }
    if (size != 0)
        memcpy(read->text + read->size, bytes, size);
    read->size += size;
}

static void add_string(domt_http_read *read, const char *text)
{
    add_bytes(read, text, strlen(text));
}

static void add_slice_text(domt_http_read *read, domus_slice slice)
{
    add_bytes(read, domus_slice_data(slice), slice.size);
}

static void end_text_of_message(domt_http_read *read)
{
    add_string(read, "\n.\n");
    read->ends[read->count++] = read->size;
}

void domt_http_free_reading(domt_http_read *read)
{
    free(read->text);
    *read = (domt_http_read){.text = NULL};
}

void domt_http_check_readings_are_same(const domt_http_read *one, const domt_http_read *other)
{
    domt_fuzz_abort_unless(one->error == other->error && one->count == other->count &&
                           one->size == other->size);
    domt_fuzz_abort_unless(one->size == 0 || memcmp(one->text, other->text, one->size) == 0);
}

/* --- the stage -------------------------------------------------------------------------------- */

static void add_fields_text(domt_http_read *read, domus_slice fields)
{
    domus_http_line line;
    uint32_t at = 0;

    while (domus_http_next(fields, &at, &line)) {
        add_slice_text(read, line.name);
        add_string(read, ":");
        add_slice_text(read, line.value);
        add_string(read, "\n");
    }
    domt_fuzz_abort_unless(at >= fields.size);
}

static void add_request_as_text(domt_http_read *read, const domus_http_request *request)
{
    add_string(read, domus_http_method_name(request->method));
    add_string(read, " ");
    add_slice_text(read, request->target);
    add_string(read, request->minor != 0 ? " 1\n" : " 0\n");
    add_fields_text(read, request->fields);
    domt_fuzz_abort_unless(domus_http_host(request).size != 0 || request->minor == 0);
    domt_fuzz_abort_unless(domus_http_path(request).size + domus_http_query(request).size <=
                           request->target.size);
    add_string(read, "\n");
    add_slice_text(read, request->body);
}

static void add_response_as_text(domt_http_read *read, const domus_http_response *response)
{
    char line[32];

    snprintf(line, sizeof line, "%u %u\n", response->status, response->minor);
    add_string(read, line);
    add_fields_text(read, response->fields);
    add_string(read, "\n");
    add_slice_text(read, response->body);
}

static void add_piece_of_body(domt_http_read *read, const domus_stage_message *message)
{
    if (message->type == &domus_piece_type) {
        add_slice_text(read, ((const domus_piece *)message->payload)->bytes);
    } else {
        add_string(read, "\n");
        add_fields_text(read, ((const domus_http_trailers *)message->payload)->fields);
    }
}

/* Returns whether the stage has read all messages, or as many as `read` has room for. */
static bool has_read_all_messages(const domt_http_read *read, const domus_stage_kit *kit)
{
    return read->count == DOMT_HTTP_MESSAGES_MAX ||
           (read->count != 0 && domus_stage_kit_is_last(kit));
}

static int decode_messages(domt_http_read *read, domus_stage_kit *kit, domt_http_take *take,
                           void *context)
{
    domus_stage_message message;
    int result = 0;

    while (!has_read_all_messages(read, kit) &&
           (result = domus_stage_kit_next(kit, &message)) == 1) {
        if (message.kind == DOMUS_STAGE_PIECE) {
            add_piece_of_body(read, &message);
        } else {
            if (message.kind == DOMUS_STAGE_REQUEST)
                add_request_as_text(read, message.payload);
            else
                add_response_as_text(read, message.payload);
            if (take != NULL)
                take(context, kit, &message);
        }
        if (message.kind == DOMUS_STAGE_PIECE ? message.last : !message.has_body)
            end_text_of_message(read);
    }
    return has_read_all_messages(read, kit) ? 0 : result;
}

/* Send requests as the client, which reads no response without a request. */
static void encode_requests_of_client(const domt_http_read *read, domus_stage_kit *kit)
{
    domus_http_request request = {.method = DOMUS_HTTP_GET};

    domt_fuzz_abort_unless(domus_slice_copy("/", 1, &request.target) == 0);
    for (uint32_t i = 0; i < DOMT_HTTP_MESSAGES_MAX; i++) {
        request.method = (read->heads >> i & 1) != 0 ? DOMUS_HTTP_HEAD : DOMUS_HTTP_GET;
        domt_fuzz_abort_unless(domus_stage_kit_encode(kit, i, &domus_http_request_type, &request) ==
                               0);
    }
    domus_http_request_type.release(&request);
    domus_stage_kit_clear(kit);
}

void domt_http_read_by_stage(domt_http_read *read, const domus_http_options *options,
                             const uint8_t *bytes, size_t size, size_t step, domt_http_take *take,
                             void *context)
{
    domus_pipeline_stage stages[2] = {{&domus_http_stage, options}, {NULL, NULL}};
    domus_pipeline pipeline = {.stages = stages};
    domus_stage_kit *kit;
    int result = 0;

    domt_fuzz_abort_unless(domus_stage_kit_new(&pipeline, &kit) == 0);
    if (read->is_client)
        encode_requests_of_client(read, kit);
    for (size_t done = 0; done < size && result == 0; done += step) {
        size_t piece = size - done < step ? size - done : step;
        domt_fuzz_abort_unless(domus_stage_kit_feed(kit, bytes + done, piece) == 0);
        result = decode_messages(read, kit, take, context);
    }
    if (result == 0 && !has_read_all_messages(read, kit)) {
        domus_stage_kit_finish(kit);
        result = decode_messages(read, kit, take, context);
    }
    if (result < 0)
        (void)domus_stage_kit_fail(kit, DOMUS_NO_ID, NULL, result);
    read->error = result;
    domus_stage_kit_free(kit);
}

/* --- llhttp ----------------------------------------------------------------------------------- */

#ifdef DOMT_LLHTTP
#include <llhttp.h>

typedef struct reading {
    domt_http_read *read;
    size_t began;    /* begin of the current message's text in `read->text` */
    size_t value;    /* begin of the current field's value in `read->text` */
    uint32_t finals; /* number of responses so far that are not interim ones */
    bool in_trailers;
    bool has_trailers;
} reading;

static domt_http_read *reading_of_parser(const llhttp_t *parser)
{
    return ((reading *)parser->data)->read;
}

static int handle_begin_of_message(llhttp_t *parser)
{
    reading *judge = parser->data;

    if (judge->read->count == DOMT_HTTP_MESSAGES_MAX)
        return -1; /* llhttp stops at as many messages as `read` has room for, as the stage does */
    judge->began = judge->read->size;
    judge->in_trailers = judge->has_trailers = false;
    return 0;
}

static int add_part_of_method(llhttp_t *parser, const char *at, size_t size)
{
    add_bytes(reading_of_parser(parser), at, size);
    return 0;
}

static int handle_end_of_method(llhttp_t *parser)
{
    add_string(reading_of_parser(parser), " ");
    reading_of_parser(parser)->url = reading_of_parser(parser)->size;
    return 0;
}

static int add_part_of_url(llhttp_t *parser, const char *at, size_t size)
{
    add_bytes(reading_of_parser(parser), at, size);
    return 0;
}

/* Decode all percent escapes of a text once, in place. Returns its new size. */
static size_t decode_escapes_once(char *to, const char *text, size_t size)
{
    size_t written = 0;
    unsigned byte;

    for (size_t at = 0; at < size; at++) {
        char digits[3] = {0};
        if (text[at] == '%' && size - at >= 3)
            memcpy(digits, text + at + 1, 2);
        bool is_escape = strspn(digits, "0123456789abcdefABCDEF") == 2;
        if (is_escape)
            domt_fuzz_abort_unless(sscanf(digits, "%2x", &byte) == 1);
        to[written++] = is_escape ? (char)byte : text[at];
        at += is_escape ? 2 : 0;
    }
    return written;
}

/* Check that normalizing a target keeps its meaning, and that normalizing it again changes nothing.
 * The stage has normalized the target, so llhttp's is normalized here. */
static int handle_end_of_url(llhttp_t *parser)
{
    domt_http_read *read = reading_of_parser(parser);
    char *url = read->text + read->url;
    size_t size = read->size - read->url;
    char *decoded = malloc(3 * size + 1);
    char *again = decoded + size;

    domt_fuzz_abort_unless(decoded != NULL);
    size_t count = decode_escapes_once(decoded, url, size);
    size_t left = domi_http_normalize_path_of_target(url, size);
    domt_fuzz_abort_unless(decode_escapes_once(again, url, left) == count &&
                           memcmp(decoded, again, count) == 0);
    memcpy(again, url, left);
    domt_fuzz_abort_unless(domi_http_normalize_path_of_target(again, left) == left &&
                           memcmp(again, url, left) == 0);
    read->size = read->url + left;
    free(decoded);
    return 0;
}

static int handle_end_of_version(llhttp_t *parser)
{
    char line[32];

    if (parser->type == HTTP_REQUEST) {
        snprintf(line, sizeof line, " %u\n", parser->http_minor);
        add_string(reading_of_parser(parser), line);
    }
    return 0;
}

static int add_status_at_its_end(llhttp_t *parser)
{
    char line[32];

    snprintf(line, sizeof line, "%u %u\n", parser->status_code, parser->http_minor);
    add_string(reading_of_parser(parser), line);
    return 0;
}

static int add_part_of_field_name(llhttp_t *parser, const char *at, size_t size)
{
    reading *judge = parser->data;

    if (judge->in_trailers && !judge->read->with_trailers)
        return 0;
    if (judge->in_trailers && !judge->has_trailers)
        add_string(judge->read, "\n");
    judge->has_trailers = judge->in_trailers;
    add_bytes(judge->read, at, size);
    return 0;
}

static int handle_end_of_field_name(llhttp_t *parser)
{
    reading *judge = parser->data;

    if (!judge->in_trailers || judge->read->with_trailers)
        add_string(judge->read, ":");
    judge->value = judge->read->size;
    return 0;
}

/* llhttp counts the spaces behind a field's value as a part of the value, so they are removed. */
static int handle_end_of_field_value(llhttp_t *parser)
{
    domt_http_read *read = reading_of_parser(parser);
    size_t value = ((reading *)parser->data)->value;

    if (((reading *)parser->data)->in_trailers && !read->with_trailers)
        return 0;
    while (read->size > value &&
           (read->text[read->size - 1] == ' ' || read->text[read->size - 1] == '\t'))
        read->size--;
    add_string(read, "\n");
    return 0;
}

/* Tell llhttp which responses have no body, whatever their fields say: its user has to know that.
 * The stage reads on behind a request for an upgrade, so llhttp has to do so, too. */
static int handle_end_of_head(llhttp_t *parser)
{
    reading *judge = parser->data;
    bool is_final = parser->type == HTTP_RESPONSE && parser->status_code >= 200;
    bool is_head = is_final && (judge->read->heads >> judge->finals & 1) != 0;

    parser->upgrade = 0;
    judge->finals += is_final;
    add_string(judge->read, "\n");
    unsigned code = parser->type == HTTP_RESPONSE ? parser->status_code : 200;
    return is_head || code < 200 || code == 204 || code == 304 ? 1 : 0;
}

static int add_part_of_body(llhttp_t *parser, const char *at, size_t size)
{
    add_bytes(reading_of_parser(parser), at, size);
    return 0;
}

/* Called for the size of a chunk: behind the last one, of size 0, trailers may follow. */
static int handle_begin_of_chunk(llhttp_t *parser)
{
    reading *judge = parser->data;

    judge->in_trailers = parser->content_length == 0;
    return 0;
}

static int handle_end_of_message(llhttp_t *parser)
{
    reading *judge = parser->data;

    if (parser->type == HTTP_RESPONSE && parser->status_code < 200)
        judge->read->size = judge->began; /* drop the text of an interim response */
    else
        end_text_of_message(judge->read);
    return 0;
}

/* --- what llhttp 8.1 does not know -------------------------------------------------------------
 */

static bool is_token_char(char byte)
{
    return byte != '\0' &&
           (strchr("!#$%&'*+-.^_`|~", byte) != NULL || (byte >= '0' && byte <= '9') ||
            ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z'));
}

static const char *skip_spaces(const char *at)
{
    return at + strspn(at, " \t");
}

static const char *skip_token(const char *at)
{
    return is_token_char(*at) ? skip_token(at + 1) : at;
}

/* Skip a quoted text. Returns the position behind it, or NULL if its end is missing. */
static const char *skip_quoted_text(const char *at)
{
    for (at++; *at != '"'; at++) {
        at += *at == '\\';
        if (*at == '\0' || *at == '\x7f' || ((unsigned char)*at < ' ' && *at != '\t'))
            return NULL;
    }
    return at + 1;
}

/* Returns whether a line is a chunk's size with extensions (RFC 9112, 7.1.1). */
static bool is_chunk_size_with_extensions(const char *line)
{
    const char *at = line + strspn(line, "0123456789abcdefABCDEF");

    if (at == line || *at == '\0')
        return false;
    while (at != NULL && *at != '\0') {
        at = skip_spaces(at);
        if (*at != ';')
            return false;
        const char *name = skip_spaces(at + 1);
        at = skip_token(name);
        const char *sign = skip_spaces(at);
        if (at == name)
            return false;
        if (*sign != '=')
            continue;
        const char *value = skip_spaces(sign + 1);
        at = *value == '"' ? skip_quoted_text(value) : skip_token(value);
        if (at == value)
            return false;
    }
    return at != NULL;
}

/* Returns whether llhttp 8.1 has stopped in extensions of a chunk that RFC 9112 allows. It refuses
 * spaces, backslashes, and a second extension behind one with a value. All of these are on the line
 * of the size, whose end is the same for every reader, so no two readers find different bodies. */
static bool is_refusal_by_llhttp_excused(const uint8_t *bytes, size_t size, const char *wrong)
{
    const char *text = (const char *)bytes;
    char line[512];
    size_t from = (size_t)(wrong - text);
    size_t count = 0;

    while (from != 0 && text[from - 1] != '\n')
        from--;
    for (; from + count < size && text[from + count] != '\r'; count++) {
        if (count + 1 == sizeof line || text[from + count] == '\0')
            return false;
        line[count] = text[from + count];
    }
    line[count] = '\0';
    return is_chunk_size_with_extensions(line);
}

void domt_http_read_by_llhttp(domt_http_read *read, const uint8_t *bytes, size_t size)
{
    llhttp_settings_t settings;
    reading judge = {.read = read};
    llhttp_t parser;

    llhttp_settings_init(&settings);
    settings.on_message_begin = handle_begin_of_message;
    settings.on_method = add_part_of_method;
    settings.on_method_complete = handle_end_of_method;
    settings.on_url = add_part_of_url;
    settings.on_url_complete = handle_end_of_url;
    settings.on_version_complete = handle_end_of_version;
    settings.on_status_complete = add_status_at_its_end;
    settings.on_header_field = add_part_of_field_name;
    settings.on_header_field_complete = handle_end_of_field_name;
    settings.on_header_value = add_part_of_field_name;
    settings.on_header_value_complete = handle_end_of_field_value;
    settings.on_headers_complete = handle_end_of_head;
    settings.on_body = add_part_of_body;
    settings.on_chunk_header = handle_begin_of_chunk;
    settings.on_message_complete = handle_end_of_message;
    llhttp_init(&parser, read->is_client ? HTTP_RESPONSE : HTTP_REQUEST, &settings);
    parser.data = &judge;
    read->error = (int)llhttp_execute(&parser, (const char *)bytes, size);
    const char *wrong = llhttp_get_error_pos(&parser);
    read->excused = read->error != HPE_OK && is_refusal_by_llhttp_excused(bytes, size, wrong);
    if (read->error == HPE_OK)
        read->error = (int)llhttp_finish(&parser);
}

void domt_http_check_llhttp_has_read_same(const domt_http_read *read, const domt_http_read *judged)
{
    uint32_t count = judged->excused && judged->count < read->count ? judged->count : read->count;

    if (count == 0)
        return;
    size_t size = read->ends[count - 1];
    bool same = judged->count >= count && judged->ends[count - 1] == size &&
                memcmp(read->text, judged->text, size) == 0;
    if (!same)
        fprintf(stderr, "---- the stage has read %u\n%.*s\n---- llhttp %u, error %s\n%.*s\n",
                read->count, (int)size, read->text, judged->count,
                llhttp_errno_name((llhttp_errno_t)judged->error), (int)judged->size, judged->text);
    domt_fuzz_abort_unless(same);
}
#else
void domt_http_read_by_llhttp(domt_http_read *read, const uint8_t *bytes, size_t size)
{
}

void domt_http_check_llhttp_has_read_same(const domt_http_read *read, const domt_http_read *judged)
{
}
#endif
