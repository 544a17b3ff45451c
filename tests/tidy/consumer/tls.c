/* A user's program with libdomus-tls: it begins a connection as a client, and returns 0 if the
 * first bytes are a record of a handshake. */
#include <domus/pipeline.h>
#include <domus/tls.h>

#include <string.h>

int main(void)
{
    domus_tls_settings settings;
    domus_tls_options options = {NULL, "example.org"};
    domus_pipeline_stage stages[3] = {
        {&domus_tls_stage, NULL}, {&domus_line_stage, NULL}, {NULL, NULL}};
    domus_pipeline pipeline = {0};
    domus_stage_kit *kit = NULL;
    char error[200];
    size_t size = 0;

    memset(&settings, 0, sizeof settings);
    settings.role = DOMUS_ROLE_CLIENT;
    settings.verify = DOMUS_TLS_VERIFY_NONE;
    stages[0].options = &options;
    pipeline.stages = stages;
    if (domus_tls_new(&settings, error, sizeof error, &options.tls) != 0 ||
        domus_stage_kit_new(&pipeline, &kit) != 0)
        return 1;
    const char *output = domus_stage_kit_output(kit, &size);
    int result = size > 5 && output[0] == 22 && output[1] == 3 ? 0 : 2;
    domus_stage_kit_free(kit);
    domus_tls_free(options.tls);
    return result;
}
