/* Actors with an order on real threads (of the loop, of a pool, and of a detached actor), and in a
 * test kit. Waiting messages are taken by the order, and equal messages of one sender stay in the
 * order in which they were sent. */
#include "tests/runtime/pooled.h"

#include <domus/detached.h>
#include <domus/pools.h>
#include <domus/testkit.h>

#include <errno.h>
#include <pthread.h>

#define SENDERS 4u /* number of actors that send; a foreign thread sends, too */
#define LEVELS  5u
/* number of rounds, so small that no mailbox is ever full */
#define ROUNDS (uint32_t) DOMT_SCALE(500, 100)
#define CHUNK  40u

typedef struct parcel {
    uint32_t sender, level, number;
} parcel;

static const domus_type note_type = {.name = "note", .size = sizeof(parcel)};
static const domus_type ask_type = {.name = "ask", .size = sizeof(parcel)};
static const domus_type go_type = {.name = "go"};
static const domus_type hold_type = {.name = "hold"};

static int compare_messages_by_level(const domus_type *one_type, const void *one,
                                     const domus_type *other_type, const void *other)
{
    uint32_t level = one_type == &hold_type ? LEVELS : ((const parcel *)one)->level;
    uint32_t other_level = other_type == &hold_type ? LEVELS : ((const parcel *)other)->level;
    return level < other_level ? -1 : level > other_level;
}

/* --- the receiver ----------------------------------------------------------------------------- */

/* Counts of the receiver, which only the receiver itself writes. */
typedef struct seen {
    /* for each sender and level, the number of the notice that must come next, and of the ask */
    uint32_t expected[2][SENDERS + 1][LEVELS];
    uint32_t level; /* level of the message that was handled last */
    /* counts of messages; `up`: of those that came behind one of a higher level */
    uint64_t count, out_of_order, up;
} seen;

static seen it;
static _Atomic uint64_t received;
static _Atomic bool held, hold;

static void check_order_of_parcel(const parcel *got, bool is_ask)
{
    uint32_t *expected = &it.expected[is_ask][got->sender][got->level];

    it.out_of_order += *expected != got->number;
    *expected = got->number + 1;
    it.up += got->level < it.level;
    it.level = got->level;
    it.count++;
    atomic_fetch_add(&received, 1);
}

static int record_parcel(domus_stack *stack, void *self, const void *payload)
{
    check_order_of_parcel(payload, false);
    return 0;
}

static int record_parcel_and_reply(domus_stack *stack, void *self, const void *payload)
{
    check_order_of_parcel(payload, true);
    return domus_reply(stack, &go_type, NULL);
}

/* Handle a message by blocking the thread until all other messages have come. */
static int block_until_all_have_come(domus_stack *stack, void *self, const void *nothing)
{
    atomic_store(&held, true);
    while (atomic_load(&hold))
        domt_pause_ns(DOMT_MS);
    return 0;
}

static const domus_behaviour receiving = {
    .name = "receiving",
    .on = (const domus_on[]){{&note_type, record_parcel, 0},
                             {&ask_type, record_parcel_and_reply, 0},
                             {&hold_type, block_until_all_have_come, 0},
                             {0}},
    .order = compare_messages_by_level};

/* --- senders ---------------------------------------------------------------------------------- */

static domus_address receiver;
static _Atomic uint64_t sent, answered;

typedef struct sender {
    uint32_t id;
    uint32_t left; /* number of messages of each level and kind that the sender has still to send */
    uint32_t next;
} sender;

static int count_answered_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error == 0)
        atomic_fetch_add(&answered, 1);
    return answer->error;
}

/* Send a notice and an ask of each level, the least urgent level first, and go on in another
 * turn. */
static int send_one_parcel_of_each_level(domus_stack *stack, void *self, const void *nothing)
{
    sender *mine = self;
    int error = 0;

    for (uint32_t level = LEVELS; level-- > 0 && error == 0;) {
        const parcel out = {mine->id, level, mine->next};
        error = domus_notice(stack, receiver, &note_type, &out);
    }
    ck_assert_int_eq(error, 0);
    for (uint32_t level = LEVELS; level-- > 0;) {
        const parcel out = {mine->id, level, mine->next};
        ck_assert_int_eq(domus_ask_add(stack, receiver, &ask_type, &out, 0, 0), 0);
    }
    atomic_fetch_add(&sent, 2 * LEVELS);
    mine->next++;
    if (--mine->left != 0)
        ck_assert_int_eq(domus_notice(stack, domus_self(stack), &go_type, NULL), 0);
    return domus_wait_all(stack, count_answered_ask);
}

static const domus_behaviour sending = {
    .name = "sending",
    .state_size = sizeof(sender),
    .on = (const domus_on[]){{&go_type, send_one_parcel_of_each_level, 0}, {0}}};

static void reset_counts_of_test(void)
{
    it = (seen){.level = 0};
    atomic_store(&received, 0);
    atomic_store(&sent, 0);
    atomic_store(&answered, 0);
    atomic_store(&held, false);
}

static void spawn_senders(domus_system *system, uint32_t threads, uint32_t rounds)
{
    for (uint32_t i = 0; i < SENDERS; i++) {
        const sender state = {.id = i, .left = rounds};
        domus_address address = domt_spawn(system, i % threads, &sending, &state);
        domt_send_notice(system, address, &go_type, NULL);
    }
}

static void send_parcels_from_outside(domus_system *system, uint32_t rounds)
{
    for (uint32_t number = 0; number < rounds; number++) {
        for (uint32_t level = LEVELS; level-- > 0;) {
            const parcel out = {SENDERS, level, number};
            int error;
            while ((error = domus_outside_notice(system, receiver, &note_type, &out)) == -ENOBUFS)
                domt_pause_ns(DOMT_MS / 10);
            ck_assert_int_eq(error, 0);
        }
    }
}

/* Let all messages wait before any of them is taken, and check that they are taken by the order. */
static void check_waiting_messages_are_ordered(domus_system *system, uint32_t threads)
{
    const uint64_t all = (uint64_t)CHUNK * LEVELS * (2 * SENDERS + 1);

    atomic_store(&hold, true);
    domt_send_notice(system, receiver, &hold_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&held));
    spawn_senders(system, threads, CHUNK);
    send_parcels_from_outside(system, CHUNK);
    DOMT_WAIT_FOR(20, atomic_load(&sent) == (uint64_t)CHUNK * 2 * LEVELS * SENDERS);
    atomic_store(&hold, false);
    DOMT_WAIT_FOR(20, atomic_load(&received) == all);
    DOMT_WAIT_FOR(20, atomic_load(&answered) == (uint64_t)CHUNK * SENDERS);
}

static void check_counts_of_order(void)
{
    ck_assert_uint_eq(it.up, 0);
    ck_assert_uint_eq(it.out_of_order, 0);
}

DOMT_TEST(actor_of_the_loop_takes_all_that_waits_by_its_order)
{
    domus_config config = domt_config_of_threads(3);

    reset_counts_of_test();
    /* no belts, because a receiver takes messages from belts only some at a time */
    config.scheduler.belt_slots = 0;
    domus_system *system = domt_start_system(&config);
    receiver = domt_spawn(system, 2, &receiving, NULL);
    check_waiting_messages_are_ordered(system, 2);
    domt_end_system(system);
    check_counts_of_order();
}

DOMT_TEST(actor_of_a_pool_takes_all_that_waits_by_its_order)
{
    for (uint32_t i = 0; i < DOMT_POLICIES; i++) {
        reset_counts_of_test();
        domt_pooled_start_with_policy(domt_policies[i]->name, 1 + i % 2, 2);
        receiver = domt_pooled_spawn(domt_pooled.pool, &receiving, NULL);
        check_waiting_messages_are_ordered(domt_pooled.system, 2);
        domt_end_system(domt_pooled.system);
        check_counts_of_order();
    }
}

/* --- streams ---------------------------------------------------------------------------------- */

/* Let senders of all kinds send while the receiver takes messages. Check that no message is lost,
 * and that equal messages of one sender and kind keep their order. */
static void check_stream_is_complete_and_ordered(domus_system *system, uint32_t threads)
{
    const uint64_t all = (uint64_t)ROUNDS * LEVELS * (2 * SENDERS + 1);
    spawn_senders(system, threads, ROUNDS);
    send_parcels_from_outside(system, ROUNDS);
    DOMT_WAIT_FOR(60, atomic_load(&received) == all);
    DOMT_WAIT_FOR(60, atomic_load(&answered) == (uint64_t)ROUNDS * SENDERS);
}

DOMT_TEST(streams_to_an_actor_of_the_loop_are_whole)
{
    domus_config config = domt_config_of_threads(3);

    reset_counts_of_test();
    config.scheduler.steal.floor = 1;
    domus_system *system = domt_start_system(&config);
    receiver = domt_spawn(system, 0, &receiving, NULL);
    /* only two of the threads have senders, so the third one may run the receiver on a loan */
    check_stream_is_complete_and_ordered(system, 2);
    domt_end_system(system);
    ck_assert_uint_eq(it.out_of_order, 0);
}

DOMT_TEST(streams_to_an_actor_of_a_pool_are_whole)
{
    for (uint32_t i = 0; i < DOMT_POLICIES; i++) {
        reset_counts_of_test();
        domt_pooled_start_with_policy(domt_policies[i]->name, 2, 2);
        receiver = domt_pooled_spawn(domt_pooled.pool, &receiving, NULL);
        check_stream_is_complete_and_ordered(domt_pooled.system, 2);
        domt_end_system(domt_pooled.system);
        ck_assert_uint_eq(it.out_of_order, 0);
    }
}

/* --- a detached actor ------------------------------------------------------------------------- */

/* the levels of the messages in the order in which they were received, one decimal digit for each
 */
static _Atomic uint32_t levels_received;

static bool is_any_type_but_hold(const void *self, const void *frame, const domus_type *type,
                                 const void *payload)
{
    return type != &hold_type;
}

static const domus_pattern any = {NULL, is_any_type_but_hold};
static const domus_pattern notes = {(const domus_type *const[]){&note_type, NULL}, NULL};

static int receive_notes_and_then_any(domus_stack *stack, void *self, const void *nothing)
{
    domus_received got;

    (void)block_until_all_have_come(stack, self, nothing);
    for (uint32_t i = 0; i < 5; i++) {
        if (domus_receive_now(stack, i == 0 ? &notes : &any, 10 * DOMT_MS, &got) != 0)
            break;
        uint32_t level = ((const parcel *)got.payload)->level;
        atomic_store(&levels_received, atomic_load(&levels_received) * 10 + level);
        if (got.is_ask)
            ck_assert_int_eq(domus_reply(stack, &go_type, NULL), 0);
    }
    return 0;
}

static const domus_behaviour alone = {
    .name = "alone",
    .on = (const domus_on[]){{&hold_type, receive_notes_and_then_any, 0},
                             {&note_type, record_parcel, 0},
                             {0}},
    .order = compare_messages_by_level};

static int spawn_detached_receiver(domus_stack *stack, void *self, const void *nothing)
{
    const domus_spawn_options options = {.detached = true};
    int error = domus_spawn_with(stack, &alone, NULL, &options, &receiver);
    atomic_store(&sent, 1);
    return error;
}

static const domus_behaviour maker = {
    .name = "maker", .on = (const domus_on[]){{&go_type, spawn_detached_receiver, 0}, {0}}};

/* Send an ask with level 0 from a foreign thread. */
static void *ask_receiver_from_outside(void *system)
{
    const parcel out = {0, 0, 0};
    ck_assert_int_eq(domus_outside_ask(system, receiver, &ask_type, &out, 0, NULL), 0);
    return NULL;
}

DOMT_TEST(receives_that_return_take_mail_by_the_order)
{
    domus_config config = domt_config_of_threads(1);
    pthread_t asker;

    reset_counts_of_test();
    atomic_store(&hold, true);
    domus_system *system = domt_start_system(&config);
    domt_send_notice(system, domt_spawn(system, 0, &maker, NULL), &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&sent) == 1);
    domt_send_notice(system, receiver, &hold_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&held));
    for (uint32_t i = 0; i < 4; i++) {
        const parcel out = {0, 4 - i, 0};
        domt_send_notice(system, receiver, &note_type, &out);
    }
    ck_assert_int_eq(pthread_create(&asker, NULL, ask_receiver_from_outside, system), 0);
    domt_pause_ns(100 * DOMT_MS);
    atomic_store(&hold, false);
    ck_assert_int_eq(pthread_join(asker, NULL), 0);
    DOMT_WAIT_FOR(10, atomic_load(&levels_received) >= 10234);
    ck_assert_uint_eq(atomic_load(&levels_received), 10234);
    domt_end_system(system);
}

/* --- a test kit ------------------------------------------------------------------------------- */

static int check_order_in_kit_of_seed(uint64_t seed, void *context)
{
    domus_config config = domt_config_of_threads(2);
    domus_testkit *kit;
    domus_address address;

    reset_counts_of_test();
    if (domus_testkit_new(&config, seed, NULL, 0, &kit) != 0)
        return -1;
    domus_system *system = domus_testkit_system(kit);
    int error = domus_outside_spawn(system, &receiving, NULL, &receiver);
    for (uint32_t i = 0; i < 2 && error == 0; i++) {
        const sender state = {.id = i, .left = 20};
        error = domus_outside_spawn(system, &sending, &state, &address);
        if (error == 0)
            error = domus_outside_notice(system, address, &go_type, NULL);
    }
    if (error == 0)
        error = domus_testkit_run(kit);
    if (error == 0)
        error = domus_testkit_stop(kit);
    domus_testkit_free(kit);
    return error != 0 || it.out_of_order != 0 || it.count != UINT64_C(2) * 2 * 20 * LEVELS;
}

DOMT_TEST(order_holds_in_a_test_kit_for_each_seed)
{
    uint64_t seed;
    ck_assert_int_eq(
        domus_testkit_sweep(1, DOMT_SCALE(300, 50), check_order_in_kit_of_seed, NULL, &seed), 0);
}

DOMT_SUITE(300)
