/* A node may send addresses of actors on nodes that nobody hears. Such an actor is down at first,
 * and stale when its node was not heard for long; and however many such nodes a node invents, real
 * nodes are still recognized. */
#include "protocols/cluster/link.h"
#include "tests/cluster/broker.h"
#include "tests/support/suite.h"

#include <domus/cluster.h>
#include <domus/domus.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GOSSIP 77u   /* number of the node that the test plays; it mentions invented nodes */
#define FIRST  1000u /* number of the first invented node */

static struct {
    domus_testkit_cluster *sim;
    uint32_t numbers[2];
    domus_cluster *clusters[2];
    domt_member gossip;
    domi_link link;
    domus_slice hello;
    /* the user on the real node, and the sender of the last hello that came */
    domus_address user, stranger;
    domus_remote_name name; /* name of the user, by which the gossiping node sends to it */
    unsigned hellos;
    int result;
} world;

typedef struct word {
    uint64_t value;
} word;

static const domus_type hello_type = {.name = "hearsay hello", .size = sizeof(word)};
static const domus_type order_type = {.name = "hearsay order", .size = sizeof(word)};
static const domus_pickle_field fields[] = {{DOMUS_PICKLE(1, word, value, UINT(0))}};
static const domus_pickle_table table = DOMUS_PICKLE_TABLE(word, fields);
static const domus_pickler picklers[] = {{.type = &hello_type, .version = 1, .table = &table},
                                         {.type = NULL}};

/* --- the user --------------------------------------------------------------------------------- */

static int on_hello_record_sender(domus_stack *stack, void *self, const void *payload)
{
    world.hellos++;
    if (domus_address_is_remote(domus_sender(stack)))
        world.stranger = domus_sender(stack);
    return 0;
}

static int on_answer_store_error(domus_stack *stack, void *self, const domus_answer *answer)
{
    world.result = answer->error;
    return 0;
}

static int on_order_ask_last_sender(domus_stack *stack, void *self, const void *payload)
{
    return domus_ask(stack, world.stranger, &hello_type, payload, on_answer_store_error);
}

static int on_mount_store_remote_name(domus_stack *stack, void *self)
{
    return domus_remote_name_of(stack, domus_self(stack), &world.name);
}

static const domus_behaviour user = {
    .name = "user",
    .on_mount = on_mount_store_remote_name,
    .on = (const domus_on[]){{&hello_type, on_hello_record_sender, 0},
                             {&order_type, on_order_ask_last_sender, 0},
                             {NULL, NULL, 0}},
};

/* --- nodes ------------------------------------------------------------------------------------ */

static domus_system *system_of_node(uint32_t node)
{
    return domus_testkit_system(domus_testkit_cluster_kit(world.sim, world.numbers[node]));
}

static void open_cluster_of_node(uint32_t node)
{
    char error[200] = "";

    ck_assert_int_eq(domus_testkit_cluster_add_node(world.sim, NULL, &world.numbers[node]), 0);
    const domus_cluster_options options = {
        .name = "sim",
        .node = node == 0 ? "a" : "b",
        .heartbeat_ns = 100 * DOMT_MS,
        .down_after_ns = 600 * DOMT_MS,
        .picklers = picklers,
        .open_client = domus_testkit_cluster_open_client,
        .context = domus_testkit_cluster_context(world.sim, world.numbers[node]),
        .seed = 1 + node,
    };
    ck_assert_msg(domus_cluster_open(system_of_node(node), &options, error, sizeof error,
                                     &world.clusters[node]) == 0,
                  "%s", error);
}

static void pickle_hello(void)
{
    const word what = {1};
    domus_picklers *all;
    domus_appender to = {0};

    ck_assert_int_eq(domus_picklers_new(picklers, NULL, 0, &all), 0);
    ck_assert_int_eq(domus_pickle(all, NULL, &hello_type, &what, &to, NULL, 0), 0);
    ck_assert_int_eq(domus_append_end(&to, &world.hello), 0);
    domus_picklers_free(all);
}

/* Send a heartbeat which says that the node of the test lives, and hears node a. */
static void send_heartbeat_of_gossip_node(void)
{
    const domi_heartbeat beat = {.id = GOSSIP,
                                 .incarnation = 1,
                                 .gateways = 1,
                                 .state = DOMI_BEAT_UP,
                                 .name = "gossip",
                                 .heard_count = 1};
    const uint64_t heard[] = {domus_cluster_here(world.clusters[0]).id};
    unsigned char bytes[DOMI_HEARTBEAT_MAX];

    domt_member_publish_bytes(&world.gossip, "dm.sim.b", bytes,
                              domi_heartbeat_write(&beat, heard, bytes));
}

static void advance_with_heartbeats(uint64_t time_ns)
{
    for (uint64_t passed = 0; passed < time_ns; passed += 100 * DOMT_MS) {
        send_heartbeat_of_gossip_node();
        domt_pass_time(world.sim, 100 * DOMT_MS);
    }
}

static void set_up_node_and_gossip(void)
{
    memset(&world, 0, sizeof world);
    world.sim = domt_cluster_new(7, NULL);
    open_cluster_of_node(0);
    ck_assert_int_eq(domus_outside_spawn(system_of_node(0), &user, NULL, &world.user), 0);
    domt_member_add_with_client(world.sim, NULL, &world.gossip);
    domi_link_init(&world.link, GOSSIP, domus_cluster_here(world.clusters[0]).id, 0);
    pickle_hello();
    advance_with_heartbeats(DOMT_SECOND);
}

static void free_link_sim_and_clusters(void)
{
    domi_link_fini(&world.link);
    domus_slice_free(world.hello);
    domus_testkit_cluster_free(world.sim);
    domus_cluster_close(world.clusters[0]);
    domus_cluster_close(world.clusters[1]);
}

/* Send a hello to the user from actors of `count` invented nodes, from node `first` on. */
static void send_hellos_of_made_up_nodes(uint64_t first, uint32_t count)
{
    char subject[64];
    domus_slice batch;

    for (uint64_t node = first; node < first + count; node++) {
        const domi_wire_envelope envelope = {
            .kind = DOMI_TO_NOTICE,
            .from = {.node = node, .number = 5, .lease = 1},
            .to = world.name,
            .rest = (const unsigned char *)domus_slice_data(world.hello),
            .rest_size = world.hello.size,
        };
        ck_assert_int_eq(domi_link_add_envelope(&world.link, &envelope), 0);
    }
    ck_assert_int_eq(domi_link_get_next_batch(&world.link, 1, false, &batch), 1);
    snprintf(subject, sizeof subject, "dm.sim.t.%016llx.0",
             (unsigned long long)domus_cluster_here(world.clusters[0]).id);
    domt_member_publish_bytes(&world.gossip, subject, domus_slice_data(batch), batch.size);
    domus_slice_free(batch);
}

static int error_of_ask_to_last_sender(void)
{
    const word what = {1};

    world.result = 1;
    ck_assert_int_eq(domus_outside_notice(system_of_node(0), world.user, &order_type, &what), 0);
    advance_with_heartbeats(200 * DOMT_MS);
    return world.result;
}

DOMT_TEST(actor_of_a_node_that_nobody_hears_is_stale_in_the_end)
{
    set_up_node_and_gossip();
    send_hellos_of_made_up_nodes(FIRST, 1);
    advance_with_heartbeats(200 * DOMT_MS);
    ck_assert_uint_eq(world.hellos, 1);
    ck_assert(domus_address_is_remote(world.stranger));
    ck_assert_int_eq(error_of_ask_to_last_sender(), -EHOSTDOWN);
    ck_assert_uint_eq(domus_cluster_nodes(world.clusters[0], NULL, 0), 2);
    advance_with_heartbeats(8 * DOMT_SECOND);
    ck_assert_int_eq(error_of_ask_to_last_sender(), -ESTALE);
    /* an invented node may be mentioned again after it was forgotten */
    send_hellos_of_made_up_nodes(FIRST, 1);
    advance_with_heartbeats(200 * DOMT_MS);
    ck_assert_int_eq(error_of_ask_to_last_sender(), -EHOSTDOWN);
    free_link_sim_and_clusters();
}

DOMT_TEST(nodes_that_are_made_up_do_not_keep_out_real_ones)
{
    set_up_node_and_gossip();
    for (uint32_t i = 0; i < 12; i++) {
        send_hellos_of_made_up_nodes(FIRST + 200 * i, 200);
        advance_with_heartbeats(100 * DOMT_MS);
    }
    ck_assert_uint_eq(world.hellos, 2400);
    open_cluster_of_node(1);
    advance_with_heartbeats(2 * DOMT_SECOND);
    domus_node node;
    ck_assert_int_eq(domus_cluster_find_node(world.clusters[0], "b", &node), 0);
    free_link_sim_and_clusters();
}

DOMT_SUITE(60)
