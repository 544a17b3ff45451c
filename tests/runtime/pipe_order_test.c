/* io/pipelines/: answers leave in the order of the requests, in whatever order the conversations
 * end, and some requests are handled alone. The envelopes of the peer's messages are given back,
 * and each message has an envelope that is large enough. */
#include "base/random.h"
#include "base/slab.h"
#include "runtime/testkit/kit.h"
#include "tests/runtime/pipes.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SECOND DOMT_PIPE_SECOND

typedef struct answer_way {
    const char *how;
    const char *answer; /* answer to the request; NULL: the text of the request */
    bool is_framed;     /* true: only a conversation with a frame can answer in this way */
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

static void add_random_request_and_answer(talk *dialogue, domi_random *random, bool is_framed,
                                          uint32_t number)
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

/* Send the requests of a dialogue in pieces of random sizes, with steps of the kit in between, and
 * sometimes 2 ms. */
static void send_dialogue_in_pieces(domus_peer *peer, const talk *dialogue, domi_random *random)
{
    for (size_t at = 0; at < dialogue->asked_size;) {
        size_t size = 1 + domi_random_below(random, domi_random_below(random, 2) == 0 ? 10 : 800);
        if (size > dialogue->asked_size - at)
            size = dialogue->asked_size - at;
        ck_assert_int_eq(domus_peer_send(peer, dialogue->asked + at, size), 0);
        at += size;
        for (uint64_t steps = domi_random_below(random, 12); steps != 0; steps--)
            (void)domus_testkit_step(domt_pipe_kit);
        if (domi_random_below(random, 10) == 0)
            domt_pipe_pass_time(2 * DOMT_PIPE_MS);
    }
}

static void check_answers_come_in_order(uint64_t seed, bool is_framed)
{
    static talk dialogue;
    domi_random random;

    domi_random_init(&random, seed);
    domus_config config = domt_pipe_default_config();
    config.scheduler.messages_per_run_max = 1 + (uint32_t)domi_random_below(&random, 20);
    config.channel.requests_max = (uint32_t)domi_random_below(&random, 12);
    if (domi_random_below(&random, 2) == 0) {
        config.channel.send_high_bytes = 1 + domi_random_below(&random, 500);
        config.channel.send_low_bytes = domi_random_below(&random, config.channel.send_high_bytes);
    }
    dialogue.asked_size = dialogue.expected_size = 0;
    for (uint32_t i = 0; i < 60; i++)
        add_random_request_and_answer(&dialogue, &random, is_framed, i);
    domus_peer *peer =
        domt_pipe_begin_kit(&config, is_framed ? &domt_pipe_framed : &domt_pipe_plain, seed);
    send_dialogue_in_pieces(peer, &dialogue, &random);
    if (domi_random_below(&random, 2) == 0) {
        domus_peer_finish(peer);
        domt_pipe_peer_expect_text(peer, dialogue.expected);
        ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    } else {
        domt_pipe_peer_expect_text(peer, dialogue.expected);
        ck_assert_int_eq(domus_peer_expect_nothing(peer, SECOND), 0);
        domus_peer_close(peer);
    }
    domt_pipe_end_kit();
}

DOMT_TEST(answers_leave_in_the_order_of_requests)
{
    for (uint64_t seed = 1; seed <= DOMT_SCALE(300, 40); seed++)
        check_answers_come_in_order(seed, seed % 2 == 0);
}

DOMT_TEST(answers_are_the_same_at_every_split_point)
{
    static const char asked[] = "now 0 a\nfar 0 bb\n!slice 0 ccc\nkeep 1 dddd\nnow 0 eeeee\n";
    static const char expected[] = "a\nbb\nccc\ndddd\neeeee\n";

    for (size_t first = 0; first < sizeof asked - 1; first++) {
        for (size_t second = first; second < sizeof asked - 1; second += 3) {
            domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_plain, 1);
            const size_t ends[] = {first, second, sizeof asked - 1};
            size_t at = 0;

            for (int i = 0; i < 3; i++) {
                if (ends[i] > at)
                    ck_assert_int_eq(domus_peer_send(peer, asked + at, ends[i] - at), 0);
                at = ends[i];
                domt_pipe_run_kit();
            }
            domt_pipe_peer_expect_text(peer, expected);
            domt_pipe_close_peer_and_end_kit(peer);
        }
    }
}

/* --- alone ------------------------------------------------------------------------------------ */

DOMT_TEST(a_request_alone_waits_for_those_before_it)
{
    domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);

    domt_pipe_peer_send_text(peer, "sleep 100 a\nffar 50 b\n!sleep 100 c\nnow 0 d\nnow 0 e\n");
    domt_pipe_pass_time(90 * DOMT_PIPE_MS);
    ck_assert_uint_eq(domt_pipes_now.begun, 2);
    domt_pipe_pass_time(20 * DOMT_PIPE_MS);
    ck_assert_uint_eq(domt_pipes_now.begun, 3);
    domt_pipe_peer_expect_text(peer, "a\nb\n");
    domt_pipe_pass_time(80 * DOMT_PIPE_MS);
    ck_assert_uint_eq(domt_pipes_now.begun, 3);
    ck_assert_int_eq(domus_peer_expect_nothing(peer, 0), 0);
    domt_pipe_peer_expect_text(peer, "c\nd\ne\n");
    domt_pipe_close_peer_and_end_kit(peer);
}

DOMT_TEST(request_that_waits_behind_others_ends_with_its_peer)
{
    domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);

    domt_pipe_peer_send_text(peer, "fhang 0 a\n!now 0 b\nnow 0 c\n");
    domt_pipe_run_kit();
    domus_peer_reset(peer);
    domt_pipe_run_kit();
    ck_assert_uint_eq(domt_pipes_now.closed, 1);
    ck_assert_uint_eq(domt_pipes_now.begun, 1);
    domt_pipe_end_kit();
}

/* --- ids -------------------------------------------------------------------------------------- */

DOMT_TEST(with_ids_one_request_that_hangs_stops_no_others)
{
    domus_behaviour behaviour = domt_pipe_framed;
    behaviour.pipeline = &domt_pipe_by_id;
    domus_config config = domt_pipe_default_config();
    config.channel.requests_max = 4;
    domus_peer *peer = domt_pipe_begin_kit(&config, &behaviour, 1);

    domt_pipe_peer_send_text(peer, "1:hang 0 a\n");
    for (int i = 0; i < 20; i++) {
        domt_pipe_peer_send_and_expect(peer, "2:far 1 b\n", "2:b\n");
    }
    domus_peer_reset(peer);
    domt_pipe_end_kit();
}

DOMT_TEST(pieces_given_to_a_pipeline_are_counted)
{
    static const char *const pieces[] = {"now 0 a\nnow", " 0 b\n", "now 0 c\nnow 0 d\n"};
    domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_plain, 1);
    domus_profile profile;
    uint64_t reads = 0;

    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(domus_peer_send(peer, pieces[i], strlen(pieces[i])), 0);
        domt_pipe_run_kit();
    }
    domt_pipe_peer_expect_text(peer, "a\nb\nc\nd\n");
    for (uint32_t i = 0; domus_system_profile(domt_pipe_system_of_kit(), i, &profile) == 0; i++)
        reads += profile.reads;
    ck_assert_uint_eq(reads, 3);
    domt_pipe_close_peer_and_end_kit(peer);
}

#define MS DOMT_PIPE_MS

/* --- envelopes -------------------------------------------------------------------------------- */

static void count_visited_object(void *object, void *context)
{
    ++*(uint32_t *)context;
}

/* Returns how many objects the threads' pools have ever made. Objects that were given back are used
 * again, so the number does not grow when the same work is done a second time. */
static uint32_t count_objects_of_pools(void)
{
    domus_system *system = domt_pipe_system_of_kit();
    uint32_t count = 0;

    for (uint32_t i = 0; i < system->count; i++) {
        for (uint32_t slab = 0; slab < DOMI_SLABS; slab++)
            domi_slab_visit_objects(&system->threads[i].manager.pool.slabs[slab],
                                    count_visited_object, &count);
    }
    return count;
}

#define ROUNDS 100

/* Send messages of all kinds: requests that are answered or fail, and notices that are handled or
 * taken. */
static void send_messages_of_all_kinds(domus_peer *peer)
{
    static const char asked[] = "now 0 a\nerr 0 b\n?c\n%forward\n%own\nsleep 1 d\nfar 1 e\n"
                                "ffar 1 f\n!now 0 g\n";
    domt_pipe_peer_send_and_expect(peer, asked, "a\nerror EBADMSG\nerror EOPNOTSUPP\nd\ne\nf\ng\n");
}

DOMT_TEST(messages_give_their_envelopes_back)
{
    domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);

    send_messages_of_all_kinds(peer);
    send_messages_of_all_kinds(peer);
    uint32_t before = count_objects_of_pools();
    for (int i = 0; i < ROUNDS; i++)
        send_messages_of_all_kinds(peer);
    ck_assert_uint_lt(count_objects_of_pools(), before + ROUNDS / 4);
    domt_pipe_close_peer_and_end_kit(peer);
}

DOMT_TEST(connections_give_their_envelopes_back)
{
    (void)domt_pipes_new_kit(NULL, &domt_pipe_framed, 1);
    uint32_t before = 0;

    for (int i = 0; i < 2 * ROUNDS; i++) {
        domus_peer *peer = domt_pipe_connect_peer();
        if (i == ROUNDS)
            before = count_objects_of_pools();
        send_messages_of_all_kinds(peer);
        if (i % 2 == 0)
            domt_pipe_peer_send_text(peer, "hang 0 a\n!now 0 b\n");
        domt_pipe_run_kit();
        domus_peer_reset(peer);
        domt_pipe_run_kit();
    }
    ck_assert_uint_lt(count_objects_of_pools(), before + ROUNDS / 4);
    domt_pipe_end_kit();
}

/* --- sizes ------------------------------------------------------------------------------------ */

#define LARGE_BYTES 700u

typedef struct large {
    char letters[LARGE_BYTES];
} large;

static const domus_type small_type = {.name = "small", .size = 1};
static const domus_type large_type = {.name = "large", .size = sizeof(large)};

/* Decode each byte as a request, whose answer is the same byte: a digit is a small request that
 * waits, a small letter one that is answered at once, and a capital letter a large one. */
static int decode_letter(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    bool is_large = bytes[0] >= 'A' && bytes[0] <= 'Z';
    char *to = domus_wire_request(wire, is_large ? &large_type : &small_type, DOMUS_NO_ID);
    if (to == NULL)
        return -ENOMEM;
    memset(to, bytes[0], is_large ? LARGE_BYTES : 1);
    return 1;
}

static int encode_letter(domus_wire *wire, void *state, uint64_t id, const domus_type *type,
                         const void *payload)
{
    return domus_wire_append(wire, payload, 1);
}

static const domus_stage letter_stage = {
    .name = "letters", .decode = decode_letter, .encode = encode_letter};

static int reply_small_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != 0 ? answer->error : domus_reply(stack, &small_type, domus_frame(stack));
}

static int reply_small_now_or_later(domus_stack *stack, void *self, const void *payload)
{
    char letter = *(const char *)payload;
    *(char *)domus_frame(stack) = letter;
    if (letter >= '0' && letter <= '9')
        return domus_sleep(stack, 10 * MS, reply_small_after_sleep);
    return domus_reply(stack, &small_type, payload);
}

static int check_and_reply_large(domus_stack *stack, void *self, const void *payload)
{
    const large *message = payload;
    for (uint32_t i = 1; i < LARGE_BYTES; i++)
        ck_assert_int_eq(message->letters[i], message->letters[0]);
    return domus_reply(stack, &large_type, payload);
}

static const domus_pipeline letters = {
    .stages = (const domus_pipeline_stage[]){{&letter_stage, NULL}, {NULL, NULL}}};
static const domus_behaviour speller = {
    .name = "speller",
    .kind = DOMUS_CHANNELS,
    .pipeline = &letters,
    .on_peer = (const domus_on_peer[]){
        {.type = &small_type, .handle = reply_small_now_or_later, .peer_frame_size = 1},
        {.type = &large_type, .handle = check_and_reply_large},
        {.type = NULL}}};

/* The large message must not get the envelope that was freed last, because that one was made for a
 * small message. */
DOMT_TEST(a_large_message_behind_a_small_one_has_room)
{
    static const char asked[] = "0123456789aA0123456789bB0123456789cdC0123456789";
    domus_peer *peer = domt_pipe_begin_kit(NULL, &speller, 1);
    for (int i = 0; i < 3; i++) {
        domt_pipe_peer_send_and_expect(peer, asked, asked);
    }
    domt_pipe_close_peer_and_end_kit(peer);
}

DOMT_SUITE(120)
