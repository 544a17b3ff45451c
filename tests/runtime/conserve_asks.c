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

static void release_question(void *payload)
{
    domt_count_one(DOMT_ASK_DROPPED);
}

static void release_query(void *payload)
{
    domt_count_one(DOMT_QUERY_DROPPED);
}

static void release_answer(void *payload)
{
    domt_count_one(DOMT_REPLY_DROPPED);
}

const domus_type domt_question_type = {"question", sizeof(domt_token), release_question};
const domus_type domt_query_type = {"query", sizeof(domt_token), release_query};
const domus_type domt_answer_type = {"answer", sizeof(domt_token), release_answer};

static const domus_pattern tokens = {.types = (const domus_type *const[]){&domt_token_type, NULL}};

/* --- resumed ---------------------------------------------------------------------------------- */

static void count_answer(domus_stack *stack, domt_node *self, const domus_answer *answer,
                         bool by_message)
{
    domt_count_one(DOMT_ASK_RESUMED);
    domt_count_by(DOMT_ASK_ANSWERED, by_message);
    domt_count_by(DOMT_ASK_REFUSED, answer->error == -ENOBUFS);
    domt_count_by(DOMT_TIMED_OUT, answer->error == -ETIMEDOUT);
    domt_count_by(DOMT_LENT_RESUMED, domt_is_lent(stack));
    if (answer->error != 0)
        return;
    domt_count_by(DOMT_ODD, domus_take_answer(stack, answer) != 0);
    domt_count_one(DOMT_REPLY_TAKEN);
    domt_meet(self, ((const domt_token *)answer->payload)->somebody);
}

static int count_and_pass_on(domus_stack *stack, void *self, const domus_answer *answer)
{
    count_answer(stack, self, answer, stack->message != NULL);
    return domt_pass_on(stack, self);
}

/* The barrier may still stand, so this conversation asks no other actor, because that one might ask
 * this actor. */
static int count_and_notice(domus_stack *stack, void *self, const domus_answer *answer)
{
    count_answer(stack, self, answer, stack->message != NULL);
    return domt_pass_by_notice(stack, self);
}

/* An answer in a list belongs to its promise, which has the message. */
static int all_answered(domus_stack *stack, void *self, const domus_answer *answers)
{
    for (const domus_answer *answer = answers; answer != NULL; answer = answer->next) {
        const domi_promise *promise =
            (const domi_promise *)(const void *)((const char *)answer -
                                                 offsetof(domi_promise, answer));
        count_answer(stack, self, answer, promise->message != NULL);
    }
    return domt_pass_on(stack, self);
}

static int send_reply(domus_stack *stack, const domt_token *token)
{
    domt_count_one(DOMT_REPLY_MADE);
    int result = domus_reply(stack, &domt_answer_type, token);
    domt_count_by(DOMT_ODD, result != 0);
    return result;
}

static int answer_later(domus_stack *stack, void *self, const domus_answer *answer)
{
    count_answer(stack, self, answer, stack->message != NULL);
    if (answer->error != 0)
        return -EDOM;
    return send_reply(stack, answer->payload);
}

static int count_received(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error != 0) {
        domt_count_one(DOMT_RECEIVE_FAILED);
    } else {
        domt_count_by(DOMT_ODD, domus_take(stack) != 0);
        domt_count_one(DOMT_RECEIVE_TAKEN);
        domt_count_one(DOMT_NOTICE_TAKEN);
        domt_meet(self, ((const domt_token *)answer->payload)->somebody);
    }
    return domt_pass_on(stack, self);
}

static int job_ended(domus_stack *stack, void *self, const domus_answer *answer)
{
    domt_count_one(DOMT_JOB_ENDED);
    return domt_pass_on(stack, self);
}

/* --- asking ----------------------------------------------------------------------------------- */

/* Send an ask or, with a tag, ask one of several actors; `then` decides which. */
static int send_ask(domus_stack *stack, domus_address to, const domt_token *token,
                    uint64_t timeout_ns, domus_resumed *then)
{
    uint64_t before = domt_counted_here(DOMT_ASK_DROPPED);
    int result;

    domt_count_one(DOMT_ASK_MADE);
    if (then == NULL)
        result = domus_ask_add(stack, to, &domt_question_type, token, timeout_ns, 0);
    else if (timeout_ns != 0)
        result = domus_ask_within(stack, to, &domt_question_type, token, timeout_ns, then);
    else
        result = domus_ask(stack, to, &domt_question_type, token, then);
    domt_count_by(DOMT_ASK_UNPUT, domt_counted_here(DOMT_ASK_DROPPED) - before);
    domt_count_by(DOMT_LENT_ASKED, domt_is_lent(stack));
    if (result < 0) {
        domt_count_one(DOMT_ASK_UNMADE);
        domt_count_by(DOMT_ODD, result != -ECANCELED);
    }
    return result;
}

static int ask_any(domus_stack *stack, domt_node *self, uint64_t timeout_ns, domus_resumed *then)
{
    domus_address to = domt_any(self);
    domt_token token = {.somebody = domt_any(self), .to = to.lease};

    return send_ask(stack, to, &token, timeout_ns, then);
}

static int ask_oracle(domus_stack *stack, domt_node *self)
{
    domt_token token = {.somebody = domt_any(self), .to = self->oracle.lease};

    /* -EBUSY: another conversation has raised the barrier */
    domt_count_by(DOMT_BARRIERS, domus_barrier(stack) == 0);
    return send_ask(stack, self->oracle, &token, 0, count_and_notice);
}

static int fan_out(domus_stack *stack, domt_node *self)
{
    for (int i = 0; i < 4; i++) {
        if (ask_any(stack, self, i == 0 ? DOMT_MS : 0, NULL) != 0)
            return 0; /* the conversation was cancelled before */
    }
    domt_count_one(DOMT_FANNED);
    return domus_wait_all(stack, all_answered);
}

static int begin_receive(domus_stack *stack, domt_node *self)
{
    /* 0: only look for a message */
    uint64_t within_ns = domi_random_below(&self->dice, 2) * DOMT_MS;

    domt_count_one(DOMT_RECEIVE_MADE);
    int result = domus_receive_within(stack, &tokens, within_ns, count_received);
    if (result != DOMUS_PARKED)
        domt_count_one(DOMT_RECEIVE_UNMADE);
    return result;
}

static int do_nothing(void *argument)
{
    return 0;
}

static int begin_blocking(domus_stack *stack)
{
    domt_count_one(DOMT_JOB_MADE);
    int result = domus_blocking(stack, do_nothing, NULL, job_ended);
    if (result != DOMUS_PARKED)
        domt_count_one(DOMT_JOB_UNMADE);
    return result;
}

int domt_pass_by_ask(domus_stack *stack, domt_node *self)
{
    uint64_t chance = domi_random_below(&self->dice, 128);
    int result;

    if (chance < 16)
        result = ask_oracle(stack, self);
    else if (chance < 32)
        result = ask_any(stack, self, DOMT_MS, count_and_pass_on);
    else if (chance < 36)
        result = fan_out(stack, self);
    else if (chance < 38)
        result = begin_receive(stack, self);
    else if (chance == 38)
        result = begin_blocking(stack);
    else
        result = ask_any(stack, self, 0, count_and_pass_on);
    if (result == DOMUS_PARKED && chance < 32)
        (void)domus_conversation_of(stack, &self->conversation);
    /* A conversation that was cancelled asks no more. */
    return result == DOMUS_PARKED ? result : domt_pass_later(stack, self);
}

int domt_cancel_one(domus_stack *stack, domt_node *self)
{
    domt_count_by(DOMT_CANCELS, domus_cancel(stack, self->conversation) == 0);
    return domt_pass_later(stack, self);
}

/* --- answering -------------------------------------------------------------------------------- */

void domt_answer_kept(domus_stack *stack, domt_node *self)
{
    const domt_token token = {.somebody = domus_self(stack)};

    if (self->kept.stack == NULL)
        return;
    domt_count_one(DOMT_REPLY_MADE);
    if (domus_kept_reply(stack, self->kept, &domt_answer_type, &token) != 0)
        /* the reply failed, because the conversation was cancelled */
        domt_count_one(DOMT_REPLY_UNMADE);
    self->kept.stack = NULL;
}

static int forward_question(domus_stack *stack, domt_node *self, const void *payload)
{
    domt_token *token = (domt_token *)(uintptr_t)payload;
    domus_address to = domt_any(self);

    token->to = to.lease;
    domt_count_one(DOMT_ASK_FORWARDED);
    int result = domus_forward(stack, to);
    if (result == 0)
        return 0;
    domt_count_one(DOMT_ASK_UNFORWARDED);
    domt_count_by(DOMT_ASK_REFUSED, result == -ENOBUFS);
    domt_count_by(DOMT_ODD, result != -ENOBUFS && result != -ESTALE);
    domt_count_by(DOMT_ODD, domus_take(stack) != 0);
    return -EDOM;
}

/* Handle an ask: answer it, ask another actor first, keep it, pass it on, fail, or forget it. */
static int respond_to_ask(domus_stack *stack, domt_node *self, const void *payload)
{
    const domt_token token = {.somebody = domus_self(stack)};
    uint64_t chance = domi_random_below(&self->dice, 16);

    if (chance == 4 && payload != NULL && domt_budget_spend())
        return forward_question(stack, self, payload);
    domt_count_by(DOMT_ODD, domus_take(stack) != 0);
    if (chance == 0)
        return -EDOM;
    if (chance == 1)
        return 0;
    if (chance == 2 && domt_budget_spend()) {
        int result = ask_any(stack, self, 0, answer_later);
        return result == DOMUS_PARKED ? result : -EDOM;
    }
    if (chance == 3 && self->kept.stack == NULL && self->timers != 0 &&
        domus_keep(stack, &self->kept) == 0) {
        domt_count_one(DOMT_KEPT);
        return 0;
    }
    return send_reply(stack, &token);
}

static int handle_ask(domus_stack *stack, void *self, const void *payload, bool may_forward)
{
    const domt_token *token = payload;

    domt_count_by(DOMT_ASTRAY, token->to != domus_self(stack).lease);
    domt_count_by(DOMT_LENT_RUN, domt_is_lent(stack));
    domt_meet(self, token->somebody);
    return respond_to_ask(stack, self, may_forward ? payload : NULL);
}

int domt_take_question(domus_stack *stack, void *self, const void *payload)
{
    domt_count_one(DOMT_ASK_TAKEN);
    return handle_ask(stack, self, payload, true);
}

int domt_take_query(domus_stack *stack, void *self, const void *payload)
{
    domt_count_one(DOMT_QUERY_TAKEN);
    return handle_ask(stack, self, payload, false);
}

static int answer_as_oracle(domus_stack *stack, void *self, const void *payload)
{
    const domt_token *token = payload;

    domt_count_one(DOMT_ASK_TAKEN);
    domt_count_by(DOMT_ODD, domus_take(stack) != 0);
    domt_count_by(DOMT_ASTRAY, token->to != domus_self(stack).lease);
    return send_reply(stack, token);
}

static int mount_oracle(domus_stack *stack, void *self)
{
    domt_count_one(DOMT_MOUNTED);
    return 0;
}

static void stop_oracle(domus_stack *stack, void *self)
{
    domt_count_one(DOMT_STOPPED);
}

const domus_behaviour domt_oracle_behaviour = {
    .name = "oracle",
    .on = (const domus_on[]){{&domt_question_type, answer_as_oracle, 0}, {0}},
    .on_mount = mount_oracle,
    .on_stop = stop_oracle};
