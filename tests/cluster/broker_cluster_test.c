/* Nodes in a simulated cluster find each other and agree on names; and subjects match their
 * patterns. */
#include "base/random.h"
#include "tests/cluster/broker.h"
#include "tests/support/suite.h"

#include <domus/cluster.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Nodes of domus/cluster.h run over the simulated servers: they find each other, notice a silent
 * node, and agree on names in the buckets. */

#define NODES 3u

struct world {
    uint64_t seed;
    domus_testkit_cluster *servers;
    uint32_t nodes[NODES];
    domus_cluster *clusters[NODES];
    uint64_t starts;
};

static void close_cluster_of_node(void *context, uint32_t node)
{
    struct world *world = context;

    domus_cluster_close(world->clusters[node]);
    world->clusters[node] = NULL;
}

static void open_cluster_of_node(struct world *world, uint32_t node)
{
    char error[200] = "", name[16];
    domus_testkit *kit = domus_testkit_cluster_kit(world->servers, node);
    domus_cluster_options options = {
        .name = "test",
        .node = name,
        .open_client = domus_testkit_cluster_open_client,
        .context = domus_testkit_cluster_context(world->servers, node),
        .seed = world->seed * 1000 + ++world->starts,
    };

    snprintf(name, sizeof name, "n%u", node);
    int result = domus_cluster_open(domus_testkit_system(kit), &options, error, sizeof error,
                                    &world->clusters[node]);
    ck_assert_msg(result == 0, "%d: %s", result, error);
}

static void open_world_of_three_nodes(struct world *world, uint64_t seed)
{
    const domus_testkit_cluster_options options = {.servers = 3, .no_echo = true};

    *world = (struct world){.seed = seed, .servers = domt_cluster_new(seed, &options)};
    for (uint32_t i = 0; i < NODES; i++) {
        const domus_testkit_node_options node = {.clock_offset_ns = i * 100 * DOMT_SECOND,
                                                 .clock_drift_ppm = (int32_t)i * 100,
                                                 .on_stopped = close_cluster_of_node,
                                                 .context = world};
        ck_assert_int_eq(domus_testkit_cluster_add_node(world->servers, &node, &world->nodes[i]),
                         0);
        open_cluster_of_node(world, i);
    }
}

/* Returns how many nodes in a state the cluster of one node shows. */
static uint32_t count_nodes_in_state(const struct world *world, uint32_t node,
                                     domus_node_state state)
{
    domus_node_info infos[2 * NODES];
    uint32_t known = domus_cluster_nodes(world->clusters[node], infos, 2 * NODES);
    uint32_t counted = 0;

    for (uint32_t i = 0; i < known && i < 2 * NODES; i++)
        counted += infos[i].state == state;
    return counted;
}

static int run_world_where_nodes_come_and_go(uint64_t seed, void *context)
{
    struct world world;
    uint64_t *digest = context;

    open_world_of_three_nodes(&world, seed);
    domt_pass_time(world.servers, 5 * DOMT_SECOND);
    for (uint32_t i = 0; i < NODES; i++)
        ck_assert_uint_eq(count_nodes_in_state(&world, i, DOMUS_NODE_UP), NODES);
    ck_assert_int_eq(domus_testkit_cluster_crash(world.servers, 1, true), 0);
    ck_assert_ptr_null(world.clusters[1]);
    domt_pass_time(world.servers, 3 * DOMT_SECOND);
    ck_assert_uint_eq(count_nodes_in_state(&world, 0, DOMUS_NODE_UP), NODES - 1);
    ck_assert_int_eq(domus_testkit_cluster_start(world.servers, 1), 0);
    open_cluster_of_node(&world, 1);
    domt_pass_time(world.servers, 5 * DOMT_SECOND);
    for (uint32_t i = 0; i < NODES; i++)
        ck_assert_uint_eq(count_nodes_in_state(&world, i, DOMUS_NODE_UP), NODES);
    *digest = domus_testkit_cluster_digest(world.servers);
    domus_testkit_cluster_free(world.servers);
    return 0;
}

DOMT_TEST(nodes_find_each_other_and_notice_a_crash)
{
    uint64_t digest;

    ck_assert_int_eq(domus_testkit_sweep(1, 10, run_world_where_nodes_come_and_go, &digest, NULL),
                     0);
}

DOMT_TEST(same_seed_is_the_same_run_of_a_cluster)
{
    uint64_t first, second;

    (void)run_world_where_nodes_come_and_go(7, &first);
    (void)run_world_where_nodes_come_and_go(7, &second);
    ck_assert_uint_eq(first, second);
}

/* --- names ------------------------------------------------------------------------------------ */

struct registrant {
    domus_cluster *cluster;
    int *result;
};

static int store_result_of_registration(domus_stack *stack, void *self, const domus_answer *answer)
{
    *((struct registrant *)self)->result = answer->error;
    return 0;
}

static const domus_type begin_type = {.name = "begin"};

static int on_order_register_name(domus_stack *stack, void *self, const void *payload)
{
    return domus_cluster_register(stack, ((struct registrant *)self)->cluster, "one",
                                  2 * DOMT_SECOND, store_result_of_registration);
}

static const domus_on rows[] = {
    {.type = &begin_type, .handle = on_order_register_name},
    {.type = NULL},
};

static const domus_behaviour registrant_behaviour = {
    .name = "registrant",
    .kind = DOMUS_STATE,
    .state_size = sizeof(struct registrant),
    .on = rows,
};

static void register_name_on_node(struct world *world, uint32_t node, int *result)
{
    domus_system *system = domus_testkit_system(domus_testkit_cluster_kit(world->servers, node));
    struct registrant registrant = {world->clusters[node], result};
    domus_address address;

    *result = 1;
    ck_assert_int_eq(domus_outside_spawn(system, &registrant_behaviour, &registrant, &address), 0);
    ck_assert_int_eq(domus_outside_notice(system, address, &begin_type, NULL), 0);
}

DOMT_TEST(names_are_unique_and_end_with_the_lease_of_their_node)
{
    struct world world;
    int results[NODES];
    uint32_t owners = 0, owner = 0;

    open_world_of_three_nodes(&world, 3);
    domt_pass_time(world.servers, 5 * DOMT_SECOND);
    for (uint32_t i = 0; i < NODES; i++)
        register_name_on_node(&world, i, &results[i]);
    domt_pass_time(world.servers, 3 * DOMT_SECOND);
    for (uint32_t i = 0; i < NODES; i++) {
        ck_assert(results[i] == 0 || results[i] == -EEXIST);
        owners += results[i] == 0;
        owner = results[i] == 0 ? i : owner;
    }
    ck_assert_uint_eq(owners, 1);
    uint32_t other = (owner + 1) % NODES;
    ck_assert_int_eq(domus_testkit_cluster_crash(world.servers, owner, true), 0);
    register_name_on_node(&world, other, &results[other]);
    domt_pass_time(world.servers, DOMT_SECOND);
    /* the dead node's name is still taken, because its lease has not run out */
    ck_assert_int_eq(results[other], -EEXIST);
    domt_pass_time(world.servers, 9 * DOMT_SECOND);
    register_name_on_node(&world, other, &results[other]);
    domt_pass_time(world.servers, 3 * DOMT_SECOND);
    ck_assert_int_eq(results[other], 0);
    domus_testkit_cluster_free(world.servers);
}

/* --- broker subjects -------------------------------------------------------------------------- */

/* A subject matches a pattern if and only if a model says so that tries all ways to cover the
 * subject's tokens. */

#define TOKENS_MAX 5u

typedef struct tokens {
    uint32_t count;
    char text[TOKENS_MAX][4];
} tokens;

/* The model: returns whether the rest of the pattern covers the rest of the subject's tokens. */
static bool does_pattern_match(const tokens *pattern, uint32_t p, const tokens *subject, uint32_t s)
{
    if (p == pattern->count)
        return s == subject->count;
    if (s == subject->count)
        return false;
    if (strcmp(pattern->text[p], ">") == 0 && p + 1 == pattern->count)
        return true;
    if (strcmp(pattern->text[p], "*") != 0 && strcmp(pattern->text[p], subject->text[s]) != 0)
        return false;
    return does_pattern_match(pattern, p + 1, subject, s + 1);
}

static tokens draw_tokens(domi_random *random, const char *const *words, uint32_t count)
{
    tokens drawn = {.count = 1 + (uint32_t)domi_random_below(random, TOKENS_MAX)};

    for (uint32_t i = 0; i < drawn.count; i++)
        snprintf(drawn.text[i], sizeof drawn.text[i], "%s",
                 words[domi_random_below(random, count)]);
    return drawn;
}

static void join_tokens(const tokens *from, char text[64])
{
    size_t used = 0;

    for (uint32_t i = 0; i < from->count; i++)
        used += (size_t)snprintf(text + used, 64 - used, "%s%s", i != 0 ? "." : "", from->text[i]);
}

DOMT_TEST(patterns_of_subjects_match_as_the_model_says)
{
    static const char *const words[] = {"a", "b", "ab", "*", "*", ">"};
    char pattern_text[64], subject_text[64];
    uint32_t matches = 0;
    domi_random random;

    domi_random_init(&random, 1);
    for (uint32_t i = 0; i < 200000; i++) {
        tokens pattern = draw_tokens(&random, words, 6);
        tokens subject = draw_tokens(&random, words, 3);
        for (uint32_t k = 0; k + 1 < pattern.count; k++) {
            /* ">" is allowed as the last token of a pattern only */
            if (strcmp(pattern.text[k], ">") == 0)
                snprintf(pattern.text[k], sizeof pattern.text[k], "a");
        }
        join_tokens(&pattern, pattern_text);
        join_tokens(&subject, subject_text);
        bool wanted = does_pattern_match(&pattern, 0, &subject, 0);
        bool got = domus_testkit_cluster_matches(pattern_text, subject_text);
        ck_assert_msg(got == wanted, "%s and %s: %d", pattern_text, subject_text, got);
        matches += got;
    }
    ck_assert_uint_ge(matches, 15000);
}

DOMT_TEST(special_patterns_of_subjects_match_as_listed)
{
    static const struct {
        const char *pattern;
        const char *subject;
        bool matches;
    } cases[] = {
        {">", "a", true},
        {">", "a.b.c", true},
        {"a.>", "a", false},
        {"a.>", "a.b", true},
        {"*", "a", true},
        {"*", "a.b", false},
        {"a.*.c", "a.b.c", true},
        {"a.*.c", "a.c", false},
        {"a", "ab", false},
        {"ab", "a", false},
        {"a.b", "a.b", true},
        {"a*", "ab", false},
        {"$KV.x.>", "$KV.x.k", true},
        {"a.>", "", false},
        {"a.b", "a", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(domus_testkit_cluster_matches(cases[i].pattern, cases[i].subject) ==
                          cases[i].matches,
                      "%s and %s", cases[i].pattern, cases[i].subject);
}

DOMT_SUITE(60)
