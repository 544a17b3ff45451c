/* When a lent house is home again it has its marks, its place among the ready ones and its
 * time-outs, and nothing is left at the thief. Home is manager 0, the thief manager 1. */
#include "house/dispatch/loan.h"

#include "house/family/life.h"
#include "tests/house/recorder.h"
#include "tests/support/suite.h"

#include <domus/conversation.h>

#include <errno.h>
#include <string.h>

#define HOUR_NS UINT64_C(3600000000000)

static domt_world world;
static domt_log logs[4];
static domus_address actors[4];
static domt_log far_log;
static domus_address far; /* on home 2, which works only when a test lets it */

static domi_manager *home(void)
{
    return world.managers[0];
}

static domi_manager *thief(void)
{
    return world.managers[1];
}

static domi_queue *queue(void)
{
    return &home()->schedule.ready[DOMUS_STATE];
}

static void open_world(uint32_t count)
{
    memset(logs, 0, sizeof logs);
    memset(&far_log, 0, sizeof far_log);
    domt_world_open(&world, 3);
    for (uint32_t i = 0; i < count; i++)
        actors[i] = domt_recorder_new(&world, 0, &logs[i]);
    far = domt_recorder_new(&world, 2, &far_log);
}

static void close_world(void)
{
    domt_settle(&world);
    ck_assert_uint_eq(home()->loans.lent, 0);
    ck_assert_uint_eq(home()->timing.deadlines.count, 0);
    ck_assert_uint_eq(domt_in_use_all(&world), 0);
    domt_world_end(&world);
}

/* Let the actor wait for an answer of `far`, so that it is not of high priority when mail comes. */
static void let_wait(uint32_t index)
{
    domt_inquire_by(home(), actors[index], far, 1);
    (void)domt_run_state(home());
    ck_assert_uint_eq(actors[index].house->asks, 1);
}

static void lend(domus_address who)
{
    domi_loan *loan = domi_loan_take(thief(), home());

    ck_assert_ptr_nonnull(loan);
    ck_assert_ptr_eq(loan->house, who.house);
    domi_loan_run(thief(), loan);
}

/* The inbox may be sorted only by the thread that has just taken the house off the arrivals. A
 * house that kept the mark of an earlier loan would be sorted when it comes back, and be linked
 * twice. */
DOMT_TEST(house_that_is_back_has_no_mark_of_mail_that_waited)
{
    open_world(1);
    domt_note_to(home(), actors[0], 1);
    ck_assert_uint_eq(domi_loans_expose(home(), queue(), 1), 1);
    domt_note_to(thief(), actors[0], 2);
    ck_assert_uint_eq(domi_manager_take_arrivals(home()), 1);
    ck_assert_uint_eq(domi_loans_take_back(home(), queue()), 1);
    ck_assert_uint_eq(actors[0].house->mail, 2);

    ck_assert_uint_eq(domi_loans_expose(home(), queue(), 1), 1);
    domt_note_to(thief(), actors[0], 3); /* linked again, and not taken from the arrivals */
    ck_assert_uint_eq(domi_loans_take_back(home(), queue()), 1);
    ck_assert_uint_eq(actors[0].house->mail, 2);
    ck_assert_uint_eq(domi_manager_take_arrivals(home()), 1);
    ck_assert_uint_eq(actors[0].house->mail, 3);
    close_world();
    ck_assert_int_eq(domt_log_sum(&logs[0], 'n'), 6);
}

DOMT_TEST(houses_taken_back_are_ready_with_the_priority_they_had)
{
    open_world(2);
    let_wait(0);
    domt_note_to(home(), actors[0], 1);
    domt_note_to(home(), actors[1], 1);
    ck_assert_uint_eq(domi_loans_expose(home(), queue(), 2), 2);
    ck_assert_uint_eq(domi_loans_take_back(home(), queue()), 2);
    ck_assert_ptr_eq(queue()->normal.head, actors[0].house);
    ck_assert_ptr_eq(queue()->high.head, actors[1].house);
    close_world();
}

DOMT_TEST(houses_of_both_priorities_together_are_no_more_than_were_to_be_shown)
{
    open_world(4);
    let_wait(0);
    let_wait(1);
    for (uint32_t i = 0; i < 4; i++)
        domt_note_to(home(), actors[i], 1);
    ck_assert_uint_eq(domi_loans_expose(home(), queue(), 3), 3);
    ck_assert_uint_eq(domi_loans_count_shown(home()), 3);
    ck_assert_uint_eq(queue()->count, 1);
    ck_assert_uint_eq(domi_loans_take_back(home(), queue()), 3);
    close_world();
}

DOMT_TEST(thief_that_gets_nothing_has_its_record_back)
{
    open_world(1);
    domt_note_to(home(), actors[0], 1);
    ck_assert_uint_eq(domi_loans_expose(home(), queue(), 1), 1);
    uint64_t used = domt_in_use(&world, DOMI_SLAB_64);
    domi_spinlock_lock(&home()->loans.shared_lock); /* another thief is there */
    ck_assert_ptr_null(domi_loan_take(thief(), home()));
    domi_spinlock_unlock(&home()->loans.shared_lock);
    ck_assert_uint_eq(domt_in_use(&world, DOMI_SLAB_64), used);
    lend(actors[0]);
    close_world();
}

static unsigned answers;

static int count_answers(domus_stack *stack, void *self, const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next) {
        ck_assert_int_eq(answer->error, 0);
        answers++;
    }
    return 0;
}

static int ask_two(domus_stack *stack, void *near)
{
    int64_t number = 1;

    ck_assert_int_eq(domus_ask_add(stack, far, &domt_question, &number, HOUR_NS, 1), 0);
    ck_assert_int_eq(
        domus_ask_add(stack, *(domus_address *)near, &domt_question, &number, HOUR_NS, 2), 0);
    return domus_wait_all(stack, count_answers);
}

/* The thief cannot take the time-out of an answered ask off home's wheel. If home does so when the
 * conversation ends there, the conversation must not stay counted as one that the wheel knows. */
DOMT_TEST(conversation_answered_on_a_loan_and_at_home_is_given_back)
{
    open_world(1);
    domus_address near = domt_recorder_new(&world, 1, &logs[1]);
    answers = 0;
    domt_send(home(), actors[0], ask_two, &near);
    (void)domt_run_state(home());
    (void)domt_iterate(world.managers[2]); /* the first answer, which the thief takes */
    (void)domi_manager_take_arrivals(home());
    ck_assert_uint_eq(domi_loans_expose(home(), queue(), 1), 1);
    lend(actors[0]);
    ck_assert_uint_eq(domi_loans_settle(home()), 1);
    ck_assert_uint_eq(home()->timing.deadlines.count, 2);
    (void)domt_iterate(world.managers[1]);
    domt_settle(&world);
    ck_assert_uint_eq(answers, 2);
    close_world();
}

static int outcome;

static int hear(domus_stack *stack, void *self, const domus_answer *answer)
{
    outcome = answer->error;
    return 0;
}

static int ask_within_a_tick(domus_stack *stack, void *context)
{
    int64_t number = 1;

    return domus_ask_within(stack, far, &domt_question, &number, DOMI_WHEEL_TICK_NS, hear);
}

/* Home cannot tell the house meanwhile, so it looks again at the next tick. */
DOMT_TEST(ask_whose_time_is_over_during_a_loan_fails_when_the_house_is_back)
{
    open_world(1);
    outcome = 1;
    domt_send(home(), actors[0], ask_within_a_tick, NULL);
    (void)domt_run_state(home());
    domt_note_to(home(), actors[0], 1);
    ck_assert_uint_eq(domi_loans_expose(home(), queue(), 1), 1);
    domi_loan *loan = domi_loan_take(thief(), home());
    ck_assert_ptr_nonnull(loan);
    for (int i = 0; i < 5; i++) {
        domt_jump(&world, DOMI_WHEEL_TICK_NS);
        (void)domi_manager_fire_timers(home());
        ck_assert_int_eq(outcome, 1);
    }
    domi_loan_run(thief(), loan);
    ck_assert_uint_eq(domi_loans_settle(home()), 1);
    for (int i = 0; i < 2; i++) {
        domt_jump(&world, DOMI_WHEEL_TICK_NS);
        (void)domi_manager_fire_timers(home());
        (void)domt_run_state(home());
    }
    ck_assert_int_eq(outcome, -ETIMEDOUT);
    close_world();
}

DOMT_SUITE(30)
