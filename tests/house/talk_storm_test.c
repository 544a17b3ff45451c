/* A storm of conversations: actors that call at random every verb that an actor may call, on homes
 * that are stepped at random, while allocations fail and actors are stopped and made again.
 *
 * Whatever the actors do, each payload that a verb has taken is handled or released exactly once,
 * each actor that is stopped ends, and nothing stays in use. DOMT_SEED=<n> runs one seed only. */
#include "base/memory.h"
#include "base/random.h"
#include "house/dispatch/dispatch.h"
#include "house/family/life.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <domus/message.h>
#include <domus/receive.h>
#include <domus/spawn.h>

#include <errno.h>
#include <string.h>

#define MS      UINT64_C(1000000)
#define HOMES   3
#define ACTORS  9
#define HANDLES 8
#define SEEDS   60
#define STEPS   600

static domt_world world;
static domi_random dice;
static domus_address actors[ACTORS];
static domus_conversation conversations[HANDLES];
static domus_kept kept[HANDLES];
static bool quiet; /* true: the actors begin nothing new, so that the storm comes to its end */

static struct {
    int64_t given;
    int64_t handled;
    int64_t released;
    uint64_t resumed;
    /* number of times that each errno came, by errno; those that run_storms() lists must come */
    uint64_t errors[256];
} books;

typedef struct deed {
    uint64_t depth; /* how many messages may follow one from the other after this one */
    uint64_t mark;
} deed;

#define MARK UINT64_C(0x646f6d7573)

static uint64_t now_seed;

static void check_mark_of_payload(const void *payload)
{
    ck_assert_msg(((const deed *)payload)->mark == MARK, "seed %llu: no payload of ours",
                  (unsigned long long)now_seed);
}

static void count_released_payload(void *payload)
{
    check_mark_of_payload(payload);
    books.released++;
}

static const domus_type note = {
    .name = "note", .size = sizeof(deed), .release = count_released_payload};
static const domus_type question = {
    .name = "question", .size = sizeof(deed), .release = count_released_payload};
static const domus_type large = {.name = "large", .size = 3000, .release = count_released_payload};
static const domus_type unknown = {
    .name = "unknown", .size = sizeof(deed), .release = count_released_payload};

static unsigned random_below(unsigned below)
{
    return (unsigned)domi_random_below(&dice, below);
}

static domus_address choose_random_actor(void)
{
    return actors[random_below(ACTORS)];
}

static void count_payload_given(int result)
{
    books.given += result >= 0;
}

static int uncount_payload_handed_on(int result)
{
    books.handled -= result == 0;
    return result;
}

static void count_payload_handled(const void *payload)
{
    check_mark_of_payload(payload);
    books.handled++;
}

/* --- patterns -------------------------------------------------------------------------------- */

static bool has_odd_depth(const void *self, const void *frame, const domus_type *type,
                          const void *payload)
{
    return (((const deed *)payload)->depth & 1) != 0;
}

static const domus_pattern patterns[] = {
    {NULL, NULL},
    {NULL, has_odd_depth},
    {(const domus_type *const[]){&note, NULL}, NULL},
    {(const domus_type *const[]){&question, NULL}, has_odd_depth},
};

/* --- what an actor does ---------------------------------------------------------------------- */

static const domus_behaviour calm;
static const domus_behaviour wild;
static int count_errors_and_act(domus_stack *stack, void *self, const domus_answer *answer);

static uint64_t choose_random_time(void)
{
    static const uint64_t times[] = {0, 1, MS, 2 * MS, 5 * MS, 9 * MS};

    return times[random_below(6)];
}

static void answer_at_random(domus_stack *stack, const deed *next)
{
    domus_message *message;
    unsigned which = random_below(HANDLES);
    unsigned what = random_below(9);

    if (what == 0) {
        int result = domus_reply(stack, &note, next);
        count_payload_given(result);
    } else if (what == 1) {
        char bytes[3000] = {0};
        memcpy(bytes, next, sizeof *next);
        count_payload_given(domus_reply(stack, &large, bytes));
    } else if (what == 2) {
        (void)domus_fail(stack, -EIO);
    } else if (what == 3) {
        (void)uncount_payload_handed_on(domus_forward(stack, choose_random_actor()));
    } else if (what == 4) {
        (void)domus_keep(stack, &kept[which]);
    } else if (what == 5) {
        (void)uncount_payload_handed_on(domus_stash(stack));
    } else if (what == 6) {
        count_payload_given(domus_kept_reply(stack, kept[which], &note, next));
    } else if (what == 7) {
        (void)uncount_payload_handed_on(
            domus_kept_forward(stack, kept[which], choose_random_actor()));
    } else if (domus_message_take(stack, &message) == 0) {
        if (uncount_payload_handed_on(domus_message_send(stack, choose_random_actor(), message)) !=
            0)
            domus_message_free(stack, message);
    }
}

static void call_random_verb(domus_stack *stack, const deed *next)
{
    unsigned which = random_below(HANDLES);

    switch (random_below(12)) {
    case 0:
    case 1:
        count_payload_given(domus_notice(stack, choose_random_actor(), &note, next));
        break;
    case 2:
    case 3:
        count_payload_given(domus_ask_add(stack, choose_random_actor(),
                                          random_below(20) == 0 ? &unknown : &question, next,
                                          choose_random_time(), which));
        break;
    case 4:
        (void)domus_conversation_of(stack, &conversations[which]);
        break;
    case 5:
        (void)domus_cancel(stack, conversations[which]);
        break;
    case 6:
        (void)domus_barrier(stack);
        break;
    case 7:
        domus_unstash(stack);
        break;
    case 8:
        (void)domus_become(stack, random_below(2) == 0 ? &calm : NULL);
        break;
    case 9:
        if (random_below(12) == 0)
            (void)domus_stop(stack, choose_random_actor());
        else if (random_below(12) == 0)
            (void)domus_stop_after_mail(stack, choose_random_actor());
        break;
    default:
        answer_at_random(stack, next);
        break;
    }
}

static int ask_sleep_or_receive_at_random(domus_stack *stack, const deed *next)
{
    const domus_pattern *pattern = &patterns[random_below(4)];
    int result;

    switch (random_below(8)) {
    case 0:
    case 1:
        result = domus_ask_within(stack, choose_random_actor(), &question, next,
                                  choose_random_time(), count_errors_and_act);
        count_payload_given(result);
        return result;
    case 2:
        return domus_wait_all(stack, count_errors_and_act);
    case 3:
        return domus_wait_first(stack, count_errors_and_act);
    case 4:
        return domus_sleep(stack, choose_random_time(), count_errors_and_act);
    case 5:
        return domus_receive(stack, pattern, count_errors_and_act);
    case 6:
        return domus_receive_within(stack, pattern, choose_random_time(), count_errors_and_act);
    default:
        return -EIO;
    }
}

static int act_at_random(domus_stack *stack, uint64_t depth)
{
    deed next = {depth, MARK};

    if (depth == 0 || quiet)
        return 0;
    next.depth = depth - 1;
    for (unsigned i = random_below(4); i != 0; i--)
        call_random_verb(stack, &next);
    return random_below(3) == 0 ? 0 : ask_sleep_or_receive_at_random(stack, &next);
}

static int count_errors_and_act(domus_stack *stack, void *self, const domus_answer *answer)
{
    uint64_t depth = random_below(4);

    books.resumed++;
    for (; answer != NULL; answer = answer->next) {
        ck_assert_int_le(answer->error, 0);
        books.errors[-answer->error]++;
        ck_assert(answer->error == 0 || answer->payload == NULL);
        if (answer->payload != NULL)
            count_payload_handled(answer->payload);
    }
    return act_at_random(stack, depth);
}

static int handle_deed_at_random(domus_stack *stack, void *self, const void *payload)
{
    uint64_t depth = ((const deed *)payload)->depth;
    const unsigned char *frame = domus_frame(stack);

    count_payload_handled(payload);
    for (int i = 0; frame != NULL && i < 100; i++)
        ck_assert_uint_eq(frame[i], 0);
    return act_at_random(stack, depth);
}

static int count_payload_and_reply(domus_stack *stack, void *self, const void *payload)
{
    count_payload_handled(payload);
    count_payload_given(domus_reply(stack, &question, &(deed){0, MARK}));
    return 0;
}

static const domus_behaviour wild = {
    .name = "wild",
    .state_size = 8,
    .on = (const domus_on[]){
        {&note, handle_deed_at_random, 0}, {&question, handle_deed_at_random, 100}, {0}}};

static const domus_behaviour calm = {
    .name = "calm",
    .on = (const domus_on[]){
        {&question, count_payload_and_reply, 0}, {&note, handle_deed_at_random, 100}, {0}}};

/* --- the storm ------------------------------------------------------------------------------- */

static uint32_t born;

static void spawn_actor(uint32_t i)
{
    domi_manager *home = world.managers[i % HOMES];

    if (domi_house_spawn_without_parent(domt_outside_manager(&world), home, &wild, NULL,
                                        &actors[i]) == 0)
        born++;
}

static bool has_actor_ended(domus_address address)
{
    return address.house == NULL || domi_house_get_address(address.house).lease != address.lease;
}

static void do_random_step(void)
{
    deed first = {1 + random_below(5), MARK};
    domi_manager *home = world.managers[random_below(HOMES)];
    unsigned i = random_below(ACTORS);

    switch (random_below(8)) {
    case 0:
        count_payload_given(
            domt_send_notice(domt_outside_manager(&world), actors[i], &note, &first));
        break;
    case 1:
        (void)domt_take_arrivals_and_timers(home);
        break;
    case 2:
        (void)domt_run_state_queue(home);
        break;
    case 3:
        domt_advance_time_without_runs(&world, choose_random_time());
        break;
    case 4:
        if (has_actor_ended(actors[i]))
            spawn_actor(i);
        break;
    case 5:
        if (random_below(8) == 0)
            domi_memory_fail_allocation_after(random_below(30), (int)random_below(2));
        else
            domi_memory_fail_allocation_after(-1, 0);
        break;
    default:
        (void)domt_iterate_home(home);
        break;
    }
}

static void begin_storm(uint64_t seed)
{
    now_seed = seed;
    domi_random_init(&dice, seed);
    quiet = false;
    born = 0;
    memset(&conversations, 0, sizeof conversations);
    memset(&kept, 0, sizeof kept);
    domt_world_init(&world, HOMES);
    world.config.scheduler.mailbox_max = 4 + random_below(64);
    world.config.scheduler.belt_slots = random_below(2) * 64;
    world.config.scheduler.conversations_max = 1 + random_below(8);
    world.config.scheduler.messages_per_run_max = 1 + random_below(64);
    ck_assert_int_eq(domt_world_start(&world), 0);
    for (uint32_t i = 0; i < ACTORS; i++)
        spawn_actor(i);
    for (int i = 0; i < STEPS; i++)
        do_random_step();
    domi_memory_fail_allocation_after(-1, 0);
}

/* Stop all actors, and step the homes until all have ended. */
static void end_all_actors(void)
{
    quiet = true;
    for (uint32_t i = 0; i < ACTORS; i++)
        (void)domi_house_ask_to_stop(domt_outside_manager(&world), actors[i]);
    domt_settle_world(&world);
    ck_assert_msg(DOMT_SUM(&world, stops) == born, "seed %llu: somebody does not end",
                  (unsigned long long)now_seed);
    for (uint32_t i = 0; i < HOMES; i++) {
        ck_assert_uint_eq(world.managers[i]->timing.deadlines.count, 0);
        ck_assert_uint_eq(domi_counter_read(&world.managers[i]->births.houses), 0);
    }
    ck_assert_uint_eq(domt_count_all_objects_in_use(&world), 0);
}

static void run_storm_and_check_counts(uint64_t seed, bool end_at_once)
{
    begin_storm(seed);
    if (!end_at_once)
        end_all_actors();
    domt_world_end(&world);
    ck_assert_msg(books.given == books.released,
                  "seed %llu: %lld payloads were given, %lld handled, %lld released",
                  (unsigned long long)seed, (long long)books.given, (long long)books.handled,
                  (long long)books.released);
}

static void run_storms(bool end_at_once)
{
    const char *only = getenv("DOMT_SEED");

    memset(&books, 0, sizeof books);
    if (only != NULL) {
        run_storm_and_check_counts(strtoull(only, NULL, 10), end_at_once);
        return;
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run_storm_and_check_counts(seed, end_at_once);
    static const int heard[] = {EIO,     ENOMSG,    ESTALE,    ENOBUFS,
                                EDEADLK, ETIMEDOUT, ECANCELED, EOPNOTSUPP};
    for (size_t i = 0; i < sizeof heard / sizeof heard[0]; i++)
        ck_assert_msg(books.errors[heard[i]] != 0, "the storm never met %s", strerror(heard[i]));
    ck_assert_uint_gt(books.resumed, SEEDS * 10);
}

DOMT_TEST(whatever_actors_do_payloads_are_handled_or_dropped_once_and_actors_end)
{
    run_storms(false);
}

DOMT_TEST(system_may_end_in_the_middle_of_a_storm)
{
    run_storms(true);
}

DOMT_SUITE(120)
