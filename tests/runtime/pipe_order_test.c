/* io/pipelines/: answers leave in the order of the requests, in whatever order the conversations
 * end, and requests that are alone. */
#include "base/random.h"
#include "tests/runtime/pipes.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SECOND DOMT_PIPE_SECOND

typedef struct answer_way {
    const char *how;
    const char *answer; /* NULL: its text */
    bool is_framed;     /* only a conversation with a frame can do that */
} answer_way;

static const answer_way ways[] = {
    {"now", NULL, false},
    {"slice", NULL, false},
    {"near", NULL, false},
    {"far", NULL, false},
    {"fnear", NULL, false},
    {"ffar", NULL, false},
    {"keep", NULL, false},
    {"kfwd", NULL, false},
    {"kffar", NULL, false},
    {"twice", NULL, false},
    {"take", NULL, false},
    {"both", NULL, false},
    {"stash", NULL, false},
    {"err", "error EBADMSG", false},
    {"fail", "error EPERM", false},
    {"none", "error ENOMSG", false},
    {"odd", "error EOPNOTSUPP", false},
    {"line", "error EINVAL", false},
    {"ferr", "error EBADMSG", false},
    {"?now", "error EOPNOTSUPP", false},
    {"sleep", NULL, true},
    {"late", "error EBADMSG", true},
};
#define WAYS (sizeof ways / sizeof ways[0])

typedef struct talk {
    char asked[16384];
    char expected[16384];
    size_t asked_size;
    size_t expected_size;
} talk;

static void add(talk *dialogue, domi_random *random, bool is_framed, uint32_t number)
{
    const answer_way *way;
    char text[300];
    uint32_t filler =
        domi_random_below(random, 6) == 0 ? (uint32_t)domi_random_below(random, 240) : 0;
    const char *mark = domi_random_below(random, 12) == 0 ? "!" : "";

    do
        way = &ways[domi_random_below(random, WAYS)];
    while (way->is_framed && !is_framed);
    snprintf(
        text, sizeof text, "%u%.*s", number, (int)filler,
        "........................................................................................"
        "........................................................................................"
        "................................................................................");
    dialogue->asked_size += (size_t)snprintf(
        dialogue->asked + dialogue->asked_size, sizeof dialogue->asked - dialogue->asked_size,
        "%s%s %u %s\n", mark, way->how, (unsigned)domi_random_below(random, 8), text);
    dialogue->expected_size += (size_t)snprintf(dialogue->expected + dialogue->expected_size,
                                                sizeof dialogue->expected - dialogue->expected_size,
                                                "%s\n", way->answer != NULL ? way->answer : text);
}

/* Send the dialogue in pieces, with steps between. */
static void send_in_pieces(domus_testkit *kit, domus_peer *peer, const talk *dialogue,
                           domi_random *random)
{
    for (size_t at = 0; at < dialogue->asked_size;) {
        size_t size = 1 + domi_random_below(random, domi_random_below(random, 2) == 0 ? 10 : 800);
        if (size > dialogue->asked_size - at)
            size = dialogue->asked_size - at;
        ck_assert_int_eq(domus_peer_send(peer, dialogue->asked + at, size), 0);
        at += size;
        for (uint64_t steps = domi_random_below(random, 12); steps != 0; steps--)
            (void)domus_testkit_step(kit);
        if (domi_random_below(random, 10) == 0)
            ck_assert_int_eq(domus_testkit_advance(kit, 2 * DOMT_PIPE_MS), 0);
    }
}

static void hold_order(uint64_t seed, bool is_framed)
{
    static talk dialogue;
    domus_config config;
    domi_random random;

    domi_random_init(&random, seed);
    domt_pipes_configure(&config);
    config.scheduler.messages_per_run_max = 1 + (uint32_t)domi_random_below(&random, 20);
    config.channel.requests_max = (uint32_t)domi_random_below(&random, 12);
    if (domi_random_below(&random, 2) == 0) {
        config.channel.send_high_bytes = 1 + domi_random_below(&random, 500);
        config.channel.send_low_bytes = domi_random_below(&random, config.channel.send_high_bytes);
    }
    dialogue.asked_size = dialogue.expected_size = 0;
    for (uint32_t i = 0; i < 60; i++)
        add(&dialogue, &random, is_framed, i);
    domus_testkit *kit =
        domt_pipes_kit(&config, is_framed ? &domt_pipe_framed : &domt_pipe_plain, seed);
    domus_peer *peer = domt_pipes_peer(kit);
    send_in_pieces(kit, peer, &dialogue, &random);
    if (domi_random_below(&random, 2) == 0) {
        domus_peer_finish(peer);
        domt_pipes_expect(kit, peer, dialogue.expected);
        ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    } else {
        domt_pipes_expect(kit, peer, dialogue.expected);
        ck_assert_int_eq(domus_peer_expect_nothing(peer, SECOND), 0);
        domus_peer_close(peer);
    }
    domt_pipes_end(kit);
}

DOMT_TEST(answers_leave_in_the_order_of_requests)
{
    for (uint64_t seed = 1; seed <= DOMT_SCALE(300, 40); seed++)
        hold_order(seed, seed % 2 == 0);
}

DOMT_TEST(every_split_point)
{
    static const char asked[] = "now 0 a\nfar 0 bb\n!slice 0 ccc\nkeep 1 dddd\nnow 0 eeeee\n";
    static const char expected[] = "a\nbb\nccc\ndddd\neeeee\n";

    for (size_t first = 0; first < sizeof asked - 1; first++) {
        for (size_t second = first; second < sizeof asked - 1; second += 3) {
            domus_testkit *kit = domt_pipes_kit(NULL, &domt_pipe_plain, 1);
            domus_peer *peer = domt_pipes_peer(kit);
            const size_t ends[] = {first, second, sizeof asked - 1};
            size_t at = 0;

            for (int i = 0; i < 3; i++) {
                if (ends[i] > at)
                    ck_assert_int_eq(domus_peer_send(peer, asked + at, ends[i] - at), 0);
                at = ends[i];
                ck_assert_int_eq(domus_testkit_run(kit), 0);
            }
            domt_pipes_expect(kit, peer, expected);
            domus_peer_close(peer);
            domt_pipes_end(kit);
        }
    }
}

/* --- alone ------------------------------------------------------------------------------------ */

DOMT_TEST(a_request_alone_waits_for_those_before_it)
{
    domus_testkit *kit = domt_pipes_kit(NULL, &domt_pipe_framed, 1);
    domus_peer *peer = domt_pipes_peer(kit);

    domt_pipes_send(kit, peer, "sleep 100 a\nffar 50 b\n!sleep 100 c\nnow 0 d\nnow 0 e\n");
    ck_assert_int_eq(domus_testkit_advance(kit, 90 * DOMT_PIPE_MS), 0);
    ck_assert_uint_eq(domt_pipes_now.begun, 2);
    ck_assert_int_eq(domus_testkit_advance(kit, 20 * DOMT_PIPE_MS), 0);
    ck_assert_uint_eq(domt_pipes_now.begun, 3);
    domt_pipes_expect(kit, peer, "a\nb\n");
    ck_assert_int_eq(domus_testkit_advance(kit, 80 * DOMT_PIPE_MS), 0);
    ck_assert_uint_eq(domt_pipes_now.begun, 3);
    ck_assert_int_eq(domus_peer_expect_nothing(peer, 0), 0);
    domt_pipes_expect(kit, peer, "c\nd\ne\n");
    domus_peer_close(peer);
    domt_pipes_end(kit);
}

DOMT_TEST(requests_alone_follow_each_other)
{
    domus_testkit *kit = domt_pipes_kit(NULL, &domt_pipe_framed, 1);
    domus_peer *peer = domt_pipes_peer(kit);

    domt_pipes_send(kit, peer,
                    "!now 0 a\n!far 5 b\n!err 0 c\n!none 0 d\n!sleep 5 e\n!ffar 1 f\n"
                    "!keep 2 g\n?now 0 h\nnow 0 i\n");
    domt_pipes_expect(kit, peer,
                      "a\nb\nerror EBADMSG\nerror ENOMSG\ne\nf\ng\nerror EOPNOTSUPP\ni\n");
    domus_peer_finish(peer);
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domt_pipes_end(kit);
}

DOMT_TEST(a_request_that_is_held_dies_with_its_peer)
{
    domus_testkit *kit = domt_pipes_kit(NULL, &domt_pipe_framed, 1);
    domus_peer *peer = domt_pipes_peer(kit);

    domt_pipes_send(kit, peer, "fhang 0 a\n!now 0 b\nnow 0 c\n");
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    domus_peer_reset(peer);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_uint_eq(domt_pipes_now.closed, 1);
    ck_assert_uint_eq(domt_pipes_now.begun, 1);
    domt_pipes_end(kit);
}

/* --- ids -------------------------------------------------------------------------------------- */

DOMT_TEST(with_ids_answers_leave_as_they_come)
{
    domus_behaviour behaviour = domt_pipe_framed;
    behaviour.pipeline = &domt_pipe_by_id;
    domus_testkit *kit = domt_pipes_kit(NULL, &behaviour, 1);
    domus_peer *peer = domt_pipes_peer(kit);

    domt_pipes_send(kit, peer, "7:sleep 30 a\n5:sleep 10 b\n9:err 0 c\n1:far 20 d\n2:now 0 e\n");
    domt_pipes_expect(kit, peer, "9:error EBADMSG\n2:e\n5:b\n1:d\n7:a\n");
    domus_peer_finish(peer);
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domt_pipes_end(kit);
}

DOMT_TEST(with_ids_one_request_that_hangs_stops_no_others)
{
    domus_behaviour behaviour = domt_pipe_framed;
    domus_config config;
    behaviour.pipeline = &domt_pipe_by_id;
    domt_pipes_configure(&config);
    config.channel.requests_max = 4;
    domus_testkit *kit = domt_pipes_kit(&config, &behaviour, 1);
    domus_peer *peer = domt_pipes_peer(kit);

    domt_pipes_send(kit, peer, "1:hang 0 a\n");
    for (int i = 0; i < 20; i++) {
        domt_pipes_send(kit, peer, "2:far 1 b\n");
        domt_pipes_expect(kit, peer, "2:b\n");
    }
    domus_peer_reset(peer);
    domt_pipes_end(kit);
}

DOMT_TEST(pieces_given_to_a_pipeline_are_counted)
{
    static const char *const pieces[] = {"now 0 a\nnow", " 0 b\n", "now 0 c\nnow 0 d\n"};
    domus_testkit *kit = domt_pipes_kit(NULL, &domt_pipe_plain, 1);
    domus_peer *peer = domt_pipes_peer(kit);
    domus_profile profile;
    uint64_t reads = 0;

    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(domus_peer_send(peer, pieces[i], strlen(pieces[i])), 0);
        ck_assert_int_eq(domus_testkit_run(kit), 0);
    }
    domt_pipes_expect(kit, peer, "a\nb\nc\nd\n");
    for (uint32_t i = 0; domus_system_profile(domus_testkit_system(kit), i, &profile) == 0; i++)
        reads += profile.reads;
    ck_assert_uint_eq(reads, 3);
    domus_peer_close(peer);
    domt_pipes_end(kit);
}

DOMT_SUITE(120)
