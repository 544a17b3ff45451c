/* Fuzzes a client of HTTP/2 in a test kit. An input is the frames of a server, behind SETTINGS: for
 * each frame a byte for its type, one for its flags, one for its stream and one for its size, and
 * then as many bytes as its size. The first byte of the input chooses the limits, whether bodies
 * come in pieces, and how and when the connection ends. Whatever comes, each request (some have no
 * deadline) gets one answer or error, and no channel is left. */
#include "tests/fuzz/support/fuzz.h"

#include <domus/await.h>
#include <domus/domus.h>
#include <domus/http2_client.h>
#include <domus/http_client.h>
#include <domus/testkit_net.h>

#include <stdlib.h>
#include <string.h>

#define AT         "10.0.0.1:80"
#define SECOND     UINT64_C(1000000000)
#define FRAME_MAX  (9 + 255)
#define ASKS       6u
#define KEPT_MAX   8u   /* most connections that stay open from one input to the next */
#define INPUTS_MAX 256u /* inputs that one kit handles; its peers are freed only with the kit */

static uint32_t open_channels, outcomes;

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

/* --- the asker -------------------------------------------------------------------------------- */

static const domus_type go_type = {.name = "go", .size = sizeof(uint32_t)};
static domus_address client;

typedef struct go_frame {
    domus_http_request request;
    uint64_t within_ns; /* deadline of the request in nanoseconds; 0: no deadline */
    domus_body body;
    bool ended;
} go_frame;

static domus_slice make_slice_of_text(const char *text)
{
    domus_slice made;

    domt_fuzz_abort_unless(domus_slice_copy(text, strlen(text), &made) == 0);
    return made;
}

/* Check that no byte within a field of a response can end the field's line. */
static void check_fields_of_response(domus_slice fields)
{
    domus_http_line line;
    uint32_t at = 0;

    while (domus_http_next(fields, &at, &line)) {
        const char *value = domus_slice_data(line.value);
        for (uint32_t i = 0; i < line.value.size; i++)
            domt_fuzz_abort_unless(value[i] != '\r' && value[i] != '\n' && value[i] != '\0');
    }
    domt_fuzz_abort_unless(at == fields.size);
}

DOMUS_SEQUENCE(go, go_frame)
{
    static const domus_http_method methods[ASKS] = {DOMUS_HTTP_GET,  DOMUS_HTTP_HEAD,
                                                    DOMUS_HTTP_POST, DOMUS_HTTP_GET,
                                                    DOMUS_HTTP_GET,  DOMUS_HTTP_POST};

    DOMUS_BEGIN;
    {
        uint32_t number = *(const uint32_t *)message;
        frame->request = (domus_http_request){.method = (uint8_t)methods[number],
                                              .target = make_slice_of_text("http://10.0.0.1/a")};
        if (methods[number] == DOMUS_HTTP_POST)
            frame->request.body = make_slice_of_text("some bytes");
        /* The last but one request has a wrong field, so it cannot be encoded. */
        if (number == ASKS - 2)
            frame->request.fields = make_slice_of_text("x y: z\r\n");
        frame->within_ns = number % 3 == 0 ? 0 : 5 * SECOND;
    }
    DOMUS_AWAIT(domus_ask_within(stack, client, &domus_http_request_type, &frame->request,
                                 frame->within_ns, then));
    if (answer->error == 0) {
        check_fields_of_response(((const domus_http_response *)answer->payload)->fields);
        frame->body = ((const domus_http_response *)answer->payload)->stream;
    }
    while (frame->body.number != 0 && !frame->ended) {
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        frame->ended = answer->error != 0 || answer->type != &domus_piece_type ||
                       ((const domus_piece *)answer->payload)->last;
    }
    outcomes++;
    return 0;
    DOMUS_END;
}

static const domus_behaviour asking = {
    .name = "asks",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){DOMUS_ON(&go_type, go), {NULL, NULL, 0}}};

/* --- the client ------------------------------------------------------------------------------- */

static const domus_http2_client_options usual = {.prior_knowledge = true};
static const domus_http2_client_options small = {.prior_knowledge = true,
                                                 .streams_max = 2,
                                                 .head_max = 1024,
                                                 .fields_max = 4,
                                                 .stream_window = 1024,
                                                 .controls_max = 20};
static const domus_http_options whole = {.role = DOMUS_ROLE_CLIENT, .origin_form = true};
static const domus_http_options pieces = {
    .role = DOMUS_ROLE_CLIENT, .origin_form = true, .streams = true, .body_max = UINT64_MAX};

static domus_pipeline_stage stages[4][3];
static domus_pipeline pipelines[4];
static domus_behaviour behaviours[4];
static domus_testkit *kits[4];
static domus_peer_listener *listeners[4];
static domus_address clients[4], askers[4];

/* Free all kits at the end of the program: the leak checker does not find memory whose only pointer
 * is static. */
static void free_all_kits(void)
{
    for (unsigned i = 0; i < 4; i++)
        domus_testkit_free(kits[i]);
}

static void describe_behaviour_of_client(unsigned which)
{
    stages[which][0] =
        (domus_pipeline_stage){&domus_http2_client_stage, which % 2 == 0 ? &usual : &small};
    stages[which][1] = (domus_pipeline_stage){&domus_http_stage, which < 2 ? &whole : &pieces};
    pipelines[which] = (domus_pipeline){
        .stages = stages[which], .encodes = domus_http_client_encodes, .inflight_max = 1};
    behaviours[which] = (domus_behaviour){.name = "fuzz",
                                          .kind = DOMUS_CHANNELS,
                                          .pipeline = &pipelines[which],
                                          .on_open = {count_opened_channel, 0},
                                          .on_close = {count_closed_channel, 0}};
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
        kits[which] = NULL;
    }
    if (!frees)
        frees = atexit(free_all_kits) == 0;
    describe_behaviour_of_client(which);
    domus_config_init(&config);
    config.system.threads = 1;
    domt_fuzz_abort_unless(domus_testkit_new(&config, 1, error, sizeof error, &kits[which]) == 0);
    domus_system *system = domus_testkit_system(kits[which]);
    const domus_http_client_options options = {
        .connection = &behaviours[which], .connections_max = 2, .backoff_ns = SECOND / 1000};
    domt_fuzz_abort_unless(domus_peer_listen(kits[which], AT, 0, &listeners[which]) == 0);
    domt_fuzz_abort_unless(domus_http_client_open_outside(system, &options, &clients[which]) == 0);
    domt_fuzz_abort_unless(domus_outside_spawn(system, &asking, NULL, &askers[which]) == 0);
    domt_fuzz_abort_unless(domus_testkit_run(kits[which]) == 0);
    return kits[which];
}

/* --- the server ------------------------------------------------------------------------------- */

static void send_frames_of_input(domus_peer *peer, const uint8_t *data, size_t size)
{
    static const char begin[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
    uint8_t frame[FRAME_MAX] = {0};

    (void)domus_peer_send(peer, begin, sizeof begin);
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

static domus_peer *kept[KEPT_MAX];
static unsigned kept_count;

static void end_connection_of_peer(domus_peer *peer, uint8_t how)
{
    if ((how & 4) != 0)
        domus_peer_finish(peer);
    else
        domus_peer_reset(peer);
}

static void end_kept_connections(uint8_t how)
{
    while (kept_count != 0)
        end_connection_of_peer(kept[--kept_count], how);
}

/* Serve each new connection of the client with the frames of the input; connections after the third
 * are accepted and get no frames. */
static void serve_new_connections(domus_testkit *kit, unsigned which, const uint8_t *data,
                                  size_t size)
{
    domus_peer *peer;

    for (unsigned n = 0; domus_peer_accept(listeners[which], SECOND / 100, &peer) == 0; n++) {
        if (n < 3) {
            domt_fuzz_abort_unless(domus_testkit_advance(kit, SECOND / 100) == 0);
            send_frames_of_input(peer, data + 1, size - 1);
            domt_fuzz_abort_unless(domus_testkit_advance(kit, SECOND / 100) == 0);
        }
        if ((data[0] & 8) != 0 && size > 1 && kept_count != KEPT_MAX)
            kept[kept_count++] = peer;
        else
            end_connection_of_peer(peer, data[0]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    unsigned which = data[0] % 4;
    domus_testkit *kit = kit_for_choice(which);
    uint32_t before = open_channels;
    client = clients[which];
    outcomes = 0;
    for (uint32_t i = 0; i < ASKS; i++)
        domt_fuzz_abort_unless(
            domus_outside_notice(domus_testkit_system(kit), askers[which], &go_type, &i) == 0);
    domt_fuzz_abort_unless(domus_testkit_run(kit) == 0);
    serve_new_connections(kit, which, data, size);
    domt_fuzz_abort_unless(domus_testkit_advance(kit, 40 * SECOND) == 0);
    end_kept_connections(data[0]);
    serve_new_connections(kit, which, data, 1);
    domt_fuzz_abort_unless(domus_testkit_advance(kit, 80 * SECOND) == 0);
    domt_fuzz_abort_unless(outcomes == ASKS);
    domt_fuzz_abort_unless(open_channels == before);
    return 0;
}
