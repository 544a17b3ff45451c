/* A group that actors open before the gateways of their node begin spans the cluster all the same.
 * The actors are channels actors, as gateways are, and are spawned before the gateways. */
#include "tests/cluster/broker.h"
#include "tests/cluster/words.h"
#include "tests/support/suite.h"

#include <domus/cluster.h>
#include <domus/domus.h>
#include <domus/group.h>

#define NODES 2u

static struct {
    domus_testkit_cluster *sim;
    uint32_t numbers[NODES];
    domus_cluster *clusters[NODES];
    domus_address members[NODES];
    uint32_t words[NODES]; /* number of words that the member on each node has received */
} world;

typedef struct member {
    uint32_t node;
    domus_group group;
} member;

static const domus_type publish_type = {.name = "early publish"};

static int on_word_count_it(domus_stack *stack, void *self, const void *payload)
{
    world.words[((const member *)self)->node]++;
    return 0;
}

static int on_order_publish_word(domus_stack *stack, void *self, const void *payload)
{
    const domt_word what = {.number = 1};

    return domus_publish(stack, ((const member *)self)->group, &domt_notice_type, &what);
}

static int on_mount_open_and_join_group(domus_stack *stack, void *self_)
{
    member *self = self_;
    int error = domus_cluster_group_open(stack, world.clusters[self->node], "news", &self->group);

    return error != 0 ? error : domus_group_join(stack, self->group);
}

static const domus_behaviour member_behaviour = {
    .name = "member",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(member),
    .on_mount = on_mount_open_and_join_group,
    .on = (const domus_on[]){{&domt_notice_type, on_word_count_it, 0},
                             {&publish_type, on_order_publish_word, 0},
                             {NULL, NULL, 0}},
};

static domus_system *system_of(uint32_t node)
{
    return domus_testkit_system(domus_testkit_cluster_kit(world.sim, world.numbers[node]));
}

static void open_node_with_member(uint32_t node)
{
    const member state = {.node = node};
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
        domus_outside_spawn(system_of(node), &member_behaviour, &state, &world.members[node]), 0);
    ck_assert_msg(domus_cluster_open(system_of(node), &options, error, sizeof error,
                                     &world.clusters[node]) == 0,
                  "%s", error);
}

DOMT_TEST(group_that_is_older_than_its_gateways_is_over_the_cluster)
{
    world.sim = domt_cluster_new(7, NULL);
    for (uint32_t node = 0; node < NODES; node++)
        open_node_with_member(node);
    domt_pass_time(world.sim, 2 * DOMT_SECOND);
    ck_assert_int_eq(domus_outside_notice(system_of(0), world.members[0], &publish_type, NULL), 0);
    domt_pass_time(world.sim, 200 * DOMT_MS);
    ck_assert_uint_eq(world.words[1], 1);
    domus_testkit_cluster_free(world.sim);
    for (uint32_t node = 0; node < NODES; node++)
        domus_cluster_close(world.clusters[node]);
}

DOMT_SUITE(30)
