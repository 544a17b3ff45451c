/* Conversations of the conservation stress: asks of all sorts, answers now, later, never or by
 * another, receives, blocking work, cancels.
 *
 * An ask is taken by a handler or dropped, and its conversation is resumed once whatever befalls
 * it. Whether that was by a message (else by a time-out, a cancel, or because the ask never left)
 * is told by the stack, and closes the sums of dead letters. */
#include "tests/runtime/conserve.h"

#include "house/conversation/stack.h"

#include <domus/blocking.h>
#include <domus/receive.h>

#include <errno.h>

static void count_dropped_question(void *payload)
{
    domt_count_one(DOMT_ASK_DROPPED);
}

static void count_dropped_query(void *payload)
{
    domt_count_one(DOMT_QUERY_DROPPED);
}

static void count_dropped_answer(void *payload)
{
    domt_count_one(DOMT_REPLY_DROPPED);
}

const domus_type domt_question_type = {"question", sizeof(domt_token), count_dropped_question};
const domus_type domt_query_type = {"query", sizeof(domt_token), count_dropped_query};
const domus_type domt_answer_type = {"answer", sizeof(domt_token), count_dropped_answer};

static const domus_pattern tokens = {.types = (const domus_type *const[]){&domt_token_type, NULL}};

/* --- resumed ---------------------------------------------------------------------------------- */

static void count_and_take_owned_answer(domus_stack *stack, domt_node *self,
                                        const domus_answer *answer, bool by_message)
{
    domt_count_one(DOMT_ASK_RESUMED);
    domt_add_to_count(DOMT_ASK_ANSWERED, by_message);
    domt_add_to_count(DOMT_ASK_REFUSED, answer->error == -ENOBUFS);
    domt_add_to_count(DOMT_TIMED_OUT, answer->error == -ETIMEDOUT);
    domt_add_to_count(DOMT_LENT_RESUMED, domt_is_run_on_loan(stack));
    if (answer->error != 0)
        return;
    domt_add_to_count(DOMT_ODD, domus_take_answer(stack, answer) != 0);
    domt_count_one(DOMT_REPLY_TAKEN);
    domt_add_neighbour(self, ((const domt_token *)answer->payload)->somebody);
}

static int count_answer_and_pass_token_on(domus_stack *stack, void *self,
                                          const domus_answer *answer)
{
    count_and_take_owned_answer(stack, self, answer, stack->message != NULL);
    return domt_pass_token_on(stack, self);
}

/* Count the answer, and pass the token on by a notice. No ask is sent, because the barrier may
 * still stand, and the actor that is asked might ask this one. */
static int count_answer_and_send_notice(domus_stack *stack, void *self, const domus_answer *answer)
{
    count_and_take_owned_answer(stack, self, answer, stack->message != NULL);
    return domt_pass_token_by_notice(stack, self);
}

/* Count the answers of a list: each answer lies within its promise, which has the message. */
static int count_answers_and_pass_token_on(domus_stack *stack, void *self,
                                           const domus_answer *answers)
{
    for (const domus_answer *answer = answers; answer != NULL; answer = answer->next) {
        const domi_promise *promise =
            (const domi_promise *)(const void *)((const char *)answer -
                                                 offsetof(domi_promise, answer));
        count_and_take_owned_answer(stack, self, answer, promise->message != NULL);
    }
    return domt_pass_token_on(stack, self);
}

static int send_counted_reply(domus_stack *stack, const domt_token *token)
{
    domt_count_one(DOMT_REPLY_MADE);
    int result = domus_reply(stack, &domt_answer_type, token);
    domt_add_to_count(DOMT_ODD, result != 0);
    return result;
}

static int reply_after_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    count_and_take_owned_answer(stack, self, answer, stack->message != NULL);
    if (answer->error != 0)
        return -EDOM;
    return send_counted_reply(stack, answer->payload);
}

static int count_received_and_pass_token_on(domus_stack *stack, void *self,
                                            const domus_answer *answer)
{
    if (answer->error != 0) {
        domt_count_one(DOMT_RECEIVE_FAILED);
    } else {
        domt_add_to_count(DOMT_ODD, domus_take(stack) != 0);
        domt_count_one(DOMT_RECEIVE_TAKEN);
        domt_count_one(DOMT_NOTICE_TAKEN);
        domt_add_neighbour(self, ((const domt_token *)answer->payload)->somebody);
    }
    return domt_pass_token_on(stack, self);
}

static int count_job_and_pass_token_on(domus_stack *stack, void *self, const domus_answer *answer)
{
    domt_count_one(DOMT_JOB_ENDED);
    return domt_pass_token_on(stack, self);
}

/* --- asking ----------------------------------------------------------------------------------- */

/* Send an ask and count it: with domus_ask_add() if `then` is NULL, else with domus_ask() or, if
 * there is a time-out, domus_ask_within(). */
static int send_counted_ask(domus_stack *stack, domus_address to, const domt_token *token,
                            uint64_t timeout_ns, domus_resumed *then)
{
    uint64_t before = domt_count_of_this_thread(DOMT_ASK_DROPPED);
    int result;

    domt_count_one(DOMT_ASK_MADE);
    if (then == NULL)
        result = domus_ask_add(stack, to, &domt_question_type, token, timeout_ns, 0);
    else if (timeout_ns != 0)
        result = domus_ask_within(stack, to, &domt_question_type, token, timeout_ns, then);
    else
        result = domus_ask(stack, to, &domt_question_type, token, then);
    domt_add_to_count(DOMT_ASK_UNPUT, domt_count_of_this_thread(DOMT_ASK_DROPPED) - before);
    domt_add_to_count(DOMT_LENT_ASKED, domt_is_run_on_loan(stack));
    if (result < 0) {
        domt_count_one(DOMT_ASK_UNMADE);
        domt_add_to_count(DOMT_ODD, result != -ECANCELED);
    }
    return result;
}

static int ask_any_neighbour(domus_stack *stack, domt_node *self, uint64_t timeout_ns,
                             domus_resumed *then)
{
    domus_address to = domt_any_neighbour(self);
    domt_token token = {.somebody = domt_any_neighbour(self), .to = to.lease};

    return send_counted_ask(stack, to, &token, timeout_ns, then);
}

static int ask_oracle_in_barrier(domus_stack *stack, domt_node *self)
{
    domt_token token = {.somebody = domt_any_neighbour(self), .to = self->oracle.lease};

    /* the barrier fails with -EBUSY if another conversation has raised it */
    domt_add_to_count(DOMT_BARRIERS, domus_barrier(stack) == 0);
    return send_counted_ask(stack, self->oracle, &token, 0, count_answer_and_send_notice);
}

static int ask_four_neighbours(domus_stack *stack, domt_node *self)
{
    for (int i = 0; i < 4; i++) {
        if (ask_any_neighbour(stack, self, i == 0 ? DOMT_MS : 0, NULL) != 0)
            return 0; /* the first ask failed, because the conversation was cancelled before */
    }
    domt_count_one(DOMT_FANNED);
    return domus_wait_all(stack, count_answers_and_pass_token_on);
}

static int begin_receive_of_token(domus_stack *stack, domt_node *self)
{
    /* with 0 the receive only looks whether a message is there */
    uint64_t within_ns = domi_random_below(&self->dice, 2) * DOMT_MS;

    domt_count_one(DOMT_RECEIVE_MADE);
    int result = domus_receive_within(stack, &tokens, within_ns, count_received_and_pass_token_on);
    if (result != DOMUS_PARKED)
        domt_count_one(DOMT_RECEIVE_UNMADE);
    return result;
}

static int do_nothing_as_job(void *argument)
{
    return 0;
}

static int begin_blocking_work(domus_stack *stack)
{
    domt_count_one(DOMT_JOB_MADE);
    int result = domus_blocking(stack, do_nothing_as_job, NULL, count_job_and_pass_token_on);
    if (result != DOMUS_PARKED)
        domt_count_one(DOMT_JOB_UNMADE);
    return result;
}

int domt_pass_token_by_ask(domus_stack *stack, domt_node *self)
{
    uint64_t chance = domi_random_below(&self->dice, 128);
    int result;

    if (chance < 16)
        result = ask_oracle_in_barrier(stack, self);
    else if (chance < 32)
        result = ask_any_neighbour(stack, self, DOMT_MS, count_answer_and_pass_token_on);
    else if (chance < 36)
        result = ask_four_neighbours(stack, self);
    else if (chance < 38)
        result = begin_receive_of_token(stack, self);
    else if (chance == 38)
        result = begin_blocking_work(stack);
    else
        result = ask_any_neighbour(stack, self, 0, count_answer_and_pass_token_on);
    if (result == DOMUS_PARKED && chance < 32)
        (void)domus_conversation_of(stack, &self->conversation);
    /* Only a parked conversation has asked; one that was cancelled before passes the token on by a
     * timer. */
    return result == DOMUS_PARKED ? result : domt_pass_token_by_timer(stack, self);
}

int domt_cancel_kept_conversation(domus_stack *stack, domt_node *self)
{
    domt_add_to_count(DOMT_CANCELS, domus_cancel(stack, self->conversation) == 0);
    return domt_pass_token_by_timer(stack, self);
}

/* --- answering -------------------------------------------------------------------------------- */

void domt_answer_kept_ask(domus_stack *stack, domt_node *self)
{
    const domt_token token = {.somebody = domus_self(stack)};

    if (self->kept.stack == NULL)
        return;
    domt_count_one(DOMT_REPLY_MADE);
    if (domus_kept_reply(stack, self->kept, &domt_answer_type, &token) != 0)
        /* the reply fails if the conversation of the kept ask was cancelled */
        domt_count_one(DOMT_REPLY_UNMADE);
    self->kept.stack = NULL;
}

static int forward_question(domus_stack *stack, domt_node *self, const void *payload)
{
    domt_token *token = (domt_token *)(uintptr_t)payload;
    domus_address to = domt_any_neighbour(self);

    token->to = to.lease;
    domt_count_one(DOMT_ASK_FORWARDED);
    int result = domus_forward(stack, to);
    if (result == 0)
        return 0;
    domt_count_one(DOMT_ASK_UNFORWARDED);
    domt_add_to_count(DOMT_ASK_REFUSED, result == -ENOBUFS);
    domt_add_to_count(DOMT_ODD, result != -ENOBUFS && result != -ESTALE);
    domt_add_to_count(DOMT_ODD, domus_take(stack) != 0);
    return -EDOM;
}

/* Handle an ask in a random way: forward it, fail, forget it, ask another actor first, keep it, or
 * answer it. */
static int respond_to_ask(domus_stack *stack, domt_node *self, const void *payload)
{
    const domt_token token = {.somebody = domus_self(stack)};
    uint64_t chance = domi_random_below(&self->dice, 16);

    if (chance == 4 && payload != NULL && domt_budget_take_message())
        return forward_question(stack, self, payload);
    domt_add_to_count(DOMT_ODD, domus_take(stack) != 0);
    if (chance == 0)
        return -EDOM;
    if (chance == 1)
        return 0;
    if (chance == 2 && domt_budget_take_message()) {
        int result = ask_any_neighbour(stack, self, 0, reply_after_answer);
        return result == DOMUS_PARKED ? result : -EDOM;
    }
    if (chance == 3 && self->kept.stack == NULL && self->timers != 0 &&
        domus_keep(stack, &self->kept) == 0) {
        domt_count_one(DOMT_KEPT);
        return 0;
    }
    return send_counted_reply(stack, &token);
}

static int count_and_respond_to_ask(domus_stack *stack, void *self, const void *payload,
                                    bool may_forward)
{
    const domt_token *token = payload;

    domt_add_to_count(DOMT_ASTRAY, token->to != domus_self(stack).lease);
    domt_add_to_count(DOMT_LENT_RUN, domt_is_run_on_loan(stack));
    domt_add_neighbour(self, token->somebody);
    return respond_to_ask(stack, self, may_forward ? payload : NULL);
}

int domt_on_question_respond(domus_stack *stack, void *self, const void *payload)
{
    domt_count_one(DOMT_ASK_TAKEN);
    return count_and_respond_to_ask(stack, self, payload, true);
}

int domt_on_query_respond(domus_stack *stack, void *self, const void *payload)
{
    domt_count_one(DOMT_QUERY_TAKEN);
    return count_and_respond_to_ask(stack, self, payload, false);
}

static int on_question_answer_as_oracle(domus_stack *stack, void *self, const void *payload)
{
    const domt_token *token = payload;

    domt_count_one(DOMT_ASK_TAKEN);
    domt_add_to_count(DOMT_ODD, domus_take(stack) != 0);
    domt_add_to_count(DOMT_ASTRAY, token->to != domus_self(stack).lease);
    return send_counted_reply(stack, token);
}

static int on_mount_count_oracle(domus_stack *stack, void *self)
{
    domt_count_one(DOMT_MOUNTED);
    return 0;
}

static void on_stop_count_oracle(domus_stack *stack, void *self)
{
    domt_count_one(DOMT_STOPPED);
}

const domus_behaviour domt_oracle_behaviour = {
    .name = "oracle",
    .on = (const domus_on[]){{&domt_question_type, on_question_answer_as_oracle, 0}, {0}},
    .on_mount = on_mount_count_oracle,
    .on_stop = on_stop_count_oracle};
