/* Runs the stage in a kit, and prints what it makes. */
#include "tests/resp/trace.h"

#include <check.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_ROOM 65536

void domt_resp_start(domt_resp *resp, const domus_resp_options *options)
{
    *resp = (domt_resp){.stages = {{&domus_resp_stage, options}, {NULL, NULL}}};
    resp->pipeline.stages = resp->stages;
    ck_assert_int_eq(domus_stage_kit_new(&resp->pipeline, &resp->kit), 0);
}

void domt_resp_stop(domt_resp *resp)
{
    domus_stage_kit_free(resp->kit);
}

const char *domt_resp_sent(domt_resp *resp)
{
    static char sent[TEXT_ROOM];
    size_t size;
    const char *output = domus_stage_kit_output(resp->kit, &size);

    ck_assert_uint_lt(size, sizeof sent);
    memcpy(sent, output, size);
    sent[size] = '\0';
    domus_stage_kit_clear(resp->kit);
    return sent;
}

const char *domt_resp_encoded(domt_resp *resp, const domus_type *type, const void *payload)
{
    ck_assert_int_eq(domus_stage_kit_encode(resp->kit, DOMUS_NO_ID, type, payload), 0);
    return domt_resp_sent(resp);
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

static void add_slice(text *at, domus_slice slice)
{
    const unsigned char *data = (const unsigned char *)domus_slice_data(slice);
    uint32_t sum = 0;

    if (slice.size > 64) {
        for (uint32_t i = 0; i < slice.size; i++)
            sum = sum * 31 + data[i];
        add(at, "[%u bytes, %08x]", slice.size, sum);
        return;
    }
    add(at, "[");
    for (uint32_t i = 0; i < slice.size; i++) {
        if (data[i] < ' ' || data[i] > '~')
            add(at, "\\x%02x", data[i]);
        else
            add(at, "%c", data[i]);
    }
    add(at, "]");
}

static void add_command(text *at, const domus_resp_command *command)
{
    add(at, "command");
    for (uint32_t i = 0; i < command->count; i++) {
        if (i == 64) {
            add(at, " ... %u", command->count);
            break;
        }
        add(at, " ");
        add_slice(at, domus_resp_argument(command, i));
    }
    ck_assert_ptr_null(domus_resp_argument(command, command->count).page);
}

static void add_reply(text *at, const domus_resp_reply *reply)
{
    domus_resp_reader reader = {reply->bytes, 0};
    domus_resp_value value;
    int result;

    add(at, "%u", reply->form);
    while ((result = domus_resp_read(&reader, &value)) == 1) {
        add(at, " %c", value.kind);
        if (value.count != 0)
            add(at, "%u", value.count);
        else if (value.kind == DOMUS_RESP_DOUBLE)
            add(at, "%g", value.number);
        else if (value.kind == DOMUS_RESP_INTEGER || value.kind == DOMUS_RESP_BOOLEAN)
            add(at, "%lld", (long long)value.integer);
        else if (value.kind != DOMUS_RESP_NULL)
            add_slice(at, value.text);
    }
    ck_assert_int_eq(result, 0);
}

void domt_resp_print(const domus_stage_message *message, char *to, size_t size)
{
    text at = {to, size};

    if (message->type == &domus_resp_command_type) {
        ck_assert_int_eq(message->kind, DOMUS_STAGE_REQUEST);
        add_command(&at, message->payload);
        return;
    }
    add(&at, "%s ", message->type == &domus_resp_push_type ? "push" : "reply");
    ck_assert_int_eq(message->kind, message->type == &domus_resp_push_type ? DOMUS_STAGE_NOTICE
                                                                           : DOMUS_STAGE_ANSWER);
    add_reply(&at, message->payload);
}

/* --- traces ----------------------------------------------------------------------------------- */

static int decode_all(domt_resp *resp, text *at)
{
    domus_stage_message message;
    char line[TEXT_ROOM];
    int result;

    while ((result = domus_stage_kit_next(resp->kit, &message)) == 1) {
        domt_resp_print(&message, line, sizeof line);
        add(at, "%s\n", line);
    }
    return result;
}

const char *domt_resp_trace(const domus_resp_options *options, const char *bytes, size_t size,
                            size_t cut, size_t step)
{
    static char rooms[4][TEXT_ROOM];
    static unsigned turn;
    char *room = rooms[turn++ % 4];
    text at = {room, TEXT_ROOM};
    domt_resp resp;
    int result = 0;

    room[0] = '\0';
    domt_resp_start(&resp, options);
    for (size_t done = 0; done < size && result == 0;) {
        size_t piece = done == 0 && cut != 0 ? cut : step != 0 ? step : size;
        if (piece > size - done)
            piece = size - done;
        ck_assert_int_eq(domus_stage_kit_feed(resp.kit, bytes + done, piece), 0);
        result = decode_all(&resp, &at);
        done += piece;
    }
    if (result == 0) {
        domus_stage_kit_finish(resp.kit);
        result = decode_all(&resp, &at);
    }
    if (result < 0) {
        add(&at, "%s", strerrorname_np(-result));
        if (domus_stage_kit_fail(resp.kit, DOMUS_NO_ID, NULL, result) == 0)
            add(&at, " %s", domt_resp_sent(&resp));
        else
            add(&at, "\n");
    }
    domt_resp_stop(&resp);
    return room;
}

void domt_resp_holds(const domus_resp_options *options, const char *bytes, size_t size,
                     const char *expected)
{
    ck_assert_str_eq(domt_resp_trace(options, bytes, size, 0, 0), expected);
    for (size_t cut = 1; cut < size; cut++)
        ck_assert_str_eq(domt_resp_trace(options, bytes, size, cut, 0), expected);
    ck_assert_str_eq(domt_resp_trace(options, bytes, size, 0, 1), expected);
}
