/* Standing in (contract: Park and wake): a thread that was asleep a moment ago runs the one actor
 * for which a sleeper would have to wake, and wakes the sleeper in every other case.
 *
 * The threads are stepped by hand, so it is exact which thread sleeps, and since when. */
#include "house/dispatch/loan.h"

#include "tests/runtime/running.h"
#include "tests/runtime/stepped.h"

#define HERE   0u /* number of the thread whose actor sends */
#define SECOND (1000 * DOMT_MS)

static const domus_type go_type = {.name = "go"};
static const domus_type work_type = {.name = "work"};
/* a payload that is too large for a belt */
static const domus_type large_type = {.name = "large", .size = 100};
static const domus_type tick_type = {.name = "tick"};

static domt_stepped world;
static domus_address receivers[DOMI_SLEEPERS_MAX + 2];
static uint32_t receivers_count;
static uint32_t worked, woken_when_worked, stopped;
static uint64_t sleep_takes_ns;
static uint32_t word_asleep, woken_behind_send;

/* The actions that the present test wants of its actors, and what happens on the sleepers'
 * threads. */
typedef struct deeds {
    bool stops_itself, pins_itself, floods_itself;
    bool sleeps_long, uses_belt_first;
    uint64_t work_takes_ns, tick_after_ns, works_behind_send_ns;
} deeds;

static deeds does;

static domt_ring *ring_of_thread(uint32_t thread)
{
    return &world.rings[thread];
}

static _Atomic uint32_t *park_word_of_thread(uint32_t thread)
{
    return &domt_stepped_thread(&world, thread)->manager.park;
}

static void let_thread_doze(uint32_t thread)
{
    atomic_store(park_word_of_thread(thread), DOMI_PARK_DOZING);
}

static int send_small_or_large_notice(domus_stack *stack, domus_address to, bool large)
{
    static const char bytes[100];
    return domus_notice(stack, to, large ? &large_type : &work_type, large ? bytes : NULL);
}

/* Send as a thread does that does not see yet that the receiver's thread falls asleep: by the
 * belt. */
static void send_by_belt_before_thread_dozes(domus_stack *stack)
{
    atomic_store(park_word_of_thread(1), DOMI_PARK_RUNNING);
    ck_assert_int_eq(send_small_or_large_notice(stack, receivers[0], false), 0);
    let_thread_doze(1);
}

static int send_work_to_receivers(domus_stack *stack, void *self, const void *payload)
{
    if (does.uses_belt_first)
        send_by_belt_before_thread_dozes(stack);
    for (uint32_t i = 0; i < receivers_count; i++)
        ck_assert_int_eq(send_small_or_large_notice(stack, receivers[i], does.uses_belt_first), 0);
    woken_behind_send = ring_of_thread(1)->wakes;
    domt_stepped_advance_clock(&world, does.works_behind_send_ns);
    return 0;
}

static int count_work_of_receiver(domus_stack *stack, void *self, const void *payload)
{
    worked++;
    woken_when_worked = ring_of_thread(1)->wakes;
    domt_stepped_advance_clock(&world, does.work_takes_ns);
    if (does.stops_itself)
        ck_assert_int_eq(domus_stop(stack, domus_self(stack)), 0);
    if (does.pins_itself) /* pin the actor, as its first watch of a descriptor would do */
        receivers[0].house->marks |= DOMI_MARK_PINNED;
    for (uint32_t i = 0; does.floods_itself && i <= DOMI_PLAIN_MAIL_MAX; i++)
        ck_assert_int_eq(domus_notice(stack, domus_self(stack), &tick_type, NULL), 0);
    return does.tick_after_ns == 0 ? 0
                                   : domus_after(stack, does.tick_after_ns, &tick_type, NULL, NULL);
}

static int ignore_tick(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static void count_stopped_actor(domus_stack *stack, void *self)
{
    stopped++;
}

static const domus_on rows[] = {{&go_type, send_work_to_receivers, 0},
                                {&work_type, count_work_of_receiver, 0},
                                {&large_type, count_work_of_receiver, 0},
                                {&tick_type, ignore_tick, 0},
                                {0}};
static const domus_behaviour plain = {.name = "plain", .on = rows, .on_stop = count_stopped_actor};
static const domus_behaviour channels = {.name = "channels", .kind = DOMUS_CHANNELS, .on = rows};

static domus_address sender;

static domus_config config_with_standing_in(uint32_t threads)
{
    domus_config config = domt_config_of_threads(threads);
    config.scheduler.idle.stand_in_ns = UINT64_C(100000);
    return config;
}

/* Let all threads fall asleep, with a message for the actor that sends. */
static void begin_with_all_threads_asleep(domus_config config)
{
    domt_stepped_init(&world, &config);
    sender = domt_spawn(world.system, HERE, &plain, NULL);
    receivers_count = worked = woken_when_worked = stopped = 0;
    does = (deeds){.stops_itself = false};
}

static void add_receiver_on_thread(uint32_t thread, const domus_behaviour *behaviour)
{
    receivers[receivers_count++] = domt_spawn(world.system, thread, behaviour, NULL);
}

/* Let thread HERE wake `after_ns` after it fell asleep, and send its messages. */
static void let_sender_wake_and_send_after(uint64_t after_ns)
{
    for (uint32_t i = world.system->count; i-- > 0;) {
        /* this iteration mounts the actors that were spawned */
        domt_stepped_iterate(&world, i, true);
        domt_stepped_iterate(&world, i, true);
        if (i != HERE) {
            let_thread_doze(i); /* from here on the thread sleeps, for as long as the test lasts */
            if (does.sleeps_long)
                domi_park_begin_sleep(park_word_of_thread(i));
            ring_of_thread(i)->wakes = 0;
        }
    }
    for (uint32_t i = 0; i < world.system->count; i++)
        domt_stepped_thread(&world, i)->until_ns = domt_stepped_now_ns(&world) + SECOND;
    domt_send_notice(world.system, sender, &go_type, NULL);
    domt_stepped_advance_clock(&world, after_ns);
    domt_stepped_iterate(&world, HERE, false);
}

static void end_world_of_threads(void)
{
    for (uint32_t i = 0; i < world.system->count; i++)
        atomic_store(park_word_of_thread(i), DOMI_PARK_RUNNING);
    domt_stepped_fini(&world);
}

/* Check how many runs the actor of thread 1 had on thread HERE, and how many wake-ups its own
 * thread got. */
static void expect_runs_here_and_wakes(uint32_t runs_here, uint32_t wakes)
{
    ck_assert_uint_eq(worked, runs_here);
    ck_assert_uint_eq(ring_of_thread(1)->wakes, wakes);
    ck_assert_uint_eq(atomic_load(park_word_of_thread(1)),
                      wakes != 0 ? DOMI_PARK_NOTIFIED : DOMI_PARK_DOZING);
    ck_assert_uint_eq(domt_profile_of_thread(world.system, HERE).steals, runs_here);
    ck_assert_uint_eq(domt_profile_of_thread(world.system, HERE).wakeups_sent, wakes);
    end_world_of_threads();
}

/* a thread stands in for others if it was asleep less than this time ago */
#define STANDS_IN_NS 100000u

/* The cases: thread HERE sends a message to one actor of thread 1, or to two of them. */
static const struct {
    const char *name;
    const domus_behaviour *behaviour; /* behaviour of the receiver; NULL: a plain state actor */
    bool is_one_of_two, is_pinned, is_off, cannot_steal, has_belts;
    uint64_t after_ns; /* time between the end of the sender's sleep and the send */
    deeds does;
    /* number of runs on thread HERE, and of wake-ups of thread 1, that must happen */
    uint32_t runs_here, wakes;
    /* numbers of loans that are left, of messages on belts, and of wake-ups at the send itself */
    uint32_t lent, belted, at_once;
} cases[] = {
    {"one actor", .runs_here = 1},
    {"two actors", .is_one_of_two = true, .wakes = 1},
    {"a pinned actor", .is_pinned = true, .wakes = 1},
    {"a channels actor", .behaviour = &channels, .wakes = 1},
    {"awake for less than the time", .after_ns = STANDS_IN_NS - 1, .runs_here = 1},
    {"awake for the time", .after_ns = STANDS_IN_NS, .wakes = 1, .at_once = 1},
    {"standing in is off", .is_off = true, .wakes = 1, .at_once = 1},
    {"stealing is off", .cannot_steal = true, .wakes = 1, .at_once = 1},
    {"a timer that is due before the end of the sleep", .does = {.tick_after_ns = 10 * DOMT_MS},
     .runs_here = 1, .wakes = 1},
    {"a timer behind that", .does = {.tick_after_ns = 3600 * SECOND}, .runs_here = 1},
    /* The sleeper is woken, because a watch of a descriptor begins in its own ring, and many
     * messages take too long to sort. */
    {"a loan that pins itself", .does = {.pins_itself = true}, .runs_here = 1, .wakes = 1,
     .lent = 1},
    {"a loan with much mail", .does = {.floods_itself = true}, .runs_here = 1, .wakes = 1,
     .lent = 1},
    /* The wake-up is not put off, because the sleep does not end soon by itself, and nobody knows
     * what the sender will do after the send. */
    {"a sleeper that does not doze", .does = {.sleeps_long = true}, .wakes = 1, .belted = 1,
     .at_once = 1},
    /* Threads stand in for a dozing thread also with belts. A notice on a belt wakes the dozing
     * thread all the same, and notices in its inbox wait for that, because an earlier notice may be
     * on the belt. */
    {"belts", .has_belts = true, .runs_here = 1},
    {"a message on a belt", .has_belts = true, .does = {.uses_belt_first = true}, .wakes = 1,
     .belted = 1},
};

DOMT_TEST(actor_of_a_sleeper_runs_in_its_place_or_the_sleeper_is_woken)
{
    /* STANDS_IN_NS is the default value of the key */
    ck_assert_uint_eq(domt_config_of_threads(2).scheduler.idle.stand_in_ns, STANDS_IN_NS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domus_config config = config_with_standing_in(2);
        config.scheduler.steal.enabled = !cases[i].cannot_steal;
        if (cases[i].is_off)
            config.scheduler.idle.stand_in_ns = 0;
        if (cases[i].has_belts)
            config.scheduler.belt_slots = 64;
        begin_with_all_threads_asleep(config);
        add_receiver_on_thread(1, cases[i].behaviour != NULL ? cases[i].behaviour : &plain);
        if (cases[i].is_one_of_two)
            add_receiver_on_thread(1, &plain);
        if (cases[i].is_pinned)
            receivers[0].house->marks |= DOMI_MARK_PINNED;
        does = cases[i].does;
        let_sender_wake_and_send_after(cases[i].after_ns);
        const domi_manager *sleeper = &domt_stepped_thread(&world, 1)->manager;
        uint32_t belted = (uint32_t)domt_profile_of_thread(world.system, HERE).belted;
        ck_assert_msg(worked == cases[i].runs_here && ring_of_thread(1)->wakes == cases[i].wakes &&
                          sleeper->loans.lent == cases[i].lent && belted == cases[i].belted &&
                          woken_behind_send == cases[i].at_once,
                      "%s: %u runs, %u wakes, %u lent, %u belted, %u at once", cases[i].name,
                      worked, ring_of_thread(1)->wakes, sleeper->loans.lent, belted,
                      woken_behind_send);
        ck_assert(woken_when_worked == 0);
        ck_assert(cases[i].runs_here == 0 || domt_stepped_thread(&world, 1)->was_held);
        ck_assert(cases[i].behaviour == NULL || atomic_load(&sleeper->mail.arrivals) != NULL);
        expect_runs_here_and_wakes(cases[i].runs_here, cases[i].wakes);
    }
}

/* A victim has named the sleeper as its helper just when another thread held the sleeper, so the
 * hold must end with a wake-up. */
DOMT_TEST(sleeper_that_is_called_to_steal_is_woken)
{
    begin_with_all_threads_asleep(config_with_standing_in(2));
    add_receiver_on_thread(1, &plain);
    atomic_store(&world.system->waking, 1 + 1);
    let_sender_wake_and_send_after(0);
    expect_runs_here_and_wakes(1, 1);
}

DOMT_TEST(long_runs_are_left_to_the_sleeper_for_a_while)
{
    domus_config config = config_with_standing_in(2);

    config.scheduler.idle.stand_in_ns = 110000;
    begin_with_all_threads_asleep(config);
    add_receiver_on_thread(1, &plain);
    /* more work than a stand-in may take on, but too little for a wake-up at once */
    does.work_takes_ns = 100000;
    let_sender_wake_and_send_after(0);
    ck_assert_uint_eq(worked, 1);
    domt_send_notice(world.system, sender, &go_type, NULL);
    domt_stepped_iterate(&world, HERE, false);
    expect_runs_here_and_wakes(1, 1);
}

/* While a thread is held, no code of a user may run for it, so its actors end only when it is
 * awake. */
DOMT_TEST(actor_that_stops_in_its_run_ends_on_its_own_thread)
{
    begin_with_all_threads_asleep(config_with_standing_in(2));
    add_receiver_on_thread(1, &plain);
    does.stops_itself = true;
    let_sender_wake_and_send_after(0);
    ck_assert_uint_eq(stopped, 0);
    /* the loan was settled, and the actor not ended */
    ck_assert_uint_eq(domt_stepped_thread(&world, 1)->manager.loans.lent, 0);
    (void)domi_park_end_sleep(park_word_of_thread(1));
    domt_stepped_iterate(&world, 1, false);
    ck_assert_uint_eq(stopped, 1);
    let_thread_doze(1);
    (void)domi_park_try_notify(park_word_of_thread(1));
    expect_runs_here_and_wakes(1, 1);
}

DOMT_TEST(mail_that_comes_for_a_held_thread_wakes_it)
{
    begin_with_all_threads_asleep(config_with_standing_in(2));
    add_receiver_on_thread(1, &plain);
    let_sender_wake_and_send_after(0);
    ck_assert_uint_eq(worked, 1);
    ck_assert(domi_park_try_hold_dozing_owner(park_word_of_thread(1)));
    /* this message comes from a foreign thread */
    domt_send_notice(world.system, receivers[0], &work_type, NULL);
    ck_assert_uint_eq(atomic_load(park_word_of_thread(1)), DOMI_PARK_WANTED);
    ck_assert_uint_eq(ring_of_thread(1)->wakes, 0);
    ck_assert(domi_park_release_held_owner(park_word_of_thread(1), false));
    ck_assert_uint_eq(atomic_load(park_word_of_thread(1)), DOMI_PARK_NOTIFIED);
    end_world_of_threads();
}

/* In one phase, the wake-ups of at most DOMI_SLEEPERS_MAX threads can be put off; further threads
 * are woken at once. */
DOMT_TEST(sleepers_beyond_the_most_that_can_be_noted_are_woken)
{
    uint32_t asleep = DOMI_SLEEPERS_MAX + 2;

    begin_with_all_threads_asleep(config_with_standing_in(1 + asleep));
    for (uint32_t i = 1; i <= asleep; i++)
        add_receiver_on_thread(i, &plain);
    let_sender_wake_and_send_after(0);
    ck_assert_uint_eq(worked, DOMI_SLEEPERS_MAX);
    for (uint32_t i = 1; i <= asleep; i++)
        ck_assert_uint_eq(ring_of_thread(i)->wakes, i > DOMI_SLEEPERS_MAX);
    end_world_of_threads();
}

static void sleep_for_one_microsecond(domt_stepped *stepped, uint32_t index)
{
    domt_stepped_advance_clock(stepped, 1000);
}

/* Let the sleeper handle its messages and doze again, and let the sender's thread sleep for a
 * moment and send once more. */
static void let_sender_send_again(void)
{
    (void)domi_park_end_sleep(park_word_of_thread(1));
    domt_stepped_iterate(&world, 1, false);
    let_thread_doze(1);
    world.on_sleep = sleep_for_one_microsecond;
    for (uint32_t slept = ring_of_thread(HERE)->sleeps; ring_of_thread(HERE)->sleeps == slept;)
        domt_stepped_iterate(&world, HERE, true);
    domt_send_notice(world.system, sender, &go_type, NULL);
    domt_stepped_iterate(&world, HERE, false);
}

/* Check how many wake-ups thread 1 has got, and how many runs thread HERE has made in its place, so
 * far. */
static void expect_wakes_and_runs_so_far(uint32_t wakes, uint32_t runs_here)
{
    ck_assert_uint_eq(ring_of_thread(1)->wakes, wakes);
    ck_assert_uint_eq(domt_profile_of_thread(world.system, HERE).steals, runs_here);
}

/* A sleeper had to wait for a handler that went on working after its send. For some time after
 * that, this thread puts off no wake-up. */
DOMT_TEST(long_handler_makes_its_thread_wake_sleepers_at_once)
{
    begin_with_all_threads_asleep(config_with_standing_in(2));
    add_receiver_on_thread(1, &plain);
    does.works_behind_send_ns = DOMT_MS;
    let_sender_wake_and_send_after(0);
    expect_wakes_and_runs_so_far(1, 0);
    does.works_behind_send_ns = 0;
    let_sender_send_again();
    expect_wakes_and_runs_so_far(2, 0);
    /* after that time the sender's thread may put off wake-ups again */
    domt_stepped_advance_clock(&world, 10 * DOMT_MS);
    let_sender_send_again();
    expect_wakes_and_runs_so_far(2, 1);
    /* after a second such handler, the thread puts off no wake-up for twice as long */
    does.works_behind_send_ns = DOMT_MS;
    let_sender_send_again();
    expect_wakes_and_runs_so_far(3, 1);
    does.works_behind_send_ns = 0;
    domt_stepped_advance_clock(&world, 19 * DOMT_MS);
    let_sender_send_again();
    expect_wakes_and_runs_so_far(4, 1);
    domt_stepped_advance_clock(&world, 2 * DOMT_MS);
    let_sender_send_again();
    expect_wakes_and_runs_so_far(4, 2);
    end_world_of_threads();
}

static void record_park_word_and_sleep(domt_stepped *stepped, uint32_t index)
{
    word_asleep = atomic_load(park_word_of_thread(index));
    domt_stepped_advance_clock(stepped, sleep_takes_ns < ring_of_thread(index)->sleep_ns
                                            ? sleep_takes_ns
                                            : ring_of_thread(index)->sleep_ns);
}

/* Let thread HERE sleep once, for `takes_ns` or to the end of the sleep. Check its time-out, and
 * its park word in the sleep. */
static void expect_time_out_and_word_of_sleep(uint64_t takes_ns, uint64_t most_ns, uint32_t word)
{
    sleep_takes_ns = takes_ns;
    for (uint32_t slept = ring_of_thread(HERE)->sleeps; ring_of_thread(HERE)->sleeps == slept;)
        domt_stepped_iterate(&world, HERE, true);
    ck_assert_uint_eq(ring_of_thread(HERE)->sleep_ns, most_ns);
    ck_assert_uint_eq(word_asleep, word);
}

DOMT_TEST(thread_dozes_behind_a_short_sleep_or_one_in_which_others_stood_in)
{
    domus_config config = config_with_standing_in(2);
    uint64_t doze_ns = config.scheduler.idle.doze_ns;

    ck_assert_uint_eq(doze_ns, 2 * DOMT_MS); /* the default of scheduler.idle.doze */
    begin_with_all_threads_asleep(config);
    world.on_sleep = record_park_word_and_sleep;
    expect_time_out_and_word_of_sleep(SECOND, SECOND, DOMI_PARK_SLEEPING);
    expect_time_out_and_word_of_sleep(doze_ns - 1, SECOND, DOMI_PARK_SLEEPING);
    expect_time_out_and_word_of_sleep(SECOND, doze_ns, DOMI_PARK_DOZING);
    expect_time_out_and_word_of_sleep(SECOND, SECOND, DOMI_PARK_SLEEPING);
    domt_stepped_thread(&world, HERE)->was_held = true;
    /* the hold counts only at the next sleep */
    expect_time_out_and_word_of_sleep(SECOND, SECOND, DOMI_PARK_SLEEPING);
    expect_time_out_and_word_of_sleep(SECOND, doze_ns, DOMI_PARK_DOZING);
    expect_time_out_and_word_of_sleep(SECOND, SECOND, DOMI_PARK_SLEEPING);
    end_world_of_threads();
    config.scheduler.idle.stand_in_ns = 0;
    begin_with_all_threads_asleep(config);
    world.on_sleep = record_park_word_and_sleep;
    expect_time_out_and_word_of_sleep(0, SECOND, DOMI_PARK_SLEEPING);
    expect_time_out_and_word_of_sleep(0, SECOND, DOMI_PARK_SLEEPING);
    end_world_of_threads();
}

DOMT_SUITE(60)
