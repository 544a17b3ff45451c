/* Fuzzes a server of HTTP/2 in a test kit. An input is the frames of a peer behind a correct
 * preface: for each frame a byte for its type, one for its flags, one for its stream and one for
 * its size, and then as many bytes as its size. The first byte of the input chooses the limits, and
 * whether bodies come in pieces. Whatever comes, the next connection is served. */
#include "tests/fuzz/support/fuzz.h"

#include <domus/domus.h>
#include <domus/http.h>
#include <domus/http2.h>
#include <domus/testkit_net.h>
#include <domus/websocket.h>

#include <stdlib.h>
#include <string.h>

#define AT        "127.0.0.1:80"
#define SECOND    UINT64_C(1000000000)
#define FRAME_MAX (9 + 255)

/* --- the service ------------------------------------------------------------------------------ */

static uint32_t open_channels;

static int count_opened_channel(domus_stack *stack, void *self, const void *payload)
{
    open_channels++;
    return 0;
}

static int count_closed_channel(domus_stack *stack, void *self, const void *payload)
{
    open_channels--;
    return 0;
}

static const domus_pipeline socket_pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_websocket_stage, NULL}, {NULL, NULL}}};
static const domus_websocket_service service = {.pipeline = &socket_pipeline};

static int send_websocket_message_back(domus_stack *stack, void *self, const void *payload)
{
    return domus_channel_send(stack, domus_channel_running(stack), &domus_websocket_message_type,
                              payload);
}

/* Check that no byte of a request's target ends a line, and answer with the target, with a
 * WebSocket or with an error. */
static int answer_request_with_target(domus_stack *stack, void *self, const void *payload)
{
    const domus_http_request *request = payload;
    domus_http_response response = {.status = 200, .media = "text/plain"};
    const char *target = domus_slice_data(request->target);

    for (uint32_t i = 0; i < request->target.size; i++)
        domt_fuzz_abort_unless(target[i] > ' ' && target[i] != 0x7f);
    if (request->upgrade && request->target.size % 3 != 0)
        return domus_websocket_accept(stack, request, &service, NULL);
    if (request->target.size % 7 == 6)
        return -ENOENT;
    domt_fuzz_abort_unless(domus_slice_keep(request->target, &response.body) == 0);
    return domus_reply(stack, &domus_http_response_type, &response);
}

static const domus_on_peer rows[] = {
    {.type = &domus_http_request_type, .handle = answer_request_with_target},
    {.type = &domus_websocket_message_type, .handle = send_websocket_message_back},
    {.type = NULL}};
static const domus_http2_options small = {.streams_max = 3,
                                          .head_max = 1024,
                                          .fields_max = 4,
                                          .stream_window = 1024,
                                          .resets_max = 10,
                                          .controls_max = 20,
                                          .websockets = true};
static const domus_http_options pieces = {.streams = true};

#define PIPELINE(of_http2, of_http)                                                                \
    {                                                                                              \
        .stages = (const domus_pipeline_stage[])                                                   \
        {                                                                                          \
            {&domus_http2_stage, of_http2}, {&domus_http_stage, of_http},                          \
            {                                                                                      \
                NULL, NULL                                                                         \
            }                                                                                      \
        }                                                                                          \
    }
static const domus_pipeline pipelines[] = {PIPELINE(NULL, NULL), PIPELINE(&small, NULL),
                                           PIPELINE(NULL, &pieces), PIPELINE(&small, &pieces)};
static domus_behaviour behaviours[4];
static domus_testkit *kits[4];

#define INPUTS_MAX 256u /* inputs that one kit handles; its peers are freed only with the kit */

/* Free all kits at the end of the program: the leak checker does not find memory whose only pointer
 * is static. */
static void free_all_kits(void)
{
    for (unsigned i = 0; i < 4; i++)
        domus_testkit_free(kits[i]);
}

static domus_testkit *kit_for_choice(unsigned which)
{
    static unsigned inputs[4];
    static bool frees;
    domus_config config;
    char error[256];

    if (kits[which] != NULL && ++inputs[which] % INPUTS_MAX != 0)
        return kits[which];
    if (kits[which] != NULL) {
        domt_fuzz_abort_unless(domus_testkit_stop(kits[which]) == 0);
        domus_testkit_free(kits[which]);
    }
    if (!frees)
        frees = atexit(free_all_kits) == 0;
    behaviours[which] = (domus_behaviour){.name = "fuzz",
                                          .kind = DOMUS_CHANNELS,
                                          .pipeline = &pipelines[which],
                                          .on_peer = rows,
                                          .on_open = {count_opened_channel, 0},
                                          .on_close = {count_closed_channel, 0}};
    domus_config_init(&config);
    config.system.threads = 1;
    config.connection.address_percent = config.connection.loopback_percent = 100;
    config.listeners = &(domus_listener_config){.name = "web", .address = AT, .backlog = 128};
    config.listener_count = 1;
    domt_fuzz_abort_unless(domus_testkit_new(&config, 1, error, sizeof error, &kits[which]) == 0);
    domt_fuzz_abort_unless(
        domus_serve(domus_testkit_system(kits[which]), "web", &behaviours[which], NULL, NULL) == 0);
    return kits[which];
}

/* --- the peer --------------------------------------------------------------------------------- */

static void send_frames_of_input(domus_peer *peer, const uint8_t *data, size_t size)
{
    static const char begin[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    uint8_t frame[FRAME_MAX] = {0};

    domt_fuzz_abort_unless(domus_peer_send(peer, begin, sizeof begin) == 0);
    while (size >= 4) {
        size_t part = data[3] < size - 4 ? data[3] : size - 4;
        frame[2] = (uint8_t)part;
        frame[3] = data[0] % 17;
        frame[4] = data[1];
        frame[8] = data[2] % 16;
        memcpy(frame + 9, data + 4, part);
        (void)domus_peer_send(peer, frame, 9 + part);
        data += 4 + part;
        size -= 4 + part;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    domus_peer *peer;

    if (size == 0)
        return 0;
    domus_testkit *kit = kit_for_choice(data[0] % 4);
    uint32_t before = open_channels;
    domt_fuzz_abort_unless(domus_peer_connect(kit, AT, NULL, &peer) == 0);
    send_frames_of_input(peer, data + 1, size - 1);
    domt_fuzz_abort_unless(domus_testkit_advance(kit, SECOND / 100) == 0);
    if ((data[0] & 4) != 0)
        domus_peer_finish(peer);
    else
        domus_peer_reset(peer);
    domt_fuzz_abort_unless(domus_testkit_advance(kit, 40 * SECOND) == 0);
    domt_fuzz_abort_unless(open_channels == before);
    return 0;
}
