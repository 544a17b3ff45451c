/* A queue of jobs, and workers who reserve a job over a connection and go away while they wait: no
 * job is handed to a worker that is gone, whichever way its request took to the queue, and the
 * queue does not fill with requests of workers that are gone. */
#include "tests/runtime/network.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/domus.h>
#include <domus/testkit_net.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS      UINT64_C(1000000)
#define SECOND  (1000 * MS)
#define AT      "127.0.0.1:80"
#define WORKERS 3u
#define WAITERS 16u
#define KEPT_NS (100 * MS) /* the default value of channel.halfCloseKept */

/* --- the queue -------------------------------------------------------------------------------- */

typedef struct queue {
    domus_kept waiters[WAITERS];
    uint32_t count;
} queue;

static int reply_packet_with_text(domus_stack *stack, const char *text)
{
    domus_packet answer;
    int error = domus_slice_copy(text, strlen(text), &answer.bytes);

    return error != 0 ? error : domus_reply(stack, &domus_packet_type, &answer);
}

/* Hand the job to the oldest worker that still waits, and answer how many waiting workers were
 * found to be gone. */
static int hand_job_to_oldest_worker(domus_stack *stack, queue *self)
{
    uint32_t gone = 0;
    bool handed = false;
    char text[64];

    for (uint32_t i = 0; i < self->count && !handed; i++) {
        domus_packet job;
        if (domus_slice_copy("precious", 8, &job.bytes) != 0)
            return -ENOMEM;
        bool is_wanted = domus_kept_is_wanted(stack, self->waiters[i]);
        int error = domus_kept_reply(stack, self->waiters[i], &domus_packet_type, &job);
        ck_assert_int_eq(error, is_wanted ? 0 : -ENOENT);
        ck_assert(!domus_kept_is_wanted(stack, self->waiters[i]));
        handed = error == 0;
        if (error != 0) {
            domus_slice_free(job.bytes);
            gone += error == -ENOENT;
        }
    }
    self->count = 0;
    snprintf(text, sizeof text, "%s, %u gone", handed ? "handed out" : "stays", (unsigned)gone);
    return reply_packet_with_text(stack, text);
}

/* result of the sleep in the last conversation that worked for a peer; 1: it has not ended yet */
static _Atomic int ended;

static int reply_slept_or_error(domus_stack *stack, void *self, const domus_answer *answer)
{
    ended = answer->error;
    return answer->error != 0 ? answer->error : reply_packet_with_text(stack, "slept");
}

static int answer_line_as_queue(domus_stack *stack, void *self_, const void *payload)
{
    queue *self = self_;
    domus_slice line = ((const domus_packet *)payload)->bytes;

    if (line.size > 3 && memcmp(domus_slice_data(line), "PUT", 3) == 0)
        return hand_job_to_oldest_worker(stack, self);
    if (domus_slice_equals(line, "SLEEP", 5))
        return domus_sleep(stack, SECOND, reply_slept_or_error);
    ck_assert_uint_lt(self->count, WAITERS);
    return (domus_slice_equals(line, "WORK", 4) ? domus_keep_working
                                                : domus_keep)(stack, &self->waiters[self->count++]);
}

static const domus_behaviour queueing = {
    .name = "queueing",
    .state_size = sizeof(queue),
    .on = (const domus_on[]){{&domus_packet_type, answer_line_as_queue, 0}, {0}}};

/* --- the ways to it --------------------------------------------------------------------------- */

/* address of the queue, or of the first actor that passes requests on to the queue */
static domus_address to_queue;

typedef struct front {
    domus_address next;
} front;

static int forward_request(domus_stack *stack, void *self, const void *payload)
{
    return domus_forward(stack, ((const front *)self)->next);
}

/* Behaviour of an actor that passes requests on to the next actor. */
static const domus_behaviour passing = {
    .name = "passing",
    .state_size = sizeof(front),
    .on = (const domus_on[]){{&domus_packet_type, forward_request, 0}, {0}}};

static int forward_to_queue(domus_stack *stack, void *self, const void *payload)
{
    return domus_forward(stack, to_queue);
}

static int reply_with_answer_of_queue(domus_stack *stack, void *self, const domus_answer *answer)
{
    domus_packet answered;

    if (answer->error != 0)
        return answer->error;
    int error = domus_slice_keep(((const domus_packet *)answer->payload)->bytes, &answered.bytes);
    return error != 0 ? error : domus_reply(stack, &domus_packet_type, &answered);
}

static int ask_queue_and_reply_its_answer(domus_stack *stack, void *self, const void *payload)
{
    domus_packet asked;

    int error = domus_slice_keep(((const domus_packet *)payload)->bytes, &asked.bytes);
    return error != 0
               ? error
               : domus_ask(stack, to_queue, &domus_packet_type, &asked, reply_with_answer_of_queue);
}

static const domus_pipeline lines = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, NULL}, {NULL, NULL}}};

#define SERVING(how, which)                                                                        \
    {                                                                                              \
        .name = "serving", .kind = DOMUS_CHANNELS, .pipeline = &lines,                             \
        .on_peer = (const domus_on_peer[]){                                                        \
            {.type = &domus_packet_type, .handle = (how), .marks = (which)}, {0}},                 \
    }

static const domus_behaviour forwarding = SERVING(forward_to_queue, 0);
static const domus_behaviour asking = SERVING(ask_queue_and_reply_its_answer, 0);
static const domus_behaviour lasting = SERVING(forward_to_queue, DOMUS_OUTLIVES);
static const domus_behaviour lasting_asking =
    SERVING(ask_queue_and_reply_its_answer, DOMUS_OUTLIVES);

/* The way of a request to the queue: how many actors pass it on, and whether these are routers. */
typedef struct way {
    const domus_behaviour *channel;
    uint32_t fronts;
    bool by_router;
    uint32_t thread; /* number of the queue's thread; all channels are on thread 0 */
} way;

static const way ways[] = {
    {&forwarding, 0, false, 0}, {&forwarding, 0, false, 1}, {&forwarding, 1, false, 0},
    {&forwarding, 1, false, 1}, {&forwarding, 2, false, 1}, {&forwarding, 1, true, 1},
    {&asking, 0, false, 0},     {&asking, 0, false, 1},     {&asking, 1, false, 0},
    {&asking, 2, false, 1},     {&asking, 2, true, 1},
};
#define WAYS (sizeof ways / sizeof ways[0])

static void spawn_queue_and_its_fronts(domus_system *system, const way *chosen)
{
    const domus_routing near = {.route = DOMUS_ROUTE_NEAR};

    ck_assert_int_eq(
        domus_outside_spawn_on(system, chosen->thread, &queueing, &(queue){.count = 0}, &to_queue),
        0);
    for (uint32_t i = 0; i < chosen->fronts; i++) {
        const front next = {to_queue};
        if (chosen->by_router)
            ck_assert_int_eq(
                domus_outside_spawn_many(system, &passing, &next, 2, &near, NULL, &to_queue), 0);
        else
            ck_assert_int_eq(domus_outside_spawn_on(system, i % 2, &passing, &next, &to_queue), 0);
    }
}

static domus_testkit *open_kit_with_queue(const way *chosen, uint64_t kept_ns)
{
    domus_config config;
    domt_net_make_config(&config);
    config.channel.half_close_kept_ns = kept_ns;
    domus_testkit *kit = domt_kit_new_listening(&config, "queue", AT, 1);
    domus_system *system = domus_testkit_system(kit);

    spawn_queue_and_its_fronts(system, chosen);
    ck_assert_int_eq(domus_serve(system, "queue", chosen->channel, NULL, NULL), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    return kit;
}

static void advance_kit(domus_testkit *kit, uint64_t ns)
{
    ck_assert_int_eq(domus_testkit_advance(kit, ns), 0);
}

/* Returns the profile of thread 0, on which all channels are. */
static domus_profile profile_of_thread_0(domus_testkit *kit)
{
    domus_profile profile;

    ck_assert_int_eq(domus_system_profile(domus_testkit_system(kit), 0, &profile), 0);
    return profile;
}

/* Returns a peer that has sent `text` and then FIN. */
static domus_peer *make_half_closed_peer(domus_testkit *kit, const char *text)
{
    domus_peer *peer = domt_kit_connect_peer(kit, AT);

    domt_kit_peer_send(peer, text);
    domus_peer_finish(peer);
    return peer;
}

/* Put a job into the queue, and check the answer of the queue. */
static void put_job_and_check_answer(domus_testkit *kit, const char *expected)
{
    domus_peer *peer = domt_kit_connect_peer(kit, AT);

    domt_kit_peer_send(peer, "PUT q precious\n");
    domt_kit_peer_expect(kit, peer, expected);
    domus_peer_close(peer);
}

/* --- tests ------------------------------------------------------------------------------------ */

typedef void (*leave)(domus_peer *peer);

/* Let workers reserve a job and leave after 100 ms; check that the job which comes 200 ms later is
 * handed to nobody. */
static void expect_workers_are_found_gone(const way *chosen, leave how)
{
    domus_testkit *kit = open_kit_with_queue(chosen, KEPT_NS);
    domus_peer *workers[WORKERS];

    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i] = domt_kit_connect_peer(kit, AT);
        domt_kit_peer_send(workers[i], "RESERVE q 60000\n");
    }
    advance_kit(kit, 100 * MS);
    for (uint32_t i = 0; i < WORKERS; i++)
        how(workers[i]);
    advance_kit(kit, 200 * MS);
    put_job_and_check_answer(kit, "stays, 3 gone\n");
    domus_testkit_free(kit);
}

DOMT_TEST(no_worker_that_has_left_is_handed_a_job)
{
    static const leave leaves[] = {domus_peer_close, domus_peer_reset};

    for (size_t i = 0; i < 2 * WAYS; i++)
        expect_workers_are_found_gone(&ways[i / 2], leaves[i % 2]);
}

DOMT_TEST(worker_that_is_still_connected_is_handed_the_job)
{
    for (size_t i = 0; i < WAYS; i++) {
        domus_testkit *kit = open_kit_with_queue(&ways[i], KEPT_NS);
        domus_peer *gone = domt_kit_connect_peer(kit, AT);
        domus_peer *worker = domt_kit_connect_peer(kit, AT);
        domt_kit_peer_send(gone, "RESERVE q 60000\n");
        advance_kit(kit, MS);
        domt_kit_peer_send(worker, "RESERVE q 60000\n");
        advance_kit(kit, MS);
        domus_peer_reset(gone);
        advance_kit(kit, SECOND);
        put_job_and_check_answer(kit, "handed out, 1 gone\n");
        domt_kit_peer_expect(kit, worker, "precious\n");
        domus_testkit_free(kit);
    }
}

/* A worker that has only finished sending still gets a job that comes soon. */
DOMT_TEST(half_closed_worker_is_handed_a_job_that_comes_soon)
{
    for (size_t i = 0; i < WAYS; i++) {
        domus_testkit *kit = open_kit_with_queue(&ways[i], KEPT_NS);
        domus_peer *worker = make_half_closed_peer(kit, "RESERVE q 60000\n");
        advance_kit(kit, 50 * MS);
        put_job_and_check_answer(kit, "handed out, 0 gone\n");
        domt_kit_peer_expect(kit, worker, "precious\n");
        ck_assert_int_eq(domus_peer_expect_end(worker, SECOND), 0);
        domus_testkit_free(kit);
    }
}

DOMT_TEST(half_closed_worker_waits_on_without_half_close_bound)
{
    for (size_t i = 0; i < WAYS; i++) {
        domus_testkit *kit = open_kit_with_queue(&ways[i], 0);
        domus_peer *worker = make_half_closed_peer(kit, "RESERVE q 60000\n");
        advance_kit(kit, 20 * SECOND);
        put_job_and_check_answer(kit, "handed out, 0 gone\n");
        domt_kit_peer_expect(kit, worker, "precious\n");
        domus_testkit_free(kit);
    }
}

DOMT_TEST(half_closed_peer_gets_result_of_an_actors_long_work)
{
    for (size_t i = 0; i < WAYS; i++) {
        domus_testkit *kit = open_kit_with_queue(&ways[i], KEPT_NS);
        domus_peer *peer = make_half_closed_peer(kit, "WORK\n");
        advance_kit(kit, 20 * SECOND);
        put_job_and_check_answer(kit, "handed out, 0 gone\n");
        domt_kit_peer_expect(kit, peer, "precious\n");
        domus_testkit_free(kit);
    }
}

/* Let a conversation work for a peer that is reset after 100 ms. Returns the result with which the
 * conversation's sleep ended. */
static int result_of_sleep_for_reset_peer(const way *chosen)
{
    domus_testkit *kit = open_kit_with_queue(chosen, KEPT_NS);
    domus_peer *peer = domt_kit_connect_peer(kit, AT);

    ended = 1;
    domt_kit_peer_send(peer, "SLEEP\n");
    advance_kit(kit, 100 * MS);
    domus_peer_reset(peer);
    advance_kit(kit, 10 * MS);
    int early = ended;
    advance_kit(kit, 2 * SECOND);
    ck_assert(early == 1 ? ended == 0 : early == ended);
    domus_testkit_free(kit);
    return ended;
}

DOMT_TEST(work_for_a_connection_that_is_gone_is_cancelled)
{
    for (size_t i = 0; i < WAYS; i++)
        ck_assert_int_eq(result_of_sleep_for_reset_peer(&ways[i]), -ECANCELED);
}

DOMT_TEST(work_that_outlives_its_connection_goes_on)
{
    for (size_t i = 0; i < WAYS; i++) {
        way chosen = ways[i];
        chosen.channel = chosen.channel == &forwarding ? &lasting : &lasting_asking;
        ck_assert_int_eq(result_of_sleep_for_reset_peer(&chosen), 0);
    }
}

/* A peer that has finished sending gets the answer, although the work for it takes long. */
DOMT_TEST(half_closed_peer_gets_the_answer_to_its_request)
{
    for (size_t i = 0; i < WAYS; i++) {
        domus_testkit *kit = open_kit_with_queue(&ways[i], KEPT_NS);
        domus_peer *peer = make_half_closed_peer(kit, "SLEEP\n");
        domt_kit_peer_expect(kit, peer, "slept\n");
        domus_testkit_free(kit);
    }
}

/* Each look at a half-closed peer wakes all conversations that work for it, so the library must
 * look seldom. */
DOMT_TEST(half_closed_peer_with_work_is_looked_at_seldom)
{
    static const way here = {&asking, 0, false, 0};
    domus_testkit *kit = open_kit_with_queue(&here, MS);
    /* the request lets its conversation sleep for a second */
    domus_peer *peer = make_half_closed_peer(kit, "SLEEP\n");
    advance_kit(kit, 900 * MS);
    ck_assert_uint_ge(profile_of_thread_0(kit).events, 5);
    ck_assert_uint_le(profile_of_thread_0(kit).events, 20);
    domt_kit_peer_expect(kit, peer, "slept\n");
    domus_testkit_free(kit);
}

/* A reset that comes after the FIN also ends the work for the peer. */
DOMT_TEST(reset_behind_the_end_of_a_peer_is_seen)
{
    for (size_t i = 0; i < WAYS; i++) {
        domus_testkit *kit = open_kit_with_queue(&ways[i], KEPT_NS);
        /* the request lets its conversation sleep for a second */
        domus_peer *peer = make_half_closed_peer(kit, "SLEEP\n");
        advance_kit(kit, 150 * MS);
        ck_assert_uint_eq(profile_of_thread_0(kit).channels_closed, 0);
        domus_peer_reset(peer);
        advance_kit(kit, 100 * MS);
        ck_assert_uint_eq(profile_of_thread_0(kit).channels_closed, 1);
        ck_assert_uint_eq(profile_of_thread_0(kit).channels_reset, 1);
        /* the channel does not count as cut, because the peer has ended the connection */
        ck_assert_uint_eq(profile_of_thread_0(kit).channels_cut, 0);
        domus_testkit_free(kit);
    }
}

static int remove_half_close_bound_and_sleep(domus_stack *stack, void *self,
                                             const domus_answer *answer)
{
    const domus_channel_options options = {.half_close_kept_ns = DOMUS_NONE};

    int error = domus_channel_set_options(stack, domus_channel_running(stack), &options);
    return error != 0 ? error : domus_sleep(stack, SECOND, reply_slept_or_error);
}

static int sleep_then_remove_half_close_bound(domus_stack *stack, void *self, const void *payload)
{
    return domus_sleep(stack, 10 * MS, remove_half_close_bound_and_sleep);
}

static const domus_behaviour changing = SERVING(sleep_then_remove_half_close_bound, 0);

DOMT_TEST(bound_of_kept_asks_may_be_lifted_while_a_peer_is_half_closed)
{
    static const way here = {&changing, 0, false, 0};
    domus_testkit *kit = open_kit_with_queue(&here, KEPT_NS);
    domus_peer *peer = make_half_closed_peer(kit, "a\n");
    domt_kit_peer_expect(kit, peer, "slept\n");
    domus_testkit_free(kit);
}

/* --- the channel's own actor keeps ------------------------------------------------------------ */

static int keep_request_without_answer(domus_stack *stack, void *self, const void *payload)
{
    domus_kept kept;

    return domus_keep(stack, &kept);
}

static const domus_behaviour keeping = SERVING(keep_request_without_answer, 0);

DOMT_TEST(channel_that_keeps_asks_of_a_half_closed_peer_ends)
{
    static const way here = {&keeping, 0, false, 0};
    domus_testkit *kit = open_kit_with_queue(&here, KEPT_NS);
    (void)make_half_closed_peer(kit, "RESERVE a\nRESERVE b\nRESERVE c\n");
    advance_kit(kit, 50 * MS);
    ck_assert_uint_eq(profile_of_thread_0(kit).channels_closed, 0);
    advance_kit(kit, 2 * SECOND);
    ck_assert_uint_eq(profile_of_thread_0(kit).channels_closed, 1);
    domus_testkit_free(kit);
}

DOMT_SUITE(60)
