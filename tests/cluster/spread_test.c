/* Grains over simulated clusters of three nodes, with the faults that a seed draws: the store never
 * accepts two lives of a grain at the same time, no message is doubled, the order is kept, every
 * lost message is reported, and each ask ends.
 *
 * On each node a talker sends numbered messages to a few grains. The store is a part of the model:
 * it refuses a write whose fence is smaller than the greatest one that it has seen for the key. */
#include "tests/cluster/nodes.h"
#include "tests/cluster/words.h"
#include "tests/support/suite.h"

#include <domus/domus.h>
#include <domus/profile.h>
#include <domus/timer.h>

#include <errno.h>
#include <string.h>

#define MS        UINT64_C(1000000)
#define SECOND    UINT64_C(1000000000)
#define NODES     3u
#define KEYS      12u
#define ASKS_MAX  60000u
#define PAIRS_MAX 4000u
/* time in which all grains answer again after all faults are healed */
#define PATIENCE (5 * SECOND)

/* The messages from one talker to the grain of one key. */
typedef struct pair {
    uint64_t sent; /* number of notices that domus_grain_notice() has accepted */
    uint64_t taken;
    uint64_t next;     /* least number that the next notice may have */
    uint64_t next_ask; /* least number that the next ask may have */
} pair;

/* The entry of a key in the model's store. */
typedef struct stored {
    uint64_t fence; /* greatest fence of all writes to the key */
    uint32_t node;  /* node of the life that wrote to the key last */
} stored;

static struct {
    uint64_t gone; /* number of losses that nodes had reported before they crashed */
    pair pairs[PAIRS_MAX];
    uint32_t pairs_used;
    domt_asking asks[ASKS_MAX];
    uint32_t asks_used;
    stored store[KEYS];
    uint64_t refused; /* number of writes that the store has refused */
    uint64_t doubled, disordered, twice, both;
    uint64_t moves; /* number of writes by a life on another node than the write before */
    bool talks;
    uint32_t mute; /* index of the node whose talker is silent, plus 1; 0: all talkers send */
} model;

/* --- grains ------------------------------------------------------------------------------------
 */

typedef struct account {
    uint32_t node, key;
    uint64_t fence;
} account;

/* The index of a node; the kind's `make` gets a pointer to it, and so knows its node. */
static uint32_t node_ids[NODES] = {0, 1, 2};

static int make_state_of_account(void *context, const char *key, void *self_)
{
    account *self = self_;

    self->node = *(const uint32_t *)context;
    self->key = (uint32_t)(key[1] - 'a');
    return 0;
}

static int on_mount_store_fence(domus_stack *stack, void *self_)
{
    account *self = self_;

    self->fence = domus_grain_fence(stack);
    ck_assert_uint_ne(self->fence, 0);
    return 0;
}

/* Write to the model's store as a grain. Returns whether the store has accepted the write. */
static bool write_to_store_as_account(const account *self)
{
    stored *at = &model.store[self->key];

    if (self->fence < at->fence) {
        model.refused++;
        return false;
    }
    if (self->fence == at->fence && self->node != at->node)
        model.both++;
    model.moves += self->node != at->node;
    *at = (stored){self->fence, self->node};
    return true;
}

static int on_notice_write_and_record(domus_stack *stack, void *self, const void *payload)
{
    const domt_word *came = payload;
    pair *of = &model.pairs[came->pair];

    of->taken++;
    /* a life whose writes are refused still handles messages that came before its stop */
    if (!write_to_store_as_account(self))
        return 0;
    if (came->number < of->next)
        model.disordered++;
    of->next = came->number + 1;
    return 0;
}

static int on_ask_write_and_reply(domus_stack *stack, void *self, const void *payload)
{
    const domt_word *came = payload;
    pair *of = &model.pairs[came->pair];

    if (model.asks[came->number].handled++ != 0)
        model.doubled++;
    if (!write_to_store_as_account(self))
        return -EPERM;
    if (came->number < of->next_ask)
        model.disordered++;
    of->next_ask = came->number + 1;
    return domus_reply(stack, &domt_answer_type, came);
}

static const domus_behaviour account_behaviour = {
    .name = "account",
    .state_size = sizeof(account),
    .on_mount = on_mount_store_fence,
    .on = (const domus_on[]){{&domt_notice_type, on_notice_write_and_record, 0},
                             {&domt_ask_type, on_ask_write_and_reply, 0},
                             {NULL, NULL, 0}},
};

static domus_grain_kind kinds[NODES][2];

static void make_kinds_of_node(uint32_t node)
{
    kinds[node][0] = (domus_grain_kind){
        .name = "account",
        .behaviour = &account_behaviour,
        .make = make_state_of_account,
        .context = &node_ids[node],
        .options = {.placement = DOMUS_SPREAD, .passivate_after_ns = node == 1 ? 150 * MS : 0},
    };
    kinds[node][1] = (domus_grain_kind){.name = NULL};
}

/* --- talkers -----------------------------------------------------------------------------------
 */

typedef struct talker {
    uint32_t node;
    domus_grains accounts;
    uint32_t pairs[KEYS];
} talker;

static const domus_type tick_type = {.name = "tick"};
static const domus_type ask_one_type = {.name = "ask one", .size = sizeof(domt_word)};

static void write_name_of_key(uint32_t key, char name[3])
{
    name[0] = 'k';
    name[1] = (char)('a' + key);
    name[2] = '\0';
}

static int on_answer_record_result(domus_stack *stack, void *self, const domus_answer *answer)
{
    domt_asking *ask = &model.asks[answer->tag];

    if (ask->answered++ != 0)
        model.twice++;
    ask->error = answer->error;
    return 0;
}

static int on_order_send_ask(domus_stack *stack, void *self_, const void *payload)
{
    talker *self = self_;
    const domt_word *what = payload;
    const domt_word question = {self->pairs[what->pair], what->number};
    char key[3];

    write_name_of_key(what->pair, key);
    int error = domus_grain_ask_add(stack, self->accounts, key, &domt_ask_type, &question,
                                    what->number % 3 == 0 ? 300 * MS : 0, what->number);
    return error != 0 ? error : domus_wait_all(stack, on_answer_record_result);
}

static void send_messages_to_key(domus_stack *stack, talker *self, uint32_t key)
{
    pair *to = &model.pairs[self->pairs[key]];
    char name[3];

    write_name_of_key(key, name);
    for (uint64_t i = domt_random_below(4); i > 0; i--) {
        const domt_word what = {self->pairs[key], to->sent};
        if (domus_grain_notice(stack, self->accounts, name, &domt_notice_type, &what) == 0)
            to->sent++;
    }
    if (domt_random_below(2) == 0 && model.asks_used < ASKS_MAX) {
        const domt_word what = {key, model.asks_used};
        if (domus_notice(stack, domus_self(stack), &ask_one_type, &what) == 0)
            model.asks_used++;
    }
}

static int on_tick_talk_to_random_keys(domus_stack *stack, void *self_, const void *payload)
{
    talker *self = self_;

    if (model.talks && model.mute != self->node + 1) {
        send_messages_to_key(stack, self, (uint32_t)domt_random_below(KEYS));
        send_messages_to_key(stack, self, (uint32_t)domt_random_below(KEYS));
    }
    return 0;
}

static int on_mount_open_kind_and_start_ticks(domus_stack *stack, void *self_)
{
    talker *self = self_;

    for (uint32_t i = 0; i < KEYS; i++) {
        ck_assert_uint_lt(model.pairs_used, PAIRS_MAX);
        self->pairs[i] = model.pairs_used++;
    }
    int error = domus_grain_open(stack, &kinds[self->node][0], &self->accounts);
    return error != 0 ? error : domus_every(stack, 10 * MS, &tick_type, NULL, NULL);
}

static const domus_behaviour talking = {
    .name = "talker",
    .state_size = sizeof(talker),
    .on_mount = on_mount_open_kind_and_start_ticks,
    .on = (const domus_on[]){{&tick_type, on_tick_talk_to_random_keys, 0},
                             {&ask_one_type, on_order_send_ask, 0},
                             {NULL, NULL, 0}},
};

/* --- nodes -------------------------------------------------------------------------------------
 */

static void start_node_with_talker(uint32_t i)
{
    const talker state = {.node = i};

    make_kinds_of_node(i);
    domt_nodes_open_cluster(
        i, (domus_cluster_options){.picklers = domt_word_picklers, .grains = kinds[i]});
    domt_nodes_spawn_actor(i, &talking, &state);
}

/* Returns the number of messages that a node has reported as lost, refused or dropped. */
static uint64_t count_losses_reported_by_node(uint32_t i)
{
    domus_cluster_counts counts = domus_cluster_count(domt_nodes.clusters[i]);
    uint64_t told = counts.lost + counts.refused + counts.dropped;
    domus_profile profile;

    for (uint32_t thread = 0;
         domus_system_profile(domt_nodes_system_of_node(i), thread, &profile) == 0; thread++)
        told += profile.dead_letters;
    return told;
}

static void set_up_model_and_nodes(uint64_t seed)
{
    memset(&model, 0, sizeof model);
    model.talks = true;
    domt_nodes_begin_three_nodes(seed, 1 + (uint32_t)(seed % 3), true, start_node_with_talker);
}

/* Let a node leave in order, or not, and then crash. */
static void crash_and_restart_node(uint32_t i)
{
    if (domt_random_below(2) == 0) {
        domus_cluster_leave(domt_nodes.clusters[i]);
        domt_nodes_advance_time(2 * SECOND);
    }
    model.gone += count_losses_reported_by_node(i);
    domt_nodes_crash_and_restart(i);
}

/* --- what has to hold --------------------------------------------------------------------------
 */

static void check_lost_messages_were_counted(uint64_t seed, bool has_crashed)
{
    uint64_t sent = 0, taken = 0, told = model.gone;

    for (uint32_t i = 0; i < NODES; i++)
        told += count_losses_reported_by_node(i);
    for (uint32_t i = 0; i < model.pairs_used; i++) {
        sent += model.pairs[i].sent;
        taken += model.pairs[i].taken;
        ck_assert_uint_le(model.pairs[i].taken, model.pairs[i].sent);
    }
    ck_assert_msg(model.disordered == 0 && model.doubled == 0 && model.twice == 0 &&
                      model.both == 0,
                  "seed %llu: %llu in disorder, %llu asks handled twice, %llu answered twice, "
                  "%llu writes by two lives with one fence",
                  (unsigned long long)seed, (unsigned long long)model.disordered,
                  (unsigned long long)model.doubled, (unsigned long long)model.twice,
                  (unsigned long long)model.both);
    if (has_crashed)
        return; /* a crashed node cannot report its losses, so they are not compared */
    ck_assert_msg(domt_count_unended_asks(model.asks, model.asks_used) == 0,
                  "seed %llu: %u of %u asks have not ended", (unsigned long long)seed,
                  domt_count_unended_asks(model.asks, model.asks_used), model.asks_used);
    ck_assert_msg(sent - taken <= told, "seed %llu: %llu sent, %llu taken, %llu told as lost",
                  (unsigned long long)seed, (unsigned long long)sent, (unsigned long long)taken,
                  (unsigned long long)told);
}

/* Let the talkers send for a while, and check that every ask is answered. Returns the number of
 * asks. */
static uint32_t count_answers_of_new_asks(void)
{
    uint32_t first = model.asks_used, answered = 0;

    model.talks = true;
    domt_nodes_advance_time(200 * MS);
    model.talks = false;
    domt_nodes_advance_time(SECOND);
    for (uint32_t i = first; i < model.asks_used; i++)
        answered += model.asks[i].answered != 0 && model.asks[i].error == 0;
    ck_assert_msg(answered == model.asks_used - first, "%u of %u asks answered", answered,
                  model.asks_used - first);
    return answered;
}

static int run_seed_of_grains(uint64_t seed, void *context)
{
    bool crashes = seed % 4 == 3;

    set_up_model_and_nodes(seed);
    domt_nodes_advance_time(SECOND);
    domt_nodes_live_through_faults(crashes ? crash_and_restart_node : NULL);
    model.talks = false;
    domt_nodes_advance_time(PATIENCE);
    check_lost_messages_were_counted(seed, crashes);
    (void)count_answers_of_new_asks();
    domt_nodes_free_all();
    return 0;
}

DOMT_TEST(grains_are_found_from_each_node)
{
    set_up_model_and_nodes(1);
    model.talks = false;
    domt_nodes_advance_time(2 * SECOND);
    uint32_t parts = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        domus_cluster_grain_counts counts = domus_cluster_count_grains(domt_nodes.clusters[i]);
        ck_assert_uint_ge(counts.parts, 40);
        parts += (uint32_t)counts.parts;
    }
    ck_assert_uint_eq(parts, 256);
    for (uint32_t i = 0; i < 10; i++)
        ck_assert_uint_ge(count_answers_of_new_asks(), 1);
    check_lost_messages_were_counted(1, false);
    uint64_t sent = 0;
    for (uint32_t i = 0; i < model.pairs_used; i++) {
        ck_assert_uint_eq(model.pairs[i].sent, model.pairs[i].taken);
        sent += model.pairs[i].sent;
    }
    ck_assert_uint_ge(sent, 500);
    ck_assert_uint_eq(model.refused, 0);
    domt_nodes_free_all();
}

DOMT_TEST(a_node_that_leaves_hands_its_grains_over)
{
    set_up_model_and_nodes(4);
    model.talks = false;
    domt_nodes_advance_time(2 * SECOND);
    model.talks = true;
    domt_nodes_advance_time(SECOND / 2);
    model.mute = 2;
    domus_cluster_leave(domt_nodes.clusters[1]);
    domt_nodes_advance_time(2 * SECOND);
    ck_assert_uint_eq(domus_cluster_count_grains(domt_nodes.clusters[1]).parts, 0);
    ck_assert_uint_eq(domus_cluster_count_grains(domt_nodes.clusters[0]).parts +
                          domus_cluster_count_grains(domt_nodes.clusters[2]).parts,
                      256);
    model.talks = false;
    domt_nodes_advance_time(SECOND);
    ck_assert_uint_ge(model.moves, 1);
    for (uint32_t i = 0; i < model.asks_used; i++)
        ck_assert_int_eq(model.asks[i].error, 0); /* no ask fails because of the node that leaves */
    check_lost_messages_were_counted(4, true);
    domt_nodes_free_all();
}

DOMT_TEST(faults_make_no_two_lives_of_a_grain)
{
    uint64_t failed;

    ck_assert_int_eq(domus_testkit_sweep(1, domt_tenfold_if_tests_are_long(6), run_seed_of_grains,
                                         NULL, &failed),
                     0);
}

DOMT_SUITE(240)
