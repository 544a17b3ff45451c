/* Commands that the channel answers: they concern the connection, or nobody. */
#include "kv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int kv_serve_ping(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;

    (void)self;
    if (command->count > 2)
        return kv_error(stack, "ERR wrong number of arguments for 'ping' command");
    if (command->count == 1)
        return kv_answer(stack, &domus_resp_simple_type, &(domus_resp_simple){"PONG"});
    return kv_serve_echo(stack, self, payload);
}

int kv_serve_echo(domus_stack *stack, void *self, const void *payload)
{
    domus_slice text = domus_resp_argument(payload, 1);

    (void)self;
    return kv_bytes(stack, (domus_resp_bytes){domus_slice_data(text), text.size});
}

int kv_serve_quit(domus_stack *stack, void *self, const void *payload)
{
    int error = kv_ok(stack);

    (void)self, (void)payload;
    (void)domus_channel_close(stack, domus_channel_running(stack));
    return error;
}

int kv_serve_select(domus_stack *stack, void *self, const void *payload)
{
    domus_slice text = domus_resp_argument(payload, 1);
    int64_t index;

    (void)self;
    if (!kv_to_integer(domus_slice_data(text), text.size, &index))
        return kv_error(stack, "ERR value is not an integer or out of range");
    return index == 0 ? kv_ok(stack) : kv_error(stack, "ERR DB index is out of range");
}

/* HTTP: a page of a stranger can make a browser of this machine send any bytes behind such a head,
 * and they would be commands. */
int kv_serve_http(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return domus_channel_close(stack, domus_channel_running(stack));
}

/* CONFIG GET, as far as programs need it that measure or connect. */
int kv_serve_config(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    domus_resp_builder builder = {.version = command->version};
    char bytes[24];
    const char *const pairs[][2] = {
        {"save", ""}, {"appendonly", "no"}, {"maxmemory", bytes}, {"databases", "1"}};

    (void)self;
    snprintf(bytes, sizeof bytes, "%" PRIu64, kv_settings.memory_max_bytes);
    if (domus_resp_is(domus_resp_argument(command, 1), "RESETSTAT"))
        return kv_ok(stack);
    if (!domus_resp_is(domus_resp_argument(command, 1), "GET") || command->count < 3)
        return kv_error(stack, "ERR unknown subcommand. Try CONFIG HELP.");
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        domus_slice name = domus_resp_argument(command, 2);
        if (!domus_slice_equals(name, pairs[i][0], strlen(pairs[i][0])))
            continue;
        (void)domus_resp_add_map(&builder, 1);
        (void)domus_resp_add_bulk(&builder, pairs[i][0], strlen(pairs[i][0]));
        (void)domus_resp_add_bulk(&builder, pairs[i][1], strlen(pairs[i][1]));
        return kv_reply(stack, &builder);
    }
    (void)domus_resp_add_map(&builder, 0);
    return kv_reply(stack, &builder);
}

int kv_serve_command(domus_stack *stack, void *self, const void *payload)
{
    domus_resp_builder builder = {.version = ((const domus_resp_command *)payload)->version};

    (void)self;
    if (domus_resp_is(domus_resp_argument(payload, 1), "DOCS"))
        (void)domus_resp_add_map(&builder, 0);
    else
        (void)domus_resp_add_array(&builder, 0);
    return kv_reply(stack, &builder);
}

int kv_serve_info(domus_stack *stack, void *self, const void *payload)
{
    static const char text[] = "# Server\r\nredis_version:7.0.0\r\nredis_mode:standalone\r\n"
                               "server_name:kv\r\n";
    domus_resp_builder builder = {.version = ((const domus_resp_command *)payload)->version};

    (void)self;
    (void)domus_resp_add_verbatim(&builder, "txt", text, sizeof text - 1);
    return kv_reply(stack, &builder);
}
