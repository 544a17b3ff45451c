/* /json: a small answer that is made for each request. */
#include "web.h"

#include <inttypes.h>

static int serve_json(domus_stack *stack, void *self, const void *payload)
{
    domus_appender text = {0};
    domus_slice body;

    (void)self, (void)payload;
    (void)domus_append_text(&text, "{\"message\":\"hello\",\"threads\":%" PRIu32,
                            domus_system_threads(web_system));
    (void)domus_append_text(&text, ",\"requests\":%" PRIu64 "}\n", web_count_of_requests());
    int error = domus_append_end(&text, &body);
    return error != 0 ? error : web_answer_200_with_uncached_body(stack, WEB_JSON, body);
}

const domus_call web_serve_json = {serve_json, 0};
