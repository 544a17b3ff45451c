/* A stranger's program with libdomus-http2: a stage that is put before another one gets the preface
 * of HTTP/2, and answers it with its SETTINGS. It returns 0 if that is so. */
#include <domus/http2.h>
#include <domus/stage_kit.h>

static const domus_pipeline_stage stages[] = {
    {&domus_http2_stage, NULL}, {&domus_line_stage, NULL}, {NULL, NULL}};

int main(void)
{
    domus_pipeline pipeline = {0};
    domus_stage_kit *kit = NULL;
    size_t size = 0;

    pipeline.stages = stages;
    if (domus_stage_kit_new(&pipeline, &kit) != 0 ||
        domus_stage_kit_feed(kit, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33) != 0)
        return 1;
    const char *output = domus_stage_kit_output(kit, &size);
    int result = size >= 9 && output[3] == 4 ? 0 : 2; /* the type of SETTINGS */
    domus_stage_kit_free(kit);
    return result;
}
