/* A service in a test kit that changes its pipeline while requests are served;
 * tests/runtime/changes.h lists the requests. */
#include "tests/runtime/changes.h"
#include "tests/support/stages.h"
#include "tests/support/suite.h"

#include <domus/stage_kit.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

/* --- a stage that counts its opens and closes ------------------------------------------------- */

domt_changes domt_changes_now;

static int open_counted_stage(domus_wire *wire, void *state, const void *options)
{
    if (domt_changes_now.open_error == 0)
        domt_changes_now.opened++;
    return domt_changes_now.open_error;
}

static int pass_bytes_on(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    int error = domus_wire_pass(wire, bytes, size);
    return error != 0 ? error : (int)size;
}

static int append_bytes_to_wire(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    return domus_wire_append(wire, bytes, size);
}

static void close_counted_stage(domus_wire *wire, void *state)
{
    domt_changes_now.closed++;
}

const domus_stage domt_counted_stage = {.name = "counted",
                                        .open = open_counted_stage,
                                        .decode = pass_bytes_on,
                                        .wrap = append_bytes_to_wire,
                                        .close = close_counted_stage};

/* --- the service ------------------------------------------------------------------------------ */

const domus_type *const domt_change_packets[] = {&domus_packet_type, NULL};
static const domus_line_options line = {.role = DOMUS_ROLE_SERVER};
static const domus_length_options two_bytes = {.role = DOMUS_ROLE_SERVER, .width = 2};
const domus_pipeline domt_change_before = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, &line}, {NULL, NULL}},
    .encodes = domt_change_packets};
const domus_pipeline domt_change_after = {
    .stages = (const domus_pipeline_stage[]){{&domt_stuff_stage, NULL},
                                             {&domt_counted_stage, NULL},
                                             {&domus_length_stage, &two_bytes},
                                             {NULL, NULL}},
    .encodes = domt_change_packets};
static const domus_pipeline wrong = {
    .stages = (const domus_pipeline_stage[]){{&domt_stuff_stage, NULL}, {NULL, NULL}}};

typedef struct order {
    char how[16];
    unsigned wait_ms;
    char text[64];
} order;

static order parse_order(const void *payload)
{
    domus_slice bytes = ((const domus_packet *)payload)->bytes;
    order made = {.how = ""};
    char copy[96] = "";

    memcpy(copy, domus_slice_data(bytes), bytes.size < 95 ? bytes.size : 95);
    (void)sscanf(copy[0] == '!' ? copy + 1 : copy, "%15s %u %63s", made.how, &made.wait_ms,
                 made.text);
    return made;
}

static bool is_order_of_mode(const order *what, const char *how)
{
    return strcmp(what->how, how) == 0;
}

static int reply_with_text(domus_stack *stack, const char *text)
{
    domus_packet packet;
    int error = domus_slice_copy(text, strlen(text), &packet.bytes);

    return error != 0 ? error : domus_reply(stack, &domus_packet_type, &packet);
}

/* Send a notice to the own channel, which encodes it for the peer. */
static int send_text_as_notice(domus_stack *stack, const char *text)
{
    domus_packet packet;
    int error = domus_slice_copy(text, strlen(text), &packet.bytes);

    if (error == 0)
        error = domus_notice(stack, domus_self(stack), &domus_packet_type, &packet);
    return error;
}

static int change_pipeline(domus_stack *stack, uint32_t flags)
{
    return domus_channel_set_pipeline(stack, domus_channel_running(stack), &domt_change_after,
                                      flags);
}

static int answer_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    const order *what = domus_frame(stack);

    if (answer->error != 0)
        return answer->error;
    if (is_order_of_mode(what, "later") || is_order_of_mode(what, "behind") ||
        is_order_of_mode(what, "note"))
        domt_changes_now.results[0] = change_pipeline(stack, 0);
    if (is_order_of_mode(what, "lclean"))
        domt_changes_now.results[0] = change_pipeline(stack, DOMUS_PIPELINE_CLEAN);
    int error = reply_with_text(stack, what->text);
    return error == 0 && is_order_of_mode(what, "note") ? send_text_as_notice(stack, what->text)
                                                        : error;
}

static int on_packet_answer_by_order(domus_stack *stack, void *self, const void *payload)
{
    order *what = domus_frame(stack);

    *what = parse_order(payload);
    if (is_order_of_mode(what, "slow") || is_order_of_mode(what, "later") ||
        is_order_of_mode(what, "lclean") || is_order_of_mode(what, "behind") ||
        is_order_of_mode(what, "note"))
        return domus_sleep(stack, what->wait_ms * MS, answer_after_sleep);
    if (is_order_of_mode(what, "up")) {
        int error = reply_with_text(stack, what->text);
        domt_changes_now.results[0] = change_pipeline(stack, 0);
        return error;
    }
    if (is_order_of_mode(what, "pre") || is_order_of_mode(what, "fwd"))
        domt_changes_now.results[0] = change_pipeline(stack, 0);
    if (is_order_of_mode(what, "clean"))
        domt_changes_now.results[0] = change_pipeline(stack, DOMUS_PIPELINE_CLEAN);
    if (is_order_of_mode(what, "wrong")) {
        domus_channel *channel = domus_channel_running(stack);
        domt_changes_now.results[0] = domus_channel_set_pipeline(stack, channel, &wrong, 0);
        domt_changes_now.results[1] = domus_channel_set_pipeline(stack, channel, NULL, 0);
        domt_changes_now.results[2] =
            domus_channel_set_pipeline(stack, channel, &domt_change_after, 2);
    }
    if (is_order_of_mode(what, "twice")) {
        domt_changes_now.results[0] = change_pipeline(stack, 0);
        domt_changes_now.results[1] = change_pipeline(stack, 0);
    }
    if (is_order_of_mode(what, "fwd"))
        return domus_forward(stack, domt_pipes_now.far);
    return reply_with_text(stack, what->text);
}

static uint32_t marks_of_packet(const void *payload)
{
    domus_slice bytes = ((const domus_packet *)payload)->bytes;

    return bytes.size != 0 && domus_slice_data(bytes)[0] == '!' ? DOMUS_ALONE : 0;
}

int domt_change_on_close_record(domus_stack *stack, void *self, const void *payload)
{
    domt_pipes_now.closed++;
    domt_pipes_now.close_error = ((const domus_channel_event *)payload)->error;
    return 0;
}

static int on_open_record_channel(domus_stack *stack, void *self, const void *payload)
{
    domt_changes_now.last = ((const domus_channel_event *)payload)->channel;
    domt_pipes_now.opened++;
    domt_pipes_now.channel = domus_self(stack);
    return 0;
}

const domus_behaviour domt_change_service = {
    .name = "service",
    .kind = DOMUS_CHANNELS,
    .pipeline = &domt_change_before,
    .on_peer = (const domus_on_peer[]){{&domus_packet_type, on_packet_answer_by_order,
                                        sizeof(order), 0, marks_of_packet},
                                       {.type = NULL}},
    .on_open = {on_open_record_channel, 0},
    .on_close = {domt_change_on_close_record, 0},
};

/* --- bytes ------------------------------------------------------------------------------------ */

static void append_to_bytes(domt_bytes *to, const char *more, size_t size)
{
    memcpy(to->bytes + to->size, more, size);
    to->size += size;
}

void domt_append_line_packet(domt_bytes *to, const char *words)
{
    append_to_bytes(to, words, strlen(words));
    append_to_bytes(to, "\n", 1);
}

/* Append a packet as the pipeline after the change encodes it. */
void domt_append_coded_packet(domt_bytes *to, const char *words)
{
    domus_packet packet;
    domus_stage_kit *kit;
    size_t size;

    ck_assert_int_eq(domus_slice_copy(words, strlen(words), &packet.bytes), 0);
    ck_assert_int_eq(domus_stage_kit_new(&domt_change_after, &kit), 0);
    ck_assert_int_eq(domus_stage_kit_encode(kit, 0, &domus_packet_type, &packet), 0);
    const char *output = domus_stage_kit_output(kit, &size);
    append_to_bytes(to, output, size);
    domus_stage_kit_free(kit);
    domus_slice_free(packet.bytes);
}

domus_testkit *domt_change_begin_kit(uint64_t seed, domus_peer **ret_peer)
{
    domus_testkit *kit = domt_pipes_new_kit(NULL, &domt_change_service, seed);

    domt_changes_now.open_error = domt_changes_now.opened = domt_changes_now.closed = 0;
    memset(domt_changes_now.results, 1, sizeof domt_changes_now.results);
    *ret_peer = domt_pipes_connect_peer(kit);
    return kit;
}

void domt_change_send_bytes(domus_peer *peer, const domt_bytes *what, size_t from, size_t to)
{
    if (to > from)
        ck_assert_int_eq(domus_peer_send(peer, what->bytes + from, to - from), 0);
}

void domt_change_expect_bytes(domus_testkit *kit, domus_peer *peer, const domt_bytes *what)
{
    ck_assert_msg(domus_peer_expect(peer, what->bytes, what->size, 60 * SECOND) == 0, "%s",
                  domus_testkit_error(kit));
}

void domt_change_expect_reset(domus_testkit *kit, domus_peer *peer)
{
    ck_assert_int_eq(domus_peer_expect_reset(peer, SECOND), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
}

/* End the kit, and check that each stage that was opened was also closed. */
void domt_change_end_kit(domus_testkit *kit)
{
    domt_pipes_end_kit(kit);
    ck_assert_int_eq(domt_changes_now.opened, domt_changes_now.closed);
}
