/* A user's program with libdomus-nats: it decodes a message and encodes one, and returns 0 if the
 * bytes are right. */
#include <domus/nats.h>
#include <domus/stage_kit.h>

#include <string.h>

static const domus_pipeline_stage stages[] = {{&domus_nats_stage, NULL}, {NULL, NULL}};

int main(void)
{
    static const char wanted[] = "PUB answers 5\r\nhello\r\n";
    domus_pipeline pipeline;
    domus_stage_kit *kit = NULL;
    domus_stage_message message;
    domus_nats_publish publish;
    size_t size = 0;

    memset(&pipeline, 0, sizeof pipeline);
    memset(&publish, 0, sizeof publish);
    pipeline.stages = stages;
    if (domus_stage_kit_new(&pipeline, &kit) != 0 ||
        domus_stage_kit_feed(kit, "MSG a 1 answers 5\r\nhello\r\n", 26) != 0 ||
        domus_stage_kit_next(kit, &message) != 1)
        return 1;
    const domus_nats_message *came = (const domus_nats_message *)message.payload;
    domus_slice payload = domus_nats_payload(came);
    if (domus_nats_set_reply_of(&publish, came) != 0 ||
        domus_nats_set_payload(&publish, domus_slice_data(payload), payload.size) != 0 ||
        domus_stage_kit_encode(kit, DOMUS_NO_ID, &domus_nats_publish_type, &publish) != 0)
        return 2;
    const char *output = domus_stage_kit_output(kit, &size);
    int result = size == sizeof wanted - 1 && memcmp(output, wanted, size) == 0 ? 0 : 3;
    domus_stage_kit_free(kit);
    return result;
}
