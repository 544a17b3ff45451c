/* The link of a gateway lacks memory for one envelope. If the other side needs the envelope, the
 * link is given up at once, so that both sides know that messages under way are lost; a link that
 * has only refused a message goes on. The test makes the allocation fail in the link of a real
 * node. */
#include "house/message/house.h"
#include "protocols/cluster/inside.h"
#include "tests/cluster/holder.h"
#include "tests/support/suite.h"

#include <domus/domus.h>

#include <errno.h>

static domi_link *find_link_of_a(void)
{
    const domi_cluster_gateway *gateway = domt_holder.cluster->addresses[0].house->self;

    ck_assert(gateway->peers != NULL && gateway->peers->id == DOMT_STRANGER);
    return gateway->peers->links[0];
}

static void begin_with_part_of_stranger(void)
{
    domt_holder_begin_world();
    domt_holder_give_part_to_stranger(0);
    domt_holder_advance_and_send(50 * DOMT_MS);
    domt_holder_order_user(DOMT_NOTICE, 0, 1, 1, 10);
    DOMT_HOLD_HEARD(1);
    ck_assert_uint_eq(find_link_of_a()->next.size, 0);
}

DOMT_TEST(link_that_lost_an_answer_is_given_up)
{
    begin_with_part_of_stranger();
    uint64_t session = find_link_of_a()->session;
    domi_wire_envelope question = domt_holder.heard[0].envelope;
    /* the real node has no parts of grains, so it returns this ask */
    question.kind = DOMI_TO_GRAIN_ASK;
    question.id = 5;
    domt_holder_queue_envelope(&question);
    find_link_of_a()->next.error = -ENOMEM;
    domt_holder_advance_and_send(10 * DOMT_MS);
    ck_assert_uint_eq(domt_holder.answers[DOMI_TO_RETURN], 0);
    ck_assert_uint_eq(find_link_of_a()->session, session + 1);
    ck_assert(find_link_of_a()->is_broken && !find_link_of_a()->is_torn);
    domt_holder_end_world();
}

DOMT_TEST(link_that_refused_a_message_goes_on)
{
    begin_with_part_of_stranger();
    uint64_t session = find_link_of_a()->session;
    find_link_of_a()->next.error = -ENOMEM;
    domt_holder_order_user(DOMT_NOTICE, 0, 2, 1, 10);
    ck_assert_uint_eq(domus_cluster_count(domt_holder.cluster).refused, 1);
    domt_holder_order_user(DOMT_NOTICE, 0, 3, 1, 10);
    domt_holder_advance_and_send(2 * DOMT_BEAT_NS);
    DOMT_HOLD_HEARD(1, 3);
    ck_assert_uint_eq(find_link_of_a()->session, session);
    domt_holder_end_world();
}

DOMT_SUITE(30)
