/* Clusters of three nodes in a simulated network, with the faults that a seed draws: no message is
 * doubled, the order is kept, every lost message is reported, and each ask ends.
 *
 * On each node a talker has a worker on each other node, which it spawns there, and spawns again
 * when the worker is gone. The talker sends its workers numbered notices, and numbered asks, some
 * with a time-out. The model knows which messages were sent, received and reported as lost. */
#include "tests/cluster/nodes.h"
#include "tests/cluster/words.h"
#include "tests/support/suite.h"

#include <domus/domus.h>
#include <domus/timer.h>

#include <stdio.h>
#include <string.h>

#define MS        UINT64_C(1000000)
#define SECOND    UINT64_C(1000000000)
#define NODES     3u
#define ASKS_MAX  60000u
#define PAIRS_MAX 4000u
#define PATIENCE                                                                                   \
    (4 * SECOND) /* time in which an ask without a time-out ends after all faults are healed */

/* The notices from one talker to one worker. */
typedef struct pair {
    uint64_t sent;  /* number of notices that domus_notice() has accepted */
    uint64_t taken; /* number of notices that the worker has received */
    uint64_t next;  /* least number that the worker's next notice may have */
} pair;

static struct {
    domus_cluster_counts gone; /* sum of the counts of nodes that have crashed */
    pair pairs[PAIRS_MAX];
    uint32_t pairs_used;
    domt_asking asks[ASKS_MAX];
    uint32_t asks_used;
    uint64_t doubled, disordered, twice;
    bool talks;
} model;

/* --- workers -----------------------------------------------------------------------------------
 */

static int on_notice_check_order(domus_stack *stack, void *self, const void *payload)
{
    const domt_word *came = payload;
    pair *of = &model.pairs[came->pair];

    if (came->number < of->next)
        model.disordered++;
    of->next = came->number + 1;
    of->taken++;
    return 0;
}

static int on_ask_record_and_reply(domus_stack *stack, void *self, const void *payload)
{
    const domt_word *came = payload;

    if (model.asks[came->number].handled++ != 0)
        model.doubled++;
    return domus_reply(stack, &domt_answer_type, came);
}

static const domus_behaviour worker = {
    .name = "worker",
    .on = (const domus_on[]){{&domt_notice_type, on_notice_check_order, 0},
                             {&domt_ask_type, on_ask_record_and_reply, 0},
                             {NULL, NULL, 0}},
};
static const domus_cluster_export exports[] = {{.name = "worker", .behaviour = &worker},
                                               {.name = NULL}};

/* --- talkers -----------------------------------------------------------------------------------
 */

typedef struct friend
{
    domus_address worker;
    uint32_t pair;
    bool is_there, is_wanted;
}
friend;

typedef struct talker {
    uint32_t node;
    friend friends[NODES];
} talker;

static const domus_type tick_type = {.name = "tick"};

static int store_address_of_worker(domus_stack *stack, void *self_, const domus_answer *answer)
{
    talker *self = self_;
    uint32_t node = *(const uint32_t *)domus_frame(stack);
    friend *of = &self->friends[node];

    of->is_wanted = false;
    if (answer->error != 0 || model.pairs_used == PAIRS_MAX)
        return 0;
    of->worker = ((const domus_cluster_spawned *)answer->payload)->address;
    of->pair = model.pairs_used++;
    of->is_there = domus_watch_actor(stack, of->worker, NULL) == 0;
    return 0;
}

static const domus_type want_type = {.name = "want", .size = sizeof(uint32_t)};

static int on_order_spawn_worker(domus_stack *stack, void *self_, const void *payload)
{
    talker *self = self_;
    char name[8];
    domus_node node;

    *(uint32_t *)domus_frame(stack) = *(const uint32_t *)payload;
    snprintf(name, sizeof name, "n%u", *(const uint32_t *)payload);
    if (domus_cluster_find_node(domt_nodes.clusters[self->node], name, &node) != 0) {
        self->friends[*(const uint32_t *)payload].is_wanted = false;
        return 0;
    }
    return domus_cluster_spawn(stack, node, "worker", NULL, NULL, SECOND, store_address_of_worker);
}

static int on_answer_record_result(domus_stack *stack, void *self, const domus_answer *answer)
{
    domt_asking *ask = &model.asks[answer->tag];

    if (ask->answered++ != 0)
        model.twice++;
    ask->error = answer->error;
    return 0;
}

/* Send one ask, which is a conversation of its own. */
static const domus_type ask_one_type = {.name = "ask one", .size = sizeof(domt_word)};

static int on_order_send_ask(domus_stack *stack, void *self_, const void *payload)
{
    talker *self = self_;
    const domt_word *what = payload;
    friend *of = &self->friends[what->pair];
    const domt_word question = {of->pair, what->number};

    int error = domus_ask_add(stack, of->worker, &domt_ask_type, &question,
                              what->number % 3 == 0 ? 300 * MS : 0, what->number);
    return error != 0 ? error : domus_wait_all(stack, on_answer_record_result);
}

static void talk_to_worker_of_node(domus_stack *stack, talker *self, uint32_t node)
{
    friend *of = &self->friends[node];

    if (!of->is_there) {
        if (!of->is_wanted)
            of->is_wanted = domus_notice(stack, domus_self(stack), &want_type, &node) == 0;
        return;
    }
    for (uint64_t i = domt_random_below(4); i > 0; i--) {
        pair *to = &model.pairs[of->pair];
        const domt_word what = {of->pair, to->sent};
        if (domus_notice(stack, of->worker, &domt_notice_type, &what) == 0)
            to->sent++;
    }
    if (domt_random_below(2) == 0 && model.asks_used < ASKS_MAX) {
        const domt_word what = {node, model.asks_used};
        if (domus_notice(stack, domus_self(stack), &ask_one_type, &what) == 0)
            model.asks_used++;
    }
}

static int on_tick_talk_to_other_nodes(domus_stack *stack, void *self_, const void *payload)
{
    talker *self = self_;

    for (uint32_t node = 0; node < NODES && model.talks; node++) {
        if (node != self->node)
            talk_to_worker_of_node(stack, self, node);
    }
    return 0;
}

static int on_down_forget_worker(domus_stack *stack, void *self_, const void *payload)
{
    talker *self = self_;
    const domus_down *down = payload;

    for (uint32_t node = 0; node < NODES; node++) {
        if (domus_address_equals(self->friends[node].worker, down->who))
            self->friends[node].is_there = false;
    }
    return 0;
}

static int on_mount_start_ticks(domus_stack *stack, void *self)
{
    return domus_every(stack, 10 * MS, &tick_type, NULL, NULL);
}

static const domus_behaviour talking = {
    .name = "talker",
    .state_size = sizeof(talker),
    .on_mount = on_mount_start_ticks,
    .on = (const domus_on[]){{&tick_type, on_tick_talk_to_other_nodes, 0},
                             {&want_type, on_order_spawn_worker, sizeof(uint32_t)},
                             {&ask_one_type, on_order_send_ask, 0},
                             {&domus_down_type, on_down_forget_worker, 0},
                             {NULL, NULL, 0}},
};

/* --- nodes -------------------------------------------------------------------------------------
 */

static void start_node_with_talker(uint32_t i)
{
    const talker state = {.node = i};

    domt_nodes_open_cluster(
        i, (domus_cluster_options){.picklers = domt_word_picklers, .exports = exports});
    domt_nodes_spawn_actor(i, &talking, &state);
}

static void add_counts_of_cluster(domus_cluster_counts *sum, const domus_cluster *cluster)
{
    domus_cluster_counts counts = domus_cluster_count(cluster);

    sum->lost += counts.lost;
    sum->refused += counts.refused;
    sum->dropped += counts.dropped;
    sum->sent += counts.sent;
    sum->resent += counts.resent;
}

static void set_up_model_and_nodes(uint64_t seed)
{
    memset(&model, 0, sizeof model);
    model.talks = true;
    domt_nodes_begin_three_nodes(seed, 1 + (uint32_t)(seed % 3), true, start_node_with_talker);
}

static void record_counts_and_crash_node(uint32_t i)
{
    add_counts_of_cluster(&model.gone, domt_nodes.clusters[i]);
    domt_nodes_crash_and_restart(i);
}

/* --- what has to hold --------------------------------------------------------------------------
 */

static void check_lost_messages_were_counted(uint64_t seed, bool has_crashed)
{
    domus_cluster_counts sum = model.gone;
    uint64_t sent = 0, taken = 0;

    for (uint32_t i = 0; i < NODES; i++)
        add_counts_of_cluster(&sum, domt_nodes.clusters[i]);
    for (uint32_t i = 0; i < model.pairs_used; i++) {
        sent += model.pairs[i].sent;
        taken += model.pairs[i].taken;
        ck_assert_uint_le(model.pairs[i].taken, model.pairs[i].sent);
    }
    ck_assert_msg(model.disordered == 0 && model.doubled == 0 && model.twice == 0,
                  "seed %llu: %llu in disorder, %llu asks handled twice, %llu answered twice",
                  (unsigned long long)seed, (unsigned long long)model.disordered,
                  (unsigned long long)model.doubled, (unsigned long long)model.twice);
    if (has_crashed)
        return; /* a crashed node cannot report its losses, so they are not compared */
    ck_assert_msg(domt_count_unended_asks(model.asks, model.asks_used) == 0,
                  "seed %llu: %u of %u asks have not ended", (unsigned long long)seed,
                  domt_count_unended_asks(model.asks, model.asks_used), model.asks_used);
    ck_assert_msg(sent - taken <= sum.lost + sum.refused + sum.dropped,
                  "seed %llu: %llu sent, %llu taken, %llu told as lost, %llu refused, %llu dropped",
                  (unsigned long long)seed, (unsigned long long)sent, (unsigned long long)taken,
                  (unsigned long long)sum.lost, (unsigned long long)sum.refused,
                  (unsigned long long)sum.dropped);
}

static int run_seed_of_notices_and_asks(uint64_t seed, void *context)
{
    bool crashes = seed % 4 == 3;

    set_up_model_and_nodes(seed);
    domt_nodes_advance_time(SECOND);
    domt_nodes_live_through_faults(crashes ? record_counts_and_crash_node : NULL);
    model.talks = false;
    domt_nodes_advance_time(PATIENCE);
    check_lost_messages_were_counted(seed, crashes);
    domt_nodes_free_all();
    return 0;
}

DOMT_TEST(without_faults_all_notices_and_asks_arrive)
{
    set_up_model_and_nodes(1);
    domt_nodes_advance_time(3 * SECOND);
    model.talks = false;
    domt_nodes_advance_time(SECOND);
    check_lost_messages_were_counted(1, false);
    uint64_t taken = 0;
    for (uint32_t i = 0; i < model.pairs_used; i++) {
        ck_assert_uint_eq(model.pairs[i].taken, model.pairs[i].sent);
        taken += model.pairs[i].taken;
    }
    ck_assert_uint_ge(taken, 1000);
    for (uint32_t i = 0; i < model.asks_used; i++) {
        ck_assert_int_eq(model.asks[i].error, 0);
        ck_assert_uint_eq(model.asks[i].handled, 1);
    }
    ck_assert_uint_ge(model.asks_used, 300);
    domt_nodes_free_all();
}

DOMT_TEST(faults_lose_no_notice_or_ask_in_silence)
{
    uint64_t failed;

    ck_assert_int_eq(domus_testkit_sweep(1, domt_tenfold_if_tests_are_long(24),
                                         run_seed_of_notices_and_asks, NULL, &failed),
                     0);
}

DOMT_SUITE(240)
