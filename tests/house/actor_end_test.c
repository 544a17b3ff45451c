/* The end of an actor, seen from all sides: messages that it had stashed, actors that wait for it,
 * verbs that it calls too late, and messages that come for it while it is being taken apart. */
#include "house/dispatch/manage.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "house/message/arrivals.h"
#include "house/message/pool.h"
#include "tests/house/kin.h"
#include "tests/house/steps.h"
#include "tests/house/talk.h"
#include "tests/support/suite.h"

#include <domus/conversation.h>
#include <domus/receive.h>

#include <errno.h>
#include <string.h>

#define HOUR_NS UINT64_C(3600000000000)

static unsigned ended;

/* --- what it had put aside -------------------------------------------------------------------- */

static int stash_current_message(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_stash(stack), 0);
    return 0;
}

static int unstash_after_cancel(domus_stack *stack, void *self, const domus_answer *answer)
{
    const domi_house *house = domus_self(stack).house;

    ck_assert_int_eq(answer->error, -ECANCELED);
    domus_unstash(stack);
    ck_assert_uint_eq(house->mail, 0);
    ended++;
    return 0;
}

static int sleep_and_unstash(domus_stack *stack, void *context)
{
    return domus_sleep(stack, HOUR_NS, unstash_after_cancel);
}

DOMT_TEST(stash_of_an_actor_that_stops_is_empty_and_counted_so)
{
    domt_talk_open_world();
    domt_run_as_actor(&domt_talk.world, domt_talk.asker, stash_current_message, NULL);
    domt_run_as_actor(&domt_talk.world, domt_talk.asker, stash_current_message, NULL);
    domt_run_as_actor(&domt_talk.world, domt_talk.asker, sleep_and_unstash, NULL);
    ck_assert_uint_eq(domt_talk.asker.house->family->stashed, 2);
    ended = 0;
    domt_stop_actor_and_settle(&domt_talk.world, domt_talk.world.managers[0], domt_talk.asker);
    ck_assert_uint_eq(ended, 1);
    domt_talk_close_world();
}

/* --- who waits for it ------------------------------------------------------------------------- */

static int return_error_of_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, -ECANCELED);
    return answer->error;
}

static int ask_third_actor_which_keeps(domus_stack *stack, void *context)
{
    static const domt_call question = {domt_keep_ask_for_ever, NULL};

    return domus_ask(stack, domt_talk.third, &domt_call_type, &question, return_error_of_answer);
}

DOMT_TEST(asker_of_an_actor_that_stops_gets_the_stop_and_not_a_cancel)
{
    domt_talk_open_world();
    domi_manager *there = domt_talk.world.managers[1];
    domt_talk.third = domt_spawn(there, there, &domt_agent, NULL);
    domt_talk_ask_by_function(ask_third_actor_which_keeps);
    ck_assert_int_eq(domt_talk.error, 1);
    domt_stop_actor_and_settle(&domt_talk.world, there, domt_talk.other);
    ck_assert_int_eq(domt_talk.error, -ESTALE);
    domt_talk_close_world();
}

/* The reply reaches nobody, because its asker has ended since the ask was taken. */
DOMT_TEST(reply_to_an_actor_that_has_ended_is_released)
{
    domt_call question = {domt_reply_hello, NULL};

    domt_talk_open_world();
    domi_manager *here = domt_talk.world.managers[0];
    domi_manager *there = domt_talk.world.managers[1];
    unsigned before = domt_talk.releases;
    domt_send_function_to_call(here, domt_talk.asker, domt_talk_ask_other_agent, &question);
    (void)domt_iterate_home(here);
    /* home has sorted the ask into the mailbox, so the asker's cancel will come too late */
    (void)domi_manager_take_arrivals(there);
    ck_assert_int_eq(domi_house_ask_to_stop(here, domt_talk.asker), 0);
    domt_let_home_work(here);
    ck_assert_uint_eq(domt_run_state_queue(there), 1);
    ck_assert_uint_eq(domt_talk.releases, before + 1);
    domt_settle_world(&domt_talk.world);
    ck_assert_uint_eq(domt_talk.releases, before + 1);
    domt_talk_close_world();
}

/* --- what it begins too late ------------------------------------------------------------------ */

static int watch_actor_2_and_itself(domus_stack *stack, void *self)
{
    domus_watch watch;

    ck_assert_int_eq(domus_watch_actor(stack, domt_kin_of[2].address, &watch), 0);
    ck_assert_int_eq(domus_watch_actor(stack, domt_kin_of[1].address, &watch), 0);
    return 0;
}

static int link_to_actor_2(domus_stack *stack, void *self)
{
    domus_watch watch;

    ck_assert_int_eq(domus_link_actor(stack, domt_kin_of[2].address, &watch), 0);
    return 0;
}

DOMT_TEST(watches_that_on_stop_begins_are_taken_back)
{
    for (uint32_t home = 0; home < 2; home++) {
        for (int linked = 0; linked < 2; linked++) {
            domt_kin_open_world(2);
            (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
            (void)domt_kin_spawn_root(2, home, &domt_kin_hearing);
            domt_kin_of[1].stopping = linked ? link_to_actor_2 : watch_actor_2_and_itself;
            domt_kin_stop_actor(1);
            ck_assert_uint_eq(domt_count_objects_in_use(&domt_kin_world, DOMI_SLAB_WATCH), 0);
            ck_assert_uint_eq(domt_kin_of[2].downs, (unsigned)linked);
            domt_kin_close_world();
        }
    }
}

static int try_to_spawn_when_stopping(domus_stack *stack, void *context)
{
    domus_address child;

    ck_assert_int_eq(domus_spawn(stack, &domt_agent, NULL, &child), -ESHUTDOWN);
    ended++;
    return 0;
}

DOMT_TEST(thread_that_closes_refuses_new_actors)
{
    domus_address child;

    domt_talk_open_world();
    domi_manager *here = domt_talk.world.managers[0];
    here->ending.closing = true;
    ended = 0;
    domt_run_as_actor(&domt_talk.world, domt_talk.asker, try_to_spawn_when_stopping, NULL);
    ck_assert_uint_eq(ended, 1);
    ck_assert_int_eq(domi_house_spawn_without_parent(here, here, &domt_agent, NULL, &child),
                     -ESHUTDOWN);
    here->ending.closing = false;
    ck_assert_int_eq(domi_house_spawn_without_parent(here, here, &domt_agent, NULL, &child), 0);
    domt_settle_world(&domt_talk.world);
    domt_talk_close_world();
}

/* --- while it is taken apart ------------------------------------------------------------------ */

static int ask_itself_and_keep(domus_stack *stack, void *context)
{
    static const domt_call question = {domt_keep_ask_for_ever, NULL};

    return domus_ask(stack, domus_self(stack), &domt_call_type, &question, domt_talk_record_answer);
}

/* The actor's kept ask fails when its conversations are dropped. The asker is the same actor, whose
 * mailboxes were emptied before. */
DOMT_TEST(emptied_actor_takes_no_exception_of_its_own_kept_ask)
{
    domt_talk_open_world();
    domt_run_as_actor(&domt_talk.world, domt_talk.asker, ask_itself_and_keep, NULL);
    const domi_house *house = domt_talk.asker.house;
    ck_assert_uint_eq(domi_house_count_parked_conversations(house), 2);
    for (uint32_t i = 0; i <= domt_talk.world.homes; i++)
        domi_manager_end_actors(domt_talk.world.managers[i]);
    for (uint32_t kind = 0; kind < DOMI_MAILBOXES; kind++)
        ck_assert_ptr_null(house->tails[kind]);
    domt_talk_close_world();
}

/* --- what comes for the life before ----------------------------------------------------------- */

static int count_that_call_ran(domus_stack *stack, void *context)
{
    ended++;
    return 0;
}

/* Put a message for an actor that has just ended: the sender has read the address while the actor
 * lived, and puts afterwards. */
static void put_message_for_ended_life(domi_manager *from, domi_house *house, uint32_t lease)
{
    const domt_call call = {count_that_call_ran, NULL};
    domi_envelope *envelope = domi_envelope_new(from, sizeof *envelope);

    ck_assert_ptr_nonnull(envelope);
    envelope->type = &domt_call_type;
    envelope->sender = NULL;
    envelope->node.kind = DOMI_NOTICE;
    envelope->node.lease = lease;
    envelope->node.next = NULL;
    memcpy(envelope->payload, &call, sizeof call);
    atomic_store(&house->inbox, UINT64_C(1) << 48 | (uintptr_t)envelope);
    domi_links_add_house_to_arrivals(from, house);
}

DOMT_TEST(late_mail_for_the_life_before_is_dead_in_the_next_one)
{
    domt_talk_open_world();
    domt_world *world = &domt_talk.world;
    domi_manager *here = world->managers[0];
    domus_address first = domt_spawn(here, here, &domt_agent, NULL);
    domt_settle_world(world);
    domt_stop_actor_and_settle(world, here, first);
    domus_address second = domt_spawn(here, here, &domt_agent, NULL);
    domt_settle_world(world);
    ck_assert_ptr_eq(second.house, first.house);
    ended = 0;
    put_message_for_ended_life(domt_outside_manager(world), second.house, first.lease);
    domt_settle_world(world);
    ck_assert_uint_eq(ended, 0);
    ck_assert_uint_eq(DOMT_SUM(world, dead_letters), 1);
    put_message_for_ended_life(domt_outside_manager(world), second.house, second.lease);
    domt_settle_world(world);
    ck_assert_uint_eq(ended, 1);
    domt_talk_close_world();
}

/* --- a restart -------------------------------------------------------------------------------- */

#define CONVERSATIONS 300 /* more than the conversations that end in one run */

static int expect_no_conversations(domus_stack *stack, void *self)
{
    ck_assert_uint_eq(domi_house_count_parked_conversations(domus_self(stack).house), 0);
    ended++;
    return 0;
}

DOMT_TEST(actor_begins_anew_when_its_last_conversation_has_ended)
{
    static const domus_supervision restarts = {.otherwise = DOMUS_RESTART};
    domt_kin_open_world_with_boss(2, &restarts);
    (void)domt_kin_spawn_child(1, 2, 1, &domt_kin_hearing);
    for (int i = 0; i < CONVERSATIONS; i++)
        domt_kin_run_in_handler(2, domt_kin_sleep_for_a_day, NULL);
    ck_assert_uint_eq(domi_house_count_parked_conversations(domt_kin_of[2].address.house),
                      CONVERSATIONS);
    ended = 0;
    domt_kin_of[2].mounting = expect_no_conversations;
    domt_kin_fail_actor(2, -EIO);
    ck_assert_uint_eq(ended, 1);
    ck_assert_uint_eq(domt_kin_of[2].mounts, 2);
    domt_kin_close_world();
}

DOMT_SUITE(30)
