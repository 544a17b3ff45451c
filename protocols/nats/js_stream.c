/* The actor of a stream (domus/nats_stream.h), and the functions that make and send a publish. */
#include "protocols/nats/js.h"

#include <domus/await.h>
#include <domus/spawn.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const domus_slice no_bytes = {NULL, 0, 0};

/* --- publishing ------------------------------------------------------------------------------- */

/* Make the headers of a message that is published to a stream: those that the user gave, then those
 * that the fields of the publish stand for, such as its id. */
static int make_headers_of_publish(const domus_nats_stream_publish *publish,
                                   domus_slice *ret_headers)
{
    domus_slice given = publish->message.headers;
    domus_appender headers = {0};
    int error = 0;

    /* the empty line at the end of the user's headers is left out, because more headers follow */
    if (given.size > 2)
        error = domus_append(&headers, domus_slice_data(given), given.size - 2);
    if (error == 0 && publish->id[0] != '\0')
        error = domus_nats_headers_add(&headers, "Nats-Msg-Id", publish->id);
    if (error == 0 && publish->expected_last != DOMUS_NATS_ANY_SEQUENCE)
        error = domi_js_add_header_with_number(&headers, "Nats-Expected-Last-Sequence",
                                               publish->expected_last);
    if (error == 0 && publish->expected_last_of_subject != DOMUS_NATS_ANY_SEQUENCE)
        error = domi_js_add_header_with_number(&headers, "Nats-Expected-Last-Subject-Sequence",
                                               publish->expected_last_of_subject);
    if (error == 0)
        return domus_nats_headers_end(&headers, ret_headers);
    domus_append_drop(&headers);
    return error;
}

static bool needs_no_added_headers(const domus_nats_stream_publish *publish)
{
    return publish->id[0] == '\0' && publish->expected_last == DOMUS_NATS_ANY_SEQUENCE &&
           publish->expected_last_of_subject == DOMUS_NATS_ANY_SEQUENCE;
}

/* Send the message of the current ask to the server; the ask keeps what it owns, so the message
 * shares it. */
static int send_message_of_ask_to_stream(domus_stack *stack, const domi_js *js, domus_resumed *then)
{
    const domus_nats_stream_publish *asked = domus_asked(stack, &domus_nats_stream_publish_type);

    if (asked == NULL)
        return -ECANCELED;
    domus_nats_publish request = asked->message;
    request.subject = no_bytes;
    request.reply = no_bytes;
    request.headers = no_bytes;
    request.payload = no_bytes;
    int error = domus_slice_keep(asked->message.subject, &request.subject);
    if (error == 0)
        error = domus_slice_keep(asked->message.payload, &request.payload);
    if (error == 0 && needs_no_added_headers(asked))
        error = domus_slice_keep(asked->message.headers, &request.headers);
    else if (error == 0)
        error = make_headers_of_publish(asked, &request.headers);
    if (error == 0)
        error = domus_ask(stack, js->client, &domus_nats_request_type, &request, then);
    if (error < 0)
        domus_nats_publish_free(&request);
    return error;
}

static int reply_with_publish_ack(domus_stack *stack, domi_js *js, const domus_answer *answer)
{
    domus_nats_stream_ack ack;
    int error = domi_js_mark_unopened_if_stream_is_gone(js, domi_js_read_publish_ack(answer, &ack));

    return error == 0 ? domus_reply(stack, &domus_nats_stream_ack_type, &ack) : error;
}

DOMUS_SEQUENCE(serve_publish, char)
{
    domi_js *js = self;

    DOMUS_BEGIN;
    {
        const domus_nats_stream_publish *publish = message;
        if (publish == NULL || strnlen(publish->id, sizeof publish->id) > DOMUS_NATS_ID_MAX)
            return -EINVAL;
    }
    DOMI_JS_AWAIT_OPEN(stack, js, then, answer);
    DOMUS_AWAIT(send_message_of_ask_to_stream(stack, js, then));
    return reply_with_publish_ack(stack, js, answer);
    DOMUS_END;
}

/* --- getting a message ------------------------------------------------------------------------ */

static int check_stream_get(const domus_nats_stream_get *get)
{
    if (get == NULL) /* `get` is not NULL in the first turn of a sequence */
        return -EINVAL;
    size_t size = strnlen(get->subject, sizeof get->subject);
    bool is_subject =
        size <= DOMUS_NATS_FILTER_MAX && domi_js_is_valid_subject(get->subject, size, false);

    return get->sequence != 0 || is_subject ? 0 : -EINVAL;
}

static int ask_server_for_message_of_get(domus_stack *stack, const domi_js *js, domus_resumed *then)
{
    const domus_nats_stream_get *get = domus_asked(stack, &domus_nats_stream_get_type);

    if (get == NULL)
        return -ECANCELED;
    return domi_js_ask_for_message(stack, js, get->sequence, get->subject, then);
}

static int reply_with_message_of_stream(domus_stack *stack, domi_js *js, const domus_answer *answer)
{
    domus_nats_stream_message message;
    int error = domi_js_mark_unopened_if_stream_is_gone(
        js, domi_js_read_message_of_answer(answer, &message));

    if (error != 0)
        return error;
    error = domus_reply(stack, &domus_nats_stream_message_type, &message);
    if (error != 0)
        domus_slice_free(message.bytes);
    return error;
}

DOMUS_SEQUENCE(serve_get, char)
{
    domi_js *js = self;

    DOMUS_BEGIN;
    {
        int error = check_stream_get(message);
        if (error != 0)
            return error;
    }
    DOMI_JS_AWAIT_OPEN(stack, js, then, answer);
    DOMUS_AWAIT(ask_server_for_message_of_get(stack, js, then));
    return reply_with_message_of_stream(stack, js, answer);
    DOMUS_END;
}

/* --- purging the stream ----------------------------------------------------------------------- */

static int check_stream_purge(const domus_nats_stream_purge *purge)
{
    if (purge == NULL) /* `purge` is not NULL in the first turn of a sequence */
        return -EINVAL;
    size_t size = strnlen(purge->subject, sizeof purge->subject);
    if (purge->below > INT64_MAX || purge->keep > INT64_MAX ||
        (purge->below != 0 && purge->keep != 0) || size > DOMUS_NATS_FILTER_MAX ||
        (size != 0 && !domi_js_is_valid_subject(purge->subject, size, true)))
        return -EINVAL;
    return 0;
}

static int ask_server_to_purge(domus_stack *stack, const domi_js *js, domus_resumed *then)
{
    const domus_nats_stream_purge *purge = domus_asked(stack, &domus_nats_stream_purge_type);
    domus_slice body = no_bytes;

    if (purge == NULL)
        return -ECANCELED;
    int error = domi_js_write_json_object(
        &body, "{s:s*, s:I, s:I}", "filter", purge->subject[0] != '\0' ? purge->subject : NULL,
        "seq", (json_int_t)purge->below, "keep", (json_int_t)purge->keep);
    if (error != 0)
        return error;
    return domi_js_ask_server(stack, js->client, body, then, "$JS.API.STREAM.PURGE.%s", js->stream);
}

static int reply_with_purged_count(domus_stack *stack, domi_js *js, const domus_answer *answer)
{
    domus_nats_stream_count count;
    json_t *json = NULL;
    int error = domi_js_mark_unopened_if_stream_is_gone(
        js, domi_js_read_api_answer(answer, DOMUS_NATS_ANSWER_MAX, &json));

    if (error != 0)
        return error;
    error = domi_js_get_number(json, "purged", &count.count);
    json_decref(json);
    return error == 0 ? domus_reply(stack, &domus_nats_stream_count_type, &count) : error;
}

DOMUS_SEQUENCE(serve_purge, char)
{
    domi_js *js = self;

    DOMUS_BEGIN;
    {
        int error = check_stream_purge(message);
        if (error != 0)
            return error;
    }
    DOMI_JS_AWAIT_OPEN(stack, js, then, answer);
    DOMUS_AWAIT(ask_server_to_purge(stack, js, then));
    return reply_with_purged_count(stack, js, answer);
    DOMUS_END;
}

/* --- status and removal of the stream --------------------------------------------------------- */

static int reply_with_stream_status(domus_stack *stack, domi_js *js, const domus_answer *answer)
{
    domus_nats_stream_status status;
    int error =
        domi_js_mark_unopened_if_stream_is_gone(js, domi_js_read_stream_status(answer, &status));

    return error == 0 ? domus_reply(stack, &domus_nats_stream_status_type, &status) : error;
}

DOMUS_SEQUENCE(serve_look, char)
{
    domi_js *js = self;

    DOMUS_BEGIN;
    DOMI_JS_AWAIT_OPEN(stack, js, then, answer);
    DOMUS_AWAIT(domi_js_ask_server(stack, js->client, no_bytes, then, "$JS.API.STREAM.INFO.%s",
                                   js->stream));
    return reply_with_stream_status(stack, js, answer);
    DOMUS_END;
}

DOMUS_SEQUENCE(serve_remove, char)
{
    domi_js *js = self;

    DOMUS_BEGIN;
    js->is_open = false;
    DOMUS_AWAIT(domi_js_ask_server(stack, js->client, no_bytes, then, "$JS.API.STREAM.DELETE.%s",
                                   js->stream));
    return domi_js_reply_done_or_error(stack, answer);
    DOMUS_END;
}

/* --- the actor -------------------------------------------------------------------------------- */

static void free_stream_config_at_stop(domus_stack *stack, void *self)
{
    domi_js *js = self;

    (void)stack;
    domus_slice_free(js->create);
}

/* Reset the actor's state for a restart; the configuration of the stream stays. */
static int mark_stream_unopened_at_restart(domus_stack *stack, void *self, int error)
{
    domi_js *js = self;

    (void)stack, (void)error;
    js->is_open = false;
    return 0;
}

static const domus_on rows[] = {
    DOMUS_ON(&domus_nats_stream_publish_type, serve_publish),
    DOMUS_ON(&domus_nats_stream_get_type, serve_get),
    DOMUS_ON(&domus_nats_stream_purge_type, serve_purge),
    DOMUS_ON(&domus_nats_stream_look_type, serve_look),
    DOMUS_ON(&domus_nats_stream_remove_type, serve_remove),
    {.type = NULL},
};

static const domus_behaviour stream = {
    .name = "nats_stream",
    .kind = DOMUS_STATE,
    .state_size = sizeof(domi_js),
    .on = rows,
    .on_stop = free_stream_config_at_stop,
    .on_restart = mark_stream_unopened_at_restart,
};

int domus_nats_stream_open(domus_stack *stack, const domus_nats_stream_options *options,
                           domus_address *ret_stream)
{
    domi_js js = {.client = options->client, .reads_any = options->reads_any};

    if (!domi_js_is_valid_stream_name(options->name) || options->client.house == NULL)
        return -EINVAL;
    (void)snprintf(js.stream, sizeof js.stream, "%s", options->name);
    int error = options->create != NULL
                    ? domi_js_write_stream_config(js.stream, options->create, &js.create)
                    : 0;
    if (error == 0)
        error = domus_spawn(stack, &stream, &js, ret_stream);
    if (error != 0)
        domus_slice_free(js.create);
    return error;
}

int domus_nats_stream_publish_make(const char *subject, const void *data, size_t size,
                                   domus_nats_stream_publish *ret_publish)
{
    domus_nats_stream_publish publish = {.expected_last = DOMUS_NATS_ANY_SEQUENCE,
                                         .expected_last_of_subject = DOMUS_NATS_ANY_SEQUENCE};
    int error = domus_nats_set_subject(&publish.message, subject);

    if (error == 0)
        error = domus_nats_set_payload(&publish.message, data, size);
    if (error != 0) {
        domus_nats_publish_free(&publish.message);
        return error;
    }
    *ret_publish = publish;
    return 0;
}

int domus_nats_stream_send(domus_stack *stack, domus_address address, const char *subject,
                           const void *data, size_t size, uint64_t timeout_ns, domus_resumed *then)
{
    domus_nats_stream_publish publish;
    int error = domus_nats_stream_publish_make(subject, data, size, &publish);

    if (error != 0)
        return error;
    int result = domus_ask_within(stack, address, &domus_nats_stream_publish_type, &publish,
                                  timeout_ns, then);
    if (result < 0)
        domus_nats_publish_free(&publish.message);
    return result;
}
