/* Answers of the observation port, which no browser takes for another type, or keeps. */
#include "protocols/observe/answer.h"

int domi_observe_say(domus_stack *stack, uint16_t status, const char *line)
{
    return domus_reply(stack, &domus_http_text_type,
                       &(domus_http_text){status, DOMI_OBSERVE_PLAIN, line});
}

int domi_observe_reply(domus_stack *stack, domus_http_response *response)
{
    int error = domus_reply(stack, &domus_http_response_type, response);

    if (error != 0)
        domus_http_response_type.release(response);
    return error;
}

int domi_observe_answer(domus_stack *stack, const char *media, domus_slice body)
{
    domus_http_response response = {.status = 200, .media = media, .body = body};
    domus_appender fields = {0};

    (void)domus_http_add(&fields, "X-Content-Type-Options", "nosniff");
    (void)domus_http_add(&fields, "Cache-Control", "no-store");
    int error = domus_append_end(&fields, &response.fields);
    if (error != 0) {
        domus_slice_free(body);
        return error;
    }
    return domi_observe_reply(stack, &response);
}
