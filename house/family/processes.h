/* The processes that live in a system, so that each of them gets a last event (domus/process.h).
 *
 * A process is in one of two lists: of those that were not told to end, and of those that were.
 * Whoever tells them takes a few out of the first list at a time, so the lock is held for a moment
 * however many there are. Thread-safety: any thread. */
#ifndef DOMI_HOUSE_FAMILY_PROCESSES_H
#define DOMI_HOUSE_FAMILY_PROCESSES_H

#include "base/counter.h"
#include "base/spinlock.h"
#include "house/message/manager.h"

#include <domus/process.h>

typedef struct domi_living domi_living;

/* A process that lives; part of its actor's state. */
struct domi_living {
    domi_living *next;
    domi_living *previous;
    domus_address address;
    bool told;
    bool listed;
};

typedef struct domi_processes {
    alignas(DOMI_LINES) domi_spinlock lock;
    domi_living *lists[2]; /* not told, told; the newest first */
    domi_counter count;    /* entries of both; written under the lock */
    domi_counter untold;   /* the number of processes that were not told; written under the lock */
} domi_processes;

/* A system without processes: its memory is zeroed, and this makes the lock. */
void domi_processes_init(domi_processes *processes);

/* The process at `address` begins, or ends. */
void domi_processes_add(domi_processes *processes, domi_living *living, domus_address address);
void domi_processes_remove(domi_processes *processes, domi_living *living);

/* Take at most `count` processes that were not told, and count them as told. Returns how many. */
uint32_t domi_processes_take_untold(domi_processes *processes, domus_address *addresses,
                                    uint32_t count);

/* Send the last event to one process. Called by the owner of `manager`. Returns 0, also if the
 * process is gone; -ENOMEM. */
int domi_process_cancel(domi_manager *manager, domus_address address, uint64_t deadline_ns);

/* Make an actor that is a process, by `spawn`, which gets its behaviour and state. `result_to` gets
 * its value; nobody: it is dropped. Returns as domus_process_spawn(). */
int domi_process_spawn(const domus_process *process, const char *method, const domus_type *type,
                       const void *input, domus_address result_to,
                       int (*spawn)(void *context, const domus_behaviour *behaviour,
                                    const void *state, domus_address *ret_address),
                       void *context, domus_address *ret_address);

/* Returns 0 if such a process may be spawned with such an input; -EINVAL; -EMSGSIZE. */
int domi_process_check(const domus_process *process, const char *method, const domus_type *type);

#endif
