/* Keeps the lists of living processes (processes.h). */
#include "house/family/processes.h"

#include "house/message/mailbox.h"
#include "house/message/pool.h"

#include <domus/process.h>

#include <errno.h>
#include <string.h>

const domus_type domus_process_cancel_type = {.name = "cancel",
                                              .size = sizeof(domus_process_cancel)};

static_assert(sizeof(domus_process_cancel) <= sizeof(((domi_envelope *)NULL)->payload),
              "the last event is a small one");

void domi_processes_init(domi_processes *processes)
{
    domi_spinlock_init(&processes->lock);
}

static void add_process_to_list(domi_processes *processes, domi_living *living, bool told)
{
    domi_living **list = &processes->lists[told];

    living->told = told;
    living->previous = NULL;
    living->next = *list;
    if (living->next != NULL)
        living->next->previous = living;
    *list = living;
    domi_counter_add(&processes->untold, told ? 0 : 1);
}

static void remove_process_from_list(domi_processes *processes, domi_living *living)
{
    if (living->next != NULL)
        living->next->previous = living->previous;
    if (living->previous != NULL)
        living->previous->next = living->next;
    else
        processes->lists[living->told] = living->next;
    domi_counter_add(&processes->untold, living->told ? 0 : UINT64_MAX);
}

void domi_processes_add_process(domi_processes *processes, domi_living *living,
                                domus_address address)
{
    if (processes == NULL)
        return; /* a manager without a system has no list */
    living->address = address;
    living->listed = true;
    domi_spinlock_lock(&processes->lock);
    add_process_to_list(processes, living, false);
    domi_counter_add(&processes->count, 1);
    domi_spinlock_unlock(&processes->lock);
}

void domi_processes_remove_process(domi_processes *processes, domi_living *living)
{
    if (!living->listed)
        return;
    living->listed = false;
    domi_spinlock_lock(&processes->lock);
    remove_process_from_list(processes, living);
    domi_counter_add(&processes->count, UINT64_MAX);
    domi_spinlock_unlock(&processes->lock);
}

uint32_t domi_processes_take_to_tell_of_end(domi_processes *processes, domus_address *addresses,
                                            uint32_t count)
{
    uint32_t taken = 0;

    domi_spinlock_lock(&processes->lock);
    for (; taken < count && processes->lists[0] != NULL; taken++) {
        domi_living *living = processes->lists[0];
        remove_process_from_list(processes, living);
        add_process_to_list(processes, living, true);
        addresses[taken] = living->address;
    }
    domi_spinlock_unlock(&processes->lock);
    return taken;
}

int domi_process_send_last_event(domi_manager *manager, domus_address address, uint64_t deadline_ns)
{
    const domus_process_cancel cancel = {
        .deadline_ns = deadline_ns,
        .left_ns = deadline_ns > manager->now_ns ? deadline_ns - manager->now_ns : 0,
    };
    domi_envelope *envelope = domi_envelope_new(manager, sizeof(domi_envelope));

    if (envelope == NULL)
        return -ENOMEM;
    envelope->type = &domus_process_cancel_type;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    memcpy(envelope->payload, &cancel, sizeof cancel);
    if (domi_mailbox_put(manager, address, &envelope->node, DOMI_EVENT) != 0)
        domi_pool_free_object(manager, &envelope->node);
    return 0;
}
