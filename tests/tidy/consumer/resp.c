/* A user's program with libdomus-resp: it decodes a command and encodes an answer, and returns
 * 0 if the bytes are right. */
#include <domus/resp.h>
#include <domus/stage_kit.h>

static const domus_pipeline_stage stages[] = {{&domus_resp_stage, NULL}, {NULL, NULL}};

int main(void)
{
    domus_pipeline pipeline = {0};
    domus_stage_kit *kit = NULL;
    domus_stage_message message;
    domus_resp_simple pong = {"PONG"};
    size_t size = 0;

    pipeline.stages = stages;
    if (domus_stage_kit_new(&pipeline, &kit) != 0 ||
        domus_stage_kit_feed(kit, "PING\r\n", 6) != 0 || domus_stage_kit_next(kit, &message) != 1)
        return 1;
    const domus_resp_command *command = (const domus_resp_command *)message.payload;
    if (!domus_resp_is(domus_resp_argument(command, 0), "PING") ||
        domus_stage_kit_encode(kit, message.id, &domus_resp_simple_type, &pong) != 0)
        return 2;
    const char *output = domus_stage_kit_output(kit, &size);
    int result = size == 7 && memcmp(output, "+PONG\r\n", 7) == 0 ? 0 : 3;
    domus_stage_kit_free(kit);
    return result;
}
