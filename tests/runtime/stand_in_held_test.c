/* The worst that a thread which stands in for others may do to them (contract: Standing in), on
 * real threads and both backends: an actor that hangs on a standing-in thread keeps no other actor
 * from its own thread; if the standing-in thread loses its CPU during a hold, nothing gets lost,
 * not even a stop; and a thread with too much work is helped beside two threads that stand in for
 * each other.
 *
 * A handler that sends to a sleeper and does not return lets the sleeper begin soon all the same,
 * because the wake-up is put off only while the sleeper dozes (contract: Park and wake).
 *
 * All but the last two tests wait for what has to come, and measure no time. */
#include "runtime/system/system.h"
#include "tests/runtime/running.h"

#include <pthread.h>

#define SENDS 0u /* number of the thread whose actor sends */
#define HOME  1u /* number of the thread that sleeps and is held */

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

/* Record the thread HOME, which sleeps later, when the speaker is mounted on it. */
static int record_thread_of_sleeper(domus_stack *stack, void *self)
{
    atomic_store(&home, pthread_self());
    return 0;
}

static bool is_on_home_thread(void)
{
    return pthread_equal(pthread_self(), atomic_load(&home)) != 0;
}

/* Handle work. If the worker runs on another thread and was told to hang, wait until the speaker on
 * the home thread has handled a message. */
static int work_or_hang_elsewhere(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&stood_in, !is_on_home_thread());
    if (!is_on_home_thread() && atomic_exchange(&hangs, false)) {
        uint64_t before = atomic_load(&spoken);
        atomic_store(&is_hanging, true);
        DOMT_WAIT_FOR(20, atomic_load(&spoken) > before);
        atomic_store(&is_hanging, false);
    }
    atomic_fetch_add(&worked, 1);
    return 0;
}

static int check_speaker_runs_at_home(domus_stack *stack, void *self, const void *payload)
{
    ck_assert(is_on_home_thread());
    atomic_fetch_add(&spoken, 1);
    return 0;
}

static int send_work_to_worker(domus_stack *stack, void *self, const void *payload)
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

static const domus_behaviour worker = {
    .name = "worker", .on = (const domus_on[]){{&work_type, work_or_hang_elsewhere, 0}, {0}}};
static const domus_behaviour speaker = {
    .name = "speaker",
    .on_mount = record_thread_of_sleeper,
    .on = (const domus_on[]){{&speak_type, check_speaker_runs_at_home, 0},
                             {&begin_type, tick_every_ms, 0},
                             {&tick_type, count_tick, 0},
                             {0}}};
/* Behaviour of an actor that sends work at each message and at each tick of its timer. */
static const domus_behaviour sender = {.name = "sender",
                                       .on =
                                           (const domus_on[]){{&work_type, send_work_to_worker, 0},
                                                              {&begin_type, tick_every_ms, 0},
                                                              {&tick_type, send_work_to_worker, 0},
                                                              {0}}};

/* --- a system --------------------------------------------------------------------------------- */

typedef struct world {
    domus_system *system;
    domus_address sender;  /* an actor on the thread SENDS, which sends the work */
    domus_address speaker; /* an actor on the thread HOME, where the worker is, too */
} world;

static world begin_world_of_sleeper(uint32_t threads, domus_io_backend backend)
{
    domus_config config = domt_config_of_threads(threads);

    config.io.backend = backend;
    world it = {.system = domt_start_system(&config)};
    atomic_store(&home, pthread_self());
    it.speaker = domt_spawn(it.system, HOME, &speaker, NULL);
    to_work = domt_spawn(it.system, HOME, &worker, NULL);
    it.sender = domt_spawn(it.system, SENDS, &sender, NULL);
    DOMT_WAIT_FOR(20, !is_on_home_thread());
    return it;
}

static domi_manager *manager_of_thread(const world *it, uint32_t thread)
{
    return &it->system->threads[thread].manager;
}

/* Let the sender send work once, and wait until the work is done. */
static void send_work_once_and_wait(const world *it)
{
    uint64_t before = atomic_load(&worked);
    domt_send_notice(it->system, it->sender, &work_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&worked) > before);
}

/* Hold the sleeping thread as a stand-in does. The thread must doze for that, which it does only
 * when it is woken often. */
static void hold_sleeping_thread(const world *it)
{
    uint64_t until_ns = domt_now_ns() + 20000 * DOMT_MS;

    do {
        ck_assert_uint_lt(domt_now_ns(), until_ns);
        send_work_once_and_wait(it);
        for (int i = 0;
             i < 10 && domi_park_read_word(&manager_of_thread(it, HOME)->park) != DOMI_PARK_DOZING;
             i++)
            domt_pause_ns(20000);
    } while (!domi_park_try_hold_dozing_owner(&manager_of_thread(it, HOME)->park));
}

/* Wake the held thread, which then waits for the end of the hold. */
static void wake_held_thread(const world *it)
{
    domi_manager *manager = manager_of_thread(it, HOME);
    manager->hooks.wake(manager);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void check_hang_on_other_thread(domus_io_backend backend)
{
    world it = begin_world_of_sleeper(2, backend);

    atomic_store(&hangs, true);
    for (int i = 0; !atomic_load(&is_hanging); i++) {
        ck_assert_int_lt(i, 20000);
        uint64_t before = atomic_load(&worked);
        domt_send_notice(it.system, it.sender, &work_type, NULL);
        DOMT_WAIT_FOR(20, atomic_load(&worked) > before || atomic_load(&is_hanging));
        domt_pause_ns(200000);
    }
    domt_send_notice(it.system, it.speaker, &speak_type, NULL);
    DOMT_WAIT_FOR(20, !atomic_load(&is_hanging));
    send_work_once_and_wait(&it);
    domt_end_system(it.system);
}

DOMT_TEST(actor_that_hangs_at_a_stand_in_does_not_hold_its_home)
{
    check_hang_on_other_thread(DOMUS_BACKEND_AUTO);
    check_hang_on_other_thread(DOMUS_BACKEND_EPOLL);
}

/* Hold the sleeping thread for long: it is woken by its timer, and waits until the hold ends. */
static void check_long_hold_of_sleeper(domus_io_backend backend)
{
    world it = begin_world_of_sleeper(2, backend);

    domt_send_notice(it.system, it.speaker, &begin_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&ticks) > 0);
    hold_sleeping_thread(&it);
    uint64_t before = atomic_load(&ticks);
    uint64_t spoke = atomic_load(&spoken);
    /* ten times as long as a doze, so the timer of the thread is due */
    domt_pause_ns(20 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&ticks), before);
    domt_send_notice(it.system, it.speaker, &speak_type, NULL);
    ck_assert_uint_eq(atomic_load(&manager_of_thread(&it, HOME)->park), DOMI_PARK_WANTED);
    ck_assert_uint_eq(atomic_load(&spoken), spoke);
    ck_assert(domi_park_release_held_owner(&manager_of_thread(&it, HOME)->park, false));
    wake_held_thread(&it);
    DOMT_WAIT_FOR(20, atomic_load(&spoken) > spoke && atomic_load(&ticks) > before + 10);
    send_work_once_and_wait(&it);
    domt_end_system(it.system);
}

DOMT_TEST(long_hold_of_a_sleeper_loses_no_timer_and_no_message)
{
    check_long_hold_of_sleeper(DOMUS_BACKEND_AUTO);
    check_long_hold_of_sleeper(DOMUS_BACKEND_EPOLL);
}

static void *wake_and_release_held_thread(void *it)
{
    domt_pause_ns(20 * DOMT_MS);
    /* wake the thread before the hold ends, because after that the system may end and be freed */
    wake_held_thread(it);
    (void)domi_park_release_held_owner(&manager_of_thread(it, HOME)->park, false);
    return NULL;
}

static void check_stop_during_hold(domus_io_backend backend)
{
    world it = begin_world_of_sleeper(2, backend);
    pthread_t holder;

    hold_sleeping_thread(&it);
    ck_assert_int_eq(pthread_create(&holder, NULL, wake_and_release_held_thread, &it), 0);
    ck_assert_int_eq(domus_system_stop(it.system), 0);
    ck_assert_int_eq(pthread_join(holder, NULL), 0);
    ck_assert_str_eq(domus_system_left(it.system), "");
    domus_system_free(it.system);
}

DOMT_TEST(thread_that_is_held_follows_a_stop_when_it_is_let_go)
{
    check_stop_during_hold(DOMUS_BACKEND_AUTO);
    check_stop_during_hold(DOMUS_BACKEND_EPOLL);
}

/* --- beside stealing -------------------------------------------------------------------------- */

#define BURNERS 400u
#define BURNS   2u /* number of the thread that has too much work */

static _Atomic uint64_t burnt;
static domus_address burners[BURNERS];

static int burn_cpu_and_count_help(domus_stack *stack, void *self, const void *payload)
{
    uint64_t until_ns = domt_now_ns() + 50000;
    while (domt_now_ns() < until_ns)
        continue;
    atomic_fetch_add(&helped, !pthread_equal(pthread_self(), *(pthread_t *)self));
    atomic_fetch_add(&burnt, 1);
    return 0;
}

static int record_thread_in_mount(domus_stack *stack, void *self)
{
    *(pthread_t *)self = pthread_self();
    return 0;
}

static int send_work_to_all_burners(domus_stack *stack, void *self, const void *payload)
{
    for (uint32_t i = 0; i < BURNERS; i++)
        ck_assert_int_eq(domus_notice(stack, burners[i], &burn_type, NULL), 0);
    return 0;
}

static const domus_behaviour burner = {
    .name = "burner",
    .state_size = sizeof(pthread_t),
    .on_mount = record_thread_in_mount,
    .on = (const domus_on[]){{&burn_type, burn_cpu_and_count_help, 0}, {0}}};
static const domus_behaviour burning = {
    .name = "burning", .on = (const domus_on[]){{&begin_type, send_work_to_all_burners, 0}, {0}}};

DOMT_TEST(overwhelmed_thread_is_helped_while_two_others_stand_in)
{
    world it = begin_world_of_sleeper(3, DOMUS_BACKEND_AUTO);
    domus_address lights = domt_spawn(it.system, BURNS, &burning, NULL);

    for (uint32_t i = 0; i < BURNERS; i++)
        burners[i] = domt_spawn(it.system, BURNS, &burner, NULL);
    domt_send_notice(it.system, it.sender, &begin_type, NULL);
    for (int i = 0; i < 500; i++) {
        uint64_t before = atomic_load(&burnt);
        domt_send_notice(it.system, lights, &begin_type, NULL);
        DOMT_WAIT_FOR(20, atomic_load(&burnt) == before + BURNERS);
        if (atomic_load(&helped) >= BURNERS / 8 && atomic_load(&stood_in) >= 20)
            break;
        /* a pause in which no thread is busy, so that the two threads stand in for each other */
        domt_pause_ns(20 * DOMT_MS);
    }
    ck_assert_uint_ge(atomic_load(&helped), BURNERS / 8);
    ck_assert_uint_ge(atomic_load(&stood_in), 20);
    domt_end_system(it.system);
}

/* --- a sender that does not return ------------------------------------------------------------ */

#define ROUNDS   5u
#define WARM_UPS 40u
#define PAUSE_NS UINT64_C(300000)
#define LONG_NS  (200 * DOMT_MS)
/* within this time the receiver must begin: a doze, and the time by which a busy machine may be
 * late */
#define BEGINS_NS (100 * DOMT_MS)

static const domus_type warm_type = {.name = "warm"};
static const domus_type compute_type = {.name = "compute"};
static const domus_type wait_type = {.name = "wait"};

static domus_address receiver;
static _Atomic uint64_t begun, began_ns, returned, waited_ns;

static int record_begin_of_work(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&began_ns, domt_now_ns());
    atomic_fetch_add(&begun, 1);
    return 0;
}

static int send_work_to_keep_thread_warm(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&returned, 1);
    return domus_notice(stack, receiver, &work_type, NULL);
}

/* Send work, and stay in the handler for `least_ns` and, if `waits` is true, until the receiver has
 * begun. */
static int send_work_and_stay_in_handler(domus_stack *stack, uint64_t least_ns, bool waits)
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

static int send_work_and_compute(domus_stack *stack, void *self, const void *payload)
{
    return send_work_and_stay_in_handler(stack, LONG_NS, false);
}

static int send_work_and_wait_in_handler(domus_stack *stack, void *self, const void *payload)
{
    return send_work_and_stay_in_handler(stack, 0, true);
}

static const domus_behaviour staying = {
    .name = "sender",
    .on = (const domus_on[]){{&warm_type, send_work_to_keep_thread_warm, 0},
                             {&compute_type, send_work_and_compute, 0},
                             {&wait_type, send_work_and_wait_in_handler, 0},
                             {0}}};
static const domus_behaviour beginning = {
    .name = "receiver", .on = (const domus_on[]){{&work_type, record_begin_of_work, 0}, {0}}};

static void notify_and_wait_for_return(domus_system *system, domus_address from,
                                       const domus_type *type)
{
    uint64_t done = atomic_load(&returned) + 1;
    domt_send_notice(system, from, type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&returned) == done);
}

static void check_receiver_begins_soon(const domus_type *type)
{
    domus_config config = domt_config_of_threads(2);

    config.scheduler.idle.stand_in_ns = 100000;
    domus_system *system = domt_start_system(&config);
    domus_address from = domt_spawn(system, 0, &staying, NULL);
    receiver = domt_spawn(system, 1, &beginning, NULL);
    atomic_store(&waited_ns, 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < WARM_UPS; i++) {
            uint64_t before = atomic_load(&begun);
            notify_and_wait_for_return(system, from, &warm_type);
            DOMT_WAIT_FOR(20, atomic_load(&begun) > before);
            domt_pause_ns(PAUSE_NS);
        }
        notify_and_wait_for_return(system, from, type);
    }
    ck_assert_uint_lt(atomic_load(&waited_ns), BEGINS_NS);
    /* the sender's thread has stood in for the receiver's */
    ck_assert_uint_gt(domt_profile_of_thread(system, 0).steals, 0);
    domt_end_system(system);
}

DOMT_TEST(message_of_a_handler_that_computes_on_is_handled_soon)
{
    check_receiver_begins_soon(&compute_type);
}

DOMT_TEST(handler_may_wait_for_what_a_sleeper_does)
{
    check_receiver_begins_soon(&wait_type);
}

DOMT_SUITE(120)
