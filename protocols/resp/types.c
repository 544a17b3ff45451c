/* The message types of RESP, and how their payloads are released. */
#include "protocols/resp/resp.h"

/* Take a command that is released off the budget for which it counts. */
static void uncharge_released_command(const domus_resp_command *command)
{
    domi_resp_charge_note note;

    memcpy(&note, command->table->data + (size_t)command->count * 2 * sizeof(uint32_t),
           sizeof note);
    (void)domus_budget_charge(note.budget, &note.bytes, 0);
}

static void free_bytes_and_table_of_command(void *payload)
{
    domus_resp_command *command = payload;

    if (command->counts)
        uncharge_released_command(command);
    domus_slice_free(command->bytes);
    domus_slice_free((domus_slice){command->table, 0, 0});
}

static void free_bytes_of_reply(void *payload)
{
    domus_slice_free(((domus_resp_reply *)payload)->bytes);
}

static void free_reply_of_change(void *payload)
{
    free_bytes_of_reply(&((domus_resp_change *)payload)->reply);
}

const domus_type domus_resp_command_type = {.name = "resp_command",
                                            .size = sizeof(domus_resp_command),
                                            .release = free_bytes_and_table_of_command};
const domus_type domus_resp_short_type = {.name = "resp_short", .size = sizeof(domus_resp_short)};
const domus_type domus_resp_integer_type = {.name = "resp_integer",
                                            .size = sizeof(domus_resp_integer)};
const domus_type domus_resp_simple_type = {.name = "resp_simple",
                                           .size = sizeof(domus_resp_simple)};
const domus_type domus_resp_error_type = {.name = "resp_error", .size = sizeof(domus_resp_error)};
const domus_type domus_resp_ok_type = {.name = "resp_ok"};
const domus_type domus_resp_null_type = {.name = "resp_null"};
const domus_type domus_resp_null_array_type = {.name = "resp_null_array"};
const domus_type domus_resp_reply_type = {
    .name = "resp_reply", .size = sizeof(domus_resp_reply), .release = free_bytes_of_reply};
const domus_type domus_resp_push_type = {
    .name = "resp_push", .size = sizeof(domus_resp_reply), .release = free_bytes_of_reply};
const domus_type domus_resp_change_type = {
    .name = "resp_change", .size = sizeof(domus_resp_change), .release = free_reply_of_change};
