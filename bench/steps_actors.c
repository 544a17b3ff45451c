/* The actors of bench_steps: one that takes notices, and pairs of which one asks and one
 * answers. */
#include "bench/steps_actors.h"

#include <stdio.h>
#include <stdlib.h>

const domus_type steps_note = {.name = "note", .size = sizeof(uint64_t)};

uint64_t steps_handled;

static int add_number_of_notice_to_sum(domus_stack *stack, void *self, const void *number)
{
    (void)stack, (void)self;
    steps_handled += *(const uint64_t *)number;
    return 0;
}

const domus_behaviour steps_sink = {
    .name = "sink",
    .on = (const domus_on[]){{&steps_note, add_number_of_notice_to_sum, 0}, {NULL, NULL, 0}},
};

const domus_behaviour steps_sender = {.name = "sender"};

static int handle_answer_and_ask_again(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct steps_asker *asker = self;

    if (answer->error != 0) {
        fprintf(stderr, "steps: an ask failed\n");
        exit(1);
    }
    if (++asker->answered % 2 == 0)
        return 0;
    return domus_ask(stack, asker->peer, &steps_note, answer->payload, handle_answer_and_ask_again);
}

static int ask_peer_of_asker(domus_stack *stack, void *self, const void *number)
{
    return domus_ask(stack, ((struct steps_asker *)self)->peer, &steps_note, number,
                     handle_answer_and_ask_again);
}

const domus_behaviour steps_asker = {
    .name = "asker",
    .state_size = sizeof(struct steps_asker),
    .on = (const domus_on[]){{&steps_note, ask_peer_of_asker, 0}, {NULL, NULL, 0}},
};

static int reply_with_asked_number(domus_stack *stack, void *self, const void *number)
{
    (void)self;
    return domus_reply(stack, &steps_note, number);
}

const domus_behaviour steps_answerer = {
    .name = "answerer",
    .on = (const domus_on[]){{&steps_note, reply_with_asked_number, 0}, {NULL, NULL, 0}},
};
