/* Groups over clusters of three nodes in a simulated network, with the faults that a seed draws:
 * publications of one publisher come in order and at most once, every lost one is reported, and
 * after all faults are healed every member receives every publication again.
 *
 * On each node a publisher publishes numbers to two groups: `steady`, of which two actors of each
 * node are always members, and `loose`, which one actor of each node joins and leaves. */
#include "tests/cluster/nodes.h"
#include "tests/support/suite.h"

#include <domus/domus.h>
#include <domus/timer.h>

#include <string.h>

#define MS             UINT64_C(1000000)
#define SECOND         UINT64_C(1000000000)
#define NODES          3u
#define GROUPS         2u
#define PUBLISHERS_MAX 32u
#define MEMBERS_MAX    128u
#define STEADY         2u /* number of members of the group `steady` on each node */

static const char *const names[GROUPS] = {"steady", "loose"};

/* One life of a publisher. Every number from `mark` on has to come, or to be reported as lost. */
typedef struct publisher {
    uint32_t node;
    uint64_t sent[GROUPS], mark[GROUPS];
} publisher;

/* One life of a member, and what it has received. */
typedef struct member {
    uint32_t node, group;
    bool is_gone, is_in;
    uint64_t next[PUBLISHERS_MAX]; /* for each publisher, the least number that may come next */
    /* for each publisher, how many numbers have come since its mark */
    uint64_t taken[PUBLISHERS_MAX];
} member;

static struct {
    publisher publishers[PUBLISHERS_MAX];
    uint32_t publishers_used;
    member members[MEMBERS_MAX];
    uint32_t members_used;
    uint64_t disordered;
    bool publishes, is_steady;
} model;

/* --- messages ----------------------------------------------------------------------------------
 */

typedef struct word {
    uint32_t publisher;
    uint64_t number;
} word;

static const domus_type word_type = {.name = "sim word", .size = sizeof(word)};
static const domus_type tick_type = {.name = "tick"};
static const domus_pickle_field fields[] = {
    {DOMUS_PICKLE(1, word, publisher, UINT(0))},
    {DOMUS_PICKLE(2, word, number, UINT(0))},
};
static const domus_pickle_table table = DOMUS_PICKLE_TABLE(word, fields);
static const domus_pickler picklers[] = {
    {.type = &word_type, .version = 1, .table = &table},
    {.type = NULL},
};

/* --- actors ------------------------------------------------------------------------------------
 */

typedef struct actor {
    uint32_t node, number; /* the actor's node, and its index in the model */
    domus_group groups[GROUPS];
} actor;

static int open_groups_of_actor(domus_stack *stack, actor *self)
{
    int error = 0;

    for (uint32_t i = 0; i < GROUPS && error == 0; i++)
        error = domus_cluster_group_open(stack, domt_nodes.clusters[self->node], names[i],
                                         &self->groups[i]);
    return error != 0 ? error : domus_every(stack, 10 * MS, &tick_type, NULL, NULL);
}

static int on_tick_publish_to_groups(domus_stack *stack, void *self_, const void *payload)
{
    actor *self = self_;
    publisher *now = &model.publishers[self->number];

    for (uint32_t i = 0; i < GROUPS && model.publishes; i++) {
        for (uint64_t count = domt_random_below(4); count > 0; count--) {
            const word what = {self->number, now->sent[i]};
            ck_assert_int_eq(domus_publish(stack, self->groups[i], &word_type, &what), 0);
            now->sent[i]++;
        }
    }
    return 0;
}

static int on_mount_open_groups(domus_stack *stack, void *self)
{
    return open_groups_of_actor(stack, self);
}

static const domus_behaviour publishing = {
    .name = "publisher",
    .state_size = sizeof(actor),
    .on_mount = on_mount_open_groups,
    .on = (const domus_on[]){{&tick_type, on_tick_publish_to_groups, 0}, {NULL, NULL, 0}},
};

static int on_word_check_and_record(domus_stack *stack, void *self_, const void *payload)
{
    actor *self = self_;
    const word *came = payload;
    member *now = &model.members[self->number];
    const publisher *from = &model.publishers[came->publisher];

    if (came->number < now->next[came->publisher])
        model.disordered++;
    now->next[came->publisher] = came->number + 1;
    if (came->number >= from->mark[now->group])
        now->taken[came->publisher]++;
    return 0;
}

/* Let a loose member join and leave at random, until `is_steady` is set. */
static int on_tick_join_or_leave(domus_stack *stack, void *self_, const void *payload)
{
    actor *self = self_;
    member *now = &model.members[self->number];

    bool wants = now->group == 0 || model.is_steady || (domt_random_below(20) == 0) != now->is_in;
    if (wants == now->is_in)
        return 0;
    now->is_in = wants;
    return wants ? domus_group_join(stack, self->groups[now->group])
                 : domus_group_leave(stack, self->groups[now->group]);
}

static int on_mount_open_and_join_groups(domus_stack *stack, void *self)
{
    int error = open_groups_of_actor(stack, self);

    return error != 0 ? error : on_tick_join_or_leave(stack, self, NULL);
}

static const domus_behaviour membering = {
    .name = "member",
    .state_size = sizeof(actor),
    .on_mount = on_mount_open_and_join_groups,
    .on = (const domus_on[]){{&tick_type, on_tick_join_or_leave, 0},
                             {&word_type, on_word_check_and_record, 0},
                             {NULL, NULL, 0}},
};

/* --- nodes -------------------------------------------------------------------------------------
 */

static void spawn_member(uint32_t node, uint32_t group)
{
    const actor state = {.node = node, .number = model.members_used};

    ck_assert_uint_lt(model.members_used, MEMBERS_MAX);
    model.members[model.members_used++] = (member){.node = node, .group = group};
    domt_nodes_spawn_actor(node, &membering, &state);
}

static void start_node_with_actors(uint32_t i)
{
    const actor state = {.node = i, .number = model.publishers_used};

    domt_nodes_open_cluster(i, (domus_cluster_options){.picklers = picklers});
    ck_assert_uint_lt(model.publishers_used, PUBLISHERS_MAX);
    model.publishers[model.publishers_used++] = (publisher){.node = i};
    domt_nodes_spawn_actor(i, &publishing, &state);
    for (uint32_t j = 0; j < STEADY; j++)
        spawn_member(i, 0);
    spawn_member(i, 1);
}

static void set_up_model_and_nodes(uint64_t seed)
{
    memset(&model, 0, sizeof model);
    model.publishes = true;
    domt_nodes_begin_three_nodes(seed, 1 + (uint32_t)(seed % 2), false, start_node_with_actors);
}

static void mark_members_gone_and_crash(uint32_t i)
{
    for (uint32_t j = 0; j < model.members_used; j++)
        model.members[j].is_gone |= model.members[j].node == i;
    domt_nodes_crash_and_restart(i);
}

/* --- what has to hold --------------------------------------------------------------------------
 */

/* Set the marks of all publishers: the checks count the publications from now on. */
static void set_marks_of_publishers(void)
{
    for (uint32_t i = 0; i < model.publishers_used; i++)
        memcpy(model.publishers[i].mark, model.publishers[i].sent, sizeof model.publishers[i].mark);
    for (uint32_t i = 0; i < model.members_used; i++)
        memset(model.members[i].taken, 0, sizeof model.members[i].taken);
}

/* Returns how many publications since its mark a publisher has sent and the member has not
 * received. */
static uint64_t count_words_missed_by_member(const member *who, uint32_t index)
{
    const publisher *from = &model.publishers[index];
    uint64_t since = from->sent[who->group] - from->mark[who->group];

    ck_assert_uint_le(who->taken[index], since);
    return since - who->taken[index];
}

/* Returns how many publications the steady members of other nodes have missed. Both members of a
 * node miss the same ones, and no member misses one of its own node. */
static uint64_t count_words_missed_by_all(uint64_t seed)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < model.members_used; i++) {
        const member *who = &model.members[i];
        for (uint32_t j = 0; j < model.publishers_used && who->group == 0; j++) {
            uint64_t now = count_words_missed_by_member(who, j);
            ck_assert_msg(now == 0 || who->node != model.publishers[j].node,
                          "seed %llu: a member has missed one of its own node",
                          (unsigned long long)seed);
            sum += now;
        }
    }
    ck_assert_uint_eq(sum % STEADY, 0);
    return sum / STEADY;
}

static uint64_t count_reported_losses(void)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < NODES; i++) {
        domus_cluster_counts counts = domus_cluster_count(domt_nodes.clusters[i]);
        sum += counts.lost + counts.refused + counts.dropped;
    }
    return sum;
}

/* Check that, some time after all faults are healed, every member receives every publication. */
static void check_everything_arrives(uint64_t seed)
{
    model.is_steady = true;
    domt_nodes_advance_time(4 * SECOND);
    set_marks_of_publishers();
    domt_nodes_advance_time(300 * MS);
    model.publishes = false;
    domt_nodes_advance_time(SECOND);
    uint64_t taken = 0;
    for (uint32_t i = 0; i < model.members_used; i++) {
        const member *who = &model.members[i];
        for (uint32_t j = 0; j < model.publishers_used && !who->is_gone; j++) {
            ck_assert_msg(count_words_missed_by_member(who, j) == 0,
                          "seed %llu: member %u of %s on node %u has missed %llu of publisher %u "
                          "on node %u",
                          (unsigned long long)seed, i, names[who->group], who->node,
                          (unsigned long long)count_words_missed_by_member(who, j), j,
                          model.publishers[j].node);
            taken += who->taken[j];
        }
    }
    ck_assert_uint_gt(taken, 100);
    ck_assert_msg(model.disordered == 0, "seed %llu: %llu in disorder", (unsigned long long)seed,
                  (unsigned long long)model.disordered);
}

static int run_seed_of_groups(uint64_t seed, void *context)
{
    bool crashes = seed % 4 == 3;

    set_up_model_and_nodes(seed);
    domt_nodes_advance_time(SECOND);
    set_marks_of_publishers();
    uint64_t before = count_reported_losses();
    for (uint32_t round = 0; round < 3; round++) {
        domt_nodes_cause_random_fault();
        domt_nodes_advance_time(domt_random_below(1500 * MS));
        if (domt_random_below(2) == 0)
            domt_nodes_heal_faults();
        if (crashes) {
            domt_nodes_heal_faults();
            mark_members_gone_and_crash((uint32_t)domt_random_below(NODES));
        }
        domt_nodes_advance_time(domt_random_below(SECOND));
    }
    domt_nodes_heal_faults();
    if (!crashes) {
        model.publishes = false;
        domt_nodes_advance_time(4 * SECOND);
        uint64_t silent = count_words_missed_by_all(seed), told = count_reported_losses() - before;
        ck_assert_msg(silent <= told, "seed %llu: %llu have not come, %llu were told as lost",
                      (unsigned long long)seed, (unsigned long long)silent,
                      (unsigned long long)told);
        model.publishes = true;
    }
    check_everything_arrives(seed);
    domt_nodes_free_all();
    return 0;
}

DOMT_TEST(without_faults_each_member_gets_each_publication)
{
    set_up_model_and_nodes(1);
    check_everything_arrives(1);
    for (uint32_t i = 0; i < NODES; i++) {
        domus_cluster_counts counts = domus_cluster_count(domt_nodes.clusters[i]);
        ck_assert_uint_eq(counts.lost + counts.refused + counts.dropped, 0);
    }
    domt_nodes_free_all();
}

DOMT_TEST(faults_lose_no_publication_in_silence_and_keep_the_order)
{
    uint64_t failed;

    ck_assert_int_eq(domus_testkit_sweep(1, domt_tenfold_if_tests_are_long(8), run_seed_of_groups,
                                         NULL, &failed),
                     0);
}

DOMT_SUITE(240)
