/* A node doubts where a part of the grains is, if messages wait for the part or have come back. The
 * node then reads the entries of doubted parts in the store, each once and a few at a time, and
 * asks the node that should have the part. */
#include "tests/cluster/holder.h"
#include "tests/support/suite.h"

#include <domus/domus.h>

/* --- doubts -------------------------------------------------------------------------------------
 */

static uint32_t count_reads_of_parts(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < DOMT_PARTS; i++)
        count += domt_holder.reads[i];
    return count;
}

DOMT_TEST(each_part_that_is_doubted_is_read_once)
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
DOMT_TEST(entry_that_is_read_counts)
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

DOMT_SUITE(60)
