/* runtime/outside/outsider.c: a foreign thread that is an actor (domus/outsider.h) sends, asks,
 * answers, watches, and receives by choice. */
#include "tests/runtime/outsiders.h"

#include <errno.h>

static domus_system *system_;
static domus_outsider *self_;
static domus_address peer;

static void start_system_with_outsider(uint32_t threads)
{
    domus_config config = domt_config_of_threads(threads);

    config.detached.threads_max = 4;
    config.scheduler.mailbox_max = 16;
    config.scheduler.conversations_max = 8;
    config.shutdown.actor_timeout_ns = 300 * DOMT_MS;
    system_ = domt_start_system(&config);
    peer = domt_spawn(system_, 0, &domt_peer, NULL);
    self_ = domt_attach_outsider(system_);
}

static void end_system_with_outsider(void)
{
    ck_assert_int_eq(domus_outside_detach(self_), 0);
    domt_end_system(system_);
}

/* Ask the peer and wait for the answer. All asks and notices that the peer has sent before then
 * wait in the outsider's mailbox. */
static void wait_until_peer_has_sent_all(void)
{
    uint32_t number = 0;
    ck_assert_int_eq(domus_outsider_ask(self_, peer, &domt_number_type, &number, 0, NULL), 0);
}

DOMT_TEST(outsider_and_actor_answer_each_other)
{
    uint32_t number = 7;
    uint32_t answer = 0;
    domus_outside_reply reply = {.buffer = &answer, .size = sizeof answer};
    domus_outside_message message;

    start_system_with_outsider(2);
    ck_assert_int_eq(domus_outsider_notice(self_, peer, &domt_number_type, &number), 0);
    ck_assert_uint_eq(domt_receive_number(self_, &domt_number_type, &message), 8);
    ck_assert_int_eq(message.kind, DOMUS_OUTSIDE_NOTICE);
    ck_assert(domus_address_equals(message.sender, peer));
    ck_assert_int_eq(domus_outsider_reply(self_, &domt_number_type, &number), -EINVAL);

    ck_assert_int_eq(domus_outsider_ask(self_, peer, &domt_number_type, &number, 0, &reply), 0);
    ck_assert_uint_eq(answer, 8);
    ck_assert_ptr_eq(reply.type, &domt_number_type);
    ck_assert_int_eq(domus_outsider_ask(self_, peer, &domt_other_type, &number, 0, &reply), -EDOM);

    domt_send_poke_to_peer(system_, peer, domus_outsider_address(self_), 40, 1, true);
    ck_assert_uint_eq(domt_receive_number(self_, &domt_number_type, &message), 40);
    ck_assert_int_eq(message.kind, DOMUS_OUTSIDE_ASK);
    ck_assert(domus_address_equals(message.sender, peer));
    answer = 1000;
    ck_assert_int_eq(domus_outsider_reply(self_, &domt_number_type, &answer), 0);
    ck_assert_int_eq(domus_outsider_reply(self_, &domt_number_type, &answer), -EALREADY);
    DOMT_WAIT_FOR(10, atomic_load(&domt_answers) == 1);
    ck_assert_uint_eq(atomic_load(&domt_answer_sum), 1000);
    ck_assert_int_eq(atomic_load(&domt_answer_error), 0);
    end_system_with_outsider();
}

DOMT_TEST(ask_that_is_failed_or_left_or_not_answered_in_time_fails)
{
    domus_outside_message message;

    start_system_with_outsider(1);
    domt_send_poke_to_peer(system_, peer, domus_outsider_address(self_), 1, 1, true);
    (void)domt_receive_number(self_, &domt_number_type, &message);
    ck_assert_int_eq(domus_outsider_fail(self_, -EPROTO), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_answers) == 1);
    ck_assert_int_eq(atomic_load(&domt_answer_error), -EPROTO);

    domt_send_poke_to_peer(system_, peer, domus_outsider_address(self_), 2, 1, true);
    (void)domt_receive_number(self_, &domt_number_type, &message);
    ck_assert_int_eq(domus_outside_receive(self_, NULL, 0, &message), -ETIMEDOUT);
    DOMT_WAIT_FOR(10, atomic_load(&domt_answers) == 2);
    ck_assert_int_eq(atomic_load(&domt_answer_error), -ENOMSG);

    domt_send_poke_to_peer(system_, peer, domus_outsider_address(self_), 3, 2, true);
    wait_until_peer_has_sent_all();
    (void)domt_receive_number(self_, &domt_number_type, &message);
    /* The detach fails one ask that the thread has received and one that waits; two threads do
     * that, so either may fail first. */
    ck_assert_int_eq(domus_outside_detach(self_), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_answers) == 4);
    ck_assert_uint_eq(atomic_load(&domt_stale_answers), 1);
    self_ = domt_attach_outsider(system_);
    end_system_with_outsider();
}

static bool is_even_number(const void *self, const void *frame, const domus_type *type,
                           const void *payload)
{
    ck_assert_ptr_null(frame);
    /* `self` is the context of the outsider, which this test has not set */
    ck_assert_ptr_null(*(void *const *)self);
    return *(const uint32_t *)payload % 2 == 0;
}

DOMT_TEST(receive_takes_by_choice_and_leaves_the_rest_in_order)
{
    const domus_type *const numbers[] = {&domt_number_type, NULL};
    const domus_type *const others[] = {&domt_other_type, NULL};
    const domus_pattern even = {.types = numbers, .matches = is_even_number};
    const domus_pattern other = {.types = others};
    domus_outside_message message;

    start_system_with_outsider(2);
    domt_send_poke_to_peer(system_, peer, domus_outsider_address(self_), 1, 5, false);
    domt_send_poke_to_peer(system_, peer, domus_outsider_address(self_), 10, 2, true);
    wait_until_peer_has_sent_all();
    ck_assert_int_eq(domus_outside_receive(self_, &other, 0, &message), -ETIMEDOUT);
    ck_assert_int_eq(domus_outside_receive(self_, &even, 0, &message), 0);
    /* an ask is received before notices that came earlier */
    ck_assert_uint_eq(*(const uint32_t *)message.payload, 10);
    ck_assert_int_eq(domus_outside_receive(self_, &even, 0, &message), 0);
    ck_assert_uint_eq(*(const uint32_t *)message.payload, 2);
    ck_assert_int_eq(domus_outside_receive(self_, &even, 0, &message), 0);
    ck_assert_uint_eq(*(const uint32_t *)message.payload, 4);
    ck_assert_int_eq(domus_outside_receive(self_, &even, 0, &message), -ETIMEDOUT);
    const uint32_t rest[] = {11, 1, 3, 5};
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(domt_receive_number(self_, &domt_number_type, &message), rest[i]);
    ck_assert_int_eq(domus_outside_receive(self_, NULL, 0, &message), -ETIMEDOUT);
    end_system_with_outsider();
}

/* A receive does not look again at messages that it has skipped, but looks at messages that come
 * while it waits. */
DOMT_TEST(receive_that_waits_wakes_for_what_it_wants)
{
    const domus_type *const types[] = {&domt_number_type, NULL};
    const domus_pattern even = {.types = types, .matches = is_even_number};
    domus_outside_message message;

    start_system_with_outsider(2);
    for (uint32_t i = 0; i < 2000; i++) {
        domt_send_poke_to_peer(system_, peer, domus_outsider_address(self_), 1, 2, i % 2 != 0);
        ck_assert_int_eq(domus_outside_receive(self_, &even, DOMUS_FOR_EVER, &message), 0);
        ck_assert_uint_eq(domt_receive_number(self_, &domt_number_type, &message), 1);
    }
    end_system_with_outsider();
}

DOMT_TEST(receive_is_never_early_and_never_late)
{
    domus_outside_message message;

    start_system_with_outsider(1);
    for (uint64_t ms = 0; ms < 30; ms += 7) {
        uint64_t before_ns = domt_now_ns();
        ck_assert_int_eq(domus_outside_receive(self_, NULL, ms * DOMT_MS, &message), -ETIMEDOUT);
        ck_assert_uint_ge(domt_now_ns() - before_ns, ms * DOMT_MS);
        ck_assert_uint_lt(domt_now_ns() - before_ns, (ms + 5000) * DOMT_MS);
    }
    uint32_t number = 1;
    domus_address gone = domt_spawn(system_, 0, &domt_peer, NULL);
    /* the other outsider answers nothing, because its thread does not receive */
    domus_outsider *other = domt_attach_outsider(system_);
    ck_assert_int_eq(domus_outsider_ask(self_, domus_outsider_address(other), &domt_number_type,
                                        &number, 20 * DOMT_MS, NULL),
                     -ETIMEDOUT);
    ck_assert_int_eq(domus_outside_stop(system_, gone), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_stopped) == 1);
    ck_assert_int_eq(domus_outsider_ask(self_, gone, &domt_number_type, &number, 0, NULL), -ESTALE);
    ck_assert_int_eq(domus_outsider_notice(self_, gone, &domt_number_type, &number), -ESTALE);
    ck_assert_int_eq(domus_outside_detach(other), 0);
    end_system_with_outsider();
}

static const domus_type tick_type = {.name = "tick"};

static int arm_ticks_in_turn(domus_stack *stack, void *count)
{
    for (uint32_t i = 0; i < *(const uint32_t *)count; i++)
        ck_assert_int_eq(domus_after(stack, DOMT_MS, &tick_type, NULL, NULL), 0);
    return 0;
}

/* Wait until all timers of the outsider have fired, in a receive that takes no message. */
static void wait_until_all_ticks_came(domus_outsider *outsider)
{
    const domus_type *const types[] = {NULL};
    const domus_pattern nothing = {.types = types};
    domus_outside_message message;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(domus_outside_receive(outsider, &nothing, 20 * DOMT_MS, &message),
                         -ETIMEDOUT);
}

DOMT_TEST(events_that_are_not_received_are_bounded_and_those_of_watches_are_not_lost)
{
    const domus_outsider_options options = {.mailbox_max = 4};
    domus_outside_message message;
    domus_outsider *few;
    uint32_t ticks = 7;

    start_system_with_outsider(1);
    ck_assert_int_eq(domus_outside_attach(system_, &options, &few), 0);
    domus_address gone = domt_spawn(system_, 0, &domt_peer, NULL);
    ck_assert_int_eq(domus_outsider_watch(few, gone, NULL), 0);
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(domus_outsider_act(few, arm_ticks_in_turn, &ticks), 0);
        wait_until_all_ticks_came(few);
        if (round == 0) {
            ck_assert_int_eq(domus_outside_stop(system_, gone), 0);
            DOMT_WAIT_FOR(10, atomic_load(&domt_stopped) == 1);
            wait_until_all_ticks_came(few);
        }
        for (uint32_t i = 0; i < 4; i++) {
            ck_assert_int_eq(domus_outside_receive(few, NULL, 0, &message), 0);
            ck_assert_ptr_eq(message.type, &tick_type);
        }
        if (round == 0) {
            ck_assert_int_eq(domus_outside_receive(few, NULL, 0, &message), 0);
            ck_assert_ptr_eq(message.type, &domus_down_type);
        }
        ck_assert_int_eq(domus_outside_receive(few, NULL, 0, &message), -ETIMEDOUT);
    }
    ck_assert_int_eq(domus_outside_detach(few), 0);
    end_system_with_outsider();
}

DOMT_TEST(answers_of_many_asks_come_with_their_tags)
{
    domus_outside_message message;
    uint64_t tags = 0;
    uint32_t number = 0;

    start_system_with_outsider(2);
    for (uint32_t i = 0; i < 8; i++) {
        number = i;
        ck_assert_int_eq(domus_outsider_ask_add(self_, peer,
                                                i == 3 ? &domt_other_type : &domt_number_type,
                                                &number, 0, i),
                         0);
    }
    ck_assert_int_eq(domus_outsider_ask_add(self_, peer, &domt_number_type, &number, 0, 9),
                     -ENOBUFS);
    /* Asks whose answers wait to be received count, too; the answers have come before the answer to
     * this ask. */
    ck_assert_int_eq(domus_outsider_ask(self_, peer, &domt_number_type, &number, 0, NULL), 0);
    ck_assert_int_eq(domus_outsider_ask_add(self_, peer, &domt_number_type, &number, 0, 9),
                     -ENOBUFS);
    for (uint32_t i = 0; i < 8; i++) {
        ck_assert_int_eq(domus_outside_receive(self_, NULL, DOMUS_FOR_EVER, &message), 0);
        ck_assert_int_eq(message.kind, DOMUS_OUTSIDE_ANSWER);
        tags |= UINT64_C(1) << message.tag;
        if (message.tag == 3) {
            ck_assert_ptr_eq(message.type, &domus_outsider_failed_type);
            ck_assert_int_eq(*(const int *)message.payload, -EDOM);
            ck_assert_ptr_null(message.sender.house);
            ck_assert_int_eq(domus_outsider_take(self_), -EINVAL);
        } else {
            ck_assert_ptr_eq(message.type, &domt_number_type);
            ck_assert_uint_eq(*(const uint32_t *)message.payload, message.tag + 1);
            ck_assert(domus_address_equals(message.sender, peer));
        }
    }
    ck_assert_uint_eq(tags, 0xff);
    for (uint32_t i = 0; i < 20; i++) {
        ck_assert_int_eq(domus_outsider_ask_add(self_, peer, &domt_number_type, &i, 0, i), 0);
        ck_assert_uint_eq(domt_receive_number(self_, &domt_number_type, &message), i + 1);
    }
    ck_assert_int_eq(domus_outside_receive(self_, NULL, 0, &message), -ETIMEDOUT);
    end_system_with_outsider();
}

DOMT_TEST(payloads_that_own_something_are_released_once)
{
    domus_outside_message message;
    domus_outside_reply reply = {0};
    uint32_t number = 0;
    uint64_t taken = 0;

    start_system_with_outsider(1);
    domus_address here = domus_outsider_address(self_);
    /* A notice to oneself is released by the next receive, or belongs to the thread that takes
     * it. */
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(domus_outsider_notice(self_, here, &domt_owner_type, &number), 0);
        (void)domt_receive_number(self_, &domt_owner_type, &message);
        if (i == 0) {
            ck_assert_int_eq(domus_outsider_take(self_), 0);
            ck_assert_int_eq(domus_outsider_take(self_), -EALREADY);
            taken++;
        }
    }
    ck_assert_uint_eq(atomic_load(&domt_released), 0);
    /* an answer that does not fit into the buffer is released */
    ck_assert_int_eq(domus_outsider_ask(self_, peer, &domt_other_type, &number, 0, &reply),
                     -EMSGSIZE);
    ck_assert_uint_eq(atomic_load(&domt_released), 1);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(domus_outsider_ask_add(self_, peer, &domt_other_type, &number, 0, 1), 0);
        (void)domt_receive_number(self_, &domt_owner_type, &message);
        if (i == 0)
            ck_assert_int_eq(domus_outsider_take(self_), 0);
    }
    /* the notice and one answer were released; the other answer is still the received message */
    ck_assert_uint_eq(atomic_load(&domt_released), 3);
    /* An ask that fails releases its payload, but a notice that fails does not. */
    ck_assert_int_eq(
        domus_outsider_ask(self_, (domus_address){0}, &domt_owner_type, &number, 0, NULL), -ESTALE);
    ck_assert_uint_eq(atomic_load(&domt_released), 4);
    ck_assert_int_eq(domus_outsider_notice(self_, (domus_address){0}, &domt_owner_type, &number),
                     -ESTALE);
    ck_assert_uint_eq(atomic_load(&domt_released), 4);
    /* The detach releases the messages that wait, and the received one. */
    ck_assert_int_eq(domus_outsider_notice(self_, here, &domt_owner_type, &number), 0);
    ck_assert_int_eq(domus_outside_detach(self_), 0);
    ck_assert_uint_eq(atomic_load(&domt_released), 6);
    self_ = domt_attach_outsider(system_);
    end_system_with_outsider();
    ck_assert_uint_eq(taken, 1);
}

DOMT_TEST(outsider_watches_and_is_watched)
{
    domus_outside_message message;
    domus_watch watch;
    domus_address first, second;

    start_system_with_outsider(2);
    first = domt_spawn(system_, 0, &domt_peer, NULL);
    second = domt_spawn(system_, 1, &domt_peer, NULL);
    /* wait for the mounts, because on_stop is not called for an actor that was not mounted */
    DOMT_WAIT_FOR(10, atomic_load(&domt_mounted) == 3);
    ck_assert_int_eq(domus_outsider_watch(self_, first, NULL), 0);
    ck_assert_int_eq(domus_outsider_watch(self_, second, &watch), 0);
    ck_assert_int_eq(domus_outsider_unwatch(self_, watch), 0);
    ck_assert_int_eq(domus_outsider_unwatch(self_, watch), -ENOENT);
    ck_assert_int_eq(domus_outsider_watch(self_, (domus_address){0}, &watch), -EINVAL);
    ck_assert_int_eq(domus_outside_stop(system_, second), 0);
    ck_assert_int_eq(domus_outside_stop(system_, first), 0);
    ck_assert_int_eq(domus_outside_receive(self_, NULL, 10 * 1000 * DOMT_MS, &message), 0);
    ck_assert_int_eq(message.kind, DOMUS_OUTSIDE_EVENT);
    ck_assert_ptr_eq(message.type, &domus_down_type);
    ck_assert(domus_address_equals(((const domus_down *)message.payload)->who, first));
    DOMT_WAIT_FOR(10, atomic_load(&domt_stopped) == 2);
    ck_assert_int_eq(domus_outsider_watch(self_, first, NULL), 0);
    ck_assert_int_eq(domus_outside_receive(self_, NULL, 10 * 1000 * DOMT_MS, &message), 0);
    ck_assert_int_eq(((const domus_down *)message.payload)->reason, -ESTALE);
    ck_assert_int_eq(domus_outside_receive(self_, NULL, 10 * DOMT_MS, &message), -ETIMEDOUT);

    domt_send_poke_to_peer(system_, peer, domus_outsider_address(self_), 0, 0, false);
    wait_until_peer_has_sent_all();
    ck_assert_int_eq(domus_outside_receive(self_, NULL, 0, &message), -ETIMEDOUT);
    ck_assert_uint_eq(atomic_load(&domt_downs), 0);
    domus_address before = domus_outsider_address(self_);
    ck_assert_int_eq(domus_outside_detach(self_), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_downs) == 1);
    /* The peer watches an outsider that has already detached, so its seat is vacant. */
    domt_send_poke_to_peer(system_, peer, before, 0, 0, false);
    DOMT_WAIT_FOR(10, atomic_load(&domt_downs) == 2);
    self_ = domt_attach_outsider(system_);
    end_system_with_outsider();
}

DOMT_TEST(mailbox_of_an_outsider_is_bounded_and_has_room_again)
{
    domus_outside_message message;
    uint32_t number = 0;
    domus_outsider *small = NULL;
    const domus_outsider_options two = {.mailbox_max = 2};
    const domus_outsider_options wrong = {.mailbox_max = 65536};

    start_system_with_outsider(1);
    ck_assert_int_eq(domus_outside_attach(system_, &wrong, &small), -EINVAL);
    ck_assert_int_eq(domus_outside_attach(system_, &two, &small), 0);
    domus_address to = domus_outsider_address(small);
    uint32_t taken = 0;
    while (domus_outside_notice(system_, to, &domt_number_type, &number) == 0)
        taken++;
    ck_assert_uint_eq(taken, 2);
    for (int i = 0; i < 4; i++) {
        (void)domt_receive_number(small, &domt_number_type, &message);
        int result = domus_outside_notice(system_, to, &domt_number_type, &number);
        ck_assert(result == 0 || result == -ENOBUFS);
    }
    while (domus_outside_receive(small, NULL, 0, &message) == 0)
        continue;
    ck_assert_int_eq(domus_outside_notice(system_, to, &domt_number_type, &number), 0);
    ck_assert_int_eq(domus_outside_detach(small), 0);
    end_system_with_outsider();
}

/* Ask the outsider while an ask of the outsider is handled. The outsider waits in that ask, so it
 * could never answer. */
static int fail_with_error_of_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    return domus_fail(stack, answer->error);
}

static int ask_sender_back(domus_stack *stack, void *self, const void *payload)
{
    return domus_ask(stack, domus_sender(stack), &domt_number_type, payload,
                     fail_with_error_of_answer);
}

static const domus_behaviour backward = {
    .name = "backward", .on = (const domus_on[]){{&domt_number_type, ask_sender_back, 0}, {0}}};

DOMT_TEST(ask_that_is_asked_back_fails_at_once)
{
    uint32_t number = 0;
    domus_outside_message message;

    start_system_with_outsider(2);
    domus_address asker = domt_spawn(system_, 0, &backward, NULL);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(domus_outsider_ask(self_, asker, &domt_number_type, &number, 0, NULL),
                         -EDEADLK);
    /* An outsider whose ask does not block it can answer. */
    ck_assert_int_eq(domus_outsider_ask_add(self_, asker, &domt_number_type, &number, 0, 0), 0);
    (void)domt_receive_number(self_, &domt_number_type, &message);
    ck_assert_int_eq(message.kind, DOMUS_OUTSIDE_ASK);
    ck_assert_int_eq(domus_outsider_fail(self_, -EXDEV), 0);
    ck_assert_int_eq(domus_outside_receive(self_, NULL, DOMUS_FOR_EVER, &message), 0);
    ck_assert_int_eq(*(const int *)message.payload, -EXDEV);
    end_system_with_outsider();
}

DOMT_SUITE(60)
