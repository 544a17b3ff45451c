/* A user's program with libdomus-http2: the stage of HTTP/2 takes itself out of a connection that
 * begins in another way, and the stage behind it gets all bytes. It returns 0 if that is so. */
#include <domus/http2.h>
#include <domus/stage_kit.h>

static const domus_pipeline_stage stages[] = {
    {&domus_http2_stage, NULL}, {&domus_line_stage, NULL}, {NULL, NULL}};

int main(void)
{
    domus_pipeline pipeline = {0};
    domus_stage_kit *kit = NULL;
    domus_stage_message message;

    pipeline.stages = stages;
    if (domus_stage_kit_new(&pipeline, &kit) != 0 || domus_stage_kit_feed(kit, "PRIOR\n", 6) != 0 ||
        domus_stage_kit_next(kit, &message) != 1)
        return 1;
    const domus_packet *line = (const domus_packet *)message.payload;
    int result = domus_slice_equals(line->bytes, "PRIOR", 5) ? 0 : 2;
    domus_stage_kit_free(kit);
    return result;
}
