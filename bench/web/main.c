/* The domus side of `bench web`: an HTTP service with a router, static files and a WebSocket that
 * echoes, as its users write it. The environment variable WEB_ROOT names the directory of the
 * files. WEB_KEY names a file with a certificate and its key: then it speaks TLS alone. */
#include <domus/await.h>
#include <domus/domus.h>
#include <domus/http_files.h>
#include <domus/http_router.h>
#include <domus/main.h>
#include <domus/observe.h>
#include <domus/tls.h>
#include <domus/websocket.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOME, MEMORY, FILES, SOCKET };

static const domus_http_route routes[] = {
    {DOMUS_HTTP_ON(GET), "/", HOME},
    {DOMUS_HTTP_ON(GET), "/memory", MEMORY},
    {DOMUS_HTTP_ON(GET), "/files/{path*}", FILES},
    {DOMUS_HTTP_ON(GET), "/socket", SOCKET},
    {0, NULL, 0},
};

/* the system that runs this service; constant once the program has started */
static const domus_system *system_of_service;
/* the static files of this service; constant once the program has started */
static domus_http_files files;

/* --- the directory of the files, which an actor opens ----------------------------------------- */

static const domus_type open_type = {.name = "open the root"};

DOMUS_SEQUENCE(open_root, char)
{
    DOMUS_BEGIN;
    DOMUS_AWAIT(domus_file_open(stack, NULL, getenv("WEB_ROOT"),
                                DOMUS_FILE_READ | DOMUS_FILE_DIRECTORY, 0, then));
    if (answer->error == 0 && domus_take_answer(stack, answer) == 0)
        return domus_reply(stack, answer->type, answer->payload);
    return answer->error != 0 ? answer->error : -ENOMEM;
    DOMUS_END;
}

static const domus_behaviour opener = {
    .name = "opener", .on = (const domus_on[]){DOMUS_ON(&open_type, open_root), {NULL, NULL, 0}}};

static int open_directory_of_files_to_serve(domus_system *system)
{
    domus_outside_reply reply = {.buffer = &files.root, .size = sizeof files.root};
    domus_address address;
    int error = domus_outside_spawn(system, &opener, NULL, &address);

    if (error == 0)
        error = domus_outside_ask(system, address, &open_type, NULL, 0, &reply);
    return error != 0 ? error : domus_outside_stop(system, address);
}

/* --- the service ------------------------------------------------------------------------------ */

/* Answer a request for /memory with the bytes of memory that the library counts as its own. */
static int answer_with_own_memory(domus_stack *stack)
{
    domus_http_response response = {.status = 200, .media = "text/plain"};
    domus_memory memory;
    char text[24];

    domus_system_memory(system_of_service, &memory);
    int size = snprintf(text, sizeof text, "%" PRIu64, memory.own_bytes);
    int error = domus_slice_copy(text, (size_t)size, &response.body);
    return error != 0 ? error : domus_reply(stack, &domus_http_response_type, &response);
}

static const domus_pipeline socket_pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_websocket_stage, NULL}, {NULL, NULL}}};
static const domus_websocket_service socket_service = {.pipeline = &socket_pipeline};

static int echo_message(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    return domus_channel_send(stack, domus_channel_running(stack), &domus_websocket_message_type,
                              payload);
}

static int answer_request_by_its_route(domus_stack *stack, void *self, const void *payload)
{
    static const domus_http_text home = {200, "text/plain", "hello, world\n"};
    domus_http_match match = domus_http_find_route(routes, payload);

    (void)self;
    if (match.route == NULL) {
        domus_http_response response;
        int error = domus_http_unrouted(&match, &response);
        return error != 0 ? error : domus_reply(stack, &domus_http_response_type, &response);
    }
    if (match.route->id == FILES)
        return domus_http_serve(stack, &files, domus_http_route_value(&match, "path"));
    if (match.route->id == SOCKET)
        return domus_websocket_accept(stack, payload, &socket_service, NULL);
    return match.route->id == HOME ? domus_reply(stack, &domus_http_text_type, &home)
                                   : answer_with_own_memory(stack);
}

static const domus_pipeline web = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, NULL}, {NULL, NULL}}};
static const domus_on_peer on_peer[] = {
    {.type = &domus_http_request_type, .handle = answer_request_by_its_route},
    {.type = &domus_websocket_message_type, .handle = echo_message},
    {.type = NULL}};
static const domus_behaviour service = {
    .name = "web", .kind = DOMUS_CHANNELS, .pipeline = &web, .on_peer = on_peer};

/* the options of the TLS stage; constant once the program has started */
static domus_tls_options secure;
static const domus_pipeline secure_web = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_tls_stage, &secure}, {&domus_http_stage, NULL}, {NULL, NULL}}};
static const domus_behaviour secure_service = {
    .name = "web", .kind = DOMUS_CHANNELS, .pipeline = &secure_web, .on_peer = on_peer};

static int make_tls_options(void)
{
    const domus_tls_certificate certificate = {.cert_file = getenv("WEB_KEY")};
    const domus_tls_settings settings = {
        .role = DOMUS_ROLE_SERVER, .certificates = &certificate, .certificates_count = 1};
    char error[256];
    int result = domus_tls_new(&settings, error, sizeof error, &secure.tls);

    if (result != 0)
        fprintf(stderr, "web: %s\n", error);
    return result;
}

static int start_services(domus_system *system, void *argument)
{
    bool is_secure = getenv("WEB_KEY") != NULL;
    int error = getenv("WEB_ROOT") != NULL ? open_directory_of_files_to_serve(system) : 0;

    system_of_service = system;
    if (error == 0 && is_secure)
        error = make_tls_options();
    return error != 0
               ? error
               : domus_main_serve(system, argument, is_secure ? &secure_service : &service, NULL);
}

static void end_services(domus_system *system, void *argument)
{
    (void)system, (void)argument;
    domus_file_close(files.root);
    domus_tls_free(secure.tls);
}

int main(int argc, char **argv)
{
    static const domus_program program = {.name = "web",
                                          .start = start_services,
                                          .end = end_services,
                                          .argument = "web",
                                          .observe = &domus_observe_front};

    return domus_main(argc, argv, &program);
}
