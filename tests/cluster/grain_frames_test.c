/* A node's parts of the grains: messages to grains of other nodes, parts that the node doubts, and
 * the lease without which it has none. */
#include "tests/cluster/holder.h"
#include "tests/cluster/nodes.h"
#include "tests/cluster/words.h"
#include "tests/support/suite.h"

#include <domus/domus.h>
#include <domus/grain.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Messages to grains go to another node, which returns them, confirms late or never, or is full.
 * Messages keep their order, none waits for ever, and asks end. The test plays that other node. */

/* --- a node that is full ------------------------------------------------------------------------
 */

/* The link to the other node is full when the second message is sent, and the first message is
 * returned later. */
DOMT_TEST(returned_message_goes_before_one_that_had_no_room)
{
    domt_holder_begin_world();
    domt_holder_give_part_to_stranger(1);
    domt_holder_order_user(DOMT_NOTICE, 0, 1, 3, 3000);
    ck_assert_uint_eq(domt_holder_count_waiting_messages(), 3);
    domt_holder_fill_link_to_stranger();
    domt_holder_give_part_to_stranger(0);
    domt_holder_advance_and_send(50 * DOMT_MS);
    DOMT_HOLD_HEARD(1);
    ck_assert_uint_eq(domt_holder_count_waiting_messages(), 2);
    domt_holder_queue_returned_message(&domt_holder.heard[0].envelope);
    domt_holder_advance_and_send(200 * DOMT_MS);
    DOMT_HOLD_HEARD(1);
    ck_assert_uint_eq(domt_holder_count_waiting_messages(), 3);
    domt_holder.is_deaf = false;
    domt_holder_advance_and_send(200 * DOMT_MS);
    DOMT_HOLD_HEARD(1, 1, 2, 3);
    ck_assert_uint_eq(domt_holder_count_waiting_messages(), 0);
    domt_holder_end_world();
}

/* Two messages come back when no message waits. The link is full then, and a third message is sent
 * before the gateway has looked at the table of parts, or between two looks. */
DOMT_TEST(new_message_goes_behind_returned_ones_that_had_no_room)
{
    for (uint64_t later_ns = 0; later_ns <= 150 * DOMT_MS; later_ns += 50 * DOMT_MS) {
        domt_holder_begin_world();
        domt_holder_give_part_to_stranger(0);
        domt_holder_give_part_to_stranger(1);
        domt_holder_advance_and_send(50 * DOMT_MS);
        domt_holder_order_user(DOMT_NOTICE, 0, 1, 2, 100);
        DOMT_HOLD_HEARD(1, 2);
        domt_holder_fill_link_to_stranger();
        domt_holder_order_user(DOMT_NOTICE, 1, 0, 1, 3000);
        domt_holder_queue_returned_message(&domt_holder.heard[0].envelope);
        domt_holder_queue_returned_message(&domt_holder.heard[1].envelope);
        domt_holder_advance_and_send(10 * DOMT_MS);
        domt_holder_advance_and_send(later_ns);
        ck_assert_uint_eq(domt_holder_count_waiting_messages(), 2);
        domt_holder_order_user(DOMT_NOTICE, 0, 3, 1, 100);
        ck_assert_uint_eq(domt_holder_count_waiting_messages(), 3);
        domt_holder.is_deaf = false;
        domt_holder_advance_and_send(200 * DOMT_MS);
        DOMT_HOLD_HEARD(1, 2, 1, 2, 3);
        ck_assert_uint_eq(domt_holder_count_waiting_messages(), 0);
        domt_holder_end_world();
    }
}

DOMT_TEST(refused_message_goes_back_unless_its_sender_is_full)
{
    domt_holder_begin_world();
    domt_holder_give_part_to_stranger(0);
    domt_holder_give_part_to_stranger(1);
    domt_holder_advance_and_send(50 * DOMT_MS);
    domt_holder_order_user(DOMT_NOTICE, 0, 1, 1, 100);
    domi_wire_envelope notice = domt_holder.heard[0].envelope, question = notice;
    question.kind = DOMI_TO_GRAIN_ASK;
    question.id = 5;
    domt_holder_queue_envelope(&question);
    domt_holder_advance_and_send(50 * DOMT_MS);
    ck_assert(domt_holder.answers[DOMI_TO_RETURN] == 1 &&
              domt_holder.last.error == DOMI_TO_GRAIN_ASK);
    domt_holder_queue_envelope(&notice);
    domt_holder_advance_and_send(50 * DOMT_MS);
    ck_assert(domt_holder.answers[DOMI_TO_RETURN] == 2 &&
              domt_holder.last.error == DOMI_TO_GRAIN_NOTICE);
    ck_assert_uint_eq(domus_cluster_count(domt_holder.cluster).dropped, 0);
    domt_holder_fill_link_to_stranger();
    domt_holder_order_user(DOMT_NOTICE, 1, 0, 1, 3000);
    domt_holder_queue_envelope(&notice);
    domt_holder_queue_envelope(&question);
    domt_holder_advance_and_send(50 * DOMT_MS);
    ck_assert_uint_eq(domt_holder.answers[DOMI_TO_RETURN], 2);
    ck_assert_uint_eq(domt_holder.answers[DOMI_TO_FAIL], 1);
    ck_assert(domt_holder.last.error == -ENOBUFS && domt_holder.last.id == 5);
    ck_assert_uint_eq(domus_cluster_count(domt_holder.cluster).dropped, 1);
    domt_holder_end_world();
}

/* --- messages that wait -------------------------------------------------------------------------
 */

DOMT_TEST(messages_that_wait_are_bounded_in_bytes_and_in_time)
{
    domt_holder_begin_world();
    domt_holder_order_user(DOMT_NOTICE, 0, 1, 100, 1000);
    uint64_t held = domt_holder_count_waiting_messages();
    ck_assert(held > 50 && held < 65);
    ck_assert_uint_eq(domus_cluster_count(domt_holder.cluster).refused, 100 - held);
    domt_holder_order_user(DOMT_ASK, 0, 1, 1, 1000);
    ck_assert_int_eq(domt_holder.error, -ENOBUFS);
    domt_holder_advance_and_send(DOMT_DOWN_NS - 2 * DOMT_BEAT_NS);
    ck_assert_uint_eq(domt_holder_count_waiting_messages(), held);
    domt_holder_advance_and_send(4 * DOMT_BEAT_NS);
    ck_assert_uint_eq(domt_holder_count_waiting_messages(), 0);
    ck_assert_uint_eq(domus_cluster_count(domt_holder.cluster).refused, 101);
    domt_holder_end_world();
}

/* The other node returns an ask each time that it comes; when it is asked for its fence, it answers
 * in some rounds and not in others. */
DOMT_TEST(message_that_comes_back_waits_no_longer_than_others)
{
    for (uint32_t fenced = 0; fenced < 2; fenced++) {
        domt_holder_begin_world();
        domt_holder.answers_fences = fenced == 1;
        domt_holder.returns = true;
        domt_holder_give_part_to_stranger(0);
        domt_holder_advance_and_send(50 * DOMT_MS);
        domt_holder_order_user(DOMT_ASK, 0, 1, 1, 10);
        domt_holder_advance_and_send(DOMT_DOWN_NS - 2 * DOMT_BEAT_NS);
        ck_assert_int_eq(domt_holder.error, 1);
        domt_holder_advance_and_send(5 * DOMT_BEAT_NS);
        ck_assert_int_eq(domt_holder.error, -EHOSTDOWN);
        ck_assert_uint_eq(domt_holder_count_waiting_messages(), 0);
        /* the ask was sent once in each look of the gateway at its table of parts */
        if (fenced == 1)
            ck_assert(domt_holder.count >= 10 && domt_holder.count <= 30);
        else
            ck_assert_uint_eq(domt_holder.count, 1);
        domt_holder_end_world();
    }
}

DOMT_TEST(ask_that_waits_and_is_cancelled_leaves_the_others)
{
    domt_holder_begin_world();
    domt_holder_order_user(DOMT_NOTICE, 0, 1, 1, 10);
    domt_holder_order_user(DOMT_ASK, 0, 2, 1, 10);
    ck_assert_uint_eq(domt_holder_count_waiting_messages(), 2);
    domt_holder_order_user(DOMT_CANCEL, 0, 0, 0, 0);
    ck_assert_int_eq(domt_holder.error, -ECANCELED);
    ck_assert_uint_eq(domt_holder_count_waiting_messages(), 1);
    domt_holder_order_user(DOMT_NOTICE, 0, 3, 1, 10);
    domt_holder_give_part_to_stranger(0);
    domt_holder_advance_and_send(200 * DOMT_MS);
    DOMT_HOLD_HEARD(1, 3);
    domt_holder_end_world();
}

/* --- grain doubts ----------------------------------------------------------------------------- */

/* A node doubts where a part of the grains is, if messages wait for the part or have come back.
 * The node then reads the entries of doubted parts in the store, each once and a few at a time,
 * and asks the node that should have the part. */

/* --- doubts -------------------------------------------------------------------------------------
 */

static uint32_t count_reads_of_parts(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < DOMT_PARTS; i++)
        count += domt_holder.reads[i];
    return count;
}

DOMT_TEST(each_doubted_part_is_read_from_the_store_once)
{
    domt_holder_begin_world();
    ck_assert_uint_eq(count_reads_of_parts(), 0);
    for (uint64_t i = 0; i < DOMT_PARTS; i++)
        domt_holder_queue_envelope(&(domi_wire_envelope){.kind = DOMI_TO_DOUBT, .id = i});
    domt_holder_advance_and_send(400 * DOMT_MS);
    for (uint32_t i = 0; i < DOMT_PARTS; i++)
        ck_assert_msg(domt_holder.reads[i] == 1, "%u: %u", i, domt_holder.reads[i]);
    domt_holder_queue_envelope(
        /* doubts about a part that no grain has are ignored */
        &(domi_wire_envelope){.kind = DOMI_TO_DOUBT, .id = UINT32_MAX});
    domt_holder_queue_envelope(&(domi_wire_envelope){.kind = DOMI_TO_FENCE, .id = UINT32_MAX});
    domt_holder_queue_envelope(&(domi_wire_envelope){.kind = DOMI_TO_FENCED, .id = UINT32_MAX});
    domt_holder_advance_and_send(100 * DOMT_MS);
    ck_assert_uint_eq(domt_holder.answers[DOMI_TO_FENCED], 1);
    domt_holder_end_world();
}

/* The servers are far away, so that a read of an entry takes long; only 32 entries are read at a
 * time. */
DOMT_TEST(few_parts_are_read_at_a_time)
{
    const domus_testkit_leg slow = {.latency_ns = 100 * DOMT_MS};

    domt_holder_begin_world();
    ck_assert_int_eq(domus_testkit_cluster_set_leg(domt_holder.sim, domt_holder.number, DOMUS_EVERY,
                                                   DOMUS_FROM_SERVER, &slow),
                     0);
    for (uint64_t i = 0; i < DOMT_PARTS; i++)
        domt_holder_queue_envelope(&(domi_wire_envelope){.kind = DOMI_TO_DOUBT, .id = i});
    domt_holder_advance_and_send(190 * DOMT_MS);
    ck_assert_uint_eq(count_reads_of_parts(), 32);
    domt_holder_end_world();
}

DOMT_TEST(message_that_waits_lets_both_nodes_look_at_its_part)
{
    domt_holder_begin_world();
    domt_holder_order_user(DOMT_NOTICE, 0, 1, 1, 10);
    domt_holder_advance_and_send(2 * DOMT_BEAT_NS);
    ck_assert_uint_ge(domt_holder.reads[domt_holder.parts[0]], 1);
    ck_assert_uint_eq(count_reads_of_parts(), domt_holder.reads[domt_holder.parts[0]]);
    ck_assert_uint_ge(domt_holder.answers[DOMI_TO_DOUBT], 1);
    ck_assert(domt_holder.last.kind == DOMI_TO_DOUBT &&
              domt_holder.last.id == domt_holder.parts[0]);
    domt_holder_end_world();
}

/* The node has not heard by its watch that the stranger has the part, so it reads the part's
 * entry. */
DOMT_TEST(entry_of_a_part_that_was_read_counts_without_the_watch)
{
    const domus_testkit_leg lossy = {.loss_ppm = DOMUS_TESTKIT_PPM}, good = {.loss_ppm = 0};

    domt_holder_begin_world();
    ck_assert_int_eq(domus_testkit_cluster_set_leg(domt_holder.sim, domt_holder.number, DOMUS_EVERY,
                                                   DOMUS_FROM_SERVER, &lossy),
                     0);
    domt_holder_give_part_to_stranger(0);
    domt_pass_time(domt_holder.sim, 5 * DOMT_MS);
    ck_assert_int_eq(domus_testkit_cluster_set_leg(domt_holder.sim, domt_holder.number, DOMUS_EVERY,
                                                   DOMUS_FROM_SERVER, &good),
                     0);
    domt_holder_queue_envelope(
        &(domi_wire_envelope){.kind = DOMI_TO_DOUBT, .id = domt_holder.parts[0]});
    domt_holder_order_user(DOMT_NOTICE, 0, 1, 1, 10);
    domt_holder_advance_and_send(20 * DOMT_MS);
    DOMT_HOLD_HEARD(1);
    domt_holder_end_world();
}

/* --- lease ------------------------------------------------------------------------------------ */

/* A node has its parts of the grains as long as it has its lease. A node that cannot get a lease,
 * that was replaced by a node of the same name, or that has left before its grains have stopped,
 * does not keep its parts from the other nodes. */

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define NODES  3u
#define PARTS  256u

static struct {
    uint32_t lives;
    uint64_t holds_ns; /* time that the end of a grain takes */
    int error;         /* error of the last ask that has ended */
} world;

/* --- a grain that ends slowly ----------------------------------------------------------------- */

typedef struct greeting {
    domt_word word;
} greeting;

static int on_mount_count_life(domus_stack *stack, void *self)
{
    world.lives++;
    return 0;
}

static int reply_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return domus_reply(stack, &domt_answer_type, &((const greeting *)self)->word);
}

static int on_hello_reply_maybe_late(domus_stack *stack, void *self, const void *payload)
{
    ((greeting *)self)->word = *(const domt_word *)payload;
    if (world.holds_ns == 0)
        return domus_reply(stack, &domt_answer_type, payload);
    int error = domus_sleep_add(stack, world.holds_ns, 0);
    if (error == 0)
        error = domus_barrier(stack);
    return error != 0 ? error : domus_wait_all(stack, reply_after_sleep);
}

static const domus_behaviour greeter = {
    .name = "greeter",
    .state_size = sizeof(greeting),
    .on_mount = on_mount_count_life,
    .on = (const domus_on[]){{&domt_ask_type, on_hello_reply_maybe_late, 0}, {NULL, NULL, 0}},
};

static const domus_grain_kind kinds[] = {{.name = "greeter", .behaviour = &greeter},
                                         {.name = NULL}};

/* --- the asker -------------------------------------------------------------------------------- */

typedef struct asker {
    uint32_t key;
    domus_grains grains;
} asker;

static int on_answer_store_error_and_stop(domus_stack *stack, void *self,
                                          const domus_answer *answer)
{
    world.error = answer->error;
    return domus_stop(stack, domus_self(stack));
}

static const domus_type ask_type = {.name = "ask"};

static int on_order_ask_grain(domus_stack *stack, void *self_, const void *payload)
{
    const asker *self = self_;
    char key[16];

    snprintf(key, sizeof key, "k%u", self->key);
    int error = domus_grain_ask_add(stack, self->grains, key, &domt_ask_type,
                                    &(domt_word){0, self->key}, 0, 0);
    return error != 0 ? error : domus_wait_all(stack, on_answer_store_error_and_stop);
}

static int on_mount_begin_ask(domus_stack *stack, void *self_)
{
    asker *self = self_;
    int error = domus_grain_open(stack, &kinds[0], &self->grains);

    return error != 0 ? error : domus_notice(stack, domus_self(stack), &ask_type, NULL);
}

static const domus_behaviour asking = {
    .name = "asker",
    .state_size = sizeof(asker),
    .on_mount = on_mount_begin_ask,
    .on = (const domus_on[]){{&ask_type, on_order_ask_grain, 0}, {NULL, NULL, 0}},
};

/* --- the world ----------------------------------------------------------------------------------
 */

static const domus_cluster_options chosen = {
    .down_after_ns = 400 * MS, .picklers = domt_word_picklers, .grains = kinds};

static void open_all_nodes(void)
{
    memset(&world, 0, sizeof world);
    domt_nodes_make_simulated_cluster(1, 1);
    for (uint32_t i = 0; i < NODES; i++)
        domt_nodes_open_cluster(domt_nodes_add_node(1), chosen);
    domt_nodes_advance_time(2 * SECOND);
}

static uint32_t count_parts_of_node(uint32_t i)
{
    return (uint32_t)domus_cluster_count_grains(domt_nodes.clusters[i]).parts;
}

/* Check that the table of parts that a node shows agrees with the node's counts. */
static void check_shown_parts(uint32_t i)
{
    domus_cluster_grain_counts counts = domus_cluster_count_grains(domt_nodes.clusters[i]);
    const uint64_t numbers[] = {counts.parts, counts.taken,   counts.given,
                                counts.lost,  counts.waiting, counts.returned};
    const domus_figures_table *at = domus_figures_at(domt_nodes_system_of_node(i), 2);
    domus_figures_shot shot;

    ck_assert_str_eq(at->name, "parts");
    ck_assert_int_eq(domus_figures_read(domt_nodes_system_of_node(i), 2, 0, 1, &shot), 0);
    for (uint32_t k = 0; k < 6; k++)
        ck_assert_msg(domus_figures_cell(&shot, 0, k)->number == numbers[k], "%s",
                      at->columns[k].name);
    domus_figures_free(&shot);
}

/* Ask the grain `key` from a node. Returns the error of the answer. */
static int error_of_ask_from_node(uint32_t i, uint32_t key, uint64_t within_ns)
{
    const asker state = {.key = key};

    world.error = 1;
    domt_nodes_spawn_actor(i, &asking, &state);
    domt_nodes_advance_time(within_ns);
    return world.error;
}

/* --- tests --------------------------------------------------------------------------------------
 */

/* A node that hears the others, but cannot get its lease, loses its parts to these. */
DOMT_TEST(node_without_a_lease_loses_its_parts)
{
    open_all_nodes();
    ck_assert_uint_ge(count_parts_of_node(2), 40);
    domus_testkit_store_faults faults = {.request_loss_ppm = DOMUS_TESTKIT_PPM,
                                         .request_loss_of = domt_nodes.numbers[2] + 1};
    ck_assert_int_eq(domus_testkit_cluster_set_store(domt_nodes.sim, &faults), 0);
    /* the lease is over after 500 ms, and the others wait for five times `down_after_ns` more */
    domt_nodes_advance_time(1500 * MS);
    ck_assert_uint_eq(count_parts_of_node(2), 0);
    ck_assert_uint_lt(count_parts_of_node(0) + count_parts_of_node(1), PARTS - 40);
    domt_nodes_advance_time(3500 * MS);
    ck_assert_uint_eq(count_parts_of_node(2), 0);
    ck_assert_uint_eq(count_parts_of_node(0) + count_parts_of_node(1), PARTS);
    domus_cluster_grain_counts counts = domus_cluster_count_grains(domt_nodes.clusters[2]);
    ck_assert(counts.given < counts.taken && counts.lost >= 40);
    check_shown_parts(2);
    for (uint32_t key = 0; key < 20; key++)
        ck_assert_int_eq(error_of_ask_from_node(2, key, 50 * MS), 0);
    ck_assert_int_eq(
        domus_testkit_cluster_set_store(domt_nodes.sim, &(domus_testkit_store_faults){0}), 0);
    domt_nodes_advance_time(3 * SECOND);
    ck_assert_uint_ge(count_parts_of_node(2), 40);
    domt_nodes_free_all();
}

/* Two nodes have the same name: the one that has started later gets the parts. */
DOMT_TEST(node_that_was_replaced_gives_its_parts_up)
{
    open_all_nodes();
    uint32_t before = count_parts_of_node(1);
    ck_assert_uint_ge(before, 40);
    domus_cluster_options same_name = chosen;
    same_name.node = "n1";
    domt_nodes_open_cluster(domt_nodes_add_node(1), same_name);
    domt_nodes_advance_time(1500 * MS);
    ck_assert_uint_eq(count_parts_of_node(1), 0);
    ck_assert_uint_eq(count_parts_of_node(NODES), before);
    ck_assert_uint_eq(domus_cluster_nodes(domt_nodes.clusters[NODES], NULL, 0), NODES);
    ck_assert_uint_eq(count_parts_of_node(0) + count_parts_of_node(2) + before, PARTS);
    for (uint32_t key = 0; key < 20; key++)
        ck_assert_int_eq(error_of_ask_from_node(0, key, 50 * MS), 0);
    domt_nodes_free_all();
}

/* A node has left while one of its grains does not end: its lease runs out, the grain is stopped,
 * and other nodes get its part. */
DOMT_TEST(node_that_has_left_lets_its_lease_run_out)
{
    open_all_nodes();
    world.holds_ns = 3600 * SECOND;
    uint32_t key = 0;
    while (domus_cluster_count_grains(domt_nodes.clusters[0]).parts != 0 && world.lives == 0)
        (void)error_of_ask_from_node(0, key++, 20 * MS);
    /* this ask waits in the mailbox behind the first one */
    (void)error_of_ask_from_node(0, key - 1, 20 * MS);
    world.holds_ns = 0;
    for (uint32_t i = 0; i < NODES - 1; i++)
        domus_cluster_leave(domt_nodes.clusters[i]);
    /* the nodes that leave give away all parts but that of the grain that lives */
    domt_nodes_advance_time(350 * MS);
    ck_assert_uint_eq(count_parts_of_node(2), PARTS - 1);
    domt_nodes_advance_time(5 * SECOND);
    ck_assert_uint_eq(count_parts_of_node(2), PARTS);
    ck_assert_int_eq(error_of_ask_from_node(2, key - 1, 50 * MS), 0);
    ck_assert_uint_eq(world.lives, 2);
    domt_nodes_free_all();
}

/* A kind cannot be spread while grains of the kind live: these grains would be in no part. */
DOMT_TEST(kind_that_lives_already_is_not_spread)
{
    char error[200] = "";

    open_all_nodes();
    (void)domt_nodes_add_node(1);
    (void)error_of_ask_from_node(NODES, 1, 10 * MS);
    ck_assert_uint_eq(world.lives, 1);
    ck_assert_int_eq(domt_nodes_try_to_open_cluster(NODES, chosen, error), -EBUSY);
    ck_assert_str_eq(error, "grains: grains of greeter live already");
    domt_nodes_free_all();
}

DOMT_SUITE(60)
