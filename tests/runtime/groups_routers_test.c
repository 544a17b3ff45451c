/* Groups and routers on real threads: actors publish, join, leave and end at the same time. */
#include "tests/runtime/running.h"

#include <errno.h>

#define MEMBERS    10000u
#define ROUNDS     (DOMT_SANITIZED ? 3u : 10u)
#define PUBLISHERS 2u

static _Atomic uint64_t handled, disorder, released, refused, published, mounted, lives;
static atomic_bool enough;

static const domus_type go_type = {.name = "go"};

static void count_released_news(void *payload)
{
    atomic_fetch_add(&released, 1);
}

struct news {
    uint32_t publisher;
    uint32_t number; /* number of the publisher's message, from 1 on */
};

static const domus_type news_type = {
    .name = "news", .size = sizeof(struct news), .release = count_released_news};

static domus_group group;

/* --- members ---------------------------------------------------------------------------------- */

struct member {
    uint32_t last[PUBLISHERS + 1];
};

static int join_group_in_mount(domus_stack *stack, void *self)
{
    int error = domus_group_join(stack, group);
    atomic_fetch_add(&mounted, error == 0);
    return error;
}

/* Handle a publication: a member that is always there gets each number of a publisher in order. */
static int check_order_of_news(domus_stack *stack, void *self_, const void *payload)
{
    struct member *self = self_;
    const struct news *news = payload;
    uint32_t *last = &self->last[news->publisher];

    if (news->number != *last + 1)
        atomic_fetch_add_explicit(&disorder, 1, memory_order_relaxed);
    *last = news->number;
    atomic_fetch_add_explicit(&handled, 1, memory_order_relaxed);
    return 0;
}

static const domus_behaviour member = {
    .name = "member",
    .state_size = sizeof(struct member),
    .on = (const domus_on[]){{&news_type, check_order_of_news, 0}, {0}},
    .on_mount = join_group_in_mount};

/* --- publishers ------------------------------------------------------------------------------- */

struct publisher {
    uint32_t index;
    uint32_t number;
    /* number of rounds of messages to publish; 0: as many as come until the test ends
     * them */
    uint32_t rounds;
};

static int publish_next_news(domus_stack *stack, void *self_, const void *payload)
{
    struct publisher *self = self_;
    const struct news news = {self->index, ++self->number};

    if (domus_publish(stack, group, &news_type, &news) != 0)
        atomic_fetch_add(&refused, 1);
    atomic_fetch_add(&published, 1);
    if (self->rounds != 0 ? self->number == self->rounds : atomic_load(&enough))
        return 0;
    return domus_notice(stack, domus_self(stack), &go_type, NULL);
}

static const domus_behaviour publisher = {
    .name = "publisher",
    .state_size = sizeof(struct publisher),
    .on = (const domus_on[]){{&go_type, publish_next_news, 0}, {0}}};

static domus_system *start_system(void)
{
    domus_config config = domt_config_of_threads(2);
    config.routers.max = 1;
    domus_system *system = domt_start_system(&config);

    ck_assert_int_eq(domus_outside_group_open(system, "news", &group), 0);
    return system;
}

static void start_publishers(domus_system *system, uint32_t rounds)
{
    for (uint32_t i = 0; i < PUBLISHERS; i++) {
        struct publisher state = {.index = i, .rounds = rounds};
        domt_send_notice(system, domt_spawn(system, i, &publisher, &state), &go_type, NULL);
    }
}

DOMT_TEST(ten_thousand_members_on_two_threads_get_all_once_and_in_order)
{
    domus_system *system = start_system();

    for (uint32_t i = 0; i < MEMBERS; i++)
        domt_spawn(system, i % 2, &member, NULL);
    DOMT_WAIT_FOR(60, atomic_load(&mounted) == MEMBERS);
    start_publishers(system, ROUNDS);
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        const struct news news = {PUBLISHERS, i};
        ck_assert_int_eq(domus_outside_publish(system, group, &news_type, &news), 0);
    }
    DOMT_WAIT_FOR(60, atomic_load(&handled) == (uint64_t)MEMBERS * ROUNDS * (PUBLISHERS + 1));
    DOMT_WAIT_FOR(10, atomic_load(&released) == (uint64_t)ROUNDS * (PUBLISHERS + 1));
    ck_assert_uint_eq(atomic_load(&disorder), 0);
    ck_assert_uint_eq(atomic_load(&refused), 0);
    ck_assert_uint_eq(domus_group_members(group), MEMBERS);
    domt_end_system(system);
    ck_assert_uint_eq(atomic_load(&released), (uint64_t)ROUNDS * (PUBLISHERS + 1));
}

DOMT_TEST(group_calls_are_refused_while_the_system_does_not_run)
{
    domus_config config = domt_config_of_threads(1);
    domus_system *system = NULL;
    const struct news news = {0, 1};
    char error[256];

    ck_assert_int_eq(domus_system_new(&config, error, sizeof error, &system), 0);
    ck_assert_int_eq(domus_outside_group_open(system, "news", &group), -ESHUTDOWN);
    ck_assert_int_eq(domus_outside_publish(system, group, &news_type, &news), -ESHUTDOWN);
    ck_assert_int_eq(
        domus_outside_spawn_many(system, &member, NULL, 2, NULL, NULL, &(domus_address){NULL, 0}),
        -ESHUTDOWN);
    ck_assert_uint_eq(atomic_load(&released), 1);
    domus_system_free(system);
}

/* --- coming and going ------------------------------------------------------------------------- */

#define LIVES    (DOMT_SANITIZED ? 1500u : 10000u)
#define CHURNERS 40u

/* A member that leaves and joins when it gets messages, and ends after a few of them; its parent
 * then spawns another one. */
struct fickle {
    domus_address mother;
    uint32_t left;
    uint32_t last[PUBLISHERS];
};

static int join_group_for_six_news(domus_stack *stack, void *self)
{
    ((struct fickle *)self)->left = 6;
    return domus_group_join(stack, group);
}

static int check_news_and_leave(domus_stack *stack, void *self_, const void *payload)
{
    struct fickle *self = self_;
    const struct news *news = payload;

    if (news->number <= self->last[news->publisher])
        atomic_fetch_add(&disorder, 1);
    self->last[news->publisher] = news->number;
    if (--self->left == 0)
        return domus_stop(stack, domus_self(stack));
    int error = self->left % 2 == 0 ? domus_group_leave(stack, group) : 0;
    return error == 0 ? domus_group_join(stack, group) : error;
}

static void notify_spawner_in_stop(domus_stack *stack, void *self)
{
    (void)domus_notice(stack, ((struct fickle *)self)->mother, &go_type, NULL);
}

static const domus_behaviour fickle = {
    .name = "fickle",
    .state_size = sizeof(struct fickle),
    .on = (const domus_on[]){{&news_type, check_news_and_leave, 0}, {0}},
    .on_mount = join_group_for_six_news,
    .on_stop = notify_spawner_in_stop};

static int spawn_short_lived_member(domus_stack *stack, void *self, const void *payload)
{
    struct fickle state = {.mother = domus_self(stack)};
    domus_address address;

    if (atomic_fetch_add(&lives, 1) >= LIVES)
        return 0;
    return domus_spawn(stack, &fickle, &state, &address);
}

static const domus_behaviour mother = {
    .name = "mother", .on = (const domus_on[]){{&go_type, spawn_short_lived_member, 0}, {0}}};

DOMT_TEST(members_come_and_go_while_others_publish)
{
    domus_system *system = start_system();

    for (uint32_t i = 0; i < CHURNERS; i++)
        domt_send_notice(system, domt_spawn(system, i % 2, &mother, NULL), &go_type, NULL);
    start_publishers(system, 0);
    DOMT_WAIT_FOR(60, atomic_load(&lives) == LIVES + CHURNERS);
    DOMT_WAIT_FOR(10, domus_group_members(group) == 0);
    atomic_store(&enough, true);
    DOMT_WAIT_FOR(10, atomic_load(&published) == atomic_load(&released));
    ck_assert_uint_eq(atomic_load(&disorder), 0);
    domt_end_system(system);
    ck_assert_uint_eq(atomic_load(&published), atomic_load(&released));
}

static int call_group_verbs_in_detached_actor(domus_stack *stack, void *self, const void *payload)
{
    const struct news news = {0, 1};

    if (domus_group_join(stack, group) != -EOPNOTSUPP || domus_group_leave(stack, group) != 0 ||
        domus_publish(stack, group, &news_type, &news) != 0)
        atomic_fetch_add(&refused, 1);
    return 0;
}

static const domus_behaviour alone = {
    .name = "alone",
    .on = (const domus_on[]){{&go_type, call_group_verbs_in_detached_actor, 0}, {0}}};

static int spawn_detached_actor_and_notify(domus_stack *stack, void *self, const void *payload)
{
    const domus_spawn_options options = {.detached = true};
    domus_address address;

    int error = domus_spawn_with(stack, &alone, NULL, &options, &address);
    return error != 0 ? error : domus_notice(stack, address, &go_type, NULL);
}

static const domus_behaviour employer = {
    .name = "employer",
    .on = (const domus_on[]){{&go_type, spawn_detached_actor_and_notify, 0}, {0}}};

DOMT_TEST(a_detached_actor_publishes_but_is_no_member)
{
    domus_system *system = start_system();

    domt_spawn(system, 1, &member, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&mounted) == 1);
    domt_send_notice(system, domt_spawn(system, 0, &employer, NULL), &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&handled) == 1);
    DOMT_WAIT_FOR(10, atomic_load(&released) == 1);
    ck_assert_uint_eq(atomic_load(&refused), 0);
    domt_end_system(system);
}

/* --- routers ---------------------------------------------------------------------------------- */

#define MESSAGES (DOMT_SANITIZED ? 1500u : 10000u) /* number of messages that each sender sends */
#define SENDERS  2u
#define KEYS     64u

struct item {
    uint32_t sender;
    uint32_t number; /* number of the sender's message, from 1 on */
};

static const domus_type item_type = {.name = "item", .size = sizeof(struct item)};

static domus_address router;
static domus_route route;
static _Atomic(void *) owners[KEYS]; /* for each key, the routee that has got it */

struct worker {
    uint32_t last[SENDERS];
};

static int check_order_and_owner_of_item(domus_stack *stack, void *self_, const void *payload)
{
    struct worker *self = self_;
    const struct item *item = payload;
    void *owner = NULL;

    if (item->number <= self->last[item->sender])
        atomic_fetch_add(&disorder, 1);
    self->last[item->sender] = item->number;
    if (route == DOMUS_ROUTE_NEAR && self->last[1 - item->sender] != 0)
        /* the key went to a routee on another thread than that of its sender */
        atomic_fetch_add(&disorder, 1);
    if (route == DOMUS_ROUTE_HASH &&
        !atomic_compare_exchange_strong(&owners[item->number % KEYS], &owner, self) &&
        owner != self)
        atomic_fetch_add(&disorder, 1);
    atomic_fetch_add_explicit(&handled, 1, memory_order_relaxed);
    return 0;
}

static const domus_behaviour worker = {
    .name = "worker",
    .state_size = sizeof(struct worker),
    .on = (const domus_on[]){{&item_type, check_order_and_owner_of_item, 0}, {0}}};

static int send_items_to_router(domus_stack *stack, void *self_, const void *payload)
{
    struct item *self = self_;
    int error = 0;

    for (uint32_t i = 0; i < 50 && self->number < MESSAGES && error == 0; i++) {
        struct item item = {self->sender, self->number + 1};
        error = domus_notice(stack, router, &item_type, &item);
        self->number += error == 0;
    }
    if (error == -ENOBUFS)
        return domus_after(stack, DOMT_MS, &go_type, NULL, NULL);
    return self->number < MESSAGES ? domus_notice(stack, domus_self(stack), &go_type, NULL) : 0;
}

static const domus_behaviour sender = {
    .name = "sender",
    .state_size = sizeof(struct item),
    .on = (const domus_on[]){{&go_type, send_items_to_router, 0}, {0}}};

static uint64_t key_of_item(const domus_type *type, const void *payload)
{
    return ((const struct item *)payload)->number % KEYS;
}

DOMT_TEST(each_route_keeps_order_and_loses_nothing)
{
    for (route = DOMUS_ROUTE_ROBIN; route <= DOMUS_ROUTE_HASH; route++) {
        domus_system *system = start_system();
        const domus_routing routing = {route, key_of_item};

        atomic_store(&handled, 0);
        ck_assert_int_eq(domus_outside_spawn_many(system, &worker, NULL,
                                                  route == DOMUS_ROUTE_NEAR ? DOMUS_PER_THREAD : 5,
                                                  &routing, NULL, &router),
                         0);
        for (uint32_t i = 0; i < SENDERS; i++) {
            struct item state = {.sender = i};
            domt_send_notice(system, domt_spawn(system, i, &sender, &state), &go_type, NULL);
        }
        DOMT_WAIT_FOR(60, atomic_load(&handled) == SENDERS * MESSAGES);
        ck_assert_uint_eq(atomic_load(&disorder), 0);
        ck_assert_int_eq(domus_outside_stop(system, router), 0);
        ck_assert_int_eq(domus_outside_stop(system, router), -ESTALE);
        ck_assert_int_eq(domus_outside_spawn_many(system, &worker, NULL, 2, NULL, NULL, &router),
                         /* the spawn of this router would fail with -ENOBUFS if the stopped router
                            still counted, because routers.max is 1 */
                         0);
        domt_end_system(system);
    }
}

/* A maker makes routers in the same memory, one after another, and publishes their addresses; other
 * actors send to the address that they got last. A message for one of these routers (a generation)
 * must never reach the routees of another. */
#define GENERATIONS (DOMT_SANITIZED ? 250u : 2000u)

struct generation {
    uint32_t number;
    uint32_t turns; /* number of turns since the maker has made its last router */
    domus_address router;
};

static const domus_type generation_type = {.name = "generation", .size = sizeof(struct generation)};
static const domus_type parcel_type = {.name = "parcel", .size = sizeof(uint32_t)};

static _Atomic uint64_t stale, made;

static int check_generation_of_parcel(domus_stack *stack, void *self, const void *payload)
{
    if (*(const uint32_t *)payload != *(const uint32_t *)self)
        atomic_fetch_add(&disorder, 1);
    atomic_fetch_add_explicit(&handled, 1, memory_order_relaxed);
    return 0;
}

static const domus_behaviour addressee = {
    .name = "addressee",
    .state_size = sizeof(uint32_t),
    .on = (const domus_on[]){{&parcel_type, check_generation_of_parcel, 0}, {0}}};

static int make_router_of_next_generation(domus_stack *stack, void *self_, const void *payload)
{
    struct generation *self = self_;
    const domus_routing routing = {self->number % 3 == 0 ? DOMUS_ROUTE_LEAST : DOMUS_ROUTE_ROBIN,
                                   NULL};

    if (self->turns++ % 30 != 0)
        return domus_notice(stack, domus_self(stack), &go_type, NULL);
    if (self->number != 0)
        (void)domus_stop(stack, self->router);
    if (self->number++ == GENERATIONS) {
        atomic_store(&enough, true);
        return 0;
    }
    int error = domus_spawn_many(stack, &addressee, &self->number, 3 + self->number % 2, &routing,
                                 NULL, &self->router);
    if (error == 0)
        error = domus_publish(stack, group, &generation_type, self);
    if (error != 0)
        atomic_fetch_add(&refused, 1);
    atomic_fetch_add(&made, 1);
    return domus_notice(stack, domus_self(stack), &go_type, NULL);
}

static const domus_behaviour maker = {
    .name = "maker",
    .state_size = sizeof(struct generation),
    .on = (const domus_on[]){{&go_type, make_router_of_next_generation, 0}, {0}}};

static int set_generation_of_routee(domus_stack *stack, void *self, const void *payload)
{
    *(struct generation *)self = *(const struct generation *)payload;
    return 0;
}

static int send_parcels_to_router(domus_stack *stack, void *self_, const void *payload)
{
    const struct generation *self = self_;

    for (uint32_t i = 0; i < 8; i++) {
        if (domus_notice(stack, self->router, &parcel_type, &self->number) != 0)
            atomic_fetch_add_explicit(&stale, 1, memory_order_relaxed);
    }
    return atomic_load(&enough) ? 0 : domus_notice(stack, domus_self(stack), &go_type, NULL);
}

static const domus_behaviour carrier = {
    .name = "carrier",
    .state_size = sizeof(struct generation),
    .on = (const domus_on[]){{&go_type, send_parcels_to_router, 0},
                             {&generation_type, set_generation_of_routee, 0},
                             {0}},
    .on_mount = join_group_in_mount};

DOMT_TEST(a_router_that_ends_is_never_taken_for_the_next_one)
{
    domus_system *system = start_system();

    for (uint32_t i = 0; i < 2; i++)
        domt_send_notice(system, domt_spawn(system, i, &carrier, NULL), &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&mounted) == 2);
    domt_send_notice(system, domt_spawn(system, 0, &maker, NULL), &go_type, NULL);
    DOMT_WAIT_FOR(60, atomic_load(&enough));
    ck_assert_uint_eq(atomic_load(&made), GENERATIONS);
    ck_assert_uint_eq(atomic_load(&refused), 0);
    ck_assert_uint_eq(atomic_load(&disorder), 0);
    /* How many messages are handled and how many are stale depends on the machine, so only their
     * sum is checked. */
    ck_assert_uint_ne(atomic_load(&handled) + atomic_load(&stale), 0);
    domt_end_system(system);
}

DOMT_SUITE(120)
