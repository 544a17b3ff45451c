/* Clusters of three nodes in a simulated network, with the faults that a seed draws: no message is
 * doubled, the order is kept, none is lost that was not told as lost, and each ask ends.
 *
 * On each node a talker has a worker on each other node, which it spawns there, and again when it
 * hears that it is gone. It sends the worker notices that are numbered, and asks that are numbered,
 * some with a time-out. The model knows what was sent, taken and told. */
#include "tests/cluster/faults.h"
#include "tests/cluster/words.h"
#include "tests/support/suite.h"

#include <domus/cluster.h>
#include <domus/domus.h>
#include <domus/testkit_cluster.h>
#include <domus/timer.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS        UINT64_C(1000000)
#define SECOND    UINT64_C(1000000000)
#define NODES     3u
#define ASKS_MAX  60000u
#define PAIRS_MAX 4000u
#define DOWN_NS   (600 * MS)
#define PATIENCE                                                                                   \
    (4 * SECOND) /* within which an ask without a time-out ends after all is healed                \
                  */

/* One worker of one talker: all that was sent to it. */
typedef struct pair {
    uint64_t sent;  /* notices that domus_notice() has taken */
    uint64_t taken; /* that the worker had */
    uint64_t next;  /* the least number that may come next */
} pair;

static struct {
    domus_testkit_cluster *sim;
    domus_cluster *clusters[NODES];
    uint32_t numbers[NODES];
    uint64_t starts;           /* of nodes */
    domus_cluster_counts gone; /* of nodes that have crashed */
    pair pairs[PAIRS_MAX];
    uint32_t pairs_used;
    domt_asking asks[ASKS_MAX];
    uint32_t asks_used;
    uint64_t doubled, disordered, twice;
    uint64_t chance;
    bool talks;
} model;

static uint64_t draw(uint64_t below)
{
    return domt_draw(&model.chance, below);
}

/* --- workers -----------------------------------------------------------------------------------
 */

static int take_notice(domus_stack *stack, void *self, const void *payload)
{
    const domt_word *came = payload;
    pair *of = &model.pairs[came->pair];

    if (came->number < of->next)
        model.disordered++;
    of->next = came->number + 1;
    of->taken++;
    return 0;
}

static int take_ask(domus_stack *stack, void *self, const void *payload)
{
    const domt_word *came = payload;

    if (model.asks[came->number].handled++ != 0)
        model.doubled++;
    return domus_reply(stack, &domt_answer_type, came);
}

static const domus_behaviour worker = {
    .name = "worker",
    .on = (const domus_on[]){{&domt_notice_type, take_notice, 0},
                             {&domt_ask_type, take_ask, 0},
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

static int hear_worker(domus_stack *stack, void *self_, const domus_answer *answer)
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

static int want(domus_stack *stack, void *self_, const void *payload)
{
    talker *self = self_;
    char name[8];
    domus_node node;

    *(uint32_t *)domus_frame(stack) = *(const uint32_t *)payload;
    snprintf(name, sizeof name, "n%u", *(const uint32_t *)payload);
    if (domus_cluster_find_node(model.clusters[self->node], name, &node) != 0) {
        self->friends[*(const uint32_t *)payload].is_wanted = false;
        return 0;
    }
    return domus_cluster_spawn(stack, node, "worker", NULL, NULL, SECOND, hear_worker);
}

static int hear_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    domt_asking *ask = &model.asks[answer->tag];

    if (ask->answered++ != 0)
        model.twice++;
    ask->error = answer->error;
    return 0;
}

/* Ask once, in a conversation of its own. */
static const domus_type ask_one_type = {.name = "ask one", .size = sizeof(domt_word)};

static int ask_one(domus_stack *stack, void *self_, const void *payload)
{
    talker *self = self_;
    const domt_word *what = payload;
    friend *of = &self->friends[what->pair];
    const domt_word question = {of->pair, what->number};

    int error = domus_ask_add(stack, of->worker, &domt_ask_type, &question,
                              what->number % 3 == 0 ? 300 * MS : 0, what->number);
    return error != 0 ? error : domus_wait_all(stack, hear_answer);
}

static void talk_to(domus_stack *stack, talker *self, uint32_t node)
{
    friend *of = &self->friends[node];

    if (!of->is_there) {
        if (!of->is_wanted)
            of->is_wanted = domus_notice(stack, domus_self(stack), &want_type, &node) == 0;
        return;
    }
    for (uint64_t i = draw(4); i > 0; i--) {
        pair *to = &model.pairs[of->pair];
        const domt_word what = {of->pair, to->sent};
        if (domus_notice(stack, of->worker, &domt_notice_type, &what) == 0)
            to->sent++;
    }
    if (draw(2) == 0 && model.asks_used < ASKS_MAX) {
        const domt_word what = {node, model.asks_used};
        if (domus_notice(stack, domus_self(stack), &ask_one_type, &what) == 0)
            model.asks_used++;
    }
}

static int tick(domus_stack *stack, void *self_, const void *payload)
{
    talker *self = self_;

    for (uint32_t node = 0; node < NODES && model.talks; node++) {
        if (node != self->node)
            talk_to(stack, self, node);
    }
    return 0;
}

static int hear_down(domus_stack *stack, void *self_, const void *payload)
{
    talker *self = self_;
    const domus_down *down = payload;

    for (uint32_t node = 0; node < NODES; node++) {
        if (domus_address_equals(self->friends[node].worker, down->who))
            self->friends[node].is_there = false;
    }
    return 0;
}

static int on_mount(domus_stack *stack, void *self)
{
    return domus_every(stack, 10 * MS, &tick_type, NULL, NULL);
}

static const domus_behaviour talking = {
    .name = "talker",
    .state_size = sizeof(talker),
    .on_mount = on_mount,
    .on = (const domus_on[]){{&tick_type, tick, 0},
                             {&want_type, want, sizeof(uint32_t)},
                             {&ask_one_type, ask_one, 0},
                             {&domus_down_type, hear_down, 0},
                             {NULL, NULL, 0}},
};

/* --- nodes -------------------------------------------------------------------------------------
 */

static void open_node(uint32_t i)
{
    domus_system *system =
        domus_testkit_system(domus_testkit_cluster_kit(model.sim, model.numbers[i]));
    const talker state = {.node = i};
    char name[8], error[200] = "";
    domus_cluster_options options = {
        .name = "sim",
        .node = name,
        .heartbeat_ns = 100 * MS,
        .down_after_ns = DOWN_NS,
        .picklers = domt_word_picklers,
        .exports = exports,
        .open_client = domus_testkit_cluster_open_client,
        .context = domus_testkit_cluster_context(model.sim, model.numbers[i]),
        .seed = ++model.starts,
    };

    snprintf(name, sizeof name, "n%u", i);
    ck_assert_msg(domus_cluster_open(system, &options, error, sizeof error, &model.clusters[i]) ==
                      0,
                  "%s", error);
    domus_address address;
    ck_assert_int_eq(domus_outside_spawn(system, &talking, &state, &address), 0);
}

static void add_counts(domus_cluster_counts *sum, const domus_cluster *cluster)
{
    domus_cluster_counts counts = domus_cluster_count(cluster);

    sum->lost += counts.lost;
    sum->refused += counts.refused;
    sum->dropped += counts.dropped;
    sum->sent += counts.sent;
    sum->resent += counts.resent;
}

static void begin(uint64_t seed)
{
    domus_testkit_cluster_options options = {.servers = 1 + (uint32_t)(seed % 3), .untraced = true};

    memset(&model, 0, sizeof model);
    model.chance = seed * 7919;
    model.talks = true;
    ck_assert_int_eq(domus_testkit_cluster_new(seed, &options, &model.sim), 0);
    for (uint32_t i = 0; i < NODES; i++) {
        domus_config config;
        domus_config_init(&config);
        config.system.threads = 1 + (uint32_t)draw(3);
        domus_testkit_node_options node = {.config = &config,
                                           .clock_offset_ns = draw(100 * SECOND),
                                           .clock_drift_ppm = (int32_t)draw(400) - 200};
        ck_assert_int_eq(domus_testkit_cluster_add_node(model.sim, &node, &model.numbers[i]), 0);
        open_node(i);
    }
}

static void end(void)
{
    domus_testkit_cluster_free(model.sim);
    for (uint32_t i = 0; i < NODES; i++)
        domus_cluster_close(model.clusters[i]);
}

static void advance(uint64_t by_ns)
{
    ck_assert_msg(domus_testkit_cluster_advance(model.sim, by_ns) == 0, "%s",
                  domus_testkit_cluster_error(model.sim));
}

/* --- faults ------------------------------------------------------------------------------------
 */

static void heal_all(void)
{
    domt_heal_all(model.sim, model.numbers, NODES, 3);
}

static void fault(uint64_t seed)
{
    domt_fault(model.sim, &model.chance, model.numbers, NODES, 1 + (uint32_t)(seed % 3));
}

static void crash(uint32_t i)
{
    add_counts(&model.gone, model.clusters[i]);
    if (domus_testkit_cluster_crash(model.sim, model.numbers[i], draw(2) == 0) != 0)
        return;
    domus_cluster_close(model.clusters[i]);
    model.clusters[i] = NULL;
    advance(draw(2 * SECOND));
    ck_assert_int_eq(domus_testkit_cluster_start(model.sim, model.numbers[i]), 0);
    open_node(i);
}

/* --- what has to hold --------------------------------------------------------------------------
 */

static void check_all(uint64_t seed, bool has_crashed)
{
    domus_cluster_counts sum = model.gone;
    uint64_t sent = 0, taken = 0;

    for (uint32_t i = 0; i < NODES; i++)
        add_counts(&sum, model.clusters[i]);
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
        return; /* what a node had when it crashed is told by nobody */
    ck_assert_msg(domt_count_open(model.asks, model.asks_used) == 0,
                  "seed %llu: %u of %u asks have not ended", (unsigned long long)seed,
                  domt_count_open(model.asks, model.asks_used), model.asks_used);
    ck_assert_msg(sent - taken <= sum.lost + sum.refused + sum.dropped,
                  "seed %llu: %llu sent, %llu taken, %llu told as lost, %llu refused, %llu dropped",
                  (unsigned long long)seed, (unsigned long long)sent, (unsigned long long)taken,
                  (unsigned long long)sum.lost, (unsigned long long)sum.refused,
                  (unsigned long long)sum.dropped);
}

static int run_seed(uint64_t seed, void *context)
{
    bool crashes = seed % 4 == 3;

    begin(seed);
    advance(SECOND);
    for (uint32_t round = 0; round < 4; round++) {
        for (uint64_t i = 1 + draw(2); i > 0; i--)
            fault(seed);
        advance(draw(1500 * MS));
        if (draw(2) == 0)
            heal_all();
        if (crashes && draw(2) == 0) {
            heal_all();
            crash((uint32_t)draw(NODES));
        }
        advance(draw(SECOND));
    }
    model.talks = false;
    heal_all();
    advance(PATIENCE);
    check_all(seed, crashes);
    end();
    return 0;
}

DOMT_TEST(without_faults_everything_comes)
{
    begin(1);
    advance(3 * SECOND);
    model.talks = false;
    advance(SECOND);
    check_all(1, false);
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
    end();
}

DOMT_TEST(faults_lose_nothing_in_silence)
{
    uint64_t failed;

    ck_assert_int_eq(domus_testkit_sweep(1, domt_more_if_long(24), run_seed, NULL, &failed), 0);
}

DOMT_SUITE(240)
