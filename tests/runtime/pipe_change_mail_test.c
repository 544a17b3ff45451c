/* io/pipelines/change.c: mail of actors beside a change of the pipeline, and clients that change
 * theirs when their peer has allowed it. */
#include "tests/runtime/changes.h"
#include "tests/support/sanitizer.h"
#include "tests/support/stages.h"
#include "tests/support/suite.h"

#include <domus/connect.h>

#include <errno.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

/* --- mail beside a change --------------------------------------------------------------------- */

static void notify(domus_probe *probe, const char *words)
{
    domus_packet packet;

    ck_assert_int_eq(domus_slice_copy(words, strlen(words), &packet.bytes), 0);
    ck_assert_int_eq(domus_probe_send(probe, domt_pipes_now.channel, &domus_packet_type, &packet),
                     0);
}

/* Mail comes at any step. Mail behind the answer is encoded by the new stages. */
DOMT_TEST(mail_behind_the_answer_leaves_by_the_new_stages)
{
    for (uint64_t seed = 1; seed <= DOMT_SCALE(200, 40); seed++) {
        domus_peer *peer;
        domus_probe *probe;
        domus_testkit *kit = domt_change_begin(seed, &peer);
        domt_bytes coded = {.size = 0};
        size_t size, at = 0, notes = 0, rest;

        domt_add_coded(&coded, "n");
        ck_assert_int_eq(domus_probe_new(kit, &probe), 0);
        domt_pipes_send(kit, peer, "x 0 a\n");
        domt_pipes_expect(kit, peer, "a\n");
        domt_pipes_send(kit, peer, seed % 2 == 0 ? "slow 0 b\nup 0 ok\n" : "fwd 0 ok\n");
        for (int i = 0; i < 40; i++) {
            notify(probe, "n");
            (void)domus_testkit_step(kit);
        }
        ck_assert_int_eq(domus_testkit_advance(kit, 10 * MS), 0);
        const char *got = domus_peer_got(peer, &size);
        while (at + 2 <= size && memcmp(got + at, "ok", 2) != 0) {
            notes += got[at] == 'n';
            at += 2; /* "n\n", "b\n" */
        }
        ck_assert_msg(at + 3 <= size, "no answer in %zu bytes", size);
        for (at += 3, rest = (size - at) % coded.size; at + coded.size <= size; notes++) {
            ck_assert_mem_eq(got + at, coded.bytes, coded.size);
            at += coded.size;
        }
        ck_assert_uint_eq(rest, 0);
        ck_assert_uint_eq(notes, 40);
        domus_peer_close(peer);
        domt_change_end(kit);
    }
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

static int ask_self(domus_stack *stack, const char *words, domus_resumed *then)
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

static int got_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error != 0)
        return answer->error;
    domus_slice bytes = ((const domus_packet *)answer->payload)->bytes;
    memcpy(client_got, domus_slice_data(bytes), bytes.size < 15 ? bytes.size : 15);
    return 0;
}

static int may_start(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error != 0)
        return answer->error;
    ck_assert(domus_slice_equals(((const domus_packet *)answer->payload)->bytes, "go", 2));
    domt_changes_now.results[0] = domus_channel_set_pipeline(stack, domus_channel_running(stack),
                                                             &client_after, client_flags);
    domt_changes_now.results[1] = domus_channel_set_pipeline(stack, domus_channel_running(stack),
                                                             &client_after, client_flags);
    return domt_changes_now.results[0] != 0 ? 0 : ask_self(stack, "q", got_answer);
}

static int start(domus_stack *stack, void *self, const void *payload)
{
    domt_pipes_now.opened++;
    return ask_self(stack, "start", may_start);
}

static const domus_behaviour client = {
    .name = "client",
    .kind = DOMUS_CHANNELS,
    .pipeline = &client_before,
    .on_open = {start, 0},
    .on_close = {domt_change_on_close, 0},
};

static int connected(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error;
}

static int dial(domus_stack *stack, void *self)
{
    const domus_connect_options options = {.behaviour = &client};

    return domus_connect(stack, "10.0.0.9:6000", &options, connected);
}

static const domus_behaviour dialler = {
    .name = "dialler", .kind = DOMUS_CHANNELS, .on_mount = dial};

static domus_testkit *begin_client(uint32_t flags, uint64_t seed, domus_peer **ret_peer)
{
    domus_testkit *kit = domt_pipes_kit(NULL, &domt_change_service, seed);
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
    domt_pipes_expect(kit, *ret_peer, "start\n");
    return kit;
}

DOMT_TEST(a_client_changes_behind_the_answer)
{
    domt_bytes asked = {.size = 0}, answers = {.size = 0};

    domt_add_coded(&asked, "q");
    domt_add_line(&answers, "go");
    domt_add_coded(&answers, "early"); /* in the same piece as the answer */
    for (size_t cut = 0; cut <= answers.size; cut++) {
        domus_peer *peer;
        domus_testkit *kit = begin_client(0, cut + 1, &peer);
        domt_change_send(peer, &answers, 0, cut);
        ck_assert_int_eq(domus_testkit_run(kit), 0);
        /* the answer to "q" comes before it is asked, if the peer guesses so well */
        domt_change_send(peer, &answers, cut, 3);
        ck_assert_int_eq(domus_testkit_run(kit), 0);
        if (cut <= 3) {
            domt_change_expect(kit, peer, &asked);
            domt_change_send(peer, &answers, 3, answers.size);
            ck_assert_int_eq(domus_testkit_run(kit), 0);
            ck_assert_str_eq(client_got, "early");
            domus_peer_close(peer);
        }
        ck_assert_int_eq(domt_changes_now.results[0], 0);
        ck_assert_int_eq(domt_changes_now.results[1], -EBUSY);
        ck_assert_int_eq(domt_changes_now.opened,
                         1); /* the bytes behind the answer were not decoded as lines */
        if (cut > 3)
            domus_peer_close(peer);
        ck_assert_int_eq(domus_testkit_advance(kit, SECOND), 0);
        domt_change_end(kit);
    }
}

DOMT_TEST(a_client_is_not_deceived_by_clear_bytes)
{
    static const char *const early[] = {"go\nx", "go\ngo\n", "go\n\n"};

    for (size_t i = 0; i < 3; i++) {
        domus_peer *peer;
        domus_testkit *kit = begin_client(DOMUS_PIPELINE_CLEAN, 1, &peer);
        domt_pipes_send(kit, peer, early[i]);
        domt_change_expect_reset(kit, peer);
        ck_assert_int_eq(domt_changes_now.results[0], -EPROTO);
        ck_assert_int_eq(domt_pipes_now.close_error, -EPROTO);
        ck_assert_int_eq(domt_changes_now.opened, 0);
        domt_change_end(kit);
    }
}

DOMT_SUITE(120)
