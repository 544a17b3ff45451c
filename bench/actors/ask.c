/* The rows of asks: two actors that ask one after the other, and one actor that asks 10,000 at
 * once.
 *
 * With two threads, the first row has one of its two actors on each, so that every message goes to
 * another thread. */
#include "bench/actors/rows.h"

static const domus_type number_type = {.name = "number", .size = sizeof(uint64_t)};

static int reply_with_asked_number(domus_stack *stack, void *self, const void *number)
{
    (void)self;
    return domus_reply(stack, &number_type, number);
}

static const domus_behaviour answerer = {
    .name = "answerer",
    .on = (const domus_on[]){{.type = &number_type, .handle = reply_with_asked_number},
                             {.type = NULL}},
};

/* --- asks one after the other ----------------------------------------------------------------- */

struct asker {
    domus_address peer;
    uint64_t left;
};

static int ask_again_after_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct asker *asker = self;

    if (answer->error != 0 || *(const uint64_t *)answer->payload != asker->left)
        stage_exit_with_wrong_result("an answer");
    if (asker->left == 0) {
        stage_end_clocks();
        stage_let_main_thread_return();
        return 0;
    }
    asker->left--;
    return domus_ask(stack, asker->peer, &number_type, &asker->left, ask_again_after_answer);
}

static int start_asking_one_by_one(domus_stack *stack, void *self, const void *nothing)
{
    struct asker *asker = self;

    (void)nothing;
    stage_begin_clocks();
    return domus_ask(stack, asker->peer, &number_type, &asker->left, ask_again_after_answer);
}

static const domus_behaviour asker_behaviour = {
    .name = "asker",
    .state_size = sizeof(struct asker),
    .on = (const domus_on[]){{.type = &go_type, .handle = start_asking_one_by_one}, {.type = NULL}},
};

void row_run_asks_one_by_one(domus_system *system, uint64_t asks)
{
    struct asker state = {.left = asks - 1};

    state.peer = stage_spawn_child_of_root(system, 1, &answerer, NULL);
    stage_spawn_and_notify(system, stage_spawn_child_of_root(system, 0, &asker_behaviour, &state),
                           &go_type, NULL);
    stage_wait_and_print_times();
}

/* --- asks to 10,000 actors at once ------------------------------------------------------------ */

static domus_address targets[FAN_OUT_TARGETS];

static int ask_all_again_after_answers(domus_stack *stack, void *self, const domus_answer *answer);

static int ask_all_targets(domus_stack *stack)
{
    for (uint64_t i = 0; i < FAN_OUT_TARGETS; i++)
        stage_must_succeed(domus_ask_add(stack, targets[i], &number_type, &i, 0, i), "ask");
    return domus_wait_all(stack, ask_all_again_after_answers);
}

static int ask_all_again_after_answers(domus_stack *stack, void *self, const domus_answer *answer)
{
    uint64_t *rounds = self;
    uint64_t sum = 0;
    uint64_t count = 0;

    for (; answer != NULL; answer = answer->next) {
        if (answer->error != 0 || *(const uint64_t *)answer->payload != answer->tag)
            stage_exit_with_wrong_result("an answer");
        sum += answer->tag;
        count++;
    }
    if (count != FAN_OUT_TARGETS ||
        sum != UINT64_C(1) * FAN_OUT_TARGETS * (FAN_OUT_TARGETS - 1) / 2)
        stage_exit_with_wrong_result("the sum of the answers");
    if (--*rounds != 0)
        return ask_all_targets(stack);
    stage_end_clocks();
    stage_let_main_thread_return();
    return 0;
}

static int start_asking_all_at_once(domus_stack *stack, void *self, const void *nothing)
{
    (void)self, (void)nothing;
    stage_begin_clocks();
    return ask_all_targets(stack);
}

static const domus_behaviour fan = {
    .name = "fan",
    .state_size = sizeof(uint64_t),
    .on =
        (const domus_on[]){{.type = &go_type, .handle = start_asking_all_at_once}, {.type = NULL}},
};

void row_run_asks_all_at_once(domus_system *system, uint64_t rounds)
{
    for (uint32_t i = 0; i < FAN_OUT_TARGETS; i++)
        targets[i] = stage_spawn_child_of_root(system, 0, &answerer, NULL);
    stage_spawn_and_notify(system, stage_spawn_child_of_root(system, 0, &fan, &rounds), &go_type,
                           NULL);
    stage_wait_and_print_times();
}
