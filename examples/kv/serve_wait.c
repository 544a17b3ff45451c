/* The part of the channel in commands that it asks its shard for: commands that wait, and WATCH. */
#include "gift.h"
#include "nodes.h"
#include "wait.h"
#include "watch.h"

#include <errno.h>

/* Ask a shard to run the command that is handled. */
static int ask_shard_to_run_copy_of_command(domus_stack *stack, uint32_t shard,
                                            const domus_resp_command *command, domus_resumed *then)
{
    domus_resp_command kept;
    int error = kv_keep_command_without_copy(command, &kept);

    if (error != 0)
        return error;
    error = domus_ask(stack, kv_shards[shard], &domus_resp_command_type, &kept, then);
    if (error != DOMUS_PARKED)
        domus_resp_command_type.release(&kept);
    return error;
}

/* --- commands that wait ----------------------------------------------------------------------- */

/* Answer a command that waited with the key and the elements of a gift (gift.h). If that fails, the
 * elements stay in the message, and go back to their list when it is released. */
static int answer_wait_with_elements_of_gift(domus_stack *stack, const struct kv_session *session,
                                             struct kv_gift *gift)
{
    domus_resp_builder builder = {.version = session->version,
                                  .bytes.size_max = kv_most_bytes_of_one_answer()};
    const domus_resp_reply array = {.bytes = gift->elements, .values = 1};

    (void)domus_resp_add_array(&builder, 2);
    (void)domus_resp_add_bulk(&builder, domus_slice_data(gift->key), gift->key.size);
    if (gift->count != 0)
        (void)domus_resp_add_reply(&builder, &array);
    else
        (void)domus_resp_add_bulk(&builder, domus_slice_data(gift->elements), gift->elements.size);
    int error = kv_answer_what_builder_has_made(stack, &builder);
    if (error == 0) {
        (void)domus_take(stack);
        kv_gift_free(gift);
    }
    return error;
}

/* Returns whether an answer of a shard is too late: the client has ended, and had to wait for
 * elements. Elements that were there when the command came still go to the client, as do answers to
 * its later commands. */
static bool is_wait_answered_after_client_left(const struct kv_session *session,
                                               const domus_answer *answer)
{
    if (!session->is_gone)
        return false;
    return answer->error != 0 || answer->type == &domus_resp_null_array_type ||
           (answer->type == &kv_gift_type &&
            (*(struct kv_gift *const *)answer->payload)->was_waited_for);
}

static int end_wait_and_answer_client(domus_stack *stack, void *self, const domus_answer *answer)
{
    domus_channel *channel = domus_channel_running(stack);
    struct kv_session *session = self;

    if (channel == NULL)
        return -ENOTCONN;
    (void)domus_become(stack, NULL);
    session->waiting_shard = KV_NO_SHARD;
    /* Drop the commands behind this one, too, as redis-server does when a client has ended. */
    if (is_wait_answered_after_client_left(session, answer)) {
        int error = domus_reply(stack, &domus_resp_null_array_type, NULL);
        (void)domus_channel_close(stack, channel);
        return error;
    }
    if (answer->error == 0 && answer->type == &kv_gift_type)
        return answer_wait_with_elements_of_gift(stack, session,
                                                 *(struct kv_gift *const *)answer->payload);
    return kv_pass_answer_of_shard_to_client(stack, answer);
}

int kv_ask_shard_to_run_blocking_command(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    const struct kv_command *row = kv_command_find(domus_resp_argument(command, 0));
    struct kv_session *session = self;
    uint32_t shard;

    if (!kv_find_only_shard_of_all_keys(command, row, &shard))
        return kv_answer_error(stack, KV_CROSS_SLOT);
    if (kv_is_node_ending())
        return kv_answer_error(stack, KV_UNBLOCKED);
    session->version = command->version;
    session->is_gone = false;
    int error = domus_conversation_of(stack, &session->waiting);
    if (error == 0)
        error = domus_become(stack, &kv_waiting_session);
    if (error != 0)
        return error;
    session->waiting_shard = shard;
    error = ask_shard_to_run_copy_of_command(stack, shard, command, end_wait_and_answer_client);
    if (error != DOMUS_PARKED) {
        session->waiting_shard = KV_NO_SHARD;
        /* the session handles commands as usual, because no command waits any more */
        (void)domus_become(stack, NULL);
    }
    return error;
}

/* Handle that a client has finished sending while its command waits in the shard. The client has
 * probably ended, and an element that it gets later would be lost with it. Only the shard knows
 * whether the command has to wait, so it is told. */
int kv_tell_shard_that_waiting_client_left(domus_stack *stack, void *self, const void *payload)
{
    struct kv_session *session = self;

    (void)payload;
    session->is_gone = true;
    if (domus_ask_add(stack, kv_shards[session->waiting_shard], &kv_leave_type, NULL, 0, 0) != 0 &&
        domus_cancel(stack, session->waiting) != 0)
        (void)domus_channel_close(stack, domus_channel_running(stack));
    return 0;
}

/* --- WATCH ------------------------------------------------------------------------------------ */

static int answer_watch_as_shard(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self;
    return kv_pass_answer_of_shard_to_client(stack, answer);
}

int kv_ask_shard_to_watch_keys(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    const struct kv_command *row = kv_command_find(domus_resp_argument(command, 0));
    struct kv_session *session = self;
    uint32_t shard;

    if (session->transaction != NULL)
        return kv_answer_error(stack, "ERR WATCH inside MULTI is not allowed");
    if (!kv_find_only_shard_of_all_keys(command, row, &shard) ||
        (session->watched_shard != KV_NO_SHARD && session->watched_shard != shard))
        return kv_answer_error(stack, KV_CROSS_SLOT);
    session->watched_shard = shard;
    return ask_shard_to_run_copy_of_command(stack, shard, command, answer_watch_as_shard);
}

void kv_tell_shard_to_unwatch(domus_stack *stack, struct kv_session *session)
{
    if (session->watched_shard == KV_NO_SHARD)
        return;
    /* Tell the shard that its watch ends, by an ask, which keeps its order among other asks as a
     * notice would not. The answer is ignored. If the ask fails, the next transaction fails,
     * too. */
    (void)domus_ask_add(stack, kv_shards[session->watched_shard], &kv_unwatch_type, NULL, 0, 0);
    session->watched_shard = KV_NO_SHARD;
}

int kv_serve_unwatch(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    kv_tell_shard_to_unwatch(stack, self);
    return kv_answer_ok(stack);
}
