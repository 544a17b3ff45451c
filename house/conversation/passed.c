/* Follows asks that were passed on; see the header. */
#include "house/conversation/passed.h"

#include "base/memory.h"
#include "house/conversation/holder.h"

/* --- the asks that were cancelled last --------------------------------------------------------
 *
 * A cancel misses an ask that is between two actors, and the actor that holds it then tells the
 * asker. The promise may serve another ask by then, and does not say how the first one ended. An
 * ask whose asker only went on without the answer is to be left alone, so the asks that were
 * cancelled last are remembered. A promise has its place in that table by its address. Whoever had
 * the place before gets another one by a hash, because the memory of promises is in several pieces.
 * The table is one for all threads, because a house that is lent cancels on another thread than the
 * one on which it hears of the holder. */

#define PLACES     (UINT32_C(1) << 17) /* places of each kind; used pages alone take memory */
#define PLACE_SIZE 64u                 /* promises are at least so many bytes apart */

/* Returns the table; NULL: there is none. Any thread. */
static _Atomic uint64_t *get_passed_table(const domi_manager *manager)
{
    /* acquire: pairs with make_table(), so the places are seen empty. */
    return atomic_load_explicit(&manager->managers[0]->cancelled, memory_order_acquire);
}

static _Atomic uint64_t *make_table(const domi_manager *manager)
{
    _Atomic uint64_t *made = domi_memory_new(2 * PLACES * sizeof *made);
    _Atomic uint64_t *there = NULL;

    if (made == NULL ||
        atomic_compare_exchange_strong_explicit(&manager->managers[0]->cancelled, &there, made,
                                                memory_order_acq_rel, memory_order_acquire))
        return made;
    domi_memory_free((void *)made);
    return there;
}

static uint32_t hash_to_place(const domi_promise *promise)
{
    return (uint32_t)((uintptr_t)promise / PLACE_SIZE % PLACES);
}

/* An ask in one word: 32 bits of the address of its promise, which tell those apart that share a
 * place, and the serial. */
static uint64_t make_ask_word(const domi_promise *promise, uint32_t serial)
{
    return (uint64_t)((uintptr_t)promise / 16) << 32 | serial;
}

/* The place of a name that had to leave the first one. */
static uint32_t hash_to_second_place(uint64_t name)
{
    return PLACES + (uint32_t)(name * UINT64_C(0x9e3779b97f4a7c15) >> 32) % PLACES;
}

static void remember_cancel(const domi_manager *manager, const domi_promise *promise)
{
    _Atomic uint64_t *places = get_passed_table(manager);

    if (places == NULL && (places = make_table(manager)) == NULL)
        return;
    const uint64_t name = make_ask_word(promise, domi_promise_serial(promise));
    _Atomic uint64_t *place = &places[hash_to_place(promise)];
    /* Relaxed: it is not read through, and the exchange finds whether it is the newest. */
    uint64_t before = atomic_load_explicit(place, memory_order_relaxed);

    /* release: whoever finds the new name in the place finds the old one in its second place. The
     * holder tells by messages, which began behind this. */
    do {
        if (before != 0)
            atomic_store_explicit(&places[hash_to_second_place(before)], before,
                                  memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(place, &before, name, memory_order_release,
                                                    memory_order_relaxed));
}

static bool was_cancelled(const domi_manager *manager, const domi_return *back)
{
    const uint64_t name = make_ask_word(back->promise, back->serial);
    _Atomic uint64_t *places = get_passed_table(manager);

    /* acquire, then relaxed: pairs with the exchange of remember_cancel(). */
    return places != NULL && (atomic_load_explicit(&places[hash_to_place(back->promise)],
                                                   memory_order_acquire) == name ||
                              atomic_load_explicit(&places[hash_to_second_place(name)],
                                                   memory_order_relaxed) == name);
}

/* --- cancel ----------------------------------------------------------------------------------- */

void domi_ask_cancel(domi_manager *manager, const domi_promise *promise)
{
    const domi_return back = {.promise = (domi_promise *)(uintptr_t)promise,
                              .serial = domi_promise_serial(promise)};

    if (promise->target.house == NULL)
        return;
    remember_cancel(manager, promise);
    domi_ask_put_cancel(manager, promise->target, &back);
}

void domi_ask_cancel_kept(domi_manager *manager, const domi_promise *promise)
{
    const domi_return back = {.promise = (domi_promise *)(uintptr_t)promise,
                              .serial = domi_promise_serial(promise),
                              .note = DOMI_CANCEL_KEPT};

    if (promise->target.house != NULL && promise->state == DOMI_PROMISE_WAITING)
        domi_ask_put_cancel(manager, promise->target, &back);
}

/* --- pass on ---------------------------------------------------------------------------------- */

bool domi_ask_is_given_up(const domi_envelope *ask)
{
    const domi_return *back = (const domi_return *)(const void *)ask->payload;

    /* Relaxed: the walks over chains of asks read the same (circle.c). */
    return back->promise != NULL && (back->until & DOMI_UNFOLLOWED) == 0 &&
           domi_promise_serial(back->promise) != back->serial;
}

void domi_ask_pass_on(const domus_stack *stack, domi_envelope *ask)
{
    domi_return *back = domi_envelope_return(ask);

    if (ask->sender != domi_stack_house(stack))
        back->until |= DOMI_PASSED_ON;
    else if (stack->pooled != NULL && stack->pooled->outlives)
        back->until |= DOMI_UNFOLLOWED;
}

void domi_ask_follow(const domus_stack *stack, const domi_envelope *ask, domus_address to)
{
    const domi_return *back = (const domi_return *)(const void *)ask->payload;

    if (ask->sender != domi_stack_house(stack) || back->promise == NULL ||
        (back->until & DOMI_UNFOLLOWED) != 0 || domi_ask_is_given_up(ask))
        return;
    if (back->promise->state == DOMI_PROMISE_WAITING)
        back->promise->target = to;
}

void domi_ask_note_holder(domi_manager *manager, domi_envelope *message)
{
    const domi_return *back = domi_envelope_return(message);
    domi_promise *promise = back->promise;
    bool is_over = domi_promise_serial(promise) != back->serial;

    if (!is_over && promise->state == DOMI_PROMISE_WAITING)
        promise->target = (domus_address){message->sender, message->sender_lease};
    else if (was_cancelled(manager, back))
        domi_ask_cancel_at_holder(manager, message);
}

void domi_ask_cancel_at_holder(domi_manager *manager, domi_envelope *message)
{
    domi_ask_put_cancel(manager, (domus_address){message->sender, message->sender_lease},
                        domi_envelope_return(message));
}
