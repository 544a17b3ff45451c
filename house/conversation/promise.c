/* How promises are made, fail and end: the five states, and the moves between them that are
 * allowed.
 *
 *              +---------- close, abandon ---------------------------------+
 *              |                                                            v
 *   FREE ---> WAITING ------- finish ------> DONE -------- release ------> FREE
 *        new   |   |                         ^  |                           ^
 *            fail  +--------- abandon -------|--|-- release --+          release
 *              v                             |  |             v             |
 *             FAILED -------- finish --------+  +-- release --> DEAD -------+
 *              +------------- abandon --------------------------^
 *
 *   move                  function               when
 *   FREE    -> WAITING    domi_promise_new       one more thing to wait for
 *   WAITING -> FAILED     domi_promise_fail      it failed here: time-out, cancel, refused put
 *   WAITING -> DONE       domi_promise_finish    its answer came, and is kept until it is shown
 *   FAILED  -> DONE       domi_promise_finish    a run took its node, or an answer came before
 *   WAITING -> FREE       domi_promise_finish_and_release     its answer came, and is shown at once
 *   DONE    -> FREE       domi_promise_release   its answer was shown
 *   WAITING -> FREE       domi_promise_abandon   nobody wants the answer
 *   any     -> DEAD       domi_promise_release   instead of FREE, while its node is in a list
 *   DEAD    -> DEAD       domi_promise_release   its node left the mailbox, and becomes a note
 *   DEAD    -> FREE       domi_promise_release   its node came out of the list
 *
 * What is true in each state:
 *   FREE      Its node is in no list, and it is on no wheel. The first promise of a stack stays
 *             where it is; any other is in its slab.
 *   WAITING   It is in its stack's list `waiting`, and counted in `pending`. A receive is in the
 *             list of its house, too.
 *   FAILED    As WAITING, but its node is in the exception mailbox, with the error in `answer`. A
 *             receive is in no list of its house any more.
 *   DONE      It is in its stack's list `answers`, or shown. Its serial has changed.
 *   DEAD      It is in no list of its stack. Its node is in the exception mailbox, or is on its
 *             way home as a note (notes.h), and the promise is freed with that node.
 *
 * domi_promise_check_fields() (invariants.c) states this as code. Time-outs are on home's wheel
 * `deadlines`, so a thief has to leave notes for it (notes.h): a promise that a thief ends is DONE
 * or DEAD while it is still on that wheel. */
#include "house/conversation/promise.h"

#include "base/check.h"
#include "house/conversation/notes.h"
#include "house/conversation/stack.h"
#include "house/message/family.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/pooled.h"

#include <errno.h>
#include <stdio.h>

static const char *const names[DOMI_PROMISE_STATES] = {
    [DOMI_PROMISE_FREE] = "FREE",     [DOMI_PROMISE_WAITING] = "WAITING",
    [DOMI_PROMISE_FAILED] = "FAILED", [DOMI_PROMISE_DONE] = "DONE",
    [DOMI_PROMISE_DEAD] = "DEAD",
};

static const char *get_name_of_promise_state(uint32_t state)
{
    return state < DOMI_PROMISE_STATES ? names[state] : "?";
}

_Noreturn void domi_promise_fail_forbidden_move(const domi_promise *promise, domi_promise_state to)
{
    char text[96];

    snprintf(text, sizeof text, "a promise moves from %s to %s",
             get_name_of_promise_state(promise->state), get_name_of_promise_state(to));
    domi_check_failed(text, __FILE__, __LINE__, __func__);
}

domi_promise *domi_promise_new(domi_manager *manager, domus_stack *stack, domi_promise_kind kind)
{
    domi_promise *promise = &stack->first;

    if (promise->state != DOMI_PROMISE_FREE) {
        promise = domi_pool_take_object(manager, DOMI_SLAB_PROMISE);
        if (promise == NULL)
            return NULL;
        domi_wheel_node_init(&promise->wheel);
        promise->queued = promise->noted = promise->timed = promise->uncounted = false;
        promise->second = stack->wait != DOMI_WAIT_NONE;
        /* release: a walker that reads the new stack also sees that the promise's earlier wait is
         * over (circle.c). */
        atomic_store_explicit(&promise->stack, stack, memory_order_release);
    }
    promise->answer = (domus_answer){0};
    domi_promise_link_to_stack(manager, stack, promise, kind);
    return promise;
}

static domi_house *get_house_of_promise(const domi_promise *promise)
{
    return domi_stack_get_house(domi_promise_get_stack(promise));
}

void domi_promise_take_out_of_ask_count(domi_promise *promise)
{
    get_house_of_promise(promise)->asks--;
    promise->uncounted = true;
}

void domi_promise_put_on_wheel(domi_manager *home, domi_promise *promise, uint64_t deadline_ns)
{
    domi_wheel_arm_node(&home->timing.deadlines, &promise->wheel, deadline_ns);
    promise->timed = true;
}

static void remove_promise_from_wheel(domi_manager *home, domi_promise *promise)
{
    domi_wheel_disarm_node(&home->timing.deadlines, &promise->wheel);
    promise->timed = false;
}

/* Take a promise off the wheel of the pool of its actor; the runner of this actor calls this. */
static void remove_promise_from_wheel_of_pool(domi_promise *promise)
{
    domi_manager *home = get_house_of_promise(promise)->home;

    domi_pooled_disarm_node_on_pools_wheel(home->pooled, &home->timing.deadlines, &promise->wheel);
    promise->timed = false;
}

void domi_promise_arm_deadline(domi_manager *manager, domi_promise *promise, uint64_t deadline_ns)
{
    if (!domi_house_is_run_by_thief(manager, get_house_of_promise(promise))) {
        domi_promise_put_on_wheel(manager, promise, deadline_ns);
        return;
    }
    domi_manager *home = get_house_of_promise(promise)->home;
    if (home->pooled != NULL) {
        promise->timed = true;
        domi_pooled_arm_node_on_pools_wheel(home->pooled, &home->timing.deadlines, &promise->wheel,
                                            deadline_ns);
        return;
    }
    promise->wheel.expires_ns = deadline_ns;
    promise->noted = true;
    domi_note_leave_for_home(manager, &promise->node);
}

static void remove_note_of_promise(domi_manager *manager, domi_promise *promise)
{
    domi_note_remove_note_of_node(manager, &promise->node);
    promise->noted = false;
}

void domi_promise_remove_from_receives(domi_promise *promise)
{
    domi_house *house = get_house_of_promise(promise);
    domi_family *family = house->family;
    domi_promise **link = &family->receives;

    while (*link != promise)
        link = &(*link)->next_receive;
    *link = promise->next_receive;
    if (family->receives == NULL)
        house->marks &= (uint16_t) ~(DOMI_MARK_RECEIVING | DOMI_MARK_FRESH);
}

/* Take a promise that ends without an answer out of the list of receives of its house or of flushes
 * of its channel, if it is in one of these. */
static void remove_from_list_of_receives_or_flushes(domi_manager *manager, domi_promise *promise)
{
    if (promise->kind == DOMI_PROMISE_RECEIVE)
        domi_promise_remove_from_receives(promise);
    else if (promise->kind == DOMI_PROMISE_FLUSH)
        manager->io_hooks.flush_left(manager, promise);
}

void domi_promise_fail(domi_manager *manager, domi_promise *promise, int error)
{
    domi_house *house = get_house_of_promise(promise);

    domi_promise_change_state(promise, DOMI_PROMISE_FAILED);
    if (promise->noted)
        remove_note_of_promise(manager, promise);
    remove_from_list_of_receives_or_flushes(manager, promise);
    domi_promise_set_answer_to_error(promise, error);
    promise->queued = true;
    promise->node.kind = DOMI_EXCEPTION;
    domi_mailbox_append_node(manager, house, &promise->node, DOMI_EXCEPTION);
}

/* Take a promise off its wheel, if it is on one, and correct the count of asks, so that
 * domi_promise_unlink_ask_off_wheel() can follow. Called for a promise that is on a wheel or is not
 * an ask. */
static void remove_promise_from_wheel_and_count(domi_manager *manager, domi_promise *promise)
{
    domus_stack *stack = domi_promise_get_stack(promise);

    DOMI_CHECK_SLOW(promise->uncounted == (promise->kind != DOMI_PROMISE_ASK));
    if (promise->timed && domi_house_is_run_by_thief(manager, domi_stack_get_house(stack))) {
        if (domi_house_is_pooled(domi_stack_get_house(stack)))
            remove_promise_from_wheel_of_pool(promise);
        else
            /* home's wheel still has the promise, and looks at this stack when the promise's time
             * is over */
            stack->away++;
    } else if (promise->timed)
        remove_promise_from_wheel(manager, promise);
    /* domi_promise_unlink_ask_off_wheel() subtracts 1 from `asks` for every promise, so 1 is added
     * here for a promise that was never counted */
    if (promise->uncounted)
        domi_stack_get_house(stack)->asks++;
    promise->uncounted = false;
}

/* Unlink a promise from its stack, which waits for it no longer. */
DOMI_INLINE void unlink_promise_from_stack(domi_manager *manager, domi_promise *promise)
{
    DOMI_CHECK_SLOW(promise->uncounted == (promise->kind != DOMI_PROMISE_ASK));
    if (DOMI_UNLIKELY(promise->timed || promise->uncounted))
        remove_promise_from_wheel_and_count(manager, promise);
    domi_promise_unlink_ask_off_wheel(promise);
}

/* Log a wait that was replaced: the function that goes on was named for this promise, and another
 * function, named earlier in the same turn, is never called. Only a promise from the slab can be
 * the second of its turn, and such a promise takes the slow half of
 * domi_promise_finish_and_release(). */
static void log_replaced_wait(domi_manager *manager, const domi_promise *promise)
{
    const domus_stack *stack = domi_promise_get_stack(promise);

    if (DOMI_LIKELY(!promise->second) || stack->wait != DOMI_WAIT_ONE || stack->awaited != promise)
        return;
    domi_counter_add(&manager->counters.waits_lost, 1);
    domi_manager_report_mistake(manager, domi_stack_get_house(stack), DOMI_WAIT_REPLACED,
                                stack->begun_by, 0);
}

void domi_promise_finish(domi_manager *manager, domi_promise *promise, domi_envelope *message)
{
    log_replaced_wait(manager, promise);
    domi_promise_change_state(promise, DOMI_PROMISE_DONE);
    unlink_promise_from_stack(manager, promise);
    promise->message = message;
}

void domi_promise_finish_and_release_slow(domi_manager *manager, domi_promise *promise)
{
    log_replaced_wait(manager, promise);
    unlink_promise_from_stack(manager, promise);
    domi_promise_release(manager, promise);
}

void domi_promise_abandon(domi_manager *manager, domi_promise *promise)
{
    DOMI_CHECK(domi_promise_is_awaited(promise));
    if (promise->state == DOMI_PROMISE_WAITING)
        remove_from_list_of_receives_or_flushes(manager, promise);
    unlink_promise_from_stack(manager, promise);
    domi_promise_release(manager, promise);
}

void domi_promise_release(domi_manager *manager, domi_promise *promise)
{
    if (promise->queued || promise->noted) {
        domi_promise_change_state(promise, DOMI_PROMISE_DEAD);
        return;
    }
    /* a thief ends the promise, and only home may take it off its wheel */
    if (promise->timed && domi_house_is_run_by_thief(manager, get_house_of_promise(promise))) {
        domi_promise_change_state(promise, DOMI_PROMISE_DEAD);
        promise->noted = true;
        domi_note_leave_for_home(manager, &promise->node);
        return;
    }
    /* a thief has finished the promise before, and home, which has the house again, frees it */
    if (promise->timed) {
        remove_promise_from_wheel(manager, promise);
        domi_promise_get_stack(promise)->away--;
    }
    domi_promise_change_state(promise, DOMI_PROMISE_FREE);
    if (promise->node.slab == DOMI_SLAB_PROMISE)
        domi_pool_free_object(manager, &promise->node);
}
