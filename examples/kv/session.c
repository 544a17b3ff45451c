/* A session: a client's connection, which receives commands, checks them, and forwards them to the
 * shards. */
#include "desk.h"
#include "pubsub.h"
#include "transaction.h"
#include "watch.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The first letters of the commands that are KV_ALONE, as sets of bits: one set for names of four
 * letters, and one for others. */
#define LETTER(c) (UINT32_C(1) << ((unsigned char)(c) % 32))
#define FOUR      (LETTER('a') | LETTER('q'))
#define SOME      (LETTER('b') | LETTER('c') | LETTER('d') | LETTER('h') | LETTER('p'))
#define MORE      (SOME | LETTER('r') | LETTER('s') | LETTER('u'))

/* Returns the marks of a command. A command that waits, or that changes how later ones are handled,
 * gets DOMUS_ALONE. The test of the first letter spares most other commands a second search of
 * their row. */
static uint32_t order_marks_of_command(const void *payload)
{
    domus_slice name = domus_resp_argument(payload, 0);

    if (name.size < 4 || (LETTER(domus_slice_data(name)[0]) & (name.size == 4 ? FOUR : MORE)) == 0)
        return 0;
    const struct kv_command *row = kv_command_find(name);
    if (row == NULL || (row->flags & KV_ALONE) == 0)
        return 0;
    return (row->flags & KV_BLOCKS) != 0 ? DOMUS_ALONE | DOMUS_HEARS_END : DOMUS_ALONE;
}

/* Append an argument of a command to `text`, for an error, without its unprintable bytes. At most
 * `most` bytes are appended. */
static size_t copy_printable_argument(char *text, domus_slice argument, size_t most)
{
    size_t size = argument.size < most ? argument.size : most;

    for (size_t i = 0; i < size; i++) {
        char c = domus_slice_data(argument)[i];
        text[i] = c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
    }
    text[size] = '\0';
    return size;
}

static int refuse_unknown_command(domus_stack *stack, const domus_resp_command *command)
{
    domus_resp_builder builder = {.version = command->version};
    char name[129], arguments[300];
    size_t size = 0;

    copy_printable_argument(name, domus_resp_argument(command, 0), sizeof name - 1);
    arguments[0] = '\0';
    for (uint32_t i = 1; i < command->count && size < 128; i++) {
        arguments[size++] = '\'';
        size +=
            copy_printable_argument(arguments + size, domus_resp_argument(command, i), 128 - size);
        size += (size_t)snprintf(arguments + size, sizeof arguments - size, "' ");
    }
    (void)domus_resp_add_error(&builder, "ERR unknown command '%s', with args beginning with: %s",
                               name, arguments);
    return kv_answer_what_builder_has_made(stack, &builder);
}

int kv_refuse_argument_count(domus_stack *stack, const struct kv_command *row)
{
    domus_resp_error error =
        domus_resp_error_text("ERR wrong number of arguments for '%s' command", row->name);

    return kv_answer_error(stack, error.text);
}

void kv_find_first_and_last_key_argument(const domus_resp_command *command, uint32_t begin,
                                         const struct kv_command *row, uint32_t *ret_first,
                                         uint32_t *ret_last)
{
    uint32_t count = command->count - begin;
    uint32_t at = (row->flags & KV_COUNTED_1) != 0 ? 1 : 2;
    domus_slice text = domus_resp_argument(command, begin + at);
    int64_t number = 0;

    *ret_first = (uint32_t)row->first;
    *ret_last = row->last < 0 ? count + (uint32_t)row->last : (uint32_t)row->last;
    if ((row->flags & KV_COUNTED) == 0)
        return;
    if (kv_read_integer_in_text(domus_slice_data(text), text.size, &number) && number > 0 &&
        number < (int64_t)count - at - 1) {
        *ret_first = at + 1;
        *ret_last = at + (uint32_t)number;
    }
}

bool kv_find_only_shard_of_all_keys(const domus_resp_command *command, const struct kv_command *row,
                                    uint32_t *ret_shard)
{
    uint32_t first, last, step = row->step != 0 ? (uint32_t)row->step : 1;

    if (kv_shard_count == 1) {
        *ret_shard = 0;
        return true;
    }
    if (row->where >= KV_EVERYWHERE)
        return false;
    kv_find_first_and_last_key_argument(command, 0, row, &first, &last);
    *ret_shard = kv_shard_of_key(domus_resp_argument(command, first));
    for (uint32_t i = first + step; i <= last; i += step) {
        if (kv_shard_of_key(domus_resp_argument(command, i)) != *ret_shard)
            return false;
    }
    return true;
}

int kv_keep_command_without_copy(const domus_resp_command *command, domus_resp_command *ret_command)
{
    domus_resp_command kept = *command;
    domus_slice table = {command->table, 0, command->table != NULL};
    int error = domus_slice_keep(command->bytes, &kept.bytes);

    if (error != 0)
        return error;
    error = domus_slice_keep(table, &table);
    if (error != 0) {
        domus_slice_free(kept.bytes);
        return error;
    }
    kept.table = table.page;
    kept.counts = false;
    *ret_command = kept;
    return 0;
}

/* Refuse a command before its arguments are checked. */
static int refuse_unknown_or_miscounted_command(domus_stack *stack, struct kv_session *session,
                                                const domus_resp_command *command,
                                                const struct kv_command *row)
{
    if (row != NULL && row->serve == kv_ask_shard_to_run_transaction) {
        kv_transaction_free(session->transaction);
        session->transaction = NULL;
        kv_session_update_whether_plain(session);
        kv_tell_shard_to_unwatch(stack, session);
        return kv_answer_error(stack, "EXECABORT Transaction discarded because of: wrong number of "
                                      "arguments for 'exec' command");
    }
    kv_transaction_mark_as_wrong(session);
    return row != NULL ? kv_refuse_argument_count(stack, row)
                       : refuse_unknown_command(stack, command);
}

/* Handle a command of a client of RESP 2 that has subscriptions. Returns whether it was handled
 * here. */
static bool refuse_or_ping_for_subscribed_client(domus_stack *stack,
                                                 const domus_resp_command *command,
                                                 const struct kv_command *row, int *ret_result)
{
    domus_resp_builder builder = {.version = 2};

    if ((row->flags & KV_LISTENS) == 0) {
        (void)domus_resp_add_error(&builder,
                                   "ERR Can't execute '%s': only (P|S)SUBSCRIBE / "
                                   "(P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
                                   "context",
                                   row->name);
        *ret_result = kv_answer_what_builder_has_made(stack, &builder);
        return true;
    }
    if (row->serve != kv_serve_ping || command->count > 2)
        return false;
    *ret_result = kv_answer_ping_with_array_in_resp_2(stack, command);
    return true;
}

/* Handle a command in a session that is not plain. Returns whether it was handled here. */
static bool serve_in_special_session_if_needed(domus_stack *stack, struct kv_session *session,
                                               const domus_resp_command *command,
                                               const struct kv_command *row, int *ret_result)
{
    if (!session->admitted && row->serve != kv_serve_auth && row->serve != kv_serve_hello &&
        row->serve != kv_serve_quit && row->serve != kv_close_connection_that_speaks_http) {
        *ret_result = kv_answer_error(stack, "NOAUTH Authentication required.");
        return true;
    }
    if (session->subscriber != NULL && session->version == 2)
        return refuse_or_ping_for_subscribed_client(stack, command, row, ret_result);
    if (session->transaction == NULL || (row->flags & KV_ALWAYS) != 0)
        return false;
    *ret_result = kv_transaction_queue_or_run_command(stack, session, command, row);
    return true;
}

static int run_command_of_client(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    const struct kv_command *row = kv_command_find(domus_resp_argument(command, 0));
    struct kv_session *session = self;
    uint32_t shard;
    int result;

    session->seat.commands++;
    session->seat.row = row;
    if (row == NULL || !kv_has_right_argument_count(row, command->count) ||
        (row->step == 2 && command->count % 2 == 0))
        return refuse_unknown_or_miscounted_command(stack, session, command, row);
    if (__builtin_expect(!session->plain, false) &&
        serve_in_special_session_if_needed(stack, session, command, row, &result))
        return result;
    if (row->serve != NULL)
        return row->serve(stack, self, payload);
    if (kv_find_only_shard_of_all_keys(command, row, &shard))
        return domus_forward(stack, kv_shards[shard]);
    if (row->where == KV_ONE)
        return kv_answer_error(stack, KV_CROSS_SLOT);
    return kv_ask_all_shards_of_command(stack, command, row);
}

void kv_session_update_whether_plain(struct kv_session *session)
{
    session->plain = session->admitted && session->transaction == NULL &&
                     (session->subscriber == NULL || session->version != 2);
}

static int set_up_session_when_client_connects(domus_stack *stack, void *self, const void *payload)
{
    struct kv_session *session = self;

    (void)payload;
    kv_desk_add_session(stack, session);
    session->admitted = kv_settings.password[0] == '\0';
    session->watched_shard = session->waiting_shard = KV_NO_SHARD;
    session->version = 2;
    kv_session_update_whether_plain(session);
    return 0;
}

static int forget_channel_of_closed_session(domus_stack *stack, void *self, const void *payload)
{
    struct kv_session *session = self;

    (void)stack, (void)payload;
    session->seat.channel = NULL;
    return 0;
}

static void free_session_at_its_stop(domus_stack *stack, void *self)
{
    struct kv_session *session = self;

    (void)stack;
    kv_transaction_free(session->transaction);
    kv_subscriber_free(session);
    kv_desk_remove_session(session);
}

static domus_budget incomplete;
/* options of the stage of RESP, with the limits that sessions set */
static domus_resp_options resp;
static const domus_pipeline commands = {
    .stages = (const domus_pipeline_stage[]){{&domus_resp_stage, &resp}, {NULL, NULL}}};

void kv_fill_options_of_client_protocol(void)
{
    incomplete.bytes_max = kv_settings.incomplete_max_bytes;
    resp = (domus_resp_options){.role = DOMUS_ROLE_SERVER,
                                .bulk_max = (uint32_t)kv_settings.value_max_bytes,
                                .message_max = (uint32_t)kv_settings.command_max_bytes,
                                .arguments_max = kv_settings.arguments_max,
                                .budget = &incomplete};
    if (kv_settings.password[0] != '\0') {
        resp.stranger_arguments_max = 10;
        resp.stranger_bulk_max = resp.bulk_max < 16384 ? resp.bulk_max : 16384;
    }
}

static const domus_on_peer rows[] = {{.type = &domus_resp_command_type,
                                      .handle = run_command_of_client,
                                      .peer_frame_size = KV_FRAME,
                                      .marks_of = order_marks_of_command},
                                     {.type = NULL}};

static const domus_on mail[] = {{&kv_publication_type, kv_send_publication_if_subscribed, 0},
                                {NULL, NULL, 0}};

static const domus_behaviour session = {
    .name = "session",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(struct kv_session),
    .pipeline = &commands,
    .on = mail,
    .on_peer = rows,
    .on_open = {set_up_session_when_client_connects, 0},
    .on_close = {forget_channel_of_closed_session, 0},
    .on_stop = free_session_at_its_stop,
};

const domus_behaviour kv_waiting_session = {
    .name = "waiting session",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(struct kv_session),
    .pipeline = &commands,
    .on = mail,
    .on_peer = rows,
    .on_end = {kv_tell_shard_that_waiting_client_left, 0},
    .on_close = {forget_channel_of_closed_session, 0},
    .on_stop = free_session_at_its_stop,
};

const domus_behaviour kv_sessions = {
    .name = "sessions", .kind = DOMUS_CHANNELS, .channel = &session};
