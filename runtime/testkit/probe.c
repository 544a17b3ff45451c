/* A probe is an actor that keeps the messages that it receives for the test, and between steps does
 * what the test tells it to do.
 *
 * A probe acts outside of a run: its simulated thread is woken, and a stack
 * (house/conversation/stack.h) is made for the probe, as io makes one for a channel. So the probe
 * can do all that an actor can, and errors are returned to the test at once. An ask that the probe
 * receives is kept until the test answers it. */
#include "runtime/testkit/parts.h"

#include "base/memory.h"
#include "house/conversation/turn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- the probe's actor ----------------------------------------------------------------------- */

/* Keep a message that the probe has received as a parcel, which then owns what the payload owns.
 * Returns NULL if there is no memory; then the library releases the payload. */
static domi_parcel *keep_message_as_parcel(domus_stack *stack, domus_probe *probe, const char *kind,
                                           const domus_type *type, const void *payload, int error)
{
    size_t bytes = type != NULL ? type->size : 0;
    domi_parcel *one = domi_memory_new(sizeof *one + bytes);

    domi_trace_record_probe(probe->kit, probe->number, kind, type, error);
    if (one == NULL) {
        probe->lost = true;
        return NULL;
    }
    one->kind = kind;
    one->type = type;
    one->error = error;
    one->owns = domus_take(stack) == 0;
    if (bytes != 0)
        memcpy(one->payload, payload, bytes);
    domi_parcels_put(&probe->came, one);
    return one;
}

/* Handle a message to the probe: keep it for the test. This is the handler of the behaviour's only
 * row, which accepts every type. */
static int on_message_keep_for_test(domus_stack *stack, void *self, const void *payload)
{
    static const char *const kinds[DOMI_MAILBOXES] = {
        [DOMI_ASK] = "ask", [DOMI_NOTICE] = "notice", [DOMI_EVENT] = "event"};
    domus_probe *probe = *(domus_probe **)self;
    const domus_type *type = stack->message->type;
    uint8_t kind = stack->message->node.kind;
    domi_parcel *one = keep_message_as_parcel(stack, probe, kinds[kind], type, payload, 0);

    if (one == NULL)
        return -ENOMEM;
    one->sender = domus_sender(stack);
    one->is_ask = kind == DOMI_ASK;
    /* If there is no memory to keep the ask, the library fails it with -ENOMSG, and the test's
     * reply finds nobody to answer. */
    if (one->is_ask)
        (void)domus_keep(stack, &one->kept);
    return 0;
}

static int on_answer_keep_for_test(domus_stack *stack, void *self, const domus_answer *answer)
{
    domus_probe *probe = *(domus_probe **)self;
    const char *kind = answer->error == 0 ? "reply" : "failure";
    domi_parcel *one =
        keep_message_as_parcel(stack, probe, kind, answer->type, answer->payload, answer->error);

    if (one != NULL)
        one->sender = domus_sender(stack);
    return 0;
}

static const domus_behaviour behaviour = {
    .name = "probe",
    .state_size = sizeof(domus_probe *),
    .on = (const domus_on[]){{NULL, on_message_keep_for_test, 0}},
};

/* --- making and freeing probes --------------------------------------------------------------- */

int domus_probe_new(domus_testkit *kit, domus_probe **ret_probe)
{
    domus_probe *probe = domi_memory_new(sizeof *probe);
    int result = -ENOMEM;

    if (probe != NULL)
        result = domus_outside_spawn_on(kit->system, kit->probe_count % kit->system->count,
                                        &behaviour, &probe, &probe->address);
    if (result != 0) {
        domi_memory_free(probe);
        snprintf(kit->error, sizeof kit->error, "a probe cannot be made: %s", strerror(-result));
        return result;
    }
    probe->kit = kit;
    probe->number = kit->probe_count++;
    probe->next = kit->probes;
    kit->probes = probe;
    *ret_probe = probe;
    return 0;
}

void domi_probe_free(domus_probe *probe)
{
    while (probe->came.head != NULL) {
        domi_parcel *one = domi_parcels_take(&probe->came);

        domi_parcel_release_payload(one);
        domi_memory_free(one);
    }
    while (probe->asks.head != NULL)
        domi_memory_free(domi_parcels_take(&probe->asks));
    domi_memory_free(probe);
}

domus_address domus_probe_address(const domus_probe *probe)
{
    return probe->address;
}

domus_address domus_probe_sender(const domus_probe *probe)
{
    return probe->sender;
}

/* --- acts of a probe ------------------------------------------------------------------------- */

/* Begin a run of the probe between steps, with a stack for what the test tells it to do. Returns 0;
 * -EBUSY in a step; -ESTALE if the probe was stopped. */
static int begin_run_of_probe(const domus_probe *probe, domus_stack *ret_stack)
{
    domi_house *house = probe->address.house;
    uint64_t life = domi_house_life_word(house);

    if (probe->kit->stepping)
        return -EBUSY;
    if (DOMI_LIFE_LEASE(life) != probe->address.lease || (life & DOMI_LIFE_CLOSED) != 0)
        return -ESTALE;
    domi_testkit_wake_thread_for_test(probe->kit, house->home);
    domi_stack_begin_without_message(ret_stack, house->home, house);
    domi_run_begin(house->home, house);
    domi_turn_begin(ret_stack, NULL);
    return 0;
}

/* End the run that begin_run_of_probe() has begun; `result` is that of what the probe did. */
static void end_run_of_probe(domus_stack *stack, int result)
{
    domi_manager *manager = stack->manager;

    (void)domi_turn_end_of_callback(stack, result);
    domi_run_end(manager);
}

int domus_probe_send(domus_probe *probe, domus_address to, const domus_type *type,
                     const void *payload)
{
    domus_stack stack;
    int result = begin_run_of_probe(probe, &stack);

    if (result != 0)
        return result;
    result = domus_notice(&stack, to, type, payload);
    end_run_of_probe(&stack, 0);
    return result;
}

int domus_probe_ask(domus_probe *probe, domus_address to, const domus_type *type,
                    const void *payload)
{
    return domus_probe_ask_within(probe, to, type, payload, 0);
}

int domus_probe_ask_within(domus_probe *probe, domus_address to, const domus_type *type,
                           const void *payload, uint64_t timeout_ns)
{
    domus_stack stack;
    int result = begin_run_of_probe(probe, &stack);

    if (result != 0)
        return result;
    result = domus_ask_within(&stack, to, type, payload, timeout_ns, on_answer_keep_for_test);
    end_run_of_probe(&stack, result);
    return result == DOMUS_PARKED ? 0 : result;
}

/* Answer the oldest ask that the probe has received and the test expected: with a reply, or, if
 * `type` is NULL, with `error`. */
static int answer_oldest_ask_of_probe(domus_probe *probe, const domus_type *type,
                                      const void *payload, int error)
{
    const domi_parcel *oldest = probe->asks.head;
    domus_stack stack;
    int result = begin_run_of_probe(probe, &stack);

    if (result != 0)
        return result;
    if (oldest == NULL) {
        end_run_of_probe(&stack, 0);
        return -EINVAL;
    }
    if (type != NULL)
        result = domus_kept_reply(&stack, oldest->kept, type, payload);
    else
        result = domus_kept_fail(&stack, oldest->kept, error);
    if (result != -EMSGSIZE)
        domi_memory_free(domi_parcels_take(&probe->asks));
    end_run_of_probe(&stack, 0);
    return result;
}

int domus_probe_reply(domus_probe *probe, const domus_type *type, const void *payload)
{
    return answer_oldest_ask_of_probe(probe, type, payload, 0);
}

int domus_probe_fail(domus_probe *probe, int error)
{
    return error < 0 ? answer_oldest_ask_of_probe(probe, NULL, NULL, error) : -EINVAL;
}
