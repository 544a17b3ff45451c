/* house/dispatch/loan.c: houses are exposed, taken and given back, and their actors work meanwhile
 * as usual. A house that is home again has its marks, its place among the ready ones and its
 * time-outs, and nothing is left at the thief. Manager 0 is home, manager 1 the thief. */
#include "house/dispatch/loan.h"

#include "base/memory.h"
#include "house/family/life.h"
#include "tests/house/recorder.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <domus/conversation.h>

#include <errno.h>
#include <string.h>

#define HOUR_NS UINT64_C(3600000000000)

static domt_world world;
static domt_log logs[8];
static domus_address actors[8];
static domt_log far_log;
static domus_address far; /* a recorder on home 2, which works only when a test steps that home */

static domi_manager *home(void)
{
    return world.managers[0];
}

static domi_manager *thief_manager(void)
{
    return world.managers[1];
}

static domi_queue *home_queue(void)
{
    return &home()->schedule.ready[DOMUS_STATE];
}

static void open_world(uint32_t count)
{
    memset(logs, 0, sizeof logs);
    memset(&far_log, 0, sizeof far_log);
    domt_world_open(&world, 3);
    for (uint32_t i = 0; i < count; i++)
        actors[i] = domt_spawn_recorder(&world, 0, &logs[i]);
    far = domt_spawn_recorder(&world, 2, &far_log);
}

static void close_world(void)
{
    domt_settle_world(&world);
    ck_assert_uint_eq(home()->loans.lent, 0);
    ck_assert_uint_eq(home()->timing.deadlines.count, 0);
    domt_end_clean_world(&world);
}

/* Let home expose the first `count` houses of its queue. */
static void expose_houses(uint32_t count)
{
    ck_assert_uint_eq(domi_loans_expose_houses(home(), home_queue(), count), count);
}

static void send_note_to_first_actors(uint32_t count, int64_t number)
{
    for (uint32_t i = 0; i < count; i++)
        domt_send_note(home(), actors[i], number);
}

/* Let the thief take and run one exposed house, and let home take it back. */
static void let_thief_run_house_of_actor(uint32_t index)
{
    domi_loan *loan = domi_loan_take_exposed_house(thief_manager(), home());

    ck_assert_ptr_nonnull(loan);
    ck_assert_ptr_eq(loan->house, actors[index].house);
    domi_loan_run_house_and_return(thief_manager(), loan);
}

/* Returns the numbers in the log of actor `i` as text. */
static const char *numbers_in_log_as_text(uint32_t index)
{
    static char text[DOMT_LOG_MAX];
    uint32_t length = 0;

    for (uint32_t i = 0; i < logs[index].count && length + 1 < sizeof text; i++)
        text[length++] = (char)('0' + logs[index].entries[i].number);
    text[length] = '\0';
    return text;
}

DOMT_TEST(shown_houses_are_taken_in_their_order_and_run_by_the_thief)
{
    open_world(4);
    send_note_to_first_actors(4, 1);
    uint64_t ran = domi_counter_read(&thief_manager()->counters.runs);
    expose_houses(3);
    ck_assert_uint_eq(home_queue()->count, 1);
    ck_assert_uint_eq(domi_loans_count_shared_houses(home()), 3);
    for (uint32_t i = 0; i < 3; i++)
        let_thief_run_house_of_actor(i);
    ck_assert_ptr_null(domi_loan_take_exposed_house(thief_manager(), home()));
    ck_assert_uint_eq(domi_counter_read(&thief_manager()->counters.runs), ran + 3);
    ck_assert_uint_eq(domi_counter_read(&home()->counters.exposed), 3);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_str_eq(numbers_in_log_as_text(i), "1");
    ck_assert_str_eq(numbers_in_log_as_text(3), "");
    ck_assert_uint_eq(domi_loans_settle_returned_houses(home()), 3);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(actors[i].house->state, DOMI_WAITING);
    close_world();
    ck_assert_str_eq(numbers_in_log_as_text(3), "1");
}

DOMT_TEST(pinned_houses_are_not_shown_and_keep_their_places)
{
    open_world(4);
    actors[0].house->marks |= DOMI_MARK_PINNED;
    actors[2].house->marks |= DOMI_MARK_PINNED;
    send_note_to_first_actors(4, 1);
    ck_assert_uint_eq(domi_loans_expose_houses(home(), home_queue(), 4), 2);
    ck_assert_ptr_eq(domi_queue_take_house(home_queue()), actors[0].house);
    ck_assert_ptr_eq(domi_queue_take_house(home_queue()), actors[2].house);
    ck_assert_ptr_null(domi_queue_take_house(home_queue()));
    domi_queue_put_house(home_queue(), actors[0].house);
    domi_queue_put_house(home_queue(), actors[2].house);
    let_thief_run_house_of_actor(1);
    let_thief_run_house_of_actor(3);
    close_world();
}

DOMT_TEST(queue_of_pinned_houses_is_not_walked_to_its_end)
{
    open_world(8);
    for (uint32_t i = 0; i < 8; i++)
        actors[i].house->marks |= DOMI_MARK_PINNED;
    actors[7].house->marks = 0;
    send_note_to_first_actors(8, 1);
    ck_assert_uint_eq(domi_loans_expose_houses(home(), home_queue(), 1), 0);
    ck_assert_uint_eq(home_queue()->count, 8);
    close_world();
    ck_assert_str_eq(numbers_in_log_as_text(7), "1");
}

DOMT_TEST(house_that_is_taken_back_is_ready_with_what_came_meanwhile)
{
    open_world(2);
    send_note_to_first_actors(2, 1);
    expose_houses(2);
    domt_send_note(home(), actors[0], 2);
    domt_send_note(thief_manager(), actors[0], 3);
    ck_assert_uint_eq(domi_manager_take_arrivals(home()), 1);
    /* the new messages are not sorted in while the house is exposed */
    ck_assert_uint_eq(actors[0].house->mail, 1);
    ck_assert_uint_eq(domi_loans_take_houses_back(home(), home_queue()), 2);
    ck_assert_uint_eq(actors[0].house->mail, 3);
    ck_assert_uint_eq(domi_loans_count_shared_houses(home()), 0);
    ck_assert_ptr_null(domi_loan_take_exposed_house(thief_manager(), home()));
    close_world();
    ck_assert_str_eq(numbers_in_log_as_text(0), "123");
    ck_assert_str_eq(numbers_in_log_as_text(1), "1");
}

/* Home sends before the house is exposed, while it is exposed or with the thief, and when it is
 * back. */
DOMT_TEST(order_of_a_sender_holds_through_a_loan)
{
    open_world(1);
    domt_send_note(home(), actors[0], 1);
    expose_houses(1);
    domt_send_note(home(), actors[0], 2);
    domi_loan *loan = domi_loan_take_exposed_house(thief_manager(), home());
    domt_send_note(home(), actors[0], 3);
    ck_assert_uint_eq(domi_manager_take_arrivals(home()), 1);
    domt_send_note(home(), actors[0], 4);
    domi_loan_run_house_and_return(thief_manager(), loan);
    domt_send_note(home(), actors[0], 5);
    ck_assert_uint_eq(domi_loans_settle_returned_houses(home()), 1);
    domt_send_note(home(), actors[0], 6);
    ck_assert_int_eq(actors[0].house->state, DOMI_READY);
    close_world();
    ck_assert_str_eq(numbers_in_log_as_text(0), "123456");
}

/* The loan returns before home takes the house off its arrivals: the inbox is then sorted as the
 * arrivals are taken, as always. */
DOMT_TEST(house_that_returns_before_its_arrival_is_taken_is_sorted_by_that)
{
    open_world(1);
    domt_send_note(home(), actors[0], 1);
    expose_houses(1);
    domt_send_note(thief_manager(), actors[0], 2);
    let_thief_run_house_of_actor(0);
    ck_assert_uint_eq(domi_loans_settle_returned_houses(home()), 1);
    /* note 3 comes behind note 2, because the inbox is not empty */
    domt_send_note(home(), actors[0], 3);
    ck_assert_int_eq(actors[0].house->state, DOMI_WAITING);
    ck_assert_uint_eq(domi_manager_take_arrivals(home()), 1);
    close_world();
    ck_assert_str_eq(numbers_in_log_as_text(0), "123");
}

DOMT_TEST(stop_of_a_lent_house_waits_until_it_is_back)
{
    open_world(1);
    send_note_to_first_actors(1, 1);
    send_note_to_first_actors(1, 2);
    expose_houses(1);
    domi_loan *loan = domi_loan_take_exposed_house(thief_manager(), home());
    ck_assert_int_eq(domi_house_ask_to_stop(home(), actors[0]), 0);
    ck_assert_uint_eq(logs[0].stops, 0);
    domi_loan_run_house_and_return(thief_manager(), loan); /* the thief looks for stops first */
    ck_assert_str_eq(numbers_in_log_as_text(0), "");
    ck_assert_uint_eq(logs[0].stops, 0);
    ck_assert_uint_eq(domi_loans_settle_returned_houses(home()), 1);
    ck_assert_uint_eq(logs[0].stops, 1);
    close_world();
}

static int send_note_to_neighbour_and_itself(domus_stack *stack, void *context)
{
    int64_t number = 7;

    /* actors 0 and 1 have the same home */
    ck_assert_int_eq(domus_notice(stack, actors[1], &domt_note, &number), 0);
    return domus_notice(stack, domus_self(stack), &domt_note, &number);
}

DOMT_TEST(lent_actor_sends_to_itself_and_to_its_neighbours_by_their_inboxes)
{
    open_world(2);
    domt_send_function_to_call(home(), actors[0], send_note_to_neighbour_and_itself, NULL);
    expose_houses(1);
    let_thief_run_house_of_actor(0);
    ck_assert_str_eq(numbers_in_log_as_text(0), "");
    ck_assert_str_eq(numbers_in_log_as_text(1), "");
    /* the two mounts and the return of the loan */
    ck_assert_uint_eq(domi_manager_take_arrivals(home()), 3);
    close_world();
    ck_assert_str_eq(numbers_in_log_as_text(0), "7");
    ck_assert_str_eq(numbers_in_log_as_text(1), "7");
}

DOMT_TEST(question_to_a_lent_actor_and_its_own_are_answered)
{
    open_world(2);
    domt_let_recorder_ask(home(), actors[0], actors[1], 5);
    expose_houses(1);
    let_thief_run_house_of_actor(0); /* the thief runs the actor that asks */
    (void)domi_manager_take_arrivals(home());
    expose_houses(1);
    let_thief_run_house_of_actor(1); /* the thief runs the actor that answers */
    (void)domi_manager_take_arrivals(home());
    expose_houses(1);
    let_thief_run_house_of_actor(0); /* the thief runs the asker, which is resumed */
    close_world();
    ck_assert_uint_eq(domt_log_count_letter(&logs[0], 'r'), 1);
    ck_assert_int_eq(domt_log_sum_of_letter(&logs[0], 'r'), 5);
}

static domus_address child;

static int spawn_recording_child(domus_stack *stack, void *context)
{
    domt_recorder state = {.log = context};

    return domus_spawn(stack, &domt_recording, &state, &child);
}

DOMT_TEST(child_of_a_lent_actor_lives_with_its_parent_and_ends_before_it)
{
    open_world(1);
    domt_send_function_to_call(home(), actors[0], spawn_recording_child, &logs[1]);
    expose_houses(1);
    let_thief_run_house_of_actor(0);
    ck_assert_ptr_eq(child.house->home, home());
    domt_settle_world(&world);
    ck_assert_uint_eq(logs[1].mounts, 1);
    send_note_to_first_actors(1, 1);
    expose_houses(1); /* the child is stopped and ends while its parent is exposed */
    ck_assert_int_eq(domi_house_ask_to_stop(home(), child), 0);
    (void)domt_run_state_queue(home());
    ck_assert_uint_eq(logs[1].stops, 1);
    let_thief_run_house_of_actor(0);
    domt_settle_world(&world);
    ck_assert_int_eq(domi_house_ask_to_stop(home(), actors[0]), 0);
    close_world();
    ck_assert_uint_eq(logs[0].stops, 1);
}

DOMT_TEST(thief_without_memory_for_the_record_takes_nothing)
{
    open_world(1);
    send_note_to_first_actors(1, 1);
    expose_houses(1);
    while (thief_manager()->pool.slabs[DOMI_SLAB_64].free != NULL ||
           thief_manager()->pool.slabs[DOMI_SLAB_64].carve_end -
                   thief_manager()->pool.slabs[DOMI_SLAB_64].carve >=
               64)
        /* the object is not given back, because the world ends soon */
        (void)domi_slab_take_object(&thief_manager()->pool.slabs[DOMI_SLAB_64]);
    domi_memory_fail_allocation_after(0, 1);
    ck_assert_ptr_null(domi_loan_take_exposed_house(thief_manager(), home()));
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(domi_loans_count_shared_houses(home()), 1);
    ck_assert_uint_eq(domi_loans_take_houses_back(home(), home_queue()), 1);
    domt_settle_world(&world);
    domt_world_end(&world);
    ck_assert_str_eq(numbers_in_log_as_text(0), "1");
}

DOMT_TEST(houses_shown_and_returned_are_back_at_the_end_of_the_system)
{
    open_world(3);
    send_note_to_first_actors(3, 1);
    expose_houses(2);
    let_thief_run_house_of_actor(0);
    domt_send_note(home(), actors[1], 2);
    domt_world_end(&world);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(logs[i].stops, 1);
}

DOMT_TEST(thread_with_something_shown_or_returned_has_work)
{
    open_world(1);
    send_note_to_first_actors(1, 1);
    expose_houses(1);
    ck_assert(domi_manager_has_work(home()));
    domi_loan *loan = domi_loan_take_exposed_house(thief_manager(), home());
    ck_assert(!domi_manager_has_work(home())); /* home may sleep: the loan's return will wake it */
    uint32_t wakes = world.wakes[0];
    atomic_store(&home()->park, DOMI_PARK_SLEEPING);
    domi_loan_run_house_and_return(thief_manager(), loan);
    ck_assert_uint_eq(world.wakes[0], wakes + 1);
    atomic_store(&home()->park, DOMI_PARK_RUNNING);
    ck_assert(domi_manager_has_work(home()));
    close_world();
}

/* --- back home ------------------------------------------------------------------------------- */

/* Let the actor wait for an answer of `far`, so that messages do not make its priority high. */
static void let_actor_wait_for_answer_of_far(uint32_t index)
{
    domt_let_recorder_ask(home(), actors[index], far, 1);
    (void)domt_run_state_queue(home());
    ck_assert_uint_eq(actors[index].house->asks, 1);
}

/* Only the thread that has just taken a house off the arrivals may sort its inbox. A house that
 * kept the mark of an earlier loan would be sorted when it comes back, and then be linked twice. */
DOMT_TEST(house_that_is_back_is_not_marked_as_holding_its_arrival)
{
    open_world(1);
    domt_send_note(home(), actors[0], 1);
    expose_houses(1);
    domt_send_note(thief_manager(), actors[0], 2);
    ck_assert_uint_eq(domi_manager_take_arrivals(home()), 1);
    ck_assert_uint_eq(domi_loans_take_houses_back(home(), home_queue()), 1);
    ck_assert_uint_eq(actors[0].house->mail, 2);

    expose_houses(1);
    /* the house is linked into the arrivals again, and home does not take them */
    domt_send_note(thief_manager(), actors[0], 3);
    ck_assert_uint_eq(domi_loans_take_houses_back(home(), home_queue()), 1);
    ck_assert_uint_eq(actors[0].house->mail, 2);
    ck_assert_uint_eq(domi_manager_take_arrivals(home()), 1);
    ck_assert_uint_eq(actors[0].house->mail, 3);
    close_world();
    ck_assert_int_eq(domt_log_sum_of_letter(&logs[0], 'n'), 6);
}

DOMT_TEST(houses_taken_back_are_ready_with_the_priority_they_had)
{
    open_world(2);
    let_actor_wait_for_answer_of_far(0);
    domt_send_note(home(), actors[0], 1);
    domt_send_note(home(), actors[1], 1);
    expose_houses(2);
    ck_assert_uint_eq(domi_loans_take_houses_back(home(), home_queue()), 2);
    ck_assert_ptr_eq(home_queue()->normal.head, actors[0].house);
    ck_assert_ptr_eq(home_queue()->high.head, actors[1].house);
    close_world();
}

DOMT_TEST(houses_of_both_priorities_together_are_no_more_than_were_to_be_shown)
{
    open_world(4);
    let_actor_wait_for_answer_of_far(0);
    let_actor_wait_for_answer_of_far(1);
    for (uint32_t i = 0; i < 4; i++)
        domt_send_note(home(), actors[i], 1);
    expose_houses(3);
    ck_assert_uint_eq(domi_loans_count_shared_houses(home()), 3);
    ck_assert_uint_eq(home_queue()->count, 1);
    ck_assert_uint_eq(domi_loans_take_houses_back(home(), home_queue()), 3);
    close_world();
}

DOMT_TEST(thief_that_gets_nothing_has_its_record_back)
{
    open_world(1);
    domt_send_note(home(), actors[0], 1);
    expose_houses(1);
    uint64_t used = domt_count_objects_in_use(&world, DOMI_SLAB_64);
    /* this test holds the lock, as another thief would */
    domi_spinlock_lock(&home()->loans.shared_lock);
    ck_assert_ptr_null(domi_loan_take_exposed_house(thief_manager(), home()));
    domi_spinlock_unlock(&home()->loans.shared_lock);
    ck_assert_uint_eq(domt_count_objects_in_use(&world, DOMI_SLAB_64), used);
    let_thief_run_house_of_actor(0);
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

static int ask_far_and_near(domus_stack *stack, void *near)
{
    int64_t number = 1;

    ck_assert_int_eq(domus_ask_add(stack, far, &domt_question, &number, HOUR_NS, 1), 0);
    ck_assert_int_eq(
        domus_ask_add(stack, *(domus_address *)near, &domt_question, &number, HOUR_NS, 2), 0);
    return domus_wait_all(stack, count_answers);
}

/* A thief counts in `away` an answered promise that it cannot take off home's timer wheel. Home
 * takes it off at the conversation's end, and must count `away` down. */
DOMT_TEST(conversation_answered_on_a_loan_and_at_home_is_given_back)
{
    open_world(1);
    domus_address near = domt_spawn_recorder(&world, 1, &logs[1]);
    answers = 0;
    domt_send_function_to_call(home(), actors[0], ask_far_and_near, &near);
    (void)domt_run_state_queue(home());
    (void)domt_iterate_home(world.managers[2]); /* home 2 answers first */
    (void)domi_manager_take_arrivals(home());
    expose_houses(1);
    let_thief_run_house_of_actor(0);
    ck_assert_uint_eq(domi_loans_settle_returned_houses(home()), 1);
    ck_assert_uint_eq(home()->timing.deadlines.count, 2);
    (void)domt_iterate_home(world.managers[1]);
    domt_settle_world(&world);
    ck_assert_uint_eq(answers, 2);
    close_world();
}

static int outcome;

static int record_outcome(domus_stack *stack, void *self, const domus_answer *answer)
{
    outcome = answer->error;
    return 0;
}

static int ask_within_a_tick(domus_stack *stack, void *context)
{
    return domus_ask_within(stack, far, &domt_question, &(int64_t){1}, DOMI_WHEEL_TICK_NS,
                            record_outcome);
}

/* Home cannot run the house that is lent, so it looks again at the next tick. */
DOMT_TEST(ask_whose_time_is_over_during_a_loan_fails_when_the_house_is_back)
{
    open_world(1);
    outcome = 1;
    domt_send_function_to_call(home(), actors[0], ask_within_a_tick, NULL);
    (void)domt_run_state_queue(home());
    domt_send_note(home(), actors[0], 1);
    expose_houses(1);
    domi_loan *loan = domi_loan_take_exposed_house(thief_manager(), home());
    ck_assert_ptr_nonnull(loan);
    for (int i = 0; i < 5; i++) {
        domt_advance_time_without_runs(&world, DOMI_WHEEL_TICK_NS);
        (void)domi_manager_fire_timers(home());
        ck_assert_int_eq(outcome, 1);
    }
    domi_loan_run_house_and_return(thief_manager(), loan);
    ck_assert_uint_eq(domi_loans_settle_returned_houses(home()), 1);
    for (int i = 0; i < 2; i++) {
        domt_advance_time_without_runs(&world, DOMI_WHEEL_TICK_NS);
        (void)domi_manager_fire_timers(home());
        (void)domt_run_state_queue(home());
    }
    ck_assert_int_eq(outcome, -ETIMEDOUT);
    close_world();
}

DOMT_SUITE(30)
