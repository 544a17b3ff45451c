/* Runs the stage of RESP in a kit, and prints the messages that it makes. */
#include "tests/resp/trace.h"
#include "tests/support/suite.h"

void domt_resp_make_kit(domt_codec *resp, const domus_resp_options *options)
{
    domt_codec_start(resp, &domus_resp_stage, options);
}

const char *domt_resp_message_to_bytes(domt_codec *resp, const domus_type *type,
                                       const void *payload)
{
    ck_assert_int_eq(domus_stage_kit_encode(resp->kit, DOMUS_NO_ID, type, payload), 0);
    return domt_codec_take_output(resp);
}

/* --- text ------------------------------------------------------------------------------------- */

static void add_slice_as_text(domt_text *at, domus_slice slice)
{
    domt_text_append_format(at, "[");
    domt_text_append_slice(at, slice);
    domt_text_append_format(at, "]");
}

static void add_command_as_text(domt_text *at, const domus_resp_command *command)
{
    domt_text_append_format(at, "command");
    for (uint32_t i = 0; i < command->count; i++) {
        if (i == 64) {
            domt_text_append_format(at, " ... %u", command->count);
            break;
        }
        domt_text_append_format(at, " ");
        add_slice_as_text(at, domus_resp_argument(command, i));
    }
    ck_assert_ptr_null(domus_resp_argument(command, command->count).page);
}

static void add_reply_as_text(domt_text *at, const domus_resp_reply *reply)
{
    domus_resp_reader reader = {reply->bytes, 0};
    domus_resp_value value;
    int result;

    domt_text_append_format(at, "%u", reply->form);
    while ((result = domus_resp_read(&reader, &value)) == 1) {
        domt_text_append_format(at, " %c", value.kind);
        if (value.count != 0)
            domt_text_append_format(at, "%u", value.count);
        else if (value.kind == DOMUS_RESP_DOUBLE)
            domt_text_append_format(at, "%g", value.number);
        else if (value.kind == DOMUS_RESP_INTEGER || value.kind == DOMUS_RESP_BOOLEAN)
            domt_text_append_format(at, "%lld", (long long)value.integer);
        else if (value.kind != DOMUS_RESP_NULL)
            add_slice_as_text(at, value.text);
    }
    ck_assert_int_eq(result, 0);
}

void domt_resp_print_message(const domus_stage_message *message, char *to, size_t size)
{
    domt_text at = {to, size};

    if (message->type == &domus_resp_command_type) {
        ck_assert_int_eq(message->kind, DOMUS_STAGE_REQUEST);
        add_command_as_text(&at, message->payload);
        return;
    }
    domt_text_append_format(&at, "%s ", message->type == &domus_resp_push_type ? "push" : "reply");
    ck_assert_int_eq(message->kind, message->type == &domus_resp_push_type ? DOMUS_STAGE_NOTICE
                                                                           : DOMUS_STAGE_ANSWER);
    add_reply_as_text(&at, message->payload);
}

static void print_decoded_message(domt_text *at, const domus_stage_message *message)
{
    char line[65536];

    domt_resp_print_message(message, line, sizeof line);
    domt_text_append_format(at, "%s\n", line);
}

static void print_bytes_sent_to_peer(domt_text *at, const char *sent)
{
    if (sent != NULL)
        domt_text_append_format(at, " %s", sent);
    else
        domt_text_append_format(at, "\n");
}

/* --- traces ----------------------------------------------------------------------------------- */

static domt_codec_trace describe_stage_for_trace(const domus_resp_options *options)
{
    return (domt_codec_trace){.stage = &domus_resp_stage,
                              .options = options,
                              .print = print_decoded_message,
                              .print_sent = print_bytes_sent_to_peer};
}

const char *domt_resp_trace_decoding(const domus_resp_options *options, const char *bytes,
                                     size_t size, size_t cut, size_t step)
{
    domt_codec_trace trace = describe_stage_for_trace(options);

    return domt_codec_decode_to_text(&trace, bytes, size, cut, step);
}

void domt_resp_expect_trace(const domus_resp_options *options, const char *bytes, size_t size,
                            const char *expected)
{
    domt_codec_trace trace = describe_stage_for_trace(options);

    domt_codec_check_text(&trace, bytes, size, expected);
}
