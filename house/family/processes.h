/* The processes that live in a system, so that each of them gets a last event (domus/process.h).
 *
 * A process is in one of two lists: of the processes that were not told to end, or of those that
 * were. A thread that tells them takes a few out of the first list at a time, so the lock is held
 * only for a moment, however many there are. Thread-safety: any thread. */
#ifndef DOMI_HOUSE_FAMILY_PROCESSES_H
#define DOMI_HOUSE_FAMILY_PROCESSES_H

#include "base/counter.h"
#include "base/spinlock.h"
#include "house/message/manager.h"

#include <domus/process.h>

typedef struct domi_living domi_living;

/* A living process; part of its actor's state. */
struct domi_living {
    domi_living *next;
    domi_living *previous;
    domus_address address;
    bool told;
    bool listed;
};

typedef struct domi_processes {
    alignas(DOMI_LINES) domi_spinlock lock;
    /* the list of processes that were not told to end, and the list of those that were; the
     * newest comes first */
    domi_living *lists[2];
    domi_counter count; /* number of living processes in both lists; written under the lock */
    /* number of living processes that were not told to end; written under the lock */
    domi_counter untold;
} domi_processes;

/* Make the lists of a system without processes; the caller has zeroed the memory. */
void domi_processes_init(domi_processes *processes);

/* Add the process at `address` to the lists of living processes when it begins, or remove it when
 * it ends. */
void domi_processes_add_process(domi_processes *processes, domi_living *living,
                                domus_address address);
void domi_processes_remove_process(domi_processes *processes, domi_living *living);

/* Take the addresses of at most `count` processes that were not told to end, and count these as
 * told. Returns their number. */
uint32_t domi_processes_take_to_tell_of_end(domi_processes *processes, domus_address *addresses,
                                            uint32_t count);

/* Send the last event to one process. Called by the owner of `manager`. Returns 0, also if the
 * process is gone; -ENOMEM. */
int domi_process_send_last_event(domi_manager *manager, domus_address address,
                                 uint64_t deadline_ns);

/* Make an actor that is a process; `spawn` gets the behaviour and the state, and spawns it.
 * `result_to` gets the value of the process; nobody: the value is dropped. Returns as
 * domus_process_spawn(). */
int domi_process_spawn(const domus_process *process, const char *method, const domus_type *type,
                       const void *input, domus_address result_to,
                       int (*spawn)(void *context, const domus_behaviour *behaviour,
                                    const void *state, domus_address *ret_address),
                       void *context, domus_address *ret_address);

/* Returns 0 if this process may be spawned with an input of this type; else -EINVAL or
 * -EMSGSIZE. */
int domi_process_check(const domus_process *process, const char *method, const domus_type *type);

#endif
