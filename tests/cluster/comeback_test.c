/* Nodes that were away, and links that are given up for want of memory: what was lost is known on
 * both sides. */
#include "house/message/house.h"
#include "protocols/cluster/inside.h"
#include "tests/cluster/holder.h"
#include "tests/cluster/nodes.h"
#include "tests/support/suite.h"

#include <domus/domus.h>
#include <domus/figures.h>
#include <domus/remote.h>
#include <domus/router.h>
#include <domus/timer.h>
#include <errno.h>
#include <string.h>

/* Nodes of a simulated cluster that were away. Asks over one link are not ended by a new session
 * of another link. A node that was suspended for longer than its lease learns that it has lost its
 * names, and lost names can be registered again when the servers are back. A node whose clock was
 * set back may begin anew. The figures of a node that has ended are past. A watch on a remote
 * router is refused, and leaves the router's address valid. */

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

/* Node a has one thread, and node b two, so the gateway of node a has a link to each gateway of
 * node b. */
enum { A, B, NODES };
enum { OF_A, FIRST_OF_B, SECOND_OF_B, USERS };
enum { REGISTER, FIND, SPAWN, ASK, ASK_SLOWLY, MAKE_ROUTER, WATCH_ROUTER, ASK_ROUTER };

static struct {
    domus_address users[USERS];
    int results[USERS]; /* result of each user's last order; 1: the order has not ended */
    uint32_t lost[USERS];
    domus_address found;
    domus_remote_name router; /* name of the router on node b */
    int told;                 /* result of the watch on the router, as the user was told */
} world;

/* --- workers ---------------------------------------------------------------------------------- */

typedef struct word {
    uint64_t value;
} word;

static const domus_type quick_type = {.name = "comeback quick", .size = sizeof(word)};
static const domus_type slow_type = {.name = "comeback slow", .size = sizeof(word)};
static const domus_type answer_type = {.name = "comeback answer", .size = sizeof(word)};
static const domus_pickle_field fields[] = {{DOMUS_PICKLE(1, word, value, UINT(0))}};
static const domus_pickle_table table = DOMUS_PICKLE_TABLE(word, fields);
static const domus_pickler picklers[] = {
    {.type = &quick_type, .version = 1, .table = &table},
    {.type = &slow_type, .version = 1, .table = &table},
    {.type = &answer_type, .version = 1, .table = &table},
    {.type = NULL},
};

static int on_ask_reply_at_once(domus_stack *stack, void *self, const void *payload)
{
    const word what = {1};

    return domus_reply(stack, &answer_type, &what);
}

static int reply_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != 0 ? answer->error : on_ask_reply_at_once(stack, self, NULL);
}

static int on_ask_reply_after_sleep(domus_stack *stack, void *self, const void *payload)
{
    return domus_sleep(stack, 500 * MS, reply_after_sleep);
}

static const domus_behaviour worker = {
    .name = "worker",
    .on = (const domus_on[]){{&quick_type, on_ask_reply_at_once, 0},
                             {&slow_type, on_ask_reply_after_sleep, 0},
                             {NULL, NULL, 0}},
};
static const domus_cluster_export exports[] = {{.name = "worker", .behaviour = &worker},
                                               {.name = NULL}};

/* --- users ------------------------------------------------------------------------------------ */

typedef struct user {
    uint32_t index, node;
    domus_address worker;
} user;

typedef struct order {
    uint32_t verb;
} order;
static const domus_type order_type = {.name = "comeback order", .size = sizeof(order)};

static int store_result_of_verb(domus_stack *stack, void *self_, const domus_answer *answer)
{
    user *self = self_;

    world.results[self->index] = answer->error;
    if (answer->type == &domus_cluster_spawned_type)
        self->worker = ((const domus_cluster_spawned *)answer->payload)->address;
    if (answer->type == &domus_cluster_found_type)
        world.found = ((const domus_cluster_found *)answer->payload)->address;
    return 0;
}

static int spawn_worker_on_other_node(domus_stack *stack, const user *self)
{
    domus_node node;

    ck_assert_int_eq(domus_cluster_find_node(domt_nodes.clusters[self->node],
                                             self->node == A ? "b" : "a", &node),
                     0);
    return domus_cluster_spawn(stack, node, "worker", NULL, NULL, SECOND, store_result_of_verb);
}

static int make_and_name_router(domus_stack *stack)
{
    domus_address router;
    int error = domus_spawn_many(stack, &worker, NULL, 2, NULL, NULL, &router);

    if (error == 0)
        error = domus_remote_name_of(stack, router, &world.router);
    world.router.node = domus_cluster_here(domt_nodes.clusters[B]).id;
    return error;
}

static domus_address address_of_named_router(domus_stack *stack)
{
    domus_address router;

    ck_assert_int_eq(domus_remote_address(stack, &world.router, &router), 0);
    return router;
}

static int on_down_record_reason(domus_stack *stack, void *self, const void *payload)
{
    world.told = ((const domus_down *)payload)->reason;
    return 0;
}

static int on_order_run_verb(domus_stack *stack, void *self_, const void *payload)
{
    user *self = self_;
    domus_cluster *cluster = domt_nodes.clusters[self->node];
    const word what = {0};

    switch (((const order *)payload)->verb) {
    case REGISTER:
        return domus_cluster_register(stack, cluster, "printer", SECOND, store_result_of_verb);
    case FIND:
        return domus_cluster_find(stack, cluster, "printer", SECOND, store_result_of_verb);
    case SPAWN:
        return spawn_worker_on_other_node(stack, self);
    case MAKE_ROUTER:
        return make_and_name_router(stack);
    case WATCH_ROUTER:
        return domus_watch_actor(stack, address_of_named_router(stack), NULL);
    case ASK_ROUTER:
        return domus_ask(stack, address_of_named_router(stack), &quick_type, &what,
                         store_result_of_verb);
    case ASK:
        return domus_ask(stack, self->worker, &quick_type, &what, store_result_of_verb);
    default:
        return domus_ask(stack, self->worker, &slow_type, &what, store_result_of_verb);
    }
}

static int on_lost_count_lost_name(domus_stack *stack, void *self_, const void *payload)
{
    const user *self = self_;

    ck_assert_str_eq(((const domus_cluster_lost *)payload)->name, "printer");
    world.lost[self->index]++;
    return 0;
}

static const domus_behaviour using = {
    .name = "user",
    .state_size = sizeof(user),
    .on = (const domus_on[]){{&order_type, on_order_run_verb, 0},
                             {&domus_cluster_lost_type, on_lost_count_lost_name, 0},
                             {&domus_down_type, on_down_record_reason, 0},
                             {NULL, NULL, 0}},
};

/* --- nodes ------------------------------------------------------------------------------------ */

static void spawn_user_on_thread(uint32_t index, uint32_t node, uint32_t thread)
{
    const user state = {.index = index, .node = node};

    ck_assert_int_eq(domus_outside_spawn_on(domt_nodes_system_of_node(node), thread, &using, &state,
                                            &world.users[index]),
                     0);
}

static void open_cluster_of_node(uint32_t node)
{
    domt_nodes_open_cluster(node, (domus_cluster_options){.node = node == A ? "a" : "b",
                                                          .lease_ns = SECOND,
                                                          .picklers = picklers,
                                                          .exports = exports});
    spawn_user_on_thread(node == A ? OF_A : FIRST_OF_B, node, 0);
    if (node == B)
        spawn_user_on_thread(SECOND_OF_B, node, 1);
}

static void begin_with_nodes_a_and_b(void)
{
    memset(&world, 0, sizeof world);
    domt_nodes_make_simulated_cluster(7, 1);
    /* start times begin at 100, so that a later start can have a smaller one */
    domt_nodes.starts = 100;
    open_cluster_of_node(domt_nodes_add_node(1));
    open_cluster_of_node(domt_nodes_add_node(2));
    domt_nodes_advance_time(3 * SECOND);
}

static void send_order_to_user(uint32_t index, uint32_t verb)
{
    const order what = {verb};

    world.results[index] = 1;
    ck_assert_int_eq(domus_outside_notice(domt_nodes_system_of_node(index == OF_A ? A : B),
                                          world.users[index], &order_type, &what),
                     0);
}

static int result_of_order_to_user(uint32_t index, uint32_t verb)
{
    send_order_to_user(index, verb);
    domt_nodes_advance_time(SECOND);
    return world.results[index];
}

static bool does_node_a_know_node_b(void)
{
    domus_node node;

    return domus_cluster_find_node(domt_nodes.clusters[A], "b", &node) == 0;
}

/* --- links ------------------------------------------------------------------------------------ */

/* Returns the link of a gateway to gateway 0 of the only other node, which has the id `peer`. */
static domi_link *find_first_link_of_gateway(const domus_cluster *cluster, uint32_t index,
                                             uint64_t peer)
{
    const domi_cluster_gateway *gateway = cluster->addresses[index].house->self;

    ck_assert(gateway->peers != NULL && gateway->peers->id == peer);
    return gateway->peers->links[0];
}

/* The gateway of the second user begins a new session, as after a tear, while an ask of the first
 * user is under way. */
DOMT_TEST(ask_over_one_link_outlives_the_new_session_of_another)
{
    begin_with_nodes_a_and_b();
    ck_assert(does_node_a_know_node_b());
    for (uint32_t i = FIRST_OF_B; i <= SECOND_OF_B; i++) {
        ck_assert_int_eq(result_of_order_to_user(i, SPAWN), 0);
        ck_assert_int_eq(result_of_order_to_user(i, ASK), 0);
    }
    ck_assert_int_eq(domus_testkit_cluster_cut(domt_nodes.sim, domt_nodes.numbers[B], DOMUS_EVERY,
                                               DOMUS_BOTH_WAYS, DOMUS_CUT_LOSES),
                     0);
    domt_nodes_advance_time(2 * SECOND);
    ck_assert(!does_node_a_know_node_b());
    ck_assert_int_eq(domus_testkit_cluster_heal(domt_nodes.sim, domt_nodes.numbers[B], DOMUS_EVERY,
                                                DOMUS_BOTH_WAYS),
                     0);
    domt_nodes_advance_time(5 * SECOND);
    ck_assert(does_node_a_know_node_b());
    send_order_to_user(FIRST_OF_B, ASK_SLOWLY);
    domt_nodes_advance_time(100 * MS);
    (void)domi_link_end_session(
        find_first_link_of_gateway(domt_nodes.clusters[B], 1,
                                   domus_cluster_here(domt_nodes.clusters[A]).id),
        true);
    ck_assert_int_eq(result_of_order_to_user(SECOND_OF_B, ASK), 0);
    ck_assert_int_eq(world.results[FIRST_OF_B], 0);
    domt_nodes_free_all();
}

DOMT_TEST(watch_of_a_remote_router_does_not_end_its_address)
{
    begin_with_nodes_a_and_b();
    (void)result_of_order_to_user(FIRST_OF_B, MAKE_ROUTER);
    ck_assert_uint_eq(world.router.home, DOMUS_REMOTE_ROUTER);
    (void)result_of_order_to_user(OF_A, WATCH_ROUTER);
    ck_assert_int_eq(world.told, -EOPNOTSUPP);
    ck_assert_int_eq(result_of_order_to_user(OF_A, ASK_ROUTER), 0);
    domt_nodes_free_all();
}

/* --- names ------------------------------------------------------------------------------------ */

DOMT_TEST(node_that_slept_over_its_lease_has_lost_its_names)
{
    begin_with_nodes_a_and_b();
    ck_assert_int_eq(result_of_order_to_user(OF_A, REGISTER), 0);
    ck_assert_int_eq(domus_testkit_cluster_suspend(domt_nodes.sim, domt_nodes.numbers[A]), 0);
    domt_nodes_advance_time(2500 * MS);
    ck_assert_int_eq(result_of_order_to_user(FIRST_OF_B, REGISTER), 0);
    ck_assert_int_eq(
        domus_testkit_cluster_resume(domt_nodes.sim, domt_nodes.numbers[A], DOMUS_CLOCK_JUMPS), 0);
    domt_nodes_advance_time(3 * SECOND);
    ck_assert_uint_eq(world.lost[OF_A], 1);
    ck_assert_uint_eq(world.lost[FIRST_OF_B], 0);
    ck_assert_int_eq(result_of_order_to_user(OF_A, FIND), 0);
    ck_assert(domus_address_is_remote(world.found));
    ck_assert_int_eq(result_of_order_to_user(OF_A, REGISTER), -EEXIST);
    domt_nodes_free_all();
}

/* When the servers are back, the old owner and other actors can register the name. */
DOMT_TEST(lost_name_can_be_had_again)
{
    static const uint32_t takers[] = {OF_A, FIRST_OF_B};

    for (uint32_t i = 0; i < 2; i++) {
        begin_with_nodes_a_and_b();
        ck_assert_int_eq(result_of_order_to_user(OF_A, REGISTER), 0);
        ck_assert_int_eq(domus_testkit_cluster_stop_server(domt_nodes.sim, 0), 0);
        domt_nodes_advance_time(3 * SECOND);
        ck_assert_uint_eq(world.lost[OF_A], 1);
        ck_assert_int_eq(domus_testkit_cluster_start_server(domt_nodes.sim, 0), 0);
        domt_nodes_advance_time(8 * SECOND);
        ck_assert_int_eq(result_of_order_to_user(takers[i], FIND), -ENOENT);
        ck_assert_int_eq(result_of_order_to_user(takers[i], REGISTER), 0);
        ck_assert_int_eq(result_of_order_to_user(FIRST_OF_B, FIND), 0);
        ck_assert_int_eq(result_of_order_to_user(takers[1 - i], REGISTER), -EEXIST);
        domt_nodes_free_all();
    }
}

/* --- clocks ----------------------------------------------------------------------------------- */

DOMT_TEST(node_whose_clock_was_set_back_begins_anew)
{
    begin_with_nodes_a_and_b();
    ck_assert(does_node_a_know_node_b());
    ck_assert_int_eq(domus_testkit_cluster_crash(domt_nodes.sim, domt_nodes.numbers[B], true), 0);
    domus_cluster_close(domt_nodes.clusters[B]);
    domt_nodes_advance_time(2 * SECOND);
    ck_assert(!does_node_a_know_node_b());
    ck_assert_int_eq(domus_testkit_cluster_start(domt_nodes.sim, domt_nodes.numbers[B]), 0);
    domt_nodes.starts = 50; /* the next start of node b has a smaller time than the one before */
    open_cluster_of_node(B);
    domt_nodes_advance_time(3 * SECOND);
    ck_assert(does_node_a_know_node_b());
    ck_assert_int_eq(result_of_order_to_user(OF_A, SPAWN), 0);
    ck_assert_int_eq(result_of_order_to_user(OF_A, ASK), 0);
    domt_nodes_free_all();
}

/* --- figures ---------------------------------------------------------------------------------- */

/* Returns whether node a's row for node b is marked as past, so that the metrics leave it out. */
static bool is_row_of_b_past(void)
{
    domus_figures_shot shot;

    ck_assert_str_eq(domus_figures_at(domt_nodes_system_of_node(A), 1)->name, "nodes");
    ck_assert_int_eq(domus_figures_read(domt_nodes_system_of_node(A), 1, 0, 4, &shot), 0);
    ck_assert_uint_eq(shot.count, 2);
    uint32_t row = strcmp(domus_figures_cell(&shot, 0, 0)->text, "b") == 0 ? 0 : 1;
    ck_assert_str_eq(domus_figures_cell(&shot, row, 0)->text, "b");
    bool is_past = shot.is_past[row];
    domus_figures_free(&shot);
    return is_past;
}

/* The record of an ended node stays until each gateway has let go of it, which is so short that the
 * test ends the node by hand. */
DOMT_TEST(node_that_has_ended_is_not_in_the_metrics)
{
    begin_with_nodes_a_and_b();
    ck_assert(!is_row_of_b_past());
    domi_node_record *record =
        domi_node_find(domt_nodes.clusters[A], domus_cluster_here(domt_nodes.clusters[B]).id);
    ck_assert_ptr_nonnull(record);
    record->state = DOMUS_NODE_ENDED;
    ck_assert(is_row_of_b_past());
    record->state = DOMUS_NODE_UP;
    domt_nodes_free_all();
}

/* --- torn ------------------------------------------------------------------------------------- */

/* The link of a gateway lacks memory for one envelope. If the other side needs the envelope, the
 * link is given up at once, so that both sides know that messages under way are lost; a link that
 * has only refused a message goes on. The test makes the allocation fail in the link of a real
 * node. */

static domi_link *find_link_of_a_to_stranger(void)
{
    return find_first_link_of_gateway(domt_holder.cluster, 0, DOMT_STRANGER);
}

static void begin_world_with_part_of_stranger(void)
{
    domt_holder_begin_world();
    domt_holder_give_part_to_stranger(0);
    domt_holder_advance_and_send(50 * DOMT_MS);
    domt_holder_order_user(DOMT_NOTICE, 0, 1, 1, 10);
    DOMT_HOLD_HEARD(1);
    ck_assert_uint_eq(find_link_of_a_to_stranger()->next.size, 0);
}

DOMT_TEST(link_that_lost_an_answer_is_given_up)
{
    begin_world_with_part_of_stranger();
    uint64_t session = find_link_of_a_to_stranger()->session;
    domi_wire_envelope question = domt_holder.heard[0].envelope;
    /* the real node has no parts of grains, so it returns this ask */
    question.kind = DOMI_TO_GRAIN_ASK;
    question.id = 5;
    domt_holder_queue_envelope(&question);
    find_link_of_a_to_stranger()->next.error = -ENOMEM;
    domt_holder_advance_and_send(10 * DOMT_MS);
    ck_assert_uint_eq(domt_holder.answers[DOMI_TO_RETURN], 0);
    ck_assert_uint_eq(find_link_of_a_to_stranger()->session, session + 1);
    ck_assert(find_link_of_a_to_stranger()->is_broken && !find_link_of_a_to_stranger()->is_torn);
    domt_holder_end_world();
}

DOMT_TEST(link_that_refused_a_message_goes_on)
{
    begin_world_with_part_of_stranger();
    uint64_t session = find_link_of_a_to_stranger()->session;
    find_link_of_a_to_stranger()->next.error = -ENOMEM;
    domt_holder_order_user(DOMT_NOTICE, 0, 2, 1, 10);
    ck_assert_uint_eq(domus_cluster_count(domt_holder.cluster).refused, 1);
    domt_holder_order_user(DOMT_NOTICE, 0, 3, 1, 10);
    domt_holder_advance_and_send(2 * DOMT_BEAT_NS);
    DOMT_HOLD_HEARD(1, 3);
    ck_assert_uint_eq(find_link_of_a_to_stranger()->session, session);
    domt_holder_end_world();
}

DOMT_SUITE(60)
