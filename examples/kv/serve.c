/* Commands that the channel answers, because they need no key. */
#include "kv.h"

int kv_serve_ping(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;

    (void)self;
    if (command->count > 2)
        return kv_answer_error(stack, "ERR wrong number of arguments for 'ping' command");
    if (command->count == 1)
        return kv_answer_or_gather_answer(stack, &domus_resp_simple_type,
                                          &(domus_resp_simple){"PONG"});
    return kv_serve_echo(stack, self, payload);
}

int kv_serve_echo(domus_stack *stack, void *self, const void *payload)
{
    domus_slice text = domus_resp_argument(payload, 1);

    (void)self;
    return kv_answer_bytes_as_bulk_string(stack,
                                          (domus_resp_bytes){domus_slice_data(text), text.size});
}

int kv_serve_quit(domus_stack *stack, void *self, const void *payload)
{
    int error = kv_answer_ok(stack);

    (void)self, (void)payload;
    (void)domus_channel_close(stack, domus_channel_running(stack));
    return error;
}

int kv_serve_select(domus_stack *stack, void *self, const void *payload)
{
    domus_slice text = domus_resp_argument(payload, 1);
    int64_t index;

    (void)self;
    if (!kv_read_integer_in_text(domus_slice_data(text), text.size, &index))
        return kv_answer_error(stack, "ERR value is not an integer or out of range");
    return index == 0 ? kv_answer_ok(stack)
                      : kv_answer_error(stack, "ERR DB index is out of range");
}

/* The first line of an HTTP request. A foreign web page can make a browser on this machine send
 * such a request with any bytes in its body, and they would run as commands; so the connection
 * ends. */
int kv_close_connection_that_speaks_http(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return domus_channel_close(stack, domus_channel_running(stack));
}
