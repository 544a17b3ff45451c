/* The library releases once what timers, message objects, events of processes and asks of sequences
 * own, unless a handler took it. */
#include "house/family/life.h"
#include "tests/house/owning.h"

#include <domus/await.h>
#include <domus/message.h>
#include <domus/process.h>
#include <domus/supervise.h>
#include <domus/timer.h>

#define MS UINT64_C(1000000)

static domt_owning *const now = &domt_owned;

/* --- timers ---------------------------------------------------------------------------------- */

static domus_timer timer;
static bool takes;

static int arm_timer_that_fires_once(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_after(stack, MS, &domt_small, domt_owning_make_payload("once"), &timer),
                     0);
    return 0;
}

static int check_payload_of_single_timer(domus_stack *stack, const domt_owner *payload)
{
    ck_assert_str_eq(payload->text, "once");
    ck_assert_uint_eq(now->released, 0);
    if (takes) {
        ck_assert_int_eq(domus_take(stack), 0);
        ck_assert_int_eq(domus_take(stack), -EALREADY);
        domt_free_text(payload->text);
    }
    return 0;
}

static int cancel_timer(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_timer_cancel(stack, timer), 0);
    return 0;
}

DOMT_TEST(timer_that_fires_once_is_released_when_it_was_handled)
{
    for (int i = 0; i < 2; i++) {
        domt_owning_open_world();
        takes = i == 1;
        now->handle = check_payload_of_single_timer;
        domt_owning_run_in_actor(1, arm_timer_that_fires_once, NULL);
        domt_pass_time(&now->world, 3 * MS);
        ck_assert_uint_eq(now->handled, 1);
        ck_assert_uint_eq(now->released, !takes);
        /* the next timer is in the same memory, and its cancel releases the payload */
        domt_owning_run_in_actor(1, arm_timer_that_fires_once, NULL);
        domt_owning_run_in_actor(1, cancel_timer, NULL);
        ck_assert_uint_eq(now->released, takes ? 1 : 2);
        domt_owning_close_world();
    }
}

DOMT_TEST(timer_that_never_fires_is_released_by_its_cancel_or_the_stop)
{
    for (int i = 0; i < 2; i++) {
        domt_owning_open_world();
        domt_owning_run_in_actor(1, arm_timer_that_fires_once, NULL);
        if (i == 0)
            domt_owning_run_in_actor(1, cancel_timer, NULL);
        else
            domt_owning_stop_actor(now->actors[1]);
        ck_assert_uint_eq(now->released, 1);
        domt_owning_close_world();
    }
}

static int arm_periodic_timer(domus_stack *stack, void *fixed_delay)
{
    if (fixed_delay != NULL)
        ck_assert_int_eq(
            domus_repeat(stack, MS, &domt_small, domt_owning_make_payload("tick"), &timer), 0);
    else
        ck_assert_int_eq(
            domus_every(stack, MS, &domt_small, domt_owning_make_payload("tick"), &timer), 0);
    return 0;
}

static int check_payload_of_tick(domus_stack *stack, const domt_owner *payload)
{
    ck_assert_str_eq(payload->text, "tick");
    /* -EPERM: each tick of the timer shows the same payload again */
    ck_assert_int_eq(domus_take(stack), -EPERM);
    if (now->handled == 3)
        ck_assert_int_eq(domus_timer_cancel(stack, timer), 0);
    ck_assert_str_eq(payload->text, "tick");
    return 0;
}

DOMT_TEST(periodic_timer_keeps_what_it_owns_until_it_is_cancelled)
{
    for (uintptr_t i = 0; i < 2; i++) {
        domt_owning_open_world();
        now->handle = check_payload_of_tick;
        domt_owning_run_in_actor(1, arm_periodic_timer, (void *)i);
        domt_pass_time(&now->world, 6 * MS);
        ck_assert_uint_eq(now->handled, 3);
        ck_assert_uint_eq(now->released, 1);
        domt_owning_close_world();
    }
}

static int arm_timers_until_refused(domus_stack *stack, void *unused)
{
    domus_timer armed[2];

    ck_assert_int_eq(
        domus_after(stack, MS, &domt_small, domt_owning_make_payload("mine"), &armed[0]), 0);
    char *text = ((domt_owner *)domt_owning_make_payload("refused"))->text;
    ck_assert_int_eq(domus_after(stack, MS, &domt_small, &text, &armed[1]), -ENOBUFS);
    domt_free_text(text);
    return domus_timer_cancel(stack, armed[0]);
}

DOMT_TEST(timer_that_is_refused_leaves_the_payload_to_the_caller)
{
    domt_owning_open_world();
    now->world.config.scheduler.timers_max = 1;
    domt_owning_run_in_actor(1, arm_timers_until_refused, NULL);
    ck_assert_uint_eq(now->released, 1);
    domt_owning_close_world();
}

/* --- messages as objects --------------------------------------------------------------------- */

static domus_message *object;

static int make_message_object(domus_stack *stack, void *type)
{
    ck_assert_int_eq(domus_message_new(stack, type, &object), 0);
    domt_owner *owner = domus_message_payload(object);
    ck_assert_ptr_null(owner->text);
    return 0;
}

static int fill_message_object(domus_stack *stack, void *text)
{
    memcpy(domus_message_payload(object), domt_owning_make_payload(text),
           domus_message_type(object)->size);
    return 0;
}

static int try_to_send_object_to_nobody(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_message_send(stack, (domus_address){NULL, 0}, object), -ESTALE);
    return 0;
}

static int send_object_to_actor_2(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_message_send(stack, now->actors[2], object), 0);
    return 0;
}

static int free_message_object(domus_stack *stack, void *unused)
{
    domus_message_free(stack, object);
    return 0;
}

DOMT_TEST(message_owns_its_payload_until_it_is_sent_or_freed)
{
    for (unsigned i = 0; i < 3; i++) {
        domt_owning_open_world();
        domt_owning_run_in_actor(1, make_message_object, domt_sizes[i]);
        /* nothing was written into this message object, so it owns nothing */
        domt_owning_run_in_actor(1, free_message_object, NULL);
        domt_owning_run_in_actor(1, make_message_object, domt_sizes[i]);
        domt_owning_run_in_actor(1, fill_message_object, "freed");
        domt_owning_run_in_actor(1, try_to_send_object_to_nobody, NULL);
        ck_assert_uint_eq(now->released, 0);
        domt_owning_run_in_actor(1, free_message_object, NULL);
        ck_assert_uint_eq(now->released, 1);
        domt_owning_run_in_actor(1, make_message_object, domt_sizes[i]);
        domt_owning_run_in_actor(1, fill_message_object, "sent");
        domt_owning_run_in_actor(1, try_to_send_object_to_nobody, NULL);
        domt_owning_run_in_actor(1, send_object_to_actor_2, NULL);
        ck_assert_uint_eq(now->handled, 1);
        ck_assert_uint_eq(now->released, 2);
        domt_owning_close_world();
    }
}

static int take_payload_or_message_object(domus_stack *stack, const domt_owner *payload)
{
    if (domus_self(stack).house == now->actors[2].house)
        return 0;
    if (takes) {
        ck_assert_int_eq(domus_take(stack), 0);
        ck_assert_int_eq(domus_message_take(stack, &object), -EALREADY);
        domt_free_text(payload->text);
        return 0;
    }
    ck_assert_int_eq(domus_message_take(stack, &object), 0);
    ck_assert_int_eq(domus_take(stack), -EINVAL);
    return 0;
}

DOMT_TEST(taken_message_is_released_by_its_last_owner)
{
    /* in case 0 the message was taken as an object and is freed, in case 1 it is sent on, and in
     * case 2 only its payload was taken */
    for (unsigned i = 0; i < 3; i++) {
        domt_owning_open_world();
        takes = i == 2;
        now->handle = take_payload_or_message_object;
        domt_owning_send_notice(1, &domt_middle, "object");
        ck_assert_uint_eq(now->released, 0);
        if (i == 0)
            domt_owning_run_in_actor(1, free_message_object, NULL);
        if (i == 1)
            domt_owning_run_in_actor(1, try_to_send_object_to_nobody, NULL);
        if (i == 1)
            domt_owning_run_in_actor(1, send_object_to_actor_2, NULL);
        ck_assert_uint_eq(now->released, !takes);
        domt_owning_close_world();
    }
}

/* --- processes ------------------------------------------------------------------------------- */

static domus_address process;
static bool yields;
static unsigned steps, events_seen;

static int take_events_of_step(domus_stack *stack, void *self, const domus_process_event *events,
                               uint32_t count, domus_process_output *out)
{
    domus_process_event stranger = {.type = DOMUS_PROCESS_MESSAGE};

    steps++;
    ck_assert_int_eq(domus_process_take(out, &stranger), -EINVAL);
    for (uint32_t i = 0; i < count; i++) {
        const domus_process_event *event = &events[i];
        events_seen++;
        if (event->data == NULL) {
            ck_assert_int_eq(domus_process_take(out, event), -EINVAL);
            continue;
        }
        char *text = ((const domt_owner *)event->data)->text;
        ck_assert_str_eq(text, event->type == DOMUS_PROCESS_COMPLETE ? "pong" : "hello");
        if (!takes)
            continue;
        ck_assert_int_eq(domus_process_take(out, event), 0);
        ck_assert_int_eq(domus_process_take(out, event), -EALREADY);
        domt_free_text(text);
    }
    if (yields && count != 0) {
        yields = false;
        ck_assert_int_eq(domus_process_ask(out, now->actors[2], &domt_small,
                                           domt_owning_make_payload("ping"), 0, 1),
                         0);
        ck_assert_int_eq(domus_process_sleep(out, MS, 2), 0);
    }
    return 0;
}

static const domus_process stepping = {.name = "stepping", .step = take_events_of_step};

static int spawn_process(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_process_spawn(stack, &stepping, NULL, NULL, NULL, NULL, &process), 0);
    return 0;
}

static int ask_process_with_text(domus_stack *stack, void *type)
{
    return domus_ask(stack, process, type, domt_owning_make_payload("hello"),
                     domt_owning_count_and_check_answer);
}

static int send_text_to_process(domus_stack *stack, void *type)
{
    ck_assert_int_eq(domus_notice(stack, process, type, domt_owning_make_payload("hello")), 0);
    return 0;
}

static int reply_pong(domus_stack *stack, const domt_owner *asked_)
{
    return domus_reply(stack, &domt_large, domt_owning_make_payload("pong"));
}

DOMT_TEST(event_of_a_process_is_released_after_its_step_unless_taken)
{
    for (int i = 0; i < 2; i++) {
        domt_owning_open_world();
        now->handle = reply_pong;
        steps = events_seen = 0;
        takes = i == 1;
        domt_owning_run_in_actor(1, spawn_process, NULL);
        yields = true;
        domt_owning_run_in_actor(1, send_text_to_process, &domt_small);
        /* the events of the answer and of the end of the sleep come */
        domt_pass_time(&now->world, 3 * MS);
        ck_assert_uint_eq(events_seen, 3);
        ck_assert_uint_eq(now->freed, takes ? 2 : 0);
        /* the payload of the ask that the process sent is released in any case */
        ck_assert_uint_eq(now->released, takes ? 1 : 3);
        domt_owning_run_in_actor(1, send_text_to_process, &domt_middle);
        domt_owning_run_in_actor(1, ask_process_with_text, &domt_large);
        ck_assert_uint_eq(events_seen, 5);
        ck_assert_uint_eq(now->freed, takes ? 4 : 0);
        ck_assert_uint_eq(now->heard, 0);
        domt_owning_stop_actor(process);
        ck_assert_uint_eq(now->heard, 1);
        domt_owning_close_world();
    }
}

DOMT_TEST(event_that_no_step_has_seen_is_released_when_the_process_stops)
{
    domi_manager *home;

    domt_owning_open_world();
    takes = false;
    steps = events_seen = 0;
    domt_owning_run_in_actor(1, spawn_process, NULL);
    home = process.house->home;
    for (int i = 0; i <= 2; i += 2)
        ck_assert_int_eq(domt_send_notice(domt_outside_manager(&now->world), process, domt_sizes[i],
                                          domt_owning_make_payload("hello")),
                         0);
    (void)domt_iterate_home(home); /* the process gathers the publication, but makes no step */
    domt_owning_stop_actor(process);
    ck_assert_uint_eq(now->released, 2);
    domt_owning_close_world();
}

/* --- asks of sequences ----------------------------------------------------------------------- */

static int slept;

DOMUS_SEQUENCE(ask, char)
{
    DOMUS_BEGIN;
    DOMUS_SLEEP(5 * MS);
    slept = answer->error;
    DOMUS_ASK(now->actors[1], &domt_small, domt_owning_make_payload("asked"));
    DOMUS_END;
}

DOMUS_SEQUENCE(ask_within, char)
{
    DOMUS_BEGIN;
    DOMUS_SLEEP(5 * MS);
    slept = answer->error;
    DOMUS_ASK_WITHIN(now->actors[1], &domt_middle, domt_owning_make_payload("asked"), 2 * MS);
    DOMUS_END;
}

static const domus_type ask_type = {.name = "ask"};
static const domus_type ask_within_type = {.name = "ask within"};

static const domus_behaviour sequences = {
    .name = "sequences",
    .on =
        (const domus_on[]){DOMUS_ON(&ask_type, ask), DOMUS_ON(&ask_within_type, ask_within), {0}}};

static domus_address begin_sequence_that_asks(const domus_type *type)
{
    domus_address one =
        domt_spawn(domt_outside_manager(&now->world), now->world.managers[0], &sequences, NULL);

    slept = 1;
    ck_assert_int_eq(domt_send_notice(domt_outside_manager(&now->world), one, type, NULL), 0);
    domt_settle_world(&now->world);
    return one;
}

DOMT_TEST(ask_of_a_sequence_is_released_once_whether_it_could_begin_or_not)
{
    const domus_type *const types[] = {&ask_type, &ask_within_type};

    for (int i = 0; i < 4; i++) {
        bool stops = i >= 2;
        domt_owning_open_world();
        domus_address one = begin_sequence_that_asks(types[i % 2]);
        if (stops)
            domt_owning_stop_actor(one);
        else
            domt_pass_time(&now->world, 10 * MS);
        ck_assert_int_eq(slept, stops ? -ECANCELED : 0);
        ck_assert_uint_eq(now->made, 1);
        ck_assert_uint_eq(now->handled, !stops);
        ck_assert_uint_eq(now->released, 1);
        domt_owning_close_world();
    }
}

/* --- what owns nothing that can be taken ------------------------------------------------------ */

static int tried;

static int try_to_take_in_mount(domus_stack *stack, void *self)
{
    ck_assert_int_eq(domus_take(stack), -EINVAL);
    tried++;
    return domus_watch_actor(stack, now->actors[2], NULL);
}

static int try_to_take_event_of_end(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(domus_take(stack), -EPERM); /* -EPERM: the payload belongs to the watch */
    tried++;
    return 0;
}

static const domus_behaviour trying = {
    .name = "trying",
    .on = (const domus_on[]){{&domus_down_type, try_to_take_event_of_end, 0}, {0}},
    .on_mount = try_to_take_in_mount};

DOMT_TEST(there_is_nothing_to_take_without_a_message_or_from_the_librarys_events)
{
    domt_owning_open_world();
    tried = 0;
    (void)domt_spawn(domt_outside_manager(&now->world), now->world.managers[0], &trying, NULL);
    domt_settle_world(&now->world);
    ck_assert_int_eq(tried, 1);
    domt_owning_stop_actor(now->actors[2]);
    ck_assert_int_eq(tried, 2);
    domt_owning_close_world();
}

DOMT_SUITE(60)
