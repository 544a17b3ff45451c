/* A counter that can be locked, in sequential style: ./dev run counter
 *
 * The counter is one sequence: a loop of receives. After `lock` it tells its value and waits in a
 * second receive: other messages wait, in order, until `unlock` says how to continue. The visitor
 * is a sequence, too. (Figure 1 of Haller, Odersky: Event-Based Programming without Inversion of
 * Control.) */
#include <domus/main.h>

#include <stdio.h>

static const domus_type incr_type = {.name = "incr"};
static const domus_type value_type = {.name = "value"};
static const domus_type lock_type = {.name = "lock"};
static const domus_type unlock_type = {.name = "unlock", .size = sizeof(int)};
static const domus_type number_type = {.name = "number", .size = sizeof(int)};

static const domus_pattern anything = {.types = NULL};
static const domus_pattern unlock = {.types = (const domus_type *const[]){&unlock_type, NULL}};
static const domus_pattern number = {.types = (const domus_type *const[]){&number_type, NULL}};

struct counter {
    int value;
};

DOMUS_SEQUENCE(count, struct counter)
{
    DOMUS_BEGIN;
    for (;;) {
        /* When the actor is stopped, this receive brings an error without a type, and the next
         * receive ends the sequence. */
        DOMUS_RECEIVE(&anything);
        if (answer->type == &incr_type)
            frame->value++;
        if (answer->type == &value_type || answer->type == &lock_type)
            (void)domus_notice(stack, domus_sender(stack), &number_type, &frame->value);
        if (answer->type == &lock_type) {
            DOMUS_RECEIVE(&unlock);
            if (answer->error == 0)
                frame->value = *(const int *)answer->payload;
        }
    }
    DOMUS_END;
}

static const domus_behaviour counter = {.name = "counter", DOMUS_ON_MOUNT(count)};

struct visit {
    domus_address counter;
    int error;
};

/* Print the value in an answer, and note an error if it is not the expected one. */
static void print_and_compare_answer(struct visit *visit, const char *what,
                                     const domus_answer *answer, int expected)
{
    int got = answer->error == 0 ? *(const int *)answer->payload : answer->error;

    printf("%s: %d\n", what, got);
    visit->error |= got != expected;
}

static void send_message_to_counter(domus_stack *stack, struct visit *visit, const domus_type *type,
                                    int payload)
{
    visit->error |= domus_notice(stack, visit->counter, type, &payload);
}

DOMUS_SEQUENCE(visit_counter, struct visit)
{
    DOMUS_BEGIN;
    frame->error = domus_spawn(stack, &counter, NULL, &frame->counter);
    for (int i = 0; i < 3; i++)
        send_message_to_counter(stack, frame, &incr_type, 0);
    send_message_to_counter(stack, frame, &value_type, 0);
    DOMUS_RECEIVE_WITHIN(&number, 1000000000);
    print_and_compare_answer(frame, "after three times incr", answer, 3);
    send_message_to_counter(stack, frame, &lock_type, 0);
    DOMUS_RECEIVE_WITHIN(&number, 1000000000);
    print_and_compare_answer(frame, "locked at", answer, 3);
    send_message_to_counter(stack, frame, &incr_type,
                            /* this notice and the one after it wait in the counter's mailbox until
                             * the unlock */
                            0);
    send_message_to_counter(stack, frame, &value_type, 0);
    DOMUS_RECEIVE_WITHIN(&number, 20000000);
    print_and_compare_answer(frame, "asked while it is locked (an errno)", answer, -ETIMEDOUT);
    send_message_to_counter(stack, frame, &unlock_type, 10);
    DOMUS_RECEIVE_WITHIN(&number, 1000000000);
    print_and_compare_answer(frame, "unlocked with 10, and the incr that waited", answer, 11);
    domus_main_quit(frame->error != 0);
    DOMUS_END;
}

static const domus_behaviour visitor = {.name = "visitor", DOMUS_ON_MOUNT(visit_counter)};

static int spawn_visitor(domus_system *system, void *argument)
{
    domus_address address;
    (void)argument;
    return domus_outside_spawn(system, &visitor, NULL, &address);
}

int main(int argc, char **argv)
{
    return domus_main(argc, argv, &(domus_program){.name = "counter", .start = spawn_visitor});
}
