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

#define KEY_MAX 512u /* bytes of a key as it is written in the path */

/* The bound on values that have come in part, of all connections together. */
static domus_budget gathered;

struct visit {
    const domus_http_request *request; /* valid until it is answered */
    domus_appender value;              /* the value of a PUT, as far as it has come */
    uint64_t charged;                  /* bytes of it on the budget */
    bool is_whole;
};

/* --- the command ------------------------------------------------------------------------------ */

/* Make the command for the shard, and find the shard. Returns 0; -EINVAL for a wrong key. */
static int make_command(const domus_http_request *request, domus_slice value,
                        domus_resp_command *ret_command, domus_address *ret_shard)
{
    domus_slice path = web_path_value(request, "key");
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
    if (error == 0) /* the second word is the key */
        *ret_shard = kv_shards[kv_shard_of(domus_resp_argument(ret_command, 1))];
    return error;
}

/* Ask the shard. This frees the value. */
static int ask_shard(domus_stack *stack, const domus_http_request *request, domus_slice value,
                     domus_resumed *then)
{
    domus_resp_command command;
    domus_address shard;
    int error = make_command(request, value, &command, &shard);

    domus_slice_free(value);
    if (error == -EINVAL)
        return web_say(stack, 400, "this cannot be a key\n");
    if (error != 0)
        return error;
    error = domus_ask(stack, shard, &domus_resp_command_type, &command, then);
    if (error < 0)
        domus_resp_command_type.release(&command);
    return error;
}

/* --- the answer ------------------------------------------------------------------------------- */

static int answer_error(domus_stack *stack, const domus_resp_error *error)
{
    if (strncmp(error->text, "WRONGTYPE", 9) == 0)
        return web_say(stack, 409, "this key is no string\n");
    if (strncmp(error->text, "OOM", 3) == 0)
        return web_say(stack, 507, "the store is full\n");
    return web_say(stack, 500, "the store refuses\n");
}

/* Answer with what the shard has answered. */
static int give_answer(domus_stack *stack, const domus_answer *answer)
{
    domus_slice value;
    int error;

    if (answer->error != 0)
        return answer->error;
    if (answer->type == &domus_resp_null_type)
        return web_say(stack, 404, "no such key\n");
    if (answer->type == &domus_resp_error_type)
        return answer_error(stack, answer->payload);
    if (answer->type == &domus_resp_ok_type) /* the answer to SET */
        return domus_reply(stack, &domus_http_text_type, &(domus_http_text){.status = 204});
    if (answer->type == &domus_resp_integer_type) /* the answer to DEL: how many keys there were */
        return ((const domus_resp_integer *)answer->payload)->value == 0
                   ? web_say(stack, 404, "no such key\n")
                   : domus_reply(stack, &domus_http_text_type, &(domus_http_text){.status = 204});
    if (answer->type == &domus_resp_short_type) {
        const domus_resp_short *text = answer->payload;
        error = domus_slice_copy(text->bytes, text->size, &value);
    } else if (answer->type == &domus_slice_type) {
        error = domus_slice_keep(*(const domus_slice *)answer->payload, &value);
    } else {
        return -EPROTO; /* no such answer is known */
    }
    return error != 0 ? error : web_answer(stack, WEB_PLAIN, value);
}

/* --- the value of a PUT ----------------------------------------------------------------------- */

static void forget_value(struct visit *visit)
{
    domus_append_drop(&visit->value);
    (void)domus_budget_charge(&gathered, &visit->charged, 0);
}

/* Add the piece that was read. Returns 0; -EMSGSIZE (413); -ENOMEM (503); the error of the body. */
static int add_piece(struct visit *visit, const domus_answer *answer)
{
    const domus_piece *piece = answer->payload;

    visit->is_whole = answer->error != 0 || answer->type != &domus_piece_type || piece->last;
    if (answer->error != 0 || answer->type != &domus_piece_type)
        return answer->error;
    uint32_t size = piece->bytes.size;
    int error = domus_budget_charge(&gathered, &visit->charged, visit->charged + size);
    return error != 0 ? error : domus_append(&visit->value, domus_slice_data(piece->bytes), size);
}

/* Read the next piece. If that cannot begin, the sequence ends. */
static int read_piece(domus_stack *stack, struct visit *visit, domus_resumed *then)
{
    int error = domus_body_read(stack, visit->request->stream, then);

    if (error < 0)
        forget_value(visit);
    return error;
}

/* Begin with a request. Returns false if it was answered, with `*ret_result`. */
static bool begin_visit(domus_stack *stack, struct visit *visit, const domus_http_request *request,
                        int *ret_result)
{
    visit->request = request;
    visit->value.size_max = (uint32_t)web_settings.value_max_bytes;
    visit->is_whole = request->method != DOMUS_HTTP_PUT || request->stream.number == 0;
    if (kv_settings.password[0] != '\0')
        *ret_result = web_say(stack, 403, "this store has a password\n");
    else if (!visit->is_whole && request->length > web_settings.value_max_bytes)
        *ret_result = -EMSGSIZE; /* 413, before the value is sent */
    else
        return true;
    return false;
}

DOMUS_SEQUENCE(visit, struct visit)
{
    domus_slice value = {0};
    int result = 0;

    DOMUS_BEGIN;
    if (!begin_visit(stack, frame, message, &result))
        return result;
    while (!frame->is_whole) {
        DOMUS_AWAIT(read_piece(stack, frame, then));
        if ((result = add_piece(frame, answer)) != 0) {
            forget_value(frame);
            return result;
        }
    }
    result = domus_append_end(&frame->value, &value);
    forget_value(frame); /* from now on its bytes are those of a command, and later of the store */
    if (result != 0)
        return result;
    DOMUS_AWAIT(ask_shard(stack, frame->request, value, then));
    return give_answer(stack, answer);
    DOMUS_END;
}

const domus_call web_serve_key = DOMUS_BY(visit);

void web_keys_begin(void)
{
    gathered.bytes_max = web_settings.gathered_max_bytes;
}
