/* io/pipelines/change.c: the pipeline of a channel changes at a message boundary, at any time that
 * its handler chooses, and in whatever pieces the bytes come; and clients change their pipeline
 * when their peer has agreed. */
#include "tests/runtime/changes.h"
#include "tests/runtime/running.h"
#include "tests/support/crowd.h"
#include "tests/support/sanitizer.h"
#include "tests/support/stages.h"
#include "tests/support/suite.h"

#include <domus/connect.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

/* --- every place of a cut --------------------------------------------------------------------- */

static const char *const ways[] = {"up 0 ok",     "pre 0 ok",  "fwd 3 ok", "!up 0 ok",
                                   "!later 2 ok", "!pre 0 ok", "!fwd 0 ok"};

/* ThreadSanitizer tries only each seventh place to cut the bytes, because it finds nothing more in
 * a kit with one thread */
#define EACH (DOMT_TSAN ? 7 : 1)

DOMT_TEST(answers_before_leave_by_the_old_stages_and_bytes_behind_go_to_the_new)
{
    for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
        domt_bytes asked = {.size = 0}, expected = {.size = 0};
        domt_append_line_packet(&asked, "slow 3 a");
        domt_append_line_packet(&asked, "x 0 b");
        domt_append_line_packet(&asked, ways[way]);
        domt_append_coded_packet(&asked, "slow 2 c");
        domt_append_coded_packet(&asked, "x 0 dd~}");
        domt_append_line_packet(&expected, "a");
        domt_append_line_packet(&expected, "b");
        domt_append_line_packet(&expected, "ok");
        domt_append_coded_packet(&expected, "c");
        domt_append_coded_packet(&expected, "dd~}");
        for (size_t cut = 0; cut <= asked.size; cut += EACH) {
            domus_peer *peer;
            domus_testkit *kit = domt_change_begin_kit(cut + 1, &peer);
            domt_change_send_bytes(peer, &asked, 0, cut);
            if (cut % 2 == 0)
                ck_assert_int_eq(domus_testkit_advance(kit, cut % 3 * MS), 0);
            domt_change_send_bytes(peer, &asked, cut, asked.size);
            if (cut % 5 == 0)
                domus_peer_finish(peer);
            domt_change_expect_bytes(kit, peer, &expected);
            ck_assert_int_eq(domt_changes_now.results[0], 0);
            ck_assert_int_eq(domt_changes_now.opened, 1);
            if (cut % 5 != 0)
                domus_peer_close(peer);
            domt_change_end_kit(kit);
        }
    }
}

/* --- bytes that came too early ---------------------------------------------------------------- */

DOMT_TEST(a_clean_change_takes_no_bytes_that_came_before_the_answer)
{
    static const char *const asked[] = {"clean 0 ok\nx 0 y\n", "clean 0 ok\nx",
                                        "!lclean 5 ok\nx 0 y\n", "!lclean 5 ok\nx"};

    for (size_t i = 0; i < 4; i++) {
        domus_peer *peer;
        domus_testkit *kit = domt_change_begin_kit(1, &peer);
        domt_pipes_peer_send(kit, peer, asked[i]);
        domt_change_expect_reset(kit, peer);
        ck_assert_int_eq(domt_pipes_now.close_error, -EPROTO);
        ck_assert_int_eq(domt_changes_now.results[0], -EPROTO);
        ck_assert_int_eq(domt_changes_now.opened, 0);
        domt_change_end_kit(kit);
    }
}

/* Bytes that come while a clean change waits for its place reset the channel. */
DOMT_TEST(bytes_before_a_waiting_clean_change_reset_the_channel)
{
    domus_peer *peer;
    domus_testkit *kit = domt_change_begin_kit(1, &peer);

    domt_pipes_peer_send(kit, peer, "slow 5 a\nclean 0 ok\n");
    ck_assert_int_eq(domus_testkit_advance(kit, MS), 0);
    ck_assert_int_eq(domt_changes_now.results[0], 0);
    domt_pipes_peer_send(kit, peer, "x");
    ck_assert_int_eq(domus_testkit_advance(kit, MS), 0);
    domt_change_expect_reset(kit, peer);
    ck_assert_int_eq(domt_pipes_now.close_error, -EPROTO);
    ck_assert_int_eq(domt_changes_now.opened, 0);
    domt_change_end_kit(kit);
}

DOMT_TEST(a_clean_change_is_made_when_the_peer_waits_for_it)
{
    domt_bytes coded = {.size = 0}, answer = {.size = 0};

    domt_append_coded_packet(&coded, "x 0 y");
    domt_append_coded_packet(&answer, "y");
    for (size_t cut = 0; cut <= coded.size; cut++) {
        domus_peer *peer;
        domus_testkit *kit = domt_change_begin_kit(cut, &peer);
        domt_pipes_peer_send(kit, peer, "x 0 a\nclean 0 ok\n");
        domt_pipes_peer_expect(kit, peer, "a\nok\n");
        domt_change_send_bytes(peer, &coded, 0, cut);
        ck_assert_int_eq(domus_testkit_run(kit), 0);
        domt_change_send_bytes(peer, &coded, cut, coded.size);
        domt_change_expect_bytes(kit, peer, &answer);
        domus_peer_close(peer);
        domt_change_end_kit(kit);
    }
}

/* --- changes that are refused ----------------------------------------------------------------- */

static int set_pipeline_of_other_channel(domus_stack *stack, void *self, const void *payload)
{
    domt_changes_now.results[0] =
        domus_channel_set_pipeline(stack, *(domus_channel *const *)payload, &domt_change_after, 0);
    domt_changes_now.results[1] =
        domus_channel_send(stack, *(domus_channel *const *)payload, &domus_slice_type, payload);
    return 0;
}

static const domus_type channel_type = {.name = "channel", .size = sizeof(domus_channel *)};
static const domus_behaviour another = {
    .name = "another",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){{&channel_type, set_pipeline_of_other_channel, 0}, {0}}};

DOMT_TEST(wrong_changes_are_refused_and_change_nothing)
{
    domus_peer *peer;
    domus_testkit *kit = domt_change_begin_kit(1, &peer);

    domt_pipes_peer_send(kit, peer, "wrong 0 a\n");
    domt_pipes_peer_expect(kit, peer, "a\n");
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(domt_changes_now.results[i], -EINVAL);
    /* the request "c" was decoded by the old pipeline before the change was requested */
    domt_pipes_peer_send(kit, peer, "behind 2 b\nx 0 c\n");
    domt_pipes_peer_expect(kit, peer, "b\nc\n");
    ck_assert_int_eq(domt_changes_now.results[0], -EPERM);
    domt_pipes_peer_send(kit, peer, "twice 0 d\n");
    domt_pipes_peer_expect(kit, peer, "d\n");
    ck_assert_int_eq(domt_changes_now.results[0], 0);
    ck_assert_int_eq(domt_changes_now.results[1], -EBUSY);
    domus_peer_close(peer);
    domt_change_end_kit(kit);
}

DOMT_TEST(only_the_channels_own_actor_may_change_its_pipeline)
{
    domus_peer *peer;
    domus_testkit *kit = domt_change_begin_kit(1, &peer);
    domus_address address;

    domt_pipes_peer_send(kit, peer, "x 0 a\n");
    domt_pipes_peer_expect(kit, peer, "a\n");
    domus_channel *channel = domt_changes_now.last;
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(kit),
                                            domus_channel_thread(channel), &another, NULL,
                                            &address),
                     0);
    ck_assert_int_eq(
        domus_outside_notice(domus_testkit_system(kit), address, &channel_type, &channel), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(domt_changes_now.results[0], -EPERM);
    /* an actor that is not the channel's own cannot send by its channel either */
    ck_assert_int_eq(domt_changes_now.results[1], -EPERM);
    domus_peer_close(peer);
    domt_change_end_kit(kit);
}

DOMT_TEST(a_stage_that_does_not_open_resets_the_channel)
{
    domus_peer *peer;
    domus_testkit *kit = domt_change_begin_kit(1, &peer);

    domt_changes_now.open_error = -EKEYREJECTED;
    domt_pipes_peer_send(kit, peer, "up 0 a\n");
    domt_change_expect_reset(kit, peer);
    ck_assert_int_eq(domt_pipes_now.close_error, -EKEYREJECTED);
    domt_change_end_kit(kit);
}

/* The new stages may have to send first, so the change does not wait for more bytes of the peer. */
DOMT_TEST(a_change_that_waits_for_an_answer_is_made_behind_it)
{
    domus_peer *peer;
    domus_testkit *kit = domt_change_begin_kit(1, &peer);

    domt_pipes_peer_send(kit, peer, "slow 5 a\nlater 2 b\n");
    ck_assert_int_eq(domus_testkit_advance(kit, 3 * MS), 0);
    ck_assert_int_eq(domt_changes_now.results[0], 0);
    ck_assert_int_eq(domt_changes_now.opened, 0);
    domt_pipes_peer_expect(kit, peer, "a\nb\n");
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(domt_changes_now.opened, 1);
    domus_peer_close(peer);
    domt_change_end_kit(kit);
}

DOMT_TEST(a_change_that_waits_is_forgotten_with_the_channel)
{
    domus_peer *peer;
    domus_testkit *kit = domt_change_begin_kit(1, &peer);

    domt_pipes_peer_send(kit, peer, "slow 50 a\nup 0 b\n");
    ck_assert_int_eq(domus_testkit_advance(kit, MS), 0);
    ck_assert_int_eq(domt_changes_now.results[0], 0);
    domus_peer_reset(peer);
    ck_assert_int_eq(domus_testkit_advance(kit, SECOND), 0);
    ck_assert_int_eq(domt_changes_now.opened, 0);
    domt_change_end_kit(kit);
}

DOMT_TEST(a_drain_waits_for_a_change_and_what_is_behind_it)
{
    domt_bytes asked = {.size = 0}, expected = {.size = 0};
    domus_peer *peer;
    domus_testkit *kit = domt_change_begin_kit(1, &peer);

    domt_append_line_packet(&asked, "slow 20 a");
    domt_append_line_packet(&asked, "up 0 b");
    domt_append_coded_packet(&asked, "slow 20 c");
    domt_append_line_packet(&expected, "a");
    domt_append_line_packet(&expected, "b");
    domt_append_coded_packet(&expected, "c");
    domt_change_send_bytes(peer, &asked, 0, asked.size);
    ck_assert_int_eq(domus_testkit_advance(kit, MS), 0);
    (void)domus_testkit_stop(kit);
    domt_change_expect_bytes(kit, peer, &expected);
    domt_change_end_kit(kit);
}

/* --- real sockets ----------------------------------------------------------------------------- */

static void send_all_bytes(int fd, const char *bytes, size_t size)
{
    while (size != 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        ck_assert_int_gt(sent, 0);
        bytes += sent;
        size -= (size_t)sent;
    }
}

static void receive_all_expected_bytes(int fd, const domt_bytes *expected)
{
    char got[4096];

    for (size_t at = 0; at < expected->size;) {
        ssize_t part = recv(fd, got + at, expected->size - at, 0);
        if (part < 0 && errno == EINTR)
            continue;
        ck_assert_msg(part > 0, "%zd after %zu bytes", part, at);
        ck_assert_mem_eq(got + at, expected->bytes + at, (size_t)part);
        at += (size_t)part;
    }
}

DOMT_TEST(pipeline_changes_the_same_on_real_sockets)
{
    domus_config config = domt_config_of_threads(1);
    domt_bytes asked = {.size = 0}, expected = {.size = 0};

    domt_add_front_listener(&config);
    domt_append_line_packet(&asked, "slow 1 a");
    domt_append_line_packet(&asked, "fwd 1 ok");
    domt_append_coded_packet(&asked, "slow 1 c");
    domt_append_coded_packet(&asked, "x 0 dd~}");
    domt_append_line_packet(&expected, "a");
    domt_append_line_packet(&expected, "ok");
    domt_append_coded_packet(&expected, "c");
    domt_append_coded_packet(&expected, "dd~}");
    domt_changes_now = (domt_changes){0};
    domus_system *system = domt_start_system(&config);
    domt_pipes_spawn_helpers(system, 0, 0);
    uint16_t port = domt_serve_front_listener(system, &domt_change_service, NULL);
    for (size_t cut = 0; cut <= asked.size; cut++) {
        int fd = domt_connect_to_port(port);
        send_all_bytes(fd, asked.bytes, cut);
        if (cut % 4 == 0)
            domt_pause_ns(200000);
        send_all_bytes(fd, asked.bytes + cut, asked.size - cut);
        if (cut % 3 == 0)
            ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
        receive_all_expected_bytes(fd, &expected);
        close(fd);
    }
    domt_end_system(system);
    ck_assert_int_eq(domt_changes_now.opened, (int)asked.size + 1);
    ck_assert_int_eq(domt_changes_now.closed, domt_changes_now.opened);
}

/* --- clients ---------------------------------------------------------------------------------- */

static const domus_line_options client_line = {.role = DOMUS_ROLE_CLIENT};
static const domus_length_options client_length = {.role = DOMUS_ROLE_CLIENT, .width = 2};
static const domus_pipeline client_before = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, &client_line}, {NULL, NULL}},
    .encodes = domt_change_packets};
static const domus_pipeline client_after = {
    .stages = (const domus_pipeline_stage[]){{&domt_stuff_stage, NULL},
                                             {&domt_counted_stage, NULL},
                                             {&domus_length_stage, &client_length},
                                             {NULL, NULL}},
    .encodes = domt_change_packets};

static uint32_t client_flags;
static char client_got[16];

static int ask_own_channel(domus_stack *stack, const char *words, domus_resumed *then)
{
    domus_packet packet;
    int error = domus_slice_copy(words, strlen(words), &packet.bytes);

    if (error != 0)
        return error;
    int result = domus_ask(stack, domus_self(stack), &domus_packet_type, &packet, then);
    if (result < 0)
        domus_slice_free(packet.bytes);
    return result;
}

static int record_answer_of_client(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error != 0)
        return answer->error;
    domus_slice bytes = ((const domus_packet *)answer->payload)->bytes;
    memcpy(client_got, domus_slice_data(bytes), bytes.size < 15 ? bytes.size : 15);
    return 0;
}

static int set_pipeline_when_told_to_start(domus_stack *stack, void *self,
                                           const domus_answer *answer)
{
    if (answer->error != 0)
        return answer->error;
    ck_assert(domus_slice_equals(((const domus_packet *)answer->payload)->bytes, "go", 2));
    domt_changes_now.results[0] = domus_channel_set_pipeline(stack, domus_channel_running(stack),
                                                             &client_after, client_flags);
    domt_changes_now.results[1] = domus_channel_set_pipeline(stack, domus_channel_running(stack),
                                                             &client_after, client_flags);
    return domt_changes_now.results[0] != 0 ? 0
                                            : ask_own_channel(stack, "q", record_answer_of_client);
}

static int on_open_ask_for_start(domus_stack *stack, void *self, const void *payload)
{
    domt_pipes_now.opened++;
    return ask_own_channel(stack, "start", set_pipeline_when_told_to_start);
}

static const domus_behaviour client = {.name = "client",
                                       .kind = DOMUS_CHANNELS,
                                       .pipeline = &client_before,
                                       .on_open = {on_open_ask_for_start, 0},
                                       .on_close = {domt_change_on_close_record, 0}};

static int return_error_of_connect(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error;
}

static int connect_client_in_mount(domus_stack *stack, void *self)
{
    const domus_connect_options options = {.behaviour = &client};
    return domus_connect(stack, "10.0.0.9:6000", &options, return_error_of_connect);
}

static const domus_behaviour dialler = {
    .name = "dialler", .kind = DOMUS_CHANNELS, .on_mount = connect_client_in_mount};

static domus_testkit *begin_kit_with_client(uint32_t flags, uint64_t seed, domus_peer **ret_peer)
{
    domus_testkit *kit = domt_pipes_new_kit(NULL, &domt_change_service, seed);
    domus_peer_listener *listener;
    domus_address address;

    domt_changes_now.open_error = domt_changes_now.opened = domt_changes_now.closed = 0;
    client_flags = flags;
    memset(domt_changes_now.results, 1, sizeof domt_changes_now.results);
    memset(client_got, 0, sizeof client_got);
    ck_assert_int_eq(domus_peer_listen(kit, "10.0.0.9:6000", 0, &listener), 0);
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(kit), 0, &dialler, NULL, &address),
                     0);
    ck_assert_int_eq(domus_peer_accept(listener, SECOND, ret_peer), 0);
    domt_pipes_peer_expect(kit, *ret_peer, "start\n");
    return kit;
}

DOMT_TEST(a_client_changes_behind_the_answer)
{
    domt_bytes asked = {.size = 0}, answers = {.size = 0};

    domt_append_coded_packet(&asked, "q");
    domt_append_line_packet(&answers, "go");
    domt_append_coded_packet(&answers,
                             "early"); /* these bytes may come in the same piece as the answer */
    for (size_t cut = 0; cut <= answers.size; cut++) {
        domus_peer *peer;
        domus_testkit *kit = begin_kit_with_client(0, cut + 1, &peer);
        domt_change_send_bytes(peer, &answers, 0, cut);
        ck_assert_int_eq(domus_testkit_run(kit), 0);
        /* With larger cuts the answer to "q" comes before "q" is sent, because this peer sends it
         * in advance. */
        domt_change_send_bytes(peer, &answers, cut, 3);
        ck_assert_int_eq(domus_testkit_run(kit), 0);
        if (cut <= 3) {
            domt_change_expect_bytes(kit, peer, &asked);
            domt_change_send_bytes(peer, &answers, 3, answers.size);
            ck_assert_int_eq(domus_testkit_run(kit), 0);
            ck_assert_str_eq(client_got, "early");
            domus_peer_close(peer);
        }
        ck_assert_int_eq(domt_changes_now.results[0], 0);
        ck_assert_int_eq(domt_changes_now.results[1], -EBUSY);
        ck_assert_int_eq(domt_changes_now.opened,
                         /* the new stage was opened once, and the bytes behind the answer were not
                            decoded as lines */
                         1);
        if (cut > 3)
            domus_peer_close(peer);
        ck_assert_int_eq(domus_testkit_advance(kit, SECOND), 0);
        domt_change_end_kit(kit);
    }
}

DOMT_TEST(client_resets_at_clear_bytes_before_a_clean_change)
{
    static const char *const early[] = {"go\nx", "go\ngo\n", "go\n\n"};

    for (size_t i = 0; i < 3; i++) {
        domus_peer *peer;
        domus_testkit *kit = begin_kit_with_client(DOMUS_PIPELINE_CLEAN, 1, &peer);
        domt_pipes_peer_send(kit, peer, early[i]);
        domt_change_expect_reset(kit, peer);
        ck_assert_int_eq(domt_changes_now.results[0], -EPROTO);
        ck_assert_int_eq(domt_pipes_now.close_error, -EPROTO);
        ck_assert_int_eq(domt_changes_now.opened, 0);
        domt_change_end_kit(kit);
    }
}

DOMT_SUITE(120)
