/* The picklers of commands and transactions (travel.h). A command is written as its bytes, and the
 * places of its arguments in them. */
#include "travel.h"

#include "transaction.h"

#include <errno.h>
#include <stdlib.h>

/* number of arguments up to which the places of arguments need no memory of their own */
#define FEW 16u

/* --- commands --------------------------------------------------------------------------------- */

int kv_pickle_command(domus_pickle_writer *writer, const domus_resp_command *command)
{
    (void)domus_pickle_put_array(writer, 3);
    (void)domus_pickle_put_uint(writer, command->version);
    (void)domus_pickle_put_array(writer, 2 * command->count);
    for (uint32_t i = 0; i < command->count; i++) {
        domus_slice argument = domus_resp_argument(command, i);
        (void)domus_pickle_put_uint(writer, argument.offset - command->bytes.offset);
        (void)domus_pickle_put_uint(writer, argument.size);
    }
    return domus_pickle_put_bytes(writer, domus_slice_data(command->bytes), command->bytes.size);
}

struct span {
    uint32_t at, size;
};

static int unpickle_places_of_arguments(domus_pickle_reader *reader, struct span *spans,
                                        uint32_t count)
{
    int error = 0;

    for (uint32_t i = 0; i < count && error == 0; i++) {
        uint64_t at = 0, size = 0;
        (void)domus_pickle_get_uint(reader, 0, DOMUS_SLICE_MAX, &at);
        error = domus_pickle_get_uint(reader, 0, DOMUS_SLICE_MAX, &size);
        spans[i] = (struct span){(uint32_t)at, (uint32_t)size};
    }
    return error;
}

/* Make a command that was read: it gets a copy of each argument that lies in `bytes`. */
static int make_command_of_unpickled_arguments(domus_pickle_reader *reader,
                                               const struct span *spans, uint32_t count,
                                               domus_slice bytes, domus_resp_command *ret_command)
{
    domus_resp_bytes few[FEW];
    domus_resp_bytes *arguments = count <= FEW ? few : calloc(count, sizeof *arguments);
    int error = arguments != NULL ? 0 : -ENOMEM;
    uint64_t all = 0;

    for (uint32_t i = 0; i < count && error == 0; i++) {
        all += spans[i].size;
        if ((uint64_t)spans[i].at + spans[i].size > bytes.size || all > bytes.size)
            error = domus_pickle_reject(reader, -EPROTO, "argument %u is not in the bytes", i);
        else
            arguments[i] = (domus_resp_bytes){domus_slice_data(bytes) + spans[i].at, spans[i].size};
    }
    if (error == 0)
        error = domus_resp_command_make(arguments, count, ret_command);
    if (arguments != few)
        free(arguments);
    return error;
}

int kv_unpickle_command(domus_pickle_reader *reader, domus_resp_command *ret_command)
{
    const uint64_t most = kv_settings.arguments_max;
    domus_slice bytes = {NULL, 0, 0};
    domus_resp_command command;
    struct span few[FEW];
    struct span *spans = few;
    uint64_t version = 0;
    uint32_t parts = 0, numbers = 0;

    (void)domus_pickle_get_array(reader, 3, &parts);
    (void)domus_pickle_get_uint(reader, 2, 3, &version);
    int error = domus_pickle_get_array(
        reader, 2 * most < DOMUS_PICKLE_ELEMENTS_MAX ? (uint32_t)(2 * most) : 1u << 24, &numbers);
    if (error == 0 && (numbers == 0 || numbers % 2 != 0))
        error = domus_pickle_reject(reader, -EPROTO, "a command without arguments");
    if (error == 0 && numbers / 2 > FEW) {
        error = domus_pickle_take_memory(reader, numbers / 2 * 2 * sizeof *spans);
        spans = error == 0 ? calloc(numbers / 2, sizeof *spans) : few;
        error = error == 0 && spans == NULL ? -ENOMEM : error;
    }
    if (error == 0)
        error = unpickle_places_of_arguments(reader, spans, numbers / 2);
    if (error == 0)
        error = domus_pickle_get_slice(reader, DOMUS_SLICE_MAX, &bytes);
    if (error == 0)
        error = make_command_of_unpickled_arguments(reader, spans, numbers / 2, bytes, &command);
    if (spans != few)
        free(spans);
    domus_slice_free(bytes);
    if (error != 0)
        return error;
    command.version = (uint8_t)version;
    *ret_command = command;
    return 0;
}

bool kv_may_shard_run_foreign_command(const domus_resp_command *command)
{
    const struct kv_command *row = kv_command_find(domus_resp_argument(command, 0));

    return row != NULL && row->run != NULL && kv_has_right_argument_count(row, command->count) &&
           (row->step != 2 || command->count % 2 != 0);
}

int kv_pickle_payload_of_command(domus_pickle_writer *writer, const void *payload)
{
    return kv_pickle_command(writer, payload);
}

int kv_unpickle_payload_of_command(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    int error = kv_unpickle_command(reader, payload);

    (void)version;
    if (error == 0 && !kv_may_shard_run_foreign_command(payload))
        error = domus_pickle_reject(reader, -EPROTO, "no command of a shard");
    return error;
}

int kv_unpickle_command_publish(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    const domus_resp_command *command = payload;
    int error = kv_unpickle_command(reader, payload);

    (void)version;
    if (error == 0 &&
        (command->count != 3 || !domus_resp_is(domus_resp_argument(command, 0), "PUBLISH")))
        error = domus_pickle_reject(reader, -EPROTO, "no PUBLISH");
    return error;
}

/* --- transactions ----------------------------------------------------------------------------- */

/* Write a transaction on its way to its shard, or back. On the way back the commands that have run
 * are only their names. */

int kv_pickle_transaction_to_run(domus_pickle_writer *writer, const void *payload)
{
    const struct kv_transaction *transaction = *(const struct kv_transaction *const *)payload;

    (void)domus_pickle_put_array(writer, 3);
    (void)domus_pickle_put_uint(writer, transaction->version);
    (void)domus_pickle_put_bool(writer, transaction->watches);
    int error = domus_pickle_put_array(writer, transaction->count);
    for (uint32_t i = 0; i < transaction->count && error == 0; i++)
        error = kv_pickle_command(writer, &transaction->queue[i].command);
    return error;
}

/* Read a command into the queue of a transaction. `ran`: the command has run in the shard, and only
 * its name counts. */
static int unpickle_command_into_queue(domus_pickle_reader *reader,
                                       struct kv_transaction *transaction, bool ran)
{
    domus_resp_command command;
    int error = kv_unpickle_command(reader, &command);

    if (error != 0)
        return error;
    const struct kv_command *row = kv_command_find(domus_resp_argument(&command, 0));
    bool is_right =
        row != NULL && (row->run != NULL ? ran || kv_may_shard_run_foreign_command(&command)
                                         : kv_has_right_argument_count(row, command.count) &&
                                               (row->flags & KV_QUEUES) != 0);
    if (!is_right)
        error = domus_pickle_reject(reader, -EPROTO, "no command of a transaction");
    else if (transaction->count >= kv_settings.transaction_commands ||
             !kv_transaction_add_bytes_if_allowed(transaction,
                                                  command.bytes.size + sizeof(struct kv_queued)))
        error = domus_pickle_reject(reader, -EMSGSIZE, "the transaction is too large");
    else
        error = kv_transaction_queue_command(transaction, &command, row);
    domus_resp_command_type.release(&command);
    return error;
}

/* Read a transaction into the payload of a message, which owns it at once. */
static int unpickle_queue_of_transaction(domus_pickle_reader *reader, void *payload, bool ran)
{
    struct kv_transaction *transaction = calloc(1, sizeof *transaction);
    uint32_t parts = 0, count = 0;
    uint64_t version = 0;

    *(struct kv_transaction **)payload = transaction;
    if (transaction == NULL)
        return -ENOMEM;
    transaction->shard = KV_NO_SHARD;
    (void)domus_pickle_get_array(reader, 4, &parts);
    (void)domus_pickle_get_uint(reader, 2, 3, &version);
    (void)domus_pickle_get_bool(reader, &transaction->watches);
    int error = domus_pickle_get_array(reader, DOMUS_PICKLE_ELEMENTS_MAX, &count);
    transaction->version = (uint8_t)version;
    for (uint32_t i = 0; i < count && error == 0; i++)
        error = unpickle_command_into_queue(reader, transaction, ran);
    return error;
}

int kv_unpickle_transaction_to_run(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    (void)version;
    return unpickle_queue_of_transaction(reader, payload, false);
}

/* Write a command without its arguments: only its name. */
static int pickle_command_as_name_alone(domus_pickle_writer *writer,
                                        const domus_resp_command *command)
{
    domus_slice name = domus_resp_argument(command, 0);

    (void)domus_pickle_put_array(writer, 3);
    (void)domus_pickle_put_uint(writer, command->version);
    (void)domus_pickle_put_array(writer, 2);
    (void)domus_pickle_put_uint(writer, 0);
    (void)domus_pickle_put_uint(writer, name.size);
    return domus_pickle_put_bytes(writer, domus_slice_data(name), name.size);
}

int kv_pickle_executed_transaction(domus_pickle_writer *writer, const void *payload)
{
    const struct kv_transaction *transaction = *(const struct kv_transaction *const *)payload;
    domus_slice array = transaction->array.bytes;

    (void)domus_pickle_put_array(writer, 4);
    (void)domus_pickle_put_uint(writer, transaction->version);
    (void)domus_pickle_put_bool(writer, transaction->watches);
    int error = domus_pickle_put_array(writer, transaction->count);
    for (uint32_t i = 0; i < transaction->count && error == 0; i++) {
        const struct kv_queued *queued = &transaction->queue[i];
        error = queued->row->run != NULL ? pickle_command_as_name_alone(writer, &queued->command)
                                         : kv_pickle_command(writer, &queued->command);
    }
    if (array.size > KV_TRAVEL_MAX)
        return domus_pickle_refuse(writer, -EMSGSIZE, "the answer is too large");
    return domus_pickle_put_bytes(writer, domus_slice_data(array), array.size);
}

int kv_unpickle_executed_transaction(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    int error = unpickle_queue_of_transaction(reader, payload, true);
    struct kv_transaction *transaction = *(struct kv_transaction **)payload;

    (void)version;
    if (error != 0)
        return error;
    transaction->array.values = 1;
    transaction->array.form =
        transaction->version == 3 ? DOMUS_RESP_ONLY_3 : (uint8_t)DOMUS_RESP_EXACT;
    error = domus_pickle_get_slice(reader, DOMUS_SLICE_MAX, &transaction->array.bytes);
    if (error == 0 && !kv_are_bytes_array_of_count(transaction->array.bytes, transaction->keyed))
        error = domus_pickle_reject(reader, -EPROTO, "no answers of a transaction");
    return error;
}

/* --- answers that are arrays ------------------------------------------------------------------ */

bool kv_are_bytes_array_of_count(domus_slice bytes, uint32_t count)
{
    domus_resp_reader reader = {bytes, 0};
    domus_resp_value value;

    if (domus_resp_read(&reader, &value) != 1 || value.kind != DOMUS_RESP_ARRAY ||
        value.count != count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (domus_resp_read(&reader, &value) != 1 || domus_resp_skip(&reader, &value) != 0)
            return false;
    }
    return reader.at == bytes.size;
}
