/* /kv/KEY: the keys of kv over HTTP. GET, PUT and DELETE become the commands GET, SET and DEL for
 * the shard of the key, so whoever asks kv by its own port sees the same keys.
 *
 * KEY may have escapes (%2F), and stands for the decoded bytes. Keys are open to everybody as long
 * as kv has no password. With one they are closed here, because there is no way to give it. */
#include "web.h"

#include <domus/budget.h>
#include <domus/http_query.h>

#include <errno.h>
#include <string.h>

#define KEY_MAX 512u /* most bytes of a key as it is written in the path */

/* The budget of values of PUT requests that have come in part, over all connections. */
static domus_budget gathered;

struct visit {
    /* the request that is handled, which is valid until it is answered */
    const domus_http_request *request;
    domus_appender value; /* the value of a PUT, as far as it has come */
    uint64_t charged;     /* bytes of the value that count on the budget */
    bool is_whole;
};

/* --- the command ------------------------------------------------------------------------------ */

/* Make the command of kv for a request, and find the shard of its key. Returns 0; -EINVAL for a
 * wrong key. */
static int make_store_command_and_find_shard(const domus_http_request *request, domus_slice value,
                                             domus_resp_command *ret_command,
                                             domus_address *ret_shard)
{
    domus_slice path = web_value_of_path_segment(request, "key");
    domus_resp_bytes words[3] = {{"GET", 3}};
    char key[KEY_MAX];

    if (path.size > sizeof key)
        return -EINVAL;
    int64_t size = domus_http_decode(key, domus_slice_data(path), path.size, false);
    if (size < 0)
        return -EINVAL;
    words[1] = (domus_resp_bytes){key, (size_t)size};
    words[2] = (domus_resp_bytes){domus_slice_data(value), value.size};
    if (request->method == DOMUS_HTTP_PUT)
        words[0].data = "SET";
    else if (request->method == DOMUS_HTTP_DELETE)
        words[0].data = "DEL";
    int error =
        domus_resp_command_make(words, request->method == DOMUS_HTTP_PUT ? 3 : 2, ret_command);
    if (error == 0) /* find the shard of the command's second word, which is the key */
        *ret_shard = kv_shards[kv_shard_of_key(domus_resp_argument(ret_command, 1))];
    return error;
}

/* Ask the shard of a request's key to run its command. This frees the value. */
static int ask_shard_of_key(domus_stack *stack, const domus_http_request *request,
                            domus_slice value, domus_resumed *then)
{
    domus_resp_command command;
    domus_address shard;
    int error = make_store_command_and_find_shard(request, value, &command, &shard);

    domus_slice_free(value);
    if (error == -EINVAL)
        return web_answer_with_line(stack, 400, "this cannot be a key\n");
    if (error != 0)
        return error;
    error = domus_ask(stack, shard, &domus_resp_command_type, &command, then);
    if (error < 0)
        domus_resp_command_type.release(&command);
    return error;
}

/* --- the answer ------------------------------------------------------------------------------- */

static int answer_http_status_of_shard_error(domus_stack *stack, const domus_resp_error *error)
{
    if (strncmp(error->text, "WRONGTYPE", 9) == 0)
        return web_answer_with_line(stack, 409, "this key is no string\n");
    if (strncmp(error->text, "OOM", 3) == 0)
        return web_answer_with_line(stack, 507, "the store is full\n");
    return web_answer_with_line(stack, 500, "the store refuses\n");
}

/* Answer the request by the answer of the shard. */
static int answer_request_as_shard_answered(domus_stack *stack, const domus_answer *answer)
{
    domus_slice value;
    int error;

    if (answer->error != 0)
        return answer->error;
    if (answer->type == &domus_resp_null_type)
        return web_answer_with_line(stack, 404, "no such key\n");
    if (answer->type == &domus_resp_error_type)
        return answer_http_status_of_shard_error(stack, answer->payload);
    if (answer->type == &domus_resp_ok_type) /* "+OK" is the answer to SET */
        return domus_reply(stack, &domus_http_text_type, &(domus_http_text){.status = 204});
    /* an integer is the answer to DEL: how many keys there were */
    if (answer->type == &domus_resp_integer_type)
        return ((const domus_resp_integer *)answer->payload)->value == 0
                   ? web_answer_with_line(stack, 404, "no such key\n")
                   : domus_reply(stack, &domus_http_text_type, &(domus_http_text){.status = 204});
    if (answer->type == &domus_resp_short_type) {
        const domus_resp_short *text = answer->payload;
        error = domus_slice_copy(text->bytes, text->size, &value);
    } else if (answer->type == &domus_slice_type) {
        error = domus_slice_keep(*(const domus_slice *)answer->payload, &value);
    } else {
        return -EPROTO; /* the shard has answered with a type that is not known here */
    }
    return error != 0 ? error : web_answer_200_with_uncached_body(stack, WEB_PLAIN, value);
}

/* --- the value of a PUT ----------------------------------------------------------------------- */

static void free_value(struct visit *visit)
{
    domus_append_drop(&visit->value);
    (void)domus_budget_charge(&gathered, &visit->charged, 0);
}

/* Add the piece of the body that was read to the value. Returns 0; -EMSGSIZE (413); -ENOMEM (503);
 * the error of the body. */
static int add_piece_to_value(struct visit *visit, const domus_answer *answer)
{
    const domus_piece *piece = answer->payload;

    visit->is_whole = answer->error != 0 || answer->type != &domus_piece_type || piece->last;
    if (answer->error != 0 || answer->type != &domus_piece_type)
        return answer->error;
    uint32_t size = piece->bytes.size;
    int error = domus_budget_charge(&gathered, &visit->charged, visit->charged + size);
    return error != 0 ? error : domus_append(&visit->value, domus_slice_data(piece->bytes), size);
}

/* Read the next piece of the value. If the read cannot begin, the sequence ends. */
static int read_next_piece_of_value(domus_stack *stack, struct visit *visit, domus_resumed *then)
{
    int error = domus_body_read(stack, visit->request->stream, then);

    if (error < 0)
        free_value(visit);
    return error;
}

/* Begin to handle a request for a key. Returns false if it was answered already, with
 * `*ret_result`. */
static bool begin_key_request(domus_stack *stack, struct visit *visit,
                              const domus_http_request *request, int *ret_result)
{
    visit->request = request;
    visit->value.size_max = (uint32_t)web_settings.value_max_bytes;
    visit->is_whole = request->method != DOMUS_HTTP_PUT || request->stream.number == 0;
    if (kv_settings.password[0] != '\0')
        *ret_result = web_answer_with_line(stack, 403, "this store has a password\n");
    else if (!visit->is_whole && request->length > web_settings.value_max_bytes)
        *ret_result = -EMSGSIZE; /* the answer 413 comes before the client sends the value */
    else
        return true;
    return false;
}

DOMUS_SEQUENCE(visit, struct visit)
{
    domus_slice value = {0};
    int result = 0;

    DOMUS_BEGIN;
    if (!begin_key_request(stack, frame, message, &result))
        return result;
    while (!frame->is_whole) {
        DOMUS_AWAIT(read_next_piece_of_value(stack, frame, then));
        if ((result = add_piece_to_value(frame, answer)) != 0) {
            free_value(frame);
            return result;
        }
    }
    result = domus_append_end(&frame->value, &value);
    /* the bytes of the value belong to the command now, and later to the store */
    free_value(frame);
    if (result != 0)
        return result;
    DOMUS_AWAIT(ask_shard_of_key(stack, frame->request, value, then));
    return answer_request_as_shard_answered(stack, answer);
    DOMUS_END;
}

const domus_call web_serve_key = DOMUS_BY(visit);

void web_set_up_keys(void)
{
    gathered.bytes_max = web_settings.gathered_max_bytes;
}
