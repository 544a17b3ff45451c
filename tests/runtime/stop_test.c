/* runtime/control/stop.c: when a system ends, every actor ends once, and every message is handled
 * or released once, whichever threads still work or call. */
#include "tests/runtime/running.h"

#include <errno.h>
#include <pthread.h>

static _Atomic uint64_t made, handled, released, resumed, strange;

/* A payload with a count of how it has ended: it may be handled or released only once. */
typedef struct parcel {
    _Atomic uint32_t *ends;
} parcel;

static void count_released_parcel(void *payload)
{
    const parcel *own = payload;
    atomic_fetch_add(&released, 1);
    if (own->ends != NULL)
        atomic_fetch_add(own->ends, 1);
}

static const domus_type parcel_type = {
    .name = "parcel", .size = sizeof(parcel), .release = count_released_parcel};
static const domus_type tick_type = {.name = "tick", .size = 8};
static const domus_type question_type = {
    .name = "question", .size = sizeof(parcel), .release = count_released_parcel};

static int take_and_count_parcel(domus_stack *stack, void *self, const void *payload)
{
    const parcel *own = payload;
    (void)domus_take(stack);
    atomic_fetch_add(&handled, 1);
    if (own->ends != NULL)
        atomic_fetch_add(own->ends, 1);
    return 0;
}

static const domus_behaviour taker = {
    .name = "taker",
    .on = (const domus_on[]){{&parcel_type, take_and_count_parcel, 0}, {0}},
    .on_mount = domt_count_mount,
    .on_stop = domt_count_stop};

DOMT_TEST(on_stop_runs_once_for_every_mounted_actor)
{
    domus_system *system = domt_start_system_of_threads(3);
    enum { ACTORS = 3000 };
    static domus_address addresses[ACTORS];

    for (uint32_t i = 0; i < ACTORS; i++)
        addresses[i] = domt_spawn(system, i % 3, &taker, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&domt_mounted) == ACTORS);
    for (uint32_t i = 0; i < ACTORS; i += 5)
        ck_assert_int_eq(domus_outside_stop(system, addresses[i]), 0);
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_uint_eq(atomic_load(&domt_mounted), ACTORS);
    ck_assert_uint_eq(atomic_load(&domt_stopped), ACTORS);
    ck_assert_uint_eq(domt_profile_of_all_threads(system).stops, ACTORS);
    ck_assert_int_eq(domus_system_stop(system), 0);
    domt_end_system(system);
    ck_assert_uint_eq(atomic_load(&domt_stopped), ACTORS);
}

/* --- mail that is left ------------------------------------------------------------------------ */

static int count_resumed(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_fetch_add(&resumed, 1);
    return 0;
}

/* Raise a barrier and wait for an answer that never comes, so that all later messages stay in the
 * mailbox. */
static int wait_for_ever_in_barrier(domus_stack *stack, void *self, const void *payload)
{
    parcel none = {NULL};
    int result = domus_barrier(stack);
    if (result != 0)
        return result;
    atomic_fetch_add(&made, 1);
    return domus_ask(stack, *(const domus_address *)payload, &question_type, &none, count_resumed);
}

static int raise_barrier_and_sleep(domus_stack *stack, void *self, const void *payload)
{
    int result = domus_barrier(stack);
    return result != 0 ? result : domus_sleep(stack, 3600 * DOMT_MS * 1000, count_resumed);
}

static const domus_type hold_type = {.name = "hold", .size = sizeof(domus_address)};

static const domus_behaviour holder = {
    .name = "holder",
    .on = (const domus_on[]){{&parcel_type, take_and_count_parcel, 0},
                             {&hold_type, wait_for_ever_in_barrier, 0},
                             {&question_type, raise_barrier_and_sleep, 0},
                             {0}},
    .on_mount = domt_count_mount,
    .on_stop = domt_count_stop};

#define PARCELS 3000u

DOMT_TEST(mail_that_is_left_is_dropped_exactly_once)
{
    static _Atomic uint32_t ends[2 * PARCELS];
    domus_system *system = domt_start_system_of_threads(2);
    domus_address one = domt_spawn(system, 0, &holder, NULL);
    domus_address two = domt_spawn(system, 1, &holder, NULL);

    domt_send_notice(system, one, &hold_type, &two);
    /* wait until the ask of the first actor has come to the second one */
    DOMT_WAIT_FOR(10, domt_profile_of_all_threads(system).asks == 1);
    for (uint32_t i = 0; i < PARCELS; i++) {
        domt_send_notice(system, one, &parcel_type, &(parcel){&ends[2 * i]});
        domt_send_notice(system, two, &parcel_type, &(parcel){&ends[2 * i + 1]});
    }
    domt_pause_ns(5 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&handled), 0);
    ck_assert_int_eq(domus_system_stop(system), 0);
    uint64_t wrong = 0;
    for (uint32_t i = 0; i < 2 * PARCELS; i++)
        wrong += atomic_load(&ends[i]) != 1;
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(atomic_load(&handled), 0);
    /* The ask that the second actor holds was released, too. */
    ck_assert_uint_eq(atomic_load(&released), 2 * PARCELS + 1);
    ck_assert_uint_eq(atomic_load(&domt_stopped), 2);
    /* the waiting conversation of each actor was cancelled */
    ck_assert_uint_eq(atomic_load(&resumed), 2);
    domt_end_system(system);
}

/* --- on_stop that does things ----------------------------------------------------------------- */

#define RING 2000u

struct link {
    domus_address next;
    domus_address far;
};

static const domus_type link_type = {.name = "link", .size = sizeof(struct link)};

static int set_own_link(domus_stack *stack, void *self, const void *payload)
{
    *(struct link *)self = *(const struct link *)payload;
    atomic_fetch_add(&made, 1);
    return 0;
}

/* Wait until both threads are ending their actors. */
static void wait_until_both_threads_end_actors(void)
{
    static _Atomic uint32_t here;
    static _Thread_local bool met;
    uint64_t until_ns = domt_now_ns() + 1000 * DOMT_MS;

    if (met)
        return;
    met = true;
    atomic_fetch_add(&here, 1);
    while (atomic_load(&here) < 2 && domt_now_ns() < until_ns)
        continue;
}

/* An on_stop that calls every verb at the very end of the system: no call may do harm, and messages
 * that are sent are dropped. */
static void call_each_verb_in_stop(domus_stack *stack, void *self_)
{
    const struct link *self = self_;
    domus_address born;
    domus_timer timer;
    const domus_address to[] = {self->next, self->far, domus_self(stack)};

    wait_until_both_threads_end_actors();
    atomic_fetch_add(&domt_stopped, 1);
    for (size_t i = 0; i < sizeof to / sizeof to[0]; i++) {
        if (domus_notice(stack, to[i], &parcel_type, &(parcel){NULL}) == 0)
            atomic_fetch_add(&handled, 1); /* this call counts as sent and as handled */
    }
    (void)domus_ask(stack, self->next, &question_type, &(parcel){NULL}, count_resumed);
    (void)domus_stop(stack, self->next);
    (void)domus_stop(stack, self->far);
    (void)domus_stop(stack, domus_self(stack));
    (void)domus_after(stack, DOMT_MS, &tick_type, &(uint64_t){0}, &timer);
    (void)domus_every(stack, DOMT_MS, &tick_type, &(uint64_t){0}, NULL);
    if (domus_spawn(stack, &taker, NULL, &born) != -ESHUTDOWN)
        atomic_fetch_add(&strange, 1);
    if (domus_reply(stack, &parcel_type, &(parcel){NULL}) != -EINVAL)
        atomic_fetch_add(&strange, 1);
}

static const domus_behaviour leaver = {.name = "leaver",
                                       .state_size = sizeof(struct link),
                                       .on = (const domus_on[]){{&link_type, set_own_link, 0}, {0}},
                                       .on_stop = call_each_verb_in_stop};

DOMT_TEST(on_stop_may_do_anything_at_the_end)
{
    static domus_address addresses[2][RING];
    domus_config config = domt_config_of_threads(2);

    /* the stop of actors gets no time, so most of them are ended as they are */
    config.shutdown.actor_timeout_ns = 0;
    domus_system *system = domt_start_system(&config);
    for (uint32_t i = 0; i < 2 * RING; i++)
        addresses[i % 2][i / 2] = domt_spawn(system, i % 2, &leaver, NULL);
    for (uint32_t i = 0; i < 2 * RING; i++) {
        struct link link = {addresses[i % 2][(i / 2 + 1) % RING], addresses[1 - i % 2][i / 2]};
        domt_send_notice(system, addresses[i % 2][i / 2], &link_type, &link);
    }
    DOMT_WAIT_FOR(20, atomic_load(&made) == 2 * RING);
    int result;
    do /* repeat, because on a busy machine a thread may take longer than the stop waits at least */
        result = domus_system_stop(system);
    while (result == -ETIMEDOUT);
    ck_assert_int_eq(result, 0);
    ck_assert_uint_eq(atomic_load(&domt_stopped), 2 * RING);
    ck_assert_uint_eq(atomic_load(&strange), 0);
    ck_assert_uint_eq(atomic_load(&resumed), 0);
    ck_assert_uint_eq(atomic_load(&released), atomic_load(&handled));
    domt_end_system(system);
}

/* --- stop in full flight ---------------------------------------------------------------------- */

static int act_at_random_for_ever(domus_stack *stack, void *self, const void *payload);

static const domus_behaviour fury = {
    .name = "fury",
    .state_size = sizeof(uint64_t),
    .on = (const domus_on[]){{&tick_type, act_at_random_for_ever, 0},
                             {&parcel_type, take_and_count_parcel, 0},
                             {&question_type, raise_barrier_and_sleep, 0},
                             {0}},
    .on_mount = domt_count_mount,
    .on_stop = domt_count_stop};

#define FURIES_MAX 5000

/* Handle a message by spawning, sending, asking, arming timers or stopping, and go on for ever. */
static int act_at_random_for_ever(domus_stack *stack, void *self_, const void *payload)
{
    uint64_t *turn = self_;
    domus_address born;

    if (++*turn % 3 == 0 && atomic_load(&made) - atomic_load(&domt_stopped) < FURIES_MAX &&
        domus_spawn(stack, &fury, NULL, &born) == 0) {
        atomic_fetch_add(&made, 1);
        (void)domus_notice(stack, born, &tick_type, &(uint64_t){0});
        for (int i = 0; i < 3; i++)
            (void)domus_notice(stack, born, &parcel_type, &(parcel){NULL});
        if (*turn % 2 == 0)
            (void)domus_stop(stack, born);
    }
    (void)domus_after(stack, *turn % 7 * DOMT_MS, &tick_type, &(uint64_t){0}, NULL);
    (void)domus_notice(stack, domus_self(stack), &parcel_type, &(parcel){NULL});
    if (*turn > 20)
        return domus_stop(stack, domus_self(stack));
    if (*turn % 5 == 0 && domus_sender(stack).house != NULL)
        return domus_ask(stack, domus_sender(stack), &question_type, &(parcel){NULL},
                         count_resumed);
    return domus_notice(stack, domus_self(stack), &tick_type, &(uint64_t){0});
}

DOMT_TEST(stop_ends_actors_that_spawn_send_and_arm_timers_wildly)
{
    for (uint32_t round = 0; round < 5; round++) {
        domus_config config = domt_config_of_threads(2);
        config.shutdown.drain_timeout_ns = 0;
        domus_system *system = domt_start_system(&config);
        for (uint32_t i = 0; i < 10; i++) {
            domus_address address = domt_spawn(system, i % 2, &fury, NULL);
            atomic_fetch_add(&made, 1);
            domt_send_notice(system, address, &tick_type, &(uint64_t){0});
        }
        domt_pause_ns((5 + 10 * round) * DOMT_MS);
        uint64_t began_ns = domt_now_ns();
        ck_assert_int_eq(domus_system_stop(system), 0);
        ck_assert_uint_lt(domt_now_ns() - began_ns, 5000 * DOMT_MS);
        ck_assert_uint_eq(atomic_load(&domt_mounted), atomic_load(&domt_stopped));
        ck_assert_uint_ge(atomic_load(&made), atomic_load(&domt_mounted));
        domt_end_system(system);
        atomic_store(&made, 0);
        atomic_store(&domt_mounted, 0);
        atomic_store(&domt_stopped, 0);
    }
}

DOMT_TEST(drain_timeout_of_zero_stops_an_idle_and_a_busy_system)
{
    domus_config config = domt_config_of_threads(2);

    config.shutdown.drain_timeout_ns = 0;
    domus_system *system = domt_start_system(&config);
    domt_end_system(system);
    system = domt_start_system(&config);
    domus_address address = domt_spawn(system, 1, &taker, NULL);
    for (int i = 0; i < 5000; i++)
        (void)domus_outside_notice(system, address, &parcel_type, &(parcel){NULL});
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_uint_eq(atomic_load(&handled) + atomic_load(&released), 5000);
    ck_assert_uint_le(atomic_load(&domt_stopped), 1);
    domt_end_system(system);
}

/* --- foreign threads to the last -------------------------------------------------------------- */

#define FOREIGN 3

struct flood {
    domus_system *system;
    domus_address to;
    uint64_t taken;
    uint64_t births;
    uint64_t wrong;
};

static bool is_expected_result(int result)
{
    return result == 0 || result == -ENOBUFS || result == -ESTALE || result == -ESHUTDOWN;
}

static void *send_flood_until_shutdown(void *self_)
{
    struct flood *self = self_;
    int result = 0;

    for (uint64_t i = 0; result != -ESHUTDOWN; i++) {
        result = domus_outside_notice(self->system, self->to, &parcel_type, &(parcel){NULL});
        self->taken += result == 0;
        self->wrong += !is_expected_result(result);
        if (result == -ESHUTDOWN || i % 16 != 0)
            continue;
        domus_address born;
        int spawned = domus_outside_spawn(self->system, &taker, NULL, &born);
        self->wrong += !is_expected_result(spawned);
        if (spawned != 0)
            continue;
        self->births++;
        if (domus_outside_notice(self->system, born, &parcel_type, &(parcel){NULL}) == 0)
            self->taken++;
        self->wrong += !is_expected_result(domus_outside_stop(self->system, born));
    }
    /* When the stop is over, each call of a foreign thread is refused. */
    domus_address born;
    self->wrong += domus_outside_spawn(self->system, &taker, NULL, &born) != -ESHUTDOWN;
    self->wrong += domus_outside_stop(self->system, self->to) != -ESHUTDOWN;
    return NULL;
}

DOMT_TEST(stop_under_a_flood_from_foreign_threads_answers_eshutdown)
{
    for (uint32_t round = 0; round < 8; round++) {
        domus_system *system = domt_start_system_of_threads(2);
        struct flood floods[FOREIGN];
        pthread_t threads[FOREIGN];
        uint64_t taken = 0;

        atomic_store(&handled, 0);
        atomic_store(&released, 0);
        for (uint32_t i = 0; i < FOREIGN; i++) {
            floods[i] = (struct flood){
                .system = system,
                .to = domt_spawn(system, i % 2, &taker, NULL),
            };
            ck_assert_int_eq(
                pthread_create(&threads[i], NULL, send_flood_until_shutdown, &floods[i]), 0);
        }
        domt_pause_ns((2 + 4 * round) * DOMT_MS);
        ck_assert_int_eq(domus_system_stop(system), 0);
        for (uint32_t i = 0; i < FOREIGN; i++) {
            pthread_join(threads[i], NULL);
            ck_assert_uint_eq(floods[i].wrong, 0);
            taken += floods[i].taken;
        }
        ck_assert_uint_eq(atomic_load(&handled) + atomic_load(&released), taken);
        domt_end_system(system);
        ck_assert_uint_eq(atomic_load(&domt_mounted), atomic_load(&domt_stopped));
    }
}

DOMT_SUITE(60)
