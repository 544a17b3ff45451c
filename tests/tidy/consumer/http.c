/* A user's program with libdomus-http: it decodes a request and encodes a response, and returns
 * 0 if the bytes are right. */
#include <domus/http.h>
#include <domus/stage_kit.h>

#include <string.h>

static const char asked[] = "GET /a?b HTTP/1.1\r\nHost: c\r\n\r\n";
static const char answered[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
                               "Content-Type: text/plain\r\n\r\nhi";

int main(void)
{
    domus_http_options options = {DOMUS_ROLE_SERVER};
    domus_pipeline_stage stages[2] = {{&domus_http_stage, NULL}, {NULL, NULL}};
    domus_pipeline pipeline = {0};
    domus_stage_kit *kit = NULL;
    domus_stage_message message;
    domus_http_text hi = {200, "text/plain", "hi"};
    size_t size = 0;

    options.no_date = true;
    stages[0].options = &options;
    pipeline.stages = stages;
    if (domus_stage_kit_new(&pipeline, &kit) != 0 ||
        domus_stage_kit_feed(kit, asked, sizeof asked - 1) != 0 ||
        domus_stage_kit_next(kit, &message) != 1)
        return 1;
    const domus_http_request *request = (const domus_http_request *)message.payload;
    if (!domus_slice_equals(domus_http_path(request), "/a", 2) ||
        domus_stage_kit_encode(kit, message.id, &domus_http_text_type, &hi) != 0)
        return 2;
    const char *output = domus_stage_kit_output(kit, &size);
    int result = size == sizeof answered - 1 && memcmp(output, answered, size) == 0 ? 0 : 3;
    domus_stage_kit_free(kit);
    return result;
}
