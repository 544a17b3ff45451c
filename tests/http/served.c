/* The service of tests/http/served.h, with a handler for each path. */
#include "tests/http/served.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/await.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

domt_served domt_served_now;

/* --- answers ---------------------------------------------------------------------------------- */

static int reply_text(domus_stack *stack, const char *text)
{
    return domus_reply(stack, &domus_http_text_type, &(domus_http_text){200, "text/plain", text});
}

static int reply_with_response(domus_stack *stack, const char *text)
{
    domus_http_response response = {.status = 200, .media = "text/plain"};
    int error = domus_slice_copy(text, strlen(text), &response.body);

    return error != 0 ? error : domus_reply(stack, &domus_http_response_type, &response);
}

/* Returns the number behind the last '/' of a request's path. */
static uint64_t number_in_path(const domus_http_request *request)
{
    char text[64];
    domus_slice path = domus_http_path(request);

    snprintf(text, sizeof text, "%.*s", (int)path.size, domus_slice_data(path));
    return strtoull(strrchr(text, '/') + 1, NULL, 10);
}

typedef struct served_frame {
    domus_body body;
    uint64_t number;
    uint64_t bytes;
    domus_slice piece;
    bool tells;
    bool one;
    bool ended;
} served_frame;

DOMUS_SEQUENCE(sleep_first, served_frame)
{
    DOMUS_BEGIN;
    frame->number = number_in_path(message);
    DOMUS_SLEEP(frame->number * DOMT_SERVED_MS);
    return answer->error != 0 ? answer->error : reply_text(stack, "slept\n");
    DOMUS_END;
}

DOMUS_SEQUENCE(halt, served_frame)
{
    DOMUS_BEGIN;
    frame->number = number_in_path(message);
    DOMUS_SLEEP(100 * DOMT_SERVED_MS);
    ck_assert_int_eq(domus_channel_pause(stack, domus_channel_running(stack)), 0);
    DOMUS_SLEEP(frame->number * DOMT_SERVED_MS);
    ck_assert_int_eq(domus_channel_resume(stack, domus_channel_running(stack)), 0);
    return reply_text(stack, "halted\n");
    DOMUS_END;
}

DOMUS_SEQUENCE(hang, served_frame)
{
    DOMUS_BEGIN;
    DOMUS_SLEEP(3600 * DOMT_SERVED_S);
    return answer->error;
    DOMUS_END;
}

static bool is_path_of_request(const domus_http_request *request, const char *path)
{
    return domus_slice_equals(domus_http_path(request), path, strlen(path));
}

static void count_piece_of_body(served_frame *frame, const domus_answer *answer)
{
    const domus_piece *piece = answer->payload;

    frame->ended = answer->type == &domus_http_trailers_type || piece->last || frame->one;
    if (answer->type == &domus_piece_type)
        frame->bytes += piece->bytes.size;
}

DOMUS_SEQUENCE(count, served_frame)
{
    char text[64];

    DOMUS_BEGIN;
    frame->body = ((const domus_http_request *)message)->stream;
    frame->bytes = ((const domus_http_request *)message)->body.size;
    frame->tells = is_path_of_request(message, "/read");
    frame->one = is_path_of_request(message, "/piece");
    while (frame->body.number != 0 && !frame->ended) {
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        if (answer->error != 0) {
            domt_served_now.read_error = answer->error;
            snprintf(text, sizeof text, "read %s\n", strerrorname_np(-answer->error));
            return frame->tells ? reply_with_response(stack, text) : answer->error;
        }
        count_piece_of_body(frame, answer);
    }
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)frame->bytes);
    return frame->one ? reply_text(stack, "piece\n") : reply_with_response(stack, text);
    DOMUS_END;
}

DOMUS_SEQUENCE(give, served_frame)
{
    static const domus_http_response head = {.status = 200, .media = "text/plain"};
    static const char zeros[1000];

    DOMUS_BEGIN;
    frame->number = number_in_path(message);
    DOMUS_AWAIT(domus_reply_begin(stack, &domus_http_response_type, &head, then));
    while (answer->error == 0 && frame->bytes < frame->number) {
        if (domus_slice_copy(zeros, sizeof zeros, &frame->piece) != 0)
            return -ENOMEM;
        frame->bytes += sizeof zeros;
        DOMUS_AWAIT(domus_reply_write(stack, frame->piece, then));
    }
    return answer->error != 0 ? answer->error : domus_reply_end(stack, NULL, NULL);
    DOMUS_END;
}

/* --- upgrades --------------------------------------------------------------------------------- */

static const domus_pipeline lines = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, NULL}, {NULL, NULL}}};

static int echo_line(domus_stack *stack, void *self, const void *payload)
{
    domus_packet packet;
    const domus_packet *line = payload;
    int error = domus_slice_keep(line->bytes, &packet.bytes);

    return error != 0 ? error : domus_reply(stack, &domus_packet_type, &packet);
}

static int reply_101_and_read_lines(domus_stack *stack)
{
    domus_appender fields = {0};
    domus_http_response response = {.status = 101};
    (void)domus_http_add(&fields, "Upgrade", "lines");
    int error = domus_append_end(&fields, &response.fields);

    if (error == 0)
        error = domus_reply(stack, &domus_http_response_type, &response);
    return error != 0 ? error
                      : domus_channel_set_pipeline(stack, domus_channel_running(stack), &lines, 0);
}

DOMUS_SEQUENCE(upgrade_later, served_frame)
{
    DOMUS_BEGIN;
    DOMUS_SLEEP(20 * DOMT_SERVED_MS);
    return answer->error != 0 ? answer->error : reply_101_and_read_lines(stack);
    DOMUS_END;
}

/* --- the service ------------------------------------------------------------------------------ */

/* Answer with a head so large that it is queued in several pieces. */
static int reply_with_large_head(domus_stack *stack)
{
    domus_http_response response = {.status = 200};
    domus_appender fields = {0};
    char name[16];

    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "X-Field-%d", i);
        domus_http_add(&fields, name,
                       "0123456789012345678901234567890123456789012345678901234567890123456789");
    }
    ck_assert_int_eq(domus_append_end(&fields, &response.fields), 0);
    return domus_reply(stack, &domus_http_response_type, &response);
}

static int reply_with_trailers(domus_stack *stack)
{
    domus_http_response response = {.status = 200};

    ck_assert_int_eq(domus_slice_copy("trailed\n", 8, &response.body), 0);
    ck_assert_int_eq(domus_slice_copy("X-Trailer: end\r\n", 16, &response.trailers), 0);
    return domus_reply(stack, &domus_http_response_type, &response);
}

static int serve_request_by_path(domus_stack *stack, void *self, const void *payload)
{
    static const struct {
        const char *begin;
        domus_handler *handle;
    } rows[] = {{"/sleep/", domi_sleep_first_begin}, {"/hang", domi_hang_begin},
                {"/halt/", domi_halt_begin},         {"/bytes", domi_count_begin},
                {"/read", domi_count_begin},         {"/piece", domi_count_begin},
                {"/give/", domi_give_begin},         {"/upped", domi_upgrade_later_begin}};
    const domus_http_request *request = payload;
    domus_slice path = domus_http_path(request);

    domt_served_now.begun++;
    if (is_path_of_request(request, "/now"))
        return reply_text(stack, "now\n");
    if (is_path_of_request(request, "/fields"))
        return reply_with_large_head(stack);
    if (is_path_of_request(request, "/trailed"))
        return reply_with_trailers(stack);
    if (is_path_of_request(request, "/up"))
        return reply_101_and_read_lines(stack);
    if (is_path_of_request(request, "/late"))
        return -ETIMEDOUT;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strncmp(domus_slice_data(path), rows[i].begin, strlen(rows[i].begin)) == 0)
            return rows[i].handle(stack, self, payload);
    }
    return -ENOENT;
}

int domt_served_count_close_and_error(domus_stack *stack, void *self, const void *payload)
{
    domt_served_now.closed++;
    domt_served_now.close_error = ((const domus_channel_event *)payload)->error;
    return 0;
}

const domus_http_options domt_served_whole = {.no_date = true};
const domus_http_options domt_served_streams = {.no_date = true, .streams = true};
static const domus_pipeline whole = {.stages = (const domus_pipeline_stage[]){
                                         {&domus_http_stage, &domt_served_whole}, {NULL, NULL}}};
static const domus_pipeline streams = {
    .stages =
        (const domus_pipeline_stage[]){{&domus_http_stage, &domt_served_streams}, {NULL, NULL}}};
const domus_on_peer domt_served_rows[] = {
    {.type = &domus_http_request_type,
     .handle = serve_request_by_path,
     .peer_frame_size = sizeof(struct domi_count_frame)},
    {.type = &domus_packet_type, .handle = echo_line},
    {.type = NULL},
};

const domus_behaviour domt_served_by_whole = {
    .name = "whole",
    .kind = DOMUS_CHANNELS,
    .pipeline = &whole,
    .on_peer = domt_served_rows,
    .on_close = {domt_served_count_close_and_error, 0},
};

const domus_behaviour domt_served_by_streams = {
    .name = "streams",
    .kind = DOMUS_CHANNELS,
    .pipeline = &streams,
    .on_peer = domt_served_rows,
    .on_close = {domt_served_count_close_and_error, 0},
};

/* --- the kit ---------------------------------------------------------------------------------- */

void domt_served_init_config(domus_config *ret_config)
{
    domus_config_init(ret_config);
    ret_config->system.threads = 3;
    ret_config->connection.address_percent = ret_config->connection.loopback_percent = 100;
}

domus_testkit *domt_served_start_kit(const domus_config *config, const domus_behaviour *behaviour,
                                     uint64_t seed)
{
    domus_config own;

    domt_served_init_config(&own);
    domt_served_now = (domt_served){.closed = 0};
    domus_testkit *kit =
        domt_kit_new_listening(config != NULL ? config : &own, "web", DOMT_SERVED_AT, seed);
    ck_assert_int_eq(domus_serve(domus_testkit_system(kit), "web", behaviour, NULL, NULL), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    return kit;
}

void domt_served_end_kit(domus_testkit *kit)
{
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    domus_testkit_free(kit);
}

domus_peer *domt_served_connect_peer(domus_testkit *kit)
{
    return domt_kit_connect_peer(kit, DOMT_SERVED_AT);
}

void domt_served_send_text(domus_peer *peer, const char *text)
{
    domt_kit_peer_send(peer, text);
}

void domt_served_expect_text(domus_testkit *kit, domus_peer *peer, const char *text)
{
    domt_kit_peer_expect(kit, peer, text);
}

void domt_served_advance_kit(domus_testkit *kit, uint64_t ns)
{
    ck_assert_int_eq(domus_testkit_advance(kit, ns), 0);
}
