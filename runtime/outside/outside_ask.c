/* This file lets foreign threads ask actors, and wait for the answers.
 *
 * They ask in the name of one actor that lives on the outside's manager, by the same promises as
 * any actor. The foreign thread that has entered the outside runs this actor, so it handles all
 * arrived answers, also those for which other threads wait. One of the waiting threads is the
 * leader: it sleeps on the manager's park word, and a put to the actor wakes it as it wakes a
 * thread of the loop (contract: Park and wake). The other waiting threads sleep on conditions of
 * their own, until their answer comes or they become the leader. A leader that leaves wakes another
 * waiting thread, which becomes the leader. So this always holds:
 *
 *   a thread waits  =>  a thread leads, or is about to
 *
 * The leader and the senders follow the steps of base/park.h. The mutex is unlocked while the
 * leader sleeps. Another foreign thread may complete the leader's ask meanwhile:
 * 1. The leader looks at its ask under the mutex, and becomes SLEEPING under it.
 * 2. The other thread completes the ask under the mutex, and then notifies the leader as a sender
 * does. The word is SLEEPING or NOTIFIED then, because the leader leaves these states under the
 * mutex. */
#include "runtime/outside/outside_ask.h"

#include "base/check.h"
#include "house/conversation/stack.h"
#include "house/dispatch/phases.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "runtime/outside/futex_park.h"
#include "runtime/outside/visit.h"

#include <errno.h>
#include <string.h>

/* --- completing asks -------------------------------------------------------------------------- */

static void wake_asking_thread(domus_system *system, domi_asking *asking)
{
    domi_manager *outside = &system->outside;

    if (system->leader != asking) {
        pthread_cond_signal(&asking->woken);
        return;
    }
    if (domi_park_try_notify(&outside->park))
        domi_futex_park_wake(outside);
}

/* Copy the reply into the buffer of the thread that asks. That thread gets what the payload owns
 * only if the payload was copied. */
static int copy_reply_to_asking_thread(domus_stack *stack, const domus_answer *answer,
                                       domus_outside_reply *reply)
{
    uint32_t size = answer->type->size;

    /* the caller has passed no buffer, because it only wants to know that the ask was answered */
    if (reply == NULL)
        return 0;
    reply->type = answer->type;
    reply->length = size;
    if (size > reply->size)
        return -EMSGSIZE;
    if (size != 0)
        memcpy(reply->buffer, answer->payload, size);
    return domus_take(stack);
}

/* Complete the ask of a foreign thread, because its answer has come, and wake that thread. Any
 * foreign thread that is inside the outside runs this function for the asking actor. */
static int on_answer_complete_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    domus_system *system = stack->manager->system;
    domi_asking *asking = *(domi_asking **)domus_frame(stack);

    (void)self;
    asking->result = answer->error != 0 ? answer->error
                                        : copy_reply_to_asking_thread(stack, answer, asking->reply);
    asking->done = true;
    if (asking->next != NULL)
        asking->next->previous = asking->previous;
    if (asking->previous != NULL)
        asking->previous->next = asking->next;
    else
        system->askings = asking->next;
    wake_asking_thread(system, asking);
    return 0;
}

/* --- sending asks ----------------------------------------------------------------------------- */

static void add_ask_to_asks_under_way(domus_system *system, domi_asking *asking)
{
    asking->previous = NULL;
    asking->next = system->askings;
    if (asking->next != NULL)
        asking->next->previous = asking;
    system->askings = asking;
    system->askings_count++;
}

static void release_payload_of_ask(const domus_type *type, const void *payload)
{
    if (type->release != NULL)
        type->release((void *)(uintptr_t)payload);
}

int domi_asking_begin_ask_to_actor(domus_system *system, domi_asking *asking, domus_address to,
                                   const domus_type *type, const void *payload, uint64_t timeout_ns,
                                   domus_outside_reply *reply)
{
    const domi_asked asked = {.address = to};

    return domi_asking_begin_ask_to_actor_or_grain(system, asking, &asked, type, payload,
                                                   timeout_ns, reply);
}

static int send_ask_to_actor_or_grain(domus_stack *stack, const domi_asked *asked,
                                      const domus_type *type, const void *payload,
                                      uint64_t timeout_ns)
{
    if (asked->is_grain)
        return domus_grain_ask_within(stack, asked->grains, asked->key, type, payload, timeout_ns,
                                      on_answer_complete_ask);
    return domus_ask_within(stack, asked->address, type, payload, timeout_ns,
                            on_answer_complete_ask);
}

int domi_asking_begin_ask_to_actor_or_grain(domus_system *system, domi_asking *asking,
                                            const domi_asked *asked, const domus_type *type,
                                            const void *payload, uint64_t timeout_ns,
                                            domus_outside_reply *reply)
{
    domi_manager *outside = &system->outside;
    pthread_condattr_t attributes;

    if (timeout_ns == 0)
        timeout_ns = DOMUS_OUTSIDE_ASK_NS;
    else if (timeout_ns > DOMUS_OUTSIDE_ASK_MAX_NS)
        timeout_ns = DOMUS_OUTSIDE_ASK_MAX_NS;
    domus_stack *stack = domi_stack_new(outside, system->asker.house, sizeof(domi_asking *));
    if (stack == NULL) {
        release_payload_of_ask(type, payload);
        return -ENOMEM;
    }
    *asking = (domi_asking){.reply = reply};
    memcpy(domus_frame(stack), &asking, sizeof(domi_asking *));
    outside->now_ns = domi_clock_now(&system->clock);
    /* one tick longer than the ask's own time-out, so that the waiting thread does not give up
     * before it */
    asking->until_ns = outside->now_ns + timeout_ns + DOMI_WHEEL_TICK_NS;
    int result = send_ask_to_actor_or_grain(stack, asked, type, payload, timeout_ns);
    if (result != DOMUS_PARKED) {
        release_payload_of_ask(type, payload);
        domi_stack_park_or_end(stack, 0);
        return result;
    }
    asking->promise = stack->awaited;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&asking->woken, &attributes);
    pthread_condattr_destroy(&attributes);
    add_ask_to_asks_under_way(system, asking);
    domi_stack_park_or_end(stack, DOMUS_PARKED);
    return 0;
}

/* --- waiting for answers ---------------------------------------------------------------------- */

/* Returns how many nanoseconds the asking thread may still wait. */
static uint64_t time_left_to_wait(const domus_system *system, const domi_asking *asking)
{
    uint64_t now_ns = domi_clock_now(&system->clock);

    /* When the time is over, the timer wheel may need one more tick to complete the ask. */
    return asking->until_ns > now_ns ? asking->until_ns - now_ns : DOMI_WHEEL_TICK_NS;
}

/* Let the leader of the asking threads sleep on the park word until something is put for the
 * outside, or its time is over. */
static void let_leading_asker_sleep(domus_system *system, const domi_asking *asking)
{
    domi_manager *outside = &system->outside;

    domi_pool_push_chains_to_owners(outside);
    domi_park_begin_sleep(&outside->park);
    if (!domi_manager_has_work(outside)) {
        uint64_t left_ns = time_left_to_wait(system, asking);
        domi_outside_unlock(system);
        domi_futex_park_sleep(outside, left_ns);
        domi_outside_lock(system);
    }
    (void)domi_park_end_sleep(&outside->park);
}

/* Let an asking thread that does not lead sleep until its ask is complete, no thread leads any
 * more, or its time is over. */
static void sleep_until_lead_or_answer(domus_system *system, domi_asking *asking)
{
    const struct timespec until = domi_clock_deadline_after(time_left_to_wait(system, asking));

    asking->sleeps = true;
    (void)pthread_cond_timedwait(&asking->woken, &system->outside_mutex, &until);
    domi_manager_become_owner(&system->outside);
    asking->sleeps = false;
}

/* Give up the lead of the asking threads, if this thread has it, and wake one that can take it. */
static void give_lead_to_next_asking_thread(domus_system *system, const domi_asking *asking)
{
    if (system->leader == asking)
        system->leader = NULL;
    if (system->leader != NULL)
        return;
    /* only sleeping threads are woken: one that is awake takes the free lead itself before it
     * sleeps */
    for (domi_asking *next = system->askings; next != NULL; next = next->next) {
        if (next->sleeps) {
            pthread_cond_signal(&next->woken);
            return;
        }
    }
}

int domi_asking_wait_for_answer(domus_system *system, domi_asking *asking)
{
    for (domi_outside_handle_arrivals(system); !asking->done;
         domi_outside_handle_arrivals(system)) {
        if (system->leader == NULL)
            system->leader = asking;
        if (system->leader == asking)
            let_leading_asker_sleep(system, asking);
        else
            sleep_until_lead_or_answer(system, asking);
    }
    give_lead_to_next_asking_thread(system, asking);
    pthread_cond_destroy(&asking->woken);
    if (--system->askings_count == 0)
        pthread_cond_broadcast(&system->nobody_asks);
    return asking->result;
}

void domi_outside_fail_all_asks(domus_system *system)
{
    for (domi_asking *asking = system->askings; asking != NULL; asking = asking->next) {
        /* a promise that does not wait any more is about to complete without this */
        if (asking->promise->state == DOMI_PROMISE_WAITING)
            domi_promise_fail(&system->outside, asking->promise, -ESHUTDOWN);
    }
    domi_outside_handle_arrivals(system);
    while (system->askings_count != 0)
        pthread_cond_wait(&system->nobody_asks, &system->outside_mutex);
    domi_manager_become_owner(&system->outside);
}

int domi_outside_ask_actor_or_grain(domus_system *system, const domi_asked *asked,
                                    const domus_type *type, const void *payload,
                                    uint64_t timeout_ns, domus_outside_reply *reply)
{
    domi_asking asking;
    domi_visit visit;
    int result = 0;

    if (type->size > DOMUS_PAYLOAD_MAX)
        result = -EMSGSIZE;
    /* a thread of the system would wait for ever, because it could not handle the ask meanwhile */
    else if (domi_thread_manager != NULL && domi_thread_manager->system == system)
        result = -EDEADLK;
    /* in a simulation nobody would answer, because no step is taken while the caller waits */
    else if (system->simulator != NULL)
        result = -EOPNOTSUPP;
    else
        result = domi_outside_enter_to_send(system, &visit);
    if (result != 0) {
        release_payload_of_ask(type, payload);
        return result;
    }
    result = domi_asking_begin_ask_to_actor_or_grain(system, &asking, asked, type, payload,
                                                     timeout_ns, reply);
    if (result == 0)
        result = domi_asking_wait_for_answer(system, &asking);
    domi_outside_leave(system, &visit);
    return result;
}

int domus_outside_ask(domus_system *system, domus_address to, const domus_type *type,
                      const void *payload, uint64_t timeout_ns, domus_outside_reply *reply)
{
    const domi_asked asked = {.address = to};

    return domi_outside_ask_actor_or_grain(system, &asked, type, payload, timeout_ns, reply);
}
