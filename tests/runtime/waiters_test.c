/* Lists of kept asks (domus/waiters.h): a list has a number of places in all, and fewer for one
 * owner. Places of askers that are gone are found when they are needed, and all askers that still
 * wait get the news. */
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/domus.h>
#include <domus/testkit.h>

#include <errno.h>

#define STEP_NS UINT64_C(10000000)
#define PLACES  4u
#define SHARE   2u
#define PROBES  8u

static const domus_type wait_type = {.name = "wait", .size = sizeof(uint64_t)};
static const domus_type news_type = {.name = "news", .size = sizeof(uint64_t)};
static const domus_type told_type = {.name = "told", .size = sizeof(uint32_t)};

static domus_address board;

struct board {
    domus_waiters waiters;
    domus_waiter places[PLACES];
};

static int init_board_in_mount(domus_stack *stack, void *self_)
{
    struct board *self = self_;
    self->waiters =
        (domus_waiters){.places = self->places, .places_max = PLACES, .share_max = SHARE};
    return 0;
}

static int keep_waiting_asker(domus_stack *stack, void *self, const void *payload)
{
    return domus_waiters_keep(stack, &((struct board *)self)->waiters, *(const uint64_t *)payload);
}

static void release_that_does_nothing(void *payload)
{
}

/* Answer all waiting askers with news, and reply how many there were. News whose payload owns
 * memory or is too large reaches nobody. */
static int tell_news_to_waiting_askers(domus_stack *stack, void *self, const void *payload)
{
    static const domus_type owning = {
        .name = "owning", .size = sizeof(uint64_t), .release = release_that_does_nothing};
    static const domus_type large = {.name = "large", .size = DOMUS_PAYLOAD_MAX + 1};
    domus_waiters *waiters = &((struct board *)self)->waiters;
    uint32_t count = waiters->count;

    ck_assert_uint_eq(domus_waiters_reply(stack, waiters, &owning, payload), 0);
    ck_assert_uint_eq(domus_waiters_reply(stack, waiters, &large, payload), 0);
    ck_assert_uint_eq(waiters->count, count);
    uint32_t told = domus_waiters_reply(stack, waiters, &news_type, payload);
    ck_assert_uint_eq(waiters->count, 0);
    return domus_reply(stack, &told_type, &told);
}

static const domus_behaviour behaviour = {
    .name = "board",
    .kind = DOMUS_STATE,
    .state_size = sizeof(struct board),
    .on_mount = init_board_in_mount,
    .on = (const domus_on[]){
        {&wait_type, keep_waiting_asker, 0}, {&news_type, tell_news_to_waiting_askers, 0}, {0}}};

/* A step of the test, done by a probe: it asks as an owner and waits or is refused, leaves, or
 * sends the news. */
typedef struct step {
    uint32_t probe;
    enum { WAITS, WAITS_SHORTLY, REFUSED, LEAVES, TELLS } does;
    /* number of the owner for whom the probe asks; for news, how many askers must get it */
    uint64_t number;
} step;

static const step steps[] = {
    /* Owner 7 has its share of two places, and then all four places are taken. */
    {0, WAITS, 7},
    {1, WAITS, 7},
    {2, REFUSED, 7},
    {2, WAITS, 8},
    {3, WAITS_SHORTLY, 0},
    {4, REFUSED, 0},
    {4, REFUSED, 9},
    /* Asker 0 leaves its place, and then the ask of asker 3 expires. */
    {0, LEAVES, 0},
    {4, WAITS, 7},
    {5, WAITS, 0},
    {6, REFUSED, 0},
    {6, TELLS, 4},
    {6, TELLS, 0},
    /* The list is empty again. Asker 2 has left when the news comes. */
    {1, WAITS, 7},
    {2, WAITS, 7},
    {4, REFUSED, 7},
    {5, WAITS, 0},
    {6, WAITS, 0},
    {2, LEAVES, 0},
    {7, TELLS, 3},
    /* asks with the owner 0 belong to no owner, so no share limits them */
    {1, WAITS, 0},
    {5, WAITS, 0},
    {6, WAITS, 0},
    {7, TELLS, 3},
};

static void do_step_of_case(domus_testkit *kit, domus_probe *probe, const step *does)
{
    uint32_t told;

    switch (does->does) {
    case WAITS:
    case REFUSED:
        ck_assert_int_eq(domus_probe_ask(probe, board, &wait_type, &does->number), 0);
        break;
    case WAITS_SHORTLY: /* this ask expires in the step in which asker 5 waits */
        ck_assert_int_eq(
            domus_probe_ask_within(probe, board, &wait_type, &does->number, 4 * STEP_NS), 0);
        break;
    case LEAVES:
        ck_assert_int_eq(domus_outside_stop(domus_testkit_system(kit), domus_probe_address(probe)),
                         0);
        break;
    case TELLS:
        ck_assert_int_eq(domus_probe_ask(probe, board, &news_type, &does->number), 0);
        ck_assert_int_eq(domus_probe_expect(probe, &told_type, STEP_NS / 2, &told), 0);
        ck_assert_uint_eq(told, does->number);
        break;
    }
    if (does->does == REFUSED)
        ck_assert_int_eq(domus_probe_expect_error(probe, -ENOBUFS, STEP_NS / 2), 0);
    ck_assert_int_eq(domus_testkit_advance(kit, STEP_NS), 0);
}

DOMT_TEST(only_waiting_askers_hold_places)
{
    domus_testkit *kit = domt_kit_new(NULL, 1);
    domus_probe *probes[PROBES];
    bool waits[PROBES] = {false};

    for (uint32_t i = 0; i < PROBES; i++)
        ck_assert_int_eq(domus_probe_new(kit, &probes[i]), 0);
    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(kit), &behaviour, NULL, &board), 0);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const step *does = &steps[i];
        do_step_of_case(kit, probes[does->probe], does);
        if (does->does != REFUSED)
            waits[does->probe] = does->does == WAITS;
        for (uint32_t j = 0; does->does == TELLS && j < PROBES; j++) {
            if (waits[j])
                ck_assert_int_eq(domus_probe_expect(probes[j], &news_type, 0, NULL), 0);
            waits[j] = false;
        }
    }
    domus_testkit_free(kit);
}

/* --- askers that go on without the answer ------------------------------------------------------
 */

#define CONVERSATIONS 16u

static const domus_type go_type = {.name = "go", .size = sizeof(uint64_t)};

static int expect_tag_of_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_uint_eq(answer->tag, 2);
    return 0;
}

/* Ask the list, and end the conversation by something else before the answer comes. */
static int ask_board_and_end_after_sleep(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(domus_ask_add(stack, board, &wait_type, payload, 0, 1), 0);
    ck_assert_int_eq(domus_sleep_add(stack, STEP_NS / 10, 2), 0);
    return domus_wait_first(stack, expect_tag_of_sleep);
}

static const domus_behaviour asking = {
    .name = "asking",
    .kind = DOMUS_STATE,
    .on = (const domus_on[]){{&go_type, ask_board_and_end_after_sleep, 0}, {0}}};

/* Such an asker does not cancel its ask. So the list must end the ask, or it would keep more and
 * more of these asks until it has no place for others. */
DOMT_TEST(asks_of_conversations_that_went_on_are_not_kept)
{
    const uint64_t nobody = 0;
    domus_address asker;
    domus_config config;
    domus_probe *probe;
    uint32_t told;

    domus_config_init(&config);
    config.scheduler.conversations_max = CONVERSATIONS;
    domus_testkit *kit = domt_kit_new(&config, 1);
    domus_system *system = domus_testkit_system(kit);
    ck_assert_int_eq(domus_probe_new(kit, &probe), 0);
    ck_assert_int_eq(domus_outside_spawn(system, &behaviour, NULL, &board), 0);
    ck_assert_int_eq(domus_outside_spawn(system, &asking, NULL, &asker), 0);
    for (uint32_t i = 0; i < 2 * CONVERSATIONS; i++) {
        ck_assert_int_eq(domus_outside_notice(system, asker, &go_type, &nobody), 0);
        ck_assert_int_eq(domus_testkit_advance(kit, STEP_NS), 0);
    }
    ck_assert_int_eq(domus_probe_ask(probe, board, &news_type, &nobody), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &told_type, STEP_NS, &told), 0);
    ck_assert_uint_eq(told, 0);
    domus_testkit_free(kit);
}

DOMT_SUITE(60)
