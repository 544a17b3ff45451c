/* A connection: takes commands, checks them, and forwards them to the shards. */
#include "kv.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* HELLO changes the protocol, and AUTH and QUIT concern what comes behind them. */
static uint32_t marks_of(const void *payload)
{
    domus_slice name = domus_resp_argument(payload, 0);

    if (name.size != 4 && name.size != 5)
        return 0;
    return domus_resp_is(name, "HELLO") || domus_resp_is(name, "AUTH") ||
                   domus_resp_is(name, "QUIT")
               ? DOMUS_ALONE
               : 0;
}

/* Append an argument to `text` without its unprintable bytes, at most `most` bytes. */
static size_t put_argument(char *text, domus_slice argument, size_t most)
{
    size_t size = argument.size < most ? argument.size : most;

    for (size_t i = 0; i < size; i++) {
        char c = domus_slice_data(argument)[i];
        text[i] = c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
    }
    text[size] = '\0';
    return size;
}

static int refuse_unknown(domus_stack *stack, const domus_resp_command *command)
{
    domus_resp_builder builder = {.version = command->version};
    char name[129], arguments[300];
    size_t size = 0;

    put_argument(name, domus_resp_argument(command, 0), sizeof name - 1);
    arguments[0] = '\0';
    for (uint32_t i = 1; i < command->count && size < 128; i++) {
        arguments[size++] = '\'';
        size += put_argument(arguments + size, domus_resp_argument(command, i), 128 - size);
        size += (size_t)snprintf(arguments + size, sizeof arguments - size, "' ");
    }
    (void)domus_resp_add_error(&builder, "ERR unknown command '%s', with args beginning with: %s",
                               name, arguments);
    return kv_reply(stack, &builder);
}

static int refuse_count(domus_stack *stack, const struct kv_command *row)
{
    domus_resp_error error =
        domus_resp_error_text("ERR wrong number of arguments for '%s' command", row->name);

    return domus_reply(stack, &domus_resp_error_type, &error);
}

/* Find the shard of all keys. Returns false if they lie on several. */
static bool find_shard(const domus_resp_command *command, const struct kv_command *row,
                       uint32_t *ret_shard)
{
    uint32_t last = row->last < 0 ? command->count - 1 : (uint32_t)row->last;

    if (kv_shard_count == 1) {
        *ret_shard = 0;
        return true;
    }
    if (row->where >= KV_EVERYWHERE)
        return false;
    *ret_shard = kv_shard_of(domus_resp_argument(command, (uint32_t)row->first));
    for (uint32_t i = (uint32_t)(row->first + row->step); i <= last; i += (uint32_t)row->step) {
        if (kv_shard_of(domus_resp_argument(command, i)) != *ret_shard)
            return false;
    }
    return true;
}

static int take_command(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    const struct kv_command *row = kv_command_find(domus_resp_argument(command, 0));
    const struct kv_session *session = self;
    uint32_t shard;

    if (row == NULL)
        return refuse_unknown(stack, command);
    if (!kv_arity_holds(row, command->count) || (row->step == 2 && command->count % 2 == 0))
        return refuse_count(stack, row);
    if (!session->admitted && row->serve != kv_serve_auth && row->serve != kv_serve_hello &&
        row->serve != kv_serve_quit && row->serve != kv_serve_http)
        return kv_error(stack, "NOAUTH Authentication required.");
    if (row->serve != NULL)
        return row->serve(stack, self, payload);
    if (find_shard(command, row, &shard))
        return domus_forward(stack, kv_shards[shard]);
    if (row->where == KV_ONE)
        return kv_error(stack, "CROSSSLOT Keys in request don't hash to the same slot");
    return kv_scatter(stack, command, row);
}

static int open_session(domus_stack *stack, void *self, const void *payload)
{
    struct kv_session *session = self;

    (void)stack, (void)payload;
    session->admitted = kv_settings.password[0] == '\0';
    return 0;
}

static const domus_pipeline commands = {
    .stages = (const domus_pipeline_stage[]){{&domus_resp_stage, NULL}, {NULL, NULL}}};

static const domus_behaviour session = {
    .name = "session",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(struct kv_session),
    .pipeline = &commands,
    .on_peer = (const domus_on_peer[]){{.type = &domus_resp_command_type,
                                        .handle = take_command,
                                        .frame_size = sizeof(struct kv_scatter),
                                        .marks_of = marks_of},
                                       {.type = NULL}},
    .on_open = {open_session, 0},
};

const domus_behaviour kv_sessions = {
    .name = "sessions", .kind = DOMUS_CHANNELS, .channel = &session};
