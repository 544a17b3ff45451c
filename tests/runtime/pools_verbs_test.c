/* Verbs of actors of pools that reach beyond their runner: groups, what needs a
 * ring, and what is told of actors that do not end. */
#include "tests/runtime/pooled.h"
#include "tests/runtime/stalls.h"

#include <domus/connect.h>
#include <domus/datagram.h>
#include <domus/descriptor.h>
#include <domus/file.h>
#include <domus/group.h>
#include <domus/listen.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

static const domus_type go_type = {.name = "go"};
static const domus_type number_type = {.name = "number", .size = sizeof(uint32_t)};

/* --- groups ----------------------------------------------------------------------------------- */

#define NUMBERS (uint32_t) DOMT_SCALE(2000, 400)
#define STEADY  100u /* more than a shard gives a publication to in one step */

static _Atomic uint64_t heard, wrong;
static _Atomic uint32_t joined, published, lives;

typedef struct member {
    uint32_t next; /* the number that it expects */
} member;

static int join(domus_stack *stack, void *self)
{
    domus_group group;

    ck_assert_int_eq(domus_group_open(stack, "all", &group), 0);
    ck_assert_int_eq(domus_group_join(stack, group), 0);
    atomic_fetch_add(&joined, 1);
    return 0;
}

static int hear_number(domus_stack *stack, void *self, const void *number)
{
    member *mine = self;

    if (*(const uint32_t *)number != mine->next++)
        atomic_fetch_add(&wrong, 1);
    atomic_fetch_add(&heard, 1);
    return 0;
}

static const domus_behaviour steady = {
    .name = "steady",
    .state_size = sizeof(member),
    .on_mount = join,
    .on = (const domus_on[]){{&number_type, hear_number, 0}, {0}},
};

/* It joins, hears some, and ends: by a stop, or by leaving first. */
static int hear_and_end(domus_stack *stack, void *self, const void *number)
{
    domus_group group;

    if (*(const uint32_t *)number % 2 == 0 && domus_group_open(stack, "all", &group) == 0)
        (void)domus_group_leave(stack, group);
    return domus_stop(stack, domus_self(stack));
}

static const domus_behaviour fleeting = {
    .name = "fleeting",
    .state_size = sizeof(member),
    .on_mount = join,
    .on = (const domus_on[]){{&number_type, hear_and_end, 0}, {0}},
};

/* Publish a number, with a new member that hears few of them, and go on. */
static int publish(domus_stack *stack, void *self, const void *nothing)
{
    uint32_t number = atomic_load(&published);
    domus_group group;
    domus_address address;

    ck_assert_int_eq(domus_group_open(stack, "all", &group), 0);
    int result = domus_publish(stack, group, &number_type, &number);
    if (result == 0) {
        atomic_store(&published, number + 1);
        if (domus_spawn(stack, &fleeting, NULL, &address) == 0)
            atomic_fetch_add(&lives, 1);
    }
    return number + 1 < NUMBERS ? domus_notice(stack, domus_self(stack), &go_type, NULL) : 0;
}

static const domus_behaviour publishing = {.name = "publishing",
                                           .on = (const domus_on[]){{&go_type, publish, 0}, {0}}};

/* Members on a thread and in a pool, some of which come and go, hear all that one actor publishes,
 * in its order. */
static void run_groups_have_members_in_pools(const char *policy)
{
    domt_pooled_begin(policy, 2, 1);
    atomic_store(&heard, 0);
    atomic_store(&joined, 0);
    atomic_store(&published, 0);
    for (uint32_t i = 0; i < STEADY; i++)
        (void)domt_pooled_spawn(i % 4 == 0 ? NULL : domt_pooled.pool, &steady, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&joined) == STEADY);
    domus_address publisher = domt_pooled_spawn(domt_pooled.pool, &publishing, NULL);
    domt_notice(domt_pooled.system, publisher, &go_type, NULL);
    DOMT_WAIT_FOR(60, atomic_load(&heard) == (uint64_t)NUMBERS * STEADY);
    ck_assert_uint_eq(atomic_load(&wrong), 0);
    ck_assert_uint_eq(atomic_load(&published), NUMBERS);
    domt_end(domt_pooled.system);
}

DOMT_TEST(groups_have_members_in_pools)
{
    for (uint32_t i = 0; i < DOMT_POOLED_POLICIES; i++)
        run_groups_have_members_in_pools(domt_pooled_policies[i]);
}

/* --- what needs a ring ------------------------------------------------------------------------ */

static _Atomic uint32_t refused;

static int go_on(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

static int try_all(domus_stack *stack, void *self, const void *nothing)
{
    const domus_endpoint at = {.family = AF_INET, .size = 4, .bytes = {127, 0, 0, 1}};
    domus_address address;
    domus_fd_watch watch;

    ck_assert_int_eq(domus_connect(stack, "127.0.0.1:1", NULL, go_on), -EOPNOTSUPP);
    ck_assert_int_eq(domus_file_open(stack, NULL, "/dev/null", DOMUS_FILE_READ, 0, go_on),
                     -EOPNOTSUPP);
    ck_assert_int_eq(domus_listen(stack, &at, NULL, &address, NULL), -EOPNOTSUPP);
    ck_assert_int_eq(domus_datagram_open(stack, &at, NULL, &address, NULL), -EOPNOTSUPP);
    ck_assert_int_eq(domus_watch_fd(stack, 0, POLLIN, &watch), -EOPNOTSUPP);
    atomic_fetch_add(&refused, 1);
    return 0;
}

static const domus_behaviour trying = {.name = "trying",
                                       .on = (const domus_on[]){{&go_type, try_all, 0}, {0}}};

DOMT_TEST(what_needs_a_ring_is_told_once)
{
    const domus_pool_config work = {.name = "work", .runners = 1};
    domus_config config = domt_config(1);

    config.pools = &work;
    config.pool_count = 1;
    atomic_store(&refused, 0);
    domt_pooled.system = domt_start_logging(&config);
    domt_pooled.pool = domus_outside_pool_find(domt_pooled.system, "work");
    domus_address address = domt_pooled_spawn(domt_pooled.pool, &trying, NULL);
    for (uint32_t i = 0; i < 5; i++)
        domt_notice(domt_pooled.system, address, &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&refused) == 5);
    ck_assert_uint_eq(domt_lines("no actor of a pool can have", "trying"), 1);
    domt_end(domt_pooled.system);
}

/* --- actors that are left --------------------------------------------------------------------- */

static _Atomic bool holds, is_held;

static int hold(domus_stack *stack, void *self, const void *nothing)
{
    atomic_store(&is_held, true);
    while (atomic_load(&holds))
        domt_pause_ns(DOMT_MS);
    return 0;
}

static const domus_behaviour holding = {.name = "holding",
                                        .on = (const domus_on[]){{&go_type, hold, 0}, {0}}};

DOMT_TEST(a_handler_that_does_not_return_is_told_with_its_pool)
{
    const domus_pool_config work = {.name = "work", .runners = 1};
    domus_config config = domt_config(1);

    config.pools = &work;
    config.pool_count = 1;
    config.shutdown.actor_timeout_ns = 20 * DOMT_MS;
    atomic_store(&holds, true);
    domt_pooled.system = domt_start(&config);
    domt_pooled.pool = domus_outside_pool_find(domt_pooled.system, "work");
    domus_address address = domt_pooled_spawn(domt_pooled.pool, &holding, NULL);
    domt_notice(domt_pooled.system, address, &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&is_held));
    ck_assert_int_eq(domus_system_stop(domt_pooled.system), -ETIMEDOUT);
    const char *left = domus_system_left(domt_pooled.system);
    ck_assert_msg(strstr(left, "pool work: a handler of holding has not returned") != NULL, "%s",
                  left);
    atomic_store(&holds, false);
    DOMT_WAIT_FOR(10, domus_system_stop(domt_pooled.system) != -ETIMEDOUT);
    domus_system_free(domt_pooled.system);
}

DOMT_SUITE(120)
