/* The storm (storm.h) over threads that mostly sleep, so that most of what its actors do is done by
 * threads that stand in for others: their actors stop themselves and each other, restart, spawn,
 * ask with deadlines, use timers, blocking work and groups. Beside them some actors watch
 * descriptors, which pins them in a run that may be in another thread's hands.
 *
 * Messages come one after the other with pauses, and nobody is distrusted, because a doze may be
 * long here. Both backends, 2 to 4 threads; DOMUS_SEED=n runs one seed, DOMT_LONG many. */
#include "tests/runtime/storm.h"

#include "tests/runtime/running.h"

#include <domus/descriptor.h>
#include <domus/testkit.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MS       DOMT_STORM_MS
#define SEEDS    (DOMT_SANITIZED ? 4u : 8u)
#define LONG     100u
#define ROOTS    8u
#define WATCHERS 4u
#define STEPS    400u
#define BUDGET   6000

/* --- watchers of descriptors ------------------------------------------------------------------ */

static _Atomic uint64_t opened, closed, readies;

static const domus_type poke_type = {.name = "poke", .size = sizeof(uint64_t)};

struct watcher {
    int fd; /* an eventfd that is readable, or -1 */
    domus_fd_watch watch;
    uint64_t then; /* what to do when it is ready */
};

static void end_watch(struct watcher *self)
{
    if (self->fd < 0)
        return;
    close(self->fd);
    self->fd = -1;
    atomic_fetch_add(&closed, 1);
}

static int on_watcher_mount(domus_stack *stack, void *self_)
{
    ((struct watcher *)self_)->fd = -1;
    return 0;
}

static void on_watcher_stop(domus_stack *stack, void *self_)
{
    end_watch(self_);
}

static int on_poke(domus_stack *stack, void *self_, const void *payload)
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

static int on_ready(domus_stack *stack, void *self_, const void *payload)
{
    struct watcher *self = self_;

    atomic_fetch_add(&readies, 1);
    if (domus_unwatch_fd(stack, self->watch) != 0)
        domt_storm_wrong("a watch was gone");
    end_watch(self);
    if (self->then % 8 == 0)
        return domus_stop(stack, domus_self(stack));
    return self->then % 8 == 1 ? -EIO : 0;
}

static const domus_behaviour watcher = {
    .name = "watcher",
    .state_size = sizeof(struct watcher),
    .on = (const domus_on[]){{&poke_type, on_poke, 0},
                             {&domus_ready_type, on_ready, 0},
                             {NULL, NULL, 0}},
    .on_mount = on_watcher_mount,
    .on_stop = on_watcher_stop,
};

/* An actor on another thread, which stands in for the watcher's one. */
struct poke {
    domus_address watcher;
    uint64_t then;
};

static const domus_type poke_for_type = {.name = "poke for", .size = sizeof(struct poke)};

static int on_poke_for(domus_stack *stack, void *self, const void *payload)
{
    const struct poke *poke = payload;

    (void)domus_notice(stack, poke->watcher, &poke_type, &poke->then);
    return 0;
}

static const domus_behaviour poker = {
    .name = "poker",
    .on = (const domus_on[]){{&poke_for_type, on_poke_for, 0}, {NULL, NULL, 0}},
};

/* --- what comes from outside ------------------------------------------------------------------ */

static void send_note(domus_system *system, uint32_t to)
{
    const void *load = domt_load_new(4);

    (void)domt_load_gave(domus_outside_notice(system, domt_crowd_at(to), &domt_storm_note, load),
                         load);
}

static void ask(domus_system *system, uint32_t to)
{
    union {
        domt_load load;
        char bytes[3000];
    } answer;
    domus_outside_reply reply = {.buffer = &answer, .size = sizeof answer};

    if (domus_outside_ask(system, domt_crowd_at(to), &domt_storm_question, domt_load_new(3), 2 * MS,
                          &reply) == 0)
        domt_load_free(answer.load);
}

static domus_address poker_address; /* on the first thread */

static void poke(domus_system *system, domus_address *watchers, uint32_t i, uint64_t then)
{
    domus_address *one = &watchers[i % WATCHERS];
    struct poke poke = {*one, then};

    /* Every now and then another one takes the place of one that may have stopped itself. */
    if (one->house == NULL || then % 5 == 0)
        *one = domt_spawn(system, i % domus_system_threads(system), &watcher, NULL);
    else
        (void)domus_outside_notice(system, poker_address, &poke_for_type, &poke);
}

static void step(domus_system *system, domi_random *dice, domus_address *watchers)
{
    uint32_t one = (uint32_t)domi_random_below(dice, DOMT_STORM_CROWD);

    switch (domi_random_below(dice, 16)) {
    case 0:
    case 1:
        domt_storm_spawn_root(system, one, domi_random_next(dice));
        break;
    case 2:
        ask(system, one);
        break;
    case 3:
        (void)domus_outside_stop(system, domt_crowd_at(one));
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        poke(system, watchers, one, domi_random_next(dice));
        break;
    default:
        send_note(system, one);
        break;
    }
    domt_pause_ns(20000 + domi_random_below(dice, 300000));
}

/* --- the storm -------------------------------------------------------------------------------- */

static _Atomic uint64_t stood_in;

static domus_config sleepy_config(uint64_t seed, domi_random *dice)
{
    domus_config config = domt_config((uint32_t)(2 + seed % 3));

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

static int storm_of_sleepers(uint64_t seed, void *ret_text)
{
    domus_address watchers[WATCHERS] = {{NULL, 0}};
    domi_random dice;

    domi_random_init(&dice, seed);
    domus_config config = sleepy_config(seed, &dice);
    domt_storm_begin(BUDGET);
    domus_system *system = domt_start(&config);
    for (uint32_t i = 0; i < ROOTS; i++)
        domt_storm_spawn_root(system, i, domi_random_next(&dice));
    poker_address = domt_spawn(system, 0, &poker, NULL);
    for (uint32_t i = 0; i < STEPS; i++)
        step(system, &dice, watchers);
    atomic_fetch_add(&stood_in, domt_profile_all(system).steals);
    ck_assert_uint_eq(domt_profile_all(system).cap_wakeups_with_work, 0);
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

    int result = domus_testkit_sweep(1, many != NULL && many[0] != '\0' ? LONG : SEEDS,
                                     storm_of_sleepers, (void *)&text, &seed);
    ck_assert_msg(result == 0, "seed %llu: %s", (unsigned long long)seed, text);
    ck_assert_uint_eq(atomic_load(&opened), atomic_load(&closed));
    ck_assert_uint_gt(atomic_load(&readies), 0);
    ck_assert_uint_gt(atomic_load(&stood_in), 0);
    if (getenv("DOMT_SUMS") != NULL)
        printf("stood in %llu, readies %llu\n", (unsigned long long)atomic_load(&stood_in),
               (unsigned long long)atomic_load(&readies));
}

DOMT_SUITE(200)
