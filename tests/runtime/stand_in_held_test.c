/* The worst that a thread which stands in for others may do to them (contract: Standing in), on
 * real threads and both backends: an actor that hangs on a standing-in thread keeps no other actor
 * from its own thread; if the standing-in thread loses its CPU during a hold, nothing is lost, also
 * not a stop; and an overwhelmed thread is helped beside two that stand in for each other. A
 * handler that sends to a sleeper and does not return lets the sleeper begin soon all the same,
 * because its wake-up is put off only while it dozes (contract: Park and wake).
 *
 * All but the last two tests wait for what has to come, and measure no time. */
#include "runtime/system/system.h"
#include "tests/runtime/running.h"

#include <pthread.h>

#define SENDS 0u /* number of the thread that sends */
#define HOME  1u /* number of the thread that sleeps */

static _Atomic uint64_t worked, spoken, stood_in, helped, ticks;
static _Atomic bool hangs, is_hanging;
static _Atomic(pthread_t) home;
static domus_address to_work;

static const domus_type work_type = {.name = "work"};
static const domus_type speak_type = {.name = "speak"};
static const domus_type tick_type = {.name = "tick"};
static const domus_type begin_type = {.name = "begin"};
static const domus_type burn_type = {.name = "burn"};

/* --- actors ----------------------------------------------------------------------------------- */

/* Record which thread is the sleeper. */
static int record_home(domus_stack *stack, void *self)
{
    atomic_store(&home, pthread_self());
    return 0;
}

static bool is_at_home(void)
{
    return pthread_equal(pthread_self(), atomic_load(&home)) != 0;
}

/* Hang on another thread, if so ordered, until the other actor of the home thread has been
 * heard. */
static int handle_work(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&stood_in, !is_at_home());
    if (!is_at_home() && atomic_exchange(&hangs, false)) {
        uint64_t before = atomic_load(&spoken);
        atomic_store(&is_hanging, true);
        DOMT_WAIT_FOR(20, atomic_load(&spoken) > before);
        atomic_store(&is_hanging, false);
    }
    atomic_fetch_add(&worked, 1);
    return 0;
}

static int speak_at_home(domus_stack *stack, void *self, const void *payload)
{
    ck_assert(is_at_home());
    atomic_fetch_add(&spoken, 1);
    return 0;
}

static int send_work(domus_stack *stack, void *self, const void *payload)
{
    return domus_notice(stack, to_work, &work_type, NULL);
}

static int count_tick(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&ticks, 1);
    return 0;
}

static int tick_every_ms(domus_stack *stack, void *self, const void *payload)
{
    return domus_every(stack, DOMT_MS, &tick_type, NULL, NULL);
}

static const domus_behaviour worker = {.name = "worker",
                                       .on = (const domus_on[]){{&work_type, handle_work, 0}, {0}}};
static const domus_behaviour speaker = {.name = "speaker",
                                        .on_mount = record_home,
                                        .on = (const domus_on[]){{&speak_type, speak_at_home, 0},
                                                                 {&begin_type, tick_every_ms, 0},
                                                                 {&tick_type, count_tick, 0},
                                                                 {0}}};
/* An actor that sends work at each message, and at each tick of its own. */
static const domus_behaviour sender = {.name = "sender",
                                       .on = (const domus_on[]){{&work_type, send_work, 0},
                                                                {&begin_type, tick_every_ms, 0},
                                                                {&tick_type, send_work, 0},
                                                                {0}}};

/* --- a system --------------------------------------------------------------------------------- */

typedef struct world {
    domus_system *system;
    domus_address sender;  /* actor on the thread SENDS */
    domus_address speaker; /* actor on the thread HOME, like the worker */
} world;

static world begin_world(uint32_t threads, domus_io_backend backend)
{
    domus_config config = domt_config(threads);

    config.io.backend = backend;
    world it = {.system = domt_start(&config)};
    atomic_store(&home, pthread_self());
    it.speaker = domt_spawn(it.system, HOME, &speaker, NULL);
    to_work = domt_spawn(it.system, HOME, &worker, NULL);
    it.sender = domt_spawn(it.system, SENDS, &sender, NULL);
    DOMT_WAIT_FOR(20, !is_at_home());
    return it;
}

static domi_manager *manager_of(const world *it, uint32_t thread)
{
    return &it->system->threads[thread].manager;
}

/* Let work be sent, and wait until it is done. */
static void send_once(const world *it)
{
    uint64_t before = atomic_load(&worked);
    domt_notice(it->system, it->sender, &work_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&worked) > before);
}

/* Hold the sleeper as a stand-in does. It dozes only while it is woken often. */
static void hold_sleeper(const world *it)
{
    uint64_t until_ns = domt_now_ns() + 20000 * DOMT_MS;

    do {
        ck_assert_uint_lt(domt_now_ns(), until_ns);
        send_once(it);
        for (int i = 0; i < 10 && domi_park_peek(&manager_of(it, HOME)->park) != DOMI_PARK_DOZING;
             i++)
            domt_pause_ns(20000);
    } while (!domi_park_try_hold(&manager_of(it, HOME)->park));
}

/* Wake the sleeper, which then waits for the end of the hold. */
static void wake_held(const world *it)
{
    domi_manager *manager = manager_of(it, HOME);
    manager->hooks.wake(manager);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void hang_elsewhere(domus_io_backend backend)
{
    world it = begin_world(2, backend);

    atomic_store(&hangs, true);
    for (int i = 0; !atomic_load(&is_hanging); i++) {
        ck_assert_int_lt(i, 20000);
        uint64_t before = atomic_load(&worked);
        domt_notice(it.system, it.sender, &work_type, NULL);
        DOMT_WAIT_FOR(20, atomic_load(&worked) > before || atomic_load(&is_hanging));
        domt_pause_ns(200000);
    }
    domt_notice(it.system, it.speaker, &speak_type, NULL);
    DOMT_WAIT_FOR(20, !atomic_load(&is_hanging));
    send_once(&it);
    domt_end(it.system);
}

DOMT_TEST(actor_that_hangs_in_other_hands_keeps_no_other_one_of_its_thread)
{
    hang_elsewhere(DOMUS_BACKEND_AUTO);
    hang_elsewhere(DOMUS_BACKEND_EPOLL);
}

/* Hold the sleeper for long: it wakes by its timer, and waits. */
static void hold_for_long(domus_io_backend backend)
{
    world it = begin_world(2, backend);

    domt_notice(it.system, it.speaker, &begin_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&ticks) > 0);
    hold_sleeper(&it);
    uint64_t before = atomic_load(&ticks);
    uint64_t spoke = atomic_load(&spoken);
    domt_pause_ns(20 * DOMT_MS); /* ten times as long as a doze */
    ck_assert_uint_eq(atomic_load(&ticks), before);
    domt_notice(it.system, it.speaker, &speak_type, NULL);
    ck_assert_uint_eq(atomic_load(&manager_of(&it, HOME)->park), DOMI_PARK_WANTED);
    ck_assert_uint_eq(atomic_load(&spoken), spoke);
    ck_assert(domi_park_release(&manager_of(&it, HOME)->park, false));
    wake_held(&it);
    DOMT_WAIT_FOR(20, atomic_load(&spoken) > spoke && atomic_load(&ticks) > before + 10);
    send_once(&it);
    domt_end(it.system);
}

DOMT_TEST(holder_that_loses_its_cpu_loses_no_timer_and_no_message)
{
    hold_for_long(DOMUS_BACKEND_AUTO);
    hold_for_long(DOMUS_BACKEND_EPOLL);
}

static void *let_go_soon(void *it)
{
    domt_pause_ns(20 * DOMT_MS);
    /* woken before the end of the hold, because later nobody keeps the system alive */
    wake_held(it);
    (void)domi_park_release(&manager_of(it, HOME)->park, false);
    return NULL;
}

static void stop_held(domus_io_backend backend)
{
    world it = begin_world(2, backend);
    pthread_t holder;

    hold_sleeper(&it);
    ck_assert_int_eq(pthread_create(&holder, NULL, let_go_soon, &it), 0);
    ck_assert_int_eq(domus_system_stop(it.system), 0);
    ck_assert_int_eq(pthread_join(holder, NULL), 0);
    ck_assert_str_eq(domus_system_left(it.system), "");
    domus_system_free(it.system);
}

DOMT_TEST(thread_that_is_held_follows_a_stop_when_it_is_let_go)
{
    stop_held(DOMUS_BACKEND_AUTO);
    stop_held(DOMUS_BACKEND_EPOLL);
}

/* --- beside stealing -------------------------------------------------------------------------- */

#define BURNERS 400u
#define BURNS   2u /* number of the thread that has too much to do */

static _Atomic uint64_t burnt;
static domus_address burners[BURNERS];

static int burn_cpu(domus_stack *stack, void *self, const void *payload)
{
    uint64_t until_ns = domt_now_ns() + 50000;
    while (domt_now_ns() < until_ns)
        continue;
    atomic_fetch_add(&helped, !pthread_equal(pthread_self(), *(pthread_t *)self));
    atomic_fetch_add(&burnt, 1);
    return 0;
}

static int record_thread(domus_stack *stack, void *self)
{
    *(pthread_t *)self = pthread_self();
    return 0;
}

static int send_burns(domus_stack *stack, void *self, const void *payload)
{
    for (uint32_t i = 0; i < BURNERS; i++)
        ck_assert_int_eq(domus_notice(stack, burners[i], &burn_type, NULL), 0);
    return 0;
}

static const domus_behaviour burner = {.name = "burner",
                                       .state_size = sizeof(pthread_t),
                                       .on_mount = record_thread,
                                       .on = (const domus_on[]){{&burn_type, burn_cpu, 0}, {0}}};
static const domus_behaviour burning = {
    .name = "burning", .on = (const domus_on[]){{&begin_type, send_burns, 0}, {0}}};

DOMT_TEST(overwhelmed_thread_is_helped_beside_two_that_stand_in_for_each_other)
{
    world it = begin_world(3, DOMUS_BACKEND_AUTO);
    domus_address lights = domt_spawn(it.system, BURNS, &burning, NULL);

    for (uint32_t i = 0; i < BURNERS; i++)
        burners[i] = domt_spawn(it.system, BURNS, &burner, NULL);
    domt_notice(it.system, it.sender, &begin_type, NULL);
    for (int i = 0; i < 500; i++) {
        uint64_t before = atomic_load(&burnt);
        domt_notice(it.system, lights, &begin_type, NULL);
        DOMT_WAIT_FOR(20, atomic_load(&burnt) == before + BURNERS);
        if (atomic_load(&helped) >= BURNERS / 8 && atomic_load(&stood_in) >= 20)
            break;
        domt_pause_ns(20 * DOMT_MS); /* no thread is busy, so the two stand in */
    }
    ck_assert_uint_ge(atomic_load(&helped), BURNERS / 8);
    ck_assert_uint_ge(atomic_load(&stood_in), 20);
    domt_end(it.system);
}

/* --- a sender that does not return ------------------------------------------------------------ */

#define ROUNDS    5u
#define WARM_UPS  40u
#define PAUSE_NS  UINT64_C(300000)
#define LONG_NS   (200 * DOMT_MS)
#define BEGINS_NS (100 * DOMT_MS) /* a doze, and the time by which the machine may be late */

static const domus_type warm_type = {.name = "warm"};
static const domus_type compute_type = {.name = "compute"};
static const domus_type wait_type = {.name = "wait"};

static domus_address receiver;
static _Atomic uint64_t begun, began_ns, returned, waited_ns;

static int begin_work(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&began_ns, domt_now_ns());
    atomic_fetch_add(&begun, 1);
    return 0;
}

static int warm(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&returned, 1);
    return domus_notice(stack, receiver, &work_type, NULL);
}

/* Go on after the send until `until` messages were handled there, and for `least_ns`. */
static int send_and_stay(domus_stack *stack, uint64_t least_ns, bool waits)
{
    uint64_t until = atomic_load(&begun) + 1;
    uint64_t begun_ns = domt_now_ns();

    ck_assert_int_eq(domus_notice(stack, receiver, &work_type, NULL), 0);
    while (domt_now_ns() - begun_ns < least_ns || (waits && atomic_load(&begun) < until))
        ;
    uint64_t at_ns = atomic_load(&begun) < until ? domt_now_ns() : atomic_load(&began_ns);
    if (at_ns - begun_ns > atomic_load(&waited_ns))
        atomic_store(&waited_ns, at_ns - begun_ns);
    atomic_fetch_add(&returned, 1);
    return 0;
}

static int compute_behind_send(domus_stack *stack, void *self, const void *payload)
{
    return send_and_stay(stack, LONG_NS, false);
}

static int wait_for_it(domus_stack *stack, void *self, const void *payload)
{
    return send_and_stay(stack, 0, true);
}

static const domus_behaviour staying = {
    .name = "sender",
    .on = (const domus_on[]){{&warm_type, warm, 0},
                             {&compute_type, compute_behind_send, 0},
                             {&wait_type, wait_for_it, 0},
                             {0}}};
static const domus_behaviour beginning = {
    .name = "receiver", .on = (const domus_on[]){{&work_type, begin_work, 0}, {0}}};

static void send_and_wait(domus_system *system, domus_address from, const domus_type *type)
{
    uint64_t done = atomic_load(&returned) + 1;
    domt_notice(system, from, type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&returned) == done);
}

static void expect_soon(const domus_type *type)
{
    domus_config config = domt_config(2);

    config.scheduler.idle.stand_in_ns = 100000;
    domus_system *system = domt_start(&config);
    domus_address from = domt_spawn(system, 0, &staying, NULL);
    receiver = domt_spawn(system, 1, &beginning, NULL);
    atomic_store(&waited_ns, 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < WARM_UPS; i++) {
            uint64_t before = atomic_load(&begun);
            send_and_wait(system, from, &warm_type);
            DOMT_WAIT_FOR(20, atomic_load(&begun) > before);
            domt_pause_ns(PAUSE_NS);
        }
        send_and_wait(system, from, type);
    }
    ck_assert_uint_lt(atomic_load(&waited_ns), BEGINS_NS);
    ck_assert_uint_gt(domt_profile(system, 0).steals, 0); /* the first thread stood in */
    domt_end(system);
}

DOMT_TEST(message_of_a_handler_that_computes_on_is_handled_soon)
{
    expect_soon(&compute_type);
}

DOMT_TEST(handler_may_wait_for_what_a_sleeper_does)
{
    expect_soon(&wait_type);
}

DOMT_SUITE(120)
