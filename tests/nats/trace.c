/* Runs the stage of NATS in a kit, and prints the messages that it makes. */
#include "tests/nats/trace.h"
#include "tests/support/suite.h"

#include <string.h>

static void add_part_of_message_as_text(domt_text *at, const char *name, domus_slice part)
{
    domt_text_append_format(at, " %s[", name);
    domt_text_append_slice(at, part);
    domt_text_append_format(at, "]");
}

static void add_message_as_text(domt_text *at, const domus_nats_message *message)
{
    domt_text_append_format(at, "msg %llu", (unsigned long long)message->subscription);
    add_part_of_message_as_text(at, "", domus_nats_subject(message));
    if (message->reply_size != 0)
        add_part_of_message_as_text(at, "to", domus_nats_reply_to(message));
    if (message->headers_size != 0)
        add_part_of_message_as_text(at, "head", domus_nats_headers(message));
    if (message->status != 0)
        domt_text_append_format(at, " status %u", message->status);
    add_part_of_message_as_text(at, "", domus_nats_payload(message));
}

static void print_decoded_message(domt_text *at, const domus_stage_message *message)
{
    ck_assert_int_eq(message->kind, DOMUS_STAGE_NOTICE);
    if (message->type == &domus_nats_message_type) {
        add_message_as_text(at, message->payload);
    } else if (message->type == &domus_nats_info_type) {
        domt_text_append_format(at, "info");
        add_part_of_message_as_text(at, "", ((const domus_nats_info *)message->payload)->json);
    } else if (message->type == &domus_nats_error_type) {
        domt_text_append_format(at, "error [%s]",
                                ((const domus_nats_error *)message->payload)->text);
    } else {
        ck_assert_ptr_eq(message->type, &domus_nats_pong_type);
        domt_text_append_format(at, "pong");
    }
    domt_text_append_format(at, "\n");
}

static void check_stage_sends_nothing(domt_text *at, const char *sent)
{
    ck_assert_ptr_null(sent); /* the stage sends nothing back after an error of the server */
    domt_text_append_format(at, "\n");
}

static domt_codec_trace describe_stage_for_trace(const domus_nats_stage_options *options)
{
    return (domt_codec_trace){.stage = &domus_nats_stage,
                              .options = options,
                              .print = print_decoded_message,
                              .print_sent = check_stage_sends_nothing};
}

const char *domt_nats_trace_decoding(const domus_nats_stage_options *options, const char *bytes,
                                     size_t size, size_t step)
{
    domt_codec_trace trace = describe_stage_for_trace(options);

    return domt_codec_decode_to_text(&trace, bytes, size, 0, step);
}

void domt_nats_expect_trace_of_decoding(const domus_nats_stage_options *options, const char *bytes,
                                        size_t size, const char *expected)
{
    domt_codec_trace trace = describe_stage_for_trace(options);

    domt_codec_check_text(&trace, bytes, size, expected);
}

const char *domt_nats_encode_message(const domus_type *type, const void *payload)
{
    domt_codec codec;

    domt_codec_start(&codec, &domus_nats_stage, NULL);
    int error = domus_stage_kit_encode(codec.kit, DOMUS_NO_ID, type, payload);
    const char *sent = error == 0 ? domt_codec_take_output(&codec) : strerrorname_np(-error);
    domt_codec_stop(&codec);
    return sent;
}
