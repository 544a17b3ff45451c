/* The domus side of `bench web`: an HTTP service with a router, as its users write it. */
#include <domus/domus.h>
#include <domus/http_router.h>
#include <domus/main.h>

#include <inttypes.h>
#include <stdio.h>

enum { HOME, MEMORY };

static const domus_http_route routes[] = {
    {DOMUS_HTTP_ON(GET), "/", HOME},
    {DOMUS_HTTP_ON(GET), "/memory", MEMORY},
    {0, NULL, 0},
};

static const domus_system *system_of_service; /* constant once the program has started */

/* Answer with the bytes of memory that the library counts as its own. */
static int answer_memory(domus_stack *stack)
{
    domus_http_response response = {.status = 200, .media = "text/plain"};
    domus_memory memory;
    char text[24];

    domus_system_memory(system_of_service, &memory);
    int size = snprintf(text, sizeof text, "%" PRIu64, memory.own_bytes);
    int error = domus_slice_copy(text, (size_t)size, &response.body);
    return error != 0 ? error : domus_reply(stack, &domus_http_response_type, &response);
}

static int answer(domus_stack *stack, void *self, const void *payload)
{
    static const domus_http_text home = {200, "text/plain", "hello, world\n"};
    domus_http_match match = domus_http_find_route(routes, payload);

    (void)self;
    if (match.route == NULL) {
        domus_http_response response;
        int error = domus_http_unrouted(&match, &response);
        return error != 0 ? error : domus_reply(stack, &domus_http_response_type, &response);
    }
    return match.route->id == HOME ? domus_reply(stack, &domus_http_text_type, &home)
                                   : answer_memory(stack);
}

static const domus_pipeline web = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, NULL}, {NULL, NULL}}};
static const domus_behaviour service = {
    .name = "web",
    .kind = DOMUS_CHANNELS,
    .pipeline = &web,
    .on_peer = (const domus_on_peer[]){{.type = &domus_http_request_type, .handle = answer},
                                       {.type = NULL}}};

static int start(domus_system *system, void *argument)
{
    system_of_service = system;
    return domus_main_serve(system, argument, &service, NULL);
}

int main(int argc, char **argv)
{
    static const domus_program program = {.name = "web", .start = start, .argument = "web"};

    return domus_main(argc, argv, &program);
}
