/* house/directory/letters.c: each subscriber hears once of each dead letter and refusal, by a
 * letter. A subscriber gets no more letters than its mailbox takes, and no letters about
 * letters. */
#include "tests/runtime/running.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static const domus_type note_type = {.name = "note", .size = sizeof(uint64_t)};
static const domus_type unknown_type = {.name = "unknown"};
static const domus_type send_type = {.name = "send", .size = sizeof(domus_address)};
static const domus_type ask_type = {.name = "ask", .size = sizeof(domus_address)};
static const domus_type tune_type = {.name = "tune", .size = sizeof(uint32_t)};
static const domus_type gate_type = {.name = "gate"};
static const domus_type tick_type = {.name = "tick"};
static const domus_type arm_type = {.name = "arm"};
static const domus_type join_type = {.name = "join"};
static const domus_type publish_type = {.name = "publish"};

/* numbers of letters that came, by reason (dead or refused) and kind of message */
static atomic_uint_fast64_t letters[2][5];
static atomic_int last_why;
static _Atomic(const domus_type *) last_type;
static _Atomic(struct domi_house *) last_receiver;
static _Atomic(struct domi_house *) last_sender;
static atomic_int tuned;
static atomic_int noted;
static atomic_int gated;
static atomic_bool open;

static int record_letter(domus_stack *stack, void *self, const void *payload)
{
    const domus_letter *letter = payload;

    atomic_store(&last_why, letter->why);
    atomic_store(&last_type, letter->type);
    atomic_store(&last_receiver, letter->receiver.house);
    atomic_store(&last_sender, letter->sender.house);
    atomic_fetch_add(&letters[letter->what == DOMUS_LETTERS_REFUSED][letter->kind], 1);
    return 0;
}

static int subscribe_in_handler(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&tuned, domus_letters_subscribe(stack, *(const uint32_t *)payload) + 1000);
    return 0;
}

static int block_at_gate(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&gated, 1);
    while (!atomic_load(&open))
        domt_pause_ns(DOMT_MS / 10);
    return 0;
}

static const domus_behaviour listener = {
    .name = "listener",
    .on = (const domus_on[]){{&domus_letter_type, record_letter, 0},
                             {&tune_type, subscribe_in_handler, 0},
                             {&gate_type, block_at_gate, 0},
                             {0}}};

static int count_handled_notice(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&noted, 1);
    return 0;
}

static int send_notice_of_unknown_type(domus_stack *stack, void *self, const void *payload)
{
    domus_address to;

    memcpy(&to, payload, sizeof to);
    ck_assert_int_eq(domus_notice(stack, to, &unknown_type, NULL), 0);
    return 0;
}

static int count_answer_with_error(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_fetch_add(&noted, answer->error != 0);
    return 0;
}

static int send_ask_of_unknown_type(domus_stack *stack, void *self, const void *payload)
{
    domus_address to;

    memcpy(&to, payload, sizeof to);
    return domus_ask(stack, to, &unknown_type, NULL, count_answer_with_error);
}

static int arm_timer_of_unknown_tick(domus_stack *stack, void *self, const void *payload)
{
    return domus_after(stack, DOMT_MS, &tick_type, NULL, NULL);
}

static int join_room_in_handler(domus_stack *stack, void *self, const void *payload)
{
    domus_group group;

    ck_assert_int_eq(domus_group_open(stack, "room", &group), 0);
    ck_assert_int_eq(domus_group_join(stack, group), 0);
    atomic_fetch_add(&tuned, 1);
    return 0;
}

static int publish_to_room(domus_stack *stack, void *self, const void *payload)
{
    domus_group group;

    ck_assert_int_eq(domus_group_open(stack, "room", &group), 0);
    ck_assert_int_eq(domus_publish(stack, group, &unknown_type, NULL), 0);
    return 0;
}

static const domus_behaviour actor = {
    .name = "actor",
    .on = (const domus_on[]){{&note_type, count_handled_notice, 0},
                             {&send_type, send_notice_of_unknown_type, 0},
                             {&ask_type, send_ask_of_unknown_type, 0},
                             {&arm_type, arm_timer_of_unknown_tick, 0},
                             {&join_type, join_room_in_handler, 0},
                             {&publish_type, publish_to_room, 0},
                             {&gate_type, block_at_gate, 0},
                             {0}},
};

static uint64_t sum_letters_of_choice(uint32_t what)
{
    uint64_t sum = 0;

    for (int kind = 0; kind < 5; kind++)
        sum += atomic_load(&letters[what == DOMUS_LETTERS_REFUSED][kind]);
    return sum;
}

static uint64_t count_missed_letters(const domus_system *system)
{
    domus_profile outside;

    ck_assert_int_eq(domus_outside_profile(system, &outside), 0);
    return outside.letters_missed + domt_profile_of_all_threads(system).letters_missed;
}

static uint64_t count_refused_messages(const domus_system *system)
{
    domus_profile outside;

    ck_assert_int_eq(domus_outside_profile(system, &outside), 0);
    return outside.refusals + domt_profile_of_all_threads(system).refusals;
}

DOMT_TEST(a_dead_letter_says_what_it_was_and_why)
{
    domus_system *system = domt_start_system_of_threads(2);
    domus_address to = domt_spawn(system, 0, &actor, NULL);
    domus_address from = domt_spawn(system, 1, &actor, NULL);
    domus_address hears = domt_spawn(system, 1, &listener, NULL);

    /* this dead letter comes before there is a subscriber, so nobody gets a letter about it */
    domt_send_notice(system, to, &unknown_type, NULL);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).dead_letters == 1);
    ck_assert_int_eq(domus_outside_letters(system, hears, DOMUS_LETTERS_DEAD), 0);

    domt_send_notice(system, from, &send_type, &to);
    DOMT_WAIT_FOR(10, sum_letters_of_choice(DOMUS_LETTERS_DEAD) == 1);
    ck_assert_uint_eq(atomic_load(&letters[0][DOMUS_LETTER_NOTICE]), 1);
    ck_assert_int_eq(atomic_load(&last_why), -EOPNOTSUPP);
    ck_assert(atomic_load(&last_type) == &unknown_type);
    ck_assert_ptr_eq(atomic_load(&last_receiver), to.house);
    ck_assert_ptr_eq(atomic_load(&last_sender), from.house);

    domt_send_notice(system, from, &ask_type, &to);
    DOMT_WAIT_FOR(10, atomic_load(&letters[0][DOMUS_LETTER_ASK]) == 1);
    ck_assert_ptr_eq(atomic_load(&last_sender), from.house);
    /* beside the letter, the asker gets an exception */
    DOMT_WAIT_FOR(10, atomic_load(&noted) == 1);

    domt_send_notice(system, to, &arm_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&letters[0][DOMUS_LETTER_EVENT]) == 1);
    ck_assert(atomic_load(&last_type) == &tick_type);
    ck_assert_ptr_null(atomic_load(&last_sender));

    /* Messages that wait in the mailbox of an actor when it stops become dead letters. */
    domt_send_notice(system, to, &gate_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&gated) == 1);
    for (uint64_t i = 0; i < 10; i++)
        domt_send_notice(system, to, &note_type, &i);
    ck_assert_int_eq(domus_outside_stop(system, to), 0);
    atomic_store(&open, true);
    DOMT_WAIT_FOR(10,
                  (uint64_t)atomic_load(&noted) + atomic_load(&letters[0][DOMUS_LETTER_NOTICE]) ==
                      10 + 2);
    ck_assert_int_eq(atomic_load(&last_why), -ESTALE);
    ck_assert_uint_eq(sum_letters_of_choice(DOMUS_LETTERS_REFUSED), 0);
    ck_assert_uint_eq(count_missed_letters(system), 0);
    domt_end_system(system);
}

/* All members share the payload of a publication, but a dead letter of it still names the
 * publisher. */
DOMT_TEST(a_dead_letter_of_a_publication_names_the_publisher)
{
    domus_system *system = domt_start_system_of_threads(2);
    domus_address to = domt_spawn(system, 0, &actor, NULL);
    domus_address from = domt_spawn(system, 1, &actor, NULL);
    domus_address hears = domt_spawn(system, 1, &listener, NULL);

    atomic_store(&tuned, 0);
    ck_assert_int_eq(domus_outside_letters(system, hears, DOMUS_LETTERS_DEAD), 0);
    domt_send_notice(system, to, &join_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&tuned) == 1);
    domt_send_notice(system, from, &publish_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&letters[0][DOMUS_LETTER_NOTICE]) == 1);
    ck_assert(atomic_load(&last_type) == &unknown_type);
    ck_assert_ptr_eq(atomic_load(&last_receiver), to.house);
    ck_assert_ptr_eq(atomic_load(&last_sender), from.house);
    domt_end_system(system);
}

#define BOUND 64

DOMT_TEST(each_counted_refusal_comes_as_a_letter)
{
    domus_system *system = domt_start_system_of_threads(2);
    const domus_spawn_options narrow = {
        .placement = DOMUS_ON_THREAD, .thread = 0, .mailbox_max = BOUND};
    domus_address to = {NULL, 0};
    domus_address hears = domt_spawn(system, 1, &listener, NULL);
    uint64_t refused = 0;

    ck_assert_int_eq(domus_outside_spawn_with(system, &actor, NULL, &narrow, &to), 0);
    ck_assert_int_eq(domus_outside_letters(system, hears, DOMUS_LETTERS_REFUSED), 0);
    domt_send_notice(system, to, &gate_type, NULL);
    for (uint64_t i = 0; i < 1000; i++)
        refused += domus_outside_notice(system, to, &note_type, &i) == -ENOBUFS;
    ck_assert_uint_ge(refused, 1000 - 2 * BOUND - 1);
    DOMT_WAIT_FOR(10, sum_letters_of_choice(DOMUS_LETTERS_REFUSED) == refused);
    ck_assert_uint_eq(count_refused_messages(system), refused);
    ck_assert_int_eq(atomic_load(&last_why), -ENOBUFS);
    ck_assert_ptr_eq(atomic_load(&last_receiver), to.house);
    ck_assert_uint_eq(sum_letters_of_choice(DOMUS_LETTERS_DEAD), 0);
    atomic_store(&open, true);
    domt_end_system(system);
}

/* While the subscriber is blocked, letters wait in its mailbox up to the bound; further ones are
 * only counted, and cause no letters themselves. */
DOMT_TEST(a_slow_subscriber_bounds_what_is_kept_for_him)
{
    domus_system *system = domt_start_system_of_threads(2);
    const domus_spawn_options narrow = {
        .placement = DOMUS_ON_THREAD, .thread = 1, .mailbox_max = BOUND};
    domus_address to = domt_spawn(system, 0, &actor, NULL);
    domus_address hears = {NULL, 0};

    ck_assert_int_eq(domus_outside_spawn_with(system, &listener, NULL, &narrow, &hears), 0);
    ck_assert_int_eq(
        domus_outside_letters(system, hears, DOMUS_LETTERS_DEAD | DOMUS_LETTERS_REFUSED), 0);
    domt_send_notice(system, hears, &gate_type, NULL);
    for (int i = 0; i < 1000; i++)
        domt_send_notice(system, to, &unknown_type, NULL);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).dead_letters == 1000);
    ck_assert_uint_ge(count_missed_letters(system), 1000 - 2 * BOUND - 1);
    atomic_store(&open, true);
    DOMT_WAIT_FOR(10,
                  sum_letters_of_choice(DOMUS_LETTERS_DEAD) + count_missed_letters(system) == 1000);
    /* no letters tell of letters that the subscriber's mailbox has refused */
    ck_assert_uint_eq(sum_letters_of_choice(DOMUS_LETTERS_REFUSED), 0);
    domt_end_system(system);
}

DOMT_TEST(subscriber_that_has_ended_or_unsubscribed_gets_no_letters)
{
    domus_system *system = domt_start_system_of_threads(2);
    domus_address to = domt_spawn(system, 0, &actor, NULL);
    domus_address hears = domt_spawn(system, 1, &listener, NULL);
    uint32_t what = DOMUS_LETTERS_DEAD;

    domt_send_notice(system, hears, &tune_type, &what);
    DOMT_WAIT_FOR(10, atomic_load(&tuned) == 1000);
    domt_send_notice(system, to, &unknown_type, NULL);
    DOMT_WAIT_FOR(10, sum_letters_of_choice(DOMUS_LETTERS_DEAD) == 1);
    what = 4;
    domt_send_notice(system, hears, &tune_type, &what);
    DOMT_WAIT_FOR(10, atomic_load(&tuned) == 1000 - EINVAL);
    atomic_store(&tuned, 0);
    what = 0;
    domt_send_notice(system, hears, &tune_type, &what);
    DOMT_WAIT_FOR(10, atomic_load(&tuned) == 1000);
    domt_send_notice(system, to, &unknown_type, NULL);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).dead_letters == 2);

    ck_assert_int_eq(domus_outside_letters(system, hears, DOMUS_LETTERS_DEAD), 0);
    ck_assert_int_eq(domus_outside_stop(system, hears), 0);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 1).stops == 1);
    for (int i = 0; i < 10; i++)
        domt_send_notice(system, to, &unknown_type, NULL);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).dead_letters == 12);
    /* the first letter did not reach the subscriber, which had ended, and the subscription was
     * removed */
    ck_assert_uint_eq(count_missed_letters(system), 1);
    ck_assert_uint_eq(sum_letters_of_choice(DOMUS_LETTERS_DEAD), 1);
    domt_end_system(system);
}

DOMT_TEST(letters_reach_all_subscribers_up_to_a_maximum)
{
    domus_system *system = domt_start_system_of_threads(2);
    domus_address to = domt_spawn(system, 0, &actor, NULL);
    domus_address hears[DOMUS_LETTERS_SUBSCRIBERS_MAX + 1];

    for (uint32_t i = 0; i <= DOMUS_LETTERS_SUBSCRIBERS_MAX; i++) {
        hears[i] = domt_spawn(system, i % 2, &listener, NULL);
        ck_assert_int_eq(domus_outside_letters(system, hears[i], DOMUS_LETTERS_DEAD),
                         i < DOMUS_LETTERS_SUBSCRIBERS_MAX ? 0 : -ENOSPC);
    }
    ck_assert_int_eq(domus_outside_letters(system, hears[0], DOMUS_LETTERS_DEAD), 0);
    ck_assert_int_eq(domus_outside_letters(system, (domus_address){NULL, 0}, 1), -EINVAL);
    ck_assert_int_eq(domus_outside_letters(system, hears[0], 4), -EINVAL);
    domt_send_notice(system, to, &unknown_type, NULL);
    DOMT_WAIT_FOR(10, sum_letters_of_choice(DOMUS_LETTERS_DEAD) == DOMUS_LETTERS_SUBSCRIBERS_MAX);
    ck_assert_int_eq(domus_outside_letters(system, hears[3], 0), 0);
    ck_assert_int_eq(
        domus_outside_letters(system, hears[DOMUS_LETTERS_SUBSCRIBERS_MAX], DOMUS_LETTERS_DEAD), 0);
    domt_send_notice(system, to, &unknown_type, NULL);
    DOMT_WAIT_FOR(10,
                  sum_letters_of_choice(DOMUS_LETTERS_DEAD) == 2 * DOMUS_LETTERS_SUBSCRIBERS_MAX);
    domt_end_system(system);
}

struct flooder {
    domus_system *system;
    domus_address to;
    uint64_t sent;
};

static void *send_flood_of_unknown_notices(void *self_)
{
    struct flooder *self = self_;

    for (int i = 0; i < (DOMT_SANITIZED ? 500 : 5000); i++)
        self->sent += domus_outside_notice(self->system, self->to, &unknown_type, NULL) == 0;
    return NULL;
}

/* One of the three subscribers has no handler for letters, so letters to it are dead letters
 * themselves. */
DOMT_TEST(letters_of_many_threads_add_up)
{
    domus_system *system = domt_start_system_of_threads(2);
    struct flooder flooders[4];
    pthread_t threads[4];
    uint64_t sent = 0;

    for (uint32_t i = 0; i < 2; i++)
        ck_assert_int_eq(domus_outside_letters(system, domt_spawn(system, i, &listener, NULL),
                                               DOMUS_LETTERS_DEAD),
                         0);
    ck_assert_int_eq(
        domus_outside_letters(system, domt_spawn(system, 0, &actor, NULL), DOMUS_LETTERS_DEAD),
        0); /* this subscriber's behaviour has no handler for letters */
    for (uint32_t i = 0; i < 4; i++) {
        flooders[i] = (struct flooder){system, domt_spawn(system, i % 2, &actor, NULL), 0};
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, send_flood_of_unknown_notices, &flooders[i]), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        sent += flooders[i].sent;
    }
    /* Each message becomes a dead letter. Two subscribers get a letter about it, and the letter to
     * the third subscriber becomes a dead letter, too. */
    DOMT_WAIT_FOR(30, sum_letters_of_choice(DOMUS_LETTERS_DEAD) +
                              domt_profile_of_all_threads(system).dead_letters +
                              count_missed_letters(system) >=
                          4 * sent);
    ck_assert_uint_eq(sum_letters_of_choice(DOMUS_LETTERS_DEAD) +
                          domt_profile_of_all_threads(system).dead_letters +
                          count_missed_letters(system),
                      4 * sent);
    domt_end_system(system);
}

DOMT_SUITE(60)
