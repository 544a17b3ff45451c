/* Order and storms on threads that mostly sleep and stand in for each other. DOMUS_SEED=n runs one
 * seed, and DOMT_LONG many.
 *
 * Order (M6) holds with belts and without them. Actors of all threads number their messages for
 * each receiver and kind: small notices, which may go by belts, large notices, which go to inboxes,
 * and asks. Each message lets its receiver send some more, in bursts that last for a while and end,
 * so that threads fall asleep and doze again and again. The numbers from one sender must come in
 * order, whichever threads run sender and receiver.
 *
 * In the storm (tests/runtime/storm.h) most actions are done by threads that stand in for others:
 * the actors stop themselves and each other, restart, spawn, ask with deadlines, and use timers,
 * blocking work and groups. Besides, some actors watch descriptors, which pins them to their thread
 * while another thread may be running them. Messages come one by one with pauses, and a doze may
 * last long, so no thread is distrusted (runtime/loop/stand_in.c). Both backends are used, with 2
 * to 4 threads. */
#include "base/random.h"
#include "tests/runtime/running.h"
#include "tests/runtime/storm.h"

#include <domus/descriptor.h>
#include <domus/testkit.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* --- order ------------------------------------------------------------------------------------ */

#define SEEDS DOMT_SCALE(12, 6)
#define LONG  200u
#define CROWD 9u
#define STEPS 120u

enum { NOTICES, ASKS, KINDS };

typedef struct numbered {
    uint32_t from;
    uint32_t number;
    uint32_t depth; /* number of messages that may still follow from this one */
    uint32_t check; /* repeats other members, so a message that is mixed of two is found */
} numbered;

typedef struct large_numbered {
    numbered numbered;
    unsigned char ballast[100];
} large_numbered;

static const domus_type small = {.name = "small", .size = sizeof(numbered)};
static const domus_type large = {.name = "large", .size = sizeof(large_numbered)};
static const domus_type question = {.name = "question", .size = sizeof(numbered)};
static const domus_type nothing = {.name = "nothing"};

static domus_address crowd[CROWD];
static _Atomic uint64_t under_way; /* number of messages and answers that are under way */
/* number of messages that came out of their order, or mixed of two messages */
static _Atomic uint64_t wrong;
static _Atomic uint64_t handled;

typedef struct member {
    uint32_t index;
    uint32_t sent[CROWD][KINDS];
    uint32_t came[CROWD][KINDS];
    domi_random random;
} member;

static uint32_t checksum_of_message(const numbered *message)
{
    return message->from * 7919 + message->number * 31 + message->depth;
}

/* --- sending ---------------------------------------------------------------------------------- */

static large_numbered make_next_message(member *self, uint32_t to, uint32_t kind, uint32_t depth)
{
    large_numbered message = {
        .numbered = {.from = self->index, .number = self->sent[to][kind]++, .depth = depth}};
    message.numbered.check = checksum_of_message(&message.numbered);
    return message;
}

static void send_numbered_notice(domus_stack *stack, member *self, uint32_t to, uint32_t depth)
{
    large_numbered message = make_next_message(self, to, NOTICES, depth);
    const domus_type *type = domi_random_below(&self->random, 3) == 0 ? &large : &small;

    atomic_fetch_add(&under_way, 1);
    if (domus_notice(stack, crowd[to], type, &message) != 0) {
        atomic_fetch_sub(&under_way, 1);
        self->sent[to][NOTICES]--;
    }
}

static int send_numbered_ask(domus_stack *stack, member *self, uint32_t to, uint32_t depth)
{
    large_numbered message = make_next_message(self, to, ASKS, depth);

    atomic_fetch_add(&under_way, 2); /* two more: the ask, and the answer that will come */
    int error = domus_ask_add(stack, crowd[to], &question, &message, 0, 0);
    if (error != 0) {
        atomic_fetch_sub(&under_way, 2);
        self->sent[to][ASKS]--;
    }
    return error;
}

static int count_answers(domus_stack *stack, void *self, const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next) {
        atomic_fetch_add(&wrong, answer->error != 0);
        atomic_fetch_sub(&under_way, 1);
    }
    return 0;
}

/* Send a burst of messages, mostly to one other member. Returns the result for the handler. */
static int send_random_burst(domus_stack *stack, member *self, uint32_t depth)
{
    uint32_t to = (uint32_t)domi_random_below(&self->random, CROWD);
    bool asks = false;

    for (uint32_t i = domi_random_below(&self->random, 20) < 13; i != 0; i++) {
        if (domi_random_below(&self->random, 4) != 0)
            send_numbered_notice(stack, self, to, depth);
        else
            asks = send_numbered_ask(stack, self, to, depth) == 0 || asks;
        if (domi_random_below(&self->random, 3) == 0)
            to = (uint32_t)domi_random_below(&self->random, CROWD);
        if (domi_random_below(&self->random, 2) == 0)
            break;
    }
    return asks ? domus_wait_all(stack, count_answers) : 0;
}

/* --- receiving -------------------------------------------------------------------------------- */

static int check_order_and_pass_on(domus_stack *stack, member *self, const numbered *message,
                                   uint32_t kind)
{
    uint32_t depth = message->depth;

    if (message->from < CROWD) { /* messages from outside have no order to check */
        uint32_t *came = &self->came[message->from][kind];
        bool is_wrong = message->number != *came || message->check != checksum_of_message(message);
        atomic_fetch_add(&wrong, is_wrong);
        *came = message->number + 1;
    }
    atomic_fetch_add(&handled, 1);
    int result = depth != 0 ? send_random_burst(stack, self, depth - 1) : 0;
    atomic_fetch_sub(&under_way, 1);
    return result;
}

static int handle_numbered_notice(domus_stack *stack, void *self, const void *message)
{
    return check_order_and_pass_on(stack, self, message, NOTICES);
}

static int handle_numbered_ask(domus_stack *stack, void *self, const void *message)
{
    const numbered question_of = *(const numbered *)message;
    /* The answer is sent before any message that follows from the question. */
    int error = domus_reply(stack, &nothing, NULL);
    return error != 0 ? error : check_order_and_pass_on(stack, self, &question_of, ASKS);
}

static const domus_behaviour behaviour = {
    .name = "member",
    .state_size = sizeof(member),
    .on = (const domus_on[]){{&small, handle_numbered_notice, 0},
                             {&large, handle_numbered_notice, 0},
                             {&question, handle_numbered_ask, 0},
                             {0}}};

/* --- a seed ----------------------------------------------------------------------------------- */

static domus_config config_of_sleepy_threads(uint64_t seed)
{
    domus_config config = domt_config_of_threads((uint32_t)(2 + seed % 2));

    config.io.backend = seed % 4 == 0 ? DOMUS_BACKEND_EPOLL : DOMUS_BACKEND_AUTO;
    config.scheduler.idle.stand_in_ns = 1000 * DOMT_MS;
    config.scheduler.idle.doze_ns = (seed % 3 == 0 ? 2 : 1000) * DOMT_MS;
    config.scheduler.belt_slots = seed % 3 == 1 ? 0 : 64;
    config.scheduler.messages_per_run_max = seed % 2 == 0 ? 3 : 256;
    return config;
}

/* Let a member begin a burst of messages, and wait for a while. */
static void begin_burst_and_wait(domus_system *system, domi_random *dice)
{
    const numbered first = {.from = CROWD, .depth = 6};

    for (uint64_t i = 1 + domi_random_below(dice, 3); i != 0; i--) {
        atomic_fetch_add(&under_way, 1);
        if (domus_outside_notice(system, crowd[domi_random_below(dice, CROWD)], &small, &first) !=
            0)
            atomic_fetch_sub(&under_way, 1);
    }
    domt_pause_ns(20000 + domi_random_below(dice, 500000));
}

static _Atomic uint64_t stood_in;

static int run_storm_of_seed(uint64_t seed, void *context)
{
    domi_random dice;
    const domus_config config = config_of_sleepy_threads(seed);
    domus_system *system = domt_start_system(&config);

    domi_random_init(&dice, seed);
    for (uint32_t i = 0; i < CROWD; i++) {
        member state = {.index = i};
        domi_random_init(&state.random, seed * CROWD + i);
        crowd[i] = domt_spawn(system, i % config.system.threads, &behaviour, &state);
    }
    for (uint32_t i = 0; i < STEPS; i++)
        begin_burst_and_wait(system, &dice);
    DOMT_WAIT_FOR(60, atomic_load(&under_way) == 0);
    atomic_fetch_add(&stood_in, domt_profile_of_all_threads(system).steals);
    ck_assert_uint_eq(domt_profile_of_all_threads(system).cap_wakeups_with_work, 0);
    domt_end_system(system);
    return atomic_load(&wrong) == 0 ? 0 : -EIO;
}

DOMT_TEST(order_holds_while_threads_stand_in)
{
    const char *many = getenv("DOMT_LONG");
    uint64_t seed = 0;

    int result = domus_testkit_sweep(1, many != NULL && many[0] != '\0' ? LONG : SEEDS,
                                     run_storm_of_seed, NULL, &seed);
    ck_assert_msg(result == 0, "seed %llu: %llu messages out of their order",
                  (unsigned long long)seed, (unsigned long long)atomic_load(&wrong));
    ck_assert_uint_gt(atomic_load(&stood_in), 0);
    if (getenv("DOMT_SUMS") != NULL)
        printf("handled %llu, stood in %llu\n", (unsigned long long)atomic_load(&handled),
               (unsigned long long)atomic_load(&stood_in));
}

/* --- the storm -------------------------------------------------------------------------------- */

#define MS          DOMT_STORM_MS
#define STORM_SEEDS (DOMT_SANITIZED ? 4u : 8u)
#define LONG_STORM  100u
#define ROOTS       8u
#define WATCHERS    4u
#define STORM_STEPS 400u
#define BUDGET      6000

/* --- watchers of descriptors ------------------------------------------------------------------ */

static _Atomic uint64_t opened, closed, readies;

static const domus_type poke_type = {.name = "poke", .size = sizeof(uint64_t)};

struct watcher {
    int fd; /* the eventfd that the watcher watches, which is readable; -1: none */
    domus_fd_watch watch;
    uint64_t then; /* decides what the watcher does when its descriptor is ready */
};

static void end_watch_of_descriptor(struct watcher *self)
{
    if (self->fd < 0)
        return;
    close(self->fd);
    self->fd = -1;
    atomic_fetch_add(&closed, 1);
}

static int init_watcher(domus_stack *stack, void *self_)
{
    ((struct watcher *)self_)->fd = -1;
    return 0;
}

static void end_watch_in_stop(domus_stack *stack, void *self_)
{
    end_watch_of_descriptor(self_);
}

static int watch_descriptor_when_poked(domus_stack *stack, void *self_, const void *payload)
{
    struct watcher *self = self_;

    self->then = *(const uint64_t *)payload;
    if (self->fd >= 0)
        return 0;
    self->fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->fd < 0)
        return 0;
    atomic_fetch_add(&opened, 1);
    return domus_watch_fd(stack, self->fd, POLLIN, &self->watch);
}

static int handle_ready_descriptor(domus_stack *stack, void *self_, const void *payload)
{
    struct watcher *self = self_;

    atomic_fetch_add(&readies, 1);
    if (domus_unwatch_fd(stack, self->watch) != 0)
        domt_storm_record_wrong("a watch was gone");
    end_watch_of_descriptor(self);
    if (self->then % 8 == 0)
        return domus_stop(stack, domus_self(stack));
    return self->then % 8 == 1 ? -EIO : 0;
}

static const domus_behaviour watcher = {
    .name = "watcher",
    .state_size = sizeof(struct watcher),
    .on = (const domus_on[]){{&poke_type, watch_descriptor_when_poked, 0},
                             {&domus_ready_type, handle_ready_descriptor, 0},
                             {0}},
    .on_mount = init_watcher,
    .on_stop = end_watch_in_stop};

/* The state of a poker: an actor that sends to a watcher, so that its thread may stand in for the
 * watcher's thread. */
struct poke {
    domus_address watcher;
    uint64_t then;
};

static const domus_type poke_for_type = {.name = "poke for", .size = sizeof(struct poke)};

static int poke_watcher_in_handler(domus_stack *stack, void *self, const void *payload)
{
    const struct poke *poke = payload;
    (void)domus_notice(stack, poke->watcher, &poke_type, &poke->then);
    return 0;
}

static const domus_behaviour poker = {
    .name = "poker", .on = (const domus_on[]){{&poke_for_type, poke_watcher_in_handler, 0}, {0}}};

/* --- what comes from outside ------------------------------------------------------------------ */

static void send_note_from_outside(domus_system *system, uint32_t to)
{
    const void *load = domt_storm_new_payload(4);
    (void)domt_storm_free_if_failed(
        domus_outside_notice(system, domt_storm_crowd_at(to), &domt_storm_note, load), load);
}

static void ask_member_from_outside(domus_system *system, uint32_t to)
{
    union {
        domt_load load;
        char bytes[3000];
    } answer;
    domus_outside_reply reply = {.buffer = &answer, .size = sizeof answer};

    if (domus_outside_ask(system, domt_storm_crowd_at(to), &domt_storm_question,
                          domt_storm_new_payload(3), 2 * MS, &reply) == 0)
        domt_storm_free_payload(answer.load);
}

static domus_address poker_address; /* address of the poker, which is on the first thread */

static void poke_random_watcher(domus_system *system, domus_address *watchers, uint32_t i,
                                uint64_t then)
{
    domus_address *one = &watchers[i % WATCHERS];
    struct poke poke = {*one, then};

    /* Sometimes spawn a new watcher in place of an old one, which may have stopped itself. */
    if (one->house == NULL || then % 5 == 0)
        *one = domt_spawn(system, i % domus_system_threads(system), &watcher, NULL);
    else
        (void)domus_outside_notice(system, poker_address, &poke_for_type, &poke);
}

static void do_random_action_of_storm(domus_system *system, domi_random *dice,
                                      domus_address *watchers)
{
    uint32_t one = (uint32_t)domi_random_below(dice, DOMT_STORM_CROWD);

    switch (domi_random_below(dice, 16)) {
    case 0:
    case 1:
        domt_storm_spawn_root(system, one, domi_random_next_bits(dice));
        break;
    case 2:
        ask_member_from_outside(system, one);
        break;
    case 3:
        (void)domus_outside_stop(system, domt_storm_crowd_at(one));
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        poke_random_watcher(system, watchers, one, domi_random_next_bits(dice));
        break;
    default:
        send_note_from_outside(system, one);
        break;
    }
    domt_pause_ns(20000 + domi_random_below(dice, 300000));
}

/* --- the storm -------------------------------------------------------------------------------- */

static domus_config random_config_of_storm(uint64_t seed, domi_random *dice)
{
    domus_config config = domt_config_of_threads((uint32_t)(2 + seed % 3));

    config.io.backend = seed % 2 == 0 ? DOMUS_BACKEND_EPOLL : DOMUS_BACKEND_AUTO;
    config.scheduler.idle.stand_in_ns = 1000 * MS;
    config.scheduler.idle.doze_ns = 1000 * MS;
    config.scheduler.mailbox_max = (uint32_t)(4 + domi_random_below(dice, 75));
    config.scheduler.messages_per_run_max = (uint32_t)(1 + domi_random_below(dice, 63));
    config.scheduler.belt_slots = seed % 3 == 0 ? 0 : 64;
    config.blocking.threads_max = 2;
    config.detached.threads_max = 4;
    return config;
}

static int run_storm_of_sleepers(uint64_t seed, void *ret_text)
{
    domus_address watchers[WATCHERS] = {{NULL, 0}};
    domi_random dice;

    domi_random_init(&dice, seed);
    domus_config config = random_config_of_storm(seed, &dice);
    domt_storm_begin(BUDGET);
    domus_system *system = domt_start_system(&config);
    for (uint32_t i = 0; i < ROOTS; i++)
        domt_storm_spawn_root(system, i, domi_random_next_bits(&dice));
    poker_address = domt_spawn(system, 0, &poker, NULL);
    for (uint32_t i = 0; i < STORM_STEPS; i++)
        do_random_action_of_storm(system, &dice, watchers);
    atomic_fetch_add(&stood_in, domt_profile_of_all_threads(system).steals);
    ck_assert_uint_eq(domt_profile_of_all_threads(system).cap_wakeups_with_work, 0);
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_str_eq(domus_system_left(system), "");
    domus_system_free(system);
    *(const char **)ret_text = domt_storm_end(false);
    return **(const char **)ret_text == '\0' ? 0 : -EIO;
}

DOMT_TEST(storm_of_sleepers_releases_every_payload_and_answers_every_ask_once)
{
    const char *many = getenv("DOMT_LONG");
    const char *text = "";
    uint64_t seed = 0;

    int result = domus_testkit_sweep(1, many != NULL && many[0] != '\0' ? LONG_STORM : STORM_SEEDS,
                                     run_storm_of_sleepers, (void *)&text, &seed);
    ck_assert_msg(result == 0, "seed %llu: %s", (unsigned long long)seed, text);
    ck_assert_uint_eq(atomic_load(&opened), atomic_load(&closed));
    ck_assert_uint_gt(atomic_load(&readies), 0);
    ck_assert_uint_gt(atomic_load(&stood_in), 0);
    if (getenv("DOMT_SUMS") != NULL)
        printf("stood in %llu, readies %llu\n", (unsigned long long)atomic_load(&stood_in),
               (unsigned long long)atomic_load(&readies));
}

DOMT_SUITE(200)
