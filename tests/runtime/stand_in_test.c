/* Standing in (contract: Park and wake): a thread that was asleep a moment ago runs the one actor
 * for which a sleeper would have to wake, and wakes the sleeper in every other case.
 *
 * The threads are stepped by hand, so what is asleep, and since when, is exact. */
#include "house/dispatch/loan.h"

#include "tests/runtime/running.h"
#include "tests/runtime/stepped.h"

#define HERE   0u /* the thread that sends */
#define SECOND (1000 * DOMT_MS)

static const domus_type go_type = {.name = "go"};
static const domus_type work_type = {.name = "work"};
static const domus_type large_type = {.name = "large", .size = 100}; /* too large for a belt */
static const domus_type tick_type = {.name = "tick"};

static domt_stepped world;
static domus_address receivers[DOMI_SLEEPERS_MAX + 2];
static uint32_t receivers_count;
static uint32_t worked, woken_when_worked, stopped;
static bool stops_itself, pins_itself, floods_itself;
static uint64_t work_takes_ns, tick_after_ns, works_behind_send_ns, sleep_takes_ns;
static uint32_t word_asleep, woken_behind_send;
static bool sleeps_long, uses_belt_first;

static domt_ring *ring_of(uint32_t thread)
{
    return &world.rings[thread];
}

static _Atomic uint32_t *word_of(uint32_t thread)
{
    return &domt_stepped_thread(&world, thread)->manager.park;
}

static void doze(uint32_t thread)
{
    atomic_store(word_of(thread), DOMI_PARK_DOZING);
}

static int send_one(domus_stack *stack, domus_address to, bool large)
{
    static const char bytes[100];

    return domus_notice(stack, to, large ? &large_type : &work_type, large ? bytes : NULL);
}

/* A sender that does not see yet that its receiver goes to sleep uses the belt. */
static void send_by_belt(domus_stack *stack)
{
    atomic_store(word_of(1), DOMI_PARK_RUNNING);
    ck_assert_int_eq(send_one(stack, receivers[0], false), 0);
    doze(1);
}

static int go(domus_stack *stack, void *self, const void *payload)
{
    if (uses_belt_first)
        send_by_belt(stack);
    for (uint32_t i = 0; i < receivers_count; i++)
        ck_assert_int_eq(send_one(stack, receivers[i], uses_belt_first), 0);
    woken_behind_send = ring_of(1)->wakes;
    domt_stepped_advance(&world, works_behind_send_ns);
    return 0;
}

static int work(domus_stack *stack, void *self, const void *payload)
{
    worked++;
    woken_when_worked = ring_of(1)->wakes;
    domt_stepped_advance(&world, work_takes_ns);
    if (stops_itself)
        ck_assert_int_eq(domus_stop(stack, domus_self(stack)), 0);
    if (pins_itself) /* as the first watch of a descriptor does */
        receivers[0].house->marks |= DOMI_MARK_PINNED;
    for (uint32_t i = 0; floods_itself && i <= DOMI_PLAIN_MAIL_MAX; i++)
        ck_assert_int_eq(domus_notice(stack, domus_self(stack), &tick_type, NULL), 0);
    return tick_after_ns == 0 ? 0 : domus_after(stack, tick_after_ns, &tick_type, NULL, NULL);
}

static int tick(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static void note_stop(domus_stack *stack, void *self)
{
    stopped++;
}

static const domus_on rows[] = {{&go_type, go, 0},
                                {&work_type, work, 0},
                                {&large_type, work, 0},
                                {&tick_type, tick, 0},
                                {NULL, NULL, 0}};
static const domus_behaviour plain = {.name = "plain", .on = rows, .on_stop = note_stop};
static const domus_behaviour channels = {.name = "channels", .kind = DOMUS_CHANNELS, .on = rows};

static domus_address sender;

static domus_config with_standing_in(uint32_t threads)
{
    domus_config config = domt_config(threads);

    config.scheduler.idle.stand_in_ns = UINT64_C(100000);
    return config;
}

/* All threads sleep, and the sender's one wakes for a message. */
static void begin(domus_config config)
{
    domt_stepped_init(&world, &config);
    sender = domt_spawn(world.system, HERE, &plain, NULL);
    receivers_count = worked = woken_when_worked = stopped = 0;
    stops_itself = pins_itself = floods_itself = sleeps_long = false;
    uses_belt_first = false;
    work_takes_ns = tick_after_ns = works_behind_send_ns = 0;
}

static void add(uint32_t thread, const domus_behaviour *behaviour)
{
    receivers[receivers_count++] = domt_spawn(world.system, thread, behaviour, NULL);
}

/* Thread HERE wakes and sends, `after_ns` later. */
static void send_after(uint64_t after_ns)
{
    for (uint32_t i = world.system->count; i-- > 0;) {
        domt_stepped_iterate(&world, i, true); /* it mounts what was spawned */
        domt_stepped_iterate(&world, i, true);
        if (i != HERE) {
            doze(i); /* it sleeps until the end of the test */
            if (sleeps_long)
                domi_park_begin(word_of(i));
            ring_of(i)->wakes = 0;
        }
    }
    for (uint32_t i = 0; i < world.system->count; i++)
        domt_stepped_thread(&world, i)->until_ns = domt_stepped_now_ns(&world) + SECOND;
    domt_notice(world.system, sender, &go_type, NULL);
    domt_stepped_advance(&world, after_ns);
    domt_stepped_iterate(&world, HERE, false);
}

static void end(void)
{
    for (uint32_t i = 0; i < world.system->count; i++)
        atomic_store(word_of(i), DOMI_PARK_RUNNING);
    domt_stepped_fini(&world);
}

/* Hold what has happened to one actor on thread 1. */
static void expect(uint32_t runs_here, uint32_t wakes)
{
    ck_assert_uint_eq(worked, runs_here);
    ck_assert_uint_eq(ring_of(1)->wakes, wakes);
    ck_assert_uint_eq(atomic_load(word_of(1)), wakes != 0 ? DOMI_PARK_NOTIFIED : DOMI_PARK_DOZING);
    ck_assert_uint_eq(domt_profile(world.system, HERE).steals, runs_here);
    ck_assert_uint_eq(domt_profile(world.system, HERE).wakeups_sent, wakes);
    end();
}

DOMT_TEST(actor_of_a_sleeper_runs_in_its_place)
{
    begin(with_standing_in(2));
    add(1, &plain);
    send_after(0);
    ck_assert_uint_eq(domt_stepped_thread(&world, 1)->manager.loans.lent, 0); /* and is settled */
    ck_assert(domt_stepped_thread(&world, 1)->was_held);
    expect(1, 0);
}

DOMT_TEST(two_actors_of_a_sleeper_wake_it)
{
    begin(with_standing_in(2));
    add(1, &plain);
    add(1, &plain);
    send_after(0);
    expect(0, 1);
}

DOMT_TEST(pinned_and_channels_actors_wake_their_thread)
{
    begin(with_standing_in(2));
    add(1, &plain);
    receivers[0].house->marks |= DOMI_MARK_PINNED;
    send_after(0);
    expect(0, 1);
    begin(with_standing_in(2));
    add(1, &channels);
    send_after(0);
    ck_assert_ptr_nonnull(atomic_load(&domt_stepped_thread(&world, 1)->manager.mail.arrivals));
    expect(0, 1);
}

DOMT_TEST(thread_that_is_awake_for_long_wakes_sleepers)
{
    domus_config config = with_standing_in(2);

    ck_assert_uint_eq(domt_config(2).scheduler.idle.stand_in_ns, 100000); /* the default */
    begin(config);
    add(1, &plain);
    send_after(config.scheduler.idle.stand_in_ns - 1);
    expect(1, 0);
    begin(config);
    add(1, &plain);
    send_after(config.scheduler.idle.stand_in_ns);
    expect(0, 1);
}

DOMT_TEST(nobody_stands_in_where_that_or_stealing_is_off)
{
    domus_config config = with_standing_in(2);

    config.scheduler.idle.stand_in_ns = 0;
    begin(config);
    add(1, &plain);
    send_after(0);
    expect(0, 1);
    config = with_standing_in(2);
    config.scheduler.steal.enabled = false;
    begin(config);
    add(1, &plain);
    send_after(0);
    expect(0, 1);
}

DOMT_TEST(timer_that_is_due_before_the_end_of_the_sleep_wakes_the_sleeper)
{
    begin(with_standing_in(2));
    add(1, &plain);
    tick_after_ns = 10 * DOMT_MS;
    send_after(0);
    ck_assert_uint_eq(woken_when_worked, 0);
    expect(1, 1);
    begin(with_standing_in(2));
    add(1, &plain);
    tick_after_ns = 3600 * SECOND;
    send_after(0);
    expect(1, 0);
}

/* The one that a victim has named to help it, just as another thread held it. */
DOMT_TEST(sleeper_that_is_called_to_steal_is_woken)
{
    begin(with_standing_in(2));
    add(1, &plain);
    atomic_store(&world.system->waking, 1 + 1);
    send_after(0);
    expect(1, 1);
}

DOMT_TEST(long_runs_are_left_to_the_sleeper_for_a_while)
{
    domus_config config = with_standing_in(2);

    config.scheduler.idle.stand_in_ns = 110000;
    begin(config);
    add(1, &plain);
    work_takes_ns = 100000; /* more than a stand-in may take, and too little to wake at once */
    send_after(0);
    ck_assert_uint_eq(worked, 1);
    domt_notice(world.system, sender, &go_type, NULL);
    domt_stepped_iterate(&world, HERE, false);
    expect(1, 1);
}

/* No code of users runs while a thread is held, so the sleeper ends its actors itself. */
DOMT_TEST(actor_that_stops_in_its_run_ends_on_its_own_thread)
{
    begin(with_standing_in(2));
    add(1, &plain);
    stops_itself = true;
    send_after(0);
    ck_assert_uint_eq(stopped, 0);
    ck_assert_uint_eq(domt_stepped_thread(&world, 1)->manager.loans.lent, 0); /* it is settled */
    (void)domi_park_end(word_of(1));
    domt_stepped_iterate(&world, 1, false);
    ck_assert_uint_eq(stopped, 1);
    doze(1);
    (void)domi_park_try_notify(word_of(1));
    expect(1, 1);
}

/* Watches on descriptors are begun in the sleeper's ring, and much mail takes long to sort. */
DOMT_TEST(loan_that_is_not_plain_is_settled_by_the_sleeper)
{
    begin(with_standing_in(2));
    add(1, &plain);
    pins_itself = true;
    send_after(0);
    ck_assert_uint_eq(domt_stepped_thread(&world, 1)->manager.loans.lent, 1);
    expect(1, 1);
    begin(with_standing_in(2));
    add(1, &plain);
    floods_itself = true;
    send_after(0);
    ck_assert_uint_eq(domt_stepped_thread(&world, 1)->manager.loans.lent, 1);
    expect(1, 1);
}

DOMT_TEST(mail_that_comes_for_a_held_thread_wakes_it)
{
    begin(with_standing_in(2));
    add(1, &plain);
    send_after(0);
    ck_assert_uint_eq(worked, 1);
    ck_assert(domi_park_try_hold(word_of(1)));
    domt_notice(world.system, receivers[0], &work_type, NULL); /* from a foreign thread */
    ck_assert_uint_eq(atomic_load(word_of(1)), DOMI_PARK_WANTED);
    ck_assert_uint_eq(ring_of(1)->wakes, 0);
    ck_assert(domi_park_release(word_of(1), false));
    ck_assert_uint_eq(atomic_load(word_of(1)), DOMI_PARK_NOTIFIED);
    end();
}

/* The notes of a phase have room for DOMI_SLEEPERS_MAX threads. The others are woken at once. */
DOMT_TEST(sleepers_that_find_no_room_in_the_notes_are_woken)
{
    uint32_t asleep = DOMI_SLEEPERS_MAX + 2;

    begin(with_standing_in(1 + asleep));
    for (uint32_t i = 1; i <= asleep; i++)
        add(i, &plain);
    send_after(0);
    ck_assert_uint_eq(worked, DOMI_SLEEPERS_MAX);
    for (uint32_t i = 1; i <= asleep; i++)
        ck_assert_uint_eq(ring_of(i)->wakes, i > DOMI_SLEEPERS_MAX);
    end();
}

static void sleep_shortly(domt_stepped *stepped, uint32_t index)
{
    domt_stepped_advance(stepped, 1000);
}

/* The sleeper does what it was woken for and dozes again, the sender's thread sleeps for a moment
 * and sends once more. */
static void send_again(void)
{
    (void)domi_park_end(word_of(1));
    domt_stepped_iterate(&world, 1, false);
    doze(1);
    world.on_sleep = sleep_shortly;
    for (uint32_t slept = ring_of(HERE)->sleeps; ring_of(HERE)->sleeps == slept;)
        domt_stepped_iterate(&world, HERE, true);
    domt_notice(world.system, sender, &go_type, NULL);
    domt_stepped_iterate(&world, HERE, false);
}

/* So many wake-ups and runs in place of thread 1 there were. */
static void expect_so_far(uint32_t wakes, uint32_t runs_here)
{
    ck_assert_uint_eq(ring_of(1)->wakes, wakes);
    ck_assert_uint_eq(domt_profile(world.system, HERE).steals, runs_here);
}

/* A sleeper had to wait for a handler that worked behind its send: the next ones wait no more, for
 * a time. */
DOMT_TEST(sleepers_do_not_wait_twice_for_handlers_that_take_long)
{
    begin(with_standing_in(2));
    add(1, &plain);
    works_behind_send_ns = DOMT_MS;
    send_after(0);
    expect_so_far(1, 0);
    works_behind_send_ns = 0;
    send_again();
    expect_so_far(2, 0);
    domt_stepped_advance(&world, 10 * DOMT_MS); /* then it is trusted again */
    send_again();
    expect_so_far(2, 1);
    works_behind_send_ns = DOMT_MS; /* again, a little later: now for twice as long */
    send_again();
    expect_so_far(3, 1);
    works_behind_send_ns = 0;
    domt_stepped_advance(&world, 19 * DOMT_MS);
    send_again();
    expect_so_far(4, 1);
    domt_stepped_advance(&world, 2 * DOMT_MS);
    send_again();
    expect_so_far(4, 2);
    end();
}

/* A wake-up is put off only if the sleep ends soon by itself, whatever the sender does behind. */
DOMT_TEST(sleeper_that_does_not_doze_is_woken_at_once)
{
    begin(with_standing_in(2));
    add(1, &plain);
    sleeps_long = true;
    send_after(0);
    ck_assert_uint_eq(woken_behind_send, 1);
    expect(0, 1);
    begin(with_standing_in(2));
    add(1, &plain);
    send_after(0);
    ck_assert_uint_eq(woken_behind_send, 0);
    expect(1, 0);
}

static void note_word_and_sleep(domt_stepped *stepped, uint32_t index)
{
    word_asleep = atomic_load(word_of(index));
    domt_stepped_advance(stepped, sleep_takes_ns < ring_of(index)->sleep_ns
                                      ? sleep_takes_ns
                                      : ring_of(index)->sleep_ns);
}

/* Sleep once for `takes_ns`, or to the end. */
static void expect_sleep(uint64_t takes_ns, uint64_t most_ns, uint32_t word)
{
    sleep_takes_ns = takes_ns;
    for (uint32_t slept = ring_of(HERE)->sleeps; ring_of(HERE)->sleeps == slept;)
        domt_stepped_iterate(&world, HERE, true);
    ck_assert_uint_eq(ring_of(HERE)->sleep_ns, most_ns);
    ck_assert_uint_eq(word_asleep, word);
}

DOMT_TEST(thread_dozes_behind_a_short_sleep_or_one_in_which_others_stood_in)
{
    domus_config config = with_standing_in(2);
    uint64_t doze_ns = config.scheduler.idle.doze_ns;

    ck_assert_uint_eq(doze_ns, 2 * DOMT_MS); /* the default */
    begin(config);
    world.on_sleep = note_word_and_sleep;
    expect_sleep(SECOND, SECOND, DOMI_PARK_SLEEPING);
    expect_sleep(doze_ns - 1, SECOND, DOMI_PARK_SLEEPING);
    expect_sleep(SECOND, doze_ns, DOMI_PARK_DOZING);
    expect_sleep(SECOND, SECOND, DOMI_PARK_SLEEPING);
    domt_stepped_thread(&world, HERE)->was_held = true;
    expect_sleep(SECOND, SECOND, DOMI_PARK_SLEEPING); /* it has not slept since */
    expect_sleep(SECOND, doze_ns, DOMI_PARK_DOZING);
    expect_sleep(SECOND, SECOND, DOMI_PARK_SLEEPING);
    end();
    config.scheduler.idle.stand_in_ns = 0;
    begin(config);
    world.on_sleep = note_word_and_sleep;
    expect_sleep(0, SECOND, DOMI_PARK_SLEEPING);
    expect_sleep(0, SECOND, DOMI_PARK_SLEEPING);
    end();
}

/* Others stand in for a thread that dozes as without belts. A notice on a belt all the same wakes
 * it, and notices in the inbox wait for it, because an earlier one may be on a belt. */
DOMT_TEST(notices_to_a_sleeper_use_no_belts_and_what_is_on_one_wakes_it)
{
    domus_config config = with_standing_in(2);

    config.scheduler.belt_slots = 64;
    begin(config);
    add(1, &plain);
    send_after(0);
    ck_assert_uint_eq(domt_profile(world.system, HERE).belted, 0);
    expect(1, 0);
    begin(config);
    add(1, &plain);
    uses_belt_first = true;
    send_after(0);
    ck_assert_uint_eq(domt_profile(world.system, HERE).belted, 1);
    expect(0, 1);
}

DOMT_SUITE(60)
