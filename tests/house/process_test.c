/* house/family/process.c: processes begin once, end once, and fail like other actors; which
 * messages and yields a step is given, and which of them are dropped; and features that processes
 * share with other actors. */
#include "base/memory.h"
#include "house/directory/group.h"
#include "house/dispatch/dispatch.h"
#include "tests/house/processing.h"

#include <domus/group.h>
#include <domus/receive.h>
#include <domus/supervise.h>

/* --- begin and end --------------------------------------------------------------------------- */

DOMT_TEST(process_is_begun_on_its_own_turn_and_closed_once)
{
    open_world_with_process();
    domt_pass_time(&world, 20 * MS);
    ck_assert_uint_eq(steps, 1);
    stop_process();
    ck_assert_uint_eq(closes, 1);
    close_world_of_process();
    ck_assert_uint_eq(closes, 1);
}

DOMT_TEST(process_that_lives_to_the_end_of_the_system_is_closed_too)
{
    open_world_with_process();
    send_to_process(&owned_type, 1);
    domt_world_end(&world);
    ck_assert_uint_eq(closes, 1);
    ck_assert_uint_eq(releases, 1);
}

DOMT_TEST(method_that_is_not_known_is_a_failure_of_the_actor)
{
    open_world_without_process(&spawner);
    domt_run_as_actor(&world, agent, spawn_process_with_method, "divide");
    ck_assert_int_eq(error, 0);
    ck_assert_uint_eq(inits, 1);
    ck_assert_uint_eq(closes, 1);
    ck_assert_uint_eq(steps, 0);
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 1);
    ck_assert_int_eq(domi_house_ask_to_stop(world.managers[0], process), -ESTALE);
    close_world_of_process();
}

static int fail_first_init(domus_stack *stack)
{
    return inits == 1 ? -EAGAIN : 0;
}

static int fail_step_when_number_comes(domus_stack *stack, const domus_process_event *events,
                                       uint32_t count, domus_process_output *out)
{
    return count != 0 && events[0].data_type == &number_type ? -EIO : 0;
}

DOMT_TEST(restart_closes_and_begins_again_with_the_same_input)
{
    init_does = fail_first_init;
    step_does = fail_step_when_number_comes;
    open_world_without_process(&supervisor);
    domt_run_as_actor(&world, agent, spawn_process_with_method, "count");
    ck_assert_uint_eq(inits, 2);
    ck_assert_uint_eq(closes, 1);
    send_to_process(&number_type, 1);
    domt_settle_world(&world);
    ck_assert_uint_eq(inits, 3);
    ck_assert_uint_eq(closes, 2);
    send_to_process(&large_type, 1);
    domt_settle_world(&world);
    /* steps: the first one, the one that fails, the first one after the restart, the one for the
     * large message */
    ck_assert_uint_eq(steps, 4);
    stop_process();
    close_world_of_process();
}

DOMT_TEST(error_of_a_step_ends_the_process_unless_somebody_restarts_it)
{
    step_does = fail_step_when_number_comes;
    open_world_with_process();
    send_to_process(&number_type, 1);
    domt_settle_world(&world);
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 1);
    ck_assert_uint_eq(closes, 1);
    ck_assert_int_eq(domi_house_ask_to_stop(world.managers[0], process), -ESTALE);
    close_world_of_process();
}

static int try_wrong_spawns_of_process(domus_stack *stack, void *context)
{
    static const domus_process no_step = {.name = "no step"};
    static const domus_spawn_options nowhere = {.placement = DOMUS_ON_THREAD, .thread = 7};
    static const domus_process huge = {
        .name = "huge", .step = count_events_and_step, .state_size = 1 << 21};
    char name[DOMUS_PROCESS_METHOD_MAX + 2];
    domus_address address;

    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    const struct {
        const domus_process *process;
        const char *method;
        const domus_type *type;
        const domus_spawn_options *options;
        int error;
    } rows[] = {
        {&no_step, "", NULL, NULL, -EINVAL},
        {&huge, "", NULL, NULL, -EINVAL},
        {&counting, "", &owned_type, NULL, -EINVAL},
        {&counting, name, NULL, NULL, -EMSGSIZE},
        {&counting, "", &too_large_type, NULL, -EMSGSIZE},
        {&counting, NULL, NULL, &nowhere, -EINVAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        error = domus_process_spawn(stack, rows[i].process, rows[i].method, rows[i].type,
                                    "01234567", rows[i].options, &address);
        ck_assert_msg(error == rows[i].error, "row %zu: %d", i, error);
    }
    return 0;
}

DOMT_TEST(spawn_refuses_what_cannot_be_a_process)
{
    open_world_without_process(&spawner);
    domt_run_as_actor(&world, agent, try_wrong_spawns_of_process, NULL);
    ck_assert_int_eq(error, -EINVAL);
    ck_assert_uint_eq(inits, 0);
    close_world_of_process();
}

/* --- done ------------------------------------------------------------------------------------ */

static int sleep_then_be_done(domus_stack *stack, const domus_process_event *events, uint32_t count,
                              domus_process_output *out)
{
    if (count == 0)
        return domus_process_sleep(out, 1000 * MS, 1);
    ck_assert_int_eq(domus_process_done(out, &value_type, &sum), 0);
    ck_assert_int_eq(domus_process_done(out, &value_type, &sum), -EALREADY);
    return 0;
}

DOMT_TEST(process_that_is_done_sends_its_value_and_ends)
{
    step_does = sleep_then_be_done;
    open_world_with_process();
    for (uint64_t i = 1; i <= 3; i++)
        send_to_process(&number_type, i);
    domt_settle_world(&world);
    ck_assert_uint_eq(value, 6);
    ck_assert_ptr_eq(value_from.house, process.house);
    ck_assert_uint_eq(closes, 1);
    ck_assert_uint_eq(steps, 2);
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 0);
    ck_assert_uint_eq(DOMT_SUM(&world, waits_lost), 0);
    ck_assert_int_eq(domt_send_notice(domt_outside_manager(&world), process, &number_type, &sum),
                     -ESTALE);
    close_world_of_process();
}

/* --- without memory -------------------------------------------------------------------------- */

static int be_done_when_two_events_come(domus_stack *stack, const domus_process_event *events,
                                        uint32_t count, domus_process_output *out)
{
    return count < 2 ? 0 : domus_process_done(out, &value_type, &sum);
}

static unsigned heard;

static int count_failure_for_lack_of_memory(domus_stack *stack, void *self,
                                            const domus_answer *answer)
{
    /* The error is not -ENOMSG, the error of a handler that forgot to answer. */
    ck_assert(answer->error == -ENOMEM || answer->error == -ESTALE);
    heard++;
    return 0;
}

static int ask_process_with_owned_payload(domus_stack *stack, void *ret_asked)
{
    static const char payload[600];
    int result =
        domus_ask(stack, process, &owned_large_type, payload, count_failure_for_lack_of_memory);

    *(unsigned *)ret_asked = result == DOMUS_PARKED;
    return result;
}

/* Run a scenario in which the n-th allocation fails (and with `stay` all after it). Returns true if
 * no allocation failed. */
static bool run_process_without_allocation(int64_t n, int stay)
{
    domt_call order = {spawn_process_with_method, "count"};
    domt_call question;
    unsigned asked = 0;
    uint64_t number = 7;

    question = (domt_call){ask_process_with_owned_payload, &asked};
    inits = steps = closes = releases = owned = heard = 0;
    sum = value = 0;
    error = 1;
    open_world_without_process(&spawner);
    domi_memory_fail_allocation_after(n, stay);
    int sent = domt_send_notice(domt_outside_manager(&world), agent, &domt_call_type, &order);
    domt_settle_world(&world);
    if (sent == 0 && error == 0)
        sent = domt_send_notice(domt_outside_manager(&world), other, &domt_call_type, &question);
    domt_settle_world(&world);
    if (sent == 0 && error == 0)
        sent = domt_send_notice(domt_outside_manager(&world), process, &large_type, (char[600]){7});
    if (sent == 0 && error == 0)
        sent = domt_send_notice(domt_outside_manager(&world), process, &number_type, &number);
    domt_settle_world(&world);
    bool clean = value == 14;
    domi_memory_fail_allocation_after(-1, 0);
    if (error == 0)
        (void)domi_house_ask_to_stop(world.managers[0], process);
    domt_settle_world(&world);
    ck_assert_uint_eq(heard, asked);
    /* each ask was released, by the actor that gave it up or after the step */
    ck_assert_uint_eq(releases, asked);
    close_world_of_process();
    return clean;
}

DOMT_TEST(process_without_memory_ends_in_order)
{
    step_does = be_done_when_two_events_come;
    for (int stay = 0; stay < 2; stay++) {
        int64_t n = 0;
        while (!run_process_without_allocation(n, stay))
            ck_assert_int_lt(++n, 200);
        ck_assert_int_ge(n, 5); /* the sweep has let at least five allocations fail */
    }
}

/* --- messages -------------------------------------------------------------------------------- */

static int record_value_of_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    error = answer->error;
    value = error == 0 ? *(const uint64_t *)answer->payload : 0;
    return 0;
}

static int ask_process_with_number(domus_stack *stack, void *number)
{
    return domus_ask(stack, process, &large_type, number, record_value_of_answer);
}

static int keep_asks_and_reply_when_told(domus_stack *stack, const domus_process_event *events,
                                         uint32_t count, domus_process_output *out)
{
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_int_eq(events[i].type, DOMUS_PROCESS_MESSAGE);
        ck_assert_int_eq(events[i].error, 0);
        if (events[i].data_type == &number_type)
            return domus_kept_reply(stack, kept, &value_type, &sum);
        ck_assert_ptr_eq(events[i].sender.house, other.house);
    }
    return 0;
}

DOMT_TEST(messages_of_any_type_are_events_and_asks_are_answered_later)
{
    static char payload[600] = {5};

    step_does = keep_asks_and_reply_when_told;
    open_world_with_process();
    error = 1;
    domt_run_as_actor(&world, other, ask_process_with_number, payload);
    ck_assert_int_eq(error, 1);
    ck_assert_uint_eq(asks, 1);
    send_to_process(&number_type, 10);
    domt_settle_world(&world);
    ck_assert_int_eq(error, 0);
    ck_assert_uint_eq(value, 15);
    ck_assert_uint_eq(steps, 3);
    /* the process never answers this ask */
    domt_run_as_actor(&world, other, ask_process_with_number, payload);
    stop_process();
    ck_assert_int_eq(error, -ESTALE);
    close_world_of_process();
}

static int ignore_events_of_step(domus_stack *stack, const domus_process_event *events,
                                 uint32_t count, domus_process_output *out)
{
    ck_assert_uint_le(count, DOMUS_PROCESS_EVENTS_MAX);
    return 0;
}

DOMT_TEST(events_of_one_turn_come_in_one_step_and_a_full_one_is_made_at_once)
{
    step_does = ignore_events_of_step;
    open_world_with_process();
    for (uint64_t i = 0; i < 10; i++)
        send_to_process(&number_type, i);
    domt_settle_world(&world);
    ck_assert_uint_eq(steps, 2);
    ck_assert_uint_eq(counts[1], 10);
    for (uint64_t i = 0; i < 40; i++)
        send_to_process(i % 2 == 0 ? &number_type : &value_type, i);
    domt_settle_world(&world);
    ck_assert_uint_eq(steps, 5);
    ck_assert_uint_eq(counts[2], DOMUS_PROCESS_EVENTS_MAX);
    ck_assert_uint_eq(counts[3], DOMUS_PROCESS_EVENTS_MAX);
    ck_assert_uint_eq(counts[4], 8);
    ck_assert_uint_eq(sum, 45 + 780);
    stop_process();
    close_world_of_process();
}

/* --- yields ---------------------------------------------------------------------------------- */

static int reply_number(domus_stack *stack, void *context)
{
    return domus_reply(stack, &number_type, context);
}

static int return_error(domus_stack *stack, void *context)
{
    return -EIO;
}

static uint64_t tags;

static int yield_sleep_and_two_asks(domus_stack *stack, const domus_process_event *events,
                                    uint32_t count, domus_process_output *out)
{
    static uint64_t number = 1000;
    domt_call good = {reply_number, &number};
    domt_call bad = {return_error, NULL};

    for (uint32_t i = 0; i < count; i++) {
        ck_assert_int_eq(events[i].type, DOMUS_PROCESS_COMPLETE);
        ck_assert_int_eq(events[i].error, events[i].tag == 2 ? -EIO : 0);
        ck_assert((events[i].data != NULL) == (events[i].tag == 1));
        tags = tags * 10 + events[i].tag;
    }
    if (count != 0)
        return 0;
    ck_assert_int_eq(domus_process_ask(out, other, &domt_call_type, &good, 0, 1), 0);
    ck_assert_int_eq(domus_process_ask(out, other, &domt_call_type, &bad, 50 * MS, 2), 0);
    ck_assert_int_eq(domus_process_sleep(out, 3 * MS, 3), 0);
    return domus_process_sleep(out, 3 * MS, 4);
}

DOMT_TEST(yields_complete_with_their_tags_those_of_one_turn_together)
{
    step_does = yield_sleep_and_two_asks;
    open_world_without_process(&spawner);
    domt_run_as_actor(&world, agent, spawn_process_with_method, "count");
    ck_assert_uint_eq(steps, 2);
    ck_assert_uint_eq(counts[1], 2);
    ck_assert_uint_eq(sum, 1000);
    domt_pass_time(&world, 10 * MS);
    ck_assert_uint_eq(steps, 3);
    ck_assert_uint_eq(counts[2], 2);
    ck_assert(tags == 1234 || tags == 1243);
    stop_process();
    close_world_of_process();
}

static int yield_more_than_allowed(domus_stack *stack, const domus_process_event *events,
                                   uint32_t count, domus_process_output *out)
{
    if (count != 0)
        return 0;
    for (uint64_t i = 0; i < DOMUS_PROCESS_YIELDS_MAX - 1; i++)
        ck_assert_int_eq(domus_process_sleep(out, MS, i), 0);
    ck_assert_int_eq(domus_process_sleep(out, MS, DOMUS_PROCESS_TAG_MAX + 1), -EINVAL);
    ck_assert_int_eq(domus_process_sleep(out, MS, DOMUS_PROCESS_TAG_MAX), 0);
    ck_assert_int_eq(domus_process_sleep(out, MS, 1), -ENOBUFS);
    ck_assert_int_eq(domus_process_ask(out, other, &value_type, &sum, MS, 1), -ENOBUFS);
    return 0;
}

DOMT_TEST(step_yields_at_most_64_and_all_complete)
{
    step_does = yield_more_than_allowed;
    open_world_with_process();
    domt_pass_time(&world, 5 * MS);
    uint32_t events = 0;
    for (unsigned i = 0; i < steps; i++)
        events += counts[i];
    ck_assert_uint_eq(events, DOMUS_PROCESS_YIELDS_MAX);
    stop_process();
    close_world_of_process();
}

static int yield_endless_sleeps(domus_stack *stack, const domus_process_event *events,
                                uint32_t count, domus_process_output *out)
{
    ck_assert_int_eq(domus_process_sleep(out, 1000000 * MS, 1), 0);
    return domus_process_sleep(out, 1000000 * MS, 2);
}

DOMT_TEST(stopped_process_makes_no_further_step_and_drops_what_it_gathered)
{
    step_does = yield_endless_sleeps;
    open_world_with_process();
    /* the turn with 8 events takes more than one run */
    domi_manager_set_messages_per_run(world.managers[0], 4);
    for (uint64_t i = 0; i < 8; i++)
        send_to_process(&owned_type, i);
    (void)domi_manager_take_arrivals(world.managers[0]);
    (void)domt_run_state_queue(world.managers[0]);
    ck_assert_uint_eq(process.house->mail, 4);
    ck_assert_uint_eq(steps, 1);
    stop_process();
    ck_assert_uint_eq(steps, 1);
    ck_assert_uint_eq(releases, 8);
    ck_assert_uint_eq(closes, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 0);
    close_world_of_process();
}

/* --- what it shares --------------------------------------------------------------------------- */

static domi_groups groups;
static domus_group group;

static int link_to_other_and_join_group(domus_stack *stack)
{
    ck_assert_int_eq(domus_group_open(stack, "news", &group), 0);
    ck_assert_int_eq(domus_link_actor(stack, other, NULL), 0);
    return domus_group_join(stack, group);
}

static int publish_owned_payload(domus_stack *stack, void *unused)
{
    return domus_publish(stack, group, &owned_type, &(uint64_t){1});
}

DOMT_TEST(publication_that_no_step_has_seen_is_dropped_once)
{
    static const uint64_t key[2] = {1, 2};

    releases = 0;
    init_does = link_to_other_and_join_group;
    open_world_without_process(&spawner);
    ck_assert_int_eq(domi_groups_init(&groups, 8, 8, 2, 0, key), 0);
    for (uint32_t i = 0; i < 3; i++)
        world.managers[i]->directory.groups = &groups;
    domt_run_as_actor(&world, agent, spawn_process_with_method, "count");
    ck_assert_uint_eq(steps, 1);
    domt_send_function_to_call(domt_outside_manager(&world), agent, publish_owned_payload, NULL);
    domi_manager *home = world.managers[0];
    (void)domt_take_arrivals_and_timers(home);
    /* run the agent, then the shard: now the publication is in the mailbox of the process */
    for (uint32_t i = 0; i < 2; i++)
        (void)domi_house_run_and_settle(home,
                                        domi_queue_take_house(&home->schedule.ready[DOMUS_STATE]));
    ck_assert_int_eq(domi_house_ask_to_stop(home, other), 0);
    for (uint32_t i = 0; i < 3; i++)
        (void)domt_iterate_home(world.managers[1]);
    /* The process gathers the publication, and learns in the same turn of the end of `other`, to
     * which it is linked. */
    domt_settle_world(&world);
    ck_assert_uint_eq(closes, 1);
    ck_assert_uint_eq(steps, 1);
    ck_assert_uint_eq(releases, 1);
    close_world_of_process();
    domi_groups_fini(&groups);
}

static int become_behaviour_with_rules(domus_stack *stack, void *unused)
{
    return domus_become(stack, &supervisor);
}

DOMT_TEST(process_whose_spawner_got_rules_later_may_be_restarted)
{
    step_does = fail_step_when_number_comes;
    open_world_with_process();
    domt_run_as_actor(&world, agent, become_behaviour_with_rules, NULL);
    send_to_process(&number_type, 1);
    domt_settle_world(&world);
    close_world_of_process();
}

DOMT_SUITE(60)
