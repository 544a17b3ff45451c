/* Fuzzes the stage of RESP. The first byte of an input chooses the role, and whether the rest comes
 * in one piece or in many; each command is answered with its own arguments, each reply is read to
 * its end, and everything sent on a connection of RESP 2 is checked to be RESP 2. */
#include "tests/fuzz/support/fuzz.h"

#include <domus/resp.h>
#include <domus/stage_kit.h>

#include <stdint.h>
#include <stdlib.h>

static domus_budget budget = {.bytes_max = 100000};
static const domus_resp_options options[3] = {
    {.role = DOMUS_ROLE_SERVER, .bulk_max = 1 << 20, .budget = &budget},
    {.role = DOMUS_ROLE_CLIENT, .bulk_max = 1 << 20},
    {.role = DOMUS_ROLE_PEER, .bulk_max = 100, .message_max = 65536, .nesting_max = 3},
};

/* Answer a command with an array of the command's arguments. */
static void answer_command_with_arguments(domus_stage_kit *kit, const domus_stage_message *message)
{
    const domus_resp_command *command = message->payload;
    domus_resp_builder builder = {.version = command->version};
    domus_resp_reply reply;

    domt_fuzz_abort_unless(command->count != 0);
    (void)domus_resp_add_array(&builder, command->count);
    for (uint32_t i = 0; i < command->count; i++) {
        domus_slice argument = domus_resp_argument(command, i);
        (void)domus_resp_add_bulk(&builder, domus_slice_data(argument), argument.size);
    }
    domt_fuzz_abort_unless(domus_resp_end(&builder, &reply) == 0);
    domt_fuzz_abort_unless(
        domus_stage_kit_encode(kit, message->id, &domus_resp_reply_type, &reply) == 0);
    domus_slice_free(reply.bytes);
}

/* Read all values of a reply, also nested ones. */
static void read_all_values(const domus_resp_reply *reply)
{
    domus_resp_reader reader = {reply->bytes, 0};
    domus_resp_value value;
    int result;

    while ((result = domus_resp_read(&reader, &value)) == 1) {
        for (uint32_t i = 0; i < value.text.size; i++)
            domt_fuzz_abort_unless(domus_slice_data(value.text)[i] != '\r' ||
                                   value.kind != DOMUS_RESP_SIMPLE);
    }
    domt_fuzz_abort_unless(result == 0);
}

static bool is_mark_of_resp_2(char mark)
{
    return mark == '+' || mark == '-' || mark == ':' || mark == '$' || mark == '*';
}

/* Send a received reply on a connection of RESP 2, and check that its bytes are those of RESP 2. */
static void send_reply_as_resp_2(const domus_resp_reply *reply)
{
    static const domus_pipeline_stage stages[] = {{&domus_resp_stage, NULL}, {NULL, NULL}};
    static const domus_pipeline pipeline = {.stages = stages};
    domus_stage_kit *kit;
    domus_resp_value value;
    domus_slice sent;
    size_t size;

    domt_fuzz_abort_unless(domus_stage_kit_new(&pipeline, &kit) == 0);
    domt_fuzz_abort_unless(
        domus_stage_kit_encode(kit, DOMUS_NO_ID, &domus_resp_reply_type, reply) == 0);
    const char *output = domus_stage_kit_output(kit, &size);
    domt_fuzz_abort_unless(domus_slice_copy(output, size, &sent) == 0);
    domus_resp_reader reader = {sent, 0};
    for (;;) {
        uint32_t at = reader.at;
        int result = domus_resp_read(&reader, &value);
        domt_fuzz_abort_unless(result >= 0);
        if (result == 0)
            break;
        domt_fuzz_abort_unless(is_mark_of_resp_2(domus_slice_data(sent)[at]));
    }
    domus_slice_free(sent);
    domus_stage_kit_free(kit);
}

static int decode_and_answer_messages(domus_stage_kit *kit)
{
    domus_stage_message message;
    int result;

    while ((result = domus_stage_kit_next(kit, &message)) == 1) {
        if (message.type == &domus_resp_command_type) {
            answer_command_with_arguments(kit, &message);
        } else {
            read_all_values(message.payload);
            send_reply_as_resp_2(message.payload);
        }
    }
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    domus_pipeline_stage stages[2] = {{&domus_resp_stage, NULL}, {NULL, NULL}};
    domus_pipeline pipeline = {.stages = stages};
    domus_stage_kit *kit;
    int result = 0;

    if (size == 0)
        return 0;
    size_t step = data[0] / 3 == 0 ? size : data[0] / 3;
    stages[0].options = &options[data[0] % 3];
    domt_fuzz_abort_unless(domus_stage_kit_new(&pipeline, &kit) == 0);
    for (size_t done = 1; done < size && result == 0; done += step) {
        size_t piece = size - done < step ? size - done : step;
        domt_fuzz_abort_unless(domus_stage_kit_feed(kit, data + done, piece) == 0);
        result = decode_and_answer_messages(kit);
    }
    if (result == 0) {
        domus_stage_kit_finish(kit);
        result = decode_and_answer_messages(kit);
    }
    if (result < 0)
        (void)domus_stage_kit_fail(kit, DOMUS_NO_ID, NULL, result);
    domus_stage_kit_free(kit);
    domt_fuzz_abort_unless(budget.used_bytes == 0);
    return 0;
}
