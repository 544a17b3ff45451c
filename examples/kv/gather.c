/* Gathers the answers of a transaction: while one runs, each answer becomes an element of its
 * array. */
#include "kv.h"

#include <errno.h>

/* The array of the transaction that this thread runs; NULL: answers go to the actor that has asked.
 * A transaction runs its commands in one turn of one actor, and none of them waits, so one variable
 * for each thread is enough. */
static _Thread_local domus_resp_builder *gathered;

void kv_gather_answers_of_transaction_in(domus_resp_builder *array)
{
    gathered = array;
}

bool kv_are_answers_gathered(void)
{
    return gathered != NULL;
}

static int add_bulk_string_to_gathered(domus_slice bytes)
{
    int error = domus_resp_add_bulk(gathered, domus_slice_data(bytes), bytes.size);

    domus_slice_free(bytes);
    return error;
}

static int add_built_reply_to_gathered(const domus_resp_reply *reply)
{
    int error = domus_resp_add_reply(gathered, reply);

    domus_slice_free(reply->bytes);
    return error;
}

static int add_answer_to_gathered_by_type(const domus_type *type, const void *payload)
{
    if (type == &domus_resp_ok_type)
        return domus_resp_add_simple(gathered, "OK");
    if (type == &domus_resp_null_type)
        return domus_resp_add_null(gathered);
    if (type == &domus_resp_null_array_type)
        return domus_resp_add_null_array(gathered);
    if (type == &domus_resp_integer_type)
        return domus_resp_add_integer(gathered, ((const domus_resp_integer *)payload)->value);
    if (type == &domus_resp_simple_type)
        return domus_resp_add_simple(gathered, ((const domus_resp_simple *)payload)->text);
    if (type == &domus_resp_short_type) {
        const domus_resp_short *text = payload;
        return domus_resp_add_bulk(gathered, text->bytes, text->size);
    }
    if (type == &domus_resp_error_type) {
        const domus_resp_error *error = payload;
        return domus_resp_add_error(gathered, "%.*s", (int)sizeof error->text, error->text);
    }
    if (type == &domus_slice_type)
        return add_bulk_string_to_gathered(*(const domus_slice *)payload);
    return type == &domus_resp_reply_type ? add_built_reply_to_gathered(payload) : -EOPNOTSUPP;
}

static int add_answer_to_running_transaction(const domus_type *type, const void *payload)
{
    /* Gather an answer of the running transaction. If that fails, the builder keeps its first
     * error, so EXEC fails with it. */
    (void)add_answer_to_gathered_by_type(type, payload);
    return 0;
}

int kv_answer_or_gather_answer(domus_stack *stack, const domus_type *type, const void *payload)
{
    if (__builtin_expect(gathered != NULL, false))
        return add_answer_to_running_transaction(type, payload);
    return domus_reply(stack, type, payload);
}

void kv_gather_error_of_failed_command(int error)
{
    const char *text = error == -ENOMEM ? KV_OUT_OF_MEMORY
                       : error == -EBUSY || error == -ENOBUFS
                           ? "BUSY the server is busy, try again later"
                           : "ERR internal error";

    (void)domus_resp_add_error(gathered, "%s", text);
}
