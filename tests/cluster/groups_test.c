/* domus_cluster_group_open(): members on two nodes receive the publications of both, also if a
 * group was opened before the gateways began. */
#include "tests/cluster/broker.h"
#include "tests/cluster/pair.h"
#include "tests/cluster/words.h"
#include "tests/support/suite.h"

#include <domus/cluster.h>
#include <domus/domus.h>
#include <domus/group.h>
#include <string.h>
#include <time.h>

/* domus_cluster_group_open(): members on two nodes over a real server receive the publications of
 * both nodes, also after a node has begun anew; and without a server the same functions work on
 * one node. */

#define BURST UINT64_C(2000)

static domus_address publishers[2];
/* counts of what members have received, by the members' node */
static _Atomic uint64_t taken[2], disorder, secrets[2], foreign[2];
/* the two nodes' clusters, as their actors use them */
static domus_cluster *clusters[2];

/* --- actors ----------------------------------------------------------------------------------- */

typedef struct actor {
    uint32_t node;
    domus_group group;
    /* next[0] of a publisher is its next number; next[] of a member is the least number that may
     * come from its own node, and from the other node */
    uint64_t next[2];
} actor;

static int on_number_check_and_count(domus_stack *stack, void *self_, const void *payload)
{
    actor *self = self_;
    uint64_t value = ((const domt_number *)payload)->value;
    bool is_foreign = domus_address_is_remote(domus_sender(stack));

    if (value < self->next[is_foreign])
        atomic_fetch_add(&disorder, 1);
    self->next[is_foreign] = value + 1;
    atomic_fetch_add(&taken[self->node], 1);
    atomic_fetch_add(&foreign[self->node], is_foreign);
    return 0;
}

static int on_secret_count_it(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&secrets[((actor *)self)->node], 1);
    return 0;
}

static int open_news_group(domus_stack *stack, actor *self)
{
    return domus_cluster_group_open(stack, clusters[self->node], "news", &self->group);
}

static int on_mount_open_and_join_group(domus_stack *stack, void *self_)
{
    actor *self = self_;
    int error = open_news_group(stack, self);

    return error != 0 ? error : domus_group_join(stack, self->group);
}

static const domus_behaviour member = {
    .name = "member",
    .state_size = sizeof(actor),
    .on_mount = on_mount_open_and_join_group,
    .on = (const domus_on[]){{&domt_number_type, on_number_check_and_count, 0},
                             {&domt_secret_type, on_secret_count_it, 0},
                             {NULL, NULL, 0}},
};

/* Publish as many numbers as the order says. */
static int on_order_publish_numbers(domus_stack *stack, void *self_, const void *payload)
{
    actor *self = self_;
    int error = 0;

    for (uint64_t i = ((const domt_number *)payload)->value; i > 0 && error == 0; i--) {
        const domt_number number = {.value = self->next[0]++};
        error = domus_publish(stack, self->group, &domt_number_type, &number);
    }
    return error;
}

static int on_order_publish_secret(domus_stack *stack, void *self, const void *payload)
{
    return domus_publish(stack, ((actor *)self)->group, &domt_secret_type, payload);
}

static int on_mount_open_group(domus_stack *stack, void *self)
{
    return open_news_group(stack, self);
}

static const domus_behaviour publisher = {
    .name = "publisher",
    .state_size = sizeof(actor),
    .on_mount = on_mount_open_group,
    .on = (const domus_on[]){{&domt_tell_type, on_order_publish_numbers, 0},
                             {&domt_secret_type, on_order_publish_secret, 0},
                             {NULL, NULL, 0}},
};

static domus_address spawn_actor_on_node(domus_system *system, uint32_t node,
                                         const domus_behaviour *behaviour)
{
    const actor state = {.node = node};
    domus_address address;

    ck_assert_int_eq(domus_outside_spawn(system, behaviour, &state, &address), 0);
    return address;
}

/* Spawn a publisher and two members on a node, whose threads get them in turn. */
static void spawn_publisher_and_members_on_node(uint32_t node)
{
    clusters[node] = domt_clusters[node];
    publishers[node] = spawn_actor_on_node(domt_systems[node], node, &publisher);
    for (uint32_t i = 0; i < 2; i++)
        (void)spawn_actor_on_node(domt_systems[node], node, &member);
}

static void send_order_to_publisher(domus_system *system, uint32_t node, const domus_type *type,
                                    uint64_t value)
{
    const domt_number number = {.value = value};

    ck_assert_int_eq(domus_outside_notice(system, publishers[node], type, &number), 0);
}

static void wait_until_count_reaches(const _Atomic uint64_t *count, uint64_t value)
{
    for (int i = 0; i < 4000 && atomic_load((_Atomic uint64_t *)(uintptr_t)count) < value; i++)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    ck_assert_uint_ge(atomic_load((_Atomic uint64_t *)(uintptr_t)count), value);
}

/* Let a node publish until the other node receives a publication: then the first node knows the
 * interest of the other one. */
static void wait_for_interest(uint32_t node)
{
    uint64_t before = atomic_load(&foreign[1 - node]);

    for (int i = 0; i < 1000 && atomic_load(&foreign[1 - node]) == before; i++) {
        send_order_to_publisher(domt_systems[node], node, &domt_tell_type, 1);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
}

static void zero_counts_and_open_pair(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        atomic_store(&taken[i], 0);
        atomic_store(&foreign[i], 0);
        atomic_store(&secrets[i], 0);
    }
    atomic_store(&disorder, 0);
    domt_pair_open_nodes(2, NULL);
    spawn_publisher_and_members_on_node(0);
    spawn_publisher_and_members_on_node(1);
    wait_for_interest(0);
    wait_for_interest(1);
}

/* --- tests ------------------------------------------------------------------------------------ */

DOMT_TEST(members_on_both_nodes_get_each_publication_in_order)
{
    zero_counts_and_open_pair();
    for (uint32_t node = 0; node < 2; node++) {
        atomic_store(&taken[0], 0);
        atomic_store(&taken[1], 0);
        send_order_to_publisher(domt_systems[node], node, &domt_tell_type, BURST);
        wait_until_count_reaches(&taken[0], 2 * BURST);
        wait_until_count_reaches(&taken[1], 2 * BURST);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        /* the publishing node's members got each number once: the other node sends none back */
        ck_assert_uint_eq(atomic_load(&taken[0]), 2 * BURST);
        ck_assert_uint_eq(atomic_load(&taken[1]), 2 * BURST);
    }
    domus_cluster_counts counts = domus_cluster_count(domt_clusters[0]);
    ck_assert_uint_eq(counts.refused + counts.lost + counts.dropped + counts.wrong, 0);
    ck_assert_uint_lt(counts.sent, BURST + 200); /* two members on one node cost only one message */
    domt_pair_close_nodes();
    ck_assert_uint_eq(atomic_load(&disorder), 0);
}

DOMT_TEST(type_without_a_pickler_comes_to_members_here_alone)
{
    zero_counts_and_open_pair();
    send_order_to_publisher(domt_systems[0], 0, &domt_secret_type, 1);
    wait_until_count_reaches(&secrets[0], 2);
    for (int i = 0; i < 500 && domus_cluster_count(domt_clusters[0]).refused == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    ck_assert_uint_eq(domus_cluster_count(domt_clusters[0]).refused, 1);
    ck_assert_uint_eq(atomic_load(&secrets[1]), 0);
    domt_pair_close_nodes();
}

DOMT_TEST(node_that_has_begun_anew_gets_publications_again)
{
    zero_counts_and_open_pair();
    domt_pair_end_node_b(true);
    domt_pair_wait_for_state_of_b(DOMUS_NODE_ENDED);
    send_order_to_publisher(domt_systems[0], 0, &domt_tell_type, 5);
    domt_pair_open_node_b();
    domt_pair_wait_for_state_of_b(DOMUS_NODE_UP);
    spawn_publisher_and_members_on_node(1);
    wait_for_interest(0);
    uint64_t before = atomic_load(&taken[1]);
    uint64_t refused = domus_cluster_count(domt_clusters[0]).refused;
    send_order_to_publisher(domt_systems[0], 0, &domt_tell_type, BURST);
    wait_until_count_reaches(&taken[1], before + 2 * BURST);
    ck_assert_uint_eq(domus_cluster_count(domt_clusters[0]).refused, refused);
    wait_for_interest(1);
    domt_pair_close_nodes();
}

DOMT_TEST(without_servers_a_group_is_that_of_this_system)
{
    const domus_cluster_options options = {.name = "alone"};
    domus_config config;
    domus_system *system;
    char error[200] = "";

    atomic_store(&taken[0], 0);
    atomic_store(&disorder, 0);
    domus_config_init(&config);
    config.system.threads = 2;
    ck_assert_int_eq(domus_system_new(&config, error, sizeof error, &system), 0);
    ck_assert_int_eq(domus_system_start(system), 0);
    ck_assert_int_eq(domus_cluster_open(system, &options, error, sizeof error, &clusters[0]), 0);
    publishers[0] = spawn_actor_on_node(system, 0, &publisher);
    (void)spawn_actor_on_node(system, 0, &member);
    (void)spawn_actor_on_node(system, 0, &member);
    for (int i = 0; i < 1000 && atomic_load(&taken[0]) < 2; i++) {
        send_order_to_publisher(system, 0, &domt_tell_type, 1);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    wait_until_count_reaches(&taken[0], 2);
    ck_assert_int_ge(domus_system_stop(system), 0);
    domus_cluster_close(clusters[0]);
    domus_system_free(system);
    ck_assert_uint_eq(atomic_load(&disorder), 0);
}

/* --- group early ------------------------------------------------------------------------------ */

/* A group that actors open before the gateways of their node begin spans the cluster all the same.
 * The actors are channels actors, as gateways are, and are spawned before the gateways. */

#define NODES 2u

static struct {
    domus_testkit_cluster *sim;
    uint32_t numbers[NODES];
    domus_cluster *clusters[NODES];
    domus_address members[NODES];
    uint32_t words[NODES]; /* number of words that the member on each node has received */
} world;

typedef struct member_early {
    uint32_t node;
    domus_group group;
} member_early;

static const domus_type publish_type = {.name = "early publish"};

static int on_word_count_it(domus_stack *stack, void *self, const void *payload)
{
    world.words[((const member_early *)self)->node]++;
    return 0;
}

static int on_order_publish_word(domus_stack *stack, void *self, const void *payload)
{
    const domt_word what = {.number = 1};

    return domus_publish(stack, ((const member_early *)self)->group, &domt_notice_type, &what);
}

static int on_mount_open_and_join_group_early(domus_stack *stack, void *self_)
{
    member_early *self = self_;
    int error = domus_cluster_group_open(stack, world.clusters[self->node], "news", &self->group);

    return error != 0 ? error : domus_group_join(stack, self->group);
}

static const domus_behaviour member_behaviour = {
    .name = "member",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(member_early),
    .on_mount = on_mount_open_and_join_group_early,
    .on = (const domus_on[]){{&domt_notice_type, on_word_count_it, 0},
                             {&publish_type, on_order_publish_word, 0},
                             {NULL, NULL, 0}},
};

static domus_system *system_of_node(uint32_t node)
{
    return domus_testkit_system(domus_testkit_cluster_kit(world.sim, world.numbers[node]));
}

static void open_node_with_member(uint32_t node)
{
    const member_early state = {.node = node};
    domus_config config;
    const domus_testkit_node_options chosen = {.config = &config};
    char error[200] = "";

    domus_config_init(&config);
    config.system.threads = 1;
    ck_assert_int_eq(domus_testkit_cluster_add_node(world.sim, &chosen, &world.numbers[node]), 0);
    const domus_cluster_options options = {
        .name = "sim",
        .node = node == 0 ? "a" : "b",
        .heartbeat_ns = 100 * DOMT_MS,
        .down_after_ns = 600 * DOMT_MS,
        .picklers = domt_word_picklers,
        .open_client = domus_testkit_cluster_open_client,
        .context = domus_testkit_cluster_context(world.sim, world.numbers[node]),
        .seed = node + 1,
    };
    ck_assert_int_eq(
        domus_outside_spawn(system_of_node(node), &member_behaviour, &state, &world.members[node]),
        0);
    ck_assert_msg(domus_cluster_open(system_of_node(node), &options, error, sizeof error,
                                     &world.clusters[node]) == 0,
                  "%s", error);
}

DOMT_TEST(group_that_is_older_than_its_gateways_is_over_the_cluster)
{
    world.sim = domt_cluster_new(7, NULL);
    for (uint32_t node = 0; node < NODES; node++)
        open_node_with_member(node);
    domt_pass_time(world.sim, 2 * DOMT_SECOND);
    ck_assert_int_eq(domus_outside_notice(system_of_node(0), world.members[0], &publish_type, NULL),
                     0);
    domt_pass_time(world.sim, 200 * DOMT_MS);
    ck_assert_uint_eq(world.words[1], 1);
    domus_testkit_cluster_free(world.sim);
    for (uint32_t node = 0; node < NODES; node++)
        domus_cluster_close(world.clusters[node]);
}

DOMT_SUITE(60)
