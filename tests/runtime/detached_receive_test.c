/* Receives that return, in the handlers and conversations of a detached actor: which message they
 * return, how long it stays readable, and which functions may answer it. */
#include "tests/runtime/running.h"

#include <domus/detached.h>
#include <domus/message.h>
#include <domus/supervise.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define MAILBOX 32768u /* the default of mailboxes */

static const domus_type note_type = {.name = "note"};
static const domus_type go_type = {.name = "go"};
static _Atomic uint32_t taken;
static _Atomic bool hold;

static int on_run(domus_stack *stack, void *self, const void *nothing)
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

static const domus_behaviour receiver = {.name = "receiver",
                                         .on = (const domus_on[]){{&go_type, on_run, 0}, {0}}};

static domus_address made;

/* Start a system of one thread with one detached actor, which has this behaviour. */
static domus_system *start_system(const domus_behaviour *behaviour, uint32_t mailbox_max)
{
    domus_config config = domt_config(1);

    config.scheduler.mailbox_max = mailbox_max;
    config.detached.threads_max = 1;
    domus_system *system = domt_start(&config);
    made = domt_spawn_detached(system, behaviour);
    return system;
}

DOMT_TEST(mailbox_that_was_full_takes_again_while_the_handler_receives)
{
    domus_system *system = start_system(&receiver, 16);
    uint32_t sent = 0;

    domt_notice(system, made, &go_type, NULL);
    domt_notice(system, made, &note_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&taken) == 1);
    /* After its next receive, the actor does not look at its mailboxes for a while. */
    atomic_store(&hold, true);
    domt_pause_ns(40 * DOMT_MS);
    while (domus_outside_notice(system, made, &note_type, NULL) == 0)
        sent++;
    ck_assert_uint_eq(sent, 16);
    atomic_store(&hold, false);
    DOMT_WAIT_FOR(10, atomic_load(&taken) == 1 + sent);
    domt_pause_ns(50 * DOMT_MS);
    ck_assert_int_eq(domus_outside_notice(system, made, &note_type, NULL), 0);
    domt_end(system);
}

static const domus_type question_type = {.name = "question"};
static domus_address echo;
static _Atomic bool heard, relays;

static int on_relay(domus_stack *stack, void *self, const void *nothing)
{
    static const domus_pattern any = {.types = NULL};
    domus_received got;

    /* From here on the actor handles an ask only by a receive, and not by a row. */
    atomic_store(&relays, true);
    int result = domus_receive_now(stack, &any, DOMUS_FOR_EVER, &got);
    return result == 0 ? domus_forward(stack, echo) : 0;
}

static int on_question(domus_stack *stack, void *self, const void *nothing)
{
    return domus_reply(stack, &question_type, NULL);
}

static int record_success(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&heard, answer->error == 0);
    return 0;
}

static int on_ask(domus_stack *stack, void *self, const void *nothing)
{
    return domus_ask(stack, made, &question_type, NULL, record_success);
}

static const domus_behaviour relay = {.name = "relay",
                                      .on = (const domus_on[]){{&go_type, on_relay, 0}, {0}}};

static const domus_behaviour answers = {
    .name = "answers", .on = (const domus_on[]){{&question_type, on_question, 0}, {0}}};

static const domus_behaviour asker = {.name = "asker",
                                      .on = (const domus_on[]){{&note_type, on_ask, 0}, {0}}};

DOMT_TEST(ask_that_a_receive_that_returns_brought_is_what_is_forwarded)
{
    domus_system *system = start_system(&relay, MAILBOX);

    echo = domt_spawn(system, 0, &answers, NULL);
    domt_notice(system, made, &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&relays));
    domt_notice(system, domt_spawn(system, 0, &asker, NULL), &note_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&heard));
    domt_end(system);
}

/* --- what payloads own ------------------------------------------------------------------------ */

static _Atomic uint32_t releases, wrong, step;

static void release(void *payload)
{
    free(*(void **)payload);
    atomic_fetch_add(&releases, 1);
}

static const domus_type owned_type = {.name = "owned", .size = sizeof(void *), .release = release};

static void expect_true(bool holds)
{
    atomic_fetch_add(&wrong, !holds);
}

/* Receive four notices, of which one is taken, and an ask; the handler's own message comes
 * first. */
static int on_owned(domus_stack *stack, void *self, const void *payload)
{
    static const domus_pattern any = {.types = NULL};
    domus_received got;

    atomic_store(&step, 1);
    for (uint32_t i = 0; i < 4; i++) {
        expect_true(domus_receive_now(stack, &any, DOMUS_FOR_EVER, &got) == 0);
        expect_true(atomic_load(&releases) ==
                    (i < 3 ? i : 2)); /* released by the receive after it */
        atomic_fetch_add(&step, 1);
        if (i == 2) {
            expect_true(domus_take(stack) == 0);
            expect_true(domus_take(stack) == -EALREADY);
            free(*(void *const *)got.payload);
        }
    }
    expect_true(domus_receive_now(stack, &any, DOMUS_FOR_EVER, &got) == 0 && got.is_ask);
    expect_true(atomic_load(&releases) == 3);
    expect_true(domus_take(stack) == 0);
    expect_true(domus_reply(stack, &owned_type, got.payload) == 0);
    expect_true(domus_take(stack) == 0); /* the handler's own message is current again */
    free(*(void *const *)payload);
    atomic_store(&step, 6);
    return 0;
}

static int on_once(domus_stack *stack, void *self, const void *nothing)
{
    static const domus_type *const types[] = {&owned_type, NULL};
    static const domus_pattern owned = {.types = types};
    domus_received got;

    atomic_store(&step, 10);
    expect_true(domus_receive_now(stack, &owned, DOMUS_FOR_EVER, &got) == 0);
    return 0;
}

/* This handler runs in the same run as on_once(), if its message already waits when on_once()
 * returns. */
static int on_next(domus_stack *stack, void *self, const void *payload)
{
    expect_true(atomic_load(&releases) == 1); /* the message that on_once() received */
    expect_true(domus_take(stack) == 0);
    free(*(void *const *)payload);
    atomic_store(&step, 11);
    return 0;
}

/* Answer an ask while a notice was received, which is the message that is taken. */
static int on_asked(domus_stack *stack, void *self, const void *payload)
{
    static const domus_type *const types[] = {&owned_type, NULL};
    static const domus_pattern owned = {.types = types};
    domus_message *message = NULL;
    domus_received got;

    atomic_store(&step, 20);
    expect_true(domus_receive_now(stack, &owned, DOMUS_FOR_EVER, &got) == 0);
    expect_true(domus_message_take(stack, &message) == 0);
    expect_true(domus_message_payload(message) == got.payload);
    expect_true(domus_message_take(stack, &message) == -EINVAL); /* the ask is left */
    domus_message_free(stack, message);
    expect_true(atomic_load(&releases) == 1);
    expect_true(domus_take(stack) == 0); /* takes the ask */
    expect_true(domus_receive_now(stack, &owned, DOMUS_FOR_EVER, &got) == 0);
    expect_true(domus_reply(stack, &owned_type, payload) == 0);
    expect_true(domus_take(stack) ==
                0); /* takes the notice, which the reply has left in its place */
    free(*(void *const *)got.payload);
    atomic_store(&step, 21);
    return 0;
}

static const domus_type asked_type = {.name = "asked", .size = sizeof(void *), .release = release};
static const domus_type next_type = {.name = "next", .size = sizeof(void *), .release = release};

static const domus_behaviour owner = {.name = "owner",
                                      .on = (const domus_on[]){{&owned_type, on_owned, 0},
                                                               {&go_type, on_once, 0},
                                                               {&next_type, on_next, 0},
                                                               {&asked_type, on_asked, 0},
                                                               {0}}};

static void end_system(domus_system *system, uint32_t expected)
{
    domt_end(system);
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
        domt_notice(system, made, &owned_type, &memory);
        DOMT_WAIT_FOR(10, atomic_load(&step) != 0);
    }
    /* an ask would be handled before a waiting notice */
    DOMT_WAIT_FOR(10, atomic_load(&step) == 5);
    memory = malloc(100);
    ck_assert_int_eq(domus_outside_ask(system, made, &owned_type, &memory, 0, &reply), 0);
    free(memory);
    DOMT_WAIT_FOR(10, atomic_load(&step) == 6);
    end_system(system, 3);
}

DOMT_TEST(received_message_ends_with_its_handler_and_not_with_the_run)
{
    domus_system *system = start_system(&owner, MAILBOX);
    void *memory[2] = {malloc(100), malloc(100)};

    domt_notice(system, made, &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&step) == 10);
    domt_notice(system, made, &next_type, &memory[0]);
    domt_notice(system, made, &owned_type, &memory[1]);
    DOMT_WAIT_FOR(10, atomic_load(&step) == 11);
    end_system(system, 1);
}

static void *send_two(void *system)
{
    DOMT_WAIT_FOR(10, atomic_load(&step) == 20);
    for (uint32_t i = 0; i < 2; i++) {
        void *memory = malloc(100);
        domt_notice(system, made, &owned_type, &memory);
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

    ck_assert_int_eq(pthread_create(&sender, NULL, send_two, system), 0);
    ck_assert_int_eq(domus_outside_ask(system, made, &asked_type, &memory, 0, &reply), 0);
    ck_assert_ptr_eq(answer, memory);
    free(answer);
    pthread_join(sender, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&step) == 21);
    end_system(system, 1);
}

static int on_fall(domus_stack *stack, void *self, const void *nothing)
{
    static const domus_pattern any = {.types = NULL};
    domus_received got;
    int result = domus_escalate(stack, -EIO);

    while (result == 0)
        result = domus_receive_now(stack, &any, DOMUS_FOR_EVER, &got);
    return 0;
}

static const domus_behaviour falls = {.name = "falls",
                                      .on_mount = domt_count_mount,
                                      .on = (const domus_on[]){{&go_type, on_fall, 0}, {0}}};

static int on_spawn_falls(domus_stack *stack, void *self, const void *nothing)
{
    const domus_spawn_options options = {.detached = true};

    int result = domus_spawn_with(stack, &falls, NULL, &options, &made);
    return result == 0 ? domus_notice(stack, made, &go_type, NULL) : result;
}

static const domus_supervision restarting = {.otherwise = DOMUS_RESTART};
static const domus_behaviour parent = {.name = "parent",
                                       .supervision = &restarting,
                                       .on =
                                           (const domus_on[]){{&go_type, on_spawn_falls, 0}, {0}}};

DOMT_TEST(restart_ends_a_receive_that_returns)
{
    domus_config config = domt_config(1);

    config.detached.threads_max = 1;
    domus_system *system = domt_start(&config);
    domt_notice(system, domt_spawn(system, 0, &parent, NULL), &go_type, NULL);
    DOMT_WAIT_FOR(3, atomic_load(&domt_mounted) == 2);
    domt_end(system);
}

/* --- a conversation that was resumed ---------------------------------------------------------- */

#define ROUNDS 50u

static _Atomic uint32_t rounds;

static const domus_type extra_type = {.name = "extra", .size = sizeof(void *), .release = release};
static const domus_type *const owned_types[] = {&owned_type, NULL};
static const domus_type *const extra_types[] = {&extra_type, NULL};
static const domus_pattern owned = {.types = owned_types};
static const domus_pattern extra = {.types = extra_types};

/* --- an ask that was received, and not answered ----------------------------------------------- */

static int on_ask_received(domus_stack *stack, void *self, const domus_answer *answer)
{
    uint32_t before = atomic_load(&releases);
    domus_received got;

    if (answer->error != 0)
        return answer->error;
    expect_true(domus_receive_now(stack, &extra, 0, &got) == -ETIMEDOUT);
    expect_true(atomic_load(&releases) ==
                before + 1); /* the ask has failed, because of the receive */
    expect_true(domus_take(stack) == -EINVAL);
    expect_true(domus_reply(stack, &go_type, NULL) == -EINVAL);
    atomic_fetch_add(&rounds, 1);
    return domus_receive(stack, &owned, on_ask_received);
}

static int on_mount(domus_stack *stack, void *self)
{
    return domus_receive(stack, &owned, on_ask_received);
}

static const domus_behaviour mounted_receiver = {.name = "receiver", .on_mount = on_mount};

/* --- an answer, and then a notice ------------------------------------------------------------- */

static _Atomic bool is_answered;

static int on_echo(domus_stack *stack, void *self, const void *payload)
{
    expect_true(domus_take(stack) == 0);
    return domus_reply(stack, &owned_type, payload);
}

static const domus_behaviour echoes = {.name = "echoes",
                                       .on = (const domus_on[]){{&owned_type, on_echo, 0}, {0}}};

static int on_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    domus_received got;

    expect_true(answer->error == 0);
    atomic_store(&is_answered, true);
    expect_true(domus_receive_now(stack, &extra, DOMUS_FOR_EVER, &got) == 0);
    expect_true(domus_take_answer(stack, answer) == 0);
    expect_true(domus_take_answer(stack, answer) == -EALREADY);
    free(*(void *const *)answer->payload);
    expect_true(domus_take(stack) == 0); /* takes the notice */
    free(*(void *const *)got.payload);
    atomic_fetch_add(&rounds, 1);
    return 0;
}

static int on_extra(domus_stack *stack, void *self, const void *nothing)
{
    void *memory = malloc(100);

    return domus_ask(stack, echo, &owned_type, &memory, on_answer);
}

static const domus_behaviour extra_asker = {
    .name = "asker", .on = (const domus_on[]){{&extra_type, on_extra, 0}, {0}}};

DOMT_TEST(ask_that_a_conversation_received_ends_with_its_next_receive_that_returns)
{
    domus_system *system = start_system(&mounted_receiver, MAILBOX);

    for (uint32_t i = 0; i < ROUNDS; i++) {
        void *memory = malloc(100);
        ck_assert_int_eq(domus_outside_ask(system, made, &owned_type, &memory, 0, NULL), -ENOMSG);
    }
    end_system(system, ROUNDS);
    ck_assert_uint_eq(atomic_load(&rounds), ROUNDS);
}

DOMT_TEST(answer_is_taken_behind_a_notice_that_was_received_at_once)
{
    domus_system *system = start_system(&extra_asker, MAILBOX);
    void *memory[2] = {malloc(100), malloc(100)};

    echo = domt_spawn(system, 0, &echoes, NULL);
    domt_notice(system, made, &extra_type, &memory[0]);
    DOMT_WAIT_FOR(10, atomic_load(&is_answered));
    domt_notice(system, made, &extra_type, &memory[1]);
    DOMT_WAIT_FOR(10, atomic_load(&rounds) == 1);
    end_system(system, 1); /* the message that began the conversation */
}

DOMT_SUITE(60)
