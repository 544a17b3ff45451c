/* Fuzzes the stage of NATS. The first byte of an input chooses the limits, and whether the rest
 * comes in one piece or in many; each message that comes is published again unchanged, and INFO is
 * read. */
#include "tests/fuzz/support/fuzz.h"

#include <domus/nats.h>
#include <domus/stage_kit.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const domus_nats_stage_options options[2] = {
    {.payload_max = 1 << 20},
    {.line_max = 64, .info_max = 512, .payload_max = 1024, .headers_max = 100},
};

static void read_headers_of_message(const domus_nats_message *message)
{
    domus_slice name, value;
    uint32_t from = 0, count = 0;
    size_t sum = 0;

    while (domus_nats_header_next(message, &from, &name, &value) == 0) {
        sum += (size_t)name.size + value.size;
        count++;
    }
    domt_fuzz_abort_unless(sum <= message->headers_size && count <= message->headers_size);
    domt_fuzz_abort_unless(message->status == 0 ||
                           (message->status >= 100 && message->status <= 999));
    domt_fuzz_abort_unless(domus_nats_description(message).size <= message->headers_size);
}

/* Publish a received message again. The stage refuses bytes that a server may send and a client may
 * not. */
static void publish_message_again(domus_stage_kit *kit, const domus_nats_message *message)
{
    domus_nats_publish publish = {.subject = domus_nats_subject(message),
                                  .reply = domus_nats_reply_to(message),
                                  .headers = domus_nats_headers(message),
                                  .payload = domus_nats_payload(message)};
    size_t all = message->headers_size + message->payload_size, output;

    domt_fuzz_abort_unless(publish.subject.size != 0);
    domus_stage_kit_clear(kit);
    int error = domus_stage_kit_encode(kit, DOMUS_NO_ID, &domus_nats_publish_type, &publish);
    domt_fuzz_abort_unless(error == 0 || error == -EINVAL);
    const char *bytes = domus_stage_kit_output(kit, &output);
    domt_fuzz_abort_unless(error != 0 || output > all);
    domt_fuzz_abort_unless(error != 0 ||
                           memcmp(bytes + output - 2 - publish.payload.size,
                                  domus_slice_data(publish.payload), publish.payload.size) == 0);
}

static int decode_and_publish_messages(domus_stage_kit *kit)
{
    domus_stage_message message;
    domus_nats_server_info info;
    int result;

    while ((result = domus_stage_kit_next(kit, &message)) == 1) {
        if (message.type == &domus_nats_message_type) {
            read_headers_of_message(message.payload);
            publish_message_again(kit, message.payload);
        } else if (message.type == &domus_nats_info_type) {
            int error = domus_nats_info_read(message.payload, &info);
            domt_fuzz_abort_unless(error == 0 || error == -EPROTO);
        }
    }
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    domus_pipeline_stage stages[2] = {{&domus_nats_stage, NULL}, {NULL, NULL}};
    domus_pipeline pipeline = {.stages = stages};
    domus_stage_kit *kit;
    int result = 0;

    if (size == 0)
        return 0;
    size_t step = data[0] / 2 == 0 ? size : data[0] / 2;
    stages[0].options = &options[data[0] % 2];
    domt_fuzz_abort_unless(domus_stage_kit_new(&pipeline, &kit) == 0);
    for (size_t done = 1; done < size && result == 0; done += step) {
        size_t piece = size - done < step ? size - done : step;
        domt_fuzz_abort_unless(domus_stage_kit_feed(kit, data + done, piece) == 0);
        result = decode_and_publish_messages(kit);
    }
    if (result == 0) {
        domus_stage_kit_finish(kit);
        result = decode_and_publish_messages(kit);
    }
    domt_fuzz_abort_unless(result == 0 || result == -EPROTO || result == -EMSGSIZE ||
                           result == -EPIPE);
    domus_stage_kit_free(kit);
    return 0;
}
