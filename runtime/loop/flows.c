/* This file follows asks from thread to thread; flows.h says how.
 *
 * A thread looks into the house of a watched ask only when it runs that house itself, so the house
 * is not lent in that time. If the house was lent before, it has run unseen: then its flow ends
 * early. */
#include "runtime/loop/flows.h"

#include "base/memory.h"
#include "house/conversation/stack.h"

/* most messages, or most conversations, of a house that are searched for the watched ask */
#define LOOKS_MAX 256u
/* nanoseconds after which an ask is watched no more (1 s) */
#define AGE_NS UINT64_C(1000000000)

/* ---- Life ------------------------------------------------------------------------------------ */

domi_flows *domi_flows_new(domi_thread *thread, domi_recorder *recorder)
{
    domi_flows *flows = domi_memory_new_cache_lines(sizeof *flows);

    if (flows == NULL)
        return NULL;
    flows->recorder = recorder;
    /* release: a thread that reads the pointer sees the zeros in the new flows. */
    atomic_store_explicit(&thread->flows, flows, memory_order_release);
    return flows;
}

void domi_flows_free(domi_thread *thread)
{
    domi_memory_free(atomic_load_explicit(&thread->flows, memory_order_relaxed));
    atomic_store_explicit(&thread->flows, NULL, memory_order_relaxed);
}

static const domi_house *load_house_watched_by_flow(const domi_flow *flow)
{
    /* acquire: pairs with the release store in watch_house_of_flow(), which comes after all other
     * stores to the flow. */
    return atomic_load_explicit((_Atomic(const domi_house *) *)(uintptr_t)&flow->house,
                                memory_order_acquire);
}

static void stop_watching_asking_actor(domi_flows *flows)
{
    /* relaxed: only this thread reads and writes `asking.house`. */
    atomic_store_explicit(&flows->asking.house, NULL, memory_order_relaxed);
}

static void stop_watching_asked_actor(domi_flows *flows)
{
    atomic_store_explicit(&flows->asked.house, NULL, memory_order_relaxed);
    /* release: pairs with the acquire in claim_flows_of_asked_thread(), so the next asker writes to
     * the flow only after this thread has read it. */
    atomic_store_explicit(&flows->claimed, 0, memory_order_release);
}

static void record_flow_step(const domi_flows *flows, domi_record_kind kind, const domi_flow *flow,
                             uint64_t at_ns)
{
    domi_recorder_write_ended_thing(flows->recorder, kind, at_ns, at_ns, flow->type, flow->number);
}

/* ---- Looks ----------------------------------------------------------------------------------- */

static bool does_ask_belong_to_flow(domi_envelope *ask, const domi_flow *flow)
{
    const domi_return *answer_to = domi_envelope_get_return_of_ask(ask);

    return answer_to->promise == flow->promise && answer_to->serial == flow->serial;
}

/* True if the watched ask waits in the mailbox of the house. */
static bool has_watched_ask_in_mailbox(const domi_house *house, const domi_flow *flow)
{
    domi_node *last = house->tails[DOMI_ASK];
    domi_node *node = last;

    for (uint32_t i = 0; node != NULL && i < LOOKS_MAX; i++) {
        node = node->next;
        if (does_ask_belong_to_flow((domi_envelope *)(void *)node, flow))
            return true;
        if (node == last)
            return false;
    }
    return false;
}

/* True if a conversation of the house has the watched ask and has not answered it yet. */
static bool has_watched_ask_in_conversation(const domi_house *house, const domi_flow *flow)
{
    const domus_stack *stack = house->stacks;

    for (uint32_t i = 0; stack != NULL && i < LOOKS_MAX; i++, stack = stack->next) {
        if ((stack->ask != NULL && does_ask_belong_to_flow(stack->ask, flow)) ||
            (stack->received != NULL && stack->received->node.kind == DOMI_ASK &&
             does_ask_belong_to_flow(stack->received, flow)))
            return true;
    }
    return false;
}

static bool is_watched_ask_unanswered(const domi_flow *flow)
{
    return domi_promise_serial(flow->promise) == flow->serial;
}

void domi_flows_note_state_before_run(const domi_flows *flows, const domi_house *house,
                                      domi_flowing *ret_flowing)
{
    const domus_stack *newest = house->stacks;

    *ret_flowing = (domi_flowing){.lease = DOMI_LIFE_LEASE(domi_house_life_word(house))};
    if (flows == NULL)
        return;
    if (newest != NULL && newest->waiting != NULL) {
        ret_flowing->newest = newest;
        ret_flowing->waits_for = newest->waiting;
        ret_flowing->serial = domi_promise_serial(newest->waiting);
    }
    ret_flowing->is_asked = load_house_watched_by_flow(&flows->asked) == house;
    ret_flowing->has_ask =
        ret_flowing->is_asked && has_watched_ask_in_mailbox(house, &flows->asked);
    ret_flowing->is_asking = load_house_watched_by_flow(&flows->asking) == house;
    ret_flowing->is_answered = ret_flowing->is_asking && !is_watched_ask_unanswered(&flows->asking);
}

/* ---- What has happened to a watched ask
 * --------------------------------------------------------- */

/* Look at the actor that was asked, after its run, and record whether it has begun to handle the
 * ask or has answered it. `lives`: the actor has not ended. Returns whether something was
 * recorded. */
static bool record_what_asked_actor_did(domi_flows *flows, const domi_house *house,
                                        const domi_flowing *flowing, bool lives, uint64_t begin_ns)
{
    domi_flow *flow = &flows->asked;
    bool was_taken = flow->is_taken;

    if (flowing->lease != flow->lease) {
        stop_watching_asked_actor(flows);
        return false;
    }
    if (flowing->has_ask && !(lives && has_watched_ask_in_mailbox(house, flow))) {
        flow->is_taken = true;
        record_flow_step(flows, DOMI_RECORD_ASK_IN, flow, begin_ns);
    }
    /* the actor had handled the ask before this thread began to watch it */
    if (!flow->is_taken && !is_watched_ask_unanswered(flow)) {
        stop_watching_asked_actor(flows);
        return false;
    }
    if (!flow->is_taken || (lives && has_watched_ask_in_conversation(house, flow)))
        return flow->is_taken != was_taken;
    record_flow_step(flows, DOMI_RECORD_ANSWER_OUT, flow, begin_ns);
    stop_watching_asked_actor(flows);
    return true;
}

static bool record_what_asking_actor_got(domi_flows *flows, const domi_flowing *flowing,
                                         uint64_t begin_ns)
{
    if (!flowing->is_answered && is_watched_ask_unanswered(&flows->asking))
        return false;
    if (!flowing->is_answered)
        record_flow_step(flows, DOMI_RECORD_ANSWER_IN, &flows->asking, begin_ns);
    stop_watching_asking_actor(flows);
    return !flowing->is_answered;
}

static void drop_old_flows(domi_flows *flows, uint64_t now_ns)
{
    if (load_house_watched_by_flow(&flows->asking) != NULL &&
        now_ns > flows->asking.since_ns + AGE_NS)
        stop_watching_asking_actor(flows);
    if (load_house_watched_by_flow(&flows->asked) != NULL &&
        now_ns > flows->asked.since_ns + AGE_NS)
        stop_watching_asked_actor(flows);
}

/* ---- A new flow
 * --------------------------------------------------------------------------------- */

/* Returns the promise of the newest ask, if the run has made it and to an actor of another
 * thread; NULL if there is no such ask. */
static domi_promise *find_promise_of_new_ask(const domi_manager *manager, const domi_house *house,
                                             const domi_flowing *flowing)
{
    const domus_stack *newest = house->stacks;
    domi_promise *promise = newest != NULL ? newest->waiting : NULL;

    if (promise == NULL || promise->kind != DOMI_PROMISE_ASK ||
        promise->state != DOMI_PROMISE_WAITING || promise->target.house == NULL)
        return NULL;
    if (newest == flowing->newest && promise == flowing->waits_for &&
        domi_promise_serial(promise) == flowing->serial)
        return NULL;
    /* NULL if the ask was made to a router, which has no home */
    const domi_manager *home = promise->target.house->home;
    return home != NULL && home->index < manager->threads && home != manager ? promise : NULL;
}

/* Claim the place in which another thread watches an ask that was made to it. Returns NULL if
 * that thread records nothing, or watches another ask already. */
static domi_flows *claim_flows_of_asked_thread(domi_thread *thread)
{
    /* acquire: pairs with the release store in domi_flows_new(), so the flows are seen with
     * their zeros. */
    domi_flows *flows = atomic_load_explicit(&thread->flows, memory_order_acquire);
    uint32_t none = 0;

    if (flows == NULL || domi_thread_recorder(thread) == NULL)
        return NULL;
    /* acquire: pairs with the release in stop_watching_asked_actor(), so that the other thread has
     * read the old flow before this thread overwrites it. */
    return atomic_compare_exchange_strong_explicit(&flows->claimed, &none, 1, memory_order_acquire,
                                                   memory_order_relaxed)
               ? flows
               : NULL;
}

static void watch_house_of_flow(domi_flow *flow, const domi_house *house, uint32_t lease,
                                const domi_flow *as)
{
    flow->lease = lease;
    flow->serial = as->serial;
    flow->promise = as->promise;
    flow->type = as->type;
    flow->number = as->number;
    flow->since_ns = as->since_ns;
    flow->is_taken = false;
    /* release: pairs with the acquire in load_house_watched_by_flow(), so a thread that sees the
     * house sees the other fields of the flow. */
    atomic_store_explicit(&flow->house, house, memory_order_release);
}

static bool begin_flow_of_new_ask(domi_flows *flows, const domi_manager *manager,
                                  const domi_house *house, const domi_flowing *flowing,
                                  uint64_t begin_ns)
{
    domi_promise *promise = find_promise_of_new_ask(manager, house, flowing);

    if (promise == NULL)
        return false;
    const domus_address asked = promise->target;
    domi_flows *others = claim_flows_of_asked_thread(asked.house->home->thread);
    if (others == NULL)
        return false;
    const domi_flow flow = {
        .serial = domi_promise_serial(promise),
        .promise = promise,
        .type = promise->wait.asked,
        .number = (uint64_t)(manager->index + 1) << 40 | ++flows->count,
        .since_ns = begin_ns,
    };
    watch_house_of_flow(&flows->asking, house, flowing->lease, &flow);
    watch_house_of_flow(&others->asked, asked.house, asked.lease, &flow);
    record_flow_step(flows, DOMI_RECORD_ASK_OUT, &flow, begin_ns);
    return true;
}

bool domi_flows_record_after_run(domi_flows *flows, const domi_manager *manager,
                                 const domi_house *house, const domi_flowing *flowing,
                                 uint64_t begin_ns, bool may_begin)
{
    bool lives = DOMI_LIFE_LEASE(domi_house_life_word(house)) == flowing->lease;
    bool is_recorded = false;

    if (flows == NULL)
        return false;
    if (flowing->is_asked)
        is_recorded = record_what_asked_actor_did(flows, house, flowing, lives, begin_ns);
    if (flowing->is_asking)
        is_recorded |= record_what_asking_actor_got(flows, flowing, begin_ns);
    drop_old_flows(flows, begin_ns);
    if (may_begin && lives && load_house_watched_by_flow(&flows->asking) == NULL)
        is_recorded |= begin_flow_of_new_ask(flows, manager, house, flowing, begin_ns);
    return is_recorded;
}
