/* A conversation of a detached actor that was resumed with a message, and then receives at once. */
#include "tests/runtime/running.h"

#include <domus/detached.h>

#include <errno.h>
#include <stdlib.h>

#define ROUNDS 50u

static _Atomic uint32_t releases, wrong, rounds;

static void release(void *payload)
{
    free(*(void **)payload);
    atomic_fetch_add(&releases, 1);
}

static const domus_type go_type = {.name = "go"};
static const domus_type owned_type = {.name = "owned", .size = sizeof(void *), .release = release};
static const domus_type extra_type = {.name = "extra", .size = sizeof(void *), .release = release};
static const domus_type *const owned_types[] = {&owned_type, NULL};
static const domus_type *const extra_types[] = {&extra_type, NULL};
static const domus_pattern owned = {.types = owned_types};
static const domus_pattern extra = {.types = extra_types};

static void expect(bool holds)
{
    atomic_fetch_add(&wrong, !holds);
}

/* --- an ask that was received, and not answered ----------------------------------------------- */

static int on_ask_received(domus_stack *stack, void *self, const domus_answer *answer)
{
    uint32_t before = atomic_load(&releases);
    domus_received got;

    if (answer->error != 0)
        return answer->error;
    expect(domus_receive_now(stack, &extra, 0, &got) == -ETIMEDOUT);
    expect(atomic_load(&releases) == before + 1); /* the ask has failed, because of the receive */
    expect(domus_take(stack) == -EINVAL);
    expect(domus_reply(stack, &go_type, NULL) == -EINVAL);
    atomic_fetch_add(&rounds, 1);
    return domus_receive(stack, &owned, on_ask_received);
}

static int on_mount(domus_stack *stack, void *self)
{
    return domus_receive(stack, &owned, on_ask_received);
}

static const domus_behaviour receiver = {.name = "receiver", .on_mount = on_mount};

/* --- an answer, and then a notice ------------------------------------------------------------- */

static domus_address echo;
static _Atomic bool is_answered;

static int on_echo(domus_stack *stack, void *self, const void *payload)
{
    expect(domus_take(stack) == 0);
    return domus_reply(stack, &owned_type, payload);
}

static const domus_behaviour echoes = {
    .name = "echoes",
    .on = (const domus_on[]){{&owned_type, on_echo, 0}, {NULL, NULL, 0}},
};

static int on_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    domus_received got;

    expect(answer->error == 0);
    atomic_store(&is_answered, true);
    expect(domus_receive_now(stack, &extra, DOMUS_FOR_EVER, &got) == 0);
    expect(domus_take_answer(stack, answer) == 0);
    expect(domus_take_answer(stack, answer) == -EALREADY);
    free(*(void *const *)answer->payload);
    expect(domus_take(stack) == 0); /* the notice */
    free(*(void *const *)got.payload);
    atomic_fetch_add(&rounds, 1);
    return 0;
}

static int on_extra(domus_stack *stack, void *self, const void *nothing)
{
    void *memory = malloc(100);

    return domus_ask(stack, echo, &owned_type, &memory, on_answer);
}

/* --- the actor -------------------------------------------------------------------------------- */

static const domus_behaviour asker = {
    .name = "asker",
    .on = (const domus_on[]){{&extra_type, on_extra, 0}, {NULL, NULL, 0}},
};

static domus_system *start(const domus_behaviour *behaviour, domus_address *ret_address)
{
    const domus_spawn_options options = {.detached = true};
    domus_config config = domt_config(1);

    config.detached.threads_max = 1;
    domus_system *system = domt_start(&config);
    ck_assert_int_eq(domus_outside_spawn_with(system, behaviour, NULL, &options, ret_address), 0);
    return system;
}

DOMT_TEST(ask_that_a_conversation_received_ends_with_its_next_receive_that_returns)
{
    domus_address of;
    domus_system *system = start(&receiver, &of);

    for (uint32_t i = 0; i < ROUNDS; i++) {
        void *memory = malloc(100);
        ck_assert_int_eq(domus_outside_ask(system, of, &owned_type, &memory, 0, NULL), -ENOMSG);
    }
    domt_end(system);
    ck_assert_uint_eq(atomic_load(&wrong), 0);
    ck_assert_uint_eq(atomic_load(&rounds), ROUNDS);
    ck_assert_uint_eq(atomic_load(&releases), ROUNDS);
}

DOMT_TEST(answer_is_taken_behind_a_notice_that_was_received_at_once)
{
    domus_address of;
    domus_system *system = start(&asker, &of);
    void *memory[2] = {malloc(100), malloc(100)};

    echo = domt_spawn(system, 0, &echoes, NULL);
    domt_notice(system, of, &extra_type, &memory[0]);
    DOMT_WAIT_FOR(10, atomic_load(&is_answered));
    domt_notice(system, of, &extra_type, &memory[1]);
    DOMT_WAIT_FOR(10, atomic_load(&rounds) == 1);
    domt_end(system);
    ck_assert_uint_eq(atomic_load(&wrong), 0);
    ck_assert_uint_eq(atomic_load(&releases), 1); /* what began the conversation */
}

DOMT_SUITE(60)
