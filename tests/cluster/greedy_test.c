/* A node sends asks and never confirms what it receives: the memory that is kept for it has a
 * bound, also for answers and for messages to grains that are returned. Once a message was
 * returned, those behind it are returned as well, until the node has asked for a fence. */
#include "protocols/cluster/link.h"
#include "tests/cluster/broker.h"
#include "tests/cluster/words.h"
#include "tests/support/suite.h"

#include <domus/cluster.h>
#include <domus/domus.h>
#include <domus/grain.h>

#include <stdio.h>
#include <string.h>

#define GREEDY     77u /* number of the node that the test plays */
#define QUEUED_MAX (64u * 1024u)
#define ANSWER     (8u * 1024u)
#define ASKS       100u

static struct {
    domus_testkit_cluster *sim;
    uint32_t number;
    domus_cluster *cluster;
    domt_member greedy;
    domi_link link;
    domus_remote_name name; /* name of the teller, the actor on node a whom the greedy node asks */
    uint32_t asked, accepted; /* asks that the teller, and notices that grains have received */
} world;

/* --- node a ------------------------------------------------------------------------------------
 */

typedef struct large {
    char text[ANSWER];
} large;

static const domus_type large_type = {.name = "large", .size = sizeof(large)};
static const domus_pickle_field fields[] = {{DOMUS_PICKLE(1, large, text, TEXT(""))}};
static const domus_pickle_table table = DOMUS_PICKLE_TABLE(large, fields);
static const domus_pickle_field word_fields[] = {{DOMUS_PICKLE(1, domt_word, number, UINT(0))}};
static const domus_pickle_table word_table = DOMUS_PICKLE_TABLE(domt_word, word_fields);
static const domus_pickler picklers[] = {
    {.type = &large_type, .version = 1, .table = &table},
    {.type = &domt_ask_type, .version = 1, .table = &word_table},
    {.type = NULL}};

static int on_ask_reply_with_large_text(domus_stack *stack, void *self, const void *payload)
{
    static large answer;

    world.asked++;
    memset(answer.text, 'x', sizeof answer.text - 1);
    return domus_reply(stack, &large_type, &answer);
}

static int on_mount_store_remote_name(domus_stack *stack, void *self)
{
    return domus_remote_name_of(stack, domus_self(stack), &world.name);
}

static const domus_behaviour teller = {
    .name = "teller",
    .on_mount = on_mount_store_remote_name,
    .on = (const domus_on[]){{&domt_ask_type, on_ask_reply_with_large_text, 0}, {NULL, NULL, 0}},
};

static int on_notice_count_it(domus_stack *stack, void *self, const void *payload)
{
    world.accepted++;
    return 0;
}

static const domus_behaviour grain = {
    .name = "grain",
    .on = (const domus_on[]){{&domt_ask_type, on_notice_count_it, 0}, {NULL, NULL, 0}},
};
static const domus_grain_kind kinds[] = {{.name = "grain", .behaviour = &grain}, {.name = NULL}};

static domus_system *system_of_node_a(void)
{
    return domus_testkit_system(domus_testkit_cluster_kit(world.sim, world.number));
}

static void open_node_a_with_actor(bool hosts_grains)
{
    char error[200] = "";
    domus_address address;

    ck_assert_int_eq(domus_testkit_cluster_add_node(world.sim, NULL, &world.number), 0);
    const domus_cluster_options options = {
        .name = "sim",
        .node = "a",
        .heartbeat_ns = 100 * DOMT_MS,
        .down_after_ns = 10 * DOMT_SECOND,
        .queued_max = QUEUED_MAX,
        .picklers = picklers,
        .grains = kinds,
        .hosts_no_grains = !hosts_grains,
        .open_client = domus_testkit_cluster_open_client,
        .context = domus_testkit_cluster_context(world.sim, world.number),
        .seed = 1,
    };
    ck_assert_msg(
        domus_cluster_open(system_of_node_a(), &options, error, sizeof error, &world.cluster) == 0,
        "%s", error);
    ck_assert_int_eq(domus_outside_spawn(system_of_node_a(), &teller, NULL, &address), 0);
}

/* --- the node of the test -----------------------------------------------------------------------
 */

/* Send a heartbeat of the greedy node, which says that it lives and hears node a. */
static void send_heartbeat_of_greedy_node(void)
{
    const domi_heartbeat beat = {.id = GREEDY,
                                 .incarnation = 1,
                                 .gateways = 1,
                                 .state = DOMI_BEAT_UP,
                                 .name = "greedy",
                                 .heard_count = 1};
    const uint64_t heard[] = {domus_cluster_here(world.cluster).id};
    unsigned char bytes[DOMI_HEARTBEAT_MAX];

    domt_member_publish_bytes(&world.greedy, "dm.sim.b", bytes,
                              domi_heartbeat_write(&beat, heard, bytes));
}

static void advance_with_heartbeats(uint64_t time_ns)
{
    for (uint64_t passed = 0; passed < time_ns; passed += 100 * DOMT_MS) {
        send_heartbeat_of_greedy_node();
        domt_pass_time(world.sim, 100 * DOMT_MS);
    }
}

static void set_up_node_and_greedy_stranger(bool hosts_grains)
{
    memset(&world, 0, sizeof world);
    world.sim = domt_cluster_new(7, NULL);
    open_node_a_with_actor(hosts_grains);
    domt_member_add_with_client(world.sim, NULL, &world.greedy);
    domi_link_init(&world.link, GREEDY, domus_cluster_here(world.cluster).id, 0);
    /* node a has heard the greedy node then, and has no part of the grains yet */
    advance_with_heartbeats(200 * DOMT_MS);
}

static void free_link_sim_and_cluster(void)
{
    domi_link_fini(&world.link);
    domus_testkit_cluster_free(world.sim);
    domus_cluster_close(world.cluster);
}

/* Let the greedy node send one envelope in a batch of its own. */
static void send_envelope_of_greedy_node(const domi_wire_envelope *envelope)
{
    char subject[64];
    domus_slice batch;

    ck_assert_int_eq(domi_link_add_envelope(&world.link, envelope), 0);
    ck_assert_int_eq(domi_link_get_next_batch(&world.link, 1, false, &batch), 1);
    snprintf(subject, sizeof subject, "dm.sim.t.%016llx.0",
             (unsigned long long)domus_cluster_here(world.cluster).id);
    domt_member_publish_bytes(&world.greedy, subject, domus_slice_data(batch), batch.size);
    domus_slice_free(batch);
}

static uint64_t count_queued_bytes_of_stranger(void)
{
    domus_node_info infos[4];
    uint32_t count = domus_cluster_nodes(world.cluster, infos, 4);

    ck_assert_uint_eq(count, 2);
    return infos[1].queued_bytes;
}

/* Pickle a word; the name of a grain comes before it, if there is one. Returns the bytes. */
static uint32_t pickle_word_behind_name(const char *name, unsigned char bytes[256])
{
    const domt_word what = {0, 1};
    size_t before = strlen(name);
    domus_picklers *all;
    domus_appender to = {0};
    domus_slice message;

    ck_assert_int_eq(domus_picklers_new(picklers, NULL, 0, &all), 0);
    ck_assert_int_eq(domus_pickle(all, NULL, &domt_ask_type, &what, &to, NULL, 0), 0);
    ck_assert_int_eq(domus_append_end(&to, &message), 0);
    domus_picklers_free(all);
    memcpy(bytes, name, before);
    memcpy(bytes + before, domus_slice_data(message), message.size);
    uint32_t size = (uint32_t)before + message.size;
    domus_slice_free(message);
    return size;
}

static void send_notice_to_grain(const unsigned char *bytes, uint32_t size)
{
    send_envelope_of_greedy_node(
        &(domi_wire_envelope){.kind = DOMI_TO_GRAIN_NOTICE,
                              .from = {.node = GREEDY, .number = 5, .lease = 1},
                              .rest = bytes,
                              .rest_size = size});
}

/* --- tests --------------------------------------------------------------------------------------
 */

DOMT_TEST(number_of_unconfirmed_answers_to_a_node_is_bounded)
{
    unsigned char bytes[256];

    set_up_node_and_greedy_stranger(false);
    uint32_t size = pickle_word_behind_name("", bytes);
    for (uint32_t i = 0; i < ASKS; i++)
        send_envelope_of_greedy_node(
            &(domi_wire_envelope){.kind = DOMI_TO_ASK,
                                  .from = {.node = GREEDY, .number = 5, .lease = 1},
                                  .to = world.name,
                                  .id = i,
                                  .rest = bytes,
                                  .rest_size = size});
    advance_with_heartbeats(DOMT_SECOND);
    ck_assert_uint_eq(world.asked, ASKS);
    ck_assert_uint_ge(count_queued_bytes_of_stranger(), QUEUED_MAX);
    ck_assert_uint_le(count_queued_bytes_of_stranger(), 2 * QUEUED_MAX + 2 * ANSWER + 200 * ASKS);
    ck_assert_uint_ge(domus_cluster_count(world.cluster).refused, ASKS / 2);
    free_link_sim_and_cluster();
}

DOMT_TEST(number_of_messages_returned_to_a_node_is_bounded)
{
    unsigned char bytes[256];

    set_up_node_and_greedy_stranger(false);
    uint32_t size = pickle_word_behind_name("\5grain\1k", bytes);
    for (uint32_t i = 0; i < 40 * ASKS; i++)
        send_notice_to_grain(bytes, size);
    advance_with_heartbeats(DOMT_SECOND);
    ck_assert_uint_ge(count_queued_bytes_of_stranger(), QUEUED_MAX);
    ck_assert_uint_le(count_queued_bytes_of_stranger(), QUEUED_MAX + 8192);
    ck_assert_uint_ge(domus_cluster_count(world.cluster).dropped, 20 * ASKS);
    free_link_sim_and_cluster();
}

/* Node a takes the part of the grain between the first notice, which it returns, and the second
 * one. If it accepted the second notice, the two would come in the wrong order. */
DOMT_TEST(messages_behind_a_returned_one_are_returned_until_the_fence)
{
    unsigned char bytes[256];

    set_up_node_and_greedy_stranger(true);
    uint32_t size = pickle_word_behind_name("\5grain\1k", bytes);
    ck_assert_uint_eq(domus_cluster_count_grains(world.cluster).parts, 0);
    send_notice_to_grain(bytes, size);
    advance_with_heartbeats(2 * DOMT_SECOND);
    ck_assert_uint_eq(domus_cluster_count_grains(world.cluster).parts, 256);
    send_notice_to_grain(bytes, size);
    advance_with_heartbeats(DOMT_SECOND);
    ck_assert_uint_eq(world.accepted, 0);
    for (uint64_t part = 0; part < 256; part++)
        send_envelope_of_greedy_node(&(domi_wire_envelope){.kind = DOMI_TO_FENCE, .id = part});
    send_notice_to_grain(bytes, size);
    advance_with_heartbeats(DOMT_SECOND);
    ck_assert_uint_eq(world.accepted, 1);
    free_link_sim_and_cluster();
}

DOMT_SUITE(60)
