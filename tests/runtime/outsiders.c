/* The peers with which the tests of outsiders talk; tests/runtime/outsiders.h has the contract. */
#include "tests/runtime/outsiders.h"

#include <errno.h>

static void release_owned_object(void *payload)
{
    atomic_fetch_add(&domt_released, 1);
}

const domus_type domt_number_type = {.name = "number", .size = sizeof(uint32_t)};
const domus_type domt_other_type = {.name = "other", .size = sizeof(uint32_t)};
const domus_type domt_owner_type = {
    .name = "owner", .size = sizeof(uint32_t), .release = release_owned_object};
const domus_type domt_poke_type = {.name = "poke", .size = sizeof(domt_poke)};

_Atomic uint64_t domt_released, domt_answers, domt_answer_sum, domt_downs;
_Atomic int domt_answer_error;
_Atomic uint64_t domt_stale_answers;

/* Answer an ask with the next number; after a notice, send the next number back by a notice. */
static int on_number_answer_or_send_back(domus_stack *stack, void *self, const void *payload)
{
    uint32_t next = *(const uint32_t *)payload + 1;
    if (domus_reply(stack, &domt_number_type, &next) == 0 || domus_sender(stack).house == NULL)
        return 0;
    (void)domus_notice(stack, domus_sender(stack), &domt_number_type, &next);
    return 0;
}

/* Answer an ask of 0 with an object that the answer owns, and fail an ask of any other number. */
static int on_other_answer_zero_or_fail(domus_stack *stack, void *self, const void *payload)
{
    if (*(const uint32_t *)payload == 0)
        return domus_reply(stack, &domt_owner_type, payload);
    return domus_fail(stack, -EDOM);
}

static int count_answer_to_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error == -ESTALE)
        atomic_fetch_add(&domt_stale_answers, 1);
    if (answer->error != 0)
        atomic_store(&domt_answer_error, answer->error);
    else if (answer->type == &domt_number_type)
        atomic_fetch_add(&domt_answer_sum, *(const uint32_t *)answer->payload);
    atomic_fetch_add(&domt_answers, 1);
    return 0;
}

static int count_answers_to_asks(domus_stack *stack, void *self, const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next)
        (void)count_answer_to_ask(stack, self, answer);
    return 0;
}

static int on_poke_send_numbers(domus_stack *stack, void *self, const void *payload)
{
    const domt_poke poke = *(const domt_poke *)payload;

    if (poke.count == 0)
        return domus_watch_actor(stack, poke.to, NULL);
    for (uint32_t i = 0; i < poke.count; i++) {
        uint32_t number = poke.first + i;
        int error = poke.asks ? domus_ask_add(stack, poke.to, &domt_number_type, &number,
                                              10 * 1000 * DOMT_MS, 0)
                              : domus_notice(stack, poke.to, &domt_number_type, &number);
        if (error != 0)
            atomic_store(&domt_answer_error, error);
    }
    return poke.asks ? domus_wait_all(stack, count_answers_to_asks) : 0;
}

static int on_down_count(domus_stack *stack, void *self, const void *down)
{
    atomic_fetch_add(&domt_downs, 1);
    return 0;
}

const domus_behaviour domt_peer = {
    .name = "peer",
    .on = (const domus_on[]){{&domt_number_type, on_number_answer_or_send_back, 0},
                             {&domt_other_type, on_other_answer_zero_or_fail, 0},
                             {&domt_poke_type, on_poke_send_numbers, 0},
                             {&domus_down_type, on_down_count, 0},
                             {0}},
    .on_mount = domt_count_mount,
    .on_stop = domt_count_stop};

domus_outsider *domt_attach_outsider(domus_system *system)
{
    domus_outsider *outsider = NULL;
    ck_assert_int_eq(domus_outside_attach(system, NULL, &outsider), 0);
    return outsider;
}

void domt_send_poke_to_peer(domus_system *system, domus_address peer, domus_address to,
                            uint32_t first, uint32_t count, bool asks)
{
    const domt_poke poke = {.to = to, .first = first, .count = count, .asks = asks};
    domt_send_notice(system, peer, &domt_poke_type, &poke);
}

uint32_t domt_receive_number(domus_outsider *outsider, const domus_type *type,
                             domus_outside_message *ret_message)
{
    const domus_type *const types[] = {type, NULL};
    const domus_pattern pattern = {.types = types};
    ck_assert_int_eq(domus_outside_receive(outsider, &pattern, 10 * 1000 * DOMT_MS, ret_message),
                     0);
    ck_assert_ptr_eq(ret_message->type, type);
    return *(const uint32_t *)ret_message->payload;
}
