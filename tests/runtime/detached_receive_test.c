/* Receives of detached actors that return within the handler (domus_receive_now()): which message
 * they return, how long it stays readable, and which functions may answer it. */
#include "tests/runtime/running.h"

#include <domus/detached.h>
#include <domus/message.h>
#include <domus/supervise.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define MAILBOX 32768u /* default of the limit for mailboxes */

static const domus_type note_type = {.name = "note"};
static const domus_type go_type = {.name = "go"};
static _Atomic uint32_t taken;
static _Atomic bool hold;

static int receive_until_stopped(domus_stack *stack, void *self, const void *nothing)
{
    static const domus_pattern any = {.types = NULL};
    domus_received got;
    int result = 0;

    while (result == 0 || result == -ETIMEDOUT) {
        result = domus_receive_now(stack, &any, 20 * DOMT_MS, &got);
        if (result == 0 && got.type == &note_type)
            atomic_fetch_add(&taken, 1);
        while (atomic_load(&hold))
            domt_pause_ns(DOMT_MS);
    }
    return 0;
}

static const domus_behaviour receiver = {
    .name = "receiver", .on = (const domus_on[]){{&go_type, receive_until_stopped, 0}, {0}}};

static domus_address made;

/* Start a system of one thread, and spawn a detached actor with this behaviour. */
static domus_system *start_system(const domus_behaviour *behaviour, uint32_t mailbox_max)
{
    domus_config config = domt_config_of_threads(1);

    config.scheduler.mailbox_max = mailbox_max;
    config.detached.threads_max = 1;
    domus_system *system = domt_start_system(&config);
    made = domt_spawn_detached(system, behaviour);
    return system;
}

DOMT_TEST(mailbox_that_was_full_takes_again_while_the_handler_receives)
{
    domus_system *system = start_system(&receiver, 16);
    uint32_t sent = 0;

    domt_send_notice(system, made, &go_type, NULL);
    domt_send_notice(system, made, &note_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&taken) == 1);
    /* With `hold` set, the actor receives once more and then waits, so its mailbox becomes full. */
    atomic_store(&hold, true);
    domt_pause_ns(40 * DOMT_MS);
    while (domus_outside_notice(system, made, &note_type, NULL) == 0)
        sent++;
    ck_assert_uint_eq(sent, 16);
    atomic_store(&hold, false);
    DOMT_WAIT_FOR(10, atomic_load(&taken) == 1 + sent);
    domt_pause_ns(50 * DOMT_MS);
    ck_assert_int_eq(domus_outside_notice(system, made, &note_type, NULL), 0);
    domt_end_system(system);
}

static const domus_type question_type = {.name = "question"};
static domus_address echo;
static _Atomic bool heard, relays;

static int receive_ask_and_forward_to_echo(domus_stack *stack, void *self, const void *nothing)
{
    static const domus_pattern any = {.types = NULL};
    domus_received got;

    /* from here on the actor gets an ask only by a receive, and not by a row of its behaviour */
    atomic_store(&relays, true);
    int result = domus_receive_now(stack, &any, DOMUS_FOR_EVER, &got);
    return result == 0 ? domus_forward(stack, echo) : 0;
}

static int reply_without_payload(domus_stack *stack, void *self, const void *nothing)
{
    return domus_reply(stack, &question_type, NULL);
}

static int record_whether_answer_is_good(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&heard, answer->error == 0);
    return 0;
}

static int on_ask_put_question_to_detached(domus_stack *stack, void *self, const void *nothing)
{
    return domus_ask(stack, made, &question_type, NULL, record_whether_answer_is_good);
}

static const domus_behaviour relay = {
    .name = "relay", .on = (const domus_on[]){{&go_type, receive_ask_and_forward_to_echo, 0}, {0}}};

static const domus_behaviour answers = {
    .name = "answers", .on = (const domus_on[]){{&question_type, reply_without_payload, 0}, {0}}};

static const domus_behaviour asker = {
    .name = "asker",
    .on = (const domus_on[]){{&note_type, on_ask_put_question_to_detached, 0}, {0}}};

DOMT_TEST(ask_that_a_receive_that_returns_brought_is_what_is_forwarded)
{
    domus_system *system = start_system(&relay, MAILBOX);

    echo = domt_spawn(system, 0, &answers, NULL);
    domt_send_notice(system, made, &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&relays));
    domt_send_notice(system, domt_spawn(system, 0, &asker, NULL), &note_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&heard));
    domt_end_system(system);
}

/* --- what payloads own ------------------------------------------------------------------------ */

static _Atomic uint32_t releases, wrong, step;

static void free_memory_of_message(void *payload)
{
    free(*(void **)payload);
    atomic_fetch_add(&releases, 1);
}

static const domus_type owned_type = {
    .name = "owned", .size = sizeof(void *), .release = free_memory_of_message};

static void count_wrong_unless(bool holds)
{
    atomic_fetch_add(&wrong, !holds);
}

/* Receive four notices, one of which is taken, and an ask, whose message comes behind the handler's
 * own one. */
static int receive_notices_and_an_ask(domus_stack *stack, void *self, const void *payload)
{
    static const domus_pattern any = {.types = NULL};
    domus_received got;

    atomic_store(&step, 1);
    for (uint32_t i = 0; i < 4; i++) {
        count_wrong_unless(domus_receive_now(stack, &any, DOMUS_FOR_EVER, &got) == 0);
        count_wrong_unless(
            atomic_load(&releases) ==
            (i < 3 ? i : 2)); /* a message of a receive is released by the next receive */
        atomic_fetch_add(&step, 1);
        if (i == 2) {
            count_wrong_unless(domus_take(stack) == 0);
            count_wrong_unless(domus_take(stack) == -EALREADY);
            free(*(void *const *)got.payload);
        }
    }
    count_wrong_unless(domus_receive_now(stack, &any, DOMUS_FOR_EVER, &got) == 0 && got.is_ask);
    count_wrong_unless(atomic_load(&releases) == 3);
    count_wrong_unless(domus_take(stack) == 0);
    count_wrong_unless(domus_reply(stack, &owned_type, got.payload) == 0);
    /* now the handler's own message is the current one again, and can be taken */
    count_wrong_unless(domus_take(stack) == 0);
    free(*(void *const *)payload);
    atomic_store(&step, 6);
    return 0;
}

static int receive_one_owned_message(domus_stack *stack, void *self, const void *nothing)
{
    static const domus_type *const types[] = {&owned_type, NULL};
    static const domus_pattern owned = {.types = types};
    domus_received got;

    atomic_store(&step, 10);
    count_wrong_unless(domus_receive_now(stack, &owned, DOMUS_FOR_EVER, &got) == 0);
    return 0;
}

/* This handler runs in the same run as receive_one_owned_message(), if its message was there when
 * receive_one_owned_message() returned. */
static int check_message_was_released(domus_stack *stack, void *self, const void *payload)
{
    /* the message that receive_one_owned_message() received has been released */
    count_wrong_unless(atomic_load(&releases) == 1);
    count_wrong_unless(domus_take(stack) == 0);
    free(*(void *const *)payload);
    atomic_store(&step, 11);
    return 0;
}

/* Answer an ask while the last received message is a notice, which is the message that domus_take()
 * takes. */
static int reply_behind_received_notice(domus_stack *stack, void *self, const void *payload)
{
    static const domus_type *const types[] = {&owned_type, NULL};
    static const domus_pattern owned = {.types = types};
    domus_message *message = NULL;
    domus_received got;

    atomic_store(&step, 20);
    count_wrong_unless(domus_receive_now(stack, &owned, DOMUS_FOR_EVER, &got) == 0);
    count_wrong_unless(domus_message_take(stack, &message) == 0);
    count_wrong_unless(domus_message_payload(message) == got.payload);
    /* only the ask of the handler is left, and it cannot be taken as a message object */
    count_wrong_unless(domus_message_take(stack, &message) == -EINVAL);
    domus_message_free(stack, message);
    count_wrong_unless(atomic_load(&releases) == 1);
    count_wrong_unless(domus_take(stack) == 0); /* domus_take() takes the payload of the ask */
    count_wrong_unless(domus_receive_now(stack, &owned, DOMUS_FOR_EVER, &got) == 0);
    count_wrong_unless(domus_reply(stack, &owned_type, payload) == 0);
    count_wrong_unless(
        domus_take(stack) ==
        /* domus_take() takes the payload of the notice, which the reply has not changed */
        0);
    free(*(void *const *)got.payload);
    atomic_store(&step, 21);
    return 0;
}

static const domus_type asked_type = {
    .name = "asked", .size = sizeof(void *), .release = free_memory_of_message};
static const domus_type next_type = {
    .name = "next", .size = sizeof(void *), .release = free_memory_of_message};

static const domus_behaviour owner = {
    .name = "owner",
    .on = (const domus_on[]){{&owned_type, receive_notices_and_an_ask, 0},
                             {&go_type, receive_one_owned_message, 0},
                             {&next_type, check_message_was_released, 0},
                             {&asked_type, reply_behind_received_notice, 0},
                             {0}}};

static void end_system_and_check_releases(domus_system *system, uint32_t expected)
{
    domt_end_system(system);
    ck_assert_uint_eq(atomic_load(&wrong), 0);
    ck_assert_uint_eq(atomic_load(&releases), expected);
}

DOMT_TEST(message_of_a_receive_that_returns_is_released_by_the_next_unless_taken)
{
    domus_system *system = start_system(&owner, MAILBOX);
    void *memory;
    domus_outside_reply reply = {.buffer = &memory, .size = sizeof memory};

    for (uint32_t i = 0; i < 5; i++) {
        memory = malloc(100);
        domt_send_notice(system, made, &owned_type, &memory);
        DOMT_WAIT_FOR(10, atomic_load(&step) != 0);
    }
    /* wait for the last notice, because an ask that comes now would be received before it */
    DOMT_WAIT_FOR(10, atomic_load(&step) == 5);
    memory = malloc(100);
    ck_assert_int_eq(domus_outside_ask(system, made, &owned_type, &memory, 0, &reply), 0);
    free(memory);
    DOMT_WAIT_FOR(10, atomic_load(&step) == 6);
    end_system_and_check_releases(system, 3);
}

DOMT_TEST(received_message_ends_with_its_handler_and_not_with_the_run)
{
    domus_system *system = start_system(&owner, MAILBOX);
    void *memory[2] = {malloc(100), malloc(100)};

    domt_send_notice(system, made, &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&step) == 10);
    domt_send_notice(system, made, &next_type, &memory[0]);
    domt_send_notice(system, made, &owned_type, &memory[1]);
    DOMT_WAIT_FOR(10, atomic_load(&step) == 11);
    end_system_and_check_releases(system, 1);
}

static void *send_two_owned_messages(void *system)
{
    DOMT_WAIT_FOR(10, atomic_load(&step) == 20);
    for (uint32_t i = 0; i < 2; i++) {
        void *memory = malloc(100);
        domt_send_notice(system, made, &owned_type, &memory);
    }
    return NULL;
}

DOMT_TEST(ask_is_answered_while_a_notice_that_was_received_is_at_hand)
{
    domus_system *system = start_system(&owner, MAILBOX);
    void *memory = malloc(100);
    void *answer = NULL;
    domus_outside_reply reply = {.buffer = &answer, .size = sizeof answer};
    pthread_t sender;

    ck_assert_int_eq(pthread_create(&sender, NULL, send_two_owned_messages, system), 0);
    ck_assert_int_eq(domus_outside_ask(system, made, &asked_type, &memory, 0, &reply), 0);
    ck_assert_ptr_eq(answer, memory);
    free(answer);
    pthread_join(sender, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&step) == 21);
    end_system_and_check_releases(system, 1);
}

static int escalate_and_receive(domus_stack *stack, void *self, const void *nothing)
{
    static const domus_pattern any = {.types = NULL};
    domus_received got;
    int result = domus_escalate(stack, -EIO);

    while (result == 0)
        result = domus_receive_now(stack, &any, DOMUS_FOR_EVER, &got);
    return 0;
}

static const domus_behaviour falls = {
    .name = "falls",
    .on_mount = domt_count_mount,
    .on = (const domus_on[]){{&go_type, escalate_and_receive, 0}, {0}}};

static int spawn_escalating_actor_and_notify(domus_stack *stack, void *self, const void *nothing)
{
    const domus_spawn_options options = {.detached = true};

    int result = domus_spawn_with(stack, &falls, NULL, &options, &made);
    return result == 0 ? domus_notice(stack, made, &go_type, NULL) : result;
}

static const domus_supervision restarting = {.otherwise = DOMUS_RESTART};
static const domus_behaviour parent = {
    .name = "parent",
    .supervision = &restarting,
    .on = (const domus_on[]){{&go_type, spawn_escalating_actor_and_notify, 0}, {0}}};

DOMT_TEST(restart_ends_a_receive_that_returns)
{
    domus_config config = domt_config_of_threads(1);

    config.detached.threads_max = 1;
    domus_system *system = domt_start_system(&config);
    domt_send_notice(system, domt_spawn(system, 0, &parent, NULL), &go_type, NULL);
    DOMT_WAIT_FOR(3, atomic_load(&domt_mounted) == 2);
    domt_end_system(system);
}

/* --- a conversation that was resumed ---------------------------------------------------------- */

#define ROUNDS 50u

static _Atomic uint32_t rounds;

static const domus_type extra_type = {
    .name = "extra", .size = sizeof(void *), .release = free_memory_of_message};
static const domus_type *const owned_types[] = {&owned_type, NULL};
static const domus_type *const extra_types[] = {&extra_type, NULL};
static const domus_pattern owned = {.types = owned_types};
static const domus_pattern extra = {.types = extra_types};

/* --- an ask that was received, and not answered ----------------------------------------------- */

static int handle_ask_received_in_mount(domus_stack *stack, void *self, const domus_answer *answer)
{
    uint32_t before = atomic_load(&releases);
    domus_received got;

    if (answer->error != 0)
        return answer->error;
    count_wrong_unless(domus_receive_now(stack, &extra, 0, &got) == -ETIMEDOUT);
    count_wrong_unless(atomic_load(&releases) ==
                       /* the receive has let the ask fail that was received before and not
                          answered, and has released it */
                       before + 1);
    count_wrong_unless(domus_take(stack) == -EINVAL);
    count_wrong_unless(domus_reply(stack, &go_type, NULL) == -EINVAL);
    atomic_fetch_add(&rounds, 1);
    return domus_receive(stack, &owned, handle_ask_received_in_mount);
}

static int on_mount_receive_an_ask(domus_stack *stack, void *self)
{
    return domus_receive(stack, &owned, handle_ask_received_in_mount);
}

static const domus_behaviour mounted_receiver = {.name = "receiver",
                                                 .on_mount = on_mount_receive_an_ask};

/* --- an answer, and then a notice ------------------------------------------------------------- */

static _Atomic bool is_answered;

static int reply_and_keep_message(domus_stack *stack, void *self, const void *payload)
{
    count_wrong_unless(domus_take(stack) == 0);
    return domus_reply(stack, &owned_type, payload);
}

static const domus_behaviour echoes = {
    .name = "echoes", .on = (const domus_on[]){{&owned_type, reply_and_keep_message, 0}, {0}}};

static int receive_in_answer_of_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    domus_received got;

    count_wrong_unless(answer->error == 0);
    atomic_store(&is_answered, true);
    count_wrong_unless(domus_receive_now(stack, &extra, DOMUS_FOR_EVER, &got) == 0);
    count_wrong_unless(domus_take_answer(stack, answer) == 0);
    count_wrong_unless(domus_take_answer(stack, answer) == -EALREADY);
    free(*(void *const *)answer->payload);
    count_wrong_unless(domus_take(stack) == 0); /* domus_take() takes the payload of the notice */
    free(*(void *const *)got.payload);
    atomic_fetch_add(&rounds, 1);
    return 0;
}

static int ask_echo_with_owned_message(domus_stack *stack, void *self, const void *nothing)
{
    void *memory = malloc(100);

    return domus_ask(stack, echo, &owned_type, &memory, receive_in_answer_of_ask);
}

static const domus_behaviour extra_asker = {
    .name = "asker", .on = (const domus_on[]){{&extra_type, ask_echo_with_owned_message, 0}, {0}}};

DOMT_TEST(ask_that_a_conversation_received_ends_with_its_next_receive_that_returns)
{
    domus_system *system = start_system(&mounted_receiver, MAILBOX);

    for (uint32_t i = 0; i < ROUNDS; i++) {
        void *memory = malloc(100);
        ck_assert_int_eq(domus_outside_ask(system, made, &owned_type, &memory, 0, NULL), -ENOMSG);
    }
    end_system_and_check_releases(system, ROUNDS);
    ck_assert_uint_eq(atomic_load(&rounds), ROUNDS);
}

DOMT_TEST(answer_is_taken_behind_a_notice_that_was_received_at_once)
{
    domus_system *system = start_system(&extra_asker, MAILBOX);
    void *memory[2] = {malloc(100), malloc(100)};

    echo = domt_spawn(system, 0, &echoes, NULL);
    domt_send_notice(system, made, &extra_type, &memory[0]);
    DOMT_WAIT_FOR(10, atomic_load(&is_answered));
    domt_send_notice(system, made, &extra_type, &memory[1]);
    DOMT_WAIT_FOR(10, atomic_load(&rounds) == 1);
    /* one payload is left to release, that of the message which began the
     * conversation */
    end_system_and_check_releases(system, 1);
}

DOMT_SUITE(60)
