/* io/pipelines/: the envelopes of messages of peers are given back, and each message has one that
 * is large enough for it. */
#include "base/slab.h"
#include "runtime/testkit/kit.h"
#include "tests/runtime/pipes.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

/* --- envelopes -------------------------------------------------------------------------------- */

static void count_one(void *object, void *context)
{
    ++*(uint32_t *)context;
}

/* Returns how many objects the threads have ever made. Objects that are given back are taken again,
 * so this stays as it is while the same work is done again. */
static uint32_t count_objects(domus_testkit *kit)
{
    domus_system *system = domus_testkit_system(kit);
    uint32_t count = 0;

    for (uint32_t i = 0; i < system->count; i++) {
        for (uint32_t slab = 0; slab < DOMI_SLABS; slab++)
            domi_slab_walk(&system->threads[i].manager.pool.slabs[slab], count_one, &count);
    }
    return count;
}

#define ROUNDS 100

/* Messages of all kinds: answered and failed requests, notices that are handled and
 * that are taken. */
static void send_messages(domus_testkit *kit, domus_peer *peer)
{
    static const char asked[] = "now 0 a\nerr 0 b\n?c\n%forward\n%own\nsleep 1 d\nfar 1 e\n"
                                "ffar 1 f\n!now 0 g\n";

    domt_pipes_send(kit, peer, asked);
    domt_pipes_expect(kit, peer, "a\nerror EBADMSG\nerror EOPNOTSUPP\nd\ne\nf\ng\n");
}

DOMT_TEST(messages_give_their_envelopes_back)
{
    domus_testkit *kit = domt_pipes_kit(NULL, &domt_pipe_framed, 1);
    domus_peer *peer = domt_pipes_peer(kit);

    send_messages(kit, peer);
    send_messages(kit, peer);
    uint32_t before = count_objects(kit);
    for (int i = 0; i < ROUNDS; i++)
        send_messages(kit, peer);
    ck_assert_uint_lt(count_objects(kit), before + ROUNDS / 4);
    domus_peer_close(peer);
    domt_pipes_end(kit);
}

DOMT_TEST(connections_give_their_envelopes_back)
{
    domus_testkit *kit = domt_pipes_kit(NULL, &domt_pipe_framed, 1);
    uint32_t before = 0;

    for (int i = 0; i < 2 * ROUNDS; i++) {
        domus_peer *peer = domt_pipes_peer(kit);
        if (i == ROUNDS)
            before = count_objects(kit);
        send_messages(kit, peer);
        if (i % 2 == 0)
            domt_pipes_send(kit, peer, "hang 0 a\n!now 0 b\n");
        ck_assert_int_eq(domus_testkit_run(kit), 0);
        domus_peer_reset(peer);
        ck_assert_int_eq(domus_testkit_run(kit), 0);
    }
    ck_assert_uint_lt(count_objects(kit), before + ROUNDS / 4);
    domt_pipes_end(kit);
}

/* --- sizes ------------------------------------------------------------------------------------ */

#define LARGE_BYTES 700u

typedef struct large {
    char letters[LARGE_BYTES];
} large;

static const domus_type small_type = {.name = "small", .size = 1};
static const domus_type large_type = {.name = "large", .size = sizeof(large)};

/* Each byte is a request: a digit is a small one that waits, a letter a small one that is answered
 * at once, and a capital a large one. The answers are the same bytes. */
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

static int answer_later(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != 0 ? answer->error : domus_reply(stack, &small_type, domus_frame(stack));
}

static int take_small(domus_stack *stack, void *self, const void *payload)
{
    char letter = *(const char *)payload;

    *(char *)domus_frame(stack) = letter;
    if (letter >= '0' && letter <= '9')
        return domus_sleep(stack, 10 * MS, answer_later);
    return domus_reply(stack, &small_type, payload);
}

static int take_large(domus_stack *stack, void *self, const void *payload)
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
    .on_peer =
        (const domus_on_peer[]){{.type = &small_type, .handle = take_small, .peer_frame_size = 1},
                                {.type = &large_type, .handle = take_large},
                                {.type = NULL}},
};

/* The envelope that was free last is a small one, beside those of requests that wait. */
DOMT_TEST(a_large_message_behind_a_small_one_has_room)
{
    static const char asked[] = "0123456789aA0123456789bB0123456789cdC0123456789";
    domus_testkit *kit = domt_pipes_kit(NULL, &speller, 1);
    domus_peer *peer = domt_pipes_peer(kit);

    for (int i = 0; i < 3; i++) {
        domt_pipes_send(kit, peer, asked);
        domt_pipes_expect(kit, peer, asked);
    }
    domus_peer_close(peer);
    domt_pipes_end(kit);
}

DOMT_SUITE(60)
