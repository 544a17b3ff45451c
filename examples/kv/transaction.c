/* Transactions on the channel: MULTI, EXEC and DISCARD, and the queue between them. The commands
 * that have no key run here, after those of the shard; their answers are put where they belong. */
#include "transaction.h"

#include "pubsub.h"
#include "watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_LEAST 8u

/* --- the queue -------------------------------------------------------------------------------- */

int kv_serve_multi(domus_stack *stack, void *self, const void *payload)
{
    struct kv_session *session = self;
    const domus_resp_command *command = payload;

    if (session->transaction != NULL)
        return kv_answer_error(stack, "ERR MULTI calls can not be nested");
    struct kv_transaction *transaction = calloc(1, sizeof *transaction);
    if (transaction == NULL)
        return -ENOMEM;
    transaction->shard = session->watched_shard;
    transaction->watches = session->watched_shard != KV_NO_SHARD;
    transaction->version = command->version;
    session->transaction = transaction;
    kv_session_update_whether_plain(session);
    return kv_answer_ok(stack);
}

void kv_transaction_mark_as_wrong(struct kv_session *session)
{
    if (session->transaction != NULL)
        session->transaction->is_wrong = true;
}

static int answer_error_and_mark_transaction_wrong(domus_stack *stack, struct kv_session *session,
                                                   const char *text)
{
    kv_transaction_mark_as_wrong(session);
    return kv_answer_error(stack, text);
}

static int double_queue_of_transaction(struct kv_transaction *transaction)
{
    uint32_t room = transaction->room == 0 ? ROOM_LEAST : 2 * transaction->room;
    struct kv_queued *queue = realloc(transaction->queue, room * sizeof *queue);

    if (queue == NULL)
        return -ENOMEM;
    transaction->queue = queue;
    transaction->room = room;
    return 0;
}

int kv_transaction_queue_command(struct kv_transaction *transaction,
                                 const domus_resp_command *command, const struct kv_command *row)
{
    struct kv_queued queued = {.row = row};

    if (transaction->count == transaction->room && double_queue_of_transaction(transaction) != 0)
        return -ENOMEM;
    int error = kv_keep_command_without_copy(command, &queued.command);
    if (error != 0)
        return error;
    transaction->queue[transaction->count++] = queued;
    transaction->keyed += row->run != NULL;
    transaction->growing_bytes += (row->flags & KV_GROWS) != 0 ? command->bytes.size : 0;
    transaction->publishes += row->serve == kv_serve_publish;
    return 0;
}

int kv_transaction_queue_or_run_command(domus_stack *stack, struct kv_session *session,
                                        const domus_resp_command *command,
                                        const struct kv_command *row)
{
    struct kv_transaction *transaction = session->transaction;
    uint32_t shard = transaction->shard;
    uint64_t bytes = command->bytes.size + sizeof(struct kv_queued);

    /* Some forms of CLIENT ask other actors, which a command of a transaction may not, because it
     * cannot wait. */
    if (row->run == NULL && ((row->flags & KV_QUEUES) == 0 || row->serve == kv_serve_client))
        return answer_error_and_mark_transaction_wrong(
            stack, session, "ERR Command not allowed inside a transaction");
    if (row->run != NULL &&
        ((row->first == 0 && (row->flags & KV_COUNTED) == 0 && kv_shard_count > 1) ||
         !kv_find_only_shard_of_all_keys(command, row, &shard) ||
         (transaction->shard != KV_NO_SHARD && transaction->shard != shard)))
        return answer_error_and_mark_transaction_wrong(stack, session, KV_CROSS_SLOT);
    /* the memory limit holds for each command that is queued, also for one that does not grow, as
     * in Redis */
    if (!kv_had_shard_memory_for_bytes(shard, command->bytes.size))
        return answer_error_and_mark_transaction_wrong(stack, session, KV_OUT_OF_MEMORY);
    if (transaction->count >= kv_settings.transaction_commands ||
        transaction->bytes + bytes > kv_settings.transaction_bytes)
        return answer_error_and_mark_transaction_wrong(stack, session,
                                                       "ERR the transaction is too large");
    /* a transaction that is wrong will not run, so it keeps no more commands */
    if (transaction->is_wrong)
        return kv_answer_or_gather_answer(stack, &domus_resp_simple_type,
                                          &(domus_resp_simple){"QUEUED"});
    if (!kv_transaction_add_bytes_if_allowed(transaction, bytes))
        return answer_error_and_mark_transaction_wrong(
            stack, session, "ERR the transactions of all clients are too large");
    int error = kv_transaction_queue_command(transaction, command, row);
    if (error != 0) {
        transaction->is_wrong = true;
        return error;
    }
    transaction->shard = shard;
    return kv_answer_or_gather_answer(stack, &domus_resp_simple_type,
                                      &(domus_resp_simple){"QUEUED"});
}

int kv_serve_discard(domus_stack *stack, void *self, const void *payload)
{
    struct kv_session *session = self;

    (void)payload;
    if (session->transaction == NULL)
        return kv_answer_error(stack, "ERR DISCARD without MULTI");
    kv_transaction_free(session->transaction);
    session->transaction = NULL;
    kv_session_update_whether_plain(session);
    kv_tell_shard_to_unwatch(stack, session);
    return kv_answer_ok(stack);
}

/* --- the answer ------------------------------------------------------------------------------- */

/* Read the next element of the array that the shard has answered, as a part of its bytes. */
static domus_resp_reply read_next_answer_of_shard_array(domus_resp_reader *from, uint8_t version)
{
    domus_resp_value value;
    uint32_t begin = from->at;

    (void)domus_resp_read(from, &value);
    (void)domus_resp_skip(from, &value);
    return (domus_resp_reply){
        .bytes = {from->bytes.page, from->bytes.offset + begin, from->at - begin},
        .values = 1,
        .form = version == 3 ? DOMUS_RESP_ONLY_3 : DOMUS_RESP_EXACT};
}

static int run_keyless_command_and_add_its_answer(domus_stack *stack, struct kv_session *session,
                                                  domus_resp_builder *builder,
                                                  const struct kv_queued *queued)
{
    int error = 0;

    if (queued->row->serve == kv_serve_publish && queued->receivers >= 0)
        return domus_resp_add_integer(builder, queued->receivers);
    kv_gather_answers_of_transaction_in(builder);
    if (queued->row->serve == kv_serve_publish)
        error = (int)queued->receivers;
    else
        error = queued->row->serve(stack, session, &queued->command);
    if (error != 0)
        kv_gather_error_of_failed_command(error);
    kv_gather_answers_of_transaction_in(NULL);
    return 0;
}

/* Run the transaction's commands without a key, and put all answers together to that of EXEC. */
static int make_answer_of_exec_from_all_answers(domus_stack *stack, struct kv_session *session,
                                                const struct kv_transaction *transaction)
{
    domus_resp_builder builder = {.version = transaction->version,
                                  .bytes.size_max = kv_most_bytes_of_one_answer()};
    domus_resp_reader reader = {transaction->array.bytes, 0};
    domus_resp_value head;

    if (reader.bytes.size != 0)
        (void)domus_resp_read(&reader, &head);
    (void)domus_resp_add_array(&builder, transaction->count);
    for (uint32_t i = 0; i < transaction->count; i++) {
        const struct kv_queued *queued = &transaction->queue[i];
        if (queued->row->run != NULL) {
            domus_resp_reply element =
                read_next_answer_of_shard_array(&reader, transaction->version);
            (void)domus_resp_add_reply(&builder, &element);
        } else {
            (void)run_keyless_command_and_add_its_answer(stack, session, &builder, queued);
        }
    }
    return kv_answer_what_builder_has_made(stack, &builder);
}

/* --- PUBLISH ---------------------------------------------------------------------------------- */

/* Handle the answers of the switchboard, which has published all messages of a transaction. */
static int record_receivers_and_assemble_answers(domus_stack *stack, void *self,
                                                 const domus_answer *answer)
{
    struct kv_transaction *transaction;

    memcpy(&transaction, domus_frame(stack), sizeof transaction);
    for (; answer != NULL; answer = answer->next) {
        if (answer->error == -ECANCELED)
            break;
        transaction->queue[answer->tag].receivers =
            answer->error != 0 ? answer->error
                               : ((const domus_resp_integer *)answer->payload)->value;
    }
    int error = answer != NULL ? answer->error
                               : make_answer_of_exec_from_all_answers(stack, self, transaction);
    kv_transaction_free(transaction);
    return error;
}

/* Ask the switchboard to publish the messages of all PUBLISH of a transaction, in their order. */
static int ask_for_publications_of_transaction(domus_stack *stack,
                                               struct kv_transaction *transaction)
{
    for (uint32_t i = 0; i < transaction->count; i++) {
        struct kv_queued *queued = &transaction->queue[i];
        domus_resp_command kept;
        if (queued->row->serve != kv_serve_publish)
            continue;
        int error = kv_keep_command_without_copy(&queued->command, &kept);
        if (error != 0)
            return error;
        error = domus_ask_add(stack, kv_actor_to_ask_for_publication(), &domus_resp_command_type,
                              &kept, 0, i);
        if (error != 0) {
            domus_resp_command_type.release(&kept);
            return error;
        }
    }
    memcpy(domus_frame(stack), &transaction, sizeof transaction);
    return domus_wait_all(stack, record_receivers_and_assemble_answers);
}

/* --- EXEC ------------------------------------------------------------------------------------- */

/* Finish a transaction whose shard has run its commands. The transaction is consumed. */
static int publish_or_answer_done_transaction(domus_stack *stack, struct kv_session *session,
                                              struct kv_transaction *transaction)
{
    int error;

    if (transaction->publishes != 0) {
        error = ask_for_publications_of_transaction(stack, transaction);
        if (error == DOMUS_PARKED)
            return error;
    } else if (transaction->keyed == transaction->count && transaction->count != 0) {
        error = domus_reply(stack, &domus_resp_reply_type, &transaction->array);
        if (error == 0)
            transaction->array.bytes = (domus_slice){NULL, 0, 0};
    } else {
        error = make_answer_of_exec_from_all_answers(stack, session, transaction);
    }
    kv_transaction_free(transaction);
    return error;
}

static int publish_and_answer_executed_transaction(domus_stack *stack, void *self,
                                                   const domus_answer *answer)
{
    if (answer->error != 0)
        return answer->error;
    /* the shard has run nothing: a watched key has changed, or the memory is full */
    if (answer->type != &kv_executed_type)
        return kv_pass_answer_of_shard_to_client(stack, answer);
    (void)domus_take(stack);
    return publish_or_answer_done_transaction(stack, self,
                                              *(struct kv_transaction *const *)answer->payload);
}

int kv_ask_shard_to_run_transaction(domus_stack *stack, void *self, const void *payload)
{
    struct kv_session *session = self;
    struct kv_transaction *transaction = session->transaction;

    (void)payload;
    if (transaction == NULL)
        return kv_answer_error(stack, "ERR EXEC without MULTI");
    session->transaction = NULL;
    kv_session_update_whether_plain(session);
    if (transaction->is_wrong) {
        kv_transaction_free(transaction);
        kv_tell_shard_to_unwatch(stack, session);
        return kv_answer_error(stack,
                               "EXECABORT Transaction discarded because of previous errors.");
    }
    /* forget the watch here: EXEC ends it in the shard, too */
    session->watched_shard = KV_NO_SHARD;
    if (transaction->shard == KV_NO_SHARD)
        return publish_or_answer_done_transaction(stack, session, transaction);
    int error = domus_ask(stack, kv_shards[transaction->shard], &kv_exec_type, &transaction,
                          publish_and_answer_executed_transaction);
    if (error != DOMUS_PARKED)
        kv_transaction_free(transaction);
    return error;
}
