/* house/family/process.c: processes begin once, end once, and fail like other actors. */
#include "base/memory.h"
#include "tests/house/processing.h"

/* --- begin and end --------------------------------------------------------------------------- */

DOMT_TEST(process_is_begun_on_its_own_turn_and_closed_once)
{
    open_process();
    domt_pass(&world, 20 * MS);
    ck_assert_uint_eq(steps, 1);
    stop_process();
    ck_assert_uint_eq(closes, 1);
    close_world();
    ck_assert_uint_eq(closes, 1);
}

DOMT_TEST(process_that_lives_to_the_end_of_the_system_is_closed_too)
{
    open_process();
    send(&owned_type, 1);
    domt_world_end(&world);
    ck_assert_uint_eq(closes, 1);
    ck_assert_uint_eq(releases, 1);
}

DOMT_TEST(method_that_is_not_known_is_a_failure_of_the_actor)
{
    open_world(&spawner);
    domt_do(&world, agent, spawn_in, "divide");
    ck_assert_int_eq(error, 0);
    ck_assert_uint_eq(inits, 1);
    ck_assert_uint_eq(closes, 1);
    ck_assert_uint_eq(steps, 0);
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 1);
    ck_assert_int_eq(domi_house_stop(world.managers[0], process), -ESTALE);
    close_world();
}

static int fail_at_first(domus_stack *stack)
{
    return inits == 1 ? -EAGAIN : 0;
}

static int fail_number(domus_stack *stack, const domus_process_event *events, uint32_t count,
                       domus_process_output *out)
{
    return count != 0 && events[0].data_type == &number_type ? -EIO : 0;
}

DOMT_TEST(restart_closes_and_begins_again_with_the_same_input)
{
    init_does = fail_at_first;
    step_does = fail_number;
    open_world(&supervisor);
    domt_do(&world, agent, spawn_in, "count");
    ck_assert_uint_eq(inits, 2);
    ck_assert_uint_eq(closes, 1);
    send(&number_type, 1);
    domt_settle(&world);
    ck_assert_uint_eq(inits, 3);
    ck_assert_uint_eq(closes, 2);
    send(&large_type, 1);
    domt_settle(&world);
    ck_assert_uint_eq(steps, 4); /* first, the one that fails, first, large */
    stop_process();
    close_world();
}

DOMT_TEST(error_of_a_step_ends_the_process_unless_somebody_restarts_it)
{
    step_does = fail_number;
    open_process();
    send(&number_type, 1);
    domt_settle(&world);
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 1);
    ck_assert_uint_eq(closes, 1);
    ck_assert_int_eq(domi_house_stop(world.managers[0], process), -ESTALE);
    close_world();
}

static int spawn_wrongly(domus_stack *stack, void *context)
{
    static const domus_process no_step = {.name = "no step"};
    static const domus_process huge = {.name = "huge", .step = step, .state_size = 1 << 21};
    char name[DOMUS_PROCESS_METHOD_MAX + 2];
    domus_address address;

    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    error = domus_process_spawn(stack, &no_step, "", NULL, NULL, NULL, &address);
    ck_assert_int_eq(error, -EINVAL);
    error = domus_process_spawn(stack, &huge, "", NULL, NULL, NULL, &address);
    ck_assert_int_eq(error, -EINVAL);
    error = domus_process_spawn(stack, &counting, "", &owned_type, "01234567", NULL, &address);
    ck_assert_int_eq(error, -EINVAL);
    error = domus_process_spawn(stack, &counting, name, NULL, NULL, NULL, &address);
    ck_assert_int_eq(error, -EMSGSIZE);
    error = domus_process_spawn(stack, &counting, "", &too_large_type, "", NULL, &address);
    ck_assert_int_eq(error, -EMSGSIZE);
    error = domus_process_spawn(stack, &counting, NULL, NULL, NULL,
                                &(domus_spawn_options){.placement = DOMUS_ON_THREAD, .thread = 7},
                                &address);
    ck_assert_int_eq(error, -EINVAL);
    return 0;
}

DOMT_TEST(spawn_refuses_what_cannot_be_a_process)
{
    open_world(&spawner);
    domt_do(&world, agent, spawn_wrongly, NULL);
    ck_assert_int_eq(error, -EINVAL);
    ck_assert_uint_eq(inits, 0);
    close_world();
}

/* --- done ------------------------------------------------------------------------------------ */

static int be_done(domus_stack *stack, const domus_process_event *events, uint32_t count,
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
    step_does = be_done;
    open_process();
    for (uint64_t i = 1; i <= 3; i++)
        send(&number_type, i);
    domt_settle(&world);
    ck_assert_uint_eq(value, 6);
    ck_assert_ptr_eq(value_from.house, process.house);
    ck_assert_uint_eq(closes, 1);
    ck_assert_uint_eq(steps, 2);
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 0);
    ck_assert_uint_eq(DOMT_SUM(&world, waits_lost), 0);
    ck_assert_int_eq(domt_notice(domt_outside(&world), process, &number_type, &sum), -ESTALE);
    close_world();
}

/* --- without memory -------------------------------------------------------------------------- */

static int try_to_be_done(domus_stack *stack, const domus_process_event *events, uint32_t count,
                          domus_process_output *out)
{
    return count < 2 ? 0 : domus_process_done(out, &value_type, &sum);
}

static unsigned heard;

static int hear(domus_stack *stack, void *self, const domus_answer *answer)
{
    /* The error is not -ENOMSG, because no handler forgot to answer. */
    ck_assert(answer->error == -ENOMEM || answer->error == -ESTALE);
    heard++;
    return 0;
}

static int ask_owned(domus_stack *stack, void *ret_asked)
{
    static const char payload[600];
    int result = domus_ask(stack, process, &owned_large_type, payload, hear);

    *(unsigned *)ret_asked = result == DOMUS_PARKED;
    return result;
}

/* The n-th allocation fails (and with `stay` all after it). True: none did. */
static bool run_without_memory(int64_t n, int stay)
{
    domt_call order = {spawn_in, "count"};
    domt_call question;
    unsigned asked = 0;
    uint64_t number = 7;

    question = (domt_call){ask_owned, &asked};
    inits = steps = closes = releases = owned = heard = 0;
    sum = value = 0;
    error = 1;
    open_world(&spawner);
    domi_memory_fail_after(n, stay);
    int sent = domt_notice(domt_outside(&world), agent, &domt_call_type, &order);
    domt_settle(&world);
    if (sent == 0 && error == 0)
        sent = domt_notice(domt_outside(&world), other, &domt_call_type, &question);
    domt_settle(&world);
    if (sent == 0 && error == 0)
        sent = domt_notice(domt_outside(&world), process, &large_type, (char[600]){7});
    if (sent == 0 && error == 0)
        sent = domt_notice(domt_outside(&world), process, &number_type, &number);
    domt_settle(&world);
    bool clean = value == 14;
    domi_memory_fail_after(-1, 0);
    if (error == 0)
        (void)domi_house_stop(world.managers[0], process);
    domt_settle(&world);
    ck_assert_uint_eq(heard, asked);
    ck_assert_uint_eq(releases, asked); /* by whom it was given up, or after the step */
    close_world();
    return clean;
}

DOMT_TEST(process_without_memory_ends_in_order)
{
    step_does = try_to_be_done;
    for (int stay = 0; stay < 2; stay++) {
        int64_t n = 0;
        while (!run_without_memory(n, stay))
            ck_assert_int_lt(++n, 200);
        ck_assert_int_ge(n, 5); /* the sweep has met allocations */
    }
}

DOMT_SUITE(60)
