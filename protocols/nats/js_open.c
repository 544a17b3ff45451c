/* How an actor of JetStream reaches its stream: it asks the client, and before its first request it
 * opens the stream. */
#include "protocols/nats/js.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int domi_js_ask_server(domus_stack *stack, domus_address client, domus_slice body,
                       domus_resumed *then, const char *subject, ...)
{
    char text[DOMUS_NATS_SUBJECT_MAX + 1];
    domus_nats_publish request = {.payload = body};
    va_list arguments;

    va_start(arguments, subject);
    int size = vsnprintf(text, sizeof text, subject, arguments);
    va_end(arguments);
    int error = size > 0 && (size_t)size < sizeof text ? 0 : -EINVAL;
    if (error == 0)
        error = domus_nats_set_subject(&request, text);
    if (error == 0)
        error = domus_ask(stack, client, &domus_nats_request_type, &request, then);
    if (error < 0)
        domus_nats_publish_free(&request);
    return error;
}

int domi_js_ask_server_to_open_stream(domus_stack *stack, const domi_js *js, domus_resumed *then)
{
    domus_slice config = {NULL, 0, 0};

    /* The barrier lets only one conversation open the stream; later conversations find it open. If
     * this conversation has raised a barrier already, the call fails, which does no harm. */
    (void)domus_barrier(stack);
    if (js->create.size == 0)
        return domi_js_ask_server(stack, js->client, config, then, "$JS.API.STREAM.INFO.%s",
                                  js->stream);
    int error = domus_slice_keep(js->create, &config);
    if (error != 0)
        return error;
    return domi_js_ask_server(stack, js->client, config, then, "$JS.API.STREAM.CREATE.%s",
                              js->stream);
}

int domi_js_mark_stream_open_by_answer(domi_js *js, const domus_answer *answer)
{
    domus_nats_stream_status status;
    int error = domi_js_read_stream_status(answer, &status);

    /* A stream that was there before may still exist although the server cannot tell, because the
     * servers have no common leader at the moment. So the stream counts as open, and the request
     * itself is tried. */
    if (js->was_open && (error == -EAGAIN || error == -ETIMEDOUT)) {
        js->is_open = true;
        return 0;
    }
    if (error != 0)
        return error;
    js->is_open = js->was_open = true;
    js->is_direct = status.allow_direct && js->reads_any;
    return 0;
}

int domi_js_mark_unopened_if_stream_is_gone(domi_js *js, int error)
{
    if (error == -ENXIO || error == -ECONNREFUSED)
        js->is_open = false;
    return error;
}

int domi_js_reply_done_or_error(domus_stack *stack, const domus_answer *answer)
{
    json_t *json = NULL;
    bool is_done = false;
    int error = domi_js_read_api_answer(answer, DOMUS_NATS_ANSWER_MAX, &json);

    if (error != 0)
        return error;
    error = domi_js_get_flag(json, "success", &is_done);
    json_decref(json);
    if (error != 0)
        return error;
    return is_done ? domus_reply(stack, &domus_nats_done_type, NULL) : -EPROTO;
}
