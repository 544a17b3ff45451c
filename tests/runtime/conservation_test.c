/* Messages are conserved: none is lost, and none is handled twice. Random graphs of actors on real
 * threads send, ask, arm timers, spawn, stop and are lent to other threads, while foreign threads
 * send to them.
 *
 * A run has a shape (number of threads, limits, thresholds of stealing) and a seed for the random
 * choices of the actors; nothing determines how the real threads are scheduled. `DOMT_SEED=n` runs
 * only that seed, in each shape. A run has several rounds of messages. After each round the test
 * waits for a silence, in which no message is under way and all threads sleep, and then lets an
 * outside thread or a timer send again. In a silence
 *
 *     sent = handled + refused + stale + dropped
 *
 * holds exactly for each kind of message, and after the last silence the system's own counters must
 * have the same sums. Each event for which a shape was made must have happened; if it has not,
 * further seeds are run, and if it does not happen then, the test fails. With DOMT_LONG there are
 * 10^9 messages, and the seeds come from the clock. DOMT_SUMS=1 prints the counts of each shape,
 * and its rate. */
#include "tests/runtime/conserve.h"

#include "runtime/system/system.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MILLION  UINT64_C(1000000)
#define MESSAGES (DOMT_SANITIZED ? MILLION / 6 : 3 * MILLION)
#define LONG     (1000 * MILLION / (DOMT_SANITIZED ? 100 : 1))

/* Number of seeds that are run for each shape in the short form, and number of further seeds that
 * are run while something has not been seen. */
#define SEEDS      2u
#define SEEDS_MORE 30u

struct shape {
    const char *name;
    uint32_t threads;
    uint32_t mailbox_max;
    uint32_t steal_floor; /* queue length from which other threads steal; 0: no stealing */
    uint32_t per_run;     /* most messages that a run of an actor handles */
    uint32_t population;
    uint32_t crowd; /* how many of 8 spawned actors go to thread 0 */
    uint32_t rounds;
    /* messages that an outsider sends in a turn; 0: the test itself sends one when all threads
     * sleep */
    uint32_t letters;
    uint32_t share;   /* number by which all messages are divided to get those of this shape */
    uint64_t spin_ns; /* how long a thread of the shape spins before it parks */
};

/* Seeds that have once found an error. They are run first, in every form of the test. */
static const struct found {
    const char *shape;
    uint64_t seed;
    const char *what;
} found[] = {
    {"spinning", 1,
     "under tsan: domus_timer_cancel() by a stale handle read, as a plain number, the "
     "generation of a timer that another thread had by then"},
    {"narrow", 2,
     "under asan: what a thread had shown was taken and given back, and the depth that it had "
     "told stayed at 2 while it slept"},
};

static char run_name[96];

/* --- a run ------------------------------------------------------------------------------------ */

struct world {
    const struct shape *shape;
    domus_system *system;
    domt_watchdog dog;
    domt_outsider sender;
    domt_outsider asker;
    domus_address alarm;
    domt_sums sums;
    domi_random dice;
};

/* Returns how many actors were spawned and then mounted, or stopped before that; the test itself
 * cannot count actors that are stopped so early. */
static uint64_t count_mounted_or_stopped_early(const domus_system *system)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < system->count; i++)
        sum += domi_counter_read(&system->threads[i].manager.counters.spawns);
    return sum;
}

/* Returns whether no message is under way and no outsider is about to send: an outsider whose turn
 * comes later finds no budget. A handler may still run, and be about to send. If the result is
 * false, `ret_kind` gets the name of the kind that is waited for. */
static bool is_no_message_under_way(struct world *world, const char **ret_kind)
{
    bool silent = false;

    *ret_kind = "an outsider's turn";
    domt_sums_read_counts(&world->sums);
    if (pthread_mutex_trylock(&world->sender.turn) != 0)
        return false;
    if (pthread_mutex_trylock(&world->asker.turn) == 0) {
        *ret_kind = "the budget's end";
        silent = domt_budget_messages_left() <= 0;
        /* these ends are read before all beginnings */
        uint64_t born = count_mounted_or_stopped_early(world->system);
        domt_sums_read_counts(&world->sums);
        if (silent && born != world->sums.of[DOMT_BORN] - world->sums.of[DOMT_UNBORN]) {
            *ret_kind = "births";
            silent = false;
        }
        silent = silent && domt_sums_are_balanced(&world->sums, ret_kind);
        pthread_mutex_unlock(&world->asker.turn);
    }
    pthread_mutex_unlock(&world->sender.turn);
    return silent;
}

/* Send one message to the graph, in a shape whose outsiders send none. */
static void send_one_message_to_graph(struct world *world)
{
    domus_address to = domt_board_pick_address(&world->dice);
    domt_token letter = {.somebody = domt_board_pick_address(&world->dice), .to = to.lease};

    domt_count_one(DOMT_LETTER_MADE);
    (void)domt_count_notice_result(
        domus_outside_notice(world->system, to, &domt_letter_type, &letter), true);
}

/* Wait until no message is under way, and then until all threads sleep. Returns true if no count
 * has changed in between: then no handler was running that has begun something, and this is a
 * silence. */
static bool wait_for_short_silence(struct world *world)
{
    const char *kind;

    while (!is_no_message_under_way(world, &kind)) {
        domt_check_none_ended_twice(run_name, &world->sums);
        domt_watchdog_check_progress(&world->dog, &world->sums, kind);
        if (world->shape->letters == 0 && domt_sums_are_balanced(&world->sums, NULL))
            send_one_message_to_graph(world);
        domt_pause_ns(DOMT_MS / 4);
    }
    domt_sums before = world->sums;
    while (!domt_all_threads_sleep(world->system)) {
        domt_watchdog_check_progress(&world->dog, &world->sums, "all threads to sleep");
        domt_pause_ns(DOMT_MS / 4);
    }
    domt_sums_read_counts(&world->sums);
    return memcmp(&before, &world->sums, sizeof before) == 0;
}

/* Wait for a silence (wait_for_short_silence()), and let it last for a while. */
static void wait_for_lasting_silence(struct world *world)
{
    while (!wait_for_short_silence(world))
        domt_check_none_ended_twice(run_name, &world->sums);
    uint64_t moved = domt_sums_total_handled(&world->sums);
    domt_pause_ns(DOMT_MS);
    domt_sums_read_counts(&world->sums);
    domt_check_counts_equal(run_name, &world->sums, "messages handled in silence", 0,
                            domt_sums_total_handled(&world->sums) - moved);
    domt_check_counts_equal(run_name, &world->sums, "sums in balance in silence", 1,
                            domt_sums_are_balanced(&world->sums, NULL) ? 1 : 0);
    domt_check_system_is_silent(run_name, world->system, &world->sums);
    domt_count_one(DOMT_SILENCES);
}

/* Send the alarm actor an order to wait while the threads sleep, and then to send new tokens to the
 * graph. */
static void feed_graph_by_alarm_actor(struct world *world, int64_t budget)
{
    domt_alarm alarm = {
        .delay_ns = 2 * DOMT_MS, .budget = budget, .notices = 3 * world->shape->letters + 1};
    uint64_t alarms = world->sums.of[DOMT_ALARMS];

    for (uint32_t i = 0; i < DOMT_NEIGHBOURS; i++)
        alarm.members[i] = domt_board_pick_address(&world->dice);
    domt_count_one(DOMT_LETTER_MADE);
    ck_assert_int_eq(
        domt_count_notice_result(
            domus_outside_notice(world->system, world->alarm, &domt_alarm_type, &alarm), true),
        0);
    while (world->sums.of[DOMT_ALARMS] == alarms) {
        domt_pause_ns(DOMT_MS);
        domt_sums_read_counts(&world->sums);
        domt_watchdog_check_progress(&world->dog, &world->sums, "the alarm");
    }
}

static void begin_world_of_shape(struct world *world, uint64_t seed)
{
    const struct shape *shape = world->shape;
    domus_config config = domt_config_of_threads(shape->threads);
    domt_outsider *sender = &world->sender;

    config.scheduler.mailbox_max = shape->mailbox_max;
    config.scheduler.messages_per_run_max = shape->per_run;
    config.scheduler.steal.enabled = shape->steal_floor != 0;
    config.scheduler.steal.floor = shape->steal_floor != 0 ? shape->steal_floor : 1;
    config.scheduler.steal.aggression = 1;
    config.scheduler.steal.min_run_ns = 0;
    config.scheduler.idle.spin_ns = shape->spin_ns;
    /* memory is not measured, because another test covers refusals for lack of memory */
    config.memory.enabled = false;
    config.stall.threshold_ns = 0;
    domt_reset_all_counts(shape->letters != 0 ? 256 : 1);
    domt_board_clear();
    world->system = domt_start_system(&config);
    domt_conserve_watchdog_init(&world->dog, world->system, run_name);

    *sender = (domt_outsider){.system = world->system,
                              .population = shape->population,
                              .crowd = shape->crowd,
                              .letters = shape->letters,
                              .state = {.threads = shape->threads}};
    domi_random_init(&sender->dice, seed);
    domi_random_init(&world->dice, seed + 1);
    sender->state.oracle = domt_spawn(world->system, 0, &domt_oracle_behaviour, NULL);
    world->alarm = domt_spawn(world->system, shape->threads - 1, &domt_alarm_behaviour, NULL);
    domt_add_to_count(DOMT_BORN, 2);
    for (uint32_t i = 0; i < shape->population / 2; i++)
        domt_outsider_spawn_node(sender);
    world->asker = *sender;
    world->asker.asks = true;
    domi_random_init(&world->asker.dice, ~seed);
    DOMT_WAIT_FOR(60, (domt_sums_read_counts(&world->sums),
                       world->sums.of[DOMT_MOUNTED] == shape->population / 2 + 2));
    domt_outsider_start_thread(&world->sender);
    domt_outsider_start_thread(&world->asker);
}

static void end_outsider_under_watchdog(struct world *world, domt_outsider *outsider,
                                        const char *who)
{
    while (!domt_outsider_end_thread(outsider)) {
        domt_pause_ns(DOMT_MS / 4);
        domt_sums_read_counts(&world->sums);
        domt_watchdog_check_progress(&world->dog, &world->sums, who);
    }
}

static void end_world_and_its_outsiders(struct world *world)
{
    end_outsider_under_watchdog(world, &world->sender, "the sender outside");
    end_outsider_under_watchdog(world, &world->asker, "the asker outside");
    int result = domus_system_stop(world->system);
    if (result != 0)
        domt_watchdog_print_state(&world->dog, &world->sums, domus_system_left(world->system));
    ck_assert_int_eq(result, 0);
}

static void add_counts_of_run(domt_sums *all, const domt_sums *sums)
{
    for (uint32_t i = 0; i < DOMT_COUNTS_MAX; i++)
        all->of[i] += sums->of[i];
}

/* Run a shape with one seed for `messages` messages, and add its counts to `all` and `profiles`. */
static void run_graph_of_seed(const struct shape *shape, uint64_t seed, uint64_t messages,
                              domt_sums *all, domus_profile *profiles)
{
    static struct world world;
    uint64_t began_ns = domt_now_ns();

    snprintf(run_name, sizeof run_name, "%s, DOMT_SEED=%" PRIu64, shape->name, seed);
    world = (struct world){.shape = shape};
    begin_world_of_shape(&world, seed);
    wait_for_lasting_silence(&world);
    for (uint32_t round = 0; domt_sums_messages_made(&world.sums) < messages; round++) {
        uint64_t more = messages - domt_sums_messages_made(&world.sums);
        int64_t budget =
            (int64_t)(more < messages / shape->rounds ? more : messages / shape->rounds);
        if (round % 2 == 0)
            domt_budget_add_messages(budget);
        else
            feed_graph_by_alarm_actor(&world, budget);
        wait_for_lasting_silence(&world);
    }
    end_world_and_its_outsiders(&world);
    domt_sums_read_counts(&world.sums);
    domt_check_counts_equal(run_name, &world.sums, "sums in balance", 1,
                            domt_sums_are_balanced(&world.sums, NULL) ? 1 : 0);
    domt_check_counts_equal(run_name, &world.sums, "mounted, and stopped",
                            world.sums.of[DOMT_MOUNTED], world.sums.of[DOMT_STOPPED]);
    domt_check_profile_of_system(run_name, world.system, &world.sums);
    domus_profile profile = domt_profile_of_all_threads(world.system);
    domt_add_profile_to_sums(profiles, &profile);
    add_counts_of_run(all, &world.sums);
    domus_system_free(world.system);
    if (domt_tests_are_long() || getenv("DOMT_SUMS") != NULL) {
        uint64_t ns = domt_now_ns() - began_ns;
        fprintf(stderr, "%s: %.1f million messages in %.1f s, %.2f million a second\n", run_name,
                (double)domt_sums_messages_made(&world.sums) / 1e6, (double)ns / 1e9,
                (double)domt_sums_messages_made(&world.sums) * 1e3 / (double)ns);
    }
}

/* --- a shape ---------------------------------------------------------------------------------- */

/* The counts that each shape must show, and further counts that a shape with stealing or with
 * refusals must show. */
static const uint8_t always[] = {
    DOMT_NOTICE_STALE,   DOMT_NOTICE_DROPPED, DOMT_LETTER_TAKEN, DOMT_LETTER_STALE,
    DOMT_ASK_FORWARDED,  DOMT_ASK_DROPPED,    DOMT_ASK_UNPUT,    DOMT_QUERY_TAKEN,
    DOMT_REPLY_DROPPED,  DOMT_TIMER_RUNG,     DOMT_TIMER_BACK,   DOMT_TIMER_CANCELLED,
    DOMT_TICKER_RUNG,    DOMT_TICKER_BACK,    DOMT_JOB_ENDED,    DOMT_RECEIVE_TAKEN,
    DOMT_RECEIVE_FAILED, DOMT_STASHED,        DOMT_BORN_AGAIN,   DOMT_BORN_ELSEWHERE,
    DOMT_STOP_STALE,     DOMT_BARRIERS,       DOMT_TIMED_OUT,    DOMT_CANCELS,
    DOMT_KEPT,           DOMT_FANNED,         DOMT_FORWARDED,    DOMT_GATE_RUN,
    DOMT_PINNED_RUN,     DOMT_SILENCES,       DOMT_ALARMS,
};
static const uint8_t stealing[] = {
    DOMT_LENT_RUN,   DOMT_LENT_SENT,    DOMT_LENT_ASKED,     DOMT_LENT_RESUMED,
    DOMT_LENT_ARMED, DOMT_LENT_RUNG,    DOMT_LENT_CANCELLED, DOMT_LENT_WITH_TIMERS,
    DOMT_LENT_BORN,  DOMT_LENT_STOPPED,
};
static const uint8_t refusing[] = {
    DOMT_NOTICE_REFUSED,
    DOMT_LETTER_REFUSED,
    DOMT_ASK_REFUSED,
};

/* Returns the first of the counts in `places` that is still 0; DOMT_COUNTS_MAX if there is none. */
static uint32_t find_count_that_is_zero(const domt_sums *all, const uint8_t *places, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (all->of[places[i]] == 0)
            return places[i];
    }
    return DOMT_COUNTS_MAX;
}

static uint32_t find_event_that_never_came(const struct shape *shape, const domt_sums *all)
{
    uint32_t what = DOMT_COUNTS_MAX;

    if (shape->letters != 0)
        what = find_count_that_is_zero(all, always, sizeof always);
    if (what == DOMT_COUNTS_MAX && shape->steal_floor != 0)
        what = find_count_that_is_zero(all, stealing, sizeof stealing);
    if (what == DOMT_COUNTS_MAX && shape->mailbox_max < 1000)
        what = find_count_that_is_zero(all, refusing, sizeof refusing);
    return what;
}

static void run_seeds_that_once_failed(const struct shape *shape, domt_sums *all,
                                       domus_profile *profiles)
{
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
        if (strcmp(found[i].shape, shape->name) == 0)
            run_graph_of_seed(shape, found[i].seed, MESSAGES / SEEDS / shape->share, all, profiles);
    }
}

/* Returns the number of messages for one seed of a shape. A shape whose threads mostly sleep takes
 * longer, so it has fewer messages. */
static uint64_t messages_for_one_seed(const struct shape *shape)
{
    uint64_t all = !domt_tests_are_long() ? MESSAGES : shape->letters != 0 ? LONG : 10 * MESSAGES;

    return all / SEEDS / shape->share;
}

static void run_all_seeds_of_shape(const struct shape *shape)
{
    const char *given = getenv("DOMT_SEED");
    uint64_t first = given != NULL           ? strtoull(given, NULL, 0)
                     : domt_tests_are_long() ? domt_now_ns()
                                             : 1;
    uint64_t messages = messages_for_one_seed(shape);
    uint32_t seeds = given != NULL ? 1 : SEEDS;
    domt_sums all = {0};
    domus_profile profiles = {0};

    if (domt_tests_are_long())
        fprintf(stderr, "%s: seeds %" PRIu64 " and on\n", shape->name, first);
    if (given == NULL)
        run_seeds_that_once_failed(shape, &all, &profiles);
    for (uint32_t i = 0; i < seeds; i++)
        run_graph_of_seed(shape, first + i, messages, &all, &profiles);
    for (uint32_t i = 0;
         i < SEEDS_MORE && find_event_that_never_came(shape, &all) != DOMT_COUNTS_MAX; i++)
        run_graph_of_seed(shape, first + seeds + i, MESSAGES / SEEDS / shape->share, &all,
                          &profiles);
    if (getenv("DOMT_SUMS") != NULL)
        domt_sums_print(&all);
    ck_assert_msg(find_event_that_never_came(shape, &all) == DOMT_COUNTS_MAX, "%s: never seen: %s",
                  shape->name, domt_text_of_count(find_event_that_never_came(shape, &all)));
    ck_assert_uint_gt(profiles.parks, 0);
    ck_assert_uint_gt(profiles.wakeups_received, 0);
    ck_assert((profiles.steals != 0) == (shape->steal_floor != 0));
    ck_assert_uint_ge(profiles.exposed, profiles.steals);
}

DOMT_TEST(messages_are_conserved_on_as_many_threads_as_cpus)
{
    run_all_seeds_of_shape(&(struct shape){.name = "two",
                                           .threads = 2,
                                           .mailbox_max = 32768,
                                           .steal_floor = 1,
                                           .per_run = 64,
                                           .population = 160,
                                           .crowd = 6,
                                           .rounds = 8,
                                           .letters = 128,
                                           .share = 5});
}

DOMT_TEST(messages_are_conserved_on_more_threads_than_cpus)
{
    run_all_seeds_of_shape(&(struct shape){.name = "eight",
                                           .threads = 8,
                                           .mailbox_max = 32768,
                                           .steal_floor = 1,
                                           .per_run = 16,
                                           .population = 240,
                                           .crowd = 6,
                                           .rounds = 8,
                                           .letters = 128,
                                           .share = 5});
}

DOMT_TEST(messages_are_conserved_through_refusals)
{
    run_all_seeds_of_shape(&(struct shape){.name = "narrow",
                                           .threads = 4,
                                           .mailbox_max = 16,
                                           .steal_floor = 2,
                                           .per_run = 16,
                                           .population = 96,
                                           .crowd = 4,
                                           .rounds = 8,
                                           .letters = 128,
                                           .share = 5});
}

DOMT_TEST(messages_are_conserved_where_nothing_is_lent)
{
    run_all_seeds_of_shape(&(struct shape){.name = "alone",
                                           .threads = 3,
                                           .mailbox_max = 32768,
                                           .per_run = 64,
                                           .population = 96,
                                           .rounds = 8,
                                           .letters = 128,
                                           .share = 5});
}

DOMT_TEST(messages_are_conserved_by_threads_that_spin)
{
    run_all_seeds_of_shape(&(struct shape){.name = "spinning",
                                           .threads = 4,
                                           .mailbox_max = 1024,
                                           .steal_floor = 1,
                                           .per_run = 16,
                                           .population = 120,
                                           .crowd = 8,
                                           .rounds = 8,
                                           .letters = 128,
                                           .share = 5,
                                           .spin_ns = 20000});
}

/* At most times only one message is under way. So threads fall asleep all the time, and no other
 * message makes good a wake-up that was missed. */
DOMT_TEST(messages_are_conserved_by_threads_that_mostly_sleep)
{
    run_all_seeds_of_shape(&(struct shape){.name = "thin",
                                           .threads = 4,
                                           .mailbox_max = 32768,
                                           .per_run = 64,
                                           .population = 24,
                                           .rounds = 200,
                                           .letters = 0,
                                           .share = 250});
}

DOMT_SUITE(domt_tests_are_long() ? 3000 : 200)
