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
static bool quiet; /* true: the actors begin nothing new */

static struct {
    int64_t given;
    int64_t handled;
    int64_t released;
    uint64_t resumed;
    uint64_t errors[256]; /* number of times that each error came: the storm must reach them all */
} books;

typedef struct deed {
    uint64_t depth; /* number of messages that may still follow from this one */
    uint64_t mark;
} deed;

#define MARK UINT64_C(0x646f6d7573)

static uint64_t now_seed;

static void check_mark(const void *payload)
{
    ck_assert_msg(((const deed *)payload)->mark == MARK, "seed %llu: no payload of ours",
                  (unsigned long long)now_seed);
}

static void release(void *payload)
{
    check_mark(payload);
    books.released++;
}

static const domus_type note = {.name = "note", .size = sizeof(deed), .release = release};
static const domus_type question = {.name = "question", .size = sizeof(deed), .release = release};
static const domus_type large = {.name = "large", .size = 3000, .release = release};
static const domus_type unknown = {.name = "unknown", .size = sizeof(deed), .release = release};

static unsigned draw_below(unsigned below)
{
    return (unsigned)domi_random_below(&dice, below);
}

static domus_address choose_actor(void)
{
    return actors[draw_below(ACTORS)];
}

static void count_result(int result)
{
    books.given += result >= 0;
}

static int handed_on(int result)
{
    books.handled -= result == 0;
    return result;
}

static void count_handled(const void *payload)
{
    check_mark(payload);
    books.handled++;
}

/* --- patterns -------------------------------------------------------------------------------- */

static bool is_deep(const void *self, const void *frame, const domus_type *type,
                    const void *payload)
{
    return (((const deed *)payload)->depth & 1) != 0;
}

static const domus_pattern patterns[] = {
    {NULL, NULL},
    {NULL, is_deep},
    {(const domus_type *const[]){&note, NULL}, NULL},
    {(const domus_type *const[]){&question, NULL}, is_deep},
};

/* --- what an actor does ---------------------------------------------------------------------- */

static const domus_behaviour calm;
static const domus_behaviour wild;
static int go_on(domus_stack *stack, void *self, const domus_answer *answer);

static uint64_t some_time(void)
{
    static const uint64_t times[] = {0, 1, MS, 2 * MS, 5 * MS, 9 * MS};

    return times[draw_below(6)];
}

static void answer_something(domus_stack *stack, const deed *next)
{
    domus_message *message;
    unsigned which = draw_below(HANDLES);
    unsigned what = draw_below(9);

    if (what == 0) {
        int result = domus_reply(stack, &note, next);
        count_result(result);
    } else if (what == 1) {
        char bytes[3000] = {0};
        memcpy(bytes, next, sizeof *next);
        count_result(domus_reply(stack, &large, bytes));
    } else if (what == 2) {
        (void)domus_fail(stack, -EIO);
    } else if (what == 3) {
        (void)handed_on(domus_forward(stack, choose_actor()));
    } else if (what == 4) {
        (void)domus_keep(stack, &kept[which]);
    } else if (what == 5) {
        (void)handed_on(domus_stash(stack));
    } else if (what == 6) {
        count_result(domus_kept_reply(stack, kept[which], &note, next));
    } else if (what == 7) {
        (void)handed_on(domus_kept_forward(stack, kept[which], choose_actor()));
    } else if (domus_message_take(stack, &message) == 0) {
        if (handed_on(domus_message_send(stack, choose_actor(), message)) != 0)
            domus_message_free(stack, message);
    }
}

static void do_something(domus_stack *stack, const deed *next)
{
    unsigned which = draw_below(HANDLES);

    switch (draw_below(12)) {
    case 0:
    case 1:
        count_result(domus_notice(stack, choose_actor(), &note, next));
        break;
    case 2:
    case 3:
        count_result(domus_ask_add(stack, choose_actor(),
                                   draw_below(20) == 0 ? &unknown : &question, next, some_time(),
                                   which));
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
        (void)domus_become(stack, draw_below(2) == 0 ? &calm : NULL);
        break;
    case 9:
        if (draw_below(12) == 0)
            (void)domus_stop(stack, choose_actor());
        else if (draw_below(12) == 0)
            (void)domus_stop_after_mail(stack, choose_actor());
        break;
    default:
        answer_something(stack, next);
        break;
    }
}

static int wait_for_something(domus_stack *stack, const deed *next)
{
    const domus_pattern *pattern = &patterns[draw_below(4)];
    int result;

    switch (draw_below(8)) {
    case 0:
    case 1:
        result = domus_ask_within(stack, choose_actor(), &question, next, some_time(), go_on);
        count_result(result);
        return result;
    case 2:
        return domus_wait_all(stack, go_on);
    case 3:
        return domus_wait_first(stack, go_on);
    case 4:
        return domus_sleep(stack, some_time(), go_on);
    case 5:
        return domus_receive(stack, pattern, go_on);
    case 6:
        return domus_receive_within(stack, pattern, some_time(), go_on);
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
    for (unsigned i = draw_below(4); i != 0; i--)
        do_something(stack, &next);
    return draw_below(3) == 0 ? 0 : wait_for_something(stack, &next);
}

static int go_on(domus_stack *stack, void *self, const domus_answer *answer)
{
    uint64_t depth = draw_below(4);

    books.resumed++;
    for (; answer != NULL; answer = answer->next) {
        ck_assert_int_le(answer->error, 0);
        books.errors[-answer->error]++;
        ck_assert(answer->error == 0 || answer->payload == NULL);
        if (answer->payload != NULL)
            count_handled(answer->payload);
    }
    return act_at_random(stack, depth);
}

static int handle_deed(domus_stack *stack, void *self, const void *payload)
{
    uint64_t depth = ((const deed *)payload)->depth;
    const unsigned char *frame = domus_frame(stack);

    count_handled(payload);
    for (int i = 0; frame != NULL && i < 100; i++)
        ck_assert_uint_eq(frame[i], 0);
    return act_at_random(stack, depth);
}

static int handle_and_reply(domus_stack *stack, void *self, const void *payload)
{
    count_handled(payload);
    count_result(domus_reply(stack, &question, &(deed){0, MARK}));
    return 0;
}

static const domus_behaviour wild = {
    .name = "wild",
    .state_size = 8,
    .on = (const domus_on[]){{&note, handle_deed, 0}, {&question, handle_deed, 100}, {0}}};

static const domus_behaviour calm = {
    .name = "calm",
    .on = (const domus_on[]){{&question, handle_and_reply, 0}, {&note, handle_deed, 100}, {0}}};

/* --- the storm ------------------------------------------------------------------------------- */

static uint32_t born;

static void spawn_actor(uint32_t i)
{
    domi_manager *home = world.managers[i % HOMES];

    if (domi_house_spawn(domt_outside(&world), home, &wild, NULL, &actors[i]) == 0)
        born++;
}

static bool is_gone(domus_address address)
{
    return address.house == NULL || domi_house_address(address.house).lease != address.lease;
}

static void do_random_step(void)
{
    deed first = {1 + draw_below(5), MARK};
    domi_manager *home = world.managers[draw_below(HOMES)];
    unsigned i = draw_below(ACTORS);

    switch (draw_below(8)) {
    case 0:
        count_result(domt_notice(domt_outside(&world), actors[i], &note, &first));
        break;
    case 1:
        (void)domt_events(home);
        break;
    case 2:
        (void)domt_run_state(home);
        break;
    case 3:
        domt_jump(&world, some_time());
        break;
    case 4:
        if (is_gone(actors[i]))
            spawn_actor(i);
        break;
    case 5:
        if (draw_below(8) == 0)
            domi_memory_fail_after(draw_below(30), (int)draw_below(2));
        else
            domi_memory_fail_after(-1, 0);
        break;
    default:
        (void)domt_iterate(home);
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
    world.config.scheduler.mailbox_max = 4 + draw_below(64);
    world.config.scheduler.belt_slots = draw_below(2) * 64;
    world.config.scheduler.conversations_max = 1 + draw_below(8);
    world.config.scheduler.messages_per_run_max = 1 + draw_below(64);
    ck_assert_int_eq(domt_world_start(&world), 0);
    for (uint32_t i = 0; i < ACTORS; i++)
        spawn_actor(i);
    for (int i = 0; i < STEPS; i++)
        do_random_step();
    domi_memory_fail_after(-1, 0);
}

/* Stop all actors, and let them end. */
static void calm_down(void)
{
    quiet = true;
    for (uint32_t i = 0; i < ACTORS; i++)
        (void)domi_house_stop(domt_outside(&world), actors[i]);
    domt_settle(&world);
    ck_assert_msg(DOMT_SUM(&world, stops) == born, "seed %llu: somebody does not end",
                  (unsigned long long)now_seed);
    for (uint32_t i = 0; i < HOMES; i++) {
        ck_assert_uint_eq(world.managers[i]->timing.deadlines.count, 0);
        ck_assert_uint_eq(domi_counter_read(&world.managers[i]->births.houses), 0);
    }
    ck_assert_uint_eq(domt_in_use_all(&world), 0);
}

static void run_storm(uint64_t seed, bool end_at_once)
{
    begin_storm(seed);
    if (!end_at_once)
        calm_down();
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
        run_storm(strtoull(only, NULL, 10), end_at_once);
        return;
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run_storm(seed, end_at_once);
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
