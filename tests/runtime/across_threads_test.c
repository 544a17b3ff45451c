/* Messages between actors on several threads: order, conservation, replies, and parks at every
 * message.
 *
 * The tests run on two and on four threads, which are more than some machines have CPUs: then
 * threads are interrupted at any place, which is what these tests want. */
#include "tests/runtime/running.h"

#include <errno.h>

#define THREADS_MAX 4u
/* messages that each sender sends to each receiver */
#define MESSAGES (DOMT_SANITIZED ? 4000u : 40000u)
#define BATCH    50u

static _Atomic uint64_t received, disorder, refused, finished, released;

/* --- order and conservation ------------------------------------------------------------------- */

struct numbered {
    uint32_t sender;
    uint32_t number;
};

static void count_released_message(void *payload)
{
    atomic_fetch_add(&released, 1);
}

static const domus_type numbered_type = {
    .name = "numbered", .size = sizeof(struct numbered), .release = count_released_message};
static const domus_type more_type = {.name = "more"};

struct receiver {
    /* number of the message that the receiver expects next from each sender */
    uint32_t next[THREADS_MAX];
};

static int check_order_of_message(domus_stack *stack, void *self_, const void *payload)
{
    struct receiver *self = self_;
    const struct numbered *message = payload;

    (void)domus_take(stack);
    if (message->number != self->next[message->sender])
        atomic_fetch_add(&disorder, 1);
    self->next[message->sender] = message->number + 1;
    atomic_fetch_add_explicit(&received, 1, memory_order_relaxed);
    return 0;
}

static const domus_behaviour receiver = {
    .name = "receiver",
    .state_size = sizeof(struct receiver),
    .on = (const domus_on[]){{&numbered_type, check_order_of_message, 0}, {0}}};

struct sender {
    uint32_t index;
    uint32_t receivers;
    domus_address to[THREADS_MAX];
    uint32_t next[THREADS_MAX];
};

/* Send a batch of messages to each receiver. A receiver that refuses gets the same numbers again
 * with the next batch, a millisecond later. */
static int send_batch_to_each_receiver(domus_stack *stack, void *self_, const void *payload)
{
    struct sender *self = self_;
    bool full = false;
    bool left = false;

    for (uint32_t r = 0; r < self->receivers; r++) {
        int result = 0;

        for (uint32_t i = 0; i < BATCH && self->next[r] < MESSAGES && result == 0; i++) {
            struct numbered message = {self->index, self->next[r]};
            result = domus_notice(stack, self->to[r], &numbered_type, &message);
            self->next[r] += result == 0;
        }
        full = full || result == -ENOBUFS;
        left = left || self->next[r] < MESSAGES;
    }
    if (full)
        atomic_fetch_add(&refused, 1);
    if (!left)
        atomic_fetch_add(&finished, 1);
    else if (full)
        return domus_after(stack, DOMT_MS, &more_type, NULL, NULL);
    return left ? domus_notice(stack, domus_self(stack), &more_type, NULL) : 0;
}

static const domus_behaviour sender = {
    .name = "sender",
    .state_size = sizeof(struct sender),
    .on = (const domus_on[]){{&more_type, send_batch_to_each_receiver, 0}, {0}}};

static void check_notices_between_threads(uint32_t threads, uint32_t mailbox_max)
{
    domus_config config = domt_config_of_threads(threads);
    struct sender state = {.receivers = threads};
    domus_address senders[THREADS_MAX];

    config.scheduler.mailbox_max = mailbox_max;
    domus_system *system = domt_start_system(&config);
    atomic_store(&received, 0);
    atomic_store(&finished, 0);
    for (uint32_t i = 0; i < threads; i++)
        state.to[i] = domt_spawn(system, i, &receiver, NULL);
    for (; state.index < threads; state.index++)
        senders[state.index] = domt_spawn(system, state.index, &sender, &state);
    for (uint32_t i = 0; i < threads; i++)
        domt_send_notice(system, senders[i], &more_type, NULL);

    uint64_t all = (uint64_t)threads * threads * MESSAGES;
    DOMT_WAIT_FOR(60, atomic_load(&received) == all);
    ck_assert_uint_eq(atomic_load(&finished), threads);
    ck_assert_uint_eq(atomic_load(&disorder), 0);
    ck_assert_uint_eq(atomic_load(&released), 0);
    ck_assert_uint_eq(domt_profile_of_all_threads(system).dead_letters, 0);
    domt_end_system(system);
}

DOMT_TEST(order_of_each_sender_holds_and_nothing_is_lost_on_two_threads)
{
    check_notices_between_threads(2, 32768);
}

DOMT_TEST(order_of_each_sender_holds_and_nothing_is_lost_on_four_threads)
{
    check_notices_between_threads(4, 32768);
}

DOMT_TEST(order_holds_though_full_mailboxes_refuse)
{
    check_notices_between_threads(3, 64);
    ck_assert_uint_gt(atomic_load(&refused), 0);
}

/* --- asks ------------------------------------------------------------------------------------- */

#define ASKS (DOMT_SANITIZED ? 3000u : 20000u) /* number of asks that each asker sends */

struct question {
    uint64_t number;
    /* the actor that answers the question in place of the receiver; nobody: the receiver answers */
    domus_address next;
};

static const domus_type question_type = {.name = "question", .size = sizeof(struct question)};
static const domus_type answer_type = {.name = "answer", .size = sizeof(uint64_t)};
static _Atomic uint64_t answers, wrong;
static atomic_bool going; /* true: actors may end, so an ask may fail with -ESTALE */

static int reply_with_answer_plus_one(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error != 0)
        return answer->error;
    uint64_t value = *(const uint64_t *)answer->payload + 1;
    return domus_reply(stack, &answer_type, &value);
}

/* Answer a question: every third question asks another actor first, and every seventh one is
 * answered with an error. */
static int answer_question(domus_stack *stack, void *self, const void *payload)
{
    struct question question = *(const struct question *)payload;

    if (question.number % 7 == 0)
        return -EDOM;
    if (question.next.house != NULL && question.number % 3 == 0) {
        domus_address next = question.next;
        question.next = (domus_address){NULL, 0};
        return domus_ask(stack, next, &question_type, &question, reply_with_answer_plus_one);
    }
    uint64_t value = question.number * 10;
    return domus_reply(stack, &answer_type, &value);
}

static const domus_behaviour answerer = {
    .name = "answerer", .on = (const domus_on[]){{&question_type, answer_question, 0}, {0}}};

struct asker {
    domus_address to[THREADS_MAX];
    uint32_t count;
    uint32_t asked;
};

struct asking {
    uint64_t number;
};

static int check_answer_and_ask_next(domus_stack *stack, void *self_, const domus_answer *answer)
{
    struct asker *self = self_;
    const struct asking *asking = domus_frame(stack);
    bool right = false;

    if (answer->error == -ESTALE)
        right = atomic_load(&going);
    else if (asking->number % 7 == 0)
        right = answer->error == -EDOM;
    else if (answer->error == 0 && answer->type == &answer_type)
        right =
            *(const uint64_t *)answer->payload == asking->number * 10 + (asking->number % 3 == 0);
    if (!right)
        atomic_fetch_add(&wrong, 1);
    atomic_fetch_add(&answers, 1);
    return self->asked < ASKS ? domus_notice(stack, domus_self(stack), &more_type, NULL) : 0;
}

/* Begin an ask. 16 conversations of an asker begin, and each begins the next one when it ends. */
static int begin_next_ask(domus_stack *stack, void *self_, const void *payload)
{
    struct asker *self = self_;
    struct asking *asking = domus_frame(stack);

    if (self->asked >= ASKS)
        return 0;
    asking->number = ++self->asked;
    struct question question = {.number = asking->number,
                                .next = self->to[(asking->number + 1) % self->count]};
    return domus_ask(stack, self->to[asking->number % self->count], &question_type, &question,
                     check_answer_and_ask_next);
}

static const domus_behaviour asker = {
    .name = "asker",
    .state_size = sizeof(struct asker),
    .on = (const domus_on[]){{&more_type, begin_next_ask, sizeof(struct asking)}, {0}}};

static void check_asks_between_threads(uint32_t threads)
{
    domus_system *system = domt_start_system_of_threads(threads);
    struct asker state = {.count = threads};

    for (uint32_t i = 0; i < threads; i++)
        state.to[i] = domt_spawn(system, i, &answerer, NULL);
    for (uint32_t i = 0; i < threads; i++) {
        domus_address address = domt_spawn(system, i, &asker, &state);
        for (int k = 0; k < 16; k++)
            domt_send_notice(system, address, &more_type, NULL);
    }
    DOMT_WAIT_FOR(60, atomic_load(&answers) == (uint64_t)threads * ASKS);
    domt_pause_ns(5 * DOMT_MS); /* wait for as long as a second answer might take to come */
    ck_assert_uint_eq(atomic_load(&answers), (uint64_t)threads * ASKS);
    ck_assert_uint_eq(atomic_load(&wrong), 0);
    domus_profile sums = domt_profile_of_all_threads(system);
    ck_assert_uint_eq(sums.replies + sums.exceptions, sums.asks);
    ck_assert_uint_eq(sums.dead_letters, 0);
    domt_end_system(system);
}

DOMT_TEST(replies_reach_their_askers_on_two_threads)
{
    check_asks_between_threads(2);
}

DOMT_TEST(replies_reach_their_askers_on_four_threads)
{
    check_asks_between_threads(4);
}

/* The actor that is asked ends while asks are under way. Each ask resumes once, with its answer or
 * -ESTALE. */
DOMT_TEST(asks_to_an_actor_that_ends_resume_their_asker_once)
{
    domus_system *system = domt_start_system_of_threads(2);
    uint64_t expected = 0;

    atomic_store(&going, true);

    for (int round = 0; round < 50; round++) {
        struct asker state = {.count = 1, .asked = ASKS - 64};
        state.to[0] = domt_spawn(system, 0, &answerer, NULL);
        domus_address address = domt_spawn(system, 1, &asker, &state);
        for (int k = 0; k < 16; k++)
            domt_send_notice(system, address, &more_type, NULL);
        ck_assert_int_eq(domus_outside_stop(system, state.to[0]), 0);
        expected += 64;
        DOMT_WAIT_FOR(20, atomic_load(&answers) == expected);
    }
    domus_profile sums = domt_profile_of_all_threads(system);
    ck_assert_uint_ge(sums.replies + sums.exceptions, expected);
    ck_assert_uint_gt(sums.exceptions, 0);
    ck_assert_uint_eq(atomic_load(&wrong), 0);
    domt_end_system(system);
}

/* --- a park at every message ------------------------------------------------------------------ */

#define ROUND_TRIPS DOMT_SCALE(20000u, 4000u)

static const domus_type ball_type = {.name = "ball", .size = sizeof(uint64_t)};
static _Atomic uint64_t hits;

struct player {
    domus_address partner;
};

static int pass_ball_to_partner(domus_stack *stack, void *self_, const void *payload)
{
    const struct player *self = self_;
    uint64_t left = *(const uint64_t *)payload - 1;

    atomic_fetch_add(&hits, 1);
    if (left == 0)
        return 0;
    return domus_notice(stack, self->partner.house != NULL ? self->partner : domus_sender(stack),
                        &ball_type, &left);
}

static const domus_behaviour player = {
    .name = "player",
    .state_size = sizeof(struct player),
    .on = (const domus_on[]){{&ball_type, pass_ball_to_partner, 0}, {0}}};

static uint64_t count_handled_notices(domus_system *system)
{
    return domt_profile_of_thread(system, 0).notices + domt_profile_of_thread(system, 1).notices;
}

static void play_balls_between_two_threads(uint64_t stand_in_ns)
{
    domus_config config = domt_config_of_threads(2);

    config.scheduler.idle.stand_in_ns = stand_in_ns;
    atomic_store(&hits, 0);
    domus_system *system = domt_start_system(&config);
    domus_address one = domt_spawn(system, 0, &player, NULL);
    domus_address two = domt_spawn(system, 1, &player, &(struct player){one});
    uint64_t left = 2 * ROUND_TRIPS;

    domt_send_notice(system, two, &ball_type, &left);
    DOMT_WAIT_FOR(60, atomic_load(&hits) == left);
    /* A thread adds the messages of a run to its counters at the end of the run, so the counters
     * grow after the last hit of a ball. */
    DOMT_WAIT_FOR(60, count_handled_notices(system) == left);
    domus_profile first = domt_profile_of_thread(system, 0);
    domus_profile second = domt_profile_of_thread(system, 1);
    ck_assert_uint_eq(first.cap_wakeups_with_work + second.cap_wakeups_with_work, 0);
    /* M12: nobody wakes a thread that does not sleep */
    ck_assert_uint_le(first.wakeups_sent, second.parks);
    ck_assert_uint_le(second.wakeups_sent, first.parks);
    ck_assert_uint_le(first.wakeups_received, first.parks);
    ck_assert_uint_le(second.wakeups_received, second.parks);
    if (stand_in_ns == 0)
        ck_assert_uint_gt(first.parks + second.parks, ROUND_TRIPS / 2);
    else
        ck_assert_uint_gt(first.steals + second.steals, 0);
    domt_end_system(system);
}

DOMT_TEST(two_threads_park_and_wake_each_other_20000_times)
{
    play_balls_between_two_threads(0);
}

DOMT_TEST(two_threads_stand_in_for_each_other)
{
    play_balls_between_two_threads(DOMT_MS);
}

DOMT_SUITE(90)
