/* Threads that own a manager each, and random sends, asks, spawns and stops among them.
 *
 * Walkers pass tokens to addresses from their thread's book; a token carries one more address, so
 * the books mix, and most addresses in them are stale after a while. Walkers are stopped and
 * spawned from everywhere, and mailboxes are short. At the end every token that was taken was
 * handled or dropped exactly once (M6, M9, M11: nothing is lost silently), every ask resumed
 * exactly once, and each actor that was mounted was stopped. The seed is fixed; the schedule of the
 * threads is not. */
#include "base/random.h"
#include "house/conversation/stack.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/manage.h"
#include "house/dispatch/phases.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define ROUNDS DOMT_SCALE(100000u, 3000u)

#define THREADS_MAX 4
#define BOOK        16u
#define ORACLES     4u
#define HOPS        12u

typedef struct token {
    /* the address that this token carries: a walker writes it into its thread's book, or stops that
     * actor */
    domus_address rumour;
    uint32_t hops;
    bool kill; /* true: the actor `rumour` is stopped, perhaps before its mount */
} token;

typedef struct big_token {
    token token;
    unsigned char ballast[2000];
} big_token;

/* One worker for each thread; no other thread uses its fields while the worker runs. */
typedef struct worker {
    domi_manager manager;
    domi_random random;
    domus_address book[BOOK];
    domus_address
        /* actors that answer and ask nobody, so that no two actors wait for each other */
        oracles[ORACLES];
    uint64_t taken; /* puts of tokens that returned 0 */
    uint64_t handled;
    uint64_t refused;
    uint64_t stale;
    uint64_t asked;
    uint64_t resumed;
    uint64_t answered;
    uint64_t replied;
    uint64_t mounts;
    uint64_t stops;
    uint64_t disordered;
    uint32_t found; /* pieces of work that the last turn of this thread found */
    pthread_t thread;
} worker;

static worker workers[THREADS_MAX];
static domi_manager *managers[THREADS_MAX + 1];
static domi_manager outside;
static uint32_t threads;
static pthread_barrier_t barrier;
/* tokens that the release function has seen, on any thread */
static _Atomic uint64_t released_tokens;
static _Atomic uint64_t released_replies;

static void release_token(void *payload)
{
    atomic_fetch_add_explicit(&released_tokens, 1, memory_order_relaxed);
}

static void release_reply(void *payload)
{
    atomic_fetch_add_explicit(&released_replies, 1, memory_order_relaxed);
}

static const domus_type small = {.name = "small", .size = sizeof(token), .release = release_token};
static const domus_type big = {.name = "big", .size = sizeof(big_token), .release = release_token};
static const domus_type query = {.name = "query", .size = 8};
static const domus_type reply = {.name = "reply", .size = 8, .release = release_reply};
static const domus_behaviour walker;
static const domus_behaviour oracle;

static uint32_t random_below(worker *at, uint32_t n)
{
    return (uint32_t)domi_random_below(&at->random, n);
}

static domus_address choose_address(worker *at)
{
    return at->book[random_below(at, BOOK)];
}

/* Spawn a new actor, on this home or another one, and write its address over `entry` of the
 * book. */
static void replace_actor(worker *at, const domus_behaviour *behaviour, domus_address *entry)
{
    domi_manager *home = managers[random_below(at, threads)];
    /* a worker begins with its manager, so the addresses are the same */
    worker *there = (worker *)(void *)home;

    (void)domi_house_ask_to_stop(&at->manager, *entry);
    (void)domi_house_spawn_without_parent(&at->manager, home, behaviour, &there, entry);
}

static void count_result_and_replace_stale_actor(worker *at, int result)
{
    at->taken += result == 0;
    at->refused += result == -ENOBUFS;
    at->stale += result == -ESTALE;
    if (result == -ESTALE)
        replace_actor(at, &walker, &at->book[random_below(at, BOOK)]);
}

static int count_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    worker *at = *(worker **)self;

    at->resumed++;
    at->answered += answer->error == 0;
    return 0;
}

static int reply_to_query_or_fail(domus_stack *stack, void *self, const void *number)
{
    worker *at = *(worker **)self;

    if (random_below(at, 8) == 0)
        return -EIO;
    at->replied++;
    return domus_reply(stack, &reply, number);
}

static void pass_token_on(domus_stack *stack, worker *at, domus_address rumour, uint32_t hops,
                          bool kill)
{
    big_token next = {.token = {rumour, hops, kill}};
    const domus_type *type = random_below(at, 16) == 0 ? &big : &small;

    count_result_and_replace_stale_actor(at, domus_notice(stack, choose_address(at), type, &next));
}

/* Handle a token, small or big: the token is the first member of the payload of both. */
static int on_token_pass_on(domus_stack *stack, void *self, const void *token_)
{
    worker *at = *(worker **)self;
    const token *now = token_;
    uint64_t number = 1;

    at->handled++;
    /* houses are not lent in this test, so only home runs them */
    at->disordered += stack->manager != &at->manager;
    if (now->kill)
        (void)domus_stop(stack, now->rumour);
    else
        at->book[random_below(at, BOOK)] = now->rumour;
    if (now->hops > 0)
        pass_token_on(stack, at, choose_address(at), now->hops - 1, false);
    switch (random_below(at, 24)) {
    case 0:
        replace_actor(at, &walker, &at->book[0]);
        for (uint32_t i = 0; i < threads; i++)
            pass_token_on(stack, at, at->book[0], 0, true);
        break;
    case 1:
        replace_actor(at, &oracle, &at->oracles[random_below(at, ORACLES)]);
        break;
    case 2:
        (void)domus_stop(stack, domus_self(stack));
        break;
    case 3:
    case 4:
    case 5:
        at->asked++;
        if (random_below(at, 4) == 0)
            (void)domus_barrier(stack);
        return domus_ask(stack, at->oracles[random_below(at, ORACLES)], &query, &number,
                         count_answer);
    default:
        break;
    }
    return 0;
}

static int on_mount_count_mount(domus_stack *stack, void *self)
{
    (*(worker **)self)->mounts++;
    return 0;
}

static void on_stop_count_stop(domus_stack *stack, void *self)
{
    (*(worker **)self)->stops++;
}

static const domus_behaviour walker = {
    .name = "walker",
    .state_size = sizeof(worker *),
    .on = (const domus_on[]){{&small, on_token_pass_on, 0}, {&big, on_token_pass_on, 0}, {0}},
    .on_mount = on_mount_count_mount,
    .on_stop = on_stop_count_stop};

static const domus_behaviour oracle = {
    .name = "oracle",
    .state_size = sizeof(worker *),
    .on = (const domus_on[]){{&query, reply_to_query_or_fail, 0}, {0}},
    .on_mount = on_mount_count_mount,
    .on_stop = on_stop_count_stop};

/* --- threads --------------------------------------------------------------------------------- */

static uint32_t run_one_iteration_of_home(worker *at)
{
    domi_manager *manager = &at->manager;
    domi_queue *ready = &manager->schedule.ready[DOMUS_STATE];
    uint32_t found = domi_manager_take_arrivals(manager) + domi_manager_mount_actors(manager);

    for (uint32_t i = ready->count; i > 0; i--, found++) {
        (void)domi_house_run_and_settle(manager, domi_queue_take_house(ready));
        if (i % 16 == 0)
            found += domi_manager_take_arrivals(manager);
    }
    domi_pool_push_chains_to_owners(manager);
    return found;
}

/* Put a message by this thread, without an actor as the sender. Returns whether it was taken. */
static bool put_first_token(worker *at)
{
    domi_envelope *envelope = domi_envelope_new(&at->manager, sizeof *envelope);
    token first = {choose_address(at), HOPS, false};

    envelope->type = &small;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    memcpy(envelope->payload, &first, sizeof first);
    int result = domi_mailbox_put(&at->manager, choose_address(at), &envelope->node, DOMI_NOTICE);
    if (result != 0)
        domi_pool_free_object(&at->manager, &envelope->node);
    count_result_and_replace_stale_actor(at, result);
    return result != -ENOBUFS;
}

/* Returns whether no thread has found work between two barriers of threads: then nothing is under
 * way. */
static bool have_all_threads_no_work(worker *at)
{
    uint32_t found = 0;

    (void)pthread_barrier_wait(&barrier);
    at->found = run_one_iteration_of_home(at);
    (void)pthread_barrier_wait(&barrier);
    for (uint32_t i = 0; i < threads; i++)
        found += workers[i].found;
    return found == 0;
}

static void *run_worker(void *at_)
{
    worker *at = at_;

    domi_manager_become_owner(&at->manager);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        for (uint32_t j = random_below(at, 16); j > 0; j--) {
            if (!put_first_token(at)) {
                /* the refusing actor is full, and its thread may need this CPU */
                (void)sched_yield();
                break;
            }
        }
        (void)run_one_iteration_of_home(at);
    }
    while (!have_all_threads_no_work(at))
        ;
    return NULL;
}

static void start_workers(uint32_t count, uint64_t seed)
{
    static domus_config config;

    domus_config_init(&config);
    config.scheduler.mailbox_max = 16;
    config.scheduler.belt_slots = 64;
    config.scheduler.conversations_max = 4;
    threads = count;
    for (uint32_t i = 0; i < count; i++) {
        managers[i] = &workers[i].manager;
        domi_random_init(&workers[i].random, seed + i);
    }
    managers[count] = &outside;
    for (uint32_t i = 0; i <= count; i++)
        ck_assert_int_eq(
            domi_manager_init(managers[i], &(domi_manager_options){.index = i,
                                                                   .count = count + 1,
                                                                   .managers = managers,
                                                                   .config = &config}),
            0);
    for (uint32_t i = 0; i < BOOK + ORACLES; i++) { /* the first tokens are sent from outside */
        worker *there = &workers[i % count];
        const domus_behaviour *behaviour = i < BOOK ? &walker : &oracle;
        domus_address first;
        ck_assert_int_eq(
            domi_house_spawn_without_parent(&outside, &there->manager, behaviour, &there, &first),
            0);
        for (uint32_t j = 0; j < count; j++)
            *(i < BOOK ? &workers[j].book[i] : &workers[j].oracles[i - BOOK]) = first;
    }
    ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, count), 0);
}

static worker sum_of_worker_counts(void)
{
    worker sum = {.taken = 0};

    for (uint32_t i = 0; i < threads; i++) {
        sum.taken += workers[i].taken;
        sum.handled += workers[i].handled;
        sum.refused += workers[i].refused;
        sum.stale += workers[i].stale;
        sum.asked += workers[i].asked;
        sum.resumed += workers[i].resumed;
        sum.answered += workers[i].answered;
        sum.replied += workers[i].replied;
        sum.mounts += workers[i].mounts;
        sum.stops += workers[i].stops;
        sum.disordered += workers[i].disordered;
    }
    return sum;
}

static void check_nothing_is_lost(uint32_t count, uint64_t seed)
{
    uint32_t living = 0;

    start_workers(count, seed);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);

    worker sum = sum_of_worker_counts();
    /* each token that was taken was released once, handled or not */
    ck_assert_uint_eq(sum.taken, atomic_load(&released_tokens));
    ck_assert_uint_eq(sum.asked, sum.resumed);
    ck_assert_uint_eq(sum.replied, atomic_load(&released_replies));
    ck_assert_uint_le(sum.answered, sum.replied);
    ck_assert_uint_eq(sum.disordered, 0);
    ck_assert_uint_gt(sum.refused, 0);
    ck_assert_uint_gt(sum.stale, 0);
    ck_assert_uint_lt(sum.handled, sum.taken);
    /* how many tokens are handled depends on the machine, so this bound is low */
    ck_assert_uint_gt(sum.handled, ROUNDS / 4);
    for (uint32_t i = 0; i < count; i++)
        living += (uint32_t)managers[i]->births.houses;
    ck_assert_uint_eq(living, sum.mounts - sum.stops); /* no house is stuck while its actor ends */

    for (uint32_t i = 0; i <= count; i++) {
        /* the manager's thread has ended, so this thread becomes its owner */
        domi_manager_become_owner(managers[i]);
        domi_manager_end_actors(managers[i]);
    }
    sum = sum_of_worker_counts();
    ck_assert_uint_eq(sum.mounts, sum.stops);
    ck_assert_uint_eq(sum.taken, atomic_load(&released_tokens));
    for (uint32_t i = 0; i <= count; i++)
        domi_manager_fini(managers[i]);
    pthread_barrier_destroy(&barrier);
}

DOMT_TEST(two_threads_lose_no_message)
{
    check_nothing_is_lost(2, 20);
}

DOMT_TEST(three_threads_lose_no_message)
{
    check_nothing_is_lost(3, 30);
}

DOMT_TEST(four_threads_lose_no_message)
{
    check_nothing_is_lost(4, 40);
}

DOMT_SUITE(120)
