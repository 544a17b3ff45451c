/* Threads that own a manager each, whose houses send numbered notices to each other by belts,
 * inboxes and home lanes, are lent, and sleep.
 *
 * Each house counts what it has sent to each other house, and checks that the numbers that it gets
 * from each house follow each other (M6). A message that is handled lets its receiver send the next
 * one, until each house has sent its share. Rings are small, so that they are full again and again,
 * and some messages are too large for a belt. Threads that have nothing to do steal one house, or
 * park as the threads of the loop do; a sleep that only its time-out ends while there was work is a
 * lost wake-up. At the end as many messages were handled as were put (conservation). */
#include "base/park.h"
#include "base/random.h"
#include "house/conversation/stack.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/incoming.h"
#include "house/dispatch/loan.h"
#include "house/dispatch/manage.h"
#include "house/dispatch/phases.h"
#include "house/family/life.h"
#include "house/message/belt.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "runtime/os/futex.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MESSAGES      DOMT_SCALE(UINT64_C(10000000), UINT64_C(300000))
#define MESSAGES_LONG DOMT_SCALE(UINT64_C(1000000000), UINT64_C(10000000))
#define THREADS       3u
#define HOUSES        12u  /* number of actors on all threads together */
#define UNDER_WAY     96u  /* messages of each house that are under way at the start of a run */
#define SHARE         256u /* messages that a thread takes from the budget at once */
#define SLEEP_S       2

typedef struct numbered {
    uint32_t from;
    uint32_t number;
    /* repeats the number, so a slot of a belt that is read while it is written is found */
    uint64_t check;
} numbered;

typedef struct big_numbered {
    numbered numbered;
    unsigned char ballast[100];
} big_numbered;

/* The state of a house, which only the thread that runs the house uses. */
typedef struct peer {
    uint32_t index;
    uint32_t sent[HOUSES];
    uint32_t expected[HOUSES];
    uint64_t handled;
    uint64_t disordered;
    uint64_t torn;
    uint64_t refused;
    domi_random random;
} peer;

typedef struct worker {
    domi_manager manager;
    domi_random random;
    uint64_t left; /* messages that this thread may still send */
    uint64_t sent;
    uint64_t steals;
    uint64_t parks;
    uint64_t lost; /* number of sleeps that only their time-out ended although there was work */
    pthread_t thread;
} worker;

static worker workers[THREADS];
static domi_manager outside;
static domi_manager *managers[THREADS + 1];
static domus_address houses[HOUSES];
static peer peers[HOUSES];
/* number of messages that may still be sent and that no thread has taken for itself */
static _Atomic int64_t budget;
/* number of messages that are not handled yet, or whose handler still runs */
static _Atomic uint32_t under_way;

static const domus_type small = {.name = "small", .size = sizeof(numbered)};
static const domus_type big = {.name = "big", .size = sizeof(big_numbered)};
static const domus_type start = {.name = "start", .size = 0};

static uint64_t checksum_of_message(const numbered *message)
{
    return (uint64_t)message->from << 40 ^ message->number ^ UINT64_C(0x5a5a5a5a5a5a5a5a);
}

static bool take_one_message_of_budget(worker *at)
{
    if (at->left == 0 && atomic_fetch_sub_explicit(&budget, SHARE, memory_order_relaxed) > 0)
        at->left = SHARE;
    if (at->left == 0)
        return false;
    at->left--;
    return true;
}

/* Send a message after one that was handled; the count `under_way` does not change, because the new
 * message takes over the place of the old one. */
static void send_message_to_random_house(domus_stack *stack, peer *self)
{
    /* the manager is the first member of the worker */
    worker *at = (worker *)(void *)stack->manager;
    uint32_t to = (uint32_t)domi_random_below(&self->random, HOUSES);
    big_numbered message = {.numbered = {self->index, self->sent[to], 0}};
    const domus_type *type = domi_random_below(&self->random, 256) == 0 ? &big : &small;

    message.numbered.check = checksum_of_message(&message.numbered);
    if (take_one_message_of_budget(at)) {
        if (domus_notice(stack, houses[to], type, &message) == 0) {
            self->sent[to]++;
            at->sent++;
            return;
        }
        self->refused++;
    }
    /* seq_cst: like a put, the decrement comes before the look at the park words in the loop
     * below. */
    if (atomic_fetch_sub_explicit(&under_way, 1, memory_order_seq_cst) == 1)
        for (uint32_t i = 0; i < THREADS; i++)
            domi_manager_notify_of_push(stack->manager, managers[i]);
}

static int check_number_and_send_another(domus_stack *stack, void *self_, const void *message_)
{
    peer *self = *(peer **)self_;
    const numbered *message = message_;

    self->disordered += message->number != self->expected[message->from];
    self->expected[message->from] = message->number + 1;
    self->torn += message->check != checksum_of_message(message);
    self->handled++;
    send_message_to_random_house(stack, self);
    return 0;
}

static int on_start_send_first_messages(domus_stack *stack, void *self, const void *unused)
{
    for (uint32_t i = 0; i < UNDER_WAY; i++)
        send_message_to_random_house(stack, *(peer **)self);
    return 0;
}

static const domus_behaviour peer_behaviour = {
    .name = "peer",
    .state_size = sizeof(peer *),
    .on = (const domus_on[]){{&small, check_number_and_send_another, 0},
                             {&big, check_number_and_send_another, 0},
                             {&start, on_start_send_first_messages, 0},
                             {0}}};

/* --- threads ---------------------------------------------------------------------------------- */

static void wake_parked_manager(domi_manager *manager)
{
    domi_futex_wake(&manager->park);
}

static const domi_runtime_hooks hooks = {.wake = wake_parked_manager};

/* Expose a house of this thread now and then, and take it back if no thief has taken it. */
static void expose_house_now_and_then(worker *at, domi_queue *ready)
{
    domi_manager *manager = &at->manager;

    if (domi_loans_count_shared_houses(manager) != 0) {
        if (ready->count == 0 || domi_random_below(&at->random, 4) == 0)
            (void)domi_loans_take_houses_back(manager, ready);
    } else if (ready->count > 1 && domi_random_below(&at->random, 8) == 0) {
        (void)domi_loans_expose_houses(manager, ready, 1);
    }
}

static bool is_no_message_under_way(void)
{
    return atomic_load_explicit(&under_way, memory_order_seq_cst) == 0;
}

static bool steal_house_and_run_it(worker *at)
{
    domi_manager *victim = managers[domi_random_below(&at->random, THREADS)];
    domi_loan *loan =
        victim != &at->manager ? domi_loan_take_exposed_house(&at->manager, victim) : NULL;

    if (loan == NULL)
        return false;
    at->steals++;
    domi_loan_run_house_and_return(&at->manager, loan);
    return true;
}

/* Park this thread by the steps of look_and_fall_asleep() (runtime/loop/park.c). */
static void park_thread(worker *at)
{
    domi_manager *manager = &at->manager;

    if (!domi_belts_turn_all_off(manager))
        return;
    at->parks++;
    domi_park_begin_sleep(&manager->park);
    if (!domi_manager_has_work(manager) && !is_no_message_under_way()) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += SLEEP_S;
        domi_futex_wait(&manager->park, DOMI_PARK_SLEEPING, &until);
        at->lost += domi_park_read_word(&manager->park) == DOMI_PARK_SLEEPING &&
                    (domi_manager_has_work(manager) || is_no_message_under_way());
    }
    (void)domi_park_end_sleep(&manager->park);
}

static void *run_worker_until_all_is_handled(void *worker_)
{
    worker *at = worker_;
    domi_manager *manager = &at->manager;
    domi_queue *ready = &manager->schedule.ready[DOMUS_STATE];

    domi_manager_become_owner(manager);
    while (!is_no_message_under_way()) {
        uint32_t found = domi_manager_take_arrivals(manager) + domi_manager_mount_actors(manager);
        domi_house *house;

        for (uint32_t i = ready->count; i > 0 && (house = domi_queue_take_house(ready)) != NULL;
             i--) {
            (void)domi_house_run_and_settle(manager, house);
            expose_house_now_and_then(at, ready);
            found++;
        }
        if (domi_loans_count_shared_houses(manager) != 0)
            found += domi_loans_take_houses_back(manager, ready);
        found += steal_house_and_run_it(at) ? 1 : 0;
        domi_pool_push_chains_to_owners(manager);
        if (found == 0)
            park_thread(at);
    }
    return NULL;
}

static void open_managers_and_houses(uint32_t slots)
{
    static domus_config config;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    domus_config_init(&config);
    config.scheduler.belt_slots = slots;
    config.scheduler.mailbox_max = 65535;
    for (uint32_t i = 0; i <= THREADS; i++)
        managers[i] = i < THREADS ? &workers[i].manager : &outside;
    memset(workers, 0, sizeof workers);
    memset(&outside, 0, sizeof outside);
    memset(peers, 0, sizeof peers);
    for (uint32_t i = 0; i <= THREADS; i++) {
        domi_manager_options options = {.index = i,
                                        .count = THREADS + 1,
                                        .managers = managers,
                                        .config = &config,
                                        .now_ns = 1,
                                        .hooks = &hooks};
        ck_assert_int_eq(domi_manager_init(managers[i], &options), 0);
        if (i < THREADS)
            domi_random_init(&workers[i].random, i + (uint64_t)now.tv_nsec);
    }
    for (uint32_t i = 0; i < HOUSES; i++) {
        peer *it = &peers[i];
        it->index = i;
        domi_random_init(&it->random, 100 + i);
        ck_assert_int_eq(domi_house_spawn_without_parent(&outside, managers[i % THREADS],
                                                         &peer_behaviour, &it, &houses[i]),
                         0);
    }
}

/* Send the first messages of the run to a house, as a foreign thread does. */
static void send_start_notice_from_outside(domus_address to)
{
    domi_envelope *envelope = domi_envelope_new(&outside, sizeof *envelope);

    ck_assert_ptr_nonnull(envelope);
    envelope->type = &start;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    ck_assert_int_eq(domi_mailbox_put(&outside, to, &envelope->node, DOMI_NOTICE), 0);
}

static void run_stress_with_belt_slots(uint32_t slots, uint64_t messages)
{
    uint64_t handled = 0;
    uint64_t sent = 0;

    atomic_store(&budget, (int64_t)messages);
    atomic_store(&under_way, HOUSES * UNDER_WAY);
    open_managers_and_houses(slots);
    for (uint32_t i = 0; i < HOUSES; i++)
        send_start_notice_from_outside(houses[i]);
    for (uint32_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(
            pthread_create(&workers[i].thread, NULL, run_worker_until_all_is_handled, &workers[i]),
            0);
    for (uint32_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
    for (uint32_t i = 0; i < HOUSES; i++) {
        handled += peers[i].handled;
        ck_assert_uint_eq(peers[i].disordered, 0);
        ck_assert_uint_eq(peers[i].torn, 0);
        ck_assert_uint_eq(peers[i].refused, 0);
    }
    uint64_t steals = 0;
    uint64_t parks = 0;
    uint64_t belted = 0;
    for (uint32_t i = 0; i < THREADS; i++) {
        sent += workers[i].sent;
        steals += workers[i].steals;
        parks += workers[i].parks;
        belted += domi_counter_read(&workers[i].manager.counters.belted);
        ck_assert_uint_eq(workers[i].lost, 0);
    }
    ck_assert_uint_eq(handled, sent);
    ck_assert_uint_ge(handled, messages - messages / 100 - THREADS * SHARE);
    ck_assert_uint_gt(belted, 0);
    ck_assert_uint_lt(belted, sent);
    if (getenv("DOMT_TELL") != NULL)
        printf("%u slots: %llu handled, %llu by belts, %llu steals, %llu parks\n", slots,
               (unsigned long long)handled, (unsigned long long)belted, (unsigned long long)steals,
               (unsigned long long)parks);
    for (uint32_t i = 0; i <= THREADS; i++) {
        domi_manager_become_owner(managers[i]);
        domi_manager_end_actors(managers[i]);
    }
    for (uint32_t i = 0; i <= THREADS; i++)
        domi_manager_fini(managers[i]);
}

static uint64_t number_of_messages_to_send(void)
{
    return getenv("DOMT_LONG") != NULL ? MESSAGES_LONG : MESSAGES;
}

DOMT_TEST(small_belts_keep_order_and_lose_neither_messages_nor_wake_ups)
{
    run_stress_with_belt_slots(64, number_of_messages_to_send() / 2);
}

DOMT_TEST(large_belts_keep_order_and_lose_neither_messages_nor_wake_ups)
{
    run_stress_with_belt_slots(1024, number_of_messages_to_send() / 2);
}

DOMT_SUITE(3000)
