/* Finds asks that were passed on, and cancels them where they are (asks.h). */
#include "house/conversation/asks.h"

#include "base/memory.h"
#include "house/conversation/holder.h"

/* --- the asks that were cancelled last --------------------------------------------------------
 *
 * A cancel misses an ask that is between two actors; the actor that gets the ask then tells the
 * asker. The promise may serve another ask by then, and does not say how the first one ended. But
 * an ask whose asker only went on without the answer is left alone, so the asks that were cancelled
 * last are remembered in a table. The address of a promise chooses its place there. The ask that
 * had this place before moves to another place, which a hash chooses, because the memory of
 * promises is in several pieces. All threads share one table, because a house that is lent cancels
 * on one thread and may hear of the holder on another. */

/* places of each of the two kinds, first and second, in the table of cancelled asks; only pages
 * that were used take memory */
#define PLACES     (UINT32_C(1) << 17)
#define PLACE_SIZE 64u /* least distance in bytes between the addresses of two promises */

/* Returns the table of cancelled asks; NULL: nothing was cancelled yet. Any thread. */
static _Atomic uint64_t *get_table_of_cancelled_asks(const domi_manager *manager)
{
    /* acquire: pairs with the release in make_table_of_cancelled_asks(), so the places are seen
     * empty. */
    return atomic_load_explicit(&manager->managers[0]->cancelled, memory_order_acquire);
}

static _Atomic uint64_t *make_table_of_cancelled_asks(const domi_manager *manager)
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

static uint32_t get_first_table_place_of_ask(const domi_promise *promise)
{
    return (uint32_t)((uintptr_t)promise / PLACE_SIZE % PLACES);
}

/* Returns the word that names an ask in the table: 32 bits of the address of its promise, which
 * differ for promises with the same place, and the serial. */
static uint64_t make_table_word_for_ask(const domi_promise *promise, uint32_t serial)
{
    return (uint64_t)((uintptr_t)promise / 16) << 32 | serial;
}

/* Returns the second place of an ask that a newer one has pushed out of its first place. */
static uint32_t get_second_table_place_of_ask(uint64_t name)
{
    return PLACES + (uint32_t)(name * UINT64_C(0x9e3779b97f4a7c15) >> 32) % PLACES;
}

static void record_cancelled_ask(const domi_manager *manager, const domi_promise *promise)
{
    _Atomic uint64_t *places = get_table_of_cancelled_asks(manager);

    if (places == NULL && (places = make_table_of_cancelled_asks(manager)) == NULL)
        return;
    const uint64_t name = make_table_word_for_ask(promise, domi_promise_serial(promise));
    _Atomic uint64_t *place = &places[get_first_table_place_of_ask(promise)];
    /* Relaxed: nothing is read through the value of the place, and the exchange fails if it is not
     * the newest. */
    uint64_t before = atomic_load_explicit(place, memory_order_relaxed);

    /* release: a thread that finds the new word in this place also finds the old one in its second
     * place. The message by which a holder tells of its ask was sent after this exchange. */
    do {
        if (before != 0)
            atomic_store_explicit(&places[get_second_table_place_of_ask(before)], before,
                                  memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(place, &before, name, memory_order_release,
                                                    memory_order_relaxed));
}

static bool was_ask_cancelled(const domi_manager *manager, const domi_return *back)
{
    const uint64_t name = make_table_word_for_ask(back->promise, back->serial);
    _Atomic uint64_t *places = get_table_of_cancelled_asks(manager);

    /* The acquire of the first load, with the relaxed second one, pairs with the exchange of
     * record_cancelled_ask(). */
    return places != NULL &&
           (atomic_load_explicit(&places[get_first_table_place_of_ask(back->promise)],
                                 memory_order_acquire) == name ||
            atomic_load_explicit(&places[get_second_table_place_of_ask(name)],
                                 memory_order_relaxed) == name);
}

/* --- cancel ----------------------------------------------------------------------------------- */

void domi_ask_cancel_at_its_actor(domi_manager *manager, const domi_promise *promise)
{
    const domi_return back = {.promise = (domi_promise *)(uintptr_t)promise,
                              .serial = domi_promise_serial(promise)};

    if (promise->target.house == NULL)
        return;
    record_cancelled_ask(manager, promise);
    domi_ask_tell_actor_of_cancel(manager, promise->target, &back);
}

void domi_ask_cancel_if_kept(domi_manager *manager, const domi_promise *promise)
{
    const domi_return back = {.promise = (domi_promise *)(uintptr_t)promise,
                              .serial = domi_promise_serial(promise),
                              .note = DOMI_CANCEL_KEPT};

    if (promise->target.house != NULL && promise->state == DOMI_PROMISE_WAITING)
        domi_ask_tell_actor_of_cancel(manager, promise->target, &back);
}

/* --- pass on ---------------------------------------------------------------------------------- */

bool domi_ask_is_given_up(const domi_envelope *ask)
{
    const domi_return *back = (const domi_return *)(const void *)ask->payload;

    /* Relaxed: the head of circle.c says why, for walks that read the same fields of a chain of
     * asks. */
    return back->promise != NULL && (back->until & DOMI_UNFOLLOWED) == 0 &&
           domi_promise_serial(back->promise) != back->serial;
}

void domi_ask_mark_passed_on(const domus_stack *stack, domi_envelope *ask)
{
    domi_return *back = domi_envelope_get_return_of_ask(ask);

    if (ask->sender != domi_stack_get_house(stack))
        back->until |= DOMI_PASSED_ON;
    else if (stack->pooled != NULL && stack->pooled->outlives)
        back->until |= DOMI_UNFOLLOWED;
}

void domi_ask_record_new_holder(const domus_stack *stack, const domi_envelope *ask,
                                domus_address to)
{
    const domi_return *back = (const domi_return *)(const void *)ask->payload;

    if (ask->sender != domi_stack_get_house(stack) || back->promise == NULL ||
        (back->until & DOMI_UNFOLLOWED) != 0 || domi_ask_is_given_up(ask))
        return;
    if (back->promise->state == DOMI_PROMISE_WAITING)
        back->promise->target = to;
}

void domi_ask_record_sender_as_holder(domi_manager *manager, domi_envelope *message)
{
    const domi_return *back = domi_envelope_get_return_of_ask(message);
    domi_promise *promise = back->promise;
    bool is_over = domi_promise_serial(promise) != back->serial;

    if (!is_over && promise->state == DOMI_PROMISE_WAITING)
        promise->target = (domus_address){message->sender, message->sender_lease};
    else if (was_ask_cancelled(manager, back))
        domi_ask_cancel_at_holder(manager, message);
}

void domi_ask_cancel_at_holder(domi_manager *manager, domi_envelope *message)
{
    domi_ask_tell_actor_of_cancel(manager, (domus_address){message->sender, message->sender_lease},
                                  domi_envelope_get_return_of_ask(message));
}
